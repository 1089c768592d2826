"""Whatever goes into a tree comes out of it: the same values, types, bits and memory layout."""

import io
import json
import math
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import effort
from contracts.learners import assert_identical
from kons.errors import FileError
from kons.files import read_tree, write_tree
from kons.files.registry import TABLE, class_of


def through(tree, folder, kind="test"):
    path = folder / "tree.kons"
    write_tree(path, tree, kind=kind)
    return read_tree(path, kind=kind)


NUMBERS = [np.bool_, np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64]
ARRAYS = st.sampled_from([*NUMBERS, np.complex64, np.complex128]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=20), ARRAYS
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=6), inner, max_size=4),
        st.dictionaries(st.sampled_from(["$array", "$object", "$", "a"]), inner, max_size=3),
    ),
    max_leaves=15,
)


@effort.examples(20)
@given(tree=TREES)
def test_trees_come_back(tree, tmp_path_factory):
    assert_identical(through(tree, tmp_path_factory.getbasetemp()), tree)


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        5e-324,
        math.inf,
        -math.inf,
        math.nan,
        2**53 - 1,
        2**53,
        -(2**53),
        2**127 + 1,
        -(10**300),
        "\ud800 \x00 é \U0001f600",
        b"",
        bytes(range(256)),
        True,
        {},
        [],
        (),
        {"": ()},
        {"$tuple": [1]},
        [[[()]]],
    ],
    ids=repr,
)
def test_values_that_json_has_no_word_for(value, tmp_path):
    assert_identical(through(value, tmp_path), value)


@pytest.mark.parametrize(
    "value",
    [np.float64(1.5), np.float32(np.nan), np.int8(-3), np.bool_(True), np.str_("a"), np.bytes_(b"\0a")],
)
def test_numpy_scalars_stay_what_they_are(value, tmp_path):
    found = through(value, tmp_path)
    assert type(found) is type(value)
    assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("array", "order"),
    [
        (np.arange(12.0).reshape(3, 4), "C"),
        (np.asfortranarray(np.arange(12.0).reshape(3, 4)), "F"),
        (np.arange(24.0).reshape(4, 6)[::2, ::3], "C"),
        (np.arange(5.0)[::-1], "C"),
        (np.arange(6.0).reshape(2, 3).astype(">f8"), "C"),
        (np.empty((0, 3)), "C"),
        (np.empty((0, 0)), "C"),
    ],
)
def test_arrays_keep_their_order_in_memory(array, order, tmp_path):
    found = through(array, tmp_path)
    assert_identical(found, array)
    assert found.flags.c_contiguous or order == "F"
    assert found.flags.f_contiguous or order == "C"
    assert found.flags.writeable
    assert found.flags.owndata or found.base is not None


def test_any_tool_reads_the_arrays(tmp_path):
    arrays = [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.eye(3)),
        np.array([1, 2], np.int16),
        np.array(3.0),
    ]
    write_tree(tmp_path / "t", {"many": arrays}, kind="test")
    with np.load(tmp_path / "t", allow_pickle=False) as theirs:
        for i, array in enumerate(arrays):
            assert_identical(theirs[f"{i:06d}"], array)
    with zipfile.ZipFile(tmp_path / "t") as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("kons.json"))["tree"]["many"][1] == {"$array": 1}


def test_equal_trees_make_equal_files(tmp_path):
    for name in "ab":
        write_tree(tmp_path / name, {"x": np.arange(3.0), "y": [1, None]}, kind="test")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


REFUSED = {
    "an object": (object(), "builtins.object.*without pickle"),
    "inside a list": ([1, [2, {3}]], r"\[1\]\[1\] is a builtins.set"),
    "under a key": ({"a": {"b": io.BytesIO()}}, "a.b is a _io.BytesIO"),
    "an array of objects": (np.array([object()]), "array of object"),
    "an array of text": (np.array(["a"]), "array of <U1"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "array of datetime64"),
    "records": (np.zeros(2, [("a", "f8")]), "array of"),
    "long double": (np.zeros(2, np.longdouble), "array of"),
    "a long double": (np.longdouble(1), "longdouble"),
    "a complex number": (1j, "builtins.complex"),
    "a key that is no text": ({1: 2}, "has the key 1"),
    "a subclass of int": (type("Number", (int,), {})(3), "Number"),
    "a masked array": (np.ma.masked_array([1.0], [True]), "MaskedArray"),
}


@pytest.mark.parametrize(("tree", "message"), REFUSED.values(), ids=REFUSED)
def test_what_a_tree_cannot_hold_is_refused_before_the_file_is_touched(tree, message, tmp_path):
    path = tmp_path / "t"
    write_tree(path, "before", kind="test")
    with pytest.raises(FileError, match=message):
        write_tree(path, tree, kind="test")
    assert read_tree(path, kind="test") == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_a_tree_without_end_is_refused(tmp_path):
    endless = []
    endless.append(endless)
    with pytest.raises(FileError, match="nested more than 100 levels"):
        write_tree(tmp_path / "t", endless, kind="test")
    deep = 0
    for _ in range(99):
        deep = [deep]
    assert through(deep, tmp_path) == deep


@pytest.mark.parametrize("key", ["a", "$a"])
def test_what_is_written_is_not_too_deep_to_be_read(key, tmp_path):
    deep = 0
    for _ in range(200):
        try:
            write_tree(tmp_path / "t", deep, kind="test")
        except FileError:
            break
        deep = {key: deep}
    written = deep[key]
    assert len(str(written)) > 30 * len(str({key: 0}))
    assert through(written, tmp_path) == written


def test_another_kind_is_refused(tmp_path):
    write_tree(tmp_path / "t", 1, kind="checkpoint")
    with pytest.raises(FileError, match="holds a 'checkpoint', expected a 'object'"):
        read_tree(tmp_path / "t", kind="object")


def test_the_table_names_classes_where_they_are():
    there = {name: place for name, place in TABLE.items() if "river" not in name or find_spec("river")}
    found = {name: class_of(name) for name in there}
    assert {name: f"{cls.__module__}:{cls.__qualname__}" for name, cls in found.items()} == there


def test_every_public_class_is_in_the_table():
    from kons import kernels, learners, losses, policies, step_sizes

    abstract = {"Kernel", "Loss", "StepSize", "Trace"}
    for module in (kernels, learners, losses, policies, step_sizes):
        for name in module.__all__:
            if isinstance(getattr(module, name), type) and name not in abstract:
                assert TABLE[name].startswith("kons."), name
