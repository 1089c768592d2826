"""ScikitLearn: their kernels under our contract."""

import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    WhiteKernel,
)
from sklearn.metrics.pairwise import pairwise_kernels

from kons.errors import ConfigurationError, InputError, MissingExtraError, NumericalError
from kons.kernels import Gaussian, Laplace, Linear, Normalized, Polynomial, ScikitLearn

RNG = np.random.default_rng(0)
X = RNG.random((100, 3))
Z = RNG.random((7, 3))


@pytest.mark.parametrize(
    "theirs",
    [
        RBF([0.5, 1.0, 2.0]),
        Matern(nu=0.7),
        2.0 * ExpSineSquared() + DotProduct(),
        ConstantKernel(3.0),
        PairwiseKernel(metric="chi2"),
    ],
    ids=repr,
)
def test_instances(theirs):
    kernel = ScikitLearn(theirs)
    np.testing.assert_array_equal(kernel.gram(X, Z), theirs(X, Z))
    np.testing.assert_allclose(kernel.diagonal(X), theirs.diag(X), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("chi2", {"gamma": 0.7}),
        ("cosine", {}),
        ("laplacian", {}),
        ("linear", {}),
        ("poly", {"degree": 3, "coef0": 0.5}),
        ("polynomial", {"gamma": 0.3}),
        ("rbf", {"gamma": None}),
    ],
)
def test_names(name, parameters):
    kernel = ScikitLearn(name, **parameters)
    expected = pairwise_kernels(X, Z, metric=name, **parameters)
    np.testing.assert_array_equal(kernel.gram(X, Z), expected)
    np.testing.assert_allclose(kernel.diagonal(X), kernel.gram(X).diagonal(), rtol=1e-13)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(0.5), ScikitLearn("rbf", gamma=2.0)),
        (Laplace(0.5), ScikitLearn("laplacian", gamma=2.0)),
        (Linear(), ScikitLearn("linear")),
        (Polynomial(3, 0.5), ScikitLearn("poly", degree=3, gamma=1.0, coef0=0.5)),
        (Normalized(Linear()), ScikitLearn("cosine")),
    ],
    ids=repr,
)
def test_the_conventions_in_our_docstrings(ours, theirs):
    np.testing.assert_allclose(ours.gram(X, Z), theirs.gram(X, Z), rtol=1e-12)


def test_flags():
    assert ScikitLearn(RBF()).is_normalized
    assert ScikitLearn("chi2").is_normalized
    assert not ScikitLearn(2.0 * RBF()).is_normalized
    assert not ScikitLearn("cosine").is_normalized


def test_later_changes_of_their_kernel_do_not_matter():
    theirs = RBF(1.0)
    kernel = ScikitLearn(theirs)
    before = kernel.gram(X)
    theirs.set_params(length_scale=9.0)
    np.testing.assert_array_equal(kernel.gram(X), before)
    assert kernel == ScikitLearn(RBF(1.0)) != ScikitLearn(theirs)


@pytest.mark.parametrize(
    "theirs", [WhiteKernel(), RBF() + WhiteKernel(0.1), (2.0 * (RBF() + WhiteKernel())) ** 2]
)
def test_white_noise_is_refused(theirs):
    with pytest.raises(ConfigurationError, match=r"contains a WhiteKernel.*regularization"):
        ScikitLearn(theirs)


def test_several_kernels_at_once_are_refused():
    with pytest.raises(ConfigurationError, match="a CompoundKernel of several"):
        ScikitLearn(CompoundKernel([RBF(), RBF(2.0)]))


def test_what_is_not_semidefinite_is_refused():
    for name in ("sigmoid", "additive_chi2", "euclidean"):
        with pytest.raises(ConfigurationError, match=f"name '{name}', expected a positive semi"):
            ScikitLearn(name)
    with pytest.raises(ConfigurationError, match=r"metric 'sigmoid' is not positive semidefinite"):
        ScikitLearn(2.0 * PairwiseKernel(metric="sigmoid"))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("rbf", {"degree": 2}, r"ScikitLearn\('rbf'\) got degree, expected gamma"),
        ("linear", {"gamma": 2}, "got gamma, expected no parameter"),
        ("rbf", {"gamma": 0.0}, "gamma is 0.0, expected a finite number above 0"),
        ("poly", {"degree": 2.5}, "degree is 2.5, expected an integer"),
        ("poly", {"coef0": -1}, "coef0 is -1, expected a finite number at least 0"),
    ],
)
def test_bad_parameters(name, parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        ScikitLearn(name, **parameters)


def test_parameters_belong_to_the_instance():
    with pytest.raises(ConfigurationError, match="gamma: set parameters on the kernel itself"):
        ScikitLearn(RBF(), gamma=2.0)


@pytest.mark.parametrize("wrong", [RBF, 3, len, Gaussian()])
def test_other_things_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="expected an instance from sklearn"):
        ScikitLearn(wrong)


def test_their_objections_become_input_errors():
    with pytest.raises(InputError, match=r"ScikitLearn\('chi2'\) refused the points: .*negative"):
        ScikitLearn("chi2").gram([[-1.0]])


@pytest.mark.parametrize("kernel", [ScikitLearn("linear"), ScikitLearn(DotProduct())], ids=repr)
def test_overflow_is_an_error(kernel):
    with pytest.raises(NumericalError, match=r"is inf at the pair of rows \(0, 0\)"):
        kernel.gram([[1e200]])
    with pytest.raises(NumericalError, match=r"is inf at the pair of rows \(0, 0\)"):
        kernel.diagonal([[1e200]])


def test_a_kernel_that_keeps_its_array_is_copied():
    class Keeping(ConstantKernel):
        kept = np.ones((100, 7))

        def __call__(self, X, Y=None, eval_gradient=False):
            return self.kept

    assert issubclass(Keeping, Kernel)
    ScikitLearn(Keeping()).gram(X, Z)[...] = 5.0
    assert (Keeping.kept == 1.0).all()


def test_without_scikit_learn(monkeypatch):
    for name in ("sklearn", "sklearn.gaussian_process.kernels", "sklearn.metrics.pairwise"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kons\[sklearn\]'"):
        ScikitLearn("rbf")
