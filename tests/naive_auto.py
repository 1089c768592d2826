"""AutoKONS written once more, one row at a time and densely from its definitions: the referee of the engine.

It shares with ``kons`` the sequence of its coins, nothing else: kernels, scalings, experts, stacking and the
test for drift are written out here and in :mod:`naive_experts`, and every constant stands here again, so that
a number changed on one side only is found. *When* something happens is not written here: that is the table of
``docs/auto.md``, section "Schedule", read by :func:`schedule_of`.

There is no blocked algebra, no cache and no incremental factor. An expert is the list of the rows that it
has learned, and each of its predictions a solution of the normal equations; so are the weights of stacking.
A row costs milliseconds: streams of one or two thousand rows, with few atoms, are what this is for.

========================  ==================================================================================
:class:`Pool`             experts over one reservoir: views refitted, experts fitted, stacked and pruned
:class:`NaiveAuto`        the pool at work, and a fresh one that takes over when the stream has turned
========================  ==================================================================================

Not here: a kernel, bandwidth or regularization fixed by the user, more than thirteen experts, more than 128
columns (where metrics are diagonal), and where numbers near the limits of floats are treated with care.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kons.core.coins import Coins
from naive_experts import (
    FARTHEST,
    FORGETTING,
    LEAST_CURVATURE,
    NO_LIMIT,
    SCALINGS,
    Logistic,
    Neighbours,
    Ridge,
    Stacking,
    View,
    along_axes,
    gradient_products,
    half_median_distance,
    improved,
)

# Columns of stacking: mean of the targets, last target, trend of the neighbours, first expert.
MEAN, LAST, TREND, FIRST = 0, 1, 2, 3
LAGS, MOST_FLAGS = 2, 10  # last targets that an expert sees; classes that they are told apart in
RESERVOIR, RECENT = 5120, 2048  # rows kept of the whole stream, and last rows

# Targets: predictions stay in their range and a margin, experts do not learn from those beyond the fence, and
# a wild squared error, so many times the usual one, weighs less in stacking.
MARGIN, NO_FENCE, WILD, NO_ERROR = 0.05, (-1e300, 1e300), 100.0, 1e-12
FENCE_FEWEST, FENCE_PART, FENCE_REACH = 7, 0.95, 10.0

# Views: rows that metrics wait for; atoms and rows of the search; metrics sought from nothing.
FIRST_METRICS, SETTLED = 32, 1024
SEARCH_ATOMS, SEARCH_ROWS, GRADIENT_ROWS = 128, 1024, 512
FRESH_AT, FRESH_WINS = (512, 1024, 4096), 0.98
FOLLOWED_ROWS, FEWEST_FOLLOWED, FOLLOWED_WINS, FOLLOWED_IN_TURN = 1536, 64, 0.95, 2048
# The first and the last row of metrics from what columns tell at first sight, where little is explained.
FIRST_SIGHT, FIRST_SIGHT_WINS, LITTLE = (128, 1024), 0.8, 0.5
# Rare classes: the variance below which priors weigh more; a view without a search; the logistic expert.
RARE_VARIANCE, BROAD, BROAD_ALPHA, RARE_START, LEANS = 0.1, 2.0, 1.6, 64, 0.75

# Experts: ridges; from where on those that remember all learn in batches; which count, and may grow.
# The lead of a short memory over a long one, in usual errors; then stacking forgets so many times as fast.
LEAD, FASTER = 0.03, 6
LINEAR_ALPHA, LOGISTIC_ALPHA, BATCHES_FROM = 0.05, 1.0 / 16.0, 512
COUNTS, MOST_GROWN = 0.1, 1.5
# Pruning: the price of a weight; rows to be sure; from where on experts without a memory are pruned, too.
# By how much of the usual error short memories, and last targets, have to be worse than the rest.
PRICE, STAY_PRICE, RECALL_PRICE, SURE, LATE = 0.5, 2.0, 4.0, 2048, 4096
ORDER_TELLS = 0.01

# Stacking: weights that are equal; the weight from which on the last target is followed beyond the fence.
TIE, FOLLOWED = 1e-6, 0.1
CALIBRATION, CALIBRATION_PRIOR, LEAST_SLOPE, NO_LESS = (1.0, 0.0), (1.0, 1.0), 0.5, 0.01

# Drift: an alarm, how long it lasts, who is tried on which rows, and what a trial may cost.
UNUSUAL, WORSE_THAN_MEAN, SMALL_ERROR, LEAST_ERROR = 3.0, 1.5, 0.25, 1e-3
FEWEST, YOUNG, CALM = 16, 256, 2
SHORTEST_ALARM, SHORTEST_TRIAL, RISEN = 64, 40, 0.5
HALF, MOSTLY, COMPARED = 0.5, 0.6, 0.9
PAID, SAVED = 1.0 / 32.0, 512.0
STANDS_BY, MISSED = 2048, 256


class Spec(NamedTuple):
    """An expert before it is fitted, for the first time after ``start`` rows."""

    name: str
    kernel: str
    start: int
    lags: bool = False
    """Whether it sees the last targets."""
    memory: int = 0
    other: bool = False
    """Whether it sees columns in the scaling that lost."""
    logistic: bool = False
    """Of classes: with the logistic loss."""


EXPERTS = (
    Spec("gaussian, features", "gaussian", 32),
    Spec("linear, features", "linear", 4),
    Spec("gaussian, last targets, memory 300", "gaussian", 256, lags=True, memory=300),
    Spec("neighbours, features", "neighbours", 128),
    Spec("laplace, features", "laplace", 512),
    Spec("gaussian, last targets", "gaussian", 64, lags=True),
    Spec("linear, last targets, memory 300", "linear", 8, lags=True, memory=300),
    Spec("neighbours, last targets", "neighbours", 512, lags=True),
    Spec("gaussian, features, alternative scaling", "gaussian", 128, other=True),
    Spec("gaussian, features, memory 300", "gaussian", 256, memory=300),
    Spec("gaussian, features, logistic", "gaussian", 1024, logistic=True),
    Spec("gaussian, last targets, alternative scaling, memory 100", "gaussian", 128, True, 100, other=True),
    Spec("neighbours, features, memory 512", "neighbours", 256, memory=512),
)


class Rule(NamedTuple):
    """At which rows something happens: "4, 8, every 64 from 64, times 8 from 4096"."""

    parts: list

    def __contains__(self, row):
        start, how, step = max((part for part in self.parts if part[0] <= row), default=(0, "", 0))
        if how == "every":
            return (row - start) % step == 0
        while how == "times" and start < row:
            start *= step
        return start == row

    def before(self, row):
        return next((earlier for earlier in range(row - 1, 0, -1) if earlier in self), 0)


def schedule_of(page):
    """The table "Schedule" of a page in Markdown: rules by name."""
    rules = {}
    for name, words in re.findall(r"^\| ([^|]+?) \| `([^`|]+)` \|", page.split("## Schedule")[1], re.M):
        found = [re.fullmatch(r"(?:(every|times) (\d+) from )?(\d+)", part) for part in words.split(", ")]
        rules[name] = Rule([(int(part[3]), part[1] or "", int(part[2] or 0)) for part in found])
    return rules


def fitted_at(number):
    """After which rows the expert with this number is fitted: from 512 on in turn, after its view."""
    pair = number // 2
    late = [576 + 64 * (pair % 4), 1152 + 128 * (pair % 4), 4224 + 128 * (pair % 7)]
    return [4, 8, 16, 32, 64, 128, 256, *late]


@dataclass(eq=False)
class Row:
    x: np.ndarray
    last: np.ndarray
    """The last targets that were known before it."""
    y: float
    weight: float
    forecasts: dict | None = None
    """Of mean, last target and experts by name, all outputs each."""
    centre: float = 0.0
    stacked: np.ndarray | None = None
    error: float = 0.0
    waited: int = 0
    """Rows learned between its prediction and its own learning; before that, those learned before it."""


class Step(NamedTuple):
    """What one row brought, as the trace of AutoKONS has it."""

    prediction: np.ndarray
    """In units of the target; of classes logits, NaN for those not known yet."""
    leader: str
    slope: float
    inverse_form: float
    size: int


@dataclass(eq=False)
class Member:
    spec: Spec
    fitted: Ridge | None = None


class Pool:
    """Experts over one reservoir, fed row by row. ``classes`` is 0, or how many there will ever be."""

    def __init__(self, schedule, *, classes, max_atoms, experts, seed, log):
        self.schedule, self.classes, self.outputs = schedule, classes, classes or 1
        self.max_atoms, self.seed, self.log = max_atoms, seed, log
        self.rows, self.due, self.known_classes = 0, 0, 0
        self.history = []  # rows learned
        self.coins, self.reservoir = Coins(seed), []
        self.targets, self.weights = np.empty((0, self.outputs)), np.empty(0)  # those inside the fence
        self.low, self.high = np.inf, -np.inf
        self.fence, self.wild = NO_FENCE, NO_LIMIT
        self.loss = self.loss_rows = 0.0
        self.calibration, self.curvature = np.array(CALIBRATION), np.zeros((2, 2))
        self.rarity = 1.0  # how many times as much the priors weigh
        specs = [spec for spec in EXPERTS if classes or not spec.logistic]
        self.members = [Member(spec) for spec in specs[:experts]]
        self.most_experts = len(self.members)
        self.specs = [member.spec for member in self.members]
        short = sorted((spec for spec in self.specs if spec.memory), key=lambda spec: spec.lags)
        self.sentinel = short[0] if short else None
        self.stacking = Stacking(len(self.members) + FIRST, doubted=[LAST, TREND])
        self.views, self.better = {}, {False: "robust", True: "robust"}
        self.leader = None

    # ---- a row

    def predict(self, row, lags=True):
        """Everybody's forecasts, and all of them stacked, or only those that need no last targets."""
        mean, low, high = self.mean(), *self.range()
        forecasts = np.empty((len(self.members) + FIRST, self.outputs))
        forecasts[MEAN], forecasts[LAST] = mean, row.last[0]
        if self.classes:
            forecasts[LAST] = mean if row.last[0] < 0.0 else row.last[0] == np.arange(self.outputs)
        forecasts[TREND] = 0.0 if self.classes else mean
        asked = [m.fitted is not None and (lags or not m.spec.lags) for m in self.members]
        for i in np.flatnonzero(asked):
            fitted = self.members[i].fitted
            told = fitted.predict(self.columns_of([row], fitted))[0]
            forecasts[i + FIRST] = told[: self.outputs]
            if len(told) > self.outputs:
                forecasts[TREND] = told[self.outputs :]
        # Those that are not there yet repeat the mean of the others.
        others = forecasts[FIRST:][asked] if any(asked) else forecasts[[MEAN]]
        forecasts[FIRST:][np.logical_not(asked)] = others.mean(axis=0)
        inner = max(low, self.fence[0]), min(high, self.fence[1])
        forecasts = np.clip(forecasts, *inner)
        row.centre = 0.0 if self.classes else mean[0]
        columns = [MEAN, LAST, TREND, *(member.spec.name for member in self.members)]
        row.forecasts = dict(zip(columns, forecasts, strict=True))
        with_lags = [LAST] + [i + FIRST for i, member in enumerate(self.members) if member.spec.lags]
        weights = self.stacking.weights(absent=[] if lags else with_lags)
        row.stacked = np.clip(row.centre + weights @ (forecasts - row.centre), *inner)
        logistic = [i + FIRST for i, m in enumerate(self.members) if m.spec.logistic and m.fitted is not None]
        if self.rarity > 1.0 and logistic:
            row.stacked = row.stacked + LEANS * (forecasts[logistic[0]] - row.stacked)
        if lags and not self.classes and weights[LAST] > FOLLOWED:
            row.stacked = np.clip(row.stacked + row.last[0] - np.clip(row.last[0], *self.fence), low, high)

    def scores(self, row):
        """The prediction, or its calibrated logits."""
        if not self.classes:
            return row.stacked
        logits = self.calibration[0] * self.log_odds(row.stacked) + self.calibration[1]
        return np.where(np.arange(self.classes) < self.known_classes, logits, np.nan)

    def step_of(self, row):
        columns = [MEAN, LAST, TREND, *(member.spec.name for member in self.members)]
        G = np.array([row.forecasts[column] for column in columns]).T - row.centre
        name = "mean" if self.leader is None else self.leader.spec.name
        return Step(self.scores(row), name, 0.0, 0.5 * self.stacking.inverse_form(G), self.size)

    def learn(self, row):
        """A target becomes known."""
        target, usable = self.outputs_of([row])[0], bool(self.usable([row]))
        if usable:
            self.targets, self.weights = (
                np.vstack([self.targets, target]),
                np.append(self.weights, row.weight),
            )
        if row.weight > 0.0:
            self.low, self.high = min(self.low, row.y), max(self.high, row.y)
        for fitted in (member.fitted for member in self.members if member.fitted is not None):
            told = target[None]
            if isinstance(fitted, Neighbours) and fitted.trends:
                steady = self.members[0].fitted
                told = np.hstack([told, steady.before_chunk(self.columns_of([row], steady))])
            fitted.learn(self.columns_of([row], fitted), told, row.weight * usable)
        # Those that were pruned meanwhile are left out.
        columns = [MEAN, LAST, TREND, *(member.spec.name for member in self.members)]
        # Of those that were recalled meanwhile, the mean of the targets.
        G = np.array([row.forecasts.get(column, row.forecasts[MEAN]) for column in columns]).T - row.centre
        t = np.clip(target, *self.fence) - row.centre
        self.stacking.learn(G, t, row.weight, self.wild)
        if self.classes:
            self.known_classes = max(self.known_classes, int(row.y) + 1)
            for k in range(self.known_classes if row.weight > 0.0 else 0):
                self.calibrate(np.array([self.log_odds(row.stacked[k]), 1.0]), target[k])
        row.error = float(np.sum((row.stacked - target) ** 2))
        self.loss += row.weight * min(row.error, self.wild)
        self.loss_rows += row.weight > 0.0
        # Row t stays in the reservoir with probability RESERVOIR/(t + 1), in the place of any other.
        t, coin = len(self.history), self.coins.draw_one()
        self.history.append(row)
        if t < RESERVOIR:
            self.reservoir.append(t)
        elif int(coin * (t + 1)) < RESERVOIR:
            self.reservoir[int(coin * (t + 1))] = t
        self.rows += 1
        if self.rows in self.schedule["end of a chunk"]:
            self.end_chunk()

    def calibrate(self, s, y):
        """A Newton step of logistic regression on one score; then all is forgotten towards the prior."""
        start, prior = np.array(CALIBRATION), self.rarity**1.5 * np.diag(CALIBRATION_PRIOR)
        p = 1.0 / (1.0 + np.exp(-np.clip(self.calibration @ s, -FARTHEST, FARTHEST)))
        total = self.curvature + prior + max(p * (1.0 - p), LEAST_CURVATURE) * np.outer(s, s)
        moved = self.calibration - np.linalg.solve(total, (p - y) * s) - start
        self.curvature = FORGETTING * (total - prior)
        self.calibration = start + np.linalg.solve(self.curvature + prior, FORGETTING * total @ moved)
        self.calibration[0] = max(self.calibration[0], LEAST_SLOPE)

    def log_odds(self, scores):
        """Of rare classes a score of 0 stands for smaller odds."""
        least = NO_LESS / math.sqrt(self.rarity)
        return np.log((scores + least) / (1.0 - scores + least))

    def widen(self, values):
        """Columns more, which had these values so far; a decision is due when some rows have had them."""
        for row in self.history:
            row.x = np.append(row.x, values)
        self.due = self.due or (self.rows + 512) // 128 * 128

    # ---- rows as arrays

    def outputs_of(self, rows):
        y = np.array([row.y for row in rows])[:, None]
        return (y == np.arange(self.classes)).astype(float) if self.classes else y

    def columns(self, rows, lags, flags, features):
        """What a view scales: features, and last targets; of more than two classes these are flags."""
        X, last = np.array([row.x[:features] for row in rows]), np.array([row.last for row in rows])
        if not self.classes:
            last = np.clip(last, *self.fence)
        elif flags > 2:
            last = (last[:, :, None] == np.arange(flags)).reshape(len(rows), -1)
        return np.hstack([X, last]) if lags else X

    def columns_of(self, rows, fitted):
        return self.columns(rows, fitted.spec.lags, fitted.view.flags, fitted.view.features)

    def usable(self, rows):
        """Those that experts learn from: with a weight, and targets inside the fence."""
        low, high = self.fence
        # Before any target is known the last ones are zeros, which say nothing.
        told = [(r.y, *r.last) if any(r.last) else (r.y,) for r in rows]
        inside = [self.classes or low <= min(values) <= max(values) <= high for values in told]
        return [row for row, is_inside in zip(rows, inside, strict=True) if row.weight > 0.0 and is_inside]

    def sampled(self):
        return [self.history[t] for t in sorted(self.reservoir)]

    def last(self, count):
        return self.history[max(len(self.history) - min(count, RECENT), 0) :]

    # ---- targets

    def mean(self):
        return (
            self.weights @ self.targets / self.weights.sum() if len(self.weights) else np.zeros(self.outputs)
        )

    def range(self):
        if self.classes:
            return 0.0, 1.0
        margin = MARGIN * (self.high - self.low)
        return (self.low - margin, self.high + margin) if self.low <= self.high else (0.0, 0.0)

    def variance(self):
        """Around the mean of the targets before each."""
        mean = self.mean()
        if self.classes:
            return max(mean @ (1.0 - mean), 1e-3)
        if not len(self.weights):
            return 1e-300
        y, weights = self.targets[:, 0], self.weights
        before = np.append(y[0], (np.cumsum(weights * y) / np.cumsum(weights))[:-1])
        variance = weights @ (y - before) ** 2 / weights.sum()
        return variance if variance > max((1e-12 * mean[0]) ** 2, 1e-300) else 1e-300

    def usual_error(self):
        return self.loss / max(self.loss_rows, 1.0)

    def move_fence(self, decides):
        """Some times as far from the median of the last targets as most of those that differ from it."""
        y = np.array([row.y for row in self.last(RECENT) if row.weight > 0.0])
        y = np.sort(y)
        distances = np.sort(np.abs(y - y[len(y) // 2])[y != y[len(y) // 2]]) if len(y) else y
        before, self.fence = self.fence, NO_FENCE
        if len(distances) >= FENCE_FEWEST:
            reach = FENCE_REACH * distances[int(FENCE_PART * (len(distances) - 1))]
            self.fence = y[len(y) // 2] - reach, y[len(y) // 2] + reach
        if before == NO_FENCE and self.rows <= 64:
            self.stacking.begin()
            self.loss = self.loss_rows = 0.0
        if decides and self.rows <= SETTLED:  # the first targets had no fence, or one of few rows
            kept = self.usable(self.sampled())
            self.targets, self.weights = self.outputs_of(kept), np.array([row.weight for row in kept])

    # ---- the end of a chunk

    def end_chunk(self):
        decides = self.rows in self.schedule["selection"]
        if not self.classes:
            self.move_fence(decides)
        ended, variance = self.rows - self.schedule["end of a chunk"].before(self.rows), self.variance()
        late = np.mean([row.waited for row in self.last(ended)])
        if self.classes:
            several = np.count_nonzero(self.mean()) > 1
            before, self.rarity = self.rarity, max(1.0, several * (RARE_VARIANCE / variance) ** 2)
            start, prior = np.array(CALIBRATION), np.diag(CALIBRATION_PRIOR)
            moved = (self.curvature + before**1.5 * prior) @ (self.calibration - start)
            self.calibration = start + np.linalg.solve(self.curvature + self.rarity**1.5 * prior, moved)
        self.stacking.compare(ended, self.compared())
        moving = self.rows >= BATCHES_FROM and self.leads()
        self.stacking.end_chunk(ended, self.rarity * variance * (1.0 + late), FASTER if moving else 1)
        self.loss, self.loss_rows = FORGETTING**ended * self.loss, FORGETTING**ended * self.loss_rows
        told = not self.classes and self.rows >= 64 and self.usual_error() > NO_ERROR * variance
        self.wild = WILD * self.usual_error() if told else NO_LIMIT
        for spec, fitted in ((member.spec, member.fitted) for member in self.members if member.fitted):
            rare = spec.logistic and self.rarity > 1.0
            fitted.end_chunk(rare or self.rows in self.schedule["refit"])
        if self.rows in self.schedule["pruning"]:
            self.prune()
        self.decide()
        self.follow()
        for member in self.members if not decides and self.rows != self.due else ():
            memory = member.spec.memory if member.fitted and member.spec.kernel == "gaussian" else 0
            if memory and self.rows in self.schedule[f"new atoms, memory {memory}"]:
                self.fit(member, self.usable(self.last(3 * memory // 2)), self.max_atoms)
            if isinstance(member.fitted, Neighbours) and not member.spec.memory:
                self.search_on(member)
        self.due = self.due if self.rows < self.due else 0
        self.fit_recalled()
        self.recall()
        weights = dict(zip(self.members, self.stacking.weights()[FIRST:], strict=True))
        begun = [member for member in self.members if member.fitted is not None]
        largest = max((weights[member] for member in begun), default=0.0)
        self.leader = next((member for member in begun if weights[member] >= largest - TIE), None)

    def search_on(self, member):
        """Further steps of neighbours' search, every 512 rows behind a fit, as long as all rows are kept."""
        number = self.specs.index(member.spec)
        turns = {128 * (1 + number // 2) + 512 * k for k in range(100)} - set(fitted_at(number))
        rows = self.usable(self.sampled())
        if self.rows <= SETTLED or self.rows not in turns or len(self.sampled()) < self.rows:
            return
        if self.rarity > 1.0 or not rows or not self.counting()[self.members.index(member)]:
            return
        random = np.random.default_rng([self.seed, self.rows, self.members.index(member)])
        old, Y = member.fitted, self.outputs_of(rows)
        seen = self.columns(rows, member.spec.lags, old.view.flags, old.view.features)
        weights = np.array([row.weight for row in rows])
        trend = self.trend_of(member.spec, rows)
        views = {old.name: old.view}
        member.fitted = Neighbours(member.spec, views, seen, Y, weights, random, None, old, trend)

    def trend_of(self, spec, rows):
        """What the first expert says of rows, for neighbours among all."""
        if spec.lags or spec.memory:
            return None
        steady = self.members[0].fitted
        return steady.predict(self.columns_of(rows, steady))

    def removal_costs(self):
        """Of each member alone, of neighbours with their trend."""
        specs = [member.spec for member in self.members]
        told = [s.kernel == "neighbours" and not s.lags and not s.memory for s in specs]
        gone = [[TREND, i + FIRST] if trend else [i + FIRST] for i, trend in enumerate(told)]
        return [self.stacking.removal_cost(columns) for columns in gone]

    def counting(self):
        """Of each expert, whether it is worth a tenth of the best one."""
        costs = self.removal_costs()
        return [cost >= COUNTS * max(costs) for cost in costs]

    def exchangeable(self):
        """Whether rows come in no order: experts with a memory were pruned."""
        return not any(member.spec.memory and member.spec != self.sentinel for member in self.members)

    def decide(self):
        """Views are refitted, and experts fitted in them: those whose turn it is, or all for new columns."""
        rare = self.rarity > 1.0  # all at once
        at_once = self.rows == self.due or (rare and self.rows in self.schedule["selection"])
        if rare and not at_once:
            return
        decides = self.rows in self.schedule["selection"]
        first = at_once or decides
        others = at_once or self.rows in self.schedule["selection, other views"]
        random, kept = np.random.default_rng([self.seed, self.rows]), self.usable(self.sampled())
        some = kept
        if self.rows >= SETTLED:  # rows that no view was chosen by
            some = self.usable(self.last(min(self.rows // 2, SEARCH_ROWS)))
        if not kept or not some:
            return
        self.refit_views(first, others, decides, kept, some, random)
        counts, room = self.counting(), self.max_atoms
        if self.rows >= SETTLED and self.exchangeable():  # atoms of those that were pruned
            share = max(self.most_experts - len(self.members) + sum(counts), sum(counts)) / sum(counts)
            room = int(self.max_atoms * min(math.sqrt(share), MOST_GROWN))
        for member, counted in zip(self.members, counts, strict=True):
            spec, fitted, view = member.spec, member.fitted, self.views.get(self.key(member.spec))
            if not at_once and self.rows not in fitted_at(self.specs.index(spec)):
                continue
            if (
                self.rows < (RARE_START if spec.logistic and self.rarity > 1.0 else spec.start)
                or view is None
            ):
                continue
            if self.rows >= SETTLED and not (at_once or counted or fitted is None):
                continue
            if fitted is not None and view.features > fitted.view.features:
                self.log.append((self.rows, "new columns"))
            remembered = self.usable(self.last(3 * spec.memory // 2)) if spec.memory else kept
            self.fit(member, remembered, room if counted and not spec.memory else self.max_atoms)

    # ---- views

    def follow(self):
        """Where short memories are at work, their view is sought in the last rows: two thirds of them.

        It is taken if of the last third it tells clearly more.
        """
        for lags, due in enumerate(("maps of short memories", "the same, with last targets")):
            key = bool(lags), self.better[bool(lags)]
            short = [member.spec for member in self.members if member.spec.memory]
            keys = [self.key(spec) for spec in short if spec.kernel == "gaussian"]
            if self.rows not in self.schedule[due] or self.exchangeable() or key not in keys:
                continue
            rows, old, width = (
                self.usable(self.last(FOLLOWED_ROWS)),
                self.views.get(key),
                len(self.history[0].x),
            )
            cut = 2 * len(rows) // 3
            known = old is not None and (old.flags, old.features) == (self.flags, width)
            if self.rarity > 1.0 or self.rows == self.due or cut < FEWEST_FOLLOWED or not known:
                continue
            random = np.random.default_rng([self.seed, self.rows])
            scale = SCALINGS[key[1]](self.columns(rows[:cut], lags, self.flags, width))
            start = old if self.rows // FOLLOWED_IN_TURN % 2 else None
            known = self.searched(rows[:cut], lags)
            found = improved(start, scale, *known, SEARCH_ATOMS // 2, random, steps=1)
            stays, follows = (
                improved(
                    view, view.scale, *self.searched(rows[cut:], lags), SEARCH_ATOMS // 2, random, steps=0
                )
                for view in (old, found)
            )
            if follows.error < FOLLOWED_WINS * stays.error:
                self.log.append((self.rows, "followed"))
                self.views[key] = replace(found, flags=self.flags, features=width)

    def searched(self, rows, lags):
        """Columns, targets around 0 with variance 1, and roots of weights."""
        weights, Y = np.array([row.weight for row in rows]), self.outputs_of(rows)
        Y = Y - weights @ Y / weights.sum()
        variance = weights @ (Y**2).sum(axis=1) / weights.sum()
        Y = Y / math.sqrt(variance) if variance > 0.0 else Y
        return self.columns(rows, lags, self.flags, len(rows[0].x)), Y, np.sqrt(weights)

    def key(self, spec):
        """With or without last targets, and a scaling: of linear experts robust, of others the better one."""
        better = self.better[spec.lags]
        other = "rank" if better == "robust" else "robust"
        return spec.lags, "robust" if spec.kernel == "linear" else other if spec.other else better

    def refit_views(self, first, others, anew, kept, some, random):
        """Each at least as good as before, by leave-one-out errors; scalings are compared if both are new."""
        data = kept, some, *self.searched(some, False)[1:], random
        better, other = self.better[False], "rank" if self.better[False] == "robust" else "robust"
        if first:
            self.refit_view((False, better), *data)
            if anew:
                self.begin_anew((False, better), *data)
        if others:
            if self.refit_view((False, other), *data):
                self.better[False] = self.smaller_error(False)
            searched = [self.refit_view((True, name), *data) for name in SCALINGS]
            if all(searched):
                self.better[True] = self.smaller_error(True)

    def smaller_error(self, lags):
        return min(SCALINGS, key=lambda name: self.views[lags, name].error)

    @property
    def flags(self):
        return min(self.known_classes, MOST_FLAGS)

    def refit_view(self, key, kept, some, Y, roots, random):
        """Whether it was searched for."""
        (lags, name), old, width = key, self.views.get(key), len(some[0].x)
        specs = [member.spec for member in self.members]
        wanted = {self.key(spec) for spec in specs if not spec.other and spec.kernel != "linear"}
        widened = old is not None and old.features < width
        used = any(spec.lags == lags for spec in specs)
        if not used or (self.rows >= SETTLED and not widened and key not in wanted):
            return False
        shape = {"flags": self.flags, "features": width}
        X = self.columns(some, lags, self.flags, width)
        scale = SCALINGS[name](self.columns(kept, lags, self.flags, width))
        if self.rows < FIRST_METRICS:
            self.views[key] = View(scale, np.eye(X.shape[1]), **shape)
            return False
        if self.rarity > 1.0:  # nothing is searched for
            metric = np.eye(X.shape[1])
            unit = half_median_distance(scale(X), metric, random)
            self.views[key] = View(scale, metric, BROAD * unit, BROAD, BROAD_ALPHA, **shape)
            return False
        early = self.rows <= 2 * FIRST_METRICS
        first = early or old is None or (old.flags, old.features) != (self.flags, width)
        leads = not lags and (self.rows < SETTLED or name == self.better[lags])
        if first:
            old = self.beginning(name, X.shape[1]) if lags or not early else None
        steps = 8 if self.rows <= 128 and not self.classes else 4 if self.rows < BATCHES_FROM else 2
        if not leads or self.rows == FIRST_METRICS:
            steps = 1
        if lags and not first:
            steps = 2
        products = None
        if not first and self.rows >= SETTLED:
            products = self.expert_gradients(old, kept, random)
        if products is not None and not lags:
            steps = 1
        atoms = SEARCH_ATOMS if leads else SEARCH_ATOMS // 2
        view = improved(old, scale, X, Y, roots, atoms, random, steps=steps, products=products)
        self.views[key] = replace(view, **shape)
        return True

    def begin_anew(self, key, kept, some, Y, roots, random):
        """From the uniform metric; where little is explained, from what columns tell at first sight."""
        best, width = self.views[key], len(some[0].x)
        if self.rarity > 1.0 or best.features != width:
            return
        data = best.scale, self.columns(some, False, self.flags, width), Y, roots, SEARCH_ATOMS, random
        if self.rows in FRESH_AT:
            fresh = improved(None, *data, steps=2)
            best = fresh if fresh.error < FRESH_WINS * best.error else best
        if FIRST_SIGHT[0] <= self.rows <= FIRST_SIGHT[1] and best.error >= LITTLE:
            fresh = improved(None, *data, steps=2, first_sight=True)
            if fresh.error < FIRST_SIGHT_WINS * best.error:
                best = fresh
                self.log.append((self.rows, "first sight"))
        self.views[key] = replace(best, flags=self.flags, features=width)

    def beginning(self, name, width):
        """From the view with fewer columns; new ones count like the best."""
        plain = self.views.get((False, name))
        if plain is None:
            return None
        metric = np.eye(width)
        metric[: plain.features, : plain.features] = plain.metric
        return replace(plain, metric=metric)

    def expert_gradients(self, view, kept, random):
        """The average gradient outer product of an expert that has learned all rows in this view."""
        for spec, fitted in ((member.spec, member.fitted) for member in self.members):
            plain = spec.kernel == "gaussian" and not spec.memory
            if plain and fitted is not None and fitted.view is view:
                rows = [kept[i] for i in random.permutation(len(kept))[:GRADIENT_ROWS]]
                U, ones = view.coordinates(self.columns_of(rows, fitted)), np.ones(len(rows))
                return gradient_products(U, fitted.atoms, fitted.theta(), view.bandwidth, view.metric, ones)
        return None

    # ---- experts

    def fit(self, member, rows, max_atoms):
        """A new expert with atoms among these rows, which it has learned."""
        if not rows:
            return
        spec, view = member.spec, self.views[self.key(member.spec)]
        random = np.random.default_rng([self.seed, self.rows, self.members.index(member)])
        seen, alpha = self.columns(rows, spec.lags, view.flags, view.features), view.alpha
        if spec.kernel == "linear":
            view, alpha = replace(view, metric=np.eye(seen.shape[1])), LINEAR_ALPHA * seen.shape[1]
        elif spec.logistic:  # the square root of the metric
            metric = view.metric / np.sqrt(np.linalg.norm(view.metric, axis=0))
            unit = half_median_distance(view.scale(seen), metric, random)
            view = replace(view, metric=metric, bandwidth=view.ratio * unit)
        Y, weights = self.outputs_of(rows), np.array([row.weight for row in rows])
        if spec.kernel == "laplace":
            view = along_axes(view, seen, Y, weights, SEARCH_ATOMS, SEARCH_ROWS, random)
            alpha = view.alpha
        if spec.kernel == "neighbours":
            other = self.views.get(self.key(spec._replace(other=True)))
            known = other is not None and (other.flags, other.features) == (view.flags, view.features)
            views, settings = {self.key(spec)[1]: view}, None
            if known:
                views[self.key(spec._replace(other=True))[1]] = other
            for each in self.members if spec.memory else ():  # what was found for all rows
                kind = each.spec.kernel, each.spec.lags, each.spec.memory
                if kind == (spec.kernel, spec.lags, 0) and each.fitted:
                    settings = each.fitted.name, each.fitted.view, each.fitted.alpha
                    seen = self.columns(rows, spec.lags, settings[1].flags, settings[1].features)
            before, trend = member.fitted, self.trend_of(spec, rows)
            member.fitted = Neighbours(spec, views, seen, Y, weights, random, settings, before, trend)
            return
        U, most = view.coordinates(seen), max_atoms // 2 if spec.memory else max_atoms
        newest = random.permutation(min(len(U), max(spec.memory, most)) if spec.memory else len(U))
        atoms = U[np.sort(len(U) - 1 - newest[: max(most, 1)])]
        if spec.kernel == "linear" and U.shape[1] <= max_atoms:
            atoms = np.eye(U.shape[1])
        if spec.logistic:
            member.fitted = Logistic(spec, view, atoms, LOGISTIC_ALPHA * alpha, seen, Y, weights)
            return
        offset = 0.0 if self.classes else weights @ Y[:, 0] / weights.sum()
        live = self.rows < BATCHES_FROM or spec.memory > 0 or spec.kernel == "linear"
        member.fitted = Ridge(spec, view, atoms, alpha, seen, Y, weights, offset=offset, live=live)

    def prune(self):
        """Without experts that lower the loss by less than a further weight costs."""
        price = PRICE * math.log(max(self.stacking.rows, 2.0)) * self.usual_error()
        specs = [member.spec for member in self.members]
        of_series = [(spec.lags or spec.memory) and spec != self.sentinel for spec in specs]
        series = [i + FIRST for i, found in enumerate(of_series) if found]
        sure = min(1.0, self.rows / SURE)
        needless = sure * price * len(series)
        moves = self.leads() or self.drifts(STAY_PRICE)
        if series and not moves and self.stacking.removal_cost(series) < needless:
            self.remove(series)
        elif not self.exchangeable() and not moves and self.order_tells_nothing():
            self.remove([i for i in series if specs[i - FIRST].memory])
        while self.rows >= LATE:
            specs = [member.spec for member in self.members]
            needed = [spec for spec in specs if spec == EXPERTS[0] or (spec.logistic and self.rarity > 1.0)]
            others = [i for i, spec in enumerate(specs) if not spec.memory and spec not in needed]
            costs = [self.removal_costs()[i] for i in others]
            if not costs or min(costs) > price:
                return
            self.remove([others[int(np.argmin(costs))] + FIRST])

    def order_tells_nothing(self):
        """Whether long memories of what a row is err clearly less than short ones, and than last targets."""
        errors, told, others = self.stacking.errors()[FIRST:], [], []
        for member, error in zip(self.members, errors, strict=True):
            spec = member.spec
            if member.fitted is not None and (spec.memory or spec.kernel == "gaussian" or not spec.lags):
                (told if spec.memory or spec.lags else others).append(error)
        clearly = ORDER_TELLS * self.stacking.rows * self.usual_error()
        return self.rows >= LATE and min(told, default=np.inf) > min(others) + clearly

    def drifts(self, price):
        """Whether the short memory that stays lowers the loss by far."""
        for place, member in enumerate(self.members):
            if member.spec == self.sentinel and member.fitted is not None:
                cost = self.stacking.removal_cost([place + FIRST])
                price *= math.log(max(self.stacking.rows, 2.0)) * self.usual_error()
                return price <= cost < np.inf
        return False

    def compared(self):
        """Columns of the short memory that stays, and of the expert that remembers everything."""
        begun = {member.spec: i + FIRST for i, member in enumerate(self.members) if member.fitted is not None}
        pair = begun.get(self.sentinel), begun.get(EXPERTS[0])
        return None if None in pair else pair

    def leads(self):
        return self.stacking.lead > LEAD * self.stacking.compared * self.usual_error()

    def recall(self):
        """Those of a series come back where there is drift: all of them, or at rare times those that left."""
        often, seldom = (
            self.rows in self.schedule[name] for name in ("recall, short memory ahead", "recall")
        )
        if not ((often and self.leads()) or (seldom and self.drifts(RECALL_PRICE))):
            return
        there = [member.spec for member in self.members]
        left = [spec for spec in there if spec.memory and spec != self.sentinel]
        if left and self.rows not in self.schedule["recall while others stay"]:
            return
        gone = [spec for spec in self.specs if (spec.lags or spec.memory) and spec not in there]
        gone = [spec for spec in gone if self.key(spec) in self.views]
        if not gone:
            return
        self.log.append((self.rows, "recalled"))
        self.stacking.add(len(gone))
        self.members += [Member(spec) for spec in gone]

    def fit_recalled(self):
        """Three at the end of each chunk."""
        steps = [step for step in (512, SETTLED, LATE) if step <= self.rows]
        come = [
            member
            for member in self.members
            if member.fitted is None
            and (member.spec.lags or member.spec.memory)
            and steps
            and member.spec.start < steps[-1]
            and self.key(member.spec) in self.views
        ]
        for member in come[:3]:
            rows = self.usable(self.last(3 * (member.spec.memory or SETTLED) // 2))
            self.fit(member, rows, self.max_atoms)

    def remove(self, gone):
        self.log.append((self.rows, "pruned"))
        self.stacking.remove(gone)
        self.members = [member for i, member in enumerate(self.members) if i + FIRST not in gone]

    # ---- looking

    @property
    def size(self):
        return sum(len(member.fitted.atoms) for member in self.members if member.fitted is not None)

    def shares(self):
        weights = self.stacking.weights()
        names = ["last target", "trend of neighbours", *(member.spec.name for member in self.members)]
        mean = weights[0] if self.classes else 1.0 - weights[1:].sum()
        return {"mean": mean, **dict(zip(names, weights[1:], strict=True))}

    def relevances(self, width):
        view = self.views.get((False, self.better[False]))
        if view is None:
            return np.ones(width)
        sizes = np.linalg.norm(view.metric, axis=1)
        return np.append(sizes / sizes.max(), np.zeros(width - view.features))


# ---- drift


def errors_of(rows):
    return np.array([row.error for row in rows])


def mean_of(values, rows):
    """By the weights of the rows."""
    weights = np.array([row.weight for row in rows])
    return weights @ np.asarray(values, dtype=float) / max(weights.sum(), 1e-300)


class NaiveAuto:
    """The pool at work. In an alarm a fresh one is tried on the last rows; the old one may come back."""

    def __init__(self, schedule, *, classes=0, max_atoms=200, experts=13, delay=0, seed=0):
        self.log = []  # rows of the pool at work, and what happened then
        self.settings = {"classes": classes, "max_atoms": max_atoms, "experts": experts}
        self.schedule, self.classes, self.seed, self.takeovers = schedule, classes, seed, 0
        self.delay, self.pending, self.told = delay, [], 0  # rows that wait; how many are known
        self.past = []  # the targets of those with a weight
        self.pool, self.standby = self.new_pool(0), None
        self.replaced, self.played = 0, 0  # rows of the pool when the other was replaced, and last tried
        self.alarmed, self.calm = 0, 0  # rows of alarm, and chunks since without one
        self.error, self.weight = 0.0, 0.0  # the usual error is their ratio
        self.credit = 0.5 * SAVED

    def new_pool(self, number):
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0]) if number else self.seed
        return Pool(self.schedule, seed=seed, log=self.log, **self.settings)

    def step(self, x, y, weight=1.0):
        """Predict a row, then learn the one that becomes known after it."""
        row, result = self.ask(x)
        row.y, row.weight = float(y), float(weight)
        result = result._replace(slope=self.slope(row))
        if len(self.pending) > self.delay:
            self.tell(self.pending[0])
        return result

    def ask(self, x):
        """Predict a row whose target is to come."""
        row = Row(np.array(x, dtype=float), self.last_targets(), 0.0, 0.0, waited=self.told)
        self.pool.predict(row)
        self.pending.append(row)
        return row, self.pool.step_of(row)

    def tell(self, row):
        """Learn a row that waits."""
        self.pending = [other for other in self.pending if other is not row]
        row.waited, self.told = self.told - row.waited, self.told + 1
        self.past += [row.y] if row.weight > 0.0 else []
        pool = self.pool
        pool.learn(row)
        if pool.rows in self.schedule["end of a chunk"]:
            self.look()
        if self.pool is not pool:
            for other in self.pending:
                self.pool.predict(other)

    def slope(self, row):
        output = int(row.y) if self.classes else 0
        return 2.0 * row.weight * (row.stacked[output] - self.pool.outputs_of([row])[0, output])

    def last_targets(self):
        if not self.past:
            return np.full(LAGS, -1.0 if self.classes else 0.0)
        return np.array(self.past)[np.maximum(len(self.past) - 1 - np.arange(LAGS), 0)]

    def predict(self, x, recent_targets=False):
        """As if the row came next. Changes nothing."""
        row = Row(np.array(x, dtype=float), self.last_targets(), 0.0, 0.0)
        self.pool.predict(row, lags=recent_targets)
        return self.pool.scores(row)

    def widen(self, values):
        for pool in (self.pool, self.standby):
            if pool is not None:
                pool.widen(values)
        for row in self.pending:
            row.x = np.append(row.x, values)

    @staticmethod
    def replay(pool, rows):
        """A pool predicts and learns rows that another has learned, each as late as it was then."""
        known = [max(i - row.waited, 0) for i, row in enumerate(rows)]
        known = [min(known[i:]) for i in range(len(rows))]  # none later than those behind it
        copies = [Row(row.x, row.last, row.y, row.weight, waited=row.waited) for row in rows]
        for i, row in enumerate(copies):
            for j, asked in enumerate(copies):
                if known[j] == i:
                    pool.predict(asked)
            pool.learn(row)

    def look(self):
        """A chunk has ended."""
        pool = self.pool
        ended, young = pool.rows - self.schedule["end of a chunk"].before(pool.rows), pool.rows < YOUNG
        self.credit = min(self.credit + PAID * ended, SAVED)
        chunk = [row for row in pool.last(ended) if row.weight > 0.0]
        if len(chunk) < FEWEST:
            return
        error = mean_of(errors_of(chunk), chunk)
        usual = self.error / self.weight if self.weight else error
        usual = max(usual, LEAST_ERROR) if self.classes else usual
        alarm = not young and self.troubled(chunk, usual)
        self.calm = 0 if alarm else self.calm + 1
        if self.calm >= CALM:
            self.alarmed = 0
        elif alarm or self.alarmed:
            self.alarmed += ended
        decay, n = FORGETTING ** len(chunk), len(chunk)
        self.error = decay * self.error + n * (error if young else min(error, UNUSUAL * usual))
        self.weight = decay * self.weight + n
        if self.standby is not None and self.comes_back(alarm):
            return
        if alarm:
            self.take_over(max(self.alarmed // 2, SHORTEST_ALARM), usual)

    def troubled(self, rows, usual):
        """Far above the usual error, or above that of the rows' own mean."""
        error, Y = mean_of(errors_of(rows), rows), self.pool.outputs_of(rows)
        variance = sum(mean_of((y - mean_of(y, rows)) ** 2, rows) for y in Y.T)
        return error > UNUSUAL * usual or error > max(WORSE_THAN_MEAN * variance, SMALL_ERROR * usual)

    def take_over(self, count, usual):
        """A fresh pool predicts and learns the rows since errors rose; has it won over their later half?"""
        pool, rows = self.pool, self.pool.last(count)
        threshold = RISEN * mean_of(errors_of(rows), rows)
        excess = [row.weight * (row.error - threshold) for row in reversed(rows)]
        count = int(np.argmax(np.cumsum(excess))) + 1
        later, trial = pool.last(count - count // 2), pool.last(count)
        most = np.quantile(errors_of(later), COMPARED)
        compared = [i for i, row in enumerate(later) if row.weight > 0.0 and row.error <= most]
        mine = [later[i] for i in compared]
        if count < SHORTEST_TRIAL or len(compared) < FEWEST or self.credit < len(trial):
            return
        if not self.troubled(mine, usual):
            return
        self.credit -= len(trial)
        fresh = self.new_pool(self.takeovers + 1)
        fresh.known_classes = pool.known_classes
        self.replay(fresh, trial)
        its = errors_of(fresh.last(len(later)))[compared]
        error = mean_of(its, mine)
        self.log.append((pool.rows, "trial"))
        if mean_of(its < errors_of(mine), mine) < MOSTLY or error >= HALF * mean_of(errors_of(mine), mine):
            return
        self.log.append((pool.rows, "takeover"))
        self.takeovers += 1
        if self.standby is None or self.standby.rows < pool.rows:
            self.standby = pool
        self.pool = fresh
        self.replaced = self.played = fresh.rows
        self.error, self.weight, self.alarmed, self.calm = len(its) * error, len(its), 0, 0

    def comes_back(self, alarm):
        """The old pool predicts and learns what it missed, if that is due; was it better?"""
        rows, old = self.pool.rows, self.standby
        since, missed = rows - self.replaced, rows - self.played
        if not alarm and 2 * missed < min(since, 2 * MISSED):
            return False
        self.replay(old, self.pool.last(missed))
        self.played = rows
        mine, its = self.pool.last(missed), old.last(missed)
        if mean_of(errors_of(its), mine) < mean_of(errors_of(mine), mine):
            self.log.append((rows, "return"))
            self.pool, self.standby, self.alarmed, self.calm = old, None, 0, 0
            return True
        if since >= STANDS_BY:
            self.log.append((rows, "old pool dropped"))
            self.standby = None
        return False
