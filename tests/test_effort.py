"""Samples hold what they say they hold."""

import itertools

import pytest

import effort


@pytest.mark.parametrize("sizes", [[3], [2, 3], [4, 3, 2, 3], [6, 4, 2, 2]])
def test_any_two_values_meet(sizes):
    rows = effort.covering(sizes)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(range(sizes[a]), range(sizes[b])))
    assert {row[0] for row in rows} == set(range(sizes[0]))
    largest = sorted([*sizes, 1])[-2:]
    assert len(rows) <= 1.5 * largest[0] * largest[1]


def test_every_value_has_its_turn():
    _, cases = effort.every_value(a="wxyz", b={"one": 1, "two": 2}).args
    found = [case.values for case in cases]
    assert {a for a, _ in found} == set("wxyz")
    assert {b for _, b in found} == {1, 2}
    assert effort.is_soak() or [case.id for case in cases] == ["w-one", "x-two", "y-one", "z-two"]


def test_a_case_that_is_not_there_is_no_sample():
    with pytest.raises(LookupError, match="nobody"):
        effort.some({"a": 1}, "nobody")
