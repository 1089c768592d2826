"""Second-order learners over a kernel expansion: A lives in the feature space itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.core.function import NewtonFunction
from kons.core.ledger import Ledger
from kons.core.replay import NO_MATRIX, Derivatives, replay
from kons.core.sampler import LeverageSampler
from kons.core.storage import PointStore
from kons.core.threads import single_threaded_blas
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss
from kons.state import Inner, fields

__all__ = ["ExpansionLearner"]

# Rows replayed at a time: the products per block then run at full speed, while the serial recursion
# inside it, O(m^2) a row, stays a small part. A sketch's products are small, and it recurs twice.
BLOCK = 384
SKETCHED_BLOCK = 128
# Points inside A from which a block's products gain more from a second thread than they risk where
# another process keeps that core busy (measured at 3,000 points: 15 % gained, or a factor 2 lost).
THREADED_FROM = 2048


class ExpansionLearner(NewtonLearner):
    """Blocked replay over a :class:`NewtonFunction`, with or without a leverage sampler beside it."""

    STATE = fields(_function=Inner(), _sampler=Inner())

    def __init__(self, kernel: Kernel, loss: Loss, **parameters: Any) -> None:
        super().__init__(kernel, loss, **parameters)
        self._function = NewtonFunction(kernel, self.regularization)
        self._sampler: LeverageSampler | None = None

    def _learn_rows(
        self, points: Any, rows: Ledger, derivatives: int | Derivatives, limit: int | None
    ) -> None:
        if limit is None:
            self._learn_block(points, rows, derivatives)
            return
        block = min(limit, BLOCK if self._sampler is None else SKETCHED_BLOCK)
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            with single_threaded_blas(len(self._function.inside) < THREADED_FROM):
                self._learn_block(points[part], rows[part], derivatives)

    def _learn_block(self, block: Any, rows: Ledger, derivatives: int | Derivatives) -> None:
        """Blocked replay: the same as its rows one by one, at the speed of matrix products."""
        function, sampler = self._function, self._sampler
        rows["self_kernel"] = rows["norm2"] = self.kernel.evaluate_diagonal(block)
        K_bb = self.kernel.evaluate(block, block)
        np.fill_diagonal(K_bb, rows["self_kernel"])
        K = function.cross_gram(block)
        N, U = (NO_MATRIX, NO_MATRIX) if sampler is None else sampler.posterior(block, K_bb, K)
        f = function.values(block, K)
        V = function.preconditioner.whiten(K)
        M = function.preconditioner.covariance(K_bb, V)
        totals = np.array(
            [
                function.preconditioner.weighted_trace,
                0.0 if sampler is None else sampler.preconditioner.weighted_trace,
            ]
        )
        replay(derivatives, rows, self._rules, f, M, totals, N=N)
        if sampler is not None:
            sampler.absorb(block, rows, U, N)
        function.absorb(block, rows, V, M)

    def _raw_scores(self, points: Any) -> Vector:
        return self._function.predict(points)

    def _point_stores(self) -> Sequence[PointStore]:
        function, sampler = self._function, self._sampler
        own = () if sampler is None or sampler.points is function.inside else (sampler.points,)
        return (function.inside, function.outside, *own)
