"""Where targets stop being believed: experts do not learn from one that lies wildly out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector

__all__ = ["NO_FENCE", "Fence", "fence_around"]

# The fence is so many times as far from the median as this part of those targets that differ from it; there
# is none before so many differ.
REACH, PART, FEWEST = 10.0, 0.95, 7


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
    Fence(low=-430.0, high=530.0)
    """
    if not len(targets):
        return NO_FENCE
    median = float(np.partition(targets, len(targets) // 2)[len(targets) // 2])
    distances = np.abs(targets - median)
    distances = distances[distances > 0.0]
    if len(distances) < FEWEST:
        return NO_FENCE
    place = int(PART * (len(distances) - 1))
    reach = REACH * float(np.partition(distances, place)[place])
    return Fence(median - reach, median + reach)
