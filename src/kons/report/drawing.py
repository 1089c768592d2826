"""What all pictures share: axes that fit their values, marks on round numbers, a drawing for each width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.report import svg
from kons.report.history import Line
from kons.report.numbers import count, log_ticks, tick_labels, ticks

__all__ = [
    "Key",
    "Look",
    "Picture",
    "cut",
    "drawn",
    "ends",
    "line",
    "row_axis",
    "settled",
    "spreads",
    "title",
    "value_axis",
]

WIDE, NARROW = 860, 380  # page pixels
LONGEST = 18  # letters of a name inside a picture

Look = tuple[str, str, float]
"""How a line is drawn: role of its colour, dashes, width."""


@dataclass(frozen=True)
class Key:
    """An entry of the key beside a picture."""

    label: str
    role: str
    shape: str = "line"
    """``line``, ``area``, ``layer``, ``dot`` or ``cross``."""
    dashes: str = ""


@dataclass(frozen=True)
class Picture:
    """Two drawings of the same thing, and the key to both."""

    wide: str
    narrow: str
    keys: tuple[Key, ...] = ()


def drawn(
    name: str, alt: str, draw: Callable[[Any, bool], None], height: int, keys: tuple[Key, ...]
) -> Picture:
    drawings = []
    for kind, width in (("wide", WIDE), ("narrow", NARROW)):
        made, axes = svg.figure(width, height)
        with svg.style():
            draw(axes, kind == "narrow")
        svg.fit(axes, [label.get_text() for label in axes.get_yticklabels()])
        drawings.append(svg.inline(made, f"{name}-{kind}", alt))
    return Picture(drawings[0], drawings[1], keys)


def line(axes: Any, points: Line, look: Look) -> None:
    role, dashes, width = look
    pattern = tuple(float(part) / width for part in dashes.split())
    (drawn,) = axes.plot(*points, color=svg.colour(role), lw=width, solid_joinstyle="round")
    if pattern:
        drawn.set_dashes(pattern)
    if len(points[0]) == 1:
        drawn.set_marker("o")


def row_axis(axes: Any, rows: Vector) -> None:
    low, high = (float(np.min(rows)), float(np.max(rows))) if len(rows) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    margin = 0.01 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    few = axes.figure.get_figwidth() * 72 < 600
    marks = sorted({float(round(mark)) for mark in ticks(low, high, 3 if few else 8)})
    marks = [mark for mark in marks if low - margin <= mark <= high + margin]
    axes.set_xticks(marks, [count(mark) for mark in marks])
    axes.set_xlabel("row", color=svg.colour("muted"), fontsize=12)


def value_axis(
    axes: Any, values: Sequence[Vector], logarithmic: bool, *, from_zero: bool = False, part: bool = False
) -> None:
    """Ends and marks that fit the values; from zero where a height is an amount; percent for a part."""
    low, high = ends(values)
    if logarithmic:
        positive = [v[v > 0] for v in values]
        low, high = ends(positive)
        low, high = low / 1.15, high * 1.15
        axes.set_yscale("log")
        axes.set_yticks([], minor=True)
        marks = log_ticks(low, high, 6)
        if not marks:
            marks = [low, high]
    else:
        low = min(low, 0.0) if from_zero else low
        reach = (high - low) or abs(high) or 1.0
        low, high = low - (0.0 if from_zero and low == 0.0 else 0.06 * reach), high + 0.06 * reach
        marks = ticks(low, high, 5)
    axes.set_ylim(low, high)
    labels = tick_labels([100 * mark for mark in marks]) if part else tick_labels(marks)
    axes.set_yticks(marks, [f"{label} %" for label in labels] if part else labels)


def title(axes: Any, text: str, narrow: bool) -> None:
    """The name of the upright axis, lying above it: nobody has to tilt the head."""
    most = 46 if narrow else 100
    axes.set_title(cut(text, most), loc="left", color=svg.colour("muted"), fontsize=12, pad=8, y=1.0)


def settled(points: Line) -> Vector:
    """The values after the first hundredth of the rows: a mean of few rows may leave the picture."""
    rows, values = points
    late: Vector = values[rows >= 0.01 * rows[-1]] if len(rows) > 100 else values
    return late


def ends(values: Sequence[Vector]) -> tuple[float, float]:
    known = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.empty(0)
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def spreads(values: Sequence[Vector]) -> bool:
    """Whether the values need a logarithmic axis: all positive, most of them far below the largest."""
    known = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.empty(0)
    if not len(known) or known.min() <= 0.0:
        return False
    return bool(known.max() > 30.0 * np.quantile(known, 0.1))


def cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
