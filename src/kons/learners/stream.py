"""What everything that consumes a stream of points shares: the border, the counts, no half steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kons.arrays import as_objects, as_points, as_row
from kons.errors import ConfigurationError
from kons.kernels import Kernel

__all__ = ["StreamConsumer"]


class Restorable(Protocol):
    """A part of a learner that can go back to where it was."""

    def mark(self) -> Any: ...
    def restore(self, mark: Any) -> None: ...


class StreamConsumer(ABC):
    """Rows in order, each counted; a call that raises leaves everything exactly as it was."""

    def __init__(self, kernel: Kernel) -> None:
        if not isinstance(kernel, Kernel):
            raise ConfigurationError(
                f"kernel is {kernel!r}, expected an instance from kons.kernels, such as "
                "Gaussian(1.0); wrap a function as kons.kernels.FunctionKernel(f)."
            )
        self.kernel = kernel
        self._width: int | None = None
        self._rows_seen = 0
        self._kept = 0

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self._rows_seen

    @property
    def size(self) -> int:
        """How many rows were kept, as the policy decided."""
        return self._kept

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""

    @abstractmethod
    def _parts(self) -> Sequence[Restorable]:
        """What changes as rows come, besides plain numbers."""

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """What a notebook shows beside the parameters."""

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({inside})"

    def _repr_html_(self) -> str:
        facts = {
            **self.parameters(),
            "rows seen": f"{self.rows_seen:,}",
            "points kept": f"{self.size:,}",
            **self._facts(),
        }
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{body}</table>"

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put everything back, bit for bit, if anything is raised inside."""
        parts = self._parts()
        marks = [part.mark() for part in parts]
        numbers = {k: v for k, v in vars(self).items() if v is None or isinstance(v, (int, float))}
        try:
            yield
        except BaseException:
            for part, mark in zip(parts, marks, strict=True):
                part.restore(mark)
            vars(self).update(numbers)
            raise

    def _as_points(self, X: Any) -> Any:
        if self.kernel.accepts == "objects":
            return as_objects(X)
        return as_points(X, width=self._width)

    def _as_point(self, x: Any) -> Any:
        if self.kernel.accepts == "objects":
            return as_objects([x], name="x")
        return as_row(x, width=self._width)

    def _sizes(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many were kept so far, after each of the rows that were just counted."""
        before = self._kept - int(np.count_nonzero(kept))
        sizes: NDArray[np.int64] = before + np.cumsum(kept)
        return sizes

    def _count(self, points: Any, kept: int) -> None:
        if self.kernel.accepts == "vectors":
            self._width = points.shape[1]
        self._rows_seen += len(points)
        self._kept += kept
