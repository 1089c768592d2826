"""From a row to an expert's coordinates: features, perhaps the last targets, scaled, in a metric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Matrix, Vector
from kons.kernels import Kernel, Laplace
from kons.learners.auto.metric_learning import (
    FLOOR,
    MOST_ROTATED,
    SpanFit,
    first_relevances,
    fit_span,
    moved,
    next_metric,
    relevances,
)
from kons.learners.auto.quantile_scaling import QuantileScaling
from kons.learners.auto.rows import MOST_CLASSES, Layout
from kons.scaling import RobustScaling
from kons.stored import Stored

__all__ = [
    "COMPARED_ATOMS",
    "SCALINGS",
    "CachedFeatures",
    "FeatureMap",
    "Fixed",
    "Scaling",
    "half_median_distance",
    "learn_metric",
    "median_length",
    "uniform_metric",
]

Scaling = RobustScaling | QuantileScaling
SCALINGS: dict[str, type[RobustScaling] | type[QuantileScaling]] = {
    "robust": RobustScaling,
    "quantile": QuantileScaling,
}


# Atoms that feature maps are compared with: a search makes dozens of fits, whose cost grows as the square.
COMPARED_ATOMS = 128


class Fixed(NamedTuple):
    """What the user fixed; None where it is to be found."""

    kernel: Kernel | None = None
    bandwidth: float | None = None
    regularization: float | None = None


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A scaling of the columns, a metric, and the bandwidth and regularization that go with it."""

    scaling: Scaling
    metric: Matrix
    bandwidth: float = 1.0
    ratio: float = 1.0
    """The bandwidth in units of half the median distance."""
    regularization: float = 0.1
    error: float = 1.0
    """Leave-one-out, in units of the target's variance."""
    flags: int = 0
    """Columns that each of the last targets takes, of more than two classes."""
    features: int = 0
    """How many features it knows: those that came later are not seen until it is refitted."""

    def with_square_root_metric(self, scaled: Matrix, random: np.random.Generator) -> FeatureMap:
        """Half way back to features that count alike; the bandwidth is in the same units, of these rows.

        For logistic regression: with the whole metric its error on ``cod-rna`` was 3 % larger.
        """
        sizes = np.abs(self.metric) if self.metric.ndim == 1 else np.sqrt(np.sum(self.metric**2, axis=0))
        metric = self.metric / np.sqrt(sizes)
        bandwidth = self.ratio * half_median_distance(scaled, metric, random)
        return replace(self, metric=metric, bandwidth=bandwidth)

    def of_axes(self, sizes: Vector | None = None) -> FeatureMap:
        """The metric without rotations, for distances that are sums over the features; or these sizes."""
        sizes = relevances(self.metric) if sizes is None else sizes
        return replace(self, metric=sizes if self.metric.ndim == 1 else np.diag(sizes))

    def along_axes(
        self, scaled: Matrix, Y: Matrix, weights: Vector, fixed: Fixed, random: np.random.Generator
    ) -> FeatureMap:
        """For the Laplace kernel, whose distances are sums over the features: the metric without rotations.

        Bandwidth and regularization are its own, the best by leave-one-out on some of these rows: with those
        of the Gaussian kernel it explains less. O(n B^2) for each fit, n = 1,024 and B = 128.
        """
        metric = self.of_axes().metric
        some = np.sort(random.permutation(len(scaled))[:1024])
        X, w = scaled[some], weights[some]
        unit, roots = half_median_distance(X, metric, random, absolute=True), np.sqrt(w)[:, None]
        fit = fit_span(
            X,
            (Y[some] - np.average(Y[some], axis=0, weights=w)) * roots,
            metric,
            X[:: -(-len(X) // COMPARED_ATOMS)],
            4.0 * unit if fixed.bandwidth is None else fixed.bandwidth,
            self.regularization,
            steps=(0 if fixed.bandwidth else 4, 0 if fixed.regularization else 4),
            kernel=Laplace("auto"),
            roots=roots[:, 0],
            with_gradients=False,
        )
        return replace(self, metric=metric, bandwidth=fit.bandwidth, regularization=fit.regularization)

    def state(self) -> dict[str, Any]:
        """All there is to it. A copy."""
        numbers = {
            name: float(getattr(self, name)) for name in ("bandwidth", "ratio", "regularization", "error")
        }
        kind = next(name for name, cls in SCALINGS.items() if isinstance(self.scaling, cls))
        return {
            "kind": kind,
            "scaling": self.scaling.state(),
            "metric": self.metric.copy(),
            "columns": self.metric.shape[-1],
            "flags": self.flags,
            "features": self.features,
            **numbers,
        }

    @classmethod
    def from_stored(cls, stored: Stored, width: int) -> FeatureMap:
        """The inverse of :meth:`state`, checked."""
        kind = SCALINGS[stored.word("kind", *SCALINGS)]
        scaling = kind.from_stored(stored.inner("scaling"), width)
        metric = stored.array("metric", *((width, width) if width <= MOST_ROTATED else (width,)))
        bandwidth, ratio = stored.number("bandwidth", at_least=1e-150), stored.number("ratio", at_least=0.0)
        regularization = stored.number("regularization", at_least=1e-100)
        error, flags = stored.number("error", at_least=0.0), stored.integer("flags", at_most=MOST_CLASSES)
        features = stored.integer("features", at_least=1, at_most=width)
        feature_map = cls(scaling, metric, bandwidth, ratio, regularization, error, flags, features)
        stored.finish()
        return feature_map


class CachedFeatures:
    """Features of rows, computed once: scaled once by each scaling, transformed once by each feature map."""

    rows: Matrix
    layout: Layout

    def __init__(self, rows: Matrix, layout: Layout) -> None:
        self.rows, self.layout = rows, layout
        self._scaled: dict[int, tuple[Scaling, Matrix]] = {}
        self._moved: dict[int, tuple[FeatureMap, Matrix]] = {}

    def scaled(self, feature_map: FeatureMap, lags: bool) -> Matrix:
        """In units of the feature map's scaling, which is of rows with or without the last targets."""
        key = id(feature_map.scaling)
        if key not in self._scaled:
            columns = self.layout.raw_features(self.rows, lags, feature_map.flags, feature_map.features)
            self._scaled[key] = feature_map.scaling, feature_map.scaling.transform(columns)
        return self._scaled[key][1]

    def coordinates(self, feature_map: FeatureMap, lags: bool) -> Matrix:
        """Scaled, and moved by the metric."""
        key = id(feature_map)
        if key not in self._moved:
            self._moved[key] = feature_map, moved(self.scaled(feature_map, lags), feature_map.metric)
        return self._moved[key][1]


def uniform_metric(width: int) -> Matrix:
    """All features alike."""
    return np.eye(width) if width <= MOST_ROTATED else np.ones(width)


def learn_metric(
    feature_map: FeatureMap | None,
    scaling: Scaling,
    X: Matrix,
    Y: Matrix,
    roots: Vector,
    fixed: Fixed,
    *,
    atoms: int,
    steps: int,
    random: np.random.Generator,
    gradients: Matrix | None = None,
    at_first_sight: bool = False,
) -> FeatureMap:
    """A feature map at least as good on these rows, by leave-one-out, as the one before.

    X are raw columns, Y targets around 0, roots the square roots of the rows' weights. From the metric
    before (or the uniform one, or what columns tell ``at_first_sight``) so many steps along the gradients
    of each fit are tried, the first along those given, if any. O(n B^2) a fit, of which a step takes three.
    """
    scaled = scaling.transform(X)
    chosen = np.sort(random.permutation(len(X))[: min(atoms, max(len(X) // 2, 8))])
    metric = uniform_metric(X.shape[1]) if feature_map is None else feature_map.metric
    if at_first_sight:
        sizes = np.maximum(first_relevances(scaled, Y, roots), FLOOR)
        metric = sizes if metric.ndim == 1 else np.diag(sizes)
    ratio, alpha = (1.0, 0.1) if feature_map is None else (feature_map.ratio, feature_map.regularization)
    weighted = Y * roots[:, None]
    best: tuple[SpanFit, float] | None = None
    for step in range(steps + 1):
        unit = half_median_distance(scaled, metric, random)
        # Steps of bandwidth and regularization: far from nothing, later one of them in turn.
        reach = (4, 4) if feature_map is None and step == 0 else (step % 2, 1 - step % 2)
        fit = fit_span(
            scaled,
            weighted,
            metric,
            scaled[chosen],
            ratio * unit if fixed.bandwidth is None else fixed.bandwidth,
            alpha if fixed.regularization is None else fixed.regularization,
            steps=(
                reach[0] if fixed.bandwidth is None else 0,
                reach[1] if fixed.regularization is None else 0,
            ),
            kernel=fixed.kernel,
            roots=roots,
            with_gradients=step < steps and gradients is None,
        )
        ratio, alpha = fit.bandwidth / unit, fit.regularization
        if best is None or fit.error < best[0].error:
            best = fit, ratio
        along, gradients = fit.gradients if gradients is None else gradients, None
        if along is not None:
            metric = next_metric(along)
    assert best is not None
    fit, ratio = best
    return FeatureMap(scaling, fit.metric, fit.bandwidth, ratio, fit.regularization, fit.error)


def half_median_distance(
    X: Matrix, metric: Matrix, random: np.random.Generator, *, absolute: bool = False
) -> float:
    """Over some pairs of rows."""
    left, right = (X[random.integers(len(X), size=256)] for _ in range(2))
    return 0.5 * median_length(moved(left - right, metric), absolute=absolute)


def median_length(differences: Matrix, *, absolute: bool = False) -> float:
    """Of pairs of rows; of the pairs that differ, if most do not; 2 where none does.

    ``absolute``: the sum of absolute differences, else the Euclidean distance.
    """
    if absolute:
        distances = np.abs(differences).sum(axis=1)
    else:
        distances = np.sqrt(np.einsum("ij,ij->i", differences, differences))
    distances = distances if _middle(distances) > 0.0 else distances[distances > 0.0]
    return max(_middle(distances), 2e-12) if len(distances) else 2.0


def _middle(numbers: Vector) -> float:
    """The larger median."""
    half = len(numbers) // 2
    return float(np.partition(numbers, half)[half])
