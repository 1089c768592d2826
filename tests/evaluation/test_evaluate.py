"""kons.evaluate: what it takes, what it wraps, and what the result shows."""

import builtins
import importlib
import re

import numpy as np
import pytest

import kons
from kons import EmbeddedKONS, Gaussian, Logistic, Scaled, Squared
from kons.errors import ConfigurationError, InputError, MissingExtraError
from kons.evaluation import Evaluation, OnlineLinear
from kons.kernels import FunctionKernel, Normalized
from kons.recipes import for_task
from kons.streams import open_stream

N = 1200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(N, 2)) * [1.0, 500.0]
    return X, 1e4 + 50.0 * np.sin(3.0 * X[:, 0]) + 0.01 * X[:, 1] + rng.normal(size=N)


@pytest.fixture(scope="module")
def result(data):
    return kons.evaluate(for_task("regression", "embedded", max_atoms=30), data, window=300, trace=True)


def core():
    return EmbeddedKONS(
        Gaussian("auto"), Squared(), second_order="hessian", regularization=0.01, max_atoms=30
    )


def test_the_function_and_the_module_are_both_there():
    assert kons.evaluate is importlib.import_module("kons.evaluation").evaluate
    assert kons.evaluation.Evaluation is Evaluation


def test_it_is_better_than_every_baseline(result):
    last = {name: result.curves[name][-1] for name in ("loss", *result.baselines)}
    assert last["loss"] < 0.1 * min(last[name] for name in result.baselines)
    assert result.loss == pytest.approx(result.metrics["mse"])
    assert result.best_baseline == "linear"
    assert result.coverage == pytest.approx(0.9, abs=0.03)
    assert result.atoms == result.learner.size <= 30
    assert result.seconds > 0.0
    assert result.learner_seconds > 0.0
    assert result.microseconds_per_row == pytest.approx(1e6 * result.learner_seconds / N)


@pytest.mark.parametrize("delay", [0, 4])
def test_rows_that_nobody_could_predict_are_in_no_figure(data, delay):
    X, y = data
    losses = {"loss": [], "linear": []}
    counted = []

    def collect(_, scored):
        losses["loss"].extend(scored.loss)
        losses["linear"].extend(scored.baseline_losses["linear"])
        counted.extend(scored.scored)

    result = kons.evaluate(OnlineLinear(standardize=True), (X, y), delay=delay, callback=collect)
    assert counted == [row > delay for row in range(N)]
    found = {"loss": result.loss, "linear": result.baselines["linear"]}
    for name, values in losses.items():
        expected = np.mean(values[delay + 1 :])
        assert found[name] == pytest.approx(expected, rel=1e-9)
        assert result.curves[f"running_{name}"][-1] == pytest.approx(expected, rel=1e-9)
    assert result.metrics["mse"] == pytest.approx(result.loss)
    assert result.rows == N


def test_the_trace_is_that_of_the_learner(data, result):
    trace = for_task("regression", "embedded", max_atoms=30).advance(*data)
    assert len(result.trace) == N
    assert result.trace.prediction == pytest.approx(trace.prediction, rel=1e-9)
    assert "novelty" in result.trace.columns


@pytest.mark.parametrize("kind", ["stream", "pairs", "generator", "dicts", "frame"])
def test_sources_of_any_kind_give_the_same(data, result, kind):
    X, y = data
    pd = pytest.importorskip("pandas")
    source = {
        "stream": lambda: open_stream((X, y), block_size=100, quiet=True),
        "pairs": lambda: list(zip(X, y, strict=True)),
        "generator": lambda: zip(X, y, strict=True),
        "dicts": lambda: [({"a": a, "b": b}, c) for (a, b), c in zip(X, y, strict=True)],
        "frame": lambda: (pd.DataFrame(X, columns=["a", "b"]), y),
    }[kind]()
    other = kons.evaluate(for_task("regression", "embedded", max_atoms=30), source, window=300)
    assert other.metrics == pytest.approx(result.metrics, rel=1e-6)
    assert other.baselines == pytest.approx(result.baselines, rel=1e-9)
    assert other.trace is None


def test_a_core_learner_is_wrapped_and_that_is_said(data, caplog):
    learner = core()
    result = kons.evaluate(learner, data)
    assert isinstance(result.learner, Scaled)
    assert learner.rows_seen == 0  # a pattern only
    assert "wrapped in kons.Scaled" in result.notes[0]
    assert result.notes[0] in caplog.text
    assert result.notes[0] in repr(result)
    assert result.learner_name == "EmbeddedKONS"
    assert result.curves["loss"][-1] < result.curves["linear"][-1]


def test_units_can_be_left_as_they_are():
    X = np.random.default_rng(0).normal(size=(300, 2))
    learner = EmbeddedKONS(Gaussian(), Squared())
    result = kons.evaluate(learner, (X, np.tanh(X[:, 0])), scale="none")
    assert result.learner is learner
    assert result.notes == []
    again = kons.evaluate(learner, (X, np.tanh(X[:, 0])))  # taught already: its units are known
    assert again.learner is learner
    assert learner.rows_seen == 600


def test_names_and_tasks(data):
    X, y = data
    words = np.where(y > 1e4, "up", "down")
    by_name = kons.evaluate("embedded", (X, words))
    assert (by_name.task, by_name.classes) == ("classification", list(dict.fromkeys(words)))
    assert by_name.loss == by_name.metrics["error_rate"] < by_name.baselines["constant"]
    margin = EmbeddedKONS(Gaussian("auto"), Logistic(), bound=4.0, second_order="hessian", max_atoms=30)
    assert kons.evaluate(margin, (X, np.where(y > 1e4, 1.0, -1.0))).task == "classification"
    # Two values look like labels; the learner is for numbers.
    assert kons.evaluate(core(), (X, (y > 1e4).astype(float))).task == "regression"
    assert kons.evaluate("embedded", (X, (y > 1e4).astype(float)), task="regression").task == "regression"
    with pytest.raises(ConfigurationError, match="there is no learner"):
        kons.evaluate("oracle", data)
    with pytest.raises(ConfigurationError, match="scale is"):
        kons.evaluate("embedded", data, scale="some")
    with pytest.raises(InputError):
        kons.evaluate("embedded", 3)


def test_a_horizon_brings_its_delay(tmp_path):
    path = tmp_path / "series.csv"
    series = np.sin(np.arange(600) / 10.0)
    path.write_text("a,y\n" + "\n".join(f"{x},{x}" for x in series))
    stream = open_stream(path, target="y", horizon=5, quiet=True)
    result = kons.evaluate(OnlineLinear(), stream)
    assert result.delay == 5
    # The last known target is one that came 5 + 1 rows earlier than the one predicted.
    forecast = np.concatenate([np.zeros(6), series[5:-6]])
    assert result.baselines["persistence"] == pytest.approx(np.mean((forecast - series[5:])[6:] ** 2))
    assert kons.evaluate(OnlineLinear(), stream, delay=9).delay == 14
    assert "5 rows late" in repr(result)


@pytest.mark.parametrize("delay", [0, 3])
def test_objects(delay):
    def common(a, b):
        return float(sum(a.count(c) * b.count(c) for c in set(a)))

    X = ["spam", "ham", "eggs", "maps", "gegs"] * 20
    learner = EmbeddedKONS(Normalized(FunctionKernel(common)), Logistic(), second_order="hessian")
    result = kons.evaluate(learner, (X, ["m", "m", "g", "m", "g"] * 20), delay=delay)
    assert result.task == "classification"
    assert "linear" not in result.baselines
    numbers = EmbeddedKONS(Normalized(FunctionKernel(common)), Squared())
    assert kons.evaluate(numbers, (X, [1.0, 2.0, 3.0, 4.0, 5.0] * 20), delay=delay).task == "regression"


def test_the_callback_sees_every_block(data):
    seen = []
    kons.evaluate(
        OnlineLinear(), data, callback=lambda engine, scored: seen.append((engine.rows, scored.row[0]))
    )
    assert seen == [(512, 0), (1024, 512), (1200, 1024)]


def test_the_windows_are_at_the_checkpoints(result):
    assert set(result.windowed) == {"loss", "mse", "rmse", "mae", "medae", "r2"}
    assert all(len(values) == len(result.checkpoints) for values in result.curves.values())
    assert result.windowed["loss"] == pytest.approx(result.windowed["mse"])
    assert result.checkpoints[-1] == N


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_frames(result, library):
    pytest.importorskip(library or "pandas")
    frame = result.to_frame(library)
    assert type(frame).__module__.startswith(library or "pandas")
    assert list(frame.columns) == ["row", *result.curves]
    assert frame["rmse"].to_list() == result.windowed["rmse"].tolist()


def test_without_frames_or_matplotlib_it_says_what_to_install(result, monkeypatch):
    real = builtins.__import__

    def poor(name, *rest):
        if name.split(".")[0] in ("pandas", "polars", "matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", poor)
    with pytest.raises(MissingExtraError, match="frames"):
        result.to_frame()
    with pytest.raises(MissingExtraError, match="plot"):
        result.plot()


def test_an_unknown_library_is_refused(result):
    with pytest.raises(ConfigurationError, match="library is"):
        result.to_frame("excel")


def test_the_plot_has_labels(result):
    pytest.importorskip("matplotlib")
    ax = result.plot()
    assert result.plot(ax) is ax
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"EmbeddedKONS", "constant", "linear", "persistence"} <= set(labels)
    assert ax.get_xlabel() == "rows"
    assert "last 300 rows" in ax.get_ylabel()
    ax.figure.canvas.draw()


def test_tables_for_people(result, data):
    text = repr(result)
    assert text.startswith("regression over 1,200 rows")
    for word in ("EmbeddedKONS", "linear", "coverage", "aimed at 0.9", "us a row", "r2"):
        assert word in text
    assert "<table>" in result._repr_html_()
    assert "EmbeddedKONS" in result._repr_html_()
    X, y = data
    three = kons.evaluate("embedded", (X, np.digitize(y, [9990.0, 10010.0]).astype(str)))
    assert " -  - over the last" in repr(three)  # no AUC for three labels


def test_a_stream_that_ends_in_the_warm_up_is_told():
    X = np.random.default_rng(0).normal(size=(60, 2))
    result = kons.evaluate(for_task("regression", "embedded"), (X, X[:, 0]))
    assert "warm-up is longer than these 60 rows" in repr(result)
    assert not kons.evaluate(for_task("regression", "embedded", warmup=20), (X, X[:, 0])).notes


def test_a_learner_by_name_warms_up_on_a_tenth_of_a_short_stream():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    result = kons.evaluate("embedded", (X, X[:, 0]))
    assert result.learner.warmup == 150
    assert result.curves["atoms"][-1] > 0


@pytest.mark.parametrize("delay", [0, 3])
def test_several_targets_are_scored_one_by_one(delay):
    X = np.random.default_rng(0).normal(size=(400, 2))
    Y = np.stack([100.0 * np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0]], axis=1)

    def learner():
        pattern = kons.EmbeddedKONS(kons.Gaussian(), kons.Squared(), second_order="hessian")
        return kons.Scaled(pattern, warmup=50)

    result = kons.evaluate(learner(), (X, Y), delay=delay, window=100, trace=True)
    singles = [kons.evaluate(learner(), (X, y), delay=delay, window=100) for y in Y.T]
    assert result.trace.prediction.shape == (400, 3)
    np.testing.assert_allclose(result.trace.loss, ((result.trace.prediction - Y) ** 2).sum(axis=1), rtol=1e-9)
    for one, single in zip(result.targets, singles, strict=True):
        for name, value in (single.metrics | single.baselines | {"coverage": single.coverage}).items():
            seen = (one.metrics | one.baselines | {"coverage": one.coverage})[name]
            assert seen == pytest.approx(value, rel=1e-7), name
    assert result.loss == pytest.approx(sum(single.loss for single in singles), rel=1e-7)
    assert result.metrics["r2"] == pytest.approx(np.mean([single.metrics["r2"] for single in singles]))
    with pytest.raises(ConfigurationError, match="learns one target a row"):
        kons.evaluate(OnlineLinear(), (X, Y))


def test_several_targets_say_what_is_summed_and_may_be_lists():
    X = np.random.default_rng(0).normal(size=(60, 2))
    Y = np.stack([100.0 * X[:, 0], X[:, 1]], axis=1)

    def learner():
        return kons.Scaled(kons.EmbeddedKONS(kons.Gaussian(), kons.Squared()), warmup=20, margin=9.0)

    result, listed = (kons.evaluate(learner(), (X, y), window=30) for y in (Y, Y.tolist()))
    assert listed.loss == result.loss
    text = repr(result)
    assert "summed squared error" in text
    assert re.search(r"mae +\S+ +mean of targets; \S+ over the last 30 rows", text)
    assert "summed" not in repr(result.targets[0])
    assert result.plot().get_ylabel().startswith("summed squared error")
    with pytest.raises(InputError, match="y"):
        kons.evaluate(learner(), (X[:2], [[1.0, 2.0], [3.0]]))


def test_several_targets_of_a_warm_up_that_does_not_end():
    X = np.random.default_rng(0).normal(size=(60, 2))
    learner = kons.Scaled(kons.EmbeddedKONS(kons.Gaussian(), kons.Squared()), warmup=100)
    (note,) = kons.evaluate(learner, (X, X), intervals=None).notes
    assert "the learner has learned nothing yet" in note


def test_events_are_called_back_as_they_come():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(700, 2))
    X[600:, 1] = 0.25
    learner, told, own = kons.AutoKONS(effort="low"), [], []
    learner.on_event = own.append
    result = kons.evaluate(learner, (X, X[:, 0]), on_event=told.append)
    assert [(event.kind, event.row) for event in told] == [("frozen", 620)]
    assert result.learner.on_event == own.append
    assert own == []
    two = np.stack([X[:, 0], X[:, 1]], axis=1)
    kons.evaluate(kons.AutoKONS(effort="low"), (X, two), on_event=own.append)
    assert [event.kind for event in own] == ["frozen"]
    with pytest.raises(ConfigurationError, match="notes no events"):
        kons.evaluate(OnlineLinear(standardize=True), (X, X[:, 0]), on_event=print)
