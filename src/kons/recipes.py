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

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from kons.arrays import require_number
from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kons.learners import KONS, Classifier, EmbeddedKONS, Scaled, SketchedKONS
from kons.learners.newton import NewtonLearner
from kons.losses import Logistic, Loss, Squared, SquaredHinge
from kons.policies import Dependence, Fixed, Leverage

__all__ = [
    "KERNELS",
    "LOSSES",
    "RECIPES",
    "Recipe",
    "b_kons",
    "con_kons",
    "for_task",
    "kernel_of",
    "make",
    "nons_ald",
    "pkawv",
    "pros_n_kons",
    "together",
    "warmup_for",
]

# What for_task gives the logistic loss: probabilities up to 0.9997. With the gradient's curvature the step
# size falls as exp(-bound), and only 0.95 can be afforded.
LOGISTIC_BOUND = 8.0
LOGISTIC_BOUND_OF_GRADIENT = 3.0
# ... and the ridge of learners with the Hessian, whose targets then lie within 1.
HESSIAN_REGULARIZATION = 0.01
HESSIAN_RECIPES = ("embedded", "pkawv", "ridge")
# Rows of a warm-up; in a short stream the scales must come from fewer.
WARMUP, SHORTEST_WARMUP, WARMUP_SHARE = 500, 20, 0.1
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


Named = TypeVar("Named")


class Recipe(NamedTuple):
    """A name, how to make the learner, and a line of description."""

    make: Callable[..., NewtonLearner]
    description: str
    takes: Callable[..., Any] | None = None
    """Whose parameters it takes, if not those that ``make`` names."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """What can be given by name, besides the kernel and the loss."""
        names = inspect.signature(self.takes or self.make).parameters
        return tuple(name for name in names if name not in ("kernel", "loss"))


def _ridge(kernel: Kernel, loss: Loss | None = None, **parameters: Any) -> KONS:
    return KONS(kernel, Squared() if loss is None else loss, **({"second_order": "hessian"} | parameters))


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
    "embedded": Recipe(
        _embedded, "second-order learning in a dictionary's span; the one to run all day", EmbeddedKONS
    ),
    "kons": Recipe(KONS, "the exact kernel online Newton step; memory grows as t^2"),
    "nons_ald": Recipe(nons_ald, "atoms by linear dependence, gradient curvature"),
    "pkawv": Recipe(_pkawv, "kernel ridge in a span with forward prediction; squared loss", pkawv),
    "pros_n_kons": Recipe(pros_n_kons, "KORS's dictionary, restarted when it grows"),
    "ridge": Recipe(_ridge, "exact online kernel ridge regression; memory grows as t^2", KONS),
    "sketched": Recipe(SketchedKONS, "KONS with an adaptive sketch; memory grows as t"),
}


def make(name: str, kernel: Kernel, loss: Loss, **parameters: Any) -> NewtonLearner:
    """A learner by its name in :data:`RECIPES`.

    >>> from kons import Gaussian, Squared
    >>> type(make("sketched", Gaussian(), Squared())).__name__
    'SketchedKONS'
    """
    return _recipe(name).make(kernel, loss, **parameters)


def _recipe(name: str) -> Recipe:
    return _named(name, RECIPES, "learner")


def _named(name: Any, table: Mapping[str, Named], what: str) -> Named:
    if not isinstance(name, str) or name not in table:
        raise ConfigurationError(f"there is no {what} {name!r}; there are {', '.join(table)}.")
    return table[name]


#: Kernels by name; those of a distance take a bandwidth.
KERNELS: dict[str, Callable[..., Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "linear": Linear,
    "matern": Matern,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
}
_WITHOUT_BANDWIDTH = ("linear", "polynomial")

#: Losses by name.
LOSSES: dict[str, Loss] = {
    "logistic": Logistic(),
    "squared": Squared(),
    "squared_hinge": SquaredHinge(),
}


def for_task(
    task: Literal["regression", "classification"],
    name: str = "embedded",
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: float | Literal["auto"] = "auto",
    scale: Literal["auto", "none"] = "auto",
    warmup: int = WARMUP,
    margin: float | None = None,
    seed: int = 0,
    loss: str | Loss | None = None,
    classes: Any = None,
    **parameters: Any,
) -> Scaled:
    """A learner ready for raw units: numbers as targets, or labels of any kind.

    Parameters
    ----------
    task:
        ``"regression"`` or ``"classification"``.
    name:
        Of the algorithm, in :data:`RECIPES`.
    kernel, bandwidth:
        A name in :data:`KERNELS` or a kernel; ``"auto"`` finds a bandwidth in the first rows.
    scale:
        ``"none"`` leaves the features as they are; target and bandwidth are found all the same.
    warmup, margin:
        As in :class:`kons.Scaled`.
    seed:
        Of the coins, where the algorithm tosses some.
    loss:
        A name in :data:`LOSSES`, or a loss. None: squared for numbers, logistic for labels (on three public
        sets as few errors as squared, and a fifth less log loss), where the algorithm takes it.
    classes:
        All the labels there will be, if they are known: see :class:`kons.Classifier`.
    parameters:
        Others of the algorithm, such as ``regularization`` or ``max_atoms``.

    >>> model = for_task("classification", max_atoms=50)
    >>> model.advance([[0.1], [250.0], [0.2]], ["low", "high", "low"]).prediction.tolist()
    [None, 'low', 'low']
    """
    if task not in ("regression", "classification"):
        raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
    if scale not in ("auto", "none"):
        raise ConfigurationError(f'scale is {scale!r}, expected "auto" or "none".')
    recipe = _recipe(name)
    known = recipe.parameters
    for parameter in parameters:
        if parameter not in known:
            raise ConfigurationError(
                f"{name!r} takes no parameter {parameter!r}; it takes {', '.join(known)}."
            )
    if "seed" in known:
        parameters["seed"] = seed
    labelled = task == "classification"
    the_loss = _loss(loss, labelled and name != "pkawv")
    defaults: dict[str, Any] = {}
    if name in HESSIAN_RECIPES:
        defaults["regularization"] = HESSIAN_REGULARIZATION
    if isinstance(the_loss, Logistic):
        order = parameters.get("second_order", "hessian" if name in HESSIAN_RECIPES else "gradient")
        defaults["bound"] = LOGISTIC_BOUND if order == "hessian" else LOGISTIC_BOUND_OF_GRADIENT
    learner: Any = recipe.make(kernel_of(kernel, bandwidth), the_loss, **(defaults | parameters))
    if labelled:
        learner = Classifier(learner, classes)
    elif classes is not None:
        raise ConfigurationError("classes are for classification.")
    return Scaled(learner, warmup, margin=margin, scale_features=scale == "auto")


def warmup_for(rows: int | None) -> int:
    """A tenth of the rows, 20 to 500; 500 where it is not known how many there will be.

    >>> warmup_for(None), warmup_for(100_000), warmup_for(1200), warmup_for(5)
    (500, 500, 120, 20)
    """
    return WARMUP if rows is None else min(WARMUP, max(SHORTEST_WARMUP, round(WARMUP_SHARE * rows)))


def together(named: Mapping[str, Any], others: Any, name: str) -> dict[str, Any]:
    """Arguments for :func:`for_task`: those with a name of their own, and a dict of others; each once.

    None among those with a name means that it is not given. ``name`` is that of the dict, for messages.

    >>> together({"max_atoms": 50, "forgetting": None}, {"forward": True}, "options")
    {'max_atoms': 50, 'forward': True}
    """
    given = {key: value for key, value in named.items() if value is not None}
    if others is None:
        return given
    if not isinstance(others, Mapping) or not all(isinstance(key, str) for key in others):
        raise ConfigurationError(f"{name} is {others!r}, expected a dict: parameter -> value.")
    for key in others:
        if key in given:
            raise ConfigurationError(f"{key} is given twice, by itself and in {name}.")
    return given | dict(others)


def kernel_of(kernel: str | Kernel, bandwidth: Any) -> Kernel:
    """A kernel by its name in :data:`KERNELS`, or the kernel itself, with this bandwidth where it has none.

    >>> kernel_of("laplace", 2.0)
    Laplace(bandwidth=2.0)
    """
    if not isinstance(bandwidth, str) or bandwidth != "auto":
        bandwidth = require_number(bandwidth, "bandwidth", above=0.0)
    if isinstance(kernel, Kernel):
        return kernel if bandwidth == "auto" else kernel.resolved(bandwidth)
    made = _named(kernel, KERNELS, "kernel")
    return made() if kernel in _WITHOUT_BANDWIDTH else made(bandwidth)


def _loss(loss: str | Loss | None, labelled: bool) -> Loss:
    if loss is None:
        return Logistic() if labelled else Squared()
    if isinstance(loss, Loss):
        return loss
    return _named(loss, LOSSES, "loss")
