"""AutoKONS one row at a time: the same as blocks, wherever they meet, and no half steps."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import effort
from contracts.learners import assert_identical
from kons.errors import FileError, InputError, TargetError
from kons.files import from_bytes, to_bytes
from kons.kernels import Gaussian, Laplace, Linear, Matern
from kons.learners.auto import AutoKONS
from kons.learners.auto.pool import ExpertPool

ROWS = 1150  # past the decision at 1024, after which experts are retired and others come
ATOMS = 30


def stream(kind="regression", rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 500, rows), rng.normal(size=rows), rng.exponential(size=rows) ** 3])
    y = 1e3 * np.sin(X[:, 0] / 80) + 300 * np.sin(np.arange(rows) / 5) + rng.normal(size=rows)
    if kind == "regression":
        return X, y.tolist()
    edges = {"two": [0.0], "three": [-300.0, 300.0], "late": [-300.0, 300.0]}[kind]
    codes = np.digitize(y, edges)
    if kind == "late":
        codes[:333] = np.minimum(codes[:333], 1)
    return X, [f"class {code}" for code in codes]


def model_of(kind, **parameters):
    return AutoKONS("regression" if kind == "regression" else "classification", max_atoms=ATOMS, **parameters)


def one_by_one(model, X, y, *, ahead=True, other=None):
    """Learn rows; what was predicted of each, if it was asked for."""
    said = []
    for x, target in zip(X, y, strict=True):
        if ahead:
            said.append(scores_of(model, x))
        if other is not None:
            model.predict_one(other)
        model.learn_one(x, target)
    return said


def scores_of(model, x):
    if model.task == "regression":
        return model.predict_one(x)
    return model.predict_proba_one(x)


def same_decisions(model, whole):
    assert model.rows_seen == whole.rows_seen
    assert model.size == whole.size
    assert list(model.shares) == list(whole.shares)
    np.testing.assert_allclose(list(model.shares.values()), list(whole.shares.values()), atol=1e-4)
    np.testing.assert_allclose(model.relevances, whole.relevances, rtol=1e-3)


def same_predictions(model, whole, X):
    if whole.task == "regression":
        np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-6, atol=1e-3)
    else:
        np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "kind", effort.some(["regression", "two", "three", "late"], "regression", "two", "late")
)
def test_rows_one_by_one_are_a_block(kind):
    rows = ROWS if kind != "two" else effort.amount(540, ROWS)
    X, y = stream(kind, rows)
    whole, model = model_of(kind), model_of(kind)
    trace = whole.advance(X, y)
    said = one_by_one(model, X, y)
    same_decisions(model, whole)
    same_predictions(model, whole, X[:50])
    if kind == "regression":
        np.testing.assert_allclose(said, trace.prediction, rtol=1e-6, atol=1e-3)
        return
    best = [max(shares, key=shares.get) if shares else None for shares in said]
    assert best == trace.prediction.tolist()
    shares = whole.probabilities(trace.scores)
    for i in range(400, rows):
        assert list(said[i].values()) == pytest.approx(shares[i].tolist(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", ["regression", "three"])
def test_predictions_in_between_change_no_bit(kind):
    X, y = stream(kind, 400)
    silent, asked, distracted = (model_of(kind) for _ in range(3))
    one_by_one(silent, X, y, ahead=False)
    one_by_one(asked, X, y)
    one_by_one(distracted, X, y, other=X[7])
    assert_identical(asked.state(), silent.state())
    assert_identical(distracted.state(), silent.state())


@effort.every_value(
    kind=["regression", "three"],
    parameters=[
        {"delay": 3},
        {"kernel": Matern("auto")},
        {"kernel": Gaussian(0.8)},
        {"kernel": Laplace("auto")},
        {"kernel": Linear()},
        {"experts": 1},
        {"experts": 15},
        {"bandwidth": 0.7, "regularization": 0.5},
    ],
)
def test_whatever_is_given(kind, parameters):
    X, y = stream(kind, effort.amount(270, 700))  # past the decision at 256, or 512
    whole, model = model_of(kind, **parameters), model_of(kind, **parameters)
    trace = whole.advance(X, y)
    said = one_by_one(model, X, y)
    same_decisions(model, whole)
    same_predictions(model, whole, X[:50])
    if kind == "regression":
        np.testing.assert_allclose(said, trace.prediction, rtol=1e-6, atol=1e-3)


@effort.every_value(kind=["regression", "late"], delay=effort.some([0, 3, 90], 0, 3))
def test_rows_and_blocks_in_turn(kind, delay):
    rows = effort.amount(600, ROWS)  # past the decision at 512
    X, y = stream(kind, rows)
    weights = np.where(np.arange(rows) % 3 == 0, np.arange(rows) % 7 / 3, 1.0)
    weights[np.arange(rows) % 20 >= 10] = 1.0
    whole, model = (model_of(kind, delay=delay) for _ in range(2))
    whole.advance(X, y, sample_weight=weights)
    for start in range(0, rows, 20):
        part, rest = slice(start, start + 10), slice(start + 10, start + 20)
        model.advance(X[part], y[part], sample_weight=weights[part])
        one_by_one(model, X[rest], y[rest])
        if start % 60 == 0:
            model.predict(X[:3])
            assert len(model.shares) > 1
    same_decisions(model, whole)
    same_predictions(model, whole, X[:50])


@effort.every_value(kind=["regression", "three"], delay=[0, 3])
def test_goes_on_bit_for_bit_from_the_middle_of_single_rows(kind, delay):
    X, y = stream(kind, effort.amount(480, 700))
    model, unseen = model_of(kind, delay=delay), model_of(kind, delay=delay)
    for m in (model, unseen):
        m.advance(X[:300], y[:300])
        one_by_one(m, X[300:341], y[300:341])
    ahead = scores_of(model, X[341])
    twin = AutoKONS.from_state(model.parameters(), model.state())
    twins = [twin, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for m in twins:
        assert_identical(m.state(), model.state())
        assert scores_of(m, X[341]) == ahead
    for m in (model, unseen, *twins):
        one_by_one(m, X[341:], y[341:])
    for m in (unseen, *twins):
        assert_identical(m.state(), model.state())


@pytest.mark.parametrize("kind", ["regression", "three"])
def test_goes_on_while_all_rows_wait(kind):
    X, y = stream(kind, 90)
    model = model_of(kind, delay=30)
    one_by_one(model, X[:20], y[:20])
    twin = AutoKONS.from_state(model.parameters(), model.state())
    for m in (model, twin):
        one_by_one(m, X[20:], y[20:])
    assert_identical(twin.state(), model.state())


def test_a_prediction_of_one_row_changes_nothing():
    X, y = stream(rows=200)
    model = model_of("regression")
    for i in range(200):
        if i % 30 == 0:
            before = model.state()
            assert model.predict_one(X[i]) == model.predict_one(X[i].tolist())
            if i:
                assert model.predict(X[i : i + 1], recent_targets=True)[0] == pytest.approx(
                    model.predict_one(X[i]), rel=1e-9
                )
            assert_identical(model.state(), before)
        model.learn_one(X[i], y[i])


@pytest.mark.parametrize("kind", ["regression", "three"])
def test_a_row_that_is_refused_leaves_no_trace(kind):
    X, y = stream(kind, 200)
    model = model_of(kind)
    one_by_one(model, X[:150], y[:150])
    before = model.state()
    bad_targets = [None, float("nan"), [1.0, 2.0]] + (
        [1e200, 10**400, "high"] if kind == "regression" else []
    )
    for x, target in [
        ([1.0, np.inf, 2.0], y[0]),
        ([1.0, np.nan, 2.0], None),
        ([1.0, 2.0], y[0]),
        (["a", 1.0, 2.0], y[0]),
    ] + [(X[0], target) for target in bad_targets]:
        with pytest.raises((InputError, TargetError)):
            model.learn_one(x, target)
        assert_identical(model.state(), before)
    with pytest.raises(InputError):
        model.predict_one([np.inf, 1.0, 2.0])
    assert_identical(model.state(), before)


@effort.every_pair(rows=[127, 255], begins=["block", "row"], delay=[0, 3])
def test_an_error_at_the_end_of_a_chunk_leaves_no_trace(monkeypatch, rows, begins, delay):
    X, y = stream(rows=400)
    rows += delay  # chunks end with the rows that are learned
    model, whole = (model_of("regression", delay=delay) for _ in range(2))
    for m in (model, whole):
        if begins == "block":
            m.advance(X[: rows - 5], y[: rows - 5])
        one_by_one(m, X[m.rows_seen : rows], y[m.rows_seen : rows])
    ahead = model.predict_one(X[rows])
    honest = ExpertPool.end_chunk

    def fails(pool, *given, **named):
        honest(pool, *given, **named)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(ExpertPool, "end_chunk", fails)
        with pytest.raises(MemoryError):
            model.learn_one(X[rows], y[rows])
    assert model.rows_seen == rows
    assert model.predict_one(X[rows]) == ahead
    assert_identical(model.state(), whole.state())
    for m in (model, whole):
        one_by_one(m, X[rows:], y[rows:])
    assert_identical(model.state(), whole.state())


@pytest.mark.parametrize("late", [False, True])
def test_an_error_inside_a_chunk_leaves_no_trace_where_rows_go_as_blocks(monkeypatch, late):
    X, y = stream(rows=80)
    model = model_of("regression", kernel=Matern("auto"))  # which the loops of single rows do not know
    model.advance(X[:70], y[:70])
    model.ask(X[70], "late")
    before = model.state()
    honest = ExpertPool.advance

    def fails(pool, *rows):
        honest(pool, *rows)
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(ExpertPool, "advance", fails)
        with pytest.raises(MemoryError):
            model.tell("late", y[70]) if late else model.learn_one(X[71], y[71])
    assert_identical(model.state(), before)
    model.tell("late", y[70])


@effort.every_value(kind=["regression", "three"], delay=[0, 3])
def test_new_features_in_the_middle_of_single_rows(kind, delay):
    X, y = stream(kind, effort.amount(480, ROWS))
    whole, model = (model_of(kind, delay=delay) for _ in range(2))
    whole.advance(X[:230, :1], y[:230])
    one_by_one(model, X[:230, :1], y[:230])
    for m in (whole, model):
        m.widen(2, samples=X[:9, 1:])
    whole.advance(X[230:], y[230:])
    one_by_one(model, X[230:], y[230:])
    same_decisions(model, whole)
    same_predictions(model, whole, X[:50])


def test_many_columns_and_rows_far_out():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 70))  # beyond what is rotated
    X[::50, 0] = 1e300
    y = (X[:, 1] + 0.1 * rng.normal(size=300)).tolist()
    whole, model = AutoKONS(max_atoms=20), AutoKONS(max_atoms=20)
    trace = whole.advance(X, y)
    np.testing.assert_allclose(one_by_one(model, X, y), trace.prediction, rtol=1e-6, atol=1e-6)
    same_decisions(model, whole)


def test_targets_of_any_number_type():
    X, y = stream(rows=150)
    plain, typed = model_of("regression"), model_of("regression")
    types = [float, int, np.float64, np.int32, np.float32, np.array, bool]
    for i in range(150):
        value = types[i % len(types)](round(y[i]))
        plain.learn_one(X[i], float(value))
        typed.learn_one(X[i].tolist(), value)
    assert_identical(typed.state(), plain.state())


def test_several_threads_may_predict():
    X, y = stream("three", 200)
    model = model_of("three")
    one_by_one(model, X[:170], y[:170])
    expected = [model.predict_proba_one(x) for x in X]
    many = model.predict_proba(X)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(model.predict_proba_one, X)) == expected
        for got in pool.map(model.predict_proba, [X] * 8):
            assert got.tolist() == many.tolist()


def test_a_chunk_with_more_rows_than_it_can_have_is_refused():
    X, y = stream(rows=178)
    model = model_of("regression")
    model.advance(X, y)  # 50 rows into a chunk
    state = model.state()
    state["rows_seen"] = state["targets"][0]["drift"]["current"]["rows"] = 134
    with pytest.raises(FileError, match="chunk has other rows than the 6 that came"):
        AutoKONS.from_state(model.parameters(), state)


@effort.every_value(kind=["regression", "late"], delay=[0, 5])
def test_what_the_rows_of_a_chunk_built_is_found_again_bit_for_bit(kind, delay):
    """In a file there are only the rows, and how they were cut; the third class comes inside a chunk."""
    X, y = stream(kind, 420)
    model, start = model_of(kind, delay=delay), 0
    for number, stop in enumerate([30, 45, 100, 110, 111, 125, 290, 331, 336, 350, 366, 400]):
        if number % 3 == 2:
            one_by_one(model, X[start:stop], y[start:stop], ahead=number % 2 == 0)
        else:
            model.advance(X[start:stop], y[start:stop])
        twin, start = from_bytes(to_bytes(model)), stop
        assert to_bytes(twin) == to_bytes(model)
        rest = [part[stop : stop + effort.amount(70, 420)] for part in (X, y)]  # beyond the end of the chunk
        assert_identical(vars(twin.advance(*rest)), vars(copy.deepcopy(model).advance(*rest)))


@pytest.mark.parametrize("rows", [300, 700])
def test_a_file_is_read_as_it_was_learned_whatever_blas_may_do(rows):
    X, y = stream(rows=rows + 60)
    model = AutoKONS()
    model.advance(X[:rows], y[:rows])
    with threadpool_limits(2, user_api="blas"):  # factors of 200 atoms have other bits then
        twin = from_bytes(to_bytes(model))
    assert_identical(vars(twin.advance(X[rows:], y[rows:])), vars(model.advance(X[rows:], y[rows:])))


def test_rows_that_came_by_themselves_are_refused_where_rows_go_as_blocks():
    X, y = stream(rows=100)
    model = AutoKONS(kernel=Matern("auto", smoothness=2.5), max_atoms=20)
    model.advance(X[:70], y[:70])
    state = model.state()
    state["targets"][0]["drift"]["current"]["cuts"] = [0] * 6
    with pytest.raises(FileError, match="rows go as blocks"):
        AutoKONS.from_state(model.parameters(), state)
