"""Who factorizes, inverts or rank-one-updates a matrix outside the core: nobody may (``make lint``).

::

    python -m tools.algebra

One second-order state serves all learners (:mod:`kons.core.quadratic`), and theory has its dense referees; a
second engine always begins with a harmless ``solve``. What is looked for, in the syntax tree of each file:

    numpy.linalg, scipy.linalg, its blas and lapack     functions that factor, invert, solve or update
    kons.core.cholesky                                  the core's own factor, which is for the core
    A += outer(u, v), A = A - u[:, None] * v[None]      rank-one changes, as arrays
    A[i, j] += a * v[j]                                 and as loops
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ALLOWED", "Finding", "find", "main"]

#: Packages below src/kons that may.
HOME = "core", "theory"
#: What may stay, by file and name, and why. An entry that nothing needs any more is an error, too.
ALLOWED = {
    ("learners/auto/metric_learning.py", "numpy.linalg.eigh"): "the root of a metric, which is a feature map",
    ("streams/synthetic.py", "numpy.linalg.qr"): "two directions of a stream, not a state",
}

MODULES = "numpy.linalg.", "scipy.linalg.", "kons.core.cholesky."
NAMES = re.compile(
    r"(cholesky|cho_|chol|inv|pinv|solve|lstsq|lu|ldl|qr|svd|eig|schur|det|slogdet|factored|inverted)\w*"
    r"|[sdcz](potr|trtr|trs|syr|her|ger|getr|gesv|posv|sysv|syev|gels|gesdd|gesvd|pstr)\w*"
)
RANK_ONE = "a rank-one change"


class Finding(NamedTuple):
    """One place, and what is done there."""

    file: str
    line: int
    name: str

    def __str__(self) -> str:
        return (
            f"src/kons/{self.file}:{self.line}: {self.name}, expected only in {' and '.join(HOME)}. Use the "
            "verbs of kons.core.quadratic, ridge or sequential, or give the core a new one."
        )


def find(package: Path) -> list[Finding]:
    """All such places of a package, those that are ALLOWED among them."""
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        if file.parts[0] not in HOME:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            places = {*_named(tree), *_rank_one(tree)}
            found += [Finding(file.as_posix(), *place) for place in sorted(places)]
    return found


def _named(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions by their full names, through whatever they were imported as."""
    full: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            full |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, *rest = ast.unparse(node).split(".")
            name = ".".join([full.get(first, first), *rest])
            if name.startswith(MODULES) and NAMES.fullmatch(name.rsplit(".")[-1]):
                yield node.lineno, name


def _rank_one(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Changes of a matrix by a product of two vectors, as far as it can be told."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            target: ast.expr = node.target
            value = node.value
        elif isinstance(node, ast.Assign) and _is_sum(node.value) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if ast.unparse(target) not in (ast.unparse(part) for part in _terms(value)):
                continue
        else:
            continue
        if any(_is_outer(part) for part in ast.walk(value)) or _is_entry_by_entry(target, value):
            yield node.lineno, RANK_ONE


def _is_sum(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub)


def _terms(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.BinOp) and _is_sum(value):
        yield from _terms(value.left)
        yield from _terms(value.right)
    else:
        yield value


def _is_outer(part: ast.AST) -> bool:
    """``outer(u, v)``, or a column times a row: ``u[:, None] * v[None]``."""
    if isinstance(part, ast.Call):
        return ast.unparse(part.func).split(".")[-1] == "outer"
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        factors = [factor for factor in (part.left, part.right) if isinstance(factor, ast.Subscript)]
        shapes = {ast.unparse(factor.slice).strip("()").replace("np.newaxis", "None") for factor in factors}
        return ":, None" in shapes and not shapes.isdisjoint({"None", "None, :"})
    return False


def _is_entry_by_entry(target: ast.expr, value: ast.expr) -> bool:
    """``A[i, j] += a * v[j]``: both indices vary, and a factor has one of them alone."""
    if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Tuple)):
        return False
    indices = [index.id for index in target.slice.elts if isinstance(index, ast.Name)]
    if len(indices) != 2 or not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)):
        return False
    factors = [part for part in ast.walk(value) if isinstance(part, ast.Subscript)]
    return any(isinstance(factor.slice, ast.Name) and factor.slice.id in indices for factor in factors)


def main(package: Path = Path("src/kons")) -> int:
    """Print what is not allowed, and what is allowed for nothing; 1 if there is any."""
    found = find(package)
    needed = {(finding.file, finding.name) for finding in found}
    bad = [str(finding) for finding in found if (finding.file, finding.name) not in ALLOWED]
    spare = ALLOWED.keys() - needed
    bad += [f"tools/algebra.py: {key} is allowed, but is not there any more." for key in spare]
    print("\n".join(bad) or f"Only {' and '.join(HOME)} factorize: {len(ALLOWED)} exceptions.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
