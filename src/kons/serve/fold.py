"""The served model as a fold over its log: :meth:`Fold.apply` is the one way in which it changes.

::

    state = fold(snapshot, records behind it)

The service, its start after a crash and ``kons replay`` all apply the same records in the same order, one
by one; nothing else that they do changes a bit of the learner. What is refused changed nothing, and is not
logged.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kons.errors import FileError, InputError, KonsError
from kons.files import to_bytes, tree_to_bytes, write_bytes
from kons.keyed import Keyed
from kons.learners.events import MOST_EVENTS, Event
from kons.learners.protocol import Learner, as_learner
from kons.recipes import for_task
from kons.recipes.registry import recipe_of
from kons.runs.folder import told
from kons.serve.identifiers import Answered, Identifiers, digest_of
from kons.serve.log import Record
from kons.serve.monitor import Monitor
from kons.serve.problems import Problem

__all__ = ["BEGINNING", "RECORDS", "SNAPSHOT", "Fold", "Settings", "keyed_in"]

#: The kind of file that a snapshot is.
SNAPSHOT = "service snapshot"
#: Of the folder of learners per key: what each began with, and their records.
BEGINNING, RECORDS = "learner.kons", "records"
#: Learners awake at most, and bytes of one that is parked.
LIVE, LARGEST = 256, 1 << 30
#: The features of a row that no baseline looks at.
NOTHING = np.empty(0)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides what becomes of a record; fixed when a service begins."""

    learner: str = "auto"
    parameters: dict[str, Any] = {}
    task: str = "auto"
    target: str | None = None
    level: float = 0.9
    """Of the intervals."""
    pending: int = 10_000
    """So many rows wait for their labels at most, then the oldest makes room."""
    remember: int = 1_000_000
    """So many ids are remembered, and for so many days."""
    days: float = 7.0
    columns: int = 1000
    """So many columns at most."""
    key: str | None = None
    """The column by which each row has a learner of its own; None: there is one."""

    def make(self, task: str) -> Any:
        """The learner that learns from nothing, each key's if there are keys."""
        parameters = self.parameters
        if self.key is not None and "effort" in recipe_of(self.learner).accepts:
            parameters = {"effort": "tiny", **parameters}
        return for_task(
            "classification" if task == "classification" else "regression", self.learner, **parameters
        )


class Fold:
    """A learner, what was answered, and how it is doing.

    >>> fold = Fold(Settings(task="regression", learner="embedded"))
    >>> answer, new = fold.apply(Record("predict", "a", 0.0, {"x": 1.0}))
    >>> answer["prediction"], new
    (0.0, True)
    >>> fold.apply(Record("label", "a", 1.0, None, 2.0))
    ({'id': 'a', 'already': False, 'row': 1}, True)
    >>> fold.apply(Record("label", "a", 2.0, None, 2.0))
    ({'id': 'a', 'already': True, 'row': 1}, False)
    """

    def __init__(self, settings: Settings, learner: Any = None, parked: Path | None = None) -> None:
        self.settings: Settings = settings
        self._parked = parked
        self.ids: Identifiers = Identifiers(settings.remember, 86_400.0 * settings.days)
        self.number: int = 0
        """Records applied."""
        self.time: float = 0.0
        """Of the last one."""
        self.counts: dict[str, int] = {"predicted": 0, "labelled": 0, "learned": 0, "forgotten": 0}
        self.events: deque[tuple[int, dict[str, Any]]] = deque(maxlen=MOST_EVENTS)
        """What was noticed, each with its number."""
        self.noticed: int = 0
        #: Rows asked before the first label says whether it is a number; None: that is known.
        self._undecided: dict[Any, Any] | None = {} if learner is None and settings.task == "auto" else None
        self._take(self._made(settings.task) if learner is None else learner)
        self.learner.queue.most = settings.pending
        self.monitor: Monitor = Monitor(self._task, settings.pending)

    def _made(self, task: str) -> Any:
        """A learner from nothing; those of keys are in the folder once it is known what the labels are."""
        learner = self.settings.make(task)
        if self.settings.key is None:
            return learner
        return keyed_in(learner, self.settings.key, None if self._undecided is not None else self._parked)

    def _take(self, learner: Any) -> None:
        self.learner: Learner = as_learner(learner)
        self.learner.on_event = self._notice

    @property
    def _task(self) -> str:
        return "classification" if self.learner.labelled else "regression"

    @property
    def decided(self) -> bool:
        """Whether it is known what the labels are: there is a model."""
        return self._undecided is None

    def _notice(self, event: Event) -> None:
        self.noticed += 1
        self.events.append((self.noticed, event.as_dict()))

    # ---- records

    def apply(self, record: Record) -> tuple[dict[str, Any], bool]:
        """The answer to a record, and whether it changed anything; :class:`Problem`, and it did not."""
        undecided = self._undecided, self.learner, self.monitor
        try:
            answer, new = getattr(self, f"_{record.kind}")(record)
        except KonsError as error:
            # A label that is refused decides nothing.
            if self.learner is not undecided[1]:
                self.close()
            self._undecided, self.learner, self.monitor = undecided
            if isinstance(error, FileError):  # a key's learner could not be read, or make room for another
                raise Problem(503, str(error)) from error
            raise error if isinstance(error, Problem) else Problem(422, str(error)) from error
        if new:
            self.number += 1
            self.time = record.time
            for id in self.ids.expire(record.time):
                if id in self.learner.queue:
                    self.learner.forget(id)
                    self._let_go(id)
        return answer, new

    def _let_go(self, id: Any) -> None:
        self.counts["forgotten"] += 1
        self.monitor.forget(id)
        if self._undecided is not None:
            self._undecided.pop(id, None)

    def _predict(self, record: Record) -> tuple[dict[str, Any], bool]:
        assert record.id is not None
        id, x = record.id, self._point(record.x)
        digest, known = digest_of(record.x), self.ids.find(id)
        if known is not None:
            if known.answer is None or known.x != digest:
                raise Problem(409, f"id {id!r} was used for another row: give every row an id of its own.")
            return known.answer, False
        learner = self.learner
        prediction = learner.ask(x, id)
        answer = {"id": id, **self._said(x, prediction), "row": learner.rows_seen or 0}
        self.ids[id] = Answered(digest, record.time, answer)
        self.monitor.ask(id, _features(learner, id))
        if self._undecided is not None:
            self._undecided[id] = record.x
        self.counts["predicted"] += 1
        return answer, True

    def _said(self, x: Any, prediction: Any) -> dict[str, Any]:
        """The prediction, and how sure it is."""
        learner, x = self._of(x)
        said = {"prediction": _plain(prediction), "interval": None}
        if self._undecided is not None:
            return said | {"prediction": None, "novelty": None}
        if learner.labelled and not learner.lacks("predict_proba_one"):
            said["probabilities"] = {
                _name(label): share for label, share in learner.predict_proba_one(x).items()
            }
        elif not learner.labelled and not learner.lacks("predict_interval_one"):
            ends = learner.predict_interval_one(x, self.settings.level)
            said["interval"] = ends.tolist() if np.isfinite(ends).all() else None
        knows = learner.rows_seen and not learner.lacks("novelty") and not learner.warming_up
        said["novelty"] = _plain(learner.novelty([x])[0]) if knows else None
        return said

    def _label(self, record: Record) -> tuple[dict[str, Any], bool]:
        assert record.id is not None
        id, y, known = record.id, record.y, self.ids.find(record.id)
        if known is not None and known.y is not None:
            return self._again(id, y, known), False
        if id not in self.learner.queue:
            raise Problem(404, self._unknown(id, known))
        self._decide(y)
        y = self._as_label(y)
        answer = None if known is None else known.answer
        prediction = _waiting(self.learner, id)[1]
        self.learner.tell(id, y)
        self.ids[id] = Answered(b"" if known is None else known.x, record.time, answer, record.y)
        if answer is not None and not isinstance(y, list):
            self.monitor.tell(id, y, prediction, answer["interval"], record.time)
        self.counts["labelled"] += 1
        return {"id": id, "already": False, "row": self.learner.rows_seen}, True

    def _learn(self, record: Record) -> tuple[dict[str, Any], bool]:
        id, x = record.id, self._point(record.x)
        known = None if id is None else self.ids.find(id)
        if known is not None:
            if known.x != digest_of(record.x):
                raise Problem(409, f"id {id!r} was used for another row: give every row an id of its own.")
            return self._label(record)
        self._decide(record.y)
        y, learner = self._as_label(record.y), self.learner
        prediction, point = learner.predict_one(x), self._encoded(x)
        learner.learn_one(x, y)
        if id is not None:
            self.ids[id] = Answered(digest_of(record.x), record.time, None, record.y)
        if point is not None and not isinstance(y, list):
            asked = f"learned {self.number}"
            self.monitor.ask(asked, point)
            self.monitor.tell(asked, y, prediction, None, record.time)
        self.counts["learned"] += 1
        return {"id": id, "already": False, "row": learner.rows_seen}, True

    def _again(self, id: Any, y: Any, known: Answered) -> dict[str, Any]:
        if known.y != y:
            raise Problem(
                409, f"the label of {id!r} was {known.y!r}, now {y!r}: what was learned cannot be taken back."
            )
        return {"id": id, "already": True, "row": self.learner.rows_seen}

    def _unknown(self, id: Any, known: Answered | None) -> str:
        queue = self.learner.queue
        if known is not None:
            return f"{id!r} made room for others, as {queue.dropped:,} did (--pending {queue.most:,})."
        return (
            f"no row waits under the id {id!r}: it was not asked, or longer ago than is remembered "
            f"(--remember {self.settings.remember:,} ids, --days {self.settings.days:g})."
        )

    def explain(self, x: Any, label: Any, similar: int) -> dict[str, Any]:
        """Why a row would be predicted as it is. Changes nothing."""
        learner, row = self._of(self._point(x))
        found = learner.explain(row, label=label, similar=similar)
        return {
            **{name: getattr(found, name) for name in ("baseline", "prediction", "label")},
            "contributions": {str(name): value for name, value in found.contributions.items()},
            "typical": {str(name): _shown(value) for name, value in found.typical.items()},
            "similar": [
                {"x": {str(n): _shown(v) for n, v in row.items()}, "y": _plain(y), "similarity": likeness}
                for row, y, likeness in found.similar
            ],
        }

    # ---- rows and labels

    def _of(self, x: Any) -> tuple[Any, Any]:
        """Who is asked about a row, and what of it: the learner of its key, and the row without that."""
        if not isinstance(self.learner, Keyed):
            return self.learner, x
        try:
            return self.learner.asked(x)
        except InputError as error:
            raise Problem(422, str(error), column=self.settings.key) from error

    def _point(self, x: Any) -> Any:
        """A row as the learner takes it."""
        learner, row = self._of(x)
        if isinstance(x, list):
            if learner.encoder is not None:
                raise Problem(422, "x is a list, rows so far were objects: name the columns.")
            return np.array([np.nan if value is None else value for value in x], dtype=np.float64)
        encoder = learner.encoder
        known = {} if encoder is None else encoder.columns
        new = [name for name in row if name not in known]
        most = self.settings.columns
        if len(known) + len(new) > most:
            first = new[max(0, most - len(known))]
            raise Problem(
                422, f"the column {first!r} is more than the {most:,} there may be (--columns).", column=first
            )
        return x

    def _encoded(self, x: Any) -> Any:
        """A row as numbers, for the baselines; None before the first says which columns there are."""
        if isinstance(self.learner, Keyed):
            return NOTHING
        encoder = self.learner.encoder
        if isinstance(x, dict):
            return None if encoder is None else encoder.look_one(x)
        return x

    def _as_label(self, y: Any) -> Any:
        """A label as the model calls it: of a file, numbers may have been read as text."""
        learner = self.learner
        if not learner.labelled or y in learner.classes:
            return y
        known = {str(label): label for label in learner.classes}
        of_text = known and all(isinstance(label, str) for label in known.values())
        if of_text and type(y) in (int, float) and str(y) not in known:
            raise Problem(422, f"y is {y!r}, and labels so far were text: send text, if it is another class.")
        return known.get(str(y), y)

    def _decide(self, y: Any) -> None:
        """The first label says what the task is; rows that wait are asked again of the learner for it."""
        if self._undecided is None:
            return
        task, asked = "classification" if isinstance(y, (str, bool)) else "regression", self._undecided
        self._undecided = None
        if task == "regression" and self.settings.key is None:
            return
        learner = as_learner(self._made(task))
        learner.queue.most = self.settings.pending
        monitor = Monitor(task, self.settings.pending)
        for id, x in asked.items():
            if id in self.learner.queue:
                learner.ask(self._point(x), id)
                monitor.ask(id, _features(learner, id))
        self._take(learner)
        self.monitor = monitor

    # ---- snapshots

    def to_bytes(self) -> bytes:
        """A snapshot."""
        states, monitor = self.monitor.save()
        plain = {
            "number": self.number,
            "time": self.time,
            "counts": self.counts,
            "events": list(self.events),
            "noticed": self.noticed,
            "undecided": None if self._undecided is None else list(self._undecided.items()),
            "monitor": monitor,
            "ids": self.ids.save(),
        }
        packed = np.frombuffer(msgspec.msgpack.encode(plain), dtype=np.uint8)
        learner = None if self.parked is not None else self.model
        return tree_to_bytes({"learner": learner, "baselines": states, "plain": packed}, kind=SNAPSHOT)

    @property
    def parked(self) -> Keyed | None:
        """Learners that are in a folder: :meth:`kons.Keyed.capture` keeps them, with these bytes."""
        learner = self.learner
        return learner if isinstance(learner, Keyed) and learner.folder is not None else None

    def close(self) -> None:
        """Let go of that folder; what was not captured is found again from the log."""
        if self.parked is not None:
            self.parked.close(commit=False)

    @property
    def model(self) -> Any:
        """The learner, as files take it."""
        return getattr(self.learner, "thing", self.learner)

    @classmethod
    def of(
        cls, settings: Settings, tree: Any, keyed: Keyed | None = None, parked: Path | None = None
    ) -> Fold:
        """What :meth:`to_bytes` wrote, as it was read; with the learners, where those are in a folder."""
        try:
            plain = msgspec.msgpack.decode(tree["plain"].tobytes())
            fold = cls(settings, tree["learner"] if keyed is None else keyed, parked)
            fold.number, fold.time, fold.noticed = plain["number"], plain["time"], plain["noticed"]
            fold.counts = plain["counts"]
            fold.events.extend((number, event) for number, event in plain["events"])
            undecided = plain["undecided"]
            fold._undecided = None if undecided is None else dict(undecided)
            fold.monitor.load(tree["baselines"], plain["monitor"])
            fold.ids.load(plain["ids"])
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError) as error:
            raise FileError(f"the snapshot is not as kons serve has written it ({error!r}).") from error
        return fold


def keyed_in(learner: Any, key: str, parked: Path | None) -> Keyed:
    """Learners like this one for each key, in a folder that says what each began with."""
    if parked is None:
        return Keyed(learner, key, live=LIVE, largest=LARGEST)
    with told(parked):
        parked.mkdir(exist_ok=True)
    write_bytes(parked / BEGINNING, to_bytes(learner))
    return Keyed(learner, key, live=LIVE, largest=LARGEST, folder=parked / RECORDS)


def _features(learner: Any, id: Any) -> Any:
    """Of a row that waits, for the baselines; keys have columns of their own."""
    return NOTHING if isinstance(learner, Keyed) else learner.queue.find(id)[0][0]


def _waiting(learner: Any, id: Any) -> Any:
    return learner.waiting(id) if isinstance(learner, Keyed) else learner.queue.find(id)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any) -> Any:
    value = _plain(value)
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _name(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)
