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

from kons.kernels import Gaussian, Laplace, Linear, Matern, Polynomial, RationalQuadratic
from kons.learners import KONS, KORS, SketchedKONS, Trace
from kons.losses import Logistic, Squared, SquaredHinge

__version__ = "0.1.0"

__all__ = [
    "KONS",
    "KORS",
    "Gaussian",
    "Laplace",
    "Linear",
    "Logistic",
    "Matern",
    "Polynomial",
    "RationalQuadratic",
    "SketchedKONS",
    "Squared",
    "SquaredHinge",
    "Trace",
]
