"""Who names whom in the sources: for what coverage and Numba's cache do not see.

Names are taken as they stand, wherever they come from: two functions of one name count for each
other. That runs some tests too many and compiles some loops too often, never too few.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Lines", "References"]

COMPILERS = {"compiled", "compiled_at_once", "compiled_sums", "inner", "inner_sums", "inlined"}
SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Raise | ast.Assert | ast.Delete


@dataclass(frozen=True)
class Lines:
    """Some lines of a file."""

    file: str
    first: int
    last: int


@dataclass(frozen=True)
class Function:
    """A function: where its body is, whom it names, and its own name and those of its classes."""

    name: str
    made: frozenset[str]
    header: Lines
    body: Lines
    compiled: bool
    names: frozenset[str]


@dataclass(frozen=True)
class Assignment:
    """What stands at the top of a module or a class: the names it makes (its class among them)."""

    lines: Lines
    made: frozenset[str]
    names: frozenset[str]


class References:
    """An index of all sources and tests of a checkout."""

    def __init__(self, root: Path) -> None:
        self.functions: list[Function] = []
        self.assignments: list[Assignment] = []
        self._trees: dict[str, ast.Module] = {}
        for path in sorted((root / "src").rglob("*.py")):
            file = path.relative_to(root).as_posix()
            self._trees[file] = ast.parse(path.read_text(encoding="utf-8"))
            self._index(file, self._trees[file], frozenset())
        self._words = {
            path.relative_to(root).as_posix(): set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
            for path in sorted((root / "tests").rglob("*.py"))
        }

    def _index(self, file: str, node: ast.AST, classes: frozenset[str], local: bool = False) -> None:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.ClassDef(name=name):
                    self._index(file, child, classes | {name}, local)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.functions.append(_function(file, child, classes))
                    self._index(file, child, classes, local=True)
                case ast.stmt() if isinstance(child, SIMPLE):
                    if local:
                        continue
                    lines = Lines(file, child.lineno, child.end_lineno or child.lineno)
                    made = frozenset(_names(child, ast.Store)) | classes
                    self.assignments.append(Assignment(lines, made, frozenset(_names(child, ast.Load))))
                case _:
                    self._index(file, child, classes, local)

    def reached_through(self, file: str, line: int) -> list[Lines]:
        """Lines of Python, one of which runs whenever a line does: its own statement if that is Python."""
        around = self._function(file, line)
        if around and not around.compiled:
            return [around.body if _holds(around.header, line) else self._statement(file, line)]
        spread = self._spread(file, line)
        found = [f.body for f in self.functions if not f.compiled and f.names & spread]
        return found or [f.body for f in self.functions if f.body.file == file]

    def tests_naming(self, file: str, line: int) -> set[str]:
        """The test files that name the compiled function, or the constant, that a line is of.

        Of a function's head, with its defaults, those too that look at signatures and need not call it.
        """
        around = self._function(file, line)
        if around and not around.compiled and _holds(around.header, line):
            look = {test for test, words in self._words.items() if "signature" in words}
            return {test for test in look if self._words[test] & around.made}
        made = {around.name} if around and around.compiled else set() if around else self._made(file, line)
        return {test for test, words in self._words.items() if words & made}

    def stale(self, file: str, line: int) -> list[str] | None:
        """The files whose machine code may be another after a change of a line; ``None``: no file's."""
        around = self._function(file, line)
        spread = set() if around and not around.compiled else self._spread(file, line)
        compiled = [f for f in self.functions if f.compiled]
        return sorted({f.body.file for f in compiled if f.names & spread or f.body.file == file}) or None

    @functools.cache  # noqa: B019  there is one of it, for as long as the tool runs
    def _spread(self, file: str, line: int) -> set[str]:
        """Names whose meaning may change with a line, through constants and compiled functions."""
        around = self._function(file, line)
        found = {around.name} if around else self._made(file, line)
        while True:
            more = {f.name for f in self.functions if f.compiled and f.names & found}
            more = more.union(*(at.made for at in self.assignments if at.names & found))
            if more <= found:
                return found
            found = found | more

    def _made(self, file: str, line: int) -> set[str]:
        found = [at.made for at in self.assignments if at.lines.file == file and _holds(at.lines, line)]
        return set().union(*found)

    @functools.cache  # noqa: B019
    def _function(self, file: str, line: int) -> Function | None:
        """The outermost compiled function around a line, else the innermost one."""
        around = [
            f
            for f in self.functions
            if f.body.file == file and (_holds(f.header, line) or _holds(f.body, line))
        ]
        compiled = [f for f in around if f.compiled]
        return next(iter(compiled or around[-1:]), None)

    def _statement(self, file: str, line: int) -> Lines:
        """The lines of the statement at a line, without the statements inside it."""
        found = Lines(file, line, line)
        for node in ast.walk(self._trees[file]):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                inner = [child.lineno for child in _bodies(node)]
                last = min([*inner, (node.end_lineno or node.lineno) + 1]) - 1
                if line <= last or not inner:
                    found = Lines(file, node.lineno, max(node.lineno, last))
        return found


def _function(file: str, node: ast.FunctionDef | ast.AsyncFunctionDef, classes: frozenset[str]) -> Function:
    marks = {name for item in node.decorator_list for name in _names(item, ast.Load)}
    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
    body = node.body[0].lineno
    return Function(
        node.name,
        classes | {node.name},
        Lines(file, first, max(node.lineno, body - 1)),
        Lines(file, body, node.end_lineno or body),
        bool(marks & COMPILERS),
        frozenset(_names(node, ast.Load)),
    )


def _names(node: ast.AST, context: type[ast.expr_context]) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, context):
            yield child.id
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, context):
            yield child.attr


def _bodies(node: ast.stmt) -> Iterable[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _holds(lines: Lines, line: int) -> bool:
    return lines.first <= line <= lines.last
