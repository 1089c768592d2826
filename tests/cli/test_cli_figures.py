"""Figures on the command line: sorted files, shuffled rows, hold-out rows, names and marks of rows."""

import csv
import json
import os

import numpy as np
import pytest

from kons.cli import main

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
    assert "columns. The rows are sorted by price:" in words
    assert "kons run sorted.csv --target price --shuffle" in words


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
    answer("run", *by_price, *AUTO, "--shuffle", "--out", "other", "--seed", "4")
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


def test_scores_of_labels(answer, file, no_report):
    answer("run", "houses.csv", "--target", "dear", "--drop", "price", *EMBEDDED, "--out", "out")
    found = answer("score", "out", "houses.csv", "--positive", "no sir")
    assert found["positive"] == "no sir"
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


def test_only_who_looks_back_can_continue(answer, refused, file, no_report):
    answer("run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--out", "out")
    assert "takes no last targets" in refused("predict", "out", "houses.csv", "--continue", code=2)


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
    assert answer(*asked, "--positive", "usual")["positive"] == "usual"
