"""The second-order state in R^B: ``A = alpha*I + sum w z z^T`` and the function ``f(z) = z^T u``.

Constant cost, whatever t is. A new coordinate gets alpha in A and 0 in u, and nothing that was stored
changes. A period of 64 rows starts with A, its factor L and ``base = L^T u``; inside it rows are kept aside::

    v = L^-1 z                                 whitened: z^T A^-1 z' = v^T v' at the period's start
    h_s = v_s^T v - sum_{r<s} C[s, r] h_r      the form of row s and z, with A as row s met it
    f = base^T v - sum_s step_s h_s            q = v^T v - sum_s gain_s h_s^2
    C[t, s] = gain_s h_s                       gain_s = w_s / (1 + w_s q_s)

which is the replay of :mod:`kons.core.replay`, column by column: a block takes many columns at once, a row
one, on the same arrays. At the end of the period A takes the rows in and is factored again, so rounding never
outlives it. Periods end at absolute row numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from kons.arrays import Matrix, Vector
from kons.core.ledger import TOTALS, Ledger
from kons.core.quadratic_loops import (
    ASKED,
    ENTERED,
    FAILED,
    GAINS,
    STEPS,
    WEIGHTS,
    gaussian_row,
    learn_row,
    outside_of,
    predict_row,
)
from kons.core.replay import check_sound
from kons.core.threads import single_threaded_blas
from kons.errors import NumericalError
from kons.state import Array, Count, Leading, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Block", "Quadratic", "SquareSum"]

# Rows between two factorizations; forgetting acts at their ends, and shorter periods follow it more closely.
PERIOD = 64
FORGETTING_PERIOD = 32


class _Lower(Array):
    """A matrix above whose diagonal there may be anything."""

    def save(self, part: Any, name: str) -> Any:
        return np.tril(getattr(part, name))


class SquareSum(Part):
    """``A = alpha*I + sum w z z^T`` (its lower triangle) and its lower Cholesky factor L.

    Memory 2 B^2 numbers; taking in m rows costs B^2 m + B^3/3 flops. KORS's sample ``A^I`` in the coordinates
    of a dictionary, where all its points lie, is one of these.
    """

    STATE = fields(A=_Lower("size", "size"), L=Array("size", "size"))

    def __init__(self, regularization: float) -> None:
        self.regularization = regularization
        self.A: Matrix = np.empty((0, 0))
        self.L: Matrix = np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.A)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        self.A = _bordered(self.A, coordinates, self.regularization)
        self.L = _bordered(self.L, coordinates, math.sqrt(self.regularization))

    def whiten(self, Z: Matrix) -> Matrix:
        """``v = L^-1 z`` for each row z of Z (m x B)."""
        if not len(self):
            return np.zeros(Z.shape)
        V: Matrix = blas.dtrsm(1.0, self.L.T, Z.T, trans_a=1).T
        return V

    def forms(self, Z: Matrix, R: Matrix) -> Matrix:
        """``Z A^-1 Z^T + R/alpha``, with R what the coordinates leave of the kernel."""
        V = self.whiten(Z)
        N: Matrix = V @ V.T
        N += R / self.regularization
        return N

    def take_in(self, Z: Matrix, weights: Vector) -> None:
        """``A += sum w z z^T``, and L anew."""
        if len(self) and len(Z):
            rows = np.ascontiguousarray(Z * np.sqrt(weights)[:, None])
            self.A = blas.dsyrk(1.0, rows.T, beta=1.0, c=self.A.T).T
        self.factor()

    def factor(self) -> None:
        """Find L from A."""
        if len(self):
            upper, info = lapack.dpotrf(self.A.T)
            if info:
                raise NumericalError(
                    "A is not positive definite: regularization is below what 16 digits resolve beside the "
                    "rows that were learned. Raise it."
                )
            self.L = upper.T

    def running_sum(self) -> Matrix:
        """A, both triangles. A copy."""
        return np.tril(self.A) + np.tril(self.A, -1).T

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if not (np.diagonal(self.L) > 0.0).all():
            raise stored.error("L has a diagonal that is not positive")


class Block(NamedTuple):
    """Rows of a period that are about to be learned."""

    Z: Matrix
    V: Matrix
    """Whitened, (m, B)."""
    H: Matrix
    """Their forms with the n rows of the period before them, (n, m)."""
    M: Matrix
    """``z^T A_n^-1 z'`` between them, (m, m): for the replay to use up."""
    f: Vector
    """The function at them."""


class Quadratic(SquareSum):
    """A and f over B coordinates, with the rows of a period. See the module.

    Memory 2 B^2 + 128 B + 64^2 numbers. A row costs O(B^2), its share of the factorization included.
    """

    STATE = fields(
        rows=Count(),
        totals=Array(len(TOTALS), at_least=0.0, written="always"),
        base=Array("size"),
        _marks=Leading("pending", 3),
        _Z=Leading("pending", "size"),
        _V=Leading("pending", "size"),
        _C=Leading("pending", "period"),
    )

    def __init__(self, regularization: float, forgetting: float = 1.0) -> None:
        super().__init__(regularization)
        self.forgetting = forgetting
        self.period = PERIOD if forgetting == 1.0 else FORGETTING_PERIOD
        self.rows = 0
        """Rows learned: the position in the stream, which decides where periods end."""
        self.totals: Vector = np.zeros(len(TOTALS))
        """Running totals that the replay adds to, see :class:`kons.core.ledger.Totals`."""
        self.reset(0)

    def reset(self, size: int) -> None:
        """``A = alpha*I`` and ``u = 0`` over ``size`` coordinates; periods end where they did."""
        self.A = self.regularization * np.eye(size)
        self.L = math.sqrt(self.regularization) * np.eye(size)
        self.base: Vector = np.zeros(size)
        self.totals[TOTALS.weighted_trace] = 0.0
        self._begin(size)

    def _begin(self, size: int) -> None:
        """A period, none of whose rows has come."""
        self.pending = 0
        self._Z, self._V = np.zeros((self.period, size)), np.zeros((self.period, size))
        self._C = np.zeros((self.period, self.period))
        self._marks = np.zeros((self.period, 3))

    def extend(self, coordinates: int) -> None:
        """New coordinates: A has alpha there, u has 0, and so have the rows that came before."""
        super().extend(coordinates)
        self.base = np.append(self.base, np.zeros(coordinates))
        self._Z = np.pad(self._Z, ((0, 0), (0, coordinates)))
        self._V = np.pad(self._V, ((0, 0), (0, coordinates)))

    def project(self, Q: Matrix) -> None:
        """Move to fewer coordinates, z -> Q z with orthonormal rows Q, at the end of a period."""
        alpha, u = self.regularization, self.u
        past = self.running_sum() - alpha * np.eye(len(self))
        self.A = alpha * np.eye(len(Q)) + Q @ past @ Q.T
        self._start(Q @ u)
        self._begin(len(Q))

    def __len__(self) -> int:
        return len(self.base)

    @property
    def rows_left(self) -> int:
        """How many rows the current period still takes."""
        return self.period - self.rows % self.period

    @property
    def at_period_end(self) -> bool:
        """Whether a period has just ended: A then holds every row."""
        return self.rows % self.period == 0

    # ---- looking

    @property
    def u(self) -> Vector:
        """The weights: f(z) = z^T u. Costs O(B^2)."""
        whitened = self.base
        n = self.pending
        if n:
            # The steps by the A from before the period: gather, of :mod:`kons.core.replay`.
            c = blas.dtrsv(self._C[:n, :n].T, self._marks[:n, STEPS], diag=1)
            whitened = whitened - c @ self._V[:n]
        if not len(whitened):
            return whitened
        u: Vector = blas.dtrsv(self.L.T, whitened)
        return u

    def running_sum(self) -> Matrix:
        """A with the rows of the current period. A copy."""
        Z = self._Z[: self.pending]
        A: Matrix = super().running_sum() + (Z.T * self._marks[: self.pending, WEIGHTS]) @ Z
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
        raw: Matrix = self._V[:n] @ V.T
        if not n:
            return raw
        H: Matrix = blas.dtrsm(1.0, self._C[:n, :n].T, raw, lower=0, trans_a=1, diag=1)
        return H

    # ---- a block of rows

    def meet(self, Z: Matrix) -> Block:
        """What the replay of these rows starts from."""
        n, V = self.pending, self.whiten(Z)
        H, M, f = self._against(V), V @ V.T, V @ self.base
        if n:
            M -= (H.T * self._marks[:n, GAINS]) @ H
            f -= self._marks[:n, STEPS] @ H
        return Block(Z, V, H, M, f)

    def absorb(self, rows: Ledger, block: Block, new: Matrix) -> None:
        """Take in a replayed block, or the first rows of it; ``new`` are coordinates that its atoms added."""
        m, n, old = len(rows), self.pending, block.Z.shape[1]
        now = slice(n, n + m)
        gains = rows["weight"] / (1.0 + rows["weight"] * rows["inverse_form"])
        self._Z[now, :old], self._V[now, :old] = block.Z[:m], block.V[:m]
        if len(new):
            self._Z[now, old:] = new.T
            self._V[now, old:] = new.T / math.sqrt(self.regularization)
        self._C[now] = 0.0
        self._C[now, :n] = block.H[:, :m].T * self._marks[:n, GAINS]
        # What is left of M: row s holds the forms of row s and those behind it, as row s met A.
        self._C[now, now] = np.tril(block.M[:m, :m].T * gains, -1)
        self._marks[now, WEIGHTS], self._marks[now, GAINS] = rows["weight"], gains
        self._marks[now, STEPS] = rows["step"]
        self.pending += m
        self.rows += m
        if self.at_period_end:
            self._end_period()

    # ---- one row

    def meet_row(self, z: Vector) -> Vector:
        """z, v, h, f and q of one row behind each other, for :meth:`learn_row`: 2 B + period + 2 numbers."""
        work = self.room_for_row()
        work[: len(z)] = z
        predict_row(self.L, self.base, self._V, self._C, self._marks, self.pending, work)
        return work

    def room_for_row(self) -> Vector:
        """Of :meth:`meet_row`, with anything in it: nobody else's, for several threads may predict."""
        return np.empty(2 * len(self.base) + self.period + 2)

    def meet_gaussian_row(self, rate: float, x: Vector, atoms: Matrix, inverse: Matrix) -> Vector:
        """:meth:`meet_row` of a point in the span of a Gaussian kernel's atoms, ``z = inverse k_D(x)``."""
        work = self.room_for_row()
        gaussian_row(
            rate, x, atoms, inverse, self.L, self.base, self._V, self._C, self._marks, self.pending, work
        )
        return work

    def learn_row(
        self,
        code: int,
        rows: Ledger,
        rules: NDArray[np.void],
        sampler: Matrix,
        target: float,
        scale: float,
        step_size: float,
        uniform: float,
        self_kernel: float,
        coefficients: Callable[[float, Vector], float],
        work: Vector,
        passes: bool = True,
    ) -> tuple[int, float]:
        """Learn one row with a built-in loss, whose ``work`` is from :meth:`meet_row`.

        ``coefficients(self_kernel, z)`` is called where the row may become an atom: T of
        :mod:`kons.core.replay`. Fills the ledger of one row. Returns what the row did besides, and w*q.
        Without ``passes`` the row stays aside until :meth:`pass_row`, and :meth:`mark_row` can still take it
        back.
        """
        at, given = self.pending, (code, rows, rules, target, scale, step_size, uniform, self_kernel)
        state = work, self.totals, self._V, self._Z, self._C, self._marks, at, sampler
        outcome, mass = learn_row(*given, math.nan, *state)
        if outcome == ASKED:
            outcome, mass = learn_row(*given, coefficients(self_kernel, work[: len(self)]), *state)
        if outcome == FAILED:
            check_sound(-1, rows)
        if outcome == ENTERED:
            pivot = outside_of(rows, work[: len(self)])
            self.extend(1)
            self._Z[at, -1] = pivot
            self._V[at, -1] = pivot / math.sqrt(self.regularization)
        if passes:
            self.pass_row()
        return outcome, mass

    def pass_row(self) -> None:
        """Count the row that was just learned."""
        self.pending += 1
        self.rows += 1
        if self.at_period_end:
            with single_threaded_blas():
                self._end_period()

    def mark_row(self) -> dict[str, Any]:
        """A mark that is cheap, for :meth:`take_back_row` before the next :meth:`pass_row`."""
        return vars(self) | {"totals": self.totals.copy()}

    def take_back_row(self, mark: dict[str, Any]) -> None:
        """Go back to before the row that was not passed."""
        vars(self).update(mark)

    # ---- the end of a period

    def _end_period(self) -> None:
        n, u = self.pending, self.u
        weights = self._marks[:n, WEIGHTS]
        if self.forgetting < 1.0:
            # Never below alpha*I: A <- alpha*I + lambda (A - alpha*I), c <- lambda c, u = A^-1 c.
            decay = self.forgetting**self.period
            A = self.running_sum()
            c = decay * (A @ u)
            self.A = decay * A
            self.A[np.diag_indices_from(A)] += (1.0 - decay) * self.regularization
            self.factor()
            self.base = blas.dtrsv(self.L.T, c, trans=1) if len(c) else c
        else:
            self.take_in(self._Z[:n], weights)
            self.base = blas.dtrmv(self.L.T, u) if len(u) else u
        self.pending = 0

    def _start(self, u: Vector) -> None:
        """From A and u as they are."""
        self.factor()
        self.base = blas.dtrmv(self.L.T, u) if len(u) else u

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over so many coordinates, the rows pending among it."""
        self.reset(sizes["size"])
        super().load_state(stored, period=self.period, **sizes)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        stored.counted(self.pending, "pending rows", at_most=self.rows % self.period)
        marks = self._marks[: self.pending]
        if (marks[:, [WEIGHTS, GAINS]] < 0.0).any():
            raise stored.error("a row has a negative weight")


def _bordered(A: Matrix, coordinates: int, diagonal: float) -> Matrix:
    """blockdiag(A, diagonal * I)."""
    n = len(A)
    bordered = np.zeros((n + coordinates, n + coordinates))
    bordered[:n, :n] = A
    new = np.arange(n, n + coordinates)
    bordered[new, new] = diagonal
    return bordered
