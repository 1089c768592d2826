"""JSON, one object a line or a list of objects: keys are columns, one that is absent is a missing value."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import numpy as np

from kons.errors import InputError
from kons.streams.arrow import column_of
from kons.streams.bytes import LONGEST, PIECE, Feed, Source, as_utf8, pieces
from kons.streams.chunks import Chunk, Fault, Tally, Values, settled
from kons.streams.reader import MOST_COLUMNS, require_width
from kons.streams.text import Record, TextReader, arrow
from kons.streams.wording import shortened
from kons.tables.cells import PLAIN, ColumnFormat
from kons.tables.moments import EPOCHS

__all__ = ["JsonLinesReader"]

LOOK = 1000


class JsonLinesReader(TextReader):
    """Columns are the keys of all objects, which a file is looked through for; in a pipe, of the first 1,000.

    Rows of a list are counted, lines elsewhere. One object may have 16 MB of text.
    """

    typed = True

    def __init__(self, source: Source) -> None:
        arrow("pyarrow.json")
        self.columns: Sequence[str] = ()
        super().__init__(source)

    def _open(self) -> Feed:
        feed = super()._open()
        head, first = bytearray(), b""
        while not first and len(head) < LONGEST and (more := feed.read()):
            head += more
            first = more.lstrip()[:1]
        feed.put_back(bytes(head))
        if first != b"[":
            return feed
        self.unit = "row"
        return ListFeed(feed, self.name)

    def _header(self, feed: Feed) -> int:
        if self.columns:
            return 1
        keys: dict[str, None] = {}
        taken: list[bytes] = []
        problem: InputError | None = None
        count, length, most = 0, 0, 1 if self._source.live else LOOK
        source = pieces(feed, self.name, 1, self._end)
        for data, line in source:
            taken.append(data)
            length += len(data)
            for _, found in self._objects(self._readable(data, line), line):
                if isinstance(found, InputError):
                    problem = problem or found
                else:
                    keys.update(dict.fromkeys(found))
                    require_width(self.name, len(keys))
                    count += 1
                if count >= most:
                    break
            if count >= most or length > 4 * LONGEST or (count and feed.pauses()):
                break
        if self.resumable:  # the feed is closed, and opened anew
            with suppress(InputError):  # which is told when its row comes
                for data in chain(taken[-1:], (data for data, _ in source)):
                    for part in _thousands(as_utf8(data)[0]):
                        keys.update(dict.fromkeys(self._keys(part)))
                    if len(keys) > MOST_COLUMNS:
                        break
        source.close()
        require_width(self.name, len(keys))
        feed.put_back(b"".join(taken))
        if not keys:
            raise problem or InputError(
                f"{self.name} is empty: expected lines with a JSON object each, such as {{...}}."
            )
        self.columns = list(keys)
        return 1

    def _keys(self, data: bytes) -> list[str]:
        """Of some objects."""
        pa, reading = arrow("pyarrow"), arrow("pyarrow.json")
        options = reading.ReadOptions(use_threads=False, block_size=len(data) + 1)
        try:
            return list(reading.read_json(pa.BufferReader(data), read_options=options).column_names)
        except (pa.ArrowException, ValueError):
            return [key for _, found in self._objects(data, 1) if isinstance(found, dict) for key in found]

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
                yield number, InputError(f"{self.where(number)}: {seen!r} is not a JSON object.")
                continue
            if isinstance(found, dict):
                yield number, found
            else:
                yield (
                    number,
                    InputError(
                        f"{self.where(number)}: a JSON {type(found).__name__}, expected an object "
                        'such as {"a": 1}.'
                    ),
                )

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        for number, found in self._objects(data, line):
            if isinstance(found, InputError):
                yield Record(number, [], found)
            else:
                yield Record(number, [found.get(c) for c in self.columns])

    def _at_once(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk | None:
        pa, reading = arrow("pyarrow"), arrow("pyarrow.json")
        types = {"number": pa.float64(), "flag": pa.bool_(), "text": pa.string(), "date": pa.string()}
        schema = pa.schema(
            [
                (c.name, pa.float64())
                if c.order in EPOCHS and c.kind == "date"
                else (c.name, types[c.kind if c.style == PLAIN else "text"])
                for c in wanted
            ]
        )
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
        faults: list[Fault] = []
        for column in wanted:
            columns[column.name], bad = column_of(table[column.name], column)
            faults += bad

        def cell(row: int, name: str) -> Any:
            return json.loads(texts[int(lines[row]) - line]).get(name)

        return settled(Chunk(lines, columns, cell=cell), faults, self.where, tally)


def _thousands(data: bytes) -> Iterator[bytes]:
    """A thousand lines at a time: a table of objects with a key of their own each is as wide as long."""
    at = 0
    for found in islice(re.finditer(rb"\n", data), LOOK - 1, None, LOOK):
        yield data[at : found.end()]
        at = found.end()
    yield data[at:]


BETWEEN = re.compile(r"[\s,]*")


class ListFeed(Feed):
    """The elements of a JSON list, one a line.

    An element whose end has not come yet is tried again when twice as much of it has, so that n bytes cost
    n log n at most.
    """

    def __init__(self, feed: Feed, name: str) -> None:
        self._feed, self._name = feed, name
        self._decode = json.JSONDecoder(strict=False).raw_decode
        # Bytes that are no UTF-8 are handed on as they are.
        self._decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = ""
        self._back = b""
        self._count = 0
        self._opened = self._closed = False
        self._problem: InputError | None = None

    @property
    def done(self) -> int:  # type: ignore[override]
        return self._feed.done

    @property
    def is_packed(self) -> bool:  # type: ignore[override]
        return self._feed.is_packed

    def pauses(self) -> bool:
        return not self._back and self._feed.pauses()

    def read(self, size: int = PIECE) -> bytes:
        if self._back:
            data, self._back = self._back, b""
            return data
        self._complain()
        out: list[str] = []
        while not out and not self._closed:
            more = self._more(max(size, len(self._text)))
            self._text += more
            at = 0
            if not self._opened:
                at = len(self._text) - len(self._text.lstrip()) + 1
                self._opened = True
            at = self._elements(out, at, ended=not more)
            self._text = self._text[at:]
            if not out:
                self._complain()
        return "".join(out).encode("utf-8", "surrogateescape")

    def close(self) -> None:
        self._feed.close()

    def _complain(self) -> None:
        """What is wrong with the list, once the elements before are handed on."""
        if self._problem is not None:
            raise self._problem

    def _more(self, size: int) -> str:
        """At least so many bytes as text, unless they end; none at the end only."""
        parts, length = [b""], 0
        while length < size:
            parts.append(self._feed.read(size))
            length += len(parts[-1])
            if not parts[-1]:
                break
        return self._decoder.decode(b"".join(parts), final=not parts[-1])

    def _elements(self, out: list[str], at: int, *, ended: bool) -> int:
        """Take whole elements from the text on; where the rest begins."""
        text = self._text
        while True:
            found = BETWEEN.match(text, at)
            at = found.end() if found else at
            if at < len(text) and text[at] == "]":
                self._closed = True
                if text[at + 1 :].strip():
                    self._problem = InputError(f"{self._name}: text follows the end of the JSON list.")
                return at
            try:
                if at == len(text):
                    raise ValueError
                _, end = self._decode(text, at)
                # A number may go on in the next piece.
                if end == len(text) and not ended:
                    raise ValueError
            except (ValueError, RecursionError) as error:
                if ended or len(text) - at > LONGEST or isinstance(error, RecursionError):
                    self._closed = True
                    seen = shortened(text[at : at + 200])
                    what = f"{seen!r} is not a JSON object, and nothing behind it can be read"
                    if at == len(text):
                        what = "the JSON list has no end: is the file cut off?"
                    self._problem = InputError(f"{self._name}, row {self._count + 1:,}: {what}.")
                return at
            self._count += 1
            out.append(text[at:end].replace("\n", " ").replace("\r", " ") + "\n")
            at = end
