"""Bad input raises one clear error, and the learner is bit for bit the learner it was."""

import copy
from datetime import datetime

import numpy as np
import pytest
import scipy.sparse

from contracts.learners import assert_identical, stream
from kons import KONS, Gaussian, Linear, Logistic, SketchedKONS, Squared, SquaredHinge
from kons.errors import ConfigurationError, InputError, KonsError, NumericalError, TargetError
from kons.kernels import FunctionKernel, Kernel
from kons.losses import CustomLoss
from kons.policies import Leverage
from kons.step_sizes import Constant

X, Y = stream(40)


def trained(loss=None, **arguments):
    learner = KONS(Gaussian(), loss or Squared(), regularization=0.1, **arguments)
    learner.advance(X[:30], Y[:30])
    return learner


def with_value(position, value):
    changed = X[:5].copy()
    changed[position] = value
    return changed


def changed(y, position, value):
    y = y.copy()
    y[position] = value
    return y


def assert_refuses(learner, call, error, match):
    """The error is of this kind, says this, and nothing has happened."""
    before = copy.deepcopy(learner.state())
    with pytest.raises(error, match=match) as caught:
        call(learner)
    assert isinstance(caught.value, KonsError)
    assert_identical(learner.state(), before)


BAD_POINTS = {
    "NaN": (with_value((1, 2), np.nan), r"X\[1\]\[2\] is nan.*finite.*drop the row or fill"),
    "inf": (with_value((0, 0), np.inf), r"X\[0\]\[0\] is inf.*finite"),
    "-inf": (with_value((4, 0), -np.inf), r"X\[4\]\[0\] is -inf.*finite"),
    "narrow": (X[:5, :2], r"2 feature\(s\).*seen 3 so far.*same features"),
    "wide": (np.hstack([X, X])[:5], r"6 feature\(s\).*seen 3 so far"),
    "no rows": (np.empty((0, 3)), r"no rows.*at least one"),
    "empty list": ([], r"no rows"),
    "no columns": (np.empty((5, 0)), r"no columns.*at least one"),
    "1-D": (X[0], r"1 dimension.*learn_one.*reshape\(-1, 1\)"),
    "0-D": (3.0, r"0 dimension.*\[\[\.\.\.\]\]"),
    "3-D": (X[:4].reshape(2, 2, 3), r"3 dimension.*flatten"),
    "dict": ({"a": 1.0, "b": 2.0}, r"named columns.*arrays without names: pass arrays"),
    "text": ("some text", r"'some text'.*expected numbers"),
    "rows of text": ([["a", "b", "c"]], r"'a'.*expected numbers.*encode"),
    "bytes": (b"abc", r"expected numbers"),
    "None": (None, r"X is None.*expected a number"),
    "a None inside": ([[1.0, None, 2.0]], r"X\[0\]\[1\] is None.*expected a number"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0, 2.0]], r"different lengths.*same features in every row"),
    "ragged objects": (np.array([[1.0, 2.0], [1.0]], dtype=object), r"different lengths"),
    "huge and sparse": (scipy.sparse.csr_array((1 << 20, 1 << 20)), r"sparse.*fewer rows at a time"),
    "complex": (X[:5] + 1j, r"complex.*expected numbers"),
    "dates": ([[datetime(2026, 1, 1)] * 3], r"datetime.*expected a number"),
    "dates64": (np.array([["2026-01-01"] * 3], dtype="M8[D]"), r"2026-01-01.*expected numbers"),
    "a set": ({1.0, 2.0}, r"set.*expected a number|expected numbers"),
    "a list of dicts": ([{"a": 1.0}], r"named columns.*arrays without names"),
}


@pytest.mark.parametrize(("points", "match"), BAD_POINTS.values(), ids=BAD_POINTS)
def test_bad_points(points, match):
    rows = np.shape(points)[0] if isinstance(points, np.ndarray) and np.ndim(points) else 1
    learner = trained()
    assert_refuses(learner, lambda one: one.advance(points, np.ones(rows)), InputError, match)
    assert_refuses(learner, lambda one: one.predict(points), InputError, match)


@pytest.mark.parametrize("points", [BAD_POINTS[name][0] for name in ("NaN", "no rows", "1-D", "0-D")])
def test_bad_points_for_a_new_learner(points):
    """It has seen no width yet, and afterwards still takes any."""
    learner = KONS(Gaussian(), Squared())
    assert_refuses(learner, lambda one: one.advance(points, np.ones(5)), InputError, "^X")
    assert_refuses(learner, lambda one: one.advance({"a": 1.0}, np.ones(5)), InputError, "y has 5 .* 1 row")
    learner.advance(np.ones((1, 7)), [1.0])


BAD_TARGETS = {
    "short": (np.ones(4), InputError, r"y has 4 value\(s\), X has 5 row\(s\).*one per row"),
    "long": (np.ones(6), InputError, r"y has 6 value\(s\), X has 5 row\(s\)"),
    "empty": ([], InputError, r"y has 0 value\(s\), X has 5"),
    "scalar": (1.0, InputError, r"y has shape \(\).*one number per row"),
    "2-D": (np.ones((5, 2)), InputError, r"y has shape \(5, 2\).*one number per row"),
    "NaN": (changed(Y[:5], 3, np.nan), InputError, r"y\[3\] is nan.*finite"),
    "inf": (changed(Y[:5], 0, np.inf), InputError, r"y\[0\] is inf.*finite"),
    "None": (None, InputError, r"y is None.*expected a number"),
    "dict": ({0: 1.0}, InputError, r"y is a dict"),
    "text": (["a"] * 5, InputError, r"y holds 'a'.*expected numbers"),
    "beyond the bound": (
        changed(Y[:5], 2, 1.5),
        TargetError,
        r"y\[2\] is 1\.5, beyond bound=1.*scale or centre.*raise bound",
    ),
}


@pytest.mark.parametrize(("targets", "error", "match"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_bad_targets(targets, error, match):
    assert_refuses(trained(), lambda one: one.advance(X[:5], targets), error, match)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ([0.0, 1.0], r"y\[0\] is 0, expected -1 or \+1.*2\*y-1"),
        ([1.0, 2.0], r"y\[1\] is 2, expected -1 or \+1.*np\.where"),
        ([1.0, 0.3], r"y\[1\] is 0\.3, expected -1 or \+1"),
    ],
)
def test_wrong_labels(loss, labels, match):
    assert_refuses(trained(loss), lambda one: one.advance(X[:2], labels), TargetError, match)
    wrong = next(label for label in labels if label != 1.0)
    assert_refuses(trained(loss), lambda one: one.learn_one(X[0], wrong), TargetError, r"-1 or \+1")


BAD_SAMPLE_WEIGHTS = {
    "negative": ([1.0, -0.5, 1.0, 1.0, 1.0], r"sample_weight\[1\] is -0\.5, expected at least 0"),
    "NaN": ([1.0, 1.0, np.nan, 1.0, 1.0], r"sample_weight\[2\] is nan"),
    "short": (np.ones(3), r"sample_weight has 3 value\(s\), X has 5"),
    "2-D": (np.ones((5, 2)), r"sample_weight has shape \(5, 2\)"),
    "dict": ({0: 1.0}, r"sample_weight is a dict"),
    "text": ("balanced", r"sample_weight holds 'balanced'"),
}


@pytest.mark.parametrize(("weights", "match"), BAD_SAMPLE_WEIGHTS.values(), ids=BAD_SAMPLE_WEIGHTS)
def test_bad_sample_weights(weights, match):
    call = lambda one: one.advance(X[:5], Y[:5], sample_weight=weights)  # noqa: E731
    assert_refuses(trained(), call, InputError, match)


@pytest.mark.parametrize("block_size", [0, -1, 2.5, "64", True, np.nan, [64]], ids=repr)
def test_bad_block_sizes(block_size):
    match = r"block_size is .*expected an integer of at least 1"
    call = lambda one: one.advance(X[:5], Y[:5], block_size=block_size)  # noqa: E731
    assert_refuses(trained(), call, ConfigurationError, match)


BAD_ROWS = {
    "NaN": ([1.0, np.nan, 0.0], r"x\[1\] is nan"),
    "narrow": ([1.0], r"1 feature\(s\).*seen 3 so far"),
    "two rows": (X[:2], r"x has shape \(2, 3\), expected one row.*predict or advance"),
    "a number": (1.0, r"expected one row"),
    "empty": ([], r"no features"),
    "dict": ({"a": 1.0}, r"arrays without names|x is a dict"),  # a slope is of a row of numbers
    "text": ("abc", r"'abc'.*expected numbers"),
    "None": (None, r"x is None"),
}


@pytest.mark.parametrize(("row", "match"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_single_rows(row, match):
    learner = trained()
    assert_refuses(learner, lambda one: one.learn_one(row, 1.0), InputError, match)
    assert_refuses(learner, lambda one: one.learn_slope(row, 1.0), InputError, match)
    assert_refuses(learner, lambda one: one.predict_one(row), InputError, match)


@pytest.mark.parametrize(
    ("target", "error", "match"),
    [
        (np.nan, InputError, r"y is nan|y\[0\] is nan"),
        (None, InputError, r"y is None"),
        ([1.0, 0.5], InputError, r"y has shape \(2,\), expected one number"),
        ("a", InputError, r"y holds 'a'"),
        ({"y": 1.0}, InputError, r"y is a dict"),
        (2.0, TargetError, r"is 2, beyond bound=1"),
    ],
)
def test_bad_single_targets(target, error, match):
    assert_refuses(trained(), lambda one: one.learn_one(X[0], target), error, match)


@pytest.mark.parametrize(
    ("slope", "curvature", "match"),
    [
        (np.inf, None, r"slope is inf|slope.*inf"),
        (None, None, r"slope is None"),
        ([1.0, 2.0], None, r"slope has shape \(2,\)"),
        (1.0, -0.1, r"curvature\[0\] is -0\.1, expected at least 0|curvature is -0\.1"),
        (1.0, np.nan, r"curvature.*nan"),
        (1.0, "a", r"curvature holds 'a'"),
    ],
)
def test_bad_slopes(slope, curvature, match):
    assert_refuses(trained(), lambda one: one.learn_slope(X[0], slope, curvature), InputError, match)


# ---- construction


@pytest.mark.parametrize("name", ["regularization", "bound"])
@pytest.mark.parametrize("value", [0, 0.0, -1.0, np.nan, np.inf, "1", None, True, [1.0], 1j], ids=repr)
def test_parameters_that_must_be_positive(name, value):
    with pytest.raises(ConfigurationError, match=rf"{name} is .*, expected a finite number above 0"):
        KONS(Gaussian(), Squared(), **{name: value})


@pytest.mark.parametrize(
    ("step_size", "match"),
    [
        (0, r"step_size is 0, expected .*above 0"),
        (-0.5, r"step_size is -0\.5"),
        (np.nan, r"step_size is nan"),
        (True, r"step_size is True"),
        ("paper", r"step_size is 'paper', expected a number above 0, a StepSize, or a function"),
        ([0.1], r"step_size is \[0\.1\]"),
        (Constant, r"expected a number.*Pass Constant\(\.\.\.\)"),
        (lambda t: -1.0, r"step_size\(1\) is -1\.0, expected a finite number above 0"),
        (lambda t: "a", r"step_size\(1\) is 'a'"),
        (lambda t: 1 / 0, r"step_size\(1\) raised ZeroDivisionError"),
    ],
)
def test_bad_step_sizes(step_size, match):
    with pytest.raises(ConfigurationError, match=match):
        KONS(Gaussian(), Squared(), step_size=step_size)


def test_a_step_size_that_breaks_later():
    learner = trained(step_size=lambda t: 0.1 if t <= 33 else -1.0)
    match = r"step_size\(34\) is -1\.0"
    assert_refuses(learner, lambda one: one.advance(X[:9], Y[:9]), ConfigurationError, match)
    learner.advance(X[:3], Y[:3])
    assert_refuses(learner, lambda one: one.learn_one(X[0], Y[0]), ConfigurationError, match)


@pytest.mark.parametrize("kernel", [Gaussian, None, "rbf", lambda x, z: 1.0, Squared()])
def test_bad_kernels(kernel):
    with pytest.raises(ConfigurationError, match=r"kernel is .*Gaussian\(1\.0\).*FunctionKernel\(f\)"):
        KONS(kernel, Squared())


@pytest.mark.parametrize("loss", [Squared, None, "squared", lambda p, y: p - y, Gaussian()])
def test_bad_losses(loss):
    with pytest.raises(ConfigurationError, match=r"loss is .*Squared\(\).*CustomLoss\(value, slope\)"):
        KONS(Gaussian(), loss)


@pytest.mark.parametrize("second_order", ["Hessian", "newton", None, True, 2])
def test_second_order_misspelt(second_order):
    with pytest.raises(ConfigurationError, match=r'second_order is .*"gradient" or "hessian"'):
        KONS(Gaussian(), Squared(), second_order=second_order)


def test_a_hessian_that_the_loss_does_not_have():
    own = CustomLoss(lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), name="own")
    with pytest.raises(ConfigurationError, match=r"needs a second derivative.*own.*has none"):
        KONS(Gaussian(), own, second_order="hessian")


# ---- objects


@pytest.mark.parametrize(
    ("points", "match"),
    [
        ("text", r"X is one str, expected a sequence of objects: wrap it as \[X\]"),
        (b"text", r"X is one bytes"),
        ({"a": 1}, r"X is a dict, expected a sequence"),
        (5, r"X is a int, expected a sequence"),
        (None, r"X is a NoneType, expected a sequence"),
        ([], r"X has no rows"),
    ],
)
def test_bad_sequences_of_objects(points, match):
    learner = KONS(FunctionKernel(lambda x, z: float(x == z)), Squared())
    learner.advance(["a", "b"], [1.0, -1.0])
    assert_refuses(learner, lambda one: one.advance(points, [1.0]), InputError, match)
    assert_refuses(learner, lambda one: one.predict(points), InputError, match)


# ---- something raises in the middle of a long run


class StumbleError(Exception):
    pass


STUMBLING_BLOCK = 700
LONG_X, LONG_Y = stream(900, seed=3)
LONG_Y = 0.5 * LONG_Y
MARKED_Y = changed(LONG_Y, STUMBLING_BLOCK, 0.123)
MARKED_X = LONG_X.copy()
MARKED_X[STUMBLING_BLOCK] = 77.0


class StumblingKernel(Kernel):
    """A Gaussian that raises at the marked row."""

    def __init__(self, exception):
        self.exception = exception

    def evaluate(self, points, others):
        if (points == 77.0).all(axis=1).any():
            raise self.exception
        return Gaussian().evaluate(points, others)

    def evaluate_diagonal(self, points):
        return Gaussian().evaluate_diagonal(points)


def stumbling_loss(exception, where="slope"):
    def check(p, y):
        if np.ndim(y) == 0 and y == 0.123:
            raise exception

    def value(p, y):
        if where == "value" and np.any(y == 0.123):
            raise exception
        return (p - y) ** 2

    def slope(p, y):
        if where == "slope":
            check(p, y)
        return 2 * (p - y)

    return CustomLoss(value, slope, lipschitz=4.0, curvature=0.125)


def make_kons(kernel, loss):
    return KONS(kernel, loss, regularization=0.1)


def make_sketched(kernel, loss):
    return SketchedKONS(kernel, loss, regularization=0.1, policy=Leverage(floor=0.2), seed=4)


def assert_nothing_happened(make, kernel, loss, X_bad, y_bad, expected, block_size=None):
    """Two learners; one stumbles. Then both go on, and are the same bit for bit."""
    learner, twin = make(kernel, loss), make(kernel, loss)
    for one in (learner, twin):
        one.advance(LONG_X[:300], LONG_Y[:300], block_size)
    before = copy.deepcopy(learner.state())
    with pytest.raises(expected):
        learner.advance(X_bad, y_bad, block_size)
    assert_identical(learner.state(), before)
    traces = [one.advance(LONG_X[300:500], LONG_Y[300:500], block_size) for one in (learner, twin)]
    assert_identical(learner.state(), twin.state())
    assert_identical(traces[0].columns, traces[1].columns)


@pytest.mark.parametrize("make", [make_kons, make_sketched])
@pytest.mark.parametrize(
    ("exception", "expected"), [(StumbleError(), NumericalError), (KeyboardInterrupt(), KeyboardInterrupt)]
)
@pytest.mark.parametrize("where", ["slope", "value"])
def test_a_loss_that_raises_at_row_700(make, exception, expected, where):
    loss = stumbling_loss(exception, where)
    assert_nothing_happened(make, Gaussian(), loss, LONG_X, MARKED_Y, expected)


@pytest.mark.parametrize("make", [make_kons, make_sketched])
@pytest.mark.parametrize("exception", [StumbleError(), KeyboardInterrupt(), MemoryError()], ids=repr)
def test_a_kernel_that_raises_at_row_700(make, exception):
    kernel = StumblingKernel(exception)
    assert_nothing_happened(make, kernel, Squared(), MARKED_X, LONG_Y, type(exception))


def test_a_function_kernel_that_is_interrupted():
    def closeness(x, z):
        if STUMBLING_BLOCK in (x, z):
            raise KeyboardInterrupt
        return float(np.exp(-abs(x - z) / 50.0))

    learner, twin = (KONS(FunctionKernel(closeness), Squared()) for _ in range(2))
    for one in (learner, twin):
        one.advance(list(range(0, 600, 6)), np.resize([1.0, -1.0, 0.5], 100))
    before = copy.deepcopy(learner.state())
    with pytest.raises(KeyboardInterrupt):
        learner.advance(list(range(100, 800, 3)), np.ones(234), block_size=50)
    assert_identical(learner.state(), before)
    for one in (learner, twin):
        one.advance(list(range(601, 640)), np.ones(39))
    assert_identical(learner.state(), twin.state())


def test_a_first_call_that_raises_leaves_a_new_learner():
    learner = KONS(StumblingKernel(StumbleError()), Squared())
    before = copy.deepcopy(learner.state())
    with pytest.raises(StumbleError):
        learner.advance(MARKED_X, LONG_Y, block_size=64)
    assert_identical(learner.state(), before)
    learner.advance(np.ones((2, 9)), [1.0, -1.0])  # any width, still


def test_after_rows_that_stored_nothing():
    """No point is inside A yet, though the width is known."""
    learner = KONS(StumblingKernel(StumbleError()), Squared())
    learner.advance(X, np.zeros(len(X)))
    before = copy.deepcopy(learner.state())
    with pytest.raises(StumbleError):
        learner.advance(MARKED_X, LONG_Y, block_size=64)
    assert_identical(learner.state(), before)


def test_learn_one_and_learn_slope_that_raise():
    learner = KONS(StumblingKernel(StumbleError()), Squared(), regularization=0.1)
    learner.advance(X, Y)
    for call in (
        lambda: learner.learn_one(MARKED_X[STUMBLING_BLOCK], 1.0),
        lambda: learner.learn_slope(MARKED_X[STUMBLING_BLOCK], 1.0),
        lambda: learner.predict(MARKED_X),
    ):
        before = copy.deepcopy(learner.state())
        with pytest.raises(StumbleError):
            call()
        assert_identical(learner.state(), before)


def test_a_kernel_that_overflows():
    learner = KONS(Linear(), Squared())
    learner.advance(X, Y)
    far = X[:5] * np.array([[1.0], [1.0], [1e200], [1.0], [1.0]])
    match = r"Linear\(\) is inf.*Scale the features"
    assert_refuses(learner, lambda one: one.advance(far, Y[:5]), NumericalError, match)
