"""What a forecast is made from: of the step that is predicted, and of the step at which it is made.

::

    base        y(s) from what is known H steps before: columns known ahead of s, the time of s, the same
                place in earlier seasons, levels and other columns as they stood at s - H
    correction  y(t + h) - base(t + h), h = 1 .. H, from what is known at the origin t: the last errors of the
                base, the base along the path, the other columns as they stand
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.forecasting.grid import BASE, Grid, Y, first_of, mean_of
from kons.tables.records import TypedRecords

__all__ = ["Asked", "base_records", "correction_records", "residuals"]

#: Of the shortest season, and of longer ones, so many are averaged.
SHORT, LONG = 7, 4
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
    def lags(self) -> list[list[int]]:
        """Of each season, the multiples that are known H steps before."""
        found = []
        for place, season in enumerate(self.seasons):
            first = -(-self.horizon // season)
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
        return max(longest, max(self.windows) + self.horizon) + 5 * self.horizon + 2


def base_records(grid: Grid, steps: Steps, asked: Asked) -> TypedRecords:
    """A row for each of these steps, from what is known ``horizon`` steps before."""
    then = steps - asked.horizon
    columns, kinds = _of_time(steps, asked)
    for name, kind in grid.kinds.items():
        if name in asked.known_ahead:
            _add(columns, kinds, grid, name, kind, steps, "")
            for lags in asked.lags:
                _add(columns, kinds, grid, name, kind, steps - lags[0], f", {lags[0]} before")
        else:
            _add(columns, kinds, grid, name, kind, then, f", {asked.horizon} before")
    levels = [grid.means(Y, then, window) for window in asked.windows]
    numbers = _calendar(grid, steps, asked)
    if asked.lags and "day off" in numbers:
        numbers["day off, before"] = _calendar(grid, steps - asked.lags[0][0], asked)["day off"]
    for lags in asked.lags:
        mean = same_place(grid, steps, lags)
        numbers[f"{lags[0]} before"] = first_of(grid.at(Y, steps - lags[0]), mean, levels[-1])
        numbers[f"mean of {len(lags)}, {lags[0]} before"] = first_of(mean, levels[-1])
    for window, level in zip(asked.windows, levels, strict=True):
        numbers[f"level of {window}"] = first_of(level, levels[-1])
    numbers["last"] = first_of(grid.at(Y, then), levels[0])
    numbers["the one before"] = first_of(grid.at(Y, then - 1), levels[0])
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
    numbers = _calendar(grid, origins, asked)
    if "day off" in numbers:
        for ahead in dict.fromkeys((half, asked.horizon)):
            numbers[f"day off, {ahead} ahead"] = _calendar(grid, origins + ahead, asked)["day off"]
    numbers["error"] = _errors(grid, origins)
    for back in (1, 2):
        numbers[f"error, {back} before"] = _errors(grid, origins - back)
    for window in dict.fromkeys((4, max(short // 2, 1), short)):
        offsets = np.arange(window)
        errors = _errors(grid, (origins[:, None] - offsets).ravel()).reshape(-1, window)
        numbers[f"errors of {window}"] = errors.mean(axis=1)
    numbers["y"] = first_of(grid.at(Y, origins), expected(grid, origins, asked))
    numbers["base"] = expected(grid, origins, asked)
    for ahead in dict.fromkeys(max(1, round(part * asked.horizon)) for part in ALONG):
        numbers[f"base, {ahead} ahead"] = expected(grid, origins + ahead, asked)
    return _records(columns, kinds, numbers, len(origins))


def residuals(grid: Grid, origins: Steps, asked: Asked) -> tuple[Matrix, Matrix, Matrix]:
    """Base, target and what the base missed, of each origin and horizon; NaN where nothing came."""
    steps = (origins[:, None] + np.arange(1, asked.horizon + 1)).ravel()
    shape = (len(origins), asked.horizon)
    base = _expected(grid, steps, asked).reshape(shape)
    target = grid.at(Y, steps).reshape(shape)
    return base, target, target - base


def expected(grid: Grid, steps: Steps, asked: Asked) -> Vector:
    """The base of steps; where there is none, the same place in earlier seasons, or the level, or 0."""
    return np.nan_to_num(_expected(grid, steps, asked))


def _expected(grid: Grid, steps: Steps, asked: Asked) -> Vector:
    found = grid.at(BASE, steps)
    if not np.isnan(found).any():
        return found
    level = grid.means(Y, steps - asked.horizon, asked.windows[-1])
    for other in (*(same_place(grid, steps, lags) for lags in asked.lags), level):
        found = np.where(np.isnan(found), other, found)
    return found


def same_place(grid: Grid, steps: Steps, lags: Sequence[int]) -> Vector:
    """The mean at the same place in earlier seasons."""
    return mean_of(grid.at(Y, (steps[:, None] - np.array(lags)).ravel()).reshape(-1, len(lags)))


def _errors(grid: Grid, steps: Steps) -> Vector:
    """What the base missed; 0 where it is not known."""
    return np.nan_to_num(grid.at(Y, steps) - grid.at(BASE, steps))


def _calendar(grid: Grid, steps: Steps, asked: Asked) -> dict[str, Vector]:
    """What a kernel finds hard to see in waves of a day and a week: rush hours, and days off.

    A day off is a weekend, or one where a column known ahead whose name says holiday has a value.
    """
    if asked.time is None or asked.step >= DAY:
        return {}
    moments = steps * asked.step
    angle = 4.0 * np.pi * (moments % DAY) / DAY
    off = (moments // DAY + 3) % 7 >= 5  # 1970 began on a Thursday
    for name in asked.known_ahead:
        if name in grid.kinds and "holiday" in str(name).casefold():
            values = grid.at(grid.place(name), steps)
            none = {place for place, level in enumerate(grid.levels.get(name, ())) if level.casefold() in NO}
            off = off | ~(np.isnan(values) | np.isin(values, list(none) if name in grid.levels else [0.0]))
    waves = {"twice a day sin": np.sin(angle), "twice a day cos": np.cos(angle)}
    return {**waves, "day off": off.astype(np.float64)}


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
