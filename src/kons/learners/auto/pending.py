"""Rows that were predicted and whose targets are not known yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.state import Count, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Asked", "PendingTargets"]


class Asked(NamedTuple):
    """Rows as they were predicted; or one of them, without the first axis."""

    rows: Matrix
    """As in :class:`~kons.learners.auto.rows.Layout`."""
    F: NDArray[np.float64]
    """What the experts predicted, (rows, experts, outputs)."""
    centres: Matrix
    """What the stacking of each target is centred at, (rows, targets)."""
    predictions: Matrix
    """Stacked, (rows, outputs)."""

    @classmethod
    def stacked(cls, records: Iterable[Asked]) -> Asked:
        """Records of single rows as one of many."""
        return cls(*(np.array(column) for column in zip(*records, strict=True)))

    def part(self, rows: slice) -> Asked:
        """Some of the rows."""
        return Asked(*(column[rows] for column in self))

    def then(self, others: Asked) -> Asked:
        """These rows, and others behind them."""
        if not len(self.rows):
            return others
        return Asked(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))

    def one_by_one(self) -> list[Asked]:
        """A record of each row."""
        return [Asked(*record) for record in zip(*self, strict=True)]


class _Records(Field):
    """Records by the number that each was given: numbers, and arrays of all rows."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        records = getattr(part, name)
        asked = Asked.stacked(records.values()) if records else None
        arrays = {} if asked is None else asked._replace(centres=asked.centres.ravel())._asdict()
        return {"numbers": np.array([*records], dtype=np.float64), **arrays}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        inner = stored.inner(key)
        numbers = inner.array("numbers", None, at_least=0.0)
        count, outputs = len(numbers), sizes["outputs"]
        if count and ((np.diff(numbers) <= 0.0).any() or (numbers != np.floor(numbers)).any()):
            raise stored.error("rows that wait are not numbered in order")
        shapes = {
            "rows": (count, sizes["columns"]),
            "F": (count, sizes["experts"], outputs),
            "centres": (count * sizes["targets"],),
            "predictions": (count, outputs),
        }
        arrays = [inner.array(each, *shape) for each, shape in shapes.items()] if count else []
        inner.finish()
        records = []
        if arrays:
            asked = Asked(*arrays)
            records = asked._replace(centres=asked.centres.reshape(count, -1)).one_by_one()
        return dict(zip(numbers.astype(np.int64).tolist(), records, strict=True))


class PendingTargets(Part):
    """Rows that wait, each under a number of its own, in the order in which they were predicted.

    Records are replaced, never written. O(1) a row that comes or goes.
    """

    STATE = fields(asked=Count(), records=_Records())

    def __init__(self) -> None:
        #: How many rows were ever given a number.
        self.asked: int = 0
        self.records: dict[int, Asked] = {}

    def __len__(self) -> int:
        return len(self.records)

    def keep(self, record: Asked) -> int:
        """A row waits from now on; its number."""
        self.records[self.asked] = record
        self.asked += 1
        return self.asked - 1

    def take(self, numbers: Sequence[int]) -> Asked | None:
        """The rows with these numbers, which no longer wait; None for no row."""
        records = [self.records.pop(number) for number in numbers]
        return Asked.stacked(records) if records else None

    def change(self, change: Callable[[Asked], Asked]) -> None:
        """Write all of them in another way."""
        if self.records:
            records = change(Asked.stacked(self.records.values())).one_by_one()
            self.records = dict(zip(self.records, records, strict=True))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if any(number >= self.asked for number in self.records):
            raise stored.error(f"a row waits that is not among the {self.asked} asked")
