"""What a forecast is made from: of the step that is predicted, and of the step at which it is made.

::

    base        y(s) from what is known L steps before, L = H, H/2, ..., 1: columns known ahead of s, the time
                of s, the same place in earlier seasons, levels and other columns as they stood at s - L
    correction  y(t + h) - base(t + h), h = 1 .. H, by the base of the least L that is at least h, from what
                is known at the origin t: the last errors of the base, the base along the path, other columns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.forecasting.grid import BASES, OFF, Grid, Y, first_of, mean_of
from kons.tables.records import TypedRecords

__all__ = [
    "Asked",
    "alike",
    "base_records",
    "calendar",
    "correction_records",
    "last_errors",
    "members",
    "same_place",
    "usual_errors",
    "weekend",
]

#: Of the shortest season, and of longer ones, so many are averaged.
SHORT, LONG = 7, 4
#: Of days of a kind so many are averaged, of those in two weeks.
KIND, DAYS = 4, 14
#: What a holiday column says of other days, besides nothing.
NO = ("", "none", "no", "false", "0", "nan")
DAY = 86_400_000_000
#: Where along the path the base tells the correction what is coming, as parts of the horizon.
ALONG = (1 / 12, 1 / 6, 1 / 3, 1 / 2, 3 / 4)

Steps = NDArray[np.int64]


class Asked(NamedTuple):
    """What a forecaster was told about its series."""

    horizon: int
    seasons: tuple[int, ...]
    known_ahead: tuple[Any, ...]
    time: Any
    """The name of the column of time; None: steps are rows."""
    step: int
    """Microseconds of a step."""

    @property
    def leads(self) -> list[int]:
        """How many steps before a step each base looks at it: H, H/2, ..., 1."""
        found = [self.horizon]
        while found[-1] > 1:
            found.append(found[-1] // 2)
        return found

    @property
    def looks(self) -> list[int]:
        """The lead of each base; the last one learns what deviates from days of the same kind."""
        return [*self.leads, self.horizon]

    @property
    def means(self) -> list[tuple[int, int]]:
        """Of which bases the last errors are averaged, over how many steps."""
        short = self.seasons[0] if self.seasons else self.horizon
        bases = dict.fromkeys((0, len(self.leads) - 1))
        return [(base, window) for base in bases for window in dict.fromkeys((4, short))]

    @property
    def lags(self) -> list[list[int]]:
        """Of each season, the multiples that are known H steps before."""
        return self.lags_of(self.horizon)

    def lags_of(self, lead: int) -> list[list[int]]:
        """Of each season, the multiples that are known so many steps before."""
        found = []
        for place, season in enumerate(self.seasons):
            first = -(-lead // season)
            found.append([season * (first + k) for k in range(LONG if place else SHORT)])
        return found

    @property
    def windows(self) -> list[int]:
        """Of the levels."""
        return list(self.seasons) or [self.horizon, 4 * self.horizon]

    @property
    def reach(self) -> int:
        """How many steps of the past are looked at, behind chunks that wait to be learned."""
        longest = max([0, *(lag for lags in self.lags for lag in lags)])
        longest = max(longest, max(self.windows) + self.horizon)
        # The maps of phases look at each step of the last season as it was expected.
        longest = max(longest, (DAYS + 1) * self.day + self.horizon) + min(self.windows)
        return longest + 5 * self.horizon + 2

    @property
    def day(self) -> int:
        """Steps of a day; 0 where days do not matter."""
        inside = self.time is not None and self.step < DAY and not DAY % self.step
        return DAY // self.step if inside else 0


def base_records(grid: Grid, steps: Steps, asked: Asked, lead: int) -> TypedRecords:
    """A row for each of these steps, from what is known ``lead`` steps before."""
    then, seasons = steps - lead, asked.lags_of(lead)
    columns, kinds = _of_time(steps, asked)
    for name, kind in grid.kinds.items():
        if name in asked.known_ahead:
            _add(columns, kinds, grid, name, kind, steps, "")
            for lags in seasons:
                _add(columns, kinds, grid, name, kind, steps - lags[0], f", {lags[0]} before")
        else:
            _add(columns, kinds, grid, name, kind, then, f", {lead} before")
    levels = [grid.means(Y, then, window) for window in asked.windows]
    numbers = calendar(grid, steps, asked)
    if seasons and "day off" in numbers:
        numbers["day off, before"] = calendar(grid, steps - seasons[0][0], asked)["day off"]
    for lags in seasons:
        mean = same_place(grid, steps, lags)
        numbers[f"{lags[0]} before"] = first_of(grid.at(Y, steps - lags[0]), mean, levels[-1])
        numbers[f"mean of {len(lags)}, {lags[0]} before"] = first_of(mean, levels[-1])
    for window, level in zip(asked.windows, levels, strict=True):
        numbers[f"level of {window}"] = first_of(level, levels[-1])
    if asked.day:
        numbers["days of this kind"] = alike(grid, steps, asked, lead)
    numbers["last"] = known_or_alike(grid, then, asked)
    numbers["the one before"] = known_or_alike(grid, then - 1, asked)
    return _records(columns, kinds, numbers, len(steps))


def correction_records(grid: Grid, origins: Steps, asked: Asked) -> TypedRecords:
    """A row for each origin, from what is known there and of columns known ahead."""
    columns, kinds = _of_time(origins, asked)
    half = asked.horizon // 2
    for name, kind in grid.kinds.items():
        _add(columns, kinds, grid, name, kind, origins, "")
        if name in asked.known_ahead:
            for ahead in dict.fromkeys((half, asked.horizon)):
                _add(columns, kinds, grid, name, kind, origins + ahead, f", {ahead} ahead")
    short = asked.seasons[0] if asked.seasons else asked.horizon
    numbers = calendar(grid, origins, asked)
    if "day off" in numbers:
        for ahead in dict.fromkeys((half, asked.horizon)):
            numbers[f"day off, {ahead} ahead"] = calendar(grid, origins + ahead, asked)["day off"]
    numbers["error"] = _errors(grid, origins)
    for back in (1, 2):
        numbers[f"error, {back} before"] = _errors(grid, origins - back)
    for window in dict.fromkeys((4, max(short // 2, 1), short)):
        numbers[f"errors of {window}"] = _mean_errors(grid, origins, window)
    numbers["y"] = first_of(grid.at(Y, origins), expected(grid, origins, asked))
    numbers["base"] = expected(grid, origins, asked)
    for ahead in dict.fromkeys(max(1, round(part * asked.horizon)) for part in ALONG):
        numbers[f"base, {ahead} ahead"] = expected(grid, origins + ahead, asked, ahead)
    return _records(columns, kinds, numbers, len(origins))


def members(grid: Grid, origins: Steps, asked: Asked) -> Matrix:
    """What each base says of the path of each origin, (n, H, bases); NaN where it looks too late for that.

    Where it said nothing (no row came, or none had been learned): the same place in earlier seasons, or the
    level, or, behind a gap as long as all of these, the value of the origin.
    """
    leads = asked.looks
    steps = (origins[:, None] + np.arange(1, asked.horizon + 1)).ravel()
    last = np.nan_to_num(np.repeat(grid.at(Y, origins), asked.horizon))
    found = np.stack([_expected(grid, steps, asked, base, last) for base in range(len(leads))], axis=1)
    found = found.reshape(len(origins), asked.horizon, len(leads))
    found[:, np.arange(1, asked.horizon + 1)[:, None] > np.array(leads)] = np.nan
    return found


def usual_errors(grid: Grid, origins: Steps, asked: Asked) -> Matrix:
    """How much the first base missed at the same place in earlier seasons, (n, H); 0 where nobody knows."""
    steps = (origins[:, None] + np.arange(1, asked.horizon + 1)).ravel()
    if not asked.lags:
        return np.zeros((len(origins), asked.horizon))
    places = (steps[:, None] - np.array(asked.lags[0])).ravel()
    missed = np.abs(grid.at(Y, places) - grid.at(BASES, places)).reshape(len(steps), len(asked.lags[0]))
    return np.nan_to_num(mean_of(missed)).reshape(len(origins), asked.horizon)


def last_errors(grid: Grid, origins: Steps, asked: Asked) -> Matrix:
    """The last error of each base, and means of some, (n, errors)."""
    last = [_errors(grid, origins, base) for base in range(len(asked.looks))]
    means = [_mean_errors(grid, origins, window, base) for base, window in asked.means]
    return np.stack([*last, *means], axis=1)


def expected(grid: Grid, steps: Steps, asked: Asked, ahead: int = 1) -> Vector:
    """What is said of steps so far ahead; where there is nothing, as in :func:`members`, or 0."""
    base = max(place for place, lead in enumerate(asked.leads) if lead >= ahead)
    return _expected(grid, steps, asked, base)


def _expected(grid: Grid, steps: Steps, asked: Asked, base: int, last: Vector | float = 0.0) -> Vector:
    found = grid.at(BASES + base, steps)
    if not np.isnan(found).any():
        return found
    level = grid.means(Y, steps - asked.horizon, asked.windows[-1])
    for other in (*(same_place(grid, steps, lags) for lags in asked.lags), level):
        found = np.where(np.isnan(found), other, found)
    return np.where(np.isnan(found), last, found)


def alike(grid: Grid, steps: Steps, asked: Asked, lead: int) -> Vector:
    """The mean of the last days of the same kind (days off, or others), at this time of the day.

    Of a day that is partly one, both, by how much. Without days: of the last seasons, or the level.
    """
    seasons = asked.lags_of(lead)
    level = grid.means(Y, steps - lead, asked.windows[-1])
    other = [same_place(grid, steps, lags) for lags in seasons[:1]]
    if not asked.day:
        return first_of(*other, level)
    first = -(-lead // asked.day)
    days = steps[:, None] - asked.day * np.arange(first, max(DAYS, first) + 1)
    values = grid.at(Y, days.ravel()).reshape(days.shape)
    off = calendar(grid, days.ravel(), asked)["day off"].reshape(days.shape) >= 0.5
    share, means = calendar(grid, steps, asked)["day off"], []
    for kind in (~off, off):
        its = np.where(kind, values, np.nan)
        its[np.cumsum(~np.isnan(its), axis=1) > KIND] = np.nan
        means.append(first_of(mean_of(its), *other, level))
    return (1.0 - share) * means[0] + share * means[1]


def known_or_alike(grid: Grid, steps: Steps, asked: Asked) -> Vector:
    """y at these steps; in a gap what :func:`alike` says of them."""
    values = grid.at(Y, steps)
    gaps = np.isnan(values)
    if gaps.any():
        values[gaps] = alike(grid, steps[gaps], asked, 1)
    return values


def same_place(grid: Grid, steps: Steps, lags: Sequence[int]) -> Vector:
    """The mean at the same place in earlier seasons."""
    return mean_of(grid.at(Y, (steps[:, None] - np.array(lags)).ravel()).reshape(-1, len(lags)))


def _errors(grid: Grid, steps: Steps, base: int = 0) -> Vector:
    """What a base missed; 0 where it is not known."""
    return np.nan_to_num(grid.at(Y, steps) - grid.at(BASES + base, steps))


def _mean_errors(grid: Grid, steps: Steps, window: int, base: int = 0) -> Vector:
    errors = _errors(grid, (steps[:, None] - np.arange(window)).ravel(), base)
    means: Vector = errors.reshape(-1, window).mean(axis=1)
    return means


def calendar(grid: Grid, steps: Steps, asked: Asked) -> dict[str, Vector]:
    """What a kernel finds hard to see in waves of a day and a week: rush hours, and days off.

    A day off is a weekend, or one where a column known ahead whose name says holiday has a value: as far as
    such days were one (:mod:`kons.forecasting.days_off`).
    """
    if asked.time is None or asked.step >= DAY:
        return {}
    moments = steps * asked.step
    angle = 4.0 * np.pi * (moments % DAY) / DAY
    off = np.where(weekend(steps, asked), 1.0, np.nan_to_num(grid.at(OFF, steps)))
    waves = {"twice a day sin": np.sin(angle), "twice a day cos": np.cos(angle)}
    return {**waves, "day off": off}


def weekend(steps: Steps, asked: Asked) -> NDArray[np.bool_]:
    """Whether a step is on a Saturday or a Sunday; 1970 began on a Thursday."""
    saturday: NDArray[np.bool_] = (steps * asked.step // DAY + 3) % 7 >= 5
    return saturday


def _of_time(steps: Steps, asked: Asked) -> tuple[dict[Any, Any], dict[Any, str]]:
    if asked.time is None:
        return {}, {}
    return {asked.time: steps * asked.step}, {asked.time: "date"}


def _add(
    columns: dict[Any, Any], kinds: dict[Any, str], grid: Grid, name: Any, kind: str, steps: Steps, more: str
) -> None:
    values = grid.at(grid.place(name), steps)
    columns[f"{name}{more}"] = grid.texts(name, values) if kind == "text" else values
    kinds[f"{name}{more}"] = kind


def _records(
    columns: dict[Any, Any], kinds: dict[Any, str], numbers: dict[str, Vector], rows: int
) -> TypedRecords:
    for name, values in numbers.items():
        columns[f"({name})"] = values  # no column of a table is called so
    return TypedRecords(columns, kinds | {f"({name})": "number" for name in numbers}, rows)
