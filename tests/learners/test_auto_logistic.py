"""The logistic expert against penalized logistic regression written out."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kons.kernels import Gaussian
from kons.learners.auto.logistic import LEAST_CURVATURE, SpanLogistic

KERNEL, ALPHA = Gaussian(1.0), 0.05


def rows(count=300, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(count, 2))
    noisy = U[:, 0] + 0.5 * U[:, 1] ** 2 + 0.5 * rng.normal(size=count)
    codes = np.digitize(noisy, np.linspace(-0.5, 1.0, classes - 1))
    return U, np.eye(classes)[codes]


def features(U, atoms):
    return np.hstack([KERNEL.gram(U, atoms), np.ones((len(U), 1))])


def penalty_of(atoms):
    penalty = 30.0 * np.eye(len(atoms) + 1)
    penalty[:-1, :-1] = KERNEL.gram(atoms, atoms)
    return ALPHA * penalty


def expert_of(U, Y, atoms, roots=None):
    expert = SpanLogistic(KERNEL, atoms, ALPHA, outputs=Y.shape[1])
    expert.learn_past(U, Y, np.ones(len(U)) if roots is None else roots)
    return expert


def test_the_first_fit_minimizes_the_penalized_log_loss():
    U, Y = rows()
    atoms = U[:15]
    K, penalty, signs = features(U, atoms), penalty_of(atoms), 2.0 * Y[:, 0] - 1.0

    def loss(t):
        return np.logaddexp(0.0, -signs * (K @ t)).sum() + 0.5 * t @ penalty @ t

    best = minimize(
        loss,
        np.zeros(16),
        jac=lambda t: K.T @ (-signs / (1.0 + np.exp(signs * (K @ t)))) + penalty @ t,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    expert = expert_of(U, Y, atoms)
    assert loss(expert.coefficients()[:, 0]) < 1.001 * best.fun  # after five steps from nothing
    got = expert.predict(U)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, atol=1e-12)  # two classes are one problem


def test_far_from_all_rows_a_rare_class_is_less_unlikely_than_among_the_others():
    U, _ = rows(400)
    Y = np.zeros((400, 2))
    Y[:, 0] = 1.0
    Y[:4] = 0.0, 1.0
    expert = SpanLogistic(KERNEL, U[:50], 1.0, outputs=2)
    expert.learn_past(U, Y, np.ones(400))
    far, near = expert.predict(U[:1] + 100.0)[0, 1], expert.predict(U[100:])[:, 1]
    assert far > 10.0 * np.median(near)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_chunk_is_one_second_order_step(classes):
    U, Y = rows(364, classes)
    atoms = U[:15]
    expert = expert_of(U[:300], Y[:300], atoms)
    theta, A = expert.coefficients().copy(), penalty_of(atoms) + np.tril(expert.S) + np.tril(expert.S, -1).T
    weights = np.random.default_rng(1).integers(0, 3, size=64).astype(float)
    said = expert.advance(U[300:], None, Y[300:], np.sqrt(weights), np.arange(64))
    expert.end_period(refit=True)
    K = features(U[300:], atoms)
    P = 1.0 / (1.0 + np.exp(-K @ theta))
    np.testing.assert_allclose(said, P)
    curvature = np.maximum((P * (1.0 - P)).max(axis=1), LEAST_CURVATURE)
    A += K.T @ ((weights * curvature)[:, None] * K)
    step = np.linalg.solve(A, K.T @ (weights[:, None] * (Y[300:] - P)))
    # Coefficients of atoms that lie close are hardly determined; what they say is.
    expected = 1.0 / (1.0 + np.exp(-features(U, atoms) @ (theta + step)))
    np.testing.assert_allclose(expert.predict(U), expected, atol=1e-5)


def test_classes_that_can_be_told_apart_stay_numbers():
    U = np.concatenate([np.full((200, 1), -3.0), np.full((200, 1), 3.0)])
    Y = np.repeat(np.eye(2), 200, axis=0)
    expert = expert_of(U, Y, U[[0, -1]])
    for _ in range(50):
        expert.advance(U[:64], None, Y[:64], np.ones(64), np.arange(64))
        expert.end_period(refit=True)
    assert np.isfinite(expert.coefficients()).all()
    assert (expert.predict(U).argmax(axis=1) == Y.argmax(axis=1)).all()


def test_a_class_that_nobody_has_seen_changes_nothing_until_it_comes():
    U, Y = rows()
    known, ahead = expert_of(U, Y, U[:15]), expert_of(U, np.pad(Y, ((0, 0), (0, 1))), U[:15])
    assert ahead.predict(U[:5])[:, :2].tolist() == known.predict(U[:5]).tolist()
    known.add_output()
    for _ in range(2):
        for expert in (known, ahead):
            assert expert.predict(U)[:, 2].max() == 0.0
            expert.advance(U[:64], None, np.pad(Y[:64], ((0, 0), (0, 1))), np.ones(64), np.arange(64))
            expert.end_period(refit=True)
        assert ahead.coefficients().tolist() == known.coefficients().tolist()
    new = np.tile([0.0, 0.0, 1.0], (64, 1))
    for _ in range(5):
        ahead.advance(U[:64], None, new, np.ones(64), np.arange(64))
        ahead.end_period(refit=True)
    assert (ahead.predict(U[:64]).argmax(axis=1) == 2).mean() > 0.5


def test_a_mark_is_kept_when_a_class_is_seen_for_the_first_time():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(200, 1))
    Y = np.column_stack([U > 0.0, U <= 0.0, np.zeros(200)]).astype(float)
    expert = SpanLogistic(Gaussian(1.0), U[:10], 0.01, outputs=3)
    expert.learn_past(U, Y, np.ones(200))
    mark, before = expert.mark(), expert.predict(U)
    Y[:20] = [0.0, 0.0, 1.0]
    expert.advance(U[:20], None, Y[:20], np.ones(20), np.arange(20))
    expert.end_period(False)
    assert (expert.predict(U)[:, 2] > 0.0).all()
    expert.restore(mark)
    np.testing.assert_array_equal(expert.predict(U), before)
