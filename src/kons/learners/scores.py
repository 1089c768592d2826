"""From the scores of classes to labels and probabilities, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.losses import Logistic, Loss

__all__ = ["OfLabels", "best_of", "probabilities_of", "scores_of"]


class OfLabels:
    """What is asked of a learner of labels, made of ``decision_function``, ``classes`` and its loss."""

    loss: Any
    classes: Any
    decision_function: Any
    _scores_of_one: Any

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, columns in the order of :attr:`classes`.

        The logistic loss gives 1/(1 + exp(-score)); other losses, whose score estimates the mean of a
        target -1 or +1, (1 + score)/2 within 0 and 1. Each row is divided by its sum; where that is 0, all
        classes are alike. In a warm-up, the shares of the classes so far.
        """
        return self.probabilities(self.decision_function(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class of one row; empty before any class is known."""
        shares = self.probabilities(self._scores_of_one(x))[0]
        return dict(zip(self.classes, shares.tolist(), strict=True))

    def probabilities(self, scores: Matrix) -> Matrix:
        """What :meth:`predict_proba` makes of scores; 0 where a score is NaN."""
        return probabilities_of(scores, self.loss)


def best_of(scores: Matrix) -> NDArray[np.intp]:
    """The column of the highest score in each row, -1 where all are NaN."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    best: NDArray[np.intp] = np.argmax(known, axis=1)
    best[np.isnan(scores).all(axis=1)] = -1
    return best


def probabilities_of(scores: Matrix, loss: Loss | None) -> Matrix:
    """Each row of scores as probabilities of the classes."""
    p = np.clip(0.5 + 0.5 * scores, 0.0, 1.0)
    if isinstance(loss, Logistic):
        small = np.exp(-np.abs(scores))  # of a negative number only: no overflow
        p = np.where(scores > 0.0, 1.0, small) / (1.0 + small)
    known = ~np.isnan(scores)
    p[~known] = 0.0
    totals = p.sum(axis=1, keepdims=True)
    alike = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    probabilities: Matrix = np.divide(p, totals, out=alike, where=totals > 0.0)
    return probabilities


def scores_of(probabilities: Matrix, loss: Loss | None, bound: float) -> Matrix:
    """The scores within the bound that stand for these probabilities."""
    if isinstance(loss, Logistic):
        with np.errstate(divide="ignore"):
            scores = np.log(probabilities) - np.log1p(-probabilities)
    else:
        scores = 2.0 * probabilities - 1.0
    clipped: Matrix = np.clip(scores, -bound, bound)
    return clipped
