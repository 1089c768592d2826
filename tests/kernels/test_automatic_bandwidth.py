"""bandwidth="auto": nothing can be evaluated before it is filled in, everywhere it stands."""

import pickle

import pytest

from kons import KONS, EmbeddedKONS, Squared
from kons.errors import ConfigurationError
from kons.kernels import (
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Multiple,
    Normalized,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
)

KERNELS = [
    Gaussian("auto"),
    Laplace("auto"),
    Matern("auto", smoothness=2.5),
    RationalQuadratic("auto", mixture=2.0),
]
X = [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_unresolved_kernels_say_what_to_do(kernel):
    assert not kernel.is_resolved
    assert kernel.is_normalized
    assert kernel.squared_exponential_rate is None
    for evaluate in (kernel.gram, kernel.diagonal, (2.0 * kernel + Linear()).gram, Normalized(kernel).gram):
        with pytest.raises(ConfigurationError, match=r"no bandwidth yet: wrap the learner in kons\.Scaled"):
            evaluate(X)
    assert repr(kernel).startswith(f"{type(kernel).__name__}(bandwidth='auto'")
    assert pickle.loads(pickle.dumps(kernel)) == kernel


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_number_resolves(kernel):
    resolved = kernel.resolved(3.0)
    assert resolved.is_resolved
    assert resolved.bandwidth == 3.0
    assert resolved.resolved(9.0) is resolved
    rest = {"smoothness", "mixture"} & vars(kernel).keys()
    assert all(getattr(resolved, name) == getattr(kernel, name) for name in rest)


def test_absolute_differences_have_their_own():
    kernel = Gaussian("auto") + Laplace("auto")
    assert kernel.resolved(3.0, 7.0) == Gaussian(3.0) + Laplace(7.0)
    assert kernel.resolved(3.0) == Gaussian(3.0) + Laplace(3.0)


def test_everywhere_it_stands():
    kernel = 2.0 * (Gaussian("auto") * Normalized(Matern("auto") + Polynomial())) + Gaussian(5.0)
    assert not kernel.is_resolved
    expected = Sum(
        Multiple(2.0, Product(Gaussian(4.0), Normalized(Sum(Matern(4.0), Polynomial())))), Gaussian(5.0)
    )
    assert kernel.resolved(4.0) == expected
    assert expected.is_resolved
    assert expected.resolved(1.0) is expected


def test_other_kernels_are_resolved():
    for kernel in (Linear(), Polynomial(), FunctionKernel(min)):
        assert kernel.is_resolved
        assert kernel.resolved(2.0) is kernel


@pytest.mark.parametrize("learner", [KONS, EmbeddedKONS])
def test_a_learner_with_one_refuses_its_first_row(learner):
    model = learner(Gaussian("auto"), Squared())
    for refused in (lambda: model.learn_one(X[0], 0.5), lambda: model.advance(X, [0.5, 0.5])):
        with pytest.raises(ConfigurationError, match="no bandwidth yet"):
            refused()
    assert model.rows_seen == 0


def test_other_words_are_no_bandwidth():
    with pytest.raises(ConfigurationError, match="bandwidth is 'Auto'"):
        Gaussian("Auto")
