"""Weights of rows by how rare their label is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.state import Part, Whole, fields

__all__ = ["BalancedWeights"]


class BalancedWeights(Part):
    """``rows / (labels * rows of this label)``, from the labels known when a row is learned, its own
    included.

    So every label weighs the same in all, as ``class_weight="balanced"`` of scikit-learn has it, without a
    look ahead. Probabilities are then those of labels that are equally frequent: compare ranks, not log loss.

    >>> import numpy as np
    >>> BalancedWeights().follow(np.array([0, 0, 0, 1, 0])).round(2).tolist()
    [1.0, 1.0, 1.0, 2.0, 0.62]
    """

    STATE = fields(_came=Whole(None))

    def __init__(self) -> None:
        self._came: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def follow(self, codes: NDArray[np.int64]) -> Vector:
        """The weights of the next rows, by the codes of their labels, which are numbered as they come."""
        width = max(len(self._came), int(codes.max(initial=-1)) + 1)
        counts = np.zeros((len(codes), width), dtype=np.int64)
        counts[np.arange(len(codes)), codes] = 1
        counts = np.cumsum(counts, axis=0) + np.pad(self._came, (0, width - len(self._came)))
        self._came = counts[-1].copy() if len(codes) else self._came
        own = counts[np.arange(len(codes)), codes]
        weights: Vector = counts.sum(axis=1) / (np.count_nonzero(counts, axis=1) * own)
        return weights
