"""How new the rows of a run without a target were: their histogram, and the most novel of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.state import Array, Part, fields

__all__ = ["Novelties"]

#: Bins a decade, and the powers of ten between which they lie: from rounding to beyond k/alpha.
PER_DECADE, LEAST, MOST = 10, -9, 3
BINS = PER_DECADE * (MOST - LEAST)
#: Rows that are named, with their cells.
NAMED = 10


class Novelties(Part):
    """Constant memory; rows of the warm-up, whose novelty is NaN, do not count.

    >>> seen = Novelties()
    >>> seen.add(np.array([0.01, np.nan, 0.02, 5.0]), np.arange(4), np.arange(2, 6))
    >>> seen.figures()["largest"], seen.figures()["most_novel"][0]["line"]
    (5.0, 5)
    """

    STATE = fields(counts=Array(BINS, at_least=0.0), largest=Array("named", 3))

    def __init__(self) -> None:
        self.counts: Vector = np.zeros(BINS)
        self.largest: Matrix = np.empty((0, 3))  # novelty, row and line, the largest first

    def add(self, novelty: Vector, rows: NDArray[np.int64], lines: NDArray[np.int64]) -> None:
        """Take rows that come next."""
        known = np.isfinite(novelty)
        told = np.column_stack([novelty, rows, lines])[known].astype(np.float64)
        exponents = np.log10(np.maximum(told[:, 0], 10.0**LEAST))
        bins = np.clip(((exponents - LEAST) * PER_DECADE).astype(int), 0, BINS - 1)
        self.counts = self.counts + np.bincount(bins, minlength=BINS)
        every = np.concatenate([self.largest, told])
        self.largest = every[np.argsort(-every[:, 0], kind="stable")[:NAMED]]

    def quantile(self, share: float) -> float:
        """What so many rows do not exceed, to a tenth or so; NaN before any row counts."""
        total = np.cumsum(self.counts)
        if not total[-1]:
            return math.nan
        at = int(np.searchsorted(total, share * total[-1]))
        middle = 10.0 ** (LEAST + (at + 0.5) / PER_DECADE)
        return float(min(middle, self.largest[0, 0]))

    def figures(self) -> dict[str, Any]:
        """As JSON holds them."""
        named = zip(*self.largest.T.tolist(), strict=True) if len(self.largest) else ()
        filled = np.flatnonzero(self.counts)
        part = slice(filled[0], filled[-1] + 1) if len(filled) else slice(0, 0)
        ends = 10.0 ** (LEAST + np.arange(BINS + 1) / PER_DECADE)
        return {
            "rows": int(self.counts.sum()),
            "median": self.quantile(0.5),
            "quantile_99": self.quantile(0.99),
            "largest": float(self.largest[0, 0]) if len(self.largest) else math.nan,
            "histogram": [
                {"from": float(low), "to": float(high), "rows": int(rows)}
                for low, high, rows in zip(ends[:-1][part], ends[1:][part], self.counts[part], strict=True)
            ],
            "most_novel": [
                {"line": int(line), "row": int(row), "novelty": value} for value, row, line in named
            ],
        }
