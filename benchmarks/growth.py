"""How does the time of an exact replay grow, and does a set of 20,640 rows complete?

One run per size, all of them prefixes of one stream; the exponent is the slope of log seconds over
log T. By flops it is 3; lower-order work brings it down, a busy machine up.
"""

from __future__ import annotations

import numpy as np

from benchmarks.reporting import Figure, Report
from benchmarks.settings import Settings
from benchmarks.streams import load
from benchmarks.subjects import exact
from kons.compilation import wall_clock


def run(settings: Settings) -> Report:
    stream = load("cadata", settings.folder, rows=20_640, features=8)
    if settings.quick:
        stream = stream.first(5_000)
    sizes = [1_000 * 2**i for i in range(5) if 1_000 * 2**i <= len(stream)] + [len(stream)]
    table, completed = [], 0
    for rows in sizes:
        part = stream.first(rows)
        start = wall_clock()
        trace = exact().advance(part.X, part.y)
        seconds = wall_clock() - start
        completed = int(np.count_nonzero(np.isfinite(trace.prediction)))
        table.append([rows, seconds, rows / seconds, float(trace.loss.mean()), trace.log_determinant])
    exponent = float(np.polyfit(np.log(sizes), np.log([row[1] for row in table]), 1)[0])
    last = float(np.polyfit(np.log(sizes[-3:]), np.log([row[1] for row in table[-3:]]), 1)[0])
    return Report(
        question=f"How does the time grow with the number of rows, up to {len(stream):,}?",
        data=f"{stream.origin}, {len(stream):,} x 8",
        columns=("T", "seconds", "rows a second", "mean loss", "log det"),
        table=table,
        figures=[
            Figure("exponent, all sizes", exponent, "seconds grow as T to this power; 3 by flops"),
            Figure("exponent, last three", last, "the same over the largest sizes"),
            Figure(
                "rows completed",
                completed,
                "rows of the largest run with a finite prediction",
                goal=f"all {len(stream):,}",
                reached=completed == len(stream),
            ),
        ],
    )
