"""What the examples share: a table as Markdown, a picture in one style, a least-squares fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

PICTURES = Path(__file__).parents[1] / "pictures"
BLUE, ORANGE, PURPLE, GREY = "#1f5fa8", "#c2571a", "#7a4b9b", "#555555"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "kons",  # the same numbers give the same file
}


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Markdown; numbers to three digits, whole numbers whole."""
    lines = [columns, ["---"] * len(columns), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@contextmanager
def picture(file: Path | None, panels: int, title: str, width: float = 4.1) -> Iterator[Any]:
    """Axes to draw on, saved to the file at the end; None draws and saves nothing to disk."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, panels, figsize=(width * panels, 4.2), layout="constrained")
        figure.suptitle(title)
        try:
            yield axes
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                metadata = {"Date": None} if file.suffix == ".svg" else None
                figure.savefig(file, metadata=metadata, dpi=110)
        finally:
            plt.close(figure)


def plain_ticks(panel: Any) -> None:
    """Label a logarithmic y axis with 1, 2, 5, 10, 20, ... as far as it reaches."""
    low, high = panel.get_ylim()
    ticks = [digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) > 8:
        ticks = [tick for tick in ticks if np.isclose(np.log10(tick) % 1.0, 0.0)]
    panel.set_yticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    panel.minorticks_off()


def exponent(t: Any, values: Any) -> float:
    """The p of values ~ t^p, by least squares on logarithms."""
    return float(np.polyfit(np.log(t), np.log(values), 1)[0])


def unexplained(t: Any, values: Any, shape: Callable[[Any], Any]) -> float:
    """The share of the values' variance that a + b*shape(t) leaves."""
    x = shape(np.asarray(t, dtype=float))
    rest = values - np.polyval(np.polyfit(x, values, 1), x)
    return float(np.var(rest) / np.var(values))
