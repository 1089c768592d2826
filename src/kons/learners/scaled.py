"""Any learner on raw units: the first rows tell the scales, which are then kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    FLOAT64,
    Matrix,
    Vector,
    as_points,
    as_row_values,
    require_flag,
    require_integer,
    require_number,
)
from kons.errors import ConfigurationError, InputError
from kons.learners.doubt import KnowsItsErrors
from kons.learners.labels import Labels, as_labels, object_array
from kons.learners.scores import OfLabels, best_of
from kons.learners.stream import Outputs, Wrapper
from kons.learners.trace import Trace
from kons.learners.units import (
    Bandwidths,
    FeatureScales,
    LateColumns,
    TargetScale,
    TargetUnits,
    scale_row,
)
from kons.learners.warmup import LabelWarmUp, WarmUp
from kons.policies import Fixed
from kons.scaling import RobustScaling, median_bandwidth
from kons.state import Count, Inner, Sizes, fields
from kons.stored import Stored

__all__ = ["Scaled"]

# Times the median distance: what did best over seven public regression sets, 1 and 2 being near.
WIDER = 1.5
# Rows of a column that comes behind the warm-up before its unit is read off them, if that was as long: its
# quartiles are then right to a tenth of their distance or so.
ENOUGH = 100
# Different values of a column that only grows from which on it is a clock: by chance 1 in 10! columns is.
TICKS = 10


class Scaled(OfLabels, Wrapper):
    """Features and targets in any units: what the learner needs is read off the first rows.

    ::

        rows 1 .. warmup     kept; predicted by the mean (or majority) of the rows before
        then, once           median and interquartile range of each feature, median and reach of the
                             target, ``wider`` median distances for bandwidth="auto"; these rows are learned
        every later row      scaled, predicted, learned; predictions in units of the target

    All rows are scored, and cuts into blocks do not matter. A later target beyond the reach is clipped for
    learning, counted (:attr:`targets_clipped`) and told once; its loss is that of the true target. Of
    several targets, y of shape (n, k), each has its own centre and reach, and the loss is the sum of theirs.
    See :mod:`kons.scaling` for constant and heavy-tailed features.

    Parameters
    ----------
    learner:
        Not yet taught, with ``bandwidth="auto"`` where it should be found: any learner of one problem, one of
        your own too (:mod:`kons.learners.protocol`), or a :class:`~kons.Classifier`. It is a pattern, and
        stays as it is.
    warmup:
        How many rows are waited for. :meth:`finish_warmup` ends it earlier.
    margin:
        How much farther from the median than any target of the warm-up later ones may lie: by this part.
        None: 1 with ``second_order="hessian"``, where room costs nothing; 0.2 with ``"gradient"``, whose
        steps shrink as targets do.
    scale_features:
        False leaves features as they are, for pipelines that have scaled them; kernels on objects always do.
    ignore_clocks:
        True leaves out features that only grew, or only fell, in the warm-up: time, a count of rows. Every
        row is new to them.

    wider:
        How many median distances ``bandwidth="auto"`` is.

    Not for streams whose units change: scales are kept. Its trace's loss is the squared error in units
    of the target (0/1 errors for classes); columns such as the slope are in the learner's own units.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import EmbeddedKONS, Gaussian, Scaled, Squared
    >>> X = np.random.default_rng(0).uniform(0, [1000.0, 0.01], size=(2000, 2))
    >>> y = 1e6 + 500.0 * np.sin(X[:, 0] / 200) + 1e5 * X[:, 1]
    >>> model = Scaled(EmbeddedKONS(Gaussian("auto"), Squared(), second_order="hessian", regularization=0.01))
    >>> trace = model.advance(X, y)
    >>> bool(trace.loss[-500:].mean() < 0.05 * y.var())
    True
    >>> bool(abs(model.predict_one(X[0]) - y[0]) < 100.0)
    True
    """

    units = "raw"
    STATE = fields(
        _outputs=Outputs(),
        _targets_clipped=Count(),
        _warm=Inner(ends=True, make=lambda scaled: scaled._new_warmup()),
        _features=FeatureScales(),
        _target=TargetScale(),
        _bandwidths=Bandwidths(),
        _late=Inner(make=lambda scaled: LateColumns(), left_out=True),
        _inner=Inner(make=lambda scaled: scaled._in_scaled_units()),
    )
    margin: float | None

    def __init__(
        self,
        learner: Any,
        warmup: int = 500,
        *,
        margin: float | None = None,
        scale_features: bool = True,
        ignore_clocks: bool = False,
        wider: float = WIDER,
    ) -> None:
        super().__init__(learner, "one such as EmbeddedKONS(...), or a Classifier of it")
        pattern = self._pattern
        if pattern.labelled and "scores" not in pattern.trace_columns:
            raise ConfigurationError(
                f"{pattern.name} predicts labels, expected a learner of numbers, in a kons.Classifier."
            )
        self.warmup: int = require_integer(warmup, "warmup", at_least=1)
        self.margin = None if margin is None else require_number(margin, "margin", at_least=0.0, at_most=1e6)
        self.scale_features: bool = require_flag(scale_features, "scale_features")
        self.ignore_clocks: bool = require_flag(ignore_clocks, "ignore_clocks")
        self.wider: float = require_number(wider, "wider", above=0.0, at_most=1e6)
        self._labelled = pattern.labelled
        self.task: str = "classification" if self._labelled else "regression"
        self.closed: bool = pattern.closed
        self.multi_output: bool = pattern.multi_output
        room = 0.2 if pattern.core.second_order == "gradient" else 1.0
        # Labels become the Classifier's targets inside.
        own_loss = None if self._labelled else pattern.loss
        self._target = TargetUnits(own_loss, pattern.core.bound, room if self.margin is None else self.margin)
        self._targets_clipped = 0
        self._inner: Any = None
        self._features: RobustScaling | None = None
        self._bandwidths: tuple[float, float] | None = None
        self._late: LateColumns | None = None
        self._warm: Any = self._new_warmup()

    # ---- learning

    def advance(self, X: Any, y: Any, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        Columns that are not known in the warm-up are NaN there.
        """
        points = self._as_points(X)
        targets = self._as_targets(y, len(points))
        weights = np.ones(len(points))
        if sample_weight is not None:
            weights = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
        if block_size is not None:
            require_integer(block_size, "block_size", at_least=1)
        if self._late is not None:
            with self._all_or_nothing():
                return self._advance_late(points, targets, weights, block_size)
        if self._warm is None:
            return self._advance(points, targets, weights, block_size)
        first = min(len(points), self.warmup - self._rows_seen)
        with self._all_or_nothing():
            self._begin(targets)
            trace = self._warm_up(points[:first], targets[:first], weights[:first])
            if first < len(points):
                rest = self._advance(points[first:], targets[first:], weights[first:], block_size)
                trace = Trace.concatenate([trace, rest])
        return trace

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        if self._warm is not None:
            points = self._as_point(x)
            targets = self._as_targets([y], 1)
            with self._all_or_nothing():
                self._begin(targets)
                self._warm_up(points, targets, np.ones(1))
            return
        if self._late is not None:
            self.advance(self._as_point(x), [y])
            return
        row = self._row(x)
        target, outside = (y, 0) if self._labelled else self._one_target(y)
        self._inner.learn_one(row, target)
        self._targets_clipped += outside
        self._rows_seen += 1

    def finish_warmup(self) -> None:
        """End the warm-up with the rows there are; nothing happens if it has ended."""
        if self._warm is None:
            return
        if not len(self._warm):
            raise InputError("the warm-up has no rows yet: there is nothing to read scales off.")
        with self._all_or_nothing():
            self._end_warmup(self._warm)

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Rows have so many features more from now on; in those learned so far they lie at the median.

        In the warm-up their scales come from the rows that have them. Behind it they are read off
        ``samples``, some rows of the new columns only, in raw units. One row tells no unit: then they are
        read off the next 100 rows (as many as the warm-up had, if that is less), and features stay at the
        median until then. See :meth:`StreamConsumer.widen`.

        >>> from kons.recipes import for_task
        >>> model = for_task("regression", "embedded", warmup=4)
        >>> trace = model.advance([[1.0], [2.0], [3.0], [4.0]], [1.0, 2.0, 3.0, 4.0])
        >>> model.widen(samples=[[70.0], [75.0], [80.0]])
        >>> model.learn_one([2.5, 72.0], 2.4)
        """
        self._require_widenable(columns)
        values = np.zeros(columns)
        if self._warm is None:
            scaling = self._features
            if scaling is not None:
                if samples is None:
                    raise InputError("samples are needed behind the warm-up: scales are read off them.")
                rows = as_points(samples, width=columns, name="samples")
                fitted = RobustScaling.fit(rows) if len(rows) > 1 else RobustScaling.unknown(columns)
                scaling, values = scaling.beside(fitted), np.median(rows, axis=0)
            self._inner.widen(columns)
            if scaling is not None and len(rows) == 1:
                width = len(scaling.medians)
                self._late = self._late or LateColumns()
                waiting = 0 if self._queue is None else len(self._queue)
                self._late.join(range(width - columns, width), waiting)
            self._features = scaling
        elif self._width is not None:
            self._warm.widen(self._width, columns)
        if self._width is not None:
            self._width += columns
        self._widen_queue(values)

    # ---- predicting

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions in units of the target, or labels, each row as if it came next. Changes nothing."""
        points = self._as_points(X)
        if self._labelled:
            return object_array(self.classes)[best_of(self._scores(points))]
        if self._warm is not None:
            mean = np.asarray(self._warm.predict())
            return np.broadcast_to(mean, (len(points), *mean.shape)).copy()
        predictions: NDArray[Any] = self._target.scaling.unscale(self._inner.predict(self._scaled(points)))
        return predictions

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row; of a label, None before any class is known."""
        if self._warm is None:
            value = self._inner.predict_one(self._row(x))
            return value if self._labelled else self._target.scaling.unscale(value)
        self._as_point(x)
        return self._warm.predict()

    def decision_function(self, X: Any) -> Matrix:
        """The score of each row and class, columns in the order of :attr:`classes`."""
        self._require_classes()
        return self._scores(self._as_points(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class of one row; empty before any class is known."""
        self._require_classes()
        if self._warm is not None:
            return super().predict_proba_one(x)
        probabilities: dict[Any, float] = self._inner.predict_proba_one(self._row(x))
        return probabilities

    def probabilities(self, scores: Matrix) -> Matrix:
        """What :meth:`predict_proba` makes of scores; 0 where a score is NaN."""
        self._require_classes()
        return super().probabilities(scores)

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        self._require_classes()
        return list(self._inner.classes if self._warm is None else self._warm.labels.known)

    def novelty(self, X: Any) -> Vector:
        """How new each point is, where the learner knows; NaN in the warm-up."""
        points = self._as_points(X)
        if self._warm is not None:
            return np.full(len(points), np.nan)
        novelty: Vector = self._inner.novelty(self._scaled(points))
        return novelty

    def _novelties(self, points: Any) -> Any:
        if self._warm is not None or "novelty" not in self._pattern.trace_columns:
            return None
        return self._inner.novelty(self._scaled(self._as_points(points)))

    def _tells_afterwards(self, y: Any = 0.0) -> bool:
        inner = self._inner
        told = isinstance(inner, KnowsItsErrors) and inner._tells_afterwards(y)
        return told and self._late is None and not self._labelled

    def _said(self) -> tuple[float, float]:
        prediction, novelty = self._inner._said()
        return float(self._target.scaling.unscale(prediction)), novelty

    # ---- looking

    @property
    def inner(self) -> Any:
        """The learner in scaled units, or None in the warm-up."""
        return self._inner

    @property
    def warming_up(self) -> bool:
        """Whether rows are still only kept."""
        return self._warm is not None

    @property
    def targets_clipped(self) -> int:
        """How many targets lay beyond the reach, and were clipped for learning."""
        return self._targets_clipped

    @property
    def size(self) -> int:
        """How many rows the learner kept, as its policy decided; 0 in the warm-up."""
        return 0 if self._inner is None else self._inner.size or 0

    @property
    def core(self) -> Any:
        """The learner of one problem inside, or in the warm-up the pattern for it."""
        return (self._pattern if self._inner is None else self._inner).core

    @property
    def online_effective_dimension(self) -> float | None:
        """Of the learner inside, where it has one."""
        return None if self._inner is None else self._inner.online_effective_dimension

    @property
    def log_determinant(self) -> float | None:
        """Of the learner inside, where it has one."""
        return None if self._inner is None else self._inner.log_determinant

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        if (self._warm is None) == (self._inner is None) or (
            self._warm is not None and self._rows_seen >= self.warmup
        ):
            raise stored.error("it has left its warm-up, and has not")
        if self._inner is not None and self._inner.rows_seen not in (None, self._rows_seen):
            raise stored.error(
                f"the learner has seen {self._inner.rows_seen} rows, expected {self._rows_seen}"
            )

    # ---- inside: the warm-up

    def _new_warmup(self) -> WarmUp:
        if self._labelled:
            return LabelWarmUp(self.accepts, self._target, Labels(self._pattern.classes), self.loss)
        return WarmUp(self.accepts, self._target, self._outputs or 0)

    def _begin(self, targets: Any) -> None:
        """The first row says how many targets there are."""
        if self._outputs is not None:
            return
        self._outputs = 0 if self._labelled or targets.ndim == 1 else targets.shape[1]
        if self._outputs:
            if not self.multi_output:
                raise ConfigurationError(
                    f"{self._pattern.name} learns one target a row, and y has {self._outputs}: use "
                    "EmbeddedKONS, KONS or SketchedKONS, or make a learner for each."
                )
            self._warm = self._new_warmup()

    def _warm_up(self, points: Any, targets: Any, weights: Vector) -> Trace:
        """Keep rows, at most as many as the warm-up still takes; at its end, learn them."""
        warm, count = self._warm, len(points)
        if self._labelled:
            targets = warm.labels.learn(targets, self.closed)
        unknown = np.full(count, np.nan)
        columns: dict[str, Any] = {name: unknown.copy() for name in self._pattern.trace_columns}
        columns |= warm.learn(points, targets, weights)
        self._count(points, 0)
        size = np.zeros(count, np.int64)
        if self._rows_seen == self.warmup:
            self._end_warmup(warm)
            size[-1] = self.size
        return Trace(kept=np.zeros(count, np.bool_), size=size, **columns)

    def _end_warmup(self, warm: WarmUp) -> None:
        """Find the scales, make the learner, and let it learn what was kept."""
        self._warm = None
        points: Any = warm.points.view
        weights = warm.weights
        if self.accepts == "vectors":
            if self._scales:
                self._features = warm.scaling()
                if self.ignore_clocks and (clocks := _clocks(points)).any():
                    unknown = RobustScaling.unknown(int(clocks.sum()))
                    self._features = self._features.with_columns(clocks, unknown)
            points = self._scaled(points)
            warm.forget_unknown(points)
            if not self._resolved:
                plain = median_bandwidth(points, weights=weights)
                absolute = median_bandwidth(points, absolute=True, weights=weights)
                self._bandwidths = self.wider * plain, self.wider * absolute
        targets, inner = warm.to_learn(), self._in_scaled_units()
        inner.advance(points, targets, sample_weight=weights)
        self._inner = inner

    @property
    def _resolved(self) -> bool:
        """Whether no bandwidth is to be found."""
        return self.kernel is None or bool(self.kernel.is_resolved)

    def _in_scaled_units(self) -> Any:
        """A new learner of the pattern's kind, with all that the warm-up found; None before its end."""
        if self._warm is not None:
            return None
        move = None if self._features is None else lambda atoms: self._scaled(self._as_points(atoms))
        inner = self._pattern.anew(self._bandwidths, move)
        inner._followed_elsewhere = inner.inside = True
        return inner

    # ---- inside: behind it

    def _advance(self, points: Any, targets: Any, weights: Vector, block_size: int | None) -> Trace:
        """Rows behind the warm-up."""
        scaled, outside = targets, 0
        if not self._labelled:
            scaled, outside = self._target.to_learn(targets, self.warmup)
        trace: Trace = self._inner.advance(self._scaled(points), scaled, block_size, weights)
        self._targets_clipped += outside
        self._count(points, 0)
        if self._labelled:
            return trace
        predictions = self._target.scaling.unscale(trace["prediction"])
        return replace(
            trace, prediction=predictions, loss=weights * self._target.losses(predictions, targets)
        )

    def _advance_late(self, points: Any, targets: Any, weights: Vector, block_size: int | None) -> Trace:
        """The same, while the units of some columns are not known; a unit is that of the rows behind it."""
        traces, start, enough = [], 0, min(self.warmup, ENOUGH)
        while start < len(points):
            stop = len(points) if self._late is None else start + self._late.left(enough)
            piece = points[start:stop]
            traces.append(self._advance(piece, targets[start:stop], weights[start:stop], block_size))
            if self._late is not None and self._features is not None:
                self._features = self._late.follow(piece, enough, self._features)
                self._late = self._late if len(self._late) else None
            start = stop
        return Trace.concatenate(traces)

    def _one_target(self, y: Any) -> tuple[Any, int]:
        """What the learner is taught of one row, and how many targets were clipped for it."""
        if isinstance(y, float) and not self._outputs and self._target.signs is None:
            target = self._target.scaling.scale(float(y))
            if abs(target) <= self._target.bound:
                return target, 0
        scaled, outside = self._target.to_learn(self._as_targets([y], 1)[0], self.warmup)
        return scaled.tolist(), outside

    # ---- inside: both

    @property
    def _scales(self) -> bool:
        return self.scale_features and bool(self.accepts == "vectors")

    def _similarities(self, points: Matrix, x: Vector) -> Vector:
        if self._warm is not None or self._inner.lacks("_similarities"):
            return super()._similarities(points, x)
        likeness: Vector = self._inner._similarities(self._scaled(points), self._scaled(x[None])[0])
        return likeness

    def _scaled(self, points: Any) -> Any:
        return points if self._features is None else self._features.transform(points)

    def _row(self, x: Any) -> Any:
        """One scaled row, checked: a vector, or the object itself."""
        features = self._features
        if (
            features is not None
            and type(x) is np.ndarray
            and x.dtype is FLOAT64
            and x.shape == (self._width,)
        ):
            z = np.empty(len(x))
            if scale_row(np.ascontiguousarray(x), *features.halves, features.limit, z):
                return z
        return self._scaled(self._as_point(x)[0])

    def _as_targets(self, y: Any, rows: int) -> Any:
        if self._labelled:
            return as_labels(y, rows)
        targets = self._as_outputs(y, rows)
        self._target.check(targets)
        return targets

    def _scores(self, points: Any) -> Matrix:
        if self._warm is not None:
            return np.asarray(self._warm.scores(len(points)))
        scores: Matrix = self._inner.decision_function(self._scaled(points))
        return scores

    def _scores_of_one(self, x: Any) -> Matrix:
        """In the warm-up."""
        points = self._as_point(x)
        return self._scores(points) if self.classes else np.empty((1, 0))

    def _require_classes(self) -> None:
        if not self._labelled:
            raise AttributeError(f"{self.learner!r} predicts numbers and knows no classes.")

    def _require_widenable(self, columns: int) -> None:
        super()._require_widenable(columns)
        if isinstance(self._pattern.core.policy, Fixed):
            raise ConfigurationError("atoms were given, and they have no more features than that.")

    def _facts(self) -> dict[str, str]:
        if self._warm is not None:
            return {"warm-up": f"{len(self._warm):,} of {self.warmup:,} rows"}
        return {"targets clipped": f"{self._targets_clipped:,}", **self._inner._facts()}


def _clocks(points: Matrix) -> NDArray[np.bool_]:
    """Which columns only grow, or only fall."""
    steps = np.sign(np.diff(points, axis=0))
    one_way = (steps >= 0.0).all(axis=0) | (steps <= 0.0).all(axis=0)
    ticks: NDArray[np.bool_] = np.count_nonzero(steps, axis=0) >= TICKS - 1
    return one_way & ticks
