"""How large the residual of a row will be: a small second-order model of log |y - p|.

::

    s(x) = m exp(0.9 w^T phi(x))             m the mean of |r|, r = y - p
    phi  = hats of the prediction,           five, over its distance from the targets' mean in deviations
           the recent |r|, log(1 + q)/2,     q the novelty of the row
           logs of sizes that grow with doubt, such as how far experts are apart
    loss   log s + |r|/s:    g = (1 - |r|/s) phi,    A <- A + phi phi^T,    w <- w - A^-1 g,
           s without the 0.9

w is known with an error, which would make s vary more than residuals do: what is said of a row is shrunk
towards what is usual, what is learned is not.

It is the update of the mathematics with the loss of a Laplace scale: its expected Hessian is phi phi^T.
Features but the hats are in running deviations from their running mean, within 4. The weight of the novelty
is never negative, and where log(1 + q) exceeds all that was learned, s goes to the largest there was, and at
least to the mean distance of the targets from theirs: far from all data the model knows no more than that.

A row costs O(d^2), d = 7 + sizes, some 0.5 microseconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, inlined, inner, matrix_at
from kons.core.conformal import take_score
from kons.core.quadratic_loops import apply_rows, factor_rows, inverse_rows

__all__ = [
    "FIXED",
    "LARGEST",
    "NOVELTY_HIGH",
    "OUTSIDE",
    "SHARED",
    "UNKNOWN",
    "follow",
    "is_sound",
    "memory_for",
    "room_of",
    "scales_at",
]

#: Coordinates that all have: the hats, the recent residuals, and the novelty.
HATS = 5
FIXED = HATS + 2
#: Places in the memory: rows learned; mean and mean squared deviation of targets; mean of |r|, and of the
#: last 30 or so; the largest log s - log m and log(1 + q) of late.
ROWS, MEAN, VARIANCE, SIZE, RECENT, TOP, FARTHEST, SHARED = range(8)
#: Features beyond so many deviations count as that.
CLIPPED = 4.0
# The prior is worth so many rows: with 30, generated streams had intervals that were wider by 0.1 to 0.5 %.
PRIOR = 100.0
# What is said of a row in parts of what was learned. At equal coverage intervals are narrowest at 0.7 and
# 0.8, where those of quiet rows are too wide; their score (Winkler) is as good at 0.9 as at 1.
SHRUNK = 0.9
# A residual beyond so many times its scale counts as that: one row is no evidence.
WILD = 3.0
# A is factored anew at so many rows, and weighed by the forgetting then.
PERIOD = 16
# Of the first rows all are new.
EARLY = 64
# A row is told to be new from so many rows on, and where log(1 + q) is so many times the largest of late, or
# of what is no novelty worth to be told.
NOVEL_FROM, NOVEL, NO_NOVELTY = 512.0, 2.5, 0.1
#: What there is to tell of a row, a place each: its log(1 + q) over the largest of late, or 0; how many of
#: its targets lay outside of intervals of 90 %.
NOVELTY_HIGH, OUTSIDE = range(2)
# The scale of a residual, before there was any.
UNKNOWN = 1e-290
# Deviations stay finite numbers when squared.
LARGEST = 1e150
# The first and the last hat: predictions are skewed upwards more often than downwards.
LOW, STEP = -1.5, 1.0


def memory_for(sizes: int) -> Vector:
    """Of a model that has learned nothing; rows have so many sizes besides p and q."""
    d = FIXED + sizes
    memory = np.zeros(SHARED + 2 * (2 + sizes) + sizes + d + 2 * d * d + room_of(sizes))
    end = len(memory) - room_of(sizes)
    memory[end - d * d : end] = math.sqrt(PRIOR) * np.eye(d).ravel()
    return memory


#: What a model is made of: the memory, means and variances of features, means of sizes, w, S, L, and room
#: for the features of a row, raw and in deviations, and for A^-1 phi; for the prior, A^-1, whether that is
#: of this L, and log s of the row as it was learned over what is said of it.
Parts = tuple[
    Vector, Vector, Vector, Vector, Vector, Matrix, Matrix, Vector, Vector, Vector, Matrix, Matrix, Vector
]


@inner
def _parts(memory: Vector, sizes: int) -> Any:
    """Where everything is in the memory, found once a call."""
    n, d = 2 + sizes, FIXED + sizes
    at = SHARED
    means, variances = memory[at : at + n], memory[at + n : at + 2 * n]
    at += 2 * n
    typical, w = memory[at : at + sizes], memory[at + sizes : at + sizes + d]
    at += sizes + d
    S = memory[at : at + d * d].reshape(d, d)
    L = memory[at + d * d : at + 2 * d * d].reshape(d, d)
    at += 2 * d * d
    raw, phi, h = memory[at : at + d], memory[at + d : at + 2 * d], memory[at + 2 * d : at + 3 * d]
    at += 3 * d
    prior = memory[at : at + d * d].reshape(d, d)
    inverse = memory[at + d * d : at + 2 * d * d].reshape(d, d)
    known = memory[at + 2 * d * d :]
    return memory, means, variances, typical, w, S, L, raw, phi, h, prior, inverse, known


def room_of(sizes: int) -> int:
    """How much of a memory, at its end, is room for a row."""
    d = FIXED + sizes
    return 3 * d + 2 * d * d + 2


def is_sound(memory: Vector, sizes: int) -> bool:
    """Whether a memory, without its room, may be that of rows: counts, variances and the factor's pivots."""
    n, d = 2 + sizes, FIXED + sizes
    pivots = memory[len(memory) - d * d :].reshape(d, d).diagonal()
    sums = memory[[ROWS, VARIANCE, SIZE, RECENT, FARTHEST, *range(SHARED + n, SHARED + 2 * n + sizes)]]
    return bool(sums.min() >= 0.0 and pivots.min() > 0.0)


@inner
def _scale(parts: Parts, sizes: int, row: Vector) -> float:
    """s of a row (p, q and sizes), and its features, raw and in deviations."""
    memory, means, variances, typical, w, _, _, raw, phi, _, _, _, known = parts
    deviation = math.sqrt(memory[VARIANCE])
    # Where all residuals were 0, as in a stream without noise, rounding would be divided by rounding.
    size = max(memory[SIZE], 1e-9 * deviation, UNKNOWN)
    at = (row[0] - memory[MEAN]) / deviation if deviation > 0.0 else 0.0
    at = (min(max(at, LOW), LOW + STEP * (HATS - 1)) - LOW) / STEP
    for i in range(HATS):
        phi[i] = max(1.0 - abs(at - i), 0.0)
    raw[0] = math.log(memory[RECENT] / size + 1e-3)
    newness = math.log1p(max(row[1], 0.0))
    raw[1] = 0.5 * newness
    for i in range(sizes):
        raw[2 + i] = math.log(row[2 + i] / typical[i] + 1e-2) if typical[i] > 0.0 else 0.0
    f = 0.0
    for i in range(2 + sizes):
        z = 0.0
        if variances[i] > 0.0:
            z = (raw[i] - means[i]) / math.sqrt(variances[i])
        phi[HATS + i] = min(max(z, -CLIPPED), CLIPPED)
    for i in range(FIXED + sizes):
        f += (max(w[i], 0.0) if i == HATS + 1 else w[i]) * phi[i]
    f = min(max(f, -CLIPPED), CLIPPED)
    known[1] = (1.0 - SHRUNK) * f
    f *= SHRUNK
    if newness > memory[FARTHEST] and memory[ROWS] > EARLY:
        farthest = max(memory[TOP], math.log(max(0.8 * deviation, size) / size))
        # All the way where it is a third larger: what the features say of a row is of no use there.
        f = min(f, farthest)
        f += min(4.0 * (1.0 - memory[FARTHEST] / newness), 1.0) * (farthest - f)
        known[1] = 0.0
    return float(size * math.exp(f))


@inlined
def _learn(
    parts: Parts,
    sizes: int,
    forgetting: float,
    row: Vector,
    target: float,
    scale: float,
) -> None:
    """The residual of a row, whose features were found just before."""
    memory, means, variances, typical, w, S, L, raw, phi, h, prior, inverse, known = parts
    d, n = FIXED + sizes, memory[ROWS] + 1.0
    rate = max(1.0 / n, 1.0 - forgetting)
    r = min(abs(target - row[0]), LARGEST)
    g = min(r / (scale * math.exp(known[1])), WILD) - 1.0
    # h = A^-1 phi, by the factor of the last period
    if known[0] == 0.0:
        inverse_rows(L, inverse)
        known[0] = 1.0
    q = apply_rows(inverse, phi, h)
    log_size = math.log(scale / max(memory[SIZE], UNKNOWN))
    if n > FIXED:  # the first rows only tell the mean
        for i in range(d):
            w[i] += h[i] * g / (1.0 + q)
            for j in range(i + 1):
                S[i, j] += phi[i] * phi[j]
        # The largest of late: forgotten over some hundred rows.
        memory[TOP] = max(memory[TOP] * 0.998, min(log_size, CLIPPED))
    if n > EARLY:
        memory[FARTHEST] = max(memory[FARTHEST] * 0.998, 2.0 * raw[1])
    memory[ROWS] = n
    deviation = min(max(target - memory[MEAN], -LARGEST), LARGEST)
    memory[MEAN] += rate * deviation
    memory[VARIANCE] += rate * (min(deviation * deviation, LARGEST) * (1.0 - rate) - memory[VARIANCE])
    most = 10.0 * memory[SIZE] if memory[SIZE] > 0.0 else r
    memory[SIZE] += rate * (min(r, most) - memory[SIZE])
    memory[RECENT] += max(rate, 1.0 / 30.0) * (r - memory[RECENT])
    for i in range(sizes):
        typical[i] += rate * (min(row[2 + i], LARGEST) - typical[i])
    for i in range(2 + sizes):
        deviation = raw[i] - means[i]
        means[i] += rate * deviation
        variances[i] += rate * (deviation * deviation * (1.0 - rate) - variances[i])
    if int(n) % PERIOD == 0 or n < 4 * PERIOD:
        if int(n) % PERIOD == 0:
            for i in range(d):
                for j in range(i + 1):
                    S[i, j] *= forgetting**PERIOD
        for i in range(d):
            prior[i, i] = PRIOR
        factor_rows(prior, S, L)
        known[0] = 0.0


@compiled
def scales_at(memory: Vector, sizes: int, rows: Matrix, scales: Vector) -> None:
    """s of rows (p, q and sizes), each as if it came next."""
    parts = _parts(memory.copy(), sizes)
    for t in range(len(rows)):
        scales[t] = _scale(parts, sizes, rows[t])


@inlined
def _take_in(
    parts: Parts,
    scores: Vector,
    sizes: int,
    forgetting: float,
    window: int,
    row: Vector,
    target: float,
    scale: float,
    now: float,
    told: Vector,
) -> None:
    """Learn a row whose scale was found when it was predicted, and would be ``now`` if that were just now."""
    times = 2.0 * parts[7][1] / max(parts[0][FARTHEST], NO_NOVELTY)  # its log(1 + q)
    if parts[0][ROWS] >= NOVEL_FROM and times > NOVEL:
        told[NOVELTY_HIGH] = max(told[NOVELTY_HIGH], times)
    r = min(max(target - row[0], -LARGEST), LARGEST)
    if scale <= UNKNOWN:  # it was predicted before any target was known
        scale = now if now > UNKNOWN else max(abs(r), 1e-9)
    # + 0.0: no negative zeros, which the order of equal scores would tell apart
    if take_score(scores, window, min(max(r / scale + 0.0, -LARGEST), LARGEST), True):
        told[OUTSIDE] += 1.0
    _learn(parts, sizes, forgetting, row, target, scale)


@compiled
def follow(
    memory: Vector,
    scores: Vector,
    sizes: int,
    forgetting: float,
    window: int,
    rows: Matrix,
    targets: Vector,
    scales: Vector,
    asked: int,
    late: int,
    told: Matrix,
) -> int:
    """Rows in order: s of each from the ``asked``-th on; each is learned when ``late`` others came behind it.

    Of those before, s is given. ``told``: of each row learned, what there is to tell.
    Returns how many were learned.
    """
    # Views that nobody counts: counting references would take as long as the arithmetic.
    memory = matrix_at(memory.ctypes.data, 1, len(memory))[0]
    scores = matrix_at(scores.ctypes.data, 1, len(scores))[0]
    rows, told = matrix_at(rows.ctypes.data, *rows.shape), matrix_at(told.ctypes.data, *told.shape)
    parts, learned = _parts(memory, sizes), 0
    parts[-1][0] = 0.0
    for t in range(asked, len(rows) + 1):
        while learned < t - late:
            now = scales[learned]
            if late or learned < asked:
                now = _scale(parts, sizes, rows[learned])
            row, target, scale = rows[learned], targets[learned], scales[learned]
            _take_in(parts, scores, sizes, forgetting, window, row, target, scale, now, told[learned])
            learned += 1
        if t < len(rows):
            scales[t] = _scale(parts, sizes, rows[t])
    return learned
