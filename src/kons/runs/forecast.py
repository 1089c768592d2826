"""A series in a file, forecast from every row on: paths as they come, figures of each horizon, the model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import cpu_clock, wall_clock
from kons.errors import ConfigurationError, FileError, InputError, announce, as_word
from kons.files import about, load, read_tree, save, write_tree
from kons.forecasting import Forecaster, Paths
from kons.forecasting import Path as Ahead
from kons.learners.labels import object_array
from kons.runs.circumstances import blas_threads, using_threads, versions
from kons.runs.folder import CHECKPOINT, MODEL, RUN, SUMMARY, FolderWriter, read_json, told
from kons.runs.lines import as_table
from kons.runs.pacing import Pacing
from kons.runs.run import Progress, Stopped, digest_of, require_unchanged
from kons.runs.settings import Settings
from kons.runs.summary import about_run, complaints, finite, skipped
from kons.state import Array, Part, fields
from kons.stored import Stored
from kons.streams import Plan, Stream
from kons.streams.stream import RawBlock
from kons.streams.wording import listed
from kons.tables.moments import NOT_A_TIME

__all__ = [
    "FORECAST",
    "Asked",
    "ForecastRun",
    "Forecasted",
    "ahead_columns",
    "is_forecast",
    "is_forecaster",
    "rows_ahead",
]

#: What run.json and a model's file call it.
FORECAST = "forecast"
SECOND = 1_000_000
# Paths that a report draws, a horizon apart.
DRAWN = 6
WHO = ("prediction", "seasonal", "last")


@dataclass(frozen=True)
class Asked:
    """What a forecast is told besides how its file is read."""

    horizon: str
    """Steps, or a stretch of time: 24, 24h."""
    known_ahead: tuple[str, ...] = ()
    seasons: tuple[int, ...] | None = None


class Figures(Part):
    """Squared errors by horizon: of the forecast, of one season before, and of the last value again."""

    STATE = fields(
        squares=Array(len(WHO), "horizon", at_least=0.0),
        **{name: Array("horizon", at_least=0.0) for name in ("count", "inside", "judged")},
    )
    count: Vector
    inside: Vector
    judged: Vector

    def __init__(self, horizon: int) -> None:
        self.squares: Matrix = np.zeros((len(WHO), horizon))
        self.count, self.inside, self.judged = (np.zeros(horizon) for _ in range(3))

    def add(self, paths: Paths) -> None:
        """Of paths that have passed; steps that never came do not count."""
        known = ~np.isnan(paths.target)
        self.count += known.sum(axis=0)
        for place, name in enumerate(WHO):
            values: Matrix = getattr(paths, name)
            self.squares[place] += np.where(known, (values - paths.target) ** 2, 0.0).sum(axis=0)
        judged = known & ~np.isnan(paths.lower)
        self.judged += judged.sum(axis=0)
        self.inside += (judged & (paths.lower <= paths.target) & (paths.target <= paths.upper)).sum(axis=0)

    def loss(self, name: str = "prediction") -> float:
        """The mean squared error over all horizons."""
        total = self.count.sum()
        return float(self.squares[WHO.index(name)].sum() / total) if total else math.nan

    def by_horizon(self) -> list[dict[str, Any]]:
        """Root mean squared errors, and the share of targets inside their interval."""
        with np.errstate(invalid="ignore"):  # where nothing came
            errors = np.sqrt(self.squares / self.count)
        return [
            {
                "horizon": h + 1,
                "targets": int(self.count[h]),
                **{name: float(errors[k, h]) for k, name in enumerate(WHO)},
                "coverage": self.inside[h] / self.judged[h] if self.judged[h] else None,
            }
            for h in range(len(self.count))
        ]


class Forecasted(NamedTuple):
    """What became of a series."""

    model: Forecaster
    stream: Stream
    summary: dict[str, Any]
    was_stopped: bool


class ForecastRun:
    """A forecast along the rows of a file, new or continued: one pass, constant memory.

    Every path is predicted by what was known at its origin. Blocks are cut at absolute row numbers and
    checkpoints written as in :class:`kons.runs.Run`, so a run that goes on writes the same bytes.
    """

    settings: Settings
    asked: Asked | None
    stream: Stream
    model: Forecaster
    figures: Figures
    drawn: _Drawn
    rows: int

    def __init__(self, settings: Settings, asked: Asked | None, stream: Stream, model: Forecaster) -> None:
        self.settings, self.asked, self.stream, self.model = settings, asked, stream, model
        self.figures, self.drawn = Figures(model.asked.horizon), _Drawn(model.asked.horizon)
        self.rows = self.resumed = 0
        self.folder: FolderWriter | None = None
        self.threads: int = blas_threads()
        self._place: tuple[Path, bool, Sequence[str]] | None = None
        self._pacing, self._digest = Pacing(), None  # type: tuple[Pacing, str | None]
        self._fingerprint = stream.fingerprint()
        self._started, self._seconds_before = wall_clock(), 0.0

    @classmethod
    def start(
        cls,
        settings: Settings,
        asked: Asked | None,
        folder: Path | None = None,
        *,
        force: bool = False,
        command: Sequence[str] = (),
        quiet: bool = False,
    ) -> ForecastRun:
        """Open the source and make the forecaster; without ``asked`` it is the settings' model."""
        _require_plain(settings)
        if settings.model is None:
            stream = settings.open(quiet=quiet)
            model = None
        else:
            model = load(settings.model)
            stream = settings.open(plan=about(settings.model)["plan"], quiet=quiet)
        run = cls(settings, asked, stream, model or _made(settings, asked, stream, quiet=quiet))
        run._place = None if folder is None else (folder, force, command)
        if folder is not None and not stream.resumable:
            announce(
                f"{stream.source} can be read only once: this run cannot be resumed if it is interrupted."
            )
        return run

    @classmethod
    def resume(cls, folder: Path) -> ForecastRun:
        """Continue from the last checkpoint, or from the start if there was none yet."""
        writer = FolderWriter.claimed(folder)
        try:
            told = read_json(folder, RUN)
            if (folder / SUMMARY).exists() and not (folder / CHECKPOINT).exists():
                raise ConfigurationError(f"the run in {folder} is finished: see {folder / SUMMARY}.")
            given, before = dict(told.get("settings") or {}), (told.get("source") or {}).get("fingerprint")
            if not isinstance(before, dict):
                raise ConfigurationError(
                    f"the source can be read only once: the run in {folder} cannot be resumed: "
                    "start it again."
                )
            asked = _stored_asked(given.pop("forecast", None))
            settings = Settings.from_dict(given)
            found = settings.found_from(told.get("started_in"))
            stream = found.open(plan=told.get("plan"), quiet=True)
            stream.notes.extend(note for note in told.get("notes", []) if isinstance(note, str))
            require_unchanged(stream, before)
            if (folder / CHECKPOINT).exists():
                run, length = cls._from_checkpoint(folder, settings, asked, stream)
            else:
                made = load(found.model) if found.model is not None else None
                run, length = cls(found, asked, stream, made or _made(found, asked, stream, quiet=True)), 0
            run.settings = settings
            writer.reopen(length=length, traces=0)
        except BaseException:
            writer.close(finished=False)
            raise
        run.folder, run.resumed = writer, run.resumed + 1
        threads = told.get("threads")
        run.threads = threads if isinstance(threads, int) and 1 <= threads <= 1024 else run.threads
        return run

    @classmethod
    def _from_checkpoint(
        cls, folder: Path, settings: Settings, asked: Asked | None, stream: Stream
    ) -> tuple[ForecastRun, int]:
        try:
            saved = Stored(read_tree(folder / CHECKPOINT, kind=FORECAST), "this run")
            run = cls(settings, asked, stream, saved.take("model"))
            run.figures.load_state(saved.inner("figures"), horizon=run.model.asked.horizon)
            run.drawn.kept = json.loads(saved.word("drawn"))
            run.rows, run._digest = saved.integer("rows"), saved.word("digest")
            run.resumed, run._seconds_before = saved.integer("resumed"), saved.number("seconds", at_least=0.0)
            length = saved.integer("length")
            if run._digest != digest_of(stream):
                raise FileError(f"{stream.source} has changed since the run began: put the old file back.")
            saved.finish()
        except FileError as error:
            raise FileError(f"{error} The run cannot be continued: start it again.") from error
        return run, length

    def go(
        self,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Forecasted:
        """To the end; asked to stop, a run that can be resumed raises :class:`Stopped`. Once only."""
        if self.stream.task != "regression" or len(self.stream.targets) > 1:
            seen = f"{len(self.stream.targets)} targets" if len(self.stream.targets) > 1 else "labels"
            raise ConfigurationError(
                f"a forecast (horizon) is of one target that is a number, and {self.stream.target!r} was "
                f"read as {seen}: name one target, with --task regression if few values look like labels."
            )
        self._started, self._pacing, clock = wall_clock(), Pacing(), cpu_clock()
        first, stopped = self.rows, False
        try:
            with using_threads(self.threads):
                for block in self.stream.records(self.settings.rows):
                    if block.first < first:
                        continue
                    self._take(block)
                    if progress is not None:
                        part = self.settings.part_read(self.stream, self.rows)
                        atoms = sum(base.size or 0 for base in self.model.bases)
                        progress(Progress(self.rows, part, self.figures.loss(), atoms, self._seconds))
                    if stop is not None and stop():
                        self._stop()
                        stopped = True
                        break
                    if self.folder is not None and self.stream.resumable and self._pacing.is_due():
                        self.checkpoint()
                cost = 1e6 * (cpu_clock() - clock) / max(self.rows - first, 1)
                return Forecasted(self.model, self.stream, self._finish(cost, stopped), stopped)
        finally:
            if self.folder is not None:
                self.folder.close(finished=False)

    @property
    def _seconds(self) -> float:
        return self._seconds_before + wall_clock() - self._started

    def _take(self, block: RawBlock) -> None:
        paths = self.model.advance(block.records, block.y)
        self.rows += len(block.y)
        self.figures.add(paths)
        self.drawn.add(paths)
        if self._place is not None and self.folder is None:
            place, force, command = self._place
            told = self.settings.to_dict() | ({} if self.asked is None else {"forecast": asdict(self.asked)})
            document = about_run(FORECAST, self.stream, told, command, self.threads)
            document["source"]["fingerprint"] = self._fingerprint
            document |= {"plan": self.stream.plan.to_dict(), "notes": list(self.stream.notes)}
            self.folder = FolderWriter.create(place, {RUN: document}, force=force)
            self.folder.open_predictions()
        if self.folder is not None and len(paths.origin):
            self.folder.append(as_table(path_columns(self.model, paths), header=self.folder.length == 0))

    def checkpoint(self) -> None:
        """Save all it takes to continue from here."""
        assert self.folder is not None
        if self._digest is None:
            self._digest = digest_of(self.stream)
        with self._pacing.saving(), told(self.folder.path):
            self.folder.settle()
            tree: dict[str, Any] = {
                "model": self.model,
                "figures": self.figures.state(),
                "drawn": json.dumps(self.drawn.kept),
                "rows": self.rows,
                "length": self.folder.length,
                "digest": self._digest,
                "resumed": self.resumed,
                "seconds": self._seconds,
            }
            write_tree(self.folder.path / CHECKPOINT, tree, kind=FORECAST)

    def _stop(self) -> None:
        if self.folder is not None and self.stream.resumable:
            self.checkpoint()
            place = as_word(self.folder.path)
            raise Stopped(f"stopped after {self.rows:,} rows. Continue with: kons resume {place}")

    def _finish(self, cost: float, stopped: bool) -> dict[str, Any]:
        given = self.settings, self.stream, self.model, self.figures, self.drawn, self.rows
        seconds = {"seconds": self._seconds, "microseconds_per_row": cost}
        summary: dict[str, Any] = finite(
            _summary(*given) | seconds | {"stopped": stopped, "resumed": self.resumed}
        )
        if self.folder is not None:
            self.folder.settle()
            kept: dict[str, Any] = {
                "plan": self.stream.plan.to_dict(),
                "learner": FORECAST,
                "source": self.stream.source,
            }
            kept |= {"rows": self.rows, "loss": summary["loss"], "loss_name": summary["loss_name"]}
            save(self.model, self.folder.path / MODEL, about=finite(kept))
            self.folder.write_json(SUMMARY, summary)
            self.folder.close(finished=True)
        return summary


def _stored_asked(told: Any) -> Asked | None:
    if told is None:
        return None
    try:
        seasons = None if told["seasons"] is None else tuple(told["seasons"])
        return Asked(str(told["horizon"]), tuple(told["known_ahead"]), seasons)
    except (LookupError, TypeError):
        raise FileError("run.json is not as a run has written it: start the run again.") from None


def is_forecast(folder: Path) -> bool:
    """Whether the run in a folder is one."""
    return (folder / RUN).is_file() and read_json(folder, RUN).get("kind") == FORECAST


def is_forecaster(model: Path | str) -> bool:
    """Whether the file of a model holds one."""
    return about(model).get("learner") == FORECAST


def rows_ahead(
    model: Forecaster,
    plan: Any,
    source: str | None,
    reading: Mapping[str, Any],
    level: float | None = None,
) -> Ahead:
    """The path beyond the last row; a source has the columns known ahead."""
    if source is None:
        return model.path(level=level)
    from kons.streams import open_stream

    read = Plan.from_dict(plan)
    stream = open_stream(source, plan=read, quiet=True, block_size=1_000_000, **reading).to_predict()
    return model.path(next(iter(stream.records())).records, level)


def ahead_columns(model: Forecaster, ahead: Ahead) -> dict[str, NDArray[Any]]:
    """The path beyond the last row as columns of a table."""
    horizon = np.arange(1, len(ahead.prediction) + 1)
    columns: dict[str, NDArray[Any]] = {"horizon": horizon}
    if ahead.time is not None:
        columns["time"] = _texts(ahead.time.view(np.int64))
    return columns | {"prediction": ahead.prediction, "lower": ahead.lower, "upper": ahead.upper}


def path_columns(model: Forecaster, paths: Paths) -> dict[str, NDArray[Any]]:
    """Paths as lines of a table, one for each origin and horizon."""
    n, H = paths.prediction.shape
    origin, h = np.repeat(paths.origin, H), np.tile(np.arange(1, H + 1), n)
    columns: dict[str, NDArray[Any]] = {"origin": origin, "horizon": h}
    if model.time is not None:
        step = model.asked.step
        columns = {"origin": _texts(origin * step), "horizon": h, "time": _texts((origin + h) * step)}
    parts = ("target", "prediction", "lower", "upper", "seasonal")
    return columns | {name: getattr(paths, name).ravel() for name in parts}


class _Drawn:
    """The last paths, a horizon apart: what a report draws."""

    kept: list[dict[str, Any]]

    def __init__(self, horizon: int) -> None:
        self._horizon, self.kept = horizon, []  # type: tuple[int, list[dict[str, Any]]]

    def add(self, paths: Paths) -> None:
        for i in np.flatnonzero(paths.origin % self._horizon == 0)[-DRAWN:]:
            parts = {
                name: getattr(paths, name)[i]
                for name in ("target", "prediction", "lower", "upper", "seasonal")
            }
            self.kept.append(
                {"origin": int(paths.origin[i]), **{name: v.tolist() for name, v in parts.items()}}
            )
        self.kept = self.kept[-DRAWN:]


def _require_plain(settings: Settings) -> None:
    """Refuse what a forecast has no use for."""
    usual = {"learner": "auto", "delay": 0, "shuffle": False, "id": None, "class_weight": None}
    for name, value in usual.items():
        if getattr(settings, name) != value:
            raise ConfigurationError(f"a forecast takes no {name}: leave it out.")
    if "lag" in settings.reading:
        raise ConfigurationError("a forecast has last targets and earlier seasons by itself: leave out lag.")
    if other := settings.parameters.keys() - {"effort"}:
        raise ConfigurationError(f"a forecast (horizon) takes no parameter {min(other)!r}.")


def _made(settings: Settings, asked: Asked | None, stream: Stream, *, quiet: bool) -> Forecaster:
    assert asked is not None
    columns = {column.name: column.kind for column in stream.plan.columns}
    for name in asked.known_ahead:
        if name not in columns:
            raise ConfigurationError(
                f"{stream.source} has no column {name!r} with values in its first rows (known ahead); there "
                f"are {listed([*columns])}."
            )
    dates = [name for name, kind in columns.items() if kind == "date"]
    time = settings.reading.get("time") or (dates[0] if len(dates) == 1 else None)
    time = time if time in dates else None
    step = None
    if time is not None:
        step = _step(next(stream.records(settings.rows)).records.values(time, "date"), time)
    if not quiet:
        known = listed([*([time] if time else []), *asked.known_ahead]) or "nothing"
        told = "each row is a step" if step is None else f"steps of {step}, by {time!r}"
        announce(f"{stream.source}: {told}; known ahead: {known}.")
    return Forecaster(
        asked.horizon,
        time=time,
        step=step,
        known_ahead=asked.known_ahead,
        seasons=asked.seasons,
        seed=settings.seed,
        **settings.parameters,
    )


def _step(moments: NDArray[np.int64], name: str) -> str:
    """What lies between most rows that follow each other, in words that a forecaster takes."""
    apart = np.diff(moments[moments != NOT_A_TIME])
    apart = apart[apart > 0]
    if not len(apart):
        seen = "one moment" if len(moments) == 1 else "the same moment in all rows"
        raise InputError(
            f"the column {name!r} has {seen}: give at least two rows, in order of a column of time (time)."
        )
    values, counts = np.unique(apart, return_counts=True)
    seconds = int(values[counts.argmax()]) / SECOND
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def _texts(moments: NDArray[np.int64]) -> NDArray[Any]:
    return object_array([str(text) for text in moments.view("datetime64[us]").astype("datetime64[s]")])


def _summary(
    settings: Settings, stream: Stream, model: Forecaster, figures: Figures, drawn: _Drawn, rows: int
) -> dict[str, Any]:
    ahead: Ahead = model.path()
    return {
        "rows": rows,
        "task": "regression",
        "target": stream.target,
        "learner": FORECAST,
        "loss": figures.loss(),
        "loss_name": "mean squared error",
        "baselines": {"seasonal": figures.loss("seasonal"), "last": figures.loss("last")},
        "targets_scored": int(figures.count.sum()),
        "steps": model.asked.horizon,
        "step": model.step,
        "seasons": list(model.asked.seasons),
        "known_ahead": list(model.known_ahead),
        "level": model.level,
        "coverage": float(figures.inside.sum() / figures.judged.sum()) if figures.judged.any() else None,
        "by_horizon": figures.by_horizon(),
        "paths": drawn.kept,
        "ahead": {
            "origin": model.last_step,
            **{name: getattr(ahead, name).tolist() for name in ("prediction", "lower", "upper")},
        },
        "ahead_time": None if ahead.time is None else _texts(ahead.time.view(np.int64)).tolist(),
        **skipped(stream),
        "notes": [*stream.notes, *complaints(stream)],
        "columns": list(stream.columns),
        "features": list(stream.features),
        "settings": settings.to_dict(),
        "versions": versions(),
    }
