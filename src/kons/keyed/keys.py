"""The key of a row, and rows by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kons.errors import InputError
from kons.keyed.pages import Key
from kons.tables import records_of

__all__ = ["as_key", "grouped", "split"]


def split(x: Any, column: str | int) -> tuple[Key, dict[str, Any]]:
    """The key of a row, and the row without it.

    >>> split({"sensor": "s1", "load": 2.0}, "sensor")
    ('s1', {'load': 2.0})
    """
    if not isinstance(x, Mapping):
        raise InputError(f"x is a {type(x).__name__}, expected a dict: column -> value.")
    row = dict(x)
    return as_key(row.pop(column, None), column), row


def grouped(X: Any, column: str | int) -> tuple[list[dict[str, Any]], dict[Key, list[int]]]:
    """Rows without their key, and where those of each key are."""
    given = X if isinstance(X, (list, tuple)) else records_of(X).dicts()
    rows: list[dict[str, Any]] = []
    groups: dict[Key, list[int]] = {}
    for i, x in enumerate(given):
        if not isinstance(x, Mapping):
            raise InputError(f"X[{i}] is a {type(x).__name__}, expected a dict: column -> value.")
        row = dict(x)
        groups.setdefault(as_key(row.pop(column, None), column, f"row {i} of X: "), []).append(i)
        rows.append(row)
    return rows, groups


def as_key(value: Any, column: str | int, where: str = "") -> Key:
    """Text or a whole number; ``where`` it stands, for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) in (str, int) and value != "":
        key: Key = value
        return key
    seen = "no value" if value is None or value != value or value == "" else f"{value!r}"
    raise InputError(
        f"{where}the key {column!r} has {seen}, expected text or a whole number in every row: "
        "leave rows without a key out, or give them one."
    )
