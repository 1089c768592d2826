"""Save and load: one file that continues bit for bit, and runs no code when it is read.

=========================  ==============================================================================
``save``, ``load``         a learner, kernel, loss, policy or step size, and what it has learned
``to_bytes``,              the same without a file
``from_bytes``
``write_tree``,            any tree of plain values and of the above, under a kind of its own: the
``read_tree``              checkpoint of a run
=========================  ==============================================================================

Writing is atomic: a new file takes the place of the old one in one step, or not at all. Reading believes
nothing: see :mod:`kons.files.archive`. docs/file_format.md describes the bytes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from typing import IO, Any

from kons.errors import ConfigurationError, FileError
from kons.files.archive import VERSION, read_archive, read_document, write_archive
from kons.files.registry import TABLE, name_of
from kons.files.tree import Decoder, Encoder

__all__ = [
    "VERSION",
    "about",
    "from_bytes",
    "load",
    "read_tree",
    "save",
    "to_bytes",
    "tree_to_bytes",
    "write_bytes",
    "write_file",
    "write_tree",
]

Path = str | os.PathLike[str]
OBJECT = "object"
#: What a file says of itself.
FACTS = ("what", "version", "written_by")


def save(thing: Any, path: Path, *, about: Mapping[str, Any] | None = None) -> None:
    """Write a learner, or a kernel, loss, policy or step size, to one file.

    The file holds the constructor's arguments and the whole state: factors, pending rows and the generator
    of the coins as they are. Given the same calls, machine and number of threads, what :func:`load` returns
    goes on **bit for bit** as if it had never been saved.

    A function of your own (in a FunctionKernel, CustomLoss or step size), or a kernel class of your own, is
    recorded by its name only, and handed in again at load. Points may be numbers, text, bytes, arrays of
    numbers, and lists, tuples and dicts of these; other objects are refused, since they would need pickle.

    An existing file is replaced in one step, after the new one is safely on disk, and left alone by an error.
    Writing costs what the disk costs, and memory for a copy of the state. ``about`` is kept beside it,
    whatever JSON can hold: where the model comes from, how its columns were made. :func:`about` reads it.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import kons
    >>> learner = kons.EmbeddedKONS(kons.Gaussian(0.5), kons.Squared())
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    >>> trace = learner.advance(X[:100], X[:100, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.kons")
    ...     kons.save(learner, path)
    ...     twin = kons.load(path)
    >>> bool((twin.advance(X[100:], X[100:, 0]).loss == learner.advance(X[100:], X[100:, 0]).loss).all())
    True
    """
    _require_known(thing)
    write_file(path, _writer(thing, OBJECT, about))


def load(path: Path, callables: Mapping[str, Any] | None = None) -> Any:
    """Read what :func:`save` wrote. Never runs code from the file, whoever made it.

    ``callables`` hands in what a file cannot hold, by name: ``{"overlap": overlap}``. Without it the
    :class:`~kons.errors.FileError` lists the names needed. A file that is cut short, damaged, forged or of a
    newer format is refused by the same error, which says what is wrong.

    >>> import kons
    >>> kons.load("no such file")
    Traceback (most recent call last):
    ...
    kons.errors.FileError: no such file cannot be loaded: there is no such file.
    """
    return read_tree(path, kind=OBJECT, callables=callables)


def to_bytes(thing: Any, *, about: Mapping[str, Any] | None = None) -> bytes:
    """What :func:`save` would write, for a database or another process.

    >>> from kons import Gaussian
    >>> from_bytes(to_bytes(Gaussian(2.0)))
    Gaussian(bandwidth=2.0)
    """
    _require_known(thing)
    return tree_to_bytes(thing, kind=OBJECT, about=about)


def from_bytes(data: bytes, callables: Mapping[str, Any] | None = None) -> Any:
    """What :func:`to_bytes` was given; as careful as :func:`load`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ConfigurationError(f"data is a {type(data).__name__}, expected bytes from kons.files.to_bytes.")
    try:
        return _read(io.BytesIO(data), OBJECT, callables)
    except FileError as error:
        raise FileError(f"these bytes cannot be loaded: {error}") from error


def about(path: Path) -> dict[str, Any]:
    """What :func:`save` was told about a file, and what is in it (``what``, ``version``, ``written_by``).

    Reads the document only, not the arrays.
    """
    document = _opened(path, lambda stream: read_document(stream, OBJECT))
    told = document.get("about")
    facts = {name: document.get(name) for name in FACTS}
    return facts | (told if isinstance(told, dict) else {})


def write_tree(path: Path, tree: Any, *, kind: str) -> None:
    """Write a tree of None, numbers, text, bytes, arrays, lists, tuples, dicts, and what :func:`save` takes.

    ``kind`` says what it is, for :func:`read_tree`. Atomic, as :func:`save`.
    """
    write_file(path, _writer(tree, kind))


def tree_to_bytes(tree: Any, *, kind: str, about: Mapping[str, Any] | None = None) -> bytes:
    """What :func:`write_tree` would write."""
    stream = io.BytesIO()
    _writer(tree, kind, about)(stream)
    return stream.getvalue()


def tree_from_bytes(data: bytes, *, kind: str) -> Any:
    """What :func:`tree_to_bytes` was given under this ``kind``; as careful as :func:`load`."""
    return _read(io.BytesIO(data), kind, None)


def write_bytes(path: Path, data: bytes) -> None:
    """Write any file as :func:`save` does: the new one takes the place of the old one, or nothing happens."""
    write_file(path, lambda stream: stream.write(data))


def write_file(path: Path, writer: Callable[[IO[bytes]], Any]) -> None:
    """Let ``writer`` fill a new file that takes the place of the old one in one step, or not at all."""
    target = _target(path)
    folder, name = os.path.split(target)
    # Forty letters of any alphabet: a name has at most 255 bytes.
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        # Through os.open, which is where a test lets it fail.
        with open(temporary, "x+b", opener=lambda file, flags: os.open(file, flags, 0o666)) as stream:
            with contextlib.suppress(OSError):  # what was private stays so
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            writer(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        _sync_folder(folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        if isinstance(error, OSError):
            raise FileError(
                f"{os.fspath(path)} cannot be written: {error.strerror or error}. "
                "What was there before is still there: check the folder, the permissions and the free space."
            ) from error
        raise


def read_tree(path: Path, *, kind: str, callables: Mapping[str, Any] | None = None) -> Any:
    """Read what :func:`write_tree` wrote under this ``kind``; as careful as :func:`load`."""
    return _opened(path, lambda stream: _read(stream, kind, callables))


# ---- inside


def _opened(path: Path, reader: Callable[[IO[bytes]], Any]) -> Any:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else repr(path)
    try:
        with _existing_file(path) as stream:
            return reader(stream)
    except FileError as error:
        raise FileError(f"{name} cannot be loaded: {error}") from error
    except OSError as error:
        raise FileError(f"{name} cannot be loaded: {error.strerror or error}.") from error


def _writer(tree: Any, kind: str, about: Mapping[str, Any] | None = None) -> Callable[[IO[bytes]], None]:
    from kons import __version__

    encoder = Encoder()
    encoded = encoder.encode(tree)
    document = {
        "kind": kind,
        "what": name_of(tree),
        "written_by": f"kons {__version__}",
        "given": encoder.given,
        **({} if about is None else {"about": _told(about)}),
        "tree": encoded,
    }
    return lambda stream: write_archive(stream, document, encoder.arrays)


def _told(about: Any) -> dict[str, Any]:
    """What a file is told about itself, if JSON can hold it."""
    if not isinstance(about, Mapping) or not all(isinstance(name, str) for name in about):
        raise FileError(f"about is {about!r}, expected a dict with text as keys.")
    if taken := [name for name in FACTS if name in about]:
        raise FileError(f"about has the key {taken[0]!r}, which says something else: choose another name.")
    try:
        json.dumps(dict(about), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileError(f"about cannot be written as JSON ({error}): use plain numbers and text.") from error
    return dict(about)


def _read(stream: IO[bytes], kind: str, callables: Mapping[str, Any] | None) -> Any:
    document, arrays = read_archive(stream, kind)
    decoder = Decoder(arrays, document["given"], callables)
    tree = decoder.decode(document["tree"])
    decoder.finish()
    return tree


def _require_known(thing: Any) -> None:
    if name_of(thing) is None:
        raise FileError(
            f"a {type(thing).__module__}.{type(thing).__qualname__} cannot be saved: expected one of "
            f"{', '.join(name for name in TABLE if '.' not in name)}, and no subclass of your own. "
            "A class of your own needs a line in kons.recipes.RECIPES or KERNELS: see docs/extending.md."
        )


def _target(path: Any) -> str:
    """Where to write: behind a link, the file that it points to."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise FileError(f"path is {path!r}, expected text or a pathlib.Path.")
    name = os.fspath(path)
    try:
        target = os.path.realpath(name)
    except ValueError as error:  # a zero byte
        raise FileError(f"path is {path!r}, which no file can be named ({error}).") from error
    if not name or name.endswith(("/", os.sep)) or os.path.isdir(target):
        raise FileError(f"{name!r} cannot be written: it is a folder, expected the name of a file.")
    # A pipe or a device would be gone afterwards, an ordinary file in its place; so would a circle of links.
    if os.path.lexists(target) and not os.path.isfile(target):
        raise FileError(f"{name} cannot be written: it is no ordinary file.")
    if not os.path.isdir(folder := os.path.dirname(target)):
        raise FileError(f"{name} cannot be written: there is no folder {folder}; make it first.")
    return target


def _existing_file(path: Any) -> IO[bytes]:
    """An ordinary file, open to be read; a pipe or a device could block or never end."""
    if not isinstance(path, (str, os.PathLike)):
        raise FileError("expected text or a pathlib.Path.")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileError("there is no such file.") from None
    except ValueError as error:
        raise FileError(f"no file can be named so ({error}).") from error
    if not stat.S_ISREG(mode):
        raise FileError(f"it is {'a folder' if stat.S_ISDIR(mode) else 'no ordinary file'}.")
    return open(path, "rb")


def _sync_folder(folder: str) -> None:
    """Make the new name itself durable, where the system can: the file is complete in any case."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
