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
import io
import json
import os
import re
import shutil
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
    "complete_predictions",
    "read_json",
    "require_finished",
    "require_place",
    "told",
]

RUN, SUMMARY, MODEL, CHECKPOINT = "run.json", "summary.json", "model.kons", "checkpoint.kons"
PREDICTIONS, TRACE = "predictions.csv", "trace"
#: What a run may have left. What says that there is a run goes first and comes first.
OURS = (
    *(RUN, SUMMARY, MODEL, CHECKPOINT, PREDICTIONS, TRACE),
    *("report.html", "frontier.svg", "frontier.png"),
)
UNFINISHED = re.compile(r"\.(.+)\.\w+\.tmp")


def require_place(path: Path, *, force: bool) -> None:
    """Refuse, before anything is computed, a folder that a run could not be written to."""
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
        if (present := [name for name in sorted(os.listdir(path)) if not _is_ours_unfinished(name)]) and (
            not force
        ):
            hint = f"; kons resume {as_word(path)} continues it" if CHECKPOINT in present else ""
            raise ConfigurationError(
                f"{path} is not empty (it holds {present[0]}): choose another folder, or --force to "
                f"replace the run in it{hint}."
            )


class FolderWriter:
    """Writes a run's folder; each method either does its part or raises :class:`FileError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._predictions: io.FileIO | None = None
        self._claim: int | None = None
        self.length = 0
        """Bytes of predictions written."""
        self.traces = 0
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
                for name in OURS:  # nothing else: the folder may hold other people's files
                    _remove(path / name)
                for name, document in documents.items():
                    writer.write_json(name, document)
        except BaseException:
            writer.close(finished=False)
            if is_new:
                shutil.rmtree(path, ignore_errors=True)
            raise
        return writer

    @classmethod
    def reopen(cls, path: Path, *, length: int, traces: int) -> FolderWriter:
        """As the last checkpoint knew it: whatever was written after it is cut off."""
        writer = cls(path)
        writer.claim()
        try:
            with told(path):
                _sweep(path)
                if (path / TRACE).is_dir():
                    _sweep(path / TRACE)
                    for file in (path / TRACE).glob("*.npz"):
                        if not file.stem.isdigit() or int(file.stem) >= traces:
                            file.unlink()
                predictions = path / PREDICTIONS
                if length and (not predictions.exists() or predictions.stat().st_size < length):
                    raise FileError(
                        f"{predictions} is shorter than when it was last saved: start the run again."
                    )
            writer.open_predictions(length)
        except BaseException:
            writer.close(finished=False)
            raise
        writer.traces = traces
        return writer

    def claim(self) -> None:
        """Refuse a folder that another process writes to; the system ends the claim of one that dies."""
        try:
            import fcntl
        except ImportError:  # Windows, which has no locks on folders
            return
        with told(self.path):
            place = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
                    _remove(self.path / CHECKPOINT)
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
    complete_predictions(folder, summary)
    return summary


def _is_ours_unfinished(name: str) -> bool:
    """What a killed process leaves of a file that it was writing."""
    found = UNFINISHED.fullmatch(name)
    return found is not None and (found[1] in OURS or found[1].endswith(".npz"))


def _sweep(folder: Path) -> None:
    for name in os.listdir(folder):
        if _is_ours_unfinished(name):
            _remove(folder / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """What the system refuses, in a sentence."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
