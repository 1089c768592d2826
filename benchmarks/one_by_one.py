"""What do blocks buy?

The same rows by a loop of ``learn_one`` and by ``advance`` in blocks of several sizes. Decisions are the
same; only the speed differs.
"""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.measuring import alternate, median_ratio
from benchmarks.reporting import Figure, Report
from benchmarks.settings import Settings
from benchmarks.streams import Stream, synthetic
from benchmarks.subjects import exact

BLOCKS = (1, 16, 64, 384)
LOOP = "learn_one, row by row"
CHOSEN = "advance, library's choice"


def run(settings: Settings) -> Report:
    rows = 1_000 if settings.quick else 2_000
    stream = synthetic(rows, 8)
    contenders = {LOOP: partial(loop, stream)}
    for size in BLOCKS:
        contenders[f"advance, blocks of {size}"] = partial(in_blocks, stream, size)
    contenders[CHOSEN] = partial(in_blocks, stream, None)
    times = alternate(contenders, rounds=3)
    table = []
    for name in contenders:
        seconds = statistics.median(times[name])
        table.append([name, seconds, seconds / rows * 1e6, median_ratio(times, name, CHOSEN)])
    return Report(
        question=f"What do blocks buy, over {rows:,} rows?",
        data=f"{stream.origin}, {rows:,} x 8",
        columns=("how", "seconds", "us a row", "times the choice"),
        table=table,
        figures=[Figure("learn_one / blocks", table[0][-1], "how many times faster blocks are")],
    )


def loop(stream: Stream) -> None:
    """Each row by itself."""
    learner = exact()
    for x, target in zip(stream.X, stream.y, strict=True):
        learner.learn_one(x, target)


def in_blocks(stream: Stream, size: int | None) -> None:
    """All rows in one call."""
    exact().advance(stream.X, stream.y, block_size=size)
