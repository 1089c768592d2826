"""The compiled loops of one row in :mod:`kons.core.quadratic`. Plain loops: no BLAS, no second thread."""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, ReadVector, Vector
from kons.compilation import compiled_sums
from kons.core.entry import KERNEL_ACCURACY
from kons.core.ledger import TOTALS, Entries, Ledger, PackedRules
from kons.core.replay import replay_compiled

__all__ = [
    "ASKED",
    "ENTERED",
    "FAILED",
    "GAINS",
    "PLAIN",
    "SAMPLED",
    "STEPS",
    "WEIGHTS",
    "append_row",
    "gaussian_row",
    "learn_row",
    "outside_of",
    "predict_row",
]

# What a row did besides being learned; FAILED and ASKED for its coefficients, it was not.
PLAIN, SAMPLED, ENTERED, FAILED, ASKED = 0, 1, 2, 3, 4
#: Of each row of a period, in columns: its weight in A, the gain w/(1 + w q), and its steps, one an output.
WEIGHTS, GAINS, STEPS = range(3)


def outside_of(rows: Ledger, z: Vector) -> float:
    """The new coordinate of a row that became an atom."""
    return float(np.sqrt(rows[0]["norm2"] - z @ z))


@compiled_sums
def predict_row(
    L: Matrix, base: Matrix, V: Matrix, C: Matrix, marks: Matrix, pending: int, work: Vector
) -> None:
    """``work`` begins with z, and becomes z, v, h, f and q of :mod:`kons.core.quadratic`."""
    n, outputs = base.shape
    z, v, h = work[:n], work[n : 2 * n], work[2 * n : 2 * n + pending]
    f = work[len(work) - 1 - outputs :]
    q = 0.0
    for i in range(n):
        total = z[i]
        for j in range(i):
            total -= L[i, j] * v[j]
        v[i] = total / L[i, i]
    for i in range(n):
        q += v[i] * v[i]
    for o in range(outputs):
        total = 0.0
        for i in range(n):
            total += base[i, o] * v[i]
        f[o] = total
    for s in range(pending):
        total = 0.0
        for i in range(n):
            total += V[s, i] * v[i]
        for r in range(s):
            total -= C[s, r] * h[r]
        h[s] = total
        for o in range(outputs):
            f[o] -= marks[s, STEPS + o] * total
        q -= marks[s, GAINS] * total * total
    work[-1] = q


@compiled_sums
def gaussian_row(
    rate: float,
    x: ReadVector,
    atoms: Matrix,
    inverse: Matrix,
    L: Matrix,
    base: Matrix,
    V: Matrix,
    C: Matrix,
    marks: Matrix,
    pending: int,
    work: Vector,
) -> None:
    """:func:`predict_row` at ``z = inverse k_D(x)`` of a Gaussian kernel; f is NaN if x is not finite."""
    n, d = atoms.shape
    for j in range(d):
        if not np.isfinite(x[j]):
            work[-2] = np.nan
            return
    z, k = work[:n], work[n : 2 * n]
    for i in range(n):
        total = 0.0
        for j in range(d):
            difference = x[j] - atoms[i, j]
            total += difference * difference
        k[i] = np.exp(-rate * total)
    for i in range(n):
        total = 0.0
        for j in range(i + 1):
            total += inverse[i, j] * k[j]
        z[i] = total
    predict_row(L, base, V, C, marks, pending, work)


@compiled_sums
def append_row(
    root: float, noise: float, V: Matrix, C: Matrix, marks: Matrix, pending: int, work: Vector
) -> None:
    """A row of ridge regression, predicted, behind those of the period: :meth:`kons.core.ridge.Ridge.learn`.

    ``root`` is that of its weight; its steps are given as the residuals f - y.
    """
    n = V.shape[1]
    v, h = work[n : 2 * n], work[2 * n : 2 * n + pending]
    # The form is that of a positive matrix: below 0 it is rounding.
    gain = 1.0 / (root * root * max(work[-1], 0.0) + noise)
    for i in range(n):
        V[pending, i] = root * v[i]
    for s in range(C.shape[1]):
        C[pending, s] = marks[s, GAINS] * root * h[s] if s < pending else 0.0
    marks[pending, WEIGHTS], marks[pending, GAINS] = 1.0 / noise, gain
    for o in range(STEPS, marks.shape[1]):
        marks[pending, o] *= root * gain


@compiled_sums
def learn_row(
    code: int,
    rows: Entries,
    rules: PackedRules,
    target: float,
    scale: float,
    step_size: float,
    uniform: float,
    self_kernel: float,
    coefficients: float,
    work: Vector,
    totals: Vector,
    V: Matrix,
    Z: Matrix,
    C: Matrix,
    marks: Matrix,
    pending: int,
    sampler: Matrix,
) -> tuple[int, float]:
    """One row in the coordinates it has before it is met, predicted. Returns what it did, and w*q.

    Its ``coefficients`` (T of the replay) may be NaN: a row that needs them is ASKED for them, unlearned.
    """
    n = V.shape[1]
    z, v, h = work[:n], work[n : 2 * n], work[2 * n : 2 * n + pending]
    f, M, N, R, T = np.empty(1), np.empty((1, 1)), np.empty((1, 1)), np.empty((1, 1)), np.empty((1, 1))
    f[0], M[0, 0], N[0, 0], T[0, 0] = work[-2], work[-1], 0.0, coefficients
    norm2 = 0.0
    for i in range(n):
        norm2 += z[i] * z[i]
    row = rows[0]
    row.target, row.scale, row.step_size = target, scale, step_size
    row.uniform, row.self_kernel, row.norm2 = uniform, self_kernel, norm2
    before = totals.copy()
    R[0, 0] = row.self_kernel - norm2
    if np.isnan(coefficients):
        may_enter = totals[TOTALS.free_slots] >= 1.0 and R[0, 0] > rules[0].tolerance * self_kernel
        if may_enter or not R[0, 0] >= -KERNEL_ACCURACY * self_kernel:
            return ASKED, 0.0
    R[0, 0] = max(R[0, 0], 0.0)
    if len(sampler) == n:
        # N = |L_I^-1 z|^2 + R/alpha; the row's place in V holds L_I^-1 z meanwhile.
        N[0, 0] = R[0, 0] / rules[0].regularization
        for i in range(n):
            total = z[i]
            for j in range(i):
                total -= sampler[i, j] * V[pending, j]
            V[pending, i] = total / sampler[i, i]
            N[0, 0] += V[pending, i] ** 2
    if replay_compiled(code, rows, rules, f, M, N, R, T, totals) < 0:
        for i in range(len(totals)):  # a slice that is assigned to would take seconds to compile
            totals[i] = before[i]
        return FAILED, 0.0
    for i in range(n):
        Z[pending, i], V[pending, i] = z[i], v[i]
    for s in range(C.shape[1]):
        C[pending, s] = marks[s, GAINS] * h[s] if s < pending else 0.0
    mass = row.weight * row.inverse_form
    marks[pending, WEIGHTS], marks[pending, GAINS] = row.weight, row.weight / (1.0 + mass)
    marks[pending, STEPS] = row.step
    if row.entered:
        return ENTERED, mass
    return (SAMPLED if row.sampler_weight > 0.0 else PLAIN), mass
