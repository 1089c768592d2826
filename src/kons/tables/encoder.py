"""The front door of a model: from records as people have them to rows of numbers, learned as rows come."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Matrix, Vector, require_delay
from kons.state import Array, Count, Field, Flag, Items, Part, Sizes, fields
from kons.stored import Stored
from kons.tables.cells import ColumnFormat
from kons.tables.dates import DateFeatures
from kons.tables.features import ColumnFeatures
from kons.tables.numbers import LOOKS, NumberFeatures
from kons.tables.records import Records, record_to_keep
from kons.tables.single import Reading, SingleRecords
from kons.tables.texts import TextFeatures

__all__ = ["Encoder", "Growth", "Piece"]

#: Of several targets, or classes, so many have statistics.
MOST_OUTPUTS = 9
#: Rows before a level can be new; a column with more than one in fifty rows new is one of identifiers.
LEVELS_FROM = 100
#: Kinds of columns; a flag is 0 or 1.
KINDS: dict[str, type[ColumnFeatures]] = {
    "number": NumberFeatures,
    "flag": NumberFeatures,
    "text": TextFeatures,
    "date": DateFeatures,
}


class Growth(NamedTuple):
    """Features that joined behind a row: how many, and what earlier rows have there."""

    columns: int
    earlier: Vector


class Piece(NamedTuple):
    """Rows that were encoded alike; behind the last of them features may have joined."""

    rows: slice
    X: Matrix
    growth: Growth | None


class _Columns(Field):
    """Columns by name, each of its kind."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        return [(key, column.kind, column.state()) for key, column in getattr(part, name).items()]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        columns: dict[Any, ColumnFeatures] = {}
        for entry in stored.items(key):
            if not (isinstance(entry, tuple) and len(entry) == 3 and entry[1] in KINDS):
                raise stored.error(f"{key} holds something else than a column of a known kind")
            known, kind, state = entry
            try:
                columns[known] = KINDS[kind](part.outputs)
            except TypeError:  # no name at all
                raise stored.error(f"{key} holds a column without a name") from None
            columns[known].load_state(Stored(state, f"the column {known!r}"), outputs=part.outputs)
        return columns

    def mark(self, part: Any, name: str) -> Any:
        return [(key, column, column.mark()) for key, column in getattr(part, name).items()]

    def restore(self, part: Any, name: str, mark: Any) -> None:
        setattr(part, name, {key: column for key, column, _ in mark})
        for _, column, where in mark:
            column.restore(where)


class _Names(Items):
    """Columns that are no features, of a model that has such; never changed in place."""

    left_out, undoes = True, False

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        return super().load(stored, key, part, name, sizes) if key in stored else None


class _Asked(Field):
    """Records that wait for their targets, by identifier: what each column had."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        return [(id, list(map(_as_saved, record.items()))) for id, record in getattr(part, name).items()]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        waiting = {}
        for entry in stored.items(key):
            if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], list)):
                raise stored.error(f"{key} holds something else than records")
            try:
                record = {column: _as_kept(value) for column, value in entry[1]}
                waiting[entry[0]] = record_to_keep(record)
            except (TypeError, ValueError, OverflowError) as error:
                raise stored.error(f"{key} holds no record: {error}") from None
            if waiting[entry[0]] != record:
                raise stored.error(f"{key} holds a record that was never kept")
        return waiting


def _as_saved(item: tuple[Any, Any]) -> tuple[Any, Any]:
    """A column and its value; files hold no moments."""
    name, value = item
    return name, ("moment", int(value.view(np.int64))) if isinstance(value, np.datetime64) else value


def _as_kept(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    kind, moment = value
    if kind != "moment":
        raise ValueError(f"there is no kind {kind!r} of value")
    return np.datetime64(moment, "us")


class Encoder(Part):
    """Records to rows of numbers: a row is encoded by the rows before it, and by targets known by then.

    ::

        for rows, X, growth in encoder.learn(records, targets): ...     in a stream: it learns them
        encoder.look(records)                                           away from it: changes nothing

    What becomes of a column: :mod:`kons.tables.features`. Columns may come at any time, in any order, and be
    missing; features are only ever added, behind the others, so that what a place in a row means stays for
    good. Memory does not grow with the rows. In blocks a number costs some 0.1 us, a text 0.4.

    Parameters
    ----------
    labelled
        Targets are codes of classes, in order of their first appearance; else numbers.
    outputs
        How many targets a row has.
    delay
        How many rows late targets are known.
    grows
        Whether features may join after the first row.
    levels
        Whether the values of numbers may be levels, too.

    Examples
    --------
    >>> from kons.tables import Encoder, Records
    >>> encoder = Encoder()
    >>> rows = [{"size": 1.0, "colour": "red"}, {"colour": "blue"}, {"size": 3.0, "colour": "red"}]
    >>> for piece in encoder.learn(Records.of(rows), [1.0, 2.0, 3.0]):
    ...     print(piece.X.tolist())
    [[1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]]
    [[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    >>> encoder.features[0], encoder.features[-1]
    ('size', 'size missing')
    """

    STATE = fields(
        width=Count(),
        outputs=Count(at_most=MOST_OUTPUTS),
        columns=_Columns(),
        left_out=_Names("a name", lambda name: type(name) is str),
        _late=Array(None, None),
        _looked=Count(at_most=len(LOOKS)),
        _known=Count(),
        grows=Flag(),
        _asked=_Asked(),
    )
    labelled: bool
    grows: bool

    def __init__(
        self,
        *,
        labelled: bool = False,
        outputs: int = 1,
        delay: int = 0,
        grows: bool = True,
        levels: bool = True,
    ) -> None:
        self.labelled, self.grows, self._levels = labelled, grows, levels
        self.delay: int = require_delay(delay)
        self.width: int = 0
        #: How many have statistics: targets, or known classes but the first.
        self.outputs: int = 0 if labelled else min(outputs, MOST_OUTPUTS)
        self.columns: dict[Any, ColumnFeatures] = {}
        #: What is in rows and shall not become features: the target, and what a file's reader left out.
        self.left_out: list[str] | None = None
        # The last targets, or codes, as far as they are not known yet; the codes of levels are in columns.
        self._late: Matrix = np.empty((0, 1 if labelled else outputs))
        self._looked = 0
        self._known = 0
        self._asked: dict[Any, dict[Any, Any]] = {}
        self._target = np.empty(1)  # of one row, for a moment
        #: Levels that were new, until somebody asks: row, column, level. Replaced, never changed.
        self.new_levels: list[tuple[int, Any, Any]] = []
        # Made when a dict comes by itself, of the columns as they then are.
        self._single: SingleRecords | None = None

    # ---- looking

    @property
    def unnamed(self) -> bool:
        """Whether its columns are those of arrays, by number."""
        return bool(self.columns) and all(type(name) is int for name in self.columns)

    @property
    def gaps(self) -> dict[Any, int]:
        """How many values were missing in the rows learned, of each column where some were."""
        return {name: column.gaps for name, column in self.columns.items() if column.gaps}

    @property
    def features(self) -> list[str]:
        """What each place of a row is called."""
        names = [""] * self.width
        for name, column in self.columns.items():
            for i, slot in enumerate(column.slots):
                names[slot] = column.label(str(name), i)
        return names

    @property
    def owners(self) -> list[Any]:
        """The column that each place of a row comes from."""
        names: list[Any] = [None] * self.width
        for name, column in self.columns.items():
            for slot in column.slots:
                names[slot] = name
        return names

    def look(self, records: Records) -> Matrix:
        """The rows as if each came next. Changes nothing; columns that are not known tell nothing."""
        X = np.zeros((len(records), self.width))
        for name, column in self.columns.items():
            column.look(column.values_of(records, name), X)
        return X

    def typical(self, points: Matrix) -> dict[Any, Any]:
        """The medians of numbers and dates in rows that are encoded, and the commonest level of texts."""
        return {name: column.typical(points) for name, column in self.columns.items()}

    def decode(self, row: Vector) -> dict[Any, Any]:
        """What a row that is encoded had in each column, as far as it tells."""
        return {name: column.decode(row) for name, column in self.columns.items()}

    # ---- one dict

    def look_one(self, x: dict[Any, Any]) -> Vector:
        """As :meth:`look` of this dict alone, in a fraction of the time; not to be written to."""
        return (self._single or self._of_singles()).look(x)

    def read_one(self, x: dict[Any, Any], target: Any) -> Reading | None:
        """The row of a dict that is about to be learned by :meth:`learn_one`, with this target.

        None, where that is not possible: targets come late, or features join behind it. Then there is
        :meth:`learn`. Changes nothing.
        """
        if not self._known or self.delay:
            return None
        if self._late.shape[1] != (1 if type(target) in (float, int) else len(target)):
            return None  # which is refused there
        if self.grows:
            if self._looked < len(LOOKS) and self._known + 1 >= LOOKS[self._looked]:
                return None
            if self.labelled and target > self.outputs < MOST_OUTPUTS:
                return None
        return (self._single or self._of_singles()).read(x)

    def learn_one(self, reading: Reading, target: Any) -> None:
        """Learn a row that was read; bit for bit as :meth:`learn` of it alone. Cannot fail."""
        single = self._single or self._of_singles()
        single.learn(reading, self._as_known(target) if single.follows_targets else None)
        for name, column in single.texts:
            if column.new_levels:
                self._note_levels(name, column, self._known)
        self._known += 1

    def _as_known(self, target: Any) -> Vector:
        """The targets of one row that have statistics."""
        outputs = max(self.outputs, 1)
        if not self.labelled and type(target) is float:
            self._target[0] = target
            return self._target
        if not self.labelled:
            return np.array(target, dtype=np.float64, ndmin=1)[:outputs]
        known = np.zeros(outputs)
        if 1 <= target <= outputs:
            known[target - 1] = 1.0
        return known

    def _of_singles(self) -> SingleRecords:
        self._single = SingleRecords(self)
        return self._single

    # ---- learning

    def begin(self, records: Records) -> None:
        """The columns of the first row, where none is known yet."""
        if not self.width:
            for name, kind in records.columns_at(0).items():
                self._join(name, kind, records.values(name, kind)[:1], late=False)
            self.width = max(self.width, 1)  # rows without any value: one column, always 0

    def learn(self, records: Records, targets: Any) -> Iterator[Piece]:
        """Encode rows, each by those before it, and learn them: piece by piece, to be asked for to the end.

        ``targets`` are numbers, (n,) or (n, k), or codes of classes.
        """
        if not len(records):
            return
        y = np.asarray(targets, dtype=np.float64).reshape(len(records), -1)
        self._single = None
        self.begin(records)
        self._begin_targets(y.shape[1])
        values = {name: column.values_of(records, name) for name, column in self.columns.items()}
        codes = {name: column.codes(values[name]) for name, column in self.columns.items()}
        first = self._known + len(self._late)
        for name, column in self.columns.items():
            self._note_levels(name, column, first)
        start = 0
        while start < len(records):
            new = records.first_new(self.not_new, start) if self.grows else {}
            stop = len(records)
            if self.grows:
                stop = self._first_growth(values, codes, y, start, min(new.values(), default=stop))
            rows = slice(start, stop)
            X = np.zeros((stop - start, self.width))
            largest = self._fill(values, codes, y, rows, X)
            growth = None
            if self.grows:
                before, earlier = (
                    self.width,
                    self._grow({n: each[stop - 1] for n, each in values.items()}, largest),
                )
                there = records.columns_at(stop - 1) if stop - 1 in new.values() else {}
                # In the order of columns_at: permuted columns are the same columns.
                for name, kind in there.items():
                    if new.get(name) != stop - 1:
                        continue
                    column = records.values(name, kind)
                    earlier += self._join(name, kind, column[stop - 1 : stop], late=True)
                    self.columns[name].new_levels = []
                    values[name], rest = column, self.columns[name].codes(column[stop:])
                    self._note_levels(name, self.columns[name], first + stop)
                    codes[name] = None if rest is None else np.concatenate([np.full(stop, -1), rest])
                if earlier:
                    growth = Growth(self.width - before, np.array(earlier))
            yield Piece(rows, X, growth)
            start = stop

    def _note_levels(self, name: Any, column: ColumnFeatures, first: int) -> None:
        """Tell of levels that are new, of a column whose levels come again; the first ones are no news."""
        found, column.new_levels = column.new_levels, []
        assert column.levels is not None or not found
        for place, known in found:
            row = first + place
            if row >= LEVELS_FROM and 1 <= known <= row // LEVELS_FROM * 2 and column.levels is not None:
                self.new_levels = [*self.new_levels, (row, name, column.levels.names[known])]

    def prepare(self, records: Records) -> None:
        """Let there be room, before the first row, for what these rows of the stream will ask for.

        Nothing is learned of them but which columns there are, which of them have gaps, how many levels come
        again and which parts of dates vary. A learner that has all features from its first row on does not
        have to find out later what they are worth.
        """
        for name, first in records.first_new((), 0).items():
            kind = records.kind_at(name, first)
            values = records.values(name, kind)
            self._join(name, kind, values[first : first + 1], late=False)
            self._add(self.columns[name], self.columns[name].reserve(values))

    @property
    def not_new(self) -> Container[Any]:
        """Columns whose values ask for no features more."""
        return self.columns if self.left_out is None else {*self.columns, *self.left_out}

    def describe(self, formats: Iterable[ColumnFormat], left_out: Iterable[str] = ()) -> None:
        """Say how the cells of columns are written in the file that they come from, and what to leave out."""
        self._single = None
        self.left_out = list(dict.fromkeys([*(self.left_out or ()), *left_out])) or None
        for format in formats:
            if format.name in self.columns:
                self.columns[format.name].format = format

    def begin_unnamed(self, totals: Vector, rows: int) -> None:
        """The columns of an array, of which so many rows, without a gap, had these sums."""
        self._single = None
        for name, total in enumerate(totals.tolist()):
            column = self.columns[name] = NumberFeatures(1)
            column.levels = column.statistics = None
            self._add(column, column.joins(0.0, late=False))
            column.total, column.count = total, float(rows)

    def keep_features(self, width: int) -> None:
        """No features beyond these: what joined behind them is given up, and nothing joins any more."""
        self.grows, self._single = False, None
        for name, column in list(self.columns.items()):
            column.give_up(width)
            if not column.slots:
                del self.columns[name]
        self.width = width

    # ---- rows that wait for their targets

    def ask(self, id: Any, record: dict[Any, Any], waiting: Container[Any]) -> None:
        """Keep a record until its target is known, or it is forgotten; others only while they wait."""
        self._asked[id] = record
        while (oldest := next(iter(self._asked))) not in waiting:
            del self._asked[oldest]

    def asked(self, id: Any) -> dict[Any, Any] | None:
        """The record that was kept."""
        return self._asked.get(id)

    def answered(self, id: Any) -> None:
        """A record waits no longer."""
        self._asked.pop(id, None)

    # ---- one piece

    def _begin_targets(self, count: int) -> None:
        """The first row says how many targets there are."""
        if self._known or len(self._late) or self._late.shape[1] == count:
            return
        self._late = np.empty((0, count))
        more = 0 if self.labelled else min(count, MOST_OUTPUTS) - self.outputs
        self.outputs += more
        for column in self.columns.values():
            if column.statistics is not None and more > 0:
                column.statistics.add_outputs(more)

    def _pairs(self, count: int) -> int:
        """How many pairs of row and target are known once so many rows more have come."""
        return max(0, len(self._late) + count - self.delay)

    def _first_growth(self, values: Any, codes: Any, y: Matrix, start: int, new: int) -> int:
        """Where a piece ends: behind the first row after which there are more features, if there is one."""
        late, left = self.delay - len(self._late), len(y) - start
        rows = [new - start]
        for name, column in self.columns.items():
            level = None if codes[name] is None else codes[name][start:]
            rows.append(column.first_growth(values[name][start:], level))
        if self._looked < len(LOOKS) and any(column.undecided for column in self.columns.values()):
            rows.append(LOOKS[self._looked] - self._known + late - 1)
        statistics = any(column.statistics is not None for column in self.columns.values())
        if statistics and self.labelled and self.outputs < MOST_OUTPUTS:
            known = np.concatenate([self._late, y[start:]])[: self._pairs(left), 0]
            more = np.flatnonzero(known > self.outputs)
            rows += [int(more[0]) + late] if len(more) else []
        return start + min(left, max(0, min(rows)) + 1)

    def _fill(self, values: Any, codes: Any, y: Matrix, rows: slice, X: Matrix) -> int:
        """Encode and learn rows; returns the largest of the codes that became known."""
        pairs = self._pairs(len(X))
        every = np.concatenate([self._late, y[rows]])
        raw = every[:pairs]
        known = raw
        if self.labelled:
            known = (raw == np.arange(1.0, 1.0 + max(self.outputs, 1))).astype(np.float64)
        known = np.ascontiguousarray(known[:, : max(self.outputs, 1)])
        first = len(self._late) - self.delay
        before = np.clip(np.arange(first, first + len(X)), 0, pairs)
        for name, column in sorted(self.columns.items(), key=lambda item: item[1].turn):
            level = None if codes[name] is None else codes[name][rows]
            column.fill(values[name][rows], level, X)
            if level is not None and column.statistics is not None:  # they may have been given up since
                column.follow_targets(level, known, before, X)
        self._known += pairs
        self._late = every[pairs:].copy()
        return int(raw.max(initial=0.0)) if self.labelled else 0

    def _grow(self, last: dict[Any, Any], largest: int) -> list[float]:
        """What joins behind a row, with the targets known by then; what earlier rows have there."""
        outputs = min(largest, MOST_OUTPUTS)
        more = max(0, max(outputs, 1) - max(self.outputs, 1))
        self.outputs = max(self.outputs, outputs)
        looks = self._looked < len(LOOKS) and self._known >= LOOKS[self._looked]
        self._looked += looks
        earlier: list[float] = []
        for name, column in self.columns.items():
            if column.statistics is not None and more:
                column.statistics.add_outputs(more)
            roles = column.missing_statistics() | column.grow(last[name])
            if looks and isinstance(column, NumberFeatures):
                roles |= column.consider_levels(final=self._looked == len(LOOKS))
            earlier += self._add(column, roles)
        return earlier

    def _join(self, name: Any, kind: str, first: Any, *, late: bool) -> list[float]:
        """A column more, with the one row that it came with; what earlier rows have in its features."""
        column = self.columns[name] = KINDS[kind](max(self.outputs, 1))
        # Where nobody will look at its levels.
        if isinstance(column, NumberFeatures) and (not self._levels or self._looked == len(LOOKS)):
            column.levels = column.statistics = None
        earlier = self._add(column, column.joins(first[0], late))
        column.late_codes = np.full(len(self._late), -1.0)
        if late:  # that row is over, and was encoded without it
            column.gaps = self._known + len(self._late) - 1
            codes = column.codes(first)
            column.fill(first, codes, np.zeros((1, self.width)))
            if codes is not None:
                column.late_codes[-1:] = codes
        return earlier

    def _add(self, column: ColumnFeatures, roles: dict[str, float]) -> list[float]:
        column.add(roles, self.width)
        self.width += len(roles)
        return list(roles.values())

    def _restored(self) -> None:
        self._single = None

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        slots = sorted(slot for column in self.columns.values() for slot in column.slots)
        # The first place stays empty where the first row had no value.
        if slots not in (list(range(self.width)), list(range(1, self.width))):
            raise stored.error("the features of its columns do not fill its rows")
