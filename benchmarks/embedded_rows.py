"""What does a row cost in a dictionary's span, beside River's linear regression?

100 atoms, d = 8, one thread. Both predict and learn each row; rows are prepared before the clock starts
(NumPy rows here, dicts there, targets as floats), and the dictionary is full. Rounds alternate.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.contenders import dicts, scaled_linear
from benchmarks.measuring import alternate, blas_threads, ratios
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from benchmarks.subjects import filled

ATOMS = 100
ONE_BY_ONE, ADVANCE, RIVER = "predict_one + learn_one", "advance", "River scaler | linear"
GOALS = {ONE_BY_ONE: 1.0, ADVANCE: 0.5}


def run(settings: Settings) -> Report:
    rows = 3_000 if settings.quick else 20_000
    stream = synthetic(rows, 8)
    points, targets, mappings = list(stream.X), stream.y.tolist(), dicts(stream.X)
    with blas_threads(1):
        single, blocks = (filled(stream.X, stream.y, max_atoms=ATOMS) for _ in range(2))
        model = scaled_linear()
        times = alternate(
            {
                ONE_BY_ONE: lambda: one_by_one(single, points, targets),
                ADVANCE: lambda: blocks.advance(stream.X, stream.y),
                RIVER: lambda: one_by_one(model, mappings, targets),
            },
            rounds=2 * settings.rounds - 1,
        )
    table, figures = [], []
    for name in (ONE_BY_ONE, ADVANCE, RIVER):
        per_round = ratios(times, name, RIVER)
        ratio = statistics.median(per_round)
        table.append([name, statistics.median(times[name]) / rows * 1e6, per_round[0], ratio, per_round[-1]])
        if name in GOALS:
            figures.append(at_most(GOALS[name], f"{name} / River", ratio, "time a row, median of the rounds"))
    return Report(
        question=f"What does a row cost at {ATOMS} atoms, beside River's linear regression?",
        data=f"{stream.origin}, {rows:,} x 8, one thread",
        columns=("how", "us a row", "lowest ratio", "median", "highest"),
        table=table,
        figures=figures,
    )


def one_by_one(learner: Any, rows: list[Any], targets: list[float]) -> list[float]:
    """The predictions; both libraries have the same two verbs."""
    predict_one, learn_one = learner.predict_one, learner.learn_one
    predictions = []
    for x, y in zip(rows, targets, strict=True):
        predictions.append(predict_one(x))
        learn_one(x, y)
    return predictions
