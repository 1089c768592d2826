"""The two learners as the goals describe them, and their warm-up."""

from __future__ import annotations

from benchmarks.streams import BOUND, synthetic
from kons import KONS, Gaussian, SketchedKONS, Squared
from kons.policies import Leverage

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


def warm_up() -> None:
    """Compile everything, and let the BLAS start its threads."""
    small = synthetic(600, 8)
    for learner in (exact(), sketched(0.1)):
        learner.advance(small.X, small.y)
        learner.learn_one(small.X[0], small.y[0])
