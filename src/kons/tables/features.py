"""From a column to features, learned as rows come: a class a kind of column.

============  =======================================================================================
a column of   becomes
============  =======================================================================================
numbers       itself, a gap filled by the mean of the values so far; after the first gap, whether it is
              missing; where one value has half of the rows and the others tell something that a line
              does not see, the mean target of the value's rows (:mod:`kons.tables.levels`)
text          an indicator a frequent level, up to 64; where there are more, the level's mean target
dates         days since the first one; sine and cosine of hour, weekday and time of year, if they vary
============  =======================================================================================

A row is encoded with what the rows before it have told. What it tells itself is learned behind it, and may
add features for the rows that follow: that is where a block is cut, so that blocks and rows are the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Array, Count, Field, Inner, Items, Number, Part, Sizes, fields
from kons.stored import Stored
from kons.tables.cells import BadCell, ColumnFormat, NumberStyle, converter
from kons.tables.dates import MICROSECONDS_A_DAY, NOT_A_TIME, PARTS, phase
from kons.tables.levels import (
    FREQUENT,
    MOST_EXPLAINING,
    MOST_INDICATORS,
    Indicators,
    Levels,
    TargetStatistics,
)

__all__ = ["KINDS", "LOOKS", "ColumnFeatures", "DateFeatures", "NumberFeatures", "TextFeatures"]

#: Rows with known targets after which columns of numbers are looked at as levels: once, and those that are
#: mostly one value once more.
LOOKS = (512, 2048)
#: A value that has this share of the rows leaves the others no scale: all quartiles are the same.
MOSTLY = 0.5
#: Of the variance: what the levels of numbers must explain beyond a line to become features.
GAIN = 0.01
LARGEST = float(np.finfo(np.float64).max)
STATISTIC = "mean target"


class _Format(Field):
    """How the cells of the column are written, where it was read from a file of text."""

    left_out = True

    def save(self, part: Any, name: str) -> Any:
        format = getattr(part, name)
        return None if format is None else asdict(format) | {"name": ""}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if key not in stored:
            return None
        tree = stored.take(key)
        try:
            style, gaps = NumberStyle(**tree["style"]), tuple(tree["na_values"])
            found = ColumnFormat(**{**tree, "style": style, "na_values": gaps})
            converter(found.kind, style=style, order=found.order, na_values=gaps)("1")
        except BadCell:
            pass
        except (TypeError, KeyError, ValueError, AttributeError):
            raise stored.error(f"{key} does not say how cells are written") from None
        return found


class ColumnFeatures(Part, ABC):
    """The features of a column: the i-th of them stands at ``slots[i]`` of a row and is for ``roles[i]``.

    Blocks go through ``first_growth``, ``fill`` and, behind the rows, ``grow``; ``codes`` are those of the
    levels of the rows, of columns that have levels.
    """

    kind: ClassVar[str]
    STATE = fields(
        slots=Items("a place", lambda slot: type(slot) is int and 0 <= slot < 2**31),
        roles=Items("a role", lambda role: type(role) is str),
        gaps=Count(),
        levels=Inner(ends=True),
        statistics=Inner(ends=True),
        late_codes=Array(None, at_least=-1.0),
        format=_Format(),
    )

    def __init__(self, outputs: int) -> None:
        self.format: ColumnFormat | None = None
        #: Of rows whose targets are not known yet, the levels.
        self.late_codes: Vector = np.empty(0)
        self.slots: list[int] = []
        self.roles: list[str] = []
        self.gaps = 0
        self.levels: Levels | None = None
        self.statistics: TargetStatistics | None = None

    @property
    def read(self) -> Callable[[str], Any] | None:
        """:meth:`read_text`, where it is known how cells are written."""
        return None if self.format is None else self.read_text

    def read_text(self, text: Any) -> Any:
        """A cell as it stands in a file: a number, a moment, a level, or None, a gap; itself if not known."""
        if self.format is None:
            return text
        format = self.format
        try:
            value = converter(
                format.kind, style=format.style, order=format.order, na_values=format.na_values
            )(text)
        except BadCell:
            return None
        return np.datetime64(value, "us") if format.kind == "date" and value is not None else value

    # ---- features

    def label(self, name: str, i: int) -> str:
        """What its i-th feature is called, where the column has this name."""
        return name if self.roles[i] == "value" else f"{name} {self.roles[i]}"

    def add(self, roles: dict[str, float], slot: int) -> None:
        """Features for these roles stand from this place on."""
        self.slots += range(slot, slot + len(roles))
        self.roles += roles

    def give_up(self, width: int) -> None:
        """Features from this place on are no more."""
        there = [slot < width for slot in self.slots]
        self.roles = [role for role, stays in zip(self.roles, there, strict=True) if stays]
        self.slots = [slot for slot in self.slots if slot < width]

    def places(self, prefix: str) -> list[int]:
        """Where features stand whose role begins so."""
        return [slot for slot, role in zip(self.slots, self.roles, strict=True) if role.startswith(prefix)]

    @property
    def undecided(self) -> bool:
        """Whether its values may still become levels."""
        return False

    @property
    def turn(self) -> int:
        """When it learns the targets of a row: behind columns whose turn is earlier."""
        return 0

    @property
    def explains(self) -> bool:
        """Whether columns behind it learn of targets only what its levels did not tell."""
        return False

    # ---- rows

    def codes(self, values: Any) -> Any:
        """Of levels that rows are about to teach, new ones among them; None of a column without levels."""
        if self.levels is None:
            return None
        codes = self.levels.learn(self.as_levels(values))
        self._reach()
        return codes

    def code(self, level: Any) -> int:
        """Of the level that one row is about to teach."""
        assert self.levels is not None
        code = self.levels.codes.get(level)
        if code is None:
            code = int(self.levels.learn([level])[0])
            self._reach()
        return code

    def as_levels(self, values: Any) -> Any:
        """Values as :class:`~kons.tables.levels.Levels` takes them."""
        return values

    def follow_targets(self, codes: Any, known: Matrix, before: Any, X: Matrix) -> None:
        """Write the statistics of rows, of which ``before`` many of the ``known`` targets were known.

        What the column explains is taken from these: columns come in the order of their ``turn``.
        """
        assert self.statistics is not None
        every = np.concatenate([self.late_codes, codes]).astype(np.int64)
        found = self.statistics.follow(codes, every[: len(known)], known, before, self.explains)
        self.late_codes = every[len(known) :].astype(np.float64)
        if places := self.places(STATISTIC):
            X[:, places] = found[:, : len(places)]

    @abstractmethod
    def joins(self, value: Any, late: bool) -> dict[str, float]:
        """The features that it begins with: roles, and what earlier rows, if it is late, have there."""

    @abstractmethod
    def reserve(self, values: Any) -> dict[str, float]:
        """The features that these rows of the stream, the first of all, will ask for. Learns nothing."""

    @abstractmethod
    def first_growth(self, values: Any, codes: Any) -> int:
        """The first row after which there are more features; the number of rows if there is none."""

    @abstractmethod
    def grow(self, value: Any) -> dict[str, float]:
        """What joins behind this row: roles, and what earlier rows have there."""

    @abstractmethod
    def fill(self, values: Any, codes: Any, X: Matrix) -> None:
        """Write the features of rows, each by those before it, which it then has learned."""

    @abstractmethod
    def look(self, values: Any, X: Matrix) -> None:
        """Write the features of rows with what is known. Changes nothing."""

    def missing_statistics(self) -> dict[str, float]:
        """Roles of target statistics that have no place yet, if the column has any."""
        if not self.places(STATISTIC):
            return {}
        return {role: earlier for role, earlier in self._all_statistics().items() if role not in self.roles}

    def _all_statistics(self) -> dict[str, float]:
        """A role for each output; earlier rows have the mean of all there, as if their levels told nothing.

        Any other number would tell them apart from those that follow, which is all that it would tell.
        """
        assert self.statistics is not None
        unknown = self.statistics.look(np.array([-1]))[0]
        return {f"{STATISTIC} {k + 1}": mean for k, mean in enumerate(unknown.tolist())}

    def _reach(self) -> None:
        if self.levels is not None and self.statistics is not None:
            self.statistics.reach(len(self.levels))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.slots) != len(self.roles) or (self.statistics is None) is not (self.levels is None):
            raise stored.error("its features do not fit its places")
        self._reach()


class NumberFeatures(ColumnFeatures):
    """A column of numbers, NaN where there is none."""

    kind = "number"
    STATE = fields(total=Number(), count=Number(at_least=0.0))

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
        if places := self.places(STATISTIC):
            assert self.levels is not None
            assert self.statistics is not None
            X[:, places] = self.statistics.look(self.levels.find(self.as_levels(values)))[:, : len(places)]

    def _write(self, values: Vector, known: NDArray[np.bool_], means: Any, X: Matrix) -> None:
        X[:, self.slots[0]] = np.where(known, values, means)
        if places := self.places("missing"):
            X[:, places[0]] = ~known

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


class TextFeatures(ColumnFeatures):
    """A column of text; a gap, None, is a level like others."""

    kind = "text"
    STATE = fields(indicators=Inner())

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.levels, self.indicators = Levels(), Indicators()
        self.statistics = TargetStatistics(outputs)

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
        assert self.statistics is not None
        codes = self.levels.find(values)
        self._write(self.indicators.find(codes), X)
        if places := self.places(STATISTIC):
            X[:, places] = self.statistics.look(codes)[:, : len(places)]

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


class DateFeatures(ColumnFeatures):
    """A column of moments, microseconds since 1970; the smallest integer where there is none."""

    kind = "date"
    STATE = fields(first=Number(), total=Number(), count=Number(at_least=0.0))

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.first = self.total = self.count = 0.0
        """The first moment in microseconds, which floats hold exactly for 285 years around 1970."""

    def joins(self, value: int, late: bool) -> dict[str, float]:
        self.first = float(value)
        return {"days": 0.0}

    def reserve(self, values: NDArray[np.int64]) -> dict[str, float]:
        known = values != NOT_A_TIME
        roles = {} if known.all() else {"missing": 0.0}
        for part in PARTS:
            if (phase(values[known], part) != self.first_phase(part)).any():
                roles |= self._waves(part)
        return roles

    def first_growth(self, values: NDArray[np.int64], codes: Any) -> int:
        known = values != NOT_A_TIME
        rows = [len(values)]
        for part in self._absent_parts():
            differs = known & (phase(values, part) != self.first_phase(part))
            rows.append(int(differs.argmax()) if differs.any() else len(values))
        if "missing" not in self.roles and not known.all():
            rows.append(int(known.argmin()))
        return min(rows)

    def grow(self, value: int) -> dict[str, float]:
        if value == NOT_A_TIME:
            return {} if "missing" in self.roles else {"missing": 0.0}
        roles: dict[str, float] = {}
        for part in self._absent_parts():
            if phase(np.array([value]), part)[0] != self.first_phase(part):
                roles |= self._waves(part)
        return roles

    def _waves(self, part: str) -> dict[str, float]:
        """The features of a part, which was what it was in the first row in all rows so far."""
        angle = 2.0 * np.pi * self.first_phase(part)
        return {f"{part} sin": math.sin(angle), f"{part} cos": math.cos(angle)}

    def fill(self, values: NDArray[np.int64], codes: Any, X: Matrix) -> None:
        known = values != NOT_A_TIME
        days = self._days(values, known)
        totals = np.cumsum(np.concatenate([[self.total], days]))
        counts = np.cumsum(np.concatenate([[self.count], known]))
        self.total, self.count = float(totals[-1]), float(counts[-1])
        self.gaps += int(np.count_nonzero(~known))
        self._write(values, np.where(known, days, totals[:-1] / np.maximum(counts[:-1], 1.0)), X)

    def look(self, values: NDArray[np.int64], X: Matrix) -> None:
        known = values != NOT_A_TIME
        mean = self.total / max(self.count, 1.0)
        self._write(values, np.where(known, self._days(values, known), mean), X)

    def _days(self, values: NDArray[np.int64], known: NDArray[np.bool_]) -> Vector:
        return np.where(known, (values - self.first) / MICROSECONDS_A_DAY, 0.0)

    def _write(self, values: NDArray[np.int64], days: Vector, X: Matrix) -> None:
        known, angles = values != NOT_A_TIME, {}
        for slot, role in zip(self.slots, self.roles, strict=True):
            if role == "days":
                X[:, slot] = days
            elif role == "missing":
                X[:, slot] = ~known
            else:
                part, _, wave = role.partition(" ")
                if part not in angles:
                    angles[part] = 2.0 * np.pi * phase(values, part)
                X[:, slot] = np.where(
                    known, np.sin(angles[part]) if wave == "sin" else np.cos(angles[part]), 0.0
                )

    def _absent_parts(self) -> list[str]:
        return [part for part in PARTS if f"{part} sin" not in self.roles]

    def first_phase(self, part: str) -> float:
        """Of the first moment: what all rows had until the part varied."""
        return float(phase(np.array([int(self.first)], dtype=np.int64), part)[0])


def _shown(level: Any) -> str:
    if level is None:
        return "(missing)"
    text = str(level)
    return text if len(text) <= 40 else f"{text[:37]}..."


KINDS: dict[str, type[ColumnFeatures]] = {
    "number": NumberFeatures,
    "flag": NumberFeatures,
    "text": TextFeatures,
    "date": DateFeatures,
}
