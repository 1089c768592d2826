"""Second-order online learning with kernels: KONS, KORS and Sketched-KONS.

>>> import numpy as np
>>> from kons import KONS, Gaussian, Squared
>>> learner = KONS(Gaussian(bandwidth=1.0), Squared(), bound=1.0)
>>> for x, y in [([0.0], 0.5), ([0.1], 0.5), ([3.0], -0.5)]:
...     score = learner.predict_one(x)
...     learner.learn_one(x, y)
>>> bool(learner.predict_one([0.05]) > 0 > learner.predict_one([3.1]))
True
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kons.evaluation import evaluate
    from kons.files import load, save
    from kons.forecasting import Forecaster
    from kons.kernels import Gaussian, Laplace, Linear, Matern, Polynomial, RationalQuadratic
    from kons.keyed import Keyed
    from kons.learners import (
        KONS,
        KORS,
        AutoKONS,
        Classifier,
        EmbeddedKONS,
        FeatureLearner,
        FunctionalGradient,
        Scaled,
        SketchedKONS,
        SlidingWindow,
        Trace,
    )
    from kons.losses import Hinge, Logistic, Squared, SquaredHinge
    from kons.theory import certify

__version__ = "0.1.0"

__all__ = [
    "KONS",
    "KORS",
    "AutoKONS",
    "Classifier",
    "EmbeddedKONS",
    "FeatureLearner",
    "Forecaster",
    "FunctionalGradient",
    "Gaussian",
    "Hinge",
    "Keyed",
    "Laplace",
    "Linear",
    "Logistic",
    "Matern",
    "Polynomial",
    "RationalQuadratic",
    "Scaled",
    "SketchedKONS",
    "SlidingWindow",
    "Squared",
    "SquaredHinge",
    "Trace",
    "certify",
    "evaluate",
    "load",
    "save",
]

# Each name is imported when it is first asked for (PEP 562): `kons --help` should not wait for Numba.
_HOMES = {
    "evaluation": "evaluate",
    "files": "load save",
    "forecasting": "Forecaster",
    "keyed": "Keyed",
    "kernels": "Gaussian Laplace Linear Matern Polynomial RationalQuadratic",
    "learners": "KONS KORS AutoKONS Classifier EmbeddedKONS FeatureLearner FunctionalGradient "
    "Scaled SketchedKONS SlidingWindow Trace",
    "losses": "Hinge Logistic Squared SquaredHinge",
    "theory": "certify",
}
_HOME = {name: f"kons.{home}" for home, names in _HOMES.items() for name in names.split()}
_MODULES = (
    *_HOMES,
    "checks",
    "dictionaries",
    "errors",
    "policies",
    "recipes",
    "scaling",
    "step_sizes",
    "streams",
)
# Those that need another package, of the same name.
_ADAPTERS = ("river", "sklearn")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES or name in _ADAPTERS:
        value = import_module(f"kons.{name}")
    else:
        raise AttributeError(f"module 'kons' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    adapters = [name for name in _ADAPTERS if find_spec(name) is not None]
    return sorted({*globals(), *__all__, *_MODULES, *adapters})
