"""Files that somebody made on purpose: each is refused in its own words, before memory is asked for."""

import io
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from contracts.learners import LEARNERS, stream
from files.forge import array_entry, pack, unpack
from kons import KONS, Gaussian, Squared
from kons.errors import FileError, KonsError
from kons.files import from_bytes, to_bytes
from kons.kernels import FunctionKernel

X, Y = stream(40)


@pytest.fixture(scope="module")
def data():
    learner = LEARNERS["EmbeddedKONS, leverage, carry, capped"]()
    learner.advance(X, Y)
    return to_bytes(learner)


@pytest.fixture
def parts(data):
    return unpack(data)


def assert_refused(data, message):
    """A FileError that says so, without more memory than the file is worth."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=message):
            from_bytes(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000 + 20 * len(data)


def test_the_forger_s_tools_work(data, parts):
    assert to_bytes(from_bytes(pack(*parts))) == data


# ---- the container


def test_a_pickled_object_is_refused():
    assert_refused(pickle.dumps({"a": 1}), "pickled object, which could run code")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"P", "begins with"),
        (b"PK\x05\x06", "begins with"),
        (b"\x93NUMPY", "begins with"),
    ],
)
def test_what_is_no_kons_file(content, message):
    assert_refused(content, message)


def test_another_zip_file():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert_refused(stream.getvalue(), "no entry 'kons.json'")
    np.savez(stream := io.BytesIO(), a=np.eye(3))
    assert_refused(stream.getvalue(), "no entry 'kons.json'")


def test_a_zip_bomb(parts):
    document, arrays = parts
    document["arrays"][0] |= {"dtype": "<f8", "shape": [10**7], "order": "C"}
    arrays[0] = array_entry(np.zeros(10**7))
    bomb = pack(document, arrays, compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 500_000
    assert_refused(bomb, "compressed or encrypted.*unfold to any size")


def test_an_encrypted_entry(data):
    at = data.index(b"PK\x01\x02")
    assert_refused(data[: at + 8] + b"\x01" + data[at + 9 :], "compressed or encrypted")


@pytest.mark.parametrize("claim", [2**30, 2**32 - 2])
def test_an_entry_that_claims_more_than_the_file_holds(data, claim):
    at = data.index(b"PK\x01\x02")
    forged = data[: at + 20] + struct.pack("<II", claim, claim) + data[at + 28 :]
    assert_refused(forged, "more than the file holds")


def test_two_entries_of_one_name(parts):
    with pytest.warns(UserWarning, match="Duplicate name"):
        forged = pack(*parts, extra=[("000000.npy", b"another")])
    assert_refused(forged, "two entries named '000000.npy'")


def test_an_entry_too_many_or_too_few(parts):
    document, arrays = parts
    assert_refused(pack(document, arrays, extra=[("more", b"x")]), "not those that its document lists")
    assert_refused(pack(document, arrays[:-1]), "not those that its document lists")


def test_entries_over_each_other():
    """The document lies inside an array: the same bytes twice, each with a checksum that is right."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("kons.json", b"{}")
        inner = archive.infolist()[0]
    record = stream.getvalue()[: stream.getvalue().index(b"PK\x01\x02")]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("000000.npy", bytes(100) + record + bytes(100))
        inner.header_offset = 30 + len("000000.npy") + 100
        archive.filelist.append(inner)
    assert zipfile.ZipFile(stream).read("kons.json") == b"{}"
    assert_refused(stream.getvalue(), "its entry 'kons.json' overlaps another")


def test_the_checksum_of_the_document(parts):
    document, arrays = parts
    assert_refused(pack(document, arrays, comment=b""), "checksum does not match its document")
    assert_refused(pack(document, arrays, comment=b"kons sha256 " + b"0" * 64), "checksum does not match")


def test_the_checksum_of_an_array(parts):
    document, arrays = parts
    forged = pack(document, arrays)
    document["arrays"][1]["sha256"] = "0" * 64
    import json

    wrong = pack({}, arrays, text=json.dumps(document).encode())
    assert len(wrong) == len(forged)
    assert_refused(wrong, "checksum of its array '000001.npy' does not match")


# ---- the document


def with_document(parts, **changes):
    document, arrays = parts
    return pack({**document, **changes}, arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "numpy"}, '"format": "kons"'),
        ({"version": 4}, "format version is 4, this kons reads up to 3: update kons"),
        ({"version": 2}, "format version is 2, of a kons before its first release, and this one reads 3"),
        ({"version": 0}, "no format version"),
        ({"version": "2"}, "no format version"),
        ({"kind": "checkpoint"}, "holds a 'checkpoint', expected a 'object'"),
        ({"arrays": {}}, "no list named 'arrays'"),
        ({"given": []}, "no dict named 'given'"),
        ({"given": {"f": "here"}}, r"needs what a file cannot hold: 'f' \(here\)"),
        ({"tree": {"$given": "f"}}, "asks for 'f', which its document does not list"),
        ({"tree": {"$array": 99}}, "asks for the array 99"),
        ({"tree": {"$array": -1}}, "asks for the array -1"),
        ({"tree": [{"$array": 0}, {"$array": 0}]}, "array 0, which is not there or already used"),
        ({"tree": None}, "does not use all of its arrays"),
        ({"tree": {"$code": "import os"}}, r"holds '\$code', which this kons does not know"),
        ({"tree": {"$tuple": 1}}, "tuple or dict that is none"),
        ({"tree": {"$dict": [1]}}, "dict that is none"),
        ({"tree": {"$int": "1_0"}}, r"a '\$int' that is none"),
        ({"tree": {"$int": "0x" + "f" * 20_000}}, r"a '\$int' that is none"),
        ({"tree": {"$float": "1"}}, r"a '\$float' that is none"),
        ({"tree": {"$bytes": "?"}}, r"a '\$bytes' that is none"),
        ({"tree": {"$text": 1}}, r"a '\$text' that is none"),
        ({"tree": {"$scalar": ["|O", "00" * 8]}}, r"a '\$scalar' that is none"),
        ({"tree": {"$scalar": ["<f8", "00"]}}, r"a '\$scalar' that is none"),
        ({"tree": {"$object": "os.system", "parameters": {"command": "ls"}}}, "holds a 'os.system', which"),
        ({"tree": {"$object": "builtins:eval", "parameters": {}}}, "which this kons does not know"),
        ({"tree": {"$object": ["KONS"], "parameters": {}}}, "which this kons does not know"),
        ({"tree": {"$object": "Gaussian"}}, "other parts than it should have"),
        ({"tree": {"$object": "Gaussian", "parameters": {}, "more": 1}}, "other parts"),
        ({"tree": {"$object": "Gaussian", "parameters": []}}, "does not have the parameters"),
        ({"tree": {"$object": "Gaussian", "parameters": {}, "state": {}}}, "or the state, that it should"),
        ({"tree": {"$object": "KONS", "parameters": {}}}, "or the state, that it should"),
        ({"tree": {"$object": "KONS", "parameters": {}, "state": {}}}, "KONS cannot be made: TypeError"),
        (
            {"tree": {"$object": "Gaussian", "parameters": {"bandwidth": -1}}},
            "Gaussian is refused: bandwidth",
        ),
        ({"tree": {"$object": "Gaussian", "parameters": {"width": 1}}}, "Gaussian cannot be made: TypeError"),
    ],
)
def test_documents_that_say_something_else(parts, changes, message):
    assert_refused(with_document(parts, **changes), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "no valid JSON"),
        (b"\xff", "no valid JSON"),
        (b'{"a": NaN}', "holds NaN, which is no JSON"),
        (b'{"a": -Infinity}', "holds -Infinity"),
        (b'{"a": 1e999}', "beyond the range of floats"),
        (b'{"a": 1, "a": 2}', "names something twice"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", '"format": "kons"'),
        (b'{"format": "kons"}', "no format version"),
    ],
    ids=range(10),
)
def test_documents_that_are_none(parts, text, message):
    assert_refused(pack({}, [], text=text), message)


def test_documents_that_are_too_large(parts):
    large = pack(*parts, text=b"[" + b"[]," * (1 << 23))
    assert_refused(large, "its document has 25,165,825 bytes, at most 16,777,216")


def test_what_would_be_too_large_to_be_read_is_not_written():
    learner = KONS(FunctionKernel(lambda *_: 1.0), Squared())
    learner.learn_one("a" * (1 << 24), 1.0)
    with pytest.raises(FileError, match=r"at most 16,777,216 are read again. Are its points"):
        to_bytes(learner)


def test_a_tree_too_deep(parts):
    deep = 1
    for _ in range(150):
        deep = [deep]
    assert_refused(with_document(parts, tree=deep), "nested more than 100 levels")


# ---- the arrays


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"shape": [10**12]}, r"takes 8,000,000,000,000 bytes, but its entry holds"),
        ({"shape": [10**9, 10**9]}, "takes 8,000,000,000,000,000,000 bytes"),
        ({"shape": [2**47, 2**47, 2**47]}, "takes .* bytes, but its entry holds"),
        ({"shape": [2**60]}, "which none can have"),
        ({"shape": [-1]}, "which none can have"),
        ({"shape": [1.0]}, "which none can have"),
        ({"shape": [True]}, "which none can have"),
        ({"shape": "10"}, "which none can have"),
        ({"shape": [1] * 9}, "which none can have"),
        ({"order": "K"}, "which none can have"),
        ({"dtype": "|O"}, "would have to be unpickled, and could run code"),
        ({"dtype": "<f16"}, "expected plain numbers"),
        ({"dtype": "<M8[s]"}, "expected plain numbers"),
        ({"dtype": [["a", "<f8"]]}, "expected plain numbers"),
        ({"dtype": None}, "expected plain numbers"),
        ({"more": 1}, "not described by dtype, shape, order and sha256"),
    ],
)
def test_arrays_that_claim_something_else(parts, specification, message):
    document, arrays = parts
    document["arrays"][0] |= specification
    assert_refused(pack(document, arrays), message)


def test_a_header_that_says_something_else(parts):
    document, arrays = parts
    shape = document["arrays"][0]["shape"]
    count = int(np.prod(shape))
    arrays[0] = array_entry(np.zeros(count), dtype="|O", shape=shape)
    assert_refused(pack(document, arrays), "header of its array '000000.npy'")


def test_arrays_of_another_shape_meet_no_compiled_loop(parts):
    """Each array of the file in turn, with another shape and right in everything else."""
    document, arrays = parts
    for i, specification in enumerate(document["arrays"]):
        for change in ((1, 0), (0, 1), (-1, -1)):
            shape = [max(n + extra, 0) for n, extra in zip(specification["shape"], change, strict=False)]
            if shape == specification["shape"]:
                continue
            forged = [dict(s) for s in document["arrays"]]
            forged[i]["shape"] = shape
            entries = list(arrays)
            entries[i] = array_entry(np.zeros(shape))
            assert_refused(pack({**document, "arrays": forged}, entries), "EmbeddedKONS is refused")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(parts, value):
    document, arrays = parts
    for i, specification in enumerate(document["arrays"]):
        array = np.zeros(specification["shape"])
        if array.size:
            array.flat[-1] = value
            entries = list(arrays)
            entries[i] = array_entry(array)
            assert_refused(pack(document, entries), "holds NaN, infinity")


def test_a_learner_inside_a_kernel():
    document, _ = unpack(to_bytes(Gaussian()))
    inner = {
        "$object": "Sum",
        "parameters": {"left": document["tree"], "right": {"$object": "Squared", "parameters": {}}},
    }
    with pytest.raises(KonsError, match="Sum is refused: Sum got Squared"):
        from_bytes(pack({**document, "tree": inner}, []))
