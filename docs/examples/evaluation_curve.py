"""What an evaluation draws: windowed loss along a stream, the trivial baselines beside it.

``python docs/examples/evaluation_curve.py`` prints the evaluation and redraws
docs/pictures/evaluation_curve.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from showing import PICTURES, picture

from kons import evaluate
from kons.streams import friedman


def main(rows: int = 10_000, file: Path | None = PICTURES / "evaluation_curve.svg") -> Any:
    """Evaluate, print, draw."""
    result = evaluate("auto", friedman(rows, seed=1), window=rows // 20)
    print(result)
    with picture(file, 1, "Friedman's function of ten features: windowed loss", width=8.0) as axes:
        result.plot(axes)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    return result


if __name__ == "__main__":
    main()
