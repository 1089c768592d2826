"""What becomes of rows as they are learned, besides learning: a sample of them is kept, and events are noted.

A row that comes alone waits for some others, which changes nothing but its cost: whoever looks, saves or goes
back looks at those that wait first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from kons.arrays import Matrix, Vector
from kons.learners.doubt import KnowsItsErrors
from kons.learners.events import KINDS, Event, OnEvent
from kons.learners.labels import Labels
from kons.learners.record import TOGETHER, Record
from kons.learners.sample import RowSample
from kons.learners.watch import FOUND, GAP, NUMBER, Watch
from kons.state import Field, Inner, fields
from kons.tables import Encoder

__all__ = ["NoticesEvents"]

LEVEL = "new level"


class NoticesEvents(KnowsItsErrors):
    """Learners that keep a sample of their rows, and note what is out of the ordinary."""

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        row_sample=Inner(make=lambda _: RowSample(), left_out=True),
        watch=Inner(make=lambda _: Watch(), left_out=True),
    )

    row_sample: RowSample | None = None
    """Some of the rows learned, with their targets; None before the first, and inside of another learner."""
    samples_rows: bool = True
    """Whether it is to have such a sample; False: it keeps rows by itself."""
    watch: Watch | None = None
    """What is noticed of rows, where :attr:`row_sample` is."""
    on_event: OnEvent = None
    """Called with each event, once its row is learned; with one that repeats, each time."""
    _new_events: tuple[Event, ...] = ()
    # Of a row that waited for its target, the errors are followed once it was looked at.
    _watched_last: Vector | None = None
    inside: bool = False
    """Whether nothing is kept of rows, nor noticed: a part of another learner, or one of objects."""
    _encoder: Encoder | None = None
    # Of who reads tables.
    _as_codes: Any
    _as_target: Any
    _turn: Any

    @property
    def events(self) -> list[Event]:
        """What was noticed, the last 1,000: :mod:`kons.learners.events`. The same however rows were cut.

        >>> import numpy as np
        >>> from kons import EmbeddedKONS, Gaussian, Squared
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(700, 2))
        >>> X[600:, 1] = 0.25
        >>> learner = EmbeddedKONS(Gaussian(), Squared())
        >>> trace = learner.advance(X, X[:, 0])
        >>> print(learner.events[0])
        alarm: frozen of 1 at row 620, 20
        """
        with self._turn:
            self._look_at_held()
            return [] if self.watch is None else list(self.watch.log.events)

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        self._look_at_held()
        state: dict[str, Any] = super().state()
        return state

    def mark(self) -> Any:
        """Where it stands, for ``restore``."""
        self._look_at_held()
        return super().mark()  # type: ignore[misc]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit; all rows that wait to be looked at came behind it."""
        super().restore(mark)  # type: ignore[misc]
        if self._record is not None:
            self._record.count = 0

    def _look_at_held(self) -> None:
        if self._record is None or not self._record.count:
            if self.watch is not None and self._followed is not None and self._followed.told:
                self._noticed([], np.empty((0, 0)), self.watch.rows)
            return
        rows, (targets, predictions, novelties, losses) = self._record.take()
        told = ~np.isnan(predictions)  # of the others errors were followed at once
        if told.any():
            self._follow_numbers(predictions[told], novelties[told], targets[told])
        if self.row_sample is not None:
            self.row_sample.learn(rows, targets)
        self._watch_rows(rows, targets, losses)

    @property
    def rows_noted(self) -> int:
        """How many rows were looked at, or wait for that: all since this version."""
        waiting = 0 if self._record is None else self._record.count
        return 0 if self.watch is None else self.watch.rows + waiting

    def _note_rows(self, X: Any, y: Any, before: int, predictions: Any = None) -> None:
        """Rows, encoded, were learned: keep some, look at all, unless who learned them has. Cannot fail."""
        if self.inside or self.rows_noted != before:
            return
        if self._record is not None and self._record.count:
            self._look_at_held()
        self._begin_to_look()
        targets = np.asarray(self._as_codes(y), dtype=np.float64)
        if targets.ndim == 2 and not self.outputs:  # a number in brackets
            targets = np.ascontiguousarray(targets[:, 0])
        rows = _flat(X[0] if isinstance(X, list) and len(X) == 1 else X).reshape(len(targets), -1)
        if self.row_sample is not None:
            self.row_sample.learn(rows, targets)
        one = targets if targets.ndim == 1 else np.full(len(targets), np.nan)
        self._watch_rows(rows, one, self._losses(predictions, targets))

    def _begin_to_look(self, width: int = 0) -> None:
        if self.row_sample is None and self.samples_rows:
            self.row_sample = RowSample()
        if self.watch is None:
            self.watch = Watch()
            if width:
                self.watch.plan(*self._roles(width))

    def _losses(self, predictions: Any, targets: Any) -> Vector:
        """Squared errors, 0/1 errors of labels; NaN where nothing was predicted."""
        unknown: Vector = np.full(len(targets), np.nan)
        if predictions is None or (len(targets) == 1 and predictions[0] is None):
            return unknown
        if self.labelled:
            codes = Labels(self.classes).find(predictions)
            return np.where(codes < 0, np.nan, (codes != targets).astype(np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            guesses = np.asarray(predictions, dtype=np.float64)
            # Before the first row tells how many targets there are, a number stands for all.
            guesses = guesses if guesses.size == 1 else guesses.reshape(targets.shape)
            errors = np.minimum((guesses - targets) ** 2, 1e300)
        summed: Vector = errors if errors.ndim == 1 else np.minimum(errors.sum(axis=1), 1e300)
        return summed

    def _watch_rows(self, rows: Matrix, targets: Vector, losses: Vector) -> None:
        watch = self.watch
        assert watch is not None
        if watch.width != rows.shape[1]:
            watch.plan(*self._roles(rows.shape[1]))
        first = watch.rows
        self._noticed(watch.learn(rows, targets, losses, self.labelled), rows, first)
        self._watched_last = rows[-1].copy() if len(rows) else self._watched_last

    def _noticed(self, told: list[tuple[int, int, int, float]], rows: Matrix, first: int) -> None:
        """Note what was found in rows, and what others say of them."""
        encoder, found = self._encoder, []
        for row, kind, feature, size in told:
            owner = () if feature < 0 else (feature if encoder is None else encoder.owners[feature],)
            found.append((row, *FOUND[kind], owner, size))
        found += [(row, kind, "alarm", (), size) for row, kind, size in self._model_events(first)]
        found += self._doubtful_rows()
        if encoder is not None and encoder.new_levels:
            found += self._new_levels()
        if found:
            self._notice(found, rows, first)

    def _doubtful_rows(self) -> list[tuple[Any, ...]]:
        """What the errors tell of rows that were learned since."""
        errors, found = self._followed, []
        if errors is not None and self.watch is not None:
            told, errors.told = errors.told, ()
            earlier = self.watch.rows - errors.followed  # before any class was known
            for first, each in told:
                found += [(earlier + first + row, *rest) for row, *rest in self.watch.doubts(each)]
        return found

    def _note_one(self, x: Any, y: Any, before: int, prediction: Any) -> None:
        """As :meth:`_note_rows`, of one row, in a microsecond or two."""
        x = _flat(x)
        target = float(y) if isinstance(y, float) and not self.labelled else self._as_target(y)
        if type(target) not in (float, int) or (self.watch is not None and len(x) != self.watch.width):
            self._note_rows([x], [y], before, [prediction])
            return
        loss = math.nan
        if self.labelled:
            loss = math.nan if prediction is None else float(prediction != self.classes[target])
        elif prediction is not None:
            # An array of one where y was of shape (n, 1) before: a number is a row of one target, too.
            error = (prediction if type(prediction) is float else np.asarray(prediction).item()) - target
            loss = min(error * error, 1e300)
        self._hold(x, float(target), math.nan, math.nan, loss)

    def _note_said(self, x: Any, y: Any) -> None:
        """One row, of which the learner says what it had predicted."""
        prediction, novelty = self._said()
        target = float(np.asarray(y, dtype=np.float64).reshape(-1)[0])
        error = prediction - target
        flat = x if isinstance(x, np.ndarray) and x.ndim == 1 else _flat(x)
        self._hold(flat, target, prediction, novelty, min(error * error, 1e300))

    def _hold(self, x: Any, *told: float) -> None:
        """Let a row wait for others."""
        record = self._record
        if record is None:
            self._begin_to_look(len(x))
            record = self._record = Record(len(x))
        record.add(x, *told)
        if record.count == TOGETHER or self.on_event is not None:
            self._look_at_held()

    def _new_levels(self) -> list[tuple[Any, ...]]:
        """Those of rows that were watched; others of a block are told with their rows."""
        assert self.watch is not None
        assert self._encoder is not None
        every, self._encoder.new_levels = self._encoder.new_levels, []
        self._encoder.new_levels = [told for told in every if told[0] >= self.watch.rows]
        return [(row, LEVEL, "info", (name,), 1.0) for row, name, _ in every if row < self.watch.rows]

    def _notice(self, found: list[tuple[Any, ...]], rows: Matrix, first: int) -> None:
        """Note events in the order of their rows; these are those of the rows from ``first`` on."""
        assert self.watch is not None
        for row, kind, severity, columns, size in sorted(found, key=lambda e: e[:2]):
            at, size = row - first, float(f"{size:.4g}")  # not its rounding
            x = rows[at] if 0 <= at < len(rows) else self._watched_last if at == -1 else None
            time = None if x is None else self._moment_of(x)
            event = Event(row, time, kind, severity, columns, size, KINDS[kind], 1, row)
            self._new_events = (*self._new_events, self.watch.log.add(event))

    def _model_events(self, first: int) -> list[tuple[int, str, float]]:
        """What the learner itself noticed from this row on: row, kind, size."""
        return []

    def _roles(self, width: int) -> tuple[Any, Any]:
        """Which features are numbers, which tell gaps, and where those of each number are told."""
        roles, gaps = np.full(width, NUMBER, dtype=np.int64), np.full(width, -1, dtype=np.int64)
        if self._encoder is not None:
            roles[:] = 0
            for column in self._encoder.columns.values():
                # Behind these rows features may have joined already.
                missing = [place for place in column.places("missing") if place < width]
                roles[missing] = GAP
                if column.kind in ("number", "flag") and column.slots[0] < width:
                    roles[column.slots[0]], gaps[column.slots[0]] = NUMBER, (*missing, -1)[0]
        return roles, gaps

    def _moment_of(self, row: Vector) -> Any:
        """Of the first column of dates, where there is one."""
        dates = (
            [] if self._encoder is None else [c for c in self._encoder.columns.values() if c.kind == "date"]
        )
        return dates[0].decode(row) if dates else None

    def _tell_events(self) -> None:
        """Call back, now that rows are learned for good."""
        if self._new_events:
            events, self._new_events = self._new_events, ()
            if self.on_event is not None:
                for event in events:
                    self.on_event(event)

    def _sampled_rows(self) -> tuple[Matrix, Any]:
        """Rows drawn from all that were learned, and their targets."""
        self._look_at_held()
        sample = self.row_sample
        return (np.empty((0, 0)), np.empty((0, 1))) if sample is None else (sample.points, sample.targets)


def _flat(rows: Any) -> Vector:
    """Rows that were learned, as they were given: an array, lists, or a sparse matrix."""
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.asarray(dense, dtype=np.float64).ravel()
