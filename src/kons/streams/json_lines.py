"""JSON lines: one object a line, its keys the columns; a key that is absent is a missing value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kons.errors import InputError
from kons.streams.bytes import Feed, Source, pieces
from kons.streams.cells import is_missing
from kons.streams.chunks import Chunk, Texts, Values
from kons.streams.dates import stamps
from kons.streams.plan import Column
from kons.streams.text import Record, TextReader, arrow
from kons.streams.wording import shortened

__all__ = ["JsonLinesReader"]

LOOK = 1000


class JsonLinesReader(TextReader):
    """Columns are the keys of the first 1,000 objects; keys that come later are not read."""

    typed = True

    def __init__(self, source: Source) -> None:
        arrow("pyarrow.json")
        self.columns: Sequence[str] = ()
        super().__init__(source)

    def _header(self, feed: Feed) -> int:
        if self.columns:
            return 1
        keys: dict[str, None] = {}
        taken: list[bytes] = []
        problem: InputError | None = None
        count = 0
        source = pieces(feed, self.name, 1, self._end)
        for data, line in source:
            taken.append(data)
            for _, found in self._objects(data, line):
                if isinstance(found, InputError):
                    problem = problem or found
                else:
                    keys.update(dict.fromkeys(found))
                    count += 1
                if count >= LOOK:
                    break
            if count >= LOOK:
                break
        source.close()
        feed.put_back(b"".join(taken))
        if not keys:
            raise problem or InputError(
                f"{self.name} is empty: expected lines with a JSON object each, such as {{...}}."
            )
        self.columns = list(keys)
        return 1

    def _end(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def _objects(self, data: bytes, line: int) -> Iterator[tuple[int, dict[str, Any] | InputError]]:
        for number, text in enumerate(data.split(b"\n"), start=line):
            if not text.strip():
                continue
            try:
                found = json.loads(text)
            except (ValueError, RecursionError):
                seen = shortened(text[:200].decode("utf-8", "replace").strip())
                yield number, InputError(f"{self.name}, line {number}: {seen!r} is not a JSON object.")
                continue
            if isinstance(found, dict):
                yield number, found
            else:
                hint = " (a file that is one list must be split into lines)" * isinstance(found, list)
                yield (
                    number,
                    InputError(
                        f"{self.name}, line {number}: a JSON {type(found).__name__}, expected an object "
                        f'such as {{"a": 1}} on each line{hint}.'
                    ),
                )

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        for number, found in self._objects(data, line):
            yield number, found if isinstance(found, InputError) else [found.get(c) for c in self.columns]

    def _at_once(self, data: bytes, line: int, wanted: Sequence[Column], decimal: str) -> Chunk | None:
        pa, reading = arrow("pyarrow"), arrow("pyarrow.json")
        types = {"number": pa.float64(), "flag": pa.bool_(), "text": pa.string(), "date": pa.string()}
        schema = pa.schema([(c.name, types[c.kind]) for c in wanted])
        try:
            table = reading.read_json(
                pa.BufferReader(data),
                read_options=reading.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=reading.ParseOptions(
                    explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="ignore"
                ),
            )
        except (pa.ArrowException, ValueError):
            return None
        texts = data.split(b"\n")
        lines = np.array([i for i, text in enumerate(texts, start=line) if text.strip()], dtype=np.int64)
        if table.num_rows != len(lines):
            return None
        columns: dict[str, Values] = {}
        for column in wanted:
            values = _values(table[column.name].combine_chunks(), column)
            if values is None:
                return None
            columns[column.name] = values
        return Chunk(
            lines, columns, cell=lambda row, name: json.loads(texts[int(lines[row]) - line]).get(name)
        )


def _values(array: Any, wanted: Column) -> Values | None:
    if hasattr(array, "chunks"):  # no rows at all
        array = array.combine_chunks() if array.num_chunks else None
        if array is None:
            return None
    if wanted.kind == "number":
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    cells = array.to_pylist()
    if wanted.kind == "flag":
        return np.array(cells, dtype=np.float64)
    if wanted.kind == "date":
        return stamps([cell or None for cell in cells], wanted.order)
    return Texts.of([None if is_missing(cell) else cell.strip() for cell in cells])
