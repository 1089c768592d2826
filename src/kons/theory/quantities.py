"""How complex a set of points is for a kernel: leverage scores, effective dimension, log-determinant.

With the rescaled Gram matrix ``Kbar = sqrt(W) K sqrt(W)`` (W = 1 for the plain kernel, eta*g^2 for the one
of the regret bound) and a ridge alpha::

    tau_i   = [Kbar (Kbar + alpha*I)^-1]_ii        ridge leverage score     (Eq. 2)
    d_eff   = sum_i tau_i                          effective dimension      (Eq. 3)
    d_onl   = sum_t tau_tt                         each point among those before it
    log det = log det(Kbar/alpha + I)

Up to ``exact_up_to`` points they are exact, by a Cholesky factorization. Beyond, the points are projected on
Nystrom landmarks that KORS chooses: ``Kbar = Z Z^T + R`` with R positive semidefinite and a trace that is
known, which bounds what the projection can have missed. The bound stands beside the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector, as_objects, as_points, as_row_values, require_number
from kons.kernels import Kernel
from kons.learners import KORS
from kons.policies import Leverage

__all__ = [
    "Estimate",
    "effective_dimension",
    "log_determinant",
    "online_effective_dimension",
    "ridge_leverage_scores",
]

EXACT_UP_TO = 4000


class Estimate(float):
    """A number that lies in ``[value, value + error]``; ``error`` is 0 where it is exact.

    >>> round(Estimate(2.0, 0.5).high, 1)
    2.5
    """

    error: float

    def __new__(cls, value: float, error: float = 0.0) -> Estimate:
        self = super().__new__(cls, value)
        self.error = float(error)
        return self

    def __reduce__(self) -> tuple[type[Estimate], tuple[float, float]]:
        return type(self), (float(self), self.error)

    @property
    def high(self) -> float:
        """The upper end."""
        return float(self) + self.error

    @property
    def is_exact(self) -> bool:
        """Whether nothing was estimated."""
        return self.error == 0.0

    def __repr__(self) -> str:
        return f"{float(self):g}" if self.is_exact else f"{float(self):g} (at most {self.high:g})"


def ridge_leverage_scores(
    kernel: Kernel,
    X: Any,
    regularization: float = 1.0,
    *,
    weights: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
) -> Vector:
    """tau_i of each point among all of them (Eq. 2).

    Beyond ``exact_up_to`` points, lower bounds by projection on Nystrom landmarks; costs n^3/3 up to there,
    n*B^2 beyond.

    >>> import numpy as np
    >>> from kons import Linear
    >>> ridge_leverage_scores(Linear(), np.eye(2), regularization=1.0)
    array([0.5, 0.5])
    """
    points, w, alpha = _checked(kernel, X, weights, regularization)
    if len(w) <= exact_up_to:
        K = _rescaled_gram(kernel, points, w)
        # tau_i = 1 - alpha [(Kbar + alpha I)^-1]_ii, by the rows of L^-1.
        inverse = np.linalg.inv(np.linalg.cholesky(K + alpha * np.eye(len(w))))
        scores: Vector = 1.0 - alpha * np.einsum("ij,ij->j", inverse, inverse)
        return np.maximum(scores, 0.0)
    Z, _ = _projected(kernel, points, w, alpha)
    whitened = np.linalg.solve(np.linalg.cholesky(Z.T @ Z + alpha * np.eye(Z.shape[1])), Z.T)
    return np.asarray(np.einsum("ij,ij->j", whitened, whitened), dtype=np.float64)


def effective_dimension(
    kernel: Kernel,
    X: Any,
    regularization: float = 1.0,
    *,
    weights: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
) -> Estimate:
    """``d_eff = Tr(Kbar (Kbar + alpha*I)^-1)`` (Eq. 3): in how many dimensions the points behave to lie.

    >>> import numpy as np
    >>> from kons import Linear
    >>> effective_dimension(Linear(), np.eye(3), regularization=1.0)
    1.5
    """
    eigenvalues, missed, alpha = _spectrum(kernel, X, weights, regularization, exact_up_to)
    # d_eff(A + R) <= d_eff(A) + Tr(R)/alpha for positive semidefinite A and R.
    return Estimate(float(np.sum(eigenvalues / (eigenvalues + alpha))), missed / alpha)


def log_determinant(
    kernel: Kernel,
    X: Any,
    regularization: float = 1.0,
    *,
    weights: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
) -> Estimate:
    """``log det(Kbar/alpha + I)``, which bounds the online effective dimension (Lemma 3).

    >>> import numpy as np
    >>> from kons import Linear
    >>> round(float(log_determinant(Linear(), np.eye(2), regularization=1.0)), 4)
    1.3863
    """
    eigenvalues, missed, alpha = _spectrum(kernel, X, weights, regularization, exact_up_to)
    # log det(I + A + R) <= log det(I + A) + Tr(R).
    return Estimate(float(np.sum(np.log1p(eigenvalues / alpha))), missed / alpha)


def online_effective_dimension(
    kernel: Kernel,
    X: Any,
    regularization: float = 1.0,
    *,
    weights: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
    seed: int = 0,
) -> Estimate:
    """``d_onl = sum_t tau_tt``: each point's leverage among those up to it, in the order given.

    Beyond ``exact_up_to`` points, KORS's estimates: by Theorem 2, with high probability d_onl is between
    ``1/rho`` of their sum and their sum. The interval returned is that one, at the theory's oversampling.

    >>> import numpy as np
    >>> from kons import Linear
    >>> round(float(online_effective_dimension(Linear(), np.ones((3, 1)))), 4)
    1.0833
    """
    points, w, alpha = _checked(kernel, X, weights, regularization)
    if len(w) <= exact_up_to:
        # A floor of 1 keeps every point: the estimate of Eq. 4 is then (1 + eps) times the leverage.
        policy = Leverage(floor=1.0)
        trace = KORS(kernel, regularization=alpha, policy=policy).advance(points, w)
        assert trace.leverage_estimate is not None
        return Estimate(float(np.sum(trace.leverage_estimate)) / (1.0 + policy.distortion))
    policy = Leverage("theory", horizon=len(w))
    sampler = KORS(kernel, regularization=alpha, policy=policy, seed=seed)
    sampler.advance(points, w)
    high = sampler.online_effective_dimension
    return Estimate(high / policy.rho, high - high / policy.rho)


def _checked(kernel: Kernel, X: Any, weights: Any, regularization: Any) -> tuple[Any, Vector, float]:
    points = as_objects(X) if kernel.accepts == "objects" else as_points(X)
    w = as_row_values(weights, len(points), name="weights", minimum=0.0)
    return points, w, require_number(regularization, "regularization", above=0.0)


def _rescaled_gram(kernel: Kernel, points: Any, w: Vector) -> Matrix:
    roots = np.sqrt(w)
    K: Matrix = kernel.evaluate(points, points) * roots * roots[:, None]
    return (K + K.T) / 2.0


def _projected(kernel: Kernel, points: Any, w: Vector, alpha: float) -> tuple[Matrix, float]:
    """Rows sqrt(w) z of the points on KORS's landmarks, and the trace of what that leaves of Kbar."""
    sampler = KORS(kernel, regularization=alpha, policy=Leverage(oversampling=3.0))
    sampler.advance(points, w)
    Z = sampler.transform(points) * np.sqrt(w)[:, None]
    left = float(np.sum(w * kernel.evaluate_diagonal(points)) - np.sum(Z * Z))
    return Z, max(left, 0.0)


def _spectrum(
    kernel: Kernel, X: Any, weights: Any, regularization: Any, exact_up_to: int
) -> tuple[Vector, float, float]:
    """Eigenvalues of Kbar, or of its projection with the trace that it misses; and alpha."""
    points, w, alpha = _checked(kernel, X, weights, regularization)
    if len(w) <= exact_up_to:
        return np.maximum(np.linalg.eigvalsh(_rescaled_gram(kernel, points, w)), 0.0), 0.0, alpha
    Z, missed = _projected(kernel, points, w, alpha)
    return np.maximum(np.linalg.eigvalsh(Z.T @ Z), 0.0), missed, alpha
