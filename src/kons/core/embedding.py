"""Coordinates in the span of a dictionary: ``z(x) = L^-1 k_D(x)`` with ``L L^T = K_D``.

They are orthonormal coordinates of the projection of phi(x) on the span, so ``z^T z'`` is the Nystrom
approximation of the kernel, and ``rho(x) = k(x,x) - |z|^2`` the squared distance of phi(x) from the
span. Because L is triangular, a new atom appends one coordinate and changes none of the old ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, compiled_sums
from kons.core.factor import PanelFactor
from kons.core.function import cross_gram
from kons.core.storage import point_store
from kons.kernels import Kernel
from kons.stored import Stored

__all__ = ["DEPENDENT", "Embedding", "gaussian_score"]

# An atom whose residual is below this part of k(x,x) lies in the span as far as 16 digits can tell. A pivot
# of p leaves errors of eps/p in the residuals behind it, which must stay below p, or noise would become
# atoms: p must exceed sqrt(eps), 1.5e-8, with a margin.
DEPENDENT = 1e-7


class Embedding:
    """The map z, over atoms that are linearly independent to rounding.

    Costs B^2 flops a point, and B^2/2 numbers of memory.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.atoms = point_store(kernel.accepts)
        self.factor = PanelFactor()

    def __len__(self) -> int:
        return len(self.atoms)

    def coordinates(self, X: Any) -> Matrix:
        """Z of each point, as the rows of an (m, B) array."""
        return self.factor.solve(cross_gram(self.kernel, X, self.atoms))

    def coordinates_of_one(self, x: Any) -> Vector:
        """Z of a single point, given as a block of one; in plain loops, without BLAS."""
        return self.factor.solve_one(cross_gram(self.kernel, x, self.atoms)[0])

    def dual(self, u: Vector) -> Vector:
        """Theta with ``z(x)^T u = k_D(x)^T theta``."""
        return self.factor.solve_transposed(u)

    def residual(self, X: Any) -> Vector:
        """Rho of each point: 0 in the span, k(x,x) orthogonal to it."""
        Z = self.coordinates(X)
        rho: Vector = self.kernel.evaluate_diagonal(X) - np.einsum("ij,ij->i", Z, Z)
        return np.maximum(rho, 0.0)

    def extend(self, candidates: Any) -> NDArray[np.intp]:
        """Add those of the candidates that are independent of the atoms before; returns which."""
        diagonal = self.kernel.evaluate_diagonal(candidates)
        Z = self.coordinates(candidates)
        R = self.kernel.evaluate(candidates, candidates)
        np.fill_diagonal(R, diagonal)
        R -= Z @ Z.T
        accepted = np.flatnonzero(_independent_rows(R, DEPENDENT * diagonal))
        self.append(candidates, accepted, Z[accepted], R[np.ix_(accepted, accepted)])
        return accepted

    def append(self, block: Any, rows: NDArray[np.intp], Z: Matrix, new: Matrix) -> None:
        """Make points of a block atoms: Z their old coordinates, ``new[i, j]``, i <= j, coordinate i of j."""
        if len(rows):
            self.factor.append(Z, np.tril(new.T))
            self.atoms.append_rows(block, rows)

    def without(self, atom: int) -> tuple[Embedding, Matrix]:
        """The embedding of all atoms but one, and Q that takes old coordinates to its: z' = Q z.

        Q has orthonormal rows: it projects on the smaller span. Costs O(B^3).
        """
        # Row i of L holds the coordinates of atom i: L = K_D L^-T.
        L = self.factor.solve(self.kernel.evaluate(self.atoms.view, self.atoms.view))
        others = np.delete(np.arange(len(self)), atom)
        smaller = Embedding(self.kernel)
        view = self.atoms.view
        points = view[others] if isinstance(view, np.ndarray) else [view[i] for i in others]
        smaller.extend(points)
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

    def mark(self) -> int:
        """Where the dictionary stands, for :meth:`restore`."""
        return len(self)

    def restore(self, mark: int) -> None:
        """Go back to an earlier mark, bit for bit."""
        self.atoms.truncate(mark)
        self.factor.truncate(mark)

    def state(self) -> dict[str, Any]:
        """The atoms and the factor. A copy."""
        return {"atoms": self.atoms.copy(), "factor": self.factor.state()}

    def load_state(self, stored: Stored, width: int | None) -> None:
        """Take a saved dictionary."""
        self.atoms.load_state(stored, "atoms", width)
        self.factor.load_state(stored.inner("factor"), len(self.atoms))
        stored.finish()


@compiled_sums
def gaussian_score(rate: float, x: Vector, atoms: Matrix, inverse: Matrix, u: Vector, z: Vector) -> float:
    """``z(x)^T u`` and z, for a Gaussian kernel and a factor of one panel. NaN if x is not finite."""
    n, d = atoms.shape
    for j in range(d):
        if not np.isfinite(x[j]):
            return np.nan
    k = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(d):
            difference = x[j] - atoms[i, j]
            total += difference * difference
        k[i] = np.exp(-rate * total)
    score = 0.0
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += inverse[i, j] * k[j]
        z[i] = total
        score += total * u[i]
    return score


@compiled
def _independent_rows(R: Matrix, threshold: Vector) -> NDArray[np.bool_]:
    """Right-looking Cholesky in place (upper), passing over rows whose pivot is below its threshold."""
    m = R.shape[0]
    accepted = np.zeros(m, np.bool_)
    for t in range(m):
        if not R[t, t] > threshold[t]:
            continue
        accepted[t] = True
        pivot = np.sqrt(R[t, t])
        for j in range(t, m):
            R[t, j] /= pivot
        for i in range(t + 1, m):
            factor = R[t, i]
            for j in range(i, m):
                R[i, j] -= factor * R[t, j]
    return accepted
