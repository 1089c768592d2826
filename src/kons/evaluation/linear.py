"""Online linear regression: the Vovk-Azoury-Warmuth forecaster, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, ReadMatrix, ReadVector, Vector, require_number
from kons.compilation import compiled_sums
from kons.evaluation.second_order import SecondOrder, Standardization, Stretch, absorb, count, dot, locate
from kons.state import Array, fields

__all__ = ["OnlineLinear"]


class OnlineLinear(SecondOrder):
    """The Vovk-Azoury-Warmuth forecaster: linear regression that counts the row it predicts.

    ::

        A_t = regularization * I + sum_(s <= t) x_s x_s^T        the current x is already inside
        b_t = sum_(s <= t) y_s x_s
        y_hat_t = x_t^T A_t^-1 b_(t-1)                           x carries a last feature 1

    With targets in [-C, C] and |x| <= R, its regret against any linear u is at most
    regularization*|u|^2 + d C^2 log(1 + T R^2/(regularization d)), with no bound on the predictions and
    nothing to tune. The inverse is kept by rank-one updates, so that a row costs O(d^2).

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

    STATE = fields(
        _coefficients=Array("size", written="always"),
        _cross=Array("size", written="always"),
    )

    def __init__(
        self, regularization: float = 0.1, bound: float | None = None, *, standardize: bool = False
    ) -> None:
        super().__init__(regularization, standardize)
        self.bound = None if bound is None else require_number(bound, "bound", above=0.0)
        self._coefficients = np.empty(0)
        self._cross = np.empty(0)  # b, in the units in use

    @property
    def coefficients(self) -> Vector:
        """``A^-1 b``: one number per feature, then the bias. Empty before the first row. A copy.

        In the units of X and y, also with ``standardize``.
        """
        if self._width is None:
            return np.empty(0)
        centre, scale = self._units.centre, self._units.scale
        slopes = self._coefficients[:-1] * scale[-1] / scale[:-1]
        bias = centre[-1] + self._coefficients[-1] * scale[-1] - slopes @ centre[:-1]
        return np.append(slopes, bias)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {
            "regularization": self.regularization,
            "bound": self.bound,
            "standardize": self.standardize,
        }

    def _begin(self, width: int) -> None:
        super()._begin(width)
        self._units = Standardization(width + 1)  # the target is the last column
        self._coefficients = np.zeros(width + 1)
        self._cross = np.zeros(width + 1)

    def _nothing(self, rows: int) -> Vector:
        return np.zeros(rows)

    def _play(self, points: Any, learned: Any | None, targets: NDArray[Any], lead: int) -> NDArray[Any]:
        prediction = super()._play(points, learned, targets, lead)
        return prediction if self.bound is None else np.clip(prediction, -self.bound, self.bound)

    def _run(self, rows: Stretch, i: int, j: int, stop: int, out: Any) -> tuple[int, int]:
        units = self._units
        return _regress(
            self._inverse,
            self._coefficients,
            self._sums,
            self._cross,
            units.moments,
            units.centre,
            units.scale,
            self._rows_seen,
            rows.points,
            rows.learned,
            rows.targets,
            rows.same,
            rows.lead,
            i,
            j,
            stop,
            out,
        )

    def _centre(self, row: Vector, target: Any) -> None:
        self._units.centre = np.append(row, target)

    def _renew(self, rows: int) -> None:
        of_points = self._sums[:, -1].copy()  # the sum of z
        ratio, shift = self._units.renew(rows)
        _, backward = self._carry(ratio[:-1], shift[:-1])
        self._cross = backward @ (self._cross - shift[-1] * of_points) / ratio[-1]
        self._coefficients = self._inverse @ self._cross

    def _foresee(self, points: Any) -> Vector:
        if self._width is None:
            return np.zeros(len(points))
        # Nothing is learned: the predictions alone.
        out = self._nothing(len(points))
        self._run(Stretch(points, points[:0], np.empty(0)), 0, 0, 1, out)
        return out if self.bound is None else np.clip(out, -self.bound, self.bound)


@compiled_sums
def _regress(
    inverse: Matrix,
    coefficients: Vector,
    sums: Matrix,
    cross: Vector,
    moments: Matrix,
    centre: ReadVector,
    scale: ReadVector,
    seen: int,
    points: ReadMatrix,
    learned: ReadMatrix,
    targets: ReadVector,
    same: bool,
    lead: int,
    i: int,
    j: int,
    stop: int,
    prediction: Vector,
) -> tuple[int, int]:
    """Play rows through ``inverse`` = A^-1 and ``coefficients`` = A^-1 b, both changed in place.

    With v = A^-1 z and s = z^T v, Sherman and Morrison give

        z^T (A + z z^T)^-1 b = z^T coefficients / (1 + s)
        A_t^-1 b_t           = coefficients + v (y - z^T coefficients) / (1 + s)
    """
    width = len(centre) - 1
    z, v = np.empty(width + 1), np.empty(width + 1)
    s, value, located = 0.0, 0.0, -1
    while True:
        if j < len(targets) and (j + lead < i or i >= len(points)):
            if not (same and located == j):
                s = locate(learned[j], centre, scale, inverse, z, v)
                value = dot(z, coefficients)
            y = (targets[j] - centre[width]) / scale[width]
            step = (y - value) / (1.0 + s)
            for k in range(width + 1):
                coefficients[k] += step * v[k]
                cross[k] += y * z[k]
            absorb(inverse, sums, z, v, 1.0, s)
            for k in range(width):
                count(moments, k, learned[j, k], seen + j + 1)
            count(moments, width, targets[j], seen + j + 1)
            located = -1
            j += 1
            if j == stop:
                return i, j
        elif i < len(points):
            s = locate(points[i], centre, scale, inverse, z, v)
            value = dot(z, coefficients)
            prediction[i] = centre[width] + scale[width] * value / (1.0 + s)
            located = i
            i += 1
        else:
            return i, j
