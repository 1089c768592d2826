"""The experts of the default learner along a run: who had how much say, by name, through any interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest
from processes import whole_trace

import kons
from kons.report.folder import read_folder
from kons.report.history import read_history
from kons.runs import Run, Settings, Stopped
from kons.runs.experts import Experts

ROWS = 1800


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 2)).round(4)
    y = (50 + 4 * np.sin(2 * X[:, 0]) + np.cumsum(0.3 * rng.normal(size=ROWS))).round(3)
    lines = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["wave,noise,y", *lines]) + "\n")
    (tmp_path / "shuffled.csv").write_text("\n".join(["wave,noise,y", *rng.permutation(lines)]) + "\n")
    return Settings("rows.csv", "y", parameters={"max_atoms": 20, "experts": 6})


def test_shares_are_noted_at_the_end_of_every_block(settings, tmp_path):
    run = Run.start(settings, tmp_path / "out", quiet=True)
    summary = run.go()
    trace = whole_trace(tmp_path / "out")
    assert trace["share_rows"].tolist() == [511, 1023, 1535, 1799]
    names = [expert["name"] for expert in summary["experts"]]
    assert names[0] == "mean"
    assert len(set(names)) == len(names) == trace["shares"].shape[1]
    present = run.engine.learner.shares
    last = dict(zip(names, trace["shares"][-1], strict=True))
    assert last == {name: present.get(name, 0.0) for name in names}
    assert {expert["name"]: expert["share"] for expert in summary["experts"]} == last
    assert trace["expert"].max() < len(names)
    # Points of all experts, which what limits one of them does not limit.
    assert summary["max_atoms"] is None
    assert summary["atoms"] > 20
    assert list(summary["relevances"]) == ["wave", "noise"]
    assert summary["relevances"]["wave"] == 1.0 > summary["relevances"]["noise"]
    history = read_history(read_folder(tmp_path / "out"))
    assert history.shares.what == "weight"
    assert history.leaders is not None
    assert set(history.leaders[1]) <= set(range(len(names)))


def test_a_run_that_was_interrupted_ends_with_the_same_shares(settings, tmp_path):
    """Also of those that were retired before it was, since rows in no order need no short memory."""
    settings = replace(settings, source="shuffled.csv", parameters={"max_atoms": 20})
    whole = Run.start(settings, tmp_path / "whole", quiet=True).go()
    run = Run.start(settings, tmp_path / "cut", quiet=True)
    first = list(run.engine.learner.shares)
    with pytest.raises(Stopped):
        run.go(stop=lambda: run.engine.rows >= 1024)
    assert set(first) - set(run.engine.learner.shares)
    resumed = Run.resume(tmp_path / "cut").go()
    assert resumed["experts"] == whole["experts"]
    assert [expert["name"] for expert in resumed["experts"]][: len(first)] == first
    found, expected = (read_history(read_folder(tmp_path / name)) for name in ("cut", "whole"))
    np.testing.assert_array_equal(found.shares.row, expected.shares.row)
    np.testing.assert_array_equal(found.shares.parts, expected.shares.parts)
    np.testing.assert_array_equal(found.leaders, expected.leaders)


@pytest.mark.filterwarnings("ignore:a target lies outside:kons.errors.KonsWarning")
def test_other_learners_have_no_experts(settings, tmp_path):
    summary = Run.start(settings.with_learner("embedded", {"max_atoms": 9}), tmp_path / "out").go()
    assert summary["experts"] is summary["relevances"] is None
    assert summary["max_atoms"] == 9
    assert not {"shares", "share_rows", "expert"} & whole_trace(tmp_path / "out").keys()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["experts"] is None


class Panel:
    """A learner of which only the shares are of interest."""

    def __init__(self, **shares):
        self.shares = shares


def test_a_name_keeps_its_number_when_others_are_retired():
    panel = Panel(mean=0.2, first=0.5, second=0.3)
    experts = Experts(panel)
    leads = {"expert": np.array([0, 1, 2, 2]), "loss": np.zeros(4)}
    assert experts.noted(leads, panel, 3)["expert"].tolist() == [0, 1, 2, 2]
    panel.shares = {"mean": 0.1, "second": 0.6, "third": 0.3}
    assert experts.noted(leads, panel, 7)["expert"].tolist() == [-1] * 4  # some of these were others
    assert experts.noted(leads, panel, 11)["expert"].tolist() == [0, 2, 3, 3]
    assert experts.names == ["mean", "first", "second", "third"]
    found = experts.columns()
    assert found["share_rows"].tolist() == [3, 7, 11]
    assert found["shares"].tolist() == [[0.2, 0.5, 0.3, 0.0], [0.1, 0.0, 0.6, 0.3], [0.1, 0.0, 0.6, 0.3]]
    assert experts.columns() == {}
    assert experts.now(panel)[1] == {"name": "first", "share": 0.0}
    panel.shares["fourth"] = 0.4  # one that came since, in a run that notes nothing
    assert experts.now(panel)[-1] == {"name": "fourth", "share": 0.4}
    del panel.shares["fourth"]
    later = Experts(panel, experts.names)  # from a checkpoint
    assert later.noted(leads, panel, 15)["expert"].tolist() == [0, 2, 3, 3]


def test_a_learner_without_experts_is_left_alone():
    learner = kons.EmbeddedKONS(kons.Gaussian(1.0), kons.Squared())
    experts = Experts(learner)
    columns = {"loss": np.zeros(3)}
    assert experts.noted(columns, learner, 2) is columns
    assert experts.columns() == {}
    assert experts.now(learner) is None
