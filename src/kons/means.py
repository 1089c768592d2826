"""A mean along a stream."""

from __future__ import annotations

import numpy as np

from kons.arrays import Vector
from kons.state import Number, Part, fields

__all__ = ["Mean"]


class Mean(Part):
    """The weighted mean of the values so far; 0 before any.

    Sums go in the order of the stream, so that how it is cut does not matter, not even in the last digit.

    >>> mean = Mean()
    >>> mean.follow(np.array([2.0, 4.0, 9.0]), np.ones(3)).tolist(), mean.value
    ([0.0, 2.0, 3.0, 5.0], 5.0)
    """

    STATE = fields(_sum=Number(), _mass=Number(at_least=0.0))

    def __init__(self) -> None:
        self._sum = 0.0
        self._mass = 0.0

    @property
    def value(self) -> float:
        """Of all values so far."""
        return self._sum / self._mass if self._mass > 0.0 else 0.0

    def follow(self, values: Vector, weights: Vector, unknown: float = 0.0) -> Vector:
        """The mean before each of the next values, and behind the last: one more than there are values."""
        with np.errstate(over="ignore"):
            sums = np.cumsum(np.concatenate([[self._sum], weights * values]))
        masses = np.cumsum(np.concatenate([[self._mass], weights]))
        self._sum, self._mass = float(sums[-1]), float(masses[-1])
        means: Vector = np.divide(sums, masses, out=np.full(len(sums), unknown), where=masses > 0.0)
        return means
