"""Formulas as MathML, which browsers draw themselves: no LaTeX, no script, no network.

docutils brings the translator from TeX; this hands Sphinx's formulas to it.
"""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.errors import SphinxError

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ACCENTS = set("ˉˆ˜~˙˘ˇ")
# Names that HTML knows and XML does not.
ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z]\w*;")
ElementTree.register_namespace("", NAMESPACE)


def translated(node: nodes.Node, *, block: bool) -> str:
    """The formula of a node."""
    tex = node.astext()
    try:
        markup = latex2mathml.tex2mathml(tex, as_block=block)
    except Exception as error:
        raise SphinxError(f"{node.source}:{node.line}: no MathML for {tex!r}: {error}") from error
    root = ElementTree.fromstring(ENTITY.sub(lambda name: html.unescape(name.group()), markup))
    for element in list(root.iter(f"{{{NAMESPACE}}}munderover")):
        _lower_index(element)
    return ElementTree.tostring(root, encoding="unicode")


def _lower_index(element: ElementTree.Element) -> None:
    r"""An index of an accented letter, such as \hat y_t, belongs beside it, not below."""
    base, index, accent = element
    if accent.text not in ACCENTS:
        return
    letter = ElementTree.Element(f"{{{NAMESPACE}}}mover", {"accent": "true"})
    letter.extend([base, accent])
    tail = element.tail
    element.clear()
    element.tag, element.tail = f"{{{NAMESPACE}}}msub", tail
    element.extend([letter, index])


def visit_inline(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(translated(node, block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """A formula by itself."""
    self.body.append(self.starttag(node, "div", CLASS="math-block") + translated(node, block=True) + "</div>")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
