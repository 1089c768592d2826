"""The algorithms of the follow-up papers, each a row of choices for :class:`kons.EmbeddedKONS`."""

from __future__ import annotations

from typing import Any

from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import EmbeddedKONS
from kons.losses import Loss, Squared
from kons.policies import Dependence, Fixed, Leverage

__all__ = ["b_kons", "con_kons", "nons_ald", "pkawv", "pros_n_kons"]

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
        on_growth="restart",
        seed=seed,
    )


def con_kons(kernel: Kernel, loss: Loss, **parameters: Any) -> EmbeddedKONS:
    """CON-KONS (the same paper, experiments): as PROS-N-KONS, but A and w are mapped into the new space.

    Parameters are those of :func:`pros_n_kons`.

    >>> from kons import Gaussian, Squared
    >>> con_kons(Gaussian(1.0), Squared()).on_growth
    'carry'
    """
    return EmbeddedKONS(**pros_n_kons(kernel, loss, **parameters).parameters() | {"on_growth": "carry"})


def b_kons(kernel: Kernel, loss: Loss, *, max_atoms: int = 100, **parameters: Any) -> EmbeddedKONS:
    """B-KONS (the same paper, experiments): PROS-N-KONS whose dictionary stops at a cap.

    Parameters are those of :func:`pros_n_kons`.

    >>> from kons import Gaussian, Squared
    >>> b_kons(Gaussian(1.0), Squared()).max_atoms
    100
    """
    return pros_n_kons(kernel, loss, max_atoms=max_atoms, **parameters)


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
