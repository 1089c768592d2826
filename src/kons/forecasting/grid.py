"""The last steps of a series: a row for each step of time, empty where nothing came.

A step is a row number, or a stretch of time: rows whose stamps fall into the same one are one row, the last
of them. What is needed of the past, and no more, is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.errors import InputError
from kons.state import Count, Field, Part, Sizes, fields
from kons.stored import Stored
from kons.tables.moments import NOT_A_TIME
from kons.tables.records import Records

__all__ = ["BASES", "EARLIEST", "OFF", "Gaps", "Grid", "Incoming", "Y", "first_of", "mean_of", "steps_of"]
__all__ += ["too_early"]

#: The first columns of a grid: y, how much of a day off a holiday is, and from there on what each base said.
Y, OFF, BASES = range(3)
#: Before all steps, some of which are below 0: before 1970.
EARLIEST = -(2**62)
#: Steps without a row in one call: beyond, the step is not that of the rows.
MOST_EMPTY = 1_000_000


class Gaps(Field):
    """An array of a shape in symbols in which NaN says that nothing is there."""

    def __init__(self, *shape: int | str | None) -> None:
        self.shape = shape

    def save(self, part: Any, name: str) -> Any:
        array = getattr(part, name)
        return {"values": np.nan_to_num(array), "known": (~np.isnan(array)).astype(np.float64)}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        inner = stored.inner(key)
        shape = [sizes.get(n) if isinstance(n, str) else n for n in self.shape]
        values = inner.array("values", *shape)
        known = inner.array("known", *values.shape)
        inner.finish()
        return np.where(known > 0.0, values, np.nan)


class _Columns(Field):
    """Names and kinds of the columns, with the levels of those of text."""

    def save(self, part: Any, name: str) -> Any:
        return [[key, kind, list(part.levels.get(key, ()))] for key, kind in part.kinds.items()]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        entries = stored.take(key)
        sound = isinstance(entries, list) and all(
            isinstance(entry, list)
            and len(entry) == 3
            and entry[1] in ("number", "text")
            and isinstance(entry[2], list)
            and all(isinstance(level, str) for level in entry[2])
            for entry in entries
        )
        if not sound or len({str(entry[0]) for entry in entries}) != len(entries):
            raise stored.error("its columns are not names, kinds and levels")
        part.levels = {entry[0]: dict.fromkeys(entry[2]) for entry in entries if entry[1] == "text"}
        sizes["grid"] = part.own + len(entries)
        return {entry[0]: entry[1] for entry in entries}


class Incoming(NamedTuple):
    """Rows as a grid takes them."""

    steps: NDArray[np.int64]
    """The number of the step of each."""
    rows: Matrix
    """Numbers, levels by their code."""


class Grid(Part):
    """Steps in order, ``first`` the number of the first that is kept; y, the bases, then other columns."""

    STATE = fields(kinds=_Columns(), first=Count(at_least=EARLIEST), rows=Gaps(None, "grid"))

    def __init__(self, bases: int) -> None:
        self.own: int = BASES + bases
        self.kinds: dict[Any, str] = {}
        self.levels: dict[Any, dict[str, None]] = {}
        self.first: int = 0
        self.rows: Matrix = np.empty((0, self.own))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def next(self) -> int:
        """The number of the step behind the last."""
        return self.first + len(self.rows)

    def begin(self, columns: Mapping[Any, str]) -> None:
        """With these columns, whose kinds are ``number`` or ``text``."""
        self.kinds = dict(columns)
        self.levels = {name: {} for name, kind in columns.items() if kind == "text"}
        self.rows = np.empty((0, self.own + len(columns)))

    def read(self, records: Records, steps: NDArray[np.int64], y: Vector) -> Incoming:
        """Rows with their steps, as the grid keeps them; of those of one step the last."""
        rows = np.full((len(steps), self.own + len(self.kinds)), np.nan)
        rows[:, Y] = y
        for place, (name, kind) in enumerate(self.kinds.items(), start=self.own):
            values = records.values(name, kind)
            if kind == "text":
                new = dict.fromkeys(value for value in values if value is not None)
                self.levels = {**self.levels, name: self.levels[name] | new}  # a mark may hold the old one
                codes = {value: float(code) for code, value in enumerate(self.levels[name])}
                rows[:, place] = [np.nan if value is None else codes[value] for value in values]
            else:
                rows[:, place] = values
        last = np.append(np.diff(steps) != 0, True)[: len(steps)]
        before = np.append(self.next - 1 if len(self) else steps[:1], steps[:-1]) if len(steps) else steps
        if (steps < before).any():
            raise too_early(int((steps < before).argmax()))
        return Incoming(steps[last], rows[last])

    def append(self, incoming: Incoming) -> None:
        """Rows behind the last, with empty steps between them."""
        if not len(incoming.steps):
            return
        if not len(self):
            self.first = int(incoming.steps[0])
        start, stop = self.next, int(incoming.steps[-1]) + 1
        if stop - start > MOST_EMPTY + len(incoming.steps):
            raise InputError(f"rows lie {stop - start:,} steps apart: is step what lies between two of them?")
        added = np.full((stop - start, self.rows.shape[1]), np.nan)
        added[incoming.steps - start] = incoming.rows
        self.rows = np.concatenate([self.rows, added])

    def forget(self, reach: int) -> None:
        """Keep the last ``reach`` steps."""
        gone = max(0, len(self) - reach)
        self.rows, self.first = self.rows[gone:].copy(), self.first + gone

    def place(self, name: Any) -> int:
        """The column of the grid with this name."""
        return self.own + list(self.kinds).index(name)

    def at(self, column: int, steps: NDArray[np.int64]) -> Vector:
        """The values of a column at these steps; NaN where nothing is kept."""
        places = steps - self.first
        inside = (places >= 0) & (places < len(self))
        found: Vector = np.where(inside, self.rows[np.clip(places, 0, max(len(self) - 1, 0)), column], np.nan)
        return found

    def put(self, column: int, steps: NDArray[np.int64], values: Vector) -> None:
        """Write values of a column."""
        self.rows[steps - self.first, column] = values

    def means(self, column: int, steps: NDArray[np.int64], window: int) -> Vector:
        """The mean over so many steps up to each, of what is there; NaN where nothing is."""
        offsets = np.arange(window)[::-1]
        return mean_of(self.at(column, (steps[:, None] - offsets).ravel()).reshape(-1, window))

    def texts(self, name: Any, codes: Vector) -> list[str | None]:
        """Levels by their codes."""
        names = list(self.levels[name])
        return [None if code != code else names[int(code)] for code in codes.tolist()]

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        for name, known in self.levels.items():
            codes = self.rows[:, self.place(name)]
            codes = codes[~np.isnan(codes)]
            if len(codes) and (codes.min() < 0 or codes.max() >= len(known) or (codes % 1.0).any()):
                raise stored.error(f"the column {name!r} has levels that there are not")


def mean_of(values: Matrix) -> Vector:
    """Of each row, over what is there; NaN where nothing is."""
    there = ~np.isnan(values)
    counts = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    means: Vector = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def first_of(*choices: Vector) -> Vector:
    """The first that is there, for each entry; 0 where none is."""
    found = choices[0]
    for other in choices[1:]:
        found = np.where(np.isnan(found), other, found)
    return np.nan_to_num(found)


def too_early(row: int) -> InputError:
    """That a row lies before the one that came before it."""
    return InputError(
        f"rows are not in the order of time: row {row} of these lies before the one that came before it. "
        "Sort them by time."
    )


def steps_of(moments: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """The number of the step that each moment falls into, counted from 1970."""
    if (moments == NOT_A_TIME).any():
        row = int((moments == NOT_A_TIME).argmax())
        raise InputError(f"row {row} of these has no time: fill it, or leave the row out.")
    return moments // step
