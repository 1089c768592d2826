"""The picture of the trade-off: ``python -m benchmarks.tradeoff_picture`` redraws it from saved results."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.reporting import RESULTS

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "sketch_tradeoff.svg"
MEASURED, PROMISED, REFERENCE = "#1f5fa8", "#c2571a", "#555555"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "kons",  # the same results give the same file
}


def draw(details: dict[str, Any], file: Path) -> None:
    """Three panels over the floor: seconds, loss above exact, growth of the regret bound."""
    outcomes = details["floors"]
    floors = [each["floor"] for each in outcomes]
    with plt.rc_context(STYLE):
        figure, (cost, excess, growth) = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12)
        figure.suptitle(f"Sketched-KONS: what a smaller floor saves and costs ({details['data']})")
        draw_cost(cost, details, floors)
        draw_excess(excess, details, floors)
        draw_growth(growth, details, floors)
        for axes in (cost, excess, growth):
            axes.set_xscale("log")
            axes.set_xticks(floors, [f"{floor:g}" for floor in floors])
            axes.minorticks_off()
            axes.set_xlabel("floor: least probability of keeping a point")
            axes.grid(alpha=0.25)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None, dpi=110)
        plt.close(figure)


def draw_cost(axes: Axes, details: dict[str, Any], floors: list[float]) -> None:
    """Seconds, with the number of points kept written at each floor."""
    outcomes = details["floors"]
    seconds = [each["seconds"] for each in outcomes]
    axes.plot(floors, seconds, "o-", color=MEASURED, label="measured (points kept)")
    for each in outcomes:
        axes.annotate(
            f"{each['kept']:,.0f}",
            (each["floor"], each["seconds"]),
            textcoords="offset points",
            xytext=(-2, 7),
            ha="right" if each["floor"] > floors[-1] else "center",
            fontsize=8.5,
            color=MEASURED,
        )
    # The promise is for the factors; drawn down to where the kernel evaluations alone take over.
    axes.plot(
        floors, [seconds[0] * floor**2 for floor in floors], "--", color=PROMISED, label="promised: x floor²"
    )
    for key, line, label in (
        ("exact_seconds", "-.", "exact KONS"),
        ("kernel_seconds", ":", "kernel evaluations alone"),
    ):
        axes.axhline(details[key], color=REFERENCE, linestyle=line, label=label)
    axes.set_yscale("log")
    axes.set_ylim(details["kernel_seconds"] / 3, max(seconds) * 12)
    axes.set_title("Time: no less than the kernel evaluations")
    axes.set_ylabel("seconds, one thread")
    axes.legend(loc="upper left", ncols=1)


def draw_excess(axes: Axes, details: dict[str, Any], floors: list[float]) -> None:
    """Cumulative loss above that of exact KONS: the regret against it."""
    draw_seeds(axes, floors, [each["excess"] for each in details["floors"]], "Sketched-KONS")
    axes.axhline(0.0, color=REFERENCE, linestyle="-.", label="exact KONS")
    axes.set_title("Loss: regret against exact KONS")
    axes.set_ylabel("cumulative loss above exact KONS")
    axes.legend(loc="upper right")


def draw_growth(axes: Axes, details: dict[str, Any], floors: list[float]) -> None:
    """R_G over that of exact KONS, beside the promised 1/floor."""
    draw_seeds(axes, floors, [each["growth"] for each in details["floors"]], "measured")
    axes.plot(floors, [1.0 / floor for floor in floors], "--", color=PROMISED, label="promised: / floor")
    axes.set_yscale("log")
    ticks = [1, 3, 10, 30, 100]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_title("Regret bound: its sum $R_G$")
    axes.set_ylabel("$R_G$, relative to exact KONS")
    axes.legend(loc="upper right")


def draw_seeds(axes: Axes, floors: list[float], values: list[list[float]], label: str) -> None:
    """A line through the means, and a dot for each seed."""
    axes.plot(floors, [statistics.mean(of_floor) for of_floor in values], "-", color=MEASURED, label=label)
    for floor, of_floor in zip(floors, values, strict=True):
        axes.plot([floor] * len(of_floor), of_floor, "o", color=MEASURED, markersize=4, alpha=0.6)


if __name__ == "__main__":
    draw(json.loads((RESULTS / "tradeoff.json").read_text(encoding="utf-8"))["details"], PICTURE)
    print(f"drawn: {PICTURE.name}")
