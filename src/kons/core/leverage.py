"""Ridge leverage scores, their over-estimate from a sample, and the probability to keep a point."""

from __future__ import annotations

from kons.compilation import compiled

__all__ = ["keep_probability", "leverage", "leverage_overestimate"]


@compiled
def leverage(mass: float) -> float:
    """``tau = wq / (1 + wq)`` of a point that enters with weight w and inverse form q, mass = wq."""
    return mass / (1.0 + mass)


@compiled
def leverage_overestimate(mass: float, distortion: float, counts_itself: bool) -> float:
    """``(1 + eps) r / (1 + r)``, Eq. 4: r = wbar * q under the sample, the point added with weight 1.

    Of a point that is not added, ``min((1 + eps) r, 1)``: online row sampling.

    >>> round(leverage_overestimate(1.0, 0.5, True), 3), leverage_overestimate(0.5, 0.5, False)
    (0.75, 0.75)
    """
    if not counts_itself:
        return min((1.0 + distortion) * mass, 1.0)
    # Eq. 4: phibar^T (A^{I*})^-1 phibar with A^{I*} = A^I + phibar phibar^T, by Sherman-Morrison.
    return (1.0 + distortion) * leverage(mass)


@compiled
def keep_probability(estimate: float, oversampling: float, floor: float) -> float:
    """``max(min(beta * estimate, 1), gamma)``: Alg. 2 line 5, Alg. 3 line 9.

    >>> keep_probability(0.3, 2.0, 0.1)
    0.6
    """
    return max(min(oversampling * estimate, 1.0), floor)
