"""The second-order state in R^B: ``A = alpha*I + sum w z z^T`` and the function ``f(z) = z^T u``.

Constant cost, whatever t is. A period of 64 rows starts with A, its factor L and ``base = L^T u``; inside it
rows are kept aside::

    v = L^-1 z                                 whitened: z^T A^-1 z' = v^T v' at the period's start
    h_s = v_s^T v - sum_{r<s} C[s, r] h_r      the form of row s and z, with A as row s met it
    f = base^T v - sum_s step_s h_s            q = v^T v - sum_s gain_s h_s^2
    C[t, s] = gain_s h_s                       gain_s = w_s / (1 + w_s q_s)

which is the replay of :mod:`kons.core.replay`, column by column: a block takes many columns at once, a row
one, on the same arrays. At the end of the period A takes the rows in and is factored again, so rounding never
outlives it. Periods end at absolute row numbers.

A new coordinate gets alpha in A and 0 in u, and nothing that was stored changes: until the period ends, not
even L and base are the longer for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from kons.arrays import Matrix, Vector
from kons.core.cholesky import factored
from kons.core.ledger import TOTALS, Ledger
from kons.core.quadratic_loops import (
    GAINS,
    STEPS,
    WEIGHTS,
    may_be_of_squares,
    predict_row,
    weighted_rows,
    weights_of,
    whiten_weights,
)
from kons.core.threads import blas_has_threads, single_threaded_blas
from kons.state import Array, Corner, Count, Leading, Lower, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Block", "Quadratic", "SquareSum"]

# Rows between two factorizations; forgetting acts at their ends, and shorter periods follow it more closely.
PERIOD = 64
FORGETTING_PERIOD = 32


class _Factor(Lower):
    """L, which is not saved where it is that of S as it is: one call finds it again, bit for bit."""

    def save(self, part: Any, name: str) -> Any:
        return None if part.factor_is_of_sum else super().save(part, name)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part.factor_is_of_sum:
            stored.nothing(key)
            part.factor()
            return part.L
        return super().load(stored, key, part, name, sizes)


class _InCoordinates(Leading):
    """Of a buffer that may have more columns: those of the coordinates that there are."""

    def save(self, part: Any, name: str) -> Any:
        filled = getattr(part, name)[: part.pending, : len(part)]
        return filled.copy() if filled.size else None

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        buffer = getattr(part, name)
        setattr(part, name, buffer[:, : len(part)])
        super().load(stored, key, part, name, sizes)
        return buffer


class SquareSum(Part):
    """``A = Q + sum w z z^T``: the sum S (its lower triangle), and the lower Cholesky factor L of A.

    The prior Q is ``alpha*I``, or a matrix. Memory 2 B^2 numbers; taking in m rows costs B^2 m + B^3/3 flops.
    KORS's sample ``A^I`` in the coordinates of a dictionary, where all its points lie, is one of these.

    >>> import numpy as np
    >>> A = SquareSum(1.0)
    >>> A.extend(2)
    >>> A.take_in(np.array([[3.0, 0.0]]), np.ones(1))
    >>> A.running_sum().tolist(), A.whiten(np.array([[np.sqrt(10.0), 2.0]])).tolist()
    ([[10.0, 0.0], [0.0, 1.0]], [[1.0, 2.0]])
    """

    STATE = fields(S=Lower("size", written="rarely"), L=_Factor("size", written="rarely"))
    #: Whether L is always the factor of S: coordinates may come, and S may be ahead of it.
    factor_is_of_sum = False

    def __init__(self, prior: float | Matrix) -> None:
        self.prior = prior
        size = len(prior) if isinstance(prior, np.ndarray) else 0
        self.S: Matrix = np.zeros((size, size))
        self.L: Matrix = np.zeros((size, size))
        if size:
            self.factor()

    def __len__(self) -> int:
        return len(self.S)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet; of a prior ``alpha*I``."""
        assert isinstance(self.prior, float)
        self.S = _bordered(self.S, coordinates, 0.0)
        self.L = _bordered(self.L, coordinates, math.sqrt(self.prior))

    def whiten(self, Z: Matrix) -> Matrix:
        """``v = L^-1 z`` for each row z of Z (m x B)."""
        if not len(self):
            return np.zeros(Z.shape)
        V: Matrix = blas.dtrsm(1.0, self._whole_factor().T, Z.T, trans_a=1).T
        return V

    def _whole_factor(self) -> Matrix:
        """L over all coordinates."""
        return self.L

    def forms(self, Z: Matrix, R: Matrix) -> Matrix:
        """``Z A^-1 Z^T + R/alpha``, with R what the coordinates leave of the kernel."""
        V = self.whiten(Z)
        N: Matrix = V @ V.T
        N += R / self.prior
        return N

    def take_in(self, Z: Matrix, weights: Vector, decay: float = 1.0) -> None:
        """``S <- decay S + sum w z z^T``, and L anew."""
        self.add(Z * np.sqrt(weights)[:, None], decay)
        self.factor()

    def add(self, Z: Matrix, decay: float = 1.0) -> None:
        """``S <- decay S + Z^T Z``; L stays that of the sum before."""
        if len(self.S):
            self._own("S")
            self.S = blas.dsyrk(1.0, np.ascontiguousarray(Z).T, beta=decay, c=self.S.T, overwrite_c=1).T

    def factor(self) -> None:
        """Find L from S."""
        self.L = factored(self.S, self.prior) if len(self.S) else self.S

    def running_sum(self) -> Matrix:
        """A, both triangles. A copy."""
        S: Matrix = np.tril(self.S) + np.tril(self.S, -1).T
        return S + (self.prior * np.eye(len(S)) if isinstance(self.prior, float) else self.prior)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.L) and not self.L.diagonal().min() > 0.0:
            raise stored.error("L has a diagonal that is not positive")
        if len(self.S) and not may_be_of_squares(self.S):
            raise stored.error("S is no sum of squares")


class Block(NamedTuple):
    """Rows of a period that are about to be learned."""

    Z: Matrix
    V: Matrix
    """Whitened, (m, B)."""
    H: Matrix
    """Their forms with the n rows of the period before them, (n, m)."""
    M: Matrix
    """``z^T A_n^-1 z'`` between them, (m, m): for the replay to use up."""
    f: Matrix
    """The functions at them, (K, m)."""


class Quadratic(SquareSum):
    """A and K functions over B coordinates, with the rows of a period. See the module.

    Memory 2 B^2 + 2 B T + T^2 numbers for periods of T rows. A row costs O(B^2), its share of the
    factorization included.
    """

    STATE = fields(
        rows=Count(),
        totals=Array(len(TOTALS), at_least=0.0, written="always"),
        base=Array("size", "outputs", written="rarely"),
        _marks=Leading("pending", "marks"),
        _Z=_InCoordinates("pending", "coordinates"),
        _V=_InCoordinates("pending", "whitened"),
        _C=Corner("pending"),
    )
    forgetting: float
    outputs: int
    pending: int

    def __init__(
        self,
        prior: float | Matrix,
        forgetting: float = 1.0,
        *,
        outputs: int = 1,
        period: int | None = None,
        free_slots: int = 0,
    ) -> None:
        super().__init__(prior)
        self.forgetting, self.outputs = forgetting, outputs
        self.period: int = period or (PERIOD if forgetting == 1.0 else FORGETTING_PERIOD)
        self.rows: int = 0
        """Rows learned: the position in the stream, which decides where periods end."""
        self.totals: Vector = np.zeros(len(TOTALS))
        """Running totals that the replay adds to, see :class:`kons.core.ledger.Totals`."""
        self.totals[TOTALS.free_slots] = free_slots
        self.base: Matrix = np.zeros((len(self.S), outputs))
        """``L^T u`` of each output, at the start of the period."""
        self._begin(len(self.S))

    def __len__(self) -> int:
        return self._size

    def reset(self, size: int) -> None:
        """``A = alpha*I`` and ``u = 0`` over ``size`` coordinates; periods end where they did."""
        self.S, self.L = np.zeros((0, 0)), np.zeros((0, 0))
        self.base = np.zeros((0, self.outputs))
        self.totals[TOTALS.weighted_trace] = 0.0
        self._begin(0)
        self.extend(size)

    def _begin(self, size: int) -> None:
        """A period, none of whose rows has come."""
        self.pending, self._size = 0, size
        shape = self.period, self._columns()
        self._Z, self._V = np.zeros(shape), np.zeros(shape)
        self._C = np.zeros((self.period, self.period))
        self._marks = np.zeros((self.period, STEPS + self.outputs))

    def _next_period(self) -> None:
        """The rows of this one were taken in."""
        if self._lends("_Z", "_V", "_C", "_marks") or self._Z.shape[1] != self._columns():
            self._begin(len(self))
        self.pending = 0

    def extend(self, coordinates: int) -> None:
        """New coordinates: A has alpha there, u has 0, and so have the rows that came before."""
        if self.pending:
            self._make_room(len(self) + coordinates)
        else:
            self._extend_factor(coordinates)
            self._begin(len(self.S))

    def _extend_factor(self, coordinates: int) -> None:
        super().extend(coordinates)
        self.base = _enlarged(self.base, coordinates, 0)

    def _columns(self) -> int:
        """Of Z and V: a row brings one coordinate at most, and there is room for a period's at once.

        By what is saved alone: over other strides BLAS may round differently.
        """
        start = len(self.L)
        new = max(self._size - start, min(int(self.totals[TOTALS.free_slots]), 1))
        return start + -(-new // self.period) * self.period

    def _make_room(self, size: int) -> None:
        """Rows have so many coordinates."""
        self._size = size
        more = self._columns() - self._Z.shape[1]
        if more:
            self._Z, self._V = _enlarged(self._Z, 0, more), _enlarged(self._V, 0, more)

    def _whole_factor(self) -> Matrix:
        new = len(self) - len(self.L)
        return _bordered(self.L, new, math.sqrt(self.prior)) if new else self.L

    def project(self, Q: Matrix) -> None:
        """Move to fewer coordinates, z -> Q z with orthonormal rows Q, at the end of a period."""
        u, S = self.u, np.tril(self.S)
        self.S = Q @ (S + np.tril(S, -1).T) @ Q.T
        self.factor()
        self.base = self._whitened(Q @ u)
        self._begin(len(Q))

    @property
    def rows_left(self) -> int:
        """How many rows the current period still takes."""
        return self.period - self.rows % self.period

    @property
    def at_period_end(self) -> bool:
        """Whether a period has just ended: S then holds every row."""
        return self.rows % self.period == 0

    @property
    def _most_pending(self) -> int:
        return self.rows % self.period

    def choose(self, outputs: Sequence[int], signs: Sequence[float]) -> None:
        """The functions become these of those there are, times their signs."""
        steps = self._marks[:, STEPS:][:, outputs] * signs
        self.base = np.ascontiguousarray(self.base[:, outputs] * signs)
        self._marks = np.hstack([self._marks[:, :STEPS], steps])
        self.outputs = len(outputs)

    # ---- looking

    @property
    def u(self) -> Matrix:
        """The weights, (B, K): f(z) = u^T z. Costs O(B^2)."""
        L, base = self._whole_factor(), _enlarged(self.base, len(self) - len(self.base), 0)
        return np.ascontiguousarray(weights_of(L, base, self._V, self._C, self._marks, self.pending).T)

    def _whitened(self, u: Matrix) -> Matrix:
        """``L^T u``."""
        base = np.empty(u.shape)
        whiten_weights(self.L, np.ascontiguousarray(u.T), base)
        return base

    def running_sum(self) -> Matrix:
        """A with the rows of the current period. A copy."""
        Z, A = self._Z[: self.pending, : len(self)], super().running_sum()
        if len(Z.T) > len(A):
            A = _bordered(A, len(Z.T) - len(A), self.prior)  # type: ignore[arg-type]
        A += (Z.T * self._marks[: self.pending, WEIGHTS]) @ Z
        return A

    def inverse_forms(self, Z: Matrix) -> Vector:
        """``q = z^T A^-1 z`` of each row z of Z."""
        V = self.whiten(Z)
        H = self._against(V)
        q: Vector = np.einsum("ij,ij->i", V, V)
        q -= self._marks[: self.pending, GAINS] @ H**2
        return q

    def _against(self, V: Matrix) -> Matrix:
        """h of the module: the forms of whitened rows with those of the period, (n, m)."""
        n = self.pending
        raw: Matrix = self._V[:n, : V.shape[1]] @ V.T
        if not n:
            return raw
        H: Matrix = blas.dtrsm(1.0, self._C[:n, :n].T, raw, trans_a=1, diag=1)
        return H

    # ---- a block of rows

    def meet(self, Z: Matrix) -> Block:
        """What the replay of these rows starts from."""
        n, V = self.pending, self.whiten(Z)
        H, M = self._against(V), V @ V.T
        f = _each(lambda base: V[:, : len(base)] @ base, self.base)
        if n:
            M -= (H.T * self._marks[:n, GAINS]) @ H
            f -= _each(lambda steps: H.T @ steps, self._marks[:n, STEPS:])
        return Block(Z, V, H, M, np.ascontiguousarray(f.T))

    def absorb(self, ledgers: Ledger, block: Block, new: Matrix) -> None:
        """Take in a replayed block, or the first rows of it, with a ledger an output: (K, m).

        ``new`` are coordinates that its atoms added.
        """
        rows = ledgers[0]
        m, n, old = len(rows), self.pending, block.Z.shape[1]
        now = slice(n, n + m)
        gains = rows["weight"] / (1.0 + rows["weight"] * rows["inverse_form"])
        # What is left of M: row s holds the forms of row s and those behind it, as row s met A.
        C = block.M[:m, :m].T * gains
        self._keep(block, C, rows["weight"], gains, ledgers["step"].T)
        if len(new):
            self._Z[now, old : len(self)] = new.T
            self._V[now, old : len(self)] = new.T / math.sqrt(self.prior)
        self.rows += m
        if self.at_period_end:
            self._end_period()

    def _keep(self, block: Block, C: Matrix, weights: Vector, gains: Vector, steps: Matrix) -> None:
        """The first rows of a block are learned; C is between them, and counts below its diagonal."""
        m, n, old = len(C), self.pending, block.Z.shape[1]
        now = slice(n, n + m)
        self._Z[now, :old], self._V[now, :old] = block.Z[:m], block.V[:m]
        self._Z[now, old:], self._V[now, old:] = 0.0, 0.0
        self._C[now, :n] = block.H[:, :m].T * self._marks[:n, GAINS]
        self._C[now, now] = C
        self._marks[now, WEIGHTS], self._marks[now, GAINS], self._marks[now, STEPS:] = weights, gains, steps
        self.pending += m

    # ---- one row

    def meet_row(self, z: Vector) -> Vector:
        """z, v, h, f and q of one row behind each other, for a prior ``alpha*I``."""
        work, start, width = self.room_for_row(), len(self.base), self._V.shape[1]
        work[: 2 * width] = 0.0
        work[: len(z)] = z
        work[width + start : width + len(z)] = z[start:] / math.sqrt(self.prior)
        predict_row(width, self.L, self.base, self._V, self._C, self._marks, self.pending, work)
        return work

    def room_for_row(self) -> Vector:
        """Of :meth:`meet_row`, with anything in it: nobody else's, for several threads may predict."""
        return np.empty(2 * self._V.shape[1] + self.period + self.outputs + 1)

    def arrays_of_rows(self) -> tuple[Vector | Matrix, ...]:
        """What the loops of :mod:`kons.core.one_row` read and write, until the period ends."""
        return self.L, self.base, self._Z, self._V, self._C, self._marks, self.totals

    def extend_by_row(self, pivot: float) -> None:
        """A coordinate more, ``pivot`` in the row that was just learned and is not counted yet."""
        n = len(self)
        self._make_room(n + 1)
        self._Z[self.pending, n] = pivot
        self._V[self.pending, n] = pivot / math.sqrt(self.prior)

    def end_period_of_rows(self) -> None:
        """The row that was just learned, and counted, is the last of its period."""
        if blas_has_threads():
            with single_threaded_blas():
                self._end_period()
        else:
            self._end_period()

    # ---- the end of a period

    def _end_period(self) -> None:
        new = len(self) - len(self.S)
        if new:
            self._extend_factor(new)
        U = weights_of(self.L, self.base, self._V, self._C, self._marks, self.pending)
        decay = self.forgetting**self.period if self.forgetting < 1.0 else 1.0
        A = self.running_sum() if decay < 1.0 else self.S
        self.add(weighted_rows(self._Z, self._marks, self.pending, len(self), decay), decay)
        if len(self):  # in its place, where the loops of single rows know it
            self._own("L")
            factored(self.S, self.prior, self.L)
        if decay < 1.0:
            # Never below alpha*I: S <- lambda S, c <- lambda c, u = A^-1 c with c = A u.
            c = decay * _each(lambda u: A @ u, U.T)
            self.base = _each(lambda c: self.whiten(c[None])[0], c)
        else:
            self._own("base")
            whiten_weights(self.L, U, self.base)
        self._next_period()

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        start = {"start": len(self.S)} if len(self.S) < len(self) else {}
        return super().state() | start

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over so many coordinates, the rows pending among it."""
        size = sizes["size"]
        if isinstance(self.prior, float):
            self.reset(stored.integer("start", at_most=size) if "start" in stored else size)
            self._make_room(size)
        # Of the buffers as they were made.
        given = {"outputs": self.outputs, "marks": STEPS + self.outputs, "size": len(self.S)}
        given |= {"coordinates": size, "whitened": min(self._V.shape[1], size)}
        super().load_state(stored, **{**sizes, **given})
        if isinstance(self.prior, float):
            self._make_room(size)  # by the slots that were saved

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        stored.counted(self.pending, "pending rows", at_most=self._most_pending)
        if self.pending and self._marks[: self.pending, :STEPS].min() < 0.0:
            raise stored.error("a row has a negative weight")


def _each(product: Callable[..., Vector], *given: Matrix) -> Matrix:
    """A product with matrices (n, K), output by output: those beside one would change its rounding."""
    outputs = given[0].shape[1]
    if outputs == 1:
        return product(*(m.ravel() for m in given)).reshape(-1, 1)
    columns = [product(*(np.ascontiguousarray(m[:, o]) for m in given)) for o in range(outputs)]
    return np.ascontiguousarray(np.transpose(columns))


def _bordered(A: Matrix, coordinates: int, diagonal: float) -> Matrix:
    """blockdiag(A, diagonal * I)."""
    bordered = _enlarged(A, coordinates, coordinates)
    n, m = len(A), len(bordered)
    bordered.ravel()[n * (m + 1) :: m + 1] = diagonal
    return bordered


def _enlarged(A: Matrix, rows: int, columns: int) -> Matrix:
    """A with so many rows and columns of zeros more; ``np.pad`` takes tens of microseconds for it."""
    n, m = A.shape
    enlarged = np.zeros((n + rows, m + columns))
    enlarged[:n, :m] = A[:, : m + columns]
    return enlarged
