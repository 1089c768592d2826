"""Learners that are awake, at most so many, and the records of all others."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from kons.errors import FileError
from kons.files.registry import build, parameters_of
from kons.files.tree import Decoder, Encoder
from kons.keyed.pages import Key
from kons.keyed.record import pack, unpack
from kons.keyed.store import Folder, Memory
from kons.keyed.tally import FIGURES, Tally
from kons.learners.protocol import as_learner

__all__ = ["Parking"]

# The beginning of a record, which is read without the rest: the figures on how well its key is predicted, and
# the length of the labels behind them, as JSON.
HEAD = struct.Struct(f"<{FIGURES}dI")


class Parking:
    """The learner of each key, or its record; who is woken makes those idle longest park.

    One that was only asked is parked without being written again.
    """

    def __init__(
        self, learner: Any, name: str, store: Memory | Folder, tally: Tally, live: int, largest: int
    ) -> None:
        self._class, self._name, self._given = type(learner), name, parameters_of(name, learner)
        self._labelled = bool(as_learner(learner).labelled)
        self.live: int = live
        self.largest: int = largest
        self._tally = tally
        self.store: Memory | Folder = store
        self.awake: OrderedDict[Key, Any] = OrderedDict()
        self._changed: set[Key] = set()  # of these, since their record was written
        for parked in store:
            self._note(parked, store.get(parked))

    # ---- to be asked, and to learn

    def looked(self, key: Key) -> Any:
        """The learner of a key, to be asked; a key that has not come is not remembered."""
        if key not in self.awake and key not in self.store:
            return self._new()
        return self.wake(key, to_learn=False)

    def wake(self, key: Key, *, to_learn: bool = True) -> Any:
        """The learner of a key. Others make room before: if that fails nothing has changed."""
        learner = self.awake.get(key)
        if learner is None:
            while len(self.awake) >= self.live:
                self.park_oldest()
            learner = self.awake[key] = self._loaded(key) if key in self.store else self._new()
        else:
            self.awake.move_to_end(key)
        if to_learn:
            self._changed.add(key)
        return learner

    def wake_beside(self, key: Key) -> Any:
        """The learner of a key that has come, to learn; nobody is parked for it, as that may fail."""
        if key not in self.awake:
            self.awake[key] = self._loaded(key)
        self._changed.add(key)
        return self.awake[key]

    def _new(self) -> Any:
        return self._class(**self._given)

    def _loaded(self, key: Key) -> Any:
        record = self.store.get(key)
        start = HEAD.size + HEAD.unpack_from(record)[-1]
        return build(self._name, self._given, unpack(memoryview(record)[start:]))

    # ---- parking

    def park_oldest(self) -> None:
        """The one that was idle longest."""
        key = next(iter(self.awake))
        if key in self._changed or key not in self.store:
            self.store.put(key, self.record(key))
            self._changed.discard(key)
        del self.awake[key]

    def write(self) -> None:
        """All records are those of the learners, which stay awake."""
        for key in self.awake:
            if key in self._changed:
                self.store.put(key, self.record(key))
        self._changed.clear()

    def forget_if_new(self, key: Key) -> None:
        """A key of which nothing was learned has not come."""
        if key not in self._tally:
            self.awake.pop(key, None)
            self._changed.discard(key)

    def drop(self, key: Key) -> None:
        """Forget a key's learner."""
        self.awake.pop(key, None)
        self._changed.discard(key)
        self.store.delete(key)

    # ---- going back

    def mark(self, key: Key) -> Callable[[], None]:
        """Where the learner of a key stands, before it is woken: to be called to go back there."""
        learner = self.awake.get(key)
        mark = None if learner is None else as_learner(learner).mark()
        record = self.store.get(key) if learner is None and key in self.store else None

        def restore() -> None:
            self.awake.pop(key, None)
            if learner is not None:
                as_learner(learner).restore(mark)
                self.awake[key] = learner
                self._changed.add(key)
            elif record is not None:
                self.store.put(key, record)
            else:
                self.store.delete(key)

        return restore

    def settle(self) -> None:
        """Park those that were idle longest, where too many are awake."""
        while len(self.awake) > self.live:
            self.park_oldest()

    # ---- records

    def record(self, key: Key) -> bytes:
        """The record of a key as it is now."""
        learner = self.awake.get(key)
        if learner is None:
            return self.store.get(key)
        labels = b""
        if self._labelled:
            labels = json.dumps(Encoder().encode(list(learner.classes))).encode("ascii")
        head = HEAD.pack(*self._tally.figures(key), len(labels))
        record = head + labels + pack(learner.state())
        if len(record) > self.largest:
            raise FileError(
                f"the learner of key {key!r} takes {len(record):,} bytes, at most {self.largest:,} are "
                f'kept: use effort="tiny" or fewer atoms, or largest={len(record)} and above.'
            )
        return record

    def take(self, key: Key, record: bytes) -> None:
        """The record of a key that has not come."""
        self._note(key, record)
        self.store.put(key, record)

    def _note(self, key: Key, record: bytes) -> None:
        """Find again what is known of a key, from the beginning of its record; the rest is not decoded."""
        broken = FileError(f"the record of key {key!r} is no record of a learner.")
        try:
            *told, length = HEAD.unpack_from(record)
            labels = Decoder([], {}, None).decode(json.loads(record[HEAD.size : HEAD.size + length] or b"[]"))
        except (struct.error, ValueError):
            raise broken from None
        if not (np.isfinite(told).all() and min(told[0], told[5]) >= 0.0 and isinstance(labels, list)):
            raise broken
        self._tally.note(key, told, labels)
