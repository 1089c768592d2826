"""Distances between the rows of two matrices: all the arithmetic of the stationary kernels.

Up to ``LARGEST_DIFFERENCED`` features they are sums over the differences x - z: two equal rows are
at distance exactly 0, a common offset of the data costs nothing, and the bits of a distance depend
on its two rows alone, not on how many rows were asked for together.

With more features, squared distances come from one matrix product of centred rows,

    |x - z|² = |x - c|² + |z - c|² - 2 (x - c)·(z - c),

which errs by about eps (|x - c|² + |z - c|²), and so moves an exponent by that over bandwidth². For
near neighbours far from c, where |x - z|² is under 1/256 of the two norms, this would not do: these
pairs are summed from their differences after all. So relative errors stay near 256 eps, some 1e-13,
and equal rows stay at 0. Data in tight clusters far apart then cost what the loops cost, or more.
"""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, ReadMatrix, ReadVector
from kons.compilation import compiled, inner

__all__ = ["absolute_distances", "squared_distances"]

# Measured for 4096 x 128 pairs, one thread, d = 64: 0.08 ns a feature and pair in the loops against
# 0.065 ns in the matrix product, which also takes more threads. At d = 32 they are level.
LARGEST_DIFFERENCED = 64

# Below this many rows on either side, transposing the other side costs more than it saves.
FEWEST_TRANSPOSED = 8

# Columns held transposed at a time: 8 features of them fit the first-level cache.
TILE = 256

CANCELLED = 1.0 / 256.0


def squared_distances(X: Matrix, Z: Matrix, scale: float = 1.0, out: Matrix | None = None) -> Matrix:
    """The values scale·|X[i] - Z[j]|²; what overflows is infinite, without a warning.

    In the first columns of ``out``, if it is given: C-contiguous, with a row for each of X.
    """
    X, Z = np.ascontiguousarray(X), np.ascontiguousarray(Z)
    out = np.empty((X.shape[0], Z.shape[0])) if out is None else out
    if X.shape[1] > LARGEST_DIFFERENCED and min(X.shape[0], Z.shape[0]) >= FEWEST_TRANSPOSED:
        _expand(X, Z, scale, out)
    else:
        _sum_differences(X, Z, scale, False, out)
    return out[:, : Z.shape[0]]


def absolute_distances(X: Matrix, Z: Matrix, scale: float = 1.0, out: Matrix | None = None) -> Matrix:
    """The values scale·|X[i] - Z[j]|₁, as :func:`squared_distances`."""
    X, Z = np.ascontiguousarray(X), np.ascontiguousarray(Z)
    out = np.empty((X.shape[0], Z.shape[0])) if out is None else out
    _sum_differences(X, Z, scale, True, out)
    return out[:, : Z.shape[0]]


def _sum_differences(X: Matrix, Z: Matrix, scale: float, absolute: bool, out: Matrix) -> None:
    loop = _by_pairs if min(X.shape[0], Z.shape[0]) < FEWEST_TRANSPOSED else _by_columns
    loop(X, Z, scale, absolute, out)


def _expand(X: Matrix, Z: Matrix, scale: float, out: Matrix) -> None:
    # Huge rows overflow to inf - inf here; _undo_cancellation sums those pairs anew.
    with np.errstate(over="ignore", invalid="ignore"):
        centre = (X if X.shape[0] < Z.shape[0] else Z).mean(axis=0)
        x, z = X - centre, Z - centre
        np.matmul(x, z.T, out=out[:, : Z.shape[0]])
        x_norms = np.einsum("ij,ij->i", x, x)
        z_norms = np.einsum("ij,ij->i", z, z)
    _undo_cancellation(X, Z, x_norms, z_norms, scale, out)


@inner
def _one(a: float, absolute: bool) -> float:
    return abs(a) if absolute else a * a


@inner
def _four(a: float, b: float, c: float, d: float, absolute: bool) -> float:
    if absolute:
        return (abs(a) + abs(b)) + (abs(c) + abs(d))
    return (a * a + b * b) + (c * c + d * d)


@compiled
def _by_columns(X: ReadMatrix, Z: ReadMatrix, scale: float, absolute: bool, out: Matrix) -> None:
    """One row of ``out`` at a time, over contiguous columns, which the compiler vectorizes."""
    n, d = X.shape
    m = Z.shape[0]
    tile = np.empty((d, min(m, TILE)))
    for start in range(0, m, TILE):
        width = min(TILE, m - start)
        for j in range(width):
            for k in range(d):
                tile[k, j] = Z[start + j, k]
        for i in range(n):
            row = out[i, start : start + width]
            for j in range(width):
                row[j] = 0.0
            k = 0
            while k + 4 <= d:
                x0, x1, x2, x3 = X[i, k], X[i, k + 1], X[i, k + 2], X[i, k + 3]
                z0, z1, z2, z3 = tile[k], tile[k + 1], tile[k + 2], tile[k + 3]
                for j in range(width):
                    row[j] += _four(x0 - z0[j], x1 - z1[j], x2 - z2[j], x3 - z3[j], absolute)
                k += 4
            while k < d:
                x0, z0 = X[i, k], tile[k]
                for j in range(width):
                    row[j] += _one(x0 - z0[j], absolute)
                k += 1
            for j in range(width):
                row[j] *= scale


@inner
def _pair(X: ReadMatrix, i: int, Z: ReadMatrix, j: int, absolute: bool) -> float:
    """The sum over the differences of row i of X and row j of Z."""
    total = 0.0
    d = X.shape[1]
    k = 0
    while k + 4 <= d:
        total += _four(
            X[i, k] - Z[j, k],
            X[i, k + 1] - Z[j, k + 1],
            X[i, k + 2] - Z[j, k + 2],
            X[i, k + 3] - Z[j, k + 3],
            absolute,
        )
        k += 4
    while k < d:
        total += _one(X[i, k] - Z[j, k], absolute)
        k += 1
    return total


@compiled
def _by_pairs(X: ReadMatrix, Z: ReadMatrix, scale: float, absolute: bool, out: Matrix) -> None:
    """The same sums in the same order, one pair at a time, for few rows on one side."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            out[i, j] = _pair(X, i, Z, j, absolute) * scale


@compiled
def _undo_cancellation(
    X: ReadMatrix, Z: ReadMatrix, x_norms: ReadVector, z_norms: ReadVector, scale: float, out: Matrix
) -> None:
    """From inner products to squared distances, in place; cancelled ones from their differences."""
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            norms = x_norms[i] + z_norms[j]
            squared = norms - 2.0 * out[i, j]
            if squared > CANCELLED * norms:
                out[i, j] = squared * scale
            else:  # or NaN
                out[i, j] = _pair(X, i, Z, j, False) * scale
