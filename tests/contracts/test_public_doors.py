"""The tests ask through public doors, so that what is behind these can be written anew."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

# Names that begin with an underscore and are public all the same, or not ours.
ALLOWED = {
    "_repr_html_": "a notebook asks every object for it",
    "_replace": "documented of named tuples",
    "_get_params": "River's name for what each of its models answers",
    "_unit_test_params": "the same",
    "_unit_test_skips": "the same",
    "_exit": "the standard library's: a forked child must not return",
    "_locator_classes": "Numba's, for a process that finds no place for its cache",
}

PRIVATE = re.compile(r"_[A-Za-z]\w*(?<!__)")
IN_TEXT = re.compile(r"(?<=[\w)\]])\.(_[A-Za-z]\w*)(?<!__)")  # programs, and places to patch
BY_NAME = {"getattr", "setattr", "delattr", "hasattr", "object", "attrgetter", "methodcaller"}


def private_names(source: str) -> Iterator[tuple[int, str]]:
    """Lines on which a private name is asked of something else than a class of the same file."""
    nodes = list(ast.walk(ast.parse(source)))
    own = set(_defined(nodes))
    for node in nodes:
        if isinstance(node, ast.Attribute) and not (_is_self(node.value) and node.attr in own):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names] + (node.module or "").split(".")
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = IN_TEXT.findall(node.value)
        elif isinstance(node, ast.Call) and _called(node.func) in BY_NAME:
            names = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        else:
            continue
        yield from ((node.lineno, name) for name in names if PRIVATE.fullmatch(name))


def _defined(nodes: list[ast.AST]) -> Iterator[str]:
    """Methods, and attributes that are set on self."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            yield node.attr


def _is_self(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _called(node.func) == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("model._span.P", ["_span"]),
        ("f(x)._span", ["_span"]),
        ("from kons.core.quadratic import Quadratic, _bordered", ["_bordered"]),
        ("import kons._inside", ["_inside"]),
        ("from kons._inside import x", ["_inside"]),
        ("patch.setattr(errors, '_told', set())", ["_told"]),
        ("patch.setattr('kons.errors._told', set())", ["_told"]),
        ("getattr(model, '_span')", ["_span"]),
        ("run('from kons import errors; errors._told.clear()')", ["_told"]),
        ("class A(KONS):\n    def f(self):\n        return self._function", ["_function"]),
        ("class A:\n    def _f(self):\n        self._x = 1\n        return self._x, self._f", []),
        ("model.__class__, vars(model), '_x', 'a/_x', _x", []),
    ],
)
def test_what_counts(source: str, found: list[str]) -> None:
    assert [name for _, name in private_names(source)] == found


def test_no_test_asks_for_a_private_name() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    asked = [
        (f"{path.relative_to(TESTS)}:{line}", name)
        for path, text in texts.items()
        if path != Path(__file__) and re.search(r"\b_[A-Za-z]", text)  # parsing takes long
        for line, name in private_names(text)
    ]
    assert [place for place in asked if place[1] not in ALLOWED] == []
    assert {name for _, name in asked} == set(ALLOWED)  # none is allowed that nobody needs
