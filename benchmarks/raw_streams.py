"""The sets of a data folder as a user would have them: no column scaled, classes as they are written.

In the order of the file where that is the order of time, else in one fixed permutation; of the largest
sets only the first rows of it. Losses are comparable over sets: the squared error with the target in
units of its range, or the part of the rows whose class was missed.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

LAGS = 2


class RawStream(NamedTuple):
    """Rows in the order they are met; ``task`` is regression or classification (then y is -1 or 1)."""

    X: np.ndarray
    y: np.ndarray
    task: str
    time_ordered: bool

    def first(self, rows: int) -> RawStream:
        return self._replace(X=self.X[:rows], y=self.y[:rows])

    def with_lags(self) -> RawStream:
        """Beside the inputs the last targets, the latest first; 0 before there are any."""
        lagged = [np.concatenate([np.zeros(lag), self.y[:-lag]]) for lag in range(1, LAGS + 1)]
        return self._replace(X=np.column_stack([self.X, *lagged]))

    def loss(self, prediction: np.ndarray) -> float:
        """Of predictions of the first rows: mean squared error over the range squared, or error rate."""
        y = self.y[: len(prediction)]
        if self.task == "classification":
            return float(np.mean((prediction > 0.0) != (y > 0.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(np.mean((prediction - y) ** 2)) / float(np.ptp(self.y)) ** 2
        return value if np.isfinite(value) else float("inf")

    def digest(self) -> str:
        """Changes with any bit of the rows, and with their order."""
        return hashlib.sha256(self.X.tobytes() + self.y.tobytes()).hexdigest()[:16]


class _Set(NamedTuple):
    task: str = "regression"
    time_ordered: bool = False
    rows: int | None = None


SETS = {
    "cadata": _Set(),
    "cpusmall": _Set(),
    "bike_hourly": _Set(time_ordered=True),
    "electricity": _Set("classification", time_ordered=True),
    "magic04": _Set("classification"),
    "parkinson": _Set(),
    "casp": _Set(rows=20_000),
    "elevators": _Set(),
    "cod-rna": _Set("classification", rows=20_000),
}


def load(folder: Path | None, name: str) -> RawStream | None:
    """The set NAME of :data:`SETS`; None where there is no file."""
    return load_file(folder, name, *SETS[name])


@functools.cache
def load_file(
    folder: Path | None, name: str, task: str, time_ordered: bool, rows: int | None, order: int = 0
) -> RawStream | None:
    """The file NAME of a folder, in its order or permuted, or the first rows; None where there is none.

    ``order`` is the seed of the permutation.
    """
    file = None if folder is None else Path(folder) / f"{name}.csv.gz"
    if file is None or not file.is_file():
        return None
    table = _table(file)
    if not time_ordered:
        table = table[np.random.default_rng(order).permutation(len(table))]
    X, y = np.ascontiguousarray(table[:rows, :-1]), table[:rows, -1].copy()
    return RawStream(X, y, task, time_ordered)


@functools.lru_cache(maxsize=1)
def _table(file: Path) -> np.ndarray:
    with gzip.open(file, "rt") as lines:
        return np.loadtxt(lines, delimiter=",", skiprows=1)
