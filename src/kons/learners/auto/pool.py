"""The expert pool: a slot for each spec, with an expert and its feature map once it is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.kernels import Gaussian, Kernel, Laplace, Linear
from kons.learners.auto.expert import SpanRidge
from kons.learners.auto.feature_map import CachedFeatures, FeatureMap, Fixed, uniform_metric
from kons.learners.auto.logistic import SpanLogistic
from kons.learners.auto.metric_learning import mean_gradients, relevances
from kons.learners.auto.neighbour_metric import Setting, fit_neighbours
from kons.learners.auto.neighbours import Neighbours
from kons.learners.auto.rows import LARGEST_TARGET, Layout
from kons.learners.auto.spec import BASELINES, LAST, MEAN, STEADY, TREND, ExpertSpec, has_trend
from kons.stored import Stored

__all__ = ["Expert", "ExpertPool", "Slot", "fit_expert", "searched_on"]

NOBODY = np.empty((0, 0))

Expert = SpanRidge | Neighbours


@dataclass
class Slot:
    """A spec, and once it is fitted its expert and feature map."""

    spec: ExpertSpec
    expert: Expert | None = None
    feature_map: FeatureMap | None = None


class ExpertPool:
    """Slots in order. Features are computed once for all experts that share a feature map."""

    def __init__(self, specs: Sequence[ExpertSpec]) -> None:
        self.slots: list[Slot] = [Slot(spec) for spec in specs]

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def specs(self) -> list[ExpertSpec]:
        """Of all slots."""
        return [slot.spec for slot in self.slots]

    @property
    def steady(self) -> Slot | None:
        """The one that is never pruned, once it is fitted."""
        return next((slot for slot in self.slots if slot.spec == STEADY and slot.expert is not None), None)

    @property
    def experts(self) -> list[Expert]:
        """Those that were fitted."""
        return [slot.expert for slot in self.slots if slot.expert is not None]

    @property
    def pending(self) -> set[int]:
        """How many rows of this chunk experts have learned."""
        return {expert.pending for expert in self.experts}

    @property
    def columns_with_lags(self) -> list[int]:
        """Of F: the last target, and the experts that take it as a feature."""
        return [LAST, *(i + BASELINES for i, spec in enumerate(self.specs) if spec.lags)]

    @property
    def logistic_column(self) -> int | None:
        """Of F: the expert with the logistic loss, if it was fitted."""
        fitted = (i for i, slot in enumerate(self.slots) if slot.spec.logistic and slot.expert is not None)
        return next((i + BASELINES for i in fitted), None)

    def advance(
        self,
        rows: Matrix,
        learned: Matrix | None,
        Y: Matrix,
        roots: Vector,
        known: NDArray[np.int64],
        layout: Layout,
        F: Matrix,
    ) -> None:
        """Fill in what each expert predicts, from column TREND on, and let it learn.

        ``learned`` are the rows with targets Y and roots of weights, None if they are those predicted;
        ``known`` says how many of them are known before each row.
        """
        here, there = (
            CachedFeatures(rows, layout),
            None if learned is None else CachedFeatures(learned, layout),
        )
        F[:, TREND] = 0.0 if layout.classes else F[:, MEAN]
        for i, slot in enumerate(self.slots):
            if slot.expert is None or slot.feature_map is None:
                continue
            lags = slot.spec.lags
            # Nothing is asked of rows that are learned again.
            U = here.coordinates(slot.feature_map, lags) if len(rows) else NOBODY
            U_learned = None if there is None else there.coordinates(slot.feature_map, lags)
            _put(F, i, slot.expert.advance(U, U_learned, Y, roots, known))
        if len(rows):
            self._fill_up(F, [slot.expert is not None for slot in self.slots])

    def predict(self, rows: Matrix, layout: Layout, F: Matrix, *, lags: bool) -> None:
        """Fill in what each expert would predict, with ``lags`` also by last targets. Changes nothing."""
        F[:, TREND] = 0.0 if layout.classes else F[:, MEAN]
        asked, seen = [], CachedFeatures(rows, layout)
        for i, slot in enumerate(self.slots):
            asks = slot.expert is not None and (lags or not slot.spec.lags)
            asked.append(asks)
            if asks and slot.expert is not None and slot.feature_map is not None:
                _put(F, i, slot.expert.predict(seen.coordinates(slot.feature_map, slot.spec.lags)))
        self._fill_up(F, asked)

    def _fill_up(self, F: Matrix, asked: list[bool]) -> None:
        """Experts that were not asked predict the mean of the others; if none was, that of the targets."""
        if all(asked):
            return
        present = [i + BASELINES for i, is_asked in enumerate(asked) if is_asked]
        absent = [i + BASELINES for i, is_asked in enumerate(asked) if not is_asked]
        F[:, absent] = np.mean(F[:, present or [MEAN]], axis=1, keepdims=True)

    def gradients(
        self, feature_map: FeatureMap, rows: Matrix, layout: Layout, random: np.random.Generator
    ) -> Matrix | None:
        """The average gradient outer product of an expert that has learned all rows in this feature map.

        Over 512 of these rows; None if there is no such expert. It knows more rows, with more atoms, than a
        fit of the search: without it the loss on ``casp`` was 5 % larger.
        """
        for slot in self.slots:
            plain = slot.spec.kernel == "gaussian" and not slot.spec.memory
            if plain and isinstance(slot.expert, SpanRidge) and slot.feature_map is feature_map:
                expert, sample = slot.expert, rows[random.permutation(len(rows))[:512]]
                U = CachedFeatures(sample, layout).coordinates(feature_map, slot.spec.lags)
                units = layout.units(layout.outputs(rows, expert.outputs), layout.weights(rows))
                theta, metric = expert.coefficients() / units, feature_map.metric
                return mean_gradients(
                    U, expert.atoms, expert.features(U), theta, feature_map.bandwidth, metric
                )
        return None

    def end_chunk(self, refit: bool, *, rare: bool) -> None:
        """Let them start the next chunk.

        Where a class is rare each of its rows counts, and the logistic expert does not wait for a refit.
        """
        steady = None if self.steady is None else self.steady.expert
        trend = _bounded(steady.before_period()) if isinstance(steady, SpanRidge) else None
        for expert in self.experts:
            if isinstance(expert, Neighbours):
                expert.end_period(trend)
            else:
                expert.end_period(refit or (rare and isinstance(expert, SpanLogistic)))

    def add_output(self) -> None:
        """A class more."""
        for expert in self.experts:
            expert.add_output()

    def remove(self, columns: Sequence[int]) -> None:
        """Without the slots of these columns of F."""
        self.slots = [slot for i, slot in enumerate(self.slots) if i + BASELINES not in columns]

    @property
    def size(self) -> int:
        """The atoms of all experts."""
        return sum(len(expert.atoms) for expert in self.experts)

    # ---- going back, and on from a file

    def mark(self) -> Any:
        """Where they stand, for :meth:`restore`."""
        return [(replace(slot), None if slot.expert is None else slot.expert.mark()) for slot in self.slots]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        self.slots = [replace(slot) for slot, _ in mark]
        for slot, where in mark:
            if slot.expert is not None:
                slot.expert.restore(where)

    def state(self, feature_maps: Sequence[FeatureMap]) -> list[Any]:
        """Everything the next row depends on, besides the specs; feature maps by their place."""
        places = {id(feature_map): place for place, feature_map in enumerate(feature_maps)}
        return [
            None
            if slot.expert is None or slot.feature_map is None
            else {
                "feature_map": places[id(slot.feature_map)],
                "bandwidth": _bandwidth(slot.expert.kernel),
                **slot.expert.state(),
            }
            for slot in self.slots
        ]

    def load_state(
        self,
        entries: Sequence[Any],
        feature_maps: Sequence[FeatureMap],
        outputs: int,
        fixed: Fixed,
        neighbours: int,
        targets: int,
    ) -> None:
        """Take what :meth:`state` saved."""
        for slot, entry in zip(self.slots, entries, strict=True):
            if entry is None:
                continue
            stored = Stored(entry, "AutoKONS, an expert")
            feature_map = feature_maps[stored.integer("feature_map", at_most=len(feature_maps) - 1)]
            bandwidth = stored.number("bandwidth", at_least=1e-150)
            width = feature_map.metric.shape[-1]
            if slot.spec.kernel == "neighbours":
                most = slot.spec.memory or neighbours
                trends = outputs * has_trend(slot.spec)
                slot.expert = Neighbours.from_stored(stored, width, outputs, most, targets, trends)
            else:
                kernel = _kernel(slot.spec, bandwidth, fixed)
                slot.expert = _class_of(slot.spec).from_stored(stored, kernel, width, outputs, targets)
            slot.feature_map = feature_map


def fit_expert(
    spec: ExpertSpec,
    feature_map: FeatureMap,
    kept: CachedFeatures,
    *,
    outputs: int,
    max_atoms: int,
    neighbours: int,
    fixed: Fixed,
    live: bool,
    random: np.random.Generator,
    other: FeatureMap | None = None,
    like: Slot | None = None,
    before: Slot | None = None,
    steady: Slot | None = None,
) -> Slot:
    """A new expert in a feature map, that has learned rows in stream order, all with weights above 0.

    Its atoms are some of the rows: of those that it remembers, if its memory is finite. Neighbours choose
    between the scaling of the feature map and the ``other`` one; those with a finite memory take what was
    found for those without, which they are ``like``; others start from what was found ``before``, and keep
    what the ``steady`` expert predicts.
    """
    rows, layout, scaled = kept.rows, kept.layout, kept.scaled(feature_map, spec.lags)
    Y, weights = layout.outputs(rows, outputs), layout.weights(rows)
    alpha, units = feature_map.regularization, layout.units(Y, weights)
    atoms = max_atoms // 2 if spec.memory else max_atoms
    if spec.kernel == "linear":
        feature_map = FeatureMap(
            feature_map.scaling,
            uniform_metric(scaled.shape[1]),
            flags=feature_map.flags,
            features=feature_map.features,
        )
        # A weight for each column: together they explain about as much of the targets, however many.
        alpha = fixed.regularization or 0.05 * scaled.shape[1]
    elif spec.logistic:
        feature_map = feature_map.with_square_root_metric(scaled, random)
    elif spec.kernel == "laplace":
        feature_map = feature_map.along_axes(scaled, Y / units, weights, fixed, random)
        alpha = feature_map.regularization
    if spec.logistic and fixed.regularization is None:
        alpha /= 16.0  # where targets go from 0 to 1, logits go from about -2 to 2
    if spec.kernel == "neighbours" and like is not None and isinstance(like.expert, Neighbours):
        assert like.feature_map is not None
        U = kept.coordinates(like.feature_map, spec.lags)
        nearest = Neighbours(U.shape[1], outputs, spec.memory, like.expert.regularization, layout.count)
        nearest.learn_past(U, Y, np.sqrt(weights))
        return Slot(spec, nearest, like.feature_map)
    if spec.kernel == "neighbours":
        maps = [feature_map]
        if other is not None and (other.flags, other.features) == (feature_map.flags, feature_map.features):
            maps.append(replace(other, metric=feature_map.metric))
        setting, nearest = fit_neighbours(
            [kept.scaled(candidate, spec.lags) for candidate in maps],
            relevances(feature_map.metric),
            Y,
            weights,
            spec.memory or neighbours,
            fixed.regularization,
            random,
            units,
            _setting_of(before, maps),
            trend_of(steady, kept, Y) if has_trend(spec) else None,
        )
        return Slot(spec, nearest, maps[setting.scaling].of_axes(setting.sizes))
    U = kept.coordinates(feature_map, spec.lags)
    # Atoms of its own: with the same ones two experts could share their kernel columns, but
    # their errors would cancel less (2 % of the loss on some sets, for some percent of the time).
    places = random.permutation(min(len(U), max(spec.memory, atoms)) if spec.memory else len(U))
    points = U[np.sort(len(U) - 1 - places[: max(atoms, 1)])]
    if spec.kernel == "linear" and U.shape[1] <= max_atoms:
        points = np.eye(U.shape[1])
    forgetting = 1.0 - 1.0 / spec.memory if spec.memory else 1.0
    offset = 0.0 if layout.classes else np.average(Y, axis=0, weights=weights)
    expert = _class_of(spec)(
        _kernel(spec, feature_map.bandwidth if fixed.bandwidth is None else fixed.bandwidth, fixed),
        points,
        alpha,
        outputs=outputs,
        offset=float(offset[0]) if isinstance(offset, np.ndarray) and layout.count == 1 else offset,
        forgetting=forgetting,
        live=(live or bool(spec.memory) or spec.kernel == "linear") and not spec.logistic,
    )
    ages = np.arange(len(rows) - 1.0, -1.0, -1.0)
    expert.learn_past(U, Y, np.sqrt(weights * forgetting**ages))
    return Slot(spec, expert, feature_map)


def searched_on(
    slot: Slot,
    kept: CachedFeatures,
    *,
    outputs: int,
    neighbours: int,
    fixed: Fixed,
    random: np.random.Generator,
    steady: Slot | None = None,
) -> Slot:
    """Neighbours without a memory after further steps of their search, which have learned all rows kept."""
    feature_map, rows, layout = slot.feature_map, kept.rows, kept.layout
    assert feature_map is not None
    Y, weights = layout.outputs(rows, outputs), layout.weights(rows)
    setting, nearest = fit_neighbours(
        [kept.scaled(feature_map, slot.spec.lags)],
        None,
        Y,
        weights,
        neighbours,
        fixed.regularization,
        random,
        layout.units(Y, weights),
        _setting_of(slot, [feature_map]),
        trend_of(steady, kept, Y) if has_trend(slot.spec) else None,
    )
    return Slot(slot.spec, nearest, feature_map.of_axes(setting.sizes))


def trend_of(steady: Slot | None, kept: CachedFeatures, Y: Matrix) -> Matrix:
    """What it predicts of rows that it has learned, or some of; their mean, if there is no such one yet."""
    if steady is None or steady.feature_map is None or not isinstance(steady.expert, SpanRidge):
        return np.repeat(Y.mean(axis=0, keepdims=True), len(Y), axis=0)
    return _bounded(steady.expert.predict(kept.coordinates(steady.feature_map, steady.spec.lags)))


def _bounded(trend: Matrix) -> Matrix:
    return np.clip(trend, -LARGEST_TARGET, LARGEST_TARGET)


def _put(F: Matrix, number: int, told: Matrix) -> None:
    """Predictions of an expert, and behind them a trend, if it tells one, in their columns of F."""
    outputs = F.shape[2]
    F[:, number + BASELINES] = told[:, :outputs]
    if told.shape[1] > outputs:
        F[:, TREND] = told[:, outputs:]


def _setting_of(before: Slot | None, maps: list[FeatureMap]) -> Setting | None:
    """Of neighbours of the same columns, in one of these feature maps."""
    if before is None or before.feature_map is None or before.expert is None:
        return None
    old = before.feature_map
    for i, new in enumerate(maps):
        if (old.flags, old.features, type(old.scaling)) == (new.flags, new.features, type(new.scaling)):
            return Setting(i, _sizes(old.metric), before.expert.regularization)
    return None


def _sizes(metric: Matrix) -> Vector:
    """Of columns in a metric without rotations."""
    return metric if metric.ndim == 1 else np.diagonal(metric).copy()


def _class_of(spec: ExpertSpec) -> type[SpanRidge]:
    return SpanLogistic if spec.logistic else SpanRidge


def _kernel(spec: ExpertSpec, bandwidth: float, fixed: Fixed) -> Kernel:
    if spec.kernel == "linear":
        return Linear()
    if fixed.kernel is not None:
        return fixed.kernel.resolved(bandwidth)
    return Gaussian(bandwidth) if spec.kernel == "gaussian" else Laplace(bandwidth)


def _bandwidth(kernel: Kernel) -> float:
    bandwidth = getattr(kernel, "bandwidth", 1.0)
    return float(bandwidth) if isinstance(bandwidth, (int, float)) else 1.0
