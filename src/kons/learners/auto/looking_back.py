"""Slow drift: whether the ensemble of today still answers for old rows as it did then.

Experts with a finite memory follow a function that creeps, and the loss does not rise. But what they then say
of old rows is wrong: of rows drawn evenly from the first half of those learned, each with the last targets
that it had, the squared error now is compared with the one when they were predicted,

    mean(now - then) > usual/2,   and three standard errors.

Where nothing moves it is negative, for these rows have been learned since. Targets and their noise are the
same on both sides, and cancel.
"""

from __future__ import annotations

import math

import numpy as np

from kons.arrays import Vector
from kons.learners.auto.ensemble import Ensemble

__all__ = ["is_time_to_look_back", "rise_of_old_errors"]


def is_time_to_look_back(rows: int) -> bool:
    """Whether an ensemble of so many rows looks: 48 predictions, a fiftieth of what learning 1,024 costs."""
    return rows > 0 and rows % 1024 == 0


def rise_of_old_errors(ensemble: Ensemble, usual: float, since: int, units: Vector) -> float:
    """How much larger errors at old rows are now, in units of the usual one; 0 where that may be chance.

    Rows before ``since`` of this ensemble do not count. Errors are summed over the targets, in their units.
    """
    places, kept, layout = ensemble.reservoir.places(since), ensemble.reservoir.kept, ensemble.layout
    # Before a sixteenth of the rows it knew too little to compare with.
    places = places[len(places) // 16 : len(places) // 2]
    places = places[layout.weights(kept)[places] > 0.0]
    if len(places) < 24 or usual <= 0.0:
        return 0.0
    # Only those that are looked at are copied.
    old = kept[places[np.linspace(0, len(places) - 1, min(len(places), 48)).astype(np.int64)]]
    predictions = ensemble.predict(old, True)[0]
    now = np.sum((predictions - layout.outputs(old, ensemble.outputs)) ** 2 / units, axis=1)
    most = 20.0 * usual  # one row is no evidence
    rises = np.minimum(now, most) - np.minimum((layout.errors(old) / units).sum(axis=1), most)
    mean = math.fsum(rises.tolist()) / len(rises)
    error = math.sqrt(math.fsum(((rises - mean) ** 2).tolist())) / len(rises)
    return mean / usual if mean > max(0.5 * usual, 3.0 * error) else 0.0
