"""Small parts of the readers: names in messages, cells that are true or false, the columns of a source."""

import json

import pytest

from kons.streams import column_names
from kons.streams.wording import listed
from kons.tables.cells import BadCell, converter


def test_names_are_listed_up_to_a_number():
    names = ["a", "b", "c"]
    assert listed(names, most=3) == "a, b, c"
    assert listed(names, most=2) == "a, b and 1 more"


@pytest.mark.parametrize(
    ("cell", "value"), [(True, 1.0), (0, 0.0), (1, 1.0), (1.0, 1.0), (" Yes", 1.0), ("no", 0.0)]
)
def test_flags_may_be_written_as_numbers(cell, value):
    assert converter("flag")(cell) == value


@pytest.mark.parametrize("cell", [2, -1, 0.5, "maybe"])
def test_other_numbers_are_no_flags(cell):
    with pytest.raises(BadCell):
        converter("flag")(cell)


def test_the_columns_of_a_source_are_known_before_its_rows(tmp_path):
    table, lines = tmp_path / "table.csv", tmp_path / "lines.jsonl"
    table.write_text("a,b,\n1,2,3\n")
    lines.write_text(json.dumps({"x": 1.0, "y": 2.0}) + "\n")
    assert column_names(table) == ["a", "b", "column 3"]
    assert column_names(lines) == ["x", "y"]
