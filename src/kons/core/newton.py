"""Second-order steps in R^D for rows of explicit features: A whole, or a sketch of it.

A part is one A and its functions: :class:`kons.core.quadratic.Quadratic`, or :class:`SketchedQuadratic` here,
which meets and absorbs blocks of rows alike. :class:`Newton` plays the replay of :mod:`kons.core.replay` over
each, and is asked as :class:`kons.core.descent.Descent` is: ``extend``, ``learn`` and ``u``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.frequent_directions import FrequentDirections
from kons.core.ledger import SPAN_FIXED, TOTALS, Ledger, Rules
from kons.core.quadratic import Block, Quadratic
from kons.core.replay import NO_MATRIX, Slopes, follow_all, replay
from kons.state import Array, Inner, Inners, Part, fields
from kons.stored import Stored

__all__ = ["Newton", "SketchedQuadratic"]


class SketchedQuadratic(Part):
    """``A = alpha*I + B^T B`` with fewer than 2l rows B, by frequent directions, and one function.

    O(l D) a row. A block ends where the sketch may be full, and shrinks.
    """

    STATE = fields(
        u=Array("features", 1), totals=Array(len(TOTALS), at_least=0.0, written="always"), sketch=Inner()
    )

    def __init__(self, regularization: float, directions: int) -> None:
        self.u: Matrix = np.zeros((0, 1))
        self.totals: Vector = np.zeros(len(TOTALS))
        self.sketch: FrequentDirections = FrequentDirections(directions, regularization)

    def __len__(self) -> int:
        return len(self.u)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        self.u = np.pad(self.u, ((0, coordinates), (0, 0)))
        self.sketch.widen(coordinates)

    @property
    def rows_left(self) -> int:
        """How many rows can be learned together."""
        return 2 * self.sketch.directions - len(self.sketch)

    def meet(self, Z: Matrix) -> Block:
        """What the replay of these rows starts from; V is ``A^-1 z`` here."""
        V = self.sketch.solve(Z)
        return Block(Z, V, NO_MATRIX, Z @ V.T, (Z @ self.u).T)

    def absorb(self, ledgers: Ledger, block: Block, new: Matrix) -> None:
        """Take in a replayed block."""
        (rows,) = ledgers
        self.u = self.u - (rows["coefficient"] @ block.V)[:, None]
        inside = rows["weight"] > 0.0
        if inside.any():
            self.sketch.update(block.Z[inside] * np.sqrt(rows["weight"][inside])[:, None])

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many features, which are the columns of the sketch."""
        super().load_state(stored, features=sizes["size"], width=sizes["size"])


class Newton(Part):
    """Steps of second order over D features: one A with K functions, or one for each."""

    STATE = fields(parts=Inners())

    def __init__(self, parts: Sequence[Quadratic | SketchedQuadratic]) -> None:
        self.parts: Any = parts

    def __len__(self) -> int:
        return len(self.parts[0])

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        for part in self.parts:
            part.extend(coordinates)

    @property
    def rows_left(self) -> int:
        """How many rows can be learned together."""
        return min(int(part.rows_left) for part in self.parts)

    def learn(self, rows: Ledger, Z: Matrix, rules: Rules, derivatives: Slopes) -> None:
        """Predict and learn rows in order, filling the ledgers (K, m)."""
        rows["norm2"] = rows["self_kernel"] = np.einsum("ij,ij->i", Z, Z)
        nothing = np.zeros((len(Z), len(Z)))  # is left of the kernel outside the features
        rules = rules._replace(entry=SPAN_FIXED)  # every row enters A, and none becomes an atom
        shared = len(self.parts) < len(rows)
        for part, own in zip(self.parts, rows[None] if shared else rows[:, None], strict=True):
            with np.errstate(over="ignore", invalid="ignore"):  # the replay refuses what is no number
                block = part.meet(Z)
            replay(derivatives, own[0], rules, block.f[0], block.M, part.totals, R=nothing)
            follow_all(own[0], own[1:], rules.packed, block.f[1:], block.M)
            part.absorb(own, block, np.empty((0, len(Z))))

    @property
    def u(self) -> Matrix:
        """The weights, (D, K). A copy."""
        return np.hstack([part.u for part in self.parts])

    def inverse_forms(self, Z: Matrix) -> Vector:
        """``z^T A^-1 z`` of each row, by the first A, a whole one."""
        return np.asarray(self.parts[0].inverse_forms(Z))

    @property
    def removed(self) -> float:
        """What sketches took off a direction of their sums, at most."""
        return max(float(part.sketch.removed) for part in self.parts)
