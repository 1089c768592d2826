"""A data set instead of a stream: passes over it until a Newton step has nothing left to gain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kons.arrays import Vector, as_targets, require_integer, require_number
from kons.core.storage import take
from kons.errors import ConfigurationError
from kons.learners import Trace
from kons.learners.newton import NewtonLearner
from kons.learners.protocol import as_learner

__all__ = ["BatchFit", "fit_batch"]


@dataclass(frozen=True, eq=False)
class BatchFit:
    """What :func:`fit_batch` did. The learner itself was changed in place.

    >>> import numpy as np
    >>> from kons.learners import Trace
    >>> nothing = Trace(kept=np.zeros(30, dtype=bool), size=np.zeros(30, dtype=np.int64))
    >>> BatchFit(rows=20, max_passes=5, rows_learned=30, stopped=True, trace=nothing).rows_saved
    70
    """

    rows: int
    """Of the data set."""
    max_passes: int
    rows_learned: int
    """Over all passes."""
    stopped: bool
    """Whether the leverage ended it, not ``max_passes``."""
    trace: Trace = field(repr=False)
    """Of the rows learned, in the order they were."""

    @property
    def passes(self) -> int:
        """How many passes were begun."""
        return -(-self.rows_learned // self.rows)

    @property
    def rows_saved(self) -> int:
        """How many rows of ``max_passes`` whole passes were not learned."""
        return self.max_passes * self.rows - self.rows_learned


def fit_batch(
    learner: NewtonLearner,
    X: Any,
    y: Any,
    *,
    threshold: float = 0.01,
    patience: int = 100,
    max_passes: int = 10,
    seed: int | None = 0,
) -> BatchFit:
    """Learn a data set in passes, each in a new random order, until the leverage stays small.

    ::

        tau = w*q/(1 + w*q),    q = phi^T A^-1 phi,    w = eta*g^2 (or l'' with second_order="hessian")
        stop after ``patience`` rows in a row with tau < threshold, among the rows with g != 0

    With w = eta*g^2, ``w*q`` is eta times ``g^2 phi^T A^-1 phi``, the Newton decrement of the row (the
    paper's Discussion): how much a Newton step on it could still change. A row that is met exactly has
    g = 0 and says nothing: it neither counts nor breaks the count. For Sketched-KONS, tau is the leverage
    that the row would have had, whether its coin let it in or not. Rows are learned up to the one that
    ended it, and none after.

    The rows differ, and the loss of each is small where its neighbours were learned; so the rule says
    when *these rows* teach no more. It does not say that the function generalizes: hold rows out for that.
    Do not use it on a stream, whose next rows may be anything, nor expect the regret bound of a single pass
    for a data set seen twice.
    Refused with forgetting below 1: the leverage then never fades.

    Parameters
    ----------
    learner:
        Any second-order learner, fresh or not; it is changed in place.
    X, y:
        The data set, as :meth:`kons.KONS.advance` takes it.
    threshold:
        Leverage below which a row counts as taught; in (0, 1].
    patience:
        How many such rows in a row.
    max_passes:
        Stop after so many passes in any case.
    seed:
        Of the orders; None keeps the order of the data set in each pass. Not the seed of the learner's
        coins.

    >>> import numpy as np
    >>> from kons import KONS, Gaussian, Squared
    >>> from kons.evaluation import fit_batch
    >>> x = np.random.default_rng(1).uniform(-3, 3, size=(300, 1))
    >>> learner = KONS(Gaussian(1.0), Squared(), second_order="hessian")
    >>> fit = fit_batch(learner, x, np.sin(x).ravel(), threshold=0.1, patience=50, max_passes=5)
    >>> fit.stopped, fit.passes, learner.size == fit.rows_learned < 300
    (True, 1, True)
    """
    if as_learner(learner).second_order in (None, "none"):
        raise ConfigurationError(f"fit_batch takes a second-order learner, not {as_learner(learner).name}.")
    if learner.forgetting < 1.0:
        raise ConfigurationError(
            f"forgetting is {learner.forgetting:g}, expected 1: whoever forgets never has small leverage."
        )
    points = learner.kernel.as_points(X)
    targets = as_targets(y, len(points))
    learner.loss.check_targets(targets, learner.bound)
    threshold = require_number(threshold, "threshold", above=0.0, at_most=1.0)
    patience = require_integer(patience, "patience", at_least=1)
    max_passes = require_integer(max_passes, "max_passes", at_least=1)
    generator = None
    if seed is not None:
        generator = np.random.default_rng(require_integer(seed, "seed", at_least=0))
    traces: list[Trace] = []
    calm = 0
    with learner._all_or_nothing():
        for _ in range(max_passes):
            order = np.arange(len(points)) if generator is None else generator.permutation(len(points))
            start = 0
            while start < len(order) and calm < patience:
                # No stop can fall inside the next patience - calm rows: they are learned as one block.
                part = order[start : start + patience - calm]
                first = learner.rows_seen + 1
                trace = learner.advance(take(points, part), targets[part])
                traces.append(trace)
                calm = _calm_rows(calm, trace["slope"], _leverage(learner, trace, first), threshold)
                start += len(part)
            if calm >= patience:
                break
    return BatchFit(
        rows=len(points),
        max_passes=max_passes,
        rows_learned=sum(len(trace) for trace in traces),
        stopped=calm >= patience,
        trace=Trace.concatenate(traces),
    )


def _leverage(learner: NewtonLearner, trace: Trace, first: int) -> Vector:
    """The leverage of each row as if it had entered A, whatever its coin."""
    mass = trace["weight"] * trace["inverse_form"]
    if learner.second_order == "gradient":
        etas = learner.step_size(np.arange(first, first + len(trace)))
        mass = etas * trace["slope"] ** 2 * trace["inverse_form"]
    leverage: Vector = mass / (1.0 + mass)
    return leverage


def _calm_rows(calm: int, slope: Vector, leverage: Vector, threshold: float) -> int:
    """How many of the last rows with a slope stayed below the threshold, ``calm`` before these."""
    telling = leverage[slope != 0.0] < threshold
    loud = np.flatnonzero(~telling)
    return int(len(telling) - 1 - loud[-1]) if len(loud) else calm + len(telling)
