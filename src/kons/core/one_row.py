"""One row at a time: K quadratics over one dictionary predict it in a compiled call, and learn it in another.

From one end of a period to the next the arrays of the state stay where they are, and a row only appends to
them. So a table of their addresses is made once, where each would be an argument of every call. What the
loops change *is* the state; whoever replaces an array of it lets the table go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numba
import numpy as np
from numpy.typing import NDArray

from kons.arrays import Layout, Matrix, ReadVector, Vector
from kons.compilation import compiled, compiled_sums, matrix_at, pointer_to
from kons.core.embedding import Embedding
from kons.core.ledger import LEDGER, RULES, TOTALS, Entries, Ledger, PackedRules, new_ledger
from kons.core.quadratic import Quadratic, SquareSum
from kons.core.quadratic_loops import ASKED, ENTERED, FAILED, STEPS, learn_row, outside_of, predict_row
from kons.core.replay import NO_MATRIX, check_sound

__all__ = ["OneRow"]

#: Of each quadratic: sizes, addresses, and what all of them share.
TABLE = np.dtype(
    [(name, "i8") for name in ("size", "outputs", "period", "L", "base", "Z", "V", "C", "marks", "totals")]
    + [(name, "i8") for name in ("code", "ledger", "rules", "targets", "sampler", "atoms", "inverse")]
    + [("height", "i8"), ("rate", "f8")]
)
Tables = Annotated[Any, Layout(TABLE, 1)]
COUNTED = len(TOTALS)


class OneRow:
    """The rows of a period, one by one.

    Making it costs some microseconds a quadratic. Points of a Gaussian kernel go in as they are, of other
    kernels their coordinates. Not for losses that are Python functions.
    """

    def __init__(
        self,
        embedding: Embedding,
        quadratics: Sequence[Quadratic],
        sampler: SquareSum | None,
        rules: NDArray[np.void],
        code: int | None,
    ) -> None:
        self._embedding, self.quadratics = embedding, quadratics
        self._first = first = quadratics[0]
        size, outputs = first.base.shape
        self.ledger: Ledger = new_ledger(len(quadratics))
        self.targets: Vector = np.zeros(len(quadratics) + outputs - 1)
        self._work_shape = len(quadratics), 2 * size + first.period + outputs + 1
        #: The new coordinate of the row that became an atom last.
        self.pivot = 0.0
        factor, atoms, inverse = embedding.factor, NO_MATRIX, NO_MATRIX
        rate = embedding.kernel.squared_exponential_rate
        #: The shape of points, where the loops take them: a Gaussian kernel, and a factor of one panel.
        self.point_shape: tuple[int, ...] | None = None
        if rate is not None and 0 < size <= factor.height:
            atoms, inverse = embedding.atoms.view, factor.first_inverse
            self.point_shape = atoms.shape[1:]
        sample = NO_MATRIX if sampler is None else sampler.L
        self._shared = (
            *(code or 0, rate or 0.0, self.ledger, rules, self.targets),
            *(sample, atoms, inverse),
        )
        self._look()

    def _look(self) -> None:
        """Find the arrays of a period where they are now."""
        self._arrays = [part.arrays_of_rows() for part in self.quadratics]  # keeps them alive
        self._tables: NDArray[np.void] = np.zeros(len(self.quadratics), TABLE)
        for o, arrays in enumerate(self._arrays):
            write_down(self._tables[o : o + 1], *self._shared, *arrays)

    def __reduce__(self) -> Any:
        return type(None), ()  # a copy of the state has its arrays elsewhere

    def predict(self, x: Vector) -> Matrix | None:
        """z, v, h, f and q of one row behind each other, a row for each quadratic: for :meth:`learn`.

        x is the point, or its coordinates: see :attr:`point_shape`. None: it is not finite.
        """
        works = np.empty(self._work_shape)  # nobody else's: several threads may predict
        return works if predict(self._tables, x, self._first.pending, works) else None

    def learn(
        self, scale: float, step_size: float, uniform: float, self_kernel: float, works: Matrix
    ) -> tuple[int, float, float]:
        """Learn a row that was predicted, with :attr:`targets`; all quadratics do or, after an error, none.

        Fills the ledger. Returns what the row did besides, and the sums over all A of log(1 + w*q) and of the
        leverages. Where it became an atom, this is of no further use.
        """
        given = self._tables, scale, step_size, uniform, self_kernel
        pending = self._first.pending
        found: tuple[int, float, float] = learn(*given, math.nan, pending, works)
        if found[0] == ASKED:  # where the loop cannot tell itself
            z = works[0, : len(self._first)]
            found = learn(*given, self._embedding.squared_coefficients(self_kernel, z), pending, works)
        if found[0] == FAILED:
            check_sound(-1 - int(found[1]), self.ledger)
        if found[0] == ENTERED:
            self.pivot = outside_of(self.ledger, works[0, : len(self._first)])
            for part in self.quadratics:
                part.extend_by_row(self.pivot)
        for part in self.quadratics:
            part.pass_row()
        if not self._first.pending:
            self._look()
        return found


@compiled
def write_down(
    table: Tables,
    code: int,
    rate: float,
    ledger: Entries,
    rules: PackedRules,
    targets: Vector,
    sampler: Matrix,
    atoms: Matrix,
    inverse: Matrix,
    L: Matrix,
    base: Matrix,
    Z: Matrix,
    V: Matrix,
    C: Matrix,
    marks: Matrix,
    totals: Vector,
) -> None:
    """Fill the table of one quadratic. Compiled, for Python takes a microsecond to tell one address."""
    its = table[0]
    its.code, its.rate, its.height = code, rate, inverse.shape[1]
    its.size, its.outputs, its.period = len(L), base.shape[1], len(Z)
    its.ledger, its.rules, its.targets = ledger.ctypes.data, rules.ctypes.data, targets.ctypes.data
    its.sampler = sampler.ctypes.data if len(sampler) else 0
    its.atoms, its.inverse = (atoms.ctypes.data, inverse.ctypes.data) if len(atoms) else (0, 0)
    its.L, its.base, its.Z, its.V = L.ctypes.data, base.ctypes.data, Z.ctypes.data, V.ctypes.data
    its.C, its.marks, its.totals = C.ctypes.data, marks.ctypes.data, totals.ctypes.data


@compiled_sums
def predict(tables: Tables, x: ReadVector, pending: int, works: Matrix) -> bool:
    """:meth:`OneRow.predict`: ``z = inverse k_D(x)`` of a Gaussian kernel, or x, and what each finds."""
    first = tables[0]
    n, outputs, period, d = first.size, first.outputs, first.period, len(x)
    z, k = works[0, :n], works[0, n : 2 * n]
    if first.atoms == 0:
        for i in range(n):
            z[i] = x[i]
    else:
        for j in range(d):
            if not np.isfinite(x[j]):
                return False
        atoms, inverse = matrix_at(first.atoms, n, d), matrix_at(first.inverse, n, first.height)
        rate = first.rate
        for i in range(n):
            total = 0.0
            for j in range(d):
                difference = x[j] - atoms[i, j]
                total += difference * difference
            k[i] = np.exp(-rate * total)
        for i in range(n):
            total = 0.0
            for j in range(i + 1):
                total += inverse[i, j] * k[j]
            z[i] = total
    for o in range(len(tables)):
        table, work = tables[o], works[o]
        if o:
            for i in range(n):
                work[i] = z[i]
        V, C = matrix_at(table.V, period, n), matrix_at(table.C, period, period)
        marks = matrix_at(table.marks, period, STEPS + outputs)
        predict_row(matrix_at(table.L, n, n), matrix_at(table.base, n, outputs), V, C, marks, pending, work)
    return True


@compiled_sums
def _squared_coefficients(inverse: Matrix, z: Vector) -> float:
    """:meth:`Embedding.squared_coefficients` of a Gaussian kernel: ``|theta|^2``, theta = inverse^T z."""
    n, total = len(z), 0.0
    theta = np.zeros(n)
    for i in range(n):
        for j in range(i + 1):
            theta[j] += inverse[i, j] * z[i]
    for j in range(n):
        total += theta[j] * theta[j]
    return total


@compiled_sums
def learn(
    tables: Tables,
    scale: float,
    step_size: float,
    uniform: float,
    self_kernel: float,
    coefficients: float,
    pending: int,
    works: Matrix,
) -> tuple[int, float, float]:
    """:meth:`OneRow.learn`; FAILED comes with the number of the function that did."""
    first, count = tables[0], len(tables)
    n, outputs, period = first.size, first.outputs, first.period
    ledger = numba.carray(pointer_to(first.ledger), (count,), LEDGER)  # type: ignore[attr-defined]
    rules = numba.carray(pointer_to(first.rules), (1,), RULES)  # type: ignore[attr-defined]
    targets = matrix_at(first.targets, 1, count + outputs - 1)[0]
    sampler = matrix_at(first.sampler, n if first.sampler else 0, n)
    before = np.empty((count, COUNTED))
    free_slots = matrix_at(first.totals, 1, COUNTED)[0, TOTALS.free_slots]
    if first.atoms != 0 and free_slots >= 1.0:
        z, outside = works[0, :n], self_kernel
        for i in range(n):
            outside -= z[i] * z[i]
        if outside > rules[0].tolerance * self_kernel:
            coefficients = _squared_coefficients(matrix_at(first.inverse, n, first.height), z)
    logarithms, leverages, outcome = 0.0, 0.0, 0
    for o in range(count):
        table = tables[o]
        totals = matrix_at(table.totals, 1, COUNTED)[0]
        for i in range(COUNTED):
            before[o, i] = totals[i]
        outcome, mass = learn_row(
            table.code,
            ledger[o : o + 1],
            rules,
            targets[o],
            targets[o + 1 : o + outputs],
            scale,
            step_size,
            uniform,
            self_kernel,
            coefficients,
            works[o],
            totals,
            matrix_at(table.V, period, n),
            matrix_at(table.Z, period, n),
            matrix_at(table.C, period, period),
            matrix_at(table.marks, period, STEPS + outputs),
            pending,
            sampler,
        )
        if outcome in (FAILED, ASKED):
            # A row is written behind those that count: the totals are all there is to take back.
            for p in range(o + 1):
                totals = matrix_at(tables[p].totals, 1, COUNTED)[0]
                for i in range(COUNTED):
                    totals[i] = before[p, i]
            return outcome, float(o), 0.0
        logarithms += np.log1p(mass)
        leverages += mass / (1.0 + mass)
    return outcome, logarithms, leverages
