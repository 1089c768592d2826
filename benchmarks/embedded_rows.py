"""What does a row cost in a dictionary's span, beside River's linear regression?

100 atoms, d = 8, one thread. Both predict and learn each row. The loop is the one that people write,
``for x, t in zip(X, y)``: over arrays, and over Python's own numbers as targets; River has dicts, made before
the clock starts. The dictionary is full, or grows: there every row of the stream becomes an atom of one of
many new learners, which is as dear as growing can be. Rounds alternate.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.contenders import dicts, scaled_linear
from benchmarks.measuring import alternate, blas_threads, ratios
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import synthetic
from benchmarks.subjects import embedded, filled

ATOMS = 100
ARRAYS, FLOATS, GROWING = "rows, arrays", "rows, floats as targets", "rows, dictionary grows"
ADVANCE, RIVER = "advance", "River scaler | linear"
GOALS = {ARRAYS: 0.7, FLOATS: 0.7, GROWING: 0.7, ADVANCE: 0.5}


def run(settings: Settings) -> Report:
    rows = 3_000 if settings.quick else 20_000
    stream = synthetic(rows, 8)
    floats, mappings = stream.y.tolist(), dicts(stream.X)
    with blas_threads(1):
        single, blocks = (filled(stream.X, stream.y, max_atoms=ATOMS) for _ in range(2))
        model = scaled_linear()
        times = alternate(
            {
                ARRAYS: lambda: one_by_one(single, stream.X, stream.y),
                FLOATS: lambda: one_by_one(single, stream.X, floats),
                GROWING: lambda: growing(stream.X, stream.y),
                ADVANCE: lambda: blocks.advance(stream.X, stream.y),
                RIVER: lambda: one_by_one(model, mappings, floats),
            },
            rounds=2 * settings.rounds - 1,
        )
    table, figures = [], []
    for name in (*GOALS, RIVER):
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


def one_by_one(learner: Any, rows: Any, targets: Any) -> list[float]:
    """The predictions; both libraries have the same two verbs."""
    predict_one, learn_one = learner.predict_one, learner.learn_one
    predictions = []
    for x, y in zip(rows, targets, strict=True):
        predictions.append(predict_one(x))
        learn_one(x, y)
    return predictions


def growing(X: Any, y: Any) -> None:
    """New learners, each up to a full dictionary."""
    for start in range(0, len(X), ATOMS):
        one_by_one(embedded(max_atoms=ATOMS), X[start : start + ATOMS], y[start : start + ATOMS])
