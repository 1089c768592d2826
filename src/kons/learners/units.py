"""The units of a stream, as the first rows tell them: those of features, of targets, and of bandwidths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.arrays import Matrix, ReadVector, Vector
from kons.compilation import compiled
from kons.errors import TargetError, notice
from kons.losses import Hinge, Logistic, Loss, SquaredHinge
from kons.scaling import LARGEST, RobustScaling, TargetScaling
from kons.state import Array, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Bandwidths", "FeatureScales", "LateColumns", "TargetScale", "TargetUnits", "scale_row"]

# Of the target: smaller, and the scale of a target would be no number.
SMALLEST_REACH = 1e-320
# Of a target: its squared error is still a number.
LARGEST_TARGET = 1e150
# Beyond the bound by more than rounding.
OUTSIDE = 1.0 + 1e-9


class TargetUnits:
    """Targets in units in which they lie within plus and minus ``bound``, and back.

    Those beyond are clipped for learning. A loss whose targets are -1 and +1 leaves them as they are.
    """

    bound: float
    room: float

    def __init__(self, loss: Loss | None, bound: float, room: float) -> None:
        self.bound, self.room = bound, room
        self.scaling: TargetScaling = TargetScaling()
        of_signs = Logistic, SquaredHinge, Hinge
        takes_signs = isinstance(loss, of_signs) or getattr(loss, "targets", None) is not None
        self.signs: Loss | None = loss if takes_signs else None

    def check(self, targets: Any) -> None:
        """Refuse numbers that cannot be targets."""
        if self.signs is not None:
            self.signs.check_targets(targets, self.bound)
        elif np.abs(targets).max() > LARGEST_TARGET:
            at = np.unravel_index(np.argmax(np.abs(targets)), targets.shape)
            where = "".join(f"[{i}]" for i in at)
            raise TargetError(
                f"y{where} is {targets[at]:g}, whose square is no number: scale the target down."
            )

    def fit(self, targets: Any, weights: Vector) -> Any:
        """Find the units of these; returns them in these units, within the bound."""
        if self.signs is not None:
            return targets
        self.scaling = TargetScaling.fit(targets, self.room, self.bound, weights)
        # Those without weight have no say in the units.
        return np.clip(self.scaling.scale(targets), -self.bound, self.bound)

    def to_learn(self, targets: Any, warmup: int) -> tuple[Any, int]:
        """Targets in these units, within the bound, and how many were not."""
        scaled = self.scaling.scale(targets)
        if self.signs is not None:
            return scaled, 0
        outside = int(np.count_nonzero(np.abs(scaled) > self.bound * OUTSIDE))
        if outside:
            low, high = (self.scaling.unscale(end) for end in (-self.bound, self.bound))
            if np.ndim(low):
                at = np.argwhere(np.abs(scaled) > self.bound * OUTSIDE)[0][-1]
                low, high = low[at], high[at]
            notice(
                "Scaled target",
                f"a target lies outside [{low:g}, {high:g}], what the warm-up of {warmup:,} rows and "
                "margin leave room for: it is clipped for learning, and counted in targets_clipped. If there "
                "are many, raise margin or warmup.",
            )
        return np.clip(scaled, -self.bound, self.bound), outside

    def possible(self, values: Any) -> Any:
        """Predictions in units of the target that a learner could make: of signs within the bound."""
        return values if self.signs is None else np.clip(values, -self.bound, self.bound)

    def losses(self, predictions: Any, targets: Any) -> Any:
        """In units of the target, whatever is learned; for labels -1 and +1, the learner's own loss."""
        if self.signs is not None:
            losses = self.signs.value(self.possible(predictions), targets)
        else:
            losses = (predictions - targets) ** 2
        return losses.sum(axis=1) if np.ndim(targets) > 1 else losses


class FeatureScales(Field):
    """Of features, where these are scaled and the warm-up is over; else None."""

    def save(self, part: Any, name: str) -> Any:
        scaling = getattr(part, name)
        return None if scaling is None else scaling.state()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part.warming_up or not part._scales:
            stored.nothing(key)
            return None
        return RobustScaling.from_stored(stored.inner(key), sizes["width"] or 1)


class LateColumns(Part):
    """Raw values of columns that came behind the warm-up, until their units can be read off them.

    ``since``: how many of the rows kept are older than a column, and have 0 there; those that were asked
    before it came, and still wait for their targets, are among these.
    """

    STATE = fields(
        columns=Array("late", at_least=0.0), since=Array("late", at_least=0.0), rows=Array(None, "late")
    )
    columns: Vector
    since: Vector
    rows: Matrix

    def __init__(self) -> None:
        self.columns, self.since, self.rows = np.empty(0), np.empty(0), np.empty((0, 0))

    def __len__(self) -> int:
        return len(self.columns)

    def join(self, columns: range, waiting: int) -> None:
        """These have come, while so many rows without them wait."""
        self.columns = np.append(self.columns, columns)
        self.since = np.append(self.since, np.full(len(columns), float(len(self.rows) + waiting)))
        self.rows = np.pad(self.rows, ((0, 0), (0, len(columns))))

    def left(self, enough: int) -> int:
        """How many rows more tell the next unit."""
        return enough + int(self.since.min()) - len(self.rows)

    def follow(self, points: Matrix, enough: int, scaling: RobustScaling) -> RobustScaling:
        """Keep values of rows, at most as many as are :meth:`left`; the scaling with the units now known."""
        self.rows = np.concatenate([self.rows, points[:, self.columns.astype(np.int64)]])
        if self.left(enough):
            return scaling
        known = self.since == self.since.min()
        fitted = RobustScaling.fit(self.rows[int(self.since.min()) :, known])
        scaling = scaling.with_columns(self.columns[known].astype(np.int64), fitted)
        first = int(self.since[~known].min(initial=len(self.rows)))
        self.columns, self.since = self.columns[~known], self.since[~known] - first
        self.rows = self.rows[first:, ~known]
        return scaling

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        whole = all((array == np.floor(array)).all() for array in (self.columns, self.since))
        # Rows that wait, or waited and were forgotten, may be more than there are rows.
        if not whole or (self.since > 1e9).any() or (self.columns >= (sizes["width"] or 1)).any():
            raise stored.error("its late columns are not columns of its rows")


class TargetScale(Field):
    """Centre and reach of each target in :class:`TargetUnits`."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        scaling = getattr(part, name).scaling
        return np.array([scaling.centre, scaling.reach])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        several, units = part.outputs and not part.warming_up, getattr(part, name)
        centre, reach = stored.array(key, 2, *([part.outputs] if several else []))
        if np.min(reach) < SMALLEST_REACH:
            raise stored.error(f"the reach of its target is {np.min(reach):g}")
        units.scaling = TargetScaling(*((centre, reach) if several else (float(centre), float(reach))))
        return units

    def mark(self, part: Any, name: str) -> Any:
        return getattr(part, name).scaling

    def restore(self, part: Any, name: str, mark: Any) -> None:
        getattr(part, name).scaling = mark


class Bandwidths(Field):
    """By distances and by absolute ones, where they were to be found and the warm-up is over; else None."""

    def save(self, part: Any, name: str) -> Any:
        bandwidths = getattr(part, name)
        return None if bandwidths is None else np.array(bandwidths)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part.warming_up or part._resolved:
            stored.nothing(key)
            return None
        return tuple(stored.array(key, 2, at_least=1e-300).tolist())


@compiled
def scale_row(x: ReadVector, medians: Vector, spreads: Vector, limit: float, z: Vector) -> bool:
    """As RobustScaling.transform, in a microsecond. False: not finite."""
    for j in range(len(x)):
        if not np.isfinite(x[j]):
            return False
        z[j] = (0.5 * x[j] - medians[j]) / spreads[j]
        if abs(z[j]) > limit:
            z[j] = math.copysign(limit * (1.0 + math.log(min(abs(z[j]), LARGEST) / limit)), z[j])
    return True
