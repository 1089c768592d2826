"""Who enters, row by row: everything, a coin's choice (Alg. 2 and 3), or the atoms of a span.

These loops work on what a block carries: M, the inverse form between its points under A; N, the same under
KORS's weighted sample ``A^I``; R, what the span of a dictionary leaves of the kernel between them; and T, the
Gram matrix of their coefficients over the atoms, which tells how far rounding may have moved R.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, inlined, inner
from kons.core.ledger import (
    ALL,
    CAPPED,
    EVERYTHING,
    SKETCH,
    SPAN_FIXED,
    SPAN_LEVERAGE,
    TOTALS,
    Entries,
    PackedRules,
)
from kons.core.leverage import keep_probability, leverage_overestimate

__all__ = [
    "DEPENDENT",
    "KERNEL_ACCURACY",
    "condition",
    "decide",
    "eliminate",
    "enter_sample",
    "independent",
    "settle_inverse_form",
    "toss",
]

EPSILON = float(np.finfo(np.float64).eps)
# Repeated points meet their lower bound exactly: the last digits of q are then no clip.
EQUAL = 1.0 - 1e-12
# What a kernel's values may differ by from those of a positive definite one, relative to k(x,x): room for
# kernels that are computed in single precision.
KERNEL_ACCURACY = 1e-6
# Rounding errors of some ten thousand products, whose signs are as good as random.
ROUNDINGS = 100.0 * EPSILON
# The least tolerance of a dictionary: what its span must leave of an atom, relative to k(x,x).
DEPENDENT = 1e-7


@compiled
def condition(M: Matrix, t: int, weight: float) -> None:
    """``M -= w/(1 + w*q) M[:, t] M[t, :]`` behind t: point t enters with this weight."""
    gain = weight / (1.0 + weight * M[t, t])
    for i in range(t + 1, M.shape[0]):
        factor = gain * M[t, i]
        for j in range(i, M.shape[0]):
            M[i, j] -= factor * M[t, j]


@compiled
def settle_inverse_form(M: Matrix, t: int, norm2: float, alpha: float, trace: float) -> int:
    """Raise q = M[t, t] to its exact lower bound. 0: nothing to do, 1: raised, 2: no rounding."""
    # A <= (alpha + sum w_i |phi_i|^2) I, hence q >= |phi|^2 / (alpha + sum w_i |phi_i|^2).
    lowest = norm2 / (alpha + trace)
    if M[t, t] >= lowest * EQUAL and lowest >= 0.0:
        return 0
    # alpha*q is k - |v|^2, or z^T alpha A^-1 z: it errs by eps times the condition number of A, at most
    # (alpha + trace)/alpha. Where that leaves no digit, there is nothing to learn from: see check_sound.
    rounding = min(max(KERNEL_ACCURACY, ROUNDINGS * (alpha + trace) / alpha), 0.5)
    severe = norm2 < 0.0 or not M[t, t] * alpha >= -rounding * norm2
    M[t, t] = lowest
    # As far off as q was, the forms with later points are: none exceeds what Cauchy and Schwarz allow, or
    # the square of that rounding, not of a form, would be taken off theirs.
    for j in range(t + 1, M.shape[0]):
        largest = math.sqrt(lowest * max(M[j, j], 0.0)) if lowest >= 0.0 else 0.0
        M[t, j] = min(max(M[t, j], -largest), largest)
    return 2 if severe else 1


@inner
def predict(t: int, rows: Entries, rules: PackedRules, value: float, inverse_form: float) -> None:
    """Predict row t by f(x_t), clipped; its inverse form is known."""
    row = rows[t]
    row.inverse_form, row.divisor = inverse_form, 1.0
    row.prediction = min(max(value, -rules[0].bound), rules[0].bound)
    row.overshoot = value - row.prediction


@inner
def toss(t: int, rows: Entries, rules: PackedRules, weight: float, N: Matrix, totals: Vector) -> bool:
    """Estimate row t's leverage and toss its coins (Alg. 2, lines 4-6; Alg. 3, lines 8-10)."""
    row = rows[t]
    trace = totals[TOTALS.sampler_trace]
    verdict = settle_inverse_form(N, t, row.self_kernel, rules[0].regularization, trace)
    row.clipped = row.clipped or verdict > 0
    row.sampler_inverse_form = N[t, t]
    mass = weight * N[t, t]
    row.leverage_estimate = leverage_overestimate(mass, rules[0].distortion, rules[0].counts_itself)
    row.probability = keep_probability(row.leverage_estimate, rules[0].oversampling, rules[0].floor)
    row.kept = row.uniform < row.probability
    # KORS's importance is 1/p with the p of its own coin: the floored one only if it is shared.
    p, kept = row.probability, row.kept
    if not rules[0].shared_coins:
        p = keep_probability(row.leverage_estimate, rules[0].oversampling, 0.0)
        kept = row.sampler_uniform < p
    row.sampler_weight = weight / p if kept else 0.0
    return verdict < 2


@inner
def enter_sample(t: int, rows: Entries, N: Matrix, totals: Vector) -> None:
    """Let row t into A^I with the weight that its coin gave it."""
    row = rows[t]
    if row.sampler_weight > 0.0:
        condition(N, t, row.sampler_weight)
        totals[TOTALS.sampler_trace] += row.sampler_weight * row.self_kernel


@inner
def independent(
    outside: float, self_kernel: float, coefficients: float, tolerance: float, noise: float
) -> bool:
    """Whether a point can be an atom: enough of it is outside the span, and leaves that well conditioned.

    An atom adds the row ``(-theta, 1)/sqrt(p)`` to L^-1, with p what the span leaves of it and theta its
    coefficients over the atoms before. Rounding then leaves eps/2 times the square of that row in the
    residuals of the points behind it: the ``noise``, which must stay below a tolerance that decides about
    them. Small pivots alone do not tell: on smooth inputs each p may be 1e-7 of k(x,x) and the smallest
    eigenvalue of K_D 1e-18.
    """
    allowed = outside * noise
    return outside > tolerance * self_kernel and allowed > 0.5 * EPSILON * (self_kernel + coefficients)


@inner
def eliminate(t: int, self_kernel: float, R: Matrix, T: Matrix) -> None:
    """Point t becomes an atom: row t of R turns into the new coordinate, R and T behind it follow.

    The coefficient of point j on the new atom is ``c_j = R[t, j]/R[t, t]``, and those on the others fall
    by ``c_j`` times those of point t.
    """
    m = R.shape[0]
    pivot = np.sqrt(R[t, t])
    for j in range(t, m):
        R[t, j] /= pivot
    for i in range(t + 1, m):
        factor, c_i = R[t, i], R[t, i] / pivot
        for j in range(i, m):
            c_j = R[t, j] / pivot
            R[i, j] -= factor * R[t, j]
            T[i, j] += c_i * c_j * (T[t, t] + self_kernel) - c_j * T[t, i] - c_i * T[t, j]


@inlined
def grow(
    t: int,
    rows: Entries,
    rules: PackedRules,
    M: Matrix,
    N: Matrix,
    R: Matrix,
    T: Matrix,
    totals: Vector,
) -> bool:
    """Make row t an atom of the span, if it is chosen; every row that is learned enters A itself."""
    row = rows[t]
    sound = True
    row.kept = False
    outside = R[t, t] > rules[0].tolerance * row.self_kernel
    chosen = outside and (rules[0].updates == ALL or row.prediction * row.target <= 0.0)
    if rules[0].entry == SPAN_LEVERAGE:
        sound = toss(t, rows, rules, 1.0, N, totals)
        chosen = chosen and row.kept
        if outside and totals[TOTALS.free_slots] < 1.0:
            row.sampler_weight = 0.0  # there is no coordinate for it
    chosen = chosen and rules[0].entry != SPAN_FIXED and totals[TOTALS.free_slots] >= 1.0
    tolerance = rules[0].tolerance
    row.entered = chosen and independent(R[t, t], row.self_kernel, T[t, t], tolerance, tolerance)
    row.kept = row.entered
    if rules[0].entry == SPAN_LEVERAGE:
        if not row.entered:  # A^I lives in the span: it has the point's projection
            for j in range(t, N.shape[0]):
                N[t, j] -= R[t, j] / rules[0].regularization
        enter_sample(t, rows, N, totals)
    if row.entered:
        totals[TOTALS.free_slots] -= 1.0
        # The new coordinate of row j is R[t, j]/sqrt(R[t, t]); A has alpha there and the weight vector 0.
        eliminate(t, row.self_kernel, R, T)
        for i in range(t, R.shape[0]):
            rows[i].norm2 += R[t, i] * R[t, i]
            for j in range(i, R.shape[0]):
                M[i, j] += R[t, i] * R[t, j] / rules[0].regularization
        row.inverse_form = M[t, t]
    return sound


@inlined
def decide(
    t: int,
    rows: Entries,
    rules: PackedRules,
    M: Matrix,
    N: Matrix,
    R: Matrix,
    T: Matrix,
    totals: Vector,
) -> bool:
    """Find what of row t enters A, once its feature weight is known. False: the kernel is at fault."""
    row = rows[t]
    sound = True
    if rules[0].entry == EVERYTHING:
        row.kept = row.slope != 0.0 or (rules[0].updates == ALL and rules[0].curvature < CAPPED)
        row.weight = row.feature_weight
    elif rules[0].entry == SKETCH:
        sound = toss(t, rows, rules, row.feature_weight, N, totals)
        enter_sample(t, rows, N, totals)
        row.weight = 0.0
        if row.kept:
            row.weight = row.feature_weight / (row.probability if rules[0].weighted else 1.0)
    else:
        sound = grow(t, rows, rules, M, N, R, T, totals)
        row.weight = row.feature_weight
    return sound
