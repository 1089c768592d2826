"""Rows by column name, whoever has them: dicts, a frame, the chunk of a file."""

from __future__ import annotations

import datetime
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from kons.arrays import Matrix
from kons.errors import InputError, MissingExtraError, notice
from kons.tables.cells import is_real
from kons.tables.moments import NOT_A_TIME

__all__ = [
    "ArrayRecords",
    "DictRecords",
    "Records",
    "TypedRecords",
    "as_number",
    "is_table",
    "kind_of",
    "record_to_keep",
    "records_of",
    "typed",
]

# What other libraries write for a value that is not there, by name: none has to be imported.
_ABSENT = ("NAType", "NaTType", "MaskedConstant")


Reads = Callable[[str], Any] | None
"""From a text as it stands in a file to a value, None for a gap; None: texts are texts."""


class Records(ABC):
    """Rows whose columns have names; values are asked for by column, all rows at once."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, name: Any, kind: str, read: Reads = None) -> Any:
        """A column as a kind: numbers (NaN), moments (the smallest integer), texts (None where missing).

        ``read`` makes values of texts as they stand in a file.
        """

    @abstractmethod
    def columns_at(self, row: int) -> dict[Any, str]:
        """The columns that have a value in a row, in an order of their own, and the kind of each."""

    def kind_at(self, name: Any, row: int) -> str:
        """The kind of a column that has a value in a row, by that value."""
        return self.columns_at(row)[name]

    @abstractmethod
    def first_new(self, known: Container[Any], start: int) -> dict[Any, int]:
        """The first row from ``start`` on with a value, of each column that is not among the known ones."""

    @abstractmethod
    def dicts(self) -> list[dict[Any, Any]]:
        """Each row by itself, None where a value is missing."""

    def rest(self, start: int) -> Records:
        """Those from one on."""
        return self.take(np.arange(start, len(self)))

    @abstractmethod
    def take(self, rows: Any) -> Records:
        """Some of the rows, by a mask or their numbers."""

    @staticmethod
    def of(rows: Iterable[Mapping[Any, Any]]) -> Records:
        """Of dicts."""
        return DictRecords(list(rows))


class DictRecords(Records):
    """Dicts: feature -> number, boolean, text or date; None, NaN and a key that is not there are gaps."""

    def __init__(self, rows: Sequence[Any]) -> None:
        for row in rows:
            given: Any = row
            if not isinstance(given, Mapping):
                hint = ": use x.to_dict()" if hasattr(row, "to_dict") else ""
                raise InputError(f"x is a {type(row).__name__}, expected a dict: column -> value{hint}.")
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def values(self, name: Any, kind: str, read: Reads = None) -> Any:
        found = [row.get(name) if type(row) is dict else dict(row).get(name) for row in self._rows]
        return typed(found, kind, name, read)

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

    def dicts(self) -> list[dict[Any, Any]]:
        return [dict(row) for row in self._rows]

    def take(self, rows: Any) -> Records:
        return DictRecords([self._rows[i] for i in np.arange(len(self))[rows].tolist()])


class ArrayRecords(Records):
    """Rows of an array, whose columns are known by their number; NaN is a gap."""

    def __init__(self, X: Matrix) -> None:
        self._X = X

    def __len__(self) -> int:
        return len(self._X)

    def values(self, name: Any, kind: str, read: Reads = None) -> Any:
        return np.ascontiguousarray(self._X[:, name])

    def columns_at(self, row: int) -> dict[Any, str]:
        return dict.fromkeys(range(self._X.shape[1]), "number")

    def first_new(self, known: Container[Any], start: int) -> dict[Any, int]:
        return {}

    def dicts(self) -> list[dict[Any, Any]]:
        return [dict(enumerate(row)) for row in self._X.tolist()]

    def take(self, rows: Any) -> Records:
        return ArrayRecords(self._X[rows])


class TypedRecords(Records):
    """Columns that have their kinds already, as :func:`typed` makes them."""

    def __init__(self, columns: Mapping[Any, Any], kinds: Mapping[Any, str], rows: int) -> None:
        self._columns, self._kinds, self._count = columns, kinds, rows

    def __len__(self) -> int:
        return self._count

    def values(self, name: Any, kind: str, read: Reads = None) -> Any:
        if name not in self._columns:
            return typed([None] * self._count, kind, name)
        if _alike(kind, self._kinds[name]):
            return self._columns[name]
        return typed([_single(value) for value in self._columns[name]], kind, name, read)

    def kind_at(self, name: Any, row: int) -> str:
        return self._kinds[name]

    def columns_at(self, row: int) -> dict[Any, str]:
        kinds = self._kinds
        return {n: kinds[n] for n, each in self._columns.items() if known(each[row : row + 1], kinds[n])[0]}

    def first_new(self, known_names: Container[Any], start: int) -> dict[Any, int]:
        first = {}
        for name, each in self._columns.items():
            if name not in known_names and (there := known(each[start:], self._kinds[name])).any():
                first[name] = start + int(there.argmax())
        return first

    def dicts(self) -> list[dict[Any, Any]]:
        columns = {name: _singles(each, self._kinds[name]) for name, each in self._columns.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def take(self, rows: Any) -> Records:
        numbers = np.arange(self._count)[rows]
        taken = {
            name: [each[i] for i in numbers.tolist()] if isinstance(each, list) else each[numbers]
            for name, each in self._columns.items()
        }
        return TypedRecords(taken, self._kinds, len(numbers))


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


def _singles(values: Any, kind: str) -> list[Any]:
    """The values of a typed column, None where there is none."""
    single: Any = {"date": lambda value: np.datetime64(int(value), "us"), "flag": bool}.get(kind, _as_it_is)
    there = known(values, kind).tolist()
    each = values.tolist() if isinstance(values, np.ndarray) else values
    return [single(value) if is_there else None for value, is_there in zip(each, there, strict=True)]


def _as_it_is(value: Any) -> Any:
    return value


def _sorted(columns: dict[Any, str]) -> dict[Any, str]:
    """In an order that is not that of a dict or a file: permuted columns are the same columns."""
    return dict(sorted(columns.items(), key=lambda pair: (pair[1], type(pair[0]).__name__, str(pair[0]))))


def is_table(X: Any) -> bool:
    """Whether rows have names: a frame, a dict, a list of dicts, or records already."""
    if isinstance(X, np.ndarray):
        return False
    if isinstance(X, Records):
        return True
    if isinstance(X, (list, tuple)):
        return bool(X) and isinstance(X[0], Mapping)
    return isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "collect_schema")


def records_of(X: Any, known: Mapping[Any, Any] | None = None, *, complete: bool = True) -> Records:
    """The rows of a frame, of dicts, or of an array, for an encoder that has these columns.

    A frame is ``complete``: it must have them all. A key that a dict has not is a gap.
    """
    if isinstance(X, Records):
        return X
    if isinstance(X, np.ndarray):
        return ArrayRecords(X)
    if isinstance(X, Mapping):
        return DictRecords([X])
    if isinstance(X, (list, tuple)):
        return DictRecords(X)
    return _of_frame(X, known or {}, complete)


def _of_frame(X: Any, known: Mapping[Any, Any], complete: bool) -> TypedRecords:
    if hasattr(X, "collect"):
        raise InputError(f"X is a {type(X).__name__}, expected its rows: use X.collect().")
    try:
        import narwhals as nw
    except ImportError:
        raise MissingExtraError(f"X, a {type(X).__name__},", "frames") from None
    names = list(getattr(X, "column_names", X.columns))  # of Arrow, columns are those themselves
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"X has the column {twice[0]!r} more than once, expected each name once.")
    try:
        frame = nw.from_native(X, eager_only=True)
    except Exception as error:  # whatever the frame's own library thinks of it
        seen = str(error).split("\n")[0]
        raise InputError(
            f"X is a {type(X).__name__} that cannot be read ({seen}), expected a frame."
        ) from None
    if complete and (missing := [name for name in known if name not in names]):
        others = [name for name in names if name not in known]
        renamed = f": was {others[0]!r} renamed?" if others else "."
        raise InputError(f"X has no column {missing[0]!r}, which the model has learned from{renamed}")
    columns, kinds = {}, {}
    for name in names:
        values, kind = _of_series(frame.get_column(name), name, known.get(name), nw)
        if kind is not None:
            columns[name], kinds[name] = values, kind
    kinds = _sorted(kinds)
    return TypedRecords({name: columns[name] for name in kinds}, kinds, len(frame))


def _of_series(series: Any, name: Any, known: Any, nw: Any) -> tuple[Any, str | None]:
    """A column of a frame as its type says; one of objects as its first value does, or as is known."""
    dtype, expected = series.dtype, None if known is None else known.kind
    if expected not in ("text", "date") and (dtype.is_numeric() or dtype == nw.Boolean):
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
    kind = expected or next((kind for value in values if (kind := kind_of(value, name)) is not None), None)
    return (
        (None, None)
        if kind is None
        else (typed(values, kind, name, None if known is None else known.read), kind)
    )


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


def typed(values: Sequence[Any], kind: str, name: Any, read: Reads = None) -> Any:
    """Single values of a column as the kind that it is; what is of another kind is a gap, and told."""
    if read is not None:
        # Moments and names may be numbers: seconds since 1970, 20240131, a postal code.
        values = [
            read(v) if type(v) is str or (kind != "number" and is_real(v) and v == v) else v for v in values
        ]
    if kind == "text":
        return [_text(value, name) for value in values]
    if kind == "date":
        return np.array([_moment(value, name) for value in values], dtype=np.int64)
    return np.array([as_number(value, name) for value in values], dtype=np.float64)


def as_number(value: Any, name: Any) -> float:
    """A single value of a column of numbers, NaN for a gap; infinity is refused."""
    if type(value) is float:
        number = value
    else:
        kind, number = kind_of(value, name), math.nan
        if kind is None:
            return number
        if kind != "number":
            _tell_other_kind(value, name, "a number")
        try:
            if kind != "date":
                number = float(value)
        except ValueError:  # text that is no number
            return math.nan
        except OverflowError:
            number = math.inf
        if kind == "text" and math.isinf(number):
            return math.nan
    if math.isinf(number):
        raise InputError(
            f"the column {name!r} is {number}, expected a finite number: drop the value, or clip it."
        )
    return number


def _text(value: Any, name: Any) -> str | None:
    if type(value) is str:
        return value
    kind = kind_of(value, name)
    if kind is None:
        return None
    if kind != "text":
        _tell_other_kind(value, name, "text")
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _moment(value: Any, name: Any) -> int:
    kind = kind_of(value, name)
    if kind == "date":
        if getattr(value, "tzinfo", None) is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        moment: Any = np.datetime64(value)
        return int(moment.astype("datetime64[us]").view(np.int64))
    if kind is not None:
        _tell_other_kind(value, name, "a date")
    return NOT_A_TIME


def _tell_other_kind(value: Any, name: Any, expected: str) -> None:
    notice(
        f"other kind {expected}",
        f"the column {name!r} holds {value!r}, and was {expected} so far: what reads as one is taken as one, "
        "the rest counts as missing. Told once.",
    )


def record_to_keep(x: Any) -> dict[Any, Any]:
    """A dict, or the row of an array by number, as a file can hold it: without gaps, in plain values.

    >>> import datetime
    >>> kept = record_to_keep({"a": np.float32(0.5), "b": None, "c": 4, "d": datetime.date(1970, 1, 2)})
    >>> bool(kept["d"] == np.datetime64("1970-01-02")), {name: kept[name] for name in kept if name != "d"}
    (True, {'a': 0.5, 'c': 4})
    """
    plain_row = (
        x if isinstance(x, Mapping) else dict(enumerate(np.asarray(x, dtype=np.float64).ravel().tolist()))
    )
    record: dict[Any, Any] = {}
    for name, value in plain_row.items():
        kind = kind_of(value, name)
        if kind == "text":
            record[name] = _text(value, name)
        elif kind == "date":
            record[name] = np.datetime64(_moment(value, name), "us")
        elif kind is not None:
            plain = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
            whole = isinstance(plain, int) and abs(plain) < 2**53  # 4 as text is not 4.0
            record[name] = plain if whole else as_number(plain, name)
    return record
