"""Loss against time: which learners no other beats in both, as a picture."""

from __future__ import annotations

import math
from typing import Any

from kons.report.numbers import log_ticks, tick_labels
from kons.runs import Comparison

__all__ = ["draw"]

BEST, OTHER, TRIVIAL = "#4477aa", "#888888", "#cc6677"
LINE = 11  # points from one line of text to the next


def draw(comparison: Comparison, ax: Any) -> None:
    """Each learner a point, the frontier a line, the best trivial predictor a dotted one."""
    summary = comparison.summary()
    best = comparison.frontier
    points = {name: (result.microseconds_per_row, result.loss) for name, result in comparison.results.items()}
    known = {name: loss for name, loss in comparison.baselines.items() if math.isfinite(loss)}
    ax.plot(*zip(*(points[name] for name in best), strict=True), color=BEST, linewidth=1.2, zorder=1)
    for name, (cost, loss) in points.items():
        ax.scatter([cost], [loss], color=BEST if name in best else OTHER, zorder=2)
    if known:
        trivial = min(known, key=known.__getitem__)
        ax.axhline(known[trivial], linestyle=":", color=TRIVIAL, linewidth=1.2)
        ax.text(
            1.0, known[trivial], f"best baseline: {trivial} ", color=TRIVIAL, fontsize=8,
            ha="right", va="bottom", transform=ax.get_yaxis_transform(),
        )  # fmt: skip
    ax.set_xscale("log")
    if all(loss > 0.0 for _, loss in points.values()):
        ax.set_yscale("log")
    ax.margins(x=0.2, y=0.15)
    _label(ax, points, best)
    _plain_ticks(ax)
    ax.set_xlabel("microseconds a row")
    ax.set_ylabel(_as_is(f"{summary['loss_name']} of {summary['target']}"))
    ax.set_title(f"{summary['rows']:,} rows; down is better, left is cheaper", fontsize=10)


def _label(ax: Any, points: dict[str, tuple[float, float]], best: list[str]) -> None:
    """Names beside their points; where one would lie on another, a line higher."""
    taken: list[tuple[float, float, float]] = []
    for name, point in sorted(points.items(), key=lambda item: item[1]):
        x, y = ax.transData.transform(point) * 72.0 / ax.figure.dpi
        at = y + 5.0
        while any(x < right and x + 5.0 * len(name) > left and abs(at - other) < LINE
                  for left, right, other in taken):  # fmt: skip
            at += LINE
        taken.append((x, x + 5.0 * len(name), at))
        ax.annotate(
            _as_is(name), point, xytext=(6.0, at - y), textcoords="offset points", fontsize=8,
            color="black" if name in best else OTHER,
        )  # fmt: skip


def _plain_ticks(ax: Any) -> None:
    """At round numbers, without powers of ten."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "log":
            found = log_ticks(low, high)
            axis.set_ticks(found, labels=tick_labels(found))
            axis.set_ticks([], minor=True)


def _as_is(text: str) -> str:
    """A dollar sign would begin a formula."""
    return text.replace("$", r"\$")
