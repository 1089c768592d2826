"""Ridge regression on a few rows, around each point anew: the weights of their targets.

::

    K_ij = d(x, x_i) + d(x, x_j) - d(x_i, x_j)       of a distance d; positive semidefinite for sums of
                                                     absolute differences, and 0 between x and any x_i
    M    = S K S + alpha*I = L L^T                   S = diag(roots of the rows' weights)
    f(x) = a^T y,    a = S M^-1 S 1 / 1^T S M^-1 S 1

It is kernel ridge regression with a constant that is not regularized, in the limit of a wide Laplace kernel:
to the constant it makes no difference whether the kernel is ``-d`` or K, and with K the prediction at x is
the constant itself. So there is no bandwidth, and nothing to exponentiate. M is the scaled matrix of the
mathematics: its eigenvalues are at least alpha, a weight of 0 is harmless, and rows may be equal. Known as
ordinary kriging with a linear variogram.
"""

from __future__ import annotations

from kons.arrays import Matrix, Vector
from kons.compilation import inner_sums
from kons.core.quadratic_loops import factor_rows, solve_rows

__all__ = ["weigh_targets"]


@inner_sums
def weigh_targets(prior: Matrix, scaled: Matrix, L: Matrix, roots: Vector, weights: Vector) -> bool:
    """Fill in a, the weights of the rows' targets, which add up to 1; returns whether there are any.

    ``prior`` is alpha*I and ``scaled`` is S K S, of which the lower triangles count; L is room. O(m^3/6) for
    m rows.
    """
    m = len(roots)
    if not factor_rows(prior, scaled, L):
        return False
    size = solve_rows(L, roots, weights)
    if not size > 0.0:
        return False
    for i in range(m):
        weights[i] *= roots[i] / size
    return True
