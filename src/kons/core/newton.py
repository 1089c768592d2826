"""Second-order steps in R^D for rows of explicit features: A whole, or a sketch of it.

Both play the replay of :mod:`kons.core.replay` on blocks of rows, and are asked alike: ``extend``, ``learn``,
``u`` and ``inverse_forms``, as :class:`kons.core.descent.Descent` is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.frequent_directions import FrequentDirections
from kons.core.ledger import SPAN_FIXED, TOTALS, Ledger, Rules
from kons.core.quadratic import Quadratic
from kons.core.replay import Derivatives, follow_all, replay
from kons.state import Array, Inner, Inners, Part, fields
from kons.stored import Stored

__all__ = ["Newton", "SketchedNewton"]


class Newton(Part):
    """``A = alpha*I + sum w z z^T`` over D features: one with K functions, or one for each. O(D^2) a row."""

    STATE = fields(_quadratics=Inners())

    def __init__(self, regularization: float, outputs: int, shared: bool) -> None:
        each = [outputs] if shared else [1] * outputs
        self._quadratics = [Quadratic(regularization, outputs=count) for count in each]

    def __len__(self) -> int:
        return len(self._quadratics[0])

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        for part in self._quadratics:
            part.extend(coordinates)

    @property
    def rows_left(self) -> int:
        """How many rows can be learned together."""
        return self._quadratics[0].rows_left

    def learn(self, rows: Ledger, Z: Matrix, rules: Rules, derivatives: int | Derivatives) -> None:
        """Predict and learn rows in order, filling the ledgers (K, m)."""
        norms = begin(rows, Z)
        shared = len(self._quadratics) < len(rows)
        for part, own in zip(self._quadratics, rows[None] if shared else rows[:, None], strict=True):
            block = part.meet(Z)
            replay(derivatives, own[0], span(rules), block.f[0], block.M, part.totals, R=norms)
            follow_all(own[0], own[1:], span(rules).packed, block.f[1:], block.M)
            part.absorb(own, block, np.empty((0, len(Z))))

    @property
    def u(self) -> Matrix:
        """The weights, (D, K). A copy."""
        return np.hstack([part.u for part in self._quadratics])

    def inverse_forms(self, Z: Matrix) -> Vector:
        """``z^T A^-1 z`` of each row, by the first A."""
        return self._quadratics[0].inverse_forms(Z)


class _Sketch(Part):
    """One function, and A by frequent directions."""

    STATE = fields(
        u=Array("features"),
        totals=Array(len(TOTALS), at_least=0.0, written="always"),
        sketch=Inner(),
    )

    def __init__(self, regularization: float, directions: int) -> None:
        self.u: Vector = np.zeros(0)
        self.totals: Vector = np.zeros(len(TOTALS))
        self.sketch = FrequentDirections(directions, regularization)

    def learn(self, rows: Ledger, Z: Matrix, rules: Rules, derivatives: int | Derivatives) -> None:
        V = self.sketch.solve(Z)
        replay(derivatives, rows, span(rules), Z @ self.u, Z @ V.T, self.totals, R=begin(rows, Z))
        self.u = self.u - rows["coefficient"] @ V
        inside = rows["weight"] > 0.0
        if inside.any():
            self.sketch.update(Z[inside] * np.sqrt(rows["weight"][inside])[:, None])


class SketchedNewton(Part):
    """``A = alpha*I + B^T B`` with at most 2l rows B for each of K functions: O(l D) a row.

    A block ends where a sketch may be full, and shrinks.
    """

    STATE = fields(_sketches=Inners())

    def __init__(self, regularization: float, outputs: int, directions: int) -> None:
        self._sketches = [_Sketch(regularization, directions) for _ in range(outputs)]
        self._most = 2 * directions

    def __len__(self) -> int:
        return len(self._sketches[0].u)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        for part in self._sketches:
            part.u = np.pad(part.u, (0, coordinates))
            part.sketch.widen(coordinates)

    @property
    def rows_left(self) -> int:
        """How many rows can be learned together."""
        return self._most - max(len(part.sketch) for part in self._sketches)

    def learn(self, rows: Ledger, Z: Matrix, rules: Rules, derivatives: int | Derivatives) -> None:
        """Predict and learn rows in order, filling the ledgers (K, m)."""
        for part, own in zip(self._sketches, rows, strict=True):
            part.learn(own, Z, rules, derivatives)

    @property
    def u(self) -> Matrix:
        """The weights, (D, K). A copy."""
        return np.stack([part.u for part in self._sketches], axis=1)

    @property
    def removed(self) -> float:
        """What the sketches took off a direction of their sums, at most."""
        return max(part.sketch.removed for part in self._sketches)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many features, which are the columns of the sketches."""
        super().load_state(stored, features=sizes["size"], width=sizes["size"])


def begin(rows: Ledger, Z: Matrix) -> Matrix:
    """Note the lengths of rows; what the features leave of the kernel, for the replay: nothing."""
    rows["norm2"] = rows["self_kernel"] = np.einsum("ij,ij->i", Z, Z)
    return np.zeros((len(Z), len(Z)))


def span(rules: Rules) -> Rules:
    """Every row enters A, and none becomes an atom."""
    return rules._replace(entry=SPAN_FIXED)
