"""Thinned curves keep what a reader must see, whatever the stream was cut into."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kons.report.thinning import Bins, thinned

CUTS = [[], [1], [7, 8, 500], [250, 251, 252, 900]]


def parts(values, cuts):
    edges = [0, *cuts, len(values)]
    for start, stop in pairwise(edges):
        yield np.arange(start, stop), values[start:stop]


def binned(values, cuts=(), most=20_000):
    bins = Bins(len(values), most)
    for rows, part in parts(values, cuts):
        bins.add(rows, part)
    return bins


@pytest.mark.parametrize("most", [1000, 300])
@pytest.mark.parametrize("cuts", CUTS)
def test_a_band_holds_the_least_mean_and_largest_of_each_stretch(cuts, most):
    values = np.random.default_rng(0).normal(size=1000)
    values[137], values[390:470] = 50.0, np.nan
    band = binned(values, cuts, most).band(30)
    width = {1000: 34, 300: 36}[most]  # at most 30 equal stretches of whole bins
    stretches = [values[start : start + width] for start in range(0, 1000, width)]
    known = [part[np.isfinite(part)] for part in stretches if np.isfinite(part).any()]
    assert band.low.tolist() == [part.min() for part in known]
    assert band.high.tolist() == [part.max() for part in known]
    assert band.mean == pytest.approx([part.mean() for part in known])
    assert band.row[0] == (width - 1) / 2


def test_a_thinned_line_keeps_true_points_and_every_spike():
    values = np.random.default_rng(0).normal(size=1000)
    values[137] = 50.0
    rows, kept = thinned((np.arange(1000.0), values), 30)
    assert len(rows) <= 60
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(values[rows.astype(int)], kept)
    assert kept.max() == 50.0
    edges = np.linspace(0, 1000, 31).astype(int)
    for start, stop in pairwise(edges):
        assert {values[start:stop].min(), values[start:stop].max()} <= set(kept)


def test_a_line_of_few_rows_is_left_as_it_is():
    values = np.array([3.0, np.nan, 1.0, 1.0])
    rows, kept = thinned((np.arange(4.0), values), 300)
    assert rows.tolist() == [0, 2, 3]
    assert kept.tolist() == [3.0, 1.0, 1.0]
    assert binned(values).band(300).is_line


def test_nothing_known_is_no_point():
    values = np.full(3, np.nan)
    assert len(thinned((np.arange(3.0), values), 300)[0]) == len(binned(values).band(300).row) == 0


@pytest.mark.parametrize("cuts", CUTS)
def test_running_means_leave_out_what_is_not_known(cuts):
    values = np.random.default_rng(1).normal(size=1000)
    values[[0, 1, 300]] = np.nan
    rows, found = binned(values, cuts).running_mean()
    assert rows.tolist() == list(range(1000))
    assert np.isnan(found[:2]).all()
    for row in (2, 299, 300, 999):
        assert found[row] == pytest.approx(np.nanmean(values[: row + 1]))
    rows, found = binned(values, cuts, most=30).running_mean()
    assert rows.tolist() == [*range(33, 1000, 34), 999]
    assert found == pytest.approx([np.nanmean(values[: int(row) + 1]) for row in rows])


@pytest.mark.parametrize(("most", "window", "hop"), [(1000, 100, 5), (200, 100, 5), (300, 99, 4)])
@pytest.mark.parametrize("cuts", CUTS)
def test_window_means_are_those_of_the_window(cuts, most, window, hop):
    values = np.random.default_rng(2).normal(size=1000)
    values[400:405] = np.nan
    bins = binned(values, cuts, most)
    window -= window % bins.width
    rows, means = bins.window_mean(window)
    assert rows[0] == window - 1
    assert 999 - hop < rows[-1] <= 999
    assert set(np.diff(rows)) == {hop}
    for row, mean in zip(rows.astype(int), means, strict=True):
        assert mean == pytest.approx(np.nanmean(values[row + 1 - window : row + 1]), rel=1e-12)


def test_a_huge_loss_leaves_no_rounding_behind():
    values = np.full(1000, 0.1)
    values[300] = 1e25
    rows, means = binned(values).window_mean(100)
    assert means[rows >= 400] == pytest.approx(0.1, rel=1e-12)


def test_a_run_shorter_than_the_window_has_no_windows():
    assert len(binned(np.ones(99)).window_mean(100)[0]) == 0


def test_the_middle_of_the_last_stretch_is_no_row_after_the_end():
    assert binned(np.ones(9), most=2).band(2).row.tolist() == [2.0, 7.0]  # 5 rows, and 4
    assert binned(np.ones(301), most=150).band(150).row[-1] == 300.0  # the last stretch is one row


def test_sums_go_on_where_they_were():
    _, sums = binned(np.array([1.0, np.nan, 2.0, 4.0]), cuts=[3]).running_sum()
    assert sums.tolist() == [1.0, 1.0, 3.0, 7.0]
