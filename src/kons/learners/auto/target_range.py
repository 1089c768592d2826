"""What is known of the targets so far: centre, spread and range, and from where on one is an outlier."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Array, Part, Sizes, fields
from kons.stored import Stored

__all__ = [
    "FOLLOWED",
    "MARGIN",
    "NO_BOUNDS",
    "ByTarget",
    "OutlierBounds",
    "TargetRange",
    "Targets",
    "bounds_around",
]

# Deviations below this part of the mean are rounding.
ROUNDING = 1e-12
# How far beyond the range seen a prediction may go, as a part of that range.
MARGIN = 0.05
#: A weight of the last target from which on predictions follow it beyond the outlier bounds: a smaller one is
#: chance, and times a wild target it would be harm.
FOLLOWED = 0.1


MOMENTS = ("weight", "squares", "low", "high")


class ByTarget(Array):
    """So many numbers of each target, (targets, numbers); one behind the other in a file."""

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name).flatten()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        count, (numbers,) = sizes["targets"], self.shape
        assert isinstance(numbers, int)
        return stored.array(key, count * numbers, at_least=self.at_least).reshape(count, numbers)


class TargetRange(NamedTuple):
    """What the targets before each of some rows tell."""

    means: Matrix
    """Of each output, (rows, outputs): the shares of classes, or the means."""
    low: Matrix
    """Of each target, (rows, targets)."""
    high: Matrix

    def within(self, bounds: OutlierBounds) -> TargetRange:
        """The same with no prediction beyond these."""
        low, high = np.maximum(self.low, bounds.low), np.minimum(self.high, bounds.high)
        return self._replace(low=low, high=high)

    def clip(self, predictions: NDArray[np.float64]) -> None:
        """Into the range before each row, in place; rows come first, outputs last."""
        shape = len(self.low), *(1,) * (predictions.ndim - 2), self.low.shape[1]
        np.clip(predictions, self.low.reshape(shape), self.high.reshape(shape), out=predictions)


class Targets(Part):
    """Running mean, variance and range of each target, or the shares of classes given as 0 and 1.

    O(1) a row. The range only grows: it is what predictions are clipped to, with a margin of a twentieth.

    >>> import numpy as np
    >>> targets = Targets(classes=False)
    >>> ranges = targets.follow(np.array([[1.0], [3.0]]), np.ones(2), np.array([0, 1, 2]))
    >>> ranges.means.ravel().tolist(), ranges.high.ravel().tolist()
    ([0.0, 1.0, 2.0], [0.0, 1.0, 3.1])
    """

    STATE = fields(
        moments=ByTarget(len(MOMENTS), written="always"),
        totals=Array("outputs", written="always"),
    )

    def __init__(self, classes: bool, count: int = 1) -> None:
        self.classes = classes
        #: Of each: the weight of all rows, squares around the mean before each, least and largest target.
        self.moments: Matrix = np.zeros((count, len(MOMENTS)))
        self.totals: Vector = np.zeros(0 if classes else count)

    def add_output(self) -> None:
        """A class more."""
        self.totals = np.append(self.totals, 0.0)

    @property
    def empty(self) -> bool:
        """Whether no target with a weight came yet, believed or not."""
        return not self.moments.any()

    def follow(
        self, Y: Matrix, weights: Vector, known: NDArray[np.int64], seen: Vector | None = None
    ) -> TargetRange:
        """Learn Y (rows, outputs); the range is that of all rows ``seen``, by weights, if these are more.

        What is known after the first ``known`` of these rows, for each entry of it.
        """
        weight, _, low_before, high_before = self.moments.T
        weight = weight[0]
        sums = weight + np.concatenate([[0.0], np.cumsum(weights)])
        totals = self.totals + np.concatenate(
            [np.zeros((1, Y.shape[1])), np.cumsum(Y * weights[:, None], axis=0)]
        )
        means = totals / np.maximum(sums, 1e-300)[:, None]
        low, high = np.zeros((len(sums), len(self.moments))), np.ones((len(sums), len(self.moments)))
        if not self.classes:
            counted = ((weights if seen is None else seen) > 0.0)[:, None]
            # A range that was seen stays, though nothing of it may be believed any more.
            empty = (weight == 0.0) & (low_before == 0.0) & (high_before == 0.0)
            low[0], high[0] = np.where(empty, np.inf, low_before), np.where(empty, -np.inf, high_before)
            low[1:], high[1:] = np.where(counted, Y, np.inf), np.where(counted, Y, -np.inf)
            low, high = np.minimum.accumulate(low), np.maximum.accumulate(high)
            nothing = low > high
            low[nothing] = high[nothing] = 0.0
            # The first target of all has no mean before it to be compared with.
            residuals = np.where(sums[:-1, None] > 0.0, Y - means[:-1], 0.0)
            self.moments[:, 1] += [float(weights @ own**2) for own in residuals.T.copy()]
            self.moments[:, 2], self.moments[:, 3] = low[-1], high[-1]
            room = MARGIN * (high - low)
            low, high = low - room, high + room
        self.moments[:, 0], self.totals = sums[-1], totals[-1]
        return TargetRange(means[known], low[known], high[known])

    def count_again(self, Y: Matrix, weights: Vector) -> None:
        """Mean and variance of these rows only; the range stays."""
        ranges = self.moments[:, 2:].copy()
        self.moments[:, :2], self.totals = 0.0, np.zeros(len(self.totals))
        self.follow(Y, weights, np.zeros(1, dtype=np.int64))
        self.moments[:, 2:] = ranges

    def now(self, rows: int) -> TargetRange:
        """What is known before rows that come next."""
        weight, _, low, high = self.moments.T
        means = np.repeat(self.totals[None] / max(weight[0], 1e-300), rows, axis=0)
        room = MARGIN * (high - low)
        low, high = (np.zeros(1), np.ones(1)) if self.classes else (low - room, high + room)
        return TargetRange(means, np.repeat(low[None], rows, axis=0), np.repeat(high[None], rows, axis=0))

    @property
    def variances(self) -> Vector:
        """Of each target around its mean when it came, or summed over the classes; never 0."""
        weight = np.maximum(self.moments[:, 0], 1e-300)
        if self.classes:
            shares = self.totals / weight
            return np.maximum(shares @ (1.0 - shares), 1e-3)[None]
        variances, sizes = self.moments[:, 1] / weight, ROUNDING * np.abs(self.totals) / weight
        return np.where(variances > np.maximum(sizes * sizes, 1e-300), variances, 1e-300)

    @property
    def rarity(self) -> float:
        """How many times as much the priors of what is learned from classes weigh: 1, where none is rare.

        Most is known by rows of other classes than the most frequent one. Where they are one in twenty or
        fewer it grows as the square of the rows among which there is one of them. Before there is any, a
        file may be sorted.
        """
        several = self.classes and np.count_nonzero(self.totals > 0.0) > 1
        return max(1.0, (0.1 / float(self.variances[0])) ** 2) if several else 1.0


class OutlierBounds(NamedTuple):
    """From where to where each target is learned as it is."""

    low: Vector
    high: Vector

    def clip(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those beyond at the outlier bounds; targets are the last axis. A new array."""
        return np.clip(targets, self.low, self.high)

    def holds(self, targets: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of them lie inside."""
        inside: NDArray[np.bool_] = (targets >= self.low) & (targets <= self.high)
        return inside

    @classmethod
    def of(cls, targets: Matrix) -> OutlierBounds:
        """Around each column: see :func:`bounds_around`."""
        low, high = np.array([bounds_around(own) for own in targets.T.copy()]).T.copy()
        return cls(low, high)


#: Beyond these there are no targets: all are believed.
NO_BOUNDS: Final = (-1e300, 1e300)


def bounds_around(targets: Vector) -> tuple[float, float]:
    """Ten times as far from the median as 19 of 20 of the targets that differ from it; O(n).

    A burst of fifty wild targets in a thousand does no harm, and a new level is believed after a hundred
    rows. Not for targets whose few large values are all that matters.

    >>> import numpy as np
    >>> targets = np.append(np.arange(100.0), 1e9)
    >>> bounds_around(targets)
    (-430.0, 530.0)
    """
    if not len(targets):
        return NO_BOUNDS
    median = float(np.partition(targets, len(targets) // 2)[len(targets) // 2])
    distances = np.abs(targets - median)
    distances = distances[distances > 0.0]
    if len(distances) < 7:  # they tell no scale
        return NO_BOUNDS
    place = int(0.95 * (len(distances) - 1))
    reach = 10.0 * float(np.partition(distances, place)[place])
    return median - reach, median + reach
