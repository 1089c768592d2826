"""Curves of any length as a few hundred points, in one pass and bounded memory, with every spike kept."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector

__all__ = ["Band", "Bins", "Line", "thinned"]

MOST_BINS = 20_000

Line = tuple[Vector, Vector]
"""Row numbers, and a value at each."""


@dataclass(frozen=True)
class Band:
    """Least, mean and largest value of each stretch of rows."""

    row: Vector
    low: Vector
    mean: Vector
    high: Vector

    @property
    def is_line(self) -> bool:
        """Whether each stretch is one row."""
        return bool(np.array_equal(self.low, self.high))


class Bins:
    """Count, sum, least and largest value of each of at most ``most`` equal stretches of ``total`` rows.

    What is not finite is left out. Everything that is drawn of a column follows from these.
    """

    total: int
    width: int
    count: Vector
    sum: Vector
    low: Vector
    high: Vector

    def __init__(self, total: int, most: int = MOST_BINS) -> None:
        self.total, self.width = total, max(1, -(-total // most))
        bins = -(-total // self.width)
        self.count, self.sum = np.zeros(bins), np.zeros(bins)
        self.low, self.high = np.full(bins, np.inf), np.full(bins, -np.inf)

    def add(self, rows: NDArray[np.int64], values: Vector) -> None:
        """Take values at these rows."""
        known = np.isfinite(values)
        places, values = rows[known] // self.width, values[known]
        np.add.at(self.count, places, 1.0)
        np.add.at(self.sum, places, values)
        np.minimum.at(self.low, places, values)
        np.maximum.at(self.high, places, values)

    @property
    def ends(self) -> Vector:
        """The last row of each bin."""
        ends: Vector = np.minimum(np.arange(1.0, len(self.sum) + 1.0) * self.width, self.total) - 1.0
        return ends

    def running_sum(self) -> Line:
        """The sum of all values so far."""
        return self.ends, np.cumsum(self.sum)

    def running_mean(self) -> Line:
        """The mean of all values so far; NaN before the first."""
        return self.ends, _means(np.cumsum(self.sum), np.cumsum(self.count))

    def window_mean(self, window: int) -> Line:
        """The mean over the last ``window`` rows, at every twentieth of a window or so.

        Each window adds its bins afresh: a huge loss leaves no rounding behind when it has passed.
        """
        bins, whole = max(1, window // self.width), self.total // self.width
        if whole < bins:
            return np.empty(0), np.empty(0)
        step = max(1, bins // 20)
        view = np.lib.stride_tricks.sliding_window_view
        sums, counts = (view(part[:whole], bins)[::step].sum(axis=1) for part in (self.sum, self.count))
        return self.ends[bins - 1 : whole : step], _means(sums, counts)

    def band(self, points: int) -> Band:
        """Least, mean and largest of at most ``points`` longer stretches, at their middles."""
        starts = np.arange(0, len(self.sum), max(1, -(-len(self.sum) // points)))
        sums, counts = (np.add.reduceat(part, starts) for part in (self.sum, self.count))
        low, high = np.minimum.reduceat(self.low, starts), np.maximum.reduceat(self.high, starts)
        stretch = self.width * (starts[1] if len(starts) > 1 else len(self.sum))
        middle = starts.astype(np.float64) * self.width + 0.5 * (stretch - 1)
        middle = np.minimum(middle, self.total - 1.0)  # the last stretch may be shorter
        known = counts > 0
        return Band(middle[known], low[known], sums[known] / counts[known], high[known])


def _means(sums: Vector, counts: Vector) -> Vector:
    means: Vector = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def thinned(line: Line, points: int) -> Line:
    """The least and the largest value of each of ``points`` stretches, in the order they came.

    A spike of one row is the largest of its stretch, so no thinning hides it. NaN is left out.
    """
    known = np.isfinite(line[1])
    rows, values = line[0][known], line[1][known]
    if len(rows) <= points:
        return rows, values
    stretches = pairwise(np.linspace(0, len(rows), points + 1).astype(int).tolist())
    kept = {start + int(f(values[start:stop])) for start, stop in stretches for f in (np.argmin, np.argmax)}
    order = sorted(kept)
    return rows[order], values[order]
