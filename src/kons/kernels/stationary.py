"""Kernels of the distance between two points. Each is 1 at distance 0 and falls from there."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from kons.arrays import Matrix, Vector, require_number
from kons.errors import ConfigurationError
from kons.kernels.base import Kernel
from kons.kernels.distances import absolute_distances, squared_distances

__all__ = ["Gaussian", "Laplace", "Matern", "RationalQuadratic", "Stationary"]

# exp(-800) is 0 in float64. Matern stops its distances here, lest infinity times 0 be NaN.
FARTHEST = 800.0

# Entries that Matern turns at a time: its temporary arrays then stay in the cache.
BLOCK = 16384


@dataclass(frozen=True)
class Stationary(Kernel):
    """What kernels of a distance share: a bandwidth, and k(x, x) = 1.

    ``bandwidth="auto"`` leaves it to :class:`kons.Scaled`, which reads it off the first rows.
    """

    bandwidth: float | Literal["auto"] = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str) and self.bandwidth == "auto":
            return
        require_number(self.bandwidth, "bandwidth", above=0.0)
        # Beyond these its square leaves float64, and 0 times infinity would be NaN.
        bandwidth = require_number(self.bandwidth, "bandwidth", at_least=1e-150, at_most=1e150)
        object.__setattr__(self, "bandwidth", bandwidth)

    @property
    def is_normalized(self) -> bool:
        """Yes: the distance from a point to itself is 0."""
        return True

    @property
    def is_resolved(self) -> bool:
        """Whether the bandwidth is a number."""
        return self.bandwidth != "auto"

    def resolved(self, bandwidth: float, absolute: float | None = None) -> Kernel:
        """The kernel with this bandwidth, if it has none of its own yet."""
        return self if self.is_resolved else replace(self, bandwidth=bandwidth)

    def evaluate(self, X: Matrix, Z: Matrix) -> Matrix:
        """K of all pairs, as a new array."""
        values = np.empty((X.shape[0], Z.shape[0]))
        self.evaluate_into(X, Z, values)
        return values

    @abstractmethod
    def evaluate_into(self, X: Matrix, Z: Matrix, out: Matrix) -> None:
        """K of all pairs, in the first columns of ``out``."""

    def evaluate_diagonal(self, X: Matrix) -> Vector:
        """Ones."""
        self._width()
        return np.ones(X.shape[0])

    def _width(self) -> float:
        """The bandwidth as a number, or an error that says where one comes from."""
        if isinstance(self.bandwidth, str):
            raise ConfigurationError(
                f"{self!r} has no bandwidth yet: wrap the learner in kons.Scaled, which finds one in the "
                "first rows, or give a number."
            )
        return self.bandwidth


@dataclass(frozen=True)
class Gaussian(Stationary):
    """The Gaussian kernel, also called RBF or squared exponential.

    ::

        k(x, z) = exp(-|x - z|² / (2 bandwidth²))

    Costs one exponential and d differences a pair, some 2 ns at 8 features. Not for targets with
    jumps or kinks, which :class:`Laplace` and :class:`Matern` follow with fewer points; nor for
    features on different scales, which have to be scaled first.

    scikit-learn's ``rbf`` has ``gamma = 1 / (2 bandwidth²)``.

    >>> from kons.kernels import Gaussian
    >>> Gaussian(bandwidth=1.0).gram([[0.0], [1.0], [3.0]]).round(3)
    array([[1.   , 0.607, 0.011],
           [0.607, 1.   , 0.135],
           [0.011, 0.135, 1.   ]])
    """

    def evaluate_into(self, X: Matrix, Z: Matrix, out: Matrix) -> None:
        """exp(-|x - z|² / (2 bandwidth²))."""
        exponents = squared_distances(X, Z, -0.5 / self._width() ** 2, out)
        np.exp(exponents, out=exponents)

    @property
    def squared_exponential_rate(self) -> float | None:
        """1/(2 bandwidth²)."""
        return 0.5 / self._width() ** 2 if self.is_resolved else None


@dataclass(frozen=True)
class Laplace(Stationary):
    """The Laplace kernel of the sum of absolute differences: a product over the features.

    ::

        k(x, z) = exp(-|x - z|₁ / bandwidth),   |x - z|₁ = Σ_j |x_j - z_j|

    Costs what :class:`Gaussian` costs, up to a hundred features; beyond, up to twice as much.
    Not for smooth targets, where it learns slowly, nor when directions other than the axes matter:
    with the Euclidean distance instead, the kernel is ``Matern(smoothness=0.5)``.

    scikit-learn's ``laplacian`` has ``gamma = 1 / bandwidth``.

    >>> from kons.kernels import Laplace
    >>> Laplace(bandwidth=2.0).gram([[0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]).round(3)
    array([[0.368, 1.   ]])
    """

    def evaluate_into(self, X: Matrix, Z: Matrix, out: Matrix) -> None:
        """exp(-|x - z|₁ / bandwidth)."""
        exponents = absolute_distances(X, Z, -1.0 / self._width(), out)
        np.exp(exponents, out=exponents)

    def resolved(self, bandwidth: float, absolute: float | None = None) -> Kernel:
        """The kernel with the bandwidth ``absolute``, if it has none of its own yet."""
        return super().resolved(bandwidth if absolute is None else absolute)


@dataclass(frozen=True)
class Matern(Stationary):
    """The Matérn kernel: how often its functions can be differentiated is a parameter.

    ::

        u = √(2 smoothness) |x - z| / bandwidth

        smoothness 0.5:   k(x, z) = exp(-u)                     continuous
        smoothness 1.5:   k(x, z) = (1 + u) exp(-u)             once differentiable
        smoothness 2.5:   k(x, z) = (1 + u + u²/3) exp(-u)      twice differentiable

    Costs two to three times what :class:`Gaussian` costs, which is its limit of infinite smoothness
    and to be preferred for smooth targets. The bandwidth is scikit-learn's ``length_scale``.

    >>> from kons.kernels import Matern
    >>> Matern(bandwidth=1.0, smoothness=1.5).gram([[0.0]], [[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.483, 0.14 ]])
    """

    smoothness: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        smoothness = require_number(self.smoothness, "smoothness", above=0.0)
        if smoothness not in (0.5, 1.5, 2.5):
            raise ConfigurationError(
                f"smoothness is {smoothness:g}, expected 0.5, 1.5 or 2.5: the other values need "
                "Bessel functions. For smoother functions use Gaussian; any smoothness is "
                "available as ScikitLearn(sklearn.gaussian_process.kernels.Matern(nu=...))."
            )
        object.__setattr__(self, "smoothness", smoothness)

    def evaluate_into(self, X: Matrix, Z: Matrix, out: Matrix) -> None:
        """polynomial(u) exp(-u)."""
        squares = squared_distances(X, Z, 2.0 * self.smoothness / self._width() ** 2, out)
        rows = max(BLOCK // max(len(Z), 1), 1)
        for start in range(0, len(squares), rows):
            self._profile(squares[start : start + rows])

    def _profile(self, squares: Matrix) -> None:
        """From u² to k, in place."""
        u = np.sqrt(squares)
        if u.size and u.max() > FARTHEST:
            np.minimum(u, FARTHEST, out=u)
        decay = np.negative(u)
        np.exp(decay, out=decay)
        if self.smoothness == 0.5:
            squares[:] = decay
            return
        if self.smoothness == 2.5:
            u *= 1.0 + u / 3.0
        u += 1.0
        np.multiply(u, decay, out=squares)


@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """The rational quadratic kernel: Gaussian kernels of many bandwidths, averaged.

    ::

        k(x, z) = (1 + |x - z|² / (2 mixture bandwidth²))^-mixture

    A small ``mixture`` spreads the bandwidths widely, a large one approaches :class:`Gaussian`.
    Costs about twice what Gaussian costs. Not to save tuning: it falls slowly, so that every point
    stays related to every other and the effective dimension is often larger.

    >>> from kons.kernels import RationalQuadratic
    >>> RationalQuadratic(bandwidth=1.0, mixture=1.0).gram([[0.0]], [[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.667, 0.333]])
    """

    mixture: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number(self.mixture, "mixture", above=0.0)
        mixture = require_number(self.mixture, "mixture", at_least=1e-6, at_most=1e6)
        object.__setattr__(self, "mixture", mixture)

    def evaluate_into(self, X: Matrix, Z: Matrix, out: Matrix) -> None:
        """exp(-mixture log(1 + |x - z|² / (2 mixture bandwidth²)))."""
        values = squared_distances(X, Z, 0.5 / (self.mixture * self._width() ** 2), out)
        np.log1p(values, out=values)
        values *= -self.mixture
        np.exp(values, out=values)
