"""The paper's last example: one point, targets +C and -C in turn. What each learner keeps, and loses.

``python docs/examples/alternating_labels.py`` prints the table and redraws
docs/pictures/alternating_labels.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, PURPLE, picture, plain_ticks, table

from kons import KONS, EmbeddedKONS, Gaussian, SketchedKONS, Squared, Trace
from kons.policies import Leverage
from kons.streams import alternating_labels

LEARNERS = {
    "exact KONS": lambda seed: KONS(Gaussian(), Squared()),
    "Sketched-KONS": lambda seed: SketchedKONS(Gaussian(), Squared(), policy=Leverage(), seed=seed),
    "weighted sketch": lambda seed: SketchedKONS(
        Gaussian(), Squared(), policy=Leverage(), weighted=True, seed=seed
    ),
    "EmbeddedKONS": lambda seed: EmbeddedKONS(Gaussian(), Squared()),
}
COLORS = dict(zip(LEARNERS, (GREY, ORANGE, PURPLE, BLUE), strict=True))
COLUMNS = (
    "learner",
    "T",
    "points kept",
    "regret",
    "worst seed",
    "R_G",
    "R_D",
    "R_D, worst function",
    "bound holds",
)
GRID = np.linspace(-1.0, 1.0, 201)
SIGMA = 1.0 / 8.0  # of the squared loss on [-1, 1]


def account(trace: Trace) -> dict[str, float]:
    """Regret and its bound, against f = 0: the best function after an even number of rows, for any alpha.

    The bound is for every f in [-1, 1]; the worst of them shows what a proof for all f must charge as R_D.
    """
    drift = [np.sum((trace.weight - SIGMA * trace.slope**2) * (trace.prediction - f) ** 2) for f in GRID]
    regret = float(np.sum(trace.loss - 1.0))
    return {
        "kept": float(trace.size[-1]),
        "regret": regret,
        "gain": trace.gain,
        "drift": float(drift[len(GRID) // 2]),
        "largest_drift": float(max(drift)),
        "holds": float(2.0 * regret <= trace.gain + drift[len(GRID) // 2]),
    }


def measure(rows: int = 4000, seeds: int = 10) -> dict[str, list[dict[str, float]]]:
    """Means over the seeds of the coins at five even times, and the largest regret of a seed."""
    times = [2 * (rows // 2 // 2**octave) for octave in range(4, -1, -1)]
    X, y = alternating_labels(rows)
    results: dict[str, list[dict[str, float]]] = {}
    for name, make in LEARNERS.items():
        seeded = isinstance(make(0), SketchedKONS)
        traces = [make(seed).advance(X, y) for seed in range(seeds if seeded else 1)]
        for t in times:
            runs = [account(first_rows(trace, t)) for trace in traces]
            mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            worst = max(run["regret"] for run in runs)
            results.setdefault(name, []).append(mean | {"t": t, "worst_regret": worst})
    return results


def first_rows(trace: Trace, rows: int) -> Trace:
    """What the trace was after so many rows."""
    return Trace(**{name: column[:rows] for name, column in trace.columns.items()})


def show(results: dict[str, list[dict[str, float]]]) -> str:
    """The table, at the first and the last time."""
    return table(
        COLUMNS,
        [
            (
                name,
                each["t"],
                round(each["kept"]),
                each["regret"],
                each["worst_regret"],
                each["gain"],
                each["drift"],
                each["largest_drift"],
                "yes" if each["holds"] == 1.0 else "NO",
            )
            for name, over_time in results.items()
            for each in (over_time[0], over_time[-1])
        ],
    )


def draw(results: dict[str, list[dict[str, float]]], file: Path | None) -> None:
    """Points kept, regret, R_G and R_D over T."""
    quantities = {
        "kept": ("Points kept", "points in A, or atoms"),
        "regret": ("Regret", "cumulative loss above the best function's"),
        "gain": ("$R_G$: gain", "$R_G$"),
        "largest_drift": ("$R_D$: drift", "$R_D$ at the worst function in [-1, 1]"),
    }
    markers = dict(zip(results, ("o-", "s-", "^-", "D--"), strict=True))
    sizes = dict(zip(results, (9, 5, 5, 5), strict=True))  # the first lies under the last
    title = "One point, targets +1 and -1 in turn: only the span keeps one point and log T"
    with picture(file, 4, title) as axes:
        for panel, (quantity, (title, label)) in zip(axes, quantities.items(), strict=True):
            for name, over_time in results.items():
                t = [each["t"] for each in over_time]
                values = [each[quantity] for each in over_time]
                panel.plot(t, values, markers[name], color=COLORS[name], label=name, markersize=sizes[name])
            panel.set_xscale("log")
            panel.set_xticks(t, [f"{value:,}" for value in t])
            panel.minorticks_off()
            panel.set_xlabel("rows T")
            panel.set_ylabel(label)
            panel.set_title(title)
            if quantity != "largest_drift":
                panel.set_yscale("log")
                plain_ticks(panel)
        axes[0].legend(loc="center left")


def main(rows: int = 4000, seeds: int = 10, file: Path | None = PICTURES / "alternating_labels.svg") -> Any:
    """Measure, print, draw."""
    results = measure(rows, seeds)
    print(show(results))
    draw(results, file)
    return results


if __name__ == "__main__":
    main()
