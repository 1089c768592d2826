"""A folder that is damaged or not finished is an error that names the file and what to do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kons.errors import InputError, KonsError
from kons.report.folder import read_folder
from kons.report.history import read_history
from report import folders


@pytest.fixture
def folder(tmp_path):
    folders.regression(tmp_path / "run", rows=300)
    return tmp_path / "run"


def read(path):
    return read_history(read_folder(path))


def test_no_folder(tmp_path):
    with pytest.raises(
        InputError, match=r"nothing: there is no such folder; expected one written by `kons run"
    ):
        read(tmp_path / "nothing")


def test_not_a_run_folder(tmp_path):
    with pytest.raises(InputError, match=r"run\.json: is missing; is .* a folder written by"):
        read(tmp_path)


def test_a_run_that_is_not_finished(folder):
    (folder / "summary.json").unlink()
    with pytest.raises(InputError, match=r"summary\.json: is missing; run it again"):
        read(folder)
    (folder / "checkpoint.kons").touch()
    with pytest.raises(InputError, match=r"not finished: `kons resume "):
        read(folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "\x80", "[" * 100_000])
def test_a_damaged_document(folder, name, text):
    (folder / name).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=rf"{name}: (is damaged|holds a)"):
        read(folder)


@pytest.mark.parametrize("change", [{"format": 2}, {"kind": "walk"}])
def test_a_document_of_another_kind(folder, change):
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**document, **change}))
    with pytest.raises(InputError, match=r"run\.json: (is of format 2|kind is 'walk')"):
        read(folder)


@pytest.mark.parametrize("rows", [None, -1, "many", True, 2.5])
def test_rows_that_are_no_count(folder, rows):
    document = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**document, "rows": rows}))
    with pytest.raises(InputError, match=r"summary\.json: rows is"):
        read(folder)


def test_a_trace_with_a_gap(folder):
    (folder / "trace" / "000001.npz").unlink()
    with pytest.raises(InputError, match=r"000002\.npz: begins at row 150, expected row 60"):
        read(folder)


def test_a_trace_that_ends_early(folder):
    (folder / "trace" / "000002.npz").unlink()
    with pytest.raises(InputError, match=r"holds only 150 rows, and summary\.json says 300"):
        read(folder)


def test_a_trace_of_another_run(folder):
    document = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**document, "rows": 100}))
    with pytest.raises(InputError, match=r"holds at least 150 rows, and summary\.json says 100"):
        read(folder)


def test_no_trace(folder):
    for path in (folder / "trace").iterdir():
        path.unlink()
    (folder / "trace").rmdir()
    with pytest.raises(InputError, match="the folder of the trace is missing"):
        read(folder)


def test_a_leftover_of_a_write_is_not_read(folder):
    (folder / "trace" / ".000003.npz.tmp").write_text("half")
    assert read(folder).rows == 300


def test_every_cut_of_a_trace_file_is_an_error(folder):
    path = folder / "trace" / "000001.npz"
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 20):
        path.write_bytes(whole[:length])
        with pytest.raises(KonsError, match=r"000001\.npz"):
            read(folder)


def test_a_flipped_byte_is_an_error_or_does_not_matter(folder):
    path = folder / "trace" / "000001.npz"
    whole = path.read_bytes()
    noticed = 0
    for place in np.random.default_rng(0).integers(0, len(whole), size=60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1 :])
        try:
            read(folder)
        except KonsError as error:
            noticed += "000001.npz" in str(error)
    assert noticed > 40


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"first": 0}, "has no loss, target, prediction"),
        ({"loss": np.ones(3)}, "has no first, target, prediction"),
        (
            {"first": 0, "loss": np.ones(3), "target": np.ones(2), "prediction": np.ones(3)},
            "column target holds",
        ),
        (
            {"first": 0, "loss": np.ones((3, 1)), "target": np.ones(3), "prediction": np.ones(3)},
            "expected -1|not what",
        ),
        (
            {"first": 0, "loss": np.array(["a"]), "target": np.ones(1), "prediction": np.ones(1)},
            "column loss holds",
        ),
        ({"first": [0, 1], "loss": np.ones(1), "target": np.ones(1), "prediction": np.ones(1)}, "not what"),
    ],
)
def test_columns_that_are_no_trace(folder, arrays, message):
    np.savez(folder / "trace" / "000000.npz", **arrays)
    with pytest.raises(InputError, match=rf"000000\.npz: .*({message})"):
        read(folder)


def test_nobody_is_told_to_open_a_pickle(folder):
    (folder / "trace" / "000000.npz").write_text("junk")
    with pytest.raises(InputError, match=r"000000\.npz: is damaged .*no npz archive"):
        read(folder)


def test_a_pickle_is_not_opened(folder):
    np.savez(folder / "trace" / "000000.npz", first=0, loss=np.array([object()]))
    with pytest.raises(InputError, match=r"000000\.npz: is damaged"):
        read(folder)


# --- the history of a whole folder, against the arrays it was written from ---


def test_the_history_is_that_of_the_columns(tmp_path):
    columns = folders.regression(tmp_path, rows=5000, experts=["a", "b", "c"])
    found = read(tmp_path)
    assert (found.rows, found.window) == (5000, 1000)
    for name, column in (("learner", "loss"), ("linear", "baseline_linear")):
        rows, running = found.running[name]
        assert running[-1] == pytest.approx(columns[column][: int(rows[-1]) + 1].mean())
        rows, windowed = found.windowed[name]
        for row, value in zip(rows.astype(int), windowed, strict=True):
            assert value == pytest.approx(columns[column][row - 999 : row + 1].mean())
    late = np.arange(5000) >= 500
    top = np.flatnonzero(late)[np.argsort(-columns["novelty"][late])[:10]]
    assert [row["row"] for row in found.most_novel] == top.tolist()
    assert [row["target"] for row in found.most_novel] == columns["target"][top].tolist()
    assert found.worst[0]["row"] == 1250  # the row that is far out
    assert found.effective_dimension[1][-1] == pytest.approx(columns["leverage"].sum(), rel=1e-3)
    log_det = np.log1p(columns["weight"] * columns["inverse_form"]).sum()
    assert found.log_determinant[1][-1] == pytest.approx(log_det, rel=1e-3)
    assert found.size[1][-1] == columns["size"][-1]
    assert found.recent["prediction"].tolist() == columns["prediction"][-200:].tolist()
    assert found.shares.what == "weight"
    assert found.shares.parts.sum(axis=1) == pytest.approx(1.0)
    rows, leaders = found.leaders
    assert len(rows) <= 150
    for row, leader in zip(rows[:-1], leaders[:-1], strict=True):
        stretch = columns["expert"][int(row) - 16 : int(row) + 18]  # 34 rows each, this one in the middle
        assert leader == np.bincount(stretch).argmax()


@pytest.mark.parametrize("points", [1, 2])
def test_a_run_too_short_for_weights_over_time_shows_who_led(tmp_path, points):
    columns = folders.regression(tmp_path, rows=64 * points, experts=["a", "b"])
    found = read(tmp_path).shares
    assert found.what == "lead"
    assert len(found.row) == 64 * points
    assert found.parts[:, 1].mean() == pytest.approx(columns["expert"].mean())


def test_numbers_of_experts_that_cannot_be_are_left_out(tmp_path):
    columns = folders.regression(tmp_path, rows=300, experts=["a", "b"])
    del columns["shares"]
    columns["expert"] = np.full(300, 10**9)
    columns["expert"][:100] = -1
    for path in (tmp_path / "trace").iterdir():
        path.unlink()
    folders.write_trace(tmp_path, columns, [])
    assert read(tmp_path).shares is read(tmp_path).leaders is None


def test_experts_may_come_later(tmp_path):
    folders.regression(tmp_path, rows=301)
    columns = {name: np.ones(301) for name in ("loss", "target", "prediction")}
    notes = [
        ([0, 1], [[1.0], [3.0]]),
        ([150, 300, 999], [[1.0, 5.0], [np.nan, 2.0], [9.0, 9.0]]),  # row 999 is not of the run
    ]
    for path in (tmp_path / "trace").iterdir():
        path.unlink()
    for first, stop, (rows, shares) in ((0, 150, notes[0]), (150, 301, notes[1])):
        part = {name: values[first:stop] for name, values in columns.items()}
        np.savez(tmp_path / "trace" / f"{first:06d}.npz", first=first, share_rows=rows, shares=shares, **part)
    found = read(tmp_path).shares
    assert found.row.tolist() == [1.0, 151.0, 300.0]  # of stretches of 3 rows, the last of one
    assert found.parts.tolist() == [[2.0, 0.0], [1.0, 5.0], [0.0, 2.0]]


def test_leaders_stand_in_for_shares(tmp_path):
    columns = folders.regression(tmp_path, rows=300, experts=["a", "b"])
    del columns["shares"]
    folders.write_trace(tmp_path, columns, [])
    for path in ("000001.npz", "000002.npz"):
        (tmp_path / "trace" / path).unlink()
    found = read(tmp_path).shares
    assert found.what == "lead"
    assert found.parts[:, 1].mean() == pytest.approx(columns["expert"].mean())


def test_the_confusion_counts_every_row(tmp_path):
    columns = folders.classification(tmp_path, rows=1000, classes=["x", "y", "z"])
    counts = read(tmp_path).confusion
    assert counts.sum() == 1000
    for i in range(3):
        for j in range(3):
            assert counts[i, j] == np.sum((columns["target"] == i) & (columns["prediction"] == j))


def test_labels_that_cannot_be_are_in_no_count(tmp_path):
    columns = folders.classification(tmp_path, rows=300, classes=["x", "y"])
    columns["target"][[7, 8]] = columns["prediction"][[17, 18]] = -1, 2
    for path in (tmp_path / "trace").iterdir():
        path.unlink()
    folders.write_trace(tmp_path, columns, [])
    assert read(tmp_path).confusion.sum() == 296


@pytest.mark.parametrize("cuts", [[], [1], [7, 8, 500], [250, 251, 252, 900]])
def test_the_history_does_not_depend_on_how_the_trace_was_cut(tmp_path, cuts):
    columns = folders.regression(tmp_path, rows=1000)
    columns["loss"] = np.round(columns["loss"] / 50)  # many ties
    columns["loss"][::7] = np.nan
    for path in (tmp_path / "trace").iterdir():
        path.unlink()
    folders.write_trace(tmp_path, columns, cuts)
    found = read(tmp_path)
    worst = sorted((-loss, row) for row, loss in enumerate(columns["loss"]) if not np.isnan(loss))[:10]
    assert [(-row["loss"], row["row"]) for row in found.worst] == worst
    assert found.recent["target"].tolist() == columns["target"][-200:].tolist()
    assert found.recent["row"].tolist() == list(range(800, 1000))
    assert found.running["learner"][1][-1] == pytest.approx(np.nanmean(columns["loss"]))
