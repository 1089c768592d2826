"""L and sigma of a loss known only by its functions, found on a grid once it is checked convex."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from kons.arrays import Vector
from kons.errors import ConfigurationError
from kons.losses.base import Loss

__all__ = ["find_constants"]

_EPSILON = float(np.finfo(np.float64).eps)

_POINTS = 201
_SHRINK = 0.9
"""201 points overestimate sigma of the logistic loss at bound 10 by 3 %, at 14 by 5 %."""
_FLAT = 1e-6
"""Slopes below this part of L count as 0. Leaving them out breaks Assumption 2 by at most
(sigma/2) (1e-6 L * 2C)^2 <= 1e-11 LC a row, since sigma <= 4/(LC)."""
_STRAIGHT = 1e-6
"""Below this part of 1/(LC), sigma is 0; 1/(LC) has the unit of sigma, which never exceeds 4/(LC).
Rounding on neighbouring points reaches 1e-9/(LC) where the slope is near L. And by the bounds of
Theorem 1 so small a sigma is worth more than the step size for sigma = 0 only when
2 sigma LC sqrt(T) > 1, beyond T = 10^11."""
_SLACK = 1e-6
"""How far a slope may be off, as a part of L, before it is called wrong; on top of half of what it
changes by from one point to the next, which the check cannot tell from curvature."""


def find_constants(loss: Loss, labels: tuple[float, ...] | None, bound: float) -> tuple[float, float]:
    """L and sigma from a grid of predictions and targets; ``labels`` None: any in [-bound, bound].

    O(targets x points^2) time, O(points^2) memory.
    """
    grid = np.linspace(-bound, bound, _POINTS)
    targets = grid if labels is None else np.array(labels)
    everywhere = np.broadcast_arrays(grid[np.newaxis, :], targets[:, np.newaxis])
    values = loss.value(*everywhere)
    slopes = loss.slope(*everywhere)
    _require_convex(loss, grid, targets, values, slopes)
    L = float(np.abs(slopes).max())
    if L == 0.0:
        raise ConfigurationError(
            f"{loss!r}: the slope is 0 for every prediction and target in [-{bound:g}, {bound:g}]: "
            "there is nothing to learn. Raise bound, or check the loss."
        )
    # In units of L and C = bound: u in [-1, 1], |l'| <= 1, and sigma as a part of 1/(LC).
    u = grid / bound
    values, slopes = values / (L * bound), slopes / L
    if loss.has_second_derivative:
        bends = loss.second_derivative(*everywhere) * (bound / L)
        if (bends < -_SLACK).any():
            row, at = np.argwhere(bends < -_SLACK)[0]
            raise ConfigurationError(
                f"{loss!r}: second_derivative(prediction={grid[at]:g}, target={targets[row]:g}) is "
                f"{bends[row, at] * L / bound:.4g}, expected at least 0: the value is convex."
            )
    else:
        bends = np.gradient(slopes, u, axis=1)
    sigma = min(map(partial(_curvature_for_one_target, u), values, slopes, bends))
    return L, (_SHRINK * sigma / (L * bound) if sigma >= _STRAIGHT else 0.0)


def _curvature_for_one_target(u: Vector, values: Vector, slopes: Vector, bends: Vector) -> float:
    """The smallest 2 (l(w) - l(u) - l'(u)(w - u)) / (l'(u)(w - u))^2 over all pairs, 0 at least."""
    steep = np.abs(slopes) > _FLAT
    if not steep.any():
        return math.inf
    g, bend = slopes[steep], bends[steep]
    step = u[np.newaxis, :] - u[steep, np.newaxis]
    rise = g[:, np.newaxis] * step
    gap = values[np.newaxis, :] - values[steep, np.newaxis] - rise
    size = np.abs(values[np.newaxis, :]) + np.abs(values[steep, np.newaxis]) + np.abs(rise)
    apart = step != 0.0
    # A gap is trusted only as far as it exceeds its own rounding.
    pairs = 2.0 * (gap - 8.0 * _EPSILON * size)[apart] / rise[apart] ** 2
    return max(0.0, min(float(pairs.min()), float((bend / g**2).min())))


def _require_convex(loss: Loss, grid: Vector, targets: Vector, values: Vector, slopes: Vector) -> None:
    """For neighbours a < b: l'(a)(b - a) <= l(b) - l(a) <= l'(b)(b - a), within ``_SLACK``."""
    step = np.diff(grid)
    change = np.diff(values, axis=1)
    scale = max(float(np.abs(slopes).max()), float(np.abs(change / step).max()))
    size = np.abs(values[:, :-1]) + np.abs(values[:, 1:])
    slack = _SLACK * scale * step + 8.0 * _EPSILON * size

    def excess(slopes: Vector) -> Vector:
        low, high = slopes[:, :-1] * step, slopes[:, 1:] * step
        return np.asarray(np.maximum(low - change, change - high) - slack)

    over = excess(slopes)
    if (over <= 0.0).all():
        return
    row, at = (int(i) for i in np.unravel_index(over.argmax(), over.shape))
    seen = (
        f"{loss!r}: at target {targets[row]:g}, from prediction {grid[at]:g} to {grid[at + 1]:g}, "
        f"the value changes by {change[row, at]:.4g}, where the slopes {slopes[row, at]:.4g} and "
        f"{slopes[row, at + 1]:.4g} allow {slopes[row, at] * step[at]:.4g} "
        f"to {slopes[row, at + 1] * step[at]:.4g}."
    )
    if (np.diff(change, axis=1) < -slack[:, 1:] - slack[:, :-1]).any():
        raise ConfigurationError(
            f"{seen} The value is not convex in the prediction (first argument): no learner here "
            "can use it. If it should be, check its formula and the order of its arguments."
        )
    hint = ""
    for factor, cause in (
        (-1.0, "is it a derivative with respect to the target?"),
        (2.0, "does the value lack a factor 1/2?"),
        (0.5, "does the value have a factor 1/2?"),
    ):
        if (excess(factor * slopes) <= 0.0).all():
            hint = f" The slope times {factor:g} would fit: {cause}"
    raise ConfigurationError(
        f"{seen} The value is convex, so the slope is not its derivative with respect to the "
        f"prediction (first argument).{hint}"
    )
