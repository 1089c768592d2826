"""AutoKONS: raw columns and targets in, predictions out; everything else is chosen as rows come."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Matrix,
    Vector,
    as_points,
    as_row_values,
    as_targets,
    require_flag,
    require_integer,
    require_scale,
)
from kons.core.threads import single_threaded_blas
from kons.errors import ConfigurationError, InputError, TargetError
from kons.kernels import Gaussian, Kernel
from kons.learners.auto.drift import DriftAdaptation
from kons.learners.auto.effort import effort_of
from kons.learners.auto.ensemble import Ensemble, Outcome
from kons.learners.auto.feature_map import Fixed
from kons.learners.classifier import best_of, probabilities_of
from kons.learners.labels import KnownLabels, Labels, as_label, as_labels
from kons.learners.queue import Kept, Shapes
from kons.learners.stream import StreamConsumer
from kons.learners.trace import Trace
from kons.losses import Logistic
from kons.state import Inner, Sizes, fields
from kons.stored import Stored

__all__ = ["AutoKONS"]

# Of a target: its squared error is still a number.
LARGEST_TARGET = 1e150
# Of a row: sums over rows are still numbers.
LARGEST_WEIGHT = 1e100


class AutoKONS(StreamConsumer):
    """No tuning: scales, relevance of features, bandwidth, regularization and memory are found on the way.

    ::

        experts     ridge regression in the span of atoms (the update of EmbeddedKONS, squared loss, hessian):
                    relevance x bandwidth x memory x with or without the last targets, and linear ones
        prediction  m + w^T (f - m), w by the same second-order update on the vector f of their predictions
        classes     one output each, in one A; scores made probabilities by logistic regression

    Feature maps (scaling, metric from the model's own gradients, bandwidth, regularization) are refitted at
    4, 8, ..., 1024 and 4096 rows, then at eight times as many, on rows that were kept. Stacking competes with
    the best *linear* combination of the experts, with logarithmic regret
    (:mod:`kons.learners.auto.stacking`). In blocks a row costs some 30 to 60 microseconds over thousands
    of rows, one by one up to twice that. After abrupt drift a fresh ensemble takes over
    (:mod:`kons.learners.auto.drift`).

    Parameters
    ----------
    task:
        ``"regression"`` or ``"classification"`` (labels of any kind).
    effort:
        ``"normal"``, or ``"tiny"`` for many models at once: files of at most 100 kB for ten columns. It sets
        ``max_atoms`` (200, 24), ``experts`` (12, 3) and how many rows are kept.
    max_atoms:
        Of an expert; those with a finite memory take half. The cost of a row grows as its square. None: as
        ``effort`` says.
    experts:
        How many are there at most, of eleven kinds (twelve of classes); some are pruned where they add
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
    STATE = fields(_labels=KnownLabels(), _drift=Inner())

    def __init__(
        self,
        task: Literal["regression", "classification"] = "regression",
        *,
        effort: Literal["tiny", "normal"] = "normal",
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
        self.max_atoms = require_integer(
            spent.max_atoms if max_atoms is None else max_atoms, "max_atoms", at_least=2
        )
        self.experts = require_integer(spent.experts if experts is None else experts, "experts", at_least=1)
        self.delay: int = require_integer(delay, "delay", at_least=0)
        self.seed = require_integer(seed, "seed", at_least=0)
        self.bandwidth = None if bandwidth is None else require_scale(bandwidth, "bandwidth")
        self.regularization = (
            None if regularization is None else require_scale(regularization, "regularization")
        )
        self._given_kernel = kernel
        self._labelled = task == "classification"
        self._labels = Labels()
        self._drift = DriftAdaptation(
            classes=self._labelled,
            max_atoms=self.max_atoms,
            experts=self.experts,
            sample=spent.sample,
            recent=spent.recent,
            longest=spent.longest,
            knots=spent.knots,
            seed=self.seed,
            fixed=Fixed(kernel, self.bandwidth, self.regularization),
        )

    # ---- learning

    def advance(self, X: Any, y: Any, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        The trace's ``expert`` is the number in :attr:`expert_names` of the one that leads; ``weight``,
        ``slope``, ``inverse_form`` and ``leverage`` are its own, with A as it was at the start of the chunk.
        """
        points = self._as_points(X)
        weights = np.ones(len(points))
        if sample_weight is not None:
            weights = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
            if len(weights) and weights.max() > LARGEST_WEIGHT:
                raise InputError(
                    f"sample_weight has {weights.max():g}, expected at most {LARGEST_WEIGHT:g}: "
                    "divide all of them by the largest."
                )
        labels = as_labels(y, len(points)) if self._labelled else []
        values = np.empty(0) if self._labelled else self._as_numbers(y, len(points))
        with self._all_or_nothing(), single_threaded_blas():
            if self._labelled:
                values = self._codes(labels)
            outcomes = self._drift.advance(points, values, weights, self.delay)
            self._count(points, 0)
        return self._trace(outcomes, values, weights)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one, in a tenth of the time; cheaper still right after its prediction."""
        point, value = self._as_point(x), self._known_target(y)
        if value is None:  # a class more
            self.advance(point, [y])
        elif self._drift.left > 1:  # nothing can fail
            self._learn_row(point, value)
        else:
            with self._all_or_nothing(), single_threaded_blas():
                self._learn_row(point, value)

    # ---- late targets

    def row_to_keep(self, x: Any) -> Kept:
        """The point, and the number under which all that was predicted of it waits."""
        point = self._as_point(x)
        asked = self._drift.ask_row(point[0])
        number = self._drift.ask(point)[1] if asked is None else asked[1]
        return point[0].copy(), np.array([float(number)])

    def release_kept_row(self, kept: Kept) -> None:
        """It is never learned."""
        self._drift.pending.take([int(kept[1][0])])

    def kept_shapes(self) -> Shapes:
        """The point, and a number."""
        return (None,), (1,)

    def learn_kept_row(self, kept: Kept, y: Any) -> None:
        """Learn a row as it was predicted: with the last targets, and what the experts said, of that time."""
        number, point, value = int(kept[1][0]), self._as_point(kept[0])[0], self._known_target(y)
        at_once = value is not None and self._drift.left > 1  # nothing can fail
        if not (at_once and value is not None and self._drift.tell_row(number, point, value)):
            with self._all_or_nothing(), single_threaded_blas():
                self._drift.tell(number, point, self._codes([as_label(y)])[0] if value is None else value)
                self._width = len(point)
        self._rows_seen += 1

    def _codes(self, labels: list[Any]) -> Vector:
        """Of labels some of which may be new: there is an output more for each of these."""
        before, codes = len(self._labels), self._labels.learn(labels).astype(np.float64)
        for _ in range(len(self._labels) - before):
            self._drift.add_output()
        return codes

    def _learn_row(self, point: Matrix, value: float) -> None:
        if not self._drift.learn_row(point[0], value, self.delay):
            self._drift.advance(point, np.array([value]), np.ones(1), self.delay)
            self._width = point.shape[1]
        self._rows_seen += 1

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
        if self._ensemble.layout.width:
            self._drift.widen(values)
        if self._width is not None:
            self._width += columns
        self._widen_queue(values)

    # ---- predicting

    def predict(self, X: Any, recent_targets: bool = False) -> NDArray[Any]:
        """Predictions in units of the target, or labels. Changes nothing.

        Away from the stream the experts without last targets answer; with ``recent_targets=True`` all do,
        each row as if it came next.
        """
        if self._labelled:
            return self.labels_of(self.decision_function(X, recent_targets))
        return self._predicted(X, recent_targets)[0][:, 0]

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row as if it came next; of a label, None before any class is known."""
        scores = self._scores_of_one(x)
        if not self._labelled:
            return float(scores[0])
        return self._labels.known[int(scores.argmax())] if len(scores) else None

    def decision_function(self, X: Any, recent_targets: bool = False) -> Matrix:
        """The calibrated logit of each row and class, columns in the order of :attr:`classes`."""
        self._require_classes()
        if not len(self._labels):
            raise InputError("no class is known yet: learn some rows first.")
        return self._predicted(X, recent_targets)[1]

    def predict_proba(self, X: Any, recent_targets: bool = False) -> Matrix:
        """The probability of each class, columns in the order of :attr:`classes`."""
        return self.probabilities(self.decision_function(X, recent_targets))

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
    def relevances(self) -> Vector:
        """How much each feature counts, the most relevant 1."""
        return self._ensemble.relevances()

    @property
    def expert_names(self) -> list[str]:
        """All that may be at work at some time, by their number in a trace; the mean of the targets is 0."""
        return ["mean", "last target", *(spec.name for spec in self._ensemble.selection.all_specs)]

    @property
    def shares(self) -> dict[str, float]:
        """The weight of each expert at work in the stacking, by name; what is left is the mean's."""
        weights = self._ensemble.stacking.weights
        names = ["last target", *(spec.name for spec in self._ensemble.pool.specs)]
        mean = float(weights[0]) if self._labelled else 1.0 - float(weights[1:].sum())
        return {"mean": mean, **dict(zip(names, weights[1:].tolist(), strict=True))}

    @property
    def size(self) -> int:
        """The atoms of all experts."""
        return self._ensemble.pool.size

    @property
    def successions(self) -> int:
        """How often a fresh ensemble took over after abrupt drift."""
        return self._drift.successions

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
        super().load_state(stored, **sizes)
        numbers = [] if self._queue is None else [int(kept[1][0]) for kept, _ in self._queue.rows]
        withheld = self._drift.withheld.tolist()
        if sorted([*numbers, *withheld]) != sorted(self._drift.pending.records):
            raise stored.error("other rows wait than those of which there are predictions")

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        if self._labelled and self._ensemble.outputs != len(self._labels):
            raise stored.error("it has not as many outputs as classes")

    # ---- inside

    @property
    def _ensemble(self) -> Ensemble:
        """The one at work."""
        return self._drift.current

    def _predicted(self, X: Any, recent_targets: bool) -> tuple[Matrix, Matrix]:
        points = self._as_points(X)
        require_flag(recent_targets, "recent_targets")
        block = 1024  # its kernel values fit into the cache
        parts = [
            self._drift.predict(points[start : start + block], recent_targets)
            for start in range(0, len(points), block)
        ]
        predictions, logits = (np.concatenate(part) for part in zip(*parts, strict=True))
        if self._labelled and self.delay:
            logits[:, self._known_classes :] = np.nan
        return predictions, logits

    def _scores_of_one(self, x: Any) -> Vector:
        """The logit of each class that is known, or the prediction; to be read at once."""
        point = self._as_point(x)
        scores = self._drift.predict_row(point[0])
        scores = self._predicted(point, True)[1][0] if scores is None else scores
        return scores[: self._known_classes] if self._labelled and self.delay else scores

    @property
    def _known_classes(self) -> int:
        """Those of which a target is known: with a delay, a class may have come and still be hidden."""
        return self._ensemble.known_classes

    def _known_target(self, y: Any) -> float | None:
        """A target as the ensemble takes it; None for a class that is new."""
        if self._labelled:
            code = self._labels.code(as_label(y, "y[0]"))
            return None if code is None else float(code)
        if isinstance(y, (float, int)) and abs(y) <= LARGEST_TARGET:  # the common case, at once
            return float(y)
        return float(self._as_numbers([y], 1)[0])

    def _trace(self, outcomes: list[Outcome], values: Vector, weights: Vector) -> Trace:
        lengths = [len(outcome.predictions) for outcome in outcomes]
        leader = np.concatenate([outcome.leader_predictions for outcome in outcomes])
        q = 0.5 * np.concatenate([outcome.inverse_forms for outcome in outcomes])
        scores = np.concatenate([outcome.logits for outcome in outcomes])
        rows = np.arange(len(values))
        if self._labelled:
            hit = leader[rows, values.astype(np.int64)] - 1.0
            known = np.concatenate([outcome.known_classes for outcome in outcomes])
            scores = np.where(np.arange(scores.shape[1]) < known[:, None], scores, np.nan)
            prediction: NDArray[Any] = self.labels_of(scores)
            loss = (best_of(scores) != values).astype(np.float64)
        else:
            hit = leader[:, 0] - values
            prediction = scores[:, 0].copy()
            loss = (prediction - values) ** 2
        leaders = np.repeat([outcome.leader for outcome in outcomes], lengths)
        w = np.where(leaders > 0, 2.0 * weights, 0.0)
        return Trace(
            prediction=prediction,
            loss=loss * weights,
            scores=scores if self._labelled else None,
            slope=2.0 * weights * hit,
            weight=w,
            inverse_form=q,
            leverage=w * q / (1.0 + w * q),
            kept=np.zeros(len(values), dtype=np.bool_),
            size=np.repeat([outcome.size for outcome in outcomes], lengths),
            expert=leaders,
        )

    def _as_numbers(self, y: Any, rows: int) -> Vector:
        targets = as_targets(y, rows)
        if np.abs(targets).max() > LARGEST_TARGET:
            at = int(np.argmax(np.abs(targets)))
            raise TargetError(
                f"y[{at}] is {targets[at]:g}, whose square is no number: scale the target down."
            )
        return targets

    def _require_classes(self) -> None:
        if not self._labelled:
            raise AttributeError("AutoKONS for regression predicts numbers and knows no classes.")

    def _facts(self) -> dict[str, str]:
        leads = sorted(self.shares.items(), key=lambda share: -share[1])[:3]
        return {
            "leading experts": "; ".join(f"{name} {share:.2f}" for name, share in leads),
            "successions": str(self.successions),
        }
