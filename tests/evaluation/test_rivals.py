"""Models of other libraries on our streams: each learns, is asked before, and fails in a sentence."""

import importlib
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import kons
from kons.errors import ConfigurationError, KonsError, MissingExtraError
from kons.evaluation import RIVALS, Refitted, RiverModel, make_rival

ROWS = 400
CHEAP = {"lightgbm": {"n_estimators": 20}, "sklearn_boosting": {"max_iter": 10}, "river_arf": {"n_models": 3}}


def needs(name):
    """Skip where the library of a rival is not installed."""
    package = {"lightgbm": "lightgbm", "sklearn_boosting": "sklearn"}.get(name, "river")
    try:
        importlib.import_module(package)
    except (ImportError, OSError) as error:  # a wheel of LightGBM is without the library of OpenMP
        pytest.skip(f"{package} cannot be imported ({error}): pip install 'kons[rivals]'")


def stream(task, rows=ROWS):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(rows, 3))
    y = 10.0 + 5.0 * X[:, 0] + np.sign(X[:, 1])
    return X, y if task == "regression" else np.where(y > 10.0, "high", "low").astype(object)


def untidy(rows=300):
    """Text, gaps, and labels of text, as dicts; ``late`` is a column that comes when models are fitted."""
    rng = np.random.default_rng(1)
    for i in range(rows):
        colour, size = rng.choice(["red", "blue", "green"]), float(rng.normal())
        label = "large" if size + (colour == "red") > 0.5 else "small"
        row = {"colour": colour, "size": size if rng.random() > 0.1 else None}
        yield row | ({"late": float(rng.normal())} if i > 120 else {}), label


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_with_a_name_beats_the_constant(name, task):
    needs(name)
    result = kons.evaluate(make_rival(name, task, **CHEAP.get(name, {})), stream(task))
    assert result.last_quarter["loss"] < 0.6 * result.last_quarter["constant"]
    assert result.longest_pause > 0.0
    assert result.rows == ROWS
    assert result.learner_name not in ("Pipeline", "TargetStandardScaler", "OneVsRestClassifier")


@pytest.mark.parametrize("name", RIVALS)
def test_text_gaps_and_late_columns(name):
    needs(name)
    result = kons.evaluate(make_rival(name, "classification", **CHEAP.get(name, {})), untidy())
    assert result.loss < 0.8 * result.baselines["constant"]
    assert result.classes == ["large", "small"] or result.classes == ["small", "large"]
    assert 0.5 < result.metrics["auc"] <= 1.0


@pytest.mark.parametrize("name", ["sklearn_boosting", "river_linear"])
def test_a_late_column_that_comes_while_rows_wait(name):
    needs(name)
    result = kons.evaluate(make_rival(name, "classification", **CHEAP.get(name, {})), untidy(), delay=130)
    assert result.learner.rows_seen == 300
    assert result.loss < result.baselines["constant"]


@pytest.mark.parametrize("name", ["sklearn_boosting", "river_linear"])
def test_three_labels_of_text_and_gaps(name):
    needs(name)
    X, _ = stream("regression")
    y = np.where(X[:, 0] > 0.3, "a", np.where(X[:, 1] > 0.0, "b", "c")).astype(object)
    X[::9, 2] = np.nan
    result = kons.evaluate(make_rival(name, "classification", **CHEAP.get(name, {})), (X, y))
    assert result.loss < 0.5 * result.baselines["constant"]
    assert result.metrics["log_loss"] < np.log(3)


class Remembering(DecisionTreeRegressor):
    """Notes how many rows each fit had."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.fits.append(len(y))
        return super().fit(X, y)


@pytest.mark.parametrize("block", [1, 7, 64, 1500])
def test_it_is_fitted_whenever_a_tenth_more_rows_have_come(block):
    Remembering.fits.clear()
    X, y = stream("regression", 1500)
    rival = Refitted(Remembering(random_state=0))
    said = [rival.advance(X[i : i + block], y[i : i + block]).prediction for i in range(0, 1500, block)]
    fits = [*range(50, 501, 50), 550, 605, 665, 731, 804, 884, 972, 1069, 1175, 1292, 1421]
    assert Remembering.fits == fits
    # The referee: each row by what scikit-learn makes of the rows before the last fit.
    expected = np.array([y[:i].mean() if i else 0.0 for i in range(50)])
    for start, stop in zip(fits, [*fits[1:], 1500], strict=True):
        tree = DecisionTreeRegressor(random_state=0).fit(X[:start], y[:start])
        expected = np.append(expected, tree.predict(X[start:stop]))
    np.testing.assert_allclose(np.concatenate(said), expected, rtol=1e-12)


def test_a_window_fits_the_last_rows_only():
    Remembering.fits.clear()
    Refitted(Remembering(), window=120).advance(*stream("regression", 260))
    assert Remembering.fits == [50, 100, 120, 120, 120]


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), RidgeClassifier(), DecisionTreeClassifier(random_state=0)]
)
def test_labels_of_an_estimator(model, delay):
    X, y = stream("classification", 200)
    result = kons.evaluate(model, (X, y), delay=delay)
    known = 50 + delay  # rows that were predicted before the first fit
    fits = [*range(50, 151, 50), 200]
    wrong = []
    for start, stop in pairwise(fits):
        fitted = type(model)(**model.get_params()).fit(X[:start], y[:start].astype(str))
        rows = slice(start + delay, min(stop + delay, 200))
        wrong += (fitted.predict(X[rows]) != y[rows]).tolist()
    majority = [
        max(["low", "high"], key=lambda label: (list(y[: max(i - delay, 0)]).count(label), label == y[0]))
        != y[i]
        for i in range(known)
    ]
    assert result.loss == pytest.approx(np.mean((majority + wrong)[delay + 1 :]))
    assert not hasattr(model, "classes_")  # what is handed in stays as it is


def test_one_class_at_first():
    X, y = stream("classification", 260)
    y[:110] = "low"
    result = kons.evaluate(LogisticRegression(), (X, y))
    assert result.loss < result.baselines["constant"]
    assert result.learner.fitted.classes_.tolist() == [0, 1]


def test_what_it_is_called_and_where_it_is_not_taken(tmp_path):
    X, y = stream("regression", 60)
    assert kons.evaluate(make_pipeline(StandardScaler(), Ridge()), (X, y)).learner_name == "Ridge"
    with pytest.raises(
        ConfigurationError, match="Ridge is for regression, and the targets are for classific"
    ):
        kons.evaluate(Ridge(), (X, y > 10.0), task="classification")
    with pytest.raises(ConfigurationError, match="KMeans is neither a classifier nor a regressor"):
        kons.evaluate(KMeans(), (X, y))
    with pytest.raises(ConfigurationError, match="Ridge learns one target a row"):
        kons.evaluate(Ridge(), (X, np.column_stack([y, y])))
    with pytest.raises(ConfigurationError, match="without weights"):
        kons.evaluate(LogisticRegression(), (X, (y > 10.0).tolist()), class_weight="balanced")
    with pytest.raises(ConfigurationError, match="'sklearn_boosting' cannot be made of depth=3"):
        make_rival("sklearn_boosting", "regression", depth=3)
    with pytest.raises(KonsError):
        kons.save(Refitted(Ridge()), tmp_path / "ridge.kons")


def test_an_error_is_told_in_a_sentence():
    X, y = stream("regression", 120)
    with pytest.raises(
        KonsError, match=r"KNeighborsRegressor could not predict after 50 row\(s\): ValueError: Exp"
    ):
        kons.evaluate(KNeighborsRegressor(n_neighbors=80), (X, y))
    with pytest.raises(
        KonsError, match=r"HistGradientBoostingRegressor could not fit after 50 row\(s\): Invalid"
    ):
        kons.evaluate(HistGradientBoostingRegressor(max_iter=-1), (X, y))


class Odd(KNeighborsClassifier):
    """Says what it is told to say of each row."""

    said: Any = None

    def predict_proba(self, X):
        return np.repeat([self.said], len(X), axis=0)


@pytest.mark.parametrize(
    "said", [[np.nan, np.nan], [np.inf, 0.0], [10.0, 0.0], [-1.0, 2.0], [0.5], [0.4] * 3]
)
def test_what_is_no_probability_is_no_loss(monkeypatch, said):
    monkeypatch.setattr(Odd, "said", said)
    with pytest.raises(KonsError, match=r"Odd could not predict after 50 row.*no probabilities of 2 classes"):
        kons.evaluate(Odd(), stream("classification", 120))


@pytest.mark.parametrize("code", [-1, 2, 0.5])
def test_a_label_that_nobody_learned_is_not_another(monkeypatch, code):
    monkeypatch.setattr(RidgeClassifier, "predict", lambda self, X: np.full(len(X), code))
    with pytest.raises(KonsError, match=r"RidgeClassifier could not predict .* labels that were not learned"):
        kons.evaluate(RidgeClassifier(), stream("classification", 120))


def test_an_error_without_words_is_told_by_its_name(monkeypatch):
    def fail(self, X, y):
        raise NotImplementedError

    monkeypatch.setattr(Ridge, "fit", fail)
    with pytest.raises(KonsError, match=r"after 50 row\(s\): NotImplementedError\.$"):
        kons.evaluate(Ridge(), stream("regression", 60))


def test_a_class_is_no_model_and_a_task_is_one_of_two():
    for kind in (Ridge, kons.AutoKONS):
        with pytest.raises(ConfigurationError, match=rf"{kind.__name__} is a class, expected a model"):
            kons.evaluate(kind, stream("regression", 60))
    with pytest.raises(ConfigurationError, match="task is 'ranking', expected"):
        Refitted(Ridge(), "ranking")


def test_lightgbm_has_its_defaults_on_one_thread(monkeypatch):
    """By a stand-in, whether it is installed or not: what it is made of, and how often it is fitted."""
    made = []

    class StandIn(Remembering):
        def __init__(self, **given):
            made.append(given)
            super().__init__()

        def get_params(self, deep=True):
            return {}

    Remembering.fits.clear()
    monkeypatch.setitem(sys.modules, "lightgbm", SimpleNamespace(LGBMRegressor=StandIn, LGBMClassifier=None))
    rival = make_rival("lightgbm", "regression", seed=3, max_depth=2, window=60)
    assert made == [{"n_jobs": 1, "verbose": -1, "random_state": 3, "max_depth": 2}]
    result = kons.evaluate(rival, stream("regression", 160))
    assert result.loss < result.baselines["constant"]
    assert Remembering.fits == [50, 60, 60]


def test_a_missing_library_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"The learner 'lightgbm' .* pip install 'kons\[rivals\]'"):
        kons.evaluate("lightgbm", stream("regression", 60))


def test_river_is_asked_as_river_asks():
    river = pytest.importorskip("river", reason="River is not installed")
    from river import linear_model, preprocessing, tree

    X, y = stream("regression", 200)

    def model():
        return preprocessing.StandardScaler() | linear_model.LinearRegression()

    alone, said = model(), []
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        row = dict(zip(["x0", "x1", "x2"], x, strict=True))
        said.append(alone.predict_one(row))
        alone.learn_one(row, target)
    losses = []
    result = kons.evaluate(model(), (X, y), callback=lambda engine, scored: losses.append(scored.prediction))
    assert np.concatenate(losses).tolist() == said
    assert result.learner_name == "LinearRegression"
    assert isinstance(tree.HoeffdingTreeClassifier(), river.base.Estimator)
    late = kons.evaluate(model(), (X, y), delay=5)
    assert late.loss != result.loss
    assert late.learner.rows_seen == 200


def test_labels_of_river_s_models():
    pytest.importorskip("river", reason="River is not installed")
    from river import cluster, linear_model, multiclass, naive_bayes, neighbors, preprocessing

    X, y = stream("classification", 300)
    two = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    for model in (two, naive_bayes.GaussianNB(), neighbors.KNNClassifier(), linear_model.PAClassifier()):
        result = kons.evaluate(model, (X, y))
        assert result.last_quarter["loss"] < 0.8 * result.last_quarter["constant"], model
    three = y.copy()
    three[X[:, 2] > 0.5] = "third"
    with pytest.raises(KonsError, match="two classes apart, and y holds a third, 'low': wrap it"):
        kons.evaluate(linear_model.LogisticRegression(), (X, three))
    wrapped = multiclass.OneVsRestClassifier(two.clone())
    assert kons.evaluate(wrapped, (X, three)).loss < 0.5
    with pytest.raises(ConfigurationError, match="KMeans is neither"):
        kons.evaluate(cluster.KMeans(), (X, y))


def test_a_model_of_river_that_diverges_is_told_of():
    pytest.importorskip("river", reason="River is not installed")
    from river import linear_model, optim

    X, y = stream("regression", 300)
    wild = linear_model.LinearRegression(optimizer=optim.SGD(10.0), clip_gradient=1e300)
    with pytest.raises(KonsError, match="LinearRegression predicts no finite numbers any more after"):
        kons.evaluate(wild, (1e3 * X, y))
    with pytest.raises(KonsError, match="it may need a scaler"):
        RiverModel(linear_model.LinearRegression(intercept_init=np.inf)).predict(X[:1])
