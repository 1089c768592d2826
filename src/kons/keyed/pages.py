"""Records in the pages of one file, none of which moves: what is written again goes to pages that are free.

::

    record        its length, CRC-32 and the numbers of its pages; some 200 bytes of memory
    free          pages of no record
    held          pages of records that were replaced, which the last commit still needs

So an index of the records, written whenever one likes, stays true until the next one is on the disk, and
nothing has to be copied together: the file is as large as the records, and what changed since the commit.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from kons.errors import FileError

__all__ = ["PAGE", "Key", "Pages", "Place"]

Key = str | int
PAGE = 4096


class Place(NamedTuple):
    """Where a record is."""

    length: int
    checksum: int
    pages: array[int]


class Pages:
    """Records by key, in a file of its own.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     pages = Pages(file)
    ...     pages.put("a", b"one"); pages.put("a", b"two"); pages.put(7, bytes(10_000))
    ...     pages.get("a"), list(pages), os.fstat(file.fileno()).st_size // PAGE
    (b'two', ['a', 7], 4)
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.places: dict[Key, Place] = {}
        self._file, self._number = file, file.fileno()
        self._end = 0
        self._free: list[int] = []
        self._held: list[int] = []
        self._fresh: set[Key] = set()  # written since the last commit: it needs no page of theirs

    def resume(self, places: dict[Key, Place]) -> None:
        """Go on from an index: all pages of none of its records are free."""
        used = set[int]()
        for place in places.values():
            used.update(place.pages)
        size = os.fstat(self._number).st_size
        if (used and (max(used) + 1) * PAGE > size) or len(used) < sum(len(p.pages) for p in places.values()):
            raise FileError("its index names pages that are not there, or belong to two records.")
        self.places, self._end = places, max(used, default=-1) + 1
        self._free = [page for page in range(self._end) if page not in used]
        os.ftruncate(self._number, self._end * PAGE)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, key: object) -> bool:
        return key in self.places

    def get(self, key: Key) -> bytes:
        """The record of a key that is there."""
        length, checksum, pages = self.places[key]
        try:
            record = b"".join(os.pread(self._number, PAGE, page * PAGE) for page in pages)[:length]
        except OSError as error:
            raise FileError(
                f"the record of key {key!r} cannot be read ({error.strerror or error})."
            ) from error
        if len(record) < length or zlib.crc32(record) != checksum:
            raise FileError(f"the record of key {key!r} is damaged: use an earlier copy.")
        return record

    def put(self, key: Key, record: bytes) -> None:
        """The record of a key, in place of what was there; after an error that is there still."""
        view, pages = memoryview(record), array("I")
        try:
            for at in range(0, len(record), PAGE):
                page = self._free.pop() if self._free else self._end
                self._end = max(self._end, page + 1)
                pages.append(page)
                # Whole pages, so that the last one can be read like the others.
                part = view[at : at + PAGE]
                data = part if len(part) == PAGE else bytes(part).ljust(PAGE, b"\0")
                if os.pwrite(self._number, data, page * PAGE) < PAGE:
                    raise OSError("no space left on the disk")
        except OSError as error:
            self._free.extend(pages)
            raise FileError(
                f"the record of key {key!r} cannot be written: {error.strerror or error}."
            ) from error
        self._let_go(key)
        self._fresh.add(key)
        self.places[key] = Place(len(record), zlib.crc32(record), pages)

    def delete(self, key: Key) -> None:
        """Drop the record of a key, if there is one."""
        self._let_go(key)
        self.places.pop(key, None)
        self._fresh.discard(key)

    def _let_go(self, key: Key) -> None:
        if key in self.places:
            (self._free if key in self._fresh else self._held).extend(self.places[key].pages)

    def capture(self) -> list[int]:
        """A commit is made of the records as they are: pages to :meth:`release` once it is on the disk."""
        held, self._held = self._held, []
        self._fresh.clear()
        return held

    def release(self, pages: Iterable[int], *, committed: bool) -> None:
        """The commit is on the disk, and the one before it needed these pages; or it failed."""
        (self._free if committed else self._held).extend(pages)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    __del__ = close
