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
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy import ndarray

from kons.arrays import FLOAT64, Matrix, Vector, as_outputs, as_row_values
from kons.errors import ConfigurationError, InputError, KonsError, MissingValueError, notice
from kons.learners.doubt import KnowsItsErrors
from kons.learners.events import KINDS, Event, OnEvent
from kons.learners.labels import Labels
from kons.learners.reasons import Explanation, explain
from kons.learners.sample import RowSample
from kons.learners.trace import Trace
from kons.learners.turns import Turn, in_turn, marked, takes_turns
from kons.learners.watch import FOUND, GAP, HELD, NUMBER, Watch
from kons.scaling import RobustScaling
from kons.state import Field, Inner, fields
from kons.tables import Encoder, Growth, Records, is_table, record_to_keep, records_of

__all__ = ["TakesTables"]

#: Verbs that ask about rows, and about one.
ABOUT_ROWS = ("predict", "predict_proba", "decision_function", "novelty", "predict_interval", "predict_set")
ABOUT_ONE = (
    *("predict_one", "predict_proba_one", "row_to_keep", "_note"),
    *("predict_interval_one", "predict_set_one"),
)
LEVEL = "new level"
#: All that reads or writes what was learned: see :mod:`kons.learners.turns`.
IN_TURN = (
    *("advance", "learn_one", *ABOUT_ROWS, *ABOUT_ONE, "ask", "tell", "forget", "learn_kept_row"),
    *("release_kept_row", "learn_slope", "update", "transform", "arrange", "widen", "grow", "finish_warmup"),
    *("following", "probabilities", "state", "take_encoder", "explain"),
)


class TakesTables(KnowsItsErrors):
    """The verbs of every class that derives from it are wrapped, so that no learner can forget a table."""

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        _encoder=Inner(make=lambda learner: learner._new_encoder(), left_out=True),
        row_sample=Inner(make=lambda _: RowSample(), left_out=True),
        watch=Inner(make=lambda _: Watch(), left_out=True),
    )

    allows_missing: bool = False
    """Whether arrays may hold NaN, for a value that is not known."""
    column_totals: Any
    """Sums of each feature so far, of a learner that allows missing ones."""
    row_sample: RowSample | None = None
    """Some of the rows learned, with their targets; None before the first, and inside of another learner."""
    samples_rows: bool = True
    """Whether it is to have such a sample; False: it keeps rows by itself."""
    watch: Watch | None = None
    """What is noticed of rows, where :attr:`row_sample` is."""
    on_event: OnEvent = None
    """Called with each event, once its row is learned; with one that repeats, each time."""
    _new_events: tuple[Event, ...] = ()
    inside: bool = False
    """Whether nothing is kept of rows, nor noticed: a part of another learner, or one of objects."""
    _encoder: Encoder | None = None
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
        self._encoder = encoder

    # ---- reasons

    def explain(
        self,
        x: Any,
        *,
        label: Any = None,
        output: int = 0,
        recent_targets: Any = True,
        paths: int = 16,
        similar: int = 5,
    ) -> Explanation:
        """Why a row is predicted as it is: what each of its columns adds to the prediction for a typical row.

        Shapley values (:mod:`kons.learners.reasons`) against the row of medians and commonest levels of a
        sample of the rows learned; for classes, of the log-odds of ``label`` (None: the predicted one). They
        are exact up to 8 columns that differ from the typical row; beyond, a mean over ``paths`` random
        orders of them and their reverses, with standard errors. Changes nothing.

        It costs 2^d predictions in one block, beyond 8 columns 2 paths (d - 1). Not for kernels on objects.
        ``similar`` rows that were kept come with it. Where rows have several targets, ``output`` is the
        number of one. A learner that looks at the last targets takes the row as coming next, and has them as
        one column more; with ``recent_targets=False`` away from the stream, as ``predict`` does.

        >>> import numpy as np
        >>> from kons import EmbeddedKONS, Linear, Squared
        >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
        >>> model = EmbeddedKONS(Linear(), Squared(), second_order="hessian", regularization=1e-6)
        >>> trace = model.advance(X, 0.5 * X[:, 0])
        >>> reasons = model.explain([0.8, 0.3])
        >>> bool(abs(reasons.contributions[0] - 0.5 * (0.8 - reasons.typical[0])) < 1e-3)
        True
        >>> bool(abs(reasons.baseline + sum(reasons.contributions.values()) - reasons.prediction) < 1e-12)
        True
        """
        return explain(
            self,
            x,
            label=label,
            output=output,
            recent_targets=recent_targets,
            paths=paths,
            similar=similar,
        )

    def _sampled_rows(self) -> tuple[Matrix, Any]:
        """Rows drawn from all that were learned, and their targets."""
        self._look_at_held()
        sample = self.row_sample
        return (np.empty((0, 0)), np.empty((0, 1))) if sample is None else (sample.points, sample.targets)

    def _beside_typical(self, x: Any, points: Matrix) -> tuple[Any, Any, Any, list[Any], dict[Any, Any]]:
        """A row and the typical one as ``predict`` takes them, the first as it is learned; whose features
        these are; the typical one for people.
        """
        encoder, records = self._encoder, self._records(x)
        if encoder is None:
            gaps = self._lacks_values(x) and self.allows_missing
            own = self._as_point(self._filled(x) if gaps else x)[0]
            typical = np.median(points, axis=0)
            return own, typical, own, list(range(len(own))), dict(enumerate(typical.tolist()))
        shown = encoder.typical(points)
        learned = self._as_points(x if records is None else self._look(records))
        if len(learned) != 1:
            raise InputError(f"x has {len(learned)} rows, expected one.")
        if encoder.unnamed and records is not None:
            own = np.array([records.values(name, "number")[0] for name in encoder.columns])
            typical = np.array([np.nan if value is None else value for value in shown.values()])
            return own, typical, learned[0], list(encoder.columns), shown
        typical = encoder.look(Records.of([shown]))[0]
        return learned[0], typical, learned[0], encoder.owners, shown

    def _shown(self, point: Vector) -> dict[Any, Any]:
        """A row as it is learned, by column."""
        return dict(enumerate(point.tolist())) if self._encoder is None else self._encoder.decode(point)

    def _kept_rows(self) -> tuple[Matrix, Any]:
        """Rows that were learned and are there still, and their targets."""
        return self._sampled_rows()

    def _similarities(self, points: Matrix, x: Vector) -> Vector:
        """How like a row these are: 1 for the same."""
        kernel = self.kernel
        likeness: Vector
        if kernel is not None and kernel.is_resolved:
            sizes = kernel.evaluate_diagonal(points) * kernel.evaluate_diagonal(x[None])
            likeness = kernel.evaluate(points, x[None])[:, 0] / np.sqrt(np.maximum(sizes, 1e-300))
        else:
            scaling = RobustScaling.fit(points)
            apart = np.abs(scaling.transform(points) - scaling.transform(x[None]))
            likeness = np.exp(-apart.mean(axis=1))
        return likeness

    # ---- what is kept of rows, and noticed

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
        state: dict[str, Any] = super().state()  # type: ignore[misc]
        return state

    def mark(self) -> Any:
        """Where it stands, for ``restore``."""
        self._look_at_held()
        return super().mark()  # type: ignore[misc]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit; all rows that wait to be looked at came behind it."""
        super().restore(mark)  # type: ignore[misc]
        if self.watch is not None:
            self.watch.held = []

    def _look_at_held(self) -> None:
        """Look at single rows that wait for others: when these are there does not matter."""
        watch = self.watch
        if watch is not None and watch.held:
            first = watch.rows
            rows, targets, told = watch.learn_held(self.labelled)
            if self.row_sample is not None:
                self.row_sample.learn(rows, targets)
            self._noticed(told, rows, first)

    @property
    def rows_noted(self) -> int:
        """How many rows were looked at: all since this version."""
        return 0 if self.watch is None else self.watch.rows + len(self.watch.held)

    def _note_rows(self, X: Any, y: Any, before: int, predictions: Any = None) -> None:
        """Rows, encoded, were learned: keep some, look at all, unless who learned them has. Cannot fail."""
        if self.inside or self.rows_noted != before:
            return
        self._look_at_held()
        if self.row_sample is None and self.samples_rows:
            self.row_sample = RowSample()
        if self.watch is None:
            self.watch = Watch()
        targets = np.asarray(self._as_codes(y), dtype=np.float64)
        if targets.ndim == 2 and not self.outputs:  # a number in brackets
            targets = np.ascontiguousarray(targets[:, 0])
        rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64).reshape(len(targets), -1))
        if self.row_sample is not None:
            self.row_sample.learn(rows, targets)
        one = targets if targets.ndim == 1 else np.full(len(targets), np.nan)
        self._watch_rows(rows, one, self._losses(predictions, targets))

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
        self._look_at_held()
        if watch.width != rows.shape[1]:
            watch.plan(*self._roles(rows.shape[1]))
        first = watch.rows
        self._noticed(watch.learn(rows, targets, losses, self.labelled), rows, first)

    def _noticed(self, told: list[tuple[int, int, int, float]], rows: Matrix, first: int) -> None:
        """Note what was found in rows, and what others say of them."""
        encoder, found = self._encoder, []
        for row, kind, feature, size in told:
            owner = () if feature < 0 else (feature if encoder is None else encoder.owners[feature],)
            found.append((row, *FOUND[kind], owner, size))
        found += [(row, kind, "alarm", (), size) for row, kind, size in self._model_events(first)]
        if encoder is not None and encoder.new_levels:
            found += self._new_levels()
        if found:
            self._notice(found, rows, first)

    def _note_one(self, x: Any, y: Any, before: int, prediction: Any) -> None:
        """As :meth:`_note_rows`, of one row, in a microsecond or two."""
        watch = self.watch
        if watch is None:
            self._note_rows([x], [y], before, [prediction])
            return
        x = np.asarray(x, dtype=np.float64).ravel()
        target = float(y) if isinstance(y, float) and not self.labelled else self._as_target(y)
        if len(x) != watch.width or type(target) not in (float, int):
            self._note_rows([x], [y], before, [prediction])
            return
        loss = math.nan
        if self.labelled:
            loss = math.nan if prediction is None else float(prediction != self.classes[target])
        elif prediction is not None:
            error = float(prediction) - target
            loss = min(error * error, 1e300)
        watch.numeric = not self.labelled
        watch.held.append((x.tobytes(), float(target), loss))
        if len(watch.held) == HELD or self.on_event is not None:
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
        for row, kind, severity, columns, size in sorted(found, key=lambda e: (e[0], e[1] == LEVEL, e[1])):
            time, size = self._moment_of(rows[row - first]), float(f"{size:.4g}")  # not its rounding
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

    @functools.wraps(verb)
    def predict_one(self: Any, x: Any) -> Any:
        with self._turn:
            answer = None
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
            if self.watch is not None:
                # Where no copy of the learner looks: it is nothing that was learned.
                self._turn.asked = _remembered(x), answer, self.rows_noted
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
        watch, turn, prediction = self.watch, self._turn, self._answer
        asked, turn.asked = turn.asked, None
        before = 0 if watch is None else watch.rows + len(watch.held)
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
        watch = self.watch
        if watch is None or watch.rows + len(watch.held) != before:
            if self.rows_noted == before:
                self._note_one(x, y, before, prediction)
        elif (
            row is None
            or not watch.numeric
            or not isinstance(y, float)  # NumPy's, too
            or type(prediction) is not float
            or len(x) != watch.width
        ):
            self._note_one(x, y, before, prediction)
        else:  # as there, at the least cost
            y = float(y)
            error = prediction - y
            watch.held.append((row, y, min(error * error, 1e300)))
            if len(watch.held) == HELD or self.on_event is not None:
                self._look_at_held()

    @functools.wraps(verb)
    def learn_one(self: Any, x: Any, y: Any) -> None:
        with self._turn:
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
                    self._tell_events()
                    return
            # An array of numbers at the least cost, for loops over rows.
            records = None if encoder is None and type(x) is ndarray else self._records(x)
            if records is not None:

                def learn_encoded(rows: Any, _: slice) -> None:
                    with self._encoded():
                        learn(self, rows[0], y, x)

                self._learn_records(records, [y], learn_encoded)
                self._tell_events()
                return
            try:
                learn(self, x, y, x)
                self._tell_events()
                return
            except MissingValueError:
                if not self.allows_missing or not _has_gaps(x):
                    raise
            _from_first_gap(self, type(self).advance, np.atleast_2d(np.asarray(x, dtype=np.float64)), [y])

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
        with self._turn:
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
