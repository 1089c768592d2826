"""Is AutoKONS ahead of boosted trees, which are what people would use instead?

Raw columns, the first 20,000 rows, in one fixed permutation unless they are in order of time; each row is
predicted before it is learned, the first is not counted. The trees are LightGBM with its defaults on one
thread, fitted again whenever 10 % more rows have come, on all rows and on the last 5,000; in order of time
also with the last two targets as columns. AutoKONS has its defaults: its loss is the mean of three seeds, its
time that of blocks, its longest pause that of rows one by one. Bytes: of its file; of the pickled trees and
the rows that they are fitted on. Where LightGBM is not installed, scikit-learn's boosting stands for it, and
goals are not judged.
"""

from __future__ import annotations

import importlib.util
import math
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import kons
from benchmarks.measuring import MEGABYTE, blas_threads
from benchmarks.raw_streams import RawStream, load_file
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import QUICK_ROWS
from kons.evaluation import Evaluation, make_rival
from kons.files import to_bytes

ROWS, WINDOW, SEEDS = 20_000, 5_000, (0, 1, 2)
NUMBERS = (
    "cadata",
    "calhousing14k",
    "casp",
    "cpusmall",
    "elevators",
    "house16h",
    "parkinson",
    "pol",
    "puma32h",
)
CLASSES = ("cod-rna", "german", "magic04", "skin")
#: In the order of time; whether their targets are classes.
IN_TIME = {
    "bike_hourly": False,
    "electricity": True,
    "weather_noaa": True,
    "chessboard": True,
    "classes_move": True,
}
SETS = (*NUMBERS, *CLASSES, *IN_TIME)


class Outcome(NamedTuple):
    """What became of one model on one set; losses in units of the squared range, or error rates."""

    loss: float
    last_quarter: float
    microseconds: float
    megabytes: float
    pause: float
    """Milliseconds of CPU time."""


def run(settings: Settings) -> Report:
    trees = "lightgbm" if importlib.util.find_spec("lightgbm") else "sklearn_boosting"
    notes = [] if trees == "lightgbm" else ["no LightGBM: scikit-learn's boosting stands for it."]
    judged = at_most if trees == "lightgbm" else lambda limit, *figure: Figure(*figure)
    table, figures, ratios = [], [], []
    with blas_threads(1):
        for name in settings.sets or SETS:
            stream = load(name, settings)
            if stream is None:
                notes.append(f"{name}: no file, skipped.")
                continue
            outcomes = dict(played(stream, trees, seeds=SEEDS[:1] if settings.quick else SEEDS))
            ours, theirs = outcomes["AutoKONS"], {k: v for k, v in outcomes.items() if k != "AutoKONS"}
            best = min(theirs, key=lambda rival: theirs[rival].loss)
            ratios.append(ours.loss / theirs[best].loss)
            table += [[name, model, *outcome] for model, outcome in outcomes.items()]
            figures.append(judged(1.0, f"{name}: loss / trees", ratios[-1], best))
            part = ours.microseconds / theirs[best].microseconds
            figures.append(judged(0.5, f"{name}: time / trees", part, "CPU"))
            print(f"  {name}: {ours.loss:.5f}, {best} {theirs[best].loss:.5f}", flush=True)
    if ratios:
        mean = math.exp(float(np.mean(np.log(ratios))))
        figures.append(judged(0.75, "loss / trees, geometric mean", mean, f"{len(ratios)} sets"))
        figures.append(
            Figure("sets behind", float(sum(ratio > 1.0 for ratio in ratios)), "of one order of rows")
        )
    return Report(
        question="Is AutoKONS ahead of boosted trees?",
        data="raw columns, defaults; mean squared error in units of the range, or error rate",
        columns=("set", "model", "loss", "last quarter", "us a row", "MB", "longest pause, ms"),
        table=table,
        figures=figures,
        notes=notes,
    )


def load(name: str, settings: Settings) -> RawStream | None:
    classes = name in CLASSES or IN_TIME.get(name, False)
    rows = QUICK_ROWS if settings.quick else ROWS
    task = "classification" if classes else "regression"
    return load_file(settings.folder, name, task, name in IN_TIME, rows)


def played(stream: RawStream, trees: str, seeds: tuple[int, ...]) -> Iterator[tuple[str, Outcome]]:
    """AutoKONS, and each way of the trees; one that learned nothing would look like a win, and is refused."""
    runs = [kons.evaluate(kons.AutoKONS(stream.task, seed=seed), rows_of(stream)) for seed in seeds]
    steps = kons.evaluate(kons.AutoKONS(stream.task, seed=seeds[0]), rows_of(stream), pauses=True)
    outcomes = [outcome(run, len(to_bytes(run.learner)), steps.longest_pause, stream) for run in runs]
    yield "AutoKONS", Outcome(*(float(np.mean(values)) for values in zip(*outcomes, strict=True)))
    ways = {"": stream, ", lags": stream.with_lags()} if stream.time_ordered else {"": stream}
    for lags, given in ways.items():
        for window in (None, WINDOW):
            if window is not None and len(stream.y) <= window:
                continue
            rival: Any = make_rival(trees, stream.task, window=window)
            found = kons.evaluate(rival, rows_of(given))
            if found.last_quarter["loss"] == found.last_quarter["constant"]:
                raise RuntimeError(f"{trees} predicts no better than the constant: is it broken?")
            kept = 8 * (given.X.shape[1] + 1) * min(len(stream.y), window or len(stream.y))
            size = len(pickle.dumps(rival.fitted)) + kept
            name = f"{rival.name}{'' if window is None else f', last {window:,} rows'}{lags}"
            yield name, outcome(found, size, found.longest_pause, stream)


def rows_of(stream: RawStream) -> tuple[np.ndarray, np.ndarray]:
    return stream.X, stream.y.astype(int) if stream.task == "classification" else stream.y


def outcome(found: Evaluation, size: int, pause: float | None, stream: RawStream) -> Outcome:
    unit = 1.0 if stream.task == "classification" else float(np.ptp(stream.y)) ** 2
    losses = found.loss / unit, found.last_quarter["loss"] / unit
    return Outcome(*losses, found.microseconds_per_row, size / MEGABYTE, 1e3 * (pause or math.nan))
