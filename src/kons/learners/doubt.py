"""Verbs of a learner that say how sure it is: ``predict_interval`` of numbers, ``predict_set`` of labels.

Every learner follows its own errors as it learns (:mod:`kons.learners.predictive`), whatever it is: what was
predicted of a row before it was learned is in the trace of a block; of a single row the learner says it
afterwards (:meth:`KnowsItsErrors._said`) or is asked before. A row that waits for its target keeps a note of
what was predicted of it. Learners that are parts of others leave it to these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, require_number
from kons.core.conformal import REMEMBERED
from kons.errors import ConfigurationError
from kons.learners.labels import Labels, object_array
from kons.learners.learner import Learner
from kons.learners.predictive import Intervals, PredictionSets
from kons.learners.queue import Kept, Shapes
from kons.learners.record import Record
from kons.learners.trace import Trace
from kons.state import Field, Inner, fields
from kons.stored import Stored

__all__ = ["KnowsItsErrors"]


class KnowsItsErrors(Learner):
    """A learner that follows its errors, and says how sure it is of what it predicts."""

    STATE: ClassVar[Mapping[str, Field | None]] = fields(
        _errors=Inner(make=lambda learner: learner._new_errors(1), left_out=True)
    )

    _followed: Any = None
    #: Single rows whose errors are not followed yet: nothing that is learned waits for them.
    _record: Record | None = None
    #: Whether somebody else follows its errors: the learner that it is a part of, or a verb on the way.
    _followed_elsewhere: bool = False
    #: Numbers of a row, besides what is predicted and how new it is, that grow with doubt.
    _doubts: ClassVar[int] = 0
    #: The last errors that intervals are made of.
    _scores_kept: int = REMEMBERED
    predict: Any
    predict_proba: Any

    # ---- asking

    def predict_interval(self, X: Any, level: float = 0.9, **options: Any) -> NDArray[np.float64]:
        """Intervals that hold the target of a share ``level`` of the rows, (n, 2): lower and upper ends.

        As wide as each row deserves, around what ``predict`` says with the same options; (n, k, 2) of k
        targets. Infinite before 20 residuals are known. Right on average over rows as they come in the
        stream, also while it drifts; not for a single row. Changes nothing.

        >>> import numpy as np
        >>> from kons import AutoKONS
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, size=(1000, 1))
        >>> y = x[:, 0] + np.where(x[:, 0] > 0, 0.5, 0.05) * rng.normal(size=1000)
        >>> model = AutoKONS()
        >>> trace = model.advance(x, y)
        >>> (left, right) = np.diff(model.predict_interval([[-0.5], [0.5]]))[:, 0]
        >>> bool(3 * left < right)
        True
        """
        level = self._require_level(level, labels=False)
        rows = self._rows_of(X, **options)
        ends = np.full((*rows.shape[:2], 2), [-np.inf, np.inf])
        if self._errors is not None:
            ends = self._errors.ends(rows, level)
        return ends if self.outputs else ends[:, 0]

    def predict_interval_one(self, x: Any, level: float = 0.9) -> NDArray[np.float64]:
        """The interval of one row as if it came next, (2,); (k, 2) of k targets."""
        level = self._require_level(level, labels=False)
        rows = self._row_of(x)[None]
        ends = np.full((*rows.shape[:2], 2), [-np.inf, np.inf])
        if self._errors is not None:
            ends = self._errors.ends(rows, level)
        interval: NDArray[np.float64] = ends[0] if self.outputs else ends[0, 0]
        return interval

    def predict_set(self, X: Any, level: float = 0.9, **options: Any) -> list[list[Any]]:
        """For each row labels, the most probable first, that hold the true one in a share ``level`` of them.

        Never empty; where the most probable label is right more often than that, it is alone. All labels
        before 20 rows are known. Changes nothing.

        >>> import numpy as np
        >>> from kons import AutoKONS
        >>> x = np.random.default_rng(0).normal(size=(600, 1))
        >>> model = AutoKONS("classification")
        >>> trace = model.advance(x, np.where(x[:, 0] + 0.5 * np.roll(x[:, 0], 1) > 0, "up", "down"))
        >>> model.predict_set([[-2.0], [2.0]])
        [['down'], ['up']]
        """
        level = self._require_level(level, labels=True)
        return self._sets(np.asarray(self.predict_proba(X, **options)), level)

    def predict_set_one(self, x: Any, level: float = 0.9) -> list[Any]:
        """The labels of one row; none before any is known."""
        level = self._require_level(level, labels=True)
        shares = self.predict_proba_one(x)
        return self._sets(np.array([list(shares.values())]), level)[0] if shares else []

    def _sets(self, probabilities: Matrix, level: float) -> list[list[Any]]:
        named = np.ones(probabilities.shape, dtype=np.bool_)
        if self._errors is not None:
            named = self._errors.named(probabilities, level)
        labels = object_array(self.classes)
        order = np.argsort(-probabilities, axis=1, kind="stable")
        return [labels[places[chosen[places]]].tolist() for places, chosen in zip(order, named, strict=True)]

    def _require_level(self, level: Any, *, labels: bool) -> float:
        if not self.supervised:
            raise ConfigurationError(f"{self.name} learns no targets: there are no errors to follow.")
        if labels != self.labelled:
            verb, other = ("predict_set", "predict_interval")[:: 1 if labels else -1]
            what = "labels" if self.labelled else "numbers"
            raise ConfigurationError(f"{verb} is not for a learner of {what}: use {other}.")
        return require_number(level, "level", above=0.0, below=1.0)

    # ---- what is predicted of rows, and how doubtful that is: p, q and sizes of each target

    def _rows_of(self, X: Any, **options: Any) -> NDArray[np.float64]:
        """Of rows as if each came next, (n, K, 2 + sizes)."""
        return self._laid_out(self.predict(X, **options), self._novelties(X))

    def _row_of(self, x: Any) -> Matrix:
        """Of one row, (K, 2 + sizes)."""
        prediction = np.reshape(np.asarray(self.predict_one(x), dtype=np.float64), (1, -1))
        points = [x] if self.accepts == "objects" else np.asarray(x, dtype=np.float64)[None]
        row: Matrix = self._laid_out(prediction, self._novelties(points))[0]
        return row

    def _rows_of_trace(self, trace: Trace) -> NDArray[np.float64]:
        """Of rows that were just learned, as they were predicted."""
        return self._laid_out(trace["prediction"], trace.novelty)

    def _laid_out(self, predictions: Any, novelties: Any) -> NDArray[np.float64]:
        values = np.asarray(predictions, dtype=np.float64)
        values = values.reshape(len(values), -1)
        rows = np.zeros((*values.shape, 2 + self._doubts))
        rows[:, :, 0] = values
        if novelties is not None:
            rows[:, :, 1] = np.nan_to_num(novelties).reshape(len(values), -1)
        return rows

    def _novelties(self, points: Any) -> Any:
        """How new rows are, where that is in its traces, too; None: not told."""
        return None

    def _tells_afterwards(self, y: Any = 0.0) -> bool:
        """Whether it says, behind a row with this target, what it had predicted of it."""
        return False

    def _said(self) -> tuple[float, float]:
        """Prediction and novelty of the row that was just learned."""
        raise NotImplementedError

    # ---- learning

    def _new_errors(self, targets: int) -> Any:
        if self.labelled:
            return PredictionSets(self.core.forgetting, self._scores_kept)
        return Intervals(targets, self._doubts, self.core.forgetting, self._scores_kept)

    def _follow_trace(self, trace: Trace, y: Any) -> Trace:
        """Let the errors follow a block that was just learned."""
        if self._followed_elsewhere or not len(trace):
            return trace
        late = self.delay or 0
        if self.labelled:
            self._errors = self._errors or self._new_errors(1)
            probabilities = self.probabilities(trace["scores"])
            known = ~np.isnan(trace["scores"]).all(axis=1)  # none before the first class
            codes = Labels(self.classes).find(list(y))
            self._errors.follow(probabilities[known], codes[known], late)
            return trace
        rows = self._rows_of_trace(trace)
        targets = np.asarray(y, dtype=np.float64).reshape(len(rows), -1)
        self._errors = self._errors or self._new_errors(targets.shape[1])
        if rows.shape[1] != targets.shape[1]:  # none was known of several
            rows = np.repeat(rows, targets.shape[1], axis=1)
        scales = self._errors.follow(rows, targets, late)
        return replace(trace, scale=scales if self.outputs else scales[:, 0].copy())

    def _learn_and_follow(self, verb: Any, x: Any, y: Any) -> None:
        """Learn one row, and let the errors follow."""
        if self._followed_elsewhere:
            verb(self, x, y)
            return
        note = None if self._tells_afterwards(y) else self._note(x)
        self._learn_quietly(verb, x, y, note)

    def _learn_quietly(self, verb: Any, x: Any, y: Any, note: Vector | None, late: int | None = None) -> None:
        """Learn a row, and let the errors follow if it was learned, whatever stopped it behind that."""
        before, self._followed_elsewhere = self.rows_seen, True
        try:
            verb(self, x, y)
        finally:
            self._followed_elsewhere = False
            if self.rows_seen != before:
                if note is None:
                    prediction, novelty = self._said()
                    self._follow_numbers([prediction], [novelty], y)
                else:
                    self._follow_note(note, y, (self.delay or 0) if late is None else late)

    @property
    def _errors(self) -> Any:
        self._look_at_held()
        return self._followed

    @_errors.setter
    def _errors(self, errors: Any) -> None:
        self._followed = errors

    def _look_at_held(self) -> None:
        """Read the record: when that is does not matter."""

    def _follow_numbers(self, predictions: Any, novelties: Any, targets: Any) -> None:
        """Rows with one target, which were just learned."""
        if self._followed is None:
            self._followed = self._new_errors(1)
        rows = np.stack([predictions, novelties], axis=1)
        self._followed.follow(rows[:, None], np.asarray(targets, dtype=np.float64).reshape(-1, 1), 0)

    # ---- rows that wait

    def _note(self, x: Any) -> Vector:
        """What is to be known of a row when its target comes: rows and scales, or probabilities."""
        if self.labelled:
            return np.array(list(self.predict_proba_one(x).values()))
        rows = self._row_of(x)
        scales = np.zeros(len(rows)) if self._errors is None else self._errors.scales(rows[None])[0]
        return np.column_stack([rows, scales]).ravel()

    def _follow_note(self, note: Vector, y: Any, late: int = 0) -> None:
        """The target of a row came of which this was noted."""
        if self.labelled:
            self._errors = self._errors or self._new_errors(1)
            if note.any():  # else no class was known
                code = Labels(self.classes).find([y])
                self._errors.follow(note[None], np.where(code < len(note), code, -1), late)
            return
        targets = np.asarray(y, dtype=np.float64).reshape(-1)
        rows = note.reshape(-1, 3 + self._doubts)
        if len(rows) != len(targets):
            rows = np.repeat(rows, len(targets), axis=0)
        self._errors = self._errors or self._new_errors(len(targets))
        if late:
            self._errors.follow(np.ascontiguousarray(rows[None, :, :-1]), targets[None], late)
        else:
            self._errors.learn_late(rows[:, :-1], rows[:, -1], targets)

    def _keep(self, x: Any) -> Kept:
        return (*self.row_to_keep(x), self._note(x))

    def _shapes(self) -> Shapes:
        shapes: Shapes = (*self.kept_shapes(), (None,))
        return shapes

    def _learn_kept(self, kept: Kept, y: Any) -> None:
        self._learn_quietly(type(self).learn_kept_row, kept[:-1], y, kept[-1], late=0)

    def _scale_in(self, kept: Kept) -> Any:
        scales = kept[-1].reshape(-1, 3 + self._doubts)[:, -1]
        return scales if len(scales) > 1 else scales[0]

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved; errors are of as many targets."""
        super().load_state(stored, **sizes)
        if isinstance(self._errors, Intervals) and self._errors.targets != (self.outputs or 1):
            raise stored.error(f"there are errors of {self._errors.targets} targets")
