import numpy as np
import pytest

from kons import KONS, EmbeddedKONS, Gaussian, Linear, SketchedKONS, Squared
from kons.errors import ConfigurationError, InputError, TargetError
from kons.evaluation import KernelGradientDescent, fit_batch
from kons.kernels import FunctionKernel
from kons.policies import Leverage


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(150, 2))
    return X, 0.5 * np.sin(3 * X[:, 0]) + 0.2 * X[:, 1] + rng.uniform(-0.2, 0.2, 150)


def learner(**choices):
    return KONS(Gaussian(0.5), Squared(), regularization=0.1, **choices)


def first_stop(slope, leverage, threshold, patience):
    """Row by row: the number of rows learned when the rule fires, or None."""
    calm = 0
    for t, (g, tau) in enumerate(zip(slope, leverage, strict=True)):
        if g != 0.0:
            calm = calm + 1 if tau < threshold else 0
        if calm == patience:
            return t + 1
    return None


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize(("threshold", "patience"), [(0.2, 10), (0.1, 30), (0.03, 7), (0.005, 40)])
def test_it_stops_at_the_row_the_rule_names(data, second_order, threshold, patience):
    X, y = data
    orders = np.random.default_rng(4)
    order = np.concatenate([orders.permutation(len(y)) for _ in range(6)])
    whole = learner(second_order=second_order).advance(X[order], y[order])
    expected = first_stop(whole.slope, whole.leverage, threshold, patience)
    fitted = learner(second_order=second_order)
    fit = fit_batch(fitted, X, y, threshold=threshold, patience=patience, max_passes=6, seed=4)
    assert fit.stopped == (expected is not None)
    assert fit.rows_learned == fitted.rows_seen == len(fit.trace) == (expected or len(order))
    assert fit.passes == -(-fit.rows_learned // len(y))
    assert fit.rows_saved == 6 * len(y) - fit.rows_learned
    np.testing.assert_allclose(fit.trace.prediction, whole.prediction[: fit.rows_learned], rtol=0, atol=1e-9)


def test_a_smaller_threshold_learns_more_rows(data):
    learned = [
        fit_batch(learner(), *data, threshold=threshold, patience=20, max_passes=20).rows_learned
        for threshold in (0.3, 0.1, 0.03, 0.01)
    ]
    assert learned == sorted(learned)
    assert len(set(learned)) == 4


def test_it_saves_rows_for_little_loss(data):
    X, y = data
    stopping, patient = learner(second_order="hessian"), learner(second_order="hessian")
    fit = fit_batch(stopping, X, y, threshold=0.1, patience=40, max_passes=10)
    fit_batch(patient, X, y, threshold=1e-9, patience=40, max_passes=10)
    loss, least = (np.mean((fitted.predict(X) - y) ** 2) for fitted in (stopping, patient))
    assert fit.stopped
    assert stopping.size < patient.size / 2
    assert least <= loss < least + 0.005


def test_rows_met_exactly_neither_count_nor_break_the_count():
    """Targets of 0 are met by the function 0: no row ever tells anything, so nothing stops it."""
    X = np.eye(4)
    silent = fit_batch(KONS(Linear(), Squared()), X, np.zeros(4), threshold=0.5, patience=2, max_passes=3)
    assert not silent.stopped
    assert silent.rows_learned == 12
    # One telling row a pass, the first: patience is counted in those.
    y = np.array([0.5, 0.0, 0.0, 0.0])
    fit = fit_batch(KONS(Linear(), Squared()), X, y, threshold=0.4, patience=3, max_passes=50, seed=None)
    telling = fit.trace.slope != 0.0
    assert fit.stopped
    assert np.flatnonzero(telling).tolist() == [0, 4, 8]
    assert fit.rows_learned == 9
    assert fit.passes == 3
    assert np.all(fit.trace.leverage[telling] < 0.4)


def test_a_sketch_is_judged_by_the_leverage_that_a_row_would_have(data):
    """A coin that kept a row out makes its weight 0, which is no sign that it taught nothing."""
    X, y = data
    sketch = SketchedKONS(Gaussian(0.5), Squared(), regularization=0.1, policy=Leverage(0.01), seed=1)
    fit = fit_batch(sketch, X, y, threshold=0.01, patience=5, max_passes=1, seed=2)
    trace, sigma = fit.trace, 1 / 8
    mass = sigma * trace.slope**2 * trace.inverse_form
    leverage = mass / (1 + mass)
    assert first_stop(trace.slope, leverage, 0.01, 5) == (fit.rows_learned if fit.stopped else None)
    assert np.any((trace.leverage == 0.0) & (leverage > 0.01))


def test_a_span_stops_too_and_goes_on_where_it_was(data):
    X, y = data
    embedded = EmbeddedKONS(Gaussian(0.5), Squared(), second_order="hessian", max_atoms=30)
    fit = fit_batch(embedded, X, y, threshold=0.1, patience=30, max_passes=20)
    assert fit.stopped
    again = fit_batch(embedded, X, y, threshold=0.1, patience=30, max_passes=20)
    assert again.rows_learned < fit.rows_learned
    assert embedded.rows_seen == fit.rows_learned + again.rows_learned


def test_objects():
    kernel = FunctionKernel(lambda a, b: float(a == b))
    fit = fit_batch(
        KONS(kernel, Squared(), second_order="hessian"),
        ["a", "b"] * 10,
        [0.5, -0.5] * 10,
        threshold=0.2,
        patience=2,
    )
    assert fit.stopped


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"threshold": 0.0}, ConfigurationError),
        ({"patience": 0}, ConfigurationError),
        ({"max_passes": 0}, ConfigurationError),
        ({"seed": -1}, ConfigurationError),
        ({"y": np.ones(3)}, InputError),
        ({"y": np.full(150, 2.0)}, TargetError),
    ],
)
def test_bad_input_is_refused_before_anything_is_learned(data, change, error):
    X, y = data
    fitted = learner()
    with pytest.raises(error):
        fit_batch(fitted, **({"X": X, "y": y} | change))
    assert fitted.rows_seen == 0


def test_learners_that_cannot_stop_are_refused(data):
    with pytest.raises(ConfigurationError, match="forgetting"):
        fit_batch(EmbeddedKONS(Gaussian(), Squared(), forgetting=0.99), *data)
    with pytest.raises(ConfigurationError, match="KernelGradientDescent"):
        fit_batch(KernelGradientDescent(Gaussian(), Squared()), *data)  # type: ignore[arg-type]
