"""Gaussian, Laplace, Matern, RationalQuadratic, and the distances under them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from sklearn.gaussian_process import kernels as theirs
from sklearn.metrics.pairwise import laplacian_kernel

import effort
from kons.errors import ConfigurationError
from kons.kernels import Gaussian, Laplace, Matern, RationalQuadratic, distances

STATIONARY = [
    Gaussian(),
    Gaussian(bandwidth=0.2),
    Laplace(bandwidth=1.5),
    Matern(bandwidth=0.8, smoothness=0.5),
    Matern(bandwidth=1.2, smoothness=1.5),
    Matern(bandwidth=2.0, smoothness=2.5),
    RationalQuadratic(bandwidth=0.6, mixture=1.7),
]
every_kernel = pytest.mark.parametrize("kernel", STATIONARY, ids=repr)


def points(rows, features, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, features))


def one_value(kernel, x, z):
    """The formula, for one pair, in plain Python."""
    b = kernel.bandwidth
    differences = [a - c for a, c in zip(x.tolist(), z.tolist(), strict=True)]
    if isinstance(kernel, Laplace):
        return math.exp(-math.fsum(map(abs, differences)) / b)
    squared = math.fsum(difference**2 for difference in differences)
    if isinstance(kernel, Gaussian):
        return math.exp(-squared / (2 * b * b))
    if isinstance(kernel, RationalQuadratic):
        return (1 + squared / (2 * kernel.mixture * b * b)) ** -kernel.mixture
    u = math.sqrt(2 * kernel.smoothness * squared) / b
    polynomial = {0.5: 1.0, 1.5: 1 + u, 2.5: 1 + u + u * u / 3}[kernel.smoothness]
    return polynomial * math.exp(-u)


def double_loop(kernel, X, Z):
    return np.array([[one_value(kernel, x, z) for z in Z] for x in X])


@every_kernel
@pytest.mark.parametrize("features", [1, 2, 4, 7, 64, 65, 131])
def test_equals_the_formula(kernel, features):
    for n, m in ((1, 9), (9, 1), (11, 13)):
        X, Z = points(n, features), points(m, features, seed=1)
        Z[0] = X[0] + 0.01
        np.testing.assert_allclose(kernel.gram(X, Z), double_loop(kernel, X, Z), rtol=2e-12, atol=1e-300)


@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (Gaussian(0.7), theirs.RBF(0.7)),
        (Matern(0.7, 0.5), theirs.Matern(0.7, nu=0.5)),
        (Matern(0.7, 1.5), theirs.Matern(0.7, nu=1.5)),
        (Matern(0.7, 2.5), theirs.Matern(0.7, nu=2.5)),
        (RationalQuadratic(0.7, 0.4), theirs.RationalQuadratic(0.7, alpha=0.4)),
        (Laplace(0.7), lambda X, Z: laplacian_kernel(X, Z, gamma=1 / 0.7)),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
@pytest.mark.parametrize("features", [3, 100])
def test_equals_scikit_learn(ours, reference, features):
    X, Z = points(40, features), points(300, features, seed=1)
    np.testing.assert_allclose(ours.gram(X, Z), reference(X, Z), rtol=1e-11, atol=1e-300)


@every_kernel
@pytest.mark.parametrize("features", [1, 8, 64, 65, 100])
def test_duplicates_are_exactly_one(kernel, features):
    for offset in (0.0, 1e6, -1e12):
        X = points(30, features) + offset
        K = kernel.gram(X, X[::-1])
        assert (K[::-1].diagonal() == 1.0).all()
        assert (kernel.gram(X).diagonal() == 1.0).all()
        assert K.max() == 1.0


@every_kernel
@pytest.mark.parametrize("features", [8, 100])
def test_a_common_offset_costs_nothing(kernel, features):
    # On this grid x and x + 1e6 are both exact, so that the distances are the same numbers.
    X = np.round(points(25, features) * 2**16) / 2**16
    Z = np.round(points(40, features, seed=1) * 2**16) / 2**16
    np.testing.assert_allclose(kernel.gram(X + 1e6, Z + 1e6), kernel.gram(X, Z), rtol=1e-11)


def test_near_neighbours_far_from_the_centre_keep_their_distance():
    rng = np.random.default_rng(0)
    cluster = 1e4 * rng.normal(size=(3, 100))
    X = np.repeat(cluster, 10, axis=0) + 1e-3 * rng.normal(size=(30, 100))
    Z = np.repeat(cluster, 10, axis=0) + 1e-3 * rng.normal(size=(30, 100))
    exact = ((X[:, np.newaxis] - Z) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances.squared_distances(X, Z), exact, rtol=1e-12)


@pytest.mark.parametrize("measure", [distances.squared_distances, distances.absolute_distances])
@pytest.mark.parametrize("features", [1, 3, 4, 6, 8, 9, 64])
def test_bits_depend_on_the_two_rows_alone(measure, features):
    X, Z = points(300, features), points(600, features, seed=1)
    whole = measure(X, Z)
    np.testing.assert_array_equal(measure(Z, X).T, whole)
    for n, m in [(1, 600), (300, 1), (7, 7), (8, 8), (7, 600), (200, 257)]:
        np.testing.assert_array_equal(measure(X[:n], Z[:m]), whole[:n, :m])


def test_differences_and_matrix_product_agree(monkeypatch):
    X, Z = points(50, 80), points(70, 80, seed=1)
    product = distances.squared_distances(X, Z, 0.3)
    monkeypatch.setattr(distances, "LARGEST_DIFFERENCED", 80)
    np.testing.assert_allclose(distances.squared_distances(X, Z, 0.3), product, rtol=1e-13)


def test_read_only_points_are_not_compiled_for_anew(monkeypatch):
    X = points(20, 3)
    expected = Gaussian().gram(X)
    X.flags.writeable = False

    def compile(dispatcher, signature):  # called for machine code from the disk, too
        raise AssertionError(f"{dispatcher} for {signature}")

    monkeypatch.setattr(Dispatcher, "compile", compile)
    np.testing.assert_array_equal(Gaussian().gram(X), expected)


@every_kernel
@given(
    values=st.lists(
        st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e100, -1e155, 1e200, 1e308, -1.7e308]),
        min_size=6,
        max_size=6,
    ),
    repeats=st.sampled_from([1, 2, 40]),
    copies=st.sampled_from([1, 9]),
)
@effort.examples(25)
def test_huge_points_are_merely_unrelated(kernel, values, repeats, copies):
    X = np.tile(np.reshape(values, (3, 2)), (copies, repeats))
    K = kernel.gram(X)
    assert ((K >= 0.0) & (K <= 1.0)).all()
    np.testing.assert_array_equal(K, K.T)
    same = (X[:, np.newaxis] == X).all(axis=2)
    assert (K[same] == 1.0).all()
    apart = np.abs(X[:, np.newaxis] / 4 - X / 4).max(axis=2) > 1e20
    assert (K[apart] < 1e-18).all()


@pytest.mark.parametrize("bandwidth", [1e-150, 1e150])
@pytest.mark.parametrize(
    "kernel_class", [Gaussian, Laplace, Matern, RationalQuadratic], ids=lambda c: c.__name__
)
def test_extreme_bandwidths(kernel_class, bandwidth):
    kernel = kernel_class(bandwidth=bandwidth)
    expected = one_value(kernel_class(), np.array([1.0]), np.array([0.0]))
    K = kernel.gram([[0.0]], [[0.0], [bandwidth], [1.7e308]])
    np.testing.assert_allclose(K, [[1.0, expected, 0.0]], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("kernel_class", [Gaussian, Laplace, Matern, RationalQuadratic])
@pytest.mark.parametrize("bandwidth", [0, -1, math.nan, math.inf, "a", True, None])
def test_bad_bandwidths(kernel_class, bandwidth):
    message = f"bandwidth is {bandwidth!r}, expected a finite number above 0"
    with pytest.raises(ConfigurationError, match=message):
        kernel_class(bandwidth=bandwidth)


@pytest.mark.parametrize("bandwidth", [1e-200, 1e200])
def test_bandwidths_whose_square_is_no_number(bandwidth):
    with pytest.raises(ConfigurationError, match=r"at least 1e-150 and at most 1e\+150"):
        Gaussian(bandwidth=bandwidth)


@pytest.mark.parametrize("smoothness", [1, 2.0, 3.5])
def test_smoothness_without_a_closed_form(smoothness):
    with pytest.raises(ConfigurationError, match=r"expected 0.5, 1.5 or 2.5.*use Gaussian"):
        Matern(smoothness=smoothness)


@pytest.mark.parametrize("smoothness", [0, -0.5, math.nan, "1.5", True])
def test_smoothness_that_is_no_positive_number(smoothness):
    with pytest.raises(ConfigurationError, match=r"smoothness is .*expected a finite number above 0"):
        Matern(smoothness=smoothness)


@pytest.mark.parametrize("mixture", [0, -1, math.inf, "a", True])
def test_bad_mixtures(mixture):
    with pytest.raises(ConfigurationError, match=r"mixture is .*expected a finite number above 0"):
        RationalQuadratic(mixture=mixture)


def test_mixture_beyond_its_range():
    with pytest.raises(ConfigurationError, match=r"at least 1e-06 and at most 1e\+06"):
        RationalQuadratic(mixture=1e9)
