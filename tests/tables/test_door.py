"""Tables at the border of every learner: names, dicts, gaps, late targets, files; errors leave no trace."""

import numpy as np
import pandas as pd
import pytest

from contracts.learners import assert_identical
from kons import (
    KONS,
    KORS,
    AutoKONS,
    Classifier,
    EmbeddedKONS,
    Gaussian,
    Logistic,
    Scaled,
    SketchedKONS,
    Squared,
)
from kons.errors import InputError
from kons.files import from_bytes, to_bytes
from tables.record_streams import mixed

ROWS, NUMBERS = mixed(160, seed=7, levels=4)
Y = np.tanh(np.array(NUMBERS) - np.mean(NUMBERS)).tolist()
LABELS = ["high" if y > 0.2 else "low" if y > -0.5 else "least" for y in Y]
LEARNERS = {
    "kons": (lambda: KONS(Gaussian(), Squared()), Y),
    "sketched": (lambda: SketchedKONS(Gaussian(), Squared(), seed=1), Y),
    "embedded": (lambda: EmbeddedKONS(Gaussian(), Squared(), max_atoms=20), Y),
    "scaled": (lambda: Scaled(EmbeddedKONS(Gaussian("auto"), Squared(), max_atoms=20), warmup=30), NUMBERS),
    "classifier": (lambda: Classifier(EmbeddedKONS(Gaussian(), Logistic(), max_atoms=20)), LABELS),
    "auto": (lambda: AutoKONS(max_atoms=20, experts=3), NUMBERS),
    "auto of classes": (lambda: AutoKONS("classification", max_atoms=20, experts=3), LABELS),
}
each_learner = pytest.mark.parametrize(("make", "y"), LEARNERS.values(), ids=LEARNERS)


def frame(rows):
    return pd.DataFrame(rows, columns=["a", "mostly", "word", "when", "late", "late word"])


def close(found, expected):
    if isinstance(expected, (float, np.floating)):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    else:
        assert found == expected


@each_learner
def test_dicts_lists_and_frames_are_the_same(make, y):
    single, listed, framed = make(), make(), make()
    said = []
    for x, target in zip(ROWS, y, strict=True):
        said.append(single.predict_one(x))
        single.learn_one(x, target)
    trace = listed.advance(ROWS[:90], y[:90])
    listed.advance(ROWS[90:], y[90:])
    framed.advance(frame(ROWS), y)
    for found, expected in zip(trace.prediction.tolist(), said, strict=False):
        close(found, expected)
    assert_identical(listed.encoder.state(), single.encoder.state())
    assert_identical(framed.encoder.state(), single.encoder.state())
    assert single.feature_names == framed.feature_names
    for i, x in enumerate(ROWS[:5]):
        # The row that comes next is not the row away from the stream, where last targets have a say.
        known = {"recent_targets": True} if single.looks_back else {}
        alone = framed.predict([x], **known)[0]
        close(alone, single.predict_one(x))
        close(framed.predict(frame(ROWS[:5]), **known)[i], alone)


@each_learner
def test_columns_are_known_by_name(make, y):
    model, permuted = make(), make()
    table = frame(ROWS)
    model.advance(table, y)
    permuted.advance(table[["when", "late word", "word", "late", "a", "mostly"]], y)
    assert_identical(permuted.state(), model.state())
    assert_identical(model.predict(table[table.columns[::-1]]), model.predict(table))
    before = model.state()
    for wrong, words in (
        (table.rename(columns={"word": "words"}), "no column 'word', .* was 'words' renamed"),
        (table.drop(columns="a"), "no column 'a'"),
    ):
        for call in (model.predict, lambda rows: model.advance(rows, y)):
            with pytest.raises(InputError, match=words):
                call(wrong)
    assert_identical(model.state(), before)


@each_learner
def test_a_file_holds_the_encoder(make, y):
    model = make()
    model.advance(ROWS[:70], y[:70])
    twin = from_bytes(to_bytes(model))
    for each in (model, twin):
        each.advance(ROWS[70:], y[70:])
    assert_identical(twin.state(), model.state())
    assert_identical(twin.predict(frame(ROWS)), model.predict(frame(ROWS)))


@each_learner
@pytest.mark.parametrize("at", [0, 60])
def test_errors_leave_no_trace(make, y, at):
    model = make()
    if at:
        model.advance(ROWS[:at], y[:at])
    before = model.state()
    bad = {"a": float("inf")}
    for call in (
        lambda: model.advance([*ROWS[at : at + 30], ROWS[at] | bad], y[: at + 31][-31:]),
        lambda: model.advance(ROWS[at : at + 30], [*y[:29], None]),
        lambda: model.advance(ROWS[at : at + 30], y[:29]),
        lambda: model.learn_one(ROWS[at] | bad, y[at]),
        lambda: model.learn_one(ROWS[at], None),
        lambda: model.predict_one(bad),
        lambda: model.ask(bad, "id"),
    ):
        with pytest.raises(InputError):
            call()
        assert_identical({k: v for k, v in model.state().items() if k != "queue"}, before)


@each_learner
def test_targets_that_come_late(make, y):
    model = make()
    for t, x in enumerate(ROWS):
        model.ask(x, t)
        if t >= 4:
            model.tell(t - 4, y[t - 4])
        if t == 80:
            model = from_bytes(to_bytes(model))
    model.forget(159)
    assert model.queue.ids == [156, 157, 158]
    straight = make()
    straight.advance(ROWS[:156], y[:156])
    assert_identical(model.encoder.state() | {"asked": []}, straight.encoder.state())


def test_arrays_and_names_do_not_mix():
    model = EmbeddedKONS(Gaussian(), Squared())
    model.advance(np.zeros((5, 2)), np.zeros(5))
    before = model.state()
    for call in (lambda: model.learn_one({"a": 1.0}, 0.0), lambda: model.predict(pd.DataFrame({"a": [1.0]}))):
        with pytest.raises(InputError, match="arrays without names"):
            call()
    assert_identical(model.state(), before)


def test_several_targets_have_statistics_each():
    targets = np.stack([NUMBERS, np.roll(NUMBERS, 1)], axis=1)
    one, many = (AutoKONS(max_atoms=20, experts=3) for _ in range(2))
    many.advance(ROWS, targets)
    for x, y in zip(ROWS, targets.tolist(), strict=True):
        one.learn_one(x, y)
    assert_identical(one.encoder.state(), many.encoder.state())
    assert [sorted(map(str, shares)) for shares in many.column_relevances] == [
        sorted({k for x in ROWS for k in x})
    ] * 2


def test_relevances_by_column():
    model = AutoKONS(max_atoms=30, experts=4)
    rng = np.random.default_rng(1)
    rows = [{"size": v, "noise": w} for v, w in rng.normal(size=(600, 2)).tolist()]
    for i, x in enumerate(rows):
        x["word"] = "xyz"[i % 3]
        if i % 7 == 0:
            del x["noise"]
    model.advance(rows, [3.0 * x["size"] + (x["word"] == "x") for x in rows])
    shares = model.column_relevances
    assert shares["size"] == 1.0 > shares["word"] > shares["noise"] >= 0.0
    sums = {}
    for owner, relevance in zip(model.encoder.owners, model.relevances.tolist(), strict=True):
        sums[owner] = sums.get(owner, 0.0) + relevance
    assert shares == {name: total / max(sums.values()) for name, total in sums.items()}
    arrays = AutoKONS(max_atoms=30, experts=4)
    arrays.advance(rng.normal(size=(100, 3)), rng.normal(size=100))
    assert_identical(np.array([arrays.column_relevances[i] for i in range(3)]), arrays.relevances)


def test_one_that_learns_no_targets_is_left_alone():
    sampler = KORS(Gaussian())
    sampler.advance(np.zeros((3, 2)))
    assert sampler.rows_seen == 3
