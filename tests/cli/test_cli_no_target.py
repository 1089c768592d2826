"""``--no-target``: how new each row is, from the command line; nothing in it is about predictions."""

import csv
import json

import numpy as np
import pytest
from commands import told_in_one_line

from kons.cli import main
from kons.learners.detection import novelty_learner
from kons.river import NoveltyDetector
from kons.runs.novelty import Novelties
from kons.streams import open_stream

ROWS, ODD = 900, (300, 555)
WATCH = ["run", "plant.csv", "--no-target", "--set", "warmup=90", "--quiet"]


@pytest.fixture(autouse=True)
def plant(tmp_path):
    """A ring, a row in its midst and one far outside; a clock, a name for each row, a sensor that freezes."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, size=ROWS)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(ROWS, 2))
    X[ODD, :] = [[0.0, 0.0], [2.0, 2.0]]
    X = np.column_stack([X, rng.normal(size=ROWS)])
    X[700:, 2] = X[700, 2]
    lines = [f"{1000 + 7 * i},r{i},{a:.5f},{b:.5f},{c:.5f}" for i, (a, b, c) in enumerate(X)]
    (tmp_path / "plant.csv").write_text("\n".join(["ticks,name,a,b,c", *lines]) + "\n")


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_the_odd_rows_come_first_with_their_cells(tmp_path, capsys):
    assert main([*WATCH, "--drop", "c", "--id", "name", "--out", "run"]) == 0
    out = capsys.readouterr().out
    for word in ("loss", "error", "predict", "target", "baseline"):
        assert word not in out.replace("predictions.csv", "")
    rows, summary = rows_of("run/predictions.csv"), json.loads((tmp_path / "run/summary.json").read_text())
    assert list(rows[0]) == ["line", "name", "row", "novelty"]
    assert [row["name"] for row in rows] == [f"r{i}" for i in range(ROWS)]
    assert not any(row["novelty"] for row in rows[:90])  # the warm-up
    named = summary["novelty"]["most_novel"]
    assert set(ODD) <= {row["row"] for row in named}
    for row in named:
        assert row["cells"]["name"] == f"r{row['row']}"
        assert float(rows[row["row"]]["novelty"]) == row["novelty"]
    assert not {"loss", "metrics", "target", "baselines", "coverage"} & summary.keys()
    page = (tmp_path / "run/report.html").read_text()
    assert "The most novel rows" in page
    assert page.count("<svg></svg>") >= 3  # along the stream, the histogram, the time line
    for word in ("loss", "baseline", "squared error"):
        assert word not in page.partition("<body>")[2].partition("How to reproduce it")[0]


def test_a_run_says_what_the_detector_says_row_by_row(capsys):
    assert main([*WATCH, "--drop", "name,ticks", "--out", "run"]) == 0
    detector, scores = NoveltyDetector(warmup=90), []
    for row in rows_of("plant.csv"):
        x = {name: float(row[name]) for name in "abc"}
        scores.append(detector.score_one(x))
        detector.learn_one(x)
    found = np.array([float(row["novelty"] or 0) for row in rows_of("run/predictions.csv")])
    np.testing.assert_allclose(found / (1 + found), scores, rtol=0, atol=1e-7)
    # The model tells the novelty of new rows, as the detector does, and learns none of them.
    capsys.readouterr()
    assert main(["predict", "run", "plant.csv", "--quiet"]) == 0
    told = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(told[0]) == ["line", "novelty"]
    novelty = np.array([float(row["novelty"]) for row in told])
    x = {name: float(rows_of("plant.csv")[ODD[0]][name]) for name in "abc"}
    assert novelty[ODD[0]] / (1 + novelty[ODD[0]]) == pytest.approx(detector.score_one(x), abs=1e-7)


def test_what_happened_to_columns_is_told_and_can_fail_a_run(tmp_path, capsys):
    assert main([*WATCH, "--json", "--events", "events.jsonl", "--fail-on", "frozen"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert ("frozen", ["c"]) in [(event["kind"], event["columns"]) for event in told["events"]]
    assert '"frozen"' in (tmp_path / "events.jsonl").read_text()


def test_a_model_goes_on_and_inspect_knows_it(capsys):
    head = ["--rows", "600", "--out", "first"]
    assert main([*WATCH, *head]) == 0
    capsys.readouterr()
    assert main(["run", "plant.csv", "--model", "first", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["novelty"]["rows"] == ROWS  # it has its scales
    assert main(["inspect", "first", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] is None


@pytest.mark.parametrize(
    "flags",
    ["--target a", "--delay 3", "--horizon 24", "--known-ahead a", "--class-weight balanced", "--positive x",
     "--key name", "--task regression", "--learner embedded", "--window 10"],
)  # fmt: skip
def test_flags_about_predictions_are_refused(capsys, flags):
    told = told_in_one_line(capsys, [*WATCH, *flags.split()], 2)
    known = "--horizon" if "ahead" in flags else flags.split()[0]
    assert f"--no-target goes with no {known}" in told


def test_questions_about_predictions_are_refused(capsys):
    assert main([*WATCH, "--out", "run"]) == 0
    capsys.readouterr()
    assert "nothing to score" in told_in_one_line(capsys, ["score", "run", "plant.csv"], 2)
    for flags in (["--level", "0.9"], ["--explain"]):
        assert "predicts nothing" in told_in_one_line(capsys, ["predict", "run", "plant.csv", *flags], 2)
    assert "no target" in told_in_one_line(capsys, [*WATCH, "--lag", "target:1"], 2)
    assert "takes no parameter 'effort'" in told_in_one_line(capsys, [*WATCH, "--effort", "low"], 2)


def test_a_column_that_only_grows_is_left_out():
    X = np.random.default_rng(0).normal(size=(400, 2))
    clocked = np.column_stack([X, np.arange(400.0), -(np.arange(400.0) ** 2), np.repeat([0.0, 1.0], 200)])
    level = np.column_stack([X, np.repeat([0.0, 1.0], 200)])  # of two values: no clock
    told = [novelty_learner().advance(rows, np.zeros(400)).novelty for rows in (clocked, level)]
    np.testing.assert_allclose(*told, rtol=1e-9, atol=1e-12)


def test_what_comes_often_is_new_no_longer_though_it_came_late():
    """A full dictionary must make room: else a second place, visited half of the time, would stay new."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(600, 3))
    second = 8.0 + rng.normal(size=(600, 3))
    learner = novelty_learner(max_atoms=30)
    novelty = learner.advance(np.concatenate([first, second]), np.zeros(1200)).novelty
    assert np.median(novelty[600:620]) > 10 * np.median(novelty[500:600])
    assert np.median(novelty[1100:]) < 2 * np.median(novelty[500:600])


def test_rows_without_a_target_are_all_there():
    stream = open_stream([({"a": 1.0, "y": None}, 0.0), ({"a": None, "y": 2.0}, 1.0)], [], quiet=True)
    assert (stream.target, stream.targets) == ("", ())
    (block,) = stream
    assert block.y.tolist() == [0.0, 0.0]
    with pytest.raises(Exception, match="no column left"):
        open_stream([({"a": 1.0}, 0.0)], [], drop=["a"], quiet=True)


def test_quantiles_are_right_to_a_bin_and_a_copy_goes_on():
    values = np.random.default_rng(1).lognormal(-3.0, 2.0, size=5000)
    seen = Novelties()
    for part in np.array_split(np.arange(5000), 7):
        seen.add(values[part], part, part + 2)
    for share in (0.5, 0.9, 0.99):
        assert seen.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.15)
    best = [row["row"] for row in seen.figures()["most_novel"]]
    assert best == np.argsort(-values)[:10].tolist()
