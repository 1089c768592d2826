"""Exact KONS is ONS on explicit features (tests/naive.py), through every door it has."""

import copy
import functools
import inspect
from collections import Counter

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import effort
import naive
from contracts.learners import assert_identical
from kons import KONS, Gaussian, Linear, Logistic, Polynomial, Squared, SquaredHinge, Trace
from kons.errors import ConfigurationError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.step_sizes import Constant

LOSSES = [Squared(), Logistic(), SquaredHinge()]
BLOCKS = [1, 7, 64, None]
ROWS = 200

VALUES = {
    "Squared": lambda p, y: (p - y) ** 2,
    "Logistic": lambda p, y: np.log1p(np.exp(-y * p)),
    "SquaredHinge": lambda p, y: np.maximum(0.0, 1.0 - y * p) ** 2,
}


def on_the_sphere(rows, d, seed):
    X = np.random.default_rng(seed).normal(size=(rows, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def linear_case(rows=ROWS, seed=0):
    """Points in the unit ball, k(x, x) <= 1."""
    X = on_the_sphere(rows, 5, seed) * np.random.default_rng(seed).uniform(0.2, 1.0, size=(rows, 1))
    return Linear(), X, X


def quadratic_case(rows=ROWS, seed=0):
    """(x.z)^2 on the unit sphere, k(x, x) = 1."""
    X = on_the_sphere(rows, 4, seed)
    return Polynomial(2, offset=0.0), X, naive.quadratic_features(X)


CASES = {"linear": linear_case, "quadratic": quadratic_case}


def targets(X, loss, bound, seed=1):
    noise = 0.3 * np.random.default_rng(seed).normal(size=len(X))
    signal = np.sin(3 * X[:, 0]) + 4 * X[:, 1] * X[:, 2] + noise
    return np.clip(signal, -bound, bound) if isinstance(loss, Squared) else np.sign(signal)


@functools.cache
def referee(case, loss, bound, alpha):
    kernel, X, Phi = CASES[case]()
    y = targets(X, loss, bound)
    return kernel, X, y, naive.ons_on_targets(Phi, y, loss, bound=bound, alpha=alpha)


def clipped(predictions, bound):
    return np.mean(np.abs(predictions) == bound)


@functools.cache
def precise_referee(case, loss, bound, alpha):
    kernel, X, Phi = CASES[case]()
    y = targets(X, loss, bound)
    return kernel, X, y, naive.precise_ons(Phi, y, loss, bound=bound, alpha=alpha)


def explicit(Phi, y, loss, *, bound, alpha):
    """Dense float64 matrices where they are good enough, 60 digits below that."""
    ons = naive.ons_on_targets if alpha >= 1e-2 else naive.precise_ons
    return ons(Phi, y, loss, bound=bound, alpha=alpha)


# ---- exact equality with explicit-feature ONS


@effort.every_pair(case=[*CASES], loss=LOSSES, bound=[0.1, 1.0], alpha=[1.0, 1e-2, 1e-4])
def test_predictions_are_those_of_explicit_features(case, loss, bound, alpha):
    kernel, X, y, expected = (referee if alpha >= 1e-2 else precise_referee)(case, loss, bound, alpha)
    for block_size in BLOCKS:
        learner = KONS(kernel, loss, bound=bound, regularization=alpha)
        trace = learner.advance(X, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)


@effort.every_value(case=[*CASES], loss=LOSSES, alpha=[1.0, 1e-2, 1e-4])
def test_predictions_with_a_wide_bound(case, loss, alpha):
    """Unclipped paths are long: at 1e-4 their own conditioning is what is left (docs/departures.md).

    The stated tolerance there is that of tiny regularization below, 100 * 1e-14*k/alpha: the order of the
    digits lost differs between compilers, and 3e-10 as well as 2.4e-9 were seen.
    """
    kernel, X, y, expected = (referee if alpha >= 1e-2 else precise_referee)(case, loss, 3.0, alpha)
    tolerance = 1e-9 if alpha >= 1e-2 else 100 * 1e-14 / alpha
    for block_size in BLOCKS:
        trace = KONS(kernel, loss, bound=3.0, regularization=alpha).advance(X, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=tolerance)


@effort.every_value(case=[*CASES], loss=LOSSES)
def test_tiny_regularization_within_its_stated_tolerance(case, loss):
    """Below 1e-4 the tolerance grows as k/alpha: f and q are differences of numbers 1/alpha larger.

    1e-14*k/alpha is what one row is off by (DESIGN, section 4). A row's error moves its slope, its
    slope the weight of all rows behind it: a factor 100 for what a path of 200 rows makes of it.
    """
    alpha = 1e-6
    kernel, X, y, expected = precise_referee(case, loss, 1.0, alpha)
    for block_size in BLOCKS:
        trace = KONS(kernel, loss, regularization=alpha).advance(X, y, block_size=block_size)
        off = np.abs(trace.prediction - expected.prediction).max()
        assert off <= 100 * 1e-14 / alpha


@effort.every_value(loss=LOSSES, alpha=[1e-2, 1e-4])
def test_most_predictions_clip(loss, alpha):
    X = on_the_sphere(120, 40, seed=2)
    bound = 0.1
    y = np.sign(X[:, 0] + 0.1) * (bound if isinstance(loss, Squared) else 1.0)
    expected = explicit(X, y, loss, bound=bound, alpha=alpha)
    assert clipped(expected.prediction, bound) > 0.5
    for block_size in BLOCKS:
        learner = KONS(Linear(), loss, bound=bound, regularization=alpha)
        trace = learner.advance(X, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
        assert clipped(trace.prediction, bound) == clipped(expected.prediction, bound)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_labels_met_exactly(alpha, block_size):
    """A target equal to what the learner predicts: slope 0, weight 0, nothing learned, no NaN."""
    X = on_the_sphere(100, 4, seed=3)
    y = np.clip(X[:, 0], -0.5, 0.5)
    y[:5] = 0.0  # what a new learner says
    met = np.arange(10, 100, 3)
    for t in met:
        run = naive.ons_on_targets(X[: t + 1], y[: t + 1], Squared(), bound=0.5, alpha=alpha)
        y[t] = run.prediction[-1]
    expected = naive.ons_on_targets(X, y, Squared(), bound=0.5, alpha=alpha)
    trace = KONS(Linear(), Squared(), bound=0.5, regularization=alpha).advance(X, y, block_size)
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(trace.slope[:5], 0.0)
    np.testing.assert_allclose(trace.slope[met], 0.0, atol=2e-9)  # twice the prediction's tolerance


@pytest.mark.parametrize(("loss", "bound"), [(Squared(), 0.1), (SquaredHinge(), 2.0)], ids=repr)
def test_labels_met_exactly_in_floating_point(loss, bound):
    """Targets +-C at clipped predictions, and a hinge with room to spare, down to 1e-4."""
    X = on_the_sphere(120, 30, seed=2)
    y = np.sign(X[:, 0] + 0.1) * (bound if isinstance(loss, Squared) else 1.0)
    expected = naive.precise_ons(X, y, loss, bound=bound, alpha=1e-4)
    assert (expected.slope == 0.0).sum() > 20
    for block_size in BLOCKS:
        trace = KONS(Linear(), loss, bound=bound, regularization=1e-4).advance(X, y, block_size)
        np.testing.assert_array_equal(trace.slope == 0.0, expected.slope == 0.0)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)


@effort.every_value(case=[*CASES], loss=LOSSES, alpha=[1.0, 1e-2, 1e-4])
def test_duplicate_points(case, loss, alpha):
    kernel, X, Phi = CASES[case](20)
    which = np.random.default_rng(4).integers(0, 20, size=150)
    X, Phi = X[which], Phi[which]
    y = targets(X, loss, 1.0)
    expected = explicit(Phi, y, loss, bound=1.0, alpha=alpha)
    for block_size in BLOCKS:
        trace = KONS(kernel, loss, regularization=alpha).advance(X, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_zero_vector_under_a_linear_kernel(loss, block_size):
    """k(x, x) = 0: predicts 0, has q = 0, and teaches nothing."""
    _, X, _ = linear_case(90)
    X = X.copy()
    X[[0, 1, 30, 31, 89]] = 0.0
    y = targets(X, loss, 0.3)
    y[X[:, 0] == 0.0] = 0.3 if isinstance(loss, Squared) else 1.0
    expected = naive.ons_on_targets(X, y, loss, bound=0.3, alpha=1e-2)
    trace = KONS(Linear(), loss, bound=0.3, regularization=1e-2).advance(X, y, block_size)
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(trace.inverse_form[[0, 1, 30, 31, 89]], 0.0)
    np.testing.assert_array_equal(trace.prediction[[0, 1, 30, 31, 89]], 0.0)


# ---- the trace


@effort.every_pair(case=[*CASES], loss=LOSSES, block_size=[7, None])
def test_trace(case, loss, block_size):
    bound, alpha = 0.5, 1e-2
    kernel, X, y, expected = referee(case, loss, bound, alpha)
    learner = KONS(kernel, loss, bound=bound, regularization=alpha)
    trace = learner.advance(X, y, block_size=block_size)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    close(trace.slope, expected.slope)
    close(trace.weight, expected.weight)
    close(trace.inverse_form, expected.inverse_form)
    mass = expected.weight * expected.inverse_form
    close(trace.leverage, mass / (1 + mass))
    close(trace.loss, VALUES[type(loss).__name__](expected.prediction, y))
    np.testing.assert_array_equal(trace.kept, np.ones(ROWS, bool))
    np.testing.assert_array_equal(trace.size, np.arange(1, ROWS + 1))
    assert trace.kept.dtype == bool
    assert np.issubdtype(trace.size.dtype, np.integer)
    assert trace.leverage_estimate is None
    assert trace.probability is None

    _, logdet = np.linalg.slogdet(expected.A / alpha)
    assert trace.log_determinant == pytest.approx(logdet, rel=1e-9)
    assert learner.log_determinant == pytest.approx(logdet, rel=1e-9)
    d_onl = np.sum(mass / (1 + mass))
    assert trace.online_effective_dimension == pytest.approx(d_onl, rel=1e-9)
    assert learner.online_effective_dimension == pytest.approx(d_onl, rel=1e-9)
    gain = np.sum(expected.slope**2 * expected.inverse_form / (1 + mass))
    assert trace.gain == pytest.approx(gain, rel=1e-9)
    assert (learner.rows_seen, learner.size) == (ROWS, ROWS)


def test_traces_of_consecutive_stretches_concatenate():
    kernel, X, y, _ = referee("linear", Squared(), 1.0, 1e-2)
    whole, parts = KONS(kernel, Squared()), KONS(kernel, Squared())
    expected = whole.advance(X, y)
    stretches = [parts.advance(X[a:b], y[a:b]) for a, b in ((0, 50), (50, 51), (51, ROWS))]
    trace = Trace.concatenate(stretches)
    assert len(trace) == ROWS
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(trace.size, expected.size)
    assert trace.log_determinant == pytest.approx(parts.log_determinant, rel=1e-12)
    assert parts.log_determinant == pytest.approx(whole.log_determinant, rel=1e-12)
    assert trace.columns.keys() == expected.columns.keys()
    assert repr(trace).startswith("Trace(200 rows: ")


def test_a_trace_says_what_it_does_not_have():
    trace = Trace(kept=np.ones(2, bool), size=np.arange(2))
    with pytest.raises(KeyError, match=r"no column 'leverage': it has kept, size"):
        trace.online_effective_dimension  # noqa: B018


def test_a_trace_does_not_share_memory_with_the_learner():
    kernel, X, y, _ = referee("linear", Squared(), 1.0, 1e-2)
    learner = KONS(kernel, Squared())
    trace = learner.advance(X, y)
    before = copy.deepcopy(learner.state())
    for column in trace.columns.values():
        column[:] = 0
    assert_identical(learner.state(), before)


# ---- sample_weight


@pytest.mark.parametrize("block_size", [1, 64])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_sample_weight_scales_slope_and_weight(loss, block_size):
    _, X, Phi = quadratic_case()
    y = targets(X, loss, 0.5)
    c = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], size=ROWS)
    expected = naive.ons_on_targets(Phi, y, loss, bound=0.5, alpha=1e-2, scale=c)
    learner = KONS(Polynomial(2, offset=0.0), loss, bound=0.5, regularization=1e-2)
    trace = learner.advance(X, y, block_size, sample_weight=c)
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    np.testing.assert_allclose(trace.slope, expected.slope, rtol=0, atol=1e-9)
    np.testing.assert_allclose(trace.weight, expected.weight, rtol=0, atol=1e-9)
    values = c * VALUES[type(loss).__name__](expected.prediction, y)
    np.testing.assert_allclose(trace.loss, values, rtol=0, atol=1e-9)


def test_an_integer_weight_scales_the_slope_and_the_weight_that_enters():
    """g and w grow by c, not g by c and w by c^2, and not c rows in a row."""
    x, y = [[1.0]], [1.0]
    once = KONS(Linear(), Squared()).advance(x, y)
    thrice = KONS(Linear(), Squared()).advance(x, y, sample_weight=3)
    assert thrice.slope[0] == 3 * once.slope[0]
    assert thrice.weight[0] == 3 * once.weight[0]
    assert thrice.loss[0] == 3 * once.loss[0]
    np.testing.assert_array_equal(thrice.size, 1)


def test_weights_of_one_change_no_bit():
    kernel, X, y, _ = referee("linear", Squared(), 1.0, 1e-2)
    plain, weighted = KONS(kernel, Squared()), KONS(kernel, Squared())
    plain.advance(X, y)
    weighted.advance(X, y, sample_weight=np.ones(ROWS, int))
    assert_identical(weighted.state(), plain.state())


def points_stored(learner, x):
    """How many points a prediction is compared with."""
    compared = []

    class Counting(Linear):
        def evaluate(self, X, Z):
            compared.append(len(Z))
            return super().evaluate(X, Z)

    same = KONS.from_state(learner.parameters() | {"kernel": Counting()}, learner.state())
    same.predict_one(x)
    return sum(compared)


def test_weights_of_zero_teach_nothing():
    kernel, X, y, _ = referee("linear", Squared(), 1.0, 1e-2)
    y = y / 10  # off the bound, where even an unweighted row is projected
    zero = np.zeros(ROWS, bool)
    zero[::3] = True
    some, without = KONS(kernel, Squared()), KONS(kernel, Squared())
    trace = some.advance(X, y, sample_weight=np.where(zero, 0.0, 1.0))
    expected = without.advance(X[~zero], y[~zero])
    assert clipped(trace.prediction, 1.0) == 0.0
    np.testing.assert_allclose(trace.prediction[~zero], expected.prediction, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(trace.loss[zero], 0.0)
    np.testing.assert_array_equal(trace.weight[zero], 0.0)
    assert points_stored(some, X[0]) == (~zero).sum()
    assert some.rows_seen == ROWS


def test_all_weights_zero_leave_a_new_function():
    _, X, _ = linear_case(30)
    learner = KONS(Linear(), Squared())
    learner.advance(X, np.ones(30), sample_weight=0.0)
    np.testing.assert_array_equal(learner.predict(X), 0.0)
    assert learner.log_determinant == 0.0
    assert points_stored(learner, X[0]) == 0


# ---- one row at a time


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_row_loop_equals_advance(loss, second_order):
    kernel, X, y, _ = referee("quadratic", loss, 0.5, 1e-2)
    arguments = {"bound": 0.5, "regularization": 1e-2, "second_order": second_order}
    trace = KONS(kernel, loss, **arguments).advance(X, y)
    learner, predictions = KONS(kernel, loss, **arguments), []
    for x, target in zip(X, y, strict=True):
        predictions.append(learner.predict_one(x))
        assert learner.learn_one(x, target) is None
    np.testing.assert_allclose(predictions, trace.prediction, rtol=0, atol=1e-9)
    assert learner.log_determinant == pytest.approx(trace.log_determinant, rel=1e-9)
    assert learner.rows_seen == ROWS


def test_learn_one_is_a_block_of_one_bit_for_bit():
    kernel, X, y, _ = referee("linear", Logistic(), 1.0, 1e-2)
    row_loop, blocks = KONS(kernel, Logistic()), KONS(kernel, Logistic())
    for x, target in zip(X[:50], y[:50], strict=True):
        row_loop.learn_one(x, target)
        blocks.advance([x], [target])
    assert_identical(row_loop.state(), blocks.state())


def test_predict_is_pure_and_says_what_advance_says_next():
    kernel, X, y, _ = referee("linear", Squared(), 1.0, 1e-2)
    learner = KONS(kernel, Squared(), bound=1.0, regularization=1e-2)
    learner.advance(X[:150], y[:150])
    before, shown = copy.deepcopy(learner.state()), (repr(learner), learner._repr_html_())
    first = learner.predict(X)
    np.testing.assert_array_equal(learner.predict(X), first)
    for x, expected in zip(X, first, strict=True):
        assert learner.predict_one(x) == pytest.approx(expected, abs=1e-12)
    assert_identical(learner.state(), before)
    assert (repr(learner), learner._repr_html_()) == shown
    assert first.dtype == np.float64
    for i in range(0, ROWS, 20):  # each row as if it came next
        following = copy.deepcopy(learner).advance(X[i : i + 1], y[i : i + 1])
        assert following.prediction[0] == pytest.approx(first[i], abs=1e-12)


def test_predict_crosses_its_tiles_and_blocks():
    """More than 512 points and more than 1024 rows: in pieces, the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 2))
    learner = KONS(Gaussian(), Squared())
    learner.advance(X, np.tanh(X[:, 0]))
    Z = rng.normal(size=(1500, 2))
    whole = learner.predict(Z)
    parts = np.concatenate([learner.predict(Z[i : i + 100]) for i in range(0, 1500, 100)])
    np.testing.assert_allclose(whole, parts, rtol=0, atol=1e-11)


def test_predictions_are_clipped():
    X = on_the_sphere(60, 10, seed=1)
    learner = KONS(Linear(), Squared(), bound=0.1, regularization=1e-3)
    learner.advance(X[:30], 0.1 * np.sign(X[:30, 0]))
    assert np.abs(learner.predict(X)).max() == 0.1
    assert max(abs(learner.predict_one(x)) for x in X) == 0.1


def test_a_new_learner_predicts_zero():
    learner = KONS(Gaussian(), Squared())
    np.testing.assert_array_equal(learner.predict(np.ones((3, 2))), 0.0)
    assert learner.predict_one([1.0]) == 0.0
    assert learner.log_determinant == learner.online_effective_dimension == 0.0


def test_repr_names_every_argument():
    learner = KONS(Gaussian(2.0), Squared(), regularization=0.5, second_order="hessian")
    signature = inspect.signature(KONS).parameters
    assert list(learner.parameters()) == list(signature)
    assert repr(learner).startswith("KONS(kernel=Gaussian(bandwidth=2.0), loss=Squared(), bound=1.0, ")
    learner.advance(np.eye(3), [1.0, -1.0, 1.0])
    html = learner._repr_html_()
    assert "<caption>KONS</caption>" in html
    assert "log det" in html
    assert "<td>3</td>" in html


def test_the_constructor_arguments_make_an_equal_learner():
    learner = KONS(Gaussian(2.0), Logistic(), bound=3.0, regularization=0.5)
    again = KONS(**learner.parameters())
    assert repr(again) == repr(learner)


# ---- the paper's own protocol


@pytest.mark.parametrize("case", CASES)
def test_learn_slope_with_a_curvature_per_row(case):
    kernel, X, Phi = CASES[case]()
    rng = np.random.default_rng(6)
    slopes, sigma = rng.uniform(-2.0, 2.0, size=ROWS), rng.uniform(0.05, 1.0, size=ROWS)
    slopes[::17], sigma[5::17] = 0.0, 0.0
    expected = naive.ons(Phi, lambda t, _: slopes[t], bound=0.5, alpha=1e-2, eta=sigma)
    assert 0.1 < clipped(expected.prediction, 0.5) < 1.0
    learner, predictions = KONS(kernel, Squared(), bound=0.5, regularization=1e-2), []
    for t, x in enumerate(X):
        predictions.append(learner.predict_one(x))
        assert learner.learn_slope(x, slopes[t], curvature=sigma[t]) is None
    np.testing.assert_allclose(predictions, expected.prediction, rtol=0, atol=1e-9)
    _, logdet = np.linalg.slogdet(expected.A / 1e-2)
    assert learner.log_determinant == pytest.approx(logdet, rel=1e-9)


@pytest.mark.parametrize("step_size", [None, 0.3, lambda t: 1 / t])
def test_learn_slope_equals_learn_one(step_size):
    kernel, X, y, _ = referee("linear", Logistic(), 1.0, 1e-2)
    by_loss, by_slope = (KONS(kernel, Logistic(), regularization=1e-2, step_size=step_size) for _ in range(2))
    for x, target in zip(X, y, strict=True):
        slope = Logistic().slope(by_slope.predict_one(x), target)
        by_slope.learn_slope(x, slope)
        by_loss.learn_one(x, target)
    np.testing.assert_allclose(by_slope.predict(X), by_loss.predict(X), rtol=0, atol=1e-9)
    assert by_slope.log_determinant == pytest.approx(by_loss.log_determinant, rel=1e-9)


def test_learn_slope_has_no_second_derivative():
    learner = KONS(Linear(), Squared(), second_order="hessian")
    with pytest.raises(ConfigurationError, match=r'second derivative.*second_order="gradient"'):
        learner.learn_slope([1.0], 0.5)


# ---- step sizes


@pytest.mark.parametrize(
    ("step_size", "eta"),
    [
        (None, lambda t: 1.0 / (8.0 * 0.5**2)),
        (0.3, lambda t: 0.3),
        (Constant(0.3), lambda t: 0.3),
        (lambda t: 2.0 / (1 + t), lambda t: 2.0 / (1 + t)),
    ],
    ids=["None", "number", "Constant", "function"],
)
def test_step_sizes(step_size, eta):
    kernel, X, Phi = linear_case()
    y = targets(X, Squared(), 0.5)
    etas = np.array([eta(t) for t in range(1, ROWS + 1)])
    expected = naive.ons(Phi, lambda t, p: 2 * (p - y[t]), bound=0.5, alpha=1e-2, eta=etas)
    learner = KONS(kernel, Squared(), bound=0.5, regularization=1e-2, step_size=step_size)
    first = learner.advance(X[:60], y[:60])  # t counts on from call to call
    for t in range(60, 80):
        learner.learn_one(X[t], y[t])
    rest = learner.advance(X[80:], y[80:], block_size=7)
    found = np.concatenate([first.prediction, expected.prediction[60:80], rest.prediction])
    np.testing.assert_allclose(found, expected.prediction, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rest.weight, expected.weight[80:], rtol=0, atol=1e-9)


def test_a_loss_without_curvature_takes_the_inverse_root():
    """1/(L*C*sqrt(t)), the paper's choice where sigma is 0."""
    absolute = CustomLoss(lambda p, y: np.abs(p - y), lambda p, y: np.sign(p - y))
    kernel, X, Phi = linear_case(80)
    y = targets(X, Squared(), 0.5)
    etas = 1.0 / (1.0 * 0.5 * np.sqrt(np.arange(1, 81)))
    expected = naive.ons(Phi, lambda t, p: np.sign(p - y[t]), bound=0.5, alpha=0.1, eta=etas)
    trace = KONS(kernel, absolute, bound=0.5, regularization=0.1).advance(X, y, block_size=7)
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)


# ---- the Hessian


@functools.cache
def ridge_regression(alpha):
    """Row t from the rows before it, and new points from all of them."""
    X = np.random.default_rng(7).uniform(-2, 2, size=(120, 2))
    new = np.random.default_rng(8).uniform(-2, 2, size=(40, 2))
    y = np.clip(1.5 * np.sin(3 * X[:, 0]) * X[:, 1], -0.8, 0.8)
    K = Gaussian(0.7).gram(X)
    with threadpool_limits(1):
        online = [naive.kernel_ridge(K[:t, :t], y[:t], K[t, :t], alpha / 2) for t in range(120)]
        batch = naive.kernel_ridge(K, y, Gaussian(0.7).gram(new, X), alpha / 2)
    return X, y, np.array(online), new, batch


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("block_size", [1, 7, None])
def test_hessian_of_the_squared_loss_is_kernel_ridge_regression(block_size, alpha):
    X, y, online, new, batch = ridge_regression(alpha)
    learner = KONS(Gaussian(0.7), Squared(), bound=0.8, regularization=alpha, second_order="hessian")
    trace = learner.advance(X, y, block_size=block_size)
    assert (np.abs(online) > 0.8).any() or alpha == 1.0
    np.testing.assert_allclose(trace.prediction, np.clip(online, -0.8, 0.8), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(trace.weight, 2.0)
    np.testing.assert_allclose(learner.predict(new), np.clip(batch, -0.8, 0.8), rtol=0, atol=1e-9)


SECONDS = {
    "Logistic": lambda p, y: 1.0 / ((1.0 + np.exp(p)) * (1.0 + np.exp(-p))),
    "SquaredHinge": lambda p, y: 2.0 if y * p < 1.0 else 0.0,
}


@effort.every_pair(loss=[Logistic(), SquaredHinge()], bound=[0.2, 2.0], alpha=[1.0, 1e-2])
def test_hessian_of_the_other_losses(loss, bound, alpha):
    kernel, X, Phi = quadratic_case()
    y = targets(X, loss, bound)
    slope, second = naive.LOSSES[type(loss).__name__][0], SECONDS[type(loss).__name__]
    expected = naive.ons_hessian(
        Phi, lambda t, p: slope(p, y[t]), lambda t, p: second(p, y[t]), bound=bound, alpha=alpha
    )
    assert clipped(expected.prediction, bound) > (0.2 if bound < 1 else 0.0) or alpha == 1.0
    for block_size in BLOCKS:
        learner = KONS(kernel, loss, bound=bound, regularization=alpha, second_order="hessian")
        trace = learner.advance(X, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
        np.testing.assert_allclose(trace.weight, expected.weight, rtol=0, atol=1e-9)
        np.testing.assert_allclose(trace.inverse_form, expected.inverse_form, rtol=1e-9, atol=1e-9)


def test_hessian_with_sample_weight_is_weighted_ridge_regression():
    kernel, X, Phi = linear_case(80)
    y = targets(X, Squared(), 1.0)
    c = np.random.default_rng(9).uniform(0.1, 3.0, size=80)
    learner = KONS(kernel, Squared(), bound=100.0, regularization=0.1, second_order="hessian")
    learner.advance(X, y, sample_weight=c)
    w = np.linalg.solve(0.05 * np.eye(5) + (Phi.T * c) @ Phi, (Phi.T * c) @ y)
    np.testing.assert_allclose(learner.predict(X), X @ w, rtol=0, atol=1e-9)


# ---- arbitrary objects


def letters(x, z):
    """The inner product of letter counts, over 10."""
    counts = Counter(z)
    return sum(n * counts[letter] for letter, n in Counter(x).items()) / 10.0


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_strings_equal_their_explicit_features(loss):
    rng = np.random.default_rng(10)
    words = ["".join(rng.choice(list("abcde"), size=rng.integers(0, 6))) for _ in range(80)]
    assert "" in words
    Phi = np.array([[word.count(letter) for letter in "abcde"] for word in words]) / np.sqrt(10.0)
    y = np.array([1.0 if word.count("a") > word.count("b") else -1.0 for word in words])
    expected = naive.ons_on_targets(Phi, y, loss, bound=1.0, alpha=1e-2)
    for block_size in BLOCKS:
        learner = KONS(FunctionKernel(letters), loss, regularization=1e-2)
        trace = learner.advance(words, y, block_size=block_size)
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    row_loop = KONS(FunctionKernel(letters), loss, regularization=1e-2)
    for word, target in zip(words, y, strict=True):
        row_loop.learn_one(word, target)
    expected = learner.predict(("abc", "", "dd"))
    np.testing.assert_allclose(row_loop.predict(["abc", "", "dd"]), expected, rtol=0, atol=1e-9)
    assert row_loop.predict_one("abc") == pytest.approx(expected[0], abs=1e-9)


# ---- what is stored


def test_points_without_weight_are_not_stored():
    X = on_the_sphere(50, 3, seed=11)
    learner = KONS(Linear(), Squared())
    learner.advance(X, np.zeros(50))  # met exactly from the start
    assert points_stored(learner, X[0]) == 0
    learner.advance(X[:2], [1.0, 0.5])
    learner.advance(np.zeros((3, 3)), np.zeros(3))
    assert points_stored(learner, X[0]) == 2
    assert (learner.rows_seen, learner.size) == (55, 55)
