"""A row as numbers: what it was predicted from, its target, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.learners.auto.target_range import OutlierBounds
from kons.state import Array, Part, fields
from kons.stored import Stored

__all__ = [
    "ERROR_AT",
    "LAGS",
    "LARGEST_TARGET",
    "LARGEST_WEIGHT",
    "OWN",
    "TARGET_AT",
    "WAITED_AT",
    "WEIGHT_AT",
    "ChunkEnd",
    "LastTargets",
    "Layout",
]

#: How many of the last targets are features: with two, experts know the level and the slope.
LAGS = 2
#: Classes that last targets are flagged by: each costs two features.
MOST_CLASSES = 10
#: Of a target: its squared error is still a number.
LARGEST_TARGET = 1e150
#: Of a row: beside the priors, which are of the size of one row, rounding does not count yet.
LARGEST_WEIGHT = 1e12
#: What stands behind features and last targets, in this order, and how many numbers that is.
TARGET_AT, WEIGHT_AT, ERROR_AT, WAITED_AT, OWN = range(5)


@dataclass(frozen=True)
class Layout:
    """Where what stands in a row of ``width`` features; a class stands as its number.

    ::

        features | the last targets known when it was predicted | target, weight, error of stacking, waited

    It *waited* for so many other rows to be learned between its prediction and its own learning.

    >>> import numpy as np
    >>> layout = Layout(width=1, classes=False)
    >>> rows = layout.join(np.array([[7.0]]), np.array([[5.0, 4.0]]), np.array([6.0]), np.array([1.0]))
    >>> layout.raw_features(rows, lags=True).tolist(), layout.outputs(rows, 1).tolist()
    ([[7.0, 5.0, 4.0]], [[6.0]])
    """

    width: int
    classes: bool

    @property
    def columns(self) -> int:
        """Numbers in a row."""
        return self.width + LAGS + OWN

    def join(self, X: Matrix, last_targets: Matrix, y: Vector, weights: Vector) -> Matrix:
        """Rows of their parts; their errors, and how long they wait, are known when the targets are."""
        return np.column_stack([X, last_targets, y, weights, np.zeros((len(y), OWN - ERROR_AT))])

    @staticmethod
    def targets(rows: Matrix) -> Vector:
        """Of each row; a view."""
        return rows[:, TARGET_AT - OWN]

    @staticmethod
    def weights(rows: Matrix) -> Vector:
        """Of each row; a view."""
        return rows[:, WEIGHT_AT - OWN]

    @staticmethod
    def errors(rows: Matrix) -> Vector:
        """The squared error of the stacking when each row was predicted; a view."""
        return rows[:, ERROR_AT - OWN]

    @staticmethod
    def waited(rows: Matrix) -> Vector:
        """How many rows were learned between the prediction of each and its learning; a view."""
        return rows[:, WAITED_AT - OWN]

    def outputs(self, rows: Matrix, count: int) -> Matrix:
        """What is to be predicted, (rows, count): the target, or 1 for the class and 0 for the others."""
        targets = self.targets(rows)
        if not self.classes:
            return targets[:, None].copy()
        Y = np.zeros((len(rows), count))
        Y[np.arange(len(rows)), targets.astype(np.int64)] = 1.0
        return Y

    def raw_features(self, rows: Matrix, lags: bool, flags: int = 0, features: int | None = None) -> Matrix:
        """What a feature map scales: the first ``features``, and the last targets.

        Of more than two classes these are as many flags each.
        """
        features = self.width if features is None else features
        own = rows[:, :features]
        if not lags:
            return np.ascontiguousarray(own)
        last = rows[:, self.width : self.width + LAGS]
        if flags <= 2:
            together = rows[:, : features + LAGS] if features == self.width else np.hstack([own, last])
            return np.ascontiguousarray(together)
        flagged = (last[:, :, None] == np.arange(flags)).reshape(len(rows), LAGS * flags)
        return np.hstack([own, flagged])

    @staticmethod
    def width_of(features: int, lags: bool, flags: int) -> int:
        """How many columns :meth:`raw_features` gives."""
        return features + (LAGS * (flags if flags > 2 else 1) if lags else 0)

    def widened(self, rows: Matrix, values: Vector) -> Matrix:
        """Rows of this layout with features more behind the others, which have these values."""
        new = np.repeat(values[None], len(rows), axis=0)
        return np.hstack([rows[:, : self.width], new, rows[:, self.width :]])

    def last_target(self, rows: Matrix, means: Matrix) -> Matrix:
        """The last known one before each row as a prediction, (rows, outputs); the mean where none was."""
        last = rows[:, self.width, None]
        if not self.classes:
            return last.copy()
        return np.where(last < 0.0, means, (last == np.arange(means.shape[1])).astype(np.float64))

    def believed(self, rows: Matrix, bounds: OutlierBounds) -> Vector:
        """The weights that experts learn with: 0 where the target, or a last one, is beyond the bounds.

        Before any target was known, the last ones are no targets, and where they lie means nothing.
        """
        weights = self.weights(rows)
        if self.classes:
            return weights
        last = rows[:, self.width : self.width + LAGS]
        sound = bounds.holds(last).all(axis=1) | (last == 0.0).all(axis=1)
        believed: Vector = weights * (bounds.holds(self.targets(rows)) & sound)
        return believed

    def shown(self, rows: Matrix, bounds: OutlierBounds) -> Matrix:
        """Rows as experts are shown them: the last targets no farther than the outlier bounds."""
        if self.classes:
            return rows
        shown, last = rows.copy(), slice(self.width, self.width + LAGS)
        shown[:, last] = bounds.clip(rows[:, last])
        return shown

    def require_codes(self, rows: Matrix, count: int, stored: Stored) -> None:
        """Refuse stored rows of a class that there is not, or with a negative weight."""
        codes = self.targets(rows) if self.classes and len(rows) else np.zeros(0)
        if (codes != np.floor(codes)).any() or ((codes < 0) | (codes >= count)).any():
            raise stored.error(f"a row is of a class other than 0 to {count - 1}")
        if len(rows) and self.weights(rows).min() < 0.0:
            raise stored.error("a row has a negative weight")


class ChunkEnd(NamedTuple):
    """What is known at the end of a chunk."""

    rows: int
    layout: Layout
    outputs: int
    flags: int
    """Classes that last targets are flagged by."""
    bounds: OutlierBounds
    error: float
    """The usual squared error of the stacking."""
    rare: bool
    """Whether nearly all rows are of one class: :attr:`~kons.learners.auto.target_range.Targets.rarity`."""

    def believed(self, rows: Matrix) -> Matrix:
        """Those that are learned from, as experts are shown them."""
        return self.layout.shown(rows[self.layout.believed(rows, self.bounds) > 0.0], self.bounds)


class LastTargets(Part):
    """The last targets that were learned before a row, the latest first."""

    STATE = fields(tail=Array(LAGS, written="always"))

    def __init__(self, classes: bool) -> None:
        self._nothing = -1.0 if classes else 0.0  # where no target is known yet
        #: The oldest again where there are fewer.
        self.tail: Vector = np.full(LAGS, self._nothing)

    def follow(self, y: Vector, known: NDArray[np.int64], first: bool) -> Matrix:
        """Targets y are learned, beginning with the ``first`` of all or not.

        What comes before a row of which the first ``known`` of these are learned, for each: (entries, LAGS).
        """
        before = np.full(LAGS, y[0]) if first and len(y) else self.tail[::-1]
        past = np.concatenate([before, y])
        last: Matrix = past[known[:, None] + LAGS - 1 - np.arange(LAGS)]
        if first:
            last[known == 0] = self._nothing
        self.tail = past[: -LAGS - 1 : -1].copy()
        return last

    def follow_one(self, y: float) -> None:
        """One target that is not the first of all is learned."""
        self.tail[1:] = self.tail[:-1]
        self.tail[0] = y

    def next(self, rows: int) -> Matrix:
        """Before the next row, so many times."""
        return np.repeat(self.tail[None], rows, axis=0)
