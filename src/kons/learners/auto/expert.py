"""An expert: ridge regression in the span of some atoms, for all outputs in one A.

::

    f(x)  = k(x)^T theta + offset,      k(x) = (k(x, a_1), ..., k(x, a_B), 1)
    A     = alpha Q + sum_t lambda^(age) k_t k_t^T,      Q = blockdiag(K_D, 1)
    theta = A^-1 sum_t lambda^(age) k_t (y_t - offset)^T

It is the state of :class:`kons.EmbeddedKONS` with the squared loss and its Hessian, on kernel columns instead
of orthonormal coordinates: no triangular solve for k(x), and alpha*Q is the ridge. The arithmetic is that of
:class:`kons.core.ridge.Ridge`: online (*live*), or batched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.ridge import Ridge
from kons.kernels import Kernel
from kons.learners.auto.schedule import LONGEST
from kons.state import fields
from kons.stored import Stored

__all__ = ["PART", "SpanRidge"]

# Rows of the past that are learned at a time.
PART = 1024


class SpanRidge(Ridge):
    """Ridge regression in the span of fixed atoms, learned in chunks.

    O(B^2) a row. Not for a dictionary that changes: atoms are chosen once, a new choice is a new expert.

    Parameters
    ----------
    kernel, atoms:
        A kernel and the points (B, d) that span the function, in the coordinates of the rows.
    regularization:
        alpha.
    outputs:
        How many targets each row has.
    offset:
        Subtracted from all targets, or from each its own.
    forgetting:
        lambda, a row.
    live:
        Whether predictions follow every row (a finite memory), or are those of the last fit.

    >>> import numpy as np
    >>> from kons.kernels import Gaussian
    >>> U = np.random.default_rng(0).normal(size=(200, 1))
    >>> expert = SpanRidge(Gaussian(1.0), U[:20], 0.01, outputs=1)
    >>> expert.learn_past(U, np.sin(U), np.ones(200))
    >>> expert.predict(np.array([[0.5]])).round(1).tolist()
    [[0.5]]
    """

    #: How many times as much the prior of the constant weighs, as that of an atom.
    CONSTANT = 1.0
    #: What a period's rows built is found again from them: see :meth:`begin_again`.
    STATE = fields(_Z=None, _Y=None, _V=None, _C=None)
    kernel: Kernel
    atoms: Matrix
    regularization: float
    offset: float | Vector
    pending: int

    def __init__(
        self,
        kernel: Kernel,
        atoms: Matrix,
        regularization: float,
        *,
        outputs: int,
        offset: float | Vector = 0.0,
        forgetting: float = 1.0,
        live: bool = False,
    ) -> None:
        prior = np.zeros((len(atoms) + 1, len(atoms) + 1))
        prior[-1, -1] = self.CONSTANT
        if len(atoms):
            prior[:-1, :-1] = kernel.evaluate(atoms, atoms)
        prior *= regularization
        super().__init__(prior, outputs, forgetting=forgetting, online=live, period=LONGEST)
        self.kernel, self.atoms = kernel, atoms
        self.regularization, self.offset = regularization, offset
        #: k of the rows just predicted.
        self._last: Matrix = np.empty((0, len(self)))

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
            K *= roots[part, None]
            self.add_past(K, (Y[part] - self.offset) * roots[part, None])
        self.fit()

    def _parts(self, U: Matrix) -> Iterator[tuple[slice, Matrix]]:
        """The features of many rows, some at a time, in memory that is used again."""
        memory = np.empty((min(len(U), PART), len(self.atoms) + 1))
        for start in range(0, len(U), PART):
            part = slice(start, min(start + PART, len(U)))
            K = memory[: part.stop - start]
            self._fill(U[part], K)
            yield part, K

    # ---- a stretch of rows inside a chunk

    def advance(
        self,
        predicted: Matrix,
        learned: Matrix | None,
        Y: Matrix,
        roots: Vector,
        known: NDArray[np.int64],
    ) -> Matrix:
        """Predict rows, and learn others as they become known.

        ``learned`` are the rows to learn with their targets Y and roots of weights, None if they are the
        predicted ones, each learned right after it was predicted; ``known`` says for each predicted row how
        many of these were known by then.
        """
        targets = Y - self.offset
        if learned is not None and not len(predicted):
            if len(learned):
                self.learn(self.features(learned) * roots[:, None], targets * roots[:, None])
            return np.empty((0, self.outputs))
        K = self._last = self.features(predicted)
        if learned is None and (roots == 1.0).all():
            return self.outputs_of(self.learn(K, targets))
        K_learned, before = K if learned is None else self.features(learned), self.pending
        if len(K_learned):
            self.learn(K_learned * roots[:, None], targets * roots[:, None])
        return self.outputs_of(self.predict_known(K, known + before))

    def outputs_of(self, values: Matrix) -> Matrix:
        """Predictions, of the functions' values."""
        return values + self.offset

    @contextmanager
    def begin_again(self) -> Iterator[None]:
        """The period's rows, none of which is there, are learned inside, as they were and cut as they were.

        Their marks are there: steps would be those of other classes, where one came in between.
        """
        marks, count, self.pending = self._marks.copy(), self.pending, 0
        yield
        assert self.pending == count
        self._marks[:] = marks

    def before_period(self) -> Matrix:
        """What the coefficients before this period make of its rows, (pending, outputs)."""
        # The last number of a row is the root of its weight; one without a weight is asked for by nobody.
        roots = self._Z[: self.pending, -1:]
        rows = (self._V if self.online else self._Z)[: self.pending]
        return self.outputs_of(rows @ self.base / np.where(roots > 0.0, roots, 1.0))

    # ---- looking

    def arrays_of_period(self) -> tuple[Matrix, ...]:
        """What a row that comes alone is predicted from, and appended to: all of them contiguous."""
        return self.L, self.base, self._Z, self._Y, self._V, self._C, self._marks

    def predict(self, U: Matrix) -> Matrix:
        """Predictions by all that was learned. Changes nothing."""
        return self.outputs_of(super().predict(self.features(U)))

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on, what it was made of among it. A copy."""
        made = {"atoms": self.atoms.copy(), "regularization": self.regularization, "online": self.online}
        offset = self.offset if isinstance(self.offset, float) else self.offset.copy()
        return made | {"offset": offset, "forgetting": self.forgetting, **super().state()}

    @classmethod
    def from_stored(
        cls, stored: Stored, kernel: Kernel, width: int, outputs: int, targets: int = 1
    ) -> SpanRidge:
        """The inverse of :meth:`state`, checked; nothing is fitted again."""
        expert = cls(
            kernel,
            stored.array("atoms", None, width),
            stored.number("regularization", at_least=1e-100),
            outputs=outputs,
            offset=stored.number("offset") if targets == 1 else stored.array("offset", targets),
            forgetting=stored.number("forgetting", at_least=0.0, at_most=1.0),
            live=stored.flag("online"),
        )
        expert.load_state(stored)
        return expert
