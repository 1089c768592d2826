"""One problem per class on the same rows: +1 for this class, -1 for any other.

A class may come at any time. What its problem would have learned before is what "a class that never
came" has learned, all targets -1; so one more problem is kept for it, the *unseen* one, and a new class
starts as its copy. Then nothing depends on when a class was named, nor on how rows were cut into blocks.
A closed set of classes needs no unseen one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Integers, Matrix, Vector
from kons.core.ledger import TOTALS, Ledger, new_ledger
from kons.core.quadratic import Quadratic
from kons.core.quadratic_loops import ENTERED, PLAIN, STEPS
from kons.core.replay import NO_MATRIX
from kons.errors import NumericalError
from kons.learners.embedded import NOT_MET, EmbeddedKONS
from kons.learners.labels import signs
from kons.learners.newton import PREDICTED_BLOCK, no_finite_score
from kons.state import Inner, Inners, Part, Restorable, Sizes, fields
from kons.stored import Stored

__all__ = ["Learned", "Problems", "SeparateProblems", "SharedProblems", "problems_for"]

Codes = Integers


class Learned(NamedTuple):
    """What a stretch of rows left behind: scores before each was learned, one column per class."""

    scores: Matrix
    kept: NDArray[np.bool_]
    novelty: Vector | None
    rounding_clips: int


class Problems(Restorable, Protocol):
    """What a classifier asks of its problems; classes are numbered from 0."""

    @property
    def rows_seen(self) -> int | None: ...
    def add(self, classes: int) -> None: ...
    def learn(self, points: Any, codes: Codes, weights: Any, limit: int | None) -> Learned: ...
    def learn_one(self, x: Any, code: int) -> int: ...
    def scores(self, points: Any) -> Matrix: ...
    def scores_of_one(self, x: Any) -> list[float]: ...
    def widen(self, columns: int) -> None: ...


def problems_for(learner: Any, *, closed: bool) -> Problems:
    """Problems of a learner's kind, none of them with a class yet."""
    kind = SharedProblems if learner.shares_dictionary else SeparateProblems
    return kind(learner.anew(), closed=closed)


class SharedProblems(Part):
    """All problems in the span of one dictionary: who becomes an atom depends on points and coins alone.

    (Who is replaced in a full one, with ``when_full="replace"``, depends on all functions: see EmbeddedKONS.)
    Costs the kernel and the coordinates once a row, and O(B^2) per problem. The built-in losses are
    symmetric, l(p, y) = l(-p, -y), so two problems with opposite targets have opposite functions, to the
    last bit, and one of them is enough: two classes cost two spans (one, if the set is closed).
    """

    STATE = fields(host=Inner())

    def __init__(self, host: EmbeddedKONS, *, closed: bool) -> None:
        # The host's own span is the unseen problem, or class 0 of a closed set; riders are the others.
        self.host = host
        self.closed = closed
        self._symmetric = host.loss.code is not None
        self._row = new_ledger(1)
        self._arrange(0)

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self.host.rows_seen

    # ---- which span is whose

    def _arrange(self, classes: int) -> None:
        """Note each class's span and the sign of its function there, and each span's class."""
        first = 0 if self.closed else 1
        self._places = [(first + k, 1.0) for k in range(classes)]
        if self._symmetric and classes == 2:
            self._places[1] = (first, -1.0)
        if self._symmetric and classes == 1 and not self.closed:
            self._places[0] = (0, -1.0)  # the opposite of the unseen one
        owners = {} if self.closed else {0: -1}
        for code, (place, sign) in enumerate(self._places):
            if sign > 0.0:
                owners[place] = code
        self._owners = [owners[place] for place in sorted(owners)]

    def add(self, classes: int) -> None:
        """Let new classes in, each with what the unseen problem has learned."""
        for _ in range(classes):
            host = self.host
            spans = [_signed(host._spans[place], sign) for place, sign in self._places]
            spans.append(copy.deepcopy(host._span))
            self._arrange(len(spans))
            host._riders = [spans[code] for place, code in enumerate(self._owners) if place > 0]
            host._last = NOT_MET

    # ---- rows

    def learn(self, points: Any, codes: Codes, weights: Any, limit: int | None) -> Learned:
        """Predict and learn rows, at most ``limit`` at a time; their scores, a column per class.

        None: a single row, without touching the limits on threads.
        """
        host, count = self.host, len(points)
        uniform, steps = host._coins[0].draw(count), host._step_sizes(count)
        ledgers: list[Ledger] = []
        for owner in self._owners:
            rows = new_ledger(count)
            rows["target"], rows["uniform"], rows["step_size"] = signs(codes, owner), uniform, steps
            if weights is not None:
                rows["scale"] = weights
            ledgers.append(rows)
        host._learn_problems(points, ledgers, host._derivatives(), limit)
        first = ledgers[0]
        host._count(points, int(np.count_nonzero(first["kept"])))
        columns = [sign * ledgers[place]["prediction"] for place, sign in self._places]
        clips = sum(int(np.count_nonzero(rows["clipped"])) for rows in ledgers)
        return Learned(np.stack(columns, axis=1), first["kept"].copy(), first["novelty"].copy(), clips)

    def learn_one(self, x: Any, code: int) -> int:
        """Learn one row; returns how many atoms came. As a block of one, without its overhead."""
        host, before = self.host, self.host.size
        if host.loss.code is None or host._replaces:
            mark = self.mark()
            try:
                self.learn(host._as_point(x), np.array([code]), None, None)
            except BaseException:
                self.restore(mark)
                raise
            return host.size - before
        point, works, self_kernel = host._meet_row(x)
        host._last = NOT_MET
        eta = host._constant_step or host.step_size(host.rows_seen + 1)
        uniform = host._coins[0].draw_one()
        sampler = NO_MATRIX if host._sampler is None else host._sampler.L
        spans, size = host._spans, len(host._span)
        marks = [span.mark_row() for span in spans]
        try:
            for span, work, owner in zip(spans, works, self._owners, strict=True):
                target = 1.0 if code == owner else -1.0
                outcome, _ = span.learn_row(
                    host.loss.code,
                    self._row,
                    host._packed,
                    sampler,
                    target,
                    1.0,
                    eta,
                    uniform,
                    self_kernel,
                    host._embedding.squared_coefficients,
                    work,
                    passes=False,
                )
        except NumericalError:
            for span, where in zip(spans, marks, strict=True):
                span.take_back_row(where)
            host._coins[0].take_back_one()
            raise
        for span in spans:
            span.pass_row()
        if outcome != PLAIN:
            host._grow_by_point(point, self._row, works[0][:size])
        host._count(point, int(outcome == ENTERED))
        return host.size - before

    # ---- predicting

    def scores(self, points: Any) -> Matrix:
        """The clipped scores, a column per class."""
        blocks = [
            self.host._raw_scores_in(points[start : start + PREDICTED_BLOCK], self.host._spans)
            for start in range(0, len(points), PREDICTED_BLOCK)
        ]
        raw = [np.concatenate(scores) for scores in zip(*blocks, strict=True)]
        scores = np.stack([sign * raw[place] for place, sign in self._places], axis=1)
        if not np.isfinite(scores).all():
            raise no_finite_score(self.host.kernel)
        return np.clip(scores, -self.host.bound, self.host.bound)

    def scores_of_one(self, x: Any) -> list[float]:
        """The clipped scores of one row; ``learn_one`` on the same row reuses what was found of it."""
        values = [self.host._clipped_score(work) for work in self.host._meet_row(x)[1]]
        return [sign * values[place] for place, sign in self._places]

    def widen(self, columns: int) -> None:
        """More features, 0 in the dictionary."""
        self.host.widen(columns)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of so many classes."""
        self._arrange(sizes["classes"])
        host = self.host
        host._riders = [Quadratic(host.regularization, host.forgetting) for _ in self._owners[1:]]
        super().load_state(stored, **sizes)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        first = self.host._span
        for rider in self.host._riders:
            if (rider.rows, rider.pending) != (first.rows, first.pending):
                raise stored.error("a problem is at another row than the first")
            rider.totals[_SHARED] = first.totals[_SHARED]


class SeparateProblems(Part):
    """A learner of its own for each problem: what they keep depends on targets. Costs all of them."""

    STATE = fields(learners=Inners())

    def __init__(self, learner: Any, *, closed: bool) -> None:
        # The first is the unseen problem, or class 0 of a closed set.
        self.learners = [learner]
        self.closed = closed
        self._classes = 0

    @property
    def rows_seen(self) -> int | None:
        """How many rows were learned, where the learner tells."""
        rows: int | None = self.learners[0].rows_seen
        return rows

    @property
    def _owners(self) -> list[int]:
        first = 0 if self.closed else -1
        return [first + place for place in range(len(self.learners))]

    def add(self, classes: int) -> None:
        """Let new classes in, each with what the unseen problem has learned."""
        self._classes += classes
        while len(self.learners) < self._classes + (not self.closed):
            self.learners.append(copy.deepcopy(self.learners[0]))

    def learn(self, points: Any, codes: Codes, weights: Any, limit: int | None) -> Learned:
        """Predict and learn rows; their scores, a column per class."""
        traces = [
            learner.advance(points, signs(codes, owner), limit, weights)
            for learner, owner in zip(self.learners, self._owners, strict=True)
        ]
        scores = [trace["prediction"] for trace in traces[len(traces) - self._classes :]]
        kept = np.any([trace.kept for trace in traces], axis=0)
        return Learned(np.stack(scores, axis=1), kept, None, sum(trace.rounding_clips for trace in traces))

    def learn_one(self, x: Any, code: int) -> int:
        """Learn one row; returns 1 if any problem kept it."""
        mark, sizes = self.mark(), [learner.size for learner in self.learners]
        try:
            for learner, owner in zip(self.learners, self._owners, strict=True):
                learner.learn_one(x, 1.0 if code == owner else -1.0)
        except BaseException:
            self.restore(mark)
            raise
        return int(sizes != [learner.size for learner in self.learners])

    def scores(self, points: Any) -> Matrix:
        """The clipped scores, a column per class."""
        return np.stack([learner.predict(points) for learner in self._of_classes()], axis=1)

    def scores_of_one(self, x: Any) -> list[float]:
        """The clipped scores of one row."""
        return [learner.predict_one(x) for learner in self._of_classes()]

    def widen(self, columns: int) -> None:
        """More features, 0 in what was kept."""
        for learner in self.learners:
            learner._require_widenable(columns)
        for learner in self.learners:
            learner.widen(columns)

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what was saved of so many classes."""
        pattern, self._classes = self.learners[0], sizes["classes"]
        count = max(self._classes + (not self.closed), 1)
        self.learners = [pattern.anew() for _ in range(count)]
        super().load_state(stored, **sizes)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len({learner.rows_seen for learner in self.learners}) > 1:
            raise stored.error("its problems are at different rows")

    def _of_classes(self) -> Sequence[Any]:
        return self.learners[len(self.learners) - self._classes :]


#: Running totals that belong to the dictionary, not to a problem.
_SHARED = [TOTALS.sampler_trace, TOTALS.free_slots]


def _signed(span: Quadratic, sign: float) -> Quadratic:
    """The span itself, or one with the opposite function."""
    if sign > 0.0:
        return span
    opposite = copy.deepcopy(span)
    opposite.base = -opposite.base
    opposite._marks[:, STEPS:] *= -1.0
    return opposite
