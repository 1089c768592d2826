"""From a column to features, learned as rows come: what is the same for numbers, text and dates.

============  =======================================================================================
a column of   becomes
============  =======================================================================================
numbers       itself, a gap filled by the mean of the values so far; after the first gap, whether it is
              missing; where one value has half of the rows and the others tell something that a line
              does not see, the mean target of the value's rows (:mod:`kons.tables.levels`)
text          an indicator a frequent level, up to 64; where there are more, the level's mean target
dates         days since the first one; sine and cosine of hour, weekday and time of year, if they vary
============  =======================================================================================

A row is encoded with what the rows before it have told. What it tells itself is learned behind it, and may
add features for the rows that follow: that is where a block is cut, so that blocks and rows are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from kons.arrays import Matrix, Vector
from kons.state import Array, Count, Field, Inner, Items, Part, Sizes, fields
from kons.stored import Stored
from kons.tables.cells import BadCell, ColumnFormat, NumberStyle, converter, numbers_of_gaps
from kons.tables.levels import Levels, TargetStatistics
from kons.tables.records import Records, typed

__all__ = ["STATISTIC", "ColumnFeatures", "OneCell"]

STATISTIC = "mean target"


class _Format(Field):
    """How the cells of the column are written, where it was read from a file of text."""

    left_out = True

    def save(self, part: Any, name: str) -> Any:
        format = getattr(part, name)
        return None if format is None else asdict(format) | {"name": ""}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if key not in stored:
            return None
        tree = stored.take(key)
        try:
            style, gaps = NumberStyle(**tree["style"]), tuple(tree["na_values"])
            found = ColumnFormat(**{**tree, "style": style, "na_values": gaps})
            converter(found.kind, style=style, order=found.order, na_values=gaps)("1")
        except BadCell:
            pass
        except (TypeError, KeyError, ValueError, AttributeError):
            raise stored.error(f"{key} does not say how cells are written") from None
        return found


class ColumnFeatures(Part, ABC):
    """The features of a column: the i-th of them stands at ``slots[i]`` of a row and is for ``roles[i]``.

    Blocks go through ``first_growth``, ``fill`` and, behind the rows, ``grow``; ``codes`` are those of the
    levels of the rows, of columns that have levels.
    """

    kind: ClassVar[str]
    STATE = fields(
        slots=Items("a place", lambda slot: type(slot) is int and 0 <= slot < 2**31),
        roles=Items("a role", lambda role: type(role) is str),
        gaps=Count(),
        levels=Inner(ends=True),
        statistics=Inner(ends=True),
        late_codes=Array(None, at_least=-1.0),
        format=_Format(),
    )

    def __init__(self, outputs: int) -> None:
        self.format: ColumnFormat | None = None
        #: Of rows whose targets are not known yet, the levels.
        self.late_codes: Vector = np.empty(0)
        self.slots: list[int] = []
        self.roles: list[str] = []
        self.gaps = 0
        #: Levels that came for the first time, until somebody asks: place in the block, how many were known.
        self.new_levels: list[tuple[int, int]] = []
        self.levels: Levels | None = None
        self.statistics: TargetStatistics | None = None

    @property
    def read(self) -> Callable[[str], Any] | None:
        """:meth:`read_text`, where it is known how cells are written."""
        return None if self.format is None else self.read_text

    @property
    def numbers_of_gaps(self) -> tuple[float, ...]:
        """Numbers that mean a gap, in the file that it was read from."""
        return () if self.format is None else numbers_of_gaps(self.format.na_values)

    def values_of(self, records: Records, name: Any) -> Any:
        """Its values in these rows."""
        return records.values(name, self.kind, self.read)

    def read_text(self, text: Any) -> Any:
        """A cell as it stands in a file: a number, a moment, a level, or None, a gap; itself if not known."""
        if self.format is None:
            return text
        format = self.format
        try:
            value = converter(
                format.kind, style=format.style, order=format.order, na_values=format.na_values
            )(text)
        except BadCell:
            return None
        return np.datetime64(value, "us") if format.kind == "date" and value is not None else value

    # ---- features

    def label(self, name: str, i: int) -> str:
        """What its i-th feature is called, where the column has this name."""
        return name if self.roles[i] == "value" else f"{name} {self.roles[i]}"

    def add(self, roles: dict[str, float], slot: int) -> None:
        """Features for these roles stand from this place on."""
        self.slots += range(slot, slot + len(roles))
        self.roles += roles

    def give_up(self, width: int) -> None:
        """Features from this place on are no more."""
        there = [slot < width for slot in self.slots]
        self.roles = [role for role, stays in zip(self.roles, there, strict=True) if stays]
        self.slots = [slot for slot in self.slots if slot < width]

    def places(self, prefix: str) -> list[int]:
        """Where features stand whose role begins so."""
        return [slot for slot, role in zip(self.slots, self.roles, strict=True) if role.startswith(prefix)]

    @property
    def undecided(self) -> bool:
        """Whether its values may still become levels."""
        return False

    @property
    def turn(self) -> int:
        """When it learns the targets of a row: behind columns whose turn is earlier."""
        return 0

    @property
    def explains(self) -> bool:
        """Whether columns behind it learn of targets only what its levels did not tell."""
        return False

    # ---- rows

    def codes(self, values: Any) -> Any:
        """Of levels that rows are about to teach, new ones among them; None of a column without levels."""
        if self.levels is None:
            return None
        before = len(self.levels.codes)
        codes = self.levels.learn(self.as_levels(values))
        if len(self.levels.codes) > before and self.kind == "text":
            new, places = np.unique(codes, return_index=True)
            named = (new >= before) & (new < len(self.levels.codes))
            self.new_levels = list(zip(places[named].tolist(), new[named].tolist(), strict=True))
        self._reach()
        return codes

    def code(self, level: Any) -> int:
        """Of the level that one row is about to teach."""
        assert self.levels is not None
        code = self.levels.codes.get(level)
        return (
            int(self.codes([level] if self.kind == "text" else np.array([level], float))[0])
            if code is None
            else code
        )

    def as_levels(self, values: Any) -> Any:
        """Values as :class:`~kons.tables.levels.Levels` takes them."""
        return values

    def follow_targets(self, codes: Any, known: Matrix, before: Any, X: Matrix) -> None:
        """Write the statistics of rows, of which ``before`` many of the ``known`` targets were known.

        What the column explains is taken from these: columns come in the order of their ``turn``.
        """
        assert self.statistics is not None
        every = np.concatenate([self.late_codes, codes]).astype(np.int64)
        found = self.statistics.follow(codes, every[: len(known)], known, before, self.explains)
        self.late_codes = every[len(known) :].astype(np.float64)
        if places := self.places(STATISTIC):
            X[:, places] = found[:, : len(places)]

    @abstractmethod
    def joins(self, value: Any, late: bool) -> dict[str, float]:
        """The features that it begins with: roles, and what earlier rows, if it is late, have there."""

    @abstractmethod
    def reserve(self, values: Any) -> dict[str, float]:
        """The features that these rows of the stream, the first of all, will ask for. Learns nothing."""

    @abstractmethod
    def first_growth(self, values: Any, codes: Any) -> int:
        """The first row after which there are more features; the number of rows if there is none."""

    @abstractmethod
    def grow(self, value: Any) -> dict[str, float]:
        """What joins behind this row: roles, and what earlier rows have there."""

    @abstractmethod
    def fill(self, values: Any, codes: Any, X: Matrix) -> None:
        """Write the features of rows, each by those before it, which it then has learned."""

    @abstractmethod
    def look(self, values: Any, X: Matrix) -> None:
        """Write the features of rows with what is known. Changes nothing."""

    @abstractmethod
    def typical(self, points: Matrix) -> Any:
        """The median of its values in rows that are encoded, or the commonest level of all; None: a gap."""

    @abstractmethod
    def decode(self, row: Vector) -> Any:
        """The value that was encoded, as far as the row tells; None for a gap."""

    @abstractmethod
    def one_cell(self) -> OneCell:
        """Its way for single dicts, as long as no features join."""

    def _known(self, points: Matrix) -> Matrix:
        """Those of the rows in which it is not missing."""
        places = self.places("missing")
        return points[points[:, places[0]] == 0.0] if places else points

    def _look_up_statistics(self, codes: Any, X: Matrix) -> None:
        """Write the statistics of levels as they are now."""
        if (places := self.places(STATISTIC)) and self.statistics is not None:
            X[:, places] = self.statistics.look(codes)[:, : len(places)]

    def missing_statistics(self) -> dict[str, float]:
        """Roles of target statistics that have no place yet, if the column has any."""
        if not self.places(STATISTIC):
            return {}
        return {role: earlier for role, earlier in self._all_statistics().items() if role not in self.roles}

    def _all_statistics(self) -> dict[str, float]:
        """A role for each output; earlier rows have the mean of all there, as if their levels told nothing.

        Any other number would tell them apart from those that follow, which is all that it would tell.
        """
        assert self.statistics is not None
        unknown = self.statistics.look(np.array([-1]))[0]
        return {f"{STATISTIC} {k + 1}": mean for k, mean in enumerate(unknown.tolist())}

    def _reach(self) -> None:
        if self.levels is not None and self.statistics is not None:
            self.statistics.reach(len(self.levels))

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.slots) != len(self.roles) or (self.statistics is None) is not (self.levels is None):
            raise stored.error("its features do not fit its places")
        self._reach()


class OneCell(ABC):
    """A column for one dict at a time: bit for bit what it is for a block of one row."""

    def __init__(self, column: ColumnFeatures) -> None:
        self.column: Any = column
        self.statistics: list[int] = column.places(STATISTIC)

    @abstractmethod
    def write(self, value: Any, name: Any, row: Any) -> Any:
        """Write the features of a value; returns it as the other two want it."""

    @abstractmethod
    def grows(self, value: Any) -> bool:
        """Whether features join behind a row with this value."""

    @abstractmethod
    def learn(self, value: Any, known: Vector) -> None:
        """Learn a row."""

    def _typed(self, value: Any, name: Any) -> Any:
        return typed([value], self.column.kind, name, self.column.read)[0]

    def _write_statistics(self, code: int, row: Any) -> None:
        for k, slot in enumerate(self.statistics):
            row[slot] = self.column.statistics.look_one(code, k)
