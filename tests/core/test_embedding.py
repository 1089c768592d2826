"""Coordinates in the span of a dictionary, against dense Nystrom algebra."""

import numpy as np
import pytest

from kons import Gaussian, Laplace, Linear
from kons.core.embedding import Embedding
from kons.kernels import FunctionKernel

KERNELS = [Gaussian(1.0), Laplace(1.5)]


def points(rows, seed=0, width=3):
    return np.random.default_rng(seed).normal(size=(rows, width))


def filled(kernel, X):
    embedding = Embedding(kernel)
    embedding.extend(X)
    return embedding


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_coordinates_are_those_of_the_definition(kernel):
    D, X = points(40), points(25, seed=1)
    embedding = filled(kernel, D)
    # z = L^-1 k_D(x), L L^T = K_D
    L = np.linalg.cholesky(kernel.gram(D))
    np.testing.assert_allclose(embedding.coordinates(X), np.linalg.solve(L, kernel.gram(D, X)).T, atol=1e-9)
    assert len(embedding) == 40


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_inner_products_are_the_nystrom_kernel(kernel):
    D, X = points(40), points(60, seed=1)
    Z = filled(kernel, D).coordinates(X)
    K_DX = kernel.gram(D, X)
    nystrom = K_DX.T @ np.linalg.solve(kernel.gram(D), K_DX)
    np.testing.assert_allclose(Z @ Z.T, nystrom, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_kernel_is_exact_on_atoms(kernel):
    D, X = points(40), points(60, seed=1)
    embedding = filled(kernel, D)
    Z_D, Z = embedding.coordinates(D), embedding.coordinates(X)
    np.testing.assert_allclose(Z_D @ Z_D.T, kernel.gram(D), atol=1e-11)
    np.testing.assert_allclose(Z @ Z_D.T, kernel.gram(X, D), atol=1e-11)


def test_coordinates_are_orthonormal():
    # With a linear kernel and as many atoms as dimensions, z is x in a rotated basis.
    D, X = points(3), points(20, seed=1)
    Z = filled(Linear(), D).coordinates(X)
    rotation = np.linalg.lstsq(X, Z, rcond=None)[0]
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)


def test_residual_is_the_squared_distance_from_the_span():
    E = np.eye(4)
    embedding = filled(Linear(), E[:2])
    X = np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(embedding.residual(X), [0.0, 4.0, 2.0], atol=1e-14)
    gaussian = filled(Gaussian(), points(30))
    X = points(200, seed=1)
    Z = gaussian.coordinates(X)
    np.testing.assert_allclose(gaussian.residual(X), 1.0 - np.sum(Z**2, axis=1), atol=1e-12)
    on_atoms = gaussian.residual(points(30))
    assert on_atoms.min() >= 0.0
    assert on_atoms.max() < 1e-10


def test_extending_in_pieces_is_extending_at_once():
    D, X = points(300), points(50, seed=1)  # past the height of a panel, 256
    kernel = Laplace(1.0)
    at_once = filled(kernel, D)
    in_pieces = Embedding(kernel)
    for start in range(0, 300, 37):
        in_pieces.extend(D[start : start + 37])
    assert len(in_pieces) == len(at_once) == 300
    np.testing.assert_array_equal(in_pieces.atoms.view, at_once.atoms.view)
    np.testing.assert_allclose(in_pieces.coordinates(X), at_once.coordinates(X), atol=1e-11)


def test_new_atoms_append_coordinates_and_change_none():
    D, X = points(300), points(40, seed=1)
    embedding = Embedding(Laplace(1.0))
    before = embedding.coordinates(X)
    assert before.shape == (40, 0)
    for stop in (1, 2, 50, 255, 256, 257, 300):
        embedding.extend(D[before.shape[1] : stop])
        after = embedding.coordinates(X)
        assert after.shape == (40, stop)
        np.testing.assert_allclose(after[:, : before.shape[1]], before, rtol=0, atol=1e-13)
        before = after


def test_dependent_candidates_are_passed_over():
    D = points(10)
    embedding = Embedding(Gaussian())
    candidates = np.vstack([D[:4], D[:2], D[4:], D[4:6]])
    np.testing.assert_array_equal(embedding.extend(candidates), [0, 1, 2, 3, 6, 7, 8, 9, 10, 11])
    np.testing.assert_array_equal(embedding.extend(D), [])
    np.testing.assert_array_equal(embedding.atoms.view, D)
    Z = embedding.coordinates(candidates)
    np.testing.assert_allclose(Z @ Z.T, Gaussian().gram(candidates), atol=1e-12)


def test_a_linear_kernel_has_no_more_atoms_than_dimensions():
    embedding = Embedding(Linear())
    chosen = embedding.extend(points(50))
    np.testing.assert_array_equal(chosen, [0, 1, 2])
    np.testing.assert_array_equal(embedding.extend(points(50, seed=1)), [])
    X = points(20, seed=2)
    Z = embedding.coordinates(X)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-12)


def test_the_zero_vector_spans_nothing():
    embedding = Embedding(Linear())
    np.testing.assert_array_equal(embedding.extend(np.zeros((2, 3))), [])
    assert len(embedding) == 0


def test_restore_goes_back_bit_for_bit():
    D, X = points(300), points(30, seed=1)
    embedding = Embedding(Laplace(1.0))
    nothing = embedding.mark()
    embedding.extend(D[:100])
    mark, before = embedding.mark(), embedding.coordinates(X)
    embedding.extend(points(250, seed=3))
    embedding.restore(mark)
    assert len(embedding) == 100
    np.testing.assert_array_equal(embedding.coordinates(X), before)
    embedding.extend(D[100:])
    undisturbed = filled(Laplace(1.0), D[:100])
    undisturbed.extend(D[100:])
    np.testing.assert_array_equal(embedding.coordinates(X), undisturbed.coordinates(X))
    embedding.restore(nothing)
    assert embedding.coordinates(X).shape == (30, 0)


def test_objects():
    kernel = FunctionKernel(lambda x, z: float(len(set(x) & set(z))))
    words = ["online", "kernel", "newton", "step", "sketch"]
    embedding = filled(kernel, words)
    Z = embedding.coordinates(words)
    np.testing.assert_allclose(Z @ Z.T, kernel.gram(words), atol=1e-12)
    np.testing.assert_array_equal(embedding.extend(["penstock", "kernel"]), [0])
