"""An expert that keeps rows instead of learning them: a ridge fit to the nearest ones, around each row anew.

::

    f(x) = sum_i a_i y_i    over the 32 nearest rows;   a: kons.core.local_ridge
    d(x, x') = sum_j |u_j - u'_j|,    weight of row i = 1 - d(x, x_i)/h,   h the distance of the next one

or the mean of all rows that are as far away as these, where they are all at one distance, as on a grid.

Kernel ridge with some hundred atoms resolves what is smooth between them; where a target has steps, or where
the same few machines, patients or places come again and again, the nearest rows know more. Distances are sums
over the columns, as of the Laplace kernel, so that functions may have edges along them, as those of trees;
how much each column counts the ridge experts have learned. To stacking, the one quadratic above all experts,
this is one more feature of a row, as the mean of all targets and the last one are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT32, Integers, Matrix, Vector
from kons.compilation import compiled, inner, inner_sums
from kons.core.local_ridge import solve_again, weigh_targets
from kons.kernels import Kernel, Linear
from kons.learners.auto.kriging_in_lanes import predict_in_lanes
from kons.learners.auto.nearest import (
    BEHIND,
    LEAF,
    Kept,
    Singles,
    find_nearest,
    put_into_leaves,
    sum_values_within,
)
from kons.learners.auto.rows import LARGEST_TARGET, LARGEST_WEIGHT
from kons.learners.auto.schedule import LONGEST
from kons.learners.auto.stacking import Cube
from kons.state import Array, Count, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["NEAREST", "Neighbours", "leave_out", "predict_around", "room_for"]

#: Rows that a prediction is a fit to.
NEAREST = 32


class Neighbours(Part):
    """Ridge regression on the nearest of the last rows, for all outputs.

    A prediction costs O(N d) for N rows of d coordinates, and 7 microseconds for the fit: 20 to 30 for 8,192
    rows; beyond 32 columns fewer rows are kept. Rows are kept from the end of their chunk on. Not for targets
    that are noise around something smooth, where an expert that learned all rows knows more: stacking gives
    it a weight, or none.

    Parameters
    ----------
    columns, outputs:
        Coordinates of a row, and targets.
    most:
        Rows that are kept.
    regularization:
        alpha, in units of distance: what it takes for two rows to tell different things.
    scattered:
        Of how many targets the deviation among the nearest rows is told, too.
    trends:
        Numbers of a row that are known behind its targets, such as predictions: what the same fit makes of
        them comes behind each prediction.

    >>> import numpy as np
    >>> U = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    >>> expert = Neighbours(columns=2, outputs=1, most=1000)
    >>> expert.learn_past(U, np.sign(U[:, :1]), np.ones(400))
    >>> expert.predict(np.array([[0.5, 0.0], [-0.5, 0.0]])).ravel().round(2).tolist()
    [1.0, -1.0]

    References
    ----------
    Cressie: Statistics for Spatial Data, 1993 (kriging in a moving neighbourhood). Cleveland: Robust locally
    weighted regression and smoothing scatterplots, JASA 1979 (weights that end at the next neighbour).
    """

    kernel: Kernel = Linear()
    online: bool = False
    offset: float = 0.0
    forgetting: float = 1.0
    #: Rows that wait are found again from the chunk: see :meth:`begin_again`.
    STATE = fields(
        points=Array("rows", "columns", dtype=FLOAT32),
        values=Array("rows", "values"),
        latest=Array("later", "columns", dtype=FLOAT32),
        latest_values=Array("later", "values"),
        regularization=Number(at_least=1e-100),
        pending=Count(at_most=LONGEST),
    )
    regularization: float
    scattered: int
    trends: int

    def __init__(
        self,
        columns: int,
        outputs: int,
        most: int,
        regularization: float = 0.01,
        scattered: int = 1,
        trends: int = 0,
    ) -> None:
        self.regularization, self.scattered, self.trends = regularization, scattered, trends
        #: Rows that are kept at most, when the latest join them.
        self.most: int = max(min(most, 32 * most // max(columns, 1)), 2 * NEAREST)
        #: Coordinates of the rows that are kept, in leaves, and of those that came since, the latest last.
        self.points: NDArray[np.float32] = np.empty((0, columns), FLOAT32)
        self.latest: NDArray[np.float32] = np.empty((0, columns), FLOAT32)
        #: Their targets and trends times their weights, and the weights: (rows, outputs + trends + 1).
        self.values: Matrix = np.empty((0, outputs + trends + 1))
        self.latest_values: Matrix = np.empty((0, outputs + trends + 1))
        self.pending: int = 0
        self._Z, self._Y = np.zeros((LONGEST, columns + 1)), np.zeros((LONGEST, outputs))
        #: Of the rows just predicted: see :func:`predict_around`.
        self.last_scatters: Matrix = np.zeros((0, scattered + 1))
        self._put_into_leaves()

    def __len__(self) -> int:
        """Numbers of a row that waits: its coordinates, and the root of its weight."""
        return self._Z.shape[1]

    @property
    def atoms(self) -> Matrix:
        """None: what it keeps are rows."""
        return np.empty((0, self.points.shape[1]))

    def learn_past(self, U: Matrix, Y: Matrix, roots: Vector) -> None:
        """Keep rows; roots are square roots of weights. The latest join the others some at a time.

        Trends are behind the targets Y.
        """
        used = np.flatnonzero(roots > 0.0)[-self.most :]
        weights = roots[used, None] ** 2
        self.latest = np.concatenate([self.latest, U[used].astype(FLOAT32)])
        self.latest_values = np.concatenate([self.latest_values, np.hstack([Y[used] * weights, weights])])
        if len(self.latest) >= min(self.most // 4, 2048):
            self.points = np.concatenate([self.points, self.latest])[-self.most :]
            self.values = np.concatenate([self.values, self.latest_values])[-self.most :]
            self.latest, self.latest_values = self.latest[:0], self.latest_values[:0]
            self._put_into_leaves()
        elif len(self.latest) - self._young >= 2 * LONGEST:
            self._put_latest_into_leaves()

    def _put_into_leaves(self) -> None:
        self._old = put_into_leaves(self.points, self.values)
        self._put_latest_into_leaves()

    def _put_latest_into_leaves(self) -> None:
        """In some of their own, which are made anew at small cost; those that came last wait."""
        young = len(self.latest)
        self._young = young = young - young % (2 * LONGEST)
        leaves, low, high, values = self._old
        if young:
            its = put_into_leaves(self.latest[:young], self.latest_values[:young])
            leaves, low, high, values = (
                np.concatenate([leaves, its[0]]),
                np.concatenate([low, its[1]], axis=1),
                np.concatenate([high, its[2]], axis=1),
                np.concatenate([values, its[3]]),
            )
        self._leaves = leaves, low, high, values

    def advance(
        self, predicted: Matrix, learned: Matrix | None, Y: Matrix, roots: Vector, known: NDArray[np.int64]
    ) -> Matrix:
        """Predict rows, and let others wait for the end of the chunk; see SpanRidge."""
        U = predicted if learned is None else learned
        now = slice(self.pending, self.pending + len(Y))
        self._Z[now, :-1], self._Z[now, -1], self._Y[now] = U[: len(Y)] * roots[:, None], roots, Y
        self._Y[now] *= roots[:, None]
        self.pending += len(Y)
        predictions, self.last_scatters = self.predict_with_scatters(predicted)
        return predictions

    def predict(self, U: Matrix) -> Matrix:
        """Fits to the nearest rows. Changes nothing."""
        predictions, U = np.empty((len(U), self.values.shape[1] - 1)), np.ascontiguousarray(U)
        left = predict_in_lanes(U, self.kept(), self.regularization, predictions)
        predictions[left] = self.predict_with_scatters(U[left])[0]
        return predictions

    def predict_with_scatters(self, U: Matrix) -> tuple[Matrix, Matrix]:
        """Fits to the nearest rows, and how far their targets, and they, lie apart. Changes nothing."""
        told = self.values.shape[1] - 1
        predictions, scatters = np.empty((len(U), told)), np.zeros((len(U), self.scattered + 1))
        _predict(np.ascontiguousarray(U), self.kept(), self.regularization, predictions, scatters)
        return predictions, scatters

    def kept(self) -> Kept:
        """As loops read it."""
        rest = slice(self._young, None)
        return (*self._leaves, np.ascontiguousarray(self.latest[rest].T), self.latest_values[rest])

    def end_period(self, trend: Matrix | None = None) -> None:
        """Keep the chunk's rows, with a trend, if they are to have one: 0 where there is none."""
        Z, Y = self._Z[: self.pending], self._Y[: self.pending]
        used = Z[:, -1] > 0.0
        roots = Z[used, -1]
        if used.any():
            its = Y[used] / roots[:, None]
            if self.trends:
                its = np.hstack([its, np.zeros((len(its), self.trends)) if trend is None else trend[used]])
            self.learn_past(Z[used, :-1] / roots[:, None], its, roots)
        self._Z, self._Y = np.zeros(self._Z.shape), np.zeros(self._Y.shape)  # a mark may share them
        self.pending = 0

    def add_output(self) -> None:
        """One output more, whose targets were all 0, and so was their trend."""
        outputs = self._Y.shape[1]
        places = [outputs, *([outputs + self.trends] if self.trends else ())]
        self.values, self.latest_values = (
            np.insert(values, places, 0.0, axis=1) for values in (self.values, self.latest_values)
        )
        self.trends += len(places) - 1
        self._put_into_leaves()
        self._Y = np.pad(self._Y, ((0, 0), (0, 1)))

    def arrays_of_period(self) -> tuple[Matrix, ...]:
        """As of SpanRidge: those of the rows that wait, and none for what follows each row."""
        none = np.empty((0, 0))
        return none, none, self._Z, self._Y, none, none, none

    @classmethod
    def from_stored(
        cls, stored: Stored, width: int, outputs: int, most: int, targets: int = 1, trends: int = 0
    ) -> Neighbours:
        """The inverse of ``state``, checked."""
        expert = cls(width, outputs, most, scattered=targets, trends=trends)
        expert.load_state(stored, columns=width, values=outputs + trends + 1)
        return expert

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        for values in (self.values, self.latest_values):
            totals, weights = np.abs(values[:, :-1]), values[:, -1:]
            # Twice as much as comes in: a weight is the square of its rounded root.
            usual = (weights > 0.0) & (weights <= 2.0 * LARGEST_WEIGHT)
            if len(values) > self.most or not (usual & (totals / (2.0 * LARGEST_TARGET) <= weights)).all():
                raise stored.error(f"neighbours are not up to {self.most} rows with a weight each")
        self._put_into_leaves()

    @contextmanager
    def begin_again(self) -> Iterator[None]:
        """The chunk's rows, none of which is there, come again inside."""
        count, self.pending = self.pending, 0
        yield
        assert self.pending == count


#: Where one prediction after the other is computed: of leaves and of distances, the nearest and their places,
#: their coordinates, sums of distances, M, the roots and weights of rows, their targets, their distances.
Room = tuple[Singles, Singles, Singles, Integers, Matrix, Vector, Matrix, Vector, Vector, Matrix, Vector]


@inner
def room_for(kept: Kept, told: int) -> Room:
    """Of predictions of so many numbers by these rows: a dozen arrays, which take a microsecond to make."""
    columns, count = kept[1].shape
    near = NEAREST + 1
    return (
        np.empty(count, FLOAT32),
        np.empty(max(kept[4].shape[1], LEAF), FLOAT32),
        np.empty(near + BEHIND, FLOAT32),
        np.empty(near + BEHIND, np.int64),
        np.empty((columns, near)),
        np.empty(NEAREST),
        np.empty((NEAREST, NEAREST + 1)),
        np.empty(NEAREST),
        np.empty(NEAREST),
        np.empty((near, told + 1)),
        np.empty(near),
    )


@compiled
def _predict(U: Matrix, kept: Kept, regularization: float, predictions: Matrix, scatters: Matrix) -> None:
    nothing, room = np.empty((0, 0)), room_for(kept, predictions.shape[1])
    for i in range(len(U)):
        back = 1
        while back <= i and not _same(U, i, i - back):
            back *= 2  # as sets of columns in reasons, all in order, where a column does not count
        if back <= i:
            predictions[i], scatters[i] = predictions[i - back], scatters[i - back]
        else:
            predict_around(U[i], kept, regularization, -1, predictions[i], scatters[i], nothing, room)


@inner
def _same(U: Matrix, i: int, j: int) -> bool:
    same = True
    for c in range(U.shape[1]):
        same = same and U[i, c] == U[j, c]
    return same


@compiled
def leave_out(
    U: Matrix, places: Integers, kept: Kept, regularization: float, errors: Matrix, slopes: Cube
) -> None:
    """Fill in errors at rows in leaves, each predicted by all others, and their :func:`_slopes`."""
    values, scatter = kept[3], np.empty(1)
    outputs = values.shape[1] - 1
    room = room_for(kept, outputs)
    for i in range(len(U)):
        predict_around(U[i], kept, regularization, places[i], errors[i], scatter, slopes[i], room)
        for o in range(outputs):
            errors[i, o] -= values[places[i], o] / values[places[i], outputs]


@inner
def predict_around(
    u: Vector,
    kept: Kept,
    regularization: float,
    excluded: int,
    prediction: Vector,
    scatter: Vector,
    slopes: Matrix,
    rooms: Room,
) -> None:
    """The ridge fit to the nearest points; the mean of all where these are as far away as each other.

    Of each number that is known of them. Fills in their ``scatter``, too: the deviation of each of their
    targets, and their mean distance; and ``slopes``, if there is room: see :func:`_slopes`.
    """
    slopes[:] = 0.0
    leaves, low, _, values, latest, latest_values = kept
    columns, count = low.shape
    outputs, first = len(prediction), count * LEAF
    bounds, room, near, places, here, apart, M, roots, weights, its, distances = rooms
    find_nearest(u, kept, excluded, bounds, room, near, places)
    scatter[:] = 0.0
    if near[NEAREST] < np.float32(63.0 / 64.0) * near[0] < np.inf:
        for i in range(NEAREST + 1):
            place = places[NEAREST - i]  # the nearest comes first
            if place < first:
                leaf, at = place // LEAF, place % LEAF
                for c in range(columns):
                    here[c, i] = leaves[leaf * columns + c, at]
                for o in range(outputs + 1):
                    its[i, o] = values[place, o]
            else:
                for c in range(columns):
                    here[c, i] = latest[c, place - first]
                for o in range(outputs + 1):
                    its[i, o] = latest_values[place - first, o]
        if _all_alike(its):  # the weights of their targets add up to 1
            for o in range(outputs):
                prediction[o] = its[0, o] / its[0, outputs]
            return
        # In double precision from here on: K is a difference of distances.
        distances[:] = 0.0
        for c in range(columns):
            x = np.float64(np.float32(u[c]))
            for i in range(NEAREST + 1):
                distances[i] += abs(x - here[c, i])
        for i in range(NEAREST):
            # A point that is nearly as far away as the next one counts next to nothing: which of the two
            # is among the nearest may be a matter of rounding.
            roots[i] = math.sqrt(its[i, outputs] * max(1.0 - distances[i] / distances[NEAREST], 0.0))
        _scatter(its, roots, distances, scatter)
        for i in range(NEAREST):
            start = i // 16 * 16  # of the upper triangle, in loops of one length
            for j in range(start, NEAREST):
                apart[j] = distances[i] + distances[j]
            c = 0
            while c + 4 <= columns:
                w, x, y, z = here[c, i], here[c + 1, i], here[c + 2, i], here[c + 3, i]
                for j in range(start, NEAREST):
                    some = abs(w - here[c, j]) + abs(x - here[c + 1, j])
                    apart[j] -= some + (abs(y - here[c + 2, j]) + abs(z - here[c + 3, j]))
                c += 4
            while c < columns:
                x = here[c, i]
                for j in range(start, NEAREST):
                    apart[j] -= abs(x - here[c, j])
                c += 1
            for j in range(start, NEAREST):
                M[i, j] = roots[i] * roots[j] * apart[j]
            M[i, i] += regularization
        if weigh_targets(M, roots, weights):
            for o in range(outputs):
                prediction[o] = 0.0
                for i in range(NEAREST):
                    prediction[o] += weights[i] * (its[i, o] / its[i, outputs])
            if len(slopes):
                _slopes(u, here, its, prediction, M, roots, weights, distances, regularization, slopes)
            return
    # As on a grid: which of them are nearest is a matter of rounding, so all that are as far away count.
    totals = np.empty(outputs + 1)
    sum_values_within(u, kept, excluded, np.float32(65.0 / 64.0) * near[0], room, totals)
    for o in range(outputs):
        prediction[o] = totals[o] / totals[outputs] if totals[outputs] > 0.0 else 0.0


@inner_sums
def _slopes(
    u: Vector,
    here: Matrix,
    its: Matrix,
    prediction: Vector,
    M: Matrix,
    roots: Vector,
    weights: Vector,
    distances: Vector,
    regularization: float,
    slopes: Matrix,
) -> None:
    """How each output changes with the logarithm of each column's scale and, behind them, of alpha.

    ::

        b = S M^-1 S (y - f),    df/dlog s_c = b^T (D_c a - d_c),    df/dlog alpha = -alpha b^T S^-2 a

    D_c and d_c are the absolute differences in column c among the rows, and to x. The weights S^2 are taken
    as they are: how they change depends on which point is the last, and where two are as far away as each
    other rounding would decide on it. O(m^2 d) for m rows, whatever the outputs.
    """
    m, columns, outputs = len(roots), len(here), its.shape[1] - 1
    B, rest = np.empty((outputs, m)), np.empty(m)
    for o in range(outputs):
        for i in range(m):
            B[o, i] = roots[i] * (its[i, o] / its[i, outputs] - prediction[o])
        solve_again(M, B[o])
        for i in range(m):
            if roots[i] > 0.0:
                slopes[o, columns] -= regularization * B[o, i] * weights[i] / roots[i]
            B[o, i] *= roots[i]
    for c in range(columns):
        x = np.float64(np.float32(u[c]))
        for i in range(m):
            own, total = here[c, i], 0.0
            for j in range(m):
                total += weights[j] * abs(own - here[c, j])
            rest[i] = total - abs(x - own)
        for o in range(outputs):
            for i in range(m):
                slopes[o, c] += B[o, i] * rest[i]


@inner
def _scatter(its: Matrix, roots: Vector, distances: Vector, scatter: Vector) -> None:
    """Of rows with these targets, roots of weights and distances."""
    outputs, count, total, apart = its.shape[1] - 1, len(scatter) - 1, 0.0, 0.0
    for i in range(len(roots)):
        total += roots[i] * roots[i]
        apart += roots[i] * roots[i] * distances[i]
    if not total > 0.0:
        return
    scatter[count] = apart / total
    for o in range(count):
        mean, squares = 0.0, 0.0
        for i in range(len(roots)):
            mean += roots[i] * roots[i] * (its[i, o] / its[i, outputs])
        mean /= total
        for i in range(len(roots)):
            squares += roots[i] * roots[i] * (its[i, o] / its[i, outputs] - mean) ** 2
        scatter[o] = math.sqrt(squares / total)


@inner
def _all_alike(values: Matrix) -> bool:
    """Whether all rows have the same targets, as in the midst of a class."""
    outputs = values.shape[1] - 1
    for o in range(outputs):
        target = values[0, o] / values[0, outputs]  # products of two may be too small for a number
        for i in range(1, len(values)):
            if values[i, o] != target * values[i, outputs]:
                return False
    return True
