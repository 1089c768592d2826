"""AutoKONS on short streams that move, beside a learner that forgets and the nearest of the last rows.

Each bound is the better of the two, with a memory that suits the stream, and 15 % more.
"""

import numpy as np
import pytest

import effort
from kons import AutoKONS
from kons.policies import Dependence
from kons.recipes import for_task

ROWS, UNCOUNTED = 3600, 500
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.5, 1.5, size=(ROWS, 3))
T = np.arange(ROWS)
NOISE, COIN = 0.3 * RNG.normal(size=ROWS), RNG.uniform(size=ROWS)


def waves(phase):
    return np.sin(2.0 * X[:, 0] + phase) + X[:, 1] * X[:, 2] + NOISE


def border(angle):
    return ((np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.0) ^ (COIN < 0.05)).tolist()


#: Still for a while, so that short memories have been pruned when it begins.
LATE = np.maximum(T - 1200, 0)
STREAMS = {
    "a wave creeps": waves(LATE / 1500.0),
    "a wave is another one": waves(np.where(T < 1800, 0.0, 2.5)),
    "a corner moves": waves(np.where(X[:, 0] > 0.5, LATE / 1500.0, 0.0)),
    "a border turns": border(LATE / 1200.0),
    "classes swap": border(np.where(T < 1800, 0.0, np.pi)),
}


def mean_loss(predictions, y):
    counted = slice(UNCOUNTED, None)
    if isinstance(y, list):
        return np.mean([p != t for p, t in zip(predictions[counted], y[counted], strict=True)])
    return np.mean((np.asarray(predictions, dtype=float)[counted] - y[counted]) ** 2)


def forgetful(y, forgetting):
    task = "classification" if isinstance(y, list) else "regression"
    policy = Dependence(when_full="replace")
    learner = for_task(task, "embedded", forgetting=forgetting, policy=policy, max_atoms=60)
    return learner.advance(X, y).prediction


def nearest(y, window):
    """The mean of the five nearest of the last rows; of labels, what most of them are."""
    targets = np.array(y, dtype=float)
    means = np.zeros(ROWS)
    for t in range(1, ROWS):
        first = max(t - window, 0)
        distances = np.sum((X[first:t] - X[t]) ** 2, axis=1)
        means[t] = targets[first:t][np.argsort(distances)[:5]].mean()
    return (means > 0.5).tolist() if isinstance(y, list) else means


# What changes at once is in test_auto_robust.py, of targets and of labels.
@pytest.mark.parametrize("name", effort.some(STREAMS, "a wave creeps", "a corner moves", "a border turns"))
def test_never_blind(name):
    y = STREAMS[name]
    task = "classification" if isinstance(y, list) else "regression"
    model = AutoKONS(task, max_atoms=60)
    loss = mean_loss(model.advance(X, y).prediction, y)
    rivals = forgetful(y, 0.99), nearest(y, 300)
    assert loss <= 1.15 * min(mean_loss(each, y) for each in rivals)


def test_what_left_comes_back():
    rng = np.random.default_rng(1)
    points = rng.uniform(-1.0, 1.0, size=(3000, 2))
    moved = np.maximum(np.arange(3000) - 1500, 0) / 500.0
    y = 3.0 * (np.cos(moved) * points[:, 0] + np.sin(moved) * points[:, 1]) + rng.normal(size=3000)
    model, at_work = AutoKONS(max_atoms=20), []
    for rows in (slice(1500), slice(1500, 3000)):
        model.advance(points[rows], y[rows])
        at_work.append([name for name in model.shares if "memory" in name or "last targets" in name])
    assert at_work[0] == ["gaussian, features, memory 300"]
    assert len(at_work[1]) == 7


def test_what_matters_may_change():
    """The metric that short memories share follows what matters."""
    rng = np.random.default_rng(0)
    points, angle = rng.normal(size=(3900, 3)), np.arange(3900) * np.pi / 7600
    above = np.cos(angle) * points[:, 0] + np.sin(angle) * points[:, 1] > 0.0
    model = AutoKONS("classification", max_atoms=30)
    model.advance(points[:1200], above[:1200].tolist())
    before = model.relevances
    model.advance(points[1200:], above[1200:].tolist())
    assert [np.argmax(before), np.argmax(model.relevances)] == [0, 1]
