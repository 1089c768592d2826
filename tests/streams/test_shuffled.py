"""Rows in an order that a seed decides: all of them, once, with their lines, from any kind of file."""

import gzip

import numpy as np
import pytest

from kons.errors import ConfigurationError, InputError
from kons.streams import open_stream, shuffled

ROWS = 3000


@pytest.fixture(scope="module")
def text():
    """Records of several lines, and blank lines, between ordinary ones."""
    lines = ["i,word,y"]
    for i in range(ROWS):
        word = '"two\nlines"' if i % 7 == 0 and i > 600 else "x"
        lines += [f"{i},{word},{2 * i}"] + [""] * (i % 11 == 0 and i > 900)
    return "\n".join(lines)


def rows_of(path, **options):
    blocks = list(open_stream(path, "y", quiet=True, **options))
    return (np.concatenate([getattr(block, name) for block in blocks]) for name in ("X", "y", "lines"))


def written(tmp_path, text, kind):
    if kind == "gzip":
        path = tmp_path / "rows.csv.gz"
        path.write_bytes(gzip.compress(text.encode()))
        return path, {}
    path = tmp_path / "rows.csv"
    path.write_bytes(text.replace("x", "é").encode("latin-1") if kind == "latin-1" else text.encode())
    return path, {"encoding": "latin-1"} if kind == "latin-1" else {}


@pytest.mark.parametrize("kind", ["plain", "gzip", "latin-1"])
def test_every_row_once_with_its_line(tmp_path, text, kind):
    path, options = written(tmp_path, text, kind)
    options["numeric"] = ["i"]  # it counts the rows, and would be left out
    X, y, lines = rows_of(path, **options)
    shuffled_X, shuffled_y, shuffled_lines = rows_of(path, shuffle=5, **options)
    assert not np.array_equal(y, shuffled_y)
    back = np.argsort(shuffled_y)
    np.testing.assert_array_equal(shuffled_y[back], y)
    np.testing.assert_array_equal(shuffled_lines[back], lines)
    np.testing.assert_array_equal(shuffled_X[back, 0], X[:, 0])


def test_as_many_rows_as_have_a_number(tmp_path, text, monkeypatch):
    path, _ = written(tmp_path, text, "plain")
    monkeypatch.setattr(shuffled, "MOST", ROWS)
    assert len(list(rows_of(path, shuffle=1))[1]) == ROWS
    monkeypatch.setattr(shuffled, "MOST", ROWS - 1)
    with pytest.raises(ConfigurationError, match=r"3,000 rows, more than can be shuffled \(2,999\)"):
        list(rows_of(path, shuffle=1))


def test_the_order_is_that_of_the_seed(tmp_path, text):
    path, _ = written(tmp_path, text, "plain")
    _, first, _ = rows_of(path, shuffle=1)
    expected = np.arange(ROWS, dtype=np.uint32)
    np.random.default_rng(1).shuffle(expected)
    np.testing.assert_array_equal(first, 2.0 * expected)
    _, again, _ = rows_of(path, shuffle=1)
    np.testing.assert_array_equal(first, again)


def test_a_stream_goes_on_in_the_same_order(tmp_path, text):
    path, _ = written(tmp_path, text, "plain")
    _, whole, _ = rows_of(path, shuffle=2)
    rest = np.concatenate([block.y for block in open_stream(path, "y", quiet=True, shuffle=2).blocks(1024)])
    np.testing.assert_array_equal(whole[1024:], rest)


def test_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = {"i": np.arange(ROWS), "word": ["x"] * ROWS, "y": 2.0 * np.arange(ROWS)}
    parquet.write_table(arrow.table(names), tmp_path / "rows.parquet")
    X, y, lines = rows_of(tmp_path / "rows.parquet", shuffle=3, numeric=["i"])
    assert sorted(y.tolist()) == (2.0 * np.arange(ROWS)).tolist()
    np.testing.assert_array_equal(X[:, 0], y / 2)
    np.testing.assert_array_equal(lines, y / 2 + 1)
    assert y.tolist() != sorted(y.tolist())


def test_the_line_of_a_bad_cell_is_that_of_the_file(tmp_path):
    rows = [f"{i},{i}" for i in range(500)]
    rows[321] = "321,oops"
    (tmp_path / "bad.csv").write_text("\n".join(["i,y", *rows]) + "\n")
    with pytest.raises(InputError, match="line 323, column 'y': 'oops'"):
        list(open_stream(tmp_path / "bad.csv", "y", quiet=True, shuffle=0))
    stream = open_stream(tmp_path / "bad.csv", "y", quiet=True, shuffle=0, on_bad_row="skip")
    assert sum(len(block.y) for block in stream) == 499


def test_what_cannot_be_shuffled_is_refused(tmp_path, text):
    path, _ = written(tmp_path, text, "plain")
    with pytest.raises(ConfigurationError, match="no order in time"):
        open_stream(path, "y", quiet=True, shuffle=0, lag="target:1")
    with pytest.raises(ConfigurationError, match="can be read only once"):
        open_stream(iter([([1.0], 2.0)]), quiet=True, shuffle=0)
    with pytest.raises(ConfigurationError, match="shuffle it before"):
        open_stream((np.ones((3, 1)), np.ones(3)), quiet=True, shuffle=0)


def test_a_column_that_counts_the_rows_of_the_file_is_left_out_in_any_order(tmp_path, text):
    path, _ = written(tmp_path, text, "plain")
    stream = open_stream(path, "y", shuffle=5, quiet=True)
    next(iter(stream))
    assert not any(name.startswith("i") for name in stream.features)
