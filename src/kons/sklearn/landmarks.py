"""Nystrom features for linear models: landmarks of a stream, chosen by leverage."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import KORS
from kons.learners.scaled import WIDER
from kons.policies import Leverage
from kons.recipes import kernel_of
from kons.scaling import RobustScaling, median_bandwidth
from kons.sklearn.border import Saved, checked_rows, seed_of
from kons.stored import Stored

__all__ = ["KORSFeatures"]


class KORSFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Saved):  # type: ignore[misc]
    """Nystrom features on landmarks of a stream that were chosen by their ridge leverage.

    ::

        z(x) = L^-1 k_D(x),   L L^T = K_D:    z(x)^T z(x')  is close to  k(x, x')

    so that a linear model behind it learns what a kernel would. ``partial_fit`` appends landmarks, and
    with them columns, and changes none of the old ones. How many there are follows from the data:
    a smaller ``regularization`` or a larger ``oversampling`` keeps more.

    Parameters
    ----------
    kernel, bandwidth, scale:
        As in :class:`KONSRegressor`; ``"auto"`` reads bandwidth and scales off the rows of the first call.
    regularization:
        The ridge alpha of the leverage scores: directions with less weight than this are not resolved.
    oversampling:
        Times the leverage, the probability that a row is kept.
    random_state:
        Of the coins.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.sklearn import KORSFeatures
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> Z = KORSFeatures(random_state=0).fit_transform(X)
    >>> len(Z), bool(Z.shape[1] < 100), bool(abs((Z**2).sum(axis=1) - 1).max() < 0.05)
    (500, True, True)
    """

    _fitted = "sampler_"
    sampler_: KORS
    scaling_: RobustScaling | None

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        bandwidth: float | str = "auto",
        scale: str = "auto",
        regularization: float = 0.1,
        oversampling: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scale = scale
        self.regularization = regularization
        self.oversampling = oversampling
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose landmarks among the rows, from nothing."""
        return self._take(X, first=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Choose more landmarks among more rows."""
        return self._take(X, first=not hasattr(self, "sampler_"))

    def _take(self, X: Any, *, first: bool) -> Self:
        X = checked_rows(self, X, reset=first)
        if first:
            self._start(X)
        self.sampler_.advance(self._scaled(X))
        return self

    def transform(self, X: Any) -> Matrix:
        """The features, one column per landmark."""
        check_is_fitted(self, "sampler_")
        return self.sampler_.transform(self._scaled(checked_rows(self, X, reset=False)))

    @property
    def landmarks_(self) -> Matrix:
        """The landmarks, in scaled units."""
        landmarks: Matrix = self.sampler_.atoms
        return landmarks

    @property
    def _n_features_out(self) -> int:
        return len(self.sampler_._embedding)

    def _start(self, X: Matrix) -> None:
        """Scales and bandwidth of the first rows, and a sampler that has seen nothing."""
        if self.scale not in ("auto", "none"):
            raise ConfigurationError(f'scale is {self.scale!r}, expected "auto" or "none".')
        scaling = RobustScaling.fit(X) if self.scale == "auto" else None
        points = X if scaling is None else scaling.transform(X)
        bandwidths = np.array(
            [WIDER * median_bandwidth(points, absolute=absolute) for absolute in (False, True)]
        )
        seed = seed_of(self.random_state)
        self.sampler_ = self._sampler(bandwidths, seed)
        self.scaling_, self._bandwidths = scaling, bandwidths

    def _sampler(self, bandwidths: Vector, seed: int) -> KORS:
        kernel = kernel_of(self.kernel, self.bandwidth).resolved(*bandwidths.tolist())
        policy = Leverage(self.oversampling)
        return KORS(kernel, regularization=self.regularization, policy=policy, seed=seed)

    def _scaled(self, X: Matrix) -> Matrix:
        return X if self.scaling_ is None else self.scaling_.transform(X)

    def _fresh(self) -> KORS:
        return self._sampler(self._bandwidths, self.sampler_.seed)

    def _learned(self) -> dict[str, Any]:
        return {
            "seed": self.sampler_.seed,
            "bandwidths": self._bandwidths.copy(),
            "scaling": None if self.scaling_ is None else self.scaling_.state(),
            "sampler": self.sampler_.state(),
        }

    def _load(self, stored: Stored) -> None:
        scaling = stored.take("scaling")
        self.scaling_ = None
        if scaling is not None:
            self.scaling_ = RobustScaling.from_stored(Stored(scaling, "KORSFeatures"), self.n_features_in_)
        self._bandwidths = stored.array("bandwidths", 2, at_least=1e-300)
        fresh = self._sampler(self._bandwidths, stored.integer("seed"))
        self.sampler_ = fresh.resume(stored.take("sampler"))
