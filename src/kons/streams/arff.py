"""ARFF, the format of Weka: declared attributes, then rows delimited by commas, dense or sparse."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from kons.errors import InputError
from kons.streams.bytes import LONGEST, Feed, Source
from kons.streams.chunks import Chunk, Tally
from kons.streams.delimited import DelimitedReader, reworded
from kons.streams.reader import distinct_names, require_width
from kons.streams.text import Record
from kons.streams.wording import shortened
from kons.tables.cells import ColumnFormat

__all__ = ["ArffReader"]

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(.+)", re.I | re.S)
NUMBERS = ("numeric", "real", "integer")


class ArffReader(DelimitedReader):
    """Attributes declared as nominal or string are text; of numbers, what is not one is a bad cell."""

    quote = "'"
    columns: Sequence[str]
    notes: Sequence[str]
    categories: Sequence[str]

    def __init__(self, source: Source) -> None:
        super().__init__(source, ",")

    def _header(self, feed: Feed) -> int:
        names: list[str] = []
        texts: list[int] = []
        self._zeros: list[str] = []
        for number, data in _lines(feed, self.name):
            line = self._readable_header(data, number)
            word = line.split(None, 1)[0].lower() if line.strip() else ""
            if not word or word.startswith(("%", "@relation")):
                continue
            if word == "@data":
                break
            match = ATTRIBUTE.fullmatch(line.strip())
            if match is None:
                raise InputError(
                    f"{self.name}, line {number}: {shortened(line.strip())!r} is no @attribute name type; "
                    "expected the header of an ARFF file, up to @data."
                )
            name, kind = _unquoted(match[1]), match[2].strip()
            if not kind.lower().startswith((*NUMBERS, "date", "string", "{")):
                raise InputError(
                    f"{self.name}, line {number}: attribute {shortened(name)!r} is of type "
                    f"{shortened(kind)!r}, expected numeric, a list {{...}}, string or date."
                )
            if kind.startswith("{") or kind.lower().startswith("string"):
                texts.append(len(names))
            # What a sparse row leaves out is 0, or the first of the list.
            self._zeros.append(_first_of(kind) if kind.startswith("{") else "0")
            names.append(name)
            require_width(self.name, len(names))
        else:
            what = "is empty" if not names else "has no @data line"
            raise InputError(f"{self.name} {what}: expected an ARFF file.")
        if not names:
            raise InputError(f"{self.name} declares no @attribute before @data.")
        self.columns, self.notes = distinct_names(names)
        self.categories = [self.columns[place] for place in texts]
        return number + 1

    def _end(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def _records(self, data: bytes, line: int) -> Iterator[Record]:
        for number, text in enumerate(data.decode("utf-8").split("\n"), start=line):
            row = text.strip()
            if not row or row.startswith("%"):
                continue
            try:
                cells = self._sparse(row) if row.startswith("{") else _fields(row, ",")
            except (csv.Error, ValueError) as error:
                what = reworded(error) if isinstance(error, csv.Error) else f"{shortened(row)!r}: {error}"
                yield Record(number, [], InputError(f"{self.name}, line {number}: {what}."))
                continue
            yield self._record(number, [cell.strip() for cell in cells])

    def _at_once(self, data: bytes, line: int, wanted: Sequence[ColumnFormat], tally: Tally) -> Chunk | None:
        if any(sign in data for sign in (b"%", b"{", b'"', b"\\", b"\r")):
            return None
        return super()._at_once(data, line, wanted, tally)

    def _sparse(self, row: str) -> list[str]:
        if not row.endswith("}"):
            raise ValueError("a sparse row must end in '}'")
        cells = list(self._zeros)
        for entry in _fields(row[1:-1], ","):
            if not entry.strip():
                continue
            place, _, value = entry.strip().partition(" ")
            if not place.isdecimal() or int(place) >= len(cells):
                raise ValueError(f"attribute {shortened(place)} of {len(cells)}")
            cells[int(place)] = _unquoted(value.strip())
        return cells


def _lines(feed: Feed, name: str) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; what comes after the last one taken goes back into the feed."""
    rest, at, number = b"", 0, 0
    try:
        while True:
            if (end := rest.find(b"\n", at)) < 0:
                held, more = bytearray(rest[at:]), b""
                while b"\n" not in more and len(held) <= LONGEST and (more := feed.read()):
                    held += more
                rest, at = bytes(held), 0
                end = rest.find(b"\n")
                if end < 0 and len(rest) > LONGEST:
                    raise InputError(f"{name}, line {number + 1}: not text, but binary data.")
                end = len(rest) if end < 0 else end
            if at == len(rest):
                return
            line, at = rest[at:end], min(end + 1, len(rest))
            number += 1
            yield number, line
    finally:
        feed.put_back(rest[at:])


def _fields(text: str, delimiter: str) -> list[str]:
    single, double = text.find("'"), text.find('"')
    quote = '"' if double >= 0 and (single < 0 or double < single) else "'"
    reader = csv.reader(
        [text], delimiter=delimiter, quotechar=quote, escapechar="\\", skipinitialspace=True, strict=True
    )
    return next(reader, [])


def _first_of(kind: str) -> str:
    try:
        return _fields(kind.strip("{} \t\r"), ",")[0].strip()
    except (csv.Error, IndexError):
        return ""


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
