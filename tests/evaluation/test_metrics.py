"""Metrics against scikit-learn's, over all rows and over windows, in any cuts."""

import copy

import numpy as np
import pytest
from sklearn import metrics as referee

from kons.errors import ConfigurationError, FileError
from kons.evaluation.metrics import (
    AUC,
    F1,
    MAE,
    METRICS,
    MSE,
    R2,
    RMSE,
    AveragePrecision,
    LogLoss,
    MedianAbsoluteError,
    Precision,
    Recall,
    Rows,
    Total,
    make_metrics,
)

CUTS = [1, 7, 100, 1000]


def fed(metric, rows, cut):
    n = len(rows.target)
    for i in range(0, n, cut):
        parts = [None if column is None else column[i : i + cut] for column in rows[:4]]
        metric.update(Rows(*parts, *rows[4:]))
    return metric


def numbers(offset=0.0, n=1000, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=n) + offset
    return Rows(target, target + 0.3 * rng.normal(size=n))


def labels(classes=2, n=1000, seed=0, ties=False):
    """Codes, probabilities that know something, and the matrix they come from."""
    rng = np.random.default_rng(seed)
    target = rng.integers(classes, size=n)
    odds = rng.normal(size=(n, classes))
    odds[np.arange(n), target] += 1.0
    P = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    if ties:
        P = np.round(P, 1)
    rows = Rows(target, P.argmax(axis=1), P[np.arange(n), target], P[:, 1], 1, classes)
    return rows, P


REGRESSION = {
    "mse": referee.mean_squared_error,
    "rmse": referee.root_mean_squared_error,
    "mae": referee.mean_absolute_error,
    "r2": referee.r2_score,
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", REGRESSION)
def test_regression_metrics(name, cut):
    rows = numbers()
    expected = REGRESSION[name](rows.target, rows.prediction)
    assert fed(METRICS[name](), rows, cut).value == pytest.approx(expected, rel=1e-12)
    assert METRICS[name].over(rows) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("cut", [1, 100])
def test_a_high_level_costs_no_digits(cut):
    # Small integers beside 1e9: differences are exact, so that the level must not be seen at all.
    rng = np.random.default_rng(1)
    target, error = rng.integers(-9, 10, size=5000).astype(float), rng.integers(-2, 3, size=5000)
    low, high = Rows(target, target + error), Rows(target + 1e9, target + error + 1e9)
    assert fed(R2(), high, cut).value == pytest.approx(fed(R2(), low, cut).value, rel=1e-9)
    assert fed(MSE(), high, cut).value == fed(MSE(), low, cut).value
    assert R2.over(high) == pytest.approx(R2.over(low), rel=1e-9)


def test_sums_do_not_lose_small_parts():
    total = Total()
    for part in [1e16, *[1.0] * 1000, -1e16]:
        total.add(part)
    assert total.value == 1000.0


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("classes", [2, 4])
def test_error_log_loss_and_f1(classes, cut):
    rows, P = labels(classes)
    error, loss, f1 = (fed(METRICS[name](), rows, cut) for name in ("error_rate", "log_loss", "f1"))
    assert error.value == pytest.approx(1.0 - referee.accuracy_score(rows.target, rows.prediction))
    assert loss.value == pytest.approx(referee.log_loss(rows.target, P), rel=1e-12)
    average = "binary" if classes == 2 else "macro"
    expected = referee.f1_score(rows.target, rows.prediction, average=average)
    assert f1.value == pytest.approx(expected, rel=1e-12)
    assert F1.over(rows) == pytest.approx(expected, rel=1e-12)
    assert LogLoss.over(rows) == pytest.approx(loss.value, rel=1e-12)


def test_f1_is_about_the_positive_label():
    rows, _ = labels(2)
    expected = referee.f1_score(rows.target, rows.prediction, pos_label=0)
    assert F1.over(rows._replace(positive=0)) == pytest.approx(expected)


@pytest.mark.parametrize("positive", [0, 1])
def test_precision_and_recall_are_about_the_positive_label(positive):
    rows, _ = labels(2)
    rows = rows._replace(positive=positive)
    for metric, judge in ((Precision, referee.precision_score), (Recall, referee.recall_score)):
        expected = judge(rows.target, rows.prediction, pos_label=positive)
        assert metric.over(rows) == pytest.approx(expected)
        assert fed(metric(), rows, 7).value == pytest.approx(expected)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("positive", [0, 1])
def test_average_precision(ties, positive):
    rows, _ = labels(2, n=3000, ties=ties)
    rows = rows._replace(positive=positive)
    score = rows.score if positive else 1.0 - rows.score
    expected = referee.average_precision_score(rows.target == positive, score)
    assert AveragePrecision.over(rows) == pytest.approx(expected, rel=1e-9)
    # Scores that share one of 8,192 bins count as ties.
    assert fed(AveragePrecision(), rows, 100).value == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_median_of_errors_in_any_unit(scale):
    rng = np.random.default_rng(0)
    rows = Rows(scale * rng.normal(size=999), scale * rng.normal(size=999))
    expected = referee.median_absolute_error(rows.target, rows.prediction)
    assert MedianAbsoluteError.over(rows) == pytest.approx(expected, rel=1e-12)
    metric = fed(MedianAbsoluteError(), rows, 10)
    assert metric.value == pytest.approx(expected, rel=1.0 / 32.0)  # the width of a bin
    assert MedianAbsoluteError().resume(metric.state()).value == metric.value
    assert MedianAbsoluteError.over(Rows(np.ones(3), np.ones(3))) == 0.0
    assert fed(MedianAbsoluteError(), Rows(np.ones(3), np.ones(3)), 1).value == 0.0


def test_f1_of_a_window_without_a_third_label_is_still_a_mean_over_labels():
    rows = Rows(np.array([0, 1, 1]), np.array([0, 1, 0]), classes=3)
    assert F1.over(rows) == pytest.approx(referee.f1_score([0, 1, 1], [0, 1, 0], average="macro"))


@pytest.mark.parametrize("ties", [False, True])
def test_auc(ties):
    rows, _ = labels(2, n=3000, ties=ties)
    expected = referee.roc_auc_score(rows.target, rows.score)
    assert AUC.over(rows) == pytest.approx(expected, rel=1e-12)
    running = fed(AUC(), rows, 100)
    assert abs(running.value - expected) <= running.error
    assert ties or running.error < 0.001
    assert running.value == pytest.approx(expected, abs=1e-12 if ties else 1e-4)
    # Which label is the positive one does not matter.
    swapped = rows._replace(target=1 - rows.target, score=1.0 - rows.score)
    assert AUC.over(swapped) == pytest.approx(expected, rel=1e-12)


def test_the_running_auc_of_rare_tiny_scores():
    rng = np.random.default_rng(3)
    target = (rng.random(20_000) < 0.005).astype(int)
    score = 1e-4 * np.exp(rng.normal(size=20_000) + target)
    rows = Rows(target, np.zeros(20_000, int), None, score)
    running = fed(AUC(), rows, 1000)
    assert abs(running.value - referee.roc_auc_score(target, score)) <= running.error < 0.001


def test_auc_takes_the_ends():
    rows = Rows(np.array([0, 1, 0, 1]), np.zeros(4, int), None, np.array([0.0, 1.0, 1.0, np.nan]))
    assert fed(AUC(), rows, 2).value == pytest.approx(0.5)


def test_what_is_not_defined_is_nan():
    constant = Rows(np.ones(3), np.zeros(3))
    one_class = Rows(np.zeros(3, int), np.zeros(3, int), np.ones(3), np.zeros(3))
    three = labels(3)[0]
    for value in (
        MSE().value,
        RMSE().value,
        MAE.over(Rows(np.empty(0), np.empty(0))),
        R2.over(constant),
        fed(R2(), constant, 1).value,
        AUC.over(one_class),
        fed(AUC(), one_class, 2).value,
        F1.over(one_class),
        AUC.over(three),
        fed(AUC(), three, 100).value,
        fed(AUC(), three, 100).error,
    ):
        assert np.isnan(value)


def test_a_label_without_prediction_is_wrong():
    rows = Rows(np.array([0, 1]), np.array([-1, 1]), np.array([0.0, 1.0]), np.zeros(2))
    assert METRICS["error_rate"].over(rows) == 0.5
    assert LogLoss.over(rows) == pytest.approx(-0.5 * np.log(np.finfo(float).eps))
    assert F1.over(rows) == 1.0


@pytest.mark.parametrize("name", METRICS)
def test_going_on_from_a_state(name):
    rows = numbers() if METRICS[name].task == "regression" else labels(2)[0]
    whole = METRICS[name]()
    fed(whole, Rows(*[None if c is None else c[:500] for c in rows[:4]], *rows[4:]), 50)
    state = copy.deepcopy(whole.state())
    resumed = METRICS[name]().resume(state)
    rest = Rows(*[None if c is None else c[500:] for c in rows[:4]], *rows[4:])
    assert fed(resumed, rest, 50).value == fed(whole, rest, 50).value
    with pytest.raises(FileError, match="another"):
        METRICS[name]().resume({**state, "another": 1})
    METRICS[name]().resume(METRICS[name]().state())  # before any row


def test_a_forged_histogram_is_refused():
    state = fed(AUC(), labels(2)[0], 100).state()
    state["counts"][0, -1] = 1e9
    with pytest.raises(FileError, match="place 1000000000"):
        AUC().resume(state)


def test_metrics_by_name():
    assert [m.name for m in make_metrics("regression", ["mae", "mse", "mae"])] == ["mae", "mse"]
    assert [m.name for m in make_metrics("regression", "r2")] == ["r2"]
    with pytest.raises(ConfigurationError, match="there are mse, rmse, mae, medae, r2"):
        make_metrics("regression", ["auc"])
    assert repr(fed(MAE(), Rows(np.ones(2), np.zeros(2)), 1)) == "MAE(mae=1)"
