"""Growing storage: amortised appends, contiguous views, free truncation."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.stored import Stored

__all__ = ["GrowingArray", "ObjectStore", "PointStore", "VectorStore", "copied", "point_store", "take"]


class GrowingArray:
    """A float64 array that grows along its first axis, in place, by doubling.

    >>> numbers = GrowingArray()
    >>> numbers.append([1.0, 2.0])
    >>> numbers.view
    array([1., 2.])
    """

    def __init__(self, *trailing: int) -> None:
        self._buffer: NDArray[np.float64] = np.empty((0, *trailing))
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def view(self) -> NDArray[np.float64]:
        """The filled part, contiguous; writable, and valid until the next append."""
        return self._buffer[: self._size]

    def append(self, values: Any) -> None:
        """Copy ``values`` behind what is there."""
        size = self._size + len(values)
        self.reserve(size)[self._size : size] = values
        self._size = size

    def reserve(self, size: int) -> NDArray[np.float64]:
        """What there is with room for so many entries; who fills it counts them."""
        if size > len(self._buffer):
            buffer = np.empty((max(size, 2 * len(self._buffer), 16), *self._buffer.shape[1:]))
            buffer[: self._size] = self.view
            self._buffer = buffer
        return self._buffer

    def truncate(self, size: int) -> None:
        """Forget everything behind the first ``size`` entries."""
        self._size = size

    def refill(self, values: Any) -> None:
        """Hold ``values`` and nothing else."""
        self.truncate(0)
        self.append(values)


class PointStore(Protocol):
    """Points a kernel can be evaluated at: rows of an array, or Python objects."""

    def __len__(self) -> int: ...
    @property
    def view(self) -> Any: ...
    def copy(self) -> Any: ...
    def append(self, points: Any) -> None: ...
    def append_rows(self, points: Any, rows: NDArray[np.intp]) -> None: ...
    def truncate(self, size: int) -> None: ...
    def widen(self, columns: int) -> None: ...
    def load_state(self, stored: Stored, name: str, width: int | None) -> None: ...


class VectorStore:
    """Points that are rows of numbers; the first append fixes their width."""

    def __init__(self) -> None:
        self._rows: GrowingArray | None = None

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    @property
    def view(self) -> Matrix:
        return self._rows.view if self._rows else np.empty((0, 0))

    def copy(self) -> Matrix:
        """The rows, for others to keep."""
        return self.view.copy()

    def append(self, points: Matrix) -> None:
        if not len(points):
            return
        if not self._rows:
            self._rows = GrowingArray(points.shape[1])
        self._rows.append(points)

    def append_rows(self, points: Matrix, rows: NDArray[np.intp]) -> None:
        self.append(points[rows])

    def reserve(self, size: int, columns: int) -> Matrix:
        """The rows that there are, or are to come, with room for so many: see :class:`GrowingArray`."""
        if not self._rows:
            self._rows = GrowingArray(columns)
        return self._rows.reserve(size)

    def count_one(self) -> None:
        """A row was written into what was reserved."""
        rows: Any = self._rows
        rows._size += 1

    def truncate(self, size: int) -> None:
        if self._rows is not None:
            self._rows.truncate(size)
        if size == 0:
            self._rows = None

    def widen(self, columns: int) -> None:
        """Points have so many features more, all 0."""
        if self._rows is not None:
            rows = self._rows.view
            self._rows = GrowingArray(rows.shape[1] + columns)
            self._rows.append(np.pad(rows, ((0, 0), (0, columns))))

    def load_state(self, stored: Stored, name: str, width: int | None) -> None:
        """Take the rows that were saved under this name."""
        self.truncate(0)
        self.append(stored.rows(name, width))


class ObjectStore:
    """Points that are arbitrary Python objects."""

    def __init__(self) -> None:
        self._objects: list[Any] = []

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def view(self) -> list[Any]:
        return self._objects

    def copy(self) -> list[Any]:
        """The objects, for others to keep; an array among them as a copy."""
        return list(copied(self._objects))

    def append(self, points: list[Any]) -> None:
        self._objects.extend(points)

    def append_rows(self, points: list[Any], rows: NDArray[np.intp]) -> None:
        self._objects.extend(take(points, rows))

    def truncate(self, size: int) -> None:
        del self._objects[size:]

    def widen(self, columns: int) -> None:
        raise TypeError("objects have no columns")

    def load_state(self, stored: Stored, name: str, width: int | None) -> None:
        """Take the objects that were saved under this name."""
        self._objects[:] = copied(stored.items(name))


def copied(points: Any) -> Any:
    """Points for others to keep: a copy of an array, or of the list and of the arrays in it."""
    if isinstance(points, np.ndarray):
        return points.copy()
    return [point.copy() if isinstance(point, np.ndarray) else point for point in points]


def take(points: Any, rows: NDArray[np.intp]) -> Any:
    """Some of the points: rows of an array, or objects of a list."""
    return points[rows] if isinstance(points, np.ndarray) else [points[i] for i in rows]


def point_store(accepts: str) -> PointStore:
    """The store for what a kernel accepts: ``"vectors"`` or ``"objects"``."""
    return VectorStore() if accepts == "vectors" else ObjectStore()
