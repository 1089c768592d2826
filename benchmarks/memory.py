"""How much memory does an exact replay take, beside the packed triangle it has to keep?

The rise of resident memory above imports and data, in a fresh process (``measuring.rise_of_memory``),
over 8 bytes times T^2/2.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measuring import MEGABYTE, rise_of_memory
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from benchmarks.subjects import exact, warm_up

GOAL = 1.3


def run(settings: Settings) -> Report:
    rows = 3_000 if settings.quick else 8_000
    rise, _ = rise_of_memory(prepare, rows)
    triangle = 8 * rows**2 / 2
    return Report(
        question=f"How much memory does a replay of {rows:,} rows take?",
        data=f"synthetic, {rows:,} x 8, in a fresh process",
        figures=[
            at_most(GOAL, "rise / triangle", rise / triangle, "over the packed triangle of T^2/2 numbers"),
            Figure("rise, MB", rise / MEGABYTE, "peak resident memory above imports and data"),
            Figure("triangle, MB", triangle / MEGABYTE, "8 bytes x T^2/2"),
        ],
    )


def prepare(rows: int) -> Callable[[], int]:
    """In the fresh process: the data and the warm-up; the replay is the task."""
    stream = synthetic(rows, 8)
    warm_up()
    learner = exact()

    def replay() -> int:
        learner.advance(stream.X, stream.y)
        return learner.size

    return replay
