"""Features that vanish, come late, change places and kinds: refereed by rows made by hand."""

import copy
import datetime
import functools
import math
import warnings
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from contracts.learners import assert_identical
from kons import errors
from kons.errors import InputError, KonsWarning
from kons.kernels import ScikitLearn
from kons.recipes import for_task
from kons.river import KONSRegressor
from tables import naive_encoder as naive

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
close = functools.partial(np.testing.assert_allclose, rtol=1e-9)

RNG = np.random.default_rng(8)
COUNT, WARMUP = 260, 40
A, B, C = RNG.normal(size=(3, COUNT)) * np.array([[10.0], [1.0], [0.1]]) + 5.0
WORDS = RNG.choice(["red", "green", "blue", "grey"], size=COUNT).tolist()
Y = (3.0 * A + 20.0 * np.sin(B) + 10.0 * (np.array(WORDS) == "red") + 50.0 * C).tolist()


def played(model, rows, targets=Y):
    """The predictions before each row."""
    out = []
    for x, y in zip(rows, targets, strict=False):
        out.append(model.predict_one(x))
        model.learn_one(x, y)
    return out


def rows(**columns):
    """Dicts; a value that is None is left out."""
    names = list(columns)
    values = zip(*columns.values(), strict=True)
    return [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in values]


def by_hand(stream, targets=Y):
    """What the learner inside says of rows that were encoded as slowly as can be."""
    return naive.played(for_task("regression", "embedded", warmup=WARMUP), stream, targets)


def test_missing_numbers_are_the_mean_so_far_and_missing_text_is_a_level():
    gone = RNG.random((2, COUNT)) < 0.3
    gone[:, 0] = False
    b = [None if g else v for g, v in zip(gone[0], B.tolist(), strict=True)]
    words = [None if g else v for g, v in zip(gone[1], WORDS, strict=True)]
    stream = rows(a=A.tolist(), b=b, word=words)
    model = KONSRegressor("embedded", warmup=WARMUP)
    close(played(model, stream), by_hand(stream))
    assert model.core.encoder.gaps == {"b": int(gone[0].sum()), "word": int(gone[1].sum())}


@pytest.mark.parametrize(
    "absent", [None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN"), np.ma.masked]
)
def test_every_way_of_saying_nothing_is_the_same(absent):
    there, gone = rows(a=A.tolist(), b=B.tolist()), rows(a=A.tolist(), b=B.tolist())
    for i in range(3, COUNT, 4):
        del gone[i]["b"]
        there[i]["b"] = absent
    models = [KONSRegressor("embedded", warmup=WARMUP) for _ in range(2)]
    assert played(models[0], there) == played(models[1], gone)
    assert_identical(models[0].state(), models[1].state())


def test_order_and_kinds_of_numbers_do_not_matter():
    a, b, flags = np.round(A).tolist(), B.tolist(), (C > 5.0).tolist()
    plain = rows(a=a, b=b, flag=[float(f) for f in flags], word=WORDS)
    kinds = [int, np.int64, np.float32, Decimal, Fraction, np.float64, lambda v: np.array(v)]
    odd = [
        {"word": np.str_(w), "flag": [bool, np.bool_][i % 2](f), "b": v, "a": kinds[i % 7](u)}
        for i, (u, v, f, w) in enumerate(zip(a, b, flags, WORDS, strict=True))
    ]
    models = [KONSRegressor("embedded", warmup=WARMUP) for _ in range(2)]
    assert played(models[0], plain) == played(models[1], odd)
    assert_identical(models[0].state(), models[1].state())


@pytest.mark.parametrize("only", ["number", "text", "whole numbers"])
def test_a_single_feature(only):
    column = {"number": A.tolist(), "text": WORDS, "whole numbers": [i % 13 for i in range(COUNT)]}[only]
    close(played(KONSRegressor("embedded", warmup=WARMUP), rows(x=column)), by_hand(rows(x=column)))


def test_mappings_that_answer_for_what_they_do_not_hold_are_left_as_they_are():
    features = rows(a=A.tolist(), b=B.tolist())
    for x in features[30:]:
        x["new"] = x.pop("b")
    plain, odd = (KONSRegressor("embedded", warmup=WARMUP) for _ in range(2))
    expected = played(plain, features)
    lazy = [(Counter if i % 2 else functools.partial(defaultdict, float))(x) for i, x in enumerate(features)]
    assert played(odd, lazy) == expected
    assert lazy == features
    assert_identical(odd.state(), plain.state())


@pytest.mark.parametrize("warmup", [1, 2, 3])
def test_a_second_feature_behind_a_short_warm_up(warmup):
    model = KONSRegressor("embedded", warmup=warmup)
    for i in range(80):
        model.learn_one({"a": float(i)} if i < warmup else {"a": float(i), "b": float(i % 5)}, float(i))
    assert model.rows_seen == 80
    assert model.predict_one({"a": 3.0, "b": 1.0}) != model.predict_one({"a": 3.0, "b": 4.0})


def test_rows_without_any_feature_are_rows():
    model = KONSRegressor("embedded", warmup=10)
    for y in (1.0, 3.0):
        model.learn_one({}, y)
    assert model.predict_one({}) == 2.0
    played(model, rows(a=A.tolist(), word=WORDS))
    assert model.rows_seen == COUNT + 2
    assert abs(model.predict_one({"a": A[0], "word": WORDS[0]}) - Y[0]) < abs(np.mean(Y) - Y[0])


# ---- late


@pytest.mark.parametrize("first", [15, WARMUP - 1, 60])
@pytest.mark.parametrize("every", [1, 2])
def test_a_feature_that_comes_late_is_used_from_the_next_row_on(first, every):
    came = range(first, COUNT, every)
    late = [v if i in came else None for i, v in enumerate(C.tolist())]
    words = [v if i - 1 in came else None for i, v in enumerate(WORDS)]
    stream = rows(a=A.tolist(), b=B.tolist(), late=late, word=words)
    model = KONSRegressor("embedded", warmup=WARMUP)
    close(played(model, stream), by_hand(stream))
    assert model.core.feature_names[:4] == ["a", "b", "late", "late missing"]
    assert model.predict_one({"a": 5.0, "late": 4.8}) != model.predict_one({"a": 5.0, "late": 5.2})


def test_a_late_feature_of_two_kinds_is_of_the_first():
    late = [None] * 60 + ["text" if i % 3 else float(i) for i in range(COUNT - 60)]
    model = KONSRegressor("embedded", warmup=WARMUP)
    played(model, rows(a=A.tolist(), late=late))
    assert model.core.feature_names == ["a", "late", "late missing"]


def test_what_the_kernel_cannot_take_is_left_out(monkeypatch):
    kernel = ScikitLearn("rbf")  # its width depends on the number of features
    model, twin = (KONSRegressor("embedded", kernel=kernel, warmup=WARMUP) for _ in range(2))
    late = [None] * 60 + C[60:].tolist()
    monkeypatch.setattr(errors, "told", set())
    with pytest.warns(KonsWarning, match="what came late is left out: .* is another kernel"):
        predictions = played(model, rows(a=A.tolist(), b=B.tolist(), late=late))
    close(predictions, played(twin, rows(a=A.tolist(), b=B.tolist())))
    assert model.core.feature_names == ["a", "b"]


# ---- kinds that change


def test_text_among_numbers_is_a_number_or_missing():
    a: list = B.tolist()
    clean: list = B.tolist()
    for i in range(5, COUNT, 9):
        a[i], clean[i] = repr(clean[i]), clean[i]
    for i in range(7, COUNT, 9):
        a[i], clean[i] = "unknown" if i % 2 else "inf", None
    models = [KONSRegressor("embedded", warmup=WARMUP) for _ in range(2)]
    assert played(models[0], rows(a=a, b=A.tolist())) == played(models[1], rows(a=clean, b=A.tolist()))


def test_numbers_among_text_are_text():
    odd = [3 if i % 5 == 4 else 2.5 if i % 5 == 3 else w for i, w in enumerate(WORDS)]
    models = [KONSRegressor("embedded", warmup=WARMUP) for _ in range(2)]
    clean = [str(value) for value in odd]
    assert played(models[0], rows(a=A.tolist(), w=odd)) == played(models[1], rows(a=A.tolist(), w=clean))


def test_bytes_are_text():
    models = [KONSRegressor("embedded", warmup=WARMUP) for _ in range(2)]
    as_bytes = [word.encode() for word in WORDS]
    assert played(models[0], rows(w=as_bytes)) == played(models[1], rows(w=WORDS))


# ---- told once


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": "1.5", "w": "red"}, "'a' holds '1.5', and was a number so far"),
        ({"a": 1.0, "w": 2}, "'w' holds 2, and was text so far"),
        ({"a": datetime.date(2024, 1, 1), "w": "red"}, "'a' holds .*, and was a number so far"),
    ],
)
def test_what_is_done_for_the_user_is_told_once(monkeypatch, row, message):
    monkeypatch.setattr(errors, "told", {"Scaled target"})
    model = KONSRegressor("embedded", warmup=3)
    played(model, rows(a=A.tolist(), w=WORDS)[:20])
    before = model.state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KonsWarning, match=message):
            model.learn_one(row, 2.0)
        assert_identical(model.state(), before)
        model.learn_one(row, 2.0)


def test_gaps_are_counted():
    model = KONSRegressor("embedded", warmup=20)
    played(model, rows(a=[None if i % 4 == 3 else v for i, v in enumerate(A.tolist())], w=WORDS))
    assert model.core.encoder.gaps == {"a": COUNT // 4}


# ---- refused


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": math.inf, "b": 1.0}, "'a' is inf, expected a finite number"),
        ({"a": 1.0, "b": np.float64(-np.inf)}, "'b' is -inf"),
        ({"a": 10**400, "b": 1.0}, "'a' is inf"),
        ({"a": [1.0], "b": 1.0}, r"'a' is \[1.0\] \(list\)"),
        ({"a": 1j, "b": 1.0}, "complex"),
        ({"a": 1.0, "b": {"c": 1.0}}, "'b' is .*dict"),
        ([1.0, 2.0], "x is a list, expected a dict"),
        (None, "x is a NoneType"),
        (np.zeros(2), "x is a ndarray"),
        (pd.Series({"a": 1.0, "b": 1.0}), r"x is a Series, .* use x.to_dict\(\)"),
    ],
)
@pytest.mark.parametrize("learned", [0, 10, 100])
def test_what_is_no_value_is_refused_and_changes_nothing(x, message, learned):
    model = KONSRegressor("embedded", warmup=30)
    played(model, rows(a=A.tolist(), b=B.tolist())[:learned])
    before = model.state()
    for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
        with pytest.raises(InputError, match=message):
            call(x)
    assert_identical(model.state(), before)


def test_infinity_in_a_new_feature_is_refused_when_it_would_be_learned():
    model = KONSRegressor("embedded", warmup=30)
    played(model, rows(a=A.tolist(), b=B.tolist())[:40])
    before = model.state()
    row = {"a": 1.0, "b": 1.0, "new": math.inf}
    assert model.predict_one(row) == model.predict_one(
        {"a": 1.0, "b": 1.0}
    )  # what is not known tells nothing
    with pytest.raises(InputError, match="'new' is inf"):
        model.learn_one(row, 1.0)
    assert_identical(model.state(), before)


@pytest.mark.parametrize("at", [0, 5, 60, 150])  # new, a new feature in the warm-up, a late one, a plain row
def test_a_refused_target_changes_nothing(at):
    model = KONSRegressor("embedded", warmup=20)
    late = [None] * 60 + C[60:].tolist()
    early = [None] * 5 + B[5:].tolist()
    stream = rows(a=A.tolist(), b=early, late=late)
    played(model, stream[:at])
    before = model.state()
    with pytest.raises(InputError):
        model.learn_one(stream[at], math.nan)
    assert_identical(model.state(), before)


@pytest.mark.parametrize("learned", [10, 100])
def test_huge_numbers_are_numbers(learned):
    model = KONSRegressor("embedded", warmup=30)
    stream = rows(a=A.tolist(), b=B.tolist())
    played(model, stream[:learned])
    huge = {"a": 1.7e308, "b": -1.7e308}
    for _ in range(40):
        model.learn_one(huge, 3.0)
    model.learn_one({"b": 1.0}, 3.0)  # the mean of the other is beyond all numbers
    assert math.isfinite(model.predict_one(huge))


def test_rows_are_not_kept():
    model = KONSRegressor("embedded", warmup=30)
    x = {"a": 1.0, "w": "red"}
    for i in range(50):
        x["a"] = float(i)
        before = copy.deepcopy(x)
        model.predict_one(x)
        model.learn_one(x, float(i))
        assert x == before
    x["a"], x["w"] = 1e9, "blue"
    assert abs(model.predict_one({"a": 30.0, "w": "red"}) - 30.0) < 2.0
