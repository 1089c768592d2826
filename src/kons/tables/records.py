"""Rows by column name, whoever has them: dicts, a frame, the chunk of a file."""

from __future__ import annotations

import datetime
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from kons.arrays import Matrix
from kons.errors import InputError, MissingExtraError, notice
from kons.tables.dates import NOT_A_TIME

__all__ = ["DictRecords", "Records", "TypedRecords", "is_table", "kind_of", "records_of", "typed"]

# What other libraries write for a value that is not there, by name: none has to be imported.
_ABSENT = ("NAType", "NaTType", "MaskedConstant")


class Records(ABC):
    """Rows whose columns have names; values are asked for by column, all rows at once."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, name: Any, kind: str) -> Any:
        """A column as a kind: numbers (NaN), moments (the smallest integer), texts (None where missing)."""

    @abstractmethod
    def columns_at(self, row: int) -> dict[Any, str]:
        """The columns that have a value in a row, in an order of their own, and the kind of each."""

    @abstractmethod
    def first_new(self, known: Container[Any], start: int) -> dict[Any, int]:
        """The first row from ``start`` on with a value, of each column that is not among the known ones."""

    def rest(self, start: int) -> Records:
        """Those from one on."""
        raise NotImplementedError

    @staticmethod
    def of(rows: Iterable[Mapping[Any, Any]]) -> Records:
        """Of dicts."""
        return DictRecords(list(rows))


class DictRecords(Records):
    """Dicts: feature -> number, boolean, text or date; None, NaN and a key that is not there are gaps."""

    def __init__(self, rows: Sequence[Mapping[Any, Any]]) -> None:
        for row in rows:
            given: Any = row
            if not isinstance(given, Mapping):
                hint = ": use x.to_dict()" if hasattr(row, "to_dict") else ""
                raise InputError(f"x is a {type(row).__name__}, expected a dict: column -> value{hint}.")
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def values(self, name: Any, kind: str) -> Any:
        return typed(
            [row.get(name) if type(row) is dict else dict(row).get(name) for row in self._rows], kind, name
        )

    def columns_at(self, row: int) -> dict[Any, str]:
        found = {name: kind_of(value, name) for name, value in self._rows[row].items()}
        there = {name: kind for name, kind in found.items() if kind is not None}
        return _sorted(there)

    def first_new(self, known: Container[Any], start: int) -> dict[Any, int]:
        first: dict[Any, int] = {}
        for i in range(start, len(self._rows)):
            for name, value in self._rows[i].items():
                if name not in known and name not in first and kind_of(value, name) is not None:
                    first[name] = i
        return first


class ArrayRecords(Records):
    """Rows of an array, whose columns are known by their number; NaN is a gap."""

    def __init__(self, X: Matrix) -> None:
        self._X = X

    def __len__(self) -> int:
        return len(self._X)

    def values(self, name: Any, kind: str) -> Any:
        return np.ascontiguousarray(self._X[:, name])

    def columns_at(self, row: int) -> dict[Any, str]:
        return dict.fromkeys(range(self._X.shape[1]), "number")

    def first_new(self, known: Container[Any], start: int) -> dict[Any, int]:
        return {}


class TypedRecords(Records):
    """Columns that have their kinds already, as :func:`typed` makes them."""

    def __init__(self, columns: Mapping[Any, Any], kinds: Mapping[Any, str], rows: int) -> None:
        self._columns, self._kinds, self._count = columns, kinds, rows

    def __len__(self) -> int:
        return self._count

    def values(self, name: Any, kind: str) -> Any:
        if name not in self._columns:
            return typed([None] * self._count, kind, name)
        if _alike(kind, self._kinds[name]):
            return self._columns[name]
        return typed([_single(value) for value in self._columns[name]], kind, name)

    def rest(self, start: int) -> Records:
        columns = {name: each[start:] for name, each in self._columns.items()}
        return TypedRecords(columns, self._kinds, self._count - start)

    def columns_at(self, row: int) -> dict[Any, str]:
        kinds = self._kinds
        return {n: kinds[n] for n, each in self._columns.items() if known(each[row : row + 1], kinds[n])[0]}

    def first_new(self, known_names: Container[Any], start: int) -> dict[Any, int]:
        first = {}
        for name, each in self._columns.items():
            if name not in known_names and (there := known(each[start:], self._kinds[name])).any():
                first[name] = start + int(there.argmax())
        return first


def known(values: Any, kind: str) -> Any:
    """Which of the values of a column are there."""
    if kind == "text":
        return np.array([value is not None for value in values], dtype=bool)
    return values != NOT_A_TIME if kind == "date" else ~np.isnan(values)


def _alike(kind: str, other: str) -> bool:
    return kind == other or {kind, other} == {"number", "flag"}


def _single(value: Any) -> Any:
    """A value of a typed column by itself."""
    if isinstance(value, np.integer):
        return None if value == NOT_A_TIME else np.datetime64(int(value), "us")
    return value


def _sorted(columns: dict[Any, str]) -> dict[Any, str]:
    """In an order that is not that of a dict or a file: permuted columns are the same columns."""
    return dict(sorted(columns.items(), key=lambda pair: (pair[1], type(pair[0]).__name__, str(pair[0]))))


def is_table(X: Any) -> bool:
    """Whether rows have names: a frame, a dict, or a list of dicts."""
    if isinstance(X, np.ndarray):
        return False
    if isinstance(X, (list, tuple)):
        return bool(X) and isinstance(X[0], Mapping)
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "collect_schema")


def records_of(X: Any, known: Mapping[Any, Any] | None = None) -> Records:
    """The rows of a frame, of dicts, or of an array; a frame must have the columns that are known."""
    if isinstance(X, np.ndarray):
        return ArrayRecords(X)
    if isinstance(X, Mapping):
        return DictRecords([X])
    if isinstance(X, (list, tuple)):
        return DictRecords(X)
    return _of_frame(X, known or {})


def _of_frame(X: Any, known: Mapping[Any, Any]) -> TypedRecords:
    if hasattr(X, "collect"):
        raise InputError(f"X is a {type(X).__name__}, expected its rows: use X.collect().")
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtraError(f"X, a {type(X).__name__},", "frames") from None
    try:
        frame = nw.from_native(X, eager_only=True)
        names = list(frame.columns)
    except Exception as error:  # whatever the frame's own library thinks of it
        raise InputError(
            f"X is a {type(X).__name__} that cannot be read ({str(error).splitlines()[0]})."
        ) from None
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"X has the column {twice[0]!r} more than once, expected each name once.")
    if missing := [name for name in known if name not in names]:
        others = [name for name in names if name not in known]
        renamed = f": was {others[0]!r} renamed?" if others else "."
        raise InputError(f"X has no column {missing[0]!r}, which the model has learned from{renamed}")
    columns, kinds = {}, {}
    for name in names:
        values, kind = _of_series(frame[name], name, nw)
        if kind is not None:
            columns[name], kinds[name] = values, kind
    return TypedRecords(columns, kinds, len(frame))


def _of_series(series: Any, name: Any, nw: Any) -> tuple[Any, str | None]:
    """A column of a frame as its type says; one of objects as its first value does."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        if series.null_count() or dtype == nw.Decimal:
            series = series.cast(nw.Float64)
        values = np.asarray(series.to_numpy()).astype(np.float64)
        if np.isinf(values).any():
            raise InputError(
                f"the column {name!r} holds infinity, expected finite numbers: drop the row, or clip it."
            )
        return values, "number"
    if dtype in (nw.Datetime, nw.Date) and getattr(dtype, "time_zone", None) is None:
        return np.asarray(series.to_numpy()).astype("datetime64[us]").view(np.int64), "date"
    values = series.to_list()
    kind = next((kind for value in values if (kind := kind_of(value, name)) is not None), None)
    return (None, None) if kind is None else (typed(values, kind, name), kind)


def kind_of(value: Any, name: Any) -> str | None:
    """What a single value makes of its column; None for a gap."""
    if value is None or type(value).__name__ in _ABSENT:
        return None
    if isinstance(value, (str, bytes)):
        return "text"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return kind_of(value.item(), name)
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else "date"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return "date"
    if isinstance(value, (numbers.Real, Decimal, np.bool_)):
        return None if value != value else "number"
    raise InputError(
        f"the column {name!r} is {value!r} ({type(value).__name__}), expected a number, a boolean, text or a "
        "date: turn it into one of these, or leave it out."
    )


def typed(values: Sequence[Any], kind: str, name: Any) -> Any:
    """Single values of a column as the kind that it is; what is of another kind is a gap, and told."""
    if kind == "text":
        return [_text(value, name) for value in values]
    if kind == "date":
        return np.array([_moment(value, name) for value in values], dtype=np.int64)
    return np.array([_number(value, name) for value in values], dtype=np.float64)


def _number(value: Any, name: Any) -> float:
    if type(value) is float:
        number = value
    else:
        kind = kind_of(value, name)
        if kind is None:
            return math.nan
        try:
            number = float(value) if kind == "number" else math.nan
            if kind == "text":
                number = float(value)
        except (OverflowError, ValueError):
            number = math.nan
        if kind != "number":
            _tell_other_kind(value, name, "a number")
    if math.isinf(number):
        raise InputError(
            f"the column {name!r} is {number}, expected a finite number: drop the value, or clip it."
        )
    return number


def _text(value: Any, name: Any) -> str | None:
    if type(value) is str:
        return value
    if kind_of(value, name) is None:
        return None
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _moment(value: Any, name: Any) -> int:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, (datetime.date, np.datetime64)) and kind_of(value, name):
        moment: Any = np.datetime64(value)
        return int(moment.astype("datetime64[us]").view(np.int64))
    if kind_of(value, name) is not None:
        _tell_other_kind(value, name, "a date")
    return NOT_A_TIME


def _tell_other_kind(value: Any, name: Any, expected: str) -> None:
    notice(
        f"other kind {expected}",
        f"the column {name!r} holds {value!r}, and was {expected} so far: what reads as one is taken as one, "
        "the rest counts as missing. Told once.",
    )
