"""Nystrom landmarks for many points: what the estimates of this package project on."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.core.embedding import Embedding
from kons.core.storage import take
from kons.kernels import Kernel
from kons.learners import KORS
from kons.policies import Leverage

__all__ = ["EXACT_UP_TO", "landmark_embedding"]

#: Points up to which nothing is projected.
EXACT_UP_TO = 4000

# KORS looks at this many points, evenly spread, and at most this many of its choices are used: the cost of
# n points is then n*B^2 with a B that is known. What that misses is in the errors beside the estimates.
LOOKED_AT = 4000
MOST = 500


def landmark_embedding(kernel: Kernel, points: Any, weights: Vector, alpha: float) -> Embedding:
    """The span of leverage-chosen landmarks among the points."""
    chosen = np.unique(np.linspace(0, len(weights) - 1, min(LOOKED_AT, len(weights))).astype(int))
    looked_at = take(points, chosen)
    # Each point looked at stands for several: so does its weight in A.
    share = len(weights) / len(chosen)
    sampler = KORS(kernel, regularization=alpha, policy=Leverage(oversampling=3.0))
    sampler.advance(looked_at, weights[chosen] * share)
    embedding = Embedding(kernel)
    if sampler.size:
        embedding.extend(sampler.atoms[:MOST])
    return embedding
