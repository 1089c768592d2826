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
    reader = _Reader(folder.rows, _window(folder.rows, 1000 if asked is None else int(asked)), folder)
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


class _Reader:
    """The state of the pass."""

    def __init__(self, rows: int, window: int, folder: RunFolder) -> None:
        self._rows, self._folder = rows, folder
        hop = rows // (64 * POINTS)  # a tiny window on a long stream is looked at now and then
        self._means: dict[str, RunningMean] = {}
        self._running: dict[str, Envelope] = {}
        self._windows: dict[str, WindowMean] = {}
        self._hop, self._asked = hop, window
        self._window = WindowMean(window, least_hop=hop).window
        self._levels: dict[str, Envelope] = {}
        self._sums = {"effective_dimension": RunningSum(), "log_determinant": RunningSum()}
        self._recent = Tail(RECENT)
        self._novel_from = int(START * rows) if rows >= FEW else 0
        self._novel, self._worst = Largest("novelty", LISTED), Largest("loss", LISTED)
        self._intervals = self._covered = 0
        self._names: set[str] = set()
        self._unknown = 0
        classes = len(folder.classes)
        self._confusion = np.zeros((classes, classes), np.int64) if classes else None
        self._shares, self._leads = PartMeans(rows, POINTS // 2), PartMeans(rows, POINTS // 2)

    def add(self, segment: Segment) -> None:
        columns = {name: _drawable(values) for name, values in segment.columns.items()}
        self._unknown += int(np.isnan(columns["loss"]).sum())
        rows = np.arange(segment.first, segment.first + len(segment), dtype=np.int64)
        self._names |= columns.keys()
        self._add_losses(rows, columns)
        self._add_levels(rows, columns)
        self._add_lists(rows, columns)
        self._add_outcomes(columns)
        self._add_experts(segment, rows, columns)

    def _add_losses(self, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        for name in ("learner", *BASELINES):
            losses = columns.get("loss" if name == "learner" else f"baseline_{name}")
            if losses is None:
                continue
            if name not in self._means:
                self._means[name] = RunningMean()
                self._running[name] = Envelope(self._rows, POINTS)
                self._windows[name] = WindowMean(self._asked, least_hop=self._hop)
            self._running[name].add(rows, self._means[name].add(losses))
            self._windows[name].add(losses)

    def _add_levels(self, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        found: dict[str, Vector] = {name: columns[name] for name in ("size", "novelty") if name in columns}
        if "leverage" in columns:
            found["effective_dimension"] = self._sums["effective_dimension"].add(columns["leverage"])
        if "weight" in columns and "inverse_form" in columns:
            added = np.log1p(np.maximum(columns["weight"] * columns["inverse_form"], 0.0))
            found["log_determinant"] = self._sums["log_determinant"].add(added)
        for name, values in found.items():
            self._levels.setdefault(name, Envelope(self._rows, POINTS)).add(rows, values)

    def _add_lists(self, rows: NDArray[np.int64], columns: dict[str, Vector]) -> None:
        unknown = np.full(len(rows), np.nan)
        names = ("target", "prediction", "lower", "upper", "loss", "novelty")
        shown = {"row": rows.astype(np.float64), **{name: columns.get(name, unknown) for name in names}}
        self._recent.add(shown)
        self._worst.add(shown)
        late = rows >= self._novel_from
        self._novel.add({name: values[late] for name, values in shown.items()})

    def _add_outcomes(self, columns: dict[str, Vector]) -> None:
        target, prediction = columns["target"], columns["prediction"]
        if "lower" in columns and "upper" in columns:
            known = np.isfinite(target) & np.isfinite(columns["lower"]) & np.isfinite(columns["upper"])
            self._intervals += int(known.sum())
            self._covered += int(((columns["lower"] <= target) & (target <= columns["upper"]) & known).sum())
        if self._confusion is not None:
            count = len(self._confusion)
            known = np.isfinite(target) & np.isfinite(prediction)
            known &= (target >= 0) & (target < count) & (prediction >= 0) & (prediction < count)
            np.add.at(self._confusion, (target[known].astype(int), prediction[known].astype(int)), 1)

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
        found = History(self._rows, self._window, tuple(sorted(self._names)))
        for name, envelope in self._running.items():
            found.running[name] = envelope.line()
            thin = Envelope(self._rows, POINTS)
            thin.add(*self._windows[name].result())
            found.windowed[name] = thin.line()
        found.recent = self._recent.columns
        found.intervals, found.covered = self._intervals, self._covered
        found.unknown = self._unknown
        found.size = self._line("size")
        found.effective_dimension = self._line("effective_dimension")
        found.log_determinant = self._line("log_determinant")
        if "novelty" in self._levels:
            band = self._levels["novelty"].band()
            found.novelty = band if len(band.row) else None
        found.most_novel, found.novel_from = self._novel.rows(), self._novel_from
        found.worst = self._worst.rows()
        found.confusion = self._confusion
        found.shares = self._who()
        rows, leads = self._leads.result()
        found.leaders = (rows, leads.argmax(axis=1).astype(np.float64)) if leads.size else None
        return found

    def _line(self, name: str) -> Line | None:
        if name not in self._levels:
            return None
        line = self._levels[name].line()
        return line if len(line[0]) else None

    def _who(self) -> Shares | None:
        """Weights, which are known now and then; in a run too short for that, who led how often."""
        (rows, weights), (led, leads) = self._shares.result(), self._leads.result()
        if weights.size and (len(rows) >= FEWEST or not leads.size):
            return Shares(rows, weights, "weight")
        return Shares(led, leads, "lead") if leads.size else None
