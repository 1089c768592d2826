"""Rows that wait for their targets, of all keys: which key each is of, and what was told of late.

Each row waits in the queue of its own key's learner, with what that kept of it. Here are the rules that are
one for all keys: the oldest of all makes room, and a target that comes again is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from kons.errors import InputError
from kons.keyed.pages import Key
from kons.learners.identifiers import Identifier, Identifiers
from kons.learners.queue import Queue
from kons.stored import Stored

__all__ = ["Waiting"]


class Waiting(Identifiers):
    """As the :class:`~kons.learners.queue.Queue` of one learner, to whoever asks it; a hundred bytes a row.

    >>> from kons import AutoKONS, Keyed
    >>> keyed = Keyed(AutoKONS(effort="tiny"), key="sensor")
    >>> keyed.queue.most = 2
    >>> answers = [keyed.ask({"sensor": f"s{i}", "load": 1.0}, i) for i in range(3)]
    >>> keyed.queue.ids, keyed.queue.dropped
    ([1, 2], 1)
    """

    _rows: OrderedDict[Identifier, Key]

    @property
    def keys(self) -> OrderedDict[Identifier, Key]:
        """Of the rows that wait, oldest first."""
        return self._rows

    def require_new(self, id: Identifier, key: Key) -> None:
        """Refuse an id that was told, or that waits for another key."""
        if id in self._told:
            raise self._told_already(id)
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
        self._rows = OrderedDict((id, its) for id, its in self.keys.items() if its != key)

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
