"""From columns to features: refereed by a naive encoder, and what must not be known yet."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons.errors import FileError, InputError
from kons.tables import Encoder, records_of
from kons.tables.dates import PARTS, phase, phases_of
from tables.naive_encoder import Naive, is_gap
from tables.record_streams import GAPS, mixed, taught

VALUES = {
    "a": st.one_of(st.floats(-100.0, 100.0), GAPS),
    "b": st.one_of(st.integers(0, 3).map(float), GAPS),
    "w": st.one_of(st.sampled_from(["p", "q"]), GAPS),
    "v": st.one_of(st.sampled_from([*"abcdefgh"]), GAPS),
}
NEW_YEARS = [
    int(np.datetime64(f"{year}-01-01", "us").view(np.int64)) + offset
    for year in (1600, 1900, 1970, 2000, 2024, 2100, 9999)
    for offset in (-1, 0, 1)
]
ROWS = st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=120)


@given(rows=ROWS)
def test_numbers_and_text_are_what_they_are_by_hand(rows):
    encoder, naive = Encoder(), Naive()
    for x in rows:
        (piece,) = encoder.learn(records_of(x), [0.0])
        expected = naive.encode(x)
        np.testing.assert_allclose(piece.X[0], expected, rtol=1e-12, atol=1e-12)
        earlier = [] if piece.growth is None else piece.growth.earlier.tolist()
        assert earlier == naive.learn(x)
    missing = {name: sum(is_gap(x.get(name)) for x in rows) for name in naive.kinds}
    assert encoder.gaps == {name: count for name, count in missing.items() if count}
    assert repr(Encoder().resume(encoder.state()).state()) == repr(encoder.state())


def test_gaps_are_counted_behind_the_levels_that_are_remembered():
    encoder, rows = (
        Encoder(),
        [{"c": f"name {i}"} for i in range(10_001)] + [{"c": None}, {"c": "name 1"}, {}],
    )
    taught(encoder, rows, [0.0] * len(rows), [5000])
    assert encoder.gaps == {"c": 2}
    encoder.learn_one(encoder.read_one({}, 0.0), 0.0)
    assert encoder.gaps == {"c": 3}


@given(stamp=st.one_of(st.integers(-(10**17), 2 * 10**17), st.sampled_from(NEW_YEARS)))
def test_one_moment_has_the_phases_that_many_have_bit_for_bit(stamp):
    assert phases_of(stamp) == tuple(float(phase(np.array([stamp]), part)[0]) for part in PARTS)


def test_dates_are_days_and_waves_that_vary():
    encoder, monday = Encoder(), datetime.datetime(2024, 1, 1)
    rows = [{"when": monday + datetime.timedelta(days=i)} for i in range(3)]
    rows += [{"when": monday + datetime.timedelta(days=2, hours=6)}, {}, rows[0]]
    pieces = list(encoder.learn(records_of(rows), np.zeros(6)))
    assert encoder.features == [
        *("when days", "when weekday sin", "when weekday cos", "when yearday sin", "when yearday cos"),
        *("when hour sin", "when hour cos", "when missing"),
    ]
    assert [row[0] for piece in pieces for row in piece.X] == [0.0, 1.0, 2.0, 2.25, 5.25 / 4.0, 0.0]
    last = pieces[-1].X[-1]
    # Monday, at midnight, on the first of January: where all three circles begin.
    np.testing.assert_allclose(last[1:], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(
        encoder.look(records_of({"when": datetime.datetime(2024, 1, 3, 6)}))[0, 5:7], [1.0, 0.0], atol=1e-15
    )


@pytest.mark.parametrize("late", [{}, {"delay": 5}], ids=str)
@pytest.mark.parametrize("labelled", [False, True])
def test_a_target_changes_no_row_before_it_is_known(late, labelled):
    rows, numbers = mixed(effort.amount(500, 900), seed=3)
    targets = [int(y > 9.0) for y in numbers] if labelled else numbers
    at = len(rows) - 200
    changed = list(targets)
    changed[at] = 1 - targets[at] if labelled else targets[at] + 1e3
    first, second = (
        [row for row in taught(Encoder(labelled=labelled, **late), rows, y, [1]) if isinstance(row, bytes)]
        for y in (targets, changed)
    )
    known = at + late.get("delay", 0) + 1  # the first row that may know that target
    assert first[:known] == second[:known]
    assert first != second


def test_features_are_only_added_and_keep_their_places():
    rows, targets = mixed(700, seed=2)
    encoder, before = Encoder(), []
    for start in range(0, 700, 50):
        list(encoder.learn(records_of(rows[start : start + 50]), targets[start : start + 50]))
        owners = encoder.owners
        assert owners[: len(before)] == before
        assert len(owners) == len(encoder.features) == encoder.width
        before = owners


def test_a_class_that_comes_late_told_nothing_before():
    """Earlier rows have 0 as the statistic of a class that none of them was of."""
    rows, numbers = mixed(600, seed=3)
    encoder, targets = Encoder(labelled=True), [int(y > 9.0) for y in numbers]
    list(encoder.learn(records_of(rows[:-1]), targets[:-1]))
    width = encoder.width
    *_, piece = encoder.learn(records_of(rows[-1]), [2])
    assert sorted(encoder.features[width:]) == ["mostly mean target 2", "word mean target 2"]
    assert piece.growth.earlier.tolist() == [0.0, 0.0]


def test_features_that_are_given_up_cost_nothing_more():
    rows, targets = mixed(900, seed=3)
    encoder = Encoder()
    list(encoder.learn(records_of(rows), targets))
    said, last = encoder.look(records_of(rows[:20])), encoder.width - 1
    assert encoder.features[last] == "mostly mean target 1"
    encoder.keep_features(encoder.width)  # all of them: nothing is given up
    np.testing.assert_array_equal(encoder.look(records_of(rows[:20])), said)
    encoder.keep_features(last)
    np.testing.assert_array_equal(encoder.look(records_of(rows[:20])), said[:, :last])
    assert encoder.columns["mostly"].levels is None  # nobody looks at them
    list(encoder.learn(records_of([*rows[:20], {"new": 1.0}]), [*targets[:20], 0.0]))
    assert encoder.width == last


def test_states_go_on_and_forged_ones_are_refused():
    rows, targets = mixed(620, seed=4)
    encoder = Encoder()
    list(encoder.learn(records_of(rows[:600]), targets[:600]))
    twin = Encoder().resume(encoder.state())
    assert taught(twin, rows[600:], targets[600:], [1]) == taught(encoder, rows[600:], targets[600:], [20])
    state = encoder.state()
    columns = {name: (kind, column) for name, kind, column in state["columns"]}

    def with_column(name, **changes):
        changed = columns | {name: (columns[name][0], columns[name][1] | changes)}
        return state | {"columns": [(key, *entry) for key, entry in changed.items()]}

    word = columns["word"][1]
    for forged in (
        state | {"width": state["width"] + 1},
        state | {"columns": state["columns"][1:]},
        with_column("a", slots=columns["mostly"][1]["slots"]),
        with_column("a", roles=[]),
        with_column("word", levels=None),
        with_column("word", levels={"codes": ["twice", "twice"]}),
        with_column("word", levels={"codes": [3]}),
        with_column("word", indicators=word["indicators"] | {"used": 1}),
        with_column("word", statistics=word["statistics"] | {"totals": np.zeros(2)}),
        with_column("when", first=float("nan")),
    ):
        with pytest.raises(FileError):
            Encoder().resume(forged)


@pytest.mark.parametrize(
    "bad", [{"a": float("inf")}, {"a": [1.0]}, {"new": -np.inf}, {"word": {"a": 1}}, {"when": 1j}], ids=str
)
def test_what_is_no_value_can_be_undone(bad):
    rows, targets = mixed(80, seed=5)
    encoder = Encoder()
    list(encoder.learn(records_of(rows[:60]), targets[:60]))
    before, mark = repr(encoder.state()), encoder.mark()
    with pytest.raises(InputError, match="expected"):
        list(encoder.learn(records_of([*rows[60:79], rows[79] | bad]), targets[60:80]))
    encoder.restore(mark)
    assert repr(encoder.state()) == before
