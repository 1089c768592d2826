"""The engine against a plain loop over rows; cuts, delays, labels, and going on from a saved state."""

import copy
from collections import deque

import numpy as np
import pytest
from sklearn import metrics as referee

import effort
import evaluation.naive_baselines as naive
from contracts.learners import assert_identical
from kons import Classifier, EmbeddedKONS, Gaussian, Logistic, Scaled, Squared, evaluate
from kons.errors import ConfigurationError, FileError, InputError, TargetError
from kons.evaluation import OnlineLinear, OnlineLogistic, Prequential
from kons.evaluation.window import Curves, Window
from kons.files import read_tree, write_tree
from kons.streams import Block

ROWS = 500
WINDOW = 150


def regressor():
    return Scaled(EmbeddedKONS(Gaussian("auto"), Squared(), second_order="hessian", max_atoms=30), warmup=100)


def classifier():
    core = EmbeddedKONS(Gaussian("auto"), Logistic(), bound=4.0, second_order="hessian", max_atoms=30)
    return Scaled(Classifier(core), warmup=100)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(ROWS, 3)) * [1.0, 100.0, 0.01]
    return X, 500.0 + 20.0 * np.sin(X[:, 0]) + 0.1 * X[:, 1] + rng.normal(size=ROWS)


@pytest.fixture(scope="module")
def words(numbers):
    """Three labels of which the third comes late; the first two are in no alphabetical order."""
    X, y = numbers
    labels = np.where(y > 500.0, "low", "high").astype(object)
    labels[300:][y[300:] > 515.0] = "out"
    return X, labels


def play(engine, X, y, cuts):
    scored = []
    for start, stop in zip([0, *cuts], [*cuts, len(X)], strict=True):
        if stop > start:
            lines = np.arange(start, stop)
            scored.append(engine.advance(Block(start, X[start:stop], y[start:stop], lines)))
    engine.finish()
    return scored, engine.result()


def column(scored, name):
    return np.concatenate([getattr(part, name) for part in scored])


def every(step):
    return list(range(step, ROWS, step))


def plain_loop(learner, X, y, delay, labelled=False):
    """Row by row, straight from the definition: predict with what is known, then learn what has become so."""
    waiting, predictions, shares, sizes = deque(), [], [], []
    for x, target in zip(X, y, strict=True):
        predictions.append(learner.predict_one(x))
        shares.append(learner.predict_proba_one(x) if labelled else None)
        waiting.append((x, target))
        if len(waiting) > delay:
            learner.learn_one(*waiting.popleft())
        sizes.append(learner.size)
    for x, target in waiting:
        learner.learn_one(x, target)
    return predictions, shares, sizes


@effort.every_value(delay=[0, 1, 6, 130, 1000], step=[1, 64, ROWS])
def test_regression_is_the_plain_loop(numbers, delay, step):
    X, y = numbers
    twin = regressor()
    predictions, _, sizes = plain_loop(twin, X, y, delay)
    predictions = np.array(predictions)
    engine = Prequential(regressor(), "regression", delay=delay, window=WINDOW)
    scored, result = play(engine, X, y, every(step))
    assert column(scored, "prediction") == pytest.approx(predictions, rel=1e-9)
    assert column(scored, "loss") == pytest.approx((predictions - y) ** 2, rel=1e-5, abs=1e-9)
    assert np.array_equal(column(scored, "row"), np.arange(ROWS))
    assert engine.learner.rows_seen == ROWS  # what came late was learned at the end
    assert engine.learner.predict(X) == pytest.approx(twin.predict(X), rel=1e-9)

    assert result.rows == ROWS
    # Rows that came before any target was known are in no figure.
    blind = delay + 1
    if blind < ROWS:
        told, said = y[blind:], predictions[blind:]
        assert result.loss == pytest.approx(referee.mean_squared_error(told, said))
        typical = result.metrics.pop("medae")
        assert typical == pytest.approx(referee.median_absolute_error(told, said), rel=0.03)
        assert result.metrics == pytest.approx(
            {
                "mse": referee.mean_squared_error(told, said),
                "rmse": referee.root_mean_squared_error(told, said),
                "mae": referee.mean_absolute_error(told, said),
                "r2": referee.r2_score(told, said),
            }
        )
    else:
        assert np.isnan([result.loss, *result.metrics.values()]).all()
    known = [y[: max(t - delay, 0)] for t in range(ROWS)]
    baselines = {
        "constant": np.array([part.mean() if len(part) else 0.0 for part in known]),
        "persistence": np.array([part[-1] if len(part) else 0.0 for part in known]),
        "linear": naive.linear(X, y, delay),
    }
    assert list(result.baselines) == list(baselines)
    for name, forecast in baselines.items():
        expected = np.mean((forecast - y)[blind:] ** 2) if blind < ROWS else np.nan
        assert result.baselines[name] == pytest.approx(expected, rel=1e-9, nan_ok=True)
        losses = np.concatenate([part.baseline_losses[name] for part in scored])
        assert losses == pytest.approx((forecast - y) ** 2, rel=1e-6, abs=1e-6)

    assert result.checkpoints.tolist() == [*range(32, ROWS, 32), ROWS]
    lower, upper = column(scored, "lower"), column(scored, "upper")
    inside = np.where(np.isnan(lower), np.nan, (lower <= y) & (y <= upper))
    for i, end in enumerate(result.checkpoints):
        last = slice(max(end - WINDOW, blind), end)
        curves = {name: values[i] for name, values in result.curves.items()}
        if end <= blind:
            assert all(np.isnan(value) for name, value in curves.items() if name != "atoms")
            continue
        assert curves["rmse"] == pytest.approx(referee.root_mean_squared_error(y[last], predictions[last]))
        assert curves["medae"] == pytest.approx(referee.median_absolute_error(y[last], predictions[last]))
        if end > blind + 1:
            assert curves["r2"] == pytest.approx(referee.r2_score(y[last], predictions[last]))
        assert curves["running_loss"] == pytest.approx(np.mean((predictions - y)[blind:end] ** 2))
        assert curves["linear"] == pytest.approx(np.mean((baselines["linear"] - y)[last] ** 2))
        constant = (baselines["constant"] - y)[blind:end]
        assert curves["running_constant"] == pytest.approx(np.mean(constant**2))
        judged = inside[last][~np.isnan(inside[last])]
        assert curves["coverage"] == pytest.approx(judged.mean() if len(judged) else np.nan, nan_ok=True)
        if delay:
            assert curves["atoms"] == sizes[end - 1]
    assert result.coverage == pytest.approx(np.nanmean(inside) if delay < ROWS else np.nan, nan_ok=True)


@effort.every_value(delay=[0, 1, 6, 130, 1000], step=[1, 100, ROWS])
def test_classification_is_the_plain_loop(words, delay, step):
    X, labels = words
    predictions, shares, _ = plain_loop(classifier(), X, labels, delay, labelled=True)
    engine = Prequential(classifier(), "classification", delay=delay, window=WINDOW)
    scored, result = play(engine, X, labels, every(step))
    assert column(scored, "prediction").tolist() == predictions
    wrong = np.array([p != label for p, label in zip(predictions, labels, strict=True)])
    assert column(scored, "loss").tolist() == wrong.tolist()
    probability = [share.get(p, 0.0) for share, p in zip(shares, predictions, strict=True)]
    assert column(scored, "probability") == pytest.approx(probability, abs=1e-9)

    truth = [
        max(share.get(label, 0.0), np.finfo(float).eps) for share, label in zip(shares, labels, strict=True)
    ]
    predicted = [str(p) for p in predictions]
    blind = delay + 1
    if blind < ROWS:
        assert result.loss == pytest.approx(wrong[blind:].mean())
        assert result.metrics["error_rate"] == pytest.approx(wrong[blind:].mean())
        assert result.metrics["log_loss"] == pytest.approx(-np.mean(np.log(truth[blind:])))
        each = {"average": "macro", "labels": ["low", "high", "out"], "zero_division": 0.0}
        both = labels[blind:].tolist(), predicted[blind:]
        assert result.metrics["f1"] == pytest.approx(referee.f1_score(*both, **each))
        assert result.metrics["precision"] == pytest.approx(referee.precision_score(*both, **each))
        assert result.metrics["recall"] == pytest.approx(referee.recall_score(*both, **each))
    assert np.isnan(result.metrics["auc"])  # three labels
    assert result.classes == list(dict.fromkeys(labels))
    codes = np.array([result.classes.index(label) for label in labels])
    known = [codes[: max(t - delay, 0)] for t in range(ROWS)]
    wrongs = {
        "constant": [not len(k) or np.bincount(k).argmax() != c for k, c in zip(known, codes, strict=True)],
        "persistence": [not len(k) or k[-1] != c for k, c in zip(known, codes, strict=True)],
        "linear": naive.logistic(X, codes, delay) != codes,
    }
    expected = {name: np.mean(each[blind:]) if blind < ROWS else np.nan for name, each in wrongs.items()}
    assert result.baselines == pytest.approx(expected, nan_ok=True)
    for i, end in enumerate(result.checkpoints):
        last = slice(max(end - WINDOW, blind), end)
        if end <= blind:
            continue
        assert result.windowed["error_rate"][i] == pytest.approx(wrong[last].mean())
        if end <= 300 and len(set(labels[last])) == 2:
            # While there are two labels, the scores of one are the probabilities of it.
            score = [share.get("low", 0.0) if share else 0.5 for share in shares[last]]
            assert result.windowed["auc"][i] == pytest.approx(
                referee.roc_auc_score(labels[last] == "low", score), abs=1e-6
            )
            counts = {label: np.count_nonzero(labels[blind:end] == label) for label in result.classes[:2]}
            rarer = min(reversed(counts), key=lambda label: counts[label])  # of equals the later one
            right = labels[last] == rarer, np.array(predicted)[last] == rarer
            assert result.windowed["f1"][i] == pytest.approx(referee.f1_score(*right))
    assert result.coverage is None
    assert np.isnan(column(scored, "lower")).all()


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_random_cuts_change_nothing(numbers, words, task, delay):
    X, y = numbers if task == "regression" else words
    make = regressor if task == "regression" else classifier
    rng = np.random.default_rng(0)
    _, whole = play(Prequential(make(), task, delay=delay, window=WINDOW), X, y, [])
    for _ in range(effort.amount(2, 4)):
        cuts = sorted(rng.choice(np.arange(1, ROWS), size=rng.integers(1, 40), replace=False).tolist())
        _, other = play(Prequential(make(), task, delay=delay, window=WINDOW), X, y, cuts)
        assert other.metrics == pytest.approx(whole.metrics, rel=1e-6, nan_ok=True)
        assert other.baselines == pytest.approx(whole.baselines, rel=1e-9)
        assert np.array_equal(other.checkpoints, whole.checkpoints)
        for name, values in whole.curves.items():
            assert other.curves[name] == pytest.approx(values, rel=1e-6, nan_ok=True), name
        assert other.coverage == whole.coverage


@effort.every_pair(cut=[64, 320], task=["regression", "classification"], delay=[0, 20])
def test_going_on_from_a_saved_state_is_bit_for_bit(numbers, words, task, delay, cut, tmp_path):
    X, y = numbers if task == "regression" else words
    engine = Prequential(
        regressor() if task == "regression" else classifier(), task, delay=delay, window=WINDOW
    )
    for start in range(0, cut, 64):
        engine.advance((X[start : start + 64], y[start : start + 64]))
    write_tree(tmp_path / "engine", engine.state(), kind="test")
    learner = Scaled.from_state(engine.learner.parameters(), engine.learner.state())
    resumed = Prequential(learner, task, delay=delay, window=WINDOW)
    resumed.resume(read_tree(tmp_path / "engine", kind="test"))
    assert_identical(resumed.state(), engine.state())
    for start in range(cut, ROWS, 64):
        left, right = (e.advance((X[start : start + 64], y[start : start + 64])) for e in (engine, resumed))
        assert left.prediction.tolist() == right.prediction.tolist()
        for name in ("lower", "upper", "loss"):
            assert getattr(left, name).tobytes() == getattr(right, name).tobytes()
    without_time = [{k: v for k, v in e.state().items() if "seconds" not in k} for e in (engine, resumed)]
    assert_identical(*without_time)
    engine.finish()
    resumed.finish()
    assert_identical(engine.learner.state(), resumed.learner.state())


@effort.every_pair(cut=[0, 1, 200], task=["regression", "classification"], delay=[0, 20])
def test_going_back_to_a_mark_is_bit_for_bit(numbers, words, task, delay, cut):
    X, y = numbers if task == "regression" else words
    learner = regressor() if task == "regression" else classifier()
    engine = Prequential(learner, task, delay=delay, window=WINDOW)
    if cut:
        engine.advance((X[:cut], y[:cut]))
    before, mark = engine.state(), engine.mark()
    engine.advance((X[cut:], y[cut:]))
    engine.restore(mark)
    assert_identical(engine.state(), before)


def test_before_the_first_row_there_is_a_state_too(numbers):
    X, y = numbers
    fresh, resumed = (
        Prequential(OnlineLinear(), "regression", metrics=["mae"], intervals=None, baselines=False)
        for _ in range(2)
    )
    resumed.resume(copy.deepcopy(fresh.state()))
    _, result = play(resumed, X, y, [])
    assert list(result.metrics) == ["mae"]
    assert result.baselines == {}
    assert result.coverage is None
    assert result.best_baseline is None


def test_a_forged_state_is_refused(numbers):
    X, y = numbers
    engine = Prequential(OnlineLinear(), "regression", delay=2)
    engine.advance((X, y))
    for name, value in [
        ("notes", [3]),
        ("board", None),
        ("baselines", {"oracle": {}}),
        ("baselines", {}),
        ("pending_targets", np.zeros(3)),
        ("more", 1),
    ]:
        with pytest.raises(FileError):
            Prequential(OnlineLinear(), "regression", delay=2).resume(engine.state() | {name: value})


class OwnDelay:
    """A learner that delays itself: it counts what it was given, and what it used."""

    def __init__(self, delay):
        self.delay = delay
        self._inside = OnlineLinear()
        self._waiting = deque()

    def advance(self, X, y):
        predictions = []
        for x, target in zip(X, y, strict=True):
            predictions.append(self._inside.predict_one(x))
            self._waiting.append((x, target))
            if len(self._waiting) > self.delay:
                self._inside.learn_one(*self._waiting.popleft())
        trace = OnlineLinear().advance(X, y)
        return type(trace)(kept=trace.kept, size=trace.size, prediction=np.array(predictions))

    predict_one = learn_one = None


def test_a_learner_that_delays_itself_is_not_delayed_twice(numbers):
    X, y = numbers
    own, _ = play(Prequential(OwnDelay(4), "regression", delay=4), X, y, every(50))
    given, _ = play(Prequential(OnlineLinear(), "regression", delay=4), X, y, every(50))
    assert column(own, "prediction") == pytest.approx(column(given, "prediction"), rel=1e-9, abs=1e-6)
    with pytest.raises(ConfigurationError, match="made for delay=4"):
        Prequential(OwnDelay(4), "regression")


def test_nothing_is_learned_before_its_time(numbers):
    """A target that is changed must not show in any prediction before it is known."""
    X, y = numbers
    other = y.copy()
    other[300] += 30.0
    for delay in (0, 7):
        runs = []
        for targets in (y, other):
            engine = Prequential(regressor(), "regression", delay=delay)
            scored, _ = play(engine, X, targets, every(64))
            runs.append(scored)
        for name in ("prediction", "lower", "upper"):
            left, right = (column(run, name) for run in runs)
            changed = np.flatnonzero(~((left == right) | (np.isnan(left) & np.isnan(right))))
            assert changed.min() >= 301 + delay, name
        assert column(runs[0], "prediction")[301 + delay] != column(runs[1], "prediction")[301 + delay]


def test_an_error_leaves_everything_as_it_was(numbers, words):
    X, y = numbers
    engine = Prequential(regressor(), "regression", window=WINDOW)
    engine.advance((X[:300], y[:300]))
    before, learner = engine.state(), engine.learner.state()
    bad = X[300:310].copy()
    bad[5, 1] = np.nan
    for block in ((bad, y[300:310]), (X[300:310], [np.nan] * 10), (X[300:310], y[:3]), (X[:0], y[:0])):
        with pytest.raises(InputError):
            engine.advance(block)
    assert_identical(engine.state(), before)
    assert_identical(engine.learner.state(), learner)
    labelled = Prequential(classifier(), "classification")
    labelled.advance((X[:300], words[1][:300]))
    before = labelled.state()
    with pytest.raises(InputError):
        labelled.advance((bad, ["new"] * 10))
    assert_identical(labelled.state(), before)


def test_a_target_the_learner_refuses(numbers):
    X, y = numbers
    engine = Prequential(EmbeddedKONS(Gaussian(), Squared()), "regression")
    with pytest.raises(TargetError):
        engine.advance((X, y))
    assert engine.rows == 0
    assert np.isnan(engine.loss)


def test_wrong_use_is_told(numbers):
    X, y = numbers
    with pytest.raises(ConfigurationError, match="task is"):
        Prequential(regressor(), "clustering")
    with pytest.raises(ConfigurationError, match="no classes, probabilities"):
        Prequential(EmbeddedKONS(Gaussian(), Squared()), "classification")
    with pytest.raises(ConfigurationError, match="no metric 'auc'"):
        Prequential(regressor(), "regression", metrics=["auc"])
    for name, value in [("delay", -1), ("window", 0), ("baselines", "no"), ("intervals", 2.0)]:
        with pytest.raises(ConfigurationError):
            Prequential(regressor(), "regression", **{name: value})
    engine = Prequential(regressor(), "regression")
    with pytest.raises(InputError, match="no row"):
        engine.result()
    play(engine, X, y, [])
    engine.finish()
    with pytest.raises(ConfigurationError, match="finished"):
        engine.advance((X, y))


def test_many_features_leave_the_linear_baseline_out():
    X = np.random.default_rng(0).normal(size=(50, 400))
    engine = Prequential(regressor(), "regression")
    _, result = play(engine, X, X[:, 0], [])
    assert set(result.baselines) == {"constant", "persistence"}
    assert "400" in result.notes[0]


def test_labels_the_learner_knows_in_another_order(words):
    X, labels = words
    core = EmbeddedKONS(Gaussian("auto"), Logistic(), bound=4.0, second_order="hessian", max_atoms=30)
    two = np.where(labels == "out", "low", labels)
    open_set = Prequential(Scaled(Classifier(core), 100), "classification", window=WINDOW)
    closed = Prequential(
        Scaled(Classifier(core, classes=sorted(set(two))), 100), "classification", window=WINDOW
    )
    _, left = play(open_set, X, two, every(100))
    _, right = play(closed, X, two, every(100))
    assert left.classes == right.classes == list(dict.fromkeys(two))
    # Behind the first rows both know both labels.
    for name in ("error_rate", "auc", "log_loss"):
        assert right.windowed[name][-1] == pytest.approx(left.windowed[name][-1], abs=0.02)
    assert right.metrics["auc"] > 0.8


def test_a_window_slides_over_rows_in_any_cuts():
    values = np.random.default_rng(0).normal(size=(2, 3000))
    for size in (1, 10, 400, 5000):
        window = Window(size, 2)
        done = 0
        for cut in np.random.default_rng(1).integers(1, 300, size=40):
            part = values[:, done : done + cut]
            if part.shape[1] == 0:
                break
            window.append(part)
            done += part.shape[1]
            for back in (0, part.shape[1] // 2, part.shape[1] - 1):
                end = done - back
                assert np.array_equal(window.last(back), values[:, max(end - size, 0) : end])
            if done % 7 == 0:
                window = Window(size, 2).resume(window.state())


def test_curves_stay_short_however_long_the_stream():
    curves = Curves(["a"])
    while curves.next_row <= 3_000_000:
        curves.add([np.nan if curves.next_row % 64 else float(curves.next_row)])
        if curves.next_row > 100_000 and len(curves) % 100 == 0:
            curves = Curves(["a"]).resume(curves.state())
    assert 256 <= len(curves) < 512
    assert np.array_equal(curves.row, curves.stride * np.arange(1, len(curves) + 1))
    assert np.array_equal(curves.table()[:, 0], curves.row)


def test_the_state_does_not_grow_with_the_stream():
    def size(tree):
        if isinstance(tree, dict):
            return sum(map(size, tree.values()))
        if isinstance(tree, (list, tuple)):
            return sum(map(size, tree))
        return tree.nbytes if isinstance(tree, np.ndarray) else 8

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 2))
    engine, sizes = Prequential(OnlineLinear(), "regression"), []
    for start in range(0, 60_000, 6000):
        engine.advance((X[start : start + 6000], X[start : start + 6000, 0]))
        sizes.append(size(engine.state()))
    assert max(sizes[3:]) < 1.2 * sizes[3]


def test_how_the_baselines_rank_labels():
    """As scikit-learn has it, of what each would have said of the rows; rows in bins share a threshold."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3))
    y = np.where(X[:, 0] + rng.normal(size=1500) > 1.5, "rare", "usual")
    result = evaluate("embedded", (X, y), task="classification")
    linear = OnlineLogistic()
    shares = []
    for row, label in zip(X, y, strict=True):
        known = linear.classes
        shares.append(linear.predict_proba(row[None])[0, known.index("rare")] if "rare" in known else 0.0)
        linear.learn_one(row, label)
    came = y == "rare"
    before = {
        "constant": [came[:t].mean() for t in range(1, 1500)],
        "persistence": came[:-1].astype(float),
        "linear": shares[1:],
    }
    assert result.positive == "rare"
    assert result.baseline_metrics.keys() == before.keys()
    for name, scores in before.items():
        found = result.baseline_metrics[name]
        assert found["auc"] == pytest.approx(referee.roc_auc_score(came[1:], scores), abs=0.002)
        expected = referee.average_precision_score(came[1:], scores)
        assert found["average_precision"] == pytest.approx(expected, abs=0.005)
        assert f"; {name} {found['auc']:.4g}" in repr(result)
    assert evaluate("embedded", (X, X[:, 0])).baseline_metrics == {}
