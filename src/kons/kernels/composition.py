"""Kernels made of kernels: sums, products, multiples, and the normalized kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, require_scale
from kons.errors import ConfigurationError, NumericalError
from kons.kernels.base import Kernel, require_finite

__all__ = ["Multiple", "Normalized", "Product", "Sum"]


class _Composite(Kernel):
    """A frozen dataclass of kernels on the same kind of points, and numbers."""

    @property
    def _parts(self) -> dict[str, Kernel]:
        return {name: part for name, part in vars(self).items() if isinstance(part, Kernel)}

    @property
    def accepts(self) -> Literal["vectors", "objects"]:
        """What the kernels accept."""
        return next(iter(self._parts.values())).accepts

    @property
    def is_resolved(self) -> bool:
        """Where all kernels are."""
        return all(part.is_resolved for part in self._parts.values())

    def resolved(self, bandwidth: float, absolute: float | None = None) -> Kernel:
        """The same of the kernels, resolved."""
        if self.is_resolved:
            return self
        parts = {name: part.resolved(bandwidth, absolute) for name, part in self._parts.items()}
        whole: Kernel = replace(cast(Any, self), **parts)
        return whole


@dataclass(frozen=True)
class _Pair(_Composite):
    """Two kernels whose values are combined, each pair of points by itself."""

    left: Kernel
    right: Kernel
    _combine: ClassVar[np.ufunc]

    def __post_init__(self) -> None:
        name = type(self).__name__
        _require_kernel(self.left, name)
        _require_kernel(self.right, name)
        if self.left.accepts != self.right.accepts:
            vectors, objects = self.left, self.right
            if vectors.accepts == "objects":
                vectors, objects = objects, vectors
            raise ConfigurationError(
                f"{name} cannot join {vectors!r}, on rows of numbers, with {objects!r}, on Python "
                "objects. If the objects hold numbers, turn the first into a kernel on objects, "
                "FunctionKernel(lambda x, z: k.gram([x.numbers], [z.numbers])[0, 0]); if they are "
                "rows of numbers, write the second as a Kernel with evaluate and "
                "evaluate_diagonal."
            )

    def evaluate(self, X: Any, Z: Any) -> Matrix:
        """Both values of each pair of points, combined."""
        return self._combined(lambda kernel: kernel.evaluate(X, Z))

    def evaluate_diagonal(self, X: Any) -> Vector:
        """Both values of each point and itself, combined."""
        return self._combined(lambda kernel: kernel.evaluate_diagonal(X))

    def _combined(self, values_of: Callable[[Kernel], NDArray[np.float64]]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            values = values_of(self.left)
            self._combine(values, values_of(self.right), out=values)
        return require_finite(values, self)


@dataclass(frozen=True)
class Sum(_Pair):
    """The sum of two kernels, written ``k1 + k2``: its functions are sums of functions of each.

    ::

        k(x, z) = left(x, z) + right(x, z)

    Costs both kernels. Not to hedge between bandwidths when either alone would do: the effective
    dimension is up to the sum of both. k(x, x) = 1 is lost; weights that add up to 1 restore it.

    >>> from kons.kernels import Gaussian, Linear
    >>> Gaussian() + Linear()
    Sum(left=Gaussian(bandwidth=1.0), right=Linear())
    >>> (Gaussian() + Linear()).diagonal([[2.0]])
    array([5.])
    """

    _combine = np.add

    @property
    def may_vanish(self) -> bool:
        """Where both do."""
        return self.left.may_vanish and self.right.may_vanish


@dataclass(frozen=True)
class Product(_Pair):
    """The product of two kernels, written ``k1 * k2``: alike only where both say so.

    ::

        k(x, z) = left(x, z) right(x, z)

    Costs both kernels. Not with many factors: the effective dimension multiplies.

    >>> from kons.kernels import Gaussian, Laplace
    >>> k = Gaussian(bandwidth=1.0) * Laplace(bandwidth=2.0)
    >>> k.gram([[0.0]], [[0.0], [1.0]]).round(3)
    array([[1.   , 0.368]])
    """

    _combine = np.multiply

    def __post_init__(self) -> None:
        super().__post_init__()
        require_scale(_factor(self), "the product of the factors of two kernels")

    @property
    def is_normalized(self) -> bool:
        """Where both are."""
        return self.left.is_normalized and self.right.is_normalized

    @property
    def may_vanish(self) -> bool:
        """Where either does."""
        return self.left.may_vanish or self.right.may_vanish


@dataclass(frozen=True)
class Multiple(_Composite):
    """A positive multiple of a kernel, written ``2.0 * k``: the weight of a part in a sum.

    ::

        k(x, z) = factor kernel(x, z)

    Costs the kernel. Not alone: a learner with ``factor * k`` and ``factor * regularization`` is
    the learner with k and the regularization.

    >>> from kons.kernels import Gaussian
    >>> 2 * Gaussian()
    Multiple(factor=2.0, kernel=Gaussian(bandwidth=1.0))
    >>> (2 * Gaussian()).diagonal([[0.0], [5.0]])
    array([2., 2.])
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        _require_kernel(self.kernel, "Multiple")
        object.__setattr__(self, "factor", require_scale(self.factor, "the factor of a kernel"))
        require_scale(_factor(self), "the factor of a kernel, with those inside it,")

    @property
    def is_normalized(self) -> bool:
        """Only the multiple by 1 of a kernel that is."""
        return self.factor == 1.0 and self.kernel.is_normalized

    @property
    def may_vanish(self) -> bool:
        """Where the kernel does."""
        return self.kernel.may_vanish

    def evaluate(self, X: Any, Z: Any) -> Matrix:
        """Factor times kernel(x, z)."""
        return self._times(self.kernel.evaluate(X, Z))

    def evaluate_diagonal(self, X: Any) -> Vector:
        """Factor times kernel(x, x)."""
        return self._times(self.kernel.evaluate_diagonal(X))

    def _times(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            values *= self.factor
        return require_finite(values, self)


@dataclass(frozen=True)
class Normalized(_Composite):
    """The cosine of two points in the space of another kernel; restores k(x, x) = 1.

    ::

        k(x, z) = kernel(x, z) / √(kernel(x, x) kernel(z, z)),   0 where kernel(x, x) = 0

    Costs the kernel, its two diagonals and two divisions a pair. Not when the length of a point
    says something: ``Normalized(Linear())`` cannot tell x from 2x. A point with kernel(x, x) = 0,
    such as the zero vector under Linear, keeps k(x, x) = 0.

    >>> from kons.kernels import Normalized, Polynomial
    >>> Normalized(Polynomial(degree=3)).gram([[0.0], [10.0]]).round(3)
    array([[1.   , 0.001],
           [0.001, 1.   ]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        _require_kernel(self.kernel, "Normalized")

    @property
    def is_normalized(self) -> bool:
        """Unless the kernel may vanish: then k(x, x) is 1 or 0."""
        return not self.kernel.may_vanish

    def evaluate(self, X: Any, Z: Any) -> Matrix:
        """kernel(x, z) / √(kernel(x, x) kernel(z, z))."""
        values = self.kernel.evaluate(X, Z)
        lengths = self._lengths(X)
        values /= lengths[:, np.newaxis]
        values /= lengths if X is Z else self._lengths(Z)
        # Cauchy-Schwarz, which rounding may have broken in the last bit.
        np.maximum(values, -1.0, out=values)
        np.minimum(values, 1.0, out=values)
        if X is Z:
            np.fill_diagonal(values, lengths < np.inf)
        return values

    def evaluate_diagonal(self, X: Any) -> Vector:
        """1, or 0 where kernel(x, x) = 0."""
        return (self._lengths(X) < np.inf).astype(np.float64)

    def _lengths(self, X: Any) -> Vector:
        """√kernel(x, x), and infinity for 0, so that dividing by it gives 0."""
        squared = self.kernel.evaluate_diagonal(X)
        if squared.min() < 0.0:
            at = int(squared.argmin())
            raise NumericalError(
                f"{self.kernel!r} is {squared[at]:g} at row {at} and itself, expected at least 0: "
                "it is not positive semidefinite, and no kernel to learn with."
            )
        squared[squared == 0.0] = np.inf
        return np.sqrt(squared, out=squared)


def _require_kernel(kernel: object, where: str) -> None:
    if not isinstance(kernel, Kernel):
        raise ConfigurationError(
            f"{where} got {kernel!r}, expected a kernel such as Gaussian(): wrap a function as "
            "FunctionKernel(f), a scikit-learn kernel as ScikitLearn(k)."
        )


def _factor(kernel: Kernel) -> float:
    """What a kernel is multiplied by, as far as that can be seen; second-order learners square its values."""
    if isinstance(kernel, Multiple):
        return kernel.factor * _factor(kernel.kernel)
    if isinstance(kernel, Product):
        return _factor(kernel.left) * _factor(kernel.right)
    return 1.0
