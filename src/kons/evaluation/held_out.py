"""Figures of predictions by a model that learned none of these rows before it was asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.evaluation.metrics import R2, Metric, Rows, make_metrics
from kons.learners.labels import KnownLabels, Labels
from kons.state import Count, Inner, Inners, Part, Whole, fields

__all__ = ["HeldOut", "by_code", "code_of_text"]


class HeldOut(Part):
    """Metrics of rows with what was predicted for them; memory is constant.

    >>> import numpy as np
    >>> figures = HeldOut("regression")
    >>> figures.record(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 4.0]))
    >>> figures.rows, round(figures.loss, 3), round(figures.constant, 3)
    (3, 0.083, 1.556)
    """

    STATE = fields(
        rows=Count(),
        metrics=Inners(),
        _spread=Inner(),
        _labels=KnownLabels(),
        _came=Whole(None),
    )

    def __init__(self, task: str, names: Iterable[str] | None = None, positive: str | None = None) -> None:
        self.task = task
        self.asked_positive = positive
        self.rows: int = 0
        self.metrics: list[Metric] = make_metrics(task, names)
        self._spread = R2()
        self._labels = Labels()
        self._came: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def record(
        self,
        y: NDArray[Any],
        prediction: NDArray[Any],
        probabilities: Matrix | None = None,
        classes: Sequence[Any] = (),
    ) -> None:
        """Count rows in; of labels ``probabilities`` has a column for each of ``classes``."""
        if not len(y):
            return
        self.rows += len(y)
        if self.task == "regression":
            rows = Rows(y, prediction)
            self._spread.update(rows)
        else:
            codes = self._labels.learn(y)
            self._came = np.bincount(codes, minlength=len(self._labels)) + np.pad(
                self._came, (0, len(self._labels) - len(self._came))
            )
            guessed = self._labels.find(prediction)
            truth = score = None
            if probabilities is not None:
                table = by_code(probabilities, classes, self._labels)
                truth, score = table[np.arange(len(y)), codes], table[:, 1]
            many = max(len(self._labels), 2)
            rows = Rows(codes, guessed, truth, score, self._positive_code, many)
        for metric in self.metrics:
            metric.update(rows)

    @property
    def positive(self) -> Any:
        """The label that precision, recall and F1 are about; None where there are not two.

        The one asked for by its text; else the rarer of the two, of equals the later one.
        """
        return self._labels.known[self._positive_code] if len(self._labels) == 2 else None

    @property
    def _positive_code(self) -> int:
        asked = code_of_text(self.asked_positive, self._labels)
        if asked is not None:
            return asked
        return 0 if len(self._came) > 1 and self._came[0] < self._came[1] else 1

    @property
    def loss(self) -> float:
        """The mean squared error, or the share of wrong labels."""
        name = "mse" if self.task == "regression" else "error_rate"
        return next((metric.value for metric in self.metrics if metric.name == name), math.nan)

    @property
    def constant(self) -> float:
        """The same of the best constant in hindsight: the mean of these targets, or their commonest label."""
        if not self.rows:
            return math.nan
        if self.task == "regression":
            return self._spread.variance
        return 1.0 - float(self._came.max()) / self.rows

    def figures(self) -> dict[str, float]:
        """The metrics by name; NaN where one is not defined."""
        return {metric.name: metric.value for metric in self.metrics}


def code_of_text(text: str | None, labels: Labels) -> int | None:
    """The code of the label that reads so, among the first two."""
    texts = [str(label) for label in labels.known[:2]]
    return texts.index(text) if text in texts else None


def by_code(probabilities: Matrix, classes: Sequence[Any], labels: Labels) -> Matrix:
    """Probabilities of a learner's ``classes``, by codes of labels: 0 of one it does not know, and of -1."""
    table = np.column_stack([probabilities, np.zeros(len(probabilities))])
    places = Labels(classes[: probabilities.shape[1]]).find([*labels.known, None])
    placed: Matrix = table[:, places]
    return placed
