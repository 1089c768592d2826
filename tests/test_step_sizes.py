"""Step sizes: the paper's formulas, functions of the user's own, and what is refused."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kons import step_sizes
from kons.errors import ConfigurationError
from kons.losses import CustomLoss, Logistic, Squared, SquaredHinge
from kons.step_sizes import Constant, FromFunction, InverseSqrt, StepSize, as_step_size, for_loss

NO_STEP_SIZE = [0, -1.0, math.nan, math.inf, "0.1", None, True, np.True_, 1j]

positive = st.floats(1e-3, 1e3)
counts = st.integers(1, 10**9)


def harmonic(t):
    return 1 / t


@dataclass
class Constants:
    """The constants of some loss, and nothing else of it."""

    L: float
    sigma: float

    def lipschitz(self, bound):
        return self.L * bound

    def curvature(self, bound):
        return self.sigma / bound


@given(lipschitz=positive, bound=positive, dimension=positive, t=counts)
def test_inverse_sqrt_is_the_formula_of_the_paper(lipschitz, bound, dimension, t):
    eta = InverseSqrt(lipschitz, bound, dimension)(t)
    assert eta == pytest.approx(math.sqrt(dimension / (lipschitz**2 * bound**2 * t)), rel=1e-12)


@given(t=counts)
def test_dimension_one_is_the_choice_of_theorem_1(t):
    assert InverseSqrt(4.0, 2.0)(t) == pytest.approx(1 / (4.0 * 2.0 * math.sqrt(t)), rel=1e-12)


def test_constant_is_constant():
    assert Constant(0.125)(1) == Constant(0.125)(10**12) == 0.125


@pytest.mark.parametrize(
    "step_size", [Constant(0.3), InverseSqrt(3.0, 0.7, 5.0), FromFunction(harmonic)], ids=repr
)
def test_arrays_and_single_rows_agree_bit_for_bit(step_size):
    t = np.arange(1, 200)
    etas = step_size(t)
    assert etas.dtype == np.float64
    assert etas.tolist() == [step_size(int(row)) for row in t]
    assert step_size(t.reshape(-1, 1)).shape == (199, 1)
    assert step_size(t[:0]).shape == (0,)
    assert step_size(t.astype(np.uint8)).tolist() == etas.tolist()
    assert type(step_size(5)) is float
    assert type(step_size(np.int64(5))) is float
    assert step_size(np.array(5)) == step_size(5)


@pytest.mark.parametrize("t", [0, -3, 1.0, 2.5, "1", None, True, np.array(0), [1, 2]])
def test_rows_are_counted_from_one(t):
    with pytest.raises(ConfigurationError, match="expected an integer of at least 1"):
        Constant(0.1)(t)


@pytest.mark.parametrize("t", [np.array([1, 0]), np.array([1.0]), np.array([True])])
def test_arrays_of_rows_are_counted_from_one(t):
    with pytest.raises(ConfigurationError, match="expected integers of at least 1"):
        InverseSqrt(1.0, 1.0)(t)


@pytest.mark.parametrize("value", NO_STEP_SIZE, ids=repr)
def test_numbers_that_are_no_step_size_are_refused(value):
    with pytest.raises(ConfigurationError, match="value is"):
        Constant(value)
    with pytest.raises(ConfigurationError, match="step_size is"):
        as_step_size(value)
    for name in ("lipschitz", "bound", "dimension"):
        parameters = {"lipschitz": 1.0, "bound": 1.0, "dimension": 1.0, name: value}
        with pytest.raises(ConfigurationError, match=f"{name} is"):
            InverseSqrt(**parameters)


def test_as_step_size():
    assert as_step_size(2) == Constant(2.0)
    assert as_step_size(np.float32(0.5)) == Constant(0.5)
    falling = InverseSqrt(1.0, 1.0)
    assert as_step_size(falling) is falling
    assert as_step_size(harmonic) == FromFunction(harmonic)
    assert as_step_size(harmonic)(np.array([1, 2, 4])).tolist() == [1.0, 0.5, 0.25]


def test_a_class_is_not_a_step_size():
    with pytest.raises(ConfigurationError, match=r"Pass Constant\(\.\.\.\)\?"):
        as_step_size(Constant)


@pytest.mark.parametrize("function", [None, 0.5, "harmonic"])
def test_from_function_needs_a_function(function):
    with pytest.raises(ConfigurationError, match=r"function is .*, expected a callable"):
        FromFunction(function)


def test_a_function_is_called_with_one_python_integer_at_a_time():
    seen = []

    def function(t):
        seen.append(t)
        return 1.0

    FromFunction(function)(np.array([2, 3]))
    assert seen == [1, 2, 3]  # the 1 is the check at construction
    assert all(type(t) is int for t in seen)


@pytest.mark.parametrize("value", NO_STEP_SIZE, ids=repr)
def test_results_of_a_function_are_checked(value):
    with pytest.raises(ConfigurationError, match=r"step_size\(1\) is"):
        as_step_size(lambda t: value)
    late = as_step_size(lambda t: value if t == 7 else 1.0)
    assert late(6) == 1.0
    with pytest.raises(ConfigurationError, match=r"step_size\(7\) is .*expected a finite number"):
        late(np.arange(1, 10))


def test_a_function_that_raises_is_named_with_its_row():
    with pytest.raises(ConfigurationError, match=r"step_size\(1\) raised ZeroDivisionError"):
        as_step_size(lambda t: 1 / (t - 1))


def test_the_paper_takes_sigma_where_there_is_one():
    assert for_loss(Squared(), 2.0) == Constant(1 / 32)
    assert for_loss(Logistic(), 1.0) == Constant(math.exp(-1))
    assert for_loss(SquaredHinge(), 1) == Constant(0.125)
    assert for_loss(Constants(L=2.0, sigma=0.5), 4.0) == Constant(0.125)


def test_the_paper_takes_an_inverse_square_root_where_there_is_none():
    absolute = CustomLoss(lambda p, y: abs(p - y), lambda p, y: np.sign(p - y))
    assert for_loss(absolute, 3.0) == InverseSqrt(lipschitz=1.0, bound=3.0)
    assert for_loss(Constants(L=2.0, sigma=0.0), 4.0) == InverseSqrt(8.0, 4.0)


@pytest.mark.parametrize("bound", [0, -1, math.nan, "1", True])
def test_for_loss_refuses_what_is_no_bound(bound):
    with pytest.raises(ConfigurationError, match="bound is"):
        for_loss(Squared(), bound)


@pytest.mark.parametrize(
    ("loss", "message"),
    [(Constants(1.0, -1.0), "curvature is"), (Constants(0.0, 0.0), "lipschitz is")],
)
def test_for_loss_refuses_constants_that_are_none(loss, message):
    with pytest.raises(ConfigurationError, match=message):
        for_loss(loss, 1.0)


@pytest.mark.parametrize(
    ("step_size", "text"),
    [
        (Constant(0.125), "Constant(value=0.125)"),
        (InverseSqrt(2, 1), "InverseSqrt(lipschitz=2.0, bound=1.0, dimension=1.0)"),
        (FromFunction(harmonic), "FromFunction(function=harmonic)"),
    ],
)
def test_step_sizes_are_immutable_values(step_size, text):
    assert repr(step_size) == text
    assert pickle.loads(pickle.dumps(step_size)) == step_size
    assert len({step_size, pickle.loads(pickle.dumps(step_size))}) == 1
    assert isinstance(step_size, StepSize)
    with pytest.raises(FrozenInstanceError):
        step_size.value = 1.0


def test_public_names_exist():
    assert all(hasattr(step_sizes, name) for name in step_sizes.__all__)
    assert step_sizes.__all__ == sorted(step_sizes.__all__)
