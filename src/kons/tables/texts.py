"""Columns of text: an indicator a frequent level, and the mean target of levels where there are more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.state import Inner, fields
from kons.tables.features import STATISTIC, ColumnFeatures, OneCell
from kons.tables.levels import (
    FREQUENT,
    MOST_EXPLAINING,
    MOST_INDICATORS,
    Indicators,
    Levels,
    TargetStatistics,
)

__all__ = ["OneText", "TextFeatures"]


class TextFeatures(ColumnFeatures):
    """A column of text; a gap, None, is a level like others."""

    kind = "text"
    STATE = fields(indicators=Inner())
    levels: Levels | None
    indicators: Indicators

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.levels, self.indicators = Levels(), Indicators()
        self.statistics: TargetStatistics | None = TargetStatistics(outputs)

    @property
    def turn(self) -> int:
        # Numbers come first, and few levels, which are known soon. It changes only where blocks are cut.
        return 1 + len(self.slots)

    @property
    def explains(self) -> bool:
        return len(self.slots) <= MOST_EXPLAINING

    def label(self, name: str, i: int) -> str:
        if not self.roles[i].startswith("level"):
            return super().label(name, i)
        place = int(self.roles[i].removeprefix("level "))
        code = np.flatnonzero(self.indicators.places == place)
        assert self.levels is not None
        names = self.levels.names
        return f"{name}={_shown(names[code[0]]) if len(code) and code[0] < len(names) else '?'}"

    def joins(self, value: str | None, late: bool) -> dict[str, float]:
        return self._more_indicators()

    def reserve(self, values: Any) -> dict[str, float]:
        frequent = sum(count >= FREQUENT for count in Counter(values).values())
        roles: dict[str, float] = {}
        while self.indicators.capacity < min(frequent, MOST_INDICATORS):
            roles |= self._more_indicators()
        return roles

    def give_up(self, width: int) -> None:
        super().give_up(width)
        self.indicators.give_up(len(self.places("level")))

    def first_growth(self, values: Any, codes: Any) -> int:
        if self.places(STATISTIC):  # after the last indicator there is nothing to add
            return len(codes)
        return self.indicators.first_growth(codes)

    def grow(self, value: str | None) -> dict[str, float]:
        assert self.levels is not None
        if self.places(STATISTIC) or not self.indicators.lacks_room(int(self.levels.find([value])[0])):
            return {}
        if self.indicators.capacity < MOST_INDICATORS:
            return self._more_indicators()
        return self._all_statistics()

    def fill(self, values: Any, codes: Any, X: Matrix) -> None:
        self.gaps += values.count(None)
        self._write(self.indicators.learn(codes), X)

    def look(self, values: Any, X: Matrix) -> None:
        assert self.levels is not None
        codes = self.levels.find(values)
        self._write(self.indicators.find(codes), X)
        self._look_up_statistics(codes, X)

    def typical(self, points: Matrix) -> str | None:
        assert self.levels is not None
        names = self.levels.names
        counts = self.indicators.counts[: len(names)]
        return None if not len(counts) else names[int(counts.argmax())]  # type: ignore[return-value]

    def decode(self, row: Vector) -> str | None:
        """A level that has an indicator; others are not told apart."""
        assert self.levels is not None
        here = [place for place, slot in enumerate(self.places("level")) if row[slot] == 1.0]
        codes: Any = np.flatnonzero(self.indicators.places == here[0]) if here else []
        names = self.levels.names
        if not len(codes) or codes[0] >= len(names):
            return "(other)"
        return names[int(codes[0])]  # type: ignore[return-value]

    def one_cell(self) -> OneText:
        return OneText(self)

    def _write(self, columns: Any, X: Matrix) -> None:
        slots = np.array(self.places("level"), dtype=np.int64)
        X[:, slots] = 0.0
        rows = np.flatnonzero(columns >= 0)
        X[rows, slots[columns[rows]]] = 1.0

    def _more_indicators(self) -> dict[str, float]:
        before = self.indicators.capacity
        return {f"level {place}": 0.0 for place in range(before, before + self.indicators.make_room())}

    def _reach(self) -> None:
        super()._reach()
        assert self.levels is not None
        self.indicators.reach(len(self.levels))


class OneText(OneCell):
    """A level."""

    slots: list[int]
    codes: dict[Any, int]

    def __init__(self, column: ColumnFeatures) -> None:
        super().__init__(column)
        self.slots, self.codes = column.places("level"), self.column.levels.codes
        #: Where levels have their indicator, those that have one, by their code.
        self.slot_of: dict[int, int] = {
            code: self.slots[int(place)]
            for code, place in enumerate(self.column.indicators.places.tolist())
            if place >= 0.0
        }
        self.rows: int = int(self.column.indicators.counts.sum())
        self._explains = column.explains

    def write(self, value: Any, name: Any, row: Any) -> tuple[str | None, int]:
        level: str | None = value
        if type(value) is not str or self.column.format is not None:
            level = self._typed(value, name)
        code = self.codes.get(level, -1)
        if code < 0:
            code = self.column.levels.find_one(level)
        if code in self.slot_of:
            row[self.slot_of[code]] = 1.0
        if self.statistics:
            self._write_statistics(code, row)
        return level, code

    def grows(self, value: tuple[str | None, int]) -> bool:
        indicators, (_, code) = self.column.indicators, value
        if self.statistics or code < 0 or code in self.slot_of or indicators.used < indicators.capacity:
            return False
        return bool(indicators.would_lack_room(code, self.rows))

    def learn(self, value: tuple[str | None, int], known: Vector) -> None:
        column, (level, code) = self.column, value
        if code < 0:
            code = column.code(level)
        self.rows += 1
        column.statistics.learn_one(code, known, self._explains)
        indicators = column.indicators
        if code in self.slot_of:
            indicators.counts[code] += 1
        else:
            used = indicators.used
            indicators.learn_one(code)
            if indicators.used > used:
                self.slot_of[code] = self.slots[used]
        if level is None:
            column.gaps += 1


def _shown(level: Any) -> str:
    if level is None:
        return "(missing)"
    text = str(level)
    return text if len(text) <= 40 else f"{text[:37]}..."
