"""Run pages and write what their blocks print now into the ``text`` blocks behind them.

``python tests/docs/refresh.py`` refreshes all, ``python tests/docs/refresh.py learners streams`` two. A block
that ends in ``...`` keeps its number of lines.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path

import pages

sys.path.insert(0, str(pages.DOCS / "examples"))


def refreshed(page: Path) -> str:
    """The text of a page with fresh output."""
    text = page.read_text(encoding="utf-8")
    module = sys.modules["a_page"] = types.ModuleType("a_page")
    for block in pages.blocks(page):
        if block.language not in ("python", "sh"):
            continue
        printed = pages.run(block, page, vars(module))
        if block.output is None:
            continue
        lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
        if block.output.endswith("\n...\n"):
            lines = [*lines[: block.output.rstrip().count("\n")], "..."]
        shown = "".join(f"{line}\n" for line in lines)
        before = f"{block.code}```\n\n```text\n{block.output}```"
        assert text.count(before) == 1, f"{page.name}, line {block.line}: the same block twice"
        text = text.replace(before, f"{block.code}```\n\n```text\n{shown}```")
    return text


def main() -> None:
    """Refresh the pages that are named, or all."""
    import plant

    os.environ["COLUMNS"] = "90"
    logging.getLogger("kons").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for page in pages.pages():
        if len(sys.argv) > 1 and page.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            plant.write()
            text = refreshed(page)
            os.chdir(pages.ROOT)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"refreshed {page.name}")


if __name__ == "__main__":
    main()
