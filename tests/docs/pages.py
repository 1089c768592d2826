"""The pages of the site and what is on them: code, output, links, pictures."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```\s*$", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
TIMES = {"max ms", "microseconds", "s", "seconds", "us", "us/row"}
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    \S[^\n]*\n?)+)")


class CodeBlock(NamedTuple):
    """A block of a page, and the output that follows it there."""

    language: str
    code: str
    line: int
    output: str | None


def pages() -> list[Path]:
    """Every page of text, those that Sphinx fills in aside."""
    return [page for page in sorted(DOCS.glob("*.md")) if page.stem != "changelog"]


def blocks(page: Path) -> list[CodeBlock]:
    """The fenced blocks in order; a ``text`` block is the output of the block before it."""
    text = page.read_text(encoding="utf-8")
    found: list[CodeBlock] = []
    for match in FENCE.finditer(text):
        language, code = match.group(1), match.group(2)
        line = text[: match.start()].count("\n") + 2
        if language == "text" and found:
            found[-1] = found[-1]._replace(output=code)
        else:
            found.append(CodeBlock(language, code, line, None))
    return found


def commands_of_prose(page: Path) -> list[str]:
    """Lines of indented blocks that look like something to type."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    lines = [line.strip() for block in INDENTED.findall(text) for line in block.splitlines()]
    return [line.partition("#")[0].strip() for line in lines if re.match(r"(python|make|kons|pip) ", line)]


def run(block: CodeBlock, page: Path, namespace: dict[str, Any]) -> str:
    """Run a block; what it printed on standard output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "python":
            # Line numbers of an error are those of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        else:
            for line in block.code.splitlines():
                if line.strip():
                    run_command(line)
    return printed.getvalue()


def run_command(line: str) -> None:
    """A line of a shell block: ``kons ...`` in this process, ``cat FILE |`` before it if need be."""
    from kons.cli import main

    pipe, _, rest = line.rpartition(" | ")
    words = shlex.split(rest, comments=True)
    assert words[0] == "kons", f"only kons is run on the pages: {line}"
    with piped(pipe):
        code = main(words[1:])
    assert code == 0, f"{line}: exit code {code}"


@contextlib.contextmanager
def piped(command: str) -> Iterator[None]:
    """Standard input from ``cat FILE``."""
    if not command:
        yield
        return
    cat, file = command.split()
    assert cat == "cat", command
    before = sys.stdin
    with open(file, encoding="utf-8") as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def same_output(expected: str, printed: str) -> bool:
    """Whether the output is the one on the page: the same words, numbers within a factor of two.

    ``...`` at the end stands for anything more. Times are those of the machine: any number will do there.
    """
    shown, dots, _ = expected.partition("\n...")
    wanted, found = list(_words(shown)), printed.split()
    if len(found) < len(wanted) or (len(found) > len(wanted) and not dots):
        return False
    following = [word for word, _ in wanted[1:]] + [""]
    return all(
        _same_word(word, other, timed=below or after in TIMES)
        for (word, below), other, after in zip(wanted, found, following, strict=False)
    )


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Each word, and whether it stands in a column of times."""
    columns: list[tuple[int, int]] = []
    for line in text.splitlines():
        if headings := list(re.finditer("|".join(sorted(TIMES - {"s", "us"})), line)):
            columns = [heading.span() for heading in headings]
        for word in re.finditer(r"\S+", line):
            yield word.group(), any(word.start() < stop and word.end() > start for start, stop in columns)


def _same_word(a: str, b: str, *, timed: bool) -> bool:
    parts, others = NUMBER.split(a), NUMBER.split(b)
    if parts != others:
        return False
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(word)] for word in (a, b)]
    return timed or all(x == y or 0.5 <= x / y <= 2.0 for x, y in zip(*numbers, strict=True) if x and y)


def formulas(page: Path) -> list[str]:
    """The TeX of its formulas, in lines and by themselves."""
    text = page.read_text(encoding="utf-8")
    blocks = [code for language, code in FENCE.findall(text) if language == "math"]
    prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))
    return blocks + re.findall(r"\$([^$\n]+)\$", prose)


def links(page: Path) -> list[str]:
    """Where the page's links and pictures point to, web addresses aside."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found = re.findall(r"\]\(([^)\s]+)\)", text)
    return [link for link in found if not re.match(r"(https?|mailto):", link)]


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub and MyST make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def committed_files(folder: Path) -> list[Path]:
    """Files in a folder, those of Python's cache aside."""
    return [p for p in sorted(folder.iterdir()) if p.is_file() and not p.name.startswith(".")]
