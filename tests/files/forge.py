"""Take a .kons file apart and put it together again with checksums that match: what a forger would do.

Written from docs/file_format.md, not with the library's own code.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

__all__ = ["array_entry", "pack", "unpack"]


def unpack(data):
    """The document, and the raw bytes of the arrays' entries."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        document = json.loads(archive.read("kons.json"))
        arrays = [archive.read(f"{i:06d}.npy") for i in range(len(document["arrays"]))]
    return document, arrays


def pack(document, arrays, *, text=None, comment=None, extra=(), compression=zipfile.ZIP_STORED):
    """A file with these parts, whose checksums are right unless told otherwise."""
    specifications = document.get("arrays")
    for specification, entry in zip(
        specifications if isinstance(specifications, list) else (), arrays, strict=False
    ):
        if isinstance(specification, dict) and "sha256" in specification:
            start = 10 + int.from_bytes(entry[8:10], "little")
            specification["sha256"] = hashlib.sha256(entry[start:]).hexdigest()
    text = json.dumps(document).encode() if text is None else text
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for i, entry in enumerate(arrays):
            archive.writestr(f"{i:06d}.npy", entry)
        archive.writestr("kons.json", text)
        for name, entry in extra:
            archive.writestr(name, entry)
        digest = hashlib.sha256(text).hexdigest()
        archive.comment = f"kons sha256 {digest}".encode() if comment is None else comment
    return stream.getvalue()


def array_entry(array, *, dtype=None, shape=None, order="C"):
    """The raw bytes of an entry for this array, or one that claims to be something else."""
    dtype = array.dtype.str if dtype is None else dtype
    shape = array.shape if shape is None else shape
    text = f"{{'descr': '{dtype}', 'fortran_order': {order == 'F'}, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()
    return header + array.tobytes(order)
