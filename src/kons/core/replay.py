"""The one update, row by row inside a block (Alg. 1 and 3 in function space).

A block starts with f at its m points and the inverse form between them, ``M[i, j] = phi_i^T A^-1
phi_j``. Both stay exact under what the rows of the block do to them, in O(m^2) a row::

    y_bar = f[t]    y_hat = clip(y_bar, -C, C)    h = y_bar - y_hat    q = M[t, t]
    g = loss'(y_hat)         w: what enters A (eta*g^2, or the second derivative), times the coin
    s = h/q + g/(1 + w*q)
    f[j] -= s*M[t, j]        M -= w/(1 + w*q) * M[:, t] M[t, :]

which is the projection of Eq. 1 and the Newton step, by Sherman-Morrison. More matrices may come
along: N, the inverse form under KORS's weighted sample ``A^I``, for its coins; and, for learners that live
in the span of a dictionary, R, what the span leaves of the kernel, ``k(x_i, x_j) - z_i^T z_j``, and T,
``sum_a theta_ia theta_ja k(a, a)`` over the atoms a, with theta the coefficients of a point's projection.

Only the triangle j >= i is kept up to date, so that row t stays as it stood when row t was met:
what is left of M is the Cholesky factor of the block, up to scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, inlined, inner
from kons.core.entry import condition, decide, enter_sample, settle_inverse_form, toss
from kons.core.ledger import (
    ALL,
    CAPPED,
    GRADIENT,
    HESSIAN,
    MARGINS,
    NONE,
    SPAN_FIXED,
    TOTALS,
    Entries,
    Ledger,
    PackedRules,
    Rules,
)
from kons.core.leverage import leverage
from kons.errors import NumericalError
from kons.losses.builtin import SQUARED, second_derivative_of, slope_of

__all__ = ["NO_MATRIX", "Derivatives", "Slopes", "check_sound", "follow_all"]
__all__ += ["replay", "replay_compiled", "sample"]

# Where labels of equal rows balance, f is 0, and rounding alone says on which side: it is on none. Relative
# to what a step moves f by, for sums of some ten thousand steps.
TIE = 1e-12


@compiled
def meet(
    t: int,
    rows: Entries,
    rules: PackedRules,
    f: Vector,
    M: Matrix,
    R: Matrix,
    totals: Vector,
) -> bool:
    """Predict row t (Alg. 1, lines 6-7). False: the kernel is not positive definite."""
    row = rows[t]
    verdict = settle_inverse_form(M, t, row.norm2, rules[0].regularization, totals[TOTALS.weighted_trace])
    row.clipped = verdict > 0
    row.inverse_form = M[t, t]
    row.novelty = row.inverse_form
    if rules[0].entry >= SPAN_FIXED:
        row.novelty += max(R[t, t], 0.0) / rules[0].regularization
    # The forward prediction c^T (A + 2 phi phi^T)^-1 phi, w = 2 being the squared loss's Hessian.
    row.divisor = 1.0 + 2.0 * row.inverse_form if rules[0].forward else 1.0
    if rules[0].curvature == CAPPED:  # as if the row were in A already: 1 + w*q
        row.divisor = max(1.0, row.step_size * row.inverse_form)
    # Line 7: y_hat = y_bar - h(y_bar)
    row.prediction = min(max(f[t] / row.divisor, -rules[0].bound), rules[0].bound)
    row.overshoot = f[t] - row.prediction
    return verdict < 2 and np.isfinite(f[t])


@inlined
def step(t: int, rows: Entries, rules: PackedRules, f: Vector, M: Matrix, totals: Vector) -> None:
    """Project and take the Newton step of row t (Alg. 1, line 8; Alg. 3, line 11)."""
    row = rows[t]
    q = row.inverse_form
    h = row.overshoot if rules[0].projects else 0.0
    pull = h / q if h != 0.0 else 0.0
    # Lemma 1 as corrected (departures 1-5), without its vector b: u <- u - s A_{t-1}^-1 phi_t
    rate = row.step_size if rules[0].curvature == NONE else 1.0
    row.step = pull + rate * row.slope / (1.0 + row.weight * q)
    if row.step != 0.0:
        for j in range(t + 1, len(f)):
            f[j] -= row.step * M[t, j]
    if row.weight > 0.0:
        condition(M, t, row.weight)
        totals[TOTALS.weighted_trace] += row.weight * row.norm2


@compiled
def point_of_slope(t: int, rows: Entries, rules: PackedRules, f: Vector) -> float:
    """The value at which row t's loss is looked at: y_hat, or f(x) where nothing is projected."""
    if rules[0].projects:
        return float(rows[t].prediction)
    return float(f[t] / rows[t].divisor if rules[0].curvature == CAPPED else f[t])


@compiled
def gather(rows: Entries, M: Matrix) -> None:
    """Express the block's steps by the A from before it, last row first.

    ``A_j^-1 phi_t = A_{j-1}^-1 phi_t - w_j/(1 + w_j q_j) M[j, t] A_{j-1}^-1 phi_j``, so the coefficient
    of row j collects from the rows behind it. A row without weight and step keeps the coefficient 0.
    """
    for j in range(len(rows) - 1, -1, -1):
        c = rows[j].step
        if rows[j].weight > 0.0:
            gain = rows[j].weight / (1.0 + rows[j].weight * rows[j].inverse_form)
            for t in range(j + 1, len(rows)):
                c -= gain * M[j, t] * rows[t].coefficient
        rows[j].coefficient = c


@inner
def progress(t: int, rows: Entries, rules: PackedRules) -> float:
    """The step of a row within the margin: by no more than its projection helps (Projectron++, line 8).

    ``min(l/|z|^2, 2 (l - delta/eta)/|z|^2, 1)`` with delta the norm of what the span leaves of it and eta the
    largest such norm that makes no atom.
    """
    row = rows[t]
    loss = 1.0 - row.target * (row.prediction + row.overshoot)
    outside = max(row.novelty - row.inverse_form, 0.0) * rules[0].regularization
    gain = loss - math.sqrt(outside / (rules[0].tolerance * row.self_kernel)) if row.norm2 > 0.0 else 0.0
    return max(min(min(loss, 2.0 * gain) / row.norm2, 1.0), 0.0) if gain > 0.0 else 0.0


@compiled
def weigh(t: int, rows: Entries, rules: PackedRules, slope: float, second_derivative: float) -> None:
    """Note row t's slope and feature weight; a sample weight c makes the loss c*l."""
    row = rows[t]
    # Loss c*l has slope c*l' and, by Assumption 2, curvature sigma/c: eta*g^2 grows by c, not c^2.
    row.slope = row.scale * slope
    row.feature_weight = 0.0
    moves = row.step_size * row.self_kernel if rules[0].curvature == NONE else 1.0
    if rules[0].updates != ALL and row.target * row.prediction > TIE * moves:
        row.slope *= progress(t, rows, rules) if rules[0].updates == MARGINS else 0.0
    elif rules[0].curvature == HESSIAN:
        row.feature_weight = row.scale * second_derivative
    elif rules[0].curvature == GRADIENT:
        row.feature_weight = row.scale * row.step_size * slope * slope
    elif rules[0].curvature == CAPPED and row.slope != 0.0 and row.divisor > 1.0:
        # The leader of sum g_s f(x_s) + (w_s/2) f(x_s)^2: the new square has the slope w*f.
        row.feature_weight = row.step_size - 1.0 / row.inverse_form
        row.slope += row.feature_weight * (row.prediction + row.overshoot)


@compiled
def learn(
    t: int,
    rows: Entries,
    rules: PackedRules,
    f: Vector,
    M: Matrix,
    N: Matrix,
    R: Matrix,
    T: Matrix,
    totals: Vector,
) -> int:
    """Row t, weighed, is learned. 0: go on, 1: the block ends behind it, 2: the kernel is at fault."""
    # An overflow, or a second derivative below 0, would poison everything behind it.
    if not 0.0 <= rows[t].feature_weight < np.inf or not np.isfinite(rows[t].slope):
        return 2
    if not decide(t, rows, rules, M, N, R, T, totals):
        return 2
    mass = rows[t].weight * rows[t].inverse_form
    if not (mass < np.inf and rows[t].sampler_weight < np.inf):
        return 2
    rows[t].leverage = leverage(mass)
    if rules[0].restarts and rows[t].entered:
        # All is thrown away behind this row (PROS-N-KONS): nothing of it is worth a step.
        rows[t].weight = 0.0
        rows[t].leverage = 0.0
        rows[t].step = 0.0
        return 1
    step(t, rows, rules, f, M, totals)
    return 0


@compiled
def replay_compiled(
    code: int,
    rows: Entries,
    rules: PackedRules,
    f: Vector,
    M: Matrix,
    N: Matrix,
    R: Matrix,
    T: Matrix,
    totals: Vector,
) -> int:
    """A block with a built-in loss. Returns how many rows were learned, or -1 - t if row t failed."""
    for t in range(len(rows)):
        if not meet(t, rows, rules, f, M, R, totals):
            return -1 - t
        at = point_of_slope(t, rows, rules, f)
        second = second_derivative_of(code, at, rows[t].target) if rules[0].curvature == HESSIAN else 0.0
        weigh(t, rows, rules, slope_of(code, at, rows[t].target), second)
        verdict = learn(t, rows, rules, f, M, N, R, T, totals)
        if verdict == 2:
            return -1 - t
        if verdict == 1:
            gather(rows[: t + 1], M)
            return t + 1
    gather(rows, M)
    return len(rows)


@compiled
def follow(rows: Entries, others: Entries, rules: PackedRules, f: Vector, M: Matrix) -> bool:
    """A further output of a block that was replayed, with the same A; f is its own, and used up.

    Only for the squared loss with the Hessian, whose weight knows no target. O(m^2). False: f is not finite.
    """
    for t in range(len(rows)):
        row, other = rows[t], others[t]
        other.prediction = min(max(f[t] / row.divisor, -rules[0].bound), rules[0].bound)
        other.slope = row.scale * slope_of(SQUARED, f[t], other.target)
        other.weight, other.inverse_form = row.weight, row.inverse_form
        if not np.isfinite(other.slope):
            return False
        if rules[0].restarts and row.entered:
            other.step = 0.0
            break
        other.step = other.slope / (1.0 + row.weight * row.inverse_form)
        for j in range(t + 1, len(rows)):
            f[j] -= other.step * M[t, j]
    gather(others, M)
    return True


@compiled
def sample_compiled(rows: Entries, rules: PackedRules, N: Matrix, totals: Vector) -> int:
    """A block for KORS alone, its feature weights given. Returns as :func:`replay_compiled`."""
    for t in range(len(rows)):
        if not toss(t, rows, rules, rows[t].feature_weight, N, totals) or np.isinf(rows[t].sampler_weight):
            return -1 - t
        enter_sample(t, rows, N, totals)
    return len(rows)


#: (slope, second derivative) at (prediction, target), for what the compiled loop does not know.
Derivatives = Callable[[float, float], tuple[float, float]]
#: What a loop takes of a loss: the code of a built-in one, or its derivatives.
Slopes = int | Derivatives

NO_MATRIX = np.empty((0, 0))


def replay(
    derivatives: Slopes,
    rows: Ledger,
    rules: Rules,
    f: Vector,
    M: Matrix,
    totals: Vector,
    *,
    N: Matrix = NO_MATRIX,
    R: Matrix = NO_MATRIX,
    T: Matrix = NO_MATRIX,
) -> int:
    """Predict and learn the rows of a block in order, filling the ledger; f and matrices are used up.

    ``derivatives`` is the code of a built-in loss (compiled, under a microsecond a row at m = 64) or a
    function (some ten microseconds a row). ``totals``: see :class:`Totals`. T may be left out where no row
    of the block can become an atom. Returns how many rows were learned: fewer than all only under
    ``rules.restarts``. Costs O(m^2) a row.
    """
    packed = rules.packed
    if isinstance(derivatives, int):
        return check_sound(replay_compiled(derivatives, rows, packed, f, M, N, R, T, totals), rows)
    for t in range(len(rows)):
        if not meet(t, rows, packed, f, M, R, totals):
            return check_sound(-1 - t, rows)
        at = point_of_slope(t, rows, packed, f)
        weigh(t, rows, packed, *derivatives(at, float(rows[t]["target"])))
        verdict = learn(t, rows, packed, f, M, N, R, T, totals)
        if verdict == 2:
            return check_sound(-1 - t, rows)
        if verdict == 1:
            rows = rows[: t + 1]
            break
    gather(rows, M)
    return len(rows)


def follow_all(rows: Ledger, others: Ledger, rules: NDArray[np.void], F: Matrix, M: Matrix) -> None:
    """:func:`follow` of each of the ledgers, (K, m), with its row of F."""
    for other, f in zip(others, F, strict=True):
        if not follow(rows, other, rules, f, M):
            check_sound(-1, other)


def sample(rows: Ledger, rules: Rules, N: Matrix, totals: Vector) -> None:
    """Toss the coins of a block in order, filling the ledger (Alg. 2); N is used up."""
    check_sound(sample_compiled(rows, rules.packed, N, totals), rows)


def check_sound(learned: int, rows: Ledger) -> int:
    """The number of rows learned, or :class:`NumericalError` where a row failed."""
    if learned >= 0:
        return learned
    row = rows[-1 - learned]
    if not np.isfinite(row["slope"]):
        raise NumericalError(
            f"a sample weight of {row['scale']:g} times the slope of the loss gives {row['slope']:g}, "
            "expected a finite number. Likely causes: (a) the sample weight makes it overflow; (b) a step "
            "did: lower step_size; (c) a loss of your own returned NaN or infinity."
        )
    if not 0.0 <= row["feature_weight"] < np.inf:
        raise NumericalError(
            f"a slope of {row['slope']:g} gives the weight {row['feature_weight']:g}, expected a finite one "
            "of at least 0. Likely causes: (a) a slope, sample weight or step size that makes it overflow; "
            "(b) a loss whose second derivative is negative."
        )
    raise NumericalError(
        f"phi^T A^-1 phi came out far below zero, or f(x) as no finite number, at a point with k(x,x) = "
        f"{row['self_kernel']:g}. Likely causes: (a) the kernel is not positive definite or not symmetric; "
        "(b) it returned NaN or infinity, or values that disagree with its diagonal; (c) regularization is "
        "below what 16 digits resolve, or a weight or step overflows: raise the one, lower the other."
    )
