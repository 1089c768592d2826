"""What a metric is: told of blocks of rows, it knows its value over all of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.state import Array, Count, Inner, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Filled", "MeanMetric", "Metric", "Rows", "Total"]


class Rows(NamedTuple):
    """Predictions beside what came: one entry per row.

    >>> import numpy as np
    >>> from kons.evaluation.metrics import MSE
    >>> rows = Rows(np.array([1.0, 2.0]), np.array([1.5, 2.0]))
    >>> MSE.over(rows)
    0.125
    """

    target: NDArray[Any]
    """The number, or the code of the label (0, 1, ... in any fixed order)."""
    prediction: NDArray[Any]
    """Likewise; the code -1 where nothing could be predicted."""
    truth: Vector | None = None
    """Classification: the probability that was given to the true label."""
    score: Vector | None = None
    """Two classes: the probability, or any score in [0, 1], of the label with code 1."""
    positive: int = 1
    """Two classes: the code of the label that F1, precision, recall and average precision are about."""
    classes: int = 2
    """How many labels are known: what came in these rows alone may be fewer."""


class Metric(Part, ABC):
    """One number about predictions: update with blocks of rows, read ``value``.

    >>> import numpy as np
    >>> from kons.evaluation.metrics import MAE
    >>> metric = MAE()
    >>> metric.update(Rows(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    >>> metric.value
    1.0
    >>> MAE().resume(metric.state()).value
    1.0
    """

    name: ClassVar[str]
    task: ClassVar[str]

    @abstractmethod
    def update(self, rows: Rows) -> None:
        """Count these rows in."""

    @property
    @abstractmethod
    def value(self) -> float:
        """Over all rows so far; NaN before the first, or where it is not defined."""

    @classmethod
    def over(cls, rows: Rows) -> float:
        """Over these rows alone."""
        metric = cls()
        metric.update(rows)
        return metric.value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}={self.value:.6g})"


class Total(Part):
    """A sum over blocks whose rounding does not grow with their number (Neumaier).

    >>> import numpy as np
    >>> total = Total()
    >>> for part in (1e16, 1.0, -1e16):
    ...     total.add(part)
    >>> total.value
    1.0
    """

    STATE = fields(_total=Number(), _lost=Number())

    def __init__(self) -> None:
        self._total = 0.0
        self._lost = 0.0  # what rounding took

    def add(self, part: float) -> None:
        """Count one more summand in."""
        grown = self._total + part
        if abs(self._total) >= abs(part):
            self._lost += (self._total - grown) + part
        else:
            self._lost += (part - grown) + self._total
        self._total = grown

    @property
    def value(self) -> float:
        """The sum so far."""
        # Beyond the range of floats what was lost is NaN, and says nothing.
        return self._total + self._lost if math.isfinite(self._total) else self._total


class Filled(Array):
    """Counts, of which only those that are not 0 are saved: their places, and they."""

    def save(self, part: Any, name: str) -> Any:
        counts = getattr(part, name).ravel()
        places = np.flatnonzero(counts)
        return np.array([places, counts[places]], dtype=np.float64)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        places, found = stored.array(key, 2, None, at_least=0.0).astype(np.int64)
        counts = getattr(part, name)
        if places.max(initial=0) >= counts.size:
            raise stored.error(f"{key} has the place {places.max()}, there are {counts.size}")
        counts.ravel()[places] = found
        return counts


class MeanMetric(Metric):
    """A metric that is the mean of one number per row."""

    STATE = fields(_sum=Inner(), _rows=Count())

    def __init__(self) -> None:
        self._sum = Total()
        self._rows = 0

    @classmethod
    @abstractmethod
    def each(cls, rows: Rows) -> Vector:
        """The number of each row."""

    def update(self, rows: Rows) -> None:
        """Count these rows in."""
        self._sum.add(float(self.each(rows).sum()))
        self._rows += len(rows.target)

    @property
    def value(self) -> float:
        """Over all rows so far."""
        return self._sum.value / self._rows if self._rows else math.nan
