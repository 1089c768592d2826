"""A and u in a dictionary's span: the inverse is that of the running sum, whatever came."""

import numpy as np
import pytest

import effort
from contracts.learners import assert_identical
from kons import EmbeddedKONS, Gaussian, Logistic, Squared
from kons.core.quadratic import PERIOD, Quadratic, SquareSum
from kons.errors import NumericalError
from kons.policies import Dependence, Leverage
from kons.stored import Stored

ALPHA = 0.05


def stream(rows, width=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, size=(rows, width))
    return X, np.clip(np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=rows), -1, 1)


def learner(kernel=Gaussian(), **choices):  # noqa: B008 - frozen
    return EmbeddedKONS(
        kernel, Squared(), **({"regularization": ALPHA, "policy": Dependence(1e-3)} | choices)
    )


FAR = 99.0


class Breaking(Gaussian):
    """NaN where a point is far away."""

    def evaluate_diagonal(self, X):
        return np.where(X[:, 0] == FAR, np.nan, 1.0)


def span_of(learner):
    """The span that a learner's state holds."""
    span = Quadratic(learner.regularization, learner.forgetting)
    span.load_state(Stored(learner.state()["quadratics"][0], "Quadratic"), size=learner.size)
    return span


def coordinates(learner, X):
    """``z = L^-1 k_D(x)``, for well conditioned atoms."""
    L = np.linalg.cholesky(learner.kernel.gram(learner.atoms))
    return np.linalg.solve(L, learner.kernel.gram(learner.atoms, X)).T


def assert_inverse(span):
    """``q = z^T A^-1 z`` and ``f = z^T u``, asked for in every way, with A the running sum."""
    Z = np.random.default_rng(len(span)).normal(size=(20, len(span)))
    expected = np.einsum("ij,ji->i", Z, np.linalg.solve(span.running_sum(), Z.T))
    np.testing.assert_allclose(span.inverse_forms(Z), expected, rtol=1e-9, atol=1e-10)
    for z, q in zip(Z, expected, strict=True):
        assert span.meet_row(z)[-1] == pytest.approx(q, rel=1e-9, abs=1e-10)
        assert span.meet_row(z)[-2] == pytest.approx(z @ span.u[:, 0], rel=1e-9, abs=1e-9)
    met = span.meet(Z)
    np.testing.assert_allclose(np.diagonal(met.M), expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(met.f[0], Z @ span.u[:, 0], rtol=1e-9, atol=1e-9)


CHOICES = {
    "gradient": {"max_atoms": 50},
    "hessian": {"max_atoms": 50, "second_order": "hessian"},
    "forgetting": {"max_atoms": 50, "second_order": "hessian", "forgetting": 0.99},
    "replace": {"max_atoms": 20, "second_order": "hessian", "policy": Dependence(1e-3, "replace")},
    "coin": {"policy": Leverage(0.1), "max_atoms": 50},
    "restart": {"policy": Leverage(0.1), "on_growth": "restart", "max_atoms": 50},
}


@effort.every_value(choices=CHOICES, block_size=[1, 7, 64])
def test_the_inverse_is_that_of_the_running_sum(choices, block_size):
    X, y = stream(4000)
    one = learner(**choices)
    for start, stop in ((0, 5), (5, 63), (63, 64), (64, 700), (700, 1023), (1023, 1024), (1024, 4000)):
        one.advance(X[start:stop], y[start:stop], block_size)
        span = span_of(one)
        assert_inverse(span)
        if span.at_period_end:
            np.testing.assert_allclose(span.L @ span.L.T, span.running_sum(), rtol=0, atol=1e-10)


def test_thousands_of_single_rows():
    X, y = stream(3000)
    one = learner(second_order="hessian", max_atoms=30)
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        one.learn_one(x, target)
        if t % 97 == 0:
            assert_inverse(span_of(one))
    assert_inverse(span_of(one))


@pytest.mark.parametrize("block_size", [1, 7, None])
def test_the_running_sum_is_the_sum(block_size):
    """``A = alpha*I + sum w z z^T``, z in the coordinates of the day, 0 in those that came later."""
    X, y = stream(500)
    one = learner(max_atoms=40)
    trace = one.advance(X, y, block_size)
    Z = coordinates(one, X)
    sizes = trace.size
    for t in range(len(X)):
        Z[t, sizes[t] :] = 0.0
    A = ALPHA * np.eye(one.size) + (Z.T * trace.weight) @ Z
    span = span_of(one)
    np.testing.assert_allclose(span.running_sum(), A, rtol=0, atol=1e-11)
    # u solves nothing but its own recursion: u_t = u_{t-1} - s P_{t-1} z_t, so A u is the sum of what came.
    f = Z @ span.u[:, 0]
    np.testing.assert_allclose(
        np.clip(f[sizes == one.size], -1, 1), one.predict(X[sizes == one.size]), atol=1e-9
    )


def test_the_past_fades_by_its_factor_and_never_below_alpha():
    """With rows that teach nothing, A - alpha*I falls by lambda^32 at every 32nd row, and so does c."""
    X, y = stream(320)
    one = learner(max_atoms=20, forgetting=0.98, bound=50.0, step_size=0.5)  # so wide that nothing is clipped
    one.advance(X[:64], y[:64])
    span = span_of(one)
    A, u = span.running_sum(), span.u[:, 0]
    for _ in range(4):
        for x in X[:32]:
            one.learn_slope(x, 0.0)
        c = 0.98**32 * (A @ u)
        A = ALPHA * np.eye(len(A)) + 0.98**32 * (A - ALPHA * np.eye(len(A)))
        u = np.linalg.solve(A, c)
        span = span_of(one)
        np.testing.assert_allclose(span.running_sum(), A, rtol=0, atol=1e-10)
        np.testing.assert_allclose(span.u[:, 0], u, rtol=0, atol=1e-9)
        assert np.linalg.eigvalsh(span.running_sum()).min() >= ALPHA * (1 - 1e-9)


@pytest.mark.parametrize("forgetting", [1e-3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_forgetting_never_goes_below_alpha(loss, forgetting):
    X, y = stream(2000)
    y = y if isinstance(loss, Squared) else np.where(y > 0, 1.0, -1.0)
    one = EmbeddedKONS(
        Gaussian(), loss, regularization=ALPHA, second_order="hessian", max_atoms=30, forgetting=forgetting
    )
    for start in range(0, 2000, 100):
        one.advance(X[start : start + 100], y[start : start + 100])
        span = span_of(one)
        assert np.linalg.eigvalsh(span.running_sum()).min() >= ALPHA * (1 - 1e-9)
        assert_inverse(span)


def test_a_factor_of_one_is_no_forgetting():
    X, y = stream(300)
    plain, almost = learner(max_atoms=20), learner(max_atoms=20, forgetting=1.0 - 1e-15)
    np.testing.assert_allclose(
        almost.advance(X, y).prediction, plain.advance(X, y).prediction, rtol=0, atol=1e-9
    )
    assert span_of(plain).period == PERIOD == 2 * span_of(almost).period


@effort.every_value(choices=CHOICES, rows=[1, 10, 63, 64, 100, 1030])
def test_marks_go_back_bit_for_bit(rows, choices):
    X, y = stream(1500)
    one, undisturbed = (learner(kernel=Breaking(), **choices) for _ in range(2))
    for each in (one, undisturbed):
        each.advance(X[:300], y[:300])
    before = undisturbed.state()
    # All rows but the last are learned, and then it fails.
    broken = np.vstack([X[300 : 300 + rows] * 1.3, np.full(3, FAR)])
    for block_size in (1, None):
        with pytest.raises(NumericalError):
            one.advance(broken, y[300 : 301 + rows], block_size)
        assert_identical(one.state(), before)
    for each in (one, undisturbed):
        each.advance(X[400:700], y[400:700])
        each.learn_one(X[0], y[0])
    assert_identical(one.state(), undisturbed.state())


def test_new_coordinates():
    span = Quadratic(0.5)
    span.extend(2)
    np.testing.assert_array_equal(span.running_sum(), 0.5 * np.eye(2))
    np.testing.assert_array_equal(span.u, 0.0)
    Z = np.array([[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(span.inverse_forms(Z), [10.0, 0.0])
    span.extend(1)
    assert len(span) == 3
    span.reset(1)
    np.testing.assert_array_equal(span.running_sum(), [[0.5]])


def test_projection_keeps_what_was_learned_on_the_smaller_span():
    X, y = stream(64)
    one = learner(max_atoms=10)
    one.advance(X, y)
    span = span_of(one)
    A, u = span.running_sum(), span.u.copy()
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0][:7]
    span.project(Q)
    np.testing.assert_allclose(span.running_sum(), Q @ A @ Q.T, atol=1e-12)  # Q Q^T = I
    np.testing.assert_allclose(span.u, Q @ u, atol=1e-12)
    assert_inverse(span)


def test_the_sample_of_kors_in_the_span():
    """``phi^T (A^I)^-1 phi`` in coordinates is the same in the kernel form over the sample."""
    X, y = stream(200)
    one = learner(policy=Leverage(0.5), seed=2)
    trace = one.advance(X, y)
    sample = np.flatnonzero(trace.kept)
    kernel = Gaussian()
    weights = 1.0 / trace.probability[sample]
    new = stream(20, seed=5)[0]
    k = kernel.gram(X[sample], new)
    inside = kernel.gram(X[sample]) + ALPHA * np.diag(1.0 / weights)
    expected = (kernel.gram(new) - k.T @ np.linalg.solve(inside, k)) / ALPHA
    Z = coordinates(one, new)
    sampler = SquareSum(ALPHA)
    sampler.load_state(Stored(one.state()["sampler"], "SquareSum"), size=one.size)
    found = sampler.forms(Z, kernel.gram(new) - Z @ Z.T)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sampler.L @ sampler.L.T, sampler.running_sum(), atol=1e-10)


def test_the_sample_goes_back():
    sampler = SquareSum(0.1)
    sampler.extend(3)
    mark, before = sampler.mark(), sampler.state()
    sampler.extend(2)
    assert sampler.S.shape == (5, 5)
    sampler.restore(mark)
    assert_identical(sampler.state(), before)
