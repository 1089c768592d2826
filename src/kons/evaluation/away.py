"""The figure without last targets: what a learner that looks back predicts of rows away from the stream.

A learner whose experts take the last targets as features is good along a stream, and ``predict`` cannot be:
rows away from it have no last targets. So some rows are also predicted by ``predict``, before they are
learned: one in eight, by the model as it stood up to 64 rows before,

    of the first 2,048 rows 8 out of 64, of later ones 64 out of 512,

and as long as there are no more than 2,048, where one in eight would be too few to judge by, all of them.
Where the stream is found to be sorted by its target that is no better, since experts that forget know where
it is: then it is 256 to 512 rows from all over the stream, as the learner predicts them at its end.

The first 64 rows are the hardest. Of a short stream they count as they do along it, by models that had
learned four fifths of the rows before at least; of a longer one they do not: eight of them would tell little.

Where a caller's blocks end elsewhere, by the model as it stood when they began. It costs some percent of the
learner's own time (16 to 24 % of it in the first 2,048 rows, 2 to 3 % later, as measured); a learner that
never looks back has one figure, and no such cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.compilation import cpu_clock
from kons.evaluation.held_out import HeldOut
from kons.learners import Trace
from kons.learners.labels import Labels
from kons.state import Flag, Inner, Part, fields

__all__ = ["AwayFromStream", "sampled_figures"]

# Rows that are predicted at once, how many lie between two such stretches, and from where on.
SPAN, APART, EARLY = 64, 512, 2048
# One row in so many counts, all along the stream.
EVERY = APART // SPAN


Said = tuple[NDArray[Any], Matrix | None, Sequence[Any]]
"""Predictions, and of labels the probability of each, by class."""


class AwayFromStream(Part):
    """Teaches a learner a block, and asks it for some of the rows before without their last targets."""

    STATE = fields(_early=Inner(), _even=Inner(), _is_long=Flag())

    def __init__(self, task: str, names: Iterable[str] | None = None, positive: str | None = None) -> None:
        self._early, self._even = (HeldOut(task, names, positive) for _ in range(2))
        self._is_long = False
        self.seconds: float = 0.0
        """CPU time spent in asking, in the last block: no part of what the learner takes."""

    @property
    def figures(self) -> HeldOut:
        """Over all rows of a short stream, or one in eight."""
        return self._even if self._is_long else self._early

    def advance(self, learner: Any, X: Any, y: Any, first: int, **options: Any) -> Trace:
        """What ``learner.advance`` returns; ``first`` rows came before. All rows are learned, or none."""
        parts = list(_parts(first, len(y)))
        self.seconds = 0.0
        mark = learner.mark() if len(parts) > 1 else None
        before, traces = self.mark(), []
        try:
            for start, stop in parts:
                self._is_long = self._is_long or first + stop > EARLY
                rows = slice(start, start + _asked(first + start, stop - start))
                began = cpu_clock()
                said = self._ask(learner, X[rows])
                self.seconds += cpu_clock() - began
                weights = {name: value[start:stop] for name, value in options.items()}
                traces.append(learner.advance(X[start:stop], y[start:stop], **weights))
                if said is not None:  # only now are the targets known to be sound
                    self._record(y[rows], said, first + start)
        except BaseException:
            self.restore(before)
            if mark is not None:
                learner.restore(mark)
            raise
        return traces[0] if len(traces) == 1 else Trace.concatenate(traces)

    def _ask(self, learner: Any, X: Any) -> Said | None:
        if not len(X) or not learner.rows_seen or (learner.labelled and not learner.classes):
            return None
        if not learner.labelled:
            return learner.predict(X), None, ()
        scores = learner.decision_function(X)
        return learner.labels_of(scores), np.nan_to_num(learner.probabilities(scores)), learner.classes

    def _record(self, y: Any, said: Said, row: int) -> None:
        y = y if said[1] is not None else np.asarray(y, dtype=np.float64)
        if row >= EARLY:
            self._even.record(y, *said)
            return
        self._early.record(y, *said)
        if row < SPAN:
            return
        few = slice(0, max(0, SPAN // EVERY - row % SPAN))
        prediction, shares, classes = said
        self._even.record(y[few], prediction[few], None if shares is None else shares[few], classes)


def sampled_figures(learner: Any, rows: Matrix, labels: Labels, task: str, positive: str | None) -> HeldOut:
    """Of rows from all over a stream, targets (or codes) first, as the learner predicts them at its end.

    In a sorted stream, whatever comes next is near what came last. These rows were learned once, so that new
    ones are not predicted better.
    """
    figures, X = HeldOut(task, positive=positive), np.ascontiguousarray(rows[:, 1:])
    if task == "regression":
        figures.record(rows[:, 0].copy(), np.asarray(learner.predict(X), dtype=np.float64))
    elif learner.classes:
        shares = None if learner.lacks("predict_proba") else np.nan_to_num(learner.predict_proba(X))
        figures.record(labels.decode(rows[:, 0]), learner.predict(X), shares, learner.classes)
    return figures


def _parts(first: int, count: int) -> Iterator[tuple[int, int]]:
    """A block, cut where models are asked."""
    start = 0
    while start < count:
        row = first + start
        apart = SPAN if row < EARLY else APART
        end = (row // apart + 1) * apart
        if row < SPAN:  # early models are soon old
            end = min(end, row + max(1, row // 4))
        stop = min(count, end - first)
        yield start, stop
        start = stop


def _asked(row: int, count: int) -> int:
    """How many of the rows from this one on are asked for."""
    return min(count, SPAN) if row < EARLY else min(count, max(0, SPAN - row % APART))
