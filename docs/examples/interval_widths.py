"""Intervals that are as wide as each row deserves, beside those as wide everywhere.

``python docs/examples/interval_widths.py`` redraws docs/pictures/interval_widths.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, picture

from kons import AutoKONS


def main(rows: int = 3000, file: Path | None = PICTURES / "interval_widths.svg") -> Any:
    """Learn, ask, draw; returns the intervals."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(rows, 1))
    y = np.sin(2 * x[:, 0]) + (0.05 + 0.4 * (x[:, 0] > 0)) * rng.normal(size=rows)
    model = AutoKONS()
    model.advance(x, y)
    grid = np.linspace(-4, 4, 161)[:, None]
    lower, upper = model.predict_interval(grid).T
    half = np.quantile(abs(y - model.predict(x)), 0.9)
    with picture(file, 1, "90 % intervals: of each row, and as wide everywhere", width=6.5) as panel:
        panel.plot(x[::4, 0], y[::4], ".", color=GREY, markersize=2, label="rows")
        panel.fill_between(grid[:, 0], lower, upper, color=BLUE, alpha=0.25, label="predict_interval")
        panel.plot(grid[:, 0], model.predict(grid), color=BLUE)
        for side in (-half, half):
            panel.plot(grid[:, 0], model.predict(grid) + side, "--", color=ORANGE, linewidth=1)
        panel.set_xlabel("x (rows lie between -2 and 2)")
        panel.legend()
    return lower, upper


if __name__ == "__main__":
    main()
