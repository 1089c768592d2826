"""The picture of the frontier: ``python -m benchmarks.frontier_picture`` redraws it from saved results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter

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
#: Where a name may stand beside its mark, in points, the best first; a negative x: it ends there.
PLACES = ((4, 2), (4, -8), (-4, 2), (-4, -8), (4, 10), (-4, 10), (4, -16), (-4, -16), (4, 18), (4, -24))


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
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.15)
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
        axes.annotate(word, (0.995, loss), xycoords=("axes fraction", "data"), ha="right", fontsize=6.5)
    name_marks(axes, learners, found["frontier"], worst)
    axes.set_title(f"{name}, {found['rows']:,} rows")
    axes.set_xlabel("microseconds a row")
    axes.set_ylabel("mean squared error" if found["task"] == "regression" else "error rate")
    axes.grid(alpha=0.25)
    axes.yaxis.set_major_formatter(FormatStrFormatter("%.4g"))
    axes.yaxis.set_minor_formatter(FormatStrFormatter("%.4g"))
    axes.tick_params(axis="y", which="minor", labelsize=6.5)


def name_marks(axes: Axes, learners: list[dict[str, Any]], frontier: list[str], worst: float) -> None:
    """Names beside their marks, those of the frontier first and bold, each where no other stands."""
    points_a_pixel = 72.0 / axes.figure.dpi
    marks = [(each["microseconds"], min(each["loss"], worst)) for each in learners]
    spots = axes.transData.transform(marks) * points_a_pixel
    taken = [(x - 3.0, y - 3.0, x + 3.0, y + 3.0) for x, y in spots]
    order = sorted(range(len(learners)), key=lambda i: learners[i]["name"] not in frontier)
    for i in order:
        name, bold = learners[i]["name"], learners[i]["name"] in frontier
        size = 7.5 if bold else 6.0
        width = 0.62 * size * len(name)

        def box(dx: float, dy: float, at: Any = spots[i], width: float = width, size: float = size) -> Any:
            left = at[0] + dx - (width if dx < 0 else 0.0)
            return left, at[1] + dy, left + width, at[1] + dy + size

        def crossed(place: tuple[int, int], own: int = i, box: Any = box) -> float:
            a = box(*place)
            return sum(
                max(min(a[2], b[2]) - max(a[0], b[0]), 0.0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0.0)
                for j, b in enumerate(taken)
                if j != own
            )

        dx, dy = min(PLACES, key=crossed)
        taken.append(box(dx, dy))
        axes.annotate(
            name,
            marks[i],
            textcoords="offset points",
            xytext=(dx, dy),
            ha="right" if dx < 0 else "left",
            fontsize=size,
            fontweight="bold" if bold else "normal",
        )


if __name__ == "__main__":
    draw(json.loads((RESULTS / "frontier.json").read_text(encoding="utf-8"))["details"], PICTURE)
    print(f"drawn: {PICTURE.name}")
