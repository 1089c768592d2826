"""Features by their rank: where a value lies among those seen, whatever its units."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from kons.arrays import Integers, Matrix, ReadIntegers, ReadVector, Vector
from kons.compilation import compiled, inner
from kons.stored import Stored

__all__ = ["QuantileScaling", "interpolated"]

#: Values of a feature that are remembered; between them ranks are interpolated.
KNOTS = 129


@dataclass(frozen=True, eq=False)
class QuantileScaling:
    """Each feature to its share of smaller values, from -1 to 1.

    ::

        z = 2 F(x) - 1,     F(x) = share of rows below x, ties counted by half

    interpolated between at most 129 values that were seen. Monotone, blind to units and heavy tails, and
    bounded:
    what lies beyond all rows seen counts as the last of them. O(n log n) a feature to fit, O(log 129) a
    number.

    Not where distances in a feature's own units matter, such as positions on a map.

    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [2.0], [1e9]])
    >>> QuantileScaling.fit(X).transform(X).ravel().tolist()
    [-0.75, 0.0, 0.0, 0.75]
    """

    values: tuple[Vector, ...]
    ranks: tuple[Vector, ...]
    _tables: Any = field(default=None, repr=False)
    """All values and ranks one behind the other, and where those of each feature begin."""

    def __post_init__(self) -> None:
        if self._tables is None:
            starts = np.cumsum([0, *(len(values) for values in self.values)], dtype=np.int64)
            tables = np.concatenate(self.values), np.concatenate(self.ranks), starts
            object.__setattr__(self, "_tables", tables)

    @classmethod
    def fit(cls, X: Matrix, most: int = KNOTS) -> QuantileScaling:
        """Read the ranks off the rows of X, finite numbers; at most so many values of a feature are kept."""
        values, ranks = [], []
        for column in np.sort(np.ascontiguousarray(X.T), axis=1):
            knots, shares = np.empty(most), np.empty(most)
            count = _choose_knots(column, knots, shares)
            values.append(knots[:count].copy())
            ranks.append(2.0 * shares[:count] - 1.0)
        return cls(tuple(values), tuple(ranks))

    def transform(self, X: Matrix) -> Matrix:
        """The scaled rows of X, as a new array."""
        scaled = np.empty(X.shape)
        values, ranks, starts = self._tables
        _interpolate(X, values, ranks, starts, scaled)
        return scaled

    def state(self) -> dict[str, Any]:
        """All there is to it. A copy."""
        values, ranks, starts = self._tables
        return {"values": values.copy(), "ranks": ranks.copy(), "counts": np.diff(starts).tolist()}

    @classmethod
    def from_stored(cls, stored: Stored, width: int) -> QuantileScaling:
        """The inverse of :meth:`state`, checked."""
        counts = stored.items("counts", width)
        if not all(isinstance(count, int) and 0 < count <= KNOTS for count in counts):
            raise stored.error(f"counts are {counts}, expected whole numbers from 1 to {KNOTS}")
        ends = list(accumulate(counts, initial=0))
        values, ranks = (stored.array(name, ends[-1]) for name in ("values", "ranks"))
        starts, places = np.array(ends), list(pairwise(ends))
        if not _rises(values, starts):
            raise stored.error("the values of a feature do not rise")
        stored.finish()
        each = [tuple(table[a:b] for a, b in places) for table in (values, ranks)]
        return cls(each[0], each[1], (values, ranks, starts))


@compiled
def _choose_knots(column: Vector, knots: Vector, shares: Vector) -> int:
    """Different values of a sorted column, and the share of it below each; equally far apart, if too many."""
    n, different = len(column), 0
    values, below = np.empty(n), np.empty(n)
    start = 0
    while start < n:
        end = start + 1
        while end < n and column[end] == column[start]:
            end += 1
        values[different], below[different] = column[start], 0.5 * (start + end) / n
        different, start = different + 1, end
    if different <= len(knots):
        for i in range(different):
            knots[i], shares[i] = values[i], below[i]
        return different
    last = different - 1
    width = (below[last] - below[0]) / (len(knots) - 1)
    count, place = 0, 0
    for j in range(len(knots)):
        before = place
        while place < last and below[place] < below[0] + j * width:
            place += 1
        if j == len(knots) - 1:
            place = last
        if j == 0 or place > before:
            knots[count], shares[count] = values[place], below[place]
            count += 1
    return count


@compiled
def _rises(values: ReadVector, starts: ReadIntegers) -> bool:
    """Whether those of each feature do."""
    for j in range(len(starts) - 1):
        for i in range(starts[j] + 1, starts[j + 1]):
            if not values[i] > values[i - 1]:
                return False
    return True


@compiled
def _interpolate(X: Matrix, values: Vector, ranks: Vector, starts: Integers, scaled: Matrix) -> None:
    """All rows take each step of the search together: no branch to guess, which is four times as fast."""
    n = len(X)
    column, low = np.empty(n), np.empty(n, dtype=np.int64)
    for j in range(X.shape[1]):
        seen, rank = values[starts[j] : starts[j + 1]], ranks[starts[j] : starts[j + 1]]
        for i in range(n):
            column[i], low[i] = X[i, j], 0
        left = len(seen)
        while left > 1:
            half = left // 2
            for i in range(n):
                low[i] += half * (seen[low[i] + half] <= column[i])
            left -= half
        for i in range(n):
            scaled[i, j] = _between(column[i], low[i], seen, rank)


@inner
def interpolated(x: float, values: Vector, ranks: Vector) -> float:
    """Between the ranks of the two rising values around x; beyond them, that of the last."""
    low, left = 0, len(values)
    while left > 1:
        half = left // 2
        if values[low + half] <= x:
            low += half
        left -= half
    return _between(x, low, values, ranks)


@inner
def _between(x: float, low: int, values: Vector, ranks: Vector) -> float:
    """The rank of x, if ``low`` is the place of the last value that is not above it, or 0."""
    if x <= values[low] or low == len(values) - 1:
        return float(ranks[low])
    # Halves: the difference of two numbers near the largest float overflows.
    part = (0.5 * x - 0.5 * values[low]) / (0.5 * values[low + 1] - 0.5 * values[low])
    return float(ranks[low] + part * (ranks[low + 1] - ranks[low]))
