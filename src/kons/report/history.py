"""One pass over the trace of a run: every curve, count and list that the page shows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.report.folder import RunFolder, as_number
from kons.report.thinning import Band, Bins, Line, thinned

__all__ = ["BASELINES", "History", "Shares", "read_history"]

BASELINES = ("constant", "linear", "persistence")
POINTS = 300  # stretches of a curve; two points each at most
RECENT = 200  # rows of predicted against actual
LISTED = 10  # rows in a table
FEW = 50  # rows below which a start cannot be told from the rest
LARGEST = 1e100
START = 0.1  # the part of a run in which every row is new
MOST_EXPERTS = 1000
FEWEST = 3  # points that make a picture of shares over time

Table = dict[str, Vector]


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
    unknown: int = 0
    """Rows whose loss is no number that could be drawn."""
    running: dict[str, Line] = field(default_factory=dict)
    windowed: dict[str, Line] = field(default_factory=dict)
    recent: dict[str, Vector] = field(default_factory=dict)
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
    reliability: NDArray[np.float64] | None = None
    """Of each tenth of the probability of the predicted label: rows, their probabilities, and those right."""
    shares: Shares | None = None
    leaders: Line | None = None
    """The number of the expert that led most often, at the middle of each stretch of rows."""


def read_history(folder: RunFolder) -> History:
    """Read the trace once, in constant memory."""
    rows, classes = folder.rows, len(folder.classes)
    asked = max(1, int(as_number(folder.settings.get("window")) or 1000))
    # A tenth of a run that holds less than four windows.
    window = asked if 4 * asked <= rows else max(1, rows // 10)
    width = Bins(rows).width
    found = History(rows, max(1, window // width) * width)
    found.novel_from = int(START * rows) if rows >= FEW else 0
    found.confusion = np.zeros((classes, classes), np.int64) if classes else None
    bins: dict[str, Bins] = defaultdict(lambda: Bins(rows))
    shares: list[Bins] = []
    leads: list[Bins] = []
    worst: Table = {}
    novel: Table = {}
    for first, arrays in folder.trace():
        columns: dict[str, Any] = {name: _drawable(values) for name, values in arrays.items()}
        at = np.arange(first, first + len(columns["loss"]))
        _count(found, columns)
        _leave_out(columns)
        if "shares" in columns:
            _add_parts(shares, rows, columns.pop("share_rows").astype(int), columns.pop("shares"))
        for name, values in _binned(columns).items():
            bins[name].add(at, values)
        names = ("target", "prediction", "lower", "upper", "loss", "novelty", "line")
        shown = {name: columns.get(name, np.full(len(at), np.nan)) for name in names}
        shown["row"] = at.astype(np.float64)
        found.recent = {name: values[-RECENT:] for name, values in _joined(found.recent, shown).items()}
        worst = _largest(_joined(worst, shown), "loss")
        late = {name: values[at >= found.novel_from] for name, values in shown.items()}
        novel = _largest(_joined(novel, late), "novelty")
        if "expert" in columns:
            known = (columns["expert"] >= 0) & (columns["expert"] < MOST_EXPERTS)  # not where it is NaN
            leader = columns["expert"][known].astype(int)
            _add_parts(leads, rows, at[known], np.eye(int(leader.max(initial=-1)) + 1)[leader])
    found.worst, found.most_novel = _rows(worst), _rows(novel)
    _add_lines(found, bins)
    _add_experts(found, shares, leads)
    return found


def _drawable(values: NDArray[Any]) -> Vector:
    """As floats, with NaN for what no axis can hold."""
    floats = values.astype(np.float64)
    drawable: Vector = np.where(np.abs(floats) <= LARGEST, floats, np.nan)
    return drawable


def _count(found: History, columns: Table) -> None:
    """Rows without a loss, and labels by label."""
    target, prediction = columns["target"], columns["prediction"]
    found.unknown += int(np.isnan(columns["loss"]).sum())
    if found.confusion is not None:
        count = len(found.confusion)
        known = (target >= 0) & (target < count) & (prediction >= 0) & (prediction < count)
        np.add.at(found.confusion, (target[known].astype(int), prediction[known].astype(int)), 1)
    if "probability" in columns:
        p, right = columns["probability"], (target == prediction).astype(np.float64)
        known = np.isfinite(p) & (columns.get("scored", np.ones(len(p))) > 0.0)
        tenth = np.clip((10.0 * p[known]).astype(int), 0, 9)
        found.reliability = np.zeros((10, 3)) if found.reliability is None else found.reliability
        np.add.at(found.reliability, tenth, np.column_stack([np.ones(len(tenth)), p[known], right[known]]))


def _leave_out(columns: Table) -> None:
    """Losses of rows that nobody could predict, which are in no figure."""
    if "scored" in columns:
        for name in ("loss", *(f"baseline_{name}" for name in BASELINES)):
            if name in columns:
                columns[name] = np.where(columns["scored"] > 0.0, columns[name], np.nan)


def _binned(columns: Table) -> Table:
    """What is drawn over rows."""
    names = {"learner": "loss", **{name: f"baseline_{name}" for name in BASELINES}}
    names |= {"size": "size", "novelty": "novelty", "effective_dimension": "leverage"}
    found = {name: columns[column] for name, column in names.items() if column in columns}
    if "weight" in columns and "inverse_form" in columns:
        added = np.log1p(np.maximum(columns["weight"] * columns["inverse_form"], 0.0))
        found["log_determinant"] = added
    return found


def _joined(kept: Table, columns: Table) -> Table:
    return {name: np.concatenate([kept.get(name, np.empty(0)), values]) for name, values in columns.items()}


def _largest(columns: Table, by: str) -> Table:
    """The rows with the largest value of a column; of equal values the earlier row counts as larger."""
    best = np.argsort(-columns[by], kind="stable")[:LISTED]  # NaN last
    best = best[np.isfinite(columns[by][best])]
    return {name: values[best] for name, values in columns.items()}


def _rows(columns: Table) -> list[dict[str, float]]:
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def _add_lines(found: History, bins: dict[str, Bins]) -> None:
    for name in ("learner", *BASELINES):
        if name in bins:
            found.running[name] = thinned(bins[name].running_mean(), POINTS)
            found.windowed[name] = thinned(bins[name].window_mean(found.window), POINTS)
    if "effective_dimension" in bins:
        found.effective_dimension = thinned(bins["effective_dimension"].running_sum(), POINTS)
    if "log_determinant" in bins:
        found.log_determinant = thinned(bins["log_determinant"].running_sum(), POINTS)
    if "size" in bins and bins["size"].count.any():
        found.size = thinned((bins["size"].ends, bins["size"].high), POINTS)
    if "novelty" in bins and bins["novelty"].count.any():
        found.novelty = bins["novelty"].band(POINTS)


def _add_parts(bins: list[Bins], total: int, rows: NDArray[np.int64], parts: NDArray[np.float64]) -> None:
    """Each expert's part in its own bins; experts may come later. Rows outside the run are left out."""
    inside = (rows >= 0) & (rows < total)
    bins += [Bins(total, POINTS // 2) for _ in range(parts.shape[1] - len(bins))]
    for expert, values in zip(bins, np.nan_to_num(parts[inside], nan=0.0).T, strict=False):
        expert.add(rows[inside], values)


def _mean_parts(bins: list[Bins]) -> Line:
    """(middle row, mean part of each expert) of each stretch of rows; what was not there counts as 0."""
    known = bins[0].count > 0
    sums = np.stack([expert.sum for expert in bins], axis=1)
    return bins[0].band(len(known)).row, sums[known] / bins[0].count[known, None]


def _add_experts(found: History, shares: list[Bins], leads: list[Bins]) -> None:
    if leads:
        found.shares = Shares(*_mean_parts(leads), "lead")
        found.leaders = found.shares.row, found.shares.parts.argmax(axis=1).astype(np.float64)
    # Weights are known now and then: in a run too short for that, who led how often stands for them.
    if shares and np.count_nonzero(shares[0].count) >= (FEWEST if leads else 1):
        found.shares = Shares(*_mean_parts(shares), "weight")
