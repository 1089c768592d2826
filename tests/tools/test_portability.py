"""The matrix of circumstances: each reaches a child process, and none passes without being there."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and users are those of Unix")


@pytest.fixture
def circumstances(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("tools.circumstances")


@pytest.fixture
def portability(circumstances):
    return importlib.import_module("tools.portability")


def printed(circumstances, name, code, where=ROOT):
    """What a child says under that circumstance, without importing anything heavy."""
    child = circumstances.start(
        circumstances.CIRCUMSTANCES[name], where, ["-S", "-c", code], stdout=subprocess.PIPE
    )
    return child.communicate()[0]


def test_the_environment_reaches_a_child_and_nothing_of_other_rows(circumstances, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Barcelona")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    for name in ("Haswell", "generic", "one-thread", "SIGINT-ignored"):
        found = json.loads(printed(circumstances, name, code))
        wanted = circumstances.CIRCUMSTANCES[name].environment
        assert wanted.items() <= found.items()
        assert not circumstances.VARIABLES & found.keys() - wanted.keys()
        assert found["PYTHONPATH"].startswith(str(ROOT / "src"))


@pytest.mark.parametrize("outside", [signal.SIG_IGN, signal.default_int_handler], ids=["ignored", "heard"])
def test_an_ignored_sigint_is_ignored_and_any_other_heard(circumstances, outside):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive', end='')"
    hushed = "import os; os.close(2)\n" + code  # its traceback is nobody's business
    before = signal.signal(signal.SIGINT, outside)
    try:
        assert printed(circumstances, "SIGINT-ignored", code) == "alive"
        assert printed(circumstances, "Haswell", hushed) == ""
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_copy_belongs_to_whoever_runs_there(circumstances, monkeypatch, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / ".venv").mkdir()
    monkeypatch.setattr(circumstances, "ROOT", tmp_path)
    code = "import os; print(os.geteuid(), os.access('src', os.W_OK), os.getcwd(), sep='|', end='')"
    rows = {"not-root": "kons"} if os.geteuid() != 0 or shutil.which("setpriv") else {}
    if sys.getfilesystemencoding() == "utf-8":
        rows["odd-folder"] = "kons à côté"
    for name, folder in rows.items():
        with circumstances.place(circumstances.CIRCUMSTANCES[name]) as where:
            user, writable, found = printed(circumstances, name, code, where).split("|")
            assert sorted(os.listdir(where)) == ["build", "src"]
        assert writable == "True"
        assert Path(found).name == folder
        assert not where.exists()
        assert name != "not-root" or user != "0"


def test_what_is_not_there_is_not_available(circumstances):
    rows, why_not = circumstances.CIRCUMSTANCES, circumstances.why_not
    plainly = {"kernels": "SkylakeX", "threads": 2, "loops": "skylake"}
    for name, found in (
        ("Haswell", {"kernels": "SkylakeX"}),  # unknown to OpenBLAS: it takes what the processor has
        ("Zen", {"kernels": "Haswell"}),  # the same as another row
        ("Nehalem", {"kernels": "unknown"}),
        ("generic", {"loops": "skylake"}),
        ("two-threads", {"threads": 1}),
        ("SkylakeX", {"ended": "Python ended with code -4."}),
    ):
        assert why_not(rows[name], {**plainly, **found}, plainly), name
    for name, found in (
        ("Haswell", {"kernels": "Haswell"}),
        ("Prescott", {"kernels": "Katmai"}),  # another name, and kernels of their own
        ("generic", {"loops": "generic"}),
        ("two-threads", {}),
        ("SkylakeX", {}),
    ):
        assert why_not(rows[name], {**plainly, **found}, plainly) == "", name


SAID = """
.F.s                                                                     [100%]
FAILED tests/core/test_factor.py::test_a[1-x] - AssertionError: 3 passed in 1.0s
1 failed, 2 passed, 1 skipped in 1.25s (0:00:01)
"""


def test_the_table_names_what_failed_and_what_was_not_run(portability, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(portability, "LOGS", tmp_path)
    monkeypatch.setattr(portability, "facts", lambda *_: {"kernels": "Haswell", "threads": 1})
    code = f"import sys; print({SAID!r}); sys.exit(1)"
    asked = ["--only", "Zen", "--only", "one-thread", "--", "-S", "-c", code]
    assert portability.main(asked) == 1
    table = capsys.readouterr().out.partition("\n\n")[2].splitlines()
    assert table[0].split() == ["circumstance", "scope", "passed", "failed", "skipped", "minutes"]
    assert table[1].split(maxsplit=2)[2] == "not available here: kernels asked for: Zen, found: Haswell"
    assert table[2].split() == ["one-thread", "numerical", "2", "1", "1", "0.0"]
    assert table[3:] == ["one-thread: tests/core/test_factor.py::test_a[1-x]"]
    assert (tmp_path / "one-thread.txt").read_text() == SAID + "\n"


def test_tests_that_do_not_come_to_an_end_have_failed(portability, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(portability, "LOGS", tmp_path)
    monkeypatch.setattr(portability, "facts", lambda *_: {"threads": 1})
    assert portability.main(["--only", "one-thread", "--", "-S", "-c", "import os; os.abort()"]) == 1
    assert f"one-thread: pytest ended with code -{int(signal.SIGABRT)}" in capsys.readouterr().out


def test_every_scope_is_there(circumstances):
    assert sum(not each.scope for each in circumstances.CIRCUMSTANCES.values()) == 2
    for circumstance in circumstances.CIRCUMSTANCES.values():
        assert set(circumstances.NUMERICAL) <= set(circumstance.scope or circumstances.NUMERICAL)
        assert all((ROOT / path).exists() for path in circumstance.scope)
