"""PanelFactor against dense triangles: whatever the chunks, it is the same factor."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.core.factor import PANEL_HEIGHT, PanelFactor
from kons.stored import Stored

EDGES = [1, 31, 33, 255, 256, 257, 600]


@functools.cache
def triangle(n, seed=0):
    """The Cholesky factor of I + noise: well conditioned, all entries below the diagonal at work."""
    noise = np.random.default_rng(seed).normal(size=(n, n)) / np.sqrt(max(n, 1))
    L = np.linalg.cholesky(np.eye(n) + noise @ noise.T)
    L.flags.writeable = False
    return L


@functools.cache
def dense_inverse(n):
    return np.linalg.inv(triangle(n))


def grow(factor, L, chunks):
    for chunk in chunks:
        n = factor.size
        factor.append(L[n : n + chunk, :n], L[n : n + chunk, n : n + chunk])
    return factor


def grown(L, *chunks, height=PANEL_HEIGHT):
    return grow(PanelFactor(height), L, chunks or (len(L),))


def chunks_of(n, size):
    return [min(size, n - start) for start in range(0, n, size)]


def assert_same_panels(a, b):
    assert len(a.panels()) == len(b.panels())
    for (left, inverse), (other_left, other_inverse) in zip(a.panels(), b.panels(), strict=True):
        np.testing.assert_array_equal(left, other_left)
        np.testing.assert_array_equal(inverse, other_inverse)


@pytest.mark.parametrize("n", EDGES)
@pytest.mark.parametrize("chunk", [7, 256, 10_000])
def test_solves_equal_dense_ones(n, chunk):
    L = triangle(n)
    factor = grown(L, *chunks_of(n, chunk))
    assert factor.size == n
    B = np.random.default_rng(1).normal(size=(3, n))
    inverse = dense_inverse(n)
    np.testing.assert_allclose(factor.solve(B.copy()), B @ inverse.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(factor.solve_transposed(B[0]), B[0] @ inverse, rtol=0, atol=1e-13)
    assert factor.inverse_norm2() == pytest.approx(np.sum(inverse**2), rel=1e-13)


def test_solve_overwrites_its_argument_and_solve_transposed_does_not():
    L = triangle(300)
    factor = grown(L)
    B = np.ones((2, 300))
    assert factor.solve(B) is B
    b = np.ones(300)
    factor.solve_transposed(b)
    np.testing.assert_array_equal(b, 1.0)


def test_an_empty_factor():
    factor = PanelFactor()
    assert factor.solve(np.empty((4, 0))).shape == (4, 0)
    assert factor.solve_transposed(np.empty(0)).shape == (0,)
    assert factor.inverse_norm2() == 0.0
    assert factor.panels() == []
    factor.append(np.empty((0, 0)), np.empty((0, 0)))
    assert factor.size == 0


def test_panel_boundaries_are_absolute_row_numbers():
    L = triangle(600)
    shapes = [(r.shape, inverse.shape) for r, inverse in grown(L, 100, 500).panels()]
    assert shapes == [
        ((256, 0), (256, 256)),
        ((256, 256), (256, 256)),
        ((88, 512), (88, 88)),
    ]


def test_rectangles_hold_the_rows_as_they_came():
    L = triangle(600)
    for start, (rectangle, _) in zip((0, 256, 512), grown(L, *chunks_of(600, 37)).panels(), strict=True):
        np.testing.assert_array_equal(rectangle, L[start : start + len(rectangle), :start])


def test_chunks_that_end_on_panel_boundaries_are_bit_for_bit_one_append():
    L = triangle(600)
    assert_same_panels(grown(L, 256, 256, 88), grown(L, 600))
    assert_same_panels(grown(L, 512, 88), grown(L, 600))


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 300, 511, 512, 600])
def test_truncation_is_free_and_leaves_no_trace(size):
    L, other = triangle(600), triangle(700, seed=5).copy()
    other[:size, :size] = L[:size, :size]  # agrees with L as far as it is kept
    factor, fresh = grown(L, size, 600 - size), grown(L, size)
    factor.truncate(size)
    assert factor.size == size
    assert_same_panels(factor, fresh)
    for one in (factor, fresh):
        grow(one, other, [700 - size])
    assert_same_panels(factor, fresh)
    B = other @ np.ones((700, 1))
    np.testing.assert_allclose(factor.solve(B.T.copy()), 1.0, rtol=0, atol=1e-12)


def test_panels_are_copies():
    L = triangle(40)
    factor = grown(L)
    for rectangle, inverse in factor.panels():
        rectangle[:] = np.nan
        inverse[:] = np.nan
    assert np.isfinite(factor.solve(np.ones((1, 40)))).all()


@pytest.mark.usefixtures("used_memory")
def test_memory_that_had_other_numbers_before():
    L = triangle(31).copy()
    factor, loaded = grown(L, 7, 9, height=20), PanelFactor(20)
    factor.append_one(L[16, :16], L[16, 16])
    loaded.load_state(Stored(factor.state(), "PanelFactor"), size=17)
    for one in (factor, loaded):
        one.append_one(L[17, :17], L[17, 17])
        grow(one, L, [13])
        np.testing.assert_allclose(one.solve(L.sum(axis=1)[None].copy()), 1.0, rtol=0, atol=1e-13)


@st.composite
def chunked(draw):
    n = draw(st.integers(1, 60))
    cuts = draw(st.lists(st.integers(0, n), max_size=8))
    edges = sorted({0, n, *cuts})
    return draw(st.integers(1, 17)), [b - a for a, b in itertools.pairwise(edges)]


@effort.examples(30)
@given(chunked())
def test_any_chunking_at_any_height(case):
    height, chunks = case
    n = sum(chunks)
    L = triangle(n, seed=n)
    factor = grown(L, *chunks, height=height)
    whole = grown(L, n, height=height)
    for (left, inverse), (other_left, other_inverse) in zip(factor.panels(), whole.panels(), strict=True):
        np.testing.assert_array_equal(left, other_left)
        np.testing.assert_allclose(inverse, other_inverse, rtol=0, atol=1e-14)
        assert not np.triu(inverse, 1).any()
    B = np.eye(n)
    np.testing.assert_allclose(factor.solve(B).T, np.linalg.inv(L), rtol=0, atol=1e-13)
    b = np.arange(n) - 3.0
    expected = np.linalg.solve(L.T, b)
    np.testing.assert_allclose(factor.solve_transposed(b), expected, rtol=1e-12, atol=1e-12)
