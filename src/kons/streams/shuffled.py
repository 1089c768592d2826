"""Rows of a file in an order that a seed decides: uniform over all orders, by an index of 8 bytes a row.

::

    order     uint32   which record comes first, second, ...          numpy.random.default_rng(seed).shuffle
    starts    uint32   where a record begins, from the base of its group of 256 records
    bases     int64    of each group: where it begins, and on which line

One pass over the file makes the index; then every record is read at its place. A file that is packed, or not
UTF-8, is unpacked into a temporary file by that pass; Parquet is stored there, too, as Arrow has it in
memory.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Generator, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, InputError
from kons.streams.arrow import cells_of
from kons.streams.bytes import pieces
from kons.streams.chunks import Chunk, Tally
from kons.streams.delimited import DelimitedReader, Layout
from kons.streams.parquet import ParquetReader
from kons.streams.reader import Reader
from kons.streams.text import TextReader, arrow
from kons.tables.cells import ColumnFormat

__all__ = ["shuffled"]

ROWS = 4096  # of a chunk
GROUP = 256
MOST = 2**32 - 1
NEWLINE, RETURN = 10, 13


def shuffled(reader: Reader, seed: int) -> Reader:
    """The same rows in another order; refused where a source can only be read from its start."""
    if not reader.resumable:
        raise ConfigurationError(
            f"{reader.name} can be read only once, and rows can only be shuffled when all are there: "
            "save them in a file, or leave --shuffle out."
        )
    if isinstance(reader, ParquetReader):
        return _ShuffledParquet(reader, seed)
    if isinstance(reader, TextReader):
        return _ShuffledText(reader, seed)
    raise ConfigurationError(f"{reader.name} cannot be shuffled here: shuffle it before it is opened.")


class _Shuffled(Reader):
    """What does not depend on the format."""

    def __init__(self, reader: Reader, seed: int) -> None:
        self._inner, self._seed = reader, seed
        self.name, self.unit, self.typed = reader.name, reader.unit, reader.typed
        self.columns, self.delimiter = reader.columns, reader.delimiter
        self.implied_target, self.categories = reader.implied_target, reader.categories
        self._order: NDArray[np.uint32] | None = None

    @property
    def order(self) -> NDArray[np.uint32]:
        """Numbers of rows, from 0; the first use costs a pass over the source."""
        if self._order is None:
            rows = self._index()
            if rows > MOST:
                raise ConfigurationError(
                    f"{self.name} has {rows:,} rows, more than can be shuffled ({MOST:,})."
                )
            self._order = np.arange(rows, dtype=np.uint32)
            np.random.default_rng(self._seed).shuffle(self._order)
        return self._order

    def _index(self) -> int:
        """Prepare to read rows by their number; how many there are."""
        raise NotImplementedError

    @property
    def total_rows(self) -> int:
        return len(self.order)

    def fingerprint(self) -> dict[str, Any] | None:
        return self._inner.fingerprint()

    def where(self, line: int) -> str:
        return self._inner.where(line)

    def _batches(self, size: int = ROWS) -> Iterator[NDArray[np.uint32]]:
        return (self.order[i : i + size] for i in range(0, len(self.order), size))


class _ShuffledText(_Shuffled):
    """Records of a text file at their places."""

    _inner: TextReader

    def look(self, rows: int) -> dict[str, list[Any]]:
        self._inner.look(1)
        table: list[list[Any]] = []
        for batch in self._batches(min(rows, ROWS)):
            for text, line in self._texts(batch):
                records = self._inner._records(self._readable(text, line), line)
                table += [r.cells for r in records if r.problem is None]
            if len(table) >= rows:
                break
        if not table:
            return self._inner.look(rows)  # which says what is wrong
        return {name: [row[i] for row in table[:rows]] for i, name in enumerate(self.columns)}

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        for batch in self._batches():
            found: list[tuple[bytes, int]] = []
            error = None
            for data, line in self._texts(batch):
                error = self._inner._up_to_odd(data, line)[1] if tally.on_bad_row == "error" else None
                if error is not None:
                    break
                found.append((self._readable(data, line), line))
            yield from self._chunks_of(found, wanted, tally)
            if error is not None:
                raise error

    def _chunks_of(
        self, found: list[tuple[bytes, int]], wanted: Sequence[ColumnFormat], tally: Tally
    ) -> Iterator[Chunk]:
        strict = Tally("error", tally.required)
        chunk = self._inner._at_once(b"".join(text for text, _ in found), 0, wanted, strict)
        if chunk is None or chunk.error is not None:  # one by one each message has its own line
            for text, line in found:
                yield self._inner._one_by_one(text, line, wanted, tally)
            return
        first = np.cumsum([0, *(text.count(b"\n") for text, _ in found)])
        record = np.searchsorted(first, chunk.lines, side="right") - 1
        lines = np.array([line for _, line in found], dtype=np.int64)
        chunk.lines = lines[record] + chunk.lines - first[record]
        chunk.cell = self._cell_of(found, record)
        yield chunk

    def _cell_of(self, found: list[tuple[bytes, int]], record: NDArray[np.int64]) -> Any:
        def cell(row: int, name: str) -> Any:
            text, line = found[int(record[row])]
            cells = next(r.cells for r in self._inner._records(text, line) if r.problem is None)
            return cells[list(self.columns).index(name)]

        return cell

    # ---- the index

    def _index(self) -> int:
        inner = self._inner
        feed = inner._begin()
        copy: BinaryIO | None = None
        if feed.is_packed or feed._decoder is not None:
            copy = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the reader
        groups: list[tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]]] = []
        waiting = np.empty((2, 0), dtype=np.int64)  # places and lines of a group that is not full
        rows, at = 0, 0
        try:
            for data, line in pieces(feed, self.name, inner._first_line, inner._end):
                if copy is not None:
                    copy.write(data)
                waiting = np.concatenate([waiting, self._records_of(data) + np.array([[at], [line]])], axis=1)
                full = waiting.shape[1] // GROUP * GROUP
                groups.append(_grouped(waiting[:, :full], GROUP))
                rows, at, waiting = rows + full, at + len(data), waiting[:, full:]
        finally:
            feed.close()
        groups.append(_grouped(waiting, max(waiting.shape[1], 1)))
        self._starts, self._bases, self._regular = (
            np.concatenate(each) for each in zip(*groups, strict=True)
        )
        self._length = at
        with inner._source.open_raw() if copy is None else copy as file:
            file.flush()
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._origin = 0 if copy is not None else os.fstat(self._file).st_size - at
        return rows + waiting.shape[1]

    def _records_of(self, data: bytes) -> NDArray[np.int64]:
        """Where the records of a piece begin, and on which of its lines; blank ones are none."""
        view = np.frombuffer(data, dtype=np.uint8)
        breaks = ends = np.flatnonzero(view == NEWLINE)
        if isinstance(self._inner, DelimitedReader) and self._inner.quote.encode() in data:
            ends = Layout(data, self._inner.delimiter, self._inner.quote).ends
        starts = np.concatenate([[0], ends + 1])
        lengths = np.append(ends, len(data)) - starts
        full = (lengths > 1) | ((lengths == 1) & (view[np.minimum(starts, len(data) - 1)] != RETURN))
        starts = starts[full]
        return np.stack([starts, np.searchsorted(breaks, starts)]).astype(np.int64)

    def _texts(self, batch: NDArray[np.uint32]) -> list[tuple[bytes, int]]:
        """The bytes of these records, each with its line; read in the order of the file."""
        rows = batch.astype(np.int64)
        begin = self._bases[rows // GROUP, 0] + self._starts[rows]
        after = np.minimum(rows + 1, len(self._starts) - 1)
        stop = np.where(
            rows + 1 < len(self._starts), self._bases[after // GROUP, 0] + self._starts[after], self._length
        )
        found: list[tuple[bytes, int]] = [(b"", 0)] * len(rows)
        for i in np.argsort(begin).tolist():
            row, group = int(rows[i]), int(rows[i]) // GROUP
            base, line = self._bases[group].tolist()
            if self._regular[group]:
                line += row % GROUP
            else:  # a record of several lines, or blank ones, before it
                line += self._read(base, int(begin[i]) - base).count(b"\n")
            found[i] = self._read(int(begin[i]), int(stop[i] - begin[i])), line
        return found

    def _readable(self, data: bytes, line: int) -> bytes:
        text = self._inner._readable(data, line)
        self.odd_text = self._inner.odd_text
        return self._inner._tidied(text).rstrip(b"\r\n") + b"\n"

    def _read(self, at: int, size: int) -> bytes:
        data = os.pread(self._file, size, self._origin + at)
        if len(data) < size:
            raise InputError(f"{self.name} has become shorter while it was read.")
        return data


def _grouped(
    records: NDArray[np.int64], size: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]]:
    """Places from the base of each group, the bases, and whether each line of a group has a record."""
    places, lines = records.reshape(2, -1, size)
    starts = (places - places[:, :1]).astype(np.uint32).ravel()
    bases = np.stack([places[:, :1].ravel(), lines[:, :1].ravel()], axis=1)
    return starts, bases, (lines - lines[:, :1] == np.arange(lines.shape[1])).all(axis=1)


class _ShuffledParquet(_Shuffled):
    """Rows of a Parquet file, unpacked into a temporary file that is mapped into memory."""

    _inner: ParquetReader

    def look(self, rows: int) -> dict[str, list[Any]]:
        self._inner.look(1)
        found = self._taken(self.order[:rows], None)
        return {name: cells_of(found.column(i)) for i, name in enumerate(found.schema.names)}

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        names = [column.name for column in wanted]
        for batch in self._batches():
            chunk = self._inner._chunk(self._taken(batch, names), 0, wanted, tally)
            chunk.lines = batch.astype(np.int64)[chunk.lines - 1] + 1
            yield chunk

    def _index(self) -> int:
        pa, ipc = arrow("pyarrow"), arrow("pyarrow.ipc")
        writer = None
        with tempfile.NamedTemporaryFile(suffix=".arrow") as copy, self._inner._opened() as file:
            for batch in self._inner._batches(file, ROWS, None):
                writer = writer or ipc.new_file(copy.name, batch.schema)
                writer.write_batch(batch)
            assert writer is not None
            writer.close()
            # Mapped, it outlives its name.
            self._table = ipc.open_file(pa.memory_map(copy.name)).read_all()
        return int(self._table.num_rows)

    def _taken(self, rows: NDArray[Any], names: list[str] | None) -> Any:
        table = self._table if names is None else self._table.select(names)
        return table.take(arrow("pyarrow").array(rows.astype(np.int64))).combine_chunks().to_batches()[0]
