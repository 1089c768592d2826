"""Damaged files: whatever the bytes, rows of finite numbers or one line that says what is wrong."""

import bz2
import gzip
import io
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import effort
from kons.errors import InputError, KonsError
from kons.streams import open_stream

TABLE = [
    {
        "a": i / 7,
        "b": i % 5,
        "c": "rgb"[i % 3],
        "t": f"2024-01-{1 + i % 28:02d}",
        "f": i % 2 > 0,
        "y": i * 0.5,
    }
    for i in range(40)
]


def parquet():
    out = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pylist(TABLE), out)
    return out.getvalue()


CSV = "a,b,c,t,f,y\n" + "\n".join(",".join(map(str, row.values())) for row in TABLE) + "\n"
QUOTED = "a,b,c,t,f,y\n" + "\n".join(",".join(f'"{c}"' for c in row.values()) for row in TABLE) + "\n"
JSON = "\n".join(map(json.dumps, TABLE))
LIBSVM = "".join(f"{i % 3} 1:{i / 7!r} {2 + i % 5}:1 # remark\n" for i in range(40))
ARFF = (
    "@relation r\n@attribute a real\n@attribute b real\n@attribute c {r,g,b}\n@attribute t date\n"
    "@attribute f {True,False}\n@attribute y real\n@data\n"
    + "\n".join(",".join(map(str, row.values())) for row in TABLE)
)
FILES = {
    "t.csv": CSV.encode(),
    "quoted.csv": QUOTED.encode(),
    "t.csv.gz": gzip.compress(CSV.encode()),
    "t.csv.bz2": bz2.compress(CSV.encode()),
    "t.csv.xz": lzma.compress(CSV.encode()),
    "spaces.csv": CSV.replace(",", "  ").encode(),
    "t.jsonl": JSON.encode(),
    "list.jsonl": json.dumps(TABLE, indent=1).encode(),
    "t.libsvm": LIBSVM.encode(),
    "t.arff": ARFF.encode(),
    "t.parquet": parquet(),
    "unknown": CSV.encode(),
}
SIGNS = [b"\0", b'"', b"'", b",", b";", b"\n", b"\r", b"{", b"}", b"\xff\xfe", b"\xe9", b"nan", b"1e999",
         b"%", b":", b"@data\n", b"\x1f\x8b", b"9" * 500, b"\\", b"[" * 2000, b"\t"]  # fmt: skip


def damaged(data, rng):
    """One to three accidents."""
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, len(data) + 1))
        length = int(rng.integers(1, 30))
        kind = rng.integers(0, 7)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and data:
            at = min(at, len(data) - 1)
            data = data[:at] + bytes([data[at] ^ (1 << int(rng.integers(0, 8)))]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + SIGNS[rng.integers(0, len(SIGNS))] + data[at:]
        elif kind == 3:
            data = data[:at] + data[at + length :]
        elif kind == 4:
            data = data[:at] + data[at : at + length] * 3 + data[at + length :]
        elif kind == 5:
            data = data[:at] + rng.bytes(length) + data[at:]
        else:
            old, new = (SIGNS[rng.integers(1, len(SIGNS))] for _ in range(2))
            data = data.replace(old, new)
    return data


def attempt(path, rng):
    options = {
        "missing": ("error", "skip", "fill")[rng.integers(0, 3)],
        "on_bad_row": ("error", "skip", "gap")[rng.integers(0, 3)],
    }
    rows = 0
    try:
        stream = open_stream(path, None if "svm" in path.name else "y", quiet=True, **options)
        for block in stream:
            rows += len(block.y)
            assert np.isfinite(block.X).all()
            joined = 0 if block.growth is None else block.growth.columns
            assert block.X.shape == (len(block.y), len(stream.features) - joined)
            assert stream.task == "classification" or np.isfinite(block.y).all()
    except KonsError as error:
        message = str(error)
        assert message
        assert len(message.splitlines()) == 1, message
        assert len(message) < 1500
        return False
    assert rows > 0
    return True


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path, name):
    rng = np.random.default_rng(len(name))
    path = tmp_path / name
    outcomes = []
    for _ in range(effort.amount(40, 1000)):
        path.write_bytes(damaged(FILES[name], rng))
        outcomes.append(attempt(path, rng))
    assert not all(outcomes)
    path.write_bytes(FILES[name])
    assert attempt(path, rng)


@pytest.mark.parametrize("name", FILES)
def test_every_cut_off_file(tmp_path, name):
    rng = np.random.default_rng(1)
    path = tmp_path / name
    data = FILES[name]
    for length in range(0, len(data), max(1, len(data) // effort.amount(12, 200))):
        path.write_bytes(data[:length])
        attempt(path, rng)


def columns_of(kind, count):
    """A small file with so many columns."""
    names = [f"c{i}" for i in range(count)]
    if kind == "parquet":
        stream = io.BytesIO()
        pa.parquet.write_table(pa.table({name: [1.0] for name in names}), stream)
        return stream.getvalue()
    return {
        "csv": ",".join(names) + "\n1,2\n",
        "txt": " ".join(names) + "\n1 2\n",
        "jsonl": json.dumps(dict.fromkeys(names, 1.0)) + "\n",
        "libsvm": f"1 1:1\n0 {count}:1\n",
        "arff": "".join(f"@attribute {name} numeric\n" for name in names) + "@data\n1,2\n",
    }[kind].encode()


@pytest.mark.parametrize("kind", ["csv", "txt", "jsonl", "libsvm", "arff", "parquet"])
def test_small_files_with_too_many_columns_are_refused(tmp_path, kind):
    path = tmp_path / f"wide.{kind}"
    path.write_bytes(columns_of(kind, 20_001))
    with pytest.raises(InputError, match=r"20,001.*at most 20,000"):
        open_stream(path, "c1", quiet=True)


def test_keys_that_come_later_are_counted_too(tmp_path):
    path = tmp_path / "wide.jsonl"
    path.write_text('{"y": 1}\n' * 1000 + "".join(f'{{"c{i}": 1}}\n' for i in range(20_001)))
    with pytest.raises(InputError, match=r"20,002 columns, at most 20,000"):
        open_stream(path, "y", quiet=True)


def test_a_long_text_in_every_row_is_in_memory_once(tmp_path):
    long, rows = "x" * 200_000, 2000
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1] * (rows // 2), pa.int8()), [long, long + "y"])
    pa.parquet.write_table(
        pa.table({"a": texts, "y": np.arange(rows) % 7.0}), tmp_path / "t.parquet", store_schema=False
    )
    before = pa.default_memory_pool().max_memory()
    stream = open_stream(tmp_path / "t.parquet", "y", task="regression", quiet=True)
    assert sum(len(block.y) for block in stream.blocks()) == rows
    assert pa.default_memory_pool().max_memory() < before + 1e8  # as texts they are 4e8


def test_rows_of_parquet_that_are_too_long_are_refused(tmp_path):
    table = pa.table({"a": ["x" * (1 << 24)] * 2, "y": [1.0, 2.0]})
    pa.parquet.write_table(table, tmp_path / "t.parquet", use_dictionary=False, compression="zstd")
    with pytest.raises(InputError, match="rows have 16 MB, at most 16 MB"):
        open_stream(tmp_path / "t.parquet", "y", quiet=True)


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_the_clothes_of_another(tmp_path, name):
    rng = np.random.default_rng(2)
    for other, data in FILES.items():
        path = tmp_path / name
        path.write_bytes(data)
        attempt(path, rng)
        if other.split(".")[-1] != name.split(".")[-1] and name != "unknown" and "csv" not in name:
            assert not attempt(path, rng)
