"""Frequent directions: the sum of squares of a stream of rows, in a matrix of few rows.

With A all rows and B the sketch, at every step and for every k < l::

    0  <=  A^T A - B^T B  <=  removed * I,        removed <= |A - A_k|_F^2 / (l - k)

B has room for 2l rows. When it is full, its singular values are shrunk, ``s_i^2 <- s_i^2 - s_{l+1}^2``, and
at most l rows stay. A shrinking takes ``s_{l+1}^2`` off at least l + 1 squares and off the trace, so that the
sum of what it takes off one direction, ``removed``, is bounded by the trace outside any k directions.
"""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.cholesky import factored, inverted
from kons.core.storage import VectorStore
from kons.errors import NumericalError
from kons.state import Number, Part, Points, Sizes, fields
from kons.stored import Stored

__all__ = ["FrequentDirections"]

# Singular values whose squares can be added up.
LARGEST = 1e150
OVERFLOW = (
    "the singular values of the sketch were not found, or have no squares. Likely cause: rows whose squares "
    "overflow; divide them by their scale."
)


class FrequentDirections(Part):
    """B, and with a regularization also ``(alpha*I + B^T B)^-1``.

    ::

        (alpha*I + B^T B)^-1 v = (v - B^T (alpha*I + B B^T)^-1 B v) / alpha

    Costs O(l*d + l^2) a row, the shrinking included, where the width d is at least l; each ``solve`` l^3
    more; memory 2*l*d numbers. Rows that came one by one or in blocks give the same B bit for bit. Not for
    rows that are to be forgotten: what was added stays.

    >>> sketch = FrequentDirections(2, regularization=1.0)
    >>> sketch.update(np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]]))
    >>> (sketch.rows.T @ sketch.rows).round(12).diagonal(), round(sketch.removed, 12)
    (array([8., 7., 0.]), 1.0)
    >>> sketch.solve(np.array([[0.0, 8.0, 1.0]])).round(12)
    array([[0., 1., 1.]])

    References
    ----------
    Liberty, KDD 2013; Ghashami, Liberty, Phillips, Woodruff, SIAM J. Computing 2016. As the
    preconditioner of a learner: Luo, Agarwal, Cesa-Bianchi, Langford, NIPS 2016.
    """

    STATE = fields(_rows=Points("rows"), removed=Number(at_least=0.0))
    directions: int
    regularization: float | None

    def __init__(self, directions: int, regularization: float | None = None) -> None:
        self.directions, self.regularization = directions, regularization
        self.removed: float = 0.0
        """What was taken off any one direction, at most: the sum of ``s_{l+1}^2`` over all shrinkings."""
        self._rows = VectorStore()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Matrix:
        """B: fewer than 2l rows. A view, valid until the next :meth:`update`."""
        return self._rows.view

    def update(self, rows: Matrix) -> None:
        """Add the squares of these rows; they are finite, and of the width of those before."""
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.vdot(rows, rows) + np.vdot(self.rows, self.rows) < LARGEST**2:
                raise NumericalError(OVERFLOW)
        taken = 0
        while taken < len(rows):
            part = rows[taken : taken + 2 * self.directions - len(self)]
            taken += len(part)
            self._rows.append(part)
            if len(self) == 2 * self.directions:
                self._shrink()

    def merge(self, other: FrequentDirections) -> None:
        """Take in another sketch: what holds of each alone holds of the rows of both together."""
        removed = other.removed
        self.update(other.rows.copy())
        self.removed += removed

    def widen(self, columns: int) -> None:
        """Rows are so much wider from now on; those before have 0 there."""
        self._rows.widen(columns)

    def solve(self, V: Matrix) -> Matrix:
        """``(alpha*I + B^T B)^-1 v`` of each row v. Errs by about 1e-16 |B|^2/alpha of it."""
        if self.regularization is None:
            raise TypeError("a sketch without a regularization has no inverse")
        if not len(self):
            return V / self.regularization
        B = self.rows
        inverse = np.tril(inverted(factored(B @ B.T, self.regularization)))
        return np.asarray((V - V @ B.T @ inverse.T @ inverse @ B) / self.regularization)

    def singular(self) -> tuple[Vector, Matrix]:
        """The singular values of B, falling, and its right singular vectors as rows."""
        if not len(self):
            return np.empty(0), np.empty((0, 0))
        try:
            _, s, directions = np.linalg.svd(self.rows, full_matrices=False)
        except np.linalg.LinAlgError:
            s = np.full(1, np.inf)
        if not s[0] < LARGEST:
            raise NumericalError(OVERFLOW)
        return s, directions

    def _shrink(self) -> None:
        s, directions = self.singular()
        last = float(s[self.directions]) if len(s) > self.directions else 0.0
        kept = s[: self.directions]
        kept = kept[kept > last]
        # s^2 - last^2, without a difference of squares
        shrunk = np.sqrt((kept - last) * (kept + last))
        # Replaced, not overwritten: a mark may hold the old ones.
        self._rows = VectorStore()
        self._rows.append(shrunk[:, None] * directions[: len(kept)])
        self.removed += last**2

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        stored.counted(len(self), "rows of the sketch", at_most=2 * self.directions - 1)
