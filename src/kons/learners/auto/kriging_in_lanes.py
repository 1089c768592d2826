"""Neighbours of many rows at once: the same fits, eight side by side.

In order, a set of columns differs from the one without its last column in that one: where rows differ in so
little, the nearest of the one bound how far those of the other are. Eight fits go through one factorization
(:func:`~kons.core.local_ridge.weigh_targets_in_lanes`): predictions are those of
:func:`~kons.learners.auto.neighbours.predict_around` but for rounding, at half the time.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import address_of, compiled, inner
from kons.core.lanes import LANES, Lanes
from kons.core.local_ridge import Addresses, weigh_targets_in_lanes
from kons.learners.auto.nearest import BEHIND, LEAF, Kept, find_nearest, find_nearest_within

__all__ = ["predict_in_lanes"]

#: Rows of a fit: see kons.learners.auto.neighbours.
ROWS: Final = 32


def predict_in_lanes(U: Matrix, kept: Kept, regularization: float, predictions: Matrix) -> NDArray[np.bool_]:
    """Fill in predictions; returns of which rows there are none, where the nearest are all equally far."""
    columns, found = U.shape[1], np.zeros(len(U), np.int64)
    M, here = np.zeros((ROWS, ROWS + 1, LANES)), np.zeros((columns, ROWS + 1, LANES))
    numbers = np.ones((3, ROWS + 1, LANES))
    addresses = address_of(M), address_of(here), address_of(numbers)
    _predict(U, kept, regularization, M, here, numbers, addresses, predictions, found)
    missing: NDArray[np.bool_] = found == 0
    return missing


@compiled
def _predict(
    U: Matrix,
    kept: Kept,
    regularization: float,
    M: Lanes,
    here: Lanes,
    numbers: Lanes,
    addresses: Addresses,
    predictions: Matrix,
    found: Integers,
) -> None:
    """Rows that are as one before, a power of two of places, have its prediction."""
    count, latest, outputs = kept[1].shape[1], kept[4].shape[1], predictions.shape[1]
    near = np.empty(ROWS + 1 + BEHIND, np.float32)
    places = np.zeros((len(U), ROWS + 1 + BEHIND), np.int64)
    bounds, room = np.empty(count, np.float32), np.empty(max(latest, LEAF), np.float32)
    its = np.ones((outputs + 1, ROWS + 1, LANES))
    rows, filled = np.zeros(LANES, np.int64), 0
    for i in range(len(U)):
        back = _earlier(U, i)
        if back >= 0:
            places[i] = places[back]
        else:
            parent, alike = i & (i - 1), 0
            for c in range(U.shape[1]):
                alike += U[i, c] == U[parent, c]
            if i > 0 and 2 * alike > U.shape[1] and near[0] < np.inf:
                limit = _limit(U[i], kept, places[parent])
                find_nearest_within(U[i], kept, limit, bounds, room, near, places[i])
            else:
                find_nearest(U[i], kept, -1, bounds, room, near, places[i])
            if near[ROWS] < np.float32(63.0 / 64.0) * near[0] < np.inf:
                found[i], rows[filled] = 1, i
                if _gather(U[i], kept, places[i], filled, here, its, numbers):
                    for o in range(outputs):
                        predictions[i, o] = its[o, 0, filled] / its[outputs, 0, filled]
                else:
                    filled += 1
        if filled == LANES or (filled and i == len(U) - 1):
            weigh_targets_in_lanes(its[outputs], numbers, len(here), regularization, M, addresses)
            for at in range(filled):
                total = 0.0
                for n in range(ROWS):
                    total += M[n, ROWS, at]
                if not abs(total - 1.0) < 0.5:  # no fit
                    found[rows[at]] = 0
                for o in range(outputs):
                    predictions[rows[at], o] = 0.0
                    for n in range(ROWS):
                        predictions[rows[at], o] += M[n, ROWS, at] * (its[o, n, at] / its[outputs, n, at])
            filled = 0
    for i in range(len(U)):
        back = _earlier(U, i)
        if back >= 0:
            predictions[i], found[i] = predictions[back], found[back]


@inner
def _earlier(U: Matrix, i: int) -> int:
    """The same row, a power of two before this one; -1: none."""
    back = 1
    while back <= i:
        same = True
        for c in range(U.shape[1]):
            same = same and U[i, c] == U[i - back, c]
        if same:
            return i - back
        back *= 2
    return -1


@inner
def _limit(u: Vector, kept: Kept, places: Integers) -> float:
    """Farther than the farthest of these rows, by what rounding is at most."""
    leaves, low, _, _, latest, _ = kept
    columns, first, farthest = low.shape[0], low.shape[1] * LEAF, 0.0
    for place in places[: ROWS + 1]:
        total = 0.0
        for c in range(columns):
            if place < first:
                total += abs(u[c] - leaves[place // LEAF * columns + c, place % LEAF])
            else:
                total += abs(u[c] - latest[c, place - first])
        farthest = max(farthest, total)
    return farthest * (1.0 + 1e-5) + 1e-30


@inner
def _gather(
    u: Vector, kept: Kept, places: Integers, at: int, here: Lanes, its: Lanes, numbers: Lanes
) -> bool:
    """Put the nearest rows into a lane; returns whether all have the same targets."""
    leaves, low, _, values, latest, latest_values = kept
    columns, first, outputs, alike = low.shape[0], low.shape[1] * LEAF, len(its) - 1, True
    for n in range(ROWS + 1):
        place, total = places[ROWS - n], 0.0
        for c in range(columns):
            if place < first:
                here[c, n, at] = leaves[place // LEAF * columns + c, place % LEAF]
            else:
                here[c, n, at] = latest[c, place - first]
            total += abs(np.float64(np.float32(u[c])) - here[c, n, at])
        numbers[0, n, at] = total
        for o in range(outputs + 1):
            its[o, n, at] = values[place, o] if place < first else latest_values[place - first, o]
        for o in range(outputs):
            alike = alike and its[o, n, at] == its[o, 0, at] / its[outputs, 0, at] * its[outputs, n, at]
    return alike
