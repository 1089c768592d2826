"""The rows of a stream: each is predicted when it comes, and learned when its targets are known.

A row is learned as it was predicted: with the last targets that were known then, and by stacking from what
the experts said then. In between it waits in :mod:`~kons.learners.auto.pending`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.learners.auto.drift import DriftAdaptation
from kons.learners.auto.effort import Settings
from kons.learners.auto.ensemble import Ensemble, Outcome
from kons.learners.auto.following import Following
from kons.learners.auto.looking_back import is_time_to_look_back, rise_of_old_errors
from kons.learners.auto.pending import Asked, PendingTargets
from kons.learners.auto.rows import LastTargets, Layout
from kons.learners.auto.spec import BASELINES
from kons.learners.labels import Labels
from kons.state import Count, Inner, Items, Part, Sizes, Whole, fields
from kons.stored import Stored

__all__ = ["StreamRows"]


class _Ensembles(Inner):
    """What rows that wait look like is known with the ensemble at work."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        ensembles = super().load(stored, key, part, name, sizes)
        current = ensembles.current
        experts = len(current.selection.all_specs) + BASELINES
        sizes.update(columns=current.layout.columns, outputs=current.outputs, experts=experts)
        sizes.update(targets=current.layout.count)
        return ensembles


class _Crept(Items):
    """Where the function was seen to creep; files of earlier versions know nothing of it."""

    left_out, undoes = True, False

    def __init__(self) -> None:
        super().__init__("a row, a size, an ensemble and its rows", _is_creep)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        return super().load(stored, key, part, name, sizes) if key in stored else None


def _is_creep(told: Any) -> bool:
    return isinstance(told, tuple) and [*map(type, told)] == [int, float, int, int] and min(told) >= 0


class StreamRows(Part):
    """The ensembles, the last targets, and the rows that wait for theirs.

    Rows that come one by one take the way of :attr:`Ensemble.one_row`, where there is one.
    """

    STATE = fields(
        rows=Count(),
        drift=_Ensembles(),
        last_targets=Inner(),
        pending=Inner(),
        withheld=Whole(None),
        crept=_Crept(),
    )

    def __init__(self, settings: Settings) -> None:
        self.drift: DriftAdaptation = DriftAdaptation(settings)
        self.last_targets: LastTargets = LastTargets(settings.classes, settings.targets)
        #: Rows that were predicted, and wait for their targets.
        self.pending: PendingTargets = PendingTargets()
        #: Numbers of those among them whose targets are here and only kept back.
        self.withheld: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        #: Rows learned.
        self.rows: int = 0
        #: Rows behind which it was seen that the function creeps, how far, and by which ensemble at which of
        #: its rows: the last few. Replaced, never changed.
        self.crept: list[tuple[int, float, int, int]] | None = None

    @property
    def current(self) -> Ensemble:
        """The ensemble at work."""
        return self.drift.current

    @property
    def can_fail(self) -> bool:
        """Whether the next row may fail to be learned: where a chunk ends, or rows go as blocks."""
        return self.current.left <= 1 or self.current.one_row is None

    def advance(self, X: Matrix, Y: Matrix, weights: Vector, delay: int) -> list[Outcome]:
        """Predict rows in order; each is learned when ``delay`` others were predicted behind it."""
        waiting, before = self.pending.take(self.withheld.tolist()), len(self.withheld)
        count = max(before + len(X) - delay, 0)
        known = np.clip(np.arange(len(X)) + before - delay, 0, count)
        layout = replace(self.current.layout, width=X.shape[1])
        targets = Y if waiting is None else np.concatenate([layout.targets(waiting.rows), Y])
        counted = (
            weights if waiting is None else np.concatenate([layout.weights(waiting.rows), weights])
        ) > 0.0
        last = self._follow(targets[:count][counted[:count]], np.append(0, np.cumsum(counted))[known])
        rows = layout.join(X, last, Y, weights)
        outcomes, waiting = self._interleave(rows, known, waiting, count)
        kept = [] if waiting is None else [self.pending.keep(record) for record in waiting.one_by_one()]
        self.withheld = np.array(kept, dtype=np.int64)
        return outcomes

    def predict(self, X: Matrix, recent_targets: bool | Matrix) -> tuple[Matrix, Matrix]:
        """Predictions and logits for rows, each as if it came next or behind these. Changes nothing."""
        return self.current.predict(*self._joined(X, recent_targets))

    def _joined(self, X: Matrix, recent_targets: bool | Matrix) -> tuple[Matrix, bool]:
        """Rows with last targets, and whether these count."""
        layout, weights = replace(self.current.layout, width=X.shape[1]), np.zeros(len(X))
        if isinstance(recent_targets, bool):
            last, recent = self.last_targets.next(len(X)), recent_targets
        else:
            last, recent = recent_targets, True
        return layout.join(X, last, np.zeros((len(X), layout.count)), weights), recent

    def predict_with_doubts(self, X: Matrix, recent_targets: bool | Matrix) -> tuple[Matrix, Any]:
        """As :meth:`predict`, and how doubtful each is, (rows, targets, numbers). Changes nothing."""
        return self.current.predict_with_doubts(*self._joined(X, recent_targets))

    def novelty(self, X: Matrix) -> Vector:
        """How new rows are, from 0 to 1. Changes nothing."""
        return self.current.novelty(self._joined(X, False)[0])

    def following(self, late: int, labels: Labels | None) -> Following:
        """Its last targets, for rows that come next."""
        layout = self.current.layout
        waiting = np.array([self.pending.records[number].rows for number in self.withheld.tolist()])
        waiting = waiting.reshape(len(self.withheld), layout.columns)
        counted = layout.weights(waiting) > 0.0
        late -= int(np.count_nonzero(~counted[max(len(counted) - late, 0) :]))
        past = np.concatenate([self.last_targets.tail[::-1], layout.targets(waiting)[counted, 0]])
        return Following(past, late, labels)

    # ---- one row

    def predict_row(self, x: Vector) -> Vector:
        """Scores for one row as if it came next: the prediction, or logits."""
        one = self.current.one_row
        if one is not None:
            return one.ask(x, self.last_targets.tail, self.rows)
        scores: Vector = self.predict(x[None], True)[1][0]
        return scores

    def predict_row_with_doubts(self, x: Vector) -> Matrix:
        """What is predicted of each target of one row as if it came next, q and sizes."""
        one = self.current.one_row
        if one is None:
            predictions, doubts = self.predict_with_doubts(x[None], True)
            return np.column_stack([predictions[0, : doubts.shape[1]], doubts[0]])
        scores = self.predict_row(x)
        doubts = one.doubts()
        return np.column_stack([scores[: len(doubts)], doubts])

    def learn_row(self, x: Vector, y: Sequence[float], delay: int) -> None:
        """Predict one row, then learn the one that becomes known after it; with weight 1."""
        one = self.current.one_row
        if one is None and len(self.withheld) < delay:  # none becomes known: those that wait are left alone
            none, row = np.zeros(1, dtype=np.int64), np.array([y], dtype=np.float64)
            last = self._follow(row[:0], none)
            layout = replace(self.current.layout, width=len(x))
            asked = self._interleave(layout.join(x[None], last, row, np.ones(1)), none, None, 0)[1]
            assert asked is not None
            self.withheld = np.append(self.withheld, self.pending.keep(asked.one_by_one()[0]))
            return
        if one is None:
            self.advance(x[None], np.array([y], dtype=np.float64), np.ones(1), delay)
            return
        one.ask(x, self.last_targets.tail, self.rows)
        if not delay:
            self._learn_row(y, None)
            return
        record, own = one.asked(), self._targets_in_row
        record.rows[own], record.rows[own.stop] = y, 1.0
        self.withheld = np.append(self.withheld, self.pending.keep(record))
        if len(self.withheld) > delay:
            number, self.withheld = int(self.withheld[0]), self.withheld[1:]
            record = self.pending.records.pop(number)
            self._learn_row(record.rows[own].tolist(), record)

    @property
    def _targets_in_row(self) -> slice:
        """Where in a row its targets stand; its weight is the next number."""
        layout = self.current.layout
        return slice(layout.own, layout.own + layout.count)

    def ask(self, x: Vector) -> int:
        """Predict one row, whose target is to come; the number under which it waits."""
        one = self.current.one_row
        if one is not None:
            one.ask(x, self.last_targets.tail, self.rows)
            return self.pending.keep(one.asked())
        return self.pending.keep(self._ask_in_block(x))

    def _ask_in_block(self, x: Vector) -> Asked:
        rows = self._joined(x[None], True)[0]
        asked = self._interleave(rows, np.zeros(1, dtype=np.int64), None, 0)[1]
        assert asked is not None
        return asked.one_by_one()[0]

    def of_targets(self, settings: Settings) -> StreamRows:
        """Before any target was known: of as many as it says, where the same rows wait."""
        other = StreamRows(settings)
        other.pending.asked = self.pending.asked
        for number, record in self.pending.records.items():
            x = record.rows[: self.current.layout.width]
            other.pending.records[number] = other._ask_in_block(x)
        return other

    def tell(self, number: int, x: Vector, y: Sequence[float]) -> None:
        """Learn the row that waits under this number; x are its features, as they are known now."""
        record = self.pending.records.pop(number)
        record = record._replace(rows=record.rows.copy())
        own = self._targets_in_row
        record.rows[: len(x)], record.rows[own], record.rows[own.stop] = x, y, 1.0
        if self.current.one_row is not None:
            self._learn_row(y, record)
            return
        waiting, none = Asked.stacked([record]), np.empty(0, dtype=np.int64)
        self._follow(np.array([y], dtype=np.float64), none)
        self._interleave(waiting.rows[:0], none, waiting, 1)

    def _learn_row(self, y: Sequence[float], asked: Asked | None) -> None:
        ended = self.current.learn_row(y, self.rows, asked)
        self.rows += 1
        if asked is None or asked.rows[self._targets_in_row.stop] > 0.0:
            self.last_targets.follow_one(y)
        if ended:
            if self.drift.end_chunk():
                self.pending.change(self._asked_again)
            self._look_back()

    def _follow(self, Y: Matrix, known: NDArray[np.int64]) -> Matrix:
        """The last targets before rows, of which the first ``known`` of these are learned.

        A row without weight is not learned: it leaves the last targets as they are, as one without target.
        """
        return self.last_targets.follow(Y, known, first=self.current.targets.empty)

    # ---- rows through the ends of chunks

    def _interleave(
        self, rows: Matrix, known: NDArray[np.int64], waiting: Asked | None, count: int
    ) -> tuple[list[Outcome], Asked | None]:
        """As :meth:`Ensemble.advance`, through the ends of chunks."""
        before = 0 if waiting is None else len(waiting.rows)
        places = np.arange(before + len(rows))
        if waiting is not None:
            waited = Layout.waited(waiting.rows)[:count]
            waited[:] = self.rows + places[: len(waited)] - waited
        # Until a row is learned: when it was predicted.
        Layout.waited(rows)[:] = np.where(places[before:] < count, places[before:] - known, self.rows + known)
        outcomes, learned, predicted = [], 0, 0
        while True:
            chunk = min(count - learned, self.current.left)
            ends = chunk == self.current.left
            # A row behind the last one of a chunk is predicted by what is found at its end.
            stop = int(np.searchsorted(known, learned + chunk)) if ends else len(rows)
            part = slice(predicted, stop)
            outcome, waiting = self.current.advance(rows[part], known[part] - learned, waiting, chunk)
            outcomes.append(outcome)
            learned, predicted, self.rows = learned + chunk, stop, self.rows + chunk
            if ends:
                if self.drift.end_chunk():
                    waiting = None if waiting is None else self._asked_again(waiting)
                    self.pending.change(self._asked_again)
                self._look_back()
            if learned == count and predicted == len(rows):
                return outcomes, waiting

    def _asked_again(self, waiting: Asked) -> Asked:
        """Rows that wait, as the ensemble that took over predicts them."""
        known = np.zeros(len(waiting.rows), dtype=np.int64)
        asked = self.current.advance(waiting.rows, known, None, 0)[1]
        assert asked is not None
        return asked

    def _look_back(self) -> None:
        """Now and then, see whether the function creeps; it is news again once rows behind that are old."""
        rows, number = self.current.rows, self.drift.number
        if not is_time_to_look_back(rows) or self.current.reservoir.sample < 1024:  # too few: tiny
            return
        told = self.crept or []
        since = told[-1][3] if told and told[-1][2] == number else 0
        rise = rise_of_old_errors(self.current, self.drift.usual_error, since, self.drift.units)
        if rise > 0.0:
            # The last 16: all have become events by then.
            self.crept = [*told[-15:], (self.rows - 1, rise, number, rows)]

    # ---- more classes, more features

    def add_output(self) -> None:
        """A class more, that no row was of so far."""
        self.drift.add_output()
        self.pending.change(
            lambda asked: asked._replace(
                F=np.pad(asked.F, ((0, 0), (0, 0), (0, 1))),
                predictions=np.pad(asked.predictions, ((0, 0), (0, 1))),
            )
        )

    def widen(self, values: Vector) -> None:
        """Features more, behind the others, which had these values in all rows so far."""
        layout = self.current.layout
        self.pending.change(lambda asked: asked._replace(rows=layout.widened(asked.rows, values)))
        self.drift.widen(values)

    # ---- on from a file

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if not set(self.withheld.tolist()) <= self.pending.records.keys():
            raise stored.error("targets are kept back of rows that do not wait")
        if len(self.withheld):  # of others no target is there
            waiting = Asked.stacked(self.pending.records[number] for number in self.withheld.tolist()).rows
            self.current.layout.require_codes(waiting, self.current.outputs, stored)
