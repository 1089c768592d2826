"""The container: a zip file of raw arrays and one JSON document, trusted in nothing.

::

    000000.npy ...    the arrays, each a plain .npy file, not compressed
    kons.json         the document: format, version, kind, the arrays' types, shapes and SHA-256, the tree
    (zip comment)     SHA-256 of kons.json

Any zip tool opens it, and ``numpy.load`` reads its arrays. Nothing in it is compressed, so no entry can be
larger than the file, and nothing is pickled, so reading runs no code. Whatever the file claims is compared
with the bytes that are there before memory is asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import FileError

__all__ = ["DTYPES", "VERSION", "read_archive", "read_document", "write_archive"]

#: Until the first release only the newest is read: none before it was ever published.
VERSION = 3
DOCUMENT = "kons.json"
COMMENT = b"kons sha256 "

#: The types an array in a file may have, in either byte order. Not long double: it depends on the machine.
DTYPES = frozenset(
    order + kind
    for kind in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
    for order in ("|" if kind in ("b1", "i1", "u1") else "<>")
)
MOST_DIMENSIONS = 8
#: Bytes of the document, which takes sixty times as much memory when it is read, and some seconds: numbers
#: are in arrays, and only points that are objects may fill it.
LARGEST_DOCUMENT = 1 << 24
CHUNK = 1 << 20

Entries = dict[str, zipfile.ZipInfo]

# What zipfile raises at a file that is damaged, besides its own error.
DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


# ---- writing


def write_archive(stream: IO[bytes], document: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write the arrays one after another, then the document that describes them."""
    specifications = []
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for i, array in enumerate(arrays):
            dtype, shape, order = array.dtype.str, array.shape, _order(array)
            data = _bytes_of(array, order)
            # Near 4 GB the sizes need the longer header, which must be decided before.
            with archive.open(_entry(_array_name(i)), "w", force_zip64=len(data) > 1 << 31) as entry:
                entry.write(_npy_header(dtype, order, shape))
                entry.write(data)
            specifications.append(
                {
                    "dtype": dtype,
                    "shape": list(shape),
                    "order": order,
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
            )
        whole = {"format": "kons", "version": VERSION, **document, "arrays": specifications}
        text = json.dumps(whole, allow_nan=False, separators=(",", ":")).encode("ascii")
        if len(text) > LARGEST_DOCUMENT:
            raise FileError(
                f"it cannot be saved: all that is no array takes {len(text):,} bytes, at most "
                f"{LARGEST_DOCUMENT:,} are read again. Are its points long texts, or objects?"
            )
        archive.writestr(_entry(DOCUMENT), text)
        archive.comment = COMMENT + hashlib.sha256(text).hexdigest().encode("ascii")


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry that says nothing about the day or the machine: equal learners make equal files."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3
    entry.external_attr = 0o644 << 16
    return entry


def _array_name(i: int) -> str:
    return f"{i:06d}.npy"


def _order(array: NDArray[Any]) -> str:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _bytes_of(array: NDArray[Any], order: str) -> memoryview:
    flat = np.ascontiguousarray(array.T if order == "F" else array).reshape(-1)
    return flat.view(np.uint8).data


def _npy_header(dtype: str, order: str, shape: Sequence[int]) -> bytes:
    """The header of the .npy format, version 1.0. Written and compared, never parsed."""
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': '{dtype}', 'fortran_order': {order == 'F'}, 'shape': ({dims}), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


# ---- reading


def read_archive(stream: IO[bytes], kind: str) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """The document and the arrays, or :class:`FileError` that says what is wrong."""
    with _opened(stream, kind) as (archive, entries, document):
        specifications = document["arrays"]
        expected = {_array_name(i) for i in range(len(specifications))} | {DOCUMENT}
        if expected != entries.keys():
            odd = sorted(expected ^ entries.keys())[0]
            raise FileError(f"its entries are not those that its document lists: see {odd!r}.")
        arrays = [
            _array(archive, entries[_array_name(i)], specification)
            for i, specification in enumerate(specifications)
        ]
    return document, arrays


def read_document(stream: IO[bytes], kind: str) -> dict[str, Any]:
    """The document alone."""
    with _opened(stream, kind) as (_, _, document):
        return document


@contextmanager
def _opened(stream: IO[bytes], kind: str) -> Iterator[tuple[zipfile.ZipFile, Entries, dict[str, Any]]]:
    size = stream.seek(0, 2)
    stream.seek(0)
    _check_beginning(stream.read(4))
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = _checked_entries(archive, size)
            yield archive, entries, _document(archive, entries, kind)
    except FileError:
        raise
    except DAMAGED as error:
        raise FileError(f"it is damaged or cut short ({error}): use an earlier copy.") from error


def _check_beginning(magic: bytes) -> None:
    if magic == b"PK\x03\x04":
        return
    if magic[:1] == b"\x80":
        raise FileError("it is a pickled object, which could run code: kons never unpickles a file.")
    if not magic:
        raise FileError("it is empty, expected a file written by kons.save.")
    raise FileError(f"it begins with {magic!r}: it was not written by kons.save, or it is damaged.")


def _checked_entries(archive: zipfile.ZipFile, size: int) -> Entries:
    """The entries by name, once their claims fit the size of the file."""
    entries: Entries = {}
    free_from = 0
    for entry in archive.infolist():
        name = entry.filename
        if name in entries:
            raise FileError(f"it has two entries named {name!r}.")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise FileError(
                f"its entry {name!r} is compressed or encrypted: kons writes none, "
                "since a small file could then unfold to any size."
            )
        stop = entry.header_offset + entry.compress_size
        if entry.file_size != entry.compress_size or stop > size:
            raise FileError(
                f"its entry {name!r} claims {entry.file_size:,} bytes, more than the file holds ({size:,})."
            )
        if entry.header_offset < free_from:
            raise FileError(f"its entry {name!r} overlaps another.")
        free_from = stop
        entries[name] = entry
    if DOCUMENT not in entries:
        raise FileError(f"it has no entry {DOCUMENT!r}: it was not written by kons.save.")
    return entries


def _document(archive: zipfile.ZipFile, entries: Entries, kind: str) -> dict[str, Any]:
    if (size := entries[DOCUMENT].file_size) > LARGEST_DOCUMENT:
        raise FileError(f"its document has {size:,} bytes, at most {LARGEST_DOCUMENT:,} are read.")
    text = archive.read(entries[DOCUMENT])
    if archive.comment != COMMENT + hashlib.sha256(text).hexdigest().encode("ascii"):
        raise FileError("its checksum does not match its document: it was changed after it was written.")
    document = parse(text)
    if not isinstance(document, dict) or document.get("format") != "kons":
        raise FileError('its document does not say "format": "kons": it is no file of kons.')
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise FileError("its document has no format version, an integer of at least 1.")
    if version != VERSION:
        older = (
            f"of a kons before its first release, and this one reads {VERSION}: let the model learn again."
        )
        newer = f"this kons reads up to {VERSION}: update kons to load it."
        raise FileError(f"its format version is {version}, {older if version < VERSION else newer}")
    if document.get("kind") != kind:
        raise FileError(f"it holds a {document.get('kind')!r}, expected a {kind!r}.")
    for name, wanted in (("arrays", list), ("given", dict)):
        if not isinstance(document.get(name), wanted):
            raise FileError(f"its document has no {wanted.__name__} named {name!r}.")
    if "tree" not in document:
        raise FileError("its document has no tree.")
    return document


def parse(text: bytes) -> Any:
    """JSON with each key once, without NaN and infinity."""
    try:
        return json.loads(
            text.decode("ascii"),
            parse_constant=_no_constant,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise FileError("its document is nested too deeply.") from None
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"its document is no valid JSON ({error}).") from error


def _no_constant(word: str) -> None:
    raise FileError(f"its document holds {word}, which is no JSON.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FileError(f"its document holds a number beyond the range of floats: {text[:20]}.")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FileError("its document names something twice.")
    return found


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, specification: Any) -> NDArray[Any]:
    """One array, its memory asked for only once the bytes are known to be there."""
    dtype, shape, order, digest = _specified(specification, entry.filename)
    header = _npy_header(dtype, order, shape)
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if len(header) + needed != entry.file_size:
        raise FileError(
            f"its array {entry.filename!r} of shape {tuple(shape)} takes {needed:,} bytes, "
            f"but its entry holds {entry.file_size - len(header):,}."
        )
    array = np.empty(shape, dtype, order=order)
    target = (array.T if order == "F" else array).reshape(-1).view(np.uint8).data
    with archive.open(entry) as stream:
        if stream.read(len(header)) != header:
            raise FileError(f"the header of its array {entry.filename!r} is not the one it should have.")
        for start in range(0, needed, CHUNK):
            target[start : start + CHUNK] = stream.read(min(CHUNK, needed - start))
        stream.read(1)  # at the end, zipfile compares its own checksum
    if hashlib.sha256(target).hexdigest() != digest:
        raise FileError(f"the checksum of its array {entry.filename!r} does not match: it was changed.")
    return array


def _specified(specification: Any, name: str) -> tuple[str, list[int], Any, str]:
    if not isinstance(specification, dict) or specification.keys() != {"dtype", "shape", "order", "sha256"}:
        raise FileError(f"its array {name!r} is not described by dtype, shape, order and sha256.")
    dtype, shape, order = (specification[key] for key in ("dtype", "shape", "order"))
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise FileError(
            f"its array {name!r} has the type {dtype!r}, expected plain numbers: an array of Python objects "
            "would have to be unpickled, and could run code."
        )
    is_shape = isinstance(shape, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in shape)
    if not is_shape or len(shape) > MOST_DIMENSIONS or order not in ("C", "F"):
        raise FileError(
            f"its array {name!r} has the shape {shape!r} in order {order!r}, which none can have."
        )
    return dtype, shape, order, specification["sha256"]
