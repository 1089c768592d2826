"""The pictures of a report: each drawn twice, for a wide page and for a phone, with its key beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kons.arrays import Vector
from kons.report import drawing, svg
from kons.report.drawing import Key, Look, Picture
from kons.report.history import History, Line, Shares
from kons.report.numbers import count, log_ticks, tick_labels
from kons.report.thinning import Band

__all__ = [
    "Key",
    "Picture",
    "Point",
    "complexity",
    "curves",
    "frontier",
    "losses",
    "novelty",
    "recent_labels",
    "recent_values",
    "shares",
    "size",
]

MOST_CLASSES = 8
COLOURS = 8
#: Colours of the layers of a stack, and of what is left.
LAYERS, OTHERS = ("c0", "c2", "c3", "c4", "c5", "c6", "c7"), "c1"
#: Where below a stack of parts the leaders are shown: its foot and its height.
STRIP = (-0.13, 0.08)

#: How the learner and the baselines are drawn everywhere: role, dashes, width.
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


def losses(
    lines: dict[str, Line], names: dict[str, str], what: str, *, name: str, part: bool
) -> Picture | None:
    """Loss over rows, of the learner and the baselines; ``part``: it is a part of the rows.

    None where no loss is a finite number.
    """
    shown = {key: line for key, line in lines.items() if len(line[0])}
    if not shown:
        return None
    values = [drawing.settled(line) for line in shown.values()]
    logarithmic = not part and drawing.spreads(values)

    def draw(axes: Any, narrow: bool) -> None:
        for key in reversed([key for key in LOOKS if key in shown]):  # the learner on top
            drawing.line(axes, shown[key], LOOKS[key])
        drawing.row_axis(axes, np.concatenate([line[0] for line in shown.values()]))
        drawing.value_axis(axes, values, logarithmic, from_zero=True, part=part)
        drawing.title(axes, what + (", log scale" if logarithmic else ""), narrow)

    keys = tuple(Key(names[key], LOOKS[key][0], "line", LOOKS[key][1]) for key in LOOKS if key in shown)
    return drawing.drawn(
        name, f"Line plot of {what} over rows: {', '.join(k.label for k in keys)}.", draw, 260, keys
    )


def recent_values(recent: dict[str, Vector], target: str, level: str | None) -> Picture:
    """Predicted against actual, with the interval where there is one."""
    rows, actual, predicted = recent["row"], recent["target"], recent["prediction"]
    lower, upper = recent["lower"], recent["upper"]
    with_interval = bool(np.isfinite(lower).any() and np.isfinite(upper).any())
    outside = (actual < lower) | (actual > upper)

    def draw(axes: Any, narrow: bool) -> None:
        part = slice(-100, None) if narrow else slice(None)
        if with_interval:
            axes.fill_between(rows[part], lower[part], upper[part], color=svg.colour("c0"), alpha=0.17, lw=0)
        axes.plot(rows[part], actual[part], color=svg.colour("ink"), lw=1.3, marker="o", ms=2.4, alpha=0.85)
        axes.plot(rows[part], predicted[part], color=svg.colour("c0"), lw=2)
        late = outside[part]
        axes.plot(rows[part][late], actual[part][late], "o", color=svg.colour("bad"), ms=4.5)
        drawing.row_axis(axes, rows[part])
        middle = [actual[part], predicted[part]]
        low, high = drawing.ends(middle)
        reach = high - low
        # A wide interval may leave the picture; what happened may not.
        ends = [np.clip(end[part], low - 0.5 * reach, high + 0.5 * reach) for end in (lower, upper)]
        drawing.value_axis(axes, [*middle, *ends], False)
        drawing.title(axes, drawing.cut(target), narrow)

    keys = [Key("actual", "ink"), Key("predicted", "c0")]
    if with_interval:
        keys += [Key(f"{level} interval" if level else "interval", "c0", "area")]
        keys += [Key("actual outside it", "bad", "dot")] if outside.any() else []
    alt = f"Predicted and actual {target} for the last {count(len(rows))} rows."
    return drawing.drawn("recent", alt, draw, 290, tuple(keys))


def recent_labels(recent: dict[str, Vector], classes: Sequence[str], target: str) -> Picture | None:
    """Predicted against actual labels; None for more classes than a picture can hold."""
    if len(classes) > MOST_CLASSES:
        return None
    rows, actual, predicted = recent["row"], recent["target"], recent["prediction"]
    right = actual == predicted
    wrong = ~right & np.isfinite(predicted)

    def draw(axes: Any, narrow: bool) -> None:
        keep = np.arange(len(rows)) >= (len(rows) - 100 if narrow else 0)
        axes.vlines(rows[keep & wrong], actual[keep & wrong], predicted[keep & wrong],
                    color=svg.colour("bad"), lw=1, alpha=0.5)  # fmt: skip
        axes.plot(rows[keep & right], actual[keep & right], "o", color=svg.colour("c0"), ms=4)
        axes.plot(rows[keep & wrong], actual[keep & wrong], "o", color=svg.colour("ink"), ms=4)
        axes.plot(rows[keep & wrong], predicted[keep & wrong], "x", color=svg.colour("bad"), ms=6, mew=1.8)
        drawing.row_axis(axes, rows[keep])
        axes.set_yticks(range(len(classes)), [drawing.cut(label, 12) for label in classes])
        axes.set_ylim(-0.6, len(classes) - 0.4)
        drawing.title(axes, drawing.cut(target), narrow)

    keys = (
        Key("actual, predicted right", "c0", "dot"),
        Key("actual, predicted wrong", "ink", "dot"),
        Key("the wrong prediction", "bad", "cross"),
    )
    alt = f"Predicted and actual {target} for the last {count(len(rows))} rows."
    return drawing.drawn("recent", alt, draw, 120 + 34 * len(classes), keys)


def size(line: Line, most: int | None) -> Picture:
    """Atoms of the dictionary over rows, and how many it may have."""

    def draw(axes: Any, narrow: bool) -> None:
        values = [line[1]]
        if most is not None:
            axes.axhline(most, color=svg.colour("muted"), lw=1.5, dashes=(4, 3))
            values.append(np.array([float(most)]))
        drawing.line(axes, line, LOOKS["learner"])
        drawing.row_axis(axes, line[0])
        drawing.value_axis(axes, values, False, from_zero=True)
        drawing.title(axes, "points kept", narrow)

    keys = [Key("points kept", "c0")]
    if most is not None:
        keys.append(Key(f"at most {count(most)}", "muted", "line", "4 3"))
    return drawing.drawn("size", "Points kept over rows.", draw, 210, tuple(keys))


def complexity(dimension: Line | None, determinant: Line | None) -> Picture:
    """Online effective dimension and log-determinant over rows: sums that say how much there was to learn."""
    lines = [
        (line, look, label)
        for line, look, label in (
            (dimension, ("c4", "", 2.2), "online effective dimension"),
            (determinant, ("c2", "7 3", 1.8), "log det(A/α), in nats"),
        )
        if line is not None
    ]

    def draw(axes: Any, narrow: bool) -> None:
        for line, look, _ in lines:
            drawing.line(axes, line, look)
        drawing.row_axis(axes, np.concatenate([line[0] for line, _, _ in lines]))
        drawing.value_axis(axes, [line[1] for line, _, _ in lines], False, from_zero=True)
        drawing.title(axes, "sum so far", narrow)

    keys = tuple(Key(label, look[0], "line", look[1]) for _, look, label in lines)
    return drawing.drawn("complexity", f"Over rows: {', '.join(key.label for key in keys)}.", draw, 210, keys)


def novelty(band: Band, listed: Sequence[dict[str, float]]) -> Picture:
    """Novelty over rows, with the listed rows marked."""
    top = np.array([(row["row"], row["novelty"]) for row in listed]).reshape(-1, 2)
    positive = band.high[band.high > 0.0]
    logarithmic = len(positive) > 0 and drawing.spreads(
        [band.high, np.maximum(band.low, positive.min() * 1e-2)]
    )
    floor = float(positive.min()) * 1e-1 if logarithmic else 0.0

    def draw(axes: Any, narrow: bool) -> None:
        low, mean = np.maximum(band.low, floor), np.maximum(band.mean, floor)
        if not band.is_line:
            axes.fill_between(band.row, low, band.high, color=svg.colour("c0"), alpha=0.22, lw=0)
        axes.plot(band.row, mean, color=svg.colour("c0"), lw=1.6)
        axes.plot(top[:, 0], top[:, 1], "o", color=svg.colour("bad"), ms=5)
        drawing.row_axis(axes, band.row)
        drawing.value_axis(axes, [low, band.high], logarithmic, from_zero=True)
        drawing.title(
            axes, "novelty (no unit; 0: nothing new)" + (", log scale" if logarithmic else ""), narrow
        )

    keys = [Key("novelty" if band.is_line else "mean of a stretch of rows", "c0")]
    keys += [] if band.is_line else [Key("least to largest", "c0", "area")]
    keys += [Key("listed below", "bad", "dot")] if len(top) else []
    return drawing.drawn("novelty", "Novelty over rows.", draw, 240, tuple(keys))


def shares(found: Shares, names: Sequence[str], leaders: Line | None = None) -> Picture:
    """Each expert's part over rows, stacked, those with little together; below, in its colour, who led."""
    parts = np.abs(found.parts)
    total = parts.sum(axis=1, keepdims=True)
    parts = np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)
    order = np.argsort(-parts.mean(axis=0), kind="stable")[: len(LAYERS)]
    order = order[parts[:, order].mean(axis=0) > 0.0]
    rest = 1.0 - parts[:, order].sum(axis=1)
    layers = [parts[:, i] for i in order]
    labels = [names[i] if i < len(names) else f"expert {i}" for i in order.tolist()]
    roles = list(LAYERS[: len(layers)])
    role_of = dict(zip(order.tolist(), roles, strict=True))
    if rest.max(initial=0.0) > 1e-9 and parts.shape[1] > len(order):
        layers, labels, roles = [*layers, rest], [*labels, "all others"], [*roles, OTHERS]
    led = [] if leaders is None or found.what == "lead" else _stretches(*leaders)

    def draw(axes: Any, narrow: bool) -> None:
        base = np.zeros(len(found.row))
        for layer, role in zip(layers, roles, strict=True):
            axes.fill_between(found.row, base, base + layer, color=svg.colour(role), alpha=0.8, lw=0)
            base = base + layer
        for start, length, leader in led:
            role = role_of.get(leader, OTHERS)
            axes.broken_barh([(start, length)], STRIP, color=svg.colour(role), alpha=0.8, lw=0)
        drawing.row_axis(axes, found.row if leaders is None else np.concatenate([found.row, leaders[0]]))
        drawing.value_axis(axes, [np.array([0.0, 1.0])], False, from_zero=True, part=True)
        marks = [mark for mark in axes.get_yticks() if mark <= 1.0]
        words = [label.get_text() for label in axes.get_yticklabels()][: len(marks)]
        if led:
            marks, words = [STRIP[0] + STRIP[1] / 2, *marks], ["led", *words]
        axes.set_yticks(marks, words)
        axes.set_ylim(STRIP[0] if led else 0.0, 1.0)
        drawing.title(
            axes, "share of the weight" if found.what == "weight" else "share of the rows led", narrow
        )

    keys = tuple(Key(label, role, "layer") for label, role in zip(labels, roles, strict=True))
    return drawing.drawn("shares", f"Shares over rows of {', '.join(labels)}.", draw, 270, keys)


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


def frontier(
    points: Sequence[Point], trivial: tuple[str, float] | None, loss_name: str, *, part: bool
) -> Picture:
    """Loss against microseconds a row; the line joins those that no other beats in both.

    ``trivial``: name and loss of the best baseline, drawn if it is near enough not to squeeze the rest.
    """
    best = sorted((p for p in points if p.best), key=lambda p: p.cost)
    costs, found = np.array([p.cost for p in points]), np.array([p.loss for p in points])
    if trivial is not None and trivial[1] > 3.0 * found.max():
        trivial = None
    heights = found if trivial is None else np.append(found, trivial[1])
    logarithmic = not part and drawing.spreads([heights])

    def draw(axes: Any, narrow: bool) -> None:
        if trivial is not None:
            axes.axhline(trivial[1], color=svg.colour("c2"), lw=1.5, dashes=(2, 3))
        axes.step([p.cost for p in best], [p.loss for p in best], where="post", color=svg.colour("c0"),
                  lw=1.6, dashes=(4, 3))  # fmt: skip
        axes.plot(costs, found, "o", color=svg.colour("c1"), ms=8)
        axes.plot([p.cost for p in best], [p.loss for p in best], "o", color=svg.colour("c0"), ms=9)
        axes.set_xscale("log")
        low, high = float(costs.min()) / 1.6, float(costs.max()) * (2.2 if narrow else 1.8)
        axes.set_xlim(low, high)
        marks = log_ticks(low, high, 4 if narrow else 8)
        axes.set_xticks(marks, tick_labels(marks))
        axes.set_xticks([], minor=True)
        axes.set_xlabel("microseconds a row, log scale", color=svg.colour("muted"), fontsize=12)
        drawing.value_axis(axes, [heights], logarithmic, part=part)
        for rank, point in enumerate(points, 1):
            label = str(rank) if narrow else f"{rank} {drawing.cut(point.name)}"
            axes.annotate(label, (point.cost, point.loss), (8, 5), textcoords="offset points",
                          color=svg.colour("ink"), fontsize=12)  # fmt: skip
        drawing.title(axes, loss_name + (", log scale" if logarithmic else ""), narrow)

    keys = [Key("on the frontier", "c0", "dot")]
    if len(best) < len(points):
        keys.append(Key("another is as good and as cheap", "c1", "dot"))
    if trivial is not None:
        keys.append(Key(f"best trivial predictor: {trivial[0]}", "c2", "line", "2 3"))
    alt = f"Scatter plot of {loss_name} against microseconds a row, numbered as in the table."
    return drawing.drawn("frontier", alt, draw, 330, tuple(keys))


def curves(lines: Sequence[tuple[str, Line]], loss_name: str, *, part: bool) -> Picture:
    """Running loss of several learners over rows."""
    roles = ("c0", "c2", "c3", "c4", "c5", "c6", "c7", "c1")
    dashes = ("", "7 3", "2 3", "7 3 2 3")
    looks = [(roles[i], dashes[i % 4], 2.2 if i == 0 else 1.7) for i in range(min(len(lines), COLOURS))]
    shown = list(zip(lines[:COLOURS], looks, strict=True))
    values = [drawing.settled(line) for (_, line), _ in shown]
    logarithmic = not part and drawing.spreads(values)

    def draw(axes: Any, narrow: bool) -> None:
        for (_, line), look in reversed(shown):
            drawing.line(axes, line, look)
        drawing.row_axis(axes, np.concatenate([line[0] for (_, line), _ in shown]))
        drawing.value_axis(axes, values, logarithmic, from_zero=True, part=part)
        drawing.title(axes, f"{loss_name} so far" + (", log scale" if logarithmic else ""), narrow)

    keys = tuple(Key(name, look[0], "line", look[1]) for (name, _), look in shown)
    return drawing.drawn(
        "curves", f"Running {loss_name} over rows of {', '.join(k.label for k in keys)}.", draw, 300, keys
    )


def has_windows(history: History) -> bool:
    """Whether there are windows enough for a curve."""
    line = history.windowed.get("learner")
    return history.window >= 5 and line is not None and len(line[0]) >= 3
