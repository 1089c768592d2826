"""A first-order kernel method on the same stream: what a learner without curvature would have lost."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from kons.arrays import (
    Matrix,
    ReadMatrix,
    ReadVector,
    Vector,
    as_scalar,
    as_targets,
    require_number,
    require_scale,
)
from kons.compilation import compiled
from kons.core.storage import GrowingArray, point_store
from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Kernel
from kons.learners import Trace
from kons.learners.stream import StreamConsumer
from kons.losses import Loss
from kons.losses.builtin import slope_of
from kons.state import Growing, Points, fields
from kons.step_sizes import InverseSqrt, StepSize, as_step_size

__all__ = ["KernelGradientDescent"]

# Rows played at a time, and columns of the Gram matrix evaluated at a time.
BLOCK = 256
TILE = 512


class KernelGradientDescent(StreamConsumer):
    """Online gradient descent in the kernel's function space: the step of KONS with A = I.

    ::

        predict  y_hat = clip(f(x), -C, C)                     h = f(x) - y_hat,  g = loss'(y_hat)
        learn    f <- f - (h/k(x,x) + eta_t*g) k(x, .)         eta_t = c/sqrt(t)

    The first term projects f on the functions with a value in [-C, C] at x, as KONS does in its own norm.
    Nothing is known of directions already learned, so a step must serve the strongest and the weakest
    alike: in general the regret grows as sqrt(T), also where the loss is curved.

    Costs O(t) kernel evaluations a row and keeps every point with a nonzero step, played in blocks of one
    Gram product. It is here to be compared with. Do not use it to predict: ``EmbeddedKONS`` costs
    less on long streams and has nothing to tune.

    Parameters
    ----------
    kernel, loss, bound:
        As in :class:`kons.KONS`.
    step:
        c of eta_t = c/sqrt(t); or a function of t = 1, 2, ... or a step size from :mod:`kons.step_sizes`,
        used as it is. None is c = C/L, for kernels with k(x,x) = 1; divide by k(x,x) for others.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Gaussian, Squared
    >>> from kons.evaluation import KernelGradientDescent
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(2000, 1))
    >>> learner = KernelGradientDescent(Gaussian(0.5), Squared(), step=1.0)
    >>> trace = learner.advance(x, np.sin(x).ravel())
    >>> bool(trace.loss[-500:].mean() < 0.01)
    True

    References
    ----------
    Kivinen, Smola, Williamson: Online learning with kernels, IEEE Transactions on Signal Processing 52, 2004
    (NORMA, here with a projection and without its weight decay); Zinkevich, ICML 2003 (the step).
    """

    STATE = fields(_points=Points("size"), _coefficients=Growing("size"))

    def __init__(
        self,
        kernel: Kernel,
        loss: Loss,
        bound: float = 1.0,
        *,
        step: float | StepSize | Callable[[int], float] | None = None,
    ) -> None:
        super().__init__(kernel)
        if not isinstance(loss, Loss):
            raise ConfigurationError(f"loss is {loss!r}, expected an instance from kons.losses.")
        self.loss = loss
        self.bound = require_scale(bound, "bound")
        self.step = step
        self.step_size = _step_size(step, loss, self.bound)
        self._points = point_store(kernel.accepts)
        self._coefficients = GrowingArray()

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {"kernel": self.kernel, "loss": self.loss, "bound": self.bound, "step": self.step}

    def advance(self, X: Any, y: Any) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none."""
        points = self._as_points(X)
        targets = as_targets(y, len(points))
        self.loss.check_targets(targets, self.bound)
        first = self._rows_seen + 1
        etas = self.step_size(np.arange(first, first + len(points)))
        played = []
        with self._all_or_nothing():
            for start in range(0, len(points), BLOCK):
                block = slice(start, start + BLOCK)
                played.append(self._play(points[block], targets[block], etas[block]))
            prediction, slope, step = (np.concatenate(column) for column in zip(*played, strict=True))
            kept = step != 0.0
            self._count(points, int(np.count_nonzero(kept)))
            losses = self.loss.value(prediction, targets)
        return Trace(kept=kept, size=self._sizes(kept), prediction=prediction, loss=losses, slope=slope)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        point, target = self._as_point(x), np.array([as_scalar(y, name="y")])
        self.loss.check_targets(target, self.bound)
        eta = np.array([self.step_size(self._rows_seen + 1)])
        with self._all_or_nothing():
            step = self._play(point, target, eta)[2]
            self._count(point, int(np.count_nonzero(step)))

    def predict(self, X: Any) -> Vector:
        """The clipped values of the current function. Changes nothing."""
        points = self._as_points(X)
        blocks = [self._values(points[start : start + BLOCK]) for start in range(0, len(points), BLOCK)]
        return np.clip(np.concatenate(blocks), -self.bound, self.bound)

    def predict_one(self, x: Any) -> float:
        """The clipped value of the current function at one row."""
        return float(np.clip(self._values(self._as_point(x))[0], -self.bound, self.bound))

    def _values(self, block: Any) -> Vector:
        """The function at the block's points, tile by tile: never a whole Gram matrix."""
        values = np.zeros(len(block))
        points, coefficients = self._points.view, self._coefficients.view
        for start in range(0, len(coefficients), TILE):
            tile = slice(start, start + TILE)
            values += self.kernel.evaluate(block, points[tile]) @ coefficients[tile]
        return values

    def _play(self, block: Any, targets: Vector, etas: Vector) -> tuple[Vector, Vector, Vector]:
        """Predictions, slopes and steps of the block's rows, and f moved by them."""
        f = self._values(block)
        K = np.ascontiguousarray(self.kernel.evaluate(block, block))
        code = self.loss.code
        if code is not None:
            prediction, slope, step = _descend(code, K, f, targets, etas, self.bound)
        else:
            prediction, slope, step = self._descend_by_calls(K, f, targets, etas)
        if not (np.isfinite(step).all() and np.isfinite(prediction).all()):
            raise NumericalError(
                f"the function is no finite number at some row: {self.kernel!r} is too large for it. "
                "Scale the features, or lower step."
            )
        kept = np.flatnonzero(step)
        self._points.append_rows(block, kept)
        self._coefficients.append(-step[kept])
        return prediction, slope, step

    def _descend_by_calls(
        self, K: Matrix, f: Vector, targets: Vector, etas: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """:func:`_descend` for a loss that only Python knows."""
        prediction, slope, step = (np.empty(len(f)) for _ in range(3))
        for t in range(len(f)):
            prediction[t] = min(max(f[t], -self.bound), self.bound)
            slope[t] = self.loss.slope(prediction[t], targets[t])
            overshoot = f[t] - prediction[t]
            step[t] = etas[t] * slope[t] + (overshoot / K[t, t] if overshoot != 0.0 else 0.0)
            f[t + 1 :] -= step[t] * K[t, t + 1 :]
        return prediction, slope, step


def _step_size(step: Any, loss: Loss, bound: float) -> StepSize:
    if step is None:
        L = loss.lipschitz(bound)
        if not (math.isfinite(L) and L > 0.0):
            raise ConfigurationError(f"{loss!r} has the Lipschitz constant {L}: give step.")
        return InverseSqrt(L / bound, 1.0)
    if isinstance(step, numbers.Real):
        return InverseSqrt(1.0 / require_number(step, "step", above=0.0), 1.0)
    return as_step_size(step)


@compiled
def _descend(
    code: int, K: ReadMatrix, f: Vector, targets: ReadVector, etas: ReadVector, bound: float
) -> tuple[Vector, Vector, Vector]:
    """Play a block through f, its values at the block's points, which are moved in place."""
    rows = f.shape[0]
    prediction, slope, step = np.empty(rows), np.empty(rows), np.empty(rows)
    for t in range(rows):
        y_hat = min(max(f[t], -bound), bound)
        g = slope_of(code, y_hat, targets[t])
        s = etas[t] * g
        if f[t] != y_hat:
            s += (f[t] - y_hat) / K[t, t]
        for j in range(t + 1, rows):
            f[j] -= s * K[t, j]
        prediction[t], slope[t], step[t] = y_hat, g, s
    return prediction, slope, step
