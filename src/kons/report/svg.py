"""A matplotlib figure as SVG inside a page: its colours are the page's, its names collide with no other."""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

__all__ = ["ROLES", "colour", "figure", "fit", "inline", "style"]

#: What a colour is for. matplotlib draws with a number of its own for each, replaced by ``var(--role)``,
#: so that one picture is legible on a light and on a dark page.
ROLES = ("ink", "muted", "grid", "paper", "bad", *(f"c{i}" for i in range(9)))

_MARK = re.compile(r"#0100([0-9a-f]{2})")
_FONT = re.compile(r"font:[^;]*?([\d.]+)px[^;]*")
_FAMILY = re.compile(r"font-family:[^;]*;? ?")
_DECIMALS = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"#([A-Za-z][\w.-]*)")
_ROUNDED = ("d", "x", "y", "width", "height", "transform", "points")
_REFERRING = ("href", "clip-path", "style", "fill")

_STYLE: Any = {
    "svg.fonttype": "none",  # letters, not shapes: small, and in the page's own font
    "svg.hashsalt": "kons",  # the same picture, the same bytes
    "text.parse_math": False,  # a column may be called $x$
    "axes.unicode_minus": True,
    "path.simplify": True,
}


def colour(role: str) -> str:
    """The number that stands for a role while matplotlib draws."""
    return f"#0100{ROLES.index(role):02x}"


def figure(width: int, height: int) -> tuple[Any, Any]:
    """A figure of so many page pixels and its axes, in the report's style; none of pyplot's state."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        made = Figure(figsize=(width / 72, height / 72), facecolor="none")
        axes = made.subplots()
    axes.set_facecolor("none")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(colour("muted"))
    axes.tick_params(colors=colour("muted"), labelsize=12, length=0, pad=5)
    axes.tick_params(which="minor", length=0)
    axes.grid(axis="y", color=colour("grid"), linewidth=1)
    axes.set_axisbelow(True)
    return made, axes


@contextmanager
def style() -> Iterator[None]:
    """Within it, texts are taken as they are, and the same drawing gives the same bytes."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def fit(axes: Any, labels: Sequence[str]) -> None:
    """Leave room for the labels of the upright axis, and for the words above and below.

    By the count of letters: the page's font is not known here, and measuring takes half the time of drawing.
    """
    made = axes.figure
    width, height = made.get_figwidth() * 72, made.get_figheight() * 72
    letters = max((sum(_breadth(letter) for letter in label) for label in labels), default=0.0)
    left = min(14.0 + 7.4 * letters, 0.45 * width)
    made.subplots_adjust(left / width, 46.0 / height, 1.0 - 10.0 / width, 1.0 - 28.0 / height)


def _breadth(letter: str) -> float:
    return 1.75 if unicodedata.east_asian_width(letter) in "WF" else 1.0


def inline(made: Any, name: str, alt: str) -> str:
    """The figure as an ``<svg>`` element for the page, with ``name`` before every id inside it."""
    file = io.StringIO()
    with style(), warnings.catch_warnings():
        # The page's font shows what matplotlib's own cannot measure: Japanese column names, say.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        made.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(file.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) in ("metadata", "style"):
                parent.remove(child)
    used = {found for element in root.iter() for found in _referred(element)}
    for element in root.iter():
        _rewrite(element, name, used)
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"viewBox": box, "role": "img", "aria-label": alt})
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: str) -> str:
    return tag.rsplit("}", 1)[-1]


def _referred(element: Any) -> list[str]:
    return [
        found
        for key, value in element.attrib.items()
        if _local(key) in _REFERRING and not _MARK.fullmatch(value)
        for found in _REFERENCE.findall(_MARK.sub("", value))
    ]


def _rewrite(element: Any, name: str, used: set[str]) -> None:
    """Plain tags, ids that are the page's own, rounded places, and colours by what they are for."""
    element.tag = _local(element.tag)
    element.tail = None if element.tail is None or not element.tail.strip() else element.tail
    if element.tag not in ("text", "tspan"):
        element.text = None
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            if value in used:
                element.set("id", f"{name}-{value}")
            continue
        if key in _REFERRING:
            value = _MARK.sub(lambda found: f"var(--{ROLES[int(found[1], 16)]})", value)
            value = _REFERENCE.sub(rf"#{name}-\1", value)
        if key == "style":
            value = (
                _FAMILY.sub("", _FONT.sub(r"font-size: \1px", value)).replace(": ", ":").replace("; ", ";")
            )
        if key in _ROUNDED:
            value = " ".join(_DECIMALS.sub(_short, value).split())
        element.set(key, value)


def _short(found: re.Match[str]) -> str:
    text = f"{float(found[0]):.1f}"
    return text[:-2] if text.endswith(".0") else text
