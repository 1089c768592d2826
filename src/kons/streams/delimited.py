"""CSV and its relatives: comma, semicolon, tab or bar, as the header shows; quotes; decimal commas.

A piece of some thousand rows goes to pyarrow with the types of the plan. Whatever it stumbles over is read
once more, record by record, by Python's own reader: that one knows which line and which cell is wrong.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, InputError
from kons.streams.arrow import numbers_of
from kons.streams.bytes import LONGEST, Feed, Source
from kons.streams.cells import MISSING_NUMBERS, BadCell, converter, is_number_text
from kons.streams.chunks import Chunk, Texts, Values
from kons.streams.dates import stamps
from kons.streams.plan import Column
from kons.streams.text import Record, TextReader, arrow

__all__ = ["DelimitedReader", "reworded"]

DELIMITERS = ",;\t|"
HEAD = 1 << 14  # bytes in which most headers end
NULLS = sorted({change(text) for text in MISSING_NUMBERS for change in (str, str.upper, str.title)} | {"NaN"})
NEWLINE, RETURN, SPACE = 10, 13, 32


class DelimitedReader(TextReader):
    """A file with a header line, then rows of as many fields."""

    quote = '"'

    def __init__(self, source: Source, delimiter: str | None = None) -> None:
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ConfigurationError(f"delimiter is {delimiter!r}, expected one letter, such as ';'.")
        arrow("pyarrow.csv")
        self._asked = delimiter
        super().__init__(source)

    # ---- header

    def _header(self, feed: Feed) -> int:
        data = b""
        while (end := self._first_end(data)) == 0 and (more := feed.read(HEAD)):
            data += more
            if b"\0" in more or len(data) > LONGEST:
                raise InputError(f"{self.name}, line 1: not text, but binary data.")
        end = end or len(data)
        feed.put_back(data[end:])
        try:
            text = data[:end].decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(
                f"{self.name}, line 1: not UTF-8 text: save it as UTF-8, or set encoding (latin-1, ...)."
            ) from None
        if not text.strip():
            raise InputError(f"{self.name} is empty: expected a line with the columns' names, then rows.")
        # Names in quotes may hold any of the delimiters.
        outside = "".join(text.split('"')[::2])
        self.delimiter = self._asked or max(DELIMITERS, key=outside.count)
        try:
            names = next(self._reader(text))
        except csv.Error as error:
            raise InputError(f"{self.name}, line 1: {reworded(error)}.") from None
        columns = self._named(names, 1)
        if all(is_number_text(name) for name in columns):
            raise InputError(f"{self.name}, line 1: numbers only, expected a header with the columns' names.")
        self.columns = columns
        return 1 + text.count("\n")

    def _first_end(self, data: bytes) -> int:
        """Where the first record ends; names in quotes may hold a line break."""
        at = -1
        while (at := data.find(b"\n", at + 1)) >= 0:
            if data.count(b'"', 0, at) % 2 == 0:
                return at + 1
        return 0

    # ---- records

    def _end(self, data: bytes) -> int:
        if self.quote.encode() not in data:
            return data.rfind(b"\n") + 1
        layout = Layout(data, self.delimiter, self.quote)
        return int(layout.ends[-1]) + 1 if len(layout.ends) else 0

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        reader = self._reader(data.decode("utf-8"))
        count = len(self.columns)
        while True:
            start = line + reader.line_num
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield start, InputError(f"{self.name}, line {start}: {reworded(error)}.")
                continue
            if not row or (len(row) == 1 and count > 1 and not row[0].strip()):
                continue
            if len(row) != count:
                yield start, self._miscounted(start, row)
            else:
                yield start, row

    def _miscounted(self, line: int, row: list[str]) -> InputError:
        hint = "" if len(row) > 1 else ": is it cut off, or delimited otherwise?"
        return InputError(
            f"{self.name}, line {line}: {len(row)} field(s), expected the header's {len(self.columns)}{hint}"
        )

    def _reader(self, text: str) -> Any:
        return csv.reader(
            io.StringIO(text, newline="\n"),
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
            strict=True,
        )

    # ---- at once

    def _at_once(self, data: bytes, line: int, wanted: Sequence[Column], decimal: str) -> Chunk | None:
        pa, reading = arrow("pyarrow"), arrow("pyarrow.csv")
        layout = Layout(data, self.delimiter, self.quote)
        if not layout.tidy:
            return None
        text, dictionary = pa.string(), pa.dictionary(pa.int32(), pa.string())
        types = {"number": pa.float64(), "flag": dictionary, "text": dictionary, "date": text}
        try:
            table = reading.read_csv(
                pa.BufferReader(data),
                read_options=reading.ReadOptions(
                    use_threads=False, column_names=self.columns, block_size=len(data) + 1
                ),
                parse_options=reading.ParseOptions(
                    delimiter=self.delimiter, quote_char=self.quote, newlines_in_values=layout.broken
                ),
                convert_options=reading.ConvertOptions(
                    include_columns=[c.name for c in wanted],
                    column_types={c.name: types[c.kind] for c in wanted},
                    null_values=NULLS,
                    decimal_point=decimal,
                ),
            )
        except (pa.ArrowException, ValueError, KeyError):
            return None
        lines = line + layout.lines
        if table.num_rows != len(lines):
            return None
        columns: dict[str, Values] = {}
        for column in wanted:
            values = _values(table[column.name], column)
            if values is None:
                return None
            columns[column.name] = values
        return Chunk(lines, columns, cell=lambda row, name: self._cell(data, int(lines[row]) - line, name))

    def _cell(self, data: bytes, line: int, name: str) -> str:
        """The cell of the record that begins on this line of a piece."""
        place = list(self.columns).index(name)
        for number, cells in self._records(data, 0):
            if number == line and not isinstance(cells, InputError):
                return str(cells[place])
        return ""


class Layout:
    """Where the records of a piece end, on which of its lines each begins, and whether quotes are plain."""

    def __init__(self, data: bytes, delimiter: str, quote: str) -> None:
        view = np.frombuffer(data, dtype=np.uint8)
        breaks = np.flatnonzero(view == NEWLINE)
        self.tidy = _returns_are_plain(data, view)
        self.broken = False
        """Whether a quoted field holds a line break."""
        self.ends = breaks
        if quote.encode() in data:
            outside = self._outside(data, view, breaks, delimiter, quote)
            self.broken = not bool(outside.all())
            self.ends = breaks[outside]
        self._data, self._view, self._breaks = data, view, breaks

    @property
    def lines(self) -> NDArray[np.int64]:
        """For each record that is not blank, the line it begins on, counted from 0."""
        starts = np.concatenate([[0], self.ends + 1])
        stops = np.concatenate([self.ends, [len(self._data)]])
        if len(self._breaks) == len(self.ends):
            numbers = np.arange(len(starts), dtype=np.int64)
        else:
            numbers = np.searchsorted(self._breaks, starts).astype(np.int64)
        lengths = stops - starts
        blank = lengths == 0
        short = np.flatnonzero(lengths == 1)
        blank[short] = self._view[starts[short]] == RETURN
        lines: NDArray[np.int64] = numbers[~blank]
        return lines

    def _outside(
        self, data: bytes, view: NDArray[np.uint8], breaks: NDArray[np.int64], delimiter: str, quote: str
    ) -> NDArray[np.bool_]:
        """Which line breaks are outside of quotes: after an even number of them, if they stand as usual."""
        mark, field = ord(quote), ord(delimiter)
        quotes = np.flatnonzero(view == mark)
        opening, closing = quotes[0::2], quotes[1::2]
        before = np.where(opening > 0, view[opening - 1], NEWLINE)
        after = np.where(closing < len(view) - 1, view[np.minimum(closing + 1, len(view) - 1)], NEWLINE)
        plain = all(bool(np.isin(around, [field, NEWLINE, RETURN, mark]).all()) for around in (before, after))
        if plain and len(quotes) % 2 == 0:
            return np.asarray(np.searchsorted(quotes, breaks) % 2 == 0)
        self.tidy = False
        outside = np.ones(len(breaks), dtype=bool)
        for start, stop in _quoted_fields(data, delimiter.encode(), quote.encode()):
            outside[np.searchsorted(breaks, start) : np.searchsorted(breaks, stop)] = False
        return outside


def _returns_are_plain(data: bytes, view: NDArray[np.uint8]) -> bool:
    """Whether carriage returns stand at the ends of lines only: pyarrow takes others for ends as well."""
    if b"\r" not in data:
        return True
    after = np.flatnonzero(view == RETURN) + 1
    return bool(after[-1] < len(view) and (view[after] == NEWLINE).all())


def _quoted_fields(data: bytes, delimiter: bytes, quote: bytes) -> Iterator[tuple[int, int]]:
    """(start, stop) of every field in quotes; a quote inside another field is a letter."""
    starts = delimiter + b"\r\n"
    at = 0
    while (start := data.find(quote, at)) >= 0:
        before = start - 1
        while before >= at and data[before] == SPACE:
            before -= 1
        if before >= 0 and data[before : before + 1] not in starts:
            at = start + 1
            continue
        stop = data.find(quote, start + 1)
        while stop >= 0 and data[stop + 1 : stop + 2] == quote:
            stop = data.find(quote, stop + 2)
        if stop < 0:
            yield start, len(data)
            return
        yield start, stop
        at = stop + 1


def _values(column: Any, wanted: Column) -> Values | None:
    """A column of pyarrow as the plan wants it; None if a cell needs a closer look."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if wanted.kind == "number":
        return numbers_of(array)
    convert = converter(wanted.kind, order=wanted.order)
    if wanted.kind == "date":
        texts = array.to_pylist()
        return stamps(texts, wanted.order) if texts else np.empty(0, dtype=np.int64)
    if hasattr(array, "chunks"):  # an empty one
        return None
    codes = numbers_of(array.indices).astype(np.int64)
    try:
        values = [convert(text) for text in array.dictionary.to_pylist()]
    except BadCell:
        return None
    if wanted.kind == "flag":
        return np.asarray(np.array([*values, None], dtype=np.float64)[codes])
    texts = Texts.of(values)
    return Texts(np.append(texts.codes, -1)[codes], texts.values)


def reworded(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text or "field larger" in text:
        return "a quote is opened and never closed"
    if "expected after" in text:
        return "a quote is closed and text follows"
    if "new-line" in text:
        return "a carriage return within the line: save the file with ordinary line ends"
    return text
