"""Learners over an expansion with a budget: who is kept depends on the targets, row by row.

:class:`BudgetedExpansion` is what they share; :class:`SlidingWindow` is one, and
:class:`kons.FunctionalGradient` the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import MOST_POINTS, Integers, Matrix, Vector, require_integer
from kons.core.function import cross_gram
from kons.core.ledger import Ledger
from kons.core.replay import Slopes, check_sound
from kons.core.storage import PointStore, point_store, take
from kons.core.window import slide, solve_lower, solve_upper
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss, Squared
from kons.state import Array, Lower, Points, Sizes, fields
from kons.stored import Stored

__all__ = ["BudgetedExpansion", "SlidingWindow"]


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
        most, count = min(len(members), self.window), len(members) - len(rows)
        targets, roots, L = np.zeros(len(members)), np.zeros(len(members)), np.zeros((most, most))
        targets[:count], roots[:count], L[:count, :count] = self._targets, self._roots, self._L
        count = check_sound(slide(rows, self._rules.packed, members, targets, roots, count, L, K), rows)
        self._targets, self._roots = targets[:count].copy(), roots[:count].copy()
        self._L = np.tril(L[:count, :count])
        return count
