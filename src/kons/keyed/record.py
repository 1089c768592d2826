"""A state as one flat record of bytes: a header, one JSON document, the arrays behind each other.

::

    magic, CRC-32 of the rest, length of the document | [tree, [[dtype, shape, order], ...]] | arrays

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

from kons.errors import FileError
from kons.files.archive import DTYPES
from kons.files.tree import Decoder, Encoder

__all__ = ["pack", "unpack"]

HEADER = struct.Struct("<4sII")
MAGIC = b"kr1\n"


def pack(state: Any) -> bytes:
    """A tree of plain values and arrays as a record.

    >>> unpack(pack({"rows": 3, "pair": (1.5, "a")}))
    {'rows': 3, 'pair': (1.5, 'a')}
    """
    encoder = Encoder()
    tree = encoder.encode(state)
    if encoder.given:
        name = next(iter(encoder.given))
        raise FileError(f"the state holds {name!r}, a function of your own, which no record can hold.")
    orders = ["F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C" for a in encoder.arrays]
    told = [[a.dtype.str, a.shape, order] for a, order in zip(encoder.arrays, orders, strict=True)]
    text = json.dumps([tree, told], separators=(",", ":")).encode("ascii")
    data = [a.tobytes(order) for a, order in zip(encoder.arrays, orders, strict=True)]  # type: ignore[arg-type]
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
        buffer, at, arrays = bytearray(body[length:]), 0, []
        for dtype, shape, order in told:
            if dtype not in DTYPES or order not in ("C", "F") or not all(type(n) is int for n in shape):
                raise ValueError("no array of numbers")
            count = math.prod(shape)
            if min(shape, default=0) < 0 or at + count * np.dtype(dtype).itemsize > len(buffer):
                raise ValueError("an array longer than the record")
            array = np.frombuffer(buffer, dtype, count, at) if count else np.empty(0, dtype)
            arrays.append(array.reshape(shape, order=order))
            at += array.nbytes
        if at != len(buffer):
            raise ValueError("bytes that belong to no array")
    except (ValueError, TypeError, RecursionError) as error:
        raise FileError(f"the record of a learner cannot be read ({error}).") from None
    decoder = Decoder(arrays, {}, None)
    state = decoder.decode(tree)
    decoder.finish()
    return state
