"""Who enters, row by row: everything, a coin's choice (Alg. 2 and 3), or the atoms of a span.

These loops work on what a block carries: M, the inverse form between its points under A; N, the same under
KORS's weighted sample ``A^I``; and R, what the span of a dictionary leaves of the kernel between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled
from kons.core.ledger import EVERYTHING, SKETCH, SPAN_FIXED, SPAN_LEVERAGE, TOTALS
from kons.core.leverage import keep_probability, leverage_overestimate

__all__ = ["condition", "decide", "enter_sample", "settle_inverse_form", "toss"]

# Repeated points meet their lower bound exactly: the last digits of q are then no clip.
EQUAL = 1.0 - 1e-12
# A posterior variance alpha*q below -TOLERANCE*k(x,x) is no rounding: the kernel is at fault.
TOLERANCE = 1e-6


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
    severe = norm2 < 0.0 or not M[t, t] * alpha >= -TOLERANCE * norm2
    M[t, t] = lowest
    return 2 if severe else 1


@compiled
def toss(t: int, rows: Any, rules: Any, weight: float, N: Matrix, totals: Vector) -> bool:
    """Estimate row t's leverage and toss its coins (Alg. 2, lines 4-6; Alg. 3, lines 8-10)."""
    row = rows[t]
    trace = totals[TOTALS.sampler_trace]
    verdict = settle_inverse_form(N, t, row.self_kernel, rules[0].regularization, trace)
    row.clipped = row.clipped or verdict > 0
    row.sampler_inverse_form = N[t, t]
    row.leverage_estimate = leverage_overestimate(weight * N[t, t], rules[0].distortion)
    row.probability = keep_probability(row.leverage_estimate, rules[0].oversampling, rules[0].floor)
    row.kept = row.uniform < row.probability
    # KORS's importance is 1/p with the p of its own coin: the floored one only if it is shared.
    p, kept = row.probability, row.kept
    if not rules[0].shared_coins:
        p = keep_probability(row.leverage_estimate, rules[0].oversampling, 0.0)
        kept = row.sampler_uniform < p
    row.sampler_weight = weight / p if kept else 0.0
    return verdict < 2


@compiled
def enter_sample(t: int, rows: Any, N: Matrix, totals: Vector) -> None:
    """Let row t into A^I with the weight that its coin gave it."""
    row = rows[t]
    if row.sampler_weight > 0.0:
        condition(N, t, row.sampler_weight)
        totals[TOTALS.sampler_trace] += row.sampler_weight * row.self_kernel


@compiled
def grow(t: int, rows: Any, rules: Any, M: Matrix, N: Matrix, R: Matrix, totals: Vector) -> bool:
    """Make row t an atom of the span, if it is chosen; every row enters A itself."""
    row = rows[t]
    sound = True
    row.kept = False
    outside = R[t, t]
    chosen = outside > rules[0].tolerance * row.self_kernel
    if rules[0].entry == SPAN_LEVERAGE:
        sound = toss(t, rows, rules, 1.0, N, totals)
        independent = chosen
        chosen = chosen and row.kept
        if independent and totals[TOTALS.free_slots] < 1.0:
            row.sampler_weight = 0.0  # there is no coordinate for it
        enter_sample(t, rows, N, totals)
    row.entered = chosen and rules[0].entry != SPAN_FIXED and totals[TOTALS.free_slots] >= 1.0
    row.kept = row.entered
    if row.entered:
        totals[TOTALS.free_slots] -= 1.0
        # The new coordinate of row j is R[t, j]/sqrt(R[t, t]); A has alpha there and the weight vector 0.
        pivot = np.sqrt(outside)
        for j in range(t, R.shape[0]):
            R[t, j] /= pivot
            rows[j].norm2 += R[t, j] * R[t, j]
        for i in range(t, R.shape[0]):
            for j in range(i, R.shape[0]):
                M[i, j] += R[t, i] * R[t, j] / rules[0].regularization
        for i in range(t + 1, R.shape[0]):
            for j in range(i, R.shape[0]):
                R[i, j] -= R[t, i] * R[t, j]
        row.inverse_form = M[t, t]
    return sound


@compiled
def decide(t: int, rows: Any, rules: Any, M: Matrix, N: Matrix, R: Matrix, totals: Vector) -> bool:
    """Find what of row t enters A, once its feature weight is known. False: the kernel is at fault."""
    row = rows[t]
    sound = True
    if rules[0].entry == EVERYTHING:
        row.kept = True
        row.weight = row.feature_weight
    elif rules[0].entry == SKETCH:
        sound = toss(t, rows, rules, row.feature_weight, N, totals)
        enter_sample(t, rows, N, totals)
        row.weight = 0.0
        if row.kept:
            row.weight = row.feature_weight / (row.probability if rules[0].weighted else 1.0)
    else:
        sound = grow(t, rows, rules, M, N, R, totals)
        row.weight = row.feature_weight
    return sound
