"""A learner per key, behind the verbs of one learner."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any, Self

import numpy as np

from kons.arrays import require_integer
from kons.errors import ConfigurationError, InputError
from kons.files.registry import name_of
from kons.keyed.keys import grouped, split
from kons.keyed.parking import Parking
from kons.keyed.record import pack, unpack
from kons.keyed.store import Folder, Key, Memory, entries, entry, spooled
from kons.keyed.tally import KeySummary, Tally
from kons.keyed.waiting import Waiting
from kons.learners.identifiers import as_identifier
from kons.learners.labels import Labels, object_array, stored_labels
from kons.learners.learner import Learner
from kons.learners.protocol import as_learner
from kons.learners.trace import Trace
from kons.stored import Stored

__all__ = ["Keyed"]

#: Of a parked learner: AutoKONS(effort="tiny") takes some 50 to 100 kB, "normal" 10 MB and more.
LARGEST = 1 << 24
LENGTH = struct.Struct("<I")


class Keyed(Learner):
    """A learner for each key of a stream: a sensor, a shop, a customer.

    The learner of a key sees its rows only, without the column of the key, as if it were alone: whatever is
    parked in between, its predictions are those of ``predict_one`` and ``learn_one`` over them, bit for
    bit. At most ``live`` learners are in memory as such; the others are records of bytes, in a ``folder``
    or, if there is none, in memory. To wake and to park one costs milliseconds with ``effort="tiny"``, so
    that blocks of rows, grouped by key, are cheapest. Not for keys with a handful of rows each: they learn
    nothing from each other; give the key to one learner as a column instead.

    Parameters
    ----------
    learner:
        What each key begins with: one that can be saved, which itself learns nothing.
    key:
        The column that names the key, by its name, of arrays by its number: text or whole numbers.
    folder:
        Where idle learners are. One that is there goes on as it was when :meth:`commit` was last called.
    live:
        At most so many learners are awake.
    largest:
        Bytes of one record; a learner beyond is refused.

    >>> from kons import AutoKONS
    >>> keyed = Keyed(AutoKONS(effort="tiny"), key="sensor", live=2)
    >>> for i in range(30):
    ...     keyed.learn_one({"sensor": f"s{i % 3}", "load": float(i)}, float(i % 3))
    >>> [round(keyed.predict_one({"sensor": name, "load": 30.0})) for name in ("s0", "s1", "s2")]
    [0, 1, 2]
    >>> len(keyed), keyed.rows_seen
    (3, 30)
    """

    looks_back = False
    saves = True
    learner: Any
    key: str | int
    folder: str | PathLike[str] | None

    def __init__(
        self,
        learner: Any,
        key: str | int,
        *,
        folder: str | PathLike[str] | None = None,
        live: int = 256,
        largest: int = LARGEST,
    ) -> None:
        name, told = name_of(learner), as_learner(learner)
        if name is None or isinstance(learner, Keyed) or told.lacks("predict_one", "learn_one", "advance"):
            raise ConfigurationError(
                f"learner is {learner!r}, expected one that predicts and that kons.save can write."
            )
        if told.rows_seen:
            raise ConfigurationError(f"learner has seen {told.rows_seen} row(s), expected one that has not.")
        if told.accepts != "vectors":
            raise ConfigurationError("learner takes objects, expected one that takes rows of columns.")
        if not isinstance(key, (str, int)) or key == "":
            raise ConfigurationError(f"key is {key!r}, expected the name of a column.")
        self.learner, self.key, self.folder = learner, key, folder
        self._waiting, self._tally = Waiting(), Tally(bool(told.labelled))
        live = require_integer(live, "live", at_least=1)
        largest = require_integer(largest, "largest", at_least=1)
        store: Memory | Folder = Memory() if folder is None else Folder(folder)
        self._parking = Parking(learner, name, store, self._tally, live, largest)
        if isinstance(store, Folder) and store.about:
            self._committed(store.about)

    # ---- facts

    accepts = "objects"

    @property
    def live(self) -> int:
        """At most so many learners are awake."""
        return self._parking.live

    @property
    def largest(self) -> int:
        """Bytes of one record; a learner beyond is refused."""
        return self._parking.largest

    @property
    def task(self) -> Any:
        return self.learner.task if hasattr(self.learner, "task") else "regression"

    @property
    def labelled(self) -> bool:
        return bool(as_learner(self.learner).labelled)

    @property
    def classes(self) -> list[Any]:
        """The labels that any key has met."""
        return list(self._tally.labels.known)

    @property
    def rows_seen(self) -> int:
        """Of all keys."""
        return self._tally.rows

    @property
    def size(self) -> int:
        """Points that the learners of all keys keep."""
        return self._tally.size

    @property
    def name(self) -> str:
        return f"Keyed {as_learner(self.learner).name}"

    def __len__(self) -> int:
        return len(self._tally)

    def __contains__(self, key: object) -> bool:
        return key in self._tally

    @property
    def keys(self) -> list[Key]:
        """In order of first appearance."""
        return list(self._tally)

    @property
    def awake(self) -> int:
        """How many learners are in memory as such."""
        return len(self._parking.awake)

    def summary(self, key: Key) -> KeySummary:
        """How well a key is predicted so far."""
        return self._tally.summary(key)

    def worst(self, most: int = 10) -> list[KeySummary]:
        """The keys with the largest mean losses first; of equal ones the earlier."""
        return self._tally.worst(most)

    def idle(self, rows: int) -> list[Key]:
        """Keys without any of the last ``rows`` rows of the stream."""
        return self._tally.idle(rows)

    # ---- one row

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """What the learner of the row's key says; of a new key, what one says that has learned nothing."""
        key, row = split(x, self.key)
        return self._parking.looked(key).predict_one(row)

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Of labels: the probability of each that the key has met."""
        key, row = split(x, self.key)
        found: dict[Any, float] = self._parking.looked(key).predict_proba_one(row)
        return found

    def predict_interval_one(self, x: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """As the learner of the key."""
        key, row = split(x, self.key)
        return self._parking.looked(key).predict_interval_one(row, *args, **options)

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        """Let the learner of the row's key learn it."""
        key, row = split(x, self.key)
        learner = self._parking.wake(key)
        try:
            prediction = learner.predict_one(row)
            learner.learn_one(row, y)
        except BaseException:
            self._parking.forget_if_new(key)
            raise
        targets = [y] if self.labelled else np.array([y])
        self._tally.count(key, learner, targets, [prediction], [self.rows_seen])

    @property
    def queue(self) -> Any:
        """Rows that were asked and wait: ``pending``, ``ids``, ``most`` of all keys, ``dropped``."""
        return self._waiting

    def ask(self, x: Mapping[str, Any], id: Any) -> Any:
        """What ``predict_one`` says of a row, which then waits for its target, as with any learner."""
        key, row = split(x, self.key)
        id, waiting = as_identifier(id), self._waiting
        waiting.require_new(id, key)
        learner = self._parking.wake(key)
        try:
            if id not in waiting and waiting.pending >= waiting.most:
                learner.predict_one(row)  # what is refused makes no room
                self._make_way()
            learner.queue.most = max(learner.queue.most, waiting.most)
            answer = learner.ask(row, id)
        except BaseException:
            self._parking.forget_if_new(key)
            raise
        waiting.keys[id] = key
        self._tally.meet(key)
        return answer

    def waiting(self, id: Any) -> tuple[Any, Any]:
        """What the learner of its key kept of a row that waits, and the answer."""
        kept: tuple[Any, Any] = self._parking.wake(self._waiting.keys[id], to_learn=False).queue.find(id)
        return kept

    def asked(self, x: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The learner of a row's key, to be asked and not to learn, and the row without the key."""
        key, row = split(x, self.key)
        return self._parking.looked(key), row

    def _make_way(self) -> None:
        """The row that waits longest does no longer, so that another can."""
        while self._waiting.pending >= self._waiting.most:
            oldest, key = next(iter(self._waiting.keys.items()))
            self._parking.wake_beside(key).forget(oldest)
            del self._waiting.keys[oldest]
            self._waiting.dropped += 1

    def tell(self, id: Any, y: Any) -> None:
        """Learn the row that was asked under this id."""
        id = as_identifier(id)
        if id not in self._waiting:
            self._waiting.tell_again(id, y)
            return
        key = self._waiting.keys[id]
        learner = self._parking.wake(key)
        rows, answer = learner.rows_seen, learner.queue.find(id)[1]
        learner.tell(id, y)
        learner.queue.forget_told()  # it is remembered here, once for all keys
        if learner.rows_seen != rows:
            self._tally.count(key, learner, [y], [answer], [self.rows_seen])
        self._waiting.settle(id, y)

    def forget(self, id: Any) -> None:
        """Drop a row that was asked."""
        id = as_identifier(id)
        if id not in self._waiting:
            raise InputError(f"no row waits under the id {id!r}.")
        self._parking.wake(self._waiting.keys[id]).forget(id)
        del self._waiting.keys[id]

    # ---- blocks

    def advance(self, X: Any, y: Any) -> Trace:
        """Predict, then learn, each row, those of a key together; an error leaves all keys as they were.

        To rounding what ``predict_one`` and ``learn_one`` do row by row, at the speed of blocks.
        """
        rows, groups = grouped(X, self.key)
        targets = y if isinstance(y, np.ndarray) else list(y)
        if len(targets) != len(rows):
            raise InputError(
                f"y has {len(targets)} value(s), X has {len(rows)} row(s): expected one per row."
            )
        undo, mark = [], self._tally.mark(groups)
        first, size = self.rows_seen, self.size
        found: dict[Key, tuple[list[int], Trace, list[Any]]] = {}
        try:
            for key, places in groups.items():
                restore = self._parking.mark(key)
                learner = self._parking.wake(key)
                undo.append(restore)
                own = [targets[i] for i in places]
                trace = learner.advance([rows[i] for i in places], own)
                shares = list(learner.classes) if self.labelled else []
                found[key] = places, trace, shares
                self._tally.count(key, learner, own, trace.prediction, [first + i for i in places])
        except BaseException:
            for restore in reversed(undo):
                restore()
            self._tally.restore(mark)
            self._parking.settle()
            raise
        return self._in_order(len(rows), list(found.values()), size)

    def probabilities(self, scores: Any) -> Any:
        """Of the scores in a trace, which are probabilities already."""
        return scores

    def predict(self, X: Any) -> Any:
        """What the learner of each row's key says. Changes nothing."""
        return self._each("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Of labels: a column for each class, in the order of ``classes``."""
        rows, groups = grouped(X, self.key)
        found = np.zeros((len(rows), len(self._tally.labels)))
        for key, places in groups.items():
            learner = self._parking.looked(key)
            if learner.rows_seen:
                shares = learner.predict_proba([rows[i] for i in places])
                found[np.ix_(np.array(places), self._tally.labels.find(learner.classes))] = shares
        return found

    def predict_interval(self, X: Any, *args: Any, **options: Any) -> Any:
        """As the learner of each key."""
        return self._each("predict_interval", X, *args, **options)

    def novelty(self, X: Any) -> Any:
        """As the learner of each key."""
        return self._each("novelty", X)

    # ---- all of them

    def park(self) -> None:
        """Let no learner be awake."""
        while self._parking.awake:
            self._parking.park_oldest()

    def commit(self, about: bytes = b"") -> None:
        """All learners are in the folder, on the disk, as they are now: after a crash it opens like this.

        What is kept :attr:`about` it is of the same instant.
        """
        self.capture(about)()

    def capture(self, about: bytes = b"") -> Callable[[], None]:
        """What a :meth:`commit` of this instant still needs: to be called once, in any thread.

        Meanwhile learners go on; the next instant is captured after it has returned.
        """
        self._parking.write()
        store = self._parking.store
        if not isinstance(store, Folder):
            return lambda: None
        told = pack(self._besides())
        return store.capture(self._tally, LENGTH.pack(len(told)) + told + about)

    @property
    def about(self) -> bytes:
        """What the last commit of the folder was told."""
        store = self._parking.store
        kept = store.about if isinstance(store, Folder) else b""
        return kept[LENGTH.size + LENGTH.unpack_from(kept)[0] :] if kept else b""

    def close(self, *, commit: bool = True) -> None:
        """:meth:`commit`, and let go of the folder."""
        if commit:
            self.commit()
        if isinstance(self._parking.store, Folder):
            self._parking.store.close()

    def moved(self, new: Keyed) -> Keyed:
        """All of it in a new one, which has met no key; this one is not to be used any longer."""
        new.resume_bytes(b"")
        for key in self._tally:
            new._parking.take(key, self._parking.record(key))
        new._take_besides(Stored(self._besides(), "Keyed"))
        return new

    def drop(self, key: Key) -> None:
        """Forget a key, with all that was learned of it."""
        self._tally.drop(key)
        self._parking.drop(key)
        self._waiting.drop_key(key)

    def to_bytes(self) -> bytes:
        """The records of all keys: the bytes of a bucket, for :meth:`resume_bytes`.

        Keys whose learners slept stay as they are; only those that are awake are encoded.
        """
        return b"".join(self._entries())

    def _entries(self) -> Iterator[bytes]:
        return (entry(key, self._parking.record(key)) for key in self._tally)

    def resume_bytes(self, data: Any) -> Self:
        """Itself, that has met no key, with the records of :meth:`to_bytes`, decoded when it has rows.

        Of damaged bytes nothing stays.
        """
        if len(self):
            raise ConfigurationError(f"{len(self):,} keys are here already: resume a new Keyed.")
        mark = self._tally.mark(())
        try:
            for key, record in entries(data):
                self._parking.take(key, record)
        except BaseException:
            for key in self.keys:
                self.drop(key)
            self._tally.restore(mark)
            raise
        return self

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name; a saved one has all records in its file, and no folder."""
        return {
            "learner": self.learner,
            "key": self.key,
            "folder": None,
            "live": self.live,
            "largest": self.largest,
        }

    def state(self) -> dict[str, Any]:
        """All records, and which rows wait."""
        return {"records": spooled(self._entries()), **self._besides()}

    def _besides(self) -> dict[str, Any]:
        """What is no key's own."""
        return {"rows": self.rows_seen, "labels": self.classes, "waiting": self._waiting.state()}

    def _take_besides(self, stored: Stored) -> None:
        rows, labels = stored.integer("rows"), stored_labels(stored, "labels")
        if self.rows_seen > rows or len(labels) < len(self._tally.labels):
            raise stored.error("it has fewer rows or labels than its records")
        self._tally.labels, self._tally.rows = Labels(labels), rows
        self._waiting.load(stored.inner("waiting"), self._tally)
        stored.finish()

    def _committed(self, about: bytes) -> None:
        """Take what the last commit of the folder kept beside its records."""
        told = about[LENGTH.size : LENGTH.size + LENGTH.unpack_from(about)[0]]
        self._take_besides(Stored(unpack(told), f"folder {self.folder}"))

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of :meth:`parameters` and :meth:`state`."""
        keyed, stored = cls(**parameters), Stored(state, "Keyed")
        records = stored.take("records")  # perhaps gigabytes, each with a checksum: no copy of them
        if type(records) is not np.ndarray or records.dtype != np.uint8 or records.ndim != 1:
            raise stored.error("its records are no bytes")
        keyed.resume_bytes(records)
        keyed._take_besides(stored)
        return keyed

    def anew(self, *_: Any, **__: Any) -> Keyed:
        """A new one of its kind, that has met no key."""
        return Keyed(**self.parameters())

    def __repr__(self) -> str:
        return f"Keyed({self.learner!r}, key={self.key!r}, {len(self):,} keys)"

    # ---- inside

    def _each(self, verb: str, X: Any, *args: Any, **options: Any) -> Any:
        rows, groups = grouped(X, self.key)
        values: list[Any] = [None] * len(rows)
        for key, places in groups.items():
            answers = getattr(self._parking.looked(key), verb)([rows[i] for i in places], *args, **options)
            for i, answer in zip(places, answers, strict=True):
                values[i] = answer
        return object_array(values) if self.labelled and verb == "predict" else np.array(values)

    def _in_order(self, count: int, found: list[tuple[list[int], Trace, list[Any]]], size: int) -> Trace:
        """The traces of all keys as one, in the order of the rows."""
        each = [trace.columns for _, trace, _ in found]
        columns: dict[str, Any] = {}
        for name in ("kept", "prediction", "loss", "novelty", "scale"):
            if all(name in trace for trace in each):
                first = each[0][name]
                values = columns[name] = np.empty((count, *first.shape[1:]), dtype=first.dtype)
                for (places, _, _), trace in zip(found, each, strict=True):
                    values[places] = trace[name]
        if self.labelled:
            columns["scores"] = np.zeros((count, len(self._tally.labels)))
            for places, one, classes in found:
                told = as_learner(self.learner).probabilities(one["scores"])
                codes = self._tally.labels.find(classes)[: told.shape[1]]
                columns["scores"][np.ix_(np.array(places), codes)] = np.nan_to_num(told)
        grown = np.zeros(count, dtype=np.int64)
        for places, one, _ in found:
            grown[places] = one.kept
        return Trace(size=size + np.cumsum(grown), **columns)
