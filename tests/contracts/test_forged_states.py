"""States that nobody saved: whatever does not fit is refused, before anything is made of it."""

import numpy as np
import pytest

import effort
from contracts.learners import LEARNERS, stream
from kons import KORS, AutoKONS, Gaussian
from kons.errors import FileError, KonsError
from kons.evaluation import Prequential
from kons.recipes import for_task

X, Y = stream(75)


def leaves(tree, path=()):
    """Every place of a tree that is no dict, list or tuple."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, (list, tuple)) and tree:
        for i, value in enumerate(tree):
            yield from leaves(value, (*path, i))
    else:
        yield path, tree


def with_leaf(tree, path, value):
    """A copy of the tree with another value at one place."""
    if not path:
        return value
    first, *rest = path
    if isinstance(tree, dict):
        return {**tree, first: with_leaf(tree[first], rest, value)}
    changed = [with_leaf(item, rest, value) if i == first else item for i, item in enumerate(tree)]
    return type(tree)(changed)


def wrong_values(value):
    """What does not fit where ``value`` was, for certain."""
    yield "a word"
    yield {"a": 1}
    if isinstance(value, np.ndarray):
        yield value.astype(np.float32)
        yield value.astype(object)
        yield value[None]
        yield np.vstack([value, value]) if value.ndim == 2 and value.size else np.ones((3, 5, 2))
        if value.size:
            yield np.where(np.arange(value.size).reshape(value.shape) == value.size // 2, np.nan, value)
    elif isinstance(value, float):
        yield float("nan")
        yield -float("inf")
    elif isinstance(value, int):
        yield -1
        yield 2**200
        yield 1.5
    elif value is None:
        yield np.zeros((1, 3))
        yield 3


@pytest.mark.parametrize("name", [name for name in LEARNERS if "objects" not in name] + ["KORS"])
def test_a_state_that_does_not_fit_is_refused(name):
    if name == "KORS":
        learner = KORS(Gaussian(0.7), seed=4)
        learner.advance(X[:75])
    else:
        learner = LEARNERS[name]()
        learner.advance(X[:75], Y[:75])
    state = learner.state()
    tried = 0
    for path, value in leaves(state):
        for wrong in wrong_values(value):
            if "labels" in path and value is not None and wrong in ("a word", -float("inf")):
                continue  # these may be labels
            with pytest.raises(FileError, match="cannot be used"):
                type(learner).from_state(learner.parameters(), with_leaf(state, path, wrong))
            tried += 1
    assert tried > 40
    # What is kept and noticed of rows, and errors, are not in files of earlier versions.
    for key in state.keys() - {"row_sample", "watch", "errors"}:
        without = {k: v for k, v in state.items() if k != key}
        with pytest.raises(FileError, match="has no entry"):
            type(learner).from_state(learner.parameters(), without)
    with pytest.raises(FileError, match="nothing here knows"):
        type(learner).from_state(learner.parameters(), {**state, "more": 1})
    with pytest.raises(FileError, match="expected a dict"):
        type(learner).from_state(learner.parameters(), [])


@effort.every_value(task=["regression", "classification"], delay=[0, 3])
def test_an_evaluation_that_does_not_fit_is_refused(task, delay):
    def make():
        return Prequential(for_task(task, "embedded"), task, delay=delay, window=20)

    engine = make()
    engine.advance((X[:75], Y[:75] if task == "regression" else np.where(Y[:75] > 0.0, "up", "down")))
    state = engine.state()
    make().resume(state)
    for path, value in leaves(state):
        for wrong in wrong_values(value):
            if "labels" in path and wrong == "a word":
                continue
            if path[-1] == "last" and wrong == -1:
                continue  # no label yet
            with pytest.raises(FileError, match="cannot be used"):
                make().resume(with_leaf(state, path, wrong))
    for key in state:
        with pytest.raises(FileError, match="has no entry"):
            make().resume({k: v for k, v in state.items() if k != key})


def test_numbers_that_do_not_fit_each_other_are_refused():
    learner = LEARNERS["EmbeddedKONS, gradient"]()
    learner.advance(X[:75], Y[:75])
    state, parameters = learner.state(), learner.parameters()
    for path, value in (
        (("quadratics", 0, "rows"), 76),
        (("rows_seen",), 76),
        (("quadratics", 0, "rows"), 64),  # then no row can be pending
        (("quadratics", 0, "totals"), np.array([1.0, 0.0, 500.0])),
        (("width",), 2),
        (("width",), None),
        (("embedding", "factor", "height"), 128),
        (("coins", 0, "bit_generator"), "MT19937"),
        (("candidate_novelty",), 0.5),
    ):
        with pytest.raises(FileError, match="cannot be used"):
            type(learner).from_state(parameters, with_leaf(state, path, value))
    with pytest.raises(FileError, match="atoms"):
        type(learner).from_state({**parameters, "max_atoms": 5}, state)


def forged(value, rng):
    """Numbers of the right shape that nobody would have saved."""
    if not isinstance(value, np.ndarray):
        return type(value)(rng.choice([0, -1, 1, value + 1, 2 * value]))
    changed = value.copy().reshape(-1)
    one = rng.integers(len(changed))
    how = rng.integers(5)
    changed[one] = (-changed[one] - 1.0, 1e10 * np.clip(changed[one] + 1.0, -1e9, 1e9), 1e300, 1e-300, 0.0)[
        how
    ]
    return (changed if rng.random() < 0.8 else changed[::-1].copy()).reshape(value.shape)


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_an_auto_model_of_forged_numbers_is_refused_or_predicts_numbers(task):
    """With checksums that are right: what loads may be wrong, and learns, and says no NaN."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    y = np.sin(X[:, 0]) if task == "regression" else np.where(X[:, 0] > 0, "a", "b")
    model = AutoKONS(task, effort="low")
    model.advance(X, y)
    state, parameters = model.state(), model.parameters()
    places = [
        (path, value)
        for path, value in leaves(state)
        if (isinstance(value, (int, float)) and not isinstance(value, bool))
        or (isinstance(value, np.ndarray) and value.size and value.dtype.kind == "f")
    ]  # fmt: skip
    refused = 0
    for _ in range(effort.amount(15, 1500)):
        path, value = places[rng.integers(len(places))]
        try:
            twin = AutoKONS.from_state(parameters, with_leaf(state, path, forged(value, rng)))
            twin.learn_one(X[0], y[0])
            twin.advance(X[:100], y[:100])
        except KonsError:
            refused += 1
            continue
        said = twin.predict(X[:5]) if task == "regression" else twin.predict_proba(X[:5])
        assert np.isfinite(said).all(), path
    assert refused


def test_sums_that_are_none_of_squares_are_refused():
    learner = LEARNERS["EmbeddedKONS, gradient"]()
    learner.advance(X, Y)
    state = learner.state()
    S = state["quadratics"][0]["S"]
    with pytest.raises(FileError, match="S is no sum of squares"):
        type(learner).from_state(
            learner.parameters(),
            with_leaf(state, ("quadratics", 0, "S"), np.where(np.arange(len(S)) == 1, 1e9, S)),
        )
