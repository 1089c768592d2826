"""Curves of any length as a few hundred points, in one pass and constant memory, with every spike kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector

__all__ = ["Band", "Envelope", "Largest", "PartMeans", "RunningMean", "RunningSum", "Tail", "WindowMean"]


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


class Envelope:
    """Least and largest value of each of at most ``points`` equal stretches of ``total`` rows.

    A spike of one row is the largest value of its stretch, so no thinning hides it. NaN is left out.
    """

    def __init__(self, total: int, points: int) -> None:
        self._width = max(1, -(-total // points))
        bins = -(-total // self._width)
        self._low, self._high = np.full(bins, np.inf), np.full(bins, -np.inf)
        self._low_at, self._high_at = np.zeros(bins, np.int64), np.zeros(bins, np.int64)
        self._sum, self._count = np.zeros(bins), np.zeros(bins, np.int64)

    def add(self, rows: NDArray[np.int64], values: Vector) -> None:
        """Take values at increasing row numbers."""
        known = np.isfinite(values)
        rows, values = rows[known], values[known]
        if not len(rows):
            return
        places = rows // self._width
        edges = np.flatnonzero(np.diff(places, prepend=-1))
        for start, stop in zip(edges, [*edges[1:], len(rows)], strict=True):
            self._merge(int(places[start]), rows[start:stop], values[start:stop])

    def _merge(self, place: int, rows: NDArray[np.int64], values: Vector) -> None:
        least, most = int(np.argmin(values)), int(np.argmax(values))
        if values[least] < self._low[place]:
            self._low[place], self._low_at[place] = values[least], rows[least]
        if values[most] > self._high[place]:
            self._high[place], self._high_at[place] = values[most], rows[most]
        self._sum[place] += float(np.sum(values))
        self._count[place] += len(values)

    def line(self) -> tuple[Vector, Vector]:
        """(row, value) of the least and the largest of each stretch, in the order they came."""
        known = self._count > 0
        rows = np.stack([self._low_at[known], self._high_at[known]], axis=1)
        values = np.stack([self._low[known], self._high[known]], axis=1)
        swap = rows[:, 0] > rows[:, 1]
        rows[swap], values[swap] = rows[swap, ::-1], values[swap, ::-1]
        once = np.diff(rows.ravel(), prepend=-1) > 0  # a stretch of one value is one point
        return rows.ravel()[once].astype(float), values.ravel()[once]

    def band(self) -> Band:
        """Least, mean and largest of each stretch, at its middle."""
        known = self._count > 0
        middle = np.flatnonzero(known).astype(np.float64) * self._width + 0.5 * (self._width - 1)
        return Band(middle, self._low[known], self._sum[known] / self._count[known], self._high[known])


class PartMeans:
    """The mean of each column of a matrix over each of at most ``points`` equal stretches of rows.

    The matrix may get more columns as rows come: what was not there yet counts as 0. NaN counts as 0.
    """

    def __init__(self, total: int, points: int) -> None:
        self._total, self._width = total, max(1, -(-total // points))
        bins = -(-total // self._width)
        self._sums, self._count = np.zeros((bins, 0)), np.zeros(bins)

    def add(self, rows: NDArray[np.int64], parts: NDArray[np.float64]) -> None:
        """Take rows of the matrix at these row numbers; those outside the run are left out."""
        inside = (rows >= 0) & (rows // self._width < len(self._count))
        places, parts = rows[inside] // self._width, np.nan_to_num(parts[inside], nan=0.0)
        more = parts.shape[1] - self._sums.shape[1]
        if more > 0:
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))
        np.add.at(self._sums[:, : parts.shape[1]], places, parts)
        np.add.at(self._count, places, 1.0)

    def result(self) -> tuple[Vector, NDArray[np.float64]]:
        """(middle row, mean of each column), for each stretch that holds a row."""
        known = np.flatnonzero(self._count)
        middle = known.astype(np.float64) * self._width + 0.5 * (self._width - 1)
        # The last stretch may be shorter.
        return np.minimum(middle, self._total - 1.0), self._sums[known] / self._count[known, None]


class RunningSum:
    """The sum so far after each row; NaN adds nothing."""

    def __init__(self) -> None:
        self._sum = 0.0

    def add(self, values: Vector) -> Vector:
        """The sums after each of these rows."""
        sums: Vector = self._sum + np.cumsum(np.nan_to_num(values, nan=0.0))
        if len(sums):
            self._sum = float(sums[-1])
        return sums


class RunningMean:
    """The mean so far after each row; NaN before the first value."""

    def __init__(self) -> None:
        self._sum, self._count = RunningSum(), RunningSum()

    def add(self, values: Vector) -> Vector:
        """The means after each of these rows."""
        sums, counts = self._sum.add(values), self._count.add(np.isfinite(values).astype(float))
        means: Vector = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return means


class WindowMean:
    """The mean over the last ``window`` rows, at every ``hop``-th row.

    Sums of hops are added afresh for every window: a huge loss leaves no rounding behind when it has passed.
    """

    def __init__(self, window: int, hops: int = 20, least_hop: int = 1) -> None:
        self.hop = max(1, window // hops, min(least_hop, window))
        self._hops = max(1, window // self.hop)
        self.window = self.hop * self._hops
        self._rest: Vector = np.empty(0)
        self._sums: list[Vector] = []
        self._counts: list[Vector] = []

    def add(self, values: Vector) -> None:
        """Take the next rows' values."""
        values = np.concatenate([self._rest, values])
        whole = len(values) // self.hop * self.hop
        self._rest = values[whole:]
        parts = values[:whole].reshape(-1, self.hop)
        self._sums.append(np.nansum(parts, axis=1))
        self._counts.append(np.isfinite(parts).sum(axis=1).astype(float))

    def result(self) -> tuple[NDArray[np.int64], Vector]:
        """(number of the window's last row, mean over the window), for each whole window."""
        sums, counts = np.concatenate([*self._sums, []]), np.concatenate([*self._counts, []])
        if len(sums) < self._hops:
            return np.empty(0, np.int64), np.empty(0)
        view = np.lib.stride_tricks.sliding_window_view
        total, known = (view(part, self._hops).sum(axis=1) for part in (sums, counts))
        means: Vector = np.divide(total, known, out=np.full(len(total), np.nan), where=known > 0)
        rows = (np.arange(len(means), dtype=np.int64) + self._hops) * self.hop - 1
        return rows, means


class Tail:
    """The last ``length`` rows of several columns."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.columns: dict[str, NDArray[np.float64]] = {}

    def add(self, columns: dict[str, Vector]) -> None:
        """Take the next rows: the same columns each time."""
        for name, values in columns.items():
            joined = np.concatenate([self.columns.get(name, np.empty(0)), values[-self._length :]])
            self.columns[name] = joined[-self._length :]


class Largest:
    """The ``count`` rows with the largest value of a column, and what stood beside it."""

    def __init__(self, by: str, count: int) -> None:
        self._by, self._count = by, count
        self._kept: dict[str, Vector] = {}

    def add(self, columns: dict[str, Vector]) -> None:
        """Take the next rows; of equal values the earlier row counts as larger."""
        if self._kept:
            columns = {name: np.concatenate([self._kept[name], columns[name]]) for name in self._kept}
        order = np.argsort(-columns[self._by], kind="stable")  # NaN last
        best = order[: self._count]
        best = best[np.isfinite(columns[self._by][best])]
        self._kept = {name: values[best] for name, values in columns.items()}

    def rows(self) -> list[dict[str, float]]:
        """One dict a row, the largest first."""
        names = list(self._kept)
        columns = (self._kept[name].tolist() for name in names)
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
