"""Files of text: dialects, what is said about bad ones, and that the fast way equals the careful one."""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import json
import lzma
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import effort
from kons.errors import ConfigurationError, InputError, KonsError
from kons.streams import open_stream
from kons.streams.delimited import Layout
from streams.whole import by_name, whole

#: As strict as can be: gaps, bad cells and bad rows are errors.
STRICT = {"missing": "error", "on_bad_row": "error", "quiet": True}
PLAIN = "a,b,y\n1,2.5,3\n-4,5e-1,6\n7,8,9\n"
ROWS = [[1.0, 2.5], [-4.0, 0.5], [7.0, 8.0]]


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
        PLAIN.replace(",", "|"),
        PLAIN.replace("\n", "\r\n"),
        codecs.BOM_UTF8 + PLAIN.encode(),
        gzip.compress(PLAIN.encode()),
        gzip.compress(codecs.BOM_UTF8 + PLAIN.encode()),
        gzip.compress(PLAIN[:10].encode()) + gzip.compress(PLAIN[10:].encode()),
        PLAIN + "\n\n  \n",
        PLAIN.rstrip("\n"),
        PLAIN.replace("a,b,y", '"a", b ,"y"').replace("2.5", '"2.5"').replace("-4", " -4"),
        PLAIN.replace("\n1,", "\n+1,"),
        PLAIN.replace(",", ";").replace(".", ",").replace("5e-1", "0,5"),
    ],
    ids=[
        "comma", "semicolon", "tab", "bar", "crlf", "bom", "gzip", "gzip bom", "gzip in parts", "blank lines",
        "no last newline", "quotes", "plus", "decimal comma",
    ],
)  # fmt: skip
def test_the_usual_dialects_give_the_same_numbers(file, content):
    stream = open_stream(file(content), "y", quiet=True)
    X, y, lines = whole(stream)
    assert stream.features == ("a", "b")
    assert X.tolist() == ROWS
    assert y.tolist() == [3.0, 6.0, 9.0]
    assert lines.tolist() == [2, 3, 4]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "cp1252", "utf-8", "utf-32"])
def test_other_encodings_if_named(file, encoding):
    text = "größe,farbe,y\n1,grün,3\n2,grün,4\n3,weiß,5\n4,grün,6\n"
    path = file(text.encode(encoding))
    stream = open_stream(path, "y", encoding=encoding, quiet=True)
    X, y, _ = whole(stream)
    assert stream.features[:2] == ("größe", "farbe=grün")
    assert y.tolist() == [3.0, 4.0, 5.0, 6.0]
    assert X[:, 1].tolist() == [0.0, 0.0, 0.0, 1.0]
    if encoding == "utf-16-le":
        with pytest.raises(InputError, match=r"line 1: not text, but binary"):
            open_stream(path, "y", quiet=True)
        return
    # The others begin with a mark, or are taken for Windows-1252, of which latin-1 is a part.
    unnamed = open_stream(path, "y", quiet=True)
    assert np.array_equal(whole(unnamed)[0], X)
    assert unnamed.features == stream.features
    told = "line 1: not UTF-8 text, read as Windows-1252: if that is wrong, set encoding (cp1250, ...)"
    assert (told in unnamed.notes) is (encoding in ("latin-1", "cp1252"))


def as_objects(rows, end):
    return end.join(
        json.dumps({"x": x if "\xff" in x else float(x), "t": t, "y": int(y)}, ensure_ascii=False)
        for x, t, y in rows
    )


ARFF = "@relation r\n@attribute x real\n@attribute t string\n@attribute y real\n@data\n"
WRITTEN = {  # the rows as text, and how the first of them is named
    "t.csv": (lambda rows: "x,t,y\n" + "\n".join(map(",".join, rows)), "line", 2),
    "t.jsonl": (lambda rows: as_objects(rows, "\n"), "line", 1),
    "t.json": (lambda rows: "[" + as_objects(rows, ",\n") + "]", "row", 1),
    "t.arff": (lambda rows: ARFF + "\n".join(map(",".join, rows)), "line", 6),
}


def rows_of(stream):
    """Lines, and what column t has in them."""
    blocks = list(stream.records())
    lines = [line for block in blocks for line in block.lines.tolist()]
    return lines, [text for block in blocks for text in block.records.values("t", "text")]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("at", [2, 1500])  # among the rows that are looked at first, and behind them
def test_bytes_that_are_no_text(tmp_path, name, at):
    write, unit, first = WRITTEN[name]
    words = ("ab" * 400, "cd" * 400)
    rows = [(f"{i / 8}", words[i % 3 == 0], f"{i % 7}") for i in range(at + 500)]
    rows[at : at + 3] = [("1", "K\xf6ln", "1"), ("1\xff", "ab", "2"), ("2", "a\1b", "3")]
    path = tmp_path / name
    path.write_bytes(write(rows).encode("latin-1").replace(b"\\u0001", b"\0").replace(b"\1", b"\0"))
    options = {"target": "y", "task": "regression", "numeric": ["x"], "quiet": True}
    stream = open_stream(path, **options)
    lines, texts = rows_of(stream)
    assert lines == list(range(first, first + len(rows)))
    assert [texts[at], texts[at + 2]] == ["Köln", "a\N{REPLACEMENT CHARACTER}b"]
    assert stream.bad_cells == {"x": (1, ((first + at + 1, "1ÿ"),))}
    where = f"{unit} {first + at:,}" if unit == "row" else f"{unit} {first + at}"
    assert stream.odd_text.startswith(f"{where}: not UTF-8 text, read as Windows-1252")
    assert (stream.odd_text in stream.notes) is (at < 1000)
    strict = open_stream(path, on_bad_row="error", block_size=at, **options).records()
    assert next(strict).lines.tolist() == lines[:at]
    with pytest.raises(InputError, match=f"{where}: not UTF-8 text: save it as UTF-8"):
        next(strict)
    mixed = open_stream(path, shuffle=1, **options)
    assert sorted(zip(*rows_of(mixed), strict=True)) == list(zip(lines, texts, strict=True))
    assert mixed.bad_cells == stream.bad_cells


def test_a_delimiter_of_ones_own(file):
    assert whole(open_stream(file(PLAIN.replace(",", ":")), "y", delimiter=":"))[0].tolist() == ROWS


def test_names_in_quotes_and_columns_without_a_name(file):
    path = file('"x, in m;\n or so";y;\n1;2;3\n3;4;5\n5;6;7\n')
    stream = open_stream(path, "y", quiet=True)
    assert stream.features == ("x, in m;\n or so", "column 3")
    assert whole(stream)[2].tolist() == [3, 4, 5]


def test_lines_are_those_of_the_file(file):
    path = file('x,t,y\n1,a,1\n\n2,"b\n\nc",2\n\r\n3,"say ""a""",3\n4,a,4\n5,a,5\n')
    stream = open_stream(path, "y", quiet=True)
    _, y, lines = whole(stream)
    assert lines.tolist() == [2, 4, 8, 9, 10]
    assert y.tolist() == [1, 2, 3, 4, 5]
    assert by_name(stream)["t=a"].tolist() == [0, 0, 0, 0, 1]


def test_a_name_of_several_words_above_one_column(file):
    plan = open_stream(file("house size,y\n1,1\n2,2\n3,3\n"), "y", quiet=True).plan
    again = open_stream(file("house size\n1.5\n2.5\n", "one.csv"), plan=plan, quiet=True).to_predict()
    assert whole(again)[0].tolist() == [[1.5], [2.5]]


def test_many_columns(file):
    count = effort.amount(2_000, 10_000)
    names = [f"c{i}" for i in range(count)]
    path = file(",".join(names) + "\n" + (",".join(["1.5"] * count) + "\n") * 30)
    X, _, _ = whole(open_stream(path, f"c{count - 1}"))
    assert X.shape == (30, count - 1)
    assert (X == 1.5).all()
    with pytest.raises(ConfigurationError, match=rf"c19 and {count - 20:,} more\."):
        open_stream(path, "nothing like it")


def test_numbers_survive_bit_for_bit(file):
    values = np.random.default_rng(0).normal(size=(500, 3)) * 10.0 ** np.arange(-300, 300, 200)
    lines = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    X, y, _ = whole(open_stream(file("a,b,y\n" + lines), "y"))
    assert np.array_equal(np.column_stack([X, y]), values)
    rows = "\n".join(json.dumps(dict(zip("aby", row, strict=True))) for row in values.tolist())
    X, y, _ = whole(open_stream(file(rows, "t.jsonl"), "y"))
    assert np.array_equal(np.column_stack([X, y]), values)


# ---- bad files


def zipped(**members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


CSV_COMPLAINTS = [
    ("a,y\n1,2\nred,3\n2,4\n", "line 3, column 'a': 'red' is not a number: correct it, .*drop the column"),
    ("a,y\n1,2\n1,red\n2,3\n", "line 3, column 'y': 'red' is not a number"),
    ("a,y\n1,2\n2,3\n1_0,2\n", "line 4, column 'a': '1_0' is not a number"),
    (
        'a,y\n1,2\n1.5,3\n2.5,3\n"1,5",2\n',
        "line 5, column 'a': '1,5' is not a number: write decimals with '.'",
    ),
    ("a;y\n1,5;2\n1,5;3\n1.5;2\n", "line 4, column 'a': '1.5' is not a number: write decimals with ','"),
    ("a,y\n1,2\n\n,3\n4,5\n", "line 4, column 'a': '' is a missing value: fill it, delete the row"),
    ("a,y\n1,NaN\n1,2\n", "line 2, column 'y': 'NaN' is a missing value"),
    ("a,y\n1,1\nNA,2\n1,3\n", "line 3, column 'a': 'NA' is a missing value"),
    ("a,c,y\n1,u,1\n2,u,2\n3,?,2\n", "line 4, column 'c': '.' is a missing value"),
    ("a,y\n1,2\n-inf,3\n", "line 3, column 'a': '-inf' is not finite"),
    ("a,y\n1,2\n1e999,3\n", "line 3, column 'a': '1e999' is not finite"),
    ("a,y\n1,2\n1,1e999\n", "line 3, column 'y': '1e999' is not finite"),
    ("a,b,y\n1,2,3\n1,2\n", r"line 3: 2 field\(s\), expected the header's 3(?!:)"),
    ("a,b,y\n1,2,3,4\n", r"line 2: 4 field\(s\), expected the header's 3"),
    ("a,b,y\n1;2;3\n", r"line 2: 1 field\(s\).* delimited otherwise"),
    ('a,y\n1,2\n"3,4\n5,6\n', "line 3: a quote is opened and never closed"),
    ('a,y\n1,2\n"3"4,5\n', "line 3: a quote is closed and text follows"),
    ('"a,y\n1,2\n', "line 1: a quote is opened and never closed"),
    ("a,y\r1,2\r3,4\r", "line 1: a carriage return"),
    ("a,y\n1,2\r3,4\n", "line 2: a carriage return"),
    ("", "is empty: expected a line with the columns' names"),
    ("\n1,2\n", "is empty"),
    ("a,y\n", "has a header and no rows"),
    ("a,y\n\n\n", "has a header and no rows"),
    ("y\n1\n", "no column left to predict 'y' from"),
    ("a,y\nu,1\nv,2\nw,3\n", "no column left to predict 'y' from .*different in every row: a"),
    ("a,y\n1,\n2,\n", "column 'y': the target has no value"),
    ("a,y\n1,2024-01-01\n2,2024-01-02\n", "'y' holds dates"),
    (b"a,y\n1,2\n\xe9,3\n", "line 3: not UTF-8 text.*set encoding"),
    (b"a,\xe9,y\n1,2,3\n\xe9,3,4\n", "line 1: not UTF-8 text"),
    ("a,y\n1,2\n".encode("utf-16")[:-1], "is not utf-16 text"),
    (b"a,y\n1,2\n\x00\x01,2\n", "line 3: not text, but binary data"),
    (b"\x00\x01\x02" * 50, "line 1: not text, but binary data"),
    (gzip.compress(b"x,y\n" + b"1,2\n" * 99, mtime=0)[:-12], "cannot be read on.*cut off or damaged"),
    (b"\x1f\x8b nonsense", "cannot be read on"),
    (b"PK\x03\x04 and more", "cannot be read on"),
    (b"7z\xbc\xaf and more", "is a 7z archive: unpack it"),
    (bz2.compress(b"x,y\n" + b"1,2\n" * 99)[:-12], "cannot be read on.*cut off or damaged"),
    (lzma.compress(b"x,y\n" + b"1,2\n" * 99)[:-12], "cannot be read on.*cut off or damaged"),
    (zipped(a="x,y\n", b="x,y\n"), "is a zip archive of 2 files"),
    (zipped(**{"[Content_Types].xml": "", "a": ""}), "is an Excel workbook: save its sheet as CSV"),
    ("a,y\n1,1\n2,2\n" + "x" * 300 + ",1\n", r"'x{37}\.\.\.' is not a number"),
    ("when,y\n2024-01-01,1\n2024-01-02,2\n2024-02-31,3\n", "line 4, column 'when': '2024-02-31' is not a"),
]


@pytest.mark.parametrize(("content", "words"), CSV_COMPLAINTS)
def test_bad_files_are_refused_with_line_and_column(file, content, words):
    with pytest.raises(InputError, match=words) as caught:
        whole(open_stream(file(content), "y", **STRICT))
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.jsonl", "", "is empty"),
        ("t.jsonl", '{"a": 1, "y": 2}\n{"a": 1,\n', "line 2: '{\"a\": 1,' is not a JSON object"),
        ("t.json", '[{"a": 1, "y": 2}, 3]', "row 2: a JSON int, expected an object"),
        ("t.json", '[{"a": 1, "y": 2}, {"a"', "row 2: '{\"a\"' is not a JSON object"),
        ("t.json", '[{"a": 1, "y": 2}', "row 2: the JSON list has no end: is the file cut off"),
        ("t.json", '[{"a": 1, "y": 2}] x', "text follows the end of the JSON list"),
        ("t.json", "[]", "is empty"),
        ("t.jsonl", '{"a": 1, "y": 2}\n3\n', "line 2: a JSON int"),
        ("t.jsonl", "[" * 100_000, "is not a JSON object"),
        ("t.jsonl", '{"a": 1, "y": 1}\n{"y": 2}\n{"a": 2, "y": 3}', "line 2, column 'a': '' is a missing"),
        ("t.jsonl", '{"a": 1, "y": 1}\n{"a": 4, "y": 3}\n{"a": "x", "y": 3}', "line 3, column 'a': 'x'"),
        ("t.jsonl", '{"a": 1, "y": 1}\n{"a": 4, "y": 3}\n{"a": [1], "y": 3}', r"line 3, column 'a': \[1\]"),
        ("t.jsonl", '{"a": 1, "y": 1}\n{"a": 1e999, "y": 3}', "line 2, column 'a': inf is not finite"),
        ("t.libsvm", "", "no 'index:value' in it"),
        ("t.libsvm", "1 2\n", "no 'index:value' in it"),
        ("t.libsvm", "1 1:2\n1 3\n", "line 2: '3' is not index:value"),
        ("t.libsvm", "1 1:2\n1 2:x\n", "line 2: '2:x': 'x' is not a number"),
        ("t.libsvm", "1 1:2\n1:3 2:1\n", "line 2: '1:3' is no label"),
        ("t.libsvm", "1 1:2\n1,2 2:1\n", "line 2: '1,2': several labels"),
        ("t.libsvm", "1 1:2\n1 999999999999:1\n", "too wide to be dense"),
        ("t.libsvm", "1 1:2\n2 1:inf\n3 1:1\n", "line 2, column 'x1': 'inf' is not finite|is not finite"),
        ("t.arff", "", "is empty"),
        ("t.arff", "@relation x\n@attribute a numeric\n", "has no @data"),
        ("t.arff", "@relation x\n@data\n1\n", "declares no @attribute"),
        ("t.arff", "hello\n", "line 1: 'hello' is no @attribute"),
        ("t.arff", "@relation x\n@attribute a relational\n", "line 2: attribute 'a' is of type 'relational'"),
        ("t.arff", "@attribute a real\n@attribute y real\n@data\n1,2\n1\n", "line 5: 1 field"),
        ("t.arff", "@attribute a real\n@attribute y real\n@data\n1,2\n?,3\n", "line 5, column 'a': '.' is"),
        ("t.arff", "@attribute a real\n@attribute y real\n@data\n1,2\n{5 3}\n", "line 5: .*attribute 5 of 2"),
        ("t.arff", "@attribute a real\n@attribute y real\n@data\n1,2\n{0 3\n", "line 5: .*must end in '}'"),
        ("t.arff", "@attribute a real\n@attribute y real\n@data\n1,2\n'3,4\n", "line 5: a quote is opened"),
        ("t.parquet", "", "no sound Parquet file"),
        ("t.parquet", "PAR1 this is none PAR1", "no sound Parquet file"),
    ],
)  # fmt: skip
def test_bad_files_of_other_formats(file, name, content, words):
    target = None if name.endswith("svm") else "y"
    with pytest.raises(InputError, match=words) as caught:
        whole(open_stream(file(content, name), target, **STRICT))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["latin-99", "hex", "rot13"])
def test_encodings_that_are_none_of_text(file, encoding):
    with pytest.raises(ConfigurationError, match=f"encoding is '{encoding}', expected the name of one"):
        open_stream(file("a,y\n1,2\n"), "y", encoding=encoding)


@pytest.mark.parametrize("kind", ["string", "STRING", "{1, 2}"])
def test_what_an_arff_file_calls_text_is_text(file, kind):
    """Even where it holds numbers."""
    rows = "".join(f"{1 + i % 2},{i}\n" for i in range(40))
    path = file(f"@attribute a {kind}\n@attribute y real\n@data\n{rows}", "t.arff")
    assert [column.kind for column in open_stream(path, "y", quiet=True).plan.columns] == ["text"]


def test_names_of_rows_are_left_out_unless_the_caller_wants_them(file):
    """Text that a file declares, and that is different in every row, as in any other file."""
    rows = "".join(f"{i % 3},name {i}x,{i}\n" for i in range(40))
    path = file(f"@attribute a real\n@attribute b string\n@attribute y real\n@data\n{rows}", "t.arff")
    assert [column.name for column in open_stream(path, "y", quiet=True).plan.columns] == ["a"]
    asked = open_stream(path, "y", categorical=["b"], quiet=True)
    assert [column.name for column in asked.plan.columns] == ["a", "b"]


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nothing.csv: cannot be read \(No such file"):
        open_stream(tmp_path / "nothing.csv", "y")
    with pytest.raises(InputError, match=r"cannot be read \("):
        open_stream(tmp_path, "y")
    with pytest.raises(InputError, match="null"):
        open_stream("a\0b.csv", "y")


def test_a_quote_that_never_ends_is_not_read_to_the_end_of_a_large_file(file, monkeypatch):
    monkeypatch.setattr("kons.streams.bytes.LONGEST", 5000)
    monkeypatch.setattr("kons.streams.text.PIECE", 1000)
    path = file('x,t,y\n1,a,1\n2,a,1\n3,"a,1\n' + "4,b,2\n" * 5000)
    with pytest.raises(InputError, match="line 4: a quote is opened and never closed"):
        whole(open_stream(path, "y", quiet=True))
    monkeypatch.setattr("kons.streams.delimited.LONGEST", 5000)
    with pytest.raises(InputError, match="line 1: not text, but binary data"):
        open_stream(file("x" * 20_000), "y")


class Drops:
    """A pipe that comes in drops."""

    def __init__(self, drops):
        self.buffer = self
        self._drops = iter(drops)

    def read1(self, size=-1):
        return next(self._drops, b"")

    read = read1


DECLARED = b"@relation r\n@attribute a numeric\n@attribute price numeric\n@data\n1,2\n2,3\n"
WITHOUT_END = {
    "a name in quotes": ("csv", b'id,"width 12,height,price\n', b'1,3""25,4,5\n', b""),
    "a name": ("csv", b"id,width", b"x", b""),
    "comments": ("arff", b"", b"%\n", DECLARED),
    "a comment": ("arff", b"", b"%", b"\n" + DECLARED),
    "blanks before a list": ("jsonl", b"", b"  ", b'[{"price": 1}, {"price": 2}]'),
    "blank lines": ("jsonl", b'{"price": 1}\n', b"\n", b'{"price": 2}\n'),
    "a text in a list": ("jsonl", b'[{"price": 1, "a": "', b'\\"', b'"}]'),
    "a cell in quotes": ("csv", b'a,price\n1,2\n"', b'3""25\n', b'",4\n'),
}


@pytest.mark.parametrize("name", WITHOUT_END)
def test_what_has_no_end_costs_no_more_than_its_length(monkeypatch, name):
    """Calls of functions, not seconds, in a pipe that comes in drops."""
    kind, head, drop, tail = WITHOUT_END[name]

    def calls(drops):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        monkeypatch.setattr("sys.stdin", Drops([head, *[drop] * drops, tail]))
        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            with contextlib.suppress(InputError):
                stream = open_stream("-", "price", format=kind, task="regression", quiet=True)
                list(stream.blocks())
        finally:
            sys.setprofile(before)
        return count

    calls(10)  # what is imported and cached by the first
    assert calls(4000) < 2.5 * calls(2000)


@pytest.mark.parametrize("target", [[1, 2], {"a": 1}, []])
def test_a_list_among_targets_is_a_bad_cell(file, target):
    rows = [{"a": i / 2, "y": target if i == 40 else i * 1.5} for i in range(60)]
    path = file("".join(json.dumps(row) + "\n" for row in rows), "t.jsonl")
    with pytest.raises(InputError, match="line 41, column 'y'"):
        whole(open_stream(path, "y", quiet=True))
    assert len(whole(open_stream(path, "y", on_bad_row="skip", quiet=True))[1]) == 59


def test_rows_before_a_bad_one_are_handed_on(file):
    path = file("x,y\n" + "".join(f"{i},{i}\n" for i in range(100)) + "oops,1\n1,1\n")
    blocks = open_stream(path, "y", block_size=40, on_bad_row="error").blocks()
    assert [next(blocks).first, next(blocks).first] == [0, 40]
    with pytest.raises(InputError, match="line 102, column 'x': 'oops'"):
        next(blocks)


def test_bad_rows_are_skipped_and_counted(file):
    lines = [f"{i},{i % 7}" for i in range(50)]
    lines[10], lines[20], lines[30], lines[40] = "x,1", "1,2,3", "1,inf", '"1"2,3'
    stream = open_stream(file("x,y\n" + "\n".join(lines)), "y", on_bad_row="skip", quiet=True)
    _, _, numbers = whole(stream)
    assert numbers.tolist() == [i + 2 for i in range(50) if i not in (10, 20, 30, 40)]
    assert stream.skipped == {"bad row": 4}
    assert stream.first_skipped["bad row"].count("data.csv, line") == 1
    whole(stream)
    assert stream.skipped == {"bad row": 4}


def test_if_nothing_is_left_it_says_why(file):
    path = file("x,c,y\n1,a,\n2,a,5\n,a,5\n")
    with pytest.raises(InputError, match=r"all were skipped \(1 for missing target.*2 for no past"):
        whole(open_stream(path, "y", lag="y:5", quiet=True))


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json"])
def test_memory_does_not_grow_with_the_file(file, monkeypatch, name):
    monkeypatch.setattr("kons.streams.text.PIECE", 20_000)
    monkeypatch.setattr("kons.streams.json_lines.PIECE", 20_000)
    line = {"t.csv": "1.5,2.5,3\n", "t.jsonl": '{"a": 1.5, "y": 2}\n', "t.json": ', {"a": 1, "y": 2}\n'}[name]
    head = {"t.csv": "a,b,y\n", "t.jsonl": "", "t.json": "["}[name]
    tail = "]" if name == "t.json" else ""

    def peak(rows):
        stream = open_stream(file(head + line * rows + tail, name), "y", quiet=True)
        tracemalloc.start()
        count = sum(len(block.y) for block in stream)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == rows
        return highest

    peak(3000)  # whatever is imported or kept the first time
    assert peak(24_000) < 1.3 * peak(6000) + 100_000


# ---- the fast way and the careful one

CELLS = st.one_of(
    st.sampled_from(["1", "2.5", " 3 ", "-4e3", "+5", "", "NA", "nan", "?", "-", "inf", "1e999", "x", "1_0"]),
    st.sampled_from(["1,5", "1,234", "$5", "5 %", "20240101", "3 Mar 2016", "unknown"]),
    st.sampled_from(
        ["true", "No", "red", "2024-01-01", "2024-1-2 3:04", "a,b", 'q"q', '"', "a\nb", "\r", " "]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
)


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 4))
    usual = [
        draw(st.sampled_from(["1.5", "red", "true", "2024-01-31", "7", "1,500", "$7"]))
        for _ in range(columns)
    ]
    rows = [
        [draw(CELLS) if draw(st.integers(0, 9)) == 0 else cell for cell in usual]
        for _ in range(draw(st.integers(1, 12)))
    ]
    out = io.StringIO()
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    delimiter = draw(st.sampled_from([",", ";", "\t"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=newline)
    writer.writerow([*(f"c{i}" for i in range(columns)), "y"])
    for i, row in enumerate(rows):
        writer.writerow([*row, i])
    return out.getvalue()


def cannot(*_arguments, **_options):
    raise ValueError


def outcome(path, **options):
    stream = None
    try:
        stream = open_stream(path, "y", quiet=True, **options)
        X, y, lines = whole(stream)
    except KonsError as error:
        return str(error), *((None, None) if stream is None else (stream.skipped, stream.bad_cells))
    return X.tolist(), y.tolist(), lines.tolist(), stream.skipped, stream.bad_cells


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "data.csv"


@effort.examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables(), st.sampled_from(["error", "skip", "fill"]), st.sampled_from(["gap", "error", "skip"]))
@example('c0,y\n"a\nb",1\n', "error", "error")
@example("c0,y\n1.5,0\n\r,1\n", "skip", "skip")
def test_the_fast_way_equals_the_careful_one(scratch, text, missing, on_bad_row):
    scratch.write_bytes(text.encode())
    options = {"missing": missing, "on_bad_row": on_bad_row, "na_values": ["unknown"]}
    fast = outcome(scratch, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyarrow.csv.read_csv", cannot)  # so the careful way is taken
        assert outcome(scratch, **options) == fast
        patch.setattr("kons.streams.text.PIECE", 7)
        patch.setattr("kons.streams.text.ROWS_A_PIECE", 1)
        cut = outcome(scratch, **options)
        assert cut == fast


def test_the_fast_way_is_taken(file, monkeypatch):
    """Missing values, quotes, text, dates and flags do not send a file down the slow way."""

    def never(*_arguments, **_options):
        raise AssertionError("one by one")

    monkeypatch.setattr("kons.streams.text.from_cells", never)
    rows = [f'{i / 7!r},"re, d",2024-01-{1 + i % 28},true,{i}' for i in range(3000)]
    rows[5], rows[9] = ",red,2024-01-01,false,1", "NaN,green,2024-01-01 12:00,false,7"
    path = file("a,c,t,f,y\n" + "\n".join(rows) + "\n")
    assert len(whole(open_stream(path, "y", quiet=True))[1]) == 3000
    rows = [json.dumps({"a": i / 7, "c": "red", "f": True, "y": i}) for i in range(3000)]
    path = file("\n".join(rows), "t.jsonl")
    assert len(whole(open_stream(path, "y", quiet=True))[1]) == 3000


@given(st.text(st.sampled_from('a1,;" \n'), max_size=40))
@example('a,"b\nc",d\n"e"\n')
@example('a "quote" inside\n"x')
@example('1, "a\nb",2\n')
def test_records_end_where_pythons_reader_ends_them(text):
    breaks = [i for i, letter in enumerate(text) if letter == "\n"]
    reader = csv.reader(io.StringIO(text, newline="\n"), skipinitialspace=True, strict=True)
    ends = []
    try:
        for _ in reader:
            ends += breaks[reader.line_num - 1 : reader.line_num]
    except csv.Error:  # an open quote, or text after a closed one: refused in any case
        return
    assert Layout(text.encode(), ",", '"').ends.tolist() == ends


def test_a_quote_that_is_not_closed_costs_its_own_row(tmp_path):
    lines = ["a,b,y", '1,"x,1', "2,u,2", '3,"v"w,3', "4,u,4", '5,"two', 'lines",5', '6,"z,6', "7,u,7"]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    stream = open_stream(tmp_path / "data.csv", "y", task="regression", quiet=True)
    rows = [line for block in stream for line in block.lines.tolist()]
    assert rows == [3, 5, 6, 9]
    assert stream.skipped == {"bad row": 3}
