"""The streams that are measured on: a file of a data folder, or a synthetic set of the same shape.

A set NAME is the file NAME.csv.gz: gzip CSV with a header, numeric, the target in the last column.
Inputs are scaled to [0, 1] by their extremes over the whole file, the target to [-0.5, 0.5], and the
rows are permuted with a seed, or left in the order of time. Scaling by the extremes looks ahead: the
published protocol does so too, and all that are compared get the same rows.
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.settings import Settings

BOUND = 0.5
QUICK_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order they are met, and where they come from."""

    X: np.ndarray
    y: np.ndarray
    origin: str

    def __len__(self) -> int:
        return len(self.y)

    def first(self, rows: int) -> Stream:
        return Stream(self.X[:rows], self.y[:rows], self.origin)


@functools.cache
def load(name: str, folder: Path | None, *, rows: int, features: int) -> Stream:
    """The set NAME of a folder; without a folder or file, ``synthetic(rows, features)``."""
    stream = real(name, folder)
    return stream or synthetic(rows, features, origin=f"synthetic, of the shape of {name}")


def real(name: str, folder: Path | None, seed: int | None = 0) -> Stream | None:
    """The set NAME, permuted with a seed, or in the order of its file; None where there is no file."""
    file = None if folder is None else folder / f"{name}.csv.gz"
    if file is None or not file.is_file():
        return None
    stream = _read(file, name)
    if seed is None:
        return stream
    order = np.random.default_rng(seed).permutation(len(stream))
    return Stream(stream.X[order], stream.y[order], stream.origin)


def reals(names: Iterable[str], settings: Settings, seed: int | None = 0) -> tuple[list[Stream], list[str]]:
    """The sets that are there, only their first rows if the run is quick; and notes for the reader."""
    found, notes = [], []
    for name in names:
        stream = real(name, settings.folder, seed)
        if stream is None:
            notes.append(f"{name}: no file, skipped.")
        else:
            found.append(stream.first(QUICK_ROWS) if settings.quick else stream)
    if settings.quick and found:
        notes.append(f"only the first {QUICK_ROWS:,} rows of each set.")
    return found, notes


@functools.cache
def _read(file: Path, name: str) -> Stream:
    with gzip.open(file, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1)
    return _scaled(table[:, :-1], table[:, -1], origin=name)


@functools.cache
def synthetic(rows: int, features: int, *, origin: str = "synthetic") -> Stream:
    """Correlated inputs, and a target with a few smooth waves in it under noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, features)) @ random.normal(size=(features, features))
    waves = np.sin(X @ random.normal(size=(features, 3)) / features).sum(axis=1)
    return _scaled(X, waves + 0.3 * random.normal(size=rows), origin=origin)


def _scaled(X: np.ndarray, y: np.ndarray, origin: str) -> Stream:
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    inputs = (X - low) / np.where(span > 0.0, span, 1.0)
    targets = (y - y.min()) / np.ptp(y) - 0.5
    return Stream(np.ascontiguousarray(inputs), np.clip(targets, -BOUND, BOUND), origin)
