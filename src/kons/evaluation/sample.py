"""A sample of a stream: one row out of each of so many equal stretches, at a place that a coin picks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Array, Count, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["StratifiedSample"]


class StratifiedSample(Part):
    """At most ``most`` rows, from all over the stream; half as many at least, once there are so many.

    Stretches are 2^level rows long. When there are too many, of each two one is left, by a coin. What repeats
    itself in the stream cannot fall into step with the coins, which are always the same.

    >>> import numpy as np
    >>> sample = StratifiedSample(4)
    >>> values = np.arange(100.0)[:, None]
    >>> sample.follow(100, lambda places: values[places])
    >>> len(sample.kept), bool((np.diff(sample.kept[:, 0]) > 0).all())
    (3, True)
    """

    STATE = fields(rows=Count(), kept=Array(None, None))

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: int = 0
        self.kept: Matrix = np.empty((0, 0))

    def follow(self, count: int, rows: Callable[[NDArray[np.int64]], Matrix]) -> None:
        """So many rows more; those at some places of them are asked for."""
        done, first = 0, self.rows
        self.rows += count
        level = self._level(first)
        while self._level(self.rows) > level:
            # Up to where stretches become longer, and one of each two is left.
            cut = (self.most << level) - first
            self._keep(done, cut, first, level, rows)
            done, level = cut, level + 1
            pairs = np.arange(len(self.kept) // 2)
            self.kept = self.kept[2 * pairs + _drawn(pairs, 1)]
        self._keep(done, count, first, level, rows)

    def widen(self, values: Vector) -> None:
        """Rows have more columns from now on, at their end; those that are kept have these values there."""
        if len(self.kept):
            self.kept = np.column_stack([self.kept, np.tile(values, (len(self.kept), 1))])

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        level = self._level(self.rows)
        # Of the last stretch the row that was drawn may be still to come.
        if len(self.kept) - (self.rows >> level) not in (0, int(self.rows % (1 << level) > 0)):
            raise stored.error(f"{len(self.kept)} rows of {self.rows} were kept")

    def _level(self, rows: int) -> int:
        return (max(rows - 1, 0) // self.most).bit_length()

    def _keep(
        self, start: int, stop: int, first: int, level: int, rows: Callable[[NDArray[np.int64]], Matrix]
    ) -> None:
        """One row of each stretch, where it is among these."""
        stretches = np.arange((first + start) >> level, (first + stop + (1 << level) - 1) >> level)
        places = (stretches << level) + _drawn(stretches, level) - first
        inside = places[(places >= start) & (places < stop)]
        if len(inside):
            more = rows(inside)
            self.kept = np.concatenate([self.kept, more]) if len(self.kept) else more.copy()


def _drawn(stretches: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    """A number below 2^level for each stretch, always the same (the finalizer of splitmix64)."""
    z = (stretches.astype(np.uint64) + np.uint64((level + 1) << 56)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) & np.uint64((1 << level) - 1)).astype(np.int64)
