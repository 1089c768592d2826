"""Learners over an expansion with a budget: who is kept depends on the targets, row by row.

:class:`BudgetedExpansion` is what they share; :class:`SlidingWindow` is one, of second order,
:class:`FunctionalGradient` the other: gradient descent in function space, with weight decay.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from kons.arrays import MOST_FEATURES, MOST_POINTS, Integers, Matrix, Vector, require_integer, require_number
from kons.core.budget import WHEN_FULL, Expansion, descend, slide, solve_lower, solve_upper
from kons.core.coins import Coins
from kons.core.feature_maps import Fourier
from kons.core.function import cross_gram
from kons.core.ledger import Ledger
from kons.core.replay import NO_MATRIX, Slopes, check_sound
from kons.core.storage import PointStore, point_store, take
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss, Squared
from kons.policies import Budget
from kons.state import Array, Inner, Lower, Part, Points, Sizes, fields
from kons.step_sizes import StepSize, for_descent
from kons.stored import Stored

__all__ = ["FunctionalGradient", "SlidingWindow"]


class BudgetedExpansion(NewtonLearner):
    """``f(x) = sum_i theta_i k(x_i, x)`` over points that come and go, at most as many as the rules' budget.

    Not to be used directly. A subclass says what a block of rows does to its members (:meth:`_replay`) and
    what their coefficients are.
    """

    multi_output = False
    _block = 64  # their kernel with all points is held at once
    STATE = fields(_points=Points("size"))

    def __init__(self, kernel: Kernel, loss: Loss, **parameters: Any) -> None:
        super().__init__(kernel, loss, **parameters)
        self._points = point_store(kernel.accepts)

    @property
    def size(self) -> int:
        """How many points f has."""
        return len(self._points)

    @property
    def points(self) -> Any:
        """The points that f has, in the order they came. A copy."""
        return self._points.copy()

    @property
    @abstractmethod
    def coefficients(self) -> Vector:
        """Those of :attr:`points` in f."""

    @abstractmethod
    def _replay(self, block: Any, rows: Ledger, derivatives: Slopes, members: Integers, K: Matrix) -> int:
        """Predict and learn a block, filling its ledger, members and coefficients.

        ``members`` and K are those of :mod:`kons.core.budget`: who was there before, and then the rows.
        Returns how many members there are.
        """

    def _learn_block(self, block: Any, ledgers: Ledger, derivatives: Slopes) -> int:
        n, m, kernel, rows = len(self._points), len(block), self.kernel, ledgers[0]
        rows["self_kernel"] = rows["norm2"] = kernel.evaluate_diagonal(block)
        K = np.hstack([cross_gram(kernel, block, self._points), kernel.evaluate(block, block)])
        K[np.arange(m), n + np.arange(m)] = rows["self_kernel"]
        members = np.arange(n + m)
        members = members[: self._replay(block, rows, derivatives, members, K)]
        stay = int(np.count_nonzero(members < n))
        if stay < n:  # another store: an undo has the one before
            store = point_store(kernel.accepts)
            store.append(take(self._points.view, members[:stay]))
            self._points = store
        self._points.append_rows(block, members[stay:] - n)
        return m

    def _sizes(self, kept: Any) -> Any:
        return np.minimum(super()._sizes(kept), self._rules.budget or self._kept)

    def _raw_scores(self, points: Any) -> Matrix:
        return np.asarray(cross_gram(self.kernel, points, self._points) @ self.coefficients[:, None])

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._points,)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        most = min(self._kept, self._rules.budget or self._kept)
        stored.counted(len(self._points), "points", at_most=most)


class SlidingWindow(BudgetedExpansion):
    """Kernel ridge regression over the last N rows, exactly: what is older is forgotten at once.

    ::

        f = argmin  sum_{last N rows} (y - f(x))^2 + (alpha/2) |f|^2

    The factor of the window loses its oldest point by rotations, so that nothing cancels. Costs O(N^2) a row,
    N^2/2 numbers of memory. Not where the past stays true: ``EmbeddedKONS`` learns every row for ever at the
    same cost, and with ``forgetting`` fades it smoothly.

    Parameters
    ----------
    kernel, bound, regularization:
        As in :class:`kons.KONS`, with the squared loss and its Hessian.
    window:
        N, the rows that count. One with the sample weight 0 is not among them.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian, SlidingWindow
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(600, 1))
    >>> y = np.where(np.arange(600) < 300, 1.0, -1.0) * np.sin(x).ravel()  # it turns round
    >>> trace = SlidingWindow(Gaussian(0.5), window=100, regularization=0.1).advance(x, y)
    >>> bool(trace.loss[300:310].mean() > 0.5), bool(trace.loss[400:].mean() < 0.01)
    (True, True)

    References
    ----------
    Van Vaerenbergh, Via, Santamaria: A sliding-window kernel RLS algorithm and its application to nonlinear
    channel identification, ICASSP 2006.
    """

    STATE = fields(_targets=Array("size"), _roots=Array("size", at_least=0.0), _L=Lower("size", written=""))

    def __init__(
        self, kernel: Kernel, *, window: int = 200, bound: float = 1.0, regularization: float = 1.0
    ) -> None:
        given = {"bound": bound, "regularization": regularization}
        super().__init__(kernel, Squared(), second_order="hessian", **given)
        self.window: int = require_integer(window, "window", at_least=1, at_most=MOST_POINTS)
        self._rules = self._rules._replace(budget=self.window)
        self._shares_matrix = False
        self._targets: Vector = np.empty(0)
        self._roots: Vector = np.empty(0)
        self._L: Matrix = np.empty((0, 0))

    @property
    def coefficients(self) -> Vector:
        """Those of :attr:`points` in f."""
        theta = self._roots * self._targets
        solve_lower(self._L, len(theta), theta)
        solve_upper(self._L, len(theta), theta)
        return self._roots * theta

    def _replay(self, block: Any, rows: Ledger, derivatives: Slopes, members: Integers, K: Matrix) -> int:
        count, new, room = len(self._targets), np.zeros(len(rows)), min(len(members), self.window + 1)
        targets, roots, L = np.append(self._targets, new), np.append(self._roots, new), np.zeros((room, room))
        L[:count, :count] = self._L
        f = Expansion(members, targets, K)
        count = check_sound(slide(rows, self._rules.packed, f, roots, L, count), rows)
        self._targets, self._roots = targets[:count].copy(), roots[:count].copy()
        self._L = np.tril(L[:count, :count])
        return count


class FunctionalGradient(BudgetedExpansion):
    """Gradient descent in function space: first order, over an expansion with a budget of points.

    ::

        predict  y_hat = clip(f(x), -C, C)                                    g = loss'(f(x))
        learn    f <- (1 - eta*lambda) f - eta*g k(x, .)
                 with more than B points, one goes: see kons.policies.Budget

    Without a budget O(t) kernel values a row, and as many points as rows had a slope; with one O(B),
    whatever t is (O(B^3) in a row that projects). The regret grows as sqrt(T) at best, a budget adds what
    its removals take. Not where second order can be had: ``EmbeddedKONS`` keeps what it learned and has no
    step to tune.

    Parameters
    ----------
    kernel, loss, bound:
        As in :class:`kons.KONS`; only the output is clipped, nothing is projected.
    step_size:
        eta: a number, a function of t = 1, 2, ..., or None for C/(L sqrt(t)), for kernels with k(x,x) = 1.
    decay:
        lambda, the weight decay; eta*lambda is to stay below 1.
    updates:
        ``"mistakes"`` learns only rows on the wrong side, y*f <= 0, as perceptrons do; ``"all"`` every row.
    budget:
        :class:`kons.policies.Budget`, or None: all points stay.
    dimension:
        D, an even number: of the random features, where points that go become such; O(D d) a row more.
    seed:
        Of the coins and features; each row uses one uniform number, whatever the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import FunctionalGradient, Gaussian, Squared
    >>> from kons.policies import Budget
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> learner = FunctionalGradient(Gaussian(0.5), Squared(), step_size=0.2, budget=Budget(50, "project"))
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-500:].mean() < 0.01), learner.size
    (True, 50)

    References
    ----------
    Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004;
    for budgets see :mod:`kons.recipes.expansions`.
    """

    STATE = fields(_coefficients=Array("size"), _totals=Array(2), _gone=Inner())

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        *,
        bound: float = 1.0,
        step_size: Any = None,
        decay: float = 0.0,
        updates: Literal["all", "mistakes"] = "all",
        budget: Budget | None = None,
        dimension: int = 400,
        seed: int = 0,
    ) -> None:
        super().__init__(kernel, loss, bound=bound, step_size=step_size, second_order="none", updates=updates)
        self.decay: float = require_number(decay, "decay", at_least=0.0)
        if self.step_size(1) * self.decay >= 1.0:
            raise ConfigurationError(
                f"decay is {decay:g} and the first step size {self.step_size(1):g}: their product must stay "
                "below 1, or each row throws away what was learned before. Lower one of them."
            )
        if not (budget is None or isinstance(budget, Budget)):
            raise ConfigurationError(f"budget is {budget!r}, expected a kons.policies.Budget, or None.")
        self.budget = budget
        self.dimension: int = require_integer(dimension, "dimension", at_least=2, at_most=MOST_FEATURES)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        of_features = budget is not None and budget.when_full == "features"
        self._gone = GonePoints(kernel, self.dimension, self.seed) if of_features else None
        self._rules = self._rules._replace(decay=self.decay)
        if budget is not None:
            limits: dict[str, Any] = {"budget": budget.max_points, "largest": budget.largest}
            self._rules = self._rules._replace(when_full=WHEN_FULL[budget.when_full], **limits)
        self._coins = (Coins(self.seed),)
        self._coefficients: Vector = np.empty(0)
        #: What removals have cost, and how many rows moved f (the Forgetron's Q and M).
        self._totals: Vector = np.zeros(2)

    def _usual_step(self) -> StepSize:
        return for_descent(self.loss, self.bound)

    @property
    def coefficients(self) -> Vector:
        """Those of :attr:`points` in f. A copy."""
        return self._coefficients.copy()

    def _replay(self, block: Any, rows: Ledger, derivatives: Slopes, members: Integers, K: Matrix) -> int:
        explicit = () if self._gone is None else self._gone.meet(block)
        theta = np.append(self._coefficients, np.zeros(len(rows)))
        S, totals = self._between_points(len(rows)), self._totals.copy()
        f = Expansion(members, theta, K, S, totals, *explicit)
        count = descend(derivatives, rows, self._rules, f, len(self._coefficients))
        self._coefficients, self._totals = theta[:count].copy(), totals
        if self._gone is not None:
            self._gone.settle(f.gone, members[:count])
        return count

    def _raw_scores(self, points: Any) -> Matrix:
        scores = super()._raw_scores(points)
        return scores if self._gone is None else scores + self._gone.values(points)[:, None]

    def _widened(self, columns: int) -> None:
        if self._gone is not None:
            self._gone.features.widen(columns)

    def _between_points(self, rows: int) -> Matrix:
        """As much of the kernel between the points that f has as removals in so many rows ask for."""
        points, rule = self._points.view, "oldest" if self.budget is None else self.budget.when_full
        if rule in ("smallest", "features") and len(points):
            return np.diag(self.kernel.evaluate_diagonal(points))
        if rule in ("project", "shrink") and len(points):
            first = points if rule == "project" else points[:rows]
            return np.ascontiguousarray(self.kernel.evaluate(first, points))
        return NO_MATRIX


class GonePoints(Part):
    """Points that a budget had no room for, as random features: ``w^T z(x)`` in place of their kernels.

    ``w`` is the sum of ``theta z(x)`` over them; ``z`` of those that may go is kept, too. O(D d) a row. Its
    kernel errs by 1/sqrt(D).
    """

    STATE = fields(features=Inner(), w=Array(None), Z=Array("size", None))

    def __init__(self, kernel: Kernel, dimension: int, seed: int) -> None:
        self.features: Fourier = Fourier(kernel, dimension, seed)
        self.w: Vector = np.zeros(dimension)
        self.Z: Matrix = np.empty((0, dimension))

    def meet(self, block: Matrix) -> tuple[Matrix, Vector]:
        """Q and ``gone`` of :class:`kons.core.budget.Expansion` for a block of rows."""
        if not self.features.frequencies.shape[1]:
            self.features.start(block.shape[1])
        new = self.features.features(block)
        self.Z = np.vstack([self.Z, new])
        return np.column_stack([new @ self.Z.T, new @ self.w]), np.append(np.zeros(len(self.Z)), 1.0)

    def settle(self, gone: Vector, members: Integers) -> None:
        """Take in who went; of those met so far the members stay."""
        self.w = gone[-1] * self.w + gone[:-1] @ self.Z
        self.Z = self.Z[members]

    def values(self, points: Matrix) -> Vector:
        """``w^T z`` of each point."""
        return np.asarray(self.features.features(points) @ self.w if self.w.any() else np.zeros(len(points)))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.w) != self.features.size or self.Z.shape[1] != self.features.size:
            raise stored.error(f"w has {len(self.w)} features, expected {self.features.size}")
