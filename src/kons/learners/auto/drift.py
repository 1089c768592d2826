"""Abrupt drift: where errors rise, a fresh ensemble is tried on the last rows, and takes over if better.

Targets a thousand times as large, another function, features elsewhere: what was learned, chosen and scaled
before is then worse than nothing, and forgetting takes as long as learning took. So at the end of a chunk

- a *change is suspected* if the error of the chunk is three times the usual, or clearly above the variance of
  its own targets, which is the error of their mean;
- while it is, a fresh ensemble predicts and learns the later half of these rows, from where errors rose if
  that is later; if over the later half of them it has clearly won, it replaces the current one;
- the *previous* one is kept for 2,048 rows, fed with them later, and comes back if it would have been better.

At most one row in 32 is spent on trials, and the previous ensemble costs no more than the current one: the
cost is bounded whatever comes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.arrays import Matrix, Vector
from kons.learners.auto.effort import Settings
from kons.learners.auto.ensemble import Ensemble
from kons.learners.auto.rows import Layout
from kons.learners.auto.schedule import CHUNK, chunk_before
from kons.learners.auto.stacking import FORGETTING
from kons.state import Count, Inner, Number, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["DriftAdaptation"]

# A change is suspected if a chunk's error is so many times the usual one.
UNUSUAL = 3.0
# Rows that are enough to judge by.
FEWEST = 16
# Rows of trials that a row pays for, and how many may be saved up: the bound of what trials cost.
PAID, SAVED = 1.0 / 32.0, 512.0


class _Numbered(Inner):
    """An ensemble, made anew with its number when it is loaded."""

    def __init__(self, number: str) -> None:
        super().__init__()
        self.number = number

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if name == "previous" and stored.is_nothing(key):
            stored.nothing(key)
            return None
        number = getattr(part, self.number)
        ensemble = part._new(number) if number or name == "previous" else part.current  # that is new, too
        ensemble.load_state(stored.inner(key))
        return ensemble


class DriftAdaptation(Part):
    """The current ensemble, and perhaps the previous one.

    Some microseconds a chunk beside the ensemble's own work; twice the work while there is a previous one.
    Memory for two ensembles. Not for slow drift, which experts with a finite memory follow.

    >>> import numpy as np
    >>> from kons import AutoKONS
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> model = AutoKONS(max_atoms=20)
    >>> trace = model.advance(X[:600], X[:600, 0])
    >>> trace = model.advance(X[600:], 1e6 - X[600:, 0])
    >>> model.successions, bool(trace.loss[-50:].mean() < 0.1)
    (1, True)
    """

    STATE = fields(
        **{
            name: Count()
            for name in (
                "successions",
                "number",
                "previous_number",
                "replaced_at",
                "replayed_at",
                "suspected_rows",
                "calm_chunks",
            )
        },
        **{name: Number(at_least=0.0) for name in ("error", "weight", "trial_budget")},
        current=_Numbered("number"),
        previous=_Numbered("previous_number"),
    )
    number: int
    previous_number: int
    replaced_at: int
    replayed_at: int
    suspected_rows: int
    calm_chunks: int
    error: float
    weight: float

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.current: Ensemble = self._new(0)
        self.previous: Ensemble | None = None
        #: How often a fresh ensemble took over.
        self.successions: int = 0
        # Which ensembles these are, counted as they took over.
        self.number, self.previous_number = 0, 0
        # How many rows the current one had when it replaced the other, and when that one was last fed.
        self.replaced_at, self.replayed_at = 0, 0
        # Rows of suspected change, and chunks since without one.
        self.suspected_rows, self.calm_chunks = 0, 0
        # The usual error is error / weight.
        self.error, self.weight = 0.0, 0.0
        self.trial_budget: float = 0.5 * SAVED

    def _new(self, number: int) -> Ensemble:
        """With a seed of its own: the rows and atoms that the first one drew may have been the trouble."""
        seed = self._settings.seed
        if number:
            seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        return Ensemble(self._settings._replace(seed=seed))

    def add_output(self) -> None:
        """A class more, that no row was of so far."""
        for ensemble in self._ensembles:
            ensemble.add_output()

    def widen(self, values: Vector) -> None:
        """Features more, behind the others, which had these values in all rows so far."""
        for ensemble in self._ensembles:
            ensemble.widen(values)

    @property
    def _ensembles(self) -> list[Ensemble]:
        return [self.current] if self.previous is None else [self.current, self.previous]

    @property
    def usual_error(self) -> float:
        """The squared error of stacking, over the rows that count still."""
        return self.error / self.weight if self.weight else 0.0

    # ---- the end of a chunk

    def end_chunk(self) -> bool:
        """Suspect a change, and try another ensemble if there is reason to; whether it took over."""
        current = self.current
        ended, young = chunk_before(current.rows, current.longest), current.rows < 4 * CHUNK
        self.trial_budget = min(self.trial_budget + PAID * ended, SAVED)
        chunk = current.reservoir.last(ended)
        chunk = chunk[current.layout.weights(chunk) > 0.0]
        if len(chunk) < FEWEST:
            return False
        error = _mean(self._errors(chunk), current.layout.weights(chunk))
        usual = self.error / self.weight if self.weight else error
        # Of classes the usual error may be none at all.
        usual = max(usual, 1e-3) if current.layout.classes else usual
        suspected = not young and self._change_suspected(chunk, usual)
        self.calm_chunks = 0 if suspected else self.calm_chunks + 1
        if self.calm_chunks >= 2:  # one alone may be chance
            self.suspected_rows = 0
        elif suspected or self.suspected_rows:
            self.suspected_rows += ended
        decay = FORGETTING ** len(chunk)
        self.error = decay * self.error + len(chunk) * (error if young else min(error, UNUSUAL * usual))
        self.weight = decay * self.weight + len(chunk)
        if self.previous is not None and self._previous_returns(self.previous, suspected):
            return True
        return suspected and self._fresh_takes_over(max(self.suspected_rows // 2, CHUNK), usual)

    def _change_suspected(self, rows: Matrix, usual: float) -> bool:
        """Error above 3 times the usual, or 1.5 times the variance of the targets if no less than usual/4.

        Of classes that are hard to tell apart, three times the usual error is more than there can be; a small
        error beside a smaller variance is no reason.
        """
        error = _mean(self._errors(rows), self.current.layout.weights(rows))
        return error > UNUSUAL * usual or error > max(1.5 * self._variance(rows), 0.25 * usual)

    @property
    def units(self) -> Vector:
        """What squared errors of several targets are divided by, to be summed; of one it is 1."""
        current = self.current
        return current.targets.variances if current.layout.count > 1 else np.ones(1)

    def _errors(self, rows: Matrix) -> Vector:
        """The squared error of each row, over all targets."""
        errors: Vector = (self.current.layout.errors(rows) / self.units).sum(axis=1)
        return errors

    def _variance(self, rows: Matrix) -> float:
        """Of the targets, summed over them, or over the classes."""
        Y, weights = self.current.layout.targets(rows), self.current.layout.weights(rows)
        if self.current.layout.classes:
            shares = np.bincount(Y[:, 0].astype(np.int64), weights) / weights.sum()
            return float(shares @ (1.0 - shares))
        each = zip(Y.T, self.units.tolist(), strict=True)
        return math.fsum(_mean((y - _mean(y, weights)) ** 2, weights) / unit for y, unit in each)

    def _fresh_takes_over(self, count: int, usual: float) -> bool:
        """Let a fresh ensemble predict and learn some of the last rows; if it has clearly won, it takes over.

        That is: half the error, and smaller errors in 60 % of the rows, over the later half of them without
        the tenth that was missed most, for a rare row is no reason.
        """
        current = self.current
        rows, weights_of = current.reservoir.last(count), current.layout.weights
        count = _risen(self._errors(rows), weights_of(rows))
        later = current.reservoir.last(count - count // 2)
        errors, weights = self._errors(later), weights_of(later)
        compared = (errors <= np.quantile(errors, 0.9)) & (weights > 0.0)
        enough = count >= 40 and compared.sum() >= FEWEST and self.trial_budget >= count
        mine, weights = errors[compared], weights[compared]
        if not (enough and self._change_suspected(later[compared], usual)):
            return False
        self.trial_budget -= count
        fresh = self._new(self.successions + 1)
        for _ in range(current.outputs - fresh.outputs):
            fresh.add_output()
        fresh.known_classes = current.known_classes
        _replay(fresh, current.reservoir.last(count))
        its = self._errors(fresh.reservoir.last(len(later)))[compared]
        error = _mean(its, weights)
        if _mean(its < mine, weights) < 0.6 or error >= 0.5 * _mean(mine, weights):
            return False
        self.successions += 1
        # With fewer rows than it may miss there is no way back. One that has learned more knows more of what
        # may come again; it was fed all rows so far, for a change is suspected.
        if self.previous is None or self.previous.rows < current.rows:
            self.previous = current if current.reservoir.recent >= 4 * CHUNK else None
            self.previous_number = self.number
        self.current, self.number = fresh, self.successions
        self.replaced_at = self.replayed_at = fresh.rows
        # From now on this is the usual error.
        self.error, self.weight = len(its) * error, float(len(its))
        self.suspected_rows, self.calm_chunks = 0, 0
        return True

    def _previous_returns(self, previous: Ensemble, suspected: bool) -> bool:
        """Feed the previous ensemble what it missed, if that is due; whether it comes back.

        Due when it missed half of the rows since it was replaced, and at the latest after 256.
        """
        rows = self.current.rows
        since, missed = rows - self.replaced_at, rows - self.replayed_at
        if not suspected and 2 * missed < min(since, 8 * CHUNK):
            return False
        _replay(previous, self.current.reservoir.last(missed))
        self.replayed_at = rows
        mine, its = self.current.reservoir.last(missed), previous.reservoir.last(missed)
        weights = self.current.layout.weights(mine)
        if _mean(self._errors(its), weights) < _mean(self._errors(mine), weights):
            # What is usual stays: the rows between may have spoiled this one, too.
            self.current, self.number, self.previous = previous, self.previous_number, None
            self.suspected_rows, self.calm_chunks = 0, 0
            return True
        if since >= self.current.reservoir.recent:
            self.previous = None
        return False

    # ---- on from a file

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        current, previous = self.current, self.previous
        if previous is None:
            return
        if (previous.layout, previous.outputs) != (current.layout, current.outputs):
            raise stored.error("the previous ensemble has other features or classes")
        missed = current.rows - self.replayed_at
        if not (self.replaced_at <= self.replayed_at and 0 <= missed <= current.reservoir.recent):
            raise stored.error("the rows that the previous ensemble missed are not there")


def _replay(ensemble: Ensemble, rows: Matrix) -> None:
    """Let an ensemble predict and learn rows that another one has learned, each as late as it was then."""
    rows = rows.copy()
    known = np.maximum(np.arange(len(rows)) - Layout.waited(rows).astype(np.int64), 0)
    # Where targets came out of order, a row is predicted no later than those behind it.
    known = np.minimum.accumulate(known[::-1])[::-1]
    waiting, start, learned = None, 0, 0
    while learned < len(rows):
        chunk = min(len(rows) - learned, ensemble.left)
        stop = int(np.searchsorted(known, learned + chunk))
        part = slice(start, stop)
        _, waiting = ensemble.advance(rows[part], known[part] - learned, waiting, chunk)
        start, learned = stop, learned + chunk


def _risen(errors: Vector, weights: Vector) -> int:
    """How many of the last rows came since errors rose: the sum of ``error - mean/2`` over them is largest.

    >>> errors = np.array([1.0, 3.0, 2.0, 1.0, 9.0, 8.0, 3.0, 7.0])
    >>> _risen(errors, np.ones(8))
    4
    """
    excess = weights * (errors - 0.5 * _mean(errors, weights))
    return int(np.argmax(np.cumsum(excess[::-1]))) + 1


def _mean(values: Any, weights: Vector) -> float:
    # Exact sums: those of BLAS depend on where an array lies in memory, and so on a resume. Parts of the
    # total are summed, lest it be no number.
    total = max(math.fsum(weights.tolist()), 1e-300)
    return math.fsum((values * (weights / total)).tolist())
