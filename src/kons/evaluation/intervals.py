"""Prediction intervals from what the predictions missed by lately."""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Integers, Matrix, ReadIntegers, ReadVector, Vector, require_number
from kons.compilation import compiled
from kons.core.conformal import FEWEST, REMEMBERED, adapted, lowest, remember
from kons.core.residual_scale import UNKNOWN
from kons.state import Array, Count, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["ResidualIntervals"]

# How fast the level adapts.
GAIN = 0.01


class ResidualIntervals(Part):
    """Intervals that hold the target in a share ``level`` of the rows, whatever the learner is.

    ::

        lower, upper = p + s * the m/2 and 1 - m/2 quantiles of the last 500 known scores (y - p)/s
        m <- m + 0.01 * ((1 - level) - [the target was outside])         kept in [0, 1], first 1 - level

    The quantiles follow the size of the errors; the second line (adaptive conformal inference) corrects
    what they get wrong while it drifts. Only residuals that are known when a row is predicted are used.
    Before 20 of them are known there is no interval (NaN). As the residuals keep their sign, a learner
    that is off to one side is corrected, and the intervals need not be symmetric.

    s is how large the learner expects the residual of a row to be (``scale`` of a trace,
    :mod:`kons.learners.predictive`); without it intervals are as wide at any x, and say nothing about which
    rows are hard. Costs well under a microsecond a row. Do not read it as a probability for a single row.

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
        self.level: float = require_number(level, "level", above=0.0, below=1.0)
        self._ring = np.zeros(REMEMBERED)  # the known residuals as they came,
        self._sorted = np.zeros(REMEMBERED)  # and in order
        # Rows predicted but not used yet: what they missed by, and whether outside (-1: no interval).
        self._waiting = np.zeros((2, 0))
        self._known = 0
        self._missing = 1.0 - self.level
        self._judged = 0
        self._inside = 0

    def advance(
        self,
        prediction: Vector,
        target: Vector,
        known: Integers | None = None,
        count: int | None = None,
        scale: Vector | None = None,
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
            np.ascontiguousarray(prediction),
            np.ascontiguousarray(target),
            np.ones(rows) if scale is None else np.ascontiguousarray(scale),
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


@compiled
def _follow(
    ring: Vector,
    ordered: Vector,
    known: int,
    missing: float,
    wanted: float,
    prediction: ReadVector,
    target: ReadVector,
    scale: ReadVector,
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
                missing = adapted(missing, wanted, outside, GAIN)
            remember(ring, ordered, known, size, r)
            known += 1
        if i == len(prediction):
            break
        n = min(known, size)
        lower[i], upper[i] = np.nan, np.nan
        # + 0.0: no negative zeros, which the order of equal residuals would tell apart
        r = target[i] - prediction[i] + 0.0
        # Before any residual was known, nothing was of the size of this one: it is its own scale.
        its = scale[i] if scale[i] > UNKNOWN else max(abs(r), 1e-9)
        waiting[0, queued + i], waiting[1, queued + i] = r / its, -1.0
        if n >= FEWEST:
            low = lowest(n, missing, True)
            lower[i] = prediction[i] + scale[i] * ordered[low]
            upper[i] = prediction[i] + scale[i] * ordered[n - 1 - low]
            waiting[1, queued + i] = 0.0 if lower[i] <= target[i] <= upper[i] else 1.0
    return known, missing, head
