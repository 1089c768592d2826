"""The border: what comes in becomes float64 arrays or lists of objects, or one clear error."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kons import AutoKONS, errors, evaluate
from kons.arrays import (
    as_objects,
    as_outputs,
    as_points,
    as_row,
    as_row_values,
    as_scalar,
    as_targets,
    require_integer,
    require_number,
)
from kons.errors import ConfigurationError, InputError, KonsWarning, MissingExtraError, MissingValueError

FORMS = {
    "float32": np.ones((2, 3), np.float32),
    "integers": np.ones((2, 3), int),
    "booleans": np.ones((2, 3), bool),
    "lists": [[1, 1.0, True], [1, 1, 1]],
    "tuples": ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    "rows": [np.ones(3), np.ones(3)],
    "objects": np.array([[1, 1.0, np.float32(1)], [Fraction(1), True, 1]], dtype=object),
    "Fortran": np.ones((2, 3), order="F"),
    "strided": np.ones((4, 6))[::2, ::2],
    "big-endian": np.ones((2, 3), ">f8"),
    "a matrix": np.ones((2, 3)).view(np.recarray),
    "a range": [range(1, 2).start * np.ones(3)] * 2,
}


@pytest.mark.parametrize("points", FORMS.values(), ids=FORMS)
def test_points(points):
    array = as_points(points)
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    assert array.dtype.isnative
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, np.ones((2, 3)))


def test_points_may_be_the_callers_own_memory():
    X = np.ones((2, 3))
    assert as_points(X) is X or np.shares_memory(as_points(X), X)


def test_the_name_is_in_the_message():
    with pytest.raises(InputError, match=r"^Z has no rows"):
        as_points(np.empty((0, 2)), name="Z")


def test_width():
    assert as_points(np.ones((2, 3)), width=3).shape == (2, 3)
    with pytest.raises(InputError, match=r"3 feature\(s\).*seen 4 so far"):
        as_points(np.ones((2, 3)), width=4)


def test_one_nan_among_many_is_found():
    X = np.zeros((50, 7))
    X[31, 4] = np.nan
    with pytest.raises(MissingValueError, match=r"X\[31\]\[4\] is nan"):
        as_points(X)
    X[40, 0] = np.inf  # which nobody takes, while some take gaps
    with pytest.raises(InputError, match=r"X\[40\]\[0\] is inf"):
        as_points(X)


@pytest.mark.parametrize("value", [Decimal(1), 1j, "1", b"1", None, [1], {}])
def test_objects_that_are_not_numbers(value):
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = 1.0, value
    with pytest.raises(InputError, match=r"expected a number|different lengths"):
        as_points(cells)


@pytest.mark.parametrize("row", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([[1.0, 2.0, 3.0]]), np.arange(1, 4)])
def test_a_row(row):
    array = as_row(row)
    assert (array.shape, array.dtype) == ((1, 3), np.float64)
    np.testing.assert_array_equal(array, [[1, 2, 3]])


def test_objects():
    assert as_objects(("a", 1, None)) == ["a", 1, None]
    assert as_objects(x for x in "ab") == ["a", "b"]
    assert as_objects(["text"]) == ["text"]
    X = np.zeros((2, 3))
    rows = as_objects(X)
    X[:] = 1.0
    assert len(rows) == 2
    np.testing.assert_array_equal(rows[0], 0.0)


def test_objects_that_the_caller_can_change_are_copied():
    words, graph, letters = ["a", ["b"]], {"a": ["b"]}, {"a"}
    mine = object()
    kept = as_objects([words, graph, letters, mine])
    words[1].append("c")
    graph["a"].append("c")
    letters.add("b")
    assert kept[:3] == [["a", ["b"]], {"a": ["b"]}, {"a"}]
    assert kept[3] is mine


def test_targets():
    np.testing.assert_array_equal(as_targets([1, 2], 2), [1.0, 2.0])
    np.testing.assert_array_equal(as_targets(np.ones((3, 1)), 3), np.ones(3))
    np.testing.assert_array_equal(as_targets(np.ones((1, 3)), 3), np.ones(3))
    with pytest.raises(InputError, match=r"y has shape \(\)"):
        as_targets(1.0, 1)


def test_row_values():
    np.testing.assert_array_equal(as_row_values(2, 3, name="w", minimum=0.0), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(as_row_values([0, 1], 2, name="w", minimum=0.0), [0.0, 1.0])
    with pytest.raises(InputError, match=r"w\[1\] is -1, expected at least 0"):
        as_row_values([0, -1, -0.5], 3, name="w", minimum=0.0)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.array(2), [2], np.array([[2.0]]), Fraction(2)])
def test_a_scalar(value):
    number = as_scalar(value, name="y")
    assert type(number) is float
    assert number == 2.0


@pytest.mark.parametrize("value", [[1, 2], np.nan, -math.inf, None, "2", [], {}])
def test_not_a_scalar(value):
    with pytest.raises(InputError, match=r"^y "):
        as_scalar(value, name="y")


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_numbers_within_limits(value):
    if math.isfinite(value) and 0 < value <= 5:
        assert require_number(value, "p", above=0, at_most=5) == value
    else:
        with pytest.raises(ConfigurationError, match=r"^p is .*finite number above 0 and at most 5\.$"):
            require_number(value, "p", above=0, at_most=5)


@pytest.mark.parametrize("value", [1, np.int8(1), np.float32(1), Fraction(1)])
def test_a_parameter_may_be_any_real_number(value):
    assert type(require_number(value, "p")) is float


@pytest.mark.parametrize("value", [True, np.True_, "1", None, 1j, [1.0], np.ones(1)])
def test_a_parameter_that_is_no_number(value):
    with pytest.raises(ConfigurationError, match="expected a finite number"):
        require_number(value, "p")


def test_limits():
    with pytest.raises(ConfigurationError, match="below 1"):
        require_number(1.0, "p", below=1.0)
    assert require_number(0.0, "p", at_least=0.0) == 0.0


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_an_integer(value):
    assert type(require_integer(value, "n", at_least=3)) is int


@pytest.mark.parametrize("value", [2, 3.0, True, "3", None, np.nan, [3]])
def test_not_an_integer(value):
    with pytest.raises(ConfigurationError, match=r"^n is .*expected an integer of at least 3\.$"):
        require_integer(value, "n", at_least=3)


# ---- frames and sparse matrices

VALUES = np.array([[0.0, 1.0, 1.0], [2.0, 3.5, 0.0], [4.0, 5.0, 1.0]])
FRAME = pd.DataFrame({"a": [0, 2, 4], "b": [1.0, 3.5, 5.0], "c": [True, False, True]})
FRAMES = {
    "pandas": FRAME,
    "pandas float": FRAME.astype(float),
    "pandas float32": FRAME.astype(np.float32),
    "pandas nullable": FRAME.convert_dtypes(),
    "pandas objects": FRAME.astype(object),
    "pandas categories of numbers": FRAME.astype({"a": "category"}),
    "polars": pl.from_pandas(FRAME),
    "polars decimals": pl.DataFrame({"a": [Decimal(0), Decimal(2), Decimal(4)]}).hstack(
        pl.from_pandas(FRAME[["b", "c"]])
    ),
    "pyarrow": pa.Table.from_pandas(FRAME),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames(frame):
    array = as_points(frame)
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    np.testing.assert_array_equal(array, VALUES)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME.assign(city=["x", "y", "z"]), "X holds 'x' in column 'city' .*encode the column"),
        (pl.from_pandas(FRAME.assign(city=["x", "y", "z"])), "X holds 'x' in column 'city'"),
        (FRAME.assign(t=pd.Timestamp("2024")), "column 't' .*Datetime"),
        (pl.DataFrame({"a": [[1], [2]]}), "column 'a'"),
        (FRAME.assign(d=[1.0, np.nan, 3.0]), "missing value in column 'd'|is nan"),
        (FRAME.assign(d=pd.array([1, None, 3], dtype="Int64")), r"missing value in column 'd' \(row 1\)"),
        (pl.DataFrame({"a": [1, None]}), "nan|missing value in column 'a'"),
        (pl.DataFrame({"a": [1]}).lazy(), r"LazyFrame.*X\.collect\(\)"),
        (pd.DataFrame([[1, "u"]], columns=["a", "a"]), "DataFrame that cannot be read"),
        (pd.DataFrame({"a": []}), "no rows"),
        (pl.DataFrame(), "no rows"),
    ],
)
def test_frames_that_are_not_numbers_name_the_column(frame, words):
    with pytest.raises(InputError, match=words):
        as_points(frame)


def test_frames_are_not_changed_or_aliased_when_converted():
    frame = FRAME.copy()
    array = as_points(frame)
    array[:] = -1.0
    pd.testing.assert_frame_equal(frame, FRAME)


def test_without_narwhals(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    np.testing.assert_array_equal(as_points(FRAME), VALUES)
    np.testing.assert_array_equal(as_points(pl.from_pandas(FRAME)), VALUES)
    with pytest.raises(InputError, match=r"X\[0\]\[3\] is 'x'"):
        as_points(FRAME.assign(city=["x", "y", "z"]))
    with pytest.raises(MissingExtraError, match=r"kons\[frames\]"):
        as_points(FRAME[["a"]].assign(t=pd.Timestamp("2024"))[["t"]])


@pytest.mark.parametrize(
    "y", [FRAME["a"], FRAME[["a"]], pl.Series([0, 2, 4]), pd.array([0, 2, 4]), pa.array([0, 2, 4])]
)
def test_series_as_targets(y):
    np.testing.assert_array_equal(as_targets(y, 3), [0.0, 2.0, 4.0])


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "lil_matrix", "dok_array"])
def test_sparse_rows_are_made_dense_and_told(form, monkeypatch):
    monkeypatch.setattr(errors, "told", set())
    matrix = getattr(scipy.sparse, form)(VALUES)
    with pytest.warns(KonsWarning, match="X is sparse and was made dense: 3 x 3"):
        array = as_points(matrix)
    np.testing.assert_array_equal(array, VALUES)
    np.testing.assert_array_equal(as_row(scipy.sparse.csr_array(VALUES[1:2])), VALUES[1:2])
    with pytest.raises(InputError, match=r"1,048,576 x 1,048,576.*fewer rows at a time"):
        as_points(scipy.sparse.csr_array((1 << 20, 1 << 20)))


def test_read_only_arrays():
    X = VALUES.copy()
    X.flags.writeable = False
    assert as_points(X) is X
    np.testing.assert_array_equal(as_points(X[::-1, ::2]), X[::-1, ::2])


def test_targets_of_several_outputs():
    one = as_outputs([[1.0, 2.0, 3.0]], 3)  # a row of numbers, one for each of three rows
    np.testing.assert_array_equal(one, [1.0, 2.0, 3.0])
    assert as_outputs([[1.0, 2.0, 3.0]], 1).shape == (1, 3)
    assert as_outputs([1.0, 2.0], 2, 1).shape == (2, 1)
    assert as_outputs([[1.0], [2.0]], 2, 0).shape == (2,)
    wrong = (([1.0, 2.0], 2, 2), (np.ones((2, 3)), 2, 2), (np.ones((2, 2)), 2, 1), (np.ones((2, 0)), 2, None))
    for y, rows, known in wrong:
        with pytest.raises(errors.InputError, match=r"target\(s\) a row"):
            as_outputs(y, rows, known)
    with pytest.raises(errors.InputError, match="expected one"):
        as_outputs(np.ones((2, 3)), 2, 0)


def test_a_delay_that_no_memory_holds_is_refused():
    for late in (10**6 + 1, 99999999999999999999):
        with pytest.raises(errors.ConfigurationError, match=r"delay is \d+, expected .* at most 1,000,000"):
            AutoKONS(delay=late)
        with pytest.raises(errors.ConfigurationError, match=r"delay is \d+, expected .* at most 1,000,000"):
            evaluate("embedded", ([[0.0]], [1.0]), delay=late)
    with pytest.raises(errors.ConfigurationError, match=r"experts is 100000, expected .* at most 100\."):
        AutoKONS(experts=100_000)
