"""Large arrays beside a document: written once, checked, swept."""

import os
from pathlib import Path

import numpy as np
import pytest

from kons.errors import FileError
from kons.files import read_tree, write_tree

LARGE = np.arange(200_000.0).reshape(400, 500)


def write(folder: Path, tree: object) -> None:
    write_tree(folder / "document.kons", tree, kind="test", pieces=folder / "pieces")


def read(folder: Path) -> object:
    return read_tree(folder / "document.kons", kind="test", pieces=folder / "pieces")


def files(folder: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(folder / "pieces")}


@pytest.mark.parametrize(
    "array", [LARGE, np.asfortranarray(LARGE), LARGE > 7.0, LARGE[0] * np.ones((800, 1))]
)
def test_an_array_comes_back_as_it_lay_in_memory(tmp_path: Path, array: np.ndarray) -> None:
    write(tmp_path, {"large": array, "small": np.arange(3)})
    found = read(tmp_path)
    np.testing.assert_array_equal(found["large"], array)
    assert found["large"].flags.c_contiguous == array.flags.c_contiguous
    assert found["large"].dtype == array.dtype


def test_only_what_is_new_is_written_and_what_is_unused_goes(tmp_path: Path) -> None:
    write(tmp_path, [LARGE, LARGE + 1.0])
    before = files(tmp_path)
    write(tmp_path, [LARGE, LARGE + 2.0])
    after = files(tmp_path)
    kept = before.keys() & after.keys()
    assert (len(before), len(after), len(kept)) == (2, 2, 1)
    assert all(before[name] == after[name] for name in kept)  # the same file, not the same bytes anew
    np.testing.assert_array_equal(read(tmp_path)[1], LARGE + 2.0)


def test_a_small_document_needs_no_folder(tmp_path: Path) -> None:
    write(tmp_path, [1, 2.5])
    assert read(tmp_path) == [1, 2.5]
    assert not (tmp_path / "pieces").exists()


def test_a_missing_piece_is_told(tmp_path: Path) -> None:
    write(tmp_path, LARGE)
    for name in files(tmp_path):
        (tmp_path / "pieces" / name).unlink()
    with pytest.raises(FileError, match="no such file"):
        read(tmp_path)


def test_an_exchanged_piece_is_refused(tmp_path: Path) -> None:
    write(tmp_path, LARGE)
    (piece,) = files(tmp_path)
    write_tree(tmp_path / "pieces" / piece, LARGE + 1.0, kind="piece")
    with pytest.raises(FileError, match="exchanged"):
        read(tmp_path)


def test_a_document_with_pieces_needs_their_folder(tmp_path: Path) -> None:
    write(tmp_path, LARGE)
    with pytest.raises(FileError, match=r"\$piece"):
        read_tree(tmp_path / "document.kons", kind="test")
