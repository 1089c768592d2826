"""Columns of dates: how far along the stream a moment is, and where in the day, the week and the year."""

from __future__ import annotations

import datetime
import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Number, fields
from kons.tables.features import ColumnFeatures, OneCell
from kons.tables.moments import NOT_A_TIME, microseconds

__all__ = ["PARTS", "DateFeatures", "OneDate", "phase", "phases_of"]

MICROSECONDS_A_DAY = 86_400_000_000
TURN = 2.0 * math.pi
#: Parts of a date that come again: the time of day, the day of the week, the time of year.
PARTS = ("hour", "weekday", "yearday")


class DateFeatures(ColumnFeatures):
    """A column of moments, microseconds since 1970; the smallest integer where there is none."""

    kind = "date"
    STATE = fields(first=Number(), total=Number(), count=Number(at_least=0.0))
    first: float
    total: float
    count: float

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
        angle = TURN * self.first_phase(part)
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

    def typical(self, points: Matrix) -> Any:
        known = self._known(points)
        return self._moment(float(np.median(known[:, self.slots[0]]))) if len(known) else None

    def decode(self, row: Vector) -> Any:
        return self._moment(float(row[self.slots[0]])) if len(self._known(row[None])) else None

    def _moment(self, days: float) -> Any:
        return np.datetime64(round(self.first + days * MICROSECONDS_A_DAY), "us")

    def one_cell(self) -> OneDate:
        return OneDate(self)

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
                    angles[part] = (TURN * phase(values, part)).tolist()
                of_angle = math.sin if wave == "sin" else math.cos
                X[:, slot] = np.where(known, list(map(of_angle, angles[part])), 0.0)

    def _absent_parts(self) -> list[str]:
        return [part for part in PARTS if f"{part} sin" not in self.roles]

    def first_phase(self, part: str) -> float:
        """Of the first moment: what all rows had until the part varied."""
        return float(phase(np.array([int(self.first)], dtype=np.int64), part)[0])


class OneDate(OneCell):
    """A moment."""

    days: int
    missing: list[int]

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
        for i, sine, cosine in self.waves:
            angle = TURN * phases[i]
            row[sine], row[cosine] = math.sin(angle), math.cos(angle)
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


def phase(stamps: NDArray[np.int64], part: str) -> NDArray[np.float64]:
    """The fraction of the part's period that has passed, in [0, 1), of microseconds since 1970.

    >>> phase(np.array(["2024-01-01T06:00"], "datetime64[us]").view(np.int64), "hour").tolist()
    [0.25]
    """
    days = stamps // MICROSECONDS_A_DAY
    if part == "hour":
        return np.asarray((stamps % MICROSECONDS_A_DAY) / MICROSECONDS_A_DAY)
    if part == "weekday":
        return np.asarray(((days + 3) % 7) / 7.0)  # 1970 began on a Thursday
    years = stamps.view("datetime64[us]").astype("datetime64[Y]")
    start, end = ((years + np.timedelta64(i, "Y")).astype("datetime64[D]").view(np.int64) for i in (0, 1))
    passed = (days - start) + (stamps % MICROSECONDS_A_DAY) / MICROSECONDS_A_DAY
    return np.asarray(passed / np.maximum(end - start, 1))  # NaT has no year: masked by who asks


def phases_of(stamp: int) -> tuple[float, float, float]:
    """As :func:`phase` of one moment, all parts of it, bit for bit, in a microsecond."""
    day, passed = divmod(stamp, MICROSECONDS_A_DAY)
    hour = passed / MICROSECONDS_A_DAY
    weekday, since, length = _in_week_and_year(day)
    return hour, weekday, (since + hour) / length


@lru_cache(maxsize=4096)
def _in_week_and_year(day: int) -> tuple[float, int, int]:
    """The phase of the weekday, the days since new year, and those of the year; of days since 1970."""
    stamp = np.array([day]).view("datetime64[D]")
    year = stamp.astype("datetime64[Y]")
    start, end = ((year + i).astype("datetime64[D]").view(np.int64)[0] for i in (0, 1))
    return ((day + 3) % 7) / 7.0, day - int(start), int(end - start)
