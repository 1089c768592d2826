"""Rows that wait for their targets, of all keys: which key each is of, and what was told of late.

Each row waits in the queue of its own key's learner, with what that kept of it. Here are the rules that are
one for all keys: the oldest of all makes room, and a target that comes again is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from kons.arrays import require_integer
from kons.errors import InputError
from kons.keyed.pages import Key
from kons.learners.queue import MOST, Identifier, Queue
from kons.stored import Stored

__all__ = ["Waiting"]


class Waiting:
    """As the :class:`~kons.learners.queue.Queue` of one learner, to whoever asks it; a hundred bytes a row.

    >>> from kons import AutoKONS, Keyed
    >>> keyed = Keyed(AutoKONS(effort="tiny"), key="sensor")
    >>> keyed.queue.most = 2
    >>> answers = [keyed.ask({"sensor": f"s{i}", "load": 1.0}, i) for i in range(3)]
    >>> keyed.queue.ids, keyed.queue.dropped
    ([1, 2], 1)
    """

    dropped: int
    repeated: int

    def __init__(self) -> None:
        self.keys: OrderedDict[Identifier, Key] = OrderedDict()
        """Of the rows that wait, oldest first."""
        self.dropped = self.repeated = 0
        self._most = MOST
        self._told: OrderedDict[Identifier, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, id: object) -> bool:
        return id in self.keys

    @property
    def pending(self) -> int:
        """How many rows wait."""
        return len(self.keys)

    @property
    def ids(self) -> list[Identifier]:
        """Of the rows that wait, oldest first."""
        return list(self.keys)

    @property
    def most(self) -> int:
        """So many rows wait at most, then the oldest makes room; so many identifiers told are remembered."""
        return self._most

    @most.setter
    def most(self, value: int) -> None:
        self._most = require_integer(value, "most", at_least=1)
        self._forget_oldest_told()

    def require_new(self, id: Identifier, key: Key) -> None:
        """Refuse an id that was told, or that waits for another key."""
        if id in self._told:
            raise InputError(
                f"id {id!r} was told already: a row is asked before its target comes, under an id of its own."
            )
        if self.keys.get(id, key) != key:
            raise InputError(f"id {id!r} waits for key {self.keys[id]!r}, and came again for {key!r}.")

    def settle(self, id: Identifier, y: Any) -> None:
        """A row was learned with this target."""
        del self.keys[id]
        self._told[id] = y
        self._forget_oldest_told()

    def tell_again(self, id: Identifier, y: Any) -> None:
        """Count a target that was told before; another one is refused."""
        queue = Queue()
        if id in self._told:
            queue.note(id, self._told[id])
        queue.tell_again(id, y)
        self.repeated += 1

    def drop_key(self, key: Key) -> None:
        """Nothing waits for this key any longer."""
        self.keys = OrderedDict((id, its) for id, its in self.keys.items() if its != key)

    def _forget_oldest_told(self) -> None:
        while len(self._told) > self._most:
            self._told.popitem(last=False)

    # ---- files

    def state(self) -> dict[str, Any]:
        """All of it."""
        told = Queue()
        for id, y in self._told.items():
            told.note(id, y)
        return {
            "most": self._most,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "asked": [[id, key] for id, key in self.keys.items()],
            "told": told.state()["told"],
        }

    def load(self, stored: Stored, known: Any) -> None:
        """What :meth:`state` gave; only keys that are known have rows."""
        self._most = stored.integer("most", at_least=1)
        self.dropped, self.repeated = stored.integer("dropped"), stored.integer("repeated")
        self.keys.clear()
        for pair in stored.items("asked"):
            if not isinstance(pair, list) or len(pair) != 2 or pair[1] not in known:
                raise stored.error("asked holds something else than an id and its key")
            self.keys[pair[0]] = pair[1]
        empty = Queue().state()
        self._told = Queue().resume(empty | {"told": stored.take("told")})._told
        stored.finish()
