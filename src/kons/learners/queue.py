"""Rows that wait for their targets, by identifier, with what their learner asks to be kept of each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from kons.arrays import Vector
from kons.core.storage import copied
from kons.errors import InputError, TargetError
from kons.learners.identifiers import LARGEST, Identifier, Identifiers, as_identifier
from kons.learners.labels import as_label
from kons.state import Count, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Identifier", "Kept", "ObjectQueue", "Queue", "Shapes", "as_identifier"]

#: What is kept of a row that was asked: its point, and what else the learner needs, arrays of fixed shapes.
Kept = tuple[Any, ...]
#: The shape of each; None for a point that may be anything, or for any length.
Shapes = tuple[tuple[int | None, ...] | None, ...]


class _Rows(Field):
    """Rows that wait, oldest first: identifiers, answers, points, and the rest of what was kept, stacked."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        rows = getattr(part, name)
        kept = [row for row, _ in rows.values()]
        return {
            "ids": list(rows),
            "answers": _column([answer for _, answer in rows.values()]),
            "points": part._packed([row[0] for row in kept]),
            "kept": [_stacked(pieces) for pieces in list(zip(*kept, strict=True))[1:]],
        }

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        saved = stored.inner(key)
        ids = _identifiers(saved, "ids")  # more than `most`, where that was lowered: the next row drops them
        answers = _values(saved, "answers", len(ids))
        points = part._unpacked(saved, "points", len(ids))
        pieces = []
        for i, piece in enumerate(saved.items("kept")):
            lengths = (None,) * (np.ndim(piece) - 1) if isinstance(piece, np.ndarray) else ()
            pieces.append(saved.checked(piece, f"kept[{i}]", len(ids), *lengths))
        saved.finish()
        return OrderedDict(
            zip(ids, zip(zip(points, *pieces, strict=True), answers, strict=True), strict=True)
        )


class _Told(Field):
    """Targets that were told, by identifier, oldest first."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        told = getattr(part, name)
        return {"ids": list(told), "targets": _column(list(told.values()))}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        saved = stored.inner(key)
        ids = _identifiers(saved, "ids")
        if not part._rows.keys().isdisjoint(ids):
            raise saved.error("a row that waits was told")
        targets = _values(saved, "targets", len(ids))
        saved.finish()
        return OrderedDict(zip(ids, targets, strict=True))


class Queue(Identifiers, Part):
    """Rows of numbers that wait for their targets, at most :attr:`most`; and what was told of late.

    Costs the rows' memory and about a microsecond a row; nothing before the first is asked.

    >>> from kons import EmbeddedKONS, Gaussian, Squared
    >>> learner = EmbeddedKONS(Gaussian(), Squared())
    >>> learner.queue.most = 2
    >>> answers = [learner.ask([x], x) for x in range(3)]
    >>> learner.queue.ids, learner.queue.dropped
    ([1, 2], 1)
    """

    STATE = fields(_most=Count(1), dropped=Count(), repeated=Count(), _rows=_Rows(), _told=_Told())
    _of_numbers: ClassVar[bool] = True

    _rows: OrderedDict[Identifier, tuple[Kept, Any]]

    @property
    def rows(self) -> list[tuple[Kept, Any]]:
        """What is kept of the rows that wait, oldest first, and the answers."""
        return list(self._rows.values())

    # ---- rows

    def put(self, id: Identifier, kept: Kept, answer: Any) -> list[Kept]:
        """Let a row wait, with the answer that was given (in an evaluation, with its target).

        Returns what was kept of rows that made room for it.
        """
        rows = self._rows
        if rows and self._of_numbers:
            shape, expected = kept[0].shape, next(iter(rows.values()))[0][0].shape
            if shape != expected:
                raise InputError(
                    f"x has {shape[0]} feature(s), rows that wait have {expected[0]}: tell or forget them."
                )
        dropped = []
        while len(rows) >= self._most:
            dropped.append(self.take_oldest()[0])
        self.dropped += len(dropped)
        rows[id] = kept, answer
        return dropped

    def find(self, id: Identifier) -> tuple[Kept, Any]:
        """What was kept of a row that waits, and what was put beside it."""
        return self._rows[id]

    def take_oldest(self) -> tuple[Kept, Any]:
        """The row that waits longest, which does no longer, and what was put beside it."""
        return self._rows.popitem(last=False)[1]

    def note(self, id: Identifier, y: Any) -> None:
        """A row is about to be learned with this target: :meth:`settle` or :meth:`take_back` comes next."""
        self._told[id] = _plain(y)

    def settle(self, id: Identifier) -> None:
        """A row was learned: its target is remembered for a while."""
        self._rows.pop(id, None)
        self._forget_oldest_told()

    def take_back(self, id: Identifier) -> None:
        """A row was not learned: it waits as before."""
        self._told.pop(id, None)

    def drop(self, id: Identifier) -> Kept:
        """A row is never learned; what was kept of it."""
        if id not in self._rows:
            raise self._unknown(id)
        return self._rows.pop(id)[0]

    def ask_again(self, id: Identifier, point: Any) -> Any:
        """The answer that was given to a row that waits, if this is its point."""
        if id not in self._rows:
            raise self._told_already(id)
        kept, answer = self._rows[id]
        if not _same(kept[0], point):
            raise InputError(
                f"id {id!r} waits for its target with another x: give every row an id of its own, or "
                "forget this one first."
            )
        return answer.copy() if isinstance(answer, np.ndarray) else answer

    def forget_told(self) -> None:
        """Remember no targets: somebody else does."""
        self._told.clear()

    def tell_again(self, id: Identifier, y: Any) -> None:
        """Count a target that was told before; another one is refused."""
        if id not in self._told:
            raise self._unknown(id)
        before, now = self._told[id], _plain(y)
        if not _same(before, now):
            raise TargetError(
                f"id {id!r} was told {before!r}, now {now!r}: what was learned cannot be taken back."
            )
        self.repeated += 1

    def widen(self, values: Vector) -> None:
        """Rows that wait have these values in columns that came since."""
        for id, ((point, *rest), answer) in self._rows.items():
            self._rows[id] = (np.concatenate([point, values]), *rest), answer

    @property
    def width(self) -> int | None:
        """How many features the rows that wait have; None: there are none."""
        if not self._rows or not self._of_numbers:
            return None
        return len(next(iter(self._rows.values()))[0][0])

    def narrow(self, width: int | None) -> None:
        """Take columns back that came since rows had this :attr:`width`."""
        for id, ((point, *rest), answer) in self._rows.items():
            if width is not None and len(point) > width:
                self._rows[id] = (point[:width].copy(), *rest), answer

    def _unknown(self, id: Identifier) -> InputError:
        return InputError(
            f"no row waits under the id {id!r}: it was not asked, was forgotten, was told more than "
            f"{self._most:,} rows ago, or made room for others, as {self.dropped:,} did (queue.most)."
        )

    # ---- files

    def require_shapes(self, shapes: Shapes, stored: Stored) -> None:
        """Refuse rows that were loaded and that their learner cannot learn."""
        for kept, _ in self._rows.values():
            fits = len(kept) == len(shapes) and all(
                shape is None
                or (
                    len(shape) == np.ndim(piece)
                    and all(n in (None, m) for n, m in zip(shape, piece.shape, strict=True))
                )
                for piece, shape in zip(kept, shapes, strict=True)
            )
            if not fits:
                raise stored.error(f"a row that waits is none that it can learn, of shapes {shapes}")

    def _packed(self, points: list[Any]) -> Any:
        return np.stack(points) if points else np.empty((0, 0))

    def _unpacked(self, stored: Stored, key: str, count: int) -> Iterable[Any]:
        return stored.array(key, count, None)


class ObjectQueue(Queue):
    """Points of any kind that wait for their targets."""

    _of_numbers = False

    def _packed(self, points: list[Any]) -> Any:
        return copied(points)

    def _unpacked(self, stored: Stored, key: str, count: int) -> Iterable[Any]:
        return list(copied(stored.items(key, count)))


def _plain(y: Any) -> Any:
    """A target that was learned, to be compared with and saved: a plain number or label, or some numbers."""
    if type(y) is float or type(y) is str:
        return y
    try:
        if isinstance(y, (np.ndarray, list, tuple)):
            numbers = np.array(y, dtype=np.float64).ravel()
            return numbers if len(numbers) > 1 else float(numbers[0])
        return as_label(y)
    except (InputError, ValueError, TypeError, IndexError):
        return repr(y)  # whoever learned it knows what it is


def _same(a: Any, b: Any) -> bool:
    """Whether two points or targets are equal."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    try:
        return a is b or bool(a == b)
    except Exception:  # points that cannot be compared
        return False


def _stacked(pieces: Sequence[Any]) -> Any:
    """Pieces of rows, one behind the other; of vectors, the shorter ones end in 0."""
    lengths = {len(piece) for piece in pieces if np.ndim(piece) == 1}
    if len(lengths) < 2:
        return np.stack(pieces)
    longest = max(lengths)
    ends = [np.zeros(longest - len(piece)) for piece in pieces]
    return np.stack([np.concatenate(both) for both in zip(pieces, ends, strict=True)])


def _column(values: list[Any]) -> Any:
    """Numbers, or rows of them, as an array; labels as they are."""
    for kind in (float, np.ndarray):
        if values and all(type(value) is kind for value in values):
            return np.array(values)
    return list(values)


def _values(stored: Stored, key: str, count: int) -> list[Any]:
    """What :func:`_column` made."""
    values = stored.take(key)
    if isinstance(values, np.ndarray):
        array = stored.checked(values, key, count, *(None,) * (values.ndim == 2))
        return array.tolist() if array.ndim == 1 else list(array)
    if not isinstance(values, list) or len(values) != count:
        raise stored.error(f"{key} are no list of {count}")
    try:
        return [
            stored.checked(value, key, None)
            if isinstance(value, np.ndarray)
            else None
            if value is None
            else as_label(value, key)
            for value in values
        ]
    except InputError as error:
        raise stored.error(str(error).rstrip(".")) from error


def _identifiers(stored: Stored, key: str) -> list[Identifier]:
    ids = stored.items(key)
    for id in ids:
        if type(id) not in (int, str) or (type(id) is int and abs(id) >= LARGEST):
            raise stored.error(f"{key} holds {id!r}, expected text and integers")
    if len(set(ids)) < len(ids):
        raise stored.error(f"{key} are not all different")
    return ids
