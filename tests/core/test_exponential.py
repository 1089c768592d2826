"""exp of many numbers at once is that of the C library, to the last places."""

import numpy as np
import pytest

from kons.core.exponential import exponentials


def exp(x):
    found = np.array(x, dtype=float)
    exponentials(found, np.empty(len(found)))
    return found


@pytest.mark.parametrize("largest", [1e-12, 1e-3, 0.5, 3.0, 50.0, 700.0])
def test_two_units_in_the_last_place(largest):
    x = -np.random.default_rng(0).uniform(0.0, largest, size=20_001)
    expected = np.exp(x)
    # One of its own, and one of the library's.
    assert (np.abs(exp(x) - expected) <= 2.0 * np.spacing(expected)).all()


def test_zero_is_exact_and_what_is_too_small_is_next_to_nothing():
    assert exp([0.0, -0.0]).tolist() == [1.0, 1.0]
    found = exp([-708.0, -745.0, -1e300, -np.inf])
    assert ((found >= 0.0) & (found < 1e-307)).all()


def test_the_same_alone_and_among_others():
    """Vector and scalar instructions round alike: a kernel's value must not depend on its place."""
    x = -np.random.default_rng(1).exponential(5.0, size=37)
    assert np.concatenate([exp([each]) for each in x]).tolist() == exp(x).tolist()
