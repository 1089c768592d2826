"""Single rows that were learned, and wait to be followed and looked at with others: a line each.

::

    x | target, prediction, novelty, loss          NaN: not told

A compiled loop may write the line itself as it learns the row. When the lines are read changes nothing but
what a row costs: whoever asks, saves or goes back has those read first that wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import FLOAT64, Matrix, Vector
from kons.compilation import address_of

__all__ = ["TOGETHER", "TOLD", "Record"]

#: Rows that are read together.
TOGETHER = 256
#: Numbers of a row besides its features.
TOLD = 4


class Record:
    """Room for 256 rows of so many features.

    >>> record = Record(2)
    >>> record.add([1.0, 2.0], 3.0, 2.5, 0.1, 0.25)
    >>> X, (targets, predictions, novelties, losses) = record.take()
    >>> X.tolist(), targets.tolist(), record.count
    ([[1.0, 2.0]], [3.0], 0)
    """

    address: int
    step: int

    def __init__(self, width: int) -> None:
        self._lines: Matrix = np.empty((TOGETHER, width + TOLD))
        #: Where the first line is in memory, and how far the next: a loop that writes one leaves counting to
        #: its caller.
        self.address, self.step = address_of(self._lines), FLOAT64.itemsize * (width + TOLD)
        #: How many wait.
        self.count: int = 0

    @property
    def room(self) -> tuple[int, int, int]:
        """Where the next line is, how long it is, and for how many there is room."""
        return self.address + self.step * self.count, self.step, TOGETHER - self.count

    def add(self, x: Any, *told: float) -> None:
        """A row, its target, prediction, novelty and loss."""
        line = self._lines[self.count]
        line[:-TOLD], line[-TOLD:] = x, told
        self.count += 1

    def take(self) -> tuple[Matrix, tuple[Vector, ...]]:
        """Those that wait, which no longer do: rows, targets, predictions, novelties, losses."""
        lines, self.count = self._lines[: self.count], 0
        return lines[:, :-TOLD].copy(), tuple(lines[:, -TOLD:].T.copy())

    def __reduce__(self) -> Any:
        return _copied, (self._lines[: self.count].copy(),)


def _copied(lines: Matrix) -> Record:
    record = Record(lines.shape[1] - TOLD)
    record._lines[: len(lines)], record.count = lines, len(lines)
    return record
