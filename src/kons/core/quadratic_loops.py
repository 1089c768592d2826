"""The compiled loops of one row in :mod:`kons.core.quadratic`. Plain loops: no BLAS, no second thread.

A loop over many rows that lives in machine code is, with those of :class:`kons.core.sequential.Sequential`::

    work[:B] = z
    predict_row(B, L, base, V, C, marks, pending, work)  f is work[-1 - K:-1], q is work[-1]
    gain = keep_row(1.0, w, V, C, marks, pending, work)  w the row's weight in A, gain w/(1 + w q)
    Z[pending, :] = z;  marks[pending, STEPS + k] = s_k  f_k moves by -s_k z'^T A^-1 z
    pending += 1
    if pending == len(Z):                                at any time, in fact
        end_period(prior, S, L, base, Z, V, C, marks, pending, decay);  pending = 0

The squared loss of residual r = f - y has the step gain*r; any loss with slope g at f has g/(1 + w q). Where
``c = sum w z y`` is kept beside, as it can be under the squared loss, a period ends with :func:`take_in_rows`
and :func:`fit_rows`, and no rounding of its steps outlives it.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Matrix, ReadMatrix, Vector
from kons.compilation import compiled_sums, inner_sums

__all__ = [
    "GAINS",
    "STEPS",
    "WEIGHTS",
    "append_row",
    "apply_rows",
    "end_period",
    "factor_rows",
    "fit_rows",
    "inverse_rows",
    "keep_row",
    "predict_row",
    "take_in_rows",
    "weighted_rows",
    "weights_of",
    "whiten_weights",
]

#: Of each row of a period, in columns: its weight in A, the gain w/(1 + w q), and its steps, one an output.
WEIGHTS, GAINS, STEPS = range(3)
EPSILON = float(np.finfo(np.float64).eps)


@compiled_sums
def predict_row(
    size: int, L: Matrix, base: Matrix, V: Matrix, C: Matrix, marks: Matrix, pending: int, work: Vector
) -> None:
    """``work`` begins with z, and becomes z, v, h, f and q of :mod:`kons.core.quadratic`.

    So many coordinates count: V and ``work`` may have room for more. v is given in those that L has not.
    """
    (start, outputs), n = base.shape, V.shape[1]
    z, v, h = work[:n], work[n : 2 * n], work[2 * n : 2 * n + pending]
    f = work[len(work) - 1 - outputs :]
    q = 0.0
    for i in range(start):
        v[i] = 1.0 / L[i, i]
    last = 0.0
    for i in range(start):
        # The last product apart, and no division: a row waits for nothing else of the row before it.
        total = z[i]
        for j in range(i - 1):
            total -= L[i, j] * v[j]
        last = v[i] * (total - L[i, max(i - 1, 0)] * last)
        v[i] = last
    for i in range(size):
        q += v[i] * v[i]
    for o in range(outputs):
        total = 0.0
        for i in range(start):
            total += base[i, o] * v[i]
        f[o] = total
    for s in range(pending):
        total = 0.0
        for i in range(size):
            total += V[s, i] * v[i]
        for r in range(s):
            total -= C[s, r] * h[r]
        h[s] = total
        for o in range(outputs):
            f[o] -= marks[s, STEPS + o] * total
        q -= marks[s, GAINS] * total * total
    work[-1] = q


@compiled_sums
def keep_row(
    root: float, weight: float, V: Matrix, C: Matrix, marks: Matrix, pending: int, work: Vector
) -> float:
    """Put ``root`` times a predicted row behind those of the period, with its weight in A; returns its gain.

    Its coordinates and steps are the caller's to write.
    """
    n = V.shape[1]
    v, h = work[n : 2 * n], work[2 * n : 2 * n + pending]
    # The form is that of a positive matrix: below 0 it is rounding.
    gain: float = weight / (1.0 + weight * (root * root * max(work[-1], 0.0)))
    for i in range(n):
        V[pending, i] = root * v[i]
    for s in range(pending):
        C[pending, s] = marks[s, GAINS] * root * h[s]
    marks[pending, WEIGHTS], marks[pending, GAINS] = weight, gain
    return gain


@inner_sums
def append_row(
    root: float, noise: float, V: Matrix, C: Matrix, marks: Matrix, pending: int, work: Vector
) -> None:
    """A row of ridge regression, predicted, behind those of the period: :meth:`kons.core.ridge.Ridge.learn`.

    ``root`` is that of its weight; its steps are given as the residuals f - y.
    """
    gain = keep_row(root, 1.0 / noise, V, C, marks, pending, work)
    for o in range(STEPS, marks.shape[1]):
        marks[pending, o] *= root * gain


@compiled_sums
def factor_rows(prior: Matrix, S: Matrix, L: Matrix) -> bool:
    """``L L^T = prior + S``, lower triangles; False where that is not finite, and L is spoiled."""
    n = len(S)
    for i in range(n):
        for j in range(i):
            total = prior[i, j] + S[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
        diagonal = prior[i, i] + S[i, i]
        total = diagonal
        for k in range(i):
            total -= L[i, k] * L[i, k]
        # A squared pivot below its rounding is rounding, and may be negative.
        L[i, i] = np.sqrt(max(total, (n + 1.0) * EPSILON * diagonal))
        if not 0.0 < L[i, i] < np.inf:
            return False
    return True


@inner_sums
def inverse_rows(L: Matrix, P: Matrix) -> None:
    """``P = (L L^T)^-1``, both triangles; O(n^3). For a few coordinates, and many products with it."""
    n = len(L)
    for i in range(n):  # first L^-1, in the lower triangle
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total -= L[i, k] * P[k, j]
            P[i, j] = total / L[i, i]
        P[i, i] = 1.0 / L[i, i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += P[k, i] * P[k, j]
            P[j, i] = total  # what is below the diagonal is still needed
        for j in range(i):
            P[i, j] = P[j, i]


@inner_sums
def apply_rows(P: Matrix, b: Vector, x: Vector) -> float:
    """``x = P b``, and ``b^T x``."""
    form = 0.0
    for i in range(len(b)):
        total = 0.0
        for j in range(len(b)):
            total += P[i, j] * b[j]
        x[i] = total
        form += b[i] * total
    return form


@inner_sums
def take_in_rows(
    prior: Matrix, S: Matrix, L: Matrix, Z: Matrix, marks: Matrix, pending: int, decay: float
) -> bool:
    """``S <- decay (S + sum w z z^T)`` over the rows of a period, and L anew; as :func:`factor_rows`."""
    n = len(S)
    for s in range(pending):
        for i in range(n):
            weighted = marks[s, WEIGHTS] * Z[s, i]
            for j in range(i + 1):
                S[i, j] += weighted * Z[s, j]
    for i in range(n):
        for j in range(i + 1):
            S[i, j] *= decay
    return factor_rows(prior, S, L)


@inner_sums
def fit_rows(L: Matrix, c: Matrix, base: Matrix) -> None:
    """``base = L^-1 c``, that is ``u = A^-1 c``."""
    n, outputs = base.shape
    for o in range(outputs):
        for i in range(n):
            total = c[i, o]
            for j in range(i):
                total -= L[i, j] * base[j, o]
            base[i, o] = total / L[i, i]


@compiled_sums
def may_be_of_squares(S: Matrix) -> bool:
    """Whether a lower triangle keeps ``S_ij^2 <= S_ii S_jj``, up to the rounding of sums."""
    largest = 0.0
    for i in range(len(S)):
        largest = max(largest, S[i, i])
    rounding = 1e-6 * math.sqrt(largest)
    for i in range(len(S)):
        if S[i, i] < -rounding * rounding:
            return False
        most = math.sqrt(max(S[i, i], 0.0)) + rounding
        for j in range(i):
            if not abs(S[i, j]) <= most * (math.sqrt(max(S[j, j], 0.0)) + rounding):
                return False
    return True


@compiled_sums
def weights_of(
    L: ReadMatrix, base: ReadMatrix, V: ReadMatrix, C: ReadMatrix, marks: ReadMatrix, pending: int
) -> Matrix:
    """u of each output, as rows, after the rows of a period that wait."""
    n, outputs = base.shape
    steps, U = np.empty(pending), np.empty((outputs, n))
    for o in range(outputs):
        u = U[o]
        for i in range(n):
            u[i] = base[i, o]
        for s in range(pending):
            steps[s] = marks[s, STEPS + o]
        for s in range(pending - 1, -1, -1):  # gather, of kons.core.replay
            step = steps[s]
            for r in range(s):
                steps[r] -= C[s, r] * step
            for i in range(n):
                u[i] -= V[s, i] * step
        for i in range(n - 1, -1, -1):
            u[i] /= L[i, i]
            last = u[i]
            for j in range(i):
                u[j] -= L[i, j] * last
    return U


@compiled_sums
def whiten_weights(L: Matrix, U: Matrix, base: Matrix) -> None:
    """``base = L^T u`` of each output, as columns, where U has them as rows."""
    outputs, n = U.shape
    whitened = np.empty(n)
    for o in range(outputs):
        for i in range(n):
            whitened[i] = 0.0
        for i in range(n):
            weight = U[o, i]
            for j in range(i + 1):
                whitened[j] += L[i, j] * weight
        for i in range(n):
            base[i, o] = whitened[i]


@compiled_sums
def weighted_rows(Z: Matrix, marks: Matrix, pending: int, size: int, decay: float) -> Matrix:
    """The rows of a period in so many coordinates, times the roots of their weights, which decay."""
    rows = np.empty((pending, size))
    for s in range(pending):
        root = np.sqrt(decay * marks[s, WEIGHTS])
        for i in range(size):
            rows[s, i] = root * Z[s, i]
    return rows


@compiled_sums
def end_period(
    prior: Matrix,
    S: Matrix,
    L: Matrix,
    base: Matrix,
    Z: Matrix,
    V: Matrix,
    C: Matrix,
    marks: Matrix,
    pending: int,
    decay: float,
) -> bool:
    """A takes in the rows of the period, decays towards its prior Q and is factored anew; returns whether.

    ::

        S <- decay (S + sum w z z^T),   c <- decay A u,   u <- (Q + S)^-1 c
        L^T u = L^T u_before - (1 - decay) L^-1 Q u_before

    O(B^2 n + B^3/3) for n rows. For a B up to some hundred: beyond, BLAS is faster.
    """
    n, outputs = base.shape
    U = weights_of(L, base, V, C, marks, pending)
    if not take_in_rows(prior, S, L, Z, marks, pending, decay):
        return False
    whitened = np.empty(n)
    for o in range(outputs):
        u = U[o]
        for i in range(n):
            total = 0.0
            if decay < 1.0:
                for j in range(n):
                    total += (decay - 1.0) * prior[i, j] * u[j]
                for j in range(i):
                    total -= L[i, j] * whitened[j]
            whitened[i] = total / L[i, i]
        for j in range(n):
            for i in range(j + 1):
                whitened[i] += L[j, i] * u[j]
        for i in range(n):
            base[i, o] = whitened[i]
    return True
