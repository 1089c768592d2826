"""Parquet files, some thousand rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from kons.errors import InputError
from kons.streams.bytes import Source
from kons.streams.cells import is_missing
from kons.streams.chunks import Chunk, Tally, Texts, Values, from_cells
from kons.streams.plan import Column
from kons.streams.reader import Reader
from kons.streams.text import arrow
from kons.streams.wording import shortened

__all__ = ["ParquetReader", "cells_of"]

ROWS = 8192
CELLS = 2_000_000  # of a batch


class ParquetReader(Reader):
    """Numbers, flags, text and moments as they are stored; lists and the like are left out by the plan."""

    def __init__(self, source: Source) -> None:
        self._pa, self._parquet = arrow("pyarrow"), arrow("pyarrow.parquet")
        self._source = source
        self.name = source.name
        self.bytes_total = source.bytes_total
        if not source.resumable:
            raise InputError(f"{self.name}: Parquet cannot be read from a pipe: give a file.")
        with self._opened() as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
        self.columns = [str(name) for name in schema.names]
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise InputError(f"{self.name}: two columns are called {shortened(twice)!r}.")
        self._rows = rows
        if not rows:
            raise InputError(f"{self.name} has no rows; expected at least one.")

    @property
    def total_rows(self) -> int:
        return int(self._rows)

    def look(self, rows: int) -> dict[str, list[Any]]:
        with self._opened() as file:
            for batch in self._batches(file, rows, None):
                part = batch.slice(0, rows)
                return {name: cells_of(part.column(i)) for i, name in enumerate(batch.schema.names)}
        raise InputError(f"{self.name} has no rows; expected at least one.")

    def chunks(
        self, wanted: Sequence[Column], tally: Tally | None, decimal: str
    ) -> Generator[Chunk, None, None]:
        names = [column.name for column in wanted]
        size = max(64, min(ROWS, CELLS // max(1, len(names))))
        first = 0
        with self._opened() as file:
            for batch in self._batches(file, size, names):
                if batch.num_rows:
                    yield self._chunk(batch, first, wanted, tally, decimal)
                first += batch.num_rows
                self.bytes_done = int((self.bytes_total or 0) * first / self._rows)

    def fingerprint(self) -> dict[str, Any] | None:
        return self._source.fingerprint()

    def _opened(self) -> Any:
        try:
            return self._parquet.ParquetFile(str(self._source.path))
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.name} is no sound Parquet file ({_first_line(error)}).") from None

    def _batches(self, file: Any, size: int, names: list[str] | None) -> Iterator[Any]:
        try:
            yield from file.iter_batches(batch_size=size, columns=names, use_threads=False)
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{self.name} is no sound Parquet file ({_first_line(error)}).") from None

    def _chunk(
        self, batch: Any, first: int, wanted: Sequence[Column], tally: Tally | None, decimal: str
    ) -> Chunk:
        lines = np.arange(first + 1, first + 1 + batch.num_rows, dtype=np.int64)
        columns: dict[str, Values] = {}
        slow: list[Column] = []
        for column in wanted:
            values = self._fast(batch.column(batch.schema.get_field_index(column.name)), column)
            if values is None:
                slow.append(column)
            else:
                columns[column.name] = values

        def cell(row: int, name: str) -> Any:
            return cells_of(batch.column(batch.schema.get_field_index(name)).slice(row, 1))[0]

        chunk = Chunk(lines, columns, cell=cell)
        if not slow:
            return chunk
        cells = {c.name: cells_of(batch.column(batch.schema.get_field_index(c.name))) for c in slow}
        part = from_cells(lines.tolist(), cells, slow, where=self.where, tally=tally, decimal=decimal)
        chunk = chunk.chosen(np.isin(lines, part.lines))
        return Chunk(part.lines, {**chunk.columns, **part.columns}, part.error, chunk.cell)

    def _fast(self, array: Any, column: Column) -> Values | None:
        kind, types = array.type, self._pa.types
        if column.kind in ("number", "flag") and (types.is_integer(kind) or types.is_floating(kind)):
            if array.null_count and types.is_integer(kind):
                array = array.cast(self._pa.float64(), safe=False)
            return np.asarray(array.to_numpy(zero_copy_only=False)).astype(np.float64, copy=False)
        if column.kind == "flag" and types.is_boolean(kind):
            return np.array(array.to_pylist(), dtype=np.float64)
        if column.kind == "text" and types.is_dictionary(kind) and types.is_string(kind.value_type):
            texts = Texts.of([None if is_missing(t) else t.strip() for t in array.dictionary.to_pylist()])
            codes = array.indices.fill_null(len(texts.codes)).to_numpy(zero_copy_only=False)
            return Texts(np.append(texts.codes, -1)[codes], texts.values)
        if column.kind == "text" and (types.is_string(kind) or types.is_large_string(kind)):
            return self._fast(array.dictionary_encode().cast(_dictionary(self._pa)), column)
        if column.kind == "date" and types.is_timestamp(kind):
            return np.asarray(
                array.cast(self._pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
            ).view(np.int64)
        return None


def _dictionary(pa: Any) -> Any:
    return pa.dictionary(pa.int32(), pa.string())


def cells_of(array: Any) -> list[Any]:
    """Python values; moments as NumPy has them, which knows nanoseconds and no time zones."""
    import pyarrow as pa

    if pa.types.is_timestamp(array.type):
        return list(array.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False))
    return list(array.to_pylist())


def _first_line(error: BaseException) -> str:
    return shortened((str(error).splitlines() or [""])[0], 100)
