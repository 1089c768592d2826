"""Linear maps of phases beside their definition, row by row with dense matrices."""

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons.forecasting.features import Asked, alike
from kons.forecasting.grid import OFF, Grid, Incoming, Y
from kons.forecasting.phases import PhaseMaps
from kons.stored import Stored

HOUR = 3_600_000_000
ROWS = 24 * 40
rng = np.random.default_rng(0)
VALUES = 30.0 + 8.0 * np.sin(np.arange(ROWS) / 24 * 2 * np.pi) + np.cumsum(rng.normal(size=ROWS)) * 0.3
VALUES[rng.integers(ROWS, size=20)] = np.nan
VALUES[600] = 1e4


def grid_of(asked, values):
    grid = Grid(len(asked.looks))
    grid.begin({})
    rows = np.full((len(values), grid.rows.shape[1]), np.nan)
    rows[:, Y] = values
    grid.append(Incoming(np.arange(len(values)), rows))
    grid.rows[:, OFF] = np.where(np.arange(len(values)) // 24 % 11 == 0, 0.7, np.nan)
    return grid


def along(asked, grid, values, start=200):
    """All paths, each chunk learned when it has passed."""
    maps, H, found = PhaseMaps(asked), asked.horizon, {}
    for first in range(start, len(values) - 3 * H, H):
        origins = np.arange(first, first + H)
        found[first] = maps.paths(grid, origins)
        target = np.stack([values[t + 1 : t + H + 1] for t in origins])
        maps.learn(grid, origins, target, 0.75)
    return maps, np.concatenate(list(found.values()))


def naive(asked, grid, values, start=200):
    span, H, window = (asked.seasons or (asked.horizon,))[0], asked.horizon, asked.windows[-1]
    seen, usual, found, days = {}, 0.0, [], 1
    if len(asked.seasons) > 1:
        days = asked.seasons[1] // span

    def inputs(t):
        past = np.array([values[s] if s >= 0 else np.nan for s in range(t - window + 1, t + 1)])
        m, s = np.nanmean(past), np.nanstd(past)
        last = [values[t - k] for k in range(span)]
        kind = [alike(grid, np.array([t - k]), asked, H)[0] for k in range(span)]
        last = [k if np.isnan(v) else v for v, k in zip(last, kind, strict=True)]
        coming = [alike(grid, np.array([t + h]), asked, H)[0] for h in range(1, H + 1)]
        x = [1.0, *((np.array(last) - m) / s), *((np.array(coming) - m) / s)]
        x += [float(t // span % days == day) for day in range(days)]
        if asked.day:
            year = 2.0 * np.pi * t * HOUR / (365.25 * 24 * HOUR)
            x += [np.sin(year), np.cos(year)]
            for later in (0, H // 2, H):
                day = (t + later) // 24
                x.append(1.0 if (day + 3) % 7 >= 5 else 0.7 * (day % 11 == 0))
        return np.array(x), t % span if asked.seasons else 0, m, s

    def said(x, phase):
        rows = seen.get(phase, [])
        A, b = 3.0 * np.eye(len(x)), np.zeros((len(x), H))
        for z, y, w in rows:
            A, b = A + w * np.outer(z, z), b + w * np.outer(z, y)
        return x @ np.linalg.solve(A, b)

    for first in range(start, len(values) - 3 * H, H):
        now = [(*inputs(t), t) for t in range(first, first + H)]
        mapped = [said(x, phase) for x, phase, *_ in now]
        found += [m + s * z for z, (_, _, m, s, _) in zip(mapped, now, strict=True)]
        for z, (x, phase, m, s, t) in zip(mapped, now, strict=True):
            y = values[t + 1 : t + H + 1]
            if np.mean(~np.isnan(y)) < 0.75:
                continue
            y = np.where(np.isnan(y), z, (y - m) / s)
            error = np.mean((y - z) ** 2)
            usual = usual or error
            w = min(1.0, 4.0 * usual / error)
            usual += 0.002 * (w * error - usual)
            seen.setdefault(phase, []).append((x, y, w))
    return np.array(found)


@pytest.mark.parametrize(
    "asked",
    [
        Asked(6, (24, 168), (), "when", HOUR),
        Asked(4, (7,), (), None, 1),
        Asked(5, (), (), None, 1),
    ],
    ids=["hours", "rows of a season", "rows"],
)
def test_paths_are_those_of_the_definition(asked):
    values = VALUES[:420] if asked.day else VALUES[500:760]
    start = 200 if asked.day else 40
    grid = grid_of(asked, values)
    _, found = along(asked, grid, values, start)
    # Units of deviations of the level; A has a condition below 1e6, and maps add 60 products.
    np.testing.assert_allclose(found, naive(asked, grid, values, start), rtol=1e-8, atol=1e-8 * 1e4)


def test_a_path_is_in_the_units_of_the_targets():
    asked = Asked(6, (24, 168), (), "when", HOUR)
    _, one = along(asked, grid_of(asked, VALUES), VALUES)
    _, other = along(asked, grid_of(asked, 1e6 * VALUES - 3e6), 1e6 * VALUES - 3e6)
    np.testing.assert_allclose(other, 1e6 * one - 3e6, rtol=1e-8, atol=1e-8 * 1e6 * 1e4)


def test_one_wild_row_does_not_spoil_what_comes_long_after():
    asked = Asked(6, (24, 168), (), "when", HOUR)
    tame = VALUES.copy()
    tame[600] = tame[576]
    errors = []
    for values in (VALUES, tame):
        _, found = along(asked, grid_of(asked, values), values)
        origins = np.arange(200, 200 + len(found))
        target = np.stack([tame[t + 1 : t + 7] for t in origins])
        errors.append(np.sqrt(np.nanmean((found - target)[origins > 800] ** 2)))
    assert errors[0] < 1.1 * errors[1]


def test_a_series_that_does_not_move_is_its_level():
    asked = Asked(6, (24, 168), (), "when", HOUR)
    values = np.full(400, 7.0)
    maps, found = along(asked, grid_of(asked, values), values)
    np.testing.assert_array_equal(found, 7.0)
    assert maps.usual == 0.0


def test_a_file_in_between():
    asked = Asked(6, (24, 168), (), "when", HOUR)
    grid = grid_of(asked, VALUES)
    maps, _ = along(asked, grid, VALUES)
    twin = PhaseMaps(asked)
    twin.load_state(Stored(maps.state(), "maps"))
    assert_identical(twin.state(), maps.state())
    origins = np.arange(900, 906)
    np.testing.assert_array_equal(twin.paths(grid, origins), maps.paths(grid, origins))
