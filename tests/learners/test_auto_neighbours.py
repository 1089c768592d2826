"""A fit to the nearest rows, and the Laplace kernel's own feature map."""

import numpy as np
import pytest

from kons import AutoKONS
from kons.errors import FileError
from kons.kernels import Laplace
from kons.learners.auto.feature_map import FeatureMap, Fixed, half_median_distance
from kons.learners.auto.metric_learning import fit_span
from kons.learners.auto.neighbour_metric import Rows, Setting, fit_neighbours
from kons.learners.auto.neighbours import NEAREST, Neighbours
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


@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("count", [20, 60, 700])
def test_all_sets_of_columns_of_two_rows_are_predicted_together_as_each_is_alone(columns, count):
    """In order, as reasons ask for them: each fit is one of eight, and begins from the nearest of another."""
    U, Y, weights = rows(count, columns)
    Y[:, 1] = np.where(U[:, 0] > 0.3, 1.0, 0.0)  # a class, within which all targets are alike
    expert = Neighbours(columns, 2, most=1000, regularization=0.1)
    expert.learn_past(U, Y, np.sqrt(weights))
    sets = (np.arange(2**columns)[:, None] >> np.arange(columns)[::-1]) & 1 > 0
    own, typical = np.random.default_rng(1).normal(size=(2, columns)).astype(np.float32)
    asked = np.where(sets, own, typical).astype(np.float64)
    expected = [
        by_definition(u, U, Y, weights, 0.1) if count > 32 else np.average(Y, axis=0, weights=weights)
        for u in asked
    ]
    np.testing.assert_allclose(expert.predict(asked), expected, atol=1e-3)
    # The same but for the rounding of fits whose condition is 1e3 at most.
    alone = np.concatenate([expert.predict_with_scatters(u[None])[0] for u in asked])
    np.testing.assert_allclose(expert.predict(asked), alone, rtol=1e-10, atol=1e-11)


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


@pytest.mark.parametrize("weight", [1e-200, 1e-310])
def test_weights_may_be_so_small_that_their_square_or_inverse_is_no_number(weight):
    U, Y, _ = rows()
    few, many, plain = (Neighbours(3, 2, most=1000) for _ in range(3))
    roots = np.full(60, np.sqrt(weight))
    few.learn_past(U[:9], Y[:9], roots[:9])
    # Of the smaller weight 13 digits are left.
    np.testing.assert_allclose(few.predict(U[:1])[0], Y[:9].mean(axis=0), rtol=1e-9)
    many.learn_past(U, Y, roots)
    plain.regularization = 1e100  # as beside such weights
    plain.learn_past(U, Y, np.ones(60))
    np.testing.assert_allclose(many.predict(U), plain.predict(U), rtol=1e-9)


def left_out(U, Y, weights, setting, places, slopes=False):
    return Rows([U], Y, weights, np.random.default_rng(0)).left_out(setting, places, slopes)


def steps_along_a_column():
    random = np.random.default_rng(0)
    X = random.uniform(-1.0, 1.0, size=(700, 2))
    return X, np.floor(4.0 * X[:, :1]) + 0.3 * random.normal(size=(700, 1)), np.ones(700)


def fitted(candidates, sizes, alpha=None, rows=700, before=None):
    _, Y, ones = (part[:rows] for part in steps_along_a_column())
    random, given = np.random.default_rng(0), [each[:rows] for each in candidates]
    return fit_neighbours(given, np.array(sizes), Y, ones, 1000, alpha, random, before=before)


def test_of_several_scalings_the_one_is_taken_in_which_the_nearest_rows_know_most():
    X, _, _ = steps_along_a_column()
    useless, useful = X * [0.01, 1.0], X
    for candidates, chosen in ([useless, useful], 1), ([useful, useless], 0):
        setting, expert = fitted(candidates, [1.0, 1.0])
        assert setting.scaling == chosen
        np.testing.assert_allclose(expert.points[:9], useful[:9] * setting.sizes, rtol=1e-6)


@pytest.mark.parametrize("sizes", [[1.0, 1.0], [0.1, 1.0]])
def test_columns_count_less_that_tell_less(sizes):
    X, Y, _ = steps_along_a_column()
    found, _ = fitted([X], sizes)
    assert found.sizes[1] / found.sizes[0] < 0.4 * sizes[1] / sizes[0]

    def error(sizes, alpha):
        setting = Setting(0, np.array(sizes), alpha)
        return np.sum(np.abs(left_out(X, Y, np.ones(700), setting, np.arange(700))[0]) ** 1.5)

    assert error(found.sizes, found.regularization) < 0.95 * error(sizes, 0.03)


def wide(sizes):
    """So many columns that only where a search starts is chosen."""
    return [np.hstack([steps_along_a_column()[0], np.zeros((700, 127))])], [*sizes, *np.ones(127)]


def test_a_search_starts_from_the_one_before_where_that_is_better():
    before = Setting(0, np.array(wide([1.0, 0.1])[1]), 0.03)
    for sizes, better in ([0.01, 1.0], True), ([1.0, 0.05], False):
        found, _ = fitted(*wide(sizes), before=before if better else before._replace(sizes=np.ones(129)))
        assert found.sizes.tolist() == wide([1.0, 0.1] if better else sizes)[1]


def test_a_given_regularization_stays_in_units_of_distance():
    single, double = (fitted(*wide([1.0, 1.0]), alpha)[1].regularization for alpha in (0.5, 1.0))
    assert double == 2.0 * single
    X = steps_along_a_column()[0]
    setting, _ = fitted([X], [1.0, 1.0], 0.5)
    apart = np.abs(X[:, None] - X) @ setting.sizes
    assert setting.regularization == pytest.approx(0.5 * np.median(apart), rel=0.2)


def test_where_targets_are_all_alike_there_is_nothing_to_search_for():
    X, Y, ones = steps_along_a_column()
    setting, _ = fit_neighbours([X], np.ones(2), 0.0 * Y + 1e9, ones, 1000, None, np.random.default_rng(0))
    assert setting.sizes.tolist() == [1.0, 1.0]


def test_slopes_are_what_scales_and_regularization_change_while_weights_stay():
    U, Y, weights = rows(count=80)
    slopes = left_out(U, Y, weights, Setting(0, np.ones(3), 0.3), np.arange(40), True)[1]
    for i in range(40):
        apart = np.abs(U - U[i]).sum(axis=1)
        near, end = np.argsort(apart)[1:33], np.sort(apart)[33]  # the row itself is left out
        counts = weights[near] * (1.0 - apart[near] / end)

        def fit(logarithms, i=i, near=near, counts=counts):
            points, alpha = U * np.exp(logarithms[:3]), 0.3 * np.exp(logarithms[3])
            system = np.pad(np.diag(alpha / counts), (0, 1), constant_values=1.0)
            system[:-1, :-1] -= np.abs(points[near, None] - points[near]).sum(axis=2)
            system[-1, -1] = 0.0
            right = np.append(-np.abs(points[near] - points[i]).sum(axis=1), 1.0)
            return np.linalg.solve(system, right)[:-1] @ Y[near]

        changes = [(fit(step) - fit(-step)) / 2e-4 for step in 1e-4 * np.eye(4)]
        np.testing.assert_allclose(slopes[i], np.transpose(changes), atol=1e-5 * np.abs(slopes).max())


def test_each_row_left_out_is_predicted_by_the_others():
    U, Y, weights = rows(count=200)  # in leaves that were made for other sizes
    some, expected, sizes = Rows([U], Y, weights, np.random.default_rng(0)), [], np.array([1.0, 0.3, 2.0])
    some.left_out(Setting(0, np.array([0.5, 2.0, 1.0]), 0.01), np.arange(9), False)
    for i in (3, 17, 159):
        others = np.arange(len(U)) != i
        without = Neighbours(3, 2, most=1000)
        without.learn_past(U[others] * sizes, Y[others], np.sqrt(weights[others]))
        expected.append(without.predict(U[[i]] * sizes)[0] - Y[i])
    found = some.left_out(Setting(0, sizes, 0.01), np.array([3, 17, 159]), False)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_only_the_last_rows_are_kept_and_fewer_of_many_columns():
    assert [Neighbours(columns, 1, most=8192).most for columns in (1, 32, 64)] == [8192, 8192, 4096]
    U, Y, weights = rows(count=120)
    expert, last = Neighbours(3, 2, most=80), Neighbours(3, 2, most=1000)
    expert.learn_past(U[:70], Y[:70], np.sqrt(weights[:70]))
    expert.learn_past(U[70:], Y[70:], np.sqrt(weights[70:]))
    last.learn_past(U[-80:], Y[-80:], np.sqrt(weights[-80:]))
    np.testing.assert_array_equal(expert.predict(U), last.predict(U))


def test_a_row_in_a_leaf_is_found_as_one_that_is_in_none():
    random, size = np.random.default_rng(0), 700
    U = np.round(random.normal(size=(size, 3)), 1)  # with doubles
    Y, ones = random.normal(size=(size, 2)), np.ones(size)
    sorted_in, young, plain = (Neighbours(3, 2, most) for most in (1000, 10_000, 1000))
    for part in slice(600), slice(600, size):
        sorted_in.learn_past(U[part], Y[part], ones[part])
        young.learn_past(U[part], Y[part], ones[part])
    plain.latest, plain.latest_values = U.astype(np.float32), np.column_stack([Y, ones])
    assert (len(sorted_in.points), len(sorted_in.latest)) == (600, 100)
    in_none = [expert.kept()[4].shape[1] for expert in (sorted_in, young, plain)]
    assert in_none == [100, 700 - 512, 700]
    asked = random.normal(size=(200, 3))
    # Which of those at one distance are among the nearest is a matter of single precision, and so are their
    # weights, which are differences from that distance: 6e-8 of 1, over a regularization of 0.01.
    for expert in sorted_in, young:
        np.testing.assert_allclose(expert.predict(asked), plain.predict(asked), atol=1e-5)
        np.testing.assert_allclose(expert.predict(U[:50]), plain.predict(U[:50]), atol=1e-5)


def test_fields_that_come_again_are_remembered_while_labels_that_change_are_not():
    random = np.random.default_rng(0)
    turn = np.arange(6000) // 500 % 4  # a quarter of the square at a time
    X = (random.uniform(size=(6000, 2)) + np.column_stack([turn % 2, turn // 2])) / 2.0
    fields = (np.floor(8.0 * X) @ [1, 3]).astype(int) % 4
    model = AutoKONS("classification", max_atoms=40)
    missed = model.advance(X, fields).prediction != fields
    # The first rows of a quarter when it comes for the third time, and later.
    again = (np.arange(6000) % 500 < 60) & (np.arange(6000) >= 4000)
    assert missed[again].mean() < 0.15


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
        ("points", lambda points: points + np.float32(np.inf)),
        ("values", lambda values: -values),
        ("values", lambda values: values[:, 1:]),
        ("values", lambda values: values * [1.0, 1.0, 1e307]),  # means would be no numbers
        ("values", lambda values: values * [1.0, 1.0, 5e-324]),
        ("values", lambda values: values * [1e200, 1.0, 1.0]),
        ("regularization", lambda regularization: 0.0 * regularization),
    ],
)
def test_a_forged_file_is_refused(name, forge):
    U, Y, weights = rows()
    expert = Neighbours(3, 2, most=200)
    expert.learn_past(U, Y, np.sqrt(weights))
    state = expert.state()
    again = Neighbours.from_stored(Stored(state, "neighbours"), 3, 2, 200)
    np.testing.assert_array_equal(again.predict(U), expert.predict(U))
    state = expert.state()
    state[name] = forge(state[name])
    with pytest.raises(FileError):
        Neighbours.from_stored(Stored(state, "neighbours"), 3, 2, 200)


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
