"""The folder of a service: what it began with, the last snapshot, and the log behind it.

::

    service.json       the settings, fixed when it began
    start.kons         the model that it began with, if it was given one
    snapshot.kons      the model, pending rows and ids after so many records
    keys/              of a learner per key, instead: those parked, and the snapshot that belongs to them
    log/NNNNNNNNNNNN.log    the records behind that; all of them with --keep-log
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from kons.errors import ConfigurationError, FileError
from kons.files import about, load, read_tree, save, to_bytes, tree_from_bytes, write_bytes
from kons.keyed import Keyed
from kons.keyed.store import is_committed
from kons.learners.protocol import as_learner, can_learn
from kons.runs.folder import FolderWriter, read_json, told
from kons.serve.fold import BEGINNING, RECORDS, SNAPSHOT, Fold, Settings, keyed_in
from kons.serve.log import Log, Segment, segments
from kons.serve.problems import Problem

__all__ = ["ServiceFolder", "is_service"]

SERVICE, START, LATEST, LOG = "service.json", "start.kons", "snapshot.kons", "log"
KEYS, AGAIN = "keys", "keys.again"
Progress = Callable[[int], object]


class ServiceFolder:
    """A service on the disk; at most one process has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._claim = FolderWriter(path)
        self.settings: Settings = Settings()
        self.about: dict[str, Any] = {}
        """What was told about the model that it began with."""
        self.torn: int = 0
        """Bytes of a group that was not answered, cut at the last start."""

    @classmethod
    def begin(cls, path: Path, settings: Settings, model: Path | None) -> ServiceFolder:
        """A new one, in a new or empty folder."""
        started = None if model is None else model.read_bytes()
        if model is not None:
            settings = msgspec.structs.replace(settings, key=_require_servable(model))
        with told(path):
            path.mkdir(parents=True, exist_ok=True)
            if present := sorted(item.name for item in path.iterdir() if not item.name.startswith(".")):
                raise ConfigurationError(
                    f"{path} holds {present[0]} and no service: choose another folder for --dir."
                )
        folder = cls(path)
        folder._claim.claim()
        with told(path):
            (path / LOG).mkdir()
            if started is not None:
                write_bytes(path / START, started)
        # Last: a folder without it is none.
        folder._claim.write_json(SERVICE, {"kind": "service", "version": 1, **msgspec.to_builtins(settings)})
        folder._read()
        return folder

    @classmethod
    def open(cls, path: Path) -> ServiceFolder:
        """One that is there; nobody else has it from now on."""
        if not is_service(path):
            raise FileError(f"{path} is not the folder of a service: expected what kons serve --dir was.")
        folder = cls(path)
        folder._claim.claim()
        folder._read()
        return folder

    def _read(self) -> None:
        document = read_json(self.path, SERVICE)
        try:
            if document.pop("kind") != "service" or document.pop("version") != 1:
                raise ValueError("another kind or version")
            self.settings = msgspec.convert(document, Settings, strict=True)
        except (KeyError, ValueError) as error:
            raise FileError(
                f"{self.path / SERVICE} is not as kons serve has written it ({error})."
            ) from error
        said = about(self.path / START) if (self.path / START).exists() else {}
        facts = {name: said[name] for name in ("plan", "learner") if name in said}
        plan = facts.get("plan") or {}
        self.about = facts | {"target": self.settings.target or plan.get("target")}

    def release(self) -> None:
        """Let another process have it."""
        shutil.rmtree(self.path / AGAIN, ignore_errors=True)
        self._claim.close(finished=False)

    # ---- reading

    def fold(
        self, progress: Progress = lambda _: None, *, from_start: bool = False
    ) -> tuple[Fold, Segment | None]:
        """The state that it is in: the last snapshot, or with ``from_start`` the beginning, and the log.

        And the last segment, read to its end.
        """
        fold = self._begun(from_start=from_start)
        last, self.torn = None, 0
        paths = segments(self.path / LOG)
        behind = [path for path in paths if int(path.stem) <= fold.number]
        if paths and not behind:
            raise FileError(
                f"{self.path / LOG}: records {fold.number:,} to {int(paths[0].stem) - 1:,} are missing, "
                f"{paths[0].name} is the first: bring the files back from a copy."
            )
        for path in paths[max(len(behind) - 1, 0) :]:
            last = Segment(path, last=path is paths[-1])
            if last.first > fold.number:
                raise FileError(f"{path}: records {fold.number:,} to {last.first - 1:,} are missing.")
            self._apply(fold, last)
            progress(fold.number)
        self.torn = 0 if last is None else last.torn
        return fold, last

    def _apply(self, fold: Fold, segment: Segment) -> None:
        for number, record in segment:
            if number < fold.number:
                continue
            try:
                new = fold.apply(record)[1]
            except Problem as problem:
                raise self._other(segment, number, str(problem)) from problem
            if not new:
                raise self._other(segment, number, "it changes nothing")

    def _other(self, segment: Segment, number: int, what: str) -> FileError:
        return FileError(
            f"{segment.path}, record {number:,} cannot be applied again ({what}): was the folder put "
            "together from two, or written by another version of kons?"
        )

    def _begun(self, *, from_start: bool) -> Fold:
        path, keys = self.path / LATEST, self.path / (AGAIN if from_start else KEYS)
        if from_start:
            shutil.rmtree(keys, ignore_errors=True)
        if not from_start and is_committed(keys / RECORDS):
            assert self.settings.key is not None
            keyed = keyed_in(load(keys / BEGINNING), self.settings.key, keys)
            tree = tree_from_bytes(keyed.about, kind=SNAPSHOT)
            return Fold.of(self.settings, tree, keyed, keys)
        if path.exists() and not from_start:
            return Fold.of(self.settings, read_tree(path, kind=SNAPSHOT), parked=keys)
        if (path.exists() or is_committed(self.path / KEYS / RECORDS)) and self.first != 0:
            raise FileError(f"{self.path / LOG} does not begin with the first record: --keep-log keeps it.")
        start = self.path / START
        learner = load(start) if start.exists() else None
        if isinstance(learner, Keyed):
            learner = learner.moved(keyed_in(learner.learner, str(learner.key), keys))
        return Fold(self.settings, learner, keys)

    @property
    def first(self) -> int | None:
        """The number of the first record that is kept."""
        paths = segments(self.path / LOG)
        return int(paths[0].stem) if paths else None

    # ---- writing

    def log(self, fold: Fold, last: Segment | None) -> Log:
        """The log, to be gone on with behind what was read."""
        log = Log(self.path / LOG, fold.number)
        with told(self.path / LOG):
            if last is None or last.is_empty:
                log.begin()
            else:
                log.go_on(last)
        return log

    def model(self, fold: Fold) -> bytes:
        """The file of the model as it is; the same bytes whoever has applied the records."""
        _require_decided(fold)
        return to_bytes(fold.model, about=self.about)

    def save_model(self, fold: Fold, path: Path) -> Path:
        """:meth:`model` in a file, which those of many keys are too large for memory for."""
        _require_decided(fold)
        save(fold.model, path, about=self.about)
        return path

    def capture(self, fold: Fold) -> Callable[[bool], int]:
        """What a snapshot of this instant still needs, in any thread; says how many bytes it has.

        It takes the place of the last one, and unless it is told to keep the log, what is needless of that is
        dropped.
        """
        data, number = fold.to_bytes(), fold.number
        commit = None if fold.parked is None else fold.parked.capture(data)

        def write(keep_log: bool) -> int:
            if commit is None:
                write_bytes(self.path / LATEST, data)
            else:
                commit()
            if not keep_log:
                paths = segments(self.path / LOG)
                for path, following in itertools.pairwise(paths):
                    if int(following.stem) <= number:
                        with contextlib.suppress(OSError):  # it is in nobody's way
                            path.unlink()
            return len(data)

        return write


def is_service(path: Path) -> bool:
    """Whether a folder says that it is one of a service."""
    return (path / SERVICE).is_file()


def _require_decided(fold: Fold) -> None:
    if not fold.decided:
        raise Problem(409, "no label was told yet: there is no model, and --task is auto.")


def _require_servable(path: Path) -> str | None:
    """Refuse what is no learner of records, or needs more than a record to look at one; the key, if any."""
    said, thing = about(path), load(path)
    learner = as_learner(thing) if can_learn(thing) else None
    if learner is not thing or learner.lacks("ask", "learn_one", "predict_one") or not learner.supervised:
        raise ConfigurationError(f"--model {path} holds a {said['what']}, which cannot be served row by row.")
    plan = said.get("plan")
    if isinstance(plan, dict) and (plan.get("lags") or plan.get("horizon")):
        raise ConfigurationError(
            f"--model {path} looks at earlier rows of its file (--lag, --horizon), which a request does not "
            "have: learn without them; auto looks at the last labels by itself."
        )
    return str(learner.key) if isinstance(learner, Keyed) else None
