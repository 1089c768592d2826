"""A learner per key, behind the verbs of one learner."""

from __future__ import annotations

import heapq
import json
import math
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from kons.arrays import require_integer
from kons.errors import ConfigurationError, FileError, InputError
from kons.files.registry import build, name_of, parameters_of
from kons.files.tree import Decoder, Encoder
from kons.keyed.record import pack, unpack
from kons.keyed.store import Folder, Key, Memory, entries, entry, spooled
from kons.keyed.waiting import Waiting
from kons.learners.labels import Labels, object_array, stored_labels
from kons.learners.learner import Learner
from kons.learners.protocol import as_learner
from kons.learners.queue import as_identifier
from kons.learners.trace import Trace
from kons.stored import Stored
from kons.tables import records_of

__all__ = ["KeySummary", "Keyed"]

#: Of a parked learner: AutoKONS(effort="tiny") takes some 50 to 100 kB, "normal" 10 MB and more.
LARGEST = 1 << 24
# The beginning of a record, which is read without the rest: six figures on how well its key is predicted,
# and the length of the labels behind them, as JSON.
HEAD = struct.Struct("<6dI")
LENGTH = struct.Struct("<I")


class KeySummary(NamedTuple):
    """How well a key is predicted."""

    key: Key
    rows: int
    loss: float
    """The mean loss of what was predicted before each row was learned: squared error, or wrong labels."""
    constant: float
    """That of the mean of its targets so far; NaN of labels."""
    last_row: int
    """The number of its last row, over all keys."""


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
        self.live: int = require_integer(live, "live", at_least=1)
        self.largest: int = require_integer(largest, "largest", at_least=1)
        self._name, self._given = name, parameters_of(name, learner)
        self._awake: OrderedDict[Key, Any] = OrderedDict()
        self._changed: set[Key] = set()  # of these, since their record was written
        self._store: Memory | Folder = Memory() if folder is None else Folder(folder)
        # rows, sum of losses, sum of the constant's losses, mean of the targets, last row, points kept
        self._told: dict[Key, list[float]] = {}
        self._waiting = Waiting()
        self._labels = Labels()
        self._rows = 0
        self._size = 0
        for parked in self._store:
            self._note_parked(parked)
        if isinstance(self._store, Folder) and self._store.about:
            self._committed(self._store.about)

    # ---- facts

    accepts = "objects"

    @property
    def task(self) -> Any:
        return self.learner.task if hasattr(self.learner, "task") else "regression"

    @property
    def labelled(self) -> bool:
        return bool(as_learner(self.learner).labelled)

    @property
    def classes(self) -> list[Any]:
        """The labels that any key has met."""
        return list(self._labels.known)

    @property
    def rows_seen(self) -> int:
        """Of all keys."""
        return self._rows

    @property
    def size(self) -> int:
        """Points that the learners of all keys keep."""
        return self._size

    @property
    def name(self) -> str:
        return f"Keyed {as_learner(self.learner).name}"

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, key: object) -> bool:
        return key in self._told

    @property
    def keys(self) -> list[Key]:
        """In order of first appearance."""
        return list(self._told)

    @property
    def awake(self) -> int:
        """How many learners are in memory as such."""
        return len(self._awake)

    def summary(self, key: Key) -> KeySummary:
        """How well a key is predicted so far."""
        if key not in self._told:
            raise InputError(f"there is no key {key!r}: {len(self):,} keys have come.")
        rows, loss, constant, _, last, _ = self._told[key]
        share = max(rows, 1.0)
        constant = math.nan if self.labelled or rows < 2 else constant / (rows - 1)
        return KeySummary(key, int(rows), loss / share, constant, int(last))

    def worst(self, most: int = 10) -> list[KeySummary]:
        """The keys with the largest mean losses first; of equal ones the earlier."""
        told = self._told.items()
        largest = heapq.nlargest(
            most, ((its[1] / its[0], -at, key) for at, (key, its) in enumerate(told) if its[0])
        )
        return [self.summary(key) for _, _, key in largest]

    def idle(self, rows: int) -> list[Key]:
        """Keys without any of the last ``rows`` rows of the stream."""
        return [key for key, told in self._told.items() if self._rows - 1 - told[4] >= rows]

    # ---- one row

    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """What the learner of the row's key says; of a new key, what one says that has learned nothing."""
        key, row = self._split(x)
        return self._looked(key).predict_one(row)

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Of labels: the probability of each that the key has met."""
        key, row = self._split(x)
        found: dict[Any, float] = self._looked(key).predict_proba_one(row)
        return found

    def predict_interval_one(self, x: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        """As the learner of the key."""
        key, row = self._split(x)
        return self._looked(key).predict_interval_one(row, *args, **options)

    def learn_one(self, x: Mapping[str, Any], y: Any) -> None:
        """Let the learner of the row's key learn it."""
        key, row = self._split(x)
        learner = self._wake(key)
        try:
            prediction = learner.predict_one(row)
            learner.learn_one(row, y)
        except BaseException:
            self._forget_unless_told(key)
            raise
        self._count(key, learner, np.array([y]) if not self.labelled else [y], [prediction], [self._rows])

    @property
    def queue(self) -> Any:
        """Rows that were asked and wait: ``pending``, ``ids``, ``most`` of all keys, ``dropped``."""
        return self._waiting

    def ask(self, x: Mapping[str, Any], id: Any) -> Any:
        """What ``predict_one`` says of a row, which then waits for its target, as with any learner."""
        key, row = self._split(x)
        id, waiting = as_identifier(id), self._waiting
        waiting.require_new(id, key)
        learner = self._wake(key)
        try:
            if id not in waiting and waiting.pending >= waiting.most:
                learner.predict_one(row)  # what is refused makes no room
                self._make_way()
            learner.queue.most = max(learner.queue.most, waiting.most)
            answer = learner.ask(row, id)
        except BaseException:
            self._forget_unless_told(key)
            raise
        waiting.keys[id] = key
        self._told.setdefault(key, [0.0, 0.0, 0.0, 0.0, -1.0, 0.0])
        return answer

    def waiting(self, id: Any) -> tuple[Any, Any]:
        """What the learner of its key kept of a row that waits, and the answer."""
        kept: tuple[Any, Any] = self._wake(self._waiting.keys[id], to_learn=False).queue.find(id)
        return kept

    def asked(self, x: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The learner of a row's key, to be asked and not to learn, and the row without the key."""
        key, row = self._split(x)
        return self._looked(key), row

    def _make_way(self) -> None:
        """The row that waits longest does no longer, so that another can."""
        while self._waiting.pending >= self._waiting.most:
            oldest, key = next(iter(self._waiting.keys.items()))
            # Beside those awake, which are parked by whoever wakes the next: that may fail, and this may not.
            if key not in self._awake:
                self._awake[key] = self._loaded(key)
            self._changed.add(key)
            self._awake[key].forget(oldest)
            del self._waiting.keys[oldest]
            self._waiting.dropped += 1

    def tell(self, id: Any, y: Any) -> None:
        """Learn the row that was asked under this id."""
        id = as_identifier(id)
        if id not in self._waiting:
            self._waiting.tell_again(id, y)
            return
        key = self._waiting.keys[id]
        learner = self._wake(key)
        rows, answer = learner.rows_seen, learner.queue.find(id)[1]
        learner.tell(id, y)
        learner.queue.forget_told()  # it is remembered here, once for all keys
        if learner.rows_seen != rows:
            self._count(key, learner, [y], [answer], [self._rows])
        self._waiting.settle(id, y)

    def forget(self, id: Any) -> None:
        """Drop a row that was asked."""
        id = as_identifier(id)
        if id not in self._waiting:
            raise InputError(f"no row waits under the id {id!r}.")
        self._wake(self._waiting.keys[id]).forget(id)
        del self._waiting.keys[id]

    # ---- blocks

    def advance(self, X: Any, y: Any) -> Trace:
        """Predict, then learn, each row, those of a key together; an error leaves all keys as they were.

        To rounding what ``predict_one`` and ``learn_one`` do row by row, at the speed of blocks.
        """
        rows, groups = self._grouped(X)
        targets = y if isinstance(y, np.ndarray) else list(y)
        if len(targets) != len(rows):
            raise InputError(
                f"y has {len(targets)} value(s), X has {len(rows)} row(s): expected one per row."
            )
        undo: list[tuple[Key, Any, Any, Any]] = []
        noted = len(self._labels), self._rows, self._size, {k: list(self._told.get(k, ())) for k in groups}
        found: dict[Key, tuple[list[int], Trace, list[Any]]] = {}
        try:
            for key, places in groups.items():
                before = self._awake.get(key)
                mark = None if before is None else as_learner(before).mark()
                record = self._store.get(key) if self._is_parked(key) else None
                learner = self._wake(key)
                undo.append((key, before, mark, record))
                own = [targets[i] for i in places]
                trace = learner.advance([rows[i] for i in places], own)
                shares = list(learner.classes) if self.labelled else []
                found[key] = places, trace, shares
                self._count(key, learner, own, trace.prediction, [noted[1] + i for i in places])
        except BaseException:
            self._undo(undo, noted)
            raise
        return self._in_order(len(rows), list(found.values()), noted[2])

    def probabilities(self, scores: Any) -> Any:
        """Of the scores in a trace, which are probabilities already."""
        return scores

    def predict(self, X: Any) -> Any:
        """What the learner of each row's key says. Changes nothing."""
        return self._each("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Of labels: a column for each class, in the order of ``classes``."""
        rows, groups = self._grouped(X)
        found = np.zeros((len(rows), len(self._labels)))
        for key, places in groups.items():
            learner = self._looked(key)
            if learner.rows_seen:
                shares = learner.predict_proba([rows[i] for i in places])
                found[np.ix_(np.array(places), self._labels.find(learner.classes))] = shares
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
        while self._awake:
            self._park_oldest()

    def commit(self, about: bytes = b"") -> None:
        """All learners are in the folder, on the disk, as they are now: after a crash it opens like this.

        What is kept :attr:`about` it is of the same instant.
        """
        self.capture(about)()

    def capture(self, about: bytes = b"") -> Callable[[], None]:
        """What a :meth:`commit` of this instant still needs: to be called once, in any thread.

        Meanwhile learners go on; the next instant is captured after it has returned.
        """
        for key, learner in self._awake.items():
            if key in self._changed:
                self._store.put(key, self._record(key, learner))
        self._changed.clear()
        if not isinstance(self._store, Folder):
            return lambda: None
        told = pack(self._besides())
        return self._store.capture(self._told, LENGTH.pack(len(told)) + told + about)

    @property
    def about(self) -> bytes:
        """What the last commit of the folder was told."""
        kept = self._store.about if isinstance(self._store, Folder) else b""
        return kept[LENGTH.size + LENGTH.unpack_from(kept)[0] :] if kept else b""

    def close(self, *, commit: bool = True) -> None:
        """:meth:`commit`, and let go of the folder."""
        if commit:
            self.commit()
        if isinstance(self._store, Folder):
            self._store.close()

    def moved(self, new: Keyed) -> Keyed:
        """All of it in a new one, which has met no key; this one is not to be used any longer."""
        new.resume_bytes(b"")
        for key in self._told:
            new._store.put(key, self._record_of(key))
            new._note_parked(key)
        new._take_besides(Stored(self._besides(), "Keyed"))
        return new

    def drop(self, key: Key) -> None:
        """Forget a key, with all that was learned of it."""
        self._size -= int(self._told[self.summary(key).key][5])
        del self._told[key]
        self._awake.pop(key, None)
        self._changed.discard(key)
        self._store.delete(key)
        self._waiting.drop_key(key)

    def to_bytes(self) -> bytes:
        """The records of all keys: the bytes of a bucket, for :meth:`resume_bytes`.

        Keys whose learners slept stay as they are; only those that are awake are encoded.
        """
        return b"".join(self._entries())

    def _entries(self) -> Iterator[bytes]:
        return (entry(key, self._record_of(key)) for key in self._told)

    def resume_bytes(self, data: Any) -> Self:
        """Itself, that has met no key, with the records of :meth:`to_bytes`, decoded when it has rows."""
        if self._told:
            raise ConfigurationError(f"{len(self):,} keys are here already: resume a new Keyed.")
        for key, record in entries(data):
            self._store.put(key, record)
            self._note_parked(key)
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
        return {"rows": self._rows, "labels": self.classes, "waiting": self._waiting.state()}

    def _take_besides(self, stored: Stored) -> None:
        rows, labels = stored.integer("rows"), stored_labels(stored, "labels")
        if self._rows > rows or len(labels) < len(self._labels):
            raise stored.error("it has fewer rows or labels than its records")
        self._labels, self._rows = Labels(labels), rows
        self._waiting.load(stored.inner("waiting"), self._told)
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

    # ---- inside: rows and keys

    def _split(self, x: Any) -> tuple[Key, dict[str, Any]]:
        if not isinstance(x, Mapping):
            raise InputError(f"x is a {type(x).__name__}, expected a dict: column -> value.")
        row = dict(x)
        return self._as_key(row.pop(self.key, None), ""), row

    def _as_key(self, value: Any, where: str) -> Key:
        if isinstance(value, np.generic):
            value = value.item()
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) in (str, int) and value != "":
            key: Key = value
            return key
        seen = "no value" if value is None or value != value or value == "" else f"{value!r}"
        raise InputError(
            f"{where}the key {self.key!r} has {seen}, expected text or a whole number in every row: "
            "leave rows without a key out, or give them one."
        )

    def _grouped(self, X: Any) -> tuple[list[dict[str, Any]], dict[Key, list[int]]]:
        """Rows without their key, and where those of each key are."""
        given = X if isinstance(X, (list, tuple)) else records_of(X).dicts()
        rows: list[dict[str, Any]] = []
        groups: dict[Key, list[int]] = {}
        for i, x in enumerate(given):
            if not isinstance(x, Mapping):
                raise InputError(f"X[{i}] is a {type(x).__name__}, expected a dict: column -> value.")
            row = dict(x)
            groups.setdefault(self._as_key(row.pop(self.key, None), f"row {i} of X: "), []).append(i)
            rows.append(row)
        return rows, groups

    def _each(self, verb: str, X: Any, *args: Any, **options: Any) -> Any:
        rows, groups = self._grouped(X)
        values: list[Any] = [None] * len(rows)
        for key, places in groups.items():
            answers = getattr(self._looked(key), verb)([rows[i] for i in places], *args, **options)
            for i, answer in zip(places, answers, strict=True):
                values[i] = answer
        return object_array(values) if self.labelled and verb == "predict" else np.array(values)

    # ---- inside: learners

    def _new(self) -> Any:
        return type(self.learner)(**self._given)

    def _is_parked(self, key: Key) -> bool:
        return key not in self._awake and key in self._store

    def _looked(self, key: Key) -> Any:
        """The learner of a key, to be asked; a key that has not come is not remembered."""
        if key not in self._awake and key not in self._store:
            return self._new()
        return self._wake(key, to_learn=False)

    def _wake(self, key: Key, *, to_learn: bool = True) -> Any:
        """The learner of a key. Others make room before: if that fails nothing has changed."""
        learner = self._awake.get(key)
        if learner is None:
            while len(self._awake) >= self.live:
                self._park_oldest()
            learner = self._awake[key] = self._loaded(key) if key in self._store else self._new()
        else:
            self._awake.move_to_end(key)
        if to_learn:
            self._changed.add(key)
        return learner

    def _loaded(self, key: Key) -> Any:
        record = self._store.get(key)
        start = HEAD.size + HEAD.unpack_from(record)[-1]
        return build(self._name, self._given, unpack(memoryview(record)[start:]))

    def _note_parked(self, key: Key) -> None:
        """Find again what is known of a key, from the beginning of its record; the rest is not decoded."""
        record, broken = (
            self._store.get(key),
            FileError(f"the record of key {key!r} is no record of a learner."),
        )
        try:
            *told, length = HEAD.unpack_from(record)
            labels = Decoder([], {}, None).decode(json.loads(record[HEAD.size : HEAD.size + length] or b"[]"))
        except (struct.error, ValueError):
            raise broken from None
        if not (np.isfinite(told).all() and min(told[0], told[5]) >= 0.0 and isinstance(labels, list)):
            raise broken
        self._told[key] = told
        self._labels.learn(labels)
        self._rows += int(told[0])
        self._size += int(told[5])

    def _record(self, key: Key, learner: Any) -> bytes:
        labels = b""
        if self.labelled:
            labels = json.dumps(Encoder().encode(list(learner.classes))).encode("ascii")
        record = HEAD.pack(*self._told[key], len(labels)) + labels + pack(learner.state())
        if len(record) > self.largest:
            raise FileError(
                f"the learner of key {key!r} takes {len(record):,} bytes, at most {self.largest:,} are kept: "
                f'use effort="tiny" or fewer atoms, or largest={len(record)} and above.'
            )
        return record

    def _record_of(self, key: Key) -> bytes:
        awake = self._awake.get(key)
        return self._store.get(key) if awake is None else self._record(key, awake)

    def _settle(self) -> None:
        """Park those that were idle longest, where too many are awake."""
        while len(self._awake) > self.live:
            self._park_oldest()

    def _park_oldest(self) -> None:
        key = next(iter(self._awake))
        if key in self._changed or key not in self._store:
            self._store.put(key, self._record(key, self._awake[key]))
            self._changed.discard(key)
        del self._awake[key]

    def _forget_unless_told(self, key: Key) -> None:
        if key not in self._told:
            self._awake.pop(key, None)
            self._changed.discard(key)

    def _count(self, key: Key, learner: Any, targets: Any, predictions: Any, places: Sequence[int]) -> None:
        told = self._told.setdefault(key, [0.0, 0.0, 0.0, 0.0, -1.0, 0.0])
        for y, prediction in zip(targets, predictions, strict=True):
            if self.labelled:
                told[1] += float(prediction != y)
            else:
                y, prediction = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
                told[1] += float(((prediction - y) ** 2).sum())
                y = float(y.sum())  # of several targets, that of their sum
                told[2] += (y - told[3]) ** 2 if told[0] else 0.0
                told[3] += (y - told[3]) / (told[0] + 1.0)
            told[0] += 1.0
        told[4] = float(places[-1])
        size = float(as_learner(learner).size or 0)
        self._size += int(size - told[5])
        told[5] = size
        self._rows += len(places)
        if self.labelled:
            self._labels.learn(list(learner.classes))

    def _undo(self, undo: list[tuple[Key, Any, Any, Any]], noted: tuple[int, int, int, Any]) -> None:
        for key, learner, mark, record in reversed(undo):
            self._awake.pop(key, None)
            if learner is not None:
                as_learner(learner).restore(mark)
                self._awake[key] = learner
                self._changed.add(key)
            elif record is not None:
                self._store.put(key, record)
            else:
                self._store.delete(key)
        self._labels.truncate(noted[0])
        self._rows, self._size = noted[1], noted[2]
        for key, told in noted[3].items():
            self._told.pop(key, None) if not told else self._told.update({key: told})
        self._settle()

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
            columns["scores"] = np.zeros((count, len(self._labels)))
            for places, one, classes in found:
                told = as_learner(self.learner).probabilities(one["scores"])
                codes = self._labels.find(classes)[: told.shape[1]]
                columns["scores"][np.ix_(np.array(places), codes)] = np.nan_to_num(told)
        grown = np.zeros(count, dtype=np.int64)
        for places, one, _ in found:
            grown[places] = one.kept
        return Trace(size=size + np.cumsum(grown), **columns)
