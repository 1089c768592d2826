"""What every loss offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from numpy.typing import ArrayLike

__all__ = ["Loss"]


class Loss(ABC):
    """A convex function of a prediction, given a target. Immutable.

    ``value``, ``slope`` and ``second_derivative`` take the prediction first, numbers or arrays that
    broadcast together, and return a float or a float64 array. A loss of your own is a
    :class:`~kons.losses.CustomLoss`, not a subclass.

    >>> import math
    >>> from kons.losses import Logistic
    >>> loss = Logistic()
    >>> loss.value(0.0, 1.0) == math.log(2), loss.slope([0.0, 0.0], [1.0, -1.0])
    (True, array([-0.5,  0.5]))
    """

    code: ClassVar[int | None] = None
    """The loss's code in compiled loops, or None: then it is called from Python, row by row."""

    @property
    def has_second_derivative(self) -> bool:
        """Whether a learner with ``second_order="hessian"`` can use this loss."""
        return True

    @abstractmethod
    def value(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        """l(prediction)."""

    @abstractmethod
    def slope(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        """l'(prediction), a derivative with respect to the prediction."""

    @abstractmethod
    def second_derivative(self, prediction: ArrayLike, target: ArrayLike) -> Any:
        """l''(prediction)."""

    @abstractmethod
    def lipschitz(self, bound: float) -> float:
        """L of Assumption 1: the largest absolute slope on [-bound, bound]."""

    @abstractmethod
    def curvature(self, bound: float) -> float:
        """The largest sigma for which Assumption 2 holds on [-bound, bound]; 0 if there is none."""

    @abstractmethod
    def check_targets(self, y: ArrayLike, bound: float) -> None:
        """Raise :class:`~kons.errors.TargetError` at the first target the loss cannot take."""
