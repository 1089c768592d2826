"""Names of columns in messages: listed, shortened, and the one that was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["listed", "nearest", "shortened"]

MOST_COMPARED = 2000  # names; close matches among more take seconds


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names for a message: the first ones, and how many more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(shortened(name) for name in names[:most]) + more


def nearest(name: str, names: Sequence[str]) -> str:
    """How a message about a name that is not there ends: the nearest one, or the first of them all."""
    folded = {column.casefold(): column for column in names[:MOST_COMPARED]}
    near = get_close_matches(name.casefold(), folded, n=1) if len(name) <= 200 else []
    return f": did you mean {folded[near[0]]!r}?" if near else f"; its columns are {listed(names)}."


def shortened(text: object, most: int = 40) -> str:
    """At most ``most`` letters of a text that a message quotes, on one line."""
    line = " ".join(str(text)[: 4 * most].split("\n"))
    return line if len(line) <= most else line[: most - 3] + "..."
