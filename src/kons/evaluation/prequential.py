"""Test, then train: each row is predicted with what is known when it comes, scored, and learned later.

With a delay of k rows, the target of row s becomes known after row s + k was predicted; so

    row t is predicted by a learner that has learned rows 0 .. t-1-k, and nothing else,

and so are the baselines and the intervals. With k = 0 this is the usual progressive evaluation, at the speed
of the learner's blocks. With k > 0 what is known differs from row to row, so that rows are predicted and
learned one by one; but a learner that keeps targets back by itself (one with a ``delay``, such as
:class:`kons.AutoKONS`) is handed blocks with their targets all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_points, as_targets, require_flag, require_integer
from kons.compilation import wall_clock
from kons.errors import ConfigurationError, InputError
from kons.evaluation.baselines import Baseline, LastLabel, MajorityClass, Persistence, RunningMean
from kons.evaluation.intervals import ResidualIntervals
from kons.evaluation.linear import OnlineLinear
from kons.evaluation.logistic import OnlineLogistic
from kons.evaluation.metrics import make_metrics
from kons.evaluation.result import Evaluation
from kons.evaluation.scoreboard import Scoreboard
from kons.learners import Trace
from kons.learners.labels import KnownLabels, Labels, object_array
from kons.learners.protocol import as_learner
from kons.state import Array, Field, Flag, Inner, Items, Number, Part, Sizes, Whole, fields
from kons.stored import Stored
from kons.streams import Block

__all__ = ["Prequential", "Scored"]

# The linear baselines keep a matrix of this width squared.
MOST_FEATURES = 300
# Where rows that nobody could have predicted make up more of the loss than this, it is said.
LARGE_SHARE = 0.1

BASELINES: dict[str, dict[str, Callable[[], Baseline]]] = {
    "regression": {
        "constant": RunningMean,
        "persistence": Persistence,
        "linear": partial(OnlineLinear, standardize=True),
    },
    "classification": {"constant": MajorityClass, "persistence": LastLabel, "linear": OnlineLogistic},
}


class Scored(NamedTuple):
    """What became of the rows of a block, one entry per row."""

    row: NDArray[np.int64]
    """Its number, from 0."""
    target: NDArray[Any]
    prediction: NDArray[Any]
    """In units of the target; a label, or None where no label was known."""
    lower: Vector
    """The ends of the prediction interval; NaN where there is none."""
    upper: Vector
    loss: Vector
    """The squared error in units of the target, or 0/1 for a wrong label, whatever the learner minimises."""
    probability: Vector | None
    """Classification: that of the predicted label."""
    trace: Trace
    """Of the learner; of one that was delayed row by row only prediction, loss, kept and size."""
    baseline_losses: dict[str, Vector]


class _Baselines(Field):
    """By name; None before the first block, with which the board is made, too."""

    undoes = True

    def mark(self, part: Any, name: str) -> Any:
        return {key: baseline.mark() for key, baseline in getattr(part, name).items()}

    def restore(self, part: Any, name: str, mark: Any) -> None:
        for key, where in mark.items():
            getattr(part, name)[key].restore(where)

    def save(self, part: Any, name: str) -> Any:
        baselines = getattr(part, name)
        return None if part._board is None else {key: b.state() for key, b in baselines.items()}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if not stored.is_nothing(key):
            saved = stored.inner(key)
            part._begin([known for known in BASELINES[part.task] if known in saved])
            for known, baseline in part._baselines.items():
                baseline.load_state(saved.inner(known))
            saved.finish()
            return part._baselines
        stored.nothing(key)
        return {}


class _Pending(Field):
    """Rows of numbers that wait for their targets; None before the first, and at the end."""

    def save(self, part: Any, name: str) -> Any:
        rows = getattr(part, name)
        if rows is not None and not isinstance(rows, np.ndarray):
            raise ConfigurationError("an evaluation of delayed objects cannot be saved, only of numbers.")
        return None if rows is None else rows.copy()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        value = stored.take(key)
        rows = None if value is None else stored.checked(value, key, None, None)
        waiting = 0 if rows is None else len(rows)
        sizes["waiting"] = stored.counted(waiting, f"number of {key} rows", at_most=part.delay)
        return rows


class _PendingTargets(Field):
    """Numbers, or the codes of labels."""

    numbers, codes = Array("waiting"), Whole("waiting", below="classes")

    def save(self, part: Any, name: str) -> Any:
        return (self.codes if part._labelled else self.numbers).save(part, name)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        return (self.codes if part._labelled else self.numbers).load(stored, key, part, name, sizes)


class Prequential(Part):
    """The evaluation of a learner along a stream, block by block; it can be stopped and resumed.

    ::

        for block in stream:    scored = engine.advance(block)
        engine.finish();        engine.result()

    How the stream is cut into blocks changes nothing but rounding. Besides the learner a row costs one or
    two microseconds with ten features, and O(d^2) for the linear baseline; memory is constant. One that is
    made alike, with the learner as it was, goes on from a saved :meth:`state` bit for bit (:meth:`resume`).

    Parameters
    ----------
    learner:
        Any learner in the units of the stream: ``Scaled``, or one of your own with ``predict_one`` and
        ``learn_one``, of labels ``predict_proba_one`` besides (:mod:`kons.learners.protocol`). It is taught
        in place. One with a ``delay`` of its own is left to delay itself.
    task:
        ``"regression"`` or ``"classification"``.
    metrics:
        Names from :data:`kons.evaluation.METRICS`; all of the task by default.
    delay:
        How many rows later than usual a target becomes known.
    window:
        Windowed metrics are over the last so many rows.
    baselines:
        False leaves them out.
    intervals:
        The share of rows that prediction intervals should hold; None for no intervals.

    An error in a block leaves everything as it was, except that with a delay, or one of your own, the learner
    may have learned some of the rows before the bad one.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.evaluation import OnlineLinear, Prequential
    >>> from kons.streams import open_stream
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> engine = Prequential(OnlineLinear(), "regression", delay=3)
    >>> for block in open_stream((X, 3.0 + X @ [1.0, 2.0])):
    ...     scored = engine.advance(block)
    >>> engine.finish()
    >>> result = engine.result()
    >>> result.rows, bool(result.metrics["r2"] > 0.9)
    (1000, True)
    """

    STATE = fields(
        notes=Items("text", lambda note: type(note) is str),
        _labels=KnownLabels(),
        _intervals=Inner(),
        _baselines=_Baselines(),
        _board=Inner(),
        _pending=_Pending(),
        _pending_targets=_PendingTargets(),
        _finished=Flag(),
        _seconds=Number(at_least=0.0),
        _learner_seconds=Number(at_least=0.0),
    )

    def __init__(
        self,
        learner: Any,
        task: str,
        *,
        metrics: Iterable[str] | None = None,
        delay: int = 0,
        window: int = 1000,
        baselines: bool = True,
        intervals: float | None = 0.9,
    ) -> None:
        if task not in BASELINES:
            raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
        self.learner, self.task = learner, task
        self._learner = as_learner(learner)
        self.delay = require_integer(delay, "delay", at_least=0)
        self.window = require_integer(window, "window", at_least=1)
        self._labelled = task == "classification"
        own = self._learner.delay
        self._delays_itself = own is not None
        self._check_learner()
        if own is not None and own != self.delay:
            raise ConfigurationError(
                f"delay is {self.delay}, and the learner was made for delay={own!r}: give both the same."
            )
        self._metrics = make_metrics(task, metrics)
        self._intervals: ResidualIntervals | None = None
        if intervals is not None:
            level = ResidualIntervals(intervals, self.delay)
            self._intervals = None if self._labelled else level
        self.notes: list[str] = []
        self._wants_baselines = require_flag(baselines, "baselines")
        # What depends on the features is made when the first block comes.
        self._baselines: dict[str, Baseline] = {}
        self._board: Scoreboard | None = None
        self._labels = Labels()
        # Rows predicted whose targets are not known yet, and these targets (or codes).
        self._pending: Any = None
        self._pending_targets: NDArray[Any] = np.empty(0)
        self._finished = False
        self._seconds = self._learner_seconds = 0.0

    def _check_learner(self) -> None:
        by_rows = self.delay > 0 and not self._delays_itself
        verbs = ["advance", "predict_one", "learn_one"] if by_rows else ["advance"]
        if self._labelled:
            verbs += ["classes", "probabilities"] + (["predict_proba_one"] if by_rows else [])
        if missing := self._learner.lacks(*verbs):
            raise ConfigurationError(
                f"{self._learner.name} has no {', '.join(missing)}, needed for {self.task}"
                f"{' with a delay' if self.delay else ''}: "
                + ("use kons.recipes.for_task or kons.Classifier." if self._labelled else "use kons.Scaled.")
            )

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return 0 if self._board is None else self._board.rows

    @property
    def loss(self) -> float:
        """The mean loss over all rows so far: squared error, or share of wrong labels."""
        return math.nan if self._board is None else self._board.losses[0]

    # ---- a block

    def advance(self, block: Block | tuple[Any, Any]) -> Scored:
        """Predict the rows of a block (or of a pair X, y), score them, and learn what has become known."""
        started = wall_clock()
        if self._finished:
            raise ConfigurationError("this evaluation is finished: make a new one.")
        X, y = block[1:3] if isinstance(block, Block) else block
        if self._learner.accepts == "vectors":
            X = as_points(X)
        if len(y) != len(X) or len(X) == 0:
            raise InputError(f"the block has {len(X)} row(s) and {len(y)} target(s).")
        known = len(self._labels)
        if self._labelled:
            targets: NDArray[Any] = self._labels.learn(y)
            labels = y
        else:
            targets = labels = as_targets(y, len(X))
        learned, known_targets, lead = self._known_by(X, targets)
        clock = wall_clock()
        try:
            if self.delay == 0 or self._delays_itself:
                outcome = self._by_blocks(X, labels)
            else:
                outcome = self._row_by_row(X, targets, learned, known_targets, lead)
        except BaseException:
            self._labels.truncate(known)
            raise
        self._learner_seconds += wall_clock() - clock
        scored = self._score(X, y, targets, outcome, learned, known_targets, lead)
        self._keep_pending(X, targets)
        self._seconds += wall_clock() - started
        return scored

    def _known_by(self, X: Any, targets: NDArray[Any]) -> tuple[Any, NDArray[Any], int]:
        """The rows that become known during the block, and after which prediction the first of them does.

        None for the rows: each of the block's own when it was predicted.
        """
        if self.delay == 0:
            return None, targets, 0
        waiting = 0 if self._pending is None else len(self._pending)
        count = max(waiting + len(X) - self.delay, 0)
        if waiting == 0:
            return X[:count], targets[:count], self.delay
        learned = _joined(self._pending, X)[:count]
        return learned, np.concatenate([self._pending_targets, targets])[:count], self.delay - waiting

    def _keep_pending(self, X: Any, targets: NDArray[Any]) -> None:
        if self.delay == 0:
            return
        if self._pending is not None:
            X, targets = _joined(self._pending, X), np.concatenate([self._pending_targets, targets])
        cut = max(len(X) - self.delay, 0)
        self._pending, self._pending_targets = X[cut:], targets[cut:].copy()
        if isinstance(self._pending, np.ndarray):
            self._pending = self._pending.copy()

    def _by_blocks(self, X: Any, labels: Any) -> _Outcome:
        trace = self._learner.advance(X, labels)
        probabilities = None
        if self._labelled:
            probabilities = np.nan_to_num(self._learner.probabilities(trace["scores"]))
        return _Outcome(trace["prediction"], probabilities, trace["kept"], trace["size"], trace)

    def _row_by_row(
        self, X: Any, targets: NDArray[Any], learned: Any, known_targets: NDArray[Any], lead: int
    ) -> _Outcome:
        learner = self._learner
        answers: list[Any] = (
            self._labels.decode(known_targets).tolist() if self._labelled else known_targets.tolist()
        )
        predictions: list[Any] = []
        shares: list[dict[Any, float]] = []
        sizes: list[int] = [learner.size or 0]
        for i in range(len(X)):
            if self._labelled:
                shares.append(learner.predict_proba_one(X[i]))
                predictions.append(self._most_likely(X[i], shares[-1]))
            else:
                predictions.append(learner.predict_one(X[i]))
            if i >= lead:
                learner.learn_one(learned[i - lead], answers[i - lead])
            sizes.append(learner.size or 0)
        kept, size = np.diff(sizes) > 0, np.array(sizes[1:], dtype=np.int64)
        if not self._labelled:
            return _Outcome(np.array(predictions, dtype=np.float64), None, kept, size, None)
        classes = Labels(learner.classes)
        probabilities = np.zeros((len(X), len(classes)))
        for i, share in enumerate(shares):
            probabilities[i, classes.find(share)] = list(share.values())
        return _Outcome(object_array(predictions), probabilities, kept, size, None)

    def _most_likely(self, x: Any, shares: dict[Any, float]) -> Any:
        """What ``predict_one`` says: probabilities rise with scores, so only ties need to ask it."""
        most = max(shares.values(), default=0.0)
        best = [label for label, share in shares.items() if share == most]
        return best[0] if len(best) == 1 else self._learner.predict_one(x)

    # ---- scoring

    def _score(
        self,
        X: Any,
        y: Any,
        targets: NDArray[Any],
        outcome: _Outcome,
        learned: Any,
        known_targets: NDArray[Any],
        lead: int,
    ) -> Scored:
        count = len(targets)
        lower = upper = np.full(count, math.nan)
        probability = None
        if self._labelled:
            codes = self._labels.find(outcome.prediction)
            truth, score, probability = self._probabilities(targets, codes, outcome.probabilities)
            columns = [targets, codes, truth, score]
            loss = (codes != targets).astype(np.float64)
        else:
            prediction = np.asarray(outcome.prediction, dtype=np.float64)
            loss = (prediction - targets) ** 2
            inside = np.full(count, -1.0)
            if self._intervals is not None:
                lower, upper = self._intervals.advance(prediction, targets)
                inside = np.where(np.isnan(lower), -1.0, (lower <= targets) & (targets <= upper))
            columns = [targets, prediction, inside]
        board = self._board or self._begin(self._fitting_baselines(X))
        losses = self._play_baselines(X, targets, learned, known_targets, lead)
        table = np.stack([*columns, loss, *losses.values()]).astype(np.float64)
        board.record(table, outcome.size, self._labels.positive)
        trace = outcome.trace
        if trace is None:
            trace = Trace(kept=outcome.kept, size=outcome.size, prediction=outcome.prediction, loss=loss)
        rows = np.arange(board.rows - count, board.rows)
        return Scored(rows, y, outcome.prediction, lower, upper, loss, probability, trace, losses)

    def _probabilities(
        self, targets: NDArray[Any], codes: NDArray[Any], given: Matrix | None
    ) -> tuple[Vector, Vector, Vector]:
        """The probability of the label that came, of the label with code 1, and of the one predicted."""
        assert given is not None
        # Columns are in the learner's order of labels; one more, of zeros, for labels it does not know.
        table = np.column_stack([given, np.zeros(len(given))])
        places = Labels(self._learner.classes[: given.shape[1]]).find([*self._labels.known, None])
        rows = np.arange(len(table))
        second = places[1] if len(self._labels) > 1 else -1
        # Where no label was known all are alike: between the two.
        score = np.where(table.any(axis=1), table[:, second], 0.5)
        return table[rows, places[targets]], score, table[rows, places[codes]]

    def _play_baselines(
        self, X: Any, targets: NDArray[Any], learned: Any, known_targets: NDArray[Any], lead: int
    ) -> dict[str, Vector]:
        losses = {}
        for name, baseline in self._baselines.items():
            prediction = baseline.interleave(X, learned, known_targets, lead)
            if self._labelled:
                losses[name] = (prediction != targets).astype(np.float64)
            else:
                losses[name] = (prediction - targets) ** 2
        return losses

    def _begin(self, baselines: Sequence[str]) -> Scoreboard:
        """Make these baselines, and the board."""
        self._baselines = {name: BASELINES[self.task][name]() for name in baselines}
        self._board = Scoreboard(
            self._metrics,
            self.window,
            baselines,
            labelled=self._labelled,
            blind=self.delay + 1,
        )
        return self._board

    def _fitting_baselines(self, X: Any) -> list[str]:
        names = [*BASELINES[self.task]] if self._wants_baselines else []
        width = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else None
        if names and (width is None or width > MOST_FEATURES):
            names.remove("linear")
            self.notes.append(
                "no linear baseline: the inputs are no rows of numbers."
                if width is None
                else "no linear baseline: its cost grows as the square of the features, and "
                f"{width:,} are more than {MOST_FEATURES}."
            )
        return names

    # ---- the end, and on from the middle

    def finish(self) -> None:
        """The stream has ended: with a delay, the learner learns the rows whose targets came too late."""
        if self._finished:
            return
        if self.rows and self._learner.warming_up:
            self.notes.append(
                f"the learner has learned nothing yet: its warm-up is longer than these {self.rows:,} rows. "
                "Set a shorter warmup (kons.Scaled, kons.recipes.for_task)."
            )
        if self._pending is not None and len(self._pending) and not self._delays_itself:
            targets = self._pending_targets
            self._learner.advance(self._pending, self._labels.decode(targets) if self._labelled else targets)
        self._pending, self._pending_targets = None, np.empty(0)
        self._finished = True

    def result(self) -> Evaluation:
        """What is known so far."""
        board = self._board
        if board is None:
            raise InputError("no row was evaluated yet.")
        rows, curves = board.curves()
        losses, informed = board.losses, board.informed_losses
        notes = list(self.notes)
        share = 1.0 - informed[0] * (board.rows - board.blind) / (losses[0] * board.rows or 1.0)
        if not self._labelled and share > LARGE_SHARE:
            what, verb = ("row", "makes") if board.blind == 1 else (f"{board.blind:,} rows", "make")
            notes.append(
                f"the first {what}, predicted before any target was known, {verb} up {share:.1%} of the "
                f"loss: without, it is {informed[0]:.4g}. See `informed`, or the windowed metrics."
            )
        return Evaluation(
            rows=board.rows,
            task=self.task,
            learner=self.learner,
            loss=losses[0],
            metrics={metric.name: metric.value for metric in board.metrics},
            baselines=dict(zip(board.baselines, losses[1:], strict=True)),
            informed=dict(zip(("learner", *board.baselines), informed, strict=True)),
            checkpoints=rows,
            curves=curves,
            coverage=None if self._intervals is None else self._intervals.coverage,
            level=None if self._intervals is None else self._intervals.level,
            atoms=int(curves["atoms"][-1]),
            delay=self.delay,
            window=self.window,
            seconds=self._seconds,
            learner_seconds=self._learner_seconds,
            classes=list(self._labels.known) if self._labelled else None,
            notes=notes,
        )


class _Outcome(NamedTuple):
    """What the learner said of a block."""

    prediction: NDArray[Any]
    probabilities: Matrix | None
    kept: NDArray[np.bool_]
    size: NDArray[np.int64]
    trace: Trace | None


def _joined(first: Any, second: Any) -> Any:
    """Rows after rows: arrays, or sequences of objects."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.concatenate([first, second])
    return [*first, *second]
