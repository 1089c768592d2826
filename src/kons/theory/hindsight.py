"""The best fixed function in hindsight: what the regret is measured against.

::

    minimize   sum_t c_t l(f(x_t), y_t) + (alpha/2) |f|^2      over f with |f(x_t)| <= C for all t

In orthonormal coordinates of the span of the points (or of a dictionary, for many of them) this is a smooth
convex problem in a vector w with 2T linear constraints. It is solved by Newton's method and, where the
constraint is active, by a primal-dual interior point method, in some 15 to 30 steps. Its dual gives a lower
bound on the optimum at any point, from the strong convexity of the ridge: the gap between the two is
reported, not assumed. It covers the directions that the coordinates leave out because they are within
rounding of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, lapack

from kons.arrays import Matrix, Vector, as_row_values, as_targets, require_scale
from kons.core.embedding import Embedding
from kons.core.entry import KERNEL_ACCURACY
from kons.core.storage import take
from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Kernel
from kons.losses import Loss
from kons.theory.landmarks import EXACT_UP_TO, landmark_embedding

__all__ = ["Hindsight", "hindsight"]

GAP = 1e-8  # relative duality gap that is good enough


@dataclass(frozen=True, eq=False)
class Hindsight:
    """The solution: its loss, its norm, and how far from optimal it can be."""

    loss: float
    """``sum c_t l(f(x_t), y_t)``."""
    norm2: float
    """``|f|^2``."""
    objective: float
    """``loss + (alpha/2) norm2``."""
    gap: float
    """The objective is at most this far above the optimum (in the span, if ``exact`` is False)."""
    values: Vector = field(repr=False)
    """``f(x_t)``, all within the bound."""
    constrained: bool
    """Whether the bound was active."""
    exact: bool
    """Whether the span is that of all points."""
    coordinates: Vector = field(repr=False)
    embedding: Embedding = field(repr=False)

    def predict(self, X: Any) -> Vector:
        """The function at other points, not clipped."""
        scores: Vector = self.embedding.coordinates(self.embedding.kernel.as_points(X)) @ self.coordinates
        return scores

    def shrunk(self, factor: float, loss: Callable[[Vector], float], alpha: float) -> Hindsight:
        """``factor * f``, which keeps a feasible function feasible."""
        values, norm2 = factor * self.values, factor**2 * self.norm2
        total = loss(values)
        objective = total + 0.5 * alpha * norm2
        gap = self.gap + max(objective - self.objective, 0.0)
        smaller = replace(self, loss=total, norm2=norm2, objective=objective, gap=gap, values=values)
        return replace(smaller, coordinates=factor * self.coordinates)


def hindsight(
    kernel: Kernel,
    loss: Loss,
    X: Any,
    y: Any,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    sample_weight: Any = 1.0,
    exact_up_to: int = EXACT_UP_TO,
) -> Hindsight:
    """The function within the bound that would have been best, with a ridge of ``regularization/2``.

    Up to ``exact_up_to`` points in the span of all of them, O(n^3) a Newton step; beyond, in the span of
    at most 500 of KORS's landmarks, O(n*B^2), a comparator that is feasible but not the best of all. For
    losses with a second derivative.

    >>> import numpy as np
    >>> from kons import Linear, Squared
    >>> best = hindsight(Linear(), Squared(), [[1.0], [1.0]], [1.0, 0.0], regularization=1e-9)
    >>> best.values.round(6)
    array([0.5, 0.5])
    """
    points = kernel.as_points(X)
    targets = as_targets(y, len(points))
    C = require_scale(bound, "bound")
    alpha = require_scale(regularization, "regularization")
    loss.check_targets(targets, C)
    if not loss.has_second_derivative:
        raise ConfigurationError(
            f"hindsight needs a second derivative and {loss!r} has none: give it one, or use Squared, "
            "Logistic or SquaredHinge."
        )
    c = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
    exact = len(points) <= exact_up_to
    inside = np.zeros(len(points), dtype=bool)
    if exact:
        embedding = Embedding(kernel)
        # The most independent points first: the coordinates are then as well conditioned as any.
        order = lapack.dpstrf(kernel.evaluate(points, points), lower=1)[1] - 1
        for start in range(0, len(points), 256):
            some = order[start : start + 256]
            inside[some[embedding.extend(take(points, some), tolerance=1e-12, noise=KERNEL_ACCURACY)]] = True
    else:
        embedding = landmark_embedding(kernel, points, np.ones(len(points)), alpha)
    Z = embedding.coordinates(points)
    self_kernels = kernel.evaluate_diagonal(points)
    embedding.sound_residual(self_kernels, Z)
    problem = _Problem(Z, targets, c, loss, C, alpha)
    w, gap, slopes, constrained = problem.solve()
    if exact:
        gap += _outside(embedding, points, Z, slopes, np.flatnonzero(~inside)) / (2.0 * alpha)
    # Both methods keep |Z w| <= C; the clip is for the last bit.
    values = np.clip(Z @ w, -C, C)
    total = problem.loss_of(values)
    norm2 = float(w @ w)
    return Hindsight(
        loss=total,
        norm2=norm2,
        objective=total + 0.5 * alpha * norm2,
        gap=gap,
        values=values,
        constrained=constrained,
        exact=exact,
        coordinates=w,
        embedding=embedding,
    )


def _outside(
    embedding: Embedding, points: Any, Z: Matrix, slopes: Vector, dropped: NDArray[np.intp]
) -> float:
    """``|sum_t s_t r_t|^2`` with r_t what the span leaves of phi_t: almost 0, in exact mode."""
    if not len(dropped):
        return 0.0
    left, Z = take(points, dropped), Z[dropped]
    K = embedding.kernel.evaluate(left, left)
    R = K - Z @ Z.T
    # Inner products of vectors are at most the squares of their lengths, which are on the diagonal.
    largest = np.max(np.diagonal(R)) + np.max(embedding.rounding(np.diagonal(K), Z))
    found = np.max(np.abs(R))
    if found > largest:
        raise NumericalError(
            f"points within {largest:.2g} of the span of others have an inner product of {found:.2g} outside "
            "of it: the kernel is not positive definite or not symmetric."
        )
    return max(float(slopes[dropped] @ R @ slopes[dropped]), 0.0)


class _Problem:
    """minimize sum c l(Zw, y) + (alpha/2)|w|^2 subject to |Zw| <= C."""

    def __init__(self, Z: Matrix, y: Vector, c: Vector, loss: Loss, C: float, alpha: float) -> None:
        self.Z, self.y, self.c, self.loss, self.C, self.alpha = Z, y, c, loss, C, alpha
        # What can be gained at all, by which numbers are called small.
        zero = np.zeros(len(y))
        gradient = Z.T @ self.slopes(zero)
        gain = -float(gradient @ self._newton_step(self.curvatures(zero), gradient))
        self.scale = max(abs(self.loss_of(zero)), gain)

    def loss_of(self, v: Vector) -> float:
        return float(np.sum(self.c * self.loss.value(v, self.y)))

    def objective(self, w: Vector) -> float:
        return self.loss_of(self.Z @ w) + 0.5 * self.alpha * float(w @ w)

    def slopes(self, v: Vector) -> Vector:
        slopes: Vector = self.c * self.loss.slope(v, self.y)
        return slopes

    def curvatures(self, v: Vector) -> Vector:
        curvatures: Vector = self.c * self.loss.second_derivative(v, self.y)
        if np.min(curvatures) < 0.0:
            raise NumericalError(
                f"{self.loss!r} has the second derivative {np.min(curvatures):.3g}, expected at least 0: "
                "there is no best function for a loss that is not convex."
            )
        return curvatures

    def solve(self) -> tuple[Vector, float, Vector, bool]:
        """(w, duality gap, slopes of the Lagrangian's rows, whether the constraint is active)."""
        w = self._unconstrained()
        v = self.Z @ w
        if np.max(np.abs(v)) > self.C:
            return (*self._constrained(), True)
        slopes = self.slopes(v)
        return w, self._gap(0.0, self._gradient(w, slopes)), slopes, False

    def _unconstrained(self) -> Vector:
        """Newton's method with backtracking."""
        w = np.zeros(self.Z.shape[1])
        for _ in range(500):
            v = self.Z @ w
            gradient = self._gradient(w, self.slopes(v))
            step = self._newton_step(self.curvatures(v), gradient)
            decrement = float(-gradient @ step)
            if decrement <= 1e-12 * self.scale:
                # The objective no longer tells good from better: go on as long as the gradient does.
                after = self._gradient(w + step, self.slopes(self.Z @ (w + step)))
                if _norm(after) >= 0.5 * _norm(gradient):
                    return w
                w = w + step
                continue
            t, value = 1.0, self.objective(w)
            while self.objective(w + t * step) > value - 1e-4 * t * decrement:
                t *= 0.5
                if t < 1e-12:
                    return w
            w = w + t * step
        raise NumericalError("Newton's method did not converge in 500 steps: raise regularization.")

    def _constrained(self) -> tuple[Vector, float, Vector]:
        """Primal-dual interior point method (Boyd and Vandenberghe, 11.7): (w, gap, slopes).

        Multipliers ``upper`` of v <= C and ``lower`` of -v <= C. Every iterate is strictly feasible and its
        gap valid, so that the best one is returned wherever rounding ends the progress.
        """
        Z, C, n = self.Z, self.C, len(self.y)
        w, v = np.zeros(Z.shape[1]), np.zeros(n)
        upper = lower = np.full(n, self.scale / (n * C))
        best: tuple[Vector, float, Vector] = (w, np.inf, v)
        for _ in range(100):
            slackness = float(upper @ (C - v) + lower @ (C + v))
            slopes = self.slopes(v) + upper - lower
            gradient = self._gradient(w, slopes)
            gap = self._gap(slackness, gradient)
            if gap < best[1]:
                best = w, gap, slopes
            if gap <= GAP * max(abs(self.objective(w)), 1e-8 * self.scale):
                break
            mu = 0.1 * slackness / (2 * n)
            curvatures = self.curvatures(v) + upper / (C - v) + lower / (C + v)
            centred = self._gradient(w, self.slopes(v) + mu / (C - v) - mu / (C + v))
            dw = self._newton_step(curvatures, centred)
            dv = Z @ dw
            # The step goes downhill on the barrier function, whatever the multipliers are.
            value, decrement = self._barrier(w, mu), float(-centred @ dw)
            t = min(_to_zero(C - v, -dv), _to_zero(C + v, dv))
            while self._barrier(w + t * dw, mu) > value - 1e-4 * t * decrement + 1e-14 * self.scale:
                t *= 0.5
                if t < 1e-12:
                    return best
            d_upper = (mu + upper * dv) / (C - v) - upper
            d_lower = (mu - lower * dv) / (C + v) - lower
            s = min(_to_zero(upper, d_upper), _to_zero(lower, d_lower))
            w, upper, lower = w + t * dw, upper + s * d_upper, lower + s * d_lower
            v = Z @ w
        return best

    def _barrier(self, w: Vector, mu: float) -> float:
        """The objective with a logarithmic barrier, infinite outside of the bound."""
        v = self.Z @ w
        if np.max(np.abs(v)) >= self.C:
            return np.inf
        return self.objective(w) - mu * float(np.sum(np.log(self.C - v) + np.log(self.C + v)))

    def _gradient(self, w: Vector, slopes: Vector) -> Vector:
        gradient: Vector = self.Z.T @ slopes + self.alpha * w
        return gradient

    def _newton_step(self, curvatures: Vector, gradient: Vector) -> Vector:
        if not gradient.any():
            return np.zeros_like(gradient)
        H = (self.Z.T * curvatures) @ self.Z
        diagonal = np.diag_indices_from(H)
        H[diagonal] += self.alpha
        try:
            factor = cho_factor(H)
        except np.linalg.LinAlgError:  # alpha is below the rounding of the rest
            H[diagonal] += 1e-13 * np.trace(H)
            factor = cho_factor(H)
        step: Vector = -cho_solve(factor, gradient)
        return step

    def _gap(self, slackness: float, gradient: Vector) -> float:
        """Objective minus a dual value, from the slackness and the gradient of the Lagrangian.

        With multipliers >= 0 the Lagrangian is alpha-strongly convex, so its minimum is at least its value
        here minus |gradient|^2/(2 alpha), and that bounds the optimum from below. Its value here is the
        objective minus the slackness, the sum of multipliers times distances from the bound.
        """
        return slackness + float(gradient @ gradient) / (2.0 * self.alpha)


def _to_zero(values: Vector, change: Vector) -> float:
    """The largest step, at most 1, that keeps 1 % of each of the positive values."""
    falls = change < 0.0
    return min(1.0, 0.99 * float(np.min(-values[falls] / change[falls], initial=np.inf)))


def _norm(v: Vector) -> float:
    return float(np.linalg.norm(v))
