"""From scores to probabilities, learned as rows come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled
from kons.state import Array, Part, fields

__all__ = ["Calibration", "learn_logit"]

# The prior of slope and intercept: a score of 1 means odds of e^4, with the weight of some ten rows.
START = (4.0, 0.0)
PRIOR = (0.1, 1.0)
FORGETTING = 0.9995


class Calibration(Part):
    """Logistic regression of "the row is of the class" on the class's score, one slope and intercept for all.

    ::

        p = 1/(1 + exp(-(a s + b))),    (a, b) by the second-order step of the logistic loss, with forgetting

    O(1) a row and class. The intercept moves the threshold; the order of scores is kept. Not for scores
    whose meaning changes faster than some hundred rows.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> s = random.uniform(-1, 1, size=(4000, 1))
    >>> y = (random.uniform(size=s.shape) < 1 / (1 + np.exp(-2.0 * s - 0.5))).astype(float)
    >>> calibration = Calibration()
    >>> logits = calibration.advance(s, s, y)
    >>> (abs(calibration.coefficients - [2.0, 0.5]) < 0.3).tolist()
    [True, True]
    """

    STATE = fields(coefficients=Array(2), curvature=Array(2, 2))

    def __init__(self) -> None:
        self.coefficients: Vector = np.array(START)
        self.curvature: Matrix = np.diag(PRIOR)

    def advance(
        self,
        scores: Matrix,
        learned: Matrix,
        Y: Matrix,
        known: NDArray[np.int64] | None = None,
        classes: NDArray[np.int64] | None = None,
    ) -> Matrix:
        """Logits of scores (rows, classes).

        Learn Y, 0 or 1, from the scores ``learned``, as in Aggregation; of each learned row only the first
        ``classes``, those that are known by then.
        """
        known = np.arange(len(scores)) if known is None else known
        logits = np.empty(scores.shape)
        arrays = self.coefficients.copy(), self.curvature.copy()
        classes = np.full(len(Y), Y.shape[1]) if classes is None else classes
        _follow(scores, learned, Y, known, classes, *arrays, logits)
        self.coefficients, self.curvature = arrays
        return logits

    def logits(self, scores: Matrix) -> Matrix:
        """The logits of scores by what was learned. Changes nothing."""
        logits: Matrix = self.coefficients[0] * scores + self.coefficients[1]
        return logits


@compiled
def _follow(
    scores: Matrix,
    learned: Matrix,
    Y: Matrix,
    known: Integers,
    classes: Integers,
    w: Vector,
    H: Matrix,
    logits: Matrix,
) -> None:
    at = 0
    for t in range(len(scores) + 1):
        until = known[t] if t < len(scores) else len(Y)
        while at < until:
            for k in range(classes[at]):
                learn_logit(learned[at, k], Y[at, k], w, H)
            at += 1
        if t < len(scores):
            for k in range(scores.shape[1]):
                logits[t, k] = w[0] * scores[t, k] + w[1]


@compiled
def learn_logit(s: float, y: float, w: Vector, H: Matrix) -> None:
    """One score, and whether the row is of its class."""
    logit = w[0] * s + w[1]
    p = 1.0 / (1.0 + np.exp(-min(max(logit, -30.0), 30.0)))
    g, h = p - y, max(p * (1.0 - p), 1e-3)
    # Towards the prior's curvature, so that it stays away from 0.
    H[0, 0] = FORGETTING * H[0, 0] + (1.0 - FORGETTING) * 0.1 + h * s * s
    H[0, 1] = FORGETTING * H[0, 1] + h * s
    H[1, 1] = FORGETTING * H[1, 1] + (1.0 - FORGETTING) + h
    H[1, 0] = H[0, 1]
    determinant = H[0, 0] * H[1, 1] - H[0, 1] * H[0, 1]
    w[0] -= g * (H[1, 1] * s - H[0, 1]) / determinant
    w[1] -= g * (H[0, 0] - H[0, 1] * s) / determinant
    w[0] = max(w[0], 0.5)  # a higher score never means a smaller probability
