"""One cell of a table: is it missing, is it a number, and what is wrong with it if not."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from kons.streams.dates import NOT_A_TIME, stamp

__all__ = [
    "FALSE",
    "MISSING_NUMBERS",
    "MISSING_TEXTS",
    "TRUE",
    "BadCell",
    "converter",
    "is_date",
    "is_flag",
    "is_missing",
    "is_number_text",
    "is_real",
]

# Folded. A dash or the word "none" is a missing number, but may well be the name of a category.
MISSING_NUMBERS = frozenset({"", "#n/a", "-", "-nan", "?", "n/a", "na", "nan", "nil", "none", "null"})
MISSING_TEXTS = frozenset({"", "#n/a", "?", "n/a", "na", "nan", "null"})
TRUE, FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})


class BadCell(ValueError):  # noqa: N818  (never leaves this package)
    """A cell that is not what its column holds: ``reason`` and ``remedy`` for the message."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


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


def is_number_text(text: str, decimal: str = ".") -> bool:
    """Whether a text is written as a number, finite or not."""
    try:
        _float(text, decimal)
    except ValueError:
        return False
    return True


def converter(kind: str, *, decimal: str = ".", order: str = "year first") -> Callable[[Any], Any]:
    """The function from a cell of a column of this kind to a value, None if missing; may raise BadCell.

    A number or a flag becomes a float, a date microseconds since 1970, text stays text.
    """
    if kind == "number":
        return lambda cell: _number(cell, decimal)
    if kind == "flag":
        return _flag
    if kind == "date":
        return lambda cell: _date(cell, order)
    return _text


def _number(cell: Any, decimal: str) -> float | None:
    try:
        value = _float(cell, decimal) if isinstance(cell, str) else _real(cell)
    except ValueError:
        if isinstance(cell, str):
            if cell.strip().casefold() in MISSING_NUMBERS:
                return None
            other = "," if decimal == "." else "."
            if is_number_text(cell, other):
                raise BadCell("is not a number", f"write decimals with '{decimal}'") from None
        elif is_missing(cell):
            return None
        raise BadCell("is not a number", "correct it") from None
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    raise BadCell("is not finite", "correct it")


def _float(text: str, decimal: str) -> float:
    if decimal == ",":
        if "." in text:
            raise ValueError
        text = text.replace(",", ".", 1)
    if "_" in text:  # float() reads 1_2 as 12
        raise ValueError
    return float(text)


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
    if is_missing(cell):
        return None
    found = stamp(cell, order)
    if found is None or found == NOT_A_TIME:
        raise BadCell("is not a date", f"write it as in the first rows ({order})")
    return found
