"""From scores to probabilities, learned as rows come."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled, inlined, inner
from kons.core.quadratic_loops import STEPS, end_period, keep_row, predict_row
from kons.core.sequential import RowArrays, Sequential
from kons.learners.auto.logistic import FARTHEST, LEAST_CURVATURE
from kons.learners.auto.stacking import FORGETTING
from kons.state import Inner, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["NO_LESS", "Calibration", "learn_logit", "log_odds"]

# Slope and intercept start where scores are the probabilities, with the weight of some rows in doubt.
SLOPE, PRIOR = 1.0, (1.0, 1.0)
# Scores of 0 and 1, which are estimates, too, stand for odds of one to a hundred where no class is rare.
NO_LESS = 0.01


class Calibration(Part):
    """Logistic regression of "the row is of the class" on the class's score, one slope and intercept for all.

    ::

        p = 1/(1 + exp(-(a z + b))),    z = log((s + e)/(1 - s + e)),    s the score, in [0, 1]

    with e = 0.01 and (a, b) by the second-order step of the logistic loss. Scores are nearly probabilities,
    so that in their log odds a hardly moves from 1: a rare class, whose scores are all near 0, is ranked
    alike early and late. It forgets by 0.05 % with each score that it learns, towards where it starts.
    O(1) a row and class. The intercept moves the threshold; the order of scores is kept, for which the slope
    is kept above a half after each step: a constraint, which the quadratic itself does not know. Not for
    scores whose meaning changes faster than some hundred rows.

    Where a class is rare, few rows tell about a and b, and each would move all that come after it: their
    prior is r^1.5 times as large, r the rarity, and e smaller by r^0.5, for there the scores of its rows are.

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> s = random.uniform(0, 1, size=(4000, 1))
    >>> y = (random.uniform(size=s.shape) < 1 / (1 + 0.6 * ((1.01 - s) / (0.01 + s)) ** 2)).astype(float)
    >>> calibration = Calibration()
    >>> logits = calibration.advance(s, s, y)
    >>> (abs(calibration.coefficients - [2.0, 0.5]) < 0.3).tolist()
    [True, True]
    """

    STATE = fields(rarity=Number(at_least=1.0), moved=Inner())

    def __init__(self) -> None:
        #: How many times as much the prior weighs.
        self.rarity: float = 1.0
        #: By how much slope and intercept have moved from where they start.
        self.moved: Sequential = Sequential(np.diag(PRIOR))

    @property
    def coefficients(self) -> Vector:
        """Slope and intercept."""
        return self.moved.u[:, 0] + (SLOPE, 0.0)

    @property
    def least(self) -> float:
        """What is added to scores and to their distance from 1."""
        return NO_LESS / math.sqrt(self.rarity)

    def advance(
        self,
        scores: Matrix,
        learned: Matrix,
        Y: Matrix,
        known: NDArray[np.int64] | None = None,
        classes: NDArray[np.int64] | None = None,
    ) -> Matrix:
        """Logits of scores (rows, classes), from 0 to 1.

        Learn Y, 0 or 1, from the scores ``learned``, as in Stacking; of each learned row only the first
        ``classes``, those that are known by then.
        """
        known = np.arange(len(scores)) if known is None else known
        logits = np.empty(scores.shape)
        classes = np.full(len(Y), Y.shape[1]) if classes is None else classes
        state, work = self.moved.arrays(), self.moved.room_for_row()
        _follow(scores, learned, Y, known, classes, self.least, state, work, logits)
        return logits

    def logits(self, scores: Matrix) -> Matrix:
        """The logits of scores by what was learned. Changes nothing."""
        slope, intercept = self.coefficients
        logits: Matrix = slope * np.log((scores + self.least) / (1.0 - scores + self.least)) + intercept
        return logits

    def end_chunk(self, rarity: float) -> None:
        """Take the prior from how rare classes are."""
        if rarity != self.rarity:
            self.rarity = rarity
            self.moved.change_prior(self._prior())

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self.moved.prior = self._prior()

    def _prior(self) -> Matrix:
        return self.rarity * math.sqrt(self.rarity) * np.diag(PRIOR)


@inner
def log_odds(score: float, least: float) -> float:
    """Of a score from 0 to 1."""
    return math.log((score + least) / (1.0 - score + least))


@compiled
def _follow(
    scores: Matrix,
    learned: Matrix,
    Y: Matrix,
    known: Integers,
    classes: Integers,
    least: float,
    state: RowArrays,
    work: Vector,
    logits: Matrix,
) -> None:
    _, _, L, base, _, _, _, _ = state
    at = 0
    for t in range(len(scores) + 1):
        until = known[t] if t < len(scores) else len(Y)
        while at < until:
            for k in range(classes[at]):
                learn_logit(learned[at, k], Y[at, k], least, state, work)
            at += 1
        if t < len(scores):
            intercept = base[1, 0] / L[1, 1]
            slope = SLOPE + (base[0, 0] - L[1, 0] * intercept) / L[0, 0]
            for k in range(scores.shape[1]):
                logits[t, k] = slope * log_odds(scores[t, k], least) + intercept


@inlined
def learn_logit(
    score: float,
    y: float,
    least: float,
    state: RowArrays,
    work: Vector,
) -> None:
    """One score, and whether the row is of its class: a period of one row, so that L^T u is at hand."""
    prior, S, L, base, Z, V, C, marks = state
    z = log_odds(score, least)
    work[0], work[1] = z, 1.0
    predict_row(len(L), L, base, V, C, marks, 0, work)
    logit = SLOPE * z + work[-2]
    p = 1.0 / (1.0 + math.exp(-min(max(logit, -FARTHEST), FARTHEST)))
    curvature = max(p * (1.0 - p), LEAST_CURVATURE)
    keep_row(1.0, curvature, V, C, marks, 0, work)
    Z[0, 0], Z[0, 1] = z, 1.0
    marks[0, STEPS] = (p - y) / (1.0 + curvature * work[-1])
    end_period(prior, S, L, base, Z, V, C, marks, 1, FORGETTING)
    intercept = base[1, 0] / L[1, 1]
    # A higher score never means a smaller probability, nor one hardly larger: a slope of at least 0.5.
    least = L[0, 0] * (0.5 - SLOPE) + L[1, 0] * intercept
    base[0, 0] = max(base[0, 0], least)  # L^T u, where the slope is at its bound
