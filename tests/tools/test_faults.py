"""The tool that puts faults into the sources, on a toy checkout."""

import ast
import json
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("coverage", reason="the extra dev has it")

from coverage import CoverageData

import kons
from tools import faults, trees
from tools.mutants import Mutant, draw, mutants_of, package_of
from tools.reach import Reach
from tools.references import COMPILERS, References

TOP = '''"""A toy."""

from typing import TYPE_CHECKING

__all__ = ["clip", "total"]

if TYPE_CHECKING:
    from fractions import Fraction

LIMIT = 10


def clip(value: "int | None" = 0, *, low=0) -> int:
    """At least 0."""
    if value < low:
        raise ValueError(f"{value + 1} is below " + str(low))
    return min(value, LIMIT)


def total(values):
    found = 0
    for i in range(len(values)):
        found += values[i]  # pragma: no mutate
    return found
'''

INNER = """from toy import clip


def both(a, b):
    if a is None and not b:
        return False
    return clip(a, low=0) * clip(b) == 1.5
"""

HEAD = 'def clip(value: "int | None" = 0, *, low=0) -> int:'
BODY = "    return min(value, LIMIT)"

TESTS = """from toy import clip


def test_clip():
    assert clip(3) == 3
"""

LOOPS = """from kons.compilation import compiled

STEP = 2


@compiled
def deep(x):
    return x + STEP


@compiled
def outer(x):
    return deep(x)
"""

USE = """from toy.loops import outer


def use(x):
    y = 2 * x
    return outer(y)


def idle():
    pass
"""


@pytest.fixture
def toy(tmp_path):
    root = tmp_path / "toy"
    for name, text in {
        "src/toy/__init__.py": TOP,
        "src/toy/inner/__init__.py": INNER,
        "tests/test_toy.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def mutant(before, after, line, definition="clip", **others):
    return Mutant(
        "src/toy/__init__.py", definition, line, 0, line.index(before), "by hand", before, after, **others
    )


CAUGHT = mutant("min", "max", "return min(value, LIMIT)")
EQUIVALENT = mutant("0", "00", "found = 0", "total")
GONE = mutant("min", "max", "return min(LIMIT, value)")


def test_every_operator_and_no_more():
    found = {
        (of.operator, of.line, of.before, of.after)
        for of in (*mutants_of("src/toy/__init__.py", TOP), *mutants_of("src/toy/inner/__init__.py", INNER))
    }
    head = HEAD
    either, last = "if a is None and not b:", "return clip(a, low=0) * clip(b) == 1.5"
    assert found == {
        ("constant", "LIMIT = 10", "10", "11"),
        ("constant", head, "0", "1"),
        ("comparison", "if value < low:", "<", "<="),
        ("condition", "if value < low:", "value < low", "not (value < low)"),
        ("return", "return min(value, LIMIT)", "min(value, LIMIT)", "None"),
        ("min/max", "return min(value, LIMIT)", "min", "max"),
        ("constant", "found = 0", "0", "1"),
        ("return", "return found", "found", "None"),
        ("condition", either, "a is None and not b", "not (a is None and not b)"),
        ("comparison", either, "is", "is not"),
        ("and/or", either, "and", "or"),
        ("not", either, "not ", ""),
        ("return", "return False", "False", "None"),
        ("constant", "return False", "False", "True"),
        ("return", last, last.removeprefix("return "), "None"),
        ("keyword", last, ", low=0", ""),
        ("constant", last, "0", "1"),
        ("arithmetic", last, "*", "/"),
        ("comparison", last, "==", "!="),
        ("constant", last, "1.5", "2.5"),
    }


def test_a_number_is_another_number_afterwards():
    found = mutants_of("src/toy/large.py", "LARGE, SMALL, LAST = 1e100, 1e-20, -1\n")
    assert [(of.before, of.after) for of in found] == [("1e100", "2e+100"), ("1e-20", "1.0"), ("1", "2")]


def test_a_seed_draws_the_same_and_every_package_has_its_share(toy):
    drawn = draw(toy, 7, 3, seed=1)
    assert drawn == draw(toy, 7, 3, seed=1)
    assert drawn != draw(toy, 7, 3, seed=2)
    assert len(drawn) == 7
    packages = [package_of(of.file) for of in drawn]
    assert set(packages) == {".", "inner"}
    assert min(map(packages.count, packages)) >= 3


def test_where_a_line_is_added_the_others_stay_drawn(toy):
    before = [draw(toy, 7, 3, seed) for seed in range(10)]
    (toy / "src/toy/inner/__init__.py").write_text("FIRST = 1\n" + INNER)
    for seed, drawn in enumerate(before):
        again = draw(toy, 7, 3, seed)
        assert len(again) == 7
        assert len(set(drawn) - set(again)) <= 1  # the one whose place the new line takes


def test_a_mutant_finds_its_line_again_wherever_it_stands():
    moved = "import math\n\n\n" + TOP
    assert CAUGHT.apply(moved) == moved.replace("min(", "max(")
    assert CAUGHT.place(moved) == CAUGHT.place(TOP) + 14
    assert GONE.apply(TOP) is None
    assert CAUGHT.apply(TOP.replace("def clip", "def cut")) is None


def test_caught_survived_and_gone_are_told_and_known_the_next_time(toy, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trees, "OPTIONS", ["-p", "no:hypothesispytest"])  # half of the time it takes
    line = TOP.splitlines().index("    found = 0") + 1
    (tmp_path / "list.json").write_text(json.dumps([asdict(of) for of in (CAUGHT, EQUIVALENT, GONE)]))
    arguments = [
        f"--suite={toy}",
        f"--mutants={tmp_path / 'list.json'}",
        f"--out={tmp_path / 'out'}",
        "--workers=2",
    ]
    assert faults.main(arguments) == 1  # half of them are caught
    out, err = capsys.readouterr()
    assert "2/2, 1 caught, 0 min left" in err
    assert [line.split() for line in out.splitlines()[2:4]] == [
        [".", "2", "1", "50"],
        ["all", "2", "1", "50"],
    ]
    assert f"survived: src/toy/__init__.py:{line} (total; by hand)\n    found = 0 -> found = 00\n" in out
    assert "could not be applied: src/toy/__init__.py, clip\n    return min(LIMIT, value)" in out
    assert (toy / "src/toy/__init__.py").read_text() == TOP
    monkeypatch.setattr(faults.Tree, "run", None)  # nothing is run again
    assert faults.main(arguments) == 1
    assert capsys.readouterr().out == out


def test_compiled_functions_are_reached_through_python(toy):
    (toy / "src/toy/loops.py").write_text(LOOPS)
    (toy / "src/toy/use.py").write_text(USE)
    found = References(toy)
    for line in (3, 8):  # the constant, the inner loop
        reached = found.reached_through("src/toy/loops.py", line)
        assert [(at.file, at.first, at.last) for at in reached] == [("src/toy/use.py", 5, 6)]
        assert found.stale("src/toy/loops.py", line) == ["src/toy/loops.py"]
    assert found.stale("src/toy/use.py", 5) is None


def test_defaults_are_reached_through_signatures(toy):
    """A test that looks at them need not call the function."""
    (toy / "tests/test_heads.py").write_text("from inspect import signature\n\nfrom toy import clip\n")
    found, (head, body) = References(toy), (TOP.splitlines().index(line) + 1 for line in (HEAD, BODY))
    assert found.tests_naming("src/toy/__init__.py", head) == {"tests/test_heads.py"}
    assert found.tests_naming("src/toy/__init__.py", body) == set()


def test_other_processes_are_reached_through_tests_of_the_module_s_name(toy, tmp_path):
    names = ["tests/test_toy.py", "tests/test_inner.py", "tests/test_other.py"]
    for name in names[1:]:
        (toy / name).write_text("import subprocess\n")
    home = tmp_path / "survey"
    home.mkdir()
    durations = {f"{name}::test_it": 1.0 for name in names}
    (home / "0.json").write_text(json.dumps({"durations": durations, "failed": [], "fixtures": {}}))
    seen = CoverageData(str(home / "0.coverage"))
    seen.set_context("tests/test_toy.py::test_it")
    seen.add_lines({str(toy / "src/toy/inner/__init__.py"): [5, 7]})
    seen.write()
    found = Reach(toy, home, References(toy)).tests("src/toy/inner/__init__.py", 7)
    assert found == ["tests/test_inner.py::test_it", "tests/test_toy.py::test_it"]


def test_whatever_compiles_a_loop_is_known():
    """Else a fault in it is looked for in machine code of before."""
    source, used = Path(kons.__file__).parent, set()
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "kons.compilation" not in text:
            continue
        tree = ast.parse(text)
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {alias.name for node in imports if node.module == "kons.compilation" for alias in node.names}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        used |= {
            of.id for each in functions for of in each.decorator_list if isinstance(of, ast.Name)
        } & names
    assert used == COMPILERS
