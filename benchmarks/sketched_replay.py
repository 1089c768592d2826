"""How much dearer is Sketched-KONS than the kernel evaluations it cannot do without?

Every past point carries a coefficient, so a prediction needs the kernel at all pairs s <= t. Beside
``SketchedKONS.advance`` stand these evaluations alone, cut into the same blocks and tiles. Memory has to
stay at O(t*d + B^2), with B points kept: its rise is measured in a fresh process.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.measuring import MEGABYTE, alternate, median_ratio, rise_of_memory
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import Stream, load
from benchmarks.subjects import KERNEL, sketched, warm_up
from kons.core.function import TILE
from kons.learners.expansion import SKETCHED_BLOCK

GOAL = 2.0
FLOOR = 0.01
ROWS = 45_730


def run(settings: Settings) -> Report:
    rows = 6_000 if settings.quick else ROWS
    stream = casp(settings.folder, rows)
    learner = sketched(FLOOR)
    trace = learner.advance(stream.X, stream.y)
    times = alternate(
        {
            "replay": lambda: sketched(FLOOR).advance(stream.X, stream.y),
            "kernel": lambda: evaluate_pairs(stream.X),
        },
        rounds=3,
    )
    rise, _ = rise_of_memory(prepare, settings.folder, rows)
    features = stream.X.shape[1]
    return Report(
        question=f"What does Sketched-KONS cost beside its own kernel evaluations, over {rows:,} rows?",
        data=f"{stream.origin}, {rows:,} x {features}, {KERNEL}, floor {FLOOR:g}",
        columns=("what", "median s"),
        table=[
            ["SketchedKONS.advance", statistics.median(times["replay"])],
            ["kernel evaluations, all s <= t", statistics.median(times["kernel"])],
        ],
        figures=[
            at_most(GOAL, "replay / kernel", median_ratio(times, "replay", "kernel"), "seconds over seconds"),
            Figure("points kept", learner.size, f"of {rows:,}"),
            Figure("mean loss", float(trace.loss.mean()), "squared loss, target in [-0.5, 0.5]"),
            at_most(
                0.01,
                "rise / (t x t array)",
                rise / (8 * rows**2),
                "no t x t array: peak memory over 8 bytes x t^2",
            ),
            Figure("rise, MB", rise / MEGABYTE, "peak resident memory above imports and data"),
            Figure("t x t array, MB", 8 * rows**2 / MEGABYTE, "what is never made"),
            Figure(
                "t*d + B^2, MB",
                8 * (rows * features + learner.size**2) / MEGABYTE,
                "points and two packed factors; the ledger and trace of all rows come on top",
            ),
        ],
    )


def casp(folder: Path | None, rows: int) -> Stream:
    """The first rows of the set that the goal names."""
    return load("casp", folder, rows=ROWS, features=9).first(rows)


def evaluate_pairs(X: np.ndarray) -> float:
    """The kernel at all pairs s <= t, block by block and tile by tile, each sum used once."""
    total = 0.0
    for start in range(0, len(X), SKETCHED_BLOCK):
        block = X[start : start + SKETCHED_BLOCK]
        total += KERNEL.evaluate(block, block)[0, 0]
        for left in range(0, start, TILE):
            total += KERNEL.evaluate(block, X[left : min(left + TILE, start)])[0, 0]
    return total


def prepare(folder: Path | None, rows: int) -> Callable[[], int]:
    """In the fresh process: the data and the warm-up; the replay is the task."""
    stream = casp(folder, rows)
    warm_up()
    learner = sketched(FLOOR)

    def replay() -> int:
        learner.advance(stream.X, stream.y)
        return learner.size

    return replay
