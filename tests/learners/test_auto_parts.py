"""The parts of the learner that chooses by itself, each against a plain twin."""

import numpy as np
import pytest

from kons.errors import FileError
from kons.kernels import Gaussian
from kons.learners.auto import metric_learning
from kons.learners.auto.effort import EFFORTS, Settings
from kons.learners.auto.expert import SpanRidge
from kons.learners.auto.feature_map import CachedFeatures, FeatureMap
from kons.learners.auto.metric_learning import first_relevances, fit_span, leave_one_out
from kons.learners.auto.quantile_scaling import KNOTS, QuantileScaling
from kons.learners.auto.reservoir import Reservoir
from kons.learners.auto.rows import Layout
from kons.learners.auto.schedule import CHUNK
from kons.learners.auto.stacking import Stacking
from kons.learners.auto.stream_rows import StreamRows
from kons.scaling import RobustScaling
from kons.stored import Stored

RNG = np.random.default_rng(4)


def test_stacking_is_online_ridge_regression_around_equal_weights():
    F, y = RNG.normal(size=(60, 3, 1)), RNG.normal(size=60)
    stacking = Stacking(3)
    predictions = stacking.advance(F, np.zeros(60), F, np.zeros(60), y[:, None])
    A, c = np.eye(3), np.full(3, 1 / 3)
    for t in range(60):
        assert predictions[t, 0] == pytest.approx(F[t, :, 0] @ np.linalg.solve(A, c), abs=1e-9)
        A += np.outer(F[t, :, 0], F[t, :, 0])
        c += F[t, :, 0] * y[t]


def test_stacking_leaves_a_useless_expert_behind():
    truth = np.sin(np.arange(2000) / 7.0)
    F = np.stack([truth, RNG.normal(size=2000)], axis=1)[:, :, None]
    stacking = Stacking(2)
    predictions = stacking.advance(F, np.zeros(2000), F, np.zeros(2000), truth[:, None])
    assert np.mean((predictions[-500:, 0] - truth[-500:]) ** 2) < 1e-4
    assert stacking.weights == pytest.approx([1.0, 0.0], abs=0.02)


def test_stacking_outlives_predictions_that_16_digits_do_not_resolve_beside_its_prior():
    """As of rows that were predicted after a wild target, and learned when it was known to be one."""
    random, stacking = np.random.default_rng(0), Stacking(4)
    for chunk in range(9):
        y = random.normal(size=(16, 1))
        F = y[:, None] + 0.1 * random.normal(size=(16, 4, 1))
        if chunk == 2:
            F[3], F[5] = 1e12, 1e12 * random.normal(size=(4, 1))
        stacking.advance(F, np.zeros(16), F, np.zeros(16), y)
        stacking.end_chunk(16, 1.0)
    # Of two rows; the eigenvalues of A are at least 1, so that its factor has some digits left.
    assert np.abs(stacking.moved.S).max() <= 2e14
    assert np.isfinite(stacking.weights).all()


def test_stacking_knows_how_far_one_expert_is_ahead_of_another():
    """From its sums, whatever was forgotten and removed: differences of squares, halved in 256 rows."""
    random, stacking, expected, counted = np.random.default_rng(0), Stacking(3), 0.0, 0.0
    pair = (1, 2)
    for chunk in range(6):
        y = 5.0 + random.normal(size=64)
        F = (
            y[:, None]
            + random.normal(size=(64, len(stacking.weights)))
            * [0.5, 0.2 * chunk, 0.6][-len(stacking.weights) :]
        )
        stacking.advance(F[:, :, None], np.full(64, 5.0), F[:, :, None], np.full(64, 5.0), y[:, None])
        ahead = np.sum((y - F[:, pair[1]]) ** 2 - (y - F[:, pair[0]]) ** 2)
        decay = 0.5 ** (64 / 256)
        expected, counted = decay * expected + ahead, decay * counted + 64
        stacking.compare(64, pair)
        stacking.end_chunk(64, 1.0, moving=chunk == 2)
        if chunk == 3:
            stacking.remove([0])
            pair = (0, 1)
        stacking.begin_comparison(pair)
        assert stacking.lead == pytest.approx(expected, rel=1e-9)
        assert stacking.leads(0.5) == (expected > 0.1 * counted * 0.5)


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_a_live_expert_is_ridge_regression_fitted_anew_for_every_row(forgetting):
    U, Y = RNG.normal(size=(CHUNK, 2)), RNG.normal(size=(CHUNK, 2))
    atoms = RNG.normal(size=(7, 2))
    kernel, alpha = Gaussian(1.0), 0.3
    expert = SpanRidge(kernel, atoms, alpha, outputs=2, forgetting=forgetting, live=True)
    expert.learn_past(U[:0], Y[:0], np.ones(0))
    known = np.arange(CHUNK)
    got = np.concatenate(
        [
            expert.advance(U[part], None, Y[part], np.ones(len(U[part])), known[part])
            for part in (slice(0, 1), slice(1, 20), slice(20, CHUNK))
        ]
    )
    K = np.hstack([kernel.gram(U, atoms), np.ones((CHUNK, 1))])
    penalty = np.eye(8)
    penalty[:7, :7] = kernel.gram(atoms, atoms)
    for t in range(CHUNK):
        # In units of the start of the chunk: inside it the ridge fades as the past does.
        weights = forgetting ** -np.arange(1.0, t + 1.0)[:, None]
        A = alpha * penalty + K[:t].T @ (weights * K[:t])
        theta = np.linalg.solve(A, K[:t].T @ (weights * Y[:t]))
        np.testing.assert_allclose(got[t], K[t] @ theta, atol=1e-8)


def test_leave_one_out_is_what_leaving_out_gives():
    K, Y, alpha = RNG.normal(size=(30, 5)), RNG.normal(size=(30, 1)), 0.7
    errors = []
    for i in range(30):
        rest = np.arange(30) != i
        theta = np.linalg.solve(alpha * np.eye(5) + K[rest].T @ K[rest], K[rest].T @ Y[rest])
        errors.append((Y[i] - K[i] @ theta) ** 2)
    found, _ = leave_one_out(K, alpha * np.eye(5), Y)
    assert found == pytest.approx(float(np.mean(errors)), rel=1e-8)


def test_the_sample_of_a_history_is_uniform_and_does_not_depend_on_cuts():
    rows = np.arange(5000.0)[:, None]
    whole, cut = Reservoir(400, 50, seed=1), Reservoir(400, 50, seed=1)
    for start in range(0, 5000, 50):
        whole.extend(rows[start : start + 50])
        whole.sample_recent()
        for part in (slice(start, start + 37), slice(start + 37, start + 50)):
            cut.extend(rows[part])
            cut.sample_recent()
    np.testing.assert_array_equal(whole.sampled(), cut.sampled())
    np.testing.assert_array_equal(cut.last(50).ravel(), np.arange(4950.0, 5000.0))
    # The mean of 400 out of 5,000: a deviation of 69 around 2,499.5.
    assert abs(whole.sampled().mean() - 2499.5) < 4 * 69.0


@pytest.mark.parametrize("rows", [0, 3, 40, 130])
def test_a_row_that_is_kept_twice_is_saved_once(rows):
    history, again = Reservoir(30, 20, seed=1), Reservoir(30, 20, seed=1)
    for row in range(rows):
        history.extend(np.array([[row, -row]], dtype=float))
        if row % 7 == 0:
            history.sample_recent()
    state = history.state()
    saved = np.concatenate([state["kept"].reshape(-1, 2), state["last"].reshape(-1, 2)])
    assert len(np.unique(saved, axis=0)) == len(saved)
    again.load_state(Stored(state, "Reservoir"), columns=2)
    np.testing.assert_array_equal(again.last(20), history.last(20))
    np.testing.assert_array_equal(again.sampled(), history.sampled())


def test_ranks_do_not_know_units():
    X = RNG.normal(size=(100, 1))  # fewer than are remembered: nothing is interpolated
    np.testing.assert_allclose(
        QuantileScaling.fit(X).transform(X),
        QuantileScaling.fit(np.exp(3 * X)).transform(np.exp(3 * X)),
        atol=1e-12,
    )


def ranks_one_by_one(X, x):
    """The share of each column's values below x, ties by half, stretched to [-1, 1]; x among the values."""
    below, level = (x > X).mean(axis=0), (x == X).mean(axis=0)
    return 2.0 * (below + 0.5 * level) - 1.0


@pytest.mark.parametrize("rows", [1, 2, 40, KNOTS, 400, 3000])
def test_ranks_are_shares_of_smaller_values(rows):
    rng = np.random.default_rng(rows)
    X = np.column_stack(
        [
            rng.normal(size=rows),
            rng.integers(0, 9, size=rows),
            np.full(rows, 3.0),
            rng.standard_cauchy(size=rows),
        ]
    )
    scaling = QuantileScaling.fit(X)
    assert max(len(values) for values in scaling.values) <= KNOTS
    exact = np.array([ranks_one_by_one(X, x) for x in X])
    # Between knots, which are at most 2/128 of the ranks apart: as far off as those.
    np.testing.assert_allclose(
        scaling.transform(X), exact, atol=1e-12 if rows <= KNOTS else 2.0 / (KNOTS - 1)
    )
    np.testing.assert_allclose(scaling.transform(X)[:, 1:3], exact[:, 1:3], atol=1e-12)
    ends = scaling.transform(np.array([X.min(axis=0) - 1.0, X.max(axis=0) + 1.0]))
    np.testing.assert_allclose(ends[0], ranks_one_by_one(X, X.min(axis=0)), atol=1e-12)
    np.testing.assert_allclose(ends[1], ranks_one_by_one(X, X.max(axis=0)), atol=1e-12)


def test_rows_are_scaled_once_for_views_that_share_a_scaling(monkeypatch):
    X = RNG.normal(size=(50, 3))
    layout = Layout(3, False)
    rows = layout.join(X, np.zeros((50, 2)), np.zeros(50), np.ones(50))
    scaling = RobustScaling.fit(X)
    one, other = (FeatureMap(scaling, metric, features=3) for metric in (np.eye(3), np.diag([1.0, 0.5, 0.1])))
    calls = []
    honest = RobustScaling.transform
    monkeypatch.setattr(RobustScaling, "transform", lambda self, X: calls.append(1) or honest(self, X))
    seen = CachedFeatures(rows, layout)
    places = [seen.coordinates(view, False) for view in (one, other, one)]
    assert len(calls) == 1
    np.testing.assert_allclose(places[1], honest(scaling, X) * [1.0, 0.5, 0.1])
    assert places[2] is places[0]


def test_one_matrix_of_distances_serves_every_bandwidth(monkeypatch):
    X = RNG.uniform(-1, 1, size=(200, 3))
    measured = []
    honest = metric_learning.squared_distances

    def counted(U, A, *args, **options):
        measured.append(len(U))
        return honest(U, A, *args, **options)

    monkeypatch.setattr(metric_learning, "squared_distances", counted)
    monkeypatch.setattr(Gaussian, "evaluate_into", lambda *args: pytest.fail("distances once more"))
    fit = fit_span(X, np.sin(3 * X[:, :1]), np.eye(3), X[:50], bandwidth=5.0, regularization=0.1)
    assert fit.bandwidth < 3.0  # several were tried
    assert sorted(measured) == [50, 200]


@pytest.mark.parametrize("bandwidth", [1e-150, 1e150])
def test_bandwidths_beyond_all_distances_are_no_trouble(bandwidth):
    X = RNG.uniform(-1e6, 1e6, size=(60, 2))
    fit = fit_span(X, X[:, :1] / 1e6, np.eye(2), X[:20], bandwidth, regularization=0.1, steps=(0, 1))
    assert np.isfinite(fit.error)


def ensemble():
    return StreamRows(Settings(classes=False, effort=EFFORTS["normal"]._replace(max_atoms=60)))


def stream(rows=1500):
    rng = np.random.default_rng(7)
    X = np.column_stack([1e3 * rng.normal(size=rows), rng.normal(size=rows), 1e-3 * rng.normal(size=rows)])
    return X, 5e4 + 1e3 * np.sin(2.0 * X[:, 1]) + 10.0 * rng.normal(size=rows)


def advanced(engine, X, y, cuts, delay=0):
    parts = []
    for start, stop in zip([0, *cuts], [*cuts, len(y)], strict=True):
        parts += engine.advance(X[start:stop], y[start:stop, None], np.ones(stop - start), delay)
    return np.concatenate([part.predictions for part in parts])


def test_the_ensemble_finds_the_feature_that_counts_in_raw_units():
    X, y = stream()
    engine = ensemble()
    prediction = advanced(engine, X, y, [])[:, 0]
    assert np.mean((prediction[-500:] - y[-500:]) ** 2) < 0.02 * y.var()
    assert np.argmax(engine.current.relevances()) == 1


def test_how_rows_are_cut_does_not_matter_to_the_ensemble():
    X, y = stream(700)
    whole = advanced(ensemble(), X, y, [])
    np.testing.assert_allclose(advanced(ensemble(), X, y, [1, 5, 70, 333, 334]), whole, rtol=1e-6)


def test_a_target_that_a_delay_hides_changes_no_prediction():
    X, y = stream(400)
    other = y.copy()
    other[300] += 1e6
    a, b = (advanced(ensemble(), X, targets, [], delay=9) for targets in (y, other))
    np.testing.assert_array_equal(a[:310], b[:310])  # row 300 becomes known after row 309 was predicted
    assert not np.array_equal(a[310:], b[310:])


def test_a_row_is_predicted_without_its_own_target_to_the_last_bit():
    U, Y = RNG.normal(size=(CHUNK, 2)), RNG.normal(size=(CHUNK, 1))
    predictions = []
    for own in (0.0, 1e15):
        expert = SpanRidge(Gaussian(1.0), U[:9], 0.1, outputs=1, live=True)
        expert.learn_past(U[:20], Y[:20], np.ones(20))
        Y[40] = own
        predictions.append(expert.advance(U, None, Y, np.ones(CHUNK), np.arange(CHUNK)))
    assert predictions[0][:41].tolist() == predictions[1][:41].tolist()
    assert predictions[0][41] != predictions[1][41]


def test_a_square_root_metric_has_the_bandwidth_of_its_own_distances():
    X = RNG.normal(size=(200, 2))
    whole = FeatureMap(QuantileScaling.fit(X), np.diag([1.0, 0.04]), ratio=2.0)
    root = whole.with_square_root_metric(X, np.random.default_rng(0))
    assert np.abs(root.metric) == pytest.approx(np.diag([1.0, 0.2]))
    # The bandwidth is in units of half the median distance, which grows with the metric.
    pairs = X[:, None] - X
    middle = np.median(np.sqrt(np.sum((pairs[~np.eye(200, dtype=bool)] * [1.0, 0.2]) ** 2, axis=1)))
    assert root.bandwidth == pytest.approx(middle, rel=0.2)  # the median of 256 pairs


def test_a_saved_scaling_with_more_in_it_is_refused():
    state = QuantileScaling.fit(RNG.normal(size=(50, 2))).state()
    assert QuantileScaling.from_stored(Stored(state, "a scaling"), 2).state().keys() == state.keys()
    with pytest.raises(FileError, match="more"):
        QuantileScaling.from_stored(Stored(state | {"more": 1.0}, "a scaling"), 2)


@pytest.mark.parametrize("together", [2, 3])
def test_columns_that_matter_only_together_are_seen_at_first_sight(together):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(600, 24))
    said = first_relevances(X, np.prod(X[:, :together], axis=1)[:, None], np.ones(600))
    assert said[:together].min() > 3.0 * said[together:].max()


def test_two_columns_whose_signs_decide_a_class_are_seen_in_pairs():
    X = np.random.default_rng(1).uniform(-1.0, 1.0, size=(600, 24))
    codes = (X[:, 3] * X[:, 8] > 0.0).astype(int)
    said = first_relevances(X, np.eye(2)[codes] - 0.5, np.ones(600))
    assert set(np.argsort(-said)[:2]) == {3, 8}
    assert np.sort(said)[-3] < 0.2


def test_where_columns_tell_nothing_all_count_alike():
    assert (first_relevances(np.ones((100, 3)), np.zeros((100, 1)), np.ones(100)) == 1.0).all()
