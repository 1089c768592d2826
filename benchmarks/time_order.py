"""What does forgetting buy on streams in the order of time?

electricity: which way the price moves, squared loss on the classes, errors counted by the sign.
bike_hourly: how many bikes, squared loss on [-0.5, 0.5]. The learner is that of ``accuracy``.
"""

from __future__ import annotations

from functools import partial

from benchmarks.accuracy import ATOMS, BANDWIDTH
from benchmarks.contenders import (
    Play,
    cell,
    error_rate,
    measure,
    play,
    river_classifiers,
    river_regressors,
    squared_loss,
    stochastic_gradient,
    trivial,
)
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Figure, Report
from benchmarks.settings import Settings
from benchmarks.streams import reals
from benchmarks.subjects import embedded
from kons.policies import Dependence

FORGETTING = (1.0, 0.9999, 0.999, 0.997, 0.99)
TASKS = {"electricity": (error_rate, river_classifiers), "bike_hourly": (squared_loss, river_regressors)}


def run(settings: Settings) -> Report:
    ours = {f"EmbeddedKONS, forgetting {factor:g}": forgetting(factor) for factor in FORGETTING}
    ours |= {f"the same, {factor:g}, atoms replaced": forgetting(factor, True) for factor in FORGETTING}
    shared = {
        **ours,
        **trivial(in_time_order=True),
        **stochastic_gradient(BANDWIDTH, ATOMS),
    }
    streams, missing = reals(TASKS, settings, seed=None)
    found = {}
    with blas_threads(1):
        for stream in streams:
            score, others = TASKS[stream.origin]
            found[stream.origin] = measure(shared | others(settings), stream, score)
    names = dict.fromkeys(name for of_set in found.values() for name in of_set)
    figures = []
    for name, of_set in found.items():
        never = of_set["EmbeddedKONS, forgetting 1"][0]
        best = min(ours, key=lambda way: of_set[way][0])
        figures += [
            Figure(f"{name}: never forgetting", never, "error rate or squared loss"),
            Figure(f"{name}: at best", of_set[best][0], f"{best}; chosen in hindsight"),
            Figure(f"{name}: persistence", of_set["persistence"][0], "the last target again"),
        ]
    return Report(
        question="What does forgetting buy on streams in the order of time?",
        data=f"in file order, scaled by extremes; bandwidth {BANDWIDTH:g}, {ATOMS} atoms",
        columns=("error or loss / us a row", *found),
        table=[
            [name, *(cell(*of_set[name]) if name in of_set else "-" for of_set in found.values())]
            for name in names
        ],
        figures=figures,
        notes=missing,
        details=found,
    )


def forgetting(factor: float, replacing: bool = False) -> Play:
    policy = Dependence(when_full="replace" if replacing else "freeze")
    return partial(play, partial(embedded, BANDWIDTH, max_atoms=ATOMS, forgetting=factor, policy=policy))
