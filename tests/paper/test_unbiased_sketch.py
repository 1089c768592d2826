"""The Discussion's weighted sketch is unbiased: A~' minus the run's own sum has mean 0 over coins.

    A~' = sum_s (z_s/p_s) eta g_s g_s^T          the run's own sum = sum_s eta g_s g_s^T

The slopes depend on earlier coins, so each difference is a martingale: its mean is 0 whatever the
run did. Tested per entry by z = mean/standard error over many seeds, |z| <= 4.5: with all entries of
all cases below, chance alone exceeds that once in some four thousand random draws of 400 seeds, and,
with the heavier tails of Student's distribution, in some two thousand draws of 100.
"""

import numpy as np
import pytest

import effort
from kons import Linear, SketchedKONS, Squared
from kons.policies import Leverage

SEEDS, ROWS, WIDTH = effort.amount(100, 400), 250, 3
ETA = 1 / 8
UPPER = np.triu_indices(WIDTH)


def stream():
    rng = np.random.default_rng(20_170_806)  # far from the seeds of the coins
    X = rng.normal(size=(ROWS, WIDTH)) * [1.0, 0.6, 0.3]
    return X, np.tanh(X @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=ROWS))


def differences(weighted, **options):
    """Upper triangles of A~' - sum eta g g^T and of the sum, one row per seed; and the kept part."""
    X, y = stream()
    outer = np.einsum("ti,tj->tij", X, X)[:, UPPER[0], UPPER[1]]
    found, own, kept = [], [], []
    for seed in range(SEEDS):
        learner = SketchedKONS(Linear(), Squared(), weighted=weighted, seed=seed, **options)
        trace = learner.advance(X, y)
        sums = ETA * trace.slope**2
        found.append((trace.weight - sums) @ outer)
        own.append(sums @ outer)
        kept.append(trace.kept.mean())
    return np.array(found), np.array(own), np.mean(kept)


def scores(found):
    return found.mean(axis=0) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))


@pytest.mark.parametrize("shared_coins", [True, False])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_the_weighted_sketch_is_unbiased(shared_coins, floor):
    found, own, kept = differences(
        weighted=True, shared_coins=shared_coins, policy=Leverage(4.0, floor=floor)
    )
    assert kept < 0.6
    print(f"kept {kept:.2f}, z = {np.round(scores(found), 2)}")
    assert np.abs(scores(found)).max() <= 4.5
    # and the test could have seen a bias of a few percent; the error falls as the root of the seeds
    error = found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    diagonal = [i for i, pair in enumerate(zip(*UPPER, strict=True)) if pair[0] == pair[1]]
    assert (error[diagonal] < 0.4 / np.sqrt(SEEDS) * own.mean(axis=0)[diagonal]).all()


def test_the_unweighted_sketch_is_not():
    found, _, _ = differences(weighted=False, policy=Leverage(4.0, floor=0.1))
    assert np.abs(scores(found)).max() > np.sqrt(SEEDS)
