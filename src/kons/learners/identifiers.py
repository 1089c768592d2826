"""Rows by identifier: which wait for their targets, and what was told of late."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from kons.arrays import require_integer
from kons.errors import InputError

__all__ = ["LARGEST", "MOST", "Identifier", "Identifiers", "as_identifier"]

Identifier = int | str

# Rows that wait, and identifiers told last, at most: some hours of a row a second.
MOST = 10_000
# An identifier of 256 bits is as long as any digest, and every file can hold it.
LARGEST = 2**256


class Identifiers:
    """Of rows that wait, oldest first, and of targets that were told: at most :attr:`most` of both."""

    dropped: int
    """How many rows had to make room for others, and were never learned."""
    repeated: int
    """How many targets were told again, the same ones."""

    def __init__(self) -> None:
        self._most = MOST
        self.dropped = self.repeated = 0
        self._rows: OrderedDict[Identifier, Any] = OrderedDict()
        self._told: OrderedDict[Identifier, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, id: object) -> bool:
        return id in self._rows

    @property
    def pending(self) -> int:
        """How many rows wait."""
        return len(self._rows)

    @property
    def ids(self) -> list[Identifier]:
        """Of the rows that wait, oldest first."""
        return list(self._rows)

    @property
    def most(self) -> int:
        """So many rows wait at most, then the oldest makes room; so many identifiers told are remembered."""
        return self._most

    @most.setter
    def most(self, value: int) -> None:
        self._most = require_integer(value, "most", at_least=1)
        self._forget_oldest_told()

    def _forget_oldest_told(self) -> None:
        while len(self._told) > self._most:
            self._told.popitem(last=False)

    def _told_already(self, id: Identifier) -> InputError:
        return InputError(
            f"id {id!r} was told already: a row is asked before its target comes, under an id of its own."
        )


def as_identifier(id: Any) -> Identifier:
    """Text or an integer, as plain Python's."""
    if type(id) is int and -LARGEST < id < LARGEST:
        return id
    if isinstance(id, str):
        return str(id)
    if isinstance(id, np.integer):
        return int(id)
    raise InputError(f"id is {id!r} ({type(id).__name__}), expected text, or an integer of at most 256 bits.")
