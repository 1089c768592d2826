"""The one object: ``A = alpha*I + sum_i w_i phi_i phi_i^T`` over a dictionary of points.

Everything is read off the factor of the *scaled* Gram matrix::

    L L^T          = alpha*I + sqrt(W) K_D sqrt(W)
    v(x)           = L^-1 sqrt(W) k_D(x)
    phi(x)^T A^-1 phi(x') = (k(x, x') - v(x)^T v(x')) / alpha

Its eigenvalues are at least alpha: it needs no jitter, and a weight of 0 is harmless. A point that
enters with weight w and inverse form q = phi^T A^-1 phi has the squared pivot ``alpha*(1 + w*q)``,
raises ``log det(A/alpha)`` by ``log(1 + w*q)``, and has leverage ``w*q/(1 + w*q)``.
"""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.factor import PanelFactor
from kons.core.storage import GrowingArray
from kons.state import Growing, Inner, Number, Part, fields

__all__ = ["Preconditioner"]


class Preconditioner(Part):
    """A, by the factor of its scaled Gram matrix; the points themselves live with the caller.

    ``K`` arguments hold one row per point of a block and one column per point of the dictionary, in
    the order in which they entered. Memory n^2/2 numbers; ``whiten`` costs n^2 flops per row.
    """

    STATE = fields(
        _root_weights=Growing("size", at_least=0.0),
        factor=Inner(),
        weighted_trace=Number(at_least=0.0),
    )

    def __init__(self, regularization: float) -> None:
        self.regularization = regularization
        self.factor: PanelFactor = PanelFactor()
        self._root_weights = GrowingArray()
        self.weighted_trace: float = 0.0
        """``sum w_i k(x_i, x_i)``, which bounds the inverse form from below."""

    def __len__(self) -> int:
        return self.factor.size

    @property
    def weights(self) -> Vector:
        """What each point entered with."""
        weights: Vector = self._root_weights.view**2
        return weights

    def whiten(self, K: Matrix) -> Matrix:
        """``v = L^-1 sqrt(W) k_D(x)`` as rows of V, overwriting K (m x n) and returning it."""
        K *= self._root_weights.view
        return self.factor.solve(K)

    def covariance(self, K_bb: Matrix, V: Matrix) -> Matrix:
        """``M = (K_bb - V V^T) / alpha``: the inverse form between the m points of a block."""
        with np.errstate(over="ignore", invalid="ignore"):  # the replay refuses what is no number
            M: Matrix = V @ V.T
            np.subtract(K_bb, M, out=M)
        M /= self.regularization
        return M

    def enter(
        self, V: Matrix, M: Matrix, weights: Vector, inverse_forms: Vector, self_kernels: Vector
    ) -> None:
        """Let those points of a block in that have a weight; V (m x n) is used up.

        ``M`` (m x m) is what :mod:`kons.core.replay` left of their covariance: row t holds
        ``phi_t^T A^-1 phi_j``, j >= t, as A stood when point t was met, which is the right-looking
        Cholesky factorization up to scale. ``inverse_forms`` are its diagonal, q.
        """
        chosen = np.flatnonzero(weights > 0.0)
        if not len(chosen):
            return
        if len(chosen) < len(weights):
            V, M = V[chosen], M[np.ix_(chosen, chosen)]
        weights = weights[chosen]
        roots = np.sqrt(weights)
        # The squared pivot is alpha*(1 + w*q).
        pivots = np.sqrt(self.regularization * (1.0 + weights * inverse_forms[chosen]))
        corner: Matrix = np.tril(M.T, -1)
        corner *= self.regularization * roots[:, None] * (roots / pivots)
        np.fill_diagonal(corner, pivots)
        V *= roots[:, None]
        self.factor.append(V, corner)
        self._root_weights.append(roots)
        self.weighted_trace += float(weights @ self_kernels[chosen])

    def project_back(self, r: Matrix) -> Matrix:
        """``sqrt(W) L^-T r`` of each row of a matrix: coefficients over the dictionary's points."""
        coefficients: Matrix = self._root_weights.view * self.factor.solve_transposed(r)
        return coefficients

    def effective_dimension(self) -> float:
        """``Tr(A^-1 (A - alpha*I))`` of the points inside. Costs n^3/3."""
        return len(self) - self.regularization * self.factor.inverse_norm2()
