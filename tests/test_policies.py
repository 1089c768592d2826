"""Who enters: the policies, their constants, and what they refuse."""

import dataclasses
import math

import numpy as np
import pytest

from kons import KORS, EmbeddedKONS, Gaussian, Linear, SketchedKONS, Squared
from kons.errors import ConfigurationError
from kons.kernels import FunctionKernel
from kons.policies import Dependence, Fixed, Leverage, require_leverage


@pytest.mark.parametrize("oversampling", [0.2, 1.0, 7.5])
@pytest.mark.parametrize("floor", [0.0, 0.1, 1.0])
def test_probability_is_the_floored_and_capped_multiple(oversampling, floor):
    policy = Leverage(oversampling=oversampling, floor=floor)
    for estimate in [0.0, 1e-9, 0.05, 0.4, 1.0, 1.9]:
        # Alg. 3, line 9
        assert policy.probability(estimate) == max(min(oversampling * estimate, 1.0), floor)


def test_defaults():
    policy = Leverage()
    assert dataclasses.asdict(policy) == {
        "oversampling": 1.0,
        "distortion": 0.5,
        "floor": 0.0,
        "horizon": None,
        "failure": 0.1,
    }
    assert policy.beta == 1.0
    assert policy.rho == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("horizon", "failure", "distortion"), [(1, 0.1, 0.5), (3000, 0.1, 0.9), (10**6, 0.01, 0.25)]
)
def test_theory_is_what_the_union_bound_needs(horizon, failure, distortion):
    policy = Leverage("theory", distortion=distortion, horizon=horizon, failure=failure)
    assert policy.beta == pytest.approx(3 * math.log(4 * horizon**2 / failure) / distortion**2)
    assert policy.rho == pytest.approx((1 + distortion) / (1 - distortion))
    printed = 3 * math.log(horizon / failure) / distortion**2
    assert policy.beta > printed
    assert policy.probability(0.5 / policy.beta) == pytest.approx(0.5)


def test_the_docstring_names_the_printed_constant():
    assert "4*T^2/delta" in Leverage.__doc__
    assert "log(T/delta)" in Leverage.__doc__


def test_a_number_needs_no_horizon_and_ignores_it():
    assert Leverage(2.0, horizon=100).beta == 2.0
    assert Leverage(3).beta == 3.0


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        *[({"distortion": bad}, "distortion") for bad in (0.0, 1.0, -0.5, 1.5, math.nan, "0.5", None)],
        *[({"floor": bad}, "floor") for bad in (-0.1, 1.1, math.nan, math.inf, "0", None, True)],
        *[({"oversampling": bad}, "oversampling") for bad in (0.0, -1.0, math.nan, math.inf, None)],
        *[({"oversampling": bad}, "oversampling") for bad in ("practice", "1.0", "", True, [1.0])],
        *[({"failure": bad}, "failure") for bad in (0.0, 1.0, -0.1, 2.0, math.nan, "0.1")],
        *[({"horizon": bad}, "horizon") for bad in (0, -5, 10.5, "10", True)],
        ({"oversampling": "theory"}, "horizon"),
        ({"oversampling": "theory", "horizon": 0}, "horizon"),
        ({"oversampling": "theory", "horizon": 10, "distortion": 1.0}, "distortion"),
    ],
)
def test_bad_parameters_are_refused_by_name(parameters, name):
    with pytest.raises(ConfigurationError, match=name):
        Leverage(**parameters)


def test_the_ends_of_the_floor_are_allowed():
    assert Leverage(floor=0).probability(0.0) == 0.0
    assert Leverage(floor=1).probability(0.0) == 1.0


def test_policies_do_not_change_and_compare_by_value():
    policy = Leverage(2.0, floor=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.floor = 0.5
    assert policy == Leverage(2.0, floor=0.1)
    assert policy != Leverage(2.0, floor=0.2)
    assert eval(repr(policy)) == policy


@pytest.mark.parametrize("policy", [None, 0.5, "theory", Leverage, {"floor": 0.1}])
def test_learners_take_nothing_else_for_a_policy(policy):
    with pytest.raises(ConfigurationError, match=r"expected kons\.policies\.Leverage"):
        require_leverage(policy)
    with pytest.raises(ConfigurationError, match="policy"):
        KORS(Gaussian(), policy=policy)
    with pytest.raises(ConfigurationError, match="policy"):
        SketchedKONS(Gaussian(), Squared(), policy=policy)


def test_learners_follow_the_policy_they_are_given():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for policy in [Leverage(), Leverage(0.3, 0.2, 0.15), Leverage("theory", horizon=60)]:
        for trace in (
            KORS(Gaussian(), policy=policy).advance(X),
            SketchedKONS(Gaussian(), Squared(), policy=policy).advance(X, np.sin(X[:, 0])),
        ):
            expected = [policy.probability(estimate) for estimate in trace.leverage_estimate]
            np.testing.assert_array_equal(trace.probability, expected)


# ---- Dependence


def test_dependence_defaults():
    assert dataclasses.asdict(Dependence()) == {"tolerance": 1e-4, "when_full": "freeze"}


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        *[({"tolerance": bad}, r"tolerance is .*at least 0") for bad in (-1e-9, 1.0, 2, -1)],
        *[({"tolerance": bad}, r"tolerance is ") for bad in (math.nan, math.inf, "0.1", None, True, [0.1])],
        *[
            ({"when_full": bad}, r'when_full is .*"freeze" or "replace"')
            for bad in ("Freeze", "drop", "", None, True)
        ],
    ],
)
def test_dependence_refuses(parameters, match):
    with pytest.raises(ConfigurationError, match=match):
        Dependence(**parameters)


def test_dependence_does_not_change_and_compares_by_value():
    policy = Dependence(1e-3, "replace")
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.tolerance = 0.5
    assert policy == Dependence(1e-3, when_full="replace")
    assert policy != Dependence(1e-3)
    assert eval(repr(policy)) == policy
    assert Dependence(0).tolerance == 0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_dependence_is_relative_to_the_point(scale):
    """residual > tolerance * k(x,x): here the residual is sin^2 of the angle, at any length."""
    angle = 0.1  # sin^2 = 0.00997
    X = scale * np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    for tolerance, size in ((0.0099, 2), (0.0100, 1)):
        learner = EmbeddedKONS(Linear(), Squared(), policy=Dependence(tolerance))
        learner.advance(X, [1.0, 1.0])
        assert learner.size == size


@pytest.mark.parametrize("tolerance", [1e-6, 1e-3, 0.1, 0.5])
def test_a_frozen_dictionary_covers_the_stream_to_its_tolerance(tolerance):
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Dependence(tolerance))
    learner.advance(X, np.zeros(400))
    K, k = Gaussian().gram(learner.atoms), Gaussian().gram(learner.atoms, X)
    residual = 1.0 - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
    assert residual.max() <= tolerance * (1 + 1e-6)
    assert 1 < learner.size < 200
    finer = EmbeddedKONS(Gaussian(), Squared(), policy=Dependence(tolerance / 10))
    finer.advance(X, np.zeros(400))
    assert finer.size > learner.size


# ---- Fixed


def test_fixed_says_how_many():
    assert repr(Fixed(np.zeros((7, 2)))) == "Fixed(7 atoms)"
    assert repr(Fixed(["a", "b"])) == "Fixed(2 atoms)"
    policy = Fixed([[1.0]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.atoms = []
    assert policy != Fixed([[1.0]])  # arrays have no one truth: compared by identity
    assert policy == policy


def test_fixed_objects():
    kernel = FunctionKernel(lambda x, z: float(len(set(x) & set(z))))
    learner = EmbeddedKONS(kernel, Squared(), policy=Fixed(["ab", "cd"]))
    learner.advance(["abcd", "b", "x"], [1.0, -1.0, 1.0])
    assert learner.atoms == ["ab", "cd"]
    assert learner.size == 2


def test_a_fixed_dictionary_stays():
    X = np.random.default_rng(0).normal(size=(150, 2))
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(X[:9]))
    trace = learner.advance(X, np.sign(X[:, 0]))
    np.testing.assert_array_equal(learner.atoms, X[:9])
    assert not trace.kept.any()
    np.testing.assert_array_equal(trace.size, 9)


@pytest.mark.parametrize("policy", [Dependence(), Fixed([[0.0]])], ids=repr)
def test_sketches_take_coins_only(policy):
    with pytest.raises(ConfigurationError, match=r"expected kons\.policies\.Leverage"):
        SketchedKONS(Gaussian(), Squared(), policy=policy)
