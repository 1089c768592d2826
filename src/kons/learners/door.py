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

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy import ndarray

from kons.arrays import as_outputs, as_row_values
from kons.errors import ConfigurationError, InputError, MissingValueError, notice
from kons.learners.labels import Labels
from kons.learners.learner import Learner
from kons.learners.trace import Trace
from kons.learners.turns import Turn, in_turn, marked, takes_turns
from kons.state import Field, Inner, fields
from kons.tables import Encoder, Growth, Records, is_table, record_to_keep, records_of

__all__ = ["TakesTables"]

#: Verbs that ask about rows, and about one.
ABOUT_ROWS = ("predict", "predict_proba", "decision_function", "novelty")
ABOUT_ONE = ("predict_one", "predict_proba_one", "row_to_keep")
#: All that reads or writes what was learned: see :mod:`kons.learners.turns`.
IN_TURN = (
    *("advance", "learn_one", *ABOUT_ROWS, *ABOUT_ONE, "ask", "tell", "forget", "learn_kept_row"),
    *("release_kept_row", "learn_slope", "update", "transform", "arrange", "widen", "grow", "finish_warmup"),
    *("following", "probabilities", "state", "take_encoder"),
)


class TakesTables(Learner):
    """The verbs of every class that derives from it are wrapped, so that no learner can forget a table."""

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        _encoder=Inner(make=lambda learner: learner._new_encoder(), left_out=True)
    )

    allows_missing: bool = False
    """Whether arrays may hold NaN, for a value that is not known."""
    column_totals: Any
    """Sums of each feature so far, of a learner that allows missing ones."""
    _encoder: Encoder | None = None
    _turn: Turn

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        wraps: dict[str, Callable[[Any], Any]] = {"advance": _advancing, "learn_one": _learning_one}
        wraps |= dict.fromkeys(ABOUT_ROWS, _asking) | dict.fromkeys(ABOUT_ONE, _asking_one)
        for name, wrap in wraps.items():
            if name in vars(cls) and getattr(cls, "supervised", True):
                setattr(cls, name, wrap(vars(cls)[name]))
        for name in IN_TURN:
            verb = getattr(cls, name, None)
            if inspect.isfunction(verb) and not takes_turns(verb):
                setattr(cls, name, in_turn(verb))

    def __new__(cls, *_: Any, **__: Any) -> Self:
        learner = super().__new__(cls)
        learner._turn = Turn()
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

    def _records(self, X: Any) -> Records | None:
        """Rows that the encoder is for; None for those that are taken as they are."""
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
            return verb(self, rows, *args, **options)

    return marked(ask)


def _asking_one(verb: Any) -> Any:
    ask = _asking(verb, one=True)
    if len(inspect.signature(verb).parameters) > 2:
        return ask

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


def _advancing(verb: Any) -> Any:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def advance(self: Any, X: Any, y: Any, *args: Any, **options: Any) -> Trace:
        records = self._records(X)
        if records is None:
            try:
                trace: Trace = verb(self, X, y, *args, **options)
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
            return verb(self, rows, targets[which], **given, **weigh)

        return Trace.concatenate(self._learn_records(records, targets, learn))

    return advance


def _learning_one(verb: Any) -> Any:
    @functools.wraps(verb)
    def learn_one(self: Any, x: Any, y: Any) -> None:
        with self._turn:
            encoder = self._encoder
            if encoder is not None and type(x) is dict:
                number = type(y) is float and y - y == 0.0 and not encoder.labelled
                target = y if number else self._as_target(y)
                reading = encoder.read_one(x, target)
                if reading is not None:
                    verb(self, reading.row, y)
                    encoder.learn_one(reading, target)
                    return
            # An array of numbers at the least cost, for loops over rows.
            records = None if encoder is None and type(x) is ndarray else self._records(x)
            if records is not None:
                self._learn_records(records, [y], lambda rows, _: verb(self, rows[0], y))
                return
            try:
                verb(self, x, y)
                return
            except MissingValueError:
                if not self.allows_missing or not _has_gaps(x):
                    raise
            _from_first_gap(self, type(self).advance, np.atleast_2d(np.asarray(x, dtype=np.float64)), [y])

    return marked(learn_one)


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
