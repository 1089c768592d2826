"""Anomaly detection under River's verbs."""

from __future__ import annotations

import math
from typing import Any

from river.base import AnomalyDetector

from kons.learners.detection import novelty_learner

__all__ = ["NoveltyDetector"]


class NoveltyDetector(AnomalyDetector):
    """How new each row is to a dictionary of those before: a score that is 0 in the midst, and at most 1.

    ::

        score = n/(1 + n),   n = phi^T A^-1 phi + what lies outside the span, over alpha

    Dicts as in :class:`kons.river.KONSRegressor`: text, dates and gaps are taken. The first ``warmup`` rows
    tell the scales, and have the score 0. O(B^2) a row. Not for anomalies in the target given the features:
    there intervals say more.

    Parameters
    ----------
    bandwidth
        Of the Gaussian kernel, in scaled units; "auto" reads it off the rows.
    max_atoms
        How many rows are kept at most.
    forgetting
        Below 1, what was seen long ago becomes new again.
    warmup
        Rows that tell the scales.

    Examples
    --------
    >>> from kons.river import NoveltyDetector
    >>> model = NoveltyDetector(warmup=50)
    >>> for i in range(300):
    ...     model.learn_one({"load": float(i % 7), "heat": float(i % 5)})
    >>> model.score_one({"load": 3.0, "heat": 2.0}) < 0.5 < model.score_one({"load": 60.0, "heat": -30.0})
    True
    """

    def __init__(
        self,
        bandwidth: float | str = "auto",
        max_atoms: int = 200,
        forgetting: float = 1.0,
        warmup: int = 100,
    ) -> None:
        self.bandwidth = bandwidth
        self.max_atoms = max_atoms
        self.forgetting = forgetting
        self.warmup = warmup
        self._core = novelty_learner(
            bandwidth=bandwidth, max_atoms=max_atoms, forgetting=forgetting, warmup=warmup
        )

    @property
    def _supervised(self) -> bool:
        return False

    def learn_one(self, x: dict[Any, Any]) -> None:
        """Learn one row."""
        self._core.learn_one(dict(x), 0.0)

    def score_one(self, x: dict[Any, Any]) -> float:
        """How new one row is, from 0 to 1; 0 before anything is known."""
        if not self._core.rows_seen:
            return 0.0
        novelty = float(self._core.novelty([dict(x)])[0])
        return 0.0 if math.isnan(novelty) else novelty / (1.0 + novelty)
