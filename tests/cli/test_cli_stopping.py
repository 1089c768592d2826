"""Ctrl-C: once to stop at the end of a block, twice to stop at once."""

import json
import os
import shlex
import signal
import threading

import pytest

from kons.cli import main
from kons.cli.stopping import SIGNALS, Stopping
from kons.runs import Run

EMBEDDED = ["--learner", "embedded", "--set", "max_atoms=20"]


@pytest.fixture(autouse=True)
def signals_are_heard():
    """A runner in the background, and nohup, start the tests with some signals ignored."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in before:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_first_is_noted_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with Stopping() as stopping:
        stopping.is_idle = lambda: False
        assert not stopping.asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert stopping.asked()
        assert stopping.exit_code == 130
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


class Idle:
    """A pipe in which nothing comes after a few rows, but a signal."""

    def __init__(self, number, *drops):
        self.buffer = self
        self._number, self._drops = number, iter(drops)

    def read1(self, size=-1):
        for drop in self._drops:
            return drop
        os.kill(os.getpid(), self._number)
        return b""  # as if the source had ended then

    read = read1


ROWS = b"".join(b"%d,%d\n" % (i, i % 7) for i in range(1500))


@pytest.mark.parametrize("command", ["run", "compare"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "drops", [(), (b"a,y\n",), (b"a,y\n", ROWS[:90])], ids=["silent", "header", "few rows"]
)
def test_a_source_that_is_opened_is_left_at_once(monkeypatch, capsys, command, number, code, drops):
    monkeypatch.setattr("sys.stdin", Idle(number, *drops))
    assert main([command, "-", "--target", "y", "--out", "out"]) == code
    assert capsys.readouterr().err.endswith("kons: stopped.\n")
    assert not os.path.exists("out")


@pytest.mark.parametrize(
    ("command", "rows"),
    [(["run", *EMBEDDED], 1500), (["compare", "--learners", "embedded,sketched"], 1024)],
    ids=["row by row", "whole blocks"],
)
def test_a_pipe_that_is_idle_later_ends_with_what_there_is(monkeypatch, capsys, command, rows):
    monkeypatch.setattr("sys.stdin", Idle(signal.SIGTERM, b"a,y\n", ROWS))
    assert main([*command, "-", "--target", "y", "--json", "--quiet"]) == 143
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == rows
    assert found["stopped"]


def test_one_that_waits_is_interrupted_at_once():
    with Stopping() as stopping:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.asked()
        assert stopping.exit_code == 143


def test_what_is_ignored_stays_ignored():
    """nohup, and shells without job control, ignore some signals for their children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Stopping() as stopping:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stopping.asked()
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_elsewhere_than_in_the_main_thread_it_does_nothing():
    found = []

    def enter():
        with Stopping() as stopping:
            found.append(stopping.asked())

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [False]


@pytest.fixture
def stopped_early(monkeypatch):
    """Ctrl-C, so many times, when the first block has been learned."""

    def after(times):
        honest = Run.go

        def go(run, progress=None, stop=None):
            def interrupt(shown):
                for _ in range(times if shown.rows == 512 else 0):
                    os.kill(os.getpid(), signal.SIGINT)
                if progress is not None:
                    progress(shown)

            return honest(run, interrupt, stop)

        monkeypatch.setattr(Run, "go", go)

    return after


RUN = ["run", "houses.csv", "--target", "price", "--drop", "dear", *EMBEDDED, "--quiet"]


def test_a_run_without_a_folder_shows_what_it_has(file, stopped_early, capsys):
    stopped_early(1)
    assert main([*RUN, "--json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 512
    assert found["stopped"]
    assert main(RUN) == 130
    assert "stopped before the end" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("folder", ["out", "Ada's first run"])
def test_a_run_with_a_folder_can_go_on(folder, file, stopped_early, capsys):
    stopped_early(1)
    assert main([*RUN, "--out", folder]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    said, _, command = err.partition("Continue with: ")
    assert said == "kons: stopped after 512 rows. "
    assert shlex.split(command) == ["kons", "resume", folder]  # as a shell would take it
    assert main(["resume", folder, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 700
    assert os.path.getsize(os.path.join(folder, "report.html")) > 10_000


def test_twice_is_at_once(file, no_report, stopped_early, capsys):
    stopped_early(2)
    assert main([*RUN, "--out", "out"]) == 130
    assert capsys.readouterr().err == "kons: stopped at once. Continue with: kons resume out\n"
    assert main([*RUN, "--out", "out2", "--rows", "100"]) == 0
    stopped_early(2)
    assert main(RUN) == 130
    assert "kons: stopped.\n" in capsys.readouterr().err


def test_a_comparison_shows_what_it_has(file, monkeypatch, capsys):
    monkeypatch.setattr(Stopping, "asked", lambda _: True)
    arguments = ["compare", *RUN[1:6], "--learners", "embedded,sketched", "--quiet"]
    assert main([*arguments, "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["rows"] == 512
