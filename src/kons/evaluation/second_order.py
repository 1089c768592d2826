"""What the linear baselines share: A^-1 by rank-one updates, and units that follow the data.

In raw units (``standardize=True``) they work on standardized features

    z = ((x - centre)/scale, 1)

with the mean and deviation known when 1, 2, 4, ..., 8192, and then any multiple of 8192, rows were learned.
At each of these the sums are carried over to the new units exactly (an affine map of z) and A is factored
afresh, so that the one regularization always means the same and rounding does not pile up.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Matrix,
    ReadMatrix,
    ReadVector,
    Vector,
    as_points,
    as_row,
    require_flag,
    require_number,
)
from kons.compilation import compiled_sums
from kons.evaluation.baselines import Baseline
from kons.learners.queue import LateTargets, Shapes
from kons.state import Array, Field, Inner, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["LARGEST", "SecondOrder", "Standardization", "Stretch", "absorb", "count", "dot", "locate"]

# Units are chosen anew at powers of two up to this many rows, and at its multiples.
PERIOD = 8192
# Larger features count as this: their squares must stay finite.
LARGEST = 1e100


class Standardization(Part):
    """The running mean and deviation of columns (Welford), and the centre and scale in use."""

    STATE = fields(
        moments=Array(2, "columns", written="always"),
        centre=Array("columns"),
        scale=Array("columns", at_least=5e-324),
    )

    def __init__(self, width: int) -> None:
        self.moments = np.zeros((2, width))  # the mean, and the sum of squares around it
        self.centre = np.zeros(width)
        self.scale = np.ones(width)

    def renew(self, rows: int) -> tuple[Vector, Vector]:
        """Use what is known now. Returns r, h with old = r*new + h for standardized values."""
        deviation = np.sqrt(self.moments[1] / rows)
        # A column that has been constant has no scale yet.
        scale = np.where((deviation > 0.0) & np.isfinite(deviation), deviation, 1.0)
        ratio, shift = scale / self.scale, (self.moments[0] - self.centre) / self.scale
        self.centre, self.scale = self.moments[0].copy(), scale
        return ratio, shift

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of as many columns."""
        super().load_state(stored, columns=len(self.centre))


class Stretch(NamedTuple):
    """Rows to predict, and rows to learn: row j after the prediction of row ``lead`` + j."""

    points: Any
    learned: Any
    targets: Any
    lead: int = 0
    same: bool = False
    """Whether the rows to learn are those to predict."""


class _Width(Field):
    """How many features a row has, from the first row on, when there are matrices for them."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> int | None:
        width = stored.width(key, vectors=True)
        if width is not None:
            part._begin(width)
        sizes.update(width=width or 0, size=len(part._inverse))
        return width


class SecondOrder(Baseline):
    """What the two share: the width, the units, A^-1, and when to renew them."""

    STATE = fields(
        _width=_Width(),
        _units=Inner(),
        _inverse=Array("size", "size", written="always"),
        _sums=Array("size", "size", written="always"),
    )

    def __init__(self, regularization: float, standardize: bool) -> None:
        super().__init__()
        self.regularization = require_number(regularization, "regularization", above=0.0)
        self.standardize = require_flag(standardize, "standardize")
        self._width: int | None = None
        self._units = Standardization(0)
        self._inverse: Matrix = np.empty((0, 0))
        self._sums: Matrix = np.empty((0, 0))  # A without its regularization

    def _begin(self, width: int) -> None:
        self._width = width
        self._inverse = np.eye(width + 1) / self.regularization
        self._sums = np.zeros((width + 1, width + 1))

    @abstractmethod
    def _run(self, rows: Stretch, i: int, j: int, stop: int, out: Any) -> tuple[int, int]:
        """Go on from prediction i and learned row j, until ``stop`` rows are learned or the end."""

    @abstractmethod
    def _centre(self, row: Vector, target: Any) -> None:
        """Centre the units on the first row of all, which has no other to be compared with."""

    @abstractmethod
    def _renew(self, rows: int) -> None:
        """Change to the units known now."""

    @abstractmethod
    def _nothing(self, rows: int) -> NDArray[Any]:
        """The predictions before anything is known."""

    def _play(self, points: Any, learned: Any | None, targets: NDArray[Any], lead: int) -> NDArray[Any]:
        if self._width is None:
            self._begin((points if learned is None or len(points) else learned).shape[1])
        if self.standardize:
            points = np.clip(points, -LARGEST, LARGEST)
            learned = None if learned is None else np.clip(learned, -LARGEST, LARGEST)
        same, learned = learned is None, points if learned is None else learned
        rows = Stretch(points, learned, targets, lead, same)
        out = self._nothing(len(points))
        i, j, seen = 0, 0, self._rows_seen
        if self.standardize and seen == 0 and len(targets):
            self._centre(learned[0], targets[0])
            i = min(lead + 1, len(points))  # predicted with nothing known
        while i < len(points) or j < len(targets):
            renewal = _next_renewal(seen) if self.standardize else seen + len(targets) + 1
            i, now = self._run(rows, i, j, j + renewal - seen, out)
            seen, j = seen + now - j, now
            if seen == renewal:
                self._renew(seen)
        return out

    def _carry(self, ratio: Vector, shift: Vector) -> tuple[Matrix, Matrix]:
        """Take A to new units, old = ratio*new + shift; returns the map of z to the old units, inverted."""
        backward = np.diag(np.append(1.0 / ratio, 1.0))
        backward[:-1, -1] = -shift / ratio
        forward = np.diag(np.append(ratio, 1.0))
        forward[:-1, -1] = shift
        sums: Matrix = backward @ self._sums @ backward.T
        self._sums = 0.5 * (sums + sums.T)
        self._inverse = np.asarray(
            np.linalg.inv(self._sums + self.regularization * np.eye(len(sums))), dtype=np.float64
        )
        return forward, backward

    def _as_points(self, X: Any) -> Matrix:
        return as_points(X, width=self._width)

    def _as_point(self, x: Any) -> Matrix:
        return as_row(x, width=self._width)

    row_to_keep = LateTargets.row_to_keep

    def kept_shapes(self) -> Shapes:
        """A row of numbers."""
        return ((None,),)


def _next_renewal(rows: int) -> int:
    """The next number of rows after which the units change."""
    return 1 << rows.bit_length() if rows < PERIOD else (rows // PERIOD + 1) * PERIOD


@compiled_sums
def locate(
    x: ReadVector,
    centre: ReadVector,
    scale: ReadVector,
    inverse: ReadMatrix,
    z: Vector,
    v: Vector,
) -> float:
    """Fill z, the standardized row with its 1, and v = A^-1 z; returns z^T v."""
    width = len(x)
    for k in range(width):
        z[k] = (x[k] - centre[k]) / scale[k]
    z[width] = 1.0
    s = 0.0
    for k in range(width + 1):
        total = 0.0
        for m in range(width + 1):
            total += inverse[k, m] * z[m]
        v[k] = total
        s += z[k] * total
    return s


@compiled_sums
def dot(a: ReadVector, b: ReadVector) -> float:
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled_sums
def absorb(inverse: Matrix, sums: Matrix, z: ReadVector, v: ReadVector, weight: float, s: float) -> None:
    """A <- A + weight z z^T, with v = A^-1 z and s = z^T v (Sherman and Morrison)."""
    factor = weight / (1.0 + weight * s)
    for k in range(len(z)):
        a, b = factor * v[k], weight * z[k]
        for m in range(len(z)):
            inverse[k, m] -= a * v[m]
            sums[k, m] += b * z[m]


@compiled_sums
def count(moments: Matrix, column: int, value: float, rows: int) -> None:
    """Welford: the mean, and the sum of squares around it, with the ``rows``-th value."""
    change = value - moments[0, column]
    moments[0, column] += change / rows
    moments[1, column] += change * (value - moments[0, column])
