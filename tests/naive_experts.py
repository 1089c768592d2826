"""The parts of :mod:`naive_auto`: scalings, metrics, experts and stacking, each densely from its definition.

Nothing here is kept from one call to the next but rows, weights and, where a method is a recursion (Newton
steps of logistic regression), its coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

JITTER = 1e-10  # of the mean of a diagonal, added to it before a solution

# Scalings: from where on tails are drawn in; values of a column that are remembered.
TAIL, KNOTS = 1.5, 129

# Metrics: the smallest direction beside the largest. Steps of the search, and the regularizations it tries.
FLOOR = 0.02
BANDWIDTH_STEP, ALPHA_STEP, ALPHAS = 1.41, 3.16, (1e-4, 10.0)
FIRST_REACH, REACH_IN_TURN = (4, 4), ((0, 1), (1, 0))
# At first sight: the regularization of a line, and beyond how many deviations what it leaves is cut.
LINE_ALPHA, FAR = 0.1, 3.0
# The Laplace kernel's bandwidth at first, in halves of the median distance.
WIDE = 4.0

# Logistic experts: Newton's method at first, on so many rows; the constant of a class without rows, and with
# its first; how much more its prior weighs.
LEAST_CURVATURE, FARTHEST, NEWTON_STEPS, NEWTON_ROWS = 1e-3, 30.0, 5, 1024
UNSEEN, FIRST_SEEN, STEADY_CONSTANT = -1e6, -4.0, 30.0

# Neighbours: how many count, rows that are kept, and numbers in them.
NEAREST, MOST_NEIGHBOURS, MOST_COLUMNS = 32, 16384, 32
# The oldest go when so many have come.
LATEST, PART_OF_ALL = 2048, 4
# Their search: the regularization at first, in units of the median distance; rows that it starts with,
# with fewer than so many and with more; rows of a step, how many steps, the spread of the prior, the most.
# Up to how many columns and numbers, and what is better.
FIRST_ALPHA, LEFT_OUT, AMONG = 0.1 / 3.16, (128, 192), 2048
OF_A_STEP, STEPS, SPREAD, FARTHEST_STEP, NO_ERROR, WHOLE = (128, 64), 8, 0.5, 1.0, 1e-3, 256.0
ENOUGH, MOST_SCALED, MOST_LEFT, BETTER = 512, 128, 5120, 0.999  # labels of fewer rows are not searched
# Where the first is hardly nearer than the next one, all as far away count alike.
ALIKE = 63.0 / 64.0

# Stacking: by the row; the prior of a weight that starts at 0; squared errors beyond this are infinite.
FORGETTING, DOUBT, NO_LIMIT = 0.9995, 10.0, 1e300


# ---- kernels, scalings


def kernel_of(kind, U, A, bandwidth):
    """The rows k(u), with a constant 1 behind the kernel's values at the atoms A."""
    K = np.ones((len(U), len(A) + 1))
    if kind == "linear":
        K[:, :-1] = U @ A.T
        return K
    differences = U[:, None, :] - A[None, :, :]
    if kind == "gaussian":
        K[:, :-1] = np.exp(-0.5 * (differences**2).sum(axis=2) / bandwidth**2)
    else:  # Laplace
        K[:, :-1] = np.exp(-np.abs(differences).sum(axis=2) / bandwidth)
    return K


def penalty_of(kind, A, bandwidth):
    """Q = blockdiag(K_D, 1)."""
    penalty = np.eye(len(A) + 1)
    penalty[:-1, :-1] = kernel_of(kind, A, A, bandwidth)[:, :-1]
    return penalty


def jitter_of(A):
    return JITTER * np.trace(A) / len(A) * np.eye(len(A))


def robust(X):
    """Median 0 and interquartile range 1, far tails drawn in by a logarithm."""
    low, median, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    unit = np.where(high > low, high - low, X.std(axis=0))
    two = [len(np.unique(column)) == 2 for column in X.T]
    unit = np.where((high > low) | ~np.array(two), unit, X.max(axis=0) - X.min(axis=0))
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


def half_median_distance(scaled, metric, random, order=2):
    """Over some pairs of rows; if most are equal, over those that differ."""
    left, right = (scaled[random.integers(len(scaled), size=256)] for _ in range(2))
    distances = np.sort(np.linalg.norm((left - right) @ metric, order, axis=1))
    distances = distances if distances[len(distances) // 2] > 0.0 else distances[distances > 0.0]
    return max(0.5 * distances[len(distances) // 2], 1e-12) if len(distances) else 1.0


def leave_one_out(U, A, bandwidth, alpha, Y, roots, kind="gaussian"):
    """Mean squared error at each row of the ridge fit to all others, and the coefficients.

    The fit without row i errs there by (y_i - f_i)/(1 - h_i), h_i the row's leverage.
    """
    K = roots[:, None] * kernel_of(kind, U, A, bandwidth)
    total = alpha * penalty_of(kind, A, bandwidth) + K.T @ K
    L = np.linalg.cholesky(total + jitter_of(total))
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


def search(U, A, bandwidth, alpha, reach, Y, roots, kind="gaussian"):
    """Smaller bandwidths while the error falls, else larger ones; then regularizations in the same way."""
    error, theta = leave_one_out(U, A, bandwidth, alpha, Y, roots, kind)
    best = error, theta, bandwidth, alpha
    for axis, step in enumerate((BANDWIDTH_STEP, ALPHA_STEP)):
        start = best
        for factor in (1.0 / step, step):
            for _ in range(reach[axis]):
                tried = [best[2], best[3]]
                tried[axis] *= factor
                if axis == 1 and not ALPHAS[0] <= tried[1] <= ALPHAS[1]:
                    break
                error, theta = leave_one_out(U, A, *tried, Y, roots, kind)
                if not error < best[0]:
                    break
                best = error, theta, *tried
            if best is not start:
                break
    return best


def at_first_sight(X, Y, roots):
    """What columns tell of targets, of what a line leaves of them, and how far it scatters; and pairs."""
    n, d = X.shape
    shares, W = roots**2 / np.sum(roots**2), np.diag(roots**2)
    Z = np.column_stack([X, np.ones(n)])
    rest = Y - Z @ np.linalg.solve(Z.T @ W @ Z + LINE_ALPHA * np.eye(d + 1), Z.T @ W @ Y)
    far = FAR * np.sqrt(shares @ rest**2)
    rest = np.clip(rest, -far, far)

    def unit(a):
        a = a - shares @ a
        size = math.sqrt(shares @ a**2)
        return a / size if size > 1e-12 else 0.0 * a

    def correlation(a, b):
        return abs(shares @ (unit(a) * unit(b)))

    targets = [*Y.T, *rest.T, *(rest**2).T]
    told = np.full(d, -np.inf)
    for j, x in enumerate(X.T):
        sides = x, np.abs(x - np.median(x))
        told[j] = max(correlation(f, t) for f in sides for t in targets) - 2.0 / math.sqrt(n)
        for other in X.T:
            together = max(abs(shares @ (unit(x) * unit(other) * unit(r))) for r in rest.T)
            told[j] = max(told[j], together - math.sqrt(2.0 * math.log(d * d + 1.0) / n))
    if told.max() <= 0.0:
        return np.eye(d)
    return np.diag(np.maximum(told / told.max(), FLOOR))


def improved(view, scale, X, Y, roots, atoms, random, *, steps, products=None, first_sight=False):
    """The best of some steps of a metric along the gradients, from a view or from nothing.

    The first step may go along given gradients.
    """
    scaled, weighted = scale(X), Y * roots[:, None]
    chosen = np.sort(random.permutation(len(X))[: min(atoms, max(len(X) // 2, 8))])
    metric, ratio, alpha = np.eye(X.shape[1]), 1.0, 0.1
    if view is not None:
        metric, ratio, alpha = view.metric, view.ratio, view.alpha
    if first_sight:
        metric = at_first_sight(scaled, Y, roots)
    best = None
    for step in range(steps + 1):
        unit = half_median_distance(scaled, metric, random)
        reach = FIRST_REACH if view is None and step == 0 else REACH_IN_TURN[step % 2]
        U, A = scaled @ metric, scaled[chosen] @ metric
        error, theta, bandwidth, alpha = search(U, A, ratio * unit, alpha, reach, weighted, roots)
        ratio = bandwidth / unit
        if best is None or error < best.error:
            best = View(scale, metric, bandwidth, ratio, alpha, error)
        if step > 0 or products is None:
            products = gradient_products(U, A, theta, bandwidth, metric, roots)
        metric = metric_of(products)
    return best


def along_axes(view, X, Y, weights, atoms, most, random):
    """A view for the Laplace kernel: no rotations, its own bandwidth and regularization."""
    sizes = np.linalg.norm(view.metric, axis=1)
    metric, scaled = np.diag(sizes / sizes.max()), view.scale(X)
    some = np.sort(random.permutation(len(scaled))[:most])
    U, roots = scaled[some] @ metric, np.sqrt(weights[some])
    bandwidth = WIDE * half_median_distance(scaled[some], metric, random, order=1)
    Y = (Y[some] - roots**2 @ Y[some] / (roots @ roots)) * roots[:, None]
    A = U[:: math.ceil(len(U) / atoms)]
    _, _, bandwidth, alpha = search(U, A, bandwidth, view.alpha, FIRST_REACH, Y, roots, "laplace")
    return replace(view, metric=metric, bandwidth=bandwidth, alpha=alpha)


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

    def begin_chunk(self, fit=True):
        """The jitter is that of the sums now."""
        gram, products = self.sums()
        self.prior = self.penalty + jitter_of(self.penalty + gram)
        self.at_start = self.prior + gram
        if fit:
            self.fixed = np.linalg.solve(self.at_start, products)

    def theta(self):
        """Of all rows so far; of an expert that learns in batches, of those before its last fit."""
        if not self.live:
            return self.fixed
        gram, products = self.sums()
        return np.linalg.solve(self.prior + gram, products)

    def predict(self, rows):
        return self.features(rows) @ self.theta() + self.offset

    def before_chunk(self, rows):
        """What the coefficients at the chunk's start say."""
        return self.features(rows) @ self.fixed + self.offset

    def learn(self, row, y, weight):
        self.K = np.vstack([self.K, self.features(row)])
        self.Y = np.vstack([self.Y, y - self.offset])
        self.weights = np.append(self.forgetting * self.weights, weight)
        self.prior = self.forgetting * self.prior

    def end_chunk(self, refit):
        self.begin_chunk(fit=refit or self.live)


class Logistic(Ridge):
    """One against the rest: theta + A^-1 sum w k (y - p) over the rows since the last fit.

    A = alpha Q + sum w c k k^T, c the largest p (1 - p) of a row, by the theta at the end of its chunk.
    """

    def __init__(self, spec, view, atoms, alpha, rows, Y, weights):
        self.spec, self.view, self.atoms, self.live = spec, view, atoms, False
        self.penalty = alpha * penalty_of(spec.kernel, atoms, view.bandwidth)
        self.penalty[-1, -1] *= STEADY_CONSTANT
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
        self.begin_chunk()
        self.fixed = self.fixed + np.linalg.solve(self.at_start, self.gradient)
        self.gradient = np.zeros(self.gradient.shape)

    def begin_chunk(self):
        total = self.penalty + self.gram
        self.at_start = total + jitter_of(total)

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
        self.begin_chunk()
        if refit:
            self.step()
        self.chunk = []


def kriging(asked, points, Y, weights, alpha, left_out=None, slopes=None):
    """Predictions by the rows nearest to each, with an error of variance alpha/weight on top of -|x - x'|.

    ::

        sum_j (-|x_i - x_j| + [i = j] alpha/w_i) a_j + m = -|x - x_i|,    sum_i a_i = 1,   f(x) = sum a_i y_i

    Fills in ``slopes``: what becomes of f where distances change with the logarithm of a column's scale, or
    alpha with its own; weights w stay.
    """
    asked, points = asked.astype(np.float64), points.astype(np.float64)
    D = np.abs(asked[:, None] - points).sum(axis=2)
    if left_out is not None:
        D[np.arange(len(D)), left_out] = np.inf
    latest_first = len(points) - 1 - np.argsort(D[:, ::-1], axis=1, kind="stable")
    predictions = np.empty((len(asked), Y.shape[1]))
    for i, distances in enumerate(D):
        near = latest_first[i, :NEAREST]
        end = distances[latest_first[i, NEAREST]] if len(points) > NEAREST else np.inf
        if not distances[near[0]] < ALIKE * end < np.inf:
            alike = distances <= (2.0 - ALIKE) * end
            predictions[i] = weights[alike] @ Y[alike] / weights[alike].sum()
            continue
        near = near[distances[near] < end]
        w, size = weights[near] * (1.0 - distances[near] / end), len(near)
        system, right = np.ones((size + 1, size + 1)), np.r_[-distances[near], 1.0]
        system[:size, :size] = -np.abs(points[near, None] - points[near]).sum(axis=2) + np.diag(alpha / w)
        system[size, size] = 0.0
        solution = np.linalg.solve(system, right)
        predictions[i] = solution[:size] @ Y[near]
        for c in range(points.shape[1] + 1 if slopes is not None else 0):
            change, of_right = np.zeros(system.shape), np.zeros(len(right))
            if c < points.shape[1]:
                column = points[near, c]
                change[:size, :size] = -np.abs(column[:, None] - column)
                of_right[:size] = -np.abs(asked[i, c] - column)
            else:
                change[:size, :size] = np.diag(alpha / w)
            slopes[i, :, c] = np.linalg.solve(system, of_right - change @ solution)[:size] @ Y[near]
    return predictions


class Neighbours:
    """Rows in single precision, in the scaling in which the nearest of them know most of the others."""

    def __init__(self, spec, views, rows, Y, weights, random, settings=None, before=None, trend=None):
        """In one of several views by name, from other settings before; or in given settings.

        Rows may have a ``trend`` behind their targets.
        """
        self.spec, self.atoms, self.kept, self.late, self.chunk, self.stacked = spec, (), [], [], [], None
        self.name, self.view, self.alpha = settings or self.search(views, rows, Y, weights, random, before)
        self.most = spec.memory or MOST_NEIGHBOURS
        self.trends = 0 if trend is None else trend.shape[1]
        Y = Y if trend is None else np.hstack([Y, trend])
        for row, y, weight in zip(rows, Y, weights, strict=True):
            self.learn(row[None], y[None], weight)
        self.end_chunk(False)

    def search(self, views, rows, Y, weights, random, before):
        columns, main = len(next(iter(views.values())).metric), next(iter(views.values()))
        last = slice(max(len(Y) - MOST_LEFT * MOST_COLUMNS // max(columns, MOST_COLUMNS), 0), None)
        enough, rows, Y, weights = len(Y) >= ENOUGH or Y.shape[1] == 1, rows[last], Y[last], weights[last]
        scaled = {name: view.scale(rows) for name, view in views.items()}
        places = np.sort(random.permutation(len(Y))[: LEFT_OUT[len(Y) >= AMONG]])

        def first_alpha(name, sizes):
            points = scaled[name] * sizes
            apart = np.abs(points[places] - points[np.roll(places, len(places) // 2)]).sum(axis=1)
            if np.sort(apart)[len(apart) // 2] == 0.0:
                apart = apart[apart > 0.0]
            return FIRST_ALPHA * np.sort(apart)[len(apart) // 2]

        def errors(name, sizes, alpha, places, slopes=None):
            points = (scaled[name] * sizes).astype(np.float32)
            return kriging(points[places], points, Y, weights, alpha, places, slopes) - Y[places]

        def loss(start):
            return weights[places] @ np.sum(errors(*start, places) ** 2, axis=1) ** 0.75

        sizes = np.linalg.norm(main.metric, axis=1)
        sizes = sizes / sizes.max()
        starts = [(name, sizes, first_alpha(name, sizes)) for name in views]
        if before is not None and before.name in views:
            old = before.view
            if (old.flags, old.features) == (main.flags, main.features):
                starts.append((before.name, np.diag(old.metric), before.alpha))
                if main is old:  # it goes on
                    del starts[0]
        rounding = 1e-9 * weights[places] @ np.sum(Y[places] ** 2, axis=1) ** 0.75
        best = starts[0]
        for start in starts[1:]:
            if loss(start) < BETTER * loss(best) - rounding:
                best = start
        deviations = Y - weights @ Y / weights.sum()
        least = NO_ERROR * np.sqrt(np.mean(np.sum(deviations**2, axis=1)))
        for _ in range(STEPS if enough and columns <= MOST_SCALED and least > 0.0 else 0):
            name, sizes, alpha = best
            some = np.sort(random.permutation(len(Y))[: OF_A_STEP[len(Y) >= AMONG]])
            slopes = np.zeros((len(some), Y.shape[1], columns + 1))
            E = errors(name, sizes, alpha, some, slopes)
            V = weights[some] / np.sqrt(np.maximum(np.sqrt(np.sum(E**2, axis=1)), least))
            noise = np.mean(V * np.sum(E**2, axis=1)) + np.mean(V) * least**2
            A, b = noise / SPREAD**2 * np.eye(columns + 1), np.zeros(columns + 1)
            for v, e, J in zip(V, E, slopes, strict=True):
                A, b = A + v * J.T @ J, b - v * J.T @ e
            change = np.clip(np.linalg.solve(A, b), -FARTHEST_STEP, FARTHEST_STEP)
            factors = np.exp(np.rint(WHOLE * change) / WHOLE)
            best = name, sizes * factors[:-1], alpha * factors[-1]
        name, sizes, alpha = best
        return name, replace(views[name], metric=np.diag(sizes)), alpha

    def points(self, rows):
        return self.view.coordinates(rows).astype(np.float32)

    def predict(self, rows):
        return self.fit_around(self.points(rows))

    def fit_around(self, points):
        if self.stacked is not self.late:  # as arrays: they are asked for many times
            rows = self.kept + self.late
            self.stacked, self.arrays = self.late, [np.array(part) for part in zip(*rows, strict=True)]
        return kriging(points, *self.arrays, self.alpha)

    def learn(self, row, y, weight):
        if weight > 0.0:
            self.chunk.append((self.points(row)[0], y[0], weight))

    def end_chunk(self, refit):
        most = min(self.most, self.most * MOST_COLUMNS // self.view.metric.shape[1])
        self.late, self.chunk = self.late + self.chunk[-most:], []
        if len(self.late) >= min(most // PART_OF_ALL, LATEST):
            self.kept, self.late = (self.kept + self.late)[-most:], []


# ---- stacking


class Stacking:
    """w = w_0 + (P + sum s g g^T)^-1 sum s g (t - w_0 g) over all rows and outputs; g, t less the centre.

    A weight whose prior P is infinite stays where it starts. At the ends of chunks, s is made smaller by the
    forgetting of as many rows. When experts leave, the others start anew from the best weights without them.
    """

    def __init__(self, count, doubted=()):
        doubts = np.isin(np.arange(count), doubted)
        self.priors = np.where(doubts, DOUBT, 1.0)
        self.start = np.where(doubts, 0.0, 1.0 / (count - len(doubted)))
        self.prior = np.where(doubts, np.inf, 1.0)
        self.rows = 0.0  # that count, with forgetting
        self.lead = self.compared = 0.0
        self.begin()

    def begin(self):
        self.G, self.t, self.s = np.empty((0, len(self.start))), np.empty(0), np.empty(0)
        self.seen = 0  # rows of chunks that ended
        self.since = 0  # rows before were learned with experts that have left

    def matrix(self):
        return np.diag(self.prior) + (self.s[:, None] * self.G).T @ self.G

    def weights(self, absent=()):
        """Without those absent, which weigh nothing: the best weights of the others."""
        free = np.isfinite(self.prior)
        residuals = self.s[self.since :] * (self.t - self.G @ self.start)[self.since :]
        weights = self.start.copy()
        if free.any():
            A = self.matrix()[np.ix_(free, free)]
            weights[free] += np.linalg.solve(A, (self.G[self.since :].T @ residuals)[free])
        if len(absent):
            rest = free & ~np.isin(np.arange(len(free)), absent)
            gone = free & ~rest
            A = self.matrix()
            weights[rest] += np.linalg.solve(A[np.ix_(rest, rest)], A[np.ix_(rest, gone)] @ weights[gone])
            weights[absent] = 0.0
        return weights

    def inverse_form(self, G):
        """Of a row, over all its outputs."""
        free = np.isfinite(self.prior)
        A = self.matrix()[np.ix_(free, free)]
        return float(np.sum(G[:, free].T * np.linalg.solve(A, G[:, free].T))) if free.any() else 0.0

    def learn(self, G, t, weight, wild):
        """All outputs of a row; squared errors beyond ``wild``, of one output only, weigh less."""
        if weight <= 0.0:
            return
        squares = (t - G @ self.weights()) ** 2 if wild < NO_LIMIT else np.zeros(len(t))
        self.G, self.t = np.vstack([self.G, G]), np.append(self.t, t)
        self.s = np.append(self.s, weight * (wild / np.maximum(squares, wild)))

    def compare(self, rows, pair):
        """Two columns over the chunk's rows: half of what is known of them is forgotten in 256 rows."""
        if pair is not None:
            G, t, s = self.G[self.seen :], self.t[self.seen :], self.s[self.seen :]
            short, long = (float(s @ (t - G[:, i]) ** 2) for i in pair)
            decay = 0.5 ** (rows / 256.0)
            self.lead, self.compared = decay * self.lead + long - short, decay * self.compared + rows
        self.seen = len(self.G)

    def end_chunk(self, rows, variance, faster=1):
        decay = FORGETTING ** (rows * faster)
        self.s, self.rows = decay * self.s, decay * self.rows + rows
        if variance <= 1e-299:
            self.prior = np.full(len(self.start), np.inf)
            return
        self.prior = variance * self.priors

    def removal_cost(self, gone):
        """How much the discounted loss of the past rises without these."""
        if not np.isfinite(self.prior).any():
            return np.inf
        inverse, w = np.linalg.inv(self.matrix()), self.weights()[gone]
        return w @ np.linalg.solve(inverse[np.ix_(gone, gone)], w)

    def errors(self):
        """Of each column alone, less that of a prediction of 0; targets before ``since`` are forgotten."""
        S = (self.s[:, None] * self.G).T @ self.G
        residuals = self.s * (self.t - self.G @ self.start)
        c = S @ self.start + self.G[self.since :].T @ residuals[self.since :]
        return np.diag(S) - 2.0 * c

    def remove(self, gone):
        rest = [i for i in range(len(self.start)) if i not in gone]
        A, w = self.matrix(), self.weights()
        self.start = w[rest] + np.linalg.solve(A[np.ix_(rest, rest)], A[np.ix_(rest, gone)] @ w[gone])
        self.G, self.priors, self.prior = self.G[:, rest], self.priors[rest], self.prior[rest]
        self.since = len(self.G)

    def add(self, count):
        """Weights more, that start at 0."""
        doubts = np.full(count, DOUBT)
        self.G = np.hstack([self.G, np.zeros((len(self.G), count))])
        self.start, self.priors = np.append(self.start, 0.0 * doubts), np.append(self.priors, doubts)
        self.prior = np.append(self.prior, doubts * (self.prior[0] / self.priors[0]))
