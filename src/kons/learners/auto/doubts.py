"""What says how doubtful a prediction is, of what experts compute anyway: the sizes behind intervals.

::

    novelty     1 - max_b k(x, a_b)^2 e     the part of phi(x) outside the span of the nearest atom of the
                                            Gaussian expert that has learned all rows, in its metric
    e           exp(-8 outside)             outside: how far x lies beyond the range of any feature, in units
                                            of that range: to columns that the metric ignores, too
    sizes       the deviation of the experts' predictions; how far those of this expert and of the nearest
                rows are from what is predicted; the deviation of the targets of the nearest rows, and
                their mean distance

Residuals are as large as these let expect: see :mod:`kons.core.residual_scale`, whose q is novelty/(1 -
novelty), 0 at an atom and beyond all limits far from all of them. O(experts + B) a row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.compilation import compiled, inner
from kons.kernels import Gaussian, Laplace
from kons.learners.auto.neighbours import Neighbours
from kons.learners.auto.spec import BASELINES, STEADY
from kons.learners.auto.stacking import Cube

if TYPE_CHECKING:
    from kons.learners.auto.feature_map import CachedFeatures
    from kons.learners.auto.pool import ExpertPool, Slot

__all__ = ["SIZES", "doubts_in_block", "doubts_of", "doubts_of_row", "novelty_of", "places_of"]

# How fast a row is new outside of the ranges: one range beyond it is farther than most are from all atoms.
BEYOND = 8.0
# Farther than that is all the same: q stays a number.
MOST: Final = 600.0
LARGEST: Final = 1e300
#: Sizes of a row, behind its q.
SIZES = len(("deviation", "steady expert", "nearest rows", "their deviation", "their distance"))


def places_of(pool: ExpertPool) -> Any:
    """The columns of F of the steady expert and of the nearest rows, 0 for none; the number of columns."""
    steady = nearest = 0
    for column, slot in enumerate(pool.slots, start=BASELINES):
        if slot.expert is None:
            continue
        if slot.spec == STEADY and isinstance(slot.expert.kernel, (Gaussian, Laplace)):
            steady = column
        if isinstance(slot.expert, Neighbours) and not (slot.spec.lags or slot.spec.memory):
            nearest = column
    return np.array([steady, nearest, BASELINES + len(pool.slots)])


def _at(pool: ExpertPool, column: int) -> Slot:
    return pool.slots[column - BASELINES]


def doubts_in_block(
    pool: ExpertPool, rows: Matrix, ranges: Matrix, F: Any, predictions: Matrix, targets: int
) -> Any:
    """q and the sizes of rows that the experts have just predicted, (m, targets, 1 + sizes).

    ``ranges`` are the least and the largest value of the first features of rows before.
    """
    places = places_of(pool)
    K: Any = _at(pool, places[0]).expert._last if places[0] else None  # type: ignore[union-attr]
    scatters: Any = _at(pool, places[1]).expert.last_scatters if places[1] else None  # type: ignore[union-attr]
    return _filled(places, rows, ranges, F, predictions, K, scatters, targets)


def doubts_of(
    pool: ExpertPool, seen: CachedFeatures, ranges: Matrix, F: Any, predictions: Matrix, targets: int
) -> Any:
    """The same of rows away from the stream, of which these are the features in all maps."""
    places, K, scatters = places_of(pool), None, None
    if places[0]:
        K = similarity(pool, seen)
    if places[1]:
        slot: Any = _at(pool, places[1])
        scatters = slot.expert.predict_with_scatters(seen.coordinates(slot.feature_map, False))[1]
    return _filled(places, seen.rows, ranges, F, predictions, K, scatters, targets)


def novelty_of(pool: ExpertPool, seen: CachedFeatures, ranges: Matrix) -> Vector:
    """How new rows are, from 0 to 1."""
    K, q = similarity(pool, seen), np.zeros(len(seen.rows))
    if K is not None:
        _newness(np.ascontiguousarray(K), np.ascontiguousarray(seen.rows), ranges, q)
    return q / (1.0 + q)


def similarity(pool: ExpertPool, seen: CachedFeatures) -> Matrix | None:
    """The kernel between rows and the atoms of the steady expert, and a column behind; None: no such one."""
    place = places_of(pool)[0]
    if not place:
        return None
    slot: Any = _at(pool, place)
    K: Matrix = slot.expert.features(seen.coordinates(slot.feature_map, False))
    return K


def _filled(
    places: Any,
    rows: Matrix,
    ranges: Matrix,
    F: Any,
    predictions: Matrix,
    K: Any,
    scatters: Any,
    targets: int,
) -> Any:
    doubts = np.zeros((len(F), targets, 1 + SIZES))
    K = np.ones((len(F), 1)) if K is None else K
    scatters = np.zeros((len(F), targets + 1)) if scatters is None else scatters
    rows, predictions, F, K = (np.ascontiguousarray(a) for a in (rows, predictions, F, K))
    _doubts(places, rows, ranges, F, predictions, K, scatters, doubts)
    return doubts


@compiled
def _doubts(
    places: Integers,
    rows: Matrix,
    ranges: Matrix,
    F: Cube,
    predictions: Matrix,
    K: Matrix,
    scatters: Matrix,
    doubts: Cube,
) -> None:
    for t in range(len(F)):
        _of_row(places, rows[t], ranges, F[t], predictions[t], K[t], scatters[t], doubts[t])


@compiled
def _newness(K: Matrix, rows: Matrix, ranges: Matrix, new: Vector) -> None:
    for t in range(len(rows)):
        new[t] = _q(K[t], rows[t], ranges)


@compiled
def doubts_of_row(
    places: Integers,
    x: Vector,
    ranges: Matrix,
    F: Matrix,
    predictions: Vector,
    k: Vector,
    scatter: Vector,
    doubts: Matrix,
) -> None:
    """Of one row, F with a column for each output; of classes the first one's."""
    _of_row(places, x, ranges, F, predictions, k, scatter, doubts)


@inner
def _of_row(
    places: Integers,
    x: Vector,
    ranges: Matrix,
    F: Matrix,
    predictions: Vector,
    k: Vector,
    scatter: Vector,
    doubts: Matrix,
) -> None:
    values, its = np.empty(len(F)), np.empty(2)
    q = _q(k, x, ranges) if places[0] > 0 else 0.0
    for o in range(len(doubts)):
        for i in range(len(F)):
            values[i] = F[i, o]
        its[0], its[1] = scatter[o], scatter[len(scatter) - 1]
        doubts[o, 0] = q
        _doubt(places, values, predictions[o], its, doubts[o])


@inner
def _q(k: Vector, x: Vector, ranges: Matrix) -> float:
    """novelty/(1 - novelty)."""
    nearest, outside = 0.0, 0.0
    for b in range(len(k) - 1):  # the last one is that of the constant
        nearest = max(nearest, k[b])
    for j in range(min(len(ranges), len(x))):
        size = ranges[j, 1] - ranges[j, 0]
        if size > 0.0:
            outside = max(outside, (x[j] - ranges[j, 1]) / size, (ranges[j, 0] - x[j]) / size)
    q = 1.0 / max(nearest, 1e-150) ** 2
    if outside > 0.0:
        q *= math.exp(min(BEYOND * outside, MOST))
    return max(min(q, LARGEST) - 1.0, 0.0)


@inner
def _doubt(places: Integers, F: Vector, prediction: float, scatter: Vector, doubt: Vector) -> None:
    count, mean, squares = len(F) - BASELINES, 0.0, 0.0
    for i in range(BASELINES, len(F)):
        mean += F[i] / count
    for i in range(BASELINES, len(F)):
        squares += (F[i] - mean) ** 2 / count
    doubt[1] = np.sqrt(squares)
    doubt[2] = abs(F[places[0]] - prediction) if places[0] > 0 else 0.0
    doubt[3] = abs(F[places[1]] - prediction) if places[1] > 0 else 0.0
    largest = abs(prediction)
    for i in range(len(F)):
        largest = max(largest, abs(F[i]))
    for i in range(1, 4):  # a difference that is rounding is none
        doubt[i] = 0.0 if doubt[i] < 1e-9 * largest else doubt[i]
    doubt[4], doubt[5] = scatter[0], scatter[1]
