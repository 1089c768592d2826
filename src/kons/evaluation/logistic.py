"""Online logistic regression for any number of labels, a row at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kons.arrays import Matrix, ReadIntegers, ReadMatrix, ReadVector, Vector
from kons.compilation import compiled_sums
from kons.evaluation.baselines import LabelBaseline
from kons.evaluation.second_order import (
    LARGEST,
    SecondOrder,
    Standardization,
    Stretch,
    absorb,
    count,
    dot,
    locate,
)
from kons.learners.labels import Codes, Labels
from kons.state import Array, Count, Sizes, Whole, fields
from kons.stored import Stored

__all__ = ["OnlineLogistic"]

# Up to so many rows, steps were taken in crude units: they are taken again when the units change.
EARLY = 64


class OnlineLogistic(LabelBaseline, SecondOrder):
    """Online Newton for logistic regression, one label against the rest, on standardized features.

    ::

        w_k <- argmin_w  log(1 + exp(-y_k w.z)) + (w - w_k)^T A (w - w_k)/2        y_k = +1 or -1
        A   <- A + max_k p_k (1 - p_k) z z^T                        p_k the probability after the step

    The step is implicit, so that a surprising row cannot overshoot. All labels share one A, whose curvature
    is the largest of theirs: for two labels that is the exact Hessian. Probabilities are the p_k, divided by
    their sum. A row costs O(d^2 + K d) with K labels. Do not use it with more than some hundred features.

    Parameters
    ----------
    regularization:
        A starts as so many times I, the bias included.
    standardize:
        As in :class:`OnlineLinear`.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.evaluation import OnlineLogistic
    >>> X = 1000 * np.random.default_rng(0).normal(size=(500, 3))
    >>> labels = np.where(X @ [1.0, -2.0, 0.5] > 300, "high", "low")
    >>> baseline = OnlineLogistic()
    >>> bool(baseline.advance(X, labels).loss[-200:].mean() < 0.1)
    True
    >>> baseline.predict_one([2000.0, 0.0, 0.0])
    'high'
    """

    STATE = fields(
        _known=Count(binds="labels"),
        _weights=Array("labels", "size", written="always"),
        _early=Array("early", "width"),
        _early_targets=Whole("early", below="labels"),
    )

    def __init__(self, regularization: float = 0.1, *, standardize: bool = True) -> None:
        SecondOrder.__init__(self, regularization, standardize)
        self._labels = Labels()
        self._weights = np.empty((0, 0))  # a row per label, the bias last
        self._known = 0  # all of them between two calls
        self._early = np.empty((0, 0))  # the first rows, and the codes of their labels
        self._early_targets: Codes = np.empty(0, dtype=np.int64)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {"regularization": self.regularization, "standardize": self.standardize}

    def predict_proba(self, X: Any) -> Matrix:
        """A row per row of X, a column per label of ``classes``. Changes nothing."""
        points = self._as_points(X)
        if self._width is None:
            return np.empty((len(points), 0))
        z = (np.clip(points, -LARGEST, LARGEST) - self._units.centre) / self._units.scale
        p = expit(z @ self._weights[:, :-1].T + self._weights[:, -1])
        probabilities: Matrix = p / p.sum(axis=1, keepdims=True)
        return probabilities

    def _begin(self, width: int) -> None:
        super()._begin(width)
        self._units = Standardization(width)
        self._weights = np.zeros((0, width + 1))
        self._early = np.empty((0, width))

    def _nothing(self, rows: int) -> Codes:
        return np.full(rows, -1, dtype=np.int64)

    def _run(self, rows: Stretch, i: int, j: int, stop: int, out: Any) -> tuple[int, int]:
        return self._step(rows, i, j, stop, out, self._rows_seen, self._units.moments)

    def _step(
        self, rows: Stretch, i: int, j: int, stop: int, out: Any, seen: int, moments: Matrix
    ) -> tuple[int, int]:
        i, j, self._known = _discern(
            self._inverse,
            self._weights,
            self._known,
            self._sums,
            moments,
            self._units.centre,
            self._units.scale,
            seen,
            rows.points,
            rows.learned,
            rows.targets,
            rows.same,
            rows.lead,
            i,
            j,
            stop,
            out,
        )
        return i, j

    def _play(self, points: Any, learned: Any | None, targets: NDArray[Any], lead: int) -> NDArray[Any]:
        rows = points if learned is None else learned
        if self._width is None:
            self._begin((points if len(points) else rows).shape[1])
        new = int(targets.max(initial=-1)) + 1 - len(self._weights)
        if new > 0:  # room for labels that these rows may bring
            self._weights = np.vstack([self._weights, np.zeros((new, self._weights.shape[1]))])
        room = EARLY - len(self._early)
        if self.standardize and room > 0 and self._rows_seen < EARLY:
            self._early = np.vstack([self._early, np.clip(rows[:room], -LARGEST, LARGEST)])
            self._early_targets = np.concatenate([self._early_targets, targets[:room]])
        return SecondOrder._play(self, points, learned, targets, lead)

    def _centre(self, row: Vector, target: Any) -> None:
        self._units.centre = row.copy()

    def _renew(self, rows: int) -> None:
        if rows > EARLY:
            forward, _ = self._carry(*self._units.renew(rows))
            self._weights = np.ascontiguousarray(self._weights @ forward)
            return
        units = self._units
        units.renew(rows)
        labels = len(self._weights)
        SecondOrder._begin(self, len(units.centre))
        self._weights, self._known = np.zeros((labels, len(units.centre) + 1)), 0
        moments, nothing = units.moments.copy(), self._early[:0]
        early = Stretch(nothing, self._early[:rows], self._early_targets[:rows])
        self._step(early, 0, 0, rows + 1, self._nothing(0), 0, moments)
        if rows == EARLY:
            self._early, self._early_targets = self._early[:0], self._early_targets[:0]

    def _foresee(self, points: Any) -> Codes:
        out = self._nothing(len(points))
        if self._width is not None:
            points = np.clip(points, -LARGEST, LARGEST) if self.standardize else points
            self._run(Stretch(points, points[:0], np.empty(0, dtype=np.int64)), 0, 0, 1, out)
        return out

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self._early) not in (0, min(self._rows_seen, EARLY)):
            raise stored.error("its first rows do not fit the others")


@compiled_sums
def _discern(
    inverse: Matrix,
    weights: Matrix,
    known: int,
    sums: Matrix,
    moments: Matrix,
    centre: ReadVector,
    scale: ReadVector,
    seen: int,
    points: ReadMatrix,
    learned: ReadMatrix,
    targets: ReadIntegers,
    same: bool,
    lead: int,
    i: int,
    j: int,
    stop: int,
    prediction: Codes,
) -> tuple[int, int, int]:
    """Play rows through the weights of the ``known`` labels, changed in place."""
    width = len(centre)
    z, v = np.empty(width + 1), np.empty(width + 1)
    s, located = 0.0, -1
    while True:
        if j < len(targets) and (j + lead < i or i >= len(points)):
            if not (same and located == j):
                s = locate(learned[j], centre, scale, inverse, z, v)
            while known <= targets[j]:
                # Not seen in so many rows: as rare as one more row would make it.
                weights[known, width] = -np.log(seen + j + 1.0)
                known += 1
            curvature = 0.0
            for label in range(known):
                score = dot(z, weights[label])
                truth = 1.0 if targets[j] == label else 0.0
                p = _implicit(score, truth, s)
                for k in range(width + 1):
                    weights[label, k] += (truth - p) * v[k]
                curvature = max(curvature, p * (1.0 - p))
            absorb(inverse, sums, z, v, curvature, s)
            for k in range(width):
                count(moments, k, learned[j, k], seen + j + 1)
            located = -1
            j += 1
            if j == stop:
                return i, j, known
        elif i < len(points):
            s = locate(points[i], centre, scale, inverse, z, v)
            best = -np.inf
            for label in range(known):
                score = dot(z, weights[label])
                if score > best:
                    best = score
                    prediction[i] = label
            located = i
            i += 1
        else:
            return i, j, known


@compiled_sums
def _implicit(score: float, truth: float, s: float) -> float:
    """The probability p = sigmoid(f) after the step f = score + s*(truth - p): Newton, or halving."""
    p = 1.0 / (1.0 + np.exp(-score))
    low = min(score, score + s * (truth - p))
    high = max(score, score + s * (truth - p))
    f, last = score, high - low
    for _ in range(200):
        p = 1.0 / (1.0 + np.exp(-f))
        excess = f - score - s * (truth - p)
        if excess > 0.0:
            high = f
        else:
            low = f
        newer = f - excess / (1.0 + s * p * (1.0 - p))
        # Newton may jump to and fro where the sigmoid is flat: each step must halve the last.
        if not low <= newer <= high or abs(newer - f) > 0.5 * last:
            newer = 0.5 * (low + high)
        last = abs(newer - f)
        f = newer
        if last <= 1e-13 * (1.0 + abs(f)):
            break
    return float(1.0 / (1.0 + np.exp(-f)))
