"""What River's estimators do when nothing is said: AutoKONS on dicts, row by row."""

import datetime as dt
from collections import deque

import numpy as np
import pandas as pd
import pytest
from river import evaluate, metrics

from contracts.learners import assert_identical
from kons import AutoKONS
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from kons.river import KONSClassifier, KONSRegressor

RNG = np.random.default_rng(8)
COUNT = 260
X = RNG.normal(size=(COUNT, 2)) * [100.0, 0.01] + [5000.0, 0.0]
Y = 1000.0 + 30.0 * np.sin(X[:, 0] / 60.0) + np.cumsum(RNG.normal(size=COUNT))
LABELS = np.where(X[:, 0] > 5050.0, "high", np.where(X[:, 1] > 0.0, "low", "left")).tolist()
ROWS = [{"a": a, "b": b} for a, b in X.tolist()]
SMALL = {"max_atoms": 20, "parameters": {"experts": 6}}


def core(task):
    return for_task(task, max_atoms=20, experts=6)


def played(model, rows=ROWS, targets=Y):
    """The predictions before each row."""
    out = []
    for x, y in zip(rows, targets, strict=True):
        out.append(model.predict_one(x))
        model.learn_one(x, y)
    return out


def test_numbers_are_what_the_learner_inside_would_say():
    model = KONSRegressor(**SMALL)
    assert type(model.core) is AutoKONS
    np.testing.assert_allclose(played(model), core("regression").advance(X, Y).prediction, rtol=1e-7)
    # As if it came next: the last targets have a say.
    away = model.core.predict(X[:1], recent_targets=False)[0]
    assert model.predict_one(ROWS[0]) == model.core.predict_one(X[0]) != away


def test_labels_are_what_the_learner_inside_would_say():
    alone = core("classification")
    expected = alone.advance(X, LABELS).prediction.tolist()
    model = KONSClassifier(**SMALL)
    assert model.predict_one(ROWS[0]) is None
    assert model.predict_proba_one(ROWS[0]) == {}
    assert played(model, targets=LABELS) == expected
    assert model.classes == alone.classes
    shares = model.predict_proba_one(ROWS[3])
    assert list(shares) == model.classes
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares == pytest.approx(alone.predict_proba_one(X[3]), abs=1e-6)


def test_frames_are_rows_one_by_one():
    table = pd.DataFrame(X, columns=["a", "b"])
    for model, twin, y in (
        (KONSRegressor(**SMALL), KONSRegressor(**SMALL), Y.tolist()),
        (KONSClassifier(**SMALL), KONSClassifier(**SMALL), LABELS),
    ):
        model.learn_many(table[:200], y[:200])
        for x, target in zip(ROWS[:200], y[:200], strict=True):
            twin.learn_one(x, target)
        single = [twin.predict_one(x) for x in ROWS[200:]]
        many = model.predict_many(table[200:]).tolist()
        if y is LABELS:
            assert many == single
            shares = model.predict_proba_many(table[200:])
            expected = [list(twin.predict_proba_one(x).values()) for x in ROWS[200:]]
            np.testing.assert_allclose(shares, expected, atol=1e-6)
        else:
            np.testing.assert_allclose(many, single, rtol=1e-7)


def test_a_feature_that_comes_late_is_used_from_the_next_row_on():
    late = RNG.uniform(50.0, 90.0, size=COUNT)
    rows = [x | {"late": late[i]} if i >= 30 else x for i, x in enumerate(ROWS)]
    model, alone = KONSRegressor(**SMALL), core("regression")
    found = played(model, rows)
    expected = alone.advance(X[:31], Y[:31]).prediction.tolist()
    alone.widen(2, [[late[30], 1.0]])  # what it was, and that it was missing
    wide = np.column_stack([X, late, np.zeros(COUNT)])
    expected += alone.advance(wide[31:], Y[31:]).prediction.tolist()
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert model.core.relevances.shape == (4,)
    assert model.core.feature_names == ["a", "b", "late", "late missing"]


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
@pytest.mark.parametrize("at", [0, 1, 100, 200])
def test_saved_and_loaded_it_goes_on_bit_for_bit(at):
    rows = [x | {"late": float(i * 37 % 101)} if i >= 60 else x for i, x in enumerate(ROWS)]
    model = KONSRegressor(**SMALL)
    played(model, rows[:at], Y[:at])
    other = from_bytes(to_bytes(model))
    assert played(other, rows[at:], Y[at:]) == played(model, rows[at:], Y[at:])
    assert_identical(other.state(), model.state())


@pytest.mark.parametrize("kind", ["rows", "time"])
def test_with_a_delay_of_river_s_own(kind):
    """Each row is predicted by what was learned until then, and a late label changes nothing before it."""
    delay = 7
    stream = [(x, y) for x, y in zip(ROWS, Y.tolist(), strict=True)]
    how = {"delay": delay}
    if kind == "time":
        days = [dt.datetime(2024, 1, 1) + dt.timedelta(days=i) for i in range(COUNT)]
        stream = [(x | {"when": when}, y) for (x, y), when in zip(stream, days, strict=True)]
        how = {"moment": "when", "delay": dt.timedelta(days=delay)}

    def scored(targets):
        class Noted(KONSRegressor):
            """The estimator, with what it said; River takes the moment out of the features by itself."""

            def predict_one(self, x):
                said.append(super().predict_one({name: x[name] for name in ("a", "b")}))
                return said[-1]

            def learn_one(self, x, y):
                super().learn_one({name: x[name] for name in ("a", "b")}, y)

        said = []
        rows = [(x, y) for (x, _), y in zip(stream, targets, strict=True)]
        evaluate.progressive_val_score(rows, Noted(**SMALL), metrics.MAE(), **how)
        return said

    by_hand, model, waiting = [], KONSRegressor(**SMALL), deque()
    for x, y in zip(ROWS, Y.tolist(), strict=True):
        if len(waiting) >= delay:
            model.learn_one(*waiting.popleft())
        by_hand.append(model.predict_one(x))
        waiting.append((x, y))
    found = scored(Y.tolist())
    assert found == by_hand
    changed = Y.copy()
    changed[150] += 500.0
    after = scored(changed.tolist())
    assert after[: 150 + delay] == found[: 150 + delay]
    assert after != found
