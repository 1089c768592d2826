"""Compiled loops, loaded before a clock runs: the time a row takes should not hold that of a compiler."""

from __future__ import annotations

import numpy as np

from kons.errors import KonsError
from kons.learners.protocol import as_learner
from kons.runs.settings import Settings
from kons.streams import Stream

__all__ = ["load_loops"]

ROWS, WARMUP = 40, 3


def load_loops(settings: Settings, stream: Stream) -> None:
    """Let a learner of the same kind, thrown away afterwards, learn a few rows that mean nothing."""
    X = np.random.default_rng(0).normal(size=(ROWS, len(stream.features)))
    labels = np.array(["a", "b"] * (ROWS // 2), dtype=object)
    # Targets that stay within those of the warm-up: nothing is to be told about them.
    y = labels if stream.task == "classification" else np.where(labels == "a", -1.0, 1.0)
    try:
        given = {name: value for name, value in settings.parameters.items() if name != "classes"}
        takes = settings.recipe.accepts
        quick = {"warmup": WARMUP} if "warmup" in takes else {}
        made = settings.with_learner(settings.learner, given | quick).make_learner(stream, delay=0)
        learner = as_learner(made)
        learner.advance(X, y)
        if settings.total_delay(stream) and "delay" not in takes:  # row by row
            learner.predict_one(X[0])
            learner.learn_one(X[0], y[0])
    except KonsError:  # whatever is wrong shows in the run itself
        return
