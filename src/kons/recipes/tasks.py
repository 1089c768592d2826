"""Learners for raw units, made by name: numbers as targets, or labels of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from kons.errors import ConfigurationError
from kons.kernels import Kernel
from kons.learners import Classifier, Scaled
from kons.losses import Logistic, Loss, Squared
from kons.recipes.registry import LOSSES, bandwidth_of, find, kernel_of, recipe_of
from kons.recipes.row import Recipe

__all__ = ["for_task", "together", "warmup_for"]

# What for_task gives the logistic loss: probabilities up to 0.9997. With the gradient's curvature the step
# size falls as exp(-bound), and only 0.95 can be afforded.
LOGISTIC_BOUND = 8.0
LOGISTIC_BOUND_OF_GRADIENT = 3.0
# ... and the ridge of learners with the Hessian, whose targets then lie within 1.
HESSIAN_REGULARIZATION = 0.01
# Rows of a warm-up; in a short stream the scales must come from fewer.
WARMUP, SHORTEST_WARMUP, WARMUP_SHARE = 500, 20, 0.1


def for_task(
    task: Literal["regression", "classification"],
    name: str = "auto",
    *,
    kernel: str | Kernel | None = None,
    bandwidth: float | Literal["auto"] = "auto",
    scale: Literal["auto", "none"] = "auto",
    warmup: int | None = None,
    margin: float | None = None,
    seed: int = 0,
    loss: str | Loss | None = None,
    classes: Any = None,
    **parameters: Any,
) -> Any:
    """A learner ready for raw units: numbers as targets, or labels of any kind.

    Parameters
    ----------
    task:
        ``"regression"`` or ``"classification"``.
    name:
        Of the algorithm, in :data:`RECIPES`. ``"auto"`` is :class:`kons.AutoKONS`, which chooses what is not
        given as it learns; any other is wrapped in :class:`kons.Scaled`.
    kernel, bandwidth:
        A name in :data:`KERNELS` or a kernel; ``"auto"`` finds a bandwidth in the rows. None: Gaussian, and
        several for ``"auto"``.
    scale:
        ``"none"`` leaves the features as they are; target and bandwidth are found all the same.
    warmup, margin:
        As in :class:`kons.Scaled`; None for 500 rows.
    seed:
        Of the coins, where the algorithm tosses some.
    loss:
        A name in :data:`LOSSES`, or a loss. None: squared for numbers, logistic for labels (on three public
        sets as few errors as squared, and a fifth less log loss), where the algorithm takes it.
    classes:
        All the labels there will be, if they are known: see :class:`kons.Classifier`.
    parameters:
        Others of the algorithm, such as ``regularization`` or ``max_atoms``.

    What ``"auto"`` does without is refused: ``scale="none"``, ``warmup``, ``margin``, ``loss``, ``classes``.

    >>> model = for_task("classification", max_atoms=50)
    >>> model.advance([[0.1], [250.0], [0.2]], ["low", "high", "low"]).prediction.tolist()
    [None, 'low', 'low']
    >>> type(for_task("regression", "embedded", warmup=100)).__name__
    'Scaled'
    """
    if task not in ("regression", "classification"):
        raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
    if scale not in ("auto", "none"):
        raise ConfigurationError(f'scale is {scale!r}, expected "auto" or "none".')
    if task == "regression" and classes is not None:
        raise ConfigurationError("classes are for classification.")
    recipe = recipe_of(name)
    if task not in recipe.tasks:
        raise ConfigurationError(
            f"{name!r} is for {' and '.join(recipe.tasks)}, not for {task}: choose another learner, such as "
            '"embedded".'
        )
    for parameter in parameters:
        if parameter not in recipe.parameters:
            raise ConfigurationError(
                f"{name!r} takes no parameter {parameter!r}; it takes {', '.join(recipe.accepts)}."
            )
    if "seed" in recipe.parameters:
        parameters["seed"] = seed
    if recipe.in_raw_units:
        needless = {"warmup": warmup, "margin": margin, "loss": loss, "classes": classes}
        _require_none(name, needless | {"scale": None if scale == "auto" else scale})
        parameters["kernel"] = None if kernel is None else kernel_of(kernel)
        parameters["bandwidth"] = bandwidth_of(bandwidth)
        return recipe.make(task, **parameters)
    given = {"kernel": kernel, "bandwidth": None if bandwidth == "auto" else bandwidth, "loss": loss}
    _require_none(name, {word: value for word, value in given.items() if word not in recipe.accepts})
    chosen = kernel_of("gaussian" if kernel is None else kernel, bandwidth)
    problem: Any = _made(recipe, task, chosen, loss, parameters)
    if task == "classification":
        problem = Classifier(problem, classes)
    rows = WARMUP if warmup is None else warmup
    return Scaled(problem, rows, margin=margin, scale_features=scale == "auto")


def _require_none(name: str, needless: Mapping[str, Any]) -> None:
    for parameter, value in needless.items():
        if value is not None:
            alone = ", which finds units and classes by itself as rows come"
            raise ConfigurationError(
                f"{parameter}={value!r} does not apply to {name!r}"
                f"{alone if recipe_of(name).in_raw_units else ''}: leave it out, or choose another learner, "
                'such as "embedded".'
            )


def _made(
    recipe: Recipe,
    task: str,
    kernel: Kernel,
    loss: str | Loss | None,
    parameters: dict[str, Any],
) -> Any:
    """A learner of one problem, with the defaults that suit scaled targets."""
    usual = recipe.own_loss or (recipe.of_labels if task == "classification" else Squared())
    chosen = usual if loss is None else loss if isinstance(loss, Loss) else find(loss, LOSSES, "loss")
    defaults: dict[str, Any] = {}
    if recipe.hessian:
        defaults["regularization"] = HESSIAN_REGULARIZATION
    if isinstance(chosen, Logistic) and "bound" in recipe.parameters:
        order = parameters.get("second_order", "hessian" if recipe.hessian else "gradient")
        defaults["bound"] = LOGISTIC_BOUND if order == "hessian" else LOGISTIC_BOUND_OF_GRADIENT
    return recipe.made_of(kernel, chosen, **(defaults | parameters))


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
