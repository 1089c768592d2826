"""Several learners in one pass: the same figures as each of them alone."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kons.errors import ConfigurationError
from kons.evaluation import OnlineLinear
from kons.report import render
from kons.runs import Run, Settings, compare
from kons.runs.comparison import Contender

ROWS = 700
LEARNERS = {
    "small": Contender("embedded", {"max_atoms": 5}),
    "large": Contender("embedded", {"max_atoms": 60}),
    "sketched": Contender("sketched", {}),
}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 2))
    y = 5 + np.sin(3 * X[:, 0])
    np.savetxt("rows.csv", np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    return Settings("rows.csv", "y")


def test_each_fares_as_alone(settings):
    found = compare(settings, LEARNERS)
    for name, (learner, parameters) in LEARNERS.items():
        alone = Run.start(replace(settings, learner=learner, parameters=parameters)).go()
        assert found.results[name].loss == alone["loss"]
        assert found.results[name].atoms == alone["atoms"]
        assert found.baselines == alone["baselines"]
    losses = [result.loss for result in found.results.values()]
    assert losses == sorted(losses)


def test_the_frontier_is_what_nothing_beats_in_both(settings):
    found = compare(settings, LEARNERS)
    points = {name: (r.microseconds_per_row, r.loss) for name, r in found.results.items()}
    beaten = {
        name
        for name, (cost, loss) in points.items()
        if any(c <= cost and e <= loss and (c, e) != (cost, loss) for c, e in points.values())
    }
    assert set(found.frontier) == points.keys() - beaten


def test_its_folder_is_what_a_report_reads(settings, tmp_path):
    found = compare(settings, LEARNERS)
    found.write(tmp_path / "out", command=["kons", "compare"])
    document = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert document == found.summary()
    assert [entry["name"] for entry in document["learners"]] == list(found.results)
    assert document["learners"][0]["curve"]["row"][-1] == ROWS
    assert document["learners"][0]["curve"]["loss"][-1] == pytest.approx(document["learners"][0]["loss"])
    assert "small" in render(tmp_path / "out")
    with pytest.raises(ConfigurationError, match="is not empty"):
        found.write(tmp_path / "out")


@pytest.mark.parametrize("quiet", [False, True])
def test_what_the_source_is_read_as_is_said_or_not(tmp_path, caplog, quiet):
    path = tmp_path / "words.csv"
    path.write_text("word,y\n" + "red,1.5\nblue,2.5\n" * 40)
    with caplog.at_level("INFO", logger="kons"):
        compare(Settings(str(path), "y"), {"small": LEARNERS["small"]}, quiet=quiet)
    assert ("text, by its levels: word" in caplog.text) == (not quiet)


def test_progress_and_stop(settings):
    seen = []
    found = compare(settings, LEARNERS, seen.append, lambda: True)
    assert [now.rows for now in seen] == [512]
    assert found.was_stopped
    assert found.summary()["stopped"]
    with pytest.raises(ConfigurationError, match="no learners"):
        compare(settings, {})


def test_the_progress_of_a_learner_that_keeps_no_points(settings, monkeypatch):
    monkeypatch.setattr(Settings, "make_learner", lambda *_, **__: OnlineLinear())
    seen = []
    compare(settings, {"linear": Contender("embedded", {})}, seen.append)
    assert [(now.rows, now.atoms) for now in seen] == [(512, 0), (ROWS, 0)]


def test_one_row_ranks_nobody(tmp_path):
    (tmp_path / "row.csv").write_text("x,y\n1.5,2.5\n")
    assert compare(Settings(str(tmp_path / "row.csv"), "y"), LEARNERS).frontier == []
