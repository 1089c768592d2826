"""One row at a time: what all experts predict, their stacking and the learning of a row, in compiled calls.

Inside a chunk the experts' atoms, feature maps and factors stay, and a row only appends to arrays that are
there. So a table of them is made once a chunk: what is small and fixed by name, the arrays of the state by
their addresses. A row costs some tens of microseconds then, where a block of one costs a thousand; and what
it changes *is* the state. Whoever replaces an array of it lets the table go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import address_of
from kons.core.interruption import stopped_midway
from kons.kernels import Gaussian, Kernel, Laplace, Linear
from kons.learners.auto.doubts import SIZES, doubts_of_row, places_of
from kons.learners.auto.feature_map import FeatureMap
from kons.learners.auto.logistic import SpanLogistic
from kons.learners.auto.neighbours import Neighbours
from kons.learners.auto.pending import Asked
from kons.learners.auto.pool import Expert
from kons.learners.auto.quantile_scaling import QuantileScaling
from kons.learners.auto.row_loops import (
    EXPERT,
    FEATURE_MAP,
    GAUSSIAN,
    LAPLACE,
    LINEAR,
    NEIGHBOURS,
    SHARED,
    append,
    ask_experts,
    learn,
    stack,
)
from kons.learners.auto.rows import WAITED_AT
from kons.learners.auto.schedule import LONGEST
from kons.learners.auto.spec import BASELINES, MEAN

if TYPE_CHECKING:
    from kons.learners.auto.ensemble import Ensemble

__all__ = ["OneRow"]


class OneRow:
    """The rows of a chunk, one by one, on the state of an ensemble.

    Making it costs O(B) an expert and some hundred microseconds; a row O(B^2) for each expert that follows
    every row. Not for blocks, which BLAS does faster, nor for kernels other than Gaussian, Matern of
    smoothness 1.5 and Linear: see :meth:`can`.

    >>> import numpy as np
    >>> from kons import AutoKONS
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> blocks, rows = AutoKONS(max_atoms=20), AutoKONS(max_atoms=20)
    >>> trace = blocks.advance(X, X[:, 0])
    >>> for x in X:
    ...     rows.learn_one(x, x[0])
    >>> bool(abs(rows.predict_one([0.5, 0.0]) - blocks.predict_one([0.5, 0.0])) < 1e-9)
    True
    """

    predictions: Vector
    scores: Vector

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        pool, outputs = ensemble.pool, ensemble.outputs
        self._held: list[Any] = []  # what the loops know by its address
        self._works: dict[int, tuple[Vector, int, int]] = {}  # of a row, by column of F
        self.experts: list[Expert] = [slot.expert for slot in pool.slots if slot.expert is not None]
        self._pending = self.experts[0].pending if self.experts else 0
        maps: dict[tuple[int, bool], int] = {}
        map_rows, expert_rows = [], []
        for column, slot in enumerate(pool.slots, start=BASELINES):
            expert, feature_map, lags = slot.expert, slot.feature_map, slot.spec.lags
            if expert is None or feature_map is None:
                continue
            key = id(feature_map), lags
            if key not in maps:
                maps[key] = len(maps)
                map_rows.append(self._feature_map(feature_map, lags))
            size, kind = len(expert), _kind(expert.kernel) or LINEAR
            state = (expert.atoms.T.copy(), *expert.arrays_of_period())
            work = np.zeros(2 * size + LONGEST + outputs + 1)
            self._works[column] = work, size, 2 * size + LONGEST
            offsets = np.broadcast_to(expert.offset, outputs).copy()
            addresses = (self._address(array) for array in (*state, work, offsets))
            logistic = isinstance(expert, SpanLogistic)
            numbers = _rate(expert.kernel), expert.forgetting, expert.regularization
            kept: tuple[int, ...] = (0,) * 8
            if isinstance(expert, Neighbours):
                kind, arrays = NEIGHBOURS, expert.kept()
                kept = (arrays[1].shape[1], len(arrays[5]), *(self._address(array) for array in arrays))
            trends = expert.trends if isinstance(expert, Neighbours) else 0
            facts = column, maps[key], kind, expert.online, logistic, size, ensemble.layout.count, trends
            expert_rows.append((*facts, *numbers, *addresses, *kept))
        self._maps, self._experts = np.array(map_rows, FEATURE_MAP), np.array(expert_rows, EXPERT)
        #: Of the last row that was asked: itself, what all predict, the predictions and calibrated scores.
        self.row: Vector = np.zeros(ensemble.layout.columns)
        self.F = np.zeros((len(pool) + BASELINES, outputs))
        self.predictions, self.scores = np.zeros(outputs), np.zeros(outputs)
        self._columns = np.array(ensemble.selection.columns)
        self._doubted = places_of(pool), self._similarities(), self._scatter()
        self.look_again()
        # The features of that row, if it is still the next one.
        self._features: bytes | None = None
        self._lock = threading.Lock()

    def look_again(self) -> None:
        """Find what all share where it is now; experts only append, whoever holds a mark of them."""
        ensemble = self._ensemble
        outputs, targets = ensemble.outputs, ensemble.targets
        logits = ensemble.calibration.moved
        classes = ensemble.layout.classes
        calibration, goal = (*logits.arrays(), logits.room_for_row()), np.zeros(outputs)
        bounds = np.column_stack([*ensemble.bounds, ensemble.largest_error])
        held, records = [calibration, goal, bounds, targets.moments, targets.totals, ensemble.losses], []
        for k, stacking in enumerate(ensemble.stackings):
            weights = stacking.moved
            numbers = bounds[k], targets.moments[k], targets.totals[k:], ensemble.losses[k], goal[k:]
            arrays = stacking.start, *weights.arrays(), weights.room_for_row()
            held.append(arrays)
            records.append(
                (
                    *(int(classes), ensemble.known_classes, len(self.F), outputs if classes else 1),
                    *(address_of(array) for array in (*numbers, *arrays)),
                    *(weights.period, weights.pending, ensemble.calibration.least),
                    *(address_of(array) for array in calibration),
                )
            )
        self._held_by_all = held
        self._shared: NDArray[np.void] = np.array(records, SHARED)

    @staticmethod
    def can(ensemble: Ensemble) -> bool:
        """Whether there is something to predict from, a last target too, and the loops know all kernels."""
        known = all(_kind(expert.kernel) is not None for expert in ensemble.pool.experts)
        return known and not ensemble.targets.empty and ensemble.outputs > 0

    # ---- rows

    def ask(self, x: Vector, last_targets: Vector, now: int) -> Vector:
        """Scores of the next row, at once if they are known; ``now`` rows were learned so far, in all."""
        features, width = x.tobytes(), len(x)
        with self._lock:  # several threads may predict
            if features != self._features:
                row = self.row
                row[:width], row[width : width + len(last_targets)] = x, last_targets
                row[WAITED_AT] = now  # until it is learned: when it was predicted
                tables = self._shared, self._maps, self._experts
                stack(row, self._pending, *tables, self.F, self.predictions, self.scores)
                self._features = features
            return self.scores.copy()

    def doubts(self) -> Matrix:
        """How doubtful what was said of the last row that was asked is: kons.learners.auto.doubts."""
        doubts, (places, k, scatter) = np.zeros((len(self._shared), 1 + SIZES)), self._doubted
        row, ranges = self.row, self._ensemble.ranges
        doubts_of_row(places, row, ranges, self.F, self.predictions, k, scatter, doubts)
        return doubts

    def learn(self, y: Sequence[float], now: int, asked: Asked | None = None) -> None:
        """Learn the row that was just asked, with weight 1; or one that was asked earlier, with its own."""
        ensemble, row, F, predictions = self._ensemble, self.row, self.F, self.predictions
        layout = ensemble.layout
        if self._pending >= LONGEST:
            raise stopped_midway()
        centres = np.zeros(1) if layout.classes else F[MEAN].copy()
        if asked is not None:
            row = asked.rows.copy()
            # What the experts hold is of this row, if it was asked last and none was learned since.
            if row[WAITED_AT] != now or row[: layout.width].tobytes() != self._features:
                ask_experts(row, self._pending, self._shared, self._maps, self._experts, F)
            F = np.ascontiguousarray(asked.F[self._columns])
            predictions, centres = asked.predictions, np.ascontiguousarray(asked.centres)
        else:
            row[layout.own + layout.count] = 1.0
        row[layout.own : layout.own + layout.count] = y
        row[WAITED_AT] = now - row[WAITED_AT]
        learn(row, self._pending, self._shared, self._experts, F, centres, predictions)
        for stacking, pending in zip(ensemble.stackings, self._shared["pending"].tolist(), strict=True):
            stacking.moved.pending = pending
        self._count()
        if ensemble.layout.classes:
            ensemble.known_classes = max(ensemble.known_classes, int(y[0]) + 1)
        ensemble.reservoir.extend(row[None])
        ensemble.rows += 1
        self._features = None

    def learn_again(self, row: Vector) -> None:
        """Let experts learn a row of the chunk that they have learned before, bit for bit as then."""
        ask_experts(row, self._pending, self._shared, self._maps, self._experts, self.F)
        append(row, self._pending, self._shared, self._experts)
        self._count()

    def _count(self) -> None:
        self._pending += 1
        for expert in self.experts:
            expert.pending = self._pending

    def asked(self) -> Asked:
        """The row that was last asked, as it is kept until its target is known. A copy."""
        F = self._ensemble.selection.spread(self.F[None])[0]
        layout, row = self._ensemble.layout, self.row.copy()
        row[layout.own : WAITED_AT] = 0.0  # those of the row before it, which no file would bring back
        centres = np.zeros(1) if layout.classes else self.F[MEAN].copy()
        return Asked(row, F, centres, self.predictions.copy())

    # ---- where everything is

    def _similarities(self) -> Vector:
        """Where the steady expert has the kernel between a row and its atoms."""
        work, size, _ = self._works.get(int(places_of(self._ensemble.pool)[0]), (np.ones(1), 1, 0))
        return work[:size]

    def _scatter(self) -> Vector:
        """Where the nearest rows have their scatter."""
        numbers = self._ensemble.layout.count + 1
        work, _, end = self._works.get(int(places_of(self._ensemble.pool)[1]), (np.zeros(numbers), 0, 0))
        return work[end : end + numbers]

    def _address(self, array: NDArray[Any]) -> int:
        self._held.append(array)
        return address_of(array)

    def _feature_map(self, feature_map: FeatureMap, lags: bool) -> tuple[int, ...]:
        scaling, columns = feature_map.scaling, feature_map.metric.shape[-1]
        knots = 0
        if isinstance(scaling, QuantileScaling):
            knots = max(len(values) for values in scaling.values)
            table = np.zeros((2 * columns, 1 + knots))
            for j, numbers in enumerate((*scaling.values, *scaling.ranks)):
                table[j, 0], table[j, 1 : 1 + len(numbers)] = len(numbers), numbers
        else:
            table = np.stack([*scaling.halves, np.full(columns, scaling.limit)])
        metric, work = np.ascontiguousarray(feature_map.metric), np.zeros((2, columns))
        addresses = (self._address(array) for array in (table, metric, work))
        facts = (knots > 0, lags, feature_map.flags, feature_map.features, columns, knots, metric.ndim == 2)
        return (*(int(fact) for fact in facts), *addresses)


def _kind(kernel: Kernel) -> int | None:
    if type(kernel) is Linear:
        return LINEAR
    if type(kernel) is Gaussian:
        return GAUSSIAN
    return LAPLACE if type(kernel) is Laplace else None


def _rate(kernel: Kernel) -> float:
    """By what squared, or absolute, differences are multiplied in the exponent."""
    if not isinstance(kernel, (Gaussian, Laplace)) or not isinstance(kernel.bandwidth, float):
        return 1.0
    return -0.5 / kernel.bandwidth**2 if isinstance(kernel, Gaussian) else -1.0 / kernel.bandwidth
