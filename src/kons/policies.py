"""Who enters the preconditioner: numbers in, a decision out."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal

from kons.arrays import MOST_POINTS, require_integer, require_number, require_word
from kons.core.budget import WHEN_FULL
from kons.core.leverage import keep_probability
from kons.errors import ConfigurationError

__all__ = ["Budget", "Dependence", "Fixed", "Leverage"]


@dataclass(frozen=True)
class Budget:
    """Keep at most so many points of an expansion; with one more, one goes.

    Parameters
    ----------
    max_points:
        The most that are kept.
    when_full:
        Who goes: ``"oldest"``; ``"shrink"``, the oldest, once f is shrunk as far as its removal asks (the
        Forgetron, whose steps are 1); ``"random"``, any of those before the new one; ``"unbiased"``, the
        same, the others scaled by B/(B - 1) so that f stays what it is on average; ``"smallest"``, the one
        with the least norm; ``"project"``, the same, projected on the others, at O(B^3); ``"features"``, the
        same, going over into random features (the ``dimension`` of :class:`kons.FunctionalGradient`).
    largest:
        What coefficients are clipped to under ``"unbiased"``, which else grow without bound.

    Not where the past matters and there is room: who goes takes with it what it knew, but for ``"project"``.

    >>> Budget(50)
    Budget(max_points=50, when_full='oldest', largest=inf)
    """

    max_points: int = 100
    when_full: Literal["oldest", "shrink", "random", "unbiased", "smallest", "project", "features"] = "oldest"
    largest: float = math.inf

    def __post_init__(self) -> None:
        points = require_integer(self.max_points, "max_points", at_least=1, at_most=MOST_POINTS)
        object.__setattr__(self, "max_points", points)
        require_word(self.when_full, "when_full", WHEN_FULL)
        if self.largest != math.inf:
            object.__setattr__(self, "largest", require_number(self.largest, "largest", above=0.0))


@dataclass(frozen=True)
class Dependence:
    """Make a point an atom if it is not, to a tolerance, in the span of the atoms before it.

    ::

        residual(x) = k(x,x) - |projection of phi(x) on the span|^2  >  tolerance * k(x,x)

    which is approximate linear dependence, relative to k(x,x). Deterministic. Whatever the tolerance, the
    dictionary stops at the numerical rank: a point that is a large combination of atoms which cancel each
    other is passed over where rounding would leave more than the tolerance in the residuals behind it.

    Parameters
    ----------
    tolerance:
        The least part of k(x,x) that must lie outside the span.
    when_full:
        With ``max_atoms`` atoms, ``"freeze"`` keeps them for ever. ``"replace"`` lets the most novel row
        of each period of 64 rows (32 with forgetting) take the place of the least useful atom, the one
        whose removal moves the learned function least in norm; what was learned is projected on the rest.
        Replacement suits streams in time order, on which a frozen dictionary grows stale; it costs B^3
        per period, and ends every guarantee about a fixed comparator.

    >>> Dependence(tolerance=1e-3)
    Dependence(tolerance=0.001, when_full='freeze')
    """

    tolerance: float = 1e-4
    when_full: Literal["freeze", "replace"] = "freeze"

    def __post_init__(self) -> None:
        tolerance = require_number(self.tolerance, "tolerance", at_least=0.0, below=1.0)
        object.__setattr__(self, "tolerance", tolerance)
        require_word(self.when_full, "when_full", ("freeze", "replace"))


@dataclass(frozen=True, eq=False)
class Fixed:
    """A dictionary that is given and never changes.

    Atoms that lie in the span of those before them, to rounding, are passed over; ``max_atoms`` is no
    limit to them.

    >>> Fixed([[0.0], [1.0]])
    Fixed(2 atoms)
    """

    atoms: Any

    def __post_init__(self) -> None:
        # A copy: the learner must stay the one that was asked for, whatever happens to the caller's array.
        object.__setattr__(self, "atoms", copy.deepcopy(self.atoms))

    def __repr__(self) -> str:
        return (
            f"Fixed({len(self.atoms)} atoms)" if hasattr(self.atoms, "__len__") else f"Fixed({self.atoms!r})"
        )


@dataclass(frozen=True)
class Leverage:
    """Keep a point with a probability that follows its ridge leverage score.

    ::

        p = max(min(oversampling * estimate, 1), floor)         kept iff u < p

    where ``estimate`` is the over-estimate of Eq. 4 and u is the example's one uniform number.

    Parameters
    ----------
    oversampling:
        The paper's beta. ``"theory"`` is ``3*log(4*T^2/delta)/eps^2``, what the union bound in the
        proof of Theorem 2 needs; the printed ``3*log(T/delta)/eps^2`` is smaller.
    distortion:
        The paper's epsilon, in (0, 1): A is approximated within a factor 1 +- eps.
    floor:
        The paper's gamma, in [0, 1]: every point is kept at least this often. 1 keeps all.
    horizon, failure:
        T and delta, for ``oversampling="theory"``: the number of rows that will come, and the
        probability that the guarantee may fail.

    Do not use ``"theory"`` to save memory: below some thousands of rows per effective dimension it
    keeps every point.

    >>> policy = Leverage(oversampling=2.0, floor=0.1)
    >>> policy.probability(0.3), policy.probability(0.01)
    (0.6, 0.1)
    >>> round(Leverage("theory", distortion=0.9, horizon=3000).beta, 1)
    73.0
    """

    oversampling: float | Literal["theory"] = 1.0
    distortion: float = 0.5
    floor: float = 0.0
    horizon: int | None = None
    failure: float = 0.1

    def __post_init__(self) -> None:
        # Frozen, but kept as plain numbers: a NumPy integer would overflow in T^2.
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        keep("distortion", require_number(self.distortion, "distortion", at_least=1e-6, below=1.0))
        keep("floor", require_number(self.floor, "floor", at_least=0.0, at_most=1.0))
        keep("failure", require_number(self.failure, "failure", at_least=1e-300, below=1.0))
        if self.horizon is not None:
            keep("horizon", require_integer(self.horizon, "horizon", at_least=1))
        oversampling: Any = self.oversampling
        if not isinstance(oversampling, str):
            keep("oversampling", require_number(oversampling, "oversampling", above=0.0))
        elif oversampling != "theory":
            raise ConfigurationError(
                f'oversampling is {oversampling!r}, expected a number above 0 or "theory".'
            )
        elif self.horizon is None:
            raise ConfigurationError(
                'oversampling="theory" needs the number of rows: set horizon=T, '
                "or give oversampling as a number."
            )

    @property
    def beta(self) -> float:
        """``oversampling`` as a number."""
        if isinstance(self.oversampling, str):
            assert self.horizon is not None  # checked at construction
            union = math.log(4.0) + 2.0 * math.log(self.horizon) - math.log(self.failure)
            return 3.0 * union / self.distortion**2
        return float(self.oversampling)

    @property
    def rho(self) -> float:
        """``(1 + eps)/(1 - eps)``: how far the over-estimate may exceed the leverage (Thm. 2)."""
        return (1.0 + self.distortion) / (1.0 - self.distortion)

    def probability(self, estimate: float) -> float:
        """The probability that a point with this over-estimated leverage is kept."""
        return float(keep_probability(float(estimate), self.beta, float(self.floor)))


def require_leverage(policy: Any) -> Leverage:
    """A :class:`Leverage` policy, or an error that says so."""
    if isinstance(policy, Leverage):
        return policy
    raise ConfigurationError(
        f"policy is {policy!r}, expected kons.policies.Leverage(oversampling, distortion, floor)."
    )
