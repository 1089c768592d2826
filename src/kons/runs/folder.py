"""The folder of a run: every file complete or not there, predictions up to a length that is known.

::

    run.json          what was asked, of which source, with which versions
    predictions.csv   a line per row
    trace/NNNNNN.npz  one file per checkpoint: what the learner did in each row
    checkpoint.kons   while the run goes on: all it takes to continue
    model.kons        at the end
    summary.json      at the end
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, FileError, as_word
from kons.files import write_bytes, write_file
from kons.runs.lines import completed

__all__ = [
    "CHECKPOINT",
    "MODEL",
    "RUN",
    "SUMMARY",
    "FolderWriter",
    "changed",
    "complete_predictions",
    "is_of_run",
    "read_json",
    "require_finished",
    "require_own",
    "require_place",
    "told",
]

RUN, SUMMARY, MODEL, CHECKPOINT = "run.json", "summary.json", "model.kons", "checkpoint.kons"
PREDICTIONS, TRACE = "predictions.csv", "trace"
#: What a run may have left, in the order in which it is removed: after a kill in between, what there is is
#: a run that has not begun, and never one that seems finished.
OURS = (SUMMARY, CHECKPOINT, PREDICTIONS, MODEL, "report.html", RUN)
TRACE_FILE = re.compile(r"[0-9]{6,}\.npz")
UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]+\.tmp")


def require_place(path: Path, *, force: bool, source: str | None = None) -> None:
    """Refuse, before anything is computed, a folder that a run could not be written to.

    With ``force`` a run may be there, and nothing that it would replace is the ``source``.
    """
    with told(path):
        if not path.exists():
            above = next(folder for folder in path.absolute().parents if folder.exists())
            if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
                raise ConfigurationError(
                    f"{path} cannot be made: {above} is not a folder that can be written to."
                )
            return
        if not path.is_dir():
            raise ConfigurationError(f"{path} is a file, expected the name of a folder: choose another one.")
        if not os.access(path, os.W_OK | os.X_OK):
            raise ConfigurationError(f"{path} cannot be written to: choose another folder.")
        present = [name for name in sorted(os.listdir(path)) if not _is_unfinished(name)]
        if present and not force:
            hint = f"; kons resume {as_word(path)} continues it" if CHECKPOINT in present else ""
            raise ConfigurationError(
                f"{path} is not empty (it holds {present[0]}): choose another folder, or --force to "
                f"replace the run in it{hint}."
            )
        if present and not _holds_run(path):
            raise ConfigurationError(
                f"{path} holds {present[0]} and no run: --force replaces runs only; choose another folder."
            )
        require_own(path)
        if source is not None and any(_is_same(file, source) for file in _files_of_run(path)):
            raise ConfigurationError(
                f"{source} is a file of the run in {path}, which would be replaced: choose another folder."
            )


def require_own(path: Path) -> None:
    """Refuse a folder where a name of ours is a link, or of another kind: it leads to what is not ours."""
    with told(path):
        for file in (path / TRACE, *_files_of_run(path)):
            try:
                status = file.lstat()
            except FileNotFoundError:
                continue
            kind, expected = stat.S_IFMT(status.st_mode), stat.S_IFREG
            if file.name == TRACE:
                expected = stat.S_IFDIR
            # Predictions are the only file that is written in its place, and not replaced.
            shared = file.name == PREDICTIONS and status.st_nlink > 1
            if kind != expected or shared:
                what = "a link" if kind == stat.S_IFLNK or shared else "of another kind"
                raise FileError(
                    f"{file} is {what}, and a run writes to files of its own only: move it away, or choose "
                    "another folder."
                )


class FolderWriter:
    """Writes a run's folder; each method either does its part or raises :class:`FileError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._predictions: io.FileIO | None = None
        self._claim: int | None = None
        self.length: int = 0
        """Bytes of predictions written."""
        self.traces: int = 0
        """Trace files written."""

    # ---- beginning

    @classmethod
    def create(cls, path: Path, documents: Mapping[str, Mapping[str, Any]], *, force: bool) -> FolderWriter:
        """A new folder, or an empty one, with its first documents; with ``force`` a run in it is removed."""
        require_place(path, force=force)
        is_new = not path.exists()
        writer = cls(path)
        with told(path):
            path.mkdir(parents=True, exist_ok=True)
        writer.claim()
        try:
            is_new = is_new and not os.listdir(path)
            require_place(path, force=force)  # another run may have come and gone in between
            with told(path):
                _sweep(path)
                _clear(path, keep=RUN)  # it is replaced in one step
                for name, document in documents.items():
                    writer.write_json(name, document)
        except BaseException:
            writer.close(finished=False)
            if is_new:
                with contextlib.suppress(OSError):
                    _clear(path)
                    path.rmdir()
            raise
        return writer

    @classmethod
    def claimed(cls, path: Path) -> FolderWriter:
        """Of a folder that holds a run, which nobody else writes to from now on: see :meth:`reopen`."""
        if not path.is_dir():
            raise FileError(f"there is no folder {path}: expected one that kons run ... --out has written.")
        writer = cls(path)
        writer.claim()
        try:
            require_own(path)
            with told(path):
                _sweep(path)  # of a run that is finished, too: it may have been killed behind its last step
        except BaseException:
            writer.close(finished=False)
            raise
        return writer

    def reopen(self, *, length: int, traces: int) -> None:
        """As the last checkpoint knew it: whatever was written after it is cut off."""
        path = self.path
        predictions = path / PREDICTIONS
        with told(path):
            if length and (not predictions.exists() or predictions.stat().st_size < length):
                raise FileError(f"{predictions} is shorter than when it was last saved: start the run again.")
            for file in _trace_files(path):
                if int(file.stem) >= traces:
                    file.unlink()
        self.open_predictions(length)
        self.traces = traces

    def claim(self) -> None:
        """Refuse a folder that another process writes to; the system ends the claim of one that dies."""
        with told(self.path):
            place = _place_to_lock(self.path)
        try:
            _lock(place)
        except BlockingIOError:
            os.close(place)
            raise ConfigurationError(
                f"another kons is writing to {self.path}: wait for it, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            os.close(place)
            return
        self._claim = place

    def open_predictions(self, length: int = 0) -> None:
        """Write predictions from this byte on."""
        with told(self.path):
            (self.path / TRACE).mkdir(exist_ok=True)
        with told(self.path / PREDICTIONS):
            self._predictions = open(self.path / PREDICTIONS, "r+b" if length else "wb", buffering=0)  # noqa: SIM115
            self._predictions.truncate(length)
            self._predictions.seek(length)
        self.length = length

    # ---- along the run

    def append(self, text: bytes) -> None:
        """More lines of predictions."""
        assert self._predictions is not None
        with told(self.path / PREDICTIONS):
            view = memoryview(text)
            while len(view):
                view = view[self._predictions.write(view) :]
        self.length += len(text)

    def settle(self) -> None:
        """The predictions so far are on the disk, not only on their way."""
        assert self._predictions is not None
        with told(self.path / PREDICTIONS):
            os.fsync(self._predictions.fileno())

    def add_trace(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """One more trace file."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, column in columns.items():
                # Not np.savez, which before NumPy 2.2 takes allow_pickle=False for one more column.
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, np.asarray(column), allow_pickle=False)
        write_bytes(self._trace_file(self.traces), stream.getvalue())
        self.traces += 1

    def worst_lines(self, most: int) -> list[int]:
        """Where in the source the rows with the largest losses stand; of equal ones the earlier."""
        losses, lines = np.empty(0), np.empty(0, dtype=np.int64)
        for number in range(self.traces):
            with np.load(self._trace_file(number), allow_pickle=False) as part:
                loss, counts = part["loss"], part["scored"] & np.isfinite(part["loss"])
                losses, lines = np.append(losses, loss[counts]), np.append(lines, part["line"][counts])
            best = np.argsort(-losses, kind="stable")[:most]
            losses, lines = losses[best], lines[best]
        found: list[int] = lines.tolist()
        return found

    def _trace_file(self, number: int) -> Path:
        return self.path / TRACE / f"{number:06d}.npz"

    def write_json(self, name: str, document: Mapping[str, Any]) -> None:
        """A document, readable by people too."""
        text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
        # A name from a file or a command line may hold what is no text at all.
        write_bytes(self.path / name, (text + "\n").encode("utf-8", "backslashreplace"))

    def close(self, *, finished: bool) -> None:
        """Let go of the files; a finished run needs no checkpoint."""
        if self._predictions is not None:
            with contextlib.suppress(OSError):  # what counts was settled before
                self._predictions.close()
            self._predictions = None
        try:
            if finished:
                with told(self.path):
                    (self.path / CHECKPOINT).unlink(missing_ok=True)
        finally:
            if self._claim is not None:
                os.close(self._claim)
                self._claim = None


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A document of a run's folder."""
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}: expected one that kons run ... --out has written.")
    try:
        document = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(
            f"{folder} holds no {name}: it is not the folder of a run (kons run ... --out)."
        ) from None
    except OSError as error:
        raise FileError(f"{folder / name} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"{folder / name} is damaged ({error}): start the run again.") from error
    if not isinstance(document, dict):
        raise FileError(f"{folder / name} is damaged: expected an object; start the run again.")
    return document


def complete_predictions(folder: Path, summary: dict[str, Any]) -> None:
    """Give all lines of the predictions a column for each class: some may have come after the first block.

    After the summary, and never before: a checkpoint knows the length of the file as it was written.
    """
    classes, path = summary.get("classes"), folder / PREDICTIONS
    if not classes or not path.exists():
        return
    with told(path), path.open("rb") as file:
        head = file.readline()
        file.seek(0)
        if next(iter(completed([head], classes))) == head:
            return

        def write(out: IO[bytes]) -> None:
            out.writelines(completed(file, classes))

        write_file(path, write)


def require_finished(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that is finished; what a kill kept it from writing is written. Else None."""
    if not (folder / SUMMARY).exists() or (folder / CHECKPOINT).exists():
        return None
    if read_json(folder, RUN).get("kind") != "run":
        return None
    summary = read_json(folder, SUMMARY)
    if not isinstance(summary.get("classes"), list | None):
        raise changed(folder)
    require_own(folder)
    complete_predictions(folder, summary)
    return summary


def changed(folder: Path) -> FileError:
    """A summary that no run has written."""
    return FileError(
        f"{folder / SUMMARY} is not as a run has written it: was it changed? Start the run again."
    )


def _holds_run(path: Path) -> bool:
    """Whether a run, or a comparison, says that it is there."""
    try:
        document = read_json(path, RUN)
    except FileError:
        return False
    return document.get("kind") in ("run", "compare", "forecast") and "settings" in document


def _files_of_run(path: Path) -> list[Path]:
    """What a run has written or may write, by name; :func:`require_own` looks at the kind."""
    return [*(path / name for name in OURS), *_trace_files(path)]


def _trace_files(path: Path) -> list[Path]:
    folder = path / TRACE
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [folder / name for name in names if TRACE_FILE.fullmatch(name)]


def _clear(path: Path, keep: str | None = None) -> None:
    """Remove what a run has written, and nothing else: the folder may hold other people's files."""
    for file in _files_of_run(path):
        if file.name != keep:
            file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # something else is in it
        (path / TRACE).rmdir()


def _is_same(file: Path, source: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return os.path.samefile(file, source)
    return False


def is_of_run(file: Path, folder: Path) -> bool:
    """Whether a run in the folder writes a file of this name."""
    return file in {folder / name for name in (*OURS, TRACE)} or folder / TRACE in file.parents


def _is_unfinished(name: str) -> bool:
    """What a killed process leaves of a file that it was writing."""
    found = UNFINISHED.fullmatch(name)
    return found is not None and (found[1] in OURS or TRACE_FILE.fullmatch(found[1]) is not None)


def _place_to_lock(path: Path) -> int:
    """The folder itself, opened; on Windows, where none can be, a file for it among the temporary ones."""
    if sys.platform == "win32":
        digest = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return os.open(Path(tempfile.gettempdir()) / f"kons-{digest}.lock", os.O_RDWR | os.O_CREAT)
    return os.open(path, os.O_RDONLY)


def _lock(place: int) -> None:
    """A BlockingIOError where another process has the lock, which ends with the process that has it."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(place, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None
    else:
        import fcntl

        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(path: Path) -> None:
    for folder in (path, path / TRACE):
        for name in filter(_is_unfinished, os.listdir(folder) if folder.is_dir() else ()):
            if stat.S_ISREG((folder / name).lstat().st_mode):
                (folder / name).unlink()


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """What the system refuses, in a sentence."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
