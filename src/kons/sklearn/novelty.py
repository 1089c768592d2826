"""Outlier detection under scikit-learn's verbs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kons.arrays import Vector, require_number
from kons.learners.detection import novelty_learner

__all__ = ["NoveltyDetector"]


class NoveltyDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """How new rows are to a dictionary of those learned; one pass, and ``partial_fit``.

    ::

        score_samples(X) = -n,    n = phi^T A^-1 phi + what lies outside the span, over alpha
        predict(X) = -1 where the score is below the ``contamination`` quantile of the rows of the last call

    O(B^2) a row with B atoms. Not for clusters of outliers: in one pass they become the rest.

    Parameters
    ----------
    contamination:
        The share of the rows learned that counts as outliers.
    bandwidth, max_atoms, forgetting:
        As in :class:`kons.river.NoveltyDetector`.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.sklearn import NoveltyDetector
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> NoveltyDetector().fit(X).predict([[0.0, 0.0], [7.0, -7.0]]).tolist()
    [1, -1]
    """

    model_: Any
    offset_: float

    def __init__(
        self,
        *,
        contamination: float = 0.05,
        bandwidth: float | str = "auto",
        max_atoms: int = 200,
        forgetting: float = 1.0,
    ) -> None:
        self.contamination = contamination
        self.bandwidth = bandwidth
        self.max_atoms = max_atoms
        self.forgetting = forgetting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the rows in one pass, from nothing."""
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        share = require_number(self.contamination, "contamination", above=0.0, at_most=0.5)
        self.model_ = novelty_learner(
            bandwidth=self.bandwidth,
            max_atoms=self.max_atoms,
            forgetting=self.forgetting,
            warmup=len(rows),
        )
        self.model_.advance(rows, np.zeros(len(rows)))
        self.offset_ = float(np.quantile(self.score_samples(rows), share))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn more rows; scales stay those of the first call."""
        if not hasattr(self, "model_"):
            return self.fit(X)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        self.model_.advance(rows, np.zeros(len(rows)))
        self.offset_ = float(np.quantile(self.score_samples(rows), self.contamination))
        return self

    def score_samples(self, X: Any) -> Vector:
        """Minus the novelty of each row: the lower, the more unlike those learned."""
        check_is_fitted(self, "model_")
        novelty: Vector = self.model_.novelty(validate_data(self, X, dtype=np.float64, reset=False))
        return -novelty

    def decision_function(self, X: Any) -> Vector:
        """Below 0 for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for outliers, 1 for others."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)
