"""What do dicts cost? River's verbs on dicts beside the same learner's on rows of numbers.

d = 8, 100 atoms, one thread. Both predict and learn each row with equal learners in raw units, whose
dictionary is full; rows are prepared before the clock starts. Rounds alternate, and the figure is the median
over the rounds of the difference, in microseconds a row. River's own scaler and linear regression stand
beside, and the adapter where every row lacks a feature, or has text, one of 500 levels, or a moment: each
beside the same learner on the rows that these dicts become.
"""

from __future__ import annotations

import datetime
import statistics
from typing import Any

import numpy as np

from benchmarks.contenders import scaled_linear
from benchmarks.embedded_rows import one_by_one
from benchmarks.measuring import Times, alternate, blas_threads
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from kons.river import KONSClassifier, KONSRegressor

GOAL = 10.0
PARAMETERS: dict[str, Any] = {"learner": "embedded", "max_atoms": 100, "bandwidth": 1.0}
WEATHER = ("sun", "rain", "snow")
CORE, ADAPTER = "regression: rows", "regression: dicts"
CLASSES_CORE, CLASSES = "classification: rows", "classification: dicts"
#: Dicts with one feature of another kind, by what it is.
GAPS, TEXT, LEVELS, DATE = "one feature missing", "one of text", "one of 500 levels", "one a moment"
BEGIN = datetime.datetime(2020, 1, 1)
RIVER = "River scaler | linear"


def run(settings: Settings) -> Report:
    rows = 2_000 if settings.quick else 10_000
    stream = synthetic(rows, 8)
    names = [f"x{i}" for i in range(stream.X.shape[1])]
    points, targets = list(stream.X), stream.y.tolist()
    labels = (stream.y > np.median(stream.y)).tolist()
    mappings = [dict(zip(names, row, strict=True)) for row in stream.X.tolist()]
    gaps = [{name: x[name] for name in names if name != names[i % 8]} for i, x in enumerate(mappings)]
    rng = np.random.default_rng(0)
    levels, minutes = rng.integers(500, size=rows).tolist(), rng.integers(2_000_000, size=rows).tolist()
    others = {
        GAPS: gaps,
        TEXT: [x | {names[0]: WEATHER[i % 3]} for i, x in enumerate(mappings)],
        LEVELS: [x | {names[0]: f"level {k}"} for x, k in zip(mappings, levels, strict=True)],
        DATE: [
            x | {names[0]: BEGIN + datetime.timedelta(minutes=k)}
            for x, k in zip(mappings, minutes, strict=True)
        ],
    }
    with blas_threads(1):
        adapter = taught(KONSRegressor(**PARAMETERS), mappings, targets)
        ways: dict[str, Any] = {}
        for name, dicts in others.items():
            ways |= both_ways(name, dicts, targets)
        core = taught(KONSRegressor(**PARAMETERS), mappings, targets).core
        classifier = taught(KONSClassifier(**PARAMETERS), mappings, labels)
        classes = taught(KONSClassifier(**PARAMETERS), mappings, labels).core
        linear = scaled_linear()
        times = alternate(
            {
                CORE: lambda: one_by_one(core, points, targets),
                ADAPTER: lambda: one_by_one(adapter, mappings, targets),
                **ways,
                CLASSES_CORE: lambda: one_by_one(classes, points, labels),
                CLASSES: lambda: one_by_one(classifier, mappings, labels),
                RIVER: lambda: one_by_one(linear, mappings, targets),
            },
            rounds=2 * settings.rounds - 1,
        )
    table = [[name, statistics.median(taken) / rows * 1e6] for name, taken in times.items()]
    over = {
        "dicts over rows, regression": difference(times, ADAPTER, CORE) / rows * 1e6,
        "dicts over rows, classification": difference(times, CLASSES, CLASSES_CORE) / rows * 1e6,
        **{
            f"dicts over rows, {n}": difference(times, f"dicts, {n}", f"rows, {n}") / rows * 1e6
            for n in others
        },
    }
    return Report(
        question="What does a dict cost over a row of numbers, predict_one + learn_one?",
        data=f"{stream.origin}, {rows:,} x 8, {PARAMETERS['max_atoms']} atoms, one thread",
        columns=("how", "us a row"),
        table=table,
        figures=[
            at_most(GOAL, name, value, "us a row, median of the rounds") for name, value in over.items()
        ],
    )


def both_ways(name: str, dicts: list[Any], targets: list[Any]) -> dict[str, Any]:
    """A model on these dicts, and one on the rows that they become."""
    model, twin = (taught(KONSRegressor(**PARAMETERS), dicts, targets) for _ in range(2))
    points = [model.core.encoder.look_one(x) for x in dicts]
    return {
        f"dicts, {name}": lambda: one_by_one(model, dicts, targets),
        f"rows, {name}": lambda: one_by_one(twin.core, points, targets),
    }


def taught(model: Any, rows: list[Any], targets: list[Any]) -> Any:
    """The model behind its warm-up, with a full dictionary."""
    for x, y in zip(rows, targets, strict=True):
        model.learn_one(x, y)
    if model.core.size < PARAMETERS["max_atoms"]:
        raise RuntimeError(f"only {model.core.size} atoms: choose a smaller bandwidth")
    return model


def difference(times: Times, one: str, other: str) -> float:
    """Seconds that one takes more than the other in the same round, the median over rounds."""
    return statistics.median(a - b for a, b in zip(times[one], times[other], strict=True))
