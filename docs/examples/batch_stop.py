"""A data set learned in passes, until the leverage says that there is nothing left to learn.

``python docs/examples/batch_stop.py`` prints the table and redraws docs/pictures/batch_stop.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, picture, plain_ticks, table

from kons import KONS, Gaussian, Squared
from kons.evaluation import fit_batch

THRESHOLDS = (0.3, 0.1, 0.03, 0.01, 0.003)
PASSES = 8
COLUMNS = (
    "curvature",
    "threshold",
    "rows learned",
    "passes",
    "points in A",
    "rows saved",
    "mean loss",
    "above all passes",
)


def noisy_wave(rows: int, seed: int) -> tuple[Any, Any]:
    """Points uniform in the square, a smooth wave, and noise; targets within [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (rows, 2))
    return X, 0.5 * np.sin(np.pi * X[:, 0]) + 0.3 * X[:, 1] + rng.uniform(-0.2, 0.2, rows)


def measure(rows: int = 500, seed: int = 0) -> list[dict[str, Any]]:
    """A result per curvature and threshold; the mean loss is that of the last function, on all rows."""
    X, y = noisy_wave(rows, seed)
    results = []
    for curvature in ("gradient", "hessian"):

        def fit(threshold: float, patience: int, curvature: Any = curvature) -> dict[str, Any]:
            learner = KONS(Gaussian(0.5), Squared(), regularization=0.1, second_order=curvature)
            fitted = fit_batch(
                learner, X, y, threshold=threshold, patience=patience, max_passes=PASSES, seed=seed
            )
            loss = float(np.mean((learner.predict(X) - y) ** 2))
            return {"fit": fitted, "size": learner.size, "loss": loss}

        whole = fit(1.0, PASSES * rows + 1)  # never calm for so long: all passes
        for threshold in THRESHOLDS:
            stopped = fit(threshold, rows // 5)
            results.append(
                {
                    "curvature": curvature,
                    "threshold": threshold,
                    "cost": stopped["loss"] - whole["loss"],
                    **stopped,
                }
            )
    return results


def show(results: list[dict[str, Any]]) -> str:
    """The table."""
    return table(
        COLUMNS,
        [
            (
                each["curvature"],
                f"{each['threshold']:g}",
                each["fit"].rows_learned,
                each["fit"].passes if each["fit"].stopped else f"{PASSES} (all)",
                each["size"],
                f"{each['fit'].rows_saved / (PASSES * each['fit'].rows):.0%}",
                f"{each['loss']:.5f}",
                f"{each['cost']:+.5f}",
            )
            for each in results
        ],
    )


def draw(results: list[dict[str, Any]], file: Path | None) -> None:
    """Rows learned, and loss above that of all passes, over the threshold."""
    rows = results[0]["fit"].rows
    with picture(file, 2, f"{rows:,} rows, at most {PASSES} passes: stopping on the leverage") as axes:
        for curvature, color in (("gradient", BLUE), ("hessian", ORANGE)):
            of = [each for each in results if each["curvature"] == curvature]
            thresholds = [each["threshold"] for each in of]
            axes[0].plot(
                thresholds, [each["fit"].rows_learned for each in of], "o-", color=color, label=curvature
            )
            axes[1].plot(thresholds, [each["cost"] for each in of], "o-", color=color, label=curvature)
        axes[0].axhline(PASSES * rows, color=GREY, linestyle=":", label="all passes")
        axes[0].axhline(rows, color=GREY, linestyle="--", label="one pass")
        axes[0].set_yscale("log")
        axes[0].set_ylim(rows / 2.2, PASSES * rows * 1.3)
        axes[1].axhline(0.0, color=GREY, linestyle=":", label="all passes")
        axes[0].set_ylabel("rows learned (= points in A)")
        axes[1].set_ylabel("mean squared loss above that of all passes")
        plain_ticks(axes[0])
        for panel, title in zip(axes, ("What it saves", "What it costs"), strict=True):
            panel.set_xscale("log")
            panel.set_xticks(THRESHOLDS, [f"{value:g}" for value in THRESHOLDS])
            panel.minorticks_off()
            panel.set_xlabel("threshold on the leverage")
            panel.set_title(title)
            panel.legend()


def main(rows: int = 500, file: Path | None = PICTURES / "batch_stop.svg") -> Any:
    """Measure, print, draw."""
    results = measure(rows)
    print(show(results))
    draw(results, file)
    return results


if __name__ == "__main__":
    main()
