"""The plain reader: what it takes, and what it says about what it does not."""

import codecs
import gzip

import numpy as np
import pytest

from kons.errors import ConfigurationError, InputError
from kons.streams import csv_columns, read_csv

PLAIN = "a,b,y\n1,2.5,3\n-4,5e-1,6\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        PLAIN.replace("\n", "\r\n"),
        codecs.BOM_UTF8 + PLAIN.encode(),
        gzip.compress(PLAIN.encode()),
        PLAIN + "\n\n  \n",
        PLAIN.rstrip("\n"),
        PLAIN.replace("a,b,y", '"a", b ,"y"').replace("2.5", '"2.5"').replace("-4", " -4"),
    ],
    ids=["comma", "semicolon", "tab", "crlf", "bom", "gzip", "blank lines", "no last newline", "quotes"],
)
def test_the_usual_dialects_give_the_same_numbers(file, content):
    table = read_csv(file(content), "y")
    assert table.features == ("a", "b")
    assert table.X.tolist() == [[1.0, 2.5], [-4.0, 0.5]]
    assert table.y.tolist() == [3.0, 6.0]
    assert table.X.flags.c_contiguous
    assert len(table) == 2


def test_columns_can_be_dropped_and_rows_limited(file):
    path = file("id;x;y\nthe first;1;2\nthe second;3;4\nthe third;oops;6\n")
    table = read_csv(path, "x", drop=["id"], rows=2)
    assert (table.features, table.target) == (("y",), "x")
    assert table.X.tolist() == [[2.0], [4.0]]


def test_a_quoted_name_may_hold_the_other_delimiters_and_a_nameless_column_gets_a_name(file):
    path = file('"x, in m; or so";y;\n1;2;3\n')
    assert csv_columns(path) == ["x, in m; or so", "y", "column 3"]
    assert read_csv(path, "y", drop=["column 3"]).X.tolist() == [[1.0]]


def test_it_tells_how_far_it_is(file):
    seen = []
    read_csv(file("x,y\n" + "1,2\n" * 9000), "y", tell=seen.append)
    assert seen == [4096, 8192]


def test_many_columns(file):
    names = [f"c{i}" for i in range(10_000)]
    path = file(",".join(names) + "\n" + ",".join(["1"] * 10_000) + "\n")
    assert read_csv(path, "c9999").X.shape == (1, 9999)
    with pytest.raises(ConfigurationError, match=r"c19 and 9,980 more\."):
        read_csv(path, "nothing like it")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,y\n1,2\nred,3\n", "line 3, column 'a': 'red' is not a number: encode .*--drop 'a'"),
        ("a,y\n1,2\n1,red\n", "line 3, column 'y': 'red' is not a number: encode it as a number.$"),
        ("a;y\n1,5;2\n", "line 2, column 'a': '1,5' is not a number: write decimals with a point"),
        ("a,y\n1_0,2\n", "line 2, column 'a': '1_0' is not a number"),
        ("a,y\n1,2\n\n,3\n", "line 4, column 'a': '' is a missing value: fill it, delete the row"),
        ("a,y\n1,NaN\n", "line 2, column 'y': 'nan' is a missing value"),
        ("a,y\nNA,2\n", "line 2, column 'a': 'NA' is a missing value"),
        ("a,y\n1,2\n-inf,3\n", "line 3, column 'a': '-inf' is not finite"),
        ("a,y\n1e999,3\n", "line 2, column 'a': 'inf' is not finite"),
        ("a,b,y\n1,2,3\n1,2\n", r"line 3: 2 field\(s\), expected the header's 3"),
        ("a,b,y\n1,2,3,4\n", r"line 2: 4 field\(s\), expected the header's 3"),
        ("a,b,y\n1;2;3\n", r"line 2: 1 field\(s\).* delimited otherwise"),
        ('a,y\n1,2\n"3,4\n5,6\n', "line 3: a quote is opened and never closed"),
        ('a,y\n1,2\n"3"4,5\n', "line 3: a quote is closed and text follows"),
        ('"a,y\n1,2\n', "line 1: a quote is opened and never closed"),
        ("a,y\r1,2\r3,4\r", "line 1: a carriage return"),
        ("", "is empty: expected a line with the columns' names"),
        ("\n1,2\n", "is empty"),
        ("a,y\n", "has a header and no rows"),
        ("1,2\n3,4\n", "line 1: numbers only, expected a header"),
        ("a,y,a\n1,2,3\n", "line 1: two columns are called 'a'"),
        ("y\n1\n", "no column left to predict 'y' from"),
        (b"a,y\n1,2\n\xe9,3\n", "line 3: not UTF-8 text"),
        ("a,y\n1,2\n".encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        (b"a,y\n\x00\x01,2\n", "line 2: not text, but binary data"),
        (gzip.compress(("x,y\n" + "1,2\n" * 99).encode())[:-12], "cannot be read on"),
        (b"\x1f\x8b nonsense", "cannot be read on"),
        ("a,y\n" + "x" * 300 + ",1\n", r"'x{37}\.\.\.' is not a number"),
    ],
)
def test_bad_files_are_refused_with_line_and_column(file, content, words):
    with pytest.raises(InputError, match=words) as caught:
        read_csv(file(content), "y")
    assert "data.csv" in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nothing.csv: cannot be read \(No such file"):
        read_csv(tmp_path / "nothing.csv", "y")
    with pytest.raises(InputError, match=r"cannot be read \("):
        csv_columns(tmp_path)
    with pytest.raises(InputError, match="null"):
        csv_columns("a\0b.csv")


def test_mistyped_columns_name_the_nearest(file):
    path = file("Price,area\n1,2\n")
    with pytest.raises(ConfigurationError, match=r"has no column 'prize': did you mean 'Price'\?"):
        read_csv(path, "prize")
    with pytest.raises(ConfigurationError, match=r"has no column 'aera': did you mean 'area'\?"):
        read_csv(path, "Price", drop=["aera"])
    with pytest.raises(ConfigurationError, match="its columns are Price, area"):
        read_csv(path, "zzz")
    with pytest.raises(ConfigurationError, match="cannot be dropped"):
        read_csv(path, "Price", drop=["Price"])


def test_endless_binary_data_is_not_read_to_its_end(monkeypatch, file):
    monkeypatch.setattr("kons.streams.csv.LONGEST_LINE", 1000)
    with pytest.raises(InputError, match="binary"):
        csv_columns(file("x" * 5000))


def test_numbers_survive_bit_for_bit(file):
    values = np.random.default_rng(0).normal(size=(50, 3)) * 10.0 ** np.arange(-8, 16, 8)
    lines = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    table = read_csv(file("a,b,y\n" + lines), "y")
    assert np.array_equal(np.column_stack([table.X, table.y]), values)
