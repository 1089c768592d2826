"""What a row may cost at worst, and what was learned by the end."""

import numpy as np
import pytest

import kons
from kons.errors import ConfigurationError
from kons.evaluation import Prequential

ROWS = 2049  # the first is not counted


def rows(task, count=ROWS):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(count, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, y if task == "regression" else np.where(y > 0.5, "high", "low").astype(object)


class Sleepy:
    """Takes 1 s to predict and 2 s to learn, 50 s for row 40, on a clock of its own."""

    def __init__(self, now):
        self.now, self.rows_seen = now, 0

    def predict_one(self, x):
        self.now[0] += 1.0
        return 0.0

    def learn_one(self, x, y):
        self.now[0] += 50.0 if self.rows_seen == 40 else 2.0
        self.rows_seen += 1


@pytest.mark.parametrize("delay", [0, 3])
def test_the_longest_step_is_told(monkeypatch, delay):
    now = [0.0]
    monkeypatch.setattr(kons.compilation.time, "process_time", lambda: now[0])
    result = kons.evaluate(Sleepy(now), rows("regression", 100), delay=delay, pauses=True)
    assert result.longest_pause == pytest.approx(51.0)  # row 40 learned, row 41 predicted
    late = 2.0 * delay  # learned at the end, in no block
    assert result.learner_seconds == pytest.approx(100.0 * 3.0 + 48.0 - late)
    assert "longest pause" in repr(result)


def test_in_blocks_no_step_is_timed():
    result = kons.evaluate("embedded", rows("regression", 100))
    assert result.longest_pause is None
    assert "longest pause" not in repr(result)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize(("name", "delay"), [("auto", 0), ("auto", 2), ("embedded", 0)])
def test_rows_one_by_one_are_predicted_as_in_blocks(name, delay, task):
    X, y = rows(task, 300)
    blocks, steps = (kons.evaluate(name, (X, y), delay=delay, pauses=pauses) for pauses in (False, True))
    assert steps.metrics == pytest.approx(blocks.metrics, rel=1e-6)
    assert steps.learner_seconds > steps.longest_pause > 0.0
    assert steps.away is None


def test_rows_that_are_weighed_come_in_blocks():
    learner = kons.AutoKONS("classification")
    with pytest.raises(ConfigurationError, match="not for rows one by one"):
        Prequential(learner, "classification", class_weight="balanced", pauses=True)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_last_quarter_is_that_of_its_rows(task):
    losses = []
    result = kons.evaluate(
        "embedded",
        rows(task),
        callback=lambda engine, scored: losses.append((scored.loss, scored.baseline_losses)),
    )
    learner = np.concatenate([loss for loss, _ in losses])
    constant = np.concatenate([beside["constant"] for _, beside in losses])
    last = result.last_quarter
    assert last["loss"] == pytest.approx(learner[-512:].mean())
    assert last["constant"] == pytest.approx(constant[-512:].mean())
    assert last.keys() == {"loss", *result.baselines}


def test_huge_losses_at_first_do_not_drown_the_last_quarter():
    class Wild(Sleepy):
        def predict_one(self, x):
            return 1e12 if self.rows_seen < 20 else 3.0

    y = np.full(1000, 2.0)
    assert kons.evaluate(Wild([0.0]), (y[:, None], y)).last_quarter["loss"] == 1.0


def test_the_last_quarter_of_several_targets_is_their_sum():
    X, y = rows("regression", 300)
    result = kons.evaluate(kons.AutoKONS(), (X, np.column_stack([y, -y])))
    assert result.last_quarter["constant"] == pytest.approx(
        sum(t.last_quarter["constant"] for t in result.targets)
    )
    assert len(result.targets) == 2


def test_one_row_has_no_last_quarter():
    assert np.isnan(kons.evaluate("embedded", rows("regression", 1)).last_quarter["loss"])
