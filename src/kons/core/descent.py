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

from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.compilation import compiled, inner, inner_sums
from kons.core.ledger import Entries, Ledger, PackedRules, Rules
from kons.core.replay import Derivatives, check_sound
from kons.losses.builtin import slope_of
from kons.state import Array, Count, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["DESCENTS", "Descent"]

NONE, SCALED, NORM, DIAGONAL = 0, 1, 2, 3
#: Curvatures by their words.
DESCENTS = {"none": NONE, "scaled": SCALED, "norm": NORM, "diagonal": DIAGONAL}
# Places in the vector of settings.
ALPHA, POWER, DISCOUNT, MOMENTUM, RADIUS = 0, 1, 2, 3, 4


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
def invert(kind: int, settings: Vector, rows: int, squares: Vector, inverse: Vector) -> None:
    """A^-1 after so many rows."""
    alpha, power, discount = settings[ALPHA], settings[POWER], settings[DISCOUNT]
    part = 1.0 if discount == 1.0 or rows == 0 else 1.0 - discount**rows
    if kind == DIAGONAL and power == 0.5:
        for i in range(len(inverse)):
            inverse[i] = 1.0 / (alpha + np.sqrt(squares[i] / part))
    elif kind == DIAGONAL:
        for i in range(len(inverse)):
            inverse[i] = 1.0 / (alpha + (squares[i] / part) ** power)
    else:
        A = alpha
        if kind == NORM:
            A += (squares[0] / part) ** power
        elif kind == SCALED and squares[0] > 0.0:
            A *= squares[0]
        inverse[:] = 1.0 / A


@compiled
def meet(t: int, rows: Entries, rules: PackedRules, z: Vector, u: Vector, inverse: Vector) -> bool:
    """Predict row t. False: f is not a finite number."""
    row = rows[t]
    f = product(u, z)
    row.norm2 = product(z, z)
    row.self_kernel = row.norm2
    row.inverse_form = form(z, inverse)
    row.novelty = row.inverse_form
    row.prediction = min(max(f, -rules[0].bound), rules[0].bound)
    row.overshoot = f - row.prediction
    return bool(np.isfinite(f) and np.isfinite(row.inverse_form))


@compiled
def step(
    t: int,
    rows: Entries,
    kind: int,
    settings: Vector,
    seen: int,
    z: Vector,
    u: Vector,
    squares: Vector,
    velocity: Vector,
    inverse: Vector,
) -> bool:
    """Project and learn row t, behind so many ``seen``, whose slope is known. False: it is not finite."""
    row = rows[t]
    g, eta = row.slope, row.step_size
    if not (np.isfinite(g) and np.isfinite(g * g * row.norm2)):
        return False
    if row.overshoot != 0.0 and row.inverse_form > 0.0:
        pull = row.overshoot / row.inverse_form
        for i in range(len(u)):
            u[i] -= pull * inverse[i] * z[i]
    discount, momentum, radius = settings[DISCOUNT], settings[MOMENTUM], settings[RADIUS]
    fresh = 1.0 if discount == 1.0 else 1.0 - discount
    if kind == DIAGONAL:
        for i in range(len(u)):
            squares[i] = discount * squares[i] + fresh * (g * z[i]) ** 2
    elif kind == NORM:
        squares[0] = discount * squares[0] + fresh * g * g * row.norm2
    elif kind == SCALED:
        squares[0] = max(squares[0], row.norm2)
    if kind != NONE:
        invert(kind, settings, seen + 1, squares, inverse)
    if momentum > 0.0:
        part = 1.0 - momentum ** (seen + 1)
        for i in range(len(u)):
            velocity[i] = momentum * velocity[i] + (1.0 - momentum) * g * z[i]
            u[i] -= eta * inverse[i] * (velocity[i] / part)
    else:
        for i in range(len(u)):
            u[i] -= eta * inverse[i] * (g * z[i])
    if radius < np.inf:
        norm2 = product(u, u)
        if norm2 > radius * radius:
            shrink(u, radius / np.sqrt(norm2))
    return True


@inner
def shrink(u: Vector, factor: float) -> None:
    """``u <- factor u``."""
    for i in range(len(u)):
        u[i] *= factor


@compiled
def descend(
    code: int,
    rows: Entries,
    rules: PackedRules,
    kind: int,
    settings: Vector,
    seen: int,
    Z: Matrix,
    u: Vector,
    squares: Vector,
    velocity: Vector,
    inverse: Vector,
) -> int:
    """Rows with a built-in loss. Returns how many there were, or -1 - t if row t failed."""
    for t in range(len(rows)):
        if not meet(t, rows, rules, Z[t], u, inverse):
            return -1 - t
        rows[t].slope = rows[t].scale * slope_of(code, rows[t].prediction, rows[t].target)
        if not step(t, rows, kind, settings, seen + t, Z[t], u, squares, velocity, inverse):
            return -1 - t
    return len(rows)


class Descent(Part):
    """u, the squares and the velocity of each of K functions over D features: see the module.

    Memory 3 D K numbers, or 4 D K with momentum.
    """

    STATE = fields(
        rows=Count(),
        U=Array("outputs", "size", written="always"),
        squares=Array("outputs", "squares", at_least=0.0, written="always"),
        velocity=Array("outputs", "moving", written="always"),
    )
    #: As many as come.
    rows_left = 1 << 30

    def __init__(
        self,
        kind: str,
        *,
        regularization: float,
        power: float = 0.5,
        discount: float = 1.0,
        momentum: float = 0.0,
        radius: float | None = None,
        outputs: int = 1,
    ) -> None:
        self.kind = DESCENTS[kind]
        self.settings = np.array(
            [regularization, power, discount, momentum, np.inf if radius is None else radius]
        )
        self.outputs, self.rows = outputs, 0
        self.U: Matrix = np.zeros((outputs, 0))
        self.squares: Matrix = np.zeros((outputs, int(self.kind != DIAGONAL)))
        self.velocity: Matrix = np.zeros((outputs, 0))
        self._inverse: Matrix = np.zeros((outputs, 0))

    def __len__(self) -> int:
        return int(self.U.shape[1])

    def extend(self, coordinates: int) -> None:
        """New coordinates, in which no row has had a component yet."""
        more = (0, 0), (0, coordinates)
        self.U = np.pad(self.U, more)
        if self.kind == DIAGONAL:
            self.squares = np.pad(self.squares, more)
        if self.settings[MOMENTUM] > 0.0:
            self.velocity = np.pad(self.velocity, more)
        self._invert()

    def project(self, Q: Matrix) -> None:
        """Move to fewer coordinates, z -> Q z with orthonormal rows Q; not with a number a coordinate."""
        self.U = self.U @ Q.T
        if self.settings[MOMENTUM] > 0.0:
            self.velocity = self.velocity @ Q.T
        self._invert()

    def _invert(self) -> None:
        self._inverse = np.empty(self.U.shape)
        for squares, inverse in zip(self.squares, self._inverse, strict=True):
            invert(self.kind, self.settings, self.rows, squares, inverse)

    def learn(self, rows: Ledger, Z: Matrix, rules: Rules, derivatives: int | Derivatives) -> None:
        """Predict and learn rows in order, filling the ledgers (K, m)."""
        packed, self._inverse = rules.packed, self._inverse.copy()  # a mark may hold it
        for k, own in enumerate(rows):
            arrays = self.U[k], self.squares[k], self.velocity[k], self._inverse[k]
            if isinstance(derivatives, int):
                given = self.kind, self.settings, self.rows, Z, *arrays
                check_sound(descend(derivatives, own, packed, *given), own)
                continue
            for t, z in enumerate(Z):
                sound = meet(t, own, packed, z, arrays[0], arrays[-1])
                slope, _ = derivatives(float(own[t]["prediction"]), float(own[t]["target"]))
                own["slope"][t] = own["scale"][t] * slope
                sound = sound and step(t, own, self.kind, self.settings, self.rows + t, z, *arrays)
                check_sound(t if sound else -1 - t, own)
        self.rows += len(Z)

    @property
    def u(self) -> Matrix:
        """The weights, (D, K). A copy."""
        return np.ascontiguousarray(self.U.T)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved over as many features."""
        size = sizes["size"]
        own = {"outputs": self.outputs, "squares": size if self.kind == DIAGONAL else 1}
        own["moving"] = size if self.settings[MOMENTUM] > 0.0 else 0
        super().load_state(stored, **{**sizes, **own})

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self._invert()
