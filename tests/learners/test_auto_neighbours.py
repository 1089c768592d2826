"""A fit to the nearest rows, and the Laplace kernel's own feature map."""

import numpy as np
import pytest

from kons import AutoKONS
from kons.errors import FileError
from kons.kernels import Laplace
from kons.learners.auto.feature_map import FeatureMap, Fixed, half_median_distance
from kons.learners.auto.metric_learning import fit_span
from kons.learners.auto.neighbours import NEAREST, Neighbours, fit_neighbours
from kons.scaling import RobustScaling
from kons.stored import Stored


def rows(count=60, columns=3, outputs=2):
    random = np.random.default_rng(0)
    U = random.normal(size=(count, columns)).astype(np.float32).astype(np.float64)
    return U, random.normal(size=(count, outputs)), random.choice([0.5, 1.0, 2.0], size=count)


def by_definition(u, U, Y, weights, alpha):
    """Kernel ridge regression with a wide Laplace kernel and a constant that is next to free."""
    distances = np.sum(np.abs(U - u), axis=1)
    near = np.argsort(distances)[: NEAREST + 1]
    w = weights[near[:-1]] * (1.0 - distances[near[:-1]] / distances[near[-1]])
    P, width = U[near[:-1]], 1e6
    K = width * np.exp(-np.sum(np.abs(P[:, None] - P), axis=2) / width) + 1e6
    k = width * np.exp(-distances[near[:-1]] / width) + 1e6
    return k @ np.linalg.solve(K + np.diag(alpha / w), Y[near[:-1]])


def test_a_prediction_is_a_ridge_fit_to_the_nearest_rows():
    U, Y, weights = rows()
    asked = np.random.default_rng(1).normal(size=(20, 3))
    for alpha in (0.03, 1.0):
        expert = Neighbours(3, 2, most=1000, regularization=alpha)
        expert.learn_past(U, Y, np.sqrt(weights))
        expected = [by_definition(u, U, Y, weights, alpha) for u in asked]
        # Distances of some 3 in single precision, over a regularization of at least 0.03.
        np.testing.assert_allclose(expert.predict(asked), expected, atol=1e-4 / alpha)


def test_what_is_linear_along_a_column_is_followed_between_two_rows():
    expert = Neighbours(1, 1, most=1000, regularization=1e-9)
    U = np.arange(0.0, 50.0)[:, None]
    expert.learn_past(U, 3.0 * U + 1.0, np.ones(50))
    np.testing.assert_allclose(expert.predict(U[20:30] + 0.25), 3.0 * U[20:30] + 1.75, atol=1e-5)


def test_all_rows_that_are_as_far_away_count_alike():
    expert = Neighbours(1, 1, most=1000)
    expert.learn_past(np.zeros((40, 1)), np.arange(40.0)[:, None], np.ones(40))
    assert expert.predict(np.array([[0.0], [1.0]])).ravel().tolist() == [19.5, 19.5]


def test_before_there_are_enough_rows_all_count_alike():
    expert = Neighbours(1, 1, most=1000)
    expert.learn_past(np.arange(3.0)[:, None], np.array([[0.0], [3.0], [6.0]]), np.ones(3))
    assert expert.predict(np.array([[0.0], [9.0]])).ravel().tolist() == [3.0, 3.0]


def test_of_several_scalings_the_one_is_taken_in_which_the_nearest_rows_know_most():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(700, 2))
    Y, ones = np.floor(4.0 * X[:, :1]) + 0.3 * random.normal(size=(700, 1)), np.ones(700)
    useless, useful = X * [0.1, 1.0], X * [1.0, 0.1]
    for candidates, chosen in ([useless, useful], 1), ([useful, useless], 0):
        which, expert = fit_neighbours(candidates, Y, ones, 1000, None, np.random.default_rng(0))
        assert which == chosen
        places = np.sort(np.random.default_rng(0).permutation(700)[:512])
        found, tried = expert.regularization, []
        for factor in (1.0 / 3.16, 1.0, 3.16):
            expert.regularization = factor * found
            tried.append(expert.leave_one_out(places))
        assert tried[1] == min(tried)
        _, given = fit_neighbours(candidates, Y, ones, 1000, 0.5, np.random.default_rng(0))
        _, double = fit_neighbours(candidates, Y, ones, 1000, 1.0, np.random.default_rng(0))
        assert double.regularization == 2.0 * given.regularization


def test_each_row_left_out_is_predicted_by_the_others():
    U, Y, weights = rows()
    expert = Neighbours(3, 2, most=1000)
    expert.learn_past(U, Y, np.sqrt(weights))
    expected = 0.0
    for i in (3, 17, 59):
        others = np.arange(len(U)) != i
        without = Neighbours(3, 2, most=1000)
        without.learn_past(U[others], Y[others], np.sqrt(weights[others]))
        expected += weights[i] * np.sum((without.predict(U[[i]])[0] - Y[i]) ** 2)
    assert expert.leave_one_out(np.array([3, 17, 59])) == pytest.approx(expected, rel=1e-9)


def test_only_the_last_rows_are_kept_and_fewer_of_many_columns():
    assert [Neighbours(columns, 1, most=8192).most for columns in (1, 32, 64)] == [8192, 8192, 4096]
    U, Y, weights = rows(count=120)
    expert, last = Neighbours(3, 2, most=80), Neighbours(3, 2, most=1000)
    expert.learn_past(U[:70], Y[:70], np.sqrt(weights[:70]))
    expert.learn_past(U[70:], Y[70:], np.sqrt(weights[70:]))
    last.learn_past(U[-80:], Y[-80:], np.sqrt(weights[-80:]))
    np.testing.assert_array_equal(expert.predict(U), last.predict(U))


@pytest.mark.parametrize(("moves", "kept"), [(False, 2000), (True, 512)])
def test_rows_are_forgotten_where_the_last_ones_alone_would_have_been_better(moves, kept):
    random = np.random.default_rng(0)
    U = random.uniform(-1.0, 1.0, size=(2000, 2))
    Y = np.where(moves & (np.arange(2000) < 1300), -1.0, 1.0)[:, None] * U[:, :1]
    expert = Neighbours(2, 1, most=5000)
    expert.learn_past(U, Y, np.ones(2000))
    expert.forget()
    np.testing.assert_array_equal(expert.points, U[-kept:].T.astype(np.float32))
    np.testing.assert_array_equal(expert.values, np.column_stack([Y, np.ones(2000)])[-kept:])


def test_steps_that_come_again_are_known_by_their_neighbours():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(3000, 2))
    y = np.floor(3.0 * X[:, 0]) * np.floor(3.0 * X[:, 1]) % 5.0
    model = AutoKONS(max_atoms=40)
    model.advance(X, y)
    assert model.shares["neighbours, features"] > 0.3


@pytest.mark.parametrize(
    ("name", "forge"),
    [
        ("points", lambda points: points.astype(float)),
        ("points", lambda points: points[:, 1:]),
        ("points", lambda points: points * np.float32(np.inf)),
        ("values", lambda values: -values),
        ("values", lambda values: values[:, 1:]),
        ("regularization", lambda regularization: 0.0 * regularization),
    ],
)
def test_a_forged_file_is_refused(name, forge):
    U, Y, weights = rows()
    expert = Neighbours(3, 2, most=1000)
    expert.learn_past(U, Y, np.sqrt(weights))
    state = expert.state()
    again = Neighbours.from_stored(Stored(state, "neighbours"), 3, 2, 1000)
    np.testing.assert_array_equal(again.predict(U), expert.predict(U))
    state = expert.state()
    state[name] = forge(state[name])
    with pytest.raises(FileError):
        Neighbours.from_stored(Stored(state, "neighbours"), 3, 2, 1000)


def test_the_laplace_kernel_has_a_metric_along_the_columns_and_its_own_bandwidth():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(600, 3))
    Y = (np.floor(3.0 * X[:, 0]) + (X[:, 1] > 0.2))[:, None]
    scaling = RobustScaling.fit(X)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    rotated = FeatureMap(scaling, np.diag([1.0, 0.5, 0.1]) @ turn, regularization=0.1)
    scaled, ones = scaling.transform(X), np.ones(600)
    found = rotated.along_axes(scaled, Y, ones, Fixed(), np.random.default_rng(1))
    np.testing.assert_allclose(found.metric, np.diag([1.0, 0.5, 0.1]), atol=1e-12)

    def error(bandwidth, alpha):
        centred, steps = Y - Y.mean(), (0, 0)
        atoms, kernel = scaled[::5], Laplace("auto")
        return fit_span(
            scaled, centred, found.metric, atoms, bandwidth, alpha, steps=steps, kernel=kernel
        ).error

    unit = half_median_distance(scaled, found.metric, random, absolute=True)
    best = error(found.bandwidth, found.regularization)
    assert best <= min(error(ratio * unit, 0.1) for ratio in (0.5, 1.0, 4.0, 16.0))


def test_what_is_fixed_is_not_searched_for():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(100, 2))
    given = FeatureMap(RobustScaling.fit(X), np.eye(2), regularization=0.7)
    fixed = Fixed(bandwidth=0.3, regularization=0.7)
    found = given.along_axes(X, X[:, :1], np.ones(100), fixed, np.random.default_rng(0))
    assert (found.bandwidth, found.regularization) == (0.3, 0.7)


def test_points_of_a_grid_that_are_as_far_away_stay_so_however_coordinates_are_rounded():
    random = np.random.default_rng(0)
    grid = 0.37 * random.integers(0, 4, size=(300, 2))
    between = 0.37 * (random.integers(0, 4, size=(40, 2)) + 0.5)
    Y, said = random.normal(size=(300, 1)), []
    for k in range(10):
        expert, factor = Neighbours(2, 1, most=1000), 1.0 + 1e-8 * k
        expert.learn_past(factor * grid, Y, np.ones(300))
        said.append(expert.predict(factor * between))
    # Weights are differences of single precision, of some tenths.
    assert np.ptp(said, axis=0).max() < 1e-5 * np.ptp(Y)
