"""NumPy and pyarrow arrays into each other, by their buffers.

pyarrow's own ways import pandas where that is installed, which takes longer than reading a small file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrow_numbers", "arrow_texts", "numbers_of"]


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
