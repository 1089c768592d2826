"""Is AutoKONS harmless before it knows anything? Rows 2 to 100, beside the mean or commonest label so far.

The sets are those of ``tree_rivals``. One stretch of a hundred rows says little: ten permutations of the
rows, in the order of time ten stretches, evenly apart. The losses of all are added before ratios are made.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.contenders import numbers
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.tree_rivals import constant, load, losses, rows_of, streams
from kons import AutoKONS

ROWS, STARTS = 100, 10
ON_AVERAGE, AT_MOST = 1.05, 1.15


def run(settings: Settings) -> Report:
    table, notes, ratios = [], [], {}
    with blas_threads(1):
        for name, _ in streams(settings, notes):
            ours, means = np.sum([compared(part) for part in beginnings(name, settings)], axis=0)
            ratios[name] = float(ours / means)
            table.append([name, float(ours), float(means), ratios[name]])
    figures = []
    if ratios:
        worst = max(ratios, key=ratios.__getitem__)
        average = float(np.mean(list(ratios.values())))
        figures = [
            at_most(ON_AVERAGE, "rows 2 to 100 / constant, mean over sets", average, "loss"),
            at_most(AT_MOST, "rows 2 to 100 / constant, largest", ratios[worst], worst),
        ]
    return Report(
        question="Is AutoKONS harmless before it knows anything?",
        data=f"raw columns, defaults; sums of losses of rows 2 to {ROWS} over {STARTS} beginnings",
        columns=("set", "AutoKONS", "constant", "ratio"),
        table=table,
        figures=figures,
        notes=notes,
        details={"ratios": ratios},
    )


def beginnings(name: str, settings: Settings) -> Iterator[RawStream]:
    """The first rows of ten orders; in the order of time ten stretches."""
    stream = load(name, settings)
    starts = np.linspace(0, len(stream.y) - ROWS, STARTS).astype(int)
    for k, start in enumerate(starts):
        if stream.time_ordered:
            yield stream._replace(X=stream.X[start : start + ROWS], y=stream.y[start : start + ROWS])
        else:
            yield load(name, settings, k).first(ROWS)


def compared(stream: RawStream) -> tuple[float, float]:
    """The sums of the losses of AutoKONS and of the constant behind the first row."""
    prediction = numbers(AutoKONS(stream.task).advance(*rows_of(stream)).prediction)
    ours, means = losses(prediction, stream), losses(constant(stream), stream)
    return float(ours[1:].sum()), float(means[1:].sum())
