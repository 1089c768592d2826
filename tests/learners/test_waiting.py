"""Single rows of EmbeddedKONS wait to be counted: whoever looks sees what rows counted at once would give."""

import copy
import pickle

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import EmbeddedKONS, Gaussian, Squared
from kons.errors import TargetError
from kons.policies import Fixed

rng = np.random.default_rng(0)
X = rng.uniform(-1.5, 1.5, size=(700, 3))
X[620:, 1] = 0.25  # frozen: an event
Y = np.clip(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], -1, 1)
CHOICES = {
    "grows": {},
    "full": {"max_atoms": 6},
    "fixed": {"policy": Fixed(X[:7] + 0.1)},
    "forgets": {"max_atoms": 20, "forgetting": 0.99, "second_order": "hessian"},
    "forward": {"forward": True, "second_order": "hessian"},
    "beyond a panel": {"kernel": Gaussian(0.05), "max_atoms": 300},
}
choices = pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)


def make(kernel=Gaussian(0.9), **arguments):  # noqa: B008 - frozen
    return EmbeddedKONS(kernel, Squared(), regularization=0.1, **arguments)


def learn(learner, rows, look=lambda learner: None):
    """Row by row; what was predicted."""
    predictions = []
    for x, y in zip(X[rows], Y[rows], strict=True):
        predictions.append(learner.predict_one(x))
        learner.learn_one(x, y)
        look(learner)
    return predictions


def waits(learner):
    return "_rows_seen" not in vars(learner)


@choices
def test_all_is_as_if_each_row_were_counted_at_once(choices):
    waiting, counted = make(**choices), make(**choices)
    assert learn(waiting, slice(0, 700)) == learn(counted, slice(0, 700), EmbeddedKONS.count_rows)
    assert not waits(counted)
    assert repr(waiting.events) == repr(counted.events)
    assert any(event.kind == "frozen" for event in waiting.events)
    assert_identical(waiting.state(), counted.state())


LOOKS = {
    "rows_seen": lambda learner: learner.rows_seen,
    "size": lambda learner: learner.size,
    "log_determinant": lambda learner: learner.log_determinant,
    "online_effective_dimension": lambda learner: learner.online_effective_dimension,
    "atoms": lambda learner: learner.atoms,
    "predict": lambda learner: learner.predict(X[:9]),
    "novelty": lambda learner: learner.novelty(X[:9]),
    "predict_interval": lambda learner: learner.predict_interval(X[:9]),
    "explain": lambda learner: learner.explain(X[3]).contributions,
    "state": lambda learner: learner.state(),
    "a copy": lambda learner: copy.deepcopy(learner).state(),
    "a pickle": lambda learner: pickle.loads(pickle.dumps(learner)).state(),
    "a block": lambda learner: learner.advance(X[500:520], Y[500:520]).prediction,
    "a list": lambda learner: learner.learn_one(X[7].tolist(), 0.5),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("rows", [3, 37, 300])
def test_whoever_looks_sees_all_rows(look, rows):
    waiting, counted = make(max_atoms=20), make(max_atoms=20)
    learn(waiting, slice(0, rows))
    learn(counted, slice(0, rows), EmbeddedKONS.count_rows)
    assert waits(waiting)
    assert_identical(look(waiting), look(counted))
    assert learn(waiting, slice(300, 340)) == learn(counted, slice(300, 340))
    assert_identical(waiting.state(), counted.state())


def test_back_to_an_earlier_mark():
    learner, expected = make(max_atoms=20), make(max_atoms=20)
    for one in (learner, expected):
        learn(one, slice(0, 100))
    mark = learner.mark()
    learn(learner, slice(200, 300))
    assert waits(learner)
    learner.restore(mark)
    assert learn(learner, slice(100, 150)) == learn(expected, slice(100, 150))
    assert_identical(learner.state(), expected.state())


def test_rows_in_another_order_of_memory_and_bad_ones_change_nothing():
    learner, expected = make(max_atoms=20), make(max_atoms=20)
    columns = np.asfortranarray(X)
    learn(expected, slice(0, 200))
    for t in range(200):
        for bad in (np.full(3, np.nan), np.zeros(2), np.zeros((3, 1))) if t else ():
            with pytest.raises(ValueError):  # noqa: PT011 - the words are of other tests
                learner.predict_one(bad)
        learner.predict_one(columns[t])
        with pytest.raises(TargetError):
            learner.learn_one(columns[t], 1.5)
        learner.learn_one(columns[t], Y[t])
    np.testing.assert_allclose(learner.predict(X), expected.predict(X), rtol=0, atol=1e-10)
    assert learner.rows_seen == expected.rows_seen


def test_events_are_told_at_once_to_who_wants_that():
    told = []
    learner = make(max_atoms=20)
    learn(learner, slice(0, 600))
    learner.on_event = lambda event: told.append((event.row, learner.rows_seen))
    learn(learner, slice(600, 700))
    assert told
    assert all(row + 1 == seen for row, seen in told)
