"""The encoder: blocks, rows and single dicts are the same; states, undo, and what it must not know."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from contracts.learners import assert_identical
from kons.tables import Encoder
from tables.record_streams import mixed, records, taught, taught_singly

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")

SETTINGS = [
    {},
    {"labelled": True},
    {"delay": 3},
    {"delay": 2, "labelled": True},
    {"grows": False},
]


def targets_of(rows, labelled):
    return [i * i % 4 if labelled else float(i % 5) - 0.3 * len(x) for i, x in enumerate(rows)]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@effort.examples(15)
@given(rows=records(), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_blocks_rows_and_single_dicts_are_the_same(setting, rows, sizes):
    targets = targets_of(rows, setting.get("labelled", False))
    one, many, quick = (Encoder(**setting) for _ in range(3))
    expected = taught(one, rows, targets, [1])
    assert taught(many, rows, targets, sizes) == expected
    assert_identical(many.state(), one.state())
    assert taught_singly(quick, rows, targets)[0] == expected
    assert_identical(quick.state(), one.state())


@pytest.mark.parametrize("setting", effort.some(SETTINGS, SETTINGS[0], SETTINGS[3]), ids=str)
def test_a_long_stream_is_the_same_in_blocks_rows_and_single_dicts(setting):
    rows, numbers = mixed(effort.amount(1500, 2300), seed=1)
    labelled = setting.get("labelled", False)
    targets = [int(2.0 + y) % 12 for y in numbers] if labelled else numbers
    one, many, quick = (Encoder(**setting) for _ in range(3))
    expected = taught(one, rows, targets, [1])
    assert taught(many, rows, targets, [700, 1, 37]) == expected
    found, times = taught_singly(quick, rows, targets)
    assert found == expected
    assert_identical(many.state(), one.state())
    assert_identical(quick.state(), one.state())
    assert (times > len(rows) - 500) is not bool(setting.get("delay"))
    names = one.features
    if setting.get("grows", True):
        assert sum(name.startswith("word=") for name in names) == 64
        assert {"word mean target 1", "late", "late missing", "when hour sin"} <= set(names)
        assert "mostly mean target 1" in names


@pytest.mark.parametrize("setting", [{}, {"labelled": True}], ids=str)
@pytest.mark.parametrize("huge", [False, True])
def test_plain_numbers_are_the_same_in_blocks_rows_and_single_dicts(setting, huge):
    """Without a gap, behind the look at their levels: a column is one feature, and read the quickest way."""
    rng = np.random.default_rng(2)
    pairs = rng.normal(size=(560, 2)).tolist()
    rows = [{"a": a, "b": b, "flag": a > b, "whole": i % 7} for i, (a, b) in enumerate(pairs)]
    if huge:  # a sum beyond all numbers stays there
        for i in (510, 511, 520, 530):
            rows[i]["a"] = 1.7e308 if i < 520 else -1.7e308
    rows[525]["b"], rows[526]["b"], rows[527]["b"] = np.float64(0.5), Fraction(1, 3), np.array(2)
    rows[528] |= {"b": "0.5"}
    rows[529] |= {"new": None}
    del rows[550]["a"]  # the first gap joins a feature
    rows[555]["b"] = None
    targets = targets_of(rows, setting.get("labelled", False))
    one, many, quick = (Encoder(**setting) for _ in range(3))
    expected = taught(one, rows, targets, [1])
    assert taught(many, rows, targets, [300, 1, 37]) == expected
    found, times = taught_singly(quick, rows, targets)
    assert found == expected
    assert times >= len(rows) - 8
    assert_identical(many.state(), one.state())
    assert_identical(quick.state(), one.state())
    assert one.features == ["a", "b", "flag", "whole", "a missing", "b missing"]
