"""The trivial predictors that a kernel learner must beat, with the verbs of a learner.

=================  ======================================  ====================  ===========
baseline           predicts                                what it shows         a row costs
=================  ======================================  ====================  ===========
``RunningMean``    the mean of the targets so far          the target's spread   O(1)
``Persistence``    the last target                         the order's worth     O(1)
``OnlineLinear``   the Vovk-Azoury-Warmuth forecast        the linear part       O(d^2)
=================  ======================================  ====================  ===========

All are for the squared loss, and predict 0 before the first target. A kernel learner that does not
beat all three has not earned its cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sized
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector, as_points, as_row, as_scalar, as_targets, require_number
from kons.compilation import compiled
from kons.errors import InputError
from kons.learners import Trace

__all__ = ["Baseline", "OnlineLinear", "Persistence", "RunningMean"]


class Baseline(ABC):
    """Predict, then learn, each row in order; what all baselines share.

    A subclass plays a stretch of rows and says what it would predict next. One row is a stretch of
    one: blocks of any size give the same predictions. A call that raises changes nothing.
    """

    def __init__(self) -> None:
        self._rows_seen = 0

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self._rows_seen

    def advance(self, X: Any, y: Any) -> Trace:
        """Predict, then learn, each row of X in order. Keeps no points: ``size`` stays 0."""
        points = self._as_points(X)
        rows = len(points)
        targets = as_targets(y, rows)
        prediction = self._play(points, targets)
        self._rows_seen += rows
        return Trace(
            kept=np.zeros(rows, dtype=np.bool_),
            size=np.zeros(rows, dtype=np.int64),
            prediction=prediction,
            loss=(prediction - targets) ** 2,
            slope=2.0 * (prediction - targets),
        )

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row."""
        points, target = self._as_point(x), as_scalar(y, name="y")
        self._play(points, np.array([target]))
        self._rows_seen += 1

    def predict(self, X: Any) -> Vector:
        """What would be predicted for each row if it came next. Changes nothing."""
        return self._foresee(self._as_points(X))

    def predict_one(self, x: Any) -> float:
        """What would be predicted for one row if it came next. Changes nothing."""
        return float(self._foresee(self._as_point(x))[0])

    @abstractmethod
    def _play(self, points: Sized, targets: Vector) -> Vector:
        """The predictions of the rows, each made before its target was learned."""

    @abstractmethod
    def _foresee(self, points: Sized) -> Vector:
        """The prediction of each row from what is known now."""

    def _as_points(self, X: Any) -> Sized:
        """The features are not looked at, so they may be anything: only their number counts."""
        if not isinstance(X, Sized) or len(X) == 0:
            raise InputError(f"X is {X!r}, expected a sequence of at least one row.")
        return X

    def _as_point(self, x: Any) -> Sized:
        return (x,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RunningMean(Baseline):
    """Predict the mean of all targets so far: the best constant, followed online.

    ::

        y_hat_t = (y_1 + ... + y_(t-1)) / (t - 1),          y_hat_1 = 0

    Its loss tends to the variance of the targets: 1 - loss/loss of this baseline is R^2. Costs O(1)
    a row. Says little where the level drifts: there, look at :class:`Persistence`.

    >>> from kons.evaluation import RunningMean
    >>> RunningMean().advance([[0.0]] * 4, [1.0, 3.0, 2.0, 0.0]).prediction.tolist()
    [0.0, 1.0, 2.0, 2.0]
    """

    def __init__(self) -> None:
        super().__init__()
        self._sum = 0.0

    def _play(self, points: Sized, targets: Vector) -> Vector:
        sums = np.cumsum(np.concatenate([[self._sum], targets]))
        counts = np.arange(self._rows_seen, self._rows_seen + len(targets))
        self._sum = float(sums[-1])
        return np.asarray(sums[:-1] / np.maximum(counts, 1), dtype=np.float64)

    def _foresee(self, points: Sized) -> Vector:
        return np.full(len(points), self._sum / max(self._rows_seen, 1))


class Persistence(Baseline):
    """Predict the last target again: nothing changes.

    ::

        y_hat_t = y_(t-1),          y_hat_1 = 0

    Hard to beat on slow series. Costs O(1) a row. Meaningless if the order of the rows is: its loss is
    then twice the variance. It assumes that the last target is known when the next row comes.

    >>> from kons.evaluation import Persistence
    >>> Persistence().advance([[0.0]] * 3, [1.0, 3.0, 2.0]).prediction.tolist()
    [0.0, 1.0, 3.0]
    """

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0

    def _play(self, points: Sized, targets: Vector) -> Vector:
        prediction = np.concatenate([[self._last], targets[:-1]])
        self._last = float(targets[-1])
        return prediction

    def _foresee(self, points: Sized) -> Vector:
        return np.full(len(points), self._last)


class OnlineLinear(Baseline):
    """The Vovk-Azoury-Warmuth forecaster: linear regression that counts the row it predicts.

    ::

        A_t = regularization * I + sum_(s <= t) x_s x_s^T        the current x is already inside
        b_t = sum_(s <= t) y_s x_s
        y_hat_t = x_t^T A_t^-1 b_(t-1)                           x carries a last feature 1

    With targets in [-C, C] and |x| <= R, its regret against any linear u is at most
    regularization*|u|^2 + d C^2 log(1 + T R^2/(regularization d)), with no bound on the predictions and
    nothing to tune. The inverse is kept by rank-one updates, so that a row costs O(d^2).

    Do not use it with features of very different scales, which the one regularization treats alike,
    nor with more than some hundred features.

    Parameters
    ----------
    regularization:
        The weight of |u|^2, the bias included.
    bound:
        None, or C: predictions are clipped to [-C, C], which can only help where the targets lie
        inside, and makes the comparison with a clipped learner fair. What is learned is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.evaluation import OnlineLinear
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> baseline = OnlineLinear(regularization=0.1)
    >>> trace = baseline.advance(X, X @ [1.0, -2.0, 0.5] + 3.0)
    >>> bool(trace.loss[-100:].mean() < 1e-2)
    True
    >>> baseline.coefficients.round(2).tolist()
    [1.0, -2.0, 0.5, 3.0]

    References
    ----------
    Vovk: Competitive on-line statistics, International Statistical Review 69, 2001.
    Azoury, Warmuth: Relative loss bounds for on-line density estimation, Machine Learning 43, 2001.
    """

    def __init__(self, regularization: float = 0.1, bound: float | None = None) -> None:
        super().__init__()
        self.regularization = require_number(regularization, "regularization", above=0.0)
        self.bound = None if bound is None else require_number(bound, "bound", above=0.0)
        self._width: int | None = None
        self._inverse = np.empty((0, 0))
        self._coefficients = np.empty(0)

    @property
    def coefficients(self) -> Vector:
        """``A^-1 b``: one number per feature, then the bias. Empty before the first row. A copy."""
        return self._coefficients.copy()

    def _play(self, points: Sized, targets: Vector) -> Vector:
        Z = _with_bias(points)
        if self._width is None:
            self._width = Z.shape[1] - 1
            self._inverse = np.eye(Z.shape[1]) / self.regularization
            self._coefficients = np.zeros(Z.shape[1])
        return self._clip(_forward(self._inverse, self._coefficients, Z, targets))

    def _foresee(self, points: Sized) -> Vector:
        if self._width is None:
            return np.zeros(len(points))
        Z = _with_bias(points)
        mass = np.einsum("ni,ij,nj->n", Z, self._inverse, Z)
        return self._clip(Z @ self._coefficients / (1.0 + mass))

    def _clip(self, prediction: Vector) -> Vector:
        return prediction if self.bound is None else np.clip(prediction, -self.bound, self.bound)

    def _as_points(self, X: Any) -> Sized:
        return as_points(X, width=self._width)

    def _as_point(self, x: Any) -> Sized:
        return as_row(x, width=self._width)

    def __repr__(self) -> str:
        return f"OnlineLinear(regularization={self.regularization!r}, bound={self.bound!r})"


def _with_bias(points: Any) -> Matrix:
    return np.column_stack([points, np.ones(len(points))])


@compiled
def _forward(inverse: Matrix, coefficients: Vector, Z: Matrix, targets: Vector) -> Vector:
    """Play rows through ``inverse`` = A^-1 and ``coefficients`` = A^-1 b, both changed in place.

    With v = A^-1 z and s = z^T v, Sherman and Morrison give

        z^T (A + z z^T)^-1 b = z^T coefficients / (1 + s)
        (A + z z^T)^-1       = A^-1 - v v^T / (1 + s)
        A_t^-1 b_t           = coefficients + v (y - z^T coefficients) / (1 + s)
    """
    rows, width = Z.shape
    prediction = np.empty(rows)
    v = np.empty(width)
    for t in range(rows):
        value, s = 0.0, 0.0
        for i in range(width):
            total = 0.0
            for j in range(width):
                total += inverse[i, j] * Z[t, j]
            v[i] = total
            s += Z[t, i] * total
            value += Z[t, i] * coefficients[i]
        prediction[t] = value / (1.0 + s)
        for i in range(width):
            coefficients[i] += v[i] * (targets[t] - value) / (1.0 + s)
            for j in range(width):
                inverse[i, j] -= v[i] * v[j] / (1.0 + s)
    return prediction
