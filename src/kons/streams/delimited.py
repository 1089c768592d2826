"""CSV and its relatives: comma, semicolon, tab, bar or spaces, as the first line shows; quotes.

A piece of some thousand rows goes to pyarrow, plain numbers as numbers, all else as texts of which each
distinct one is converted once. If a number is none, numbers are read as texts as well. Whatever has odd
quotes or a wrong number of fields is read once more, record by record, by Python's own reader: that one
knows which line is wrong.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, InputError
from kons.streams.arrow import column_of
from kons.streams.bytes import LONGEST, Feed, Source, too_long
from kons.streams.chunks import Chunk, Fault, Tally, Values, settled
from kons.streams.reader import distinct_names, require_width
from kons.streams.text import Record, TextReader, arrow
from kons.streams.wording import listed
from kons.tables.cells import MISSING_NUMBERS, PLAIN, ColumnFormat, NumberStyle, is_missing, number_style
from kons.tables.moments import EPOCHS

__all__ = ["DelimitedReader", "reworded"]

DELIMITERS = ",;\t|"
HEAD = 1 << 14  # bytes in which most headers end
LINES = 20  # that tell what delimits their fields
MOST = 0.75  # of the lines: others may be broken
NULLS = sorted({change(text) for text in MISSING_NUMBERS for change in (str, str.upper, str.title)} | {"NaN"})
NEWLINE, RETURN, SPACE = 10, 13, 32
RUNS_OF_SPACES = re.compile(rb'(?:(?<=[ \t\n])|^)"[^"]*"|[ \t]+')
ENDS_OF_LINES = re.compile(rb"^ | (?=\r?$)", re.M)


class DelimitedReader(TextReader):
    """A header line, then rows of as many fields; or rows only, whose columns are c1, c2, ..."""

    quote = '"'
    delimiter: str
    columns: Sequence[str]
    notes: Sequence[str]

    def __init__(self, source: Source, delimiter: str | None = None) -> None:
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise ConfigurationError(f"delimiter is {delimiter!r}, expected one letter, such as ';'.")
        arrow("pyarrow.csv")
        self._asked = delimiter
        super().__init__(source)

    # ---- header

    def _header(self, feed: Feed) -> int:
        held, breaks = bytearray(), False
        end = tried = 0
        # A pipe may come in drops: what has no end is searched when there is twice as much.
        while not end and (more := feed.read(max(HEAD, len(held)))):
            held += more
            breaks = breaks or b"\n" in more
            if len(held) > LONGEST or (breaks and len(held) >= 2 * tried):
                end, tried, breaks = self._first_end(bytes(held)), len(held), False
            if not end and len(held) > LONGEST:
                raise InputError(too_long(self.name, 1, bytes(held)))
        data = bytes(held)
        end = end or self._first_end(data) or len(data)
        lines = 1 if self._source.live else LINES
        while self._asked is None and len(data) < HEAD and data.count(b"\n") <= lines:
            if (data.count(b"\n") > 1 and feed.pauses()) or not (more := feed.read(HEAD)):
                break
            data += more
        text = self._readable_header(data[:end])
        if not text.strip():
            raise InputError(f"{self.name} is empty: expected a line with the columns' names, then rows.")
        # Spaces are no measure: names may be padded with them.
        require_width(self.name, 1 + max(text.count(sign) for sign in self._asked or DELIMITERS))
        self.delimiter = self._asked or self._likely_delimiter(data[: max(end, data.rfind(b"\n", 0, HEAD))])
        try:
            names = next(self._reader(self._tidied(text.encode()).decode()))
        except csv.Error as error:
            raise InputError(f"{self.name}, line 1: {reworded(error)}.") from None
        require_width(self.name, len(names))
        header, numbers = self._source.header, [name for name in names if number_style([name]) is not None]
        if header is None:
            # "?" and "NA" are no names; an empty one is that of an index, beside years.
            header = not numbers or any(
                name not in numbers and not (name.strip() and is_missing(name)) for name in names
            )
        if header:
            feed.put_back(data[end:])
            self.columns, self.notes = distinct_names(names)
            if numbers and self._source.header is None:
                self.notes.append(f"names are in the first line, though it has {listed(numbers)} (header)")
            return 1 + text.count("\n")
        feed.put_back(data)
        self.columns = [f"c{i}" for i in range(1, len(names) + 1)]
        self.notes = [f"no header: columns are called c1 to c{len(names)}"]
        return 1

    def _first_end(self, data: bytes) -> int:
        """Where the first record ends; names in quotes may hold a line break."""
        at = 0
        for start, stop in _quoted_fields(data, (self._asked or DELIMITERS).encode(), self.quote.encode()):
            if (found := data.find(b"\n", at, start)) >= 0:
                return found + 1
            at = stop
        return data.find(b"\n", at) + 1

    def _likely_delimiter(self, text: bytes) -> str:
        """The sign that delimits the first rows best, so that "1,5;2,5" is two numbers; spaces come last.

        That is the one by which most rows have as many fields as the first; which leaves the fewest others
        and quotes in the fields, but for those in numbers; which makes most numbers, then most fields.
        """
        scores = {sign: self._fit(sign, text) for sign in DELIMITERS + " "}
        return max(scores, key=scores.__getitem__)

    def _fit(self, sign: str, text: bytes) -> tuple[float, ...]:
        """How well a sign delimits, as said above."""
        self.delimiter = sign
        first, *rows = self._first_rows(self._tidied(text).decode("utf-8", "replace")) or [[]]
        if len(first) < 2 or (sign == " " and b"\t" in text.partition(b"\n")[0]):
            return (0.0,)
        alike = [first, *(row for row in rows if len(row) == len(first))]
        if sign == " " and rows and len(alike) == 1:  # a name of several words above one column
            return (0.0,)
        cells = [cell for row in alike for cell in row]
        others = {*DELIMITERS, self.quote} - {sign}
        are_numbers = [number_style([cell]) is not None for cell in cells]
        clean = sum(n or others.isdisjoint(cell) for n, cell in zip(are_numbers, cells, strict=True))
        share = (len(alike) - 1) / len(rows) if rows else 1.0
        fields = len(first) if sign != " " else 1
        return min(share, MOST), clean / len(cells), sum(are_numbers) / len(alike), fields

    def _first_rows(self, text: str) -> list[list[str]]:
        """The fields of some rows, one of what is none."""
        rows: list[list[str]] = []
        reader = self._reader(text)
        while len(rows) < LINES:
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error:
                row = ["no row"]
            rows += [row] if any(map(str.strip, row)) else []
        return rows

    def _tidied(self, data: bytes) -> bytes:
        if self.delimiter != " ":
            return data
        data = RUNS_OF_SPACES.sub(lambda run: run[0] if run[0].startswith(b'"') else b" ", data)
        return ENDS_OF_LINES.sub(b"", data)

    # ---- records

    def _end(self, data: bytes) -> int:
        if self.quote.encode() not in data:
            return data.rfind(b"\n") + 1
        layout = Layout(data, self.delimiter, self.quote)
        return int(layout.ends[-1]) + 1 if len(layout.ends) else 0

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        reader = self._reader(data.decode("utf-8"))
        lines: list[bytes] = []
        while True:
            start = line + reader.line_num
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = InputError(f"{self.name}, line {start}: {reworded(error)}.")
                # A quote that is not closed as it should be costs its own line, and not those behind it.
                lines = lines or data.split(b"\n")
                yield Record(start, self._despite_quotes(lines[start - line].decode()), problem)
                for place in range(start - line + 1, reader.line_num):
                    yield from self._records(lines[place], line + place)
                continue
            if row and not (len(row) == 1 and len(self.columns) > 1 and not row[0].strip()):
                yield self._record(start, row)

    def _despite_quotes(self, line: str) -> list[str]:
        """The cells of a line whose quotes are not as they should be, as far as they can be told apart."""
        cells: list[str] = []
        with contextlib.suppress(csv.Error):
            cells = next(self._reader(line, strict=False), [])
        if len(cells) != len(self.columns):
            without = [cell.strip(f" \r{self.quote}") for cell in line.split(self.delimiter)]
            cells = without if len(without) == len(self.columns) else cells[:-1]
        return cells

    def _record(self, line: int, row: list[str]) -> Record:
        """With a complaint, if it has a wrong number of fields."""
        if len(row) == len(self.columns):
            return Record(line, row)
        hint = "" if len(row) > 1 else ": is it cut off, or delimited otherwise?"
        what = f"{len(row)} field(s), expected the header's {len(self.columns)}{hint}"
        return Record(line, row, InputError(f"{self.name}, line {line}: {what}"))

    def _reader(self, text: str, *, strict: bool = True) -> Any:
        return csv.reader(
            io.StringIO(text, newline="\n"),
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
            strict=strict,
        )

    # ---- at once

    def _at_once(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk | None:
        layout = Layout(data, self.delimiter, self.quote)
        if not layout.tidy:
            return None
        styles = [c.style for c in wanted if c.kind == "number"]
        style = max(PLAIN, NumberStyle(","), key=styles.count)
        as_numbers = {c.name for c in wanted if _is_plain(c, style)}
        table = self._parsed(data, layout, wanted, as_numbers, style.decimal)
        if table is None and as_numbers:  # one of them is no number
            table = self._parsed(data, layout, wanted, set())
        lines = line + layout.lines
        if table is None or table.num_rows != len(lines):
            return None
        columns: dict[str, Values] = {}
        faults: list[Fault] = []
        for column in wanted:
            values, bad = column_of(table[column.name], column)
            columns[column.name] = values
            faults += bad
        known: dict[int, list[str]] = {}

        def cell(row: int, name: str) -> str:
            if row not in known:
                known.clear()
                start, stop = layout.records[row]
                try:
                    known[row] = next(self._reader(data[start:stop].decode("utf-8")))
                except csv.Error:  # pyarrow reads fields of any length
                    known[row] = [data[start:stop].decode("utf-8")] * len(self.columns)
            return known[row][list(self.columns).index(name)]

        return settled(Chunk(lines, columns, cell=cell), faults, self.where, tally)

    def _parsed(
        self,
        data: bytes,
        layout: Layout,
        wanted: Sequence[ColumnFormat],
        as_numbers: set[str],
        decimal: str = ".",
    ) -> Any:
        """A table of pyarrow, texts as dictionaries; None if it cannot be had."""
        pa, reading = arrow("pyarrow"), arrow("pyarrow.csv")
        text, number = pa.dictionary(pa.int32(), pa.string()), pa.float64()
        gaps = set.intersection(*({*column.na_values} for column in wanted)) if wanted else set()
        try:
            return reading.read_csv(
                pa.BufferReader(data),
                read_options=reading.ReadOptions(
                    use_threads=False, column_names=self.columns, block_size=len(data) + 1
                ),
                parse_options=reading.ParseOptions(
                    delimiter=self.delimiter, quote_char=self.quote, newlines_in_values=layout.broken
                ),
                convert_options=reading.ConvertOptions(
                    include_columns=[c.name for c in wanted],
                    column_types={c.name: number if c.name in as_numbers else text for c in wanted},
                    null_values=[*NULLS, *gaps],
                    decimal_point=decimal,
                ),
            )
        except (pa.ArrowException, ValueError, KeyError):
            return None


class Layout:
    """Where the records of a piece end, on which of its lines each begins, and whether quotes are plain."""

    def __init__(self, data: bytes, delimiter: str, quote: str) -> None:
        view = np.frombuffer(data, dtype=np.uint8)
        breaks = np.flatnonzero(view == NEWLINE)
        self.tidy: bool = _returns_are_plain(data, view)
        self.broken: bool = False
        """Whether a quoted field holds a line break."""
        self.ends: NDArray[np.intp] = breaks
        if quote.encode() in data:
            outside = self._outside(data, view, breaks, delimiter, quote)
            self.broken = not bool(outside.all())
            self.ends = breaks[outside]
        self._data, self._view, self._breaks = data, view, breaks

    @cached_property
    def _spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Where each record starts and stops, and whether there is something in it."""
        starts = np.concatenate([[0], self.ends + 1])
        stops = np.concatenate([self.ends, [len(self._data)]])
        lengths = stops - starts
        blank = lengths == 0
        short = np.flatnonzero(lengths == 1)
        blank[short] = self._view[starts[short]] == RETURN
        return starts, stops, ~blank

    @cached_property
    def records(self) -> NDArray[np.int64]:
        """(start, stop) of each record that is not blank."""
        starts, stops, filled = self._spans
        return np.column_stack([starts[filled], stops[filled]])

    @property
    def lines(self) -> NDArray[np.int64]:
        """For each record that is not blank, the line it begins on, counted from 0."""
        starts, _, filled = self._spans
        if len(self._breaks) == len(self.ends):
            return np.flatnonzero(filled)
        return np.searchsorted(self._breaks, starts[filled]).astype(np.int64)

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
        spans = np.array(list(_quoted_fields(data, delimiter.encode(), quote.encode())) or [(0, 0)])
        before, after = np.searchsorted(spans[:, 0], breaks), np.searchsorted(spans[:, 1], breaks)
        return np.asarray(before == after)


def _returns_are_plain(data: bytes, view: NDArray[np.uint8]) -> bool:
    """Whether carriage returns stand at the ends of lines only: pyarrow takes others for ends as well."""
    if b"\r" not in data:
        return True
    after = np.flatnonzero(view == RETURN) + 1
    return bool(after[-1] < len(view) and (view[after] == NEWLINE).all())


def _quoted_fields(data: bytes, delimiters: bytes, quote: bytes) -> Iterator[tuple[int, int]]:
    """(start, stop) of every field in quotes; a quote inside another field is a letter."""
    starts = delimiters + b"\r\n"
    at = 0
    while (start := data.find(quote, at)) >= 0:
        before = start - 1
        while before >= at and data[before] == SPACE and SPACE not in delimiters:
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


def _is_plain(column: ColumnFormat, style: NumberStyle) -> bool:
    """Whether pyarrow, which knows one decimal sign at a time, can read its cells as numbers."""
    if column.kind == "date":
        return column.order in EPOCHS or column.order == "yyyymmdd"
    return column.kind == "number" and column.style == style


def reworded(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text or "field larger" in text:
        return "a quote is opened and never closed"
    if "expected after" in text:
        return "a quote is closed and text follows"
    if "new-line" in text:
        return "a carriage return within the line: save the file with ordinary line ends"
    return text
