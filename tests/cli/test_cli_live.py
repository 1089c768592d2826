"""Pipes are live: a row that has arrived is answered before the next one comes."""

import json
import subprocess
import sys

import pytest

KONS = [sys.executable, "-m", "kons.cli"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    rows = [f"s{i % 3},{i % 7},{(i % 7) * (i % 3)}" for i in range(150)]
    (folder / "rows.csv").write_text("\n".join(["sensor,x,y", *rows]) + "\n")
    asked = [*KONS, "run", folder / "rows.csv", "--target", "y", "--key", "sensor", "--out", folder / "run"]
    subprocess.run([*asked, "--quiet"], check=True, capture_output=True)
    return folder / "run" / "model.kons"


def opened(*arguments):
    pipe = subprocess.PIPE
    return subprocess.Popen([*KONS, *map(str, arguments)], stdin=pipe, stdout=pipe, bufsize=0)


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_row_is_answered_before_the_next_one_comes(model, format):
    def row(i):
        if format == "jsonl":
            return json.dumps({"sensor": f"s{i}", "x": 3}) + "\n"
        return f"s{i},3\n"

    with opened("predict", model, "-", "--quiet") as process:
        if format == "csv":
            process.stdin.write(b"sensor,x\n")
        answers = []
        for i in range(3):
            process.stdin.write(row(i).encode())
            answers += [process.stdout.readline() for _ in range(2 if i == 0 else 1)]
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0
    assert answers[0] == b"line,prediction\n"
    found = [float(line.split(b",")[1]) for line in answers[1:]]
    assert found == pytest.approx([0.0, 3.0, 6.0], abs=1.0)


def test_a_run_writes_each_row_as_it_comes(model, tmp_path):
    out = tmp_path / "run"
    with opened("run", "-", "--model", model, "--out", out, "--quiet", "--json") as process:
        process.stdin.write(b"sensor,x,y\ns0,1,0\n")
        while not (out / "predictions.csv").exists() or b"\n" not in (out / "predictions.csv").read_bytes():
            assert process.poll() is None
        process.stdin.write(b"s1,2,2\n")
        process.stdin.close()
        summary = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert summary["rows"] == 2
    assert summary["keys"]["count"] == 3


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_run_that_begins_with_nothing_does_not_wait_for_a_thousand_rows(tmp_path, format):
    """Few rows say what the columns are; none is left out for being different in each of them."""
    out, path = tmp_path / "run", tmp_path / "run" / "predictions.csv"

    def row(i):
        cells = {"day": f"d{i % 3}", "count": i, "y": i % 2}
        text = json.dumps(cells) if format == "jsonl" else ",".join(map(str, cells.values()))
        return f"{text}\n".encode()

    with opened("run", "-", "--target", "y", "--out", out, "--quiet", "--json") as process:
        process.stdin.write((b"day,count,y\n" if format == "csv" else b"") + b"".join(map(row, range(3))))
        for i in range(3, 6):
            while not path.exists() or path.read_bytes().count(b"\n") != i + 1:
                assert process.poll() is None
            process.stdin.write(row(i))
        process.stdin.close()
        summary = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert (summary["rows"], summary["task"]) == (6, "regression")
    assert {"day=d0", "count"} <= set(summary["features"])
