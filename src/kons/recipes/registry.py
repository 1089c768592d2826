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
from kons.recipes.explicit import (
    adagrad,
    adam,
    aogd_ald,
    dual_sgd,
    fastfood,
    fogd,
    nogd,
    ogd,
    ons,
    skegd,
    sketched_ons,
    vaw,
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
    growth: int = 0
    """A row costs as much as the one before (0), or t (1) or t^2 (2) times as much as the first."""
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
            needless = ("kernel", "bandwidth") if self.any_loss else ("kernel", "bandwidth", "loss")
            shared = tuple(name for name in shared if name not in needless)
        return (*self.parameters, *(name for name in shared if name not in self.parameters))


#: Every named algorithm, the default first: ``RECIPES[name].make(kernel, loss, **parameters)``, or
#: ``make(task, **parameters)`` of one ``in_raw_units``. A line here, and a learner is known everywhere: to
#: ``evaluate``, ``for_task``, the adapters, the command line and, if ``make`` or ``takes`` is a class, files.
RECIPES: dict[str, Recipe] = {
    "auto": Recipe(
        AutoKONS,
        "finds scales, relevance, bandwidth and memory itself",
        in_raw_units=True,
        cost="O(B^2) for each of its experts",
        avoid="rows that must cost microseconds",
        reference="kons",
    ),
    "adagrad": Recipe(
        adagrad,
        "linear, a step size for each column by its past slopes",
        cost="O(d)",
        avoid="columns that go together",
        reference="Duchi, Hazan, Singer, JMLR 2011",
    ),
    "adam": Recipe(
        adam,
        "linear, AdaGrad that forgets, with momentum",
        cost="O(d)",
        avoid="short streams; it has no guarantee",
        reference="Kingma, Ba, ICLR 2015",
    ),
    "aogd_ald": Recipe(
        aogd_ald,
        "gradient descent in a ball of the span of independent points",
        cost="O(B^2)",
        avoid="accuracy: nons_ald has a curvature",
        reference="Li, Liao, ICML 2023",
    ),
    "b_kons": Recipe(
        b_kons,
        "PROS-N-KONS with a capped dictionary",
        pros_n_kons,
        cost="O(B^2)",
        avoid="accuracy: con_kons keeps what was learned",
        reference="Calandriello, Lazaric, Valko, NIPS 2017",
    ),
    "con_kons": Recipe(
        con_kons,
        "KORS's dictionary, what was learned is kept when it grows",
        pros_n_kons,
        cost="O(B^2)",
        avoid="accuracy: embedded has the loss's own curvature",
        reference="Calandriello, Lazaric, Valko, NIPS 2017",
    ),
    "dual_sgd": Recipe(
        dual_sgd,
        "gradient descent over a budget, points that go become random features",
        of_labels=Hinge(),
        cost="O(B d + D d)",
        avoid="accuracy: as many atoms in embedded have a curvature",
        reference="Le, Nguyen, Nguyen, Phung, NIPS 2016",
    ),
    "embedded": Recipe(
        partial(EmbeddedKONS, second_order="hessian"),
        "second-order learning in a dictionary's span; small and fast",
        EmbeddedKONS,
        hessian=True,
        cost="O(B^2)",
        avoid="checking a theorem: kons is exact",
        reference="Calandriello, Lazaric, Valko, NIPS 2017, with l'' as curvature",
    ),
    "fastfood": Recipe(
        fastfood,
        "gradient descent on random features made by fast transforms",
        fogd,
        cost="O(D log d)",
        avoid="few columns: fogd is faster",
        reference="Le, Sarlos, Smola, ICML 2013",
    ),
    "fogd": Recipe(
        fogd,
        "gradient descent on random Fourier features",
        cost="O(D d)",
        avoid="accuracy: as many atoms in embedded predict better",
        reference="Lu, Hoi, Wang, Zhao, Liu, JMLR 2016",
    ),
    "kons": Recipe(
        KONS,
        "the exact kernel online Newton step; memory grows as t^2",
        exact=True,
        growth=2,
        cost="O(t^2)",
        avoid="more than some ten thousand rows",
        reference="Calandriello, Lazaric, Valko, ICML 2017",
    ),
    "nogd": Recipe(
        nogd,
        "gradient descent in the span of the first points",
        cost="O(B^2)",
        avoid="streams that move away from their first rows",
        reference="Lu, Hoi, Wang, Zhao, Liu, JMLR 2016",
    ),
    "nons_ald": Recipe(
        nons_ald,
        "atoms by linear dependence, gradient curvature",
        cost="O(B^2)",
        avoid="accuracy: embedded has the loss's own curvature",
        reference="Li, Liao, ICML 2023",
    ),
    "ogd": Recipe(
        ogd,
        "linear, online gradient descent",
        cost="O(d)",
        avoid="columns of different scales, or that go together",
        reference="Zinkevich, ICML 2003",
    ),
    "ons": Recipe(
        ons,
        "linear, the online Newton step",
        cost="O(d^2)",
        avoid="more than some hundred columns",
        reference="Hazan, Agarwal, Kale, Machine Learning 2007",
    ),
    "pkawv": Recipe(
        pkawv,
        "kernel ridge in a span with forward prediction; squared loss",
        hessian=True,
        own_loss=Squared(),
        cost="O(B^2)",
        avoid="labels",
        reference="Jezequel, Gaillard, Rudi, NeurIPS 2019",
    ),
    "pros_n_kons": Recipe(
        pros_n_kons,
        "KORS's dictionary, restarted when it grows",
        cost="O(B^2)",
        avoid="accuracy: con_kons keeps what was learned",
        reference="Calandriello, Lazaric, Valko, NIPS 2017",
    ),
    "ridge": Recipe(
        partial(KONS, second_order="hessian"),
        "exact online kernel ridge regression; memory grows as t^2",
        KONS,
        hessian=True,
        exact=True,
        growth=2,
        cost="O(t^2)",
        avoid="more than some ten thousand rows",
        reference="kernel ridge regression, row by row",
    ),
    "skegd": Recipe(
        skegd,
        "gradient descent in the span of a uniform sample of the rows, kept up to date",
        cost="O(B^2)",
        avoid="streams that do not move: nogd is simpler",
        reference="Zhang, Liao, ICML 2019",
    ),
    "sketched": Recipe(
        SketchedKONS,
        "KONS with an adaptive sketch; memory grows as t",
        growth=1,
        cost="O(t d + B^2)",
        avoid="endless streams: embedded costs the same at every row",
        reference="Calandriello, Lazaric, Valko, ICML 2017",
    ),
    "sketched_ons": Recipe(
        sketched_ons,
        "linear, the online Newton step in few directions",
        cost="O(d l)",
        avoid="few columns: ons costs no more",
        reference="Luo, Agarwal, Cesa-Bianchi, Langford, NIPS 2016",
    ),
    "vaw": Recipe(
        vaw,
        "linear, ridge regression that counts the row it predicts; squared loss",
        hessian=True,
        own_loss=Squared(),
        cost="O(d^2)",
        avoid="more than some hundred columns",
        reference="Vovk 2001; Azoury, Warmuth, Machine Learning 2001",
    ),
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
        avoid='numbers, unless when_full="project"; embedded predicts better, at O(B^2)',
        reference="Zhao, Wang, Wu, Jin, Hoi, ICML 2012; Wang, Crammer, Vucetic, JMLR 2012",
    ),
    "forgetron": _of_labels(
        forgetron,
        "a perceptron on a budget that shrinks and forgets its oldest point; labels",
        cost="O(B)",
        avoid="streams in which what was learned long ago stays true",
        reference="Dekel, Shalev-Shwartz, Singer, SIAM J. Computing 2008",
    ),
    "kaar": Recipe(
        kaar,
        "exact kernel ridge with forward prediction; squared loss, memory grows as t^2",
        hessian=True,
        exact=True,
        own_loss=Squared(),
        growth=2,
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
        growth=2,
        cost="O(t^2)",
        avoid="more than some ten thousand rows below the margin",
        reference="Orabona, Crammer, NIPS 2010",
    ),
    "norma": Recipe(
        norma,
        "gradient descent in function space with weight decay; memory grows as t",
        of_labels=Hinge(),
        growth=1,
        cost="O(t)",
        avoid="curved losses: second order has log T",
        reference="Kivinen, Smola, Williamson, IEEE TSP 2004",
    ),
    "perceptron": _of_labels(
        perceptron,
        "the kernel perceptron; labels",
        growth=1,
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
        avoid="accuracy: projectron loses nothing, at O(B^2)",
        reference="Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 2007",
    ),
    "second_order_perceptron": Recipe(
        second_order_perceptron,
        "kernel ridge on the mistakes; labels",
        own_loss=Squared(),
        tasks=("classification",),
        growth=2,
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
