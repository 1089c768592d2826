"""Regret over time: exact KONS against kernel gradient descent, for three kernels.

``python docs/examples/regret_growth.py`` prints the table and redraws docs/pictures/regret_growth.svg.
With ``sine`` behind it, the table for a smooth target, where the second order does not pay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, exponent, picture, plain_ticks, table, unexplained

from kons import KONS, Gaussian, Squared
from kons.evaluation import KernelGradientDescent
from kons.theory import Hindsight, hindsight

BANDWIDTHS = (0.7, 0.4, 0.2)
STEPS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
CHECKPOINTS = 9  # over four octaves
RIDGE = 0.5  # alpha/(sigma L^2) of Theorem 1, with alpha = 1, sigma = 1/(8 C^2), L = 4C
COLUMNS = (
    "kernel",
    "d_eff",
    "KONS: regret",
    "exponent",
    "that of d_eff log T",
    "unexplained by d_eff log T",
    "GD c/√t: regret",
    "exponent",
    "best c",
    "GD c/t: regret",
    "exponent",
)


def coins(rows: int, seed: int, shape: str = "band") -> tuple[Any, Any]:
    """Points uniform in [-1, 1]; y is +1 with probability (1 + m(x))/2, else -1.

    A band has m = 0.8 for |x| > 0.4 and -0.8 inside; a sine has m = 0.8 sin(pi x).
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 1))
    x = X[:, 0]
    mean = 0.8 * (np.sin(np.pi * x) if shape == "sine" else np.sign(np.abs(x) - 0.4))
    return X, np.where(rng.random(rows) < (1.0 + mean) / 2.0, 1.0, -1.0)


def measure(rows: int = 4000, seeds: int = 5, shape: str = "band") -> list[dict[str, Any]]:
    """A result per kernel: regrets at each checkpoint against the best function of those rows."""
    times = np.unique(np.rint(np.geomspace(rows / 16, rows, CHECKPOINTS)).astype(int))
    streams = [coins(rows, seed, shape) for seed in range(seeds)]
    return [_measure(Gaussian(bandwidth), times, streams) for bandwidth in BANDWIDTHS]


def _measure(kernel: Gaussian, times: Any, streams: Any) -> dict[str, Any]:
    solutions = [[hindsight(kernel, Squared(), X[:t], y[:t]) for t in times] for X, y in streams]
    best = np.array([[solution.loss for solution in of_stream] for of_stream in solutions])

    def regret(make: Callable[[], Any]) -> Any:
        losses = np.array([np.cumsum(make().advance(X, y).loss)[times - 1] for X, y in streams])
        return (losses - best).mean(axis=0)

    def descend(power: float, factor: float) -> dict[str, Any]:
        """The best c of the grid in hindsight: more than a user could know."""
        tried = {
            factor * c: regret(
                lambda c=c: KernelGradientDescent(kernel, Squared(), step=lambda t: factor * c * t**-power)
            )
            for c in STEPS
        }
        c = min(tried, key=lambda c: tried[c][-1])
        return {"c": c, "regret": tried[c]}

    X = streams[0][0]
    return {
        "kernel": f"Gaussian({kernel.bandwidth:g})",
        "t": times,
        "d_eff": np.array(
            [_dimension(solution, X[:t]) for solution, t in zip(solutions[0], times, strict=True)]
        ),
        "newton": regret(lambda: KONS(kernel, Squared())),
        "root": descend(0.5, 1.0),
        "inverse": descend(1.0, 8.0),
    }


def _dimension(solution: Hindsight, X: Any) -> float:
    """``effective_dimension``, in the coordinates that the solution already has."""
    Z = solution.embedding.coordinates(X)
    eigenvalues = np.linalg.eigvalsh(Z.T @ Z)
    return float(np.sum(eigenvalues / (eigenvalues + RIDGE)))


def growth_of(each: dict[str, Any]) -> Any:
    """d_eff(T) log T, what Theorem 1 lets the regret grow with."""
    return each["d_eff"] * np.log(each["t"])


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
                exponent(each["t"], growth_of(each)),
                f"{unexplained(growth_of(each), each['newton'], np.asarray):.1%}",
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
            growth = growth_of(each)
            panel.plot(t, each["newton"][-1] * growth / growth[-1], "--", color=GREY, label="d_eff log T")
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_ylim(low / 1.5, top * 4)
            plain_ticks(panel)
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
    if "sine" in sys.argv[1:]:
        print(show(measure(shape="sine")))
    else:
        main()
