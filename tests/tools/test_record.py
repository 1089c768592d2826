"""Holding one record of a checkout against another."""

import json

import numpy as np
import pytest

from tools.record import compare, lines_of

FACTS = {"bytes": 100, "lines": {"core": 20}, "losses": {f"set/{seed}": 0.5 for seed in range(5)}}


def record(path, facts=FACTS, **changes):
    arrays = {
        "stream/embedded/prediction": np.linspace(-1.0, 1.0, 50),
        "stream/embedded/kept": np.arange(50.0) % 2.0,
        "stream/auto/prediction": np.linspace(0.0, 1.0, 50),
    }
    named = {name.replace("__", "/"): values for name, values in changes.items()}
    np.savez(path, facts=np.array(json.dumps(facts)), **(arrays | named))
    return path


@pytest.fixture
def before(tmp_path):
    return record(tmp_path / "before.npz")


def test_the_same_is_the_same(before, tmp_path, capsys):
    rounded = np.linspace(-1.0, 1.0, 50) + 1e-12
    assert compare(before, record(tmp_path / "a.npz", stream__embedded__prediction=rounded)) == 0
    printed = capsys.readouterr().out
    assert "differs" not in printed
    assert "geometric mean of the ratios: 1.0000" in printed


@pytest.mark.parametrize(
    "change",
    [
        {"stream__embedded__prediction": np.linspace(-1.0, 1.0, 50) + 1e-8},
        {"stream__embedded__prediction": np.linspace(-1.0, 1.0, 49)},
        {"stream__embedded__kept": (np.arange(50.0) + 1) % 2.0},
        {"stream__other__prediction": np.ones(3)},
    ],
)
def test_a_paper_s_learner_that_differs_is_told(before, tmp_path, capsys, change):
    assert compare(before, record(tmp_path / "a.npz", **change)) == 1
    assert f"differs: {next(iter(change)).replace('__', '/')}" in capsys.readouterr().out


def test_autokons_may_differ_and_its_losses_are_told(before, tmp_path, capsys):
    facts = {**FACTS, "losses": dict.fromkeys(FACTS["losses"], 0.4)}
    after = record(tmp_path / "a.npz", facts, stream__auto__prediction=np.ones(50))
    assert compare(before, after) == 0
    assert "geometric mean of the ratios: 0.8000" in capsys.readouterr().out


def test_lines_by_package(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.py").write_text("1\n2\n")
    (tmp_path / "b.py").write_text("1\n")
    assert lines_of(tmp_path) == {"kons": 1, "core": 2}
