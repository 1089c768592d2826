"""The algorithms of the follow-up papers, each a row of choices for :class:`kons.EmbeddedKONS`."""

from __future__ import annotations

from typing import Any

from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import EmbeddedKONS
from kons.losses import Loss, Squared
from kons.policies import Dependence, Fixed, Leverage
from kons.recipes.row import Choices, row

__all__ = ["b_kons", "con_kons", "nons_ald", "pkawv", "pros_n_kons"]

# No cap: a dictionary that only its own rule stops.
UNLIMITED = 1_000_000_000


@row(EmbeddedKONS)
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
) -> Choices:
    """KORS's dictionary, restarted when it grows.

    PROS-N-KONS: regret O(J log T) with J the number of restarts.

    :cost: O(B^2)
    :not for: accuracy: con_kons keeps what was learned, and did better on most sets of the paper
    :reference: Calandriello, Lazaric, Valko, NIPS 2017

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
    policy = Leverage(oversampling, distortion)
    return {"step_size": sigma / 2.0, "policy": policy, "on_growth": "restart"}


@row(EmbeddedKONS, takes=pros_n_kons)
def con_kons(kernel: Kernel, loss: Loss, **parameters: Any) -> Choices:
    """KORS's dictionary, what was learned is kept when it grows.

    CON-KONS (experiments of that paper): as PROS-N-KONS, but A and w are mapped into the new space.
    Parameters are those of :func:`pros_n_kons`.

    :cost: O(B^2)
    :not for: accuracy: embedded has the loss's own curvature
    :reference: Calandriello, Lazaric, Valko, NIPS 2017

    >>> from kons import Gaussian, Squared
    >>> con_kons(Gaussian(1.0), Squared()).on_growth
    'carry'
    """
    return pros_n_kons(kernel, loss, **parameters).parameters() | {"on_growth": "carry"}


@row(EmbeddedKONS, takes=pros_n_kons)
def b_kons(kernel: Kernel, loss: Loss, *, max_atoms: int = 100, **parameters: Any) -> Choices:
    """PROS-N-KONS with a capped dictionary.

    B-KONS (experiments of that paper). Parameters are those of :func:`pros_n_kons`.

    :cost: O(B^2)
    :not for: accuracy: con_kons keeps what was learned
    :reference: Calandriello, Lazaric, Valko, NIPS 2017

    >>> from kons import Gaussian, Squared
    >>> b_kons(Gaussian(1.0), Squared()).max_atoms
    100
    """
    return pros_n_kons(kernel, loss, max_atoms=max_atoms, **parameters).parameters()


@row(EmbeddedKONS)
def nons_ald(
    kernel: Kernel,
    loss: Loss,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    tolerance: float = 1e-3,
    max_atoms: int = UNLIMITED,
    step_size: Any = None,
) -> Choices:
    """Atoms by linear dependence, gradient curvature.

    NONS-ALD: what was learned is kept when the span grows. The paper's threshold is 25/T on a normalized
    kernel.

    :cost: O(B^2)
    :not for: accuracy: embedded has the loss's own curvature
    :reference: Li, Liao, ICML 2023

    >>> from kons import Gaussian, Squared
    >>> nons_ald(Gaussian(1.0), Squared(), tolerance=25 / 10_000).policy
    Dependence(tolerance=0.0025, when_full='freeze')
    """
    return {"policy": Dependence(tolerance)}


@row(EmbeddedKONS, hessian=True)
def pkawv(
    kernel: Kernel,
    *,
    bound: float = 1.0,
    regularization: float = 1.0,
    atoms: Any = None,
    tolerance: float = 1e-4,
    max_atoms: int = 200,
) -> Choices:
    """Kernel ridge in a span with forward prediction; squared loss.

    ::

        f_t = argmin over the span of  sum_{s<t} (y_s - f(x_s))^2 + (alpha/2) |f|^2 + f(x_t)^2

    the present input entering with target 0. ``atoms`` fixes the span, as in the paper's Nystrom variant;
    without it, atoms come by linear dependence.

    :cost: O(B^2)
    :not for: labels
    :reference: Jezequel, Gaillard, Rudi, NeurIPS 2019

    >>> from kons import Gaussian
    >>> pkawv(Gaussian(1.0)).forward
    True
    """
    policy = Dependence(tolerance) if atoms is None else Fixed(atoms)
    return {"loss": Squared(), "second_order": "hessian", "policy": policy, "forward": True}
