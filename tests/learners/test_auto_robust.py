"""AutoKONS on streams that turn nasty: always numbers, always in range, and well again after so many rows."""

import copy
import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.learners.auto import AutoKONS

# An event comes at the end of a chunk of 64 rows and some rows more, as it would.
EVENT, ROWS = 1230, 1800
WINDOW = 100
ATOMS = 60


def smooth(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(rows, 3))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1], 0.1 * rng.normal(size=rows)


@functools.cache
def begun(rows):
    """A model that has learned the smooth stream so far, and its trace."""
    X, f, noise = smooth()
    model = AutoKONS(max_atoms=ATOMS)
    return model, model.advance(X[:rows], (f + noise)[:rows])


def played(X, y, task="regression", **arguments):
    """The trace of a new model. What many streams begin with is learned once, and copied."""
    X_smooth, f, noise = smooth()
    for rows in (EVENT, EVENT - 50):
        alike = len(y) == ROWS and not arguments and np.array_equal(X[:rows], X_smooth[:rows])
        if alike and np.array_equal(y[:rows], (f + noise)[:rows]):
            model, before = begun(rows)
            rest = copy.deepcopy(model).advance(X[rows:], y[rows:])
            trace = type(rest).concatenate([before, rest])
            break
    else:
        trace = AutoKONS(task, max_atoms=ATOMS).advance(X, y, **arguments)
    assert_sane(trace, y, task, arguments.get("sample_weight"))
    return trace


def assert_sane(trace, y, task="regression", weights=None):
    """Numbers, within the range of the targets before, plus a twentieth of it."""
    if task == "classification":
        assert all(label is not None for label in trace.prediction[1:])
        assert not np.isinf(trace.scores).any()
        return
    assert np.isfinite(trace.prediction).all()
    counted = np.ones(len(y), dtype=bool) if weights is None else np.asarray(weights) > 0.0
    low = np.minimum.accumulate(np.where(counted, y, np.inf))[:-1]
    high = np.maximum.accumulate(np.where(counted, y, -np.inf))[:-1]
    known = low <= high
    # Halves: the range of numbers near the largest is none.
    room = 0.1 * (0.5 * high[known] - 0.5 * low[known])
    room += 1e-9 * np.maximum(abs(low[known]), abs(high[known])) + 1e-300
    assert (trace.prediction[1:][known] >= low[known] - room).all()
    assert (trace.prediction[1:][known] <= high[known] + room).all()


def recovery(X, y, event=EVENT, task="regression", times=2.0):
    """Rows after the event until the next hundred cost at most twice what they cost a fresh model."""
    whole, fresh = played(X, y, task), played(X[event:], y[event:], task)
    errors = np.asarray(whole.prediction != y if task == "classification" else whole.loss, dtype=float)
    others = np.asarray(
        fresh.prediction != y[event:] if task == "classification" else fresh.loss, dtype=float
    )
    for age in range(1, len(y) - event - WINDOW):
        its = others[age : age + WINDOW].mean()
        if errors[event + age : event + age + WINDOW].mean() <= times * its + 1e-12:
            return age
    return len(y)


def jumped(change):
    X, f, noise = smooth()
    return X, np.where(np.arange(ROWS) < EVENT, f + noise, change(f + noise))


JUMPS = {
    "x1000": lambda y: 1e3 * y,
    "/1000": lambda y: 1e-3 * y,
    "+1e6": lambda y: y + 1e6,
    "-1e6": lambda y: y - 1e6,
    "constant": lambda y: np.full(len(y), 7.0),
    "turned over": lambda y: -y,
}


@pytest.mark.parametrize("change", effort.some(JUMPS, "/1000", "turned over"))
def test_targets_that_jump_are_followed(change):
    assert recovery(*jumped(JUMPS[change])) <= 256


def test_constant_targets_that_begin_to_move_are_followed():
    X, f, noise = smooth()
    assert recovery(X, np.where(np.arange(ROWS) < EVENT, 7.0, f + noise)) <= 256


@pytest.mark.parametrize("size", effort.some([1.0, 1e-3, 1e3], 1e3))
def test_a_constant_feature_that_begins_to_move_is_seen(size):
    X, _, noise = smooth()
    X[:EVENT, 0] = 0.0
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + noise
    assert recovery(X * [size, 1.0, 1.0], y) <= 400


def test_features_that_move_away_are_followed():
    X, _, noise = smooth()
    X[EVENT:] += 5.0
    assert recovery(X, np.sin(3.0 * X[:, 0]) + X[:, 1] + noise) <= 400


@functools.cache
def smooth_and_clean(rows=ROWS):
    """What is predicted of the stream that others spoil."""
    X, f, noise = smooth(rows)
    return played(X, f + noise)


def unharmed(X, y, times):
    """The rows after the event cost at most so many times what they would have without the trouble."""
    return played(X, y).loss[EVENT:].mean() <= times * smooth_and_clean().loss[EVENT:].mean()


@pytest.mark.parametrize("size", effort.some([1e2, 1e4, 1e8, 1e100], 1e4, 1e100))
def test_a_burst_of_wild_targets_leaves_little(size):
    X, f, noise = smooth()
    wild = f + noise
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=50)
    wild[EVENT - 50 : EVENT] *= size * signs
    assert unharmed(X, wild, times=20.0)


@pytest.mark.parametrize("at", effort.some([0, 5, 63, EVENT - 1], 5, EVENT - 1))
def test_one_wild_target_leaves_next_to_nothing(at):
    X, f, noise = smooth()
    wild = f + noise
    wild[at] = 1e6
    assert unharmed(X, wild, times=1.5)


def test_a_burst_of_wild_features_leaves_next_to_nothing():
    X, f, noise = smooth()
    far = X.copy()
    far[EVENT - 50 : EVENT] *= 1e6
    assert unharmed(far, f + noise, times=2.0)


@pytest.mark.parametrize("frozen", effort.some([[0], [0, 1, 2]], [0, 1, 2]))
def test_features_that_freeze_and_come_back(frozen):
    X, f, noise = smooth()
    y = f + noise
    stuck = X.copy()
    stuck[EVENT - 700 : EVENT, frozen] = stuck[EVENT - 700, frozen]
    assert recovery(stuck, y) <= 64


@effort.every_value(task=["regression", "classification"], delay=[0, 3], starts=[False, True])
def test_rows_without_weight_leave_nothing_whatever_they_are(task, delay, starts):
    """Bit for bit, in blocks and in single rows between them; with ``starts`` the very first ones, too."""
    rows, rng = 600, np.random.default_rng(1)
    X, f, noise = smooth(rows)
    y, unknown = f + noise, np.full(100, np.nan)
    others = 1e9 * rng.normal(size=rows)
    if task == "classification":
        y, unknown = np.digitize(y, [-0.5, 0.5]), [None] * 100
        others = rng.permutation(y)
        y[:3] = others[:3] = [0, 1, 2]  # classes are numbered as they come, whatever they weigh
    weights = np.where((np.arange(rows) // 30 % 2 == 0) != starts, 1.0, 0.0)
    said = []
    for wild in (y, others):
        targets = np.where(weights > 0.0, y, wild)
        model = AutoKONS(task, max_atoms=ATOMS, delay=delay)
        ask = model.predict if task == "regression" else model.decision_function
        for start in range(0, rows, 100):
            part = slice(start, start + 100)
            model.advance(X[part], targets[part], sample_weight=weights[part])
            said.append(ask(X[part], recent_targets=model.following().before(unknown)))
            for row in range(start, start + 5):
                if weights[row]:
                    model.learn_one(X[row], targets[row])
            said.append(ask(X[part], recent_targets=True))
    half = len(said) // 2
    for one, other in zip(said[:half], said[half:], strict=True):
        np.testing.assert_array_equal(one, other)


def sectors(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.2 * rng.normal(size=rows)
    return X, np.floor((angle + np.pi) / (2.0 * np.pi) * 3).astype(int) % 3


def test_a_class_that_was_away_is_known_when_it_comes_back():
    X, y = sectors(3700)
    shown = (y != 2) | (np.arange(3700) < 800) | (np.arange(3700) >= 3100)
    event = int(shown[:3100].sum())
    assert recovery(X[shown], y[shown], event, "classification") <= 64


def test_a_class_that_comes_late_is_learned():
    X, y = sectors(2000)
    shown = (y != 2) | (np.arange(2000) >= 1400)
    assert recovery(X[shown], y[shown], int(shown[:1400].sum()), "classification") <= 128


def test_labels_that_swap_are_followed():
    X, y = sectors(ROWS)
    assert recovery(X, np.where(np.arange(ROWS) < EVENT, y, (y + 1) % 3), task="classification") <= 400


@pytest.mark.parametrize("size", effort.some([1e-12, 1e12, 1e-100, 1e100], 1e-12))
def test_units_do_not_matter(size):
    X, f, noise = smooth(800)
    plain, scaled = smooth_and_clean(800), played(size * X, size * (f + noise))
    np.testing.assert_allclose(scaled.prediction / size, plain.prediction, rtol=1e-3, atol=1e-3)


def test_a_takeover_is_the_same_however_rows_are_cut_and_from_a_saved_state():
    X, y = jumped(lambda y: 1e3 * y)
    whole, pieces = (copy.deepcopy(begun(EVENT)[0]) for _ in range(2))
    trace = whole.advance(X[EVENT:], y[EVENT:])
    parts = []
    for start in range(EVENT, ROWS, 110):
        parts.append(pieces.advance(X[start : start + 110], y[start : start + 110]))
        pieces = AutoKONS.from_state(pieces.parameters(), pieces.state())
    together = np.concatenate([part.prediction for part in parts])
    np.testing.assert_allclose(together, trace.prediction, rtol=1e-5, atol=1e-3)
    assert whole.successions == pieces.successions == 1


def test_targets_in_delay_are_not_looked_at():
    """What comes within the delay changes no prediction, also around a jump."""
    X, y = jumped(lambda y: y + 1e6)
    delay, cut = 40, EVENT + 150
    other = y.copy()
    other[cut:] = -1e9
    model = AutoKONS(max_atoms=ATOMS, delay=delay)
    model.advance(X[:EVENT], y[:EVENT])
    a, b = (copy.deepcopy(model).advance(X[EVENT:], t[EVENT:]).prediction for t in (y, other))
    known = cut - EVENT + delay + 1
    np.testing.assert_array_equal(a[:known], b[:known])
    assert not np.array_equal(a, b)


# --- anything at all

kinds = st.sampled_from(["smooth", "constant", "jump", "repeated", "wild", "zero weights", "frozen", "walk"])
exponents = st.integers(-120, 120)


@st.composite
def nasty_streams(draw):
    """Stretches of different kinds, each in units of its own."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width = draw(st.sampled_from([1, 2, 7]))
    X, y, weights = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        kind, rows = draw(kinds), draw(st.sampled_from([1, 7, 64, 130, 200]))
        part = rng.normal(size=(rows, width))
        target, weight = part.sum(axis=1) + rng.normal(size=rows), np.ones(rows)
        if kind == "constant":
            target[:] = target[0]
        elif kind == "jump":
            target += 1e6
        elif kind == "repeated":
            part[:], target[:] = part[0], target[0]
        elif kind == "wild":
            part, target = part / rng.uniform(1e-9, 1.0, part.shape), target / rng.uniform(1e-9, 1.0, rows)
        elif kind == "zero weights":
            weight[:] = 0.0
        elif kind == "frozen":
            part[:, 0] = part[0, 0]
        elif kind == "walk":
            part = part.cumsum(axis=0)
        scale = 10.0 ** draw(exponents)
        X.append(part * 10.0 ** draw(exponents))
        y.append(target * scale)
        weights.append(weight)
    return np.concatenate(X), np.concatenate(y), np.concatenate(weights)


@effort.examples(10)
@given(nasty_streams(), st.sampled_from([0, 3]))
def test_whatever_comes_predictions_are_numbers_in_range(stream, delay):
    X, y, weights = stream
    model = AutoKONS(max_atoms=16, delay=delay)
    trace = model.advance(X, y, sample_weight=weights)
    if not delay:
        assert_sane(trace, y, weights=weights)
    assert np.isfinite(trace.prediction).all()
    assert np.isfinite(model.predict(X[:5])).all()
    assert np.isfinite(model.predict_one(X[0]))


@effort.examples(5)
@given(nasty_streams(), st.integers(2, 5))
def test_whatever_comes_probabilities_are_numbers(stream, count):
    X, y, weights = stream
    labels = np.argsort(np.argsort(y)) * count // len(y)
    model = AutoKONS("classification", max_atoms=16)
    trace = model.advance(X, labels, sample_weight=weights)
    assert not np.isinf(trace.scores).any()
    shares = model.predict_proba(X[:5])
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
