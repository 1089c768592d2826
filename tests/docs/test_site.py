"""The site: every block of code runs, every link resolves, every picture has its script."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import types

import matplotlib
import pages
import pytest
from docutils import nodes
from matplotlib.figure import Figure
from pages import DOCS, ROOT

import effort
from kons import errors
from kons.cli.app import app
from kons.report import drawing
from serve.running import Running

# Languages of blocks that are not code of ours.
NOT_CODE = {"bibtex", "dockerfile", "ini", "math", "{toctree}"}
API = DOCS / "api"
# One report of a real run is drawn in full, by the first block of its page; what is in it: tests/report.
DRAWN = ("report", pages.blocks(DOCS / "report.md")[0].line)


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(DOCS / "examples"))
        return importlib.import_module("plant").write(tmp_path_factory.mktemp("plant") / "plant.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch, plant):
    """A folder to run a page in, with the file that the pages read."""
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr(errors, "told", set())  # notices of a page are told again elsewhere
    shutil.copy(plant, tmp_path)
    return tmp_path


def shortened(block):
    """Runs that leave nothing, and of which nothing is shown on the page: their first rows will do."""
    if block.language != "sh" or block.output is not None or effort.is_soak():
        return block
    lines = [
        f"{line} --rows 120" if "kons run " in line and not re.search("--(out|rows) ", line) else line
        for line in block.code.splitlines()
    ]
    return block._replace(code="\n".join(lines))


@pytest.fixture
def service(tmp_path, monkeypatch):
    with Running(tmp_path / "houses", "--target", "price", "--task", "regression") as running:
        monkeypatch.setenv("KONS_URL", running.url)
        yield


@pytest.fixture(autouse=True)
def own_style():
    """What a page asks of matplotlib is not asked in the next test."""
    with matplotlib.rc_context():
        yield


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(page, folder, caplog, monkeypatch, request):
    caplog.set_level(logging.CRITICAL, logger="kons")
    # A module of its own: what a page defines can then be pickled, as in a script.
    module = types.ModuleType("a_page")
    monkeypatch.setitem(sys.modules, "a_page", module)
    if page.stem == "serving":  # its client asks a service
        request.getfixturevalue("service")
    if page.stem == "gallery" and not effort.is_soak():  # its code runs, and draws; files took half the time
        monkeypatch.setattr(Figure, "savefig", lambda figure, name: figure.draw_without_rendering())
    for block in pages.blocks(page):
        where = f"{page.name}, line {block.line}"
        assert block.language in {"python", "sh", *NOT_CODE}, f"{where}: what is {block.language!r}?"
        if block.language in NOT_CODE:
            continue
        if not effort.is_soak() and (page.stem, block.line) != DRAWN:
            monkeypatch.setattr(drawing.Picture, "svg", lambda picture: "<svg></svg>")
        printed = pages.run(shortened(block), page, vars(module))
        if block.output is not None:
            assert pages.same_output(block.output, printed), f"{where} printed\n{printed}"


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.stem)
def test_commands_between_the_lines_exist(page):
    """What cannot be run in a test, because it installs, tests or takes long, must at least be there."""
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for command in pages.commands_of_prose(page):
        words = command.split()
        if words[0] == "make":
            assert words[1] in targets, command
        elif words[:4] == ["python", "-m", "pip", "install"]:
            extras = re.search(r"\[(.*)\]", command)
            names = extras.group(1).split(",") if extras else []
            assert set(names) <= set(project["optional-dependencies"]), command
        elif words[:2] == ["python", "-m"]:
            path = words[2].replace(".", "/")
            assert any((ROOT / found).exists() for found in (path, f"src/{path}.py")), command
        elif words[0] == "kons" and "spark" in words:  # which is not installed here; its options are
            app.parse_args(shlex.split(command)[1:], exit_on_error=False, print_error=False)
        else:
            assert words[0] == "python", f"{command}: kons commands belong in a block of sh, where they run"
            assert (ROOT / words[1]).is_file(), command


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.stem)
def test_links_resolve(page):
    for link in pages.links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in pages.anchors(target), f"{page.name} links to {link}"


def test_formulas_can_be_drawn_by_a_browser(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    translated = importlib.import_module("mathml").translated
    found = [tex for page in pages.pages() for tex in pages.formulas(page)]
    assert len(found) > 30
    for tex in found:
        markup = translated(nodes.math(tex, tex), block=False)
        assert markup.startswith("<math")
        assert "munderover" not in markup or "\\sum" in tex  # indices of accented letters are beside them


def test_every_page_is_in_a_table_of_contents():
    listed: list[str] = []
    for index in [*DOCS.glob("*.md"), API / "index.rst"]:
        text = index.read_text(encoding="utf-8")
        trees = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL)
        trees += re.findall(r"\.\. toctree::\n((?:\s*\n|   .*\n)+)", text)
        names = [line.strip() for tree in trees for line in tree.splitlines()]
        listed += [(index.parent / name).relative_to(DOCS).as_posix() for name in names if name[:1].isalnum()]
    there = {
        page.relative_to(DOCS).with_suffix("").as_posix() for page in [*DOCS.glob("*.md"), *API.glob("*.rst")]
    }
    assert sorted(listed) == sorted(there - {"index"})


PUBLIC = sorted(page.stem for page in API.glob("*.rst") if page.stem != "index")


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_has_every_public_name_once(module):
    text = (API / f"{module}.rst").read_text(encoding="utf-8")
    names = re.findall(r"^\.\. auto(?:class|function|data):: (\w+)$", text, flags=re.MULTILINE)
    assert sorted(names) == sorted(importlib.import_module(f"kons.{module}").__all__)


def test_the_reference_has_every_public_module():
    # In a process of its own: here, modules that are not public may have been imported.
    names = [sys.executable, "-c", "import kons; print(*dir(kons))"]
    shown = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()
    modules = {name for name in shown if importlib.util.find_spec(f"kons.{name}")}
    assert "learners" in modules
    assert modules | {"river", "runs", "sklearn"} <= set(PUBLIC)


def pictures():
    return sorted((DOCS / "pictures").iterdir())


@pytest.mark.parametrize("picture", pictures(), ids=lambda picture: picture.name)
def test_every_picture_has_its_script_and_is_shown(picture):
    scripts = [*(DOCS / "examples").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    drawn_by = [script for script in scripts if f'"{picture.name}"' in script.read_text(encoding="utf-8")]
    assert len(drawn_by) == 1, f"{picture.name} is drawn by {[script.name for script in drawn_by]}"
    texts = [page.read_text(encoding="utf-8") for page in [*pages.pages(), ROOT / "README.md"]]
    assert any(f"pictures/{picture.name}" in text for text in texts)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("loss 0.5\n", "loss 0.6\n", True),
        ("loss 0.5\n", "loss 1.1\n", False),
        ("loss 0.5\n", "gain 0.5\n", False),
        ("loss 0.5\n", "loss 0.5 more\n", False),
        ("loss 0.5\n...\n", "loss 0.5 more\n", True),
        ("at 5 microseconds\n", "at 500 microseconds\n", True),
        ("at 5 us\n", "at 1.05e+03 us\n", True),  # on a slow machine
        ("name  us/row  loss\na        1.0  2.0\n", "name  us/row  loss\na        9.0  2.1\n", True),
        ("name  us/row  loss\na        1.0  2.0\n", "name  us/row  loss\na        1.0  9.0\n", False),
    ],
)
def test_output_is_compared_as_said(expected, printed, same):
    assert pages.same_output(expected, printed) is same


@pytest.mark.parametrize("name", ["evaluation_curve", "forgetting"])
def test_pictures_of_the_guide_are_drawn(name, folder, capsys):
    importlib.import_module(name).main(rows=800, file=folder / "picture.svg")
    assert (folder / "picture.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert "mean squared error" in capsys.readouterr().out
