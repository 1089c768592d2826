"""What a moment tells: how far along the stream it is, and where in the day, the week and the year."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kons.tables.moments import NOT_A_TIME

__all__ = ["MICROSECONDS_A_DAY", "NOT_A_TIME", "PARTS", "phase", "phases_of"]

MICROSECONDS_A_DAY = 86_400_000_000
#: Parts of a date that come again: the time of day, the day of the week, the time of year.
PARTS = ("hour", "weekday", "yearday")


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
