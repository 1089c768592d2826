"""AutoKONS on y of shape (n, k): one ensemble, in which each target is stacked by itself."""

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
def test_units_and_order_of_targets_do_not_matter(delay):
    order, unit = [2, 0, 1], np.array([1e3, 1.0, 1e-4])
    model, other = make(delay=delay), make(delay=delay)
    trace = model.advance(X[:370], Y[:370], sample_weight=WEIGHTS[:370])
    moved = (Y * unit)[:, order]
    again = other.advance(X[:370], moved[:370], sample_weight=WEIGHTS[:370])
    sizes = np.ptp(Y, axis=0)

    def same(mine, its, rows):
        back = np.empty(its.shape)
        back[:, order] = its / unit[order]
        np.testing.assert_allclose(back[rows:] / sizes, mine[rows:] / sizes, rtol=0, atol=1e-6)

    same(trace.prediction, again.prediction, 1 + delay)  # before any target is known 0 is predicted
    np.testing.assert_array_equal(trace["expert"], again["expert"])
    for x, y, its in zip(X[370:], Y[370:], moved[370:], strict=True):
        same(model.predict_one(x)[None], other.predict_one(x)[None], 0)
        model.learn_one(x, y)
        other.learn_one(x, its)
    for recent in (False, True):
        same(model.predict(X, recent), other.predict(X, recent), 0)
    assert (model.outputs, len(model.shares), model.relevances.shape) == (3, 3, (3, 2))
    assert model.successions == other.successions == 1  # one of them became another


def test_related_targets_cost_and_lose_little_more_than_one():
    random = np.random.default_rng(1)
    inputs = random.normal(size=(1500, 4))
    hidden = np.stack(
        [np.sin(2.0 * inputs[:, 0]) * inputs[:, 1], np.abs(inputs[:, 1]) + inputs[:, 0]], axis=1
    )
    targets = hidden @ random.normal(size=(2, 4)) + 0.2 * random.normal(size=(1500, 4))
    targets = targets * 10.0 ** np.arange(-4, 4, 2)
    model = AutoKONS(max_atoms=60)
    errors = (model.advance(inputs, targets).prediction - targets) ** 2
    sizes, ratios = [], []
    for k, y in enumerate(targets.T):
        one = AutoKONS(max_atoms=60)
        alone = one.advance(inputs, y).loss
        sizes.append(one.size)
        ratios.append(errors[200:, k].mean() / alone[200:].mean())
    assert np.exp(np.mean(np.log(ratios))) < 1.1
    assert model.size <= 2 * max(sizes)  # atoms, which the four share


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


def test_evaluated_target_by_target():
    delay = 4
    result = evaluate(make(delay=delay), (X[:200], Y[:200]), delay=delay)
    assert result.loss == pytest.approx(sum(one.loss for one in result.targets), rel=1e-12)
    with pytest.raises(ConfigurationError, match="the learner was made for delay"):
        evaluate(make(delay=delay), (X[:200], Y[:200]), delay=9)


def test_forged_files_are_refused():
    model = make()
    live(model, 0, 60)
    forgeries = {
        "0 entries, expected 1": lambda state: state["targets"].pop(),
        "an earlier version": lambda state: state["targets"].extend(2 * state["targets"]),
        "a number below|not among": lambda state: state["targets"][0]["pending"].update(asked=7),
        "other rows wait": lambda state: state["targets"][0]["pending"]["records"].update(
            numbers=np.arange(54.0, 59.0)
        ),
        "bounds has the shape": lambda state: state.update(outputs=99_999),
        "stacking has 1 entries, expected 3": lambda state: state["targets"][0]["drift"]["current"][
            "selection"
        ].update(stacking=[{}]),
    }
    for message, forge in forgeries.items():
        state = model.state()
        forge(state)
        with pytest.raises(FileError, match=message):
            AutoKONS.from_state(model.parameters(), state)
