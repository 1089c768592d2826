"""An evaluation on rows of several targets: the learner learns them together, each is scored by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kons.arrays import Matrix, as_outputs, as_points
from kons.compilation import cpu_clock, wall_clock
from kons.errors import ConfigurationError
from kons.evaluation.delay import Delayed
from kons.evaluation.prequential import Prequential
from kons.evaluation.result import Evaluation
from kons.learners import Trace
from kons.learners.learner import Interleaved
from kons.learners.protocol import as_learner

__all__ = ["evaluate_several"]


def evaluate_several(
    learner: Any, X: Any, y: Any, *, delay: int, block: int, trace: bool, **choices: Any
) -> Evaluation:
    """:func:`kons.evaluate` on y of shape (n, k); O(k) times its baselines and metrics."""
    told = as_learner(learner)
    if not told.multi_output:
        raise ConfigurationError(
            f"{told.core.name} learns one target a row: use AutoKONS, EmbeddedKONS, KONS or SketchedKONS, "
            "or evaluate it on each target."
        )
    X = as_points(X) if told.accepts == "vectors" else X
    Y: Matrix = as_outputs(y, len(X), told.outputs)
    engines = [Prequential(learner, "regression", delay=delay, **choices) for _ in range(Y.shape[1])]
    late = Delayed(told, delay)
    traces: list[Trace] = []
    seconds, started = 0.0, wall_clock()
    for start in range(0, len(Y), block):
        rows, clock = slice(start, start + block), cpu_clock()
        (found, *_), known = late.play(X[rows], Y[rows], start)
        seconds += cpu_clock() - clock
        if found["prediction"].ndim == 1:  # no row was learned yet: a number for all targets
            found = replace(found, prediction=np.repeat(found["prediction"][:, None], Y.shape[1], axis=1))
        for k, engine in enumerate(engines):
            scale = None if found.scale is None else found.scale[:, k].copy()
            said = Trace(
                kept=found.kept, size=found.size, prediction=found["prediction"][:, k].copy(), scale=scale
            )
            targets, its = Y[rows, k].copy(), known._replace(targets=known.targets[:, k].copy())
            engine.score(X[rows], targets, targets, Interleaved(said, None, []), its)
        if found.loss is None:
            found = replace(found, loss=np.sum((found["prediction"] - Y[rows]) ** 2, axis=1))
        traces += [found] if trace else []
    late.finish()
    for engine in engines:
        engine.finish()
    each = [engine.result() for engine in engines]
    first = each[0]
    sums = ("loss", *first.baselines, *(f"running_{name}" for name in ("loss", *first.baselines)))
    return replace(
        first,
        loss=sum(one.loss for one in each),
        metrics={name: float(np.mean([one.metrics[name] for one in each])) for name in first.metrics},
        baselines={name: sum(one.baselines[name] for one in each) for name in first.baselines},
        last_quarter={name: sum(one.last_quarter[name] for one in each) for name in first.last_quarter},
        curves={
            name: (np.sum if name in sums else np.mean)([one.curves[name] for one in each], axis=0)
            for name in first.curves
        },
        coverage=None if first.coverage is None else float(np.mean([one.coverage for one in each])),
        seconds=wall_clock() - started,
        learner_seconds=seconds,
        trace=Trace.concatenate(traces) if traces else None,
        targets=each,
    )
