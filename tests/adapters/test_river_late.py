"""Dicts whose targets come late: refereed by a learner of rows encoded by hand when they were asked."""

import copy
import datetime

import numpy as np
import pytest

import kons
from contracts.learners import assert_identical
from contracts.test_forged_states import leaves, with_leaf
from kons.errors import FileError, InputError, TargetError
from kons.recipes import for_task
from kons.river import KONSClassifier, KONSRegressor
from tables.naive_encoder import Naive


def rows(count=260, new=90):
    """Features that come, go and change kind; one that comes late, some rows before that is told."""
    rng = np.random.default_rng(1)
    for t in range(count):
        x = {"a": rng.normal(), "b": int(rng.integers(5)), "c": str(rng.choice(["u", "v"]))}
        y = x["a"] + 0.3 * x["b"] + (x["c"] == "u")
        if t >= new:
            x["new"] = np.float32(rng.normal())
        if t % 11 == 7:
            del x["a"]
        if t % 13 == 5:
            x["c"] = 4  # as text it is not 4.0
        yield ({} if t == 17 else x), float(y)


MODELS = {
    "regression, embedded": lambda: KONSRegressor("embedded", warmup=30, max_atoms=20),
    "classes, embedded": lambda: KONSClassifier("embedded", warmup=30, max_atoms=20),
}


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_row_that_waited_is_learned_as_it_was_predicted(make):
    model = make()
    numbers = isinstance(model, KONSRegressor)
    core = for_task("regression" if numbers else "classification", "embedded", warmup=30, max_atoms=20)
    naive = Naive()
    stream = [(x, y if numbers else str(y > 1.0)) for x, y in rows()]
    plain = [
        {name: str(value) if name == "c" else float(value) for name, value in x.items()} for x, _ in stream
    ]
    for t, (x, _) in enumerate(stream):
        answer, expected = model.ask(x, t), core.ask(naive.encode(plain[t]), t)
        assert answer == (pytest.approx(expected, rel=1e-9) if numbers else expected)
        assert model.ask(dict(reversed(x.items())), t) == answer
        if t >= 6:
            model.tell(t - 6, stream[t - 6][1])
            core.tell(t - 6, stream[t - 6][1])
            if earlier := naive.learn(plain[t - 6]):
                core.widen(len(earlier), [earlier])
        if t == 140:
            model = kons.files.from_bytes(kons.files.to_bytes(model))
        if t == 200:
            model = copy.deepcopy(model)
    assert model.queue.ids == list(range(254, 260))
    assert model.rows_seen == 254
    assert model.core.feature_names[:4] == ["a", "b", "c=v", "c=u"]  # the one that came twice first
    assert "new" in model.core.feature_names


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
def test_rows_that_made_room_are_forgotten_by_the_encoder_too():
    model = KONSRegressor("embedded", warmup=30)
    model.queue.most = 3
    for t, (x, _) in enumerate(rows(20)):
        model.ask(x, t)
    assert model.queue.dropped == 17
    assert [id for id, _ in model.state()["core"]["encoder"]["asked"]] == [17, 18, 19]


def test_dates_wait_in_files():
    model = KONSRegressor("embedded", warmup=5)
    for day in range(1, 6):
        model.ask({"when": datetime.date(2024, 1, day)}, day)
    twin = kons.files.from_bytes(kons.files.to_bytes(model))
    for day in range(1, 6):
        for each in (model, twin):
            each.tell(day, float(day))
    assert_identical(twin.state(), model.state())
    assert model.core.feature_names[:3] == ["when days", "when weekday sin", "when weekday cos"]


def test_auto_learns_a_row_as_it_was_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.cumsum(rng.normal(size=300)) + X[:, 0]
    model = KONSRegressor(max_atoms=20, parameters={"experts": 4})
    for x, target in zip(X[:20], y[:20], strict=True):  # until the columns are known
        model.learn_one({"a": x[0], "b": x[1]}, target)
    model.forget(model.ask({"a": 0.0, "b": 0.0}, "never") and "never")
    model = kons.files.from_bytes(kons.files.to_bytes(model))
    late = kons.AutoKONS(max_atoms=20, experts=4)
    late.advance(X[:20], y[:20])
    for t in range(20, 300):
        row = {"b": X[t, 1], "a": X[t, 0]}
        assert model.ask(row, t) == pytest.approx(late.ask(X[t], t), abs=1e-6)
        if t >= 26:
            model.tell(t - 6, y[t - 6])
            late.tell(t - 6, y[t - 6])


def test_out_of_order_twice_and_never():
    model = KONSRegressor("embedded", warmup=2)
    for t, (x, _) in enumerate(rows(4)):
        model.ask(x, f"row {t}")
    model.tell("row 2", 1)
    model.tell("row 2", 1.0)
    with pytest.raises(TargetError, match=r"'row 2' was told 1, now 2"):
        model.tell("row 2", 2)
    model.forget("row 0")
    with pytest.raises(InputError, match="no row waits under the id 'row 0'"):
        model.tell("row 0", 1.0)
    assert (model.queue.ids, model.queue.repeated, model.rows_seen) == (["row 1", "row 3"], 1, 1)


def test_a_row_that_is_refused_leaves_no_trace():
    model = KONSRegressor("embedded")
    for bad in ({"a": float("inf")}, {"a": [1]}, 3.0):
        with pytest.raises(InputError):
            model.ask(bad, 1)
    assert model.queue.pending == 0
    assert "encoder" not in model.state()["core"]
    x = {"a": 1.0}
    model.ask(x, 1)
    x["a"] = 2.0
    with pytest.raises(InputError, match="1 waits for its target with another x"):
        model.ask(x, 1)
    assert model.ask({"a": 1.0}, 1) == 0.0


def test_records_that_were_never_asked_are_refused():
    model = KONSRegressor("embedded")
    for t, (x, _) in enumerate(rows(3)):
        model.ask(x, t)
    state, parameters, where = model.state(), {"learner": "embedded"}, ("core", "encoder", "asked")
    asked = state["core"]["encoder"]["asked"]
    assert KONSRegressor.from_state(parameters, state).queue.ids == [0, 1, 2]
    for path, value in leaves(asked):
        for wrong in ([], float("nan"), float("inf"), b"bytes", 10**400):
            if path[-1] == 1 or isinstance(wrong, list):
                forged = with_leaf(state, (*where, *path), wrong)
                with pytest.raises(FileError, match="cannot be used"):
                    KONSRegressor.from_state(parameters, forged)
        assert value is not None
    for wrong in ("text", [*asked[:2], "text"], [*asked[:2], (2, ["text"])], [(0, [("a", ("moment", "x"))])]):
        with pytest.raises(FileError, match="cannot be used"):
            KONSRegressor.from_state(parameters, with_leaf(state, where, wrong))
