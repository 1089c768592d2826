"""What learners over an expansion with a budget share: who is kept depends on the targets, row by row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.core.function import cross_gram
from kons.core.ledger import Ledger
from kons.core.replay import Derivatives
from kons.core.storage import PointStore, point_store, take
from kons.core.threads import single_threaded_blas
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss
from kons.state import Points, Sizes, fields
from kons.stored import Stored

__all__ = ["BudgetedExpansion"]

# Rows replayed at a time: their kernel with all points is held at once.
BLOCK = 64


class BudgetedExpansion(NewtonLearner):
    """``f(x) = sum_i theta_i k(x_i, x)`` over points that come and go, at most as many as the rules' budget.

    Not to be used directly. A subclass says what a block of rows does to its members (:meth:`_replay`) and
    what their coefficients are.
    """

    multi_output = False
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
    def _replay(
        self, block: Any, rows: Ledger, derivatives: int | Derivatives, members: Integers, K: Matrix
    ) -> int:
        """Predict and learn a block, filling its ledger, members and coefficients.

        ``members`` and K are those of :mod:`kons.core.budget`: who was there before, and then the rows.
        Returns how many members there are.
        """

    def _learn_rows(
        self, points: Any, rows: Ledger, derivatives: int | Derivatives, limit: int | None
    ) -> None:
        block = min(limit or 1, BLOCK)
        with single_threaded_blas(limit is not None):
            for start in range(0, len(points), block):
                part = slice(start, start + block)
                self._learn_block(points[part], rows[0, part], derivatives)

    def _learn_block(self, block: Any, rows: Ledger, derivatives: int | Derivatives) -> None:
        n, m, kernel = len(self._points), len(block), self.kernel
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

    def _sizes(self, kept: Any) -> Any:
        return np.minimum(super()._sizes(kept), self._rules.budget or self._kept)

    def _raw_scores(self, points: Any) -> Matrix:
        scores: Matrix = cross_gram(self.kernel, points, self._points) @ self.coefficients[:, None]
        return scores

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._points,)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        most = min(self._kept, self._rules.budget or self._kept)
        stored.counted(len(self._points), "points", at_most=most)
