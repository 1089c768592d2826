"""Figures on the command line: sorted files, shuffled rows, hold-out rows, names and marks of rows."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import kons
from kons.cli import main
from kons.streams import open_stream

AUTO = ["--set", "max_atoms=20", "--set", "experts=6"]
EMBEDDED = ["--learner", "embedded", "--set", "max_atoms=20"]


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def by_price(tmp_path, houses):
    """The houses, the cheapest first."""
    header, *lines = houses.splitlines()
    lines.sort(key=lambda line: float(line.split(",")[4]))
    (tmp_path / "sorted.csv").write_text("\n".join([header, *lines]) + "\n")
    return ["sorted.csv", "--target", "price", "--drop", "dear"]


def test_a_sorted_file_is_said_first_and_judged_without_last_targets(answer, said, by_price):
    result = answer("run", *by_price, *AUTO)
    assert result["order"] == "ascending"
    assert result["headline"] == "without last targets"
    assert result["loss"] == result["without_last_targets"]["loss"]
    assert result["metrics"] == result["without_last_targets"]["metrics"]
    assert result["online"]["loss"] < result["loss"]
    words = " ".join(said("run", *by_price, *AUTO).split())
    assert "4 columns as 13 features. The rows are sorted by price:" in words
    assert "kons run sorted.csv --target price --drop=dear --shuffle" in words


def test_shuffled_rows_keep_their_lines(answer, by_price):
    result = answer("run", *by_price, *AUTO, "--shuffle", "--out", "out", "--seed", "3")
    assert result["order"] is None
    assert result["headline"] == "online"
    rows, source = table("out/predictions.csv"), table("sorted.csv")
    lines = [int(row["line"]) for row in rows]
    assert sorted(lines) == list(range(2, 702))
    assert lines != sorted(lines)
    assert all(
        float(row["target"]) == float(source[line - 2]["price"])
        for row, line in zip(rows, lines, strict=True)
    )
    again = answer("run", *by_price, *AUTO, "--shuffle", "--out", "again", "--seed", "3")
    assert [row["line"] for row in table("again/predictions.csv")] == [row["line"] for row in rows]
    assert again["loss"] == result["loss"]
    answer("run", *by_price, *EMBEDDED, "--shuffle", "--out", "other", "--seed", "4")
    assert [row["line"] for row in table("other/predictions.csv")] != [row["line"] for row in rows]


def test_a_pipe_cannot_be_shuffled(typed_in, houses, capsys):
    typed_in(houses)
    assert main(["run", "-", "--target", "price", "--shuffle", "--quiet"]) == 2
    assert "rows can only be shuffled when all are there" in capsys.readouterr().err


def test_rows_are_named_by_the_column_asked_for(answer, file):
    lines = file.read_text().splitlines()
    named = [f"name,{lines[0]}", *(f"h{i},{line}" for i, line in enumerate(lines[1:]))]
    file.write_text("\n".join(named) + "\n")
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", "--id", "name", *EMBEDDED]
    result = answer(*asked, "--out", "out")
    rows = table("out/predictions.csv")
    assert list(rows[0])[:3] == ["line", "name", "row"]
    assert [row["name"] for row in rows] == [f"h{i}" for i in range(700)]
    assert [row["scored"] for row in rows] == ["0", *["1"] * 699]
    assert "name" not in " ".join(result["features"])
    assert len(result["worst_cells"]) == 10
    worst = max(rows[1:], key=lambda row: float(row["loss"]))
    assert result["worst_cells"][worst["line"]]["name"] == worst["name"]
    with open("out/report.html") as page:
        assert worst["name"] in page.read()
    assert main(["predict", "out", "houses.csv", "--id", "name", "--out", "new.csv", "--quiet"]) == 0
    assert list(table("new.csv")[3].items())[:2] == [("line", "5"), ("name", "h3")]


def test_an_unknown_name_is_refused(refused, file):
    told = refused("run", "houses.csv", "--target", "price", "--id", "nam", code=2)
    assert "nam" in told


@pytest.fixture
def trained(answer, file, no_report):
    answer("run", "houses.csv", "--target", "price", "--drop", "dear", *AUTO, "--out", "out")


def test_score_is_what_predict_says_against_the_targets(trained, houses, answer, tmp_path, capsys):
    header, *lines = houses.splitlines()
    blanked = [",".join([*line.split(",")[:4], "", "no sir"]) for line in lines[:5]]
    (tmp_path / "new.csv").write_text("\n".join([header, *blanked, *lines[5:105]]) + "\n")
    found = answer("score", "out", "new.csv")
    assert (found["task"], found["rows"], found["skipped"]) == ("regression", 100, 5)
    assert main(["predict", "out", "new.csv", "--out", "predicted.csv"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "'price' is there in 100 rows (5 rows had none): mean squared error" in told
    assert "answered without last targets" in told
    assert "gaussian, features" in told
    rows = table("predicted.csv")
    assert len(rows) == 105
    y = np.array([float(line.split(",")[4]) for line in lines[5:105]])
    errors = np.array([float(row["prediction"]) for row in rows[5:]]) - y
    assert found["metrics"]["mse"] == pytest.approx(np.mean(errors**2))
    assert found["constant"] == pytest.approx(y.var())


def test_what_was_not_scored_is_counted(trained, houses, answer, tmp_path):
    """Rows without a target, and rows that cannot be read."""
    header, *lines = houses.splitlines()
    blanked = [",".join([*line.split(",")[:4], "", "no sir"]) for line in lines[:5]]
    broken = ["a" + line for line in lines[5:8]]
    (tmp_path / "new.csv").write_text("\n".join([header, *blanked, *broken, *lines[8:18]]) + "\n")
    found = answer("score", "out", "new.csv", "--on-bad-row", "skip")
    assert (found["rows"], found["skipped"]) == (10, 8)


def test_scores_for_people(trained, said):
    words = " ".join(said("score", "out", "houses.csv").split())
    assert "houses.csv, scoring 'price': regression, 700 rows." in words
    assert "best constant" in words


def test_scores_of_labels(answer, said, file, no_report, capsys):
    answer("run", "houses.csv", "--target", "dear", "--drop", "price", *EMBEDDED, "--out", "out")
    found = answer("score", "out", "houses.csv", "--positive", "no sir")
    assert found["positive"] == "no sir"
    words = " ".join(said("score", "out", "houses.csv", "--positive", "no sir").split())
    assert "F1 of 'no sir'" in words
    assert main(["score", "out", "houses.csv", "--positive", "perhaps", "--json"]) == 0
    out, told = capsys.readouterr()
    assert json.loads(out)["positive"] == "no sir"  # of equals the later one
    assert "--positive perhaps: no such label; the figures are about 'no sir'." in " ".join(told.split())
    assert found["constant"] == pytest.approx(0.5, abs=0.01)
    assert found["metrics"]["error_rate"] < 0.3


def test_nothing_to_score(trained, refused, tmp_path, houses):
    short = "\n".join(",".join(line.split(",")[:4]) for line in houses.splitlines())
    (tmp_path / "new.csv").write_text(short + "\n")
    assert "the target 'price' is needed to score" in refused("score", "out", "new.csv", code=1)


def test_rows_that_come_next_are_predicted_with_last_targets(trained, tmp_path, houses, capsys):
    (tmp_path / "new.csv").write_text("\n".join(houses.splitlines()[:9]) + "\n")
    assert main(["predict", "out", "new.csv", "--out", "away.csv", "--quiet"]) == 0
    assert main(["predict", "out", "new.csv", "--out", "next.csv", "--continue", "--quiet"]) == 0
    assert [row["prediction"] for row in table("away.csv")] != [
        row["prediction"] for row in table("next.csv")
    ]


def predicted(*arguments):
    assert main(["predict", "out", *arguments, "--out", "p.csv", "--force", "--quiet"]) == 0
    return np.array([float(row["prediction"]) for row in table("p.csv")])


def test_known_targets_become_last_targets_of_the_rows_behind(answer, file, no_report, houses, tmp_path):
    header, *lines = houses.splitlines()
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", *AUTO, "--out", "out"]
    answer(*asked, "--rows", "600")
    before = (tmp_path / "out" / "model.kons").read_bytes()
    cells = [line.split(",") for line in lines[600:]]
    for row in cells[4:9]:
        row[4] = ""
    (tmp_path / "rest.csv").write_text("\n".join([header, *map(",".join, cells)]) + "\n")
    found = predicted("rest.csv", "--continue")
    model = kons.load("out/model.kons")
    y = [float(row[4]) if row[4] else np.nan for row in cells]
    stream = open_stream("rest.csv", plan=kons.files.about("out/model.kons")["plan"], quiet=True).to_predict()
    (block,) = stream.records()
    last = model.following().before(y)
    np.testing.assert_allclose(
        last[[0, 1, 4, 9], 0], [float(lines[599].split(",")[4]), y[0], y[3], y[3]], rtol=1e-12
    )
    np.testing.assert_allclose(found, model.predict(block.records, recent_targets=last), rtol=1e-12)
    (tmp_path / "next.csv").write_text("\n".join([header, lines[600]]) + "\n")
    np.testing.assert_allclose(predicted("next.csv", "--continue"), found[:1], rtol=1e-12)
    assert (tmp_path / "out" / "model.kons").read_bytes() == before


def test_lags_of_rows_that_come_next_begin_with_what_the_model_keeps(
    answer, file, no_report, houses, tmp_path
):
    header, *lines = houses.splitlines()
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out"]
    answer(*asked, "--lag", "target:1,5", "--lag", "age:2", "--rows", "400")
    learned = 5 + 400  # rows: without a past, and those of the run
    (tmp_path / "rest.csv").write_text("\n".join([header, *lines[learned:]]) + "\n")
    whole, rest = predicted("houses.csv"), predicted("rest.csv", "--continue")
    np.testing.assert_allclose(rest, whole[learned:], rtol=1e-12)
    away = predicted("rest.csv")
    assert len(away) == len(rest)
    np.testing.assert_allclose(away[5:], rest[5:], rtol=1e-12)
    assert np.abs(away[:5] - rest[:5]).min() > 1e-6
    # Without targets the last ones known stay the last ones.
    cells = [line.split(",")[:4] for line in lines[learned:]]
    short = ["area,age,town,sold", *map(",".join, cells)]
    (tmp_path / "new.csv").write_text("\n".join(short) + "\n")
    new = predicted("new.csv", "--continue")
    np.testing.assert_allclose(new[0], rest[0], rtol=1e-12)
    pasts = kons.files.about("out/model.kons")["past"]
    assert pasts["price"] == [float(line.split(",")[4]) for line in lines[learned - 5 : learned]]
    flat = [",".join([*row, str(pasts["price"][-1]), "no sir"]) for row in cells]
    (tmp_path / "flat.csv").write_text("\n".join([header, *flat]) + "\n")
    assert np.abs(predicted("flat.csv", "--continue")[2:] - new[2:]).max() > 1e-6


def test_only_who_looks_back_can_continue(answer, refused, file, no_report):
    answer("run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out")
    assert "takes no last targets" in refused("predict", "out", "houses.csv", "--continue", code=2)


def test_a_model_without_its_past_cannot_continue(answer, refused, file, no_report):
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out"]
    answer(*asked, "--lag", "target:1")
    told = {"plan": kons.files.about("out/model.kons")["plan"]}
    lacking = "does not hold the last values that its lags need"
    for past, words in (
        ({}, lacking),
        ({"past": [1]}, lacking),
        ({"past": {"price": ["x"]}}, "past is not one that a stream has"),
    ):
        kons.save(kons.load("out/model.kons"), "other.kons", about=told | past)
        assert words in refused("predict", "other.kons", "houses.csv", "--continue", code=2)
        os.remove("other.kons")


def test_the_lags_of_tomorrow_s_rows_go_back_to_today_s(answer, file, no_report, houses, tmp_path):
    header, *lines = houses.splitlines()
    (tmp_path / "tomorrow.csv").write_text("\n".join([header, *lines[500:]]) + "\n")
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out"]
    assert answer(*asked, "--lag", "target:2", "--rows", "498")["skipped"] == {"no past": 2}
    found = answer("run", "tomorrow.csv", "--target", "price", "--model", "out", "--out", "second")
    assert (found["rows"], found["skipped"]) == (200, {})
    assert kons.files.about("second/model.kons")["past"]["price"] == [
        float(line.split(",")[4]) for line in lines[-2:]
    ]


def test_what_a_model_has_decided_is_not_said_again(answer, refused, file, no_report):
    answer("run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out")
    before = Path("out/model.kons").read_bytes()
    for said, words in {
        "--target area": "--target is 'area', and what is gone on with predicts 'price'",
        "--drop age": "--model out/model.kons has decided --drop already: leave it out.",
        "--lag age:2": "has decided --lag already",
        "--task classification": "has decided --task already",
        "--out out --force": "out holds the model to go on with: choose another folder.",
    }.items():
        assert words in refused("run", "houses.csv", "--model", "out", *said.split(), code=2)
    assert Path("out/model.kons").read_bytes() == before
    Path("no.csv").write_text("area,age,town,sold\n90,3,Ulm,2024-01-01\n")
    assert "no.csv has no column 'price' to learn" in refused("run", "no.csv", "--model", "out", code=2)
    # What else means a gap may be another thing in another file.
    asked = ["run", "houses.csv", "--model", "out", "--target", "price"]
    more = answer(*asked, "--na-values", "3,Ulm")["gaps"]
    assert set(more) == {"age", "town"}
    assert answer(*asked)["gaps"] == {}


def test_a_model_keeps_its_delay(answer, refused, file, no_report):
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", "--rows", "300", "--effort", "tiny"]
    answer(*asked, "--delay", "3", "--out", "out")
    again = ["run", "houses.csv", "--model", "out", "--rows", "50"]
    assert answer(*again)["delay"] == answer(*again, "--delay", "3")["delay"] == 3
    said = refused(*again, "--delay", "2", code=2)
    assert "--model out/model.kons has decided --delay already, 3: leave it out." in said


def test_a_finished_run_is_resumed_to_what_is_missing(answer, file, capsys):
    asked = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out"]
    result = answer(*asked)
    os.remove("out/report.html")
    assert main(["resume", "out", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == result
    assert os.path.exists("out/report.html")


def test_classes_that_come_late_have_columns_in_all_lines(answer, tmp_path, no_report):
    rows = [f"{i % 7},{'a' if i < 700 else 'b,c' if i % 2 else 'a'}" for i in range(900)]
    (tmp_path / "late.csv").write_text(
        "x,y\n" + "\n".join(f'{r.split(",", 1)[0]},"{r.split(",", 1)[1]}"' for r in rows)
    )
    answer("run", "late.csv", "--target", "y", *EMBEDDED, "--out", "out", "--task", "classification")
    found = table("out/predictions.csv")
    assert list(found[0])[-2:] == ["p_a", "p_b,c"]
    assert None not in found[-1]
    assert found[0]["p_b,c"] == ""
    assert float(found[-1]["p_b,c"]) > 0.0
    whole = (tmp_path / "out" / "predictions.csv").read_bytes()
    assert main(["resume", "out", "--quiet"]) == 0
    assert (tmp_path / "out" / "predictions.csv").read_bytes() == whole


def test_a_constant_target_is_named(said, tmp_path):
    (tmp_path / "flat.csv").write_text("x,y\n" + "".join(f"{i},5.5\n" for i in range(300)))
    assert "y is the same in every row: there is nothing to predict." in said(
        "run", "flat.csv", "--target", "y"
    )


def test_balanced_labels_on_the_command_line(answer, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    rare = np.where(x + rng.normal(size=900) > 2.4, "rare", "usual")
    (tmp_path / "rare.csv").write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, rare, strict=True)))
    asked = ["run", "rare.csv", "--target", "y", *AUTO]
    plain, balanced = answer(*asked), answer(*asked, "--class-weight", "balanced")
    assert plain["positive"] == "rare"
    assert balanced["metrics"]["recall"] > plain["metrics"]["recall"]
    assert answer(*asked, "--positive", "usual", "--rows", "200")["positive"] == "usual"


def test_the_baselines_rank_labels_too(answer, said, file):
    asked = ["run", "houses.csv", "--target", "dear", "--drop", "price", *EMBEDDED]
    found = answer(*asked, "--out", "out")
    assert found["baseline_metrics"].keys() == {"constant", "persistence", "linear"}
    assert all(list(each) == ["auc", "average_precision"] for each in found["baseline_metrics"].values())
    linear = found["baseline_metrics"]["linear"]
    assert 0.9 < linear["auc"] < 1.0
    words = said(*asked)
    (line,) = [line for line in words.splitlines() if line.strip().startswith("online logistic")]
    (own,) = [line for line in words.splitlines() if "(this run)" in line]
    assert [float(text) for text in line.split()[-2:]] == pytest.approx([*linear.values()], abs=0.001)
    learner = found["metrics"]["auc"], found["metrics"]["average_precision"]
    assert [float(text) for text in own.split()[-2:]] == pytest.approx(learner, abs=0.001)
    with open("out/report.html") as page:
        assert "av. precision" in page.read()
    compared = answer("compare", *asked[1:-4], "--learners", "embedded", "--set", "max_atoms=20")
    assert compared["baseline_metrics"] == found["baseline_metrics"]


def test_a_pipe_can_be_predicted_and_scored(trained, answer, typed_in, houses):
    typed_in(houses)
    piped = answer("score", "out", "-")
    assert piped["metrics"] == answer("score", "out", "houses.csv")["metrics"]
    typed_in("area,age,town,sold\n120\n")
    assert len(predicted("-")) == 1


def test_labels_become_last_targets_and_broken_rows_keep_their_names(
    answer, file, no_report, houses, tmp_path
):
    answer("run", "houses.csv", "--target", "dear", "--drop", "price", *AUTO, "--out", "out")
    header, *lines = houses.splitlines()
    rows = [lines[0], "120,30", lines[1].replace("yes sir", "perhaps").replace("no sir", "perhaps"), lines[2]]
    (tmp_path / "new.csv").write_text("\n".join([header, *rows]) + "\n")
    asked = ["predict", "out", "new.csv", "--continue", "--id", "town", "--out", "p.csv", "--quiet"]
    assert main(asked) == 0
    found = table("p.csv")
    assert [row["town"] for row in found] == [rows[0].split(",")[2], "", *(r.split(",")[2] for r in rows[2:])]
    last = kons.load("out/model.kons").following().before([lines[0].split(",")[5], None, "perhaps", "no sir"])
    assert last[1:].tolist() == [last[1].tolist()] * 3  # a label that is not known is none
    assert {row["prediction"] for row in found} <= {"yes sir", "no sir"}
