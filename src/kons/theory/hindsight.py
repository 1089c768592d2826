"""The best fixed function in hindsight: what the regret is measured against.

::

    minimize   sum_t c_t l(f(x_t), y_t) + (alpha/2) |f|^2      over f with |f(x_t)| <= C for all t

In orthonormal coordinates of the span of the points (or of a dictionary, for many of them) this is a smooth
convex problem in a vector w with 2T linear constraints. It is solved by Newton's method, with a logarithmic
barrier where the constraint is active. Its dual gives a lower bound on the optimum at any point, from the
strong convexity of the ridge: the gap between the two is reported, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kons.arrays import Matrix, Vector, as_objects, as_points, as_row_values, as_targets, require_number
from kons.core.embedding import Embedding
from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Kernel
from kons.learners import KORS
from kons.losses import Loss
from kons.policies import Leverage

__all__ = ["Hindsight", "hindsight"]

EXACT_UP_TO = 4000
GAP = 1e-9  # relative duality gap that is good enough


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
        """F at other points, not clipped."""
        points = as_objects(X) if self.embedding.kernel.accepts == "objects" else as_points(X)
        scores: Vector = self.embedding.coordinates(points) @ self.coordinates
        return scores

    def shrunk(self, factor: float, loss: Callable[[Vector], float], alpha: float) -> Hindsight:
        """``factor * f``, which keeps a feasible function feasible."""
        values, norm2 = factor * self.values, factor**2 * self.norm2
        total = loss(values)
        objective = total + 0.5 * alpha * norm2
        return Hindsight(
            loss=total,
            norm2=norm2,
            objective=objective,
            gap=self.gap + max(objective - self.objective, 0.0),
            values=values,
            constrained=self.constrained,
            exact=self.exact,
            coordinates=factor * self.coordinates,
            embedding=self.embedding,
        )


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
    KORS's landmarks, O(n*B^2), a comparator that is feasible but not the best of all. For losses with
    a second derivative.

    >>> import numpy as np
    >>> from kons import Linear, Squared
    >>> best = hindsight(Linear(), Squared(), [[1.0], [1.0]], [1.0, 0.0], regularization=1e-9)
    >>> best.values.round(6)
    array([0.5, 0.5])
    """
    points = as_objects(X) if kernel.accepts == "objects" else as_points(X)
    targets = as_targets(y, len(points))
    C = require_number(bound, "bound", above=0.0)
    alpha = require_number(regularization, "regularization", above=0.0)
    loss.check_targets(targets, C)
    if not loss.has_second_derivative:
        raise ConfigurationError(
            f"hindsight needs a second derivative and {loss!r} has none: give it one, or use Squared, "
            "Logistic or SquaredHinge."
        )
    c = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
    exact = len(points) <= exact_up_to
    embedding = Embedding(kernel)
    if exact:
        for start in range(0, len(points), 256):
            embedding.extend(points[start : start + 256])
    else:
        sampler = KORS(kernel, regularization=alpha, policy=Leverage(oversampling=3.0))
        sampler.advance(points)
        embedding.extend(sampler.atoms)
    Z = embedding.coordinates(points)
    problem = _Problem(Z, targets, c, loss, C, alpha)
    w, gap, constrained = problem.solve()
    # Rounding may leave a value an ulp outside: shrink towards 0, which is feasible.
    largest = float(np.max(np.abs(Z @ w), initial=0.0))
    if largest > C:
        w = w * (C / largest)
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


class _Problem:
    """minimize sum c l(Zw, y) + (alpha/2)|w|^2 subject to |Zw| <= C."""

    def __init__(self, Z: Matrix, y: Vector, c: Vector, loss: Loss, C: float, alpha: float) -> None:
        self.Z, self.y, self.c, self.loss, self.C, self.alpha = Z, y, c, loss, C, alpha

    def loss_of(self, v: Vector) -> float:
        return float(np.sum(self.c * self.loss.value(v, self.y)))

    def objective(self, w: Vector, v: Vector) -> float:
        return self.loss_of(v) + 0.5 * self.alpha * float(w @ w)

    def solve(self) -> tuple[Vector, float, bool]:
        """(w, duality gap, whether the constraint is active)."""
        w = self._newton(np.zeros(self.Z.shape[1]), 0.0)
        if np.max(np.abs(self.Z @ w), initial=0.0) <= self.C:
            return w, self._gap(w, 0.0), False
        w = np.zeros_like(w)
        mu = max(self.objective(w, self.Z @ w), 1.0) / len(self.y)
        gap = np.inf
        for _ in range(60):
            w = self._newton(w, mu)
            gap = self._gap(w, mu)
            if gap <= GAP * max(1.0, self.objective(w, self.Z @ w)):
                break
            mu *= 0.15
        return w, gap, True

    def _newton(self, w: Vector, mu: float) -> Vector:
        """Newton's method with backtracking on the objective with a barrier of strength mu."""
        for _ in range(200):
            v = self.Z @ w
            slope, curvature = self._derivatives(v, mu)
            gradient = self.Z.T @ slope + self.alpha * w
            H = (self.Z.T * curvature) @ self.Z
            H[np.diag_indices_from(H)] += self.alpha
            step = -cho_solve(cho_factor(H, overwrite_a=True), gradient)
            decrement = float(-gradient @ step)
            if decrement <= 1e-14 * max(1.0, abs(self._value(w, v, mu))):
                return w
            t, value, dv = 1.0, self._value(w, v, mu), self.Z @ step
            while self._value(w + t * step, v + t * dv, mu) > value - 1e-4 * t * decrement:
                t *= 0.5
                if t < 1e-12:
                    return w
            w = w + t * step
        raise NumericalError("Newton's method did not converge in 200 steps: raise regularization.")

    def _value(self, w: Vector, v: Vector, mu: float) -> float:
        if mu == 0.0:
            return self.objective(w, v)
        if np.max(np.abs(v)) >= self.C:
            return np.inf
        return self.objective(w, v) - mu * float(np.sum(np.log(self.C - v) + np.log(self.C + v)))

    def _derivatives(self, v: Vector, mu: float) -> tuple[Vector, Vector]:
        slope = self.c * self.loss.slope(v, self.y)
        curvature = self.c * self.loss.second_derivative(v, self.y)
        if mu > 0.0:
            slope = slope + mu / (self.C - v) - mu / (self.C + v)
            curvature = curvature + mu / (self.C - v) ** 2 + mu / (self.C + v) ** 2
        return slope, curvature

    def _gap(self, w: Vector, mu: float) -> float:
        """Objective minus a dual value.

        With multipliers mu/(C -+ v) >= 0 the Lagrangian is alpha-strongly convex, so its minimum is at least
        its value here minus |gradient|^2/(2 alpha), and that bounds the optimum from below.
        """
        v = self.Z @ w
        slope, _ = self._derivatives(v, mu)
        gradient = self.Z.T @ slope + self.alpha * w
        slackness = 2.0 * mu * len(v)  # sum of multiplier times slack, over both sides
        return slackness + float(gradient @ gradient) / (2.0 * self.alpha)
