"""Cells of a source as they stand in it: names of rows, targets that may be empty, whole rows for people.

A second pass beside the stream, over the columns that are asked for: a source that can be read only once
cannot give them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError
from kons.streams import Stream
from kons.streams.chunks import Chunk, Tally, Texts
from kons.streams.plan import Column

__all__ = ["RawCells", "rows_at"]


class RawCells:
    """The cells of a column, as text, for the rows of a stream as it hands them on; None where empty."""

    def __init__(self, stream: Stream, name: str) -> None:
        reader = stream.reader
        if not reader.resumable:
            raise ConfigurationError(
                f"{stream.source} can be read only once, and cells need a second look: give a file."
            )
        if name not in reader.columns:
            raise ConfigurationError(f"{stream.source} has no column {name!r}, asked for by --id.")
        self.name = name
        self._cells = (
            cell
            for chunk in _chunks(stream, [name])
            for cell in zip(chunk.lines.tolist(), _texts(chunk.columns[name]), strict=True)
        )

    def of(self, lines: NDArray[np.int64]) -> list[Any]:
        """The cells of the rows of the next block, by the lines they came from."""
        return [next((cell for at, cell in self._cells if at == line), None) for line in lines.tolist()]


def rows_at(stream: Stream, lines: Sequence[int]) -> dict[int, dict[str, str]]:
    """All cells of these lines, by line and column. Costs a pass over the source up to the last of them."""
    reader, wanted = stream.reader, set(lines)
    names = list(reader.columns)
    found: dict[int, dict[str, str]] = {}
    if not reader.resumable or not wanted:
        return found
    chunks = _chunks(stream, names)
    for chunk in chunks:
        for row in np.flatnonzero(np.isin(chunk.lines, lines)).tolist():
            cells = {name: _texts(chunk.columns[name], row) for name in names}
            found[int(chunk.lines[row])] = {name: text or "" for name, text in cells.items()}
        if len(found) == len(wanted):
            break
    return found


def _chunks(stream: Stream, names: Sequence[str]) -> Iterator[Chunk]:
    wanted = [Column(name, "text") for name in names]
    return iter(stream.reader.chunks(wanted, Tally("gap", every_row=True)))


def _texts(values: Any, row: int | None = None) -> Any:
    assert isinstance(values, Texts)
    known = [*values.values, None]  # -1, the code of nothing, is the last
    return [known[code] for code in values.codes.tolist()] if row is None else known[int(values.codes[row])]
