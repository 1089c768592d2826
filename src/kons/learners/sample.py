"""A uniform sample of the rows learned, with their targets: what is typical, and what was like a row.

::

    u(t) = a fixed hash of the row's number t, in [0, 1);    kept: the rows with the smallest u

Which rows these are depends on nothing but their number, so that the sample is the same however a stream was
cut into blocks, and after a resume; and no period of the stream can meet that of the sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Array, Count, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["RowSample"]

#: Rows that are kept: the median of a normal column is then known to a sixth of its deviation.
MOST, FEWEST = 64, 16
#: Numbers that are kept at most, of rows with very many features: half a megabyte.
LARGEST = 2**16
#: Odd constants of the hash (splitmix64).
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class RowSample(Part):
    """At most 64 of the rows learned, each with the same chance, and their targets.

    A row that is not kept costs a comparison, 0.1 microseconds; where rows are wider than 1,024 features,
    fewer are kept. Not for statistics of recent rows: all rows so far count alike.

    >>> sample = RowSample()
    >>> sample.learn(np.arange(1000.0)[:, None], np.arange(1000.0))
    >>> len(sample), sample.rows, bool(350.0 < np.median(sample.points) < 650.0)
    (64, 1000, True)

    References
    ----------
    Cohen, Kaplan: Summarizing data using bottom-k sketches, PODC 2007.
    """

    STATE = fields(
        rows=Count(),
        numbers=Array("sampled", at_least=0.0, written="rarely"),
        points=Array("sampled", None, written="rarely"),
        targets=Array("sampled", None, written="rarely"),
    )

    def __init__(self) -> None:
        #: Rows learned.
        self.rows: int = 0
        #: Of the rows kept their numbers, features and targets; of a label its code.
        self.numbers: Vector = np.empty(0)
        self.points: Matrix = np.empty((0, 0))
        self.targets: Matrix = np.empty((0, 1))
        #: The next row that will be kept.
        self.next: int = 0
        self._begin()

    def _begin(self) -> None:
        """Find what follows from the rows that are kept."""
        self._hashes: Vector = _hashes(self.numbers.astype(np.uint64))
        self.next = self._next_from(self.rows)

    def __len__(self) -> int:
        return len(self.numbers)

    def learn(self, X: Any, y: Any) -> None:
        """Rows in order, and their targets: numbers, or rows of several. Cannot fail."""
        first, stop = self.rows, self.rows + len(X)
        self.rows = stop
        if len(X) and self.next == first:
            self._fill(first, X, y)
        while self.next < stop:
            self._keep(self.next, X[self.next - first], y[self.next - first])
            self.next = self._next_from(self.next + 1)

    def widen(self, values: Vector) -> None:
        """Features more, which had these values in the rows so far."""
        if len(self.points):
            self.points = np.hstack([self.points, np.tile(values, (len(self.points), 1))])

    def _fill(self, first: int, X: Any, y: Any) -> None:
        """Keep rows as long as there is room."""
        rows, targets = (np.asarray(part, dtype=np.float64).reshape(len(X), -1) for part in (X, y))
        if not len(self.points):
            self.points, self.targets = np.empty((0, rows.shape[1])), np.empty((0, targets.shape[1]))
        some = min(_room(rows.shape[1]) - len(self), len(rows))
        if some > 0:
            self.points = np.vstack([self.points, rows[:some]])
            self.targets = np.vstack([self.targets, targets[:some]])
            self.numbers = np.append(self.numbers, np.arange(first, first + some, dtype=np.float64))
            self._hashes = _hashes(self.numbers.astype(np.uint64))
            self.next = self._next_from(first + some)

    def _keep(self, number: int, x: Any, y: Any) -> None:
        row, target = (np.asarray(one, dtype=np.float64).ravel() for one in (x, y))
        self._own("numbers", "points", "targets")
        at = int(self._hashes.argmax())
        self.numbers[at], self.points[at], self.targets[at] = number, row, target
        self._hashes = self._hashes.copy()
        self._hashes[at] = _hashes(np.array([number], np.uint64))[0]

    def _next_from(self, row: int) -> int:
        """The first row from this one on that is to be kept."""
        if not len(self) or len(self) < _room(self.points.shape[1]):
            return row
        # Some as many rows at once as it takes on average.
        threshold, some = self._hashes.max(), 64 + row // len(self)
        while True:
            found = np.flatnonzero(_hashes(np.arange(row, row + some, dtype=np.uint64)) < threshold)
            if len(found):
                return row + int(found[0])
            row += some

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        numbers = self.numbers
        if len(numbers) > MOST or len(np.unique(numbers)) < len(numbers) or (numbers >= self.rows).any():
            raise stored.error(f"its sample is not of at most {MOST} of {self.rows} rows")
        if (numbers != np.floor(numbers)).any() or self.points.shape[1] > 2**31:
            raise stored.error("its sample holds something else than rows by their number")
        self._begin()


def _room(width: int) -> int:
    return max(FEWEST, min(MOST, LARGEST // max(width, 1)))


def _hashes(numbers: NDArray[np.uint64]) -> Vector:
    """Numbers in [0, 1) that look independent: splitmix64."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(1)) * np.uint64(STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    mixed: Vector = (z ^ (z >> np.uint64(31))) * 2.0**-64
    return mixed
