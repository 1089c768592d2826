"""Dates as people write them, as microseconds since 1970.

The day may be written year first (ISO), day first or month first, a column always the same way: whichever
fits the first values; if both of the latter do, month first with slashes, else day first. Times with an
offset are read as UTC; others as they stand.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOT_A_TIME", "date_order", "stamp", "stamps"]

NOT_A_TIME = np.iinfo(np.int64).min
EPOCH = datetime.datetime(1970, 1, 1)
CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|[+-]\d{2}:?\d{2})?"
ORDERS = {
    "year first": re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}})(?:[T ]\s*{CLOCK})?"),
    "day first": re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}})(?:[T ,]\s*{CLOCK})?"),
    "month first": re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}})(?:[T ,]\s*{CLOCK})?"),
    "time only": re.compile(CLOCK),
}


def date_order(texts: Sequence[str]) -> str | None:
    """How these dates are written, as at least half of them are; None if they are none."""
    fits = {order: sum(stamp(text, order) is not None for text in texts) for order in ORDERS}
    most = max(fits.values())
    if not most or 2 * most < len(texts):
        return None
    fitting = [order for order in ORDERS if fits[order] == most]
    if "month first" in fitting and "year first" not in fitting and "/" in "".join(texts[:50]):
        return "month first"
    return fitting[0]


def stamp(value: Any, order: str) -> int | None:
    """Microseconds since 1970 of a text in this order, or of a date; None if it is not one."""
    if isinstance(value, str):
        return _from_text(value.strip(), order)
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[us]").view(np.int64))
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return _microseconds(value.replace(fold=0))
    if isinstance(value, datetime.date):
        return _microseconds(datetime.datetime(value.year, value.month, value.day))
    return None


def stamps(texts: Sequence[str | None], order: str) -> NDArray[np.int64] | None:
    """All at once, :data:`NOT_A_TIME` for None; None if one of them is no such date."""
    if order == "year first":
        fast = _iso(texts)
        if fast is not None:
            return fast
    out = np.empty(len(texts), dtype=np.int64)
    for i, text in enumerate(texts):
        found = NOT_A_TIME if text is None else stamp(text, order)
        if found is None:
            return None
        out[i] = found
    return out


def _iso(texts: Sequence[str | None]) -> NDArray[np.int64] | None:
    """Dates of one width like 2024-01-31 12:00:00, which NumPy reads by itself, or None."""
    width = len(texts[0]) if texts and texts[0] is not None else 0
    if width not in (10, 16, 19) or not all(text is not None and len(text) == width for text in texts):
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


@lru_cache(maxsize=4096)
def _from_text(text: str, order: str) -> int | None:
    if len(text) > 40:
        return None
    match = ORDERS[order].fullmatch(text)
    if match is None:
        return None
    groups = match.groups()
    clock = groups if order == "time only" else groups[4:]
    if order == "time only":
        year, month, day = 1970, 1, 1
    else:
        first, _, second, third = groups[:4]
        year, month, day = {
            "year first": (int(first), int(second), int(third)),
            "day first": (int(third), int(second), int(first)),
            "month first": (int(third), int(first), int(second)),
        }[order]
    hour, minute, second_, fraction, zone = clock
    try:
        moment = datetime.datetime(
            year,
            month,
            day,
            int(hour or 0),
            int(minute or 0),
            int(second_ or 0),
            int((fraction or "0")[:6].ljust(6, "0")),
        )
        return _microseconds(moment) - _offset(zone)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 60 + int(zone[-2:])) * 60_000_000


def _microseconds(moment: datetime.datetime) -> int:
    passed = moment - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
