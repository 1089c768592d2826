"""The border: the only place where input is validated.

Behind it there are float64 arrays without NaN or infinity, or lists of Python objects for kernels
on arbitrary inputs. Nothing here changes its argument.
"""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, InputError, MissingExtraError, MissingValueError, notice

__all__ = [
    "LONGEST_DELAY",
    "MOST_FEATURES",
    "MOST_POINTS",
    "Integers",
    "Layout",
    "Matrix",
    "ReadIntegers",
    "ReadMatrix",
    "ReadVector",
    "Vector",
    "as_objects",
    "as_outputs",
    "as_points",
    "as_row",
    "as_row_values",
    "as_scalar",
    "as_targets",
    "require_delay",
    "require_flag",
    "require_integer",
    "require_number",
    "require_scale",
]

#: Rows that a delay, a lag or a horizon may reach: they are all kept.
LONGEST_DELAY = 1_000_000
#: Points that an expansion may keep: more than any memory has.
MOST_POINTS = 1_000_000_000
#: Random features, each with a frequency for every column from the first row on.
MOST_FEATURES = 1_000_000
FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)


class Layout(NamedTuple):
    """What a compiled loop knows of an array besides its name: see :mod:`kons.compilation`."""

    dtype: Any
    dimensions: int
    read_only: bool = False
    """The loop does not write into it: read-only and memory-mapped arrays fit as well as others."""


Vector = Annotated[NDArray[np.float64], Layout(FLOAT64, 1)]
Matrix = Annotated[NDArray[np.float64], Layout(FLOAT64, 2)]
ReadVector = Annotated[NDArray[np.float64], Layout(FLOAT64, 1, read_only=True)]
ReadMatrix = Annotated[NDArray[np.float64], Layout(FLOAT64, 2, read_only=True)]
Integers = Annotated[NDArray[np.int64], Layout(np.dtype(np.int64), 1)]
ReadIntegers = Annotated[NDArray[np.int64], Layout(np.dtype(np.int64), 1, read_only=True)]

# Points that a caller can overwrite.
_CHANGEABLE = (np.ndarray, list, dict, set, bytearray)
LARGEST_DENSE = 1 << 27  # numbers, a gigabyte; what a sparse matrix may become


def as_points(X: Any, *, width: int | None = None, name: str = "X", gaps: bool = False) -> Matrix:
    """Rows of numbers as a C-contiguous float64 array of shape (rows, features).

    ``width`` is the number of features seen so far, or None; with ``gaps``, NaN stands for what is not known.
    May return the caller's own memory: whoever keeps it must copy.
    """
    array = _numbers(X, name)
    if array.shape[:1] == (0,) and array.ndim <= 2:
        raise InputError(f"{name} has no rows; expected at least one.")
    if array.ndim != 2:
        hint = {
            1: "for one row use predict_one or learn_one, for one feature X.reshape(-1, 1)",
            0: "wrap one row as [[...]]",
        }.get(array.ndim, "flatten each example to one row of features")
        raise InputError(f"{name} has {array.ndim} dimension(s), expected 2 (rows, features): {hint}.")
    if array.shape[1] == 0:
        raise InputError(f"{name} has no columns; expected at least one feature.")
    _require_width(array.shape[1], width, name)
    if not gaps or np.isinf(array).any():
        _require_finite(array, name, MissingValueError)
    return np.ascontiguousarray(array)


def as_row(x: Any, *, width: int | None = None, name: str = "x") -> Matrix:
    """One row of numbers as an array of shape (1, features)."""
    quick = _quick_row(x)
    if quick is not None and 0 < len(quick) == (width or len(quick)) == np.count_nonzero(np.isfinite(quick)):
        return quick.reshape(1, -1)  # the common case, in some microseconds
    array = _numbers(x, name)
    if array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 1:
        raise InputError(
            f"{name} has shape {array.shape}, expected one row of features (1 dimension): "
            "use predict or advance for many rows."
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} has no features; expected at least one.")
    _require_width(array.shape[0], width, name)
    _require_finite(array, name, MissingValueError)
    return np.ascontiguousarray(array).reshape(1, -1)


def _quick_row(x: Any) -> Vector | None:
    """A row that is float64 as it stands, or a list or tuple of such numbers; None for all others."""
    if type(x) is list or type(x) is tuple:
        try:
            x = np.asarray(x)
        except ValueError:
            return None
    plain = type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1 and x.flags.c_contiguous
    return x if plain else None


def as_objects(X: Any, *, name: str = "X") -> list[Any]:
    """A sequence of any Python objects as a list; arrays, lists, dicts and sets among them are copied.

    Objects of other classes are kept as they are: a kernel may ask who they are.
    """
    if isinstance(X, (str, bytes)):
        raise InputError(
            f"{name} is one {type(X).__name__}, expected a sequence of objects: wrap it as [{name}]."
        )
    # Iterating a frame gives its column names, a set has no order, a mapping gives its keys.
    if isinstance(X, (Mapping, Set)) or hasattr(X, "columns"):
        raise InputError(f"{name} is a {type(X).__name__}, expected a sequence of objects, such as a list.")
    try:
        points = list(X)
    except TypeError:
        raise InputError(f"{name} is a {type(X).__name__}, expected a sequence of objects.") from None
    if not points:
        raise InputError(f"{name} has no rows; expected at least one.")
    # The caller may change what it handed in later; a row of an array is even a view into its memory.
    return [copy.deepcopy(p) if isinstance(p, _CHANGEABLE) else p for p in points]


def as_targets(y: Any, rows: int, *, name: str = "y") -> Vector:
    """One finite number per row."""
    return as_row_values(y, rows, name=name)


def as_outputs(y: Any, rows: int, known: int | None = None, *, name: str = "y") -> Vector | Matrix:
    """Finite targets: one number per row, (rows,), or a row of K numbers, (rows, K).

    ``known`` is what came so far: 0 where a row has one number, K where it has a row of K, None before the
    first. One number and a row of one are the same, in the shape that came first.
    """
    array = _numbers(y, name)
    several = array.ndim == 2 and array.shape[0] == rows
    targets = array.shape[1] if several else 1
    if known != 0 and targets != (known or max(targets, 1)):
        raise InputError(
            f"{name} has {targets} target(s) a row, expected {known or 'at least one'}: pass the same "
            "targets in the same order, and make a new learner for others."
        )
    if known == 0 or not several:
        single = as_row_values(array, rows, name=name)
        return single.reshape(rows, 1) if known == 1 else single
    _require_finite(array, name)
    return np.ascontiguousarray(array)


def as_row_values(values: Any, rows: int, *, name: str, minimum: float = -math.inf) -> Vector:
    """One finite number per row, at least ``minimum``; a single number is repeated."""
    array = _numbers(values, name)
    if array.ndim == 0 and minimum > -math.inf:
        array = np.full(rows, float(array))
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one number per row: ({rows},).")
    if array.shape[0] != rows:
        raise InputError(f"{name} has {array.shape[0]} value(s), X has {rows} row(s): expected one per row.")
    _require_finite(array, name)
    if minimum > -math.inf and array.size and array.min() < minimum:
        at = int(array.argmin())
        raise InputError(f"{name}[{at}] is {array[at]:g}, expected at least {minimum:g}.")
    return np.ascontiguousarray(array)


def as_scalar(value: Any, *, name: str) -> float:
    """One finite number."""
    if isinstance(value, float) and math.isfinite(value):  # NumPy's own among them: a target of an array
        return float(value)
    array = _numbers(value, name)
    if array.size != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one number.")
    _require_finite(array, name)
    return float(array.reshape(()))


def require_number(
    value: Any,
    name: str,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """A finite parameter within its range, or :class:`ConfigurationError`."""
    is_number = type(value) in (float, int) or (  # all others take a microsecond to tell
        isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    )
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf
    if math.isfinite(number) and above < number < below and at_least <= number <= at_most:
        return number
    limits = [
        f"{word} {limit:g}"
        for word, limit in (
            ("above", above),
            ("below", below),
            ("at least", at_least),
            ("at most", at_most),
        )
        if math.isfinite(limit)
    ]
    expected = " ".join(["a finite number", " and ".join(limits)]).strip()
    raise ConfigurationError(f"{name} is {value!r}, expected {expected}.")


def require_scale(value: Any, name: str) -> float:
    """A positive parameter whose square and inverse are finite numbers too."""
    require_number(value, name, above=0.0)
    return require_number(value, name, at_least=1e-100, at_most=1e100)


def require_flag(value: Any, name: str) -> bool:
    """True or False, or :class:`ConfigurationError`."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ConfigurationError(f"{name} is {value!r}, expected True or False.")


def require_word(value: Any, name: str, known: Iterable[str]) -> str:
    """One of the words that are known, or :class:`ConfigurationError`."""
    if isinstance(value, str) and value in known:
        return value
    words = " or ".join(f'"{word}"' for word in known)
    raise ConfigurationError(f"{name} is {value!r}, expected {words}.")


def require_integer(value: Any, name: str, *, at_least: int, at_most: int | None = None) -> int:
    """An integer parameter, or :class:`ConfigurationError`."""
    is_integer = type(value) is int or (
        isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    )
    if is_integer and int(value) >= at_least and (at_most is None or int(value) <= at_most):
        return int(value)
    limit = "" if at_most is None else f" and at most {at_most:,}"
    raise ConfigurationError(f"{name} is {value!r}, expected an integer of at least {at_least}{limit}.")


def require_delay(value: Any, name: str = "delay") -> int:
    """How many rows late something is known: so many rows are kept."""
    return require_integer(value, name, at_least=0, at_most=LONGEST_DELAY)


def _numbers(values: Any, name: str) -> NDArray[np.float64]:
    """``values`` as float64, whatever its shape, refusing what is not a number."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if not isinstance(values, (np.ndarray, list, tuple)):
        if hasattr(values, "toarray") and hasattr(values, "nnz"):
            return _from_sparse(values, name)
        if hasattr(values, "collect_schema") or hasattr(values, "columns"):
            return _from_frame(values, name)
    if isinstance(values, Mapping):
        raise InputError(
            f"{name} is a {type(values).__name__}, expected an array of numbers: "
            "pass its values in a fixed order of features."
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} has masked values, expected numbers: drop or fill them first.")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} has rows of different lengths, expected the same features in every row."
        ) from None
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    if array.dtype.kind == "O":
        return _from_objects(array, name)
    if array.size == 0:
        seen = f"dtype {array.dtype}"
    elif array.dtype.kind in "mM":  # item() would turn a date in nanoseconds into an integer
        seen = repr(array.ravel()[0])
    else:
        seen = repr(array.item(0))
    raise InputError(f"{name} holds {seen} ({array.dtype}), expected numbers: encode it first.")


def _from_sparse(values: Any, name: str) -> NDArray[np.float64]:
    """A matrix of scipy.sparse, made dense: kernels look at every feature of a row anyway."""
    rows, columns = values.shape if len(values.shape) == 2 else (1, *values.shape)
    if rows * columns > LARGEST_DENSE:
        raise InputError(
            f"{name} is a sparse matrix of {rows:,} x {columns:,}, expected at most {LARGEST_DENSE:,} "
            "numbers once it is dense: pass fewer rows at a time, or reduce the features."
        )
    notice("sparse", f"{name} is sparse and was made dense: {rows:,} x {columns:,} numbers.")
    return _numbers(values.toarray(), name)


def _from_frame(frame: Any, name: str) -> NDArray[np.float64]:
    """A table with named columns: by itself if all are plain numbers, else column by column."""
    if hasattr(frame, "collect"):
        raise InputError(f"{name} is a {type(frame).__name__}, expected its rows: use {name}.collect().")
    if 0 in getattr(frame, "shape", ()):
        return np.empty(frame.shape)  # some libraries cannot do that
    if all(_is_plain(dtype) for dtype in getattr(frame, "dtypes", (None,))):
        array = np.asarray(frame)
        if array.dtype.kind in "biuf":
            return np.asarray(array, dtype=np.float64)
    try:
        import narwhals as nw
    except ImportError:
        array = np.asarray(frame)
        if array.dtype.kind in "biufO":
            return _numbers(array, name)
        raise MissingExtraError(f"{name}, a {type(frame).__name__},", "frames") from None
    try:
        table = nw.from_native(frame, eager_only=True)
        names = list(table.columns)
    except Exception as error:  # whatever the frame's own library thinks of it
        seen = str(error).split("\n")[0]
        raise InputError(
            f"{name} is a {type(frame).__name__} that cannot be read ({seen}), expected numbers."
        ) from None
    out = np.empty((len(table), len(names)))
    for i, column in enumerate(names):
        series = table[column]
        if series.null_count():
            row = series.is_null().to_list().index(True)
            raise InputError(
                f"{name} has a missing value in column {column!r} (row {row}), expected numbers: "
                "drop the row or fill it."
            )
        try:
            if series.dtype == nw.Decimal:
                series = series.cast(nw.Float64)
            out[:, i] = _numbers(np.asarray(series.to_numpy()), name)
        except InputError:
            first = next(iter(series.head(1).to_list()), None)
            raise InputError(
                f"{name} holds {first!r} in column {column!r} ({series.dtype}), expected numbers: encode the "
                "column, or drop it."
            ) from None
    return out


def _is_plain(dtype: Any) -> bool:
    """Whether NumPy turns such a column into numbers by itself."""
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iuf"
    is_numeric = getattr(dtype, "is_numeric", None)  # of polars
    return is_numeric is not None and bool(is_numeric()) and not bool(dtype.is_decimal())


def _from_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """An object array whose entries are all numbers, or an error at the first that is not."""
    for position, value in np.ndenumerate(array):
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            raise InputError(
                f"{name} has rows of different lengths, expected the same features in every row."
            )
        if value is None or not isinstance(value, (numbers.Real, np.bool_)):
            where = "".join(f"[{i}]" for i in position)
            raise InputError(f"{name}{where} is {value!r} ({type(value).__name__}), expected a number.")
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise InputError(f"{name} holds an integer beyond the range of floats (1.8e308).") from None


def _require_width(seen: int, width: int | None, name: str) -> None:
    if width is not None and seen != width:
        raise InputError(
            f"{name} has {seen} feature(s), the learner has seen {width} so far: "
            "pass the same features in the same order."
        )


def _require_finite(array: NDArray[np.float64], name: str, missing: type[InputError] = InputError) -> None:
    """Refuse infinity, and NaN by the error for what is missing."""
    if np.isfinite(array).all():
        return
    fault = np.isinf(array) if np.isinf(array).any() else np.isnan(array)
    position = tuple(int(i) for i in np.argwhere(fault)[0])
    where = "".join(f"[{i}]" for i in position)
    raise (missing if np.isnan(array[position]) else InputError)(
        f"{name}{where} is {array[position]}, expected finite numbers: "
        "drop the row or fill the missing value."
    )
