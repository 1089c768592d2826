"""Who enters: the one policy, its constants, and what it refuses."""

import dataclasses
import math

import numpy as np
import pytest

from kons import KORS, Gaussian, SketchedKONS, Squared
from kons.errors import ConfigurationError
from kons.policies import Leverage, require_leverage


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
