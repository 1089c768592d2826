"""Two votes over the same experts: of all of them, and of those that need no last targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.learners.auto.aggregation import Aggregation
from kons.learners.auto.roles import BASELINES, LAST, MEAN
from kons.state import Inner, Part, fields

__all__ = ["EARNED", "Voting"]

#: A weight of the last target below is chance, and times a wild target it would be harm.
EARNED = 0.1


class Voting(Part):
    """What is voted on: the mean of the targets, the last of them, and what experts say.

    The last target starts with no weight, for on rows in no order it is worth nothing. It is there for those
    in order: no expert follows as fast where something new happens.

    Where targets become known ``delay`` rows late, up to so many errors are made before one is seen, and
    regret grows as delay + 1 (Joulani, Gyorgy, Szepesvari 2013): the weights start with as much more faith.
    """

    STATE = fields(all=Inner(), plain=Inner())

    def __init__(self, without_lags: Sequence[bool], delay: int = 0) -> None:
        prior = 1.0 + delay
        self.all = Aggregation(len(without_lags) + BASELINES, prior, doubted=[LAST])
        #: Those that need no last targets.
        self.columns = [MEAN, *(i + BASELINES for i, plain in enumerate(without_lags) if plain)]
        self.plain = Aggregation(len(self.columns), prior)

    def advance(
        self,
        F: Matrix,
        centres: Vector,
        F_learned: Matrix,
        centres_learned: Vector,
        Y: Matrix,
        weights: Vector,
        known: NDArray[np.int64],
        largest: float,
    ) -> tuple[Matrix, NDArray[np.bool_]]:
        """Predictions by all, and whether the last target was trusted at each; both learn.

        See :meth:`Aggregation.advance`.
        """
        learned = centres_learned, Y, weights, known, largest
        used = np.empty(F.shape[:2])
        predictions = self.all.advance(F, centres, F_learned, *learned, used)
        columns = self.columns
        self.plain.advance(F[:, columns], centres, F_learned[:, columns], *learned)
        trusted: NDArray[np.bool_] = used[:, LAST] > EARNED
        return predictions, trusted

    @property
    def trusts(self) -> bool:
        """Whether the last target has earned a vote: beyond the fence, where no expert speaks, it does."""
        return bool(self.all.weights[LAST] > EARNED)

    def combine(self, F: Matrix, centre: float, *, lags: bool) -> Matrix:
        """Predictions by the weights as they are. Changes nothing."""
        if lags:
            return self.all.combine(F, centre)
        return self.plain.combine(F[:, self.columns], centre)

    def begin(self) -> None:
        """Forget all rows."""
        for vote in (self.all, self.plain):
            vote.begin()

    def end_chunk(self, rows: int, variance: float) -> None:
        """Forget by so many rows."""
        for vote in (self.all, self.plain):
            vote.end_chunk(rows, variance)

    def remove(self, columns: Sequence[int]) -> None:
        """Without these columns."""
        self.all.remove(columns)
        gone = [place for place, column in enumerate(self.columns) if column in columns]
        if gone:
            self.plain.remove(gone)
        left = [column for column in self.columns if column not in columns]
        self.columns = [column - sum(other < column for other in columns) for column in left]
