"""A plain Python function as a kernel, on any objects."""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError, NumericalError
from kons.kernels.base import Kernel

__all__ = ["FunctionKernel"]


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A function of two Python objects: strings, sets, graphs, whatever can be compared.

    ::

        k(x, z) = function(x, z)

    It must be symmetric and positive semidefinite, as any inner product of counts or features is;
    similarities such as an edit distance are not, and a learner will stop at them with
    :class:`~kons.errors.NumericalError`. ``diagonal``, a function of one object, is a shorter way
    to function(x, x) where there is one.

    Costs a Python call a pair, about a microsecond and the function's own time; among the points of
    one list each pair is computed once. Not for rows of numbers: a :class:`~kons.kernels.Kernel`
    with ``evaluate`` on whole arrays is a hundred times faster. Pickles if the function does,
    which a lambda does not.

    >>> from kons.kernels import FunctionKernel, Normalized
    >>> def common_bigrams(x, z):
    ...     pairs = [z[i : i + 2] for i in range(len(z) - 1)]
    ...     return sum(pairs.count(x[i : i + 2]) for i in range(len(x) - 1))
    >>> k = Normalized(FunctionKernel(common_bigrams))
    >>> k.gram(["kernel", "kennel", "online"]).round(2)
    array([[1. , 0.6, 0.2],
           [0.6, 1. , 0.2],
           [0.2, 0.2, 1. ]])
    """

    function: Callable[[Any, Any], float]
    diagonal_function: Callable[[Any], float] | None = None

    def __init__(
        self,
        function: Callable[[Any, Any], float],
        diagonal: Callable[[Any], float] | None = None,
    ) -> None:
        if not callable(function):
            raise ConfigurationError(
                f"FunctionKernel got {function!r}, expected a function of two objects, f(x, z)."
            )
        if diagonal is not None and not callable(diagonal):
            raise ConfigurationError(
                f"diagonal is {diagonal!r}, expected a function of one object, x -> f(x, x)."
            )
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "diagonal_function", diagonal)

    @property
    def accepts(self) -> Literal["vectors", "objects"]:
        """Any Python objects."""
        return "objects"

    def evaluate(self, X: list[Any], Z: list[Any]) -> Matrix:
        """function(x, z)."""
        values = np.empty((len(X), len(Z)))
        for i, x in enumerate(X):
            if X is Z:
                for j in range(i + 1):
                    values[i, j] = values[j, i] = self._value(x, Z[j])
            else:
                for j, z in enumerate(Z):
                    values[i, j] = self._value(x, z)
        return values

    def evaluate_diagonal(self, X: list[Any]) -> Vector:
        """diagonal(x), or function(x, x)."""
        if self.diagonal_function is None:
            return np.array([self._value(x, x) for x in X])
        shorter = self.diagonal_function
        return np.array([_finite(shorter(x), _name(shorter), x) for x in X])

    def __repr__(self) -> str:
        """FunctionKernel(name of the function)."""
        parts = [_name(self.function)]
        if self.diagonal_function is not None:
            parts.append(f"diagonal={_name(self.diagonal_function)}")
        return f"FunctionKernel({', '.join(parts)})"

    def _value(self, x: Any, z: Any) -> float:
        value = self.function(x, z)
        if type(value) is float and math.isfinite(value):
            return value
        return _finite(value, _name(self.function), x, z)


def _finite(value: Any, name: str, *points: Any) -> float:
    try:
        number = float(value) if isinstance(value, (numbers.Real, np.bool_)) else math.nan
    except OverflowError:  # an integer or a fraction beyond float64
        number = math.inf
    if math.isfinite(number):
        return number
    arguments = ", ".join(reprlib.repr(point) for point in points)
    raise NumericalError(
        f"{name}({arguments}) returned {reprlib.repr(value)} ({type(value).__name__}), expected a "
        "finite real number: make the function return one for every pair of points."
    )


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or reprlib.repr(function)
