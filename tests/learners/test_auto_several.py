"""AutoKONS on y of shape (n, k): k models that do not know of each other."""

import copy

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import AutoKONS, evaluate
from kons.errors import ConfigurationError, FileError, InputError, TargetError
from kons.files import from_bytes, to_bytes

ROWS = 420
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 2))
# One that is smooth, one that walks, and one that becomes another, which a fresh ensemble takes over.
Y = np.stack([np.sin(X[:, 0]), 50.0 + np.cumsum(rng.normal(size=ROWS)), 1e-3 * X[:, 1]], axis=1)
Y[300:, 2] = 1e3 - 1e3 * X[300:, 1]
WEIGHTS = np.linspace(0.5, 2.0, ROWS)


def make(**choices):
    return AutoKONS(max_atoms=10, seed=3, **choices)


@pytest.mark.parametrize("delay", [0, 3])
def test_k_targets_are_k_models(delay):
    model, singles = make(delay=delay), [make(delay=delay) for _ in range(3)]
    trace = model.advance(X[:370], Y[:370], sample_weight=WEIGHTS[:370])
    apart = [one.advance(X[:370], y[:370], WEIGHTS[:370]) for one, y in zip(singles, Y.T, strict=True)]
    for column in ("prediction", "slope", "weight", "inverse_form", "leverage", "expert"):
        np.testing.assert_array_equal(trace[column], np.stack([one[column] for one in apart], axis=1))
    np.testing.assert_allclose(trace.loss, sum(one["loss"] for one in apart), rtol=1e-15)
    np.testing.assert_array_equal(trace.size, sum(one.size for one in apart))
    assert trace.gain == pytest.approx(sum(one.gain for one in apart), rel=1e-12)
    for x, y in zip(X[370:], Y[370:], strict=True):
        assert model.predict_one(x).tolist() == [one.predict_one(x) for one in singles]
        model.learn_one(x, y)
        for one, target in zip(singles, y, strict=True):
            one.learn_one(x, float(target))
    for recent in (False, True):
        expected = np.stack([one.predict(X, recent) for one in singles], axis=1)
        np.testing.assert_array_equal(model.predict(X, recent), expected)
    assert model.outputs == 3
    assert model.size == sum(one.size for one in singles)
    assert model.successions == sum(one.successions for one in singles) > 0
    assert model.shares == [one.shares for one in singles]
    assert model.expert_names == singles[0].expert_names
    np.testing.assert_array_equal(model.relevances, [one.relevances for one in singles])


def test_blocks_equal_rows():
    whole, cut, rows = make(), make(), make()
    expected = whole.advance(X, Y).prediction
    parts = [cut.advance(X[i : i + 37], Y[i : i + 37]).prediction for i in range(0, ROWS, 37)]
    unit = np.ptp(Y, axis=0)
    np.testing.assert_allclose(np.concatenate(parts) / unit, expected / unit, rtol=0, atol=1e-9)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        if t:  # before the first row nobody knows how many there will be
            np.testing.assert_allclose(rows.predict_one(x) / unit, expected[t] / unit, rtol=0, atol=1e-6)
        rows.learn_one(x, y.tolist() if t % 2 else y)


def live(model, start, stop, delay=5):
    said = []
    for t in range(start, stop):
        said.append(model.ask(X[t], t))
        if t >= delay:
            model.tell(t - delay, Y[t - delay])
    return said


def test_late_targets_and_a_file_in_between():
    model, simulated = make(), make(delay=5)
    said = live(model, 0, 200)
    twin = from_bytes(to_bytes(model))
    assert twin.outputs == 3
    more, again = live(model, 200, ROWS), live(twin, 200, ROWS)
    np.testing.assert_array_equal(more, again)
    assert_identical(model.state(), twin.state())
    expected, unit = simulated.advance(X, Y).prediction, np.ptp(Y, axis=0)
    assert said[:6] == [0.0] * 6  # asked before the first target said how many there are
    np.testing.assert_allclose((said[6:] + more) / unit, expected[6:] / unit, rtol=0, atol=1e-6)
    for id in model.queue.ids:
        model.forget(id)
    assert all(not len(target["pending"]["records"]["numbers"]) for target in model.state()["targets"])


def test_saved_with_targets_kept_back_and_widened():
    model = make(delay=4)
    model.advance(X[:150], Y[:150])
    model.widen(samples=[[1.0]])
    twin = from_bytes(to_bytes(model))
    wider = np.hstack([X, np.ones((ROWS, 1))])
    first, second = (one.advance(wider[150:250], Y[150:250]) for one in (model, twin))
    assert_identical(first.columns, second.columns)
    assert model.relevances.shape == (3, 3)


def test_errors_leave_no_trace():
    model = make()
    model.advance(X[:100], Y[:100])
    before, twin = model.state(), copy.deepcopy(model)
    wrong = Y[100:110].copy()
    wrong[4, 1] = np.nan
    for y, message in (
        (Y[100:110, :2], r"2 target\(s\) a row, expected 3"),
        (Y[100:110, 0], "expected 3"),
        (wrong, r"y\[4\]\[1\] is nan"),
    ):
        with pytest.raises(InputError, match=message):
            model.advance(X[100:110], y)
    for y in (Y[100, :2], 0.5, [0.1, np.inf, 0.0]):
        with pytest.raises(InputError):
            model.learn_one(X[100], y)
    with pytest.raises(TargetError, match=r"y\[0\]\[2\] is 1e\+200"):
        model.learn_one(X[100], [0.0, 0.0, 1e200])
    assert_identical(model.state(), before)
    first, second = (one.advance(X[100:200], Y[100:200]) for one in (model, twin))
    assert_identical(first.columns, second.columns)


def test_one_number_stays_one_number():
    plain, column = make(), make()
    plain.advance(X[:90], Y[:90, 0])
    column.advance(X[:90], Y[:90, :1])
    assert plain.predict(X).shape == (ROWS,)
    assert isinstance(plain.predict_one(X[0]), float)
    assert (plain.outputs, column.outputs) == (None, 1)
    np.testing.assert_array_equal(column.predict(X), plain.predict(X)[:, None])
    with pytest.raises(InputError):
        plain.advance(X[:90], Y[:90])
    with pytest.raises(InputError, match="one label per row"):
        AutoKONS("classification").advance(X, Y)


@pytest.mark.parametrize("delay", [0, 4])
def test_evaluated_as_each_by_itself(delay):
    rows, targets = X[:200], Y[:200]
    result = evaluate(make(delay=delay), (rows, targets), delay=delay)
    each = [evaluate(make(delay=delay), (rows, y), delay=delay) for y in targets.T]
    assert result.loss == pytest.approx(sum(one.loss for one in each), rel=1e-12)
    for mine, one in zip(result.targets, each, strict=True):
        assert mine.metrics == pytest.approx(one.metrics, rel=1e-12)
    with pytest.raises(ConfigurationError, match="the learner was made for delay"):
        evaluate(make(delay=delay), (rows, targets), delay=9)


def test_forged_files_are_refused():
    model = make()
    live(model, 0, 60)
    forgeries = {
        "entries, expected": lambda state: state["targets"].pop(),
        "at different rows": lambda state: state["targets"][1]["pending"].update(asked=70),
        "other rows wait": lambda state: state["targets"][2]["pending"]["records"].update(
            numbers=np.arange(54.0, 59.0)
        ),
        "2 entries|3 entries": lambda state: state.update(outputs=99_999),
    }
    for message, forge in forgeries.items():
        state = model.state()
        forge(state)
        with pytest.raises(FileError, match=message):
            AutoKONS.from_state(model.parameters(), state)
