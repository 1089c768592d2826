"""Factors of sums of squares, and inverses of triangles by halves."""

import numpy as np
import pytest

from kons.core.cholesky import SMALL, factored, inverted
from kons.errors import NumericalError


def sums_of_squares(size, rows, seed=0):
    K = np.random.default_rng(seed).normal(size=(rows, size))
    return K, np.asfortranarray(K.T @ K)


@pytest.mark.parametrize("size", [1, 2, SMALL, SMALL + 1, 2 * SMALL + 3, 301])
def test_factor_and_inverse(size):
    _, A = sums_of_squares(size, 2 * size + 5)
    prior = np.eye(size)
    L = factored(A, prior)
    lower = np.tril(L)
    np.testing.assert_allclose(lower @ lower.T, A + prior, rtol=1e-8)
    np.testing.assert_allclose(np.tril(inverted(L)) @ lower, np.eye(size), atol=1e-10)


def test_only_lower_triangles_are_read():
    _, A = sums_of_squares(100, 200)
    spoiled = A.copy(order="F")
    spoiled[np.triu_indices(100, 1)] = np.nan
    nothing = np.zeros((100, 100), order="F")
    np.testing.assert_array_equal(np.tril(factored(spoiled, nothing)), np.tril(factored(A, nothing)))
    L = factored(spoiled, nothing)
    L[np.triu_indices(100, 1)] = np.nan
    assert np.isfinite(np.tril(inverted(L))).all()


def test_rounding_does_not_make_it_indefinite():
    # Rank 3 of 80: most eigenvalues are rounding, of either sign.
    _, A = sums_of_squares(80, 3)
    A -= 1e-9 * np.trace(A) / 80 * np.eye(80)
    assert np.linalg.eigvalsh(A)[0] < 0.0
    L = np.tril(factored(A, np.zeros((80, 80))))
    np.testing.assert_allclose(L @ L.T, A, atol=1e-6 * np.trace(A) / 80 + 1e-12)


def test_what_is_far_from_positive_is_an_error():
    with pytest.raises(NumericalError, match="not positive definite"):
        factored(-np.eye(3), np.zeros((3, 3)))
