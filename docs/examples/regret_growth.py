"""Regret over time: exact KONS against kernel gradient descent, for three kernels.

``python docs/examples/regret_growth.py`` prints the table and redraws docs/pictures/regret_growth.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, exponent, picture, table, unexplained

from kons import KONS, Gaussian, Squared
from kons.evaluation import KernelGradientDescent
from kons.theory import effective_dimension, hindsight

BANDWIDTHS = (2.0, 0.5, 0.2)
STEPS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
CHECKPOINTS = 9  # over four octaves
SIGMA_L2 = 2.0  # of the squared loss: sigma = 1/(8 C^2), L = 4C
COLUMNS = (
    "kernel",
    "d_eff",
    "KONS: regret",
    "exponent",
    "unexplained by log T",
    "GD c/√t: regret",
    "exponent",
    "best c",
    "GD c/t: regret",
    "exponent",
)


def coins(rows: int, seed: int) -> tuple[Any, Any]:
    """Points uniform in the square; y is +1 with probability (1 + m(x))/2, else -1, m a smooth wave."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2))
    wave = 0.4 * np.sin(np.pi * X[:, 0]) + 0.3 * X[:, 1]
    return X, np.where(rng.random(rows) < (1.0 + wave) / 2.0, 1.0, -1.0)


def measure(rows: int = 4000, seeds: int = 5) -> list[dict[str, Any]]:
    """A result per kernel: regrets at each checkpoint against the best function of those rows."""
    times = np.unique(np.geomspace(rows / 16, rows, CHECKPOINTS).astype(int))
    streams = [coins(rows, seed) for seed in range(seeds)]
    results = []
    for bandwidth in BANDWIDTHS:
        kernel = Gaussian(bandwidth)
        best = np.array([[_hindsight(kernel, X[:t], y[:t]) for t in times] for X, y in streams])
        X0 = streams[0][0]
        d_eff = [float(effective_dimension(kernel, X0[:t], 1.0 / SIGMA_L2)) for t in times]

        def regret(make: Any, best: Any = best) -> Any:
            losses = np.array([np.cumsum(make().advance(X, y).loss)[times - 1] for X, y in streams])
            return (losses - best).mean(axis=0)

        newton = regret(lambda kernel=kernel: KONS(kernel, Squared()))
        first = {}
        for power in (0.5, 1.0):
            tried = {
                c: regret(
                    lambda kernel=kernel, c=c, power=power: KernelGradientDescent(
                        kernel, Squared(), step=lambda t: c * t**-power
                    )
                )
                for c in (STEPS if power == 0.5 else tuple(8 * c for c in STEPS))
            }
            chosen = min(tried, key=lambda c: tried[c][-1])
            first[power] = {"c": chosen, "regret": tried[chosen]}
        results.append(
            {
                "kernel": f"Gaussian({bandwidth:g})",
                "t": times,
                "d_eff": np.array(d_eff),
                "newton": newton,
                "root": first[0.5],
                "inverse": first[1.0],
            }
        )
    return results


def _hindsight(kernel: Any, X: Any, y: Any) -> float:
    return hindsight(kernel, Squared(), X, y).loss


def show(results: list[dict[str, Any]]) -> str:
    """The table."""
    return table(
        COLUMNS,
        [
            (
                each["kernel"],
                each["d_eff"][-1],
                each["newton"][-1],
                exponent(each["t"], each["newton"]),
                f"{unexplained(each['t'], each['newton'], np.log):.1%}",
                each["root"]["regret"][-1],
                exponent(each["t"], each["root"]["regret"]),
                each["root"]["c"],
                each["inverse"]["regret"][-1],
                exponent(each["t"], each["inverse"]["regret"]),
            )
            for each in results
        ],
    )


def draw(results: list[dict[str, Any]], file: Path | None) -> None:
    """A panel per kernel, on logarithmic axes."""
    rows = results[0]["t"][-1]
    with picture(file, len(results), f"Regret over {rows:,} rows: second against first order") as axes:
        top = max(each["root"]["regret"].max() for each in results)
        low = min(each["newton"].min() for each in results)
        for panel, each in zip(axes, results, strict=True):
            t = each["t"]
            for values, color, name in (
                (each["root"]["regret"], ORANGE, "gradient descent, c/√t"),
                (each["newton"], BLUE, "exact KONS"),
            ):
                panel.plot(t, values, "o-", color=color, label=f"{name}: T^{exponent(t, values):.2f}")
            root = each["root"]["regret"]
            panel.plot(t, root[-1] * np.sqrt(t / t[-1]), ":", color=GREY, label="√T")
            growth = each["d_eff"] * np.log(t)
            panel.plot(t, each["newton"][-1] * growth / growth[-1], "--", color=GREY, label="d_eff log T")
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylim(low / 2, top * 3)
            panel.set_xticks(t[::2], [f"{value:,}" for value in t[::2]])
            panel.minorticks_off()
            panel.set_xlabel("rows T")
            panel.set_title(f"{each['kernel']}: d_eff = {each['d_eff'][-1]:.0f}")
            panel.legend(loc="upper left")
        axes[0].set_ylabel("regret: cumulative squared loss\nabove the best function in hindsight")


def main(rows: int = 4000, seeds: int = 5, file: Path | None = PICTURES / "regret_growth.svg") -> Any:
    """Measure, print, draw."""
    results = measure(rows, seeds)
    print(show(results))
    draw(results, file)
    return results


if __name__ == "__main__":
    main()
