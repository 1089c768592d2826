"""The floor of Sketched-KONS: what it saves in work, and what it costs in regret.

``python docs/examples/sketch_cost.py`` prints the table and redraws docs/pictures/sketch_cost.svg. Work is
counted, not timed: sum_t B_t^2, the numbers that the solves with A touch (seconds: docs/pictures/
sketch_tradeoff.svg, by ``python -m benchmarks tradeoff``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from regret_growth import coins
from showing import BLUE, GREY, ORANGE, PICTURES, picture, plain_ticks, table

from kons import KONS, Gaussian, SketchedKONS, Squared
from kons.policies import Leverage
from kons.theory import hindsight

FLOORS = (1.0, 0.3, 0.1, 0.03, 0.01)
COLUMNS = (
    "floor",
    "points in A",
    "work ÷ exact",
    "promised",
    "regret",
    "regret ÷ exact",
    "R_G ÷ exact",
    "promised",
)


def measure(rows: int = 4000, seeds: int = 5, bandwidth: float = 0.4) -> dict[str, Any]:
    """Means over the seeds, which draw the stream and the coins."""
    kernel = Gaussian(bandwidth)
    streams = [coins(rows, seed) for seed in range(seeds)]
    best = [hindsight(kernel, Squared(), X, y).loss for X, y in streams]

    def run(make: Any) -> dict[str, float]:
        runs = []
        for seed, ((X, y), least) in enumerate(zip(streams, best, strict=True)):
            trace = make(seed).advance(X, y)
            work = float(np.sum(trace["size"].astype(float) ** 2))
            runs.append((trace["size"][-1], work, trace["loss"].sum() - least, trace.gain))
        names = ("kept", "work", "regret", "gain")
        return dict(zip(names, np.mean(runs, axis=0).tolist(), strict=True))

    # The coins' seeds differ from the streams': shared numbers are outside every theorem.
    return {
        "rows": rows,
        "exact": run(lambda _seed: KONS(kernel, Squared())),
        "floors": {
            floor: run(
                lambda seed, floor=floor: SketchedKONS(
                    kernel, Squared(), policy=Leverage(floor=floor), seed=1000 + seed
                )
            )
            for floor in FLOORS
        },
    }


def show(result: dict[str, Any]) -> str:
    """The table."""
    exact = result["exact"]
    return table(
        COLUMNS,
        [
            (
                f"{floor:g}",
                round(each["kept"]),
                each["work"] / exact["work"],
                floor**2,
                each["regret"],
                each["regret"] / exact["regret"],
                each["gain"] / exact["gain"],
                1.0 / floor,
            )
            for floor, each in result["floors"].items()
        ],
    )


def draw(result: dict[str, Any], file: Path | None) -> None:
    """Work, regret and R_G over the floor, on logarithmic axes."""
    floors, exact = list(result["floors"]), result["exact"]
    promised = {"work": [floor**2 for floor in floors], "regret": None, "gain": [1 / f for f in floors]}
    titles = {
        "work": ("Work", "Σ B² relative to exact KONS"),
        "regret": ("Regret", "regret relative to exact KONS"),
        "gain": ("Regret bound: its sum $R_G$", "$R_G$ relative to exact KONS"),
    }
    with picture(file, 3, f"Sketched-KONS over {result['rows']:,} rows: a smaller floor") as axes:
        for panel, (name, (title, label)) in zip(axes, titles.items(), strict=True):
            values = [each[name] / exact[name] for each in result["floors"].values()]
            panel.plot(floors, values, "o-", color=BLUE, label="measured")
            if name == "work":
                for floor, value, each in zip(floors, values, result["floors"].values(), strict=True):
                    note = f"{each['kept']:,.0f} points"
                    panel.annotate(note, (floor, value), textcoords="offset points", xytext=(-6, 4),
                                   ha="right", fontsize=8.5, color=BLUE)  # fmt: skip
            if promised[name] is not None:
                text = "promised: floor²" if name == "work" else "promised: 1/floor"
                panel.plot(floors, promised[name], "--", color=ORANGE, label=text)
            panel.axhline(1.0, color=GREY, linestyle=":", label="exact KONS")
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlim(floors[-1] / (4 if name == "work" else 1.3), 1.3)
            panel.set_xticks(floors, [f"{floor:g}" for floor in floors])
            if name != "work":
                panel.set_ylim(0.8, 1.25 * max(values if name == "regret" else promised[name]))
            plain_ticks(panel)
            panel.set_xlabel("floor γ: least probability of entering A")
            panel.set_ylabel(label)
            panel.set_title(title)
            panel.legend(loc="lower right" if name == "work" else "upper right")


def main(rows: int = 4000, seeds: int = 5, file: Path | None = PICTURES / "sketch_cost.svg") -> Any:
    """Measure, print, draw."""
    result = measure(rows, seeds)
    print(show(result))
    draw(result, file)
    return result


if __name__ == "__main__":
    main()
