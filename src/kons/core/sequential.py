"""The second-order state in a few coordinates, for rows that come one after the other in machine code.

The weight and the steps of a row may depend on all rows before it, and periods end inside compiled loops:
:mod:`kons.core.quadratic_loops` shows how such a loop looks. It asks nothing of BLAS: the same rows give the
same bits, however they are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from kons.arrays import Matrix, Vector
from kons.core.cholesky import factored, inverted
from kons.core.quadratic import PERIOD, Quadratic
from kons.core.quadratic_loops import end_period, factor_rows
from kons.errors import NumericalError
from kons.state import fields
from kons.stored import Stored

__all__ = ["RowArrays", "Sequential"]


#: What compiled loops of rows read and write, in their order: Q, S, L, base, Z, V, C and marks.
RowArrays = tuple[Matrix, Matrix, Matrix, Matrix, Matrix, Matrix, Matrix, Matrix]


class Sequential(Quadratic):
    """A :class:`Quadratic` over B coordinates that stay, whose periods end when its owner says so.

    O(B^2 + B K) a row. Not for a B beyond some hundred, where blocks and BLAS are several times faster.

    >>> import numpy as np
    >>> from kons.core.quadratic_loops import STEPS, keep_row, predict_row
    >>> A = Sequential(0.01 * np.eye(2))
    >>> for z in np.random.default_rng(0).normal(size=(100, 2)):
    ...     prior, S, L, base, Z, V, C, marks = A.arrays()
    ...     work = A.room_for_row()
    ...     work[:2] = z
    ...     predict_row(len(L), L, base, V, C, marks, A.pending, work)
    ...     gain = keep_row(1.0, 1.0, V, C, marks, A.pending, work)
    ...     Z[A.pending], marks[A.pending, STEPS] = z, gain * (work[-2] - z @ [2.0, -1.0])
    ...     A.pending += 1
    ...     if A.pending == A.period:
    ...         A.end_period()
    >>> A.u.round(2).ravel().tolist()
    [2.0, -1.0]
    """

    STATE = fields(rows=None, totals=None)
    base: Matrix
    outputs: int

    def __init__(self, prior: Matrix, outputs: int = 1) -> None:
        # About B: then a row of the period costs as much as its share of a factorization.
        super().__init__(prior, outputs=outputs, period=max(8, min(len(prior), PERIOD)))

    @property
    def _most_pending(self) -> int:
        return self.period - 1

    def arrays(self) -> RowArrays:
        """The arrays themselves, which a loop may change; ``pending`` is then for its caller to set."""
        self._own("S", "L", "base", "_Z", "_V", "_C", "_marks")
        prior: Any = self.prior
        return prior, self.S, self.L, self.base, self._Z, self._V, self._C, self._marks

    def end_period(self, decay: float = 1.0) -> None:
        """Take in the rows that wait, and weigh all of them by ``decay``."""
        if not end_period(*self.arrays(), self.pending, decay):
            raise no_factor()
        self.pending = 0

    def change_prior(self, prior: Matrix) -> None:
        """Another Q with the same rows: ``c = A u`` stays, ``u = (Q + S)^-1 c``."""
        c = self.running_sum() @ self.u
        self.end_period()
        self.prior = prior
        self.factor()
        self.solve(c)

    def map_coordinates(self, T: Matrix) -> None:
        """Rows become T z under the same prior, ``S <- T S T^T``; then :meth:`solve` or :meth:`assign` u."""
        self.end_period()
        lower = np.tril(self.S)
        self.S = T @ (lower + np.tril(lower, -1).T) @ T.T
        self.factor()

    def solve(self, c: Matrix) -> None:
        """``u = A^-1 c``, at the end of a period."""
        self.base = np.ascontiguousarray(self.whiten(c.T).T)

    def assign(self, u: Matrix) -> None:
        """Other weights u, at the end of a period."""
        self.base = self._whitened(u)

    # ---- fewer coordinates

    def removal_cost(self, coordinates: Sequence[int], values: Vector) -> float:
        """``values^T (A^-1)_GG^-1 values`` over the coordinates G: what it costs that these become 0."""
        gone, rest, A = self._split(coordinates)
        across = A[np.ix_(rest, gone)] @ values
        own = A[np.ix_(gone, gone)] @ values
        return float(values @ own - across @ _solved(A[np.ix_(rest, rest)], across))

    def removal_costs(self, values: Vector) -> Vector:
        """``values_i^2 / (A^-1)_ii``: what it costs that each coordinate alone becomes 0. O(B^3) for all."""
        units, factor = _scaled_factor(self.running_sum())
        inverse = inverted(factor)
        costs: Vector = (values * units) ** 2 / np.einsum("ij,ij->j", inverse, inverse)
        return costs

    def without(self, coordinates: Sequence[int], values: Vector) -> Vector:
        """The best values of the others, where all have these and those of the coordinates become 0."""
        gone, rest, A = self._split(coordinates)
        return values[rest] + _solved(A[np.ix_(rest, rest)], A[np.ix_(rest, gone)] @ values[gone])

    def only(self, coordinates: NDArray[np.int64]) -> Sequential:
        """Another one over these coordinates, with the same rows, and u = 0."""
        A, prior = self.running_sum(), np.diag(np.diagonal(self.prior)[coordinates])
        other = Sequential(prior, self.outputs)
        other.S = A[np.ix_(coordinates, coordinates)] - prior
        other.factor()
        return other

    def with_more(self, prior: Vector) -> Sequential:
        """Another one over more coordinates, in which no row had a component; u is 0 there."""
        A, n = self.running_sum(), len(self)
        other = Sequential(np.diag(np.concatenate([np.diagonal(self.prior), prior])), self.outputs)
        other.S[:n, :n] = A - self.prior
        other.factor()
        other.assign(np.pad(self.u, ((0, len(prior)), (0, 0))))
        return other

    def _split(self, coordinates: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64], Matrix]:
        gone = np.asarray(coordinates)
        return gone, np.setdiff1d(np.arange(len(self)), gone), self.running_sum()

    def factor(self) -> None:
        """Find L from S."""
        self.L = np.zeros(self.S.shape)
        prior: Any = self.prior
        if not factor_rows(prior, self.S, self.L):
            raise no_factor()

    def add_outputs(self, outputs: int) -> None:
        """So many outputs more, with u = 0."""
        if outputs > 0:
            self.outputs += outputs
            for name in ("base", "_marks"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, outputs))))

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many coordinates."""
        super().load_state(stored, **{**sizes, "size": len(self)})


def _scaled_factor(A: Matrix) -> tuple[Vector, Matrix]:
    """Units in which the diagonal is 1, for a prior may be any number of times another, and L in them."""
    units = np.sqrt(np.diagonal(A))
    return units, factored(A / units / units[:, None], np.zeros(A.shape))


def _solved(A: Matrix, b: Vector) -> Vector:
    """``A^-1 b``."""
    units, factor = _scaled_factor(A)
    x: Vector = lapack.dpotrs(factor, b / units, lower=1)[0]
    return x / units


def no_factor() -> NumericalError:
    """What to raise where A has no factor."""
    return NumericalError(
        "A is not positive definite: regularization is below what 16 digits resolve beside the rows that "
        "were learned, or a row overflows. Raise the one, scale the other."
    )
