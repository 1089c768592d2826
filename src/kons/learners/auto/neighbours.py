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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT32, Integers, Layout, Matrix, Vector
from kons.compilation import compiled, inner
from kons.core.local_ridge import weigh_targets
from kons.kernels import Kernel, Linear
from kons.learners.auto.feature_map import half_median_distance
from kons.learners.auto.schedule import EARLY, LONGEST
from kons.state import Array, Count, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["NEAREST", "Neighbours", "fit_neighbours", "predict_around"]

# Single precision: rows that are equal stay equal however they were computed, at half the bytes and time.
Singles = Annotated[NDArray[np.float32], Layout(FLOAT32, 1)]
SingleMatrix = Annotated[NDArray[np.float32], Layout(FLOAT32, 2)]
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
    online, offset, forgetting = False, 0.0, 1.0
    #: Rows that wait are found again from the chunk: see :meth:`begin_again`.
    STATE = fields(
        points=Array("columns", "rows", dtype=FLOAT32),
        values=Array("rows", "values"),
        regularization=Number(at_least=1e-100),
        pending=Count(at_most=LONGEST),
    )

    def __init__(self, columns: int, outputs: int, most: int, regularization: float = 0.01) -> None:
        self.regularization = regularization
        #: Rows that are kept at most.
        self.most = max(min(most, 32 * most // max(columns, 1)), 2 * NEAREST)
        #: Coordinates of the rows that are kept, the latest last: (columns, rows).
        self.points: NDArray[np.float32] = np.empty((columns, 0), FLOAT32)
        #: Their targets times their weights, and the weights: (rows, outputs + 1).
        self.values: Matrix = np.empty((0, outputs + 1))
        self.pending = 0
        self._Z, self._Y = np.zeros((LONGEST, columns + 1)), np.zeros((LONGEST, outputs))
        self._predicted = 0

    def __len__(self) -> int:
        """Numbers of a row that waits: its coordinates, and the root of its weight."""
        return self._Z.shape[1]

    @property
    def atoms(self) -> Matrix:
        """None: what it keeps are rows."""
        return np.empty((0, len(self.points)))

    def learn_past(self, U: Matrix, Y: Matrix, roots: Vector) -> None:
        """Keep what came before the first chunk; roots are square roots of weights."""
        used = np.flatnonzero(roots > 0.0)[-self.most :]
        weights = roots[used, None] ** 2
        points = np.concatenate([self.points, U[used].T.astype(FLOAT32)], axis=1)
        values = np.concatenate([self.values, np.hstack([Y[used] * weights, weights])])
        self.points = np.ascontiguousarray(points[:, -self.most :])
        self.values = np.ascontiguousarray(values[-self.most :])

    def advance(
        self, predicted: Matrix, learned: Matrix | None, Y: Matrix, roots: Vector, known: NDArray[np.int64]
    ) -> Matrix:
        """Predict rows, and let others wait for the end of the chunk; see SpanRidge."""
        U = predicted if learned is None else learned
        now = slice(self.pending, self.pending + len(Y))
        self._Z[now, :-1], self._Z[now, -1], self._Y[now] = U[: len(Y)] * roots[:, None], roots, Y
        self._Y[now] *= roots[:, None]
        self.pending, self._predicted = self.pending + len(Y), len(predicted)
        return self.predict(predicted)

    def predict(self, U: Matrix) -> Matrix:
        """Fits to the nearest rows. Changes nothing."""
        predictions = np.empty((len(U), self.values.shape[1] - 1))
        _predict(
            np.ascontiguousarray(U), self.points, self.values, self.regularization, self.room(), predictions
        )
        return predictions

    def leave_one_out(self, places: NDArray[np.int64]) -> float:
        """Sum of squared errors at some of the rows that are kept, each predicted by the others."""
        room = self.room()
        return float(_leave_one_out(places, self.points, self.values, self.regularization, room))

    def room(self) -> NDArray[np.float32]:
        """For the distances of a row."""
        return np.empty(self.points.shape[1], FLOAT32)

    def forget(self) -> None:
        """Keep the last 512 rows alone, where they would have predicted the last 128 clearly better than all.

        Clearly: by a tenth of the squared error, for where targets are noise the one or the other is better
        by chance. O(N d) for each of the 128.
        """
        if self.points.shape[1] <= EARLY + LONGEST:
            return
        U = self.points[:, -LONGEST:].T.astype(np.float64)
        Y, w = self.values[-LONGEST:, :-1], self.values[-LONGEST:, -1:]
        errors = [
            float(np.sum((before.predict(U) * w - Y) ** 2 / w))
            for before in (self._rows(slice(None, -LONGEST)), self._rows(slice(-EARLY - LONGEST, -LONGEST)))
        ]
        if errors[1] < 0.9 * errors[0]:
            last = self._rows(slice(-EARLY, None))
            self.points, self.values = last.points, last.values

    def _rows(self, which: slice) -> Neighbours:
        """Of some rows, and none that wait."""
        some = Neighbours(len(self.points), self.values.shape[1] - 1, self.most, self.regularization)
        some.points = np.ascontiguousarray(self.points[:, which])
        some.values = np.ascontiguousarray(self.values[which])
        return some

    def end_period(self, refit: bool = True) -> None:
        """Keep the chunk's rows."""
        Z, Y = self._Z[: self.pending], self._Y[: self.pending]
        used = Z[:, -1] > 0.0
        roots = Z[used, -1]
        if used.any():
            self.learn_past(Z[used, :-1] / roots[:, None], Y[used] / roots[:, None], roots)
        self._Z, self._Y = np.zeros(self._Z.shape), np.zeros(self._Y.shape)  # a mark may share them
        self.pending = 0

    def add_output(self) -> None:
        """One output more, whose targets were all 0."""
        self.values = np.insert(self.values, -1, 0.0, axis=1)
        self._Y = np.pad(self._Y, ((0, 0), (0, 1)))

    def last_forms(self) -> Vector:
        """There is no A: 0, for each row just predicted."""
        return np.zeros(self._predicted)

    def arrays_of_period(self) -> tuple[Matrix, ...]:
        """As of SpanRidge: those of the rows that wait, and none for what follows each row."""
        none = np.empty((0, 0))
        return none, none, self._Z, self._Y, none, none, none

    @classmethod
    def from_stored(cls, stored: Stored, width: int, outputs: int, most: int) -> Neighbours:
        """The inverse of ``state``, checked."""
        expert = cls(width, outputs, most)
        expert.load_state(stored, columns=width, values=outputs + 1)
        return expert

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        rows = len(self.values)
        if rows > self.most or (rows and self.values[:, -1].min() <= 0.0):
            raise stored.error(f"neighbours are not up to {self.most} rows with a weight each")

    @contextmanager
    def begin_again(self) -> Iterator[None]:
        """The chunk's rows, none of which is there, come again inside."""
        count, self.pending = self.pending, 0
        yield
        assert self.pending == count


def fit_neighbours(
    candidates: Sequence[Matrix],
    Y: Matrix,
    weights: Vector,
    most: int,
    regularization: float | None,
    random: np.random.Generator,
) -> tuple[int, Neighbours]:
    """Which of several coordinates of the same rows has the smallest leave-one-out error, and the expert.

    Over some of the last rows. Then the regularization, in units of the median distance of two rows, is made
    smaller by a factor of 3.16 as long as the error falls, or larger, if it is not given.
    """
    # A uniform sample would do as well; in no case more, for each of some six errors costs 10 ms then.
    last = slice(max(len(Y) - 2048, 0), None)
    roots, columns, outputs = np.sqrt(weights), candidates[0].shape[1], Y.shape[1]
    places = np.sort(random.permutation(len(Y[last]))[:512])
    units, some = [], []
    for U in candidates:
        units.append(2.0 * half_median_distance(U, np.ones(columns), random, absolute=True))
        some.append(Neighbours(columns, outputs, 32 * len(Y)))
        some[-1].learn_past(U[last], Y[last], roots[last])

    def error(which: int, ratio: float) -> float:
        some[which].regularization = ratio * units[which]
        return some[which].leave_one_out(places)

    ratio = 0.1 / 3.16 if regularization is None else regularization
    # What is better by less than a thousandth, or by what is rounding beside the targets, is not better.
    rounding = 1e-12 * float(roots[last][places] ** 2 @ np.sum(Y[last][places] ** 2, axis=1))
    chosen, best = 0, error(0, ratio)
    for which in range(1, len(candidates)):
        if (tried := error(which, ratio)) < 0.999 * best - rounding:
            chosen, best = which, tried
    if regularization is None:
        for factor in (1.0 / 3.16, 3.16):
            taken = False
            while 1e-4 <= ratio * factor <= 10.0:
                if not (tried := error(chosen, ratio * factor)) < 0.999 * best - rounding:
                    break
                best, ratio, taken = tried, ratio * factor, True
            if taken:
                break
    expert = Neighbours(columns, outputs, most, ratio * units[chosen])
    expert.learn_past(candidates[chosen], Y, roots)
    return chosen, expert


@compiled
def _predict(
    U: Matrix,
    points: SingleMatrix,
    values: Matrix,
    regularization: float,
    distances: Singles,
    predictions: Matrix,
) -> None:
    for i in range(len(U)):
        predict_around(U[i], points, values, regularization, distances, -1, predictions[i])


@compiled
def _leave_one_out(
    places: Integers,
    points: SingleMatrix,
    values: Matrix,
    regularization: float,
    distances: Singles,
) -> float:
    outputs = values.shape[1] - 1
    prediction, u, total = np.empty(outputs), np.empty(len(points)), 0.0
    for i in range(len(places)):
        b = places[i]
        for j in range(len(points)):
            u[j] = points[j, b]
        predict_around(u, points, values, regularization, distances, b, prediction)
        for o in range(outputs):
            total += values[b, outputs] * (prediction[o] - values[b, o] / values[b, outputs]) ** 2
    return total


@inner
def predict_around(
    u: Vector,
    points: SingleMatrix,
    values: Matrix,
    regularization: float,
    distances: Singles,
    excluded: int,
    prediction: Vector,
) -> None:
    """The ridge fit to the nearest points; the mean of all where these are as far away as each other."""
    count, outputs, columns = len(distances), len(prediction), len(points)
    for b in range(count):
        distances[b] = 0.0
    for j in range(columns):
        coordinate = np.float32(u[j])
        for b in range(count):
            distances[b] += abs(coordinate - points[j, b])
    if excluded >= 0:
        distances[excluded] = np.inf
    # The nearest so far, by insertion: hardly any point is nearer than the last of them.
    near, places = np.full(NEAREST + 1, np.inf, FLOAT32), np.zeros(NEAREST + 1, np.int64)
    for b in range(count - 1, -1, -1):
        if distances[b] < near[NEAREST]:
            at = NEAREST
            while at > 0 and distances[b] < near[at - 1]:
                near[at], places[at] = near[at - 1], places[at - 1]
                at -= 1
            near[at], places[at] = distances[b], b
    for o in range(outputs):
        prediction[o] = 0.0
    if near[0] < np.float32(63.0 / 64.0) * near[NEAREST] < np.inf:
        here, apart = np.empty((columns, NEAREST), FLOAT32), np.empty(NEAREST, FLOAT32)
        prior, scaled = np.empty((NEAREST, NEAREST)), np.empty((NEAREST, NEAREST))
        L = np.empty((NEAREST, NEAREST))
        roots, weights = np.empty(NEAREST), np.empty(NEAREST)
        for c in range(columns):
            for i in range(NEAREST):
                here[c, i] = points[c, places[i]]
        for i in range(NEAREST):
            # A point that is nearly as far away as the next one counts next to nothing: which of the two
            # is among the nearest may be a matter of rounding.
            roots[i] = math.sqrt(values[places[i], outputs] * (1.0 - near[i] / near[NEAREST]))
            for j in range(i + 1):
                apart[j] = near[i] + near[j]
            for c in range(columns):
                its = here[c, i]
                for j in range(i + 1):
                    apart[j] -= abs(its - here[c, j])
            for j in range(i + 1):
                prior[i, j] = 0.0
                scaled[i, j] = roots[i] * roots[j] * apart[j]
            prior[i, i] = regularization
        if weigh_targets(prior, scaled, L, roots, weights):
            for i in range(NEAREST):
                weight = weights[i] / values[places[i], outputs]
                for o in range(outputs):
                    prediction[o] += weight * values[places[i], o]
            return
    # As on a grid: which of them are nearest is a matter of rounding, so all that are as far away count.
    total = 0.0
    for b in range(count):
        if distances[b] <= np.float32(65.0 / 64.0) * near[NEAREST]:
            total += values[b, outputs]
            for o in range(outputs):
                prediction[o] += values[b, o]
    for o in range(outputs):
        prediction[o] /= max(total, 1e-300)
