"""Which directions of the input matter: a metric from the model's own gradients.

::

    f           ridge regression in the span of some rows, in the current metric
    M           mean over the rows of  grad f grad f^T          (average gradient outer product)
    next        T with  T T^T = (M + diag M)/2,  its largest direction scaled to 1

Distances are then |T^T (x - x')|: along directions in which f does not move, points come together, and the
same number of atoms resolves the others better. Repeated, this is a recursive feature machine; off the
diagonal M is estimated from few rows, so half of it is kept, which shrinks rotations and leaves relevances
as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kons.arrays import Matrix, Vector
from kons.core.ridge import leave_one_out
from kons.kernels import Gaussian, Kernel
from kons.kernels.distances import squared_distances

__all__ = [
    "SpanFit",
    "first_relevances",
    "fit_span",
    "mean_gradients",
    "moved",
    "next_metric",
    "relevances",
]

#: No direction is scaled below this part of the largest: a feature that seems useless may be needed later.
FLOOR = 0.02
#: Beyond so many features the metric stays diagonal: rotations would cost d^3, and be noise.
MOST_ROTATED = 128


@dataclass(frozen=True, eq=False)
class SpanFit:
    """Ridge regression in the span of some atoms, in one metric."""

    metric: Matrix
    """T, d x d, or its diagonal."""
    bandwidth: float
    regularization: float
    error: float
    """Mean squared leave-one-out error."""
    gradients: Matrix | None
    """The average gradient outer product, d x d, or its diagonal, in coordinates of the rows; if asked."""


def moved(X: Matrix, metric: Matrix) -> Matrix:
    """The rows of X in the metric's coordinates."""
    mapped: Matrix = X * metric if metric.ndim == 1 else X @ metric
    return mapped


def relevances(metric: Matrix) -> Vector:
    """How much each feature counts in a metric, the most relevant 1.

    >>> import numpy as np
    >>> relevances(np.array([[2.0, 0.0], [0.0, 0.5]])).tolist()
    [1.0, 0.25]
    """
    sizes = np.abs(metric) if metric.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", metric, metric))
    largest = float(sizes.max())
    return sizes / largest if largest > 0.0 else np.ones(len(sizes))


def next_metric(gradients: Matrix) -> Matrix:
    """T of the module's formula, from M (or its diagonal); the identity where f does not move at all."""
    if gradients.ndim == 1:
        sizes = np.sqrt(np.maximum(gradients, 0.0))
        largest = float(sizes.max())
        return np.maximum(sizes / largest, FLOOR) if largest > 0.0 else np.ones(len(sizes))
    M = 0.5 * gradients
    M[np.diag_indices_from(M)] *= 2.0
    values, directions = np.linalg.eigh(M)
    sizes = np.sqrt(np.maximum(values, 0.0))
    largest = float(sizes.max())
    if not largest > 0.0:
        return np.eye(len(M))
    scaled: Matrix = directions * np.maximum(sizes / largest, FLOOR)
    return scaled


def first_relevances(X: Matrix, Y: Matrix, roots: Vector) -> Vector:
    """How much each column seems to matter before anything is fitted but a line, the most relevant 1.

    ::

        told_j = max( |corr(f, t)|  over  f in (x_j, |x_j - median|),  t in (y, r, r^2),
                      |corr(x_j x_k, r)|  over  k )          r: what a line leaves of y

    each less what chance would make of it. Where columns matter only together, as in a product, none of them
    tells the sign of y, but each tells how far y scatters, and pairs tell what two decide. Gradients of a
    ridge that explains nothing are noise, and those of one that explains a line lead nowhere else; from here
    they lead on. O(n d^2) an output. Not where few rows are known: chance tells as much then.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 20))
    >>> first_relevances(X, X[:, [3]] * X[:, [5]] * X[:, [7]], np.ones(1000)).round(1)[2:9].tolist()
    [0.0, 1.0, 0.0, 0.9, 0.0, 0.8, 0.0]
    """
    n, d = X.shape
    shares = roots**2 / float(roots @ roots)
    K = np.hstack([X, np.ones((n, 1))]) * roots[:, None]
    _, theta = leave_one_out(K, 0.1 * np.eye(d + 1), Y * roots[:, None], None, np.empty_like(K))
    R = Y - X @ theta[:-1] - theta[-1]
    limits = 3.0 * np.sqrt(shares @ R**2)
    R = np.clip(R, -limits, limits)
    columns = _standardized(np.hstack([X, np.abs(X - np.median(X, axis=0))]), shares)
    targets = _standardized(np.hstack([Y, R, R**2]), shares) * shares[:, None]
    alone = np.abs(columns.T @ targets).max(axis=1) - 2.0 / np.sqrt(n)
    pairs, plain = np.zeros((d, d)), columns[:, :d]
    for k in range(Y.shape[1]):
        rest = targets[:, Y.shape[1] + k]
        pairs = np.maximum(pairs, np.abs(plain.T @ (plain * rest[:, None])))
    together = pairs.max(axis=1) - np.sqrt(2.0 * np.log(d * d + 1.0) / n)
    told = np.maximum(np.maximum(alone[:d], alone[d:]), together)
    largest = float(told.max())
    return np.maximum(told / largest, 0.0) if largest > 0.0 else np.ones(d)


def _standardized(F: Matrix, shares: Vector) -> Matrix:
    """Around 0, with variance 1; what does not vary stays 0."""
    F = F - shares @ F
    deviations = np.sqrt(shares @ F**2)
    return F / np.where(deviations > 1e-12, deviations, np.inf)


def fit_span(
    X: Matrix,
    Y: Matrix,
    metric: Matrix,
    atoms: Matrix,
    bandwidth: float,
    regularization: float,
    *,
    steps: tuple[int, int] = (4, 4),
    kernel: Kernel | None = None,
    roots: Vector | None = None,
    with_gradients: bool = True,
) -> SpanFit:
    """The ridge fit with the smallest leave-one-out error near a bandwidth and a regularization.

    From there the bandwidth is made smaller by a factor of 1.41 as long as the error falls, or larger; then
    the regularization, by 3.16, from 1e-4 to 10; at most so many ``steps`` of each. ``atoms`` are rows in the
    coordinates of X; ``roots`` are square roots of weights of the rows. The gradients are those of a fit with
    the Gaussian kernel of the chosen bandwidth, whatever the kernel. O(n B^2) for each fit, and
    O(n B d + n d^2) besides.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(200, 3))
    >>> fit = fit_span(X, np.sin(3 * X[:, :1]), np.eye(3), X[:50], bandwidth=1.0, regularization=0.1)
    >>> relevances(next_metric(fit.gradients)).round(1).tolist()
    [1.0, 0.1, 0.1]
    """
    U, A = moved(X, metric), moved(atoms, metric)
    n, size = len(U), len(A) + 1
    K, spare, work, squares = (np.empty((n, size)) for _ in range(4))
    # One matrix of distances serves every bandwidth; behind it 0, of which k is 1.
    squared_distances(U, A, out=squares)
    squares[:, -1] = 0.0
    among_atoms = squared_distances(A, A)

    def fill(pattern: Kernel, bandwidth: float) -> Matrix:
        """Fill K with features, and return the penalty."""
        chosen, penalty = pattern.resolved(bandwidth), np.eye(size)
        rate = chosen.squared_exponential_rate
        if rate is not None:
            with np.errstate(over="ignore"):
                np.exp(np.multiply(squares, -rate, out=K), out=K)
                penalty[:-1, :-1] = np.exp(-rate * among_atoms)
        else:
            chosen.evaluate_into(U, A, K)
            K[:, -1] = 1.0
            penalty[:-1, :-1] = chosen.evaluate(A, A)
        if roots is not None:
            np.multiply(K, roots[:, None], out=K)
        return penalty

    penalty = fill(kernel or Gaussian("auto"), bandwidth)
    gram = K.T @ K
    error, theta = leave_one_out(K, regularization * penalty, Y, gram, work)
    K, spare = spare, K  # the best so far is in the spare array
    for factor in (1.0 / 1.41, 1.41):
        taken = 0
        while taken < steps[0]:
            other = fill(kernel or Gaussian("auto"), bandwidth * factor)
            other_gram = K.T @ K
            tried, coefficients = leave_one_out(K, regularization * other, Y, other_gram, work)
            if not tried < error:
                break
            error, theta, penalty, gram = tried, coefficients, other, other_gram
            bandwidth, taken = bandwidth * factor, taken + 1
            K, spare = spare, K
        if taken:
            break
    for factor in (1.0 / 3.16, 3.16):
        taken = 0
        while taken < steps[1] and 1e-4 <= regularization * factor <= 10.0:
            tried, coefficients = leave_one_out(spare, regularization * factor * penalty, Y, gram, work)
            if not tried < error:
                break
            error, theta = tried, coefficients
            regularization, taken = regularization * factor, taken + 1
        if taken:
            break
    if not with_gradients:
        return SpanFit(metric, bandwidth, regularization, error, None)
    if kernel is not None:
        penalty = fill(Gaussian("auto"), bandwidth)
        theta = leave_one_out(K, regularization * penalty, Y, None, work)[1]
        K, spare = spare, K
    gradients = mean_gradients(U, A, spare, theta, bandwidth, metric, roots)
    return SpanFit(metric, bandwidth, regularization, error, gradients)


def mean_gradients(
    U: Matrix,
    A: Matrix,
    K: Matrix,
    theta: Matrix,
    bandwidth: float,
    metric: Matrix,
    roots: Vector | None = None,
) -> Matrix:
    """M of ``f = sum_j theta_j k(., a_j) + constant``, Gaussian, over the rows U in the metric's coordinates.

    ``grad f(u) = sum_j theta_j k(u, a_j) (a_j - u)/bandwidth^2``. A are the atoms, K the rows of kernel
    values with a last column for the constant. O(n B d + n d^2) an output.
    """
    M = np.zeros(len(metric) if metric.ndim == 1 else metric.shape)
    for k in range(theta.shape[1]):
        W = K[:, :-1] * theta[:-1, k]  # a weight of a row multiplies its gradient by the weight's root
        G = moved(W @ A - W.sum(axis=1)[:, None] * U, metric.T) / bandwidth**2
        M += np.einsum("ij,ij->j", G, G) if metric.ndim == 1 else G.T @ G
    total = len(U) if roots is None else max(float(roots @ roots), 1e-300)
    return M / total
