"""A series in a file, forecast from every row on: paths as they come, figures of each horizon, the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.compilation import cpu_clock, wall_clock
from kons.errors import ConfigurationError, InputError, announce
from kons.files import about, load, save
from kons.forecasting import Forecaster, Paths
from kons.forecasting import Path as Ahead
from kons.learners.labels import object_array
from kons.runs.circumstances import blas_threads, versions
from kons.runs.folder import MODEL, RUN, SUMMARY, FolderWriter
from kons.runs.lines import as_table
from kons.runs.run import Progress
from kons.runs.settings import Settings
from kons.runs.summary import about_run, finite, skipped
from kons.streams import Plan, Stream
from kons.streams.stream import RawBlock
from kons.streams.wording import listed
from kons.tables.moments import NOT_A_TIME

__all__ = ["FORECAST", "Asked", "Forecasted", "ahead_columns", "forecast", "is_forecaster", "rows_ahead"]

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


class Figures:
    """Squared errors by horizon: of the forecast, of one season before, and of the last value again."""

    def __init__(self, horizon: int) -> None:
        self.squares = {name: np.zeros(horizon) for name in WHO}
        self.count, self.inside, self.judged = (np.zeros(horizon) for _ in range(3))

    def add(self, paths: Paths) -> None:
        """Of paths that have passed; steps that never came do not count."""
        known = ~np.isnan(paths.target)
        self.count += known.sum(axis=0)
        for name in WHO:
            values: Matrix = getattr(paths, name)
            self.squares[name] += np.where(known, (values - paths.target) ** 2, 0.0).sum(axis=0)
        judged = known & ~np.isnan(paths.lower)
        self.judged += judged.sum(axis=0)
        self.inside += (judged & (paths.lower <= paths.target) & (paths.target <= paths.upper)).sum(axis=0)

    def loss(self, name: str = "prediction") -> float:
        """The mean squared error over all horizons."""
        total = self.count.sum()
        return float(self.squares[name].sum() / total) if total else math.nan

    def by_horizon(self) -> list[dict[str, Any]]:
        """Root mean squared errors, and the share of targets inside their interval."""
        counts = np.maximum(self.count, 1.0)
        return [
            {
                "horizon": h + 1,
                "targets": int(self.count[h]),
                **{name: math.sqrt(self.squares[name][h] / counts[h]) for name in WHO},
                "coverage": self.inside[h] / self.judged[h] if self.judged[h] else None,
            }
            for h in range(len(counts))
        ]


class Forecasted(NamedTuple):
    """What became of a series."""

    model: Forecaster
    stream: Stream
    summary: dict[str, Any]
    was_stopped: bool


def forecast(
    settings: Settings,
    asked: Asked | None,
    folder: Path | None = None,
    *,
    force: bool = False,
    command: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    quiet: bool = False,
) -> Forecasted:
    """Forecast along the rows of a file; without ``asked``, by the model that the settings go on with.

    Every path is predicted by what was known at its origin. One pass, constant memory.
    """
    _require_plain(settings)
    if settings.model is None:
        assert asked is not None
        stream = settings.open(quiet=quiet)
        rest = stream.records(settings.rows)
        first = next(rest)
        model = _made(settings, asked, stream, first, quiet=quiet)
        blocks: Iterator[RawBlock] = chain([first], rest)
    else:
        model = load(settings.model)
        stream = settings.open(plan=about(settings.model)["plan"], quiet=quiet)
        blocks = iter(stream.records(settings.rows))
    if stream.task != "regression" or len(stream.targets) > 1:
        raise ConfigurationError("--horizon is for one target that is a number.")
    started, clock = wall_clock(), cpu_clock()
    figures, drawn, rows, stopped = Figures(model.asked.horizon), _Drawn(model.asked.horizon), 0, False
    writer: FolderWriter | None = None
    for block in blocks:
        paths = model.advance(block.records, block.y)
        rows += len(block.y)
        figures.add(paths)
        drawn.add(paths)
        if folder is not None and writer is None:
            told = settings.to_dict() | ({} if asked is None else {"forecast": asdict(asked)})
            document = about_run(FORECAST, stream, told, command, blas_threads())
            writer = FolderWriter.create(folder, {RUN: document}, force=force)
            writer.open_predictions()
        if writer is not None and len(paths.origin):
            writer.append(as_table(path_columns(model, paths), header=writer.length == 0))
        if progress is not None:
            part = settings.part_read(stream, rows)
            progress(Progress(rows, part, figures.loss(), sum(base.size or 0 for base in model.bases), wall_clock() - started))
        if stop is not None and stop():
            stopped = True
            break
    summary = _summary(settings, stream, model, figures, drawn, rows)
    seconds = {
        "seconds": wall_clock() - started,
        "microseconds_per_row": 1e6 * (cpu_clock() - clock) / max(rows, 1),
    }
    summary = finite(summary | seconds | {"stopped": stopped})
    if writer is not None:
        writer.settle()
        told = {"plan": stream.plan.to_dict(), "learner": FORECAST, "source": stream.source, "rows": rows}
        told |= {"loss": summary["loss"], "loss_name": summary["loss_name"]}
        save(model, writer.path / MODEL, about=finite(told))
        writer.write_json(SUMMARY, summary)
        writer.close(finished=True)
    return Forecasted(model, stream, summary, stopped)


def is_forecaster(model: Path | str) -> bool:
    """Whether the file of a model holds one."""
    return about(model).get("learner") == FORECAST


def rows_ahead(model: Forecaster, plan: Any, source: str | None, reading: Mapping[str, Any]) -> Ahead:
    """The path beyond the last row; a source has the columns known ahead."""
    if source is None:
        return model.path()
    from kons.streams import open_stream

    read = Plan.from_dict(plan)
    stream = open_stream(source, plan=read, quiet=True, block_size=1_000_000, **reading).to_predict()
    return model.path(next(iter(stream.records())).records)


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


def _made(settings: Settings, asked: Asked, stream: Stream, first: RawBlock, *, quiet: bool) -> Forecaster:
    columns = {column.name: column.kind for column in stream.plan.columns}
    for name in asked.known_ahead:
        if name not in columns:
            raise ConfigurationError(
                f"{stream.source} has no column {name!r} (known ahead); there are {listed([*columns])}."
            )
    dates = [name for name, kind in columns.items() if kind == "date"]
    time = settings.reading.get("time") or (dates[0] if len(dates) == 1 else None)
    time = time if time in dates else None
    step = None if time is None else _step(first.records.values(time, "date"), time)
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
        raise InputError(
            f"the column {name!r} does not move: by which column are rows in order of time (time)?"
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
        "notes": list(stream.notes),
        "features": list(stream.features),
        "settings": settings.to_dict(),
        "versions": versions(),
    }
