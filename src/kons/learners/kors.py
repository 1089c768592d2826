"""KORS: kernel online row sampling (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Vector, as_row_values, require_integer, require_scale
from kons.core.coins import Coins
from kons.core.embedding import Embedding
from kons.core.ledger import SKETCH, Rules, new_ledger
from kons.core.replay import sample
from kons.core.sampler import LeverageSampler
from kons.core.storage import PointStore
from kons.core.threads import single_threaded_blas
from kons.kernels import Kernel
from kons.learners.dictionary import BLOCK, Dictionary
from kons.learners.expansion import THREADED_FROM
from kons.learners.trace import Trace
from kons.policies import Leverage, require_leverage
from kons.state import Inner, Inners, Number, fields

__all__ = ["KORS"]


class KORS(Dictionary):
    """Choose landmarks of a stream by ridge leverage: points are only added, never removed.

    ::

        estimate = (1 + eps) r/(1 + r),    r = w phi^T (A^I)^-1 phi          (Eq. 4)
        p = max(min(beta*estimate, 1), gamma),   kept with probability p
        A^I <- A^I + (w/p) phi phi^T    if kept,    A^I_0 = alpha*I

    With ``Leverage("theory", horizon=T)``, with probability 1 - delta at every step: A^I is within a
    factor 1 +- eps of ``A = alpha*I + sum w phi phi^T`` over *all* rows, the estimate is between the
    true leverage and rho times it, and at most 3*rho*beta*d_onl points are kept (Theorem 2). The
    kept points are Nystrom landmarks: see :meth:`transform`.

    B^2 numbers of memory with B points kept. Not a learner: it sees no targets.

    :cost: B^2
    :not for: long streams on which B is to stop growing
    :reference: Calandriello, Lazaric, Valko, ICML 2017, Algorithm 2 and Theorem 2

    Examples
    --------
    >>> import numpy as np
    >>> from kons import KORS, Gaussian
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> sampler = KORS(Gaussian(2.0), regularization=0.1, seed=0)
    >>> trace = sampler.advance(X)
    >>> Z = sampler.transform(X)
    >>> bool(sampler.size < 200), bool(abs(Z @ Z.T - Gaussian(2.0).gram(X)).max() < 0.05)
    (True, True)
    """

    STATE = fields(
        _estimated_dimension=Number(at_least=0.0),
        _sampler=Inner(),
        _embedding=Inner(),
        _coins=Inners(),
    )

    def __init__(
        self,
        kernel: Kernel,
        *,
        regularization: float = 1.0,
        policy: Leverage = Leverage(),  # noqa: B008 - frozen
        seed: int = 0,
    ) -> None:
        super().__init__(kernel)
        self.regularization: float = require_scale(regularization, "regularization")
        self.policy: Leverage = require_leverage(policy)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self._rules = Rules(
            bound=1.0,
            regularization=self.regularization,
            entry=SKETCH,
            oversampling=policy.beta,
            distortion=float(policy.distortion),
            floor=float(policy.floor),
        )
        self._sampler = LeverageSampler(kernel, self.regularization)
        self._embedding = Embedding(kernel)
        self._coins = (Coins(self.seed),)
        self._estimated_dimension = 0.0

    def advance(self, X: Any, feature_weight: Any = 1.0, block_size: int | None = None) -> Trace:
        """Toss the coin of each row of X in order; all of them or, after an error, none.

        ``feature_weight`` is w, one number or one per row: a learner's eta*g^2. A row without weight
        changes nothing, whatever its coin. ``block_size`` is an upper limit, and changes no decision.
        """
        points = self._as_points(X)
        rows = new_ledger(len(points))
        rows["feature_weight"] = as_row_values(
            feature_weight, len(points), name="feature_weight", minimum=0.0
        )
        limit = BLOCK if block_size is None else require_integer(block_size, "block_size", at_least=1)
        block = min(limit, BLOCK)
        with self._all_or_nothing(), single_threaded_blas():
            rows["uniform"] = self._coins[0].draw(len(points))
            for start in range(0, len(points), block):
                stop = start + block
                self._sample_block(points[start:stop], rows[start:stop])
            self._count(points, int(np.count_nonzero(rows["kept"])))
            self._estimated_dimension += float(np.sum(rows["leverage_estimate"]))
        return Trace(
            kept=rows["kept"].copy(),
            size=self._sizes(rows["kept"]),
            leverage_estimate=rows["leverage_estimate"].copy(),
            probability=rows["probability"].copy(),
            rounding_clips=int(np.count_nonzero(rows["clipped"])),
        )

    def update(self, X: Any, feature_weight: Any = 1.0) -> None:
        """:meth:`advance`, without a trace."""
        self.advance(X, feature_weight)

    def _take(self, points: Any, weights: Vector) -> None:
        raise NotImplementedError  # advance does it

    def _span(self) -> Embedding:
        """New landmarks append columns and change none of the old ones."""
        return self._embedding

    @property
    def size(self) -> int:
        """How many rows were kept, as the coins decided; those without weight among them."""
        return self._kept

    @property
    def weights(self) -> Vector:
        """``w/p`` of each atom."""
        return self._sampler.preconditioner.weights

    @property
    def importance(self) -> Vector:
        """1/p of each atom: its weight in the sample is w/p."""
        return self._sampler.importances.copy()

    @property
    def online_effective_dimension(self) -> float:
        """The sum of the estimates: with high probability d_onl <= this <= rho*d_onl (Thm. 2)."""
        return self._estimated_dimension

    def effective_dimension(self) -> float:
        """``Tr((A^I - alpha*I)(A^I)^-1)``, the effective dimension of the sample. Costs B^3/3.

        Under Theorem 2 it is within a factor (1+eps)/(1-eps) of that of all rows.
        """
        with single_threaded_blas(len(self._sampler) < THREADED_FROM):
            return self._sampler.preconditioner.effective_dimension()

    def _sample_block(self, block: Any, rows: Any) -> None:
        rows["self_kernel"] = self.kernel.evaluate_diagonal(block)
        K_bb = self.kernel.evaluate(block, block)
        np.fill_diagonal(K_bb, rows["self_kernel"])
        N, U = self._sampler.posterior(block, K_bb)
        totals = np.array([0.0, self._sampler.preconditioner.weighted_trace])
        sample(rows, self._rules, N, totals)
        known = len(self._sampler)
        self._sampler.absorb(block, rows, U, N)
        if len(self._sampler) > known:
            self._embedding.extend(self._sampler.points.view[known:])

    def _point_stores(self) -> Sequence[PointStore]:
        return (self._sampler.points, self._embedding.atoms)

    def _facts(self) -> dict[str, str]:
        return {"online effective dimension, at most": f"{self.online_effective_dimension:.3g}"}
