"""The notebooks run from the first cell to the last, and hold nothing of the machine that wrote them."""

from __future__ import annotations

import json
import logging
import types

import matplotlib
import pytest
from pages import DOCS

import effort

NOTEBOOKS = sorted(path.stem for path in (DOCS / "notebooks").glob("*.ipynb"))


def cells(name):
    return json.loads((DOCS / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
@pytest.mark.parametrize("name", effort.some(NOTEBOOKS, "researcher"))  # the others take two and five seconds
def test_a_notebook_runs(name, tmp_path, monkeypatch, caplog, capsys):
    caplog.set_level(logging.CRITICAL, logger="kons")
    monkeypatch.chdir(tmp_path)
    with matplotlib.rc_context({"backend": "agg"}):
        namespace = vars(types.ModuleType(name))
        for cell in cells(name):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
        matplotlib.pyplot.close("all")
    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_as_it_was_written(name):
    code = [cell for cell in cells(name) if cell["cell_type"] == "code"]
    assert len(code) >= 4
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert f"](notebooks/{name}.ipynb)" in page
