"""A loss of the user's own, and how its functions are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kons.arrays import Vector, require_number, require_scale
from kons.errors import ConfigurationError, NumericalError
from kons.losses.arguments import pair, require_labels, require_within, shaped
from kons.losses.base import Loss
from kons.losses.constants import find_constants

__all__ = ["CustomLoss"]

Pointwise = Callable[[Any, Any], Any]
OfBound = float | Callable[[float], float]


@dataclass(frozen=True)
class CustomLoss(Loss):
    """A loss of your own: plain callables of (prediction, target), of numbers or of arrays.

    ``slope`` is the derivative of ``value`` with respect to its first argument. ``targets`` are the
    labels allowed, such as ``(-1, 1)``; None means any number in [-bound, bound]. ``lipschitz`` and
    ``curvature`` are numbers or functions of the bound, and are then taken at their word.

    Otherwise they are found once per bound, on 201 predictions and 201 targets (some 40,000 calls
    of each callable that takes no arrays), after a check that the loss is convex and its slope
    belongs to its value. The curvature is the smallest 2 (l(w) - l(u) - l'(u)(w - u)) /
    (l'(u)(w - u))^2 of Assumption 2 over all pairs of predictions, its limit l''/l'^2 for w -> u
    included, minus 10 % for what lies between the points. A straight piece shorter than bound/100
    can escape it. Not for a loss that compiled loops know: a row costs a few microseconds more.

    >>> import numpy as np
    >>> loss = CustomLoss(lambda p, y: abs(p - y), lambda p, y: np.sign(p - y), name="absolute")
    >>> loss.lipschitz(2.0), loss.curvature(2.0)
    (1.0, 0.0)
    >>> loss
    CustomLoss(name='absolute')
    """

    value_function: Pointwise
    slope_function: Pointwise
    second_derivative_function: Pointwise | None
    lipschitz_given: OfBound | None
    curvature_given: OfBound | None
    targets: tuple[float, ...] | None
    name: str
    _found: dict[float, tuple[float, float]] = field(compare=False)

    def __init__(
        self,
        value: Pointwise,
        slope: Pointwise,
        second_derivative: Pointwise | None = None,
        *,
        lipschitz: OfBound | None = None,
        curvature: OfBound | None = None,
        targets: Sequence[float] | None = None,
        name: str | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "value_function": _callable(value, "value"),
            "slope_function": _callable(slope, "slope"),
            "second_derivative_function": None
            if second_derivative is None
            else _callable(second_derivative, "second_derivative"),
            "lipschitz_given": lipschitz
            if lipschitz is None or callable(lipschitz)
            else require_number(lipschitz, "lipschitz", above=0),
            "curvature_given": curvature
            if curvature is None or callable(curvature)
            else require_number(curvature, "curvature", at_least=0),
            "targets": None if targets is None else _labels(targets),
            "name": name or getattr(value, "__name__", type(value).__name__),
            "_found": {},
        }
        for attribute, content in given.items():
            object.__setattr__(self, attribute, content)

    def __repr__(self) -> str:
        labels = "" if self.targets is None else f", targets={self.targets}"
        return f"CustomLoss(name={self.name!r}{labels})"

    @property
    def has_second_derivative(self) -> bool:
        return self.second_derivative_function is not None

    def value(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        return self._evaluate(self.value_function, "value", prediction, target)

    def slope(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        return self._evaluate(self.slope_function, "slope", prediction, target)

    def second_derivative(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        if self.second_derivative_function is None:
            raise ConfigurationError(
                f"{self!r} has no second derivative: give it second_derivative=, or use a loss "
                "that has one: Logistic, Squared, SquaredHinge."
            )
        return self._evaluate(self.second_derivative_function, "second_derivative", prediction, target)

    def lipschitz(self, bound: float) -> float:
        return require_number(*self._constant(bound, "lipschitz", self.lipschitz_given, 0), above=0)

    def curvature(self, bound: float) -> float:
        return require_number(*self._constant(bound, "curvature", self.curvature_given, 1), at_least=0)

    def check_targets(self, y: ArrayLike, bound: float) -> None:
        """Every target one of ``targets``, or within [-bound, bound] up to rounding."""
        if self.targets is None:
            require_within(y, bound)
        else:
            require_labels(y, self.targets)

    def _evaluate(self, function: Pointwise, what: str, prediction: Any, target: Any) -> Any:
        if isinstance(prediction, float) and isinstance(target, float):  # a learner's row
            return _single(self, what, function, prediction, target)
        predictions, targets = pair(prediction, target)
        results = _at_once(self, what, function, predictions.ravel(), targets.ravel())
        return shaped(results, predictions.shape)

    def _constant(self, bound: float, name: str, given: OfBound | None, place: int) -> tuple[Any, str]:
        """A constant on [-bound, bound] as it was given, or of L and sigma, found once; and its name."""
        bound = require_scale(bound, "bound")
        if given is None and bound not in self._found:
            self._found[bound] = find_constants(self, self.targets, bound)
        known = self._found[bound][place] if given is None else given
        return known(bound) if callable(known) else known, f"{name}({bound:g})"


# --- Calling a user's function --------------------------------------------------------------------


def _at_once(loss: CustomLoss, what: str, function: Pointwise, p: Vector, y: Vector) -> Vector:
    """One call with arrays; if the callable does not take them, one call for each element."""
    results = np.empty(0)
    # Whatever it raises comes up again below, with the numbers at fault.
    with np.errstate(all="ignore"), suppress(Exception):
        if p.size > 1:
            results = np.asarray(function(p.copy(), y.copy()))  # it may write into its arguments
    if not results.size or results.shape != p.shape or results.dtype.kind not in "biuf":
        return np.array([_single(loss, what, function, *at) for at in np.column_stack([p, y]).tolist()])
    results = results.astype(np.float64)
    if not np.isfinite(results).all():
        at = int(np.argmin(np.isfinite(results)))
        raise _nonsense(loss, what, p[at], y[at], f"is {results[at]}")
    return results


def _single(loss: CustomLoss, what: str, function: Pointwise, p: float, y: float) -> float:
    """One call with two floats."""
    try:
        with np.errstate(all="ignore"):
            result = function(p, y)
    except Exception as error:
        raise _nonsense(loss, what, p, y, f"raised {type(error).__name__}: {error}") from error
    number = result if type(result) is float else _as_number(result)
    if number is None or not math.isfinite(number):
        raise _nonsense(loss, what, p, y, f"is {result!r}")
    return number


def _as_number(result: Any) -> float | None:
    """A real number in any dress (NumPy, Fraction, an array of one), or None."""
    array = np.asarray(result)
    if array.size != 1 or array.dtype.kind not in "biufO":
        return None
    try:
        return float(array.item())
    except (TypeError, ValueError, OverflowError):
        return None


def _nonsense(loss: CustomLoss, what: str, p: float, y: float, seen: str) -> NumericalError:
    return NumericalError(
        f"{loss!r}: {what}(prediction={p:g}, target={y:g}) {seen}, expected a finite number: "
        "it must give one for every prediction in [-bound, bound] and every target allowed."
    )


# --- Arguments ------------------------------------------------------------------------------------


def _callable(function: Any, name: str) -> Pointwise:
    if not callable(function):
        raise ConfigurationError(f"{name} is {function!r}, expected a callable of (prediction, target).")
    checked: Pointwise = function
    return checked


def _labels(targets: Any) -> tuple[float, ...]:
    if isinstance(targets, (str, bytes)) or not isinstance(targets, (Sequence, np.ndarray)):
        raise ConfigurationError(
            f"targets is {targets!r}, expected None or a sequence of labels such as (-1, 1)."
        )
    if len(targets) == 0:
        raise ConfigurationError("targets is empty, expected at least one label, or None.")
    return tuple(require_number(label, f"targets[{i}]") for i, label in enumerate(targets))
