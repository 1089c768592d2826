"""A state as one flat record of bytes: a header, one JSON document, the arrays behind each other.

::

    magic, CRC-32 of the rest, length of the document | [tree, [shape, ...]] | arrays

Where an array is something else than float64 by rows, ``[dtype, shape, order]`` stands for its shape.

The arguments of the constructor are not in it: a :class:`~kons.keyed.Keyed` has them once. Nothing is
pickled; dtypes, shapes and lengths are checked here, ranges and all else by the declarations of
:mod:`kons.state`. A container of :mod:`kons.files` has a digest for each array and costs five times as
much.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT64
from kons.errors import FileError
from kons.files.archive import DTYPES
from kons.files.tree import Decoder, Encoder
from kons.stored import FiniteNumbers

__all__ = ["pack", "unpack"]

HEADER = struct.Struct("<4sII")
MAGIC = b"kr1\n"
WHOLE = {int}
_as_json = json.JSONEncoder(separators=(",", ":")).encode


def pack(state: Any) -> bytes:
    """A tree of plain values and arrays as a record.

    >>> unpack(pack({"rows": 3, "pair": (1.5, "a")}))
    {'rows': 3, 'pair': (1.5, 'a')}
    """
    encoder = Encoder(numbers=True)
    tree = encoder.encode(state)
    if encoder.given:
        name = next(iter(encoder.given))
        raise FileError(f"the state holds {name!r}, a function of your own, which no record can hold.")
    told, data = [], []
    for array in encoder.arrays:
        flags = array.flags
        order: Any = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        plain = order == "C" and array.dtype == FLOAT64
        told.append(array.shape if plain else (array.dtype.str, array.shape, order))
        data.append(array.tobytes(order))
    text = _as_json([tree, told]).encode("ascii")
    body = b"".join([text, *data])
    return HEADER.pack(MAGIC, zlib.crc32(body), len(text)) + body


def unpack(record: bytes | memoryview) -> Any:
    """What :func:`pack` was given; :class:`~kons.errors.FileError` for what is no record, or damaged."""
    if len(record) < HEADER.size or record[:4] != MAGIC:
        raise FileError("these bytes are no record of a learner.")
    _, checksum, length = HEADER.unpack_from(record)
    body = memoryview(record)[HEADER.size :]
    if zlib.crc32(body) != checksum or length > len(body):
        raise FileError("the record of a learner is damaged: use an earlier copy.")
    try:
        tree, told = json.loads(bytes(body[:length]))
        decoder = Decoder(_arrays(body[length:], told), {}, None)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise FileError(f"the record of a learner cannot be read ({error}).") from None
    state = decoder.decode(tree)
    decoder.finish()
    return state


def _arrays(data: memoryview, told: list[Any]) -> list[NDArray[Any]]:
    """The arrays in the data of a record, whose bytes are their own; of floats, found finite together."""
    floats = len(data) % FLOAT64.itemsize == 0 and not any(one and type(one[0]) is str for one in told)
    buffer: Any = FiniteNumbers.unless_others(np.frombuffer(data)) if floats else bytearray(data)
    at, length, arrays = 0, len(data), []
    for one in told:
        dtype, shape = FLOAT64, one
        order: Any = "C"
        if not floats and one and type(one[0]) is str:
            name, shape, order = one
            if name not in DTYPES or order not in ("C", "F"):
                raise ValueError("no array of numbers")
            dtype = np.dtype(name)
        if not set(map(type, shape)) <= WHOLE or any(n < 0 for n in shape):
            raise ValueError("an array of no size")
        size = math.prod(shape) * dtype.itemsize
        if at + size > length:
            raise ValueError("an array longer than the record")
        arrays.append(np.ndarray(shape, dtype, buffer, at, None, order))
        at += size
    if at != length:
        raise ValueError("bytes that belong to no array")
    return arrays
