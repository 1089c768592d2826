"""Declared state: what is saved is found again, what does not fit is refused, a mark is gone back to."""

import numpy as np
import pytest

from contracts.learners import LEARNERS, assert_identical, stream
from kons import AutoKONS
from kons.errors import FileError
from kons.learners.auto.reservoir import Reservoir
from kons.means import Mean
from kons.state import Array, Corner, Count, Inner, Items, Leading, Part, Whole, fields


class Tally(Part):
    """Some of everything."""

    STATE = fields(
        kinds=Count(binds="kinds"),
        codes=Whole("rows", below="kinds"),
        sums=Array("rows", "columns", written="always"),
        names=Items("a name", lambda name: type(name) is str),
        _mean=Inner(),
    )

    def __init__(self):
        self.kinds, self.codes = 0, np.zeros(0, dtype=np.int64)
        self.sums, self.names, self._mean = np.zeros((0, 2)), [], Mean()

    def learn(self):
        self.kinds = 3
        self.codes = np.append(self.codes, [0, 2])
        self.sums = np.vstack([self.sums, np.ones((2, 2))])
        self.sums += 1.0
        self.names += ["b", "a", f"c{len(self.names)}"]
        self._mean.follow(np.arange(3.0), np.ones(3))
        return self


def test_what_is_saved_is_found_again():
    twin = Tally().resume(Tally().learn().state())
    assert twin.codes.dtype == np.int64
    assert twin.names == ["b", "a", "c0"]
    assert_identical(twin.learn().state(), Tally().learn().learn().state())


def test_a_mark_is_gone_back_to_bit_for_bit():
    part = Tally().learn()
    before, mark = part.state(), part.mark()
    part.sums += 5.0
    part.learn()
    part.restore(mark)
    assert_identical(part.state(), before)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"codes": np.array([0.0, 3.0])}, "codes holds something else than whole numbers below 3"),
        ({"codes": np.array([0.0, 0.5])}, "whole numbers"),
        ({"codes": np.array([0.0, -1.0])}, "codes holds NaN, infinity or a number below 0"),
        ({"codes": np.zeros(5)}, r"sums has the shape \(2, 2\), expected \(5, 'any'\)"),
        ({"names": ["a", 3]}, "names holds 3, expected a name"),
        ({"names": "ab"}, "names is a str, expected a list"),
        ({"mean": {"sum": 1.0, "mass": -1.0}}, "Tally, mean cannot be used: mass is -1"),
    ],
)
def test_what_does_not_fit_is_refused(changes, text):
    with pytest.raises(FileError, match=text):
        Tally().resume(Tally().learn().state() | changes)


class Buffer(Part):
    """Rows that are appended to a buffer, and what is between them."""

    STATE = fields(_rows=Leading("count", 2), _below=Corner("count"), _narrow=Corner("count"))

    def __init__(self, count=0):
        self.count, self._rows = count, np.arange(8.0).reshape(4, 2)
        self._below, self._narrow = np.arange(16.0).reshape(4, 4), np.zeros((4, 0))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_of_a_buffer_only_what_counts_is_saved(count):
    state = Buffer(count).state()
    assert {name: None if value is None else value.tolist() for name, value in state.items()} == {
        "rows": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]][:count] or None,
        "below": [4.0, 8.0, 9.0] if count == 3 else None,
        "narrow": None,
    }
    assert_identical(Buffer().resume(state).state(), state)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rows": None}, r"below has the shape \(3,\), expected \(0,\)"),
        ({"below": None}, "below is of type NoneType"),
        ({"narrow": np.zeros(3)}, r"narrow has the shape \(3,\), expected \(0,\)"),
        ({"rows": np.zeros((5, 2))}, "rows of rows: 5 is not within 0 and 4"),
    ],
)
def test_a_buffer_with_other_rows_is_refused(changes, text):
    with pytest.raises(FileError, match=text):
        Buffer().resume(Buffer(3).state() | changes)


# ---- what a mark refers to


def references(part):
    """The arrays that a mark of a part keeps by reference: of these, no number may change."""
    for name, field in part.declared.items():
        value = getattr(part, name)
        if isinstance(value, np.ndarray) and not field.undoes:
            # Rows are appended to a buffer behind those that are there.
            if isinstance(part, Reservoir) and name == "_last":
                value = part.last(part.recent)
            elif isinstance(field, Leading):
                value = value[: getattr(part, field.count)]
            yield f"{type(part).__name__}.{name}", value


@pytest.mark.parametrize("name", [*LEARNERS, "AutoKONS", "AutoKONS of classes"])
def test_what_a_mark_refers_to_is_replaced_and_never_written(name, monkeypatch):
    kept = []
    honest = Part.mark

    def watched(part):
        kept.extend((where, array, array.copy()) for where, array in references(part))
        return honest(part)

    monkeypatch.setattr(Part, "mark", watched)
    if name in LEARNERS:
        learner, (X, y) = LEARNERS[name](), stream(120)
    else:
        X, y = stream(700)
        y = y if name == "AutoKONS" else np.where(np.arange(700) < 300, "a", np.where(y > 0.0, "b", "c"))
        learner = AutoKONS("regression" if name == "AutoKONS" else "classification", max_atoms=10)
    half = len(X) // 2
    learner.advance(X[:half], y[:half])
    for x, target in zip(X[half : half + 5], y[half : half + 5], strict=True):
        learner.learn_one(x, target)
    learner.advance(X[half + 5 :], y[half + 5 :])
    assert kept or not name.startswith(("Embedded", "Auto"))  # others only ever append
    for where, array, before in kept:
        np.testing.assert_array_equal(array, before, err_msg=where)
