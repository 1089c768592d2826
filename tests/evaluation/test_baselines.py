import numpy as np
import pytest

from kons.errors import ConfigurationError, InputError
from kons.evaluation import MajorityClass, OnlineLinear, Persistence, RunningMean

MAKERS = {
    "mean": RunningMean,
    "persistence": Persistence,
    "linear": OnlineLinear,
    "clipped": lambda: OnlineLinear(0.5, bound=0.3),
}


@pytest.fixture
def stream():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(150, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] - 0.5 + 0.1 * rng.normal(size=150)


@pytest.fixture(params=MAKERS, ids=MAKERS)
def make(request):
    return MAKERS[request.param]


def dense_forecasts(X, y, regularization):
    """Vovk-Azoury-Warmuth from its definition: a fresh solve with the current row inside A."""
    Z = np.column_stack([X, np.ones(len(X))])
    forecasts = []
    for t in range(len(y)):
        A = regularization * np.eye(Z.shape[1]) + Z[: t + 1].T @ Z[: t + 1]
        forecasts.append(Z[t] @ np.linalg.solve(A, Z[:t].T @ y[:t]))
    coefficients = np.linalg.solve(regularization * np.eye(Z.shape[1]) + Z.T @ Z, Z.T @ y)
    return np.array(forecasts), coefficients


@pytest.mark.parametrize("regularization", [1e-3, 0.1, 10.0])
def test_online_linear_is_the_dense_formula(stream, regularization):
    X, y = stream
    forecasts, coefficients = dense_forecasts(X, y, regularization)
    baseline = OnlineLinear(regularization)
    assert baseline.advance(X, y).prediction == pytest.approx(forecasts, abs=1e-10)
    assert baseline.coefficients == pytest.approx(coefficients, abs=1e-10)


def test_clipping_changes_the_prediction_and_nothing_learned(stream):
    X, y = stream
    free, clipped = OnlineLinear(), OnlineLinear(bound=0.3)
    trace = clipped.advance(X, y)
    assert np.array_equal(trace.prediction, np.clip(free.advance(X, y).prediction, -0.3, 0.3))
    assert np.array_equal(free.coefficients, clipped.coefficients)


def test_running_mean_and_persistence_are_their_formulas(stream):
    X, y = stream
    means = [0.0, *(y[:t].mean() for t in range(1, len(y)))]
    assert RunningMean().advance(X, y).prediction == pytest.approx(means, abs=1e-13)
    assert np.array_equal(Persistence().advance(X, y).prediction, [0.0, *y[:-1]])


@pytest.mark.parametrize("block", [1, 7, 64, 150])
def test_blocks_equal_rows(make, stream, block):
    X, y = stream
    whole, cut = make(), make()
    expected = whole.advance(X, y).prediction
    parts = [cut.advance(X[i : i + block], y[i : i + block]) for i in range(0, len(y), block)]
    assert np.array_equal(np.concatenate([part.prediction for part in parts]), expected)
    assert whole.rows_seen == cut.rows_seen == len(y)
    assert np.array_equal(whole.predict(X), cut.predict(X))


def test_predict_one_then_learn_one_is_advance(make, stream):
    X, y = stream
    baseline, predictions = make(), []
    for x, target in zip(X, y, strict=True):
        predictions.append(baseline.predict_one(x))
        assert baseline.learn_one(x, target) is None
    assert predictions == pytest.approx(make().advance(X, y).prediction, abs=1e-12)


def test_predict_is_pure_and_treats_each_row_as_the_next(make, stream):
    X, y = stream
    baseline = make()
    assert baseline.predict(X).tolist() == [0.0] * len(X)
    baseline.advance(X[:100], y[:100])
    first = baseline.predict(X[100:])
    assert first == pytest.approx([baseline.predict_one(x) for x in X[100:]], abs=1e-14)
    assert np.array_equal(first, baseline.predict(X[100:]))
    assert first[0] == pytest.approx(baseline.advance(X[100:], y[100:]).prediction[0], abs=1e-12)


def test_the_trace_is_that_of_a_learner(make, stream):
    X, y = stream
    trace = make().advance(X, y)
    assert np.array_equal(trace.loss, (trace.prediction - y) ** 2)
    assert np.array_equal(trace.slope, 2 * (trace.prediction - y))
    assert len(trace) == len(y)
    assert not trace.kept.any()
    assert not trace.size.any()


def test_input_is_neither_kept_nor_changed(make, stream):
    X, y = (array.copy() for array in stream)
    baseline = make()
    baseline.advance(X, y)
    assert np.array_equal(X, stream[0])
    assert np.array_equal(y, stream[1])
    before = baseline.predict(stream[0])
    X[:], y[:] = 9.0, 9.0
    assert np.array_equal(baseline.predict(stream[0]), before)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0] * 4], [np.nan]),
        ([[1.0] * 4] * 2, [1.0]),
        (np.empty((0, 4)), []),
        (7.0, [1.0]),
    ],
)
def test_bad_input_changes_nothing(make, stream, X, y):
    baseline = make()
    baseline.advance(*stream)
    before = baseline.predict(stream[0])
    with pytest.raises(InputError):
        baseline.advance(X, y)
    with pytest.raises(InputError):
        baseline.learn_one(stream[0][0], np.inf)
    assert np.array_equal(baseline.predict(stream[0]), before)
    assert baseline.rows_seen == len(stream[1])


def test_online_linear_holds_on_to_its_width(stream):
    baseline = OnlineLinear()
    baseline.advance(*stream)
    with pytest.raises(InputError, match="seen 4 so far"):
        baseline.predict_one([1.0, 2.0])
    with pytest.raises(InputError, match="expected finite"):
        baseline.advance([[np.nan] * 4], [0.0])


@pytest.mark.parametrize("make_blind", [RunningMean, Persistence])
def test_baselines_that_ignore_features_take_any_objects(make_blind):
    baseline = make_blind()
    assert baseline.advance(["a word", None], [1.0, 1.0]).prediction.tolist() == [0.0, 1.0]
    assert baseline.predict_one("another") == 1.0


@pytest.mark.parametrize("arguments", [{"regularization": 0.0}, {"bound": -1.0}])
def test_bad_parameters_are_named(arguments):
    with pytest.raises(ConfigurationError, match=f"^{next(iter(arguments))} is "):
        OnlineLinear(**arguments)


def test_repr_shows_the_parameters():
    assert repr(OnlineLinear(0.2)) == "OnlineLinear(regularization=0.2, bound=None, standardize=False)"
    assert repr(RunningMean()) == "RunningMean()"


def test_a_label_that_never_came_is_not_counted():
    majority = MajorityClass()
    majority.advance([[0.0]] * 3, ["a", "a", "a"])
    assert majority.state()["counts"].tolist() == [3.0]
