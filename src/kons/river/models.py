"""River's estimators over a learner in raw units."""

from __future__ import annotations

import copy
import sys
from typing import Any, Literal, Self

import numpy as np
from river import base

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError, InputError, notice
from kons.kernels import Kernel
from kons.learners.late import LateTargets
from kons.learners.protocol import as_learner
from kons.learners.queue import Identifier, Kept, Queue, Shapes
from kons.losses import Loss
from kons.recipes import for_task, together
from kons.recipes.registry import recipe_of
from kons.river.columns import ENOUGH, Columns, DictQueue, Reading, Samples
from kons.river.frames import Table
from kons.river.values import as_kept
from kons.stored import Stored

__all__ = ["KONSClassifier", "KONSRegressor"]

LARGEST = sys.float_info.max
# Rows that tell the scales, for a learner that waits for them.
WARMUP = 200
#: Parameters of the learner that have a name of their own here; None leaves them to the learner.
_NAMED = (
    *("kernel", "bandwidth", "scale", "warmup", "seed", "loss"),
    *("regularization", "max_atoms", "forgetting"),
)


class OnDicts(LateTargets):
    """What both estimators share: dicts to rows, frames to blocks, and features that come late."""

    _task: Literal["regression", "classification"]

    def __init__(
        self,
        learner: str = "auto",
        kernel: str | Kernel | None = None,
        bandwidth: float | Literal["auto"] = "auto",
        regularization: float | None = None,
        max_atoms: int | None = None,
        forgetting: float | None = None,
        loss: str | Loss | None = None,
        scale: Literal["auto", "none"] = "auto",
        warmup: int | None = None,
        text_width: int = 8,
        seed: int = 0,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.max_atoms = max_atoms
        self.forgetting = forgetting
        self.loss = loss
        self.scale = scale
        self.warmup = warmup
        self.text_width = text_width
        self.seed = seed
        self.parameters = parameters
        self._prepare()

    def _prepare(self) -> None:
        """Make the learner that the parameters describe; it has seen nothing."""
        named = {name: getattr(self, name) for name in _NAMED}
        if "warmup" in recipe_of(self.learner).accepts:
            named["warmup"] = WARMUP if self.warmup is None else self.warmup
        given = together(named, self.parameters, "parameters")
        self._core: Any = as_learner(for_task(self._task, self.learner, **given))
        self._columns = Columns(self.text_width)

    # ---- learning

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one row: features by name, and its target."""
        self._learn(x, self._target(y))

    def _target(self, y: Any) -> Any:
        return y

    def _learn(self, x: Any, y: Any, more: Kept = ()) -> None:
        """Learn one row, with what was kept of it besides if it was asked before."""
        columns = self._columns
        quick = columns.quick(x)
        if quick is None:
            self._learn_reading(columns.read(x), x, y, more)
            return
        _learn_row(self._core, quick[0], y, more)
        columns.count_complete(quick[1])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in order: the same as one by one, faster.

        Of pandas, or any that narwhals knows. All of them or, after an error, none.
        """
        table, targets = Table(X), self._targets(y)
        if len(targets) != len(table):
            raise InputError(
                f"y has {len(targets)} value(s), X has {len(table)} row(s): expected one per row."
            )
        if not len(table):
            return
        if self._columns.width and self._columns.first_new(table, 0) == len(table):
            self._learn_known(table, targets, slice(None))
            return
        before = copy.deepcopy((self._core, self._columns))
        try:
            self._learn_with_new(table, targets)
        except BaseException:
            self._core, self._columns = before
            raise

    def _learn_with_new(self, table: Table, targets: list[Any]) -> None:
        """Rows with new features by themselves, stretches without in blocks."""
        start = 0
        while start < len(table):
            new = self._columns.first_new(table, start) if self._columns.width else start
            if new > start:
                self._learn_known(table, targets, slice(start, new))
            if new < len(table):
                self.learn_one(table.row(new), targets[new])
            start = new + 1

    def _learn_known(self, table: Table, targets: list[Any], rows: slice) -> None:
        points, behind = self._columns.read_table(table, rows)
        self._core.advance(points, targets[rows])
        self._columns = behind

    def _learn_reading(self, reading: Reading, x: Any, y: Any, more: Kept) -> None:
        """Learn a row that is not like those before."""
        new = reading.new
        if not new and self._columns.width:
            _learn_row(self._core, reading.row, y, more)
            self._columns.count(reading.numbers)
            return
        if not (self._core.rows_seen or self._columns.width):
            columns = self._columns.grown(new)
            reading = columns.read(x)
            _learn_row(self._core, reading.row, y, more)
            columns.count(reading.numbers)
            self._columns = columns
            return
        ready: dict[Any, Any] = dict(new)
        samples: Matrix | None = None
        if not self._warmup_tells_scales():
            waited = {name: self._columns.enough_of(name, value) for name, value in new.items()}
            enough: dict[Any, Samples] = {name: seen for name, seen in waited.items() if seen is not None}
            ready = {name: new[name] for name in enough}
            samples = self._columns.columns_of(enough) if enough else None
        core, columns = self._widened(ready, samples)
        if ready:
            reading = columns.read(x)
        _learn_row(core, reading.row, y, more)
        columns.count(reading.numbers)
        for name, value in reading.new.items():
            columns.remember(name, value)
        self._core, self._columns = core, columns

    def _warmup_tells_scales(self) -> bool:
        """Whether the rest of the warm-up is enough for the scale of a feature that is new."""
        if not self._core.warming_up:
            return False
        warmup = self._core.warmup
        return bool(warmup - self._core.rows_seen >= min(ENOUGH, warmup // 2))

    def _widened(self, features: dict[Any, Any], samples: Matrix | None) -> tuple[Any, Columns]:
        """The learner with columns for more features, and these; or, if it cannot, without them."""
        if not features:
            return self._core, self._columns
        name, rows = next(iter(features)), self._core.rows_seen
        core, columns = copy.deepcopy(self._core), self._columns.grown(features)
        try:
            core.widen(columns.width - self._columns.width, samples)
        except ConfigurationError as error:
            notice(
                "river refused feature",
                f"the feature {name!r} came after {rows:,} rows, and is ignored: {error} Told once.",
            )
            return self._core, self._columns.without(features)
        if samples is not None:
            notice(
                "river late feature",
                f"the feature {name!r} came late: its scale was read off its first {len(samples)} values, "
                f"and it is used from row {rows + 1:,} on. Told once, also for other features.",
            )
        return core, columns

    def _targets(self, y: Any) -> list[Any]:
        """As plain Python values."""
        for listing in ("tolist", "to_list", "to_pylist"):
            if hasattr(y, listing):
                y = getattr(y, listing)()
        try:
            return list(y)
        except TypeError:
            raise InputError(f"y is a {type(y).__name__}, expected one target per row.") from None

    # ---- targets that come late

    def ask(self, x: dict[Any, Any], id: Identifier) -> Any:
        """What ``predict_one`` says of a row, which then waits for its target: see :meth:`tell`.

        Features that get columns while it waits are learned with the values that it has. The first row of
        all tells which columns there are. Identifiers: see :meth:`kons.EmbeddedKONS.ask`.
        """
        before = self._columns
        if not before.width:
            self._columns = before.grown(before.read(x).new)
        try:
            return super().ask(x, id)
        except BaseException:
            self._columns = before
            raise

    def row_to_keep(self, x: Any) -> Kept:
        """The features by name, and what else the learner keeps."""
        more = self._core.row_to_keep(self._row(x))[1:] if len(self._core.kept_shapes()) > 1 else ()
        return (self._point_to_keep(x), *more)

    def _point_to_keep(self, x: Any) -> dict[Any, Any]:
        return {name: as_kept(value, name) for name, value in x.items()}

    def release_kept_row(self, kept: Kept) -> None:
        """It is never learned."""
        self._core.release_kept_row(kept)

    def learn_kept_row(self, kept: Kept, y: Any) -> None:
        """Learn a row that waited, in the columns that there are now."""
        self._learn(kept[0], self._target(y), kept[1:])

    def kept_shapes(self) -> Shapes:
        """Of a dict none."""
        return (None, *self._core.kept_shapes()[1:])

    def new_queue(self) -> Queue:
        """One for dicts."""
        return DictQueue()

    # ---- predicting

    @property
    def _as_next(self) -> dict[str, bool]:
        """How the learner is asked for rows that come next in the stream."""
        return {"recent_targets": True} if self._core.looks_back else {}

    def _row(self, x: Any) -> Any:
        """The row of a dict; empty before anything was learned."""
        quick = self._columns.quick(x)
        return self._columns.read(x).row if quick is None else quick[0]

    # ---- looking

    @property
    def core(self) -> Any:
        """The learner of rows inside, in raw units; its columns are features in order of appearance."""
        return self._core

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self._core.rows_seen or 0

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on, besides the parameters. A copy."""
        late = {} if self._queue is None else {"queue": self._queue.state()}
        return {"core": self._core.state(), "columns": self._columns.state(), **late}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of the parameters and :meth:`state`: it goes on bit for bit."""
        model = cls(**parameters)
        stored = Stored(state, cls.__name__)
        core = stored.take("core")
        model._core = model._core.anew().resume(core)
        model._columns.load_state(stored.inner("columns"))
        if "queue" in stored:
            model.queue.load_state(stored.inner("queue"))
            model.queue.require_shapes(model.kept_shapes(), stored)
        stored.finish()
        if isinstance(core, dict) and core.get("width", model._columns.width) not in (
            None,
            model._columns.width,
        ):
            raise stored.error(f"its features have {model._columns.width} columns, its learner has others")
        return model

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"max_atoms": 30, "parameters": {"experts": 4}}
        yield {"learner": "embedded"}
        yield {"learner": "embedded", "warmup": 20, "max_atoms": 30}


def _learn_row(core: Any, row: Vector, y: Any, more: Kept) -> None:
    if more:
        core.learn_kept_row((row, *more), y)
    else:
        core.learn_one(row, y)


class KONSRegressor(OnDicts, base.MiniBatchRegressor):
    """Second-order kernel regression on a stream of dicts.

    Features and target may have any units. Features may come, go and change places:

    - a number that is missing (no key, None, NaN) is replaced by the mean of its values so far;
    - text becomes a one-hot of small fixed width, at a place that a hash decides;
    - a feature that comes late is used once 50 of its values, not all the same, tell its scale; in a
      warm-up, if half of it or 50 rows are still to come, at once.

    The default learner, :class:`kons.AutoKONS`, chooses scales, relevance, bandwidth and memory as it learns,
    and looks at the targets learned last. Any other reads the scales off its first ``warmup`` rows, predicted
    by their running mean.

    What is done for you is told once, as a :class:`~kons.errors.KonsWarning`. Infinity and values that are
    neither numbers, booleans nor text are refused, and a call that raises changes nothing.

    A row costs O(B^2) with B atoms, and the default has several dictionaries: row by row some hundred
    microseconds (``learn_many`` takes less), where ``learner="embedded"`` takes some ten. Not for sparse
    features, such as bags of words: what is not there counts as not known, not as 0, and a kernel looks at
    every column of a row.

    Parameters
    ----------
    learner
        A name in :data:`kons.recipes.RECIPES`.
    kernel
        A name in :data:`kons.recipes.KERNELS`, or a kernel. None takes the learner's own: Gaussian, or for
        "auto" several.
    bandwidth
        Of the kernel, in scaled units; "auto" reads it off the rows.
    regularization
        Of the learner; None takes its own. So with the next two.
    max_atoms
        How many points are kept at most.
    forgetting
        Below 1, the past is discounted by this factor a row. Not for "auto", which has several memories.
    loss
        A name in :data:`kons.recipes.LOSSES`, or a loss. None takes the squared loss. Not for "auto".
    scale
        "none" leaves features as they are, for pipelines that have scaled them. Not for "auto".
    warmup
        How many rows tell the scales; None for 200. More of them tell better how far the target may go, which
        matters where it has a trend; meanwhile nothing but their mean is predicted. Not for "auto", which
        waits for nothing.
    text_width
        How many columns the text of a feature takes.
    seed
        Of the learner's coins, where it tosses some.
    parameters
        Others of the learner, by name.

    Examples
    --------
    >>> from river import compose, preprocessing
    >>> from kons.river import KONSRegressor
    >>> model = KONSRegressor()
    >>> for i in range(100):
    ...     x = {"hours": i % 7, "weather": "rain" if i % 3 else "sun"}
    ...     y = 2.0 * x["hours"] + (x["weather"] == "sun")
    ...     guess = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> bool(abs(model.predict_one({"weather": "rain", "hours": 2}) - 4.0) < 0.1)  # the row that comes next
    True
    >>> pipeline = preprocessing.StandardScaler() | KONSRegressor("embedded", scale="none")
    """

    _task = "regression"

    def _target(self, y: Any) -> Any:
        if type(y) is not float and isinstance(y, (int, float)):
            y = float(y) if abs(y) < LARGEST else y  # what is larger is refused inside
        return y

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction for one row; 0 before anything was learned."""
        row = self._row(x)
        return self._core.predict_one(row) if len(row) else 0.0

    def predict_many(self, X: Any) -> Any:
        """The predictions for the rows of a frame, as a series of its kind."""
        table = Table(X)
        values = [0.0] * len(table)
        if self._columns.width and len(table):
            values = self._core.predict(self._columns.look_at_table(table), **self._as_next).tolist()
        return table.series(values, "float64")


class KONSClassifier(OnDicts, base.MiniBatchClassifier):
    """Second-order kernel classification on a stream of dicts: labels of any kind, new ones at any time.

    One problem per class in shared dictionaries (:class:`kons.Classifier`). Parameters and the treatment
    of features are those of :class:`KONSRegressor`; learners with a loss take the logistic one unless another
    is named, and in a warm-up the most frequent label is predicted.

    Parameters
    ----------
    learner, kernel, bandwidth, regularization, max_atoms, forgetting, loss, scale, warmup, text_width, seed
        As in :class:`KONSRegressor`.
    parameters
        Others of the learner, by name.

    Examples
    --------
    >>> from kons.river import KONSClassifier
    >>> model = KONSClassifier()
    >>> for i in range(60):
    ...     model.learn_one({"size": i % 10}, "large" if i % 10 > 6 else "small")
    >>> model.predict_one({"size": 9}), model.predict_one({"size": 1})
    ('large', 'small')
    >>> sorted(model.predict_proba_one({"size": 9}))
    ['large', 'small']
    """

    _task = "classification"

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self._core.classes)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The most probable label of one row; None before anything was learned."""
        row = self._row(x)
        return self._core.predict_one(row) if len(row) else None

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each label; empty before anything was learned."""
        row = self._row(x)
        return self._core.predict_proba_one(row) if len(row) else {}

    def predict_many(self, X: Any) -> Any:
        """The labels of the rows of a frame, as a series of its kind."""
        table = Table(X)
        if not (self._columns.width and len(table)):
            return table.series([None] * len(table), "object")
        rows = self._columns.look_at_table(table)
        return table.series(self._core.predict(rows, **self._as_next).tolist())

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of the rows of a frame, as a frame with a column per label."""
        table = Table(X)
        if not (self._columns.width and len(table)):
            return table.frame(np.empty((len(table), 0)), [])
        rows = self._columns.look_at_table(table)
        return table.frame(self._core.predict_proba(rows, **self._as_next), self.classes)
