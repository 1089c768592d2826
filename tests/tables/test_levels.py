"""Levels and their target statistics: refereed by loops over all rows before, and by hand."""

import numpy as np
import pytest

import effort
from kons.tables import Encoder, records_of
from kons.tables.levels import MOST_INDICATORS, MOST_LEVELS, Indicators, Levels, TargetStatistics

RNG = np.random.default_rng(6)


def by_analysis_of_variance(levels, targets, level):
    """The shrunk mean of a level, from all rows before: one-way analysis of variance by moments."""
    levels, targets = np.array(levels), np.array(targets)
    if not len(targets):
        return 0.0
    mean, rows = targets.mean(), len(targets)
    names, counts = np.unique(levels, return_counts=True)
    means = np.array([targets[levels == name].mean() for name in names])
    m = 10.0
    if rows > len(names) + 1 and len(names) > 1:
        within = sum(
            ((targets[levels == name] - own) ** 2).sum() for name, own in zip(names, means, strict=True)
        )
        within /= rows - len(names)
        squares = (counts * (means - mean) ** 2).sum() - (len(names) - 1) * within
        between = squares / (rows - (counts**2).sum() / rows)
        m = 1000.0 if between * 1000.0 <= within else max(within / between, 0.1)
    own = targets[levels == level]
    return (own.sum() + m * mean) / (len(own) + m)


@pytest.mark.parametrize("told", [0.0, 0.3, 3.0])
def test_statistics_are_those_of_the_rows_before(told):
    codes = RNG.integers(0, 6, size=80)
    targets = 100.0 + told * codes + RNG.normal(size=80)
    statistics = TargetStatistics(1)
    statistics.reach(6)
    found = statistics.follow(codes, codes, targets[:, None], np.arange(80))[:, 0]
    expected = [by_analysis_of_variance(codes[:t], targets[:t], codes[t]) for t in range(80)]
    # Sums of squares around the first target, here some 10 in units of the noise: 1e2 * 80 roundings.
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert statistics.look(np.array([-1]))[0, 0] == pytest.approx(targets.mean(), rel=1e-12)


def test_shrinkage_by_hand():
    """Two levels of 2 rows: 1, 3 and 7, 9. Within 4/2 = 2, between (36 - 2)/2 = 17, so m = 2/17."""
    statistics = TargetStatistics(1)
    statistics.reach(2)
    codes, targets = np.array([0, 0, 1, 1]), np.array([[1.0], [3.0], [7.0], [9.0]])
    statistics.follow(codes, codes, targets, np.arange(4))
    m = 2.0 / 17.0
    expected = [(4.0 + 5.0 * m) / (2.0 + m), (16.0 + 5.0 * m) / (2.0 + m)]
    np.testing.assert_allclose(statistics.look(np.array([0, 1]))[:, 0], expected, rtol=1e-14)


@pytest.mark.parametrize("size", [1e150, 1e160, 1.7e308])
def test_statistics_of_targets_whose_squares_are_no_numbers_are_numbers(size):
    codes = np.tile([0, 1], 15_000)
    targets = np.where(codes == 0, size, 0.5 * size)[:, None]
    targets[0] = -size
    statistics = TargetStatistics(1)
    statistics.reach(2)
    found = statistics.follow(codes, codes, targets, np.arange(len(codes)), explains=True)
    assert np.isfinite(found).all()
    assert np.isfinite(targets).all()  # what it leaves for other columns
    assert np.isfinite(statistics.totals).all()


@pytest.mark.parametrize("column", ["many levels", "mostly 0"])
@pytest.mark.parametrize("labelled", [False, True])
def test_where_a_statistic_joins_earlier_rows_have_the_mean_of_all(column, labelled):
    """Of 600 targets around 900: at 0, earlier rows would be far from all that follow, for no reason."""
    codes = np.where(RNG.random(600) < 0.7, 0, RNG.integers(100, size=600))
    codes = RNG.integers(100, size=600) if column == "many levels" else codes
    rows = [{"x": f"l{code}" if column == "many levels" else code} for code in codes]
    targets = (codes % 2) if labelled else 900.0 + 50.0 * (codes % 2)
    encoder, joined = Encoder(labelled=labelled), []
    for piece in encoder.learn(records_of(rows), targets):
        if piece.growth is not None and encoder.features[-1] == "x mean target 1":
            joined.append(piece.growth.earlier[-1])
            assert joined == [pytest.approx(targets[: piece.rows.stop].mean(), rel=1e-12)]
    assert joined


@pytest.mark.parametrize("delay", [0, 5])
def test_columns_of_few_levels_explain_first(delay):
    """Of 80 areas what 3 kinds leave, which are told by name only behind them; 30 streets explain nothing."""
    rows, rng = 450, np.random.default_rng(3)
    area = rng.permuted(np.arange(rows) % 80)
    street, kind = rng.integers(30, size=rows), np.minimum(area % 4, rng.integers(3, size=rows))
    targets = 50.0 + 3.0 * kind + 0.1 * street + np.sin(area) + 0.1 * rng.normal(size=rows)
    table = [
        {"area": f"a{a}", "b": f"b{b}", "kind": f"k{k}"} for a, b, k in zip(area, street, kind, strict=True)
    ]
    encoder = Encoder(delay=delay)
    encoder.prepare(records_of(table))
    found = np.full(rows, np.nan)
    for piece in encoder.learn(records_of(table), targets):
        names = encoder.features[: piece.X.shape[1]]
        if "area mean target 1" in names:
            found[piece.rows] = piece.X[:, names.index("area mean target 1")]
    told = [by_analysis_of_variance(kind[:t], targets[:t], kind[t]) for t in range(rows)]
    left = targets - told + [targets[: max(t, 1)].mean() * (t > 0) for t in range(rows)]
    checked = np.flatnonzero(~np.isnan(found))[::5]
    expected = [by_analysis_of_variance(area[: t - delay], left[: t - delay], area[t]) for t in checked]
    # Sums of squares around the first target, some 10 in units of what is left: 1e2 * 450 roundings, twice.
    np.testing.assert_allclose(found[checked], expected, rtol=1e-10)
    assert len(checked) > 10


def test_late_targets_are_in_no_earlier_statistic():
    codes = RNG.integers(0, 3, size=50)
    targets = RNG.normal(size=(50, 1))

    def found(y):
        statistics = TargetStatistics(1)
        statistics.reach(3)
        return statistics.follow(codes, codes[:46], y[:46], np.clip(np.arange(50) - 4, 0, 46))

    changed = targets.copy()
    changed[20] += 100.0
    before, after = found(targets), found(changed)
    assert (before[:25] == after[:25]).all()  # the target of row 20 is known before row 25
    assert (before[25:] != after[25:]).all()


def test_however_many_identities_take_no_more_memory_than_ten_thousand():
    levels, count = Levels(), effort.amount(200_000, 1_000_000)
    names = (f"identity {i}" for i in range(count))
    codes = levels.learn([next(names) for _ in range(20_000)])
    assert codes[:10_000].tolist() == list(range(10_000))
    assert len(levels.names) == 10_000
    assert len(levels) == 11_024
    for _ in range(count // 20_000 - 1):
        codes = levels.learn([next(names) for _ in range(20_000)])
        assert 10_000 <= codes.min() <= codes.max() < 11_024
    assert (len(levels.names), len(levels)) == (10_000, 11_024)
    last = f"identity {count - 1}"
    assert levels.find(["identity 3", last, "never"])[0] == 3
    assert levels.find([last]) == codes[-1]


def test_indicators_go_to_the_first_frequent_levels():
    indicators = Indicators()
    indicators.reach(200)
    indicators.make_room()
    assert indicators.capacity == 4
    codes = np.repeat(np.arange(200), 2)
    assert indicators.first_growth(codes[:8]) == 8
    assert indicators.first_growth(codes) == 9  # a fifth level has come twice
    for capacity in (8, 16, 32, 64, 64):
        indicators.make_room()
        assert indicators.capacity == capacity
    found = indicators.learn(codes)
    assert (found == -1).all()  # each is learned behind its second row
    assert indicators.find(np.arange(200)).tolist() == [
        *range(MOST_INDICATORS),
        *[-1] * (200 - MOST_INDICATORS),
    ]


def test_later_on_only_frequent_levels_ask_for_more_columns():
    indicators = Indicators()
    indicators.reach(10)
    indicators.make_room()
    indicators.learn(np.repeat(np.arange(4), 300))
    rare, frequent = np.array([5, 5, 5]), np.repeat([6, 0], [5, 1])
    assert indicators.first_growth(rare) == 3  # three in 1,203 rows are fewer than one in 256
    assert indicators.first_growth(frequent) == 4
    indicators.learn(frequent[:5])
    assert indicators.lacks_room(6)
    assert not indicators.lacks_room(0)


def test_a_whole_number_is_the_same_level_with_and_without_its_decimal():
    levels = Levels()
    assert levels.learn(["4", "4.0", "7.0", "7", "-1", "v1", "v1.0", "4.50"]).tolist() == [
        0,
        0,
        1,
        1,
        2,
        3,
        4,
        5,
    ]
    assert levels.find(["-1.0", "4.5", "v1.0", ".0"]).tolist() == [2, -1, 4, -1]
    levels.learn([f"n{i}" for i in range(MOST_LEVELS)])
    assert levels.find_one("12") == levels.find_one("12.0") >= MOST_LEVELS
