"""The learners as the goals describe them, and their warm-up."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.streams import BOUND, synthetic
from kons import KONS, EmbeddedKONS, Gaussian, SketchedKONS, Squared
from kons.policies import Dependence, Leverage

KERNEL = Gaussian(bandwidth=0.7)
REGULARIZATION = 1.0


def exact() -> KONS:
    """A new exact learner."""
    return KONS(KERNEL, Squared(), bound=BOUND, regularization=REGULARIZATION)


def sketched(floor: float, seed: int = 0) -> SketchedKONS:
    """A new sketched learner that keeps a point with probability max(leverage estimate, floor)."""
    policy = Leverage(oversampling=1.0, floor=floor)
    return SketchedKONS(
        KERNEL, Squared(), bound=BOUND, regularization=REGULARIZATION, policy=policy, seed=seed
    )


def embedded(bandwidth: float = 0.5, **changes: Any) -> EmbeddedKONS:
    """A new embedded learner: Hessian, regularization 0.01, at most 100 atoms."""
    choices = {"bound": BOUND, "regularization": 0.01, "second_order": "hessian", "max_atoms": 100}
    return EmbeddedKONS(Gaussian(bandwidth), Squared(), **(choices | changes))


def filled(X: np.ndarray, y: np.ndarray, **choices: Any) -> EmbeddedKONS:
    """An embedded learner whose dictionary these rows have filled."""
    learner = embedded(**choices)
    learner.advance(X, y)
    if learner.size < learner.max_atoms:
        raise RuntimeError(f"only {learner.size} of {learner.max_atoms} atoms: choose a smaller bandwidth")
    return learner


def warm_up() -> None:
    """Compile everything, and let the BLAS start its threads."""
    small = synthetic(600, 8)
    replacing = {"policy": Dependence(when_full="replace"), "max_atoms": 20, "forgetting": 0.99}
    for learner in (exact(), sketched(0.1), embedded(), embedded(0.1, **replacing)):
        learner.advance(small.X, small.y)
        for i in range(20):
            learner.predict_one(small.X[i])
            learner.learn_one(small.X[i], float(small.y[i]))
