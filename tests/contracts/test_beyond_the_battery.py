"""What every learner promises beyond what the battery of kons.checks asks of it.

The battery (tests/checks/test_battery_on_ours.py) holds every learner to its blocks, copies, files, errors
and the caller's arrays. Here is what it leaves out: all columns of a trace, calls of every kind in turn with
saves in between, weights, types of numbers, and streams of several panels.
"""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from contracts.learners import LEARNERS, assert_identical, overlap, stream
from kons import KONS, KORS, EmbeddedKONS, Gaussian, Laplace, Logistic, SketchedKONS, Squared, Trace
from kons.files import from_bytes, to_bytes
from kons.policies import Dependence, Leverage

ROWS = 150
X, Y = stream(ROWS)
QUERIES = stream(9, seed=5)[0]
# Regularization 0.1 and k(x,x) of order 1: 1e-14*k/alpha a row, a factor 1000 for the path.
TOLERANCE = 1e-10

learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


# ---- blocks


def assert_equivalent(trace, expected):
    """Equal decisions, and all else within tolerance."""
    np.testing.assert_array_equal(trace.kept, expected.kept)
    np.testing.assert_array_equal(trace.size, expected.size)
    assert trace.columns.keys() == expected.columns.keys()
    for name, column in expected.columns.items():
        assert_close(trace.columns[name], column, name)


def assert_close(found, expected, name=""):
    """Labels equal, numbers within tolerance."""
    if expected.dtype == object:
        assert list(found) == list(expected), name
    else:
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def in_calls(learner, cuts, block_sizes):
    edges = [0, *cuts, ROWS]
    parts = [
        learner.advance(X[a:b], Y[a:b], block_size=size)
        for a, b, size in zip(edges, edges[1:], block_sizes, strict=False)
    ]
    assert learner.rows_seen == ROWS
    return Trace.concatenate(parts)


@learners
def test_cuts_change_no_column_and_no_row_s_prediction(make):
    expected, learner = make().advance(X, Y), make()
    assert_equivalent(in_calls(make(), [1, 8, 70], [1, None, 7, 64]), expected)
    predictions = []
    for x, y in zip(X, Y, strict=True):
        predictions.append(learner.predict_one(x))
        learner.learn_one(x, y)
    assert_close(predictions, expected.prediction)
    assert learner.size == expected.size[-1]


@pytest.mark.soak
@learners
@effort.examples(8)
@given(
    cuts=st.lists(st.integers(1, ROWS - 1), max_size=5, unique=True),
    block_sizes=st.lists(st.one_of(st.none(), st.integers(1, 80)), min_size=6, max_size=6),
)
def test_random_cuts_across_calls(make, cuts, block_sizes):
    assert_equivalent(in_calls(make(), sorted(cuts), block_sizes), make().advance(X, Y))


@pytest.mark.parametrize("name", ["KONS, gradient", "SketchedKONS, shared"])
def test_more_rows_than_a_block_and_a_panel(name):
    X_long, y_long = stream(700, seed=2)
    expected = LEARNERS[name]().advance(X_long, y_long)
    assert_equivalent(LEARNERS[name]().advance(X_long, y_long, block_size=100), expected)


# ---- the caller's arrays


@learners
def test_weights_are_unchanged_and_not_kept(make):
    learner, expected = make(), make()
    weights = np.ones(60)
    learner.advance(X[:60], Y[:60], sample_weight=weights)
    assert_identical(weights, np.ones(60))
    weights[:] = -9.0
    expected.advance(X[:60], Y[:60])
    traces = [one.advance(X[60:90], Y[60:90]).columns for one in (learner, expected)]
    assert_identical(*traces)
    assert_identical(learner.state(), expected.state())


FORMS = {
    "Fortran order": np.asfortranarray,
    "reversed twice": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "lists": lambda a: a.tolist(),
    "long double": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
}
# The border is one for all that are made alike; the battery asks each for read-only and strided arrays.
BORDERS = ["KONS, gradient", "SketchedKONS, shared", "EmbeddedKONS, gradient", "Classifier", "Scaled"]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", BORDERS)
def test_the_same_numbers_in_any_form(name, form):
    learner, expected = LEARNERS[name](), LEARNERS[name]()
    trace = learner.advance(form(X[:40]), form(Y[:40]), sample_weight=form(np.ones(40)))
    assert_identical(trace.columns, expected.advance(X[:40], Y[:40]).columns)
    assert_identical(learner.predict(form(X)), expected.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint16, bool])
def test_other_numbers_are_taken_at_their_value(dtype):
    make = LEARNERS["KONS, gradient"]
    low = np.abs(np.round(X[:40])).astype(dtype)
    labels = (Y[:40] > 0).astype(dtype)
    trace = make().advance(low, labels)
    expected = make().advance(low.astype(np.float64), labels.astype(np.float64))
    assert_identical(trace.columns, expected.columns)


@pytest.mark.parametrize("name", ["KONS, gradient", "EmbeddedKONS, gradient"])
def test_a_column_of_targets_comes_back_as_one(name):
    learner, plain = LEARNERS[name](), LEARNERS[name]()
    trace, expected = learner.advance(X[:40], Y[:40].reshape(-1, 1)), plain.advance(X[:40], Y[:40])
    assert trace.prediction.shape == learner.predict(X[:40]).shape == (40, 1)
    assert expected.prediction.shape == plain.predict(X[:40]).shape == (40,)
    for column, values in expected.columns.items():
        np.testing.assert_array_equal(trace[column].reshape(40), values)


# ---- saved in between


def falling(t):
    return 1 / t**0.5


#: What the learners' files ask for by name; "function" is the falling step size, first a lambda.
CALLABLES = {"overlap": overlap, "function": falling, "falling": falling}


def by_state(learner):
    return type(learner).from_state(learner.parameters(), learner.state())


def by_file(learner):
    return from_bytes(to_bytes(learner), CALLABLES)


def by_pickle(learner):
    return pickle.loads(pickle.dumps(learner))


WAYS = {"state": by_state, "file": by_file, "deepcopy": copy.deepcopy, "pickle": by_pickle}


def ways_for(name):
    return [way for way in WAYS if way != "pickle" or "falling" not in name]  # no pickle of a lambda


def perform(learner, call, at):
    """One call from row ``at`` on; what it returned, and where the next one starts."""
    verb, size, block_size = call
    if verb == "advance":
        rows = slice(at, at + size)
        return learner.advance(X[rows], Y[rows], block_size=block_size).columns, rows.stop
    if verb == "learn_one":
        learner.learn_one(X[at], Y[at])
        return None, at + 1
    if verb == "predict_one":
        return learner.predict_one(X[at]), at
    if verb == "predict_one of a list":
        return learner.predict_one(X[at].tolist()), at
    if not getattr(learner, "classes", ["numbers"]):
        return None, at  # a classifier without classes has nothing to predict
    return learner.predict(QUERIES), at


def assert_goes_on(name, calls, saves):
    """A learner that is saved before the calls at these places, and one that is not, do the same."""
    whole, interrupted, at = LEARNERS[name](), LEARNERS[name](), 0
    for i, call in enumerate(calls):
        if i in saves:
            interrupted = WAYS[saves[i]](interrupted)
            assert_identical(interrupted.state(), whole.state())
        expected, after = perform(whole, call, at)
        found, _ = perform(interrupted, call, at)
        assert_identical(found, expected)
        at = after if after < ROWS - 70 else 0  # the stream comes round again
    assert_identical(interrupted.state(), whole.state())
    assert repr(interrupted).replace("falling", "<lambda>") == repr(whole)


# Between a prediction and what is learned of the same row, between rows and blocks, and twice in a row.
CALLS = [
    ("predict_one", 0, None),
    ("learn_one", 0, None),
    ("advance", 40, 7),
    ("predict_one", 0, None),
    ("learn_one", 0, None),
    ("predict_one of a list", 0, None),
    ("learn_one", 0, None),
    ("predict", 0, None),
    ("advance", 60, None),
    ("advance", 1, 1),
]


@pytest.mark.parametrize("name", LEARNERS)
def test_any_calls_go_on_bit_for_bit(name):
    ways = ways_for(name)
    assert_goes_on(name, CALLS, {i: ways[i % len(ways)] for i in range(len(CALLS))})


VERBS = ["advance", "advance", "learn_one", "learn_one", "predict_one", "predict_one of a list", "predict"]
ANY_CALLS = st.lists(
    st.tuples(st.sampled_from(VERBS), st.integers(1, 70), st.one_of(st.none(), st.integers(1, 40))),
    min_size=1,
    max_size=10,
)


@pytest.mark.soak
@pytest.mark.parametrize("name", LEARNERS)
@effort.examples(8)
@given(calls=ANY_CALLS, saved_at=st.lists(st.integers(0, 9), min_size=1, max_size=3), data=st.data())
def test_random_calls_go_on_bit_for_bit(name, calls, saved_at, data):
    way = st.sampled_from(ways_for(name))
    assert_goes_on(name, calls, {i: data.draw(way) for i in saved_at})


LONG = {
    "KONS, several panels": (lambda: KONS(Gaussian(0.5), Squared(), regularization=0.1), 700, 300),
    "SketchedKONS, several panels": (
        lambda: SketchedKONS(Gaussian(0.5), Squared(), policy=Leverage(3.0, floor=0.5), seed=2),
        800,
        515,
    ),
    "EmbeddedKONS, several panels": (
        lambda: EmbeddedKONS(Gaussian(0.3), Squared(), regularization=0.1, max_atoms=400),
        640,
        333,
    ),
    "EmbeddedKONS, several fresh inverses": (
        lambda: EmbeddedKONS(Laplace(), Logistic(), second_order="hessian", max_atoms=12),
        2300,
        1037,
    ),
    "EmbeddedKONS, replacing all the time": (
        lambda: EmbeddedKONS(
            Gaussian(0.5), Squared(), policy=Dependence(when_full="replace"), max_atoms=8, forgetting=0.98
        ),
        700,
        345,
    ),
}


@pytest.mark.parametrize(("make", "rows", "cut"), LONG.values(), ids=LONG)
def test_long_streams_go_on_bit_for_bit(make, rows, cut):
    points, targets = stream(rows, seed=3)
    whole = make()
    whole.advance(points[:cut], targets[:cut])
    twin = by_file(whole)
    expected = whole.advance(points[cut:], targets[cut:])
    assert_identical(twin.advance(points[cut:], targets[cut:]).columns, expected.columns)
    assert_identical(twin.state(), whole.state())


@pytest.mark.parametrize("rows", [1, 300])
def test_kors_goes_on_bit_for_bit(rows):
    points, _ = stream(500, seed=3)
    whole = KORS(Gaussian(0.7), regularization=0.1, policy=Leverage(2.0), seed=4)
    whole.advance(points[:rows])
    twin = by_file(whole)
    assert_identical(twin.advance(points[rows:]).columns, whole.advance(points[rows:]).columns)
    assert_identical(twin.transform(QUERIES), whole.transform(QUERIES))
    assert_identical(twin.state(), whole.state())


def test_whether_a_row_was_predicted_before_does_not_matter():
    """predict_one keeps what it found of a row; a learner that was saved in between does not have it."""
    looked, plain = (EmbeddedKONS(Gaussian(0.7), Squared(), max_atoms=30) for _ in range(2))
    for x, y in zip(X, Y, strict=True):
        looked.predict_one(x)
        looked.learn_one(x, y)
        plain.learn_one(x.tolist(), y)
    assert_identical(looked.state(), plain.state())


@learners
def test_a_state_is_nobody_s_memory(make):
    """Neither the learner that handed it out nor one that was made of it changes it, nor each other."""
    learner = make()
    learner.advance(X[:60], Y[:60])
    state = learner.state()
    before = copy.deepcopy(state)
    repr(learner), learner._repr_html_()
    twin = type(learner).from_state(learner.parameters(), state)
    twin.advance(X[60:90], Y[60:90])
    assert_identical(learner.state(), before)
    learner.advance(X[60:90], -Y[60:90])
    assert_identical(state, before)
