"""Learners, kernels and formats of a user's own, through every door: no base class, one line in a table."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kons
from kons import KONS, Classifier, Gaussian, Scaled, Squared, evaluate
from kons.checks import CHECKS, check_learner
from kons.cli import main
from kons.errors import ConfigurationError, FileError, InputError
from kons.evaluation import Prequential, fit_batch
from kons.kernels import Kernel
from kons.learners import Trace
from kons.learners.protocol import as_learner, can_learn
from kons.recipes import KERNELS, RECIPES, Recipe, for_task
from kons.report import drawing
from kons.sklearn import KONSClassifier, KONSRegressor
from kons.streams import FORMATS, Format, open_stream
from kons.theory import certify

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 2)) * [1.0, 1000.0] + [0.0, 5e4]
Z = (X - [0.0, 5e4]) / [1.0, 1000.0]
Y = 2e6 + 300.0 * (Z[:, 0] - 0.5 * Z[:, 1])
WORDS = np.where(Z[:, 0] > 0.4, "right", np.where(Z[:, 1] > 0, "up", "down")).astype(object)


class Rows:
    """Ridge regression, the least there can be: two verbs."""

    def __init__(self, ridge=0.1):
        self.ridge = ridge
        self.A = self.b = None

    def _wide(self, x):
        return np.append(x, 1.0)

    def predict_one(self, x):
        return 0.0 if self.A is None else float(np.linalg.solve(self.A, self.b) @ self._wide(x))

    def learn_one(self, x, y):
        z = self._wide(x)
        if self.A is None:
            self.A, self.b = self.ridge * np.eye(len(z)), np.zeros(len(z))
        self.A += np.outer(z, z)
        self.b += z * y


class Blocks:
    """The same by blocks: it says what it predicted, and takes weights."""

    def __init__(self, ridge=0.1):
        self.rows = Rows(ridge)

    def predict(self, X):
        return np.array([self.rows.predict_one(x) for x in X])

    def advance(self, X, y, sample_weight=None):
        said = []
        for x, target, weight in zip(
            X, y, np.ones(len(y)) if sample_weight is None else sample_weight, strict=True
        ):
            said.append(self.rows.predict_one(x))
            for _ in range(int(weight)):
                self.rows.learn_one(x, target)
        return np.array(said)


class Traced(Blocks):
    """The same, told as a trace, without its losses."""

    def advance(self, X, y, sample_weight=None):
        said = super().advance(X, y, sample_weight)
        return Trace(kept=np.zeros(len(X), bool), size=np.zeros(len(X), np.int64), prediction=said)


class Saved(Rows):
    """The same, and what a file needs."""

    def parameters(self):
        return {"ridge": self.ridge}

    def state(self):
        return {
            "A": None if self.A is None else self.A.copy(),
            "b": None if self.b is None else self.b.copy(),
        }

    @classmethod
    def from_state(cls, parameters, state):
        made = cls(**parameters)
        if not state.keys() == {"A", "b"} or (state["A"] is None) is not (state["b"] is None):
            raise ValueError("another state")
        made.A, made.b = copy.deepcopy((state["A"], state["b"]))
        return made


class Counts:
    """Labels by how often they came: probabilities of its own, and no list of classes."""

    def __init__(self):
        self.counts = {}

    def predict_one(self, x):
        return max(self.counts, key=self.counts.get, default=None)

    def predict_proba_one(self, x):
        total = sum(self.counts.values())
        return {label: count / total for label, count in self.counts.items()}

    def learn_one(self, x, y):
        self.counts[y] = self.counts.get(y, 0) + 1


def played(learner, X, y):
    said = []
    for x, target in zip(X, y, strict=True):
        said.append(learner.predict_one(x))
        learner.learn_one(x, target)
    return np.array(said)


# ---- evaluate


@pytest.mark.parametrize("kind", [Rows, Blocks, Traced, Saved])
def test_evaluate_takes_two_verbs(kind):
    learner = kind()
    result = evaluate(learner, (Z, Y), trace=True)
    assert result.learner is learner
    assert result.learner_name == kind.__name__
    assert result.atoms == 0
    assert not any("wrapped" in note for note in result.notes)
    expected = played(Rows(), Z, Y)
    np.testing.assert_array_equal(result.trace.prediction, expected)
    np.testing.assert_array_equal(result.trace.loss, (expected - Y) ** 2)
    assert result.loss == pytest.approx(np.mean((expected - Y)[1:] ** 2))


@pytest.mark.parametrize("kind", [Rows, Blocks])
def test_evaluate_delays_them(kind):
    result = evaluate(kind(), (Z, Y), delay=5, trace=True)
    learner, expected = Rows(), []
    for t in range(len(Z)):
        if t > 5:
            learner.learn_one(Z[t - 6], Y[t - 6])
        expected.append(learner.predict_one(Z[t]))
    np.testing.assert_allclose(result.trace.prediction, expected, rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 3])
def test_evaluate_takes_labels_with_probabilities(delay):
    learner = Counts()
    scored = []
    result = evaluate(learner, (Z, WORDS), delay=delay, callback=lambda _, block: scored.append(block))
    assert result.task == "classification"
    assert sum(learner.counts.values()) == len(Z)
    referee, said, probabilities = Counts(), [], []
    for t in range(len(Z)):
        if t > delay:
            referee.learn_one(Z[0], WORDS[t - delay - 1])
        said.append(referee.predict_one(Z[0]))
        probabilities.append(referee.predict_proba_one(Z[0]).get(said[-1], 0.0))
    assert [label for block in scored for label in block.prediction] == said
    np.testing.assert_allclose(np.concatenate([block.probability for block in scored]), probabilities)
    wrong = np.array(said, dtype=object) != WORDS
    assert result.loss == pytest.approx(np.mean(wrong[delay + 1 :]))
    assert set(result.classes) == {"right", "up", "down"}


def test_what_is_missing_is_named():
    class Deaf:
        def predict_one(self, x):
            return 0.0

    with pytest.raises(ConfigurationError, match="Deaf has no advance, needed for regression"):
        Prequential(Deaf(), "regression")
    with pytest.raises(
        ConfigurationError, match="Rows has no classes, probabilities, needed for classification"
    ):
        Prequential(Rows(), "classification")
    with pytest.raises(ConfigurationError, match="Counts predicts labels, expected a learner of numbers"):
        Scaled(Counts())
    with pytest.raises(ConfigurationError, match="Counts predicts labels already"):
        Classifier(Counts())
    with pytest.raises(ConfigurationError, match="takes a second-order learner, not Rows"):
        fit_batch(Rows(), Z, Z[:, 0])
    with pytest.raises(
        ConfigurationError, match="certify takes a KONS, SketchedKONS or EmbeddedKONS, not Rows"
    ):
        certify(Rows(), Z, Z[:, 0])
    for wrapper in (Scaled, Classifier):
        for wrong in (Deaf(), Rows, kons.KORS(Gaussian()), kons.AutoKONS()):
            assert not can_learn(wrong) or as_learner(wrong).units == "raw"
            with pytest.raises(ConfigurationError, match="expected"):
                wrapper(wrong)


def test_a_block_that_says_nothing_is_refused():
    class Silent(Blocks):
        def advance(self, X, y):
            super().advance(X, y)

    with pytest.raises(
        ConfigurationError, match=r"advance of Silent returned NoneType, expected a kons\.Trace"
    ):
        evaluate(Silent(), (Z, Y))


@pytest.mark.parametrize("kind", [Rows, Blocks])
def test_rows_and_their_features_are_counted(kind):
    learner = as_learner(kind())
    learner.advance(Z[:10], Y[:10])
    assert learner.rows_seen == 10
    learner.learn_one(Z[10], Y[10])
    assert learner.rows_seen == 11
    learner = as_learner(kind())
    learner.advance(Z[:10], Y[:10])
    with pytest.raises(InputError, match="has seen 2"):
        learner.predict(Z[:, :1])


def test_facts_are_asked_where_they_are_told():
    class Telling(Rows):
        units, bound, size, delay = "scaled", 2.0, 7, None

    told = as_learner(Telling())
    assert (told.units, told.bound, told.size, told.max_atoms, told.warming_up) == (
        "scaled",
        2.0,
        7,
        None,
        False,
    )
    result = evaluate(Telling(), (X, Y))
    assert type(result.learner) is Scaled  # as it asked for
    assert result.atoms == 7
    assert "Telling was wrapped in kons.Scaled" in result.notes[0]


# ---- inside of ours


@pytest.mark.parametrize("kind", [Rows, Blocks, Saved])
def test_scaled_learns_units_for_them(kind):
    pattern = kind()
    model = Scaled(pattern, warmup=60)
    losses = model.advance(X, Y).loss
    assert losses[-100:].mean() < 1e-3 * Y.var()
    whole = Scaled(kind(), warmup=60)
    cut = [whole.advance(X[i : i + 37], Y[i : i + 37]).prediction for i in range(0, len(X), 37)]
    np.testing.assert_array_equal(np.concatenate(cut), Scaled(kind(), warmup=60).advance(X, Y).prediction)
    one = Scaled(kind(), warmup=60)
    np.testing.assert_allclose(played(one, X, Y), np.concatenate(cut), rtol=1e-12)
    assert repr(pattern) in repr(model) or "ridge=0.1" in repr(model)
    assert as_learner(pattern).rows_seen is None  # it is only a pattern


@pytest.mark.parametrize("kind", [Rows, Blocks, Saved])
def test_classes_one_against_the_rest(kind):
    model = Classifier(kind())
    trace = model.advance(Z, WORDS)
    assert trace.loss[-100:].mean() < 0.2
    referees = {word: played(Rows(), Z, np.where(word == WORDS, 1.0, -1.0)) for word in model.classes}
    for column, word in enumerate(model.classes):
        met = ~np.isnan(trace.scores[:, column])
        assert met.sum() > 380
        np.testing.assert_allclose(trace.scores[met, column], referees[word][met], rtol=1e-9, atol=1e-9)
    one = Classifier(kind())
    assert played(one, Z, WORDS).tolist() == trace.prediction.tolist()
    assert evaluate(Scaled(Classifier(kind()), 50), (X, WORDS)).loss < 0.3
    assert sum(model.predict_proba_one(Z[0]).values()) == pytest.approx(1.0)


def test_an_error_inside_leaves_no_trace():
    class Fragile(Saved):
        def learn_one(self, x, y):
            super().learn_one(x, y)
            if x[0] > 1.5:
                raise RuntimeError("too far")

    near, far = Z[np.abs(Z[:, 0]) < 1.5], np.array([[0.1, 0.2], [3.0, 0.0]])
    for made in (lambda: Scaled(Fragile(), 20, scale_features=False), lambda: Classifier(Fragile())):
        model, labels = made(), np.where(near[:, 0] > 0, 1.0, -1.0)
        model.advance(near, labels)
        before = copy.deepcopy(model.state())
        for call, row in ((model.advance, (far, [1.0, -1.0])), (model.learn_one, (far[1], 1.0))):
            with pytest.raises(RuntimeError, match="too far"):
                call(*row)
            np.testing.assert_equal(model.state(), before)
        twin = made()
        twin.advance(near, labels)
        for one in (model, twin):
            one.advance(near[:9], labels[:9])
        np.testing.assert_equal(model.state(), twin.state())


def test_weights_reach_those_who_take_them():
    weights = np.where(Z[:, 0] > 0, 2.0, 1.0)
    repeated = np.repeat(np.arange(len(Z)), weights.astype(int))
    model = as_learner(Blocks())
    model.advance(Z, Y, sample_weight=weights)
    referee = Rows()
    played(referee, Z[repeated], Y[repeated])
    assert model.predict_one(Z[0]) == pytest.approx(referee.predict_one(Z[0]), rel=1e-9)
    with pytest.raises(ConfigurationError, match="Rows takes no sample_weight"):
        as_learner(Rows()).advance(Z, Y, sample_weight=weights)


# ---- the battery


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("make", [Rows, Saved, lambda: Scaled(Rows(), 40), lambda: Classifier(Saved())])
def test_the_battery_takes_them(make):
    assert check_learner(make) == [*CHECKS]


def test_the_battery_looks_into_them():
    class Asked(Rows):
        questions = 0

        def predict_one(self, x):
            self.questions += 1
            return super().predict_one(x) + 0.0 * self.questions

        def learn_one(self, x, y):
            super().learn_one(x, y + 1e-3 * self.questions)

    with pytest.raises(AssertionError, match="predict_is_pure: predicting changed the state"):
        check_learner(Asked, skip={"same_seed_same_run": "the same questions are asked"})


# ---- files, and a line in a table


@dataclass(frozen=True)
class Triangle(Kernel):
    """k(x, z) = max(0, 1 - |x - z|/width) of one feature."""

    width: float = 3.0
    is_normalized = True

    def evaluate(self, X, Z):
        return np.maximum(0.0, 1.0 - np.abs(X[:, :1] - Z[:, 0]) / self.width)

    def evaluate_diagonal(self, X):
        return np.ones(len(X))


@pytest.fixture
def lines(monkeypatch):
    """The three lines."""
    monkeypatch.setitem(RECIPES, "saved", Recipe(Saved, "ridge regression of somebody's own"))
    monkeypatch.setitem(KERNELS, "triangle", Triangle)
    monkeypatch.setitem(FORMATS, "wide", Format(lambda file, _: pd.read_fwf(file.name), (".fwf",)))


def test_without_the_line_nothing_is_saved(tmp_path):
    for thing in (Saved(), Scaled(Saved()), KONS(Triangle(), Squared())):
        if isinstance(thing, KONS):
            kons.save(thing, tmp_path / "m.kons")  # a kernel is handed in again
            with pytest.raises(FileError, match="'Triangle'"):
                kons.load(tmp_path / "m.kons")
        else:
            with pytest.raises(FileError, match=r"cannot be saved|which a file cannot hold"):
                kons.save(thing, tmp_path / "m.kons")


@pytest.mark.usefixtures("lines")
def test_one_line_saves_it(tmp_path):
    path = tmp_path / "m.kons"
    for made, y in (
        (Saved, Y),
        (lambda: Scaled(Saved(), 30), Y),
        (lambda: Classifier(Saved()), WORDS),
        (lambda: Scaled(Classifier(Saved(), ["right", "up", "down"]), 30), WORDS),
        (lambda: KONS(Triangle(2.0), Squared(), bound=1e7), Y),
    ):
        model = made()
        as_learner(model).advance(Z[:50], y[:50])
        kons.save(model, path)
        loaded = kons.load(path)
        assert type(loaded) is type(model)
        for one in (model, loaded):
            as_learner(one).advance(Z[50:90], y[50:90])
        np.testing.assert_equal(loaded.state(), model.state())
    text = kons.files.to_bytes(Saved())
    del RECIPES["saved"]
    with pytest.raises(FileError, match="'learners/saved', which this kons does not know"):
        kons.files.from_bytes(text)
    RECIPES["saved"] = Recipe(Saved, "again")  # for the fixture to take away


@pytest.mark.usefixtures("lines")
def test_a_file_names_only_what_the_program_added():
    taught = Saved()
    taught.learn_one(Z[0], 1.0)
    for change in ({"parameters": {"rigde": 0.1}}, {"state": {"A": None, "b": np.zeros(2)}}):
        parts = {"parameters": {"ridge": 0.1}, "state": taught.state()} | change
        with pytest.raises(FileError, match="its learners/saved cannot be made"):
            kons.files.registry.build("learners/saved", parts["parameters"], parts["state"])
    for name in ("learners/sketch", "kernels/os", "learners/", "learners/auto.make"):
        with pytest.raises(FileError, match="does not know"):
            kons.files.registry.class_of(name)


@pytest.mark.usefixtures("lines")
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_one_line_names_a_learner_everywhere(task, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawing.Picture, "svg", lambda picture: "<svg></svg>")  # drawn in tests/report
    y = Y if task == "regression" else WORDS
    model = for_task(task, "saved", ridge=0.01, warmup=40)
    assert type(model) is Scaled
    assert evaluate("saved", (X, y)).learner_name == "Saved"
    kind = KONSRegressor if task == "regression" else KONSClassifier
    estimator = kind(learner="saved", options={"ridge": 0.5}).fit(X, y)
    assert estimator.score(X, y) > 0.7
    kons.save(estimator, "estimator.kons")
    assert (kons.load("estimator.kons").predict(X) == estimator.predict(X)).all()
    with pytest.raises(ConfigurationError, match="kernel='gaussian' does not apply to 'saved'"):
        for_task(task, "saved", kernel="gaussian")
    with pytest.raises(
        ConfigurationError, match="takes no parameter 'bandwith'; it takes ridge, warmup, margin"
    ):
        for_task(task, "saved", bandwith=1.0)
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv("t.csv", index=False)
    common = ["t.csv", "--target", "y", "--quiet"]
    assert main(["run", *common, "--learner", "saved", "--set", "ridge=0.01", "--out", "here", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["learner"], summary["atoms"], summary["max_atoms"]) == ("saved", 0, None)
    assert main(["predict", "here", "t.csv", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 401
    assert main(["inspect", "here", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["what"], told["rows_learned"], told["parameters"]) == ("Scaled", 400, {"ridge": 0.01})
    assert main(["compare", *common, "--learners", "saved,embedded", "--json"]) == 0
    assert "saved" in capsys.readouterr().out
    assert main(["learners"]) == 0
    assert "ridge regression of somebody's own" in capsys.readouterr().out


@pytest.mark.usefixtures("lines")
def test_one_line_names_a_kernel_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = for_task("regression", "embedded", kernel="triangle", warmup=40)
    model.advance(X, Y)
    assert model.kernel == Triangle()
    assert KONSRegressor(learner="embedded", kernel="triangle").fit(X, Y).score(X, Y) > 0.3
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y}).to_csv("t.csv", index=False)
    words = [
        "run",
        "t.csv",
        "--target",
        "y",
        "--learner",
        "embedded",
        "--set",
        "kernel=triangle",
        "--out",
        "here",
    ]
    assert main([*words, "--quiet"]) == 0
    assert kons.load("here/model.kons").kernel == Triangle()
    capsys.readouterr()
    assert main(["learners", "--json"]) == 0
    assert "triangle" in json.loads(capsys.readouterr().out)["kernels"]


@pytest.mark.usefixtures("lines")
def test_one_line_reads_a_format_everywhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["     a      y", *(f"{a:6.2f} {y:6.2f}" for a, y in zip(Z[:60, 0], Z[:60, 1], strict=True))]
    Path("t.fwf").write_text("\n".join(lines) + "\n")
    blocks = list(open_stream("t.fwf", "y", quiet=True))
    np.testing.assert_allclose(np.concatenate([block.y for block in blocks]), Z[:60, 1].round(2))
    Path("t.txt").write_bytes(Path("t.fwf").read_bytes())
    assert main(["run", "t.txt", "--format", "wide", "--target", "y", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 60
    with pytest.raises(ConfigurationError, match=r"expected one of auto, csv, tsv, .*, wide"):
        open_stream("t.txt", "y", format="fixed")


def test_river_takes_the_line(lines):
    pytest.importorskip("river")
    from kons.river import KONSRegressor as RiverRegressor

    model = RiverRegressor(learner="saved", warmup=30)
    for x, y in zip(X, Y, strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, float(y))
    assert abs(model.predict_one({"a": X[0, 0], "b": X[0, 1]}) - Y[0]) < 0.1 * Y.std()
    loaded = kons.files.from_bytes(kons.files.to_bytes(model))
    assert loaded.predict_one({"a": 0.3, "b": 5e4}) == model.predict_one({"a": 0.3, "b": 5e4})
