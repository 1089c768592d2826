"""Rows that were predicted and whose targets are not known yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.state import Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["PendingTargets"]


class _Arrays(Field):
    """Arrays by name, none of them before the first row that waits."""

    def save(self, part: Any, name: str) -> Any:
        return {key: array.copy() for key, array in getattr(part, name).items()}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        inner, count = stored.inner(key), min(sizes["rows"], part.delay)
        shapes = {
            "rows": (count, sizes["columns"]),
            "F": (count, sizes["experts"], sizes["outputs"]),
            "centres": (count,),
            "predictions": (count, sizes["outputs"]),
        }
        arrays = {each: inner.array(each, *shape) for each, shape in shapes.items()} if count else {}
        inner.finish()
        return arrays


class PendingTargets(Part):
    """At most ``delay`` rows with what was predicted of them; without a delay, none.

    ==============  =======================================================
    ``rows``        as in :class:`~kons.learners.auto.rows.Layout`
    ``F``           what the experts predicted, (rows, experts, outputs)
    ``centres``     what stacking is centred at
    ``predictions`` stacked, (rows, outputs)
    ==============  =======================================================
    """

    STATE = fields(arrays=_Arrays())

    def __init__(self, delay: int) -> None:
        self.delay = delay
        #: By name; empty before the first row.
        self.arrays: dict[str, NDArray[np.float64]] = {}

    def __len__(self) -> int:
        return len(self.arrays["rows"]) if self.arrays else 0

    def joined(self, name: str, new: NDArray[np.float64]) -> NDArray[np.float64]:
        """Those that wait, and new ones behind them."""
        return np.concatenate([self.arrays[name], new]) if len(self) else new

    def keep(self, **arrays: NDArray[np.float64]) -> None:
        """These wait from now on."""
        if self.delay:
            self.arrays = {name: array.copy() for name, array in arrays.items()}

    def add_output(self) -> None:
        """A class more, predicted as 0."""
        for name in ("F", "predictions"):
            self._change(name, lambda array: np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)]))

    def remove_experts(self, columns: Sequence[int]) -> None:
        """Without these columns of F."""
        self._change("F", lambda F: np.delete(F, columns, axis=1))

    def change_rows(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Write the rows in another way."""
        self._change("rows", change)

    def _change(self, name: str, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        if self.arrays:
            self.arrays = {**self.arrays, name: change(self.arrays[name])}
