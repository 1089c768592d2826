"""One dict at a time: what the encoder does with a block of one row, bit for bit, in some microseconds.

::

    reading = single.read(x)         the row, and what the columns read in it; None: the row adds features
    ...                              the learner learns reading.row, and may refuse it
    single.learn(reading, known)     cannot fail

so that nothing has to be marked and put back. A row after which features join goes the way of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kons.arrays import Vector
from kons.tables.features import (
    LARGEST,
    STATISTIC,
    ColumnFeatures,
    DateFeatures,
    NumberFeatures,
    TextFeatures,
)
from kons.tables.levels import FREQUENT
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
        #: Columns of numbers that are one feature, with its place.
        self._numbers: list[tuple[Any, int, NumberFeatures]] = []
        self._others: list[tuple[Any, _Other]] = []
        for name, column in encoder.columns.items():
            if isinstance(column, NumberFeatures) and len(column.slots) == 1 and column.levels is None:
                self._numbers.append((name, column.slots[0], column))
            else:
                self._others.append((name, _OTHERS[type(column)](column)))
        #: Where all of them are such, in the order of their places: all values at once.
        self._pick: Any = None
        if len(self._numbers) > 1 and [slot for _, slot, _ in self._numbers] == list(range(self._width)):
            self._pick = itemgetter(*(name for name, _, _ in self._numbers))
        #: Whether any column looks at targets.
        self.follows_targets = any(column.statistics is not None for column in encoder.columns.values())

    def look(self, x: dict[Any, Any]) -> Vector:
        """The row of a dict as if it came next. Changes nothing."""
        return (self._plain(x) or self._read(x)).row

    def read(self, x: dict[Any, Any]) -> Reading | None:
        """The row of a dict that is about to be learned; None where features join behind it."""
        plain = self._plain(x)
        if plain is not None:
            return plain
        reading = self._read(x)
        if self._grows:
            for name in x:
                if name not in self._columns and kind_of(x[name], name) is not None:
                    return None
            total = sum(reading.numbers)
            if total != total and any(number != number for number in reading.numbers):  # the first gap
                return None
            for (_, other), value in zip(self._others, reading.others, strict=True):
                if other.grows(value):
                    return None
        return reading

    def learn(self, reading: Reading, known: Any) -> None:
        """Learn a row whose targets are ``known``, one for each output that has statistics, if any has."""
        for (_, _, column), number in zip(self._numbers, reading.numbers, strict=True):
            total = column.total + number
            if -LARGEST < total < LARGEST and -LARGEST < column.total < LARGEST:
                column.total = total
                column.count += 1.0
            else:
                column.count_one(number)  # a gap, or beyond all numbers
        for (_, other), value in zip(self._others, reading.others, strict=True):
            other.learn(value, known)

    def _plain(self, x: dict[Any, Any]) -> Reading | None:
        """The row of a dict with just the known columns, all of them plain numbers; None for any other."""
        if self._pick is None or len(x) != len(self._numbers):
            return None
        try:
            numbers = self._pick(x)
            total = sum(numbers)
            # Of another type if any of them is no plain number; not finite if any is not.
            if type(total) is not float or total - total != 0.0:
                return None
            return Reading(np.array(numbers, np.float64), numbers, ())
        except (LookupError, TypeError, ValueError, ArithmeticError):
            return None

    def _read(self, x: dict[Any, Any]) -> Reading:
        row = [0.0] * self._width
        numbers: list[float] = []
        others: list[Any] = []
        get = x.get
        for name, slot, column in self._numbers:
            value = get(name)
            if type(value) is not float or value - value != 0.0:
                if type(value) is str:
                    value = column.read_text(value)
                value = as_number(value, name)
            numbers.append(value)
            row[slot] = value if value == value else column.mean
        if not self._others:
            return Reading(np.array(row), numbers, others)
        for name, other in self._others:
            value = other.typed(get(name), name)
            others.append(value)
            other.write(value, row)
        return Reading(np.array(row), numbers, others)


class _Other:
    """A column that is more than a number; its places in a row."""

    def __init__(self, column: ColumnFeatures) -> None:
        self.column: Any = column
        self.statistics = column.places(STATISTIC)

    def typed(self, value: Any, name: Any) -> Any:
        """As the column's kind."""
        return typed([value], self.column.kind, name, self.column.read)[0]

    def grows(self, value: Any) -> bool:
        """Whether features join behind a row with this value."""
        raise NotImplementedError

    def write(self, value: Any, row: list[float]) -> None:
        """Write the features of a value."""
        raise NotImplementedError

    def learn(self, value: Any, known: Vector) -> None:
        """Learn a row."""
        raise NotImplementedError

    def _write_statistics(self, level: Any, row: list[float]) -> None:
        if self.statistics:
            found = self.column.statistics.look(self.column.levels.find([level]))[0]
            for slot, value in zip(self.statistics, found.tolist(), strict=False):
                row[slot] = value

    def _learn_level(self, level: Any, known: Vector) -> int:
        code: int = self.column.code(level)
        self.column.statistics.learn_one(code, known)
        return code


class _Number(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.missing = column.places("missing")

    def typed(self, value: Any, name: Any) -> Any:
        return as_number(self.column.read_text(value) if type(value) is str else value, name)

    def grows(self, value: float) -> bool:
        return value != value and not self.missing

    def write(self, value: float, row: list[float]) -> None:
        there = value == value
        row[self.column.slots[0]] = value if there else self.column.mean
        if self.missing and not there:
            row[self.missing[0]] = 1.0
        self._write_statistics(value if there else None, row)

    def learn(self, value: float, known: Vector) -> None:
        self.column.count_one(value)
        if self.column.levels is not None:
            self._learn_level(value if value == value else None, known)


class _Text(_Other):
    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.slots = column.places("level")

    def grows(self, value: str | None) -> bool:
        code, indicators = self.column.levels.codes.get(value), self.column.indicators
        if code is None:
            code = int(self.column.levels.find([value])[0])
        if self.statistics or code < 0 or indicators.used < indicators.capacity:
            return False
        return bool(indicators.places[code] < 0.0 and indicators.counts[code] + 1 >= FREQUENT)

    def write(self, value: str | None, row: list[float]) -> None:
        code = self.column.levels.codes.get(value)
        if code is None:
            code = int(self.column.levels.find([value])[0])
        place = self.column.indicators.places[code] if code >= 0 else -1.0
        if place >= 0.0:
            row[self.slots[int(place)]] = 1.0
        self._write_statistics(value, row)

    def learn(self, value: str | None, known: Vector) -> None:
        self.column.indicators.learn_one(self._learn_level(value, known))
        if value is None:
            self.column.gaps += 1


class _Date(_Other):
    """Of dates, the way of blocks: their phases are worth arrays."""

    def grows(self, value: Any) -> bool:
        return bool(self.column.first_growth(np.array([value]), None) == 0)

    def write(self, value: Any, row: list[float]) -> None:
        X = np.zeros((1, len(row)))
        self.column.look(np.array([value]), X)
        for slot in self.column.slots:
            row[slot] = float(X[0, slot])

    def learn(self, value: Any, known: Vector) -> None:
        self.column.count_rows(np.array([value]))


_OTHERS: dict[type, type[_Other]] = {NumberFeatures: _Number, TextFeatures: _Text, DateFeatures: _Date}
