"""One dict at a time: what the encoder does with a block of one row, bit for bit, in some microseconds.

::

    reading = single.read(x)         the row, and what the columns read in it; None: the row adds features
    ...                              the learner learns reading.row, and may refuse it
    single.learn(reading, known)     cannot fail

so that nothing has to be marked and put back. A row after which features join goes the way of blocks. A dict
that is asked about and then learned is read once.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kons.arrays import Vector
from kons.tables.dates import MICROSECONDS_A_DAY, NOT_A_TIME, PARTS, phases_of
from kons.tables.features import (
    LARGEST,
    STATISTIC,
    ColumnFeatures,
    DateFeatures,
    NumberFeatures,
    TextFeatures,
)
from kons.tables.levels import MOST_LEVELS
from kons.tables.moments import microseconds
from kons.tables.records import as_number, kind_of, typed

if TYPE_CHECKING:
    from kons.tables.encoder import Encoder

__all__ = ["Reading", "SingleRecords"]


class Reading(NamedTuple):
    """A row, and the values in it: of columns that are a number each, and of the others."""

    row: Vector
    numbers: Sequence[float]
    others: Sequence[Any] = ()
    known: int = 0
    """How many columns have a value, at least."""
    first_gap: bool = False
    """Whether a column of numbers has its first gap."""


class SingleRecords:
    """The columns of an encoder as they are now; made anew whenever features have joined."""

    def __init__(self, encoder: Encoder) -> None:
        self._columns, self._width, self._grows = encoder.columns, encoder.width, encoder.grows
        #: Columns that are a number and perhaps whether it is missing, with the places of both; -1 for none.
        self._numbers: list[tuple[Any, int, int, NumberFeatures]] = []
        self._others: list[tuple[Any, _Other]] = []
        for name, column in encoder.columns.items():
            if isinstance(column, NumberFeatures) and column.levels is None:
                self._numbers.append((name, column.slots[0], *(column.places("missing") or [-1]), column))
            else:
                self._others.append((name, _OTHERS[type(column)](column)))
        #: All numbers at once, and whether they are the row.
        self._slots = [slot for _, slot, _, _ in self._numbers]
        self._pick: Any = itemgetter(*(name for name, *_ in self._numbers)) if len(self._slots) > 1 else None
        self._all_numbers = self._pick is not None and self._slots == list(range(self._width))
        #: A row of few values in many places is quicker as an array from the start.
        self._sparse = self._width > 3 * len(encoder.columns)
        #: Whether any column looks at targets.
        self.follows_targets = any(column.statistics is not None for column in encoder.columns.values())
        #: Where equal values may be read otherwise: 1 and True as text, an hour that comes twice.
        self._particular = [name for name, other in self._others if not isinstance(other, _Number)]
        #: What was asked last, and is likely to be learned next, with its reading.
        self._asked: tuple[dict[Any, Any], Reading] | None = None

    def look(self, x: dict[Any, Any]) -> Vector:
        """The row of a dict as if it came next. Changes nothing."""
        reading = self._reading(x)
        for name in self._particular:
            value = x.get(name)
            kind = type(value)
            if not (kind is str or value is None or (kind is datetime.datetime and value.tzinfo is None)):
                self._asked = None
                return reading.row
        self._asked = x.copy(), reading
        return reading.row

    def read(self, x: dict[Any, Any]) -> Reading | None:
        """The row of a dict that is about to be learned; None where features join behind it."""
        reading = self._reading(x)
        if self._grows:
            if reading.first_gap:
                return None
            if reading.known < len(x):  # others: a new column, or a gap
                for name in x:
                    if name not in self._columns and kind_of(x[name], name) is not None:
                        return None
            for (_, other), value in zip(self._others, reading.others, strict=True):
                if other.grows(value):
                    return None
        return reading

    def learn(self, reading: Reading, known: Any) -> None:
        """Learn a row whose targets are ``known``, one for each output that has statistics, if any has."""
        self._asked = None
        for (_, _, _, column), number in zip(self._numbers, reading.numbers, strict=True):
            before = column.total
            total = before + number
            if -LARGEST < total < LARGEST and -LARGEST < before < LARGEST:
                column.total = total
                column.count += 1.0
            else:
                column.count_one(number)  # a gap, or beyond all numbers
        for (_, other), value in zip(self._others, reading.others, strict=True):
            other.learn(value, known)

    def _reading(self, x: dict[Any, Any]) -> Reading:
        if self._asked is not None:
            try:
                if self._asked[0] == x:
                    return self._asked[1]
            except (TypeError, ValueError):  # of arrays, nobody can say whether they are equal
                pass
        numbers: Any = None
        if self._pick is not None and len(x) >= len(self._slots):
            numbers = self._plain_numbers(x)
            if numbers is not None and self._all_numbers:
                return Reading(np.array(numbers, np.float64), numbers, (), len(numbers))
        return self._read(x, numbers)

    def _plain_numbers(self, x: dict[Any, Any]) -> tuple[float, ...] | None:
        """Of columns of numbers the values, if all are there and plain."""
        try:
            numbers: tuple[float, ...] = self._pick(x)
            total = sum(numbers)
            # Of another type if any of them is no plain number; not finite if any is not.
            return numbers if type(total) is float and total - total == 0.0 else None
        except (LookupError, TypeError, ValueError, ArithmeticError):
            return None

    def _read(self, x: dict[Any, Any], numbers: Any) -> Reading:
        """The row of any dict, of which the columns of numbers may be known."""
        row: Any = np.zeros(self._width) if self._sparse else [0.0] * self._width
        get, known, first_gap = x.get, len(self._numbers), False
        if numbers is not None:
            for slot, value in zip(self._slots, numbers, strict=True):
                row[slot] = value
        else:
            numbers = []
            for name, slot, missing, column in self._numbers:
                value = get(name)
                if type(value) is not float or value - value != 0.0:
                    value = as_number(column.read_text(value) if type(value) is str else value, name)
                numbers.append(value)
                if value == value:
                    row[slot] = value
                    continue
                known -= 1
                row[slot] = column.mean
                if missing >= 0:
                    row[missing] = 1.0
                else:
                    first_gap = True
        others: list[Any] = []
        for name, other in self._others:
            value = get(name)
            known += value is not None
            others.append(other.write(value, name, row))
        return Reading(row if self._sparse else np.array(row), numbers, others, known, first_gap)


class _Other:
    """A column that is more than a number; its places in a row."""

    def __init__(self, column: ColumnFeatures) -> None:
        self.column: Any = column
        self.statistics = column.places(STATISTIC)

    def write(self, value: Any, name: Any, row: Any) -> Any:
        """Write the features of a value; returns it as the other two want it."""
        raise NotImplementedError

    def grows(self, value: Any) -> bool:
        """Whether features join behind a row with this value."""
        raise NotImplementedError

    def learn(self, value: Any, known: Vector) -> None:
        """Learn a row."""
        raise NotImplementedError

    def _typed(self, value: Any, name: Any) -> Any:
        return typed([value], self.column.kind, name, self.column.read)[0]

    def _write_statistics(self, level: Any, row: Any) -> None:
        code = self.column.levels.find_one(level)
        for k, slot in enumerate(self.statistics):
            row[slot] = self.column.statistics.look_one(code, k)


class _Number(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.missing = column.places("missing")

    def write(self, value: Any, name: Any, row: Any) -> float:
        number = as_number(self.column.read_text(value) if type(value) is str else value, name)
        there = number == number
        row[self.column.slots[0]] = number if there else self.column.mean
        if self.missing and not there:
            row[self.missing[0]] = 1.0
        if self.statistics:
            self._write_statistics(number if there else None, row)
        return number

    def grows(self, value: float) -> bool:
        return value != value and not self.missing

    def learn(self, value: float, known: Vector) -> None:
        self.column.count_one(value)
        if self.column.levels is not None:
            code = self.column.code(value if value == value else None)
            self.column.statistics.learn_one(code, known)


class _Text(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.slots, self.codes = column.places("level"), self.column.levels.codes
        #: Where levels that are known by name have their indicator, those that have one.
        self.slot_of = {
            level: self.slots[int(place)]
            for level, place in zip(self.codes, self.column.indicators.places.tolist(), strict=False)
            if place >= 0.0
        }
        self.rows = int(self.column.indicators.counts.sum())

    def write(self, value: Any, name: Any, row: Any) -> str | None:
        level: str | None = value
        if type(value) is not str or self.column.format is not None:
            level = self._typed(value, name)
        slot = self.slot_of.get(level)
        if slot is None and len(self.codes) == MOST_LEVELS:
            place = int(self.column.indicators.places[self.column.levels.find_one(level)])
            slot = self.slots[place] if place >= 0 else None
        if slot is not None:
            row[slot] = 1.0
        if self.statistics:
            self._write_statistics(level, row)
        return level

    def grows(self, level: str | None) -> bool:
        indicators = self.column.indicators
        if self.statistics or level in self.slot_of or indicators.used < indicators.capacity:
            return False
        code = self.column.levels.find_one(level)
        return bool(code >= 0 and indicators.would_lack_room(code, self.rows))

    def learn(self, level: str | None, known: Vector) -> None:
        column = self.column
        code = self.codes.get(level)
        if code is None:
            code = column.code(level)
        self.rows += 1
        column.statistics.learn_one(code, known)
        indicators = column.indicators
        if level in self.slot_of:
            indicators.counts[code] += 1
        else:
            used = indicators.used
            indicators.learn_one(code)
            if indicators.used > used and code < MOST_LEVELS:
                self.slot_of[level] = self.slots[used]
        if level is None:
            column.gaps += 1


class _Date(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.days, self.missing = column.places("days")[0], column.places("missing")
        #: By the number of a part, the places of its sine and cosine; or, while it has not varied, its phase.
        self.waves: list[tuple[Any, int, int, int]] = []
        self.absent: list[tuple[int, float]] = []
        for i, part in enumerate(PARTS):
            if places := column.places(f"{part} "):
                self.waves.append((_wave if part == "yearday" else _wave_again, i, places[0], places[1]))
            else:
                self.absent.append((i, self.column.first_phase(part)))

    def write(self, value: Any, name: Any, row: Any) -> tuple[int, Any]:
        column = self.column
        if type(value) is datetime.datetime and value.tzinfo is None:
            moment = microseconds(value)
        elif (moment := int(self._typed(value, name))) == NOT_A_TIME:
            row[self.days] = column.total / max(column.count, 1.0)
            if self.missing:
                row[self.missing[0]] = 1.0
            return moment, None
        row[self.days] = (moment - column.first) / MICROSECONDS_A_DAY
        phases = phases_of(moment)
        for wave, i, sine, cosine in self.waves:
            row[sine], row[cosine] = wave(phases[i])
        return moment, phases

    def grows(self, value: tuple[int, Any]) -> bool:
        _, phases = value
        if phases is None:
            return not self.missing
        return any(phases[i] != first for i, first in self.absent)

    def learn(self, value: tuple[int, Any], known: Vector) -> None:
        column = self.column
        moment, phases = value
        if phases is None:
            column.gaps += 1
        else:
            column.total += (moment - column.first) / MICROSECONDS_A_DAY
            column.count += 1.0


def _wave(phase: float) -> tuple[float, float]:
    """Sine and cosine, by NumPy's functions, which round as in blocks."""
    angle = 2.0 * np.pi * phase
    return float(np.sin(angle)), float(np.cos(angle))


#: Hours and weekdays come again, moments of the year hardly.
_wave_again = lru_cache(maxsize=4096)(_wave)


_OTHERS: dict[type, type[_Other]] = {NumberFeatures: _Number, TextFeatures: _Text, DateFeatures: _Date}
