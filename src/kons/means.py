"""A mean along a stream."""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, Vector
from kons.state import Inners, Number, Part, fields

__all__ = ["Mean", "Means"]


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


class Means(Part):
    """:class:`Mean` of each column.

    >>> means = Means(2)
    >>> means.follow(np.array([[2.0, 1.0], [4.0, 2.0]]), np.ones(2)).tolist()
    [[0.0, 0.0], [2.0, 1.0], [3.0, 1.5]]
    """

    STATE = fields(_each=Inners())

    def __init__(self, columns: int) -> None:
        self._each = [Mean() for _ in range(columns)]

    @property
    def value(self) -> Vector:
        """Of all values so far."""
        return np.array([mean.value for mean in self._each])

    def follow(self, values: Matrix, weights: Vector) -> Matrix:
        """The means before each of the next rows, and behind the last."""
        columns = zip(self._each, values.T, strict=True)
        return np.stack([mean.follow(column, weights) for mean, column in columns], axis=1)
