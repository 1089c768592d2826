"""Tables at the border of a learner: frames, dicts and gaps go through one encoder, which is a part of it.

Every verb that takes rows takes, instead of an array of numbers,

    a frame, of pandas or any library that narwhals knows      rows by column name
    a dict, or a list of dicts                                 the same, row by row; keys may be missing
    an array with NaN, where the learner allows missing ones   columns by their number

From the first of these on the learner has an :class:`~kons.tables.Encoder`: it remembers names and kinds, and
is saved, undone and copied with the learner. An array of numbers then holds rows that are encoded already,
unless the encoder's columns are numbers themselves.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy import ndarray

from kons.arrays import FLOAT64, as_outputs, as_row_values
from kons.core.interruption import HeldInterrupts
from kons.errors import ConfigurationError, InputError, KonsError, MissingValueError, notice
from kons.learners.doubt import KnowsItsErrors
from kons.learners.explaining import GivesReasons
from kons.learners.labels import Labels
from kons.learners.trace import Trace
from kons.learners.turns import Turn, in_turn, marked, takes_turns
from kons.state import Field, Inner, fields
from kons.tables import Encoder, Growth, Records, is_table, record_to_keep, records_of

__all__ = ["TakesTables"]

#: Verbs that ask about rows, and about one.
ABOUT_ROWS = ("predict", "predict_proba", "decision_function", "novelty", "predict_interval", "predict_set")
ABOUT_ONE = (
    *("predict_one", "predict_proba_one", "row_to_keep", "_note"),
    *("predict_interval_one", "predict_set_one"),
)
#: All that reads or writes what was learned: see :mod:`kons.learners.turns`.
IN_TURN = (
    *("advance", "learn_one", *ABOUT_ROWS, *ABOUT_ONE, "ask", "tell", "forget", "learn_kept_row"),
    *("release_kept_row", "learn_slope", "update", "transform", "arrange", "widen", "grow", "finish_warmup"),
    *("following", "probabilities", "state", "take_encoder", "explain"),
)


class TakesTables(GivesReasons):
    """The verbs of every class that derives from it are wrapped, so that no learner can forget a table."""

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        _encoder=Inner(make=lambda learner: learner._new_encoder(), left_out=True)
    )

    allows_missing: bool = False
    """Whether arrays may hold NaN, for a value that is not known."""
    column_totals: Any
    """Sums of each feature so far, of a learner that allows missing ones."""
    #: Whether a verb is at work whose rows were encoded, and that calls others.
    _rows_are_encoded: bool = False
    _turn: Turn

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        wraps: dict[str, Callable[[Any], Any]] = {"advance": _advancing, "learn_one": _learning_one}
        wraps |= {"learn_kept_row": _learning_kept, "widen": _widening}
        wraps |= dict.fromkeys(ABOUT_ROWS, _asking) | dict.fromkeys(ABOUT_ONE, _asking_one)
        for name, wrap in wraps.items():
            verb, shared = getattr(cls, name, None), vars(KnowsItsErrors).get(name)
            wanted = name in vars(cls) or (verb is not None and verb is shared)
            if wanted and getattr(cls, "supervised", True):
                setattr(cls, name, wrap(verb))
        for name in IN_TURN:
            verb = getattr(cls, name, None)
            if inspect.isfunction(verb) and not takes_turns(verb):
                setattr(cls, name, in_turn(verb))

    def __new__(cls, *_: Any, **__: Any) -> Self:
        learner = super().__new__(cls)
        learner._turn = Turn()
        learner._followed_elsewhere = learner._rows_are_encoded = False
        return learner

    # ---- looking

    @property
    def encoder(self) -> Encoder | None:
        """From records to rows; None, where only arrays of numbers have come."""
        return self._encoder

    @property
    def feature_names(self) -> list[str] | None:
        """What the places of a row are called, where columns have names."""
        return None if self._encoder is None or self._encoder.unnamed else self._encoder.features

    def take_encoder(self, encoder: Encoder) -> None:
        """Let the encoder of a stream be a part of the learner, which then takes raw rows, too."""
        self._look_at_held()
        self._encoder = encoder

    # ---- targets that come late

    def ask(self, x: Any, id: Any) -> Any:
        """As of rows of numbers. A record is encoded now, and learned by the encoder when its target is told.

        The first row of all tells which columns there are.
        """
        began = self._encoder is None
        if began and self.allows_missing and self._lacks_values(x):
            self._fill_gaps_from_now_on(np.size(x))
        if self._records(x) is None:
            return super().ask(x, id)
        record = record_to_keep(x)
        kept = None if self._encoder is None else self._encoder.asked(id)
        if kept is not None:  # it was encoded by what was known then
            return self.queue.ask_again(id, self.queue.find(id)[0][0] if kept == record else None)
        if self._encoder is None:
            self._encoder = self._new_encoder()
            self._encoder.begin(records_of(record))
        try:
            answer = super().ask(x, id)
        except BaseException:
            self._encoder = None if began else self._encoder
            raise
        self._encoder.ask(id, record, self.queue)
        return answer

    def tell(self, id: Any, y: Any) -> None:
        """As of rows of numbers."""
        encoder = self._encoder
        record = None if encoder is None else encoder.asked(id)
        if encoder is None or record is None:
            super().tell(id, y)
            self._tell_events()
            return
        target = self._as_target(y)
        reading = encoder.read_one(record, target)
        growth = None
        if reading is not None:
            super().tell(id, y)
            encoder.learn_one(reading, target)
        else:
            mark = encoder.mark()
            try:
                (piece,) = encoder.learn(records_of(record), [target])
                growth = piece.growth
                super().tell(id, y)
            except BaseException:
                encoder.restore(mark)
                raise
        encoder.answered(id)
        self.grow(growth)
        self._tell_events()

    def forget(self, id: Any) -> None:
        """As of rows of numbers."""
        super().forget(id)
        if self._encoder is not None:
            self._encoder.answered(id)

    def _point_to_keep(self, x: Any) -> Any:
        records = self._records(x)
        return super()._point_to_keep(x if records is None else self._look(records)[0])

    # ---- inside

    def _new_encoder(self) -> Encoder:
        return Encoder(labelled=self.labelled, outputs=self.outputs or 1, delay=self.delay or 0)

    def _predict_alone(self, x: Any) -> Any:
        """The answer about a row of numbers, in one step and out of turn; None: it is not one for that."""
        return None

    def _learn_alone(self, x: Any, y: Any) -> bool:
        """Learn a row of numbers and write it down, in one step and out of turn; False: nothing was done."""
        return False

    def _learn_and_count(self, x: Any, y: Any) -> bool:
        """Learn a row of numbers at the least cost, and write it down; False: it is not one for that."""
        return False

    def _records(self, X: Any) -> Records | None:
        """Rows that the encoder is for; None for those that are taken as they are."""
        if self._rows_are_encoded:
            return None
        if type(X) is np.ndarray and (self._encoder is None or not self._encoder.unnamed):
            return None
        if isinstance(X, Records):
            return X
        if self.accepts == "objects":
            return None
        if is_table(X):
            if self._encoder is None and self.rows_seen:
                raise InputError(
                    "X has named columns, and the rows learned so far were arrays without names: pass arrays "
                    "of the same columns, such as X.to_numpy()."
                )
            return records_of(X, None if self._encoder is None else self._encoder.columns)
        if self._encoder is not None and self._encoder.unnamed:
            array = np.atleast_2d(np.asarray(X, dtype=np.float64))
            if array.shape[1] != len(self._encoder.columns):
                raise InputError(
                    f"X has {array.shape[1]} features, expected the {len(self._encoder.columns)} so far."
                )
            if np.isinf(array).any():
                raise InputError("X holds infinity, expected finite numbers, or NaN for what is not known.")
            return records_of(array)
        return None

    @contextmanager
    def _encoded(self) -> Iterator[None]:
        """Rows are taken as they are inside."""
        before, self._rows_are_encoded = self._rows_are_encoded, True
        try:
            yield
        finally:
            self._rows_are_encoded = before

    def _look(self, records: Records) -> Any:
        """Rows as if each came next; before any was learned, the first says which columns there are."""
        encoder = self._encoder
        if encoder is None:
            encoder = self._new_encoder()
            if not len(records):
                return np.zeros((0, 1))
            encoder.begin(records)
        return encoder.look(records)

    def _lacks_values(self, x: Any) -> bool:
        """Whether a row of numbers has gaps; what else is wrong with it is said here."""
        if is_table(x):
            return False
        try:
            self._as_point(x)
        except MissingValueError:
            return True
        return False

    def _fill_gaps_from_now_on(self, width: int) -> None:
        """Let an encoder fill the gaps of arrays, where no row had one; it learns rows that wait, too."""
        encoder = self._encoder = self._new_encoder()
        encoder.begin_unnamed(self.column_totals if self.rows_seen else np.zeros(width), self.rows_seen)
        if self._queue is not None:
            for id in self._queue.ids:
                encoder.ask(id, record_to_keep(self._queue.find(id)[0][0]), self._queue)

    def _filled(self, X: Any) -> Any:
        """An array without its gaps, where no row before had one."""
        array = np.asarray(X, dtype=np.float64)
        means = self.column_totals / self.rows_seen if self.rows_seen else 0.0
        return np.where(np.isnan(array), means, array)

    def _as_codes(self, y: Any) -> Any:
        if self.labelled:
            return Labels(self.classes).learn(y)
        return as_outputs(y, len(y), None)

    def _as_target(self, y: Any) -> Any:
        """Of one row: a number, some of them, or the code of a label."""
        if self.labelled:
            try:
                return self.classes.index(y)
            except ValueError:  # a new one, or none
                return int(self._as_codes([y])[0])
        targets: Any = as_outputs([y], 1, None)[0]
        return targets if targets.ndim else float(targets)

    def grow(self, growth: Growth | None) -> None:
        """Let the learner follow features that joined; one that cannot goes on with those it has."""
        if growth is None:
            return
        try:
            super().grow(growth)
        except ConfigurationError as error:
            if self._encoder is None:
                raise
            self._encoder.keep_features(self._encoder.width - growth.columns)
            notice("features refused", f"what came late is left out: {error} Told once.")

    def _learn_records(self, records: Records, y: Any, learn: Callable[[Any, slice], Any]) -> list[Any]:
        """Learn rows piece by piece, all of them or, after an error, none."""
        found = []
        with self._all_or_nothing():
            if self._encoder is None:
                self._encoder = self._new_encoder()
            for piece in self._encoder.learn(records, self._as_codes(y)):
                found.append(learn(piece.X, piece.rows))
                self.grow(piece.growth)
        return found


def _asking(verb: Any, one: bool = False) -> Any:
    @functools.wraps(verb)
    def ask(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        with self._turn:
            if one and type(X) is dict and self._encoder is not None:
                rows = self._encoder.look_one(X)
            elif (records := self._records(X)) is not None:
                rows = self._look(records)[0] if one else self._look(records)
            else:
                try:
                    return verb(self, X, *args, **options)
                except MissingValueError:
                    if not self.allows_missing:
                        raise
                rows = self._filled(X)
            with self._encoded():
                return verb(self, rows, *args, **options)

    return marked(ask)


def _asking_one(verb: Any) -> Any:
    ask = _asking(verb, one=True)
    if len(inspect.signature(verb).parameters) > 2:
        return ask
    if verb.__name__ == "predict_one":
        return _predicting_one(verb, ask)

    @functools.wraps(verb)
    def ask_at_once(self: Any, x: Any) -> Any:
        with self._turn:
            if type(x) is ndarray and self._encoder is None:
                try:
                    return verb(self, x)  # at the least cost, for loops over rows
                except MissingValueError:
                    if not self.allows_missing:
                        raise
            elif type(x) is dict and self._encoder is not None:
                return verb(self, self._encoder.look_one(x))
            return ask(self, x)

    return marked(ask_at_once)


def _predicting_one(verb: Any, ask: Any) -> Any:
    """The answer is remembered: the row is likely to be learned next."""

    def answered(self: Any, x: Any) -> Any:
        if type(x) is ndarray and self._encoder is None:
            try:
                answer = verb(self, x)  # at the least cost, for loops over rows
            except MissingValueError:
                if not self.allows_missing:
                    raise
                answer = ask(self, x)
        elif type(x) is dict and self._encoder is not None:
            answer = verb(self, self._encoder.look_one(x))
        else:
            return ask(self, x)
        if self.watch is not None and not self._tells_afterwards():
            # Where no copy of the learner looks: it is nothing that was learned.
            self._turn.asked = _remembered(x), answer, self.rows_noted
        return answer

    @functools.wraps(verb)
    def predict_one(self: Any, x: Any) -> Any:
        answer = self._predict_alone(x) if type(x) is ndarray else None
        if answer is None:
            with self._turn:
                answer = answered(self, x)
        return answer

    return marked(predict_one)


def _advancing(verb: Any) -> Any:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def advance(self: Any, X: Any, y: Any, *args: Any, **options: Any) -> Trace:
        y = list(y) if hasattr(y, "__iter__") and not hasattr(y, "__len__") else y
        records = self._records(X)
        y = list(y) if hasattr(y, "__next__") else y  # it is looked at twice
        if records is None:
            try:
                before = self.rows_noted
                trace: Trace = self._follow_trace(verb(self, X, y, *args, **options), y)
                self._note_rows(X, y, before, trace.prediction)
                self._tell_events()
                return trace
            except MissingValueError:
                if not self.allows_missing or not _has_gaps(X):
                    raise
        given = dict(signature.bind(self, X, y, *args, **options).arguments)
        given = {name: value for name, value in given.items() if name not in ("self", "X", "y")}
        if records is None:
            found: Trace = _from_first_gap(self, advance, X, y, **given)
            return found
        weights = given.pop("sample_weight", None)
        if len(y) != len(records):
            raise InputError(f"y has {len(y)} value(s), X has {len(records)} row(s): expected one per row.")
        if weights is not None:
            weights = as_row_values(weights, len(records), name="sample_weight", minimum=0.0)
        targets = y if isinstance(y, (list, np.ndarray)) else list(y)

        def learn(rows: Any, which: slice) -> Any:
            weigh = {} if weights is None else {"sample_weight": weights[which]}
            before = self.rows_noted
            learned = verb(self, rows, targets[which], **given, **weigh)
            trace = self._follow_trace(learned, targets[which])
            self._note_rows(rows, targets[which], before, trace.prediction)
            return trace

        learned = Trace.concatenate(self._learn_records(records, targets, learn))
        self._tell_events()
        return learned

    return advance


def _learning_one(verb: Any) -> Any:
    def learn(self: Any, x: Any, y: Any, raw: Any) -> None:
        """A row that is encoded, and as it came."""
        if self.inside:
            self._learn_and_follow(verb, x, y)
            return
        turn, prediction, before, seen = self._turn, self._answer, self.rows_noted, self.rows_seen
        if prediction is None and not self._followed_elsewhere and self._tells_afterwards(y):
            try:
                verb(self, x, y)
            finally:  # whatever stopped it behind that
                if self.rows_seen != seen and self.rows_noted == before:
                    self._note_said(x, y)
            return
        asked, turn.asked = turn.asked, None
        row = x.tobytes() if type(x) is ndarray and x.dtype is FLOAT64 and x.ndim == 1 else None
        if prediction is not None:
            vars(self).pop("_answer", None)
        elif asked is not None and asked[2] == before and _same(asked[0], row if raw is x else raw):
            prediction = asked[1]
        else:
            encoder = self._encoder
            with contextlib.suppress(KonsError):  # one that learns otherwise than it predicts
                prediction = self.predict_one(raw if encoder is not None and encoder.unnamed else x)
            turn.asked = None
        self._learn_and_follow(verb, x, y)
        if self.rows_noted == before:
            self._note_one(x, y, before, prediction)

    def learn_any(self: Any, x: Any, y: Any) -> None:
        encoder = self._encoder
        if encoder is not None and type(x) is dict:
            number = type(y) is float and y - y == 0.0 and not encoder.labelled
            target = y if number else self._as_target(y)
            reading = encoder.read_one(x, target)
            if reading is not None:
                with self._encoded():
                    learn(self, reading.row, y, x)
                encoder.learn_one(reading, target)
                if encoder.new_levels and self.watch is not None:
                    self._look_at_held()
                    self._notice(self._new_levels(), reading.row[None], self.watch.rows - 1)
                return
        # An array of numbers at the least cost, for loops over rows.
        records = None if encoder is None and type(x) is ndarray else self._records(x)
        if records is not None:

            def learn_encoded(rows: Any, _: slice) -> None:
                with self._encoded():
                    learn(self, rows[0], y, x)

            self._learn_records(records, [y], learn_encoded)
            return
        try:
            learn(self, x, y, x)
            return
        except MissingValueError:
            if not self.allows_missing or not _has_gaps(x):
                raise
        _from_first_gap(self, type(self).advance, np.atleast_2d(np.asarray(x, dtype=np.float64)), [y])

    @functools.wraps(verb)
    def learn_one(self: Any, x: Any, y: Any) -> None:
        learned = type(x) is ndarray and self._learn_alone(x, y)
        if learned and self.on_event is None:
            return
        with self._turn, HeldInterrupts():  # learned, counted and looked at, or nothing of it
            learned = learned or (type(x) is ndarray and self._learn_and_count(x, y))
            if not learned:
                learn_any(self, x, y)
            elif self.on_event is not None:
                self._look_at_held()
            self._tell_events()

    return marked(learn_one)


def _remembered(x: Any) -> Any:
    """A row as it was asked about, to see whether it is the one that is learned."""
    return x.tobytes() if type(x) is ndarray else x.copy() if type(x) is dict else None


def _same(asked: Any, x: Any) -> bool:
    try:
        return type(x) in (bytes, dict) and bool(asked == x)
    except (TypeError, ValueError):  # of arrays, nobody can say whether they are equal
        return False


def _learning_kept(verb: Any) -> Any:
    @functools.wraps(verb)
    def learn_kept_row(self: Any, kept: Any, y: Any) -> None:
        with self._turn, HeldInterrupts():
            before = self.rows_noted
            asked = vars(self).pop("_answer", None)
            verb(self, kept, y)
            self._note_rows([kept[0]], [y], before, None if asked is None else [asked])

    return marked(learn_kept_row)


def _widening(verb: Any) -> Any:
    @functools.wraps(verb)
    def widen(self: Any, columns: int = 1, samples: Any = None) -> None:
        with self._turn:
            self._look_at_held()
            self._record = None
            verb(self, columns, samples)
            sample = self.row_sample
            if sample is not None and len(sample) and sample.points.shape[1] < (self._width or 0):
                values = np.zeros(columns) if samples is None else np.median(samples, axis=0)
                sample.widen(values)

    return marked(widen)


def _has_gaps(X: Any) -> bool:
    """Whether it is the rows, and not their targets, that lack something."""
    return bool(np.isnan(np.asarray(X, dtype=np.float64)).any())


def _from_first_gap(self: Any, advance: Any, X: Any, y: Any, **options: Any) -> Any:
    """Learn rows of which some have gaps, where none had before: from there on an encoder fills them."""
    array = np.asarray(X, dtype=np.float64)
    first = int(np.isnan(array).any(axis=1).argmax())
    weights = options.pop("sample_weight", None)
    traces = []
    with self._all_or_nothing():
        for rows in (slice(0, first), slice(first, None)):
            if rows.start == first:
                self._fill_gaps_from_now_on(array.shape[1])
            if len(array[rows]):
                weigh = {} if weights is None else {"sample_weight": np.asarray(weights)[rows]}
                traces.append(advance(self, array[rows], y[rows], **options, **weigh))
    return Trace.concatenate(traces)
