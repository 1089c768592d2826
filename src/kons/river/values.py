"""What a single value of a dict is: a number, text, or nothing."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np

from kons.errors import InputError, notice

__all__ = ["as_kept", "as_number", "as_text", "as_value"]

# What other libraries write for a value that is not there, by name: neither has to be imported.
_ABSENT = ("NAType", "NaTType", "MaskedConstant")


def as_value(value: Any, name: Any) -> float | str | None:
    """The value of a feature: a finite number, or text; None where there is none.

    >>> as_value(True, "open"), as_value("red", "colour"), as_value(float("nan"), "size")
    (1.0, 'red', None)
    """
    kind = type(value)
    if value is None or kind is str:
        return value  # type: ignore[no-any-return]
    if kind is not float:
        if isinstance(value, (str, bytes)):
            return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        if kind.__name__ in _ABSENT:
            return None
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return as_value(value.item(), name)
        if not isinstance(value, (numbers.Real, Decimal, np.bool_)):
            raise InputError(
                f"the feature {name!r} is {value!r} ({kind.__name__}), expected a number, a boolean or text: "
                "turn it into these first (dates: kons.encoding.date_parts), or leave it out."
            )
        try:
            value = float(value)
        except (OverflowError, ValueError):
            raise InputError(
                f"the feature {name!r} is {value!r}, expected a number within the range of floats."
            ) from None
    if math.isinf(value):
        raise InputError(
            f"the feature {name!r} is {value}, expected a finite number: drop the value, or clip it."
        )
    return None if value != value else value


def as_kept(value: Any, name: Any) -> float | int | str | None:
    """The value of a feature as plain Python's, to be read later; whole numbers stay such, for text.

    >>> as_kept(3, "floor"), as_kept(np.float32(0.5), "size"), as_kept(float("nan"), "size")
    (3, 0.5, None)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    found = as_value(plain, name)
    return plain if isinstance(plain, int) else found


def as_number(value: Any, name: Any) -> float | None:
    """The value of a feature that has been a number so far; text that is none counts as missing."""
    found = as_value(value, name)
    if not isinstance(found, str):
        return found
    notice(
        "river text among numbers",
        f"the feature {name!r} is the text {found!r}, and has been a number so far: text that reads as a "
        "number is taken as one, other text as missing. Told once.",
    )
    try:
        number = float(found)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_text(value: Any, name: Any) -> str | None:
    """The value of a feature that has been text so far; a number counts as what it looks like."""
    found = as_value(value, name)
    if not isinstance(found, float):
        return found
    notice(
        "river number among text",
        f"the feature {name!r} is the number {value!r}, and has been text so far: it is taken as the text "
        f"{str(value)!r}. Told once.",
    )
    return str(value)
