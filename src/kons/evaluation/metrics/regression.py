"""Metrics of numbers."""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Vector
from kons.evaluation.metrics.base import MeanMetric, Metric, Rows, Total
from kons.state import Count, Inner, Number, fields

__all__ = ["MAE", "MSE", "R2", "RMSE"]


class MSE(MeanMetric):
    """Mean squared error, ``mean (y - p)^2``."""

    name, task = "mse", "regression"

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

    name, task = "mae", "regression"

    @classmethod
    def each(cls, rows: Rows) -> Vector:
        """The absolute error of each row."""
        return np.asarray(np.abs(rows.target - rows.prediction))


class R2(Metric):
    """``1 - sum (y - p)^2 / sum (y - mean y)^2``: 1 is perfect, 0 no better than the mean in hindsight.

    The mean and the spread of the targets are merged from block to block around the mean (Chan, Golub,
    LeVeque), so that targets of 1e9 + noise are as good as any.
    """

    name, task = "r2", "regression"
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
        # Around the mean, in two passes from a first guess.
        around = rows.target - rows.target[0]
        mean = float(around.sum()) / n
        around -= mean
        shift, whole = float(rows.target[0]) + mean - self._mean, self._rows + n
        self._spread.add(float(around @ around) + shift * shift * (self._rows * n / whole))
        self._mean += shift * (n / whole)
        self._rows = whole

    @property
    def value(self) -> float:
        """Over all rows so far; NaN if the targets are all equal."""
        spread = self._spread.value
        return 1.0 - self._residual.value / spread if spread > 0.0 else math.nan
