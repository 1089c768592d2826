"""The encoder: blocks, rows and single dicts are the same; states, undo, and what it must not know."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from contracts.learners import assert_identical
from kons.errors import InputError
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
    rows, numbers = mixed(effort.amount(1100, 2300), seed=1)
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


class Zone(datetime.tzinfo):
    """Where an hour comes twice, as in autumn."""

    def utcoffset(self, moment):
        return datetime.timedelta(hours=2 - moment.fold)

    def dst(self, moment):
        return datetime.timedelta(hours=1 - moment.fold)


LATE = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=Zone())


@pytest.mark.parametrize(
    ("asked", "learned"),
    [
        ({"word": 1}, {"word": True}),
        ({"word": 1.0}, {"word": 1}),
        ({"when": LATE}, {"when": LATE.replace(fold=1)}),
        ({"a": 1.0}, {"a": np.array([1.0, 2.0])}),
        ({"a": None}, {"a": 2.0}),
        ({}, {"new": 1.0}),
    ],
    ids=["text", "number as text", "time", "array", "gap", "column"],
)
def test_what_was_asked_last_is_not_what_is_learned(asked, learned):
    moments = [datetime.datetime(2024, 1 + i, 1, i) for i in range(9)]
    first = [{"a": float(i % 5), "word": "no", "when": when} for i, when in enumerate(moments)]
    first[3]["a"] = None
    targets = [float(i % 3) for i in range(10)]
    one, quick = Encoder(), Encoder()
    for encoder in (one, quick):
        taught(encoder, first, targets, [9])
    x = first[0] | asked
    quick.look_one(x)
    x |= learned  # the very dict, changed
    if "a" in learned and not isinstance(learned["a"], float):
        with pytest.raises(InputError, match="'a' is array"):
            quick.read_one(x, 1.0)
        return
    expected = taught(one, [x], [1.0], [1])
    assert taught_singly(quick, [x], [1.0])[0] == expected
    assert_identical(quick.state(), one.state())


def test_a_dict_that_is_asked_about_and_learned_is_read_once():
    encoder = Encoder()
    rows, targets = mixed(100, seed=0)
    taught(encoder, rows, targets, [100])
    row = encoder.look_one(rows[-1])
    assert encoder.read_one(dict(rows[-1]), 0.0).row is row
    encoder.learn_one(encoder.read_one(rows[-1], 0.0), 0.0)
    assert encoder.look_one(rows[-1]) is not row


def test_a_level_that_is_too_rare_for_a_column_goes_the_quick_way():
    encoder = Encoder()
    rows = [{"word": f"level {i % 4}"} for i in range(2000)] + [{"word": "rare"}] * 3
    taught(encoder, rows, [0.0] * len(rows), [len(rows)])
    assert encoder.width == 4
    assert encoder.read_one({"word": "rare"}, 0.0) is not None


def test_single_dicts_that_are_taken_back_leave_nothing():
    encoder = Encoder()
    rows = [{"word": "often", "a": float(i % 9)} for i in range(600)] + [{"word": "seldom", "a": 1.0}]
    taught(encoder, rows, [0.0] * len(rows), [len(rows)])
    assert not encoder.look_one(rows[-1])[1:].any()
    before, mark = encoder.state(), encoder.mark()
    encoder.learn_one(encoder.read_one(rows[-1], 0.0), 0.0)
    assert encoder.look_one(rows[-1])[1:].any()  # it has its indicator now
    encoder.restore(mark)
    assert_identical(encoder.state(), before)
    assert not encoder.look_one(rows[-1])[1:].any()


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
