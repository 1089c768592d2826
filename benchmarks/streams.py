"""The streams that are measured on: a file of a data folder, or a synthetic set of the same shape.

A set NAME is the file NAME.csv.gz: gzip CSV with a header, numeric, the target in the last column.
Inputs are scaled to [0, 1] by their extremes over the whole file, the target to [-0.5, 0.5], and the
rows are permuted with a fixed seed. That looks ahead, which no figure here depends on.
"""

from __future__ import annotations

import functools
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BOUND = 0.5


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
    file = None if folder is None else folder / f"{name}.csv.gz"
    if file is None or not file.is_file():
        return synthetic(rows, features, origin=f"synthetic, of the shape of {name}")
    with gzip.open(file, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1)
    table = np.random.default_rng(0).permutation(table)
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
