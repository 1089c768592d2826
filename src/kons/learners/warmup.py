"""The first rows: kept for later, and predicted meanwhile by the mean or the majority of those before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.storage import GrowingArray, PointStore, point_store
from kons.errors import InputError
from kons.learners.labels import KnownLabels, Labels
from kons.learners.scores import best_of, scores_of
from kons.learners.units import TargetUnits
from kons.losses import Loss
from kons.means import Mean, Means
from kons.scaling import RobustScaling
from kons.state import Array, Field, Growing, Inner, Part, Points, Sizes, fields
from kons.stored import Stored

__all__ = ["LabelWarmUp", "WarmUp"]


class _Since(Field):
    """The first row of each column that came later, by its number; before it there are zeros, unknown."""

    def save(self, part: Any, name: str) -> Any:
        return np.array(list(getattr(part, name).values()), dtype=np.float64)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        since, width = stored.array(key, None, at_least=1.0), sizes["width"] or 1
        if len(since) >= width or not (since <= sizes["rows"]).all():
            raise stored.error("it has more late columns, or later ones, than there can be")
        return dict(enumerate(since.astype(np.int64).tolist(), start=width - len(since)))


class WarmUp(Part):
    """Rows as they came, with their targets (or codes of labels) and weights, and a simple record of them.

    Costs the rows' memory, and O(1) a row (O(K) with K classes).
    """

    STATE = fields(
        _weights=Growing("rows", at_least=0.0),
        _targets=Growing(None),
        points=Points("rows"),
        _since=_Since(),
        record=Inner(),
    )
    outputs: int

    def __init__(self, accepts: str, units: TargetUnits, outputs: int = 0) -> None:
        self.outputs, self._units = outputs, units
        self.points: PointStore = point_store(accepts)
        self.record: Any = Means(outputs) if outputs else Mean()
        self._since: dict[int, int] = {}
        self._targets = GrowingArray()
        self._weights = GrowingArray()

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def targets(self) -> Vector | Matrix:
        """(n,), or (n, k) where rows have several. A copy."""
        targets = self._targets.view.copy()
        return targets.reshape(-1, self.outputs) if self.outputs else targets

    @property
    def weights(self) -> Vector:
        """A copy."""
        return self._weights.view.copy()

    def learn(self, points: Any, targets: Any, weights: Vector) -> dict[str, Any]:
        """Keep rows; returns columns of their trace."""
        predictions = self._take(points, targets, weights)
        return {"prediction": predictions, "loss": weights * self._units.losses(predictions, targets)}

    def predict(self) -> Any:
        """The mean of the targets so far: a number, or an array of several."""
        mean = self._units.possible(self.record.value)
        return mean if self.outputs else float(mean)

    def to_learn(self) -> Any:
        """The targets of the rows kept, for the learner behind the warm-up: in units found from them."""
        return self._units.fit(self.targets, self.weights)

    def _take(self, points: Any, targets: Vector | Matrix, weights: Vector) -> Any:
        """Keep rows; returns what the record predicted before each."""
        predictions = self.record.follow(targets, weights)[:-1]
        self.points.append(points)
        self._targets.append(targets.ravel())
        self._weights.append(weights)
        return predictions

    def widen(self, width: int, columns: int) -> None:
        """Rows of ``width`` features have so many more from now on; what these were before is not known."""
        self.points.widen(columns)
        self._since = self._since | dict.fromkeys(range(width, width + columns), len(self))

    def scaling(self) -> RobustScaling:
        """Of each feature, from the rows that have it."""
        points: Matrix = self.points.view
        weights = self.weights
        scaling = RobustScaling.fit(points[:, : points.shape[1] - len(self._since)], weights=weights)
        for column, first in self._since.items():
            known = points[first:, column : column + 1]
            later = RobustScaling.fit(known, weights=weights[first:]) if len(known) else _UNKNOWN
            scaling = scaling.beside(later)
        return scaling

    def forget_unknown(self, points: Matrix) -> None:
        """Put scaled rows to 0, the median, where nothing was known."""
        for column, first in self._since.items():
            points[:first, column] = 0.0

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self._targets) != len(self) * max(self.outputs, 1):
            raise stored.error(f"{len(self._targets)} targets are not those of {len(self)} rows")


class LabelWarmUp(WarmUp):
    """Rows with labels, of which the most frequent is predicted."""

    record: Majority

    def __init__(self, accepts: str, units: TargetUnits, labels: Labels, loss: Loss | None) -> None:
        super().__init__(accepts, units)
        self.record, self._loss = Majority(labels), loss

    @property
    def labels(self) -> Labels:
        """Those that came, and those that were given."""
        labels: Labels = self.record.labels
        return labels

    def learn(self, points: Any, targets: Any, weights: Vector) -> dict[str, Any]:
        """Keep rows, targets by their codes; returns columns of their trace."""
        shares = self._take(points, targets.astype(np.float64), weights)
        best = best_of(shares)
        return {
            "prediction": self.labels.decode(best),
            "loss": weights * (best != targets),
            "scores": scores_of(shares, self._loss, self._units.bound),
        }

    def predict(self) -> Any:
        """The label that came most often; None before any is known."""
        return self.labels.known[int(np.argmax(self.record.probabilities))] if len(self.labels) else None

    def scores(self, rows: int) -> Matrix:
        """The score of each class, the same for so many rows."""
        if not len(self.labels):
            raise InputError("no class is known yet: learn some rows first.")
        return np.repeat(scores_of(self.record.probabilities, self._loss, self._units.bound), rows, axis=0)

    def to_learn(self) -> Any:
        """The labels of the rows kept."""
        return self.labels.decode(self.targets)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        self.record.check(self.targets, stored)


#: Of a column that no row has had yet.
_UNKNOWN = RobustScaling.fit(np.zeros((1, 1)))


class Majority(Part):
    """How much weight each class has so far, by the codes of labels that someone else keeps."""

    STATE = fields(labels=KnownLabels(), _counts=Array(None, at_least=0.0))

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._counts: Vector = np.zeros(len(labels))

    @property
    def probabilities(self) -> Matrix:
        """Shares of the classes so far, each counted once more than it came; one row."""
        return _shares(self._padded()[None])

    def follow(self, codes: Vector, weights: Vector) -> Matrix:
        """The shares before each of the next rows and behind the last, NaN for classes that had not come."""
        before, counts = len(self._counts), self._padded()
        came = (codes[:, None] == np.arange(len(counts))) * weights[:, None]
        sums = np.cumsum(np.vstack([counts, came]), axis=0)
        known = np.vstack([np.zeros(len(counts), bool), codes[:, None] == np.arange(len(counts))])
        known[0, :before] = True
        known = np.logical_or.accumulate(known, axis=0)
        self._counts = sums[-1]
        return _shares(np.where(known, sums, np.nan))

    def check(self, codes: Vector, stored: Stored) -> None:
        """Refuse rows of a class that there is not."""
        if len(self._counts) > len(self.labels) or not np.isin(codes, np.arange(len(self.labels))).all():
            raise stored.error("a row is of a class that there is not")

    def _padded(self) -> Vector:
        """Counts of all the labels there are, new ones 0."""
        return np.append(self._counts, np.zeros(len(self.labels) - len(self._counts)))


def _shares(counts: Matrix) -> Matrix:
    """Each class counted once more, so that none has probability 0."""
    more: NDArray[Any] = counts + 1.0
    totals = np.nansum(more, axis=1, keepdims=True)
    shares: Matrix = np.divide(more, totals, out=np.full_like(more, np.nan), where=totals > 0.0)
    return shares
