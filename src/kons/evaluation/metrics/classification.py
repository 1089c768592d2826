"""Metrics of labels and their probabilities."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.evaluation.metrics.base import Filled, MeanMetric, Metric, Rows
from kons.state import Count, Flag, Whole, fields

__all__ = ["AUC", "F1", "AveragePrecision", "ErrorRate", "LogLoss", "Precision", "Recall"]

# The least probability that a logarithm is taken of: that of scikit-learn.
SMALLEST = float(np.finfo(np.float64).eps)
# Bins of the running AUC, even in log-odds from -20 to 20.
BINS = 8192
LOG_ODDS = 20.0


class ErrorRate(MeanMetric):
    """The share of rows whose label was not the one predicted."""

    name: ClassVar[str] = "error_rate"
    task: ClassVar[str] = "classification"

    @classmethod
    def each(cls, rows: Rows) -> Vector:
        """1 where the label is wrong, else 0."""
        return np.asarray(rows.target != rows.prediction, dtype=np.float64)


class LogLoss(MeanMetric):
    """``mean -log P(true label)``, in nats; a probability below 2.2e-16 counts as that.

    So does a label that was not known yet when it came: each new label costs 36 once.
    """

    name: ClassVar[str] = "log_loss"
    task: ClassVar[str] = "classification"

    @classmethod
    def each(cls, rows: Rows) -> Vector:
        """The loss of each row."""
        if rows.truth is None:
            return np.full(len(rows.target), math.nan)
        return -np.log(np.maximum(rows.truth, SMALLEST))


class AUC(Metric):
    """The probability that a positive scores above a negative, ties counting half; for two classes.

    ::

        AUC = sum over pairs of [score_positive > score_negative] + 1/2 [equal]  /  (positives * negatives)

    Over given rows it is exact, by ranks. Running, it is read from two histograms of the scores with 8,192
    bins, even in log-odds: memory is constant, and pairs in one bin count as ties, so that the value is off
    by at most :attr:`error`, half the share of such pairs. Once a third class came it is NaN.
    """

    name: ClassVar[str] = "auc"
    task: ClassVar[str] = "classification"
    STATE = fields(_counts=Filled(2, BINS + 1, written="always"), _many_classes=Flag())

    def __init__(self) -> None:
        # Scores of the rows with code 0 and with code 1.
        self._counts = np.zeros((2, BINS + 1), dtype=np.int64)
        self._many_classes = False

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        self._many_classes = self._many_classes or rows.classes > 2
        if rows.score is None or self._many_classes:
            return
        codes, bins = rows.target.astype(np.int64), _bins(rows.score)
        self._counts += np.bincount(codes * (BINS + 1) + bins, minlength=2 * (BINS + 1)).reshape(2, -1)

    @property
    def value(self) -> float:
        """Over all rows so far, to within :attr:`error`."""
        pairs = self._pairs
        if pairs == 0 or self._many_classes:
            return math.nan
        negative, positive = self._counts
        below = np.cumsum(negative) - negative
        return float(positive @ (below + 0.5 * negative)) / pairs

    @property
    def error(self) -> float:
        """How far :attr:`value` can be from the exact one."""
        pairs = self._pairs
        same = float(self._counts[0].astype(np.float64) @ self._counts[1])
        return 0.5 * same / pairs if pairs and not self._many_classes else math.nan

    @property
    def _pairs(self) -> int:
        return int(self._counts[0].sum()) * int(self._counts[1].sum())

    @classmethod
    def over(cls, rows: Rows) -> float:
        """Over these rows alone, exactly."""
        if rows.score is None or rows.classes > 2:
            return math.nan
        positive = rows.target == 1
        scores = np.sort(rows.score[~positive])
        asked = rows.score[positive]
        if len(scores) == 0 or len(asked) == 0:
            return math.nan
        asked = np.sort(asked)  # sorted needles are found several times faster
        below = np.searchsorted(scores, asked, "left").sum() + np.searchsorted(scores, asked, "right").sum()
        return float(below) / (2.0 * len(scores) * len(asked))


def _bins(score: Vector) -> NDArray[np.int64]:
    """The bin of each score in [0, 1], even in log-odds; NaN counts as 0."""
    score = np.clip(np.nan_to_num(score), 1e-300, 1.0 - 1e-16)
    odds = np.log(score) - np.log1p(-score)
    position = (odds + LOG_ODDS) * (BINS / (2.0 * LOG_ODDS))
    return np.rint(np.clip(position, 0, BINS)).astype(np.int64)


class AveragePrecision(AUC):
    """The mean precision over the positive rows, each at the score that it has; for two classes.

    ::

        AP = sum over thresholds of  (recall - recall at the next higher threshold) * precision

    Where one label is rare it says more than AUC: a worthless score has the share of positive rows. The
    positive label is :attr:`Rows.positive`. Exact over given rows; running, scores in one of 8,192 bins
    share a threshold. Once a third class came it is NaN.
    """

    name = "average_precision"
    STATE = fields(_positive=Count(at_most=1))

    def __init__(self) -> None:
        super().__init__()
        self._positive = 1

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        super().update(rows)
        self._positive = rows.positive

    @property
    def value(self) -> float:
        """Over all rows so far."""
        if self._pairs == 0 or self._many_classes:
            return math.nan
        negative, positive = self._counts if self._positive == 1 else self._counts[::-1, ::-1]
        return _average_precision(positive[::-1], negative[::-1])

    @classmethod
    def over(cls, rows: Rows) -> float:
        """Over these rows alone, exactly."""
        if rows.score is None or rows.classes > 2:
            return math.nan
        positive = rows.target == rows.positive
        if positive.all() or not positive.any():
            return math.nan
        scores = rows.score if rows.positive == 1 else -rows.score
        _, places = np.unique(-scores, return_inverse=True)
        return _average_precision(np.bincount(places, positive), np.bincount(places, ~positive))


def _average_precision(positive: NDArray[Any], negative: NDArray[Any]) -> float:
    """Of counts by threshold, the highest score first."""
    right = np.cumsum(positive)
    found = right + np.cumsum(negative)
    return float(positive @ (right / np.maximum(found, 1)) / right[-1])


class _OfLabels(Metric):
    """What counts right, predicted and came of each label: of the positive one, or the mean over them."""

    task: ClassVar[str] = "classification"
    STATE = fields(_counts=Whole(3, None), _positive=Count(at_most=1))
    parts: ClassVar[tuple[float, float]]
    """What the number of right rows is divided by: so much of those predicted, and of those that came."""

    def __init__(self) -> None:
        # Rows: right, predicted, came; a column per label.
        self._counts = np.zeros((3, 2), dtype=np.int64)
        self._positive = 1

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        target, prediction = rows.target.astype(np.int64), rows.prediction.astype(np.int64)
        known = self._counts.shape[1]
        width = max(rows.classes, known, target.max(initial=0) + 1, prediction.max(initial=0) + 1)
        parts = (target[target == prediction], prediction[prediction >= 0], target)
        counts = np.stack([np.bincount(part, minlength=width) for part in parts]).astype(np.int64)
        counts[:, :known] += self._counts
        self._counts, self._positive = counts, rows.positive

    @property
    def value(self) -> float:
        """Over all rows so far."""
        right, predicted, came = self._counts
        there = predicted + came > 0
        if len(came) == 2:
            there = there & (np.arange(2) == self._positive)
        below = self.parts[0] * predicted[there] + self.parts[1] * came[there]
        if not there.any() or (len(came) == 2 and not below.any()):
            return math.nan
        return float(np.mean(right[there] / np.maximum(below, 0.5)))


class F1(_OfLabels):
    """``2 tp/(2 tp + fp + fn)``: of the positive label for two classes, else the mean over the labels.

    The positive label is :attr:`Rows.positive`; along a stream the rarer one, if no other is asked for. With
    three classes or more, labels that neither came nor were predicted do not count. NaN where no positive
    came and none was predicted.
    """

    name: ClassVar[str] = "f1"
    parts: ClassVar[tuple[float, float]] = (0.5, 0.5)


class Precision(_OfLabels):
    """``tp/(tp + fp)``: of the rows predicted to be of the positive label, those that were; as :class:`F1`.

    NaN while none was predicted; with three classes or more such a label counts 0.
    """

    name: ClassVar[str] = "precision"
    parts: ClassVar[tuple[float, float]] = (1.0, 0.0)


class Recall(_OfLabels):
    """``tp/(tp + fn)``: of the rows of the positive label, those that were found; as :class:`F1`.

    NaN while none came; with three classes or more such a label counts 0.
    """

    name: ClassVar[str] = "recall"
    parts: ClassVar[tuple[float, float]] = (0.0, 1.0)
