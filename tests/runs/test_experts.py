"""The experts of the default learner along a run: who had how much say, by name, through any interruption."""

import json
from dataclasses import replace

import numpy as np
import pytest
from processes import whole_trace

from kons.report.folder import read_folder
from kons.report.history import read_history
from kons.runs import Run, Settings, Stopped

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
    summary = Run.start(
        replace(settings, learner="embedded", parameters={"max_atoms": 9}), tmp_path / "out"
    ).go()
    assert summary["experts"] is summary["relevances"] is None
    assert summary["max_atoms"] == 9
    assert not {"shares", "share_rows", "expert"} & whole_trace(tmp_path / "out").keys()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["experts"] is None


def test_numbers_of_experts_stay_when_others_are_retired(settings, tmp_path):
    settings = replace(settings, source="shuffled.csv", parameters={"max_atoms": 20})
    run = Run.start(settings, tmp_path / "out", quiet=True)
    run.go()
    model, trace = run.engine.learner, whole_trace(tmp_path / "out")
    gone = set(model.expert_names[:13]) - set(model.shares)
    assert gone
    for row, shares in zip(trace["share_rows"], trace["shares"], strict=True):
        leader = trace["expert"][row]
        assert shares[leader] != 0.0  # whoever led the last rows of a block was at work
    assert not gone & {model.expert_names[number] for number in trace["expert"][-100:]}
