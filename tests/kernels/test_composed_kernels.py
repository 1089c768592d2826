"""Sum, Product, Multiple and Normalized."""

import fractions

import numpy as np
import pytest

from kons.errors import ConfigurationError, NumericalError
from kons.kernels import (
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Multiple,
    Normalized,
    Polynomial,
    Product,
    Sum,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
Z = RNG.normal(size=(4, 3))
first, second = Gaussian(bandwidth=0.8), Polynomial(degree=3)


def test_operators_compute_what_they_say():
    a, b = first.gram(X, Z), second.gram(X, Z)
    np.testing.assert_array_equal((first + second).gram(X, Z), a + b)
    np.testing.assert_array_equal((first * second).gram(X, Z), a * b)
    np.testing.assert_array_equal((2.5 * second).gram(X, Z), 2.5 * b)
    np.testing.assert_array_equal(
        (0.5 * first + second * first * 2).diagonal(X),
        0.5 * first.diagonal(X) + 2 * (second.diagonal(X) * first.diagonal(X)),
    )


def test_operators_build_values():
    assert first + second == Sum(first, second)
    assert first * second == Product(first, second)
    for factor in (2, 2.0, np.float64(2.0), np.float32(2.0), np.int64(2), fractions.Fraction(2)):
        assert factor * first == first * factor == Multiple(2.0, first)


def test_flags_of_compositions():
    assert (first * Laplace()).is_normalized
    assert not (first * second).is_normalized
    assert not (first + Laplace()).is_normalized
    assert (1 * first).is_normalized
    assert not (2 * first).is_normalized
    assert Normalized(second).is_normalized
    assert not Normalized(Linear()).is_normalized
    assert Normalized(first + Linear()).is_normalized
    assert not Normalized(first * Linear()).is_normalized


@pytest.mark.parametrize("factor", [0, 0.0, -1.0, np.nan, np.inf, True])
def test_only_positive_finite_multiples(factor):
    with pytest.raises(ConfigurationError, match=r"factor of a kernel is .*above 0"):
        factor * first
    with pytest.raises(ConfigurationError, match=r"factor of a kernel is .*above 0"):
        first * factor


@pytest.mark.parametrize("other", ["a", None, np.ones(3)])
def test_other_operands_are_type_errors(other):
    with pytest.raises(TypeError, match=r"operand|multiply|concatenate"):
        first * other
    with pytest.raises(TypeError, match=r"operand|multiply|concatenate"):
        other + first


def test_mixing_vectors_and_objects_says_what_to_do():
    objects = FunctionKernel(max)
    for mix in (lambda: first + objects, lambda: objects + first, lambda: 2 * objects * first):
        with pytest.raises(ConfigurationError, match=r"cannot join Gaussian.*turn the first into"):
            mix()


@pytest.mark.parametrize("make", [lambda k: Sum(first, k), lambda k: Multiple(2.0, k), Normalized])
@pytest.mark.parametrize("wrong", [3, len, Gaussian])
def test_parts_must_be_kernels(make, wrong):
    with pytest.raises(ConfigurationError, match=r"expected a kernel such as Gaussian\(\)"):
        make(wrong)


def test_normalized_is_the_cosine():
    lengths = np.sqrt(np.outer(second.diagonal(X), second.diagonal(Z)))
    np.testing.assert_allclose(Normalized(second).gram(X, Z), second.gram(X, Z) / lengths, rtol=1e-14)
    np.testing.assert_array_equal(Normalized(second).gram(X).diagonal(), 1.0)


@pytest.mark.parametrize("factor", [3.0, -3.0])
def test_rounding_does_not_lift_a_cosine_above_one(factor):
    points = np.random.default_rng(0).normal(size=(300, 5))
    cosines = Normalized(Linear()).gram(points, factor * points)
    assert np.abs(cosines).max() <= 1.0
    np.testing.assert_allclose(cosines.diagonal(), np.sign(factor), rtol=1e-15)


def test_normalized_is_zero_where_the_kernel_vanishes():
    points = np.array([[0.0, 0.0], [3.0, 4.0], [-6.0, -8.0]])
    k = Normalized(Linear())
    expected = [[0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]]
    np.testing.assert_allclose(k.gram(points), expected, rtol=1e-15)
    np.testing.assert_allclose(k.gram(points, points.copy()), expected, rtol=1e-15)
    np.testing.assert_array_equal(k.diagonal(points), [0.0, 1.0, 1.0])


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_normalized_at_extreme_scales(scale):
    k = Normalized(Linear())
    np.testing.assert_allclose(k.gram(scale * X, scale * Z), k.gram(X, Z), rtol=1e-13)


def test_normalized_refuses_a_negative_diagonal():
    negative = Normalized(FunctionKernel(lambda x, z: -3.0))
    with pytest.raises(NumericalError, match=r"is -3 at row 0 and itself.*not positive semidef"):
        negative.gram(["a", "b"])


@pytest.mark.parametrize(
    "kernel",
    [Linear() * Linear(), 1e100 * Linear(), Linear() + Linear()],
    ids=repr,
)
def test_overflow_is_an_error(kernel):
    with pytest.raises(NumericalError, match=r"is inf at the pair of rows \(0, 0\)"):
        kernel.gram([[1.2e154]])
    with pytest.raises(NumericalError, match=r"is inf at the pair of rows \(0, 0\)"):
        kernel.diagonal([[1.2e154]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: 1e160 * Gaussian(),
        lambda: 1e-160 * Gaussian(),
        lambda: 1e60 * (1e60 * Gaussian()),
        lambda: (1e60 * Gaussian()) * (1e60 * Linear()),
    ],
)
def test_factors_whose_squares_are_no_numbers_are_refused_when_the_kernel_is_made(make):
    with pytest.raises(ConfigurationError, match="expected a finite number at least 1e-100 and at most 1e"):
        make()
