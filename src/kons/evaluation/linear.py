"""Online linear regression: the Vovk-Azoury-Warmuth forecaster, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Vector, require_number
from kons.evaluation.second_order import SecondOrder
from kons.state import Array, Inner, fields

__all__ = ["OnlineLinear"]


class OnlineLinear(SecondOrder):
    """The Vovk-Azoury-Warmuth forecaster: linear regression that counts the row it predicts.

    ::

        A_t = regularization * I + sum_(s <= t) x_s x_s^T        the current x is already inside
        b_t = sum_(s <= t) y_s x_s
        y_hat_t = x_t^T A_t^-1 b_(t-1)                           x carries a last feature 1

    With targets in [-C, C] and |x| <= R, its regret against any linear u is at most
    regularization*|u|^2 + d C^2 log(1 + T R^2/(regularization d)), with no bound on the predictions and
    nothing to tune. A row costs O(d^2).

    Do not use it with more than some hundred features; nor, unless ``standardize``, with features of very
    different scales, which the one regularization treats alike.

    Parameters
    ----------
    regularization:
        The weight of |u|^2, the bias included.
    bound:
        None, or C: predictions are clipped to [-C, C], which can only help where the targets lie
        inside, and makes the comparison with a clipped learner fair. What is learned is the same.
    standardize:
        Work in raw units: features and targets are centred and scaled by what is known of them
        (:mod:`kons.evaluation.second_order`).

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

    STATE = fields(_quadratic=Inner(binds="size"), _b=Array("size", 1, written="always"))

    def __init__(
        self, regularization: float = 0.1, bound: float | None = None, *, standardize: bool = False
    ) -> None:
        super().__init__(regularization, standardize)
        self.bound: float | None = None if bound is None else require_number(bound, "bound", above=0.0)
        self._b = np.empty((0, 1))

    @property
    def coefficients(self) -> Vector:
        """``A^-1 b``: one number per feature, then the bias. Empty before the first row. A copy.

        In the units of X and y, also with ``standardize``.
        """
        if self._width is None:
            return np.empty(0)
        (_, _, centre, scale), u = self._units.values, self._quadratic.u[:, 0]
        slopes = u[:-1] * scale[-1] / scale[:-1]
        bias = centre[-1] + u[-1] * scale[-1] - slopes @ centre[:-1]
        return np.append(slopes, bias)

    def _begin(self, width: int) -> None:
        super()._begin(width)
        self._b = np.zeros((width + 1, 1))

    def _renew(self, rows: int) -> None:
        self._quadratic.end_period()
        of_points = self._quadratic.S[-1:].T.copy()  # the sum of z
        ratio, shift = self._units.renew(rows)
        backward = self._carry(ratio[:-1], shift[:-1])
        self._b = backward @ (self._b - shift[-1] * of_points) / ratio[-1]
        self._quadratic.solve(self._b)

    def _play(self, points: Any, rows: Any | None, targets: NDArray[Any], known: Integers) -> NDArray[Any]:
        return self._clipped(super()._play(points, rows, targets, known)[0].copy())

    def _foresee(self, points: Any) -> Vector:
        return self._clipped(super()._foresee(points)[0].copy())

    def _clipped(self, prediction: Vector) -> Vector:
        return prediction if self.bound is None else np.clip(prediction, -self.bound, self.bound)
