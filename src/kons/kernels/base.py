"""What a kernel is: two verbs for people, two hooks for learners, and the operators."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_objects, as_points
from kons.errors import InputError, NumericalError

__all__ = ["Kernel", "require_finite"]


class Kernel(ABC):
    """A positive semidefinite function of two points, k(x, z) = φ(x)·φ(z).

    People call :meth:`gram` and :meth:`diagonal`, which check what they are given. Learners, whose
    points were checked at the border, call the hooks :meth:`evaluate` and
    :meth:`evaluate_diagonal`. A kernel of your own implements the two hooks. Kernels never change:
    they compare and hash by value and can be shared between learners.

    **When k(x, x) is not 1.** The paper assumes k(x, x) = 1. Otherwise every computation stays
    correct: the inverse form q, the leverage and the lower bound on q all carry k(x, x). Only the
    constants of the theorems that assume 1 must be multiplied by max k(x, x), which has to be
    finite over the stream. Wrap the kernel in :class:`~kons.kernels.Normalized` to restore it.

    Kernels combine with operators:

    >>> from kons.kernels import Gaussian, Linear
    >>> k = 0.5 * Gaussian(bandwidth=2.0) + Linear()
    >>> k.gram([[0.0], [1.0]], [[0.0]])
    array([[0.5       ],
           [0.44124845]])
    """

    # NumPy scalars hand `np.float64(2) * kernel` over to __rmul__ instead of making an array of it.
    __array_ufunc__ = None

    @property
    def accepts(self) -> Literal["vectors", "objects"]:
        """What a point is: a row of numbers, or any Python object."""
        return "vectors"

    @property
    def is_normalized(self) -> bool:
        """Whether k(x, x) is 1 at every x; False where that is not known."""
        return False

    @property
    def may_vanish(self) -> bool:
        """Whether k(x, x) may be 0 at some x; True where that is not known."""
        return not self.is_normalized

    @property
    def squared_exponential_rate(self) -> float | None:
        """The c of k(x, z) = exp(-c|x - z|²), if k has this form: row loops then compile it in."""
        return None

    @property
    def is_resolved(self) -> bool:
        """Whether every bandwidth is a number; False where one is ``"auto"``."""
        return True

    def resolved(self, bandwidth: float, absolute: float | None = None) -> Kernel:
        """The kernel with every ``"auto"`` filled in, by ``bandwidth``.

        ``absolute`` is for kernels of the sum of absolute differences, which is the longer distance:
        without it they take ``bandwidth`` as well. A kernel without ``"auto"`` is returned as it is.
        """
        return self

    def gram(self, X: Any, Z: Any = None) -> Matrix:
        """The values k(X[i], Z[j]) as a new array of shape (rows of X, rows of Z).

        Without ``Z``, those among the rows of ``X``.
        """
        points = self.as_points(X)
        if Z is None:
            return self.evaluate(points, points)
        others = self.as_points(Z, "Z")
        if self.accepts == "vectors" and points.shape[1] != others.shape[1]:
            raise InputError(
                f"Z has {others.shape[1]} feature(s), X has {points.shape[1]}: "
                "expected the same features in the same order."
            )
        return self.evaluate(points, others)

    def diagonal(self, X: Any) -> Vector:
        """The values k(X[i], X[i]) as a new array, without computing the rest of the matrix."""
        return self.evaluate_diagonal(self.as_points(X))

    @abstractmethod
    def evaluate(self, X: Any, Z: Any) -> Matrix:
        """:meth:`gram` on trusted points: C-contiguous float64 matrices, or lists of objects.

        Returns a new, writable, C-contiguous float64 array. Nothing is checked.
        """

    def evaluate_into(self, X: Any, Z: Any, out: Matrix) -> None:
        """:meth:`evaluate` in the first columns of ``out``: C-contiguous, with a row for each of X.

        For callers who use the same memory again. Kernels of a distance need no other.
        """
        out[:, : len(Z)] = self.evaluate(X, Z)

    @abstractmethod
    def evaluate_diagonal(self, X: Any) -> Vector:
        """:meth:`diagonal` on trusted points."""

    def __add__(self, other: object) -> Kernel:
        """The sum of two kernels."""
        from kons.kernels.composition import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: object) -> Kernel:
        """The product with another kernel, or with a positive number."""
        from kons.kernels.composition import Multiple, Product

        if isinstance(other, Kernel):
            return Product(self, other)
        factor: Any = other
        return Multiple(factor, self) if isinstance(other, numbers.Real) else NotImplemented

    __rmul__ = __mul__

    def as_points(self, X: Any, name: str = "X") -> Any:
        """X as the hooks take it, checked: a matrix, or a list of objects."""
        return as_points(X, name=name) if self.accepts == "vectors" else as_objects(X, name=name)


def require_finite(values: NDArray[np.float64], kernel: Kernel) -> NDArray[np.float64]:
    """The values of a kernel, refused where it overflowed: an infinity here is a NaN in every learner."""
    if np.isfinite(values).all():
        return values
    position = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    pair = (position[0], position[-1])
    raise NumericalError(
        f"{kernel!r} is {values[position]} at the pair of rows {pair}, expected a finite number: "
        "the points are too large for it. Scale the features, lower the degree, or use a bounded "
        "kernel such as Gaussian."
    )
