"""Lower Cholesky factors of sums of squares, and what is done with them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from kons.arrays import Matrix

__all__ = ["factored", "inverted", "solved"]

# Added to the diagonal, relative to its mean: rounding of the sums must not make a matrix indefinite.
JITTER = 1e-10
# Up to this size LAPACK's own inverse of a triangle is as fast as ours.
SMALL = 64


def factored(A: Matrix, B: Matrix) -> Matrix:
    """The lower Cholesky factor of A + B, whose smallest eigenvalues may be rounding.

    Only the lower triangles are read; above its diagonal the result has anything.
    """
    part = JITTER
    for _ in range(8):
        total = np.add(A, B, order="F")
        diagonal = total.ravel(order="K")[:: len(total) + 1]
        diagonal += part * float(diagonal.sum()) / len(total)
        L, info = lapack.dpotrf(total, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return np.asarray(L)
        part *= 100.0
    raise np.linalg.LinAlgError("a matrix of sums of squares is not positive definite")


def inverted(L: Matrix) -> Matrix:
    """The inverse of a lower triangle, by halves: twice as fast as LAPACK's, which works by columns.

    ::

        (P    )-1   (      P^-1           )
        (Q   R)   = (-R^-1 Q P^-1    R^-1 )

    A product with it takes less than half of a solution's time, so that it pays for some hundred rows. Above
    its diagonal it has anything.

    >>> import numpy as np
    >>> inverted(np.array([[2.0, 0.0], [1.0, 4.0]])).tolist()
    [[0.5, 0.0], [-0.125, 0.25]]
    """
    n = len(L)
    if n <= SMALL:
        inverse: Matrix = lapack.dtrtri(L, lower=1)[0]
        return inverse
    half = n // 2
    whole = np.zeros((n, n), order="F")
    upper, lower = inverted(L[:half, :half]), inverted(L[half:, half:])
    whole[:half, :half], whole[half:, half:] = upper, lower
    product = blas.dtrmm(-1.0, upper, L[half:, :half], side=1, lower=1)
    whole[half:, :half] = blas.dtrmm(1.0, lower, product, lower=1, overwrite_b=1)
    return whole


def solved(L: Matrix, K: Matrix) -> Matrix:
    """Rows ``L^-1 k`` for the rows k of K."""
    rows: Matrix = blas.dtrsm(1.0, L, K.T, lower=1).T
    return rows
