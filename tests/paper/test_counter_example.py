"""The paper's last example: one point, targets +C and -C in turn. A span settles it with one atom.

Section 5 of the paper: Sketched-KONS either keeps adding the same point or lets its regret grow. In the
span of the point there is one coordinate, every row enters A, and regret grows as log T.
"""

import numpy as np
import pytest

import effort
from kons import EmbeddedKONS, Gaussian, SketchedKONS, Squared
from kons.policies import Dependence, Leverage
from kons.streams import alternating_labels

LONG = 100_000
SHORT = 3000


def regret(trace, bound):
    """Cumulative, against the best fixed function: 0, which loses bound^2 a row."""
    return np.cumsum(trace.loss - bound**2)


@pytest.fixture(scope="module", params=[("gradient", 1.0), ("gradient", 0.5), ("hessian", 1.0)])
def embedded(request):
    second_order, bound = request.param
    X, y = alternating_labels(LONG, bound)
    learner = EmbeddedKONS(Gaussian(), Squared(), bound=bound, second_order=second_order)
    return learner, regret(learner.advance(X, y), bound), bound


def test_zero_is_the_best_fixed_function():
    y = alternating_labels(SHORT, 0.7)[1]
    at = np.linspace(-0.7, 0.7, 141)
    assert at[np.argmin(((at[:, None] - y) ** 2).sum(axis=1))] == pytest.approx(0.0, abs=1e-12)


def test_one_atom(embedded):
    learner, _, _ = embedded
    np.testing.assert_array_equal(learner.atoms, [[1.0]])
    assert learner.size == 1
    assert learner.rows_seen == LONG


def fitted(t, values, shape):
    """The slope of ``values`` against ``shape(t)`` by least squares, and the share left unexplained."""
    design = np.column_stack([shape(t), np.ones(len(t))])
    coefficients, *_ = np.linalg.lstsq(design, values, rcond=None)
    rest = values - design @ coefficients
    return coefficients[0], rest.var() / values.var()


def test_regret_grows_as_the_logarithm(embedded):
    _, total, bound = embedded
    t = np.unique(np.logspace(2, 5, 400).astype(int))
    t = t - t % 2  # after a pair: inside one, the regret jumps by 2*bound*prediction
    values = total[t - 1]
    slope, unexplained = fitted(t, values, np.log)
    assert slope > 0.0
    assert unexplained < 1e-3
    # Neither root nor line comes near it.
    assert fitted(t, values, np.sqrt)[1] > 50 * unexplained
    assert fitted(t, values, lambda t: t)[1] > 50 * unexplained
    # Each decade adds the same.
    decades = np.diff(total[[99, 999, 9999, 99_999]])
    np.testing.assert_allclose(decades, decades[-1], rtol=0.1)
    np.testing.assert_allclose(decades[-1], slope * np.log(10), rtol=0.1)
    assert total[-1] < 100 * bound**2 < LONG * bound**2 / 500


def test_the_bound_of_theorem_1_holds_without_its_comparator_term(embedded):
    """R_D = 0 at w = 0 for sigma: 2*Regret <= R_G, which is a logarithm."""
    learner, total, bound = embedded
    if learner.second_order == "gradient":
        X, y = alternating_labels(LONG, bound)
        again = EmbeddedKONS(Gaussian(), Squared(), bound=bound)
        trace = again.advance(X, y)
        curvature_term = np.sum((trace.weight - trace.slope**2 / (8 * bound**2)) * trace.prediction**2)
        assert curvature_term == pytest.approx(0.0, abs=1e-9)
        assert 2 * total[-1] <= trace.gain
        # log(1 + w q) sums to log det, and g^2 q/(1 + w q) <= that over sigma.
        assert trace.gain <= 8 * bound**2 * again.log_determinant * (1 + 1e-9)
        assert again.log_determinant < np.log(1 + LONG * 4 / 8 * 4)


def test_sketched_kons_pays_in_points_or_in_regret():
    """Keeping the coin's price low costs regret; paying it fills memory with one and the same point."""
    X, y = alternating_labels(SHORT)
    learner = EmbeddedKONS(Gaussian(), Squared())
    in_span = regret(learner.advance(X, y), 1.0)
    assert learner.size == 1
    frugal = SketchedKONS(Gaussian(), Squared(), policy=Leverage(0.5), seed=0)
    frugal_regret = regret(frugal.advance(X, y), 1.0)[-1]
    lavish = SketchedKONS(Gaussian(), Squared(), policy=Leverage(floor=1.0), seed=0)
    rows = effort.amount(1000, SHORT)
    lavish_regret = regret(lavish.advance(X[:rows], y[:rows]), 1.0)[-1]
    # All points: the regret of the span, and as many copies of one point.
    assert lavish.size == rows
    assert lavish_regret == pytest.approx(in_span[rows - 1], rel=1e-6)
    # Few points: still more than one, and many times the regret.
    assert 1 < frugal.size < SHORT / 20
    assert frugal_regret > 10 * in_span[-1]


@pytest.mark.parametrize("policy", [Leverage(0.5), Leverage(floor=1.0), Dependence(0.0)], ids=repr)
def test_whoever_decides_there_is_one_atom(policy):
    X, y = alternating_labels(SHORT)
    expected = EmbeddedKONS(Gaussian(), Squared()).advance(X, y)
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=policy, seed=1)
    trace = learner.advance(X, y)
    assert learner.size == 1
    start = int(np.flatnonzero(trace.kept)[0])
    if start == 0:
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    assert regret(trace, 1.0)[-1] <= regret(expected, 1.0)[-1] + 1.0
