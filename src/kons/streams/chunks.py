"""What a reader hands on: some rows, column by column, with the line each came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.errors import InputError, KonsError
from kons.streams.wording import shortened
from kons.tables.cells import BadCell, ColumnFormat, converter, numbers_of_gaps
from kons.tables.moments import EPOCHS, NOT_A_TIME, epoch_stamps, iso_stamps

__all__ = [
    "BadCells",
    "Chunk",
    "Fault",
    "OnBadRow",
    "Tally",
    "Texts",
    "bad_cell",
    "converted",
    "epochs",
    "from_cells",
    "settled",
    "sound",
    "sum_is_finite",
]

OnBadRow = Literal["gap", "skip", "error"]
EXAMPLES = 3


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

    def take(self, codes: NDArray[np.int64]) -> Texts:
        """Of places in this column, -1 for none, a column as long."""
        return Texts(np.append(self.codes, -1)[codes], self.values)


Values = NDArray[Any] | Texts
"""Float64 with NaN for a number or a flag, int64 with NOT_A_TIME for a date, Texts for text."""


class BadCells(NamedTuple):
    """Cells of a column that are not what it holds: how many, and (line, text) of the first three."""

    number: int
    examples: tuple[tuple[int, str], ...]


@dataclass
class Tally:
    """What is done about bad rows, which were skipped, by reason, and which cells were bad.

    Under ``"gap"`` a bad cell of a feature becomes a missing value, under ``"skip"`` its row is left out,
    under ``"error"`` it ends the rows. A bad cell of a ``required`` column (the target, the time) is an error
    under ``"gap"``, too; a row with a wrong number of fields is left out unless under ``"error"``, or, where
    ``every_row`` is wanted, under ``"gap"``: there it has gaps where nothing could be read.
    """

    on_bad_row: OnBadRow = "error"
    required: frozenset[str] = frozenset()
    counts: dict[str, int] = field(default_factory=dict)
    firsts: dict[str, str] = field(default_factory=dict)
    """The first complaint of each reason."""
    bad_cells: dict[str, BadCells] = field(default_factory=dict)
    every_row: bool = False
    broken: int = 0
    """Rows that could not be read as a whole, and were kept."""
    first_broken: str = ""
    disordered: int = 0
    """Rows that were earlier than the one before, and were kept."""
    first_disordered: str = ""

    @property
    def keeps_all(self) -> bool:
        """Whether every row is to be handed on, whatever is wrong with it."""
        return self.every_row and self.on_bad_row == "gap"

    def keeps_broken(self, problem: InputError) -> bool:
        """Whether a row that cannot be read as a whole is a row all the same; counts it, either way."""
        if self.keeps_all:
            self.broken += 1
            self.first_broken = self.first_broken or str(problem)
        else:
            self.add("bad row", 1, str(problem))
        return self.keeps_all

    def add(self, reason: str, count: int = 1, first: str = "") -> None:
        """Count some rows."""
        if count:
            self.counts[reason] = self.counts.get(reason, 0) + count
            if first:
                self.firsts.setdefault(reason, first)

    def wants_examples(self, column: str, more: int) -> bool:
        """Whether the text of a bad cell is needed, after so many more in this column."""
        return len(self.bad_cells.get(column, BadCells(0, ())).examples) + more < EXAMPLES or (
            not more and self.on_bad_row != "gap"
        )

    def add_cells(self, column: str, cells: Sequence[tuple[int, Any]]) -> None:
        """Count bad cells, each with its line, in order."""
        number, examples = self.bad_cells.get(column, BadCells(0, ()))
        more = tuple((line, shortened(cell)) for line, cell in cells[: EXAMPLES - len(examples)])
        self.bad_cells[column] = BadCells(number + len(cells), examples + more)


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


class Fault(NamedTuple):
    """A bad cell of a chunk."""

    row: int
    column: str
    cell: Any
    reason: str
    remedy: str


def bad_cell(where: str, column: str, cell: Any, reason: str, remedy: str) -> InputError:
    """The complaint about one cell: where, what was seen, what to do."""
    seen = repr(shortened(cell)) if isinstance(cell, str) else shortened(cell)
    return InputError(f"{where}, column {shortened(column)!r}: {seen} {reason}: {remedy}.")


def converted(cells: Sequence[Any], column: ColumnFormat) -> tuple[Values, dict[int, BadCell]]:
    """Cells as values, one by one; bad ones are missing values, and told by their place."""
    if column.kind == "date" and column.order == "year first" and not column.na_values:
        known = [cell for cell in cells if cell is not None and cell != ""]
        if (fast := iso_stamps(known)) is not None:
            stamps = np.full(len(cells), NOT_A_TIME, dtype=np.int64)
            stamps[[cell is not None and cell != "" for cell in cells]] = fast
            return stamps, {}
    convert = converter(column.kind, style=column.style, order=column.order, na_values=column.na_values)
    values: list[Any] = []
    bad: dict[int, BadCell] = {}
    for place, cell in enumerate(cells):
        try:
            values.append(convert(cell))
        except BadCell as problem:
            bad[place] = problem
            values.append(None)
    if column.kind == "text":
        return Texts.of(values), bad
    if column.kind == "date":
        return np.array([NOT_A_TIME if v is None else v for v in values], dtype=np.int64), bad
    return np.array(values, dtype=np.float64), bad  # None becomes NaN


def from_cells(
    lines: Sequence[int],
    cells: Mapping[str, Sequence[Any]],
    wanted: Sequence[ColumnFormat],
    *,
    where: Callable[[int], str],
    tally: Tally,
) -> Chunk:
    """Convert cell by cell: slow, and exact about what is wrong."""
    columns: dict[str, Values] = {}
    faults: list[Fault] = []
    for column in wanted:
        own = cells[column.name]
        columns[column.name], bad = converted(own, column)
        faults += [Fault(row, column.name, own[row], p.reason, p.remedy) for row, p in bad.items()]
    chunk = Chunk(np.array(lines, dtype=np.int64), columns, cell=lambda row, name: cells[name][row])
    return settled(chunk, faults, where, tally)


def settled(chunk: Chunk, faults: Sequence[Fault], where: Callable[[int], str], tally: Tally) -> Chunk:
    """What is left of a chunk whose bad cells are missing values already, by ``tally.on_bad_row``."""
    if not faults:
        return chunk
    fatal = [f for f in faults if tally.on_bad_row != "gap" or f.column in tally.required]
    end = len(chunk)
    first = min(fatal, key=lambda fault: fault.row) if fatal else None
    if first is not None:
        remedy = f"{first.remedy}, delete the row, drop the column, or skip bad rows (on_bad_row)"
        error = bad_cell(where(int(chunk.lines[first.row])), first.column, first.cell, first.reason, remedy)
        if tally.on_bad_row == "skip":
            keep = np.ones(len(chunk), dtype=bool)
            keep[[fault.row for fault in fatal]] = False
            tally.add("bad row", int(np.count_nonzero(~keep)), str(error))
        else:
            end = first.row
    found: dict[str, list[tuple[int, Any]]] = {}
    for fault in sorted(faults, key=lambda fault: fault.row):
        if fault.row < end:
            found.setdefault(fault.column, []).append((int(chunk.lines[fault.row]), fault.cell))
    for name, cells in found.items():
        tally.add_cells(name, cells)
    if first is None:
        return chunk
    if tally.on_bad_row == "skip":
        return chunk.chosen(keep)
    chunk = chunk.chosen(slice(0, end))
    chunk.error = error
    return chunk


def sound(chunk: Chunk, wanted: Sequence[ColumnFormat], where: Callable[[int], str], tally: Tally) -> Chunk:
    """Numbers that mean a gap as gaps, infinite ones as bad cells: what all readers leave to the end."""
    faults: list[Fault] = []
    for column in wanted:
        values: Any = chunk.columns[column.name]
        if column.kind not in ("number", "flag"):
            continue
        unknown = numbers_of_gaps(column.na_values)
        if unknown and (gaps := np.isin(values, unknown)).any():
            values = chunk.columns[column.name] = np.where(gaps, np.nan, values)
        if sum_is_finite(values):
            continue
        infinite = np.isinf(values)
        for more, row in enumerate(np.flatnonzero(infinite).tolist()):
            cell = values[row]
            if chunk.cell is not None and tally.wants_examples(column.name, more):
                cell = chunk.cell(row, column.name)
            faults.append(Fault(row, column.name, cell, "is not finite", "correct it"))
        chunk.columns[column.name] = np.where(infinite, np.nan, values)
    return settled(chunk, faults, where, tally)


def epochs(numbers: NDArray[Any], column: ColumnFormat) -> NDArray[np.int64] | None:
    """Moments of numbers, as the column's order says; None if it says another, or one of them is none."""
    if column.order not in EPOCHS and column.order != "yyyymmdd":
        return None
    values = np.asarray(numbers, dtype=np.float64)
    for unknown in numbers_of_gaps(column.na_values):
        values = np.where(values == unknown, np.nan, values)
    stamps = epoch_stamps(values, column.order)
    return stamps if bool((np.isnan(values) | (stamps != NOT_A_TIME)).all()) else None


def sum_is_finite(values: Any) -> bool:
    """True only if every value is finite; a sum that overflows is False too, which costs a closer look."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()))
