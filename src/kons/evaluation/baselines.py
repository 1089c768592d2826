"""The trivial predictors that a kernel learner must beat, with the verbs of a learner.

==================  ==============  ====================================  ====================  ===========
baseline            task            predicts                              what it shows         a row costs
==================  ==============  ====================================  ====================  ===========
``RunningMean``     regression      the mean of the targets so far        the target's spread   O(1)
``Persistence``     regression      the last target                       the order's worth     O(1)
``OnlineLinear``    regression      the Vovk-Azoury-Warmuth forecast      the linear part       O(d^2)
``MajorityClass``   classification  the most frequent label so far        the labels' balance   O(K)
``LastLabel``       classification  the last label                        the order's worth     O(1)
``OnlineLogistic``  classification  online Newton on the logistic loss    the linear part       O(d^2 + Kd)
==================  ==============  ====================================  ====================  ===========

They predict 0, or no label, before the first target is known. A kernel learner that does not beat all
three of its task has not earned its cost. The linear ones are in files of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sized
from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Vector, as_objects, as_scalar, as_targets
from kons.errors import InputError
from kons.learners import Trace
from kons.learners.labels import Codes, KnownLabels, Labels, as_labels
from kons.learners.late import LateTargets
from kons.learners.protocol import described
from kons.learners.queue import Kept, Shapes
from kons.means import Mean
from kons.state import Count, Inner, Number, Part, Whole, fields

__all__ = ["Baseline", "LabelBaseline", "LastLabel", "MajorityClass", "Persistence", "RunningMean"]

# How many rows were learned before a single one: it is the first of its call.
FIRST = np.zeros(1, dtype=np.int64)


class Baseline(LateTargets, Part, ABC):
    """Predict, then learn, each row in order; what all baselines share.

    A subclass plays a stretch of rows (:meth:`play`) and says what it would predict next. One row is
    a stretch of one: blocks of any size give the same predictions. A call that raises changes nothing.
    """

    STATE = fields(rows_seen=Count())

    def __init__(self) -> None:
        self.rows_seen: int = 0

    def advance(self, X: Any, y: Any) -> Trace:
        """Predict, then learn, each row of X in order. Keeps no points: ``size`` stays 0."""
        points = self._as_points(X)
        targets = self._as_targets(y, len(points))
        found = self._columns(self.play(points, None, targets, np.arange(len(points))), targets)
        rows = len(targets)
        return Trace(kept=np.zeros(rows, dtype=np.bool_), size=np.zeros(rows, dtype=np.int64), **found)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row."""
        self.play(self._as_point(x), None, self._as_target(y), FIRST)

    def predict(self, X: Any) -> NDArray[Any]:
        """What would be predicted for each row if it came next. Changes nothing."""
        return self._shown(self._foresee(self._as_points(X)))

    def predict_one(self, x: Any) -> Any:
        """What would be predicted for one row if it came next. Changes nothing."""
        value = self._shown(self._foresee(self._as_point(x)))[0]
        return value.item() if isinstance(value, np.generic) else value

    def play(self, points: Any, rows: Any | None, targets: NDArray[Any], known: Integers) -> NDArray[Any]:
        """Predict the points in order; before point i, the first ``known[i]`` of the rows are learned.

        Those that are left are learned at the end. ``rows`` None stands for the points themselves, as in
        :meth:`advance`; rows that became known late make it prediction with late targets. Arrays are
        trusted; labels are codes 0, 1, ..., -1 for none.
        """
        prediction = self._play(points, rows, targets, known)
        self.rows_seen += len(targets)
        return prediction

    @abstractmethod
    def _play(self, points: Any, rows: Any | None, targets: NDArray[Any], known: Integers) -> NDArray[Any]:
        """The predictions of :meth:`play`."""

    def _foresee(self, points: Any) -> NDArray[Any]:
        """The prediction of each row from what is known now: played, with nothing to learn."""
        return self._play(points, (), np.empty(0, dtype=np.int64), np.zeros(len(points), dtype=np.int64))

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The baseline with these parameters, gone on to this :meth:`state`."""
        return cls(**parameters).resume(state)

    def _as_points(self, X: Any) -> Sized:
        """The features are not looked at, so they may be anything: only their number counts."""
        if not isinstance(X, Sized) or len(X) == 0:
            raise InputError(f"X is {X!r}, expected a sequence of at least one row.")
        return X

    def _as_point(self, x: Any) -> Sized:
        return (x,)

    def row_to_keep(self, x: Any) -> Kept:
        """A copy: the features may be anything."""
        return (as_objects([x], name="x")[0],)

    def kept_shapes(self) -> Shapes:
        """Any."""
        return (None,)

    def _as_targets(self, y: Any, rows: int) -> NDArray[Any]:
        return as_targets(y, rows)

    def _as_target(self, y: Any) -> NDArray[Any]:
        return np.array([as_scalar(y, name="y")])

    def _shown(self, played: NDArray[Any]) -> NDArray[Any]:
        return played

    def _columns(self, played: NDArray[Any], targets: NDArray[Any]) -> dict[str, Any]:
        """Of the trace."""
        error = played - targets
        return {"prediction": played, "loss": error**2, "slope": 2.0 * error}

    def __repr__(self) -> str:
        return described(type(self).__name__, self.parameters())


class RunningMean(Baseline):
    """Predict the mean of all targets so far: the best constant, followed online.

    ::

        y_hat_t = (y_1 + ... + y_(t-1)) / (t - 1),          y_hat_1 = 0

    Its loss tends to the variance of the targets: 1 - loss/loss of this baseline is R^2. Costs O(1)
    a row. Says little where the level drifts: there, look at :class:`Persistence`.

    >>> from kons.evaluation import RunningMean
    >>> RunningMean().advance([[0.0]] * 4, [1.0, 3.0, 2.0, 0.0]).prediction.tolist()
    [0.0, 1.0, 2.0, 2.0]
    """

    STATE = fields(_origin=Number(), _mean=Inner())

    def __init__(self) -> None:
        super().__init__()
        # Of differences to the first target: a level of 1e9 costs no digits.
        self._origin = 0.0
        self._mean = Mean()

    def _play(self, points: Any, rows: Any | None, targets: Vector, known: Integers) -> Vector:
        if self.rows_seen == 0 and len(targets):
            self._origin = float(targets[0])
        means = self._origin + self._mean.follow(targets - self._origin, np.ones(len(targets)))
        return np.where(self.rows_seen + known > 0, means[known], 0.0)


class Persistence(Baseline):
    """Predict the last target again: nothing changes.

    ::

        y_hat_t = y_(t-1),          y_hat_1 = 0

    Hard to beat on slow series. Costs O(1) a row. Meaningless if the order of the rows is: its loss is
    then twice the variance. It repeats the last target that is *known*: with a delay, an older one.

    >>> from kons.evaluation import Persistence
    >>> Persistence().advance([[0.0]] * 3, [1.0, 3.0, 2.0]).prediction.tolist()
    [0.0, 1.0, 3.0]
    """

    STATE = fields(_last=Number())

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0

    def _play(self, points: Any, rows: Any | None, targets: Vector, known: Integers) -> Vector:
        last = np.concatenate([[self._last], targets])
        self._last = float(last[-1])
        return np.asarray(last[known], dtype=np.float64)


class LabelBaseline(Baseline):
    """A baseline for labels of any kind. Before the first is known it predicts None, which is wrong.

    What it plays is (2, n): the codes, and how probable the label with code 1 is, of two; 1/2 before any is
    known.
    """

    STATE = fields(_labels=KnownLabels())

    def __init__(self) -> None:
        super().__init__()
        self._labels = Labels()

    @property
    def classes(self) -> list[Any]:
        """The labels seen so far, in the order they came."""
        return list(self._labels.known)

    def _as_targets(self, y: Any, rows: int) -> Codes:
        if not isinstance(y, Sized) or len(y) != rows:
            as_labels(y, rows)  # says what is wrong
        return self._labels.learn(y)

    def _as_target(self, y: Any) -> Codes:
        return self._as_targets([y], 1)

    def _shown(self, played: NDArray[Any]) -> NDArray[Any]:
        return self._labels.decode(played[0])

    def _columns(self, played: NDArray[Any], targets: NDArray[Any]) -> dict[str, Any]:
        return {"prediction": self._shown(played), "loss": (played[0] != targets).astype(np.float64)}


class MajorityClass(LabelBaseline):
    """Predict the label that came most often; of several, the one that was first seen first.

    Its error is what a learner gets for knowing nothing but the balance of the labels. Costs O(K) a row
    with K labels.

    >>> from kons.evaluation import MajorityClass
    >>> MajorityClass().advance([[0.0]] * 4, ["a", "b", "b", "b"]).prediction.tolist()
    [None, 'a', 'a', 'b']
    """

    STATE = fields(_counts=Whole(None))

    def __init__(self) -> None:
        super().__init__()
        self._counts = np.zeros(0, dtype=np.int64)

    def _play(self, points: Any, rows: Any | None, targets: Codes, known: Integers) -> NDArray[Any]:
        width = max(len(self._counts), int(targets.max(initial=-1)) + 1)
        counts = np.zeros((len(targets) + 1, max(width, 2)), dtype=np.int64)
        counts[0, : len(self._counts)] = self._counts
        counts[np.arange(1, len(targets) + 1), targets] = 1
        np.cumsum(counts, axis=0, out=counts)
        best = np.where(counts.any(axis=1), counts.argmax(axis=1), -1)
        self._counts = counts[-1, :width].copy()
        share = np.where(best < 0, 0.5, counts[:, 1] / np.maximum(counts.sum(axis=1), 1))
        return np.stack([best, share])[:, known]


class LastLabel(LabelBaseline):
    """Predict the last known label again: :class:`Persistence` for labels. Costs O(1) a row.

    >>> from kons.evaluation import LastLabel
    >>> LastLabel().advance([[0.0]] * 3, ["a", "b", "b"]).prediction.tolist()
    [None, 'a', 'b']
    """

    STATE = fields(_last=Count(at_least=-1))

    def __init__(self) -> None:
        super().__init__()
        self._last = -1

    def _play(self, points: Any, rows: Any | None, targets: Codes, known: Integers) -> NDArray[Any]:
        last = np.concatenate([[self._last], targets])
        self._last = int(last[-1])
        return np.stack([last, np.where(last < 0, 0.5, last == 1)])[:, known]
