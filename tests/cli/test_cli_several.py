"""``--target a,b``: the commands on a file of several targets."""

import json

import numpy as np
import pytest

from kons.cli import main
from kons.runs import Run, Settings
from kons.runs.run import Stopped

ROWS = 900
TWO = ["run", "plant.csv", "--target", "power,heat", "--learner", "embedded", "--set", "warmup=40", "--quiet"]


@pytest.fixture(autouse=True)
def plant(tmp_path):
    """Two targets, a number and a text; some targets are missing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=ROWS)
    kind = np.where(np.arange(ROWS) % 3, "a", "b")
    power, heat = 10 * np.sin(3 * x) + (kind == "a"), 1000 + 50 * x * x
    lines = [f"{x[i]:.4f},{kind[i]},{power[i]:.4f},{heat[i]:.3f}" for i in range(ROWS)]
    lines[100] = lines[100].rpartition(",")[0] + ","
    (tmp_path / "plant.csv").write_text("\n".join(["x,kind,power,heat", *lines]) + "\n")


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text())


def table_of(path):
    return np.genfromtxt(path, delimiter=",", names=True)


def test_each_target_is_as_if_it_were_alone(tmp_path, capsys):
    assert main([*TWO, "--out", "two"]) == 0
    out = capsys.readouterr().out
    assert "power" in out
    assert "best trivial" in out
    together, found = summary_of(tmp_path / "two"), table_of("two/predictions.csv")
    assert together["skipped"] == {"missing target": 1}
    assert [one["name"] for one in together["targets"]] == ["power", "heat"]
    text = (tmp_path / "plant.csv").read_text().splitlines()
    (tmp_path / "plant.csv").write_text("\n".join(line for line in text if not line.endswith(",")) + "\n")
    for name, other in (("power", "heat"), ("heat", "power")):
        told = {"learner": "embedded", "parameters": {"warmup": 40}, "reading": {"drop": [other]}}
        Run.start(Settings("plant.csv", name, **told), tmp_path / name, quiet=True).go()
        one = table_of(f"{name}/predictions.csv")
        for column in ("target", "prediction", "lower", "upper"):
            np.testing.assert_allclose(found[f"{column}_{name}"], one[column], rtol=0, atol=1e-7)
        mine = next(each for each in together["targets"] if each["name"] == name)
        assert mine["metrics"]["rmse"] == pytest.approx(
            summary_of(tmp_path / name)["metrics"]["rmse"], rel=1e-6
        )
    capsys.readouterr()
    report = (tmp_path / "two" / "report.html").read_text()
    assert "Each target by itself" in report
    assert "The last rows of heat" in report
    for command in (["predict", "two", "plant.csv", "--quiet"], ["score", "two", "plant.csv", "--json"]):
        assert main(command) == 0
    predicted, scored = capsys.readouterr().out.split("{", 1)
    assert predicted.startswith("line,prediction_power,prediction_heat\n")
    assert [one["target"] for one in json.loads("{" + scored)["targets"]] == ["power", "heat"]
    (tmp_path / "few.csv").write_text("\n".join(text[:4]) + "\n")
    assert (
        main(["predict", "two", "few.csv", "--level", "0.9", "--explain", "--quiet", "--out", "why.csv"]) == 0
    )
    why = table_of("why.csv")
    for name in ("power", "heat"):
        assert (why[f"lower_{name}"] < why[f"prediction_{name}"]).all()
        assert (why[f"prediction_{name}"] < why[f"upper_{name}"]).all()
        reasons = sum(why[f"{part}_{name}"] for part in ("typical", "because_x", "because_kind"))
        np.testing.assert_allclose(reasons, why[f"prediction_{name}"], rtol=1e-9)
    head, _, *rest = text
    (tmp_path / "few.csv").write_text(f"{head},lower_heat\n" + "".join(f"{line},-5\n" for line in rest[:3]))
    assert main(["predict", "two", "few.csv", "--level", "0.9", "--id", "lower_heat", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("line,id_lower_heat,prediction_power,")
    assert main(["inspect", "two"]) == 0
    assert "'power, heat', regression" in capsys.readouterr().out


def test_resumed_as_if_never_stopped(tmp_path):
    settings = Settings("plant.csv", "power,heat", learner="embedded", parameters={"warmup": 40}, delay=3)
    Run.start(settings, tmp_path / "whole", quiet=True).go()
    with pytest.raises(Stopped):
        Run.start(settings, tmp_path / "cut", quiet=True).go(stop=lambda: True)
    Run.resume(tmp_path / "cut").go()
    assert (tmp_path / "cut/predictions.csv").read_bytes() == (
        tmp_path / "whole/predictions.csv"
    ).read_bytes()
    assert summary_of(tmp_path / "cut")["targets"] == summary_of(tmp_path / "whole")["targets"]


def test_compared(capsys):
    assert main(["compare", *TWO[1:4], "--learners", "embedded,pkawv", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["targets"] == ["power", "heat"]
    for learner in found["learners"]:
        assert sum(learner["target_losses"]) == pytest.approx(learner["loss"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "plant.csv", "--target", "power,kind"], "column 'kind' holds text"),
        (["run", "plant.csv", "--target", "power,power"], "name each column once"),
        (["run", "plant.csv", "--target", "power,wind"], "no column 'wind'"),
        ([*TWO[:4], "--task", "classification"], "labels are learned one at a time"),
        ([*TWO[:4], "--lag", "target:1"], "call one by its name"),
        ([*TWO[:4], "--drop", "heat"], "'heat' is the target"),
        ([*TWO[:4], "--learner", "norma"], "learns one target a row"),
        (["certify", *TWO[1:4]], "expected one column"),
        (["compare", *TWO[1:4], "--learners", "embedded,ridge_batch"], "no learner 'ridge_batch'"),
        (["compare", *TWO[1:4], "--learners", "embedded,lightgbm"], "are compared on one target"),
    ],
)
def test_what_is_refused(arguments, message, capsys):
    assert main([*arguments, *(["--quiet"] if arguments[0] != "certify" else [])]) == 2
    assert message in capsys.readouterr().err


def test_a_comma_in_a_name(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text('x,"a,b"\n' + "".join(f"{i % 7},{i % 5}\n" for i in range(60)))
    assert main(["run", "odd.csv", "--target", "a,b", "--learner", "embedded", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] is None
