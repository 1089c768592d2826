"""Regret bounds of the methods on features and on a budget, each of a run, against a stated comparator.

The published ones hold with a probability or of a regularized sum; what is tested is the step of their proofs
that holds of every run: gradient descent telescopes, and what features, spans and budgets leave out is added
as it was measured. ``f`` is the comparator, ``sum_i a_i k(x_i, .)``, with |f| <= 1; C = 1, k(x,x) = 1.
"""

import functools
import math

import numpy as np
import pytest

import effort
import naive
from kons import Gaussian, Hinge, Squared, recipes
from kons.core.feature_maps import Fourier

ROWS, ETA, L = 200, 0.1, 4.0  # L: |slope| of the squared loss on [-1, 1]
WIDE = Gaussian(1.5)
SEEDS = range(effort.amount(2, 30))


@functools.cache
def game(seed):
    """Rows, targets, their kernel, and the coefficients of f over the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 2))
    K = naive.gaussian_gram(X, 1.5)
    a = np.zeros(ROWS)
    a[rng.choice(ROWS, 4, replace=False)] = rng.normal(size=4)
    a *= 0.95 / max(np.sqrt(a @ K @ a), np.abs(a).sum())
    y = np.clip(K @ a + 0.2 * rng.normal(size=ROWS), -1.0, 1.0)
    if seed % 2:
        y = rng.choice([-1.0, 1.0], ROWS) * np.abs(y)  # nothing to learn
    return X, y, K, a


def regret(trace, y, values):
    return trace.loss.sum() - np.sum((values - y) ** 2)


def outside(K, kept):
    """The part of each row outside the span of the atoms that there are when it is learned."""
    atoms, rho = [], np.zeros(len(K))
    for t in range(len(K)):
        if kept[t]:
            atoms.append(t)
        else:
            at = K[t, atoms]
            rho[t] = max(K[t, t] - at @ np.linalg.solve(K[np.ix_(atoms, atoms)], at), 0.0)
    return rho


@pytest.mark.parametrize("name", ["fogd", "fastfood"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_features(name, seed):
    """Lu et al., Theorem 1: ``(1 + eps)|a|_1^2/(2 eta) + eta L^2 T/2 + eps L T |a|_1``.

    eps is how far the features are from the kernel: measured here, with probability 1 - delta in the paper.
    """
    X, y, K, a = game(seed)
    length = 2.0 * np.abs(a).sum()  # values of w^T z stay within C
    a = a / max(length, 1.0)
    learner = getattr(recipes, name)(WIDE, Squared(), dimension=200, step_size=ETA, seed=seed)
    trace = learner.advance(X, y)
    Z = learner.transform(X)
    eps, w, size = np.abs(Z @ Z.T - K).max(), Z.T @ a, np.abs(a).sum()
    left_out = np.abs(trace.slope) @ np.abs(Z @ w - K @ a)
    of_run = w @ w / (2.0 * ETA) + ETA / 2.0 * np.sum(trace.slope**2) + left_out
    published = (1.0 + eps) * size**2 / (2.0 * ETA) + ETA / 2.0 * L**2 * ROWS + eps * L * ROWS * size
    assert regret(trace, y, K @ a) <= of_run <= published
    if name == "fogd":  # frequencies are independent: Hoeffding for each pair of rows
        assert eps <= math.sqrt(2.0 * math.log(2.0 * ROWS**2 / 1e-6) / 100)


@pytest.mark.parametrize("seed", SEEDS)
def test_span_of_the_first_points(seed):
    """NOGD: ``|f|^2/(2 eta) + eta L^2 T/2 + L T |f| sqrt(|K - K'|)``, K' the kernel in the span."""
    X, y, K, a = game(seed)
    trace = recipes.nogd(WIDE, Squared(), max_atoms=12, step_size=ETA).advance(X, y)
    rho, norm = outside(K, trace.kept), math.sqrt(a @ K @ a)
    paid = norm**2 / (2.0 * ETA) + ETA / 2.0 * np.sum(trace.slope**2 * (1.0 - rho))
    of_run = paid + norm * np.abs(trace.slope) @ np.sqrt(rho)
    atoms = np.flatnonzero(trace.kept)
    inside = K[:, atoms] @ np.linalg.solve(K[np.ix_(atoms, atoms)], K[atoms])
    spectral = norm * L * ROWS * math.sqrt(np.linalg.norm(K - inside, 2))
    assert len(atoms) == 12
    assert regret(trace, y, K @ a) <= of_run <= norm**2 / (2 * ETA) + ETA / 2 * L**2 * ROWS + spectral


@pytest.mark.parametrize("seed", SEEDS)
def test_ball_of_the_span_of_independent_points(seed):
    """AOGD-ALD: O(U sqrt(loss of f)) for |f| <= U and a tolerance of 25/T, its constants as they come out.

    Steps U/(alpha + sqrt(S)) in a ball of diameter 2U pay U (2 alpha + 3 sqrt(S)); S, the sum of squared
    slopes, is at most four times the own loss.
    """
    X, y, K, a = game(seed)
    radius, alpha, tolerance = 1.0, 0.5, 25.0 / ROWS
    learner = recipes.aogd_ald(WIDE, Squared(), radius=radius, regularization=alpha, tolerance=tolerance)
    trace = learner.advance(X, y)
    rho = outside(K, trace.kept)
    assert rho.max() <= tolerance * (1.0 + 1e-9)
    S = np.sum(trace.slope**2 * (1.0 - rho))
    paid = radius * (2.0 * alpha + 3.0 * math.sqrt(S)) + radius * np.abs(trace.slope) @ np.sqrt(rho)
    of_f = np.sum((K @ a - y) ** 2)
    assert trace.loss.sum() <= of_f + paid
    c = radius * (6.0 + 2.0 * math.sqrt(tolerance * ROWS))
    root = c / 2.0 + math.sqrt(c**2 / 4.0 + of_f + 2.0 * radius * alpha)
    assert math.sqrt(trace.loss.sum()) <= root


@pytest.mark.parametrize("seed", SEEDS)
def test_sketches_that_are_renewed(seed):
    """SkeGD from its first sketches on: gradient descent's in features that change with time.

    v is f in the features, as near to it on the rows as they come:
    ``|u - v|^2/(2 eta) + eta sum g^2 |z|^2/2 + sum |g| |f - v^T z|``, and at each change what
    ``|u - v|^2/(2 eta)`` grows by.
    """
    X, y, K, a = game(seed)
    learner = recipes.skegd(
        WIDE, Squared(), max_atoms=12, columns=10, dimension=12, rank=8, step_size=ETA, seed=seed
    )
    start = next(t for t in range(ROWS) if learner.advance(X[t : t + 1], y[t : t + 1]) and t > 12)
    while learner.transform(X[:1]).shape[1] != 8:
        start += 1
        learner.advance(X[start : start + 1], y[start : start + 1])
    features, total, moves = learner.transform(X), 0.0, 0
    v = np.linalg.lstsq(features, K @ a, rcond=None)[0]
    bound = np.sum((learner.weights[:, 0] - v) ** 2) / (2.0 * ETA)
    for t in range(start + 1, ROWS):
        u, z = learner.weights[:, 0], features[t]
        trace = learner.advance(X[t : t + 1], y[t : t + 1])
        g = float(trace.slope[0])
        total += float(trace.loss[0]) - (K[t] @ a - y[t]) ** 2
        bound += ETA / 2.0 * g**2 * (z @ z) + abs(g) * abs(K[t] @ a - v @ z)
        if np.array_equal(features, after := learner.transform(X)):
            continue
        stepped, features, moves = (
            u - (u @ z - trace.prediction[0]) / (z @ z) * z - ETA * g * z,
            after,
            moves + 1,
        )
        bound -= np.sum((stepped - v) ** 2) / (2.0 * ETA)
        v = np.linalg.lstsq(features, K @ a, rcond=None)[0]
        bound += np.sum((learner.weights[:, 0] - v) ** 2) / (2.0 * ETA)
    assert moves > 10
    assert total <= bound


@pytest.mark.parametrize("seed", SEEDS)
def test_points_that_become_features(seed):
    """DualSGD without decay: ``|f|^2/(2 eta) + eta sum g^2/2 + eps sum |g_t| (what has gone by then)``."""
    X, y, K, a = game(seed)
    learner = recipes.dual_sgd(WIDE, Squared(), max_points=10, dimension=200, step_size=ETA, seed=seed)
    features = Fourier(WIDE, 200, seed)
    features.start(2)
    Z = features.features(X)
    eps, total, bound, moved = np.abs(Z @ Z.T - K).max(), 0.0, a @ K @ a / (2.0 * ETA), 0.0
    for t in range(ROWS):
        gone = moved - np.abs(learner.coefficients).sum()
        trace = learner.advance(X[t : t + 1], y[t : t + 1])
        g = abs(float(trace.slope[0]))
        bound += ETA / 2.0 * g**2 + eps * g * gone
        moved += ETA * g
        total += float(trace.loss[0])
    assert learner.size == 10
    assert total - np.sum((K @ a - y) ** 2) <= bound


def test_unbiased_removal():
    """BOGD on ``loss + (lambda/2)|f|^2``: ``|f|^2/(2 eta) + sum E|f_(t+1) - f_t|^2/(2 eta)``, a mean of runs.

    A step moves f by eta (g k(x, .) + lambda f), and a removal, which is unbiased, by squares whose mean is
    (B |theta|^2 - |f|^2)/(B - 1)^2.
    """
    rows, B, runs = 150, 20, 12
    X, K, left = game(0)[0][:rows], game(0)[2][:rows, :rows], 1.0 - 1.0 / B
    decay = (1.0 - left) / ETA  # by which coefficients stay what they are on average
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 0] > 0.0, 1.0, -1.0)
    a = 0.5 * np.linalg.solve(K + 10.0 * np.eye(rows), y)
    best = np.maximum(0.0, 1.0 - y * (K @ a)).sum() + rows * decay / 2.0 * (a @ K @ a)
    paid = moved = 0.0
    for seed in range(runs):
        given = {"bound": 1e6, "decay": decay, "largest": 1e6, "max_points": B, "seed": seed}
        learner = recipes.bogd(WIDE, Hinge(), step_size=ETA, when_full="unbiased", **given)
        for t in range(rows):
            theta = learner.coefficients
            norm2 = theta @ naive.gaussian_gram(learner.points, 1.5) @ theta if t else 0.0
            trace = learner.advance(X[t : t + 1], y[t : t + 1])
            g, value = float(trace.slope[0]), float(trace.prediction[0])
            paid += float(trace.loss[0]) + decay / 2.0 * norm2
            moved += ETA**2 * (g**2 + 2.0 * decay * g * value + decay**2 * norm2)
            if len(theta) == B and g != 0.0:
                moved += left**2 * (B * theta @ theta - norm2) / (B - 1) ** 2
        assert learner.size == B
    assert paid / runs <= best + (a @ K @ a + moved / runs) / (2.0 * ETA)
