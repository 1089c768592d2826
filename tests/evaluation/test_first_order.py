import numpy as np
import pytest

import naive
from kons import Gaussian, Logistic, Polynomial, Squared, SquaredHinge
from kons.errors import ConfigurationError, InputError, NumericalError, TargetError
from kons.evaluation import KernelGradientDescent
from kons.kernels import FunctionKernel, Linear
from kons.losses import CustomLoss
from kons.step_sizes import Constant


@pytest.fixture
def stream():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.5, 1.5, size=(300, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)


def explicit(Phi, y, loss, bound, etas):
    """Gradient descent on a weight vector, projected on |u.phi| <= bound before each step."""
    slope = naive.LOSSES[type(loss).__name__][0]
    u, predictions, slopes = np.zeros(Phi.shape[1]), [], []
    for phi, target, eta in zip(Phi, y, etas, strict=True):
        y_hat = np.clip(phi @ u, -bound, bound)
        u = u - (phi @ u - y_hat) / (phi @ phi) * phi
        g = slope(y_hat, target)
        u = u - eta * g * phi
        predictions.append(y_hat)
        slopes.append(g)
    return np.array(predictions), np.array(slopes), u


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize("step", [0.05, 1.0])
def test_it_is_gradient_descent_on_explicit_features(stream, loss, step):
    X, y = stream
    Phi = naive.quadratic_features(X)
    etas = step / np.sqrt(np.arange(1, len(y) + 1))
    prediction, slope, u = explicit(Phi, y, loss, 1.0, etas)
    learner = KernelGradientDescent(Polynomial(degree=2, offset=0.0), loss, step=step)
    trace = learner.advance(X, y)
    np.testing.assert_allclose(trace.prediction, prediction, rtol=0, atol=1e-10)
    np.testing.assert_allclose(trace.slope, slope, rtol=0, atol=1e-10)
    np.testing.assert_allclose(trace.loss, loss.value(prediction, y), rtol=0, atol=1e-10)
    np.testing.assert_allclose(learner.predict(X), np.clip(Phi @ u, -1, 1), rtol=0, atol=1e-10)
    if step == 1.0:
        assert np.any(np.abs(prediction) == 1.0)  # the projection was at work


def test_the_default_step_is_bound_over_lipschitz(stream):
    X, y = stream
    given = KernelGradientDescent(Gaussian(), Logistic(), 2.0, step=2.0 / Logistic().lipschitz(2.0))
    default = KernelGradientDescent(Gaussian(), Logistic(), 2.0)
    np.testing.assert_allclose(default.advance(X, y).prediction, given.advance(X, y).prediction, atol=1e-14)


def test_a_schedule_is_used_as_it_is(stream):
    X, y = stream
    one, other = (
        KernelGradientDescent(Gaussian(), Squared(), step=step) for step in (Constant(0.3), lambda t: 0.3)
    )
    assert np.array_equal(one.advance(X, y).prediction, other.advance(X, y).prediction)


@pytest.mark.parametrize("cut", [1, 7, 299])
def test_blocks_equal_rows(stream, cut):
    X, y = stream
    whole, parts = (KernelGradientDescent(Gaussian(0.7), Squared(), step=0.5) for _ in range(2))
    expected = whole.advance(X, y)
    traces = [parts.advance(X[i : i + cut], y[i : i + cut]) for i in range(0, len(y), cut)]
    np.testing.assert_allclose(
        np.concatenate([trace.prediction for trace in traces]), expected.prediction, rtol=0, atol=1e-12
    )
    assert traces[-1].size[-1] == expected.size[-1] == parts.size == len(y)


def test_one_row_at_a_time(stream):
    X, y = stream
    learner, predictions = KernelGradientDescent(Gaussian(), Squared()), []
    for x, target in zip(X[:50], y[:50], strict=True):
        predictions.append(learner.predict_one(x))
        learner.learn_one(x, target)
    expected = KernelGradientDescent(Gaussian(), Squared()).advance(X[:50], y[:50])
    np.testing.assert_allclose(predictions, expected.prediction, rtol=0, atol=1e-12)
    assert learner.rows_seen == 50


def test_a_loss_from_python_and_objects(stream):
    X, y = stream
    custom = CustomLoss(lambda p, t: (p - t) ** 2, lambda p, t: 2 * (p - t))
    kernel = FunctionKernel(lambda a, b: float(np.exp(-0.5 * np.sum((a - b) ** 2))))
    slow = KernelGradientDescent(kernel, custom, step=0.5).advance(list(X[:60]), y[:60])
    fast = KernelGradientDescent(Gaussian(), Squared(), step=0.5).advance(X[:60], y[:60])
    np.testing.assert_allclose(slow.prediction, fast.prediction, rtol=0, atol=1e-12)


def test_a_row_met_exactly_is_not_kept():
    learner = KernelGradientDescent(Linear(), Squared())
    trace = learner.advance([[1.0], [1.0]], [0.0, 0.5])
    assert trace.kept.tolist() == [False, True]
    assert trace.size.tolist() == [0, 1]


def test_errors_leave_it_as_it_was(stream):
    X, y = stream
    learner = KernelGradientDescent(Linear(), Squared(), step=0.1)
    learner.advance(X, y)
    before = learner.predict(X)
    with pytest.raises(InputError):
        learner.advance(X[:, :2], y)
    with pytest.raises(TargetError):
        learner.advance(X, 2 * y)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(NumericalError):
        learner.advance(np.vstack([X, [[1e200] * 3] * 2]), np.append(y, [1.0, 1.0]))
    assert np.array_equal(learner.predict(X), before)
    assert (learner.rows_seen, learner.size) == (len(y), len(y))


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, "c"])
def test_bad_steps_are_named(step):
    with pytest.raises(ConfigurationError, match=r"^step"):
        KernelGradientDescent(Gaussian(), Squared(), step=step)


def test_repr_shows_the_parameters():
    assert repr(KernelGradientDescent(Linear(), Squared(), step=0.5)).endswith("bound=1.0, step=0.5)")
