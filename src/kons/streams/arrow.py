"""pyarrow's columns as ours, and NumPy and pyarrow arrays into each other, by their buffers.

pyarrow's own ways import pandas where that is installed, which takes longer than reading a small file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.streams.chunks import Fault, Texts, Values, converted, epochs
from kons.tables.cells import ColumnFormat
from kons.tables.moments import NOT_A_TIME

__all__ = ["arrow_numbers", "arrow_texts", "cells_of", "column_of", "numbers_of"]


def column_of(column: Any, wanted: ColumnFormat) -> tuple[Values, list[Fault]]:
    """A column of pyarrow as it is wanted, and its bad cells; each distinct text is converted once."""
    array = column
    if hasattr(column, "num_chunks"):
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if not len(array):
        return converted([], wanted)[0], []
    fast = _values(array, wanted)
    if fast is not None:
        return fast, []
    if str(array.type) in ("string", "large_string"):
        array = array.dictionary_encode()
    if str(array.type).startswith("dictionary"):
        cells, codes = _levels(array)
    else:
        cells, codes = cells_of(array), np.arange(len(array), dtype=np.int64)
    distinct, bad = converted(cells, wanted)
    if isinstance(distinct, Texts):
        values: Values = distinct.take(codes)
    else:
        values = np.append(distinct, NOT_A_TIME if wanted.kind == "date" else np.nan)[codes]
    rows = np.flatnonzero(np.isin(codes, list(bad))).tolist() if bad else []
    return values, [
        Fault(row, wanted.name, cells[codes[row]], bad[codes[row]].reason, bad[codes[row]].remedy)
        for row in rows
    ]


def _levels(array: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The levels that are in a dictionary array, and of each cell which it is, -1 for none."""
    places = numbers_of(array.indices)
    codes = np.where(np.isnan(places), -1, places).astype(np.int64)
    dictionary = array.dictionary
    if len(dictionary) > len(codes):  # that of a whole file, say, and here are some rows
        used, codes = np.unique(codes, return_inverse=True)
        codes = codes.reshape(-1) - (used[0] < 0)
        import pyarrow

        dictionary = dictionary.take(pyarrow.array(used[used >= 0].tolist(), pyarrow.int64()))
    return dictionary.to_pylist(), codes


def _values(array: Any, wanted: ColumnFormat) -> Values | None:
    """Numbers, flags and moments by their buffers; None where cells must be looked at."""
    kind = str(array.type)
    if kind == "bool" and wanted.kind in ("number", "flag"):
        return np.array(array.to_pylist(), dtype=np.float64)  # None becomes NaN
    if kind in ("double", "float", "halffloat") or kind.startswith(("int", "uint")):
        numbers = numbers_of(array).astype(np.float64, copy=False)
        if wanted.kind == "date":
            return epochs(numbers, wanted)
        zero_or_one = wanted.kind == "flag" and np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all()
        return numbers if wanted.kind == "number" or zero_or_one else None
    if kind.startswith(("timestamp", "date")) and wanted.kind == "date":
        import pyarrow

        moments = array.cast(pyarrow.timestamp("us"), safe=False).view(pyarrow.int64())
        return numbers_of(moments.fill_null(NOT_A_TIME))
    return None


def cells_of(array: Any) -> list[Any]:
    """Python values; moments as NumPy has them, which knows nanoseconds and no time zones."""
    if str(array.type).startswith("timestamp"):
        import pyarrow

        moments = array.cast(pyarrow.timestamp("us"), safe=False).view(pyarrow.int64())
        return list(numbers_of(moments.fill_null(NOT_A_TIME)).view("datetime64[us]"))
    if str(array.type).startswith("dictionary"):
        levels, codes = _levels(array)
        return [None if code < 0 else levels[code] for code in codes.tolist()]
    return list(array.to_pylist())


def numbers_of(array: Any) -> NDArray[Any]:
    """The float64 or integer values of a pyarrow array; nothing is NaN, and turns integers into floats."""
    kind = str(array.type)  # not its to_pandas_dtype: that of pyarrow 16 imports pandas
    dtype = np.dtype({"double": "float64", "float": "float32", "halffloat": "float16"}.get(kind, kind))
    validity, data = array.buffers()
    part = slice(array.offset, array.offset + len(array))
    values = np.frombuffer(data if data is not None else b"", dtype=dtype)[part]
    if not array.null_count:
        return values
    known = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little")[part]
    return np.where(known, values, np.nan)


def arrow_numbers(pyarrow: Any, values: NDArray[Any]) -> Any:
    """A pyarrow array of the numbers; NaN is nothing."""
    values = np.ascontiguousarray(values)
    validity, unknown = None, np.isnan(values)
    if unknown.any():
        validity = pyarrow.py_buffer(np.packbits(~unknown, bitorder="little"))
    return pyarrow.Array.from_buffers(
        pyarrow.from_numpy_dtype(values.dtype), len(values), [validity, pyarrow.py_buffer(values)]
    )


def arrow_texts(pyarrow: Any, values: Sequence[str | None]) -> Any:
    """A pyarrow array of texts; None is nothing."""
    cells = [b"" if text is None else text.encode("utf-8", "backslashreplace") for text in values]
    offsets = np.zeros(len(cells) + 1, dtype=np.int32)
    np.cumsum([len(cell) for cell in cells], out=offsets[1:])
    known = np.array([text is not None for text in values], dtype=bool)
    validity = pyarrow.py_buffer(np.packbits(known, bitorder="little"))
    buffers = [validity, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"".join(cells))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(cells), buffers)
