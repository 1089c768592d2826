"""Each departure of docs/departures.md: the printed formula fails where ours agrees with the definition."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from kons import KONS, Linear, SketchedKONS, Squared
from kons.policies import Leverage


def stream(rows=60, seed=0, bound=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    # Targets stay inside the bound: a clipped prediction that meets its target would divide by 0 (5).
    return X, np.clip(X @ [1.0, -1.0, 0.5] + 0.2 * rng.normal(size=rows), -0.9 * bound, 0.9 * bound)


def barred_run(X, y, *, bound, alpha, bracket_end, self_kernel, coin=None):
    """Algorithm 1 (or 3, with coins) by the barred Lemmas 2 and 4, with the disputed terms as given."""
    eta = 1.0 / (8.0 * bound**2)
    K = X @ X.T
    g, z, b, predictions = [], [], [], []
    for t in range(len(y)):
        D = np.sqrt(eta) * np.array(g)
        Kbar = D[:, None] * K[:t, :t] * D
        inside = np.flatnonzero(z)
        E = Kbar[np.ix_(inside, inside)] + alpha * np.eye(len(inside))

        def solve(v, E=E, inside=inside):
            out = np.zeros(len(v))
            out[inside] = np.linalg.solve(E, v[inside]) if len(inside) else 0.0
            return out

        raw = 0.0
        if t:
            raw = K[:t, t] * D @ (np.array(b) - solve(Kbar @ np.array(b))) / alpha
        y_hat = np.clip(raw, -bound, bound)
        slope = 2.0 * (y_hat - y[t])
        coin_t = True if coin is None else bool(coin[t])
        kbar = np.sqrt(eta) * slope * D * K[:t, t]
        own = self_kernel(K[t, t], slope**2 * eta)
        h = raw - y_hat
        fraction = alpha * h / (own - kbar @ solve(kbar)) if t and h != 0.0 else 0.0
        projected = y_hat if coin is None or coin_t or bracket_end == "printed, coin ignored" else 0.0
        end = {"corrected": 1.0 / (slope * eta), "printed": 1.0 / eta}.get(bracket_end, 1.0 / (slope * eta))
        b.append(slope * np.sqrt(eta) * (projected - fraction - end))
        g.append(slope)
        z.append(coin_t)
        predictions.append(y_hat)
    return np.array(predictions)


def test_1_to_3_printed_lemma_2_is_off_by_the_whole_range():
    bound, alpha = 0.5, 0.1
    X, y = stream(bound=bound)
    referee = naive.ons_on_targets(X, y, Squared(), bound=bound, alpha=alpha).prediction
    ours = KONS(Linear(), Squared(), bound=bound, regularization=alpha).advance(X, y).prediction
    assert np.mean(np.abs(referee) == bound) > 0.1, "the stream must clip for the terms to matter"
    assert np.allclose(ours, referee, atol=1e-10)

    def run(end, own):
        return barred_run(X, y, bound=bound, alpha=alpha, bracket_end=end, self_kernel=own)

    assert np.allclose(run("corrected", lambda k, w: k * w), referee, atol=1e-8)
    assert np.max(np.abs(run("printed", lambda k, w: k * w) - referee)) == pytest.approx(2 * bound)
    assert np.max(np.abs(run("corrected", lambda k, w: k) - referee)) > 0.1 * bound


def test_4_printed_lemma_4_ignores_the_coin():
    bound, alpha = 0.5, 0.1
    X, y = stream(bound=bound, seed=1)
    learner = SketchedKONS(
        Linear(), Squared(), bound=bound, regularization=alpha, policy=Leverage(floor=0.3), seed=4
    )
    trace = learner.advance(X, y)
    assert 0.2 < trace.kept.mean() < 0.9
    rng = np.random.default_rng(4)
    coins = {"beta": 1.0, "eps": 0.5, "gamma": 0.3}
    referee = naive.ons_on_targets(X, y, Squared(), bound=bound, alpha=alpha, coins=coins, rng=[rng])
    assert np.allclose(trace.prediction, referee.prediction, atol=1e-10)

    def run(end):
        return barred_run(
            X,
            y,
            bound=bound,
            alpha=alpha,
            bracket_end=end,
            self_kernel=lambda k, w: k * w,
            coin=trace.kept,
        )

    assert np.allclose(run("corrected"), referee.prediction, atol=1e-8)
    assert np.max(np.abs(run("printed, coin ignored") - referee.prediction)) > 0.1 * bound


def test_5_a_loss_met_exactly():
    X, y = stream()
    y[0] = 0.0  # the first prediction is 0: its slope is exactly 0
    with np.errstate(divide="ignore", invalid="ignore"):
        printed = barred_run(
            X, y, bound=0.5, alpha=0.1, bracket_end="corrected", self_kernel=lambda k, w: k * w
        )
    assert np.isnan(printed).any()
    trace = KONS(Linear(), Squared(), bound=0.5, regularization=0.1).advance(X, y)
    referee = naive.ons_on_targets(X, y, Squared(), bound=0.5, alpha=0.1).prediction
    assert trace.slope[0] == 0.0
    assert np.allclose(trace.prediction, referee, atol=1e-10)


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(float).eps,
    reason="the referee needs more digits than float64, which this platform's long double has not",
)
def test_12_the_sum_loses_digits_that_the_expansion_keeps():
    """Project a prediction on the bound, then meet the same point again: f must be C there."""
    alpha, bound = 1e-4, 1.0
    rng = np.random.default_rng(3)
    worst_sum = worst_expansion = 0.0
    projected = 0
    for _ in range(50):
        X = rng.normal(size=(4, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = np.array([1.0, -1.0, 1.0, 1.0])
        learner = KONS(Linear(), Squared(), bound=bound, regularization=alpha)
        trace = learner.advance(X, y)
        # A = alpha*I + sum w x x^T and the right-hand side b = w*y_hat - h/q - g (Lemma 1) in exact terms:
        # b is read off A u = sum b x, row by row, so that the form differs in nothing but its rounding.
        w, q, g = trace.weight, trace.inverse_form, trace.slope
        raw = np.array([_raw_prediction(X, y, t, bound, alpha) for t in range(len(y))])
        h = (raw - trace.prediction).astype(float)
        b = w * trace.prediction - np.where(h != 0, h / q, 0.0) - g
        root = np.sqrt(w)
        G = alpha * np.eye(4) + root[:, None] * (X @ X.T) * root
        x = X[-1]
        by_sum = (X @ x @ b - (root * (X @ x)) @ np.linalg.solve(G, root * (X @ X.T @ b))) / alpha
        exact = _raw_prediction(np.vstack([X, x]), np.append(y, 0.0), 4, bound, alpha)
        if h[-1] == 0.0:
            continue
        projected += 1
        worst_sum = max(worst_sum, abs(by_sum - exact))
        unclipped = KONS.from_state(learner.parameters() | {"bound": 1e6}, learner.state())
        worst_expansion = max(worst_expansion, abs(unclipped.predict_one(x) - exact))
    assert projected > 10
    assert 10 * worst_expansion < worst_sum


def _raw_prediction(X, y, t, bound, alpha):
    """phi_t^T u_t by the online Newton step in extended precision."""
    X, y = X.astype(np.longdouble), y.astype(np.longdouble)
    inverse, u = np.eye(X.shape[1], dtype=np.longdouble) / np.longdouble(alpha), 0 * X[0]
    eta = np.longdouble(1.0) / (8 * np.longdouble(bound) ** 2)
    for s in range(t):
        v = inverse @ X[s]
        q, raw = X[s] @ v, X[s] @ u
        y_hat = np.clip(raw, -bound, bound)
        g = 2 * (y_hat - y[s])
        w = eta * g * g
        u = u - ((raw - y_hat) / q + g / (1 + w * q)) * v
        inverse = inverse - w / (1 + w * q) * np.outer(v, v)
    return X[t] @ u
