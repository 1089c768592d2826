"""scikit-learn's kernels as kernels. scikit-learn is imported when the first one is made."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, require_integer, require_number
from kons.errors import ConfigurationError, InputError, MissingExtraError
from kons.kernels.base import Kernel, require_finite

__all__ = ["ScikitLearn"]

# The positive semidefinite functions of sklearn.metrics.pairwise, and what each can be given.
# Not sigmoid (indefinite) nor additive_chi2 (a negative distance, not a kernel).
PARAMETERS: dict[str, tuple[str, ...]] = {
    "chi2": ("gamma",),
    "cosine": (),
    "laplacian": ("gamma",),
    "linear": (),
    "poly": ("coef0", "degree", "gamma"),
    "polynomial": ("coef0", "degree", "gamma"),
    "rbf": ("gamma",),
}
NORMALIZED = ("chi2", "laplacian", "rbf")

# Rows whose diagonal is cut out of a square at a time, where scikit-learn has no shorter way.
BLOCK = 64


@dataclass(frozen=True)
class ScikitLearn(Kernel):
    """A kernel that scikit-learn computes: one of its Gaussian processes', or one of its names.

    ::

        k(x, z) = kernel(x, z)

    ``kernel`` is an instance from ``sklearn.gaussian_process.kernels``, copied as it is now, or a
    name from ``sklearn.metrics.pairwise`` with its parameters. Costs what it costs there, and a few
    tens of microseconds a call. Not for kernels that kons has itself, which are exact for equal
    points and faster; nor for white noise, which is no function of two points: the learner's
    regularization plays its part. A fractional power (``Exponentiation``) is taken on trust.

    >>> from kons.kernels import ScikitLearn
    >>> ScikitLearn("chi2", gamma=0.5).gram([[1.0, 0.0], [0.5, 0.5]]).round(3)
    array([[1.   , 0.717],
           [0.717, 1.   ]])
    >>> from sklearn.gaussian_process.kernels import ExpSineSquared
    >>> ScikitLearn(ExpSineSquared(periodicity=7.0)).gram([[0.0]], [[7.0], [3.5]]).round(3)
    array([[1.   , 0.135]])
    """

    kernel: Any
    parameters: tuple[tuple[str, float | None], ...]

    def __init__(self, kernel: Any, **parameters: float | None) -> None:
        theirs = _scikit_learn().gaussian_process.kernels
        if isinstance(kernel, str):
            checked = _checked_parameters(kernel, parameters)
        elif isinstance(kernel, theirs.Kernel):
            if parameters:
                raise ConfigurationError(
                    f"ScikitLearn got {kernel!r} and also {', '.join(sorted(parameters))}: "
                    "set parameters on the kernel itself."
                )
            _require_function_of_points(kernel)
            kernel, checked = copy.deepcopy(kernel), ()
        else:
            raise ConfigurationError(
                f"ScikitLearn got {kernel!r}, expected an instance from "
                f"sklearn.gaussian_process.kernels or one of the names {', '.join(PARAMETERS)}."
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "parameters", checked)

    @property
    def is_normalized(self) -> bool:
        """Where scikit-learn says so."""
        if isinstance(self.kernel, str):
            return self.kernel in NORMALIZED
        mixin = _scikit_learn().gaussian_process.kernels.NormalizedKernelMixin
        return isinstance(self.kernel, mixin)

    def evaluate(self, X: Matrix, Z: Matrix) -> Matrix:
        """kernel(x, z)."""
        if isinstance(self.kernel, str):
            pairwise_kernels = _scikit_learn().metrics.pairwise.pairwise_kernels
            return self._call(pairwise_kernels, X, Z, metric=self.kernel, **dict(self.parameters))
        return self._call(self.kernel, X, Z)

    def evaluate_diagonal(self, X: Matrix) -> Vector:
        """kernel(x, x)."""
        if self.is_normalized:
            return np.ones(X.shape[0])
        if not isinstance(self.kernel, str):
            return self._call(self.kernel.diag, X)
        blocks = [X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK)]
        return np.concatenate([np.diagonal(self.evaluate(block, block)) for block in blocks])

    def __hash__(self) -> int:
        """By value, although scikit-learn's kernels have no hash."""
        return hash((type(self.kernel), repr(self.kernel), self.parameters))

    def __repr__(self) -> str:
        """ScikitLearn(kernel, parameter=value)."""
        parts = [repr(self.kernel), *(f"{name}={value!r}" for name, value in self.parameters)]
        return f"ScikitLearn({', '.join(parts)})"

    def _call(self, function: Any, *points: Matrix, **parameters: Any) -> NDArray[np.float64]:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.array(function(*points, **parameters), dtype=np.float64, order="C")
        except ValueError as error:
            raise InputError(f"{self!r} refused the points: {error}") from error
        return require_finite(values, self)


def _scikit_learn() -> Any:
    try:
        import sklearn
        import sklearn.gaussian_process.kernels
        import sklearn.metrics.pairwise
    except ImportError:
        raise MissingExtraError("kons.kernels.ScikitLearn", "sklearn") from None
    return sklearn


def _checked_parameters(
    name: str, parameters: dict[str, float | None]
) -> tuple[tuple[str, float | None], ...]:
    """The parameters of a named kernel, sorted, within the range where it is semidefinite."""
    if name not in PARAMETERS:
        raise ConfigurationError(
            f"ScikitLearn got the name {name!r}, expected a positive semidefinite kernel: "
            f"{', '.join(PARAMETERS)}."
        )
    for parameter in parameters:
        if parameter not in PARAMETERS[name]:
            known = ", ".join(PARAMETERS[name]) or "no parameter"
            raise ConfigurationError(f"ScikitLearn({name!r}) got {parameter}, expected {known}.")
    checked: dict[str, float | None] = dict(parameters)
    if checked.get("gamma") is not None:
        checked["gamma"] = require_number(checked["gamma"], "gamma", above=0.0)
    if "degree" in checked:
        checked["degree"] = require_integer(checked["degree"], "degree", at_least=1)
    if "coef0" in checked:
        checked["coef0"] = require_number(checked["coef0"], "coef0", at_least=0.0)
    return tuple(sorted(checked.items()))


def _require_function_of_points(kernel: Any) -> None:
    theirs = _scikit_learn().gaussian_process.kernels
    for part in _parts(kernel):
        if isinstance(part, theirs.WhiteKernel):
            raise ConfigurationError(
                f"ScikitLearn got {kernel!r}, which contains a WhiteKernel: noise is no function "
                "of two points. Leave it out and give its noise_level to the learner as "
                "regularization."
            )
        if isinstance(part, theirs.CompoundKernel):
            raise ConfigurationError(
                f"ScikitLearn got {kernel!r}, a CompoundKernel of several kernels at once: "
                "expected one. Add or multiply them, or use one learner for each."
            )
        metric = getattr(part, "metric", None) if isinstance(part, theirs.PairwiseKernel) else None
        if isinstance(metric, str) and metric not in PARAMETERS:
            raise ConfigurationError(
                f"ScikitLearn got {kernel!r}, whose metric {metric!r} is not positive "
                f"semidefinite: expected one of {', '.join(PARAMETERS)}."
            )


def _parts(kernel: Any) -> Iterator[Any]:
    """A kernel and all that it is composed of."""
    base = _scikit_learn().gaussian_process.kernels.Kernel
    yield kernel
    for value in kernel.get_params(deep=False).values():
        if isinstance(value, base):
            yield from _parts(value)
