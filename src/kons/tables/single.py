"""One dict at a time: what the encoder does with a block of one row, bit for bit, in some microseconds.

::

    reading = single.read(x)         the row, and what the columns read in it; None: the row adds features
    ...                              the learner learns reading.row, and may refuse it
    single.learn(reading, known)     cannot fail

so that nothing has to be marked and put back. A row after which features join goes the way of blocks.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
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
from kons.tables.levels import FREQUENT
from kons.tables.moments import microseconds
from kons.tables.records import as_number, kind_of, typed

if TYPE_CHECKING:
    from kons.tables.encoder import Encoder

__all__ = ["Reading", "SingleRecords"]


class Reading(NamedTuple):
    """A row, and the values in it: of columns that are a number each, and of the others."""

    row: Vector
    numbers: Sequence[float]
    others: Sequence[Any]


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
        self._others.sort(key=lambda item: item[1].column.turn)
        #: All numbers at once, and whether they are the row.
        self._slots = [slot for _, slot, _, _ in self._numbers]
        self._pick: Any = itemgetter(*(name for name, *_ in self._numbers)) if len(self._slots) > 1 else None
        self._all_numbers = self._pick is not None and self._slots == list(range(self._width))
        #: A row of few values in many places is quicker as an array from the start.
        self._sparse = self._width > 3 * len(encoder.columns)
        #: Whether any column looks at targets.
        self.follows_targets = any(column.statistics is not None for column in encoder.columns.values())

    def look(self, x: dict[Any, Any]) -> Vector:
        """The row of a dict as if it came next. Changes nothing."""
        return (self._plain(x) or self._read(x)[0]).row

    def read(self, x: dict[Any, Any]) -> Reading | None:
        """The row of a dict that is about to be learned; None where features join behind it."""
        plain = self._plain(x)
        if plain is not None:
            return plain
        reading, known, first_gap = self._read(x)
        if self._grows:
            if first_gap:
                return None
            if known < len(x):  # others: a new column, or a gap
                for name in x:
                    if name not in self._columns and kind_of(x[name], name) is not None:
                        return None
            for (_, other), value in zip(self._others, reading.others, strict=True):
                if other.grows(value):
                    return None
        return reading

    def learn(self, reading: Reading, known: Any) -> None:
        """Learn a row whose targets are ``known``, one for each output that has statistics, if any has."""
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

    def _plain(self, x: dict[Any, Any]) -> Reading | None:
        """The row of a dict with just the known columns, all of them plain numbers; None for any other."""
        if not self._all_numbers or len(x) != len(self._numbers):
            return None
        numbers = self._plain_numbers(x)
        return None if numbers is None else Reading(np.array(numbers, np.float64), numbers, ())

    def _plain_numbers(self, x: dict[Any, Any]) -> tuple[float, ...] | None:
        """Of columns of numbers the values, if all are there and plain."""
        try:
            numbers: tuple[float, ...] = self._pick(x)
            total = sum(numbers)
            # Of another type if any of them is no plain number; not finite if any is not.
            return numbers if type(total) is float and total - total == 0.0 else None
        except (LookupError, TypeError, ValueError, ArithmeticError):
            return None

    def _read(self, x: dict[Any, Any]) -> tuple[Reading, int, bool]:
        """The row, how many columns have a value at least, and whether one has its first gap."""
        row: Any = np.zeros(self._width) if self._sparse else [0.0] * self._width
        numbers: Any = self._plain_numbers(x) if self._pick is not None else None
        others: list[Any] = []
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
        for name, other in self._others:
            value = get(name)
            known += value is not None
            value = other.typed(value, name)
            others.append(value)
            other.write(value, row)
        return Reading(row if self._sparse else np.array(row), numbers, others), known, first_gap


class _Other:
    """A column that is more than a number; its places in a row."""

    def __init__(self, column: ColumnFeatures) -> None:
        self.column: Any = column
        self.statistics = column.places(STATISTIC)
        self.explains = column.explains

    def typed(self, value: Any, name: Any) -> Any:
        """As the column's kind."""
        return typed([value], self.column.kind, name, self.column.read)[0]

    def grows(self, value: Any) -> bool:
        """Whether features join behind a row with this value."""
        raise NotImplementedError

    def write(self, value: Any, row: Any) -> None:
        """Write the features of a value."""
        raise NotImplementedError

    def learn(self, value: Any, known: Vector) -> None:
        """Learn a row."""
        raise NotImplementedError

    def _write_statistics(self, code: int, row: Any) -> None:
        for k, slot in enumerate(self.statistics):
            row[slot] = self.column.statistics.look_one(code, k)

    def _learn_level(self, level: Any, known: Vector) -> int:
        code: int = self.column.code(level)
        self.column.statistics.learn_one(code, known, self.explains)
        return code


class _Number(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.missing = column.places("missing")

    def typed(self, value: Any, name: Any) -> Any:
        return as_number(self.column.read_text(value) if type(value) is str else value, name)

    def grows(self, value: float) -> bool:
        return value != value and not self.missing

    def write(self, value: float, row: Any) -> None:
        there = value == value
        row[self.column.slots[0]] = value if there else self.column.mean
        if self.missing and not there:
            row[self.missing[0]] = 1.0
        if self.statistics:
            self._write_statistics(self.column.levels.find_one(value if there else None), row)

    def learn(self, value: float, known: Vector) -> None:
        self.column.count_one(value)
        if self.column.levels is not None:
            self._learn_level(value if value == value else None, known)


class _Text(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.slots = column.places("level")

    def typed(self, value: Any, name: Any) -> Any:
        return value if type(value) is str and self.column.format is None else super().typed(value, name)

    def grows(self, value: str | None) -> bool:
        code, indicators = self.column.levels.find_one(value), self.column.indicators
        if self.statistics or code < 0 or indicators.used < indicators.capacity:
            return False
        return bool(indicators.places[code] < 0.0 and indicators.counts[code] + 1 >= FREQUENT)

    def write(self, value: str | None, row: Any) -> None:
        code = self.column.levels.find_one(value)
        place = self.column.indicators.places[code] if code >= 0 else -1.0
        if place >= 0.0:
            row[self.slots[int(place)]] = 1.0
        self._write_statistics(code, row)

    def learn(self, value: str | None, known: Vector) -> None:
        self.column.indicators.learn_one(self._learn_level(value, known))
        if value is None:
            self.column.gaps += 1


class _Date(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.days, self.missing = column.places("days")[0], column.places("missing")
        #: By the number of a part, the places of its sine and cosine; or, while it has not varied, its phase.
        self.waves: list[tuple[int, int, int]] = []
        self.absent: list[tuple[int, float]] = []
        for i, part in enumerate(PARTS):
            if places := column.places(f"{part} "):
                self.waves.append((i, places[0], places[1]))
            else:
                self.absent.append((i, self.column.first_phase(part)))
        # What was asked last is learned next.
        self.last: tuple[int, Any, list[float]] = (NOT_A_TIME, (), [])

    def typed(self, value: Any, name: Any) -> Any:
        if type(value) is datetime.datetime and value.tzinfo is None:
            return microseconds(value)
        return int(super().typed(value, name))

    def grows(self, value: int) -> bool:
        if value == NOT_A_TIME:
            return not self.missing
        phases = self.last[1] if self.last[0] == value else phases_of(value)
        return any(phases[i] != first for i, first in self.absent)

    def write(self, value: int, row: Any) -> None:
        column = self.column
        if value == NOT_A_TIME:
            row[self.days] = column.total / max(column.count, 1.0)
            if self.missing:
                row[self.missing[0]] = 1.0
            return
        row[self.days] = (value - column.first) / MICROSECONDS_A_DAY
        last, _, waves = self.last
        if last != value:
            phases = phases_of(value)
            angles = np.array([2.0 * np.pi * phases[i] for i, _, _ in self.waves])
            waves = [*np.sin(angles).tolist(), *np.cos(angles).tolist()]
            self.last = value, phases, waves
        cosines = len(self.waves)
        for i, (_, sine, cosine) in enumerate(self.waves):
            row[sine], row[cosine] = waves[i], waves[cosines + i]

    def learn(self, value: int, known: Vector) -> None:
        column = self.column
        if value == NOT_A_TIME:
            column.gaps += 1
        else:
            column.total += (value - column.first) / MICROSECONDS_A_DAY
            column.count += 1.0


_OTHERS: dict[type, type[_Other]] = {NumberFeatures: _Number, TextFeatures: _Text, DateFeatures: _Date}
