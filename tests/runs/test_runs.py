"""Runs in this process: what they write, when, and what becomes of it when something goes wrong."""

import errno
import io
import json
import os
import shutil
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.csv
import pytest
from processes import summary_of, whole_trace

import effort
from kons.cli import main
from kons.errors import ConfigurationError, FileError, InputError
from kons.files import load
from kons.recipes import RECIPES, for_task
from kons.report import write_report
from kons.runs import Run, Settings, Stopped, folder, pacing
from kons.runs.circumstances import blas_threads
from kons.streams import open_stream

ROWS = 1300
SMALL = {"max_atoms": 15, "warmup": 60}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def every_block(monkeypatch):
    """A checkpoint after every block."""
    monkeypatch.setattr(pacing, "EVERY", 0.0)
    monkeypatch.setattr(pacing, "SHARE", float("inf"))


def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(ROWS, 2)).round(6)
    return X, (10 + np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=ROWS)).round(6)


def text(rows=None):
    X, y = table()
    lines = [f"{a!r},{b!r},{c!r}" for a, b, c in np.column_stack([X, y])[:rows].tolist()]
    return "\n".join(["a,b,y", *lines]) + "\n"


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "rows.csv").write_text(text())
    return Settings("rows.csv", "y", learner="embedded", parameters=SMALL)


def cells(path):
    return {name: column.to_numpy() for name, column in zip(*_columns(path), strict=True)}


def _columns(path):
    found = pyarrow.csv.read_csv(path)
    return found.column_names, found.columns


def test_predictions_are_those_of_the_learner_alone(settings, tmp_path):
    summary = Run.start(settings, tmp_path / "out").go()
    X, y = table()
    learner = for_task("regression", "embedded", **SMALL)
    blocks = [slice(first, first + 512) for first in range(0, ROWS, 512)]
    traces = [learner.advance(X[block], y[block]) for block in blocks]
    expected = np.concatenate([trace.prediction for trace in traces])
    found = cells(tmp_path / "out" / "predictions.csv")
    named = ["line", "row", "target", "prediction", "lower", "upper", "loss", "scored", "novelty"]
    assert list(found) == named
    np.testing.assert_array_equal(found["line"], np.arange(2, ROWS + 2))
    np.testing.assert_array_equal(found["row"], np.arange(ROWS))
    np.testing.assert_array_equal(found["target"], y)
    np.testing.assert_array_equal(found["prediction"], expected)  # to the last digit
    np.testing.assert_array_equal(found["loss"], (expected - y) ** 2)
    assert summary["loss"] == pytest.approx(np.mean((expected - y)[1:] ** 2), rel=1e-12)
    means = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, ROWS)])
    assert summary["baselines"]["constant"] == pytest.approx(np.mean((means - y)[1:] ** 2), rel=1e-9)
    last = np.concatenate([[0.0], y[:-1]])
    assert summary["baselines"]["persistence"] == pytest.approx(np.mean((last - y)[1:] ** 2), rel=1e-9)
    assert summary["rows"] == ROWS
    assert summary["atoms"] == learner.size
    np.testing.assert_array_equal(
        load(tmp_path / "out" / "model.kons").predict(X[:50]), learner.predict(X[:50])
    )


def test_the_folder_holds_what_it_should(settings, tmp_path):
    summary = Run.start(settings, tmp_path / "out", command=["kons", "run"]).go()
    assert sorted(os.listdir("out")) == ["model.kons", "predictions.csv", "run.json", "summary.json", "trace"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    asked = json.loads((tmp_path / "out" / "run.json").read_text())
    assert asked["kind"] == "run"
    assert asked["command"] == ["kons", "run"]
    assert asked["target"] == "y"
    assert asked["features"] == ["a", "b"]
    assert Settings.from_dict(asked["settings"]) == settings
    trace = whole_trace(tmp_path / "out")
    assert len(trace["loss"]) == ROWS
    assert {"target", "prediction", "lower", "baseline_linear", "novelty", "size", "kept"} <= trace.keys()


def test_a_folder_that_is_not_empty_is_refused_unless_forced(settings, tmp_path):
    Run.start(settings, tmp_path / "out").go()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="is not empty"):
        Run.start(settings, tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="is a file"):
        Run.start(settings, tmp_path / "file")
    Run.start(settings, tmp_path / "out", force=True).go()
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("rows", ["", "a,b,y\n", "a,b,y\n1,2,3\n1,2,x\n", 'a,b,y\n1,2,"3\n'])
def test_an_error_before_the_first_block_leaves_nothing(settings, tmp_path, rows):
    Run.start(settings, tmp_path / "kept").go()
    before = summary_of(tmp_path / "kept")
    (tmp_path / "rows.csv").write_text(rows)
    for place in ("new", "kept"):
        with pytest.raises(InputError):
            Run.start(settings, tmp_path / place, force=True).go()
    assert not (tmp_path / "new").exists()
    assert summary_of(tmp_path / "kept") == before


def test_a_row_that_cannot_be_read_leaves_the_rows_before_it(settings, tmp_path):
    lines = text().splitlines(keepends=True)
    lines[1201] = "1,2,oops\n"
    (tmp_path / "rows.csv").write_text("".join(lines))
    with pytest.raises(InputError, match=r"line 1202, column 'y'.*The 1,024 rows before it are in .*out\.$"):
        Run.start(settings, tmp_path / "out").go()
    assert len(whole_trace(tmp_path / "out")["loss"]) == 1024
    assert len(cells(tmp_path / "out" / "predictions.csv")["row"]) == 1024
    with pytest.raises(InputError, match="line 1202"):
        Run.resume(tmp_path / "out").go()
    (tmp_path / "rows.csv").write_text(text())
    with pytest.raises(FileError, match=r"rows\.csv has changed since the run began"):
        Run.resume(tmp_path / "out")


def stopped_after(blocks):
    left = blocks

    def stop():
        nonlocal left
        left -= 1
        return left <= 0

    return stop


def test_stopped_and_resumed(settings, tmp_path, monkeypatch):
    Run.start(settings, tmp_path / "whole").go()
    with pytest.raises(Stopped, match=r"stopped after 512 rows. Continue with: kons resume .*out'?$"):
        Run.start(settings, tmp_path / "out").go(stop=stopped_after(1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # the source was named relative to where the run began
    summary = Run.resume(tmp_path / "out").go()
    assert summary["resumed"] == 1
    assert summary_of(tmp_path / "out") == summary_of(tmp_path / "whole")
    with pytest.raises(ConfigurationError, match="is finished"):
        Run.resume(tmp_path / "out")


EVERY_LEARNER = {
    f"{name} {task}": (name, task, {}) for name, recipe in RECIPES.items() for task in recipe.tasks
} | {
    "krls, a window": ("krls", "regression", {"window": 30}),
    "krls, a tracker": ("krls", "regression", {"forgetting": 0.99, "max_atoms": 10}),
    "bogd, smallest": ("bogd", "regression", {"when_full": "smallest", "max_points": 20}),
}


@pytest.mark.parametrize(
    "case",
    # of each way to keep what was learned
    effort.some(
        EVERY_LEARNER,
        *("adam regression", "sketched_ons classification", "fastfood regression", "skegd classification"),
        *("dual_sgd classification", "second_order_perceptron classification", "krls, a window"),
    ),
)
def test_every_learner_is_resumed_by_the_command_line(case, tmp_path, monkeypatch, capsys):
    name, task, given = EVERY_LEARNER[case]
    X, y = table()
    targets = y if task == "regression" else np.where(y > 10.5, "high", np.where(y > 9.5, "middle", "low"))
    rows = [f"{a!r},{b!r},{target}" for (a, b), target in zip(X.tolist(), targets, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *rows[:560]]) + "\n")
    monkeypatch.setitem(sys.modules, "jinja2", None)  # no page
    one = Settings("rows.csv", "y", learner=name, parameters=given)
    Run.start(one, tmp_path / "whole").go()
    stop = stopped_after(1 if task == "regression" else 3)  # blocks also end where a class is new
    with pytest.raises(Stopped, match="after 512 rows"):
        Run.start(one, tmp_path / "out").go(stop=stop)
    assert main(["resume", "out", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["task"] == task
    whole, resumed = (tmp_path / folder / "predictions.csv" for folder in ("whole", "out"))
    assert resumed.read_bytes() == whole.read_bytes()
    assert summary_of(tmp_path / "out") == summary_of(tmp_path / "whole")


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_run_that_goes_on_with_a_model_is_resumed_elsewhere(settings, tmp_path, monkeypatch, checkpoint):
    lagged = replace(settings, reading={"lag": ["target:1"]})
    Run.start(lagged, tmp_path / "first").go()
    more = Settings("rows.csv", model="first/model.kons")
    Run.start(more, tmp_path / "whole").go()
    with pytest.raises(Stopped):
        Run.start(more, tmp_path / "out").go(stop=stopped_after(1))
    if not checkpoint:
        (tmp_path / "out" / "checkpoint.kons").unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    Run.resume(tmp_path / "out").go()
    assert summary_of(tmp_path / "out") == summary_of(tmp_path / "whole")


def test_without_a_folder_a_stop_is_the_end(settings):
    run = Run.start(settings)
    summary = run.go(stop=stopped_after(2))
    assert run.was_stopped
    assert summary["stopped"]
    assert summary["rows"] == 1024


def test_an_interruption_while_it_reads(settings, tmp_path, monkeypatch):
    """Ctrl-C in the midst of reading: what was learned is saved, the reading does not matter."""
    run = Run.start(settings, tmp_path / "out")
    blocks = run.stream.blocks

    def interrupted(start=0, **options):
        for block in blocks(start, **options):
            if block.first == 512:
                assert run.waiting.now
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(run.stream, "blocks", interrupted)
    with pytest.raises(Stopped, match="after 512 rows"):
        run.go(stop=stopped_after(2))
    assert Run.resume(tmp_path / "out").go()["rows"] == ROWS


def test_a_pipe_is_finished_where_it_is_stopped(monkeypatch, tmp_path, caplog, every_block):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text().encode())))
    settings = Settings("-", "y", learner="embedded", parameters=SMALL)
    run = Run.start(settings, tmp_path / "out")
    assert "can be read only once: this run cannot be resumed" in caplog.text
    summary = run.go(stop=stopped_after(2))
    assert summary["rows"] == 1024
    assert len(whole_trace(tmp_path / "out")["loss"]) == 1024
    assert len(list((tmp_path / "out" / "trace").iterdir())) == 2  # not all of it in memory
    assert not (tmp_path / "out" / "checkpoint.kons").exists()
    (tmp_path / "out" / "summary.json").unlink()  # as if it had been killed
    with pytest.raises(ConfigurationError, match="standard input can be read only once"):
        Run.resume(tmp_path / "out")


@pytest.mark.parametrize("nth", range(2, 12))
def test_a_full_disk_at_any_write(settings, tmp_path, monkeypatch, every_block, nth):
    """No space left, found out when a file is settled: a clear error, and the run can go on later."""
    Run.start(settings, tmp_path / "whole").go()
    count = 0

    def full(_descriptor):
        nonlocal count
        count += 1
        if count >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match=r"cannot be written: No space left on.*kons resume .*out'?$"):
            Run.start(settings, tmp_path / "out").go()
    Run.resume(tmp_path / "out").go()
    predictions = (tmp_path / "out" / "predictions.csv").read_bytes()
    assert predictions == (tmp_path / "whole" / "predictions.csv").read_bytes()
    assert summary_of(tmp_path / "out") == summary_of(tmp_path / "whole")


def test_a_disk_that_is_full_from_the_start_leaves_no_folder(settings, tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left"):
        Run.start(settings, tmp_path / "out").go()
    assert not (tmp_path / "out").exists()


def test_a_folder_that_vanishes(settings, tmp_path, every_block):
    def vanish(now):
        if now.rows >= 1024:
            shutil.rmtree(tmp_path / "out")

    with pytest.raises(FileError, match=r"cannot be written.*Its folder is gone: start the run again\.$"):
        Run.start(settings, tmp_path / "out").go(vanish)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def unfinished(settings, tmp_path):
    with pytest.raises(Stopped):
        Run.start(settings, tmp_path / "out").go(stop=stopped_after(2))
    return tmp_path / "out"


def spoil(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("checkpoint.kons", lambda data: data.__delitem__(slice(2000, None)), "start it again"),
        ("checkpoint.kons", lambda data: data.__setitem__(len(data) // 2, data[len(data) // 2] ^ 1), "again"),
        ("checkpoint.kons", bytearray.clear, "start it again"),
        ("predictions.csv", lambda data: data.__delitem__(slice(100, None)), "is shorter than"),
        ("run.json", lambda data: data.__delitem__(slice(100, None)), "run.json is damaged"),
        ("run.json", lambda data: data.__setitem__(slice(None), b"[]"), "expected an object"),
    ],
)
def test_a_damaged_folder_is_refused(unfinished, name, change, words):
    spoil(unfinished / name, change)
    with pytest.raises(FileError, match=words):
        Run.resume(unfinished)


@pytest.mark.parametrize("threads", [0, "many"])
def test_threads_that_cannot_be_are_those_of_this_process(unfinished, threads):
    path = unfinished / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "threads": threads}))
    run = Run.resume(unfinished)
    run.go()
    assert run.threads == blas_threads()


def test_files_that_are_gone(unfinished, tmp_path):
    (unfinished / "predictions.csv").unlink()
    with pytest.raises(FileError, match="is shorter than"):
        Run.resume(unfinished)
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(InputError, match=r"rows\.csv"):
        Run.resume(unfinished)
    (unfinished / "run.json").unlink()
    with pytest.raises(FileError, match=r"holds no run\.json"):
        Run.resume(unfinished)
    with pytest.raises(FileError, match="there is no folder nowhere"):
        Run.resume(type(unfinished)("nowhere"))


def test_a_folder_has_one_writer(settings, tmp_path, every_block):
    out, refused = tmp_path / "out", []

    def next_descriptor():
        found = os.dup(0)
        os.close(found)
        return found

    def others_try(progress):
        if progress.rows > 512:  # there is a checkpoint by now
            free = next_descriptor()
            for begin in (lambda: Run.resume(out), lambda: Run.start(settings, out, force=True).go()):
                with pytest.raises(ConfigurationError, match=r"another kons is writing to .*out: wait"):
                    begin()
                refused.append(progress.rows)
            assert next_descriptor() == free  # nothing stays open

    Run.start(settings, tmp_path / "alone").go()
    Run.start(settings, out).go(others_try)
    assert len(refused) == 4
    assert summary_of(out) == summary_of(tmp_path / "alone")
    assert (out / "predictions.csv").read_bytes() == (tmp_path / "alone" / "predictions.csv").read_bytes()
    Run.start(settings, out, force=True).go()  # it was let go of


def test_a_folder_has_one_writer_on_windows(tmp_path, monkeypatch):
    """There a file is locked, by another function, and not among those of the run."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(folder, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(folder.tempfile, "tempdir", None)

    def locking(place, mode, length):
        assert (mode, length) == (2, 1)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(13, "Permission denied") from None

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    out = tmp_path / "out"
    first = folder.FolderWriter.create(out, {"run.json": {}}, force=False)
    with pytest.raises(ConfigurationError, match="another kons is writing to"):
        folder.FolderWriter(out).claim()
    first.close(finished=True)
    folder.FolderWriter(out).claim()
    assert [file.name for file in out.iterdir() if file.suffix == ".lock"] == []


def test_two_that_begin_at_once_do_not_remove_each_other(tmp_path, monkeypatch):
    out, other = tmp_path / "out", []
    make = type(out).mkdir

    def made_by_another(path, *args, **kwargs):
        make(path, *args, **kwargs)
        if path == out and not other:
            other.append(None)
            other[0] = folder.FolderWriter.create(out, {"run.json": {}}, force=False)

    monkeypatch.setattr(type(out), "mkdir", made_by_another)
    with pytest.raises(ConfigurationError, match="another kons is writing to"):
        folder.FolderWriter.create(out, {"run.json": {"late": True}}, force=False)
    assert json.loads((out / "run.json").read_text()) == {}
    other[0].close(finished=False)


def test_another_file_of_the_same_name_is_not_taken_for_the_source(unfinished, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rows.csv").write_text(text(3))
    monkeypatch.chdir(elsewhere)
    assert Run.resume(unfinished).go()["rows"] == ROWS


def test_a_source_that_moved_along_is_found_here(unfinished, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "rows.csv").rename(elsewhere / "rows.csv")
    monkeypatch.chdir(elsewhere)
    assert Run.resume(unfinished).go()["rows"] == ROWS


def test_a_changed_source_is_refused(unfinished, tmp_path):
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("1,2,3\n")
    with pytest.raises(FileError, match=r"has changed since the run began \(size was \d+ and is \d+"):
        Run.resume(unfinished)


def test_a_source_that_changed_in_its_middle_only_is_refused(settings, tmp_path, monkeypatch):
    source = tmp_path / "rows.csv"
    source.write_text(text() + "".join(f"{i % 10}.5,0.25,10.{i % 7}25\n" for i in range(12_000)))
    with pytest.raises(Stopped):
        Run.start(settings, tmp_path / "out").go(stop=stopped_after(2))
    data, status = source.read_bytes(), source.stat()
    middle = len(data) // 2
    assert len(data) > 2**17 + 1000  # longer than both ends, which were looked at before
    source.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(FileError, match="has changed since the run began, though not in size and time"):
        Run.resume(tmp_path / "out")
    source.write_bytes(data)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert Run.resume(tmp_path / "out").go()["rows"] == ROWS + 12_000


def test_other_versions_are_told(unfinished, monkeypatch, caplog):
    monkeypatch.setattr("kons.runs.run.versions", lambda: {"kons": "9.9"})
    Run.resume(unfinished).go()
    assert "versions differ" in caplog.text


def test_what_a_killed_process_left_is_swept(unfinished, settings, tmp_path):
    Run.start(settings, tmp_path / "whole").go()
    with (unfinished / "predictions.csv").open("ab") as file:
        file.write(b"half a line" * 100_000)
    for place in (".checkpoint.kons.0f.tmp", "trace/.000007.npz.0f.tmp", "trace/000007.npz"):
        (unfinished / place).touch()
    (unfinished / ".mine.tmp").touch()
    Run.resume(unfinished).go()
    assert [name for name in os.listdir(unfinished) if name.startswith(".")] == [".mine.tmp"]
    assert len(whole_trace(unfinished)["loss"]) == ROWS
    predictions = (tmp_path / "whole" / "predictions.csv").read_bytes()
    assert (unfinished / "predictions.csv").read_bytes() == predictions


def everything_in(place):
    """All files below a folder, by name, with what is in them."""
    return {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def others(tmp_path):
    """A folder of somebody else, with names as a run has them."""
    place = tmp_path / "others"
    (place / "trace").mkdir(parents=True)
    for name in ("predictions.csv", "summary.json", "report.html", "model.kons", "checkpoint.kons"):
        (place / name).write_text(f"mine: {name}")
    for name in ("mine.npz", "000000.npz", "000009.npz", ".000009.npz.0f.tmp"):
        (place / "trace" / name).write_text(f"mine: {name}")
    return place


LINKED = ["checkpoint.kons", "trace", "summary.json", "model.kons", "report.html", "trace/000009.npz"]
LINKS = [*((name, os.symlink) for name in (*LINKED, "predictions.csv")), ("predictions.csv", os.link)]


@pytest.mark.parametrize(("name", "link"), LINKS)
def test_nothing_is_written_or_removed_through_a_link(unfinished, settings, others, name, link):
    before = everything_in(others)
    if (unfinished / name).exists():
        (shutil.rmtree if name == "trace" else os.unlink)(unfinished / name)
    link(others / name, unfinished / name)
    for begin in (lambda: Run.resume(unfinished), lambda: Run.start(settings, unfinished, force=True)):
        with pytest.raises(FileError, match=rf"{name} is a link, .*: move it away"):
            begin()
    assert everything_in(others) == before


def test_a_finished_run_is_not_completed_through_a_link(settings, others):
    Run.start(settings, others.parent / "out").go()
    (others.parent / "out" / "predictions.csv").unlink()
    (others.parent / "out" / "predictions.csv").symlink_to(others / "predictions.csv")
    for complete in (folder.require_finished, write_report):
        with pytest.raises(FileError, match=r"predictions\.csv is a link"):
            complete(others.parent / "out")


def test_only_what_the_run_wrote_is_removed(unfinished, settings):
    for name in ("mine.npz", "7.npz", "notes.txt"):
        (unfinished / "trace" / name).write_text("mine")
    (unfinished / "frontier.png").write_text("mine")
    (unfinished / ".summary.json.0f.tmp").mkdir()
    for go in (Run.resume(unfinished).go, Run.start(settings, unfinished, force=True).go):
        go()
        assert {name: (unfinished / "trace" / name).read_text() for name in ("mine.npz", "7.npz")}
        assert (unfinished / "trace" / "notes.txt").exists()
        assert (unfinished / "frontier.png").exists()


def test_force_replaces_runs_only(settings, others, tmp_path):
    before = everything_in(others)
    for run in (None, "", "[]", "{}", '{"kind": "experiment"}'):
        if run is not None:
            (others / "run.json").write_text(run)
        with pytest.raises(
            ConfigurationError, match=r"others holds \S+ and no run: --force replaces runs only"
        ):
            Run.start(settings, others, force=True)
    (others / "run.json").unlink()
    assert everything_in(others) == before


def test_force_does_not_replace_its_own_source(settings, tmp_path):
    Run.start(settings, tmp_path / "out").go()
    before = everything_in(tmp_path / "out")
    again = Settings("out/predictions.csv", "prediction", learner="embedded", parameters=SMALL)
    with pytest.raises(ConfigurationError, match=r"predictions\.csv is a file of the run in .*out"):
        Run.start(again, tmp_path / "out", force=True)
    assert everything_in(tmp_path / "out") == before


def test_a_run_that_is_finished_meanwhile_is_not_cut_to_its_checkpoint(unfinished, monkeypatch):
    """Whoever resumes it second waits at the door, and reads what there is then."""
    honest = folder.FolderWriter.claim

    def finish_first(writer):
        monkeypatch.setattr(folder.FolderWriter, "claim", honest)
        Run.resume(unfinished).go()
        honest(writer)

    monkeypatch.setattr(folder.FolderWriter, "claim", finish_first)
    with pytest.raises(ConfigurationError, match="is finished"):
        Run.resume(unfinished)
    assert len(whole_trace(unfinished)["loss"]) == ROWS
    assert len(cells(unfinished / "predictions.csv")["row"]) == ROWS


def test_a_source_that_changes_meanwhile_is_told(settings, tmp_path):
    def grow(_now):
        with (tmp_path / "rows.csv").open("a") as file:
            file.write("0,0,10\n")

    summary = Run.start(settings).go(grow)
    assert any("changed while it was read" in note for note in summary["notes"])


def test_a_short_file_ends_in_a_model_that_has_learned(tmp_path):
    (tmp_path / "rows.csv").write_text(text(50))
    settings = Settings("rows.csv", "y", learner="embedded", parameters={"warmup": 500})
    Run.start(settings, tmp_path / "out").go()
    model = load(tmp_path / "out" / "model.kons")
    assert not model.warming_up
    assert len(set(model.predict(table()[0][:50]).tolist())) > 10


def test_the_summary_tells_of_rows_that_were_skipped(tmp_path):
    lines = text(100).splitlines()
    lines[7], lines[30] = "1,x,2", "1,y,2"
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    choices = {"reading": {"on_bad_row": "skip"}, "parameters": SMALL | {"warmup": 20}}
    Run.start(Settings("rows.csv", "y", learner="embedded", **choices), tmp_path / "out").go()
    summary = summary_of(tmp_path / "out")
    assert (summary["rows"], summary["rows_skipped"]) == (98, 2)
    (told,) = [note for note in summary["notes"] if note.startswith("skipped, bad row: ")]
    assert "rows.csv, line 8, column 'b': 'x'" in told


def test_labels_have_codes_in_the_trace(tmp_path):
    lines = [f"{i % 7},{'low' if i % 7 < 3 else 'high'}" for i in range(900)]
    (tmp_path / "rows.csv").write_text("a,kind\n" + "\n".join(lines) + "\n")
    for parameters in ({}, {"classes": ["other", "high", "low"]}):
        settings = Settings("rows.csv", "kind", learner="embedded", parameters={**SMALL, **parameters})
        summary = Run.start(settings, tmp_path / "out", force=True).go()
        found, trace = cells(tmp_path / "out" / "predictions.csv"), whole_trace(tmp_path / "out")
        names = np.array([*summary["classes"], None], dtype=object)
        np.testing.assert_array_equal(names[trace["target"]], found["target"])
        predicted = np.where(found["prediction"] == "", None, found["prediction"])
        np.testing.assert_array_equal(names[trace["prediction"]], predicted)
        assert list(found) == [
            *("line", "row", "target", "prediction", "loss", "scored", "probability", "novelty"),
            *(f"p_{label}" for label in load(tmp_path / "out" / "model.kons").classes),
        ]
        assert summary["loss"] == pytest.approx(np.mean(found["loss"][1:]))
        assert found["scored"].tolist() == [0, *[1] * 899]


def test_exact_learners_are_refused_what_memory_cannot_hold(monkeypatch, caplog):
    stream = open_stream(table())
    monkeypatch.setattr("kons.runs.settings.memory_of_machine", lambda: 4 * ROWS**2)
    with pytest.raises(ConfigurationError, match="use --learner embedded, or fewer rows"):
        Settings("a", learner="kons").require_memory(stream)
    Settings("a", learner="kons", rows=ROWS // 2).require_memory(stream)
    Settings("a", learner="embedded").require_memory(stream)
    monkeypatch.setattr("kons.runs.settings.memory_of_machine", lambda: None)
    Settings("a", learner="ridge", rows=20_000).require_memory(stream)
    assert caplog.text == ""
    monkeypatch.setattr(Settings, "rows_of", lambda *_: 20_000)
    Settings("a", learner="ridge").require_memory(stream)
    assert "about 1.6 GB at the end" in caplog.text


def test_the_names_of_the_folder_are_known():
    """--force removes what is listed; a new file must be listed too."""
    assert {folder.RUN, folder.SUMMARY, folder.MODEL, folder.CHECKPOINT} <= set(folder.OURS)
