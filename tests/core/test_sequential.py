"""Rows one after the other in machine code, against dense matrices."""

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons.core.quadratic_loops import STEPS, keep_row, predict_row
from kons.core.sequential import Sequential
from kons.errors import NumericalError
from kons.stored import Stored

EPS = np.finfo(float).eps


def learn(state, z, weight, steps_at):
    """One row; ``steps_at(f, q)`` are its steps. Returns f and q."""
    _, _, L, base, Z, V, C, marks = state.arrays()
    work = state.room_for_row()
    work[: len(z)] = z
    predict_row(len(L), L, base, V, C, marks, state.pending, work)
    f, q = work[-1 - state.outputs : -1].copy(), work[-1]
    keep_row(1.0, weight, V, C, marks, state.pending, work)
    Z[state.pending], marks[state.pending, STEPS:] = z, steps_at(f, q)
    state.pending += 1
    return f, q


class Dense:
    """A, its inverse form and u by fresh solves."""

    def __init__(self, prior, outputs):
        self.prior, self.S, self.u = prior, np.zeros(prior.shape), np.zeros((len(prior), outputs))

    def learn(self, z, weight, steps_at):
        v = np.linalg.solve(self.prior + self.S, z)
        f, q = z @ self.u, z @ v
        self.u = self.u - np.outer(v, steps_at(f, q))
        self.S = self.S + weight * np.outer(z, z)
        return f, q

    def decay(self, decay, prior):
        c = decay * (self.prior + self.S) @ self.u
        self.prior, self.S = prior, decay * self.S
        self.u = np.linalg.solve(self.prior + self.S, c)


@pytest.mark.parametrize("size", [1, 2, 5, 14, 40])
def test_rows_weights_steps_decay_and_a_new_prior(size):
    rng = np.random.default_rng(size)
    G = rng.normal(size=(size, size))
    prior = np.eye(size) + 0.1 * G @ G.T
    fast, slow = Sequential(prior, outputs=2), Dense(prior, 2)
    for t in range(6 * fast.period + 1):
        z, weight, noise = rng.normal(size=size), rng.uniform(0.0, 2.0), rng.normal(size=2)

        def steps_at(f, q, weight=weight, noise=noise):
            return (f - noise) / (1.0 + weight * q)

        f, q = learn(fast, z, weight, steps_at)
        expected = slow.learn(z, weight, steps_at)
        # Condition numbers are below 1e4, and rounding is that of some hundred operations.
        assert f == pytest.approx(expected[0], abs=1e6 * EPS)
        assert q == pytest.approx(expected[1], abs=1e6 * EPS)
        if fast.pending == fast.period:
            decay = 0.9 if t % 2 else 1.0
            fast.end_period(decay)
            slow.decay(decay, slow.prior)
        if t == 4 * fast.period + 1:
            fast.change_prior(2.0 * prior)
            slow.decay(1.0, 2.0 * prior)
    assert fast.u == pytest.approx(slow.u, abs=1e6 * EPS)
    assert fast.running_sum() == pytest.approx(slow.prior + slow.S, abs=1e6 * EPS)


def squared(f, q):
    return (f - 1.0) / (1.0 + q)


def test_marks_and_files_keep_all():
    Z = np.random.default_rng(0).normal(size=(30, 3))
    state = Sequential(np.eye(3))
    for z in Z[:7]:
        learn(state, z, 1.0, squared)
        if state.pending == state.period:
            state.end_period()
    saved, mark = state.state(), state.mark()
    copy = Sequential(np.eye(3))
    copy.load_state(Stored(state.state(), "Sequential"))
    assert_identical(copy.state(), saved)
    for one in (state, copy):
        for z in Z[7:]:
            learn(one, z, 1.0, squared)
            if one.pending == one.period:
                one.end_period()
    assert_identical(copy.state(), state.state())
    state.restore(mark)
    assert_identical(state.state(), saved)


def test_a_pivot_that_is_rounding_is_as_large_as_rounding_and_nan_is_refused():
    state = Sequential(1e-30 * np.eye(2))
    for z in ([3.0, 1.0], [3e8, 1e8]):
        learn(state, np.array(z), 1.0, squared)
    state.end_period()
    pivots = np.diagonal(state.state()["L"][[0, 1, 1, 2]].reshape(2, 2))
    assert pivots[1] ** 2 == pytest.approx(3 * EPS * 1e16, rel=1e-12)
    learn(state, np.array([np.nan, 0.0]), 1.0, squared)
    with pytest.raises(NumericalError, match="not positive definite"):
        state.end_period()


def fitted(rows=30, size=5):
    """A state with rows that wait, and A and c from its definition."""
    rng = np.random.default_rng(2)
    Z, y, prior = rng.normal(size=(rows, size)), rng.normal(size=rows), np.diag(rng.uniform(0.5, 2.0, size))
    state = Sequential(prior)
    for z, target in zip(Z, y, strict=True):
        learn(state, z, 1.0, lambda f, q, y=target: (f - y) / (1.0 + q))
        if state.pending == state.period:
            state.end_period()
    assert state.pending
    return state, prior + Z.T @ Z, Z.T @ y


def test_what_a_coordinate_is_worth_and_the_best_without_it():
    state, A, c = fitted()
    u, gone, rest = state.u[:, 0], [1, 3], [0, 2, 4]
    np.testing.assert_allclose(u, np.linalg.solve(A, c), rtol=1e-10)

    def value(w):
        return w @ A @ w - 2.0 * c @ w

    best = np.zeros(5)
    best[rest] = np.linalg.solve(A[np.ix_(rest, rest)], c[rest])
    np.testing.assert_allclose(state.without(gone, u), best[rest], rtol=1e-6)
    assert state.removal_cost(gone, u[gone]) == pytest.approx(value(best) - value(u), rel=1e-6)
    alone = [state.removal_cost([i], u[[i]]) for i in range(5)]
    np.testing.assert_allclose(state.removal_costs(u), alone, rtol=1e-6)


def test_fewer_coordinates_keep_their_rows():
    state, A, _ = fitted()
    rest = np.array([0, 2, 4])
    other = state.only(rest)
    np.testing.assert_allclose(other.running_sum(), A[np.ix_(rest, rest)], rtol=1e-12)
    assert not other.u.any()
