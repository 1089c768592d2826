"""Combining predictions by the library's own update: ridge regression on the experts' predictions.

::

    prediction   p_t = m_t + w^T (f_t - m_t),         m_t the running centre of the targets
    weights      w = w_0 + A^-1 sum_t lambda^(age) g_t (y_t - m_t - w_0^T g_t),     g_t = f_t - m_t
    A            = alpha s^2 I + sum_t lambda^(age) g_t g_t^T,   s^2 the variance of the targets

It is the second-order step with the squared loss in the space of experts, started at equal weights. For
lambda = 1 it competes with every fixed *linear* combination w of the N experts: its squared loss is at most
``loss(w) + alpha s^2 |w - w_0|^2 + 4 C^2 N log(1 + T C^2/(alpha s^2 N))`` for predictions and targets within
C of the centre, the bound of online ridge regression (Vovk 2001; Azoury, Warmuth 2001). So it loses little
to the best expert, and gains where errors of experts cancel. With forgetting, it competes with combinations
that change slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from kons.arrays import FLOAT64, Integers, Layout, Matrix, Vector
from kons.compilation import compiled
from kons.core.cholesky import factored
from kons.state import Array, Number, Part, fields
from kons.stored import Stored

__all__ = ["Aggregation", "learn_weights"]

#: Rows, experts, outputs.
Cube = Annotated[NDArray[np.float64], Layout(FLOAT64, 3)]

# Below this targets have told no units, and what the prior weighs is not known.
NO_VARIANCE = 1e-299
# The prior of those whose weight starts at 0 and has to be earned.
DOUBT = 10.0


class Aggregation(Part):
    """The weights of N experts, updated after each row; O(N^2) a row and output.

    Not for hundreds of experts, nor for experts that all agree: their weights are then not determined, though
    the prediction is.

    >>> import numpy as np
    >>> y = np.sin(np.arange(500.0))
    >>> two = np.stack([y + 1.0, y - 1.0], axis=1)[:, :, None]   # each wrong by 1, in opposite directions
    >>> aggregation = Aggregation(2)
    >>> predictions = aggregation.advance(two, np.zeros(500), two, np.zeros(500), y[:, None])
    >>> bool(abs(predictions[-1, 0] - y[-1]) < 0.01), aggregation.weights.round(2).tolist()
    (True, [0.5, 0.5])
    """

    STATE = fields(
        _memory=Number(at_least=0.0),
        priors=Array("experts"),
        start=Array("experts"),
        weights=Array("experts"),
        gram=Array("experts", "experts"),
        products=Array("experts"),
        inverse=Array("experts", "experts"),
    )

    def __init__(
        self,
        experts: int,
        regularization: float = 1.0,
        forgetting: float = 0.9995,
        doubted: Sequence[int] = (),
    ) -> None:
        self.regularization, self.forgetting = regularization, forgetting
        doubts = np.isin(np.arange(experts), doubted)
        #: Of each weight, in units of the regularization.
        self.priors: Vector = np.where(doubts, DOUBT, 1.0)
        self.start: Vector = np.where(doubts, 0.0, 1.0 / max(experts - len(doubted), 1))
        self.weights: Vector = self.start.copy()
        self.gram: Matrix = np.zeros((experts, experts))
        self.products: Vector = np.zeros(experts)
        # Until targets have told their units, they are 1; who is doubted waits for them.
        self.inverse: Matrix = np.diag(np.where(doubts, 0.0, 1.0 / regularization))
        self._memory = 0.0

    def advance(
        self,
        F: Matrix,
        centres: Vector,
        F_learned: Matrix,
        centres_learned: Vector,
        Y: Matrix,
        scales: Vector | None = None,
        known: NDArray[np.int64] | None = None,
        largest: float = np.inf,
        used: Matrix | None = None,
    ) -> Matrix:
        """Predict from F (rows, experts, outputs); learn Y (rows, outputs) from the predictions F_learned.

        ``known`` says how many of the learned rows are learned before each prediction: by default one is
        learned after each. ``scales`` are weights of the learned rows; one whose squared error is beyond
        ``largest`` weighs as much less. ``used`` is filled with the weights of each prediction.
        """
        predictions = np.empty((len(F), F.shape[2]))
        arrays = (self.gram.copy(), self.products.copy(), self.inverse.copy(), self.weights.copy())
        known = np.arange(len(F)) if known is None else known
        scales = np.ones(len(Y)) if scales is None else scales
        F, F_learned, scales = (np.ascontiguousarray(a) for a in (F, F_learned, scales))
        learned = F_learned, centres_learned, Y, scales, known, largest
        used = np.empty(F.shape[:2]) if used is None else used
        _follow(F, centres, *learned, self.start, *arrays, predictions, used)
        self.gram, self.products, self.inverse, self.weights = arrays
        return predictions

    def combine(self, F: Matrix, centre: float, absent: Sequence[int] = ()) -> Matrix:
        """Predictions by the weights as they are; without those absent, by the best weights of the others."""
        weights = self.weights
        if len(absent):
            weights = np.zeros(len(weights))
            rest, weights[rest], _ = self._without(absent)
        combined: Matrix = centre + np.einsum("ijk,j->ik", F - centre, weights)
        return combined

    def _without(self, experts: Sequence[int]) -> tuple[NDArray[np.int64], Vector, Matrix]:
        """The others, their weights ``w_R - P_RS P_SS^-1 w_S`` and inverse, ``P = A^-1`` with S left out."""
        P = self.inverse
        rest = np.setdiff1d(np.arange(len(P)), experts)
        gone = np.array([i for i in experts if P[i, i] > 0.0], dtype=np.int64)  # others have not moved
        share = np.linalg.solve(P[np.ix_(gone, gone)], P[np.ix_(gone, rest)]).T
        inverse = P[np.ix_(rest, rest)] - share @ P[np.ix_(gone, rest)]
        return rest, self.weights[rest] - share @ self.weights[gone], inverse

    def begin(self) -> None:
        """Forget all rows; the weights follow at the end of the chunk."""
        self.gram, self.products = np.zeros(self.gram.shape), np.zeros(self.products.shape)

    def end_chunk(self, rows: int, variance: float) -> None:
        """Forget by so many rows, and find the inverse afresh, so that rounding does not add up."""
        decay = self.forgetting**rows
        self.gram, self.products = self.gram * decay, self.products * decay
        self._memory = decay * self._memory + rows
        if not variance > NO_VARIANCE:
            self.inverse, self.weights = np.zeros(self.gram.shape), self.start.copy()
            return
        prior = self.regularization * variance * np.diag(self.priors)
        # Where some rows were of quite other units, the rest is rounding: the factor makes it positive.
        inverse: Matrix = lapack.dpotrs(factored(self.gram, prior), np.eye(len(prior)), lower=1)[0]
        self.inverse = 0.5 * (inverse + inverse.T)
        self.weights = self.start + self.inverse @ self.products

    def removal_cost(self, experts: Sequence[int]) -> float:
        """The rise of the discounted squared loss of the past without these, ``w_S^T (A^-1)_SS^-1 w_S``."""
        S = np.asarray(experts)
        if not self.inverse.any():
            return np.inf
        return float(self.weights[S] @ np.linalg.solve(self.inverse[np.ix_(S, S)], self.weights[S]))

    def remove(self, experts: Sequence[int]) -> None:
        """These experts go; the others take the weights that are best without them, and start from there."""
        rest, self.weights, self.inverse = self._without(experts)
        self.start = self.weights.copy()
        self.products, self.priors = np.zeros(len(rest)), self.priors[rest]
        self.gram = self.gram[np.ix_(rest, rest)]

    @property
    def memory(self) -> float:
        """How many rows count, with forgetting."""
        return self._memory

    def load_state(self, stored: Stored, **_: Any) -> None:
        """Take what was saved of as many experts."""
        super().load_state(stored, experts=len(self.start))


@compiled
def _follow(
    F: Cube,
    centres: Vector,
    F_learned: Cube,
    centres_learned: Vector,
    Y: Matrix,
    scales: Vector,
    known: Integers,
    largest: float,
    start: Vector,
    gram: Matrix,
    products: Vector,
    inverse: Matrix,
    weights: Vector,
    predictions: Matrix,
    used: Matrix,
) -> None:
    rows, experts, outputs = F.shape
    learned = 0
    for t in range(rows + 1):
        until = known[t] if t < rows else len(Y)
        while learned < until:
            for k in range(outputs):
                learn_weights(
                    F_learned[learned, :, k] - centres_learned[learned],
                    Y[learned, k] - centres_learned[learned],
                    scales[learned],
                    largest,
                    start,
                    gram,
                    products,
                    inverse,
                    weights,
                )
            learned += 1
        if t < rows:
            for i in range(experts):
                used[t, i] = weights[i]
            for k in range(outputs):
                total = 0.0
                for i in range(experts):
                    total += weights[i] * (F[t, i, k] - centres[t])
                predictions[t, k] = centres[t] + total


@compiled
def learn_weights(
    g: Vector,
    target: float,
    scale: float,
    largest: float,
    start: Vector,
    gram: Matrix,
    products: Vector,
    inverse: Matrix,
    weights: Vector,
) -> None:
    """One row and output: rank-one changes of all sums; beyond a squared error ``largest`` of less weight."""
    n, size = len(g), 0.0
    for i in range(n):
        size = max(size, abs(g[i]))
    if scale <= 0.0 or size == 0.0:
        return
    v = np.zeros(n)
    error, at_start, form = target, target, 0.0
    for i in range(n):
        error -= weights[i] * g[i]
        at_start -= start[i] * g[i]
        for j in range(n):
            v[i] += inverse[i, j] * (g[j] / size)
        form += v[i] * (g[i] / size)
    if error * error > largest:
        scale *= largest / (error * error)
    # In units of the largest of g: neither its square nor the form's product with it need be a number.
    # A form that is not positive is rounding: such a row waits for the end of the chunk.
    room = 1.0 / max(scale, 1e-300) / size / size + form
    gain = 1.0 / room if form > 0.0 and room < np.inf else 0.0
    for i in range(n):
        weights[i] += gain * (error / size) * v[i]
        products[i] += scale * g[i] * at_start
        for j in range(n):
            inverse[i, j] -= gain * v[i] * v[j]
            gram[i, j] += scale * g[i] * g[j]
