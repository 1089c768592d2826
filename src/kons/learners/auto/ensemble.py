"""Rows through the expert pool in chunks: predicted by all experts, stacked, learned.

Everything here is numbers: a row is as :class:`~kons.learners.auto.rows.Layout` has it. When it is learned,
and with which last targets it was predicted, is the caller's affair. Rows are counted as they are learned; at
the ends of chunks (:mod:`~kons.learners.auto.schedule`) experts are fitted and pruned
(:mod:`~kons.learners.auto.selection`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.learners.auto.calibration import NO_LESS, Calibration
from kons.learners.auto.doubts import SIZES, doubts_in_block, doubts_of, novelty_of
from kons.learners.auto.effort import Settings
from kons.learners.auto.feature_map import CachedFeatures
from kons.learners.auto.metric_learning import relevances
from kons.learners.auto.one_row import OneRow
from kons.learners.auto.pending import Asked
from kons.learners.auto.pool import ExpertPool
from kons.learners.auto.reservoir import Reservoir
from kons.learners.auto.rows import MOST_CLASSES, ChunkEnd, Layout
from kons.learners.auto.schedule import (
    CHUNK,
    EARLY,
    LONGEST,
    SETTLED,
    chunk_before,
    is_selection_step,
    next_boundary,
    refits,
)
from kons.learners.auto.selection import Selection
from kons.learners.auto.spec import BASELINES, LAST, MEAN
from kons.learners.auto.stacking import FORGETTING, Stacking
from kons.learners.auto.target_range import (
    FOLLOWED,
    NO_BOUNDS,
    ROUNDING,
    ByTarget,
    OutlierBounds,
    TargetRange,
    Targets,
)
from kons.state import Array, Count, Field, Inner, Items, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["Ensemble", "Outcome"]

# A squared error so many times the usual one weighs as much less in stacking: one row is no evidence.
WILD = 100.0


class Outcome(NamedTuple):
    """What a stretch of rows brought."""

    predictions: Matrix
    """In units of the target, or the shares of classes, (rows, outputs)."""
    logits: Matrix
    """Calibrated, of classes; the predictions otherwise."""
    leader: int
    """The number of the expert with the largest weight: of the mean, or its place among all specs."""
    inverse_forms: Matrix
    """Those of stacking, over all outputs."""
    size: int
    """Atoms of all experts that predicted these rows."""
    known_classes: NDArray[np.int64]
    """How many classes were known before each row."""
    doubts: NDArray[np.float64]
    """How doubtful each prediction is, (rows, targets, numbers): :mod:`~kons.learners.auto.doubts`."""


class _Outputs(Count):
    """One of each number; of classes as many as there are: a forged number must not ask for all memory."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> int:
        outputs = super().load(stored, key, part, name, sizes)
        sizes["targets"] = count = part.layout.count
        least, most = (0, 1_000_000) if part.layout.classes else (count, count)
        return stored.counted(outputs, key, at_least=least, at_most=most)


class _Width(Field):
    """The layout of rows, by its width."""

    def save(self, part: Any, name: str) -> int:
        return int(part.layout.width)

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Layout:
        layout: Layout = replace(part.layout, width=stored.integer(key, at_least=1 if part.rows else 0))
        sizes.update(width=layout.width, columns=layout.columns if part.rows else None)
        return layout


class _Bounds(Array):
    """Outlier bounds: all that are low, and all that are high."""

    def save(self, part: Any, name: str) -> Any:
        return np.array(getattr(part, name)).ravel()

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> OutlierBounds:
        low, high = stored.array(key, 2 * sizes["targets"]).reshape(2, -1)
        return OutlierBounds(low, np.maximum(low, high))


class _Ranges(Array):
    """The least and the largest value of features, as many as were there at the end of the last chunk."""

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Matrix:
        ranges: Matrix = super().load(stored, key, part, name, sizes)
        if len(ranges) > sizes["width"] or (ranges[:, 0] > ranges[:, 1]).any():
            raise stored.error(f"{key} holds something else than ranges of {sizes['width']} features")
        return ranges


class _Largest(Array):
    """Of one target a number, of several an array."""

    def save(self, part: Any, name: str) -> Any:
        values = getattr(part, name)
        return values.copy() if len(values) > 1 else float(values[0])

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if sizes["targets"] > 1:
            return stored.array(key, sizes["targets"], at_least=self.at_least)
        return np.array([stored.number(key, at_least=self.at_least)])


class Ensemble(Part):
    """Predict and learn rows of numbers, and do what is due at the ends of chunks."""

    STATE = fields(
        rows=Count(),
        due=Count(),
        outputs=_Outputs(binds="outputs"),
        known_classes=Count(at_most="outputs"),
        layout=_Width(),
        losses=ByTarget(2, at_least=0.0, written="always"),
        bounds=_Bounds(),
        ranges=_Ranges("ranged", 2),
        largest_error=_Largest(at_least=0.0),
        cuts=Items("the length of a block, or 0", lambda cut: type(cut) is int and cut >= 0),
        selection=Inner(),
        calibration=Inner(),
        targets=Inner(),
        reservoir=Inner(),
    )
    bounds: OutlierBounds
    largest_error: Vector

    def __init__(self, settings: Settings) -> None:
        classes, effort = settings.classes, settings.effort
        #: Rows of the longest chunk.
        self.longest: int = effort.longest
        self.layout: Layout = Layout(0, classes, settings.targets)
        self.outputs: int = 0 if classes else settings.targets
        self.known_classes: int = 0
        #: Rows learned.
        self.rows: int = 0
        # A selection step that new features wait for; 0: none.
        self.due: int = 0
        # Squared errors of each stacking, forgotten as it forgets: their sum, and of how many rows.
        self.losses: Matrix = np.zeros((settings.targets, 2))
        # For a chunk each: targets beyond are not learned from; squared errors beyond weigh less in stacking.
        low, high = (np.array([end] * settings.targets) for end in NO_BOUNDS)
        self.bounds, self.largest_error = OutlierBounds(low, high), high
        #: The least and the largest value of each feature, of rows up to the last chunk's end.
        self.ranges: Matrix = np.zeros((0, 2))
        #: How the chunk's rows were cut: the length of each block, 0 for a row by itself.
        self.cuts: list[int] = []
        self.calibration: Calibration = Calibration()
        self.targets: Targets = Targets(classes, settings.targets)
        self.reservoir: Reservoir = Reservoir(effort.sample, effort.recent, settings.seed)
        self.selection: Selection = Selection(settings, self.reservoir)
        # The rows of this chunk that come one by one; None where an array of the state may be another one.
        self._one_row: OneRow | None = None

    @property
    def pool(self) -> ExpertPool:
        """The experts at work."""
        return self.selection.pool

    @property
    def stackings(self) -> list[Stacking]:
        """Their stacking, of each target."""
        return self.selection.stackings

    @property
    def left(self) -> int:
        """Rows until the chunk's end."""
        return next_boundary(self.rows, self.longest) - self.rows

    # ---- rows inside a chunk

    @property
    def one_row(self) -> OneRow | None:
        """The way of single rows through this chunk; None where they have to go as blocks."""
        if self._one_row is None and OneRow.can(self):
            self._one_row = OneRow(self)
        return self._one_row

    def learn_row(self, y: Sequence[float], now: int, asked: Asked | None = None) -> bool:
        """Learn the row that :attr:`one_row` was asked last, or one that was asked earlier, with weight 1.

        ``now`` rows were learned before, in all. Returns whether that was the end of its chunk, and what is
        due then was done.
        """
        assert self._one_row is not None
        self._one_row.learn(y, now, asked)
        self.cuts.append(0)
        ended = self.rows == next_boundary(self.rows - 1, self.longest)
        if ended:
            self._one_row = None
            self._end_chunk()
        return ended

    def advance(
        self, rows: Matrix, known: NDArray[np.int64], waiting: Asked | None, count: int
    ) -> tuple[Outcome, Asked | None]:
        """Predict rows, and learn the first ``count`` of those that wait and of these, at most ``left``.

        ``known[i]`` of them are learned before row i is predicted. Returns those that still wait, too, or
        None. If the chunk ends with the last one learned, what is due at its end is done.
        """
        self._one_row = None
        self.layout = layout = self.layout.of(rows.shape[1])
        m = len(rows)
        queued = rows if waiting is None else np.concatenate([waiting.rows, rows])
        learned = queued[:count]
        at_once = waiting is None and count == m and bool((known == np.arange(m)).all())
        Y, w = layout.outputs(learned, self.outputs), layout.weights(learned)
        believed = layout.believed(learned, self.bounds)
        target_range = self.targets.follow(Y, believed, known, w)
        inside = target_range.within(self.bounds)
        F = np.empty((m, len(self.pool) + BASELINES, self.outputs))
        F[:, MEAN], F[:, LAST] = target_range.means, layout.last_target(rows, target_range.means)
        shown = layout.shown(rows, self.bounds)
        past_shown = None if at_once else layout.shown(learned, self.bounds)
        self.pool.advance(shown, past_shown, Y, np.sqrt(believed), known, layout, F)
        inside.clip(F)
        centres = np.zeros((m, 1)) if layout.classes else target_range.means
        asked = Asked(rows, F, centres, np.empty((m, self.outputs)))
        if not at_once:
            # Those that wait may outlast the experts: they keep a column for each that there ever was.
            asked = asked._replace(F=self.selection.spread(F))
            asked = asked if waiting is None else waiting.then(asked)
            F_learned = asked.F[:count, self.selection.columns]
        else:
            F_learned = F
        weights, predictions = np.zeros((m, layout.count)), np.empty((m, self.outputs))
        forms = np.empty((m, layout.count))
        # Of no matter where the last targets lie inside the bounds, as they nearly always do.
        last = layout.last(rows)[:, 0]
        held: Any = [True] if layout.classes else self.bounds.holds(last).all(axis=0)
        clipped = self.bounds.clip(Y)
        for k, own in enumerate(layout.each):
            watched, its_forms = None if held[k] else (LAST, np.zeros(m)), np.empty(m)
            predictions[:, own] = self.stackings[k].advance(
                F[:, :, own],
                centres[:, k].copy(),
                F_learned[:, :, own],
                asked.centres[:count, k].copy(),
                clipped[:, own].copy(),
                w,
                known,
                float(self.largest_error[k]),
                watched,
                its_forms,
            )
            forms[:, k] = its_forms
            if watched is not None:
                weights[:, k] = watched[1]
        self._follow(predictions, weights, rows, inside, target_range)
        self._lean(predictions, F)
        asked.predictions[len(queued) - m :] = predictions
        past = asked.predictions[:count]
        logits, classes_before = predictions, np.zeros(m, dtype=np.int64)
        if layout.classes:
            # Classes are numbered as they come: after each row, so many are known.
            behind = layout.targets(learned)[:, 0] + 1.0
            codes = np.concatenate([[self.known_classes], behind]).astype(np.int64)
            counts = np.maximum.accumulate(codes)
            self.known_classes, classes_before = int(counts[-1]), counts[known]
            logits = self.calibration.advance(predictions, past, Y, known, counts[1:] * (w > 0.0))
        errors, missed = layout.errors(learned), (past - Y) ** 2
        errors[:] = missed.sum(axis=1, keepdims=True) if layout.classes else missed
        for k, own_errors in enumerate(np.minimum(errors, self.largest_error).T.copy()):
            self.losses[k] += [float(w @ own_errors), np.count_nonzero(w)]
        self.reservoir.extend(learned)
        outcome = Outcome(
            predictions,
            logits,
            self.selection.number_of_leader,
            forms,
            self.pool.size,
            classes_before,
            doubts_in_block(self.pool, rows, self.ranges, F, predictions, layout.count)
            if self.outputs
            else np.zeros((m, 1, 1 + SIZES)),
        )
        self.rows += count
        if count:
            self.cuts.append(count)
        if count and self.rows == next_boundary(self.rows - 1, self.longest):
            self._end_chunk()
        return outcome, asked.part(slice(count, None)) if len(queued) > count else None

    def _follow(
        self,
        predictions: Matrix,
        weights: Matrix | Vector,
        rows: Matrix,
        inside: TargetRange,
        target_range: TargetRange,
    ) -> None:
        """Inside the outlier bounds; where the last target lies beyond them and has a weight, as far out.

        No expert has learned from a target there, and it may be the level from now on.
        """
        inside.clip(predictions)
        if not self.layout.classes:
            last = self.layout.last(rows)[:, 0]
            predictions += np.where(weights > FOLLOWED, last - self.bounds.clip(last), 0.0)
            target_range.clip(predictions)

    def _lean(self, predictions: Matrix, F: NDArray[np.float64]) -> None:
        """Where a class is rare, towards the logistic expert: squared errors say little about its rows."""
        column = self.pool.logistic_column
        if self.calibration.least < NO_LESS and column is not None:
            predictions += 0.75 * (F[:, column] - predictions)

    # ---- more classes, more features

    def add_output(self) -> None:
        """A class more, that no row was of so far."""
        self._one_row = None
        self.outputs += 1
        self.targets.add_output()
        self.pool.add_output()

    def widen(self, values: Vector) -> None:
        """Features more, behind the others, which had these values in all rows so far.

        No feature map looks at them before some rows have had them; then all are refitted.
        """
        self._one_row, layout = None, self.layout
        self.reservoir.change(lambda rows: layout.widened(rows, values))
        self.layout = replace(layout, width=layout.width + len(values))
        if self.rows and not self.due:
            self.due = (self.rows // LONGEST + 4) * LONGEST

    # ---- the end of a chunk

    def _end_chunk(self) -> None:
        t, self.cuts = self.rows, []
        self.reservoir.sample_recent()
        self._set_bounds()
        ended = chunk_before(t, self.longest)
        # Where targets become known k rows late, regret grows as k + 1 (Joulani, Gyorgy, Szepesvari 2013),
        # and the prior with it.
        learned = self.reservoir.last(ended)
        self._widen_ranges(learned[:, : self.layout.width])
        waited = Layout.waited(learned)
        rarity = self.targets.rarity
        self.calibration.end_chunk(rarity)
        late = 1.0 + float(waited.mean())
        variances, errors = self.targets.variances.tolist(), self._usual_errors.tolist()
        for stacking, variance, error in zip(self.stackings, variances, errors, strict=True):
            stacking.compare(ended, self.selection.compared)
            moving = t >= EARLY and stacking.leads(error)
            stacking.end_chunk(ended, rarity * variance * late, moving)
        self.losses *= FORGETTING**ended
        self._set_largest_error()
        now = ChunkEnd(
            rows=t,
            layout=self.layout,
            outputs=self.outputs,
            flags=min(self.known_classes, MOST_CLASSES),
            bounds=self.bounds,
            errors=self._usual_errors,
            rare=rarity > 1.0,
        )
        self.selection.end_chunk(now, at_once=t == self.due, refit=refits(t))
        for stacking in self.stackings:
            stacking.begin_comparison(self.selection.compared)
        # A selection step on the way takes new features in, too.
        self.due = 0 if t >= self.due else self.due

    def _widen_ranges(self, X: Matrix) -> None:
        ranges, known = np.column_stack([X.min(axis=0), X.max(axis=0)]), len(self.ranges)
        ranges[:known, 0] = np.minimum(ranges[:known, 0], self.ranges[:, 0])
        ranges[:known, 1] = np.maximum(ranges[:known, 1], self.ranges[:, 1])
        self.ranges = ranges

    @property
    def _usual_errors(self) -> Vector:
        return self.losses[:, 0] / np.maximum(self.losses[:, 1], 1.0)

    def _set_bounds(self) -> None:
        if self.layout.classes:
            return
        rows, layout = self.reservoir.last(self.reservoir.recent), self.layout
        before, self.bounds = self.bounds, OutlierBounds.of(layout.targets(rows)[layout.weights(rows) > 0.0])
        for k in np.flatnonzero((before.low == NO_BOUNDS[0]) & (self.rows <= CHUNK)):
            # The weights so far were learned from outliers, too, with experts of few rows.
            self.stackings[k].begin()
            self.losses[k] = 0.0
        if is_selection_step(self.rows) and self.rows <= SETTLED:
            # The first targets were counted before there were outlier bounds, or with bounds of few rows.
            kept = self.reservoir.sampled()
            self.targets.count_again(layout.targets(kept), layout.believed(kept, self.bounds))

    def _set_largest_error(self) -> None:
        usual = self._usual_errors
        counts = self.rows >= CHUNK and not self.layout.classes
        scaled = (usual > ROUNDING * self.targets.variances) & counts
        self.largest_error = np.where(scaled, WILD * usual, NO_BOUNDS[1])

    # ---- looking

    def predict(self, rows: Matrix, recent_targets: bool) -> tuple[Matrix, Matrix]:
        """Predictions and logits for rows, each as if it came next. Changes nothing."""
        F, target_range = self._answers(rows, recent_targets)
        return self._combined(rows, recent_targets, F, target_range)

    def _answers(self, rows: Matrix, recent_targets: bool) -> tuple[NDArray[np.float64], TargetRange]:
        """What all experts predict, and what is known of the targets."""
        layout = self.layout.of(rows.shape[1])
        target_range = self.targets.now(len(rows))
        F = np.empty((len(rows), len(self.pool) + BASELINES, self.outputs))
        F[:, MEAN], F[:, LAST] = target_range.means, layout.last_target(rows, target_range.means)
        self.pool.predict(layout.shown(rows, self.bounds), layout, F, lags=recent_targets)
        target_range.within(self.bounds).clip(F)
        return F, target_range

    def _combined(
        self, rows: Matrix, recent_targets: bool, F: NDArray[np.float64], target_range: TargetRange
    ) -> tuple[Matrix, Matrix]:
        layout = self.layout.of(rows.shape[1])
        absent = [] if recent_targets else self.pool.columns_with_lags
        predictions, weights = np.empty((len(rows), self.outputs)), np.zeros(layout.count)
        for k, (stacking, own) in enumerate(zip(self.stackings, layout.each, strict=True)):
            centre = 0.0 if layout.classes or not len(rows) else float(target_range.means[0, k])
            predictions[:, own] = stacking.combine(F[:, :, own], centre, absent)
            weights[k] = stacking.weights[LAST] * recent_targets
        self._follow(predictions, weights, rows, target_range.within(self.bounds), target_range)
        self._lean(predictions, F)
        logits = self.calibration.logits(predictions) if layout.classes else predictions
        return predictions, logits

    def predict_with_doubts(self, rows: Matrix, recent_targets: bool) -> tuple[Matrix, Matrix]:
        """Predictions, and how doubtful each is. Changes nothing."""
        layout, (F, target_range) = self.layout.of(rows.shape[1]), self._answers(rows, recent_targets)
        predictions = self._combined(rows, recent_targets, F, target_range)[0]
        seen = CachedFeatures(layout.shown(rows, self.bounds), layout)
        return predictions, doubts_of(self.pool, seen, self.ranges, F, predictions, layout.count)

    def novelty(self, rows: Matrix) -> Vector:
        """How new rows are, from 0 to 1: :mod:`~kons.learners.auto.doubts`."""
        layout = self.layout.of(rows.shape[1])
        return novelty_of(self.pool, CachedFeatures(layout.shown(rows, self.bounds), layout), self.ranges)

    @property
    def error_without_lags(self) -> Vector:
        """By what errors of each target grow without last targets: the root of the ratio of their squares.

        Of stacking without the experts that take these, the squared loss over the past rises by
        ``w_S^T (A^-1)_SS^-1 w_S``, known without another pass.
        """
        absent, growth = self.pool.columns_with_lags, np.ones(self.layout.count)
        for k, (stacking, usual) in enumerate(zip(self.stackings, self._usual_errors, strict=True)):
            rise = 0.0 if stacking.is_fixed else stacking.removal_cost(absent)
            if usual > 0.0 and stacking.memory > 0.0:
                growth[k] = math.sqrt(1.0 + max(rise, 0.0) / (stacking.memory * usual))
        return growth

    def relevances(self) -> Vector:
        """How much each feature counts to the experts without last targets, the most relevant 1.

        0 where no expert looks at it yet.
        """
        feature_maps = self.selection.feature_maps
        feature_map = feature_maps.current.get((False, feature_maps.better[False]))
        if feature_map is None:
            return np.ones(self.layout.width)
        return np.pad(relevances(feature_map.metric), (0, self.layout.width - feature_map.features))

    # ---- going back, copies and files

    def mark(self) -> Any:
        """Where everything stands, for :meth:`restore`."""
        mark = super().mark()
        if self._one_row is not None:
            self._one_row.look_again()  # arrays that a mark holds are not written
        return mark

    def _restored(self) -> None:
        self._one_row = None

    def __getstate__(self) -> dict[str, Any]:
        """Of copies and pickles, whose arrays are elsewhere."""
        return {**vars(self), "_one_row": None}

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if not self.layout.classes and self.known_classes:
            raise stored.error(f"numbers have {self.known_classes} classes")
        come = chunk_before(self.rows + self.left, self.longest) - self.left
        if any(came != come for came in (sum(max(cut, 1) for cut in self.cuts), *self.pool.pending)):
            raise stored.error(f"its chunk has other rows than the {come} that came since the last one's end")
        if 0 in self.cuts and not OneRow.can(self):
            raise stored.error("a row came by itself, where rows go as blocks")
        if self.reservoir.rows != self.rows:
            raise stored.error(f"{self.reservoir.rows} of {self.rows} rows were kept")
        for rows in (self.reservoir.sampled(), self.reservoir.last(self.reservoir.recent)):
            self.layout.require_codes(rows, self.outputs, stored)
        self._learn_chunk_again()

    def _learn_chunk_again(self) -> None:
        """What the chunk's rows built in experts is in no file: the same calls find it, bit for bit."""
        nobody, none, start = (
            np.zeros((0, len(self.pool) + BASELINES, self.outputs)),
            np.zeros(0, np.int64),
            0,
        )
        rows = self.reservoir.last(sum(max(cut, 1) for cut in self.cuts))
        with ExitStack() as experts:
            for expert in self.pool.experts:
                experts.enter_context(expert.begin_again())
            for cut in self.cuts:
                part = rows[start : start + max(cut, 1)]
                start += len(part)
                if not cut:
                    one = self.one_row
                    assert one is not None
                    one.learn_again(part[0])
                    continue
                self._one_row = None
                shown, Y = self.layout.shown(part, self.bounds), self.layout.outputs(part, self.outputs)
                roots = np.sqrt(self.layout.believed(part, self.bounds))
                self.pool.advance(shown[:0], shown, Y, roots, none, self.layout, nobody)
        self._one_row = None
