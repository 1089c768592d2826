"""One learner along a stream: predictions as they come, checkpoints, a summary; resumed after any crash.

Blocks are cut at absolute row numbers, so a run that continues from a checkpoint makes the same calls as one
that was never stopped, and the learner's state continues bit for bit: the predictions are the same bytes.
A checkpoint is written in an order that leaves a good one at every instant: predictions are on the disk, the
trace file is complete, and only then a new ``checkpoint.kons``, which knows the length of the first and the
number of the second, takes the place of the old one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kons.compilation import wall_clock
from kons.errors import (
    ConfigurationError,
    FileError,
    InputError,
    KonsError,
    NumericalError,
    announce,
    as_word,
)
from kons.evaluation import Scored
from kons.files import read_tree, save, write_file, write_tree
from kons.learners.events import Event
from kons.learners.labels import Labels, stored_labels
from kons.learners.protocol import as_learner
from kons.runs.circumstances import blas_threads, using_threads, versions
from kons.runs.folder import (
    CHECKPOINT,
    MODEL,
    RUN,
    SUMMARY,
    FolderWriter,
    complete_predictions,
    is_of_run,
    read_json,
    require_place,
    told,
)
from kons.runs.lines import as_csv, as_novelty, as_trace, joined
from kons.runs.novelty import Novelties
from kons.runs.pacing import Pacing
from kons.runs.raw_cells import RawCells, rows_at
from kons.runs.settings import Engine, Settings
from kons.runs.summary import about_run, finite, shares_of, summarize, without_target
from kons.runs.waiting import Waiting
from kons.state import bytes_in
from kons.stored import Stored
from kons.streams import Block, Stream

__all__ = ["Progress", "Run", "Stopped", "digest_of", "failures_in", "require_unchanged"]

KIND = "checkpoint"
# Rows with the largest losses, whose cells are kept for the report.
WORST = 10
# Columns that are named for each of these.
REASONS = 3
# What a checkpoint costs, before there was one: bytes a second (copied, digested, written), files to settle.
SPEED, SETTLING = 1.5e8, 0.02


class Progress(NamedTuple):
    """How far a run is; for a bar."""

    rows: int
    done: float | None
    """The part of the source that was read, if that is known."""
    loss: float
    """Without a target the median of the novelty."""
    atoms: int
    seconds: float

    @classmethod
    def of(cls, engine: Engine, done: float | None, seconds: float) -> Self:
        """Of a run by this engine."""
        return cls(engine.rows, done, engine.loss, as_learner(engine.learner).size or 0, seconds)


class Stopped(KonsError):  # noqa: N818 - not an error
    """The run was asked to stop, and did so at the end of a block."""


class Run:
    """A run, new or continued.

    ::

        run = Run.start(settings, folder)      or      Run.resume(folder)
        summary = run.go()

    Without a folder nothing is written; with one, nothing before the first block was learned. Asked to stop,
    see :meth:`go`.
    """

    settings: Settings
    stream: Stream
    engine: Engine

    def __init__(
        self,
        settings: Settings,
        stream: Stream,
        engine: Engine,
        *,
        place: Path | None = None,
        force: bool = False,
        command: Sequence[str] = (),
    ) -> None:
        self.settings, self.stream, self.engine = settings, stream, engine
        self.folder: FolderWriter | None = None
        """Where the run is written, once it is."""
        self.resumed = 0
        """How often it was continued."""
        self.was_stopped: bool = False
        """Whether it ended before its source did, since it was asked to."""
        self.waiting: Waiting = Waiting()
        self.novelties: Novelties | None = Novelties() if settings.no_target else None
        """How new the rows were; None where there is a target."""
        self.threads: int = blas_threads()
        self._place, self._force, self._command = place, force, list(command)
        self._labels = Labels()
        self._traced: list[dict[str, Any]] = []
        # Row numbers, and how much say each expert had after them.
        self._shares: list[tuple[int, list[float]]] = []
        self._first_traced = engine.rows
        self._pacing = Pacing()
        self._counted: tuple[int, int] | None = None
        self._fingerprint = stream.fingerprint()
        self._digest: str | None = None
        self._ids = None if settings.id is None else RawCells(stream, settings.id)
        self._written: list[Event] | None = None
        self._started = wall_clock()
        self._seconds_before = 0.0

    # ---- beginning

    @classmethod
    def start(
        cls,
        settings: Settings,
        folder: Path | None = None,
        *,
        force: bool = False,
        command: Sequence[str] = (),
        quiet: bool = False,
    ) -> Run:
        """Open the source, look at it, make the learner."""
        if folder is not None:
            require_place(folder, force=force, source=settings.source)
        if settings.events is not None:
            _require_events(settings.events, folder, settings.source)
        if settings.model is None:
            stream = settings.open(quiet=quiet)
            learner = settings.make_learner(stream)
            settings.require_memory(stream)
        else:
            if folder is not None and folder.resolve() in Path(settings.model).resolve().parents:
                raise ConfigurationError(f"{folder} holds the model to go on with: choose another folder.")
            learner, plan = settings.continued()
            stream = settings.open(plan=plan, quiet=quiet)
            if settings.no_target and stream.targets:
                raise ConfigurationError(
                    f"model {settings.model} predicts {stream.target!r}: leave out no_target."
                )
            settings = replace(settings, no_target=not stream.targets)
            if not stream.has_target:
                raise ConfigurationError(
                    f"{stream.source} has no column {stream.target!r} to learn: kons predict needs none."
                )
            if (own := as_learner(learner).delay) is not None:
                late = own - stream.delay  # as it was made for
                if settings.delay not in (0, late):
                    raise ConfigurationError(
                        f"model {settings.model} has decided delay already, {late}: leave it out."
                    )
                settings = replace(settings, delay=late)
        if (settings.events is not None or settings.fail_on) and getattr(learner, "inside", True):
            raise ConfigurationError(
                f"{as_learner(learner).core.name} looks for no events here (auto does from effort low on): "
                "leave out --events and --fail-on."
            )
        stream.live = not stream.resumable
        engine = settings.make_engine(stream, learner)
        if folder is not None and not stream.resumable:
            announce(
                f"{stream.source} can be read only once: this run cannot be resumed if it is interrupted."
            )
        return cls(settings, stream, engine, place=folder, force=force, command=command)

    @classmethod
    def resume(cls, folder: Path) -> Run:
        """Continue from the last checkpoint, or from the start if there was none yet."""
        writer = FolderWriter.claimed(folder)  # before anything is read: another may be about to finish it
        try:
            return cls._continued(folder, writer)
        except BaseException:
            writer.close(finished=False)
            raise

    @classmethod
    def _continued(cls, folder: Path, writer: FolderWriter) -> Run:
        asked = read_json(folder, RUN)
        if asked.get("kind") != "run":
            raise ConfigurationError(f"{folder} is not the folder of a run: only kons run can be resumed.")
        if (folder / SUMMARY).exists() and not (folder / CHECKPOINT).exists():
            raise ConfigurationError(
                f"the run in {folder} is finished: see {folder / SUMMARY}, or kons report {as_word(folder)}."
            )
        settings = Settings.from_dict(asked.get("settings"))
        source = asked.get("source")
        before = source.get("fingerprint") if isinstance(source, dict) else None
        if not isinstance(before, dict):
            name = "standard input" if settings.source == "-" else settings.source
            raise ConfigurationError(
                f"{name} can be read only once: the run in {folder} cannot be resumed; start it again."
            )
        found = settings.found_from(asked.get("started_in"))
        stream = found.open(plan=asked.get("plan"), quiet=True)
        stream.notes.extend(note for note in asked.get("notes", []) if isinstance(note, str))
        require_unchanged(stream, before)
        if (folder / CHECKPOINT).exists():
            run, length, traces = cls._from_checkpoint(folder, settings, stream)
        else:
            learner = settings.make_learner(stream) if settings.model is None else found.continued()[0]
            run, length, traces = cls(settings, stream, settings.make_engine(stream, learner)), 0, 0
        writer.reopen(length=length, traces=traces)
        run.folder = writer
        run.resumed += 1
        threads = asked.get("threads")
        run.threads = threads if isinstance(threads, int) and 1 <= threads <= 1024 else run.threads
        return run

    @classmethod
    def _from_checkpoint(cls, folder: Path, settings: Settings, stream: Stream) -> tuple[Run, int, int]:
        """The run, how long its predictions were, and how many trace files there were."""
        try:
            tree = read_tree(folder / CHECKPOINT, kind=KIND)
            saved = Stored(tree, "this run")
            engine = settings.make_engine(stream, saved.take("learner")).resume(saved.take("engine"))
            run = cls(settings, stream, engine)
            run._labels = Labels(stored_labels(saved, "labels"))
            run._digest = saved.word("digest")
            if run._digest != digest_of(stream):
                raise FileError(
                    f"{stream.source} has changed since the run began, though not in size and time: put the "
                    "old file back."
                )
            if run.novelties is not None:
                run.novelties.load_state(saved.inner("novelties"))
            run.resumed, run._seconds_before = saved.integer("resumed"), saved.number("seconds", at_least=0.0)
            if saved.take("versions") != versions():
                announce(
                    "versions differ from those that the run began with: predictions may differ in last "
                    "digits."
                )
            length, traces = saved.integer("length"), saved.integer("traces")
            saved.finish()
        except FileError as error:
            raise FileError(f"{error} The run cannot be continued: start it again.") from error
        return run, length, traces

    # ---- running

    @property
    def seconds(self) -> float:
        """Spent so far, in earlier parts too."""
        return self._seconds_before + wall_clock() - self._started

    @property
    def checkpoint_seconds(self) -> float:
        """Spent in checkpoints, since :meth:`go` was called."""
        return self._pacing.spent

    def go(
        self,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> dict[str, Any]:
        """Read, predict, learn, write, to the end; returns the summary. Once only.

        ``stop()`` is looked at after each block. If it is true, a run that can be resumed writes a checkpoint
        and raises :class:`Stopped`; any other ends there, with a summary of the rows so far.
        """
        self._started, self._pacing = wall_clock(), Pacing()
        try:
            with using_threads(self.threads):
                for block in self._blocks(stop):
                    self._take(self.engine.advance(block), block.lines)
                    self._write_events()
                    if progress is not None:
                        progress(self._progress())
                    if stop is not None and stop():
                        self._stop()
                        break
                    if self._is_time():
                        self.checkpoint()
                return self._finish()
        except (FileError, InputError, NumericalError) as error:
            raise type(error)(f"{error} {self._what_is_left(error)}".rstrip()) from error
        finally:
            if self.folder is not None:
                self.folder.close(finished=False)

    @property
    def classes(self) -> list[Any] | None:
        """The labels, in the order of their codes in the trace; None for numbers."""
        if self.stream.task != "classification":
            return None
        return list(self._labels.known) or self.engine.result().classes

    def _blocks(self, stop: Callable[[], bool] | None) -> Iterator[Block]:
        """Blocks of rows, with a word about when they are waited for."""
        blocks = self.settings.blocks(self.stream, self.engine.rows, self.engine.learner)
        try:
            yield from self.waiting.blocks(blocks, stop, begun=self.engine.rows > 0)
        except InputError:
            if self.folder is not None:
                with suppress(KonsError):  # what could not be read is what the user should hear of
                    self.checkpoint()
            raise
        if self.waiting.was_interrupted:
            self._stop()

    def _take(self, scored: Scored, lines: NDArray[np.int64]) -> None:
        if self.novelties is not None and scored.trace.novelty is not None:
            self.novelties.add(scored.trace.novelty, scored.row, lines)
        if self.folder is None and self._place is not None:
            self.folder = FolderWriter.create(self._place, {RUN: self._document()}, force=self._force)
            self.folder.open_predictions()
        if self.folder is not None:
            classes = [] if scored.probabilities is None else as_learner(self.engine.learner).classes
            names, header = self.stream.targets, self.folder.length == 0
            if self.novelties is not None:
                self.folder.append(as_novelty(scored, lines, self._ids, header=header))
            else:
                self.folder.append(as_csv(scored, lines, self._ids, classes, names, header=header))
            self._traced.append(as_trace(scored, lines, self._labels))
            if shares := shares_of(self.engine.learner):
                self._shares.append((self.engine.rows - 1, list(shares.values())))

    @property
    def events(self) -> list[Event]:
        """What was noticed in the rows of this run; a model that it goes on with may have seen others."""
        learner = as_learner(self.engine.learner)
        before = learner.rows_noted - self.engine.rows
        return [event for event in learner.events if event.last >= before]

    @property
    def failures(self) -> list[Event]:
        """Those among them that were asked to be taken for failures."""
        return _failing(self.events, self.settings.fail_on)

    def _write_events(self) -> None:
        """All of them, whole or not at all, whenever there are more."""
        if self.settings.events is None or (events := self.events) == self._written:
            return
        lines = [json.dumps(finite(event.as_dict()), ensure_ascii=False) + "\n" for event in events or ()]
        text = "".join(lines).encode("utf-8", "backslashreplace")
        write_file(self.settings.events, lambda file: file.write(text))
        self._written = events

    def _document(self) -> dict[str, Any]:
        """run.json."""
        about = about_run("run", self.stream, self.settings.to_dict(), self._command, self.threads)
        about["source"]["fingerprint"] = self._fingerprint  # as it was when it was opened
        return about | {"plan": self.stream.plan.to_dict(), "notes": list(self.stream.notes)}

    def _progress(self) -> Progress:
        now = Progress.of(self.engine, self.settings.part_read(self.stream, self.engine.rows), self.seconds)
        return now if self.novelties is None else now._replace(loss=self.novelties.quantile(0.5))

    # ---- checkpoints

    def _is_time(self) -> bool:
        if self.folder is None or not self._pacing.is_due():
            return False
        if self._pacing.has_saved or not self.stream.resumable:
            return True
        self._pacing.expect(SETTLING + self._bytes_to_save() / SPEED)
        return self._pacing.is_due()

    def _bytes_to_save(self) -> float:
        """About how large a checkpoint would be: counted once, since that copies the state, then scaled."""
        size = max(1, as_learner(self.engine.learner).size or 1)
        if self._counted is None:
            self._counted = bytes_in(self.engine.learner.state()), size
        # An exact learner grows as the square of its points, and none grows faster.
        return self._counted[0] * (size / self._counted[1]) ** 2

    def checkpoint(self) -> None:
        """Save all it takes to continue from here; of a source that cannot be read again, the trace."""
        assert self.folder is not None
        if self._digest is None and self.stream.resumable:
            self._digest = digest_of(self.stream)  # once: it is no part of what the next one costs
        with self._pacing.saving(), told(self.folder.path):
            self.folder.settle()
            self._write_trace()
            if not self.stream.resumable:
                return
            write_tree(
                self.folder.path / CHECKPOINT,
                {
                    "learner": self.engine.learner,
                    "engine": self.engine.state(),
                    "length": self.folder.length,
                    "traces": self.folder.traces,
                    "labels": list(self._labels.known),
                    "digest": self._digest,
                    "resumed": self.resumed,
                    "seconds": self.seconds,
                    "versions": versions(),
                    **({} if self.novelties is None else {"novelties": self.novelties.state()}),
                },
                kind=KIND,
            )

    def _write_trace(self) -> None:
        assert self.folder is not None
        if self._traced:
            columns = {"first": np.array(self._first_traced)} | joined(self._traced)
            if self._shares:
                rows, shares = zip(*self._shares, strict=True)
                columns |= {"share_rows": np.array(rows), "shares": np.array(shares)}
            self.folder.add_trace(columns)
            self._traced, self._shares, self._first_traced = [], [], self.engine.rows

    def _stop(self) -> None:
        """At the end of a block, asked to: to be continued, or the end."""
        if self.folder is not None and self.stream.resumable:
            self.checkpoint()
            place = as_word(self.folder.path)
            raise Stopped(f"stopped after {self.engine.rows:,} rows. Continue with: kons resume {place}")
        self.was_stopped = True

    def _what_is_left(self, error: KonsError) -> str:
        """For the end of an error's message: what there is, and what can be done with it."""
        if self.folder is None or not self.stream.resumable:
            return ""
        if not (self.folder.path / RUN).exists():
            return "Its folder is gone: start the run again."
        if isinstance(error, InputError):
            return f"The {self.engine.rows:,} rows before it are in {self.folder.path}."
        return f"Continue with: kons resume {as_word(self.folder.path)}"

    # ---- the end

    def _finish(self) -> dict[str, Any]:
        self.engine.finish()
        learner = self.engine.learner
        if as_learner(learner).warming_up:
            learner.finish_warmup()  # a model that has learned what there was
        summary = summarize(self)
        if self.novelties is not None:
            summary = without_target(summary) | {"novelty": finite(self._novelty(self.novelties))}
        self._write_events()
        if self.folder is not None:
            self.folder.settle()
            self._write_trace()
            about = {
                "plan": self.stream.plan.to_dict(),
                "past": finite(self.stream.past),
                "learner": self.settings.kind,
                "source": self.stream.source,
                "rows": self.engine.rows,
            }
            about |= {name: summary[name] for name in ("loss", "loss_name") if name in summary}
            save(learner, self.folder.path / MODEL, about=about)
            if self.novelties is None:
                summary["worst_cells"] = self._worst_cells(self.folder)
                summary["worst_reasons"] = finite(self._worst_reasons(summary["worst_cells"]))
            self.folder.write_json(SUMMARY, summary)
            self.folder.close(finished=True)
            complete_predictions(self.folder.path, summary)
        return summary

    def _novelty(self, found: Novelties) -> dict[str, Any]:
        """What the novelties come to, with the cells of the most novel rows, where they can be read again."""
        told, cells = found.figures(), dict[int, dict[str, str]]()
        with suppress(KonsError):  # gone meanwhile, say: a run is not worth less without them
            cells = rows_at(self.stream, [row["line"] for row in told["most_novel"]])
        for row in told["most_novel"]:
            row["cells"] = cells.get(row["line"], {})
        return told

    def _worst_cells(self, folder: FolderWriter) -> dict[str, dict[str, str]]:
        """The cells of the rows that cost most, by their line, as far as the source can be read again."""
        if self.stream.task == "classification":
            return {}
        with suppress(Exception):  # a damaged trace, say: a run is not worth less without them
            cells = rows_at(self.stream, folder.worst_lines(WORST))
            return {str(line): found for line, found in cells.items()}
        return {}

    def _worst_reasons(self, cells: dict[str, dict[str, str]]) -> dict[str, dict[str, float]]:
        """What moves the predictions of these rows most, by line and column, as the model sees them now."""
        learner, found = as_learner(self.engine.learner), {}
        with suppress(Exception):  # as above; a learner of one's own explains nothing
            for line, row in cells.items():
                known = {name: value for name, value in row.items() if name in learner.encoder.columns}
                reasons = learner.explain(known, recent_targets=False, similar=0)
                found[line] = {str(name): value for name, value in reasons.largest(REASONS)}
        return found

    @property
    def changed_notes(self) -> list[str]:
        """What became of the source while it was read."""
        if self._fingerprint is None or self.stream.fingerprint() == self._fingerprint:
            return []
        return [f"{self.stream.source} changed while it was read: a part of it may be missing."]


def failures_in(summary: Mapping[str, Any]) -> list[Event]:
    """Those of a finished run, by its summary; none, where it does not tell."""
    with suppress(AttributeError, LookupError, TypeError):
        return _failing([Event(**event) for event in summary["events"]], summary["settings"]["fail_on"])
    return []


def _failing(events: Sequence[Event], names: Sequence[str]) -> list[Event]:
    return [event for event in events if not {event.kind, event.severity}.isdisjoint(names)]


def _require_events(file: str, folder: Path | None, source: str) -> None:
    """Refuse to write events over anything else: what is there, the source, what the run itself writes."""
    place = Path(file).resolve()
    if folder is not None and (place == folder.resolve() or is_of_run(place, folder.resolve())):
        raise ConfigurationError(f"events {file} is a name of the run in {folder}: choose another name.")
    if source != "-" and place == Path(source).resolve():
        raise ConfigurationError(f"events {file} is the file that is read: choose another name.")
    try:
        with open(file, encoding="utf-8") as before:
            first = before.readline()
            if first and "severity" not in json.loads(first):
                raise ValueError("no event")
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError):
        raise ConfigurationError(
            f"events {file} is there and holds something else: choose another name, or remove it."
        ) from None


def digest_of(stream: Stream) -> str:
    """Of a whole file: a gigabyte takes a second, and learning it an hour."""
    try:
        with open(stream.source, "rb") as file:
            return file_digest(file, "blake2b").hexdigest()
    except OSError as error:
        raise InputError(f"{stream.source}: cannot be read ({error.strerror or error}).") from None


def require_unchanged(stream: Stream, before: dict[str, Any]) -> None:
    """Refuse a source whose fingerprint is another than it was."""
    now = stream.fingerprint() or {}
    changed = [
        f"{name} was {before.get(name)!r} and is {now[name]!r}"
        for name in now
        if now[name] != before.get(name)
    ]
    if changed or not now:
        raise FileError(
            f"{stream.source} has changed since the run began ({', '.join(changed)}): put the old file "
            "back, or start the run again."
        )
