"""Sources in memory: frames, arrays, and iterators of (x, y) or of River-style (dict, y)."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import as_points
from kons.errors import InputError, MissingExtraError, notice
from kons.streams.chunks import Chunk, Tally, Texts, Values, from_cells
from kons.streams.reader import Reader
from kons.streams.wording import shortened
from kons.tables.cells import ColumnFormat

__all__ = ["FrameReader", "PairReader", "is_frame", "pair_reader"]

ROWS = 4096  # in a chunk


def is_frame(source: Any) -> bool:
    """Whether it looks like a table with named columns: pandas, polars, pyarrow and the like."""
    if hasattr(source, "collect_schema") or (hasattr(source, "column_names") and hasattr(source, "schema")):
        return True
    return hasattr(source, "columns") and (hasattr(source, "__dataframe__") or hasattr(source, "dtypes"))


def pair_reader(X: Any, y: Any, target: str | None) -> Reader:
    """The reader of a pair of all rows and all targets."""
    name = target or getattr(y, "name", None) or "y"
    if is_frame(X):
        return FrameReader(X, extra=(str(name), y))
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], Mapping):
        targets = _one_dimension(y, len(X)).tolist()
        return PairReader(list(zip(X, targets, strict=True)), target)
    points = as_points(X, gaps=True)
    return ArrayReader(points, _one_dimension(y, len(points)), str(name))


class _TableReader(Reader):
    """All rows are there, column by column; perhaps with a target beside them."""

    _rows: int
    _extra: NDArray[Any] | None = None
    """The target, where it is no column of the table."""

    @property
    def total_rows(self) -> int:
        return self._rows

    def look(self, rows: int) -> dict[str, list[Any]]:
        return {name: self._cells(name, slice(0, rows)) for name in self.columns}

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        for start in range(0, self._rows, ROWS):
            rows = slice(start, min(start + ROWS, self._rows))
            lines = np.arange(rows.start + 1, rows.stop + 1, dtype=np.int64)
            columns: dict[str, Values] = {}
            slow: list[ColumnFormat] = []
            for column in wanted:
                beside = self._extra is not None and column.name == self.implied_target
                values = None if beside else self._fast(column, rows)
                if values is None:
                    slow.append(column)
                else:
                    columns[column.name] = values
            chunk = Chunk(lines, columns, cell=partial(self._cell, start))
            if slow:
                cells = {column.name: self._cells(column.name, rows) for column in slow}
                part = from_cells(lines.tolist(), cells, slow, where=self.where, tally=tally)
                if len(part) < len(chunk):
                    chunk = chunk.chosen(np.isin(lines, part.lines))
                chunk = Chunk(part.lines, {**chunk.columns, **part.columns}, part.error, chunk.cell)
            yield chunk

    def fingerprint(self) -> dict[str, Any]:
        digest = blake2b(digest_size=16)
        step = max(1, self._rows // 1000)
        for name in self.columns:
            digest.update(repr((name, self._cells(name, slice(None, None, step)))).encode())
        return {"rows": self._rows, "columns": len(self.columns), "digest": digest.hexdigest()}

    def _cells(self, name: str, rows: slice) -> list[Any]:
        if self._extra is not None and name == self.implied_target:
            return list(self._extra[rows].tolist())
        return self._own_cells(name, rows)

    def _cell(self, first: int, row: int, name: str) -> Any:
        return self._cells(name, slice(first + row, first + row + 1))[0]

    def _own_cells(self, name: str, rows: slice) -> list[Any]:
        """Of a column of the table, as they stand."""
        raise NotImplementedError

    def _fast(self, column: ColumnFormat, rows: slice) -> Values | None:
        """The values by the table's own conversion; None where cells must be looked at one by one."""
        raise NotImplementedError


class ArrayReader(_TableReader):
    """X and y as arrays; NaN in X is a gap."""

    named = False

    def __init__(self, X: NDArray[np.float64], y: NDArray[Any], target: str) -> None:
        self.name: str = f"an array of {len(X):,} rows"
        self._X, self._extra, self._rows = X, y, len(X)
        self.implied_target: str | None = target
        names = [f"x{i}" for i in range(X.shape[1])]
        while target in names:
            names = [f"_{name}" for name in names]
        self.columns: Sequence[str] = [*names, target]

    def _own_cells(self, name: str, rows: slice) -> list[Any]:
        cells: list[Any] = self._X[rows, self.columns.index(name)].tolist()
        return cells

    def _fast(self, column: ColumnFormat, rows: slice) -> Values:
        return self._X[rows, self.columns.index(column.name)]


class FrameReader(_TableReader):
    """A frame of any library that narwhals knows."""

    def __init__(self, frame: Any, extra: tuple[str, Any] | None = None) -> None:
        try:
            import narwhals as nw
        except ImportError:
            raise MissingExtraError("reading a frame", "frames") from None
        self._nw = nw
        kind = type(frame).__name__
        try:
            self._frame = nw.from_native(frame, eager_only=True)
        except Exception:  # whatever the frame's library thinks of it
            raise InputError(
                f"the source is a {kind}, expected a table in memory: collect() a lazy one first."
            ) from None
        self.columns: list[str] = [str(name) for name in self._frame.columns]
        if len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise InputError(f"two columns of the {kind} are called {shortened(twice)!r}: rename one.")
        self.name: str = f"a {kind} of {len(self._frame):,} rows"
        self._rows = len(self._frame)
        self.categories: Sequence[str] = [str(name) for name in self._frame.columns if self._has_levels(name)]
        if extra is not None:
            target, y = extra
            self._extra = _one_dimension(y, len(self._frame))
            if target in self.columns:
                target = next(
                    name for i in itertools.count() if (name := f"target{i or ''}") not in self.columns
                )
            self.columns.append(target)
            self.implied_target: str | None = target
        if not self._rows:
            raise InputError(f"{self.name}: it has no rows, expected at least one.")

    def _has_levels(self, name: Any) -> bool:
        """Whether the column is declared to be of some texts; of numbers, it is read as these."""
        series = self._frame[name]
        if series.dtype not in (self._nw.Categorical, self._nw.Enum):
            return False
        return all(isinstance(level, str) for level in series.drop_nulls().unique().to_list())

    def _fast(self, column: ColumnFormat, rows: slice) -> Values | None:
        series = self._frame[column.name][rows.start : rows.stop]
        dtype = series.dtype
        if column.kind in ("number", "flag") and (dtype.is_numeric() or dtype == self._nw.Boolean):
            if series.null_count():
                if dtype == self._nw.Boolean:
                    return None
                series = series.cast(self._nw.Float64)
            try:
                return np.asarray(series.to_numpy()).astype(np.float64, copy=False)
            except (TypeError, ValueError):
                return None
        if (
            column.kind == "text"
            and not column.na_values
            and dtype in (self._nw.String, self._nw.Categorical, self._nw.Enum)
        ):
            try:
                return Texts.of(
                    [None if t is None or t != t or not t.strip() else t.strip() for t in series.to_list()]
                )
            except (TypeError, AttributeError):
                return None
        if column.kind == "date" and dtype == self._nw.Datetime and getattr(dtype, "time_zone", "") is None:
            return np.asarray(series.to_numpy()).astype("datetime64[us]").view(np.int64)
        return None

    def _own_cells(self, name: str, rows: slice) -> list[Any]:
        return list(self._frame[name][rows].to_list())


class PairReader(Reader):
    """An iterable of (x, y), where x is a sequence of numbers, a single one, or a dict by name."""

    named: bool
    columns: Sequence[str]

    def __init__(self, source: Iterable[Any], target: str | None) -> None:
        self._source = source
        self._rows: Iterator[Any] | None = None
        self._seen: list[Any] = []
        iterator = iter(source)
        self.resumable: bool = iterator is not source
        self.name: str = f"a {type(source).__name__}"
        if not self.resumable:
            self._rows = iterator
        self.implied_target: str | None = target or "y"
        self._opened = False

    def look(self, rows: int) -> dict[str, list[Any]]:
        source = self._rows if self._rows is not None else iter(self._source)
        pairs = list(itertools.islice(source, rows))
        if not self.resumable:
            self._seen = pairs
        if not pairs:
            raise InputError(f"{self.name}: it has no rows, expected pairs (x, y).")
        first = self._pair(pairs[0], 1)[0]
        self.named = self._by_name = isinstance(first, Mapping)
        if self._by_name:
            # A list can be looked through for keys that come late, an iterator cannot.
            known = self._source if isinstance(self._source, (list, tuple)) else pairs
            firsts = (pair[0] for pair in known if isinstance(pair, (tuple, list)) and pair)
            self._names: list[Any] = list(
                dict.fromkeys(k for x in firsts if isinstance(x, Mapping) for k in x)
            )
        else:
            self._names = list(range(len(_vector(first))))
        self._known_names = {*self._names}
        labels = [str(name) if self._by_name else f"x{name}" for name in self._names]
        while self.implied_target in labels:
            self.implied_target = f"target {self.implied_target}"
        self.columns = [*labels, str(self.implied_target)]
        cells: dict[str, list[Any]] = {name: [] for name in self.columns}
        for i, pair in enumerate(pairs, start=1):
            try:
                row = self._row(pair, i)
            except InputError:  # told, or skipped, when its turn comes
                continue
            for name, cell in zip(self.columns, row, strict=True):
                cells[name].append(cell)
        return cells

    def raw_chunks(self, wanted: Sequence[ColumnFormat], tally: Tally) -> Generator[Chunk, None, None]:
        if self.resumable:
            rows: Iterator[Any] = iter(self._source)
        else:
            if self._opened or self._rows is None:
                raise InputError(f"{self.name} was read already, and can be read only once.")
            self._opened = True
            rows, self._seen = itertools.chain(self._seen, self._rows), []
        places = {name: i for i, name in enumerate(self.columns)}
        number = 0
        while pairs := list(itertools.islice(rows, ROWS if self.resumable else 256)):
            table: list[list[Any]] = []
            lines: list[int] = []
            error: InputError | None = None
            for pair in pairs:
                number += 1
                try:
                    table.append(self._row(pair, number))
                except InputError as problem:
                    if tally.on_bad_row == "error":
                        error = problem
                        break
                    if not tally.keeps_broken(problem):
                        continue
                    table.append([None] * len(self.columns))
                lines.append(number)
            cells = {c.name: [row[places[c.name]] for row in table] for c in wanted}
            chunk = from_cells(lines, cells, wanted, where=self.where, tally=tally)
            chunk.error = chunk.error or error
            yield chunk

    def _pair(self, pair: Any, number: int) -> tuple[Any, Any]:
        if isinstance(pair, (str, bytes, Mapping)):
            raise InputError(f"{self.where(number)} is a {type(pair).__name__}, expected a pair (x, y).")
        try:
            x, y = pair
        except (TypeError, ValueError):
            seen = shortened(repr(pair))
            raise InputError(f"{self.where(number)} is {seen}, expected a pair (x, y).") from None
        return x, y

    def _row(self, pair: Any, number: int) -> list[Any]:
        x, y = self._pair(pair, number)
        y = y.item() if isinstance(y, np.generic) else y
        if isinstance(x, Mapping):
            if not self._by_name:
                raise InputError(f"{self.where(number)}: x is a dict, and was a sequence in the first row.")
            if not self._known_names.issuperset(x):
                new = next(name for name in x if name not in self._known_names)
                self._known_names |= x.keys()
                notice(
                    "late key",
                    f"{self.where(number)}: {new!r} is left out, since it came behind the first rows of an "
                    "iterator, which decide what columns there are: give a list. Told once.",
                )
            return [*map(x.get, self._names), y]
        if self._by_name:
            raise InputError(f"{self.where(number)}: x is no dict, and was one in the first row.")
        values = _vector(x)
        if len(values) != len(self._names):
            raise InputError(
                f"{self.where(number)}: x has {len(values)} value(s), "
                f"expected {len(self._names)} as in row 1."
            )
        return [*values, y]


def _vector(x: Any) -> list[Any]:
    if isinstance(x, np.ndarray):
        return list(x.ravel().tolist())
    if isinstance(x, (str, bytes)) or not hasattr(x, "__iter__"):
        return [x]
    return list(x)


def _one_dimension(y: Any, rows: int) -> NDArray[Any]:
    """One target or label per row, as they are."""
    if hasattr(y, "to_list") and not isinstance(y, np.ndarray):
        y = y.to_list()  # a series: its own missing values stay recognisable
    array = np.asarray(y)
    if array.dtype.kind in "US":
        array = np.asarray(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != rows:
        raise InputError(f"y has shape {array.shape}, expected one target per row of X: ({rows},).")
    return array
