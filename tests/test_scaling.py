"""Robust scaling: refereed by sorting values by hand, and by what must hold for any numbers."""

import math
import statistics
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import effort
from kons.errors import FileError
from kons.scaling import LIMIT, RobustScaling, TargetScaling, median_bandwidth, sampled_rows
from kons.stored import Stored

RNG = np.random.default_rng(1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_medians_and_interquartile_ranges():
    X = RNG.normal(size=(401, 3)) * [1.0, 1e6, 1e-9] + [0.0, 5.0, 1.0]
    scaling = RobustScaling.fit(X)
    for j in range(3):
        quarter, median, three = statistics.quantiles(X[:, j], n=4, method="inclusive")
        assert scaling.medians[j] == pytest.approx(median, rel=1e-12)
        assert scaling.spreads[j] == pytest.approx(three - quarter, rel=1e-9)
    Z = scaling.transform(X)
    near = np.abs(Z) <= LIMIT
    np.testing.assert_allclose(Z[near], ((X - scaling.medians) / scaling.spreads)[near], rtol=1e-9)
    assert not scaling.rare.any()


def test_half_of_the_values_the_same():
    X = np.zeros((100, 1))
    X[:10], X[10] = 3.0, 6.0
    scaling = RobustScaling.fit(X)
    assert scaling.rare.tolist() == [True]
    assert scaling.spreads[0] == pytest.approx(math.sqrt((10 * 9.0 + 36.0) / 100 - 0.36**2))


@pytest.mark.parametrize("count", [1, 10, 24])
def test_two_values_are_one_unit_apart_however_rare_one_of_them_is(count):
    X = np.full((100, 1), 2.0)
    X[:count] = 5.0
    assert RobustScaling.fit(X).transform(np.array([[5.0], [2.0]])).ravel().tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("value", "unit"), [(0.0, 1.0), (-3.5, 3.5), (1e300, 1e300), (1e-320, 1.0)])
def test_a_constant_feature_is_measured_by_its_own_size_when_it_moves(value, unit):
    X = np.column_stack([np.full(50, value), np.arange(50.0)])
    scaling = RobustScaling.fit(X)
    assert scaling.constant.tolist() == [True, False]
    later = scaling.transform(
        np.array([[value, 1.0], [value + unit, 1.0], [value - unit / 2, 1.0], [-1e308, 1.0]])
    )
    np.testing.assert_allclose(later[:3, 0], [0.0, 1.0, -0.5], rtol=1e-12)
    assert np.isfinite(later).all()
    assert later[3, 0] < -0.5


def test_noise_in_the_last_digits_is_constant():
    X = np.full((50, 1), 0.1)
    X[::2] = np.nextafter(0.1, 1.0)
    assert RobustScaling.fit(X).constant.all()


def test_the_far_tail_is_drawn_in():
    scaling = RobustScaling(np.array([10.0]), np.array([2.0]), np.array([False]), limit=3.0)
    x = np.array([[16.0], [10.0 + 6.0 * math.e], [10.0 - 6.0 * math.e**2], [16.0 + 1e-6]])
    np.testing.assert_allclose(scaling.transform(x).ravel(), [3.0, 6.0, -9.0, 3.0 + 0.5e-6], rtol=1e-12)


@effort.examples(60)
@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=FINITE),
    later=st.lists(FINITE, min_size=2, max_size=8),
)
def test_any_numbers_stay_finite_and_in_order(X, later):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaling = RobustScaling.fit(X)
        rows = np.repeat(np.sort(later)[:, None], X.shape[1], axis=1)
        Z = scaling.transform(rows)
        bandwidth = median_bandwidth(scaling.transform(X))
    assert np.isfinite(Z).all()
    assert (np.diff(Z, axis=0) >= 0.0).all()
    assert np.abs(Z).max() < 3000.0
    assert math.isfinite(bandwidth)
    assert bandwidth > 0.0
    np.testing.assert_array_equal(scaling.transform(rows[0]), Z[0])


@given(counts=st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any), seed=st.integers(0, 50))
def test_a_weight_of_two_is_a_row_twice(counts, seed):
    X = np.random.default_rng(seed).normal(size=(12, 2)).round(1)
    weights = np.array(counts, dtype=np.float64)
    repeated = X.repeat(counts, axis=0)
    ones = np.ones(len(repeated))
    for one, other in (
        (RobustScaling.fit(X, weights=5.0 * weights), RobustScaling.fit(repeated, weights=ones)),
        (
            TargetScaling.fit(X[:, 0], 1.0, weights=weights),
            TargetScaling.fit(repeated[:, 0], 1.0, weights=ones),
        ),
    ):
        for name in ("medians", "spreads") if isinstance(one, RobustScaling) else ("centre", "reach"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)
    assert median_bandwidth(X, weights=weights) == median_bandwidth(repeated, weights=ones)


def test_weights_that_are_all_zero_are_none():
    X = RNG.normal(size=(20, 2))
    np.testing.assert_array_equal(
        RobustScaling.fit(X, weights=np.zeros(20)).medians, RobustScaling.fit(X).medians
    )
    assert median_bandwidth(X, weights=np.zeros(20)) == median_bandwidth(X)


# ---- targets


def test_targets_have_room():
    y = np.array([1.0, 2.0, 3.0, 4.0, 11.0])
    scaling = TargetScaling.fit(y, margin=0.25, bound=2.0)
    assert scaling.centre == 3.0
    assert np.abs(scaling.scale(y)).max() == pytest.approx(2.0 / 1.25)
    np.testing.assert_allclose(scaling.unscale(scaling.scale(y)), y)


@pytest.mark.parametrize(("value", "reach"), [(0.0, 2.0), (-7.0, 14.0), (1e-310, 2.0), (1e-300, 2.0)])
def test_constant_targets_have_a_reach(value, reach):
    assert TargetScaling.fit([value] * 4, margin=1.0).reach == reach


# ---- bandwidths


def test_the_median_distance():
    X = RNG.normal(size=(30, 3))
    pairs = [(i, j) for i in range(30) for j in range(i)]
    assert median_bandwidth(X) == pytest.approx(statistics.median(math.dist(X[i], X[j]) for i, j in pairs))
    absolute = statistics.median(sum(abs(X[i] - X[j])) for i, j in pairs)
    assert median_bandwidth(X, absolute=True) == pytest.approx(absolute)


def test_equal_rows_are_no_distance():
    assert median_bandwidth(np.ones((9, 2))) == 1.0
    assert median_bandwidth(np.array([[0.0], [0.0], [0.0], [5.0]])) == 5.0


def test_some_rows_of_many():
    assert (sampled_rows(3), sampled_rows(500), sampled_rows(100_000)) == (3, 500, 500)
    X = np.linspace(0.0, 1.0, 5000)[:, None]
    assert median_bandwidth(X) == pytest.approx(1.0 - math.sqrt(0.5), rel=0.01)


# ---- state


def test_the_state_goes_and_comes_back():
    X = RNG.normal(size=(20, 3))
    X[:, 1] = 4.0
    scaling = RobustScaling.fit(X)
    twin = RobustScaling.from_stored(Stored(scaling.state(), "it"), 3)
    np.testing.assert_array_equal(twin.transform(X), scaling.transform(X))
    assert (twin.rare == scaling.rare).all()
    with pytest.raises(FileError, match="shape"):
        RobustScaling.from_stored(Stored(scaling.state(), "it"), 4)
