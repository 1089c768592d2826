"""AutoKONS: raw columns and targets in, predictions out; everything else is chosen as rows come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Matrix,
    Vector,
    as_points,
    as_row_values,
    require_delay,
    require_flag,
    require_integer,
    require_scale,
)
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError, InputError, TargetError
from kons.kernels import Gaussian, Kernel
from kons.learners.auto.doubts import SIZES
from kons.learners.auto.effort import Settings, effort_of
from kons.learners.auto.ensemble import Outcome
from kons.learners.auto.feature_map import Fixed
from kons.learners.auto.following import Following
from kons.learners.auto.rows import LAGS, LARGEST_TARGET, LARGEST_WEIGHT
from kons.learners.auto.stream_rows import StreamRows
from kons.learners.labels import KnownLabels, Labels, as_label, as_labels
from kons.learners.queue import Kept, Shapes
from kons.learners.scores import best_of, probabilities_of
from kons.learners.stream import Outputs, StreamConsumer
from kons.learners.trace import Trace
from kons.losses import Logistic
from kons.scaling import RobustScaling
from kons.state import Array, Inner, Sizes, fields
from kons.stored import Stored

__all__ = ["AutoKONS"]

# Of a column: sums stay finite numbers.
LARGEST_SUM = 1e300


class _OfTargets(Inner):
    """Of as many targets as was loaded before; in a list, for once there was one of each."""

    def save(self, part: Any, name: str) -> Any:
        return [super().save(part, name)]

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        count, saved = part.outputs or 1, stored.items(key)
        if len(saved) == count > 1:
            raise stored.error(
                "it is of an earlier version, which had a model of its own for each of several targets: "
                "learn its rows again"
            )
        if len(saved) != 1:
            raise stored.error(f"{key} has {len(saved)} entries, expected 1")
        # Refused before as many are made.
        Stored(saved[0], "AutoKONS").inner("drift").inner("current").array("bounds", 2 * count)
        rows = part._targets if count == 1 else StreamRows(part._settings._replace(targets=count))
        rows.load_state(Stored(saved[0], f"AutoKONS, {key}"))
        return rows


class _Sample(NamedTuple):
    """Rows that say what is typical, and what they say."""

    reservoir: Any
    of: tuple[int, int]
    """Which of its rows, of how many features."""
    points: Matrix
    targets: Vector
    typical: dict[Any, Any]
    scaling: RobustScaling


class AutoKONS(StreamConsumer):
    """No tuning: scales, relevance of features, bandwidth, regularization and memory are found on the way.

    ::

        experts     ridge regression in the span of atoms (the update of EmbeddedKONS, squared loss, hessian):
                    relevance x bandwidth x memory x with or without the last targets, and linear ones
        prediction  m + w^T (f - m), w by the same second-order update on the vector f of their predictions
        classes     one output each, in one A; scores made probabilities by logistic regression

    Feature maps (scaling, metric from the model's own gradients, bandwidth, regularization) are refitted at
    4, 8, ..., 1024 and 4096 rows, on rows that were kept. Stacking competes with
    the best *linear* combination of the experts, with logarithmic regret
    (:mod:`kons.learners.auto.stacking`). In blocks a row costs some 30 to 60 microseconds over thousands
    of rows, one by one up to twice that. After abrupt drift a fresh ensemble takes over
    (:mod:`kons.learners.auto.drift`).

    With y of shape (n, k) all targets share the experts, their metric and atoms, in which each counts alike
    whatever its units, and each is stacked by itself: ten cost 1.4 to 2.7 times what one does. Not for
    targets that depend on different columns, for which no one metric fits: k models are more accurate then.

    Parameters
    ----------
    task:
        ``"regression"`` or ``"classification"`` (labels of any kind).
    effort:
        ``"low"``, ``"normal"`` or ``"high"``: each two to three times the time of the one before, for a
        smaller loss; ``"tiny"`` for many models at once: files of at most 100 kB for ten columns. It sets
        ``max_atoms`` (100, 200, 400, and 24), ``experts`` (4, 13, 13, and 3) and how many rows are kept.
    max_atoms:
        Of an expert; those with a finite memory take half. The cost of a row grows as its square. None: as
        ``effort`` says.
    experts:
        How many are there at most, of twelve kinds (thirteen of classes); some are pruned where they add
        nothing. None: as ``effort`` says.
    delay:
        Row t is predicted and learned with targets up to t-1-delay only.
    seed:
        Of the rows that are kept and of the atoms.
    kernel, bandwidth, regularization:
        Given, they are fixed for all experts: a kernel of vectors (then there is no linear expert), a
        bandwidth in units of the scaled features, a ridge.

    Not for kernels on objects, nor for a stream of some dozen rows. Never inside :class:`~kons.Scaled`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(0, [1000.0, 0.01, 1.0], size=(1500, 3))
    >>> y = 1e6 + 500.0 * np.sin(X[:, 0] / 200) + 1e5 * X[:, 1]
    >>> model = AutoKONS()
    >>> trace = model.advance(X, y)
    >>> bool(trace.loss[-500:].mean() < 0.01 * y.var())
    True
    >>> int(np.argmin(model.relevances))
    2

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024 (gradients); Vovk: Competitive on-line
    statistics, 2001.
    """

    units = "raw"
    looks_back = True
    _doubts = SIZES
    #: Of the rows of the last block: kons.learners.auto.doubts.
    _last_doubts: NDArray[np.float64]
    allows_missing = True
    samples_rows = False
    STATE = fields(
        _outputs=Outputs(), _labels=KnownLabels(), _targets=_OfTargets(), column_totals=Array(None)
    )

    def __init__(
        self,
        task: Literal["regression", "classification"] = "regression",
        *,
        effort: Literal["tiny", "low", "normal", "high"] = "normal",
        max_atoms: int | None = None,
        experts: int | None = None,
        delay: int = 0,
        seed: int = 0,
        kernel: Kernel | None = None,
        bandwidth: float | None = None,
        regularization: float | None = None,
    ) -> None:
        super().__init__(Gaussian("auto") if kernel is None else kernel)
        if task not in ("regression", "classification"):
            raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
        if kernel is not None and kernel.accepts != "vectors":
            raise ConfigurationError(
                f"kernel is {kernel!r}, expected a kernel of vectors: features are scaled."
            )
        if kernel is not None and kernel.is_resolved and bandwidth is not None:
            raise ConfigurationError(
                f"{kernel!r} has a bandwidth or needs none, and bandwidth is {bandwidth!r}: "
                'give one of them, or a kernel with bandwidth="auto".'
            )
        self.task = task
        spent = effort_of(effort)
        self.effort = effort
        # In 100 kB there is no room for statistics of all columns.
        self.inside: bool = effort == "tiny"
        self._scores_kept = spent.errors
        self.max_atoms: int = require_integer(
            spent.max_atoms if max_atoms is None else max_atoms, "max_atoms", at_least=2
        )
        experts = spent.experts if experts is None else experts
        # The stacking is quadratic in them, and there are 14 kinds to choose from.
        self.experts: int = require_integer(experts, "experts", at_least=1, at_most=100)
        self.delay: int = require_delay(delay)
        self.seed: int = require_integer(seed, "seed", at_least=0)
        self.bandwidth: float | None = None if bandwidth is None else require_scale(bandwidth, "bandwidth")
        self.regularization: float | None = (
            None if regularization is None else require_scale(regularization, "regularization")
        )
        #: The sums of the columns over the rows learned: what fills the first gap.
        self.column_totals: Vector = np.empty(0)
        self._given_kernel = kernel
        self._last_sample: _Sample | None = None
        self._labelled = task == "classification"
        self._labels = Labels()
        self._settings = Settings(
            self._labelled,
            spent._replace(max_atoms=self.max_atoms, experts=self.experts),
            self.seed,
            Fixed(kernel, self.bandwidth, self.regularization),
        )
        #: Of one target, until the first row says how many there are.
        self._targets = StreamRows(self._settings)

    # ---- learning

    def advance(self, X: Any, y: Any, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        y is (n,), or (n, k) for k targets, whose losses add up; the first row says which, for good. The
        trace's ``expert`` is the number in :attr:`expert_names` of the one that leads; ``weight``,
        ``slope``, ``inverse_form`` and ``leverage`` are those of stacking, summed over the classes. A row of
        weight 0 is as one without target: time passes, but nothing depends on what its target is.
        """
        return self._advance(X, y, sample_weight)

    def _advance(self, X: Any, y: Any, sample_weight: Any = None) -> Trace:
        """Of rows that are encoded: public verbs take them as they come."""
        points = self._as_points(X)
        weights = np.ones(len(points))
        if sample_weight is not None:
            weights = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
            if len(weights) and weights.max() > LARGEST_WEIGHT:
                raise InputError(
                    f"sample_weight has {weights.max():g}, expected at most {LARGEST_WEIGHT:g}: "
                    "divide all of them by the largest."
                )
            # Below it products of two weights are 0, or lose their digits.
            weights = np.where(weights < 1e-290, 0.0, weights)
        labels = as_labels(y, len(points)) if self._labelled else []
        values = np.empty(0) if self._labelled else self._as_numbers(y, weights)
        with self._all_or_nothing(), single_threaded_blas():
            self._begin(values.shape[1:])
            if self._labelled:
                values = self._codes(labels)
            values = values.reshape(len(points), -1)
            outcomes = self._targets.advance(points, values, weights, self.delay)
            self._add_to_totals(points)
            self._count(points, 0)
        self._last_doubts = np.concatenate([outcome.doubts for outcome in outcomes])
        return self._trace(outcomes, values, weights)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one, in a tenth of the time; cheaper still right after its prediction."""
        point, values = self._as_point(x), self._known_targets(y)
        if values is None or self._outputs is None:  # a class more, or the first row
            self._advance(point, [y])
        elif self._nothing_can_fail:
            self._learn_row(point, values)
        else:
            with self._all_or_nothing(), single_threaded_blas():
                self._learn_row(point, values)

    # ---- late targets

    def row_to_keep(self, x: Any) -> Kept:
        """The point, and the number under which all that was predicted of it waits: one for all targets."""
        point = self._as_point(x)
        self._width = point.shape[1]
        return point[0].copy(), np.array([float(self._targets.ask(point[0]))])

    def release_kept_row(self, kept: Kept) -> None:
        """It is never learned."""
        self._targets.pending.records.pop(int(kept[1][0]), None)

    def kept_shapes(self) -> Shapes:
        """The point, and a number."""
        return (None,), (1,)

    def learn_kept_row(self, kept: Kept, y: Any) -> None:
        """Learn a row as it was predicted: with the last targets, and what the experts said, of that time."""
        number, point, values = int(kept[1][0]), self._as_point(kept[0])[0], self._known_targets(y)
        if values is not None and self._outputs is not None and self._nothing_can_fail:
            self._tell_row(number, point, values)
        else:
            with self._all_or_nothing(), single_threaded_blas():
                self._begin(() if self._labelled else np.shape(self._as_output(y)))
                if values is None:
                    values = self._codes([as_label(y)]).tolist()
                self._tell_row(number, point, values)
        self._rows_seen += 1

    def _begin(self, outputs: tuple[int, ...]) -> None:
        """The first row says how many targets there are: () one number, (k,) a row of k."""
        if self._outputs is None:
            self._outputs = sum(outputs)
            if self._outputs > 1:
                self._targets = self._targets.of_targets(self._settings._replace(targets=self._outputs))

    @property
    def _nothing_can_fail(self) -> bool:
        """While no chunk ends, and rows do not go as blocks."""
        return not self._targets.can_fail

    def _codes(self, labels: list[Any]) -> Vector:
        """Of labels some of which may be new: there is an output more for each of these."""
        before, codes = len(self._labels), self._labels.learn(labels).astype(np.float64)
        for _ in range(len(self._labels) - before):
            self._targets.add_output()
        return codes

    def _learn_row(self, point: Matrix, values: Sequence[float]) -> None:
        self._targets.learn_row(point[0], values, self.delay)
        self._add_to_totals(point)
        self._width = point.shape[1]
        self._rows_seen += 1

    def _tell_row(self, number: int, point: Vector, values: Sequence[float]) -> None:
        self._targets.tell(number, point, values)
        self._add_to_totals(point[None])
        self._width = len(point)

    def _add_to_totals(self, points: Matrix) -> None:
        """Until an encoder, that keeps its own, is there. Row after row: how they are cut does not matter."""
        if self._encoder is None:
            before = self.column_totals if len(self.column_totals) else np.zeros(points.shape[1])
            with np.errstate(over="ignore"):
                totals = np.add.reduce(np.concatenate([before[None], points]), axis=0)
            self.column_totals = np.clip(totals, -LARGEST_SUM, LARGEST_SUM)

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Rows have so many features more from now on, at their end.

        In the rows learned so far they lie at the median of ``samples``, some rows of the new columns only;
        without samples at 0. Experts look at them after some 500 rows that had them.

        >>> model = AutoKONS()
        >>> model.learn_one([0.5], 1.0)
        >>> model.widen(samples=[[70.0], [75.0], [80.0]])
        >>> model.learn_one([2.5, 72.0], 2.4)
        """
        require_integer(columns, "columns", at_least=1)
        values = np.zeros(columns)
        if samples is not None:
            values = np.median(as_points(samples, width=columns, name="samples"), axis=0)
        if self._targets.current.layout.width:
            self._targets.widen(values)
        if self._width is not None:
            self._width += columns
        if len(self.column_totals):  # none, before a row was learned
            self.column_totals = np.concatenate([self.column_totals, self._rows_seen * values])
        self._widen_queue(values)

    # ---- predicting

    def predict(self, X: Any, recent_targets: Any = False) -> NDArray[Any]:
        """Predictions in units of the target, (n,) or, of k targets, (n, k); or labels. Changes nothing.

        Away from the stream the experts without last targets answer; with ``recent_targets=True`` all do,
        each row as if it came next, or with what :meth:`following` says, behind the rows before it.
        """
        if self._labelled:
            return self.labels_of(self._logits(X, recent_targets))
        points = self._as_points(X)
        recent = self._as_recent(recent_targets, len(points))
        predictions = _predicted(self._targets, points, recent)[0]
        return predictions if self._outputs else predictions[:, 0]

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row as if it came next: a number, or an array of k of k targets.

        Of a label, None before any class is known.
        """
        scores = self._scores_of_one(x)
        if self._outputs:
            return scores
        if not self._labelled:
            return float(scores[0])
        return self._labels.known[int(scores.argmax())] if len(scores) else None

    def novelty(self, X: Any) -> Vector | Matrix:
        """How new each row is, from 0 to 1: 1 for one that is unlike all atoms of the steady expert.

        ``1 - max_b k(x, a_b)^2`` in its metric: what the nearest atom leaves of phi(x); beyond the range of a
        column, whether the metric looks at it or not, the kernel fades. 0 as long as there is no such expert,
        for 32 rows. (n, k) where rows have k targets, which share it. Changes nothing.

        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = AutoKONS()
        >>> trace = model.advance(X, X[:, 0] * X[:, 1])
        >>> near, far = model.novelty([[0.1, 0.2], [9.0, -9.0]])
        >>> bool(near < 0.1 and far > 0.8)
        True
        """
        points = self._as_points(X)
        new = self._targets.novelty(points) if self._rows_seen else np.zeros(len(points))
        novelty: Vector | Matrix = self._of_each(new)
        return novelty

    def _of_each(self, values: Any) -> Any:
        """What targets share, (n,), or once more for each of several."""
        return np.repeat(values[:, None], self._outputs, axis=1) if self._outputs else values

    def _rows_of(self, X: Any, recent_targets: Any = False, **_: Any) -> NDArray[np.float64]:
        points = self._as_points(X)
        recent = self._as_recent(recent_targets, len(points))
        said, doubts = self._targets.predict_with_doubts(points, recent)
        return np.concatenate([said[:, : doubts.shape[1], None], doubts], axis=2)

    def _growth_of_errors(self, recent_targets: Any = False, **_: Any) -> Any:
        known = not isinstance(recent_targets, bool) or recent_targets
        return 1.0 if known else self._targets.current.error_without_lags

    def _row_of(self, x: Any) -> Matrix:
        point = self._as_point(x)[0]
        return self._targets.predict_row_with_doubts(point)

    def _rows_of_trace(self, trace: Trace) -> NDArray[np.float64]:
        said = np.asarray(trace["prediction"]).reshape(len(trace), -1, 1)
        return np.concatenate([said, self._last_doubts], axis=2)

    def following(self, late: int | None = None) -> Following:
        """For rows that come next and are not learned: the last targets before each of them.

        ``late``: their targets are known so many rows late; None, as ``delay`` says.

        >>> X, y = np.arange(40.0)[:, None] % 7, np.arange(40.0)
        >>> model = AutoKONS()
        >>> trace = model.advance(X[:30], y[:30])
        >>> last = model.following().before([30.0, np.nan, 32.0])
        >>> last.tolist()
        [[29.0, 28.0], [30.0, 29.0], [30.0, 29.0]]
        >>> model.predict(X[30:33], recent_targets=last).shape
        (3,)
        """
        if self._outputs:
            raise ConfigurationError("rows of several targets cannot be followed: learn them.")
        late = self.delay if late is None else require_integer(late, "late", at_least=0)
        return self._targets.following(late, self._labels if self._labelled else None)

    def _as_recent(self, recent_targets: Any, rows: int) -> bool | Matrix:
        if not isinstance(recent_targets, np.ndarray) or not recent_targets.ndim:
            return require_flag(recent_targets, "recent_targets")
        if self._outputs or recent_targets.shape != (rows, LAGS):
            raise InputError(
                f"recent_targets has shape {recent_targets.shape}, expected True, False or, of one target, "
                f"what following().before(y) says of these rows: ({rows}, {LAGS})."
            )
        return as_points(recent_targets, width=LAGS, name="recent_targets")

    def decision_function(self, X: Any, recent_targets: Any = False) -> Matrix:
        """The calibrated logit of each row and class, columns in the order of :attr:`classes`."""
        return self._logits(X, recent_targets)

    def _logits(self, X: Any, recent_targets: Any) -> Matrix:
        """Of rows that are encoded: public verbs take them as they come."""
        self._require_classes()
        if not len(self._labels):
            raise InputError("no class is known yet: learn some rows first.")
        points = self._as_points(X)
        recent = self._as_recent(recent_targets, len(points))
        logits = _predicted(self._targets, points, recent)[1]
        if self.delay:
            logits[:, self._known_classes :] = np.nan
        return logits

    def predict_proba(self, X: Any, recent_targets: Any = False) -> Matrix:
        """The probability of each class, columns in the order of :attr:`classes`."""
        return self.probabilities(self._logits(X, recent_targets))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class of one row as if it came next; empty before any class is known."""
        self._require_classes()
        shares = self.probabilities(self._scores_of_one(x)[None])[0]
        return dict(zip(self.classes[: len(shares)], shares.tolist(), strict=True))

    def probabilities(self, scores: Matrix) -> Matrix:
        """What :meth:`predict_proba` makes of scores; 0 where a score is NaN."""
        self._require_classes()
        return probabilities_of(scores, Logistic())

    def labels_of(self, scores: Matrix) -> NDArray[Any]:
        """The label with the highest score in each row; None where all are NaN."""
        return self._labels.decode(best_of(scores))

    # ---- looking

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        self._require_classes()
        return list(self._labels.known)

    @property
    def multi_output(self) -> bool:  # type: ignore[override]
        """Whether it takes y of shape (n, k): of numbers."""
        return not self._labelled

    @property
    def relevances(self) -> Vector | Matrix:
        """How much each feature counts, the most relevant 1; (k, features) of k targets, which share it."""
        relevances = self._targets.current.relevances()
        return np.repeat(relevances[None], self._outputs, axis=0) if self._outputs else relevances

    @property
    def column_relevances(self) -> Any:
        """How much each column of a table counts: its features together, the most relevant column 1.

        By name, or by number where rows were arrays. Where rows have k targets, a list of k of these.

        >>> model = AutoKONS()
        >>> rows = [{"size": i % 7, "colour": "red" if i % 2 else "blue"} for i in range(300)]
        >>> trace = model.advance(rows, [x["size"] for x in rows])
        >>> sorted(model.column_relevances), max(model.column_relevances.values())
        (['colour', 'size'], 1.0)
        """
        relevances = self._by_column(self._targets.current.relevances())
        return [relevances.copy() for _ in range(self._outputs)] if self._outputs else relevances

    def _by_column(self, relevances: Vector) -> dict[Any, float]:
        owners = range(len(relevances)) if self._encoder is None else self._encoder.owners
        sums: dict[Any, float] = {}
        for owner, relevance in zip(owners, relevances.tolist(), strict=True):
            if owner is not None:
                sums[owner] = sums.get(owner, 0.0) + relevance
        most = max(sums.values(), default=0.0)
        return {owner: total / most if most > 0.0 else 0.0 for owner, total in sums.items()}

    def _sampled_rows(self) -> tuple[Matrix, Any]:
        if not self._rows_seen:
            return super()._sampled_rows()
        sample = self._sample
        return sample.points, sample.targets

    @property
    def _sample(self) -> _Sample:
        """It is another one once a chunk ended; before the first one did, after each row."""
        current = self._targets.current
        reservoir, width = current.reservoir, current.layout.width
        some = reservoir.sampled_rows or -reservoir.rows
        if (it := self._last_sample) is None or it.reservoir is not reservoir or it.of != (some, width):
            rows = reservoir.sampled() if some > 0 else reservoir.last(64)
            rows = rows[:: -(-len(rows) // 512)]  # a median of so many is known to a twentieth of a deviation
            points, targets = rows[:, :width], current.layout.targets(rows)[:, 0]
            typical = super()._typical(points)
            it = _Sample(reservoir, (some, width), points, targets, typical, RobustScaling.fit(points))
            self._last_sample = it
        return it

    def _typical(self, points: Matrix) -> dict[Any, Any]:
        return dict(self._sample.typical)

    def _kept_rows(self) -> tuple[Matrix, Vector]:
        current = self._targets.current
        rows = current.reservoir.last(current.reservoir.recent)
        return rows[:, : current.layout.width], current.layout.targets(rows)[:, 0]

    def _similarities(self, points: Matrix, x: Vector) -> Vector:
        """As neighbours are near: sums over the columns, each as far as it counts."""
        scaling, relevances = self._sample.scaling, self._targets.current.relevances()
        apart = np.abs(scaling.transform(points) - scaling.transform(x[None])) @ relevances
        return np.exp(-apart / max(float(relevances.sum()), 1e-300))

    def _model_events(self, first: int) -> list[tuple[int, str, float]]:
        told = self._targets.crept or ()
        return [(row + self.delay, "crept", size) for row, size, *_ in told if row + self.delay >= first]

    @property
    def expert_names(self) -> list[str]:
        """All that may be at work at some time, by their number in a trace; the mean of the targets is 0."""
        specs = self._targets.current.selection.all_specs
        return ["mean", "last target", "trend of neighbours", *(spec.name for spec in specs)]

    @property
    def shares(self) -> Any:
        """The weight of each expert at work in the stacking, by name; what is left is the mean's.

        Where rows have k targets, a list of k of these.
        """
        return self._shares_of_each() if self._outputs else self._shares_of_each()[0]

    @property
    def answers_away(self) -> list[str]:
        """The experts at work that need no last targets."""
        specs = self._targets.current.pool.specs
        return ["mean", *(spec.name for spec in specs if not spec.lags)]

    def _shares_of_each(self) -> list[dict[str, float]]:
        current, each = self._targets.current, []
        names = ["last target", "trend of neighbours", *(spec.name for spec in current.pool.specs)]
        for stacking in current.stackings:
            weights = stacking.weights
            mean = float(weights[0]) if self._labelled else 1.0 - float(weights[1:].sum())
            each.append({"mean": mean, **dict(zip(names, weights[1:].tolist(), strict=True))})
        return each

    @property
    def size(self) -> int:
        """The atoms of all experts."""
        return self._targets.current.pool.size

    @property
    def successions(self) -> int:
        """How often a fresh ensemble took over after abrupt drift."""
        return self._targets.drift.successions

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {
            "task": self.task,
            "effort": self.effort,
            "max_atoms": self.max_atoms,
            "experts": self.experts,
            "delay": self.delay,
            "seed": self.seed,
            "kernel": self._given_kernel,
            "bandwidth": self.bandwidth,
            "regularization": self.regularization,
        }

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved; of rows that wait, there is what was predicted."""
        with single_threaded_blas():  # as it was learned: bits depend on the number of threads
            super().load_state(stored, **sizes)
        numbers = [] if self._queue is None else [int(kept[1][0]) for kept, _ in self._queue.rows]
        targets = self._targets
        if sorted([*numbers, *targets.withheld.tolist()]) != sorted(targets.pending.records):
            raise stored.error("other rows wait than those of which there are predictions")

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        if self._labelled and (self._outputs or self._targets.current.outputs != len(self._labels)):
            raise stored.error("it has not as many outputs as classes")

    # ---- inside

    def _scores_of_one(self, x: Any) -> Vector:
        """The logit of each class that is known, or the prediction of each target; to be read at once."""
        scores = self._targets.predict_row(self._as_point(x)[0])
        return scores[: self._known_classes] if self._labelled and self.delay else scores

    @property
    def _known_classes(self) -> int:
        """Those of which a target is known: with a delay, a class may have come and still be hidden."""
        return self._targets.current.known_classes

    def _known_targets(self, y: Any) -> Sequence[float] | None:
        """The targets of a row as ensembles take them; None for a class that is new."""
        if self._labelled:
            code = self._labels.code(as_label(y, "y[0]"))
            return None if code is None else (float(code),)
        if not self._outputs and isinstance(y, (float, int)) and abs(y) <= LARGEST_TARGET:
            return (float(y),)  # the common case, at once
        values: list[float] = self._as_numbers([y], np.ones(1)).ravel().tolist()
        return values

    def _trace(self, outcomes: list[Outcome], values: Matrix, weights: Vector) -> Trace:
        lengths = [len(outcome.predictions) for outcome in outcomes]
        q = 0.5 * np.concatenate([outcome.inverse_forms for outcome in outcomes])
        scores = np.concatenate([outcome.logits for outcome in outcomes])
        stacked = np.concatenate([outcome.predictions for outcome in outcomes])
        if self._labelled:
            values = values[:, 0]
            hit = stacked[np.arange(len(values)), values.astype(np.int64)] - 1.0
            known = np.concatenate([outcome.known_classes for outcome in outcomes])
            scores = np.where(np.arange(scores.shape[1]) < known[:, None], scores, np.nan)
            prediction: NDArray[Any] = self.labels_of(scores)
            loss = (best_of(scores) != values).astype(np.float64)
        else:
            hit, prediction = stacked - values, scores.copy()
            loss = np.sum((prediction - values) ** 2, axis=1)
        doubted = np.concatenate([outcome.doubts[:, 0, 0] for outcome in outcomes])
        w = np.repeat(2.0 * weights[:, None], q.shape[1], axis=1)
        if not self._outputs:
            q, w = q[:, 0], w[:, 0]
            if not self._labelled:
                hit, prediction = hit[:, 0], prediction[:, 0]
        return Trace(
            prediction=prediction,
            loss=loss * weights,
            scores=scores if self._labelled else None,
            slope=2.0 * (hit.T * weights).T,
            weight=w,
            inverse_form=q,
            leverage=1.0 - 1.0 / (1.0 + w * q),
            kept=np.zeros(len(values), dtype=np.bool_),
            size=np.repeat([outcome.size for outcome in outcomes], lengths),
            novelty=self._of_each(_novelty(doubted)),
            expert=self._of_each(np.repeat([outcome.leader for outcome in outcomes], lengths)),
        )

    def _as_numbers(self, y: Any, weights: Vector) -> NDArray[np.float64]:
        targets: NDArray[np.float64] = self._as_outputs(y, len(weights))
        # Sums of squares of the largest leave room for a hundredfold.
        sizes = (np.abs(targets).T / LARGEST_TARGET * np.sqrt(np.maximum(weights / 100.0, 1.0))).T
        if sizes.max() > 1.0:
            at = np.unravel_index(np.argmax(sizes), targets.shape)
            weight = weights[at[0]]
            raise TargetError(
                f"y{''.join(f'[{i}]' for i in at)} is {targets[at]:g}, whose square"
                f"{f' times the sample weight {weight:g}' if weight > 100.0 else ''} is no number: "
                "scale the target down."
            )
        return targets

    def _require_classes(self) -> None:
        if not self._labelled:
            raise AttributeError("AutoKONS for regression predicts numbers and knows no classes.")

    def _facts(self) -> dict[str, str]:
        each = []
        for shares in self._shares_of_each():
            leads = sorted(shares.items(), key=lambda share: -share[1])[:3]
            each.append("; ".join(f"{name} {share:.2f}" for name, share in leads))
        return {"leading experts": " | ".join(each), "successions": str(self.successions)}


def _novelty(q: Vector) -> Vector:
    """From 0 to 1, of what is beyond all limits."""
    return q / (1.0 + q)


def _predicted(target: StreamRows, points: Matrix, recent: bool | Matrix) -> tuple[Matrix, Matrix]:
    """Predictions and logits."""
    block = 1024  # its kernel values fit into the cache
    cuts = [slice(start, start + block) for start in range(0, len(points), block)]
    parts = [target.predict(points[cut], recent if isinstance(recent, bool) else recent[cut]) for cut in cuts]
    predictions, logits = (np.concatenate(part) for part in zip(*parts, strict=True))
    return predictions, logits
