"""The feature maps in use, selected by leave-one-out errors: each at least as good as the one before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

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
from kons.learners.auto.schedule import CHUNK, EARLY, SETTLED
from kons.learners.auto.spec import STEADY, ExpertSpec
from kons.scaling import RobustScaling
from kons.state import Part

__all__ = ["FeatureMaps", "Key", "Search"]

Key = tuple[bool, str]
"""With or without the last targets, and the name of a scaling."""


class FeatureMaps(Part):
    """One feature map for each of with and without the last targets, and for each scaling.

    They are replaced, never changed, and so are the tables of them.
    """

    fixed: Fixed
    knots: int

    def __init__(self, fixed: Fixed, knots: int) -> None:
        self.fixed, self.knots = fixed, knots
        self.current: dict[Key, FeatureMap] = {}
        #: The scaling with the smaller error, with and without the last targets.
        self.better: dict[bool, str] = {False: "robust", True: "robust"}

    def key(self, spec: ExpertSpec) -> Key:
        """Which feature map a spec takes."""
        better = self.better[spec.lags]
        chosen = _other(better) if spec.alternative else better
        return spec.lags, "robust" if spec.kernel == "linear" else chosen

    def refit_best(self, search: Search, *, anew: bool) -> None:
        """Refit the one without last targets in the better scaling, or find another, if asked."""
        key = False, self.better[False]
        self._refit(key, search)
        if anew:
            self._start_anew(key, search)

    def refit_others(self, search: Search) -> None:
        """Refit the others in use, and compare scalings."""
        if self._refit((False, _other(self.better[False])), search):
            self._compare(lags=False)
        searched = [self._refit((True, name), search) for name in SCALINGS]
        if all(searched):
            self._compare(lags=True)

    def follow(self, lags: bool, before: Search, last: Search) -> None:
        """Refit the better one by rows ``before`` the last, if of the ``last`` it then tells clearly more.

        In turn from the metric as it is, and from the uniform one: what does not matter any more hides what
        does. By rows side by side both would be judged by what they know of this hour, and the new one wins.
        """
        key = lags, self.better[lags]
        old, now = self.current.get(key), before.now
        if old is None or (old.flags, old.features) != (now.flags, now.layout.width):
            return
        scaling, atoms = self._scaling(key, before), COMPARED_ATOMS // 2
        start = old if now.rows // (2 * SETTLED) % 2 else None
        found = before.learn_metric(start, scaling, lags, self.fixed, atoms, 1)
        stays, follows = (
            last.learn_metric(each, each.scaling, lags, self.fixed, atoms, 0).error for each in (old, found)
        )
        if follows < 0.95 * stays:
            self._put(key, found, now)

    def _compare(self, lags: bool) -> None:
        """Choose the better scaling, of two that were just searched for."""
        self.better = {**self.better, lags: min(SCALINGS, key=lambda name: self.current[lags, name].error)}

    def _refit(self, key: Key, search: Search) -> bool:
        """Refit one, if it is in use; whether it was searched for."""
        (lags, name), now, specs = key, search.now, search.pool.specs
        rows, layout = now.rows, now.layout
        old = self.current.get(key)
        widened = old is not None and old.features < layout.width
        wanted = {self.key(spec) for spec in specs if not spec.alternative and spec.kernel != "linear"}
        # Later the scaling that lost is left alone, unless there are new features.
        used = any(spec.lags == lags for spec in specs)
        if not used or not (rows < SETTLED or widened or key in wanted):
            return False
        scaling, X = self._scaling(key, search), search.columns(lags)
        if rows < STEADY.start:  # only linear experts are there
            self._put(key, FeatureMap(scaling, uniform_metric(X.shape[1])), now)
            return False
        if now.rare:  # so few rows of other classes tell too little for a search
            self._put(key, self._broad(scaling, X, search.random), now)
            return False
        known = old is not None and old.flags == now.flags and old.features == layout.width
        early = rows <= 2 * STEADY.start
        first = early or not known
        if first:
            old = self._from_fewer_columns(key, X.shape[1]) if lags or not early else None
        leads = not lags and (rows < SETTLED or name == self.better[lags])
        # The first metrics are far from good and cheap to move; classes tell too little for that.
        steps = 8 if rows <= 128 and not layout.classes else 4 if rows < EARLY else 2
        if rows == STEADY.start or not leads:
            steps = 1
        if lags and not first:
            steps = 2
        gradients = None  # of the Gaussian kernel they are known
        if not first and old is not None and rows >= SETTLED and self.fixed.kernel is None:
            gradients = search.pool.gradients(old, search.kept, layout, search.random)
        if gradients is not None and not lags:
            steps = 1
        atoms = COMPARED_ATOMS if leads else COMPARED_ATOMS // 2
        found = search.learn_metric(old, scaling, lags, self.fixed, atoms, steps, gradients=gradients)
        self._put(key, found, now)
        return True

    def _start_anew(self, key: Key, search: Search) -> None:
        """Once more from the uniform metric, and, where that leads nowhere, from what columns tell.

        Whatever was found on few rows is not the best there is.
        """
        now, rows, best = search.now, search.now.rows, self.current.get(key)
        if best is None or now.rare or rows < 2 * CHUNK or best.features != now.layout.width:
            return
        for at_first_sight in [False] * (rows >= EARLY) + [True] * (rows < 2 * SETTLED):
            if at_first_sight and best.error < 0.5:
                continue
            fresh = search.learn_metric(
                None, best.scaling, key[0], self.fixed, COMPARED_ATOMS, 2, at_first_sight=at_first_sight
            )
            # Clearly: it starts anew; and chance can do more at first sight.
            if fresh.error < (0.8 if at_first_sight else 0.98) * best.error:
                best = fresh
                self._put(key, fresh, now)

    def _scaling(self, key: Key, search: Search) -> Scaling:
        raw = search.now.layout.raw_features(search.kept, key[0], search.now.flags)
        return QuantileScaling.fit(raw, self.knots) if key[1] == "quantile" else RobustScaling.fit(raw)

    def _put(self, key: Key, feature_map: FeatureMap, now: ChunkEnd) -> None:
        new = replace(feature_map, flags=now.flags, features=now.layout.width)
        self.current = {**self.current, key: new}

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


def _other(scaling: str) -> str:
    return next(name for name in SCALINGS if name != scaling)


class Search:
    """The rows by which feature maps are found: ``some`` of those kept."""

    now: ChunkEnd
    kept: Matrix
    pool: ExpertPool
    random: np.random.Generator

    def __init__(
        self, now: ChunkEnd, kept: Matrix, some: Matrix, pool: ExpertPool, random: np.random.Generator
    ) -> None:
        self.now, self.kept, self.pool, self.random = now, kept, pool, random
        weights = now.layout.weights(some)
        self._some, self._roots = some, np.sqrt(weights)
        Y = now.layout.outputs(some, now.outputs)
        self._Y = _normalized(Y / now.layout.units(Y, weights), weights)

    def columns(self, lags: bool) -> Matrix:
        """Of some rows, with or without the last targets."""
        return self.now.layout.raw_features(self._some, lags, self.now.flags)

    def learn_metric(
        self,
        old: FeatureMap | None,
        scaling: Scaling,
        lags: bool,
        fixed: Fixed,
        atoms: int,
        steps: int,
        **options: Any,
    ) -> FeatureMap:
        """See :func:`~kons.learners.auto.feature_map.learn_metric`."""
        return learn_metric(
            old,
            scaling,
            self.columns(lags),
            self._Y,
            self._roots,
            fixed,
            atoms=atoms,
            steps=steps,
            random=self.random,
            **options,
        )


def _normalized(Y: Matrix, weights: Matrix) -> Matrix:
    """Around 0, with variance 1 over all outputs; 0 where all targets are alike but for rounding."""
    size = float(np.abs(Y).max())
    Y = Y - np.average(Y, axis=0, weights=weights)
    deviation = math.sqrt(float(np.average(np.sum(Y**2, axis=1), weights=weights)))
    # Deviations below this part of the targets' size are the rounding of their mean.
    return Y / deviation if deviation > 1e-14 * size else np.zeros(Y.shape)
