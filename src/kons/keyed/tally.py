"""How well each key is predicted: six figures a key, which its record begins with."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kons.errors import InputError
from kons.keyed.pages import Key
from kons.learners.labels import Labels
from kons.learners.protocol import as_learner

__all__ = ["FIGURES", "KeySummary", "Tally"]

#: rows, sum of losses, sum of the constant's losses, mean of the targets, last row, points kept.
FIGURES = 6
NOTHING = (0.0, 0.0, 0.0, 0.0, -1.0, 0.0)


class KeySummary(NamedTuple):
    """How well a key is predicted."""

    key: Key
    rows: int
    loss: float
    """The mean loss of what was predicted before each row was learned: squared error, or wrong labels."""
    constant: float
    """That of the mean of its targets so far; NaN of labels."""
    last_row: int
    """The number of its last row, over all keys."""


class Tally:
    """Of all keys, in order of first appearance; and the rows, points and labels of all of them."""

    labels: Labels
    rows: int
    """Of all keys."""
    size: int
    """Points that the learners of all keys keep."""

    def __init__(self, labelled: bool) -> None:
        self._labelled = labelled
        self._told: dict[Key, list[float]] = {}
        self.labels, self.rows, self.size = Labels(), 0, 0

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, key: object) -> bool:
        return key in self._told

    def __iter__(self) -> Iterator[Key]:
        return iter(self._told)

    def figures(self, key: Key) -> list[float]:
        """Those of a key that has come."""
        return self._told[key]

    def meet(self, key: Key) -> list[float]:
        """The figures of a key, that may be new."""
        return self._told.setdefault(key, list(NOTHING))

    def note(self, key: Key, figures: list[float], labels: list[Any]) -> None:
        """What the record of a key says."""
        self._told[key] = figures
        self.labels.learn(labels)
        self.rows += int(figures[0])
        self.size += int(figures[5])

    def count(self, key: Key, learner: Any, targets: Any, predictions: Any, places: Sequence[int]) -> None:
        """Rows of a key were learned, at these places of the stream."""
        told = self.meet(key)
        for y, prediction in zip(targets, predictions, strict=True):
            if self._labelled:
                told[1] += float(prediction != y)
            else:
                y, prediction = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
                told[1] += float(((prediction - y) ** 2).sum())
                y = float(y.sum())  # of several targets, that of their sum
                told[2] += (y - told[3]) ** 2 if told[0] else 0.0
                told[3] += (y - told[3]) / (told[0] + 1.0)
            told[0] += 1.0
        told[4] = float(places[-1])
        size = float(as_learner(learner).size or 0)
        self.size += int(size - told[5])
        told[5] = size
        self.rows += len(places)
        if self._labelled:
            self.labels.learn(list(learner.classes))

    def drop(self, key: Key) -> None:
        """Forget a key; the rows stay counted."""
        self.size -= int(self._told[self.summary(key).key][5])
        del self._told[key]

    # ---- looking

    def summary(self, key: Key) -> KeySummary:
        """How well a key is predicted so far."""
        if key not in self._told:
            raise InputError(f"there is no key {key!r}: {len(self):,} keys have come.")
        rows, loss, constant, _, last, _ = self._told[key]
        share = max(rows, 1.0)
        constant = math.nan if self._labelled or rows < 2 else constant / (rows - 1)
        return KeySummary(key, int(rows), loss / share, constant, int(last))

    def worst(self, most: int) -> list[KeySummary]:
        """The keys with the largest mean losses first; of equal ones the earlier."""
        told = self._told.items()
        largest = heapq.nlargest(
            most, ((its[1] / its[0], -at, key) for at, (key, its) in enumerate(told) if its[0])
        )
        return [self.summary(key) for _, _, key in largest]

    def idle(self, rows: int) -> list[Key]:
        """Keys without any of the last ``rows`` rows of the stream."""
        return [key for key, told in self._told.items() if self.rows - 1 - told[4] >= rows]

    # ---- going back

    def mark(self, keys: Iterable[Key]) -> Any:
        """Where it stands, for :meth:`restore`, if no other keys have rows until then."""
        told = {key: list(self._told.get(key, ())) for key in keys}
        return len(self.labels), self.rows, self.size, told

    def restore(self, mark: Any) -> None:
        """Go back to a mark."""
        labels, self.rows, self.size, each = mark
        self.labels.truncate(labels)
        for key, told in each.items():
            self._told.pop(key, None) if not told else self._told.update({key: told})
