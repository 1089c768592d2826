"""An expert: ridge regression in the span of its atoms, learned row by row.

::

    f(x) = k(x)^T theta,   k(x) = (k(x, a_1), ..., k(x, a_B), 1)
    A = alpha Q + sum_t lambda^(age) k_t k_t^T,    Q = blockdiag(K_D, 1)
    theta = A^-1 sum_t lambda^(age) k_t y_t

This is the update of :class:`kons.EmbeddedKONS` with the squared loss and its second derivative, in
coordinates that need no triangular solve; A does not depend on the targets, so one A serves any number of
outputs.

Rows come in chunks. At the start of one, ``A = L L^T``; inside it a *live* expert follows every row in
closed form, with ``v = L^-1 k`` and the m x m factor of ``V V^T + diag(lambda, lambda^2, ...)``: its pivots
and the whitened residuals E give each row's prediction before the row is learned. An expert that is not live
learns at the end of chunks only, which costs a third; it is for long memories, where some rows more or less
do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from kons.arrays import Matrix, Vector
from kons.kernels import Kernel
from kons.learners.auto.cholesky import factored, inverted, solved
from kons.learners.auto.schedule import LONGEST
from kons.stored import Stored

__all__ = ["SpanRidge"]

# Rows of the past that are learned at a time: their features stay in the cache.
PART = 256


class SpanRidge:
    """Ridge regression in the span of B atoms for several outputs; O(B^2) a row, whatever t is."""

    def __init__(
        self,
        kernel: Kernel,
        atoms: Matrix,
        regularization: float,
        *,
        outputs: int,
        offset: float = 0.0,
        forgetting: float = 1.0,
        live: bool = False,
    ) -> None:
        self.kernel, self.atoms, self.regularization = kernel, atoms, regularization
        self.offset, self.forgetting, self.live = offset, forgetting, live
        size = len(atoms) + 1
        self.penalty = np.eye(size, order="F")
        if len(atoms):
            self.penalty[:-1, :-1] = kernel.evaluate(atoms, atoms)
        self.penalty *= regularization
        self.gram = np.zeros((size, size), order="F")  # its lower triangle
        self.products = np.zeros((size, outputs))
        self._shared = False
        #: Of the rows just predicted: k, and if it is live, L^-1 k.
        self._last: Matrix = np.empty((0, size))
        self._whitened: Matrix = self._last
        self._inverted: tuple[Matrix, Matrix] | None = None

    # ---- the past

    def features(self, U: Matrix) -> Matrix:
        """The rows k(x), (m, B + 1)."""
        K = np.empty((len(U), len(self.atoms) + 1))
        self._fill(U, K)
        return K

    def _fill(self, U: Matrix, K: Matrix) -> None:
        if len(self.atoms):
            self.kernel.evaluate_into(U, self.atoms, K)
        K[:, -1] = 1.0

    def learn_past(self, U: Matrix, Y: Matrix, roots: Vector) -> None:
        """Learn what came before the first chunk; roots are square roots of weights. It is needed once."""
        for part, K in self._parts(U):
            targets = Y[part] - self.offset
            if self.forgetting < 1.0 or (roots[part] != 1.0).any():
                K *= roots[part, None]
                targets *= roots[part, None]
            self._add(K, targets)
        self.factor()

    def _parts(self, U: Matrix) -> Iterator[tuple[slice, Matrix]]:
        """The features of many rows, some at a time, in memory that is used again."""
        memory = np.empty((min(len(U), PART), len(self.atoms) + 1))
        for start in range(0, len(U), PART):
            part = slice(start, min(start + PART, len(U)))
            K = memory[: part.stop - start]
            self._fill(U[part], K)
            yield part, K

    def _add(self, K: Matrix, Y: Matrix, decay: float = 1.0) -> None:
        """Rows into the sums, of which before only this part is kept."""
        if self._shared:
            self.gram, self.products = self.gram.copy(order="F"), self.products.copy()
            self._shared = False
        self.gram = blas.dsyrk(1.0, K.T, beta=decay, c=self.gram, lower=1, overwrite_c=1)
        self.products *= decay
        self.products += K.T @ Y

    def factor(self) -> None:
        """Start a chunk: L from A, and nothing pending."""
        L = factored(self.penalty, self.gram)
        if self.live:
            self.base = blas.dtrsm(1.0, L, self.products, lower=1)
        else:
            self.theta = lapack.dpotrs(L, self.products, lower=1)[0]
        self.L = L
        self._empty()

    def _empty(self) -> None:
        self.K: Matrix = np.empty((0, len(self.atoms) + 1))
        self.Y: Matrix = np.empty((0, self.products.shape[1]))
        if self.live:
            self.V, self.C, self.E = self.K, np.empty((0, 0)), self.Y

    # ---- a stretch of rows inside a chunk

    def advance(
        self,
        predicted: Matrix,
        learned: Matrix | None,
        Y: Matrix,
        roots: Vector,
        visible: NDArray[np.int64],
    ) -> Matrix:
        """Predict rows, and learn others as they become known.

        ``learned`` are the rows to learn with their targets Y and roots of weights, None if they are the
        predicted ones, each learned right after it was predicted; ``visible`` says for each predicted row
        how many of the rows of this chunk were known by then.
        """
        K = self._last = self.features(predicted)
        K_new = K if learned is None else self.features(learned)
        targets = Y - self.offset
        if not (learned is None and (roots == 1.0).all()):
            K_new = K_new * roots[:, None]
            targets = targets * roots[:, None]
        if not self.live:
            predictions = self._say(K)
        else:
            predictions = self._follow(K, K_new, targets, visible) + self.offset
        self.K = K_new if len(self.K) == 0 else np.concatenate([self.K, K_new])
        self.Y = targets if len(self.Y) == 0 else np.concatenate([self.Y, targets])
        return predictions

    def _say(self, K: Matrix) -> Matrix:
        """Predictions by theta."""
        said: Matrix = K @ self.theta + self.offset
        return said

    def _follow(self, K: Matrix, K_new: Matrix, targets: Matrix, visible: NDArray[np.int64]) -> Matrix:
        old, new = len(self.E), len(K_new)
        V = self._whitened = solved(self.L, K)
        if new:
            V_new = V if K_new is K else solved(self.L, K_new)
            M = blas.dsyrk(1.0, V_new.T, trans=1, lower=1)
            M.ravel(order="K")[:: new + 1] += self.forgetting ** np.arange(old + 1.0, old + new + 1.0)
            said: Matrix = V_new @ self.base
            cross = None
            if old:
                cross = solved(self.C, V_new @ self.V.T)
                M -= cross @ cross.T
                said += cross @ self.E
            pivots, info = lapack.dpotrf(M, lower=1, clean=1)
            if info:  # rounding, where a row repeats under a tiny weight
                M[np.diag_indices(new)] += 1e-9 * np.trace(M) / new
                pivots = np.asfortranarray(np.linalg.cholesky(M))
            C = pivots.copy(order="F")
            if cross is not None:
                C = np.block([[self.C, np.zeros((old, new))], [cross, pivots]])
            # By rows, as after a resume: the order decides about last bits.
            E = np.ascontiguousarray(blas.dtrsm(1.0, pivots, targets - said, lower=1))
            self.C, self.E = C, np.concatenate([self.E, E]) if old else E
            self.V = np.concatenate([self.V, V_new]) if old else V_new
            if K_new is K:
                # Not the target less what is left of it: a huge one would leave its rounding there.
                np.fill_diagonal(pivots, 0.0)
                said += pivots @ E
                return said
        predictions: Matrix = V @ self.base
        if len(self.E):
            H = solved(self.C, V @ self.V.T)
            H[np.arange(len(self.E)) >= visible[:, None]] = 0.0
            predictions += H @ self.E
        return predictions

    def end_chunk(self, refit: bool) -> None:
        """Take the chunk's rows into the sums.

        And start the next one, with a new fit or, not live, the old one.
        """
        rows = len(self.K)
        if rows and self.forgetting < 1.0:
            roots = self.forgetting ** (0.5 * np.arange(rows - 1.0, -1.0, -1.0))[:, None]
            self._add(self.K * roots, self.Y * roots, self.forgetting**rows)
        elif rows:
            self._add(self.K, self.Y)
        if refit or self.live:
            self.factor()
        else:
            self._empty()

    # ---- looking

    def coefficients(self) -> Matrix:
        """The coefficients theta after all rows so far."""
        if not self.live:
            known: Matrix = self.theta
            return known
        inside = self.base
        if len(self.E):
            inside = inside + self.V.T @ blas.dtrsm(1.0, self.C, self.E, lower=1, trans_a=1)
        theta: Matrix = blas.dtrsm(1.0, self.L, inside, lower=1, trans_a=1)
        return theta

    def predict(self, U: Matrix) -> Matrix:
        """Predictions by all that was learned. Changes nothing."""
        K = self.features(U)
        if not self.live:
            return self._say(K)
        predictions: Matrix = K @ self.coefficients() + self.offset
        return predictions

    def last_forms(self) -> Vector:
        """``k^T A^-1 k`` of the rows just predicted, with A as it was at the start of the chunk."""
        V = self._whitened
        if not self.live:
            if self._inverted is None or self._inverted[0] is not self.L:
                self._inverted = self.L, inverted(self.L)
            # L stays for some chunks.
            V = blas.dtrmm(1.0, self._inverted[1], self._last.T, lower=1).T
        forms: Vector = np.einsum("ij,ij->i", V, V)
        return forms

    def add_output(self) -> None:
        """One output more, whose targets were all 0."""
        self.products = np.pad(self.products, ((0, 0), (0, 1)))
        self.Y = np.pad(self.Y, ((0, 0), (0, 1)))
        if self.live:
            self.base, self.E = (np.pad(a, ((0, 0), (0, 1))) for a in (self.base, self.E))
            self.base = np.asfortranarray(self.base)
        else:
            # By columns, as LAPACK's own results.
            self.theta = np.asfortranarray(np.pad(self.theta, ((0, 0), (0, 1))))

    def mark(self) -> dict[str, Any]:
        """Where it stands, for :meth:`restore`: sums are copied before they change."""
        self._shared = True
        return dict(vars(self))

    def restore(self, mark: dict[str, Any]) -> None:
        """Go back to an earlier mark, bit for bit."""
        vars(self).clear()
        vars(self).update(mark)

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        numbers = {name: float(getattr(self, name)) for name in ("regularization", "offset", "forgetting")}
        return {**numbers, "live": self.live} | {name: getattr(self, name).copy() for name in self._arrays()}

    def _arrays(self) -> tuple[str, ...]:
        own = ("base", "V", "C", "E") if self.live else ("theta",)
        return ("atoms", "gram", "products", "L", "K", "Y", *own)

    @classmethod
    def from_stored(cls, stored: Stored, kernel: Kernel, width: int, outputs: int) -> SpanRidge:
        """The inverse of :meth:`state`, checked; nothing is factored again."""
        regularization = stored.number("regularization", at_least=1e-100)
        offset, forgetting = stored.number("offset"), stored.number("forgetting", at_least=0.0, at_most=1.0)
        live, atoms = stored.flag("live"), stored.array("atoms", None, width)
        expert = cls(
            kernel, atoms, regularization, outputs=outputs, offset=offset, forgetting=forgetting, live=live
        )
        size = len(atoms) + 1
        expert.gram = np.asfortranarray(stored.array("gram", size, size))
        expert.L = np.asfortranarray(stored.array("L", size, size))
        expert.products = stored.array("products", size, outputs)
        expert.K, expert.Y = stored.array("K", None, size), stored.array("Y", None, outputs)
        rows = len(expert.K)
        if len(expert.Y) != rows or rows > LONGEST:
            raise stored.error(f"its chunk has {rows} rows and {len(expert.Y)} targets")
        if live:
            expert.base = np.asfortranarray(stored.array("base", size, outputs))
            expert.V, expert.E = stored.array("V", rows, size), stored.array("E", rows, outputs)
            expert.C = stored.array("C", rows, rows)
        else:
            expert.theta = np.asfortranarray(stored.array("theta", size, outputs))
        stored.finish()
        return expert
