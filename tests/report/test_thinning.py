"""Thinned curves keep what a reader must see, whatever the stream was cut into."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kons.report.thinning import Envelope, Largest, PartMeans, RunningMean, RunningSum, Tail, WindowMean

CUTS = [[], [1], [7, 8, 500], [250, 251, 252, 900]]


def parts(values, cuts):
    edges = [0, *cuts, len(values)]
    for start, stop in pairwise(edges):
        yield np.arange(start, stop), values[start:stop]


@pytest.mark.parametrize("cuts", CUTS)
def test_an_envelope_holds_the_least_and_largest_of_each_stretch(cuts):
    values = np.random.default_rng(0).normal(size=1000)
    values[137] = 50.0
    envelope = Envelope(1000, 30)
    for rows, part in parts(values, cuts):
        envelope.add(rows, part)
    band = envelope.band()
    width = 34  # 1000 rows in at most 30 equal stretches
    for i, start in enumerate(range(0, 1000, width)):
        stretch = values[start : start + width]
        assert (band.low[i], band.high[i]) == (stretch.min(), stretch.max())
        assert band.mean[i] == pytest.approx(stretch.mean())
    rows, thinned = envelope.line()
    assert len(rows) <= 60
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(values[rows.astype(int)], thinned)  # true points, at their own rows
    assert thinned.max() == 50.0


def test_an_envelope_of_few_rows_is_the_curve_itself():
    values = np.array([3.0, np.nan, 1.0, 1.0])
    envelope = Envelope(4, 300)
    envelope.add(np.arange(4), values)
    rows, kept = envelope.line()
    assert rows.tolist() == [0, 2, 3]
    assert kept.tolist() == [3.0, 1.0, 1.0]
    assert envelope.band().is_line


def test_an_envelope_of_nothing_known_is_empty():
    envelope = Envelope(3, 300)
    envelope.add(np.arange(3), np.full(3, np.nan))
    assert len(envelope.line()[0]) == len(envelope.band().row) == 0


@pytest.mark.parametrize("cuts", CUTS)
def test_running_means_leave_out_what_is_not_known(cuts):
    values = np.random.default_rng(1).normal(size=1000)
    values[[0, 1, 300]] = np.nan
    mean = RunningMean()
    found = np.concatenate([mean.add(part) for _, part in parts(values, cuts)])
    assert np.isnan(found[:2]).all()
    for row in (2, 299, 300, 999):
        assert found[row] == pytest.approx(np.nanmean(values[: row + 1]))


@pytest.mark.parametrize("cuts", CUTS)
def test_window_means_are_those_of_the_window(cuts):
    values = np.random.default_rng(2).normal(size=1000)
    values[400:405] = np.nan
    window = WindowMean(100)
    for _, part in parts(values, cuts):
        window.add(part)
    rows, means = window.result()
    assert rows[0] == 99
    assert rows[-1] == 999
    assert set(np.diff(rows)) == {5}
    for row, mean in zip(rows, means, strict=True):
        assert mean == pytest.approx(np.nanmean(values[row - 99 : row + 1]), rel=1e-12)


def test_a_huge_loss_leaves_no_rounding_behind():
    values = np.full(1000, 0.1)
    values[300] = 1e25
    window = WindowMean(100)
    window.add(values)
    rows, means = window.result()
    assert means[rows >= 400] == pytest.approx(0.1, rel=1e-12)


def test_a_run_shorter_than_the_window_has_no_windows():
    window = WindowMean(100)
    window.add(np.ones(99))
    assert len(window.result()[0]) == 0


@pytest.mark.parametrize("cuts", CUTS)
def test_the_largest_rows_are_those_of_a_sort(cuts):
    rng = np.random.default_rng(3)
    values = rng.integers(0, 50, size=1000).astype(float)  # many ties
    values[::7] = np.nan
    largest = Largest("value", 10)
    for rows, part in parts(values, cuts):
        largest.add({"row": rows.astype(float), "value": part})
    expected = sorted((-v, row) for row, v in enumerate(values) if not np.isnan(v))[:10]
    assert [(-row["value"], row["row"]) for row in largest.rows()] == expected


@pytest.mark.parametrize("cuts", CUTS)
def test_the_tail_is_the_end(cuts):
    values = np.arange(1000.0)
    tail = Tail(200)
    for _, part in parts(values, cuts):
        tail.add({"x": part})
    assert tail.columns["x"].tolist() == values[-200:].tolist()


def test_means_of_parts_allow_columns_that_come_later():
    means = PartMeans(8, 4)
    means.add(np.array([0, 1]), np.array([[1.0], [3.0]]))
    means.add(
        np.array([2, 6, 99]), np.array([[1.0, 5.0], [np.nan, 2.0], [9.0, 9.0]])
    )  # row 99 is not of the run
    rows, found = means.result()
    assert rows.tolist() == [0.5, 2.5, 6.5]
    assert found.tolist() == [[2.0, 0.0], [1.0, 5.0], [0.0, 2.0]]
    short = PartMeans(9, 2)  # a stretch of 5 rows, and one of 4
    short.add(np.array([0, 8]), np.ones((2, 1)))
    assert short.result()[0].tolist() == [2.0, 7.0]
    single = PartMeans(101, 4)  # 26, 26, 26 and 23
    single.add(np.array([100]), np.ones((1, 1)))
    assert single.result()[0].tolist() == [90.5]
    last = PartMeans(301, 150)  # the last stretch is one row: its middle is no row after the end
    last.add(np.array([300]), np.ones((1, 1)))
    assert last.result()[0].tolist() == [300.0]


def test_sums_go_on_where_they_were():
    total = RunningSum()
    assert total.add(np.array([1.0, np.nan, 2.0])).tolist() == [1.0, 1.0, 3.0]
    assert total.add(np.array([4.0])).tolist() == [7.0]
