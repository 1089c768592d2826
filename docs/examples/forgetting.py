"""Forgetting: what it saves where the answer changes, and what it costs where it does not.

``python docs/examples/forgetting.py`` prints the table and redraws docs/pictures/forgetting.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from showing import BLUE, GREY, ORANGE, PICTURES, picture, table

from kons import evaluate
from kons.recipes import for_task
from kons.streams import friedman, switching

STREAMS = {"switching": switching, "friedman": friedman}
REMEMBERED = {1.0: GREY, 0.999: BLUE, 0.99: ORANGE}


def measure(rows: int = 8000, seed: int = 1) -> dict[tuple[str, float], Any]:
    """An evaluation per stream and factor."""
    return {
        (name, factor): evaluate(
            for_task("regression", "embedded", forgetting=factor, warmup=min(500, rows // 4)),
            stream(rows, seed=seed),
            window=rows // 20,
        )
        for name, stream in STREAMS.items()
        for factor in REMEMBERED
    }


def show(results: dict[tuple[str, float], Any]) -> str:
    """The table."""
    lines = [(name, f"{factor:g}", result.loss) for (name, factor), result in results.items()]
    return table(("stream", "forgetting", "mean squared error"), lines)


def draw(results: dict[tuple[str, float], Any], file: Path | None) -> None:
    """The loss along both streams, a curve per factor."""
    with picture(file, 2, "Forgetting, by the factor a row") as axes:
        titles = ("Two answers take turns", "One answer")
        for panel, name, title in zip(axes, STREAMS, titles, strict=True):
            for factor, color in REMEMBERED.items():
                result = results[name, factor]
                panel.plot(result.checkpoints, result.curves["loss"], color=color, label=f"{factor:g}")
            panel.set_title(title)
            panel.set_yscale("log")
            panel.set_xlabel("rows")
            panel.set_ylabel(f"mean squared error, last {result.window:,} rows")
        axes[1].legend(title="forgetting")


def main(rows: int = 8000, file: Path | None = PICTURES / "forgetting.svg") -> Any:
    """Measure, print, draw."""
    results = measure(rows)
    print(show(results))
    draw(results, file)
    return results


if __name__ == "__main__":
    main()
