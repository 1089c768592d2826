"""Arrays by their buffers, held against what pyarrow itself makes of them."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from kons.streams.arrow import arrow_numbers, arrow_texts, numbers_of


@pytest.mark.parametrize("start", [0, 1, 7, 8, 13])
@pytest.mark.parametrize("rows", [0, 1, 8, 30])
@pytest.mark.parametrize("holes", [False, True])
def test_numbers_come_out_as_pyarrow_has_them(start, rows, holes):
    rng = np.random.default_rng(rows)
    cells = [
        None if holes and rng.random() < 0.3 else float(value) for value in rng.normal(size=start + rows)
    ]
    array = pa.array(cells, pa.float64()).slice(start)
    np.testing.assert_array_equal(numbers_of(array), np.array(array.to_pylist(), dtype=np.float64))
    assert numbers_of(pa.array([3, 1, 2], pa.int32()).slice(1)).tolist() == [1, 2]


@pytest.mark.parametrize("values", [[], [1.5], [np.nan] * 9, [0.0, np.nan, -0.0, 1e-300] * 5])
def test_numbers_go_in(values):
    array = arrow_numbers(pa, np.array(values, dtype=np.float64))
    array.validate(full=True)
    assert array.to_pylist() == [None if np.isnan(value) else value for value in values]
    assert arrow_numbers(pa, np.arange(6)[::2]).to_pylist() == [0, 2, 4]


@pytest.mark.parametrize("texts", [[], ["a"], [None] * 9, ["", None, "größer", 'a,"b"\n', "x" * 1000] * 4])
def test_texts_go_in(texts):
    array = arrow_texts(pa, texts)
    array.validate(full=True)
    assert array.to_pylist() == texts


def test_a_run_does_not_wait_for_pandas(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(200)))
    code = (
        "import sys; from kons.cli import main; "
        f"code = main(['run', {str(file)!r}, '--target', 'kind', '--json', '--quiet']); "
        "heavy = [m for m in ('pandas', 'polars', 'sklearn', 'matplotlib') if m in sys.modules]; "
        "sys.exit(code or heavy or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
