"""The losses: formulas, the constants of Assumptions 1 and 2, targets, and a user's own losses."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

import effort
from kons import losses
from kons.errors import ConfigurationError, NumericalError, TargetError
from kons.losses import CustomLoss, Hinge, Logistic, Squared, SquaredHinge, builtin
from kons.losses.builtin import implicit_slope, second_derivative_of, slope_of
from kons.step_sizes import InverseSqrt, for_loss

CURVED = [Squared(), Logistic(), SquaredHinge()]
BUILT_IN = [*CURVED, Hinge()]
BOUNDS = [0.2, 0.7, 1.0, 1.5, 3.0, 10.0]

# The losses again, as a textbook writes them: the referee of value, slope and constants.
TEXTBOOK = {
    Squared(): (lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y)),
    Logistic(): (
        lambda p, y: np.log1p(np.exp(-y * p)),
        lambda p, y: -y / (1 + np.exp(y * p)),
    ),
    SquaredHinge(): (
        lambda p, y: np.maximum(0, 1 - y * p) ** 2,
        lambda p, y: -2 * y * np.maximum(0, 1 - y * p),
    ),
    Hinge(): (lambda p, y: np.maximum(0, 1 - y * p), lambda p, y: np.where(y * p < 1, -y, 0.0)),
}

predictions = st.floats(-20, 20)
labels = st.sampled_from([-1.0, 1.0])


def targets_for(loss, bound):
    return np.linspace(-bound, bound, 41) if isinstance(loss, Squared) else np.array([-1.0, 1.0])


def dense_grid(bound):
    """Evenly spaced, with extra points near both ends, where the infimum of a ratio is a limit."""
    near = np.array([1e-3, 2e-3, 4e-3]) * bound
    return np.unique(np.concatenate([np.linspace(-bound, bound, 301), -bound + near, bound - near]))


def smallest_ratio(loss, bound):
    """min 2 (l(w) - l(u) - l'(u)(w - u)) / (l'(u)(w - u))^2: the largest sigma the grid allows."""
    value, slope = TEXTBOOK[loss]
    u = dense_grid(bound)
    smallest = math.inf
    for y in targets_for(loss, bound):
        rise = slope(u, y)[:, None] * (u[None, :] - u[:, None])
        gap = value(u, y)[None, :] - value(u, y)[:, None] - rise
        matters = np.abs(rise) > 1e-7 * bound
        smallest = min(smallest, (2 * gap[matters] / rise[matters] ** 2).min())
    return smallest


# --- The built-in losses --------------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("loss", CURVED, ids=repr)
def test_curvature_is_the_largest_sigma_of_assumption_2(loss, bound):
    sigma = loss.curvature(bound)
    smallest = smallest_ratio(loss, bound)
    assert smallest >= sigma * (1 - 1e-5), "Assumption 2 fails at sigma"
    assert smallest < sigma * 1.01, "Assumption 2 still holds at 1.01 sigma"


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_hinge_has_no_curvature(bound):
    assert Hinge().curvature(bound) == 0.0
    assert abs(smallest_ratio(Hinge(), bound)) < 1e-6  # two points of its straight line, to rounding
    assert not Hinge().has_second_derivative
    assert for_loss(Hinge(), bound) == InverseSqrt(1.0, bound)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_lipschitz_is_the_largest_slope(loss, bound):
    _, slope = TEXTBOOK[loss]
    largest = max(np.abs(slope(dense_grid(bound), y)).max() for y in targets_for(loss, bound))
    assert loss.lipschitz(bound) == pytest.approx(largest, rel=1e-12)


@given(bound=st.floats(1e-3, 1e3))
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_constants_respect_their_universal_relation(loss, bound):
    # sigma <= 4/(LC) for every loss: what the numerical search takes as its unit.
    assert 0 <= loss.curvature(bound) * loss.lipschitz(bound) * bound <= 4


def test_curvature_of_squared_hinge_is_continuous_where_its_formula_changes():
    loss = SquaredHinge()
    assert loss.curvature(1.0) == 0.125
    assert loss.curvature(1 + 1e-9) == pytest.approx(0.125, rel=1e-8)


def test_squared_loss_has_no_one_half():
    loss = Squared()
    assert loss.value(3.0, 1.0) == 4.0
    assert loss.slope(3.0, 1.0) == 4.0
    assert loss.second_derivative(3.0, 1.0) == 2.0


@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_value_and_slope_are_the_textbook_formulas(loss):
    value, slope = TEXTBOOK[loss]
    p = np.linspace(-5, 5, 101)[:, None]
    y = targets_for(loss, 5.0)[None, :]
    np.testing.assert_allclose(loss.value(p, y), value(p, y), rtol=1e-12)
    np.testing.assert_allclose(loss.slope(p, y), slope(p, y), rtol=1e-12)


@given(p=st.floats(-5, 5), y=labels)
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_derivatives_agree_with_central_differences(loss, p, y):
    h = 1e-5
    assume(not isinstance(loss, SquaredHinge | Hinge) or abs(y * p - 1) > h)  # there is a kink
    difference = (loss.value(p + h, y) - loss.value(p - h, y)) / (2 * h)
    assert loss.slope(p, y) == pytest.approx(difference, rel=1e-6, abs=1e-8)
    difference = (loss.slope(p + h, y) - loss.slope(p - h, y)) / (2 * h)
    assert loss.second_derivative(p, y) == pytest.approx(difference, rel=1e-6, abs=1e-8)


@given(u=predictions, w=predictions, y=labels)
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_losses_lie_above_their_tangents(loss, u, w, y):
    tangent = loss.value(u, y) + loss.slope(u, y) * (w - u)
    assert loss.value(w, y) >= tangent - 1e-11 * (1 + abs(tangent))
    assert loss.second_derivative(u, y) >= 0


def test_second_derivative_at_the_kink_of_the_squared_hinge_is_zero():
    assert SquaredHinge().second_derivative(1.0, 1.0) == 0.0
    assert SquaredHinge().second_derivative(np.nextafter(1.0, 0.0), 1.0) == 2.0


@pytest.mark.parametrize("margin", [40.0, 745.0, 1e3, 1e6, 1e100])
def test_logistic_is_stable_at_extreme_margins(margin):
    loss = Logistic()
    for y in (-1.0, 1.0):
        right, wrong = y * margin, -y * margin
        assert loss.value(wrong, y) == margin
        assert loss.slope(wrong, y) == -y
        assert 0 <= loss.value(right, y) <= 1e-17
        assert 0 <= -y * loss.slope(right, y) <= 1e-17
        assert 0 <= loss.second_derivative(right, y) <= 1e-17
        assert loss.second_derivative(wrong, y) == loss.second_derivative(right, y)
    assert loss.value(700.0, 1.0) == pytest.approx(math.exp(-700), rel=1e-12)
    assert -loss.slope(700.0, 1.0) == pytest.approx(math.exp(-700), rel=1e-12)
    assert loss.lipschitz(margin) == 1.0
    assert loss.curvature(margin) == math.exp(-margin)


@given(p=st.floats(-1e3, 1e3), y=labels)
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_compiled_functions_and_methods_agree_bit_for_bit(loss, p, y):
    assert loss.value(p, y) == builtin.value_of(loss.code, p, y)
    assert loss.slope(p, y) == slope_of(loss.code, p, y)
    assert loss.second_derivative(p, y) == second_derivative_of(loss.code, p, y)


def test_codes_are_distinct_and_named():
    assert [loss.code for loss in BUILT_IN] == [
        builtin.SQUARED,
        builtin.LOGISTIC,
        builtin.SQUARED_HINGE,
        builtin.HINGE,
    ]
    assert len({loss.code for loss in BUILT_IN}) == 4


@pytest.mark.parametrize("method", ["value", "slope", "second_derivative"])
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_arrays_broadcast_and_equal_the_scalars(loss, method):
    evaluate = getattr(loss, method)
    p, y = np.linspace(-3, 3, 7), np.array([-1.0, 1.0])
    table = evaluate(p[:, None], y)
    assert table.shape == (7, 2)
    assert table.dtype == np.float64
    for i, j in np.ndindex(7, 2):
        assert table[i, j] == evaluate(float(p[i]), float(y[j]))
    assert type(evaluate(1, -1)) is float
    assert type(evaluate(np.float64(0.5), np.array(1.0))) is float
    assert evaluate(np.empty(0), 1.0).shape == (0,)
    assert evaluate(p[::-2], 1.0).tolist() == [evaluate(v, 1.0) for v in p[::-2].tolist()]


def test_evaluation_changes_no_argument():
    p, y = np.linspace(-1, 1, 5), np.ones(5)
    p.flags.writeable = y.flags.writeable = False
    for loss in BUILT_IN:
        loss.slope(p, y)
    np.testing.assert_array_equal(p, np.linspace(-1, 1, 5))


@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_losses_are_immutable_values(loss):
    assert repr(loss) == f"{type(loss).__name__}()"
    assert loss == type(loss)()
    assert hash(loss) == hash(type(loss)())
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert loss.has_second_derivative is (loss in CURVED)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        loss.code = 7


@pytest.mark.parametrize("bound", [0, -1.0, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize("loss", [*BUILT_IN, CustomLoss(lambda p, y: p, lambda p, y: 1.0)], ids=repr)
def test_bounds_that_are_no_bounds_are_refused(loss, bound):
    for method in (loss.lipschitz, loss.curvature):
        with pytest.raises(ConfigurationError, match="bound is"):
            method(bound)


def test_public_names_exist_and_are_sorted_as_written():
    assert all(hasattr(losses, name) for name in losses.__all__)
    assert len(set(losses.__all__)) == len(losses.__all__)


# --- Targets --------------------------------------------------------------------------------------


def test_squared_takes_targets_up_to_the_bound_and_its_rounding():
    Squared().check_targets([-1.0, 0.3, 1.0, 1.0 + 1e-12], 1.0)
    Squared().check_targets([], 1.0)


def test_squared_names_the_target_beyond_the_bound():
    message = (
        r"^y\[3\] is 1\.7, beyond bound=1: scale or centre the target, "
        r"or raise bound \(here to 2\.5\)\.$"
    )
    with pytest.raises(TargetError, match=message):
        Squared().check_targets([0.0, -1.0, 1.0, 1.7, -2.5], 1.0)


def test_a_target_that_is_barely_beyond_shows_its_digits():
    with pytest.raises(TargetError, match=r"y\[0\] is 1\.0000001, beyond bound=1"):
        Squared().check_targets([1.0000001], 1.0)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=repr)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 1], r"^y\[0\] is 0, expected -1 or \+1: map your labels, e\.g\. 2\*y-1\.$"),
        ([0], r"2\*y-1"),
        ([1, 2, 1], r"y\[1\] is 2, expected -1 or \+1: .* np\.where\(y == 2, 1, -1\)"),
        ([1, -1, 0.25], r"y\[2\] is 0\.25, expected -1 or \+1: .* use Squared\(\)"),
        ([math.nan], r"y\[0\] is nan"),
    ],
)
def test_labels_other_than_minus_and_plus_one_are_refused(loss, y, message):
    loss.check_targets([-1, 1, 1.0], 1.0)
    with pytest.raises(TargetError, match=message):
        loss.check_targets(y, 1.0)


def test_custom_loss_checks_the_targets_it_was_told():
    def value(p, y):
        return (p - y) ** 2

    def slope(p, y):
        return 2 * (p - y)

    within = CustomLoss(value, slope)
    within.check_targets([0.5, -1.0], 1.0)
    with pytest.raises(TargetError, match=r"y\[1\] is 2, beyond bound=1"):
        within.check_targets([0.5, 2.0], 1.0)
    counts = CustomLoss(value, slope, targets=range(3))
    counts.check_targets([0, 2, 1], 0.5)
    with pytest.raises(TargetError, match=r"y\[1\] is 3, expected one of 0, 1, 2: .*targets="):
        counts.check_targets([0, 3], 0.5)
    signs = CustomLoss(value, slope, targets=(-1, 1))
    with pytest.raises(TargetError, match=r"2\*y-1"):
        signs.check_targets([0, 1], 1.0)


# --- A loss of the user's own ---------------------------------------------------------------------


def absolute(p, y):
    return abs(p - y)


def absolute_slope(p, y):
    return np.sign(p - y)


def squared(p, y):
    return (p - y) ** 2


def squared_slope(p, y):
    return 2 * (p - y)


def logistic_scalar(p, y):
    return math.log1p(math.exp(-y * p))


def logistic_slope_scalar(p, y):
    return -y / (1 + math.exp(y * p))


def hinge_scalar(p, y):
    return max(0.0, 1 - y * p)


def hinge_slope_scalar(p, y):
    return -y if y * p < 1 else 0


def custom(loss, *, second_derivative):
    """The built-in loss, handed over as a stranger's."""
    value, slope = TEXTBOOK[loss]
    return CustomLoss(
        value,
        slope,
        loss.second_derivative if second_derivative else None,
        targets=None if isinstance(loss, Squared) else (-1, 1),
    )


@pytest.mark.parametrize("second_derivative", [False, True])
@pytest.mark.parametrize("bound", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_constants_found_are_the_known_ones_from_below(loss, bound, second_derivative):
    found = custom(loss, second_derivative=second_derivative)
    known = loss.curvature(bound)
    assert 0.88 * known <= found.curvature(bound) <= known
    assert found.lipschitz(bound) == pytest.approx(loss.lipschitz(bound), rel=1e-12)


@given(bound=st.floats(1e-3, 14.0))
def test_curvature_found_for_logistic_never_exceeds_the_true_one(bound):
    found = CustomLoss(*TEXTBOOK[Logistic()], targets=(-1, 1)).curvature(bound)
    assert 0.88 * math.exp(-bound) <= found <= math.exp(-bound)


@given(scale=st.floats(1e-6, 1e6), bound=st.sampled_from([1e-3, 1.0, 1e3]))
def test_constants_found_follow_the_unit_of_the_loss(scale, bound):
    # scale * l has slope L * scale and curvature sigma / scale
    hinge = SquaredHinge()
    scaled = CustomLoss(
        lambda p, y: scale * hinge.value(p, y),
        lambda p, y: scale * hinge.slope(p, y),
        targets=(-1, 1),
    )
    assert scaled.lipschitz(bound) == pytest.approx(scale * hinge.lipschitz(bound), rel=1e-12)
    assert scaled.curvature(bound) == pytest.approx(0.9 * hinge.curvature(bound) / scale, rel=0.01)


@effort.every_value(
    loss={
        "absolute": CustomLoss(absolute, absolute_slope),
        "with a second derivative": CustomLoss(
            lambda p, y: absolute(p, y) + 3.0, absolute_slope, lambda p, y: 0.0 * p
        ),
        "hinge": CustomLoss(hinge_scalar, hinge_slope_scalar, targets=(-1, 1)),
        "linear": CustomLoss(lambda p, y: p - y, lambda p, y: 1.0, name="linear"),
    },
    bound=[0.01, 1.0, 7.3, 1e4],
)
def test_straight_losses_have_curvature_exactly_zero(loss, bound):
    assert loss.curvature(bound) == 0.0
    assert loss.lipschitz(bound) == 1.0


def test_a_curvature_too_small_to_matter_is_zero():
    assert CustomLoss(*TEXTBOOK[Logistic()], targets=(-1, 1)).curvature(20.0) == 0.0


def test_huber_is_curved_inside_and_straight_outside():
    def huber(p, y):
        r = np.abs(p - y)
        return np.where(r <= 1, r**2 / 2, r - 0.5)

    def slope(p, y):
        return np.clip(p - y, -1, 1)

    loss = CustomLoss(huber, slope)
    assert loss.curvature(0.4) == pytest.approx(0.9 / 0.8**2, rel=0.01)
    assert loss.curvature(2.0) == 0.0


def test_callables_that_take_only_numbers_work():
    loss = CustomLoss(logistic_scalar, logistic_slope_scalar, targets=(-1, 1))
    assert 0.88 * math.exp(-2) <= loss.curvature(2.0) <= math.exp(-2)
    p = np.linspace(-2, 2, 6).reshape(2, 3)
    np.testing.assert_allclose(loss.slope(p, 1.0), Logistic().slope(p, 1.0), rtol=1e-12)
    assert loss.slope(np.array([0.0]), np.array([1.0])).tolist() == [-0.5]
    assert type(loss.value(0, 1)) is float
    assert loss.value(np.empty(0), 1.0).shape == (0,)


def test_vectorised_callables_are_called_once():
    calls = []

    def value(p, y):
        calls.append(np.shape(p))
        return (p - y) ** 2

    CustomLoss(value, squared_slope).value(np.zeros((3, 4)), 1.0)
    assert calls == [(12,)]


def test_callables_may_write_into_their_arguments():
    def value(p, y):
        p -= y
        p *= p
        return p

    def slope(p, y):
        p -= y
        p *= 2
        return p

    loss = CustomLoss(value, slope)
    assert loss.curvature(1.0) == pytest.approx(0.9 / 8)
    p = np.array([0.5, 1.0])
    loss.value(p, 0.0)
    assert p.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "result",
    [1, True, np.float32(1), np.array(1.0), np.array([1.0]), np.int64(1), Fraction(1)],
    ids=repr,
)
def test_a_number_in_any_dress_is_a_number(result):
    assert CustomLoss(lambda p, y: result, squared_slope).value(0.0, 0.0) == 1.0


@pytest.mark.parametrize(
    "result",
    [None, "1", b"1", 1j, math.nan, math.inf, [1.0, 2.0], 10**400, {}],
    ids=lambda result: str(result)[:8],
)
def test_what_is_no_finite_number_is_refused(result):
    loss = CustomLoss(squared, lambda p, y: result)
    message = r"slope\(prediction=0\.5, target=-1\) is .*expected a finite number"
    with pytest.raises(NumericalError, match=message):
        loss.slope(0.5, -1.0)
    with pytest.raises(NumericalError, match=message):
        loss.slope(np.array([0.5, 0.25, 0.0]), -1.0)


def test_overflow_and_exceptions_name_prediction_and_target():
    def overflow(p, y):
        return np.exp(p)

    message = r"value\(prediction=1000, target=0\) is (np\.float64\()?inf"
    with pytest.raises(NumericalError, match=message):
        CustomLoss(overflow, overflow).value(np.array([1.0, 1000.0]), 0.0)
    with pytest.raises(NumericalError, match=message):
        CustomLoss(overflow, overflow).value(1000.0, 0.0)
    loss = CustomLoss(lambda p, y: math.exp(p), lambda p, y: math.exp(p))
    with pytest.raises(NumericalError, match=r"value\(prediction=1000, .* raised OverflowError"):
        loss.value([1.0, 1000.0], 0.0)
    barrier = CustomLoss(lambda p, y: -math.log(p), lambda p, y: -1 / p, name="log")
    with pytest.raises(NumericalError, match=r"'log'\): value\(prediction=-1, target=-1\) raised"):
        barrier.curvature(1.0)


@pytest.mark.parametrize(
    ("value", "slope", "message"),
    [
        (squared, lambda p, y: 2 * (y - p), r"times -1 would fit: .* respect to the target"),
        (squared, lambda p, y: p - y, r"times 2 would fit: does the value lack a factor 1/2"),
        (
            lambda p, y: (p - y) ** 2 / 2,
            squared_slope,
            r"times 0\.5 would fit: does the value have a factor",
        ),
        (squared, lambda p, y: 2 * p, r"not its derivative with respect to the prediction"),
        (squared, lambda p, y: 0.0, r"not its derivative with respect to the prediction"),
        (squared, lambda p, y: 2.02 * (p - y), r"not its derivative"),
        (
            lambda p, y: -((p - y) ** 2),
            lambda p, y: -2 * (p - y),
            r"not convex in the prediction \(first argument\)",
        ),
        (lambda p, y: np.sin(3 * p), lambda p, y: 3 * np.cos(3 * p), r"not convex"),
        (lambda p, y: 1.0 * (p * y < 0), lambda p, y: 0.0, r"not convex"),
    ],
)
def test_wrong_slopes_and_losses_that_are_not_convex_are_diagnosed(value, slope, message):
    loss = CustomLoss(value, slope)
    with pytest.raises(ConfigurationError, match=message):
        loss.curvature(1.0)
    with pytest.raises(ConfigurationError, match=message):
        loss.lipschitz(1.0)


def test_the_diagnosis_says_where_and_what():
    loss = CustomLoss(squared, lambda p, y: p - y, name="half")
    message = r"'half'\): at target -?1, from prediction .* changes by .* where the slopes .* allow"
    with pytest.raises(ConfigurationError, match=message):
        loss.curvature(1.0)


def test_a_loss_without_slope_is_refused():
    zone = CustomLoss(
        lambda p, y: np.maximum(abs(p - y) - 5, 0), lambda p, y: np.sign(p - y) * (abs(p - y) > 5)
    )
    with pytest.raises(ConfigurationError, match=r"slope is 0 for every prediction .*Raise bound"):
        zone.curvature(1.0)
    assert zone.lipschitz(10.0) == 1.0


def test_a_negative_second_derivative_is_refused():
    loss = CustomLoss(squared, squared_slope, lambda p, y: -2.0)
    with pytest.raises(ConfigurationError, match=r"second_derivative\(.*\) is -2, expected at least"):
        loss.curvature(1.0)


def test_second_derivative_that_is_missing_names_the_losses_that_have_it():
    loss = CustomLoss(squared, squared_slope)
    assert not loss.has_second_derivative
    assert loss.code is None
    with pytest.raises(ConfigurationError, match="Logistic, Squared, SquaredHinge"):
        loss.second_derivative(0.0, 0.0)
    with_it = CustomLoss(squared, squared_slope, lambda p, y: 2.0)
    assert with_it.has_second_derivative
    assert with_it.second_derivative(np.zeros(3), 1.0).tolist() == [2.0, 2.0, 2.0]


def test_constants_given_are_taken_at_their_word():
    calls = []

    def value(p, y):
        calls.append(p)
        return p

    loss = CustomLoss(value, value, lipschitz=lambda bound: 4 * bound, curvature=0.01)
    assert (loss.lipschitz(3.0), loss.curvature(3.0)) == (12.0, 0.01)
    loss = CustomLoss(value, value, lipschitz=2, curvature=lambda bound: 1 / bound)
    assert (loss.lipschitz(4.0), loss.curvature(4.0)) == (2.0, 0.25)
    assert not calls


def test_constants_given_by_a_function_are_checked():
    loss = CustomLoss(squared, squared_slope, lipschitz=lambda b: 0.0, curvature=lambda b: -b)
    with pytest.raises(ConfigurationError, match=r"lipschitz\(2\) is 0\.0"):
        loss.lipschitz(2.0)
    with pytest.raises(ConfigurationError, match=r"curvature\(2\) is -2\.0"):
        loss.curvature(2.0)


def test_constants_are_found_once_per_bound():
    calls = []

    def value(p, y):
        calls.append(1)
        return (p - y) ** 2

    loss = CustomLoss(value, squared_slope)
    first = loss.curvature(1.0)
    assert loss.curvature(1) == first
    assert loss.lipschitz(1.0) == 4.0
    assert len(calls) == 1
    assert loss.curvature(2.0) == pytest.approx(first / 4)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": 3}, "value is 3, expected a callable"),
        ({"slope": None}, "slope is None, expected a callable"),
        ({"second_derivative": 2.0}, "second_derivative is 2.0, expected a callable"),
        ({"lipschitz": 0}, "lipschitz is 0"),
        ({"lipschitz": "1"}, "lipschitz is '1'"),
        ({"curvature": -1.0}, "curvature is -1.0"),
        ({"curvature": math.nan}, "curvature is nan"),
        ({"targets": "ab"}, "targets is 'ab'"),
        ({"targets": 1}, "targets is 1"),
        ({"targets": ()}, "targets is empty"),
        ({"targets": (-1, "x")}, r"targets\[1\] is 'x'"),
        ({"targets": (False, True)}, r"targets\[0\] is False"),
    ],
)
def test_arguments_that_make_no_loss_are_refused(arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        CustomLoss(**{"value": squared, "slope": squared_slope, **arguments})


def test_custom_losses_are_immutable_values():
    loss = CustomLoss(absolute, absolute_slope, targets=np.array([-1, 1]))
    assert repr(loss) == "CustomLoss(name='absolute', targets=(-1.0, 1.0))"
    same = CustomLoss(absolute, absolute_slope, targets=(-1, 1))
    same.curvature(2.0)
    assert loss == same
    assert hash(loss) == hash(same)
    assert loss != CustomLoss(absolute, absolute_slope)
    with pytest.raises(FrozenInstanceError):
        loss.name = "other"


def test_custom_losses_pickle_with_their_callables():
    loss = CustomLoss(absolute, absolute_slope, name="mine")
    loss.curvature(2.0)
    again = pickle.loads(pickle.dumps(loss))
    assert again == loss
    assert again.curvature(2.0) == 0.0
    assert again.curvature(1.0) == 0.0


@pytest.mark.parametrize("form", [1e-9, 0.5, 10.0, 1e6, 1e12])
@pytest.mark.parametrize("prediction", [-800.0, -30.0, -1.0, 0.0, 2.0, 40.0])
def test_the_slope_of_an_implicit_step(prediction, form):
    for target in (-1.0, 1.0):
        f = brentq(
            lambda f, y=target: f - prediction - form * y * expit(-y * f),
            prediction - form - 1.0,
            prediction + form + 1.0,
            xtol=1e-14,
        )
        # f is found to 1e-13 of its size, and the slope changes by at most a quarter of what f does.
        tolerance = 1e-13 * (1.0 + abs(f))
        assert implicit_slope(prediction, target, form) == pytest.approx(
            -target * expit(-target * f), abs=tolerance
        )
