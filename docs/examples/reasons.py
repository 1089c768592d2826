"""Reasons: what each column adds to the prediction of one piece of the plant, as a waterfall.

``python docs/examples/reasons.py`` prints the reasons and redraws docs/pictures/reasons.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, picture

from kons import AutoKONS

PIECE = {"temperature": 182.0, "pressure": 3.2, "speed": 12.0, "material": "copper"}


def pieces(rows: int = 2000, seed: int = 0) -> tuple[list[dict[str, Any]], list[float]]:
    """Pieces of a plant and their strength: heat helps up to a point, and copper minds pressure."""
    random = np.random.default_rng(seed)
    heat, pressure = random.normal(150.0, 15.0, rows), random.gamma(9.0, 0.25, rows)
    speed, copper = random.uniform(5.0, 20.0, rows), random.uniform(size=rows) < 0.3
    strength = 40.0 - ((heat - 160.0) / 8.0) ** 2 - np.where(copper, 4.0, 0.5) * (pressure - 2.0)
    strength = strength + 0.2 * speed + random.normal(size=rows)
    names = np.where(copper, "copper", "steel").tolist()
    values = zip(heat.tolist(), pressure.tolist(), speed.tolist(), names, strict=True)
    return [dict(zip(PIECE, row, strict=True)) for row in values], strength.tolist()


def measure(rows: int = 2000) -> Any:
    """Why the piece is predicted as it is."""
    model = AutoKONS()
    model.advance(*pieces(rows))
    return model.explain(PIECE)


def draw(reasons: Any, file: Path | None) -> None:
    """From the typical piece to this one, a bar a column."""
    steps = reasons.largest(len(reasons.contributions))
    with picture(file, 1, "Why this piece is weak", width=7.0) as panel:
        at = reasons.baseline
        panel.barh(0, at, color=GREY, height=0.6)
        names = ["a typical piece"]
        for place, (name, value) in enumerate(steps, start=1):
            panel.barh(place, value, left=at, color=BLUE if value >= 0.0 else ORANGE, height=0.6)
            panel.plot([at, at], [place - 1, place + 0.3], color=GREY, linewidth=0.8)
            at += value
            told = PIECE.get(name)
            told = f" = {told:g}" if isinstance(told, float) else "" if told is None else f" = {told}"
            typical = reasons.typical.get(name)
            usual = f"{typical:.3g}" if isinstance(typical, float) else typical
            names.append(f"{name}{told}" + ("" if typical is None else f" (typical: {usual})"))
            panel.annotate(f" {value:+.1f}", (max(at, at - value), place), va="center", fontsize=9)
        panel.barh(len(names), at, color=GREY, height=0.6)
        panel.set_yticks(range(len(names) + 1), [*names, "this piece"])
        panel.invert_yaxis()
        panel.set_xlabel("predicted strength")
        panel.set_xlim(0.0, 1.1 * max(reasons.baseline, reasons.prediction))
        panel.grid(axis="y", visible=False)


def main(rows: int = 2000, file: Path | None = PICTURES / "reasons.svg") -> Any:
    """Measure, print, draw."""
    reasons = measure(rows)
    print(reasons)
    draw(reasons, file)
    return reasons


if __name__ == "__main__":
    main()
