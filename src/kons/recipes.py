"""Named algorithms as rows of choices; the registry that the command line and the adapters read.

===============  ===============  ===================  ============================  =============
name             A lives in       curvature            who enters                    on growth
===============  ===============  ===================  ============================  =============
``kons``         feature space    eta*g^2              every point                   -
``ridge``        feature space    l'' (squared)        every point                   -
``sketched``     feature space    eta*g^2              a coin by leverage            -
``embedded``     span of B atoms  l''                  atoms by dependence           carry
``pros_n_kons``  span of B atoms  (sigma/2)*g^2        atoms by KORS                 restart
``con_kons``     span of B atoms  (sigma/2)*g^2        atoms by KORS                 carry
``b_kons``       span of B atoms  (sigma/2)*g^2        atoms by KORS, a cap          restart
``nons_ald``     span of B atoms  eta*g^2              atoms by dependence           carry
``pkawv``        span of B atoms  l'' (squared)        atoms given or by dependence  carry, forward
===============  ===============  ===================  ============================  =============

Two algorithms that differ in one cell differ in one argument.

*Conventions.* The follow-up papers add ``(sigma/2) g g^T`` to A where the first adds ``sigma g g^T``: their
step size is half of :func:`kons.step_sizes.for_loss`'s. They also let a new atom take effect in the row
after its own; here it does so in its own row, after the prediction. With ``"restart"`` nothing of that row
is learned either way, so the two agree; with ``"carry"`` one step differs by the new coordinate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import KONS, EmbeddedKONS, SketchedKONS
from kons.learners.newton import NewtonLearner
from kons.losses import Loss, Squared
from kons.policies import Dependence, Fixed, Leverage

__all__ = [
    "RECIPES",
    "Recipe",
    "b_kons",
    "con_kons",
    "make",
    "nons_ald",
    "pkawv",
    "pros_n_kons",
]

# No cap: a dictionary that only its own rule stops.
UNLIMITED = 1_000_000_000


def pros_n_kons(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    oversampling: float = 1.0,
    distortion: float = 0.5,
    max_atoms: int = UNLIMITED,
    seed: int = 0,
) -> EmbeddedKONS:
    """PROS-N-KONS (Calandriello, Lazaric, Valko, NIPS 2017): KORS's dictionary, restarted when it grows.

    Regret O(J log T) with J the number of restarts. Not to be chosen for accuracy: ``con_kons`` keeps
    what was learned, and did better on most of the sets that paper reports.

    >>> from kons import Gaussian, Squared
    >>> pros_n_kons(Gaussian(1.0), Squared()).on_growth
    'restart'
    """
    return _adaptive(
        kernel, loss, "restart", bound, regularization, oversampling, distortion, max_atoms, seed
    )


def con_kons(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    oversampling: float = 1.0,
    distortion: float = 0.5,
    max_atoms: int = UNLIMITED,
    seed: int = 0,
) -> EmbeddedKONS:
    """CON-KONS (the same paper, experiments): as PROS-N-KONS, but A and w are mapped into the new space.

    >>> from kons import Gaussian, Squared
    >>> con_kons(Gaussian(1.0), Squared()).on_growth
    'carry'
    """
    return _adaptive(kernel, loss, "carry", bound, regularization, oversampling, distortion, max_atoms, seed)


def b_kons(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    oversampling: float = 1.0,
    distortion: float = 0.5,
    max_atoms: int = 100,
    seed: int = 0,
) -> EmbeddedKONS:
    """B-KONS (the same paper, experiments): PROS-N-KONS whose dictionary stops at a cap.

    >>> from kons import Gaussian, Squared
    >>> b_kons(Gaussian(1.0), Squared()).max_atoms
    100
    """
    return pros_n_kons(
        kernel,
        loss,
        bound=bound,
        regularization=regularization,
        oversampling=oversampling,
        distortion=distortion,
        max_atoms=max_atoms,
        seed=seed,
    )


def nons_ald(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    tolerance: float = 1e-3,
    max_atoms: int = UNLIMITED,
    step_size: Any = None,
) -> EmbeddedKONS:
    """NONS-ALD (Li, Liao, ICML 2023): atoms by approximate linear dependence, what was learned kept.

    The paper's threshold is 25/T on a normalized kernel.

    >>> from kons import Gaussian, Squared
    >>> nons_ald(Gaussian(1.0), Squared(), tolerance=25 / 10_000).policy
    Dependence(tolerance=0.0025, when_full='freeze')
    """
    return EmbeddedKONS(
        kernel,
        loss,
        bound=bound,
        regularization=regularization,
        step_size=step_size,
        policy=Dependence(tolerance),
        max_atoms=max_atoms,
    )


def pkawv(
    kernel: Kernel,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    atoms: Any = None,
    tolerance: float = 1e-4,
    max_atoms: int = 200,
) -> EmbeddedKONS:
    """PKAWV (Jezequel, Gaillard, Rudi, NeurIPS 2019): kernel ridge in a span, predicting forward.

    ::

        f_t = argmin over the span of  sum_{s<t} (y_s - f(x_s))^2 + (alpha/2) |f|^2 + f(x_t)^2

    the present input entering with target 0. For the squared loss only. ``atoms`` fixes the span, as in
    the paper's Nystrom variant; without it, atoms come by linear dependence.

    >>> from kons import Gaussian
    >>> pkawv(Gaussian(1.0)).forward
    True
    """
    return EmbeddedKONS(
        kernel,
        Squared(),
        bound=bound,
        regularization=regularization,
        second_order="hessian",
        policy=Dependence(tolerance) if atoms is None else Fixed(atoms),
        max_atoms=max_atoms,
        forward=True,
    )


def _adaptive(
    kernel: Kernel,
    loss: Loss,
    on_growth: Any,
    bound: float,
    regularization: float,
    oversampling: float,
    distortion: float,
    max_atoms: int,
    seed: int,
) -> EmbeddedKONS:
    sigma = loss.curvature(bound)
    if sigma <= 0.0:
        raise ConfigurationError(
            f"{loss!r} has no curvature on [-{bound:g}, {bound:g}], and this algorithm has no step size "
            "without: use EmbeddedKONS with a step_size."
        )
    return EmbeddedKONS(
        kernel,
        loss,
        bound=bound,
        regularization=regularization,
        step_size=sigma / 2.0,
        policy=Leverage(oversampling, distortion),
        max_atoms=max_atoms,
        on_growth=on_growth,
        seed=seed,
    )


class Recipe(NamedTuple):
    """A name, how to make the learner, and a line of description."""

    make: Callable[..., NewtonLearner]
    description: str


def _ridge(kernel: Kernel, loss: Loss | None = None, **parameters: Any) -> KONS:
    return KONS(kernel, Squared() if loss is None else loss, second_order="hessian", **parameters)


def _embedded(kernel: Kernel, loss: Loss, **parameters: Any) -> EmbeddedKONS:
    return EmbeddedKONS(kernel, loss, **({"second_order": "hessian"} | parameters))


def _pkawv(kernel: Kernel, loss: Loss | None = None, **parameters: Any) -> EmbeddedKONS:
    if loss is not None and not isinstance(loss, Squared):
        raise ConfigurationError(f"pkawv is for the squared loss, not {loss!r}.")
    return pkawv(kernel, **parameters)


#: Every named algorithm: ``RECIPES[name].make(kernel, loss, **parameters)``.
RECIPES: dict[str, Recipe] = {
    "b_kons": Recipe(b_kons, "PROS-N-KONS with a capped dictionary"),
    "con_kons": Recipe(con_kons, "KORS's dictionary, what was learned is kept when it grows"),
    "embedded": Recipe(_embedded, "second-order learning in a dictionary's span; the one to run all day"),
    "kons": Recipe(KONS, "the exact kernel online Newton step; memory grows as t^2"),
    "nons_ald": Recipe(nons_ald, "atoms by linear dependence, gradient curvature"),
    "pkawv": Recipe(_pkawv, "kernel ridge in a span with forward prediction; squared loss"),
    "pros_n_kons": Recipe(pros_n_kons, "KORS's dictionary, restarted when it grows"),
    "ridge": Recipe(_ridge, "exact online kernel ridge regression; memory grows as t^2"),
    "sketched": Recipe(SketchedKONS, "KONS with an adaptive sketch; memory grows as t"),
}


def make(name: str, kernel: Kernel, loss: Loss, **parameters: Any) -> NewtonLearner:
    """A learner by its name in :data:`RECIPES`.

    >>> from kons import Gaussian, Squared
    >>> type(make("sketched", Gaussian(), Squared())).__name__
    'SketchedKONS'
    """
    if name not in RECIPES:
        raise ConfigurationError(f"there is no learner {name!r}; there are {', '.join(RECIPES)}.")
    return RECIPES[name].make(kernel, loss, **parameters)
