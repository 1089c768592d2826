"""The paper's last example: one point, targets +C and -C in turn. What each learner keeps, and loses.

``python docs/examples/alternating_labels.py`` prints the table and redraws
docs/pictures/alternating_labels.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREEN, GREY, ORANGE, PICTURES, PURPLE, exponent, picture, table

from kons import KONS, EmbeddedKONS, Gaussian, SketchedKONS, Squared
from kons.policies import Leverage
from kons.streams import alternating_labels
from kons.theory import certify

LEARNERS = {
    "exact KONS": lambda seed: KONS(Gaussian(), Squared()),
    "Sketched-KONS": lambda seed: SketchedKONS(Gaussian(), Squared(), policy=Leverage(), seed=seed),
    "weighted sketch": lambda seed: SketchedKONS(
        Gaussian(), Squared(), policy=Leverage(), weighted=True, seed=seed
    ),
    "EmbeddedKONS": lambda seed: EmbeddedKONS(Gaussian(), Squared()),
}
COLORS = dict(zip(LEARNERS, (GREY, ORANGE, PURPLE, BLUE), strict=True))
COLUMNS = ("learner", "T", "points kept", "regret", "R_G", "R_D", "bound holds")


def measure(rows: int = 4000, seeds: int = 10) -> dict[str, list[dict[str, Any]]]:
    """Means over the seeds of the coins at five even times; the worst seed beside R_D."""
    times = [2 * (rows // 2 // 2**octave) for octave in range(4, -1, -1)]
    results: dict[str, list[dict[str, Any]]] = {}
    for name, make in LEARNERS.items():
        seeded = isinstance(make(0), SketchedKONS)
        for t in times:
            X, y = alternating_labels(t)
            runs = [certify(make(seed), X, y) for seed in range(seeds if seeded else 1)]
            results.setdefault(name, []).append(
                {
                    "t": t,
                    "kept": float(np.mean([run.trace.size[-1] for run in runs])),
                    "regret": float(np.mean([run.regret for run in runs])),
                    "gain": float(np.mean([run.gain_term for run in runs])),
                    "drift": float(np.mean([run.drift_term for run in runs])),
                    "worst_drift": max(run.drift_term for run in runs),
                    "worst_regret": max(run.regret for run in runs),
                    "holds": all(run.holds for run in runs),
                }
            )
    return results


def show(results: dict[str, list[dict[str, Any]]]) -> str:
    """The table, at the first and the last time."""
    return table(
        COLUMNS,
        [
            (
                name,
                each["t"],
                round(each["kept"]),
                each["regret"],
                each["gain"],
                each["drift"],
                "yes" if each["holds"] else "NO",
            )
            for name, over_time in results.items()
            for each in (over_time[0], over_time[-1])
        ],
    )


def draw(results: dict[str, list[dict[str, Any]]], file: Path | None) -> None:
    """Points kept, regret, R_G and R_D over T."""
    quantities = {
        "kept": ("Points kept", "points in A, or atoms"),
        "regret": ("Regret", "cumulative loss above the best function's"),
        "gain": ("$R_G$: gain", "$R_G$"),
        "drift": ("$R_D$: drift", "$R_D$ at the best function"),
    }
    markers = dict(zip(results, ("o-", "s-", "^-", "D--"), strict=True))
    with picture(file, 4, "One point, targets +1 and -1 in turn: only the span keeps one point and log T") as axes:
        for panel, (quantity, (title, label)) in zip(axes, quantities.items(), strict=True):
            for name, over_time in results.items():
                t = [each["t"] for each in over_time]
                values = [each[quantity] for each in over_time]
                panel.plot(t, values, markers[name], color=COLORS[name], label=name, markersize=5)
            panel.set_xscale("log")
            panel.set_xticks(t, [f"{value:,}" for value in t])
            panel.minorticks_off()
            panel.set_xlabel("rows T")
            panel.set_ylabel(label)
            panel.set_title(title)
            if quantity != "drift":
                panel.set_yscale("log")
        axes[0].legend(loc="center left")


def main(rows: int = 4000, seeds: int = 10, file: Path | None = PICTURES / "alternating_labels.svg") -> Any:
    """Measure, print, draw."""
    results = measure(rows, seeds)
    print(show(results))
    draw(results, file)
    return results


if __name__ == "__main__":
    main()
