"""The factor of a window: a row comes, the oldest goes, O(N^2) each.

::

    L L^T = alpha*I + sqrt(W) K sqrt(W)         over the N points of the window, oldest first
    L = (l11     )     without its first point:  L' L'^T = L22 L22^T + l21 l21^T
        (l21  L22)

which is an update by rotations, not a downdate: nothing cancels, and a number leaves with its point, so that
rounding does not grow with the length of the stream.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled, inner
from kons.core.entry import KERNEL_ACCURACY, predict
from kons.core.ledger import Entries, PackedRules
from kons.core.leverage import leverage

__all__ = ["slide", "solve_lower", "solve_upper"]


@inner
def drop_first(L: Matrix, count: int, x: Vector) -> None:
    """The factor without its first point, in place: one row and column less."""
    for i in range(count - 1):
        x[i] = L[i + 1, 0]
    for j in range(count - 1):
        r = math.hypot(L[j + 1, j + 1], x[j])
        c, s = L[j + 1, j + 1] / r, x[j] / r
        for i in range(j, count - 1):
            below = L[i + 1, j + 1]
            L[i, j], x[i] = c * below + s * x[i], c * x[i] - s * below


@compiled
def solve_lower(L: Matrix, count: int, b: Vector) -> None:
    """``b <- L^-1 b`` of the first ``count``."""
    for i in range(count):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * b[j]
        b[i] = total / L[i, i]


@compiled
def solve_upper(L: Matrix, count: int, b: Vector) -> None:
    """``b <- L^-T b`` of the first ``count``."""
    for i in range(count - 1, -1, -1):
        b[i] /= L[i, i]
        for j in range(i):
            b[j] -= L[i, j] * b[i]


@compiled
def slide(
    rows: Entries,
    rules: PackedRules,
    members: Integers,
    targets: Vector,
    roots: Vector,
    count: int,
    L: Matrix,
    K: Matrix,
) -> int:
    """Predict and learn the rows of a block by ridge regression over the last N before each.

    Points and rows are numbered as in :mod:`kons.core.budget`; ``targets`` and ``roots``, of the weights,
    are those of the members. N is the budget. Returns how many there are, or -1 - t if row t
    failed.
    """
    n, alpha = K.shape[1] - K.shape[0], rules[0].regularization
    v, r = np.empty(len(L)), np.empty(len(L))
    for t in range(len(rows)):
        row = rows[t]
        for p in range(count):
            v[p], r[p] = roots[p] * K[t, members[p]], roots[p] * targets[p]
        solve_lower(L, count, v)
        solve_lower(L, count, r)
        f, left = 0.0, row.self_kernel
        for p in range(count):
            f += v[p] * r[p]
            left -= v[p] * v[p]
        if not (np.isfinite(f) and left >= -KERNEL_ACCURACY * row.self_kernel):
            return -1 - t
        predict(t, rows, rules, f, max(left, 0.0) / alpha)
        row.slope, row.weight = 2.0 * row.scale * (f - row.target), 2.0 * row.scale
        row.feature_weight = row.weight
        row.leverage = leverage(row.weight * row.inverse_form)
        row.kept = row.weight > 0.0
        if not row.kept:
            continue
        if count == rules[0].budget:
            drop_first(L, count, v)
            count -= 1
            for p in range(count):
                members[p], targets[p], roots[p] = members[p + 1], targets[p + 1], roots[p + 1]
        root = math.sqrt(row.weight)
        pivot = alpha + row.weight * row.self_kernel
        for p in range(count):
            v[p] = root * roots[p] * K[t, members[p]]
        solve_lower(L, count, v)
        for p in range(count):
            L[count, p] = v[p]
            pivot -= v[p] * v[p]
        L[count, count] = math.sqrt(max(pivot, alpha))
        members[count], targets[count], roots[count] = n + t, row.target, root
        count += 1
    return count
