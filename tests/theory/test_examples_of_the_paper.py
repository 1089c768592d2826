"""The runs behind docs/theory.md, small: the facts that the page states, not its figures."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import effort
from kons import KONS, EmbeddedKONS, Gaussian, SketchedKONS, Squared
from kons.policies import Leverage
from kons.streams import alternating_labels
from kons.theory import certify, effective_dimension

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def example(monkeypatch):
    """Import a script of docs/examples by name, as if run from its folder."""
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    return importlib.import_module


def drawn(file):
    return file.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_regret_grows_slower_than_that_of_gradient_descent(example, tmp_path, capsys):
    growth = example("regret_growth")
    results = growth.main(rows=2400, seeds=effort.amount(1, 2), file=tmp_path / "growth.svg")
    exponent = example("showing").exponent
    assert drawn(tmp_path / "growth.svg")
    assert capsys.readouterr().out.count("Gaussian") == 3
    dimensions = [each["d_eff"][-1] for each in results]
    assert dimensions == sorted(dimensions)
    X, at = growth.coins(2400, 0)[0][:600], results[0]["t"].tolist().index(600)
    dense = effective_dimension(Gaussian(0.7), X, growth.RIDGE)
    assert results[0]["d_eff"][at] == pytest.approx(dense, rel=1e-6)
    # More dimensions, more regret.
    newton = [each["newton"][-1] for each in results]
    assert newton == sorted(newton)
    for each in results:
        slow, fast = (exponent(each["t"], values) for values in (each["newton"], each["root"]["regret"]))
        assert 0.15 < slow < 0.5
        assert fast > slow + 0.1
    assert results[0]["root"]["regret"][-1] > 2 * newton[0]


def test_exponent_and_share_are_those_of_known_curves(example):
    showing = example("showing")
    t = np.geomspace(10, 1000, 9)
    assert showing.exponent(t, 3 * t**0.5) == pytest.approx(0.5)
    assert showing.unexplained(t, 2 + 3 * np.log(t), np.log) == pytest.approx(0.0, abs=1e-12)
    assert showing.unexplained(t, t, np.log) > 0.1


def test_a_smaller_floor_saves_its_square_and_costs_less_than_its_inverse(example, tmp_path, capsys):
    result = example("sketch_cost").main(rows=800, seeds=2, file=tmp_path / "sketch.svg")
    assert drawn(tmp_path / "sketch.svg")
    assert "R_G" in capsys.readouterr().out
    exact, floors = result["exact"], result["floors"]
    assert floors[1.0]["regret"] == pytest.approx(exact["regret"], rel=1e-6)
    assert floors[1.0]["kept"] == exact["kept"] == 800
    for name in ("kept", "work"):
        values = [each[name] for each in floors.values()]
        assert values == sorted(values, reverse=True)
    assert floors[0.3]["work"] / exact["work"] == pytest.approx(0.09, rel=0.35)
    for floor in (0.3, 0.1, 0.03, 0.01):
        assert 1.0 < floors[floor]["gain"] / exact["gain"] < 1.0 / floor
        assert 1.0 < floors[floor]["regret"] / exact["regret"] < 1.0 / floor


def test_the_two_ends_of_leverage_are_exact(example, capsys):
    for each in example("leverage_of_points").main(rows=60):
        assert each["leverage"] == pytest.approx(each["closed"], rel=1e-10)
        assert each["dimension"] == pytest.approx(each["closed_dimension"], rel=1e-9)
    assert capsys.readouterr().out.count("repeated") == 3


def test_the_counter_example(example, tmp_path, capsys):
    results = example("alternating_labels").main(rows=1600, seeds=4, file=tmp_path / "alternating.svg")
    assert drawn(tmp_path / "alternating.svg")
    assert "NO" not in capsys.readouterr().out
    first, last = ({name: over[i] for name, over in results.items()} for i in (0, -1))
    exact, sketch, weighted, span = last.values()
    # Exact and span: log T, without drift; the span with one point.
    assert exact["kept"] == 1600
    assert span["kept"] == 1
    assert span["regret"] == pytest.approx(exact["regret"], rel=1e-6)
    for name in ("exact KONS", "EmbeddedKONS"):
        steps = np.diff([each["gain"] for each in results[name]])
        np.testing.assert_allclose(steps, steps[-1], rtol=0.1)  # each doubling adds the same
        assert last[name]["largest_drift"] == pytest.approx(0.0, abs=1e-9)
    # Sketch: few points, no drift, a gain that is no logarithm.
    assert sketch["kept"] < 40
    assert sketch["largest_drift"] <= 1e-9
    assert sketch["gain"] > 5 * first["Sketched-KONS"]["gain"]
    # Weighted: few points and a small gain, bought with a drift that some f makes large.
    assert weighted["kept"] < 40
    assert weighted["gain"] < 2 * exact["gain"]
    assert weighted["largest_drift"] > 5.0 > weighted["drift"]


@pytest.mark.parametrize(
    "learner",
    [
        KONS(Gaussian(), Squared()),
        SketchedKONS(Gaussian(), Squared(), policy=Leverage(), seed=1),
        SketchedKONS(Gaussian(), Squared(), policy=Leverage(), weighted=True, seed=1),
        EmbeddedKONS(Gaussian(), Squared()),
    ],
    ids=["exact", "sketched", "weighted", "embedded"],
)
def test_the_account_of_the_counter_example_is_the_certificate(example, learner):
    certificate = certify(learner, *alternating_labels(200))
    account = example("alternating_labels").account(certificate.trace)
    for name in ("regret", "gain_term", "drift_term"):
        assert account[name.removesuffix("_term")] == pytest.approx(getattr(certificate, name), abs=1e-6)
    assert certificate.holds
    assert certificate.span_term == pytest.approx(0.0, abs=1e-9)


def test_stopping_saves_rows_and_costs_little_with_the_hessian(example, tmp_path, capsys):
    results = example("batch_stop").main(rows=200, file=tmp_path / "batch.svg")
    assert drawn(tmp_path / "batch.svg")
    assert "hessian" in capsys.readouterr().out
    for curvature in ("gradient", "hessian"):
        of = [each for each in results if each["curvature"] == curvature]
        learned = [each["fit"].rows_learned for each in of]
        assert learned == sorted(learned)
        assert learned[0] < learned[-1] == 8 * 200
        assert all(each["size"] <= each["fit"].rows_learned for each in of)
        assert of[0]["cost"] > of[-1]["cost"] - 1e-9
    assert max(each["cost"] for each in results if each["curvature"] == "hessian") < 0.005


def code_blocks():
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("code", code_blocks())
def test_the_code_on_the_page_runs(code, capsys):
    exec(compile(code, "theory.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_every_script_and_picture_on_the_page_exists():
    text = (DOCS / "theory.md").read_text(encoding="utf-8")
    named = re.findall(r"docs/(examples/\w+\.py)|\((pictures/\w+\.svg)\)", text)
    assert len(named) >= 9
    for script, image in named:
        assert (DOCS / (script or image)).exists()
