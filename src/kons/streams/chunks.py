"""What a reader hands on: some rows, column by column, with the line each came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.errors import InputError, KonsError
from kons.streams.cells import BadCell, converter
from kons.streams.dates import NOT_A_TIME
from kons.streams.plan import Column
from kons.streams.wording import shortened

__all__ = ["Chunk", "Tally", "Texts", "bad_cell", "from_cells"]


class Texts(NamedTuple):
    """A column of text: for each row the place of its value in ``values``, -1 if missing."""

    codes: NDArray[np.int64]
    values: Sequence[str]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Texts:
        """Factorise texts, in order of first appearance."""
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(np.array(codes, dtype=np.int64), list(places))


Values = NDArray[Any] | Texts
"""Float64 with NaN for a number or a flag, int64 with NOT_A_TIME for a date, Texts for text."""


@dataclass
class Tally:
    """Rows that were skipped, by reason, and the first complaint of each."""

    counts: dict[str, int] = field(default_factory=dict)
    firsts: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1, first: str = "") -> None:
        """Count some rows."""
        if count:
            self.counts[reason] = self.counts.get(reason, 0) + count
            if first:
                self.firsts.setdefault(reason, first)


@dataclass
class Chunk:
    """Rows of a source; if ``error`` is set, it is to be raised once they are used up."""

    lines: NDArray[np.int64]
    columns: dict[str, Values]
    error: KonsError | None = None
    cell: Callable[[int, str], Any] | None = None
    """The original cell (row of this chunk, column), for messages."""

    def __len__(self) -> int:
        return len(self.lines)

    def chosen(self, rows: Any) -> Chunk:
        """Some of the rows, by mask, index or slice."""
        columns: dict[str, Values] = {
            name: Texts(values.codes[rows], values.values) if isinstance(values, Texts) else values[rows]
            for name, values in self.columns.items()
        }
        numbers = np.arange(len(self))[rows]
        original = self.cell
        cell = None if original is None else (lambda row, name: original(int(numbers[row]), name))
        return Chunk(self.lines[rows], columns, self.error, cell)


def bad_cell(where: str, column: str, cell: Any, reason: str, remedy: str) -> InputError:
    """The complaint about one cell: where, what was seen, what to do."""
    seen = repr(shortened(cell)) if isinstance(cell, str) else shortened(cell)
    return InputError(f"{where}, column {shortened(column)!r}: {seen} {reason}: {remedy}.")


def from_cells(
    lines: Sequence[int],
    cells: Mapping[str, Sequence[Any]],
    wanted: Sequence[Column],
    *,
    where: Callable[[int], str],
    tally: Tally | None,
    decimal: str = ".",
) -> Chunk:
    """Convert cell by cell: slow, and exact about what is wrong.

    With a ``tally`` rows with a bad cell are left out and counted; without, the chunk ends before the
    first of them and carries the error.
    """
    values: dict[str, list[Any]] = {}
    bad: dict[int, InputError] = {}
    for column in wanted:
        convert = converter(column.kind, decimal=decimal, order=column.order)
        out: list[Any] = []
        for row, cell in enumerate(cells[column.name]):
            try:
                out.append(convert(cell))
            except BadCell as problem:
                out.append(None)
                remedy = f"{problem.remedy}, delete the row, drop the column, or skip bad rows (on_bad_row)"
                if row not in bad:
                    bad[row] = bad_cell(where(lines[row]), column.name, cell, problem.reason, remedy)
        values[column.name] = out
    columns: dict[str, Values] = {}
    for column in wanted:
        out = values[column.name]
        if column.kind == "text":
            columns[column.name] = Texts.of(out)
        elif column.kind == "date":
            columns[column.name] = np.array([NOT_A_TIME if v is None else v for v in out], dtype=np.int64)
        else:
            columns[column.name] = np.array(out, dtype=np.float64)  # None becomes NaN
    chunk = Chunk(np.array(lines, dtype=np.int64), columns, cell=lambda row, name: cells[name][row])
    if not bad:
        return chunk
    if tally is None:
        first = min(bad)
        chunk = chunk.chosen(slice(0, first))
        chunk.error = bad[first]
        return chunk
    tally.add("bad row", len(bad), str(bad[min(bad)]))
    keep = np.ones(len(chunk), dtype=bool)
    keep[list(bad)] = False
    return chunk.chosen(keep)
