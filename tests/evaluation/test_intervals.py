"""Prediction intervals against a row-by-row twin; coverage where the errors drift."""

import numpy as np
import pytest

import effort
from contracts.learners import assert_identical
from kons.errors import ConfigurationError, FileError
from kons.evaluation import ResidualIntervals

# As the class says.
REMEMBERED, FEWEST, GAIN = 500, 20, 0.01


def naive(prediction, target, level, delay):
    """From the definition, with a fresh sort for every row."""
    lower, upper, missing = [], [], 1.0 - level
    for t in range(len(target)):
        s = t - 1 - delay  # the row that has just become known
        if s >= 0 and not np.isnan(lower[s]):
            outside = not lower[s] <= target[s] <= upper[s]
            missing = min(max(missing + GAIN * (1.0 - level - outside), 0.0), 1.0)
        known = sorted((target - prediction)[max(s + 1 - REMEMBERED, 0) : s + 1]) if s >= 0 else []
        if len(known) < FEWEST:
            lower.append(np.nan)
            upper.append(np.nan)
            continue
        cut = max(int(np.floor((len(known) + 1) * missing / 2)) - 1, 0)
        lower.append(prediction[t] + known[cut])
        upper.append(prediction[t] + known[len(known) - 1 - cut])
    return np.array(lower), np.array(upper)


@pytest.fixture
def drifting():
    rng = np.random.default_rng(4)
    n = 1500
    size = np.where(np.arange(n) < 700, 1.0, 4.0)
    prediction = rng.normal(size=n)
    return prediction, prediction + size * rng.exponential(size=n)


def late(intervals, prediction, target, start, stop, delay):
    """Rows whose targets, and those of the rows before, become known so many rows late."""
    known = np.maximum(np.arange(start, stop + 1) - delay, 0) - max(start - delay, 0)
    return intervals.advance(prediction[start:stop], target[start:stop], known[:-1], int(known[-1]))


@effort.every_value(cut=[1, 64, 1500], delay=[0, 3, 600])
def test_it_is_the_definition(drifting, delay, cut):
    prediction, target = drifting
    intervals = ResidualIntervals(0.8)
    parts = [late(intervals, prediction, target, i, min(i + cut, 1500), delay) for i in range(0, 1500, cut)]
    lower, upper = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    expected = naive(prediction, target, 0.8, delay)
    assert np.array_equal(lower, expected[0], equal_nan=True)
    assert np.array_equal(upper, expected[1], equal_nan=True)
    there = ~np.isnan(lower)
    assert intervals.coverage == np.mean((lower <= target)[there] & (target <= upper)[there])
    assert np.count_nonzero(there) == 1500 - FEWEST - delay


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_holds_while_errors_grow_and_shrink(level):
    rng = np.random.default_rng(0)
    n = 20_000
    size = np.exp(2.0 * np.sin(np.arange(n) / 1000.0))
    intervals = ResidualIntervals(level)
    intervals.advance(np.zeros(n), 3.0 + size * rng.standard_t(3, size=n))  # and the learner is off by 3
    assert intervals.coverage == pytest.approx(level, abs=0.01)


def test_going_on_from_a_state_is_bit_for_bit(drifting):
    prediction, target = drifting
    whole = ResidualIntervals(0.9)
    late(whole, prediction, target, 0, 900, 5)
    resumed = ResidualIntervals(0.9).resume(whole.state())
    for engine in (whole, resumed):
        engine.ends = late(engine, prediction, target, 900, 1500, 5)
    assert_identical(resumed.ends, whole.ends)
    assert_identical(resumed.state(), whole.state())
    with pytest.raises(FileError, match="ring"):
        ResidualIntervals(0.9).resume({**whole.state(), "ring": np.zeros(3)})


def test_equal_residuals_of_both_signs_of_zero_survive_a_state():
    prediction = np.array([0.0, -0.0] * 40)
    whole = ResidualIntervals(0.9)
    whole.advance(prediction, -prediction)
    resumed = ResidualIntervals(0.9).resume(whole.state())
    assert_identical(resumed.advance(prediction, prediction), whole.advance(prediction, prediction))


@pytest.mark.parametrize("level", [0.0, 1.0, -1, "wide"])
def test_bad_levels_are_named(level):
    with pytest.raises(ConfigurationError, match=r"^level is"):
        ResidualIntervals(level)


def test_nothing_is_known_of_no_rows():
    assert np.isnan(ResidualIntervals().coverage)
