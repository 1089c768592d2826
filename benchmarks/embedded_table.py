"""What does a row cost over the number of atoms, one by one and in blocks?

d = 8, one thread; the bandwidth is small enough that every dictionary is full before the clock starts.
"""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.embedded_rows import one_by_one
from benchmarks.measuring import alternate, blas_threads
from benchmarks.reporting import Report
from benchmarks.settings import Settings
from benchmarks.streams import Stream, synthetic
from benchmarks.subjects import filled
from kons import EmbeddedKONS

ATOMS = (20, 50, 100, 200, 400, 800)
BLOCKS = (7, 64, None)
BANDWIDTH = 0.2
WORK = 4e8  # atoms^2 x rows of a run, about


def run(settings: Settings) -> Report:
    stream = synthetic(10_000, 8)
    table = []
    with blas_threads(1):
        for atoms in ATOMS[:3] if settings.quick else ATOMS:
            part = stream.first(min(len(stream), max(1_000, int(WORK / atoms**2))))
            table.append([atoms, len(part), *microseconds(part, stream, atoms)])
    return Report(
        question="What does a row cost over the number of atoms, one by one and in blocks?",
        data=f"{stream.origin}, d = 8, one thread, bandwidth {BANDWIDTH:g}; us a row, medians of 3 rounds",
        columns=(
            "atoms",
            "rows",
            "predict_one + learn_one",
            *(f"advance, {'its choice' if size is None else f'blocks of {size}'}" for size in BLOCKS),
        ),
        table=table,
    )


def microseconds(part: Stream, stream: Stream, atoms: int) -> list[float]:
    """One number for the row loop, and one for each size of blocks."""
    learner = filled(stream.X[: 10 * atoms], stream.y[: 10 * atoms], bandwidth=BANDWIDTH, max_atoms=atoms)
    points, targets = list(part.X), part.y.tolist()
    contenders = {"loop": partial(one_by_one, learner, points, targets)}
    for size in BLOCKS:
        contenders[f"blocks of {size}"] = partial(in_blocks, learner, part, size)
    times = alternate(contenders, rounds=3)
    return [statistics.median(of_way) / len(part) * 1e6 for of_way in times.values()]


def in_blocks(learner: EmbeddedKONS, part: Stream, size: int | None) -> None:
    learner.advance(part.X, part.y, block_size=size)
