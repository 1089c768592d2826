"""One pass over the trace of a run: every curve, count and list that the page shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.report.folder import RunFolder, Segment, as_number
from kons.report.thinning import (
    Band,
    Envelope,
    Largest,
    PartMeans,
    RunningMean,
    RunningSum,
    Tail,
    WindowMean,
)

__all__ = ["BASELINES", "History", "Line", "Shares", "read_history"]

BASELINES = ("constant", "linear", "persistence")
POINTS = 300  # stretches of a curve; two points each at most
RECENT = 200  # rows of predicted against actual
LISTED = 10  # rows in a table
FEW = 50  # rows below which a start cannot be told from the rest
LARGEST = 1e100
START = 0.1  # the part of a run in which every row is new
MOST_EXPERTS = 1000
FEWEST = 3  # points that make a picture of shares over time

Line = tuple[Vector, Vector]


@dataclass(frozen=True)
class Shares:
    """Each expert's part over time: ``parts[i, j]`` of expert j at ``row[i]``."""

    row: Vector
    parts: NDArray[np.float64]
    what: str
    """``weight`` in the prediction, or ``lead``: part of the rows in which it led."""


@dataclass
class History:
    """What one pass over the trace found; None or empty where the trace does not hold it."""

    rows: int
    window: int
    columns: tuple[str, ...] = ()
    """What the trace holds."""
    unknown: int = 0
    """Rows whose loss is no number that could be drawn."""
    running: dict[str, Line] = field(default_factory=dict)
    windowed: dict[str, Line] = field(default_factory=dict)
    recent: dict[str, Vector] = field(default_factory=dict)
    intervals: int = 0
    """Rows with an interval and a target."""
    covered: int = 0
    """Those whose target lay in it."""
    size: Line | None = None
    effective_dimension: Line | None = None
    log_determinant: Line | None = None
    novelty: Band | None = None
    most_novel: list[dict[str, float]] = field(default_factory=list)
    novel_from: int = 0
    """The first row that could be listed as novel."""
    worst: list[dict[str, float]] = field(default_factory=list)
    confusion: NDArray[np.int64] | None = None
    """``[target, prediction]``, by code."""
    shares: Shares | None = None
    leaders: Line | None = None
    """The number of the expert that led most often, at the middle of each stretch of rows."""


def read_history(folder: RunFolder) -> History:
    """Read the trace once, in constant memory."""
    asked = as_number(folder.settings.get("window"))
    reader = _Reader(folder, _window(folder.rows, 1000 if asked is None else int(asked)))
    for segment in folder.trace():
        reader.add(segment)
    return reader.history()


def _window(rows: int, asked: int) -> int:
    """The window that was asked for, or a tenth of a run that holds less than four of them."""
    asked = max(1, asked)
    return asked if 4 * asked <= rows else max(1, rows // 10)


def _drawable(values: NDArray[Any]) -> Vector:
    """As floats, with NaN for what no axis can hold."""
    floats = values.astype(np.float64)
    drawable: Vector = np.where(np.abs(floats) <= LARGEST, floats, np.nan)
    return drawable


class _Losses:
    """The loss of one predictor: its mean so far, and over a window."""

    def __init__(self, total: int, window: int) -> None:
        self._total, self._mean, self._running = total, RunningMean(), Envelope(total, POINTS)
        # A tiny window on a long stream is looked at now and then.
        self._windows = WindowMean(window, least_hop=total // (64 * POINTS))
        self.window = self._windows.window

    def add(self, rows: NDArray[np.int64], losses: Vector) -> None:
        self._running.add(rows, self._mean.add(losses))
        self._windows.add(losses)

    def lines(self) -> tuple[Line, Line]:
        windowed = Envelope(self._total, POINTS)
        windowed.add(*self._windows.result())
        return self._running.line(), windowed.line()


class _Reader:
    """The state of the pass: counts go straight into what is found, curves at the end."""

    def __init__(self, folder: RunFolder, window: int) -> None:
        rows, classes = folder.rows, len(folder.classes)
        self._rows, self._window = rows, window
        self._found = History(rows, _Losses(rows, window).window)
        self._found.novel_from = int(START * rows) if rows >= FEW else 0
        self._found.confusion = np.zeros((classes, classes), np.int64) if classes else None
        self._losses: dict[str, _Losses] = {}
        self._levels: dict[str, Envelope] = {}
        self._dimension, self._determinant = RunningSum(), RunningSum()
        self._recent = Tail(RECENT)
        self._novel, self._worst = Largest("novelty", LISTED), Largest("loss", LISTED)
        self._shares, self._leads = PartMeans(rows, POINTS // 2), PartMeans(rows, POINTS // 2)

    def add(self, segment: Segment) -> None:
        columns = {name: _drawable(values) for name, values in segment.columns.items()}
        rows = np.arange(segment.first, segment.first + len(segment), dtype=np.int64)
        self._found.columns = tuple(sorted({*self._found.columns, *columns}))
        self._found.unknown += int(np.isnan(columns["loss"]).sum())
        for name in ("learner", *BASELINES):
            losses = columns.get("loss" if name == "learner" else f"baseline_{name}")
            if losses is not None:
                self._losses.setdefault(name, _Losses(self._rows, self._window)).add(rows, losses)
        self._add_levels(rows, columns)
        self._add_lists(rows, columns)
        self._add_outcomes(columns)
        self._add_experts(segment, rows, columns)

    def _add_levels(self, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        found: dict[str, Vector] = {name: columns[name] for name in ("size", "novelty") if name in columns}
        if "leverage" in columns:
            found["effective_dimension"] = self._dimension.add(columns["leverage"])
        if "weight" in columns and "inverse_form" in columns:
            added = np.log1p(np.maximum(columns["weight"] * columns["inverse_form"], 0.0))
            found["log_determinant"] = self._determinant.add(added)
        for name, values in found.items():
            self._levels.setdefault(name, Envelope(self._rows, POINTS)).add(rows, values)

    def _add_lists(self, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        unknown = np.full(len(rows), np.nan)
        names = ("target", "prediction", "lower", "upper", "loss", "novelty")
        shown = {"row": rows.astype(np.float64), **{name: columns.get(name, unknown) for name in names}}
        self._recent.add(shown)
        self._worst.add(shown)
        late = rows >= self._found.novel_from
        self._novel.add({name: values[late] for name, values in shown.items()})

    def _add_outcomes(self, columns: dict[str, Vector]) -> None:
        found, target, prediction = self._found, columns["target"], columns["prediction"]
        if "lower" in columns and "upper" in columns:
            lower, upper = columns["lower"], columns["upper"]
            found.intervals += int((np.isfinite(target) & np.isfinite(lower) & np.isfinite(upper)).sum())
            found.covered += int(((lower <= target) & (target <= upper)).sum())  # false where one is NaN
        if found.confusion is not None:
            count = len(found.confusion)
            known = (target >= 0) & (target < count) & (prediction >= 0) & (prediction < count)
            np.add.at(found.confusion, (target[known].astype(int), prediction[known].astype(int)), 1)

    def _add_experts(self, segment: Segment, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        if segment.shares is not None and segment.share_rows is not None:
            self._shares.add(segment.share_rows.astype(np.int64), _drawable(segment.shares))
        if "expert" in columns:
            known = (columns["expert"] >= 0) & (columns["expert"] < MOST_EXPERTS)  # not where it is NaN
            leader = columns["expert"][known].astype(np.int64)
            leads = np.zeros((len(leader), int(leader.max(initial=-1)) + 1))
            leads[np.arange(len(leader)), leader] = 1.0
            self._leads.add(rows[known], leads)

    def history(self) -> History:
        found = self._found
        for name, losses in self._losses.items():
            found.running[name], found.windowed[name] = losses.lines()
        lines = {name: line for name, level in self._levels.items() if len((line := level.line())[0])}
        found.size = lines.get("size")
        found.effective_dimension = lines.get("effective_dimension")
        found.log_determinant = lines.get("log_determinant")
        found.novelty = self._levels["novelty"].band() if "novelty" in lines else None
        found.recent, found.most_novel, found.worst = (
            self._recent.columns, self._novel.rows(), self._worst.rows()
        )  # fmt: skip
        (rows, weights), (led, leads) = self._shares.result(), self._leads.result()
        if leads.size:
            found.leaders = led, leads.argmax(axis=1).astype(np.float64)
            found.shares = Shares(led, leads, "lead")
        # Weights are known now and then: in a run too short for that, who led how often stands for them.
        if weights.size and (len(rows) >= FEWEST or not leads.size):
            found.shares = Shares(rows, weights, "weight")
        return found
