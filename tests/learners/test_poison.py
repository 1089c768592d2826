"""Numbers that would poison a learner for good are named, and nothing is left of them."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import KONS, KORS, EmbeddedKONS, Gaussian, Logistic, SketchedKONS, Squared
from kons.errors import ConfigurationError, InputError, KonsWarning, NumericalError
from kons.kernels import FunctionKernel, Kernel
from kons.losses import CustomLoss
from kons.policies import Leverage

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.clip(X[:, 0], -1, 1)
LEARNERS = [KONS, SketchedKONS, EmbeddedKONS]


def taught(learner_class, **options):
    learner = learner_class(Gaussian(), Squared(), **options)
    learner.advance(X, Y)
    return learner


@pytest.mark.parametrize("learner_class", LEARNERS)
@pytest.mark.parametrize(
    "poison",
    [
        lambda learner: learner.learn_slope(X[0], 1e155),
        lambda learner: learner.learn_slope(X[0], 100.0, curvature=1e308),
        lambda learner: learner.advance(X, Y, sample_weight=np.full(20, 1.7e308)),
    ],
    ids=["slope", "curvature", "sample weight"],
)
def test_a_weight_that_overflows_is_refused(learner_class, poison):
    learner = taught(learner_class)
    before = copy.deepcopy(learner.state())
    with pytest.raises(NumericalError, match="overflow"):
        poison(learner)
    assert_identical(learner.state(), before)
    assert np.isfinite(learner.advance(X, Y).loss).all()


def test_a_feature_weight_that_overflows_is_refused():
    sampler = KORS(Gaussian(), policy=Leverage(floor=0.9, oversampling=1e-9))
    with pytest.raises(NumericalError):
        sampler.advance(X, np.full(20, 1.7e308))
    assert sampler.size == sampler.rows_seen == 0


@pytest.mark.parametrize("learner_class", [KONS, EmbeddedKONS])
def test_a_negative_second_derivative_is_refused(learner_class):
    loss = CustomLoss(
        lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), lambda p, y: -2.0, curvature=0.1, lipschitz=4.0
    )
    learner = learner_class(Gaussian(), loss, second_order="hessian")
    with pytest.raises(NumericalError, match="second derivative"):
        learner.advance(X, Y)
    assert learner.rows_seen == 0


class Broken(Kernel):
    """A kernel of somebody's own that returns NaN for far points."""

    def evaluate(self, X, Z):
        K = Gaussian().evaluate(X, Z)
        K[K < 0.05] = np.nan
        return K

    def evaluate_diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("learner_class", LEARNERS)
def test_a_kernel_that_returns_nan_is_named(learner_class):
    far = X * 5.0
    for block_size in (1, None):
        learner = learner_class(Broken(), Squared())
        with pytest.raises(NumericalError, match="NaN"):
            learner.advance(far, Y, block_size=block_size)
        assert learner.rows_seen == 0
    learner = learner_class(Broken(), Squared())
    learner.advance(np.zeros((1, 3)), [1.0])
    with pytest.raises(NumericalError, match="NaN"):
        learner.predict(np.full((1, 3), 50.0))
    with pytest.raises(NumericalError, match="NaN"):
        learner.predict_one(np.full(3, 50.0))


def test_numpy_integers_do_not_wrap_in_the_theory_s_constant():
    policies = [Leverage("theory", horizon=h) for h in (70_000, np.int32(70_000))]
    assert policies[0] == policies[1]
    assert policies[0].beta == policies[1].beta
    assert Leverage("theory", horizon=np.uint8(200)).beta == Leverage("theory", horizon=200).beta


@pytest.mark.parametrize("bad", [{"a", "b"}, {"a": 1}, np.ma.masked_array([1.0, 2.0], [True, False])])
def test_what_has_no_order_is_no_stream(bad):
    learner = KONS(FunctionKernel(lambda a, b: float(a == b)), Squared())
    if isinstance(bad, np.ma.MaskedArray):
        with pytest.raises(InputError, match="masked"):
            KONS(Gaussian(), Squared()).advance(bad.reshape(-1, 1), [0.0, 0.0])
    else:
        with pytest.raises(InputError, match="expected a sequence"):
            learner.advance(bad, [0.0, 0.0])


def test_a_frame_of_objects_is_not_its_column_names():
    class Frame:
        columns = ("a", "b")

        def __iter__(self):
            return iter(self.columns)

    with pytest.raises(InputError, match="Frame"):
        KORS(FunctionKernel(lambda a, b: float(a == b))).advance(Frame())


@pytest.mark.parametrize("value", [10**400, 1e300, 1e-300])
def test_parameters_beyond_what_squares_can_hold(value):
    with pytest.raises(ConfigurationError, match="bound"):
        KONS(Gaussian(), Squared(), bound=value)
    with pytest.raises(ConfigurationError, match="regularization"):
        KONS(Gaussian(), Squared(), regularization=value)


def test_integers_beyond_floats_are_no_data():
    with pytest.raises(InputError, match="beyond the range"):
        KONS(Gaussian(), Squared()).advance([[10**400]], [0.0])


@pytest.mark.parametrize("name", ["shared_coins", "weighted"])
def test_a_word_is_no_flag(name):
    with pytest.raises(ConfigurationError, match=f"{name} is 'no'"):
        SketchedKONS(Gaussian(), Squared(), **{name: "no"})


def test_an_almost_flat_loss_is_told_once():
    with pytest.warns(KonsWarning, match="almost no curvature"):
        KONS(Gaussian(), Logistic(), bound=31.0)
    KONS(Gaussian(), Logistic(), bound=32.0)  # warnings are errors here: told already
    KONS(Gaussian(), Logistic(), bound=33.0, step_size=0.1)
