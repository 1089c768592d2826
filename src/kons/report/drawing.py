"""What all pictures share: a style, axes that fit their values, and SVG in the colours of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.report.thinning import Line

__all__ = [
    "COLOURS", "Key", "Look", "Picture", "axes", "cut", "ends", "line", "log_axis", "settled",
    "spreads", "style", "title", "value_axis",
]  # fmt: skip

WIDTH = 700  # page pixels
LONGEST = 18  # letters of a name inside a picture

#: What each colour is on a light page; in the page it becomes ``var(--name)``, which knows the dark one.
COLOURS = {
    "ink": "#1b2127", "muted": "#5b6670", "grid": "#e4e8ec", "bad": "#c22f3d",
    "c0": "#1668c7", "c1": "#7f8a94", "c2": "#c96a00", "c3": "#1c8a63", "c4": "#7a4fc0",
    "c5": "#b03a8c", "c6": "#0b8794", "c7": "#8c5a2b",
}  # fmt: skip
NAMES = {colour: name for name, colour in COLOURS.items()}

STYLE: Any = {
    "text.parse_math": False,  # a column may be called $x$
    "font.size": 12,
    "text.color": COLOURS["ink"],
    "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["muted"],
    "axes.titlecolor": COLOURS["muted"],
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "grid.color": COLOURS["grid"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
}

Look = tuple[str, str, float]
"""How a line is drawn: name of its colour, dashes, width."""


@dataclass(frozen=True)
class Key:
    """An entry of the key beside a picture."""

    label: str
    colour: str
    shape: str = "line"
    """``line``, ``area``, ``layer``, ``dot`` or ``cross``."""
    dashes: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure, what it shows in words, and the key to it."""

    figure: Any
    alt: str
    keys: tuple[Key, ...] = ()

    def svg(self) -> str:
        """As an ``<svg>`` element of a page, in the page's font and colours."""
        import matplotlib

        file = io.StringIO()
        # Letters, not shapes: small, and in the page's own font. Ids of its own in every picture.
        options: Any = {"svg.fonttype": "none", "svg.hashsalt": self.alt}
        with matplotlib.rc_context(options), warnings.catch_warnings():
            # The page's font shows what matplotlib's own cannot measure: Japanese column names, say.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            self.figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        inner = file.getvalue().partition("<svg ")[2].partition(">")[2]
        inner = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", inner, flags=re.DOTALL)
        inner = re.sub(r"<[^>]*>", _of_the_page, re.sub(r">\s+<", "><", inner))
        width, height = (72 * inches for inches in self.figure.get_size_inches())
        said = self.alt.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{said}">{inner}'


def _of_the_page(tag: re.Match[str]) -> str:
    """A tag without the ids that every figure has, with rounded places, in the page's font and colours."""
    text = re.sub(r"(<g) id=\"[^\"]*\"", r"\1", tag[0]).replace("xlink:href", "href")
    text = re.sub(r"#[0-9a-f]{6}(?=[;\"])", lambda found: f"var(--{NAMES.get(found[0], 'ink')})", text)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r" ?font-family: [^;\"]*;?", "", text)
    return re.sub(r" (d|x|y|transform)=\"([^\"]*)\"", _rounded, text)


def _rounded(attribute: re.Match[str]) -> str:
    places = re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), attribute[2])
    return f' {attribute[1]}="{" ".join(places.split())}"'


@contextmanager
def style() -> Iterator[None]:
    """Within it, matplotlib draws as the report does; it also is a decorator of what draws."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def axes(height: int) -> Any:
    """Empty axes of a figure of its own (pyplot's state is not touched), with rows along them."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    made = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained").subplots()
    made.margins(x=0.01)
    made.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    made.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    made.set_xlabel("row")
    return made


def line(axes: Any, points: Line, look: Look) -> None:
    """A line; a single point is a dot."""
    colour, dashes, width = look
    pattern = (0, tuple(float(part) / width for part in dashes.split())) if dashes else "-"
    marker = "o" if len(points[0]) == 1 else None
    axes.plot(*points, color=COLOURS[colour], lw=width, ls=pattern, marker=marker, solid_joinstyle="round")


def value_axis(
    axes: Any,
    values: Sequence[Vector],
    logarithmic: bool = False,
    *,
    from_zero: bool = False,
    part: bool = False,
) -> None:
    """Ends and marks that fit the values; from zero where a height is an amount; percent for a part."""
    from matplotlib import ticker

    if logarithmic:
        low, high = ends([v[v > 0.0] for v in values])
        log_axis(axes, "y", low / 1.15, high * 1.15)
        return
    low, high = ends(values)
    low = min(low, 0.0) if from_zero else low
    reach = (high - low) or abs(high) or 1.0
    axes.set_ylim(low - (0.0 if from_zero and low == 0.0 else 0.06 * reach), high + 0.06 * reach)
    axes.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
    size = max(abs(low), abs(high))
    formatter: Any = ticker.StrMethodFormatter("{x:g}")
    if part:
        formatter = ticker.PercentFormatter(1.0, symbol=" %")
    elif size >= 1e5:
        formatter = ticker.EngFormatter(sep="")
    elif size >= 1e-3:
        formatter = ticker.ScalarFormatter(useOffset=False)
    axes.yaxis.set_major_formatter(formatter)


def log_axis(axes: Any, which: str, low: float, high: float) -> None:
    """A logarithmic ``x`` or ``y`` axis between positive ends; 2 and 5 are marked where tens are few."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200.0 * low else (1.0,), numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def title(axes: Any, text: str, logarithmic: bool = False) -> None:
    """The name of the upright axis, lying above it: nobody has to tilt the head."""
    axes.set_title(cut(text, 80) + (", log scale" if logarithmic else ""))


def settled(points: Line) -> Vector:
    """The values after the first hundredth of the rows: a mean of few rows may leave the picture."""
    rows, values = points
    late: Vector = values[rows >= 0.01 * rows[-1]] if len(rows) > 100 else values
    return late


def _known(values: Sequence[Vector]) -> Vector:
    return np.concatenate([np.empty(0), *(v[np.isfinite(v)] for v in values)])


def ends(values: Sequence[Vector]) -> tuple[float, float]:
    """The least and the largest."""
    known = _known(values)
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def spreads(values: Sequence[Vector]) -> bool:
    """Whether the values need a logarithmic axis: all positive, most of them far below the largest."""
    known = _known(values)
    return bool(len(known) and known.min() > 0.0 and known.max() > 30.0 * np.quantile(known, 0.1))


def cut(text: str, most: int = LONGEST) -> str:
    """A name that fits into a picture."""
    return text if len(text) <= most else text[: most - 1] + "…"
