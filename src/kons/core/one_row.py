"""One row at a time: K quadratics over one dictionary predict it in a compiled call, and learn it in another.

Inside a period the arrays of the state stay where they are, and a row only appends to them; so does an atom
of a Gaussian kernel. So a table of their addresses is made once: each would be an argument of every call.
What the loops change *is* the state; whoever replaces an array of it lets the table go.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT64, Matrix, ReadVector, Vector
from kons.compilation import address_of, compiled_at_once, compiled_sums, inner_sums, matrix_at, pointer_to
from kons.core.embedding import Embedding
from kons.core.entry import KERNEL_ACCURACY
from kons.core.exponential import exponentials
from kons.core.factor import apply_triangle
from kons.core.interruption import HeldInterrupts, stopped_midway
from kons.core.ledger import LEDGER, RULES, TOTALS, Entries, Ledger, PackedRules
from kons.core.quadratic import Quadratic, SquareSum
from kons.core.quadratic_loops import STEPS, keep_row, predict_row
from kons.core.replay import NO_MATRIX, check_sound, replay_compiled
from kons.losses.builtin import SQUARED, slope_of

__all__ = [
    "ENDLESS",
    "PLAIN",
    "REFUSED",
    "TAKEN",
    "OneRow",
    "learn_alone",
    "let_wait",
    "predict",
    "predict_alone",
]

# What a row did besides being learned. An atom that ENTERED is its caller's to append; one that was TAKEN is
# everywhere already. One that FAILED, is ASKED for its coefficients, is REFUSED, as it was not predicted just
# before, or finds the rows of its period there already, STOPPED before their end, was not learned. Behind one
# of :func:`learn_alone` a period, or a record, is FULL.
PLAIN, SAMPLED, TAKEN, ENTERED, FAILED, ASKED, REFUSED, STOPPED, FULL = range(9)
#: Of each quadratic: addresses, sizes, and what all of them share.
TABLE = np.dtype(
    [(name, "i8") for name in ("L", "base", "Z", "V", "C", "marks", "totals", "ledger", "rules", "targets")]
    + [(name, "i8") for name in ("sampler", "atoms", "points", "inverse", "room", "columns", "height")]
    + [(name, "i8") for name in ("count", "start", "width", "outputs", "period", "code", "work")]
    + [
        ("size", "i8"),
        ("pending", "i8"),
        ("rate", "f8"),
        ("root", "f8"),
        ("pivot", "f8"),
        ("coefficients", "f8"),
    ]
    # Of rows that Python has not counted yet: how many, and atoms among them; the address of the next line of
    # the record, how long it is and how many there are; what all of them have, and running totals.
    + [(name, "i8") for name in ("learned", "taken", "line", "line_size", "lines")]
    + [(name, "f8") for name in ("bound", "eta", "logarithms", "leverages")]
)
# Lines of no record.
ENDLESS = 2**62
COUNTED, CELLS = len(TOTALS), 5
NO_VECTOR = np.empty(0)
BYTES = FLOAT64.itemsize


class OneRow:
    """Rows one by one, and the atoms that some of them become.

    A look at where everything is costs some microseconds a quadratic, at the end of each period. Points of a
    Gaussian kernel go in as they are, of other kernels their coordinates. Not for losses that are Python
    functions.
    """

    quadratics: Sequence[Quadratic]
    columns: int
    thread: int
    works: Matrix

    def __init__(
        self,
        embedding: Embedding,
        quadratics: Sequence[Quadratic],
        sampler: SquareSum | None,
        rules: NDArray[np.void],
        code: int | None,
        width: int,
    ) -> None:
        #: While a row that ended its period is not counted everywhere.
        self.held: HeldInterrupts | None = None
        #: Whether all points that came have been in one piece of memory.
        self.gapless = True
        self._embedding, self.quadratics, self._sampler = embedding, quadratics, sampler
        self._first, self._period = quadratics[0], quadratics[0].period
        self.ledger: Ledger = np.zeros(len(quadratics), LEDGER)
        #: What it says of the last row: what was predicted, and how new it was.
        self.said: tuple[Vector, Vector] = self.ledger["prediction"], self.ledger["novelty"]
        self.targets: Vector = np.zeros(len(quadratics) + quadratics[0].outputs - 1)
        #: How long points are, where the loops take them: a Gaussian kernel, and a factor of one panel.
        self.columns, self._rate = width, embedding.kernel.squared_exponential_rate
        #: Whether an atom changes nothing but what it is appended to.
        self._appends = sampler is None and not rules["restarts"][0]
        self._rules = rules
        self._constants = code or 0, self._rate or 0.0, math.sqrt(self._first.prior)
        self._tables = np.zeros(len(quadratics), TABLE)
        self.address: int = address_of(self._tables)
        self._atoms, self._memory, self._room = NO_MATRIX, NO_VECTOR, (0, 0)
        self._look()

    def _look(self) -> None:
        """Find the arrays of a period where they are now."""
        embedding, first = self._embedding, self._first
        size, height, width = len(embedding), embedding.factor.height, first._Z.shape[1]
        atoms = points = inverse = NO_MATRIX
        room = 0
        if self._rate is None or size > height:
            self.columns = -1
        else:
            room = min(width, height) if self._appends else 0
            points, inverse = embedding.buffers(max(size, room), self.columns)
            if self._atoms.shape != (self.columns, width):  # by columns, and with room for those to come
                self._atoms = np.zeros((self.columns, width))
                self._atoms[:, :size] = points[:size].T
            atoms = self._atoms
        sampler = NO_MATRIX if self._sampler is None else self._sampler.L
        #: Whose memory :attr:`works` is, and the table at :attr:`address`.
        self.thread = get_ident()
        if self._room != (width, self.columns):
            self._room = width, self.columns
            self.works, self._memory = self._room_for_row()
        self._held: list[Any] = []  # what the loops know by its address
        for number, part in enumerate(self.quadratics):
            arrays: list[Any] = [*part.arrays_of_rows()]
            self._held += arrays
            arrays += self.ledger, self._rules, self.targets, self._memory, sampler, atoms, points, inverse
            write_down(self.address, number, size, first.pending, room, *self._constants, *arrays)
        self._held += sampler, points, inverse

    def _room_for_row(self) -> tuple[Matrix, Vector]:
        """z, v, h, f and q of one row behind each other, a row for each quadratic; and their memory.

        Behind them cells and theta for :func:`learn`; whether they were found, and of what.
        """
        count, first, width = len(self.quadratics), self._first, self._room[0]
        length = 2 * width + first.period + first.outputs + 1
        behind = CELLS + COUNTED * count + width + 1 + max(self.columns, width)
        memory = np.zeros(count * length + behind)
        return memory[: count * length].reshape(count, length), memory

    def __reduce__(self) -> Any:
        return type(None), ()  # a copy of the state has its arrays elsewhere

    def predict(self, x: Vector) -> tuple[float, Matrix]:
        """The clipped score of the first function at a point, or at coordinates where :attr:`columns` is -1;
        and its works.

        NaN: it is not finite. Of a point that is learned next nothing is found twice.
        """
        if get_ident() == self.thread:
            return predict_given(self.address, x), self.works
        tables = self._tables.copy()  # several threads may predict: each in memory of its own
        works, memory = self._room_for_row()
        tables["work"] = address_of(memory)
        return predict_given(address_of(tables), x), works

    def let_interrupts_go(self) -> None:
        """The row that ended a period is counted everywhere: Ctrl-C may be heard again."""
        held, self.held = self.held, None
        if held is not None:
            held.__exit__()

    def learn(
        self,
        x: Vector,
        scale: float,
        step_size: float,
        uniform: float,
        self_kernel: float,
        place: int = 0,
    ) -> tuple[int, float, float]:
        """Learn a row, with :attr:`targets`; all quadratics do or, after an error, none.

        ``place``: the address where a line of the record is written, of the first of them; 0: nowhere.

        Fills the ledger, and :attr:`works` as :meth:`predict` does. Returns what the row did besides, and the
        sums over all A of log(1 + w*q) and of the leverages. Where it ENTERED, :meth:`entered` is next.
        """
        found: tuple[int, float, float]
        given = self.address, scale, step_size, uniform, self_kernel, x, place
        try:
            found = learn(*given)
            if found[0] == REFUSED:  # nobody has predicted it, or it is not finite
                predict_given(self.address, x)
                found = learn(*given)
            if found[0] == ASKED:  # the loop cannot tell itself
                z = self.works[0, : len(self._first)]
                self._tables["coefficients"] = self._embedding.squared_coefficients(self_kernel, z)
                found = learn(*given)
                self._tables["coefficients"] = math.nan
            if found[0] > TAKEN:
                if found[0] == REFUSED:
                    return found
                if found[0] == STOPPED:
                    raise stopped_midway()
                if found[0] == FAILED:
                    check_sound(-1 - int(found[1]), self.ledger)
            self._count(1, found[0] == TAKEN, found[0] == ENTERED)
        except BaseException:  # a signal among them: the table counts what the state counts
            self._look()
            raise
        self._end_period(found[0] == ENTERED)
        return found

    def _count(self, learned: int, taken: int, entered: int) -> None:
        """Let the state count rows that the loops have learned, and the atoms among them."""
        for _ in range(taken):
            self._embedding.count_one()
        for part in self.quadratics:
            if entered:
                part.extend_by_row(self.pivot)
            part._size += taken
            part.pending += learned
            part.rows += learned

    def _end_period(self, entered: bool) -> None:
        """Where a period is full, end it; :meth:`let_interrupts_go` is next."""
        if self._first.rows % self._period != 0:
            return
        self.held = HeldInterrupts()
        self.held.__enter__()
        try:
            for part in self.quadratics:
                part.end_period_of_rows()
            if not entered:
                self._look_again()
        except BaseException:
            self.let_interrupts_go()
            raise

    # ---- rows that Python counts later

    @property
    def has_room(self) -> bool:
        """Whether the loops can take in an atom by themselves, if one may come."""
        free_slots = self._first.totals[TOTALS.free_slots]
        return self.columns > 0 and (free_slots < 1.0 or len(self._embedding) < self._tables["room"].item(0))

    def count_rows(self) -> tuple[int, int, float, float]:
        """Let no more rows wait, and count those that do: how many, atoms among them, and the totals."""
        learned, taken, logarithms, leverages = close(self.address)
        self._count(learned, taken, 0)
        if self._first.pending == self._period:
            self._end_period(False)
        return learned, taken, logarithms, leverages

    def _look_again(self) -> None:
        """:meth:`_look` at the end of a period, most of which leave everything in its place."""
        now = [array for part in self.quadratics for array in part.arrays_of_rows()]
        if all(map(operator.is_, now, self._held)):
            self._tables["pending"] = 0
        else:
            self._look()

    @property
    def pivot(self) -> float:
        """The new coordinate of the row that became an atom last."""
        return float(self._tables["pivot"][0])

    def entered(self) -> None:
        """The row that was just learned is an atom of the embedding now."""
        self._atoms = NO_MATRIX
        self._look()


@compiled_sums
def write_down(
    address: int,
    number: int,
    size: int,
    pending: int,
    room: int,
    code: int,
    rate: float,
    root: float,
    L: Matrix,
    base: Matrix,
    Z: Matrix,
    V: Matrix,
    C: Matrix,
    marks: Matrix,
    totals: Vector,
    ledger: Entries,
    rules: PackedRules,
    targets: Vector,
    work: Vector,
    sampler: Matrix,
    atoms: Matrix,
    points: Matrix,
    inverse: Matrix,
) -> None:
    """Where the arrays of a quadratic are, in its line of the table: of each, Python takes a microsecond."""
    count = len(ledger)
    table = numba.carray(pointer_to(address), (count,), TABLE)[number]  # type: ignore[attr-defined]
    table.L, table.base, table.Z, table.V = L.ctypes.data, base.ctypes.data, Z.ctypes.data, V.ctypes.data
    table.C, table.marks, table.totals = C.ctypes.data, marks.ctypes.data, totals.ctypes.data
    table.ledger, table.rules, table.targets = ledger.ctypes.data, rules.ctypes.data, targets.ctypes.data
    table.work, table.code, table.rate, table.root = work.ctypes.data, code, rate, root
    table.sampler = sampler.ctypes.data if sampler.size else 0
    table.atoms, table.points, table.inverse = atoms.ctypes.data, points.ctypes.data, inverse.ctypes.data
    table.columns, table.height, table.room = len(atoms), len(inverse), room
    table.size, table.pending, table.coefficients = size, pending, np.nan
    table.count, table.start, table.outputs = count, base.shape[0], base.shape[1]
    table.period, table.width = Z.shape[0], Z.shape[1]


@compiled_sums
def predict_given(address: int, x: ReadVector) -> float:
    """:meth:`OneRow.predict`: z of a point, and what each quadratic finds of it, for :func:`learn`.

    ``z = inverse k_D(x)`` of a Gaussian kernel, or x.
    """
    count = numba.carray(pointer_to(address), (1,), TABLE)[0].count  # type: ignore[attr-defined]
    tables = numba.carray(pointer_to(address), (count,), TABLE)  # type: ignore[attr-defined]
    first = tables[0]
    width, outputs, period, size, pending = (
        first.width,
        first.outputs,
        first.period,
        first.size,
        first.pending,
    )
    length = 2 * width + period + outputs + 1
    works = matrix_at(first.work, count, length)
    found = matrix_at(first.work + BYTES * (count * (length + COUNTED) + CELLS + width), 1, 1 + len(x))[0]
    found[0] = 0.0
    z, k = works[0, :size], works[0, width : width + size]
    if first.columns == 0:
        for i in range(size):
            z[i] = x[i]
    else:
        for j in range(len(x)):
            if not np.isfinite(x[j]):
                return np.nan
        atoms = matrix_at(first.atoms, len(x), width)
        for i in range(size):
            k[i] = 0.0
        for j in range(len(x)):
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
        predict_row(size, L, base, V, C, marks, pending, work)
    for j in range(len(x)):
        found[1 + j] = x[j]
    found[0] = 1.0
    rules = numba.carray(pointer_to(first.rules), (1,), RULES)  # type: ignore[attr-defined]
    value: float = works[0, 2 * width + period]
    if rules[0].forward:
        value /= 1.0 + 2.0 * works[0, -1]
    return min(max(value, -rules[0].bound), rules[0].bound) if np.isfinite(value) else np.nan


@compiled_sums
def predict(address: int, x: ReadVector) -> float:
    """:func:`predict_given` of a point; NaN where points are not what it takes, or have other columns."""
    columns = numba.carray(pointer_to(address), (1,), TABLE)[0].columns  # type: ignore[attr-defined]
    return predict_given(address, x) if len(x) == columns else np.nan


@inner_sums
def _coefficients(inverse: Matrix, z: Vector, theta: Vector) -> float:
    """``theta = inverse^T z`` of a Gaussian kernel, and ``|theta|^2``: see :class:`Embedding`."""
    n, total = len(z), 0.0
    for j in range(n):
        theta[j] = 0.0
    for i in range(n):
        for j in range(i + 1):
            theta[j] += inverse[i, j] * z[i]
    for j in range(n):
        total += theta[j] * theta[j]
    return total


@compiled_sums
def learn(
    address: int,
    scale: float,
    step_size: float,
    uniform: float,
    self_kernel: float,
    x: ReadVector,
    place: int,
) -> tuple[int, float, float]:
    """:meth:`OneRow.learn`; FAILED comes with the number of the function that did.

    The table's ``coefficients`` (T of the replay) may be NaN: a row that needs them and cannot find them is
    ASKED for them, unlearned.
    """
    count = numba.carray(pointer_to(address), (1,), TABLE)[0].count  # type: ignore[attr-defined]
    tables = numba.carray(pointer_to(address), (count,), TABLE)  # type: ignore[attr-defined]
    first = tables[0]
    width, outputs, period, size, pending = (
        first.width,
        first.outputs,
        first.period,
        first.size,
        first.pending,
    )
    if pending >= period:
        return STOPPED, 0.0, 0.0
    length, coefficients = 2 * width + period + outputs + 1, first.coefficients
    works = matrix_at(first.work, count, length)
    found = matrix_at(first.work + BYTES * (count * (length + COUNTED) + CELLS + width), 1, 1 + len(x))[0]
    met = found[0] == 1.0
    for j in range(len(x)):
        # Coordinates of a kernel that is at fault may be NaN, and are no others for that.
        met = met and (found[1 + j] == x[j] or (np.isnan(found[1 + j]) and np.isnan(x[j])))
    if not met:
        return REFUSED, 0.0, 0.0
    ledger = numba.carray(pointer_to(first.ledger), (count,), LEDGER)  # type: ignore[attr-defined]
    rules = numba.carray(pointer_to(first.rules), (1,), RULES)  # type: ignore[attr-defined]
    targets = matrix_at(first.targets, 1, count + outputs - 1)[0]
    sampler = matrix_at(first.sampler, size if first.sampler else 0, size)
    z, norm2 = works[0, :size], 0.0
    for i in range(size):
        norm2 += z[i] * z[i]
    outside = self_kernel - norm2
    theta = matrix_at(first.work + BYTES * (count * (length + COUNTED) + CELLS), 1, size)[0]
    free_slots = matrix_at(first.totals, 1, COUNTED)[0, TOTALS.free_slots]
    if np.isnan(coefficients):
        may_enter = free_slots >= 1.0 and outside > rules[0].tolerance * self_kernel
        if may_enter and size == 0 and self_kernel > 0.0:
            coefficients = 0.0
        elif may_enter and first.columns != 0:
            coefficients = _coefficients(matrix_at(first.inverse, size, first.height), z, theta)
        elif may_enter or not outside >= -KERNEL_ACCURACY * self_kernel:
            return ASKED, 0.0, 0.0
    found[0] = 0.0  # a row that is learned, or not, uses up what was found of it
    cells = first.work + BYTES * count * length
    before = matrix_at(cells + BYTES * CELLS, count, COUNTED)
    f, M, N = matrix_at(cells, 1, 1)[0], matrix_at(cells + BYTES, 1, 1), matrix_at(cells + 2 * BYTES, 1, 1)
    R, T = matrix_at(cells + 3 * BYTES, 1, 1), matrix_at(cells + 4 * BYTES, 1, 1)
    logarithms, leverages, outcome = 0.0, 0.0, PLAIN
    for o in range(count):
        table, row, own = tables[o], ledger[o], works[o]
        totals = matrix_at(table.totals, 1, COUNTED)[0]
        V, Z = matrix_at(table.V, period, width), matrix_at(table.Z, period, width)
        C, marks = matrix_at(table.C, period, period), matrix_at(table.marks, period, STEPS + outputs)
        for i in range(COUNTED):
            before[o, i] = totals[i]
        values = own[length - 1 - outputs : length - 1]  # f of all outputs
        f[0], M[0, 0], N[0, 0], R[0, 0], T[0, 0] = values[0], own[-1], 0.0, max(outside, 0.0), coefficients
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
            Z[pending, i] = own[i]
        mass, own[-1] = row.weight * row.inverse_form, row.inverse_form
        keep_row(1.0, row.weight, V, C, marks, pending, own)
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
    first.pending = pending + 1
    if place != 0:  # x | target, prediction, novelty, loss
        line, error = matrix_at(place, 1, len(x) + 4)[0], ledger[0].prediction - ledger[0].target
        for j in range(len(x)):
            line[j] = x[j]
        line[-4], line[-3], line[-2] = ledger[0].target, ledger[0].prediction, ledger[0].novelty
        line[-1] = min(error * error, 1e300)
    if outcome == ENTERED:
        first.pivot = R[0, 0]
        if size < first.room:
            outcome, first.size = TAKEN, size + 1
            last = matrix_at(first.inverse, size + 1, first.height)[size]  # (-theta, 1)/pivot
            for i in range(first.height):
                last[i] = -theta[i] / R[0, 0] if i < size else 0.0
            last[size] = 1.0 / R[0, 0]
            atoms, points = matrix_at(first.atoms, len(x), width), matrix_at(first.points, size + 1, len(x))
            for j in range(len(x)):
                atoms[j, size] = points[size, j] = x[j]
            for o in range(count):
                matrix_at(tables[o].Z, period, width)[pending, size] = R[0, 0]
                matrix_at(tables[o].V, period, width)[pending, size] = R[0, 0] / first.root
    return outcome, logarithms, leverages


@compiled_at_once
def let_wait(
    address: int,
    bound: float,
    eta: float,
    logarithms: float,
    leverages: float,
    line: int,
    line_size: int,
    lines: int,
) -> None:
    """From now on :func:`learn_alone` learns rows with targets up to a bound, as many as there are lines.

    With the totals of log(1 + w*q) and of the leverages, and the address of the record's next line; 0: none.
    """
    first = numba.carray(pointer_to(address), (1,), TABLE)[0]  # type: ignore[attr-defined]
    first.learned, first.taken, first.bound, first.eta = 0, 0, bound, eta
    first.logarithms, first.leverages = logarithms, leverages
    first.line, first.line_size, first.lines = line, line_size, lines


@compiled_at_once
def close(address: int) -> tuple[int, int, float, float]:
    """From now on no row may wait; rows that do, atoms among them, and the totals."""
    first = numba.carray(pointer_to(address), (1,), TABLE)[0]  # type: ignore[attr-defined]
    learned, taken = first.learned, first.taken
    first.learned, first.taken, first.lines = 0, 0, 0
    return learned, taken, first.logarithms, first.leverages


@compiled_at_once
def predict_alone(address: int, x: ReadVector) -> float:
    """:func:`predict_given` of a point; NaN where no row may wait, or points have other columns."""
    first = numba.carray(pointer_to(address), (1,), TABLE)[0]  # type: ignore[attr-defined]
    return predict_given(address, x) if len(x) == first.columns and first.lines > 0 else np.nan


@compiled_at_once
def learn_alone(address: int, x: ReadVector, target: float) -> int:
    """Learn a row of one target that was just predicted, and count it in the table; see :func:`learn`.

    Only of a Gaussian kernel, without coins, with a constant step. REFUSED: it was not learned.
    """
    first = numba.carray(pointer_to(address), (1,), TABLE)[0]  # type: ignore[attr-defined]
    if len(x) != first.columns or first.lines <= 0 or not -first.bound <= target <= first.bound:
        return REFUSED
    if first.size >= first.room and matrix_at(first.totals, 1, COUNTED)[0, TOTALS.free_slots] >= 1.0:
        return REFUSED  # an atom would be its caller's to append
    matrix_at(first.targets, 1, 1)[0, 0] = target
    outcome, logarithms, leverages = learn(address, 1.0, first.eta, 0.0, 1.0, x, first.line)
    if outcome > TAKEN:
        return REFUSED
    first.logarithms += logarithms
    first.leverages += leverages
    first.learned += 1
    first.taken += 1 if outcome == TAKEN else 0
    first.line += first.line_size
    first.lines -= 1
    return FULL if first.pending == first.period or first.lines == 0 else PLAIN
