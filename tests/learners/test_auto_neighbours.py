"""The mean of the nearest rows, and the Laplace kernel's own feature map."""

import numpy as np
import pytest

from kons import AutoKONS
from kons.errors import FileError
from kons.kernels import Laplace
from kons.learners.auto.feature_map import FeatureMap, Fixed, half_median_distance
from kons.learners.auto.metric_learning import fit_span
from kons.learners.auto.neighbours import NEAREST, Neighbours
from kons.scaling import RobustScaling
from kons.stored import Stored


def rows(count=60, columns=3, outputs=2):
    random = np.random.default_rng(0)
    U = random.normal(size=(count, columns)).astype(np.float32).astype(np.float64)
    return U, random.normal(size=(count, outputs)), random.choice([0.5, 1.0, 2.0], size=count)


def by_definition(u, U, Y, weights):
    squares = np.sum((U - u) ** 2, axis=1)
    near = np.argsort(squares)[: NEAREST + 1]
    w = weights[near[:-1]] * (1.0 - squares[near[:-1]] / squares[near[-1]])
    return w @ Y[near[:-1]] / w.sum()


def test_a_prediction_is_the_weighted_mean_of_the_nearest_rows():
    U, Y, weights = rows()
    expert = Neighbours(3, 2, most=1000)
    expert.learn_past(U, Y, np.sqrt(weights))
    asked = np.random.default_rng(1).normal(size=(20, 3))
    expected = [by_definition(u, U, Y, weights) for u in asked]
    # Squared distances in single precision, to 1e-6 of them.
    np.testing.assert_allclose(expert.predict(asked), expected, atol=1e-4)


def test_all_rows_that_are_as_far_away_count_alike():
    expert = Neighbours(1, 1, most=1000)
    expert.learn_past(np.zeros((20, 1)), np.arange(20.0)[:, None], np.ones(20))
    assert expert.predict(np.array([[0.0], [1.0]])).ravel().tolist() == [9.5, 9.5]


def test_before_there_are_nine_rows_all_count_alike():
    expert = Neighbours(1, 1, most=1000)
    expert.learn_past(np.arange(3.0)[:, None], np.array([[0.0], [3.0], [6.0]]), np.ones(3))
    assert expert.predict(np.array([[0.0], [9.0]])).ravel().tolist() == [3.0, 3.0]


def test_only_the_last_rows_are_kept_and_fewer_of_many_columns():
    assert [Neighbours(columns, 1, most=8192).most for columns in (1, 32, 64)] == [8192, 8192, 4096]
    U, Y, weights = rows()
    expert, last = Neighbours(3, 2, most=20), Neighbours(3, 2, most=1000)
    expert.learn_past(U[:30], Y[:30], np.sqrt(weights[:30]))
    expert.learn_past(U[30:], Y[30:], np.sqrt(weights[30:]))
    last.learn_past(U[-20:], Y[-20:], np.sqrt(weights[-20:]))
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
