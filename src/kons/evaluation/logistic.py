"""Online logistic regression for any number of labels, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kons.arrays import Integers, Matrix, Vector
from kons.core.sequential import Sequential
from kons.evaluation.baselines import LabelBaseline
from kons.evaluation.second_order import LARGEST, OTHERS, SecondOrder
from kons.learners.labels import Codes, Labels
from kons.state import Array, Count, Inner, Sizes, Whole, fields
from kons.stored import Stored

__all__ = ["OnlineLogistic"]

# Up to so many rows, steps were taken in crude units: they are taken again when the units change.
EARLY = 64


class OnlineLogistic(LabelBaseline, SecondOrder):
    """Online Newton for logistic regression, one label against the rest, on standardized features.

    ::

        w_k <- argmin_w  log(1 + exp(-y_k w.z)) + (w - w_k)^T A (w - w_k)/2        y_k = +1 or -1
        A   <- A + max_k p_k (1 - p_k) z z^T                        p_k the probability after the step

    The step is implicit, so that a surprising row cannot overshoot. All labels share one A under the *largest
    curvature*, an upper bound on the Hessian of each of them, and for two labels their Hessian: K matrices
    would cost O(K d^2). Probabilities are the p_k, divided by their sum. A row costs O(d^2 + K d) with K
    labels. Do not use it with more than some hundred features.

    Parameters
    ----------
    regularization:
        A starts as so many times I, the bias included.
    standardize:
        As in :class:`OnlineLinear`.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.evaluation import OnlineLogistic
    >>> X = 1000 * np.random.default_rng(0).normal(size=(500, 3))
    >>> labels = np.where(X @ [1.0, -2.0, 0.5] > 300, "high", "low")
    >>> baseline = OnlineLogistic()
    >>> bool(baseline.advance(X, labels).loss[-200:].mean() < 0.1)
    True
    >>> baseline.predict_one([2000.0, 0.0, 0.0])
    'high'
    """

    STATE = fields(
        _known=Count(binds="labels"),
        _quadratic=Inner(make=lambda own: own._quadratic_to_load()),
        _early=Array("early", "width"),
        _early_targets=Whole("early", below="labels"),
    )

    def __init__(self, regularization: float = 0.1, *, standardize: bool = True) -> None:
        self._known = 0  # as many as there are outputs, between two calls
        SecondOrder.__init__(self, regularization, standardize)
        self._labels = Labels()
        self._early = np.empty((0, 0))  # the first rows, and the codes of their labels
        self._early_targets: Codes = np.empty(0, dtype=np.int64)

    def predict_proba(self, X: Any) -> Matrix:
        """A row per row of X, a column per label of ``classes``. Changes nothing."""
        points = self._as_points(X)
        if self._width is None:
            return np.empty((len(points), 0))
        (_, _, centre, scale), u = self._units.values, self._quadratic.u
        with np.errstate(over="ignore"):
            z = np.clip((points - centre) / scale, -LARGEST, LARGEST)
        p = expit(z @ u[:-1] + u[-1])
        probabilities: Matrix = p / p.sum(axis=1, keepdims=True)
        return probabilities

    def _begin(self, width: int) -> None:
        super()._begin(width)
        self._early = np.empty((0, width))

    def _quadratic_to_load(self) -> Sequential:
        self._quadratic.add_outputs(self._known)
        return self._quadratic

    def _expect(self, rows: Matrix, targets: Vector) -> None:
        self._quadratic.add_outputs(int(targets.max(initial=-1.0)) + 1 - self._known)
        room = EARLY - len(self._early)
        if self.standardize and room > 0 and self.rows_seen < EARLY:
            self._early = np.vstack([self._early, rows[:room]])
            self._early_targets = np.append(self._early_targets, targets[:room].astype(np.int64))

    def _play(self, points: Any, rows: Any | None, targets: NDArray[Any], known: Integers) -> NDArray[Any]:
        return SecondOrder._play(self, points, rows, targets.astype(np.float64), known)

    def _foresee(self, points: Any) -> NDArray[Any]:
        known = SecondOrder._foresee(self, points)
        return np.full_like(known, -1.0) if self._width is None else known

    def _renew(self, rows: int) -> None:
        ratio, shift = self._units.renew(rows)
        if rows > EARLY:
            u = self._quadratic.u
            self._carry(ratio, shift)
            u[-1] += shift @ u[:-1]  # the same function
            u[:-1] *= ratio[:, None]
            self._quadratic.assign(u)
            return
        labels, early = self._quadratic.outputs, self._early
        self._quadratic = Sequential(self.regularization * np.eye(len(ratio) + 1), labels)
        self._known, targets = 0, self._early_targets[:rows].astype(np.float64)
        none = np.empty(0, dtype=np.int64)
        self._run(early[:0], early[:rows], targets, none, np.empty((0, 2)), OTHERS, 0, False)
        if rows == EARLY:
            self._early, self._early_targets = early[:0], self._early_targets[:0]

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self._early) not in (0, min(self.rows_seen, EARLY)):
            raise stored.error("its first rows do not fit the others")
