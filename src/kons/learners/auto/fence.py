"""Where targets stop being believed: experts do not learn from one that lies wildly out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector

__all__ = ["NO_FENCE", "Fence", "fence_around"]

# The fence is so many times as far from the median as this part of those targets that differ from it.
REACH, PART = 10.0, 0.95
# While few are known it is nearer, and there is none before so many differ.
NEAREST, FEWEST = 6.0, 7
# Targets that are looked at.
LOOKED_AT = 512


class Fence(NamedTuple):
    """From where to where targets are learned as they are."""

    low: float
    high: float

    def clip(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those beyond at the fence. A new array."""
        return np.clip(targets, self.low, self.high)

    def holds(self, targets: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of them lie inside."""
        inside: NDArray[np.bool_] = (targets >= self.low) & (targets <= self.high)
        return inside


#: All targets are believed.
NO_FENCE = Fence(-1e300, 1e300)


def fence_around(targets: Vector) -> Fence:
    """Ten times as far from the median as 19 of 20 of the targets that differ from it; O(n).

    A burst of fifty wild targets in a thousand does no harm, and a new level is believed after a hundred
    rows. Not for targets whose few large values are all that matters.

    >>> import numpy as np
    >>> targets = np.append(np.arange(100.0), 1e9)
    >>> fence_around(targets)
    Fence(low=-238.0, high=338.0)
    """
    some = targets[:: -max(len(targets) // LOOKED_AT, 1)]
    if not len(some):
        return NO_FENCE
    median = float(np.partition(some, len(some) // 2)[len(some) // 2])
    distances = np.abs(some - median)
    distances = distances[distances > 0.0]
    if len(distances) < FEWEST:
        return NO_FENCE
    place = int(PART * (len(distances) - 1))
    wide = min(REACH, max(0.5 * math.sqrt(len(distances)), NEAREST))
    reach = wide * float(np.partition(distances, place)[place])
    return Fence(median - reach, median + reach)
