"""Events: a sensor that sticks, a gap, a function that turns; what is noticed and when.

``python docs/examples/events.py`` prints the events and redraws docs/pictures/events.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, picture

from kons import AutoKONS

START = np.datetime64("2026-03-01T00:00")


def readings(rows: int = 4000, seed: int = 0) -> tuple[list[dict[str, Any]], list[float]]:
    """Hourly rows: at 3/8 the flow sensor sticks, at 1/2 it is silent, at 3/4 the pump is another one."""
    random = np.random.default_rng(seed)
    heat, flow = random.normal(60.0, 5.0, rows), random.gamma(9.0, 1.0, rows)
    pump = np.where(np.arange(rows) < 3 * rows // 4, 1.0, -1.0)
    power = 20.0 + 0.3 * heat + pump * 2.0 * np.sqrt(flow) + random.normal(size=rows)
    seen: list[float | None] = flow.tolist()
    stuck, silent = 3 * rows // 8, rows // 2
    seen[stuck : stuck + 60] = [seen[stuck]] * 60
    seen[silent : silent + 80] = [None] * 80
    names = ["day" if i % 24 < 12 else "night" for i in range(rows)]
    names[rows // 4] = "holiday"
    when = [START + np.timedelta64(i, "h") for i in range(rows)]
    values = zip(when, heat.tolist(), seen, names, strict=True)
    return [dict(zip(("when", "heat", "flow", "shift"), row, strict=True)) for row in values], power.tolist()


def measure(rows: int = 4000) -> tuple[Any, Any]:
    """The model, and the squared errors of its predictions."""
    model = AutoKONS(effort="low")
    return model, model.advance(*readings(rows)).loss


def draw(model: Any, losses: Any, file: Path | None) -> None:
    """The loss over rows, and where something was noticed."""
    with picture(file, 1, "What was noticed", width=8.2) as panel:
        window = max(len(losses) // 100, 1)
        smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
        panel.plot(np.arange(len(smooth)) + window, smooth, color=GREY, linewidth=1.0)
        top = float(smooth[window:].max())
        for at, event in enumerate(model.events):
            color = ORANGE if event.severity == "alarm" else BLUE
            panel.axvline(event.row, color=color, linewidth=1.2)
            of = f" of {event.columns[0]}" if event.columns else ""
            height = top * (1.35 - 0.12 * (at % 4))
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
            told = f"{event.kind}{of}, row {event.row:,}"
            panel.annotate(told, (event.row + 20, height), color=color, fontsize=8, bbox=box)
        panel.set_ylim(0.0, 1.45 * top)
        panel.set_xlim(0, 1.25 * len(losses))
        panel.set_xlabel("rows")
        panel.set_ylabel(f"squared error, mean of {window} rows")


def main(rows: int = 4000, file: Path | None = PICTURES / "events.svg") -> Any:
    """Measure, print, draw."""
    model, losses = measure(rows)
    for event in model.events:
        print(event)
    draw(model, losses, file)
    return model


if __name__ == "__main__":
    main()
