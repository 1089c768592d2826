"""What holidays are worth, beside a walk over all steps that keeps everything."""

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons.forecasting.days_off import DaysOff
from kons.forecasting.features import Asked
from kons.forecasting.grid import OFF, Grid, Incoming, Y
from kons.stored import Stored

STEP, DAY, H = 6 * 3_600_000_000, 4, 5
DAYS = 160
rng = np.random.default_rng(3)
# Each as (day, level): a fair is no day off, a feast is more than one, a half is neither.
HOLIDAYS = {day: ("fair", "feast", "half")[k % 3] for k, day in enumerate(range(20, DAYS, 9))}
WORTH = {"fair": 0.0, "feast": 1.3, "half": 0.5}


def series():
    values, levels = np.empty(DAYS * DAY), []
    for s in range(DAYS * DAY):
        day = s // DAY
        work, rest = 100.0 + 30.0 * (s % DAY), 60.0 + 5.0 * (s % DAY)
        share = 1.0 if (day + 3) % 7 >= 5 else WORTH.get(HOLIDAYS.get(day), 0.0)
        values[s] = (1.0 - share) * work + share * rest + rng.normal()
        levels.append(HOLIDAYS.get(day, "None"))
    values[rng.integers(len(values), size=30)] = np.nan
    return values, levels


VALUES, LEVELS = series()


def grid_of(levels, kind="text"):
    """With all that is known ahead, and the targets; and the rows without what is to be found."""
    grid = Grid(1)
    grid.begin({"my holiday": kind})
    if kind == "text":
        grid.levels = {"my holiday": dict.fromkeys(levels)}
        codes = {level: code for code, level in enumerate(grid.levels["my holiday"])}
        numbers = np.array([codes[level] for level in levels], dtype=float)
    else:
        numbers = np.array([0.0 if level == "None" else 2.0 for level in levels])
    rows = np.full((len(levels), grid.rows.shape[1]), np.nan)
    rows[:, Y], rows[:, -1] = VALUES[: len(levels)], numbers
    grid.append(Incoming(np.arange(len(levels)), rows))
    return grid


def written(days, grid, cut):
    for start in range(0, len(grid), cut):
        days.write(grid, np.arange(start, min(start + cut, len(grid))))
    return grid.at(OFF, np.arange(len(grid)))


def naive(levels):
    """Shares of steps, by all holidays a horizon before, one by one."""
    found = np.full(len(levels), np.nan)

    def ends(s):
        kinds = {True: [], False: []}
        for back in range(1, 15):
            other = s - DAY * back
            if other < 0 or levels[other] != "None" or np.isnan(VALUES[other]):
                continue
            its = kinds[bool((other // DAY + 3) % 7 >= 5)]
            if len(its) < 4:
                its.append(VALUES[other])
        return [np.mean(its) if its else np.nan for its in (kinds[False], kinds[True])]

    for s, level in enumerate(levels):
        if level == "None":
            continue
        sums, squares = {}, []
        for u in range(s - H + 1):
            if levels[u] == "None" or (u // DAY + 3) % 7 >= 5:
                continue
            work, rest = ends(u)
            if np.isnan(work + rest + VALUES[u]):
                continue
            squares.append((rest - work) ** 2)
            upper, lower = sums.get(levels[u], (0.0, 0.0))
            sums[levels[u]] = upper + (rest - work) * (VALUES[u] - work), lower + squares[-1]
        belief = 0.5 * DAY * np.mean(squares) if squares else 0.0
        upper, lower = sums.get(level, (0.0, 0.0))
        found[s] = np.clip((belief + upper) / (belief + lower), 0.0, 1.5) if lower + belief > 0.0 else 1.0
    return found


def test_shares_are_those_of_the_definition():
    """Up to the rounding of sums that a walk adds in another order."""
    asked = Asked(H, (DAY, 7 * DAY), ("my holiday",), "when", STEP)
    found = written(DaysOff(asked), grid_of(LEVELS), 16)
    np.testing.assert_allclose(found, naive(LEVELS), atol=1e-9)
    last = {level: found[s] for s, level in enumerate(LEVELS) if level != "None"}
    assert last["fair"] < 0.3 < last["half"] < 0.75 < 1.1 < last["feast"]
    # A column of numbers has one kind.
    flags = ["None" if level == "None" else "fair" for level in LEVELS]
    np.testing.assert_allclose(
        written(DaysOff(asked), grid_of(LEVELS, "number"), 16), naive(flags), atol=1e-9
    )


def test_how_steps_are_cut_does_not_matter_nor_a_file_in_between():
    asked = Asked(H, (DAY, 7 * DAY), ("my holiday",), "when", STEP)
    one, other = DaysOff(asked), DaysOff(asked)
    grid = grid_of(LEVELS)
    np.testing.assert_array_equal(written(one, grid, 7), written(other, grid_of(LEVELS), 640))
    assert_identical(one.state(), other.state())
    twin = DaysOff(asked)
    twin.load_state(Stored(one.state(), "days off"))
    assert_identical(twin.state(), one.state())


@pytest.mark.parametrize("step", [7 * 3_600_000_000, 2 * 86_400_000_000])
def test_where_days_have_no_steps_a_holiday_is_a_day_off(step):
    asked = Asked(H, (), ("my holiday",), "when", step)
    found = written(DaysOff(asked), grid_of(LEVELS), 100)
    marked = np.array([level != "None" for level in LEVELS])
    np.testing.assert_array_equal(found, np.where(marked, 1.0, np.nan))
