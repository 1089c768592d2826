"""Compiled loops: one signature each, compiled in one go; with nowhere to keep them; the pause announced."""

import ast
import copy
import gc
import os
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

import effort
import kons.compilation
from contracts.learners import LEARNERS, stream
from kons import KORS, AutoKONS, EmbeddedKONS, Gaussian, Matern, Squared
from kons.compilation import compile_all
from kons.core.entry import condition, independent
from kons.evaluation import KernelGradientDescent, Prequential
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

# The whole library takes half a minute to compile: a small one stands in for it, or even one loop.
TWO_MODULES = """
import kons.compilation

kons.compilation.MODULES = ("kons.core.leverage", "kons.losses.builtin")
"""
ONE_MODULE = """
import kons.compilation

kons.compilation.MODULES = ("kons.core.leverage",)
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
    first = run(TWO_MODULES + A_LOOP, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_OPT="1")
    assert first.stderr.count(ANNOUNCEMENT) == 1
    assert first.stderr.strip().count("\n") == 0  # it tells no more where nobody looks at a terminal
    assert any(tmp_path.rglob("builtin.slope_of*.nbi"))  # which nobody had called
    second = run(TWO_MODULES + A_LOOP, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_OPT="1")
    assert second.stderr == ""
    assert second.stdout == first.stdout == "0.75\n"


def test_the_announcement_can_be_configured_away(tmp_path):
    done = run(ONE_MODULE + LOGGED + A_LOOP, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_OPT="1")
    assert done.stderr == ""
    assert done.stdout.startswith(ANNOUNCEMENT)


def test_a_terminal_is_told_how_far_it_is(tmp_path):
    seen = "import sys; sys.stderr.isatty = lambda: True\n"
    done = run(seen + TWO_MODULES + A_LOOP, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_OPT="1")
    assert len(re.findall(r": \d of \d \.\.\.\n", done.stderr)) > 3


def test_the_modules_with_loops_are_all_known():
    source = Path(kons.__file__).parent
    with_loops = {
        ".".join(("kons", *path.relative_to(source).with_suffix("").parts))
        for path in source.rglob("*.py")
        if re.search(r"^@compiled", path.read_text("utf-8"), re.MULTILINE)
    }
    assert set(kons.compilation.MODULES) == with_loops


def test_a_call_with_other_types_says_what_is_wrong():
    with pytest.raises(TypeError, match=r"kons\.core\.entry\.condition was given .*Fortran order"):
        condition(np.eye(3, order="F")[:2], 0, 1.0)


def test_what_only_loops_call_says_so():
    with pytest.raises(TypeError, match=r"kons\.core\.entry\.independent was called from Python"):
        independent(1.0, 1.0, 0.0, 0.1, 0.1)


def test_collections_go_on_after_compiling():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            compile_all()
            assert gc.isenabled() == enabled
        finally:
            gc.enable()


class Compilations(event.Listener):
    def __init__(self):
        self.functions = []

    def on_start(self, event):
        self.functions.append(event.data["dispatcher"].py_func)

    def on_end(self, event):
        pass


def inputs(tmp_path, X):
    """The same rows in every memory that people hand in."""
    stored = tmp_path / "X.npy"
    np.save(stored, X)
    read_only, gaps = X.copy(), np.repeat(X, 2, axis=0)[::2]
    read_only.flags.writeable = False
    mapped = np.load(stored, mmap_mode="r")
    return X, np.asfortranarray(X), gaps, read_only, mapped


class Turned(Gaussian):
    """A kernel of one's own whose matrices come in Fortran order."""

    def evaluate(self, X, Z):
        return np.asfortranarray(super().evaluate(X, Z))


def learn(learner, X, y):
    learner.advance(X[:-9], y[:-9])
    for x, target in zip(X[-9:], y[-9:], strict=True):
        learner.predict_one(x)
        learner.learn_one(x, target)
    learner.predict(X)


def learn_everything(X, y):
    labels = np.where(y > 0, "yes", "no").astype(object)
    for make in LEARNERS.values():
        learn(make(), X, y)
    learn(EmbeddedKONS(Turned(), Squared(), max_atoms=20), X, y)
    KORS(Gaussian(), seed=1).advance(X)
    KernelGradientDescent(Turned(), Squared()).advance(X, y)
    Matern().gram(np.hstack([X] * 30))
    for task, targets in (("regression", y), ("classification", labels)):
        for delay in (0, 2):
            learn(AutoKONS(task, max_atoms=20, delay=delay), X, targets)
        Prequential(AutoKONS(task, max_atoms=20), task).advance((X, targets))


def test_nothing_is_compiled_for_another_learner_task_delay_or_memory(tmp_path):
    loops = compile_all()
    once = {loop: loop.signatures for loop in loops}
    assert all(len(signatures) == 1 for signatures in once.values())
    listener = Compilations()
    X, y = stream(150)
    with event.install_listener("numba:compile", listener):
        for number, points in enumerate(inputs(tmp_path, X)):
            rows = effort.amount(90, 150) if number else 150  # past what happens at 64 rows, or at 128
            learn_everything(points[:rows], y[:rows])
    assert not listener.functions
    assert {loop: loop.signatures for loop in compile_all()} == once


@pytest.mark.soak
def test_the_first_hour_compiles_in_its_first_minute(tmp_path):
    """In a new installation: whatever is compiled is compiled at the first call."""
    program = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
from pathlib import Path
import test_compilation as tests
from numba.core import event
from kons.core.leverage import leverage

print(leverage(3.0))
listener = tests.Compilations()
X, y = tests.stream(150)
with event.install_listener("numba:compile", listener):
    for points in tests.inputs(Path({str(tmp_path)!r}), X):
        tests.learn_everything(points, y)
assert not listener.functions, listener.functions
"""
    done = run(program, NUMBA_CACHE_DIR=str(tmp_path / "cache"), NUMBA_OPT="1")
    assert done.stderr.count(ANNOUNCEMENT) == 1


def test_compiling_is_never_counted_as_learning(monkeypatch):
    """A learner that compiles for an hour in its first block, and learns for a second in each."""
    now = [0.0]
    monkeypatch.setattr(kons.compilation.time, "process_time", lambda: now[0])
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


def test_a_clock_stands_still_while_a_loop_is_read_from_the_disk(monkeypatch):
    """What the first row takes is not that of a disk, either: so nobody has to learn rows beforehand."""
    now = [5.0]
    monkeypatch.setattr(kons.compilation.time, "perf_counter", lambda: now[0])

    class Slow(kons.compilation.Loop):
        signatures = ()

        def compile(self, types):
            now[0] += 100.0

        def disable_compile(self):
            pass

    def nothing() -> int:
        return 0

    before = kons.compilation.wall_clock()
    Slow(nothing, targetoptions={"nopython": True}).load()
    assert kons.compilation.wall_clock() == before


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


def test_a_loop_that_sums_writes_no_array():
    """Else the order of the sum depends on where in memory arrays happen to lie: bits differ between runs."""
    looked_at = 0
    for file in Path(kons.compilation.__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)) if "@compiled_sums" in text else ():
            if not isinstance(function, ast.FunctionDef) or "compiled_sums" not in [
                getattr(decorator, "id", "") for decorator in function.decorator_list
            ]:
                continue
            looked_at += 1
            for loop in (node for node in ast.walk(function) if isinstance(node, ast.For)):
                inside = [node for statement in loop.body for node in ast.walk(statement)]
                if any(isinstance(node, (ast.For, ast.While)) for node in inside):
                    continue  # only innermost loops are vectorized
                writes = [n for n in inside if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
                sums = [n for n in inside if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
                assert not (writes and sums), f"{file.name}, {function.name}, line {loop.lineno}"
    assert looked_at > 10


def test_predictions_do_not_depend_on_where_arrays_lie():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 2))
    model = AutoKONS(max_atoms=20, experts=6)
    for x in X[:22]:
        model.learn_one(x, 1000.0 + x[0])
    said, room = set(), []
    for _ in range(300):
        room = [*room[-20:], np.zeros(int(rng.integers(1, 60)))]
        said.add(copy.deepcopy(model).predict_one(X[30]))
    assert len(said) == 1
