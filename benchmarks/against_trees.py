"""Is AutoKONS ahead of trees, which are what people would use instead?

The sets and the rivals are those of ``tree_rivals``; the best of them in hindsight is who AutoKONS is beside.
It has its defaults: its loss is the mean of three seeds, its time that of blocks, its longest pause that of
rows one by one. Bytes: of its file; of the pickled trees and the rows that they are fitted on. Whether a set
is behind by more than chance is the question of ``row_orders``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import kons
from benchmarks.contenders import numbers
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.tree_rivals import Outcome, absent, judged, outcome, played, rows_of, streams
from kons.files import to_bytes

SEEDS = (0, 1, 2)


def run(settings: Settings) -> Report:
    held = at_most if judged() else lambda limit, *figure: Figure(*figure)
    table, figures, notes = [], [], absent(settings)
    ours: dict[str, float] = {}
    ratios = []
    with blas_threads(1):
        for name, stream in streams(settings, notes):
            theirs = played(name, stream, settings)
            auto = of_auto(stream, SEEDS[:1] if settings.quick else SEEDS)
            auto = auto._replace(pause=longest_pause(stream, SEEDS[0]))
            best = min(theirs, key=lambda rival: theirs[rival].loss)
            ours[name] = auto.loss
            ratios.append(auto.loss / theirs[best].loss)
            table += [[name, model, *found] for model, found in {"AutoKONS": auto, **theirs}.items()]
            figures.append(held(1.0, f"{name}: loss / best rival", ratios[-1], best))
            part = auto.microseconds / theirs[best].microseconds
            figures.append(held(0.5, f"{name}: time / best rival", part, "CPU"))
            print(f"  {name}: {auto.loss:.5f}, {best} {theirs[best].loss:.5f}", flush=True)
    if ratios:
        mean = math.exp(float(np.mean(np.log(ratios))))
        figures.append(held(0.75, "loss / best rival, geometric mean", mean, f"{len(ratios)} sets"))
        behind = float(sum(ratio > 1.0 for ratio in ratios))
        figures.append(Figure("sets behind", behind, "of one order of rows"))
    return Report(
        question="Is AutoKONS ahead of trees?",
        data="raw columns, defaults; mean squared error in units of the range, or error rate",
        columns=("set", "model", "loss", "last quarter", "us a row", "MB", "longest pause, ms"),
        table=table,
        figures=figures,
        notes=notes,
        details={"losses": ours},
    )


def of_auto(stream: RawStream, seeds: Sequence[int]) -> Outcome:
    """AutoKONS with its defaults: means over seeds; no pause, which blocks do not have."""
    found = []
    for seed in seeds:
        learner = kons.AutoKONS(stream.task, seed=seed)
        run = kons.evaluate(learner, rows_of(stream), trace=True, baselines=False, intervals=None)
        size = len(to_bytes(run.learner))
        found.append(outcome(numbers(run.trace.prediction), stream, run.learner_seconds, size))
    return Outcome(*(float(np.mean(values)) for values in zip(*found, strict=True)))


def longest_pause(stream: RawStream, seed: int) -> float:
    """Milliseconds of CPU time, in one run of rows one by one; ``pauses`` looks closer."""
    learner = kons.AutoKONS(stream.task, seed=seed)
    found = kons.evaluate(learner, rows_of(stream), pauses=True, baselines=False, intervals=None)
    return 1e3 * found.longest_pause
