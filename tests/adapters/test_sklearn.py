"""The estimators in scikit-learn's own hands: its checks, pipelines, searches, frames."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import effort
from contracts.learners import assert_identical
from kons import Gaussian
from kons.errors import ConfigurationError, FileError, InputError
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from kons.sklearn import KONSClassifier, KONSRegressor, KORSFeatures

# A pass in stream order takes one Newton step a row: with the logistic loss, other orders of the same rows
# end elsewhere, and this check shuffles them. With the squared loss, ridge regression, order does not matter.
ORDER = "one pass of Newton steps on the logistic loss depends on the order of rows, which the check changes"
# The default makes its choices at certain row numbers: a row twice is not a row with twice the weight.
CHOICES = "what is chosen on the way depends on the order of rows, which the check changes"
WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
# Columns are known by name: the check wants those in another order to be refused.
NAMES = {"check_dataframe_column_names_consistency": "columns in another order are the same columns"}
EXPECTED_FAILURES = {
    "KONSRegressor()": dict.fromkeys(WEIGHTS, CHOICES),
    "KONSClassifier()": dict.fromkeys(WEIGHTS, CHOICES),
    "KONSClassifier(learner='embedded')": dict.fromkeys(WEIGHTS, ORDER),
}


def expected_failures(estimator):
    named = {} if isinstance(estimator, KORSFeatures) else NAMES
    return named | EXPECTED_FAILURES.get(repr(estimator), {})


# The adapter is the same code for every learner: of the two estimators one is the default, and one whose rows
# may be shuffled.
SAMPLE = [
    KONSRegressor("ridge", kernel="matern", regularization=0.01),
    KONSClassifier(),
    KORSFeatures(),
]
OTHERS = [
    KONSRegressor(),
    KONSClassifier("embedded", loss="squared"),
    KONSRegressor("embedded"),
    KONSClassifier("embedded"),
]


@parametrize_with_checks(
    SAMPLE + OTHERS if effort.is_soak() else SAMPLE,
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:X is sparse:kons.errors.KonsWarning")
def test_scikit_learn_s_checks(estimator, check):
    check(estimator)


RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 2)) * [100.0, 0.01] + [5000.0, 0.0]
Y = 1000.0 + 30.0 * np.sin(X[:, 0] / 60.0) + 2000.0 * X[:, 1]
MOONS = make_moons(400, noise=0.2, random_state=0)
THREE = np.array(["left", "right", "up"], dtype=object)[
    np.where(X[:, 1] > 0.005, 2, (X[:, 0] > 5000.0).astype(int))
]


# ---- the same as the learner by hand


@pytest.mark.parametrize(
    ("name", "given"), [("auto", {"max_atoms": 50}), ("embedded", {"warmup": 300})], ids=["auto", "embedded"]
)
def test_the_regressor_is_the_learner(name, given):
    by_hand = for_task("regression", name, seed=7, **given)
    by_hand.advance(X, Y)
    estimator = KONSRegressor(name, random_state=7, **given).fit(X, Y)
    assert_identical(estimator.predict(X), by_hand.predict(X))
    assert estimator.score(X, Y) > 0.98


def test_the_classifier_is_the_learner_with_places_as_labels():
    order = ["left", "right", "up"]
    by_hand = for_task("classification", "embedded", warmup=300, classes=[0, 1, 2])
    by_hand.advance(X, [order.index(label) for label in THREE])
    estimator = KONSClassifier("embedded", warmup=300, random_state=0).fit(X, THREE)
    assert estimator.classes_.tolist() == order
    assert_identical(estimator.decision_function(X), by_hand.decision_function(X))
    assert_identical(estimator.predict_proba(X), by_hand.predict_proba(X))
    assert estimator.predict(X).tolist() == [order[k] for k in by_hand.predict(X)]
    assert estimator.score(X, THREE) > 0.95


def test_the_default_learns_labels_in_any_order_of_appearance():
    order = ["left", "right", "up"]
    by_hand = for_task("classification", max_atoms=50)
    by_hand.advance(X, THREE)
    assert by_hand.classes != order  # in order of appearance, not sorted
    estimator = KONSClassifier(max_atoms=50, random_state=0).fit(X, THREE)
    assert type(estimator.model_).__name__ == "AutoKONS"
    assert estimator.classes_.tolist() == order
    columns = [by_hand.classes.index(label) for label in order]
    assert_identical(estimator.decision_function(X), by_hand.decision_function(X)[:, columns])
    assert_identical(estimator.predict_proba(X), by_hand.predict_proba(X)[:, columns])
    assert estimator.predict(X).tolist() == by_hand.predict(X).tolist()
    assert estimator.score(X, THREE) > 0.95


def test_predictions_are_away_from_the_stream():
    """Rows are exchangeable: no expert that looks at the targets learned last has a say."""
    walk = np.cumsum(RNG.normal(size=600))  # the last target says nearly all, the column nothing
    rows = RNG.normal(size=(600, 1))
    estimator = KONSRegressor(random_state=0, max_atoms=30).fit(rows, walk)
    assert_identical(estimator.predict(rows), estimator.model_.predict(rows, recent_targets=False))
    assert np.abs(estimator.predict(rows) - estimator.model_.predict(rows, recent_targets=True)).max() > 0.5


@pytest.mark.parametrize(
    "given", [{"warmup": 20}, {"loss": "squared"}, {"scale": "none"}, {"forgetting": 0.9}]
)
def test_what_the_default_does_without_is_refused(given):
    name = next(iter(given))
    with pytest.raises(ConfigurationError, match=f"{name}.*embedded|'auto' takes no parameter '{name}'"):
        KONSRegressor(**given).fit(X, Y)


def test_fewer_rows_than_the_warm_up_are_enough_for_fit():
    estimator = KONSRegressor("embedded", warmup=10_000).fit(X, Y)
    assert not estimator.model_.warming_up
    assert estimator.score(X, Y) > 0.98


def test_partial_fit_waits_for_the_warm_up_and_goes_on_as_one_stream():
    estimator = KONSRegressor("embedded", warmup=300, random_state=0).partial_fit(X[:200], Y[:200])
    assert estimator.model_.warming_up
    np.testing.assert_allclose(estimator.predict(X[:3]), Y[:200].mean())
    estimator.partial_fit(X[200:], Y[200:])
    whole = KONSRegressor("embedded", warmup=300, random_state=0).fit(X, Y)
    np.testing.assert_allclose(estimator.predict(X), whole.predict(X), rtol=0, atol=1e-7)


def test_the_default_waits_for_nothing_and_goes_on_as_one_stream():
    estimator = KONSRegressor(random_state=0, max_atoms=50).partial_fit(X[:200], Y[:200])
    assert estimator.score(X, Y) > 0.9
    estimator.partial_fit(X[200:], Y[200:])
    whole = KONSRegressor(random_state=0, max_atoms=50).fit(X, Y)
    np.testing.assert_allclose(estimator.predict(X), whole.predict(X), rtol=0, atol=1e-7 * np.abs(Y).max())


@pytest.mark.parametrize("learner", [{"max_atoms": 50}, {"learner": "embedded", "warmup": 100}])
def test_partial_fit_of_classes(learner):
    estimator = KONSClassifier(random_state=0, **learner)
    with pytest.raises(InputError, match="classes is None"):
        estimator.partial_fit(X, THREE)
    estimator.partial_fit(X[:150], THREE[:150], classes=["up", "left", "right", "never"])
    assert estimator.classes_.tolist() == ["left", "never", "right", "up"]
    assert estimator.decision_function(X).shape == estimator.predict_proba(X).shape == (400, 4)
    assert np.isfinite(estimator.decision_function(X)).all()
    np.testing.assert_allclose(estimator.predict_proba(X).sum(axis=1), 1.0)
    never = estimator.predict_proba(X)[:, 1]
    assert never.max() == 0.0 if "max_atoms" in learner else never.max() < 0.1
    estimator.partial_fit(X[150:], THREE[150:])
    assert "never" not in estimator.predict(X)
    assert estimator.score(X, THREE) > 0.95
    before = estimator.predict_proba(X)
    with pytest.raises(InputError, match="y holds 'down'"):
        estimator.partial_fit(X[:2], ["left", "down"])
    with pytest.raises(InputError, match="at the first call"):
        estimator.partial_fit(X[:2], ["left", "left"], classes=["left", "right"])
    assert_identical(estimator.predict_proba(X), before)


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (3, 17), (-3.0, 2.0)])
@pytest.mark.parametrize("learner", ["auto", "embedded"])
def test_two_classes_have_one_score(labels, learner):
    points, moons = MOONS
    estimator = KONSClassifier(learner, max_atoms=60).fit(points, np.array(labels)[moons])
    scores = estimator.decision_function(points)
    assert scores.shape == (400,)
    assert estimator.classes_.tolist() == list(labels)
    np.testing.assert_array_equal(estimator.predict(points) == labels[1], scores > 0.0)
    shares = estimator.predict_proba(points)[:, 1]
    np.testing.assert_allclose(shares, 1 / (1 + np.exp(-scores)), atol=1e-12)
    assert estimator.score(points, np.array(labels)[moons]) > 0.9


@pytest.mark.parametrize("learner", ["auto", "embedded"])
def test_one_class_is_always_right(learner):
    estimator = KONSClassifier(learner).fit(X, np.full(400, "only"))
    assert set(estimator.predict(X)) == {"only"}
    np.testing.assert_array_equal(estimator.predict_proba(X), np.ones((400, 1)))


# ---- weights


def test_a_weight_of_two_is_a_row_twice():
    """Ridge regression: as KernelRidge on repeated rows, which shares no code with this."""
    weights = RNG.integers(0, 4, size=60)
    points, targets = X[:60], Y[:60]
    weighted = KONSRegressor("embedded").fit(points, targets, sample_weight=weights)
    repeated = KONSRegressor("embedded").fit(points.repeat(weights, axis=0), targets.repeat(weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=0, atol=1e-5)
    plain = KONSRegressor("embedded").fit(points, targets)
    assert np.abs(plain.predict(X) - weighted.predict(X)).max() > 0.1


def test_rows_without_weight_are_not_there_for_the_default():
    weights = np.where(np.arange(400) % 4 == 0, 0.0, 1.0)
    spoilt = np.where(weights > 0.0, Y, 1e6)
    weighted = KONSRegressor(random_state=0, max_atoms=50).fit(X, spoilt, sample_weight=weights)
    without = KONSRegressor(random_state=0, max_atoms=50).fit(X[weights > 0.0], Y[weights > 0.0])
    assert_identical(weighted.predict(X), without.predict(X))
    heavy = KONSRegressor(random_state=0, max_atoms=50).fit(X, Y, sample_weight=1.0 + 50.0 * (X[:, 1] > 0))
    plain = KONSRegressor(random_state=0, max_atoms=50).fit(X, Y)
    assert np.abs(heavy.predict(X) - plain.predict(X)).max() > 0.01


@pytest.mark.parametrize("estimator", [KONSRegressor(), KONSClassifier()])
def test_weights_that_cannot_be(estimator):
    for weights, message in (
        (np.zeros(400), "zero"),
        (np.full(400, -1.0), "[Nn]egative"),
        (np.ones(3), "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(
                X, THREE if isinstance(estimator, KONSClassifier) else Y, sample_weight=weights
            )


# ---- in company


def test_grid_search_and_cross_validation():
    search = GridSearchCV(
        KONSRegressor(),
        {
            "bandwidth": ["auto", 0.01],
            "kernel": ["gaussian", Gaussian("auto")],
            "learner": ["embedded", "ridge"],
        },
        cv=2,
    )
    search.fit(X, Y)
    assert search.best_params_["bandwidth"] == "auto"
    assert search.best_score_ > 0.9
    scores = cross_val_score(
        make_pipeline(StandardScaler(), KONSClassifier("embedded", scale="none")), *MOONS, cv=4
    )
    assert scores.mean() > 0.88


def test_clone_and_set_params():
    estimator = KONSClassifier("sketched", bandwidth=2.0, options={"weighted": True}).set_params(warmup=40)
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    assert twin.fit(X, THREE).model_.learner.learner.weighted


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_and_out(frame):
    table = frame({"speed": X[:, 0], "drift": X[:, 1]})
    series = table["speed"] * 0.5
    estimator = KONSRegressor().fit(table, series)
    assert estimator.feature_names_in_.tolist() == ["speed", "drift"]
    np.testing.assert_array_equal(estimator.predict(table), estimator.predict(table))
    assert_identical(estimator.predict(table[["drift", "speed"]]), estimator.predict(table))
    for renamed in (frame({"speed": X[:, 0], "draft": X[:, 1]}), table[["speed"]]):
        with pytest.raises(ValueError, match="now missing:\n- drift"):
            estimator.predict(renamed)
    features = KORSFeatures(random_state=1).set_output(transform="pandas").fit(table)
    out = features.transform(table)
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == features.get_feature_names_out().tolist()
    assert out.columns[0] == "korsfeatures0"


# ---- tables as people have them


def untidy(count=400):
    """Numbers with gaps, text, dates, flags; and a target that needs all of them."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=count) * 100.0,
            "colour": rng.choice(["red", "green", "blue"], size=count),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 1000, size=count), unit="h"),
            "open": rng.random(count) < 0.5,
        }
    )
    y = (
        table["size"].to_numpy()
        + 200.0 * (table["colour"] == "red").to_numpy()
        + 50.0 * table["open"].to_numpy()
    )
    table.loc[rng.random(count) < 0.2, "size"] = np.nan
    table.loc[rng.random(count) < 0.1, "colour"] = None
    return table, y


TABLE, WORTH = untidy()
MAKERS = {
    "auto": lambda: KONSRegressor(max_atoms=40, options={"experts": 4}),
    "embedded": lambda: KONSRegressor("embedded"),
    "classes": lambda: KONSClassifier("embedded"),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("convert", [lambda table: table, pl.from_pandas], ids=["pandas", "polars"])
def test_frames_with_text_dates_and_gaps(name, convert):
    estimator, table = MAKERS[name](), convert(TABLE)
    y = np.where(WORTH > 50.0, "dear", "cheap") if name == "classes" else WORTH
    estimator.fit(table, y)
    assert estimator.feature_names_in_.tolist() == ["size", "colour", "when", "open"]
    assert estimator.n_features_in_ == 4
    found = estimator.predict(table)
    assert estimator.score(table, y) > (0.8 if name == "classes" else 0.5)
    assert_identical(estimator.predict(convert(TABLE[["open", "when", "size", "colour"]])), found)
    alone = [estimator.predict(convert(TABLE[i : i + 1]))[0] for i in range(5)]
    if name == "classes":
        assert alone == found[:5].tolist()
    else:
        np.testing.assert_allclose(alone, found[:5], rtol=1e-9)
    for wrong, words in (
        (
            TABLE.rename(columns={"size": "sizes"}),
            "unseen at fit time:\n- sizes\nFeature names seen .*\n- size",
        ),
        (TABLE.drop(columns="when"), "now missing:\n- when"),
        (TABLE.assign(more=1.0), "unseen at fit time:\n- more"),
    ):
        for call in (estimator.predict, lambda rows: estimator.partial_fit(rows, y)):
            with pytest.raises(ValueError, match=words):
                call(convert(wrong))
    twin = from_bytes(to_bytes(estimator))
    assert_identical(twin.predict(table), found)
    estimator.partial_fit(table, y)
    assert_identical(twin.partial_fit(table, y).state(), estimator.state())


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_with_gaps(name):
    gone = RNG.random(X.shape) < 0.2
    gone[:50] = False
    rows = np.where(gone, np.nan, X)
    y = THREE if name == "classes" else Y
    estimator = MAKERS[name]().fit(rows, y)
    assert np.isin(estimator.predict(rows), ["left", "right", "up"]).all() if name == "classes" else True
    assert estimator.score(X, y) > 0.7
    plain = MAKERS[name]().fit(X, y)  # gaps that come only later
    assert len(plain.predict(rows)) == len(rows)
    twin = from_bytes(to_bytes(plain))
    assert_identical(twin.partial_fit(rows, y).state(), plain.partial_fit(rows, y).state())
    with pytest.raises(ValueError, match="infinity"):
        estimator.predict(np.where(gone, np.inf, X))


def test_importances_are_shares_of_the_columns():
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    estimator = KONSRegressor(options={"effort": "tiny"}).fit(X, 3.0 * X[:, 1] - X[:, 2])
    found = estimator.feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert found[1] == pytest.approx(0.75, abs=0.1)
    assert found[0] < 0.05
    both = KONSRegressor(options={"effort": "tiny"}).fit(X, np.stack([X[:, 0], 100 * X[:, 1]], axis=1))
    np.testing.assert_allclose(both.feature_importances_, [0.5, 0.5, 0.0], atol=0.1)
    X[::7, 0] = np.nan
    assert KONSRegressor("embedded").fit(X, 3.0 * X[:, 1]).feature_importances_.argmax() == 1


def test_importances_of_a_frame_are_those_of_its_columns():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "size": random.normal(size=200),
            "kind": random.choice(["a", "b"], size=200),
            "when": pandas.date_range("2024-01-01", periods=200, freq="h"),
        }
    )
    y = 3.0 * (frame["kind"] == "a")
    frame.loc[::7, "size"], frame.loc[::9, "kind"] = np.nan, None
    found = KONSRegressor("embedded").fit(frame, y.to_numpy()).feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert found.argmax() == 1


def test_weights_of_rows_of_a_frame():
    weights = np.where(np.arange(400) % 4 == 0, 0.0, 1.0)
    weighted = KONSRegressor("embedded").fit(TABLE, WORTH, sample_weight=weights)
    without = KONSRegressor("embedded").fit(TABLE[weights > 0.0], WORTH[weights > 0.0])
    assert_identical(weighted.predict(TABLE), without.predict(TABLE))


@pytest.mark.parametrize("learner", ["auto", "embedded"])
def test_balanced_classes(learner):
    points, moons = make_moons(600, noise=0.3, random_state=1)
    rare = np.flatnonzero((moons == 0) | (np.arange(600) % 12 == 0))
    points, moons = points[rare], moons[rare]
    plain = KONSClassifier(learner).fit(points, moons)
    balanced = KONSClassifier(learner, class_weight="balanced").fit(points, moons)
    counts = np.bincount(moons)
    weights = {label: len(moons) / (2.0 * count) for label, count in enumerate(counts)}
    by_hand = KONSClassifier(learner).fit(points, moons, sample_weight=[weights[label] for label in moons])
    named = KONSClassifier(learner, class_weight=weights).fit(points, moons)
    assert (balanced.predict(points) == 1).sum() > (plain.predict(points) == 1).sum()
    for other in (by_hand, named):
        assert_identical(other.predict_proba(points), balanced.predict_proba(points))
    assert balanced.class_counts_.tolist() == counts.tolist()
    going_on = KONSClassifier(learner, class_weight="balanced")
    going_on.partial_fit(points[:100], moons[:100], classes=[0, 1]).partial_fit(points[100:], moons[100:])
    assert going_on.class_counts_.tolist() == counts.tolist()
    assert_identical(from_bytes(to_bytes(going_on)).state(), going_on.state())


def test_nothing_varies_unsaid():
    estimator = KONSRegressor("con_kons")
    assert_identical(estimator.fit(X, Y).predict(X), clone(estimator).fit(X, Y).predict(X))
    assert estimator.seed_ == 0


# ---- features


def test_features_approximate_the_kernel():
    features = KORSFeatures(bandwidth=1.0, scale="none", regularization=1e-3, random_state=0)
    points = MOONS[0]
    Z = features.fit_transform(points)
    squares = np.sum((points[:, None] - points[None]) ** 2, axis=2)
    np.testing.assert_allclose(Z @ Z.T, np.exp(-squares / 2), rtol=0, atol=0.01)
    np.testing.assert_array_equal(
        features.landmarks_[:5], [x for x in points if (x == features.landmarks_).all(1).any()][:5]
    )


def test_features_for_a_linear_model():
    model = make_pipeline(KORSFeatures(regularization=0.01, random_state=0), Ridge(0.01))
    assert model.fit(X, Y).score(X, Y) > 0.98


def test_landmarks_of_tiny_units_go_through_a_file():
    features = KORSFeatures(scale="none", random_state=0).fit(1e-6 * X[:100])
    twin = from_bytes(to_bytes(features))
    np.testing.assert_array_equal(twin.transform(1e-6 * X[:9]), features.transform(1e-6 * X[:9]))


def test_more_rows_append_columns_and_change_none():
    features = KORSFeatures(random_state=0).partial_fit(X[:100])
    before = features.transform(X)
    features.partial_fit(X[100:])
    after = features.transform(X)
    assert after.shape[1] > before.shape[1]
    np.testing.assert_allclose(after[:, : before.shape[1]], before, rtol=0, atol=1e-12)


# ---- seeds, copies, files


def test_seeds():
    def predictions(random_state):
        return KONSRegressor("con_kons", random_state=random_state).fit(X, Y).predict(X)

    assert_identical(predictions(3), predictions(3))
    assert_identical(predictions(np.random.RandomState(5)), predictions(np.random.RandomState(5)))
    assert np.abs(predictions(3) - predictions(4)).max() > 0.0


FITTED = {
    "regressor": (
        KONSRegressor(random_state=1, max_atoms=40),
        lambda e: e.fit(X[:300], Y[:300]),
        lambda e: e.partial_fit(X[300:], Y[300:]),
    ),
    "embedded regressor": (
        KONSRegressor("embedded", random_state=1),
        lambda e: e.fit(X[:300], Y[:300]),
        lambda e: e.partial_fit(X, Y),
    ),
    "in its warm-up": (
        KONSRegressor("embedded", warmup=350, random_state=1),
        lambda e: e.partial_fit(pd.DataFrame(X[:300], columns=["a", "b"]), Y[:300]),
        lambda e: e.partial_fit(pd.DataFrame(X, columns=["a", "b"]), Y),
    ),
    "classifier": (
        KONSClassifier("embedded", kernel=Gaussian("auto"), random_state=1),
        lambda e: e.fit(X[:300], THREE[:300]),
        lambda e: e.partial_fit(X, THREE),
    ),
    "of words": (
        KONSClassifier(random_state=1, max_atoms=40),
        lambda e: e.fit(X[:300], THREE[:300].astype(str)),
        lambda e: e.partial_fit(X[300:], THREE[300:].astype(str)),
    ),
    "features": (KORSFeatures(random_state=1), lambda e: e.fit(X[:300]), lambda e: e.partial_fit(X)),
}


def by_state(estimator):
    return type(estimator).from_state(estimator.get_params(deep=False), estimator.state())


def by_file(estimator):
    return from_bytes(to_bytes(estimator))


def by_pickle(estimator):
    return pickle.loads(pickle.dumps(estimator))


WAYS = [by_state, by_file, copy.deepcopy, by_pickle]


@pytest.mark.parametrize("name", FITTED)
def test_a_copy_goes_on_bit_for_bit(name):
    estimator, fit, more = FITTED[name]
    for way in WAYS:
        assert_identical(way(clone(estimator)).state(), {"fitted": None})
    estimator = fit(clone(estimator))
    twins = [way(estimator) for way in WAYS]
    more(estimator)
    verb = "transform" if name == "features" else "predict"
    points = pd.DataFrame(X, columns=["a", "b"]) if "warm-up" in name else X
    for twin in twins:
        assert sorted(vars(more(twin))) == sorted(vars(estimator))
        assert_identical(twin.state(), estimator.state())
        assert_identical(getattr(twin, verb)(points), getattr(estimator, verb)(points))


@pytest.mark.parametrize("learner", ["auto", "embedded"])
def test_a_state_that_does_not_fit(learner):
    estimator = KONSClassifier(learner).fit(X[:120], THREE[:120])
    state = estimator.state()["fitted"]
    for key, value in (
        ("width", 0),
        ("names", ["a"]),
        ("classes_dtype", "nonsense"),
        ("classes", ["a"]),
        ("seed", "x"),
    ):
        with pytest.raises(FileError, match="cannot be used"):
            KONSClassifier.from_state({"learner": learner}, {"fitted": state | {key: value}})


# ---- errors


@effort.every_value(
    make={each.__name__: each for each in (KONSRegressor, KONSClassifier, KORSFeatures)},
    change=[{"bandwidth": 3.0}, {"kernel": "laplace"}, {"regularization": 0.5}],
)
def test_parameters_changed_after_fit_are_not_saved_as_if_they_had_been_learned(make, change):
    rows, targets = X[:120], (THREE if make is KONSClassifier else Y)[:120]
    estimator = make(bandwidth=1.0, random_state=0).fit(rows, targets)
    before = estimator.get_params()
    estimator.set_params(**change)
    with pytest.raises(FileError, match="changed by set_params"):
        to_bytes(estimator)
    estimator.set_params(**before)
    assert_identical(from_bytes(to_bytes(estimator)).state(), estimator.state())
    estimator.set_params(**change).fit(rows, targets)
    assert_identical(from_bytes(to_bytes(estimator)).state(), estimator.state())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes_dtype": "<U100000000"}, "cannot be of type"),
        ({"classes_dtype": "V8"}, "cannot be of type"),
        ({"classes_dtype": "<i8"}, "cannot be of type"),
        ({"classes": [["left"], ["right"], ["up"]]}, "expected a label"),
        ({"classes": ["left", "left", "up"]}, "not all different"),
        ({"width": 5}, "other features than 5"),
    ],
)
def test_forged_labels(change, message):
    estimator = KONSClassifier().fit(X[:120], THREE[:120].astype(str))
    fitted = estimator.state()["fitted"] | change
    with pytest.raises(FileError, match=message):
        KONSClassifier.from_state(estimator.get_params(), {"fitted": fitted})


def test_labels_keep_their_type_in_a_file():
    for labels in (THREE, THREE.astype("U40"), THREE == "up", np.arange(400) % 3, np.arange(400.0) % 2):
        estimator = KONSClassifier().fit(X[:120], labels[:120])
        twin = from_bytes(to_bytes(estimator))
        assert twin.classes_.dtype == estimator.classes_.dtype
        assert_identical(twin.predict(X), estimator.predict(X))


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
def test_sparse_rows(make):
    dense = np.where(RNG.random((100, 4)) < 0.7, 0.0, 1.0)
    for make_one in (KONSRegressor, KONSClassifier, KORSFeatures):
        estimator = make_one(random_state=0)
        y = dense.sum(axis=1) if isinstance(estimator, KONSRegressor) else THREE[:100]
        expected, found = (clone(estimator).fit(rows, y) for rows in (dense, make(dense)))
        if isinstance(estimator, KORSFeatures):
            assert_identical(found.transform(make(dense)), expected.transform(dense))
        else:
            assert_identical(found.predict(make(dense)), expected.predict(dense))


def test_a_first_call_that_is_refused_leaves_nothing_learned():
    regressor, classifier = KONSRegressor(), KONSClassifier()
    with pytest.raises(InputError, match="scale the target down"):
        regressor.partial_fit(X, Y * 1e200)
    for classes, y, message in (
        ([], THREE, "classes is empty"),
        (["left"], THREE, "not among the classes"),
        (np.array(["left", 3], dtype=object), THREE, "cannot sort"),
    ):
        with pytest.raises(InputError, match=message):
            classifier.partial_fit(X, y, classes=classes)
    for estimator in (regressor, classifier):
        with pytest.raises(NotFittedError):
            estimator.predict(X)
    assert regressor.partial_fit(X[:, :1], Y).n_features_in_ == 1


def test_labels_without_an_order():
    with pytest.raises(InputError, match=r"cannot sort.*all of them into text"):
        KONSClassifier().fit(X, np.array(["a", 1] * 200, dtype=object))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_atoms": 5, "options": {"max_atoms": 6}}, "max_atoms is given twice, by itself and in options"),
        ({"kernel": "linear", "options": {"kernel": "linear"}}, "kernel is given twice"),
        ({"options": {"seed": 3}}, "seed is given twice"),
        ({"options": ["seed"]}, "expected a dict"),
        ({"learner": ["kons"]}, "there is no learner"),
        ({"bandwidth": np.ones(2)}, "bandwidth is array"),
    ],
)
def test_parameters_given_twice_or_of_the_wrong_kind(given, message):
    with pytest.raises(ConfigurationError, match=message):
        KONSRegressor(**given).fit(X, Y)


def test_parameters_that_cannot_be():
    for parameters, message in (
        ({"learner": "nothing"}, "there is no learner 'nothing'"),
        ({"kernel": "nothing"}, "there is no kernel 'nothing'"),
        ({"learner": "embedded", "loss": "nothing"}, "there is no loss 'nothing'"),
        ({"bandwidth": -1.0}, "bandwidth is -1.0"),
        ({"scale": "yes"}, "scale is 'yes'"),
        ({"options": {"color": "red"}}, "takes no parameter 'color'"),
        ({"learner": "embedded", "warmup": 0}, "warmup is 0"),
    ):
        estimator = KONSRegressor(**parameters)
        with pytest.raises(ConfigurationError, match=message):
            estimator.fit(X, Y)
        assert not hasattr(estimator, "model_")
    with pytest.raises(ConfigurationError, match="scale is"):
        KORSFeatures(scale="yes").fit(X)
    with pytest.raises(NotFittedError):
        KORSFeatures().transform(X)


def test_without_scikit_learn_the_import_says_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = None
try:
    import kons.sklearn
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'kons[sklearn]'" in found.stdout


def test_several_targets():
    """Each as a regressor of its own: one A for all, of the same rows."""
    targets = np.stack([Y, X[:, 1] ** 2], axis=1)
    model = KONSRegressor("ridge", warmup=100).fit(X[:200], targets[:200])
    assert model.predict(X).shape == (400, 2)
    for k in range(2):
        alone = KONSRegressor("ridge", warmup=100).fit(X[:200], targets[:200, k])
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), rtol=1e-9)
    frame = pd.DataFrame(X[:60], columns=["a", "b"])
    default = KONSRegressor().fit(frame, pd.DataFrame(targets[:60], columns=["y", "z"]))
    assert default.predict(frame).shape == (60, 2)
    several = [KONSRegressor(name).__sklearn_tags__().target_tags.multi_output for name in ("ridge", "norma")]
    assert several == [True, False]
    with pytest.raises(ValueError, match="1d array"):
        KONSRegressor("norma").fit(X, targets)
