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
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kons.arrays import Vector
from kons.tables.features import ColumnFeatures, OneCell
from kons.tables.numbers import LARGEST, NumberFeatures
from kons.tables.records import as_number, kind_of

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

    texts: list[tuple[str, ColumnFeatures]]

    def __init__(self, encoder: Encoder) -> None:
        self._not_new, self._width, self._grows = encoder.not_new, encoder.width, encoder.grows
        #: Columns that are a number and perhaps whether it is missing, with the places of both; -1 for none.
        self._numbers: list[tuple[Any, int, int, NumberFeatures]] = []
        self._others: list[tuple[Any, OneCell]] = []
        for name, column in encoder.columns.items():
            if isinstance(column, NumberFeatures) and column.levels is None and not column.numbers_of_gaps:
                self._numbers.append((name, column.slots[0], *(column.places("missing") or [-1]), column))
            else:
                self._others.append((name, column.one_cell()))
        self._others.sort(key=lambda item: item[1].column.turn)
        #: All numbers at once, where they stand if side by side, and whether they are the row.
        self._slots = [slot for _, slot, _, _ in self._numbers]
        self._pick: Any = itemgetter(*(name for name, *_ in self._numbers)) if len(self._slots) > 1 else None
        first, count = min(self._slots, default=0), len(self._slots)
        together = self._slots == list(range(first, first + count))
        self._together = slice(first, first + count) if together else None
        self._all_numbers = self._pick is not None and self._together == slice(0, self._width)
        #: A row of few values in many places is quicker as an array from the start.
        self._sparse = self._width > 3 * len(encoder.columns)
        #: Columns that may meet new levels.
        self.texts = [(name, other.column) for name, other in self._others if other.column.kind == "text"]
        #: Whether any column looks at targets.
        self.follows_targets: bool = any(column.statistics is not None for column in encoder.columns.values())
        #: Where equal values may be read otherwise: 1 and True as text, an hour that comes twice.
        self._particular = [name for name, other in self._others if other.column.kind != "number"]
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
                    if name not in self._not_new and kind_of(x[name], name) is not None:
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
        if numbers is not None and self._together is not None:
            row[self._together] = numbers
        elif numbers is not None:
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
