"""Rows that are kept: a uniform sample of all, and the last ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Matrix, Vector
from kons.core.coins import Coins
from kons.state import Array, Count, Field, Inner, Part, Rows, Sizes, fields
from kons.stored import Stored

__all__ = ["Reservoir"]


class _Recent(Field):
    """The last rows, in a buffer with room behind them; a file has those that the sample does not have."""

    def save(self, part: Any, name: str) -> Any:
        rows = part.last(part.recent)
        return rows[~_among(part._times, part.rows - len(rows), len(rows))[1]]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        rows = stored.rows(key, sizes["columns"])
        count = min(part.rows, part.recent)
        sampled, there = _among(part._times, part.rows - count, count)
        if len(rows) + len(sampled) != count or np.count_nonzero(there) != len(sampled):
            raise stored.error(f"{len(rows)} rows and its sample are not the last {count} rows")
        last = np.empty((count, sizes["columns"] or 0))
        if len(rows):
            last[~there] = rows
        if len(sampled):
            last[(part._times[sampled] - (part.rows - count)).astype(np.int64)] = part._kept[sampled]
        if count:
            part._append(last)
        return part._last


def _among(times: Vector, first: int, count: int) -> tuple[Integers, NDArray[np.bool_]]:
    """Places of times that are among so many from the first on; and which of these they are."""
    there = np.zeros(count, dtype=np.bool_)
    ages = times - first
    places = np.flatnonzero((ages >= 0.0) & (ages < count) & (ages % 1.0 == 0.0))
    there[ages[places].astype(np.int64)] = True
    return places, there


class Reservoir(Part):
    """A reservoir of ``sample`` rows of the whole stream, and the last ``recent`` rows in order.

    A row is a vector of numbers: whatever the owner wants to find again. One uniform number is drawn for
    every row, so that cuts into blocks do not matter. O(1) a row; memory for ``sample + 2 recent`` rows.

    >>> import numpy as np
    >>> history = Reservoir(sample=100, recent=10, seed=0)
    >>> for start in range(0, 1000, 10):
    ...     history.extend(np.arange(start, start + 10.0)[:, None])
    ...     history.sample_recent()
    >>> len(history.sampled()), history.last(3).ravel().tolist()
    (100, [997.0, 998.0, 999.0])
    """

    STATE = fields(
        rows=Count(binds="rows"),
        sampled_rows=Count(at_most="rows"),
        _coins=Inner(),
        _kept=Rows("columns", binds="kept", written="rarely"),
        _times=Array("kept", written="rarely"),
        _last=_Recent(),
    )
    sample: int
    recent: int
    rows: int
    sampled_rows: int

    def __init__(self, sample: int, recent: int, seed: int) -> None:
        self.sample, self.recent = sample, recent
        self.rows, self.sampled_rows = 0, 0
        self._coins = Coins(seed)
        self._kept: Matrix = np.empty((0, 0))
        self._times: Vector = np.empty(0)
        self._last: Matrix = np.empty((0, 0))
        self._filled = 0

    def extend(self, rows: Matrix) -> None:
        """Rows that come next; at most ``recent`` until :meth:`sample_recent`."""
        if len(rows):
            self._append(rows[-self.recent :])
            self.rows += len(rows)

    def sample_recent(self) -> None:
        """Let the rows that came since the last time take part in the sample."""
        rows, first = self.last(self.rows - self.sampled_rows), self.sampled_rows
        uniforms = self._coins.draw(len(rows))
        room = min(max(self.sample - first, 0), len(rows))
        if room:
            times = np.arange(first, first + room, dtype=np.float64)
            self._kept = np.concatenate([self._kept, rows[:room]]) if first else rows[:room].copy()
            self._times = np.concatenate([self._times, times])
        self._own("_kept", "_times")
        # Row t stays with probability sample/(t + 1), in the place of one chosen uniformly.
        numbers = np.arange(first + room, self.rows)
        places = (uniforms[room:] * (numbers + 1)).astype(np.int64)
        stay = places < self.sample
        # Of two rows in one place the later one stays: assignment goes in order.
        self._kept[places[stay]], self._times[places[stay]] = rows[room:][stay], numbers[stay]
        self.sampled_rows = self.rows

    def _append(self, rows: Matrix) -> None:
        """Behind the last rows, in one array that is made anew when it is full."""
        if self._filled + len(rows) > len(self._last):
            kept = self._last[max(self._filled - self.recent, 0) : self._filled]
            self._last = np.empty((2 * self.recent, rows.shape[1]))
            if len(kept):
                self._last[: len(kept)] = kept
            self._filled = len(kept)
        self._last[self._filled : self._filled + len(rows)] = rows
        self._filled += len(rows)

    def sampled(self) -> Matrix:
        """The rows of the sample in stream order: as long as all are kept no copy, and not to be written."""
        return self._kept if self.sampled_rows <= self.sample else self._kept[self.places()]

    def places(self, since: int = 0) -> Integers:
        """Where :attr:`kept` has the rows of the sample in stream order, from a row on."""
        places = np.argsort(self._times)
        return places[np.count_nonzero(self._times < since) :] if since else places

    @property
    def kept(self) -> Matrix:
        """The rows of the sample in an order of no meaning, for who wants only some of :meth:`places`."""
        return self._kept

    def last(self, count: int) -> Matrix:
        """The last ``count`` rows, or as many as there are."""
        count = min(count, self.recent, self.rows)
        return self._last[self._filled - count : self._filled]

    def change(self, change: Callable[[Matrix], Matrix]) -> None:
        """Write all rows in another way."""
        if self.rows:
            self._last = change(self._last)
        if self.sampled_rows:
            self._kept = change(self._kept)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        kept = len(self._kept)
        if kept != min(self.sampled_rows, self.sample):
            raise stored.error(f"it keeps {kept} of {self.sampled_rows} rows")
        if self.rows - self.sampled_rows > self.recent:
            raise stored.error("rows are gone that were to take part in the sample")
