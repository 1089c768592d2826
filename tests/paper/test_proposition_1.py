"""Proposition 1 without its spare factor: ``2*Regret(w) <= alpha*|w|^2 + R_G + R_D(w)`` for feasible w."""

from __future__ import annotations

import numpy as np
import pytest

from kons import KONS, Linear, Logistic, SketchedKONS, Squared, SquaredHinge
from kons.policies import Leverage


def games(seed):
    """A random game: a loss, a bound, a stream of points and targets, and comparators within the bound."""
    rng = np.random.default_rng(seed)
    loss = [Squared(), Logistic(), SquaredHinge()][seed % 3]
    bound, alpha = rng.choice([0.3, 1.0, 2.0]), 10.0 ** rng.uniform(-2, 1)
    X = rng.normal(size=(rng.integers(20, 120), 4))
    score = X @ rng.normal(size=4) + rng.normal(size=len(X))
    y = np.clip(score, -bound, bound) if isinstance(loss, Squared) else np.where(score > 0, 1.0, -1.0)
    comparators = rng.normal(size=(40, 4))
    scale = bound / np.abs(X @ comparators.T).max(axis=0)
    return loss, bound, alpha, X, y, comparators * (scale * rng.uniform(0, 1, 40))[:, None], seed


@pytest.mark.parametrize("sketched", [False, True])
def test_the_bound_holds_in_random_games(sketched):
    tightest = np.inf
    for seed in range(150):
        loss, bound, alpha, X, y, comparators, coin = games(seed)
        options = {"bound": bound, "regularization": alpha}
        learner = (
            SketchedKONS(Linear(), loss, policy=Leverage(floor=0.2), seed=coin, **options)
            if sketched
            else KONS(Linear(), loss, **options)
        )
        trace = learner.advance(X, y)
        sigma = loss.curvature(bound)
        for w in comparators:
            f = X @ w
            regret = np.sum(trace.loss) - np.sum(loss.value(f, y))
            drift = np.sum((trace.weight - sigma * trace.slope**2) * (trace.prediction - f) ** 2)
            total = alpha * w @ w + trace.gain + drift
            assert 2 * regret <= total * (1 + 1e-12)
            tightest = min(tightest, total - 2 * regret)
    assert tightest >= 0.0
