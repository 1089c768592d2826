"""What everything that consumes a stream of points shares: the border, the counts, no half steps."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector, as_outputs, as_scalar, require_integer
from kons.core.storage import PointStore
from kons.errors import ConfigurationError, KonsError
from kons.kernels import Kernel
from kons.learners.door import TakesTables
from kons.learners.protocol import as_learner, can_learn, described
from kons.state import Count, Field, Part, Sizes, Width, fields
from kons.stored import Stored

__all__ = ["Outputs", "StreamConsumer", "Wrapper"]

# Points looked at to see whether a kernel minds a column of zeros.
LOOKED_AT = 16
# Targets of a row: a forged file must not ask for more memory than there is.
MOST_OUTPUTS = 100_000


class Outputs(Field):
    """How many targets a row has: K of a y of shape (n, K), 0 of one of (n,), None before the first row."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> int | None:
        if stored.is_nothing(key) and not part.rows_seen:
            stored.nothing(key)
            return None
        return stored.integer(key, at_most=MOST_OUTPUTS)


class StreamConsumer(TakesTables, Part, ABC):
    """Rows in order, each counted; a call that raises leaves everything exactly as it was."""

    STATE = fields(_width=Width(), _rows_seen=Count(), _kept=Count())
    inside: bool

    def __init__(self, kernel: Kernel) -> None:
        if not isinstance(kernel, Kernel):
            raise ConfigurationError(
                f"kernel is {kernel!r}, expected an instance from kons.kernels, such as "
                "Gaussian(1.0); wrap a function as kons.kernels.FunctionKernel(f)."
            )
        self._start(kernel)

    def _start(self, kernel: Kernel | None) -> None:
        """No row has come yet."""
        self.kernel = kernel
        self.inside = self.inside or self.accepts == "objects"
        self._width: int | None = None
        self._outputs: int | None = None
        self._rows_seen = 0
        self._kept = 0

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self._rows_seen

    @property
    def size(self) -> int:
        """How many rows were kept, as the policy decided."""
        return self._kept

    @property
    def rows_kept(self) -> int:
        """How many rows were ever kept, those among them that made room for others later."""
        return self._kept

    @property
    def outputs(self) -> int | None:
        """How many targets a row has, where y is of shape (n, k); None: one number."""
        return self._outputs or None

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name, each an attribute."""
        for name in self._arguments():
            if not hasattr(self, name):
                raise ConfigurationError(
                    f"{self.name} has an argument {name!r} and no such attribute: its constructor is to keep "
                    f"it, self.{name} = {name}, so that the learner can be made again."
                )
        return {name: getattr(self, name) for name in self._arguments()}

    def _arguments(self) -> list[str]:
        names: list[str] = []
        for kind in (base for base in type(self).__mro__ if "__init__" in vars(base)):
            taken = signature(kind).parameters.values()
            names += [one.name for one in taken if one.kind is not one.VAR_KEYWORD]
            if all(one.kind is not one.VAR_KEYWORD for one in taken):
                break  # else others are passed on
        return names

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Rows have so many features more from now on, at their end; all that was kept has 0 there.

        A coordinate in which all points are 0 changes no kernel of distances or of products between them, so
        this is exactly the learner whose rows had 0 there from the start. Any other kernel is refused.
        Before the first row nothing is to be done. Costs a copy of the points; ``samples`` are for learners
        that scale. Rows that wait for their
        targets have 0 there, too.

        >>> from kons import KONS, Gaussian, Squared
        >>> learner = KONS(Gaussian(), Squared())
        >>> learner.learn_one([0.5], 1.0)
        >>> learner.widen()
        >>> learner.predict_one([0.5, 0.0]) > learner.predict_one([0.5, 1.0])
        True
        """
        self._require_widenable(columns)
        self._widen_queue(np.zeros(columns))
        if self._width is None:
            return
        for store in self._point_stores():
            store.widen(columns)
        self._width += columns
        self._widened(columns)

    def _widen_queue(self, values: Vector) -> None:
        """Rows that wait have these values in the new columns."""
        if self._queue is not None:
            self._queue.widen(values)

    def _require_widenable(self, columns: int) -> None:
        """Refuse what :meth:`widen` cannot do."""
        require_integer(columns, "columns", at_least=1)
        if self.accepts == "objects":
            raise ConfigurationError(f"{self.kernel!r} takes objects: they have no columns to add.")
        if self._width is not None:
            for store in self._point_stores():
                _require_no_change(self.kernel, store.view[:LOOKED_AT], columns)

    def _point_stores(self) -> Sequence[PointStore]:
        """Where points are kept, each store once."""
        raise ConfigurationError(f"{type(self).__name__} cannot take more features than it began with.")

    def _widened(self, columns: int) -> None:
        """Let the rest follow points that were widened."""

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of :meth:`parameters` and :meth:`state`: it goes on bit for bit.

        A state that does not fit the parameters, or itself, is refused by :class:`~kons.errors.FileError`.

        >>> from kons import KONS, Gaussian, Squared
        >>> learner = KONS(Gaussian(), Squared())
        >>> learner.learn_one([0.0], 1.0)
        >>> twin = KONS.from_state(learner.parameters(), learner.state())
        >>> twin.predict_one([0.1]) == learner.predict_one([0.1])
        True
        """
        return cls(**parameters).resume(state)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if self._width is None and self._rows_seen and self.accepts == "vectors":
            raise stored.error(f"width is None, but {self._rows_seen} row(s) were learned")
        sample = self.row_sample
        shapes = None if sample is None else (sample.points.shape[1], sample.targets.shape[1])
        if sample is not None and shapes != (self._width if len(sample) else 0, self._outputs or 1):
            raise stored.error("its sample of rows has other features or targets than rows have")
        watch = self.watch
        if watch is not None and (
            watch.width > (self._width or 0) or (sample is not None and watch.rows != sample.rows)
        ):
            raise stored.error("other columns or rows were watched than those it learned")

    def __repr__(self) -> str:
        known = {name: getattr(self, name) for name in self._arguments() if hasattr(self, name)}
        return described(self.name, known)

    def _repr_html_(self) -> str:
        facts = {
            **self.parameters(),
            "rows seen": f"{self.rows_seen:,}",
            "points kept": f"{self.size:,}",
            **self._facts(),
        }
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in facts.items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{body}</table>"

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put everything back, bit for bit, if anything is raised inside."""
        queue, self._queue = self._queue, None  # rows that wait are only widened: no mark of them is needed
        mark, self._queue = self.mark(), queue
        width = None if queue is None else queue.width
        try:
            yield
        except BaseException:
            self._queue = None
            self.restore(mark)
            self._queue = queue
            if queue is not None:
                queue.narrow(width)
            raise

    def _as_outputs(self, y: Any, rows: int) -> Any:
        """Targets of the shape that the first row had: (n,), or (n, K)."""
        return as_outputs(y, rows, self._outputs)

    def _as_output(self, y: Any) -> float | Vector:
        """The target of one row: a number, or K of them."""
        if self._outputs == 0 or (self._outputs is None and not hasattr(y, "__len__")):
            return as_scalar(y, name="y")
        targets: Vector = as_outputs([y], 1, self._outputs)[0]
        return targets

    def _sizes(self, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many were kept so far, after each of the rows that were just counted."""
        before = self._kept - int(np.count_nonzero(kept))
        sizes: NDArray[np.int64] = before + np.cumsum(kept)
        return sizes

    def _count(self, points: Any, kept: int) -> None:
        if self.accepts == "vectors":
            self._width = points.shape[1]
        self._rows_seen += len(points)
        self._kept += kept


class Wrapper(StreamConsumer):
    """Made of another learner, which is a pattern and stays as it is: others are made like it."""

    learner: Any

    def __init__(self, learner: Any, expected: str) -> None:
        pattern = as_learner(learner)
        if not can_learn(learner) or pattern.units == "raw":
            raise ConfigurationError(f"learner is {learner!r}, expected {expected}.")
        if pattern.rows_seen:
            raise ConfigurationError(
                f"learner has learned {pattern.rows_seen:,} row(s) already, expected a new one: it is only a "
                "pattern, and others are made like it."
            )
        self._start(pattern.kernel)
        self.learner, self._pattern = learner, pattern
        #: What is learned, in the learner's own units; None: not told.
        self.loss: Any = pattern.loss

    @property
    def core(self) -> Any:
        """The learner of one problem inside, or the pattern for it."""
        return self._pattern.core

    @property
    def saves(self) -> bool:
        """Whether what it was made of can be saved."""
        return bool(self._pattern.saves)

    def _point_stores(self) -> Sequence[PointStore]:
        return ()  # what is inside has them

    def __repr__(self) -> str:
        return described(self.name, self.parameters() | {"learner": self._pattern})


def _require_no_change(kernel: Kernel, points: Any, columns: int) -> None:
    """Refuse kernels that a column of zeros changes, such as those that divide by the number of features."""
    if not len(points):
        return
    wider = np.pad(points, ((0, 0), (0, columns)))
    try:
        before, after = kernel.evaluate(points, points), kernel.evaluate(wider, wider)
    except KonsError as error:
        raise ConfigurationError(f"{kernel!r} cannot take more features: {error}") from error
    if not np.allclose(before, after, rtol=1e-9, atol=1e-9 * np.abs(before).max()):
        raise ConfigurationError(
            f"{kernel!r} is another kernel with {columns} more feature(s), even where these are 0: what was "
            "learned would not fit. Give it all features from the start."
        )
