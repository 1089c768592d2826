"""What is under test: how to make it, what to feed it, and how to tell two of them apart."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kons.errors import KonsError
from kons.learners.protocol import as_learner, verbs_of

__all__ = ["STRETCHES", "CheckFailed", "Rows", "Subject", "difference", "sign_stream"]

#: Rows that are enough for a period of every learner, and for a warm-up of some forty rows.
STRETCHES = ((0, 45), (50, 110))
# Rows after which memory must have stopped growing.
LONG = 512

#: Rows and targets of a stream, by how many and which seed.
Rows = Callable[[int, int], tuple[Any, Any]]


class CheckFailed(KonsError, AssertionError):  # noqa: N818 - it says what happened
    """A learner broke a promise; the message says which and how.

    >>> issubclass(CheckFailed, AssertionError)
    True
    """


def sign_stream(rows: int, seed: int) -> tuple[Any, Any]:
    """Three features and the targets -1.0 and +1.0, a fifth of them wrong: most learners take these.

    >>> X, y = sign_stream(4, seed=0)
    >>> X.shape, y.tolist()
    ((4, 3), [1.0, -1.0, 1.0, -1.0])
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3)
    y[rng.random(rows) < 0.2] *= -1.0
    return X, y


@dataclass(frozen=True)
class Subject:
    """A learner's factory and its stream. Every call gets arrays of its own."""

    make: Callable[[], Any]
    stream: Rows
    tolerance: float
    stretches: Sequence[tuple[int, int]]
    """Rows from ... to, over which promises are checked."""
    columns: Mapping[int, int] = field(default_factory=dict)
    """Row -> how many columns there are from then on; others come later."""
    _begun: dict[int, Any] = field(default_factory=dict)

    @cached_property
    def learned_from(self) -> tuple[Any, Any]:
        """All rows that are learned."""
        return self.stream(self.most, 0)

    @property
    def last(self) -> int:
        """Where the last stretch ends."""
        return max(stop for _, stop in self.stretches)

    @property
    def most(self) -> int:
        """Rows that the longest check learns."""
        return -(-max(LONG, self.last) // 128) * 128

    @property
    def after_some_rows(self) -> list[tuple[int, int]]:
        """The stretches that do not begin with the first row."""
        return [(start, stop) for start, stop in self.stretches if start]

    # ---- rows

    def rows(self, start: int, stop: int) -> tuple[Any, Any]:
        """Rows of the one stream that is learned, of as many columns as there are at the first, as a copy."""
        X, y = self.learned_from
        return copy.deepcopy((self._there(X[start:stop], start), y[start:stop]))

    def queries(self, at: int, rows: int = 12, seed: int = 1) -> Any:
        """Rows that are only asked about, as they are after so many rows of the stream."""
        return self._there(self.stream(rows, seed)[0], at - 1)

    def _there(self, X: Any, row: int) -> Any:
        width = max(
            ((at, columns) for at, columns in self.columns.items() if at <= max(row, 0)), default=None
        )
        return X if width is None else X[:, : width[1]]

    def pieces(self, start: int, stop: int, size: int, *learners: Any) -> Iterator[tuple[Any, Any]]:
        """Rows, so many at a time; where columns come, the learners are told first, and a piece ends."""
        while start < stop:
            if start and start in self.columns:
                more = self.columns[start] - self.rows(start - 1, start)[0].shape[1]
                for learner in learners:
                    learner.widen(more)
            end = min([start + size, stop, *(at for at in self.columns if at > start)])
            yield self.rows(start, end)
            start = end

    def teach(
        self, learner: Any, start: int, stop: int, size: int = sys.maxsize, block_size: int | None = None
    ) -> dict[str, Any]:
        """Let it learn rows, so many a call; the columns of its traces, joined."""
        parts = [learn(learner, X, y, block_size) for X, y in self.pieces(start, stop, size, learner)]
        return {name: _joined([part[name] for part in parts]) for name in parts[0]} if parts else {}

    # ---- learners

    def begun(self, rows: int) -> Any:
        """A learner that has learned so many rows: each time another copy of the same one."""
        if rows not in self._begun:
            before = max((at for at in self._begun if at < rows), default=None)
            learner = self.make() if before is None else copy.deepcopy(self._begun[before])
            self.teach(learner, before or 0, rows)
            self._begun[rows] = learner
        return copy.deepcopy(self._begun[rows])

    def twins(self, rows: int) -> tuple[Any, Any]:
        """Two learners that must do the same."""
        return self.begun(rows), self.begun(rows)


def _joined(parts: list[Any]) -> Any:
    """One array; the parts themselves where rows differ in width, as scores do once a class has come."""
    arrays = [np.asarray(part) for part in parts]
    return np.concatenate(arrays) if len({array.shape[1:] for array in arrays}) == 1 else arrays


# ---- the verbs, of learners and of what only samples


def learn(learner: Any, X: Any, y: Any, block_size: int | None = None) -> dict[str, Any]:
    """Let it learn rows; the columns of its trace."""
    if "advance" not in verbs_of(learner):
        learner.update(X)
        return {}
    names = inspect.signature(learner.advance).parameters
    given = {"y": y, "block_size": block_size}
    trace = learner.advance(X, **{name: given[name] for name in given if name in names})
    columns = getattr(trace, "columns", None)
    if isinstance(columns, dict):
        return dict(columns)
    prediction = getattr(trace, "prediction", None)
    return {} if prediction is None else {"prediction": prediction}


def learn_row(learner: Any, X: Any, y: Any) -> None:
    """Let it learn a block of one row, as a row where it can."""
    if learns_rows(learner):
        learner.learn_one(X[0], y[0])
    else:
        learn(learner, X, y)


def under_test(thing: Any) -> Any:
    """Itself, if it takes blocks of rows from callers; else behind the border that kons puts before it."""
    return thing if {"advance", "update"} & verbs_of(thing) else as_learner(thing)


def learns_rows(learner: Any) -> bool:
    """Whether it has ``learn_one``."""
    return "learn_one" in verbs_of(learner)


def state_of(learner: Any) -> Any:
    """All that it has learned; of one that cannot be saved, itself."""
    return learner.state() if as_learner(learner).saves else learner


def answers(learner: Any, X: Any) -> dict[str, Any]:
    """What it says of rows, by every verb that it has."""
    asked = [verb for verb in as_learner(learner).questions if verb in verbs_of(learner)]
    return {verb: answer(learner, verb, X) for verb in asked}


def answer(learner: Any, verb: str, X: Any) -> Any:
    """What it says of rows by one verb; of the first rows, if it takes one at a time."""
    if verb.endswith("_one"):
        return [getattr(learner, verb)(x) for x in X[:3]]
    return getattr(learner, verb)(X)


def refuses(call: Callable[[], Any]) -> bool:
    """Whether the call raises."""
    try:
        call()
    except Exception:
        return True
    return False


# ---- telling apart


def difference(a: Any, b: Any, where: str = "") -> str | None:
    """Where two trees differ first, bit for bit, or None."""
    where = where or "the whole"
    if type(a) is not type(b):
        return f"{where} is a {type(a).__name__}, not a {type(b).__name__}"
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{where} has the keys {sorted(a)}, not {sorted(b)}"
        return _first(difference(a[key], b[key], f"{where}[{key!r}]") for key in a)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{where} has {len(a)} entries, not {len(b)}"
        pairs = zip(a, b, strict=True)
        return _first(difference(x, z, f"{where}[{i}]") for i, (x, z) in enumerate(pairs))
    if isinstance(a, np.ndarray):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{where} has the shape {a.shape} and type {a.dtype}, not {b.shape} and {b.dtype}"
        if a.dtype.kind == "O":
            return difference(a.tolist(), b.tolist(), where)
        return None if a.tobytes() == b.tobytes() else f"{where} holds other numbers"
    if isinstance(a, float):
        return None if a.hex() == b.hex() else f"{where} is {a!r}, not {b!r}"
    kind: Any = type(a)
    if kind.__eq__ is object.__eq__ and not callable(a) and a is not b:
        # An object that only knows itself: by what a copy of it would be made of.
        return difference(a.__reduce_ex__(4)[1:], b.__reduce_ex__(4)[1:], where)
    try:
        same = bool(a == b)
    except Exception:
        same = a is b
    return None if same else f"{where} is {a!r}, not {b!r}"


def farther_apart(a: Any, b: Any, tolerance: float) -> str | None:
    """As :func:`difference` of two arrays, numbers being equal within a tolerance of the largest."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"the shape is {a.shape}, not {b.shape}"
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return difference(a.tolist(), b.tolist(), "the labels")
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.nanmax(np.abs(b), initial=0.0))
    close = np.isclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    if close.all():
        return None
    at = int(np.argmin(close.reshape(len(close), -1).all(axis=1)))
    return f"row {at} is {a[at]}, not {b[at]}"


def _first(found: Any) -> str | None:
    return next((text for text in found if text is not None), None)


def numbers_in(tree: Any) -> int:
    """How many numbers, letters and entries a tree holds."""
    if isinstance(tree, (dict, list, tuple)):
        return sum(map(numbers_in, tree.values() if isinstance(tree, dict) else tree))
    if isinstance(tree, np.ndarray):
        return int(tree.size)
    return len(tree) if isinstance(tree, Sequence) else 1
