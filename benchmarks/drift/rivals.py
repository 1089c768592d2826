"""Whom AutoKONS is beside on streams that move: learners with a short memory, the best one in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.contenders import numbers
from benchmarks.drift.streams import Moving
from kons.policies import Dependence
from kons.recipes import for_task

FORGETTING = (1.0, 0.999, 0.995, 0.99)
WINDOWS = (250, 500, 1_000, 4_000)
NEIGHBOURS = 5
BLOCK = 64

Predictions = np.ndarray
Play = Callable[[Moving], Predictions]


def embedded(moving: Moving, forgetting: float) -> Predictions:
    """EmbeddedKONS with its defaults but for forgetting, and atoms that are replaced."""
    policy = Dependence(when_full="replace" if forgetting < 1.0 else "freeze")
    learner = for_task(moving.stream.task, "embedded", forgetting=forgetting, policy=policy)
    return numbers(learner.advance(moving.stream.X, moving.stream.y).prediction)


def neighbours(moving: Moving, window: int) -> Predictions:
    """The mean, or the commonest label, of the five nearest of the last rows; columns in units there."""
    X, y, classes = moving.stream.X, moving.stream.y, moving.classes
    predictions = np.zeros(len(y))
    for start in range(1, len(y), BLOCK):
        stop = min(start + BLOCK, len(y))
        first = max(start - window, 0)
        scale = X[first:start].std(axis=0)
        known = X[first:stop] / np.where(scale > 0.0, scale, 1.0)
        asked = known[start - first :]
        squares = np.einsum("ij,ij->i", known, known)
        distances = squares - 2.0 * asked @ known.T
        for i in range(stop - start):  # row by row: none knows itself, or a later one
            seen = distances[i, max(start + i - window - first, 0) : start + i - first]
            count = min(NEIGHBOURS, len(seen))
            nearest = np.argpartition(seen, count - 1)[:count] + max(start + i - window, first)
            found = y[nearest]
            if classes:
                values, counts = np.unique(found, return_counts=True)
                predictions[start + i] = values[np.argmax(counts)]
            else:
                predictions[start + i] = found.mean()
    return predictions


def always_there() -> Iterator[tuple[str, Play]]:
    """Those that need no other library, each with one setting."""
    for forgetting in FORGETTING:
        yield f"embedded, forgetting {forgetting:g}", lambda moving, f=forgetting: embedded(moving, f)
    for window in WINDOWS:
        yield f"neighbours in {window:,} rows", lambda moving, w=window: neighbours(moving, w)
