"""An expert that keeps rows instead of learning them: the mean of the nearest ones, in the metric of others.

::

    f(x) = sum_i w_i y_i / sum_i w_i,    w_i = 1 - |u - u_i|^2/h^2    over the 8 nearest rows, h to the ninth

or the mean of all rows that are as far away as these, where they are all at one distance, as on a grid.

Kernel ridge with some hundred atoms resolves what is smooth between them; where a target has steps, or where
the same few machines, patients or places come again and again, the nearest rows know more. Distances are
those of a feature map, whose metric the ridge experts have learned: in raw columns neighbours would be blind
to which of them matter. To stacking, the one quadratic above all experts, this mean is one more feature of a
row, as the mean of all targets and the last one are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT32, Layout, Matrix, Vector
from kons.compilation import compiled, inner
from kons.kernels import Kernel, Linear
from kons.learners.auto.schedule import EARLY, LONGEST
from kons.state import Array, Count, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["NEAREST", "Neighbours", "mean_of_nearest"]

# Single precision: rows that are equal stay equal however they were computed, at half the bytes and time.
Singles = Annotated[NDArray[np.float32], Layout(FLOAT32, 1)]
SingleMatrix = Annotated[NDArray[np.float32], Layout(FLOAT32, 2)]
#: Rows that a prediction is the mean of.
NEAREST = 8


class Neighbours(Part):
    """The mean target of the nearest of the last rows, for all outputs.

    A prediction costs O(N d) for N rows of d coordinates, 10 to 20 microseconds for 8,192 rows; beyond 32
    columns fewer rows are kept. Rows are kept from the end of their chunk on. Not for targets that are noise
    around something smooth, where a ridge averages over more rows: stacking gives it a weight, or none.

    >>> import numpy as np
    >>> U = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    >>> expert = Neighbours(columns=2, outputs=1, most=1000)
    >>> expert.learn_past(U, np.sign(U[:, :1]), np.ones(400))
    >>> expert.predict(np.array([[0.3, 0.0], [-0.3, 0.0]])).ravel().tolist()
    [1.0, -1.0]

    References
    ----------
    Cleveland: Robust locally weighted regression and smoothing scatterplots, JASA 1979 (weights that end at
    the next neighbour).
    """

    kernel: Kernel = Linear()
    online, offset, forgetting = False, 0.0, 1.0
    #: Rows that wait are found again from the chunk: see :meth:`begin_again`.
    STATE = fields(
        points=Array("columns", "rows", dtype=FLOAT32),
        values=Array("rows", "values"),
        pending=Count(at_most=LONGEST),
    )

    def __init__(self, columns: int, outputs: int, most: int) -> None:
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
        """Means of the nearest rows. Changes nothing."""
        means = np.empty((len(U), self.values.shape[1] - 1))
        _predict(np.ascontiguousarray(U), self.points, self.values, self.room(), means)
        return means

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
        some = Neighbours(len(self.points), self.values.shape[1] - 1, self.most)
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


@compiled
def _predict(U: Matrix, points: SingleMatrix, values: Matrix, distances: Singles, means: Matrix) -> None:
    for i in range(len(U)):
        mean_of_nearest(U[i], points, values, distances, means[i])


@inner
def mean_of_nearest(
    u: Vector, points: SingleMatrix, values: Matrix, distances: Singles, mean: Vector
) -> None:
    """The weighted mean of the values of the nearest points; the mean of all where these are as far away."""
    count, outputs = len(distances), len(mean)
    for b in range(count):
        distances[b] = 0.0
    for j in range(len(points)):
        coordinate = np.float32(u[j])
        for b in range(count):
            difference = coordinate - points[j, b]
            distances[b] += difference * difference
    # The nearest so far, by insertion: hardly any point is nearer than the last of them.
    near, places = np.full(NEAREST + 1, np.inf, FLOAT32), np.zeros(NEAREST + 1, np.int64)
    for b in range(count - 1, -1, -1):
        if distances[b] < near[NEAREST]:
            at = NEAREST
            while at > 0 and distances[b] < near[at - 1]:
                near[at], places[at] = near[at - 1], places[at - 1]
                at -= 1
            near[at], places[at] = distances[b], b
    total = 0.0
    for o in range(outputs):
        mean[o] = 0.0
    if near[0] < np.float32(63.0 / 64.0) * near[NEAREST] < np.inf:
        for i in range(NEAREST):
            weight = 1.0 - near[i] / near[NEAREST]
            total += weight * values[places[i], outputs]
            for o in range(outputs):
                mean[o] += weight * values[places[i], o]
    else:
        # As on a grid: which of them are nearest is a matter of rounding, so all that are as far away count.
        for b in range(count):
            if distances[b] <= np.float32(65.0 / 64.0) * near[NEAREST]:
                total += values[b, outputs]
                for o in range(outputs):
                    mean[o] += values[b, o]
    for o in range(outputs):
        mean[o] /= max(total, 1e-300)
