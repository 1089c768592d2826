"""The learners of some keys, and what a batch of their rows does to them: what a worker of many runs.

The state of a bucket is one value of bytes: its circumstances as JSON, which a later batch must share, and
behind them the records of :class:`kons.Keyed`, of which only those of keys with rows are decoded.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kons.errors import ConfigurationError, FileError, KonsError
from kons.files import from_bytes
from kons.keyed.keyed import Keyed

__all__ = ["LARGEST", "Answer", "Bucket", "Plan"]

#: Bytes of a bucket's state: a state store hands it over as a whole.
LARGEST = 1 << 24
LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Plan:
    """What all buckets of a query share."""

    learner: bytes
    """What each key begins with, as :func:`kons.files.to_bytes` writes it."""
    columns: tuple[tuple[str, str], ...]
    """Of the rows: names and types."""
    key: str
    target: str
    features: tuple[str, ...]
    buckets: int
    idle: float | None = None
    largest: int = LARGEST
    whole: bool = False
    """Whether labels are whole numbers."""

    def circumstances(self) -> dict[str, Any]:
        """What must be the same for as long as the state lives."""
        return {
            "buckets": self.buckets,
            "columns": [list(column) for column in self.columns],
            "key": self.key,
            "target": self.target,
            "features": list(self.features),
            "learner": base64.b64encode(self.learner).decode("ascii"),
            "idle": self.idle,
        }


class Answer(NamedTuple):
    """What is said of a row, before it is learned."""

    prediction: Any = None
    lower: float | None = None
    upper: float | None = None
    loss: float | None = None
    """Squared error, or whether the label is another; None of what was not learned."""
    novelty: float | None = None
    skipped: str | None = None
    """Why it was not learned."""


class Bucket:
    """The learners of some keys.

    A row is learned if it has a key, a target and a place in the order behind that of the last row that its
    key learned. All others are answered with the reason in ``skipped``; late and repeated ones and those
    without a target have a prediction all the same. Rows of a key that are at the same place are sorted by
    what is in them, so that a batch that is repeated chooses the same.

    With ``idle``, a key whose next row comes more than that behind its last begins anew, and its learner is
    dropped when the bucket has learned rows so far on; what comes for any key from before then is late.

    >>> from kons import AutoKONS
    >>> from kons.files import to_bytes
    >>> learner = to_bytes(AutoKONS(effort="tiny"))
    >>> plan = Plan(learner, (("load", "double"), ("y", "double")), "k", "y", ("load",), buckets=1)
    >>> bucket = Bucket(plan, 0)
    >>> answers = bucket.follow([("a", 2, {"load": 1.0}, 5.0), ("a", 1, {"load": 1.0}, 4.0)])
    >>> [answer.prediction for answer in answers], len(Bucket(plan, 0, bucket.to_bytes()).keyed)
    ([4.0, 0.0], 1)
    """

    plan: Plan
    number: int

    def __init__(self, plan: Plan, number: int, state: bytes | None = None) -> None:
        self.plan, self.number = plan, number
        self.keyed: Keyed = Keyed(from_bytes(plan.learner), plan.key, live=1, largest=plan.largest)
        self._last: dict[str, float] = {}
        self._newest = -math.inf
        if state is not None:
            self._resume(state)

    def _resume(self, state: bytes) -> None:
        told, records = _opened(state, self.number)
        for name, now in self.plan.circumstances().items():
            if told["circumstances"].get(name) != now:
                raise ConfigurationError(
                    f"{name} is {_shown(now)}, and the state of this query was made with "
                    f"{_shown(told['circumstances'].get(name))}: use that, or begin with a new checkpoint "
                    "folder."
                )
        self._last = told["last"]
        self._newest = -math.inf if told["newest"] is None else told["newest"]
        self.keyed.resume_bytes(records)

    @staticmethod
    def learners_in(state: bytes) -> Keyed:
        """The learners in a state, whatever query it is of; a key is known by its text."""
        told, records = _opened(state, 0)
        learner = from_bytes(base64.b64decode(told["circumstances"]["learner"]))
        return Keyed(learner, told["circumstances"]["key"]).resume_bytes(records)

    def to_bytes(self) -> bytes:
        """Its state; one that is too large is refused."""
        told = {
            "circumstances": self.plan.circumstances(),
            "last": self._last,
            "newest": None if math.isinf(self._newest) else self._newest,
        }
        head = json.dumps(told, separators=(",", ":")).encode("ascii")
        state = LENGTH.pack(len(head)) + head + self.keyed.to_bytes()
        if len(state) > self.plan.largest:
            enough = math.ceil(1.5 * self.plan.buckets * len(state) / self.plan.largest)
            raise FileError(
                f"bucket {self.number} of {self.plan.buckets} holds {len(self.keyed):,} keys in "
                f"{len(state):,} bytes, at most {self.plan.largest:,} are kept: use buckets={enough} with a "
                "new checkpoint folder, or a smaller effort."
            )
        return state

    def follow(self, rows: Iterable[tuple[Any, Any, dict[str, Any], Any]]) -> list[Answer]:
        """Rows as key, place in the order, columns and target: what is said of each, in the order given."""
        given = list(rows)
        answers = [Answer(skipped="no key")] * len(given)
        sound = []
        for i, (key, place, _, _) in enumerate(given):
            if _missing(key) or key == "":
                continue
            if _missing(place) or math.isinf(place):
                answers[i] = Answer(skipped="no order")
            else:
                sound.append(i)
        # Keys one behind the other: each learner is woken once.
        for i in sorted(sound, key=_Place(given)):
            answers[i] = self._answer(*given[i])
        learned = [given[i][1] for i in sound if answers[i].skipped is None]
        if self.plan.idle is not None and learned:  # a row that was refused makes nobody idle
            self._newest = max(self._newest, *learned)
            for key in [key for key, last in self._last.items() if last < self._newest - self.plan.idle]:
                self._forget(key)
        return answers

    def _answer(self, key: str, place: float, x: dict[str, Any], y: Any) -> Answer:
        last, idle = self._last.get(key, -math.inf), self.plan.idle
        late = place <= last or (idle is not None and place < self._newest - idle)
        if not late and idle is not None and place - last > idle:
            self._forget(key)
        row, answer = {**x, self.plan.key: key}, Answer()
        try:
            answer = self._asked(row)
            if late:
                return answer._replace(skipped="late")
            if _missing(y):
                return answer._replace(skipped="no target")
            self.keyed.learn_one(row, y)
        except KonsError as error:
            return answer._replace(skipped=str(error))
        self._last[key] = place
        if self.keyed.labelled:
            return answer._replace(loss=float(answer.prediction != y))
        return answer._replace(loss=(answer.prediction - y) ** 2)

    def _asked(self, row: dict[str, Any]) -> Answer:
        """What the learner of the row's key says of it."""
        prediction = self.keyed.predict_one(row)
        if self.keyed.labelled:
            return Answer(prediction)
        lower, upper = self.keyed.predict_interval_one(row)
        return Answer(prediction, float(lower), float(upper), None, float(self.keyed.novelty([row])[0]))

    def _forget(self, key: str) -> None:
        self._last.pop(key, None)
        if key in self.keyed:
            self.keyed.drop(key)


class _Place:
    """Rows by key and order; where several are at one place, by what is in them."""

    def __init__(self, rows: list[tuple[Any, Any, dict[str, Any], Any]]) -> None:
        self.rows = rows
        met = Counter(row[:2] for row in rows)
        self.shared = {place for place, count in met.items() if count > 1}

    def __call__(self, i: int) -> tuple[Any, Any, str]:
        key, place, x, y = self.rows[i]
        return key, place, repr((y, list(x.values()))) if (key, place) in self.shared else ""


def _opened(state: bytes, number: int) -> tuple[dict[str, Any], bytes]:
    try:
        (length,) = LENGTH.unpack_from(state)
        told = json.loads(state[LENGTH.size : LENGTH.size + length])
        if told.keys() != {"circumstances", "last", "newest"}:
            raise ValueError
    except (struct.error, ValueError, AttributeError):
        raise FileError(f"the state of bucket {number} is none: use another checkpoint.") from None
    return told, state[LENGTH.size + length :]


def _missing(value: Any) -> bool:
    return value is None or bool(value != value)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 300 else f"{text[:300]}..."
