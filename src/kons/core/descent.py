"""First-order steps in R^D, with a curvature of one number, or one number a coordinate: O(D) a row.

::

    y_hat = clip(u^T z, -C, C)      h = u^T z - y_hat      q = z^T A^-1 z
    u <- u - (h/q) A^-1 z                                  into the functions with a value in [-C, C] at z
    g = loss'(y_hat)    G = g z     A and the velocity m take G in
    u <- u - eta A^-1 m

    ==========  ============================================  ================================
    none        A = alpha*I                                   online gradient descent
    scaled      A = alpha*max |z|^2*I                         the same, its step in units of k
    norm        A = (alpha + (sum |G|^2)^p) I                 AdaGrad-Norm
    diagonal    A = alpha*I + diag(sum G^2)^p                 AdaGrad (p = 1/2)
    ... with a discount b2: sum -> (1 - b2) sum b2^age / (1 - b2^t)      RMSprop
    ... with a momentum b1: m = (1 - b1) sum b1^age G / (1 - b1^t)       Adam; else m = G
    ==========  ============================================  ================================

The update of :mod:`kons.core.replay` with w = 0, whose A changes by itself. Then, with a radius, u is
projected on the ball.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, inner_sums
from kons.core.entry import predict
from kons.core.ledger import Entries, Ledger, PackedRules, Rules
from kons.core.replay import Slopes, check_sound, weigh
from kons.losses.builtin import slope_of
from kons.state import Array, Count, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["DESCENTS", "Descent", "Settings"]

#: Curvatures by their words.
DESCENTS = {"none": 0, "scaled": 1, "norm": 2, "diagonal": 3}
NONE, SCALED, NORM, DIAGONAL = DESCENTS.values()


class Settings(NamedTuple):
    """What the rows do not change."""

    kind: int
    regularization: float
    power: float = 0.5
    discount: float = 1.0
    momentum: float = 0.0
    radius: float = np.inf


class Weights(NamedTuple):
    """What loops read and write of one function: see the module."""

    u: Vector
    squares: Vector
    velocity: Vector
    inverse: Vector
    """The diagonal of A^-1."""


@inner_sums
def product(a: Vector, b: Vector) -> float:
    """``a^T b``."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@inner_sums
def form(z: Vector, inverse: Vector) -> float:
    """``z^T A^-1 z``."""
    total = 0.0
    for i in range(len(z)):
        total += z[i] * z[i] * inverse[i]
    return total


@compiled
def invert(settings: Settings, rows: int, f: Weights) -> None:
    """A^-1 after so many rows."""
    alpha, power, discount = settings.regularization, settings.power, settings.discount
    squares, inverse = f.squares, f.inverse
    part = 1.0 if discount == 1.0 or rows == 0 else 1.0 - discount**rows
    if settings.kind == DIAGONAL:
        for i in range(len(inverse)):
            mean = squares[i] / part
            inverse[i] = 1.0 / (alpha + (np.sqrt(mean) if power == 0.5 else mean**power))
        return
    A = alpha
    if settings.kind == NORM:
        A += (squares[0] / part) ** power
    elif settings.kind == SCALED and squares[0] > 0.0:
        A *= squares[0]
    inverse[:] = 1.0 / A


@compiled
def meet(t: int, rows: Entries, rules: PackedRules, z: Vector, f: Weights) -> float:
    """Predict row t; where its slope is looked at."""
    row = rows[t]
    row.self_kernel = row.norm2 = product(z, z)
    row.novelty = form(z, f.inverse)
    predict(t, rows, rules, product(f.u, z), row.novelty)
    return float(row.prediction)


@compiled
def step(t: int, rows: Entries, settings: Settings, seen: int, z: Vector, f: Weights) -> bool:
    """Project and learn row t, weighed, behind so many ``seen``. False: f or its slope is not finite."""
    row, kind, discount, momentum = rows[t], settings.kind, settings.discount, settings.momentum
    u, squares, velocity, inverse = f.u, f.squares, f.velocity, f.inverse
    g, eta = row.slope, row.step_size
    if not np.isfinite(row.overshoot + row.inverse_form + g + g * g * row.norm2):
        return False
    if row.overshoot != 0.0 and row.inverse_form > 0.0:
        pull = row.overshoot / row.inverse_form
        for i in range(len(u)):
            u[i] -= pull * inverse[i] * z[i]
    fresh = 1.0 if discount == 1.0 else 1.0 - discount
    if kind == DIAGONAL:
        for i in range(len(u)):
            squares[i] = discount * squares[i] + fresh * (g * z[i]) ** 2
    elif kind == NORM:
        squares[0] = discount * squares[0] + fresh * g * g * row.norm2
    elif kind == SCALED:
        squares[0] = max(squares[0], row.norm2)
    if kind != NONE:
        invert(settings, seen + 1, f)
    eta /= 1.0 - momentum ** (seen + 1)
    for i in range(len(u)):
        velocity[i] = momentum * velocity[i] + (1.0 - momentum) * (g * z[i])
        u[i] -= eta * inverse[i] * velocity[i]
    norm2 = product(u, u) if settings.radius < np.inf else 0.0
    if norm2 > settings.radius * settings.radius:
        for i in range(len(u)):
            u[i] *= settings.radius / np.sqrt(norm2)
    return True


@compiled
def descend(
    code: int, rows: Entries, rules: PackedRules, settings: Settings, seen: int, Z: Matrix, f: Weights
) -> int:
    """Rows with a built-in loss. Returns how many there were, or -1 - t if row t failed."""
    for t in range(len(rows)):
        at = meet(t, rows, rules, Z[t], f)
        weigh(t, rows, rules, slope_of(code, at, rows[t].target), 0.0)
        if not step(t, rows, settings, seen + t, Z[t], f):
            return -1 - t
    return len(rows)


class Descent(Part):
    """u, the squares and the velocity of a function over D features: see the module. Memory 4 D numbers."""

    STATE = fields(
        rows=Count(),
        u=Array("size", written="always"),
        squares=Array("squares", at_least=0.0, written="always"),
        velocity=Array("size", written="always"),
    )
    #: As many as come.
    rows_left = 1 << 30

    def __init__(self, settings: Settings) -> None:
        self.settings: Settings = settings
        self.rows: int = 0
        self.u: Vector = np.zeros(0)
        self.squares: Vector = np.zeros(int(settings.kind != DIAGONAL))
        self.velocity: Vector = self.u
        self._inverse: Vector = self.u

    def __len__(self) -> int:
        return len(self.u)

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        for name in ("u", "velocity", "squares")[: 3 if self.settings.kind == DIAGONAL else 2]:
            setattr(self, name, np.append(getattr(self, name), np.zeros(coordinates)))
        self._invert()

    def project(self, Q: Matrix) -> None:
        """Move to other coordinates, u -> Q u; not with a number a coordinate."""
        self.u, self.velocity = Q @ self.u, Q @ self.velocity
        self._invert()

    def _invert(self) -> None:
        self._inverse = np.empty(len(self))
        invert(self.settings, self.rows, self._weights())

    def _weights(self) -> Weights:
        return Weights(self.u, self.squares, self.velocity, self._inverse)

    def learn(self, ledgers: Ledger, Z: Matrix, rules: Rules, derivatives: Slopes) -> None:
        """Predict and learn rows in order, filling the ledger, one of one."""
        rows, packed, self._inverse = ledgers[0], rules.packed, self._inverse.copy()  # a mark may hold it
        settings, f = self.settings, self._weights()
        if isinstance(derivatives, int):
            check_sound(descend(derivatives, rows, packed, settings, self.rows, Z, f), rows)
        else:
            for t, z in enumerate(Z):
                at = meet(t, rows, packed, z, f)
                weigh(t, rows, packed, *derivatives(at, float(rows[t]["target"])))
                check_sound(t if step(t, rows, settings, self.rows + t, z, f) else -1 - t, rows)
        self.rows += len(Z)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many features as there are."""
        super().load_state(stored, **sizes | {"size": len(self), "squares": len(self.squares)})

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self._invert()
