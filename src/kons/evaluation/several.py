"""An evaluation on rows of several targets: the learner learns them together, each is scored by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kons.arrays import Matrix, as_outputs, as_points
from kons.compilation import wall_clock
from kons.errors import ConfigurationError
from kons.evaluation.prequential import Prequential
from kons.evaluation.result import Evaluation
from kons.learners import Trace
from kons.learners.protocol import Learner, as_learner
from kons.learners.queue import LateTargets

__all__ = ["evaluate_several"]


class _Column(LateTargets, Learner):
    """One target of a learner: hands on what that has said of a block, delay and all."""

    def __init__(self, learner: Any, delay: int) -> None:
        self.learner, self.delay = learner, delay
        self.said = Trace(np.empty(0, np.bool_), np.empty(0, np.int64))

    @property
    def core(self) -> Any:
        """The learner inside."""
        return as_learner(self.learner).core

    @property
    def warming_up(self) -> bool:
        """As the learner is."""
        return bool(as_learner(self.learner).warming_up)

    def advance(self, X: Any, y: Any) -> Trace:
        """What was said of these rows."""
        return self.said


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
    own: int | None = told.delay
    columns = [_Column(learner, delay if own is None else own) for _ in range(Y.shape[1])]
    engines = [Prequential(column, "regression", delay=delay, **choices) for column in columns]
    traces: list[Trace] = []
    seconds = 0.0
    by_blocks = delay == 0 or own is not None  # it keeps targets back by itself
    said = _by_blocks(told, X, Y, block) if by_blocks else _row_by_row(told, X, Y, block, delay)
    started = clock = wall_clock()
    for start, found in said:
        seconds += wall_clock() - clock
        rows = slice(start, start + len(found))
        for k, (column, engine) in enumerate(zip(columns, engines, strict=True)):
            prediction = found["prediction"][:, k].copy()
            column.said = Trace(kept=found.kept, size=found.size, prediction=prediction)
            engine.advance((X[rows], Y[rows, k]))
        traces += [found] if trace else []
        clock = wall_clock()
    for engine in engines:
        engine.finish()
    each = [replace(engine.result(), learner=learner) for engine in engines]
    first = each[0]
    sums = ("loss", *first.baselines, *(f"running_{name}" for name in ("loss", *first.baselines)))
    return replace(
        first,
        loss=sum(one.loss for one in each),
        metrics={name: float(np.mean([one.metrics[name] for one in each])) for name in first.metrics},
        baselines={name: sum(one.baselines[name] for one in each) for name in first.baselines},
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


def _by_blocks(learner: Any, X: Any, Y: Matrix, block: int) -> Iterator[tuple[int, Trace]]:
    for start in range(0, len(Y), block):
        yield start, learner.advance(X[start : start + block], Y[start : start + block])


def _row_by_row(learner: Any, X: Any, Y: Matrix, block: int, delay: int) -> Iterator[tuple[int, Trace]]:
    """Row t is predicted by what was learned of rows 0 .. t-1-delay; the last ones are learned at the end."""
    for start in range(0, len(Y), block):
        stop = min(start + block, len(Y))
        predictions, sizes = np.zeros((stop - start, Y.shape[1])), [learner.size or 0]
        for t in range(start, stop):
            predictions[t - start] = learner.predict_one(X[t])
            if t >= delay:
                learner.learn_one(X[t - delay], Y[t - delay])
            sizes.append(learner.size or 0)
        loss = np.sum((predictions - Y[start:stop]) ** 2, axis=1)
        kept, size = np.diff(sizes) > 0, np.array(sizes[1:], dtype=np.int64)
        yield start, Trace(kept=kept, size=size, prediction=predictions, loss=loss)
    learner.advance(X[-delay:], Y[-delay:])
