"""What every source of rows is to the rest: names, a first look, and chunks from the start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from kons.errors import InputError
from kons.streams.chunks import Chunk, Tally, sound
from kons.streams.wording import listed
from kons.tables.cells import ColumnFormat

__all__ = ["MOST_COLUMNS", "Reader", "distinct_names", "require_width"]

#: Of a file: rows become dense, a learner keeps some thousand of them, and a small file may ask for more.
MOST_COLUMNS = 20_000


def require_width(name: str, columns: int) -> None:
    """Refuse a file with more columns than rows of numbers should have."""
    if columns > MOST_COLUMNS:
        raise InputError(
            f"{name} has {columns:,} columns, at most {MOST_COLUMNS:,} can be read: select some first."
        )


class Reader(ABC):
    """An opened source. ``chunks`` may be called again unless ``resumable`` is False."""

    name: str
    """For people: a file's path, or what the object is."""
    columns: Sequence[str]
    """The names of all columns, in order, each once."""
    notes: Sequence[str] = ()
    """What was chosen in opening it, in words."""
    unit = "row"
    """What its rows are counted in: lines of a file, or rows."""
    named = True
    """Whether its columns have names of their own: those of an array have none, and are numbers."""
    typed = True
    """Whether texts are texts even where they are whole numbers."""
    resumable = True
    delimiter = ","
    early: bool = False
    """Whether a pipe paused when it was looked at, so that there were fewer rows than asked for."""
    implied_target: str | None = None
    """The target, where the source itself says which column it is."""
    categories: Sequence[str] = ()
    """Columns that the source itself declares to be text."""
    odd_text: str = ""
    """Of bytes that are no text in its encoding, which line has the first, and what became of it."""
    bytes_total: int | None = None
    bytes_done: int = 0

    @abstractmethod
    def look(self, rows: int) -> dict[str, list[Any]]:
        """The first cells of every column, as they stand."""

    def chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        """All rows, the wanted columns only; what becomes of bad ones, the tally says and counts."""
        with closing(self.raw_chunks(wanted, tally)) as parts:
            for chunk in parts:
                yield sound(chunk, wanted, self.where, tally)

    @abstractmethod
    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        """The same, in which numbers may be infinite."""

    @property
    def total_rows(self) -> int | None:
        """How many rows there are, as far as it is known or can be estimated without reading them."""
        return None

    def fingerprint(self) -> dict[str, Any] | None:
        """What tells this source from another or a changed one; None if it cannot be read again."""
        return None

    def where(self, line: int) -> str:
        """How a message names a row."""
        return f"{self.name}, {self.unit} {line:,}" if self.unit == "row" else f"{self.name}, line {line}"


def distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names as columns have them, none empty, none twice; and a note about those that were changed.

    >>> distinct_names(["a", " b", "a", "", "a"])
    (['a', 'b', 'a.1', 'column 4', 'a.2'], ['columns of the same name, renamed: a.1, a.2'])
    """
    columns = [str(name).strip() or f"column {i}" for i, name in enumerate(names, start=1)]
    taken = set(columns)
    if len(taken) == len(columns):
        return columns, []
    counts: dict[str, int] = {}
    renamed = []
    for i, name in enumerate(columns):
        if name not in counts:
            counts[name] = 0
            continue
        while (other := f"{name}.{counts[name] + 1}") in taken:
            counts[name] += 1
        taken.add(other)
        columns[i] = other
        renamed.append(other)
    return columns, [f"columns of the same name, renamed: {listed(renamed)}"]
