"""Rows that come next and are not learned: the last targets before each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.learners.auto.rows import LAGS
from kons.learners.labels import Labels

__all__ = ["Following"]


class Following:
    """The last targets of a model, and how they go on as targets become known; :meth:`AutoKONS.following`.

    A target that is known is a last target of the rows behind it, though it is not learned; a row without one
    leaves the last targets as they are.
    """

    def __init__(self, past: Vector, late: int, labels: Labels | None) -> None:
        self._late, self._labels = late, labels
        # The oldest first, those that are known and kept back still at the end.
        self._past = past

    def before(self, y: Any) -> Matrix:
        """Of rows in order, whose targets are y (NaN or None: not known): what ``recent_targets`` takes.

        They are then the last ones of the next call's rows. A label that the model does not know is none.
        """
        if self._labels is None:
            values = np.array(y, dtype=np.float64)
        else:
            codes = self._labels.find(y)
            values = np.where(codes < 0, np.nan, codes)
        known = ~np.isnan(values)
        past = np.concatenate([self._past, values[known]])
        behind = len(self._past) - self._late + np.cumsum(known) - known
        last: Matrix = past[np.maximum(behind[:, None] - 1 - np.arange(LAGS), 0)]
        self._past = past[-LAGS - self._late :]
        return last
