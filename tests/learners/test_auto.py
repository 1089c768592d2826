"""AutoKONS as a whole: any cut, any pause, targets that are hidden, rows that are odd."""

import itertools

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons.errors import ConfigurationError, FileError, InputError
from kons.kernels import Gaussian, Matern
from kons.learners.auto import AutoKONS

ROWS = 700


def series(rows=ROWS, seed=0):
    """A wave under noise, with a feature that matters, one that does not, and one that is constant."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 500, rows), rng.normal(size=rows), np.full(rows, 3.0)])
    y = 1e3 * np.sin(X[:, 0] / 80) + 300 * np.sin(np.arange(rows) / 5) + rng.normal(size=rows)
    return X, y


def labels_of(y):
    return np.where(y > 300, "high", np.where(y < -300, "low", "middle"))


def learned(task, **parameters):
    X, y = series()
    y = y if task == "regression" else labels_of(y)
    model = AutoKONS(task, max_atoms=40, **parameters)
    return model, model.advance(X, y), X, y


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("delay", [0, 3])
def test_cuts_do_not_matter(task, delay):
    _, whole, X, y = learned(task, delay=delay)
    model = AutoKONS(task, max_atoms=40, delay=delay)
    cuts = [0, 1, 2, 9, 10, 64, 65, 130, 400, ROWS]
    parts = [model.advance(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    together = type(whole).concatenate(parts)
    assert together.expert.tolist() == whole.expert.tolist()
    assert together.size.tolist() == whole.size.tolist()
    if task == "regression":
        np.testing.assert_allclose(together.prediction, whole.prediction, rtol=1e-6, atol=1e-4)
    else:
        np.testing.assert_allclose(together.scores, whole.scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("delay", [0, 5])
def test_goes_on_bit_for_bit_from_a_saved_state(task, delay):
    X, y = series()
    y = y if task == "regression" else labels_of(y)
    model = AutoKONS(task, max_atoms=40, delay=delay)
    model.advance(X[:333], y[:333])
    twin = AutoKONS.from_state(model.parameters(), model.state())
    assert_identical(twin.state(), model.state())
    a, b = model.advance(X[333:], y[333:]), twin.advance(X[333:], y[333:])
    assert a.loss.tolist() == b.loss.tolist()
    assert_identical(twin.state(), model.state())


def test_targets_that_are_not_known_yet_change_nothing():
    X, y = series()
    other = y.copy()
    other[300:] += 1e4
    first, second = (AutoKONS(max_atoms=40, delay=7).advance(X, t).prediction for t in (y, other))
    assert first[:308].tolist() == second[:308].tolist()
    assert first[308] != second[308]


def test_beats_the_mean_and_finds_the_feature_that_matters():
    model, trace, _, y = learned("regression")
    assert trace.loss[-300:].mean() < 0.12 * y.var()  # the wave in time alone is 0.08 of it
    assert int(np.argmax(model.relevances)) == 0
    assert sum(model.shares.values()) == pytest.approx(1.0, abs=0.3)
    trace = learned("classification")[1]
    assert trace.loss[-300:].mean() < 0.15


def test_an_error_leaves_no_trace():
    model, _, X, y = learned("regression")
    before = model.state()
    with pytest.raises(InputError):
        model.advance(np.where(np.arange(ROWS)[:, None] == 600, np.nan, X), y)
    assert_identical(model.state(), before)


def test_predictions_change_nothing_and_agree_with_what_comes_next():
    model, _, X, y = learned("regression")
    before = model.state()
    ahead = model.predict_one(X[5])
    assert model.predict(X[5:6], recent_targets=True)[0] == pytest.approx(ahead)
    assert np.isfinite(model.predict(X)).all()
    assert_identical(model.state(), before)
    assert model.advance(X[5:6], y[5:6]).prediction[0] == pytest.approx(ahead, rel=1e-6, abs=1e-4)


def test_probabilities_and_new_classes():
    model, trace, X, _ = learned("classification")
    p = model.predict_proba(X[:20])
    assert p.shape == (20, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    model.advance(X[:5], ["new"] * 5)
    assert model.classes[-1] == "new"
    assert model.predict_proba(X[:2]).shape == (2, 4)
    assert trace.scores.shape == (ROWS, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, np.where(np.arange(ROWS) < 350, y, 1000 * y)),
        lambda X, y: (np.where(np.arange(ROWS)[:, None] < 350, X, X[350]), y),
        lambda X, y: (X, np.where((np.arange(ROWS) > 300) & (np.arange(ROWS) < 310), 1e9, y)),
        lambda X, y: (X, np.full(ROWS, 5.0)),
        lambda X, y: (np.ones((ROWS, 2)), y),
        lambda X, y: (X[:, :1], y),
        lambda X, y: (np.random.default_rng(0).normal(size=(ROWS, 90)), y),
        lambda X, y: (X[:2], y[:2]),
    ],
    ids=[
        "jump",
        "frozen",
        "burst",
        "constant target",
        "constant features",
        "one feature",
        "wide",
        "two rows",
    ],
)
def test_odd_streams_stay_within_the_range_seen(change):
    X, y = change(*series())
    prediction = AutoKONS(max_atoms=40).advance(X, y).prediction
    assert np.isfinite(prediction).all()
    room = 0.06 * np.ptp(y)
    assert prediction.min() >= min(y.min(), 0.0) - room
    assert prediction.max() <= max(y.max(), 0.0) + room


def test_what_is_given_is_kept():
    X, y = series(300)
    model = AutoKONS(max_atoms=30, kernel=Matern("auto"), regularization=0.5)
    model.advance(X, y)
    used = [e for e in model._ensemble.experts if e is not None]
    assert used
    assert all(isinstance(e.kernel, Matern) and e.regularization == 0.5 for e in used)
    model = AutoKONS(max_atoms=30, bandwidth=0.7)
    model.advance(X, y)
    widths = {getattr(e.kernel, "bandwidth", 0.7) for e in model._ensemble.experts if e is not None}
    assert widths == {0.7}
    with pytest.raises(ConfigurationError, match="bandwidth"):
        AutoKONS(kernel=Gaussian(1.0), bandwidth=2.0)
    with pytest.raises(ConfigurationError, match="task"):
        AutoKONS("ranking")


def test_seeds_repeat():
    first, second = learned("regression", seed=3)[1], learned("regression", seed=3)[1]
    assert first.prediction.tolist() == second.prediction.tolist()
    assert learned("regression", seed=4)[1].prediction.tolist() != first.prediction.tolist()


def test_a_forged_state_of_waiting_rows_is_refused():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = AutoKONS(delay=5, max_atoms=20)
    model.advance(X, X[:, 0])
    for name in ("rows", "F", "centres", "predictions"):
        state = model.state()
        state["ensemble"]["waiting"][name] = state["ensemble"]["waiting"][name][:2]
        with pytest.raises(FileError, match="shape"):
            AutoKONS.from_state(model.parameters(), state)
