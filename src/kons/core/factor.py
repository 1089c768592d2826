"""A lower-triangular factor that grows by rows, stored as row panels.

Rows ``[i*H, (i+1)*H)`` of L form panel i: a contiguous rectangle left of the diagonal, and the
*inverse* of the triangle on it. A solve is then two matrix products per panel, all on contiguous
memory, and the rectangles together are the packed triangle::

    L = [ D0           ]        v_i = inv(D_i) (b_i - R_i [v_0 ... v_{i-1}])
        [ R1  D1       ]
        [  R2    D2    ]

Right-hand sides are rows: one row of B for each point of a block, which is also the shape in which
they become new rows of L.

Appending never moves a number that is already stored, so truncation is free and a saved factor is
the factor, bit for bit. Panel boundaries are absolute row numbers: nothing depends on how the rows
arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kons.arrays import Matrix, ReadMatrix, Vector
from kons.compilation import compiled, compiled_sums
from kons.stored import Stored

__all__ = ["PANEL_HEIGHT", "PanelFactor", "apply_triangle"]

# Tall enough that a product per panel runs at full speed, small enough that the square inverses
# (n * H numbers in all) are a small part of the triangle (n^2 / 2).
PANEL_HEIGHT = 256


class PanelFactor:
    """L, with ``L^-1 b`` and ``L^-T b`` for many b, and appended rows.

    Memory n^2/2 + n*H/2 numbers; a solve with m right-hand sides costs n^2 m flops, an append of k
    rows copies k*n numbers.

    >>> factor = PanelFactor()
    >>> factor.append(np.empty((2, 0)), np.array([[2.0, 0.0], [1.0, 3.0]]))
    >>> factor.solve(np.array([[2.0, 4.0]]))
    array([[1., 1.]])
    """

    def __init__(self, height: int = PANEL_HEIGHT) -> None:
        self.height = height
        self.size: int = 0
        self._rectangles: list[Matrix] = []
        self._inverses: list[Matrix] = []

    def solve(self, B: Matrix) -> Matrix:
        """``L^-1 b`` for each row b of B (m x n), overwriting B and returning it."""
        for start, stop, rectangle, inverse in self._panels():
            part = B[:, start:stop]
            if start:
                part -= B[:, :start] @ rectangle.T
            part[:] = part @ inverse.T
        return B

    def solve_one(self, b: Vector) -> Vector:
        """``L^-1 b`` as a new vector, in plain loops: no second thread, and no call overhead of BLAS."""
        x = b.copy()
        for panel, inverse in enumerate(self._inverses):
            start = panel * self.height
            filled = min(self.height, self.size - start)
            if start:
                _subtract_product(self._rectangles[panel], x[:start], x[start : start + filled])
            apply_triangle(inverse, x[start : start + filled].copy(), x[start : start + filled])
        return x

    def solve_transposed(self, b: Vector | Matrix) -> Vector | Matrix:
        """``L^-T b`` of a vector, or of each row of a matrix, as a new array."""
        x = b.copy()
        for start, stop, rectangle, inverse in reversed(list(self._panels())):
            x[..., start:stop] = x[..., start:stop] @ inverse
            if start:
                x[..., :start] -= x[..., start:stop] @ rectangle
        return x

    def append(self, left: Matrix, corner: Matrix) -> None:
        """Append the k rows ``[left, corner]``: left k x n, corner k x k and lower triangular."""
        n = self.size
        taken = 0
        while taken < len(corner):
            panel, filled = divmod(self.size, self.height)
            self._open_panel(panel)
            start = panel * self.height
            stop = min(filled + len(corner) - taken, self.height)
            rows = slice(taken, taken + stop - filled)
            known = slice(0, min(start, n))
            within = slice(0, max(start - n, 0))
            rectangle = self._rectangles[panel][filled:stop]
            rectangle[:, known] = left[rows, known]
            rectangle[:, known.stop :] = corner[rows, within]
            # The inverse of [[D, 0], [E, F]] is [[D^-1, 0], [-F^-1 E D^-1, F^-1]].
            inverse = self._inverses[panel]
            F_inverse = _inverse_of_triangle(corner[rows, rows])
            inverse[filled:stop, filled:stop] = F_inverse
            inverse[filled:stop, stop:] = 0.0
            if filled:
                E = np.hstack([left[rows, start:n], corner[rows, within.stop : taken]])
                inverse[filled:stop, :filled] = -F_inverse @ (E @ inverse[:filled, :filled])
            taken = rows.stop
            self.size = n + taken

    def append_one(self, z: Vector, pivot: float) -> None:
        """:meth:`append` of one row ``[z, pivot]``, at less cost where the panel has room."""
        if self.size >= self.height:
            self.append(z[None], np.array([[pivot]]))
            return
        _append_to_inverse(self.first_inverse, z, pivot)
        self.size += 1

    @property
    def first_inverse(self) -> Matrix:
        """The inverse of the first diagonal block, H x H: all of ``L^-1`` while L has one panel.

        A loop that appends to it fills all H columns, and leaves :attr:`size` to its caller.
        """
        self._open_panel(0)
        return self._inverses[0]

    def truncate(self, size: int) -> None:
        """Forget all rows behind the first ``size``; the ones before are untouched."""
        panels = -(-size // self.height)
        del self._rectangles[panels:], self._inverses[panels:]
        self.size = size

    def mark(self) -> int:
        """How many rows there are, for :meth:`restore`."""
        return self.size

    def restore(self, mark: int) -> None:
        """Forget the rows appended since."""
        self.truncate(mark)

    def inverse_norm2(self) -> float:
        """The squared Frobenius norm of ``L^-1``, the trace of ``(L L^T)^-1``. Costs n^3."""
        return sum(
            float(np.sum(self.solve(np.eye(stop - start, self.size, start)) ** 2))
            for start, stop, _, _ in self._panels()
        )

    def panels(self) -> list[tuple[Matrix, Matrix]]:
        """Copies of the filled parts, (rectangle, inverse of the diagonal block) per panel."""
        return [(r.copy(), inverse.copy()) for _, _, r, inverse in self._panels()]

    def state(self) -> dict[str, Any]:
        """The panels as they are, boundaries included. A copy."""
        return {"height": self.height, "panels": self.panels()}

    def load_state(self, stored: Stored, *, size: int, **_: Any) -> None:
        """Take ``size`` saved rows, number by number: nothing is factored again."""
        stored.integer("height", at_least=self.height, at_most=self.height)
        panels = stored.pairs("panels", -(-size // self.height))
        stored.finish()
        self.truncate(0)
        for panel, (left, diagonal) in enumerate(panels):
            start = panel * self.height
            filled = min(self.height, size - start)
            rectangle = stored.checked(left, f"panels[{panel}][0]", filled, start)
            inverse = stored.checked(diagonal, f"panels[{panel}][1]", filled, filled)
            # In buffers of the full height: BLAS may round differently over other strides.
            self._open_panel(panel)
            self._rectangles[panel][:filled] = rectangle
            self._inverses[panel][:filled, :filled] = inverse
            self._inverses[panel][:filled, filled:] = 0.0
        self.size = size

    def _panels(self) -> Iterator[tuple[int, int, Matrix, Matrix]]:
        for i, start in enumerate(range(0, self.size, self.height)):
            rectangle = self._rectangles[i]
            filled = min(self.height, self.size - start)
            yield start, start + filled, rectangle[:filled], self._inverses[i][:filled, :filled]

    def _open_panel(self, panel: int) -> None:
        """Room for it, if there is none yet; each row is filled to its end when it comes."""
        if panel == len(self._inverses):
            self._rectangles.append(np.empty((self.height, panel * self.height)))
            self._inverses.append(np.empty((self.height, self.height)))


def _inverse_of_triangle(D: Matrix) -> Matrix:
    """By halves, down to a loop. NumPy only: SciPy's BLAS would bring a second pool of threads."""
    n = len(D)
    inverse = np.zeros((n, n))
    if n <= 32:
        _substitute_identity(np.ascontiguousarray(D), inverse)
        return inverse
    half = n // 2
    inverse[:half, :half] = _inverse_of_triangle(D[:half, :half])
    inverse[half:, half:] = _inverse_of_triangle(D[half:, half:])
    left = D[half:, :half] @ inverse[:half, :half]
    inverse[half:, :half] = -inverse[half:, half:] @ left
    return inverse


@compiled_sums
def apply_triangle(inverse: Matrix, b: Vector, x: Vector) -> None:
    """``x = inverse b`` with the leading rows of a lower triangle."""
    for i in range(len(x)):
        total = 0.0
        for j in range(i + 1):
            total += inverse[i, j] * b[j]
        x[i] = total


@compiled_sums
def _append_to_inverse(inverse: Matrix, z: Vector, pivot: float) -> None:
    """The inverse of a triangle gets the row that its new row ``[z, pivot]`` asks for: O(n^2)."""
    n = len(z)
    row = inverse[n]
    for j in range(len(row)):
        row[j] = 0.0
    for i in range(n):
        part = z[i] / pivot
        for j in range(i + 1):
            row[j] -= inverse[i, j] * part
    row[n] = 1.0 / pivot


@compiled_sums
def _subtract_product(rectangle: Matrix, known: Vector, x: Vector) -> None:
    """``x -= rectangle known``, with as many rows as x has."""
    for i in range(len(x)):
        total = 0.0
        for j in range(len(known)):
            total += rectangle[i, j] * known[j]
        x[i] -= total


@compiled
def _substitute_identity(D: ReadMatrix, inverse: Matrix) -> None:
    """The inverse of a small lower triangle, row by row, into an array of zeros."""
    for i in range(D.shape[0]):
        for k in range(i):
            for j in range(k + 1):
                inverse[i, j] -= D[i, k] * inverse[k, j]
        for j in range(i):
            inverse[i, j] /= D[i, i]
        inverse[i, i] = 1.0 / D[i, i]
