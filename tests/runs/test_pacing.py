"""Checkpoints take at most their share of the time, by the rule alone: the clock here is a number."""

import random
from itertools import pairwise

import pytest

from kons.runs import pacing
from kons.runs.pacing import EVERY, GROWTH, SHARE, Pacing


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def history(seconds, block, cost):
    """(when, how long) of each checkpoint in a run of blocks; ``cost(when)`` says what one takes."""
    clock = Clock()
    pacing = Pacing(clock)
    began, saved = clock.now, []
    while clock.now - began < seconds:
        clock.now += block
        if pacing.is_due():
            if not pacing.has_saved:
                pacing.expect(cost(clock.now - began))
                if not pacing.is_due():
                    continue
            with pacing.saving():
                took = cost(clock.now - began)
                clock.now += took
            saved.append((clock.now - began, took))
    return saved


@pytest.mark.parametrize("block", [0.001, 0.05, 3.0])
@pytest.mark.parametrize("base", [0.0, 0.01, 0.2, 4.0])
def test_never_more_than_the_share(block, base):
    chance = random.Random(base)
    saved = history(3000 * max(block, 0.05), block, lambda _: base * chance.uniform(1.0, GROWTH))
    spent = 0.0
    for when, took in saved:
        spent += took
        assert spent <= SHARE * when * (1 + 1e-9)
    gaps = [b - a for (a, _), (b, _) in pairwise(saved)]
    assert all(gap >= EVERY for gap in gaps)


def test_a_model_that_grows_stays_within_the_share():
    """An exact learner's state grows as the square of the time, up to a minute for one checkpoint."""
    saved = history(20_000, 0.5, lambda when: 60.0 * (when / 20_000) ** 2)
    assert sum(took for _, took in saved) <= SHARE * 20_000
    assert len(saved) > 20


def test_cheap_checkpoints_come_every_few_seconds():
    saved = history(600, 0.01, lambda _: 0.02)
    assert 250 <= len(saved) <= 300


def test_a_guess_does_not_replace_what_was_measured():
    clock = Clock()
    pacing = Pacing(clock)
    pacing.expect(100.0)
    with pacing.saving():
        clock.now += 0.4
    pacing.expect(0.0)  # too late: it is known by now
    first, enough = 0.4 / SHARE, 0.4 * (1 + GROWTH) / SHARE
    clock.now = 1000.0 + 0.5 * (first + enough)
    assert not pacing.is_due()
    clock.now = 1000.0 + 1.01 * enough
    assert pacing.is_due()


def test_the_tests_of_killed_runs_may_have_them_after_every_block(monkeypatch):
    monkeypatch.setattr(pacing, "EVERY", 0.0)
    monkeypatch.setattr(pacing, "SHARE", float("inf"))
    assert len(history(10, 0.1, lambda _: 0.5)) == pytest.approx(10 / 0.6, abs=2)
