"""Any learner on raw units: the first rows tell the scales, which are then kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import (
    Matrix,
    ReadVector,
    Vector,
    as_points,
    as_row_values,
    as_scalar,
    require_flag,
    require_integer,
    require_number,
)
from kons.compilation import compiled
from kons.errors import ConfigurationError, InputError, TargetError, notice
from kons.learners.classifier import best_of, probabilities_of, scores_of
from kons.learners.embedded import FLOAT64
from kons.learners.labels import Labels, as_labels, object_array
from kons.learners.stream import Outputs, Wrapper
from kons.learners.trace import Trace
from kons.learners.warmup import Majority, WarmUp
from kons.losses import Logistic, Loss, SquaredHinge
from kons.means import Mean, Means
from kons.policies import Fixed
from kons.scaling import RobustScaling, TargetScaling, median_bandwidth
from kons.state import Count, Field, Inner, Sizes, fields
from kons.stored import Stored

__all__ = ["Scaled"]

# Times the median distance: what did best over seven public regression sets, 1 and 2 being near.
WIDER = 1.5
# Of the target: smaller, and the scale of a target would be no number.
SMALLEST_REACH = 1e-320
# Of a target: its squared error is still a number.
LARGEST_TARGET = 1e150


class _Scales(Field):
    """Of features, where these are scaled and the warm-up is over; else None."""

    def save(self, part: Any, name: str) -> Any:
        scaling = getattr(part, name)
        return None if scaling is None else scaling.state()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part._warm is not None or not part._scales:
            stored.nothing(key)
            return None
        return RobustScaling.from_stored(stored.inner(key), sizes["width"] or 1)


class _Warm(Inner):
    """Of as many targets as a row has, which was loaded before."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        part._warm = part._new_warmup()
        return super().load(stored, key, part, name, sizes)


class _TargetScale(Field):
    """Centre and reach of each target."""

    def save(self, part: Any, name: str) -> Any:
        return np.array([part._target.centre, part._target.reach])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        several = part._outputs and part._warm is None
        centre, reach = stored.array(key, 2, *([part._outputs] if several else []))
        if np.min(reach) < SMALLEST_REACH:
            raise stored.error(f"the reach of its target is {np.min(reach):g}")
        return TargetScaling(centre, reach) if several else TargetScaling(float(centre), float(reach))


class _Bandwidths(Field):
    """By distances and by absolute ones, where they were to be found and the warm-up is over; else None."""

    def save(self, part: Any, name: str) -> Any:
        bandwidths = getattr(part, name)
        return None if bandwidths is None else np.array(bandwidths)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part._warm is not None or part._resolved:
            stored.nothing(key)
            return None
        return tuple(stored.array(key, 2, at_least=1e-300).tolist())


class _Resolved(Field):
    """The learner in scaled units, made of all that was found in the warm-up; None before its end."""

    def save(self, part: Any, name: str) -> Any:
        inner = getattr(part, name)
        return None if inner is None else inner.state()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if part._warm is not None:
            stored.nothing(key)
            return None
        return part._in_scaled_units().resume(stored.take(key))


class Scaled(Wrapper):
    """Features and targets in any units: what the learner needs is read off the first rows.

    ::

        rows 1 .. warmup     kept; predicted by the mean (or majority) of the rows before
        then, once           median and interquartile range of each feature, median and reach of the
                             target, 1.5 median distances for bandwidth="auto"; the rows kept are learned
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
        _warm=_Warm(ends=True),
        _features=_Scales(),
        _target=_TargetScale(),
        _bandwidths=_Bandwidths(),
        _inner=_Resolved(),
    )

    def __init__(
        self,
        learner: Any,
        warmup: int = 500,
        *,
        margin: float | None = None,
        scale_features: bool = True,
    ) -> None:
        super().__init__(learner, "one such as EmbeddedKONS(...), or a Classifier of it")
        pattern = self._pattern
        if pattern.labelled and "scores" not in pattern.trace_columns:
            raise ConfigurationError(
                f"{pattern.name} predicts labels, expected a learner of numbers, in a kons.Classifier."
            )
        self.warmup = require_integer(warmup, "warmup", at_least=1)
        self.margin = None if margin is None else require_number(margin, "margin", at_least=0.0, at_most=1e6)
        self.scale_features = require_flag(scale_features, "scale_features")
        self._labelled = pattern.labelled
        self.task = "classification" if self._labelled else "regression"
        self.closed: bool = pattern.closed
        self._bound: float = pattern.core.bound
        self._room = 0.2 if pattern.core.second_order == "gradient" else 1.0
        if self.margin is not None:
            self._room = self.margin
        # A learner of one problem whose targets are -1 and +1 already.
        self._signs = not self._labelled and _takes_labels(pattern.loss)
        self._targets_clipped = 0
        self._inner: Any = None
        self._features: RobustScaling | None = None
        self._target: TargetScaling = TargetScaling()
        self._bandwidths: tuple[float, float] | None = None
        self._warm: WarmUp | None = self._new_warmup()

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
        row = self._row(x)
        if self._labelled:
            self._inner.learn_one(row, y)
        elif self._outputs:
            targets = self._target.scale(self._as_targets([y], 1)[0])
            targets, outside = self._clipped(targets)
            self._inner.learn_one(row, targets.tolist())
            self._targets_clipped += outside
        elif self._signs:
            self._inner.learn_one(row, as_scalar(y, name="y"))
        else:
            if not (isinstance(y, float) and abs(y) <= LARGEST_TARGET):
                y = self._as_targets([y], 1)[0]
            y = float(y)
            target, outside = self._target.scale(y), 0
            if not abs(target) <= self._bound:
                target, outside = self._clipped(target)
            self._inner.learn_one(row, float(target))
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
        ``samples``, some rows of the new columns only, in raw units. See :meth:`StreamConsumer.widen`.

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
                scaling, values = scaling.beside(RobustScaling.fit(rows)), np.median(rows, axis=0)
            self._inner.widen(columns)
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
            return self._labels_of(self._scores(points))
        if self._warm is not None:
            mean = np.asarray(self._running_mean())
            return np.broadcast_to(mean, (len(points), *mean.shape)).copy()
        predictions: NDArray[Any] = self._target.unscale(self._inner.predict(self._scaled(points)))
        return predictions

    def predict_one(self, x: Any) -> Any:
        """The prediction for one row; of a label, None before any class is known."""
        if self._warm is None:
            value = self._inner.predict_one(self._row(x))
            return value if self._labelled else self._target.unscale(value)
        self._as_point(x)
        if not self._labelled:
            return self._running_mean()
        known = self.classes
        return known[int(np.argmax(self._shares()))] if known else None

    def decision_function(self, X: Any) -> Matrix:
        """The score of each row and class, columns in the order of :attr:`classes`."""
        self._require_classes()
        return self._scores(self._as_points(X))

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, columns in the order of :attr:`classes`; shares in the warm-up."""
        return self.probabilities(self.decision_function(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class of one row; empty before any class is known."""
        self._require_classes()
        if self._warm is None:
            probabilities: dict[Any, float] = self._inner.predict_proba_one(self._row(x))
            return probabilities
        points = self._as_point(x)
        if not self.classes:
            return {}
        return dict(zip(self.classes, self.probabilities(self._scores(points))[0].tolist(), strict=True))

    def probabilities(self, scores: Matrix) -> Matrix:
        """What :meth:`predict_proba` makes of scores; 0 where a score is NaN."""
        self._require_classes()
        return probabilities_of(scores, self.loss)

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        self._require_classes()
        if self._warm is not None:
            return list(self._warm_labels().known)
        known: list[Any] = self._inner.classes
        return known

    # ---- looking

    @property
    def multi_output(self) -> bool:  # type: ignore[override]
        """Whether the learner takes y of shape (n, k)."""
        return bool(self._pattern.multi_output)

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

    def novelty(self, X: Any) -> Vector:
        """How new each point is, where the learner knows; NaN in the warm-up."""
        points = self._as_points(X)
        if self._warm is not None:
            return np.full(len(points), np.nan)
        novelty: Vector = self._inner.novelty(self._scaled(points))
        return novelty

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {
            "learner": self.learner,
            "warmup": self.warmup,
            "margin": self.margin,
            "scale_features": self.scale_features,
        }

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
        known = self._pattern.classes if self._labelled else []
        if self._labelled:
            return WarmUp(self.accepts, Majority(Labels(known)))
        outputs = self._outputs or 0
        return WarmUp(self.accepts, Means(outputs) if outputs else Mean(), outputs)

    def _begin(self, targets: Any) -> None:
        """The first row says how many targets there are."""
        if self._outputs is not None:
            return
        self._outputs = 0 if self._labelled or targets.ndim == 1 else targets.shape[1]
        if self._outputs:
            if not self._pattern.multi_output:
                raise ConfigurationError(
                    f"{self._pattern.name} learns one target a row, and y has {self._outputs}: use "
                    "EmbeddedKONS, KONS or SketchedKONS, or make a learner for each."
                )
            self._warm = self._new_warmup()

    def _warm_up(self, points: Any, targets: Any, weights: Vector) -> Trace:
        """Keep rows, at most as many as the warm-up still takes; at its end, learn them."""
        warm, count = self._warm, len(points)
        assert warm is not None
        unknown = np.full(count, np.nan)
        columns: dict[str, Any] = {name: unknown.copy() for name in self._pattern.trace_columns}
        if isinstance(warm.record, Majority):
            codes = self._codes(targets, warm.record.labels)
            shares = warm.take(points, codes, weights)
            columns["scores"] = scores_of(shares, self.loss, self._bound)
            best = best_of(shares)
            columns["prediction"] = warm.record.labels.decode(best)
            columns["loss"] = weights * (best != codes)
        else:
            predictions = warm.take(points, targets, weights)
            columns["prediction"] = predictions
            columns["loss"] = weights * self._losses(predictions, targets)
        self._count(points, 0)
        size = np.zeros(count, np.int64)
        if self._rows_seen == self.warmup:
            self._end_warmup(warm)
            size[-1] = self.size
        return Trace(kept=np.zeros(count, np.bool_), size=size, **columns)

    def _end_warmup(self, warm: WarmUp) -> None:
        """Find the scales, make the learner, and let it learn what was kept."""
        points: Any = warm.points.view
        weights = warm.weights
        if self.accepts == "vectors":
            if self._scales:
                self._features = warm.scaling()
            points = self._scaled(points)
            warm.forget_unknown(points)
            if not self._resolved:
                plain = median_bandwidth(points, weights=weights)
                absolute = median_bandwidth(points, absolute=True, weights=weights)
                self._bandwidths = WIDER * plain, WIDER * absolute
        targets: Any = warm.targets
        if isinstance(warm.record, Majority):
            targets = warm.record.labels.decode(targets)
        elif not self._signs:
            self._target = TargetScaling.fit(targets, self._room, self._bound, weights)
            targets = self._target.scale(targets)
        inner = self._in_scaled_units()
        inner.advance(points, targets, sample_weight=weights)
        self._inner, self._warm = inner, None

    @property
    def _resolved(self) -> bool:
        """Whether no bandwidth is to be found."""
        return self.kernel is None or bool(self.kernel.is_resolved)

    def _in_scaled_units(self) -> Any:
        """A new learner of the pattern's kind, with all that was found in the warm-up."""
        move = None if self._features is None else lambda atoms: self._scaled(self._as_points(atoms))
        return self._pattern.anew(self._bandwidths, move)

    # ---- inside: behind it

    def _advance(self, points: Any, targets: Any, weights: Vector, block_size: int | None) -> Trace:
        """Rows behind the warm-up."""
        if self._labelled:
            trace: Trace = self._inner.advance(self._scaled(points), targets, block_size, weights)
            self._count(points, 0)
            return trace
        scaled, outside = self._clipped(self._target.scale(targets))
        trace = self._inner.advance(self._scaled(points), scaled, block_size, weights)
        self._targets_clipped += outside
        self._count(points, 0)
        predictions = self._target.unscale(trace["prediction"])
        return replace(trace, prediction=predictions, loss=weights * self._losses(predictions, targets))

    def _clipped(self, scaled: Any) -> tuple[Any, int]:
        """Scaled targets within the bound, and how many were not."""
        if self._signs:
            return scaled, 0
        outside = int(np.count_nonzero(np.abs(scaled) > self._bound * (1.0 + 1e-9)))
        if outside:
            low, high = (self._target.unscale(end) for end in (-self._bound, self._bound))
            if self._outputs:
                at = np.argwhere(np.abs(scaled) > self._bound * (1.0 + 1e-9))[0][-1]
                low, high = low[at], high[at]
            notice(
                "Scaled target",
                f"a target lies outside [{low:g}, {high:g}], what the warm-up of {self.warmup:,} rows and "
                "margin leave room for: it is clipped for learning, and counted in targets_clipped. If there "
                "are many, raise margin or warmup.",
            )
        return np.clip(scaled, -self._bound, self._bound), outside

    def _losses(self, predictions: Vector, targets: Vector) -> Any:
        """In units of the target, whatever is learned; for labels -1 and +1, the learner's own loss."""
        if self._signs:
            losses = self.loss.value(np.clip(predictions, -self._bound, self._bound), targets)
        else:
            losses = (predictions - targets) ** 2
        return losses.sum(axis=1) if self._outputs else losses

    # ---- inside: both

    @property
    def _scales(self) -> bool:
        return self.scale_features and bool(self.accepts == "vectors")

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
        point = self._as_point(x)[0]
        return point if self._features is None else self._features.transform(point)

    def _as_targets(self, y: Any, rows: int) -> Any:
        if self._labelled:
            return as_labels(y, rows)
        targets = self._as_outputs(y, rows)
        if self._signs:
            self.loss.check_targets(targets, self._bound)
        elif np.abs(targets).max() > LARGEST_TARGET:
            at = np.unravel_index(np.argmax(np.abs(targets)), targets.shape)
            where = "".join(f"[{i}]" for i in at)
            raise TargetError(
                f"y{where} is {targets[at]:g}, whose square is no number: scale the target down."
            )
        return targets

    def _codes(self, labels: list[Any], known: Labels) -> Vector:
        before = len(known)
        codes = known.learn(labels)
        if self.closed and len(known) > before:
            raise InputError(f"y holds {known.known[before]!r}, which is not among {known.known[:before]!r}.")
        return codes.astype(np.float64)

    def _scores(self, points: Any) -> Matrix:
        if self._warm is None:
            scores: Matrix = self._inner.decision_function(self._scaled(points))
            return scores
        if not self.classes:
            raise InputError("no class is known yet: learn some rows first.")
        return np.repeat(scores_of(self._shares(), self.loss, self._bound), len(points), axis=0)

    def _labels_of(self, scores: Matrix) -> NDArray[Any]:
        return object_array(self.classes)[best_of(scores)]

    def _running_mean(self) -> Any:
        assert self._warm is not None
        assert isinstance(self._warm.record, (Mean, Means))
        mean = self._warm.record.value
        if not self._signs:
            return mean
        clipped = np.clip(mean, -self._bound, self._bound)
        return clipped if self._outputs else float(clipped)

    def _warm_labels(self) -> Labels:
        assert self._warm is not None
        assert isinstance(self._warm.record, Majority)
        return self._warm.record.labels

    def _shares(self) -> Matrix:
        assert self._warm is not None
        assert isinstance(self._warm.record, Majority)
        return self._warm.record.probabilities

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


@compiled
def scale_row(x: ReadVector, medians: Vector, spreads: Vector, limit: float, z: Vector) -> bool:
    """As RobustScaling.transform, in a microsecond. False: not finite, or beyond the linear part."""
    for j in range(len(x)):
        z[j] = (0.5 * x[j] - medians[j]) / spreads[j]
        if not (np.isfinite(x[j]) and abs(z[j]) <= limit):
            return False
    return True


def _takes_labels(loss: Loss | None) -> bool:
    return isinstance(loss, (Logistic, SquaredHinge)) or getattr(loss, "targets", None) is not None
