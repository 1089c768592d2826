"""``kons run --engine spark``: what is refused before Spark is looked for, and where it is not there."""

import sys
from types import ModuleType

import pytest
from commands import told_in_one_line


@pytest.fixture
def sensors(tmp_path):
    (tmp_path / "in").mkdir()
    rows = [f"{t},s{t % 3},{t / 7:.2f},{'warm' if t % 2 else 'cold'},{t % 5}" for t in range(40)]
    text = "\n".join(["t,sensor,load,feeling,y", *rows])
    (tmp_path / "in" / "a.csv").write_text(text)
    (tmp_path / "in" / "b.csv").write_text(text.replace("t,sensor", "time,sensor"))
    (tmp_path / "in" / "_ignored").write_text("")
    return ["run", "in", "--target", "y", "--engine", "spark"]


GOOD = ["--key", "sensor", "--time", "t", "--out", "o"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "--engine spark has a learner for each key: say which column it is (--key)"),
        (["--key", "sensor"], "--engine spark sorts the rows of a key by a column: say which (--time)"),
        (GOOD[:4], "--engine spark writes a folder: say which (--out)"),
        ([*GOOD[:4], "--out", "in"], "in is not empty: choose another folder"),
        ([*GOOD[:4], "--out", "in", "--force"], "--force replaces runs of --engine spark only"),
        ([*GOOD, "--shuffle"], "--engine spark goes with no --shuffle"),
        ([*GOOD, "--on-bad-row", "skip"], "--engine spark goes with no --on-bad-row"),
        ([*GOOD, "--horizon", "3"], "--engine spark goes with no --horizon"),
        (["--key", "nobody", *GOOD[2:]], "a.csv has no column 'nobody'"),
        ([*GOOD[:2], "--time", "feeling", *GOOD[4:]], "column 'feeling': an order in time needs dates"),
        ([*GOOD, "--buckets", "0"], "--buckets"),
    ],
)
def test_what_cannot_be_is_refused_in_flags(capsys, sensors, given, said):
    assert said in told_in_one_line(capsys, [*sensors, *given, "--quiet"], 2)


def test_options_of_spark_alone_are_refused(capsys, sensors):
    err = told_in_one_line(capsys, [*sensors[:4], "--master", "local[2]"], 2)
    assert "--master, --buckets and --files-per-batch are for --engine spark" in err


def test_only_csv_and_parquet_are_read_there(capsys, sensors, tmp_path):
    (tmp_path / "in" / "notes.json").write_text("{}")
    assert "notes.json: Spark reads CSV and Parquet" in told_in_one_line(capsys, [*sensors, *GOOD], 1)
    assert "there.csv is no file" in told_in_one_line(capsys, ["run", "there.csv", *sensors[2:], *GOOD], 1)


def test_without_pyspark_or_java_it_says_what_to_install(capsys, monkeypatch, sensors):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "kons.spark", raising=False)
    err = told_in_one_line(capsys, [*sensors, *GOOD, "--quiet"], 1)
    assert "--engine spark needs an optional dependency. Install it: pip install 'kons[spark]'" in err
    monkeypatch.setitem(sys.modules, "kons.spark", ModuleType("kons.spark"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    err = told_in_one_line(capsys, [*sensors, *GOOD, "--quiet"], 2)
    assert "--engine spark needs Java 17 or newer, and there is none" in err
