"""The last rows of a stream, and curves of bounded length along it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from kons.arrays import Matrix, Vector
from kons.stored import Stored

__all__ = ["Curves", "Window"]

# A curve has a point every so many rows at first, and at most so many points.
FIRST_STRIDE = 32
MOST_POINTS = 512


class Window:
    """The last ``rows`` rows as columns of numbers: contiguous, O(1) a row, as if it slid.

    >>> import numpy as np
    >>> window = Window(3, columns=1)
    >>> window.append(np.arange(5.0)[None])
    >>> window.last()[0].tolist(), window.last(back=1)[0].tolist()
    ([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    """

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

    def state(self) -> dict[str, Any]:
        """The rows. A copy."""
        return {"rows": self.rows, "table": self.last().copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any], columns: int) -> Self:
        """The window whose :meth:`state` this is."""
        stored = Stored(state, "Window")
        window = cls(stored.integer("rows", at_least=1), columns)
        window.append(stored.array("table", columns, None))
        stored.finish()
        return window


class Curves:
    """Values along a stream, at row numbers that are multiples of a stride; at most 512 points.

    The stride is 32 rows at first. Where the points would become too many it doubles, and every second
    point is dropped: which rows remain depends on nothing but the length of the stream.

    >>> curves = Curves(["loss"])
    >>> while (row := curves.next_row) <= 100_000:
    ...     curves.add(row, [1.0 / row])
    >>> curves.stride, len(curves), curves.row[[0, -1]].tolist()
    (256, 390, [256, 99840])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.stride = FIRST_STRIDE
        self._rows: list[int] = []
        self._points: list[list[float]] = []
        self._last = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def next_row(self) -> int:
        """The next number of rows at which a point is due."""
        return (self._last // self.stride + 1) * self.stride

    def add(self, row: int, values: Sequence[float]) -> None:
        """The point at ``next_row``."""
        self._last = row
        self._rows.append(row)
        self._points.append(list(values))
        if len(self._rows) == MOST_POINTS:
            self.stride *= 2
            kept = [i for i, at in enumerate(self._rows) if at % self.stride == 0]
            self._rows, self._points = [self._rows[i] for i in kept], [self._points[i] for i in kept]

    @property
    def row(self) -> Any:
        """The row numbers."""
        return np.array(self._rows, dtype=np.int64)

    def columns(self) -> dict[str, Vector]:
        """The values by name."""
        table = np.array(self._points, dtype=np.float64).reshape(len(self._points), len(self.names))
        return {name: table[:, i].copy() for i, name in enumerate(self.names)}

    def state(self) -> dict[str, Any]:
        """The points so far."""
        table = np.array(self._points, dtype=np.float64).reshape(len(self._points), len(self.names))
        return {
            "names": list(self.names),
            "stride": self.stride,
            "last": self._last,
            "rows": np.array(self._rows, dtype=np.float64),
            "known": np.isfinite(table).astype(np.float64),
            "points": np.where(np.isfinite(table), table, 0.0),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The curves whose :meth:`state` this is."""
        stored = Stored(state, "Curves")
        curves = cls(stored.items("names"))
        curves.stride = stored.integer("stride", at_least=FIRST_STRIDE)
        curves._last = stored.integer("last")
        curves._rows = [int(row) for row in stored.array("rows", None)]
        shape = len(curves._rows), len(curves.names)
        known = stored.array("known", *shape)
        points = np.where(known > 0, stored.array("points", *shape), np.nan)
        curves._points = [list(map(float, point)) for point in points]
        stored.finish()
        return curves
