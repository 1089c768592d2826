"""Is AutoKONS ever blind to drift? Streams that move, beside learners with the best memory in hindsight.

Each row is predicted before it is learned, the first 50 are not counted. The rivals' settings are chosen
in hindsight, stream by stream: EmbeddedKONS its forgetting, neighbours their window; with ``--slow`` River's
ARF, numbers also between scalers. CapyMOA's forests, which need Java and an older pandas, are not among them.
On streams of hundreds of thousands of rows the dearest are left out.
"""

from __future__ import annotations

import numpy as np
from river import forest

from benchmarks.contenders import numbers, play_rival
from benchmarks.drift import rivals
from benchmarks.drift.streams import Moving, made_up, of_folder
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons import AutoKONS
from kons.compilation import cpu_clock
from kons.evaluation import RiverModel, make_rival

GOAL, UNCOUNTED, LONG, QUICK_ROWS = 1.15, 50, 50_000, 3_000


def run(settings: Settings) -> Report:
    rows = QUICK_ROWS if settings.quick else None
    table, figures = [], []
    with blas_threads(1):
        for moving in (*made_up(rows), *of_folder(settings.folder, rows)):
            played = {
                name: moving.loss(play(moving), UNCOUNTED) for name, play in contenders(moving, settings)
            }
            best = min(played, key=played.__getitem__)
            begun = cpu_clock()
            learner = AutoKONS(moving.stream.task)
            trace = learner.advance(moving.stream.X, moving.stream.y)
            micro = (cpu_clock() - begun) / len(trace.prediction) * 1e6
            loss = moving.loss(numbers(trace.prediction), UNCOUNTED)
            ratio = loss / played[best]
            table.append([moving.name, moving.kind, loss, played[best], best, ratio, micro])
            figures.append(at_most(GOAL, moving.name, ratio, "loss / best rival in hindsight"))
    return Report(
        question="Is AutoKONS ever blind to drift?",
        data="named, seeded streams in order of time; mean squared error, or error rate",
        columns=("stream", "what moves", "AutoKONS", "best rival", "which", "ratio", "us a row"),
        table=table,
        figures=figures,
        notes=[] if settings.slow else ["River's forest takes milliseconds a row: --slow."],
    )


def contenders(moving: Moving, settings: Settings) -> list[tuple[str, rivals.Play]]:
    """Whom this stream is played by."""
    long = len(moving.stream.y) > LONG
    chosen = [(name, play) for name, play in rivals.always_there() if not (long and "0 rows" in name)]
    if settings.slow and not long:
        chosen.append(("River ARF", forest_of_river))
        if not moving.classes:
            chosen.append(("River ARF, both scaled", scaled_forest_of_river))
    return chosen


def forest_of_river(moving: Moving) -> np.ndarray:
    """River's adaptive random forest with its defaults."""
    model = (forest.ARFClassifier if moving.classes else forest.ARFRegressor)(seed=0)
    return play_rival(RiverModel(model), moving.stream.X, moving.stream.y)


def scaled_forest_of_river(moving: Moving) -> np.ndarray:
    """The same between scalers: columns in large units need them, one that comes to life is harmed."""
    return play_rival(make_rival("river_arf", moving.stream.task), moving.stream.X, moving.stream.y)
