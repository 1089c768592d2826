"""The ``kons`` command, mostly in this process; what it prints is for people, ``--json`` for programs."""

import json
import logging
import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from commands import blocks_of

import effort
import kons
from kons.cli import main, theory_demo
from kons.cli.screen import notices
from kons.errors import ConfigurationError, InputError, announce, notice

SMALL = ["demo", "--theory", "--rows", "300"]


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_the_demo_reports_kons_beside_the_baselines(capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # else it names them by paths of any length
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    for word in ("KONS, gradient", "KONS, hessian", "linear", "persistence", "constant", "VAW"):
        assert word in out
    for word in ("d_onl", "log det", "rows/s", "What to try next", "300 rows", "last 60"):
        assert word in out
    assert "Traceback" not in err
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) < 80  # so that nothing was wrapped
    assert blocks_of(out)[-1][0] == "What to try next"


def test_the_demo_runs_the_default_learner_along_an_untidy_table(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert main(["demo", "--rows", "600"]) == 0
    out, err = capsys.readouterr()
    for word in (
        "rentals.csv",
        "auto (this run)",
        "online linear",
        "gaps filled: ",
        "report.html",
        "--theory",
    ):
        assert word in out
    assert blocks_of(out)[-1][0].startswith("Look at it")
    assert "Traceback" not in err
    assert {path.name for path in (tmp_path / "kons-demo").iterdir()} == {"rentals.csv", "run"}
    summary = json.loads((tmp_path / "kons-demo" / "run" / "summary.json").read_text())
    assert summary["rows"] == 600
    assert summary["gaps"].keys() >= {"weather", "temperature"}
    assert summary["loss"] < 0.5 * summary["baselines"]["constant"]
    assert (tmp_path / "kons-demo" / "run" / "report.html").stat().st_size > 10_000
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["demo", "--rows", "100"]) == 0  # again, over the first, without what draws
    assert blocks_of(capsys.readouterr().out)[-1][0].startswith("Your own")
    assert main(["demo", "--theory", "--out", "x"]) == 2
    assert "--out is not for --theory" in capsys.readouterr().err


def test_json_is_one_object_with_everything(capsys):
    assert main([*SMALL, "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert err == ""
    assert result["rows"] == 300
    assert set(result["baselines"]) == {"constant", "linear", "persistence"}
    for learner in result["learners"].values():
        assert 0.0 < learner["loss"] < result["baselines"]["constant"]["loss"]
        assert 0.0 < learner["online_effective_dimension"] <= learner["log_determinant"]
        assert learner["rows_per_second"] > 0.0
    best = min(baseline["loss"] for baseline in result["baselines"].values())
    hessian = result["learners"]["hessian"]
    assert hessian["ratio_to_best_baseline"] == pytest.approx(hessian["loss"] / best)


def test_the_same_seed_gives_the_same_numbers(capsys):
    def numbers(seed):
        assert main([*SMALL, "--seed", seed, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        for learner in result["learners"].values():
            del learner["rows_per_second"]
        return result

    assert numbers("3") == numbers("3")
    assert numbers("3")["learners"] != numbers("4")["learners"]


def test_the_progress_bar_moves_on_standard_error_only(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*SMALL, "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    assert "KONS, gradient" in err
    assert "points" in err
    assert "rows/s" in err


def test_quiet_leaves_standard_error_empty(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main([*SMALL, "--quiet", "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["demo", "--rows", "many"], "--rows"),
        (["demo", "--rows", "0"], ">= 10"),
        (["demo", "--rows", "10.5"], 'expected a whole number, not "10.5"'),
        (["demo", "--seed", "1.5"], 'expected a whole number, not "1.5"'),
        (["demo", "--seed", "-1"], ">= 0"),
        (["demo", "--rowz", "3"], "--rowz"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(capsys, arguments, hint):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert hint in err
    assert err.startswith("kons: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError("a row is\nbad."), 1, "kons: a row is bad.\n"),
        (KeyboardInterrupt(), 130, "kons: stopped.\n"),
        (MemoryError(), 1, "out of memory"),
        (ConfigurationError("two parts do not fit."), 2, "kons: two parts do not fit.\n"),
        (OSError(28, "No space left on device"), 1, "cannot read or write the output: No space left"),
        (PermissionError(13, "Permission denied", "there"), 1, "cannot read or write there: Permission"),
        (ZeroDivisionError("by zero"), 1, "unexpected ZeroDivisionError: by zero"),
    ],
)
def test_a_failed_run_is_one_line_and_never_a_traceback(capsys, monkeypatch, error, code, words):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(theory_demo, "run", fail)
    assert main(SMALL) == code
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@pytest.mark.parametrize(
    "arguments", effort.some(["--help", "demo --theory --rows 20 --json --quiet"], "--help")
)
def test_an_output_that_is_full_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kons.cli", *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "kons: cannot read or write the output: No space left on device.\n"


def test_help_and_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == kons.__version__
    assert main(["--help"]) == 0
    assert "demo" in capsys.readouterr().out
    assert main([]) == 0
    assert "Usage: kons" in capsys.readouterr().out
    assert main(["demo", "--help"]) == 0
    assert "--rows" in capsys.readouterr().out


def test_notices_are_shown_once_and_the_logger_is_left_as_it_was(capsys):
    logger = logging.getLogger("kons")
    before = logger.level, logger.propagate, list(logger.handlers)
    with notices(quiet=False):
        announce("a pause [not markup]")
        notice("test_cli", "a choice")
    err = capsys.readouterr().err
    assert err == "a pause [not markup]\na choice\n"
    with notices(quiet=True), warnings.catch_warnings():
        announce("a pause")
    assert capsys.readouterr().err == ""
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_help_does_not_wait_for_numba_or_numpy():
    code = (
        "import sys; from kons.cli import main; code = main(['--help']); "
        "sys.exit(code or [m for m in ('numba', 'numpy', 'scipy') if m in sys.modules] or 0)"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "demo" in done.stdout


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_it_prints_the_line_that_installs_it(missing):
    absent = f"import sys; sys.modules[{missing!r}] = None"
    code = f"{absent}; from kons.cli import main; sys.exit(main(['learners']))"
    done = python(code)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "pip install 'kons[cli]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_module_runs_like_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "kons.cli", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == kons.__version__


def test_what_to_try_next_can_be_typed_as_it_stands(monkeypatch, tmp_path):
    """`make demo` leaves the program in .venv, off the path: the lines must name it where it is."""
    from kons.cli.theory_demo import as_typed

    bin_folder = tmp_path / "in here" / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    for name in ("python", "kons"):
        (bin_folder / name).touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(bin_folder / "python"))
    monkeypatch.chdir(tmp_path / "in here")
    monkeypatch.setenv("PATH", "")
    assert as_typed("kons") == os.path.join(".venv", "bin", "kons")
    monkeypatch.setenv("PATH", str(bin_folder))
    assert as_typed("kons") == "kons"
    monkeypatch.setenv("PATH", "")
    (tmp_path / "elsewhere").mkdir()
    for folder in (tmp_path, tmp_path / "elsewhere"):
        monkeypatch.chdir(folder)
        [word] = shlex.split(as_typed("kons"))
        assert os.path.samefile(word, bin_folder / "kons")
