"""FunctionKernel: any function on any objects."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

from kons.errors import ConfigurationError, InputError, NumericalError
from kons.kernels import FunctionKernel, Normalized

WORDS = ["online", "offline", "line", "kernel", "kernels"]


def bigrams(word):
    return [word[i : i + 2] for i in range(len(word) - 1)]


def common_bigrams(x, z):
    return sum(bigrams(z).count(pair) for pair in bigrams(x))


def squared_length(x):
    return float(common_bigrams(x, x))


def test_strings():
    K = FunctionKernel(common_bigrams).gram(WORDS)
    vocabulary = sorted({pair for word in WORDS for pair in bigrams(word)})
    counts = np.array([[bigrams(word).count(pair) for pair in vocabulary] for word in WORDS])
    np.testing.assert_array_equal(K, counts @ counts.T)
    np.testing.assert_array_equal(FunctionKernel(common_bigrams).gram(WORDS, WORDS[:2]), K[:, :2])
    np.testing.assert_array_equal(FunctionKernel(common_bigrams).diagonal(WORDS), K.diagonal())


def test_normalized_strings():
    k = Normalized(FunctionKernel(common_bigrams))
    assert k.accepts == "objects"
    np.testing.assert_array_equal(k.diagonal(["line", ""]), [1.0, 0.0])
    np.testing.assert_array_equal(k.gram(["line", ""]), [[1.0, 0.0], [0.0, 0.0]])


def test_each_pair_of_one_list_is_computed_once():
    seen = []
    kernel = FunctionKernel(lambda x, z: seen.append((x, z)) or float(x * z))
    np.testing.assert_array_equal(kernel.gram([1, 2, 3]), np.outer([1, 2, 3], [1, 2, 3]))
    assert len(seen) == len({frozenset(pair) for pair in seen}) == 6
    seen.clear()
    kernel.gram([1, 2, 3], [1, 2, 3])
    assert len(seen) == 9


def test_the_diagonal_function_is_used():
    kernel = FunctionKernel(lambda x, z: 1 / 0, diagonal=squared_length)
    np.testing.assert_array_equal(kernel.diagonal(WORDS), [squared_length(w) for w in WORDS])


@pytest.mark.parametrize("value", [1, 1.0, True, np.float32(1), np.int8(1), np.True_, Fraction(1)])
def test_all_real_numbers_will_do(value):
    np.testing.assert_array_equal(FunctionKernel(lambda x, z: value).gram(["ab"]), [[1.0]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "1", 1j, np.ones(1), 10**400], ids=repr)
def test_what_is_no_finite_number_is_an_error_with_the_pair(value):
    def strange(x, z):
        return value if z == "second" else 1.0

    kernel = FunctionKernel(strange, diagonal=lambda x: value)
    with pytest.raises(NumericalError, match=r"strange\('first', 'second'\) returned .*expected a"):
        kernel.gram(["first"], ["first", "second"])
    with pytest.raises(NumericalError, match=r"<lambda>\('first'\) returned"):
        kernel.diagonal(["first"])


def test_long_objects_are_named_shortly():
    with pytest.raises(NumericalError) as caught:
        FunctionKernel(lambda x, z: None).gram(["a" * 10_000])
    assert len(str(caught.value)) < 300


def test_arrays_as_objects():
    rows = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(FunctionKernel(np.dot).gram(rows), rows @ rows.T)


def test_the_functions_own_errors_pass():
    with pytest.raises(ZeroDivisionError):
        FunctionKernel(lambda x, z: x / z).gram([0.0])


@pytest.mark.parametrize(
    ("X", "message"),
    [("word", "X is one str"), ({"a": 1}, "X is a dict"), ([], "no rows"), (3, "int")],
)
def test_points_must_be_a_sequence(X, message):
    with pytest.raises(InputError, match=message):
        FunctionKernel(common_bigrams).gram(X)


def test_functions_must_be_callable():
    with pytest.raises(ConfigurationError, match=r"got 3, expected a function of two objects"):
        FunctionKernel(3)
    with pytest.raises(ConfigurationError, match=r"diagonal is 1.0, expected a function of one"):
        FunctionKernel(common_bigrams, diagonal=1.0)


def test_value_semantics():
    kernel = FunctionKernel(common_bigrams, diagonal=squared_length)
    assert repr(kernel) == "FunctionKernel(common_bigrams, diagonal=squared_length)"
    assert pickle.loads(pickle.dumps(kernel)) == kernel == copy.deepcopy(kernel)
    assert kernel != FunctionKernel(common_bigrams)
    assert hash(kernel) == hash(FunctionKernel(common_bigrams, squared_length))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(FunctionKernel(lambda x, z: 1.0))
