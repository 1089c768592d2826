"""Bytes of a file, a pipe or standard input: unpacked, in pieces that end where a record ends, as UTF-8.

What is no UTF-8 is told by its line, and read as Windows-1252, which has all of Latin-1: so are files written
whose encoding nobody says. In a number such a letter is what makes a bad cell of it.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import select
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable, Generator
from hashlib import blake2b
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from kons.errors import ConfigurationError, InputError, KonsError, MissingExtraError
from kons.streams.wording import shortened

__all__ = ["LONGEST", "Feed", "OddText", "Source", "as_utf8", "pieces", "too_long"]

LONGEST = 1 << 24  # bytes of one record; a "line" beyond is not text
PAUSE = 1.0  # seconds in which nothing comes of a pipe, and its rows so far say what the columns are
PIECE = 1 << 20
DAMAGE = (zlib.error, lzma.LZMAError, zipfile.BadZipFile)
ENDS = 1 << 16  # bytes at each end of a file that its fingerprint digests
MARK = 8  # bytes that tell how a file is packed
PACKED = {b"7z\xbc\xaf": "a 7z archive", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins with that of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Source:
    """A file by its path, or ``"-"``, standard input. A file can be opened again, a pipe once.

    ``header``: whether the first line of a table holds names; None, if that is to be noticed. ``known``: what
    the columns are is no question, so that of a pipe no more is looked at than its first row: ``live``.
    """

    def __init__(
        self,
        path: str | Path,
        encoding: str | None = None,
        header: bool | None = None,
        *,
        known: bool = False,
    ) -> None:
        self.name: str = "standard input" if path == "-" else str(path)
        self.path: Path | None = None if path == "-" else Path(path)
        self.encoding: str | None = _known(encoding)
        self.header = header
        self.bytes_total: int | None = None
        self.resumable: bool = False
        self._only: Feed | None = None
        self.live: bool = known
        if self.path is None:
            stream = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise InputError("standard input is not there to be read.")
            self._only = Feed(self, stream, pipe=True)
            return
        raw = self.open_raw()
        try:
            status = Path(self.path).stat()
            if not stat.S_ISREG(status.st_mode):
                self._only = Feed(self, raw, pipe=True)
                return
            self.resumable, self.bytes_total, self.live = True, status.st_size, False
        except OSError as error:
            raw.close()
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error}).") from None
        raw.close()

    def open(self) -> Feed:
        """The bytes from the start; of a pipe, what has not been handed on."""
        if self._only is not None:
            return self._only
        return Feed(self, self.open_raw(), pipe=False)

    def fingerprint(self) -> dict[str, Any] | None:
        """Size, time of change, and a digest of both ends."""
        if self.path is None or not self.resumable:
            return None
        digest = blake2b(digest_size=16)
        with self.open_raw() as raw:
            size = raw.seek(0, 2)
            for place in (0, max(0, size - ENDS)):
                raw.seek(place)
                digest.update(raw.read(ENDS))
        return {"size": size, "mtime_ns": self.path.stat().st_mtime_ns, "digest": digest.hexdigest()}

    def head(self, size: int = 4096) -> bytes:
        """The first bytes, unpacked; they will be read again."""
        feed = self.open()
        try:
            data = feed.read()
            while len(data) < size and not (b"\n" in data and (self.live or feed.pauses())):
                if not (more := feed.read()):
                    break
                data += more
            feed.put_back(data)
        finally:
            if self.resumable:
                feed.close()
        return data[:size]

    def open_raw(self) -> BinaryIO:
        """The file as it stands."""
        assert self.path is not None
        try:
            return self.path.open("rb")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{shortened(self.name, 200)}: cannot be read ({reason}).") from None


class Feed:
    """An open source: bytes in order, with a way to put some back."""

    def __init__(self, source: Source, raw: BinaryIO, *, pipe: bool) -> None:
        self._source, self._file, self._pipe = source, raw, pipe
        self._raw: Any = raw
        self._back = b""
        self._ended = False
        self.done: int = 0
        """Bytes taken from the file itself."""
        self._unpacker: Any = None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._encoding = ""
        self._started = self._paused = False
        self.is_packed: bool = False

    def start(self) -> None:
        """Recognise compression and encoding by the first bytes; called by the first read."""
        if self._started:
            return
        self._started = True
        first = self._take(lambda: _first_of(self._raw) if self._pipe else self._raw.peek(MARK)[:MARK])
        if self._pipe:  # whose first bytes may come one by one
            self._raw = BufferedReader(_Again(first, self._raw))
        for mark, what in PACKED.items():
            if first.startswith(mark):
                raise InputError(f"{self._source.name} is {what}: unpack it first, or pack it with gzip.")
        self._unpacker = self._take(lambda: self._unpacked(first))
        self.is_packed = self._unpacker is not None
        encoding = self._source.encoding
        head = b""
        while len(head) < 4 and (more := self._raw_read(4 - len(head))):
            head += more
        encoding = encoding or next((name for mark, name in MARKS.items() if head.startswith(mark)), None)
        if encoding is not None:
            self._encoding = encoding
            self._decoder = codecs.getincrementaldecoder(encoding)()
            head = self._decoded(head)
        self._back = head.removeprefix(codecs.BOM_UTF8) if len(head) >= 3 else head

    def read(self, size: int = PIECE) -> bytes:
        """Some bytes; none at the end only."""
        self.start()
        if self._back:
            data, self._back = self._back, b""
            return data
        while not self._ended:
            raw = self._raw_read(size)
            self._ended = not raw
            data = self._decoded(raw) if self._decoder is not None else raw
            if data:
                return data
        return b""

    def pauses(self) -> bool:
        """Whether nothing more has come of a pipe for a while: who only looks at it decides by what there is.

        Of what has no number in the system it cannot be told: no.
        """
        if not self._pipe or self._back or self._ended or self.is_packed:
            return False
        try:
            ready = select.select([self._file], [], [], 0.0 if self._paused else PAUSE)[0]
        except (OSError, ValueError, TypeError):
            return False
        self._paused = self._paused or not ready  # waited for once only
        return not ready

    def put_back(self, data: bytes) -> None:
        """The next read gives these bytes again."""
        self._back = data + self._back

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._source.path is not None:
            self._file.close()

    def _raw_read(self, size: int) -> bytes:
        file: Any = self._unpacker if self._unpacker is not None else self._raw
        data: bytes = self._take(lambda: _read_some(file, size) if self._pipe else file.read(size))
        if self._pipe or self._source.path is None:
            self.done += len(data)
        else:
            self.done = self._raw.tell()
        return data

    def _unpacked(self, first: bytes) -> Any:
        """What unpacks a file that begins so; None if it is not packed."""
        if first.startswith(b"\x1f\x8b"):
            return gzip.GzipFile(fileobj=self._raw)
        if first.startswith(b"BZh"):
            return bz2.BZ2File(self._raw)
        if first.startswith(b"\xfd7zXZ"):
            return lzma.LZMAFile(self._raw)
        if first.startswith(b"PK\x03\x04"):
            return self._only_member()
        for mark, codec in {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}.items():
            if first.startswith(mark):
                try:
                    import pyarrow
                except ImportError:
                    raise MissingExtraError(f"reading files packed with {codec}", "files") from None
                return pyarrow.CompressedInputStream(pyarrow.PythonFile(self._raw, mode="r"), codec)
        return None

    def _only_member(self) -> Any:
        name = self._source.name
        if self._pipe:
            raise InputError(f"{name} is a zip archive, which cannot be read from a pipe: give the file.")
        archive = zipfile.ZipFile(self._raw)
        if "[Content_Types].xml" in archive.namelist():
            raise InputError(f"{name} is an Excel workbook: save its sheet as CSV.")
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise InputError(f"{name} is a zip archive of {len(members)} files: unpack it, and give one.")
        return archive.open(members[0])

    def _take(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except KonsError:
            raise
        except (OSError, EOFError, ValueError, RuntimeError, *DAMAGE) as error:
            reason = getattr(error, "strerror", None) or shortened(error, 100)
            raise InputError(
                f"{self._source.name}: cannot be read on ({reason}): is the file cut off or damaged?"
            ) from None

    def _decoded(self, raw: bytes) -> bytes:
        assert self._decoder is not None
        try:
            return self._decoder.decode(raw, final=not raw).encode("utf-8")
        except (UnicodeError, ValueError):
            raise InputError(f"{self._source.name} is not {self._encoding} text.") from None


def pieces(
    feed: Feed, name: str, line: int, end: Callable[[bytes], int], size: int = PIECE
) -> Generator[tuple[bytes, int], None, None]:
    """(bytes that end where a record ends, number of their first line), in order.

    ``end(data)`` is where the last whole record of ``data`` ends, 0 if there is none. Left early, what was
    read and not handed on goes back into the feed.
    """
    rest: list[bytes] = []
    held = tried = 0  # bytes of a record whose end has not come, and how many of them were searched for it
    breaks = False
    try:
        while data := feed.read(max(size, held)):
            rest.append(data)
            held += len(data)
            # A pipe may come in drops: a long record is searched when twice as much is there.
            breaks = breaks or b"\n" in data
            if held <= LONGEST and (held < 2 * tried or not breaks):
                continue
            breaks = False
            data = b"".join(rest)
            cut = end(data)
            if not cut:
                if held > LONGEST:
                    raise InputError(too_long(name, line, data))
                rest, tried = [data], held
                continue
            data, rest = data[:cut], [data[cut:]] if cut < held else []
            held, tried = held - cut, 0
            yield data, line
            # Five times as fast as bytes.count on letters this frequent.
            line += int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == 10))
        if held:
            data, rest = b"".join(rest), []
            yield data, line
    finally:
        feed.put_back(b"".join(rest))


class _Again(RawIOBase):
    """A pipe from its start, of which the first bytes were taken."""

    def __init__(self, first: bytes, pipe: Any) -> None:
        self._first, self._pipe = first, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first[: len(buffer)] or _read_some(self._pipe, len(buffer))
        self._first = self._first[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _first_of(pipe: Any) -> bytes:
    """What tells how it is packed, or the whole of a first line that is shorter."""
    first = b""
    while len(first) < MARK and not first.endswith(b"\n") and (more := pipe.read(1)):
        first += more
    return first


def _read_some(pipe: Any, size: int) -> bytes:
    """What is there; a pipe is not waited for until all has come."""
    data: bytes = pipe.read1(size) if hasattr(pipe, "read1") else pipe.read(size)
    return data


class OddText(NamedTuple):
    """The first byte of a piece that is no UTF-8, or none of any text."""

    at: int
    is_zero: bool

    @property
    def reason(self) -> str:
        """As a complaint says it."""
        if self.is_zero:
            return "not text, but binary data"
        return "not UTF-8 text: save it as UTF-8, or set encoding (latin-1, ...)"

    @property
    def remark(self) -> str:
        """What became of it."""
        if self.is_zero:
            return "not text, but binary data, read as \N{REPLACEMENT CHARACTER}"
        return "not UTF-8 text, read as Windows-1252: if that is wrong, set encoding (cp1250, ...)"


def as_utf8(data: bytes) -> tuple[bytes, OddText | None]:
    """The same with no byte that is odd, and the first that was.

    >>> as_utf8("Zürich, Köln".encode())[1], as_utf8("Zürich".encode("latin-1"))[0].decode()
    (None, 'Zürich')
    """
    zero = data.find(b"\0")
    if zero < 0 and data.isascii():
        return data, None
    try:
        data.decode("utf-8")
        first = len(data)
    except UnicodeDecodeError as error:
        first = error.start
    if zero < 0 and first == len(data):
        return data, None
    text = data.decode("utf-8", WINDOWS).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode(), OddText(first if zero < 0 else min(zero, first), 0 <= zero < first)


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


WINDOWS = "kons.windows"
codecs.register_error(WINDOWS, _as_windows)


def too_long(name: str, line: int, data: bytes) -> str:
    """What is wrong with a record without an end."""
    if b'"' in data:
        return f"{name}, line {line}: a quote is opened and never closed."
    return f"{name}, line {line}: not text, but binary data: no end of line in {len(data) >> 20} MB."


def _known(encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        found = codecs.lookup(encoding).name
        "a".encode(found)
    except (LookupError, TypeError, ValueError, AssertionError):
        raise ConfigurationError(
            f"encoding is {encoding!r}, expected the name of one: latin-1, utf-16, ..."
        ) from None
    return None if found in ("utf-8", "ascii", "utf-8-sig") else found
