"""Where the records of idle learners are: in memory, in a folder, or in the bytes of a bucket.

::

    keys.pages    the records, in pages (kons.keyed.pages)
    keys.index    which pages are whose, and what else belongs to that instant; replaced in one step

After a crash all keys are as they were at one and the same instant, that of the last commit, and so is what
was told with it.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, FileError
from kons.files import write_bytes
from kons.keyed.pages import PAGE, Key, Pages, Place

__all__ = ["Folder", "Key", "Memory"]

PAGES, INDEX = "keys.pages", "keys.index"
ENTRY = struct.Struct("<BIII")  # a bucket's: kind, lengths of key and record, CRC-32 of both
PUT = 0
HEADER = struct.Struct("<8sIIII")  # an index's: magic, CRC-32 of the rest, length of keys, records, pages
MAGIC = b"kons kx\n"
#: Bytes of records beyond which memory is a file that nobody else sees.
MOST_IN_MEMORY = 1 << 25


class Memory:
    """Records in a dict, many in a file without a name; as the bytes of a bucket those asked for are read.

    >>> store = Memory()
    >>> store.put("a", b"one"); store.put(7, b"two")
    >>> again = Memory.from_bytes(store.to_bytes())
    >>> again.get(7), sorted(map(str, again)), "b" in again
    (b'two', ['7', 'a'], False)
    """

    def __init__(self) -> None:
        self._records: dict[Key, bytes] = {}
        self._bytes = 0
        self._pages: Pages | None = None

    def __iter__(self) -> Iterator[Key]:
        return iter(self._records if self._pages is None else self._pages)

    def __len__(self) -> int:
        return len(self._records if self._pages is None else self._pages)

    def __contains__(self, key: object) -> bool:
        return key in (self._records if self._pages is None else self._pages)

    def get(self, key: Key) -> bytes:
        """The record of a key that is there."""
        return self._records[key] if self._pages is None else self._pages.get(key)

    def put(self, key: Key, record: bytes) -> None:
        """The record of a key, in place of what was there."""
        if self._pages is not None:
            self._pages.put(key, record)
            return
        self._bytes += len(record) - len(self._records.get(key, b""))
        self._records[key] = record
        if self._bytes > MOST_IN_MEMORY:
            pages = Pages(tempfile.TemporaryFile())  # noqa: SIM115 - it closes it
            for name, each in self._records.items():
                pages.put(name, each)
            self._pages, self._records = pages, {}

    def delete(self, key: Key) -> None:
        """Drop the record of a key, if there is one."""
        if self._pages is not None:
            self._pages.delete(key)
        else:
            self._bytes -= len(self._records.pop(key, b""))

    def to_bytes(self) -> bytes:
        """All records one behind the other; the same bytes for the same records in the same order."""
        return b"".join(entry(key, self.get(key)) for key in self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        """What :meth:`to_bytes` gave."""
        store = cls()
        for key, record in entries(data):
            store.put(key, record)
        return store

    def __getstate__(self) -> Any:
        return self.to_bytes()  # of copies: a file has one owner

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(vars(Memory.from_bytes(state)))


class Folder:
    """Records in a folder, safe from crashes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Folder(folder)
    ...     store.put("a", b"one"); store.commit(about=b"first"); store.put("a", b"two")
    ...     store.close()
    ...     again = Folder(folder)
    ...     again.get("a"), again.about  # as at the last commit
    (b'one', b'first')
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Path = Path(path)
        self.about: bytes = b""
        """What the last commit was told."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = [name for name in os.listdir(self.path) if not name.startswith(f".{INDEX}")]
            if others and PAGES not in others:
                raise ConfigurationError(
                    f"folder {path} holds {min(others)} and no learners: choose another folder."
                )
            there = PAGES in others
            file: IO[bytes] = open(self.path / PAGES, "r+b" if there else "w+b", buffering=0)  # noqa: SIM115
            self._pages = Pages(file)
            _claim(file, path)
            for name in set(os.listdir(self.path)) - {PAGES, INDEX}:
                if name.startswith(f".{INDEX}"):  # killed while it was written
                    os.unlink(self.path / name)
            if (self.path / INDEX).exists():
                places, self.about = _read_index(self.path / INDEX)
                self._pages.resume(places)
        except OSError as error:
            raise FileError(f"{path} cannot be used: {error.strerror or error}.") from error

    def __iter__(self) -> Iterator[Key]:
        return iter(self._pages)

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, key: object) -> bool:
        return key in self._pages

    def get(self, key: Key) -> bytes:
        """The record of a key that is there."""
        return self._pages.get(key)

    def put(self, key: Key, record: bytes) -> None:
        """The record of a key; see :meth:`commit`."""
        self._pages.put(key, record)

    def delete(self, key: Key) -> None:
        """Drop the record of a key, if there is one."""
        self._pages.delete(key)

    def capture(self, keys: Iterable[Key] | None = None, about: bytes = b"") -> Callable[[], None]:
        """What makes a commit of all as it is now: to be called once, from any thread, before the next.

        The order of the ``keys`` is kept, by default that in which they came.
        """
        places = self._pages.places
        index = _index({key: places[key] for key in (places if keys is None else keys)}, about)
        pages = self._pages.capture()

        def commit() -> None:
            committed = False
            try:
                os.fsync(self._pages._number)
                write_bytes(self.path / INDEX, index)
                self.about, committed = about, True
            except OSError as error:
                raise FileError(f"{self.path} cannot be written: {error.strerror or error}.") from error
            finally:
                self._pages.release(pages, committed=committed)

        return commit

    def commit(self, keys: Iterable[Key] | None = None, about: bytes = b"") -> None:
        """All that was put and deleted so far is on the disk, or, after a crash, none of it."""
        self.capture(keys, about)()

    def close(self) -> None:
        """Let go of the file."""
        self._pages.close()


def is_committed(folder: Path) -> bool:
    """Whether there is a folder of records that something was committed to."""
    return (folder / INDEX).exists()


def spooled(records: Iterable[bytes]) -> NDArray[np.uint8]:
    """Bytes one behind the other, as an array; of many, its memory is a file without a name."""
    with tempfile.SpooledTemporaryFile(MOST_IN_MEMORY) as file:
        for record in records:
            file.write(record)
        length = file.tell()
        if length <= MOST_IN_MEMORY:
            file.seek(0)
            return np.frombuffer(file.read(), dtype=np.uint8)
        file.flush()
        # Of the class itself: only that goes into files.
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="r", shape=(length,)))


def entry(key: Key, record: bytes) -> bytes:
    """A record in the bytes of a bucket."""
    name = json.dumps(key).encode("ascii")
    return ENTRY.pack(PUT, len(name), len(record), zlib.crc32(record, zlib.crc32(name))) + name + record


def entries(data: Any) -> Iterator[tuple[Key, bytes]]:
    """The keys and records in bytes, or in an array of them."""
    at, view = 0, memoryview(data)
    while at < len(view):
        with suppress(struct.error, ValueError):
            kind, key_length, length, checksum = ENTRY.unpack_from(view, at)
            start = at + ENTRY.size + key_length
            name, record = bytes(view[at + ENTRY.size : start]), bytes(view[start : start + length])
            if kind == PUT and len(record) == length and zlib.crc32(record, zlib.crc32(name)) == checksum:
                at = start + length
                yield json.loads(name), record
                continue
        raise FileError("the bytes of a bucket are damaged or cut short: use an earlier copy.")


def _index(places: dict[Key, Place], about: bytes) -> bytes:
    keys = json.dumps(list(places), separators=(",", ":")).encode("ascii")
    lengths = np.array([place.length for place in places.values()], dtype="<u4")
    checksums = np.array([place.checksum for place in places.values()], dtype="<u4")
    pages = np.array([page for place in places.values() for page in place.pages], dtype="<u4")
    numbers = [each.tobytes() for each in (lengths, checksums, pages)]
    body = b"".join([keys, *numbers, about])
    return HEADER.pack(MAGIC, zlib.crc32(body), len(keys), len(places), len(pages)) + body


def _read_index(path: Path) -> tuple[dict[Key, Place], bytes]:
    data = path.read_bytes()
    body = memoryview(data)[HEADER.size :]
    magic, checksum, length, count, total = HEADER.unpack_from(data.ljust(HEADER.size, b"\0"))
    ends = np.cumsum([length, 4 * count, 4 * count, 4 * total])
    if magic != MAGIC or zlib.crc32(body) != checksum or ends[-1] > len(body):
        raise FileError(f"{path} is damaged, or none that kons has written: use an earlier copy.")
    keys = json.loads(bytes(body[:length]))
    lengths, checksums, pages = (
        np.frombuffer(body[a:b], dtype="<u4").tolist() for a, b in itertools.pairwise(ends)
    )
    places, at = {}, 0
    for key, size, check in zip(keys, lengths, checksums, strict=True):
        used = -(-size // PAGE)
        places[key] = Place(size, check, array("I", pages[at : at + used]))
        at += used
    if at != total or len(places) < count:
        raise FileError(f"{path} is none that kons has written: use an earlier copy.")
    return places, bytes(body[ends[-1] :])


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
