"""Theorem 2: what KORS with ``oversampling="theory"`` guarantees, on streams where it says something.

At small T the theory keeps every point. It says something where points repeat or spread slowly, so
that most probabilities are below 1, which each test asserts. The referee has explicit features.

Measured over 40 seeds with failure = 0.1: (1) and (3) never failed. (2) never failed at alpha <= 50
and failed in 2 runs of 40 at alpha >= 1,000, in each at the first or second row only: there
3*rho*beta*d_onl is still below 1, and a point kept against the odds is more than the bound allows.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import effort
import naive
from kons import KORS, Linear, Polynomial
from kons.policies import Leverage

# The seeds are always the same. Of ten at most one may fail, as of forty at most four: the failure that the
# theorem allows, one run in ten.
SEEDS = effort.amount(10, 40)
# The streams are drawn far from the seeds of the coins: default_rng(seed) may not serve both, or the
# points know the coins and the theorem does not apply (measured: such a run fails at once).
STREAM_SEED = 20_170_806
ROUNDING = 1e-9


@dataclass
class Stream:
    kernel: object
    X: np.ndarray
    Phi: np.ndarray
    weights: np.ndarray
    alpha: float


def three_points(rows, alpha):
    """Three points that are not orthogonal, in unequal shares and random order."""
    points = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.5, 0.5, np.sqrt(0.5)]])
    X = points[np.random.default_rng(STREAM_SEED).choice(3, size=rows, p=[0.6, 0.3, 0.1])]
    return Stream(Linear(), X, X, np.ones(rows), alpha)


def spreading(rows, alpha):
    """Directions in a cone that opens from a line to a half space, with weights, squared."""
    rng = np.random.default_rng(STREAM_SEED)
    polar = np.linspace(0.0, np.pi / 2, rows) * np.sqrt(rng.random(rows))
    around = 2 * np.pi * rng.random(rows)
    X = np.column_stack([np.cos(polar), np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around)])
    weights = rng.uniform(0.25, 1.0, size=rows)
    return Stream(Polynomial(degree=2, offset=0.0), X, naive.quadratic_features(X), weights, alpha)


class Referee:
    """A over all rows at every step, and the leverages, from the definition."""

    def __init__(self, stream):
        self.alpha_I = stream.alpha * np.eye(stream.Phi.shape[1])
        bar = np.sqrt(stream.weights)[:, None] * stream.Phi
        self.outer = np.einsum("ti,tj->tij", bar, bar)
        A = self.alpha_I + np.cumsum(self.outer, axis=0)
        self.tau = np.einsum("ti,ti->t", bar, np.linalg.solve(A, bar[:, :, None])[:, :, 0])
        self.d_onl = np.cumsum(self.tau)
        self.d_eff = np.trace((A[-1] - self.alpha_I) @ np.linalg.inv(A[-1]))
        self.whitening = np.linalg.inv(np.linalg.cholesky(A[9::10]))

    def relative_eigenvalues(self, trace):
        """Those of A^-1 A^I, at every tenth step."""
        entered = np.where(trace.kept, 1.0 / np.where(trace.kept, trace.probability, 1.0), 0.0)
        AI = self.alpha_I + np.cumsum(entered[:, None, None] * self.outer, axis=0)[9::10]
        return np.linalg.eigvalsh(self.whitening @ AI @ self.whitening.swapaxes(1, 2))

    def holds(self, trace, policy, eigenvalues):
        """The three claims, each at every step that is checked."""
        eps, rho = policy.distortion, policy.rho
        accurate = (eigenvalues >= 1 - eps - ROUNDING) & (eigenvalues <= 1 + eps + ROUNDING)
        small = trace.size <= 3 * rho * policy.beta * self.d_onl
        above = self.tau <= trace.leverage_estimate * (1 + ROUNDING)
        below = trace.leverage_estimate <= rho * self.tau * (1 + ROUNDING)
        return accurate.all(), small.all(), (above & below).all()


STREAMS = {
    "three points": (three_points(3_000, 1.0), 0.9),
    "three points, large alpha": (three_points(10_000, 10_000.0), 0.9),
    "spreading": (spreading(4_000, 50.0), 0.9),
    "spreading, finer": (spreading(5_000, 1_000.0), 0.6),
}


@pytest.mark.parametrize("name", effort.some(STREAMS, "three points", "spreading, finer"))
def test_theorem_2(name):
    stream, distortion = STREAMS[name]
    rows = len(stream.X)
    policy = Leverage("theory", distortion=distortion, horizon=rows, failure=0.1)
    referee = Referee(stream)
    failures, deviation = [], 0.0
    for seed in range(SEEDS):
        sampler = KORS(stream.kernel, regularization=stream.alpha, policy=policy, seed=seed)
        trace = sampler.advance(stream.X, stream.weights)
        assert np.mean(trace.probability < 1.0) >= 0.5
        assert sampler.size < rows
        eigenvalues = referee.relative_eigenvalues(trace)
        failures.append([not claim for claim in referee.holds(trace, policy, eigenvalues)])
        deviation = max(deviation, np.abs(eigenvalues - 1).max())
        if not any(failures[-1]):
            # What KORS says of itself: d_onl <= its estimate <= rho*d_onl
            d_onl, estimate = referee.d_onl[-1], sampler.online_effective_dimension
            assert d_onl * (1 - ROUNDING) <= estimate <= policy.rho * d_onl * (1 + ROUNDING)
    fractions = np.mean(failures, axis=0)
    failing = np.mean(np.any(failures, axis=1))
    print(f"failing {failing:g}, by claim {fractions}, |A^-1 A^I - 1| <= {deviation:.3f}, eps {distortion}")
    assert failing <= policy.failure
    assert deviation > 0.02  # the sample is a sample


def test_the_effective_dimension_of_the_sample_is_near_that_of_all_rows():
    stream, distortion = STREAMS["three points, large alpha"]
    policy = Leverage("theory", distortion=distortion, horizon=len(stream.X))
    d_eff = Referee(stream).d_eff
    for seed in range(5):
        sampler = KORS(stream.kernel, regularization=stream.alpha, policy=policy, seed=seed)
        sampler.advance(stream.X)
        assert sampler.size < 0.05 * len(stream.X)
        assert d_eff / policy.rho <= sampler.effective_dimension() <= policy.rho * d_eff
        assert sampler.effective_dimension() == pytest.approx(d_eff, rel=0.5)


def test_the_size_bound_can_be_far_below_the_number_of_rows():
    stream, distortion = STREAMS["three points, large alpha"]
    policy = Leverage("theory", distortion=distortion, horizon=len(stream.X))
    bound = 3 * policy.rho * policy.beta * Referee(stream).d_onl[-1]
    assert bound < 0.5 * len(stream.X)


@pytest.mark.parametrize("name", ["three points", "spreading"])
def test_the_referee_sees_failures(name):
    """With far less oversampling than the theory asks for, most runs fail (1) and (3)."""
    stream, distortion = STREAMS[name]
    policy = Leverage(0.2, distortion=distortion)
    referee = Referee(stream)
    held = []
    for seed in range(effort.amount(8, 20)):
        sampler = KORS(stream.kernel, regularization=stream.alpha, policy=policy, seed=seed)
        trace = sampler.advance(stream.X, stream.weights)
        held.append(referee.holds(trace, policy, referee.relative_eigenvalues(trace)))
    accurate, _, estimated = np.mean(held, axis=0)
    assert accurate < 0.5
    assert estimated < 0.5


def test_theory_keeps_everything_when_there_is_little():
    """Why the streams above are long: at small T the theorem is empty."""
    stream = three_points(200, 1.0)
    policy = Leverage("theory", distortion=0.9, horizon=200)
    trace = KORS(stream.kernel, policy=policy).advance(stream.X[:100])
    assert trace.kept.all()
    assert np.mean(trace.probability < 1.0) < 0.5
