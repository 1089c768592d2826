"""The registry: learners, kernels and losses by the names that the command line and the adapters take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from kons.arrays import require_number
from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kons.learners import KONS, AutoKONS, EmbeddedKONS, SketchedKONS
from kons.losses import Hinge, Logistic, Loss, Squared, SquaredHinge
from kons.recipes.algorithms import b_kons, con_kons, nons_ald, pkawv, pros_n_kons
from kons.recipes.expansions import (
    bogd,
    forgetron,
    kaar,
    krls,
    narow,
    norma,
    perceptron,
    projectron,
    rbp,
    second_order_perceptron,
)

__all__ = [
    "KERNELS",
    "LOSSES",
    "RECIPES",
    "SHARED",
    "Recipe",
    "bandwidth_of",
    "find",
    "kernel_of",
    "make",
    "recipe_of",
]

Named = TypeVar("Named")

#: What :func:`kons.recipes.for_task` takes for every learner that is made of a kernel and a loss.
SHARED = ("kernel", "bandwidth", "warmup", "margin", "loss", "classes")


class Recipe(NamedTuple):
    """A name, how to make the learner, and a line of description."""

    make: Callable[..., Any]
    """Of ``kernel`` and ``loss``, if it has parameters of these names; with ``in_raw_units``, of a task."""
    description: str
    takes: Callable[..., Any] | None = None
    """Whose parameters it takes, if not those that ``make`` names."""
    in_raw_units: bool = False
    """Whether it is made for a task and finds units, kernel and loss by itself.

    All others are made of a kernel and a loss, and :func:`kons.recipes.for_task` wraps them in
    :class:`kons.Scaled`.
    """
    hessian: bool = False
    """Whether its curvature is that of the loss, unless ``second_order`` says otherwise."""
    exact: bool = False
    """Whether it keeps every row: rows^2/2 numbers."""
    cost: str = ""
    """Of a row: d columns, D features, B atoms, l directions, t rows so far."""
    avoid: str = ""
    """When not to use it."""
    reference: str = ""
    """Where it comes from."""
    own_loss: Loss | None = None
    """The loss that it is of, where it takes no other."""
    of_labels: Loss = Logistic()
    """Its loss for labels, unless another is given."""
    tasks: tuple[str, ...] = ("regression", "classification")
    """What it is for."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """What can be given by name, besides task, kernel and loss."""
        return tuple(name for name in self._named if name not in ("task", "kernel", "loss"))

    @property
    def any_loss(self) -> bool:
        """Whether it takes another loss than its own."""
        return "loss" in self._named

    def made_of(self, kernel: Kernel, loss: Loss, **parameters: Any) -> Any:
        """The learner, of as much of these as it takes."""
        if self.own_loss is not None and loss != self.own_loss:
            maker: Any = getattr(self.make, "func", self.make)
            word = type(self.own_loss).__name__.lower()
            raise ConfigurationError(f"{maker.__name__} is for the {word} loss, not {loss!r}.")
        takes = inspect.signature(self.make).parameters
        given = {"kernel": kernel, "loss": loss}
        return self.make(**{name: value for name, value in given.items() if name in takes}, **parameters)

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.takes or self.make).parameters)

    @property
    def accepts(self) -> tuple[str, ...]:
        """All that :func:`kons.recipes.for_task` takes for it, besides the scale."""
        shared: tuple[str, ...] = ("kernel",) if self.in_raw_units else SHARED
        if "kernel" not in self._named:  # a learner without one
            shared = tuple(name for name in shared if name not in ("kernel", "bandwidth", "loss"))
        return (*self.parameters, *(name for name in shared if name not in self.parameters))


#: Every named algorithm, the default first: ``RECIPES[name].make(kernel, loss, **parameters)``, or
#: ``make(task, **parameters)`` of one ``in_raw_units``. A line here, and a learner is known everywhere: to
#: ``evaluate``, ``for_task``, the adapters, the command line and, if ``make`` or ``takes`` is a class, files.
RECIPES: dict[str, Recipe] = {
    "auto": Recipe(AutoKONS, "finds scales, relevance, bandwidth and memory itself", in_raw_units=True),
    "b_kons": Recipe(b_kons, "PROS-N-KONS with a capped dictionary", pros_n_kons),
    "con_kons": Recipe(con_kons, "KORS's dictionary, what was learned is kept when it grows", pros_n_kons),
    "embedded": Recipe(
        partial(EmbeddedKONS, second_order="hessian"),
        "second-order learning in a dictionary's span; small and fast",
        EmbeddedKONS,
        hessian=True,
    ),
    "kons": Recipe(KONS, "the exact kernel online Newton step; memory grows as t^2", exact=True),
    "nons_ald": Recipe(nons_ald, "atoms by linear dependence, gradient curvature"),
    "pkawv": Recipe(
        pkawv,
        "kernel ridge in a span with forward prediction; squared loss",
        hessian=True,
        own_loss=Squared(),
    ),
    "pros_n_kons": Recipe(pros_n_kons, "KORS's dictionary, restarted when it grows"),
    "ridge": Recipe(
        partial(KONS, second_order="hessian"),
        "exact online kernel ridge regression; memory grows as t^2",
        KONS,
        hessian=True,
        exact=True,
    ),
    "sketched": Recipe(SketchedKONS, "KONS with an adaptive sketch; memory grows as t"),
}


#: A row for labels only, of the hinge loss.
_of_labels = partial(Recipe, own_loss=Hinge(), tasks=("classification",))
#: Those over a kernel expansion: see :mod:`kons.recipes.expansions`.
RECIPES |= {
    "bogd": Recipe(
        bogd,
        "gradient descent on a budget, by removal or projection",
        of_labels=Hinge(),
        cost="O(B); O(B^3) a projection",
        avoid="B^2 a row is affordable: embedded predicts better",
        reference="Zhao, Wang, Wu, Jin, Hoi, ICML 2012; Wang, Crammer, Vucetic, JMLR 2012",
    ),
    "forgetron": _of_labels(
        forgetron,
        "a perceptron on a budget that shrinks and forgets its oldest point; labels",
        cost="O(B)",
        avoid="what was learned long ago stays true",
        reference="Dekel, Shalev-Shwartz, Singer, SIAM J. Computing 2008",
    ),
    "kaar": Recipe(
        kaar,
        "exact kernel ridge with forward prediction; squared loss, memory grows as t^2",
        hessian=True,
        exact=True,
        own_loss=Squared(),
        cost="O(t^2)",
        avoid="more than some ten thousand rows",
        reference="Gammerman, Kalnishkan, Vovk, UAI 2004",
    ),
    "krls": Recipe(
        krls,
        "recursive least squares: by linear dependence, in a window, or forgetting; squared loss",
        hessian=True,
        own_loss=Squared(),
        cost="O(B^2)",
        avoid="probabilities of labels",
        reference="Engel, Mannor, Meir, IEEE TSP 2004; Van Vaerenbergh et al., ICASSP 2006, TNNLS 2012",
    ),
    "narow": _of_labels(
        narow,
        "hinge slopes, curvature only where points are new; labels, memory grows as t^2",
        exact=True,
        cost="O(t^2)",
        avoid="more than some ten thousand rows below the margin",
        reference="Orabona, Crammer, NIPS 2010",
    ),
    "norma": Recipe(
        norma,
        "gradient descent in function space with weight decay; memory grows as t",
        of_labels=Hinge(),
        cost="O(t)",
        avoid="the loss is curved: second order has log T",
        reference="Kivinen, Smola, Williamson, IEEE TSP 2004",
    ),
    "perceptron": _of_labels(
        perceptron,
        "the kernel perceptron; labels",
        cost="O(M), M mistakes",
        avoid="noisy labels: it never stops growing",
        reference="Rosenblatt 1958; Freund, Schapire, Machine Learning 1999",
    ),
    "projectron": _of_labels(
        projectron,
        "a perceptron that projects mistakes near its span; labels",
        cost="O(B^2)",
        avoid="labels that change their meaning",
        reference="Orabona, Keshet, Caputo, JMLR 2009",
    ),
    "projectron_plus": _of_labels(
        partial(projectron, margins=True),
        "Projectron++: the same, learning within the margin; labels",
        projectron,
        cost="O(B^2)",
        avoid="labels that change their meaning",
        reference="Orabona, Keshet, Caputo, JMLR 2009",
    ),
    "rbp": _of_labels(
        rbp,
        "a perceptron on a budget, a point at random goes; labels",
        cost="O(B)",
        avoid="B^2 a row is affordable: projectron loses nothing",
        reference="Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 2007",
    ),
    "second_order_perceptron": Recipe(
        second_order_perceptron,
        "kernel ridge on the mistakes; labels",
        own_loss=Squared(),
        tasks=("classification",),
        cost="O(M^2), M mistakes",
        avoid="noisy labels and many rows: embedded",
        reference="Cesa-Bianchi, Conconi, Gentile, SIAM J. Computing 2005",
    ),
}
RECIPES = {name: RECIPES[name] for name in ("auto", *sorted(RECIPES.keys() - {"auto"}))}


def make(name: str, kernel: Kernel, loss: Loss, **parameters: Any) -> Any:
    """A learner of a kernel and a loss, by its name in :data:`RECIPES`; all but ``auto`` are.

    >>> from kons import Gaussian, Squared
    >>> type(make("sketched", Gaussian(), Squared())).__name__
    'SketchedKONS'
    """
    recipe = recipe_of(name)
    if recipe.in_raw_units:
        raise ConfigurationError(
            f"{name!r} is made for a task, in raw units, not of a kernel and a loss: use "
            f'kons.recipes.for_task("regression", {name!r}), or "classification".'
        )
    return recipe.made_of(kernel, loss, **parameters)


def recipe_of(name: Any) -> Recipe:
    """The entry of a name, or an error that lists the names."""
    return find(name, RECIPES, "learner")


def find(name: Any, table: Mapping[str, Named], what: str) -> Named:
    """What stands under a name, or an error that lists the names."""
    if not isinstance(name, str) or name not in table:
        raise ConfigurationError(f"there is no {what} {name!r}; there are {', '.join(table)}.")
    return table[name]


#: Kernels by name; those of a distance take a ``bandwidth``, which may be "auto". A line here, and a kernel
#: is known to all that take one by name, and to files.
KERNELS: dict[str, Callable[..., Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "linear": Linear,
    "matern": Matern,
    "polynomial": Polynomial,
    "rational_quadratic": RationalQuadratic,
}

#: Losses by name.
LOSSES: dict[str, Loss] = {
    "hinge": Hinge(),
    "logistic": Logistic(),
    "squared": Squared(),
    "squared_hinge": SquaredHinge(),
}


def kernel_of(kernel: str | Kernel, bandwidth: Any = "auto") -> Kernel:
    """A kernel by its name in :data:`KERNELS`, or the kernel itself, with this bandwidth where it has none.

    >>> kernel_of("laplace", 2.0)
    Laplace(bandwidth=2.0)
    """
    width = bandwidth_of(bandwidth)
    if not isinstance(kernel, Kernel):
        made = find(kernel, KERNELS, "kernel")
        kernel = made(bandwidth="auto") if "bandwidth" in inspect.signature(made).parameters else made()
    if width is None:
        return kernel
    if kernel.is_resolved:
        raise ConfigurationError(
            f'bandwidth is {width:g}, and {kernel!r} takes none: leave it out, or give a kernel with "auto".'
        )
    return kernel.resolved(width)


def bandwidth_of(bandwidth: Any) -> float | None:
    """A bandwidth that was given; None for "auto"."""
    if isinstance(bandwidth, str) and bandwidth == "auto":
        return None
    return require_number(bandwidth, "bandwidth", above=0.0)
