"""How much of a day off each kind of holiday is, learned from those that passed.

::

    off(k) = (K + sum (E - W)(y - W)) / (K + sum (E - W)^2)      over hours of holidays of kind k, in 0 .. 1.5
    W, E     the means of the last working days and of the last weekends at that hour
    K        what half a day of holidays adds to the lower sum, usually

The first of its kind counts as a whole day off. A fair that is marked as a holiday is none after two or three
of its days, and one that empties the streets stays one. A column of numbers has one kind: not 0. What is
said of a step is by holidays that lie a horizon before it. A step of a holiday costs O(days).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.forecasting.features import DAYS, KIND, NO, Asked, weekend
from kons.forecasting.grid import EARLIEST, OFF, Grid, Y, mean_of
from kons.state import Array, Count, Part, fields

__all__ = ["DaysOff"]

# How many days of its kind the belief in a whole day off is worth.
BELIEF = 0.5
# On the greatest feasts less goes on than at a weekend.
MOST = 1.5

Steps = NDArray[np.int64]


class DaysOff(Part):
    """Writes, for each step with a value in a column of holidays, how much of a day off it is."""

    STATE = fields(sums=Array(None, 2), usual=Array(2, at_least=0.0), next=Count(at_least=EARLIEST))

    def __init__(self, asked: Asked) -> None:
        self.asked: Asked = asked
        #: Of each kind: (E - W)(y - W) and (E - W)^2, summed.
        self.sums: Matrix = np.zeros((0, 2))
        #: Of all kinds: (E - W)^2 summed, and the number of hours.
        self.usual: NDArray[np.float64] = np.zeros(2)
        #: Holidays before this step are learned.
        self.next: int = EARLIEST

    def write(self, grid: Grid, steps: Steps) -> None:
        """Steps that were appended, in order."""
        kinds = self._kinds(grid, steps)
        for step, kind in zip(steps[kinds >= 0].tolist(), kinds[kinds >= 0].tolist(), strict=True):
            self._learn(grid, step - self.asked.horizon)
            share = 1.0
            if kind < len(self.sums):
                belief = BELIEF * self.asked.day * self.usual[0] / max(self.usual[1], 1.0)
                upper, lower = self.sums[kind] + belief
                share = min(max(upper / lower, 0.0), MOST) if lower > 0.0 else 1.0
            grid.put(OFF, np.array([step]), np.array([share]))

    def _learn(self, grid: Grid, last: int) -> None:
        """Holidays up to this step, where days have as many steps each."""
        if not self.asked.day:
            return
        steps = np.arange(max(self.next, grid.first), last + 1)
        self.next = max(self.next, last + 1)
        kinds, off = self._kinds(grid, steps), weekend(steps, self.asked)
        steps, kinds = steps[(kinds >= 0) & ~off], kinds[(kinds >= 0) & ~off]
        if not len(steps):
            return
        days = steps[:, None] - self.asked.day * np.arange(1, DAYS + 1)
        plain = np.isnan(grid.at(OFF, days.ravel())).reshape(days.shape)
        values = np.where(plain, grid.at(Y, days.ravel()).reshape(days.shape), np.nan)
        ends = []
        for kept in (weekend(days, self.asked), ~weekend(days, self.asked)):
            its = np.where(kept, values, np.nan)
            its[np.cumsum(~np.isnan(its), axis=1) > KIND] = np.nan
            ends.append(mean_of(its))
        apart, moved = ends[0] - ends[1], grid.at(Y, steps) - ends[1]
        known = ~np.isnan(apart + moved)
        more = max(0, int(kinds.max()) + 1 - len(self.sums))
        sums = np.pad(self.sums, ((0, more), (0, 0)))
        np.add.at(sums, kinds[known], np.stack([apart * moved, apart**2], axis=1)[known])
        self.sums = sums
        self.usual = self.usual + np.array([np.sum(apart[known] ** 2), np.count_nonzero(known)])

    def _kinds(self, grid: Grid, steps: Steps) -> NDArray[np.int64]:
        """Of each step, the number of its kind of holiday; -1: none."""
        found = np.full(len(steps), -1)
        names = [name for name in self.asked.known_ahead if "holiday" in str(name).casefold()]
        names = [name for name in names if name in grid.kinds]
        for place, name in enumerate(names):
            values = grid.at(grid.place(name), steps)
            codes = np.where(np.isnan(values), 0.0, values)
            if name in grid.levels:
                none = [code for code, level in enumerate(grid.levels[name]) if level.casefold() in NO]
                codes = np.where(np.isnan(values) | np.isin(values, none), -1.0, values)
            else:
                codes = np.where(codes != 0.0, 0.0, -1.0)
            its = codes.astype(np.int64)
            found = np.where((found < 0) & (its >= 0), its * len(names) + place, found)
        return found
