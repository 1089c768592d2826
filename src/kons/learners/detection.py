"""Rows without a target: how new each one is to a dictionary of those before."""

from __future__ import annotations

from typing import Any

from kons.kernels import Gaussian
from kons.learners.embedded import EmbeddedKONS
from kons.learners.scaled import Scaled
from kons.losses import Squared
from kons.policies import Dependence

__all__ = ["novelty_learner"]

# Chosen by the mean area under the curve over the streams of benchmarks.novelty. What of a row must lie
# outside of the span of the others to become an atom: at .01 the middle of a ring counted as spanned.
APART = 0.001
# Median distances of the bandwidth: narrower than to predict, for gaps between clusters are to be seen.
WIDER = 1.25


def novelty_learner(
    *, bandwidth: float | str = "auto", max_atoms: int = 200, forgetting: float = 1.0, warmup: int = 100
) -> Any:
    """A learner of which only the novelty is asked: teach it rows, all with the target 0.

    ::

        novelty(x) = phi^T A^-1 phi + what lies outside the span, over alpha,    A = alpha I + 2 sum z z^T

    large for a row unlike those learned, alpha = 0.1. Features are scaled by the first ``warmup`` rows,
    which have no novelty (NaN); a column that only grew in them, time or a count, is left out. O(B^2) a row
    with B atoms: 10 to 200 microseconds. Not for anomalies that are as frequent as the rest: they become
    the rest.

    >>> import numpy as np
    >>> learner = novelty_learner()
    >>> trace = learner.advance(np.random.default_rng(0).normal(size=(500, 2)), np.zeros(500))
    >>> near, far = learner.novelty([[0.0, 0.0], [6.0, 6.0]])
    >>> bool(far > 10 * near)
    True
    """
    inner = EmbeddedKONS(
        Gaussian(bandwidth),  # type: ignore[arg-type]
        Squared(),
        second_order="hessian",
        regularization=0.1,
        max_atoms=max_atoms,
        forgetting=forgetting,
        # A full dictionary that froze would find new for ever what came late: every weekend.
        policy=Dependence(APART, when_full="replace"),
    )
    return Scaled(inner, warmup, ignore_clocks=True, wider=WIDER)
