"""Docstrings of kons as numpydoc and reStructuredText want them.

They are written to be read in a terminal: `name:` in lists of parameters, and |x| for an absolute value.
"""

from __future__ import annotations

import re
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")
NAME = re.compile(r"^[\w*]+(, [\w*]+)*:$")
# Looks like a bar, is as wide in a table, and begins no substitution.
BAR = "\N{DIVIDES}"


def adapt(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring, in place."""
    inside = False  # a list of parameters
    literal: int | None = None  # the indent of the line that began a literal block
    example = False
    for i, line in enumerate(lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if literal is not None and text and indent <= literal:
            literal = None
        example = bool(text) and (example or text.startswith(">>>"))
        if literal is not None or example:
            continue
        if text.endswith("::"):
            literal = indent
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1].strip()):
            inside = text in SECTIONS
        elif inside and NAME.match(line):
            lines[i] = line = line[:-1]
        lines[i] = "".join(
            part if part.startswith("``") else re.sub(r"(?<!\\)\|", BAR, part)
            for part in re.split(r"(``.*?``)", line)
        )


def setup(app: Any) -> dict[str, Any]:
    """Run before numpydoc does."""
    app.connect("autodoc-process-docstring", adapt, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
