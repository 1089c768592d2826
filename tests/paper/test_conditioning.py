"""How far rounding carries: the update's own conditioning, not the code's, decides (docs/departures.md)."""

from __future__ import annotations

import numpy as np
import pytest

import effort
from kons import KONS, Gaussian, Squared

needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(float).eps,
    reason="the referee needs more digits than float64, which this platform's long double has not",
)


def stream(dimension, rows=300):
    rng = np.random.default_rng(5)
    return rng.normal(size=(rows, dimension)), np.clip(0.3 * rng.normal(size=rows), -1, 1)


def in_extended_precision(K, y, alpha, curvature="gradient"):
    """The online Newton step over a Gram matrix, by its inverse forms, in long double."""
    long = np.longdouble
    M, f = K.astype(long) / long(alpha), np.zeros(len(y), long)
    predictions = np.empty(len(y))
    for t in range(len(y)):  # M and f are those of rows t, t + 1, ...: no earlier one is asked for again
        q = M[0, 0]
        y_hat = np.clip(f[0], -1, 1)
        predictions[t] = y_hat
        h = f[0] - y_hat if curvature == "gradient" else long(0)
        g = 2 * (f[0] - h - y[t])
        w = g * g / 8 if curvature == "gradient" else long(2)
        s = (h / q if h != 0 else long(0)) + g / (1 + w * q)
        m = M[0, 1:]
        f = f[1:] - s * m
        M = M[1:, 1:] - w / (1 + w * q) * np.outer(m, m)
    return predictions


@needs_long_double
@pytest.mark.parametrize(("dimension", "alpha"), [(3, 1e-3), (8, 1e-2), (8, 1e-4)])
def test_no_further_off_than_the_gram_matrix_moved_by_rounding(dimension, alpha):
    X, y = stream(dimension, effort.amount(200, 300))
    K = Gaussian().gram(X)
    exact = in_extended_precision(K, y, alpha)
    noise = np.random.default_rng(1)
    moved = [
        np.abs(in_extended_precision(K * (1 + 1e-16 * _symmetric(noise, len(y))), y, alpha) - exact).max()
        for _ in range(3)
    ]
    ours = KONS(Gaussian(), Squared(), regularization=alpha).advance(X, y).prediction
    # A solve commits some hundred roundings where the referee's matrix has one.
    assert np.abs(ours - exact).max() <= 1e-12 / alpha + 300 * max(moved)


@needs_long_double
def test_a_tiny_regularization_can_make_the_path_itself_chaotic():
    """Why no tolerance can be promised there: one part in 1e16 of the kernel grows 1e10-fold and more."""
    X = np.random.default_rng(2).normal(size=(300, 8))
    y = np.clip(0.3 * np.random.default_rng(3).normal(size=300), -1, 1)
    K = Gaussian().gram(X)
    exact = in_extended_precision(K, y, 1e-4)
    moved = in_extended_precision(K * (1 + 1e-16 * _symmetric(np.random.default_rng(1), len(y))), y, 1e-4)
    assert np.abs(moved - exact).max() > 1e-6


@needs_long_double
@pytest.mark.parametrize("dimension", [3, 8])
def test_the_hessian_has_no_such_path(dimension):
    X, y = stream(dimension)
    exact = in_extended_precision(Gaussian().gram(X), y, 1e-4, "hessian")
    ours = KONS(Gaussian(), Squared(), regularization=1e-4, second_order="hessian").advance(X, y).prediction
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-9)


def _symmetric(rng, n):
    noise = rng.normal(size=(n, n))
    return (noise + noise.T) / 2
