"""A row as numbers: what it was predicted from, its target, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.learners.auto.target_range import OutlierBounds
from kons.state import Array, Part, fields
from kons.stored import Stored

__all__ = [
    "LAGS",
    "LARGEST_TARGET",
    "LARGEST_WEIGHT",
    "WAITED_AT",
    "ChunkEnd",
    "LastTargets",
    "Layout",
]

#: How many of the last targets are features: with two, experts know the level and the slope.
LAGS = 2
#: Classes that last targets are flagged by: each costs two features.
MOST_CLASSES = 10
#: Of a target: its squared error is still a number.
LARGEST_TARGET: Final = 1e150
#: Of a row: beside the priors, which are of the size of one row, rounding does not count yet.
LARGEST_WEIGHT = 1e12
#: The last number of a row.
WAITED_AT: Final = -1


@dataclass(frozen=True)
class Layout:
    """Where what stands in a row of ``width`` features and so many targets; a class stands as its number.

    ::

        features | the last targets known when it was predicted | targets, weight, errors of stacking, waited

    It *waited* for so many other rows to be learned between its prediction and its own learning. Of several
    targets the last ones stand together, and behind them those before these.

    >>> import numpy as np
    >>> layout = Layout(width=1, classes=False)
    >>> rows = layout.join(np.array([[7.0]]), np.array([[5.0, 4.0]]), np.array([[6.0]]), np.array([1.0]))
    >>> layout.raw_features(rows, lags=True).tolist(), layout.outputs(rows, 1).tolist()
    ([[7.0, 5.0, 4.0]], [[6.0]])
    """

    width: int
    classes: bool
    count: int = 1

    @property
    def columns(self) -> int:
        """Numbers in a row."""
        return self.width + (LAGS + 2) * self.count + 2

    def of(self, columns: int) -> Layout:
        """That of rows of so many numbers."""
        return replace(self, width=self.width + columns - self.columns)

    @property
    def own(self) -> int:
        """Where the targets begin."""
        return self.width + LAGS * self.count

    @property
    def each(self) -> list[slice]:
        """The outputs of each target; of classes all are of one."""
        return [slice(None)] if self.classes else [slice(k, k + 1) for k in range(self.count)]

    def join(self, X: Matrix, last_targets: Matrix, Y: Matrix, weights: Vector) -> Matrix:
        """Rows of their parts; their errors, and how long they wait, are known when the targets are."""
        return np.column_stack([X, last_targets, Y, weights, np.zeros((len(Y), self.count + 1))])

    def targets(self, rows: Matrix) -> Matrix:
        """Of each row, (rows, count); a view."""
        return rows[:, self.own : self.own + self.count]

    def weights(self, rows: Matrix) -> Vector:
        """Of each row; a view."""
        return rows[:, self.own + self.count]

    def errors(self, rows: Matrix) -> Matrix:
        """The squared errors of the stacking when each row was predicted, (rows, count); a view."""
        return rows[:, self.own + self.count + 1 : -1]

    @staticmethod
    def waited(rows: Matrix) -> Vector:
        """How many rows were learned between the prediction of each and its learning; a view."""
        return rows[:, WAITED_AT]

    def outputs(self, rows: Matrix, count: int) -> Matrix:
        """What is to be predicted, (rows, count): the targets, or 1 for the class and 0 for the others."""
        targets = self.targets(rows)
        if not self.classes:
            return targets.copy()
        Y = np.zeros((len(rows), count))
        Y[np.arange(len(rows)), targets[:, 0].astype(np.int64)] = 1.0
        return Y

    def units(self, Y: Matrix, weights: Vector) -> Vector:
        """The deviation of each target, where one choice serves several; otherwise 1."""
        if self.count == 1:
            return np.ones(1)
        deviations = np.sqrt(np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, 0, weights))
        # Deviations below this part of a target's size are the rounding of its mean.
        varies = deviations > 1e-14 * np.abs(Y).max(axis=0)
        return np.where(varies, deviations, np.inf)

    def last(self, rows: Matrix) -> NDArray[np.float64]:
        """The last targets before each, (rows, lags, count); a view."""
        return rows[:, self.width : self.own].reshape(len(rows), LAGS, self.count)

    def raw_features(self, rows: Matrix, lags: bool, flags: int = 0, features: int | None = None) -> Matrix:
        """What a feature map scales: the first ``features``, and the last targets.

        Of more than two classes these are as many flags each.
        """
        features = self.width if features is None else features
        own = rows[:, :features]
        if not lags:
            return np.ascontiguousarray(own)
        last = rows[:, self.width : self.own]
        if flags <= 2:
            together = rows[:, : self.own] if features == self.width else np.hstack([own, last])
            return np.ascontiguousarray(together)
        flagged = (last[:, :, None] == np.arange(flags)).reshape(len(rows), LAGS * flags)
        return np.hstack([own, flagged])

    def width_of(self, features: int, lags: bool, flags: int) -> int:
        """How many columns :meth:`raw_features` gives."""
        return features + (LAGS * (flags if flags > 2 else self.count) if lags else 0)

    def widened(self, rows: Matrix, values: Vector) -> Matrix:
        """Rows of this layout with features more behind the others, which have these values."""
        new = np.repeat(values[None], len(rows), axis=0)
        return np.hstack([rows[:, : self.width], new, rows[:, self.width :]])

    def last_target(self, rows: Matrix, means: Matrix) -> Matrix:
        """The last known one before each row as a prediction, (rows, outputs); the mean where none was."""
        last = rows[:, self.width : self.width + self.count]
        if not self.classes:
            return last.copy()
        return np.where(last < 0.0, means, (last == np.arange(means.shape[1])).astype(np.float64))

    def believed(self, rows: Matrix, bounds: OutlierBounds) -> Vector:
        """The weights that experts learn with: 0 where a target, or a last one, is beyond the bounds.

        Before any target was known, the last ones are no targets, and where they lie means nothing.
        """
        weights = self.weights(rows)
        if self.classes:
            return weights
        last = self.last(rows)
        sound = bounds.holds(last).all(axis=(1, 2)) | (last == 0.0).all(axis=(1, 2))
        believed: Vector = weights * (bounds.holds(self.targets(rows)).all(axis=1) & sound)
        return believed

    def shown(self, rows: Matrix, bounds: OutlierBounds) -> Matrix:
        """Rows as experts are shown them: the last targets no farther than the outlier bounds."""
        if self.classes:
            return rows
        shown = rows.copy()
        shown[:, self.width : self.own] = bounds.clip(self.last(rows)).reshape(len(rows), LAGS * self.count)
        return shown

    def require_codes(self, rows: Matrix, count: int, stored: Stored) -> None:
        """Refuse stored rows of a class that there is not, or with a negative weight."""
        if self.classes and len(rows):
            codes = self.targets(rows)
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
    errors: Vector
    """The usual squared error of the stacking of each target."""
    rare: bool
    """Whether nearly all rows are of one class: :attr:`~kons.learners.auto.target_range.Targets.rarity`."""

    def believed(self, rows: Matrix) -> Matrix:
        """Those that are learned from, as experts are shown them."""
        used = self.layout.believed(rows, self.bounds) > 0.0
        return self.layout.shown(rows if used.all() else rows[used], self.bounds)


class LastTargets(Part):
    """The last targets that were learned before a row, the latest first; several stand together."""

    STATE = fields(tail=Array("last_targets", written="always"))

    def __init__(self, classes: bool, count: int = 1) -> None:
        self._nothing = -1.0 if classes else 0.0  # where no target is known yet
        self.count = count
        #: The oldest again where there are fewer.
        self.tail: Vector = np.full(LAGS * count, self._nothing)

    def follow(self, Y: Matrix, known: NDArray[np.int64], first: bool) -> Matrix:
        """Targets Y are learned, beginning with the ``first`` of all or not.

        What comes before a row of which the first ``known`` of these are learned, for each entry.
        """
        before = self.tail.reshape(LAGS, self.count)[::-1]
        if first and len(Y):
            before = np.repeat(Y[:1], LAGS, axis=0)
        past = np.concatenate([before, Y])
        last: Matrix = past[known[:, None] + LAGS - 1 - np.arange(LAGS)].reshape(len(known), len(self.tail))
        if first:
            last[known == 0] = self._nothing
        self.tail = past[: -LAGS - 1 : -1].ravel()
        return last

    def follow_one(self, y: Sequence[float]) -> None:
        """The targets of one row that is not the first of all are learned."""
        self.tail[self.count :] = self.tail[: -self.count]
        self.tail[: self.count] = y

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of as many targets."""
        super().load_state(stored, last_targets=len(self.tail))

    def next(self, rows: int) -> Matrix:
        """Before the next row, so many times."""
        return np.repeat(self.tail[None], rows, axis=0)
