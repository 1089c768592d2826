"""Frequent directions against dense sums of squares, and the spectral bound that it proves."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.core.frequent_directions import FrequentDirections
from kons.errors import FileError, NumericalError
from kons.stored import Stored

# Singular values err by eps times the largest one; their squares, summed over some dozens of shrinkings of
# matrices of up to 60 columns, by less than this part of the trace.
ROUNDING = 1e-12


def decaying(rows=200, width=12, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, width)) * np.arange(1, width + 1) ** -power


def gap(A, sketch):
    """The eigenvalues of A^T A - B^T B, rising, and what rounding may add to them."""
    return np.linalg.eigvalsh(A.T @ A - sketch.rows.T @ sketch.rows), ROUNDING * np.sum(A**2)


@given(
    seed=st.integers(0, 1000),
    directions=st.integers(1, 9),
    width=st.integers(1, 12),
    power=st.sampled_from([0.0, 0.5, 2.0]),
)
@effort.examples(25)
def test_spectral_bound(seed, directions, width, power):
    A = decaying(120, width, seed, power)
    sketch = FrequentDirections(directions)
    for start, stop in itertools.pairwise((0, 1, 7, 40, 120)):
        sketch.update(A[start:stop])
        assert len(sketch) < 2 * directions
        eigenvalues, rounding = gap(A[:stop], sketch)
        # 0 <= A^T A - B^T B <= removed * I
        assert eigenvalues[0] >= -rounding
        assert eigenvalues[-1] <= sketch.removed + rounding
        # removed <= |A - A_k|_F^2/(l - k), for every k < l
        squares = np.linalg.svd(A[:stop], compute_uv=False) ** 2
        for k in range(directions):
            assert sketch.removed <= squares[k:].sum() / (directions - k) + rounding


def test_the_bound_is_needed_and_nearly_met():
    """Orthogonal rows of one length: nothing better can be done than to lose some of them."""
    A = np.eye(9)
    sketch = FrequentDirections(4)
    sketch.update(A)
    assert 0.5 < sketch.removed <= 9 / 4
    assert gap(A, sketch)[0][-1] >= 0.5


def test_rows_within_few_directions_are_kept_exactly():
    A = decaying(300, 4) @ decaying(4, 30, seed=1)
    sketch = FrequentDirections(5)
    sketch.update(A)
    np.testing.assert_allclose(sketch.rows.T @ sketch.rows, A.T @ A, atol=ROUNDING * np.sum(A**2))
    assert sketch.removed <= ROUNDING * np.sum(A**2)


@pytest.mark.parametrize("block", [1, 3, 16, 17])
def test_blocks_give_the_same_bits(block):
    A = decaying()
    whole, cut = (FrequentDirections(8, regularization=0.5) for _ in range(2))
    whole.update(A)
    for start in range(0, len(A), block):
        cut.update(A[start : start + block])
    np.testing.assert_array_equal(cut.rows, whole.rows)
    assert cut.removed == whole.removed
    V = decaying(6, seed=3)
    np.testing.assert_allclose(cut.solve(V), whole.solve(V), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("rows", "width", "directions"), [(0, 5, 3), (2, 5, 3), (50, 40, 6), (50, 3, 6)])
def test_the_inverse_is_that_of_the_sketch(rows, width, directions):
    A, V = decaying(rows, width), decaying(7, width, seed=1)
    sketch = FrequentDirections(directions, regularization=0.3)
    for row in A:
        sketch.update(row[None])
        B = sketch.rows
        dense = np.linalg.solve(0.3 * np.eye(width) + B.T @ B, V.T).T
        # |B|^2/alpha is below 1e3 here, and V about 1
        np.testing.assert_allclose(sketch.solve(V), dense, rtol=0, atol=1e-11)
    if not rows:
        np.testing.assert_allclose(sketch.solve(V), V / 0.3)


def test_more_rows_than_a_panel_holds():
    A = decaying(290, 320, power=0.0)
    sketch = FrequentDirections(150, regularization=1.0)
    sketch.update(A)  # 290 of 300: more than a panel of the factor, 256
    V = decaying(3, 320, seed=1)
    np.testing.assert_allclose(sketch.solve(V), np.linalg.solve(np.eye(320) + A.T @ A, V.T).T, atol=1e-10)


def test_merging_keeps_the_bound():
    A, other_rows = decaying(150), decaying(170, seed=1)
    sketch, other = FrequentDirections(5), FrequentDirections(5)
    sketch.update(A)
    other.update(other_rows)
    before = other.rows.copy()
    sketch.merge(other)
    np.testing.assert_array_equal(other.rows, before)
    both = np.vstack([A, other_rows])
    eigenvalues, rounding = gap(both, sketch)
    assert eigenvalues[0] >= -rounding
    assert eigenvalues[-1] <= sketch.removed + rounding
    squares = np.linalg.svd(both, compute_uv=False) ** 2
    assert all(sketch.removed <= squares[k:].sum() / (5 - k) + rounding for k in range(5))


def test_goes_back_and_on_bit_for_bit():
    A = decaying()
    sketch, fresh = FrequentDirections(8, 0.5), FrequentDirections(8, 0.5)
    sketch.update(A[:55])
    state, mark = sketch.state(), sketch.mark()
    sketch.update(A[55:90])  # over a shrinking
    sketch.restore(mark)
    np.testing.assert_equal(sketch.state(), state)
    fresh.load_state(Stored(state, "sketch"), width=12)
    for one in (sketch, fresh):
        one.update(A[55:])
    np.testing.assert_equal(fresh.state(), sketch.state())
    small = FrequentDirections(3)
    with pytest.raises(FileError, match="rows of the sketch"):
        small.load_state(Stored(state | {"factor": None}, "sketch"), width=12)


@pytest.mark.parametrize("directions", [1, 3])
def test_rows_without_squares_are_refused(directions):
    sketch = FrequentDirections(directions)
    with pytest.raises(NumericalError, match="squares overflow; divide them by their scale"):
        sketch.update(1e300 * decaying(10))
