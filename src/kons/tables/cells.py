"""One cell of a table: is it missing, is it a number, and what is wrong with it if not."""

from __future__ import annotations

import datetime
import math
import numbers
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from kons.tables.moments import NOT_A_TIME, stamp

__all__ = [
    "FALSE",
    "MISSING_NUMBERS",
    "MISSING_TEXTS",
    "PLAIN",
    "STYLES",
    "TRUE",
    "BadCell",
    "ColumnFormat",
    "Kind",
    "NumberStyle",
    "converter",
    "is_date",
    "is_flag",
    "is_missing",
    "is_number_text",
    "is_real",
    "number_style",
    "numbers_of_gaps",
    "said_missing",
]

Kind = Literal["number", "flag", "date", "text"]

# Folded. A dash or the word "none" is a missing number or date, but may well be the name of a category.
MISSING_NUMBERS = frozenset({"", "#n/a", "-", "-nan", "?", "n/a", "na", "nan", "nil", "none", "null"})
MISSING_TEXTS = frozenset({"", "#n/a", "?", "n/a", "na", "nan", "null"})
TRUE, FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})


class BadCell(ValueError):  # noqa: N818  (never leaves this package)
    """A cell that is not what its column holds: ``reason`` and ``remedy`` for the message."""

    reason: str
    remedy: str

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    ``signs``: with currencies (before or behind), percent signs, or parentheses around what is negative. They
    are left away: "12.3 %" is 12.3 and "$5" is 5. The unit does not matter to a learner, that a column has
    only one does.
    """

    decimal: str = "."
    thousands: str = ""
    """Comma, point, space (of any width) or apostrophe between groups of digits; or nothing."""
    signs: bool = False


PLAIN = NumberStyle()


@dataclass(frozen=True)
class ColumnFormat:
    """A column of a source and how its cells are read."""

    name: str
    kind: Kind
    order: str = "year first"
    """How its dates are written."""
    style: NumberStyle = PLAIN
    """How its numbers are written."""
    na_values: tuple[str, ...] = ()
    """Texts that mean a gap, beside the usual ones; those that are numbers mean all that are equal."""


# ---- kinds of cells


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT or pandas's NA; of a text, see :data:`MISSING_TEXTS`."""
    if cell is None:
        return True
    if isinstance(cell, str):
        return len(cell) < 8 and cell.strip().casefold() in MISSING_TEXTS
    if isinstance(cell, (float, np.floating)):
        return math.isnan(cell)
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    return type(cell).__name__ in ("NAType", "NaTType")


def is_flag(cell: Any) -> bool:
    """True or False themselves."""
    return isinstance(cell, (bool, np.bool_))


def is_real(cell: Any) -> bool:
    """Any real number that is not a flag."""
    return isinstance(cell, (numbers.Real, Decimal)) and not is_flag(cell)


def is_date(cell: Any) -> bool:
    """A date or a moment."""
    return isinstance(cell, (datetime.date, np.datetime64))


def is_number_text(text: str, style: NumberStyle = PLAIN) -> bool:
    """Whether a text is written as a number, finite or not."""
    try:
        _float(text, style)
    except ValueError:
        return False
    return True


# ---- numbers as people write them

LONGEST_NUMBER = 64  # letters; no longer ones but plain
CURRENCY = r"(?:[A-Z]{0,3}[$\u00a2-\u00a5\u0e3f\u20a0-\u20cf]|USD|EUR|GBP|JPY|CHF|CNY|INR|kr|zł)"
WITH_SIGNS = re.compile(
    rf"(\()? ?([-+])? ?{CURRENCY}? ?([-+])?(\d[\d.,' ]*(?:e[-+]?\d+)?|[.,]\d+) ?(?:{CURRENCY}|%)?(?(1) ?\))",
    re.I,
)
ODD_SIGNS = str.maketrans("\u00a0\u2007\u2009\u202f\u2019\u02bc\u2212", "    ''-")
STYLES = tuple(
    NumberStyle(decimal, thousands, signs)
    for decimal, thousands in [
        (".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"),
    ]
    for signs in (False, True)
)  # fmt: skip


def number_style(cells: Iterable[Any], *, decimal: str | None = None) -> NumberStyle | None:
    """The style in which most of the cells are numbers; None if that is less than half of those not missing.

    All cells decide together: "1,234" is 1234 beside "2,500", and 1.234 beside "1,5". Where several styles
    fit as many, ``decimal`` (what other columns of the file show) decides, then the plainest.

    >>> number_style(["1,234", "7"]), number_style(["1,234", "1,5"]).decimal, number_style(["a", "b", "3"])
    (NumberStyle(decimal='.', thousands=',', signs=False), ',', None)
    """
    present = [cell for cell in cells if not is_missing(cell)]
    texts = [cell for cell in present if isinstance(cell, str)]
    known = 0 if len(texts) == len(present) else sum(is_real(cell) or is_flag(cell) for cell in present)
    plain = sum(is_number_text(text) for text in texts)
    if plain == len(texts):
        style = PLAIN if decimal is None or any("." in text for text in texts) else NumberStyle(decimal)
        return style if 2 * (known + plain) >= len(present) and present else None
    # Most texts are no numbers in any style, and are not tried in each.
    likely = [text for text in texts if len(text) <= LONGEST_NUMBER and WITH_SIGNS.fullmatch(_usual(text))]
    best, most = PLAIN, plain
    if len(likely) > plain or decimal == ",":
        for style in sorted(STYLES[1:], key=lambda style: style.decimal != (decimal or style.decimal)):
            fits = sum(is_number_text(text, style) for text in likely)
            if fits > most or (fits == most and decimal == style.decimal != best.decimal):
                best, most = style, fits
            if most == len(likely):
                break
    return best if 2 * (known + most) >= len(present) else None


def _float(text: str, style: NumberStyle) -> float:
    """The value of a text, or ValueError."""
    if style == PLAIN:
        if "_" in text:  # float() reads 1_2 as 12
            raise ValueError
        return float(text)
    if len(text) > LONGEST_NUMBER:
        raise ValueError
    text, sign = _usual(text), 1.0
    if style.signs and (match := WITH_SIGNS.fullmatch(text)):
        if match[2] and match[3]:
            raise ValueError
        sign = -1.0 if (match[1] or "-" in (match[2], match[3])) else 1.0
        text = match[4].strip()
    if _pattern(style).fullmatch(text):
        text = text.replace(style.thousands, "") if style.thousands else text
        return sign * float(text.replace(style.decimal, "."))
    if text.casefold().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(text)
    raise ValueError


def _usual(text: str) -> str:
    return text.strip().translate(ODD_SIGNS)


@lru_cache(maxsize=len(STYLES))
def _pattern(style: NumberStyle) -> re.Pattern[str]:
    point, between = re.escape(style.decimal), re.escape(style.thousands)
    whole = r"\d+"
    if style.thousands:
        # Groups of three; with commas of two as well, but the last (1,23,456).
        inner = r"\d{2,3}" if style.thousands == "," else r"\d{3}"
        whole = rf"(?:[1-9]\d{{0,2}}(?:{between}{inner})*{between}\d{{3}}|\d+)"
    return re.compile(rf"[-+]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?", re.ASCII)


# ---- conversion


@lru_cache(maxsize=64)
def numbers_of_gaps(na_values: tuple[str, ...]) -> tuple[float, ...]:
    """Those of the texts that are numbers."""
    return tuple(float(text) for text in na_values if is_number_text(text))


def converter(
    kind: str, *, style: NumberStyle = PLAIN, order: str = "year first", na_values: Sequence[str] = ()
) -> Callable[[Any], Any]:
    """The function from a cell of a column of this kind to a value, None if missing; may raise BadCell.

    A number or a flag becomes a float, a date microseconds since 1970, text stays text.
    """
    convert: Callable[[Any], Any] = {
        "number": lambda cell: _number(cell, style),
        "flag": _flag,
        "date": lambda cell: _date(cell, order),
    }.get(kind, _text)
    if not na_values:
        return convert
    unknown, is_said = numbers_of_gaps(tuple(na_values)), said_missing(na_values)

    def with_gaps(cell: Any) -> Any:
        if is_said(cell):
            return None
        value = convert(cell)
        return None if kind == "number" and value in unknown else value

    return with_gaps


def said_missing(na_values: Sequence[str]) -> Callable[[Any], bool]:
    """Whether a cell is one of the texts that mean a gap, or a number that is equal to one of them.

    >>> list(map(said_missing(["-999", "unknown"]), ["Unknown", "-999.0", -999, "999"]))
    [True, True, True, False]
    """
    folded = {text.strip().casefold() for text in na_values}
    unknown = numbers_of_gaps(tuple(na_values))

    def is_said(cell: Any) -> bool:
        if isinstance(cell, str):
            return cell.strip().casefold() in folded or (
                bool(unknown) and is_number_text(cell) and float(cell) in unknown
            )
        return is_real(cell) and cell in unknown

    return is_said


def _number(cell: Any, style: NumberStyle) -> float | None:
    try:
        value = _float(cell, style) if isinstance(cell, str) else _real(cell)
    except ValueError:
        if isinstance(cell, str):
            if cell.strip().casefold() in MISSING_NUMBERS:
                return None
            if is_number_text(cell, NumberStyle("," if style.decimal == "." else ".")):
                raise BadCell("is not a number", f"write decimals with '{style.decimal}'") from None
        elif is_missing(cell):
            return None
        raise BadCell("is not a number", "correct it") from None
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    raise BadCell("is not finite", "correct it")


def _real(cell: Any) -> float:
    if not isinstance(cell, (numbers.Real, Decimal, np.bool_)):
        raise ValueError
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def _flag(cell: Any) -> float | None:
    if isinstance(cell, str):
        folded = cell.strip().casefold()
        if folded in TRUE or folded in FALSE:
            return float(folded in TRUE)
        if folded in MISSING_NUMBERS:
            return None
    elif is_missing(cell):
        return None
    elif is_flag(cell) or (is_real(cell) and cell in (0, 1)):
        return float(cell)
    raise BadCell("is neither true nor false", "correct it")


def _text(cell: Any) -> str | None:
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return cell.strip()
    if is_flag(cell) or is_real(cell) or is_date(cell):
        return str(cell)
    raise BadCell("is not text", "correct it")


def _date(cell: Any, order: str) -> int | None:
    if is_missing(cell) or (isinstance(cell, str) and cell.strip().casefold() in MISSING_NUMBERS):
        return None
    found = stamp(cell, order)
    if found is None or found == NOT_A_TIME:
        raise BadCell("is not a date", f"write it as in the first rows ({order})")
    return found
