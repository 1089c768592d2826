"""AutoKONS whose targets come late: a live loop is the simulation, and the twin agrees in any order."""

from pathlib import Path

import numpy as np
import pytest

import effort
from contracts.learners import assert_identical
from kons import AutoKONS
from kons.errors import FileError, InputError
from kons.files import from_bytes, to_bytes
from kons.learners.auto.pending import PendingTargets
from kons.tables import records_of
from naive_auto import NaiveAuto, schedule_of

SCHEDULE = schedule_of((Path(__file__).parents[2] / "docs" / "auto.md").read_text(encoding="utf-8"))
ATOMS = 12


def walk(rows):
    """A level that walks: what is known last is worth most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * np.cumsum(rng.normal(size=rows))


def turns(rows):
    """Another function from row 330 on, in other units.

    With a delay an ensemble that is tried knows as many rows less, and often does not win before what trials
    may cost is spent; of this stream it takes over with a delay of 7, too.
    """
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, size=(rows, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
    return X, np.where(np.arange(rows) < 330, y, 3e5 * (1.0 + np.sin(3.0 * X[:, 0] * X[:, 1])))


def live(model, X, y, delay):
    said = []
    for t, x in enumerate(X):
        said.append(model.ask(x, t))
        if t >= delay:
            model.tell(t - delay, y[t - delay])
    return said


@effort.every_value(name=["walk", "turns"], delay=[24, 7, 1])
def test_a_live_loop_is_the_simulation_with_a_delay(name, delay):
    X, y = {"walk": walk, "turns": turns}[name](effort.amount(560, 1500))
    simulated, model = AutoKONS(delay=delay, max_atoms=ATOMS), AutoKONS(max_atoms=ATOMS)
    expected = simulated.advance(X, y).prediction
    np.testing.assert_allclose(live(model, X, y, delay), expected, rtol=0, atol=1e-6 * np.ptp(y))
    assert model.successions == simulated.successions
    assert model.rows_seen == simulated.rows_seen - delay
    assert model.successions > 0 or name == "walk" or delay > 7


def test_gaps_of_arrays_are_filled_alike_in_a_live_loop():
    X, y = walk(200)
    X[20:][np.random.default_rng(1).random((180, 3)) < 0.2] = np.nan
    blocks, model = AutoKONS(max_atoms=ATOMS), AutoKONS(max_atoms=ATOMS)
    expected = blocks.advance(X, y).prediction
    np.testing.assert_allclose(live(model, X, y, 0), expected, rtol=0, atol=1e-6 * np.ptp(y))
    assert model.encoder.gaps == blocks.encoder.gaps


def test_rows_that_wait_when_the_first_gap_comes_are_learned_by_the_encoder():
    X, y = walk(40)
    model = AutoKONS(max_atoms=ATOMS)
    for t, x in enumerate(X):
        model.ask(x, t)
    model.ask([np.nan, 0.0, 1.0], "gap")
    for t in reversed(range(40)):
        model.tell(t, y[t])
    np.testing.assert_allclose(model.encoder.look(records_of({1: 0.0, 2: 1.0}))[0, 0], X[:, 0].mean())


@pytest.mark.parametrize("delay", [0, 5])
def test_labels_too_with_a_class_that_comes_late(delay):
    X, y = walk(400)
    labels = np.where(y > np.median(y), "up", "down").astype(object)
    labels[300::3] = "late"
    simulated, model = (AutoKONS("classification", max_atoms=ATOMS, delay=d) for d in (delay, 0))
    expected = simulated.advance(X, labels).prediction.tolist()
    assert live(model, X, labels, delay) == expected
    assert model.classes == simulated.classes


def test_the_twin_agrees_in_any_order():
    """Some rows told early, some late and some never; a file in between."""
    X, y = walk(420)
    rng = np.random.default_rng(5)
    model, twin = AutoKONS(max_atoms=ATOMS), NaiveAuto(SCHEDULE, max_atoms=ATOMS)
    waiting, unit = {}, np.ptp(y)
    for t, x in enumerate(X):
        waiting[t], step = twin.ask(x)
        assert model.ask(x, t) / unit == pytest.approx(step.prediction[0] / unit, abs=1e-6)
        for id in rng.permutation(list(waiting))[: rng.integers(3)].tolist():
            row = waiting.pop(id)
            if rng.uniform() < 0.05:
                twin.pending = [other for other in twin.pending if other is not row]
                model.forget(id)
                continue
            row.y, row.weight = float(y[id]), 1.0
            twin.tell(row)
            model.tell(id, y[id])
        if t == 200:
            model = from_bytes(to_bytes(model))
    assert twin.told == model.rows_seen > 256


def test_rows_that_are_dropped_or_forgotten_leave_nothing_behind():
    X, y = walk(80)
    model, other = AutoKONS(max_atoms=ATOMS), AutoKONS(max_atoms=ATOMS)
    for one in (model, other):
        one.advance(X[:40], y[:40])
    model.queue.most = 3
    for t in range(40, 60):
        model.ask(X[t], t)
    assert (model.queue.pending, model.queue.dropped) == (3, 17)
    for id in model.queue.ids:
        model.forget(id)
    before, after = (one.state()["targets"][0] for one in (other, model))
    assert after["pending"].pop("asked") == 20
    before["pending"].pop("asked")
    assert_identical(after, before)


@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_row_that_was_stopped_on_its_way_waits_with_all_or_not_at_all(monkeypatch, when):
    X, y = walk(41)
    model = AutoKONS(max_atoms=ATOMS)
    model.advance(X[:40], y[:40])
    put, before = model.queue.put, model.state()["targets"][0]["pending"]

    def stopped(*row):
        if when == "behind":
            put(*row)
        raise KeyboardInterrupt

    monkeypatch.setattr(model.queue, "put", stopped)
    with pytest.raises(KeyboardInterrupt):
        model.ask(X[40], "last")
    if when == "behind":
        model.tell("last", y[40])
        assert model.rows_seen == 41
    else:
        assert_identical(model.state()["targets"][0]["pending"], before | {"asked": 1})


def test_a_row_that_is_refused_waits_no_longer():
    model = AutoKONS(max_atoms=ATOMS)
    model.ask([0.0, 1.0], "first")
    before = model.state()
    for refused in (lambda: model.ask([0.0, 1.0, 2.0], "second"), lambda: model.learn_one([0.0], 1.0)):
        with pytest.raises(InputError, match="has seen 2"):
            refused()
        assert_identical(model.state(), before)
    model.tell("first", 1.0)
    assert model.rows_seen == 1


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_files_while_rows_wait(task):
    """Before any target is known, and where fewer may wait than do."""
    model = AutoKONS(task, max_atoms=ATOMS)
    for t in range(5):
        model.ask([float(t), 0.0], t)
    model.queue.most = 3
    model = from_bytes(to_bytes(model))
    model.tell(3, 1.0)
    model = from_bytes(to_bytes(model))
    model.ask([5.0, 0.0], 5)
    assert (model.queue.ids, model.queue.dropped) == ([2, 4, 5], 2)


def test_files_while_rows_of_several_targets_wait():
    model = AutoKONS(max_atoms=ATOMS)
    for t in range(3):  # the first answers are one number
        model.ask([float(t)], t)
    model.tell(0, (0.1, 0.2))
    model.ask([3.0], 3)
    model.tell(1, [0.1, 0.2])
    model = from_bytes(to_bytes(model))
    model.tell(0, np.array([0.1, 0.2]))
    model.tell(2, [0.3, 0.4])
    assert (model.queue.repeated, model.queue.ids, model.rows_seen) == (1, [3], 3)


@pytest.mark.parametrize("outputs", [0, 2, 10**9, 2**62])
def test_a_forged_number_of_outputs_is_refused(outputs):
    X, y = walk(20)
    model = AutoKONS(max_atoms=ATOMS)
    model.advance(X, y)
    state = model.state()
    state["targets"][0]["drift"]["current"]["outputs"] = outputs
    with pytest.raises(FileError):
        AutoKONS.from_state(model.parameters(), state)


def test_a_forged_queue_is_refused():
    X, y = walk(60)
    model = AutoKONS(max_atoms=ATOMS)
    model.advance(X[:50], y[:50])
    model.ask(X[50], 50)
    for number in (7.0, -1.0, np.nan):
        state = model.state()
        state["queue"]["rows"]["kept"][0][0, 0] = number
        with pytest.raises(FileError):
            AutoKONS.from_state(model.parameters(), state)


def test_a_row_that_only_joins_those_that_wait_looks_at_none_of_them(monkeypatch):
    """Rows one by one with a long delay cost as many looks as rows, not their square."""
    looked_at = []
    take = PendingTargets.take
    monkeypatch.setattr(
        PendingTargets, "take", lambda part, numbers: looked_at.extend(numbers) or take(part, numbers)
    )
    X, y = walk(120)
    rows, blocks = (AutoKONS(delay=100, max_atoms=ATOMS) for _ in range(2))
    for x, target in zip(X[:100], y[:100], strict=True):
        rows.learn_one(x, target)
    assert looked_at == []
    for x, target in zip(X[100:], y[100:], strict=True):
        rows.learn_one(x, target)
    blocks.advance(X, y)
    np.testing.assert_allclose(rows.predict(X), blocks.predict(X), rtol=0, atol=1e-6 * np.ptp(y))
