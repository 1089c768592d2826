"""Columns of numbers: the value, whether it is missing, and what its levels tell that a line does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Number, fields
from kons.tables.features import STATISTIC, ColumnFeatures, OneCell
from kons.tables.levels import Levels, TargetStatistics
from kons.tables.records import Records, as_number

__all__ = ["LARGEST", "LOOKS", "NumberFeatures", "OneNumber"]

#: Rows with known targets after which columns of numbers are looked at as levels: once, and those that are
#: mostly one value once more.
LOOKS = (512, 2048)
#: A value that has this share of the rows leaves the others no scale: all quartiles are the same.
MOSTLY = 0.5
#: Of the variance: what the levels of numbers must explain beyond a line to become features.
GAIN = 0.01
LARGEST = float(np.finfo(np.float64).max)


class NumberFeatures(ColumnFeatures):
    """A column of numbers, NaN where there is none."""

    kind = "number"
    STATE = fields(total=Number(), count=Number(at_least=0.0))
    total: float
    count: float

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.total = self.count = 0.0
        # Until it is known whether its values tell anything as levels.
        self.levels, self.statistics = Levels(), TargetStatistics(outputs)

    @property
    def mean(self) -> float:
        """What stands for a gap."""
        if abs(self.total) >= LARGEST:
            return self.total
        return self.total / self.count if self.count else 0.0

    def count_one(self, value: float) -> None:
        """As :meth:`fill` does for one value, NaN for a gap."""
        if value != value:
            self.gaps += 1
            return
        if -LARGEST < self.total < LARGEST:
            total = self.total + value
            self.total = total if total - total == 0.0 else math.copysign(LARGEST, total)
        self.count += 1.0

    @property
    def undecided(self) -> bool:
        return self.levels is not None and not self.places(STATISTIC)

    def as_levels(self, values: Vector) -> list[float | None]:
        return [None if value != value else value for value in values.tolist()]

    def values_of(self, records: Records, name: Any) -> Any:
        values = super().values_of(records, name)
        gaps = self.numbers_of_gaps  # texts were compared as they were read
        return np.where(np.isin(values, gaps), np.nan, values) if gaps else values

    def joins(self, value: float, late: bool) -> dict[str, float]:
        return {"value": value, "missing": 1.0} if late else {"value": value}

    def reserve(self, values: Vector) -> dict[str, float]:
        return {"missing": 0.0} if np.isnan(values).any() else {}

    def first_growth(self, values: Vector, codes: Any) -> int:
        missing = np.isnan(values)
        return int(missing.argmax()) if "missing" not in self.roles and missing.any() else len(values)

    def grow(self, value: float) -> dict[str, float]:
        return {"missing": 0.0} if "missing" not in self.roles and value != value else {}

    def fill(self, values: Vector, codes: Any, X: Matrix) -> None:
        missing = np.isnan(values)
        # A sum beyond all numbers stays there, however the rows are cut.
        start = self.total if abs(self.total) < LARGEST else math.copysign(math.inf, self.total)
        if not missing.any():  # as nearly always: the sum is all that is new
            with np.errstate(over="ignore"):
                total = float(np.cumsum(np.concatenate([[start], values]))[-1])
            self.total, self.count = max(-LARGEST, min(LARGEST, total)), self.count + len(values)
            X[:, self.slots[0]] = values
            return
        known = ~missing
        with np.errstate(over="ignore"):
            totals = np.cumsum(np.concatenate([[start], np.where(known, values, 0.0)]))
        counts = np.cumsum(np.concatenate([[self.count], known]))
        means = np.clip(totals[:-1] / np.maximum(counts[:-1], 1.0), -LARGEST, LARGEST)
        self.total, self.count = float(np.clip(totals[-1], -LARGEST, LARGEST)), float(counts[-1])
        self.gaps += int(np.count_nonzero(~known))
        self._write(values, known, means, X)

    def look(self, values: Vector, X: Matrix) -> None:
        self._write(values, ~np.isnan(values), self.mean, X)
        if self.places(STATISTIC) and self.levels is not None:
            self._look_up_statistics(self.levels.find(self.as_levels(values)), X)

    def _write(self, values: Vector, known: NDArray[np.bool_], means: Any, X: Matrix) -> None:
        X[:, self.slots[0]] = np.where(known, values, means)
        if places := self.places("missing"):
            X[:, places[0]] = ~known

    def typical(self, points: Matrix) -> float | None:
        known = self._known(points)
        return float(np.median(known[:, self.slots[0]])) if len(known) else None

    def decode(self, row: Vector) -> float | None:
        return float(row[self.slots[0]]) if len(self._known(row[None])) else None

    def one_cell(self) -> OneNumber:
        return OneNumber(self)

    def give_up(self, width: int) -> None:
        super().give_up(width)
        if not self.places(STATISTIC):  # there will be none
            self.levels = self.statistics = None

    def consider_levels(self, final: bool) -> dict[str, float]:
        """Keep its values as levels where they tell more than a line, or where it is too early to say."""
        if self.levels is None or self.statistics is None or self.places(STATISTIC):
            return {}
        values = np.array(
            [math.nan if value is None else value for value in self.levels.names], dtype=np.float64
        )
        counts = self.statistics.counts[: len(values)]
        # Of levels with known targets: a block may hold others, that come later in it.
        mostly = np.count_nonzero(counts) > 2 and counts.max() >= MOSTLY * counts.sum()
        if mostly and self.statistics.gain_over_line(values) >= GAIN:
            return self._all_statistics()
        if final or not mostly:
            self.levels = self.statistics = None
        return {}


class OneNumber(OneCell):
    """A number that may be a level, too."""

    missing: list[int]
    gaps: tuple[float, ...]

    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.missing, self.gaps = column.places("missing"), column.numbers_of_gaps

    def write(self, value: Any, name: Any, row: Any) -> float:
        number = as_number(self.column.read_text(value) if type(value) is str else value, name)
        if number in self.gaps:
            number = math.nan
        there = number == number
        row[self.column.slots[0]] = number if there else self.column.mean
        if self.missing and not there:
            row[self.missing[0]] = 1.0
        if self.statistics:
            self._write_statistics(self.column.levels.find_one(number if there else None), row)
        return number

    def grows(self, value: float) -> bool:
        return value != value and not self.missing

    def learn(self, value: float, known: Vector) -> None:
        self.column.count_one(value)
        if self.column.levels is not None:
            code = self.column.code(value if value == value else None)
            self.column.statistics.learn_one(code, known, False)
