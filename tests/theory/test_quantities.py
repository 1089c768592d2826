"""Leverage scores, effective dimensions and log-determinants against their dense definitions."""

import copy
import math
import pickle

import numpy as np
import pytest

import effort
from kons import KONS, KORS, Gaussian, Laplace, Linear, Polynomial, SketchedKONS, Squared
from kons.errors import ConfigurationError, InputError, NumericalError
from kons.kernels import FunctionKernel
from kons.theory import (
    Estimate,
    LeverageScores,
    effective_dimension,
    log_determinant,
    online_effective_dimension,
    ridge_leverage_scores,
)

ALL = [ridge_leverage_scores, effective_dimension, log_determinant, online_effective_dimension]
KERNELS = {
    "gaussian": Gaussian(1.3),
    "laplace": Laplace(2.0),
    "linear": Linear(),
    "polynomial": Polynomial(degree=2, offset=1.0),
}

WEIGHTED = {"plain": False, "rescaled": True}


def cloud(rows=60, seed=0, width=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    X[rng.random(rows) < 0.2] = X[0]
    weights = rng.exponential(0.5, size=rows)
    weights[rng.random(rows) < 0.2] = 0.0
    return X, weights


def dense(kernel, X, alpha, weights=1.0):
    """tau, d_eff, log det and d_onl by solves with the whole matrix."""
    roots = np.sqrt(np.broadcast_to(weights, len(X)))
    K = kernel.gram(X) * roots * roots[:, None]

    regularized = K + alpha * np.eye(len(K))
    tau = np.diag(np.linalg.solve(regularized, K))
    online = [np.linalg.solve(regularized[:t, :t], K[:t, t - 1])[-1] for t in range(1, len(K) + 1)]
    logdet = np.linalg.slogdet(K / alpha + np.eye(len(K)))[1]
    return tau, tau.sum(), logdet, sum(online)


@effort.every_pair(kernel=KERNELS, alpha=[0.01, 1.0, 100.0], weighted=WEIGHTED)
def test_equal_their_dense_definitions(kernel, alpha, weighted):
    X, weights = cloud()
    w = weights if weighted else 1.0
    tau, d_eff, logdet, d_onl = dense(kernel, X, alpha, w)
    scores = ridge_leverage_scores(kernel, X, alpha, weights=w)
    np.testing.assert_allclose(scores.values, tau, atol=1e-11)
    assert scores.is_exact
    for function, expected in (
        (effective_dimension, d_eff),
        (log_determinant, logdet),
        (online_effective_dimension, d_onl),
    ):
        value = function(kernel, X, alpha, weights=w)
        assert value == pytest.approx(expected, rel=1e-9)
        assert value.is_exact
    # Lemma 3, and the sum of Eq. 3.
    assert d_onl <= logdet <= d_eff * (1 + math.log1p(np.sum(w * kernel.diagonal(X)) / alpha))
    assert scores.values.sum() == pytest.approx(d_eff, rel=1e-9)


def test_the_papers_two_extremes():
    alpha = 0.7
    orthogonal = ridge_leverage_scores(Linear(), np.eye(6), alpha)
    np.testing.assert_allclose(orthogonal.values, 1 / (1 + alpha), rtol=1e-12)
    repeated = ridge_leverage_scores(Linear(), np.ones((6, 1)), alpha)
    np.testing.assert_allclose(repeated.values, 1 / (6 + alpha), rtol=1e-12)


@effort.every_pair(kernel=KERNELS, alpha=[0.03, 0.5, 10.0], weighted=WEIGHTED, seed=range(3))
def test_beyond_the_exact_sizes_the_interval_holds_the_truth(kernel, alpha, weighted, seed):
    X, weights = cloud(150, seed)
    w = weights if weighted else 1.0
    tau, d_eff, logdet, d_onl = dense(kernel, X, alpha, w)
    for function, truth in (
        (effective_dimension, d_eff),
        (log_determinant, logdet),
        (online_effective_dimension, d_onl),
    ):
        estimate = function(kernel, X, alpha, weights=w, exact_up_to=10)
        assert estimate <= truth * (1 + 1e-9)
        assert truth <= estimate.high * (1 + 1e-9)
    scores = ridge_leverage_scores(kernel, X, alpha, weights=w, exact_up_to=10)
    assert (scores.values <= tau + 1e-9).all()
    assert (tau <= scores.high + 1e-9).all()
    alone = w * kernel.diagonal(X)
    assert (scores.high <= alone / (alone + alpha) + 1e-9).all()


def test_the_error_of_a_projection_is_told_and_useful():
    X = np.random.default_rng(1).normal(size=(400, 2))
    estimate = effective_dimension(Gaussian(1.0), X, 0.5, exact_up_to=100)
    assert not estimate.is_exact
    assert 0 < estimate.error < 0.25 * estimate
    scores = ridge_leverage_scores(Gaussian(1.0), X, 0.5, exact_up_to=100)
    assert not scores.is_exact
    assert np.median(scores.errors) < np.median(scores.values)
    # The error is per point: it is not the trivial one of the whole trace.
    assert scores.errors.min() < 0.1 * estimate.error


def test_landmarks_that_span_everything_leave_no_error():
    X = np.random.default_rng(2).normal(size=(200, 3))
    tau, d_eff, *_ = dense(Linear(), X, 0.1)
    assert effective_dimension(Linear(), X, 0.1, exact_up_to=5).high == pytest.approx(d_eff, rel=1e-9)
    scores = ridge_leverage_scores(Linear(), X, 0.1, exact_up_to=5)
    np.testing.assert_allclose(scores.values, tau, atol=1e-9)
    assert scores.errors.max() < 1e-9


def test_exact_up_to_includes_its_own_number():
    X, _ = cloud(30)
    for function in ALL:
        assert function(Gaussian(), X, exact_up_to=30).is_exact
        assert not function(Laplace(), X, 0.5, exact_up_to=29).is_exact


def common_letters(x, z):
    return float(sum(min(x.count(c), z.count(c)) for c in set(x)))


def test_objects():
    words = ["kernel", "online", "newton", "step", "kernel", "sketch"] * 3
    kernel = FunctionKernel(common_letters)
    tau, d_eff, logdet, d_onl = dense(kernel, words, 2.0)
    np.testing.assert_allclose(ridge_leverage_scores(kernel, words, 2.0).values, tau, atol=1e-12)
    assert effective_dimension(kernel, words, 2.0) == pytest.approx(d_eff)
    assert log_determinant(kernel, words, 2.0) == pytest.approx(logdet)
    assert online_effective_dimension(kernel, words, 2.0) == pytest.approx(d_onl)
    beyond = ridge_leverage_scores(kernel, words, 2.0, exact_up_to=3)
    assert ((beyond.values <= tau + 1e-9) & (tau <= beyond.high + 1e-9)).all()


@pytest.mark.parametrize("exact_up_to", [100, 2])
def test_points_without_features_and_rows_without_weight(exact_up_to):
    for X, w in ((np.zeros((5, 2)), 1.0), (np.ones((5, 2)), 0.0)):
        for function in ALL:
            found = function(Linear(), X, weights=w, exact_up_to=exact_up_to)
            assert found.high.max() == 0.0 if isinstance(found, LeverageScores) else found == 0.0


@pytest.mark.parametrize("exact_up_to", [100, 5])
@pytest.mark.parametrize("function", ALL[:3])
def test_an_indefinite_kernel_is_refused_by_landmarks_too(function, exact_up_to):
    kernel = FunctionKernel(lambda a, b: 1.0 - (a - b) ** 2)
    with pytest.raises(NumericalError, match="positive"):
        function(kernel, np.linspace(0.0, 0.5, 40).tolist(), 0.1, exact_up_to=exact_up_to)


def test_no_score_is_above_one():
    X = np.arange(40.0)[:, None] ** 2
    for exact_up_to in (100, 5):
        scores = ridge_leverage_scores(1e6 * Gaussian(1.0), X, 1e-12, exact_up_to=exact_up_to)
        assert scores.values.max() <= 1.0


def test_a_ridge_below_rounding_gives_the_rank():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    scores = ridge_leverage_scores(Linear(), X, 1e-30)
    np.testing.assert_allclose(scores.values, [0.5, 0.5, 1.0], atol=1e-9)
    assert effective_dimension(Linear(), X, 1e-30) == pytest.approx(2.0)


# ---- what comes back


def test_an_estimate_is_a_number():
    estimate = Estimate(2.0, 0.5)
    assert estimate + 1 == 3.0
    assert (estimate.high, estimate.is_exact) == (2.5, False)
    assert repr(estimate) == "2 (at most 2.5)"
    assert repr(Estimate(2.0)) == "2"
    again = pickle.loads(pickle.dumps(copy.deepcopy(estimate)))
    assert (again, again.error, type(again)) == (2.0, 0.5, Estimate)


def test_leverage_scores_have_their_upper_ends_beside_them():
    scores = LeverageScores(np.array([0.5, 0.25]), np.array([0.0, 0.1]))
    np.testing.assert_array_equal(scores.high, [0.5, 0.35])
    assert not scores.is_exact


# ---- errors


@pytest.mark.parametrize("function", ALL)
def test_bad_input_is_named(function):
    X = np.ones((3, 1))
    with pytest.raises(ConfigurationError, match="regularization"):
        function(Linear(), X, 0.0)
    with pytest.raises(InputError, match=r"weights\[1\]"):
        function(Linear(), X, weights=[1.0, -1.0, 1.0])
    with pytest.raises(InputError, match="weights"):
        function(Linear(), X, weights=[1.0])
    with pytest.raises(InputError, match=r"X\[2\]\[0\]"):
        function(Linear(), [[1.0], [2.0], [math.nan]])
    with pytest.raises(InputError, match="no rows"):
        function(Linear(), [])


@pytest.mark.parametrize("function", ALL)
def test_a_kernel_that_is_none_is_refused(function):
    indefinite = FunctionKernel(lambda x, z: 0.0 if x == z else 1.0)
    with pytest.raises(NumericalError):
        function(indefinite, [1, 2, 3], 0.5)


# ---- from a trace alone, over time

SUMS = ("loss", "online_effective_dimension", "log_determinant", "gain")


def test_a_trace_tells_every_sum_over_time():
    X, _ = cloud(80)
    y = np.clip(np.sin(3 * X[:, 0]), -1, 1)
    alpha = 0.3
    trace = KONS(Gaussian(), Squared(), regularization=alpha).advance(X, y)
    for t in (1, 17, 80):
        _, _, logdet, d_onl = dense(Gaussian(), X[:t], alpha, trace.weight[:t])
        assert trace.over_time("log_determinant")[t - 1] == pytest.approx(logdet, rel=1e-9)
        assert trace.over_time("online_effective_dimension")[t - 1] == pytest.approx(d_onl, rel=1e-9)
        # With eta = sigma, R_G is the online effective dimension over sigma.
        assert trace.over_time("gain")[t - 1] == pytest.approx(d_onl / Squared().curvature(1.0), rel=1e-9)
        assert trace.over_time("loss")[t - 1] == pytest.approx(np.sum(trace.loss[:t]))
    for name in SUMS[1:]:
        assert trace.over_time(name)[-1] == pytest.approx(getattr(trace, name))


def test_a_sketchs_gain_charges_the_rows_that_stayed_out():
    X, _ = cloud(80)
    trace = SketchedKONS(Gaussian(), Squared()).advance(X, np.sin(3 * X[:, 0]))
    added = np.diff(trace.over_time("gain"), prepend=0.0)
    out = ~trace.kept
    assert out.any()
    np.testing.assert_allclose(added[out], (trace.slope**2 * trace.inverse_form)[out], atol=1e-12)


def test_sums_that_a_trace_does_not_have_are_named():
    trace = KORS(Gaussian()).advance(np.eye(3))
    with pytest.raises(KeyError, match="loss"):
        trace.over_time("loss")
    with pytest.raises(KeyError, match="weight"):
        trace.over_time("log_determinant")
    with pytest.raises(KeyError, match="no sum 'regret': there are loss"):
        trace.over_time("regret")
