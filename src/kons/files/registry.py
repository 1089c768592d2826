"""What a file may hold: a fixed table of names. A file names a class here, never a module of its choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from kons.errors import FileError, KonsError, MissingExtraError

__all__ = ["TABLE", "build", "class_of", "name_of", "parameters_of", "state_of"]

# The classes of each module, whose public names are their own.
_CLASSES = {
    "kons.learners.kons": ("KONS",),
    "kons.learners.sketched": ("SketchedKONS",),
    "kons.learners.embedded": ("EmbeddedKONS",),
    "kons.learners.features": ("FeatureLearner",),
    "kons.learners.kors": ("KORS",),
    "kons.learners.budgeted": ("FunctionalGradient", "SlidingWindow"),
    "kons.learners.auto.learner": ("AutoKONS",),
    "kons.learners.classifier": ("Classifier",),
    "kons.learners.scaled": ("Scaled",),
    "kons.forecasting.forecaster": ("Forecaster",),
    "kons.keyed.keyed": ("Keyed",),
    "kons.dictionaries.sampled": ("SQUEAK", "RowSampling", "UniformSample"),
    "kons.dictionaries.spans": ("FrequentDirections", "KernelPCA", "LinearDependence"),
    "kons.evaluation.first_order": ("KernelGradientDescent",),
    "kons.kernels.stationary": ("Gaussian", "Laplace", "Matern", "RationalQuadratic"),
    "kons.kernels.products": ("Linear", "Polynomial"),
    "kons.kernels.composition": ("Sum", "Product", "Multiple", "Normalized"),
    "kons.kernels.function": ("FunctionKernel",),
    "kons.kernels.scikit_learn": ("ScikitLearn",),
    "kons.losses.builtin": ("Squared", "Logistic", "SquaredHinge", "Hinge"),
    "kons.losses.custom": ("CustomLoss",),
    "kons.policies": ("Budget", "Dependence", "Fixed", "Leverage"),
    "kons.step_sizes": ("Constant", "InverseSqrt", "FromFunction"),
}
# scikit-learn's own kernels, inside ScikitLearn.
_THEIRS = (
    *("ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern"),
    *("PairwiseKernel", "Product", "RBF", "RationalQuadratic", "Sum"),
)
#: Public name -> where its class is. A name, once released, keeps its meaning; the place may change.
TABLE: dict[str, str] = {
    **{name: f"{module}:{name}" for module, names in _CLASSES.items() for name in names},
    **{
        f"kons.sklearn.{name}": f"kons.sklearn.estimators:{name}"
        for name in ("KONSRegressor", "KONSClassifier")
    },
    "kons.sklearn.KORSFeatures": "kons.sklearn.landmarks:KORSFeatures",
    **{
        f"kons.river.{name}": f"kons.river.models:{name}"
        for name in ("KONSRegressor", "KONSMultiTargetRegressor", "KONSClassifier")
    },
    **{f"sklearn.{name}": f"sklearn.gaussian_process.kernels:{name}" for name in _THEIRS},
}
_NAMES = {place: name for name, place in TABLE.items()}

# Constructor arguments of the classes that keep them under other names.
_PARAMETERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "FunctionKernel": lambda kernel: {"function": kernel.function, "diagonal": kernel.diagonal_function},
    "ScikitLearn": lambda kernel: {"kernel": kernel.kernel, **dict(kernel.parameters)},
    "CustomLoss": lambda loss: {
        "value": loss.value_function,
        "slope": loss.slope_function,
        "second_derivative": loss.second_derivative_function,
        "lipschitz": loss.lipschitz_given,
        "curvature": loss.curvature_given,
        "targets": loss.targets,
        "name": loss.name,
    },
    "kons.river.KONSRegressor": lambda model: model._get_params(),
    "kons.river.KONSMultiTargetRegressor": lambda model: model._get_params(),
    "kons.river.KONSClassifier": lambda model: model._get_params(),
}


@runtime_checkable
class Learned(Protocol):
    """What has learned something that a file keeps, and the way back."""

    def state(self) -> dict[str, Any]: ...
    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Any: ...


def name_of(thing: Any) -> str | None:
    """The public name of the class of ``thing``, exactly; None if it is not in the table."""
    kind = type(thing)
    known = _NAMES.get(f"{kind.__module__}:{kind.__qualname__}")
    return known or next((name for name, made in _added().items() if made is kind), None)


def _added() -> dict[str, type[Any]]:
    """Classes of the tables of recipes: what this program added there may be in its files."""
    from kons.recipes import KERNELS, LOSSES, RECIPES  # only for what has no name above

    found: dict[str, Any] = {f"learners/{name}": row.takes or row.make for name, row in RECIPES.items()}
    found |= {f"kernels/{name}": made for name, made in KERNELS.items()}
    found |= {f"losses/{name}": type(loss) for name, loss in LOSSES.items()}
    return {name: made for name, made in found.items() if isinstance(made, type)}


def class_of(name: Any) -> type[Any]:
    """The class of this public name."""
    place = TABLE.get(name) if isinstance(name, str) else None
    if place is None and isinstance(name, str) and name in (added := _added()):
        return added[name]
    if place is None:
        raise FileError(f"it holds a {name!r}, which this kons does not know: update kons, or it is forged.")
    module, _, attribute = place.partition(":")
    try:
        found: type[Any] = getattr(import_module(module), attribute)
    except ImportError:
        raise MissingExtraError(f"a saved {name}", module.split(".")[1 if "kons" in module else 0]) from None
    return found


def parameters_of(name: str, thing: Any) -> dict[str, Any]:
    """The constructor's arguments of something in the table."""
    if name in _PARAMETERS:
        return _PARAMETERS[name](thing)
    if callable(getattr(thing, "parameters", None)):
        return dict(thing.parameters())
    if callable(getattr(thing, "get_params", None)):
        return dict(thing.get_params(deep=False))
    if not is_dataclass(thing):
        raise FileError(
            f"{name} has no parameters(), the arguments of its class by name: it cannot be saved."
        )
    return {field.name: getattr(thing, field.name) for field in fields(thing) if field.init}


def state_of(thing: Any) -> dict[str, Any] | None:
    """What it has learned, or None for what never learns."""
    return dict(thing.state()) if isinstance(thing, Learned) else None


def build(name: Any, parameters: Any, state: Any) -> Any:
    """What was saved under a name of the table; whatever is wrong with it is a :class:`FileError`."""
    made = class_of(name)
    learns = issubclass(made, Learned)
    if not isinstance(parameters, dict) or isinstance(state, dict) is not learns:
        raise FileError(f"its {name} does not have the parameters, or the state, that it should.")
    try:
        return made.from_state(parameters, state) if learns else made(**parameters)
    except MissingExtraError:
        raise
    except KonsError as error:
        raise FileError(f"its {name} is refused: {error}") from error
    except Exception as error:  # a forged file may hand anything to a constructor
        raise FileError(f"its {name} cannot be made: {type(error).__name__}: {error}") from error
