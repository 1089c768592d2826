"""Second-order learners over a kernel expansion: A lives in the feature space itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Matrix
from kons.core.function import NewtonFunction
from kons.core.ledger import CAPPED, SKETCH, Ledger, Rules
from kons.core.replay import NO_MATRIX, Slopes, follow_all, replay
from kons.core.sampler import LeverageSampler
from kons.core.storage import PointStore
from kons.core.threads import single_threaded_blas
from kons.kernels import Kernel
from kons.learners.newton import NewtonLearner
from kons.losses import Loss
from kons.state import Inner, Inners, Part, fields

__all__ = ["ExpansionLearner"]

# Rows replayed at a time: the products per block then run at full speed, while the serial recursion
# inside it, O(m^2) a row, stays a small part. A sketch's products are small, and it recurs twice.
BLOCK = 384
SKETCHED_BLOCK = 128
# Points inside A from which a block's products gain more from a second thread than they risk where
# another process keeps that core busy (measured at 3,000 points: 15 % gained, or a factor 2 lost).
THREADED_FROM = 2048


class _Expansion(Part):
    """K functions that share an A, and the sampler beside it, if there is one."""

    STATE = fields(function=Inner(), sampler=Inner())

    def __init__(self, function: NewtonFunction, sampler: LeverageSampler | None) -> None:
        self.function, self.sampler = function, sampler

    def learn(self, block: Any, ledgers: Ledger, rules: Rules, derivatives: Slopes) -> None:
        """Blocked replay: the same as its rows one by one, at the speed of matrix products."""
        function, sampler, kernel, rows = self.function, self.sampler, self.function.kernel, ledgers[0]
        rows["self_kernel"] = rows["norm2"] = kernel.evaluate_diagonal(block)
        K_bb = kernel.evaluate(block, block)
        np.fill_diagonal(K_bb, rows["self_kernel"])
        K = function.cross_gram(block)
        N, U = (NO_MATRIX, NO_MATRIX) if sampler is None else sampler.posterior(block, K_bb, K)
        f = np.ascontiguousarray(function.values(block, K).T)
        V = function.preconditioner.whiten(K)
        M = function.preconditioner.covariance(K_bb, V)
        totals = np.array(
            [
                function.preconditioner.weighted_trace,
                0.0 if sampler is None else sampler.preconditioner.weighted_trace,
            ]
        )
        replay(derivatives, rows, rules, f[0], M, totals, N=N)
        follow_all(rows, ledgers[1:], rules.packed, f[1:], M)
        if sampler is not None:
            sampler.absorb(block, rows, U, N)
        function.absorb(block, ledgers, V, M)


class ExpansionLearner(NewtonLearner):
    """Blocked replay over a :class:`NewtonFunction`, with or without a leverage sampler beside it.

    Of k targets with one A (squared loss, ``second_order="hessian"``) there is one, with k functions; else
    there are k, each with its own points inside A, at k times the cost.
    """

    STATE = fields(_expansions=Inners(make=lambda learner: learner._make_functions()))

    def __init__(self, kernel: Kernel, loss: Loss, **parameters: Any) -> None:
        super().__init__(kernel, loss, **parameters)
        self._expansions: list[_Expansion] = []

    def _make_functions(self, count: int = 0) -> Any:
        count = count or self.outputs or 1
        each = [count] if self._shares_matrix else [1] * count
        functions = [NewtonFunction(self.kernel, self.regularization, outputs) for outputs in each]
        self._expansions = [_Expansion(function, self._new_sampler(function)) for function in functions]
        return self._expansions

    def _new_sampler(self, function: NewtonFunction) -> LeverageSampler | None:
        """What the coins of a sketch are tossed by."""
        if self._rules.entry != SKETCH:
            return None
        shared = function.inside if self._rules.shared_coins else None
        return LeverageSampler(self.kernel, self.regularization, shared)

    def _learn_rows(self, points: Any, rows: Ledger, derivatives: Slopes, limit: int | None) -> None:
        first = self._expansions[0]
        block = min(limit or 1, BLOCK if first.sampler is None else SKETCHED_BLOCK)
        for start in range(0, len(points), block):
            part = slice(start, start + block)
            small = limit is not None and len(first.function.inside) < THREADED_FROM
            with single_threaded_blas(small):
                self._learn_block(points[part], rows[:, part], derivatives)

    def _learn_block(self, block: Any, ledgers: Ledger, derivatives: Slopes) -> int:
        at = 0
        for expansion in self._expansions:
            own, at = ledgers[at : at + expansion.function.outputs], at + expansion.function.outputs
            expansion.learn(block, own, self._rules, derivatives)
        return len(block)

    def _raw_scores(self, points: Any) -> Matrix:
        scores = np.hstack([expansion.function.predict(points) for expansion in self._expansions])
        capped = self._rules.curvature == CAPPED
        if not (capped or self._rules.forward):
            return scores
        q = np.stack([expansion.function.inverse_forms(points) for expansion in self._expansions], axis=1)
        # As the next row is predicted: see kons.core.replay.meet.
        divisors = np.maximum(1.0, self._step_sizes(1) * q) if capped else 1.0 + 2.0 * q
        return np.asarray(scores / divisors)

    def _point_stores(self) -> Sequence[PointStore]:
        stores: list[PointStore] = []
        for expansion in self._expansions:
            function, sampler = expansion.function, expansion.sampler
            stores += [function.inside, function.outside]
            if sampler is not None and sampler.points is not function.inside:
                stores.append(sampler.points)
        return stores
