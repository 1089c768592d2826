"""Prediction intervals from what the predictions missed by lately."""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Integers, Matrix, ReadIntegers, ReadVector, Vector, require_number
from kons.compilation import compiled, inner
from kons.state import Array, Count, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["ResidualIntervals"]

# Residuals remembered, how many are needed for an interval, and how fast the level adapts.
REMEMBERED = 500
FEWEST = 20
GAIN = 0.01


class ResidualIntervals(Part):
    """Intervals that hold the target in a share ``level`` of the rows, whatever the learner is.

    ::

        lower, upper = p + the m/2 and 1 - m/2 quantiles of the last 500 known residuals y - p
        m <- m + 0.01 * ((1 - level) - [the target was outside])         kept in [0, 1], first 1 - level

    The quantiles follow the size of the errors; the second line (adaptive conformal inference) corrects
    what they get wrong while it drifts. Only residuals that are known when a row is predicted are used.
    Before 20 of them are known there is no interval (NaN). As the residuals keep their sign, a learner
    that is off to one side is corrected, and the intervals need not be symmetric.

    Costs well under a microsecond a row. The interval is as wide at any x: it says nothing about which rows
    are hard. Do not read it as a probability for a single row.

    >>> import numpy as np
    >>> intervals = ResidualIntervals(level=0.8)
    >>> noise = np.random.default_rng(0).normal(size=5000)
    >>> lower, upper = intervals.advance(np.zeros(5000), noise)
    >>> bool(np.isnan(lower[:20]).all()), bool(lower[-1] < -1.0 < 1.0 < upper[-1])
    (True, True)
    >>> round(intervals.coverage, 2)
    0.8

    References
    ----------
    Gibbs, Candes: Adaptive conformal inference under distribution shift, NeurIPS 2021.
    """

    STATE = fields(
        _known=Count(),
        _ring=Array(REMEMBERED, written="always"),
        _waiting=Array(2, None),
        _missing=Number(at_least=0.0, at_most=1.0),
        _judged=Count(),
        _inside=Count(),
    )

    def __init__(self, level: float = 0.9) -> None:
        self.level = require_number(level, "level", above=0.0, below=1.0)
        self._ring = np.zeros(REMEMBERED)  # the known residuals as they came,
        self._sorted = np.zeros(REMEMBERED)  # and in order
        # Rows predicted but not used yet: what they missed by, and whether outside (-1: no interval).
        self._waiting = np.zeros((2, 0))
        self._known = 0
        self._missing = 1.0 - self.level
        self._judged = 0
        self._inside = 0

    def advance(
        self, prediction: Vector, target: Vector, known: Integers | None = None, count: int | None = None
    ) -> tuple[Vector, Vector]:
        """The ends of the interval of each row, from the residuals known before it came.

        Of those that wait and of these, the first ``known[i]`` are known before row i, and ``count`` behind
        the last; by default all rows that came before.
        """
        rows = len(prediction)
        if known is None or count is None:
            known, count = self._waiting.shape[1] + np.arange(rows), self._waiting.shape[1] + rows
        lower, upper = np.empty(rows), np.empty(rows)
        waiting = np.hstack([self._waiting, np.empty((2, rows))])
        self._known, self._missing, used = _follow(
            self._ring,
            self._sorted,
            self._known,
            self._missing,
            1.0 - self.level,
            prediction,
            target,
            waiting,
            np.append(known, count),
            lower,
            upper,
        )
        judged = ~np.isnan(lower)
        self._judged += int(np.count_nonzero(judged))
        self._inside += int(np.count_nonzero((lower <= target) & (target <= upper)))
        self._waiting = waiting[:, used:].copy()
        return lower, upper

    @property
    def coverage(self) -> float:
        """The share of rows inside their interval, among those that had one."""
        return self._inside / self._judged if self._judged else math.nan

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self._restored()

    def _restored(self) -> None:
        filled = min(self._known, REMEMBERED)
        self._sorted = np.concatenate([np.sort(self._ring[:filled]), self._ring[filled:]])


@inner
def _place(ordered: ReadVector, filled: int, value: float) -> int:
    """How many of the first ``filled`` numbers, which are in order, are below the value."""
    low, high = 0, filled
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _follow(
    ring: Vector,
    ordered: Vector,
    known: int,
    missing: float,
    wanted: float,
    prediction: ReadVector,
    target: ReadVector,
    waiting: Matrix,
    before: ReadIntegers,
    lower: Vector,
    upper: Vector,
) -> tuple[int, float, int]:
    """Fill ``lower`` and ``upper``; ``known`` counts all residuals ever known.

    ``waiting`` holds the queue of rows not known yet and is filled with the block's own rows; row i of the
    block is predicted with the ``before[i]`` that left the queue before.
    """
    size = ring.shape[0]
    queued = waiting.shape[1] - len(prediction)
    head = 0
    for i in range(len(prediction) + 1):
        while head < before[i]:
            r, outside = waiting[0, head], waiting[1, head]
            head += 1
            if outside >= 0.0:
                missing = min(max(missing + GAIN * (wanted - outside), 0.0), 1.0)
            gap = known if known < size else _place(ordered, size, ring[known % size])
            # The oldest leaves a gap; move it to where the new one belongs.
            at = _place(ordered, min(known, size), r)
            if at > gap:
                at -= 1
                for j in range(gap, at):
                    ordered[j] = ordered[j + 1]
            else:
                for j in range(gap, at, -1):
                    ordered[j] = ordered[j - 1]
            ordered[at] = r
            ring[known % size] = r
            known += 1
        if i == len(prediction):
            break
        n = min(known, size)
        lower[i], upper[i] = np.nan, np.nan
        # + 0.0: no negative zeros, which the order of equal residuals would tell apart
        waiting[0, queued + i], waiting[1, queued + i] = target[i] - prediction[i] + 0.0, -1.0
        if n >= FEWEST:
            tail = int(np.floor((n + 1) * missing / 2.0))
            low = min(max(tail - 1, 0), n - 1)
            lower[i] = prediction[i] + ordered[low]
            upper[i] = prediction[i] + ordered[n - 1 - low]
            waiting[1, queued + i] = 0.0 if lower[i] <= target[i] <= upper[i] else 1.0
    return known, missing, head
