"""``kons run --horizon``: paths, figures, the report, and the path beyond the last row."""

import json

import numpy as np
import pytest

from kons.cli import main

ROWS = 400
RUN = [
    "run",
    "load.csv",
    "--target",
    "load",
    "--horizon",
    "6h",
    "--known-ahead",
    "holiday",
    "--effort",
    "low",
]


@pytest.fixture(autouse=True)
def series(tmp_path):
    """Hourly, with a stamp twice and some hours missing, and rows of the hours to come."""
    start = np.datetime64("2024-03-01T00", "h")
    load = 50 + 10 * np.sin(np.arange(ROWS) / 24 * 2 * np.pi) + np.random.default_rng(0).normal(size=ROWS)
    lines = [f"{start + i},{'fair' if i // 24 % 6 == 0 else ''},{i % 9},{load[i]:.3f}" for i in range(ROWS)]
    lines[300:305] = [lines[300].rpartition(",")[0] + ",1.0", lines[300]]
    (tmp_path / "load.csv").write_text("\n".join(["when,holiday,wind,load", *lines]) + "\n")
    ahead = [f"{start + ROWS + i},fair,0" for i in range(6)]
    (tmp_path / "ahead.csv").write_text("\n".join(["when,holiday,wind", *ahead]) + "\n")
    return load


def test_a_series_is_forecast(tmp_path, capsys, series):
    assert main([*RUN, "--out", "out"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "forecasting 'load': 397 rows, 6 steps of 1h ahead" in told
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert [one["horizon"] for one in summary["by_horizon"]] == [1, 2, 3, 4, 5, 6]
    assert summary["loss"] < min(summary["baselines"].values())
    header, *lines = (tmp_path / "out/predictions.csv").read_text().replace('"', "").splitlines()
    assert header == "origin,horizon,time,target,prediction,lower,upper,seasonal"
    cells = [line.split(",") for line in lines]
    first = np.datetime64("2024-03-01T00", "s")
    for origin, h, time, target, *_ in cells[::97]:
        assert np.datetime64(time) - np.datetime64(origin) == np.timedelta64(int(h), "h")
        at = int((np.datetime64(time) - first) / np.timedelta64(1, "h"))
        if target:  # of two rows of an hour the last; none of hours without a row
            assert float(target) == pytest.approx(series[at], abs=1e-3)
    scored = [(float(cell[3]) - float(cell[4])) ** 2 for cell in cells if cell[3]]
    assert summary["loss"] == pytest.approx(np.mean(scored), rel=1e-9)
    page = (tmp_path / "out/report.html").read_text()
    assert "Error by horizon" in page
    assert "The last paths, and the next" in page


def test_the_next_steps(tmp_path, capsys, no_report):
    assert main([*RUN, "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    found = []
    for more in ([], ["ahead.csv"]):
        assert main(["predict", "out", *more, "--continue", "--quiet"]) == 0
        found.append(capsys.readouterr().out.replace('"', "").splitlines())
    assert found[0][0] == "horizon,time,prediction,lower,upper"
    assert found[0][1].startswith("1,2024-03-17T16:00:00,")
    assert len(found[0]) == 7
    assert found[0] != found[1]
    # Of two levels the ends of the larger lie outside, around the same path.
    widths = []
    for level in ("0.5", "0.95"):
        assert main(["predict", "out", "--continue", "--level", level, "--quiet"]) == 0
        lines = capsys.readouterr().out.splitlines()[1:]
        assert [line.split(",")[2] for line in lines] == [line.split(",")[2] for line in found[0][1:]]
        cells = np.array([line.split(",")[3:] for line in lines], dtype=float)
        widths.append(cells[:, 1] - cells[:, 0])
    assert (widths[0] < widths[1]).all()
    assert main(["predict", "out", "--continue", "--level", "1", "--quiet"]) == 2
    assert "--level is 1" in capsys.readouterr().err
    # More rows go on from there.
    (tmp_path / "more.csv").write_text(
        "when,holiday,wind,load\n2024-03-17T16,,3,55.0\n2024-03-17T17,,3,52.0\n"
    )
    assert main(["run", "more.csv", "--model", "out", "--out", "again", "--quiet"]) == 0
    assert main(["predict", "again", "--continue", "--quiet"]) == 0
    assert "1,2024-03-17T18:00:00," in capsys.readouterr().out.replace('"', "")
    assert main(["inspect", "again"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*RUN, "--learner", "embedded"], "a forecast takes no --learner"),
        ([*RUN, "--lag", "target:1"], "leave out --lag"),
        ([*RUN, "--delay", "2"], "a forecast takes no --delay"),
        ([*RUN, "--set", "max_atoms=9"], "takes no parameter 'max_atoms'"),
        ([*RUN[:4], "--horizon", "90s"], "multiple of the step"),
        ([*RUN[:4], "--horizon", "soon"], "stretch of time"),
        ([*RUN[:4], "--horizon", "6", "--known-ahead", "sun"], "no column 'sun'"),
        ([*RUN[:4], "--horizon", "6", "--season", "a"], "whole numbers of rows"),
        ([*RUN[:4], "--known-ahead", "holiday"], "are for --horizon"),
        ([*RUN[:3], "load,wind", "--horizon", "6"], "one target that is a number"),
        (
            [*RUN[:3], "holiday", "--horizon", "6"],
            "'holiday' was read as labels: name one target, with --task",
        ),
    ],
)
def test_what_is_refused(arguments, message, capsys):
    assert main([*arguments, "--quiet"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "bug" not in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["2024-03-01T00,fair,0,1.5"], "'when' has one moment: give at least two rows"),
        (["2024-03-01T00,fair,0,1.5", "2024-03-01T00,,0,2.5"], "'when' has the same moment in all rows"),
        (["2024-03-01T00,fair,0,1.5", ",,0,2.5", "2024-03-01T02,,0,2.7"], "row 1 of these has no time"),
    ],
)
def test_rows_of_which_no_steps_can_be_made(rows, message, tmp_path, capsys):
    (tmp_path / "load.csv").write_text("\n".join(["when,holiday,wind,load", *rows]) + "\n")
    assert main([*RUN, "--task", "regression", "--quiet"]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert "bug" not in err


def test_what_was_left_out_is_said_and_what_nobody_knows_is_no_zero(tmp_path, capsys, series):
    lines = (tmp_path / "load.csv").read_text().splitlines()
    lines[9] = lines[9].rpartition(",")[0] + ","
    (tmp_path / "load.csv").write_text("\n".join(lines[:20]) + "\n")
    few = [word if word != "6h" else "48h" for word in RUN]
    assert main([*few, "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert "Too few rows to judge by" in told
    assert "1 row could not be read and was left out" in told
    assert "line 10, column 'load': '' is a missing value" in " ".join(told.split())
    assert "could not be read" in (tmp_path / "out/report.html").read_text()
    first = json.loads((tmp_path / "out/summary.json").read_text())["by_horizon"][0]
    assert (first["targets"], first["prediction"]) == (0, None)


def test_a_series_that_does_not_move_is_forecast_as_well_as_trivially(tmp_path, capsys):
    start = np.datetime64("2024-03-01T00", "h")
    (tmp_path / "flat.csv").write_text("when,load\n" + "".join(f"{start + i},5\n" for i in range(60)))
    assert main(["run", "flat.csv", "--target", "load", "--horizon", "6h", "--effort", "low"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "error of 0, as much as that of the same place one season before (0)" in told
