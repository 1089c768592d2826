"""Where the rows that cost most stand in the source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.state import Array, Part, Whole, fields

__all__ = ["Worst"]

MOST = 10


class Worst(Part):
    """The lines of the ten rows with the largest losses so far; of equal ones the earlier.

    >>> import numpy as np
    >>> worst = Worst()
    >>> worst.follow(np.array([9.0, 1.0, 4.0]), np.array([False, True, True]), np.array([2, 3, 4]))
    >>> worst.lines
    [4, 3]
    """

    STATE = fields(_losses=Array("kept", at_least=0.0), _lines=Whole("kept"))

    def __init__(self) -> None:
        self._losses: Vector = np.empty(0)
        self._lines: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def follow(self, losses: Vector, counts: NDArray[np.bool_], lines: NDArray[np.int64]) -> None:
        """More rows; those that do not count are left out, and losses that are no numbers."""
        counts = counts & np.isfinite(losses)
        if len(self._losses) == MOST:
            counts = counts & (losses > self._losses[-1])
        if not counts.any():
            return
        losses, lines = np.append(self._losses, losses[counts]), np.append(self._lines, lines[counts])
        best = np.argsort(-losses, kind="stable")[:MOST]
        self._losses, self._lines = losses[best], lines[best]

    @property
    def lines(self) -> list[int]:
        """The largest loss first."""
        return [int(line) for line in self._lines]
