"""How many atoms dictionaries keep along a stream, and what their spans leave of the kernel matrix.

``python docs/examples/dictionary_sizes.py`` prints the table and redraws docs/pictures/dictionary_sizes.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from showing import BLUE, GREY, ORANGE, PICTURES, PURPLE, picture, table

from kons import Gaussian
from kons.dictionaries import KORS, SQUEAK, LinearDependence, UniformSample
from kons.policies import Leverage

KERNEL = Gaussian(1.0)
MAKE = {
    "KORS": lambda: KORS(KERNEL, policy=Leverage(2.0)),
    "SQUEAK": lambda: SQUEAK(KERNEL, policy=Leverage(2.0)),
    "LinearDependence": lambda: LinearDependence(KERNEL, tolerance=1e-2),
    "UniformSample": lambda: UniformSample(KERNEL, max_atoms=100),
}
COLORS = dict(zip(MAKE, (ORANGE, BLUE, PURPLE, GREY), strict=True))
STEP = 64


def measure(rows: int = 4096) -> dict[str, tuple[list[int], float]]:
    """Of each dictionary its sizes, and the norm of what its span leaves of the kernel matrix."""
    X = np.random.default_rng(0).normal(size=(rows, 2))
    K, found = KERNEL.gram(X), {}
    for name, make in MAKE.items():
        dictionary, sizes = make(), []
        for start in range(0, rows, STEP):
            dictionary.update(X[start : start + STEP])
            sizes.append(dictionary.size)
        Z = dictionary.transform(X)
        found[name] = sizes, float(np.linalg.norm(K - Z @ Z.T, 2))
    return found


def main(rows: int = 4096, file: Path | None = PICTURES / "dictionary_sizes.svg") -> Any:
    """Measure, print, draw."""
    found = measure(rows)
    lines = [(name, sizes[-1], error) for name, (sizes, error) in found.items()]
    print(table(("dictionary", "atoms", "norm of what the span leaves"), lines))
    with picture(file, 1, "Atoms kept along a stream", width=6.0) as panel:
        for name, (sizes, _) in found.items():
            panel.plot(STEP * np.arange(1, len(sizes) + 1), sizes, color=COLORS[name], label=name)
        panel.set_xlabel("rows")
        panel.set_ylabel("atoms")
        panel.legend()
    return found


if __name__ == "__main__":
    main()
