"""``kons run --engine spark``: files of a folder, on the session of the cluster."""

import json

import numpy as np
import pandas as pd
import pytest
from sensors import one_process, sensors

import kons
from kons.cli import main
from kons.spark import example

COLUMNS = ["prediction", "lower", "upper", "loss", "novelty"]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write(frame, name):
    """As CSV with decimal commas, which the plan finds out."""
    frame.to_csv(name, index=False, sep=";", decimal=",", float_format="%.17g")


def test_a_folder_of_files_and_what_came_since(spark, tmp_path, capsys):
    frame = sensors(120, 3)
    (tmp_path / "in").mkdir()
    write(frame[:50].sample(frac=1.0, random_state=0), "in/a.csv")
    write(frame[50:80], "in/b.csv")
    given = ["--target", "y", "--key", "sensor", "--time", "t", "--drop", "t", "--buckets", "2"]
    assert main(["run", "in", "--engine", "spark", *given, "--out", "o", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["learned"] == 80
    write(frame[80:], "in/c.csv")
    with open("in/c.csv", "a") as file:
        file.write("120;s0;a;b;c;d;e\n121;s0;0,5;mon;no number\n122;;0,5;mon;1\n1;s1;0,5;mon;1\n")
    assert main(["resume", "o"]) == 0
    assert "Learned from 120 rows" in capsys.readouterr().out
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["skipped"] == {"broken line": 1, "no target": 1, "no key": 1, "late": 1}
    found = pd.read_parquet("o/predictions")
    learned = found[found["skipped"].isna()].to_dict("records")
    said, own = one_process(frame)
    assert {row["t"]: tuple(row[name] for name in COLUMNS) for row in learned} == said
    model = kons.load(tmp_path / "o" / "model.kons")
    x = {"load": 0.3, "day": "tue"}
    assert {key: model.predict_one({"sensor": key} | x) for key in model.keys} == {
        key: learner.predict_one(x) for key, learner in own.items()
    }
    assert main(["score", "o", "in/a.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 50


def test_parquet_labels_moments_and_odd_names(spark, tmp_path, capsys):
    frame = sensors(60, 2)
    frame["y"] = (frame["y"] > 0.5).astype(int)
    frame["t"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["t"], "h")
    frame = frame.astype({"y": "Int64"})
    frame.loc[3, "y"] = None
    frame = frame.rename(columns={"load": "lo.ad `kW`"}).assign(T=1.5)
    frame.to_parquet("rows.parquet", index=False)
    given = ["--target", "y", "--key", "sensor", "--time", "t", "--task", "classification"]
    assert main(["run", "rows.parquet", "--engine", "spark", *given, "--out", "o", "--quiet"]) == 0
    assert "error rate" in capsys.readouterr().out
    found = pd.read_parquet("o/predictions")
    assert found["skipped"].value_counts().to_dict() == {"no target": 1}
    model = kons.load(tmp_path / "o" / "model.kons")
    assert sorted(model.classes) == [0, 1]
    assert all(type(label) is int for label in model.classes)
    rates = found.groupby("sensor")["loss"].mean()
    assert {one.key: one.loss for one in model.worst()} == pytest.approx(rates.to_dict())


def test_what_is_wrong_with_files_is_one_line(spark, tmp_path, capsys):
    frame = sensors(40, 2)
    (tmp_path / "in").mkdir()
    write(frame, "in/a.csv")
    write(frame[["sensor", "t", "load", "day", "y"]], "in/b.csv")
    asked = ["run", "in", "--engine", "spark", "--target", "y", "--time", "t", "--out", "o", "--quiet"]
    assert main([*asked, "--key", "sensor"]) == 1
    err = capsys.readouterr().err
    assert "b.csv has the columns sensor, t, load, day, y, and" in err
    (tmp_path / "in" / "b.csv").unlink()
    assert main([*asked, "--key", "load", "--buckets", "1"]) == 0  # a key of numbers is one by its text
    assert len(kons.load(tmp_path / "o" / "model.kons")) == np.unique(frame["load"]).size


def test_the_example_shows_the_loudest_sensors_first(spark, capsys):
    example.main(["--sensors", "12", "--rows", "6", "--batches", "2"])
    last = capsys.readouterr().out.split("micro-batch 1: ")[1].splitlines()
    assert last[0] == "144 rows of 12 sensors so far; the worst now:"
    assert "s3" in [line.split()[0] for line in last[3:5]]  # the one of which ten are loud
