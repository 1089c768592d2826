"""Seeded synthetic streams with known answers: a pair (X, y), the same for the same arguments.

=======================  ==========================================  ==========================
stream                   what is hard about it                       y lies in
=======================  ==========================================  ==========================
``mackey_glass``         chaotic: no linear model, no constant       [-1, 1]
``logistic_map``         chaotic and exactly learnable: a parabola   [-1, 1]
``friedman``             products, squares and irrelevant features   [-1, 1]
``drifting``             the answer of yesterday is wrong tomorrow   [-1, 1]
``switching``            two answers that take turns, without notice [-1, 1]
``alternating_labels``   an adversary: nothing can be learned        {-bound, +bound}
=======================  ==========================================  ==========================
"""

from __future__ import annotations

import numpy as np

from kons.arrays import Matrix, Vector, require_integer, require_number

__all__ = ["alternating_labels", "drifting", "friedman", "logistic_map", "mackey_glass", "switching"]

# The Mackey-Glass equation x' = GROWTH*z/(1 + z^POWER) - DECAY*x with z = x(t - delay).
GROWTH, DECAY, POWER = 0.2, 0.1, 10
# z = (POWER - 1)^(-1/POWER) makes the growth largest; x can never pass that growth over DECAY.
CEILING = GROWTH / DECAY * (POWER - 1) ** (-1 / POWER) * (POWER - 1) / POWER
NODES_PER_UNIT = 10
TRANSIENT = 500


def mackey_glass(
    rows: int,
    *,
    lags: int = 8,
    horizon: int = 1,
    interval: int = 6,
    delay: int = 17,
    seed: int = 0,
) -> tuple[Matrix, Vector]:
    """The Mackey-Glass series: the past ``lags`` samples, and the one ``horizon`` samples ahead.

    ::

        x'(t) = 0.2 x(t - delay) / (1 + x(t - delay)^10) - 0.1 x(t)
        s_i   = 2 x(i * interval)/x_max - 1             x_max = 1.445, so that |s_i| < 1
        X[i]  = (s_i, ..., s_(i + lags - 1))            y[i] = s_(i + lags - 1 + horizon)

    The seed draws the constant past from which the equation starts; the first 500 units of time,
    in which it settles on its attractor, are dropped. The series comes to rest for very short delays
    and is chaotic with 17 or more. The integration is of fourth order, exact to 1e-7 over 150 units; as
    in any chaotic series, small errors grow, so that a finer step gives another stretch of the same
    attractor in the end.

    Costs O(rows * interval), some 0.05 s for 6,000 rows. With a horizon above 1 the last targets are
    not yet known when a row is predicted: do not then feed them row by row without a delay, nor
    compare with persistence.

    >>> from kons.streams import mackey_glass
    >>> X, y = mackey_glass(500, lags=4)
    >>> X.shape, y.shape, bool(abs(X).max() < 1)
    ((500, 4), (500,), True)
    >>> bool((X[1:, -1] == y[:-1]).all())
    True

    References
    ----------
    Mackey, Glass: Oscillation and chaos in physiological control systems, Science 197, 1977.
    """
    rows = require_integer(rows, "rows", at_least=1)
    lags = require_integer(lags, "lags", at_least=1)
    horizon = require_integer(horizon, "horizon", at_least=1)
    interval = require_integer(interval, "interval", at_least=1)
    delay = require_integer(delay, "delay", at_least=1)
    start = np.random.default_rng(_seed(seed)).uniform(1.1, 1.3)
    samples = rows + lags - 1 + horizon
    x = _integrate(start, delay, TRANSIENT + interval * samples, NODES_PER_UNIT)
    series = x[TRANSIENT * NODES_PER_UNIT :: interval * NODES_PER_UNIT][:samples]
    scaled = 2.0 * series / CEILING - 1.0
    X = np.lib.stride_tricks.sliding_window_view(scaled, lags)[:rows].copy()
    return X, scaled[lags - 1 + horizon :].copy()


def logistic_map(rows: int, *, lags: int = 1, horizon: int = 1, seed: int = 0) -> tuple[Matrix, Vector]:
    """The fully chaotic logistic map, whose next value is a parabola of the last one.

    ::

        u_(i+1) = 4 u_i (1 - u_i),   s_i = 2 u_i - 1,   so that   s_(i+1) = 1 - 2 s_i^2
        X[i] = (s_i, ..., s_(i + lags - 1))            y[i] = s_(i + lags - 1 + horizon)

    Known answers: one step ahead ``y = 1 - 2 x^2`` of the last column x, without noise; any linear
    prediction is as good as the constant 0, whose loss is 1/2 (u is arcsine distributed). Nothing beyond
    some 40 steps can be foreseen in double precision. The seed draws u_0.

    >>> from kons.streams import logistic_map
    >>> X, y = logistic_map(1000, seed=2)
    >>> bool(abs(y - (1 - 2 * X[:, -1] ** 2)).max() < 1e-12)
    True
    """
    rows = require_integer(rows, "rows", at_least=1)
    lags = require_integer(lags, "lags", at_least=1)
    horizon = require_integer(horizon, "horizon", at_least=1)
    samples = rows + lags - 1 + horizon
    value = float(np.random.default_rng(_seed(seed)).uniform(0.1, 0.9))
    series = np.empty(samples)
    for i in range(samples):
        series[i] = value
        value = 4.0 * value * (1.0 - value)
        if not 0.0 < value < 1.0:  # rounding has met the fixed point 0: start from a usual place
            value = 0.3
    scaled = 2.0 * series - 1.0
    X = np.lib.stride_tricks.sliding_window_view(scaled, lags)[:rows].copy()
    return X, scaled[lags - 1 + horizon :].copy()


def friedman(rows: int, *, dimension: int = 10, noise: float = 0.0, seed: int = 0) -> tuple[Matrix, Vector]:
    """Friedman's first function on uniform points: five features matter, the others do not.

    ::

        x uniform in [0, 1]^dimension
        y = (10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5)/15 - 1 + noise * N(0, 1)

    cut to [-1, 1]. Friedman's own noise, of deviation 1 before scaling, is ``noise=1/15``. The rows
    are independent: no use for it where order should matter, see :func:`drifting`.

    >>> from kons.streams import friedman
    >>> X, y = friedman(1000, seed=3)
    >>> X.shape, bool(abs(y).max() <= 1)
    ((1000, 10), True)

    References
    ----------
    Friedman: Multivariate adaptive regression splines, Annals of Statistics 19, 1991.
    """
    rows = require_integer(rows, "rows", at_least=1)
    dimension = require_integer(dimension, "dimension", at_least=5)
    noise = require_number(noise, "noise", at_least=0.0)
    generator = np.random.default_rng(_seed(seed))
    X = generator.random((rows, dimension))
    x1, x2, x3, x4, x5 = X[:, :5].T
    raw = 10.0 * np.sin(np.pi * x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5
    y = raw / 15.0 - 1.0 + noise * generator.standard_normal(rows)
    return X, np.clip(y, -1.0, 1.0)


def drifting(
    rows: int, dimension: int = 2, *, period: float = 5000.0, seed: int = 0
) -> tuple[Matrix, Vector]:
    """A wave whose direction turns slowly: a full turn in ``period`` rows.

    ::

        x uniform in [-1, 1]^dimension
        u_t = cos(2 pi t/period) a + sin(2 pi t/period) b          a, b orthonormal, from the seed
        y   = sin(pi u_t . x)

    After a quarter of a turn the old answer is no guide to the new one. A learner that weighs all
    its past alike, as KONS and every baseline here does, cannot keep up in the long run: that is
    what the stream is for.

    >>> from kons.streams import drifting
    >>> X, y = drifting(1000, dimension=3, seed=1)
    >>> X.shape, bool(abs(y).max() <= 1)
    ((1000, 3), True)
    """
    rows = require_integer(rows, "rows", at_least=1)
    dimension = require_integer(dimension, "dimension", at_least=2)
    period = require_number(period, "period", above=0.0)
    generator = np.random.default_rng(_seed(seed))
    a, b = np.linalg.qr(generator.standard_normal((dimension, 2)))[0].T
    X = generator.uniform(-1.0, 1.0, (rows, dimension))
    angle = 2.0 * np.pi / period * np.arange(rows)
    return X, np.sin(np.pi * (np.cos(angle) * (X @ a) + np.sin(angle) * (X @ b)))


def switching(
    rows: int, dimension: int = 2, *, every: int = 2000, noise: float = 0.0, seed: int = 0
) -> tuple[Matrix, Vector]:
    """Two functions that take turns: after each ``every`` rows the answer is the other one.

    ::

        x uniform in [-1, 1]^dimension
        y = sin(pi a . x)   in turns 0, 2, 4, ...           a, b orthonormal, from the seed
        y = -sin(pi b . x)  in turns 1, 3, 5, ...           + noise * N(0, 1), cut to [-1, 1]

    A learner that forgets pays after each switch; one that does not settles on the mean of both, whose
    squared loss is a quarter of E[(f_0 - f_1)^2] (turns of equal length, no noise).

    >>> from kons.streams import switching
    >>> X, y = switching(1000, dimension=3, every=100, seed=1)
    >>> X.shape, bool(abs(y).max() <= 1)
    ((1000, 3), True)
    """
    rows = require_integer(rows, "rows", at_least=1)
    dimension = require_integer(dimension, "dimension", at_least=2)
    every = require_integer(every, "every", at_least=1)
    noise = require_number(noise, "noise", at_least=0.0)
    generator = np.random.default_rng(_seed(seed))
    a, b = np.linalg.qr(generator.standard_normal((dimension, 2)))[0].T
    X = generator.uniform(-1.0, 1.0, (rows, dimension))
    second = np.arange(rows) // every % 2 == 1
    y = np.where(second, -np.sin(np.pi * (X @ b)), np.sin(np.pi * (X @ a)))
    return X, np.clip(y + noise * generator.standard_normal(rows), -1.0, 1.0)


def alternating_labels(rows: int, bound: float = 1.0) -> tuple[Matrix, Vector]:
    """One point for ever, with the targets +bound, -bound, +bound, ... in turn.

    ::

        x_t = 1,    y_t = bound * (-1)^(t + 1)          t = 1, 2, ...

    The last counter-example of the paper: all data span one dimension and the best fixed function is
    0, yet the slopes never fade, so that every row adds to the preconditioner. Not random; no seed.

    >>> from kons.streams import alternating_labels
    >>> X, y = alternating_labels(4, bound=0.5)
    >>> X.ravel().tolist(), y.tolist()
    ([1.0, 1.0, 1.0, 1.0], [0.5, -0.5, 0.5, -0.5])
    """
    rows = require_integer(rows, "rows", at_least=1)
    bound = require_number(bound, "bound", above=0.0)
    y = np.full(rows, bound)
    y[1::2] = -bound
    return np.ones((rows, 1)), y


def _integrate(start: float, delay: int, duration: int, nodes_per_unit: int) -> Vector:
    """X at the nodes of [0, duration], from x(t) = start for t <= 0; of fourth order in the step.

    Over one delay the delayed value z is known, so the equation is linear in x and solved by

        x(t) = e^(-c t) (x(0) + integral_0^t e^(c s) growth(z(s)) ds),         c = DECAY,

    the integral by the trapezoidal rule with its end correction h^2/12 (F'(0) - F'(h)). The slopes
    belong to their own stretch of one delay: across stretches the higher derivatives jump.
    """
    h = 1.0 / nodes_per_unit
    past = np.exp(DECAY * h * np.arange(delay * nodes_per_unit + 1))
    z, z_slope = np.full_like(past, start), np.zeros_like(past)
    stretches = [z[-1:]]
    for _ in range(-(-duration // delay)):
        power = z**POWER
        growth = GROWTH * z / (1.0 + power)
        growth_slope = GROWTH * (1.0 - (POWER - 1) * power) / (1.0 + power) ** 2 * z_slope
        F, F_slope = past * growth, past * (DECAY * growth + growth_slope)
        pieces = h / 2 * (F[:-1] + F[1:]) + h**2 / 12 * (F_slope[:-1] - F_slope[1:])
        x = np.cumsum(np.concatenate([z[-1:], pieces])) / past
        z, z_slope = x, growth - DECAY * x
        stretches.append(x[1:])
    return np.concatenate(stretches)[: duration * nodes_per_unit + 1]


def _seed(seed: int) -> int:
    return require_integer(seed, "seed", at_least=0)
