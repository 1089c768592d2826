"""The learned function, a kernel expansion ``f(x) = sum_i theta_i k(x_i, x)``, with its A.

A block moves it by ``-A^-1 sum_t c_t phi_t`` (:mod:`kons.core.replay`), A from before the block. With
the factor of :mod:`kons.core.preconditioner`, over the dictionary D and the block's own points::

    A^-1 phi(x) = (phi(x) - Phi_D sqrt(W) L^-T v(x)) / alpha
    theta_D    += sqrt(W) L^-T (V^T c) / alpha
    theta_block = -c / alpha

The paper's form ``A^-1 sum_s b_s phi_s`` (Alg. 1, line 5) would save the solve with ``L^T``, but finds f
as a difference of numbers 1/alpha times larger: where a prediction was just projected on the bound,
its next slope is then rounding, which a Newton step magnifies by q (docs/departures.md, 12).

Points inside A (the dictionary) and points that only carry a coefficient (those a coin kept out) are
stored apart, so that both are contiguous. A point with neither weight nor coefficient, such as a row
whose loss is met exactly, is not stored at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.ledger import Ledger
from kons.core.preconditioner import Preconditioner
from kons.core.storage import GrowingArray, PointStore, point_store
from kons.kernels import Kernel
from kons.state import Growing, Inner, Part, Points, fields
from kons.stored import Stored

__all__ = ["NewtonFunction", "cross_gram"]

# Columns of the Gram matrix evaluated at a time: a tile of this width and a block of 128 rows is
# half a megabyte, so that it stays in the cache between the kernel's passes and the product.
TILE = 512


class NewtonFunction(Part):
    """K functions and their A: what a second-order kernel learner must carry from row to row."""

    STATE = fields(
        inside=Points("size"),
        outside=Points("outsiders"),
        _inside_coefficients=Growing("size", "outputs", written="always"),
        _outside_coefficients=Growing("outsiders", "outputs"),
        preconditioner=Inner(),
    )
    kernel: Kernel
    outputs: int

    def __init__(self, kernel: Kernel, regularization: float, outputs: int) -> None:
        self.kernel, self.outputs = kernel, outputs
        self.preconditioner: Preconditioner = Preconditioner(regularization)
        self.inside: PointStore = point_store(kernel.accepts)
        self.outside: PointStore = point_store(kernel.accepts)
        self._inside_coefficients = GrowingArray(outputs)
        self._outside_coefficients = GrowingArray(outputs)

    def __len__(self) -> int:
        return len(self.inside) + len(self.outside)

    def cross_gram(self, block: Any) -> Matrix:
        """``k(block, dictionary)``."""
        return cross_gram(self.kernel, block, self.inside)

    def values(self, block: Any, K: Matrix) -> Matrix:
        """``f(block)``, (m, K), given ``K = k(block, dictionary)``."""
        values: Matrix = K @ self._inside_coefficients.view
        values += self._expansion(self._outside_coefficients.view, self.outside.view, block)
        return values

    def predict(self, block: Any) -> Matrix:
        """``f(block)``, (m, K), tile by tile."""
        values = self._expansion(self._inside_coefficients.view, self.inside.view, block)
        values += self._expansion(self._outside_coefficients.view, self.outside.view, block)
        return values

    def inverse_forms(self, block: Any) -> Vector:
        """``phi^T A^-1 phi`` of each point, at least its exact lower bound. O(n^2) a point."""
        A, diagonal = self.preconditioner, self.kernel.evaluate_diagonal(block)
        V = A.whiten(self.cross_gram(block))
        forms = (diagonal - np.einsum("ij,ij->i", V, V)) / A.regularization
        sound: Vector = np.maximum(forms, diagonal / (A.regularization + A.weighted_trace))
        return sound

    def absorb(self, block: Any, ledgers: Ledger, V: Matrix, M: Matrix) -> None:
        """Take in a replayed block, with a ledger a function: (K, m).

        V and M as :meth:`Preconditioner.enter` wants them.
        """
        alpha, rows = self.preconditioner.regularization, ledgers[0]
        c, w = ledgers["coefficient"].T, rows["weight"]
        theta = self._inside_coefficients.view
        theta += self.preconditioner.project_back(c.T @ V).T / alpha
        self.preconditioner.enter(V, M, w, rows["inverse_form"], rows["self_kernel"])
        inside = np.flatnonzero(w > 0.0)
        self.inside.append_rows(block, inside)
        self._inside_coefficients.append(-c[inside] / alpha)
        outside = np.flatnonzero((w == 0.0) & (c != 0.0).any(axis=1))
        self.outside.append_rows(block, outside)
        self._outside_coefficients.append(-c[outside] / alpha)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of as many functions."""
        super().load_state(stored, **sizes, outputs=self.outputs)

    def _expansion(self, coefficients: Matrix, points: Any, block: Any) -> Matrix:
        """``k(block, points) coefficients``, tile by tile: never a whole Gram matrix."""
        values = np.zeros((len(block), self.outputs))
        for start in range(0, len(coefficients), TILE):
            tile = slice(start, start + TILE)
            values += self.kernel.evaluate(block, points[tile]) @ coefficients[tile]
        return values


def cross_gram(kernel: Kernel, block: Any, points: PointStore) -> Matrix:
    """``k(block, points)``, also where there are no points yet."""
    return kernel.evaluate(block, points.view) if len(points) else np.empty((len(block), 0))
