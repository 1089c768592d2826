"""Numbers for people: rounded to what they mean, never more digits than a reader can use."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["column", "columns_of", "count", "duration", "number", "percent", "plural"]

UNKNOWN = "unknown"
PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its sign stay on one line
WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits; thousands whole; millions and more in words.

    >>> number(12.345), number(0.00123456), number(48123.4), number(4.1234e9), number(None)
    ('12.3', '0.00123', '48,123', '4.12 billion', 'unknown')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    if size >= 1e15 or 0.0 < size < 1e-4:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    for unit, word in WORDS:
        if size >= unit:
            return f"{number(value / unit, digits)} {word}"
    if size >= 999.5:
        return f"{value:,.0f}"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def column(values: Sequence[float | None], digits: int = 4, *, by_least: bool = False) -> list[str]:
    """Numbers that stand under each other: as many decimals as give the largest, or the least, its digits.

    >>> column([108.49, 86.324, 88.0, None])
    ['108.5', '86.3', '88.0', 'unknown']
    """
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    size, least = max(known, default=0.0), min((value for value in known if value), default=0.0)
    if not 1e-3 <= size < 1e6 or least < 10.0 ** (1 - digits) * size:
        return [number(value, digits) for value in values]
    decimals = max(0, digits - 1 - math.floor(math.log10(least if by_least else size)))
    return [
        UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.{decimals}f}" for value in values
    ]


def count(value: float | None) -> str:
    """A whole number with its thousands.

    >>> count(1234567)
    '1,234,567'
    """
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:,.0f}"


def plural(value: int, name: str) -> str:
    """A count with its noun.

    >>> plural(1, "row"), plural(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count(value)} {name}{'' if value == 1 else 's'}"


def columns_of(columns: int, features: int) -> str:
    """How many columns were read, and as how many features where these are others.

    >>> columns_of(7, 7), columns_of(6, 54)
    ('7 columns', '6 columns as 54 features')
    """
    return plural(columns, "column") + ("" if features == columns else f" as {plural(features, 'feature')}")


def percent(part: float | None, *, exact: bool = False) -> str:
    r"""A part as a percentage: whole, with a decimal below ten and close to a hundred, or where asked for.

    >>> percent(0.4123), percent(0.0234), percent(0.9987), percent(0.0), percent(1.0)
    ('41\xa0%', '2.3\xa0%', '99.9\xa0%', '0\xa0%', '100\xa0%')
    """
    if part is None or not math.isfinite(part):
        return UNKNOWN
    value = 100.0 * part
    if 0.0 < value < 0.1:
        return f"less than 0.1{PERCENT}"
    if 99.95 <= value < 100.0:
        return f"more than 99.9{PERCENT}"
    precise = exact or 0.0 < abs(value) < 9.95 or 99.0 < value < 100.0
    return (f"{value:,.1f}".removesuffix(".0") if precise else f"{value:,.0f}") + PERCENT


def duration(seconds: float | None) -> str:
    """A time in the unit a person would use.

    >>> duration(21.4e-6), duration(0.0031), duration(4.26), duration(200), duration(8000)
    ('21 microseconds', '3.1 milliseconds', '4.3 seconds', '3 min 20 s', '2 h 13 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 60.0:
        scaled, unit = seconds, "seconds"
        if seconds < 0.9995e-3:
            scaled, unit = seconds * 1e6, "microseconds"
        elif seconds < 0.9995:
            scaled, unit = seconds * 1e3, "milliseconds"
        return f"{scaled:.0f} {unit}" if scaled >= 9.95 else f"{scaled:.1f} {unit}"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
