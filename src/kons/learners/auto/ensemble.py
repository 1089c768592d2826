"""The experts at work: chunks of rows, decisions at doubling times, one vote.

Everything here is numbers: a row is its features, the last targets known when it was predicted, its own
target (a class
as its number) and its weight. Chunks end at absolute multiples of 64 rows and at the first powers of two;
decisions are
taken at powers of two, from 8 rows on, on rows that were kept:

- every view in use is refitted (scaling, metric, bandwidth, regularization) and kept if it was better;
- experts move to a view that is clearly better: new atoms, all kept rows learned again;
- experts whose predictions add nothing to the vote are retired.

Experts with a finite memory besides take new atoms, from the rows they remember, once in a memory's length.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.kernels import Gaussian, Kernel, Linear, Matern
from kons.learners.auto.aggregation import Aggregation
from kons.learners.auto.calibration import Calibration
from kons.learners.auto.expert import CHUNK, SpanRidge
from kons.learners.auto.history import History
from kons.learners.auto.ranks import RankScaling
from kons.learners.auto.relevance import Scratch, mean_gradients, relevances
from kons.learners.auto.roles import KEPT, SUCCESSORS, Role, first_roles
from kons.learners.auto.targets import Targets
from kons.learners.auto.view import SCALINGS, Fixed, View, improved, uniform_metric
from kons.scaling import RobustScaling
from kons.stored import Stored

__all__ = ["LAGS", "Ensemble", "Outcome"]

#: How many of the last targets an expert sees.
LAGS = 2
# Rows of the whole stream that are kept, and last rows.
SAMPLE, RECENT = 8192, 2048
# Rows that the first kernels wait for; experts that are linear come earlier.
FIRST_KERNELS = 32
# Rows and atoms that views are compared with: early, and late.
EARLY_ROWS, LATE_ROWS, COMPARED_ATOMS = 512, 1024, 128
LATE = 4096
# From here on experts move only to a view whose error is smaller by this part.
SETTLED, BETTER = 1024, 0.03
# From here on every row is learned at the end of its chunk only, where the memory is endless.
LIVE_ROWS = 512
# Classes that the last targets are told apart in.
MOST_CLASSES = 10
# Steps of a metric along the gradients: of a fit, of an expert, with the last targets, from nothing.
STEPS, STEPS_FROM_EXPERTS, STEPS_WITH_LAGS, FRESH_STEPS = 4, 1, 2, 1
CLEARLY = 0.95
LINEAR_REGULARIZATION = 0.1
SMALL_VOTE = 0.5
# Experts that take the place of those with a finite memory.
SUCCESSORS_AT_ONCE = 2
FRESH_AT = (1024, 4096)


def decides(rows: int) -> bool:
    """Whether a decision is due after so many rows: at powers of two, later of four."""
    return rows >= 8 and rows & (rows - 1) == 0 and (rows <= SETTLED or rows.bit_length() % 2 == 1)


def next_boundary(rows: int) -> int:
    """Where the chunk that the next row belongs to ends."""
    if rows < CHUNK:
        return next(end for end in (8, 16, 32, 64) if end > rows)
    return (rows // CHUNK + 1) * CHUNK


class Outcome(NamedTuple):
    """What a stretch of rows brought."""

    predictions: Matrix
    """In units of the target, or the shares of classes, (rows, outputs)."""
    logits: Matrix
    """Calibrated, of classes; the predictions otherwise."""
    leader: int
    leader_predictions: Matrix
    inverse_forms: Vector
    size: int
    """Atoms of all experts that predicted these rows."""
    known_classes: NDArray[np.int64]
    """How many classes were known before each row."""


class Ensemble:
    """Predict and learn rows of numbers. See the module."""

    def __init__(
        self, *, classes: bool, max_atoms: int, experts: int, delay: int, seed: int, fixed: Fixed
    ) -> None:
        self.classes, self.max_atoms, self.delay, self.seed, self.fixed = (
            classes,
            max_atoms,
            delay,
            seed,
            fixed,
        )
        self.roles: list[Role] = first_roles(experts, linear=fixed.kernel is None)
        self.experts: list[SpanRidge | None] = [None] * len(self.roles)
        self.seen_by: list[View | None] = [None] * len(self.roles)
        self.views: dict[tuple[bool, str], View] = {}
        self.better: dict[bool, str] = {False: "robust", True: "robust"}
        self.outputs = 0 if classes else 1
        self.known_classes = 0
        self.width = 0
        self.rows = 0
        self.leader = 0
        self.loss, self.loss_rows = 0.0, 0.0
        self.vote = Aggregation(len(self.roles) + 1)
        self.vote_without_lags = Aggregation(len(self._without_lags()))
        self.calibration = Calibration()
        self.targets = Targets(classes)
        self.history = History(SAMPLE, RECENT, seed)
        self._scratch = Scratch()
        # The last targets fed, known or not, and rows predicted whose targets are not known yet.
        self._tail: Vector = np.empty(0)
        self._waiting: dict[str, NDArray[np.float64]] = {}

    # ---- a stretch of rows

    def advance(self, X: Matrix, y: Vector, weights: Vector) -> list[Outcome]:
        """Predict and learn rows, cut at the ends of chunks."""
        outcomes, start = [], 0
        while start < len(X):
            stop = min(len(X), start + next_boundary(self.rows) - self.rows)
            outcomes.append(self._stretch(X[start:stop], y[start:stop], weights[start:stop]))
            start = stop
        return outcomes

    def add_output(self) -> None:
        """A class more, that no row was of so far."""
        self.outputs += 1
        self.targets.add_output()
        for expert in self.experts:
            if expert is not None:
                expert.add_output()
        for name in ("F", "predictions"):
            if name in self._waiting:
                array = self._waiting[name]
                self._waiting[name] = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])

    def _stretch(self, X: Matrix, y: Vector, weights: Vector) -> Outcome:
        self.width = X.shape[1]
        rows = np.column_stack([X, self._last_targets(y), y, weights])
        m, waiting = len(rows), len(self._waiting.get("rows", ()))
        pending = self._joined("rows", rows)
        count = max(waiting + m - self.delay, 0)
        # Before row i is predicted, so many of the rows that become known in this stretch are known.
        known = np.clip(np.arange(m) + waiting - self.delay, 0, count)
        learned = pending[:count]
        Y, w = self._outputs_of(learned), learned[:, -1]
        outlook = self.targets.follow(Y, w, known)
        F = np.empty((m, len(self.roles) + 1, self.outputs))
        F[:, 0] = outlook.means
        self._play(rows, learned, Y, np.sqrt(w), known, F)
        np.clip(F, outlook.low[:, None, None], outlook.high[:, None, None], out=F)
        centres = np.zeros(m) if self.classes else outlook.means[:, 0]
        pending_F, pending_centres = self._joined("F", F), self._joined("centres", centres)
        before = pending_F[:count], pending_centres[:count], Y, w, known
        predictions = self.vote.advance(F, centres, *before)
        columns = self._without_lags()
        self.vote_without_lags.advance(F[:, columns], centres, pending_F[:count, columns], *before[1:])
        np.clip(predictions, outlook.low[:, None], outlook.high[:, None], out=predictions)
        pending_predictions = self._joined("predictions", predictions)
        logits, classes_before = predictions, np.zeros(m, dtype=np.int64)
        if self.classes:
            scores = 2.0 * predictions - 1.0
            # Classes are numbered as they come: after each row, so many are known.
            codes = np.concatenate([[self.known_classes], learned[:, -2] + 1.0]).astype(np.int64)
            counts = np.maximum.accumulate(codes)
            self.known_classes, classes_before = int(counts[-1]), counts[known]
            past = 2.0 * pending_predictions[:count] - 1.0
            logits = self.calibration.advance(scores, past, Y, known, counts[1:])
        self.loss += float(np.sum(w[:, None] * (pending_predictions[:count] - Y) ** 2))
        self.loss_rows += count
        self.history.extend(learned)
        forms = self._leader_forms(rows)
        outcome = Outcome(
            predictions, logits, self.leader, F[:, self.leader], forms, self.size, classes_before
        )
        if self.delay:
            self._waiting = {
                "rows": pending[count:].copy(),
                "F": pending_F[count:].copy(),
                "centres": pending_centres[count:].copy(),
                "predictions": pending_predictions[count:].copy(),
            }
        self.rows += m
        if self.rows == next_boundary(self.rows - 1):
            self._end_chunk()
        return outcome

    def _play(
        self, rows: Matrix, learned: Matrix, Y: Matrix, roots: Vector, known: NDArray[np.int64], F: Matrix
    ) -> None:
        """Fill in what each expert predicts, and let it learn.

        Those not started repeat the mean of the others.
        """
        places: dict[tuple[int, bool], tuple[Matrix, Matrix | None]] = {}
        started = []
        for i, (role, expert, view) in enumerate(zip(self.roles, self.experts, self.seen_by, strict=True)):
            if expert is None or view is None:
                continue
            key = (id(view), role.lags)
            if key not in places:
                here = view.coordinates(self._columns(rows, role.lags, view.flags))
                there = None
                if self.delay:
                    there = view.coordinates(self._columns(learned, role.lags, view.flags))
                places[key] = here, there
            F[:, i + 1] = expert.advance(*places[key], Y, roots, known + len(expert.K))
            started.append(i + 1)
        if len(started) < len(self.roles):
            others = [i + 1 for i in range(len(self.roles)) if i + 1 not in started]
            F[:, others] = np.mean(F[:, started or [0]], axis=1, keepdims=True)

    def _leader_forms(self, rows: Matrix) -> Vector:
        """``k^T A^-1 k`` of the leading expert, with A as it was at the start of the chunk."""
        expert = self.experts[self.leader - 1] if self.leader else None
        if expert is None:
            return np.zeros(len(rows))
        return expert.last_forms()

    def _last_targets(self, y: Vector) -> Matrix:
        """The last known targets before each of the rows with targets y.

        The oldest one where there are fewer.
        """
        tail = np.concatenate([self._tail, y])
        first = len(self._tail) - 1 - self.delay
        places = first + np.arange(len(y))[:, None] - np.arange(LAGS)
        self._tail = tail[-(self.delay + LAGS) :].copy()
        return self._at(tail, places)

    def _next_targets(self, rows: int) -> Matrix:
        """The last known targets before the next row, so many times."""
        places = len(self._tail) - 1 - self.delay - np.arange(LAGS)
        return np.repeat(self._at(self._tail, places[None]), rows, axis=0)

    def _at(self, values: Vector, places: NDArray[np.int64]) -> Matrix:
        """Values by place; where only the later of them are known, the first again.

        Where none is, 0 or no class.
        """
        nothing = -1.0 if self.classes else 0.0
        if not len(values):
            return np.full(places.shape, nothing)
        return np.where(places[:, :1] >= 0, values[np.maximum(places, 0)], nothing)

    def _outputs_of(self, rows: Matrix) -> Matrix:
        targets = rows[:, -2]
        if not self.classes:
            return targets[:, None].copy()
        Y = np.zeros((len(rows), self.outputs))
        Y[np.arange(len(rows)), targets.astype(np.int64)] = 1.0
        return Y

    def _columns(self, rows: Matrix, lags: bool, flags: int) -> Matrix:
        """What a view scales: the features, and the last targets.

        Of more than two classes as so many flags.
        """
        if not lags:
            return np.ascontiguousarray(rows[:, : self.width])
        if flags <= 2:
            return np.ascontiguousarray(rows[:, : self.width + LAGS])
        last = rows[:, self.width : self.width + LAGS]
        flagged = (last[:, :, None] == np.arange(flags)).reshape(len(rows), -1)
        return np.hstack([rows[:, : self.width], flagged])

    @property
    def _flags(self) -> int:
        return min(self.known_classes, MOST_CLASSES)

    def _joined(self, name: str, new: NDArray[np.float64]) -> NDArray[np.float64]:
        old = self._waiting.get(name)
        return new if old is None or not len(old) else np.concatenate([old, new])

    # ---- the end of a chunk

    def _end_chunk(self) -> None:
        t = self.rows
        period = CHUNK
        while 2 * period <= min(t // 8, 8 * CHUNK):
            period *= 2
        for expert in self.experts:
            if expert is not None:
                expert.end_chunk(refit=t % period == 0 or t < CHUNK)
        ended = min(t, CHUNK) if t > CHUNK else t // 2 if t > 8 else t
        for vote in (self.vote, self.vote_without_lags):
            vote.end_chunk(ended, self.targets.variance)
        decay = self.vote.forgetting**ended
        self.loss, self.loss_rows = decay * self.loss, decay * self.loss_rows
        if decides(t) and self.history.rows:
            self._decide()
        for i, role in enumerate(self.roles):
            if (
                role.memory
                and not decides(t)
                and t % _renewal(role.memory) == 0
                and self.experts[i] is not None
            ):
                self._make(i)
        self.leader = int(np.argmax(self.vote.weights[1:])) + 1 if any(self.experts) else 0

    def _decide(self) -> None:
        random = np.random.default_rng([self.seed, self.rows])
        kept = self.history.sampled()
        kept = kept[kept[:, -1] > 0.0]
        if not len(kept):
            return
        self._retire()
        before = self._improve_views(kept, random)
        # On rows in order, atoms are chosen anew from all of them; else only a better view is worth the work.
        exchangeable = self.rows > SETTLED and not any(
            role.memory and role not in KEPT for role in self.roles
        )
        for i, role in enumerate(self.roles):
            key = self._key(role)
            settled = exchangeable and not role.memory and self.experts[i] is not None
            if self.rows < role.start or key not in self.views:
                continue
            if settled and not (key in before and self.views[key].error < (1.0 - BETTER) * before[key]):
                continue
            self._make(i, kept)

    def _retire(self) -> None:
        """Experts go whose vote is so small that without it the loss would have been the same.

        The bar is that of the Bayesian information criterion, log(n)/n of the loss for each weight, halved.
        Those
        with a finite memory go together: on rows in no order none of them is of use, on others they help
        each other.
        """
        if self.rows < SETTLED:
            return
        n = max(self.vote.memory, 2.0)
        bar = SMALL_VOTE * math.log(n) / n * self.loss / max(self.loss_rows, 1.0) * n
        short = [i + 1 for i, role in enumerate(self.roles) if role.memory and role not in KEPT]
        if short and self.vote.removal_cost(short) < bar * len(short):
            self._remove(short)
            self._follow_on(SUCCESSORS_AT_ONCE)
        while self.rows >= LATE:
            steady = [i + 1 for i, role in enumerate(self.roles) if not role.memory and role not in KEPT]
            costs = [self.vote.removal_cost([i]) for i in steady]
            if not costs or min(costs) > bar:
                return
            self._remove([steady[int(np.argmin(costs))]])

    def _follow_on(self, count: int) -> None:
        """What the retired cost is given on to experts of the other kind."""
        roles = [role for role in SUCCESSORS if role not in self.roles][:count]
        plain = len(roles)
        if not plain:
            return
        self.vote.add(plain, self.targets.variance)
        self.vote_without_lags.add(plain, self.targets.variance)
        self.roles += roles
        self.experts += [None] * plain
        self.seen_by += [None] * plain
        if "F" in self._waiting:
            F = self._waiting["F"]
            self._waiting["F"] = np.concatenate(
                [F, np.repeat(F[:, 1:].mean(axis=1, keepdims=True), plain, axis=1)], 1
            )

    def _remove(self, columns: list[int]) -> None:
        without = self._without_lags()
        self.vote.remove(columns)
        gone = [place for place, column in enumerate(without) if column in columns]
        if gone:
            self.vote_without_lags.remove(gone)
        stay = [i for i in range(len(self.roles)) if i + 1 not in columns]
        self.roles = [self.roles[i] for i in stay]
        self.experts = [self.experts[i] for i in stay]
        self.seen_by = [self.seen_by[i] for i in stay]
        if "F" in self._waiting:
            self._waiting["F"] = np.delete(self._waiting["F"], columns, axis=1)

    def _improve_views(self, kept: Matrix, random: np.random.Generator) -> dict[tuple[bool, str], float]:
        """Refit the views in use; returns what the old ones' errors are on the same rows."""
        some = kept
        if self.rows >= SETTLED:
            # Rows that no view was chosen by.
            some = self.history.last(min(self.rows // 2, LATE_ROWS))
            some = some[some[:, -1] > 0.0]
        roots = np.sqrt(some[:, -1])
        Y = self._outputs_of(some)
        Y -= np.average(Y, axis=0, weights=some[:, -1])
        variance = float(np.average(np.sum(Y**2, axis=1), weights=some[:, -1]))
        Y /= math.sqrt(variance) if variance > 0.0 else 1.0
        before = {}
        for lags in (False, True):
            errors = {}
            for name in SCALINGS:
                key = (lags, name)
                if not self._in_use(key):
                    continue
                flags = self._flags
                columns = self._columns(some, lags, flags)
                scaling = SCALINGS[name].fit(self._columns(kept, lags, flags))
                old = self.views.get(key)
                if self.rows < FIRST_KERNELS:
                    self.views[key] = View(scaling, uniform_metric(columns.shape[1]), flags=flags)
                    continue
                first = self.rows <= 2 * FIRST_KERNELS or old is None or old.flags != flags
                if first:
                    old = self._beginning(key, scaling, columns.shape[1]) if lags else None
                leads = not lags and (self.rows < SETTLED or name == self.better[lags])
                gradients = None if first else self._gradients(key, kept, random)
                steps = STEPS if gradients is None else STEPS_FROM_EXPERTS
                if self.rows == FIRST_KERNELS or not leads:
                    steps = 1
                if lags and not first:
                    steps = STEPS_WITH_LAGS

                better = partial(
                    improved,
                    scaling=scaling,
                    X=columns,
                    Y=Y,
                    roots=roots,
                    fixed=self.fixed,
                    atoms=COMPARED_ATOMS if leads else COMPARED_ATOMS // 2,
                    random=random,
                    scratch=self._scratch,
                )
                view, before[key] = better(old, steps=steps, gradients=gradients)
                if self.rows in FRESH_AT and leads and name == self.better[lags]:
                    # Whatever was found on few rows: once more from the uniform metric.
                    fresh, _ = better(None, steps=FRESH_STEPS, gradients=None)
                    if fresh.error < CLEARLY * view.error:
                        view = fresh
                self.views[key] = replace(view, flags=flags)
                errors[name] = view.error
            if errors:
                self.better[lags] = min(errors, key=lambda name: errors[name])
        return before

    def _beginning(
        self, key: tuple[bool, str], scaling: RobustScaling | RankScaling, width: int
    ) -> View | None:
        """A view with the last targets starts from the one without them."""
        plain = self.views.get((False, key[1]))
        if plain is None:
            return None
        metric = uniform_metric(width)
        if metric.ndim == 1:
            metric[: self.width] = plain.metric
        else:
            metric[: self.width, : self.width] = plain.metric
        return replace(plain, scaling=scaling, metric=metric)

    def _gradients(self, key: tuple[bool, str], kept: Matrix, random: np.random.Generator) -> Matrix | None:
        """Those of an expert that has learned all rows in this view, if there is one."""
        if self.rows < SETTLED or self.fixed.kernel is not None:
            return None
        for role, expert, view in zip(self.roles, self.experts, self.seen_by, strict=True):
            plain = role.kernel == "gaussian" and not role.memory and not role.softer
            if plain and expert is not None and view is not None and view is self.views.get(key):
                some = kept[random.permutation(len(kept))[:LATE_ROWS]]
                U = view.coordinates(self._columns(some, role.lags, view.flags))
                K = expert.features(U)
                return mean_gradients(U, expert.atoms, K, expert.coefficients(), view.bandwidth, view.metric)
        return None

    def _key(self, role: Role) -> tuple[bool, str]:
        """Which view a role takes."""
        better = self.better[role.lags]
        other = next(name for name in SCALINGS if name != better)
        return role.lags, "robust" if role.kernel == "linear" else other if role.other else better

    def _in_use(self, key: tuple[bool, str]) -> bool:
        """Whether an expert may want this view: while the scalings are compared, all are wanted."""
        if self.rows <= SETTLED:
            return any(role.lags == key[0] for role in self.roles)
        return any(self._key(role) == key for role in self.roles if not role.other and role != KEPT[1])

    def _make(self, i: int, kept: Matrix | None = None) -> None:
        """A new expert in place i, in the current view, that has learned the rows that are kept."""
        role, key = self.roles[i], self._key(self.roles[i])
        view = self.views[key]
        random = np.random.default_rng([self.seed, self.rows, i])
        if role.memory or kept is None:
            kept = self.history.last(3 * role.memory // 2)
            kept = kept[kept[:, -1] > 0.0]
        if not len(kept):
            return
        columns = self._columns(kept, role.lags, view.flags)
        alpha = view.regularization
        kernel = self._kernel(role, view)
        atoms = self.max_atoms // 2 if role.memory else self.max_atoms
        if role.kernel == "linear":
            view = View(view.scaling, uniform_metric(columns.shape[1]), flags=view.flags)
            alpha = self.fixed.regularization or LINEAR_REGULARIZATION
        elif role.softer:
            view = view.softened(columns, random)
            kernel = self._kernel(role, view)
        U = view.coordinates(columns)
        places = random.permutation(min(len(U), max(role.memory, atoms)) if role.memory else len(U))
        points = U[np.sort(len(U) - 1 - places[: max(atoms, 1)])]
        if role.kernel == "linear" and U.shape[1] <= self.max_atoms:
            points = np.eye(U.shape[1])
        Y, weights = self._outputs_of(kept), kept[:, -1]
        forgetting = 1.0 - 1.0 / role.memory if role.memory else 1.0
        expert = SpanRidge(
            kernel,
            points,
            alpha,
            outputs=self.outputs,
            offset=0.0 if self.classes else float(np.average(Y[:, 0], weights=weights)),
            forgetting=forgetting,
            live=bool(role.memory) or self.rows < LIVE_ROWS or role.kernel == "linear",
        )
        ages = np.arange(len(kept) - 1.0, -1.0, -1.0)
        expert.learn_past(U, Y, np.sqrt(weights * forgetting**ages))
        self.experts[i], self.seen_by[i] = expert, view

    def _kernel(self, role: Role, view: View) -> Kernel:
        if role.kernel == "linear":
            return Linear()
        bandwidth = view.bandwidth if self.fixed.bandwidth is None else self.fixed.bandwidth
        if self.fixed.kernel is not None:
            return self.fixed.kernel.resolved(bandwidth)
        return Gaussian(bandwidth) if role.kernel == "gaussian" else Matern(bandwidth, smoothness=1.5)

    # ---- looking

    def _without_lags(self) -> list[int]:
        """Columns of the vote that need no last targets."""
        return [0] + [i + 1 for i, role in enumerate(self.roles) if not role.lags]

    def predict(self, X: Matrix, recent_targets: bool) -> tuple[Matrix, Matrix]:
        """Predictions and logits for rows, each as if it came next. Changes nothing."""
        rows = np.column_stack([X, self._next_targets(len(X)), np.zeros((len(X), 2))])
        outlook = self.targets.now(len(X))
        F = np.empty((len(X), len(self.roles) + 1, self.outputs))
        F[:, 0] = outlook.means
        started = []
        for i, (role, expert, view) in enumerate(zip(self.roles, self.experts, self.seen_by, strict=True)):
            if expert is not None and view is not None and (recent_targets or not role.lags):
                F[:, i + 1] = expert.predict(view.coordinates(self._columns(rows, role.lags, view.flags)))
                started.append(i + 1)
        others = [i + 1 for i in range(len(self.roles)) if i + 1 not in started]
        F[:, others] = np.mean(F[:, started or [0]], axis=1, keepdims=True)
        np.clip(F, outlook.low[:, None, None], outlook.high[:, None, None], out=F)
        centre = 0.0 if self.classes or not self.outputs else float(outlook.means[0, 0])
        if recent_targets:
            predictions = self.vote.combine(F, centre)
        else:
            predictions = self.vote_without_lags.combine(F[:, self._without_lags()], centre)
        np.clip(predictions, outlook.low[:, None], outlook.high[:, None], out=predictions)
        logits = self.calibration.logits(2.0 * predictions - 1.0) if self.classes else predictions
        return predictions, logits

    # ---- going back, and on from a file

    PARTS = ("vote", "vote_without_lags", "calibration", "targets", "history")
    NUMBERS = ("outputs", "known_classes", "width", "rows", "leader", "loss", "loss_rows")

    def mark(self) -> Any:
        """Where everything stands, for :meth:`restore`."""
        fields = dict(vars(self))
        for name in ("roles", "experts", "seen_by", "views", "better", "_waiting"):
            fields[name] = fields[name].copy()
        parts = [getattr(self, name).mark() for name in self.PARTS]
        return fields, parts, [None if expert is None else expert.mark() for expert in self.experts]

    def restore(self, mark: Any) -> None:
        """Go back to an earlier mark, bit for bit."""
        fields, parts, experts = mark
        vars(self).update({k: v.copy() if isinstance(v, (list, dict)) else v for k, v in fields.items()})
        for name, part in zip(self.PARTS, parts, strict=True):
            getattr(self, name).restore(part)
        for expert, where in zip(self.experts, experts, strict=True):
            if expert is not None:
                expert.restore(where)

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on. A copy."""
        seen = {id(view): view for view in [*self.views.values(), *self.seen_by] if view is not None}
        order = list(seen)
        return {
            **{name: getattr(self, name) for name in self.NUMBERS},
            **{name: getattr(self, name).state() for name in self.PARTS},
            "roles": [tuple(role) for role in self.roles],
            "all_views": [view.state() for view in seen.values()],
            "views": [(lags, name, order.index(id(view))) for (lags, name), view in self.views.items()],
            "experts": [
                None
                if expert is None or view is None
                else {"view": order.index(id(view)), "bandwidth": _bandwidth(expert), **expert.state()}
                for expert, view in zip(self.experts, self.seen_by, strict=True)
            ],
            "better": [self.better[False], self.better[True]],
            "tail": self._tail.copy(),
            "waiting": {name: array.copy() for name, array in self._waiting.items()},
        }

    def load_state(self, stored: Stored) -> None:
        """Take what :meth:`state` saved into an ensemble that has seen nothing."""
        for name in ("outputs", "known_classes", "width", "rows", "leader"):
            setattr(self, name, stored.integer(name))
        self.loss, self.loss_rows = (
            stored.number("loss", at_least=0.0),
            stored.number("loss_rows", at_least=0.0),
        )
        try:
            self.roles = [Role(*role) for role in stored.items("roles")]
        except TypeError as error:
            raise stored.error("its roles are none") from error
        self.vote = Aggregation(len(self.roles) + 1)
        self.vote_without_lags = Aggregation(len(self._without_lags()))
        for name in ("vote", "vote_without_lags", "calibration"):
            getattr(self, name).load_state(stored.inner(name))
        self.targets.load_state(stored.inner("targets"), self.outputs)
        columns = self.width + LAGS + 2
        self.history.load_state(stored.inner("history"), columns if self.width else None)
        views = [
            View.from_stored(inner, inner.integer("columns", at_least=1))
            for inner in stored.inners("all_views")
        ]
        self.views = {}
        for lags, name, place in stored.items("views"):
            self.views[bool(lags), str(name)] = views[int(place)]
        self.experts, self.seen_by = [], []
        for role, entry in zip(self.roles, stored.items("experts", len(self.roles)), strict=True):
            if entry is None:
                self.experts.append(None)
                self.seen_by.append(None)
                continue
            inner = Stored(entry, "Ensemble, an expert")
            view = views[inner.integer("view", at_most=len(views) - 1)]
            bandwidth = inner.number("bandwidth", at_least=1e-150)
            kernel = self._kernel(role, replace(view, bandwidth=bandwidth))
            self.experts.append(SpanRidge.from_stored(inner, kernel, view.metric.shape[-1], self.outputs))
            self.seen_by.append(view)
        better = stored.items("better", 2)
        self.better = {False: str(better[0]), True: str(better[1])}
        self._tail = stored.array("tail", None)
        self._load_waiting(stored.inner("waiting"), columns)
        stored.counted(self.leader, "leader", at_most=len(self.roles))
        stored.finish()

    def _load_waiting(self, stored: Stored, columns: int) -> None:
        """Rows whose targets are not known yet: compiled loops do not look at bounds."""
        self._waiting = {}
        if self.delay and self.rows:
            rows = stored.array("rows", None, columns)
            count = stored.counted(len(rows), "waiting rows", at_most=self.delay)
            self._waiting = {
                "rows": rows,
                "F": stored.array("F", count, len(self.roles) + 1, self.outputs),
                "centres": stored.array("centres", count),
                "predictions": stored.array("predictions", count, self.outputs),
            }
        stored.finish()

    def relevances(self) -> Vector:
        """How much each feature counts to the experts without last targets, the most relevant 1."""
        view = self.views.get((False, self.better[False]))
        if view is None:
            return np.ones(self.width)
        return relevances(view.metric)

    @property
    def size(self) -> int:
        """The atoms of all experts."""
        return sum(len(expert.atoms) for expert in self.experts if expert is not None)


def _bandwidth(expert: SpanRidge) -> float:
    bandwidth = getattr(expert.kernel, "bandwidth", 1.0)
    return float(bandwidth) if isinstance(bandwidth, (int, float)) else 1.0


def _renewal(memory: int) -> int:
    """Rows after which an expert with this memory takes new atoms: twice its length, in whole chunks."""
    return max(2 * CHUNK, round(1.5 * memory / CHUNK) * CHUNK)
