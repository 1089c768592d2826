"""Ridge regression on a few rows, around each point anew: the weights of their targets.

::

    K_ij = d(x, x_i) + d(x, x_j) - d(x_i, x_j)       of a distance d; positive semidefinite for sums of
                                                     absolute differences, and 0 between x and any x_i
    M    = S K S + alpha*I = U^T U                   S = diag(roots of the rows' weights)
    f(x) = a^T y,    a = S M^-1 S 1 / 1^T S M^-1 S 1

It is kernel ridge regression with a constant that is not regularized, in the limit of a wide Laplace kernel:
to the constant it makes no difference whether the kernel is ``-d`` or K, and with K the prediction at x is
the constant itself. So there is no bandwidth, and nothing to exponentiate. M is the scaled matrix of the
mathematics: its eigenvalues are at least alpha, a weight of 0 is harmless, and rows may be equal. Known as
ordinary kriging with a linear variogram.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import inner, inner_sums
from kons.core.lanes import LANES, Lanes, add, multiply, subtract_distances, subtract_products
from kons.core.quadratic_loops import EPSILON

__all__ = ["Addresses", "solve_again", "weigh_targets", "weigh_targets_in_lanes"]

#: See :func:`weigh_targets_in_lanes`.
Addresses = tuple[int, int, int]


@inner_sums
def weigh_targets(M: Matrix, roots: Vector, weights: Vector) -> bool:
    """Fill in a, the weights of the rows' targets, which add up to 1; returns whether there are any.

    ``M`` is M, of which the upper triangle counts, with a column more; it becomes U. O(m^3/6) for m rows:
    row after row of U, eight rows above it at a time, so that each is read and written seldom.
    """
    m = len(roots)
    for i in range(m):
        M[i, m] = roots[i]
        diagonal, k = M[i, i], 0
        while k + 8 <= i:
            a, b, c, d = M[k, i], M[k + 1, i], M[k + 2, i], M[k + 3, i]
            e, f, g, h = M[k + 4, i], M[k + 5, i], M[k + 6, i], M[k + 7, i]
            for j in range(i, m + 1):
                M[i, j] -= (
                    ((a * M[k, j] + b * M[k + 1, j]) + (c * M[k + 2, j] + d * M[k + 3, j]))
                    + ((e * M[k + 4, j] + f * M[k + 5, j]) + (g * M[k + 6, j] + h * M[k + 7, j]))
                )  # fmt: skip
            k += 8
        while k < i:
            a = M[k, i]
            for j in range(i, m + 1):
                M[i, j] -= a * M[k, j]
            k += 1
        # A squared pivot below its rounding is rounding, and may be negative.
        squared = max(M[i, i], (m + 1.0) * EPSILON * diagonal)
        if not 0.0 < squared < math.inf:
            return False
        pivot = 1.0 / math.sqrt(squared)
        for j in range(i, m + 1):
            M[i, j] *= pivot
        M[i, i] = pivot
    size = 0.0
    for i in range(m):
        weights[i] = M[i, m]  # the last column is U^-T S 1 by now
        size += M[i, m] * M[i, m]
    if not size > 0.0:
        return False
    for i in range(m - 1, -1, -1):
        total = weights[i]
        for j in range(i + 1, m):
            total -= M[i, j] * weights[j]
        weights[i] = total * M[i, i]
    for i in range(m):
        weights[i] *= roots[i] / size
    return True


@inner_sums
def solve_again(M: Matrix, x: Vector) -> None:
    """``x <- M^-1 x`` by the U that :func:`weigh_targets` has left, with inverse pivots; O(m^2)."""
    m = len(x)
    for i in range(m):
        x[i] *= M[i, i]
        for j in range(i + 1, m):
            x[j] -= M[i, j] * x[i]
    for i in range(m - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, m):
            total -= M[i, j] * x[j]
        x[i] = total * M[i, i]


@inner
def weigh_targets_in_lanes(
    own: Matrix, numbers: Lanes, columns: int, regularization: float, M: Lanes, addresses: Addresses
) -> None:
    """Leave a behind the columns of M, as :func:`weigh_targets` finds it, for eight points at once.

    ``own`` are the rows' weights; ``numbers[0]`` their distances to the point, behind which is that of the
    next row; the other two are room. ``addresses`` say where M, the rows' coordinates, a matrix a column,
    and ``numbers`` begin. NaN where there are no weights.
    """
    rows, points, distances = addresses
    m, step = len(M), 8 * LANES
    across = (m + 1) * step
    roots, pivot = distances + across, distances + 2 * across
    for i in range(m):
        for lane in range(LANES):
            near = max(1.0 - numbers[0, i, lane] / numbers[0, m, lane], 0.0)
            M[i, m, lane] = numbers[1, i, lane] = np.sqrt(own[i, lane] * near)
    for i in range(m):
        for j in range(i, m):
            to = rows + i * across + j * step
            add(to, distances + i * step, distances + j * step)
            subtract_distances(to, points + i * step, points + j * step, across, across, columns)
            multiply(to, to, roots + i * step)
            multiply(to, to, roots + j * step)
        for lane in range(LANES):
            M[i, i, lane] += regularization
    for i in range(m):
        for lane in range(LANES):
            numbers[2, 0, lane] = (m + 1.0) * EPSILON * M[i, i, lane]
        for j in range(i, m + 1):
            subtract_products(
                rows + i * across + j * step, rows + i * step, rows + j * step, across, across, i
            )
        for lane in range(LANES):
            # A squared pivot below its rounding is rounding, and may be negative.
            numbers[2, 0, lane] = 1.0 / np.sqrt(max(M[i, i, lane], numbers[2, 0, lane]))
        for j in range(i + 1, m + 1):
            to = rows + i * across + j * step
            multiply(to, to, pivot)
        for lane in range(LANES):
            M[i, i, lane] = numbers[2, 0, lane]
    for lane in range(LANES):
        numbers[2, 0, lane] = 0.0
        for i in range(m):
            numbers[2, 0, lane] += M[i, m, lane] * M[i, m, lane]
    for i in range(m - 1, -1, -1):
        to = rows + i * across + m * step
        # Row i of U beside the last column, from i + 1 on.
        subtract_products(to, rows + i * across + (i + 1) * step, to + across, step, across, m - 1 - i)
        multiply(to, to, rows + i * across + i * step)
    for i in range(m):
        for lane in range(LANES):
            M[i, m, lane] *= numbers[1, i, lane] / numbers[2, 0, lane]
