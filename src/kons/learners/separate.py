"""A learner for each target, where what they keep depends on it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.learners.trace import Trace
from kons.state import Inners, Items, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Separate"]


class Separate(Part):
    """K learners of the same rows, as one whose rows have K targets, for :class:`kons.Classifier`.

    Costs all of them. Where who is kept does not depend on targets, one learner has K functions itself, over
    one dictionary: :class:`kons.EmbeddedKONS`. One whose sign is -1 is taught the opposite, and says so: its
    function is the opposite of what it was before the sign. The first ``spare`` are of nobody, and are not
    counted where there are others.
    """

    STATE = fields(signs=Items("1 or -1", lambda sign: sign in (1.0, -1.0)), learners=Inners())
    learners: list[Any]
    signs: list[float]
    spare: int

    def __init__(self, learner: Any, spare: int) -> None:
        self.learners, self.signs, self.spare = [learner], [1.0], spare

    @property
    def rows_seen(self) -> int | None:
        """How many rows were learned, where the learner tells."""
        rows: int | None = self.learners[0].rows_seen
        return rows

    @property
    def size(self) -> int:
        """How many points all of them keep."""
        return sum(learner.size or 0 for learner in self._counted(self.learners))

    @property
    def rows_kept(self) -> int:
        """How many rows each of them ever kept, in all."""
        return sum(learner.rows_kept for learner in self.learners)

    @property
    def outputs(self) -> int:
        """How many targets a row has."""
        return len(self.learners)

    def arrange(self, functions: Sequence[int], signs: Sequence[float]) -> None:
        """The learners become copies of these, by number, each times a sign."""
        self.signs = [self.signs[number] * sign for number, sign in zip(functions, signs, strict=True)]
        kept: set[int] = set()
        chosen = []
        for number in functions:
            learner = self.learners[number]
            chosen.append(copy.deepcopy(learner) if number in kept else learner)
            kept.add(number)
        self.learners = chosen

    def advance(self, X: Any, Y: Matrix, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row; the caller puts back what an error left half learned."""
        pairs = zip(self.learners, np.ascontiguousarray((Y * self.signs).T), strict=True)
        traces = [learner.advance(X, y, block_size, sample_weight) for learner, y in pairs]
        kept = np.any([trace.kept for trace in traces], axis=0)
        return Trace(
            kept=kept,
            size=np.sum([trace.size for trace in self._counted(traces)], axis=0),
            prediction=np.stack([trace["prediction"] for trace in traces], axis=1) * self.signs,
            rounding_clips=sum(trace.rounding_clips for trace in traces),
        )

    def learn_one(self, x: Any, y: Sequence[float]) -> None:
        """Learn one row: all of them do, or none."""
        mark = self.mark()
        try:
            for learner, target, sign in zip(self.learners, y, self.signs, strict=True):
                learner.learn_one(x, sign * target)
        except BaseException:
            self.restore(mark)
            raise

    def predict(self, X: Any) -> Matrix:
        """What each predicts, (n, K)."""
        return np.stack([learner.predict(X) for learner in self.learners], axis=1) * self.signs

    def predict_one(self, x: Any) -> Vector:
        """What each predicts for one row."""
        return np.array([learner.predict_one(x) for learner in self.learners]) * self.signs

    def widen(self, columns: int) -> None:
        """More features, 0 in what was kept."""
        for learner in self.learners:
            learner._require_widenable(columns)
        for learner in self.learners:
            learner.widen(columns)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of as many as there are."""
        self.learners = [learner.anew() for learner in self.learners]
        for learner in self.learners:
            learner._followed_elsewhere = learner.inside = True
        super().load_state(stored, **sizes)

    def _counted(self, each: list[Any]) -> list[Any]:
        return each[self.spare :] or each

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        stored.counted(len(self.signs), "signs", at_least=len(self.learners), at_most=len(self.learners))
        if len({learner.rows_seen for learner in self.learners}) > 1:
            raise stored.error("its learners are at different rows")
