"""The losses that compiled loops know: squared, logistic, squared hinge, hinge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from kons.arrays import ReadVector, Vector, require_scale
from kons.compilation import compiled
from kons.losses.arguments import pair, require_labels, require_within, shaped
from kons.losses.base import Loss

__all__ = [
    "HINGE",
    "LOGISTIC",
    "SQUARED",
    "SQUARED_HINGE",
    "Hinge",
    "Logistic",
    "Squared",
    "SquaredHinge",
    "implicit_slope",
    "second_derivative_of",
    "slope_of",
    "value_of",
]

# The codes by which compiled loops know a loss: Loss.code.
SQUARED, LOGISTIC, SQUARED_HINGE, HINGE = 0, 1, 2, 3

_VALUE, _SLOPE, _SECOND_DERIVATIVE = 0, 1, 2

# Margins so near to 1 are at the kink of the hinge: equal rows with equal steps lead there, and rounding
# alone would say on which side. Of sums of some ten thousand steps.
KINK = 1e-12


# --- The formulas, each written once --------------------------------------------------------------


@compiled
def value_of(code: int, prediction: float, target: float) -> float:
    """l(prediction) of the loss with this code."""
    if code == SQUARED:
        return (prediction - target) ** 2
    margin = target * prediction
    if code == LOGISTIC:  # exp of a negative number only: no overflow, whatever the margin
        return max(-margin, 0.0) + math.log1p(math.exp(-abs(margin)))
    hinge = max(1.0 - margin, 0.0)
    return hinge if code == HINGE else hinge**2


@compiled
def slope_of(code: int, prediction: float, target: float) -> float:
    """l'(prediction) of the loss with this code."""
    if code == SQUARED:
        return 2.0 * (prediction - target)
    margin = target * prediction
    if code == LOGISTIC:
        small = math.exp(-abs(margin))
        return -target * (small if margin > 0.0 else 1.0) / (1.0 + small)
    if code == HINGE:  # at the kink, to rounding: the same in a block as row by row
        return -target if margin < 1.0 - KINK else 0.0
    return 2.0 * target * (margin - 1.0) if margin < 1.0 else 0.0


@compiled
def second_derivative_of(code: int, prediction: float, target: float) -> float:
    """l''(prediction) of the loss with this code; at the kinks of both hinges, 0."""
    if code == SQUARED:
        return 2.0
    margin = target * prediction
    if code == LOGISTIC:
        small = math.exp(-abs(margin))
        return small / (1.0 + small) ** 2
    return 2.0 if margin < 1.0 and code != HINGE else 0.0


@compiled
def implicit_slope(prediction: float, target: float, form: float) -> float:
    """l'(f) of the logistic loss at the ``f = prediction - form*l'(f)`` that a step with it leads to.

    Newton, or halving. Unlike a step with the slope before it, a surprising row cannot overshoot.
    """
    f, end = prediction, prediction - form * slope_of(LOGISTIC, prediction, target)
    low, high = min(f, end), max(f, end)
    last = high - low
    for _ in range(200):
        excess = f - prediction + form * slope_of(LOGISTIC, f, target)
        if excess > 0.0:
            high = f
        else:
            low = f
        newer = f - excess / (1.0 + form * second_derivative_of(LOGISTIC, f, target))
        # Newton may jump to and fro where the slope is flat: each step must halve the last.
        if not low <= newer <= high or abs(newer - f) > 0.5 * last:
            newer = 0.5 * (low + high)
        last, f = abs(newer - f), newer
        if last <= 1e-13 * (1.0 + abs(f)):
            break
    return slope_of(LOGISTIC, f, target)


@compiled
def _fill(kind: int, code: int, predictions: Vector, targets: ReadVector) -> None:
    """Replace each prediction by the value, slope or second derivative there."""
    for i in range(predictions.shape[0]):
        if kind == _VALUE:
            predictions[i] = value_of(code, predictions[i], targets[i])
        elif kind == _SLOPE:
            predictions[i] = slope_of(code, predictions[i], targets[i])
        else:
            predictions[i] = second_derivative_of(code, predictions[i], targets[i])


def _evaluate_coded(kind: int, code: int, prediction: ArrayLike, target: ArrayLike) -> Any:
    predictions, targets = pair(prediction, target)
    results = predictions.ravel()
    _fill(kind, code, results, targets.ravel())
    return shaped(results, predictions.shape)


# --- The losses -----------------------------------------------------------------------------------


class _Coded(Loss):
    """A loss whose formulas are compiled."""

    code: ClassVar[int]

    def value(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        return _evaluate_coded(_VALUE, self.code, prediction, target)

    def slope(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        return _evaluate_coded(_SLOPE, self.code, prediction, target)

    def second_derivative(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        return _evaluate_coded(_SECOND_DERIVATIVE, self.code, prediction, target)

    def check_targets(self, y: ArrayLike, bound: float) -> None:
        """Every target -1 or +1."""
        require_labels(y, (-1.0, 1.0))


@dataclass(frozen=True)
class Squared(_Coded):
    """The squared loss, for a number as target: l(p) = (p - y)^2 with |y| <= bound.

    Without a factor 1/2, as in the paper: the slope is 2(p - y), the second derivative 2, and sigma
    is 1/(8 bound^2), the paper's own example after Assumption 2. Constants from a text that writes
    (p - y)^2/2 do not carry over: there L is half and sigma twice as large. Not for targets with
    rare huge values: the bound must hold them all, and sigma falls as 1/bound^2.

    >>> loss = Squared()
    >>> loss.value(0.5, 1.0), loss.slope(0.5, 1.0)
    (0.25, -1.0)
    >>> loss.lipschitz(1.0), loss.curvature(1.0)
    (4.0, 0.125)
    """

    code = SQUARED

    def lipschitz(self, bound: float) -> float:
        return 4.0 * require_scale(bound, "bound")

    def curvature(self, bound: float) -> float:
        return 1.0 / (8.0 * require_scale(bound, "bound") ** 2)

    def check_targets(self, y: ArrayLike, bound: float) -> None:
        """Every target within [-bound, bound], up to rounding (1e-9 of the bound)."""
        require_within(y, bound)


@dataclass(frozen=True)
class Logistic(_Coded):
    """The logistic loss, for labels -1 and +1: l(p) = log(1 + exp(-y p)).

    A prediction p means probability 1/(1 + exp(-p)) for the label +1. Stable for every margin.
    sigma = exp(-bound) (Assumption 2), so not with a large bound: at 10 the paper's step size is
    4.5e-5 and learning hardly moves; 2 or 3 already allow probabilities of 0.88 and 0.95.

    >>> loss = Logistic()
    >>> loss.slope(0.0, 1.0), loss.second_derivative(0.0, 1.0)
    (-0.5, 0.25)
    >>> loss.value(-1000.0, 1.0)
    1000.0
    """

    code = LOGISTIC

    def lipschitz(self, bound: float) -> float:
        return 1.0 / (1.0 + math.exp(-require_scale(bound, "bound")))

    def curvature(self, bound: float) -> float:
        return math.exp(-require_scale(bound, "bound"))


@dataclass(frozen=True)
class SquaredHinge(_Coded):
    """The squared hinge loss, for labels -1 and +1: l(p) = max(0, 1 - y p)^2.

    Zero from margin 1 on: rows that are right with room to spare move nothing. Unlike the plain
    hinge it has curvature (Assumption 2): up to bound 1 that of its parabola, beyond it that of the
    chord from margin -bound into the flat part. Not for probabilities: use the logistic loss.

    >>> loss = SquaredHinge()
    >>> loss.value(0.5, 1.0), loss.slope(0.5, 1.0), loss.slope(2.0, 1.0)
    (0.25, -1.0, 0.0)
    >>> loss.lipschitz(1.0), loss.curvature(1.0)
    (4.0, 0.125)
    """

    code = SQUARED_HINGE

    def lipschitz(self, bound: float) -> float:
        return 2.0 * (1.0 + require_scale(bound, "bound"))

    def curvature(self, bound: float) -> float:
        C = require_scale(bound, "bound")
        if C <= 1.0:  # l''/l'^2 at margin -C
            return 1.0 / (2.0 * (1.0 + C) ** 2)
        # u at margin -C, w at margin C: 2 (0 - (1+C)^2 + 2(1+C) 2C) / (2(1+C) 2C)^2
        return (3.0 * C - 1.0) / (8.0 * C**2 * (1.0 + C))


@dataclass(frozen=True)
class Hinge(_Coded):
    """The hinge loss, for labels -1 and +1: l(p) = max(0, 1 - y p).

    Zero from margin 1 on; below, a straight line. So it has no curvature (sigma = 0 in Assumption 2): second
    order learns with the step size 1/(L C sqrt(t)), and regret grows as sqrt(T). It is the loss of
    perceptrons and of support vector machines, and an upper bound on mistakes. Not where second order is to
    pay: the squared hinge costs the same and has curvature. Not for probabilities: use the logistic loss.

    >>> loss = Hinge()
    >>> loss.value(0.5, 1.0), loss.slope(0.5, 1.0), loss.slope(2.0, 1.0)
    (0.5, -1.0, 0.0)
    >>> loss.lipschitz(1.0), loss.curvature(1.0)
    (1.0, 0.0)
    """

    code = HINGE

    @property
    def has_second_derivative(self) -> bool:
        return False

    def lipschitz(self, bound: float) -> float:
        require_scale(bound, "bound")
        return 1.0

    def curvature(self, bound: float) -> float:
        require_scale(bound, "bound")
        return 0.0
