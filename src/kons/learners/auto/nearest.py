"""The nearest of many rows, exactly, by sums of absolute differences: far leaves of a tree are passed over.

::

    d(x, x') = sum_j |x_j - x'_j|  >=  sum_j max(low_j - x_j, x_j - high_j, 0)   for x' in the box of a leaf

Rows are halved at the median of the column in which they differ most, until no more than 64 are left
together. A row is then compared with those of the leaves whose box is not farther than the nearest rows found
so far, and with the latest rows, which are in no leaf yet. Distances and bounds are summed in the same order
in single precision, where rounding is monotone too: what is found does not depend on the tree.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT32, Integers, Layout, Matrix, Vector
from kons.compilation import compiled, inner

__all__ = [
    "BEHIND",
    "LEAF",
    "Kept",
    "Rescaled",
    "SingleMatrix",
    "Singles",
    "find_nearest",
    "find_nearest_within",
    "put_into_leaves",
    "sum_values_within",
]

# Single precision: rows that are equal stay equal however they were computed, at half the bytes and time.
Singles = Annotated[NDArray[np.float32], Layout(FLOAT32, 1)]
SingleMatrix = Annotated[NDArray[np.float32], Layout(FLOAT32, 2)]
#: Rows in leaves, (leaves * columns, 64), the least and largest of each column, (columns, leaves), and values
#: of all rows, (leaves * 64, values); the latest rows by columns, (columns, rows), and their values.
Kept = tuple[SingleMatrix, SingleMatrix, SingleMatrix, Matrix, SingleMatrix, Matrix]

#: Rows of a leaf: distances of so many are a few vector instructions.
LEAF = 64
#: Numbers behind the nearest, for a whole number of vectors of those that move on by one.
BEHIND: Final = 16


def put_into_leaves(
    points: NDArray[np.float32], values: Matrix
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], Matrix]:
    """The first four of :data:`Kept`, of points (rows, columns). O(n log n), 2 ms for 16,384 rows.

    >>> points = np.arange(100, dtype=np.float32)[:, None]
    >>> leaves, low, high, values = put_into_leaves(points, np.ones((100, 1)))
    >>> low.tolist(), high.tolist(), leaves.shape, values.sum()
    ([[0.0, 50.0]], [[49.0, 99.0]], (2, 64), np.float64(100.0))
    """
    return _Places(points).fill(points, values)


class _Places:
    """At which place of which leaf rows are."""

    def __init__(self, points: NDArray[np.float32]) -> None:
        n = len(points)
        depth = max(-(-n // LEAF) - 1, 0).bit_length() if n else 0
        count, order = 1 << depth if n else 0, np.arange(n)
        _halve(np.ascontiguousarray(points), order, depth)
        starts = np.arange(count + 1) * n // max(count, 1)
        #: The row of each place, (64, leaves); where there is none, the last one of the leaf.
        behind = np.minimum(starts[:-1] + np.arange(LEAF)[:, None], starts[1:] - 1)
        self.rows: NDArray[np.int64] = order[behind]
        self.empty: NDArray[np.bool_] = np.arange(LEAF)[:, None] >= np.diff(starts)

    def fill(self, points: NDArray[Any], values: Matrix) -> tuple[Any, Any, Any, Matrix]:
        """Those of the rows, in their precision."""
        ordered = points.take(self.rows, axis=0)
        low, high = (np.ascontiguousarray(find(ordered, axis=0).T) for find in (np.min, np.max))
        ordered[self.empty] = np.inf
        leaves = np.ascontiguousarray(ordered.transpose(1, 2, 0)).reshape(-1, LEAF)
        its_values = values.take(self.rows.T, axis=0)
        its_values[self.empty.T] = 0.0
        return leaves, low, high, its_values.reshape(-1, values.shape[1])


class Rescaled:
    """Rows in leaves that stay, while the scales of columns change: boxes follow, and any tree is right.

    >>> rows = Rescaled(np.arange(200.0).reshape(100, 2), np.ones((100, 1)), np.array([1.0, 0.0]))
    >>> leaves, low, high, _, _, _ = rows.kept(np.array([0.5, 2.0]))
    >>> low.tolist(), high.tolist()
    ([[0.0, 50.0], [2.0, 202.0]], [[49.0, 99.0], [198.0, 398.0]])
    """

    def __init__(self, U: Matrix, values: Matrix, sizes: Vector) -> None:
        places = _Places((U * sizes).astype(FLOAT32))
        *self._boxes, self._values = places.fill(U, values)
        #: Where each row is, among the values.
        self.places: Integers = np.empty(len(U), np.int64)
        full = ~places.empty.T
        self.places[places.rows.T[full]] = np.flatnonzero(full)
        self._none = np.empty((U.shape[1], 0), FLOAT32), np.empty((0, values.shape[1]))

    def kept(self, sizes: Vector) -> Kept:
        """As loops read them, with columns of these sizes. O(n d)."""
        leaves, low, high = self._boxes
        with np.errstate(invalid="ignore"):  # where there is no row, and a size is 0
            scaled = (leaves * np.tile(sizes, low.shape[1])[:, None]).astype(FLOAT32)
        # Rounding is monotone, so that these are the least and the largest of the rounded ones.
        low, high = ((each * sizes[:, None]).astype(FLOAT32) for each in (low, high))
        return scaled, low, high, self._values, *self._none


@compiled
def _halve(points: SingleMatrix, order: Integers, depth: int) -> None:
    """Put rows in an order in which each of 2^depth equal parts is together, as the module says."""
    n, columns = points.shape
    keys = np.empty(n, FLOAT32)
    for level in range(depth):
        parts = 1 << level
        for part in range(parts):
            start, stop = part * n // parts, (part + 1) * n // parts
            widest, spread = 0, np.float32(-1.0)
            step = max((stop - start) // 32, 1)
            for c in range(columns):
                # Some rows tell enough: any tree is right.
                total, count = np.float32(0.0), 0
                for i in range(start, stop, step):
                    total += points[order[i], c]
                    count += 1
                mean, its = total / count, np.float32(0.0)
                for i in range(start, stop, step):
                    its += abs(points[order[i], c] - mean)
                if its > spread:
                    widest, spread = c, its
            for i in range(start, stop):
                keys[i] = points[order[i], widest]
            _select(keys, order, start, stop - 1, (2 * part + 1) * n // (2 * parts))


@inner
def _select(keys: Singles, order: Integers, low: int, high: int, middle: int) -> None:
    """Hoare's selection: no key before the middle place is larger than one from it on."""
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while pivot < keys[j]:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i, j = i + 1, j - 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@inner
def find_nearest(
    u: Vector, kept: Kept, excluded: int, bounds: Singles, room: Singles, near: Singles, places: Integers
) -> None:
    """Fill in the smallest distances, the largest first, and whose they are.

    Places are those in leaves, the latest behind. There are as many as fit in but for the :data:`BEHIND` last
    ones, which are smaller than all.
    ``excluded`` is a place that does not count, or -1; ``bounds`` is room for those of leaves, ``room`` for
    64 distances, or as many as there are latest rows. O(n d) at worst.
    """
    leaves, low, high, _, latest, _ = kept
    columns, count = low.shape
    near[:] = np.inf
    near[len(near) - BEHIND :] = np.float32(-1.0)
    places[:] = 0
    _bounds_of(u, low, high, bounds)
    # The nearest leaves come first, then the latest rows, lest others be looked at in vain.
    first, closest = count * LEAF, min(count, 4)
    for turn in range(closest + 1 + count):
        leaf = turn - closest - 1 if turn > closest else -1
        if turn < closest:
            leaf = 0
            for other in range(1, count):
                leaf = other if bounds[other] < bounds[leaf] else leaf
        if turn == closest:
            _distances(u, latest, 0, columns, room)
            if excluded >= first:
                room[excluded - first] = np.inf
            _insert(room, latest.shape[1], first, near, places)
        elif bounds[leaf] <= near[0] and bounds[leaf] < np.inf:
            _distances(u, leaves, leaf * columns, columns, room)
            if leaf == excluded // LEAF:
                room[excluded % LEAF] = np.inf
            _insert(room, LEAF, leaf * LEAF, near, places)
            bounds[leaf] = np.inf


@inner
def find_nearest_within(
    u: Vector, kept: Kept, limit: float, bounds: Singles, room: Singles, near: Singles, places: Integers
) -> None:
    """As :func:`find_nearest`, where as many are known to be nearer than a limit: others are passed over."""
    leaves, low, high, _, latest, _ = kept
    columns, count = low.shape
    near[: len(near) - BEHIND] = limit
    near[len(near) - BEHIND :] = np.float32(-1.0)
    places[:] = 0
    _bounds_of(u, low, high, bounds)
    _distances(u, latest, 0, columns, room)
    _insert(room, latest.shape[1], count * LEAF, near, places)
    for leaf in range(count):
        if bounds[leaf] <= near[0]:
            _distances(u, leaves, leaf * columns, columns, room)
            _insert(room, LEAF, leaf * LEAF, near, places)


@inner
def _bounds_of(u: Vector, low: SingleMatrix, high: SingleMatrix, bounds: Singles) -> None:
    """How far the box of each leaf is, at least."""
    columns, count = low.shape
    bounds[:] = 0.0
    for c in range(columns):
        x = np.float32(u[c])
        for leaf in range(count):
            below, above = low[c, leaf] - x, x - high[c, leaf]
            outside = below if below > above else above
            bounds[leaf] += outside if outside > np.float32(0.0) else np.float32(0.0)


@inner
def _distances(u: Vector, points: SingleMatrix, start: int, columns: int, room: Singles) -> None:
    """To the points of some rows of a matrix, a row a column."""
    count, c = points.shape[1], 0
    for b in range(count):
        room[b] = 0.0
    while c + 4 <= columns:  # four at a time, in the same order: half the traffic
        w, x, y, z = np.float32(u[c]), np.float32(u[c + 1]), np.float32(u[c + 2]), np.float32(u[c + 3])
        at = start + c
        for b in range(count):
            near_by = (room[b] + abs(w - points[at, b])) + abs(x - points[at + 1, b])
            room[b] = (near_by + abs(y - points[at + 2, b])) + abs(z - points[at + 3, b])
        c += 4
    while c < columns:
        x = np.float32(u[c])
        for b in range(count):
            room[b] += abs(x - points[start + c, b])
        c += 1


@inner
def _insert(distances: Singles, count: int, first: int, near: Singles, places: Integers) -> None:
    """Those that are nearer than the farthest: hardly any is, which is seen of as many as a leaf has at once.

    All others move on by none or one, which takes no more than a few vector instructions.
    """
    for start in range(0, count, LEAF):
        stop, limit, nearer = min(start + LEAF, count), near[0], 0
        for b in range(start, stop):
            nearer += distances[b] < limit
        for b in range(start, stop if nearer else start):
            new, place = distances[b], first + b
            if new < near[0]:
                for i in range(len(near) - 1):
                    here, behind = near[i], near[i + 1]
                    here_place, behind_place = places[i], places[i + 1]
                    kept, kept_place = (new, place) if new < here else (here, here_place)
                    near[i] = behind if behind > new else kept
                    places[i] = behind_place if behind > new else kept_place


@inner
def sum_values_within(
    u: Vector, kept: Kept, excluded: int, limit: float, room: Singles, totals: Vector
) -> None:
    """Add up the values of all rows that are no farther than a limit."""
    leaves, low, _, values, latest, latest_values = kept
    columns, count = low.shape
    totals[:] = 0.0
    for leaf in range(count + 1):
        first, size, its = leaf * LEAF, LEAF, values
        if leaf < count:
            _distances(u, leaves, leaf * columns, columns, room)
        else:
            _distances(u, latest, 0, columns, room)
            size, its = latest.shape[1], latest_values
        for b in range(size):
            if room[b] <= limit and first + b != excluded:
                place = b if leaf == count else first + b
                for k in range(len(totals)):
                    totals[k] += its[place, k]
