"""Encoders: the same numbers for the same value, for ever; dates on circles."""

import copy
import datetime
import hashlib
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kons.encoding import DATE_PARTS, HashedOneHot, date_parts, parts_that_vary
from kons.errors import ConfigurationError, InputError


def place_by_hand(text, width, salt):
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=salt.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") % width


@pytest.mark.parametrize(("width", "salt"), [(8, 0), (3, 7), (1, 0), (200, 2**40)])
def test_the_place_is_the_documented_hash(width, salt):
    encoder = HashedOneHot(width, salt)
    for text in ("", "red", "größe", "a" * 1000, "red"):
        assert encoder.place(text) == place_by_hand(text, width, salt)


def test_another_process_gives_the_same_places():
    code = "from kons.encoding import HashedOneHot as H; print([H().place(t) for t in 'abcdefgh'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == str([HashedOneHot().place(text) for text in "abcdefgh"])


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=20), st.integers(1, 9))
def test_a_column_is_its_values_one_by_one(values, width):
    encoder = HashedOneHot(width)
    encoded = encoder.encode(values)
    assert encoded.shape == (len(values), width)
    for value, row in zip(values, encoded, strict=True):
        expected = np.zeros(width)
        if value is not None:
            expected[encoder.place(value)] = 1.0
        assert row.tolist() == expected.tolist()


def test_values_that_are_equal_but_written_differently_stay_apart():
    encoder = HashedOneHot(1000)
    assert encoder.place(1) == encoder.place("1")
    assert encoder.place(True) == encoder.place("True")
    assert encoder.place(1) != encoder.place(True)
    assert encoder.place(1.0) == encoder.place("1.0")


def test_the_memory_of_places_is_bounded_and_does_not_matter(monkeypatch):
    monkeypatch.setattr("kons.encoding.MOST_KEPT", 10)
    hashed = []

    def counted(data, **options):
        hashed.append(data)
        return hashlib.blake2b(data, **options)

    monkeypatch.setattr("kons.encoding.blake2b", counted)
    encoder = HashedOneHot(50)
    texts = [str(i) for i in range(100)]
    assert [encoder.place(t) for t in texts] == [place_by_hand(t, 50, 0) for t in texts]
    hashed.clear()
    # The latest first: whatever is not hashed again was remembered.
    assert [encoder.place(t) for t in texts[::-1]] == [place_by_hand(t, 50, 0) for t in texts[::-1]]
    assert 1 <= len(texts) - len(hashed) <= 10


def test_a_salt_that_keeps_frequent_values_apart():
    for values in (["m", "f"], ["red", "green", "blue", "black", "white"], list("abcdef")):
        encoder = HashedOneHot.without_clashes(values, 8)
        assert len({encoder.place(value) for value in values}) == len(values)
    many = [str(i) for i in range(100)]
    assert HashedOneHot.without_clashes(many, 8) == HashedOneHot.without_clashes(many[:8], 8)
    assert HashedOneHot.without_clashes([], 8) == HashedOneHot(8)


def test_copies_are_equal_and_independent():
    encoder = HashedOneHot(5, salt=3)
    encoder.place("a")
    for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert other == encoder
        assert hash(other) == hash(encoder)
        assert other.place("a") == encoder.place("a")
    assert encoder != HashedOneHot(5)
    assert repr(encoder) == "HashedOneHot(width=5, salt=3)"


@pytest.mark.parametrize("arguments", [(0,), (2.5,), (8, -1), (8, 2**64)])
def test_bad_parameters(arguments):
    with pytest.raises(ConfigurationError, match=r"^(width|salt) is "):
        HashedOneHot(*arguments)


@given(st.datetimes(datetime.datetime(1800, 1, 1), datetime.datetime(2200, 1, 1)))
def test_the_parts_of_a_date_by_hand(moment):
    found = date_parts([np.datetime64(moment, "us")])[0]
    clock = datetime.timedelta(
        hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond
    )
    day = clock / datetime.timedelta(days=1)
    start = datetime.datetime(moment.year, 1, 1)
    year = (moment - start) / (datetime.datetime(moment.year + 1, 1, 1) - start)
    expected = [
        wave(2 * math.pi * phase)
        for phase in (day, moment.weekday() / 7, year)
        for wave in (math.sin, math.cos)
    ]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_missing_date_is_in_the_middle():
    assert date_parts(["NaT", "2024-01-01"])[0].tolist() == [0.0] * 6
    assert date_parts(np.array([], dtype="datetime64[s]")).shape == (0, 6)


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        (np.arange("2024-01", "2024-02", dtype="datetime64[D]"), ("weekday", "yearday")),
        (np.arange("2024-01-01", "2024-01-03", dtype="datetime64[h]"), DATE_PARTS),
        (np.arange("2024-01-01T00", "2024-01-01T09", dtype="datetime64[m]"), DATE_PARTS),
        (np.datetime64("2024-01-01") + 7 * np.arange(60), ("yearday",)),
        (np.arange("2000", "2020", dtype="datetime64[Y]"), ("weekday",)),
        (np.array(["NaT"], dtype="datetime64[s]"), ()),
    ],
    ids=["days", "hours", "too short to tell", "weeks", "years", "nothing"],
)
def test_parts_that_stay_the_same_over_their_whole_period_are_left_out(times, parts):
    assert parts_that_vary(times) == parts


def test_what_is_no_date():
    with pytest.raises(InputError, match="no date"):
        date_parts(["tomorrow, maybe"])
    with pytest.raises(ConfigurationError, match="no part 'minute'"):
        date_parts(["2024-01-01"], ["minute"])
