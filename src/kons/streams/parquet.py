"""Parquet files, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from kons.errors import InputError
from kons.streams.arrow import cells_of, column_of
from kons.streams.bytes import LONGEST, Source
from kons.streams.chunks import Chunk, Fault, Tally, Values, settled
from kons.streams.reader import Reader, require_width
from kons.streams.text import arrow
from kons.streams.wording import shortened
from kons.tables.cells import ColumnFormat

__all__ = ["ParquetReader", "cells_of"]

ROWS = 8192
CELLS = 2_000_000  # of a batch
BYTES = 1 << 26  # of a batch, as the file says


class ParquetReader(Reader):
    """Numbers, flags, text and moments as they are stored; lists and the like are left out by the plan."""

    categories: Sequence[str]
    bytes_done: int

    def __init__(self, source: Source) -> None:
        self._pa, self._parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
        self._source, self._texts = source, list[str]()
        self.name: str = source.name
        self.bytes_total: int | None = source.bytes_total
        if not source.resumable:
            raise InputError(f"{self.name}: Parquet cannot be read from a pipe: give a file.")
        with self._opened() as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            self._row_bytes = _row_bytes(file.metadata)
        self.columns: Sequence[str] = [str(name) for name in schema.names]
        require_width(self.name, len(self.columns))
        if self._row_bytes > LONGEST:
            long, most = self._row_bytes / 2**20, LONGEST >> 20
            raise InputError(f"{self.name}: rows have {long:,.0f} MB, at most {most} MB can be read.")
        # As levels, each distinct one is in memory once: a long text may be in every row of a small file.
        self._texts = [str(field.name) for field in schema if str(field.type) in ("string", "large_string")]
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise InputError(f"{self.name}: two columns are called {shortened(twice)!r}.")
        # As frames declare columns of some texts; what these hold looks like numbers, if at all, by chance.
        levels = ("dictionary<values=string", "dictionary<values=large_string")
        self.categories = [str(field.name) for field in schema if str(field.type).startswith(levels)]
        self._rows = rows
        if not rows:
            raise InputError(f"{self.name} has no rows; expected at least one.")

    @property
    def total_rows(self) -> int:
        return int(self._rows)

    def look(self, rows: int) -> dict[str, list[Any]]:
        rows = min(rows, self._most_rows())
        with self._opened() as file:
            for batch in self._batches(file, rows, None):
                part = batch.slice(0, rows)
                return {name: cells_of(part.column(i)) for i, name in enumerate(batch.schema.names)}
        raise InputError(f"{self.name} has no rows; expected at least one.")

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        names = [column.name for column in wanted]
        size = min(max(64, min(ROWS, CELLS // max(1, len(names)))), self._most_rows())
        first = 0
        with self._opened() as file:
            for batch in self._batches(file, size, names):
                if batch.num_rows:
                    yield self._chunk(batch, first, wanted, tally)
                first += batch.num_rows
                self.bytes_done = int((self.bytes_total or 0) * first / self._rows)

    def fingerprint(self) -> dict[str, Any] | None:
        return self._source.fingerprint()

    def _most_rows(self) -> int:
        """Of a batch, whose texts may be long."""
        return max(1, int(BYTES / max(self._row_bytes, 1.0)))

    def _opened(self) -> Any:
        try:
            return self._parquet.ParquetFile(str(self._source.path), read_dictionary=self._texts)
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.name} is no sound Parquet file ({_first_line(error)}).") from None

    def _batches(self, file: Any, size: int, names: list[str] | None) -> Iterator[Any]:
        try:
            for batch in file.iter_batches(batch_size=size, columns=names, use_threads=False):
                for column in batch.columns:
                    if str(column.type).startswith("dictionary"):
                        column.validate(full=True)  # codes beyond its levels, of a damaged file
                yield batch
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.name} is no sound Parquet file ({_first_line(error)}).") from None

    def _chunk(self, batch: Any, first: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk:
        columns: dict[str, Values] = {}
        faults: list[Fault] = []
        for column in wanted:
            columns[column.name], bad = column_of(
                batch.column(batch.schema.get_field_index(column.name)), column
            )
            faults += bad
        lines = np.arange(first + 1, first + 1 + batch.num_rows, dtype=np.int64)

        def cell(row: int, name: str) -> Any:
            return cells_of(batch.column(batch.schema.get_field_index(name)).slice(row, 1))[0]

        return settled(Chunk(lines, columns, cell=cell), faults, self.where, tally)


def _row_bytes(metadata: Any) -> float:
    """The longest mean row of a row group, unpacked, as the file says."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0.0)


def _first_line(error: BaseException) -> str:
    return shortened((str(error).splitlines() or [""])[0], 100)
