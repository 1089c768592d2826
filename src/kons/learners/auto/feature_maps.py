"""The feature maps in use, selected by leave-one-out errors: each at least as good as the one before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from kons.arrays import Matrix
from kons.learners.auto.feature_map import (
    COMPARED_ATOMS,
    SCALINGS,
    FeatureMap,
    Fixed,
    Scaling,
    half_median_distance,
    learn_metric,
    uniform_metric,
)
from kons.learners.auto.metric_learning import relevances
from kons.learners.auto.pool import ExpertPool
from kons.learners.auto.quantile_scaling import QuantileScaling
from kons.learners.auto.rows import ChunkEnd
from kons.learners.auto.schedule import CHUNK, EARLY, LATE, SETTLED
from kons.learners.auto.spec import STEADY, ExpertSpec
from kons.scaling import RobustScaling
from kons.state import Part

__all__ = ["FeatureMaps", "Key"]

Key = tuple[bool, str]
"""With or without the last targets, and the name of a scaling."""


class FeatureMaps(Part):
    """One feature map for each of with and without the last targets, and for each scaling.

    They are replaced, never changed, and so are the tables of them.
    """

    def __init__(self, fixed: Fixed, knots: int) -> None:
        self.fixed, self.knots = fixed, knots
        self.current: dict[Key, FeatureMap] = {}
        #: The scaling with the smaller error, with and without the last targets.
        self.better: dict[bool, str] = {False: "robust", True: "robust"}

    def key(self, spec: ExpertSpec) -> Key:
        """Which feature map a spec takes."""
        better = self.better[spec.lags]
        other = next(name for name in SCALINGS if name != better)
        return spec.lags, "robust" if spec.kernel == "linear" else other if spec.alternative else better

    def refit(
        self,
        now: ChunkEnd,
        sought: Sequence[bool],
        kept: Matrix,
        some: Matrix,
        pool: ExpertPool,
        random: np.random.Generator,
    ) -> None:
        """Refit the feature maps in use, those sought with or without the last targets.

        Scalings are read off the rows ``kept``, everything else off ``some`` of them, all with weights above
        0.
        """
        rows, layout, flags, specs = now.rows, now.layout, now.flags, pool.specs
        weights = layout.weights(some)
        roots = np.sqrt(weights)
        Y = _normalized(layout.outputs(some, now.outputs), weights)
        seen = {spec.lags for spec in specs}
        wanted = {self.key(spec) for spec in specs if not spec.alternative and spec.kernel != "linear"}
        for lags in sought:
            errors = {}
            for name in SCALINGS:
                key = (lags, name)
                old = self.current.get(key)
                widened = old is not None and old.features < layout.width
                # Later the scaling that lost is left alone, unless there are new features.
                if lags not in seen or not (rows < SETTLED or widened or key in wanted):
                    continue
                columns = layout.raw_features(some, lags, flags)
                raw = layout.raw_features(kept, lags, flags)
                scaling = (
                    QuantileScaling.fit(raw, self.knots) if name == "quantile" else RobustScaling.fit(raw)
                )
                if rows < STEADY.start:  # only linear experts are there
                    metric = uniform_metric(columns.shape[1])
                    self._put(key, FeatureMap(scaling, metric, flags=flags, features=layout.width))
                    continue
                if now.rare:  # so few rows of other classes tell too little for a search
                    self._put(
                        key,
                        replace(self._broad(scaling, columns, random), flags=flags, features=layout.width),
                    )
                    continue
                known = old is not None and old.flags == flags and old.features == layout.width
                early = rows <= 2 * STEADY.start
                first = early or not known
                if first:
                    old = self._from_fewer_columns(key, columns.shape[1]) if lags or not early else None
                leads = not lags and (rows < SETTLED or name == self.better[lags])
                better = partial(
                    learn_metric,
                    scaling=scaling,
                    X=columns,
                    Y=Y,
                    roots=roots,
                    fixed=self.fixed,
                    atoms=COMPARED_ATOMS if leads else COMPARED_ATOMS // 2,
                    random=random,
                )
                # The first metrics are far from good and cheap to move; classes tell too little for that.
                steps = 8 if rows <= 128 and not layout.classes else 4
                if rows == STEADY.start or not leads:
                    steps = 1
                if lags and not first:
                    steps = 2
                gradients = None  # of the Gaussian kernel they are known
                if not first and old is not None and rows >= SETTLED and self.fixed.kernel is None:
                    gradients = pool.gradients(old, kept, layout, random)
                if gradients is not None and not lags:
                    steps = 1
                feature_map = better(old, steps=steps, gradients=gradients)
                # Whatever was found on few rows: once more from the uniform metric, and, where that leads
                # nowhere, from what columns tell at first sight.
                starts = [False] * (rows in (EARLY, SETTLED, LATE)) + [True] * (CHUNK < rows <= SETTLED)
                for at_first_sight in starts if leads and name == self.better[lags] else ():
                    if at_first_sight and feature_map.error < 0.5:
                        continue
                    fresh = better(None, steps=2, at_first_sight=at_first_sight)
                    # Clearly: it starts anew; and chance can do more at first sight.
                    if fresh.error < (0.8 if at_first_sight else 0.98) * feature_map.error:
                        feature_map = fresh
                self._put(key, replace(feature_map, flags=flags, features=layout.width))
                errors[name] = feature_map.error
            if errors:
                self.better = {**self.better, lags: min(errors, key=lambda name: errors[name])}

    def _put(self, key: Key, feature_map: FeatureMap) -> None:
        self.current = {**self.current, key: feature_map}

    def _broad(self, scaling: Scaling, X: Matrix, random: np.random.Generator) -> FeatureMap:
        """All features alike, twice the usual bandwidth and 16 times the usual regularization: no search."""
        metric, ratio = uniform_metric(X.shape[1]), 2.0
        bandwidth = ratio * half_median_distance(scaling.transform(X), metric, random)
        return FeatureMap(scaling, metric, bandwidth, ratio, self.fixed.regularization or 1.6)

    def _from_fewer_columns(self, key: Key, width: int) -> FeatureMap | None:
        """A feature map of more columns starts from that of fewer, new columns counting like the best."""
        plain = self.current.get((False, key[1]))
        if plain is None:
            return None
        metric = uniform_metric(width)
        features = plain.features
        if metric.ndim == 1:
            metric[:features] = relevances(plain.metric)
        else:
            metric[:features, :features] = plain.metric
        return replace(plain, metric=metric)


def _normalized(Y: Matrix, weights: Matrix) -> Matrix:
    """Around 0, with variance 1 over all outputs; 0 where all targets are alike but for rounding."""
    size = float(np.abs(Y).max())
    Y = Y - np.average(Y, axis=0, weights=weights)
    deviation = math.sqrt(float(np.average(np.sum(Y**2, axis=1), weights=weights)))
    # Deviations below this part of the targets' size are the rounding of their mean.
    return Y / deviation if deviation > 1e-14 * size else np.zeros(Y.shape)
