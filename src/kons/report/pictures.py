"""The pictures of a report, each with the key that stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.report import drawing
from kons.report.drawing import COLOURS, Key, Look, Picture
from kons.report.history import Shares
from kons.report.numbers import count
from kons.report.thinning import Band, Line

__all__ = [
    "MOST_CURVES", "Mark", "Point", "complexity", "curves", "frontier", "losses", "novelty",
    "recent_labels", "recent_values", "reliability", "shares", "size", "time_line",
]  # fmt: skip

MOST_CLASSES = 8
MOST_CURVES = 8
#: Colours of the layers of a stack, and of what is left.
LAYERS, OTHERS = ("c0", "c2", "c3", "c4", "c5", "c6", "c7"), "c1"
#: Where below a stack of parts the leaders are shown: its foot and its height.
STRIP = (-0.13, 0.08)

#: How the learner and the baselines are drawn everywhere.
LOOKS: dict[str, Look] = {
    "learner": ("c0", "", 2.2),
    "constant": ("c1", "2 3", 1.5),
    "linear": ("c2", "7 3", 1.5),
    "persistence": ("c3", "7 3 2 3", 1.5),
}


@dataclass(frozen=True)
class Point:
    """A learner in the plane of cost and loss."""

    name: str
    cost: float
    loss: float
    best: bool
    """No other is both cheaper and better."""


@dataclass(frozen=True)
class Mark:
    """An event on a time line: where it began and was noticed last, what it was."""

    row: float
    last: float
    kind: str
    alarm: bool


@drawing.style()
def _lines(
    shown: Sequence[tuple[str, Line, Look]],
    what: str,
    alt: str,
    *,
    height: int = 230,
    part: bool = False,
    may_be_log: bool = True,
) -> Picture:
    """Named lines over rows, the first on top."""
    axes = drawing.axes(height)
    for _, points, look in reversed(shown):
        drawing.line(axes, points, look)
    values = [drawing.settled(points) for _, points, _ in shown]
    logarithmic = may_be_log and not part and drawing.spreads(values)
    drawing.value_axis(axes, values, logarithmic, from_zero=True, part=part)
    drawing.title(axes, what, logarithmic)
    keys = tuple(Key(name, colour, "line", dashes) for name, _, (colour, dashes, _) in shown)
    return Picture(axes.figure, f"{alt}: {', '.join(key.label for key in keys)}.", keys)


def losses(
    lines: dict[str, Line], names: dict[str, str], what: str, over: str, *, part: bool
) -> Picture | None:
    """Loss over rows, of the learner and the baselines; ``part``: it is a part of the rows.

    None where no loss is a finite number.
    """
    found = {key: lines[key] for key in LOOKS if key in lines and len(lines[key][0])}
    shown = [(names[key], points, LOOKS[key]) for key, points in found.items()]
    return _lines(shown, what, f"Line plot of {what} {over}", part=part) if shown else None


def curves(lines: Sequence[tuple[str, Line]], loss_name: str, *, part: bool) -> Picture:
    """Running loss of several learners over rows."""
    colours = (*LAYERS, OTHERS)
    dashes = ("", "7 3", "2 3", "7 3 2 3")
    shown = [
        (name, points, (colours[i], dashes[i % 4], 1.7 if i else 2.2))
        for i, (name, points) in enumerate(lines[:MOST_CURVES])
    ]
    return _lines(shown, f"{loss_name} so far", f"Running {loss_name} over rows", height=260, part=part)


@drawing.style()
def reliability(tenths: NDArray[np.float64]) -> Picture:
    """How often the predicted label was right, against the probability that it was given."""
    axes = drawing.axes(260)
    found = tenths[tenths[:, 0] > 0.0]
    said, right = 100.0 * found[:, 1] / found[:, 0], found[:, 2] / found[:, 0]
    axes.plot([0.0, 100.0], [0.0, 1.0], color=COLOURS["muted"], lw=1.5, dashes=(4, 3))
    axes.plot(said, right, "o-", color=COLOURS["c0"], lw=2.2, ms=6)
    axes.set_xlabel("probability of the predicted label, in percent")
    drawing.value_axis(axes, [np.array([0.0, 1.0])], part=True)
    drawing.title(axes, "rows in which it was right")
    keys = (Key("this run", "c0", "line", ""), Key("as promised", "muted", "line", "4 3"))
    return Picture(axes.figure, "Share of right labels against their probability.", keys)


def size(points: Line, most: int | None) -> Picture:
    """Atoms of the dictionary over rows, and how many it may have."""
    shown: list[tuple[str, Line, Look]] = [("points kept", points, LOOKS["learner"])]
    if most is not None:
        limit = points[0][[0, -1]], np.full(2, float(most))
        shown.append((f"at most {count(most)}", limit, ("muted", "4 3", 1.5)))
    return _lines(shown, "points kept", "Points kept over rows", height=190, may_be_log=False)


def complexity(dimension: Line | None, determinant: Line | None) -> Picture:
    """Online effective dimension and log-determinant over rows: sums that say how much there was to learn."""
    looks: tuple[tuple[str, Line | None, Look], ...] = (
        ("online effective dimension", dimension, ("c4", "", 2.2)),
        ("log det(A/α), in nats", determinant, ("c2", "7 3", 1.8)),
    )
    shown = [(name, points, look) for name, points, look in looks if points is not None]
    return _lines(shown, "sum so far", "Over rows", height=190, may_be_log=False)


@drawing.style()
def recent_values(recent: dict[str, Vector], target: str, level: str | None) -> Picture:
    """Predicted against actual, with the interval where there is one."""
    rows, actual, predicted = recent["row"], recent["target"], recent["prediction"]
    lower, upper = recent["lower"], recent["upper"]
    outside = (actual < lower) | (actual > upper)
    axes = drawing.axes(260)
    keys = [Key("actual", "ink"), Key("predicted", "c0")]
    if np.isfinite(lower).any() and np.isfinite(upper).any():
        axes.fill_between(rows, lower, upper, color=COLOURS["c0"], alpha=0.17, lw=0)
        keys += [Key(f"{level} interval" if level else "interval", "c0", "area")]
        keys += [Key("actual outside it", "bad", "dot")] if outside.any() else []
    axes.plot(rows, actual, color=COLOURS["ink"], lw=1.3, marker="o", ms=2.4, alpha=0.85)
    axes.plot(rows, predicted, color=COLOURS["c0"], lw=2)
    axes.plot(rows[outside], actual[outside], "o", color=COLOURS["bad"], ms=4.5)
    low, high = drawing.ends([actual, predicted])
    # A wide interval may leave the picture; what happened may not.
    reach = 0.5 * (high - low)
    values = (actual, predicted, lower, upper)
    drawing.value_axis(axes, [np.clip(v, low - reach, high + reach) for v in values])
    drawing.title(axes, drawing.cut(target))
    alt = f"Predicted and actual {target} for the last {count(len(rows))} rows."
    return Picture(axes.figure, alt, tuple(keys))


@drawing.style()
def recent_labels(recent: dict[str, Vector], classes: Sequence[str], target: str) -> Picture | None:
    """Predicted against actual labels; None for more classes than a picture can hold."""
    if len(classes) > MOST_CLASSES:
        return None
    rows, actual, predicted = recent["row"], recent["target"], recent["prediction"]
    right = actual == predicted
    wrong = ~right & np.isfinite(predicted)
    axes = drawing.axes(110 + 30 * len(classes))
    axes.vlines(rows[wrong], actual[wrong], predicted[wrong], color=COLOURS["bad"], lw=1, alpha=0.5)
    axes.plot(rows[right], actual[right], "o", color=COLOURS["c0"], ms=4)
    axes.plot(rows[wrong], actual[wrong], "o", color=COLOURS["ink"], ms=4)
    axes.plot(rows[wrong], predicted[wrong], "x", color=COLOURS["bad"], ms=6, mew=1.8)
    axes.set_yticks(range(len(classes)), [drawing.cut(label, 12) for label in classes])
    axes.set_ylim(-0.6, len(classes) - 0.4)
    drawing.title(axes, drawing.cut(target))
    keys = (
        Key("actual, predicted right", "c0", "dot"),
        Key("actual, predicted wrong", "ink", "dot"),
        Key("the wrong prediction", "bad", "cross"),
    )
    return Picture(axes.figure, f"Predicted and actual {target} for the last {count(len(rows))} rows.", keys)


@drawing.style()
def novelty(band: Band, listed: Sequence[dict[str, float]]) -> Picture:
    """Novelty over rows, with the listed rows marked."""
    positive = band.high[band.high > 0.0]
    logarithmic = len(positive) > 0 and drawing.spreads(
        [band.high, np.maximum(band.low, positive.min() * 1e-2)]
    )
    floor = float(positive.min()) * 1e-1 if logarithmic else 0.0
    low, mean = np.maximum(band.low, floor), np.maximum(band.mean, floor)
    axes = drawing.axes(220)
    keys = [Key("novelty" if band.is_line else "mean of a stretch of rows", "c0")]
    if not band.is_line:
        axes.fill_between(band.row, low, band.high, color=COLOURS["c0"], alpha=0.22, lw=0)
        keys.append(Key("least to largest", "c0", "area"))
    axes.plot(band.row, mean, color=COLOURS["c0"], lw=1.6)
    if listed:
        rows, values = zip(*((row["row"], row["novelty"]) for row in listed), strict=True)
        axes.plot(rows, values, "o", color=COLOURS["bad"], ms=5)
        keys.append(Key("listed below", "bad", "dot"))
    drawing.value_axis(axes, [low, band.high], logarithmic, from_zero=True)
    drawing.title(axes, "novelty (no unit; 0: nothing new)", logarithmic)
    return Picture(axes.figure, "Novelty over rows.", tuple(keys))


@drawing.style()
def time_line(marks: Sequence[Mark], rows: int) -> Picture:
    """Events over rows, a line a kind."""
    kinds = list(dict.fromkeys(mark.kind for mark in marks))[:MOST_CLASSES]
    axes = drawing.axes(90 + 30 * len(kinds))
    for mark in marks:
        if mark.kind in kinds:
            at, colour = kinds.index(mark.kind), COLOURS["bad" if mark.alarm else "c0"]
            axes.plot([mark.row, mark.last], [at, at], color=colour, lw=3, alpha=0.5)
            axes.plot(mark.row, at, "o", color=colour, ms=6)
    axes.set_yticks(range(len(kinds)), [drawing.cut(kind, 24) for kind in kinds])
    axes.set_ylim(len(kinds) - 0.4, -0.6)
    axes.set_xlim(0, max(rows, 1))
    drawing.title(axes, "events")
    keys = [Key("alarm", "bad", "dot"), Key("for information", "c0", "dot")]
    there = [key for key, alarm in zip(keys, (True, False), strict=True) if alarm in {m.alarm for m in marks}]
    return Picture(axes.figure, f"Events over rows: {', '.join(kinds)}.", tuple(there))


@drawing.style()
def shares(found: Shares, names: Sequence[str], leaders: Line | None = None) -> Picture:
    """Each expert's part over rows, stacked, those with little together; below, in its colour, who led."""
    parts = np.abs(found.parts)
    total = parts.sum(axis=1, keepdims=True)
    parts = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
    order = np.argsort(-parts.mean(axis=0), kind="stable")[: len(LAYERS)]
    order = order[parts[:, order].mean(axis=0) > 0.0]
    layers = [parts[:, i] for i in order]
    labels = [names[i] if i < len(names) else f"expert {i}" for i in order.tolist()]
    colours = list(LAYERS[: len(layers)])
    colour_of = dict(zip(order.tolist(), colours, strict=True))
    rest = 1.0 - parts[:, order].sum(axis=1)
    if rest.max(initial=0.0) > 1e-9 and parts.shape[1] > len(order):
        layers, labels, colours = [*layers, rest], [*labels, "all others"], [*colours, OTHERS]
    axes = drawing.axes(250)
    if layers:
        axes.stackplot(found.row, layers, colors=[COLOURS[colour] for colour in colours], alpha=0.8, lw=0)
    drawing.value_axis(axes, [np.array([0.0, 1.0])], part=True)
    marks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    led = [] if leaders is None or found.what == "lead" else _stretches(*leaders)
    for start, length, leader in led:
        colour = COLOURS[colour_of.get(leader, OTHERS)]
        axes.broken_barh([(start, length)], STRIP, color=colour, alpha=0.8, lw=0)
    foot, words = ([STRIP[0] + STRIP[1] / 2], ["led"]) if led else ([], [])
    axes.set_yticks([*foot, *marks], [*words, *(f"{100 * mark:.0f} %" for mark in marks)])
    axes.set_ylim(STRIP[0] if led else 0.0, 1.0)
    drawing.title(axes, "share of the weight" if found.what == "weight" else "share of the rows led")
    keys = tuple(Key(label, colour, "layer") for label, colour in zip(labels, colours, strict=True))
    return Picture(axes.figure, f"Shares over rows of {', '.join(labels)}.", keys)


def _stretches(rows: Vector, leaders: Vector) -> list[tuple[float, float, int]]:
    """(start, length, leader) of each stretch of rows with one leader."""
    if len(rows) < 2:
        return []
    edges = np.concatenate([rows[:1], 0.5 * (rows[1:] + rows[:-1]), rows[-1:]])
    first = np.flatnonzero(np.diff(leaders, prepend=-1.0))
    last = np.append(first[1:], len(rows))
    return [
        (float(edges[i]), float(edges[j] - edges[i]), int(leaders[i]))
        for i, j in zip(first.tolist(), last.tolist(), strict=True)
    ]


@drawing.style()
def frontier(
    points: Sequence[Point], trivial: tuple[str, float] | None, loss_name: str, *, part: bool
) -> Picture:
    """Loss against microseconds a row; the line joins those that no other beats in both.

    ``trivial``: name and loss of the best baseline, drawn if it is near enough not to squeeze the rest.
    """
    best = sorted((p for p in points if p.best), key=lambda p: p.cost)
    costs, found = np.array([p.cost for p in points]), np.array([p.loss for p in points])
    heights, keys = found, [Key("on the frontier", "c0", "dot")]
    axes = drawing.axes(300)
    if len(best) < len(points):
        keys.append(Key("another is as good and as cheap", "c1", "dot"))
    if trivial is not None and trivial[1] <= 3.0 * found.max():
        heights = np.append(found, trivial[1])
        axes.axhline(trivial[1], color=COLOURS["c2"], lw=1.5, dashes=(2, 3))
        axes.annotate(
            f"best trivial predictor: {trivial[0]}", (1.0, trivial[1]), (0, 4), color=COLOURS["c2"],
            xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right",
        )  # fmt: skip
    axes.step([p.cost for p in best], [p.loss for p in best], where="post", color=COLOURS["c0"],
              lw=1.6, dashes=(4, 3))  # fmt: skip
    axes.plot(costs, found, "o", color=COLOURS["c1"], ms=8)
    axes.plot([p.cost for p in best], [p.loss for p in best], "o", color=COLOURS["c0"], ms=9)
    for point in points:
        place = point.cost, point.loss
        axes.annotate(drawing.cut(point.name, 30), place, (8, 5), textcoords="offset points")
    drawing.log_axis(axes, "x", float(costs.min()) / 1.6, float(costs.max()) * 2.0)
    axes.set_xlabel("microseconds a row, log scale")
    logarithmic = not part and bool(0.0 < 30.0 * heights.min() < heights.max())
    drawing.value_axis(axes, [heights], logarithmic, part=part)
    drawing.title(axes, loss_name, logarithmic)
    alt = f"Scatter plot of {loss_name} against microseconds a row, numbered as in the table."
    return Picture(axes.figure, alt, tuple(keys))
