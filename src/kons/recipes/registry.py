"""The registry: learners, kernels and losses by the names that the command line and the adapters take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from kons import dictionaries
from kons.arrays import require_number
from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kons.learners import KONS, AutoKONS, EmbeddedKONS, SketchedKONS
from kons.losses import Hinge, Logistic, Loss, Squared, SquaredHinge
from kons.recipes import algorithms, expansions, explicit
from kons.recipes.row import Recipe, told

__all__ = ["DICTIONARIES", "KERNELS", "LOSSES", "RECIPES"]
__all__ += ["bandwidth_of", "find", "kernel_of", "make", "recipe_of"]

Named = TypeVar("Named")

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
    "embedded": Recipe(
        partial(EmbeddedKONS, second_order="hessian"),
        "second-order learning in a dictionary's span; small and fast",
        EmbeddedKONS,
        hessian=True,
        cost="O(B^2)",
        avoid="checking a theorem: kons is exact",
        reference="Calandriello, Lazaric, Valko, NIPS 2017, with l'' as curvature",
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
    "sketched": Recipe(
        SketchedKONS,
        "KONS with an adaptive sketch; memory grows as t",
        growth=1,
        cost="O(t d + B^2)",
        avoid="endless streams: embedded costs the same at every row",
        reference="Calandriello, Lazaric, Valko, ICML 2017",
    ),
    **{
        name: getattr(module, name).recipe
        for module in (algorithms, expansions, explicit)
        for name in module.__all__
    },
}
RECIPES = {name: RECIPES[name] for name in ("auto", *sorted(RECIPES.keys() - {"auto"}))}

#: Every dictionary by its name: ``DICTIONARIES[name].make(...)``.
DICTIONARIES: dict[str, Recipe] = {
    name: Recipe(made, **told(made))
    for name, made in {
        "kors": dictionaries.KORS,
        "squeak": dictionaries.SQUEAK,
        "row_sampling": dictionaries.RowSampling,
        "uniform": dictionaries.UniformSample,
        "linear_dependence": dictionaries.LinearDependence,
        "frequent_directions": dictionaries.FrequentDirections,
        "kernel_pca": dictionaries.KernelPCA,
    }.items()
}


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
