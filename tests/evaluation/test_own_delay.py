"""A learner that keeps late targets back by itself: fed in blocks, delayed once, and never looking ahead."""

import numpy as np
import pytest

import effort
import kons
from kons.core.cholesky import JITTER
from kons.errors import ConfigurationError
from kons.evaluation import Prequential
from kons.recipes import for_task
from kons.streams import open_stream

# A class more, or a block cut elsewhere, is another order of sums. What rounding makes of it grows by the
# condition number of the experts' sums of squares, which their jitter keeps below 1/JITTER.
ROUNDING = np.finfo(float).eps / JITTER
ROWS = 700
RNG = np.random.default_rng(4)
X = RNG.normal(size=(ROWS, 2))
WALK = np.cumsum(RNG.normal(size=ROWS))
Y = 100.0 + 5.0 * np.sin(2.0 * X[:, 0]) + WALK  # the last targets say much
WORDS = np.where(np.median(WALK) < WALK, "up", np.where(X[:, 0] > 0.0, "right", "left")).astype(object)


class Watched:
    """A learner whose rows are counted by how they came."""

    def __init__(self, learner):
        self.learner, self.blocks, self.single = learner, [], 0

    def advance(self, X, y):
        self.blocks.append(len(X))
        return self.learner.advance(X, y)

    def learn_one(self, x, y):
        self.single += 1
        self.learner.learn_one(x, y)

    def __getattr__(self, name):
        return getattr(self.learner, name)


def made(task, delay):
    return for_task(task, max_atoms=20, experts=6, delay=delay)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_it_is_fed_in_blocks_and_delayed_once(task):
    y = Y if task == "regression" else WORDS
    learner = Watched(made(task, 7))
    engine = Prequential(learner, task, delay=7)
    scored = [engine.advance(block) for block in open_stream((X, y), task=task, block_size=100, quiet=True)]
    engine.finish()
    assert learner.blocks == [100] * 7
    assert learner.single == 0
    alone = made(task, 7).advance(X, y).prediction
    predicted = np.concatenate([part.prediction for part in scored])
    if task == "regression":
        np.testing.assert_allclose(predicted, alone, rtol=0, atol=ROUNDING * np.abs(alone).max())
    else:
        assert predicted.tolist() == alone.tolist()


@effort.every_value(task=["regression", "classification"], delay=effort.some([0, 1, 5, 70], 0, 70))
def test_a_target_changes_no_prediction_of_the_next_rows(task, delay):
    """Nor its own; and sooner or later, some: it was not lost."""
    y = Y if task == "regression" else WORDS
    stretch = slice(0, 500)

    def trace_of(targets):
        rows = X[stretch], targets[stretch]
        return kons.evaluate(made(task, delay), rows, delay=delay, trace=True).trace

    before = trace_of(y)
    for at in effort.some((0, 3, 130, 383), 0, 383):
        changed = y.copy()
        changed[at] = 1e3 if task == "regression" else "quite new"
        after = trace_of(changed)
        first, second = (
            trace.scores if task == "classification" else trace.prediction for trace in (before, after)
        )
        blind = at + 1 + delay
        if task == "classification":
            # Classes are in order of appearance; of one that is new nothing is known before its time.
            order = list(dict.fromkeys(changed[stretch]))
            columns = [order.index(label) for label in dict.fromkeys(y[stretch])]
            assert np.isnan(second[:blind, order.index("quite new")]).all()
            assert before.prediction[:blind].tolist() == after.prediction[:blind].tolist()
            second = second[:, columns]
        rounding = ROUNDING * np.nanmax(np.abs(first))
        np.testing.assert_allclose(first[:blind], second[:blind], rtol=0, atol=rounding)
        assert np.nanmax(np.abs(first[blind:] - second[blind:])) > 100.0 * rounding


def test_by_name_it_is_made_for_the_delay_and_the_horizon():
    stream = open_stream((X, Y), horizon=2, quiet=True)
    result = kons.evaluate("auto", stream, delay=3)
    assert result.delay == result.learner.delay == 5
    assert result.learner.rows_seen == result.rows == ROWS - 2
    with pytest.raises(ConfigurationError, match="the learner was made for delay=0: give both the same"):
        kons.evaluate(made("regression", 0), (X, Y), delay=3)
    with pytest.raises(ConfigurationError, match="scale='none' does not apply to 'auto'"):
        kons.evaluate("auto", (X, Y), scale="none")
    assert result.learner_name == "AutoKONS"
