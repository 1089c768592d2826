"""What does AutoKONS cost row by row, as in River: beside blocks, and beside the forest?

Every row is predicted (``predict_one``), then learned (``learn_one``), from the first on: all decisions are
in the time. The sets and rivals are those of ``rivals`` (``--cache`` keeps what these reached); times are CPU
times, the forest's in units of River's scaler | linear on the same rows.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks import auto, rivals
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons import AutoKONS
from kons.compilation import cpu_clock

TIMES_BLOCKS = 2.0
PART_OF_FOREST = 1 / 8
# In the range of the target, or the error rate: rounding is all that tells rows from blocks.
SAME_LOSS = 1e-4


def run(settings: Settings) -> Report:
    table, figures = [], []
    notes: list[str] = []
    with blas_threads(1):
        for name, stream, found in auto.contests(settings, notes):
            blocks_loss, blocks, _, _ = auto.measured(stream, seeds=[0])
            loss, rows = measured(stream)
            forest = rivals.forest(found)
            part = math.nan if forest is None else rows / rivals.reference(stream) / forest.relative_time
            table.append([name, f"{rows:.0f}", f"{blocks:.0f}", f"{rows / blocks:.2f}", f"{part:.3f}"])
            figures.append(at_most(TIMES_BLOCKS, f"{name}: time, times that of blocks", rows / blocks, "CPU"))
            figures.append(
                at_most(SAME_LOSS, f"{name}: loss beside blocks", abs(loss - blocks_loss), "apart")
            )
            if forest is not None:
                figures.append(at_most(PART_OF_FOREST, f"{name}: time, part of ARF(10)", part, "CPU"))
    return Report(
        question="What does AutoKONS cost row by row, as in River?",
        data="raw columns and targets, defaults only; predict_one and learn_one of every row",
        columns=("set", "us a row", "in blocks", "times blocks", "part of ARF's time"),
        table=table,
        figures=figures,
        notes=notes,
    )


def measured(stream: RawStream) -> tuple[float, float]:
    """Loss, and CPU time a row in microseconds."""
    rows, targets = stream.X.tolist(), stream.y.tolist()
    model, said = AutoKONS(stream.task), []
    start = cpu_clock()
    for x, y in zip(rows, targets, strict=True):
        said.append(model.predict_one(x))
        model.learn_one(x, y)
    microseconds = (cpu_clock() - start) / len(rows) * 1e6
    prediction = np.array([0.0 if label is None else label for label in said], dtype=np.float64)
    return stream.loss(prediction), microseconds
