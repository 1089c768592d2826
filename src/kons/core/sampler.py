"""KORS's own preconditioner: ``A^I = alpha*I + sum_i (wbar_i / p_i) phi_i phi_i^T``.

The sum runs over the points whose coin came up. Under it, ``r = wbar * phi^T (A^I)^-1 phi`` gives
the over-estimated leverage of Eq. 4 for the next point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core import preconditioner
from kons.core.function import cross_gram
from kons.core.ledger import Ledger
from kons.core.preconditioner import Preconditioner
from kons.core.storage import GrowingArray, PointStore, point_store
from kons.kernels import Kernel
from kons.stored import Stored

__all__ = ["LeverageSampler"]


class Mark(NamedTuple):
    """What it takes to go back."""

    preconditioner: preconditioner.Mark


class LeverageSampler:
    """The sample, and the posterior it gives over a block.

    ``shared_points`` is the dictionary of a learner that uses the same coins: the sampler then reads
    its points and adds none itself.
    """

    def __init__(
        self, kernel: Kernel, regularization: float, shared_points: PointStore | None = None
    ) -> None:
        self.kernel = kernel
        self.preconditioner = Preconditioner(regularization)
        self._shares = shared_points is not None
        self.points = point_store(kernel.accepts) if shared_points is None else shared_points
        self._importances = GrowingArray()

    def __len__(self) -> int:
        return len(self.preconditioner)

    @property
    def importances(self) -> Vector:
        """1/p of each point of the sample."""
        return self._importances.view

    def posterior(self, block: Any, K_bb: Matrix, K: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """``(N, U)``: the inverse form between the block's points, and their whitened rows.

        ``K = k(block, points)`` may be given where it is known already; it is not changed.
        """
        if self._shares and K is not None:
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
        if not self._shares:
            self.points.append_rows(block, chosen)

    def mark(self) -> Mark:
        """Where the sample stands, for :meth:`restore`."""
        return Mark(self.preconditioner.mark())

    def restore(self, mark: Mark) -> None:
        """Go back to an earlier mark, bit for bit."""
        size = mark.preconditioner.size
        self.preconditioner.restore(mark.preconditioner)
        self._importances.truncate(size)
        if not self._shares:
            self.points.truncate(size)

    def state(self) -> dict[str, Any]:
        """Everything the next coin depends on; the points too, unless a learner holds them. A copy."""
        return {
            "points": None if self._shares else self.points.copy(),
            "importances": self.importances.copy(),
            "preconditioner": self.preconditioner.state(),
        }

    def load_state(self, stored: Stored, width: int | None) -> None:
        """Take a saved sample; points shared with a learner are there already."""
        if self._shares:
            stored.nothing("points")
        else:
            self.points.load_state(stored, "points", width)
        self._importances.refill(stored.array("importances", len(self.points), at_least=0.0))
        self.preconditioner.load_state(stored.inner("preconditioner"), len(self.points))
        stored.finish()
