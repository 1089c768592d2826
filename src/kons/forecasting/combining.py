"""From what bases say of a path to the path: a correction, and their best combination at each horizon.

::

    c_h     the mean of the bases that look at t + h from the origin t or before
    path    c_h + w_h^T g_h         w_h by the second-order update of stacking, for each h = 1 .. H
    g_h     bases - c_h, the corrected base - c_h, the linear map of this phase - c_h: weights start equal
            the last errors of the bases: weights start at 0 and have to be earned

No path leaves the range of the targets so far by more than that range: a target of 1e12 among others of 10
is an input of the rows behind it, times weights that it has just moved.

The correction is EmbeddedKONS with H targets over one dictionary and one A: what the base of the least lead
misses. Intervals are those of :mod:`kons.learners.predictive` at each horizon: as wide as the error at this
place is usually, and as bases are apart. Targets come h steps late, and errors of neighbouring origins are
alike, so their level is corrected once more by what was outside of the intervals as they were said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.forecasting.features import (
    Asked,
    correction_records,
    last_errors,
    members,
    usual_errors,
)
from kons.forecasting.grid import Gaps, Grid, Y
from kons.forecasting.phases import PhaseMaps
from kons.learners.auto.stacking import Stacking
from kons.learners.predictive import Intervals
from kons.recipes import for_task
from kons.state import Array, Inner, Inners, Part, fields

__all__ = ["Combination"]

# An origin is learned by the correction if so much of its path came.
ENOUGH = 0.75
# How many times what the base missed in its first rows it may miss later: series grow.
ROOM = 9.0
# The spread of the bases, and the usual error at the place.
SIZES = 2
# Of the prior of weights, beside that of AutoKONS' stacking: errors of neighbouring origins are alike, and so
# the rows of a chunk tell less than as many rows.
PRIOR = 10.0
# By so much a row that lay outside, or did not, moves the level; and how far it may go.
GAIN, INNERMOST, OUTERMOST = 0.005, 0.5, 0.995

Steps = NDArray[np.int64]


class Combination(Part):
    """Paths from bases, and their intervals. A row costs O(H N^2) with N bases and errors."""

    STATE = fields(
        correction=Inner(),
        phases=Inner(),
        stackings=Inners(),
        intervals=Inners(),
        levels=Array(None, at_least=0.0),
        seen=Gaps(2),
    )
    asked: Asked
    level: float

    def __init__(self, asked: Asked, level: float, seed: int) -> None:
        self.asked, self.level = asked, level
        self.correction: Any = for_task(
            "regression", "embedded", max_atoms=300, seed=seed, regularization=0.1, margin=ROOM
        )
        self.phases: PhaseMaps = PhaseMaps(asked)
        leads = asked.looks
        errors = len(leads) + len(asked.means)
        self.stackings: list[Stacking] = []
        for h in range(1, asked.horizon + 1):
            said = 2 + sum(lead >= h for lead in leads)
            self.stackings.append(Stacking(said + errors, doubted=range(said, said + errors)))
        self.intervals: list[Intervals] = [Intervals(1, SIZES) for _ in range(asked.horizon)]
        #: That intervals are asked for, so that the level comes out.
        self.levels: Vector = np.full(asked.horizon, level)
        #: The least and the largest target of the paths that were learned; NaN before there are any.
        self.seen: Vector = np.full(2, np.nan)

    def paths(self, grid: Grid, origins: Steps) -> Matrix:
        """The paths of origins, by what was known there. Changes nothing."""
        found = np.empty((len(origins), self.asked.horizon))
        for h, (centre, deviations) in enumerate(self._inputs(grid, origins)):
            found[:, h] = centre + self.stackings[h].combine(deviations, 0.0)[:, 0]
        last = grid.at(Y, origins)
        low, high = np.minimum(last, self.seen[0])[:, None], np.maximum(last, self.seen[1])[:, None]
        return found if np.isnan(self.seen[0]) else np.clip(found, 2.0 * low - high, 2.0 * high - low)

    def ends(
        self, grid: Grid, origins: Steps, paths: Matrix, level: float | None = None
    ) -> tuple[Matrix, Matrix]:
        """The intervals around paths, by default of the level that corrects itself; NaN before 20 errors.

        Other levels take their part of that correction, so that intervals are nested.
        """
        rows, levels = self._doubts(grid, origins, paths), np.clip(self.levels, INNERMOST, OUTERMOST)
        if level is not None and level < self.level:
            levels = levels * (level / self.level)
        elif level is not None:
            levels = 1.0 - (1.0 - levels) * ((1.0 - level) / (1.0 - self.level))
        each = zip(self.intervals, levels, strict=True)
        ends = [intervals.ends(rows[:, h, None], its)[:, 0] for h, (intervals, its) in enumerate(each)]
        both = np.stack(ends, axis=1)
        both[~np.isfinite(both).all(axis=2)] = np.nan
        return both[:, :, 0], both[:, :, 1]

    def learn(self, grid: Grid, origins: Steps, said: Matrix, lower: Matrix, upper: Matrix) -> None:
        """Origins whose paths have passed, with the paths and intervals that were said of them."""
        asked, H = self.asked, self.asked.horizon
        target = passed(grid, origins, H)
        came = target[~np.isnan(target)]
        if len(came):
            self.seen = np.array([np.fmin(came.min(), self.seen[0]), np.fmax(came.max(), self.seen[1])])
        rows = self._doubts(grid, origins, said)
        judged = ~np.isnan(target) & ~np.isnan(lower)
        outside = judged & ((target < lower) | (target > upper))
        moved = self.levels + GAIN * (outside.sum(axis=0) - (1.0 - self.level) * judged.sum(axis=0))
        self.levels = np.clip(moved, 0.0, 1.0)
        before = origins[0] - np.arange(max(asked.windows))
        values = grid.at(Y, before)
        variance = float(np.var(values[~np.isnan(values)]))
        for h, (centre, deviations) in enumerate(self._inputs(grid, origins)):
            known = ~np.isnan(target[:, h])
            self.intervals[h].follow(rows[known][:, h, None], target[known][:, h, None])
            missed, none = (target[:, h] - centre)[known], np.zeros(int(known.sum()))
            stacking = self.stackings[h]
            stacking.advance(deviations[:0], none[:0], deviations[known], none, missed[:, None])
            stacking.end_chunk(len(missed), PRIOR * variance)
        nearest = self._nearest(members(grid, origins, asked))
        weights = (np.mean(~np.isnan(target), axis=1) >= ENOUGH).astype(np.float64)
        self.phases.learn(grid, origins, target, ENOUGH)
        if weights.any():
            records = correction_records(grid, origins, asked)
            self.correction.advance(records, np.nan_to_num(target - nearest), sample_weight=weights)

    def _inputs(self, grid: Grid, origins: Steps) -> list[tuple[Any, Matrix]]:
        """Of each horizon: the mean of bases, and what is combined, as it deviates from that."""
        asked = self.asked
        said, errors = members(grid, origins, asked), last_errors(grid, origins, asked)
        corrected = self._nearest(said)
        if len(origins) and self.correction.rows_seen:
            corrected = corrected + self.correction.predict(correction_records(grid, origins, asked))
        mapped = self.phases.paths(grid, origins)
        inputs = []
        for h in range(asked.horizon):
            bases = said[:, h, np.array(asked.looks) > h]
            centre = bases.mean(axis=1)
            others = np.stack([corrected[:, h], mapped[:, h]], axis=1)
            parts = [bases - centre[:, None], others - centre[:, None], errors]
            inputs.append((centre, np.concatenate(parts, axis=1)[:, :, None]))
        return inputs

    def _nearest(self, said: Matrix) -> Matrix:
        """Of each horizon, what the base of the least lead says."""
        leads = np.array(self.asked.leads)
        place = [int(np.flatnonzero(leads >= h)[-1]) for h in range(1, self.asked.horizon + 1)]
        nearest: Matrix = said[:, np.arange(self.asked.horizon), place]
        return nearest

    def _doubts(self, grid: Grid, origins: Steps, paths: Matrix) -> NDArray[np.float64]:
        """Rows as intervals take them: the prediction, no novelty, and sizes that grow with doubt."""
        said = members(grid, origins, self.asked)
        with_gaps = np.where(np.isnan(said), paths[:, :, None], said)
        spread = np.sqrt(np.mean((with_gaps - paths[:, :, None]) ** 2, axis=2))
        usual = usual_errors(grid, origins, self.asked)
        return np.stack([paths, np.zeros(paths.shape), spread, usual], axis=2)


def passed(grid: Grid, origins: Steps, horizon: int) -> Matrix:
    """What came behind each origin; NaN where nothing did."""
    steps = (origins[:, None] + np.arange(1, horizon + 1)).ravel()
    return grid.at(Y, steps).reshape(len(origins), horizon)
