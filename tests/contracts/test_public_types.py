"""Public attributes say their types: what `make types` asks, as far as is seen without a type checker."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src/kons"
# Both say it by themselves: a parameter is annotated, as mypy asks, and a number is a number.
OF_ITSELF = (ast.Name, ast.Constant)


def untyped(sources: Sequence[str]) -> Iterator[str]:
    """Public attributes set on self to what may be read in two ways, annotated neither there nor in bases."""
    nodes = (node for source in sources for node in ast.parse(source).body)
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    said = {name: set(_said(found)) for name, found in classes.items()}
    for name, found in classes.items():
        known = set().union(*(said.get(base, set()) for base in (name, *_bases(found, classes))))
        for attribute in sorted(set(_computed(found)) - known):
            if not name.startswith("_") and not attribute.startswith("_"):
                yield f"{name}.{attribute}"


def _said(found: ast.ClassDef) -> Iterator[str]:
    """Annotated attributes, and properties, whose annotation is that of what they return."""
    yield from (node.name for node in found.body if isinstance(node, ast.FunctionDef))
    for node in ast.walk(found):
        if isinstance(node, ast.AnnAssign):
            yield node.target.id if isinstance(node.target, ast.Name) else _own(node.target)


def _computed(found: ast.ClassDef) -> Iterator[str]:
    for node in ast.walk(found):
        if isinstance(node, ast.Assign) and not isinstance(node.value, OF_ITSELF):
            targets = [part for target in node.targets for part in ast.walk(target)]
            yield from filter(None, (_own(part) for part in targets if isinstance(part, ast.Attribute)))


def _own(node: ast.AST) -> str:
    """What an attribute of self is called that is written, and "" of anything else."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node.ctx, ast.Store) else ""


def _bases(found: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    for base in found.bases:
        if isinstance(base, ast.Name) and base.id in classes and base.id != found.name:
            yield base.id
            yield from _bases(classes[base.id], classes)


def test_every_public_attribute_says_its_type() -> None:
    sources = [path.read_text("utf-8") for path in SOURCES.rglob("*.py")]
    assert len(sources) > 250
    assert [*untyped(sources)] == []


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("self.x = f()", ["A.x"]),
        ("self.x: int = f()", []),
        ("self.x, self.y = f(), 2", ["A.x", "A.y"]),
        ("self.x = x", []),
        ("self.x[0] = other.x = f()", []),
    ],
)
def test_what_says_no_type_is_found(statement: str, names: list[str]) -> None:
    learner = f"class A(B):\n    def f(self, x: int):\n        {statement}"
    assert [*untyped([learner])] == names
    assert [*untyped([learner, "class B:\n    x: int\n    y: int"])] == []
