"""Files as people have them: without a header, packed, space-separated, with bad cells late."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from kons.errors import ConfigurationError, InputError
from kons.streams import open_stream
from kons.streams.opening import resolve_column
from streams.whole import by_name, whole

PLAIN = "a,b,y\n" + "".join(f"{i * 2},{i % 5},{i * 0.5}\n" for i in range(60))
ROWS = [[float(i * 2), float(i % 5)] for i in range(60)]


@pytest.fixture
def file(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


# ---- headers and names


def test_a_first_line_of_numbers_is_a_row(file):
    path = file("1,2.5,3\n4,5,6\n7,8,9\n")
    stream = open_stream(path, "c3", quiet=True)
    X, y, lines = whole(stream)
    assert stream.features == ("c1", "c2")
    assert (X[0].tolist(), y.tolist(), lines.tolist()) == ([1, 2.5], [3, 6, 9], [1, 2, 3])
    assert "no header: columns are called c1 to c3" in stream.notes
    again = open_stream(file("10,11,12\n13,14,15\n", "more.csv"), plan=stream.plan)
    assert whole(again)[1].tolist() == [12, 15]
    years = open_stream(path, "3", header=True, quiet=True)
    assert (years.features, whole(years)[2].tolist()) == (("1", "2.5"), [2, 3])


def test_gaps_are_no_names(file):
    stream = open_stream(file("1,?,3\n4,5,6\n7,8,9\n"), "c3", quiet=True)
    assert whole(stream)[1].tolist() == [3, 6, 9]
    index = open_stream(file(",2019,2020\n3,5,6\n1,8,9\n", "years.csv"), "2020", quiet=True)
    assert whole(index)[1].tolist() == [6, 9]


def test_no_header_can_be_said(file):
    path = file("1,red,3\n4,red,6\n7,green,9\n")
    taken = open_stream(path, "3", quiet=True, drop=["red"])
    assert len(whole(taken)[1]) == 2
    assert "names are in the first line, though it has 1, 3 (header)" in taken.notes
    stream = open_stream(path, "c3", header=False, quiet=True)
    assert whole(stream)[1].tolist() == [3, 6, 9]
    assert stream.features[:2] == ("c1", "c2=red")


def test_numeric_overrules_text_and_dates(file):
    rows = [f"{'$1 500' if i % 3 == 0 else f'not measured {i}'},{1551398400 + i},{i % 5}" for i in range(60)]
    path = file("\n".join(["price,time,y", *rows]))
    stream = open_stream(path, "y", numeric=["price", "time"], task="regression", quiet=True)
    found = whole(stream)[0]
    assert stream.features == ("price", "price missing", "time")
    assert (found[0].tolist(), stream.bad_cells["price"].number) == ([1500, 0, 1551398400], 40)


def test_columns_of_the_same_name_are_renamed_and_told(file):
    stream = open_stream(file("a,a,a.1,y,a\n1,2,3,4,5\n6,7,8,9,10\n2,2,2,2,2\n"), "y", quiet=True)
    assert stream.features == ("a", "a.2", "a.1", "a.3")
    assert whole(stream)[0][0].tolist() == [1, 2, 3, 5]
    assert stream.notes[0] == "columns of the same name, renamed: a.2, a.3"


@pytest.mark.parametrize(
    ("word", "name"),
    [("b", "b"), ("3", "3"), (3, "3"), ("2", "b"), (2, "b"), ("-1", "y"), ("c1", "a"), (" 4", "y")],
)
def test_columns_by_name_or_place(word, name):
    assert resolve_column(["a", "b", "3", "y"], word) == name


@pytest.mark.parametrize("word", ["5", 0, "0", "-5", "c5", "", "bb", "1.5", "9" * 30, "--1"])
def test_columns_that_are_not_there(word):
    with pytest.raises(ConfigurationError, match="no column"):
        resolve_column(["a", "b", "3", "y"], word)


def test_places_are_understood_wherever_columns_are(file):
    path = file(PLAIN)
    assert whole(open_stream(path, -1, drop=["2"], time=1, quiet=True, lag="1:1"))[0][0].tolist() == [0.0]
    assert open_stream(path, "3", columns=["c1"], quiet=True).features == ("a",)


def test_libsvm_labels_may_be_named(file):
    path = file("1 1:2 2:5\n3 1:4\n5 1:6\n", "t.libsvm")
    for target, name in [
        (None, "target"),
        ("target", "target"),
        ("price", "price"),
        ("-1", "target"),
        (3, "target"),
    ]:
        stream = open_stream(path, target, quiet=True)
        assert (stream.target, whole(stream)[1].tolist()) == (name, [1, 3, 5])
        assert open_stream(path, plan=stream.plan).has_target
    other = open_stream(path, "x1", quiet=True)
    assert (other.features, whole(other)[1].tolist()) == (("x2", "target"), [2, 4, 6])
    with pytest.raises(ConfigurationError, match="no column 'x9'"):
        open_stream(path, "x9", quiet=True)


# ---- delimiters and quotes


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace(",", "   "),
        PLAIN.replace(",", " \t ").replace("\n", "  \r\n  "),
        "".join(f"   {line}\n" for line in PLAIN.replace(",", " ").splitlines()),
    ],
)
def test_runs_of_spaces_delimit_where_nothing_else_does(file, text):
    assert whole(open_stream(file(text, "t.txt"), "y", quiet=True))[0].tolist() == ROWS


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("1,5;2,5\n3,5;4,5\n2,5;7,0\n", 2),
        ("1,5 2,5 3\n3,5 4,5 1\n2,5 7,0 2\n", 3),
        ("1,234,567;red\n2,234,567;red\n3,234,567;red\n", 2),
        ('x,y "the name" z\n1 "March 3, 2016" 2\n1 "March 4, 2016" 7\n1 "March 4, 2017" 7\n', 3),
        ("station 1,level 2,5.0\nstation 2,level 1,6.0\nstation 2,level 1,7.0\n", 3),
        ("first name,last name\nJohn Paul,Van Gogh\nJohn Paul,El Greco\n", 2),
        ('a|b;c|y\n1|2|3\n1|"x\ny;z"|3\n4|5\n1|2|4\n1|2|3\n1|2|3\n', 3),
    ],
)
def test_the_first_rows_tell_what_delimits_them(file, text, columns):
    assert len(open_stream(file(text, "t"), -1, quiet=True, task="classification").reader.columns) == columns


def test_texts_with_spaces_may_be_quoted(file):
    path = file('a "the name" y\n1 "x  y" 1\n2   "x  y" 2\n3 z 3\n4 "x  y" 4\n')
    stream = open_stream(path, "y", quiet=True)
    assert stream.plan.columns[1].name == "the name"
    assert by_name(stream)["the name=x  y"].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_a_stray_quote_in_a_name_is_a_letter(file):
    rows = "".join(f"{i},{i % 9},{i % 5},{i % 7}\n" for i in range(3000))
    stream = open_stream(file('id,width 12",height,price\n' + rows), "price", quiet=True)
    assert stream.features == ('width 12"', "height")
    assert any("the number of the row" in note and "id" in note for note in stream.notes)
    assert len(whole(stream)[1]) == 3000


# ---- lists of JSON and packed files

OBJECTS = [{"a": float(i * 2), "b": float(i % 5), "t": 'x]"{', "y": i * 0.5} for i in range(60)]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_list_of_objects_is_read_as_lines_are(file, monkeypatch, piece, indent):
    monkeypatch.setattr("kons.streams.text.PIECE", piece)
    monkeypatch.setattr("kons.streams.json_lines.PIECE", piece)
    stream = open_stream(file(json.dumps(OBJECTS, indent=indent), "t.json"), "y", drop=["t"], quiet=True)
    X, y, rows = whole(stream)
    assert X.tolist() == ROWS
    assert y.tolist() == [row["y"] for row in OBJECTS]
    assert rows.tolist() == list(range(1, 61))
    assert whole(stream)[0].tolist() == ROWS


def test_rows_before_the_damage_of_a_list_are_handed_on(file):
    text = json.dumps(OBJECTS * 20)[:-1] + ', {"a": oops}]'
    options = {"drop": ["t"], "block_size": 400, "quiet": True, "on_bad_row": "error"}
    stream = open_stream(file(text, "t.json"), "y", **options)
    blocks = stream.blocks()
    assert [next(blocks).first for _ in range(4)] == [0, 400, 512, 800]  # at 512 numbers are looked at
    with pytest.raises(InputError, match=r"row 1,201: '{.*oops.*is not a JSON object"):
        next(blocks)


def packed(text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/data.csv", text)
    yield "zip", out.getvalue()
    yield "gz", gzip.compress(text.encode())
    yield "bz2", bz2.compress(text.encode())
    yield "xz", lzma.compress(text.encode())
    for codec, ending in (("zstd", "zst"), ("lz4", "lz4")):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(text.encode())
        yield ending, sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("ending", "data"), list(packed(PLAIN)), ids=lambda value: value if isinstance(value, str) else ""
)
def test_packed_files_are_known_by_their_content(file, ending, data):
    for name in (f"t.csv.{ending}", "t.csv", "unknown"):
        stream = open_stream(file(data, name), "y", quiet=True)
        assert whole(stream)[0].tolist() == ROWS
        assert stream.bytes_done == stream.bytes_total or ending == "zip"
    rng = np.random.default_rng(0)
    for _ in range(20):
        cut = bytearray(data[: rng.integers(8, len(data))])
        cut[rng.integers(6, len(cut))] ^= 255
        with contextlib.suppress(InputError, ConfigurationError):
            whole(open_stream(file(bytes(cut), "cut"), "y", quiet=True))


# ---- gaps and bad cells


def sources(folder, rows):
    names = list(rows[0])
    texts = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    (folder / "t.csv").write_text("\n".join([",".join(names), *texts]))
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    yield folder / "t.csv"
    yield folder / "t.jsonl"
    yield pd.DataFrame(rows)
    yield [({k: v for k, v in row.items() if k != "y"}, row["y"]) for row in rows]


def test_texts_and_numbers_that_mean_a_gap(tmp_path):
    rows = [{"a": float(i), "c": "rg"[i % 2], "y": i * 0.5} for i in range(30)]
    rows[3]["a"], rows[4]["c"], rows[5]["a"] = -999.0, "unknown", None
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    kept = [i + 1 for i in range(30) if i not in (3, 4, 5)]
    for source in (*sources(tmp_path, rows), tmp_path / "t.parquet"):
        stream = open_stream(source, "y", na_values=[-999, "Unknown"], missing="skip", quiet=True)
        first = 1 if str(source).endswith(".csv") else 0
        assert whole(stream)[2].tolist() == [line + first for line in kept]
        assert stream.skipped == {"missing": 3}
        again = open_stream(source, plan=stream.plan.to_dict(), missing="skip")
        assert len(whole(again)[1]) == 27
    path = tmp_path / "gaps.csv"
    path.write_text("when,n,y\n2024-01-01,1,1\nunknown,-999.0,2\n2024-01-03,unknown,3\n2024-01-04,4,-999\n")
    stream = open_stream(path, "y", na_values=["-999", "unknown"], missing="skip", quiet=True)
    assert whole(stream)[1].tolist() == [1.0]
    with pytest.raises(ConfigurationError, match="expected a list"):
        open_stream(path, "y", na_values="-999")


def test_a_dash_is_a_gap_among_numbers_dates_and_flags_and_a_level_among_texts(file):
    cells = [("-", "none", "nil", "-")] * 60 + [
        (str(i), f"2024-01-{i % 28 + 1:02}", "no", "x") for i in range(40)
    ]
    lines = [",".join([*row, str(i * 0.5)]) for i, row in enumerate(cells)]
    stream = open_stream(file("n,d,f,c,y\n" + "\n".join(lines)), "y", quiet=True)
    assert len(whole(stream)[1]) == 100
    assert [column.kind for column in stream.plan.columns] == ["number", "date", "flag", "text"]
    assert stream.gaps == {"n": 60, "d": 60, "f": 60}
    assert stream.bad_cells == {}
    # A column of dashes only is empty so far.
    lines = [f"{i % 7}.5,-,{i}.5" for i in range(1100)] + [f"{i % 7}.5,{i},{i}.5" for i in range(100)]
    stream = open_stream(file("a,late,y\n" + "\n".join(lines)), "y", quiet=True)
    assert by_name(stream)["late"][-1] == 99.0
    assert stream.gaps == {"late": 1100}


def test_whole_numbers_beside_decimal_commas_are_moments_or_count_rows(file):
    lines = [f"{i + 1};{1700000000 + 7000 * i};{i % 5},5;{i % 3},25" for i in range(60)]
    stream = open_stream(file("row;created_at;a;y\n" + "\n".join(lines)), "y", quiet=True)
    assert {column.name: column.kind for column in stream.plan.columns} == {
        "created_at": "date",
        "a": "number",
    }


def test_numbers_that_mean_a_gap_may_be_written_in_any_way(file):
    lines = [f"{i % 9},5;{'-999.0' if i % 10 else '1.234.567,5'};{i},5" for i in range(60)]
    stream = open_stream(file("a;b;y\n" + "\n".join(lines)), "y", na_values=[-999], quiet=True)
    assert set(by_name(stream)["b"]) == {1234567.5}
    assert (stream.gaps, stream.bad_cells) == ({"b": 54}, {})


def test_a_bad_cell_is_a_gap_counted_by_column(tmp_path):
    late = 1010  # behind the rows that decide what a column holds
    rows = [
        {"a": i * 2.0, "f": bool(i % 2), "t": f"2024-01-{1 + i % 28:02d}", "y": i * 0.5} for i in range(1100)
    ]
    for i in range(4):
        rows[late + i]["a"] = f"oops {i}"
    rows[late + 10]["f"], rows[late + 11]["t"] = "maybe", "2024-02-31"
    for source in sources(tmp_path, rows):
        stream = open_stream(source, "y", quiet=True)
        X = whole(stream)[0]
        first = late + (2 if str(source).endswith(".csv") else 1)
        assert len(X) == 1100
        assert stream.skipped == {}
        assert stream.bad_cells["a"] == (4, tuple((first + i, f"oops {i}") for i in range(3)))
        assert stream.bad_cells["f"] == (1, ((first + 10, "maybe"),))
        assert stream.bad_cells["t"] == (1, ((first + 11, "2024-02-31"),))
        assert X[late : late + 4, 0].tolist() == [2.0 * np.mean(range(late))] * 4
        assert stream.gaps == {"a": 4, "f": 1, "t": 1}
        skipping = open_stream(source, "y", on_bad_row="skip", quiet=True)
        assert len(whole(skipping)[1]) == 1094
        assert skipping.skipped == {"bad row": 6}
        with pytest.raises(InputError, match=r"1[12], column 'a': 'oops 0' is not a number"):
            whole(open_stream(source, "y", on_bad_row="error", quiet=True))


def test_infinity_is_a_bad_cell(tmp_path, file):
    frame = pd.DataFrame({"a": [1.0, np.inf, 3.0, -np.inf], "y": [1.0, 2.0, 3.0, 4.0]})
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    for source, cells in [
        (frame, ((2, "inf"), (4, "-inf"))),
        (tmp_path / "t.parquet", ((2, "inf"), (4, "-inf"))),
        (file("a,y\n1,1\n1e999,2\n3,3\n-Infinity,4\n"), ((3, "1e999"), (5, "-Infinity"))),
    ]:
        stream = open_stream(source, "y", quiet=True)
        found = by_name(stream)
        assert found["a"].tolist() == [1, 1, 3, 2]
        assert found["a missing"].tolist() == [0, 1, 0, 1]
        assert stream.bad_cells == {"a": (2, cells)}


def test_a_bad_target_is_an_error_unless_rows_are_skipped(file):
    path = file("a,y\n1,1\nx,2\n3,oops\n4,4\n5,5\n")
    blocks = open_stream(path, "y", block_size=2, quiet=True)
    with pytest.raises(InputError, match="line 4, column 'y': 'oops' is not a number"):
        whole(blocks)
    assert blocks.bad_cells == {"a": (1, ((3, "x"),))}
    stream = open_stream(path, "y", on_bad_row="skip", quiet=True)
    assert whole(stream)[2].tolist() == [2, 5, 6]
    with pytest.raises(InputError, match="line 3, column 'y': 'inf' is not finite"):
        whole(open_stream(file("a,y\n1,1\n3,inf\n4,4\n5,5\n"), "y", quiet=True))


def test_a_wrong_number_of_fields_is_skipped_where_cells_are_gaps(file):
    path = file("a,b,y\n1,2,3\n1,2\n2,x,4\n1,2,3,4\n3,3,5\n1,1,1\n")
    stream = open_stream(path, "y", quiet=True)
    assert whole(stream)[2].tolist() == [2, 4, 6, 7]
    assert stream.skipped == {"bad row": 2}
    assert stream.bad_cells == {"b": (1, ((4, "x"),))}
