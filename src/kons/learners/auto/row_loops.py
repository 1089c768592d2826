"""The compiled loops of one row through all experts: :mod:`kons.learners.auto.one_row` says what they read.

Experts, feature maps and what all share are records with names, for a call costs by the argument. Where one
holds an address, that is where the array is which blocks read and write, too. Plain loops: no BLAS, no second
thread.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Layout, Matrix, Vector
from kons.compilation import compiled, inner, inner_sums, matrix_at, singles_at
from kons.core.quadratic_loops import STEPS, append_row, predict_row
from kons.learners.auto.calibration import NO_LESS, SLOPE, learn_logit, log_odds
from kons.learners.auto.logistic import FARTHEST as FARTHEST_LOGIT
from kons.learners.auto.nearest import LEAF
from kons.learners.auto.neighbours import predict_around, room_for
from kons.learners.auto.quantile_scaling import interpolated
from kons.learners.auto.rows import LAGS
from kons.learners.auto.schedule import LONGEST
from kons.learners.auto.spec import BASELINES, LAST, MEAN, TREND
from kons.learners.auto.stacking import learn_weights, stacked, weight_of
from kons.learners.auto.target_range import FOLLOWED, MARGIN
from kons.scaling import LARGEST

__all__ = [
    "EXPERT",
    "FEATURE_MAP",
    "GAUSSIAN",
    "LAPLACE",
    "LINEAR",
    "NEIGHBOURS",
    "SHARED",
    "append",
    "ask_experts",
    "learn",
    "stack",
]

LINEAR, GAUSSIAN, LAPLACE, NEIGHBOURS = range(4)
FEATURE_MAP = np.dtype(
    [
        *((name, "i8") for name in ("quantile", "lags", "flags", "features", "columns", "knots", "rotated")),
        # Addresses: of a scaling's numbers, of the metric, and of room for scaled columns and coordinates.
        *((name, "i8") for name in ("scaling", "metric", "work")),
    ]
)
EXPERT = np.dtype(
    [
        *((name, "i8") for name in ("column", "feature_map", "kernel", "online", "logistic")),
        *((name, "i8") for name in ("size", "targets", "trends")),
        *((name, "f8") for name in ("rate", "forgetting", "regularization")),
        # Addresses: of the atoms by columns, of the arrays of kons.core.quadratic, a row's work, offsets.
        *((name, "i8") for name in ("atoms", "L", "base", "Z", "Y", "V", "C", "marks", "work", "offsets")),
        # Of neighbours: leaves, latest rows, and the addresses of kons.learners.auto.nearest.Kept.
        *((name, "i8") for name in ("leaves", "later")),
        *((f"kept_{name}", "i8") for name in ("leaves", "low", "high", "values", "latest", "latest_values")),
    ]
)
SHARED = np.dtype(
    [
        *((name, "i8") for name in ("classes", "known_classes", "columns", "outputs")),
        # Addresses: low, high and largest error; of targets; of losses; a row's goal.
        *((name, "i8") for name in ("bounds", "moments", "totals", "losses", "goal")),
        # Of the stacking: where weights start, kons.core.sequential.RowArrays, a row's work; rows pending.
        *((name, "i8") for name in ("start", "prior", "S", "L", "base", "Z", "V", "C", "marks", "work")),
        *((name, "i8") for name in ("period", "pending")),
        # Of the calibration: what is added to scores; the same.
        ("least", "f8"),
        *((f"logit_{name}", "i8") for name in ("prior", "S", "L", "base", "Z", "V", "C", "marks", "work")),
    ]
)
FeatureMaps = Annotated[NDArray[np.void], Layout(FEATURE_MAP, 1)]
Experts = Annotated[NDArray[np.void], Layout(EXPERT, 1)]
Shared = Annotated[NDArray[np.void], Layout(SHARED, 1)]


@inner
def _numbers_at(address: int, count: int) -> Any:
    return matrix_at(address, 1, count)[0]


@inner
def _stacking(shared: Shared, target: int) -> Any:
    """Where the weights start, their state, and a row's work."""
    its = shared[target]
    n, period = its.columns, its.period
    state = (
        matrix_at(its.prior, n, n),
        matrix_at(its.S, n, n),
        matrix_at(its.L, n, n),
        matrix_at(its.base, n, 1),
        matrix_at(its.Z, period, n),
        matrix_at(its.V, period, n),
        matrix_at(its.C, period, period),
        matrix_at(its.marks, period, STEPS + 1),
    )
    return _numbers_at(its.start, n), state, _numbers_at(its.work, 2 * n + period + 2)


@inner
def _features_of(row: Vector, shared: Shared) -> int:
    """How many features a row of :class:`~kons.learners.auto.rows.Layout` has."""
    return len(row) - (LAGS + 2) * len(shared) - 2


@compiled
def ask_experts(
    row: Vector, pending: int, shared: Shared, maps: FeatureMaps, experts: Experts, F: Matrix
) -> None:
    """What each expert predicts of a row with its last targets; all that it takes to learn the row is kept.

    Those that have not begun repeat the mean of the others; if nobody has, that of the targets.
    """
    bounds, width = matrix_at(shared[0].bounds, len(shared), 3), _features_of(row, shared)
    for i in range(len(maps)):
        _coordinates(row, width, bounds, maps, i)
    for i in range(len(experts)):
        _predict(pending, maps, experts, i, F)
    for o in range(F.shape[1]):
        total = F[MEAN, o]
        if len(experts):
            total = 0.0
            for i in range(len(experts)):
                total += F[experts[i].column, o]
            total /= len(experts)
        at = 0  # experts are in the order of their columns
        for i in range(BASELINES, len(F)):
            if at < len(experts) and experts[at].column == i:
                at += 1
            else:
                F[i, o] = total


@compiled
def stack(
    row: Vector,
    pending: int,
    shared: Shared,
    maps: FeatureMaps,
    experts: Experts,
    F: Matrix,
    predictions: Vector,
    scores: Vector,
) -> None:
    """What everybody predicts of a row, into F; what stacking makes of it; and calibrated scores of that."""
    width, classes = _features_of(row, shared), shared[0].classes == 1
    totals = _numbers_at(shared[0].totals, F.shape[1])
    weight = max(_numbers_at(shared[0].moments, 4)[0], 1e-300)
    for o in range(F.shape[1]):
        F[MEAN, o] = totals[o] / weight
        F[LAST, o] = row[width + o]
        if classes:
            last = row[width]
            F[LAST, o] = F[MEAN, o] if last < 0.0 else (1.0 if last == o else 0.0)
        F[TREND, o] = 0.0 if classes else F[MEAN, o]
    ask_experts(row, pending, shared, maps, experts, F)
    for k in range(len(shared)):
        _stack(k, row[width + k], shared, experts, F, predictions, scores)


@inner_sums
def _stack(
    target: int,
    last: float,
    shared: Shared,
    experts: Experts,
    F: Matrix,
    predictions: Vector,
    scores: Vector,
) -> None:
    """One target: all outputs of classes, or one."""
    its = shared[target]
    classes = its.classes == 1
    start, state, work = _stacking(shared, target)
    bounds, moments = _numbers_at(its.bounds, 3), _numbers_at(its.moments, 4)
    low, high, beyond = moments[2], moments[3], 0.0
    room = MARGIN * (high - low)
    least, most = low - room, high + room
    low, high = max(least, bounds[0]), min(most, bounds[1])
    if classes:
        low, high, least, most = 0.0, 1.0, 0.0, 1.0
    elif not bounds[0] <= last <= bounds[1] and weight_of(LAST, start, state, its.pending, work) > FOLLOWED:
        beyond = last - min(max(last, bounds[0]), bounds[1])
    for o in range(target, target + its.outputs):
        centre = 0.0 if classes else F[MEAN, o]
        for i in range(len(F)):
            F[i, o] = min(max(F[i, o], low), high)
        p = stacked(F, o, centre, start, state, its.pending, work)
        predictions[o] = min(max(min(max(p, low), high) + beyond, least), most)
        if its.least < NO_LESS:  # as Ensemble._lean
            for i in range(len(experts)):
                if experts[i].logistic:
                    predictions[o] += 0.75 * (F[experts[i].column, o] - predictions[o])
        scores[o] = predictions[o]
        if classes:
            logit_L, logit_base = matrix_at(its.logit_L, 2, 2), matrix_at(its.logit_base, 2, 1)
            intercept = logit_base[1, 0] / logit_L[1, 1]
            slope = SLOPE + (logit_base[0, 0] - logit_L[1, 0] * intercept) / logit_L[0, 0]
            scores[o] = slope * log_odds(predictions[o], its.least) + intercept


@inner_sums
def _coordinates(row: Vector, width: int, bounds: Matrix, maps: FeatureMaps, number: int) -> None:
    """The coordinates of a row in a feature map: its columns scaled, and behind them moved by the metric."""
    its, count = maps[number], len(bounds)
    columns, features, flags = its.columns, its.features, its.flags
    work = matrix_at(its.work, 2, columns)
    z, u = work[0], work[1]
    for j in range(features):
        z[j] = row[j]
    if its.lags:
        for j in range(LAGS):
            if flags <= 2:
                for k in range(count):
                    last = row[width + j * count + k]
                    z[features + j * count + k] = min(max(last, bounds[k, 0]), bounds[k, 1])
            else:
                for flag in range(flags):
                    z[features + j * flags + flag] = 1.0 if row[width + j] == flag else 0.0
    if its.quantile:
        table = matrix_at(its.scaling, 2 * columns, 1 + its.knots)
        for j in range(columns):
            z[j] = interpolated(z[j], table[j, 1 : 1 + int(table[j, 0])], table[columns + j, 1:])
    else:
        table = matrix_at(its.scaling, 3, columns)
        for j in range(columns):
            limit = table[2, j]
            z[j] = (0.5 * z[j] - table[0, j]) / table[1, j]
            if abs(z[j]) > limit:  # as RobustScaling draws in what lies far out
                size = min(abs(z[j]), LARGEST)
                z[j] = math.copysign(limit * (1.0 + math.log(size / limit)), z[j])
    metric = matrix_at(its.metric, columns if its.rotated else 1, columns)
    for j in range(columns):
        u[j] = 0.0 if its.rotated else z[j] * metric[0, j]
    if its.rotated:
        for i in range(columns):
            for j in range(columns):
                u[j] += z[i] * metric[i, j]


@inner_sums
def _predict(pending: int, maps: FeatureMaps, experts: Experts, number: int, F: Matrix) -> None:
    """What one expert predicts; its work is kept, as :func:`kons.core.quadratic_loops.predict_row` leaves it.

    ::

        f + offset of an expert that follows every row, else theta^T k + offset,
        or the logistic function of theta^T k
    """
    expert, outputs = experts[number], F.shape[1]
    feature_map = maps[expert.feature_map]
    size, columns = expert.size, feature_map.columns
    atoms = size - 1
    u = matrix_at(feature_map.work, 2, columns)[1]
    work = matrix_at(expert.work, 1, 2 * size + LONGEST + outputs + 1)[0]
    k, f = work[:size], work[2 * size + LONGEST :]
    if expert.kernel == NEIGHBOURS:
        for j in range(columns):
            k[j] = u[j]
        k[columns] = 1.0
        told = outputs + expert.trends
        kept = (
            singles_at(expert.kept_leaves, expert.leaves * columns, LEAF),
            singles_at(expert.kept_low, columns, expert.leaves),
            singles_at(expert.kept_high, columns, expert.leaves),
            matrix_at(expert.kept_values, expert.leaves * LEAF, told + 1),
            singles_at(expert.kept_latest, columns, expert.later),
            matrix_at(expert.kept_latest_values, expert.later, told + 1),
        )
        # There are no functions f of theirs: their scatter takes the place.
        nothing, scatter = matrix_at(0, 0, 0), f[: expert.targets + 1]
        room, prediction = room_for(kept, told), np.empty(told)
        predict_around(u, kept, expert.regularization, -1, prediction, scatter, nothing, room)
        for o in range(outputs):
            F[expert.column, o] = prediction[o]
            if expert.trends:
                F[TREND, o] = prediction[outputs + o]
        return
    for b in range(size):
        k[b] = 0.0
    along = matrix_at(expert.atoms, columns, atoms)
    for j in range(columns):
        if expert.kernel == LINEAR:
            for b in range(atoms):
                k[b] += u[j] * along[j, b]
        elif expert.kernel == GAUSSIAN:
            for b in range(atoms):
                k[b] += (u[j] - along[j, b]) ** 2
        else:
            for b in range(atoms):
                k[b] += abs(u[j] - along[j, b])
    if expert.kernel != LINEAR:
        for b in range(atoms):
            k[b] = math.exp(expert.rate * k[b])
    k[atoms] = 1.0
    base = matrix_at(expert.base, size, outputs)
    if expert.online:
        L, V = matrix_at(expert.L, size, size), matrix_at(expert.V, LONGEST, size)
        C, marks = matrix_at(expert.C, LONGEST, LONGEST), matrix_at(expert.marks, LONGEST, STEPS + outputs)
        predict_row(len(L), L, base, V, C, marks, pending, work)
    else:
        for o in range(outputs):
            total = 0.0
            for i in range(size):
                total += base[i, o] * k[i]
            f[o] = total
    offsets = _numbers_at(expert.offsets, outputs)
    for o in range(outputs):
        total = f[o] + offsets[o]
        if expert.logistic:
            # As SpanLogistic.outputs_of: far below it is 0.
            total = 0.0 if total < -FARTHEST_LOGIT else 1.0 / (1.0 + math.exp(-min(total, FARTHEST_LOGIT)))
        F[expert.column, o] = total


@compiled
def learn(
    row: Vector,
    pending: int,
    shared: Shared,
    experts: Experts,
    F: Matrix,
    centres: Vector,
    predictions: Vector,
) -> None:
    """Learn a row with its targets and weight, of which the experts were just asked: see :func:`ask_experts`.

    F, the centres and the predictions are those that were made when the row came. Fills in its errors, and
    how many rows the stacking of each target has pending.
    """
    believed, own = append(row, pending, shared, experts), np.empty((len(F), 1))
    for k in range(len(shared)):
        if len(shared) == 1:
            _learn_target(k, believed, row, shared, F, centres[k], predictions)
        else:
            for i in range(len(F)):
                own[i, 0] = F[i, k]
            _learn_target(k, believed, row, shared, own, centres[k], predictions)


@inner_sums
def _learn_target(
    target: int,
    believed: float,
    row: Vector,
    shared: Shared,
    F: Matrix,
    centre: float,
    predictions: Vector,
) -> None:
    """What there is of each target: of classes with all outputs, or with one; F is of these."""
    its, count = shared[target], len(shared)
    width = _features_of(row, shared)
    outputs, classes, first = its.outputs, its.classes == 1, width + LAGS * count
    bounds, moments, totals = (
        _numbers_at(its.bounds, 3),
        _numbers_at(its.moments, 4),
        _numbers_at(its.totals, outputs),
    )
    losses, goal = _numbers_at(its.losses, 2), _numbers_at(its.goal, outputs)
    y, weight = row[first + target], row[first + count]
    error = 0.0
    for o in range(outputs):
        error += (predictions[target + o] - goal[o]) ** 2
    row[first + count + 1 + target] = error
    losses[0] += weight * min(error, bounds[2])
    losses[1] += 1.0 if weight > 0.0 else 0.0
    if not classes and weight > 0.0:
        begins = moments[0] == 0.0
        mean = totals[0] / max(moments[0], 1e-300)
        moments[1] += 0.0 if begins else believed * (y - mean) ** 2
        begins = begins and moments[2] == 0.0 and moments[3] == 0.0
        moments[2] = y if begins else min(moments[2], y)
        moments[3] = y if begins else max(moments[3], y)
    moments[0] += believed
    for o in range(outputs):
        totals[o] += believed * goal[o]
    if classes:
        its.known_classes = max(its.known_classes, int(y) + 1)
        for o in range(its.known_classes if weight > 0.0 else 0):
            learn_logit(
                predictions[o],
                goal[o],
                its.least,
                (
                    matrix_at(its.logit_prior, 2, 2),
                    matrix_at(its.logit_S, 2, 2),
                    matrix_at(its.logit_L, 2, 2),
                    matrix_at(its.logit_base, 2, 1),
                    matrix_at(its.logit_Z, 1, 2),
                    matrix_at(its.logit_V, 1, 2),
                    matrix_at(its.logit_C, 1, 1),
                    matrix_at(its.logit_marks, 1, STEPS + 1),
                ),
                _numbers_at(its.logit_work, 2 * 2 + 1 + 2),
            )
    else:
        goal[0] = min(max(y, bounds[0]), bounds[1])
    start, state, work = _stacking(shared, target)
    its.pending = learn_weights(F, centre, goal, weight, bounds[2], start, state, its.pending, work)


@compiled
def append(row: Vector, pending: int, shared: Shared, experts: Experts) -> float:
    """Let experts that were just asked learn a row; the weight they learn it with, as Layout.believed."""
    count, width, classes = len(shared), _features_of(row, shared), shared[0].classes == 1
    own, outputs = width + LAGS * count, shared[0].outputs if classes else count
    goal, bounds = _numbers_at(shared[0].goal, outputs), matrix_at(shared[0].bounds, count, 3)
    believed = row[own + count]
    for o in range(outputs):
        goal[o] = (1.0 if row[own] == o else 0.0) if classes else row[own + o]
    if not classes:
        known, sound = False, True
        for j in range(width, own):
            known = known or row[j] != 0.0
        for k in range(count):
            sound = sound and bounds[k, 0] <= row[own + k] <= bounds[k, 1]
            for j in range(LAGS):
                last = row[width + j * count + k]
                sound = sound and (not known or bounds[k, 0] <= last <= bounds[k, 1])
        believed = believed if sound else 0.0
    for i in range(len(experts)):
        _append(goal, math.sqrt(believed), pending, experts, i)
    return float(believed)


@inner_sums
def _append(goal: Vector, root: float, pending: int, experts: Experts, number: int) -> None:
    """The row behind the others of the chunk, as :meth:`kons.core.ridge.Ridge.learn` has them."""
    expert, outputs = experts[number], len(goal)
    size = expert.size
    work = matrix_at(expert.work, 1, 2 * size + LONGEST + outputs + 1)[0]
    k, f = work[:size], work[2 * size + LONGEST :]
    Z, Y = matrix_at(expert.Z, LONGEST, size), matrix_at(expert.Y, LONGEST, outputs)
    offsets = _numbers_at(expert.offsets, outputs)
    for i in range(size):
        Z[pending, i] = root * k[i]
    for o in range(outputs):
        Y[pending, o] = root * (goal[o] - offsets[o])
    if expert.online:
        V, C = matrix_at(expert.V, LONGEST, size), matrix_at(expert.C, LONGEST, LONGEST)
        marks = matrix_at(expert.marks, LONGEST, STEPS + outputs)
        for o in range(outputs):
            marks[pending, STEPS + o] = f[o] - (goal[o] - offsets[o])
        append_row(root, expert.forgetting ** (pending + 1.0), V, C, marks, pending, work)
