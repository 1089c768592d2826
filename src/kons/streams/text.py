"""What readers of text files share: the header, the first look, pieces, the fast way and the slow one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kons.errors import InputError, MissingExtraError
from kons.streams.bytes import PIECE, Feed, Source, as_utf8, pieces
from kons.streams.chunks import Chunk, Tally, from_cells
from kons.streams.reader import Reader
from kons.tables.cells import ColumnFormat

__all__ = ["TextReader", "arrow"]

ROWS_A_PIECE = 200  # at least so many rows at once, also of very wide tables
LARGEST_PIECE = 1 << 26
NUMBERS = 4_000_000  # of a piece
NEWLINE = b"\n"


def arrow(module: str) -> Any:
    """The module of pyarrow, or the error that says how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("reading files", "files") from None


class Record(NamedTuple):
    """One of a file: its first line, its cells in the order of the columns, and what is wrong with it."""

    line: int
    cells: list[Any]
    """As many as there are columns; of one that has a problem, those that could be told apart."""
    problem: InputError | None = None


class TextReader(Reader):
    """A file of lines. A piece is tried at once by pyarrow; if that fails, record by record."""

    unit = "line"
    typed = False
    odd_text: str
    bytes_done: int
    early: bool

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name: str = source.name
        self.resumable: bool = source.resumable
        self.bytes_total: int | None = source.bytes_total
        self._piece = PIECE
        self._row_bytes: float | None = None
        self._packing = 1.0
        self._all_rows: int | None = None
        self._used = False
        self._feed: Feed | None = None
        self._first_line = 1
        self._header_error: InputError | None = None
        feed = self._begin()
        if self.resumable:
            feed.close()

    # ---- what a format says

    @abstractmethod
    def _header(self, feed: Feed) -> int:
        """Take the header from the feed, set the columns; the number of the first line of data."""

    @abstractmethod
    def _end(self, data: bytes) -> int:
        """Where the last whole record of some bytes ends."""

    @abstractmethod
    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        """All records, one by one."""

    def _at_once(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk | None:
        """All records by a fast library, or None if it cannot or something is odd about them."""
        return None

    def _open(self) -> Feed:
        """The bytes from the start."""
        feed = self._source.open()
        try:
            feed.start()
        except BaseException:
            feed.close()
            raise
        return feed

    def _tidied(self, data: bytes) -> bytes:
        """A piece of UTF-8 as the two ways of reading it want it, line by line the same."""
        return data

    def _readable(self, data: bytes, line: int) -> bytes:
        """A piece as UTF-8, whatever its bytes are; the first odd one is told by its line."""
        text, odd = as_utf8(data)
        if odd is not None and not self.odd_text:
            where = self.where(line + data.count(NEWLINE, 0, odd.at)).removeprefix(f"{self.name}, ")
            self.odd_text = f"{where}: {odd.remark}"
        return text

    def _readable_header(self, data: bytes, line: int = 1) -> str:
        """Lines with names, which binary data are not."""
        if (at := data.find(b"\0")) >= 0:
            line += data.count(NEWLINE, 0, at)
            raise InputError(f"{self.name}, line {line}: not text, but binary data.")
        self._header_error = self._header_error or self._up_to_odd(data, line)[1]
        return self._readable(data, line).decode()

    def _up_to_odd(self, data: bytes, line: int) -> tuple[bytes, InputError | None]:
        """The records before the first odd byte, and the complaint about it."""
        odd = as_utf8(data)[1]
        if odd is None:
            return data, None
        before = data[: data.rfind(NEWLINE, 0, odd.at) + 1]
        where = self.where(line + before.count(NEWLINE))
        return before[: self._end(before)], InputError(f"{where}: {odd.reason}.")

    # ---- the same for all

    def look(self, rows: int) -> dict[str, list[Any]]:
        feed = self._begin()
        rows = min(rows, max(20, 2_000_000 // max(1, len(self.columns))))
        taken: list[bytes] = []
        table: list[list[Any]] = []
        problem: InputError | None = None
        length, ended = 0, False
        source = pieces(feed, self.name, self._first_line, self._end)
        try:
            for data, line in source:
                taken.append(data)
                length += len(data)
                for record in self._records(self._tidied(self._readable(data, line)), line):
                    if record.problem is not None:
                        problem = problem or record.problem
                    else:
                        table.append(record.cells)
                    if len(table) >= rows:
                        break
                self.early = bool(table) and len(table) < rows and feed.pauses()
                if len(table) >= rows or length > LARGEST_PIECE or self.early:
                    break
                self._row_bytes = length / max(1, len(table))
            else:
                ended = True
            self._packing = min(1.0, feed.done / length) if feed.is_packed and length else 1.0
        finally:
            source.close()
            if self.resumable:
                feed.close()
            else:
                feed.put_back(b"".join(taken))
        if not table:
            raise problem or InputError(f"{self.name} has a header and no rows; expected at least one.")
        self._measure(taken, len(table), rows)
        self._all_rows = len(table) if ended else None
        return {name: [row[i] for row in table] for i, name in enumerate(self.columns)}

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        if self._used and not self.resumable:
            raise InputError(f"{self.name} was read already, and can be read only once.")
        self._used = True
        feed = self._begin()
        if self._header_error is not None and tally.on_bad_row == "error":
            feed.close()
            raise self._header_error
        try:
            for data, line in pieces(feed, self.name, self._first_line, self._end, self._piece):
                self.bytes_done = feed.done
                error = None
                if tally.on_bad_row == "error":
                    data, error = self._up_to_odd(data, line)
                text = self._tidied(self._readable(data, line))
                chunk = self._at_once(text, line, wanted, tally)
                chunk = chunk if chunk is not None else self._one_by_one(text, line, wanted, tally)
                chunk.error = chunk.error or error
                yield chunk
        finally:
            feed.close()

    @property
    def total_rows(self) -> int | None:
        """Those of the first look if it saw the end, else by the length of its rows; None for long pipes."""
        if self._all_rows is not None:
            return self._all_rows
        if self.bytes_total is None or not self._row_bytes:
            return None
        return max(1, round(self.bytes_total / (self._row_bytes * self._packing)))

    @property
    def has_header(self) -> bool:
        """Whether the first line holds the columns' names."""
        return self._first_line > 1

    def fingerprint(self) -> dict[str, Any] | None:
        return self._source.fingerprint()

    def _begin(self) -> Feed:
        """The feed, at the first line of data."""
        if self._feed is not None:
            return self._feed
        feed = self._open()
        try:
            self._first_line = self._header(feed)
        except BaseException:
            feed.close()
            raise
        if not self.resumable:
            self._feed = feed
        return feed

    def _measure(self, taken: list[bytes], rows: int, asked: int) -> None:
        """How long a row is, and so how large a piece should be."""
        if rows >= asked:  # only a part of the last piece was looked at
            table = 0
            length = 0
            for data in taken:
                ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
                use = min(len(ends), rows - table)
                length += int(ends[use - 1]) + 1 if use else len(data)
                table += use
                if table >= rows:
                    break
            self._row_bytes = length / max(1, table)
        row = max(1.0, self._row_bytes or 1.0)
        # Rows that name a few of many columns are short, and become dense.
        most = max(4096, max(1, NUMBERS // len(self.columns)) * row)
        self._piece = int(min(LARGEST_PIECE, most, max(PIECE, ROWS_A_PIECE * row)))

    def _one_by_one(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk:
        lines: list[int] = []
        table: list[list[Any]] = []
        error: InputError | None = None
        for number, cells, problem in self._records(data, line):
            if problem is not None and tally.on_bad_row == "error":
                error = problem
                break
            if problem is not None and not tally.keeps_broken(problem):
                continue
            lines.append(number)
            # Of a broken one, fields that are too many are none, and those that lack are gaps.
            table.append(cells if problem is None else cells + [None] * len(self.columns))
        at = {name: i for i, name in enumerate(self.columns)}
        columns = {c.name: [row[at[c.name]] for row in table] for c in wanted}
        chunk = from_cells(lines, columns, wanted, where=self.where, tally=tally)
        chunk.error = chunk.error or error
        return chunk
