"""What became of each identifier: the same request again has the same answer, and is not learned again.

::

    of each id     which x it was (a digest), the answer, and the label once it is told

Ids are remembered for a time, by the clock of the log, and so many of them at most; the oldest goes first. A
label that comes later than that is refused as unknown, and counted. About 300 bytes of memory an id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["Answered", "Identifiers", "digest_of"]

Id = int | str


class Answered(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of one id."""

    x: bytes
    time: float
    answer: Any = None
    """None: it was learned without having been asked."""
    y: Any = None
    """None: its label has not come."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Answered).decode


class Identifiers:
    """The last ids, at most ``most`` of them and not older than ``seconds``.

    >>> ids = Identifiers(most=2, seconds=60.0)
    >>> for name in "abc":
    ...     ids["a" + name] = Answered(digest_of({"x": 1.0}), time=5.0, answer=0.5)
    >>> list(ids.expire(now=6.0)), ids.find("aa"), ids.find("ac").answer
    (['aa'], None, 0.5)
    """

    most: int
    seconds: float

    def __init__(self, most: int, seconds: float) -> None:
        self.most, self.seconds = most, seconds
        # Packed: a million of them are half as large as so many objects.
        self._packed: dict[Id, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def __setitem__(self, id: Id, answered: Answered) -> None:
        """A new one comes last; one that is known stays where it is."""
        self._packed[id] = _encode(answered)

    def find(self, id: Id) -> Answered | None:
        """What is remembered of an id."""
        packed = self._packed.get(id)
        return None if packed is None else _decode(packed)

    def expire(self, now: float) -> Iterator[Id]:
        """Forget those that are too many or too old, oldest first."""
        while self._packed:
            id = next(iter(self._packed))
            if len(self._packed) <= self.most and _decode(self._packed[id]).time >= now - self.seconds:
                return
            del self._packed[id]
            yield id

    def save(self) -> list[tuple[Id, bytes]]:
        """All of them, oldest first."""
        return list(self._packed.items())

    def load(self, saved: list[tuple[Id, bytes]]) -> None:
        """What :meth:`save` gave."""
        self._packed = dict(saved)


def digest_of(x: Any) -> bytes:
    """The same for rows that are equal: whatever the order of their columns, and 1 as 1.0.

    >>> digest_of({"a": 1, "b": "u"}) == digest_of({"b": "u", "a": 1.0}) != digest_of({"a": 1, "b": None})
    True
    """
    plain = _plain(x.items()) if isinstance(x, dict) else [[i, v] for i, v in enumerate(x)]
    return hashlib.blake2b(_encode(plain), digest_size=8).digest()


def _plain(items: Any) -> list[Any]:
    return [(name, float(value) if type(value) is int else value) for name, value in sorted(items)]
