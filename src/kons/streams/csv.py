"""A plain reader of CSV files that hold numbers: all rows at once, every complaint with its line.

Comma, semicolon or tab, as the header shows; gzip, by its first bytes; UTF-8 with or without a mark. What
is not a number is refused, not guessed: the message names the file, the line, the column and what was seen.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError, InputError

__all__ = ["CsvTable", "csv_columns", "read_csv"]

DELIMITERS = ",;\t"
LONGEST_LINE = 1 << 24  # bytes; a "line" beyond is not text
REPORT_EVERY = 4096
MISSING = {"", "-", "?", "n/a", "na", "nan", "nil", "none", "null"}


@dataclass(frozen=True, eq=False)
class CsvTable:
    """Rows of numbers with their names: ``X`` one column a feature, ``y`` the target."""

    features: tuple[str, ...]
    target: str
    X: Matrix = field(repr=False)
    y: Vector = field(repr=False)

    def __len__(self) -> int:
        return len(self.y)


def csv_columns(path: str | Path) -> list[str]:
    """The names in the header, in order; a column without a name is called ``column 3``."""
    with _Lines(path) as lines:
        return lines.columns


def read_csv(
    path: str | Path,
    target: str,
    *,
    drop: Sequence[str] = (),
    rows: int | None = None,
    tell: Callable[[int], object] | None = None,
) -> CsvTable:
    r"""Read the columns of a file with a header: ``target`` as y, all but ``drop`` as X.

    At most the first ``rows``, if given. ``tell`` is called now and then with the number of rows read.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "heights.csv")
    ...     _ = file.write_text("age;height\n1;0.75\n2;0.86\n")
    ...     table = read_csv(file, "height")
    >>> table.features, table.X.tolist(), table.y.tolist()
    (('age',), [[1.0], [2.0]], [0.75, 0.86])
    """
    with _Lines(path) as lines:
        columns = lines.columns
        for name in (target, *drop):
            if name not in columns:
                raise ConfigurationError(f"{lines.name} has no column {name!r}{_nearest(name, columns)}")
        if target in drop:
            raise ConfigurationError(f"column {target!r} is the target: it cannot be dropped as well.")
        features = [name for name in columns if name != target and name not in drop]
        if not features:
            raise InputError(f"{lines.name} has no column left to predict {target!r} from.")
        wanted = [*features, target]
        at = [columns.index(name) for name in wanted]
        numbers, starts = array("d"), array("q")
        for line, row in lines.rows():
            if rows is not None and len(starts) == rows:
                break
            texts = [row[i] for i in at]
            try:
                values = [float(text) for text in texts]
            except ValueError:
                lines.refuse(line, wanted, texts, target)
            if "_" in "".join(texts):  # float() reads 1_2 as 12
                lines.refuse(line, wanted, texts, target)
            numbers.extend(values)
            starts.append(line)
            if tell is not None and len(starts) % REPORT_EVERY == 0:
                tell(len(starts))
        if not starts:
            raise InputError(f"{lines.name} has a header and no rows; expected at least one.")
        table = np.frombuffer(numbers, dtype=np.float64).reshape(len(starts), len(wanted))
        odd = np.argwhere(~np.isfinite(table))
        if len(odd):
            i, j = odd[0]
            lines.refuse(starts[i], wanted[j : j + 1], [str(table[i, j])], target)
    return CsvTable(tuple(features), target, np.ascontiguousarray(table[:, :-1]), table[:, -1].copy())


class _Lines:
    """An open file: its header, its rows with the line each began on, and what is wrong with them."""

    def __init__(self, path: str | Path) -> None:
        self.name = str(path)
        self._raw = self._open(Path(path))
        try:
            self._file = self._readable()
            self.columns, self._reader = self._header()
        except BaseException:
            self._raw.close()
            raise

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """(first line, fields) of every row that is not empty."""
        while True:
            line = self._reader.line_num + 2  # the header is not the reader's
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise InputError(f"{self.name}, line {line}: {_reworded(error)}.") from None
            if not row or (len(row) == 1 and not row[0].strip() and len(self.columns) > 1):
                continue
            if len(row) != len(self.columns):
                raise InputError(
                    f"{self.name}, line {line}: {len(row)} field(s), expected the header's "
                    f"{len(self.columns)}{'' if len(row) > 1 else ': is it cut off, or delimited otherwise?'}"
                )
            yield line, row

    def refuse(self, line: int, columns: Sequence[str], texts: Sequence[str], target: str) -> NoReturn:
        """Say which of the fields is not a finite number, and what can be done."""
        for column, text in zip(columns, texts, strict=True):
            problem = _problem_with(text.strip())
            if problem is not None:
                drop = "" if column == target else f", or drop the column (--drop {_shortened(column)!r})"
                remedy = problem[1] + drop
                where = f"{self.name}, line {line}, column {_shortened(column)!r}"
                raise InputError(f"{where}: {_shortened(text)!r} {problem[0]}: {remedy}.")
        raise AssertionError("every field is a number")  # pragma: no cover

    def _open(self, path: Path) -> BinaryIO:
        try:
            return path.open("rb")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.name}: cannot be read ({reason}).") from None

    def _readable(self) -> BinaryIO | gzip.GzipFile:
        """The bytes behind a compression, found without reading a pipe twice."""
        first = self._raw.peek(2)[:2] if isinstance(self._raw, BufferedReader) else b""
        return gzip.GzipFile(fileobj=self._raw) if first == b"\x1f\x8b" else self._raw

    def _header(self) -> tuple[list[str], Any]:
        """The names, and a reader of the rest in their dialect."""
        text = next(self._text(1), None)
        if text is None or not text.strip():
            raise InputError(f"{self.name} is empty: expected a line with the columns' names, then rows.")
        # Names in quotes may hold any of the delimiters.
        outside = "".join(text.split('"')[::2])
        delimiter = max(DELIMITERS, key=outside.count)
        try:
            names = next(csv.reader([text], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise InputError(f"{self.name}, line 1: {_reworded(error)}.") from None
        columns = [name.strip() or f"column {i}" for i, name in enumerate(names, start=1)]
        if all(_is_number(name) for name in columns):
            raise InputError(f"{self.name}, line 1: numbers only, expected a header with the columns' names.")
        twice = next((name for name, count in Counter(columns).items() if count > 1), None)
        if twice is not None:
            raise InputError(f"{self.name}, line 1: two columns are called {_shortened(twice)!r}.")
        return columns, csv.reader(self._text(2), delimiter=delimiter, strict=True)

    def _text(self, first: int = 1) -> Iterator[str]:
        """Lines as text, from here on."""
        line = first
        while True:
            try:
                raw = self._file.readline(LONGEST_LINE)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"{self.name}, line {line}: cannot be read on ({error}).") from None
            if not raw:
                return
            if line == 1 and raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise InputError(f"{self.name} is UTF-16 text: save it as UTF-8.")
            if b"\0" in raw or len(raw) == LONGEST_LINE:
                raise InputError(f"{self.name}, line {line}: not text, but binary data.")
            try:
                yield raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(f"{self.name}, line {line}: not UTF-8 text: save it as UTF-8.") from None
            line += 1


def _problem_with(text: str) -> tuple[str, str] | None:
    """What is wrong with a field, and the remedy; None for a finite number."""
    if text.lower() in MISSING:
        return "is a missing value", "fill it, delete the row"
    if _is_number(text):
        return None if np.isfinite(float(text)) else ("is not finite", "correct it, delete the row")
    if _is_number(text.replace(",", ".", 1)):
        return "is not a number", "write decimals with a point"
    return "is not a number", "encode it as a number"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _nearest(name: str, columns: Sequence[str]) -> str:
    folded = {column.casefold(): column for column in columns}
    near = get_close_matches(name.casefold(), folded, n=1)
    return f": did you mean {folded[near[0]]!r}?" if near else f"; its columns are {listed(columns)}."


def listed(columns: Sequence[str], most: int = 20) -> str:
    """Names for a message: the first ones, and how many more."""
    more = f" and {len(columns) - most:,} more" if len(columns) > most else ""
    return ", ".join(_shortened(name) for name in columns[:most]) + more


def _shortened(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _reworded(error: csv.Error) -> str:
    text = str(error)
    if "unexpected end of data" in text or "field larger" in text:
        return "a quote is opened and never closed"
    if "expected after" in text:
        return "a quote is closed and text follows"
    if "new-line" in text:
        return "a carriage return within the line: save the file with ordinary line ends"
    return text
