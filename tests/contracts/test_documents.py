"""The documents name things that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from kons.core.ledger import LEDGER

ROOT = Path(__file__).parents[2]


def names_in_notation() -> list[str]:
    rows = [
        line.split("|")
        for line in (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and "`" in line
    ]
    return [name for row in rows for cell in (row[3], row[5]) for name in re.findall(r"`([^`]+)`", cell)]


def resolve(path: str) -> object:
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[split:]:
            annotations = getattr(found, "__annotations__", {})
            found = annotations[attribute] if attribute in annotations else getattr(found, attribute)
        return found
    raise AssertionError(f"no module on the path of {path}")


def test_every_name_on_the_notation_page_exists() -> None:
    names = names_in_notation()
    assert len(names) > 50  # the page was read
    for name in names:
        if name.startswith("#"):
            assert name[1:] in LEDGER.names
            continue
        path, _, argument = name.rstrip(")").partition("(")
        found = resolve(path)
        if argument:
            assert argument in inspect.signature(found).parameters, name  # type: ignore[arg-type]


def named_tests(document: str) -> list[str]:
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    return re.findall(r"`(tests/[\w/]*test_\w+\.py(?:::\w+)?)`", text)


@pytest.mark.parametrize("reference", named_tests("departures.md") + named_tests("robustness.md"))
def test_every_test_named_on_a_page_exists(reference: str) -> None:
    path, _, function = reference.partition("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    assert f"def {function}" in source if function else "def test_" in source


def test_no_committed_text_names_a_folder_outside_the_project() -> None:
    suspicious = re.compile(r"\.\./\w|/home/\w|/Users/\w")
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("src/**/*.py"),
        ROOT / "Makefile",
    ]:
        assert not suspicious.search(path.read_text(encoding="utf-8")), path


def code_blocks_of_the_readme() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("code", code_blocks_of_the_readme())
def test_the_examples_of_the_readme_run(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_readme_is_one_screen_whose_links_and_figures_have_a_place() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text) < 6000
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (ROOT / link).is_file(), link
    table = text[text.index("| rivals |") : text.index("Variants of it")]
    told = (ROOT / "docs" / "reproducibility.md").read_text(encoding="utf-8")
    figures = re.findall(r"\d\.\d+", table)
    assert len(figures) > 10
    assert [figure for figure in figures if figure not in told] == []


def test_the_paper_cites_what_its_bibliography_has() -> None:
    text, entries = ((ROOT / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    head, body = text.split("---\n", 2)[1:]
    for needed in ("title:", "tags:", "authors:", "affiliations:", "date:", "bibliography: paper.bib"):
        assert re.search(f"^{needed}", head, re.MULTILINE), needed
    assert set(re.findall(r"@(\w+)", body)) == set(re.findall(r"^@\w+\{(\w+),$", entries, re.MULTILINE))
    assert {"Summary", "Statement of need", "References"} <= set(re.findall(r"^# (.+)$", body, re.MULTILINE))
    assert 250 < len(body.split()) < 1000  # what the journal asks for


def is_of_numbers(value: ast.expr) -> bool:
    """Whether an expression has numbers only: no names, calls or text."""
    return not any(
        isinstance(part, ast.Name | ast.Call) or isinstance(getattr(part, "value", None), str)
        for part in ast.walk(value)
    )


def test_every_constant_of_auto_stands_on_its_page_with_a_reason() -> None:
    """At most forty: a number that decides something is named, and says why it is this one."""
    page = (ROOT / "docs" / "auto.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)\.([A-Z_]+) = (.+?)` \| (.+?) \|$", page, flags=re.MULTILINE)
    on_page = {(module, name): ast.literal_eval(value) for module, name, value, _ in rows}
    in_sources = {}
    for path in (ROOT / "src" / "kons" / "learners" / "auto").glob("*.py"):
        module = importlib.import_module(f"kons.learners.auto.{path.stem}")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and is_of_numbers(node.value):
                names = [part.id for part in ast.walk(node.targets[0]) if isinstance(part, ast.Name)]
                in_sources |= {(path.stem, name): getattr(module, name) for name in names}
    assert on_page == in_sources
    assert len(in_sources) <= 40
