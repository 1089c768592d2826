"""A kernel expansion with a budget: f moves along the slope, row by row inside a block, and points go.

::

    f(x) = sum_i theta_i k(x_i, x)
    f <- (1 - eta*lambda) f - eta*g k(x_t, .)          and, with more than B points, one of them goes

The n points that f has and the m rows of a block are numbered together: point i < n, or row i - n.
``members`` are the numbers of those that f has, in order of arrival, ``theta`` their coefficients. K holds a
row per row of the block and a column per number. Points that go do so in O(B), or O(B^2) and O(B^3) where f
at points of the past is asked for: S is their kernel then.

A point may go over into explicit features z instead of being lost: f has ``w^T z(x)`` besides. ``Q`` then
holds ``z^T z'`` beside each k of K, and in a last column ``w^T z`` of each row, w from before the block;
``gone`` the coefficients of those that went, and at its end what is left of that w.

A window is the other kind: ridge regression over the last N rows, exactly. The oldest goes when a row comes,
O(N^2) each::

    L L^T = alpha*I + sqrt(W) K sqrt(W)         over the N points of the window, oldest first
    L = (l11     )     without its first point:  L' L'^T = L22 L22^T + l21 l21^T
        (l21  L22)

which is an update by rotations, not a downdate: nothing cancels, and a number leaves with its point, so that
rounding does not grow with the length of the stream.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled, inner
from kons.core.entry import KERNEL_ACCURACY, predict
from kons.core.ledger import Entries, Ledger, PackedRules, Rules
from kons.core.leverage import leverage
from kons.core.quadratic_loops import factor_rows
from kons.core.replay import NO_MATRIX, Slopes, check_sound, weigh
from kons.losses.builtin import slope_of

__all__ = ["WHEN_FULL", "Expansion", "descend", "slide", "solve_lower", "solve_upper"]

#: Who goes, a case each in `settle`, by their words.
WHEN_FULL = {
    word: code
    for code, word in enumerate(("oldest", "shrink", "random", "unbiased", "smallest", "project", "features"))
}
OLDEST, SHRINK, RANDOM, UNBIASED, SMALLEST, PROJECT, FEATURES = WHEN_FULL.values()
# Of the Forgetron: what removals have cost may be this part of the mistakes.
ALLOWED = 15.0 / 32.0
NOTHING = np.empty(0)
# Added to the diagonal that a projection solves with, relative to its mean: where points repeat, pivots
# are what the kernel's values err by.
RIDGE = KERNEL_ACCURACY


class Expansion(NamedTuple):
    """What loops read and write of f and a block of rows: see the module."""

    members: Integers
    theta: Vector
    K: Matrix
    S: Matrix = NO_MATRIX
    totals: Vector = NOTHING
    """What removals have cost, and how many rows moved f."""
    Q: Matrix = NO_MATRIX
    gone: Vector = NOTHING


@inner
def kernel_of(i: int, j: int, f: Expansion) -> float:
    """k between two numbered points, at least one of the block, or both in S."""
    n = f.K.shape[1] - f.K.shape[0]
    if i >= n:
        return float(f.K[i - n, j])
    return float(f.K[j - n, i] if j >= n else f.S[i, j])


@inner
def remove(at: int, f: Expansion, count: int) -> int:
    """Those behind it move up; returns how many there are."""
    for p in range(at, count - 1):
        f.members[p], f.theta[p] = f.members[p + 1], f.theta[p + 1]
    return count - 1


@inner
def shrinking(f: Expansion, count: int) -> float:
    """By how much f shrinks before its oldest point goes: the self-tuned Forgetron's phi.

    The largest phi <= 1 with ``Q + Psi(phi*sigma, phi*mu) <= 15/32 M``, ``Psi(s, m) = s^2 + 2s - 2s*m``:
    sigma is the size of its coefficient, mu f on its side there, Q what removals have cost, M the mistakes.
    """
    sigma, value = abs(f.theta[0]), 0.0
    for p in range(count):
        value += f.theta[p] * kernel_of(f.members[0], f.members[p], f)
    mu = value if f.theta[0] > 0.0 else -value
    a, b, c = sigma * sigma - 2.0 * sigma * mu, 2.0 * sigma, f.totals[0] - ALLOWED * f.totals[1]
    phi = 1.0
    if a + b + c > 0.0:  # it is c < 0 at phi = 0: the one root between
        phi = -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))
    f.totals[0] += phi * (a * phi + b)
    return phi


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


@inner
def project(at: int, f: Expansion, count: int) -> None:
    """Give the others the coefficients of the projection of a point that goes: Cholesky, O(B^3)."""
    others = count - 1
    S, prior, b = np.empty((others, others)), np.zeros((others, others)), np.empty(others)
    L, ridge = np.empty((others, others)), 0.0
    for p in range(count):
        ridge += RIDGE / count * kernel_of(f.members[p], f.members[p], f)
    for i in range(others):
        of_i = f.members[i + (i >= at)]
        b[i], prior[i, i] = kernel_of(of_i, f.members[at], f), ridge
        for j in range(i + 1):
            S[i, j] = kernel_of(of_i, f.members[j + (j >= at)], f)
    factor_rows(prior, S, L)
    solve_lower(L, others, b)
    solve_upper(L, others, b)
    for i in range(others):
        f.theta[i + (i >= at)] += f.theta[at] * b[i]


@compiled
def meet(t: int, rows: Entries, rules: PackedRules, f: Expansion, count: int) -> float:
    """Predict row t; f(x_t)."""
    value = 0.0
    for i in range(len(f.gone)):
        value += f.gone[i] * f.Q[t, i]
    for p in range(count):
        value += f.theta[p] * f.K[t, f.members[p]]
    predict(t, rows, rules, value, rows[t].self_kernel)
    return value


@compiled
def settle(t: int, rows: Entries, rules: PackedRules, f: Expansion, count: int) -> int:
    """Learn row t, weighed; who is too many goes. Returns how many points there are; -1 - t if it failed."""
    row, budget, when_full, theta = rows[t], rules[0].budget, rules[0].when_full, f.theta
    if not np.isfinite(row.prediction + row.overshoot) or not np.isfinite(row.slope):
        return -1 - t
    if rules[0].decay > 0.0:
        left = max(1.0 - row.step_size * rules[0].decay, 0.0)
        for p in range(count):
            theta[p] *= left
        for p in range(len(f.gone)):
            f.gone[p] *= left
    row.step = row.step_size * row.slope
    row.kept = row.step != 0.0
    row.coefficient = row.step
    if not row.kept:
        return count
    full = 0 < budget <= count
    if full and when_full in (RANDOM, UNBIASED):
        if when_full == UNBIASED and count > 1:
            for p in range(count):
                larger = theta[p] * count / (count - 1)
                theta[p] = min(max(larger, -rules[0].largest), rules[0].largest)
        count = remove(int(row.uniform * count), f, count)
        full = False
    f.members[count], theta[count] = f.K.shape[1] - f.K.shape[0] + t, -row.step
    count += 1
    f.totals[1] += 1.0
    if not full:
        return count
    at = 0
    if when_full == SHRINK:
        phi = shrinking(f, count)
        for p in range(count):
            theta[p] *= phi
    elif when_full != OLDEST:
        least = np.inf
        for p in range(count):
            norm2 = theta[p] * theta[p] * kernel_of(f.members[p], f.members[p], f)
            if norm2 < least:
                at, least = p, norm2
        if when_full == PROJECT:
            project(at, f, count)
        elif when_full == FEATURES:
            f.gone[f.members[at]] += theta[at]
    return remove(at, f, count)


@compiled
def descend_compiled(code: int, rows: Entries, rules: PackedRules, f: Expansion, count: int) -> int:
    """A block with a built-in loss. Returns as :func:`settle`."""
    for t in range(len(rows)):
        value = meet(t, rows, rules, f, count)
        weigh(t, rows, rules, slope_of(code, value, rows[t].target), 0.0)
        count = settle(t, rows, rules, f, count)
        if count < 0:
            break
    return count


def descend(derivatives: Slopes, rows: Ledger, rules: Rules, f: Expansion, count: int) -> int:
    """Predict and learn the rows of a block in order, filling the ledger; how many points there are then."""
    packed = rules.packed
    if isinstance(derivatives, int):
        return check_sound(descend_compiled(derivatives, rows, packed, f, count), rows)
    for t in range(len(rows)):
        value = meet(t, rows, packed, f, count)
        weigh(t, rows, packed, *derivatives(value, float(rows[t]["target"])))
        count = check_sound(settle(t, rows, packed, f, count), rows)
    return count


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
def slide(rows: Entries, rules: PackedRules, f: Expansion, roots: Vector, L: Matrix, count: int) -> int:
    """Predict and learn the rows of a block by ridge regression over the last N before each, N the budget.

    theta of ``f`` are the targets of its points here, ``roots`` those of their weights. Returns as
    :func:`settle`.
    """
    n, alpha = f.K.shape[1] - f.K.shape[0], rules[0].regularization
    v, r = np.empty(len(L)), np.empty(len(L))
    for t in range(len(rows)):
        row = rows[t]
        for p in range(count):
            v[p], r[p] = roots[p] * f.K[t, f.members[p]], roots[p] * f.theta[p]
        solve_lower(L, count, v)
        solve_lower(L, count, r)
        value, left = 0.0, row.self_kernel
        for p in range(count):
            value += v[p] * r[p]
            left -= v[p] * v[p]
        if not (np.isfinite(value) and left >= -KERNEL_ACCURACY * row.self_kernel):
            return -1 - t
        predict(t, rows, rules, value, max(left, 0.0) / alpha)
        row.slope, row.weight = 2.0 * row.scale * (value - row.target), 2.0 * row.scale
        row.feature_weight = row.weight
        row.leverage = leverage(row.weight * row.inverse_form)
        row.kept = row.weight > 0.0
        if not row.kept:
            continue
        roots[count] = math.sqrt(row.weight)
        for p in range(count):
            L[count, p] = roots[count] * v[p]
        L[count, count] = math.sqrt(alpha + row.weight * max(left, 0.0))
        f.members[count], f.theta[count] = n + t, row.target
        count += 1
        if count > rules[0].budget:
            drop_first(L, count, v)
            count = remove(0, f, count)
            for p in range(count):
                roots[p] = roots[p + 1]
    return count
