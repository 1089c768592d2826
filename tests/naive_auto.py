"""AutoKONS written once more, one row at a time and densely from its definitions: the referee of the engine.

It shares with ``kons`` the sequence of its coins, nothing else: kernels, scalings, experts, stacking and the
test for drift are written out here, and every constant has a name of its own, so that a number changed on
one side only is found. *When* something happens is not written here: it is the table "Schedule" of
``docs/auto.md``, read by :func:`schedule_of`.

There is no blocked algebra, no cache and no incremental factor. An expert is the list of the rows that it
has learned, and each prediction a solution of its normal equations; the weights of stacking likewise. So a
row costs a millisecond or more: streams of one or two thousand rows, with few atoms, are what it is for.

========================  ==================================================================================
:class:`Ridge`            an expert: ridge regression in the span of its atoms
:class:`Logistic`         an expert of classes: Newton steps of logistic regression, in batches
:class:`Stacking`         ridge regression on the predictions of the experts
:class:`View`             scaling, metric, bandwidth and regularization, found by leave-one-out errors
:class:`Pool`             all of them over one reservoir: views refitted, experts fitted and pruned
:class:`NaiveAuto`        a pool at work, and a fresh one that takes over when the stream has turned
========================  ==================================================================================

Not here: a kernel, bandwidth or regularization fixed by the user, more than twelve experts, more than 128
columns (where metrics are diagonal).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kons.core.coins import Coins

JITTER = 1e-10  # of the mean of a diagonal, added to it before a solution
MEAN, LAST, FIRST = 0, 1, 2  # columns of stacking: mean of the targets, last target, first expert
LAGS, MOST_FLAGS = 2, 10  # last targets that an expert sees; classes that they are told apart in
RESERVOIR, RECENT = 8192, 2048  # rows kept of the whole stream, and last rows

# Targets: predictions stay in their range and a margin; beyond the fence no expert learns from them.
MARGIN, NO_FENCE = 0.05, (-1e300, 1e300)
FENCE_ROWS, FENCE_FEWEST, FENCE_PART, FENCE_NEAREST, FENCE_FARTHEST = 512, 7, 0.95, 6.0, 10.0
WILD_ERROR, NO_ERROR, NO_LIMIT = 100.0, 1e-12, 1e300

# Scalings and the search for a view.
TAIL, KNOTS = 1.5, 129
FLOOR = 0.02  # of a metric's smallest direction, beside the largest
BANDWIDTH_STEP, ALPHA_STEP, ALPHAS = 1.41, 3.16, (1e-4, 10.0)
FIRST_REACH, REACH_IN_TURN = (4, 4), ((0, 1), (1, 0))
FIRST_KERNELS, SETTLED = 32, 1024
SEARCH_ATOMS, SEARCH_ROWS, GRADIENT_ROWS = 128, 1024, 512
FRESH_AT, CLEARLY_BETTER, HOPELESS_METRIC, SEARCH_GAINS = (512, 1024, 4096), 0.98, 2.0, 4.0

# Experts.
LINEAR_ALPHA, LOGISTIC_ALPHA = 0.1, 1.0 / 16.0
BATCHES_FROM = 512  # experts fitted from here on, with all of the past, learn in batches
LEAST_CURVATURE, FARTHEST, NEWTON_STEPS, NEWTON_ROWS = 1e-3, 30.0, 5, 1024
UNSEEN, FIRST_SEEN = -1e6, -4.0  # the constant of a class without rows, and with its first
MOVES = 0.03  # a view better by this part is worth a new fit
SMALL_VOTE, SURE, LATE = 0.5, 2048, 4096
COUNTS, MOST_GROWN, GROWS = 0.1, 1.75, 1.1

# Stacking and calibration.
FORGETTING, DOUBT, EARNED, TIE = 0.9995, 10.0, 0.1, 1e-6
SLOPE_AND_INTERCEPT, CALIBRATION_PRIOR, LEAST_SLOPE = (4.0, 0.0), (0.1, 1.0), 0.5

# Drift.
UNUSUAL, HOPELESS, SMALL_ERROR, LEAST_ERROR = 3.0, 1.5, 0.25, 1e-3
FEWEST, YOUNG, CALM, GIVEN_UP = 16, 256, 2, 384
SHORTEST_ALARM, SHORTEST_TRIAL, RISEN = 64, 40, 0.5
HALF, MOSTLY, COMPARED = 0.5, 0.6, 0.9
PAID, SAVED = 1.0 / 32.0, 512.0
ASLEEP, MISSED = 2048, 256


class Spec(NamedTuple):
    """An expert before it is fitted."""

    name: str
    kernel: str
    start: int
    lags: bool = False
    memory: int = 0
    other: bool = False
    """It sees columns in the scaling that lost."""
    softer: bool = False
    """With the square root of the metric; of classes with the logistic loss."""

    @property
    def of_series(self):
        return self.lags or self.memory > 0


EXPERTS = (
    Spec("gaussian, features", "gaussian", 32),
    Spec("linear, features", "linear", 4),
    Spec("gaussian, last targets, memory 300", "gaussian", 256, lags=True, memory=300),
    Spec("matern, features", "matern", 512),
    Spec("gaussian, last targets", "gaussian", 64, lags=True),
    Spec("linear, last targets, memory 300", "linear", 8, lags=True, memory=300),
    Spec("gaussian, last targets, memory 100", "gaussian", 128, lags=True, memory=100),
    Spec("gaussian, features, other scaling", "gaussian", 128, other=True),
    Spec("gaussian, features, memory 300", "gaussian", 256, memory=300),
    Spec("gaussian, features, softer relevance", "gaussian", 1024, softer=True),
    Spec("gaussian, last targets, other scaling, memory 100", "gaussian", 128, True, 100, other=True),
    Spec("gaussian, last targets, memory 1000", "gaussian", 1024, lags=True, memory=1000),
)


# ---- the schedule


class Rule(NamedTuple):
    """At which rows something happens: "4, 8, every 64 from 64, times 8 from 4096"."""

    parts: list

    def __contains__(self, row):
        starts = [start for start, _, _ in self.parts]
        at = int(np.searchsorted(starts, row, side="right")) - 1
        if at < 0:
            return False
        start, how, step = self.parts[at]
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
        parts = []
        for part in words.split(", "):
            found = re.fullmatch(r"(?:(every|times) (\d+) from )?(\d+)", part)
            parts.append((int(found[3]), found[1], int(found[2] or 0)))
        rules[name] = Rule(parts)
    return rules


# ---- kernels, scalings


def kernel_of(kind, U, A, bandwidth):
    """The rows k(u), with a constant 1 behind the kernel's values at the atoms A."""
    if kind == "linear":
        values = U @ A.T
    else:
        distances = np.sqrt(((U[:, None, :] - A[None, :, :]) ** 2).sum(axis=2)) / bandwidth
        root = math.sqrt(3.0) * distances
        values = np.exp(-0.5 * distances**2) if kind == "gaussian" else (1.0 + root) * np.exp(-root)
    return np.hstack([values, np.ones((len(U), 1))])


def penalty_of(kind, A, bandwidth):
    penalty = np.eye(len(A) + 1)
    penalty[:-1, :-1] = kernel_of(kind, A, A, bandwidth)[:, :-1]
    return penalty


def jittered(A):
    return A + JITTER * np.trace(A) / len(A) * np.eye(len(A))


def robust(X):
    """Median 0 and interquartile range 1, far tails drawn in by a logarithm."""
    low, median, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    unit = np.where(high > low, high - low, X.std(axis=0))
    constant = unit <= 1e-14 * np.abs(X).max(axis=0)
    unit = np.where(constant, np.where(median == 0.0, 1.0, np.abs(median)), unit)

    def scale(X):
        z = (X - median) / unit
        far = np.maximum(np.abs(z) / TAIL, 1.0)
        return np.where(far > 1.0, np.sign(z) * TAIL * (1.0 + np.log(far)), z)

    return scale


def quantiles(X):
    """Each column to [-1, 1] by the share of smaller values, interpolated between at most 129 of them."""
    tables = []
    for column in X.T:
        values, counts = np.unique(column, return_counts=True)
        share = (np.cumsum(counts) - 0.5 * counts) / len(column)
        if len(values) > KNOTS:
            step = (share[-1] - share[0]) / (KNOTS - 1)
            places = np.searchsorted(share, share[0] + np.arange(KNOTS) * step)
            places = np.unique(np.append(places[:-1], len(values) - 1))
            values, share = values[places], share[places]
        tables.append((values, 2.0 * (share - 0.5)))
    return lambda X: np.column_stack([np.interp(x, *table) for x, table in zip(X.T, tables, strict=True)])


SCALINGS = {"robust": robust, "rank": quantiles}


# ---- views: what an expert sees of a row


@dataclass(eq=False)
class View:
    """A scaling, a metric T (distances are those of x T), bandwidth and regularization."""

    scale: object
    metric: np.ndarray
    bandwidth: float = 1.0
    ratio: float = 1.0
    """The bandwidth in units of half the median distance."""
    alpha: float = 0.1
    error: float = 1.0
    flags: int = 0
    features: int = 0

    def coordinates(self, X):
        return self.scale(X) @ self.metric


def half_median_distance(scaled, metric, random):
    left, right = (scaled[random.integers(len(scaled), size=256)] for _ in range(2))
    squares = np.sort((((left - right) @ metric) ** 2).sum(axis=1))
    squares = squares if squares[len(squares) // 2] > 0.0 else squares[squares > 0.0]
    return max(0.5 * math.sqrt(squares[len(squares) // 2]), 1e-12) if len(squares) else 1.0


def leave_one_out(U, A, bandwidth, alpha, Y, roots):
    """Mean squared error at each row of the Gaussian ridge fit to all others, and the coefficients.

    The fit without row i errs there by (y_i - f_i)/(1 - h_i), h_i the row's leverage.
    """
    K = roots[:, None] * kernel_of("gaussian", U, A, bandwidth)
    L = np.linalg.cholesky(jittered(alpha * penalty_of("gaussian", A, bandwidth) + K.T @ K))
    V = np.linalg.solve(L, K.T)
    theta, leverage = np.linalg.solve(L.T, V @ Y), np.sum(V**2, axis=0)
    residuals = (Y - K @ theta) / np.maximum(1.0 - leverage, 1e-6)[:, None]
    return np.mean(np.sum(residuals**2, axis=1)), theta


def gradient_products(U, A, theta, bandwidth, metric, roots):
    """The average over rows, by weight, of grad f grad f^T, in coordinates before the metric."""
    K = kernel_of("gaussian", U, A, bandwidth)[:, :-1]
    total = np.zeros(metric.shape)
    for coefficients in theta[:-1].T:
        G = np.einsum("ij,ijk->ik", K * coefficients, A[None] - U[:, None]) / bandwidth**2 @ metric.T
        total += (roots[:, None] * G).T @ (roots[:, None] * G)
    return total / (roots @ roots)


def metric_of(products):
    """T with T T^T the average of M and its diagonal, the largest direction scaled to 1."""
    values, directions = np.linalg.eigh(0.5 * (products + np.diag(np.diag(products))))
    sizes = np.sqrt(np.maximum(values, 0.0))
    if not sizes.max() > 0.0:
        return np.eye(len(products))
    return directions * np.maximum(sizes / sizes.max(), FLOOR)


def search(U, A, bandwidth, alpha, reach, Y, roots, hopeless):
    """Smaller bandwidths while the error falls, else larger ones; then regularizations in the same way."""
    first, theta = leave_one_out(U, A, bandwidth, alpha, Y, roots)
    best = first, theta, bandwidth, alpha
    if first > hopeless:
        return best, first
    for axis, step in enumerate((BANDWIDTH_STEP, ALPHA_STEP)):
        start = best
        for factor in (1.0 / step, step):
            for _ in range(reach[axis]):
                tried = [best[2], best[3]]
                tried[axis] *= factor
                if axis == 1 and not ALPHAS[0] <= tried[1] <= ALPHAS[1]:
                    break
                error, theta = leave_one_out(U, A, *tried, Y, roots)
                if not error < best[0]:
                    break
                best = error, theta, *tried
            if best is not start:
                break
    return best, first


def improved(view, scale, X, Y, roots, *, atoms, steps, products, random, hopeless=np.inf):
    """The best of some steps of a metric along the gradients, from a view or from nothing.

    The first step may go along given gradients. Besides the error of the view before.
    """
    scaled, weighted = scale(X), Y * roots[:, None]
    chosen = np.sort(random.permutation(len(X))[: min(atoms, max(len(X) // 2, 8))])
    metric, ratio, alpha = np.eye(X.shape[1]), 1.0, 0.1
    if view is not None:
        metric, ratio, alpha = view.metric, view.ratio, view.alpha
    best, before = None, None
    for step in range(steps + 1):
        unit = half_median_distance(scaled, metric, random)
        reach = FIRST_REACH if view is None and step == 0 else REACH_IN_TURN[step % 2]
        U, A = scaled @ metric, scaled[chosen] @ metric
        found, first = search(U, A, ratio * unit, alpha, reach, weighted, roots, SEARCH_GAINS * hopeless)
        error, theta, bandwidth, alpha = found
        ratio = bandwidth / unit
        before = first if before is None else before
        if best is None or error < best.error:
            best = View(scale, metric, bandwidth, ratio, alpha, error)
        if error > hopeless or step == steps:
            break
        if step > 0 or products is None:
            products = gradient_products(U, A, theta, bandwidth, metric, roots)
        metric = metric_of(products)
    return best, before


# ---- experts


class Ridge:
    """The rows that were learned, and theta = (alpha Q + sum w k k^T)^-1 sum w k y, Q = blockdiag(K_D, 1).

    With a memory of m rows a weight falls by 1 - 1/m with every row, and inside a chunk that of alpha Q, too.
    """

    def __init__(self, spec, view, atoms, alpha, rows, Y, weights, *, offset, live):
        self.spec, self.view, self.atoms, self.offset, self.live = spec, view, atoms, offset, live
        self.forgetting = 1.0 - 1.0 / spec.memory if spec.memory else 1.0
        self.penalty = alpha * penalty_of(spec.kernel, atoms, view.bandwidth)
        self.K = self.features(rows)
        self.Y = Y - offset
        self.weights = weights * self.forgetting ** np.arange(len(Y) - 1.0, -1.0, -1.0)
        self.begin_chunk()

    def features(self, rows):
        return kernel_of(self.spec.kernel, self.view.coordinates(rows), self.atoms, self.view.bandwidth)

    def sums(self):
        weighted = self.weights[:, None] * self.K
        return weighted.T @ self.K, weighted.T @ self.Y

    def begin_chunk(self):
        """A fit; the jitter is that of the sums now."""
        gram, products = self.sums()
        self.at_start = jittered(self.penalty + gram)
        self.prior = self.at_start - gram
        self.fixed = np.linalg.solve(self.at_start, products)

    def theta(self):
        """Of all rows so far; of an expert that learns in batches, of those before its last fit."""
        if not self.live:
            return self.fixed
        gram, products = self.sums()
        return np.linalg.solve(self.prior + gram, products)

    def predict(self, rows):
        return self.features(rows) @ self.theta() + self.offset

    def learn(self, row, y, weight):
        self.K = np.vstack([self.K, self.features(row)])
        self.Y = np.vstack([self.Y, y - self.offset])
        self.weights = np.append(self.forgetting * self.weights, weight)
        self.prior = self.forgetting * self.prior

    def end_chunk(self, refit):
        if refit or self.live:
            self.begin_chunk()

    def inverse_form(self, row):
        """k^T A^-1 k with A of the last fit."""
        k = self.features(row)[0]
        return k @ np.linalg.solve(self.at_start, k)


class Logistic(Ridge):
    """One against the rest: theta + A^-1 sum w k (y - p) over the rows since the last fit.

    A = alpha Q + sum w c k k^T, c the largest p (1 - p) of a row, by the theta at the end of its chunk.
    """

    def __init__(self, spec, view, atoms, alpha, rows, Y, weights):
        self.spec, self.view, self.atoms, self.live = spec, view, atoms, False
        self.penalty = alpha * penalty_of(spec.kernel, atoms, view.bandwidth)
        self.fixed = np.zeros((len(atoms) + 1, Y.shape[1]))
        self.fixed[-1, ~(Y > 0.0).any(axis=0)] = UNSEEN
        K = self.features(rows)
        some = np.arange(len(K))[:: -(-len(K) // NEWTON_ROWS)]
        share = weights.sum() / weights[some].sum()
        steps = [(some, share)] * NEWTON_STEPS + [(np.arange(len(K)), 1.0)] * (len(K) > NEWTON_ROWS)
        for used, scale in steps:  # Newton's method on the penalized loss
            self.gram = np.zeros(self.penalty.shape)
            self.gradient = -self.penalty @ np.where(self.fixed[-1] <= UNSEEN, 0.0, self.fixed)
            self.count(K[used], Y[used], scale * weights[used])
            self.step()
        self.chunk = []

    def shares(self, K):
        logits = K @ self.fixed
        p = 1.0 / (1.0 + np.exp(-np.clip(logits, -FARTHEST, FARTHEST)))
        return np.where(logits < -FARTHEST, 0.0, p)

    def count(self, K, Y, weights):
        P = self.shares(K)
        curvature = np.maximum((P * (1.0 - P)).max(axis=1), LEAST_CURVATURE)
        self.gram = self.gram + (K * (weights * curvature)[:, None]).T @ K
        self.gradient = self.gradient + (K * weights[:, None]).T @ (Y - P)

    def step(self):
        self.at_start = jittered(self.penalty + self.gram)
        self.fixed = self.fixed + np.linalg.solve(self.at_start, self.gradient)
        self.gradient = np.zeros(self.gradient.shape)

    def predict(self, rows):
        return self.shares(self.features(rows))

    def learn(self, row, y, weight):
        if weight > 0.0:
            self.chunk.append((self.features(row)[0], y[0], weight))

    def end_chunk(self, refit):
        if self.chunk:
            K, Y, weights = (np.array(part) for part in zip(*self.chunk, strict=True))
            self.fixed[-1, (self.fixed[-1] <= UNSEEN) & (Y > 0.0).any(axis=0)] = FIRST_SEEN
            self.count(K, Y, weights)
        if refit:
            self.step()
        self.chunk = []


# ---- stacking


class Stacking:
    """w = w_0 + (P + sum s g g^T)^-1 sum s g (t - w_0 g) over all rows and outputs; g, t less the centre.

    A weight whose prior P is infinite stays where it starts. At the ends of chunks, s is made smaller by the
    forgetting of as many rows. When experts leave, the others start anew from the best weights without them.
    """

    def __init__(self, count, prior, doubted=()):
        doubts = np.isin(np.arange(count), doubted)
        self.factor, self.priors = prior, np.where(doubts, DOUBT, 1.0)
        self.start = np.where(doubts, 0.0, 1.0 / (count - len(doubted)))
        self.prior = np.where(doubts, np.inf, prior)
        self.rows = 0.0  # that count, with forgetting
        self.begin()

    def begin(self):
        self.G, self.t, self.s = np.empty((0, len(self.start))), np.empty(0), np.empty(0)
        self.since = 0  # rows before were learned with experts that have left

    def matrix(self):
        return np.diag(self.prior) + (self.s[:, None] * self.G).T @ self.G

    def weights(self):
        free = np.isfinite(self.prior)
        residuals = self.s[self.since :] * (self.t - self.G @ self.start)[self.since :]
        weights = self.start.copy()
        if free.any():
            A = self.matrix()[np.ix_(free, free)]
            weights[free] += np.linalg.solve(A, (self.G[self.since :].T @ residuals)[free])
        return weights

    def learn(self, g, t, s, largest):
        """One output of a row; an error whose square is beyond ``largest`` weighs less."""
        if s <= 0.0:
            return
        square = (t - self.weights() @ g) ** 2 if largest < NO_LIMIT else 0.0
        self.G, self.t = np.vstack([self.G, g]), np.append(self.t, t)
        self.s = np.append(self.s, s * min(1.0, largest / max(square, 1e-300)))

    def end_chunk(self, rows, variance):
        decay = FORGETTING**rows
        self.s, self.rows = decay * self.s, decay * self.rows + rows
        if variance <= 1e-299:
            self.prior = np.full(len(self.start), np.inf)
            return
        self.prior = self.factor * variance * self.priors
        A = self.matrix()
        self.prior = self.prior + JITTER * np.trace(A) / len(A)

    def removal_cost(self, gone):
        """How much the discounted loss of the past rises without these."""
        if not np.isfinite(self.prior).any():
            return np.inf
        inverse, w = np.linalg.inv(self.matrix()), self.weights()[gone]
        return w @ np.linalg.solve(inverse[np.ix_(gone, gone)], w)

    def remove(self, gone):
        rest = [i for i in range(len(self.start)) if i not in gone]
        A, w = self.matrix(), self.weights()
        self.start = w[rest] + np.linalg.solve(A[np.ix_(rest, rest)], A[np.ix_(rest, gone)] @ w[gone])
        self.G, self.priors, self.prior = self.G[:, rest], self.priors[rest], self.prior[rest]
        self.since = len(self.G)


# ---- a pool of experts


@dataclass(eq=False)
class Row:
    x: np.ndarray
    last: np.ndarray
    y: float
    weight: float
    error: float = 0.0
    said: np.ndarray | None = None
    """What mean, last target and experts predicted, (columns, outputs)."""
    centre: float = 0.0
    vote: np.ndarray | None = None


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
    expert: Ridge | None = None


class Pool:
    """Experts over one reservoir, fed row by row. ``classes`` is 0, or how many there will ever be."""

    def __init__(self, schedule, *, classes, max_atoms, experts, delay, seed, reservoir=RESERVOIR):
        self.schedule, self.classes, self.max_atoms, self.most = schedule, classes, max_atoms, experts
        self.delay, self.seed, self.reservoir = delay, seed, reservoir
        self.outputs = classes or 1
        self.rows, self.due, self.known_classes = 0, 0, 0
        self.fed, self.waiting, self.history = [], [], []  # targets, rows without and with known targets
        self.coins, self.sample = Coins(seed), []
        self.trusted = np.empty((0, self.outputs)), np.empty(0)  # targets, weights that the mean is of
        self.low, self.high = np.inf, -np.inf
        self.loss = self.loss_rows = 0.0
        self.fence, self.largest = NO_FENCE, NO_LIMIT
        self.slope_and_intercept, self.curvature = np.array(SLOPE_AND_INTERCEPT), np.diag(CALIBRATION_PRIOR)
        self.members = [Member(spec) for spec in EXPERTS[:experts]]
        for member in self.members:
            if classes and member.spec.softer:
                member.spec = member.spec._replace(name=f"{member.spec.name}, logistic")
        self.stacking = Stacking(len(self.members) + FIRST, 1.0 + delay, doubted=[LAST])
        self.plain_stacking = Stacking(len(self.plain), 1.0 + delay)
        self.views, self.better = {}, {False: "robust", True: "robust"}
        self.leader = None

    @property
    def plain(self):
        """The columns of stacking that need no last targets."""
        return [MEAN] + [i + FIRST for i, member in enumerate(self.members) if not member.spec.lags]

    # ---- a row

    def last_targets(self):
        places = len(self.fed) - 1 - self.delay - np.arange(LAGS)
        if places[0] < 0:
            return np.full(LAGS, -1.0 if self.classes else 0.0)
        return np.array(self.fed)[np.maximum(places, 0)]

    def outputs_of(self, rows):
        y = np.array([row.y for row in rows])
        return (y[:, None] == np.arange(self.classes)).astype(float) if self.classes else y[:, None]

    def inside(self, values):
        return self.fence[0] <= np.min(values) and np.max(values) <= self.fence[1]

    def believed(self, rows):
        """Those that experts learn from."""
        return [r for r in rows if r.weight > 0.0 and (self.classes or self.inside([*r.last, r.y]))]

    def columns(self, rows, lags, flags, features):
        """What a view scales: features, and last targets; of more than two classes these are flags."""
        X = np.array([row.x[:features] for row in rows])
        last = np.array([row.last for row in rows])
        if not self.classes:
            last = np.clip(last, *self.fence)
        elif flags > 2:
            last = (last[:, :, None] == np.arange(flags)).reshape(len(rows), -1)
        return np.hstack([X, last]) if lags else X

    def seen_by(self, rows, spec, view):
        return self.columns(rows, spec.lags, view.flags, view.features)

    def range(self):
        if self.classes or self.low > self.high:
            return (0.0, 1.0) if self.classes else (0.0, 0.0)
        return self.low - MARGIN * (self.high - self.low), self.high + MARGIN * (self.high - self.low)

    def mean(self):
        targets, weights = self.trusted
        return weights @ targets / weights.sum() if len(weights) else np.zeros(self.outputs)

    def say(self, row, lags=True):
        """Fill in what everybody predicts, and the vote of all or of those that need no last targets."""
        mean, (low, high) = self.mean(), self.range()
        said = np.empty((len(self.members) + FIRST, self.outputs))
        said[MEAN], said[LAST] = mean, row.last[0]
        if self.classes:
            said[LAST] = mean if row.last[0] < 0.0 else row.last[0] == np.arange(self.outputs)
        spoke = []
        for i, (spec, expert) in enumerate((m.spec, m.expert) for m in self.members):
            if expert is not None and (lags or not spec.lags):
                said[i + FIRST] = expert.predict(self.seen_by([row], spec, expert.view))[0]
                spoke.append(i + FIRST)
        silent = [i for i in range(FIRST, len(said)) if i not in spoke]
        said[silent] = said[spoke or [MEAN]].mean(axis=0)
        inner = max(low, self.fence[0]), min(high, self.fence[1])
        row.said = np.clip(said, *inner)
        row.centre = 0.0 if self.classes else mean[0]
        stacking, used = (self.stacking, slice(None)) if lags else (self.plain_stacking, self.plain)
        weights = stacking.weights()
        row.vote = np.clip(row.centre + weights @ (row.said[used] - row.centre), *inner)
        if lags and not self.classes and weights[LAST] > EARNED:  # beyond the fence no expert speaks
            row.vote = row.vote + row.last[0] - np.clip(row.last[0], *self.fence)
        row.vote = np.clip(row.vote, low, high)

    def scores(self, row):
        """The vote, or its calibrated logits."""
        if not self.classes:
            return row.vote
        logits = self.slope_and_intercept[0] * (2.0 * row.vote - 1.0) + self.slope_and_intercept[1]
        return np.where(np.arange(self.classes) < self.known_classes, logits, np.nan)

    def step(self, x, y, weight):
        row = Row(np.array(x, dtype=float), self.last_targets(), float(y), float(weight))
        self.say(row)
        scores, target = self.scores(row), self.outputs_of([row])[0]
        at, form, leader = 0 if self.classes == 0 else int(y), 0.0, "mean"
        place = MEAN
        if self.leader is not None:
            member, place = self.leader, self.members.index(self.leader) + FIRST
            expert, leader = member.expert, member.spec.name
            form = 0.5 * expert.inverse_form(self.seen_by([row], member.spec, expert.view))
        slope = 2.0 * weight * (row.said[place, at] - target[at])
        result = Step(scores, leader, slope, form, self.size)
        self.fed.append(row.y)
        self.waiting.append(row)
        if len(self.waiting) > self.delay:
            self.learn(self.waiting.pop(0))
        self.rows += 1
        if self.rows in self.schedule["end of a chunk"]:
            self.end_chunk()
        return result

    def learn(self, row):
        """A target becomes known."""
        target, believed = self.outputs_of([row])[0], bool(self.believed([row]))
        if believed:
            targets, weights = self.trusted
            self.trusted = np.vstack([targets, target]), np.append(weights, row.weight)
        if row.weight > 0.0:
            self.low, self.high = min(self.low, row.y), max(self.high, row.y)
        for member in self.members:
            if member.expert is not None:
                seen = self.seen_by([row], member.spec, member.expert.view)
                member.expert.learn(seen, target[None], row.weight * believed)
        for k in range(self.outputs):
            t = np.clip(target[k], *self.fence) - row.centre
            said = row.said[:, k] - row.centre
            self.stacking.learn(said, t, row.weight, self.largest)
            self.plain_stacking.learn(said[self.plain], t, row.weight, self.largest)
        if self.classes:
            self.known_classes = max(self.known_classes, int(row.y) + 1)
            for score, y in zip(2.0 * row.vote[: self.known_classes] - 1.0, target, strict=False):
                self.calibrate(np.array([score, 1.0]), y)
        row.error = float(np.sum((row.vote - target) ** 2))
        self.loss += row.weight * min(row.error, self.largest)
        self.loss_rows += 1.0
        self.keep(row)

    def calibrate(self, s, y):
        """A Newton step of logistic regression on one score; its curvature is forgotten towards the prior."""
        p = 1.0 / (1.0 + np.exp(-np.clip(self.slope_and_intercept @ s, -FARTHEST, FARTHEST)))
        prior = (1.0 - FORGETTING) * np.diag(CALIBRATION_PRIOR)
        curvature = max(p * (1.0 - p), LEAST_CURVATURE)
        self.curvature = FORGETTING * self.curvature + prior + curvature * np.outer(s, s)
        self.slope_and_intercept = self.slope_and_intercept - np.linalg.solve(self.curvature, (p - y) * s)
        self.slope_and_intercept[0] = max(self.slope_and_intercept[0], LEAST_SLOPE)

    def keep(self, row):
        """Row t stays in the reservoir with probability reservoir/(t + 1), in the place of any other."""
        t, coin = len(self.history), self.coins.draw_one()
        self.history.append(row)
        place = t if t < self.reservoir else int(coin * (t + 1))
        if t < self.reservoir:
            self.sample.append(t)
        elif place < self.reservoir:
            self.sample[place] = t

    def last(self, count):
        return self.history[max(len(self.history) - min(count, RECENT), 0) :]

    def last_and_waiting(self, count):
        return self.last(count) + self.waiting

    def widen(self, values):
        for row in self.history + self.waiting:
            row.x = np.append(row.x, values)
        if not self.due:
            self.due = (self.rows + 512) // 128 * 128

    # ---- the end of a chunk

    def variance(self):
        targets, weights = self.trusted
        if self.classes:
            shares = self.mean()
            return max(shares @ (1.0 - shares), 1e-3)
        if not len(weights):
            return 1e-300
        y = targets[:, 0]
        before = np.append(y[0], (np.cumsum(weights * y) / np.cumsum(weights))[:-1])
        variance = weights @ (y - before) ** 2 / weights.sum()
        return variance if variance > max((1e-12 * self.mean()[0]) ** 2, 1e-300) else 1e-300

    def usual_error(self):
        return self.loss / max(self.loss_rows, 1.0)

    def end_chunk(self):
        decides = self.rows in self.schedule["decision"]
        if not self.classes and self.history:
            self.move_fence(decides)
        ended, variance = self.rows - self.schedule["end of a chunk"].before(self.rows), self.variance()
        for stacking in (self.stacking, self.plain_stacking):
            stacking.end_chunk(ended, variance)
        self.loss, self.loss_rows = FORGETTING**ended * self.loss, FORGETTING**ended * self.loss_rows
        told = not self.classes and self.rows >= 64 and self.usual_error() > NO_ERROR * variance
        self.largest = WILD_ERROR * self.usual_error() if told else NO_LIMIT
        for member in self.members:
            if member.expert is not None:
                member.expert.end_chunk(self.rows in self.schedule["refit"])
        decides = bool(self.history) and (decides or self.rows == self.due)
        if decides:
            self.decide()
            self.due = 0 if self.rows >= self.due else self.due
        elif self.rows in self.schedule["pruning"]:
            self.prune()
        for i, member in enumerate(self.members):
            memory = member.spec.memory
            if memory and not decides and member.expert is not None:
                if self.rows in self.schedule[f"new atoms, memory {memory}"]:
                    self.fit(i, self.believed(self.last(3 * memory // 2)), self.max_atoms)
        begun = [i for i, member in enumerate(self.members) if member.expert is not None]
        weights = self.stacking.weights()[FIRST:]
        largest = max((weights[i] for i in begun), default=0.0)
        self.leader = next((self.members[i] for i in begun if weights[i] >= largest - TIE), None)

    def move_fence(self, decides):
        """Some times as far from the median of the last targets as most of those that differ from it."""
        y = np.array([row.y for row in self.last(RECENT) if row.weight > 0.0])
        before, self.fence = self.fence, NO_FENCE
        y = np.sort(y[:: -max(len(y) // FENCE_ROWS, 1)])
        if len(y):
            median = y[len(y) // 2]
            distances = np.sort(np.abs(y - median)[y != median])
            if len(distances) >= FENCE_FEWEST:
                most = distances[int(FENCE_PART * (len(distances) - 1))]
                reach = most * min(FENCE_FARTHEST, max(0.5 * math.sqrt(len(distances)), FENCE_NEAREST))
                self.fence = median - reach, median + reach
        if before == NO_FENCE and self.rows <= 64:
            self.stacking.begin()
            self.plain_stacking.begin()
        if decides and self.rows <= SETTLED:  # the first targets had no fence, or one of few rows
            kept = self.believed(self.sampled())
            self.trusted = self.outputs_of(kept), np.array([row.weight for row in kept])
            if self.rows <= 64:
                self.loss = self.loss_rows = 0.0

    def sampled(self):
        return [self.history[t] for t in sorted(self.sample)]

    # ---- who sees what

    def key(self, spec):
        better = self.better[spec.lags]
        if spec.kernel == "linear":
            return spec.lags, "robust"
        return spec.lags, ("rank" if better == "robust" else "robust") if spec.other else better

    def refit_views(self, kept, some, random):
        """Each view in use at least as good as before, by leave-one-out; returns the errors of those before."""
        weights = np.array([row.weight for row in some])
        Y = self.outputs_of(some)
        Y = Y - weights @ Y / weights.sum()
        variance = weights @ (Y**2).sum(axis=1) / weights.sum()
        Y = Y / math.sqrt(variance) if variance > 0.0 else Y
        specs, width, flags = [m.spec for m in self.members], len(some[0].x), min(self.known_classes, MOST_FLAGS)
        wanted = {self.key(spec) for spec in specs if not spec.other and spec.kernel != "linear"}
        before = {}
        for lags in (False, True):
            errors = {}
            for name in SCALINGS:
                key, old = (lags, name), self.views.get((lags, name))
                widened = old is not None and old.features < width
                if not any(spec.lags == lags for spec in specs):
                    continue
                if self.rows >= SETTLED and not widened and key not in wanted:
                    continue
                X = self.columns(some, lags, flags, width)
                scale = SCALINGS[name](self.columns(kept, lags, flags, width))
                if self.rows < FIRST_KERNELS:
                    self.views[key] = View(scale, np.eye(X.shape[1]), flags=flags, features=width)
                    continue
                early = self.rows <= 2 * FIRST_KERNELS
                first = early or old is None or (old.flags, old.features) != (flags, width)
                if first:
                    old = self.beginning(name, X.shape[1]) if lags or not early else None
                leads = not lags and (self.rows < SETTLED or name == self.better[lags])
                products = None
                if not first and self.rows >= SETTLED:
                    products = self.expert_gradients(old, kept, random)
                steps = 8 if self.rows <= 128 and not self.classes else 4
                steps = steps if products is None else 1
                steps = steps if leads and self.rows > FIRST_KERNELS else 1
                steps = 2 if lags and not first else steps
                options = {"atoms": SEARCH_ATOMS if leads else SEARCH_ATOMS // 2, "random": random}
                data = scale, X, Y, np.sqrt(weights)
                view, before[key] = improved(old, *data, steps=steps, products=products, **options)
                if self.rows in FRESH_AT and leads and name == self.better[lags]:
                    limit = HOPELESS_METRIC * view.error
                    fresh, _ = improved(None, *data, steps=2, products=None, hopeless=limit, **options)
                    view = fresh if fresh.error < CLEARLY_BETTER * view.error else view
                self.views[key] = replace(view, flags=flags, features=width)
                errors[name] = view.error
            if errors:
                self.better[lags] = min(errors, key=errors.get)
        return before

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
        for spec, expert in ((m.spec, m.expert) for m in self.members):
            plain = spec.kernel == "gaussian" and not spec.memory and not spec.softer
            if plain and expert is not None and expert.view is view:
                rows = [kept[i] for i in random.permutation(len(kept))[:GRADIENT_ROWS]]
                U = view.coordinates(self.seen_by(rows, spec, view))
                theta = expert.theta()
                return gradient_products(U, expert.atoms, theta, view.bandwidth, view.metric, np.ones(len(U)))
        return None

    # ---- who comes, moves and goes

    def exchangeable(self):
        """Whether rows come in no order: experts with a memory were pruned."""
        return not any(member.spec.memory for member in self.members)

    def decide(self):
        random = np.random.default_rng([self.seed, self.rows])
        kept = self.believed(self.sampled())
        some = kept
        if self.rows >= SETTLED:  # rows that no view was chosen by
            some = self.believed(self.last(min(self.rows // 2, SEARCH_ROWS)))
        if not kept or not some:
            return
        if self.rows in self.schedule["pruning"]:
            self.prune()
        before = self.refit_views(kept, some, random)
        costs = [self.stacking.removal_cost([i + FIRST]) for i in range(len(self.members))]
        counting = {i for i, cost in enumerate(costs) if cost >= COUNTS * max(costs)}
        room = self.max_atoms
        if self.rows >= SETTLED and self.exchangeable():
            share = max(self.most - len(self.members) + len(counting), len(counting)) / len(counting)
            room = int(self.max_atoms * min(math.sqrt(share), MOST_GROWN))
        for i, (spec, expert) in enumerate([(m.spec, m.expert) for m in self.members]):
            key = self.key(spec)
            view = self.views.get(key)
            if self.rows < spec.start or view is None:
                continue
            if self.rows > SETTLED and self.exchangeable() and expert is not None:
                better = key in before and view.error < (1.0 - MOVES) * before[key]
                grows = spec.kernel != "linear" and room > GROWS * len(expert.atoms)
                moves = (i in counting and (better or grows)) or (spec == EXPERTS[0] and better)
                if not moves and view.features == expert.view.features:
                    continue
            remembered = self.believed(self.last(3 * spec.memory // 2)) if spec.memory else kept
            self.fit(i, remembered, room if i in counting and not spec.memory else self.max_atoms)

    def fit(self, i, rows, max_atoms):
        """A new expert, with atoms among these rows, that has learned them."""
        if not rows:
            return
        spec, random = self.members[i].spec, np.random.default_rng([self.seed, self.rows, i])
        view = self.views[self.key(spec)]
        seen = self.seen_by(rows, spec, view)
        alpha, logistic = view.alpha, bool(self.classes) and spec.softer
        if spec.kernel == "linear":
            view = View(view.scale, np.eye(seen.shape[1]), flags=view.flags, features=view.features)
            alpha = LINEAR_ALPHA
        elif spec.softer:
            metric = view.metric / np.sqrt(np.linalg.norm(view.metric, axis=0))
            unit = half_median_distance(view.scale(seen), metric, random)
            view = replace(view, metric=metric, bandwidth=view.ratio * unit)
        U = view.coordinates(seen)
        most = max_atoms // 2 if spec.memory else max_atoms
        places = random.permutation(min(len(U), max(spec.memory, most)) if spec.memory else len(U))
        atoms = U[np.sort(len(U) - 1 - places[: max(most, 1)])]
        if spec.kernel == "linear" and U.shape[1] <= max_atoms:
            atoms = np.eye(U.shape[1])
        Y, weights = self.outputs_of(rows), np.array([row.weight for row in rows])
        if logistic:
            self.members[i].expert = Logistic(spec, view, atoms, LOGISTIC_ALPHA * alpha, seen, Y, weights)
            return
        offset = 0.0 if self.classes else weights @ Y[:, 0] / weights.sum()
        live = self.rows < BATCHES_FROM or spec.memory > 0 or spec.kernel == "linear"
        self.members[i].expert = Ridge(spec, view, atoms, alpha, seen, Y, weights, offset=offset, live=live)

    def prune(self):
        """Without experts that add less to the vote than a further weight costs."""
        bar = SMALL_VOTE * math.log(max(self.stacking.rows, 2.0)) * self.usual_error()
        series = [i + FIRST for i, member in enumerate(self.members) if member.spec.of_series]
        sure = min(1.0, self.rows / SURE)
        if series and self.stacking.removal_cost(series) < sure * bar * len(series):
            self.remove(series)
        while self.rows >= LATE:
            specs = [member.spec for member in self.members]
            steady = [i + FIRST for i, s in enumerate(specs) if not s.memory and s != EXPERTS[0]]
            costs = [self.stacking.removal_cost([i]) for i in steady]
            if not costs or min(costs) > bar:
                return
            self.remove([steady[int(np.argmin(costs))]])

    def remove(self, gone):
        places = [place for place, column in enumerate(self.plain) if column in gone]
        self.stacking.remove(gone)
        if places:
            self.plain_stacking.remove(places)
        self.members = [member for i, member in enumerate(self.members) if i + FIRST not in gone]
        for row in self.waiting:
            row.said = np.delete(row.said, gone, axis=0)

    # ---- looking

    @property
    def size(self):
        return sum(len(member.expert.atoms) for member in self.members if member.expert is not None)

    def shares(self):
        weights = self.stacking.weights()
        names = ["last target", *(member.spec.name for member in self.members)]
        mean = weights[0] if self.classes else 1.0 - weights[1:].sum()
        return {"mean": mean, **dict(zip(names, weights[1:], strict=True))}

    def relevances(self, width):
        view = self.views.get((False, self.better[False]))
        if view is None:
            return np.ones(width)
        sizes = np.linalg.norm(view.metric, axis=1)
        return np.append(sizes / sizes.max(), np.zeros(width - view.features))


# ---- drift


def mean_of(values, rows):
    """By weight."""
    weights = np.array([row.weight for row in rows])
    return weights @ np.asarray(values, dtype=float) / max(weights.sum(), 1e-300)


def errors_of(rows):
    return np.array([row.error for row in rows])


@dataclass
class NaiveAuto:
    """A pool at work. In an alarm a fresh one is tried on the last rows; the old one may come back."""

    schedule: dict
    classes: int = 0
    max_atoms: int = 200
    experts: int = 12
    delay: int = 0
    seed: int = 0
    reservoir: int = RESERVOIR
    takeovers: int = 0
    asleep: Pool | None = None
    slept: int = 0
    played: int = 0
    alarmed: int = 0
    calm: int = 0
    error: float = 0.0
    weight: float = 0.0
    credit: float = 0.5 * SAVED
    log: list = field(default_factory=list)
    """(row, what happened to the pools)."""

    def __post_init__(self):
        self.pool = self.new(0)
        self.rows = 0

    def new(self, number):
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0]) if number else self.seed
        return Pool(
            self.schedule,
            classes=self.classes,
            max_atoms=self.max_atoms,
            experts=self.experts,
            delay=self.delay,
            seed=seed,
            reservoir=self.reservoir,
        )

    def step(self, x, y, weight=1.0):
        """Predict a row, then learn the row that becomes known after it."""
        pool, self.rows = self.pool, self.rows + 1
        result = pool.step(x, y, weight)
        if pool.rows in self.schedule["end of a chunk"]:
            self.look()
        return result

    def predict(self, x, recent_targets=False):
        """As if the row came next. Changes nothing."""
        row = Row(np.array(x, dtype=float), self.pool.last_targets(), 0.0, 0.0)
        self.pool.say(row, lags=recent_targets)
        return self.pool.scores(row)

    def widen(self, values):
        for pool in [self.pool] + [self.asleep] * (self.asleep is not None):
            pool.widen(values)

    # ---- the end of a chunk

    def look(self):
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
        if self.asleep is not None and self.comes_back(alarm):
            return
        if alarm and self.takes_over(max(self.alarmed // 2, SHORTEST_ALARM), usual):
            return
        if self.alarmed >= GIVEN_UP:
            self.begin(error, n)

    def begin(self, error, count):
        self.error, self.weight, self.alarmed, self.calm = count * error, count, 0, 0

    def troubled(self, rows, usual):
        """Far above the usual error, or above that of the rows' own mean."""
        error = mean_of(errors_of(rows), rows)
        Y = self.pool.outputs_of(rows)
        deviations = Y - np.array([mean_of(y, rows) for y in Y.T])
        variance = mean_of((deviations**2).sum(axis=1), rows)
        return error > UNUSUAL * usual or error > max(HOPELESS * variance, SMALL_ERROR * usual)

    def takes_over(self, count, usual):
        """A fresh pool predicts and learns the rows since errors rose; has it won over their later half?"""
        pool = self.pool
        rows = pool.last(count)
        excess = errors_of(rows) - RISEN * mean_of(errors_of(rows), rows)
        count = 1 + int(np.argmax(np.cumsum([r.weight * e for r, e in zip(rows, excess, strict=True)][::-1])))
        later, trial = pool.last(count - count // 2), pool.last_and_waiting(count)
        errors = errors_of(later)
        compared = [
            i for i, row in enumerate(later) if row.weight and row.error <= np.quantile(errors, COMPARED)
        ]
        mine = [later[i] for i in compared]
        if count < SHORTEST_TRIAL or len(compared) < FEWEST or self.credit < len(trial):
            return False
        if not self.troubled(mine, usual):
            return False
        self.credit -= len(trial)
        fresh = self.new(self.takeovers + 1)
        fresh.known_classes = pool.known_classes
        for row in trial:
            fresh.step(row.x, row.y, row.weight)
        its = errors_of(fresh.last(len(later)))[compared]
        error = mean_of(its, mine)
        wins = mean_of(its < errors_of(mine), mine)
        if wins < MOSTLY or error >= HALF * mean_of(errors_of(mine), mine):
            return False
        self.takeovers += 1
        self.asleep, self.pool = pool, fresh
        self.slept = self.played = fresh.rows
        self.begin(error, len(its))
        self.log.append((self.rows, "takeover"))
        return True

    def comes_back(self, alarm):
        """The old pool plays what it missed, if that is due; was it better?"""
        rows, asleep = self.pool.rows, self.asleep
        since, missed = rows - self.slept, rows - self.played
        if not alarm and 2 * missed < min(since, 2 * MISSED):
            return False
        for row in self.pool.last_and_waiting(missed)[-missed:]:
            asleep.step(row.x, row.y, row.weight)
        self.played = rows
        mine, its = self.pool.last(missed), asleep.last(missed)
        if mean_of(errors_of(its), mine) < mean_of(errors_of(mine), mine):
            self.pool, self.asleep, self.alarmed, self.calm = asleep, None, 0, 0
            self.log.append((self.rows, "return"))
            return True
        if since >= ASLEEP:
            self.asleep = None
        return False
