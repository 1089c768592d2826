"""What every kernel promises, whichever it is."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import effort
import kons.kernels
from kons.errors import InputError
from kons.kernels import (
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RationalQuadratic,
    ScikitLearn,
)


def inner(x, z):
    return float(np.dot(x, z))


KERNELS = [
    Gaussian(),
    Gaussian(bandwidth=0.3),
    Laplace(bandwidth=2.0),
    Matern(smoothness=0.5),
    Matern(bandwidth=0.7, smoothness=1.5),
    Matern(bandwidth=3.0, smoothness=2.5),
    RationalQuadratic(),
    RationalQuadratic(bandwidth=0.5, mixture=0.2),
    Linear(),
    Polynomial(),
    Polynomial(degree=3, offset=0.0),
    Normalized(Polynomial(degree=5)),
    Normalized(Linear()),
    Gaussian() + Linear(),
    Gaussian() * Polynomial(),
    2.5 * Laplace(),
    0.5 * Gaussian() * Gaussian(bandwidth=4.0) + Normalized(Linear()) * 3,
    FunctionKernel(inner),
    Normalized(FunctionKernel(inner)),
    ScikitLearn(ConstantKernel(2.0) * RBF(0.5)),
    ScikitLearn("laplacian", gamma=0.4),
    ScikitLearn("polynomial", degree=2, gamma=0.5, coef0=1.0),
    ScikitLearn("cosine"),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def points(rows, features=3, scale=1.0, seed=0):
    return scale * np.random.default_rng(seed).normal(size=(rows, features))


@given(
    kernel=st.sampled_from(KERNELS),
    rows=st.integers(1, 30),
    features=st.sampled_from([1, 2, 3, 5, 8, 70]),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3]),
    duplicated=st.booleans(),
    seed=st.integers(0, 2**16),
)
@effort.examples(60)
def test_symmetric_and_positive_semidefinite(kernel, rows, features, scale, duplicated, seed):
    X = points(rows, features, scale, seed)
    if duplicated:
        X = np.concatenate([X, X])
    K = kernel.gram(X)
    magnitude = np.abs(K).max()
    np.testing.assert_allclose(K, K.T, rtol=1e-13, atol=1e-15 * magnitude)
    eigenvalues = np.linalg.eigvalsh((K + K.T) / 2)
    assert eigenvalues[0] >= -1e-13 * len(X) * max(eigenvalues[-1], magnitude)


@every_kernel
def test_diagonal_is_the_diagonal_of_gram(kernel):
    for features in (1, 3, 70):
        X = points(11, features)
        X[4] = 0.0
        diagonal = kernel.diagonal(X)
        assert diagonal.shape == (11,)
        np.testing.assert_allclose(diagonal, np.diagonal(kernel.gram(X)), rtol=1e-14, atol=0)
        np.testing.assert_allclose(diagonal, np.diagonal(kernel.gram(X, X.copy())), rtol=1e-13, atol=1e-15)


@every_kernel
def test_flags_tell_the_truth(kernel):
    X = points(9)
    X[0] = 0.0
    diagonal = kernel.diagonal(X)
    if kernel.is_normalized:
        assert (diagonal == 1.0).all()
    if not kernel.may_vanish:
        assert diagonal.min() > 0.0
    assert kernel.accepts in ("vectors", "objects")


@every_kernel
def test_a_part_agrees_with_the_whole(kernel):
    X, Z = points(200), points(200, seed=1)
    whole = kernel.gram(X, Z)
    for n, m in ((1, 1), (1, 7), (7, 1), (1, 200), (200, 1), (7, 200)):
        part = kernel.gram(X[:n], Z[:m])
        assert part.shape == (n, m)
        np.testing.assert_allclose(part, whole[:n, :m], rtol=1e-13, atol=1e-14)


@every_kernel
def test_gram_is_fresh_writable_and_contiguous(kernel):
    X = points(9)
    before = X.copy()
    for values in (kernel.gram(X), kernel.gram(X, X[:2]), kernel.diagonal(X)):
        assert values.dtype == np.float64
        assert values.flags.writeable
        assert values.flags.c_contiguous
        again = values.copy()
        values[...] = -7.0
        assert (again != -7.0).any()
    np.testing.assert_array_equal(X, before)
    assert (kernel.gram(X) != -7.0).any()


@every_kernel
@pytest.mark.parametrize("features", [3, 70])
def test_values_can_be_put_where_there_is_room(kernel, features):
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (3, 40), (40, 3), (90, 120)):
        X, Z = rng.normal(size=(n, features)), rng.normal(size=(m, features))
        out = np.full((n, m + 2), 7.0)
        kernel.evaluate_into(X, Z, out)
        np.testing.assert_array_equal(out[:, :m], kernel.evaluate(X, Z))
        assert (out[:, m:] == 7.0).all()


@every_kernel
def test_swapping_the_points_transposes(kernel):
    X, Z = points(20), points(9, seed=1)
    np.testing.assert_allclose(kernel.gram(X, Z), kernel.gram(Z, X).T, rtol=1e-13, atol=1e-14)


@every_kernel
def test_value_semantics(kernel):
    twin = pickle.loads(pickle.dumps(kernel))
    deep = copy.deepcopy(kernel)
    X = points(4)
    assert twin == kernel == deep
    assert hash(twin) == hash(kernel) == hash(deep)
    assert repr(twin) == repr(kernel)
    np.testing.assert_array_equal(twin.gram(X), kernel.gram(X))
    with pytest.raises(AttributeError):
        kernel.bandwidth = 2.0


def test_kernels_differ_by_class_and_parameters():
    assert len({*KERNELS}) == len(KERNELS)
    assert Gaussian(1) == Gaussian(1.0)
    assert Gaussian() != Laplace()


def test_reprs_are_code():
    for kernel in KERNELS:
        namespace = {**vars(kons.kernels), "inner": inner, "RBF": RBF}
        if isinstance(kernel, ScikitLearn) and not isinstance(kernel.kernel, str):
            assert repr(kernel) == "ScikitLearn(1.41**2 * RBF(length_scale=0.5))"
        else:
            assert eval(repr(kernel), namespace) == kernel
    assert repr(Gaussian()) == "Gaussian(bandwidth=1.0)"
    assert repr(Matern(2)) == "Matern(bandwidth=2.0, smoothness=1.5)"
    assert repr(ScikitLearn("chi2", gamma=1)) == "ScikitLearn('chi2', gamma=1.0)"


def test_front_door_is_sorted_and_complete():
    assert kons.kernels.__all__ == sorted(kons.kernels.__all__)
    for name in kons.kernels.__all__:
        assert getattr(kons.kernels, name).__doc__


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), Linear(), ScikitLearn(RBF())], ids=repr)
def test_gram_takes_what_people_have(kernel):
    X = np.round(points(12, 4), 2).astype(np.float32).astype(np.float64)
    expected = kernel.gram(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    every_other = np.repeat(X, 2, axis=0)[::2]
    for same in (read_only, X.astype(np.float32), np.asfortranarray(X), every_other, X.tolist()):
        np.testing.assert_array_equal(kernel.gram(same), expected)
        np.testing.assert_array_equal(kernel.gram(X, same), kernel.gram(X, X.copy()))
    np.testing.assert_array_equal(Linear().gram([[1, 2], [3, 4]], [[True, False]]), [[1.0], [3.0]])


@pytest.mark.parametrize(
    ("X", "Z", "message"),
    [
        ([[1.0, 2.0]], [[1.0]], r"Z has 1 feature\(s\), X has 2"),
        ([[1.0], [np.nan]], None, r"X\[1\]\[0\] is nan"),
        ([[1.0]], [[np.inf]], r"Z\[0\]\[0\] is inf"),
        ({"a": 1.0}, None, "X is a dict"),
        ([1.0, 2.0], None, r"X has 1 dimension\(s\)"),
        ([[1.0]], [["a"]], r"Z holds .*'a'"),
        (np.empty((0, 2)), None, "X has no rows"),
    ],
)
@pytest.mark.parametrize("kernel", [Gaussian(), Linear() + Laplace()], ids=repr)
def test_gram_refuses_bad_points(kernel, X, Z, message):
    with pytest.raises(InputError, match=message):
        kernel.gram(X, Z)


def test_diagonal_refuses_bad_points():
    with pytest.raises(InputError, match=r"X\[0\]\[1\] is nan"):
        Gaussian().diagonal([[0.0, np.nan]])
