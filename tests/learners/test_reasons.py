"""Reasons: contributions of columns beside brute force over orders, and the sample that they rest on."""

import functools
import itertools

import numpy as np
import pytest

from kons import AutoKONS, Classifier, EmbeddedKONS, Gaussian, Logistic, Scaled, Squared
from kons.errors import ConfigurationError, InputError
from kons.kernels import FunctionKernel
from kons.learners.reasons import LAST_TARGETS, shapley_values
from kons.learners.sample import RowSample

RANDOM = np.random.default_rng(5)
X = RANDOM.uniform(-1.0, 1.0, size=(300, 4))
Y = 0.4 * np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]


def embedded():
    return EmbeddedKONS(Gaussian(0.7), Squared(), second_order="hessian", max_atoms=40)


def of_all_orders(value, players):
    """The mean over all orders of what a player adds to those before it."""
    orders = list(itertools.permutations(range(players)))
    totals = np.zeros(players)
    for order in orders:
        there = [False] * players
        for player in order:
            before = value(there)
            there[player] = True
            totals[player] += value(there) - before
    return totals / len(orders)


@pytest.mark.parametrize("scaled", [False, True])
def test_contributions_are_those_of_all_orders(scaled):
    learner = Scaled(EmbeddedKONS(Gaussian("auto"), Squared()), warmup=50) if scaled else embedded()
    learner.advance(X, Y)
    x, before = X[7], learner.state()
    reasons = learner.explain(x)
    typical = np.array(list(reasons.typical.values()))
    np.testing.assert_allclose(typical, np.median(learner.row_sample.points, axis=0))
    found = of_all_orders(lambda there: learner.predict_one(np.where(there, x, typical)), 4)
    np.testing.assert_allclose(list(reasons.contributions.values()), found, atol=1e-10)
    assert reasons.errors is None
    assert reasons.prediction == pytest.approx(learner.predict_one(x), abs=1e-10)
    assert reasons.baseline == pytest.approx(learner.predict_one(typical), abs=1e-10)
    np.testing.assert_equal(learner.state(), before)


def test_auto_is_exact_by_its_own_predictions():
    """Many sets of columns at once, of which neighbours take those alike together, are what each is alone."""
    points = np.column_stack([RANDOM.uniform(-1.0, 1.0, size=(1500, 4)), np.zeros(1500)])
    targets = np.sign(points[:, 0] * points[:, 1]) + 0.3 * np.floor(4.0 * points[:, 2])
    learner = AutoKONS()
    learner.advance(points, targets)
    assert any(name.startswith("neighbours") for name in learner.shares)
    x = np.append(points[7, :4], 0.5)
    reasons = learner.explain(x, recent_targets=False)
    typical = np.array(list(reasons.typical.values()))
    of_one = functools.cache(lambda there: learner.predict(np.where(there, x, typical)[None])[0])
    found = of_all_orders(lambda there: of_one(tuple(there)), 5)
    np.testing.assert_allclose(list(reasons.contributions.values()), found, atol=1e-9)


@pytest.mark.parametrize("players", [3, 12])
def test_they_add_up_and_the_error_is_told(players):
    A = np.triu(RANDOM.normal(size=(players, players)))

    def value(sets):
        return 1e6 + np.einsum("si,ij,sj->s", sets * 1.0, A, sets * 1.0)

    # A pair's term is shared by halves.
    exact = 0.5 * (A.sum(axis=0) + A.sum(axis=1))
    none, values, every, errors = shapley_values(value, players)
    assert abs(none + values.sum() - every) <= 1e-9 * np.abs(A).sum()
    if errors is None:
        np.testing.assert_allclose(values, exact, atol=1e-8)
    else:
        # An order and its reverse are exact for pairs: rounding of numbers around 1e6 is left.
        np.testing.assert_allclose(values, exact, atol=1e-8)
        thrice = shapley_values(lambda sets: value(sets) + 9.0 * sets[:, :3].all(axis=1), players, paths=64)
        assert (np.abs(thrice[1][:3] - exact[:3] - 3.0) <= 5.0 * thrice[3][:3]).all()
        assert (thrice[3][:3] > 0.0).all()


def test_columns_beyond_eight_add_up():
    wide = RANDOM.uniform(-1.0, 1.0, size=(120, 11))
    learner = EmbeddedKONS(Gaussian(2.0), Squared(), second_order="hessian", max_atoms=30)
    learner.advance(wide, wide[:, 0] * wide[:, 1] * wide[:, 2])
    reasons = learner.explain(wide[3], paths=4)
    values = list(reasons.contributions.values())
    assert len(values) == 11
    assert set(reasons.errors) == set(reasons.contributions)
    size = np.abs(values).sum()
    assert abs(reasons.baseline + sum(values) - reasons.prediction) <= 1e-9 * size


def table(rows):
    start = np.datetime64("2024-01-01T00")
    return [
        {"size": float(i * 7 % 11), "kind": "ab"[i * 5 % 7 > 3], "when": start + np.timedelta64(i, "h")}
        for i in range(rows)
    ]


def test_levels_dates_and_last_targets_are_one_column_each():
    rows = table(160)
    targets = [row["size"] + (row["kind"] == "a") for row in rows]
    model, single = AutoKONS(effort="tiny"), AutoKONS(effort="tiny")
    model.advance(rows, targets)
    for row, target in zip(rows, targets, strict=True):
        single.learn_one(row, target)
    reasons = model.explain(rows[30], similar=2)
    assert set(reasons.contributions) == {"size", "kind", "when", LAST_TARGETS}
    assert reasons.typical["kind"] == "a"
    assert reasons.typical["when"].dtype == "datetime64[us]"
    assert reasons.prediction == pytest.approx(model.predict_one(rows[30]), abs=1e-9)
    assert reasons.similar[0].row["size"] == rows[30]["size"]
    assert reasons.similar[0].row["kind"] == "a"
    assert reasons.similar[0].target == targets[30]
    assert max(reasons.contributions, key=lambda name: abs(reasons.contributions[name])) == "size"
    again = single.explain(rows[30])
    assert again.typical == reasons.typical
    assert again.prediction == pytest.approx(reasons.prediction, abs=1e-9)
    away = model.explain(rows[30], recent_targets=False)
    assert LAST_TARGETS not in away.contributions
    assert away.prediction == pytest.approx(model.predict([rows[30]])[0], abs=1e-9)


def test_classes_are_explained_by_log_odds():
    model = Classifier(EmbeddedKONS(Gaussian(0.7), Logistic(), max_atoms=30))
    model.advance(X[:150], np.where(Y[:150] > 0.0, "up", "down").tolist())
    for label in ("up", "down"):
        reasons = model.explain(X[0], label=label)
        share = model.predict_proba_one(X[0])[label]
        assert reasons.label == label
        assert reasons.prediction == pytest.approx(np.log(share / (1.0 - share)), abs=1e-9)
    assert model.explain(X[0]).label == model.predict_one(X[0])
    assert str(model.explain(X[0])).count("log-odds of") == 1
    with pytest.raises(ConfigurationError, match=r"label is 'sideways', expected one of \['"):
        model.explain(X[0], label="sideways")


def test_gaps_of_arrays_are_columns_as_they_are():
    gaps = X.copy()
    gaps[50::3, 1] = np.nan
    model = AutoKONS(effort="tiny")
    model.advance(gaps, Y)
    reasons = model.explain(gaps[50])
    assert list(reasons.contributions) == [0, 1, 2, 3, LAST_TARGETS]
    assert reasons.prediction == pytest.approx(model.predict_one(gaps[50]), abs=1e-9)


def test_one_of_several_targets():
    model = EmbeddedKONS(Gaussian(0.7), Squared(), second_order="hessian", max_atoms=20)
    model.advance(X[:100], np.stack([Y, -Y], axis=1)[:100])
    first, second = (model.explain(X[0], output=i) for i in (0, 1))
    assert first.prediction == pytest.approx(-second.prediction, abs=1e-9)
    with pytest.raises(ConfigurationError, match="output is 2, expected"):
        model.explain(X[0], output=2)


def test_what_cannot_be_explained_is_refused():
    words = EmbeddedKONS(FunctionKernel(lambda a, b: float(a == b)), Squared())
    words.advance(["a", "b"], [0.0, 1.0])
    with pytest.raises(ConfigurationError, match=r"FunctionKernel.*takes objects"):
        words.explain("a")
    for learner in (embedded(), AutoKONS(effort="tiny")):
        with pytest.raises(InputError, match="nothing was learned yet"):
            learner.explain(X[0])
        learner.advance(X[:10], Y[:10])
        for row, words in (
            (X[0, :3], "has 3 feature"),
            (X[:2], "expected one row"),
            (["a", 0.0, 0.0, 0.0], "expected numbers"),
            ([np.inf, 0.0, 0.0, 0.0], "is inf"),
        ):
            with pytest.raises(InputError, match=words):
                learner.explain(row)
    learner = embedded()
    learner.advance(X[:10], Y[:10])
    with pytest.raises(ConfigurationError, match="predicts numbers"):
        learner.explain(X[0], label="up")


# ---- the sample


def test_the_sample_is_the_same_however_rows_are_cut():
    rows = np.arange(900.0)[:, None]
    whole, single, parts = RowSample(), RowSample(), RowSample()
    whole.learn(rows, rows)
    for start in range(0, 900, 7):
        parts.learn(rows[start : start + 7], rows[start : start + 7])
    for row in rows:
        single.learn([row], [row])
    for other in (single, parts, RowSample().resume(whole.state())):
        np.testing.assert_equal(other.state(), whole.state())
    assert len(whole) == 64
    assert sorted(whole.numbers) == sorted(whole.points[:, 0].tolist())
    # Uniform over the stream: a quarter of 64 rows, within five deviations.
    assert abs(np.count_nonzero(whole.numbers < 225) - 16) < 5 * np.sqrt(12)


def test_the_sample_goes_back_and_is_saved_with_the_learner():
    learner = embedded()
    learner.advance(X[:200], Y[:200])
    before = learner.state()
    with pytest.raises(InputError):
        learner.advance(X[200:], [*Y[200:-1], np.nan])
    np.testing.assert_equal(learner.state(), before)
    twin = EmbeddedKONS.from_state(learner.parameters(), before)
    learner.advance(X[200:], Y[200:])
    for x, y in zip(X[200:], Y[200:], strict=True):
        twin.learn_one(x, y)
    np.testing.assert_equal(twin.state()["row_sample"], learner.state()["row_sample"])
    late = embedded()
    for i in range(40):
        late.ask(X[i], i)
    for i in range(40):
        late.tell(i, Y[i])
    np.testing.assert_array_equal(late.state()["row_sample"]["points"], X[:40])
