"""Coordinates in the span of a dictionary: ``z(x) = L^-1 k_D(x)`` with ``L L^T = K_D``.

They are orthonormal coordinates of the projection of phi(x) on the span, so ``z^T z'`` is the Nystrom
approximation of the kernel, and ``rho(x) = k(x,x) - |z|^2`` the squared distance of phi(x) from the
span. Because L is triangular, a new atom appends one coordinate and changes none of the old ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, ReadVector, Vector
from kons.compilation import compiled
from kons.core.entry import DEPENDENT, KERNEL_ACCURACY, eliminate, independent
from kons.core.factor import PanelFactor
from kons.core.function import cross_gram
from kons.core.storage import PointStore, point_store, take
from kons.errors import NumericalError
from kons.kernels import Kernel
from kons.state import Inner, Part, Points, fields

__all__ = ["Embedding"]

# What the value of a kernel may err by, relative to it: some are computed in single precision.
ROUNDING = float(np.finfo(np.float32).eps)


class Embedding(Part):
    """The map z, over atoms that are linearly independent to rounding.

    ``theta(x) = L^-T z(x)`` are the coefficients of the projection over the atoms. Where they are large,
    atoms cancel each other and the errors of the kernel's values do not: ``rho(x)`` then errs by up to
    ``eps (sqrt(k(x,x)) + sum_a |theta_a| sqrt(k(a,a)))^2``. :func:`kons.core.entry.independent` limits that.

    Costs B^2 flops a point, and B^2/2 numbers of memory.
    """

    STATE = fields(atoms=Points("size"), factor=Inner())

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.atoms: PointStore = point_store(kernel.accepts)
        self.factor: PanelFactor = PanelFactor()

    def __len__(self) -> int:
        return self.factor.size

    def coordinates(self, X: Any) -> Matrix:
        """``z`` of each point, as the rows of an (m, B) array."""
        return self.factor.solve(cross_gram(self.kernel, X, self.atoms))

    def coordinates_of_one(self, x: Any) -> Vector:
        """``z`` of a single point, given as a block of one; in plain loops, without BLAS."""
        return self.factor.solve_one(cross_gram(self.kernel, x, self.atoms)[0])

    def dual(self, u: Vector) -> Vector:
        """``theta`` with ``z(x)^T u = k_D(x)^T theta``."""
        return self.factor.solve_transposed(u)

    def coefficients(self, Z: Matrix) -> Matrix:
        """``theta`` of points with the coordinates Z, over atoms of length 1: rows of an (m, B) array."""
        lengths = np.sqrt(self.kernel.evaluate_diagonal(self.atoms.view)) if len(self) else np.empty(0)
        return self.factor.solve_transposed(Z) * lengths

    def residual(self, X: Any) -> Vector:
        """``rho`` of each point: 0 in the span, k(x,x) orthogonal to it."""
        Z = self.coordinates(X)
        return self.sound_residual(self.kernel.evaluate_diagonal(X), Z)

    def sound_residual(self, self_kernels: Vector, Z: Matrix) -> Vector:
        """``rho`` of points with the coordinates Z; rounding below 0 is cut off, more of it is an error."""
        return self.sound_difference(self_kernels, np.einsum("ij,ij->i", Z, Z), Z)

    def sound_difference(self, self_kernels: Vector, norms: Vector, Z: Matrix) -> Vector:
        """:meth:`sound_residual`, where the squared norms of Z are known."""
        rho: Vector = self_kernels - norms
        low = np.flatnonzero(~(rho >= -KERNEL_ACCURACY * self_kernels))
        if len(low):
            beyond = rho[low] + self.rounding(self_kernels[low], Z[low])
            if not np.min(beyond) >= 0.0 or np.min(self_kernels) < 0.0:
                worst = low[np.argmin(beyond)]
                raise NumericalError(
                    f"the projection of a point on {len(self)} others came out longer than the point itself: "
                    f"k(x,x) = {self_kernels[worst]:g}, and {-rho[worst]:.2g} more in the projection, beyond "
                    "rounding. Likely causes: (a) the kernel is not positive definite or not symmetric; (b) "
                    "it returned NaN or infinity, or values that disagree with its diagonal."
                )
        return np.maximum(rho, 0.0)

    def rounding(self, self_kernels: Vector, Z: Matrix) -> Vector:
        """By how much the residuals of points with the coordinates Z may err."""
        # (1 + sum of B coefficients)^2 <= (1 + B) (1 + sum of their squares)
        squares = self_kernels + np.sum(self.coefficients(Z) ** 2, axis=1)
        bound: Vector = np.maximum(ROUNDING * (1 + len(self)) * squares, KERNEL_ACCURACY * self_kernels)
        return bound

    def squared_coefficients(self, self_kernel: float, z: Vector) -> float:
        """``sum_a theta_a^2 k(a, a)`` of one point, whose residual is found sound on the way."""
        self.sound_residual(np.array([self_kernel]), z[None])
        return float(np.sum(self.coefficients(z[None]) ** 2))

    def extend(
        self, candidates: Any, tolerance: float = DEPENDENT, noise: float = DEPENDENT
    ) -> NDArray[np.intp]:
        """Add those of the candidates that are independent of the atoms before; returns which.

        ``tolerance`` and ``noise``: see :func:`kons.core.entry.independent`.
        """
        diagonal = np.ascontiguousarray(self.kernel.evaluate_diagonal(candidates))
        Z = self.coordinates(candidates)
        R = np.ascontiguousarray(self.kernel.evaluate(candidates, candidates))
        np.fill_diagonal(R, diagonal)
        R -= Z @ Z.T
        theta = self.coefficients(Z)
        accepted = np.flatnonzero(_independent_rows(diagonal, R, theta @ theta.T, tolerance, noise))
        self.append(candidates, accepted, Z[accepted], R[np.ix_(accepted, accepted)])
        return accepted

    def append(self, block: Any, rows: NDArray[np.intp], Z: Matrix, new: Matrix) -> None:
        """Make points of a block atoms: Z their old coordinates, ``new[i, j]``, i <= j, coordinate i of j."""
        if len(rows):
            self.factor.append(Z, np.tril(new.T))
            self.atoms.append_rows(block, rows)

    def append_one(self, point: Any, z: Vector, pivot: float) -> None:
        """Make a point, a block of one, an atom: z its old coordinates, and the new one."""
        self.factor.append_one(z, pivot)
        self.atoms.append(point)

    def buffers(self, room: int, columns: int) -> tuple[Matrix, Matrix]:
        """Vectors that are atoms, and ``L^-1`` of one panel, with room for so many: for loops that append.

        :meth:`count_one` is next, each time. The first atom has so many columns.
        """
        vectors: Any = self.atoms
        return vectors.reserve(room, columns), self.factor.first_inverse

    def count_one(self) -> None:
        """A loop appended an atom to the :meth:`buffers`."""
        vectors: Any = self.atoms
        vectors.count_one()
        self.factor.size += 1

    def without(self, atom: int) -> tuple[Embedding, Matrix]:
        """The embedding of all atoms but one, and Q that takes old coordinates to its: z' = Q z.

        Q has orthonormal rows: it projects on the smaller span. Costs O(B^3).
        """
        # Row i of L holds the coordinates of atom i: L = K_D L^-T.
        L = self.factor.solve(self.kernel.evaluate(self.atoms.view, self.atoms.view))
        others = np.delete(np.arange(len(self)), atom)
        smaller = Embedding(self.kernel)
        # Not judged anew: without one of them, no other lies nearer to the span of those before it.
        others = others[smaller.extend(take(self.atoms.view, others), tolerance=0.0, noise=np.inf)]
        Q = smaller.factor.solve(np.ascontiguousarray(L[others].T)).T
        return smaller, np.ascontiguousarray(Q)

    def removal_cost(self, u: Vector) -> Vector:
        """What each atom's removal costs: ``theta_j^2 / (K_D^-1)_jj``, in squared norm of f = z^T u.

        It is the squared distance of f from the span of the other atoms.
        """
        inverse = self.factor.solve(np.eye(len(self)))  # row j is L^-1 e_j
        theta = inverse @ u
        cost: Vector = theta**2 / np.einsum("ij,ij->i", inverse, inverse)
        return cost


@compiled
def _independent_rows(
    self_kernels: ReadVector, R: Matrix, T: Matrix, tolerance: float, noise: float
) -> NDArray[np.bool_]:
    """Right-looking Cholesky in place (upper), passing over rows that depend on those before."""
    accepted = np.zeros(len(R), np.bool_)
    for t in range(len(R)):
        if independent(R[t, t], self_kernels[t], T[t, t], tolerance, noise):
            accepted[t] = True
            eliminate(t, self_kernels[t], R, T)
    return accepted
