"""The picture of the frontier: ``python -m benchmarks.frontier_picture`` redraws it from saved results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.reporting import RESULTS
from benchmarks.tradeoff_picture import STYLE

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "methods_frontier.svg"
COLOURS = {
    "columns": "#7a7a7a",
    "random features": "#2a8f5c",
    "expansion": "#c2571a",
    "span": "#1f5fa8",
    "several spans": "#8a2be2",
}
COLUMNS = 2


def draw(sets: dict[str, Any], file: Path) -> None:
    """A panel for each set: microseconds a row, loss, the frontier joined, baselines as lines."""
    lines = -(-len(sets) // COLUMNS)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(lines, COLUMNS, figsize=(12, 4.2 * lines), layout="constrained")
        panels = list(axes.ravel())
        for (name, found), panel in zip(sets.items(), panels, strict=False):
            draw_set(panel, name, found)
        for panel in panels[len(sets) :]:
            panel.axis("off")
        marks = [plt.Line2D([], [], marker="o", ls="", color=colour) for colour in COLOURS.values()]
        panels[-1].legend(marks, COLOURS, loc="center left", title="space")
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=110)
        plt.close(figure)


def draw_set(axes: Axes, name: str, found: dict[str, Any]) -> None:
    # Whoever is worse than a constant is drawn a little above it.
    worst = 1.1 * found["baselines"].get("constant", 1.0)
    learners = sorted(found["learners"], key=lambda each: each["microseconds"])
    for each in learners:
        axes.plot(each["microseconds"], min(each["loss"], worst), "o", color=COLOURS[each["family"]], ms=5)
        best = each["name"] in found["frontier"]
        axes.annotate(
            each["name"],
            (each["microseconds"], min(each["loss"], worst)),
            textcoords="offset points",
            xytext=(3, 3),
            fontsize=7.5 if best else 5.5,
            fontweight="bold" if best else "normal",
        )
    front = [each for each in learners if each["name"] in found["frontier"]]
    axes.step(
        [each["microseconds"] for each in front],
        [each["loss"] for each in front],
        where="post",
        color="#333333",
        linewidth=0.8,
    )
    for word, loss in found["baselines"].items():
        if loss > worst:
            continue
        axes.axhline(loss, color="#999999", linestyle=":", linewidth=0.8)
        axes.annotate(word, (1.0, loss), xycoords=("axes fraction", "data"), ha="right", fontsize=6.5)
    axes.set_xscale("log")
    axes.set_title(f"{name}, {found['rows']:,} rows")
    axes.set_xlabel("microseconds a row")
    axes.set_ylabel("mean squared error" if found["task"] == "regression" else "error rate")
    axes.grid(alpha=0.25)


if __name__ == "__main__":
    draw(json.loads((RESULTS / "frontier.json").read_text(encoding="utf-8"))["details"], PICTURE)
    print(f"drawn: {PICTURE.name}")
