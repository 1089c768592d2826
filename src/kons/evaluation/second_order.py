"""What the linear baselines share: the core's second-order state on features whose units follow the data.

In raw units (``standardize=True``) they work on standardized features

    z = ((x - centre)/scale, 1)

with the mean and deviation known when 1, 2, 4, ..., 8192, and then any multiple of 8192, rows were learned.
At each of these the sums are carried over to the new units exactly (an affine map of z) and A is factored
afresh, so that the one regularization always means the same and rounding does not pile up.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Integers,
    Matrix,
    ReadIntegers,
    ReadMatrix,
    ReadVector,
    Vector,
    as_points,
    as_row,
    require_flag,
    require_number,
)
from kons.compilation import compiled_sums
from kons.core.quadratic_loops import STEPS, end_period, fit_rows, keep_row, predict_row, take_in_rows
from kons.core.sequential import Sequential, no_factor
from kons.evaluation.baselines import Baseline
from kons.learners.late import LateTargets
from kons.learners.queue import Kept, Shapes
from kons.losses.builtin import implicit_slope
from kons.state import Array, Inner, Part, Sizes, Width, fields
from kons.stored import Stored

__all__ = ["LARGEST", "OTHERS", "SecondOrder", "Standardization"]

# Units are chosen anew at powers of two up to this many rows, and at its multiples.
PERIOD = 8192
# Larger features count as this: their squares must stay finite.
LARGEST = 1e100
# Of log-odds, of which there is an exponential.
LARGEST_ODDS = 300.0
# Rows of the units.
MEAN, SQUARES, CENTRE, SCALE = range(4)
# Of compiled loops, instead of how many labels are known: targets are numbers.
NUMBERS = -1
# The rows to learn are not those to predict.
OTHERS = -1
# The point that was predicted since the last row was learned, before there is one.
NOBODY = -2


class Standardization(Part):
    """The running mean and deviation of columns (Welford), and the centre and scale in use.

    ``values`` holds the mean, the sum of squares around it, the centre and the scale, a column each.
    """

    STATE = fields(values=Array(4, "columns", written="always"))

    def __init__(self, width: int) -> None:
        self.values: Matrix = np.zeros((4, width))
        self.values[SCALE] = 1.0

    def renew(self, rows: int) -> tuple[Vector, Vector]:
        """Use what is known now. Returns r, h with old = r*new + h for standardized values."""
        mean, squares, centre, scale = self.values
        deviation = np.sqrt(squares / rows)
        # A column that has been constant, but for rounding, has no scale yet.
        rounding = 16.0 * np.finfo(np.float64).eps * np.abs(mean)
        new = np.where((deviation > rounding) & np.isfinite(deviation), deviation, 1.0)
        ratio, shift = new / scale, (mean - centre) / scale
        centre[:], scale[:] = mean, new
        return ratio, shift

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of as many columns."""
        super().load_state(stored, columns=self.values.shape[1])

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if not (self.values[SCALE] > 0.0).all():
            raise stored.error("a scale is not positive")


class SecondOrder(Baseline):
    """What the two share: the width, the units, the quadratic in them, and when to renew them."""

    STATE = fields(_width=Width(), _units=Inner(make=lambda own: own._units_to_load()))
    accepts = "vectors"
    _known = NUMBERS

    def __init__(self, regularization: float, standardize: bool) -> None:
        super().__init__()
        self.regularization: float = require_number(regularization, "regularization", above=0.0)
        self.standardize: bool = require_flag(standardize, "standardize")
        self._width: int | None = None
        self._units = Standardization(0)
        self._quadratic = Sequential(np.empty((0, 0)), outputs=abs(self._known))
        self._b: Matrix = np.empty((0, 0))  # the sum of z y, of numbers

    def _begin(self, width: int) -> None:
        self._width = width
        # Behind the features are the targets, where they are numbers.
        self._units = Standardization(width + (self._known == NUMBERS))
        self._quadratic = Sequential(self.regularization * np.eye(width + 1), self._quadratic.outputs)

    def _units_to_load(self) -> Standardization:
        if self._width is not None:
            self._begin(self._width)
        return self._units

    @abstractmethod
    def _renew(self, rows: int) -> None:
        """Change to the units known now."""

    def _expect(self, rows: Matrix, targets: Vector) -> None:
        """These are about to be learned."""

    def _play(self, points: Any, rows: Any | None, targets: NDArray[Any], known: Integers) -> NDArray[Any]:
        same, rows = rows is None, points if rows is None else rows
        if self._width is None:
            self._begin((points if len(points) else rows).shape[1])
        self._expect(rows, targets)
        out = np.zeros((len(points), 2))
        i, j, seen = 0, 0, self.rows_seen
        if seen == 0 and len(targets) and self.standardize:
            # The first row of all has no other to be compared with; what came before it was predicted as 0.
            first = np.append(rows[0], targets[0])[: self._units.values.shape[1]]
            self._units.values[CENTRE] = np.clip(first, -LARGEST, LARGEST)
            i = int(np.searchsorted(known, 1)) if self._known == NUMBERS else 0
        while i < len(points) or j < len(targets):
            end, stop = len(points), len(targets)
            left = _next_renewal(seen + j) - seen - j if self.standardize else stop + 1
            renews = left <= stop - j
            if renews:
                stop = j + left
                end = max(int(np.searchsorted(known, stop)), i)
            shift = i - j if same else OTHERS
            given = points[i:end], rows[j:stop], targets[j:stop], known[i:end] - j, out[i:end]
            self._run(*given, shift, seen + j, self.standardize)
            i, j = end, stop
            if renews:
                self._renew(seen + j)
        return out.T

    def _run(self, *rows: Any) -> None:
        """Predict and learn rows in the units of now: the last arguments of :func:`_rows`."""
        A = self._quadratic
        A.pending, self._known, sound = _rows(
            *A.arrays(), A.pending, self._known, self._b, self._units.values, *rows
        )
        if not sound:
            raise no_factor()

    def _carry(self, ratio: Vector, shift: Vector) -> Matrix:
        """Take A to new units, old = ratio*new + shift; returns the map of z to the new ones."""
        backward = np.diag(np.append(1.0 / ratio, 1.0))
        backward[:-1, -1] = -shift / ratio
        self._quadratic.map_coordinates(backward)
        return backward

    def _foresee(self, points: Any) -> NDArray[Any]:
        out = np.zeros((len(points), 2))
        if self._width is not None:
            none = np.zeros(len(points), dtype=np.int64)
            self._run(points, points[:0], np.empty(0), none, out, OTHERS, 0, False)
        return out.T

    def _as_points(self, X: Any) -> Matrix:
        return as_points(X, width=self._width)

    def _as_point(self, x: Any) -> Matrix:
        return as_row(x, width=self._width)

    def row_to_keep(self, x: Any) -> Kept:
        """The point, of numbers."""
        return LateTargets.row_to_keep(self, x)

    def kept_shapes(self) -> Shapes:
        """That of a point."""
        return LateTargets.kept_shapes(self)


def _next_renewal(rows: int) -> int:
    """The next number of rows after which the units change."""
    return 1 << rows.bit_length() if rows < PERIOD else (rows // PERIOD + 1) * PERIOD


@compiled_sums
def _rows(
    prior: Matrix,
    S: Matrix,
    L: Matrix,
    base: Matrix,
    Z: Matrix,
    V: Matrix,
    C: Matrix,
    marks: Matrix,
    pending: int,
    known: int,
    b: Matrix,
    units: Matrix,
    points: ReadMatrix,
    learned: ReadMatrix,
    targets: ReadVector,
    before: ReadIntegers,
    out: Matrix,
    shift: int,
    seen: int,
    counts: bool,
) -> tuple[int, int, bool]:
    """Predict all points, and learn rows, ``before[i]`` of them before point i; the quadratic is changed.

    ``out`` has the prediction of each point, or the code of its label and the probability of the code 1.
    Row j is point j - ``shift``, unless they are OTHERS. ``seen`` rows came before; with ``counts`` they are
    in the moments, and these get there. Returns what is pending and known, and whether A had its factors.
    """
    n, outputs = base.shape
    width, centre, scale = n - 1, units[CENTRE], units[SCALE]
    work = np.empty(2 * n + len(Z) + outputs + 1)
    z, f = work[:n], work[2 * n + len(Z) :]
    i, j, met = 0, 0, NOBODY
    while i < len(points) or j < len(targets):
        learns = j < len(targets) and (i >= len(points) or j < before[i])
        row = learned[j] if learns else points[i]
        if not (learns and shift >= 0 and met == j - shift):
            for k in range(width):
                z[k] = min(max((row[k] - centre[k]) / scale[k], -LARGEST), LARGEST)
            z[width] = 1.0
            predict_row(len(L), L, base, V, C, marks, pending, work)
        q = max(work[-1], 0.0)
        if not learns:
            if known == NUMBERS:
                # z^T (A + z z^T)^-1 b = f/(1 + q)
                out[i, 0] = centre[width] + scale[width] * f[0] / (1.0 + q)
            elif known == 0:
                out[i, 0], out[i, 1] = -1.0, 0.5
            for label in range(1, known):
                if f[label] > f[int(out[i, 0])]:
                    out[i, 0] = label
            if known > 1:
                # p_1/(p_0 + p_1) with p = 1/(1 + exp(-f)), of numbers that stay finite
                low, high = (
                    min(max(f[0], -LARGEST_ODDS), LARGEST_ODDS),
                    min(max(f[1], -LARGEST_ODDS), LARGEST_ODDS),
                )
                out[i, 1] = (1.0 + np.exp(-low)) / (2.0 + np.exp(-low) + np.exp(-high))
            met = i
            i += 1
            continue
        weight = 1.0
        if known == NUMBERS:
            y = (targets[j] - centre[width]) / scale[width]
            marks[pending, STEPS] = (f[0] - y) / (1.0 + q)
            for k in range(n):
                b[k, 0] += y * z[k]
        else:
            while known <= targets[j]:
                # Not seen in so many rows: as rare as one more row would make it.
                f[known] = -np.log(seen + j + 1.0)
                for k in range(n):
                    base[k, known] = f[known] * L[width, k]
                known += 1
            weight = 0.0
            for label in range(outputs):
                g = 0.0
                if label < known:
                    g = implicit_slope(f[label], 1.0 if label == targets[j] else -1.0, q)
                marks[pending, STEPS + label] = g
                weight = max(weight, abs(g) * (1.0 - abs(g)))  # the largest curvature, p (1 - p)
        keep_row(1.0, weight, V, C, marks, pending, work)
        for k in range(n):
            Z[pending, k] = z[k]
        pending += 1
        if pending == len(Z):
            if known == NUMBERS:
                sound = take_in_rows(prior, S, L, Z, marks, pending, 1.0)
                fit_rows(L, b, base)
            else:
                sound = end_period(prior, S, L, base, Z, V, C, marks, pending, 1.0)
            if not sound:
                return pending, known, False
            pending = 0
        if counts:
            for k in range(units.shape[1]):  # Welford
                value = min(max(row[k], -LARGEST), LARGEST) if k < width else targets[j]
                change = value - units[MEAN, k]
                units[MEAN, k] += change / (seen + j + 1.0)
                units[SQUARES, k] += change * (value - units[MEAN, k])
        met = NOBODY
        j += 1
    return pending, known, True
