"""Names of kons in `code` on a page of text become links to their place in the reference.

So the pages stay plain Markdown, which reads as well without Sphinx.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*$")
PLACES = (
    "kons",
    "kons.evaluation",
    "kons.streams",
    "kons.recipes",
    "kons.policies",
    "kons.kernels",
    "kons.losses",
    "kons.theory",
    "kons.files",
    "kons.checks",
)


def link(app: Any, doctree: nodes.document, docname: str) -> None:
    """Wrap each known name of a page; the reference itself is linked by its docstrings."""
    if docname.startswith("api/"):
        return
    domain = app.env.get_domain("py")
    for node in list(doctree.findall(nodes.literal)):
        text = node.astext().partition("(")[0]
        if isinstance(node.parent, (nodes.reference, nodes.title)) or not NAME.match(text):
            continue
        found = _found(domain, text)
        if found is not None:
            page, anchor = found
            uri = app.builder.get_relative_uri(docname, page) + f"#{anchor}"
            reference = nodes.reference("", "", internal=True, refuri=uri)
            node.replace_self(reference)
            reference += node


def _found(domain: Any, text: str) -> tuple[str, str] | None:
    short = text.removeprefix("kons.")
    # A short word in lower case alone is as often a parameter or a value as a function.
    if text == short and text.islower() and "_" not in text and "." not in text:
        return None
    for name in [text, *(f"{place}.{short}" for place in PLACES)]:
        entry = domain.objects.get(name)
        if entry is not None and (entry.objtype == "function" or not text.islower() or text != short):
            return entry.docname, entry.node_id
    return None


def setup(app: Any) -> dict[str, Any]:
    """Run when every page knows what it links to."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
