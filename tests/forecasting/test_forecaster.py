"""Paths of H steps: honest, the same however rows are cut, with gaps, doubles and files in between."""

import copy
import itertools

import numpy as np
import pytest

import kons
from contracts.learners import assert_identical
from kons.errors import ConfigurationError, InputError
from kons.files import from_bytes, to_bytes
from kons.forecasting import Forecaster
from kons.forecasting.features import Asked, alike, members, same_place
from kons.forecasting.grid import BASES, Grid, Incoming, Y

H, ROWS = 6, 420
rng = np.random.default_rng(0)
START = np.datetime64("2024-01-01T00:00", "us")
HOURS = np.arange(ROWS)
LEVEL = np.cumsum(rng.normal(size=ROWS)) * 0.2
VALUES = 20.0 + 5.0 * np.sin(HOURS / 24 * 2 * np.pi) + LEVEL + 3.0 * (HOURS // 24 % 5 == 0)


def row(i):
    holiday = "fair" if i // 24 % 5 == 0 else None
    return {"when": START + np.timedelta64(int(i), "h"), "holiday": holiday, "wind": float(i % 7)}


def make(**more):
    told = {"time": "when", "step": "1h", "known_ahead": ["holiday"], "effort": "low", "seed": 1}
    return Forecaster("6h", **(told | more))


def advance(model, hours, values=VALUES, cut=None):
    hours = list(hours)
    parts = [
        model.advance(
            [row(i) for i in hours[k : k + (cut or len(hours))]], values[hours[k : k + (cut or len(hours))]]
        )
        for k in range(0, len(hours), cut or len(hours))
    ]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


@pytest.fixture(scope="module")
def whole():
    model = make()
    return model, advance(model, HOURS)


def test_paths_are_what_came_and_better_than_the_season(whole):
    _, (origin, prediction, target, lower, upper, seasonal, last) = whole
    at = origin - int(START.view(np.int64) // 3_600_000_000)
    assert at.tolist() == list(range(len(at)))
    assert len(at) >= ROWS - 3 * H
    for h in range(1, H + 1):
        np.testing.assert_array_equal(target[:, h - 1], VALUES[at + h])
    np.testing.assert_array_equal(seasonal[100], VALUES[at[100] + np.arange(1, H + 1) - 24])
    np.testing.assert_array_equal(last[100], np.full(H, VALUES[at[100]]))
    late = slice(200, None)
    ours, theirs = (np.mean((found[late] - target[late]) ** 2) for found in (prediction, seasonal))
    assert ours < 0.7 * theirs
    inside = (lower <= target) & (target <= upper)
    assert np.isnan(lower[:12]).all()
    assert inside[late].mean() > 0.8


def test_how_rows_are_cut_does_not_matter(whole):
    """To what the battery allows AutoKONS, of which the paths are made: 1e-6 of the targets' range."""
    found = advance(make(), HOURS, cut=37)
    for mine, expected in zip(found, whole[1], strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-7, atol=1e-6 * np.ptp(VALUES))


def test_nothing_is_known_before_it_happened(whole):
    """Other targets from some step on change no path whose origin lies before it."""
    other, turn = VALUES.copy(), 300
    other[turn:] += 50.0
    found = advance(make(), HOURS, other)
    before = whole[1][0] - whole[1][0][0] < turn
    for part in (1, 3, 4):  # predictions and the ends of their intervals
        np.testing.assert_array_equal(found[part][before], whole[1][part][before])
    assert not np.allclose(found[1][~before], whole[1][1][~before])


def test_gaps_and_doubled_stamps(whole):
    """Of two rows of one step the last counts; a step without a row is neither scored nor learned."""
    model, doubled = make(), make()
    there = np.delete(HOURS, slice(150, 160))
    found = advance(model, there)
    assert np.isnan(found[2]).sum() == H * (H + 1) // 2  # of the H origins before it
    assert not np.isin(np.arange(150, 160), found[0] - found[0][0]).any()
    first, second = [row(i) for i in there[:100]], [row(i) for i in there[99:]]
    doubled.advance(first, np.append(VALUES[there[:99]], 1e6))  # corrected by the next row
    last = doubled.advance(second, VALUES[there[99:]])
    np.testing.assert_allclose(last.prediction[-50:], found[1][-50:], rtol=1e-7)
    with pytest.raises(InputError, match="row 0 of these lies before the one that came before it"):
        model.advance([row(3)], [1.0])
    with pytest.raises(InputError, match="row 2 of these lies before the one that came before it"):
        model.advance([row(ROWS), row(ROWS + 2), row(ROWS + 1)], [1.0] * 3)
    with pytest.raises(InputError, match="row 1 of these has no time"):
        model.advance([row(ROWS), {**row(ROWS + 1), "when": None}], [1.0] * 2)
    with pytest.raises(InputError, match="steps apart"):
        model.advance(
            [{**row(0), "when": np.datetime64(day, "us")} for day in ("2999-01-01", "2999-01-02")], [1.0, 1.0]
        )


def test_beyond_the_last_row(whole):
    model, _ = whole
    before = model.state()
    future = [row(ROWS + i) for i in range(H)]
    ahead, alone = model.path(future), model.path()
    assert_identical(model.state(), before)
    assert ahead.time[0] == START + np.timedelta64(ROWS, "h")
    assert ahead.prediction.shape == ahead.lower.shape == (H,)
    expected = 20.0 + 5.0 * np.sin((ROWS + np.arange(H)) / 24 * 2 * np.pi) + LEVEL[-1]
    assert np.abs(alone.prediction - expected).mean() < 1.5
    with pytest.raises(InputError, match="none of the 3 rows known ahead"):
        model.path([row(i) for i in range(3)])
    assert_identical(model.state(), before)
    # Whatever else stands in rows ahead, columns known ahead are all that is looked at.
    blown = [{**x, "wind": 1e6} for x in future]
    np.testing.assert_array_equal(model.path(blown).prediction, ahead.prediction)
    assert not np.array_equal(
        model.path([{**x, "holiday": "fair"} for x in future]).prediction, alone.prediction
    )


def test_intervals_of_other_levels_lie_inside_one_another(whole):
    model, _ = whole
    before = model.state()
    paths = [model.path(level=level) for level in (0.2, 0.5, 0.8, 0.9, 0.95, 0.99)]
    assert_identical(model.state(), before)
    for inner, outer in itertools.pairwise(paths):
        assert (outer.lower <= inner.lower).all()
        assert (inner.upper <= outer.upper).all()
        np.testing.assert_array_equal(inner.prediction, outer.prediction)
    np.testing.assert_array_equal(paths[3].lower, model.path().lower)
    assert (paths[1].upper - paths[1].lower < 0.8 * (paths[4].upper - paths[4].lower)).all()
    for level in (0.0, 1.0, float("nan"), "much"):
        with pytest.raises(ConfigurationError, match="level"):
            model.path(level=level)


def test_a_file_in_between(whole):
    model = make()
    advance(model, HOURS[:200])
    twin = from_bytes(to_bytes(model))
    assert repr(twin) == repr(model)
    first, second = (advance(one, HOURS[200:300]) for one in (model, twin))
    for mine, its in zip(first, second, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert_identical(model.state(), twin.state())


def test_no_rows_change_nothing():
    model = Forecaster(3, seasons=[7])
    model.advance(np.arange(20.0)[:, None], np.arange(20.0))
    before = model.state()
    assert not len(model.advance(np.empty((0, 1)), np.empty(0)).origin)
    assert_identical(model.state(), before)


def test_steps_that_are_rows():
    model = Forecaster(3, seasons=[7], effort="low")
    X, y = (HOURS % 7)[:, None].astype(float), HOURS % 7 + 10.0
    paths = model.advance(X, y)
    assert np.abs(paths.prediction - paths.target)[300:].mean() < 0.2
    assert model.path().time is None
    np.testing.assert_allclose(model.path().prediction, (ROWS + np.arange(3)) % 7 + 10.0, atol=0.5)


def test_errors_leave_no_trace(whole):
    model = make()
    advance(model, HOURS[:100])
    before, twin = model.state(), copy.deepcopy(model)
    for X, y in (([row(100)], [np.nan]), ([row(100), row(99)], [1.0, 2.0]), ([{"wind": 1.0}], [1.0])):
        with pytest.raises(InputError):
            model.advance(X, y)
    assert_identical(model.state(), before)
    for mine, its in zip(advance(model, HOURS[100:150]), advance(twin, HOURS[100:150]), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"horizon": "6h"}, "rows have no time"),
        ({"horizon": 6, "time": "when"}, "belong together"),
        ({"horizon": "90min", "time": "when", "step": "1h"}, "multiple of the step"),
        ({"horizon": 6, "time": "when", "step": "soon"}, "stretch of time"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 6, "level": 1.5}, "level"),
        ({"horizon": 6, "seasons": [1]}, "seasons"),
    ],
)
def test_what_is_refused(told, message):
    with pytest.raises(ConfigurationError, match=message):
        kons.Forecaster(**told)


def test_no_such_column():
    with pytest.raises(InputError, match="'sun', which is known ahead"):
        make(known_ahead=["sun"]).advance([row(0)], [1.0])
    with pytest.raises(InputError, match="no column 'then' of dates"):
        make(time="then").advance([row(0)], [1.0])
    with pytest.raises(InputError, match="no row has come"):
        make().path()


def test_the_same_place_in_earlier_seasons():
    grid = Grid(1)
    grid.begin({})
    values = np.array([1.0, np.nan, 3.0, 5.0, 7.0, np.nan])
    grid.append(Incoming(np.arange(6), np.column_stack([values] * 3)))
    found = same_place(grid, np.array([6, 7, 8]), [2, 4])
    np.testing.assert_array_equal(found, [5.0, 5.0, 7.0])
    np.testing.assert_array_equal(grid.means(Y, np.array([2, 5]), 3), [2.0, 6.0])


def test_days_of_the_same_kind():
    """Twice-daily rows; the twin walks back day by day, over weekends and holidays, whole and in part."""
    asked = Asked(2, (2, 14), ("holiday",), "when", 12 * 3_600_000_000)
    assert (asked.day, asked.looks) == (2, [2, 1, 2])
    grid, days = Grid(len(asked.looks)), np.arange(40)
    grid.begin({})
    weekend = np.isin((days + 4) % 7, [0, 6])  # day 0 is a Thursday
    share = np.where(weekend, 1.0, np.select([days == 31, days == 33, days == 34], [1.0, 0.7, 0.2], 0.0))
    values = rng.normal(size=80)
    values[rng.integers(80, size=6)] = np.nan
    bases = np.full((80, len(asked.looks)), np.nan)
    shares = np.repeat(np.where(weekend | (share == 0.0), np.nan, share), 2)
    grid.append(Incoming(np.arange(80), np.column_stack([values, shares, bases])))
    steps = np.arange(40, 80)
    expected = []
    for step in steps:
        found = {True: [], False: []}
        for back in range(1, 15):
            other = step - 2 * back
            its = found[bool(share[other // 2] >= 0.5)]
            if not np.isnan(values[other]) and len(its) < 4:
                its.append(values[other])
        part = share[step // 2]
        expected.append(part * np.mean(found[True]) + (1.0 - part) * np.mean(found[False]))
    np.testing.assert_allclose(alike(grid, steps, asked, 2), expected)


def test_a_base_says_nothing_of_steps_beyond_its_lead():
    asked = Asked(5, (7,), (), None, 1)
    assert asked.looks == [5, 2, 1, 5]
    grid = Grid(len(asked.looks))
    grid.begin({})
    grid.append(Incoming(np.arange(60), rng.normal(size=(60, 6))))
    found, origin = members(grid, np.array([50]), asked)[0], 50
    for h in range(1, 6):
        for place, lead in enumerate(asked.looks):
            said = grid.at(BASES + place, np.array([origin + h]))[0]
            assert np.isnan(found[h - 1, place]) if h > lead else found[h - 1, place] == said


def test_intervals_are_as_wide_as_the_hour_and_hold_at_each_horizon():
    """Quiet nights, and days whose noise nobody knows before."""
    hours = np.arange(24 * 40)
    noisy = hours % 24 >= 12
    noise = np.random.default_rng(0).normal(size=len(hours))
    values = 50.0 + 5.0 * noisy + np.where(noisy, 5.0, 0.5) * noise
    model = Forecaster(4, time="when", step="1h", effort="tiny")
    found = model.advance([{"when": START + np.timedelta64(int(i), "h")} for i in hours], values)
    late = slice(400, None)
    at = found.origin[late] - found.origin[0]
    inside = ((found.lower <= found.target) & (found.target <= found.upper))[late]
    # 550 rows, alike in groups of some 4: deviations of .025
    assert (abs(inside.mean(axis=0) - 0.9) < 0.05).all()
    width = (found.upper - found.lower)[late]
    for h in range(1, 5):
        day = (at + h) % 24 >= 12
        assert width[day, h - 1].mean() > 3.0 * width[~day, h - 1].mean()


def test_behind_a_gap_as_long_as_all_that_is_looked_at_the_level_is_kept():
    # Sixty days without a row, at 1e6: where bases said nothing, that was 0.
    values = 1e6 + VALUES
    model = make()
    advance(model, HOURS[:300], values)
    late = HOURS[300:] + 24 * 60
    later = np.concatenate([values[:300], np.zeros(24 * 60), values[300:]])
    _, prediction, target, *_ = advance(model, late, later)
    assert len(target) > ROWS - 350
    assert np.nanmax(np.abs(prediction - target)) < 10.0 * np.ptp(VALUES)


def test_no_path_leaves_the_range_of_the_targets_by_more_than_that():
    # One target of 1e12 among others of 20 was an input, and what it had moved the weights to was 1e8.
    values = VALUES.copy()
    values[250] = 1e12
    model = make()
    _, prediction, *_ = advance(model, HOURS[:450], values)
    assert np.abs(prediction).max() <= 2.001e12
    assert np.abs(model.path().prediction).max() <= 2.001e12


@pytest.mark.parametrize("cut", [7, 300])
def test_series_that_begin_before_1970(cut):
    start, values = np.datetime64("1969-12-25T00"), VALUES[:300]  # step 0 is among them
    given = [row(i) | {"when": start + np.timedelta64(i, "h")} for i in range(300)]
    model = make()
    parts = [model.advance(given[k : k + cut], values[k : k + cut]) for k in range(0, 300, cut)]
    origins = np.concatenate([part.origin for part in parts])
    assert np.diff(origins).tolist() == [1] * (len(origins) - 1)
    twin = from_bytes(to_bytes(model))
    np.testing.assert_array_equal(twin.path().prediction, model.path().prediction)
