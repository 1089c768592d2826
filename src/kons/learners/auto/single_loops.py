"""The compiled loops of :mod:`kons.learners.auto.single`: what all experts say of a row, and learning it.

Everything lies in a few flat arrays, for a call costs by the argument. Integer tables say what lies where;
their columns, and the places of single numbers, have names here. Plain loops: no BLAS, no second thread;
nor slices that are assigned to, which take seconds to compile.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Layout, Matrix, Vector
from kons.compilation import compiled, compiled_sums, matrix_at
from kons.core.quadratic_loops import STEPS, append_row, predict_row
from kons.learners.auto.aggregation import learn_weights
from kons.learners.auto.calibration import learn_logit
from kons.learners.auto.logistic import FARTHEST as FARTHEST_LOGIT
from kons.learners.auto.quantile_scaling import interpolated
from kons.learners.auto.rows import ERROR_AT, LAGS, OWN, TARGET_AT, WEIGHT_AT
from kons.learners.auto.schedule import LONGEST
from kons.learners.auto.spec import BASELINES, LAST, MEAN
from kons.learners.auto.target_range import FOLLOWED, MARGIN

__all__ = ["foresee", "learn"]

Table = Annotated[NDArray[np.int64], Layout(np.dtype(np.int64), 2)]

# Sizes, and where parts of ``memory`` begin.
CLASSES, TOTALS_AT, TAIL_AT, TAIL_LENGTH, CALIBRATION_AT, ALL_AT, SIZES = range(7)
# The first numbers of ``memory``, which is all that a row changes besides the experts. FED counts rows that
# came, ROWS those of the chunk that were learned, WAITS those whose targets are hidden.
FED, ROWS, WAITS, OLDEST, TAIL, WEIGHT, SQUARES, LOW, HIGH, LOSS, LOSS_ROWS, KNOWN_CLASSES = range(12)
# ... and what is fixed for a chunk: from where to where targets are believed, and which error is wild.
FENCE_LOW, FENCE_HIGH, LARGEST_ERROR, NUMBERS = range(12, 16)
# What is said: the vote, its logits, and what it was taken around.
VOTE, LOGITS, CENTRE, SAID = range(4)
# A view: its kind of scaling, what it sees, where it lies in ``fixed``, and its coordinates in ``scratch``.
RANKS, SEES_LAGS, FLAGS, FEATURES, COLUMNS, KNOTS, ROTATED, SCALING_AT, METRIC_AT, SEEN_AT, VIEW = range(11)
# An expert: its column of F, its view and kind, its numbers and atoms in ``fixed``, its work in ``scratch``;
# and at which addresses its state is, which is read and written there.
SEAT, ITS_VIEW, KIND, LIVE, LOGISTIC, SIZE, ATOMS_AT, WORK_AT, ADDRESSES = range(9)
FACTOR, BASE, ROWS_OF, TARGETS_OF, WHITENED, FORMS, MARKS, EXPERT = range(ADDRESSES, ADDRESSES + 8)
LINEAR, GAUSSIAN, MATERN = range(3)
# Three numbers of an expert come before its atoms; the first is what squared distances are multiplied by.
RATE, OFFSET, FORGETTING, HEAD = range(4)

# As in kons.kernels.stationary: exp(-800) is 0.
FARTHEST = 800.0
LARGEST = float(np.finfo(np.float64).max)


@compiled_sums
def foresee(
    x: Vector,
    row: Vector,
    sizes: Integers,
    views: Table,
    experts: Table,
    fixed: Vector,
    memory: Vector,
    scratch: Vector,
    F: Matrix,
    said: Matrix,
) -> None:
    """What everybody says of the features x, into F, and what comes of it, into ``said``.

    Scratch begins with 1 where row, F and ``said`` are of the next row: if that is x, there is nothing to do.
    """
    width = len(x)
    same = scratch[0] == 1.0
    for j in range(width):
        same = same and row[j] == x[j]
        row[j] = x[j]
    if same:
        return
    classes, tail = sizes[CLASSES] == 1, sizes[TAIL_AT]
    newest = int(memory[TAIL]) - 1 - (sizes[TAIL_LENGTH] - LAGS)
    for j in range(LAGS):
        row[width + j] = (-1.0 if classes else 0.0) if newest < 0 else memory[tail + max(newest - j, 0)]
    outputs = F.shape[1]
    weight = max(memory[WEIGHT], 1e-300)
    room = MARGIN * (memory[HIGH] - memory[LOW])
    least, most, last = memory[LOW] - room, memory[HIGH] + room, row[width]
    low, high, beyond = max(least, memory[FENCE_LOW]), min(most, memory[FENCE_HIGH]), 0.0
    if classes:
        low, high, least, most = 0.0, 1.0, 0.0, 1.0
    elif memory[sizes[ALL_AT] + LAST] > FOLLOWED:
        inside = min(max(last, memory[FENCE_LOW]), memory[FENCE_HIGH])
        beyond = last - inside
    for o in range(outputs):
        F[MEAN, o] = memory[sizes[TOTALS_AT] + o] / weight
        F[LAST, o] = last
        if classes:
            F[LAST, o] = F[MEAN, o] if last < 0.0 else (1.0 if last == o else 0.0)
        for i in range(BASELINES, len(F)):
            F[i, o] = math.nan
    _ask(row, width, views, experts, fixed, memory, scratch, F)
    for o in range(outputs):
        centre = 0.0 if classes else F[MEAN, o]
        # Who has not begun repeats the mean of the others; if nobody has, that of the targets.
        total = F[MEAN, o]
        if len(experts):
            total = 0.0
            for i in range(len(experts)):
                total += F[experts[i, SEAT], o]
            total /= len(experts)
        vote = 0.0
        for i in range(len(F)):
            if math.isnan(F[i, o]):
                F[i, o] = total
            F[i, o] = min(max(F[i, o], low), high)
            vote += memory[sizes[ALL_AT] + i] * (F[i, o] - centre)
        said[CENTRE, o] = centre
        said[VOTE, o] = min(max(min(max(centre + vote, low), high) + beyond, least), most)
        said[LOGITS, o] = said[VOTE, o]
        if classes:
            at = sizes[CALIBRATION_AT]
            said[LOGITS, o] = memory[at] * (2.0 * said[VOTE, o] - 1.0) + memory[at + 1]
    scratch[0] = 1.0


@compiled
def _ask(
    row: Vector,
    width: int,
    views: Table,
    experts: Table,
    fixed: Vector,
    memory: Vector,
    scratch: Vector,
    F: Matrix,
) -> None:
    """What each expert says of a row with its last targets, and all that it needs to learn the row."""
    for i in range(len(views)):
        _see(row, width, memory[FENCE_LOW], memory[FENCE_HIGH], views[i], fixed, scratch)
    for i in range(len(experts)):
        seen = views[experts[i, ITS_VIEW], SEEN_AT] + views[experts[i, ITS_VIEW], COLUMNS]
        u = scratch[seen : seen + views[experts[i, ITS_VIEW], COLUMNS]]
        _speak(u, int(memory[ROWS]), experts[i], fixed, scratch, F)


@compiled_sums
def _see(
    row: Vector, width: int, least: float, most: float, view: Integers, fixed: Vector, scratch: Vector
) -> None:
    """The row as a view shows it: columns, scaled, and behind them the coordinates in its metric."""
    columns, features, flags = view[COLUMNS], view[FEATURES], view[FLAGS]
    z = scratch[view[SEEN_AT] : view[SEEN_AT] + columns]
    u = scratch[view[SEEN_AT] + columns : view[SEEN_AT] + 2 * columns]
    for j in range(features):
        z[j] = row[j]
    if view[SEES_LAGS]:
        for j in range(LAGS):
            if flags <= 2:
                z[features + j] = min(max(row[width + j], least), most)
            else:
                for flag in range(flags):
                    z[features + j * flags + flag] = 1.0 if row[width + j] == flag else 0.0
    table = fixed[view[SCALING_AT] :]
    for j in range(columns):
        if view[RANKS]:
            knots = view[KNOTS]
            values = table[columns + j * knots : columns + j * knots + int(table[j])]
            z[j] = interpolated(z[j], values, table[columns + (columns + j) * knots :])
        else:
            limit = table[2 * columns]
            z[j] = (0.5 * z[j] - table[j]) / table[columns + j]
            if abs(z[j]) > limit:  # as RobustScaling draws in what lies far out
                size = min(abs(z[j]), LARGEST)
                z[j] = math.copysign(limit * (1.0 + math.log(size / limit)), z[j])
    metric = fixed[view[METRIC_AT] :]
    for j in range(columns):
        u[j] = 0.0 if view[ROTATED] else z[j] * metric[j]
    if view[ROTATED]:
        for i in range(columns):
            for j in range(columns):
                u[j] += z[i] * metric[i * columns + j]


@compiled_sums
def _speak(u: Vector, n: int, expert: Integers, fixed: Vector, scratch: Vector, F: Matrix) -> None:
    """What one expert says. Its work is kept, as :func:`~kons.core.quadratic_loops.predict_row` leaves it.

    ::

        prediction = f + offset,   or theta^T k + offset of an expert that is not live,
        or the logistic function of theta^T k
    """
    S, kind, outputs = expert[SIZE], expert[KIND], F.shape[1]
    B = S - 1
    rate, offset = fixed[expert[ATOMS_AT] + RATE], fixed[expert[ATOMS_AT] + OFFSET]
    work = scratch[expert[WORK_AT] : expert[WORK_AT] + 2 * S + LONGEST + outputs + 1]
    k, f = work[:S], work[2 * S + LONGEST :]
    for b in range(S):
        k[b] = 0.0
    for j in range(len(u)):
        start = expert[ATOMS_AT] + HEAD + j * B
        along = fixed[start : start + B]
        if kind == LINEAR:
            for b in range(B):
                k[b] += u[j] * along[b]
        else:
            for b in range(B):
                k[b] += (u[j] - along[b]) ** 2
    if kind == GAUSSIAN:
        for b in range(B):
            k[b] = math.exp(rate * k[b])
    elif kind == MATERN:
        for b in range(B):
            distance = min(math.sqrt(rate * k[b]), FARTHEST)
            k[b] = (1.0 + distance) * math.exp(-distance)
    k[B] = 1.0
    base = matrix_at(expert[BASE], S, outputs)
    if expert[LIVE]:
        L, V = matrix_at(expert[FACTOR], S, S), matrix_at(expert[WHITENED], LONGEST, S)
        C = matrix_at(expert[FORMS], LONGEST, LONGEST)
        marks = matrix_at(expert[MARKS], LONGEST, STEPS + outputs)
        predict_row(L, base, V, C, marks, n, work)
    else:
        for o in range(outputs):
            total = 0.0
            for i in range(S):
                total += base[i, o] * k[i]
            f[o] = total
    for o in range(outputs):
        total = f[o] + offset
        if expert[LOGISTIC]:
            # As SpanLogistic.outputs_of: far below it is 0.
            total = 0.0 if total < -FARTHEST_LOGIT else 1.0 / (1.0 + math.exp(-min(total, FARTHEST_LOGIT)))
        F[expert[SEAT], o] = total


@compiled_sums
def learn(
    y: float,
    row: Vector,
    sizes: Integers,
    views: Table,
    experts: Table,
    fixed: Vector,
    memory: Vector,
    scratch: Vector,
    F: Matrix,
    said: Matrix,
    current: Vector,
    rows: Matrix,
    waiting: Matrix,
) -> int:
    """Learn the row just foreseen with its target y, a class by its number; returns how many rows were fed.

    ``current`` is the memory of row, y, weight, F and ``said``. ``waiting`` has a line more than there is
    delay: with one, the row waits there, and the oldest is learned.
    """
    seen, length = len(row), sizes[TAIL_LENGTH]
    if memory[TAIL] == length:
        for j in range(length - 1):
            memory[sizes[TAIL_AT] + j] = memory[sizes[TAIL_AT] + j + 1]
        memory[TAIL] -= 1.0
    memory[sizes[TAIL_AT] + int(memory[TAIL])] = y
    memory[TAIL] += 1.0
    memory[FED] += 1.0
    scratch[0] = 0.0
    current[seen + TARGET_AT], current[seen + WEIGHT_AT] = y, 1.0
    lines = len(waiting)
    if lines > 1:
        oldest, waits = int(memory[OLDEST]), int(memory[WAITS])
        for j in range(len(current)):
            waiting[(oldest + waits) % lines, j] = current[j]
        if waits < lines - 1:
            memory[WAITS] += 1.0
            return int(memory[FED])
        memory[OLDEST] = (oldest + 1) % lines
        for turn in range(2):
            for j in range(len(current)):
                current[j] = waiting[oldest, j]
            if turn == 0:  # for its k, v and h; then back to what was said at its time
                _ask(row, seen - LAGS, views, experts, fixed, memory, scratch, F)
    y, weight, n = current[seen + TARGET_AT], current[seen + WEIGHT_AT], int(memory[ROWS])
    for j in range(seen + OWN):
        rows[n, j] = current[j]
    goal = scratch[1 : 1 + F.shape[1]]
    for o in range(len(goal)):
        goal[o] = (1.0 if y == o else 0.0) if sizes[CLASSES] else y
        rows[n, seen + ERROR_AT] += (said[VOTE, o] - goal[o]) ** 2
    inside = min(max(y, memory[FENCE_LOW]), memory[FENCE_HIGH])
    believed = weight
    if not sizes[CLASSES]:  # as Layout.believed
        known, sound = False, True
        for j in range(seen - LAGS, seen):
            known = known or current[j] != 0.0
            sound = sound and memory[FENCE_LOW] <= current[j] <= memory[FENCE_HIGH]
        if (known and not sound) or inside != y:
            believed = 0.0
    memory[LOSS] += weight * min(rows[n, seen + ERROR_AT], memory[LARGEST_ERROR])
    for i in range(len(experts)):
        _append(goal, math.sqrt(believed), n, experts[i], fixed, scratch)
    memory[ROWS] = n + 1.0
    _weigh(y, weight, believed, inside, goal, sizes, memory, scratch, F, said)
    return int(memory[FED])


@compiled
def _weigh(
    y: float,
    weight: float,
    believed: float,
    inside: float,
    goal: Vector,
    sizes: Integers,
    memory: Vector,
    scratch: Vector,
    F: Matrix,
    said: Matrix,
) -> None:
    """The vote learns, and all that is known of targets follows."""
    classes, outputs = sizes[CLASSES] == 1, len(goal)
    for o in range(outputs):
        centre, voted = said[CENTRE, o], goal[o] if classes else inside
        g = scratch[1 + outputs : 1 + outputs + len(F)]
        for i in range(len(F)):
            g[i] = F[i, o] - centre
        _vote(g, voted - centre, weight, memory[LARGEST_ERROR], memory[sizes[ALL_AT] :])
    memory[LOSS_ROWS] += 1.0
    if classes:
        memory[KNOWN_CLASSES] = max(memory[KNOWN_CLASSES], y + 1.0)
        at = sizes[CALIBRATION_AT]
        for o in range(int(memory[KNOWN_CLASSES])):
            H = memory[at + 2 : at + 6].reshape((2, 2))
            learn_logit(2.0 * said[VOTE, o] - 1.0, goal[o], memory[at : at + 2], H)
    elif weight > 0.0:
        first = memory[WEIGHT] == 0.0
        mean = memory[sizes[TOTALS_AT]] / max(memory[WEIGHT], 1e-300)
        memory[SQUARES] += 0.0 if first else believed * (y - mean) ** 2
        first = first and memory[LOW] == 0.0 and memory[HIGH] == 0.0
        memory[LOW] = y if first else min(memory[LOW], y)
        memory[HIGH] = y if first else max(memory[HIGH], y)
    memory[WEIGHT] += believed
    for o in range(outputs):
        memory[sizes[TOTALS_AT] + o] += believed * goal[o]


@compiled_sums
def _append(goal: Vector, root: float, n: int, expert: Integers, fixed: Vector, scratch: Vector) -> None:
    """The row behind the n others of the chunk, as :meth:`kons.core.ridge.Ridge.learn` has them."""
    S, outputs = expert[SIZE], len(goal)
    work = scratch[expert[WORK_AT] : expert[WORK_AT] + 2 * S + LONGEST + outputs + 1]
    k, f = work[:S], work[2 * S + LONGEST :]
    offset, forgetting = fixed[expert[ATOMS_AT] + OFFSET], fixed[expert[ATOMS_AT] + FORGETTING]
    Z, Y = matrix_at(expert[ROWS_OF], LONGEST, S), matrix_at(expert[TARGETS_OF], LONGEST, outputs)
    for i in range(S):
        Z[n, i] = root * k[i]
    for o in range(outputs):
        Y[n, o] = root * (goal[o] - offset)
    if expert[LIVE]:
        V, C = matrix_at(expert[WHITENED], LONGEST, S), matrix_at(expert[FORMS], LONGEST, LONGEST)
        marks = matrix_at(expert[MARKS], LONGEST, STEPS + outputs)
        for o in range(outputs):
            marks[n, STEPS + o] = f[o] - (goal[o] - offset)
        append_row(root, forgetting ** (n + 1.0), V, C, marks, n, work)


@compiled
def _vote(g: Vector, target: float, weight: float, largest: float, memory: Vector) -> None:
    """One row and output of a vote that lies at the beginning of ``memory``: w, w_0, sums, A, A^-1."""
    n = len(g)
    squares = memory[3 * n : 3 * n + 2 * n * n].reshape((2, n, n))
    start, sums = memory[n : 2 * n], memory[2 * n : 3 * n]
    learn_weights(g, target, weight, largest, start, squares[0], sums, squares[1], memory[:n])
