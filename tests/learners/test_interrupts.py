"""Ctrl-C inside ``learn_one``: the row is learned, counted and looked at, or nothing of it is there."""

import copy
import signal
import sys

import pytest

import effort
from contracts.learners import LEARNERS, stream
from kons import AutoKONS
from kons.core.interruption import HeldInterrupts

X, Y = stream(80)
SUBJECTS = {
    **LEARNERS,
    "AutoKONS": lambda: AutoKONS(effort="tiny"),
    "AutoKONS, classification": lambda: AutoKONS("classification", effort="tiny", delay=3),
}
SAMPLE = (
    "KONS, gradient",
    "SketchedKONS, shared",
    "EmbeddedKONS, gradient",
    "Classifier",
    "Scaled",
    "AutoKONS",
)


@pytest.fixture(autouse=True)
def interrupts_are_heard():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(at, call):
    """Ctrl-C at so many lines from the start of a call; how many there were."""
    count = 0

    def at_line(frame, event, argument):
        nonlocal count
        if event == "line":
            count += 1
            if count == at:
                signal.raise_signal(signal.SIGINT)
        return at_line

    before = sys.gettrace()
    sys.settrace(at_line)
    try:
        call()
    except KeyboardInterrupt:
        assert at <= count
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("row", effort.some([63, 70], 63))
@pytest.mark.parametrize("name", effort.some(SUBJECTS, *SAMPLE))
def test_ctrl_c_at_any_line_of_learn_one(name, row):
    """Row 63 ends a period."""
    learner = SUBJECTS[name]()
    learner.advance(X[:row], Y[:row])

    def learned(at):
        one = copy.deepcopy(learner)
        count = interrupted(at, lambda: one.learn_one(X[row], Y[row]))
        return repr(one.state()), count

    nothing, (all_of_it, count) = repr(learner.state()), learned(0)
    # What counts a row is in the last lines.
    places = [*range(1, count, max(1, count // effort.amount(6, 100))), *range(max(1, count - 75), count, 4)]
    found = [learned(at)[0] for at in sorted({*places, count})]
    assert found[0] == nothing
    assert set(found) <= {nothing, all_of_it}


def test_a_second_ctrl_c_does_not_wait():
    reached = []

    def stop_twice():
        with HeldInterrupts():
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                reached.append("still here")

    with pytest.raises(KeyboardInterrupt):
        stop_twice()
    assert reached == ["still here"]
