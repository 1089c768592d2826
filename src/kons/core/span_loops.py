"""The compiled loops of a span: one row, and sums over rows. Plain loops: no BLAS, no second thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, compiled_sums
from kons.core.entry import KERNEL_ACCURACY
from kons.core.ledger import TOTALS, Ledger
from kons.core.replay import replay_compiled

__all__ = [
    "ASKED",
    "ENTERED",
    "FAILED",
    "PLAIN",
    "SAMPLED",
    "add_rows",
    "condition_rows",
    "fresh_inverse",
    "learn_row",
    "mirror",
    "outside_of",
]

# What a row did besides being learned; FAILED and ASKED for its coefficients, it was not.
PLAIN, SAMPLED, ENTERED, FAILED, ASKED = 0, 1, 2, 3, 4


def outside_of(rows: Ledger, z: Vector) -> float:
    """The new coordinate of a row that became an atom."""
    return float(np.sqrt(rows[0]["norm2"] - z @ z))


@compiled_sums
def learn_row(
    code: int,
    rows: Any,
    rules: Any,
    target: float,
    scale: float,
    step_size: float,
    uniform: float,
    self_kernel: float,
    coefficients: float,
    z: Vector,
    totals: Vector,
    P: Matrix,
    V: Matrix,
    Z: Matrix,
    gains: Vector,
    weights: Vector,
    pending: int,
    u: Vector,
    sampler: Matrix,
) -> tuple[int, float]:
    """One row in the coordinates it has before it is met. Returns what it did, and w*q.

    Its ``coefficients`` (T of the replay) may be NaN: a row that needs them is ASKED for them, unlearned.
    """
    n = len(z)
    v = V[pending]
    f, M, N = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1))
    R, T = np.zeros((1, 1)), np.full((1, 1), coefficients)
    norm2 = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += P[i, j] * z[j]
        v[i] = total
        Z[pending, i] = z[i]
        f[0] += z[i] * u[i]
        norm2 += z[i] * z[i]
    for s in range(pending):
        total = 0.0
        for i in range(n):
            total += V[s, i] * z[i]
        total *= gains[s]
        for i in range(n):
            v[i] -= total * V[s, i]
    for i in range(n):
        M[0, 0] += z[i] * v[i]
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
        N[0, 0] = R[0, 0] / rules[0].regularization
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += sampler[i, j] * z[j]
            N[0, 0] += total * z[i]
    if replay_compiled(code, rows, rules, f, M, N, R, T, totals) < 0:
        totals[:] = before
        return FAILED, 0.0
    for i in range(n):
        u[i] -= row.step * v[i]
    weights[pending] = row.weight
    gains[pending] = row.weight / (1.0 + row.weight * row.inverse_form)
    mass = row.weight * row.inverse_form
    if row.entered:
        return ENTERED, mass
    return (SAMPLED if row.sampler_weight > 0.0 else PLAIN), mass


@compiled
def condition_rows(W: Matrix, M: Matrix, gains: Vector) -> None:
    """From ``P z_t`` to ``P_{t-1} z_t`` in place, with M as the replay of the block left it."""
    for j in range(W.shape[0]):
        if gains[j] > 0.0:
            for t in range(j + 1, W.shape[0]):
                factor = gains[j] * M[j, t]
                for i in range(W.shape[1]):
                    W[t, i] -= factor * W[j, i]


@compiled
def add_rows(A: Matrix, Z: Matrix, weights: Vector, count: int) -> None:
    """``A += sum w z z^T`` over the first ``count`` rows z, four at a time; the lower triangle only."""
    n = A.shape[0]
    for start in range(0, count, 4):
        stop = min(start + 4, count)
        for i in range(n):
            if stop - start == 4:
                a, b = weights[start] * Z[start, i], weights[start + 1] * Z[start + 1, i]
                c, d = weights[start + 2] * Z[start + 2, i], weights[start + 3] * Z[start + 3, i]
                za, zb, zc, zd = Z[start], Z[start + 1], Z[start + 2], Z[start + 3]
                for j in range(i + 1):
                    A[i, j] += (a * za[j] + b * zb[j]) + (c * zc[j] + d * zd[j])
            else:
                for s in range(start, stop):
                    a = weights[s] * Z[s, i]
                    for j in range(i + 1):
                        A[i, j] += a * Z[s, j]


@compiled
def mirror(A: Matrix) -> None:
    """Copy the lower triangle to the upper one."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[j, i] = A[i, j]


@compiled
def fresh_inverse(A: Matrix) -> Matrix:
    """``A^-1`` of a symmetric matrix with eigenvalues of at least alpha, by its Cholesky factor.

    A plain loop: it costs what BLAS does at this size within a factor of a few, is called once in a
    thousand rows, and takes no second thread.
    """
    n = A.shape[0]
    L = A.copy()
    mirror(L)
    # Right-looking, on the upper triangle by rows.
    for k in range(n):
        pivot = np.sqrt(L[k, k])
        for j in range(k, n):
            L[k, j] /= pivot
        for i in range(k + 1, n):
            factor = L[k, i]
            for j in range(i, n):
                L[i, j] -= factor * L[k, j]
    # Rows of U^-T (U upper, A = U^T U), by forward substitution.
    inverse = np.zeros((n, n))
    for k in range(n):
        for s in range(k):
            factor = L[s, k]
            for j in range(s + 1):
                inverse[k, j] -= factor * inverse[s, j]
        inverse[k, k] = 1.0
        for j in range(k + 1):
            inverse[k, j] /= L[k, k]
    product = np.zeros((n, n))
    add_rows(product, inverse, np.ones(n), n)
    mirror(product)
    return product
