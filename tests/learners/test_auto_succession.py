"""AutoKONS when a stream turns into another one: who is at work, however rows come, and no half steps."""

import copy
import functools
import pickle

import numpy as np
import pytest

import effort
from auto_experts import at_work, experts, has_previous
from contracts.learners import assert_identical
from kons.errors import FileError
from kons.learners.auto import AutoKONS
from kons.learners.auto.ensemble import Ensemble
from kons.learners.auto.spec import STEADY

EVENT, PREVIOUS_ROWS, BACK, ROWS = 1320, 1420, 1440, 1770
ATOMS = 20


def stream(kind="regression", rows=ROWS, back=ROWS):
    """A function, another one elsewhere from EVENT on, and the first again from ``back`` on."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(rows, 2))
    other = (np.arange(rows) >= EVENT) & (np.arange(rows) < back)
    if kind == "regression":
        y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
        X[other] += 5.0
        return X, np.where(other, 9.0 - y, y).tolist()
    codes = np.digitize(X[:, 0] + 0.05 * rng.normal(size=rows), [-0.3, 0.3])
    return X, [f"class {code}" for code in np.where(other, (codes + 1) % 3, codes)]


def model_of(kind="regression", **parameters):
    return AutoKONS(kind, max_atoms=ATOMS, **parameters)


@functools.cache
def quiet_so_far(kind, delay):
    X, y = stream(kind)
    model = model_of(kind, delay=delay)
    model.advance(X[:EVENT], y[:EVENT])
    assert model.successions == 0
    return model


def at_the_event(kind="regression", delay=0):
    """A model of one's own that has learned the rows before the event."""
    return copy.deepcopy(quiet_so_far(kind, delay))


def previous(kind="regression", delay=0):
    """A model after a takeover, with the first ensemble asleep, and the rows that are left."""
    X, y = stream(kind, back=BACK)
    return copy.deepcopy(begun(kind, delay)), X[PREVIOUS_ROWS:], y[PREVIOUS_ROWS:]


@functools.cache
def begun(kind, delay):
    X, y = stream(kind, back=BACK)
    model = at_the_event(kind, delay)
    model.advance(X[EVENT:PREVIOUS_ROWS], y[EVENT:PREVIOUS_ROWS])
    assert model.successions == 1
    assert has_previous(model)
    return model


def one_by_one(model, X, y):
    said = []
    for x, target in zip(X, y, strict=True):
        said.append(model.predict_one(x))
        model.learn_one(x, target)
    return said


# Each kind and each delay, and in a soak each with each.
KINDS_AND_DELAYS = effort.every_value(kind=["regression", "classification"], delay=[0, 3])


@KINDS_AND_DELAYS
def test_how_rows_are_cut_does_not_matter(kind, delay):
    X, y = (part[EVENT:] for part in stream(kind, back=BACK))
    whole, blocks, rows = (at_the_event(kind, delay) for _ in range(3))
    expected = whole.advance(X, y).prediction
    said = [blocks.advance(X[i : i + 37], y[i : i + 37]).prediction for i in range(0, len(X), 37)]
    for found in (np.concatenate(said), one_by_one(rows, X, y)):
        if kind == "regression":
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
        else:
            assert np.sum(np.asarray(found) != expected) < 0.002 * ROWS
    assert whole.successions == blocks.successions == rows.successions >= 1
    assert rows.rows_seen == whole.rows_seen == ROWS
    assert at_work(rows) == at_work(whole)


@KINDS_AND_DELAYS
def test_a_takeover_is_worth_it_and_the_old_one_comes_back(kind, delay):
    X, y = (part[EVENT:] for part in stream(kind))
    model, fresh = at_the_event(kind, delay), model_of(kind, delay=delay)
    loss, beside = model.advance(X, y).loss, fresh.advance(X, y).loss
    assert model.successions == 1
    assert loss[-200:].mean() <= 1.5 * beside[-200:].mean()
    X, y = (part[EVENT:] for part in stream(kind, back=BACK))
    model = at_the_event(kind, delay)
    loss = model.advance(X, y).loss
    assert model.successions == 1
    assert model.rows_seen == ROWS
    assert at_work(model) == (0, ROWS - delay)
    # What came between has spoiled it a little.
    assert loss[-100:].mean() <= 0.5


@KINDS_AND_DELAYS
def test_goes_on_bit_for_bit_while_one_is_asleep(kind, delay):
    model, X, y = previous(kind, delay)
    others = [
        AutoKONS.from_state(model.parameters(), model.state()),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    expected = model.advance(X, y).loss.tolist()
    for other in others:
        assert other.advance(X, y).loss.tolist() == expected
        assert_identical(other.state(), model.state())


def test_a_successor_has_a_seed_of_its_own_and_repeats():
    first, second = previous()[0], model_of()
    X, y = stream(back=BACK)
    for rows in (slice(EVENT), slice(EVENT, PREVIOUS_ROWS)):
        second.advance(X[rows], y[rows])
    assert_identical(first.state(), second.state())
    # The successor has learned the last rows, as a model of the same seed would, with other atoms.
    rows = at_work(first)[1]
    beside = model_of()
    beside.advance(X[PREVIOUS_ROWS - rows : PREVIOUS_ROWS], y[PREVIOUS_ROWS - rows : PREVIOUS_ROWS])
    its, others = (experts(model)[STEADY.name]["atoms"] for model in (first, beside))
    assert its.shape == others.shape == (ATOMS, 2)
    assert not np.isin(its, others).all()
    assert "successions" in first._repr_html_()
    assert model_of(seed=10**30).seed == 10**30


@effort.every_value(kind=["regression", "classification"], way=["block", "rows"])
def test_an_error_at_a_takeover_or_a_return_leaves_no_trace(monkeypatch, kind, way):
    X, y = stream(kind, back=BACK)
    model, twin = at_the_event(kind), at_the_event(kind)
    honest, failures = Ensemble.advance, 0
    step = 45 if way == "block" else 1
    for start in range(EVENT, ROWS, step):
        X_part, y_part = X[start : start + step], y[start : start + step]
        # Whoever plays rows, at work, on trial or asleep, fails behind them: the first, the second, ...
        nth, failed = 0, True
        while failed:
            nth += 1
            left = nth

            def fails(self, *rows):
                nonlocal left
                left -= 1
                outcomes = honest(self, *rows)
                if left == 0:
                    raise MemoryError
                return outcomes

            with monkeypatch.context() as patched:
                patched.setattr(Ensemble, "advance", fails)
                try:
                    play(model, X_part, y_part, way)
                    failed = False
                except MemoryError:
                    failures += 1
                    assert_identical(model.state(), twin.state())
        play(twin, X_part, y_part, way)
    assert failures >= 2
    assert model.successions == 1
    assert at_work(model) == (0, ROWS)
    assert_identical(model.state(), twin.state())


def play(model, X, y, way):
    if way == "block":
        model.advance(X, y)
    else:
        model.learn_one(X[0], y[0])


@KINDS_AND_DELAYS
def test_new_features_and_classes_reach_the_one_asleep(kind, delay):
    model, X, y = previous(kind, delay)
    model.widen(1, samples=[[5.0]])
    if kind == "classification":
        y = [*y[:10], "another", *y[11:]]
    wide = np.column_stack([X, np.full(len(X), 5.0)])
    twin = AutoKONS.from_state(model.parameters(), model.state())
    expected = model.advance(wide, y).loss.tolist()
    assert at_work(model)[0] == 0  # it came back
    assert twin.advance(wide, y).loss.tolist() == expected
    assert np.isfinite(np.asarray(expected)).all()


def test_a_successor_knows_all_classes():
    X, y = stream("classification")
    y[3] = "rare"
    model = model_of("classification", experts=2)  # without a short memory, which would follow by itself
    model.advance(X, y)
    assert model.successions == 1
    assert len(model.classes) == 4
    shares = model.predict_proba_one(X[0])
    assert shares["rare"] < 0.2
    assert sum(shares.values()) == pytest.approx(1.0)


def quiet(name, rows=1800):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 3))
    t = np.arange(rows)
    y = {
        "no order": np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows),
        "noise only": rng.normal(size=rows),
        "walk": np.cumsum(rng.normal(size=rows)),
        "seasonal": 10.0 * np.sin(t / 24.0 * 2.0 * np.pi) + X[:, 0] + rng.normal(size=rows),
        "nights of nothing": np.maximum(np.sin(t / 400.0 * 2.0 * np.pi), 0.0) * (3.0 + X[:, 0]),
        "heavy tails": X[:, 0] + rng.standard_t(2.0, size=rows),
        "rare": np.where(X[:, 0] > 2.3, 10.0, 0.0),
    }
    return X, y[name]


@pytest.mark.parametrize(
    "name",
    effort.some(
        ["no order", "noise only", "walk", "seasonal", "nights of nothing", "heavy tails", "rare"],
        *("walk", "nights of nothing", "heavy tails"),
    ),
)
def test_nobody_takes_over_on_a_quiet_stream(name):
    X, y = quiet(name)
    model = model_of()
    model.advance(X, y)
    assert model.successions == 0


def test_a_row_pays_for_a_32nd_of_a_trial():
    model = AutoKONS(max_atoms=8)
    X = np.random.default_rng(0).normal(size=(200, 2))
    model.advance(X, X[:, 0])
    assert model.state()["targets"][0]["drift"]["trial_budget"] == 256.0 + 192 / 32  # chunks of 192 rows


def test_nobody_takes_over_on_quiet_classes():
    X, y = quiet("no order")
    model = model_of("classification")
    model.advance(X, y > 1.0)
    assert model.successions == 0


def test_rows_without_weight_are_no_reason():
    X, y = stream()
    weights = (np.arange(ROWS) < EVENT).astype(float)
    model = model_of()
    model.advance(X, y, sample_weight=weights)
    assert model.successions == 0


def test_an_alarm_before_rows_without_weight():
    X, y = stream()
    weights = np.ones(ROWS)
    weights[1210:1280] = 0.0  # the later half of the chunk that the event is in
    y[1153:1210] = [1e3] * 57
    model = model_of()
    assert np.isfinite(model.advance(X, y, sample_weight=weights).prediction).all()


def test_trials_are_bounded_on_a_stream_that_turns_all_the_time(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 2))
    y = rng.normal(size=2000) * 4.0 ** (np.arange(2000) // 200)  # always an alarm, and nobody does better
    played = 0
    honest = Ensemble.advance

    def counted(self, rows, known, waiting, count):
        nonlocal played
        played += count
        return honest(self, rows, known, waiting, count)

    monkeypatch.setattr(Ensemble, "advance", counted)
    model = model_of()
    model.advance(X, y)
    assert model.successions == 0
    # What was played besides the rows themselves are trials.
    assert 0 < played - 2000 <= 256 + 2000 / 32


def forgeries():
    """Ways of changing a state that would lead outside an array, or to nothing."""
    yield lambda s: s.__setitem__("previous", 3)
    yield lambda s: s.__setitem__("previous", {})
    yield lambda s: s.pop("trial_budget")
    yield lambda s: s.__setitem__("trial_budget", np.nan)
    yield lambda s: s.__setitem__("number", -1)
    yield lambda s: s.__setitem__("replayed_at", s["current"]["rows"] + 1)
    yield lambda s: s.__setitem__("replayed_at", 0)
    yield lambda s: s.__setitem__("replaced_at", s["replayed_at"] + 1)
    yield lambda s: s["current"].__setitem__("rows", s["current"]["rows"] + 5000)
    yield lambda s: s["previous"].__setitem__("rows", 2)
    yield lambda s: s["previous"].__setitem__("outputs", 2)
    yield lambda s: s.__setitem__("more", 1)


@pytest.mark.parametrize("delay", [0, 3])
def test_a_forged_state_is_refused(delay):
    model = previous(delay=delay)[0]
    for forge in forgeries():
        state = model.state()
        forge(state["targets"][0]["drift"])
        with pytest.raises(FileError):
            AutoKONS.from_state(model.parameters(), state)


def test_one_of_another_stream_is_refused_as_the_one_asleep():
    model = previous()[0]
    X, y = stream()
    other = model_of()
    other.advance(np.column_stack([X, X]), y)
    state = model.state()
    state["targets"][0]["drift"]["previous"] = other.state()["targets"][0]["drift"]["current"]
    with pytest.raises(FileError, match="other features"):
        AutoKONS.from_state(model.parameters(), state)
