"""The last rows of a stream, and curves and sums of bounded length along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Matrix
from kons.state import Array, Count, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Curves", "Stretches", "Window"]

# A curve has a point every so many rows at first, and at most so many points.
FIRST_STRIDE = 32
MOST_POINTS = 512


class _LastRows(Array):
    """The table of a window: of it, what the window shows."""

    def save(self, part: Any, name: str) -> Any:
        return part.last().copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        part.append(stored.array(key, len(getattr(part, name)), None))
        return getattr(part, name)


class Window(Part):
    """The last ``rows`` rows as columns of numbers: contiguous, O(1) a row, as if it slid.

    >>> import numpy as np
    >>> window = Window(3, columns=1)
    >>> window.append(np.arange(5.0)[None])
    >>> window.last()[0].tolist(), window.last(back=1)[0].tolist()
    ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    """

    STATE = fields(_table=_LastRows(written="always"))

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = rows
        self._table = np.empty((columns, 256))
        self._filled = 0

    def append(self, values: Matrix) -> None:
        """More rows, a row of ``values`` per column. What ``last`` looks back to is these rows."""
        more = values.shape[1]
        if self._filled + more > self._table.shape[1]:
            kept = self._table[:, max(self._filled - self.rows, 0) : self._filled]
            # Twice what is needed: each row is moved once on average.
            need = 2 * (min(self.rows, self._filled) + more)
            table = self._table if need <= self._table.shape[1] else np.empty((len(values), need))
            table[:, : kept.shape[1]] = kept.copy() if table is self._table else kept
            self._table, self._filled = table, kept.shape[1]
        self._table[:, self._filled : self._filled + more] = values
        self._filled += more

    def last(self, back: int = 0) -> Matrix:
        """The columns of the last rows, as they stood ``back`` rows ago, within the last append. A view."""
        end = self._filled - back
        return self._table[:, max(end - self.rows, 0) : end]


class _Curve(Field):
    """Points of so many values, which may be NaN: saved as which are numbers, and these."""

    def save(self, part: Any, name: str) -> Any:
        table = part.table()
        return np.stack([np.isfinite(table), np.where(np.isfinite(table), table, 0.0)])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        known, values = stored.array(key, 2, None, len(part.names))
        stored.counted(len(known), f"number of {key}", at_most=MOST_POINTS - 1)
        return np.where(known > 0.0, values, np.nan).tolist()


class Curves(Part):
    """Values along a stream, at row numbers that are multiples of a stride; at most 512 points.

    The stride is 32 rows at first. Where the points would become too many it doubles, and every second
    point is dropped: which rows remain depends on nothing but the length of the stream.

    >>> curves = Curves(["loss"])
    >>> while curves.next_row <= 100_000:
    ...     curves.add([1.0 / curves.next_row])
    >>> curves.stride, len(curves), curves.row[[0, -1]].tolist()
    (256, 390, [256, 99840])
    """

    STATE = fields(stride=Count(at_least=FIRST_STRIDE), _points=_Curve())

    def __init__(self, names: Sequence[str]) -> None:
        self.names: list[str] = list(names)
        self.stride: int = FIRST_STRIDE
        self._points: list[list[float]] = []

    def __len__(self) -> int:
        return len(self._points)

    @property
    def next_row(self) -> int:
        """The next number of rows at which a point is due."""
        return self.stride * (len(self) + 1)

    def add(self, values: Sequence[float]) -> None:
        """The point at ``next_row``."""
        self._points = [*self._points, list(values)]
        if len(self) == MOST_POINTS:
            self.stride *= 2
            self._points = self._points[1::2]

    @property
    def row(self) -> Any:
        """The row numbers."""
        return self.stride * np.arange(1, len(self) + 1)

    def table(self) -> Matrix:
        """A row per point, a column per name."""
        return np.array(self._points, dtype=np.float64).reshape(len(self), len(self.names))


class _Sums(Array):
    """A table of the shape that the part has."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        return stored.array(key, *getattr(part, name).shape)


class Stretches(Part):
    """Sums over at most 512 stretches of a stream, all of one length, which doubles when they are full.

    What came last is then known without subtracting sums, in which a few huge values would drown it.

    >>> import numpy as np
    >>> stretches = Stretches(columns=1)
    >>> stretches.append(np.repeat([1e30, 3.0], [700, 300])[None])
    >>> stretches.length, stretches.last(0.25)
    (2, [3.0])
    """

    STATE = fields(rows=Count(), length=Count(at_least=1), _sums=_Sums())
    rows: int
    length: int

    def __init__(self, columns: int) -> None:
        self.rows, self.length = 0, 1
        self._sums = np.zeros((columns, MOST_POINTS))

    def append(self, values: Matrix) -> None:
        """More rows, a row of ``values`` per column."""
        while values.shape[1]:
            part = values[:, : MOST_POINTS * self.length - self.rows]
            at = (self.rows + np.arange(part.shape[1])) // self.length
            self._sums = self._sums + [np.bincount(at, row, minlength=MOST_POINTS) for row in part]
            self.rows, values = self.rows + part.shape[1], values[:, part.shape[1] :]
            if self.rows == MOST_POINTS * self.length:
                pairs = self._sums[:, ::2] + self._sums[:, 1::2]
                self._sums, self.length = np.hstack([pairs, np.zeros_like(pairs)]), 2 * self.length

    def last(self, share: float) -> list[float]:
        """The mean of each column over this share of the rows, to the nearest stretch; NaN of no rows."""
        first = round((1.0 - share) * self.rows / self.length)
        count = self.rows - first * self.length
        means: list[float] = (self._sums[:, first:].sum(axis=1) / (count or np.nan)).tolist()
        return means
