"""Where the records of idle learners are: in memory, in a folder, or in the bytes of a bucket.

The folder holds one file, a log::

    kind, length of the key, length of the record, CRC-32 of both | key as JSON | record

A kind is put, delete or commit. Records are appended; memory holds where the last one of each key is, some
200 bytes a key. What is behind the last commit is cut off when the folder is opened, so that after a crash
all keys are as they were at one and the same instant. At a commit a log of which more than half is no
longer needed is written anew, in one step.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from kons.errors import ConfigurationError, FileError
from kons.files import write_file

__all__ = ["Folder", "Key", "Memory"]

Key = str | int
LOG = "keys.log"
ENTRY = struct.Struct("<BIII")
PUT, DELETE, COMMIT = range(3)
# A log shorter than this is not worth writing anew.
SHORT = 1 << 24


class Memory:
    """Records in a dict, and as the bytes of a bucket: only those that are asked for are decoded.

    >>> store = Memory()
    >>> store.put("a", b"one"); store.put(7, b"two")
    >>> again = Memory.from_bytes(store.to_bytes())
    >>> again.get(7), sorted(map(str, again)), "b" in again
    (b'two', ['7', 'a'], False)
    """

    def __init__(self) -> None:
        self._records: dict[Key, bytes] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: object) -> bool:
        return key in self._records

    def get(self, key: Key) -> bytes:
        """The record of a key that is there."""
        return self._records[key]

    def put(self, key: Key, record: bytes) -> None:
        """The record of a key, in place of what was there."""
        self._records[key] = record

    def delete(self, key: Key) -> None:
        """Drop the record of a key, if there is one."""
        self._records.pop(key, None)

    def commit(self) -> None:
        """Nothing: memory survives no crash."""

    def to_bytes(self) -> bytes:
        """All records one behind the other; the same bytes for the same records in the same order."""
        return b"".join(_entry(PUT, key, record) for key, record in self._records.items())

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        """What :meth:`to_bytes` gave."""
        store, at = cls(), 0
        while at < len(data):
            _, key, start, at = _read(data, at)
            store._records[key] = data[start:at]
        return store


class Folder:
    """Records in a folder, safe from crashes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Folder(folder)
    ...     store.put("a", b"one"); store.commit(); store.put("a", b"two")
    ...     store.close()
    ...     Folder(folder).get("a")  # as at the last commit
    b'one'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path) / LOG
        self._places: dict[Key, tuple[int, int]] = {}
        self._needed = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            others = [name for name in os.listdir(self.path.parent) if not name.startswith(f".{LOG}")]
            if others and LOG not in others:
                raise ConfigurationError(
                    f"folder {path} holds {min(others)} and no learners: choose another folder."
                )
            self._file: IO[bytes] = open(self.path, "r+b" if self.path.exists() else "w+b")  # noqa: SIM115
            _claim(self._file, path)
            self._open()
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror or error}.") from error

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def get(self, key: Key) -> bytes:
        """The record of a key that is there."""
        start, size = self._places[key]
        self._file.seek(start)
        return self._file.read(size)

    def put(self, key: Key, record: bytes) -> None:
        """Append the record of a key; see :meth:`commit`."""
        entry = _entry(PUT, key, record)
        self._append(entry)
        self._needed += len(record) - self._places.get(key, (0, 0))[1]
        self._places[key] = self._end - len(record), len(record)

    def delete(self, key: Key) -> None:
        """Drop the record of a key, if there is one."""
        if key in self._places:
            self._append(_entry(DELETE, key, b""))
            self._needed -= self._places.pop(key)[1]

    def commit(self) -> None:
        """All that was put and deleted so far is on the disk, or, after a crash, none of it."""
        if self._end > SHORT + 2 * self._needed:
            self._compact()
            return
        self._append(_entry(COMMIT, 0, b""))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never opened
            self._file.close()

    # ---- inside

    def _append(self, entry: bytes) -> None:
        try:
            self._file.seek(self._end)
            self._file.write(entry)
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        self._end += len(entry)

    def _open(self) -> None:
        """Find the last record of each key, up to the last commit; what is behind it is cut off."""
        self._end = committed = 0
        places: dict[Key, tuple[int, int]] = {}
        waiting: list[tuple[int, Key, tuple[int, int]]] = []
        size = os.fstat(self._file.fileno()).st_size
        while self._end < size:
            self._file.seek(self._end)
            head = self._file.read(ENTRY.size)
            if len(head) < ENTRY.size:
                break
            kind, key_length, length, checksum = ENTRY.unpack(head)
            start = self._end + ENTRY.size + key_length
            if kind not in (PUT, DELETE, COMMIT) or start + length > size:
                break
            name, record = self._file.read(key_length), self._file.read(length)
            if zlib.crc32(record, zlib.crc32(name)) != checksum:
                break
            self._end = start + length
            waiting.append((kind, json.loads(name), (start, length)))
            if kind == COMMIT:
                committed = self._end
                for done, key, place in waiting[:-1]:
                    places.pop(key, None)
                    if done == PUT:
                        places[key] = place
                waiting = []
        self._places, self._end = places, committed
        self._needed = sum(length for _, length in places.values())
        self._file.truncate(committed)

    def _compact(self) -> None:
        places: dict[Key, tuple[int, int]] = {}

        def write(file: IO[bytes]) -> None:
            at = 0
            for key, (_, length) in self._places.items():
                entry = _entry(PUT, key, self.get(key))
                file.write(entry)
                at += len(entry)
                places[key] = at - length, length
            file.write(_entry(COMMIT, 0, b""))

        write_file(self.path, write)
        self._file.close()
        self._file = open(self.path, "r+b")  # noqa: SIM115
        _claim(self._file, self.path.parent)
        self._places, self._end = places, os.fstat(self._file.fileno()).st_size


def _entry(kind: int, key: Key, record: bytes) -> bytes:
    name = json.dumps(key).encode("ascii")
    return ENTRY.pack(kind, len(name), len(record), zlib.crc32(record, zlib.crc32(name))) + name + record


def _read(data: bytes, at: int) -> tuple[int, Any, int, int]:
    """An entry of a bucket: its kind, key, and where its record begins and ends."""
    with suppress(struct.error, ValueError):
        kind, key_length, length, checksum = ENTRY.unpack_from(data, at)
        start = at + ENTRY.size + key_length
        name, end = data[at + ENTRY.size : start], start + length
        if kind == PUT and end <= len(data) and zlib.crc32(data[start:end], zlib.crc32(name)) == checksum:
            return kind, json.loads(name), start, end
    raise FileError("the bytes of a bucket are damaged or cut short: use an earlier copy.")


def _claim(file: IO[bytes], path: Any) -> None:
    """Refuse a folder that another process uses; the system ends the claim of one that dies."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ConfigurationError(
            f"folder {path} is used by another kons.Keyed: wait for it, or choose another folder."
        ) from None
