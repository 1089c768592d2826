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
from collections.abc import Iterable
from typing import Any, NamedTuple, Self

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
from kons.learners.labels import Labels, object_array, stored_labels
from kons.stored import Stored
from kons.streams import Block

__all__ = ["Prequential", "Scored"]

# The linear baselines keep a matrix of this width squared.
MOST_FEATURES = 300
# Where rows that nobody could have predicted make up more of the loss than this, it is said.
LARGE_SHARE = 0.1

BASELINES: dict[str, dict[str, type[Baseline]]] = {
    "regression": {"constant": RunningMean, "persistence": Persistence, "linear": OnlineLinear},
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


class Prequential:
    """The evaluation of a learner along a stream, block by block; it can be stopped and resumed.

    ::

        for block in stream:    scored = engine.advance(block)
        engine.finish();        engine.result()

    How the stream is cut into blocks changes nothing but rounding. Besides the learner a row costs one or
    two microseconds with ten features, and O(d^2) for the linear baseline; memory is constant.

    Parameters
    ----------
    learner:
        Anything with ``advance``, ``predict_one``, ``learn_one`` in the units of the stream (``Scaled``, or
        an adapter of your own; classifiers ``classes``, ``predict_proba_one`` and ``probabilities`` besides).
        It is taught in place. One with a ``delay`` of its own is left to delay itself.
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

    An error in a block leaves everything as it was, except that with a delay the learner may have learned
    some of the rows before the bad one.

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
        self.delay = require_integer(delay, "delay", at_least=0)
        self.window = require_integer(window, "window", at_least=1)
        self._labelled = task == "classification"
        self._check_learner()
        own = getattr(learner, "delay", None)
        if own is not None and own != self.delay:
            raise ConfigurationError(
                f"delay is {self.delay}, and the learner was made for delay={own!r}: give both the same."
            )
        self._delays_itself = own is not None
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
        verbs = ["advance"] if self.delay == 0 else ["advance", "predict_one", "learn_one"]
        if self._labelled:
            verbs += ["classes", "probabilities"] + (["predict_proba_one"] if self.delay else [])
        missing = [verb for verb in verbs if not hasattr(self.learner, verb)]
        if missing:
            raise ConfigurationError(
                f"{type(self.learner).__name__} has no {', '.join(missing)}, needed for {self.task}"
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
        if getattr(getattr(self.learner, "kernel", None), "accepts", "vectors") == "vectors":
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
        """The rows that become known during the block, and after which prediction the first of them does."""
        if self.delay == 0:
            return X, targets, 0
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
        trace = self.learner.advance(X, labels)
        probabilities = None
        if self._labelled:
            probabilities = np.nan_to_num(self.learner.probabilities(trace["scores"]))
        return _Outcome(trace["prediction"], probabilities, trace["kept"], trace["size"], trace)

    def _row_by_row(
        self, X: Any, targets: NDArray[Any], learned: Any, known_targets: NDArray[Any], lead: int
    ) -> _Outcome:
        learner = self.learner
        answers: list[Any] = (
            self._labels.decode(known_targets).tolist() if self._labelled else known_targets.tolist()
        )
        predictions: list[Any] = []
        shares: list[dict[Any, float]] = []
        sizes: list[int] = [getattr(learner, "size", 0)]
        for i in range(len(X)):
            if self._labelled:
                shares.append(learner.predict_proba_one(X[i]))
                predictions.append(self._most_likely(X[i], shares[-1]))
            else:
                predictions.append(learner.predict_one(X[i]))
            if i >= lead:
                learner.learn_one(learned[i - lead], answers[i - lead])
            sizes.append(getattr(learner, "size", 0))
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
        return best[0] if len(best) == 1 else self.learner.predict_one(x)

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
        board = self._board or self._begin(X)
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
        places = Labels(self.learner.classes[: given.shape[1]]).find([*self._labels.known, None])
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
            # The very same array twice tells a linear baseline that a row is predicted, then learned.
            prediction = baseline.interleave(X, X if self.delay == 0 else learned, known_targets, lead)
            if self._labelled:
                losses[name] = (prediction != targets).astype(np.float64)
            else:
                losses[name] = (prediction - targets) ** 2
        return losses

    def _begin(self, X: Any) -> Scoreboard:
        """The baselines that fit the features, and the board."""
        if self._wants_baselines:
            self._make_baselines(X)
        self._board = Scoreboard(
            self._metrics,
            self.window,
            [*self._baselines],
            labelled=self._labelled,
            blind=self.delay + 1,
        )
        return self._board

    def _make_baselines(self, X: Any) -> None:
        width = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else None
        for name, make in BASELINES[self.task].items():
            if name != "linear":
                self._baselines[name] = make()
            elif width is None:
                self.notes.append("no linear baseline: the inputs are no rows of numbers.")
            elif width > MOST_FEATURES:
                self.notes.append(
                    f"no linear baseline: its cost grows as the square of the features, and {width:,} are "
                    f"more than {MOST_FEATURES}."
                )
            else:
                self._baselines[name] = OnlineLogistic() if self._labelled else OnlineLinear(standardize=True)

    # ---- the end, and on from the middle

    def finish(self) -> None:
        """The stream has ended: with a delay, the learner learns the rows whose targets came too late."""
        if self._finished:
            return
        if self.rows and getattr(self.learner, "warming_up", False):
            self.notes.append(
                f"the learner has learned nothing yet: its warm-up is longer than these {self.rows:,} rows. "
                "Set a shorter warmup (kons.Scaled, kons.recipes.for_task)."
            )
        if self._pending is not None and len(self._pending) and not self._delays_itself:
            targets = self._pending_targets
            self.learner.advance(self._pending, self._labels.decode(targets) if self._labelled else targets)
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

    def state(self) -> dict[str, Any]:
        """Everything the next block depends on, but the learner, which is saved by itself. A copy."""
        pending = self._pending
        if pending is not None and not isinstance(pending, np.ndarray):
            raise ConfigurationError("an evaluation of delayed objects cannot be saved, only of numbers.")
        return {
            "task": self.task,
            "metrics": [metric.name for metric in self._metrics],
            "delay": self.delay,
            "window": self.window,
            "wants_baselines": self._wants_baselines,
            "intervals": None if self._intervals is None else self._intervals.state(),
            "notes": list(self.notes),
            "baselines": {name: baseline.state() for name, baseline in self._baselines.items()},
            "board": None if self._board is None else self._board.state(),
            "labels": list(self._labels.known),
            "pending": None if pending is None else pending.copy(),
            "pending_targets": self._pending_targets.astype(np.float64),
            "finished": self._finished,
            "seconds": self._seconds,
            "learner_seconds": self._learner_seconds,
        }

    @classmethod
    def from_state(cls, learner: Any, state: dict[str, Any]) -> Self:
        """The evaluation whose :meth:`state` this is, of the learner as it was then: goes on bit for bit."""
        stored = Stored(state, cls.__name__)
        task = stored.word("task", *BASELINES)
        engine = cls(
            learner,
            task,
            metrics=stored.items("metrics"),
            delay=stored.integer("delay"),
            window=stored.integer("window", at_least=1),
            baselines=stored.flag("wants_baselines"),
            intervals=None,
        )
        intervals, board = stored.take("intervals"), stored.take("board")
        engine._intervals = None if intervals is None else ResidualIntervals.from_state(intervals)
        engine.notes = stored.items("notes")
        engine._board = None if board is None else Scoreboard.from_state(board)
        kinds = BASELINES[task]
        inner = stored.take("baselines")
        if not isinstance(inner, dict) or not inner.keys() <= kinds.keys():
            raise stored.error(f"baselines are {inner!r}, expected some of {', '.join(kinds)}")
        engine._baselines = {name: kinds[name].from_state(inner[name]) for name in inner}
        if engine._board is not None:
            engine._metrics = engine._board.metrics
            if engine._board.baselines != list(inner) or engine._board.labelled != engine._labelled:
                raise stored.error("its board is of another evaluation")
        engine._labels = Labels(stored_labels(stored, "labels"))
        pending = stored.take("pending")
        engine._pending = None if pending is None else stored.checked(pending, "pending", None, None)
        waiting = 0 if pending is None else len(pending)
        targets = stored.array("pending_targets", waiting)
        engine._pending_targets = targets.astype(np.int64) if engine._labelled else targets
        engine._finished = stored.flag("finished")
        engine._seconds = stored.number("seconds", at_least=0.0)
        engine._learner_seconds = stored.number("learner_seconds", at_least=0.0)
        stored.finish()
        return engine


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
