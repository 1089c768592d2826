"""Baselines in raw units, with delays, for labels, and across a saved state."""

import numpy as np
import pytest

import effort
import evaluation.naive_baselines as naive
from contracts.learners import assert_identical
from kons.errors import FileError, InputError
from kons.evaluation import (
    LastLabel,
    MajorityClass,
    OnlineLinear,
    OnlineLogistic,
    Persistence,
    RunningMean,
)

LABELS = {"majority": MajorityClass, "last": LastLabel, "logistic": OnlineLogistic}
NUMBERS = {
    "mean": RunningMean,
    "persistence": Persistence,
    "linear": lambda: OnlineLinear(standardize=True),
    "plain linear": OnlineLinear,
}


@pytest.fixture
def stream():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4)) * [1.0, 1e4, 1e-4, 1.0] + [0.0, 1e5, 1.0, 5.0]
    X[:, 3] = np.where(np.arange(300) < 100, 5.0, X[:, 3])  # constant for a while
    y = 1e6 + X[:, 0] + 1e-4 * X[:, 1] + 0.1 * rng.normal(size=300)
    return X, y


@pytest.fixture
def labels(stream):
    """Three labels, the last of which comes late."""
    _, y = stream
    codes = np.where(y > np.median(y), 1, 0)
    codes[0], codes[1] = 0, 1
    codes[150:][y[150:] > np.quantile(y, 0.8)] = 2
    return codes


def delayed(baseline, X, targets, delay, cut):
    """Blocks in which each row is learned ``delay`` rows late."""
    parts = []
    for start in range(0, len(X), cut):
        stop = min(start + cut, len(X))
        learned = slice(max(start - delay, 0), max(stop - delay, 0))
        known = np.maximum(np.arange(start, stop) - delay, 0) - learned.start
        points = X[start:stop]
        rows = None if delay == 0 else X[learned]
        played = baseline.play(points, rows, targets[learned], known)
        parts.append(np.atleast_2d(played)[0])
    return np.concatenate(parts)


@effort.every_value(cut=[1, 7, 64, 300], delay=[0, 1, 5, 40, 400])
class TestDelays:
    def test_linear(self, stream, delay, cut):
        X, y = stream
        expected = naive.linear(X, y, delay)
        predictions = delayed(OnlineLinear(standardize=True), X, y, delay, cut)
        assert predictions == pytest.approx(expected, rel=1e-11, abs=1e-6)

    def test_mean_and_persistence(self, stream, delay, cut):
        X, y = stream
        known = [y[: max(t - delay, 0)] for t in range(len(y))]
        means = [part.mean() if len(part) else 0.0 for part in known]
        last = [part[-1] if len(part) else 0.0 for part in known]
        assert delayed(RunningMean(), X, y, delay, cut) == pytest.approx(means, rel=1e-15)
        assert np.array_equal(delayed(Persistence(), X, y, delay, cut), last)

    def test_majority_and_last_label(self, stream, labels, delay, cut):
        X, _ = stream
        known = [labels[: max(t - delay, 0)] for t in range(len(labels))]
        majority = [np.bincount(part).argmax() if len(part) else -1 for part in known]
        last = [part[-1] if len(part) else -1 for part in known]
        assert np.array_equal(delayed(MajorityClass(), X, labels, delay, cut), majority)
        assert np.array_equal(delayed(LastLabel(), X, labels, delay, cut), last)


@pytest.mark.parametrize(("delay", "cut"), [(0, 64), (3, 1), (3, 50), (40, 300)])
def test_logistic(stream, labels, delay, cut):
    X, _ = stream
    expected = naive.logistic(X, labels, delay)
    assert np.array_equal(delayed(OnlineLogistic(), X, labels, delay, cut), expected)


def test_units_do_not_matter(stream):
    X, y = stream[0][:, :3], stream[1]
    plain = OnlineLinear(standardize=True).advance(X, y)
    other = OnlineLinear(standardize=True).advance(X * [1e6, 1e-9, 1.0] - 7.0, 1e3 * y + 5.0)
    assert other.loss[20:].mean() == pytest.approx(1e6 * plain.loss[20:].mean(), rel=1e-6)
    assert plain.loss[20:].mean() < 0.05 * y.var()


def test_a_column_that_was_constant_but_for_rounding():
    """The cosine of Thursday is that of Friday to the last digit but one; Saturday's is another."""
    rng = np.random.default_rng(0)
    day = np.cos(2.0 * np.pi * (np.arange(300) // 24 % 7 + 3) / 7.0)
    assert 0.0 < np.ptp(day[:48]) < 1e-14
    x = rng.normal(size=300)
    found, expected = (
        OnlineLinear(standardize=True).advance(np.stack([x, column], axis=1), x)["prediction"]
        for column in (day, day.round(12))
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_rows_beyond_all_digits_do_not_outlive_themselves(standardize):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0]
    labels = y > 0
    X[50], X[60, 1] = 1e300, -1e308
    tiny = 1e-150 * rng.normal(size=(400, 4))
    tiny[60] = 1e200
    for features in (X, 1e12 * rng.normal(size=(400, 4)) + 1e15, tiny):
        # Worse than the mean they may be, but not by much: what a huge row leaves of others is rounding.
        trace = OnlineLinear(standardize=standardize).advance(features, y)
        assert np.median(np.abs(trace.prediction - y)) < y.std()
        logistic = OnlineLogistic(standardize=standardize)
        assert logistic.advance(features, labels).loss.mean() < 0.6
        assert np.isfinite(logistic.predict_proba(features)).all()


def test_coefficients_are_in_the_units_of_the_data():
    X = np.random.default_rng(0).normal(size=(2000, 2)) * [1e3, 1e-3] + 5.0
    baseline = OnlineLinear(standardize=True)
    baseline.advance(X, X @ [2e-3, -4e3] + 1e4)
    assert baseline.coefficients == pytest.approx([2e-3, -4e3, 1e4], rel=1e-3)


def test_renewals_beyond_the_period_change_nothing_that_was_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 2)) * 50.0
    y = X @ [1.0, 2.0] + rng.normal(size=20_000)
    assert OnlineLinear(standardize=True).advance(X, y).loss[8000:].mean() == pytest.approx(1.0, abs=0.03)
    labels = y > 0
    assert OnlineLogistic().advance(X, labels).loss[8000:].mean() < 0.02


def test_logistic_is_as_good_as_the_batch_fit():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 5))
    labels = (X @ [1.0, -1.0, 0.5, 0.0, 0.0] + rng.logistic(size=4000)) > 0.3
    online = OnlineLogistic()
    error = online.advance(1000.0 * X, labels).loss.mean()
    batch = LogisticRegression(C=10.0).fit(X, labels)
    assert error < 1.0 - batch.score(X, labels) + 0.01
    column = online.classes.index(True)
    p = online.predict_proba(1000.0 * X)[:, column]
    assert p == pytest.approx(batch.predict_proba(X)[:, 1], abs=0.1)


@pytest.mark.parametrize("make", LABELS.values(), ids=LABELS)
def test_labels_of_any_kind(make, stream):
    X, y = stream
    words = np.where(y > np.median(y), "high", "low")
    trace = make().advance(X, words)
    assert trace.prediction[0] is None
    assert set(trace.prediction[1:]) <= {"high", "low"}
    assert np.array_equal(trace.loss, trace.prediction != words)
    codes = make().advance(X, (words == "high").astype(int))
    assert np.array_equal(codes.loss, trace.loss)
    one = make()
    for x, word in zip(X[:40], words[:40], strict=True):
        expected = one.predict_one(x)
        assert expected == one.predict([x])[0]
        one.learn_one(x, word)
    assert one.classes == list(dict.fromkeys(words[:40]))
    before = one.predict(X)
    for bad in ([None], [np.nan], ["a", "b"], "a", [["a"]]):
        with pytest.raises(InputError):
            one.advance(X[:1], bad)
    assert np.array_equal(one.predict(X), before)
    assert one.rows_seen == 40
    assert repr(one).startswith(type(one).__name__)


@pytest.mark.parametrize("make", [*NUMBERS.values(), *LABELS.values()], ids=[*NUMBERS, *LABELS])
@pytest.mark.parametrize("cut", [0, 1, 5, 64, 200])
def test_going_on_from_a_state_is_bit_for_bit(make, stream, labels, cut):
    X, y = stream
    whole = make()
    targets = labels if hasattr(whole, "classes") else y
    if cut:
        whole.advance(X[:cut], targets[:cut])
    resumed = type(whole).from_state(whole.parameters(), whole.state())
    assert_identical(resumed.state(), whole.state())
    left, right = (b.advance(X[cut:], targets[cut:]) for b in (whole, resumed))
    assert left.prediction.tolist() == right.prediction.tolist()
    assert_identical(resumed.state(), whole.state())
    with pytest.raises(FileError):
        type(whole).from_state(whole.parameters(), {**whole.state(), "rows_seen": "many"})


@effort.every_value(cut=[1, 7, 300], delay=[0, 5])
def test_what_labels_are_ranked_by(stream, labels, cut, delay):
    """The share of a label so far, the last one, and what online logistic regression would say next."""
    X, _ = stream
    codes = np.minimum(labels, 1)
    for name, make in LABELS.items():
        found, baseline, twin = [], make(), OnlineLogistic()
        for start in range(0, len(X), cut):
            rows, learned = (
                slice(start, start + cut),
                slice(max(start - delay, 0), max(min(start + cut, 300) - delay, 0)),
            )
            known = np.maximum(np.arange(start, min(start + cut, 300)) - delay, 0) - learned.start
            found.append(baseline.play(X[rows], X[learned] if delay else None, codes[learned], known)[1])
        expected = []
        for t in range(len(X)):
            seen = codes[: max(t - delay, 0)]
            if name == "logistic":
                shares = twin.predict_proba(X[t : t + 1])[0]
                expected.append(0.5 if not len(shares) else shares[1] if len(shares) > 1 else 0.0)
                if t >= delay:
                    twin.learn_one(X[t - delay], int(codes[t - delay]))
            elif name == "majority":
                expected.append(seen.mean() if len(seen) else 0.5)
            else:
                expected.append(seen[-1] if len(seen) else 0.5)
        np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-9, atol=1e-12)
