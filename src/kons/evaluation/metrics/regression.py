"""Metrics of numbers."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from kons.arrays import Vector
from kons.evaluation.metrics.base import Filled, MeanMetric, Metric, Rows, Total
from kons.state import Count, Inner, Number, fields

__all__ = ["MAE", "MSE", "R2", "RMSE", "MedianAbsoluteError"]

# Of the histogram of errors.
BINS = 1 << 16


class MSE(MeanMetric):
    """Mean squared error, ``mean (y - p)^2``."""

    name: ClassVar[str] = "mse"
    task: ClassVar[str] = "regression"

    @classmethod
    def each(cls, rows: Rows) -> Vector:
        """The squared error of each row."""
        error = rows.target - rows.prediction
        return np.asarray(error * error)


class RMSE(MSE):
    """Root mean squared error, ``sqrt(mean (y - p)^2)``: in the units of the target."""

    name = "rmse"

    @property
    def value(self) -> float:
        """Over all rows so far."""
        return math.sqrt(super().value)


class MAE(MeanMetric):
    """Mean absolute error, ``mean |y - p|``: a few wild rows count less than in RMSE."""

    name: ClassVar[str] = "mae"
    task: ClassVar[str] = "regression"

    @classmethod
    def each(cls, rows: Rows) -> Vector:
        """The absolute error of each row."""
        return np.asarray(np.abs(rows.target - rows.prediction))


class MedianAbsoluteError(Metric):
    """The median of ``|y - p|``: half of the predictions are nearer. What a prediction is typically off by.

    Over given rows it is exact. Running, it is read from a histogram with 32 bins from each power of two to
    the next, even within a bin: off by at most 3 %, in constant memory.
    """

    name: ClassVar[str] = "medae"
    task: ClassVar[str] = "regression"
    STATE = fields(_counts=Filled(BINS, written="always"))

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, dtype=np.int64)

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        errors = np.ascontiguousarray(MAE.each(rows), dtype=np.float64)
        # The sign, which is 0, the exponent and five digits: 16 bits, that rise with the number.
        bins = (errors.view(np.uint64) >> np.uint64(47)).astype(np.int64)
        np.add.at(self._counts, bins, 1)

    @property
    def value(self) -> float:
        """Over all rows so far, to within 3 %."""
        sums = np.cumsum(self._counts)
        if not sums[-1]:
            return math.nan
        half = 0.5 * float(sums[-1])
        place = int(np.searchsorted(sums, half))
        low, high = (np.array([place, place + 1], dtype=np.uint64) << np.uint64(47)).view(np.float64).tolist()
        part = (half - float(sums[place] - self._counts[place])) / float(self._counts[place])
        return float(low + part * (high - low)) if place else 0.0

    @classmethod
    def over(cls, rows: Rows) -> float:
        """Over these rows alone, exactly."""
        errors = MAE.each(rows)
        half = len(errors) // 2
        if not len(errors) or math.isnan(errors.sum()):
            return math.nan
        low = half if len(errors) % 2 else half - 1
        middle = np.partition(errors, (low, half))
        return float(middle[low] + middle[half]) / 2.0


class R2(Metric):
    """``1 - sum (y - p)^2 / sum (y - mean y)^2``: 1 is perfect, 0 no better than the mean in hindsight.

    The mean and the spread of the targets are merged from block to block around the mean (Chan, Golub,
    LeVeque), so that targets of 1e9 + noise are as good as any.
    """

    name: ClassVar[str] = "r2"
    task: ClassVar[str] = "regression"
    STATE = fields(_residual=Inner(), _spread=Inner(), _mean=Number(), _rows=Count())

    def __init__(self) -> None:
        self._residual = Total()
        self._rows = 0
        self._mean = 0.0
        self._spread = Total()

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        n = len(rows.target)
        if n == 0:
            return
        self._residual.add(float(MSE.each(rows).sum()))
        mean, squares = _around_mean(rows.target)
        shift, whole = mean - self._mean, self._rows + n
        self._spread.add(squares + shift * shift * (self._rows * n / whole))
        self._mean += shift * (n / whole)
        self._rows = whole

    @property
    def variance(self) -> float:
        """Of the targets: the mean squared error of their mean."""
        return self._spread.value / self._rows if self._rows else math.nan

    @property
    def value(self) -> float:
        """Over all rows so far; NaN if the targets are all equal."""
        spread = self._spread.value
        return 1.0 - self._residual.value / spread if spread > 0.0 else math.nan

    @classmethod
    def over(cls, rows: Rows) -> float:
        """Over these rows alone."""
        spread = _around_mean(rows.target)[1] if len(rows.target) else 0.0
        return 1.0 - float(MSE.each(rows).sum()) / spread if spread > 0.0 else math.nan


def _around_mean(target: Vector) -> tuple[float, float]:
    """The mean, and the sum of squares around it, in two passes from a first guess."""
    around = target - target[0]
    mean = float(around.sum()) / len(target)
    around -= mean
    return float(target[0]) + mean, float(around @ around)
