"""A weighted sample that is thinned: each point is kept while its coin is below a probability that only
falls.

::

    kept while u_i < p_i,    weight w_i/p_i,    A^I = alpha*I + sum_kept (w_i/p_i) phi_i phi_i^T

One uniform u a point, drawn when it comes, decides for ever: given that it was kept under p, it is kept
under p' <= p with probability p'/p, which is a new coin's law. So sums over the sample stay unbiased
however often p falls, two samples are one by putting their points together, and no coin is tossed again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.cholesky import factored, inverted
from kons.core.storage import GrowingArray, PointStore, point_store
from kons.kernels import Kernel
from kons.state import Growing, Part, Points, Sizes, fields
from kons.stored import Stored

__all__ = ["ThinnedSample"]


class ThinnedSample(Part):
    """The points of the sample with w, u and p of each, in the order they came.

    >>> from kons.kernels import Linear
    >>> sample = ThinnedSample(Linear())
    >>> sample.append(np.eye(2), np.ones(2), np.array([0.1, 0.6]))
    >>> sample.thin(np.array([0.5, 0.5]))
    >>> sample.points.view.tolist(), sample.weights.tolist()
    ([[1.0, 0.0]], [2.0])
    """

    STATE = fields(points=Points("size"), _columns=Growing("size", 3, at_least=0.0))

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._begin()

    def _begin(self) -> None:
        self.points: PointStore = point_store(self.kernel.accepts)
        self._columns = GrowingArray(3)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def columns(self) -> Matrix:
        """w, u and p of each point, as rows. A view."""
        return self._columns.view.T

    @property
    def weights(self) -> Vector:
        """``w/p`` of each point."""
        w, _, p = self.columns
        return np.asarray(w / p)

    def append(self, points: Any, weights: Vector, uniforms: Vector, probabilities: Any = 1.0) -> None:
        """Take in the points whose coins are below these probabilities; one without weight is left out."""
        p = np.broadcast_to(probabilities, weights.shape)
        rows = np.flatnonzero((weights > 0.0) & (uniforms < p))
        self.points.append_rows(points, rows)
        self._columns.append(np.column_stack([weights, uniforms, p])[rows])

    def join(self, other: ThinnedSample) -> None:
        """Take the points of another sample in, as they are."""
        self.append(other.points.view, *other.columns)

    def thin(self, probabilities: Any) -> None:
        """Let each p fall to what is given, where that is less, and drop whose coin is not below it."""
        points, (w, u, p) = self.points.view, self.columns
        self._begin()  # replaced, not overwritten: a mark may hold the old ones
        self.append(points, w, u, np.minimum(p, probabilities))

    def masses(self, regularization: float) -> Vector:
        """``w phi^T (A^I)^-1 phi`` of each point under the whole sample, its own weight in it. Costs 2n^3/3.

        ::

            (w/p) phi_i^T (A^I)^-1 phi_i = 1 - alpha (M^-1)_ii,     M = alpha*I + sqrt(W) K sqrt(W)
        """
        if not len(self):
            return np.empty(0)
        points, weights = self.points.view, self.weights
        K: Matrix = self.kernel.evaluate(points, points)
        np.fill_diagonal(K, self.kernel.evaluate_diagonal(points))
        K *= np.sqrt(weights)[:, None] * np.sqrt(weights)
        lengths = K.diagonal().copy()
        inverse = np.tril(inverted(factored(K, regularization)))
        forms = 1.0 - regularization * np.einsum("ij,ij->j", inverse, inverse)
        # Whatever rounding says: A^I <= (alpha + sum w_i k_ii) I.
        lowest = lengths / (regularization + lengths.sum())
        return np.asarray(self.columns[2] * np.maximum(forms, lowest))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        w, u, p = self.columns
        if not ((w > 0.0) & (u < p) & (p <= 1.0)).all():
            raise stored.error("columns has a point without weight, or that its own coin had dropped")
