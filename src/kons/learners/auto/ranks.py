"""Features by their rank: where a value lies among those seen, whatever its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.stored import Stored

__all__ = ["RankScaling"]

#: Values of a feature that are remembered; between them ranks are interpolated.
KNOTS = 129
# A uniform variable on (-1/2, 1/2) has interquartile range 1/2; ranks are stretched to 1, as RobustScaling
# does.
STRETCH = 2.0


@dataclass(frozen=True, eq=False)
class RankScaling:
    """Each feature to its share of smaller values, stretched to [-1, 1].

    ::

        z = 2 (F(x) - 1/2),     F(x) = share of rows below x, ties counted by half

    interpolated between at most 129 values that were seen. Monotone, blind to units and heavy tails, and
    bounded:
    what lies beyond all rows seen counts as the last of them. O(n log n) a feature to fit, O(log 129) a
    number.

    Not where distances in a feature's own units matter, such as positions on a map.

    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [2.0], [1e9]])
    >>> RankScaling.fit(X).transform(X).ravel().tolist()
    [-0.75, 0.0, 0.0, 0.75]
    """

    values: tuple[Vector, ...]
    ranks: tuple[Vector, ...]

    @classmethod
    def fit(cls, X: Matrix) -> RankScaling:
        """Read the ranks off the rows of X, finite numbers."""
        values, ranks = [], []
        for column in X.T:
            seen, counts = np.unique(column, return_counts=True)
            share = (np.cumsum(counts) - 0.5 * counts) / len(column)
            if len(seen) > KNOTS:
                chosen = np.unique(np.searchsorted(share, np.linspace(share[0], share[-1], KNOTS)))
                chosen[-1] = len(seen) - 1
                seen, share = seen[chosen], share[chosen]
            values.append(seen)
            ranks.append(STRETCH * (share - 0.5))
        return cls(tuple(values), tuple(ranks))

    def transform(self, X: Matrix) -> Matrix:
        """The scaled rows of X, as a new array."""
        scaled = np.empty(X.shape)
        for j, (seen, rank) in enumerate(zip(self.values, self.ranks, strict=True)):
            scaled[:, j] = np.interp(X[:, j], seen, rank)
        return scaled

    def state(self) -> dict[str, Any]:
        """All there is to it. A copy."""
        return {"values": [v.copy() for v in self.values], "ranks": [r.copy() for r in self.ranks]}

    @classmethod
    def from_stored(cls, stored: Stored, width: int) -> RankScaling:
        """The inverse of :meth:`state`, checked."""
        values, ranks = stored.items("values", width), stored.items("ranks", width)
        pairs = []
        for value, rank in zip(values, ranks, strict=True):
            entry = Stored({"values": value, "ranks": rank}, "RankScaling")
            seen = entry.array("values", len(value))
            pairs.append((seen, entry.array("ranks", len(seen))))
            if not len(seen) or not (np.diff(seen) > 0.0).all():
                raise stored.error("the values of a feature do not rise")
        stored.finish()
        return cls(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
