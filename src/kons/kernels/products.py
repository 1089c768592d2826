"""Kernels of the inner product of two points. They grow with the points, and can overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, require_integer, require_number
from kons.kernels.base import Kernel, require_finite

__all__ = ["Linear", "Polynomial"]


@dataclass(frozen=True)
class Linear(Kernel):
    """The inner product itself: the learner is then linear, in kernel clothes.

    ::

        k(x, z) = x·z

    Costs d multiplications a pair, as a matrix product. Not with many rows and few features, where
    a linear learner on the features themselves does the same in constant time a step. Has no
    intercept: ``Polynomial(degree=1)`` does. k(x, x) = |x|² is not 1.

    >>> from kons.kernels import Linear
    >>> Linear().gram([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[11.,  2.]])
    """

    def evaluate(self, X: Matrix, Z: Matrix) -> Matrix:
        """x·z."""
        with np.errstate(over="ignore", invalid="ignore"):
            values: Matrix = X @ Z.T
        return require_finite(values, self)

    def evaluate_diagonal(self, X: Matrix) -> Vector:
        """|x|²."""
        with np.errstate(over="ignore", invalid="ignore"):
            values: Vector = np.einsum("ij,ij->i", X, X)
        return require_finite(values, self)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """A power of the shifted inner product: all monomials of the features up to a degree.

    ::

        k(x, z) = (x·z + offset)^degree

    With ``offset=0`` only monomials of the full degree. Costs a matrix product and log2(degree)
    multiplications a pair. Not with features beyond [-1, 1] and a high degree, where k(x, x) ranges
    over many orders of magnitude: ``Normalized(Polynomial(degree=5))`` keeps it at 1.

    >>> from kons.kernels import Polynomial
    >>> Polynomial(degree=2, offset=1.0).gram([[1.0, 2.0]], [[3.0, 4.0], [0.0, 0.0]])
    array([[144.,   1.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", require_integer(self.degree, "degree", at_least=1))
        # With a negative offset the kernel is not positive semidefinite.
        object.__setattr__(self, "offset", require_number(self.offset, "offset", at_least=0.0))

    @property
    def may_vanish(self) -> bool:
        """Only without an offset, at x = 0."""
        return self.offset == 0.0

    def evaluate(self, X: Matrix, Z: Matrix) -> Matrix:
        """(x·z + offset)^degree."""
        return self._power(Linear().evaluate(X, Z))

    def evaluate_diagonal(self, X: Matrix) -> Vector:
        """(|x|² + offset)^degree."""
        return self._power(Linear().evaluate_diagonal(X))

    def _power(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """Square for every binary digit of the degree after the first, multiply where it is 1."""
        with np.errstate(over="ignore", invalid="ignore"):
            products += self.offset
            digits = f"{self.degree:b}"[1:]
            values = products.copy() if "1" in digits else products
            for digit in digits:
                values *= values
                if digit == "1":
                    values *= products
        return require_finite(values, self)
