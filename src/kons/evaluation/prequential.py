"""Test, then train: each row is predicted with what is known when it comes, scored, and learned later.

With a delay of k rows, the target of row s becomes known after row s + k was predicted; so

    row t is predicted by a learner that has learned rows 0 .. t-1-k, and nothing else,

and so are the baselines and the intervals (:mod:`kons.evaluation.delay`). With k = 0 this is the usual
progressive evaluation, at the speed of the learner's blocks. With k > 0 what is known differs from row to
row, so that rows are predicted and learned one by one; but a learner that keeps targets back by itself (one
with a ``delay``, such as :class:`kons.AutoKONS`) is handed blocks with their targets all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_points, as_targets, require_delay, require_flag, require_integer
from kons.compilation import cpu_clock, wall_clock
from kons.errors import ConfigurationError, InputError
from kons.evaluation.away import AwayFromStream, sampled_figures
from kons.evaluation.beside import BASELINES, Beside
from kons.evaluation.class_weights import BalancedWeights
from kons.evaluation.delay import Delayed, Known
from kons.evaluation.held_out import by_code, code_of_text
from kons.evaluation.intervals import ResidualIntervals
from kons.evaluation.metrics import make_metrics
from kons.evaluation.order import TargetOrder
from kons.evaluation.result import Evaluation
from kons.evaluation.sample import StratifiedSample
from kons.evaluation.scoreboard import Scoreboard
from kons.learners import Trace
from kons.learners.labels import KnownLabels, Labels
from kons.learners.learner import Interleaved, Learner
from kons.learners.protocol import as_learner
from kons.state import Flag, Inner, Items, Number, Part, Sizes, fields
from kons.stored import Stored
from kons.streams import Block

__all__ = ["Prequential", "Scored"]

# Rows from all over the stream that are kept.
SAMPLED = 512


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
    scored: NDArray[np.bool_]
    """Whether the row is in the figures: not if it came before any target was known."""
    probabilities: Matrix | None = None
    """Classification: of each label, in the learner's order of ``classes``, as far as they were known."""


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
    positive:
        Two labels: the one, as text, that F1, precision, recall and average precision are about; by default
        the rarer one.
    class_weight:
        ``"balanced"``: rows of rare labels count more,
        :class:`kons.evaluation.class_weights.BalancedWeights`.
    pauses:
        Rows one by one, by ``predict_one`` and ``learn_one``: the result then has the longest of these steps,
        and no figure without last targets. Takes 1.2 to 15 times as long as blocks (``auto`` 1.4, exact 10).

    The first rows, predicted before any target was known (one, and as many more as targets are late), are
    in no figure. Of a learner that looks back some rows are also predicted without last targets
    (:mod:`kons.evaluation.away`); only this figure depends a little on how the stream is cut into blocks.
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
        _beside=Inner(),
        _board=Inner(make=lambda engine: engine._new_board()),
        _late=Inner(),
        _away=Inner(),
        target_order=Inner(),
        _sample=Inner(),
        _weights=Inner(),
        _finished=Flag(),
        _seconds=Number(at_least=0.0),
        _learner_seconds=Number(at_least=0.0),
        _pause_seconds=Number(at_least=0.0),
    )
    learner: Learner
    task: str

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
        positive: str | None = None,
        class_weight: str | None = None,
        pauses: bool = False,
    ) -> None:
        if task not in BASELINES:
            raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
        self.learner, self.task = learner, task
        self._learner = as_learner(learner)
        self.delay: int = require_delay(delay)
        self.window: int = require_integer(window, "window", at_least=1)
        self._labelled = task == "classification"
        own = self._learner.delay
        one_by_one = require_flag(pauses, "pauses")
        self._check_learner(by_rows=one_by_one or (self.delay > 0 and own is None))
        if own is not None and own != self.delay:
            raise ConfigurationError(
                f"delay is {self.delay}, and the learner was made for delay={own!r}: give both the same."
            )
        self._metrics = make_metrics(task, metrics)
        self.positive = positive
        self._weights = None if class_weight is None else self._balanced(class_weight, one_by_one)
        names = [metric.name for metric in self._metrics]
        looks_back = self._learner.looks_back and own is not None and not one_by_one
        self._away = AwayFromStream(task, names, positive) if looks_back else None
        self.target_order: TargetOrder = TargetOrder(labelled=self._labelled)
        # Rows from all over the stream: if it is sorted, only these say what the learner is worth elsewhere.
        self._sample = StratifiedSample(SAMPLED)
        self._intervals: ResidualIntervals | None = None
        if intervals is not None:
            level = ResidualIntervals(intervals)
            self._intervals = None if self._labelled else level
        self.notes: list[str] = []
        self._beside = Beside(task, require_flag(baselines, "baselines"))
        # It counts the losses of baselines, and which there are depends on the features of the first block.
        self._board: Scoreboard | None = None
        self._labels = Labels()
        self._late = Delayed(self._learner, self.delay, one_by_one=one_by_one)
        self._finished = False
        self._seconds = self._learner_seconds = 0.0
        # Of the longest step; 0 as long as none was timed.
        self._pause_seconds = 0.0

    def _balanced(self, class_weight: str, one_by_one: bool) -> BalancedWeights:
        if class_weight != "balanced":
            raise ConfigurationError(f'class_weight is {class_weight!r}, expected None or "balanced".')
        if one_by_one:
            raise ConfigurationError('class_weight="balanced" is not for rows one by one: leave pauses out.')
        if not self._labelled or (self.delay and self._learner.delay is None):
            why = "is for labels" if not self._labelled else "is not for this learner with a delay"
            raise ConfigurationError(f'class_weight="balanced" {why}: leave it out.')
        return BalancedWeights()

    def _check_learner(self, by_rows: bool) -> None:
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
    def learner_seconds(self) -> float:
        """CPU seconds of the learner so far."""
        return self._learner_seconds

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
        if isinstance(block, Block) and block.encoder is not None and self._learner.encoder is None:
            self._learner.take_encoder(block.encoder)
        if len(y) != len(X) or len(X) == 0:
            raise InputError(f"the block has {len(X)} row(s) and {len(y)} target(s).")
        known = len(self._labels)
        weights = None if self._weights is None else self._weights.mark()
        targets: NDArray[Any] = self._labels.learn(y) if self._labelled else as_targets(y, len(X))
        clock = cpu_clock()
        try:
            found, told = self._late.play(X, targets, self.rows, self._names, self._advancing(targets))
        except BaseException:
            self._labels.truncate(known)
            if self._weights is not None:
                self._weights.restore(weights)
            raise
        asking = 0.0 if self._away is None else self._away.seconds
        self._learner_seconds += cpu_clock() - clock - asking
        self._pause_seconds = max(self._pause_seconds, found.pause or 0.0)
        scored = self.score(X, y, targets, found, told)
        if isinstance(block, Block) and block.growth is not None:
            self._learner.grow(block.growth)
            self._late.queue.widen(block.growth.earlier)
            self.widen(block.growth.earlier)
        self._seconds += wall_clock() - started
        return scored

    def widen(self, earlier: Vector) -> None:
        """Rows have features more from now on, which had these values before: of what is kept here."""
        self._sample.widen(earlier)

    def _advancing(self, targets: NDArray[Any]) -> Callable[[Any, Any], Trace] | None:
        """How rows that are learned as they come are, where more is asked of them than to advance."""
        if self._away is None and self._weights is None:
            return None
        options = {} if self._weights is None else {"sample_weight": self._weights.follow(targets)}
        learner, away = self._learner, self._away
        if away is None:
            return lambda X, labels: learner.advance(X, labels, **options)
        return lambda X, labels: away.advance(learner, X, labels, self.rows, **options)

    @property
    def _names(self) -> Callable[[Any], Any] | None:
        """The labels of codes."""
        return self._labels.decode if self._labelled else None

    # ---- scoring

    def score(self, X: Any, y: Any, targets: NDArray[Any], found: Interleaved, known: Known) -> Scored:
        """Count in what was said of rows; ``targets`` are those of ``y``, or the codes of its labels."""
        count, trace = len(targets), found.trace
        lower = upper = np.full(count, math.nan)
        probability = None
        if self._labelled:
            codes = self._labels.find(trace["prediction"])
            truth, score, probability = self._probabilities(targets, codes, found)
            columns = [targets, codes, truth, score]
            loss = (codes != targets).astype(np.float64)
        else:
            prediction = np.asarray(trace["prediction"], dtype=np.float64)
            loss = (prediction - targets) ** 2
            inside = np.full(count, -1.0)
            if self._intervals is not None:
                count_known = len(known.targets)
                lower, upper = self._intervals.advance(
                    prediction, targets, known.before, count_known, trace.scale
                )
                inside = np.where(np.isnan(lower), -1.0, (lower <= targets) & (targets <= upper))
            columns = [targets, prediction, inside]
        if self._board is None:
            note = self._beside.begin(X)
            self.notes += [note] if note else []
            self._board = self._new_board()
            assert self._board is not None
        board, (losses, scores) = self._board, self._beside.play(X, targets, known)
        table = np.stack([*columns, loss, *losses.values()]).astype(np.float64)
        board.record(table, trace.size, self._asked_positive, list(scores.values()))
        self.target_order.follow(targets)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            self._sample.follow(count, lambda at: np.column_stack([targets[at], X[at]]))
        if trace.loss is None:
            trace = replace(trace, loss=loss)
        rows = np.arange(board.rows - count, board.rows)
        told = (rows, y, trace["prediction"], lower, upper, loss, probability, trace, losses)
        return Scored(*told, rows >= board.blind, found.probabilities)

    @property
    def _asked_positive(self) -> int | None:
        """The code of the label that was asked for, among the first two."""
        return code_of_text(self.positive, self._labels)

    def _probabilities(
        self, targets: NDArray[Any], codes: NDArray[Any], found: Interleaved
    ) -> tuple[Vector, Vector, Vector]:
        """The probability of the label that came, of the label with code 1, and of the one predicted."""
        given = found.probabilities
        assert given is not None
        table, rows = by_code(given, self._learner.classes, self._labels), np.arange(len(given))
        # Where no label was known all are alike: between the two.
        score = np.where(given.any(axis=1), table[:, 1], 0.5)
        return table[rows, targets], score, table[rows, codes]

    def _new_board(self) -> Scoreboard | None:
        """None before the first block, which tells what baselines there are."""
        if not self._beside.begun:
            return None
        names, blind = self._beside.names, self.delay + 1
        return Scoreboard(self._metrics, self.window, names, labelled=self._labelled, blind=blind)

    # ---- the end, and on from the middle

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        codes, numbers = range(len(self._labels)), (float, np.ndarray)
        self._late.require_rows(
            self.rows, lambda value: value in codes if self._labelled else type(value) in numbers, stored
        )

    def finish(self) -> None:
        """The stream has ended: with a delay, the learner learns the rows whose targets came too late."""
        if self._finished:
            return
        if self.rows and self._learner.warming_up:
            self.notes.append(
                f"the learner has learned nothing yet: its warm-up is longer than these {self.rows:,} rows. "
                "Set a shorter warmup (kons.Scaled, kons.recipes.for_task)."
            )
        self._late.finish(self._names)
        self._finished = True

    def result(self) -> Evaluation:
        """What is known so far."""
        board = self._board
        if board is None:
            raise InputError("no row was evaluated yet.")
        rows, curves = board.curves()
        losses, order = board.losses, self.target_order.found
        away = None if self._away is None else self._away.figures
        one = not self._learner.outputs and not self._learner.lacks("predict")
        if order is not None and len(self._sample.kept) and one:
            away = sampled_figures(self._learner, self._sample.kept, self._labels, self.task, self.positive)
        notes = list(self.notes)
        if self.positive is not None and self._asked_positive is None:
            notes.append(f"positive is {self.positive!r}, and no such label was among the first two.")
        return Evaluation(
            rows=board.rows,
            task=self.task,
            learner=self.learner,
            loss=losses[0],
            metrics={metric.name: metric.value for metric in board.metrics},
            baselines=dict(zip(board.baselines, losses[1:], strict=True)),
            baseline_metrics=board.baseline_metrics,
            last_quarter=board.last_quarter,
            checkpoints=rows,
            curves=curves,
            coverage=None if self._intervals is None else self._intervals.coverage,
            level=None if self._intervals is None else self._intervals.level,
            atoms=int(curves["atoms"][-1]),
            delay=self.delay,
            window=self.window,
            seconds=self._seconds,
            learner_seconds=self._learner_seconds,
            longest_pause=self._pause_seconds or None,
            classes=list(self._labels.known) if self._labelled else None,
            positive=self._labels.known[board.positive] if len(self._labels) == 2 else None,
            away=None if away is None or not away.rows else away.figures(),
            away_rows=0 if away is None else away.rows,
            order=order,
            notes=notes,
        )
