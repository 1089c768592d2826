"""The best function in hindsight, refereed by SciPy's general solvers in explicit features."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kons import Gaussian, Laplace, Linear, Logistic, Polynomial, Squared, SquaredHinge
from kons.errors import ConfigurationError, InputError, NumericalError, TargetError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.theory import hindsight

LOSSES = {"squared": Squared(), "logistic": Logistic(), "squared hinge": SquaredHinge()}


def problem(loss, bound, seed=0, rows=25, width=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    score = 2 * bound * np.sin(2 * X[:, 0]) + 0.7 * bound * rng.normal(size=rows)
    y = np.clip(score, -bound, bound) if isinstance(loss, Squared) else np.where(score > 0, 1.0, -1.0)
    return X, y


def referee(Phi, loss, y, bound, alpha, c=1.0):
    """SLSQP on explicit features, from 0."""
    scale = max(np.sum(c * loss.value(np.zeros(len(y)), y)), 1e-300)
    C = bound * (1 - 1e-12)
    solution = minimize(
        lambda w: (np.sum(c * loss.value(Phi @ w, y)) + alpha / 2 * w @ w) / scale,
        np.zeros(Phi.shape[1]),
        jac=lambda w: (Phi.T @ (c * loss.slope(Phi @ w, y)) + alpha * w) / scale,
        constraints=[
            {"type": "ineq", "fun": lambda w: C - Phi @ w, "jac": lambda w: -Phi},
            {"type": "ineq", "fun": lambda w: C + Phi @ w, "jac": lambda w: Phi},
        ],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    w = solution.x * min(1.0, bound / max(np.abs(Phi @ solution.x).max(), 1e-300))
    return np.sum(c * loss.value(Phi @ w, y)) + alpha / 2 * w @ w


def features(kernel, X):
    """Rows whose inner products are the kernel's values."""
    values, vectors = np.linalg.eigh(kernel.gram(X))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def check(solution, loss, y, bound, alpha, c=1.0):
    """What must be true of any solution, whatever the optimum is."""
    assert np.abs(solution.values).max() <= bound
    assert solution.loss == pytest.approx(np.sum(c * loss.value(solution.values, y)), rel=1e-12)
    assert solution.objective == pytest.approx(solution.loss + alpha / 2 * solution.norm2, rel=1e-12)
    assert solution.gap >= 0.0


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("bound", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("alpha", [0.01, 10.0])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Linear()], ids=["gaussian", "linear"])
def test_agrees_with_a_general_solver(loss, bound, alpha, kernel):
    X, y = problem(loss, bound)
    best = hindsight(kernel, loss, X, y, bound=bound, regularization=alpha)
    check(best, loss, y, bound, alpha)
    truth = referee(features(kernel, X), loss, y, bound, alpha)
    assert best.objective == pytest.approx(truth, rel=1e-6)
    assert best.objective - best.gap <= truth * (1 + 1e-12)
    assert best.gap <= 1e-6 * best.objective
    assert best.exact
    np.testing.assert_allclose(np.clip(best.predict(X), -bound, bound), best.values, atol=1e-9 * bound)


def test_the_grid_has_both_active_and_inactive_constraints():
    for loss in LOSSES.values():
        X, y = problem(loss, 1.0)
        active = [
            hindsight(Gaussian(1.0), loss, X, y, bound=1.0, regularization=alpha).constrained
            for alpha in (0.01, 10.0)
        ]
        assert active == [True, False]


def test_the_unconstrained_squared_loss_is_kernel_ridge():
    X, y = problem(Squared(), 1.0)
    alpha = 5.0
    best = hindsight(Gaussian(1.0), Squared(), X, y, bound=3.0, regularization=alpha)
    K = Gaussian(1.0).gram(X)
    coefficients = np.linalg.solve(K + alpha / 2 * np.eye(len(y)), y)
    np.testing.assert_allclose(best.values, K @ coefficients, atol=1e-10)
    assert best.norm2 == pytest.approx(coefficients @ K @ coefficients)
    elsewhere = np.array([[0.3, -0.2], [4.0, 1.0]])
    np.testing.assert_allclose(best.predict(elsewhere), Gaussian(1.0).gram(elsewhere, X) @ coefficients)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_no_feasible_function_beats_objective_minus_gap(loss):
    rng = np.random.default_rng(3)
    for seed in range(10):
        bound, alpha = rng.choice([0.2, 1.0, 3.0]), 10.0 ** rng.uniform(-3, 1)
        X, y = problem(loss, bound, seed, rows=20)
        best = hindsight(Linear(), loss, X, y, bound=bound, regularization=alpha)
        check(best, loss, y, bound, alpha)
        for w in rng.normal(size=(50, 2)):
            w = w * rng.uniform(0, 1) * bound / np.abs(X @ w).max()
            value = np.sum(loss.value(X @ w, y)) + alpha / 2 * w @ w
            assert best.objective - best.gap <= value


# ---- corners


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_duplicates(loss):
    X, y = problem(loss, 0.5, rows=12)
    twice, both = np.vstack([X, X, X[:1]]), np.concatenate([y, -y, y[:1]])
    best = hindsight(Gaussian(1.0), loss, twice, both, bound=0.5, regularization=0.01)
    check(best, loss, both, 0.5, 0.01)
    assert best.objective == pytest.approx(
        referee(features(Gaussian(1.0), twice), loss, both, 0.5, 0.01), rel=1e-6
    )
    np.testing.assert_allclose(best.values[:12], best.values[12:24], atol=1e-9)
    # A duplicate is the same as a weight of 2.
    weighted = hindsight(Gaussian(1.0), loss, X, y, bound=0.5, regularization=0.01, sample_weight=2.0)
    doubled = hindsight(Gaussian(1.0), loss, np.vstack([X, X]), np.tile(y, 2), bound=0.5, regularization=0.01)
    assert weighted.objective == pytest.approx(doubled.objective, rel=1e-8)


@pytest.mark.parametrize("exact_up_to", [100, 2])
def test_points_without_features(exact_up_to):
    y = np.array([0.5, -1.0, 1.0])
    best = hindsight(Linear(), Squared(), np.zeros((3, 2)), y, exact_up_to=exact_up_to)
    assert (best.loss, best.norm2, best.gap, best.constrained) == (2.25, 0.0, 0.0, False)
    np.testing.assert_array_equal(best.values, 0.0)
    one_zero = hindsight(Linear(), Squared(), [[0.0], [2.0]], [1.0, 1.0], regularization=1e-6)
    np.testing.assert_allclose(one_zero.values, [0.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e3, 1e9])
def test_constant_targets_at_the_bound_and_extreme_regularization(loss, alpha):
    X = np.random.default_rng(5).normal(size=(20, 2))
    y = np.ones(20)
    best = hindsight(Laplace(1.0), loss, X, y, bound=1.0, regularization=alpha)
    check(best, loss, y, 1.0, alpha)
    truth = referee(features(Laplace(1.0), X), loss, y, 1.0, alpha)
    assert best.objective <= truth + 1e-6 * np.sum(loss.value(np.zeros(20), y))
    assert best.objective - best.gap <= truth * (1 + 1e-12)
    assert best.gap <= 1e-6 * best.objective
    if alpha == 1e9:
        assert np.abs(best.values).max() < 1e-7


@pytest.mark.parametrize("bound", [1e-6, 1e6])
def test_tolerances_follow_the_scale_of_the_targets(bound):
    X, y = problem(Squared(), 1.0)
    at_one = hindsight(Gaussian(1.0), Squared(), X, y, bound=1.0, regularization=0.1)
    scaled = hindsight(Gaussian(1.0), Squared(), X, y * bound, bound=bound, regularization=0.1)
    assert at_one.constrained
    assert scaled.objective == pytest.approx(at_one.objective * bound**2, rel=1e-7)
    assert scaled.gap <= 1e-6 * scaled.objective


def test_targets_of_zero_and_rows_without_weight_cost_nothing():
    X, y = problem(Squared(), 1.0)
    for targets, c in ((np.zeros(25), 1.0), (y, 0.0)):
        best = hindsight(Gaussian(1.0), Squared(), X, targets, sample_weight=c)
        assert (best.objective, best.norm2, best.gap) == (0.0, 0.0, 0.0)


def test_one_row():
    best = hindsight(Linear(), Squared(), [[1.0]], [1.0], regularization=2.0)
    assert best.values[0] == pytest.approx(0.5)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_sample_weights(loss):
    X, y = problem(loss, 0.5)
    c = np.random.default_rng(0).exponential(size=25) * (np.arange(25) % 5 > 0)
    best = hindsight(Gaussian(1.0), loss, X, y, bound=0.5, regularization=0.05, sample_weight=c)
    check(best, loss, y, 0.5, 0.05, c)
    truth = referee(features(Gaussian(1.0), X), loss, y, 0.5, 0.05, c)
    assert best.objective == pytest.approx(truth, rel=1e-6)
    assert best.objective - best.gap <= truth * (1 + 1e-12)
    # The bound holds on rows without weight too.
    assert np.abs(best.predict(X)).max() <= 0.5 * (1 + 1e-12)


def test_directions_lost_to_rounding_are_in_the_gap():
    # The second point is 1e-6 from the first: too near to be a coordinate of its own, and yet with a tiny
    # ridge the best function tells them apart. A 2 x 2 ridge solves it exactly in long arithmetic.
    X, y, alpha = [[1.0, 0.0], [1.0, 1e-6]], [0.5, -0.5], 1e-14
    best = hindsight(Linear(), Squared(), X, y, regularization=alpha)
    w = np.array([0.5, -1e6])
    truth = alpha / 2 * w @ w
    assert len(best.coordinates) == 1
    assert best.objective > 10 * truth
    assert best.objective - best.gap <= truth * (1 + 1e-12)


def test_a_kink_and_a_tiny_ridge_together():
    # The squared hinge has no second derivative at margin 1, where most points of an interpolation lie.
    # Directions within rounding of the others are left out of the span; a ridge of 1e-8 would still use them,
    # and the gap, which is valid, says what that may cost.
    X, y = problem(SquaredHinge(), 5.0, rows=150)
    best = hindsight(Gaussian(1.0), SquaredHinge(), X, y, bound=5.0, regularization=1e-8)
    check(best, SquaredHinge(), y, 5.0, 1e-8)
    assert best.constrained
    assert best.gap <= 1e-2 * best.objective


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(30.0), Polynomial(3), Linear()], ids=repr)
@pytest.mark.parametrize("column", ["ramp", "squares", "clock"])
def test_smooth_columns_are_no_fault_of_the_kernel(kernel, column):
    """Points that all but depend on each other, in any order: no projection is longer than its point."""
    rows = np.arange(120.0)
    x = {"ramp": rows / 30.0, "squares": (rows / 60.0) ** 2, "clock": rows % 24.0 / 12.0}[column]
    y = np.sin(3.0 * x)
    best = hindsight(kernel, Squared(), x[:, None], y, bound=2.0, regularization=0.01)
    check(best, Squared(), y, 2.0, 0.01)
    assert best.gap <= 1e-6 * best.objective
    backwards = hindsight(kernel, Squared(), x[::-1, None], y[::-1], bound=2.0, regularization=0.01)
    assert backwards.objective == pytest.approx(best.objective, rel=1e-6)


def test_a_kernel_that_is_not_positive_definite_is_refused():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    for f in (
        lambda a, b: 1.0 - 2.0 * float(abs(a[0] - b[0])) ** 3,  # conditionally definite at best
        lambda a, b: float(a[0] == b[0]) - 0.2,  # a constant taken away: one negative eigenvalue
    ):
        with pytest.raises(NumericalError, match="not positive definite"):
            hindsight(FunctionKernel(f), Squared(), x, np.sin(x).ravel())


# ---- in the span of a dictionary


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("bound", [0.3, 20.0])
def test_beyond_the_exact_sizes_it_is_feasible_and_no_better(loss, bound):
    X, y = problem(loss, bound, rows=300)
    exact = hindsight(Gaussian(1.0), loss, X, y, bound=bound, regularization=1.0)
    span = hindsight(Gaussian(1.0), loss, X, y, bound=bound, regularization=1.0, exact_up_to=100)
    check(span, loss, y, bound, 1.0)
    assert exact.exact
    assert not span.exact
    assert len(span.coordinates) < 200
    assert exact.objective - exact.gap <= span.objective <= 1.02 * exact.objective
    np.testing.assert_allclose(span.predict(X), span.values, atol=1e-9)


# ---- other losses, other points


def test_a_loss_of_ones_own():
    loss = CustomLoss(
        lambda p, y: (p - y) ** 4, lambda p, y: 4 * (p - y) ** 3, lambda p, y: 12 * (p - y) ** 2
    )
    X, y = problem(Squared(), 0.5)
    best = hindsight(Gaussian(1.0), loss, X, y, bound=0.5, regularization=0.01)
    check(best, loss, y, 0.5, 0.01)
    truth = referee(features(Gaussian(1.0), X), loss, y, 0.5, 0.01)
    assert best.objective == pytest.approx(truth, rel=1e-6)
    assert best.objective - best.gap <= truth * (1 + 1e-12)


def test_objects():
    kernel = FunctionKernel(lambda x, z: float(len(set(x) & set(z))))
    words, y = ["kernel", "online", "newton", "online"], [1.0, -1.0, 1.0, -1.0]
    best = hindsight(kernel, Logistic(), words, y, bound=2.0, regularization=0.1)
    truth = referee(features(kernel, words), Logistic(), np.array(y), 2.0, 0.1)
    assert best.objective == pytest.approx(truth, rel=1e-6)
    assert best.predict(["kernel"])[0] == pytest.approx(best.values[0])


def test_what_it_refuses():
    X = [[1.0], [2.0]]
    absolute = CustomLoss(lambda p, y: abs(p - y), lambda p, y: np.sign(p - y))
    with pytest.raises(ConfigurationError, match="second derivative"):
        hindsight(Linear(), absolute, X, [0.0, 0.5])
    with pytest.raises(TargetError):
        hindsight(Linear(), Squared(), X, [0.0, 1.5])
    with pytest.raises(TargetError):
        hindsight(Linear(), Logistic(), X, [0.0, 1.0])
    with pytest.raises(ConfigurationError, match="bound"):
        hindsight(Linear(), Squared(), X, [0.0, 0.5], bound=0.0)
    with pytest.raises(ConfigurationError, match="regularization"):
        hindsight(Linear(), Squared(), X, [0.0, 0.5], regularization=-1.0)
    with pytest.raises(InputError, match="sample_weight"):
        hindsight(Linear(), Squared(), X, [0.0, 0.5], sample_weight=[1.0, -1.0])
    with pytest.raises(InputError, match="expected one per row"):
        hindsight(Linear(), Squared(), X, [0.0])
    concave = CustomLoss(lambda p, y: -(p**2), lambda p, y: -2 * p, lambda p, y: -2.0, curvature=1.0)
    with pytest.raises(NumericalError, match="not convex"):
        hindsight(Polynomial(2), concave, X, [0.0, 0.5])
