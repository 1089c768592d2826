"""FunctionalGradient: gradient descent in function space, with weight decay and a budget of points."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from kons.arrays import MOST_FEATURES, Integers, Matrix, Vector, require_integer, require_number
from kons.core.budget import FEATURES, PROJECT, SHRINK, SMALLEST, WHEN_FULL, Expansion, descend
from kons.core.coins import Coins
from kons.core.feature_maps import Fourier
from kons.core.ledger import Ledger
from kons.core.replay import NO_MATRIX, Slopes
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners.budgeted import BudgetedExpansion
from kons.losses import Loss
from kons.policies import Budget
from kons.state import Array, Inner, Part, Sizes, fields
from kons.step_sizes import StepSize, for_descent
from kons.stored import Stored

__all__ = ["FunctionalGradient"]


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
        f = Expansion(members, theta, self._totals.copy(), K, self._between_points(len(rows)), *explicit)
        count = descend(derivatives, rows, self._rules, f, len(self._coefficients))
        self._coefficients, self._totals = theta[:count].copy(), f.totals
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
        when_full, points = self._rules.when_full, self._points.view
        if self._rules.budget and len(points):
            if when_full in (SMALLEST, FEATURES):
                return np.diag(self.kernel.evaluate_diagonal(points))
            if when_full in (PROJECT, SHRINK):
                first = points if when_full == PROJECT else points[:rows]
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
