"""Rows of the registry: what stands under a name, and how a function of few lines becomes one."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Kernel
from kons.losses import Logistic, Loss

__all__ = ["SHARED", "Choices", "Recipe", "row", "told"]

Given = ParamSpec("Given")
Made = TypeVar("Made")
#: Arguments of a learner by their names.
Choices = dict[str, Any]

#: What :func:`kons.recipes.for_task` takes for every learner that is made of a kernel and a loss.
SHARED = ("kernel", "bandwidth", "warmup", "margin", "loss", "classes")
# Words of a docstring that are those of a recipe.
FIELDS = {"cost": "cost", "not for": "avoid", "reference": "reference"}


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
    of_labels: Loss = Logistic()
    """Its loss for labels, unless another is given."""
    tasks: tuple[str, ...] = ("regression", "classification")
    """What it is for."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """What can be given by name, besides task, kernel and loss."""
        return tuple(name for name in self._named if name not in ("task", "kernel", "loss"))

    @property
    def own_loss(self) -> Loss | None:
        """The loss that it is of, where it takes no other."""
        if "loss" in self._named or self.in_raw_units:
            return None
        made = self.make(**{"kernel": Gaussian(1.0)} if "kernel" in self._named else {})
        return getattr(made, "loss", None)

    def made_of(self, kernel: Kernel, loss: Loss, **parameters: Any) -> Any:
        """The learner, of as much of these as it takes."""
        own = self.own_loss
        if own is not None and loss != own:
            maker: Any = getattr(self.make, "func", self.make)
            word = type(own).__name__.lower()
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
            needless = ("kernel", "bandwidth") if "loss" in self._named else ("kernel", "bandwidth", "loss")
            shared = tuple(name for name in shared if name not in needless)
        return (*self.parameters, *(name for name in shared if name not in self.parameters))


def told(thing: Any) -> dict[str, Any]:
    """What a docstring says: its first line, and the fields ``:cost:``, ``:not for:`` and ``:reference:``."""
    text = inspect.getdoc(thing) or ""  # there is none under python -OO
    first, *others = text.partition("\n")[0].split(" ")
    words = {"description": " ".join([first.lower() if first.istitle() else first, *others]).rstrip(".")}
    for field, value in re.findall(rf"^:({'|'.join(FIELDS)}): (.+(?:\n +.+)*)", text, re.MULTILINE):
        words[FIELDS[field]] = " ".join(value.split())
    return words


def row(
    learner: Callable[..., Made], **facts: Any
) -> Callable[[Callable[Given, Choices | Made]], Callable[Given, Made]]:
    """Make a recipe of a function that says what to choose: of that, and of its arguments, a learner is made.

    An argument is the learner's of the same name; one that the learner does not have is the function's alone.
    ``facts`` are of the :class:`Recipe`, the docstring tells the others (:func:`told`). A function may also
    return the learner itself.

    >>> from kons import KONS, Gaussian, Squared
    >>> @row(KONS)
    ... def narrow(loss, *, bound=1.0, width=0.1):
    ...     return {"kernel": Gaussian(width)}
    >>> narrow(Squared(), bound=2.0).parameters()["bound"], narrow(Squared()).kernel
    (2.0, Gaussian(bandwidth=0.1))
    """
    takes = inspect.signature(learner).parameters

    def made(choose: Callable[Given, Choices | Made]) -> Callable[Given, Made]:
        signature = inspect.signature(choose)

        @functools.wraps(choose)
        def make(*args: Given.args, **given: Given.kwargs) -> Made:
            arguments = signature.bind(*args, **given)
            arguments.apply_defaults()
            chosen = choose(*args, **given)
            if not isinstance(chosen, dict):
                return chosen
            return learner(
                **{name: arguments.arguments[name] for name in arguments.arguments if name in takes} | chosen
            )

        ready = cast(Any, make)
        ready.__signature__ = signature.replace(return_annotation=getattr(learner, "__name__", "Any"))
        ready.recipe = Recipe(make, **told(choose), **facts)
        return make

    return made
