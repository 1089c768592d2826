"""A kernel expansion with a budget: f moves along the slope, row by row inside a block, and points go.

::

    f(x) = sum_i theta_i k(x_i, x)
    f <- (1 - eta*lambda) f - eta*g k(x_t, .)          and, with more than B points, one of them goes

The n points that f has and the m rows of a block are numbered together: point i < n, or row i - n.
``members`` are the numbers of those that f has, in order of arrival, ``theta`` their coefficients. K holds a
row per row of the block and a column per number. Points that go do so in O(B), or O(B^2) and O(B^3) where f
at points of the past is asked for: S is their kernel then.

A point may go over into explicit features z instead of being lost: f has ``w^T z(x)`` besides. ``Q`` then
holds ``z^T z'`` beside each k of K, and in a last column ``w^T z`` of each row; ``gone`` the coefficients of
those that went, and at its end what is left of the w before.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled, inner
from kons.core.entry import KERNEL_ACCURACY
from kons.core.ledger import Entries, Ledger, PackedRules, Rules
from kons.core.replay import NO_MATRIX, Derivatives, check_sound, weigh
from kons.losses.builtin import slope_of

__all__ = ["FEATURES", "PROJECT", "SHRINK", "SMALLEST", "WHEN_FULL", "descend"]

# Who goes: a case each in `settle`.
OLDEST, SHRINK, RANDOM, UNBIASED, SMALLEST, PROJECT, FEATURES = range(7)
#: By their words.
WHEN_FULL = {
    "oldest": OLDEST,
    "shrink": SHRINK,
    "random": RANDOM,
    "unbiased": UNBIASED,
    "smallest": SMALLEST,
    "project": PROJECT,
    "features": FEATURES,
}
# Of the Forgetron: what removals have cost may be this part of the mistakes.
ALLOWED = 15.0 / 32.0
NOTHING = np.empty(0)
# Added to the diagonal that a projection solves with, relative to its mean: where points repeat, pivots
# are what the kernel's values err by.
RIDGE = KERNEL_ACCURACY


@inner
def kernel_of(i: int, j: int, K: Matrix, S: Matrix) -> float:
    """k between two numbered points, at least one of the block, or both in S."""
    n = K.shape[1] - K.shape[0]
    if i >= n:
        return float(K[i - n, j])
    return float(K[j - n, i] if j >= n else S[i, j])


@inner
def remove(at: int, members: Integers, theta: Vector, count: int) -> int:
    """Those behind it move up; returns how many there are."""
    for p in range(at, count - 1):
        members[p], theta[p] = members[p + 1], theta[p + 1]
    return count - 1


@inner
def shrinking(members: Integers, theta: Vector, count: int, K: Matrix, S: Matrix, totals: Vector) -> float:
    """By how much f shrinks before its oldest point goes: the self-tuned Forgetron's phi.

    The largest phi <= 1 with ``Q + Psi(phi*sigma, phi*mu) <= 15/32 M``, ``Psi(s, m) = s^2 + 2s - 2s*m``:
    sigma is the size of its coefficient, mu f on its side there, Q what removals have cost, M the mistakes.
    """
    sigma, value = abs(theta[0]), 0.0
    for p in range(count):
        value += theta[p] * kernel_of(members[0], members[p], K, S)
    mu = value if theta[0] > 0.0 else -value
    a, b, c = sigma * sigma - 2.0 * sigma * mu, 2.0 * sigma, totals[0] - ALLOWED * totals[1]
    phi = 1.0
    if a + b + c > 0.0:  # it is c < 0 at phi = 0: the one root between
        phi = -2.0 * c / (b + math.sqrt(b * b - 4.0 * a * c))
    totals[0] += phi * (a * phi + b)
    return phi


@inner
def project(at: int, members: Integers, theta: Vector, count: int, K: Matrix, S: Matrix) -> None:
    """Give the others the coefficients of the projection of a point that goes: Cholesky, O(B^3)."""
    L, b = np.empty((count - 1, count - 1)), np.empty(count - 1)
    ridge = 0.0
    for p in range(count):
        ridge += RIDGE / count * kernel_of(members[p], members[p], K, S)
    for i in range(count - 1):
        of_i = members[i + (i >= at)]
        b[i] = kernel_of(of_i, members[at], K, S)
        for j in range(i + 1):
            total = kernel_of(of_i, members[j + (j >= at)], K, S)
            for k in range(j):
                total -= L[i, k] * L[j, k]
            # A pivot is at least 0, but for rounding.
            L[i, j] = math.sqrt(max(total, 0.0) + ridge) if i == j else total / L[j, j]
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(count - 2, -1, -1):
        for k in range(i + 1, count - 1):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
        theta[i + (i >= at)] += theta[at] * b[i]


@compiled
def meet(
    t: int,
    rows: Entries,
    rules: PackedRules,
    members: Integers,
    theta: Vector,
    count: int,
    K: Matrix,
    Q: Matrix,
) -> float:
    """Predict row t; f(x_t)."""
    row, f = rows[t], 0.0
    if Q.shape[0]:
        f = Q[t, -1]
    for p in range(count):
        f += theta[p] * K[t, members[p]]
    row.inverse_form, row.divisor = row.self_kernel, 1.0
    row.prediction = min(max(f, -rules[0].bound), rules[0].bound)
    row.overshoot = f - row.prediction
    return f


@compiled
def settle(
    t: int,
    rows: Entries,
    rules: PackedRules,
    members: Integers,
    theta: Vector,
    count: int,
    K: Matrix,
    S: Matrix,
    totals: Vector,
    Q: Matrix,
    gone: Vector,
) -> int:
    """Learn row t, weighed; who is too many goes. Returns how many points there are.

    ``totals``: what removals have cost, and how many rows moved f.
    """
    row, budget, when_full = rows[t], rules[0].budget, rules[0].when_full
    if rules[0].decay > 0.0:
        left = max(1.0 - row.step_size * rules[0].decay, 0.0)
        for p in range(count):
            theta[p] *= left
        for p in range(len(gone)):
            gone[p] *= left
        for j in range(t + 1, Q.shape[0]):
            Q[j, -1] *= left
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
        count = remove(int(row.uniform * count), members, theta, count)
        full = False
    members[count], theta[count] = K.shape[1] - K.shape[0] + t, -row.step
    count += 1
    totals[1] += 1.0
    if not full:
        return count
    at = 0
    if when_full == SHRINK:
        phi = shrinking(members, theta, count, K, S, totals)
        for p in range(count):
            theta[p] *= phi
    elif when_full != OLDEST:
        least = np.inf
        for p in range(count):
            norm2 = theta[p] * theta[p] * kernel_of(members[p], members[p], K, S)
            if norm2 < least:
                at, least = p, norm2
        if when_full == PROJECT:
            project(at, members, theta, count, K, S)
        elif when_full == FEATURES:
            gone[members[at]] += theta[at]
            for j in range(t + 1, len(rows)):
                Q[j, -1] += theta[at] * Q[j, members[at]]
    return remove(at, members, theta, count)


@compiled
def descend_compiled(
    code: int,
    rows: Entries,
    rules: PackedRules,
    members: Integers,
    theta: Vector,
    count: int,
    K: Matrix,
    S: Matrix,
    totals: Vector,
    Q: Matrix,
    gone: Vector,
) -> int:
    """A block with a built-in loss. Returns how many points there are, or -1 - t if row t failed."""
    for t in range(len(rows)):
        f = meet(t, rows, rules, members, theta, count, K, Q)
        weigh(t, rows, rules, slope_of(code, f, rows[t].target), 0.0)
        if not np.isfinite(f) or not np.isfinite(rows[t].slope):
            return -1 - t
        count = settle(t, rows, rules, members, theta, count, K, S, totals, Q, gone)
    return count


def descend(
    derivatives: int | Derivatives,
    rows: Ledger,
    rules: Rules,
    members: Integers,
    theta: Vector,
    count: int,
    K: Matrix,
    S: Matrix,
    totals: Vector,
    Q: Matrix = NO_MATRIX,
    gone: Vector = NOTHING,
) -> int:
    """Predict and learn the rows of a block in order, filling the ledger; how many points there are then."""
    packed = rules.packed
    if isinstance(derivatives, int):
        state = members, theta, count, K, S, totals, Q, gone
        return check_sound(descend_compiled(derivatives, rows, packed, *state), rows)
    for t in range(len(rows)):
        f = meet(t, rows, packed, members, theta, count, K, Q)
        weigh(t, rows, packed, *derivatives(f, float(rows[t]["target"])))
        if not np.isfinite(f) or not np.isfinite(rows[t]["slope"]):
            return check_sound(-1 - t, rows)
        count = settle(t, rows, packed, members, theta, count, K, S, totals, Q, gone)
    return count
