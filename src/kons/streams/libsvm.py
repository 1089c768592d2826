"""The sparse text format of libsvm: ``label index:value index:value ...``, what is not named is 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from kons.errors import InputError
from kons.streams.bytes import Feed, Source, pieces
from kons.streams.chunks import Chunk, Tally, Values, converted
from kons.streams.reader import MOST_COLUMNS
from kons.streams.text import Record, TextReader
from kons.streams.wording import shortened
from kons.tables.cells import ColumnFormat

__all__ = ["LibsvmReader"]

INDEX = re.compile(rb"[ \t](\d+):")
TARGET = "target"


class LibsvmReader(TextReader):
    """Dense rows; the number of features is the largest index, for which a file is read once in advance.

    Of a pipe only the first 1,000 rows are known then: a larger index later is a bad row.
    """

    implied_target: str = TARGET

    def __init__(self, source: Source) -> None:
        self.columns: Sequence[str] = ()
        self._first = 1
        super().__init__(source)

    def call_target(self, name: str) -> None:
        """Give the labels, which have none, a name, unless it is another column or a place."""
        if name not in self.columns and not re.fullmatch(r"-?\d+|[cx]\d+", name):
            self.columns, self.implied_target = [*self.columns[:-1], name], name

    def _header(self, feed: Feed) -> int:
        if self.columns:
            return 1
        largest, zero, taken, count = -1, False, [], 0
        source = pieces(feed, self.name, 1, self._end)
        for data, line in source:
            found = [int(text[:9]) if len(text) < 10 else 10**9 for text in INDEX.findall(data)]
            if found:
                largest = max(largest, max(found))
                zero = zero or min(found) == 0
            if largest > MOST_COLUMNS:
                raise InputError(
                    f"{self.name}: index {largest:,} makes rows too wide to be dense (at most "
                    f"{MOST_COLUMNS:,}), near line {line}."
                )
            if not self.resumable:
                taken.append(data)
                count += data.count(b"\n")
                if count >= 1000:
                    break
        source.close()
        feed.put_back(b"".join(taken))
        if largest < 0:
            raise InputError(
                f"{self.name}: no 'index:value' in it, expected lines such as '1 1:0.5 7:2' (libsvm)."
            )
        self._first = 0 if zero else 1
        self.columns = [*(f"x{i}" for i in range(self._first, largest + 1)), self.implied_target]
        return 1

    def _end(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def _parsed(self, text: str) -> tuple[str, list[int], list[float]]:
        """Label, places and values of one line; ValueError says what is wrong."""
        label, *entries = text.split()
        places, values = [], []
        for entry in entries:
            index, colon, value = entry.partition(":")
            if index == "qid":
                continue
            if not colon or not index.isdecimal() or "_" in value:
                raise ValueError(f"{shortened(entry)!r} is not index:value")
            place = int(index[:10]) - self._first
            if not 0 <= place < len(self.columns) - 1:
                raise ValueError(
                    f"index {shortened(index)} is beyond {len(self.columns) - 1 + self._first - 1}, the "
                    "largest in the first rows: give the file instead of a pipe"
                )
            try:
                values.append(float(value))
            except ValueError:
                raise ValueError(f"{shortened(entry)!r}: {shortened(value)!r} is not a number") from None
            places.append(place)
        if ":" in label:
            raise ValueError(f"{shortened(label)!r} is no label: it must come first")
        if "," in label:
            raise ValueError(f"{shortened(label)!r}: several labels of one row cannot be learned")
        return label, places, values

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        for number, text in enumerate(data.decode("utf-8").split("\n"), start=line):
            row = text.partition("#")[0].strip()
            if not row:
                continue
            try:
                label, places, values = self._parsed(row)
            except ValueError as error:
                yield Record(number, [], InputError(f"{self.name}, line {number}: {error}."))
                continue
            cells: list[float | str] = [0.0] * (len(self.columns) - 1)
            for place, value in zip(places, values, strict=True):
                cells[place] = value
            yield Record(number, [*cells, label])

    def _at_once(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk | None:
        texts = data.decode("utf-8").split("\n")
        X = np.zeros((len(texts), len(self.columns) - 1))
        lines: list[int] = []
        labels: list[str] = []
        for number, text in enumerate(texts, start=line):
            row = text.partition("#")[0].strip() if "#" in text else text.strip()
            if not row:
                continue
            try:
                label, places, values = self._parsed(row)
            except ValueError:
                return None
            X[len(lines), places] = values
            lines.append(number)
            labels.append(label)
        at = {name: i for i, name in enumerate(self.columns)}
        columns: dict[str, Values] = {}
        for column in wanted:
            place = at[column.name]
            if place < X.shape[1] and column.kind == "number":
                columns[column.name] = X[: len(lines), place]
                continue
            cells = labels if place == X.shape[1] else X[: len(lines), place].tolist()
            columns[column.name], bad = converted(cells, column)
            if bad:
                return None
        return Chunk(np.array(lines, dtype=np.int64), columns)
