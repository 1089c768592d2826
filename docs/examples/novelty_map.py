"""How new each point of the plane is to a detector that has learned a ring.

``python docs/examples/novelty_map.py`` redraws docs/pictures/novelty_map.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import GREY, PICTURES, picture

from kons.learners.detection import novelty_learner


def main(rows: int = 2000, file: Path | None = PICTURES / "novelty_map.svg") -> Any:
    """Learn, ask, draw; returns the novelty on a grid."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, size=rows)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(rows, 2))
    learner = novelty_learner()
    learner.advance(X, np.zeros(rows))
    ticks = np.linspace(-2, 2, 81)
    grid = np.array([(a, b) for b in ticks for a in ticks])
    novelty = learner.novelty(grid).reshape(81, 81)
    with picture(file, 1, "Novelty, log10: rows lie on a ring", width=5.0) as panel:
        shown = panel.contourf(ticks, ticks, np.log10(novelty), levels=12, cmap="Blues")
        panel.figure.colorbar(shown)
        panel.plot(*X[::10].T, ".", color=GREY, markersize=2)
        panel.set_aspect("equal")
    return novelty


if __name__ == "__main__":
    main()
