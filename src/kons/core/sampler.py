"""KORS's own preconditioner: ``A^I = alpha*I + sum_i (wbar_i / p_i) phi_i phi_i^T``.

The sum runs over the points whose coin came up. Under it, ``r = wbar * phi^T (A^I)^-1 phi`` gives
the over-estimated leverage of Eq. 4 for the next point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.function import cross_gram
from kons.core.ledger import Ledger
from kons.core.preconditioner import Preconditioner
from kons.core.storage import GrowingArray, PointStore, point_store
from kons.kernels import Kernel
from kons.state import Growing, Inner, Part, Points, Sizes, fields
from kons.stored import Stored

__all__ = ["LeverageSampler"]


class LeverageSampler(Part):
    """The sample, and the posterior it gives over a block.

    ``shared_points`` is the dictionary of a learner that uses the same coins: the sampler then reads
    its points and adds none itself.
    """

    STATE = fields(
        _points=Points("size"),
        _importances=Growing("size", at_least=0.0),
        preconditioner=Inner(),
    )

    def __init__(
        self, kernel: Kernel, regularization: float, shared_points: PointStore | None = None
    ) -> None:
        self.kernel = kernel
        self.preconditioner: Preconditioner = Preconditioner(regularization)
        self._shared_points = shared_points
        self._points = point_store(kernel.accepts) if shared_points is None else None
        self._importances = GrowingArray()

    def __len__(self) -> int:
        return len(self.preconditioner)

    @property
    def points(self) -> PointStore:
        """Those of the sample, in the order they came."""
        points = self._points if self._shared_points is None else self._shared_points
        assert points is not None
        return points

    @property
    def importances(self) -> Vector:
        """1/p of each point of the sample."""
        return self._importances.view

    def posterior(self, block: Any, K_bb: Matrix, K: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """``(N, U)``: the inverse form between the block's points, and their whitened rows.

        ``K = k(block, points)`` may be given where it is known already; it is not changed.
        """
        if self._points is None and K is not None:
            U = self.preconditioner.whiten(K.copy())
        else:
            U = self.preconditioner.whiten(cross_gram(self.kernel, block, self.points))
        return self.preconditioner.covariance(K_bb, U), U

    def absorb(self, block: Any, rows: Ledger, U: Matrix, N: Matrix) -> None:
        """Take in a block whose coins were tossed. A point without weight carries nothing."""
        weights = rows["sampler_weight"]
        self.preconditioner.enter(U, N, weights, rows["sampler_inverse_form"], rows["self_kernel"])
        chosen = np.flatnonzero(weights > 0.0)
        self._importances.append(weights[chosen] / rows["feature_weight"][chosen])
        if self._points is not None:
            self._points.append_rows(block, chosen)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self) != len(self.points):
            raise stored.error(f"it weighs {len(self)} points, expected {len(self.points)}")
