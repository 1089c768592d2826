"""Mutants: small faults in the sources, drawn by a seed and described so that other checkouts can have them.

A mutant replaces one span of text. It is described by the definition it is in and the text of its
line, not by a line number, so that the same list can be applied wherever these lines still stand.
"""

from __future__ import annotations

import ast
import bisect
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Mutant", "draw", "mutants_of", "package_of"]

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
ARITHMETIC = {ast.Add: (r"\+", "-"), ast.Sub: ("-", "+"), ast.Mult: (r"\*", "/"), ast.Div: ("/", "*")}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
TYPING = {"TypeVar", "ParamSpec", "NewType", "cast"}
EXCLUDED = re.compile(r"#\s*pragma\b")


@dataclass(frozen=True)
class Mutant:
    """One fault: ``before`` -> ``after``, at a column of the nth line with this text in a definition."""

    file: str
    definition: str
    line: str
    nth: int
    column: int
    operator: str
    before: str
    after: str

    @property
    def key(self) -> str:
        """A name that does not depend on where the line stands."""
        return hashlib.sha1(repr(sorted(asdict(self).items())).encode()).hexdigest()[:12]

    def place(self, text: str) -> int | None:
        """Where it is in a text of its file, as an offset; ``None`` if the line is not there."""
        first, last = _Source(self.file, text).span(self.definition)
        lines = text.splitlines(keepends=True)
        same = [n for n in range(first - 1, min(last, len(lines))) if lines[n].strip() == self.line]
        if len(same) <= self.nth:
            return None
        line = lines[same[self.nth]]
        start = sum(map(len, lines[: same[self.nth]])) + len(line) - len(line.lstrip()) + self.column
        return start if text.startswith(self.before, start) else None

    def apply(self, text: str) -> str | None:
        """The text of its file with the fault; ``None`` if it does not fit."""
        start = self.place(text)
        return None if start is None else text[:start] + self.after + text[start + len(self.before) :]

    def shown(self) -> str:
        """The line before and after."""
        head, tail = self.line[: self.column], self.line[self.column + len(self.before) :]
        return f"{self.line} -> {f'{head}{self.after}{tail}'.strip() or '(nothing)'}"


def package_of(file: str) -> str:
    """The folder of a source file inside the package, as ``learners/auto``; ``.`` at the top."""
    return str(Path(*Path(file).parts[2:]).parent)


def draw(checkout: Path, count: int, least: int, seed: int) -> list[Mutant]:
    """Draw mutants that compile: at least ``least`` a package, the others evenly over all lines.

    A line is drawn first, then one of its mutants: lines with much in them count once. Each has its own
    place in the order, from the seed and its text: where a line changes, the others stay drawn, and a
    suite is compared with the one before it by almost the same list.
    """
    texts: dict[str, str] = {}
    pool: dict[str, list[list[Mutant]]] = defaultdict(list)
    for path in sorted((checkout / "src").rglob("*.py")):
        file = path.relative_to(checkout).as_posix()
        texts[file] = path.read_text(encoding="utf-8")
        lines: dict[tuple[str, str, int], list[Mutant]] = defaultdict(list)
        for mutant in mutants_of(file, texts[file]):
            lines[mutant.definition, mutant.line, mutant.nth].append(mutant)
        pool[package_of(file)] += lines.values()
    drawn: list[Mutant] = []

    def order(text: str) -> str:
        return hashlib.sha1(f"{seed} {text}".encode()).hexdigest()

    def of_line(found: list[Mutant]) -> str:
        return order(" ".join((found[0].file, found[0].definition, found[0].line, str(found[0].nth))))

    def take(lines: list[list[Mutant]], wanted: int) -> None:
        lines.sort(key=of_line, reverse=True)
        while wanted and lines:
            found = sorted(lines.pop(), key=lambda mutant: order(mutant.key))
            working = [mutant for mutant in found if _compiles(mutant.apply(texts[mutant.file]))][:1]
            drawn.extend(working)
            wanted -= len(working)

    for lines_of_package in pool.values():
        take(lines_of_package, least)
    rest = [found for lines_of_package in pool.values() for found in lines_of_package]
    take(rest, max(0, count - len(drawn)))
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.definition, mutant.line, mutant.nth))


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Every mutant of a file."""
    source = _Source(file, text)
    faults = _faults(source, source.tree)
    return [source.describe(*fault) for fault in faults if not source.excludes(fault[1])]


class _Source:
    """A text with its syntax tree, in offsets of characters."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text, self.tree = file, text, ast.parse(text)
        self.lines = text.splitlines(keepends=True)
        self.stripped = [line.strip() for line in self.lines]
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.definitions: list[tuple[int, int, str]] = []
        self._define(self.tree, "")

    def _define(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([child.lineno, *(item.lineno for item in child.decorator_list)])
                self.definitions.append((first, child.end_lineno or first, prefix + child.name))
                self._define(child, f"{prefix}{child.name}.")
            else:
                self._define(child, prefix)

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def ends(self, node: Any) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def line_of(self, offset: int) -> int:
        return bisect.bisect_right(self.starts, offset) - 1

    def definition_of(self, line: int) -> str:
        inside = [(last - first, name) for first, last, name in self.definitions if first <= line <= last]
        return min(inside)[1] if inside else "<module>"

    def span(self, definition: str) -> tuple[int, int]:
        spans = [(first, last) for first, last, name in self.definitions if name == definition]
        if definition == "<module>":
            return 1, len(self.lines)
        return spans[0] if len(spans) == 1 else (1, 0)

    def excludes(self, offset: int) -> bool:
        return EXCLUDED.search(self.lines[self.line_of(offset)]) is not None

    def describe(self, operator: str, start: int, end: int, after: str) -> Mutant:
        line = self.line_of(start)
        definition, stripped = self.definition_of(line + 1), self.stripped[line]
        column = start - self.starts[line] - (len(self.lines[line]) - len(self.lines[line].lstrip()))
        first, _ = self.span(definition)
        nth = self.stripped[first - 1 : line].count(stripped)
        return Mutant(self.file, definition, stripped, nth, column, operator, self.text[start:end], after)


Fault = tuple[str, int, int, str]  # the operator, a span, what replaces it
Change = tuple[str, str]


def _faults(source: _Source, node: ast.AST) -> Iterator[Fault]:
    """Walk a syntax tree."""
    if _is_left_alone(node):
        return
    yield from _faults_of(source, node)
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "type_params"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _faults(source, child)


def _faults_of(source: _Source, node: ast.AST) -> Iterator[Fault]:
    """Those of one node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for a, op, b in zip([left, *others], ops, others, strict=False):
                yield from _between(source, "comparison", a, b, COMPARISONS[type(op)])
        case ast.BinOp(left=a, op=op, right=b) if type(op) in ARITHMETIC and not (_is_text(a) or _is_text(b)):
            yield from _between(source, "arithmetic", a, b, ARITHMETIC[type(op)])
        case ast.BoolOp(op=op, values=values):
            words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            for a, b in itertools.pairwise(values):
                yield from _between(source, "and/or", a, b, words)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", source.ends(node)[0], source.ends(operand)[0], ""
        case ast.Constant(value=bool() | int() | float() as value):
            yield "constant", *source.ends(node), repr(_another(value))
        case ast.If(test=test) | ast.IfExp(test=test):
            yield from _around(source, "condition", test, "not ({})")
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield from _around(source, "condition", test, "not ({})")
        case ast.Expr(value=value) if not isinstance(value, ast.Constant | ast.Yield | ast.YieldFrom):
            yield "deletion", *source.ends(node), "pass"
        case ast.AugAssign(target=a, op=op, value=b):
            yield "deletion", *source.ends(node), "pass"
            if type(op) in ARITHMETIC and not _is_text(b):
                yield from _between(source, "arithmetic", a, b, ARITHMETIC[type(op)])
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "return", *source.ends(value), "None"
        case ast.Slice(lower=lower, upper=upper):
            for bound in (lower, upper):
                if bound and not isinstance(bound, ast.Constant):
                    yield from _around(source, "index", bound, "({}) + 1")
        case ast.Subscript(slice=ast.Name(id=name) as index) if len(name) == 1 and name.islower():
            yield from _around(source, "index", index, "{} + 1")
        case ast.Call():
            yield from _faults_of_call(source, node)


def _faults_of_call(source: _Source, node: ast.Call) -> Iterator[Fault]:
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in EXTREMES:
        end = source.ends(function)[1]
        yield "min/max", end - len(name), end, EXTREMES[name]
    for item in node.keywords:
        start, end = source.ends(item)
        if comma := re.match(r"\s*,[ \t]*", source.text[end:]):
            end += comma.end()
        elif comma := re.search(r",\s*$", source.text[:start]):
            start = comma.start()
        if item.arg:
            yield "keyword", start, end, ""


def _around(source: _Source, operator: str, node: ast.expr, form: str) -> Iterator[Fault]:
    start, end = source.ends(node)
    yield operator, start, end, form.format(source.text[start:end])


def _between(source: _Source, operator: str, a: ast.expr, b: ast.expr, change: Change) -> Iterator[Fault]:
    """The sign between two expressions; brackets and comments may stand there too."""
    start, end = source.ends(a)[1], source.ends(b)[0]
    between = re.sub(r"#[^\n]*", lambda found: " " * len(found[0]), source.text[start:end])
    sign = re.search(rf"\b{change[0]}\b" if change[0][0].isalpha() else change[0], between)
    if sign:
        yield operator, start + sign.start(), start + sign.end(), change[1]


def _is_left_alone(node: ast.AST) -> bool:
    """What is not run, or is said to people, or tells types."""
    match node:
        case ast.JoinedStr():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AugAssign(target=ast.Name(id="__all__")):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Call(func=ast.Name(id=name)) if name in TYPING:
            return True
        case ast.FunctionDef(decorator_list=[ast.Name(id="overload")]):
            return True
    return False


def _another(value: float) -> float:
    if isinstance(value, bool):
        return not value
    return value + 1 if value + 1 != value else 2 * value  # where one more is too little to count


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _compiles(text: str | None) -> bool:
    if text is None:
        return False
    try:
        compile(text, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
