"""One page for any folder: whole, self-contained, the same each time, and safe with any name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import effort
from kons.errors import FileError, KonsError, MissingExtraError
from kons.report import drawing, pictures, render, write_report
from kons.report import run as sections
from kons.report.history import Shares
from kons.report.thinning import Band
from report import folders
from report.reading import Page

EXPERTS = [
    "linear",
    "gaussian 0.5",
    "gaussian 1.0",
    "lags 1.0",
    "lags 0.5",
    "relevance 600",
    "r 1200",
    "r 2400",
]
EVIL = """<script>alert(1)</script>&amp;"'$x_1$]]>"""

WRITERS = {
    "regression": folders.regression,
    "auto": lambda path: folders.regression(path, experts=EXPERTS),
    "classification": folders.classification,
    "tiny": folders.tiny,
    "bare": folders.bare,
    "comparison": folders.comparison,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each kind of page, rendered once when first asked for."""
    made = {}

    def page(kind):
        if kind not in made:
            path = tmp_path_factory.mktemp(kind)
            WRITERS[kind](path)
            made[kind] = path, render(path)
        return made[kind]

    return page


@pytest.fixture
def undrawn(monkeypatch):
    """No pictures: for what is about words, and quick."""
    monkeypatch.setattr(drawing.Picture, "svg", lambda self: "")


@pytest.fixture
def axes(monkeypatch):
    """By the words that describe them, the axes of each picture of a page: for what is drawn on them."""
    found = {}

    def keep(self):
        (found[self.alt],) = self.figure.axes
        return ""

    monkeypatch.setattr(drawing.Picture, "svg", keep)
    return found


@pytest.mark.parametrize("kind", WRITERS)
def test_a_page_is_whole_and_fetches_nothing(pages, kind):
    _, text = pages(kind)
    page = Page(text)
    assert page.fetched == []
    assert "http" not in text.replace("http-equiv", "")
    assert len(text.encode()) < 500_000
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert ("html", "lang", "en") in page.attributes
    assert any(name == "content" and "default-src 'none'" in value for _, name, value in page.attributes)


@pytest.mark.parametrize("kind", WRITERS)
def test_pictures_follow_the_page_and_say_what_they_show(pages, kind):
    _, text = pages(kind)
    drawings = re.findall(r"<svg viewBox=[^>]*role=\"img\".*?</svg>", text, flags=re.DOTALL)
    assert drawings
    for found in drawings:
        assert not re.search(r"#[0-9a-fA-F]{6}\b(?!-)", re.sub(r"(href=\"|url\()#[\w-]+", "", found))
        assert "var(--" in found
        assert 'aria-label="' in found
        assert "DejaVu" not in found  # the page's own font
        assert "fill: none" in re.findall(r"<path[^>]*>", found)[0]  # the page shows through behind it
    assert text.count("<figure>") == len(drawings)  # each is drawn once
    css = Page(text).text("style")
    used = set(re.findall(r"var\((--\w+)\)", text))
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    dark = dark.split("* {")[0]
    assert all(f"{name}:" in light and f"{name}:" in dark for name in used)
    assert all(f"--{name}: {colour};" in light for name, colour in drawing.COLOURS.items())


def test_the_page_of_a_run_holds_all_that_a_reader_asks_for(pages):
    page = Page(pages("auto")[1])
    text = page.text()
    for heading in ("How good it is", "Worth knowing", "Predicted against actual", "What it keeps",
                    "What was new", "What it leans on", "Certificate", "How to reproduce it"):  # fmt: skip
        assert heading in page.text("h2")
    assert page.text("h1").startswith("Predicts price with a mean squared error of")
    for words in ("last value again", "90 % interval", "at most 200", "log det", "Most novel rows",
                  "Columns that matter", "rooms 0.8", "gaussian 0.5", "all others",
                  "kons certify data/houses.csv --target price --rows 10000",
                  "kons run data/houses.csv --target price --seed 7 --out runs/first",
                  "column 'date' became hour", "numba", "2026-01-05T10:12:00+00:00", "9f2c1a"):  # fmt: skip
        assert words in text, words


def test_the_lists_name_the_rows(pages):
    path, text = pages("regression")
    trace = [np.load(file) for file in sorted((path / "trace").iterdir())]
    loss = np.concatenate([part["loss"] for part in trace])
    cells = re.findall(r"<td class=\"n\">([\d,.]+)</td>", text)
    worst = int(np.argmax(loss))
    assert f"{worst:,}" in cells
    assert f"{loss[worst]:,.0f}" in cells


def test_a_worse_run_says_so_and_what_to_try(tmp_path, undrawn):
    folders.regression(tmp_path, rows=1000, worse=True)
    page = Page(render(tmp_path))
    assert "times as much as the best trivial predictor" in page.text("h1")
    assert "the trivial predictor is the better choice" in page.text()
    assert "What to try" in page.text("h2")


def test_what_is_missing_is_said(pages):
    text = Page(pages("bare")[1]).text()
    assert "The trace has no column size" in text
    assert "Not measured: --learner embedded" in text
    assert "does not hold the command line" in text
    assert "No interval" in text
    assert "relevances are learned by --learner auto only" in text


def test_who_led_stands_below_the_shares(pages):
    """A strip in the colours of the stack, and a mark that says what it is."""
    _, text = pages("auto")
    start = text.index("Experts over time")
    figure = text[start : text.index("</figure>", start)]
    for name in EXPERTS[:3]:
        assert name in figure
    assert figure.count(">led<") == 1
    keys = figure[: figure.index('class="scroll"')]
    assert keys.count('class="key"') <= 8
    assert "all others" in keys
    assert "share of the weight" in figure


def test_the_shares_begin_at_nothing_where_nobody_led():
    rows = np.arange(4.0)
    found = Shares(rows, np.full((4, 2), 0.5), "weight")
    lowest, highest = pictures.shares(found, ["a", "b"]).figure.axes[0].get_ylim()
    assert (lowest, highest) == (0.0, 1.0)
    axes = pictures.shares(found, ["a", "b"], (rows, np.array([0.0, 0.0, 1.0, 1.0]))).figure.axes[0]
    assert axes.get_ylim()[0] < axes.get_yticks()[0] < 0.0  # there is room for the strip


def test_the_key_names_the_listed_rows_and_the_limit_where_there_are_any(undrawn):
    def labels(picture):
        return [key.label for key in picture.keys]

    rows = np.arange(4.0)
    band = Band(rows, rows, rows, rows)
    assert labels(pictures.novelty(band, [{"row": 3.0, "novelty": 3.0}])) == ["novelty", "listed below"]
    assert labels(pictures.novelty(band, [])) == ["novelty"]
    assert labels(pictures.size((rows, rows), 1200)) == ["points kept", "at most 1,200"]
    assert labels(pictures.size((rows, rows), None)) == ["points kept"]


def test_the_learner_is_called_by_its_name_beside_the_baselines(tmp_path, undrawn):
    folders.tiny(tmp_path / "named")
    assert "embedded (this run)" in Page(render(tmp_path / "named")).text("td")
    folders.bare(tmp_path / "nameless")
    assert "learner (this run)" in Page(render(tmp_path / "nameless")).text("td")


def test_the_first_rows_do_not_squeeze_a_curve_of_losses():
    rows = np.arange(1000.0)
    values = np.where(rows < 5, 1e6, 3.0 + np.sin(rows))
    picture = pictures.losses(
        {"learner": (rows, values)}, {"learner": "kons"}, "loss", "over all rows", part=False
    )
    low, high = picture.figure.axes[0].get_ylim()
    assert low == 0.0
    assert 4.0 < high < 5.0


MARKS = {
    "whole": ([0.0, 930.0], ["0", "200", "400", "600", "800"]),
    "fractions": ([-1.2, 1.1], ["\N{MINUS SIGN}1.0", "\N{MINUS SIGN}0.5", "0.0", "0.5", "1.0"]),
    "millions": ([0.0, 2.3e6], ["0", "500k", "1M", "1.5M", "2M"]),
    "far off": ([293.14, 293.18], ["293.14", "293.15", "293.16", "293.17", "293.18"]),
    "small": ([0.0, 5e-6], ["0", *(f"{i}e\N{MINUS SIGN}06" for i in range(1, 6))]),
}


@pytest.mark.parametrize("kind", MARKS)
def test_marks_of_an_axis_are_round_and_can_be_told_apart(kind):
    values, expected = MARKS[kind]
    axes = drawing.axes(200)
    drawing.value_axis(axes, [np.array(values)])
    axes.figure.draw_without_rendering()
    low, high = axes.get_ylim()
    marks = axes.get_yticklabels()
    assert [mark.get_text() for mark in marks if low <= mark.get_position()[1] <= high] == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((0.5, 30.0), [0.5, 1, 2, 5, 10, 20]), ((1e-3, 1e3), [10.0**e for e in range(-3, 4)])],
)
def test_marks_of_a_logarithmic_axis(ends, expected):
    axes = drawing.axes(200)
    drawing.log_axis(axes, "y", *ends)
    assert [mark for mark in axes.get_yticks() if ends[0] <= mark <= ends[1]] == pytest.approx(expected)


def test_retired_experts_are_counted_not_listed(tmp_path, undrawn):
    folders.regression(tmp_path, rows=300, experts=["a", "b", "gone"])
    summary = json.loads((tmp_path / "summary.json").read_text())
    summary["experts"][2]["share"] = 0.0
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    text = Page(render(tmp_path)).text()
    after = text[text.index("Experts at the end") :]
    assert "1 expert had been retired." in after
    assert "gone" not in after


def test_three_rows_are_not_judged(pages):
    page = Page(pages("tiny")[1])
    assert "3 rows are too few to judge by." in page.text()
    assert "3 rows are too few for a windowed curve" in page.text()
    assert ("header", "class", "unknown") in page.attributes


def test_no_row_at_all(tmp_path):
    folders.write_documents(tmp_path, folders.run_document("y", ["x"], "empty.csv"), {"rows": 0})
    (tmp_path / "trace").mkdir()
    assert "No row was predicted" in Page(render(tmp_path)).text("h1")


def test_a_classification_page(pages):
    text = Page(pages("classification")[1]).text()
    assert "Predicts direction with an error rate of" in text
    assert "most frequent label" in text
    assert "Which label for which" in text
    assert re.search(r"The last 200 rows: \d+ right", text)


def test_the_comparison_is_sorted_and_knows_its_frontier(pages):
    page = Page(pages("comparison")[1])
    text = page.text()
    assert page.text("h1").startswith("auto predicts price best: mean squared error 9.1, 56 % less")
    lines = ("1 auto * 9.10", "2 embedded * 12.30", "3 nons_ald 15.80", "4 pros_n_kons 16.00",
             "5 sketched 19.50", "baseline: online linear 20.90", "baseline: mean so far 88.00")  # fmt: skip
    order = [text.index(words) for words in lines]
    assert order == sorted(order)
    assert "kons compare data/houses.csv" in text


def test_points_on_the_frontier_are_those_no_other_beats(tmp_path, monkeypatch):
    seen = {}

    def keep(points, trivial, name, part):
        seen.update({point.name: point.best for point in points}, trivial=trivial)

    monkeypatch.setattr(pictures, "frontier", keep)
    folders.comparison(tmp_path)
    render(tmp_path)
    assert seen.pop("trivial") == ("online linear", 20.9)
    assert {name for name, best in seen.items() if best} == {"1 auto", "2 embedded"}


def test_the_pictures_of_a_comparison_hold_each_learner(tmp_path, axes):
    summary = folders.comparison(tmp_path)
    render(tmp_path)
    (curves,) = (found for alt, found in axes.items() if alt.startswith("Running"))
    drawn = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in curves.lines]
    expected = [entry["curve"] for entry in summary["learners"]]
    assert sorted(drawn) == sorted((curve["row"], curve["loss"]) for curve in expected)
    assert [line.get_linewidth() > 2.0 for line in curves.lines] == [False] * (len(drawn) - 1) + [True]
    (frontier,) = (found for alt, found in axes.items() if alt.startswith("Scatter"))
    assert {text.get_text() for text in frontier.texts} >= {"1 auto", "2 embedded", "5 sketched"}


def test_many_learners_are_not_all_drawn(tmp_path, undrawn):
    folders.comparison(tmp_path, names=[f"learner {i}" for i in range(10)])
    assert "The best 8 of 10." in Page(render(tmp_path)).text()


# --- names from somebody's data ---


def test_names_cannot_leave_their_place(tmp_path):
    folders.regression(
        tmp_path / "a",
        rows=300,
        target=EVIL,
        features=[EVIL, "b"],
        experts=[EVIL, "\x00\u202e"],
        source=f"{EVIL}.csv",
    )
    page = Page(render(tmp_path / "a"))
    assert "script" not in page.tags
    for tag in ("title", "h1", "td", "th", "span"):  # in words, tables, bars and keys as it is
        assert EVIL in page.text(tag), tag
    assert EVIL[:10] in page.text("text")  # and, cut short, in the picture
    assert "\x00" not in page.text()

    folders.classification(tmp_path / "b", rows=300, classes=["<i>&", "'\"", "ナ"], target=EVIL)
    page = Page(render(tmp_path / "b"))
    assert "i" not in page.tags
    assert "<i>&" in page.text("text")
    assert "ナ" in page.text("text")

    folders.comparison(tmp_path / "c", names=[EVIL, "$a$", "<b>"], target="<u>")
    page = Page(render(tmp_path / "c"))
    assert not {"script", "b", "u"} & set(page.tags)
    assert "$a$" in page.text("text")
    assert EVIL in page.text("td")


# --- the same each time, small, and quick to import ---


def test_the_same_folder_gives_the_same_bytes(pages):
    path, text = pages("auto")
    code = "import sys; from kons.report import render; sys.stdout.buffer.write(render(sys.argv[1]).encode())"
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, path], capture_output=True, env=environment
    )
    assert done.stderr == b""
    assert done.stdout == text.encode()


def test_a_long_stream_makes_no_larger_page_and_keeps_its_spikes(tmp_path):
    rows = effort.amount(60_000, 400_000)
    columns = folders.regression(tmp_path, rows=rows)
    text = render(tmp_path)
    assert len(text.encode()) < 500_000
    found = re.search(r"aria-label=\"Novelty over rows.*?</svg>", text, flags=re.DOTALL)
    assert found
    spike = rows // 4
    assert columns["loss"][spike] > 10 * np.median(columns["loss"])
    assert f"{spike:,}" in Page(text).text("td")


def test_importing_the_report_imports_no_extra():
    code = "import sys, kons.report; print([m for m in ('matplotlib', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_a_missing_extra_says_how_to_install_it(tmp_path, monkeypatch, module):
    folders.tiny(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kons\[report\]'"):
        render(tmp_path)


def test_drawing_leaves_matplotlib_as_it_was(pages):
    import matplotlib

    before = dict(matplotlib.rcParams)
    pages("tiny")
    render(pages("tiny")[0])
    assert dict(matplotlib.rcParams) == before
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_the_report_is_written_whole_or_not_at_all(tmp_path, undrawn):
    folders.tiny(tmp_path)
    (tmp_path / "report.html").write_text("an older one")
    path = write_report(tmp_path)
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == render(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "run.json", "summary.json", "trace"]
    path.unlink()
    path.mkdir()
    (path / "in the way").touch()
    with pytest.raises(FileError, match=r"report\.html is of another kind"):
        write_report(tmp_path)
    assert not list(tmp_path.glob(".report*"))


# --- documents with holes and nonsense ---

ODD = [None, "text", float("nan"), [None, {}, 1], {"a": {"b": [1]}}]


@pytest.mark.parametrize("kind", effort.some(["regression", "classification", "comparison"], "comparison"))
def test_any_missing_or_odd_field_gives_a_page_or_a_clear_error(tmp_path, undrawn, kind):
    if kind == "comparison":
        folders.comparison(tmp_path)
    elif kind == "classification":
        folders.classification(tmp_path, rows=60)
    else:
        folders.regression(tmp_path, rows=60, experts=["a", "b"])
    for name in ("run.json", "summary.json"):
        whole = json.loads((tmp_path / name).read_text())
        for i, key in enumerate(whole):
            for odd in [ODD[(i + k) % len(ODD)] for k in range(effort.amount(1, len(ODD)))]:
                (tmp_path / name).write_text(json.dumps({**whole, key: odd}))
                try:
                    assert "</html>" in render(tmp_path)
                except KonsError as error:
                    assert name in str(error)  # noqa: PT017
        (tmp_path / name).write_text(json.dumps(whole))


EXTREMES = {
    "all unknown": lambda n: np.full(n, np.nan),
    "infinite": lambda n: np.where(np.arange(n) % 3, np.inf, 1.0),
    "huge": lambda n: np.full(n, 1e300),
    "tiny": lambda n: np.full(n, 1e-300),
    "zero": lambda n: np.zeros(n),
    "negative": lambda n: -np.arange(n, dtype=float),
    "far off": lambda n: 1e12 + np.arange(n) * 1e-3,
}


@effort.every_value(kind=effort.some(EXTREMES, "all unknown", "infinite", "tiny", "far off"), rows=[1, 150])
def test_any_numbers_can_be_drawn(tmp_path, kind, rows):
    values = EXTREMES[kind]
    columns = folders.regression(tmp_path, rows=rows, experts=["a", "b"])
    odd = {name: values(rows) for name in columns if name not in ("shares", "expert")}
    odd["shares"], odd["expert"] = values(rows)[:, None] * np.ones((1, 2)), columns["expert"]
    for path in (tmp_path / "trace").iterdir():
        path.unlink()
    folders.write_trace(tmp_path, odd, [])
    page = Page(render(tmp_path))
    undrawable = kind in ("all unknown", "huge") or (kind == "infinite" and rows > 1)
    assert ("is not a number that can be drawn" in page.text()) == undrawable
    assert "nan" not in " ".join(
        value for _, name, value in page.attributes if name in ("d", "x", "y", "transform")
    )


def test_the_sections_are_what_the_page_shows(tmp_path, undrawn):
    from kons.report.folder import read_folder

    folders.tiny(tmp_path)
    described = sections.describe_run(read_folder(tmp_path))
    assert [title for title, _ in described["sections"]] == [
        "How good it is", "Predicted against actual", "What it keeps", "What happened", "What was new",
        "What it leans on",
    ]  # fmt: skip
