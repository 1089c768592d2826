"""Do intervals hold what they promise, and are they narrow?

AutoKONS with its defaults, nominal 90 %, behind the first 200 rows: coverage over all, in each 1,000 rows and
in each tenth of the novelty; width beside that of residual intervals as wide at any row, at equal coverage
(both multiplied by what makes theirs exactly 90 %); interval score (Winkler) beside quantile regression by
LightGBM, 5 % and 95 %, fitted again each time 10 % more rows have come. Of classes: sets of labels.
"""

from __future__ import annotations

import math

import numpy as np

import kons
from benchmarks.drift.streams import made_up
from benchmarks.measuring import blas_threads
from benchmarks.raw_streams import RawStream
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from benchmarks.tree_rivals import judged, streams
from kons.evaluation import ResidualIntervals

LEVEL = 0.9
UNCOUNTED = 200


def run(settings: Settings) -> Report:
    notes: list[str] = []
    table, figures, widths, scores, wider = [], [], [], [], 0
    named = list(streams(settings, notes))
    if not settings.sets:
        named += [(moving.name, moving.stream) for moving in made_up(2_000 if settings.quick else None)]
    with blas_threads(1):
        for name, stream in named:
            if stream.task == "classification":
                covered, accuracy, size = of_classes(stream)
                table.append([name, covered, accuracy, size, math.nan, math.nan, math.nan])
                most = max(0.92, accuracy + 0.01)
                figures.append(
                    at_most(
                        0.0,
                        f"{name}: coverage of sets, outside 88 % to {most:.0%}",
                        max(0.88 - covered, covered - most, 0.0),
                        "share",
                    )
                )
                continue
            trace = kons.AutoKONS().advance(stream.X, stream.y)
            p, y = np.asarray(trace.prediction), stream.y
            ours = ResidualIntervals(LEVEL).advance(p, y, scale=trace.scale)
            plain = ResidualIntervals(LEVEL).advance(p, y)
            covered, width, score = judge(y, p, *ours)
            ratio = width / judge(y, p, *plain)[1]
            least, most = cells(y, *ours, np.asarray(trace.novelty))
            beside = math.nan
            if judged():
                beside = score / judge(y, *quantiles(stream))[2]
                scores.append(beside)
            widths.append(ratio)
            wider += ratio > 1.03
            table.append([name, covered, least, most, ratio, score, beside])
            figures.append(at_most(0.02, f"{name}: coverage, from 90 %", abs(covered - LEVEL), "share"))
            print(f"  {name}: {covered:.3f}, width {ratio:.3f}, score / LightGBM {beside:.3f}", flush=True)
    if widths:
        mean = math.exp(float(np.mean(np.log(widths))))
        figures.append(
            at_most(0.9, "width / as wide everywhere, geometric mean", mean, f"{len(widths)} sets")
        )
        figures.append(at_most(0.0, "sets with intervals wider by 3 %", float(wider), "sets"))
    if scores:
        ahead = float(np.mean(np.array(scores) > 1.0))
        figures.append(at_most(1 / 3, "sets with a larger interval score than LightGBM", ahead, "part"))
    return Report(
        question="Do intervals hold what they promise, and are they narrow?",
        data="raw columns, defaults, nominal 90 %; classes: sets, accuracy and mean labels in a set",
        columns=(
            "set",
            "coverage",
            "least cell",
            "largest cell",
            "width / plain",
            "score",
            "score / LightGBM",
        ),
        table=table,
        figures=figures or [Figure("sets", 0.0, "no file")],
        notes=notes,
    )


def judge(y: np.ndarray, p: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float, float]:
    """Coverage, the mean width that would cover exactly the level, and the mean interval score."""
    y, p, lower, upper = (values[UNCOUNTED:] for values in (y, p, lower, upper))
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    score = float(np.mean(upper - lower + 2.0 / (1.0 - LEVEL) * outside))
    reach = np.where(y >= p, np.maximum(upper - p, 1e-300), np.maximum(p - lower, 1e-300))
    factor = float(np.quantile(abs(y - p) / reach, LEVEL))
    covered = float(np.mean((lower <= y) & (y <= upper)))
    return covered, factor * float(np.mean(upper - lower)), score


def cells(y: np.ndarray, lower: np.ndarray, upper: np.ndarray, novelty: np.ndarray) -> tuple[float, float]:
    """The least and the largest coverage in 1,000 rows, and in a tenth of the novelty."""
    inside = ((lower <= y) & (y <= upper))[UNCOUNTED:]
    parts = [inside[start : start + 1000] for start in range(0, len(inside), 1000)]
    order = np.argsort(novelty[UNCOUNTED:], kind="stable")
    parts += [inside[places] for places in np.array_split(order, 10)]
    found = [float(part.mean()) for part in parts if len(part) >= 500]
    return min(found, default=math.nan), max(found, default=math.nan)


def quantiles(stream: RawStream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The middle and the ends that LightGBM says, fitted to rows before; in time order with last targets."""
    import lightgbm

    stream = stream.with_lags() if stream.time_ordered else stream
    ends = np.full((2, len(stream.y)), np.nan)
    start = 50
    while start < len(stream.y):
        stop = min(len(stream.y), max(start + 50, int(1.1 * start)))
        for k, alpha in enumerate(((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)):
            model = lightgbm.LGBMRegressor(objective="quantile", alpha=alpha, n_jobs=1, verbose=-1)
            model.fit(stream.X[:start], stream.y[:start])
            ends[k, start:stop] = model.predict(stream.X[start:stop])
        start = stop
    ends = np.sort(ends, axis=0)
    return ends.mean(axis=0), ends[0], ends[1]


def of_classes(stream: RawStream) -> tuple[float, float, float]:
    """Coverage of sets made before each block of 100 rows, accuracy, and labels in a set."""
    learner = kons.AutoKONS("classification")
    inside, sizes, right = [], [], []
    for start in range(0, len(stream.y), 100):
        rows = slice(start, start + 100)
        if start >= UNCOUNTED:
            sets = learner.predict_set(stream.X[rows], LEVEL, recent_targets=True)
            inside += [label in named for label, named in zip(stream.y[rows], sets, strict=True)]
            sizes += [len(named) for named in sets]
            right += [named[0] == label for label, named in zip(stream.y[rows], sets, strict=True)]
        learner.advance(stream.X[rows], stream.y[rows])
    return float(np.mean(inside)), float(np.mean(right)), float(np.mean(sizes))
