"""Rows of a DataFrame: refereed by the same rows, one dict after the other."""

import copy
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import effort
from contracts.learners import assert_identical
from kons.errors import InputError
from kons.river import KONSClassifier, KONSRegressor

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")

RNG = np.random.default_rng(4)
COUNT = 260


def frame(count=COUNT):
    """Numbers of many types, text, gaps, columns that come late, and one that is never there."""
    X = pd.DataFrame({"a": RNG.normal(size=count) * 100.0, "b": RNG.normal(size=count)})
    X["whole"] = RNG.integers(0, 9, size=count)
    X["flag"] = RNG.random(count) < 0.5
    X["small"] = RNG.normal(size=count).astype(np.float32)
    X["word"] = RNG.choice(["red", "green", "blue"], size=count)
    X["kind"] = pd.Categorical(RNG.choice(["x", "y"], size=count))
    X["nullable"] = pd.array(RNG.integers(0, 5, size=count), dtype="Int64")
    X["maybe"] = pd.array(RNG.random(count) < 0.5, dtype="boolean")
    X[7] = RNG.normal(size=count)
    X["never"] = None
    for name in ("b", "word", "nullable", "maybe", "kind"):
        X.loc[RNG.random(count) < 0.2, name] = None
    X.loc[:30, "small"] = np.nan
    X["late"] = np.where(np.arange(count) < 70, np.nan, RNG.normal(size=count))
    X["later word"] = [None if i < 90 or i % 3 == 0 else ["p", "q", "r"][i % 5 % 3] for i in range(count)]
    return X


X = frame()
Y = pd.Series(0.1 * X["a"] + 5.0 * np.sin(X["b"].fillna(0.0)) + 3.0 * (X["word"] == "red") + X["whole"])
LABELS = pd.Series(np.where(Y > 4, "high", np.where(Y > 0, "middle", "low")))
CUTS = {"one": [1] * COUNT, "some": [1, 7, 30, 2, 40, 60, 90, 30], "half": [130, 130], "all": [COUNT]}


def dicts(X):
    return X.to_dict("records")


def one_by_one(model, X, y):
    """The predictions before each row."""
    out = []
    for x, target in zip(dicts(X), y.tolist(), strict=True):
        out.append(model.predict_one(x))
        model.learn_one(x, target)
    return out


def assert_close(state, other, where="state"):
    """The same decisions, numbers up to rounding."""
    assert type(state) is type(other), where
    if isinstance(state, dict):
        assert state.keys() == other.keys(), where
        for key in state:
            assert_close(state[key], other[key], f"{where}.{key}")
    elif isinstance(state, (list, tuple)):
        assert len(state) == len(other), where
        for i, (a, b) in enumerate(zip(state, other, strict=True)):
            assert_close(a, b, f"{where}[{i}]")
    elif isinstance(state, np.ndarray):
        np.testing.assert_allclose(
            state, other, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(state).max(initial=0))
        )
    elif isinstance(state, float):
        assert math.isclose(state, other, rel_tol=1e-9, abs_tol=1e-9), where
    else:
        assert state == other, where


@pytest.mark.parametrize("cut", effort.some(CUTS, "some", "half", "all"))
def test_learn_many_is_learn_one_in_a_loop(cut):
    sizes = CUTS[cut]
    one, many = (
        KONSRegressor("embedded", warmup=60, max_atoms=40),
        KONSRegressor("embedded", warmup=60, max_atoms=40),
    )
    one_by_one(one, X, Y)
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        many.learn_many(X[stop - size : stop], Y[stop - size : stop])
    assert many.rows_seen == COUNT
    assert_close(many.state()["core"]["encoder"], one.state()["core"]["encoder"])
    np.testing.assert_array_equal(many.core.inner.atoms.shape, one.core.inner.atoms.shape)
    np.testing.assert_allclose(many.core.inner.atoms, one.core.inner.atoms, atol=1e-9)
    expected = [one.predict_one(x) for x in dicts(X)]
    np.testing.assert_allclose([many.predict_one(x) for x in dicts(X)], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(many.predict_many(X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cut", effort.some(CUTS, "some", "all"))
def test_learn_many_of_classes(cut):
    sizes = CUTS[cut]
    one, many = (
        KONSClassifier("embedded", warmup=60, max_atoms=40),
        KONSClassifier("embedded", warmup=60, max_atoms=40),
    )
    one_by_one(one, X, LABELS)
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        many.learn_many(X[stop - size : stop], LABELS[stop - size : stop])
    assert many.classes == one.classes
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in dicts(X)]
    table = many.predict_proba_many(X)
    assert list(table.columns) == one.classes
    expected = [list(one.predict_proba_one(x).values()) for x in dicts(X)]
    np.testing.assert_allclose(table, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("learner", ["kons", "sketched", "nons_ald"])
def test_learn_many_with_other_learners(learner):
    given = {"learner": learner, "warmup": 60}
    one, many = KONSRegressor(**given), KONSRegressor(**given)
    one_by_one(one, X, Y)
    many.learn_many(X[:100], Y[:100])
    many.learn_many(X[100:], Y[100:])
    np.testing.assert_allclose(
        many.predict_many(X), [one.predict_one(x) for x in dicts(X)], rtol=1e-9, atol=1e-9
    )


def test_rows_and_frames_in_turn():
    one, many = KONSRegressor("embedded", warmup=60), KONSRegressor("embedded", warmup=60)
    whole = X[["a", "whole", "flag", 7]]
    gaps = whole.mask(RNG.random(whole.shape) < 0.3)
    for start in range(0, 240, 40):
        stop = start + 20
        one_by_one(one, whole[start:stop], Y[start:stop])
        one_by_one(many, whole[start:stop], Y[start:stop])
        one_by_one(one, gaps[stop : stop + 20], Y[stop : stop + 20])
        many.learn_many(gaps[stop : stop + 20], Y[stop : stop + 20])
        np.testing.assert_allclose(
            many.predict_many(gaps), [one.predict_one(x) for x in dicts(gaps)], rtol=1e-9, atol=1e-9
        )
    assert_close(many.state()["core"]["encoder"], one.state()["core"]["encoder"])


def test_predictions_have_the_index_of_the_frame():
    model = KONSRegressor("embedded", warmup=60)
    rows = X[100:110].set_axis(list("abcdefghij"))
    assert model.predict_many(rows).to_dict() == dict.fromkeys("abcdefghij", 0.0)
    model.learn_many(X[:100], Y[:100])
    assert list(model.predict_many(rows).index) == list("abcdefghij")
    assert model.predict_many(rows[:0]).tolist() == []


def test_labels_keep_their_type():
    model = KONSClassifier("embedded", warmup=60)
    assert model.predict_many(X[:3]).tolist() == [None] * 3
    assert model.predict_proba_many(X[:3]).shape == (3, 0)
    model.learn_many(X, Y > 0)
    assert model.predict_many(X).dtype == np.bool_
    assert list(model.predict_proba_many(X[:2]).columns) == model.classes
    assert all(type(label) is bool for label in model.classes)


def test_kinds_that_change_from_frame_to_frame():
    one, many = KONSRegressor("embedded", warmup=60), KONSRegressor("embedded", warmup=60)
    odd = X.assign(word=X["whole"], a=X["a"].map(repr), flag=X["word"])
    for part, y in ((X, Y), (odd, Y), (X[["a", "word"]], Y)):
        one_by_one(one, part, y)
        many.learn_many(part, y)
    np.testing.assert_allclose(many.predict_many(odd), [one.predict_one(x) for x in dicts(odd)], rtol=1e-9)


def test_frames_are_left_as_they_are():
    for model, y in (
        (KONSRegressor("embedded", warmup=60), Y),
        (KONSClassifier("embedded", warmup=60), LABELS),
    ):
        mine, targets = X.copy(deep=True), y.copy(deep=True)
        model.learn_many(mine, targets)
        model.predict_many(mine)
        pd.testing.assert_frame_equal(mine, X)
        pd.testing.assert_series_equal(targets, y)
        before = model.state()
        mine["a"] += 1e9
        mine.loc[:, "word"] = "changed"
        targets[:] = targets[0]
        assert_identical(model.state(), before)


def bad_frames():
    infinite, listed, twice = (X.copy(deep=True) for _ in range(3))
    infinite.loc[200, "b"] = np.inf
    listed["word"] = listed["word"].astype(object)
    listed.at[200, "word"] = [1]
    twice.columns = ["a", "a", *twice.columns[2:]]
    yield "infinity", infinite, Y, "'b' holds infinity"
    yield "a list", listed, Y, "'word' is"
    yield "a name twice", twice, Y, "more than once"
    yield "targets missing", X, Y.where(np.arange(COUNT) != 222), "y"
    yield "too few targets", X, Y[:-1], "expected one per row"
    yield "one target", X, 3.0, "one target per row"
    yield "an array", X[["a"]].to_numpy(), Y, "expected a frame"
    yield "a dict", {"a": 1.0}, Y, "expected a frame"


@pytest.mark.parametrize(
    ("bad", "y", "message"), [pytest.param(*case[1:], id=case[0]) for case in bad_frames()]
)
@pytest.mark.parametrize("learned", [0, 30, 130])
def test_a_refused_frame_changes_nothing(bad, y, message, learned):
    model = KONSRegressor("embedded", warmup=60)
    model.learn_many(X[:learned], Y[:learned])
    twin = copy.deepcopy(model)
    with pytest.raises(InputError, match=message):
        model.learn_many(bad, y)
    assert_identical(model.state(), twin.state())


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_frames_of_other_libraries(convert):
    mine = X.drop(columns=[7, "kind"])
    one, many = KONSRegressor("embedded", warmup=60), KONSRegressor("embedded", warmup=60)
    one.learn_many(mine, Y)
    other = convert(mine)
    y = pl.Series(Y) if convert is pl.from_pandas else pa.chunked_array([Y])
    assert len(many.predict_many(other)) == COUNT
    many.learn_many(other, y)
    assert_identical(many.state(), one.state())
    predictions = many.predict_many(other)
    assert type(predictions) is type(y)
    assert predictions.to_numpy().tolist() == one.predict_many(mine).tolist()
    classes = KONSClassifier("embedded", warmup=60)
    assert classes.predict_proba_many(other).shape[1] == 0
    classes.learn_many(other, LABELS)
    assert type(classes.predict_proba_many(other)) is type(other)
    assert set(classes.predict_many(other).to_pandas()) <= set(LABELS)


def test_gaps_are_counted():
    model = KONSRegressor("embedded", warmup=60)
    model.learn_many(X[:60], Y[:60])
    gaps = X[:60].drop(columns="never").isna().sum()
    # Of a column that comes late, from the first row on, as in a file.
    expected = {name: int(count) for name, count in gaps.items() if X[name].first_valid_index() < 60}
    assert model.core.encoder.gaps == {name: count for name, count in expected.items() if count}
