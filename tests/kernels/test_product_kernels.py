"""Linear and Polynomial."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel

from kons.errors import ConfigurationError, NumericalError
from kons.kernels import Linear, Polynomial


def points(rows, features=5, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, features))


def test_linear_is_the_inner_product():
    X, Z = points(6), points(4, seed=1)
    expected = [[sum(a * b for a, b in zip(x, z, strict=True)) for z in Z] for x in X]
    np.testing.assert_allclose(Linear().gram(X, Z), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6, 7, 11])
@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_polynomial_equals_scikit_learn(degree, offset):
    X, Z = points(6), points(4, seed=1)
    ours = Polynomial(degree=degree, offset=offset)
    theirs = polynomial_kernel(X, Z, degree=degree, gamma=1.0, coef0=offset)
    np.testing.assert_allclose(ours.gram(X, Z), theirs, rtol=1e-12)


def test_polynomial_is_the_inner_product_of_its_monomials():
    X = points(8, 2)
    a, b = X.T
    features = np.stack([np.ones(8), 2**0.5 * a, 2**0.5 * b, a * a, b * b, 2**0.5 * a * b], axis=1)
    np.testing.assert_allclose(Polynomial().gram(X), features @ features.T, rtol=1e-13)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=9)], ids=repr)
def test_overflow_is_an_error(kernel):
    X = [[1.0, 1.0], [1e200, -1e200]]
    with pytest.raises(NumericalError, match=r"at the pair of rows \(1, 1\).*Scale the features"):
        kernel.gram(X)
    with pytest.raises(NumericalError, match=r"is inf at the pair of rows \(1, 1\)"):
        kernel.diagonal(X)


def test_overflow_of_the_power_alone_is_an_error():
    with pytest.raises(NumericalError, match=r"Polynomial\(degree=300, offset=1.0\) is inf"):
        Polynomial(degree=300).gram([[4.0]])


@pytest.mark.parametrize("degree", [0, -1, 1.5, 2.0, "2", True])
def test_bad_degrees(degree):
    with pytest.raises(ConfigurationError, match=r"degree is .*expected an integer of at least 1"):
        Polynomial(degree=degree)


@pytest.mark.parametrize("offset", [-1.0, np.nan, np.inf, "1", False])
def test_bad_offsets(offset):
    with pytest.raises(ConfigurationError, match=r"offset is .*expected a finite number at least 0"):
        Polynomial(offset=offset)
