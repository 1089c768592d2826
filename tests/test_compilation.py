"""Compiled loops: with nowhere to keep machine code, and the pause announced once per installation."""

import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from numba.core import event

import kons.compilation
from kons.evaluation import Prequential
from kons.learners import Trace
from kons.streams import open_stream

ANNOUNCEMENT = "kons: compiling its numerical loops"

# Numba's own test for "no place for a cache": no locator finds one.
WITHOUT_A_CACHE = """
import numba.core.caching as caching

for implementation in (caching.CacheImpl, *caching.CacheImpl.__subclasses__()):
    implementation._locator_classes = []

import numba
try:
    numba.njit(cache=True)(lambda x: x)
except RuntimeError as error:
    assert "no locator available" in str(error), error
else:
    raise AssertionError("this was to be a process without a cache")

"""

A_LOOP = """
from kons.core.leverage import leverage

print(leverage(3.0))
"""

A_LEARNER = """
import numpy as np
from kons import KONS, Linear, Squared

learner = KONS(Linear(), Squared())
learner.advance(np.eye(2), [1.0, -1.0])
# One step on each axis: -g/(1 + w) with g = -2, w = 4/8, clipped at the bound 1.
assert learner.predict(np.eye(2)).round(3).tolist() == [1.0, -1.0]
"""

LOGGED = """
import logging
import sys

logging.getLogger("kons").addHandler(logging.StreamHandler(sys.stdout))
logging.getLogger("kons").propagate = False
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("program", [A_LOOP, pytest.param(A_LEARNER, marks=pytest.mark.soak)])
def test_without_a_place_for_a_cache_it_still_works(program):
    done = run(WITHOUT_A_CACHE + program, NUMBA_OPT="0")  # unoptimized loops compile in half the time
    assert done.stderr.count(ANNOUNCEMENT) == 1
    assert done.stdout == ("0.75\n" if program is A_LOOP else "")


def test_the_pause_is_announced_once_and_never_again(tmp_path):
    first = run(A_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stderr.count(ANNOUNCEMENT) == 1
    assert first.stderr.strip().count("\n") == 0
    assert any(tmp_path.rglob("*.nbi"))
    second = run(A_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert second.stderr == ""
    assert second.stdout == first.stdout == "0.75\n"


def test_the_announcement_can_be_configured_away(tmp_path):
    done = run(LOGGED + A_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stderr == ""
    assert done.stdout.startswith(ANNOUNCEMENT)


def test_compiling_is_never_counted_as_learning(monkeypatch):
    """A learner that compiles for an hour in its first block, and learns for a second in each."""
    now = [0.0]
    monkeypatch.setattr(kons.compilation.time, "perf_counter", lambda: now[0])
    function = types.SimpleNamespace(py_func=lambda: None)

    class Learner:
        rows_seen = 0

        def advance(self, X, y):
            if not self.rows_seen:
                with event.trigger_event("numba:compile", {"dispatcher": function}):
                    now[0] += 3000.0
                    with event.trigger_event("numba:compile", {"dispatcher": function}):  # what it calls
                        now[0] += 600.0
            now[0] += 1.0
            self.rows_seen += len(X)
            nothing = np.zeros(len(X), dtype=np.int64)
            return Trace(kept=nothing > 0, size=nothing, prediction=np.zeros(len(X)))

    X = np.arange(40.0)[:, None]
    engine = Prequential(Learner(), "regression")
    for block in open_stream((X, X[:, 0]), block_size=10, quiet=True):
        engine.advance(block)
    assert engine.result().microseconds_per_row == pytest.approx(1e6 * 4 / 40)


def test_each_thread_has_its_own_clock(monkeypatch):
    """While another thread compiles, a clock that is read here goes on as it did."""
    now = [5.0]
    monkeypatch.setattr(kons.compilation.time, "perf_counter", lambda: now[0])
    function = types.SimpleNamespace(py_func=lambda: None)
    begun, ended = threading.Event(), threading.Event()
    elsewhere = []

    def compile_something():
        before = kons.compilation.wall_clock()
        with event.trigger_event("numba:compile", {"dispatcher": function}):
            begun.set()
            assert ended.wait(60.0)
        elsewhere.append(kons.compilation.wall_clock() - before)

    other = threading.Thread(target=compile_something)
    before = kons.compilation.wall_clock()
    other.start()
    try:
        assert begun.wait(60.0)
        now[0] += 100.0
        assert kons.compilation.wall_clock() - before == 100.0
    finally:
        ended.set()
        other.join()
    assert kons.compilation.wall_clock() - before == 100.0
    assert elsewhere == [0.0]
