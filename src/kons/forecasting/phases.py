"""A linear map from the last season to the path, one for each phase of the season.

::

    path(t) = m + s W_p^T x(t)      m, s the mean and the deviation of the last longest season before t,
                                    p the phase of t in the shortest one: one of at most 24
    x       = 1, (y - m)/s over the last shortest season, (d - m)/s along the path, which day, days off
    d         the mean of the last days of the kind of t + h
    W_p     = (3 I + sum w x x^T)^-1 sum w x ((y - m)/s)^T,      all H outputs over one A

At six in the morning other hours matter than at noon, which a kernel over all origins has to find out: these
maps know it. An origin whose error is above four usual ones weighs as much less. Beside bases of kernels,
which bend but share what they know, it errs in another way, and so their combination gains. Costs
O(d^2 + d H) a row and O(d^3) for each phase and chunk, d about 60.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.ridge import Ridge
from kons.forecasting.features import Asked, alike, calendar
from kons.forecasting.grid import Grid, Y
from kons.state import Inners, Number, Part, fields

__all__ = ["PhaseMaps"]

# Of a season, and of a path, so many places are looked at; and there are so many phases.
PLACES = 24
# Worth so many rows whose inputs are of their usual size.
PRIOR = 3.0
# An origin with more than so many times the usual squared error weighs as much less.
WILD = 4.0
# A row in the usual error.
RATE = 0.002
# A deviation below this part of the level is rounding.
ROUNDING = 1e-9
YEAR = 365.25 * 86_400_000_000

Steps = NDArray[np.int64]


class _Inputs(NamedTuple):
    """Of origins: x, the phase, the level and the deviation; the last is 0 where nothing is known."""

    x: Matrix
    phase: NDArray[np.int64]
    level: Vector
    size: Vector


class PhaseMaps(Part):
    """See the module."""

    STATE = fields(maps=Inners(), usual=Number(at_least=0.0))

    def __init__(self, asked: Asked) -> None:
        self.asked: Asked = asked
        self.span: int = asked.seasons[0] if asked.seasons else asked.horizon
        phases = min(self.span, PLACES) if asked.seasons else 1
        self.back: Steps = _places(0, self.span - 1)
        self.ahead: Steps = _places(1, asked.horizon)
        days = [season // self.span for season in asked.seasons[1:] if not season % self.span]
        #: How many of the shortest season the next one has.
        self.days: int = days[0] if days and days[0] <= PLACES else 1
        size = 1 + len(self.back) + len(self.ahead) + self.days + (5 if asked.day else 0)
        prior = PRIOR * np.eye(size)
        self.maps: list[Ridge] = [Ridge(prior, asked.horizon, online=False, period=1) for _ in range(phases)]
        #: The usual squared error, in deviations; 0 before the first.
        self.usual: float = 0.0

    def paths(self, grid: Grid, origins: Steps) -> Matrix:
        """The paths of origins, (n, H); the level where nothing was learned. Changes nothing."""
        inputs = self._inputs(grid, origins)
        return inputs.level[:, None] + inputs.size[:, None] * self._mapped(inputs)

    def learn(self, grid: Grid, origins: Steps, target: Matrix, enough: float) -> None:
        """Origins in order, of whose path so large a part came at least; what is missing is as predicted."""
        inputs = self._inputs(grid, origins)
        sound = (inputs.size > 0.0) & (np.mean(~np.isnan(target), axis=1) >= enough)
        inputs = _Inputs(*(part[sound] for part in inputs))
        mapped = self._mapped(inputs)
        scaled = (target[sound] - inputs.level[:, None]) / inputs.size[:, None]
        scaled = np.where(np.isnan(scaled), mapped, scaled)
        weights = np.ones(len(mapped))
        for i, error in enumerate(np.mean((scaled - mapped) ** 2, axis=1)):
            self.usual = self.usual or float(error)
            weights[i] = min(1.0, WILD * self.usual / error) if error > 0.0 else 1.0
            self.usual += RATE * (weights[i] * float(error) - self.usual)
        roots = np.sqrt(weights)[:, None]
        for phase in np.unique(inputs.phase):
            its = inputs.phase == phase
            self.maps[phase].add_past(inputs.x[its] * roots[its], scaled[its] * roots[its])
            self.maps[phase].fit()

    def _mapped(self, inputs: _Inputs) -> Matrix:
        mapped = np.empty((len(inputs.x), self.asked.horizon))
        for phase in np.unique(inputs.phase):
            its = inputs.phase == phase
            mapped[its] = self.maps[phase].predict(inputs.x[its])
        return mapped

    def _inputs(self, grid: Grid, origins: Steps) -> _Inputs:
        asked, n, window = self.asked, len(origins), self.asked.windows[-1]
        past = grid.at(Y, (origins[:, None] - np.arange(window)).ravel()).reshape(n, window)
        there = ~np.isnan(past)
        count = np.maximum(there.sum(axis=1), 1)
        level = np.where(there, past, 0.0).sum(axis=1) / count
        apart = np.where(there, past - level[:, None], 0.0)
        size = np.sqrt(np.mean(apart**2, axis=1) * (window / count))
        size = np.where(size > ROUNDING * np.abs(level), size, 0.0)
        steps = np.arange(origins[0] - self.span, origins[-1] + asked.horizon + 1) if n else origins
        kind = alike(grid, steps, asked, asked.horizon)
        first = steps[0] if n else 0
        back, ahead = origins[:, None] - self.back, origins[:, None] + self.ahead
        values = grid.at(Y, back.ravel()).reshape(back.shape)
        values = np.where(np.isnan(values), kind[back - first], values)
        looked = np.concatenate([values, kind[ahead - first]], axis=1) - level[:, None]
        looked = np.divide(looked, size[:, None], out=np.zeros(looked.shape), where=size[:, None] > 0.0)
        day = (origins // self.span) % self.days
        columns = [np.ones((n, 1)), looked, (day[:, None] == np.arange(self.days)).astype(np.float64)]
        if asked.day:
            angle = 2.0 * np.pi * (origins * asked.step) / YEAR
            columns += [np.sin(angle)[:, None], np.cos(angle)[:, None]]
            for later in (0, asked.horizon // 2, asked.horizon):
                columns.append(calendar(grid, origins + later, asked)["day off"][:, None])
        phase = (origins % self.span) * len(self.maps) // self.span
        return _Inputs(np.concatenate(columns, axis=1), phase, level, size)


def _places(first: int, last: int) -> Steps:
    """So many steps from the first to the last, as even as may be."""
    found: Steps = np.unique(np.linspace(first, last, min(last - first + 1, PLACES)).round().astype(np.int64))
    return found
