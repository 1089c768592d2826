"""Features by name as rows of numbers: who stands in which column, and what fills a gap.

::

    a number     one column; where it is missing, the mean of the values learned so far
    text         some columns, a hashed one-hot (kons.encoding); where it is missing, all zeros

New features get columns behind the others, so that a column, once given, keeps its meaning.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from operator import add, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.encoding import HashedOneHot
from kons.errors import InputError, notice
from kons.learners.queue import Queue
from kons.river.frames import Table
from kons.river.values import as_kept, as_number, as_text, as_value
from kons.state import Count, Items, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["ENOUGH", "Columns", "DictQueue", "Reading", "Samples"]

FLOAT64 = np.dtype(np.float64)
LARGEST = sys.float_info.max
# Values of a late feature that its scale is read off.
ENOUGH = 50

#: Values of a feature before it has a column: all numbers, or all text.
Samples = list[float] | list[str]


class Reading(NamedTuple):
    """A row, the numbers in it by the order of their features (None: filled), and what has no column."""

    row: Vector
    numbers: list[float | None]
    new: dict[Any, float | str]


class Place(NamedTuple):
    """Where a feature stands: its first column, and its number among those that are numbers, or -1."""

    column: int
    number: int

    @property
    def is_text(self) -> bool:
        return self.number < 0


def _is_name(name: Any) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2


def _has_kind(pair: Any) -> bool:
    """Whether this is a name, and whether its feature is text."""
    return _is_pair(pair) and _is_name(pair[0]) and type(pair[1]) is bool


def _waits(pair: Any) -> bool:
    """Whether this is a name and the values of its feature."""
    if not (_is_pair(pair) and _is_name(pair[0])):
        return False
    samples = pair[1]
    return isinstance(samples, list) and 0 < len(samples) <= ENOUGH and _alike(samples)


class Columns(Part):
    """The features met so far, their columns, and the running means of the numbers among them."""

    STATE = fields(
        width=Count(),
        _is_text=Items(
            "a feature with its kind", _has_kind, pack=lambda kinds: list(kinds.items()), unpack=dict
        ),
        _sums=Items("a number", lambda value: type(value) is float and value == value),
        _counts=Items("a count", lambda value: type(value) is int and value >= 0),
        waiting=Items(
            "a feature that waits",
            _waits,
            pack=lambda waiting: [(name, samples[:]) for name, samples in waiting.items()],
            unpack=lambda waiting: {name: samples[:] for name, samples in waiting},
        ),
        ignored=Items("a name", _is_name, pack=lambda names: sorted(names, key=_sortable), unpack=set),
    )

    def __init__(self, text_width: int = 8) -> None:
        self.encoder = HashedOneHot(text_width)
        self.width = 0
        self.waiting: dict[Any, Samples] = {}
        """Features that came late: the first values of each, for its scale."""
        self.ignored: set[Any] = set()
        """Features that came late and that the learner cannot take."""
        # Features in the order of their columns.
        self._is_text: dict[Any, bool] = {}
        # Plain lists: for some features they are faster than arrays, and sums may overflow in silence.
        self._sums: list[float] = []
        self._counts: list[int] = []
        # Rows in which every number came, counted here at once.
        self._complete = 0
        # Whether it was told that values are missing.
        self._told = False
        self._arrange()

    # ---- one row

    def quick(self, x: Any) -> tuple[Vector, tuple[Any, ...]] | None:
        """The row of a dict with just the known features, of the kinds they were, and the numbers in it.

        None for any other dict, which :meth:`read` then looks at value by value.
        """
        # Other mappings may answer for what they do not hold, and keep the answer (a defaultdict).
        if type(x) is not dict or len(x) != self._expected:
            return None
        try:
            numbers = self._pick(x)
            # Not finite if any of them is not; an error if any is no number.
            total = sum(numbers)
            if isinstance(total, np.ndarray):  # masked, or no single number
                return None
            if type(total) is not float:  # whole numbers, or those of another library
                numbers = tuple(map(float, numbers))
                total = sum(numbers)
            if total - total != 0.0:
                return None
            if not self._texts:
                return np.array(numbers, FLOAT64), numbers
            row = np.zeros(self.width)
            row[self._number_columns] = numbers
            for name, column in self._texts:
                text = x[name]
                if type(text) is not str:
                    return None
                row[column + self.encoder.place(text)] = 1.0
            return row, numbers
        except (TypeError, LookupError, ValueError, ArithmeticError):
            return None

    def read(self, x: Any) -> Reading:
        """Any dict as a row; what is missing is filled, and told."""
        if type(x) is not dict and not isinstance(x, Mapping):
            hint = ": use x.to_dict()" if hasattr(x, "to_dict") else ""
            raise InputError(f"x is a {type(x).__name__}, expected a dict: feature -> value{hint}.")
        row = np.zeros(self.width)
        numbers: list[float | None] = [None] * len(self._sums)
        new: dict[Any, float | str] = {}
        found = 0
        for name, value in x.items():
            place = self._places.get(name)
            if place is None:
                plain = as_value(value, name)
                if plain is not None and name not in self.ignored:
                    new[name] = plain
            elif place.number < 0:
                text = as_text(value, name)
                if text is not None:
                    row[place.column + self.encoder.place(text)] = 1.0
                    found += 1
            else:
                plainly = type(value) is float and value - value == 0.0
                number = value if plainly else as_number(value, name)
                if number is not None:
                    row[place.column] = numbers[place.number] = number
                    found += 1
        if found < len(self._places):
            self._fill(row, numbers)
            self._tell_missing(x)
        return Reading(row, numbers, new)

    def count_complete(self, numbers: Iterable[float]) -> None:
        """A row in which every number came was learned."""
        self._sums = list(map(add, self._sums, numbers))
        self._complete += 1

    def count(self, numbers: list[float | None]) -> None:
        """A row was learned in which some may have been filled."""
        for i, number in enumerate(numbers):
            if number is not None:
                self._sums[i] += number
                self._counts[i] += 1

    def mean(self, number: int) -> float:
        """What stands for a missing number: the mean of those learned so far."""
        mean = self._sums[number] / max(self._counts[number] + self._complete, 1)
        return mean if math.isfinite(mean) else math.copysign(LARGEST, mean)

    def _fill(self, row: Vector, numbers: list[float | None]) -> None:
        for number, column in enumerate(self._number_columns.tolist()):
            if numbers[number] is None:
                row[column] = self.mean(number)

    def _tell_missing(self, x: Any) -> None:
        if self._told:
            return
        missing = next((name for name in self._places if name not in x), None)
        which = "a feature" if missing is None else f"the feature {missing!r}"
        notice(
            "river missing",
            f"{which} is missing in a row: the mean of its values so far stands for it, or no text at all. "
            "Told once, also for other features.",
        )
        self._told = True

    # ---- many rows

    def read_table(self, table: Table, rows: slice) -> tuple[Matrix, Columns]:
        """Rows of a table, each filled by the means of all before it, and the columns behind them."""
        numbers, came = self._numbers(table, rows)
        with np.errstate(over="ignore"):
            sums = np.cumsum(np.vstack([self._sums, numbers]), axis=0)
        counts = np.cumsum(np.vstack([np.array(self._counts) + self._complete, came]), axis=0)
        if not came.all():
            means = np.clip(sums[:-1] / np.maximum(counts[:-1], 1.0), -LARGEST, LARGEST)
            numbers = np.where(came, numbers, means)
        behind = self.copy()
        behind._sums, behind._complete = sums[-1].tolist(), 0
        behind._counts = counts[-1].astype(np.int64).tolist()
        return self._with_text(numbers, table, rows), behind

    def look_at_table(self, table: Table) -> Matrix:
        """Rows of a table, filled by the means so far."""
        numbers, came = self._numbers(table, slice(None))
        means = [self.mean(number) for number in range(len(self._sums))]
        return self._with_text(np.where(came, numbers, means), table, slice(None))

    def first_new(self, table: Table, start: int) -> int:
        """The first row from ``start`` on with a feature that has no column; behind the last if none has."""
        first = len(table)
        for name in table.names:
            if name not in self._places and name not in self.ignored:
                first = min(first, table.first_value(name, start))
        return first

    def _numbers(self, table: Table, rows: slice) -> tuple[Matrix, NDArray[np.bool_]]:
        """The numbers, a column for each feature that is one, 0 where it is missing; and where it came."""
        count = len(range(*rows.indices(len(table))))
        numbers = np.full((count, len(self._sums)), np.nan)
        for name, place in self._places.items():
            if not place.is_text and name in table:
                numbers[:, place.number] = table.numbers(name)[rows]
        came = ~np.isnan(numbers)
        texts = (name in table and None not in table.texts(name)[rows] for name, _ in self._texts)
        if not (came.all() and all(texts)):
            self._tell_missing(table)
        return np.where(came, numbers, 0.0), came

    def _with_text(self, numbers: Matrix, table: Table, rows: slice) -> Matrix:
        X = np.zeros((len(numbers), self.width))
        X[:, self._number_columns] = numbers
        for name, column in self._texts:
            if name in table:
                X[:, column : column + self.encoder.width] = self.encoder.encode(table.texts(name)[rows])
        return X

    # ---- more features

    def grown(self, features: Mapping[Any, float | str]) -> Columns:
        """With columns for more features; in an order that does not depend on theirs."""
        grown = self.copy()
        if not features and not grown.width:
            grown.width = 1  # rows without any feature: one column, always 0
        grown._counts, grown._complete = [count + self._complete for count in self._counts], 0
        for name in _in_order(features):
            is_text = isinstance(features[name], str)
            grown._is_text[name] = is_text
            grown.width += self.encoder.width if is_text else 1
            before: Any = grown.waiting.pop(name, [])
            if not is_text:
                grown._sums.append(float(sum(before)))
                grown._counts.append(len(before))
        grown._arrange()
        return grown

    def without(self, features: Iterable[Any]) -> Columns:
        """With features that are ignored from now on."""
        fewer = self.copy()
        fewer.ignored |= set(features)
        fewer.waiting = {
            name: samples for name, samples in fewer.waiting.items() if name not in fewer.ignored
        }
        return fewer

    def enough_of(self, name: Any, value: float | str) -> Samples | None:
        """The values of a late feature, this one among them, if they are enough to read a scale off.

        Enough are 50 that are not all the same. Changes nothing: see :meth:`remember`.
        """
        samples: Any = [*self.waiting.get(name, []), value]
        if not _alike(samples):
            return None
        return samples if len(samples) >= ENOUGH and len(set(samples)) > 1 else None

    def remember(self, name: Any, value: float | str) -> None:
        """Keep a value of a feature that waits; one of another kind than the first is passed over."""
        samples: Any = self.waiting.setdefault(name, [])
        # Those of a full list are all the same: one more says nothing.
        if len(samples) < ENOUGH and _alike([*samples[:1], value]):
            samples.append(value)

    def columns_of(self, features: Mapping[Any, Samples]) -> Matrix:
        """The columns of features that waited, as :meth:`grown` orders them; as many rows as all have."""
        rows = min(len(samples) for samples in features.values())
        last: dict[Any, Any] = {name: samples[-rows:] for name, samples in features.items()}
        firsts = {name: samples[0] for name, samples in last.items()}
        return np.hstack(
            [
                self.encoder.encode(last[name]) if isinstance(firsts[name], str) else np.c_[last[name]]
                for name in _in_order(firsts)
            ]
        )

    # ---- copies and files

    def copy(self) -> Columns:
        """One that can be changed without changing this one."""
        twin = Columns.__new__(Columns)
        twin.restore(self.mark())
        return twin

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        return super().state() | {"counts": [count + self._complete for count in self._counts]}

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        self._arrange()
        first = min((place.column for place in self._places.values()), default=self.width)
        if first not in (0, 1) or not len(self._number_columns) == len(self._sums) == len(self._counts):
            raise stored.error("its features do not fill its columns")

    # ---- inside

    def _arrange(self) -> None:
        """Columns, and what :meth:`quick` needs."""
        widths = [self.encoder.width if is_text else 1 for is_text in self._is_text.values()]
        # The first column may be for rows without any feature.
        column, number = self.width - sum(widths), 0
        self._places: dict[Any, Place] = {}
        for (name, is_text), width in zip(self._is_text.items(), widths, strict=True):
            self._places[name] = Place(column, -1 if is_text else number)
            column, number = column + width, number + (not is_text)
        numbers = {name: place.column for name, place in self._places.items() if not place.is_text}
        self._texts = [(name, place.column) for name, place in self._places.items() if place.is_text]
        self._number_columns = np.array(list(numbers.values()), np.intp)
        # A column without a feature is for rows that have none, which are not the quick ones.
        whole = len(numbers) + len(self._texts) * self.encoder.width == self.width > 0
        self._expected = len(self._places) if whole else -1
        self._pick: Any = itemgetter(*numbers) if len(numbers) > 1 else Pick(tuple(numbers))


class DictQueue(Queue):
    """Features by name that wait for their target: a file has them as pairs, names may be no text."""

    _of_numbers = False

    def _packed(self, points: list[Any]) -> list[Any]:
        return [list(x.items()) for x in points]

    def _unpacked(self, stored: Stored, key: str, count: int) -> list[Any]:
        points = stored.items(key, count)
        for x in points:
            if not (isinstance(x, list) and all(_is_pair(pair) and _is_name(pair[0]) for pair in x)):
                raise stored.error(f"{key} holds something else than features by name")
            try:
                kept = all(as_kept(value, name) is value for name, value in x)
            except InputError as error:
                raise stored.error(f"{key}: {str(error).rstrip('.')}") from error
            if not kept:
                raise stored.error(f"{key} holds a value that is neither a number nor text")
        return [dict(x) for x in points]


class Pick:
    """As ``itemgetter``, for one name or none: the values as a tuple."""

    def __init__(self, names: tuple[Any, ...]) -> None:
        self._names = names

    def __call__(self, x: Any) -> tuple[Any, ...]:
        return tuple([x[name] for name in self._names])


def _in_order(features: Mapping[Any, Any]) -> list[Any]:
    """Numbers before text, each by name: an order that does not depend on that of a dict."""
    return sorted(features, key=lambda name: (isinstance(features[name], str), *_sortable(name)))


def _sortable(name: Any) -> tuple[str, str]:
    """Of names of any kind."""
    return type(name).__name__, str(name)


def _alike(values: list[Any]) -> bool:
    """All finite numbers, or all text."""
    if all(type(value) is str for value in values):
        return True
    return all(type(value) is float and math.isfinite(value) for value in values)
