"""Targets that become known some rows late: the one place that counts by how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers
from kons.core.storage import copied
from kons.learners.learner import Interleaved
from kons.learners.queue import Kept, Queue
from kons.learners.trace import Trace
from kons.state import Inner, Part, fields
from kons.stored import Stored

__all__ = ["Delayed", "Known"]


class Known(NamedTuple):
    """Rows whose targets became known in a block: some that waited, then some of its own."""

    waited: list[Kept]
    targets: NDArray[Any]
    before: Integers
    """How many of them were known before each row of the block."""

    def points(self, X: Any) -> Any | None:
        """The points of these rows, where they are not just those of the block."""
        own = len(self.targets) - len(self.waited)
        if not self.waited:
            return None if own == len(X) else X[:own]
        points = [kept[0] for kept in self.waited]
        if isinstance(X, np.ndarray):
            return np.concatenate([np.array(points), X[:own]])
        return [*points, *X[:own]]


class Delayed(Part):
    """A learner whose targets come ``delay`` rows late, and the rows that wait for theirs meanwhile.

    ::

        row t is predicted by a learner that has learned rows 0 .. t-1-delay, and nothing else

    One that keeps targets back by itself is handed them at once; its rows wait here all the same, for the
    baselines. Memory for ``delay`` rows. ``one_by_one`` hands it each row by itself, timed.

    >>> from kons import EmbeddedKONS, Gaussian, Squared
    >>> learner = EmbeddedKONS(Gaussian(), Squared())
    >>> found, known = Delayed(learner, 2).play(np.zeros((5, 1)), np.ones(5), 0)
    >>> known.before.tolist(), learner.rows_seen
    ([0, 0, 0, 1, 2], 3)
    """

    STATE = fields(queue=Inner())
    delay: int

    def __init__(self, learner: Any, delay: int, *, one_by_one: bool = False) -> None:
        self._learner, self.delay, self._one_by_one = learner, delay, one_by_one
        self._itself = learner.delay is not None
        self.queue: Queue = learner.new_queue()
        self.queue.most = delay + 1

    def play(
        self,
        X: Any,
        targets: NDArray[Any],
        first: int,
        labels: Callable[[Any], Any] | None = None,
        advance: Callable[[Any, Any], Trace] | None = None,
    ) -> tuple[Interleaved, Known]:
        """Predict a block of rows, numbered from ``first``, and learn what becomes known on the way.

        ``labels`` makes labels of codes. ``advance`` takes the place of the learner's own where rows are
        learned as they come. After an error the rows that waited still do.
        """
        queue, mark = self.queue, self.queue.mark()
        before, count = len(queue), max(len(queue) + len(X) - self.delay, 0)
        try:
            waited = [queue.take_oldest() for _ in range(min(count, before))]
            own = count - len(waited)
            values = _column([target for _, target in waited], targets, own)
            counts = np.clip(np.arange(len(X)) + before - self.delay, 0, count)
            known = Known([kept for kept, _ in waited], values, counts)
            name = labels or _same
            if self._itself or not self.delay:
                found = self._as_they_come(X, name(targets), advance)
                waiting = [(x,) for x in copied(X[own:])]
            else:
                found = self._learner.interleave(X, known.waited, name(values), counts)
                waiting = found.waiting
            rest = targets[own:].tolist() if targets.ndim == 1 else [row.copy() for row in targets[own:]]
            for row, (kept, target) in enumerate(zip(waiting, rest, strict=True), start=first + own):
                queue.put(row, kept, target)
        except BaseException:
            queue.restore(mark)
            raise
        return found, known

    def _as_they_come(self, X: Any, targets: Any, advance: Callable[[Any, Any], Trace] | None) -> Interleaved:
        learner, each = self._learner, np.arange(len(X))
        if self._one_by_one:
            one_by_one: Interleaved = learner.one_by_one(X, [], targets, each, at_once=True)
            return one_by_one
        if advance is None:
            interleaved: Interleaved = learner.interleave(X, [], targets, each)
            return interleaved
        trace = advance(X, targets)
        shares = np.nan_to_num(learner.probabilities(trace["scores"])) if learner.labelled else None
        return Interleaved(trace, shares, [])

    def finish(self, labels: Callable[[Any], Any] | None = None) -> None:
        """No row comes any more: the learner learns those that wait."""
        rows = [self.queue.take_oldest() for _ in range(len(self.queue))]
        if rows and not self._itself:
            waiting, targets = zip(*rows, strict=True)
            nothing = np.empty(0, dtype=np.int64)
            self._learner.interleave([], waiting, (labels or _same)(list(targets)), nothing)

    def require_rows(self, rows: int, fits: Callable[[Any], bool], stored: Stored) -> None:
        """Refuse rows that were loaded, unless they are the last of ``rows`` and their targets fit."""
        queue, shapes = self.queue, self._learner._shapes()
        queue.require_shapes(shapes[:1] if self._itself else shapes, stored)
        last = list(range(rows - len(queue), rows))
        if len(queue) > self.delay or queue.ids != last or not all(fits(value) for _, value in queue.rows):
            raise stored.error(f"its rows that wait are none of the last {self.delay}")


def _column(waited: list[Any], targets: NDArray[Any], own: int) -> NDArray[Any]:
    if not waited:
        return targets[:own]
    late = np.array(waited, dtype=targets.dtype).reshape(-1, *targets.shape[1:])
    return np.concatenate([late, targets[:own]])


def _same(targets: Any) -> Any:
    return targets
