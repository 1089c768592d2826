"""The one update, row by row inside a block (Alg. 1 and 3 in function space).

A block starts with f at its m points and the inverse form between them, ``M[i, j] = phi_i^T A^-1
phi_j``. Both stay exact under what the rows of the block do to them, in O(m^2) a row::

    y_bar = f[t]    y_hat = clip(y_bar, -C, C)    h = y_bar - y_hat    q = M[t, t]
    g = loss'(y_hat)         w: what enters A (eta*g^2, or the second derivative), times the coin
    s = h/q + g/(1 + w*q)
    f[j] -= s*M[t, j]        M -= w/(1 + w*q) * M[:, t] M[t, :]

which is the projection of Eq. 1 and the Newton step, by Sherman-Morrison. KORS carries a second
posterior N, of its own weighted sample ``A^I``, to estimate leverages for its coins.

Only the triangle j >= i of a posterior is kept up to date, so that row t stays as it stood when row
t was met: what is left of M is the Cholesky factor of the block, up to scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import compiled
from kons.core.leverage import keep_probability, leverage_overestimate
from kons.errors import NumericalError
from kons.losses import second_derivative_of, slope_of

__all__ = ["Derivatives", "Ledger", "Rules", "new_ledger", "replay", "sample"]

#: One entry per row of a block: what the update needs, and what it found.
LEDGER = np.dtype(
    [
        # given
        ("target", "f8"),
        ("scale", "f8"),  # the row's sample weight, c
        ("step_size", "f8"),  # eta_t
        ("self_kernel", "f8"),  # k(x, x)
        ("uniform", "f8"),  # the row's coin
        ("sampler_uniform", "f8"),  # KORS's own coin, where the two are not shared
        # found
        ("prediction", "f8"),  # y_hat
        ("overshoot", "f8"),  # h
        ("slope", "f8"),  # g
        ("feature_weight", "f8"),  # the weight before any coin, wbar
        ("weight", "f8"),  # what entered A
        ("inverse_form", "f8"),  # q
        ("step", "f8"),  # s: f moved by -s A^-1 phi, with A as it stood then
        ("coefficient", "f8"),  # c: over the block, f moved by -sum c A^-1 phi, A from before it
        ("leverage_estimate", "f8"),
        ("probability", "f8"),
        ("kept", "?"),
        ("sampler_weight", "f8"),  # what entered A^I, KORS's weighted sample
        ("sampler_inverse_form", "f8"),
        ("clipped", "?"),  # rounding had pushed q below its exact lower bound
    ]
)

Ledger = NDArray[np.void]


class Rules(NamedTuple):
    """How rows are weighed and who enters, as numbers that the compiled loops can read."""

    bound: float
    regularization: float
    hessian: bool = False
    """w is the loss's second derivative instead of eta*g^2."""
    projects: bool = True
    """h enters the update; it does not with the Hessian of the squared loss."""
    samples: bool = False
    """There are coins at all."""
    shared_coins: bool = True
    weighted: bool = False
    """A takes w/p instead of w."""
    oversampling: float = 1.0
    distortion: float = 0.5
    floor: float = 0.0


# A posterior variance alpha*q below -TOLERANCE*k(x,x) is no rounding: the kernel is at fault.
TOLERANCE = 1e-6


def new_ledger(rows: int) -> Ledger:
    """A ledger of ``rows`` unit-scale rows."""
    ledger = np.zeros(rows, LEDGER)
    ledger["scale"] = 1.0
    return ledger


@compiled
def condition(M: Matrix, t: int, weight: float) -> None:
    """``M -= w/(1 + w*q) M[:, t] M[t, :]`` behind t: point t enters with this weight."""
    gain = weight / (1.0 + weight * M[t, t])
    for i in range(t + 1, M.shape[0]):
        factor = gain * M[t, i]
        for j in range(i, M.shape[0]):
            M[i, j] -= factor * M[t, j]


@compiled
def settle_inverse_form(M: Matrix, t: int, self_kernel: float, alpha: float, trace: float) -> int:
    """Raise q = M[t, t] to its exact lower bound. 0: nothing to do, 1: raised, 2: no rounding."""
    # A <= (alpha + sum w_i k_ii) I on the span of phi, hence q >= k(x,x) / (alpha + sum w_i k_ii).
    lowest = self_kernel / (alpha + trace)
    if M[t, t] >= lowest:
        return 0
    severe = not M[t, t] * alpha >= -TOLERANCE * self_kernel
    M[t, t] = lowest
    return 2 if severe else 1


@compiled
def meet(t: int, rows: Any, rules: Any, f: Vector, M: Matrix, traces: Vector) -> bool:
    """Predict row t (Alg. 1, lines 6-7). False: the kernel is not positive definite."""
    row = rows[t]
    verdict = settle_inverse_form(M, t, row.self_kernel, rules.regularization, traces[0])
    row.clipped = verdict > 0
    row.inverse_form = M[t, t]
    # Line 7: y_hat = y_bar - h(y_bar)
    row.prediction = min(max(f[t], -rules.bound), rules.bound)
    row.overshoot = f[t] - row.prediction
    return verdict < 2


@compiled
def toss(t: int, rows: Any, rules: Any, N: Matrix, traces: Vector) -> bool:
    """Estimate row t's leverage and toss its coins (Alg. 2, lines 4-6; Alg. 3, lines 8-10)."""
    row = rows[t]
    w = row.feature_weight
    verdict = settle_inverse_form(N, t, row.self_kernel, rules.regularization, traces[1])
    row.clipped = row.clipped or verdict > 0
    row.sampler_inverse_form = N[t, t]
    row.leverage_estimate = leverage_overestimate(w * N[t, t], rules.distortion)
    row.probability = keep_probability(row.leverage_estimate, rules.oversampling, rules.floor)
    row.kept = row.uniform < row.probability
    # KORS's importance is 1/p with the p of its own coin: the floored one only if it is shared.
    p, kept = row.probability, row.kept
    if not rules.shared_coins:
        p = keep_probability(row.leverage_estimate, rules.oversampling, 0.0)
        kept = row.sampler_uniform < p
    row.sampler_weight = w / p if kept else 0.0
    if row.sampler_weight > 0.0:
        condition(N, t, row.sampler_weight)
        traces[1] += row.sampler_weight * row.self_kernel
    return verdict < 2


@compiled
def step(t: int, rows: Any, rules: Any, f: Vector, M: Matrix, N: Matrix, traces: Vector) -> bool:
    """Update after row t's slope and feature weight are known (Alg. 1, line 8; Alg. 3, line 11)."""
    row = rows[t]
    sound = True
    if rules.samples:
        sound = toss(t, rows, rules, N, traces)
        row.weight = 0.0
        if row.kept:
            row.weight = row.feature_weight / (row.probability if rules.weighted else 1.0)
    else:
        row.kept = True
        row.weight = row.feature_weight
    q = row.inverse_form
    h = row.overshoot if rules.projects else 0.0
    pull = h / q if h != 0.0 else 0.0
    # Lemma 1 as corrected (departures 1-5), without its vector b: u <- u - s A_{t-1}^-1 phi_t
    row.step = pull + row.slope / (1.0 + row.weight * q)
    if row.step != 0.0:
        for j in range(t + 1, len(f)):
            f[j] -= row.step * M[t, j]
    if row.weight > 0.0:
        condition(M, t, row.weight)
        traces[0] += row.weight * row.self_kernel
    return sound


@compiled
def gather(rows: Any, M: Matrix) -> None:
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


@compiled
def weigh(t: int, rows: Any, rules: Any, slope: float, second_derivative: float) -> None:
    """Note row t's slope and feature weight; a sample weight c makes the loss c*l."""
    row = rows[t]
    # Loss c*l has slope c*l' and, by Assumption 2, curvature sigma/c: eta*g^2 grows by c, not c^2.
    row.slope = row.scale * slope
    if rules.hessian:
        row.feature_weight = row.scale * second_derivative
    else:
        row.feature_weight = row.scale * row.step_size * slope * slope


@compiled
def replay_compiled(
    code: int, rows: Any, rules: Any, f: Vector, M: Matrix, N: Matrix, traces: Vector
) -> int:
    """All rows of a block with a built-in loss. Returns the row that failed, or -1."""
    for t in range(len(rows)):
        if not meet(t, rows, rules, f, M, traces):
            return t
        at = rows[t].prediction if rules.projects else f[t]
        second = second_derivative_of(code, at, rows[t].target) if rules.hessian else 0.0
        weigh(t, rows, rules, slope_of(code, at, rows[t].target), second)
        if not step(t, rows, rules, f, M, N, traces):
            return t
    gather(rows, M)
    return -1


@compiled
def sample_compiled(rows: Any, rules: Any, N: Matrix, traces: Vector) -> int:
    """All rows of a block for KORS alone: feature weights are given. Returns the failed row, or -1."""
    for t in range(len(rows)):
        if not toss(t, rows, rules, N, traces):
            return t
    return -1


#: (slope, second derivative) at (prediction, target), for what the compiled loop does not know.
Derivatives = Callable[[float, float], tuple[float, float]]


def replay(
    derivatives: int | Derivatives,
    rows: Ledger,
    rules: Rules,
    f: Vector,
    M: Matrix,
    N: Matrix,
    traces: Vector,
) -> None:
    """Predict and learn the rows of a block in order, filling the ledger; f, M and N are used up.

    ``derivatives`` is the code of a built-in loss (compiled, under a microsecond a row at m = 64) or a
    function (some ten microseconds a row). ``traces`` holds ``sum w k(x,x)`` of A and of KORS's
    sample. Costs O(m^2) a row.
    """
    if isinstance(derivatives, int):
        _require_sound(replay_compiled(derivatives, rows, rules, f, M, N, traces), rows)
        return
    for t in range(len(rows)):
        if not meet(t, rows, rules, f, M, traces):
            _require_sound(t, rows)
        at = float(rows[t]["prediction"]) if rules.projects else float(f[t])
        weigh(t, rows, rules, *derivatives(at, float(rows[t]["target"])))
        if not step(t, rows, rules, f, M, N, traces):
            _require_sound(t, rows)
    gather(rows, M)


def sample(rows: Ledger, rules: Rules, N: Matrix, traces: Vector) -> None:
    """Toss the coins of a block in order, filling the ledger (Alg. 2); N is used up."""
    _require_sound(sample_compiled(rows, rules, N, traces), rows)


def _require_sound(failed: int, rows: Ledger) -> None:
    if failed < 0:
        return
    raise NumericalError(
        f"phi^T A^-1 phi came out far below zero at a point with k(x,x) = "
        f"{rows[failed]['self_kernel']:g}. Likely causes: (a) the kernel is not positive definite or "
        "not symmetric; (b) its values are noisy or inconsistent with its diagonal; "
        "(c) regularization is below what 16 digits resolve: raise it."
    )
