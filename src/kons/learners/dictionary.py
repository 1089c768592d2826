"""What every dictionary shares: rows in, few weighted atoms out, coordinates in their span."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector, as_row_values
from kons.core.embedding import Embedding
from kons.core.threads import single_threaded_blas
from kons.learners.stream import StreamConsumer

__all__ = ["BLOCK", "Dictionary"]

BLOCK = 128


class Dictionary(StreamConsumer):
    """Atoms with weights, so that ``sum weight phi phi^T`` over them stands for that over all rows.

    It predicts nothing and sees no targets. A subclass takes rows in by ``_take``.
    """

    supervised = False
    questions: tuple[str, ...] = ("transform",)

    def update(self, X: Any, feature_weight: Any = 1.0) -> None:
        """Take the rows of X in, in order; all of them or, after an error, none.

        ``feature_weight`` is w, one number or one per row: the sum is over ``w phi phi^T``. A row without
        weight counts as one, and changes nothing.
        """
        points = self._as_points(X)
        weights = as_row_values(feature_weight, len(points), name="feature_weight", minimum=0.0)
        with self._all_or_nothing(), single_threaded_blas():
            self._take(points, weights)
            self._count(points, 0)

    @abstractmethod
    def _take(self, points: Any, weights: Vector) -> None:
        """Take rows in; ``_rows_seen`` is still without them."""

    @property
    @abstractmethod
    def atoms(self) -> Any:
        """The points kept, in the order they came. A copy."""

    @property
    @abstractmethod
    def weights(self) -> Vector:
        """What each atom stands for in the sum. A copy."""

    @property
    def size(self) -> int:
        """How many atoms there are."""
        return len(self.weights)

    def transform(self, X: Any) -> Matrix:
        """Nystrom features: rows z with ``z^T z'`` close to ``k(x, x')``.

        ``z = L^-1 k_D(x)`` with ``L L^T = K_D``: orthonormal coordinates in the span of the atoms. An atom
        that lies in the span of those before it, to rounding, adds no column.
        """
        points = self._as_points(X)
        return self._span().coordinates(points)

    def _span(self) -> Embedding:
        """The coordinates, of the atoms as they are. Costs B^3 after a change."""
        atoms, kernel = self.atoms, self.kernel
        assert kernel is not None
        found: tuple[Any, Embedding] | None = vars(self).get("_found_span")
        if found is None or not _same(found[0], atoms):
            span = Embedding(kernel)
            for start in range(0, len(atoms), BLOCK):
                span.extend(atoms[start : start + BLOCK])
            self._found_span = found = (atoms, span)
        return found[1]


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, np.ndarray):
        return bool(np.array_equal(old, new))
    return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
