"""How much dearer is a replay than factoring the Gram matrix once?

Beside ``KONS.advance`` over T rows stands what any exact method must at least do: the Gram matrix K by
the same kernel, then LAPACK's ``dpotrf`` on K + alpha*I in place. Both under the same limit on threads.
"""

from __future__ import annotations

import statistics

import numpy as np
from scipy.linalg import lapack

from benchmarks.measuring import alternate, blas_threads, ratios
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from benchmarks.subjects import KERNEL, REGULARIZATION, exact

GOAL = 1.2


def run(settings: Settings) -> Report:
    rows = 2_000 if settings.quick else 8_000
    stream = synthetic(rows, 8)
    contenders = {
        "replay": lambda: exact().advance(stream.X, stream.y),
        "factor": lambda: factor_gram(stream.X),
    }
    table, figures = [], []
    for threads, label in ((1, "one thread"), (None, "all threads")):
        with blas_threads(threads):
            factor_gram(stream.X[:600])
            times = alternate(contenders, rounds=settings.rounds)
        per_round = ratios(times, "replay", "factor")
        ratio = statistics.median(per_round)
        seconds = [statistics.median(times[name]) for name in contenders]
        table.append([label, *seconds, per_round[0], ratio, per_round[-1]])
        figures.append(
            at_most(GOAL, f"replay / factor, {label}", ratio, "seconds of advance over Gram + dpotrf")
        )
    return Report(
        question=f"What does a replay of {rows:,} rows cost beside one Cholesky factorization?",
        data=f"{stream.origin}, {rows:,} x 8, {KERNEL}",
        columns=("BLAS", "replay s", "Gram + dpotrf s", "lowest ratio", "median", "highest"),
        table=table,
        figures=figures,
    )


def factor_gram(X: np.ndarray) -> None:
    """The Cholesky factor of K + alpha*I, in the memory of K."""
    K = KERNEL.gram(X)
    K.flat[:: len(K) + 1] += REGULARIZATION
    # K is symmetric: its transpose is the same matrix in the order LAPACK wants, without a copy.
    _, failed = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise RuntimeError("K + alpha*I is not positive definite")
