"""One row at a time: what all experts say, the vote and the learning of a row, in one compiled call.

Inside a chunk nothing but the rows themselves is new: the experts' L, their atoms, the views and scalings
stay. So they are laid out once, in flat arrays, and a row costs some tens of microseconds where a block of
one, through all parts, costs a thousand. What a row changes is written here first, and given back to the
parts (*settled*) at the end of the chunk, or before anything else looks at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.kernels import Gaussian, Kernel, Linear, Matern
from kons.learners.auto import single_loops as at
from kons.learners.auto.aggregation import Aggregation
from kons.learners.auto.calibration import Calibration
from kons.learners.auto.expert import SpanRidge
from kons.learners.auto.feature_map import FeatureMap
from kons.learners.auto.logistic import SpanLogistic
from kons.learners.auto.pending import PendingTargets
from kons.learners.auto.pool import ExpertPool
from kons.learners.auto.quantile_scaling import QuantileScaling
from kons.learners.auto.reservoir import Reservoir
from kons.learners.auto.rows import LAGS, OWN, LastTargets
from kons.learners.auto.schedule import LONGEST
from kons.learners.auto.spec import BASELINES
from kons.learners.auto.target_range import OutlierBounds, Targets

__all__ = ["SingleRows"]

# By what squared distances are multiplied before the kernel's profile.
PROFILES = {at.GAUSSIAN: -0.5, at.MATERN: 3.0}


class SingleRows:
    """A chunk's rows, one at a time, beside the parts that they are given back to.

    Laid out once for the experts there are; loaded at the start of a chunk, O(B^2) an expert. A row costs
    O(B^2) for each live expert, with a delay twice. Not for blocks, which BLAS does faster, nor for kernels
    other than Gaussian, Matern of smoothness 1.5 and Linear: see :meth:`can`.

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

    def __init__(
        self,
        pool: ExpertPool,
        stacking: Aggregation,
        calibration: Calibration,
        targets: Targets,
        last_targets: LastTargets,
        reservoir: Reservoir,
        pending: PendingTargets,
        *,
        width: int,
        outputs: int,
    ) -> None:
        self.pool, self.stacking, self.calibration = pool, stacking, calibration
        self.targets, self.last_targets, self.reservoir = targets, last_targets, reservoir
        self.pending = pending
        self.width, self.outputs = width, outputs
        self.slots = [(slot.spec, slot.expert, slot.feature_map) for slot in pool.slots]
        self._lay_out()

    @staticmethod
    def can(pool: ExpertPool) -> bool:
        """Whether the loops know all kernels, and all experts are as far into the chunk."""
        experts = pool.experts
        known = all(_kind(expert.kernel) is not None for expert in experts)
        return known and len({expert.pending for expert in experts}) <= 1

    def fits(self, pool: ExpertPool, width: int, outputs: int) -> bool:
        """Whether it was laid out for just these."""
        if (width, outputs, len(pool)) != (self.width, self.outputs, len(self.slots)):
            return False
        return pool is self.pool and all(
            slot.expert is expert and slot.feature_map is feature_map
            for slot, (_, expert, feature_map) in zip(pool.slots, self.slots, strict=True)
        )

    # ---- where everything lies

    def _lay_out(self) -> None:
        fixed, scratch = _Tape(), _Tape()
        scratch.room(1 + self.outputs + len(self.slots) + BASELINES)
        feature_maps: dict[tuple[int, bool], int] = {}
        self.experts: list[SpanRidge] = []
        view_rows, expert_rows = [], []
        for i, (spec, expert, feature_map) in enumerate(self.slots):
            if expert is None or feature_map is None:
                continue
            key = id(feature_map), spec.lags
            if key not in feature_maps:
                feature_maps[key] = len(feature_maps)
                view_rows.append(_lay_out_view(feature_map, spec.lags, fixed, scratch))
            size = len(expert.atoms) + 1
            entry = np.zeros(at.EXPERT, dtype=np.int64)
            entry[at.SEAT], entry[at.ITS_VIEW] = i + BASELINES, feature_maps[key]
            entry[at.LIVE], entry[at.LOGISTIC] = expert.online, isinstance(expert, SpanLogistic)
            entry[at.SIZE], entry[at.KIND] = size, _kind(expert.kernel) or 0
            head = [_rate(expert.kernel), expert.offset, expert.forgetting]
            entry[at.ATOMS_AT] = fixed.add(head, expert.atoms.T)
            entry[at.WORK_AT] = scratch.room(2 * size + LONGEST + self.outputs + 1)
            expert_rows.append(entry)
            self.experts.append(expert)
        self._fixed, self._scratch = fixed.array(), scratch.array()
        self._views = np.array(view_rows, dtype=np.int64).reshape(-1, at.VIEW)
        self._table = np.array(expert_rows, dtype=np.int64).reshape(-1, at.EXPERT)
        slots = len(self.slots) + BASELINES
        memory = _Tape()
        memory.room(at.NUMBERS)
        sizes = np.zeros(at.SIZES, dtype=np.int64)
        sizes[at.CLASSES] = self.targets.classes
        sizes[at.TAIL_LENGTH] = LAGS + self.last_targets.delay
        sizes[at.TOTALS_AT] = memory.room(self.outputs)
        sizes[at.TAIL_AT] = memory.room(int(sizes[at.TAIL_LENGTH]))
        sizes[at.CALIBRATION_AT] = memory.room(6)
        sizes[at.ALL_AT] = memory.room(3 * slots + 2 * slots**2)
        self._sizes, self._memory = sizes, memory.array()
        self._x = np.zeros(self.width)
        # The row that is spoken of, its target and weight, what everybody says and what comes of it.
        row, said = self.width + LAGS, slots * self.outputs
        self._current = np.zeros(row + OWN + said + at.SAID * self.outputs)
        self._pending = np.zeros((self.pending.delay + 1, len(self._current)))
        self._rows = np.zeros((LONGEST, row + OWN))
        self._end, self._settled, self._settled_rows = 0, 0, 0
        tables = (self._current[:row], self._sizes, self._views, self._table)
        numbers = (self._fixed, self._memory, self._scratch)
        _, F, self._said = self._parts_of(self._current)
        self._to_foresee = (self._x, *tables, *numbers, F, self._said)
        lines = (self._current, self._rows, self._pending)
        self._to_learn = (*tables, *numbers, F, self._said, *lines)

    def _parts_of(self, line: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """The row, what everybody says of it, and what comes of that; or of several lines."""
        outputs, columns = self.outputs, self.width + LAGS + OWN
        slots, lines = len(self.slots) + BASELINES, line.shape[:-1]
        F, said = np.split(line[..., columns:], [slots * outputs], axis=-1)
        return line[..., :columns], F.reshape(*lines, slots, outputs), said.reshape(*lines, -1, outputs)

    def _vote(self, place: int, n: int) -> tuple[Matrix, Matrix]:
        """Weights, start and products; A and its inverse."""
        start = self._sizes[place]
        vectors = self._memory[start : start + 3 * n].reshape(3, n)
        squares = self._memory[start + 3 * n : start + 3 * n + 2 * n * n].reshape(2, n, n)
        return vectors, squares

    def _part(self, place: int, length: int) -> Vector:
        return self._memory[self._sizes[place] : self._sizes[place] + length]

    # ---- from the parts, and back to them

    def load(
        self,
        left: int,
        *,
        loss: float,
        loss_rows: float,
        known_classes: int,
        bounds: OutlierBounds,
        largest_error: float,
    ) -> None:
        """Take everything over from the parts, wherever in the chunk they are, ``left`` rows from its end."""
        n = self.experts[0].pending if self.experts else 0
        # Kept, for they are known to the loops by their addresses.
        self._held = [expert.arrays_of_period() for expert in self.experts]
        for i, arrays in enumerate(self._held):
            self._table[i, at.ADDRESSES :] = [array.ctypes.data for array in arrays]
        memory, targets = self._memory, self.targets
        memory[at.FED] = self._settled = 0
        memory[at.ROWS] = self._settled_rows = n
        self._end = left
        self._load_waiting()
        memory[at.WEIGHT], memory[at.SQUARES] = targets.weight, targets.squares
        memory[at.LOW], memory[at.HIGH] = targets.low, targets.high
        memory[at.LOSS], memory[at.LOSS_ROWS] = loss, loss_rows
        memory[at.FENCE_LOW], memory[at.FENCE_HIGH] = bounds
        memory[at.LARGEST_ERROR] = largest_error
        memory[at.KNOWN_CLASSES] = known_classes
        self._part(at.TOTALS_AT, self.outputs)[:] = targets.totals
        tail = self.last_targets.tail
        memory[at.TAIL] = len(tail)
        self._part(at.TAIL_AT, len(tail))[:] = tail
        calibration = self._part(at.CALIBRATION_AT, 6)
        calibration[:2], calibration[2:] = self.calibration.coefficients, self.calibration.curvature.ravel()
        vote = self.stacking
        vectors, squares = self._vote(at.ALL_AT, len(vote.start))
        vectors[:] = vote.weights, vote.start, vote.products
        squares[:] = vote.gram, vote.inverse
        self._scratch[0] = 0.0

    def flush(self) -> tuple[float, float, int]:
        """Give everything back to the parts; returns the sum of losses, over how many rows, and classes."""
        memory, targets = self._memory, self.targets
        fed, n = int(memory[at.FED]), int(memory[at.ROWS])
        if fed > self._settled:
            for expert in self.experts:
                expert.pending = n
            targets.weight, targets.squares = float(memory[at.WEIGHT]), float(memory[at.SQUARES])
            targets.low, targets.high = float(memory[at.LOW]), float(memory[at.HIGH])
            targets.totals = self._part(at.TOTALS_AT, self.outputs).copy()
            self.last_targets.tail = self._part(at.TAIL_AT, int(memory[at.TAIL])).copy()
            calibration = self._part(at.CALIBRATION_AT, 6).copy()
            self.calibration.coefficients, curvature = calibration[:2], calibration[2:]
            self.calibration.curvature = curvature.reshape(2, 2)
            vectors, squares = self._vote(at.ALL_AT, len(self.stacking.start))
            self.stacking.weights, _, self.stacking.products = vectors.copy()
            self.stacking.gram, self.stacking.inverse = squares.copy()
            self.reservoir.extend(self._rows[self._settled_rows : n])
            self._settle_waiting()
            self._settled, self._settled_rows = fed, n
        return float(memory[at.LOSS]), float(memory[at.LOSS_ROWS]), int(memory[at.KNOWN_CLASSES])

    def _load_waiting(self) -> None:
        arrays, count = self.pending.arrays, len(self.pending)
        self._memory[at.WAITS], self._memory[at.OLDEST] = count, 0
        if count:
            rows, F, said = self._parts_of(self._pending[:count])
            rows[:], F[:], said[:, at.VOTE] = arrays["rows"], arrays["F"], arrays["predictions"]
            said[:, at.CENTRE] = arrays["centres"][:, None]

    def _settle_waiting(self) -> None:
        if self.pending.delay:
            places = int(self._memory[at.OLDEST]) + np.arange(int(self._memory[at.WAITS]))
            rows, F, said = self._parts_of(self._pending[places % len(self._pending)])
            self.pending.keep(rows=rows, F=F, centres=said[:, at.CENTRE, 0], predictions=said[:, at.VOTE])

    # ---- rows

    def predict(self, x: Vector) -> Vector:
        """The calibrated logits of classes, or the prediction, for a row as if it came next."""
        self._x[:] = x
        at.foresee(*self._to_foresee)
        # A copy: others may predict before it is read.
        scores: Vector = self._said[at.LOGITS].copy()
        return scores

    def learn(self, x: Vector, y: float) -> int:
        """Learn a row with weight 1, cheaper if it was the last one predicted; how many are left to come."""
        self._x[:] = x
        at.foresee(*self._to_foresee)
        return self._end - at.learn(y, *self._to_learn)

    @property
    def left(self) -> int:
        """Rows until the chunk's end."""
        return self._end - int(self._memory[at.FED])

    # ---- going back

    def mark(self) -> Any:
        """Where it stands, for :meth:`restore`: the rows themselves stay where they are."""
        return self._memory.copy(), self._settled, self._settled_rows

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark."""
        self._memory[:], self._settled, self._settled_rows = mark
        self._scratch[0] = 0.0


class _Tape:
    """Numbers one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[Vector] = []

    def room(self, count: int) -> int:
        """So many zeros; returns where they begin."""
        return self.add(np.zeros(count))

    def add(self, *parts: Sequence[float] | NDArray[np.float64]) -> int:
        """Behind all others; returns where they begin."""
        start = self.size
        for part in parts:
            numbers = np.ravel(part)
            self._parts.append(numbers)
            self.size += len(numbers)
        return start

    def array(self) -> Vector:
        """All of them."""
        return np.concatenate([np.zeros(0), *self._parts])


def _lay_out_view(feature_map: FeatureMap, lags: bool, fixed: _Tape, scratch: _Tape) -> NDArray[np.int64]:
    entry = np.zeros(at.VIEW, dtype=np.int64)
    columns, scaling = feature_map.metric.shape[-1], feature_map.scaling
    entry[at.SEES_LAGS], entry[at.FLAGS], entry[at.FEATURES] = lags, feature_map.flags, feature_map.features
    entry[at.COLUMNS], entry[at.ROTATED] = columns, feature_map.metric.ndim == 2
    if isinstance(scaling, QuantileScaling):
        entry[at.RANKS], entry[at.KNOTS] = True, max(len(values) for values in scaling.values)
        tables = np.zeros((2, columns, int(entry[at.KNOTS])))
        for j, (values, ranks) in enumerate(zip(scaling.values, scaling.ranks, strict=True)):
            tables[0, j, : len(values)], tables[1, j, : len(values)] = values, ranks
        entry[at.SCALING_AT] = fixed.add([len(values) for values in scaling.values], tables)
    else:
        entry[at.SCALING_AT] = fixed.add(*scaling.halves, [scaling.limit])
    entry[at.METRIC_AT] = fixed.add(feature_map.metric)
    entry[at.SEEN_AT] = scratch.room(2 * columns)
    return entry


def _kind(kernel: Kernel) -> int | None:
    if type(kernel) is Linear:
        return at.LINEAR
    if type(kernel) is Gaussian:
        return at.GAUSSIAN
    return at.MATERN if type(kernel) is Matern and kernel.smoothness == 1.5 else None


def _rate(kernel: Kernel) -> float:
    if isinstance(kernel, (Gaussian, Matern)) and isinstance(kernel.bandwidth, float):
        return PROFILES[_kind(kernel) or at.GAUSSIAN] / kernel.bandwidth**2
    return 1.0
