"""Late targets: rows wait for theirs by identifier, at the border.

::

    ask(x, id)      predict, and keep the row with what the prediction was made from
    tell(id, y)     learn it, whenever and in whatever order targets come
    forget(id)      drop it: its target never comes

A delay of k rows is this queue with a fixed rule, ``ask(x_t, t); tell(t - k, y_(t-k))``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from kons.errors import ConfigurationError
from kons.learners.queue import Identifier, Kept, ObjectQueue, Queue, Shapes, as_identifier
from kons.state import Field, Inner, fields
from kons.stored import Stored

__all__ = ["LateTargets"]

FLOAT64 = np.dtype(np.float64)


class LateTargets:
    """The verbs by which targets may come late, of everything with ``predict_one`` and ``learn_one``.

    A learner that needs more of a row than its point says what (:meth:`row_to_keep`, :meth:`kept_shapes`) and
    how that is learned (:meth:`learn_kept_row`).
    """

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        _queue=Inner(make=lambda learner: learner.new_queue(), left_out=True)
    )

    _queue: Queue | None = None
    _answer: Any = None
    """What was answered to the row that is being told, for who looks at errors."""
    supervised: bool = True
    rows_seen: Any = None
    """How many rows were learned; None: not told."""
    # Of what has these verbs.
    accepts: Any
    predict_one: Any
    learn_one: Any
    _as_point: Any

    def ask(self, x: Any, id: Identifier) -> Any:
        """What ``predict_one`` says of a row, which then waits for its target: see :meth:`tell`.

        ``id`` is text or an integer. The same one again with the same x repeats the answer as it was given,
        with another x it is refused, and so is one that was told. Beyond ``queue.most`` rows (10,000) the
        oldest makes room, and is counted.

        >>> from kons import EmbeddedKONS, Gaussian, Squared
        >>> learner = EmbeddedKONS(Gaussian(), Squared())
        >>> learner.ask([0.0], "a"), learner.ask([1.0], "b")
        (0.0, 0.0)
        >>> learner.tell("b", 1.0)
        >>> learner.queue.ids, learner.rows_seen
        (['a'], 1)
        """
        queue, id = self.queue, as_identifier(id)
        if id in queue._rows or id in queue._told:
            return queue.ask_again(id, self._point_to_keep(x))
        answer = self.predict_one(x)
        kept = self._keep(x)
        try:
            dropped = queue.put(id, kept, answer.copy() if type(answer) is np.ndarray else answer)
        except BaseException:
            if id not in queue._rows:
                self.release_kept_row(kept)
            raise
        for row in dropped:
            self.release_kept_row(row)
        return answer

    def tell(self, id: Identifier, y: Any) -> None:
        """Learn the row that was asked under this id, as ``learn_one``; an error leaves it waiting.

        The same target again is ignored and counted (``queue.repeated``), another one is refused; so is an
        id that is not known. The last ``queue.most`` (10,000) that were told are remembered for that.
        """
        queue, id = self.queue, as_identifier(id)
        row = queue._rows.get(id)
        if row is None:
            queue.tell_again(id, y)
            return
        before = self.rows_seen
        queue.note(id, y)
        try:
            self._answer = row[1]
            self._learn_kept(row[0], y)
            queue.settle(id)
        except BaseException:
            # Stopped from outside, it may have been learned all the same.
            if self.rows_seen == before:
                queue.take_back(id)
            else:
                queue.settle(id)
            raise
        finally:
            vars(self).pop("_answer", None)

    def forget(self, id: Identifier) -> None:
        """Drop the row that was asked under this id: it is never learned."""
        self.release_kept_row(self.queue.drop(as_identifier(id)))

    @property
    def queue(self) -> Queue:
        """Rows that were asked and wait: ``pending``, ``ids``, ``most``, ``dropped``, ``repeated``."""
        if self._queue is None:
            if not self.supervised:
                raise ConfigurationError(f"{type(self).__name__} learns no targets: nothing waits for them.")
            self._queue = self.new_queue()
        return self._queue

    def _keep(self, x: Any) -> Kept:
        """What is kept of a row, all of it."""
        return self.row_to_keep(x)

    def _shapes(self) -> Shapes:
        """The shapes of that."""
        return self.kept_shapes()

    def _learn_kept(self, kept: Kept, y: Any) -> None:
        """Learn a row of which all this was kept."""
        self.learn_kept_row(kept, y)

    # ---- what a learner keeps of a row

    def row_to_keep(self, x: Any) -> Kept:
        """What is kept of a row that was just predicted: its point, a copy, and arrays of fixed shapes."""
        return (self._point_to_keep(x),)

    def release_kept_row(self, kept: Kept) -> None:
        """A row of which this was kept is never learned."""

    def _point_to_keep(self, x: Any) -> Any:
        if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1:
            return x.copy()  # it was looked at when it was predicted
        point = self._as_point(x)[0]
        return point.copy() if type(point) is np.ndarray else point

    def learn_kept_row(self, kept: Kept, y: Any) -> None:
        """Learn a row of which this was kept; all of it or, after an error, nothing.

        Its point may come from a file: it is looked at as that of any row.
        """
        self.learn_one(kept[0], y)

    def kept_shapes(self) -> Shapes:
        """The shapes of what is kept, (None,) for a row of numbers, None for a point of another kind."""
        return ((None,) if self.accepts == "vectors" else None,)

    def new_queue(self) -> Queue:
        """One for what it keeps, empty."""
        return Queue() if self.kept_shapes()[0] is not None else ObjectQueue()

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved; rows that wait must be such as it learns."""
        part: Any = super()
        part.load_state(stored, **sizes)
        if self._queue is not None:
            self._queue.require_shapes(self._shapes(), stored)
