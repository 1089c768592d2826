"""``kons run``, ``kons resume`` and ``kons report`` in this process."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import kons
from kons.cli import main

EMBEDDED = ["--learner", "embedded", "--set", "max_atoms=20"]
RUN = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED]
CLASSES = ["run", "houses.csv", "--target", "dear", "--drop", "price", *EMBEDDED]


def test_one_json_object_is_the_summary(answer, file):
    result = answer(*RUN, "--out", "out")
    with open("out/summary.json") as saved:
        assert json.load(saved) == result
    assert result["rows"] == 700
    assert result["learner"] == "embedded"
    assert result["task"] == "regression"
    assert set(result["baselines"]) == {"constant", "linear", "persistence"}
    assert set(result["metrics"]) == {"mse", "rmse", "mae", "medae", "r2"}
    assert result["loss"] == pytest.approx(result["metrics"]["mse"])
    assert 0 < result["atoms"] <= 20
    assert result["seconds"] > 0.0
    assert result["microseconds_per_row"] > 0.0
    assert result["loss"] < result["baselines"]["constant"]
    assert sorted(os.listdir("out")) == [
        "model.kons", "predictions.csv", "report.html", "run.json", "summary.json", "trace"
    ]  # fmt: skip
    with open("out/run.json") as saved:
        assert json.load(saved)["command"] == ["kons", *RUN, "--out", "out", "--json", "--quiet"]


def test_the_words_for_people(said, file):
    out = said(*RUN, "--out", "out")
    for words in (
        "houses.csv, predicting 'price': regression, 700 rows",
        "Predicts price with a mean squared error of",
        "the best trivial predictor",
        "max_atoms=20",
        "online linear",
        "last value again",
        "mean so far",
        "coverage",
        "points kept, at most 20",
        "us/row",
        "- text, by its levels: town",
        "Saved in out: predictions.csv, summary.json, model.kons, trace/, report.html.",
    ):
        assert " ".join(words.split()) in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_the_default_learner(said, answer, file):
    asked = [*RUN[:6], "--set", "max_atoms=20", "--set", "experts=5", "--out", "out"]
    result = answer(*asked)
    assert result["learner"] == result["settings"]["learner"] == "auto"
    assert result["loss"] < min(result["baselines"].values())
    assert set(result["relevances"]) == {"area", "age", "town", "sold"}
    assert {name.partition("=")[0].partition(" ")[0] for name in result["features"]} == set(
        result["relevances"]
    )
    assert set(result["columns"]) == set(result["relevances"])
    assert max(result["relevances"], key=result["relevances"].get) == "area"
    at_work = [expert["name"] for expert in result["experts"] if expert["share"] != 0.0]
    assert len(at_work) == 8  # with the mean, the last target and the trend of neighbours
    assert at_work[:4] == ["mean", "last target", "trend of neighbours", "gaussian, features"]
    out = said(*asked, "--force")
    leader = max(result["experts"], key=lambda expert: expert["share"] or 0.0)["name"]
    counted = f"4 columns as {len(result['features'])} features"
    for words in (counted, "points kept, by all experts together", f"led by {leader}", "relevance", "area 1"):
        assert words in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    with open("out/report.html", encoding="utf-8") as page:
        text = page.read()
    for words in ("Columns that matter", "Experts over time", "Experts at the end", "gaussian, features"):
        assert words in text


def test_effort(answer, file):
    asked = [*RUN[:6], "--rows", "200"]
    tiny = answer(*asked, "--effort", "tiny")
    assert tiny["settings"]["parameters"] == {"effort": "tiny"}
    assert tiny["loss"] == answer(*asked, "--set", "effort=tiny")["loss"]
    assert len(tiny["experts"]) == 6  # with the mean, the last target and the trend of neighbours


@pytest.mark.parametrize("target", ["price", "dear"])
def test_the_default_learner_with_late_targets(answer, file, target):
    other = {"price": "dear", "dear": "price"}[target]
    few = ["--set", "max_atoms=20", "--set", "experts=5", "--rows", "300"]
    asked = ["run", "houses.csv", "--target", target, "--drop", other, *few]
    late = answer(*asked, "--delay", "3")
    assert late["delay"] == 3
    assert late["loss"] < late["baselines"]["constant"]


def test_labels(said, answer, file):
    result = answer(*CLASSES)
    assert result["task"] == "classification"
    assert result["loss_name"] == "error rate"
    assert set(result["metrics"]) == {
        *("error_rate", "log_loss", "auc", "average_precision", "f1", "precision", "recall")
    }
    assert sorted(result["classes"]) == ["no sir", "yes sir"]
    assert result["loss"] < result["baselines"]["constant"]
    out = said(*CLASSES)
    assert "no sir" in out
    assert "most frequent label" in out
    assert "task: classification, since 'dear' holds text" in " ".join(out.split())


def test_the_task_can_be_chosen(answer, refused, file):
    assert (
        answer(*RUN[:2], "--target", "age", "--task", "classification", *EMBEDDED)["task"] == "classification"
    )
    assert "holds text" in refused(*CLASSES, "--task", "regression", code=2)


def test_other_options(answer, file):
    assert answer(*RUN, "--rows", "100")["rows"] == 100
    assert answer(*RUN, "--delay", "3", "--window", "50")["delay"] == 3
    lagged = answer(*RUN, "--time", "sold", "--lag", "target:1,2")
    assert lagged["rows"] == 698
    assert {"price lag 1", "price lag 2"} <= set(lagged["features"])
    assert lagged["skipped"] == {"no past": 2}
    assert lagged["rows_skipped"] == 0
    assert answer(*RUN, "--columns", "area,age")["features"] == ["area", "age"]
    assert answer(*RUN, "--scale", "none")["settings"]["scale"] == "none"
    for learner, most in (("sketched", None), ("pkawv", 200), ("nons_ald", None)):
        found = answer(*RUN[:6], "--learner", learner, "--rows", "200")
        assert (found["learner"], found["max_atoms"]) == (learner, most)  # a limit nobody set is none
    same = [answer(*RUN[:6], "--learner", "b_kons", "--seed", seed)["loss"] for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


def test_values_behind_set_are_literals(answer, file):
    result = answer(
        *RUN[:8], "--set", "max_atoms=7", "--set", "kernel=laplace", "--set", "bandwidth=2.5",
        "--set", "second-order=gradient", "--set", "forward=false",
    )  # fmt: skip
    assert result["settings"]["parameters"] == {
        "max_atoms": 7,
        "kernel": "laplace",
        "bandwidth": 2.5,
        "second_order": "gradient",
        "forward": False,
    }
    assert result["atoms"] == 7


def test_standard_input(answer, said, typed_in, houses, no_report, capsys):
    typed_in(houses)
    arguments = ["--target", "price", "--drop", "dear", *EMBEDDED]
    assert answer("run", "-", *arguments)["rows"] == 700
    typed_in(houses)
    out = said("run", "-", *arguments, "--out", "out")
    assert "standard input, predicting 'price'" in out
    assert main(["resume", "out"]) == 0
    again = capsys.readouterr()
    assert "finished" in again.err
    assert again.out == out
    typed_in(houses)
    assert main(["run", "-", *arguments, "--out", "out2"]) == 0
    assert "cannot be resumed if it is interrupted" in " ".join(capsys.readouterr().err.split())


def test_progress_goes_to_standard_error(capsys, monkeypatch, file):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR")
    assert main([*RUN, "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    for words in ("houses.csv", "rows", "loss", "atoms"):
        assert words in err
    monkeypatch.setenv("NO_COLOR", "1")
    assert main([*RUN, "--json", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["run", "houses.csv"],
            "--target is missing: which column of houses.csv is to be predicted? There are",
        ),
        (["run", "houses.csv", "--target", "prize"], "has no column 'prize': did you mean 'price'?"),
        (["run", "houses.csv", "--target", "zzz"], "its columns are area, age, town, sold, price, dear."),
        (["run", "houses.csv", "--target", "price", "--drop", "prices"], "did you mean 'price'?"),
        (["run", "houses.csv", "--target", "price", "--learner", "embeded"], "did you mean 'embedded'?"),
        (["run", "houses.csv", "--target", "price", "--set", "max_atom=9"], "It takes effort, max_atoms"),
        ([*RUN[:6], "--effort", "some"], "effort is 'some', expected one of tiny, low, normal, high"),
        ([*RUN[:6], "--effort", "tiny", "--set", "effort=tiny"], "effort is given twice"),
        ([*RUN[:8], "--effort", "tiny"], "takes no parameter 'effort'"),
        ([*RUN[:8], "--set", "max_atom=9"], "It takes bound, regularization"),
        ([*RUN[:6], "--set", "warmup=9"], "'auto' takes no parameter 'warmup'"),
        ([*RUN[:6], "--scale", "none"], "--scale none does not apply to 'auto'"),
        (["run", "houses.csv", "--target", "price", "--set", "max_atoms"], "expected name=value"),
        (
            ["run", "houses.csv", "--target", "price", "--set", "a=1", "--set", "a=2"],
            "--set a is given twice",
        ),
        (["run", "houses.csv", "--target", "price", "--lag", "target"], "expected a column and rows back"),
        (["run", "houses.csv", "--target", "price", "--lag", "target:0"], "at least 1"),
        (["run", "houses.csv", "--target", "price", "--rows", "0"], ">= 1"),
        (["run", "houses.csv", "--target", "price", "--task", "guessing"], "guessing"),
        (["run", "houses.csv", "--target", "price", "--missing", "maybe"], "maybe"),
        (["run", "houses.csv", "--target", "price", "--format", "xlsx"], "expected one of auto, csv"),
        (["run", "houses.csv", "--target", "price", "--encoding", "klingon"], "klingon"),
        (["run", "houses.csv", "--target", "price", "--force"], "--force is for --out"),
        (["run", "houses.csv", "--target", "price", "--out", "houses.csv"], "is a file, expected"),
        (["run", "houses.csv", "--target", "price", "--time", "town"], "dates or numbers"),
        (["run", "houses.csv", "--targ", "price"], "Did you mean --target"),
        (["run", "--target", "price"], "FILE"),
        (["run"], "FILE"),
        (["resume"], "FOLDER"),
        (["report"], "FOLDER"),
    ],
)
def test_wrong_usage(refused, file, arguments, words):
    assert words in refused(*arguments, code=2).replace('"', "")  # cyclopts quotes an option, or does not


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--missing", "error"], 1, "drop the column, or --missing skip or fill."),
        (["--missing", "error", "--drop", "area"], 1, "delete the row, or --missing skip."),
        (["--on-bad-row", "error"], 1, "skip bad rows (--on-bad-row skip)."),
        (["--lag", "target"], 2, "--lag is 'target', expected a column and rows back"),
        (["--lag", "target:2", "--delay", "3"], 2, "use --lag target:N above 3, or a shorter --delay."),
        (["--lag", "target:2", "--shuffle"], 2, "leave out --shuffle, or --time and --lag."),
        (["--id", "price"], 2, "'price' is the target: it cannot be dropped as well (--drop, or --id,"),
        (["--delimiter", "ab"], 2, "--delimiter is 'ab'"),
        (["--format", "xlsx"], 2, "--format is 'xlsx'"),
        (["--encoding", "klingon"], 2, "--encoding is 'klingon'"),
        (["--effort", "some"], 2, "--effort is 'some'"),
        (["--class-weight", "balanced"], 2, "--class-weight balanced is for labels"),
        (["--model", "plain.kons"], 2, "--model plain.kons does not know which columns"),
    ],
)
def test_messages_speak_flags(refused, tmp_path, arguments, code, words):
    lines = ["area,age,price", "1,2,3", ",2,4", "1,2,", "3,4,5.5", "4,4,6", "5,x,7"]
    (tmp_path / "holes.csv").write_text("\n".join(lines) + "\n")
    kons.save(kons.KONS(kons.Gaussian(1.0), kons.Squared()), "plain.kons")
    assert words in refused("run", "holes.csv", "--target", "price", *arguments, code=code)


def test_notes_speak_flags(said, tmp_path):
    (tmp_path / "grades.csv").write_text("x,y\n" + "".join(f"{i % 13},{i % 5 + 1}\n" for i in range(400)))
    words = " ".join(said("run", "grades.csv", "--target", "y", *RUN[6:]).split())
    assert "y takes only the values 1, 2, 3, 4, 5: if these are classes, --task classification." in words
    labels = said(
        "run", "grades.csv", "--target", "y", "--task", "classification", "--positive", "7", *RUN[6:]
    )
    assert "--positive is '7', and no such label was among the first two." in " ".join(labels.split())


def test_lags_are_not_shown_as_the_way(capsys):
    for command in ("run", "compare"):
        assert main([command, "--help"]) == 0
        examples = capsys.readouterr().out.split("For example:")[1].split("Parameters")[0]
        assert "--lag target" not in examples


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.csv", "--target", "price"], "nowhere.csv: cannot be read (No such file"),
        (["run", ".", "--target", "price"], "cannot be read"),
        (["resume", "nowhere"], "there is no folder nowhere"),
        (["resume", "."], "holds no run.json"),
        (["report", "nowhere"], "no such folder"),
        (["report", "."], "run.json"),
    ],
)
def test_failed(refused, file, arguments, words):
    assert words in refused(*arguments, code=1)


def test_a_folder_with_something_in_it(answer, refused, file, no_report):
    answer(*RUN, "--out", "out")
    assert "out is not empty" in refused(*RUN, "--out", "out", code=2)
    answer(*RUN, "--rows", "100", "--out", "out", "--force")
    with open("out/summary.json") as saved:
        assert json.load(saved)["rows"] == 100


def test_a_report_again(said, answer, file, capsys):
    answer(*RUN, "--out", "out")
    with open("out/report.html", "rb") as page:
        before = page.read()
    os.remove("out/report.html")
    assert said("report", "out").strip() == os.path.join("out", "report.html")
    with open("out/report.html", "rb") as page:
        assert page.read() == before
    assert main(["report", "out", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_without_the_extra_it_says_how_to_get_the_report(no_report, file, capsys):
    assert main([*RUN, "--out", "out"]) == 0
    out, err = capsys.readouterr()
    assert "pip install 'kons[report]', then: kons report out" in " ".join(err.split())
    assert "trace/." in out
    assert not os.path.exists("out/report.html")


def test_what_to_try_when_it_is_no_better_than_trivial(said, tmp_path):
    steps = np.random.default_rng(0).normal(size=600).cumsum()
    rows = "".join(f"{i * 7919 % 101},{y}\n" for i, y in enumerate(steps))
    (tmp_path / "walk.csv").write_text("noise,y\n" + rows)
    out = " ".join(said("run", "walk.csv", "--target", "y", "--learner", "embedded").split())
    assert "the trivial predictor is the better choice" in out
    assert "kons run walk.csv --target y --learner auto" in out


def test_names_that_would_steer_a_terminal(said, tmp_path):
    (tmp_path / "odd.csv").write_text("a,\x1b[31mred\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(100)))
    assert "[31mred" in said("run", "odd.csv", "--target", "\x1b[31mred", "--task", "regression")


def test_names_in_errors_and_notices_do_not_steer_a_terminal(capsys, tmp_path):
    Path("t.csv").write_text("\x1b[2Ja,b\u202e,\x9bc\n" + "1,x,2\n2,y,3\n" * 20)
    assert main(["run", "t.csv", "--target", "nothing", "--learner", "embedded"]) == 2
    assert main(["run", "t.csv", "--target", "2", "--learner", "embedded"]) == 0
    out, err = capsys.readouterr()
    assert "\\x1b[2Ja" in err
    assert "b\\x202e" in err
    assert not {"\x1b", "\x9b", "\u202e"} & {*out, *err}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_output_that_nobody_reads_on_does_not_undo_a_run(file, more, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", buffering=1) as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert main([*RUN, "--out", "out", "--quiet", *more]) == 0
        monkeypatch.setattr("sys.stdout", None)  # closed from the start
        assert main(["resume", "out", "--quiet", *more]) == 0


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("online", "metrics", "mse"), []),
        (("classes",), 3),
        (("window",), ["a"]),
        (("relevances",), [[1]]),
        (("experts",), [None]),
        (("task",), {"a": 1}),
        (("settings",), 7),
    ],
)
def test_a_summary_that_somebody_changed(file, capsys, no_report, place, value):
    assert main([*RUN, "--rows", "100", "--out", "out", "--quiet"]) == 0
    found = inside = json.loads(Path("out/summary.json").read_text())
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    Path("out/summary.json").write_text(json.dumps(found))
    capsys.readouterr()
    assert main(["resume", "out", "--quiet"]) == 1
    err = capsys.readouterr().err
    assert "summary.json is not as a run has written it" in err
    assert err.count("\n") == 1


def test_a_run_that_was_killed_before_its_report_gets_it(file, said):
    said(*RUN, "--rows", "100", "--out", "out")
    os.remove("out/report.html")
    assert "report.html" in said("resume", "out")
    assert os.path.getsize("out/report.html") > 10_000


def test_every_command_has_help(capsys):
    for command in (
        "run",
        "resume",
        "report",
        "compare",
        "predict",
        "score",
        "inspect",
        "learners",
        "demo",
        "certify",
    ):
        assert main([command, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"Usage: kons {command}" in out
        if command not in ("demo", "learners"):
            assert f"\nkons {command} " in out  # an example
    assert main(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out


def test_one_row_is_a_row(said, tmp_path):
    (tmp_path / "one.csv").write_text("x,y\n1,2\n")
    assert "regression, 1 row, 1 column." in said("run", "one.csv", "--target", "y")
