"""Runs killed by SIGKILL at any instant: `kons resume` ends with the bytes of a run that never was."""

import gzip
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from processes import fork_server, summary_of, whole_trace

import effort

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

ROWS = 2300


@pytest.fixture(scope="module")
def ask():
    with fork_server() as ask:
        yield ask


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same rows as numbers to predict, as labels, and packed."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 3)).round(5)
    colour = rng.choice(["red", "green", "blue"], ROWS)
    y = (50 + 4 * np.sin(2 * X[:, 0]) + X[:, 1] + (colour == "red") + 0.1 * rng.normal(size=ROWS)).round(4)
    kind = np.where(y > 52, "high", np.where(y < 48.5, "low", "middle"))
    lines = ["a,b,c,colour,y,kind"]
    lines += [",".join(map(str, row)) for row in zip(*X.T, colour, y, kind, strict=True)]
    text = "\n".join(lines) + "\n"
    (folder / "rows.csv").write_text(text)
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return folder


EMBEDDED = ["--learner", "embedded", "--set"]
NUMBERS = ["--target", "y", "--drop", "kind", *EMBEDDED, "max_atoms=25"]
LABELS = ["--target", "kind", "--drop", "y", *EMBEDDED, "max_atoms=15"]
SCENARIOS = {
    "regression": ["rows.csv", *NUMBERS],
    "packed": ["rows.csv.gz", *NUMBERS, "--rows", "2000"],
    "classification": ["rows.csv", *LABELS],
    "delay": ["rows.csv", *NUMBERS, "--delay", "7"],
    "lag": ["rows.csv", *NUMBERS, "--lag", "target:1,24", "--window", "300"],
    # Arrays large enough to be files of their own: some that stay, and some that change all the time.
    "exact": ["rows.csv", "--target", "y", "--drop", "kind", "--learner", "kons"],
    "many atoms": ["rows.csv", *NUMBERS[:-1], "max_atoms=390", "--set", "bandwidth=0.5"],
    "forecast": [
        "rows.csv",
        *NUMBERS[:4],
        "--horizon",
        "2",
        "--season",
        "12",
        "--effort",
        "low",
        "--rows",
        "800",
    ],
    "no target": ["rows.csv", "--no-target", "--set", "max_atoms=25", "--rows", "1100"],
    "labels late": ["rows.csv", *LABELS, "--delay", "3", "--rows", "1100"],
    "keyed": ["rows.csv", "--target", "y", "--drop", "kind", "--key", "colour", "--rows", "1100"],
    "default": [
        *("rows.csv", *NUMBERS[:4], "--set", "max_atoms=25", "--set", "experts=5", "--delay", "2"),
        *("--rows", str(effort.amount(1300, ROWS))),
    ],
}


@pytest.fixture(scope="module")
def uninterrupted(ask, sources, tmp_path_factory):
    """The folder of each scenario's undisturbed run."""
    folder = tmp_path_factory.mktemp("uninterrupted")

    def run(name):
        if not (folder / name).exists():
            file, *options = SCENARIOS[name]
            done = ask("run", sources / file, *options, "--out", folder / name, "--quiet", "--json")
            assert (done["code"], done["err"]) == (0, "")
        return folder / name

    return run


@pytest.fixture(scope="module")
def calls(ask, sources, uninterrupted, tmp_path_factory):
    """How many functions a run calls that saves after every block: the default many more than the others."""
    counted = {}

    def count(name):
        name = "default" if name == "default" else "regression"
        if name not in counted:
            uninterrupted(name)  # which compiles what is to be compiled
            file, *options = SCENARIOS[name]
            folder = tmp_path_factory.mktemp("counted")
            run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
            counted[name] = ask(*run, every_block=True, counted=True)["calls"]
        return counted[name]

    return count


def assert_same_run(folder, expected):
    assert (folder / "predictions.csv").read_bytes() == (expected / "predictions.csv").read_bytes()
    found, wanted = whole_trace(folder), whole_trace(expected)
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name])
    assert summary_of(folder) == summary_of(expected)
    assert (folder / "model.kons").read_bytes() == (expected / "model.kons").read_bytes()
    assert sorted(os.listdir(folder)) == sorted(os.listdir(expected))


# The default, which has the most to lose; another, packed, is killed and resumed at the end of this file.
SAMPLE = ("default",)
# A path is one block of these rows: it is killed while its files are written.
IN_BLOCKS = [name for name in SCENARIOS if name != "forecast"]
KILLS = effort.amount(3, 8)


@pytest.mark.parametrize("seed", range(effort.amount(1, 12)))
@pytest.mark.parametrize("name", effort.some(IN_BLOCKS, *SAMPLE))
def test_killed_at_any_call(ask, sources, uninterrupted, calls, tmp_path, name, seed):
    """From inside, before the n-th call of a function: in the midst of a checkpoint too, where most are."""
    expected = uninterrupted(name)
    file, *options = SCENARIOS[name]
    chance = random.Random(f"{name} {seed}")
    folder = tmp_path / "run"
    start = run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
    kills, saved, step = 0, set(), calls(name) // (3 * KILLS)
    for i in range(KILLS):  # later and later
        at = 1 + i * step + chance.randrange(step)
        done = ask(*run, every_block=True, kill_at_call=at)
        if done["code"] != -signal.SIGKILL:
            break
        # Killed before there was a run, the same command starts it.
        run = ["resume", folder, "--quiet", "--json"] if (folder / "run.json").exists() else start
        kills += 1
        saved.add(len(list(folder.glob("trace/*.npz"))))
    assert kills >= 2
    assert len(saved) >= 2  # it came forward in between
    done = ask(*run)
    assert (done["code"], done["err"]) == (0, "") or "is finished" in done["err"]
    assert_same_run(folder, expected)


@pytest.mark.parametrize(
    ("name", "part", "writes", "calls"),
    [
        ("regression", "checkpoint.kons", 4, 500),
        ("regression", ".npz", 5, 8),
        ("regression", "model.kons", 1, 500),
        ("many atoms", "checkpoint.kons", 4, 500),
        ("forecast", "checkpoint.kons", 2, 500),
        ("no target", "checkpoint.kons", 2, 500),
    ],
)
def test_killed_while_a_file_is_written(ask, sources, uninterrupted, tmp_path, name, part, writes, calls):
    expected = uninterrupted(name)
    file, *options = SCENARIOS[name]
    folder = tmp_path / "run"
    chance = random.Random(part)
    inside, kills = 0, effort.amount(2, 25)
    for _ in range(kills):
        shutil.rmtree(folder, ignore_errors=True)
        place = [part, chance.randrange(2, writes + 1) if writes > 1 else 1, chance.randrange(1, calls)]
        run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
        done = ask(*run, every_block=True, kill_in_write=place)
        assert done["code"] == -signal.SIGKILL
        left = [name for name in [*os.listdir(folder), *os.listdir(folder / "trace")] if name[0] == "."]
        assert all(part in name for name in left)
        inside += len(left)
        done = ask("resume", folder, "--quiet", "--json")
        assert (done["code"], done["err"]) == (0, "")
        assert_same_run(folder, expected)
    assert inside >= kills // 2


def test_killed_from_outside(ask, sources, uninterrupted, tmp_path):
    """By a process that looks at how long the predictions are."""
    expected = uninterrupted("regression")
    file, *options = SCENARIOS["regression"]
    folder = tmp_path / "run"
    chance = random.Random(3)
    length = (expected / "predictions.csv").stat().st_size
    run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
    for at in sorted(chance.sample(range(1, length), effort.amount(3, 40))):
        ask(*run, every_block=True, kill_at_bytes=[str(folder / "predictions.csv"), at])
        if (folder / "run.json").exists():
            run = ["resume", folder, "--quiet", "--json"]
    done = ask(*run)
    assert done["code"] == 0 or "is finished" in done["err"]
    assert_same_run(folder, expected)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_it_saves_and_says_how_to_continue(ask, sources, uninterrupted, tmp_path, number, code):
    expected = uninterrupted("regression")
    file, *options = SCENARIOS["regression"]
    folder = tmp_path / "run"
    done = ask(
        "run",
        sources / file,
        *options,
        "--out",
        folder,
        signal_at_first_block=number,
    )
    assert done["code"] == code
    assert done["out"] == ""
    *_, last = done["err"].splitlines()
    assert last.startswith("kons: stopped after ")
    assert last.endswith(f"Continue with: kons resume {shlex.quote(str(folder))}")
    assert (folder / "checkpoint.kons").exists()
    assert ask("resume", folder)["code"] == 0
    assert json.loads((folder / "summary.json").read_text())["resumed"] == 1
    assert_same_run(folder, expected)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_started_where_a_signal_is_ignored_it_runs_to_the_end(ask, sources, uninterrupted, tmp_path, number):
    """In the background of a script, or under nohup."""
    expected = uninterrupted("regression")
    file, *options = SCENARIOS["regression"]
    folder = tmp_path / "run"
    run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
    done = ask(*run, signal_at_first_block=number, ignored=[number])
    assert (done["code"], done["err"]) == (0, "")
    assert_same_run(folder, expected)


def test_a_full_disk_leaves_the_last_checkpoint(ask, sources, uninterrupted, tmp_path):
    expected = uninterrupted("regression")
    file, *options = SCENARIOS["regression"]
    folder = tmp_path / "run"
    length = (expected / "predictions.csv").stat().st_size
    run = ["run", sources / file, *options, "--out", folder, "--quiet", "--json"]
    done = ask(*run, every_block=True, longest_file=round(0.8 * length))
    assert (done["code"], done["out"]) == (1, "")
    assert done["err"].count("\n") == 1
    assert "predictions.csv cannot be written: File too large." in done["err"]
    assert f"Continue with: kons resume {shlex.quote(str(folder))}" in done["err"]
    saved = (folder / "checkpoint.kons").read_bytes()
    # Still full: the same error, and the same checkpoint.
    again = ask("resume", folder, "--quiet", "--json", every_block=True, longest_file=round(0.8 * length))
    assert again["code"] == 1
    assert (folder / "checkpoint.kons").read_bytes() == saved
    assert ask("resume", folder, "--quiet", "--json")["code"] == 0
    assert_same_run(folder, expected)


def test_the_command_itself_resumes_from_another_folder(ask, sources, uninterrupted, calls, tmp_path):
    expected = uninterrupted("packed")
    file, *options = SCENARIOS["packed"]
    folder = tmp_path / "run"
    how = {"every_block": True, "kill_at_call": round(0.7 * calls("regression"))}
    assert ask("run", sources / file, *options, "--out", folder, "--quiet", "--json", **how)["code"] < 0
    # As `python -m kons.cli` does it, without a report: its libraries take longer than all the rest.
    without = "import runpy, sys; sys.modules['jinja2'] = None; "
    command = without + "runpy.run_module('kons.cli', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", command, "resume", str(folder), "--json", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},  # the run's own number is taken instead
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == 2000
    assert_same_run(folder, expected)
