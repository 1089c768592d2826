"""Ridge regression of K outputs in R^B: the second-order state with the squared loss, in closed form.

::

    A = Q + S,   S = sum lambda^age w z z^T,   c = sum lambda^age w z y^T,   theta = A^-1 c

Two ways to keep up with the rows of a period, both exact at its end. *Online*, every row is learned before
the next: the replay of :mod:`kons.core.replay` is then one Cholesky factorization ``M + D = P P^T``, D the
noise ``lambda^(s + 1)`` of row s, with ``C = P diag(P)^-1``, gains ``1/P_ss^2`` and steps
``-(P^-1 r)_s/P_ss`` of the residuals r. *Batched*, rows wait for the end of the period, and predictions are
by the theta before it: a third of the cost, for long memories.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from kons.arrays import Matrix
from kons.core.cholesky import JITTER, factored, inverted
from kons.core.quadratic import Quadratic
from kons.core.quadratic_loops import STEPS
from kons.state import Array, Leading, fields
from kons.stored import Stored

__all__ = ["Ridge", "leave_one_out"]


class Ridge(Quadratic):
    """See the module. Periods end when the owner says so; a row that weighs w is given as sqrt(w) times it.

    O(B^2) a row. Not for other losses (:class:`~kons.core.quadratic.Quadratic`), nor for a B beyond some
    hundreds.

    >>> import numpy as np
    >>> Z = np.random.default_rng(0).normal(size=(100, 2))
    >>> ridge = Ridge(0.01 * np.eye(2), outputs=1)
    >>> predictions = ridge.learn(Z, Z @ [[2.0], [-1.0]])
    >>> ridge.end_period()
    >>> ridge.coefficients().round(2).ravel().tolist()
    [2.0, -1.0]
    >>> bool(abs(predictions[-1, 0] - Z[-1] @ [2.0, -1.0]) < 0.01)
    True
    """

    #: S changes at the ends of periods alone; batched, L may lag behind, until it is asked for.
    factor_is_of_sum = True
    STATE = fields(
        rows=None,
        totals=None,
        c=Array("size", "outputs"),
        _Y=Leading("pending", "outputs"),
    )
    base: Matrix
    pending: int
    outputs: int

    def __init__(
        self,
        prior: Matrix,
        outputs: int,
        *,
        forgetting: float = 1.0,
        online: bool = True,
        period: int = 128,
    ) -> None:
        self.online = online
        super().__init__(prior, forgetting, outputs=outputs, period=period)
        self.c: Matrix = np.zeros((len(self), outputs))

    def _begin(self, size: int) -> None:
        super()._begin(size)
        self._Y = np.zeros((self.period, self.outputs))
        if not self.online:  # nothing is asked of the rows that wait
            self._V, self._C = np.zeros((self.period, 0)), np.zeros((self.period, 0))

    @property
    def _most_pending(self) -> int:
        return self.period

    # ---- rows

    def learn(self, Z: Matrix, Y: Matrix) -> Matrix:
        """Predict and learn rows, each before the next; the predictions, (m, K)."""
        if not self.online:
            self._wait(Z, Y)
            return Z @ self.base
        block, n, m = self.meet(Z), self.pending, len(Z)
        noise = self.forgetting ** np.arange(n + 1.0, n + m + 1.0)
        block.M.ravel()[:: m + 1] += noise
        P, info = lapack.dpotrf(block.M.T, lower=1, clean=1)
        if info:  # rounding, where a row repeats under a tiny weight
            block.M.ravel()[:: m + 1] += JITTER * 10.0 * np.trace(block.M) / m
            P = np.asfortranarray(factored(block.M, 0.0))
        f = block.f.T
        E = blas.dtrsm(1.0, P, Y - f, lower=1)
        pivots = np.diagonal(P).copy()
        np.fill_diagonal(P, 0.0)
        now = slice(n, n + m)
        self._Y[now] = Y
        self._keep(block, P / pivots, 1.0 / noise, pivots**-2.0, -E / pivots[:, None])
        # Not the target less what is left of it: a huge one would leave its rounding there.
        predictions: Matrix = f + P @ E
        return predictions

    def _wait(self, Z: Matrix, Y: Matrix) -> None:
        now = slice(self.pending, self.pending + len(Z))
        self._Z[now], self._Y[now] = Z, Y
        self.pending += len(Z)

    def predict_known(self, Z: Matrix, known: NDArray[np.int64]) -> Matrix:
        """Predictions of rows, for each by the first so many rows of the period, (m, K)."""
        if not self.online:
            return Z @ self.base
        V = self.whiten(Z)
        H = self._against(V)
        H[np.arange(self.pending)[:, None] >= known] = 0.0
        predictions: Matrix = V @ self.base - H.T @ self._marks[: self.pending, STEPS:]
        return predictions

    def predict(self, Z: Matrix) -> Matrix:
        """Predictions by all that was learned. Changes nothing."""
        return Z @ self.coefficients()

    def coefficients(self) -> Matrix:
        """``theta`` after all rows so far; batched, that of the last fit."""
        return self.u if self.online else self.base

    # ---- the end of a period

    def add_past(self, Z: Matrix, Y: Matrix, decay: float = 1.0) -> None:
        """Take rows into the sums, of which before only this part is kept."""
        self.add(Z, decay)
        self.c = decay * self.c + Z.T @ Y

    def end_period(self, refit: bool = True) -> None:
        """Take the period's rows into the sums, and start the next one: with a new fit, or the old one."""
        n = self.pending
        Z, Y, decay = self._Z[:n], self._Y[:n], 1.0
        if n and self.forgetting < 1.0:
            roots = self.forgetting ** (0.5 * np.arange(n - 1.0, -1.0, -1.0))[:, None]
            Z, Y, decay = Z * roots, Y * roots, self.forgetting**n
        if n:
            self.add_past(Z, Y, decay)
        self._next_period()
        if refit or self.online:
            self.fit()

    def fit(self) -> None:
        """Find theta from the sums; batched, ``base`` is theta itself, for A goes on until the next fit."""
        self.factor()
        self.base = np.ascontiguousarray(self.whiten(self.c.T).T)
        if not self.online:
            self.base = self.u

    # ---- outputs

    def add_output(self) -> None:
        """One output more, whose targets were all 0."""
        self.outputs += 1
        for name in ("base", "c", "_Y", "_marks"):
            setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, 1))))

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many coordinates."""
        super().load_state(stored, **{**sizes, "size": len(self)})


def leave_one_out(
    K: Matrix, penalty: Matrix, Y: Matrix, gram: Matrix | None = None, work: Matrix | None = None
) -> tuple[float, Matrix]:
    """Mean squared error at each row of the ridge fit to the others, in closed form, and the coefficients.

    ::

        theta = A^-1 K^T Y,   A = penalty + K^T K,   h_i = k_i^T A^-1 k_i,   error_i = (y_i - f_i)/(1 - h_i)

    O(n B^2) for n rows of B features, as one fit; ``work`` is an array as large as K to compute in.
    Optimistic if the features were chosen by the same rows.

    >>> import numpy as np
    >>> K, y = np.array([[1.0], [1.0], [1.0]]), np.array([[0.0], [0.0], [3.0]])
    >>> round(leave_one_out(K, np.zeros((1, 1)), y)[0], 6)  # means of two: 1.5, 1.5, 0
    4.5
    """
    gram = K.T @ K if gram is None else gram
    inverse = inverted(factored(gram, penalty))
    work = np.empty(K.shape) if work is None else work
    work[:] = K
    V = blas.dtrmm(1.0, inverse, work.T, lower=1, overwrite_b=1)
    b = V @ Y
    room = np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 1e-6)
    residuals = (Y - V.T @ b) / room[:, None]
    theta = blas.dtrmm(1.0, inverse, b, lower=1, trans_a=1)
    return float(np.mean(np.einsum("ij,ij->i", residuals, residuals))), theta
