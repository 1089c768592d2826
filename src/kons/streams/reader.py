"""What every source of rows is to the rest: names, a first look, and chunks from the start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any

from kons.streams.chunks import Chunk, Tally
from kons.streams.plan import Column

__all__ = ["Reader"]


class Reader(ABC):
    """An opened source. ``chunks`` may be called again unless ``resumable`` is False."""

    name: str
    """For people: a file's path, or what the object is."""
    columns: Sequence[str]
    """The names of all columns, in order."""
    unit = "row"
    """What its rows are counted in: lines of a file, or rows."""
    typed = True
    """Whether texts are texts even where they look like numbers."""
    resumable = True
    delimiter = ","
    implied_target: str | None = None
    """The target, where the source itself says which column it is."""
    categories: Sequence[str] = ()
    """Columns that the source itself declares to be text."""
    bytes_total: int | None = None
    bytes_done: int = 0

    @abstractmethod
    def look(self, rows: int) -> dict[str, list[Any]]:
        """The first cells of every column, as they stand."""

    @abstractmethod
    def chunks(
        self, wanted: Sequence[Column], tally: Tally | None, decimal: str
    ) -> Generator[Chunk, None, None]:
        """All rows, the wanted columns only. With a tally bad rows are counted and left out."""

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
