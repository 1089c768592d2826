"""y of shape (n, k): k functions that do not know of each other, over one dictionary where they can."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import naive
from contracts.learners import assert_identical
from kons import KONS, AutoKONS, Classifier, EmbeddedKONS, Gaussian, Logistic, Scaled, SketchedKONS, Squared
from kons.errors import ConfigurationError, InputError, TargetError
from kons.files import from_bytes, to_bytes
from kons.policies import Dependence, Leverage

rng = np.random.default_rng(0)
X = rng.normal(size=(230, 2))
Y = np.stack([np.sin(X[:, 0]), 0.5 * np.cos(X[:, 1]), np.tanh(X.sum(axis=1))], axis=1)
WEIGHTS = np.linspace(0.0, 2.0, len(X))


def embedded(**choices):
    return lambda: EmbeddedKONS(Gaussian(), Squared(), **({"regularization": 0.1, "seed": 3} | choices))


LEARNERS = {
    "one A": embedded(second_order="hessian"),
    "one A, forward": embedded(second_order="hessian", forward=True),
    "one A, restart": embedded(second_order="hessian", on_growth="restart"),
    "one A, coins, forgetting": embedded(
        second_order="hessian", policy=Leverage(2.0), max_atoms=20, forgetting=0.98
    ),
    "an A each": embedded(max_atoms=30),
    "an A each, coins": embedded(policy=Leverage(2.0), max_atoms=20),
    "exact": lambda: KONS(Gaussian(), Squared(), regularization=0.1),
    "exact, one A": lambda: KONS(Gaussian(), Squared(), regularization=0.1, second_order="hessian"),
    "sketched": lambda: SketchedKONS(Gaussian(), Squared(), policy=Leverage(floor=0.3), seed=3),
    "raw units": lambda: Scaled(
        EmbeddedKONS(Gaussian("auto"), Squared(), second_order="hessian", regularization=0.1), warmup=60
    ),
}
every = pytest.mark.parametrize("name", LEARNERS)


@every
def test_k_targets_are_k_learners(name):
    learner = LEARNERS[name]()
    trace = learner.advance(X[:170], Y[:170], sample_weight=WEIGHTS[:170])
    ones = []
    for x, y in zip(X[170:], Y[170:], strict=True):
        ones.append(learner.predict_one(x))
        learner.learn_one(x, y)
    assert trace.prediction.shape == (170, 3)
    assert learner.outputs == 3
    losses = np.zeros(170)
    for k in range(3):
        single = LEARNERS[name]()
        expected = single.advance(X[:170], Y[:170, k], sample_weight=WEIGHTS[:170])
        losses += expected.loss
        np.testing.assert_allclose(trace.prediction[:, k], expected.prediction, rtol=0, atol=1e-11)
        for column in ("slope", "weight", "inverse_form", "leverage"):
            mine = trace[column] if trace[column].ndim == 1 else trace[column][:, k]
            np.testing.assert_allclose(mine, expected[column], rtol=1e-9, atol=1e-11)
        for x, y, said in zip(X[170:], Y[170:, k], ones, strict=True):
            assert said[k] == pytest.approx(single.predict_one(x), rel=0, abs=1e-11)
            single.learn_one(x, float(y))
        np.testing.assert_allclose(learner.predict(X)[:, k], single.predict(X), rtol=0, atol=1e-10)
        if name != "sketched":  # its coins depend on slopes
            np.testing.assert_array_equal(trace.kept, expected.kept)
            assert learner.size == single.size
    np.testing.assert_allclose(trace.loss, losses, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_explicit_features_with_one_matrix(forgetting):
    """Nothing shared with the library: orthonormal coordinates, one A, a solve a row."""
    learner = embedded(second_order="hessian", policy=Dependence(1e-3), max_atoms=25, forgetting=forgetting)()
    trace = learner.advance(X, Y)
    K = naive.gaussian_gram(X, 1.0)
    expected = naive.ridge_in_a_span(K, Y, alpha=0.1, tolerance=1e-3, max_atoms=25, forgetting=forgetting)
    np.testing.assert_allclose(trace.prediction, np.clip(expected.prediction, -1.0, 1.0), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(trace.kept, expected.kept)
    np.testing.assert_allclose(trace.inverse_form, expected.inverse_form, rtol=1e-8, atol=1e-10)


@every
def test_blocks_equal_rows(name):
    whole, cut, rows = (LEARNERS[name]() for _ in range(3))
    expected = whole.advance(X, Y)
    parts = [cut.advance(X[i : i + 37], Y[i : i + 37], block_size=11) for i in range(0, len(X), 37)]
    np.testing.assert_allclose(
        np.concatenate([part.prediction for part in parts]), expected.prediction, rtol=0, atol=1e-9
    )
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        if t:  # before the first row nobody knows how many there will be
            np.testing.assert_allclose(rows.predict_one(x), expected.prediction[t], rtol=0, atol=1e-9)
        rows.learn_one(x, y.tolist() if t % 2 else y)
    for learner in (cut, rows):
        np.testing.assert_allclose(learner.predict(X), whole.predict(X), rtol=0, atol=1e-9)


@every
@pytest.mark.parametrize("at", [30, 101])
def test_saved_in_between(name, at):
    learner = LEARNERS[name]()
    learner.advance(X[:at], Y[:at])
    twin = from_bytes(to_bytes(learner))
    assert twin.outputs == 3
    for x, y in zip(X[at : at + 3], Y[at : at + 3], strict=True):
        learner.learn_one(x, y)
        twin.learn_one(x, y)
    first, second = (one.advance(X[at + 3 :], Y[at + 3 :]) for one in (learner, twin))
    assert_identical(first.columns, second.columns)
    assert_identical(learner.state(), twin.state())


@every
def test_errors_leave_no_trace(name):
    learner = LEARNERS[name]()
    learner.advance(X[:100], Y[:100])
    before, twin = learner.state(), copy.deepcopy(learner)
    wrong = Y[100:110].copy()
    wrong[4, 1] = np.nan
    for y, message in (
        (Y[100:110, :2], r"2 target\(s\) a row, expected 3"),
        (Y[100:110, 0], r"expected"),
        (wrong, r"y\[4\]\[1\] is nan"),
    ):
        with pytest.raises(InputError, match=message):
            learner.advance(X[100:110], y)
    for y in (Y[100, :2], 0.5, [0.1, np.inf, 0.0]):
        with pytest.raises(InputError):
            learner.learn_one(X[100], y)
    if name != "raw units":
        with pytest.raises(TargetError, match="beyond bound"):
            learner.learn_one(X[100], [0.0, 0.0, 9.0])
    assert_identical(learner.state(), before)
    first, second = (one.advance(X[100:], Y[100:]) for one in (learner, twin))
    assert_identical(first.columns, second.columns)


def test_one_number_stays_one_number():
    for name, make in LEARNERS.items():
        plain, column = make(), make()
        plain.advance(X[:90], Y[:90, 0])
        column.advance(X[:90], Y[:90, :1])
        assert plain.predict(X).shape == (230,), name
        assert isinstance(plain.predict_one(X[0]), float), name
        assert column.predict(X).shape == (230, 1), name
        np.testing.assert_array_equal(column.predict(X)[:, 0], plain.predict(X))
        with pytest.raises(InputError):
            plain.advance(X[:90], Y[:90])


def test_functions_are_arranged():
    """A copy goes on as the original, one with the other sign as one of opposite targets."""
    for choices in ({"second_order": "hessian"}, {}):
        learner, opposite = embedded(**choices)(), embedded(**choices)()
        learner.advance(X[:100], Y[:100])
        opposite.advance(X[:100], -Y[:100])
        learner.arrange([2, 0, 2], [1.0, -1.0, 1.0])
        targets = np.stack([Y[100:, 2], -Y[100:, 0], Y[100:, 2]], axis=1)
        trace, expected = learner.advance(X[100:], targets), opposite.advance(X[100:], -Y[100:])
        np.testing.assert_array_equal(trace.prediction[:, 0], trace.prediction[:, 2])
        np.testing.assert_array_equal(trace.prediction[:, 0], -expected.prediction[:, 2])
        np.testing.assert_array_equal(trace.prediction[:, 1], expected.prediction[:, 0])


def test_what_has_one_target_says_so():
    learner = EmbeddedKONS(Gaussian(), Logistic())
    learner.advance(X, np.where(Y > 0.0, 1.0, -1.0))
    assert learner.predict(X).shape == (230, 3)
    with pytest.raises(ConfigurationError, match="learn_slope is of one target"):
        learner.learn_slope(X[0], 1.0)
    sketched = LEARNERS["sketched"]()
    sketched.advance(X, Y)
    with pytest.raises(ConfigurationError, match="points of its own"):
        _ = sketched.atoms
    with pytest.raises(InputError, match="one label per row"):
        Classifier(EmbeddedKONS(Gaussian(), Logistic())).advance(X, Y)


class Mean:
    """A learner of one's own."""

    def predict_one(self, x):
        return 0.0

    def learn_one(self, x, y):
        pass


def test_own_learners_are_asked_for_one():
    model = Scaled(Mean(), warmup=10)
    before = model.state()
    with pytest.raises(ConfigurationError, match="Mean learns one target a row, and y has 3"):
        model.advance(X, Y)
    assert_identical(model.state(), before)


@pytest.mark.parametrize(
    "make", [lambda: EmbeddedKONS(Gaussian(), Squared()), lambda: AutoKONS(max_atoms=10)]
)
def test_a_number_is_a_row_of_one_target(make):
    """After y of shape (n, 1): it was learned, and an error all the same."""
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    rows, lists = make(), make()
    for learner, target in ((rows, 0.5), (lists, [0.5])):
        learner.advance(X, X)
        learner.learn_one([0.25], target)
    assert rows.events == lists.events
    assert rows.predict(X).tolist() == lists.predict(X).tolist()
