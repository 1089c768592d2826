"""Numbers for people: rounded to what they mean, never more digits than a reader can use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = [
    "column",
    "compact",
    "count",
    "duration",
    "log_ticks",
    "number",
    "percent",
    "plural",
    "tick_labels",
    "ticks",
]

UNKNOWN = "unknown"
PERCENT = "\N{NO-BREAK SPACE}%"  # a number and its sign stay on one line
WORDS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
COMPACT = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


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


def compact(value: float) -> str:
    """For a table or a mark in a picture: short, with k, M, G, T.

    >>> compact(1500), compact(2_000_000), compact(0.25), compact(0)
    ('1.5k', '2M', '0.25', '0')
    """
    for unit, letter in COMPACT:
        if unit <= abs(value) < 1e15:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two ends, at most ``most`` + 1 of them.

    >>> ticks(0, 930), ticks(-1.2, 1.1)
    ([0.0, 200.0, 400.0, 600.0, 800.0], [-1.0, -0.5, 0.0, 0.5, 1.0])
    """
    span = high - low
    if not (math.isfinite(span) and span > 0.0):
        return [low]
    unit = 10.0 ** math.floor(math.log10(span / most))
    step = next(unit * factor for factor in (1.0, 2.0, 5.0, 10.0) if unit * factor >= span / most * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)] or [low]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten between two positive ends, with 2 and 5 between them where there are few.

    >>> log_ticks(0.5, 30), log_ticks(1e-3, 1e3, most=4)
    ([0.5, 1.0, 2.0, 5.0, 10.0, 20.0], [0.001, 0.1, 10.0, 1000.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [float(f"{f:g}e{e}") for e in range(first, last + 1) for f in factors]
        found = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(found) <= most:
            return found
    return found[:: -(-len(found) // most)]


def tick_labels(values: list[float]) -> list[str]:
    """What stands at the marks of an axis: all in one unit, with the digits that tell them apart.

    >>> tick_labels([0.0, 0.5, 1.0]), tick_labels([1_000_000, 1_500_000]), tick_labels([0.01, 1, 100])
    (['0', '0.5', '1.0'], ['1.0M', '1.5M'], ['0.01', '1', '100'])
    """
    size = max(map(abs, values), default=0.0)
    steps = [abs(b - a) for a, b in pairwise(values) if a != b]
    even = len(steps) < 2 or max(steps) <= 1.001 * min(steps)
    if not even:
        return [compact(value).replace("-", "\N{MINUS SIGN}") for value in values]
    unit, letter = next(((u, name) for u, name in COMPACT if u <= size and size >= 1e5), (1.0, ""))
    step = min(steps, default=size) / unit
    if size >= 1e15 or 0.0 < step < 1e-5:
        return [compact(value).replace("-", "\N{MINUS SIGN}") for value in values]
    decimals = 0 if step == 0 else max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += not math.isclose(step, round(step, decimals), rel_tol=1e-6)
    return [
        "0" if value == 0 else f"{value / unit:,.{decimals}f}{letter}".replace("-", "\N{MINUS SIGN}")
        for value in values
    ]
