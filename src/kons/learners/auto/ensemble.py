"""Rows through the expert pool in chunks: predicted by all experts, stacked, learned.

Everything here is numbers: a row is its features, the last targets known when it was predicted, its own
target (a class as its number), its weight and the error of stacking. At the ends of chunks
(:mod:`~kons.learners.auto.schedule`) experts are fitted and pruned (:mod:`~kons.learners.auto.selection`).
Rows that come one by one have a way of their own (:mod:`kons.learners.auto.single`), with the same outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.core.threads import single_threaded_blas
from kons.learners.auto.aggregation import Aggregation
from kons.learners.auto.calibration import Calibration
from kons.learners.auto.feature_map import Fixed
from kons.learners.auto.metric_learning import relevances
from kons.learners.auto.pending import PendingTargets
from kons.learners.auto.pool import ExpertPool
from kons.learners.auto.reservoir import Reservoir
from kons.learners.auto.rows import MOST_CLASSES, LastTargets, Layout
from kons.learners.auto.schedule import (
    CHUNK,
    LONGEST,
    SETTLED,
    chunk_before,
    is_selection_step,
    next_boundary,
    refits,
)
from kons.learners.auto.selection import ChunkEnd, Selection
from kons.learners.auto.single import SingleRows
from kons.learners.auto.spec import BASELINES, LAST, MEAN
from kons.learners.auto.target_range import (
    FOLLOWED,
    NO_BOUNDS,
    ROUNDING,
    OutlierBounds,
    TargetRange,
    Targets,
    bounds_around,
)
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
    """Its number: of the mean, or its place in the roster behind the baselines."""
    leader_predictions: Matrix
    inverse_forms: Vector
    size: int
    """Atoms of all experts that predicted these rows."""
    known_classes: NDArray[np.int64]
    """How many classes were known before each row."""


class Ensemble:
    """Predict and learn rows of numbers. See the module."""

    def __init__(
        self,
        *,
        classes: bool,
        max_atoms: int,
        experts: int,
        sample: int,
        recent: int,
        longest: int,
        knots: int,
        delay: int,
        seed: int,
        fixed: Fixed,
    ) -> None:
        self.delay, self.seed = delay, seed
        #: Rows of the longest chunk.
        self.longest = longest
        self.layout = Layout(0, classes)
        self.outputs = 0 if classes else 1
        self.known_classes = 0
        self.rows = 0
        # A selection step that new features wait for; 0: none.
        self.due = 0
        # Squared errors of the stacking, forgotten as it forgets.
        self.loss, self.loss_rows = 0.0, 0.0
        # For a chunk each: targets beyond are not learned from; squared errors beyond weigh less in stacking.
        self.bounds, self.largest_error = NO_BOUNDS, NO_BOUNDS.high
        self.calibration = Calibration()
        self.targets = Targets(classes)
        self.reservoir = Reservoir(sample, recent, seed)
        self.last_targets = LastTargets(classes, delay)
        self.pending = PendingTargets(delay)
        self.selection = Selection(
            self.reservoir,
            self.pending,
            classes=classes,
            max_atoms=max_atoms,
            experts=experts,
            knots=knots,
            seed=seed,
            fixed=fixed,
        )
        # The chunk's rows that came one by one, and whether they are at least as new as the parts.
        self._single: SingleRows | None = None
        self._singly, self._chunk_end = False, 0
        # Predictions of single rows write here: their work is kept for the learning of the same row.
        self._lock = threading.RLock()

    @property
    def pool(self) -> ExpertPool:
        """The experts at work."""
        return self.selection.pool

    @property
    def stacking(self) -> Aggregation:
        """Their stacking."""
        return self.selection.stacking

    # ---- a stretch of rows

    def advance(self, X: Matrix, y: Vector, weights: Vector) -> list[Outcome]:
        """Predict and learn rows, cut at the ends of chunks."""
        self._leave_single()
        self.layout = Layout(X.shape[1], self.layout.classes)
        outcomes, start = [], 0
        while start < len(X):
            stop = min(len(X), start + next_boundary(self.rows, self.longest) - self.rows)
            outcomes.append(self._advance_part(X[start:stop], y[start:stop], weights[start:stop]))
            start = stop
        return outcomes

    def _advance_part(self, X: Matrix, y: Vector, weights: Vector) -> Outcome:
        layout, pending = self.layout, self.pending
        rows = layout.join(X, self.last_targets.follow(y), y, weights)
        m = len(rows)
        queued = pending.joined("rows", rows)
        count = max(len(queued) - self.delay, 0)
        # Before row i is predicted, so many of the rows that become known in this stretch are known.
        known = np.clip(np.arange(m) + len(pending) - self.delay, 0, count)
        learned = queued[:count]
        Y, w = layout.outputs(learned, self.outputs), layout.weights(learned)
        believed = layout.believed(learned, self.bounds)
        target_range = self.targets.follow(Y, believed, known, w)
        inside = target_range.within(*self.bounds)
        F = np.empty((m, len(self.pool) + BASELINES, self.outputs))
        F[:, MEAN], F[:, LAST] = target_range.means, layout.last_target(rows, target_range.means)
        shown = layout.shown(rows, self.bounds)
        past_shown = layout.shown(learned, self.bounds) if self.delay else None
        self.pool.advance(shown, past_shown, Y, np.sqrt(believed), known, layout, F)
        inside.clip(F)
        centres = np.zeros(m) if layout.classes else target_range.means[:, 0]
        queued_F, queued_centres = pending.joined("F", F), pending.joined("centres", centres)
        before = queued_F[:count], queued_centres[:count], self.bounds.clip(Y), w, known
        used = np.empty((m, len(F[0])))
        predictions = self.stacking.advance(F, centres, *before, self.largest_error, used)
        self._follow(predictions, used[:, LAST], rows, inside, target_range)
        queued_predictions = pending.joined("predictions", predictions)
        past = queued_predictions[:count]
        logits, classes_before = predictions, np.zeros(m, dtype=np.int64)
        if layout.classes:
            # Classes are numbered as they come: after each row, so many are known.
            codes = np.concatenate([[self.known_classes], layout.targets(learned) + 1.0]).astype(np.int64)
            counts = np.maximum.accumulate(codes)
            self.known_classes, classes_before = int(counts[-1]), counts[known]
            logits = self.calibration.advance(2.0 * predictions - 1.0, 2.0 * past - 1.0, Y, known, counts[1:])
        errors = layout.errors(learned)
        errors[:] = np.sum((past - Y) ** 2, axis=1)
        self.loss += float(w @ np.minimum(errors, self.largest_error))
        self.loss_rows += count
        self.reservoir.extend(learned)
        outcome = Outcome(
            predictions,
            logits,
            self.selection.number_of_leader,
            F[:, self.selection.leader],
            self.pool.forms(self.selection.leader, m),
            self.pool.size,
            classes_before,
        )
        pending.keep(
            rows=queued[count:],
            F=queued_F[count:],
            centres=queued_centres[count:],
            predictions=queued_predictions[count:],
        )
        self.rows += m
        if self.rows == next_boundary(self.rows - 1, self.longest):
            self._end_chunk()
        return outcome

    def _follow(
        self,
        predictions: Matrix,
        weight: Vector | float,
        rows: Matrix,
        inside: TargetRange,
        target_range: TargetRange,
    ) -> None:
        """Inside the outlier bounds; where the last target lies beyond them and has a weight, as far out.

        No expert has learned from a target there, and it may be the level from now on.
        """
        inside.clip(predictions)
        if not self.layout.classes:
            last = rows[:, self.layout.width]
            predictions += np.where(weight > FOLLOWED, last - self.bounds.clip(last), 0.0)[:, None]
            target_range.clip(predictions)

    # ---- one row

    def predict_row(self, x: Vector) -> Vector | None:
        """Logits of classes, or the prediction, for one row as if it came next; None: use :meth:`predict`."""
        with self._lock:
            single = self._at_hand()
            return None if single is None else single.predict(x)

    def learn_row(self, x: Vector, y: float, at_end: Callable[[], None] = lambda: None) -> bool:
        """Learn one row with weight 1, exactly or not at all; False: use :meth:`advance`.

        With ``at_end``, which is called if it was the last of its chunk.
        """
        with self._lock:
            single = self._at_hand()
            if single is None:
                return False
            end = self._chunk_end
            if single.left > 1:  # nothing here can fail
                self.rows = end - single.learn(x, y)
                return True
            # The last of its chunk: the parts stand where rows were last settled.
            mark, rows = self._mark_parts(), single.mark()
            try:
                self.rows = end - single.learn(x, y)
                with single_threaded_blas():
                    self._leave_single()
                    self._end_chunk()
                    at_end()
            except BaseException:
                self._restore_parts(mark)
                single.restore(rows)
                self._singly = True
                raise
        return True

    @property
    def left(self) -> int:
        """Rows until the chunk's end."""
        return (self._chunk_end if self._singly else next_boundary(self.rows, self.longest)) - self.rows

    def _at_hand(self) -> SingleRows | None:
        """The single rows, as new as the parts; None where a row has to go through these."""
        if self._singly:
            return self._single
        pool, width, outputs = self.pool, self.layout.width, self.outputs
        if not self.rows or not outputs or not SingleRows.can(pool):
            return None
        if self._single is None or not self._single.fits(pool, width, outputs):
            self._single = SingleRows(
                pool,
                self.stacking,
                self.calibration,
                self.targets,
                self.last_targets,
                self.reservoir,
                self.pending,
                width=width,
                outputs=outputs,
            )
        self._chunk_end = next_boundary(self.rows, self.longest)
        self._single.load(
            self._chunk_end - self.rows,
            loss=self.loss,
            loss_rows=self.loss_rows,
            known_classes=self.known_classes,
            bounds=self.bounds,
            largest_error=self.largest_error,
        )
        self._singly = True
        return self._single

    def flush(self) -> None:
        """Give single rows to the parts: whatever else looks at these comes here first."""
        with self._lock:
            if self._singly and self._single is not None:
                self.loss, self.loss_rows, self.known_classes = self._single.flush()
                self.rows = self._chunk_end - self._single.left

    def _leave_single(self) -> None:
        """Settle, for the parts will change."""
        self.flush()
        self._singly = False

    # ---- more classes, more features

    def add_output(self) -> None:
        """A class more, that no row was of so far."""
        self._leave_single()
        self.outputs += 1
        self.targets.add_output()
        self.pool.add_output()
        self.pending.add_output()

    def widen(self, values: Vector) -> None:
        """Features more, behind the others, which had these values in all rows so far.

        No feature map looks at them before some rows have had them; then all are refitted.
        """
        self._leave_single()
        layout = self.layout
        self.reservoir.change(lambda rows: layout.widened(rows, values))
        self.pending.change_rows(lambda rows: layout.widened(rows, values))
        self.layout = Layout(layout.width + len(values), layout.classes)
        if not self.due:
            self.due = (self.rows // LONGEST + 4) * LONGEST

    # ---- the end of a chunk

    def _end_chunk(self) -> None:
        t = self.rows
        self._set_bounds()
        ended = chunk_before(t, self.longest)
        self.stacking.end_chunk(ended, self.targets.variance)
        decay = self.stacking.forgetting**ended
        self.loss, self.loss_rows = decay * self.loss, decay * self.loss_rows
        self._set_largest_error()
        due = self.reservoir.rows > 0 and (is_selection_step(t) or t == self.due)
        now = ChunkEnd(
            rows=t,
            layout=self.layout,
            outputs=self.outputs,
            flags=min(self.known_classes, MOST_CLASSES),
            bounds=self.bounds,
            error=self._usual_error,
        )
        self.selection.end_chunk(now, selects=due, refit=refits(t))
        self.due = 0 if due and t >= self.due else self.due

    @property
    def _usual_error(self) -> float:
        return self.loss / max(self.loss_rows, 1.0)

    def _set_bounds(self) -> None:
        if self.layout.classes or not self.reservoir.rows:
            return
        rows = self.reservoir.last(self.reservoir.recent)
        before, self.bounds = self.bounds, bounds_around(Layout.targets(rows)[Layout.weights(rows) > 0.0])
        if before == NO_BOUNDS and self.rows <= CHUNK:
            # The weights so far were learned from outliers, too, with experts of few rows.
            self.stacking.begin()
            self.loss, self.loss_rows = 0.0, 0.0
        if is_selection_step(self.rows) and self.rows <= SETTLED:
            # The first targets were counted before there was a outlier bounds, or behind one of few rows.
            kept = self.reservoir.sampled()
            self.targets.count_again(self.layout.outputs(kept, 1), self.layout.believed(kept, self.bounds))

    def _set_largest_error(self) -> None:
        usual = self._usual_error
        told = not self.layout.classes and self.rows >= CHUNK and usual > ROUNDING * self.targets.variance
        self.largest_error = WILD * usual if told else NO_BOUNDS.high

    # ---- looking

    def last(self, count: int) -> Matrix:
        """The last ``count`` rows whose targets are known, and behind them all that wait."""
        known = self.reservoir.last(count)
        return np.concatenate([known, self.pending.arrays["rows"]]) if len(self.pending) else known

    def predict(self, X: Matrix, recent_targets: bool) -> tuple[Matrix, Matrix]:
        """Predictions and logits for rows, each as if it came next. Changes nothing."""
        self.flush()
        layout = Layout(X.shape[1], self.layout.classes)
        nothing = np.zeros(len(X))
        rows = layout.join(X, self.last_targets.next(len(X)), nothing, nothing)
        target_range = self.targets.now(len(X))
        inside = target_range.within(*self.bounds)
        F = np.empty((len(X), len(self.pool) + BASELINES, self.outputs))
        F[:, MEAN], F[:, LAST] = target_range.means, layout.last_target(rows, target_range.means)
        self.pool.predict(layout.shown(rows, self.bounds), layout, F, lags=recent_targets)
        inside.clip(F)
        centre = 0.0 if layout.classes else float(target_range.means[0, 0])
        absent = [] if recent_targets else self.pool.columns_with_lags
        predictions = self.stacking.combine(F, centre, absent)
        self._follow(predictions, self.stacking.weights[LAST] * recent_targets, rows, inside, target_range)
        logits = self.calibration.logits(2.0 * predictions - 1.0) if layout.classes else predictions
        return predictions, logits

    def relevances(self) -> Vector:
        """How much each feature counts to the experts without last targets, the most relevant 1.

        0 where no expert looks at it yet.
        """
        feature_maps = self.selection.feature_maps
        feature_map = feature_maps.current.get((False, feature_maps.better[False]))
        if feature_map is None:
            return np.ones(self.layout.width)
        return np.pad(relevances(feature_map.metric), (0, self.layout.width - feature_map.features))

    # ---- going back, and on from a file

    PARTS = ("selection", "calibration", "targets", "reservoir", "last_targets", "pending")
    NUMBERS = (
        *("layout", "outputs", "known_classes", "rows", "due"),
        *("loss", "loss_rows", "bounds", "largest_error"),
    )

    def mark(self) -> Any:
        """Where everything stands, for :meth:`restore`."""
        self.flush()
        return self._mark_parts()

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        self._singly = False
        self._restore_parts(mark)

    def __getstate__(self) -> dict[str, Any]:
        """Of copies and pickles, which begin without what is only there to be fast."""
        self.flush()
        return {**vars(self), "_single": None, "_singly": False, "_lock": None}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields, _lock=threading.RLock())

    def _mark_parts(self) -> Any:
        numbers = {name: getattr(self, name) for name in self.NUMBERS}
        return numbers, [getattr(self, name).mark() for name in self.PARTS]

    def _restore_parts(self, mark: Any) -> None:
        numbers, parts = mark
        vars(self).update(numbers)
        for name, part in zip(self.PARTS, parts, strict=True):
            getattr(self, name).restore(part)

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        self.flush()
        plain = ("calibration", "targets", "reservoir", "last_targets", "pending")
        return {
            **{name: getattr(self, name) for name in self.NUMBERS if name not in ("layout", "bounds")},
            "bounds": np.array(self.bounds),
            "width": self.layout.width,
            **{name: getattr(self, name).state() for name in plain},
            **self.selection.state(),
        }

    def load_state(self, stored: Stored) -> None:
        """Take what :meth:`state` saved into an ensemble that has seen nothing."""
        self._single, self._singly = None, False
        classes = self.layout.classes
        self.rows, self.due = stored.integer("rows"), stored.integer("due")
        self.outputs = stored.integer("outputs", at_least=0 if classes else 1)
        self.known_classes = stored.integer("known_classes", at_most=self.outputs if classes else 0)
        self.layout = Layout(stored.integer("width", at_least=1 if self.rows else 0), classes)
        self.loss = stored.number("loss", at_least=0.0)
        self.loss_rows = stored.number("loss_rows", at_least=0.0)
        self.largest_error = stored.number("largest_error", at_least=0.0)
        low, high = stored.array("bounds", 2).tolist()
        self.bounds = OutlierBounds(low, max(low, high))
        self.selection.load_state(stored, self.layout.width, self.outputs)
        left = next_boundary(self.rows, self.longest) - self.rows
        if any(expert.pending + left > LONGEST for expert in self.pool.experts):
            raise stored.error(f"an expert's chunk has no room for the {left} rows that it still takes")
        sizes = {
            "rows": self.rows,
            "outputs": self.outputs,
            "columns": self.layout.columns if self.rows else None,
            "experts": len(self.pool) + BASELINES,
        }
        for name in ("calibration", "targets", "reservoir", "last_targets", "pending"):
            getattr(self, name).load_state(stored.inner(name), **sizes)
        pending = [self.pending.arrays["rows"]] if len(self.pending) else []
        for rows in (*pending, self.reservoir.sampled(), self.reservoir.last(self.reservoir.recent)):
            self.layout.require_codes(rows, self.outputs, stored)
        stored.finish()
