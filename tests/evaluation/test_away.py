"""Figures away from the stream: without last targets, and of a model that learns nothing in between."""

import copy
import itertools

import numpy as np
import pytest
import sklearn.metrics as referee

import kons
from kons import AutoKONS
from kons.errors import ConfigurationError
from kons.evaluation import OnlineLinear, Prequential
from kons.evaluation.class_weights import BalancedWeights
from kons.evaluation.held_out import HeldOut


@pytest.fixture(scope="module")
def walk():
    """A target that follows itself, and columns that say little of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 2))
    return X, np.cumsum(rng.normal(size=2600)) + X[:, 0]


def played(X, y, task="regression", cut=512, **options):
    engine = Prequential(AutoKONS(task, max_atoms=20), task, baselines=False, **options)
    for start in range(0, len(y), cut):
        engine.advance((X[start : start + cut], y[start : start + cut]))
    return engine


@pytest.fixture(scope="module")
def played_walk(walk):
    """The engine behind 1,024 rows of it, and behind all."""
    X, y = walk
    half = played(X[:1024], y[:1024])
    whole = copy.deepcopy(half)
    for start in range(1024, len(y), 512):
        whole.advance((X[start : start + 512], y[start : start + 512]))
    return half, whole


def test_what_is_told_is_what_predict_says_before_a_row_is_learned(walk):
    X, y = (part[:500] for part in walk)
    result = played(X, y, cut=500).result()
    model, said = AutoKONS(max_atoms=20), np.empty(500)
    early = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 41, 51, 63]
    starts = [*early, *range(64, 500, 64), 500]
    for start, stop in itertools.pairwise(starts):
        rows = slice(start, stop)
        if start:
            said[rows] = model.predict(X[rows])
        model.advance(X[rows], y[rows])
    assert result.away_rows == 499  # the same as along the stream
    assert result.away["mse"] == pytest.approx(referee.mean_squared_error(y[1:], said[1:]))
    assert result.away["r2"] == pytest.approx(referee.r2_score(y[1:], said[1:]))


def test_the_online_figure_is_the_same_with_it(walk):
    X, y = (part[:500] for part in walk)
    trace = AutoKONS(max_atoms=20).advance(X, y)
    assert played(X, y, cut=500).result().loss == pytest.approx(trace.loss[1:].mean(), rel=1e-9)


def test_a_walk_is_followed_along_the_stream_only(played_walk):
    result = played_walk[1].result()
    assert result.away["mse"] > 2.0 * result.loss
    # One row in eight of a long stream, from the first chunk's end on.
    assert result.away_rows == 8 * (2048 // 64 - 1) + 64 + 40
    assert "without last targets" in repr(result)


def test_a_learner_that_never_looks_back_has_one_figure(walk):
    engine = Prequential(OnlineLinear(), "regression")
    engine.advance(walk)
    assert (engine.result().away, engine.result().away_rows) == (None, 0)


def test_it_goes_on_from_a_state(walk, played_walk):
    X, y = walk
    half, whole = played_walk
    model = kons.AutoKONS.from_state(half.learner.parameters(), half.learner.state())
    engine = Prequential(model, "regression", baselines=False).resume(half.state())
    for start in range(1024, len(y), 512):
        engine.advance((X[start : start + 512], y[start : start + 512]))
    assert engine.result().away == whole.result().away


def test_an_error_in_a_late_part_of_a_block_leaves_everything_as_it_was(walk):
    X, y = (part[:400].copy() for part in walk)
    engine = played(X[:100], y[:100])
    before = engine.result()
    y[390] = 1e200  # which AutoKONS refuses
    with pytest.raises(kons.errors.TargetError):
        engine.advance((X[100:], y[100:]))
    assert engine.learner.rows_seen == 100
    assert engine.result().away == before.away
    y[390] = 0.0
    engine.advance((X[100:], y[100:]))
    clean = played(X[:100], y[:100])
    clean.advance((X[100:], y[100:]))
    assert engine.result().away == clean.result().away


def test_labels_away_from_the_stream():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 2))
    labels = np.where((np.arange(600) // 40) % 2 == 0, "a", "b").astype(object)
    result = played(X, labels, "classification", cut=300).result()
    assert result.loss < 0.1 < result.away["error_rate"]
    assert set(result.away) == set(result.metrics)


def test_a_sorted_stream_is_noticed():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    result = kons.evaluate("auto", (X, np.sort(rng.normal(size=300))))
    assert result.order == "ascending"
    assert "sorted by target" in repr(result)
    assert kons.evaluate("auto", (X, rng.normal(size=300))).order is None


# ---- figures of predictions that are there already


def test_held_out_numbers():
    rng = np.random.default_rng(3)
    y, said = rng.normal(size=300), rng.normal(size=300)
    figures = HeldOut("regression")
    for start in range(0, 300, 70):
        figures.record(y[start : start + 70], said[start : start + 70])
    assert figures.rows == 300
    assert figures.loss == pytest.approx(referee.mean_squared_error(y, said))
    assert figures.constant == pytest.approx(y.var())
    assert figures.figures()["r2"] == pytest.approx(referee.r2_score(y, said))
    assert HeldOut("regression").resume(figures.state()).figures() == figures.figures()


@pytest.mark.parametrize("positive", [None, "yes"])
def test_held_out_labels_in_any_order(positive):
    rng = np.random.default_rng(4)
    y = np.where(rng.random(400) < 0.2, "no", "yes").astype(object)
    p = np.clip(0.3 * (y == "no") + rng.uniform(0.0, 0.7, 400), 0.0, 1.0)
    said = np.where(p > 0.5, "no", "yes").astype(object)
    figures = HeldOut("classification", positive=positive)
    for start in range(0, 400, 90):
        rows = slice(start, start + 90)
        figures.record(y[rows], said[rows], np.column_stack([p, 1.0 - p])[rows], ["no", "yes"])
    about = positive or "no"  # the rarer one
    assert figures.positive == about
    score = p if about == "no" else 1.0 - p
    found = figures.figures()
    assert found["recall"] == pytest.approx(
        referee.recall_score(y.astype(str), said.astype(str), pos_label=about)
    )
    assert found["auc"] == pytest.approx(referee.roc_auc_score(y == about, score), abs=1e-3)
    expected = referee.average_precision_score(y == about, score)
    assert found["average_precision"] == pytest.approx(expected, abs=1e-2)
    assert figures.constant == pytest.approx(np.mean(y == "no"))


def test_no_rows_have_no_figures():
    assert np.isnan(HeldOut("regression").loss)
    assert np.isnan(HeldOut("classification").constant)


# ---- weights of labels


def test_balanced_weights_are_those_of_all_labels_so_far():
    rng = np.random.default_rng(5)
    codes = np.concatenate([[0, 0, 1, 0, 2], rng.integers(0, 3, 200)])
    weights = BalancedWeights()
    found = np.concatenate([weights.follow(codes[:50]), weights.follow(codes[50:])])
    for t, code in enumerate(codes):
        counts = np.bincount(codes[: t + 1])
        assert found[t] == pytest.approx((t + 1) / (np.count_nonzero(counts) * counts[code]))


def test_rare_labels_are_found_more_often_with_balanced_weights():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(900, 2))
    rare = X[:, 0] + rng.normal(size=900) > 2.6
    labels = np.where(rare, "rare", "usual").astype(object)
    plain, balanced = (
        kons.evaluate("auto", (X, labels), class_weight=weight, baselines=False)
        for weight in (None, "balanced")
    )
    assert plain.positive == balanced.positive == "rare"
    assert balanced.metrics["recall"] > plain.metrics["recall"] + 0.2


def test_weights_are_refused_where_they_mean_nothing():
    with pytest.raises(ConfigurationError, match="is for labels"):
        Prequential(AutoKONS(), "regression", class_weight="balanced")
    with pytest.raises(ConfigurationError, match='None or "balanced"'):
        Prequential(AutoKONS("classification"), "classification", class_weight="even")


def test_the_positive_label_can_be_asked_for():
    rng = np.random.default_rng(7)
    X, labels = rng.normal(size=(200, 1)), np.where(rng.random(200) < 0.3, 1, 0)
    assert kons.evaluate("auto", (X, labels)).positive == 1
    asked = kons.evaluate("auto", (X, labels), positive="0")
    assert asked.positive == 0
    other = kons.evaluate("auto", (X, labels), positive="7")
    assert other.positive == 1
    assert any("no such label" in note for note in other.notes)
