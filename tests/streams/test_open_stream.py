"""One call for every source: what it makes of columns, what it tells, that it can start again."""

import datetime
import gzip
import io
import json
import os
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import effort
from kons.errors import ConfigurationError, InputError, MissingExtraError
from kons.streams import Plan, open_stream
from streams.whole import by_name, indicators, waves, whole

ROWS = 1300
RNG = np.random.default_rng(0)
TABLE = [
    {
        "a": float(i) / 4,
        "color": ("red", "green", "blue")[i % 3],
        "when": f"2024-0{1 + i // 700}-{1 + i // 24 % 28:02d} {i % 24:02d}:30:00",
        "open": bool(i % 2),
        "y": float(value),
    }
    for i, value in enumerate(RNG.normal(size=ROWS))
]


def csv_text(rows=TABLE, delimiter=","):
    lines = [delimiter.join(rows[0]), *(delimiter.join(map(str, row.values())) for row in rows)]
    return "\n".join(lines) + "\n"


def arff_text(rows=TABLE):
    kinds = ["numeric", "{red, green, blue}", "date 'yyyy-MM-dd HH:mm:ss'", "{True, False}", "real"]
    head = "% made up\n@RELATION test\n\n" + "".join(
        f"@attribute '{name}' {kind}\n" for name, kind in zip(TABLE[0], kinds, strict=True)
    )
    lines = [",".join(f"'{c}'" if " " in str(c) else str(c) for c in row.values()) for row in rows]
    return head + "@data\n" + "\n".join(lines)


def json_text(rows=TABLE):
    return "\n".join(map(json.dumps, rows))


def with_decimal_commas(rows=TABLE):
    return csv_text(rows, delimiter=";").replace(".", ",")


def pairs():
    for row in TABLE:
        yield {name: value for name, value in row.items() if name != "y"}, row["y"]


def write(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def sources(folder):
    frame = pd.DataFrame(TABLE)
    dated = frame.assign(when=pd.to_datetime(frame["when"]))
    pa.parquet.write_table(pa.Table.from_pylist(TABLE), folder / "t.parquet")
    pa.parquet.write_table(pa.Table.from_pandas(dated), folder / "dated.parquet", row_group_size=300)
    return {
        "csv": write(folder, "t.csv", csv_text()),
        "path as text": str(folder / "t.csv"),
        "tsv": write(folder, "t.tsv", csv_text(delimiter="\t")),
        "bar": write(folder, "bar.csv", csv_text(delimiter="|")),
        "csv.gz": write(folder, "t.csv.gz", gzip.compress(csv_text().encode())),
        "no ending": write(folder, "table", csv_text()),
        "decimal comma": write(folder, "de.csv", with_decimal_commas()),
        "parquet": folder / "t.parquet",
        "parquet with moments": folder / "dated.parquet",
        "parquet without ending": write(folder, "pq", (folder / "t.parquet").read_bytes()),
        "jsonl": write(folder, "t.jsonl", json_text()),
        "ndjson.gz": write(folder, "t.ndjson.gz", gzip.compress(json_text().encode())),
        "json without ending": write(folder, "json", json_text()),
        "arff": write(folder, "t.arff", arff_text()),
        "arff without ending": write(folder, "arff", arff_text()),
        "pandas": frame,
        "pandas with moments": dated,
        "pandas nullable": frame.convert_dtypes(),
        "pandas categorical": dated.astype({"color": "category"}),
        "polars": pl.DataFrame(TABLE),
        "pyarrow": pa.Table.from_pylist(TABLE),
        "frame and series": (dated.drop(columns="y"), frame["y"]),
        "dicts": list(pairs()),
    }


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return sources(tmp_path_factory.mktemp("sources"))


NAMES = [
    "csv", "path as text", "tsv", "bar", "csv.gz", "no ending", "decimal comma", "parquet",
    "parquet with moments", "parquet without ending", "jsonl", "ndjson.gz", "json without ending", "arff",
    "arff without ending", "pandas", "pandas with moments", "pandas nullable", "pandas categorical",
    "polars", "pyarrow", "frame and series", "dicts",
]  # fmt: skip


def expected(rows=TABLE):
    """The columns of X by hand, and the targets."""
    columns = {"a": np.array([row["a"] for row in rows]), "color=?": np.zeros(len(rows))}
    columns["open"] = np.array([float(row["open"]) for row in rows])
    columns |= {f"color={level}": own for level, own in indicators([row["color"] for row in rows]).items()}
    columns |= {f"when {part}": own for part, own in waves([row["when"] for row in rows]).items()}
    return columns, np.array([row["y"] for row in rows])


def assert_same(stream, rows=TABLE):
    """The stream's rows are those by hand: sines and cosines but for rounding."""
    X, y, lines = whole(stream)
    columns, targets = expected(rows)
    assert set(stream.features) == set(columns)
    for name, values in zip(stream.features, X.T, strict=True):
        rounding = 1e-12 if name.endswith((" sin", " cos")) else 0.0
        assert np.abs(values - columns[name]).max() <= rounding
    assert (y == targets).all()
    return X, y, lines


@pytest.mark.parametrize("name", NAMES)
def test_every_source_gives_the_same_rows(everything, name):
    stream = open_stream(everything[name], "y", quiet=True)
    X, _, lines = assert_same(stream)
    assert stream.features[:2] == ("a", "color=red")
    assert (stream.target, stream.task, stream.delay) == ("y", "regression", 0)
    assert stream.skipped == {}
    assert (np.diff(lines) == 1).all()
    first = {"csv": 2, "path as text": 2, "arff": 10}.get(name)
    assert first is None or lines[0] == first
    assert stream.resumable
    again = whole(stream, 700)
    assert (again[0] == X[700:]).all()
    assert stream.fingerprint() == stream.fingerprint()
    assert stream.fingerprint() is not None or name == "dicts"
    if stream.total_rows is not None:
        assert stream.total_rows == pytest.approx(ROWS, rel=0.1)
    if stream.bytes_total is not None:
        assert stream.bytes_done == stream.bytes_total


def test_what_was_chosen_is_told_once(everything, caplog):
    with caplog.at_level("WARNING", logger="kons"):
        stream = open_stream(everything["csv"], "y")
        whole(stream)
        whole(stream)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == len(stream.notes) == 3
    expected = ("text, by its levels: color", "dates (year first): when", "1 and 0: open")
    for words, message in zip(expected, told, strict=True):
        assert words in message


def test_blocks_from_anywhere_are_the_same_rows(everything):
    for size in (1, 7, 512, 5000):
        stream = open_stream(everything["csv"], "y", block_size=size, quiet=True)
        X, y, lines = whole(stream)
        starts = (ROWS - 1,) if size == 1 else (1, 512, ROWS - 1)  # rows one by one take the longest
        for start in effort.some((0, 1, 511, 512, 513, ROWS - 1), *starts):
            part = whole(stream, start)
            assert (part[0] == X[start:]).all()
            assert (part[1] == y[start:]).all()
            assert (part[2] == lines[start:]).all()
        assert list(stream.blocks(ROWS)) == []
    with pytest.raises(ConfigurationError, match="start is -1"):
        next(stream.blocks(-1))


TEXTS = {
    "t.csv": csv_text,
    "t.csv.gz": lambda rows: gzip.compress(csv_text(rows).encode()),
    "t.jsonl": json_text,
    "t.arff": arff_text,
    "de.csv": with_decimal_commas,
}


@pytest.mark.parametrize("piece", [64, 1000, 4096])
@pytest.mark.parametrize("name", TEXTS)
def test_how_a_file_is_cut_does_not_matter(tmp_path, monkeypatch, name, piece):
    rows = TABLE[: effort.amount(150, ROWS)]
    path = write(tmp_path, name, TEXTS[name](rows))
    monkeypatch.setattr("kons.streams.text.PIECE", piece)
    monkeypatch.setattr("kons.streams.text.ROWS_A_PIECE", 1)
    assert_same(open_stream(path, "y", quiet=True), rows)


@pytest.mark.parametrize("rows", [300, ROWS])
def test_packed_rows_are_about_as_many(tmp_path, rows):
    packed = write(tmp_path, "rows.csv.gz", gzip.compress(csv_text(TABLE[:rows]).encode()))
    assert open_stream(packed, "y", quiet=True).total_rows == pytest.approx(rows, rel=0.02)


def test_a_short_pipe_is_counted(monkeypatch):
    raw = io.BufferedReader(io.BytesIO(csv_text(TABLE[:300]).encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert open_stream("-", "y", quiet=True).total_rows == 300


def test_labels_that_mostly_look_like_numbers(tmp_path):
    path = write(tmp_path, "codes.csv", "x,y\n1,007\n2,12\n3,3x\n4,?\n5,12\n")
    stream = open_stream(path, "y", task="classification", missing="skip", quiet=True)
    assert whole(stream)[1].tolist() == ["007", "12", "3x", "12"]
    # A gap alone makes no text of numbers.
    path = write(tmp_path, "gaps.csv", "x,y\n1,7\n2,12\n3,none\n")
    stream = open_stream(path, "y", task="classification", missing="skip", quiet=True)
    assert whole(stream)[1].tolist() == [7, 12]


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_once(everything, monkeypatch, packed):
    data = csv_text().encode()
    raw = io.BufferedReader(io.BytesIO(gzip.compress(data) if packed else data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    stream = open_stream("-", "y", quiet=True)
    _, _, lines = assert_same(stream)
    assert lines[0] == 2
    assert (stream.source, stream.resumable, stream.total_rows) == ("standard input", False, None)
    assert stream.fingerprint() is None
    with pytest.raises(InputError, match="standard input was read already"):
        whole(stream)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("text", ["csv", "jsonl", "arff", "libsvm"])
def test_a_named_pipe(tmp_path, text):
    lines = {
        "csv": csv_text(),
        "jsonl": "\n".join(map(json.dumps, TABLE)),
        "arff": arff_text(),
        "libsvm": "".join(f"{row['y']} 1:{row['a']} 3:1\n" for row in TABLE),
    }[text]
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=(tmp_path / "pipe").write_text, args=(lines,))
    thread.start()
    stream = open_stream(tmp_path / "pipe", "y", quiet=True)
    _, y, _ = whole(stream)
    thread.join()
    assert (y == expected()[1]).all()
    assert not stream.resumable


def test_an_iterator_is_read_once_and_costs_no_row():
    stream = open_stream(pairs(), quiet=True)
    assert_same(stream)
    assert not stream.resumable
    with pytest.raises(InputError, match="a generator was read already"):
        whole(stream)


def test_arrays_are_neither_changed_nor_aliased():
    X, y = RNG.normal(size=(600, 2)), RNG.normal(size=600)
    kept = X.copy()
    stream = open_stream((X, y))
    for block in stream:
        block.X[:] = 0.0
        block.y[:] = 0.0
    assert (kept == X).all()
    assert (whole(stream)[0] == X).all()
    assert stream.fingerprint() != open_stream((X + 1.0, y)).fingerprint()


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (["u", "v", "w"] * 4, ["u", "v", "w"]),
        ([True, False, True] * 4, [True, False, True]),
        (np.array([True, False, True] * 4), [True, False, True]),
        ([3, 5, 3] * 4, [3, 5, 3]),
        ([3.0, 5.5, 3.0] * 4, [3, 5.5, 3]),
        (pd.Series(["u", "v", "u"] * 4), ["u", "v", "u"]),
        (pd.Series(["u", "v", "u"] * 4, dtype="category"), ["u", "v", "u"]),
        (np.array(["u", "v", "w"] * 4), ["u", "v", "w"]),
        (np.array([["u"], ["v"], ["w"]] * 4), ["u", "v", "w"]),
    ],
)
def test_labels_keep_their_type(y, labels):
    stream = open_stream((np.ones((12, 1)), y), quiet=True)
    found = whole(stream)[1][:3].tolist()
    assert stream.task == "classification"
    assert found == labels
    assert [type(a) for a in found] == [type(b) for b in labels]


@pytest.mark.parametrize(
    ("column", "task", "labels"),
    [
        ("yes,no,yes", "classification", ["yes", "no", "yes"]),
        ("true,FALSE,true", "classification", [True, False, True]),
        ("1,2,1", "classification", [1, 2, 1]),
        ("a,b,c", "classification", ["a", "b", "c"]),
        ("1,2,3", "regression", [1.0, 2.0, 3.0]),
        ("1,1,1", "regression", [1.0, 1.0, 1.0]),
    ],
)
def test_the_task_by_the_target(tmp_path, column, task, labels):
    path = write(tmp_path, "t.csv", "x,y\n" + "".join(f"{i},{c}\n" for i, c in enumerate(column.split(","))))
    stream = open_stream(path, "y", quiet=True)
    assert stream.task == task
    assert whole(stream)[1].tolist() == labels
    assert any("task: classification" in note for note in stream.notes) == (task == "classification")


def test_a_file_sorted_by_label_is_looked_at_further(tmp_path):
    rows = [f"{i},{-1 if i < 3000 else 1}\n" for i in range(4000)]
    path = write(tmp_path, "t.csv", "x,y\n" + "".join(rows))
    stream = open_stream(path, "y", quiet=True)
    assert stream.task == "classification"
    assert "two values later: -1, 1" in stream.notes[0]
    assert whole(stream)[1].tolist() == [-1] * 3000 + [1] * 1000
    path = write(tmp_path, "u.csv", "x,y\n" + "".join(rows) + "1,2\n")
    assert open_stream(path, "y", quiet=True).task == "regression"
    pairs = (([float(i)], 0.0) for i in range(1500))
    stream = open_stream(pairs, quiet=True)
    assert stream.task == "regression"
    assert "say so if these are labels" in stream.notes[0]
    assert len(whole(stream)[1]) == 1500


def test_the_task_can_be_said(tmp_path):
    path = write(tmp_path, "t.csv", "x,y,z\n1,1,a\n2,0,b\n3,1,a\n")
    assert whole(open_stream(path, "y", task="regression", quiet=True))[1].tolist() == [1.0, 0.0, 1.0]
    assert whole(open_stream(path, "x", task="classification", quiet=True))[1].tolist() == [1, 2, 3]
    with pytest.raises(ConfigurationError, match="'z' holds text: its task is classification"):
        open_stream(path, "z", task="regression")


def test_a_column_that_turns_to_fractions_late_is_fine(tmp_path):
    path = write(tmp_path, "late.csv", "x,y\n" + "1,2\n" * 300_000 + "1.5,2.5\n")
    stream = open_stream(path, "y", block_size=50_000)
    for block in stream:
        last = block
    assert (last.X[-1, 0], last.y[-1], last.lines[-1]) == (1.5, 2.5, 300_002)


def test_columns_are_chosen_and_dropped(everything):
    stream = open_stream(everything["csv"], "y", drop=["when", "color"], quiet=True)
    assert stream.features == ("a", "open")
    stream = open_stream(everything["pandas"], "y", columns=["open", "a", "y"], quiet=True)
    assert stream.features == ("a", "open")
    assert (whole(stream)[0] == np.column_stack([expected()[0][name] for name in ("a", "open")])).all()


def test_what_is_left_out_is_told(tmp_path):
    rows = [
        {"id": f"n{i}", "empty": None, "deep": [i], "constant": 1, "flag": ("yes", "no")[i % 2], "y": i}
        for i in range(30)
    ]
    path = write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, rows)))
    stream = open_stream(path, "y", quiet=True)
    assert stream.features == ("constant", "flag")
    told = " ".join(stream.notes)
    assert "empty so far, and taken when it has values: empty, deep" in told
    assert "text that is different in every row: id" in told
    assert whole(stream)[0].tolist() == [[1.0, float(i % 2 == 0)] for i in range(30)]
    asked = open_stream(path, "y", columns=["id"], quiet=True)
    whole(asked)
    assert asked.features[0] == "id=?"  # no level has come twice


@pytest.mark.parametrize(
    "texts",
    [
        ["31.12.2023 23:00", "01.01.2024 00:00", "01.01.2024 01:00"],
        ["12/31/2023 23:00", "1/1/2024 0:00", "1/1/2024 1:00"],
        ["2023/12/31 23:00:00", "2024/01/01 00:00:00", "2024/01/01 01:00:00"],
        ["2023-12-31T23:00Z", "2024-01-01T00:00Z", "2024-01-01T01:00:00.000Z"],
        ["2024-01-01T00:00+01:00", "2024-01-01T01:00+01:00", "2024-01-01T02:00+01:00"],
        ["2023-12-31 23:00", "2024-01-01 00:00", "2024-01-01 01:00"],
    ],
)
def test_dates_as_people_write_them(tmp_path, texts):
    path = write(tmp_path, "t.csv", "when,y\n" + "".join(f"{t},{i}\n" for i, t in enumerate(texts)))
    stream = open_stream(path, "y", quiet=True)
    moments = np.datetime64("2023-12-31T23:00") + np.arange(3) * np.timedelta64(1, "h")
    found = by_name(stream)
    assert {name: pytest.approx(own, abs=1e-12) for name, own in in_days(moments).items()} == found


def in_days(moments, name="when"):
    return {f"{name} {part}": own for part, own in waves(moments).items()}


def test_moments_of_any_kind():
    start = datetime.datetime(2024, 1, 1, 22)
    hours = [start + i * datetime.timedelta(hours=1) for i in range(30)]
    utc = [moment.replace(tzinfo=datetime.UTC) for moment in hours]
    reference = {name: pytest.approx(own, abs=1e-12) for name, own in in_days(hours, "t").items()}
    assert len(reference) == 7
    frames = [
        pd.DataFrame({"t": hours, "y": range(30)}),
        pd.DataFrame({"t": utc, "y": range(30)}),
        pd.DataFrame({"t": pd.Series(hours, dtype="datetime64[ns]"), "y": range(30)}),
        pl.DataFrame({"t": hours, "y": range(30)}),
        pl.DataFrame({"t": utc, "y": range(30)}),
        [({"t": moment}, i) for i, moment in enumerate(utc)],
        [({"t": np.datetime64(moment)}, i) for i, moment in enumerate(hours)],
    ]
    for frame in frames:
        assert by_name(open_stream(frame, "y", quiet=True)) == reference
    days = [{"t": moment.date(), "y": i} for i, moment in enumerate(hours)]
    found = by_name(open_stream(pl.DataFrame(days), "y", quiet=True))
    assert set(found) == {
        "t days",
        *(f"t {part} {w}" for part in ("weekday", "yearday") for w in ("sin", "cos")),
    }
    assert found == {n: pytest.approx(x, abs=1e-12) for n, x in in_days([r["t"] for r in days], "t").items()}
    clocks = [({"t": f"{i % 24}:00"}, i) for i in range(30)]
    found = by_name(open_stream(clocks, quiet=True))
    assert set(found) == {
        "t days",
        *(f"t {part} {w}" for part in ("hour", "yearday") for w in ("sin", "cos")),
    }


def test_the_order_in_time_is_checked(tmp_path):
    path = write(tmp_path, "t.csv", "when,n,x,y\n2024-01-02,1,1,2\n2024-01-02,2,2,3\n2024-01-01,3,5,4\n")
    with pytest.raises(InputError, match=r"line 4, column 'when': '2024-01-01' is earlier than the row"):
        whole(open_stream(path, "y", time="when", quiet=True))
    stream = open_stream(path, "y", time="n", quiet=True)
    assert "n" not in stream.features
    assert any("only grows: n" in note for note in stream.notes)
    assert len(whole(stream)[1]) == 3
    with pytest.raises(ConfigurationError, match="'y' is the target"):
        open_stream(path, "y", time="y", quiet=True)
    path = write(tmp_path, "u.csv", "when,x,y\nred,1,2\nred,2,3\n")
    with pytest.raises(ConfigurationError, match="order in time needs dates or numbers"):
        open_stream(path, "y", time="when", quiet=True)
    path = write(tmp_path, "v.csv", "when,x,y\n1,1,2\n,2,3\n2,3,4\n")
    with pytest.raises(InputError, match="line 3, column 'when': '' is no time"):
        whole(open_stream(path, "y", time="when", quiet=True))
    stream = open_stream(path, "y", time="when", on_bad_row="skip", quiet=True)
    assert whole(stream)[1].tolist() == [2.0, 4.0]
    assert stream.skipped == {"bad row": 1}


def test_the_order_in_time_is_checked_over_the_ends_of_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("kons.streams.text.PIECE", 64)
    monkeypatch.setattr("kons.streams.text.ROWS_A_PIECE", 1)
    for wrong in range(1, 40):
        times = list(range(100, 140))
        times[wrong] = 50
        path = write(tmp_path, "t.csv", "t,x,y\n" + "".join(f"{t},{i},{i}\n" for i, t in enumerate(times)))
        with pytest.raises(InputError, match=f"line {wrong + 2}, column 't': '50' is earlier"):
            whole(open_stream(path, "y", time="t", quiet=True))


def test_a_plan_reads_another_file_alike(everything, tmp_path):
    stream = open_stream(everything["csv"], "y", quiet=True)
    tree = json.loads(json.dumps(stream.plan.to_dict()))
    assert Plan.from_dict(tree) == stream.plan
    part = write(tmp_path, "part.csv", csv_text([{**row, "color": "7"} for row in TABLE[:5]]))
    found = by_name(open_stream(part, plan=tree))
    for name in ("a", "open"):
        assert (found[name] == expected()[0][name][:5]).all()
    assert found["color=7"].tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]  # text, though it looks like a number
    unlabelled = [{name: row[name] for name in row if name != "y"} for row in TABLE]
    blind = write(tmp_path, "blind.csv", csv_text(unlabelled))
    new = open_stream(blind, plan=tree)
    X, y, _ = whole(new)
    assert not new.has_target
    assert (whole(stream)[0] == X).all()
    assert np.isnan(y).all()
    other = write(tmp_path, "other.csv", "a,colour,when,open,y\n1,red,2024-01-01,true,3\n")
    with pytest.raises(ConfigurationError, match="has no column 'color': did you mean 'colour'"):
        open_stream(other, plan=tree)
    for broken in ({}, {**tree, "columns": [1]}, {**tree, "task": "guess"}, {**tree, "lags": [["a"]]}):
        with pytest.raises(ConfigurationError, match="plan is not one"):
            open_stream(part, plan=broken)


def test_a_stream_is_its_own_stream(everything):
    stream = open_stream(everything["csv"], "y", quiet=True)
    assert open_stream(stream) is stream
    assert "task='regression'" in repr(stream)


def test_names(everything):
    for name in ("csv", "parquet", "pandas", "jsonl", "arff", "polars"):
        with pytest.raises(ConfigurationError, match=r"target is missing.* a, color, when, open, y"):
            open_stream(everything[name])
        with pytest.raises(ConfigurationError, match="has no column 'colour': did you mean 'color'"):
            open_stream(everything[name], "y", drop=["colour"])
    for options, words in [
        ({"target": "Y2"}, "no column 'Y2': did you mean 'y'"),
        ({"target": "zzzzz"}, "its columns are a, color"),
        ({"drop": ["y"]}, "cannot be dropped"),
        ({"columns": ["colr"]}, "did you mean 'color'"),
        ({"columns": "a"}, r"expected a list of columns: \['a'\]"),
        ({"time": "wen"}, "did you mean 'when'"),
        ({"missing": "guess"}, "missing is 'guess', expected one of fill, skip, error"),
        ({"on_bad_row": "x"}, "on_bad_row is 'x'"),
        ({"task": "x"}, "task is 'x'"),
        ({"format": "xlsx"}, "format is 'xlsx'"),
        ({"delimiter": "ab"}, "delimiter is 'ab'"),
        ({"encoding": "klingon"}, "encoding is 'klingon'"),
        ({"horizon": -1}, "horizon is -1"),
        ({"block_size": 0}, "block_size is 0"),
        ({"drop": ["a", "color", "when", "open"]}, "no column left to predict 'y' from"),
    ]:
        with pytest.raises((ConfigurationError, InputError), match=words):
            open_stream(everything["csv"], **({"target": "y"} | options))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (3, "the source is a int"),
        (np.ones((3, 2)), "the source is an array"),
        ({"a": 1}, "the source is a dict"),
        ([], "no rows, expected pairs"),
        ([1, 2], r"row 1 is 1, expected a pair \(x, y\)"),
        (["ab"], "row 1 is a str"),
        ([([1, 2], 3), ([1], 3), ([1, 2], 4)], r"row 2: x has 1 value\(s\), expected 2"),
        ([([1, 2], 3), ({"a": 1}, 3)], "row 2: x is a dict"),
        ([({"a": 1}, 3), ([1], 3)], "row 2: x is no dict"),
        ((np.ones((3, 2)), [1, 2]), r"y has shape \(2,\)"),
        ((np.array([[1.0], [np.inf]]), [1, 2]), r"X\[1\]\[0\] is inf"),
        (pd.DataFrame({"a": []}), "no rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns|cannot be read|lazy"),
        (pl.DataFrame({"a": [1]}).lazy(), r"collect\(\) a lazy one first"),
    ],
)
def test_sources_that_are_none(source, words):
    target = "a" if isinstance(source, pd.DataFrame) else None
    with pytest.raises(InputError, match=words):
        whole(open_stream(source, target, on_bad_row="error", quiet=True))


def test_rows_of_an_iterator_that_are_bad_can_be_skipped():
    rows = [([1, 2], 3), ([1], 3), ([1, "x"], 4), ([5, 6], 7), ([1, 2], float("inf"))]
    stream = open_stream(rows, on_bad_row="skip", quiet=True)
    X, y, lines = whole(stream)
    assert (X.tolist(), y.tolist(), lines.tolist()) == ([[1, 2], [5, 6]], [3, 7], [1, 4])
    assert stream.skipped == {"bad row": 3}
    assert "row 2" in stream.first_skipped["bad row"]
    stream = open_stream(rows[:4], quiet=True)  # a row of another width is skipped, a cell is a gap
    X, y, lines = whole(stream)
    assert (X[:, :2].tolist(), lines.tolist()) == ([[1, 2], [1, 2], [5, 6]], [1, 3, 4])
    assert stream.skipped == {"bad row": 1}
    assert stream.bad_cells == {"x1": (1, ((3, "x"),))}


def test_features_may_vanish_and_come():
    rows = [({"a": 1.0, "b": 2.0}, 1.0), ({"b": 3.0}, 2.0), ({"c": 1.0, "b": 1.0, "a": 4.0}, 3.0)]
    stream = open_stream(rows, missing="skip", columns=["a", "b"], quiet=True)
    assert whole(stream)[0].tolist() == [[1.0, 2.0], [4.0, 1.0]]
    assert stream.skipped == {"missing": 1}
    with pytest.raises(InputError, match="row 2, column 'a': '' is a missing value"):
        whole(open_stream(rows, columns=["a", "b"], missing="error", quiet=True))
    stream = open_stream(rows, quiet=True)
    found = by_name(stream)
    assert found["a"].tolist() == [1.0, 1.0, 4.0]
    assert found["b"].tolist() == [2.0, 3.0, 1.0]
    assert found["c missing"].tolist() == [1.0, 1.0, 0.0]
    assert stream.gaps == {"a": 1, "c": 2}


@pytest.mark.parametrize("module", ["pyarrow", "narwhals"])
def test_a_missing_package_is_named(everything, monkeypatch, module):
    for name in list(sys.modules):
        if name == module or name.startswith(f"{module}."):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    files = "files", ["csv", "jsonl", "parquet", "arff"]
    extra, names = files if module == "pyarrow" else ("frames", ["pandas"])
    for name in names:
        with pytest.raises(MissingExtraError, match=rf"kons\[{extra}\]"):
            open_stream(everything[name], "y")


def test_yes_and_no_are_numbers_where_numbers_are_asked_for(tmp_path):
    path = write(tmp_path, "asked.csv", "x,y\n1,yes\n2,no\n3,yes\n")
    assert whole(open_stream(path, "y", task="regression", quiet=True))[1].tolist() == [1.0, 0.0, 1.0]
    assert whole(open_stream(path, "y", quiet=True))[1].tolist() == ["yes", "no", "yes"]
