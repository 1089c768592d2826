"""The one object: its invariants first, then the dense matrix it stands for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.core.entry import condition
from kons.core.preconditioner import Preconditioner

FEATURES = 6


def features(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, FEATURES))


def dense(alpha, Phi, w):
    return alpha * np.eye(Phi.shape[1]) + (Phi.T * w) @ Phi


def enter(A, Phi_inside, Phi_block, weights):
    """One block into A, the m x m recursion included; returns q of each point as it was met."""
    K_bb = Phi_block @ Phi_block.T
    V = A.whiten(Phi_block @ Phi_inside.T)
    M = A.covariance(K_bb, V)
    q = np.empty(len(weights))
    for t, w in enumerate(weights):
        q[t] = M[t, t]
        if w > 0.0:
            condition(M, t, w)
    A.enter(V, M, np.asarray(weights, float), q, K_bb.diagonal().copy())
    return q


def filled(alpha, Phi, w, block=50):
    A, chosen = Preconditioner(alpha), np.flatnonzero(np.asarray(w) > 0)
    forms = []
    for start in range(0, len(Phi), block):
        part = slice(start, start + block)
        forms.append(enter(A, Phi[chosen[chosen < start]], Phi[part], w[part]))
    return A, np.concatenate(forms)


def lower(A):
    """L itself, back from the panels."""
    n = len(A)
    L = np.zeros((n, n))
    start = 0
    for rectangle, inverse in A.factor.panels():
        stop = start + len(rectangle)
        L[start:stop, :start] = rectangle
        L[start:stop, start:stop] = np.linalg.inv(inverse)
        start = stop
    return L


@pytest.fixture(params=[1.0, 1e-2], ids="alpha={}".format)
def case(request):
    alpha = request.param
    Phi = features(300)
    w = np.random.default_rng(1).uniform(0.01, 2.0, size=300)
    return alpha, Phi, w, *filled(alpha, Phi, w)


def test_squared_pivot_is_alpha_times_one_plus_wq(case):
    alpha, Phi, w, A, q = case
    scaled = alpha * np.eye(300) + np.sqrt(np.outer(w, w)) * (Phi @ Phi.T)
    pivots2 = np.linalg.cholesky(scaled).diagonal() ** 2
    np.testing.assert_allclose(alpha * (1 + w * q), pivots2, rtol=1e-10)
    np.testing.assert_allclose(lower(A).diagonal() ** 2, pivots2, rtol=1e-10)


def test_the_factor_is_that_of_the_scaled_gram_matrix(case):
    alpha, Phi, w, A, _ = case
    scaled = alpha * np.eye(300) + np.sqrt(np.outer(w, w)) * (Phi @ Phi.T)
    L = lower(A)
    np.testing.assert_allclose(L @ L.T, scaled, rtol=0, atol=1e-11)


def test_log_determinant_rises_by_log_one_plus_wq(case):
    alpha, Phi, w, _, q = case
    for t in (0, 1, 5, 49, 50, 299):
        before, after = dense(alpha, Phi[:t], w[:t]), dense(alpha, Phi[: t + 1], w[: t + 1])
        rise = np.linalg.slogdet(after)[1] - np.linalg.slogdet(before)[1]
        assert np.log1p(w[t] * q[t]) == pytest.approx(rise, rel=1e-9)


def test_leverage_is_wq_over_one_plus_wq(case):
    alpha, Phi, w, _, q = case
    for t in (0, 1, 5, 49, 50, 299):
        after = dense(alpha, Phi[: t + 1], w[: t + 1])
        leverage = w[t] * Phi[t] @ np.linalg.solve(after, Phi[t])
        assert w[t] * q[t] / (1 + w[t] * q[t]) == pytest.approx(leverage, rel=1e-9)


def test_inverse_form_equals_the_dense_one(case):
    alpha, Phi, w, A, _ = case
    new = features(20, seed=7)
    V = A.whiten(new @ Phi.T)
    M = A.covariance(new @ new.T, V)
    expected = new @ np.linalg.solve(dense(alpha, Phi, w), new.T)
    # The kernel form is a difference of numbers of size k(x,x), divided by alpha.
    atol = 1e-14 * (new**2).sum(1).max() / alpha
    np.testing.assert_allclose(M, expected, rtol=0, atol=10 * atol)


def test_project_back_is_the_dual_of_whiten(case):
    """``k_D(x)^T sqrt(W) L^-T r = v(x)^T r``."""
    _, Phi, _, A, _ = case
    x, r = features(1, seed=3), np.random.default_rng(4).normal(size=300)
    K = x @ Phi.T
    left = K[0] @ A.project_back(r)
    assert left == pytest.approx(float(A.whiten(K)[0] @ r), rel=1e-10)


def test_effective_dimension_is_the_dense_trace(case):
    alpha, Phi, w, A, _ = case
    full = dense(alpha, Phi, w)
    expected = np.trace(np.linalg.solve(full, full - alpha * np.eye(FEATURES)))
    assert A.effective_dimension() == pytest.approx(expected, rel=1e-9)
    assert 0 < A.effective_dimension() < FEATURES


def test_weights_and_trace(case):
    alpha, Phi, w, A, _ = case
    np.testing.assert_allclose(A.weights, w, rtol=1e-15)
    k = (Phi**2).sum(1)
    assert A.weighted_trace == pytest.approx(w @ k, rel=1e-14)
    # ... which bounds every inverse form from below, as the replay relies on.
    new = features(50, seed=9)
    exact = np.einsum("ij,ij->i", new, np.linalg.solve(dense(alpha, Phi, w), new.T).T)
    assert ((new**2).sum(1) / (alpha + A.weighted_trace) <= exact).all()


def test_weight_zero_is_harmless():
    Phi, w = features(120), np.random.default_rng(1).uniform(0.1, 1.0, size=120)
    w[::3] = 0.0
    w[50:60] = 0.0
    with_zeros, q = filled(0.1, Phi, w, block=10)
    without, q_without = filled(0.1, Phi[w > 0], w[w > 0], block=1)
    assert len(with_zeros) == len(without) == np.count_nonzero(w)
    np.testing.assert_allclose(q[w > 0], q_without, rtol=1e-10)
    np.testing.assert_allclose(lower(with_zeros), lower(without), rtol=0, atol=1e-12)


def test_a_block_of_zero_weights_changes_no_bit():
    Phi, w = features(40), np.full(40, 0.5)
    A, _ = filled(0.1, Phi, w)
    before = A.factor.panels(), A.weights, A.weighted_trace
    enter(A, Phi, features(5, seed=2), np.zeros(5))
    assert len(A) == 40
    np.testing.assert_array_equal(A.weights, before[1])
    assert A.weighted_trace == before[2]
    np.testing.assert_array_equal(A.factor.panels()[0][1], before[0][0][1])


@pytest.mark.parametrize("stand", [0, 10, 256, 290])
def test_mark_and_restore_bit_for_bit(stand):
    Phi, w = features(320), np.random.default_rng(1).uniform(0.1, 1.0, size=320)
    A, twin = Preconditioner(0.1), Preconditioner(0.1)
    for part in (slice(0, stand // 2), slice(stand // 2, stand)):
        for one in (A, twin):
            enter(one, Phi[: part.start], Phi[part], w[part])
    mark = A.mark()
    enter(A, Phi[:stand], 3 * features(300, seed=8), np.full(300, 2.0))
    A.restore(mark)
    for one in (A, twin):  # and what comes next is the same too
        enter(one, Phi[:stand], Phi[stand:], w[stand:])
    assert A.weighted_trace == twin.weighted_trace
    np.testing.assert_array_equal(A.weights, twin.weights)
    for (left, inverse), (other_left, other_inverse) in zip(
        A.factor.panels(), twin.factor.panels(), strict=True
    ):
        np.testing.assert_array_equal(left, other_left)
        np.testing.assert_array_equal(inverse, other_inverse)


@effort.examples(20)
@given(
    st.lists(st.sampled_from([0.0, 1e-8, 0.3, 1.0, 50.0]), min_size=1, max_size=40),
    st.integers(1, 12),
    st.sampled_from([10.0, 1.0, 1e-3]),
)
def test_any_weights_in_any_blocks(weights, block, alpha):
    w = np.array(weights)
    Phi = features(len(w), seed=len(w)) / np.sqrt(FEATURES)
    A, q = filled(alpha, Phi, w, block=block)
    sign, logdet = np.linalg.slogdet(dense(1.0, Phi, w / alpha))
    assert sign == 1.0
    assert np.log1p(w * q).sum() == pytest.approx(logdet, rel=1e-8, abs=1e-8)
    assert len(A) == np.count_nonzero(w)
