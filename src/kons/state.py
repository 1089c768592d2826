"""State as data: a part of a learner declares once what it is made of.

::

    class Mean(Part):
        STATE = fields(total=Number(), mass=Number(at_least=0.0))

Saving, loading with every shape and range checked, undo and byte counts come from that declaration. An
attribute ``_name`` is saved under ``name``. Shapes are in symbols: ``Array("size", "outputs")``; a symbol
that is not known is what the first array that has it says, and all others must agree.

Undo keeps references to everything, declared or not: whatever is *replaced* comes back by itself. What is
changed in place says so in its declaration (``written``), and is copied: when it is marked, or, where that
is dear, before it is changed for the first time after that (``Part._own``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from kons.arrays import FLOAT64
from kons.stored import MOST, Stored

__all__ = [
    "Array",
    "Corner",
    "Count",
    "Field",
    "Flag",
    "Growing",
    "Inner",
    "Inners",
    "Items",
    "Leading",
    "Lower",
    "Number",
    "Part",
    "Points",
    "Rows",
    "Sizes",
    "Whole",
    "Width",
    "bytes_in",
    "fields",
]

Sizes = dict[str, Any]
"""What the symbols of shapes stand for, as far as it is known."""


class Field:
    """One attribute of a part: how it is saved, loaded and taken back."""

    undoes: bool = False
    """Whether it has more to take back than a reference."""
    left_out: bool = False
    """Whether a file does not have it while it is None."""

    def save(self, part: Any, name: str) -> Any:
        """The attribute as a tree for a file. A copy."""
        return getattr(part, name)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        """The attribute as it was saved under the key, checked."""
        raise NotImplementedError

    def mark(self, part: Any, name: str) -> Any:
        """What :meth:`restore` needs, a copy; asked for only where the field ``undoes``."""
        return getattr(part, name).copy()

    def restore(self, part: Any, name: str, mark: Any) -> None:
        """Put the attribute back; the reference is back already."""
        setattr(part, name, mark.copy())


class Flag(Field):
    """True or False."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> bool:
        return stored.flag(key)


class Items(Field):
    """A list whose entries are ``what`` they should be."""

    undoes = True
    what: str
    passes: Callable[[Any], bool]

    def __init__(self, what: str, passes: Callable[[Any], bool]) -> None:
        self.what, self.passes = what, passes

    def save(self, part: Any, name: str) -> list[Any]:
        return list(getattr(part, name))

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        values = stored.items(key)
        for value in values:
            if not self.passes(value):
                raise stored.error(f"{key} holds {value!r}, expected {self.what}")
        return values


class Number(Field):
    """A finite number in a range."""

    at_least: float
    at_most: float

    def __init__(self, at_least: float = -math.inf, at_most: float = math.inf) -> None:
        self.at_least, self.at_most = at_least, at_most

    def save(self, part: Any, name: str) -> float:
        return float(getattr(part, name))

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> float:
        return stored.number(key, at_least=self.at_least, at_most=self.at_most)


class Count(Field):
    """An integer in a range, whose end may be a symbol; from then on a symbol itself, if that is named."""

    at_least: int
    at_most: int | str
    binds: str

    def __init__(self, at_least: int = 0, at_most: int | str = MOST, binds: str = "") -> None:
        self.at_least, self.at_most, self.binds = at_least, at_most, binds

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> int:
        most = sizes[self.at_most] if isinstance(self.at_most, str) else self.at_most
        value = stored.integer(key, at_least=self.at_least, at_most=most)
        if self.binds:
            sizes[self.binds] = value
        return value


class Width(Field):
    """How many features a row has: the symbol ``width``, None before the first row and for objects."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> int | None:
        sizes["width"] = stored.width(key, vectors=part.accepts == "vectors")
        width: int | None = sizes["width"]
        return width


class Array(Field):
    """Finite numbers of a shape in symbols, ``written`` in place ``"always"``, ``"rarely"`` or never."""

    shape: tuple[int | str | None, ...]
    at_least: float
    written: str
    dtype: np.dtype[Any]

    def __init__(
        self,
        *shape: int | str | None,
        at_least: float = -math.inf,
        written: str = "",
        dtype: np.dtype[Any] = FLOAT64,
    ) -> None:
        self.shape, self.at_least, self.written, self.dtype = shape, at_least, written, dtype
        self.undoes: bool = self.undoes or written == "always"

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name).copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        shape = (_known(n, sizes) for n in self.shape)
        value = stored.array(key, *shape, at_least=self.at_least, dtype=self.dtype)
        for n, length in zip(self.shape, value.shape, strict=True):
            if isinstance(n, str):
                sizes.setdefault(n, length)
        return value


class Lower(Field):
    """The lower triangle of a square matrix, by rows; above its diagonal there may be anything."""

    size: str
    written: str

    def __init__(self, size: str, written: str) -> None:
        self.size, self.written = size, written

    def save(self, part: Any, name: str) -> Any:
        matrix = getattr(part, name)
        return matrix[_triangle(len(matrix))]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        n = sizes[self.size]
        matrix = np.zeros((n, n))
        matrix[_triangle(n)] = stored.array(key, n * (n + 1) // 2)
        return matrix


class Whole(Array):
    """Whole numbers from 0 on, int64 in memory, below what a symbol says if one is named."""

    def __init__(self, *shape: int | str | None, below: str = "", written: str = "") -> None:
        super().__init__(*shape, at_least=0.0, written=written)
        self.below = below

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name).astype(np.float64)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        value = super().load(stored, key, part, name, sizes)
        end = sizes[self.below] if self.below else MOST
        if not (value < end).all() or not (value == np.floor(value)).all():
            raise stored.error(f"{key} holds something else than whole numbers below {end}")
        return value.astype(np.int64)


class Rows(Field):
    """Rows of so many columns, which do not matter while there are none; their number binds a symbol."""

    columns: str
    binds: str
    written: str

    def __init__(self, columns: str, binds: str, written: str = "") -> None:
        self.columns, self.binds, self.written = columns, binds, written

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name).copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        rows = stored.rows(key, sizes.get(self.columns))
        sizes[self.binds] = len(rows)
        return rows


class Leading(Field):
    """The first rows of a buffer, as many as another attribute says, which is found again when loading.

    Rows are only appended; who begins again at the first one asks :meth:`Part._lends` before.
    """

    written = "rarely"
    count: str
    trailing: tuple[int | str, ...]

    def __init__(self, count: str, *trailing: int | str) -> None:
        self.count, self.trailing = count, trailing

    def save(self, part: Any, name: str) -> Any:
        return _unless_empty(getattr(part, name)[: getattr(part, self.count)])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        buffer = getattr(part, name)
        shape = (sizes.get(self.count), *(_known(n, sizes) for n in self.trailing))
        value = self._found(stored, key, *shape)
        sizes[self.count] = stored.counted(len(value), f"rows of {key}", at_most=len(buffer))
        setattr(part, self.count, len(value))
        buffer[: len(value)] = value
        return buffer

    def _found(self, stored: Stored, key: str, *shape: int | None) -> Any:
        """Of this shape; None, where that leaves nothing: an array of nothing takes 400 bytes of a file."""
        empty = tuple(n or 0 for n in shape)
        if math.prod(empty) or not stored.is_nothing(key):
            return stored.array(key, *shape)
        stored.nothing(key)
        return np.empty(empty)


class Corner(Leading):
    """As :class:`Leading` of a buffer of which only what is below the diagonal counts."""

    def save(self, part: Any, name: str) -> Any:
        return _unless_empty(getattr(part, name)[self._below(part, name, getattr(part, self.count))])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        buffer, below = getattr(part, name), self._below(part, name, sizes[self.count])
        buffer[below] = self._found(stored, key, len(below[0]))
        return buffer

    @staticmethod
    def _below(part: Any, name: str, count: int) -> Any:
        return _triangle(count, -1, min(count, getattr(part, name).shape[1]))


class Growing(Array):
    """A :class:`~kons.core.storage.GrowingArray`, which is only ever appended to unless it is ``written``."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        return getattr(part, name).view.copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        growing = getattr(part, name)
        growing.refill(super().load(stored, key, part, name, sizes))
        return growing

    def mark(self, part: Any, name: str) -> Any:
        growing = getattr(part, name)
        return growing.view.copy() if self.written else len(growing)

    def restore(self, part: Any, name: str, mark: Any) -> None:
        growing = getattr(part, name)
        growing.truncate(len(mark) if self.written else mark)
        if self.written:
            growing.view[:] = mark


class Points(Field):
    """A :class:`~kons.core.storage.PointStore` of rows of ``width`` features; its size binds a symbol.

    None, where the points are somebody else's, then and now.
    """

    undoes = True

    def __init__(self, binds: str) -> None:
        self.binds = binds

    def save(self, part: Any, name: str) -> Any:
        points = getattr(part, name)
        return None if points is None else points.copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        points = getattr(part, name)
        if points is None:
            stored.nothing(key)
            return None
        points.load_state(stored, key, sizes["width"])
        known = sizes.setdefault(self.binds, len(points))
        if known != len(points):
            raise stored.error(f"{key} has {len(points)} points, expected {known}")
        return points

    def mark(self, part: Any, name: str) -> Any:
        points = getattr(part, name)
        return 0 if points is None else len(points)

    def restore(self, part: Any, name: str, mark: Any) -> None:
        points = getattr(part, name)
        if points is not None:
            points.truncate(mark)


class Inner(Field):
    """A part inside, that is there before anything is loaded; or None, then and now.

    ``ends``: it may have become None by the time it was saved. ``make``: it is made for being loaded, of the
    part that has it. ``left_out``: a file does not have it while it is None. ``sizes``: those of its own, of
    the part that has it and its sizes.
    """

    undoes = True
    binds: str
    ends: bool
    make: Callable[[Any], Any] | None
    sizes: Callable[[Any, Sizes], Sizes] | None

    def __init__(
        self,
        binds: str = "",
        ends: bool = False,
        make: Callable[[Any], Any] | None = None,
        left_out: bool = False,
        sizes: Callable[[Any, Sizes], Sizes] | None = None,
    ) -> None:
        self.binds, self.ends, self.make, self.sizes = binds, ends, make, sizes
        self.left_out: bool = self.left_out or left_out

    def save(self, part: Any, name: str) -> Any:
        inner = getattr(part, name)
        return None if inner is None else inner.state()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if self.left_out and key not in stored:
            return None
        inner = getattr(part, name) if self.make is None else self.make(part)
        if inner is None or (self.ends and stored.is_nothing(key)):
            stored.nothing(key)
            return None
        own = sizes | self.sizes(part, sizes) if self.sizes else sizes
        inner.load_state(stored.inner(key), **own)
        if self.binds:
            sizes[self.binds] = len(inner)
        return inner

    def mark(self, part: Any, name: str) -> Any:
        inner = getattr(part, name)
        return None if inner is None else inner.mark()

    def restore(self, part: Any, name: str, mark: Any) -> None:
        inner = getattr(part, name)
        if inner is not None:
            inner.restore(mark)


class Inners(Field):
    """A list or tuple of parts that are there before anything is loaded; or, with ``make``, made then."""

    undoes = True

    def __init__(self, make: Callable[[Any], Any] | None = None) -> None:
        self.make = make

    def save(self, part: Any, name: str) -> Any:
        return [inner.state() for inner in getattr(part, name)]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        inners = getattr(part, name) if self.make is None else self.make(part)
        for inner, saved in zip(inners, stored.inners(key, len(inners)), strict=True):
            inner.load_state(saved, **sizes)
        return inners

    def mark(self, part: Any, name: str) -> Any:
        inners = getattr(part, name)
        return list(inners), [inner.mark() for inner in inners]

    def restore(self, part: Any, name: str, mark: Any) -> None:
        inners, marks = mark
        setattr(part, name, type(getattr(part, name))(inners))
        for inner, where in zip(inners, marks, strict=True):
            inner.restore(where)


def fields(**declared: Field | None) -> Mapping[str, Field | None]:
    """A declaration: attributes by name, in the order they are loaded; None: not, as a base class does."""
    return MappingProxyType(declared)


class Part:
    """Something with a state: a subclass declares its attributes in ``STATE``, in the order they are loaded.

    >>> class Mean(Part):
    ...     STATE = fields(totals=Array("outputs"), mass=Number(at_least=0.0))
    ...     def __init__(self):
    ...         self.totals, self.mass = np.zeros(2), 0.0
    >>> mean = Mean()
    >>> mark = mean.mark()
    >>> mean.totals = mean.totals + 1.0
    >>> mean.state()
    {'totals': array([1., 1.]), 'mass': 0.0}
    >>> mean.restore(mark)
    >>> mean.totals
    array([0., 0.])
    >>> mean.load_state(Stored({"totals": np.ones(3), "mass": 1.0}, "Mean"), outputs=2)
    Traceback (most recent call last):
    kons.errors.FileError: the state of Mean cannot be used: totals has the shape (3,), expected (2,).
    """

    STATE: ClassVar[Mapping[str, Field | None]] = fields()
    declared: ClassVar[dict[str, Field]] = {}
    """The fields of ``STATE`` by attribute, those of base classes first."""
    _saved: ClassVar[tuple[tuple[str, str, Field], ...]] = ()
    _undone: ClassVar[tuple[tuple[str, Field], ...]] = ()
    _rarely_written: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = [vars(base).get("STATE", {}) for base in reversed(cls.__mro__)]
        last = {name: field for fields in declared for name, field in fields.items()}
        cls.declared = {name: field for name, field in last.items() if field is not None}
        cls._saved = tuple((name, name.lstrip("_"), field) for name, field in cls.declared.items())
        cls._undone = tuple((name, field) for name, field in cls.declared.items() if field.undoes)
        cls._rarely_written = frozenset(
            name for name, field in cls.declared.items() if getattr(field, "written", "") == "rarely"
        )

    # ---- files

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        return {
            key: field.save(self, name)
            for name, key, field in self._saved
            if not (field.left_out and getattr(self, name) is None)
        }

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what :meth:`state` saved into a part that has seen nothing; ``sizes`` are known symbols."""
        for name, key, field in self._saved:
            setattr(self, name, field.load(stored, key, self, name, sizes))
        self._loaded(stored, sizes)
        stored.finish()

    def resume(self, state: Any) -> Self:
        """Itself, just made as the other was, with what :meth:`state` of that one said."""
        self.load_state(Stored(state, type(self).__name__))
        return self

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        """Refuse what does not fit together, and find again what was not saved."""

    # ---- going back

    def mark(self) -> Any:
        """Where it stands, for :meth:`restore`."""
        if self._rarely_written:
            self._borrowed = self._rarely_written
        return dict(vars(self)), [field.mark(self, name) for name, field in self._undone]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        attributes, marks = mark
        for name in vars(self).keys() - attributes.keys():
            delattr(self, name)
        vars(self).update(attributes)
        for (name, field), where in zip(self._undone, marks, strict=True):
            field.restore(self, name, where)
        self._restored()

    def _restored(self) -> None:
        """Let what is found from the state follow it back."""

    def _own(self, *names: str) -> None:
        """Copy these arrays, if a mark holds them: they are about to be written."""
        borrowed: frozenset[str] = vars(self).get("_borrowed", frozenset())
        if borrowed:
            for name in names:
                if name in borrowed:
                    setattr(self, name, getattr(self, name).copy())
            self._borrowed = borrowed - set(names)

    def _lends(self, *names: str) -> bool:
        """Whether a mark holds one of these arrays, which are about to be replaced; no longer, then."""
        borrowed: frozenset[str] = vars(self).get("_borrowed", frozenset())
        if borrowed.isdisjoint(names):
            return False
        self._borrowed = borrowed - set(names)
        return True

    # ---- looking

    @property
    def nbytes(self) -> int:
        """Of the arrays of its state, which is copied for it."""
        return bytes_in(self.state())


def bytes_in(tree: Any) -> int:
    """Of the arrays in a state."""
    if isinstance(tree, np.ndarray):
        return tree.nbytes
    if isinstance(tree, (dict, list, tuple)):
        return sum(map(bytes_in, tree.values() if isinstance(tree, dict) else tree))
    return 0


def _unless_empty(array: Any) -> Any:
    return array.copy() if array.size else None


@lru_cache(64)
def _small_triangle(n: int, k: int, m: int | None) -> Any:
    return np.tril_indices(n, k, m)


def _triangle(n: int, k: int = 0, m: int | None = None) -> Any:
    """Indices of what is below a diagonal; of small matrices, of which a learner has many, they are kept."""
    return _small_triangle(n, k, m) if n <= 128 else np.tril_indices(n, k, m)


def _known(n: int | str | None, sizes: Sizes) -> int | None:
    return sizes.get(n) if isinstance(n, str) else n
