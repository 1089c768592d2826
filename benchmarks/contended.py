"""What does a busy neighbour cost?

The same replay, alternately alone and while another process keeps one core busy. BLAS threads that
wait for each other on a shared core can lose far more than the core's share: that is what is watched.
"""

from __future__ import annotations

import statistics

from benchmarks.measuring import alternate, busy_core, median_ratio
from benchmarks.reporting import Report, below
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from benchmarks.subjects import exact

GOAL = 10.0


def run(settings: Settings) -> Report:
    rows = 2_000 if settings.quick else 8_000
    stream = synthetic(rows, 8)

    def replay() -> None:
        exact().advance(stream.X, stream.y)

    times = alternate({"quiet": replay, "contended": replay}, 3, around={"contended": busy_core})
    ratio = median_ratio(times, "contended", "quiet")
    return Report(
        question=f"What does another process cost that keeps one core busy, over {rows:,} rows?",
        data=f"{stream.origin}, {rows:,} x 8",
        columns=("run", "median s", "slowest s"),
        table=[[name, statistics.median(times[name]), max(times[name])] for name in times],
        figures=[below(GOAL, "contended / quiet", ratio, "slower, but not ten times slower")],
    )
