"""Why a row is predicted as it is: Shapley values of its columns against one typical row.

::

    v(S)   the prediction for the row that has its own values in the columns S, the typical ones elsewhere
    phi_j  = sum_S |S|! (d - |S| - 1)! / d!  (v(S + j) - v(S)),    sum_j phi_j = v(all) - v(none)

The features that became of a column, levels and parts of dates, go together. Up to :data:`EXACT` columns that
differ from the typical row all of their 2^d sets are predicted, in one block. Beyond, the mean over random
orders, each with its reverse, stands for that over all: every order adds up to the whole difference, so that
the sum stays exact and only its parts have an error, which is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, require_integer
from kons.errors import ConfigurationError, InputError

__all__ = ["EXACT", "LAST_TARGETS", "Explanation", "Similar", "explain", "shapley_values"]

#: Columns up to which every set of them is predicted; the last targets are one more.
EXACT = 8
#: The contribution of the targets learned last, of a learner that looks at them.
LAST_TARGETS = "last targets"
#: Probabilities are taken as no nearer to 0 and 1: log-odds stay within 27.6.
LEAST_PROBABILITY = 1e-12

Shapley = tuple[float, Vector, float, Vector | None]
Values = Callable[[NDArray[np.bool_]], Vector]
"""From sets of columns, a row of flags each, to predictions."""


class Similar(NamedTuple):
    """A row that was learned and kept, with its target, and how like it is: 1 for the same."""

    row: dict[Any, Any]
    target: Any
    similarity: float


@dataclass(frozen=True)
class Explanation:
    """``baseline + sum of contributions = prediction``, in units of the target; of a label, its log-odds."""

    baseline: float
    """What is predicted for the typical row."""
    contributions: dict[Any, float]
    """Of each column by name, or by number where rows are arrays; 0 where it is as in the typical row."""
    prediction: float
    errors: dict[Any, float] | None = None
    """Standard errors of the contributions; None, where they are exact."""
    label: Any = None
    """Of which these are the log-odds; None for numbers."""
    typical: dict[Any, Any] = field(default_factory=dict)
    """The row that it was compared with."""
    similar: list[Similar] = field(default_factory=list)
    """Rows that were learned, the most similar first."""

    def largest(self, count: int = 3) -> list[tuple[Any, float]]:
        """The columns that contribute most, either way."""
        ordered = sorted(self.contributions.items(), key=lambda pair: -abs(pair[1]))
        return ordered[:count]

    def __str__(self) -> str:
        parts = [f"{value:+.4g} {name}" for name, value in self.largest(len(self.contributions))]
        what = "" if self.label is None else f" (log-odds of {self.label!r})"
        return f"{self.prediction:.4g}{what} = {self.baseline:.4g} {' '.join(parts)}"


# ---- Shapley values


def shapley_values(value: Values, players: int, paths: int = 16) -> Shapley:
    """v(none), the value of each player, v(all), and standard errors where these are estimates.

    2^d predictions up to :data:`EXACT` + 1 players; beyond, ``2*paths*(d - 1) + 2``.

    >>> def value(sets):
    ...     return 1.0 + 2.0 * sets[:, 0] * sets[:, 1] + 3.0 * sets[:, 2]
    >>> shapley_values(value, 3)[1].round(12).tolist()
    [1.0, 1.0, 3.0]

    References
    ----------
    Shapley: A value for n-person games, 1953. Mitchell, Cooper, Frank, Holmes: Sampling permutations for
    Shapley value estimation, JMLR 2022 (an order and its reverse).
    """
    if not players:
        alone = float(value(np.zeros((1, 0), dtype=bool))[0])
        return alone, np.empty(0), alone, None
    if players <= EXACT + 1:
        v = value(_all_sets(players))
        return float(v[0]), _weights(players) @ (v - v[0]), float(v[-1]), None
    half = _orders(players, paths)
    orders = np.concatenate([half, half[:, ::-1]])
    # Behind k players of its order a path has those; the first and the last set are the same of all.
    ranks = np.argsort(orders, axis=1)
    steps = np.arange(1, players)
    inside = (ranks[:, None, :] < steps[:, None]).reshape(-1, players)
    ends = np.array([[False], [True]]) & np.ones(players, dtype=bool)
    v = value(np.concatenate([ends, inside]))
    walks = np.empty((len(orders), players + 1))
    walks[:, 0], walks[:, -1] = v[0], v[1]
    walks[:, 1:-1] = v[2:].reshape(len(orders), players - 1)
    gains = np.take_along_axis(np.diff(walks, axis=1), ranks, axis=1)
    pairs = 0.5 * (gains[:paths] + gains[paths:])
    errors = pairs.std(axis=0, ddof=1) / np.sqrt(paths)
    return float(v[0]), pairs.mean(axis=0), float(v[1]), errors


@cache
def _all_sets(players: int) -> NDArray[np.bool_]:
    """Row s has the players whose bit is set in s; the last player's is the lowest.

    So a set stands behind the same without the last targets, at which most experts do not look.
    """
    numbers = np.arange(2**players)
    sets: NDArray[np.bool_] = (numbers[:, None] >> np.arange(players)[::-1]) & 1 > 0
    return sets


@cache
def _weights(players: int) -> Matrix:
    """(players, sets): a value is the product of its row and v."""
    sets = _all_sets(players)
    sizes = sets.sum(axis=1)
    with_it = [factorial(max(s - 1, 0)) * factorial(players - s) for s in range(players + 1)]
    without = [factorial(s) * factorial(max(players - s - 1, 0)) for s in range(players + 1)]
    signed = np.where(sets.T, np.array(with_it, float)[sizes], -np.array(without, float)[sizes])
    weights: Matrix = signed / factorial(players)
    return weights


@lru_cache(maxsize=64)
def _orders(players: int, paths: int) -> NDArray[np.int64]:
    """Random orders, always the same."""
    random = np.random.default_rng([players, paths])
    return np.array([random.permutation(players) for _ in range(paths)])


# ---- of a learner


def explain(
    learner: Any, x: Any, label: Any, output: int, recent_targets: Any, paths: int, similar: int
) -> Explanation:
    """The contributions of the columns of one row: see :mod:`kons.learners.explaining`."""
    if learner.accepts == "objects":
        raise ConfigurationError(
            f"{learner.kernel!r} takes objects: they have no columns to explain a prediction by."
        )
    points, targets = learner._sampled_rows()
    if not len(points):
        raise InputError("nothing was learned yet: there is no typical row to explain a prediction by.")
    require_integer(paths, "paths", at_least=2)
    require_integer(similar, "similar", at_least=0)
    own, typical, learned, owners, shown = learner._beside_typical(x, points)
    columns = [column for column in dict.fromkeys(owners) if column is not None]
    place = {column: i for i, column in enumerate(columns)}
    of_slot = np.array([place.get(owner, -1) for owner in owners], dtype=np.int64)
    own_gap, typical_gap = np.isnan(own), np.isnan(typical)
    differs = (own != typical) & ~(own_gap & typical_gap)
    players = [i for i in range(len(columns)) if differs[of_slot == i].any()]
    seat = np.full(len(columns), -1)
    seat[players] = np.arange(len(players))
    seats = np.where(of_slot >= 0, seat[of_slot], -1)

    last, usual = _last_targets(learner, targets, recent_targets)
    looks_back = last is not None and bool((last != usual).any())
    label = _label_of(learner, own, last, label, output)

    def value(sets: NDArray[np.bool_]) -> Vector:
        rows = np.tile(typical, (len(sets), 1))
        taken = np.flatnonzero(seats >= 0)
        rows[:, taken] = np.where(sets[:, seats[taken]], own[taken], typical[taken])
        recent = None
        if last is not None:
            recent = np.where(sets[:, -1:], last, usual) if looks_back else np.tile(last, (len(sets), 1))
        return _values(learner, rows, recent, label, output)

    baseline, gains, prediction, errors = shapley_values(value, len(players) + looks_back, paths)
    named = [columns[i] for i in players] + [LAST_TARGETS] * looks_back
    contributions = dict.fromkeys(columns, 0.0) | ({LAST_TARGETS: 0.0} if last is not None else {})
    contributions |= dict(zip(named, gains.tolist(), strict=True))
    stated = None
    if errors is not None:
        stated = dict.fromkeys(contributions, 0.0) | dict(zip(named, errors.tolist(), strict=True))
    near = _similar(learner, learned, similar, output)
    return Explanation(baseline, contributions, prediction, stated, label, shown, near)


def _last_targets(learner: Any, targets: Any, recent: Any) -> tuple[Any, Any]:
    """Of a learner that looks back the last targets, and what is usual; None, where they do not count."""
    if not learner.looks_back or learner.outputs or recent is False:
        return None, None
    last = learner.following().before([None if learner.labelled else np.nan]) if recent is True else recent
    known = targets.ravel()
    usual = np.bincount(known.astype(np.int64)).argmax() if learner.labelled else np.median(known)
    return np.asarray(last, dtype=np.float64).reshape(1, -1), np.full((1, np.size(last)), float(usual))


def _label_of(learner: Any, own: Vector, last: Any, label: Any, output: int) -> Any:
    if not learner.labelled:
        if label is not None:
            raise ConfigurationError(f"label is {label!r}, and {learner.name} predicts numbers.")
        most = learner.outputs or 1
        require_integer(output, "output", at_least=0, at_most=most - 1)
        return None
    classes = list(learner.classes)
    if label is None:
        options = {} if last is None else {"recent_targets": last}
        return np.asarray(learner.predict(own[None], **options)).tolist()[0]
    if label not in classes:
        raise ConfigurationError(f"label is {label!r}, expected one of {classes!r}.")
    return label


def _values(learner: Any, rows: Matrix, recent: Any, label: Any, output: int) -> Vector:
    options = {} if recent is None else {"recent_targets": recent}
    if not learner.labelled:
        predictions = np.asarray(learner.predict(rows, **options), dtype=np.float64)
        return predictions if predictions.ndim == 1 else predictions[:, output]
    shares = np.nan_to_num(np.asarray(learner.predict_proba(rows, **options)))
    at = list(learner.classes).index(label)
    for_it, against = shares[:, at], np.delete(shares, at, axis=1).sum(axis=1)
    odds: Vector = np.log(np.maximum(for_it, LEAST_PROBABILITY))
    odds -= np.log(np.maximum(against, LEAST_PROBABILITY))
    return odds


def _similar(learner: Any, own: Vector, count: int, output: int) -> list[Similar]:
    """The kept rows that are most like this one; of several that are alike the latest."""
    points, targets = learner._kept_rows()
    if not count or not len(points):
        return []
    likeness = learner._similarities(points, own)
    most = np.flatnonzero(likeness >= np.partition(likeness, -min(count, len(points)))[-count:].min())
    order = most[np.lexsort([-most, -likeness[most]])][:count]
    classes = list(learner.classes) if learner.labelled else None
    each = targets if targets.ndim == 1 else targets[:, min(output, targets.shape[1] - 1)]
    return [
        Similar(
            learner._shown(points[i]),
            each[i].item() if classes is None else classes[int(each[i])],
            float(likeness[i]),
        )
        for i in order.tolist()
    ]
