"""What a learner knows of its own errors: intervals of numbers, sets of labels, at any level.

::

    interval   p + s(x) [q_low, q_high]    quantiles of the scores (y - p)/s of the rows learned, s the scale
                                           of kons.core.residual_scale: as wide as this row deserves
    set        {k: p_k >= max p - t}       t a quantile of the scores max p - p_y of the rows learned

Scores are those of predictions that were made before their row was learned; a row whose target comes late
counts when it comes, as it was predicted. Levels correct themselves (:mod:`kons.core.conformal`). Everything
is state of the learner: saved, undone and copied with it, the same however rows are cut into blocks. A row
costs 0.5 to 0.8 microseconds in blocks, one by one 1 to 2; 5 kB a target.

References
----------
Vovk, Gammerman, Shafer: Algorithmic Learning in a Random World, 2005; Papadopoulos, Gammerman, Vovk:
Normalized nonconformity measures for regression conformal prediction, 2008; Gibbs, Candes: Adaptive conformal
inference under distribution shift, NeurIPS 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.compilation import compiled
from kons.core.conformal import KNOWN, REMEMBERED, RING, bounds_of, new_scores, reordered, take_score
from kons.core.residual_scale import (
    OUTSIDE,
    follow,
    is_sound,
    memory_for,
    room_of,
    scales_at,
)
from kons.state import Array, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Intervals", "PredictionSets"]

# A learner that forgets nothing still forgets how large its errors were once.
LONGEST_MEMORY = 0.9995
# With a memory shorter than this the outer quantiles would be of a handful of scores.
SHORTEST_WINDOW = 100
# Calls: nobody reads what learners of objects tell.
MOST_TOLD = 1000


class _Scores(Field):
    """Scores as they came; their order is found again."""

    undoes = True

    def __init__(self, *shape: str) -> None:
        self.shape = shape

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name)[..., : RING + part.window].copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        shape = [sizes[n] for n in self.shape]
        kept = stored.array(key, *shape, RING + part.window)
        tails, count = kept[..., 1:RING], kept[..., :1]
        if kept.size and (kept[..., :RING].min() < 0.0 or tails.max() > 1.0 or (count % 1.0).any()):
            raise stored.error(f"{key} has tails or a count that cannot be")
        scores = np.zeros((*shape, RING + 2 * REMEMBERED))
        scores[..., : RING + part.window] = kept
        for each in np.atleast_2d(scores):
            reordered(each, part.window)
        return scores


class _Memory(Array):
    """The models of residual scales, without the room for a row."""

    def __init__(self) -> None:
        super().__init__("targets", "length", written="always")

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name)[:, : -room_of(part.sizes)].copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        memory = super().load(stored, key, part, name, sizes)
        for each in memory:
            if not is_sound(each, part.sizes):
                raise stored.error(f"{key} holds sums that cannot be those of rows")
        whole = np.zeros((len(memory), memory.shape[1] + room_of(part.sizes)))
        whole[:, : memory.shape[1]] = memory
        return whole


class _Held(Array):
    """Rows that are kept back; nothing, mostly, which takes no room in a file."""

    def save(self, part: Any, name: str) -> Any:
        held = getattr(part, name)
        return held.copy() if len(held) else None

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if not stored.is_nothing(key):
            return super().load(stored, key, part, name, sizes)
        stored.nothing(key)
        return np.zeros([0, *(sizes[n] for n in self.shape[1:] if isinstance(n, str))])


class _Remembers(Part):
    """Scores of which the last count, as many as its learner remembers rows; and those kept back."""

    _scores: NDArray[np.float64]
    _held: NDArray[np.float64]

    def __init__(self, forgetting: float, most: int) -> None:
        #: Of the scale and its means, a row.
        self.forgetting: float = min(forgetting, LONGEST_MEMORY)
        remembered = REMEMBERED if forgetting == 1.0 else round(1.0 / (1.0 - forgetting))
        #: Scores that count.
        self.window: int = min(max(remembered, SHORTEST_WINDOW), most)
        #: Rows learned, by the number of the first, and what there is to tell of each, until it is read.
        self.told: tuple[tuple[int, Matrix], ...] = ()

    @property
    def followed(self) -> int:
        """How many rows there were, those among them that are kept back."""
        return int(self._scores.flat[KNOWN]) + len(self._held)

    def _tell(self, first: int, told: Matrix) -> None:
        self.told = (*self.told[-MOST_TOLD:], (first, told))


class Intervals(_Remembers):
    """The errors of predictions of numbers, and what they say about the next ones; for each of K targets.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=2000)
    >>> intervals = Intervals(targets=1, sizes=0)
    >>> rows = np.zeros((2000, 1, 2))  # predicted 0, nothing new about any row
    >>> scales = intervals.follow(rows, noise[:, None])
    >>> lower, upper = intervals.ends(rows[:1], 0.8)[0, 0]
    >>> bool(-1.6 < lower < -1.0 < 1.0 < upper < 1.6)  # 1.28 deviations
    True
    """

    STATE = fields(
        _memory=_Memory(),
        _scores=_Scores("targets"),
        _held=_Held(None, "targets", "columns"),
    )
    targets: int
    sizes: int

    def __init__(self, targets: int, sizes: int, forgetting: float = 1.0, most: int = REMEMBERED) -> None:
        super().__init__(forgetting, most)
        self.targets, self.sizes = targets, sizes
        self._memory = np.repeat(memory_for(sizes)[None], targets, axis=0)
        self._scores = np.repeat(new_scores()[None], targets, axis=0)
        # Rows whose targets are here and only kept back: p, q, sizes, y and s of each target.
        self._held: NDArray[np.float64] = np.zeros((0, targets, sizes + 4))

    def scales(self, rows: NDArray[np.float64]) -> Matrix:
        """s of rows (n, K, 2 + sizes): prediction, novelty and sizes of each target. Changes nothing."""
        scales = np.empty((self.targets, len(rows)))
        for k, memory in enumerate(self._memory):
            scales_at(memory, self.sizes, np.ascontiguousarray(rows[:, k]), scales[k])
        return np.ascontiguousarray(scales.T)

    def ends(self, rows: NDArray[np.float64], level: float, growth: Any = 1.0) -> NDArray[np.float64]:
        """The intervals of rows, (n, K, 2); infinite before 20 residuals are known. Changes nothing.

        ``growth`` is by what errors are larger than those that were followed, of each target or of all.
        """
        bounds = np.array([bounds_of(scores, self.window, level, two_sided=True) for scores in self._scores])
        ends: NDArray[np.float64] = rows[:, :, :1] + (self.scales(rows) * growth)[:, :, None] * bounds
        return ends

    def follow(self, rows: NDArray[np.float64], targets: Matrix, late: int = 0) -> Matrix:
        """s of rows in order, each of which is learned when ``late`` others came behind it."""
        asked = len(self._held)
        if asked:
            rows = np.concatenate([self._held[:, :, :-2], rows])
            targets = np.concatenate([self._held[:, :, -2], targets])
        scales, told = np.empty((self.targets, len(rows))), np.zeros((len(rows), 2))
        scales[:, :asked] = self._held[:, :, -1].T
        learned, first = 0, int(self._scores[0, KNOWN]) + late
        for k, (memory, scores) in enumerate(zip(self._memory, self._scores, strict=True)):
            own = rows[:, k].copy()
            given = memory, scores, self.sizes, self.forgetting, self.window, own
            learned = follow(*given, targets[:, k].copy(), scales[k], asked, late, told)
        told[:, OUTSIDE] /= self.targets
        self._tell(first, told[:learned])
        if late or asked:
            held = [rows[learned:], targets[learned:, :, None], scales.T[learned:, :, None]]
            self._held = np.concatenate(held, axis=2)
        return np.ascontiguousarray(scales[:, asked:].T)

    def learn_late(self, rows: Matrix, scales: Vector, targets: Vector) -> None:
        """One row that was predicted earlier, when its scales were these."""
        first, told = int(self._scores[0, KNOWN]), np.zeros((1, 2))
        for k in range(self.targets):
            given = self._memory[k], self._scores[k], self.sizes, self.forgetting, self.window
            its = rows[k : k + 1].copy(), targets[k : k + 1].copy(), scales[k : k + 1].copy()
            follow(*given, *its, 1, 0, told)
        told[:, OUTSIDE] /= self.targets
        self._tell(first, told)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved, of as many targets as there are then."""
        columns = {"length": self._memory.shape[1] - room_of(self.sizes), "columns": self.sizes + 4}
        super().load_state(stored, **columns)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self.targets = len(self._memory)


class PredictionSets(_Remembers):
    """The errors of predicted probabilities, and which labels are to be named for a level.

    The score of a row is max p - p_y: 0 where the label came that was thought most probable, so that no set
    is ever empty, and where that happens more often than the level asks, sets have one label.

    >>> sets = PredictionSets()
    >>> sets.follow(np.array([[0.9, 0.1], [0.6, 0.4]] * 200), np.array([0, 1] * 200))
    >>> sets.named(np.array([[0.9, 0.1], [0.6, 0.4]]), 0.9).tolist()
    [[True, False], [True, True]]
    """

    STATE = fields(_scores=_Scores(), _held=_Held(None))

    def __init__(self, forgetting: float = 1.0, most: int = REMEMBERED) -> None:
        super().__init__(forgetting, most)
        self._scores = new_scores()
        self._held = np.zeros(0)

    def follow(self, probabilities: Matrix, codes: NDArray[Any], late: int = 0) -> None:
        """Rows in order: of each class in a column; -1 is a label without one. Learned as in Intervals."""
        own = np.where(codes >= 0, probabilities[np.arange(len(codes)), codes], 0.0)
        scores = probabilities.max(axis=1) - own
        if late or len(self._held):
            waiting = np.concatenate([self._held, scores])
            count = max(len(waiting) - late, 0)
            scores, self._held = waiting[:count], waiting[count:]
        first, told = int(self._scores[KNOWN]) + late, np.zeros((len(scores), 2))
        _take(self._scores, self.window, np.ascontiguousarray(scores), told)
        self._tell(first, told)

    def named(self, probabilities: Matrix, level: float) -> NDArray[np.bool_]:
        """Which labels are in the set of each row; all of them before 20 scores are known."""
        _, largest = bounds_of(self._scores, self.window, level, two_sided=False)
        behind = probabilities.max(axis=1, keepdims=True) - probabilities
        # Two labels that are as probable up to rounding are named together.
        named: NDArray[np.bool_] = behind <= largest + 1e-12
        return named


@compiled
def _take(scores: Vector, window: int, values: Vector, told: Matrix) -> None:
    for i in range(len(values)):
        told[i, OUTSIDE] = 1.0 if take_score(scores, window, values[i], False) else 0.0
