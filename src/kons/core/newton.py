"""Second-order steps in R^D for rows of explicit features: A whole, or a sketch of it.

Each is one A and its functions, which meets and absorbs blocks of rows around the replay of
:mod:`kons.core.replay`. They are asked as :class:`kons.core.descent.Descent` is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.frequent_directions import FrequentDirections
from kons.core.ledger import SPAN_FIXED, TOTALS, Ledger, Rules
from kons.core.quadratic import Block, Quadratic
from kons.core.replay import NO_MATRIX, Slopes, follow_all, replay
from kons.state import Array, Inner, Part, fields
from kons.stored import Stored

__all__ = ["Newton", "SketchedNewton"]


class _Steps(Part):
    """What both do with rows."""

    def learn(self: Any, ledgers: Ledger, Z: Matrix, rules: Rules, derivatives: Slopes) -> None:
        """Predict and learn rows in order, filling the ledgers (K, m)."""
        rows, nothing = ledgers[0], np.zeros((len(Z), len(Z)))  # is left of the kernel outside the features
        ledgers["norm2"] = ledgers["self_kernel"] = np.einsum("ij,ij->i", Z, Z)
        rules = rules._replace(entry=SPAN_FIXED)  # every row enters A, and none becomes an atom
        with np.errstate(over="ignore", invalid="ignore"):  # the replay refuses what is no number
            block = self.meet(Z)
        replay(derivatives, rows, rules, block.f[0], block.M, self.totals, R=nothing)
        follow_all(rows, ledgers[1:], rules.packed, block.f[1:], block.M)
        self.absorb(ledgers, block, nothing[:0])

    def load_state(self: Any, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many features as there are."""
        super().load_state(stored, **sizes | {"size": len(self), "width": len(self)})


class Newton(_Steps, Quadratic):
    """All of A, for K functions."""


class SketchedNewton(_Steps):
    """``A = alpha*I + B^T B`` with fewer than 2l rows B, by frequent directions, and one function.

    O(l D) a row. A block ends where the sketch may be full, and shrinks.
    """

    STATE = fields(u=Array("size"), totals=Array(len(TOTALS), at_least=0.0, written="always"), sketch=Inner())

    def __init__(self, regularization: float, directions: int) -> None:
        self.u: Vector = np.zeros(0)
        self.totals: Vector = np.zeros(len(TOTALS))
        self.sketch: FrequentDirections = FrequentDirections(directions, regularization)

    def __len__(self) -> int:
        return len(self.u)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        self.u = np.append(self.u, np.zeros(coordinates))
        self.sketch.widen(coordinates)

    @property
    def rows_left(self) -> int:
        """How many rows can be learned together."""
        return 2 * self.sketch.directions - len(self.sketch)

    def meet(self, Z: Matrix) -> Block:
        """What the replay of these rows starts from; V is ``A^-1 z`` here."""
        V = self.sketch.solve(Z)
        return Block(Z, V, NO_MATRIX, Z @ V.T, (Z @ self.u)[None])

    def absorb(self, ledgers: Ledger, block: Block, new: Matrix) -> None:
        """Take in a replayed block."""
        (rows,) = ledgers
        self.u = self.u - rows["coefficient"] @ block.V
        inside = rows["weight"] > 0.0
        if inside.any():
            self.sketch.update(block.Z[inside] * np.sqrt(rows["weight"][inside])[:, None])
