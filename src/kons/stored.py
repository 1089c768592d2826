"""Reading a saved state back: every shape and number is checked before a compiled loop meets it.

A state is a tree of None, bool, int, float, str, bytes, arrays, lists, tuples and dicts with text as keys. It
may come from a file that somebody forged, and compiled loops do not look at bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import FLOAT64
from kons.errors import FileError

__all__ = ["Stored"]

# Beyond any stream, and safe to add rows to in 64 bits.
MOST = 2**62
TEXT = {str}


class FiniteNumbers(NDArray[np.float64]):
    """Numbers that were found finite together, which costs a tenth of looking at each array for itself.

    Arrays in it are taken as finite by :meth:`Stored.checked`.
    """

    @classmethod
    def unless_others(cls, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """A copy; of numbers that are not all finite, an array like any other."""
        if not np.isfinite(numbers).all():
            return numbers.copy()
        finite = cls(len(numbers))
        finite[:] = numbers
        return finite


class Stored:
    """One dict of a state: each entry is taken once, checked, as a copy; :meth:`finish` refuses the rest.

    >>> stored = Stored({"rows": 3, "u": np.zeros(2)}, "Span")
    >>> stored.integer("rows"), stored.array("u", 2)
    (3, array([0., 0.]))
    >>> stored.finish()
    """

    def __init__(self, state: Any, owner: str) -> None:
        self._owner = owner
        if type(state) is not dict or not set(map(type, state)) <= TEXT:
            raise self.error(f"it is a {type(state).__name__}, expected a dict with text as keys")
        self._left = dict(state)

    def error(self, what: str) -> FileError:
        """An error that says where."""
        return FileError(f"the state of {self._owner} cannot be used: {what}.")

    def __contains__(self, name: object) -> bool:
        return name in self._left

    def take(self, name: str) -> Any:
        """An entry as it is."""
        if name not in self._left:
            raise self.error(f"it has no entry {name!r}")
        return self._left.pop(name)

    def rest(self) -> dict[str, Any]:
        """All entries that are left, as they are: somebody else checks them."""
        rest, self._left = self._left, {}
        return rest

    def finish(self) -> None:
        """Everything must have been asked for."""
        if self._left:
            raise self.error(f"nothing here knows its entry {next(iter(self._left))!r}")

    # ---- numbers and words

    def is_nothing(self, name: str) -> bool:
        """Whether an entry is there and None; it is not taken."""
        return self._left.get(name, self) is None

    def nothing(self, name: str) -> None:
        """None."""
        if (value := self.take(name)) is not None:
            raise self.error(f"{name} is a {type(value).__name__}, expected None")

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self.take(name)
        if type(value) is not bool:
            raise self.error(f"{name} is a {type(value).__name__}, expected True or False")
        return value

    def integer(self, name: str, *, at_least: int = 0, at_most: int = MOST) -> int:
        """An integer in a range."""
        value = self.take(name)
        if type(value) is not int:
            raise self.error(f"{name} is a {type(value).__name__}, expected an integer")
        return self.counted(value, name, at_least=at_least, at_most=at_most)

    def counted(self, value: int, name: str, *, at_least: int = 0, at_most: int = MOST) -> int:
        """``value``, if it is in a range."""
        if not at_least <= value <= at_most:
            raise self.error(f"{name}: {value} is not within {at_least} and {at_most}")
        return value

    def number(self, name: str, *, at_least: float = -math.inf, at_most: float = math.inf) -> float:
        """A finite number in a range."""
        value = self.take(name)
        if type(value) is not float:
            raise self.error(f"{name} is a {type(value).__name__}, expected a floating-point number")
        if not (math.isfinite(value) and at_least <= value <= at_most):
            raise self.error(f"{name} is {value:g}, expected a finite number in [{at_least:g}, {at_most:g}]")
        return value

    def word(self, name: str, *expected: str) -> str:
        """One of the words expected; any text if none is given."""
        value = self.take(name)
        if type(value) is not str or (expected and value not in expected):
            raise self.error(f"{name} is {value!r}, expected {' or '.join(expected) or 'text'}")
        return value

    def width(self, name: str, *, vectors: bool) -> int | None:
        """How many features a row has, if that is known; never for points that are objects."""
        if self._left.get(name) is None or not vectors:
            self.nothing(name)
            return None
        return self.integer(name, at_least=1)

    # ---- what holds others

    def inner(self, name: str) -> Stored:
        """A dict inside."""
        return Stored(self.take(name), f"{self._owner}, {name}")

    def inners(self, name: str, count: int | None = None) -> list[Stored]:
        """A list of dicts."""
        return [
            Stored(value, f"{self._owner}, {name}[{i}]") for i, value in enumerate(self.items(name, count))
        ]

    def items(self, name: str, count: int | None = None) -> list[Any]:
        """A list, of ``count`` entries if that is given. A shallow copy."""
        values = self.take(name)
        if not isinstance(values, list):
            raise self.error(f"{name} is a {type(values).__name__}, expected a list")
        if count is not None and len(values) != count:
            raise self.error(f"{name} has {len(values)} entries, expected {count}")
        return list(values)

    def pairs(self, name: str, count: int) -> list[tuple[Any, Any]]:
        """A list of ``count`` pairs."""
        values = self.items(name, count)
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in values):
            raise self.error(f"{name} holds something else than pairs")
        return values

    def tuples(self, name: str, *types: type) -> list[tuple[Any, ...]]:
        """A list of tuples whose entries have exactly these types."""
        values = self.items(name)
        for value in values:
            if not isinstance(value, tuple) or tuple(map(type, value)) != types:
                raise self.error(f"{name} holds {value!r}, expected {', '.join(t.__name__ for t in types)}")
        return values

    # ---- arrays

    def array(
        self, name: str, *shape: int | None, at_least: float = -math.inf, dtype: np.dtype[Any] = FLOAT64
    ) -> NDArray[Any]:
        """An array of this shape (None: any length), finite, C-contiguous. A copy."""
        return self.checked(self.take(name), name, *shape, at_least=at_least, dtype=dtype)

    def checked(
        self,
        value: Any,
        name: str,
        *shape: int | None,
        at_least: float = -math.inf,
        dtype: np.dtype[Any] = FLOAT64,
    ) -> NDArray[Any]:
        """``value`` as :meth:`array` would return it."""
        if type(value) is not np.ndarray or value.dtype != dtype:
            kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
            raise self.error(f"{name} is of type {kind}, expected an array of {dtype}")
        if value.shape != shape and (
            value.ndim != len(shape)
            or any(n is not None and n != m for n, m in zip(shape, value.shape, strict=True))
        ):
            wanted = tuple("any" if n is None else n for n in shape)
            raise self.error(f"{name} has the shape {value.shape}, expected {wanted}")
        finite = type(value.base) is FiniteNumbers
        if value.size and not (finite and at_least == -math.inf):
            # NaN is the least and the greatest of numbers among which it is, and within no range. By places,
            # which are found in a third of the time.
            least, most = value.item(value.argmin()), 0.0 if finite else value.item(value.argmax())
            if not (at_least <= least > -math.inf and most < math.inf):
                raise self.error(f"{name} holds NaN, infinity or a number below {at_least:g}")
        return value.copy(order="C")

    def rows(self, name: str, width: int | None) -> NDArray[np.float64]:
        """Rows of ``width`` features; where there are none the width does not matter."""
        value = self.take(name)
        if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) == 0:
            self.checked(value, name, 0, None)
            return np.empty((0, 0))
        if width is None:
            raise self.error(f"{name} holds rows, but the number of features is not known")
        return self.checked(value, name, None, width)
