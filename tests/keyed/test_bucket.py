"""A bucket of keys in micro-batches: as in one process, bit for bit; who is not learned, and why."""

from itertools import pairwise

import numpy as np
import pytest

from kons import AutoKONS
from kons.errors import ConfigurationError, FileError
from kons.files import to_bytes
from kons.keyed.bucket import Bucket, Plan

COLUMNS = (("sensor", "string"), ("t", "bigint"), ("load", "double"), ("y", "double"))


def plan(learner=None, **changes):
    made = to_bytes(learner or AutoKONS("regression", effort="tiny"))
    return Plan(
        made,
        **{"columns": COLUMNS, "key": "sensor", "target": "y", "features": ("load",), "buckets": 4} | changes,
    )


def stream(rows, keys, seed=0):
    rng = np.random.default_rng(seed)
    load = rng.normal(size=rows).tolist()
    return [
        (f"s{k}", t, {"load": x}, float(np.sin(x)) + k)
        for t, (k, x) in enumerate(zip(rng.integers(keys, size=rows).tolist(), load, strict=True))
    ]


def in_batches(plan, batches):
    state, said = None, {}
    for batch in batches:
        bucket = Bucket(plan, 0, state)
        for row, answer in zip(batch, bucket.follow(batch), strict=True):
            said.setdefault(row[:2], answer)
        state = bucket.to_bytes()
    return said, state


@pytest.mark.parametrize("cuts", [(), (30,), (10, 11, 70)])
def test_rows_in_any_batches_are_those_of_one_process(cuts):
    rows = stream(100, 3)
    places = [0, *cuts, 100]
    batches = [rows[a:b][::-1] for a, b in pairwise(places)]
    said, state = in_batches(plan(), batches)
    own = {}
    for key, t, x, y in rows:
        learner = own.setdefault(key, AutoKONS("regression", effort="tiny"))
        prediction, novelty = learner.predict_one(x), learner.novelty([x])[0]
        ends = tuple(learner.predict_interval_one(x))
        assert said[key, t] == (prediction, *ends, (prediction - y) ** 2, novelty, None)
        learner.learn_one(x, y)
    keyed = Bucket.learners_in(state)
    assert {key: keyed.predict_one({"sensor": key, "load": 0.2}) for key in keyed.keys} == {
        key: learner.predict_one({"load": 0.2}) for key, learner in own.items()
    }


def test_late_repeated_and_broken_rows_are_answered_and_not_learned():
    rows = stream(40, 2)
    told, state = in_batches(plan(), [rows[:20], rows[20:]])
    broken = [(None, 5, {"load": 1.0}, 1.0), ("s0", None, {"load": 1.0}, 1.0), ("s1", float("nan"), {}, 1.0)]
    repeated, no_target = rows[:5] + rows[20:25], ("s1", 99, {"load": 1.0}, None)
    poisoned = ("s0", 98, {"load": 1.0}, float("inf"))
    more = [*broken, *rows[20:], *repeated, no_target, poisoned]
    bucket = Bucket(plan(), 0, in_batches(plan(), [rows[:20]])[1])
    answers = bucket.follow(more)
    reasons = [answer.skipped for answer in answers]
    assert reasons[:3] == ["no key", "no order", "no order"]
    assert reasons[-2] == "no target"
    assert "y" in reasons[-1]
    assert reasons[23:28] == ["late"] * 5
    assert sum(reason == "late" for reason in reasons[3:33]) == 10
    assert all(answer.prediction is not None for answer in answers[3:])
    learned = {row[:2]: answer for row, answer in zip(more, answers, strict=True) if answer.skipped is None}
    assert learned == {row[:2]: told[row[:2]] for row in rows[20:]}
    assert bucket.to_bytes() == state


def test_a_poisoned_place_or_row_makes_nobody_idle():
    bucket = Bucket(plan(idle=10), 0)
    bucket.follow([("a", 0, {"load": 0.5}, 1.0), ("b", 0, {"load": 0.5}, 1.0)])
    poison = [
        ("a", np.inf, {"load": 0.5}, 1.0),
        ("a", 1e9, {"load": 0.5}, 1e300),
        ("a", 2e9, {"load": 0.5}, None),
    ]
    answers = bucket.follow(poison)
    assert answers[0].skipped == "no order"
    assert "1e+300" in answers[1].skipped
    assert answers[2].skipped == "no target"
    assert bucket.follow([("b", 1, {"load": 0.5}, 1.0)])[0].prediction == 1.0


def test_idle_keys_are_dropped_and_begin_anew():
    learner, idle = AutoKONS("regression", effort="tiny"), plan(idle=10)
    rows = [("a", t, {"load": float(t)}, 5.0) for t in range(4)] + [
        ("b", t, {"load": 0.0}, 1.0) for t in range(9)
    ]
    bucket = Bucket(idle, 0)
    bucket.follow(rows)
    assert bucket.follow([("a", 13, {"load": 1.0}, 5.0)])[0].prediction == pytest.approx(5.0)
    answers = bucket.follow([("b", 40, {"load": 0.0}, 1.0)])
    assert answers[0].prediction == learner.predict_one({"load": 0.0})
    assert bucket.keyed.keys == ["b"]
    again = Bucket(idle, 0, bucket.to_bytes())
    late, new = again.follow([("a", 14, {"load": 1.0}, 5.0), ("a", 41, {"load": 1.0}, 5.0)])
    assert late.skipped == "late"
    assert (new.skipped, new.prediction) == (None, learner.predict_one({"load": 1.0}))


def test_labels_have_predictions_and_losses():
    learner = AutoKONS("classification", effort="tiny")
    rows = [("a", t, {"load": float(t % 2)}, ("low", "high")[t % 2]) for t in range(60)]
    answers = Bucket(plan(learner), 0).follow(rows)
    assert {answer.prediction for answer in answers[-10:]} == {"low", "high"}
    assert sum(answer.loss for answer in answers[-10:]) == 0.0
    assert answers[-1].lower is None


def test_what_does_not_fit_the_state_is_refused():
    bucket = Bucket(plan(), 0)
    bucket.follow(stream(20, 2))
    state = bucket.to_bytes()
    for changes, said in (
        ({"buckets": 8}, "buckets is 8, and the state of this query was made with 4"),
        ({"columns": (*COLUMNS, ("new", "double"))}, "columns is .*new"),
        ({"features": ()}, "features"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            Bucket(plan(**changes), 0, state)
    for damaged in (b"", state[:50], b"x" + state[1:], state[:-3]):
        with pytest.raises(FileError):
            Bucket(plan(), 0, damaged)
    small = Bucket(plan(largest=20_000), 3)
    small.follow(stream(20, 2))
    with pytest.raises(
        FileError, match=r"bucket 3 of 4 holds 2 keys in [0-9,]+ bytes, at most 20,000.*buckets=1[0-9]"
    ):
        small.to_bytes()
