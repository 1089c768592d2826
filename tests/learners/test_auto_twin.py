"""AutoKONS against its naive twin: every row's prediction, and who is at work, through all that may happen."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import effort
from kons import AutoKONS
from naive_auto import NaiveAuto, schedule_of

PAGE = Path(__file__).parents[2] / "docs" / "auto.md"
SCHEDULE = schedule_of(PAGE.read_text(encoding="utf-8"))
#: Of the range of ordinary targets, and of logits; what was seen is below a tenth of it.
TOLERANCE = 1e-6
ATOMS = 12
PIECES = (1, 3, 60, 200, 37, 99)
"""Rows given to advance at a time, in turn: across ends of chunks, and not."""


class Stream(NamedTuple):
    X: np.ndarray
    y: Any
    met: set
    """What the stream is there to bring about."""
    settings: dict = {}
    weights: np.ndarray | None = None
    widened: int | None = None
    """The row from which on the last column is there."""
    singly: range = range(0)
    """Rows that come one by one."""


def level_drift(rows):
    """A series: the level walks, so that last targets and short memories are of use."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)) * [1.0, 100.0, 5.0]
    y = np.sin(2.0 * X[:, 0]) + 0.005 * X[:, 1] + 0.1 * rng.normal(size=rows)
    return Stream(X, y + 0.05 * np.cumsum(rng.normal(size=rows)), {"selected"}, singly=range(190, 420))


def no_order(rows):
    """Rows in no order with some wild targets, and a column that comes late and matters."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(rows, 4))
    late = np.where(np.arange(rows) < 650, 0.0, 2.0 * X[:, 3])
    y = 10.0 * X[:, 0] + 3.0 * np.sin(3.0 * X[:, 1]) + late + rng.normal(size=rows)
    y[rng.choice(rows, rows // 50, replace=False)] *= 1e4
    y[3] = -1e6
    return Stream(X, y, {"selected", "pruned", "widened"}, widened=650, singly=range(560, 700))


def weighted(rows):
    """A series with weights, 0 among them, and targets known three rows late."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 3))
    y = 300.0 + 50.0 * np.cumsum(0.2 * rng.normal(size=rows)) + 40.0 * np.sin(2.0 * X[:, 0]) * X[:, 1]
    return Stream(X, y, set(), {"delay": 3}, weights=rng.choice([0.0, 0.5, 1.0, 3.0], size=rows))


def late_targets(rows):
    """Targets known forty rows late, a season, and another function later."""
    rng = np.random.default_rng(3)
    t = np.arange(rows)
    X = np.column_stack([t % 24, rng.normal(size=rows), rng.exponential(size=rows)])
    y = np.sin(X[:, 0] / 4.0) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=rows)
    return Stream(X, y, set(), {"delay": 40, "seed": 5}, singly=range(100, 300))


def turned(rows):
    """Another function elsewhere from row 400 on: a fresh pool takes over; then the first one again."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(rows, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
    other = (np.arange(rows) >= 400) & (np.arange(rows) < 580)
    X[other] += 5.0
    return Stream(X, np.where(other, 9.0 - y, y), {"takeover", "return"}, singly=range(380, 640))


def late_class(rows):
    """Three classes, and a fourth one late."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(rows, 3))
    codes = np.digitize(X[:, 0] + 0.3 * rng.normal(size=rows), [-0.5, 0.5])
    codes[(np.arange(rows) > 600) & (X[:, 1] > 0.8)] = 3
    labels = [("low", "middle", "high", "late")[code] for code in codes]
    return Stream(X, labels, {"selected"}, {"task": "classification"}, singly=range(500, 700))


def two_classes(rows):
    """Two classes in runs, so that last targets help, and labels known three rows late; they swap once."""
    rng = np.random.default_rng(5)
    t = np.arange(rows)
    X = rng.normal(size=(rows, 3))
    codes = (X[:, 0] + 0.8 * np.sin(t / 7.0) > 0.0) ^ (t > 700)
    return Stream(X, codes.tolist(), set(), {"task": "classification", "delay": 3})


STREAMS = {
    "level drift": (level_drift, 1300, 2600),
    "no order": (no_order, 1300, 4400),
    "weights, delay 3": (weighted, 300, 1300),
    "delay 40": (late_targets, 330, 1400),
    "turned": (turned, 720, 3000),
    "late class": (late_class, 1100, 1500),
    "two classes, delay 3": (two_classes, 300, 1200),
}


class Outcome(NamedTuple):
    model: AutoKONS
    twin: NaiveAuto
    differences: dict


@functools.cache
def outcome_of(name):
    """Both through a stream, in pieces; compared after each of them."""
    make, sample, everything = STREAMS[name]
    stream = make(effort.amount(sample, everything))
    X, y, settings = stream.X, np.asarray(stream.y, dtype=object), dict(stream.settings)
    task = settings.pop("task", "regression")
    classes = list(dict.fromkeys(y)) if task == "classification" else []
    numbers = [classes.index(label) for label in y] if classes else y.astype(float)
    unit = 1.0 if classes else np.ptp(np.quantile(numbers, [0.03, 0.97]))
    weights = np.ones(len(X)) if stream.weights is None else stream.weights
    model = AutoKONS(task, max_atoms=ATOMS, **settings)
    twin = NaiveAuto(SCHEDULE, classes=len(classes), max_atoms=ATOMS, **settings)
    worst = dict.fromkeys(("prediction", "slope", "inverse form", "shares", "relevances", "predict"), 0.0)

    def note(what, ours, theirs):
        ours, theirs = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
        assert (np.isnan(ours) == np.isnan(theirs)).all(), (what, start)
        worst[what] = max(worst[what], float(np.max(np.nan_to_num(np.abs(ours - theirs)), initial=0.0)))

    start, turn = 0, 0
    while start < len(X):
        if start == stream.widened:
            samples = X[start : start + 5, -1:]
            model.widen(samples=samples)
            twin.widen(np.median(samples, axis=0))
        width = X.shape[1] - (stream.widened is not None and start < stream.widened)
        one = start in stream.singly and weights[start] == 1.0
        stop = start + (1 if one else PIECES[turn % len(PIECES)])
        stop, turn = min([stop, len(X), *(at for at in (stream.widened,) if at and at > start)]), turn + 1
        part, points = slice(start, stop), X[start:stop, :width]
        if one:
            said = model.predict_one(points[0])
            model.learn_one(points[0], y[start])
            step = twin.step(points[0], numbers[start])
            if classes:
                assert said == classes[np.nanargmax(step.prediction)], start
            else:
                note("prediction", said / unit, step.prediction[0] / unit)
            start = stop
            continue
        trace = model.advance(points, y[part].tolist(), sample_weight=weights[part])
        steps = [twin.step(*row) for row in zip(points, numbers[part], weights[part], strict=True)]
        theirs = np.array([step.prediction for step in steps])
        if classes:
            known = trace.scores.shape[1]
            assert np.isnan(theirs[:, known:]).all()
            note("prediction", trace.scores, theirs[:, :known])
        else:
            note("prediction", trace.prediction / unit, theirs[:, 0] / unit)
        names = model.expert_names
        assert [names[i] for i in trace.expert] == [step.leader for step in steps], start
        assert trace.size.tolist() == [step.size for step in steps], start
        note("slope", trace.slope / unit, [step.slope / unit for step in steps])
        forms = np.array([step.inverse_form for step in steps])
        note("inverse form", trace.inverse_form / np.maximum(forms, 1e-6), forms / np.maximum(forms, 1e-6))
        shares = twin.pool.shares()
        assert list(model.shares) == list(shares), start
        note("shares", list(model.shares.values()), list(shares.values()))
        note("relevances", model.relevances, twin.pool.relevances(width))
        assert (model.successions, model.size) == (twin.takeovers, twin.pool.size), start
        if turn % 4 == 0:
            for recent in (False, True):
                ask = model.decision_function if classes else model.predict
                ours = ask(points[:3] + 0.1, recent_targets=recent).reshape(len(points[:3]), -1)
                said = [twin.predict(x + 0.1, recent) for x in points[:3]]
                note("predict", ours / unit, np.array(said)[:, : ours.shape[1]] / unit)
        start = stop
    return Outcome(model, twin, worst)


@pytest.mark.parametrize("name", STREAMS)
def test_every_row_is_predicted_as_by_the_twin(name):
    differences = outcome_of(name).differences
    assert all(worst < TOLERANCE for worst in differences.values()), differences
