"""A plain terminal of 80 columns, an empty folder to be in, and files to predict."""

import io
import json
import sys

import numpy as np
import pytest
from commands import told_in_one_line

from kons.cli import main
from kons.report import drawing

ROWS = 700


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def sketched_pictures(monkeypatch):
    """A page takes a moment; what its pictures show is looked at in tests/report."""
    monkeypatch.setattr(drawing.Picture, "svg", lambda picture: "<svg></svg>")


@pytest.fixture
def no_report(monkeypatch):
    """Without what draws it."""
    monkeypatch.setitem(sys.modules, "jinja2", None)


@pytest.fixture(scope="session")
def houses():
    """A table with numbers, text, a date and two kinds of targets, as text."""
    rng = np.random.default_rng(0)
    area, age = rng.gamma(4.0, 30.0, ROWS).round(2), rng.integers(0, 90, ROWS)
    town = rng.choice(["Ulm", "Bonn", "Kiel"], ROWS)
    price = (100.0 + 2.0 * area - age + 40.0 * (town == "Ulm") + rng.normal(0.0, 5.0, ROWS)).round(2)
    dear = np.where(price > np.median(price), "yes sir", "no sir")
    days = np.datetime64("2024-01-01T08:00") + np.arange(ROWS) * np.timedelta64(7, "h")
    rows = zip(area, age, town, days.astype(str), price, dear, strict=True)
    return "area,age,town,sold,price,dear\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def file(tmp_path, houses):
    path = tmp_path / "houses.csv"
    path.write_text(houses)
    return path


@pytest.fixture
def typed_in(monkeypatch):
    """Text on standard input."""

    def put(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


@pytest.fixture
def answer(capsys):
    """A command that must work: its JSON."""

    def ask(*arguments):
        assert main([*map(str, arguments), "--json", "--quiet"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return json.loads(out)

    return ask


@pytest.fixture
def said(capsys):
    """A command that must work: what it prints for people."""

    def ask(*arguments):
        assert main([*map(str, arguments)]) == 0
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert "\x1b" not in out
        return out

    return ask


@pytest.fixture
def refused(capsys):
    """A command that must fail: its one line, with nothing left behind."""

    return lambda *arguments, code: told_in_one_line(capsys, [*map(str, arguments), "--quiet"], code)
