"""Does AutoKONS, raw data and defaults only, beat what River's users would pick, in a small part of the time?

The sets and rivals are those of ``rivals`` (``--cache`` keeps what these reached). Times are CPU times in
units of River's scaler | linear on the same rows, in which the forest's are known from any run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import rivals
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Report, at_most, below
from benchmarks.settings import Settings
from benchmarks.streams import QUICK_ROWS
from kons import AutoKONS
from kons.compilation import cpu_clock

GOALS = {
    "cadata": 0.0140,
    "cpusmall": 0.0012,
    "bike_hourly": 0.0040,
    "electricity": 0.095,
    "magic04": 0.130,
    "parkinson": 0.0070,
    "casp": 0.0480,
    "elevators": 0.0011,
    "cod-rna": 0.052,
}
PART_OF_FOREST = 1 / 20
# Of losses the mean over these is told: one seed's differ by up to three parts in a hundred.
SEEDS = (0, 1, 2)


def run(settings: Settings) -> Report:
    table, figures, ratios = [], [], []
    notes: list[str] = []
    with blas_threads(1):
        for name, stream, found in contests(settings, notes):
            goal = GOALS[name]
            loss, microseconds, first, constant = measured(stream)
            best, forest = rivals.best_of_river(found, len(stream.y)), rivals.forest(found)
            relative = microseconds / rivals.reference(stream)
            part = math.nan if forest is None else relative / forest.relative_time
            ratios.append(loss / best.loss)
            table.append(
                [name, f"{loss:.5f}", f"{best.loss:.5f}", best.name, f"{microseconds:.0f}", f"{part:.4f}"]
            )
            figures.append(below(goal, f"{name}: loss", loss, "progressive"))
            if forest is not None:
                figures.append(at_most(PART_OF_FOREST, f"{name}: time, part of ARF(10)", part, "CPU"))
            figures.append(at_most(2.0, f"{name}: first 100 rows / constant", first / constant, "loss"))
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        figures.append(at_most(0.60, "loss / best of River, geometric mean", mean, "with or without lags"))
    return Report(
        question="Does AutoKONS beat what River's users would pick, in a small part of the time?",
        data="raw columns and targets, defaults only; MSE in units of the range, or error rate; three seeds",
        columns=("set", "AutoKONS", "best of River", "which", "us a row", "part of ARF's time"),
        table=table,
        figures=figures,
        notes=notes,
    )


def contests(settings: Settings, notes: list[str]) -> Iterator[tuple[str, RawStream, list[rivals.Result]]]:
    """Each set that has a file, with what the rivals reached; those that have none are noted."""
    rows = QUICK_ROWS if settings.quick else None
    for name in GOALS:
        stream = rivals.load(settings.folder, name)
        if stream is None:
            notes.append(f"{name}: no file, skipped.")
            continue
        found = rivals.results(settings.folder, name, cache=settings.cache, slow=settings.slow, rows=rows)
        yield name, stream if rows is None else stream.first(rows), found


def measured(stream: RawStream, seeds: Sequence[int] = SEEDS) -> tuple[float, float, float, float]:
    """Loss, CPU time a row in microseconds, and the loss of the first 100 rows beside the running mean's.

    Losses are means over seeds, the time is the median.
    """
    losses, beginnings, microseconds = [], [], []
    for seed in seeds:
        start = cpu_clock()
        trace = AutoKONS(stream.task, seed=seed).advance(stream.X, stream.y)
        microseconds.append((cpu_clock() - start) / len(stream.y) * 1e6)
        labels = [0.0 if label is None else label for label in trace.prediction]
        prediction = np.array(labels, dtype=np.float64)
        losses.append(stream.loss(prediction))
        beginnings.append(stream.loss(prediction[:100]))
    means = np.concatenate([[0.0], np.cumsum(stream.y)[:-1] / np.arange(1, len(stream.y))])
    return (
        float(np.mean(losses)),
        float(np.median(microseconds)),
        float(np.mean(beginnings)),
        stream.loss(means[:100]),
    )
