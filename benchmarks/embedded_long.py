"""Does a stream of a million rows leave the learner as fast, as small and as exact as at its start?

The rows drift: a wave whose direction turns slowly within a chunk, and jumps between chunks. Only one
chunk exists at a time (``--slow``: ten million rows). After each, the inverse of A that the learner carries
is held against one computed afresh from the running sum. By ``advance``, row by row, and with forgetting; and
AutoKONS, of which A is that of stacking.

The last tenth and the second are far apart in time, and a busy machine may slow one of them only. So a
copy made after a tenth learns the last tenth beside the old learner, chunk by chunk in turn.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import psutil

from benchmarks.embedded_rows import one_by_one
from benchmarks.measuring import MEGABYTE, blas_threads
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.subjects import embedded
from kons import AutoKONS, EmbeddedKONS
from kons.compilation import wall_clock
from kons.streams import drifting

Learner = EmbeddedKONS | AutoKONS

CHUNKS, DIMENSION = 100, 3
EXACT, SLOWER, RISE = 1e-8, 1.15, 5.0


def run(settings: Settings) -> Report:
    rows = 50_000 if settings.quick else 10_000_000 if settings.slow else 1_000_000
    table, figures = [], []
    with blas_threads(1):
        for how, (learn, make) in WAYS.items():
            found = watch(learn, make(), rows // CHUNKS)
            table.append([how, *found.values()])
            figures += [
                Figure(
                    f"{how}: finite", found["finite"], "predictions", f"all {rows:,}", found["finite"] == rows
                ),
                at_most(EXACT, f"{how}: inverse", found["error"], "relative, largest over the chunks"),
                at_most(SLOWER, f"{how}: last / 2nd tenth", found["slower"], "median time a row"),
                Figure(
                    f"{how}: old / young", found["beside"], "the same in turn: what a busy machine leaves"
                ),
                at_most(
                    RISE, f"{how}: memory, MB", found["rise"], "resident, from 10 % of the rows to the end"
                ),
            ]
    return Report(
        question=f"Is the learner after {rows:,} rows as fast, as small and as exact as at the start?",
        data=f"drifting waves, {CHUNKS} chunks of {rows // CHUNKS:,} x {DIMENSION}; 100 atoms, one thread",
        columns=(
            "how",
            "finite",
            "atoms",
            "error",
            "us, 2nd tenth",
            "us, last",
            "last / 2nd",
            "old / young",
            "MB risen",
            "loss",
        ),
        table=table,
        figures=figures,
    )


def advance(learner: Learner, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return learner.advance(X, y).prediction


def row_by_row(learner: Learner, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array(one_by_one(learner, list(X), y.tolist()))


WAYS: dict[str, tuple[Callable[..., np.ndarray], Callable[[], Learner]]] = {
    "advance": (advance, partial(embedded, 1.0, bound=1.0)),
    "row by row": (row_by_row, partial(embedded, 1.0, bound=1.0)),
    "forgetting": (advance, partial(embedded, 1.0, bound=1.0, forgetting=0.999)),
    "auto": (advance, AutoKONS),
}


def watch(learn: Callable[..., np.ndarray], learner: Learner, rows: int) -> dict[str, float]:
    """Learn all chunks; what became of exactness, speed and memory."""
    seconds, errors, losses, resident, finite = [], [], [], [], 0
    tenth = CHUNKS // 10
    young, young_seconds = learner, []
    for chunk in range(CHUNKS):
        X, y = drifting(rows, DIMENSION, seed=chunk)
        start = wall_clock()
        prediction = learn(learner, X, y)
        seconds.append(wall_clock() - start)
        if chunk == tenth:
            young = copy.deepcopy(learner)
        if chunk >= CHUNKS - tenth:
            start = wall_clock()
            learn(young, X, y)
            young_seconds.append(wall_clock() - start)
        finite += int(np.count_nonzero(np.isfinite(prediction)))
        losses.append(float(np.mean((prediction - y) ** 2)))
        errors.append(inverse_error(learner))
        resident.append(psutil.Process().memory_info().rss)
    beside = (old / new for old, new in zip(seconds[-tenth:], young_seconds, strict=True))
    early, late = statistics.median(seconds[tenth : 2 * tenth]), statistics.median(seconds[-tenth:])
    return {
        "finite": finite,
        "atoms": learner.size,
        "error": max(errors),
        "early": early / rows * 1e6,
        "late": late / rows * 1e6,
        "slower": late / early,
        "beside": statistics.median(beside),
        "rise": (resident[-1] - resident[tenth - 1]) / MEGABYTE,
        "loss": statistics.mean(losses),
    }


def inverse_error(learner: Learner) -> float:
    """The inverse forms that are carried, rows still pending included, against those of a fresh inverse."""
    embeds = isinstance(learner, EmbeddedKONS)
    span = learner._quadratics[0] if embeds else learner._targets.current.stackings[0].moved
    directions = np.random.default_rng(0).normal(size=(200, len(span)))
    fresh = np.einsum("ij,ij->i", directions, np.linalg.solve(span.running_sum(), directions.T).T)
    return float(np.abs(span.inverse_forms(directions) / fresh - 1.0).max())
