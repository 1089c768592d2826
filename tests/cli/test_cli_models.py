"""``kons predict``, ``kons inspect``, ``kons learners`` and ``kons compare`` in this process."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import kons
from kons.cli import main
from kons.cli.files import save_picture
from kons.cli.wording import with_flags
from kons.evaluation import RIVALS
from kons.recipes import DICTIONARIES, RECIPES
from kons.report.comparison import draw_frontier
from kons.report.folder import RunFolder
from kons.runs import Settings, compare
from kons.runs.comparison import Contender
from kons.streams import open_stream

PRICE = ["houses.csv", "--target", "price", "--drop", "dear"]
FEW = ["--learner", "embedded", "--set", "max_atoms=20", "--out", "out"]
RUN = ["run", *PRICE, *FEW]
CLASSES = ["run", "houses.csv", "--target", "dear", "--drop", "price", *FEW]


@pytest.fixture
def trained(answer, file, no_report):
    """The folder of a run, whose model predicts prices."""
    answer(*RUN)


@pytest.fixture
def trained_on_labels(answer, file, no_report):
    answer(*CLASSES)


def columns(text):
    table = pyarrow.csv.read_csv(pyarrow.py_buffer(text.encode()))
    return {name: table[name].to_numpy() for name in table.column_names}


def without(houses, *names, rows=None):
    """The table without some columns, in another order, and only so many rows."""
    lines = [line.split(",") for line in houses.splitlines()]
    kept = [i for i, name in enumerate(lines[0]) if name not in names][::-1]
    return "".join(
        ",".join(line[i] for i in kept) + "\n" for line in lines[: None if rows is None else rows + 1]
    )


def test_predict_reads_columns_as_the_run_did(trained, houses, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(without(houses, "price", "dear"))
    assert main(["predict", "out/model.kons", "new.csv", "--quiet"]) == 0
    found = columns(capsys.readouterr().out)
    assert list(found) == ["line", "prediction"]
    model = kons.load("out/model.kons")
    stream = open_stream("houses.csv", "price", drop=["dear"], quiet=True)
    expected = np.concatenate([model.predict(block.records) for block in stream.records()])
    np.testing.assert_array_equal(found["prediction"], expected)
    np.testing.assert_array_equal(found["line"], np.arange(2, 702))
    assert main(["predict", "out", "new.csv", "--out", "predicted.csv", "--quiet"]) == 0
    with open("predicted.csv") as written:
        np.testing.assert_array_equal(columns(written.read())["prediction"], expected)


def test_predict_says_why(trained_on_labels, houses, answer, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(without(houses, "price", "dear", rows=5))
    for label in (True, False):
        if not label:
            answer(*RUN, "--force")
        assert main(["predict", "out", "new.csv", "--explain", "--quiet"]) == 0
        found = columns(capsys.readouterr().out)
        because = [name for name in found if name.startswith("because_")]
        told = found["typical"] + sum(found[name] for name in because)
        if label:
            shares = np.maximum(found["p_yes sir"], found["p_no sir"])
            np.testing.assert_allclose(told, np.log(shares / (1.0 - shares)), atol=1e-6)
        else:
            np.testing.assert_allclose(told, found["prediction"], rtol=1e-9)
    reasons = json.loads((tmp_path / "out" / "summary.json").read_text())["worst_reasons"]
    assert len(reasons) == 10
    assert all(len(one) == 3 for one in reasons.values())


def test_events_are_written_and_may_fail_a_run(tmp_path, capsys):
    random = np.random.default_rng(0)
    x = random.uniform(size=(700, 2)).round(4)
    x[600:660, 1] = 0.5
    lines = [f"{a},{b},{round(a + 0.1 * b, 4)}\n" for a, b in x]
    (tmp_path / "sensor.csv").write_text("heat,speed,load\n" + "".join(lines))
    run = ["run", "sensor.csv", "--target", "load", "--learner", "embedded", "--quiet"]
    run += ["--events", "events.jsonl", "--set", "max_atoms=20"]
    assert main([*run, "--out", "out", "--fail-on", "turned,frozen"]) == 4
    assert "alarm: frozen of speed at row 620" in capsys.readouterr().err
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(event["kind"], event["columns"], event["row"]) for event in events] == [
        ("frozen", ["speed"], 620)
    ]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["events"] == events
    assert "Time line" in (tmp_path / "out" / "report.html").read_text()
    assert main(["resume", "out", "--quiet"]) == 4
    assert "alarm: frozen of speed at row 620" in capsys.readouterr().err
    assert main([*run, "--fail-on", "out-of-range"]) == 0
    assert main([*run, "--fail-on", "rain"]) == 2
    assert "no kind of event called 'rain'" in capsys.readouterr().err
    (tmp_path / "events.jsonl").write_text("a,b\n")
    assert main(run) == 2
    assert "holds something else" in capsys.readouterr().err
    for asked, words in (
        (["--events", "new/predictions.csv", "--out", "new"], "is a name of the run"),
        (["--events", "sensor.csv"], "is the file that is read"),
        (["--fail-on", "turned", "--effort", "tiny"], "looks for no events"),
    ):
        assert main([*run[:4], "--quiet", *asked]) == 2
        assert words in capsys.readouterr().err


def test_the_default_s_model_predicts_away_from_the_stream(answer, file, no_report, houses, tmp_path, capsys):
    asked = ["run", *PRICE, "--set", "max_atoms=20", "--set", "experts=6", "--out", "out"]
    answer(*asked)
    (tmp_path / "new.csv").write_text(without(houses, "price", "dear"))
    assert main(["predict", "out", "new.csv", "--quiet"]) == 0
    found = columns(capsys.readouterr().out)["prediction"]
    model = kons.load("out/model.kons")
    stream = open_stream("houses.csv", "price", drop=["dear"], quiet=True)
    (rows,) = [block.records for block in stream.records()][:1]
    expected = model.predict(rows, recent_targets=False)
    np.testing.assert_allclose(found[: len(rows)], expected, rtol=1e-12)
    assert np.abs(found[: len(rows)] - model.predict(rows, recent_targets=True)).max() > 1e-3
    # In the run itself the last targets have their say.
    with open("out/predictions.csv") as written:
        predicted = columns(written.read())["prediction"]
    y = np.array([float(line.split(",")[4]) for line in houses.splitlines()[1:]])
    X = np.concatenate([block.X for block in stream])
    alone = kons.AutoKONS(max_atoms=20, experts=6).advance(X, y).prediction
    np.testing.assert_allclose(predicted, alone, rtol=1e-9)


def test_inspect_of_the_default(answer, said, file, no_report, capsys):
    answer("run", *PRICE, "--set", "max_atoms=20", "--set", "experts=5", "--out", "out")
    assert main(["inspect", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["what"], found["learner"], found["rows_learned"]) == ("AutoKONS", "auto", 700)
    assert found["parameters"]["max_atoms"] == 20
    assert set(found["relevances"]) == {"area", "age", "town", "sold"}
    assert found["experts"].keys() == kons.load("out/model.kons").shares.keys()
    out = " ".join(said("inspect", "out").split())  # names may be cut at the end of a line
    for words in ("AutoKONS, as --learner auto", "relevance", "area 1", "experts", "gaussian, features"):
        assert words in out


def test_predict_labels_with_probabilities(trained_on_labels, houses, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(without(houses, "dear", rows=30))
    assert main(["predict", "out", "new.csv"]) == 0
    found = columns(capsys.readouterr().out)
    assert set(found) == {"line", "prediction", "p_yes sir", "p_no sir"}
    np.testing.assert_allclose(found["p_yes sir"] + found["p_no sir"], 1.0)
    np.testing.assert_array_equal(found["prediction"] == "yes sir", found["p_yes sir"] > 0.5)


def test_predict_where_the_target_is_empty(trained, houses, tmp_path, capsys):
    header, *lines = houses.splitlines()
    blanked = [",".join([*line.split(",")[:4], "", "no sir"]) for line in lines[:20]]
    (tmp_path / "new.csv").write_text("\n".join([header, *blanked]) + "\n")
    assert main(["predict", "out", "new.csv"]) == 0
    assert len(columns(capsys.readouterr().out)["line"]) == 20


def test_predict_with_lags(answer, refused, file, no_report, houses, tmp_path, capsys):
    answer(*RUN, "--lag", "target:2")
    assert main(["predict", "out", "houses.csv"]) == 0
    found = columns(capsys.readouterr().out)
    assert list(found) == ["line", "prediction"]
    # The first rows, which have no past, too.
    assert found["line"].tolist() == list(range(2, 702))
    (tmp_path / "new.csv").write_text(without(houses, "price"))
    words = refused("predict", "out", "new.csv", code=2)
    assert "no column 'price', whose earlier values are features (--lag)" in words
    assert "or let its rows come next (--continue)" in words


def test_every_row_gets_a_line(trained, tmp_path, capsys):
    rows = {
        "whole": "120,30,Ulm,2024-01-01",
        "bad cell": "120,x,Ulm,2024-01-01",
        "cut off": "120,30",
        "too long": "120,30,Ulm,2024-01-01,7,8",
        "a quote": '120,30,"Ulm,2024-01-01',
        "text behind a quote": '120,30,"Ulm"e,2024-01-01',
        "a quote in another": '120,"3,0","Ulm,2024-01-01',
        "nothing": ",,,",
        "whole again": "120,30,Ulm,2024-01-01",
    }
    gaps = {  # the same, as far as they can be read
        "bad cell": "120,,Ulm,2024-01-01",
        "cut off": "120,30,,",
        "too long": rows["whole"],
        "a quote": rows["whole"],
        "text behind a quote": "120,30,Ulme,2024-01-01",
        "a quote in another": '120,"3,0",,',
    }
    header = "area,age,town,sold\n"
    (tmp_path / "all.csv").write_text(header + "\n".join(rows.values()) + "\n")
    assert main(["predict", "out", "all.csv"]) == 0
    out, told = capsys.readouterr()
    found = columns(out)
    assert found["line"].tolist() == list(range(2, 11))
    words = " ".join(told.split())
    assert "5 rows could not be read as a whole, and are predicted from what could be" in words
    assert "all.csv, line 4: 2 field(s), expected the header's 4" in words
    assert "cells taken for gaps: age 2." in words
    for number, (name, row) in enumerate(rows.items()):
        for text in {row, gaps.get(name, row)}:
            (tmp_path / "one.csv").write_text(header + text + "\n")
            assert main(["predict", "out", "one.csv", "--quiet"]) == 0
            alone = columns(capsys.readouterr().out)["prediction"]
            np.testing.assert_allclose(alone, found["prediction"][number : number + 1], rtol=1e-12)
    # Whole, without age, without town and date, of another town, without all three, nothing.
    assert len({*found["prediction"].round(6)}) == 6
    assert main(["predict", "out", "all.csv", "--on-bad-row", "skip"]) == 0
    out, told = capsys.readouterr()
    assert columns(out)["line"].tolist() == [2, 9, 10]
    assert "6 rows left out, as asked for." in " ".join(told.split())


def test_no_time_stops_predictions_with_lags(answer, refused, file, no_report, houses, tmp_path, capsys):
    answer(*RUN, "--lag", "target:1", "--time", "sold")
    header, *rows = houses.splitlines()
    cells = [row.split(",") for row in rows[:40]]
    for row, time in {5: "", 9: "soon", 20: "2031-01-01T00:00"}.items():
        cells[row][3] = time
    (tmp_path / "new.csv").write_text("\n".join([header, *map(",".join, cells)]))
    assert main(["predict", "out", "new.csv"]) == 0
    out, told = capsys.readouterr()
    found, words = columns(out), " ".join(told.split())
    assert found["line"].tolist() == list(range(2, 42))
    assert "cells taken for gaps: sold 1." in words
    assert "1 row is earlier than the one before, and lags are of rows as they stand in the file" in words
    assert "new.csv, line 23, column 'sold': '2024-01-07T11:00' is earlier" in words
    assert answer("score", "out", "new.csv")["rows"] == 40
    assert "line 7, column 'sold': '' is no time" in refused(
        "predict", "out", "new.csv", "--on-bad-row", "error", code=1
    )


def test_files_that_are_no_utf_8(answer, refused, no_report, houses, tmp_path, capsys):
    text = houses.replace("Kiel", "Köln").encode("latin-1")
    (tmp_path / "houses.csv").write_bytes(text)
    about = answer(*RUN)
    line = next(i for i, row in enumerate(text.split(b"\n"), start=1) if b"K\xf6ln" in row)
    told = f"line {line}: not UTF-8 text, read as Windows-1252: "
    told += "if that is wrong, --encoding cp1250 or another"
    assert [with_flags(note) for note in about["notes"] if "UTF-8" in note] == [told]
    assert "town=Köln" in about["features"]
    assert main([*COMPARE, "--learners", "embedded:max_atoms=5", "--quiet"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())
    assert f"houses.csv, line {line}: not UTF-8 text" in refused(
        *RUN, "--force", "--on-bad-row", "error", code=1
    )
    header, *rows = text.split(b"\n")[:21]
    rows[4], rows[7] = rows[4].replace(b",", b"\0,", 1), rows[7].replace(b",", b"\xff,", 1)
    (tmp_path / "new.csv").write_bytes(b"\n".join([header, *rows]))
    assert main(["predict", "out", "new.csv"]) == 0
    out, err = capsys.readouterr()
    assert columns(out)["line"].tolist() == list(range(2, 22))
    words = " ".join(err.split())
    assert f"new.csv, {told}." in words
    assert "cells taken for gaps: area 2." in words
    assert answer("score", "out", "new.csv")["rows"] == 20


def test_a_target_beyond_all_squares_is_not_scored(trained, file, houses, tmp_path, capsys):
    header, first, *rows = houses.splitlines()
    cells = first.split(",")
    cells[4] = "-1e300"
    (tmp_path / "new.csv").write_text("\n".join([header, ",".join(cells), *rows[:9]]))
    assert main(["predict", "out", "new.csv"]) == 0
    out, told = capsys.readouterr()
    words = " ".join(told.split())
    assert len(columns(out)["line"]) == 10
    assert "1 target not scored, whose square is no number (the largest: -1e+300)." in words
    assert "'price' is there in 9 rows: mean squared error" in words
    assert "unknown" not in words


def test_lines_that_are_no_objects_are_predicted_as_gaps(trained, tmp_path, capsys):
    row = '{"area": 120, "age": 30, "town": "Ulm", "sold": "2024-01-01"}'
    (tmp_path / "new.jsonl").write_text(f"{row}\n[1]\n{{\n{row}\n{{}}\n")
    assert main(["predict", "out", "new.jsonl", "--quiet"]) == 0
    found = columns(capsys.readouterr().out)
    assert found["line"].tolist() == [1, 2, 3, 4, 5]
    assert len({*found["prediction"].round(6)}) == 2
    np.testing.assert_allclose(found["prediction"][[1, 2]], found["prediction"][4], rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["predict", "out", "nowhere.csv"], 1, "No such file"),
        (["predict", "nowhere.kons", "houses.csv"], 1, "there is no such file"),
        (["predict", "houses.csv", "houses.csv"], 1, "not written by kons.save"),
        (["predict", "out", "other.csv"], 2, "has no column 'area'"),
        (["predict", "out", "broken.csv", "--on-bad-row", "error"], 1, "broken.csv, line 3"),
        (["predict", "out", "broken.csv", "--on-bad-row=error", "--out", "new.csv"], 1, "broken.csv, line 3"),
        (["predict", "out", "houses.csv", "--out", "houses.csv"], 2, "is already there; --force"),
        (["predict", "out", "houses.csv", "--out", "no/where.csv"], 2, "there is no folder no"),
        (["predict", "out", "houses.csv", "--out", "out"], 2, "is a folder"),
        (["predict", "kernel.kons", "houses.csv"], 2, "holds a Gaussian, which predicts nothing"),
        (["predict", "plain.kons", "houses.csv"], 2, "does not know which columns"),
        (["predict", "out"], 2, "FILE"),
    ],
)
def test_predict_refuses(trained, refused, houses, tmp_path, arguments, code, words):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "broken.csv").write_text("\n".join([*houses.splitlines()[:2], "1,x,Ulm,2024-01-01,1,no sir"]))
    kons.save(kons.Gaussian(1.0), "kernel.kons")
    kons.save(kons.KONS(kons.Gaussian(1.0), kons.Squared()), "plain.kons")
    assert words in refused(*arguments, code=code)


def test_rows_that_cannot_be_read_may_be_skipped(answer, file, tmp_path, capsys):
    answer(*RUN)
    (tmp_path / "new.csv").write_text(
        "area,age,town,sold\n1,2,Ulm,2024-01-01\nx,2,Ulm,2024-01-01\n3,4,Kiel,2024-01-02\n"
    )
    assert main(["predict", "out", "new.csv", "--on-bad-row", "skip", "--quiet"]) == 0
    assert columns(capsys.readouterr().out)["line"].tolist() == [2, 4]


def test_inspect(trained, said, file, capsys):
    assert main(["inspect", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows_learned"] == 700
    assert found["atoms"] == 20
    assert found["target"] == "price"
    assert found["task"] == "regression"
    assert found["format_version"] == 3
    assert found["parameters"]["max_atoms"] == 20
    assert "area" in found["features"]
    first = np.array([float(line.split(",")[0]) for line in file.read_text().splitlines()[1:71]])
    assert found["scaling"]["warmup"] == 70
    assert found["scaling"]["features"]["area"]["median"] == pytest.approx(np.median(first), rel=0.01)
    out = said("inspect", "out/model.kons")
    for words in ("'price', regression", "houses.csv, 700 rows", "format 3", "max_atoms=20", "centre"):
        assert words in out


def test_inspect_labels_and_plain_objects(trained_on_labels, said):
    out = said("inspect", "out")
    assert "yes sir" in out
    kons.save(kons.Gaussian(2.0), "kernel.kons")
    assert "Gaussian" in said("inspect", "kernel.kons")
    kons.save(kons.Scaled(kons.KONS(kons.Gaussian("auto"), kons.Squared())), "new.kons")
    assert "not over yet" in said("inspect", "new.kons")


def test_inspect_knows_the_task_of_a_learner_without_a_run(capsys):
    learner = kons.EmbeddedKONS(kons.Gaussian(1.0), kons.Squared())
    for thing, task in ((kons.Classifier(learner), "classification"), (learner, None)):
        kons.save(thing, "plain.kons")
        assert main(["inspect", "plain.kons", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["task"] == task


def test_inspect_several_targets(said, file):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = kons.AutoKONS(max_atoms=4)
    model.advance(X, np.stack([X[:, 0], X[:, 1]], axis=1))
    kons.save(model, "two.kons")
    out = " ".join(said("inspect", "two.kons").split())
    for words in ("relevance x1 1, x0 0.9", "y0: linear, features", "y1: linear, features"):
        assert words in out


def test_a_folder_without_a_model(capsys, tmp_path):
    (tmp_path / "out").mkdir()
    assert main(["inspect", "out"]) == 1
    assert "folder without model.kons" in capsys.readouterr().err
    (tmp_path / "out" / "checkpoint.kons").touch()
    assert main(["inspect", "out"]) == 1
    assert "finish its run first (kons resume out)" in capsys.readouterr().err


def test_learners(said, capsys):
    out = said("learners")
    words = " ".join(out.split())
    assert "(the default) O(B^2) for each" in words
    assert "effort, max_atoms, experts, bandwidth, regularization, kernel" in words
    assert "All but auto take kernel, bandwidth, warmup, margin, loss, classes as well," in words
    linear = f", {words.partition('but no kernel and bandwidth: ')[2].partition('. Of a row')[0]},"
    assert linear == ", adagrad, adam, ogd, ons, sketched_ons, vaw,"
    assert main(["learners", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["learners"].keys() == RECIPES.keys()
    assert found["rivals"].keys() == RIVALS.keys()
    for name, one in DICTIONARIES.items():
        assert found["dictionaries"][name]["reference"] == one.reference
        assert all(told in words for told in (name, one.description, one.cost, one.avoid, one.reference))
    for name, recipe in RECIPES.items():
        assert name in out
        assert recipe.description in words
        assert f"{recipe.cost} a row; not for {recipe.avoid}; {recipe.reference}." in words
        about = found["learners"][name]
        assert (about["cost"], about["not_for"]) == (recipe.cost, recipe.avoid)
        assert about["reference"] == recipe.reference
        assert ("bandwidth" in about["parameters"]) is (f", {name}," not in linear)
    assert max(map(len, out.splitlines())) <= 80


COMPARE = ["compare", *PRICE]


def test_compare(answer, said, file):
    learners = "embedded:max_atoms=5,sketched,embedded:max_atoms=40:bandwidth=2"
    found = answer(*COMPARE, "--learners", learners, "--out", "out", "--picture", "frontier.png")
    assert {entry["name"] for entry in found["learners"]} == set(learners.split(","))
    losses = [entry["loss"] for entry in found["learners"]]
    assert losses == sorted(losses)
    alone = answer("run", *COMPARE[1:], "--learner", "embedded", "--set", "max_atoms=5")
    five = next(entry for entry in found["learners"] if entry["name"] == "embedded:max_atoms=5")
    assert five["loss"] == alone["loss"]
    assert found["baselines"] == alone["baselines"]
    assert sorted(os.listdir("out")) == ["report.html", "run.json", "summary.json"]
    with open("frontier.png", "rb") as picture:
        assert picture.read(4) == b"\x89PNG"
    out = said(*COMPARE, "--learners", "sketched,embedded", "--set", "max_atoms=10")
    assert max(map(len, out.splitlines())) <= 80
    lines = [line for line in out.splitlines() if line.startswith(("sketched", "embedded", "online linear"))]
    assert len(lines) == 3
    assert "frontier" in out


def test_compare_all_leaves_out_who_takes_too_long(answer, said, refused, file):
    asked = [*COMPARE, "--learners", "all", "--seconds", "0.000001"]
    found = answer(*asked)
    (stays,) = (entry["name"] for entry in found["learners"])
    assert RECIPES[stays].growth == 0
    assert {stays, *found["left_out"]} == RECIPES.keys()
    assert "left out, for it takes about" in found["left_out"]["embedded"]
    labels = [name for name, why in found["left_out"].items() if why == "for classification only"]
    assert labels == [name for name, recipe in RECIPES.items() if "regression" not in recipe.tasks]
    assert f"{', '.join(labels)}: for classification only" in found["notes"]
    assert found["baselines"]
    asked[asked.index("all")] = "ogd,embedded"
    assert "embedded: left out, for it takes about" in " ".join(said(*asked).split())
    few = answer(*COMPARE, "--learners", "ogd,kons", "--seconds", "1000")
    assert {entry["name"] for entry in few["learners"]} == {"ogd", "kons"}
    assert not few["left_out"]
    assert "--seconds is 0" in refused(*COMPARE, "--learners", "all", "--seconds", "0", code=2)


def test_compare_with_models_of_other_libraries(answer, said, refused, file, monkeypatch):
    """Text, dates and gaps reach them, too; all are then asked row by row, and pauses are told."""
    learners = "embedded:max_atoms=20,sklearn_boosting:max_iter=10:window=300"
    found = answer(*COMPARE, "--learners", learners, "--out", "out")
    ours, trees = sorted(found["learners"], key=lambda entry: entry["learner"])
    assert trees["parameters"] == {"max_iter": 10, "window": 300}
    assert trees["atoms"] is None
    for entry in (ours, trees):
        assert entry["loss"] < found["baselines"]["constant"]
        assert entry["last_quarter"] < found["baselines_last_quarter"]["constant"]
        assert 0.0 < entry["longest_pause"] < entry["microseconds_per_row"] * 1e-6 * found["rows"]
    alone = answer("run", *COMPARE[1:], "--learner", "embedded", "--set", "max_atoms=20")
    assert ours["loss"] == pytest.approx(alone["loss"])
    assert "longest pause, ms" in Path("out/report.html").read_text()
    out = said(*COMPARE, "--learners", learners)
    assert "max ms" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "max ms" not in said(*COMPARE, "--learners", "embedded")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    told = refused(*COMPARE, "--learners", "auto,lightgbm", code=1)
    assert "'lightgbm' needs an optional dependency. Install it: pip install 'kons[rivals]'" in told
    weighed = ["compare", "houses.csv", "--target", "dear", "--class-weight", "balanced", "--learners"]
    assert "is not for models of other libraries" in refused(*weighed, "sklearn_boosting", code=2)
    kept = refused("run", *COMPARE[1:], "--learner", "lightgbm", code=2)
    assert "kons compare FILE --learners auto,lightgbm" in kept


def test_compare_with_river(answer, file):
    pytest.importorskip("river", reason="River is not installed")
    asked = ["compare", "houses.csv", "--target", "dear", "--drop", "price", "--learners"]
    found = answer(*asked, "river_arf:n_models=3,river_linear", "--rows", "400")
    assert {entry["name"] for entry in found["learners"]} == {"river_arf:n_models=3", "river_linear"}
    assert found["learners"][0]["loss"] < found["baselines"]["constant"]


def test_compare_without_names(answer, file):
    found = answer(*COMPARE, "--set", "max_atoms=10", "--rows", "200")
    assert {entry["name"] for entry in found["learners"]} == {"auto", "embedded"}
    assert all(entry["parameters"] == {"max_atoms": 10} for entry in found["learners"])
    found = answer(*COMPARE, "--effort", "tiny", "--rows", "100")
    assert {entry["name"]: entry["parameters"] for entry in found["learners"]} == {
        "auto": {"effort": "tiny"},
        "embedded": {},
    }


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--learners", ""], 2, "--learners is missing: give some of auto, adagrad"),
        (["--learners", "embedded,embeded"], 2, "did you mean 'embedded'?"),
        (["--learners", "embedded,embedded"], 2, "--learners has embedded twice"),
        (["--learners", "embedded:max_atoms"], 2, "--learners max_atoms: expected name=value"),
        (["--learners", "embedded:atoms=3"], 2, "takes no parameter 'atoms'"),
        (["--learners", "kons", "--set", "max_atoms=5"], 2, "--set max_atoms: none of the learners takes it"),
        (["--learners", "river_arff"], 2, "did you mean 'river_arf'?"),
        (["--learners", "sklearn_boosting:depth=2"], 2, "'sklearn_boosting' cannot be made of depth=2"),
        (
            ["--learners", "sklearn_boosting:max_iter=-1"],
            1,
            "could not fit after 50 row(s): InvalidParameterE",
        ),
        (["--learners", "kons", "--picture", "a.gif"], 2, "must end in .svg, .png, .pdf"),
        (["--learners", "kons", "--out", "houses.csv"], 2, "is a file"),
    ],
)
def test_compare_refuses(refused, file, arguments, code, words):
    assert words in refused(*COMPARE, *arguments, code=code)
    assert "--target is missing" in refused("compare", "houses.csv", "--learners", "kons", code=2)


def test_compare_draws_where_it_is_asked_to(file, capsys):
    asked = ["compare", str(file), "--target", "price", "--learners", "embedded", "--quiet"]
    before = os.listdir()
    assert main(asked) == 0
    assert "Picture" not in capsys.readouterr().out
    assert os.listdir() == before
    assert main([*asked, "--picture", "mine.svg"]) == 0
    assert "Picture: mine.svg" in capsys.readouterr().out
    assert Path("mine.svg").read_bytes().rstrip().endswith(b"</svg>")


@pytest.mark.parametrize(("least", "scale"), [(0.5, "log"), (0.0, "linear")])
def test_the_frontier_as_a_picture(file, least, scale):
    """A loss of 0 has no place on a logarithmic axis."""
    pytest.importorskip("matplotlib")
    names = {f"embedded:max_atoms={most}": Contender("embedded", {"max_atoms": most}) for most in (2, 5)}
    found = compare(Settings("houses.csv", "price", rows=60), names, quiet=True)
    results = {
        name: replace(result, loss=loss, learner_seconds=1.0 + loss)
        for (name, result), loss in zip(found.results.items(), (least, 80.0), strict=True)
    }
    baselines = {"constant": 90.0, "linear": 20.0, "persistence": float("nan")}
    summary = found._replace(results=results, baselines=baselines).summary()
    (axes,) = draw_frontier(RunFolder(Path(), {}, summary)).figure.axes
    assert axes.get_yscale() == scale
    first, second = results
    assert [text.get_text() for text in axes.texts] == [
        "best trivial predictor: online linear", f"1 {first}", f"2 {second}"
    ]  # fmt: skip


def test_what_was_drawn_is_in_the_file():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.suptitle("a title")
    save_picture(figure, Path("a.svg"), force=False)
    assert "<!-- a title -->" in Path("a.svg").read_text()
