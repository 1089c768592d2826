"""A and the weight vector u in the span of a dictionary: constant cost, whatever t is.

With the coordinates z of :mod:`kons.core.embedding`, ``f(x) = z^T u`` and ``A = alpha*I + sum w z z^T`` is
a plain B x B matrix. A new atom appends a coordinate: A gets alpha there and u gets 0, and nothing that
was stored changes.

A period of 64 rows starts with A and its inverse P. Inside it the rows are kept aside (*pending*), and
the current inverse is P under their rank-one changes::

    P_t z = P z - sum_s gain_s (v_s . z) v_s,      v_s = P_{s-1} z_s,   gain_s = w_s / (1 + w_s q_s)

From time to time A and P take them in, at the end of a period in any case. Periods end at absolute row
numbers; at the end of every sixteenth one P is found afresh from A, a plain running sum: rounding never
outlives a thousand rows, however long the stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.ledger import TOTALS, Ledger
from kons.core.replay import check_sound
from kons.core.span_loops import (
    ASKED,
    ENTERED,
    FAILED,
    add_rows,
    condition_rows,
    fresh_inverse,
    learn_row,
    mirror,
    outside_of,
)
from kons.state import Array, Count, Leading, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Span", "SpanSampler"]

# Rows between two updates of A and P, and periods between two fresh inverses.
PERIOD = 64
FRESH_EVERY = 16
# Pending rows that are worth taking in: each costs every row behind it 2 B flops.
ENOUGH_PENDING = 16
# Forgetting needs a fresh inverse after each period; shorter ones follow its decay more closely.
FORGETTING_PERIOD = 32


class _Lower(Array):
    """A matrix above whose diagonal there may be anything."""

    def save(self, part: Any, name: str) -> Any:
        return np.tril(getattr(part, name))


class Span(Part):
    """A (its lower triangle), its inverse P and u over B coordinates, with the pending rows.

    Memory 2 B^2 + 128 B numbers. A row costs O(B^2), its share of the fresh inverse included.
    """

    STATE = fields(
        rows=Count(),
        totals=Array(len(TOTALS), at_least=0.0, written="always"),
        A=_Lower("size", "size", written="rarely"),
        P=Array("size", "size", written="rarely"),
        u=Array("size", written="always"),
        _weights=Leading("pending", at_least=0.0),
        _gains=Leading("pending", at_least=0.0),
        _Z=Leading("pending", "size"),
        _V=Leading("pending", "size"),
    )

    def __init__(self, regularization: float, forgetting: float = 1.0) -> None:
        self.regularization = regularization
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
        self.P = np.eye(size) / self.regularization
        self.u: Vector = np.zeros(size)
        self.totals[TOTALS.weighted_trace] = 0.0
        self.pending = 0
        self._Z = np.zeros((self.period + ENOUGH_PENDING, size))
        self._V = np.zeros((self.period + ENOUGH_PENDING, size))
        self._gains = np.zeros(self.period + ENOUGH_PENDING)
        self._weights = np.zeros(self.period + ENOUGH_PENDING)

    def extend(self, coordinates: int) -> None:
        """New coordinates: A has alpha there, u has 0, and so have the rows that came before."""
        self.A = _bordered(self.A, coordinates, self.regularization)
        self.P = _bordered(self.P, coordinates, 1.0 / self.regularization)
        self.u = np.append(self.u, np.zeros(coordinates))
        self._Z = np.pad(self._Z, ((0, 0), (0, coordinates)))
        self._V = np.pad(self._V, ((0, 0), (0, coordinates)))

    def project(self, Q: Matrix) -> None:
        """Move to a smaller span, z -> Q z with orthonormal rows Q, at the end of a period."""
        alpha = self.regularization
        past = self.running_sum() - alpha * np.eye(len(self.A))
        self.u = Q @ self.u
        self.A = alpha * np.eye(len(Q)) + Q @ past @ Q.T
        self.P = fresh_inverse(self.A)
        self._Z, self._V = (
            np.zeros((self.period + ENOUGH_PENDING, len(Q))),
            np.zeros((self.period + ENOUGH_PENDING, len(Q))),
        )

    def __len__(self) -> int:
        return len(self.u)

    @property
    def rows_left(self) -> int:
        """How many rows the current period still takes."""
        return self.period - self.rows % self.period

    @property
    def at_period_end(self) -> bool:
        """Whether a period has just ended: A and P then hold every row."""
        return self.rows % self.period == 0

    def running_sum(self) -> Matrix:
        """A with the rows of the current period. A copy."""
        A = self.A.copy()
        add_rows(A, self._Z, self._weights, self.pending)
        mirror(A)
        return A

    def apply_inverse(self, Z: Matrix) -> Matrix:
        """``P_t z`` for each row z of Z (m x B)."""
        W: Matrix = Z @ self.P
        if self.pending:
            V = self._V[: self.pending]
            W -= ((Z @ V.T) * self._gains[: self.pending]) @ V
        return W

    def absorb(self, rows: Ledger, Z: Matrix, W: Matrix, M: Matrix) -> None:
        """Take in a replayed block: Z and W = P_t Z in all coordinates, M as the replay left it."""
        self.u -= rows["coefficient"] @ W
        new = slice(self.pending, self.pending + len(rows))
        self._weights[new] = rows["weight"]
        self._gains[new] = rows["weight"] / (1.0 + rows["weight"] * rows["inverse_form"])
        condition_rows(W, M, self._gains[new])
        self._Z[new], self._V[new] = Z, W
        self._pass(len(rows))

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
        z: Vector,
        passes: bool = True,
    ) -> tuple[int, float]:
        """Predict and learn one row with a built-in loss: a block of one, in one compiled call.

        ``coefficients(self_kernel, z)`` is called where the row may become an atom: T of
        :mod:`kons.core.replay`. Fills the ledger of one row. Returns what the row did besides, and w*q.
        Without ``passes`` the row stays aside until :meth:`pass_row`, and :meth:`mark_row` can still take it
        back.
        """
        at = self.pending
        # fmt: off
        outcome, mass = learn_row(
            code, rows, rules, target, scale, step_size, uniform, self_kernel, math.nan, z, self.totals,
            self.P, self._V, self._Z, self._gains, self._weights, at, self.u, sampler,
        )
        if outcome == ASKED:
            outcome, mass = learn_row(
                code, rows, rules, target, scale, step_size, uniform, self_kernel,
                coefficients(self_kernel, z), z, self.totals,
                self.P, self._V, self._Z, self._gains, self._weights, at, self.u, sampler,
            )
        # fmt: on
        if outcome == FAILED:
            check_sound(-1, rows)
        if outcome == ENTERED:
            pivot = outside_of(rows, z)
            self.extend(1)
            self._Z[at, -1] = pivot
            self._V[at, -1] = pivot / self.regularization
            self.u[-1] = -rows[0]["step"] * pivot / self.regularization
        if passes:
            self.pass_row()
        return outcome, mass

    def pass_row(self) -> None:
        """Count the row that was just learned; as ``_pass(1)``, without its calls."""
        self.pending += 1
        self.rows += 1
        if self.rows % self.period == 0:
            self._end_period()
        elif self.pending >= ENOUGH_PENDING:
            self._take_in()

    def mark_row(self) -> dict[str, Any]:
        """A mark that is cheap, for :meth:`take_back_row` before the next :meth:`pass_row`."""
        return vars(self) | {"u": self.u.copy(), "totals": self.totals.copy()}

    def take_back_row(self, mark: dict[str, Any]) -> None:
        """Go back to before the row that was not passed."""
        vars(self).update(mark)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over so many coordinates, the rows pending among it."""
        self.reset(sizes["size"])
        super().load_state(stored, **sizes)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        # A larger count never outlives a call.
        most = min(ENOUGH_PENDING - 1, self.rows % self.period)
        stored.counted(self.pending, "pending rows", at_most=most)

    def _pass(self, rows: int) -> None:
        self.pending += rows
        self.rows += rows
        if self.at_period_end:
            self._end_period()
        elif self.pending >= ENOUGH_PENDING:
            self._take_in()

    def _take_in(self) -> None:
        """Let A and P have the pending rows."""
        self._own("A", "P")
        add_rows(self.A, self._Z, self._weights, self.pending)
        add_rows(self.P, self._V, -self._gains, self.pending)
        mirror(self.P)
        self.pending = 0

    def _end_period(self) -> None:
        self._take_in()
        if self.forgetting < 1.0:
            # Never below alpha*I: A <- alpha*I + lambda (A - alpha*I), c <- lambda c, u = A^-1 c.
            decay = self.forgetting**self.period
            mirror(self.A)
            c = decay * (self.A @ self.u)
            self.A *= decay
            self.A[np.diag_indices_from(self.A)] += (1.0 - decay) * self.regularization
            self.P = fresh_inverse(self.A)
            self.u = self.P @ c
        elif self.rows % (FRESH_EVERY * self.period) == 0:
            self.P = fresh_inverse(self.A)


class SpanSampler(Part):
    """KORS's ``A^I`` in the coordinates of the span, where all its points lie: features unweighted."""

    STATE = fields(A=Array("size", "size"), P=Array("size", "size"))

    def __init__(self, regularization: float) -> None:
        self.regularization = regularization
        self.A = np.empty((0, 0))
        self.P = np.empty((0, 0))

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no point of the sample has a component yet."""
        self.A = _bordered(self.A, coordinates, self.regularization)
        self.P = _bordered(self.P, coordinates, 1.0 / self.regularization)

    def inverse_forms(self, Z: Matrix, R: Matrix) -> Matrix:
        """``N = Z (A^I)^-1 Z^T + R/alpha``, with R what the span leaves of the kernel."""
        N: Matrix = Z @ self.P @ Z.T
        N += R / self.regularization
        return N

    def absorb(self, rows: Ledger, Z: Matrix) -> None:
        """Take in the rows whose coin came up; Z in all coordinates."""
        chosen = np.flatnonzero(rows["sampler_weight"] > 0.0)
        if len(chosen):
            A = self.A.copy()
            Z = np.ascontiguousarray(Z[chosen])
            add_rows(A, Z, np.ascontiguousarray(rows["sampler_weight"][chosen]), len(chosen))
            mirror(A)
            self.A, self.P = A, fresh_inverse(A)


def _bordered(A: Matrix, coordinates: int, diagonal: float) -> Matrix:
    """blockdiag(A, diagonal * I)."""
    n = len(A)
    bordered = np.zeros((n + coordinates, n + coordinates))
    bordered[:n, :n] = A
    new = np.arange(n, n + coordinates)
    bordered[new, new] = diagonal
    return bordered
