"""Step sizes: how much of each squared slope enters the preconditioner.

A step size eta is a function of t = 1, 2, 3, ..., the count of rows, the present one included::

    A_t = A_(t-1) + eta_t * g_t^2 * phi_t phi_t^T          (Alg. 1, line 8)

*Convention.* This is the paper's: eta_t = sigma_t, with sigma as in its Assumption 2. Later work by
the same authors adds (sigma/2) g g^T instead: a constant taken from there is half of one from here.

Theorem 1 holds for every eta_t that is at least sigma.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector, require_integer, require_number
from kons.errors import ConfigurationError

__all__ = ["Constant", "FromFunction", "InverseSqrt", "StepSize", "as_step_size", "for_loss"]


class StepSize(ABC):
    """A positive function of the count of rows, t = 1, 2, 3, ...

    Called with an integer it returns a float, with an array of integers a float64 array, and the
    two agree bit for bit. A schedule of your own needs no subclass: hand over any function of t,
    see :func:`as_step_size`.

    >>> step_size = as_step_size(0.5)
    >>> step_size(3)
    0.5
    """

    @overload
    def __call__(self, t: int) -> float: ...
    @overload
    def __call__(self, t: NDArray[np.integer[Any]]) -> Vector: ...
    def __call__(self, t: int | NDArray[np.integer[Any]]) -> float | Vector:
        """The step size of row ``t``, or of each row in ``t``; rows are counted from 1."""
        if not isinstance(t, np.ndarray) or t.ndim == 0:
            row = require_integer(t[()] if isinstance(t, np.ndarray) else t, "t", at_least=1)
            return float(self._of(np.array([row]))[0])
        if t.dtype.kind not in "iu" or (t.size and t.min() < 1):
            seen = f"t.min() is {t.min()}" if t.dtype.kind in "iu" else f"t holds {t.dtype}"
            raise ConfigurationError(f"{seen}, expected integers of at least 1: rows count from 1.")
        return self._of(t)

    @abstractmethod
    def _of(self, t: NDArray[np.integer[Any]]) -> Vector:
        """The step sizes of rows ``t``, an array of integers that are at least 1."""


@dataclass(frozen=True)
class Constant(StepSize):
    """The same step size at every row: eta_t = value.

    The paper's choice for a loss with curvature sigma > 0 is ``Constant(sigma)``, for a regret that
    grows with log T (Theorem 1, second bound). Not for a loss without curvature, such as the
    absolute one: there a constant leaves a regret that grows with T.

    >>> Constant(0.125)(1)
    0.125
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", require_number(self.value, "value", above=0))

    def _of(self, t: NDArray[np.integer[Any]]) -> Vector:
        return np.full(t.shape, self.value)


@dataclass(frozen=True)
class InverseSqrt(StepSize):
    """A step size that falls with the square root of time: eta_t = sqrt(d / (L^2 C^2 t)).

    L is ``lipschitz``, C is ``bound``, d is ``dimension``. With d = 1 this is 1/(L C sqrt(t)), the
    paper's choice for sigma = 0 (Theorem 1, third bound). With the effective dimension of the data,
    if somebody knows it in advance, it is the oracle's choice named after that theorem, and the
    regret falls from d_eff*sqrt(T) to sqrt(d_eff*T). Not for a loss with usable curvature: its
    regret then grows with sqrt(T) where log T is to be had.

    >>> InverseSqrt(lipschitz=2.0, bound=1.0)(4)
    0.25
    >>> InverseSqrt(lipschitz=2.0, bound=1.0, dimension=9.0)(4)
    0.75
    """

    lipschitz: float
    bound: float
    dimension: float = 1.0

    def __post_init__(self) -> None:
        for name in ("lipschitz", "bound", "dimension"):
            object.__setattr__(self, name, require_number(getattr(self, name), name, above=0))

    def _of(self, t: NDArray[np.integer[Any]]) -> Vector:
        # eta_t = sqrt(d/t) / (L*C), written so that L^2 C^2 cannot overflow
        eta: Vector = np.sqrt(self.dimension / t) / (self.lipschitz * self.bound)
        return eta


@dataclass(frozen=True)
class FromFunction(StepSize):
    """A step size of the user's own: eta_t = function(t), called with one integer at a time.

    Each result must be a finite number above 0, which is checked whenever it is asked for, and for
    t = 1 at once. Costs a Python call per row. The same t must always give the same result: a
    function that remembers its calls makes a run depend on how its rows were cut into blocks.

    >>> def halving(t):
    ...     return 0.5 ** (t // 1000)
    >>> FromFunction(halving)
    FromFunction(function=halving)
    >>> FromFunction(halving)(1500)
    0.5
    """

    function: Callable[[int], float]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigurationError(
                f"function is {self.function!r}, expected a callable of t = 1, 2, 3, ..."
            )
        self._at(1)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return f"FromFunction(function={name})"

    def _at(self, t: int) -> float:
        try:
            eta = self.function(t)
        except Exception as error:
            raise ConfigurationError(
                f"step_size({t}) raised {type(error).__name__}: {error}; "
                "expected a finite number above 0 for every t = 1, 2, 3, ..."
            ) from error
        return require_number(eta, f"step_size({t})", above=0)

    def _of(self, t: NDArray[np.integer[Any]]) -> Vector:
        etas = [self._at(int(row)) for row in t.ravel()]
        return np.array(etas, dtype=np.float64).reshape(t.shape)


def as_step_size(value: Any) -> StepSize:
    """A step size from a number (constant), a function of t, or a :class:`StepSize` as it is.

    >>> as_step_size(0.5)
    Constant(value=0.5)
    >>> as_step_size(lambda t: 1 / t)(4)
    0.25
    """
    if isinstance(value, StepSize):
        return value
    if isinstance(value, numbers.Real):
        return Constant(require_number(value, "step_size", above=0))
    if callable(value) and not isinstance(value, type):
        return FromFunction(value)
    hint = f" Pass {value.__name__}(...)?" if isinstance(value, type) else ""
    raise ConfigurationError(
        f"step_size is {value!r}, expected a number above 0, a StepSize, "
        f"or a function of t = 1, 2, 3, ...{hint}"
    )


def for_descent(loss: Any, bound: float, name: str = "step_size") -> StepSize:
    """That of gradient descent over features of length 1, ``bound/(L sqrt(t))``: regret O(sqrt(T)).

    >>> from kons.losses import Hinge
    >>> for_descent(Hinge(), bound=2.0)(4)
    1.0
    """
    L = loss.lipschitz(bound)
    if not (math.isfinite(L) and L > 0.0):
        raise ConfigurationError(f"{loss!r} has the Lipschitz constant {L}: give {name}.")
    return InverseSqrt(L / bound, 1.0)


def for_loss(loss: Any, bound: float) -> StepSize:
    """The paper's step size for a loss on predictions in [-bound, bound] (Theorem 1).

    ``Constant(sigma)`` if the loss has curvature, ``InverseSqrt(L, bound)`` if sigma is 0. Not
    where sigma is tiny: by the theorem's own bounds a sigma above 0 pays once
    2 sigma L C sqrt(T) > 1, for the logistic loss at bound 10 after a million rows.

    >>> from kons.losses import Squared
    >>> for_loss(Squared(), bound=1.0)
    Constant(value=0.125)
    """
    bound = require_number(bound, "bound", above=0)
    sigma = require_number(loss.curvature(bound), "curvature", at_least=0)
    if sigma > 0:
        return Constant(sigma)
    return InverseSqrt(require_number(loss.lipschitz(bound), "lipschitz", above=0), bound)
