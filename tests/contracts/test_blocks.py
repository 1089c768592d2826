"""What every learner promises about blocks, repetition, and the caller's arrays."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.learners import LEARNERS, assert_identical, stream
from kons import Trace

ROWS = 150
X, Y = stream(ROWS)
# Regularization 0.1 and k(x,x) of order 1: 1e-14*k/alpha a row, a factor 1000 for the path.
TOLERANCE = 1e-10

learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
picklable = pytest.mark.parametrize(
    "make", [make for name, make in LEARNERS.items() if "falling" not in name]
)


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


def goes_on_like(learner, expected):
    """The next rows give the same bits."""
    X_next, y_next = stream(40, seed=1)
    traces = [one.advance(X_next, y_next).columns for one in (learner, expected)]
    assert_identical(*traces)
    assert_identical(learner.state(), expected.state())
    assert_identical(learner.predict(X_next), expected.predict(X_next))


@learners
def test_blocks_give_the_same_decisions_and_predictions(make):
    expected = make().advance(X, Y)
    for block_size in (1, 7, 64, ROWS):
        assert_equivalent(make().advance(X, Y, block_size=block_size), expected)


@learners
def test_the_row_loop_gives_the_same_predictions(make):
    expected, learner = make().advance(X, Y), make()
    predictions = []
    for x, y in zip(X, Y, strict=True):
        predictions.append(learner.predict_one(x))
        learner.learn_one(x, y)
    assert_close(predictions, expected.prediction)
    assert learner.size == expected.size[-1]


@learners
@settings(max_examples=8, deadline=None)
@given(
    cuts=st.lists(st.integers(1, ROWS - 1), max_size=5, unique=True),
    block_sizes=st.lists(st.one_of(st.none(), st.integers(1, 80)), min_size=6, max_size=6),
)
def test_random_cuts_across_calls(make, cuts, block_sizes):
    edges = [0, *sorted(cuts), ROWS]
    learner, traces = make(), []
    for a, b, block_size in zip(edges, edges[1:], block_sizes, strict=False):
        traces.append(learner.advance(X[a:b], Y[a:b], block_size=block_size))
    assert_equivalent(Trace.concatenate(traces), make().advance(X, Y))
    assert learner.rows_seen == ROWS


def test_more_rows_than_a_block_and_a_panel():
    X_long, y_long = stream(700, seed=2)
    for make in (LEARNERS["KONS, gradient"], LEARNERS["SketchedKONS, shared"]):
        expected = make().advance(X_long, y_long)
        assert_equivalent(make().advance(X_long, y_long, block_size=100), expected)


@learners
def test_the_same_calls_repeat_bit_for_bit(make):
    one, other = make(), make()
    for part in (slice(0, 60), slice(60, 61), slice(61, ROWS)):
        traces = [learner.advance(X[part], Y[part], block_size=50) for learner in (one, other)]
        assert_identical(traces[0].columns, traces[1].columns)
    for learner in (one, other):
        learner.learn_one(X[0], Y[0])
    goes_on_like(one, other)


# ---- the caller's arrays


@learners
def test_inputs_are_unchanged_and_not_kept(make):
    learner, expected = make(), make()
    X_mine, y_mine, c_mine = X.copy(), Y.copy(), np.ones(ROWS)
    learner.advance(X_mine, y_mine, sample_weight=c_mine)
    learner.predict(X_mine)
    learner.learn_one(X_mine[0], y_mine[0])
    for mine, original in ((X_mine, X), (y_mine, Y), (c_mine, np.ones(ROWS))):
        assert_identical(mine, original)
    expected.advance(X, Y)
    expected.learn_one(X[0], Y[0])
    X_mine[:], y_mine[:], c_mine[:] = -9.0, -9.0, -9.0
    goes_on_like(learner, expected)


@learners
def test_a_row_handed_over_is_not_kept(make):
    learner, expected, row = make(), make(), np.empty(3)
    for x, y in zip(X[:20], Y[:20], strict=True):
        row[:] = x
        learner.learn_one(row, y)  # the same memory over and over
        expected.learn_one(x, y)
    goes_on_like(learner, expected)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    wide = np.full((2 * len(array), *[2 * n for n in array.shape[1:]]), np.nan)
    view = wide[::2, ::2] if array.ndim == 2 else wide[::2]
    view[...] = array
    return view


FORMS = {
    "read-only": read_only,
    "not contiguous": strided,
    "Fortran order": np.asfortranarray,
    "reversed twice": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "lists": lambda a: a.tolist(),
    "long double": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
}


@learners
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_same_numbers_in_any_form(make, form):
    learner, expected = make(), make()
    if learner.kernel.accepts == "objects" and form not in (read_only, strided):
        pytest.skip("a row is then the object that was handed over, of its own type")
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


def test_a_column_of_targets_is_a_vector_of_them():
    make = LEARNERS["KONS, gradient"]
    trace = make().advance(X[:40], Y[:40].reshape(-1, 1))
    assert_identical(trace.columns, make().advance(X[:40], Y[:40]).columns)


# ---- copies


@learners
def test_a_deep_copy_goes_on_alike_and_alone(make):
    learner = make()
    learner.advance(X[:100], Y[:100])
    twin, alone = copy.deepcopy(learner), copy.deepcopy(learner)
    goes_on_like(learner, twin)
    untouched = make()
    untouched.advance(X[:100], Y[:100])
    assert_identical(alone.state(), untouched.state())


@picklable
def test_a_pickle_goes_on_alike(make):
    learner = make()
    learner.advance(X, Y)
    twin = pickle.loads(pickle.dumps(learner))
    assert_identical(twin.state(), learner.state())
    assert repr(twin) == repr(learner)
    goes_on_like(learner, twin)


@learners
def test_the_state_is_a_copy(make):
    learner = make()
    learner.advance(X, Y)
    before = learner.state()
    kept = copy.deepcopy(before)
    learner.advance(X[:20], -Y[:20])
    assert_identical(before, kept)


@learners
def test_predict_changes_nothing(make):
    learner = make()
    learner.advance(X, Y)
    before = copy.deepcopy(learner.state())
    first = learner.predict(X)
    learner.predict_one(X[0])
    repr(learner), learner._repr_html_()
    assert_identical(learner.predict(X), first)
    assert_identical(learner.state(), before)
