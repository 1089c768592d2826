"""The log of a service: all that changed its model, in order, each group of records whole or not there.

::

    log/000000000000.log    a header, then frames; the name is the number of its first record
    frame                   marker, length, CRC-32, then records as MessagePack, written and synced at once
    zeros                   room that was reserved, up to the end of the file

A frame is answered after it is on the disk, and the next one is written after that. So only the last frame
of the last file can be torn, and nothing of it was answered: it is cut. Whatever else does not match its
checksum is refused, by file and byte.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from kons.errors import FileError

__all__ = ["Kind", "Log", "Record", "Segment", "segments"]

MAGIC = b"kons log 1\n\0"
HEADER = struct.Struct("<12sQQI")  # magic, first record, salt, CRC of these
FRAME = struct.Struct("<4sII")  # marker, length, CRC of salt and payload
MARKER = b"\xf5KG\n"
#: Room is reserved so many bytes at a time: a full disk is met before anything is learned.
RESERVED = 1 << 20

Kind = Literal["predict", "label", "learn"]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One request as it changed the model."""

    kind: Kind
    id: int | str | None
    time: float
    """Seconds since 1970, never falling."""
    x: Any = None
    y: Any = None


encode: Callable[[object], bytes] = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Record]).decode


class Log:
    """Appends groups of records; what :meth:`append` returned from is on the disk."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = folder
        self.number: int = number
        """Of the next record."""
        self._file = -1
        self._end = self._reserved = 0
        self._salt = 0

    def begin(self) -> None:
        """A new segment, which the next record opens; after ``OSError`` the one before is gone on with."""
        path, salt = self.folder / f"{self.number:012d}.log", secrets.randbits(64)
        head = HEADER.pack(MAGIC, self.number, salt, 0)
        head = HEADER.pack(MAGIC, self.number, salt, zlib.crc32(head))
        # A segment of the same name holds no record: it was begun, and nothing came.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            _write(file, head, 0)
            os.fsync(file)
            _sync_folder(self.folder)
        except OSError:
            os.close(file)
            with suppress(OSError):  # or it would be read behind the one that is gone on with
                path.unlink()
            raise
        self.close()
        self._file, self._salt, self._end, self._reserved = file, salt, len(head), len(head)

    def go_on(self, segment: Segment) -> None:
        """Behind the last record of a segment that was read; what is torn there is cut."""
        self._file = os.open(segment.path, os.O_RDWR)
        self._salt, self._end = segment.salt, segment.end
        os.ftruncate(self._file, segment.end)
        os.fsync(self._file)
        self._reserved = segment.end

    def reserve(self, size: int) -> None:
        """Room for so many bytes more; ``OSError`` where the disk has none."""
        need = self._end + size + FRAME.size + 16
        if need <= self._reserved:
            return
        grown = need + RESERVED
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file, self._reserved, grown - self._reserved)
            else:
                _write(self._file, bytes(grown - self._reserved), self._reserved)
        except OSError:
            os.ftruncate(self._file, self._reserved)
            raise
        self._reserved = grown

    def append(self, records: Sequence[bytes]) -> int:
        """Write records as one frame, and wait until the disk has it; its bytes. They were reserved."""
        payload = _array_of(records)
        frame = FRAME.pack(MARKER, len(payload), _checked(self._salt, payload)) + payload
        _write(self._file, frame, self._end)
        getattr(os, "fdatasync", os.fsync)(self._file)
        self._end += len(frame)
        self.number += len(records)
        return len(frame)

    def close(self) -> None:
        """Give room back that was reserved, and let go of the file."""
        if self._file >= 0:
            os.ftruncate(self._file, self._end)
            os.close(self._file)
            self._file = -1


class Segment:
    """One file of a log, to be read to its end: ``for number, record in segment``."""

    path: Path
    end: int
    torn: int
    first: int
    salt: int
    is_empty: bool

    def __init__(self, path: Path, *, last: bool) -> None:
        self.path, self._last = path, last
        self.end = self.torn = 0
        """Where its last whole frame ends, and how many bytes behind that are of a torn one."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error
        self._data, self._length = data, 0
        self.first, self.salt, self.is_empty = int(path.stem), 0, False
        whole = len(data) >= HEADER.size
        magic, first, salt, check = HEADER.unpack_from(data) if whole else (b"", -1, 0, 0)
        if not whole or check != zlib.crc32(HEADER.pack(magic, first, salt, 0)):
            # Killed while it was begun: nothing can be behind it.
            if last and not data[HEADER.size :].strip(b"\0"):
                self.is_empty, self.torn = True, len(data.rstrip(b"\0"))
                return
            raise self._error(0, "its header does not match its checksum")
        if magic != MAGIC or first != self.first:
            raise self._error(0, "its header is of another log, or of a newer version")
        self.salt, self.end = salt, HEADER.size

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        """Every record, with its number."""
        number = self.first
        while not self.is_empty and self.end < len(self._data):
            records = self._frame(self.end)
            if records is None:
                self._require_torn()
                return
            self.end += self._length
            for record in records:
                yield number, record
                number += 1

    def _frame(self, at: int) -> list[Record] | None:
        """The records of the frame that begins here; None: there is none that is whole."""
        data = self._data
        if len(data) < at + FRAME.size:
            return None
        marker, length, check = FRAME.unpack_from(data, at)
        payload = data[at + FRAME.size : at + FRAME.size + length]
        if marker != MARKER or len(payload) < length or _checked(self.salt, payload) != check:
            return None
        try:
            records = _decode(payload)
        except msgspec.MsgspecError as error:
            raise self._error(at, f"a group holds no records ({error})") from None
        self._length = FRAME.size + length
        return records

    def _require_torn(self) -> None:
        """Refuse what is broken here, unless nothing that was answered can be behind it."""
        rest = self._data[self.end :]
        left = rest.rstrip(b"\0")
        if not left:
            return  # room that was reserved
        if not self._last:
            raise self._error(self.end, "a group of records does not match its checksum")
        at = rest.find(MARKER, 1)
        while at >= 0:
            if self._frame(self.end + at) is not None:
                raise self._error(
                    self.end, "a group of records does not match its checksum, and others follow"
                )
            at = rest.find(MARKER, at + 1)
        self.torn = len(left)

    def _error(self, at: int, what: str) -> FileError:
        return FileError(
            f"{self.path}, byte {at:,}: {what}. What was answered behind it would be lost: bring it back "
            "from a copy."
        )


def segments(folder: Path) -> list[Path]:
    """The files of a log, oldest first."""
    found = [path for path in folder.glob("*.log") if path.stem.isdigit() and len(path.stem) == 12]
    return sorted(found)


def _array_of(records: Sequence[bytes]) -> bytes:
    """A MessagePack array of items that are encoded already."""
    return b"\xdd" + struct.pack(">I", len(records)) + b"".join(records)


def _checked(salt: int, payload: bytes) -> int:
    """No client knows the salt: what it sends cannot look like a frame."""
    return zlib.crc32(payload, zlib.crc32(struct.pack("<Q", salt)))


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while len(view):
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def _sync_folder(folder: Path) -> None:
    """The new name itself is durable, too."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
