"""A plant, made up: the file that the examples on the site read.

``python docs/examples/plant.py`` writes plant.csv here: temperature, pressure, speed and material of 1,500
pieces in the order they were made, and what is to be predicted, ``strength`` (a number) and ``passed``
(yes or no).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

MATERIALS = {"birch": 0.0, "oak": 4.0, "pine": -3.0}


def write(path: Path | str = "plant.csv", rows: int = 1500, seed: int = 0) -> Path:
    """Write the file; the same seed gives the same bytes."""
    rng = np.random.default_rng(seed)
    material, heat, squeeze = "birch", 0.0, 0.0  # they follow the pieces before
    lines = ["temperature,pressure,speed,material,strength,passed"]
    for _ in range(rows):
        heat = 0.9 * heat + 0.6 * rng.normal()
        squeeze = 0.8 * squeeze + 0.6 * rng.normal()
        speed = rng.uniform(20, 40)
        if rng.random() < 0.05:
            material = list(MATERIALS)[rng.integers(len(MATERIALS))]
        strength = 30 + MATERIALS[material] + 8 * np.sin(1.5 * heat) * np.cos(squeeze) - 0.2 * speed
        strength += rng.normal()
        lines.append(
            f"{180 + 6 * heat:.1f},{5 + squeeze / 2:.2f},{speed:.1f},{material},{strength:.1f},"
            f"{'yes' if strength > 24 else 'no'}"
        )
    path = Path(path)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    print(write())
