"""Combining predictions by the library's own update: ridge regression on the experts' predictions.

::

    prediction   p_t = m_t + w^T (f_t - m_t),         m_t the running centre of the targets
    weights      w = w_0 + A^-1 sum_t lambda^(age) g_t (y_t - m_t - w_0^T g_t),     g_t = f_t - m_t
    A            = s^2 P + sum_t lambda^(age) g_t g_t^T,   s^2 the variance of the targets, P the prior

It is the second-order step with the squared loss in the space of experts, started at equal weights. For
lambda = 1 and P = alpha*I it competes with every fixed *linear* combination w of the N experts: its squared
loss is at most ``loss(w) + alpha s^2 |w - w_0|^2 + 4 C^2 N log(1 + T C^2/(alpha s^2 N))`` for predictions and
targets within C of the centre, the bound of online ridge regression (Vovk 2001; Azoury, Warmuth 2001). So it
loses little to the best expert, and gains where errors of experts cancel. With forgetting, it competes with
combinations that change slowly.

The state is :class:`kons.core.sequential.Sequential`: how much a row weighs depends on the error of the
weights before it. What does not fit the paper's update is its prior, which follows the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT64, Integers, Layout, Matrix, Vector
from kons.compilation import compiled, inlined, inner_sums
from kons.core.quadratic_loops import STEPS, end_period, keep_row, predict_row
from kons.core.sequential import RowArrays, Sequential
from kons.state import Array, Inner, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["FORGETTING", "Cube", "Stacking", "learn_weights", "stacked", "weight_of"]

#: Rows, experts, outputs.
Cube = Annotated[NDArray[np.float64], Layout(FLOAT64, 3)]

#: A row: 0.05 %, so that combinations may change.
FORGETTING = 0.9995
# The prior of a weight that starts at 0 and has to be earned.
DOUBT = 10.0
# At or below this variance the targets have no scale, and neither has the prior.
NO_VARIANCE = 1e-299
# As good as an infinite prior: the weight stays where it starts while targets have no scale.
FIXED = 1e300


class _Compared(Number):
    """What is known of two experts; files of earlier versions know nothing of it."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> float:
        return super().load(stored, key, part, name, sizes) if key in stored else 0.0


class Stacking(Part):
    """The weights of N experts, updated after each row; O(N^2) a row and output.

    Not for hundreds of experts, nor for experts that all agree: their weights are then not determined, though
    the prediction is.

    >>> import numpy as np
    >>> y = np.sin(np.arange(500.0))
    >>> two = np.stack([y + 1.0, y - 1.0], axis=1)[:, :, None]   # each wrong by 1, in opposite directions
    >>> stacking = Stacking(2)
    >>> predictions = stacking.advance(two, np.zeros(500), two, np.zeros(500), y[:, None])
    >>> bool(abs(predictions[-1, 0] - y[-1]) < 0.01), stacking.weights.round(2).tolist()
    (True, [0.5, 0.5])
    """

    STATE = fields(
        memory=Number(at_least=0.0),
        lead=_Compared(),
        compared=_Compared(at_least=0.0),
        lead_before=_Compared(),
        priors=Array("experts", at_least=0.0),
        start=Array("experts"),
        prior=Array("experts", at_least=1e-300),
        moved=Inner(),
    )

    def __init__(self, experts: int, doubted: Sequence[int] = ()) -> None:
        doubts = np.zeros(experts, dtype=np.bool_)
        doubts[list(doubted)] = True
        #: Of each weight, in units of the targets' variance.
        self.priors: Vector = np.where(doubts, DOUBT, 1.0)
        self.start: Vector = np.where(doubts, 0.0, 1.0 / max(experts - len(doubted), 1))
        #: What the priors come to; while targets have no scale, 1.
        self.prior: Vector = np.where(doubts, FIXED, 1.0)
        #: By how much the weights have moved from their start.
        self.moved: Sequential = Sequential(np.diag(self.prior))
        #: How many rows count, with forgetting.
        self.memory: float = 0.0
        #: By how much squared errors of a short memory were below those of a long one, lately, in sum.
        self.lead: float = 0.0
        #: Of how many rows.
        self.compared: float = 0.0
        #: What the sums over all rows told of it when this chunk began.
        self.lead_before: float = 0.0

    @property
    def weights(self) -> Vector:
        """Of each expert. Costs O(N^2)."""
        return self.start + self.moved.u[:, 0]

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
        watched: tuple[int, Vector] | None = None,
        forms: Vector | None = None,
    ) -> Matrix:
        """Predict from F (rows, experts, outputs); learn Y (rows, outputs) from the predictions F_learned.

        ``known`` says how many of the learned rows are learned before each prediction: by default one is
        learned after each. ``scales`` are weights of the learned rows; one whose squared error is beyond
        ``largest`` weighs as much less. ``watched`` are the number of an expert, and where its weight in each
        prediction is written; ``forms`` is where ``g^T A^-1 g`` is, summed over the outputs.
        """
        predictions = np.empty((len(F), F.shape[2]))
        known = np.arange(len(F)) if known is None else known
        scales = np.ones(len(Y)) if scales is None else scales
        F, F_learned, scales = (np.ascontiguousarray(a) for a in (F, F_learned, scales))
        learned = F_learned, centres_learned, Y, scales, known, largest
        state, work = self.moved.arrays(), self.moved.room_for_row()
        self.moved.pending = _follow(
            *(F, centres, *learned, self.start, state, self.moved.pending, work, predictions),
            np.empty(len(F)) if forms is None else forms,
            *((-1, np.empty(0)) if watched is None else watched),
        )
        return predictions

    def combine(self, F: Matrix, centre: float, absent: Sequence[int] = ()) -> Matrix:
        """Predictions by the weights as they are; without those absent, by the best weights of the others."""
        weights = self.weights
        if len(absent):
            rest = np.setdiff1d(np.arange(len(weights)), absent)
            weights[rest] = self.moved.without(absent, weights)
            weights[absent] = 0.0
        combined: Matrix = centre + np.einsum("ijk,j->ik", F - centre, weights)
        return combined

    def begin(self) -> None:
        """Forget all rows."""
        self.moved = Sequential(np.diag(self.prior))

    def begin_comparison(self, pair: tuple[int, int] | None) -> None:
        """From here on, of a short memory and a long one, if both are there."""
        self.lead_before = 0.0 if pair is None else self._lead(*pair)[0]

    def compare(self, rows: int, pair: tuple[int, int] | None) -> None:
        """Follow the lead of the short memory by a chunk that ends, half of it forgotten after 256 rows."""
        if pair is not None:
            lead, size = self._lead(*pair)
            gained, decay = lead - self.lead_before, 0.5 ** (rows / 256.0)
            self.lead = decay * self.lead + (gained if abs(gained) > 1e-11 * size else 0.0)  # not rounding
            self.compared = decay * self.compared + rows

    def _lead(self, short: int, long: int) -> tuple[float, float]:
        """By how much squared errors of one are below those of another, over all rows; their size."""
        errors, squares = self._sums()
        return float(errors[long] - errors[short]), float(squares[short] + squares[long])

    def _sums(self) -> tuple[Vector, Vector]:
        """Of each expert over all rows ``S_ii - 2 c_i``, c the products with the targets, and ``S_ii``."""
        A = self.moved.running_sum()
        S = A - np.diag(self.prior)
        c = A @ self.moved.u[:, 0] + S @ self.start
        squares = np.diagonal(S)
        return squares - 2.0 * c, squares

    def errors(self) -> Vector:
        """The discounted squared loss of each expert alone, less that of predicting the mean."""
        return self._sums()[0]

    def leads(self, error: float) -> bool:
        """Whether the short memory was clearly better lately, beside the usual squared error."""
        return self.lead > 0.03 * self.compared * error

    def end_chunk(self, rows: int, variance: float, moving: bool = False) -> None:
        """Forget by so many rows, and take the prior from the variance of the targets.

        Where the stream is ``moving``, six times as fast: weights that were earned before it moved are wrong.
        """
        decay = FORGETTING ** (6 * rows if moving else rows)
        self.memory = decay * self.memory + rows
        self.prior = np.minimum(variance * self.priors, FIXED)
        if not variance > NO_VARIANCE:
            self.prior = np.full(len(self.prior), FIXED)
        self.moved.end_period(decay)
        self.moved.change_prior(np.diag(self.prior))

    @property
    def is_fixed(self) -> bool:
        """Whether weights stay where they start, while targets have no scale."""
        return bool((self.prior >= FIXED).all())

    def removal_cost(self, experts: Sequence[int]) -> float:
        """The rise of the discounted squared loss of the past without these, ``w_S^T (A^-1)_SS^-1 w_S``."""
        if self.is_fixed:
            return np.inf
        return self.moved.removal_cost(experts, self.weights[experts])

    def removal_costs(self) -> Vector:
        """Of each expert alone."""
        if self.is_fixed:
            return np.full(len(self.prior), np.inf)
        return self.moved.removal_costs(self.weights)

    def remove(self, experts: Sequence[int]) -> None:
        """These experts go; the others take the weights that are best without them, and start from there."""
        rest = np.setdiff1d(np.arange(len(self.start)), experts)
        self.start = self.moved.without(experts, self.weights)
        self.priors, self.prior = self.priors[rest], self.prior[rest]
        self.moved = self.moved.only(rest)

    def add(self, experts: int) -> None:
        """So many experts more, with weights that start at 0 and have to be earned."""
        doubts = np.full(experts, DOUBT)
        added = np.minimum(doubts * (self.prior[0] / self.priors[0]), FIXED)
        self.start = np.append(self.start, np.zeros(experts))
        self.priors, self.prior = np.append(self.priors, doubts), np.append(self.prior, added)
        self.moved = self.moved.with_more(added)

    def load_state(self, stored: Stored, **_: Any) -> None:
        """Take what was saved of as many experts."""
        super().load_state(stored, experts=len(self.start))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self.moved.prior = np.diag(self.prior)


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
    state: RowArrays,
    pending: int,
    work: Vector,
    predictions: Matrix,
    forms: Vector,
    expert: int,
    weights: Vector,
) -> int:
    rows, _, outputs = F.shape
    learned = 0
    for t in range(rows + 1):
        until = known[t] if t < rows else len(Y)
        while learned < until:
            pending = learn_weights(
                F_learned[learned],
                centres_learned[learned],
                Y[learned],
                scales[learned],
                largest,
                start,
                state,
                pending,
                work,
            )
            learned += 1
        if t < rows:
            if expert >= 0:
                weights[t] = weight_of(expert, start, state, pending, work)
            forms[t] = 0.0
            for k in range(outputs):
                predictions[t, k] = stacked(F[t], k, centres[t], start, state, pending, work)
                forms[t] += max(work[-1], 0.0)
    return pending


@inner_sums
def weight_of(
    expert: int,
    start: Vector,
    state: RowArrays,
    pending: int,
    work: Vector,
) -> float:
    """The weight of one expert: what is made of a prediction of 1 by it, and of 0 by all others."""
    for i in range(len(start)):
        work[i] = 1.0 if i == expert else 0.0
    _, _, L, base, _, V, C, marks = state
    predict_row(len(L), L, base, V, C, marks, pending, work)
    return float(start[expert] + work[-2])


@inner_sums
def stacked(
    F: Matrix,
    output: int,
    centre: float,
    start: Vector,
    state: RowArrays,
    pending: int,
    work: Vector,
) -> float:
    """One output of one row, from the predictions F (experts, outputs)."""
    total = centre
    for i in range(len(start)):
        work[i] = F[i, output] - centre
    for i in range(len(start)):  # a loop of its own: see compiled_sums
        total += start[i] * work[i]
    _, _, L, base, _, V, C, marks = state
    predict_row(len(L), L, base, V, C, marks, pending, work)
    return float(total + work[-2])


@inlined
def learn_weights(
    F: Matrix,
    centre: float,
    targets: Vector,
    scale: float,
    largest: float,
    start: Vector,
    state: RowArrays,
    pending: int,
    work: Vector,
) -> int:
    """All outputs of one row, a squared error beyond ``largest`` with less weight; rows now pending."""
    prior, S, L, base, Z, V, C, marks = state
    for k in range(F.shape[1]):
        error = targets[k] - stacked(F, k, centre, start, state, pending, work)
        weight = scale * min(1.0, largest / max(error * error, 1e-300))
        size, ratio = 0.0, 0.0
        for i in range(len(start)):
            size = max(size, abs(work[i]))
            ratio = max(ratio, work[i] * work[i] / prior[i, i])
        # What was said before outlier bounds were known may be learned after: rounding would decide then.
        weight = min(weight, 1e14 / max(ratio, 1e-300))
        # Where all predict the centre there is nothing to learn, such as of a class that no row was of.
        if weight > 0.0 and size > 0.0:
            gain = keep_row(1.0, weight, V, C, marks, pending, work)
            for i in range(len(start)):
                Z[pending, i] = work[i]
            marks[pending, STEPS] = -gain * error
            pending += 1
            if pending == len(Z):
                end_period(prior, S, L, base, Z, V, C, marks, pending, 1.0)
                pending = 0
    return pending
