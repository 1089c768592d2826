"""How long does AutoKONS keep one row waiting? Counts of CPU times of predict_one and learn_one, by decade.

Defaults, every row one by one, five runs of each set of ``tree_rivals``. Another process that takes the
caches, or a collection of garbage, lengthens some row of most runs: the figure is the second smallest of the
five longest rows.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.tree_rivals import rows_of, streams
from kons import AutoKONS
from kons.compilation import cpu_clock

RUNS, GOAL = 5, 50.0
#: Between two decades, in milliseconds.
EDGES = (0.01, 0.1, 1.0, 10.0, 100.0)
DECADES = ("< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "< 100 ms", "longer")


def run(settings: Settings) -> Report:
    table, figures, notes = [], [], []
    total = np.zeros(len(DECADES), dtype=int)
    with blas_threads(1):
        for name, stream in streams(settings, notes):
            runs = [milliseconds(stream) for _ in range(2 if settings.quick else RUNS)]
            counts = by_decade(np.concatenate(runs))
            total += counts
            longest = sorted(float(times.max()) for times in runs)
            middle = float(np.median(np.concatenate(runs)) * 1e3)
            table.append([name, *counts.tolist(), middle, longest[1], longest[-1]])
            figures.append(
                at_most(GOAL, f"{name}: longest row, ms", longest[1], "second smallest of the runs")
            )
            print(f"  {name}: {longest[1]:.1f} ms", flush=True)
    if table:
        table.append(
            ["all sets", *total.tolist(), "", max(row[-2] for row in table), max(row[-1] for row in table)]
        )
    return Report(
        question="How long does AutoKONS keep one row waiting?",
        data="raw columns, defaults; CPU time of predict_one and learn_one of every row, all runs",
        columns=("set", *DECADES, "median, us", "longest, 2nd smallest, ms", "longest of all, ms"),
        table=table,
        figures=figures,
        notes=notes,
    )


def milliseconds(stream: RawStream) -> np.ndarray:
    """CPU time of each row, predicted and learned."""
    X, y = rows_of(stream)
    model, times = AutoKONS(stream.task), np.empty(len(y))
    for i, (x, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        start = cpu_clock()
        model.predict_one(x)
        model.learn_one(x, target)
        times[i] = cpu_clock() - start
    return 1e3 * times


def by_decade(times: np.ndarray) -> np.ndarray:
    """How many of the times, in milliseconds, are in each of :data:`DECADES`."""
    return np.bincount(np.digitize(times, EDGES), minlength=len(DECADES))
