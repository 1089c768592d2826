"""Quantiles of the last scores, whose levels correct themselves: adaptive conformal inference.

::

    quantile at tail m:   of the n scores kept, in order, the one with place floor((n + 1) m)
    m <- m + gain * ((1 - level) - [the score lay outside])          kept in [0, 1], first 1 - level

A score is kept in place of the oldest one. The quantiles follow the size of the errors; the second line
corrects what they get wrong while it drifts, so that over any long stretch the share outside is 1 - level.

References
----------
Gibbs, Candes: Adaptive conformal inference under distribution shift, NeurIPS 2021.
"""

from __future__ import annotations

import numpy as np

from kons.arrays import FLOAT64, ReadVector, Vector
from kons.compilation import inner, move_numbers

__all__ = [
    "FEWEST",
    "KNOWN",
    "LEVELS",
    "ORDERED",
    "REMEMBERED",
    "RING",
    "adapted",
    "bounds_of",
    "lowest",
    "new_scores",
    "remember",
    "reordered",
    "tail_of",
    "take_score",
]

#: Levels that have a tail of their own; between them tails are interpolated.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
#: Scores remembered, and how many are needed for a quantile.
REMEMBERED = 500
FEWEST = 20
#: Places in the vector of scores: how many ever came, the tails, the scores as they came, and in order.
KNOWN, TAILS = 0, 1
RING = TAILS + len(LEVELS)
ORDERED = RING + REMEMBERED
_LEVELS = np.array(LEVELS)
BYTES = FLOAT64.itemsize
#: The level whose coverage is watched.
WATCHED = LEVELS.index(0.9)
# The gain: a tenth of what is to lie outside, and never more than 0.01: an error of 0.1 in the level is
# corrected within some hundred rows, and the noise of the correction is a hundredth.
_GAINS = np.minimum(0.01, 0.1 * (1.0 - _LEVELS))


def new_scores() -> Vector:
    """None yet."""
    scores = np.zeros(ORDERED + REMEMBERED)
    scores[TAILS:RING] = 1.0 - _LEVELS
    return scores


def reordered(scores: Vector, window: int) -> None:
    """Find the order again of the scores kept, in place."""
    filled = min(int(scores[KNOWN]), window)
    scores[ORDERED:] = 0.0
    scores[ORDERED : ORDERED + filled] = np.sort(scores[RING : RING + filled])


def tail_of(scores: Vector, level: float) -> float:
    """What share of the scores is to be left outside, for the level to be met: interpolated, and nested."""
    tails = np.minimum.accumulate([1.0, *scores[TAILS:RING], 0.0])
    return float(np.interp(level, [0.0, *LEVELS, 1.0], tails))


@inner
def place(ordered: ReadVector, filled: int, value: float) -> int:
    """How many of the first ``filled`` numbers, which are in order, are below the value."""
    low, left = 0, filled
    while left > 0:  # by halves, and without a branch that cannot be foreseen
        half = (left + 1) // 2
        low += half if ordered[low + half - 1] < value else 0
        left -= half
    return low


@inner
def remember(ring: Vector, ordered: Vector, known: int, window: int, value: float) -> None:
    """Keep a score, the ``known``-th that comes, in place of the oldest of a window."""
    gap = known if known < window else place(ordered, window, ring[known % window])
    # The oldest leaves a gap; move it to where the new one belongs.
    at = place(ordered, min(known, window), value)
    first = ordered.ctypes.data
    if at > gap:
        at -= 1
        move_numbers(first + gap * BYTES, first + (gap + 1) * BYTES, at - gap)
    else:
        move_numbers(first + (at + 1) * BYTES, first + at * BYTES, gap - at)
    ordered[at] = value
    ring[known % window] = value


@inner
def adapted(tail: float, wanted: float, outside: float, gain: float) -> float:
    """A tail, after a score lay outside (1) or did not (0)."""
    return min(max(tail + gain * (wanted - outside), 0.0), 1.0)


@inner
def take_score(scores: Vector, window: int, value: float, two_sided: bool) -> bool:
    """Judge a score by the quantiles so far, let the tails follow, and keep it.

    Returns whether it lay outside at the level of 0.9.
    """
    known, missed = int(scores[KNOWN]), False
    ring, ordered = scores[RING:ORDERED], scores[ORDERED:]
    n = min(known, window)
    if n >= FEWEST:
        for level in range(len(_LEVELS)):
            tail = scores[TAILS + level]
            outside = value > ordered[n - 1 - lowest(n, tail, two_sided)]
            if two_sided:
                outside = outside or value < ordered[lowest(n, tail, True)]
            missed = missed or (outside and level == WATCHED)
            wanted = 1.0 - _LEVELS[level]
            scores[TAILS + level] = adapted(tail, wanted, 1.0 if outside else 0.0, _GAINS[level])
    remember(ring, ordered, known, window, value)
    scores[KNOWN] = known + 1.0
    return missed


@inner
def lowest(n: int, tail: float, two_sided: bool) -> int:
    """How many of n scores lie outside on one side, for a share of ``tail`` in all."""
    one_side = tail / 2.0 if two_sided else tail
    return min(max(int(np.floor((n + 1) * one_side)) - 1, 0), n - 1)


def bounds_of(scores: Vector, window: int, level: float, *, two_sided: bool) -> tuple[float, float]:
    """Between which scores a share ``level`` lies; infinite before there are enough.

    >>> bounds_of(new_scores(), 500, 0.9, two_sided=True)
    (-inf, inf)
    """
    n = min(int(scores[KNOWN]), window)
    if n < FEWEST:
        return -np.inf, np.inf
    share = tail_of(scores, level) * (0.5 if two_sided else 1.0)
    outside = min(max(int(np.floor((n + 1) * share)) - 1, 0), n - 1)
    ordered = scores[ORDERED:]
    return float(ordered[outside]) if two_sided else -np.inf, float(ordered[n - 1 - outside])
