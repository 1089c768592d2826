"""Points that a budget had no room for, as random features: ``w^T z(x)`` in place of their kernels."""

from __future__ import annotations

import numpy as np

from kons.arrays import Integers, Matrix, Vector
from kons.core.feature_maps import Fourier
from kons.kernels import Kernel
from kons.state import Array, Inner, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["GonePoints"]


class GonePoints(Part):
    """``w``, the sum of ``theta z(x)`` over the points that went, and ``z`` of those that may go.

    O(D d) a row. Its kernel errs by 1/sqrt(D).
    """

    STATE = fields(features=Inner(), w=Array(None), Z=Array("size", None))

    def __init__(self, kernel: Kernel, dimension: int, seed: int) -> None:
        self.features: Fourier = Fourier(kernel, dimension, seed)
        self.w: Vector = np.zeros(dimension)
        self.Z: Matrix = np.empty((0, dimension))

    def meet(self, block: Matrix) -> tuple[Matrix, Vector]:
        """Q and ``gone`` of :class:`kons.core.budget.Expansion` for a block of rows."""
        if not self.features.frequencies.shape[1]:
            self.features.start(block.shape[1])
        new = self.features.features(block)
        self.Z = np.vstack([self.Z, new])
        return np.column_stack([new @ self.Z.T, new @ self.w]), np.append(np.zeros(len(self.Z)), 1.0)

    def settle(self, gone: Vector, members: Integers) -> None:
        """Take in who went; of those met so far the members stay."""
        self.w = gone[-1] * self.w + gone[:-1] @ self.Z
        self.Z = self.Z[members]

    def values(self, points: Matrix) -> Vector:
        """``w^T z`` of each point."""
        values: Vector = self.features.features(points) @ self.w if self.w.any() else np.zeros(len(points))
        return values

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.w) != self.features.size or self.Z.shape[1] != self.features.size:
            raise stored.error(f"w has {len(self.w)} features, expected {self.features.size}")
