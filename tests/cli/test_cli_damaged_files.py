"""Files that are not what they seem: one line, exit code 1 or 2, and nothing left behind."""

import gzip
import os
import random
import subprocess
import sys

import pytest

import effort
from kons.cli import main

HEADER = "a,b,y\n"
ROWS = "".join(f"{i % 7},{i % 11 / 4},{i % 5}\n" for i in range(60))
BINARY = bytes(random.Random(0).randrange(256) for _ in range(5000))

DAMAGED = {
    "empty.csv": b"",
    "blank.csv": b"\n\n  \n",
    "header.csv": HEADER.encode(),
    "headless.csv": ROWS.encode(),
    "binary.csv": BINARY,
    "binary.bin": BINARY,
    "zeros.csv": b"\0" * 4000,
    "some binary.csv": (HEADER + ROWS).encode() + BINARY,
    "quote.csv": (HEADER + ROWS + '1,"2,3\n' + ROWS).encode(),
    "quote in header.csv": ('"a,b,y\n' + ROWS).encode(),
    "wrong delimiter.csv": (HEADER + ROWS.replace(",", ";")).encode(),
    "spaces.csv": (HEADER + ROWS).replace(",", " ").encode() + b"1 2\n",
    "too many.csv": (HEADER + ROWS + "1,2,3,4\n").encode(),
    "too few.csv": (HEADER + ROWS + "1,2\n").encode(),
    "text.csv": (HEADER + ROWS + "1,two,3\n").encode(),
    "nothing there.csv": (HEADER + ROWS + "1,,3\n").encode(),
    "infinite.csv": (HEADER + ROWS + "1,inf,3\n").encode(),
    "latin.csv": (HEADER + ROWS + "1,é,3\n").encode("latin-1"),
    "utf-16.csv": (HEADER + ROWS).encode("utf-16")[:-1],
    "no mark utf-16.csv": (HEADER + ROWS).encode("utf-16-le"),
    "returns.csv": (HEADER + ROWS).replace("\n", "\r").encode(),
    "twice.csv": ("a,a,y\n" + ROWS + "1,2\n").encode(),
    "cut.csv.gz": gzip.compress((HEADER + ROWS).encode())[:-20],
    "not.csv.gz": (HEADER + ROWS).encode()[::-1],
    "damaged.csv.gz": gzip.compress((HEADER + ROWS).encode())[:40] + b"\xff" * 60,
    "zip.csv": b"PK\x03\x04" + BINARY,
    "cut.parquet": b"PAR1" + BINARY,
    "empty.parquet": b"",
    "cut.jsonl": b'{"a": 1, "b": 2, "y": 3}\n{"a": 1, "b"',
    "list.json": b"[1, 2, 3]",
    "odd.arff": b"@relation x\n@attribute a numeric\n@data\n1,2,3\n",
    "odd.libsvm": b"1 1:2 x:3\n",
    "wide.csv": (",".join(f"c{i}" for i in range(10_000)) + ",y\n" + "1,2,3\n" * 50).encode(),
    "long line.csv": HEADER.encode() + b"1" * 3_000_000,
    "constant target.csv": (HEADER + ROWS + "1,2,nothing\n").encode(),
}


WITHOUT_A_FOLDER = effort.some(DAMAGED, "empty.csv", "text.csv", "cut.csv.gz")


@pytest.mark.parametrize(
    ("name", "out"), [(name, True) for name in DAMAGED] + [(name, False) for name in WITHOUT_A_FOLDER]
)
def test_one_line_and_nothing_left(tmp_path, capsys, name, out):
    (tmp_path / name).write_bytes(DAMAGED[name])
    before = sorted(os.listdir())
    strict = ["--on-bad-row", "error", "--missing", "error"]
    code = main(["run", name, "--target", "y", "--quiet", *strict, *(["--out", "out"] if out else [])])
    printed, err = capsys.readouterr()
    if code == 0:
        pytest.fail(f"it was read: {printed}")
    assert code in (1, 2)
    assert printed == ""
    assert err.startswith("kons: ")
    assert err.count("\n") == 1
    assert len(err) < 1000
    assert "bug" not in err
    assert sorted(os.listdir()) == before


def test_thousands_of_columns_are_fine(tmp_path, answer):
    columns = range(effort.amount(1000, 10_000))
    head = ",".join(f"c{i}" for i in columns) + ",y\n"
    lines = [",".join([*(str((i * j) % 13) for j in columns), str(i)]) for i in range(60)]
    (tmp_path / "wide.csv").write_text(head + "\n".join(lines) + "\n")
    found = answer("run", "wide.csv", "--target", "y")
    assert found["rows"] == 60
    assert "linear" not in found["baselines"]
    assert any("no linear baseline" in note for note in found["notes"])


@pytest.mark.parametrize("seed", range(effort.amount(1, 50)))
def test_random_damage(tmp_path, capsys, no_report, seed):
    """Bytes changed, left out and put in at random: read or refused, and never anything else."""
    chance = random.Random(seed)
    sound = (HEADER + ROWS * 3).encode()
    for i in range(effort.amount(12, 20)):
        data = bytearray(sound)
        for _ in range(chance.choice([1, 1, 2, 20])):
            at = chance.randrange(len(data))
            kind = chance.randrange(4)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + chance.choice([1, 1, 500])]
            elif kind == 2:
                data[at:at] = chance.choice([b'"', b"\n", b"\r", b",", b"\0", b"\xff\xfe", b"nan", b"1e999"])
            else:
                del data[at:]
            data = data or bytearray(b"\n")
        name = f"{i}.csv"
        (tmp_path / name).write_bytes(bytes(data))
        code = main(["run", name, "--target", "y", "--quiet", "--json", "--out", f"out {i}"])
        out, err = capsys.readouterr()
        assert "bug" not in err
        assert code == 0 or (out == "" and err.count("\n") == 1 and not os.path.exists(f"out {i}"))


@pytest.mark.parametrize("name", effort.some(["binary.csv", "quote.csv", "cut.csv.gz"], "cut.csv.gz"))
def test_in_a_process_of_its_own(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGED[name])
    done = subprocess.run(
        [sys.executable, "-m", "kons.cli", "run", name, "--target", "y", "--out", "out"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith("kons: ")
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == [name]
