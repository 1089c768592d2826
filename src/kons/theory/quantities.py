"""How complex a set of points is for a kernel: leverage scores, effective dimension, log-determinant.

With the rescaled Gram matrix ``Kbar = sqrt(W) K sqrt(W)`` (W = 1 for the plain kernel, eta*g^2 for the one
of the regret bound) and a ridge alpha::

    tau_i   = [Kbar (Kbar + alpha*I)^-1]_ii        ridge leverage score     (Eq. 2)
    d_eff   = sum_i tau_i                          effective dimension      (Eq. 3)
    d_onl   = sum_t tau_tt                         each point among those before it
    log det = log det(Kbar/alpha + I)

Up to ``exact_up_to`` points they are exact, by a Cholesky factorization. Beyond, the points are projected on
Nystrom landmarks that KORS chooses: ``Kbar = Z Z^T + R`` with R positive semidefinite and a diagonal that is
known, which bounds what the projection can have missed. The bound stands beside the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_row_values, require_scale
from kons.errors import NumericalError
from kons.kernels import Kernel
from kons.learners import KORS
from kons.policies import Leverage
from kons.theory.landmarks import EXACT_UP_TO, landmark_embedding

__all__ = [
    "Estimate",
    "LeverageScores",
    "effective_dimension",
    "log_determinant",
    "online_effective_dimension",
    "ridge_leverage_scores",
]


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


@dataclass(frozen=True, eq=False)
class LeverageScores:
    """Scores that lie in ``[values, values + errors]``; the errors are 0 where they are exact.

    >>> import numpy as np
    >>> LeverageScores(np.array([0.5, 0.25]), np.array([0.0, 0.125])).high
    array([0.5  , 0.375])
    """

    values: Vector
    errors: Vector

    @property
    def high(self) -> Vector:
        """The upper ends."""
        return self.values + self.errors

    @property
    def is_exact(self) -> bool:
        """Whether nothing was estimated."""
        return not self.errors.any()


def ridge_leverage_scores(
    kernel: Kernel,
    X: Any,
    regularization: float = 1.0,
    *,
    weights: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
) -> LeverageScores:
    """tau_i of each point among all of them (Eq. 2).

    Beyond ``exact_up_to`` points, lower bounds by projection on Nystrom landmarks, with ``errors`` that
    they are certain to lie within; costs n^3/3 up to there, n*B^2 beyond.

    >>> import numpy as np
    >>> from kons import Linear
    >>> ridge_leverage_scores(Linear(), np.eye(2), regularization=1.0).values
    array([0.5, 0.5])
    """
    points, w, alpha = _checked(kernel, X, weights, regularization)
    if len(w) <= exact_up_to:
        return LeverageScores(_exact_scores(_rescaled_gram(kernel, points, w), alpha), np.zeros(len(w)))
    Z, left = _projected(kernel, points, w, alpha)
    # With phi = z + r, z in the span and r orthogonal to it,
    #     tau_i = min over c of |phi_i - sum_j c_j phi_j|^2/alpha + |c|^2,
    # and the same of z is what the projection gives, with c = Z (Z^T Z + alpha I)^-1 z_i. Put this c into
    # the minimum: tau exceeds its value by at most |r_i - sum_j c_j r_j|^2/alpha.
    solved = np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T).T
    low: Vector = np.minimum(np.einsum("ij,ij->i", Z, solved), 1.0)
    size_of_c = np.sqrt(np.maximum(low - alpha * np.einsum("ij,ij->i", solved, solved), 0.0))
    missed = float(np.sum(left))
    error = np.minimum((np.sqrt(left) + np.sqrt(missed) * size_of_c) ** 2, missed) / alpha
    # Nor can a score exceed what it would be without the other points.
    alone = np.einsum("ij,ij->i", Z, Z) + left
    return LeverageScores(low, np.maximum(np.minimum(error, alone / (alone + alpha) - low), 0.0))


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
    # d_eff(A) <= d_eff(A + R) <= d_eff(A) + Tr(R)/alpha for positive semidefinite A and R.
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
    points = kernel.as_points(X)
    w = as_row_values(weights, len(points), name="weights", minimum=0.0)
    return points, w, require_scale(regularization, "regularization")


def _rescaled_gram(kernel: Kernel, points: Any, w: Vector) -> Matrix:
    roots = np.sqrt(w)
    K: Matrix = kernel.evaluate(points, points) * roots * roots[:, None]
    return (K + K.T) / 2.0


def _exact_scores(K: Matrix, alpha: float) -> Vector:
    """The diagonal of ``K (K + alpha*I)^-1``, by eigenvalues: rounding of K is told from a small alpha."""
    eigenvalues, V = np.linalg.eigh(K)
    eigenvalues = _nonnegative(eigenvalues)
    scores: Vector = (V**2) @ (eigenvalues / (eigenvalues + alpha))
    return np.minimum(scores, 1.0)  # but for rounding they are below


def _nonnegative(eigenvalues: NDArray[np.floating[Any]]) -> Vector:
    """Eigenvalues without their rounding below 0; more than rounding is an error."""
    if eigenvalues[0] < -1e-6 * abs(eigenvalues[-1]):
        raise NumericalError(
            f"the kernel is not positive semidefinite on these points: its Gram matrix has the eigenvalue "
            f"{eigenvalues[0]:.3g}. Use a kernel that is an inner product of features."
        )
    # What is below n*eps of the largest one is rounding: an alpha as small must not count it as a dimension.
    rounding = len(eigenvalues) * np.finfo(float).eps * abs(eigenvalues[-1])
    return np.asarray(np.where(eigenvalues > rounding, eigenvalues, 0.0), dtype=np.float64)


def _projected(kernel: Kernel, points: Any, w: Vector, alpha: float) -> tuple[Matrix, Vector]:
    """Rows sqrt(w) z of the points on KORS's landmarks, and the diagonal of what that leaves of Kbar."""
    embedding = landmark_embedding(kernel, points, w, alpha)
    Z = embedding.coordinates(points)
    left = w * embedding.sound_residual(kernel.evaluate_diagonal(points), Z)
    return Z * np.sqrt(w)[:, None], left


def _spectrum(
    kernel: Kernel, X: Any, weights: Any, regularization: Any, exact_up_to: int
) -> tuple[Vector, float, float]:
    """Eigenvalues of Kbar, or of its projection with the trace that it misses; and alpha."""
    points, w, alpha = _checked(kernel, X, weights, regularization)
    if len(w) <= exact_up_to:
        return _nonnegative(np.linalg.eigvalsh(_rescaled_gram(kernel, points, w))), 0.0, alpha
    Z, left = _projected(kernel, points, w, alpha)
    eigenvalues = np.maximum(np.linalg.eigvalsh(Z.T @ Z), 0.0)
    return eigenvalues, float(np.sum(left)), alpha
