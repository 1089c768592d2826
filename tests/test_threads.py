"""Threads share a learner, one call after another; single rows and predictions touch no thread limits."""

import copy
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import effort
from contracts.learners import LEARNERS, assert_identical, stream
from kons import KONS, KORS, AutoKONS, Gaussian, Squared
from kons.core.threads import set_blas_threads, single_threaded_blas
from kons.dictionaries import SQUEAK, UniformSample, merge

X, Y = stream(200)


def blas():
    return [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]


def blas_threads():
    # Not info(): to find out what a limit is good for, it sets others.
    return [library.num_threads for library in blas()]


class TouchedError(Exception):
    pass


@pytest.fixture
def setting(monkeypatch):
    """Have this done instead of setting a library's number of threads."""

    def instead(does):
        numbers = {library.filepath: 2 for library in blas()}

        def set_number(library, number):
            does(library, number)
            numbers[library.filepath] = number

        for kind in {type(library) for library in blas()}:
            monkeypatch.setattr(kind, "set_num_threads", set_number)
            monkeypatch.setattr(kind, "get_num_threads", lambda library: numbers[library.filepath])

    return instead


@pytest.fixture
def forbidden(setting):
    def touch(*_):
        raise TouchedError

    setting(touch)


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_predict_and_the_row_loop_never_touch_thread_limits(make, forbidden):
    learner = make()
    for x, y in zip(X[:20], Y[:20], strict=True):
        learner.predict_one(x)
        learner.learn_one(x, y)
    if getattr(learner, "second_order", None) == "gradient":
        learner.learn_slope(X[20], 0.5)
    assert learner.predict(X).shape == (200,)


def test_advance_does(forbidden):
    with pytest.raises(TouchedError):
        KONS(Gaussian(), Squared()).advance(X, Y)


def test_advance_gives_the_threads_back():
    before = blas_threads()
    learner = KONS(Gaussian(), Squared())
    learner.advance(X, Y)
    assert blas_threads() == before
    with pytest.raises(ValueError, match="y has 1"):
        learner.advance(X, Y[:1])
    assert blas_threads() == before


INSIDE = """
import threading
from concurrent.futures import ThreadPoolExecutor
from threadpoolctl import ThreadpoolController
import numpy as np
import scipy.linalg
from kons import Gaussian, KONS, Squared
from kons.core.threads import single_threaded_blas
from kons.kernels import Kernel
from kons.runs.circumstances import using_threads

libraries = [each for each in ThreadpoolController().lib_controllers if each.user_api == "blas"]

def counts():
    return [library.num_threads for library in libraries]

before = counts()

def limited():
    with single_threaded_blas(active=False):
        assert counts() == before
    with single_threaded_blas():
        assert set(counts()) == {1}, counts()
        with single_threaded_blas():
            assert set(counts()) == {1}, counts()
        assert set(counts()) == {1}, counts()
    assert counts() == before, counts()
    with using_threads(1):
        assert set(counts()) == {1}, counts()
    assert counts() == before, counts()

class Asking(Kernel):
    found = []
    def evaluate(self, X, Z):
        self.found.append(counts())
        return Gaussian().evaluate(X, Z)
    def evaluate_diagonal(self, X):
        return np.ones(len(X))

def learned():
    KONS(Asking(), Squared()).advance(np.random.default_rng(0).normal(size=(20, 2)), np.ones(20))
    assert Asking.found and all(set(found) == {1} for found in Asking.found), Asking.found

for _ in range(2):
    limited()  # the main thread has set a number now, and would be the only one that may
    learned()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(limited).result()
        threads.submit(learned).result()

# The first one in sets the number, and the last one out, another one, gives it back.
inside, leave = [threading.Event() for _ in range(2)], threading.Event()
def first():
    with single_threaded_blas():
        inside[0].set()
        inside[1].wait()
def second():
    inside[0].wait()
    with single_threaded_blas():
        inside[1].set()
        leave.wait()
        assert set(counts()) == {1}, counts()
with ThreadPoolExecutor(2) as threads:
    both = threads.submit(first), threads.submit(second)
    both[0].result()
    leave.set()
    both[1].result()
assert counts() == before, counts()
"""


def test_one_thread_inside_whichever_thread_learns():
    """In a process of its own, whose BLAS has two threads; since 3.8 threadpoolctl lets one set them."""
    subprocess.run(
        [sys.executable, "-c", INSIDE], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    )


# One of each; the battery stops every learner at every line, and lets another thread in.
SAMPLE = ("KONS, gradient", "SketchedKONS, shared", "EmbeddedKONS, gradient", "Classifier", "Scaled, objects")


@pytest.mark.parametrize("name", effort.some(LEARNERS, *SAMPLE))
def test_predictions_from_several_threads_are_identical(name):
    learner = LEARNERS[name]()
    learner.advance(X[:120], Y[:120])
    parts = [X[:70], X[30:], X, X[::2].copy()] * 4
    expected = [learner.predict(part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(learner.predict, parts))
        singles = list(pool.map(learner.predict_one, X[:60]))
    assert_identical(found, expected)
    assert singles == [learner.predict_one(x) for x in X[:60]]
    assert np.isfinite(singles).all()


def meanwhile(call, other):
    """What ``other`` says in a second thread that is let in at each line of a call: no race needs luck."""
    asked = []

    def at_line(frame, event, argument):
        # One that has not ended waits for its turn, and is the last.
        if event == "line" and (not asked or asked[-1].done()):
            asked.append(threads.submit(other))
            wait(asked[-1:], timeout=0.05)
        return at_line

    before = sys.gettrace()
    with ThreadPoolExecutor(1) as threads:
        sys.settrace(at_line)
        try:
            call()
        finally:
            sys.settrace(before)
    return [one.result() for one in asked]


SHARED = {
    **LEARNERS,
    "AutoKONS": lambda: AutoKONS(effort="tiny"),
    "AutoKONS, classification": lambda: AutoKONS("classification", effort="tiny"),
}


@pytest.mark.parametrize("name", effort.some(SHARED, *SAMPLE, "AutoKONS", "AutoKONS, classification"))
@pytest.mark.parametrize("how", ["learn_one", "advance", "tell"])
def test_who_asks_while_another_learns_gets_the_answer_of_a_state(name, how):
    learner = SHARED[name]()
    learner.advance(X[:60], Y[:60])
    learner.ask(X[60], "a")
    learn = {
        "learn_one": lambda learner: learner.learn_one(X[60], Y[60]),
        "advance": lambda learner: learner.advance(X[60:63], Y[60:63]),
        "tell": lambda learner: learner.tell("a", Y[60]),
    }[how]

    def say(learner):
        blocks = [verb for verb in learner.questions if not verb.endswith("_one")]
        return [repr(getattr(learner, verb)(X[60:70])) for verb in blocks] + [repr(learner.state())]

    after = copy.deepcopy(learner)
    learn(after)
    states = list(zip(say(learner), say(after), strict=True))
    assert any(before != then for before, then in states)
    for found in meanwhile(lambda: learn(learner), lambda: say(learner)):
        for one, known in zip(found, states, strict=True):
            assert one in known


ALONE = "EmbeddedKONS, gradient, rows wait"


@pytest.mark.parametrize("name", [*effort.some(SHARED, *SAMPLE, "AutoKONS"), ALONE])
def test_two_threads_that_learn_do_so_one_after_the_other(name):
    learner = SHARED[name.removesuffix(", rows wait")]()
    learner.advance(X[:60], Y[:60])
    rows = iter(range(61, 200))

    def now():
        """A copy; where rows wait, the next one ends a period."""
        one = copy.deepcopy(learner)
        for x, y in zip(X[100:103], Y[100:103], strict=True) if name == ALONE else ():
            one.predict_one(x)
            one.learn_one(x, y)
        return one

    twins = [now() for _ in range(20)]
    learner = twins.pop()
    learner.predict_one(X[60])

    def another():
        learner.learn_one(X[row := next(rows)], Y[row])
        return row

    others = meanwhile(lambda: learner.learn_one(X[60], Y[60]), another)
    assert 1 <= len(others) < len(twins)  # the last one waited
    for i, twin in enumerate(twins):
        for row in (*others[:i], 60, *others[i:]):
            twin.learn_one(X[row], Y[row])
    assert repr(learner.state()) in [repr(twin.state()) for twin in twins]


DICTIONARIES = {"KORS": KORS, "SQUEAK": SQUEAK, "UniformSample": UniformSample}


@pytest.mark.parametrize("name", DICTIONARIES)
def test_a_dictionary_is_asked_merged_and_learned_in_turn(name):
    dictionary = DICTIONARIES[name](Gaussian(), seed=1)
    other = DICTIONARIES[name](Gaussian(), seed=2)
    for part, rows in ((dictionary, X[:60]), (other, X[100:130])):
        part.update(rows)
    after = copy.deepcopy(dictionary)
    after.update(X[60:70])

    def say(one):
        merged = [] if name == "KORS" else [merge(one, other, seed=3).state()]
        return [repr(found) for found in (one.transform(X[:5]), one.state(), *merged)]

    states = list(zip(say(dictionary), say(after), strict=True))
    assert any(before != then for before, then in states)
    for found in meanwhile(lambda: dictionary.update(X[60:70]), lambda: say(dictionary)):
        for one, known in zip(found, states, strict=True):
            assert one in known


def test_a_limit_that_fails_is_not_counted(setting):
    numbers = []

    def fail_once(library, number):
        numbers.append(number)
        if len(numbers) == 1:
            raise TouchedError

    setting(fail_once)
    with pytest.raises(TouchedError), single_threaded_blas():
        pass
    several = [number for number in blas_threads() if number > 1]
    with single_threaded_blas():
        assert numbers == [1] + [1] * len(several)  # not as if one were inside already
    assert numbers == [1] + [1] * len(several) + several


def test_builds_with_a_number_a_thread_are_limited_in_each(setting, monkeypatch):
    """As those over OpenMP: bookkeeping only, on a stand-in."""
    calls = []
    setting(lambda library, number: calls.append((threading.current_thread().name, number)))
    monkeypatch.setattr("kons.core.threads.limited_by_thread", lambda library: True)
    set_blas_threads(3)
    calls.clear()

    def body():
        with single_threaded_blas():
            pass

    with single_threaded_blas():
        set_blas_threads(2)  # as another thread finds it
        with ThreadPoolExecutor(1, "other") as threads:
            threads.submit(body).result()
        count = len(blas())
        assert [number for name, number in calls if name.startswith("other")] == [1] * count + [2] * count
