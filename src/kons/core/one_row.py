"""One row at a time: K quadratics over one dictionary predict it in a compiled call, and learn it in another.

Inside a period the arrays of the state stay where they are, and a row only appends to them; so does an atom,
from the period's first one on. So a table of their addresses is made once, where each would be an argument of
every call. What the loops change *is* the state; whoever replaces an array of it lets the table go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from kons.arrays import FLOAT64, Matrix, ReadVector, Vector
from kons.compilation import address_of, compiled, compiled_sums, matrix_at, pointer_to
from kons.core.embedding import Embedding
from kons.core.entry import KERNEL_ACCURACY
from kons.core.exponential import exponentials
from kons.core.factor import apply_triangle
from kons.core.ledger import LEDGER, RULES, TOTALS, Ledger, new_ledger
from kons.core.quadratic import Quadratic, SquareSum
from kons.core.quadratic_loops import STEPS, keep_row, predict_row
from kons.core.replay import NO_MATRIX, check_sound, replay_compiled
from kons.losses.builtin import SQUARED, slope_of

__all__ = ["ENTERED", "PLAIN", "OneRow"]

# What a row did besides being learned; FAILED and ASKED for its coefficients, it was not.
PLAIN, SAMPLED, ENTERED, FAILED, ASKED = 0, 1, 2, 3, 4
#: Of each quadratic: sizes, addresses, and what all of them share.
TABLE = np.dtype(
    [(name, "i8") for name in ("L", "base", "Z", "V", "C", "marks", "totals", "start", "width", "outputs")]
    + [(name, "i8") for name in ("period", "code", "ledger", "rules", "targets", "sampler", "atoms")]
    + [("inverse", "i8"), ("height", "i8"), ("rate", "f8"), ("root", "f8")]
)
COUNTED = len(TOTALS)
#: Of the point that was asked last: the array, its bytes then, and what was found of it.
NOT_ASKED: tuple[Any, bytes | None, Matrix] = (NO_MATRIX, None, NO_MATRIX)


class OneRow:
    """Rows one by one, and the atoms that some of them become.

    A look at where everything is costs some microseconds a quadratic, at the end of each period and at its
    first atom. Points of a Gaussian kernel go in as they are, of other kernels their coordinates. Not for
    losses that are Python functions.
    """

    def __init__(
        self,
        embedding: Embedding,
        quadratics: Sequence[Quadratic],
        sampler: SquareSum | None,
        rules: NDArray[np.void],
        code: int | None,
    ) -> None:
        self._embedding, self.quadratics, self._sampler = embedding, quadratics, sampler
        self._first, self._period, self._code = quadratics[0], quadratics[0].period, code or 0
        self.ledger: Ledger = new_ledger(len(quadratics))
        self.targets: Vector = np.zeros(len(quadratics) + quadratics[0].outputs - 1)
        self._rate = embedding.kernel.squared_exponential_rate
        self._of_all = self.ledger, rules, self.targets
        self._stay = tuple(map(address_of, self._of_all))
        #: The new coordinate of the row that became an atom last.
        self.pivot = 0.0
        self._last = NOT_ASKED
        self._look()

    def _look(self) -> None:
        """Find the arrays of a period where they are now."""
        embedding, first = self._embedding, self._first
        size, factor, width = len(embedding), embedding.factor, first._Z.shape[1]
        atoms, inverse = NO_MATRIX, NO_MATRIX
        #: The shape of points, where the loops take them: a Gaussian kernel, and a factor of one panel.
        self.point_shape: tuple[int, ...] | None = None
        if self._rate is not None and 0 < size <= factor.height:
            points, inverse = embedding.atoms.view, factor.first_inverse
            self.point_shape = points.shape[1:]
            atoms = np.zeros((points.shape[1], width))  # by columns, and with room for those to come
            atoms[:, :size] = points.T
        sampler = NO_MATRIX if self._sampler is None else self._sampler.L
        shared = sampler, atoms, inverse
        numbers = factor.height, self._rate or 0.0, math.sqrt(first.prior)
        of_all = *self._stay, *(matrix_address(array) if array.size else 0 for array in shared), *numbers
        tables: list[tuple[Any, ...]] = []
        self._held: list[Any] = [shared]  # what the loops know by its address
        for part in self.quadratics:
            *arrays, totals = part.arrays_of_rows()
            self._held.append(arrays)
            sizes = len(part.base), width, part.outputs, part.period, self._code
            tables.append((*map(matrix_address, arrays), address_of(totals), *sizes, *of_all))
        self._atoms, self._tables = atoms, np.array(tables, TABLE)
        self._address, self._count = address_of(self._tables), len(tables)
        self._work_shape = len(tables), 2 * width + first.period + first.outputs + 1

    def __reduce__(self) -> Any:
        return type(None), ()  # a copy of the state has its arrays elsewhere

    def predict(self, x: Any) -> Matrix | None:
        """z, v, h, f and q of one row behind each other, a row for each quadratic: for :meth:`learn`.

        None: the loops do not take this point, or it is not finite. One that is asked again, before any was
        learned, costs nothing.
        """
        last = self._last
        if x is last[0] and x.tobytes() == last[1]:  # most who learn a row have just predicted it
            return last[2]
        # Machine code for strides may round differently.
        if (
            type(x) is not ndarray
            or x.dtype is not FLOAT64
            or x.shape != self.point_shape
            or not x.flags.c_contiguous
        ):
            return None
        features = x.tobytes()
        if features == last[1]:
            return last[2]
        works, first = np.empty(self._work_shape), self._first  # nobody else's: several threads may predict
        if not predict(self._address, self._count, first._size, first.pending, x, works):
            return None
        self._last = x, features, works
        return works

    def predict_coordinates(self, z: Vector) -> Matrix:
        """:meth:`predict`, where the loops take no points."""
        works, first = np.empty(self._work_shape), self._first
        predict(self._address, self._count, first._size, first.pending, z, works)
        return works

    def learn(
        self, scale: float, step_size: float, uniform: float, self_kernel: float, works: Matrix
    ) -> tuple[int, float, float]:
        """Learn a row that was predicted, with :attr:`targets`; all quadratics do or, after an error, none.

        Fills the ledger. Returns what the row did besides, and the sums over all A of log(1 + w*q) and of the
        leverages. Where it became an atom, :meth:`take_atom` is next.
        """
        first, table, count = self._first, self._address, self._count
        size, pending, c = first._size, first.pending, math.nan
        self._last = NOT_ASKED  # a row that is learned, or not, uses up what was found of it
        found: tuple[int, float, float]
        found = learn(table, count, size, pending, scale, step_size, uniform, self_kernel, c, works)
        if found[0] == ASKED:  # the loop cannot tell itself
            c = self._embedding.squared_coefficients(self_kernel, works[0, :size])
            found = learn(table, count, size, pending, scale, step_size, uniform, self_kernel, c, works)
        if found[0] == FAILED:
            check_sound(-1 - int(found[1]), self.ledger)
        if found[0] == ENTERED:
            z = works[0, :size]
            self.pivot = math.sqrt(self.ledger["norm2"][0] - z @ z)
            for part in self.quadratics:
                part.extend_by_row(self.pivot)
        for part in self.quadratics:
            part.pending += 1
            part.rows += 1
        if first.rows % self._period == 0:
            for part in self.quadratics:
                part.end_period_of_rows()
            if found[0] != ENTERED:
                self._look()
        return found

    def take_atom(self, x: Vector) -> None:
        """The row that was just learned is an atom of the embedding now."""
        factor, first = self._embedding.factor, self._first
        if self._atoms.shape[1] == first._Z.shape[1] and first.pending and factor.size <= factor.height:
            self._atoms[:, factor.size - 1] = x
        else:
            self._look()


@compiled
def matrix_address(matrix: Matrix) -> int:
    """Where it begins in memory: Python takes a microsecond to tell."""
    address: int = matrix.ctypes.data
    return address


@compiled_sums
def predict(address: int, count: int, size: int, pending: int, x: ReadVector, works: Matrix) -> bool:
    """:meth:`OneRow.predict`: ``z = inverse k_D(x)`` of a Gaussian kernel, or x, and what each finds."""
    tables = numba.carray(pointer_to(address), (count,), TABLE)  # type: ignore[attr-defined]
    first = tables[0]
    width, outputs, period, d = first.width, first.outputs, first.period, len(x)
    z, k = works[0, :size], works[0, width : width + size]
    if first.atoms == 0:
        for i in range(size):
            z[i] = x[i]
    else:
        for j in range(d):
            if not np.isfinite(x[j]):
                return False
        atoms = matrix_at(first.atoms, d, width)
        for i in range(size):
            k[i] = 0.0
        for j in range(d):
            for i in range(size):
                difference = x[j] - atoms[j, i]
                k[i] += difference * difference
        for i in range(size):
            k[i] *= -first.rate
        exponentials(k, z)
        apply_triangle(matrix_at(first.inverse, size, first.height), k, z)
    for o in range(count):
        table, work = tables[o], works[o]
        for i in range(width):
            work[i] = z[i] if i < size else 0.0
        for i in range(table.start, width):
            work[width + i] = work[i] / table.root
        V, C = matrix_at(table.V, period, width), matrix_at(table.C, period, period)
        marks, start = matrix_at(table.marks, period, STEPS + outputs), table.start
        L, base = matrix_at(table.L, start, start), matrix_at(table.base, start, outputs)
        predict_row(L, base, V, C, marks, pending, work)
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
    address: int,
    count: int,
    size: int,
    pending: int,
    scale: float,
    step_size: float,
    uniform: float,
    self_kernel: float,
    coefficients: float,
    works: Matrix,
) -> tuple[int, float, float]:
    """:meth:`OneRow.learn`; FAILED comes with the number of the function that did.

    Its ``coefficients`` (T of the replay) may be NaN: a row that needs them and cannot find them is ASKED for
    them, unlearned.
    """
    tables = numba.carray(pointer_to(address), (count,), TABLE)  # type: ignore[attr-defined]
    first = tables[0]
    width, outputs, period = first.width, first.outputs, first.period
    ledger = numba.carray(pointer_to(first.ledger), (count,), LEDGER)  # type: ignore[attr-defined]
    rules = numba.carray(pointer_to(first.rules), (1,), RULES)  # type: ignore[attr-defined]
    targets = matrix_at(first.targets, 1, count + outputs - 1)[0]
    sampler = matrix_at(first.sampler, size if first.sampler else 0, size)
    z, norm2 = works[0, :size], 0.0
    for i in range(size):
        norm2 += z[i] * z[i]
    outside = self_kernel - norm2
    free_slots = matrix_at(first.totals, 1, COUNTED)[0, TOTALS.free_slots]
    if np.isnan(coefficients):
        may_enter = free_slots >= 1.0 and outside > rules[0].tolerance * self_kernel
        if may_enter and first.atoms != 0:
            coefficients = _squared_coefficients(matrix_at(first.inverse, size, first.height), z)
        elif may_enter or not outside >= -KERNEL_ACCURACY * self_kernel:
            return ASKED, 0.0, 0.0
    before, cells = np.empty((count, COUNTED)), np.empty((5, 1, 1))
    f, M, N, R, T = cells[0, 0], cells[1], cells[2], cells[3], cells[4]
    logarithms, leverages, outcome = 0.0, 0.0, PLAIN
    for o in range(count):
        table, row, work = tables[o], ledger[o], works[o]
        totals = matrix_at(table.totals, 1, COUNTED)[0]
        V, Z = matrix_at(table.V, period, width), matrix_at(table.Z, period, width)
        C, marks = matrix_at(table.C, period, period), matrix_at(table.marks, period, STEPS + outputs)
        for i in range(COUNTED):
            before[o, i] = totals[i]
        values = work[len(work) - 1 - outputs : len(work) - 1]  # f of all outputs
        f[0], M[0, 0], N[0, 0], R[0, 0], T[0, 0] = values[0], work[-1], 0.0, max(outside, 0.0), coefficients
        row.target, row.scale, row.step_size = targets[o], scale, step_size
        row.uniform, row.self_kernel, row.norm2 = uniform, self_kernel, norm2
        if len(sampler) == size:
            # N = |L_I^-1 z|^2 + R/alpha; the row's place in V holds L_I^-1 z meanwhile.
            N[0, 0] = R[0, 0] / rules[0].regularization
            for i in range(size):
                total = z[i]
                for j in range(i):
                    total -= sampler[i, j] * V[pending, j]
                V[pending, i] = total / sampler[i, i]
                N[0, 0] += V[pending, i] ** 2
        sound = replay_compiled(table.code, ledger[o : o + 1], rules, f, M, N, R, T, totals) >= 0
        for p in range(1, outputs):
            sound = sound and np.isfinite(values[p])
        if not sound:
            # A row is written behind those that count: the totals are all there is to take back.
            for p in range(o + 1):
                totals = matrix_at(tables[p].totals, 1, COUNTED)[0]
                for i in range(COUNTED):
                    totals[i] = before[p, i]
            return FAILED, float(o), 0.0
        for i in range(width):
            Z[pending, i] = work[i]
        mass, work[-1] = row.weight * row.inverse_form, row.inverse_form
        keep_row(1.0, row.weight, V, C, marks, pending, work)
        marks[pending, STEPS] = row.step
        for p in range(1, outputs):  # as kons.core.replay.follow has it
            slope = scale * slope_of(SQUARED, values[p], targets[o + p])
            marks[pending, STEPS + p] = 0.0 if rules[0].restarts and row.entered else slope / (1.0 + mass)
        if row.entered:
            outcome = ENTERED
        elif row.sampler_weight > 0.0:
            outcome = SAMPLED
        logarithms += np.log1p(mass)
        leverages += mass / (1.0 + mass)
    return outcome, logarithms, leverages
