"""Dates as people write them, as microseconds since 1970.

A column is always written one way, whichever fits the first values best:

============  ==========================================================================================
order         such as
============  ==========================================================================================
year first    2016-03-01, 2016/3/1 14:30, 2016-03-01T14:30:00.5+01:00, 2016-03-01T14, 2016-03 (a month)
day first     1.3.2016, 01/03/16 2:30 PM
month first   3/1/2016, 03-01-16
month name    3 Mar 2016, 3-Mar-16, March 3, 2016, Mar-03-16, Mar 2016
yyyymmdd      20160301, 20160301T1430
time only     14:30, 2:30:15 pm
s ms us ns    seconds, milli-, micro- or nanoseconds since 1970
============  ==========================================================================================

If day first and month first fit as well, it is month first with slashes, else day first. Years of two digits
are those from 1969 to 2068, names of weekdays in front are ignored. Times with an offset are read as UTC;
others as they stand.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EPOCHS",
    "NOT_A_TIME",
    "ORDERS",
    "date_order",
    "epoch_stamps",
    "epoch_unit",
    "iso_stamps",
    "microseconds",
    "says_time",
    "stamp",
]

NOT_A_TIME = np.iinfo(np.int64).min
EPOCH = datetime.datetime(1970, 1, 1)
#: Microseconds in a unit of numbers that count from 1970.
EPOCHS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
LONGEST = 50  # letters

WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
HOUR = r"(?P<hour>\d{1,2})"
REST = (
    r"(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?|\s*(?P<half_>[ap])\.?m\.?)"
)
ZONE = r"\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
CLOCK = HOUR + REST + ZONE
# Behind a day, an hour may stand alone, with both of its digits.
AT = rf"(?:[T ,]\s*{HOUR}(?:{REST}|(?<=[T ]\d\d)){ZONE})?"
DAY, MONTH, YEAR = r"(?P<day>\d{1,2})", r"(?P<month>\d{1,2})", r"(?P<year>\d{4}|\d{2})"
# Each order is one or more patterns; a month alone is one of plausible years only, else it is a code.
ORDERS = {
    order: tuple(re.compile(WEEKDAY + pattern, re.I | re.A) for pattern in patterns)
    for order, patterns in {
        "year first": (
            rf"(?P<year>\d{{4}})(?P<sep>[-/.]){MONTH}(?P=sep){DAY}{AT}",
            r"(?P<year>1[89]\d\d|2[01]\d\d)[-/](?P<month>\d{2})",
        ),
        "day first": (rf"{DAY}(?P<sep>[-/.]){MONTH}(?P=sep){YEAR}{AT}",),
        "month first": (rf"{MONTH}(?P<sep>[-/.]){DAY}(?P=sep){YEAR}{AT}",),
        "month name": (
            rf"{DAY}(?:st|nd|rd|th)?[-/ ]\s*{NAME}[-/, ]\s*{YEAR}{AT}",
            rf"{NAME}[-/ ]\s*{DAY}(?:st|nd|rd|th)?[-/, ]\s*{YEAR}{AT}",
            rf"(?P<year>\d{{4}})[-/ ]{NAME}[-/ ]{DAY}{AT}",
            rf"{NAME}[-/, ]\s*(?P<year>\d{{4}})",
        ),
        "yyyymmdd": (
            r"(?P<year>1[89]\d\d|2[01]\d\d)(?P<month>\d\d)(?P<day>\d\d)"
            r"(?:[T ]?(?P<hour>\d\d)(?:(?P<minute>\d\d)(?P<second>\d\d)?|(?<=T\d\d))(?P<zone>Z)?)?",
        ),
        "time only": (CLOCK,),
    }.items()
}


def date_order(texts: Sequence[str]) -> str | None:
    """How these dates are written, as at least half of them are; None if they are none.

    >>> date_order(["31.12.2023", "1.1.2024"]), date_order(["Mar 3, 2016"]), date_order(["red"])
    ('day first', 'month name', None)
    """
    likely = [text for text in texts if len(text) <= LONGEST and any(map(str.isdigit, text))]
    if 2 * len(likely) < len(texts):
        return None
    fits = {order: sum(stamp(text, order) is not None for text in likely) for order in ORDERS}
    most = max(fits.values())
    if not most or 2 * most < len(texts):
        return None
    fitting = [order for order in ORDERS if fits[order] == most]
    if "month first" in fitting and "year first" not in fitting and "/" in "".join(texts[:50]):
        return "month first"
    return fitting[0]


# ---- numbers that are dates

SAYS_TIME = {
    "created", "date", "dates", "datetime", "day", "epoch", "modified", "time", "times", "timestamp",
    "timestamps", "ts", "unix", "unixtime", "updated", "when",
}  # fmt: skip
FIRST, LAST = 631_152_000, 2_871_763_200  # seconds: 1990 and 2061


def says_time(name: str) -> bool:
    """Whether a column's name says that it holds moments."""
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).casefold())
    return not SAYS_TIME.isdisjoint(words)


def epoch_unit(name: str, numbers: Any) -> str | None:
    """The order of a column of numbers that are moments: a key of :data:`EPOCHS`, ``"yyyymmdd"``, or None.

    They must all be integers that fall between 1990 and 2060 (days: that are in the calendar), be more than
    one, and the column's name must say so: *time*, *date*, *ts*, *epoch*, *created* and the like. Their order
    does not matter: rows may be shuffled.

    >>> epoch_unit("created_at", [1609459200, 1609545600]), epoch_unit("saleDate", [20230131, 20230201])
    ('s', 'yyyymmdd')
    >>> epoch_unit("population", [1609459200, 1609545600])
    """
    if not says_time(name):
        return None
    values = np.asarray(numbers, dtype=np.float64)
    values = np.unique(values[~np.isnan(values)])
    if len(values) < 2 or (values != np.floor(values)).any():
        return None
    for unit, size in EPOCHS.items():
        if values[0] * size >= FIRST * 1e6 and values[-1] * size < LAST * 1e6:
            return unit
    if values[0] >= 19_900_101 and values[-1] <= 20_601_231:
        return "yyyymmdd" if (epoch_stamps(values, "yyyymmdd") != NOT_A_TIME).all() else None
    return None


def epoch_stamps(numbers: NDArray[np.float64], order: str) -> NDArray[np.int64]:
    """Microseconds since 1970 of numbers in an order of :func:`epoch_unit`; NOT_A_TIME for what is none."""
    out = np.full(len(numbers), NOT_A_TIME, dtype=np.int64)
    if order == "yyyymmdd":
        good = np.flatnonzero((numbers >= 10_000_101) & (numbers <= 99_991_231))
        days = numbers[good].astype(np.int64)
        year, month, day = days // 10_000, days // 100 % 100, days % 100
        real = (numbers[good] == days) & (month >= 1) & (month <= 12) & (day >= 1)
        months = (year - 1970) * 12 + month - 1
        first = months.astype("datetime64[M]").astype("datetime64[D]")
        length = ((months + 1).astype("datetime64[M]").astype("datetime64[D]") - first).astype(np.int64)
        moments = (first + (day - 1).astype("timedelta64[D]")).astype("datetime64[us]").view(np.int64)
        real &= day <= length
        out[good[real]] = moments[real]
        return out
    with np.errstate(all="ignore"):
        moments = numbers * EPOCHS[order]
        good = np.flatnonzero(np.abs(moments) < 2.5e17)  # within 8,000 years
    out[good] = np.rint(moments[good]).astype(np.int64)
    return out


# ---- one after the other


def stamp(value: Any, order: str) -> int | None:
    """Microseconds since 1970 of a text or a number in this order, or of a date; None if it is not one."""
    if isinstance(value, str):
        return _from_text(value.strip(), order) if len(value) <= 2 * LONGEST else None
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").view(np.int64))
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return microseconds(value.replace(fold=0))
    if isinstance(value, datetime.date):
        return microseconds(datetime.datetime(value.year, value.month, value.day))
    if isinstance(value, (int, float, np.integer, np.floating)) and (order in EPOCHS or order == "yyyymmdd"):
        return _from_number(float(value), order)
    return None


def iso_stamps(texts: Sequence[Any]) -> NDArray[np.int64] | None:
    """Dates of one width like 2024-01-31 12:00:00, which NumPy reads by itself; None if they are not."""
    width = len(texts[0]) if texts and isinstance(texts[0], str) else 0
    if width not in (10, 13, 16, 19) or not all(isinstance(t, str) and len(t) == width for t in texts):
        return None
    letters = np.array(texts, dtype=f"U{width}")
    points = letters.view(np.uint32).reshape(len(texts), width)
    signs = {4: "-", 7: "-", 10: "T ", 13: ":", 16: ":"}
    for place in range(width):
        column = points[:, place]
        allowed = signs.get(place)
        if allowed is None:
            good = (column >= ord("0")) & (column <= ord("9"))
        else:
            good = np.isin(column, [ord(sign) for sign in allowed])
        if not good.all():
            return None
    try:
        return letters.astype("datetime64[us]").view(np.int64)
    except ValueError:  # a 31st of February
        return None


def _from_number(number: float, order: str) -> int | None:
    found = int(epoch_stamps(np.array([number]), order)[0])
    return None if found == NOT_A_TIME else found


@lru_cache(maxsize=4096)
def _from_text(text: str, order: str) -> int | None:
    if order in EPOCHS:
        try:
            return _from_number(float(text), order) if "_" not in text else None
        except ValueError:
            return None
    for pattern in ORDERS[order] if len(text) <= LONGEST else ():
        if match := pattern.fullmatch(text):
            return _moment(match.groupdict())
    # What was written to a file of numbers: 20230131.0
    if order == "yyyymmdd" and re.fullmatch(r"\d{8}\.0*", text):
        return _from_number(float(text), order)
    return None


def _moment(found: dict[str, str | None]) -> int | None:
    """Of the named parts of a date; None if there is no such day or time."""
    year, hour = int(found.get("year") or 1970), int(found.get("hour") or 0)
    if len(found.get("year") or "1970") == 2:
        year += 1900 if year >= 69 else 2000
    month = MONTHS.index(str(found["name"])[:3].casefold()) + 1 if found.get("name") else found.get("month")
    half = found.get("half") or found.get("half_")
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half in "pP")
    try:
        moment = datetime.datetime(
            year,
            int(month or 1),
            int(found.get("day") or 1),
            hour,
            int(found.get("minute") or 0),
            int(found.get("second") or 0),
            int((found.get("fraction") or "0")[:6].ljust(6, "0")),
        )
        return microseconds(moment) - _offset(found.get("zone"))
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> int:
    if zone is None or zone[0] not in "+-":
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 60 + int(zone[-2:])) * 60_000_000


def microseconds(moment: datetime.datetime) -> int:
    """Since 1970, of a moment without a time zone."""
    passed = moment - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
