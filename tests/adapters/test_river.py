"""The estimators in River's own hands: its checks, pipelines, metrics; and their files."""

import copy
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, evaluate, feature_extraction, metrics, preprocessing, stats
from river.datasets import synth

import effort
from contracts.learners import assert_identical
from kons import Gaussian, load, save
from kons.errors import ConfigurationError, FileError, InputError
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from kons.river import KONSClassifier, KONSMultiTargetRegressor, KONSRegressor

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")

MODELS = [model(**given) for model in (KONSRegressor, KONSClassifier) for given in model._unit_test_params()]
MODELS.append(
    KONSRegressor("embedded", kernel="linear", warmup=10, forgetting=0.99, parameters={"forward": True})
)
MODELS += [KONSMultiTargetRegressor(**given) for given in KONSMultiTargetRegressor._unit_test_params()]


def checks_of(model):
    """In a soak all of River's checks. Else each of them, and each of its streams, once for each estimator.

    The default takes the other streams than the one past its warm-up, and both take checks without one.
    """
    found = list(checks.yield_checks(model))
    if effort.is_soak():
        return found
    if isinstance(model, KONSMultiTargetRegressor):  # the adapter's own part: one learner is enough
        return list({check.__name__: check for check in found if model.warmup == 5}.values())
    if model.learner != "auto" and model.warmup != 20:
        return []
    by_name = {}
    for check in found:
        by_name.setdefault(check.__name__, []).append(check)
    chosen = []
    for name, same in by_name.items():
        if name == "check_bounded_memory_growth":  # over ten times as many rows
            same = same[:1]
        first = same[:1] if model.warmup == 20 or len(same) == 1 else []
        chosen += first + (same[1:] if model.learner == "auto" else [])
    return chosen


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(
            model,
            check,
            id=f"{type(model).__name__}({model.learner}, {model.kernel}, {model.warmup})-{check.__name__}",
        )
        for model in MODELS
        for check in checks_of(model)
    ],
)
def test_river_s_checks(model, check):
    assert not model._unit_test_skips()
    check(model.clone())


RNG = np.random.default_rng(2)
NAMES = ["wind", "age", "zeal"]
X = RNG.normal(size=(400, 3)) * [100.0, 0.01, 1.0] + [5000.0, 0.0, 3.0]
Y = (1000.0 + 30.0 * np.sin(X[:, 0] / 60.0) + 2000.0 * X[:, 1]).tolist()
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
LABELS = ["low" if y < 1000 else "high" if y < 1020 else ("very", "high") for y in Y]
BY_NAME = X[:, [1, 0, 2]]  # columns are in the order of names


def played(model, rows, targets):
    """The predictions before each row."""
    out = []
    for x, y in zip(rows, targets, strict=True):
        out.append(model.predict_one(x))
        model.learn_one(x, y)
    return out


@pytest.mark.parametrize("learner", ["embedded", "kons", "sketched", "pkawv"])
def test_rows_are_what_the_learner_inside_would_see(learner):
    expected = for_task("regression", learner, warmup=50, seed=4).advance(BY_NAME, Y).prediction
    predictions = played(KONSRegressor(learner, warmup=50, seed=4), ROWS, Y)
    np.testing.assert_allclose(predictions, expected, rtol=1e-9)


def test_labels_are_what_the_learner_inside_would_say():
    core = for_task("classification", "embedded", warmup=50)
    expected = core.advance(BY_NAME, LABELS).prediction.tolist()
    model = KONSClassifier("embedded", warmup=50)
    assert played(model, ROWS, LABELS) == expected
    assert model.classes == core.classes
    probabilities = model.predict_proba_one(ROWS[0])
    np.testing.assert_allclose(list(probabilities.values()), core.predict_proba(BY_NAME[:1])[0], atol=1e-9)
    assert list(probabilities) == core.classes


def test_parameters_reach_the_learner():
    given = {
        "regularization": 0.3,
        "max_atoms": 7,
        "forgetting": 0.9,
        "bandwidth": 0.8,
        "parameters": {"bound": 3.0},
    }
    learner = KONSRegressor("embedded", **given).core.learner
    assert (learner.regularization, learner.max_atoms, learner.forgetting, learner.bound) == (
        0.3,
        7,
        0.9,
        3.0,
    )
    assert learner.kernel == Gaussian(0.8)
    hinged = KONSClassifier("embedded", kernel=Gaussian(2.0), loss="squared_hinge")
    assert hinged.core.learner.kernel == Gaussian(2.0)
    assert not KONSRegressor("embedded", scale="none").core.scale_features
    assert KONSRegressor("embedded").core.warmup == 200


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learner": "nobody"}, "no learner 'nobody'"),
        ({"kernel": "popcorn"}, "no kernel 'popcorn'"),
        ({"learner": "kons", "max_atoms": 5}, "takes no parameter 'max_atoms'"),
        ({"max_atoms": 5, "parameters": {"max_atoms": 6}}, "given twice"),
        ({"kernel": "linear", "parameters": {"kernel": "linear"}}, "kernel is given twice"),
        ({"parameters": [1]}, "expected a dict"),
        ({"learner": ["kons"]}, r"no learner \['kons'\]"),
        ({"kernel": ["linear"]}, r"no kernel \['linear'\]"),
        ({"learner": "embedded", "loss": ["squared"]}, r"no loss \['squared'\]"),
        ({"loss": "squared"}, "loss='squared' does not apply to 'auto'"),
        ({"warmup": 20}, "warmup=20 does not apply to 'auto'"),
        ({"scale": "none"}, "scale='none' does not apply to 'auto'"),
        ({"forgetting": 0.9}, "'auto' takes no parameter 'forgetting'"),
        ({"bandwidth": np.ones(2)}, "bandwidth is array"),
        ({"learner": "embedded", "warmup": 0}, "warmup"),
    ],
)
@pytest.mark.parametrize("model", [KONSRegressor, KONSClassifier])
def test_bad_parameters_are_refused_when_it_is_made(model, given, message):
    with pytest.raises(ConfigurationError, match=message):
        model(**given)


def test_clone_is_a_new_model_with_the_same_parameters():
    model = KONSRegressor("embedded", kernel=Gaussian(0.5), warmup=20, parameters={"bound": 2.0})
    played(model, ROWS, Y)
    twin = model.clone({"warmup": 30})
    assert (twin.rows_seen, twin.warmup, twin.kernel) == (0, 30, Gaussian(0.5))
    assert twin.parameters == {"bound": 2.0}
    assert twin.parameters is not model.parameters


# ---- in company


def test_progressive_validation_beats_the_mean_where_there_is_something_to_learn():
    stream = list(synth.Friedman(seed=1).take(2000))
    score = evaluate.progressive_val_score(stream, KONSRegressor("embedded", warmup=200), metrics.R2())
    assert score.get() > 0.7


def test_progressive_validation_of_classes():
    score = evaluate.progressive_val_score(
        datasets.Phishing(), KONSClassifier("embedded", warmup=100), metrics.Accuracy() + metrics.ROCAUC()
    )
    accuracy, area = score.get()
    assert accuracy > 0.85
    assert area > 0.9


def test_pipelines_select_scale_and_join():
    aggregate = feature_extraction.TargetAgg(by="colour", how=stats.Mean())
    model = (
        compose.Select("wind", "age")
        + (compose.Select("zeal") | preprocessing.StandardScaler())
        + (compose.Select("colour") | preprocessing.OneHotEncoder())
        + aggregate
    ) | KONSRegressor("embedded", warmup=50)
    rows = [x | {"colour": ["red", "blue"][i % 2], "unused": "!"} for i, x in enumerate(ROWS)]
    errors = np.abs(np.array(played(model, rows, Y)) - Y)
    assert errors[200:].mean() < 0.5 * np.abs(np.array(Y) - np.mean(Y)).mean()
    assert isinstance(model["KONSRegressor"], KONSRegressor)


def test_scaled_by_river_is_scaled_enough():
    model = preprocessing.StandardScaler() | KONSRegressor("embedded", scale="none", warmup=50)
    errors = np.abs(np.array(played(model, ROWS, Y)) - Y)
    assert errors[200:].mean() < 0.3 * np.abs(np.array(Y) - np.mean(Y)).mean()


def test_new_classes_at_any_time():
    model = KONSClassifier("embedded", warmup=20)
    assert model.predict_one(ROWS[0]) is None
    assert model.predict_proba_one(ROWS[0]) == {}
    assert model.classes == []
    labels = [(i // 60) % 6 for i in range(len(ROWS))]
    for i, (x, y) in enumerate(zip(ROWS, labels, strict=True)):
        model.learn_one(x, np.int64(y))
        assert model.classes == list(range(max(labels[: i + 1]) + 1))
    assert sum(model.predict_proba_one(ROWS[0]).values()) == pytest.approx(1.0)


def test_nothing_was_learned_nothing_is_known():
    assert KONSRegressor().predict_one({"a": 1.0}) == 0.0
    assert KONSRegressor().predict_one({}) == 0.0
    assert KONSRegressor().rows_seen == 0


# ---- copies and files


def wild(rows):
    """A stream in which features vanish, and others come late, one of them of text."""
    for i, x in enumerate(rows):
        wild = dict(x)
        if i % 7 == 0:
            del wild["age"]
        if i >= 30:
            wild["late"] = 0.5 * i % 11
        if i >= 150:
            wild["later"] = (i * 37) % 101
            wild["colour"] = ["red", "green", "blue"][i % 3]
        yield wild


WILD = list(wild(ROWS))
MAKERS = {
    "regressor": (lambda: KONSRegressor("embedded", warmup=60), Y),
    "classifier": (lambda: KONSClassifier("embedded", warmup=60), LABELS),
}


@effort.every_value(kind=[*MAKERS], at=[0, 60, 170, 300])
def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path, kind, at):
    make, targets = MAKERS[kind]
    model = make()
    played(model, WILD[:at], targets[:at])
    save(model, tmp_path / "model.kons")
    others = [load(tmp_path / "model.kons"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = played(model, WILD[at:330], targets[at:330])
    for other in others:
        assert type(other) is type(model)
        assert other._get_params() == model._get_params()
        assert played(other, WILD[at:330], targets[at:330]) == expected
        assert_identical(other.state(), model.state())


def forgeries(state):
    """States that cannot be, each by one change of a good one."""
    core = state["core"]
    encoder = core["encoder"]
    columns = encoder["columns"]
    name, kind, column = columns[0]
    for key, value in {
        "width": 99,
        "columns": [*columns, ("one more", kind, column)],
        "outputs": 99,
        "late": [1.0],
        "looked": 7,
        "known": -1,
        "grows": "yes",
        "asked": [("a", [("b", [1.0])])],
    }.items():
        yield state | {"core": core | {"encoder": encoder | {key: value}}}
    for forged in (
        [("no kind", "colour", column), *columns[1:]],
        [([], kind, column), *columns[1:]],
        [(name, "text", column), *columns[1:]],
        [(name, kind, column | {"total": float("nan")}), *columns[1:]],
        [(name, kind, column | {"slots": [0, 1, 2]}), *columns[1:]],
        columns[:-1],
        ["ab"],
    ):
        yield state | {"core": core | {"encoder": encoder | {"columns": forged}}}
    yield state | {"core": core | {"encoder": None}}
    yield state | {"core": None}
    yield state | {"another": 1}
    yield {}


def test_forged_states_are_refused():
    model = KONSRegressor("embedded", warmup=60)
    played(model, WILD[:250], Y[:250])
    for forged in forgeries(model.state()):
        with pytest.raises(FileError):
            KONSRegressor.from_state(model._get_params(), forged)
    KONSRegressor.from_state(model._get_params(), model.state())


def test_names_that_a_file_cannot_hold_are_refused_when_it_is_saved():
    model = KONSRegressor()
    model.learn_one({object(): 1.0}, 2.0)
    with pytest.raises(FileError, match="without pickle"):
        to_bytes(model)
    model = KONSRegressor()
    model.learn_one({1: 1.0, ("a", 2): 3.0, "b": True}, 2.0)
    assert from_bytes(to_bytes(model)).predict_one({"b": 0}) == 2.0


def test_targets_may_be_any_numbers():
    twin, model = KONSRegressor("embedded", warmup=5), KONSRegressor("embedded", warmup=5)
    kinds = itertools.cycle([int, np.float64, np.float32, np.int64])
    for x, y, kind in zip(ROWS[:60], Y[:60], kinds, strict=False):
        twin.learn_one(x, float(kind(y)))
        model.learn_one(x, kind(y))
    assert_identical(model.state(), twin.state())
    for bad in (None, "text", float("nan"), float("inf"), 10**400):
        with pytest.raises(InputError):
            model.learn_one(ROWS[60], bad)
    assert_identical(model.state(), twin.state())


def test_without_river_the_line_that_installs_it():
    code = (
        "import sys; sys.modules['river'] = None\n"
        "import kons\n"
        "try:\n    import kons.river\n"
        "except kons.errors.MissingExtraError as error:\n    print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'kons[river]'" in shown


def test_several_targets_by_name():
    """As the core learner has them, whatever the order of the names; a file in between."""
    rows, targets = ROWS[:150], [{"level": y, "half": y / 2.0 - 7.0} for y in Y[:150]]
    model, core = KONSMultiTargetRegressor("embedded", warmup=50), KONSRegressor("embedded", warmup=50).core
    assert model.predict_one(rows[0]) == model.predict_one(rows[0], with_interval=True) == {}
    for i, (x, y) in enumerate(zip(rows, targets, strict=True)):
        if i:
            said = model.predict_one(x)
            assert list(said) == ["level", "half"]
            assert list(said.values()) == core.predict_one(x).tolist()
            intervals = model.predict_one(x, with_interval=True, level=0.8)
            ends = [(interval.lower, interval.upper) for interval in intervals.values()]
            np.testing.assert_array_equal(ends, core.predict_interval_one(x, 0.8))
        if i == 80:
            model = from_bytes(to_bytes(model))
        if i % 3:
            model.learn_one(x, dict(reversed(y.items())) if i % 2 else y)
        else:
            model.ask(x, i)
            model.tell(i, y)
        core.learn_one(x, list(y.values()))
    by_frame = KONSMultiTargetRegressor("embedded", warmup=50)
    by_frame.learn_many(pd.DataFrame(rows), pd.DataFrame(targets))
    assert by_frame.predict_one(rows[0]) == pytest.approx(model.predict_one(rows[0]), rel=1e-9)
    for wrong in ({"level": 1.0}, {"level": 1.0, "half": 1.0, "more": 2.0}, 3.0, {}):
        with pytest.raises(InputError, match="expected a dict of 'level', 'half'"):
            model.learn_one(rows[0], wrong)
    with pytest.raises(ConfigurationError, match="'norma' learns one target a row"):
        KONSMultiTargetRegressor("norma")
