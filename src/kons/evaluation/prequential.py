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
from kons.core.storage import copied
from kons.errors import ConfigurationError, InputError
from kons.evaluation.away import AwayFromStream, sampled_figures
from kons.evaluation.baselines import Baseline, LastLabel, MajorityClass, Persistence, RunningMean
from kons.evaluation.class_weights import BalancedWeights
from kons.evaluation.intervals import ResidualIntervals
from kons.evaluation.linear import OnlineLinear
from kons.evaluation.logistic import OnlineLogistic
from kons.evaluation.metrics import make_metrics
from kons.evaluation.order import TargetOrder
from kons.evaluation.result import Evaluation
from kons.evaluation.sample import StratifiedSample
from kons.evaluation.scoreboard import Scoreboard
from kons.learners import Trace
from kons.learners.labels import KnownLabels, Labels, object_array
from kons.learners.protocol import as_learner
from kons.learners.queue import Kept, Queue
from kons.state import Field, Flag, Inner, Items, Number, Part, Sizes, fields
from kons.stored import Stored
from kons.streams import Block

__all__ = ["Prequential", "Scored"]

# The linear baselines keep a matrix of this width squared.
MOST_FEATURES = 300
# Rows from all over the stream that are kept.
SAMPLED = 512

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
    scored: NDArray[np.bool_]
    """Whether the row is in the figures: not if it came before any target was known."""
    probabilities: Matrix | None = None
    """Classification: of each label, in the learner's order of ``classes``, as far as they were known."""


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
        _baselines=_Baselines(),
        _board=Inner(),
        _late=Inner(),
        _away=Inner(),
        _order=Inner(),
        _sample=Inner(),
        _weights=Inner(),
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
        positive: str | None = None,
        class_weight: str | None = None,
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
        self.positive = positive
        self._weights = None if class_weight is None else self._balanced(class_weight)
        names = [metric.name for metric in self._metrics]
        looks_back = self._learner.looks_back and own is not None
        self._away = AwayFromStream(task, names, positive) if looks_back else None
        self._order = TargetOrder(labelled=self._labelled)
        # Rows from all over the stream: if it is sorted, only these say what the learner is worth elsewhere.
        self._sample = StratifiedSample(SAMPLED)
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
        # Rows predicted whose targets (or codes) are not known yet, by their number.
        self._late: Queue = self._learner.new_queue()
        self._late.most = self.delay + 1
        self._finished = False
        self._seconds = self._learner_seconds = 0.0

    def _balanced(self, class_weight: str) -> BalancedWeights:
        if class_weight != "balanced":
            raise ConfigurationError(f'class_weight is {class_weight!r}, expected None or "balanced".')
        if not self._labelled or (self.delay and not self._delays_itself):
            why = "is for labels" if not self._labelled else "is not for this learner with a delay"
            raise ConfigurationError(f'class_weight="balanced" {why}: leave it out.')
        return BalancedWeights()

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
    def target_order(self) -> TargetOrder:
        """What the targets look like in their order."""
        return self._order

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
        known, waiting = len(self._labels), self._late.mark()
        weights = None if self._weights is None else self._weights.mark()
        if self._labelled:
            targets: NDArray[Any] = self._labels.learn(y)
            labels = y
        else:
            targets = labels = as_targets(y, len(X))
        clock = wall_clock()
        try:
            if self.delay == 0 or self._delays_itself:
                outcome = self._by_blocks(X, labels, targets)
                known_rows = None if self.delay == 0 else self._wait(X, targets)
            else:
                outcome, known_rows = self._row_by_row(X, targets)
        except BaseException:
            self._labels.truncate(known)
            self._late.restore(waiting)
            if self._weights is not None:
                self._weights.restore(weights)
            raise
        asking = 0.0 if self._away is None else self._away.seconds
        self._learner_seconds += wall_clock() - clock - asking
        scored = self._score(X, y, targets, outcome, known_rows)
        self._seconds += wall_clock() - started
        return scored

    def _by_blocks(self, X: Any, labels: Any, targets: NDArray[Any]) -> _Outcome:
        options = {} if self._weights is None else {"sample_weight": self._weights.follow(targets)}
        if self._away is None:
            trace = self._learner.advance(X, labels, **options)
        else:
            trace = self._away.advance(self._learner, X, labels, self.rows, **options)
        probabilities = None
        if self._labelled:
            probabilities = np.nan_to_num(self._learner.probabilities(trace["scores"]))
        return _Outcome(trace["prediction"], probabilities, trace["kept"], trace["size"], trace)

    def _row_by_row(self, X: Any, targets: NDArray[Any]) -> tuple[_Outcome, _Known]:
        """Each row is predicted, and waits; then the one whose target is known by that is learned."""
        learner, late, delay = self._learner, self._late, self.delay
        known, learn = _Known(delay - len(late)), self._learn
        predictions: list[Any] = []
        shares: list[dict[Any, float]] = []
        sizes: list[int] = [learner.size or 0]
        for row, (x, target) in enumerate(zip(X, _each(targets), strict=True), start=self.rows):
            if self._labelled:
                shares.append(learner.predict_proba_one(x))
                predictions.append(self._most_likely(x, shares[-1]))
            else:
                predictions.append(learner.predict_one(x))
            late.put(row, learner.row_to_keep(x), target)
            if len(late) > delay:
                known.rows.append(late.take_oldest())
                learn(*known.rows[-1])
            sizes.append(learner.size or 0)
        kept, size = np.diff(sizes) > 0, np.array(sizes[1:], dtype=np.int64)
        if not self._labelled:
            return _Outcome(np.array(predictions, dtype=np.float64), None, kept, size, None), known
        classes = Labels(learner.classes)
        probabilities = np.zeros((len(X), len(classes)))
        for i, share in enumerate(shares):
            probabilities[i, classes.find(share)] = list(share.values())
        return _Outcome(object_array(predictions), probabilities, kept, size, None), known

    def _wait(self, X: Any, targets: NDArray[Any]) -> _Known:
        """The rows that become known, of a learner that keeps targets back by itself: for the baselines."""
        known = _Known(self.delay - len(self._late))
        for row, (x, target) in enumerate(zip(copied(X), _each(targets), strict=True), start=self.rows):
            self._late.put(row, (x,), target)
            if len(self._late) > self.delay:
                known.rows.append(self._late.take_oldest())
        return known

    def _learn(self, kept: Kept, target: Any) -> None:
        self._learner.learn_kept_row(kept, self._labels.known[target] if self._labelled else target)

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
        known: _Known | None,
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
        losses = self._play_baselines(X, targets, known)
        table = np.stack([*columns, loss, *losses.values()]).astype(np.float64)
        board.record(table, outcome.size, self._asked_positive)
        self._order.follow(targets)
        if isinstance(X, np.ndarray) and X.ndim == 2:
            self._sample.follow(count, lambda at: np.column_stack([X[at], targets[at]]))
        trace = outcome.trace
        if trace is None:
            trace = Trace(kept=outcome.kept, size=outcome.size, prediction=outcome.prediction, loss=loss)
        rows = np.arange(board.rows - count, board.rows)
        told = (rows, y, outcome.prediction, lower, upper, loss, probability, trace, losses)
        return Scored(*told, rows >= board.blind, outcome.probabilities)

    @property
    def _asked_positive(self) -> int | None:
        """The code of the label that was asked for, among the first two."""
        texts = [str(label) for label in self._labels.known[:2]]
        return texts.index(self.positive) if self.positive in texts else None

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

    def _play_baselines(self, X: Any, targets: NDArray[Any], known: _Known | None) -> dict[str, Vector]:
        if not self._baselines:
            return {}
        late = (None, targets, 0) if known is None else known.columns(X, targets)
        losses = {}
        for name, baseline in self._baselines.items():
            prediction = baseline.interleave(X, *late)
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

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        rows, codes = [self._late.find(row) for row in self._late.ids], range(len(self._labels))
        shapes = self._learner.kept_shapes()
        self._late.require_shapes(shapes[:1] if self._delays_itself else shapes, stored)
        kinds = (float, np.ndarray)
        fits = all(target in codes if self._labelled else type(target) in kinds for _, target in rows)
        if not fits or self._late.ids != list(range(self.rows - len(rows), self.rows)[-self.delay :]):
            raise stored.error(f"its rows that wait are none of the last {self.delay}")

    def finish(self) -> None:
        """The stream has ended: with a delay, the learner learns the rows whose targets came too late."""
        if self._finished:
            return
        if self.rows and self._learner.warming_up:
            self.notes.append(
                f"the learner has learned nothing yet: its warm-up is longer than these {self.rows:,} rows. "
                "Set a shorter warmup (kons.Scaled, kons.recipes.for_task)."
            )
        while len(self._late):
            row = self._late.take_oldest()
            if not self._delays_itself:
                self._learn(*row)
        self._finished = True

    def result(self) -> Evaluation:
        """What is known so far."""
        board = self._board
        if board is None:
            raise InputError("no row was evaluated yet.")
        rows, curves = board.curves()
        losses, order = board.losses, self._order.found
        away = None if self._away is None else self._away.figures
        if order is not None and len(self._sample.kept) and not self._learner.lacks("predict"):
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
            positive=self._labels.known[board.positive] if len(self._labels) == 2 else None,
            away=None if away is None or not away.rows else away.figures(),
            away_rows=0 if away is None else away.rows,
            order=order,
            notes=notes,
        )


class _Outcome(NamedTuple):
    """What the learner said of a block."""

    prediction: NDArray[Any]
    probabilities: Matrix | None
    kept: NDArray[np.bool_]
    size: NDArray[np.int64]
    trace: Trace | None


class _Known:
    """Rows whose targets became known in a block: row j after the prediction of row ``lead`` + j."""

    def __init__(self, lead: int) -> None:
        self.lead = lead
        self.rows: list[tuple[Kept, Any]] = []

    def columns(self, X: Any, targets: NDArray[Any]) -> tuple[Any, NDArray[Any], int]:
        """Points, targets and lead, as :meth:`~kons.evaluation.baselines.Baseline.interleave` takes them."""
        learned: Any = [kept[0] for kept, _ in self.rows]
        if isinstance(X, np.ndarray):
            learned = np.array(learned) if learned else X[:0]
        known = np.array([target for _, target in self.rows], dtype=targets.dtype)
        return learned, known.reshape(-1, *targets.shape[1:]), self.lead


def _each(targets: NDArray[Any]) -> list[Any]:
    """Targets one by one: numbers, codes, or rows of several numbers."""
    return targets.tolist() if targets.ndim == 1 else [row.copy() for row in targets]
