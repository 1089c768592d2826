"""Whether a stream is sorted by its target: noticed in files, not in series."""

import numpy as np
import pytest

from kons.evaluation.order import TargetOrder

RNG = np.random.default_rng(0)
VALUES = {
    "normal": RNG.normal(size=20_000),
    "lognormal": np.exp(RNG.normal(size=6_000)),
    "counts": RNG.poisson(3.0, 3_000).astype(float),
    "few rows": RNG.uniform(size=250),
}


def found(targets, *, labelled=False, block=512):
    order = TargetOrder(labelled=labelled)
    for start in range(0, len(targets), block):
        order.follow(targets[start : start + block])
    return order.found


@pytest.mark.parametrize("kind", VALUES)
def test_sorted_numbers(kind):
    values = np.sort(VALUES[kind])
    assert found(values) == "ascending"
    assert found(values[::-1]) == "descending"
    assert found(RNG.permutation(values)) is None


@pytest.mark.parametrize("kind", ["normal", "lognormal", "few rows"])
@pytest.mark.parametrize("noise", ["added", "multiplied", "misplaced"])
def test_one_percent_of_noise_hides_nothing(kind, noise):
    rng = np.random.default_rng(1)
    values = np.sort(VALUES[kind])
    if noise == "added":
        values = values + 0.01 * values.std() * rng.normal(size=len(values))
    elif noise == "multiplied":
        values = values * (1.0 + 0.01 * rng.normal(size=len(values)))
    else:
        moved = rng.choice(len(values), len(values) // 100, replace=False)
        values[moved] = rng.permutation(values)[: len(moved)]
    assert found(values) == "ascending"


def test_a_file_sorted_in_many_parts():
    parts = [np.sort(RNG.gamma(2.0, size=330)) for _ in range(60)]
    assert found(np.concatenate(parts)) == "ascending"


def series(kind, rows, rng):
    t = np.arange(rows)
    if kind == "random walk":
        return np.cumsum(rng.normal(size=rows))
    if kind == "hourly":  # growth, days and years
        return (1 + t / rows) * (2 + np.sin(t / 24 * 2 * np.pi)) * np.exp(0.2 * rng.normal(size=rows))
    if kind == "slow":
        return np.sin(t / 20.0)
    return np.convolve(rng.normal(size=rows + 200), 0.97 ** np.arange(200), "valid")[:rows]


@pytest.mark.parametrize("kind", ["random walk", "hourly", "slow", "autoregressive"])
@pytest.mark.parametrize("rows", [300, 3_000, 20_000])
def test_series_are_not_sorted(kind, rows):
    rng = np.random.default_rng(2)
    assert all(found(series(kind, rows, rng)) is None for _ in range(20))


@pytest.mark.parametrize("labels", [2, 3, 12])
@pytest.mark.parametrize("misplaced", [0.0, 0.01])
def test_blocks_of_labels(labels, misplaced):
    rng = np.random.default_rng(3)
    codes = rng.permutation(labels)[np.sort(rng.integers(0, labels, 9_000))]
    moved = rng.choice(9_000, int(misplaced * 9_000), replace=False)
    codes[moved] = rng.permutation(codes)[: len(moved)]
    assert found(codes, labelled=True) == "blocks"
    assert found(rng.permutation(codes), labelled=True) is None


@pytest.mark.parametrize("stays", [0.6, 0.85, 0.98])
def test_labels_that_persist_are_no_blocks(stays):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, 9_000)
    for t in np.flatnonzero(rng.random(9_000) < stays)[1:]:
        codes[t] = codes[t - 1]
    assert found(codes, labelled=True) is None


def test_labels_in_step_with_the_sample_are_no_blocks():
    """Of 2^20 rows one in 256 is looked at: labels that change every 256 rows must not look like few."""
    codes = (np.arange(1 << 20) // 255) % 2
    assert found(codes, labelled=True, block=1 << 16) is None


def test_constant_targets_and_few_rows_say_nothing():
    order = TargetOrder(labelled=False)
    order.follow(np.full(1000, 3.0))
    assert (order.found, order.constant, order.few_values) == (None, True, None)
    assert found(np.arange(50.0)) is None


def test_few_whole_numbers_may_be_classes():
    order = TargetOrder(labelled=False)
    order.follow(RNG.integers(1, 6, 1000).astype(float))
    assert (order.few_values, order.constant) == ([1, 2, 3, 4, 5], False)
    order.follow(np.array([0.5]))
    assert order.few_values is None


@pytest.mark.parametrize("block", [1, 7, 4096, 100_000])
def test_how_a_stream_is_cut_changes_nothing(block):
    values = np.sort(RNG.normal(size=9_000)) + 0.01 * RNG.normal(size=9_000)
    whole, parts = TargetOrder(labelled=False), TargetOrder(labelled=False)
    whole.follow(values)
    for start in range(0, len(values), block):
        parts.follow(values[start : start + block])
        parts = TargetOrder(labelled=False).resume(parts.state()) if block > 1000 else parts
    np.testing.assert_equal(parts.state(), whole.state())
