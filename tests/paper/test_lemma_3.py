"""Lemma 3: d_onl <= log det(K/alpha + I) <= d_eff (1 + log(|K|/alpha + 1)), K rescaled by gradients."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kons import (
    KONS,
    KORS,
    Gaussian,
    Laplace,
    Linear,
    Logistic,
    Matern,
    Polynomial,
    RationalQuadratic,
    SketchedKONS,
    Squared,
    SquaredHinge,
)
from kons.policies import Leverage

KERNELS = [
    Gaussian(0.3),
    Gaussian(3.0),
    Laplace(1.0),
    Matern(1.0),
    RationalQuadratic(1.0),
    Linear(),
    Polynomial(degree=3, offset=1.0),
]
ROUNDING = 1e-10


def stream(loss, rows=150):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(rows, 3))
    X[::5] = X[0]
    signal = np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=rows)
    return X, np.clip(signal, -1, 1) if isinstance(loss, Squared) else np.where(signal > 0, 1.0, -1.0)


def rescaled_kernel_matrix(kernel, X, weights):
    roots = np.sqrt(weights)
    return roots[:, None] * kernel.gram(X) * roots


def assert_lemma_3(d_onl, log_determinant, K, alpha):
    """The three quantities, d_onl and the log-determinant of the run, against the dense matrix."""
    with threadpool_limits(1):
        eigenvalues = np.maximum(np.linalg.eigvalsh(K), 0.0)
        pivots = np.linalg.cholesky(K / alpha + np.eye(len(K))).diagonal() ** 2
    dense = np.sum(np.log(pivots))
    d_eff = np.sum(eigenvalues / (eigenvalues + alpha))
    # tau_tt = 1 - 1/(squared pivot), and the product of the pivots is the determinant
    assert d_onl == pytest.approx(np.sum(1 - 1 / pivots), rel=1e-8)
    assert log_determinant == pytest.approx(dense, rel=1e-8)
    assert d_onl <= log_determinant * (1 + ROUNDING)
    assert log_determinant <= d_eff * (1 + np.log(eigenvalues[-1] / alpha + 1)) * (1 + ROUNDING)
    assert d_eff <= log_determinant * (1 + ROUNDING)
    assert d_onl > 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 50.0])
def test_lemma_3_on_runs_of_kons(kernel, loss, alpha):
    X, y = stream(loss)
    learner = KONS(kernel, loss, regularization=alpha)
    trace = learner.advance(X, y)
    K = rescaled_kernel_matrix(kernel, X, trace.weight)
    assert learner.online_effective_dimension == pytest.approx(trace.online_effective_dimension)
    assert_lemma_3(learner.online_effective_dimension, learner.log_determinant, K, alpha)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_lemma_3_on_what_entered_the_sketch(kernel, weighted):
    X, y = stream(Squared())
    learner = SketchedKONS(kernel, Squared(), regularization=0.1, weighted=weighted, seed=1)
    trace = learner.advance(X, y)
    assert not trace.kept.all()
    K = rescaled_kernel_matrix(kernel, X, trace.weight)
    assert_lemma_3(learner.online_effective_dimension, learner.log_determinant, K, 0.1)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0])
def test_orthogonal_points_have_the_largest_leverage(alpha):
    """``1/(1 + alpha)`` each, with w = 1: the paper's first example."""
    X = np.eye(30)
    everything = Leverage(distortion=0.5, floor=1.0)
    trace = KORS(Linear(), regularization=alpha, policy=everything).advance(X)
    np.testing.assert_allclose(trace.leverage_estimate / 1.5, 1 / (1 + alpha), rtol=1e-12)
    learner = KONS(Linear(), Squared(), regularization=alpha)
    for t, x in enumerate(X, start=1):
        learner.learn_slope(x, slope=1.0, curvature=1.0)
        assert learner.online_effective_dimension == pytest.approx(t / (1 + alpha), rel=1e-12)
        assert learner.log_determinant == pytest.approx(t * np.log(1 + 1 / alpha), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0)], ids=repr)
def test_repeated_points_have_the_smallest_leverage(alpha, kernel):
    """``1/(t + alpha)`` the t-th time, with w = 1: the paper's second example."""
    X = np.tile([[0.6, 0.8]], (200, 1))
    times = np.arange(1, 201)
    everything = Leverage(distortion=0.5, floor=1.0)
    trace = KORS(kernel, regularization=alpha, policy=everything).advance(X)
    np.testing.assert_allclose(trace.leverage_estimate / 1.5, 1 / (times + alpha), rtol=1e-9)
    learner = KONS(kernel, Squared(), regularization=alpha)
    for x in X:
        learner.learn_slope(x, slope=1.0, curvature=1.0)
    assert learner.online_effective_dimension == pytest.approx(np.sum(1 / (times + alpha)), rel=1e-9)
    assert learner.log_determinant == pytest.approx(np.log(1 + 200 / alpha), rel=1e-9)
