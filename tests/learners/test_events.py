"""Events: the statistics beside their definitions over all rows, and what a learner makes of them."""

import json
import math

import numpy as np
import pytest

from kons import AutoKONS, Classifier, EmbeddedKONS, Gaussian, Logistic, Scaled, Squared
from kons.errors import ConfigurationError, FileError, InputError
from kons.files import from_bytes, to_bytes
from kons.learners.events import KINDS, MOST_EVENTS, Event, EventLog, as_kinds
from kons.learners.predictive import Intervals
from kons.learners.watch import FOUND, GAP, NUMBER, TURNED, Watch

RANDOM = np.random.default_rng(3)


# ---- the statistics, from their definitions


def runs(flags):
    """How many equal neighbours stand before each row, without a break."""
    found, run = [], 0
    for flag in flags:
        run = run + 1 if flag else 0
        found.append(run)
    return found


def told_runs(lengths, usual):
    """Rows at which a run is told: 20 long, twice as long as those before, of a chance below 1e-9."""
    told, longest, before, done = [], 0, 0, False
    for t, run in enumerate(lengths):
        if run <= 1 and before > run:
            longest = max(longest, before)
        if run <= 1:
            done = False
        p = usual(t, run)
        if run >= max(20, 2 * longest) and not done and run * math.log(p) < math.log(1e-9):
            told.append((t, float(run)))
            done = True
        before = run
    return told


def naive_columns(x, gaps):
    """Of one column of numbers, with and without a value: what is told, by kind."""
    known = np.flatnonzero(~gaps)
    found, outside = [], 0
    for t in known:
        seen = x[known[known < 256 * (t // 256)]]
        excess = 0.0
        if t >= 512 and np.ptp(seen) > 0.0:
            excess = max(x[t] - seen.max(), seen.min() - x[t]) / np.ptp(seen)
        outside = outside + 1 if excess > 0.5 else 0
        if outside in (1, 20):
            found.append((t, "out of range", "info" if outside == 1 else "alarm"))
    values = x[known]
    same = np.append(False, values[1:] == values[:-1])
    length = runs(same)
    frozen = told_runs(length, lambda t, run: (same[: t + 1].sum() - run + 1) / (t + 1 - run + 1))
    found += [(known[t], "frozen", "alarm") for t, _ in frozen]
    length = runs(gaps)
    stays = np.append(False, gaps[1:] & gaps[:-1])
    missing = told_runs(
        length, lambda t, run: (stays[: t + 1].sum() - run + 2) / (gaps[: t + 1].sum() - run + 2)
    )
    return sorted(found + [(t, "missing", "alarm") for t, _ in missing])


def naive_turns(losses, labelled):
    """Where the summed likelihood ratio of twice the usual loss passes the threshold."""
    told, begin = [], 0
    while begin is not None:
        blocks, usual, total, found = [], [0.0, 0.0, 0.0], 0.0, None
        for t in range(begin, len(losses)):
            e, weight = losses[t], usual[0]
            mean = usual[1] / max(weight, 1.0)
            if weight > 0.0 and not labelled:
                e = min(e, 20.0 * max(mean, 1e-300))
            if weight >= 128.0:
                if labelled:
                    p = min(max(mean, 0.005), 0.995)
                    q = min(2.0 * p, 0.5 * (1.0 + p))
                    gain = math.log(q / p) if e else math.log((1.0 - q) / (1.0 - p))
                else:
                    gain = min(mean**2 / (usual[2] / weight - mean**2), 0.5) * (
                        e / (2.0 * mean) - math.log(2.0)
                    )
                total = max(0.0, total + gain)
                if total > TURNED:
                    told.append(t)
                    found = t + 200
                    break
            if not blocks or len(blocks[-1]) == 64:
                blocks.append([])
            blocks[-1].append(e)
            if len(blocks[-1]) == 64 and len(blocks) > 1:
                lag = blocks[-2]
                usual = [
                    0.875 * u + s for u, s in zip(usual, (64, sum(lag), sum(v * v for v in lag)), strict=True)
                ]
        begin = found
    return told


def naive_creeps(losses):
    """Where the mean of a window's rows so far is clearly above the lowest of the windows before."""
    told, best = [], None
    for start in range(0, len(losses), 1024):
        for stop in range(start + 128, min(start + 1024, len(losses)) + 1, 128):
            part = losses[start:stop]
            mean, error = part.mean(), part.var() / len(part)
            if best is not None and mean > 1.25 * best[0] and mean - best[0] > 4 * math.sqrt(error + best[1]):
                told.append(stop - 1)
                best = None
        if stop == start + 1024 and (best is None or mean < best[0]):
            best = mean, error
    return told


def noticed(watch, X, y, losses, labelled=False):
    return [(row, *FOUND[kind], feature) for row, kind, feature, _ in watch.learn(X, y, losses, labelled)]


@pytest.mark.parametrize("seed", range(3))
def test_columns_are_watched_as_defined(seed):
    random = np.random.default_rng(seed)
    rows = 1300
    x = np.round(random.normal(size=rows), seed)  # of few values, and of many
    x[700:760], x[900], x[950:980] = x[700], 30.0, 40.0
    gaps = random.uniform(size=rows) < 0.1
    gaps[600:680] = True
    watch = Watch()
    watch.plan([NUMBER, GAP], [1, -1])
    X = np.column_stack([np.where(gaps, 0.0, x), gaps])
    found = [told[:3] for told in noticed(watch, X, np.full(rows, np.nan), np.full(rows, np.nan))]
    assert sorted(found) == naive_columns(x, gaps)
    assert {kind for _, kind, _ in found} >= {"frozen", "missing", "out of range"}


@pytest.mark.parametrize("labelled", [False, True])
def test_losses_are_watched_as_defined(labelled):
    random = np.random.default_rng(4)
    size = np.repeat([1.0, 3.0, 0.5, 2.0, 2.0], 500)
    losses = random.normal(size=2500) ** 2 * size
    if labelled:
        losses = (random.uniform(size=2500) < 0.1 * size).astype(float)
    watch = Watch()
    nothing = np.full(2500, np.nan)
    found = noticed(watch, np.empty((2500, 0)), nothing, losses, labelled)
    turned = [row for row, kind, *_ in found if kind == "turned"]
    assert turned == naive_turns(losses, labelled)
    assert any(500 <= row < 700 for row in turned)


def test_a_loss_that_creeps_up_is_noticed_once_a_level():
    random = np.random.default_rng(4)
    losses = random.normal(size=8192) ** 2 * np.linspace(1.0, 2.0, 8192)
    found = noticed(Watch(), np.empty((8192, 0)), np.full(8192, np.nan), losses)
    assert [told[:3] for told in found] == [(row, "crept", "alarm") for row in naive_creeps(losses)]
    assert len(found) > 1
    quiet = noticed(Watch(), np.empty((8192, 0)), np.full(8192, np.nan), losses / np.linspace(1.0, 2.0, 8192))
    assert not quiet


def test_targets_and_classes():
    y = RANDOM.uniform(size=700)
    y[600], y[650:680] = -3.0, 4.0
    nothing = np.full(700, np.nan)
    found = [told[:3] for told in noticed(Watch(), np.empty((700, 0)), y, nothing)]
    kind = "target out of range"
    assert found == [(600, kind, "info"), (650, kind, "info"), (669, kind, "alarm")]
    codes = np.append(np.arange(600) % 3, np.full(100, 3.0))
    codes[99] = 2.0
    found = noticed(Watch(), np.empty((700, 0)), codes, nothing, True)
    assert found == [(600, "new class", "info", -1)]


# ---- the log


def test_a_repeated_event_is_one_with_a_count():
    log = EventLog()
    for row in (10, 500, 1400, 2500):
        log.add(Event(row, None, "frozen", "alarm", ("a",), 20.0 + row, "", 1, row))
        log.add(Event(row, None, "frozen", "alarm", ("b",), 20.0, "", 1, row))
    of_a = [event for event in log.events if event.columns == ("a",)]
    assert [(event.row, event.count, event.last) for event in of_a] == [(10, 3, 1400), (2500, 1, 2500)]
    assert of_a[0].size == 1420.0
    log.add(Event(2501, None, "out of range", "info", (), 1.0, "", 1, 2501))
    log.add(Event(2502, None, "out of range", "alarm", (), 0.5, "", 1, 2502))
    assert (log.events[-1].severity, log.events[-1].count) == ("alarm", 2)
    for row in range(0, 2000 * MOST_EVENTS + 1, 2000):
        log.add(Event(row, None, "turned", "alarm", (), 2.0, "", 1, row))
    assert len(log.events) == MOST_EVENTS


# ---- of a learner

X = RANDOM.uniform(-1.0, 1.0, size=(1400, 3))
Y = 0.8 * np.sin(3.0 * X[:, 0])
X[700:740, 1], X[800, 2], Y[1100:] = 0.25, 9.0, -Y[1100:]


def embedded():
    return EmbeddedKONS(Gaussian(0.7), Squared(), second_order="hessian", forgetting=0.99, max_atoms=20)


def test_events_are_the_same_however_rows_come():
    learner, calls = embedded(), []
    learner.on_event = calls.append
    learner.advance(X, Y)
    events = learner.events
    assert [(e.kind, e.severity, e.columns) for e in events][:2] == [
        ("frozen", "alarm", (1,)),
        ("out of range", "info", (2,)),
    ]
    assert any(event.kind == "turned" and 1100 <= event.row < 1200 for event in events)
    assert len(calls) == sum(event.count for event in events)
    assert "frozen of 1 at row 720" in str(events[0])
    assert json.loads(json.dumps(events[0].as_dict()))["columns"] == ["1"]
    for way in ("rows", "predicted", "blocks", "asked", "resumed"):
        other, told = embedded(), []
        if way != "rows":
            other.on_event = told.append
        for i in range(0, len(X), 7):
            part = slice(i, i + 7)
            if way == "blocks":
                other.advance(X[part], Y[part])
                continue
            if way == "resumed" and i == 721:
                other = EmbeddedKONS.from_state(other.parameters(), other.state())
            for k, (x, y) in enumerate(zip(X[part], Y[part], strict=True)):
                if way == "asked":
                    other.ask(x, i + k)
                    other.tell(i + k, y)
                    continue
                if way == "predicted":
                    other.predict_one(x)
                other.learn_one(x, y)
        assert other.events == events, way
        assert way in ("rows", "resumed") or told == calls


def test_an_error_takes_events_back():
    learner = embedded()
    learner.advance(X[:719], Y[:719])
    before = learner.state()
    with pytest.raises(InputError):
        learner.advance(X[719:], [*Y[719:-1], np.nan])
    assert learner.events == []
    np.testing.assert_equal(learner.state(), before)
    learner.learn_one(X[719], Y[719])
    learner.learn_one(X[720], Y[720])
    assert [event.kind for event in learner.events] == ["frozen"]


def test_a_forged_state_of_events_is_refused():
    learner = embedded()
    learner.advance(X, Y)
    state = learner.state()
    for wrong in (
        ["turned"],
        [(1, None, "rained", "alarm", 1.0, 1, 1)],
        [(1, None, "turned", "alarm", 1.0, 0, 1)],
    ):
        forged = {**state, "watch": {**state["watch"], "log": {"events": wrong}}}
        with pytest.raises(FileError, match="holds something else than events"):
            EmbeddedKONS.from_state(learner.parameters(), forged)


@pytest.mark.parametrize("name", [2.5, ("a", "b"), True, "heat"])
def test_columns_of_any_name_are_saved(name):
    learner = embedded()
    learner.advance(X[:5], Y[:5])
    learner.watch.log.add(Event(3, None, "frozen", "alarm", (name,), 20.0, KINDS["frozen"], 1, 3))
    assert from_bytes(to_bytes(learner)).events == learner.events


def test_tables_have_names_dates_levels_and_gaps():
    start = np.datetime64("2024-01-01T00", "us")
    rows = [
        {"size": float(x), "kind": "ab"[i % 2], "when": start + np.timedelta64(i, "h")}
        for i, x in enumerate(X[:400, 0])
    ]
    rows[300]["kind"] = "c"
    for row in rows[340:380]:
        row["size"] = None
    names = [f"id {i}" for i in range(400)]
    model, single = (Scaled(EmbeddedKONS(Gaussian("auto"), Squared(), max_atoms=10), warmup=50) for _ in "ab")
    for one, name in zip(rows, names, strict=True):
        one["name"] = name  # never twice: no news
    model.advance(rows, Y[:400])
    for row, y in zip(rows, Y[:400], strict=True):
        single.learn_one(row, float(y))
    found = [(e.row, e.kind, e.columns) for e in model.events]
    assert (300, "new level", ("kind",)) in found
    assert [kind for _, kind, columns in found if columns == ("size",)] == ["missing"]
    assert model.events[0].time == start + np.timedelta64(300, "h")
    assert single.events == model.events
    assert Scaled.from_state(model.parameters(), model.state()).events == model.events
    assert not [event for event in model.events if event.columns == ("name",)]


def test_classes_are_watched_from_outside_only():
    model = Classifier(EmbeddedKONS(Gaussian(0.7), Logistic(), max_atoms=20))
    labels = np.where(Y[:700] > 0.0, "up", "down").tolist()
    labels[600] = "sideways"
    model.advance(X[:700], labels)
    assert [(e.row, e.kind, e.severity) for e in model.events] == [(600, "new class", "info")]


def test_auto_sees_a_function_creep_that_it_follows():
    random = np.random.default_rng(0)
    U = random.normal(size=(1600, 2))
    angle = np.arange(1600) * 2.0 * math.pi / 6000
    y = np.cos(angle) * U[:, 0] + np.sin(angle) * U[:, 1] + 0.1 * random.normal(size=1600)
    model = AutoKONS(effort="low", max_atoms=20, experts=3)
    model.advance(U[:800], y[:800])
    model.advance(U[800:], y[800:])
    assert "crept" in [event.kind for event in model.events]
    still = AutoKONS(effort="low", max_atoms=20, experts=3)
    still.advance(U, U[:, 0] + 0.1 * random.normal(size=1600))
    assert not still.events


def test_kinds_by_name():
    with pytest.raises(ConfigurationError, match="no kind of event called 'rain'"):
        as_kinds(["turned", "rain"])


def covered(missed):
    """Where three times as many rows lie outside of intervals of 90 % as should, by their log-likelihood."""
    found, total = [], 0.0
    for row, outside in enumerate(missed):
        total = max(0.0, total + (math.log(3.0) if outside else math.log(7.0 / 9.0)))
        if total > 12.0:
            found.append(row)
            total = 0.0
    return found


def test_coverage_that_is_lost_is_told_at_the_same_row_however_rows_are_cut():
    random = np.random.default_rng(5)
    U = random.uniform(-1.0, 1.0, size=(1200, 2))
    wrong = random.uniform(size=1200) < np.where(np.arange(1200) < 800, 0.02, 0.4)
    labels = np.where((U[:, 0] > 0.0) ^ wrong, "up", "down")
    whole, single = (Classifier(EmbeddedKONS(Gaussian(0.7), Logistic(), max_atoms=20)) for _ in "ab")
    whole.advance(U, labels)
    missed = []
    for u, label in zip(U, labels, strict=True):
        missed.append(bool(missed) and label not in single.predict_set_one(u, 0.9))
        single.learn_one(u, label)
    events = [event for event in whole.events if event.kind == "coverage lost"]
    assert events
    assert all(event.severity == "alarm" and event.row >= 800 for event in events)
    assert single.events == whole.events
    assert [event.row for event in events] == covered(missed)[:1]
    assert sum(event.count for event in events) == len(covered(missed))


def sharp():
    return EmbeddedKONS(Gaussian(0.7), Squared(), bound=4.0, second_order="hessian", regularization=0.01)


def test_a_row_that_is_far_newer_than_all_of_late_is_told():
    learner, single = sharp(), sharp()
    rows = X[:700].copy()
    rows[600] += 6.0
    learner.advance(rows, Y[:700])
    (event,) = [event for event in learner.events if event.kind == "novelty high"]
    assert (event.row, event.severity) == (600, "info")
    assert event.size == pytest.approx(novel_by(rows, Y[:700]), rel=1e-3)
    for x, y in zip(rows, Y[:700], strict=True):
        single.learn_one(x, float(y))
    assert single.events == learner.events


def novel_by(rows, targets):
    """log(1 + novelty) of row 600, over the largest from row 64 on, which fades by 0.002 a row."""
    novelties = np.log1p(sharp().advance(rows, targets).novelty)
    largest = 0.0
    for row in range(64, 600):
        largest = max(0.998 * largest, novelties[row])
    return novelties[600] / max(largest, 0.1)


def test_what_is_a_little_new_where_nothing_else_is_is_no_event():
    """A novelty of 1e-3 beside 1e-9 of late was told as a million times as new."""
    rng = np.random.default_rng(4)
    told = {}
    for newness in (1e-3, 3.0):
        rows = np.zeros((700, 1, 2))
        rows[:, 0, 1] = 1e-9 * rng.uniform(size=700)
        rows[650, 0, 1] = newness
        errors = Intervals(targets=1, sizes=0)
        errors.follow(rows, rng.normal(size=(700, 1)))
        told[newness] = Watch().doubts(errors.told[0][1])
    assert [event[1] for event in told[1e-3]] == []
    assert [(event[0], event[1]) for event in told[3.0]] == [(650, "novelty high")]
    assert told[3.0][0][-1] == pytest.approx(np.log(4.0) / 0.1)


@pytest.mark.parametrize("delay", [0, 30])
def test_doubtful_rows_have_their_own_number_and_time_however_they_are_cut(delay):
    """From the second block on they had the number of a row as many before as the block was long."""
    rng, n = np.random.default_rng(0), 1700
    hours = np.datetime64("2026-01-01T00", "s") + np.arange(n) * np.timedelta64(3600, "s")
    x = rng.uniform(-1, 1, size=n)
    y = np.sin(3 * x) + 0.1 * rng.normal(size=n)
    y[1500:1540] += rng.choice([-1.0, 1.0], size=40) * 1.4 ** np.arange(40)  # faster than intervals widen
    x[1200] = 60.0
    rows = [{"time": hour.item(), "x": value} for hour, value in zip(hours, x, strict=True)]
    found = []
    for cut in (n, 77, 1, "told"):
        learner = AutoKONS(max_atoms=40, experts=3, delay=0 if cut == "told" else delay)
        for start in range(0, n, cut if type(cut) is int else 1):
            if cut == "told":  # its target comes with that of no other row
                learner.ask(rows[start], start)
                if start >= delay:
                    learner.tell(start - delay, y[start - delay])
            elif cut == 1:
                learner.learn_one(rows[start], y[start])
            else:
                learner.advance(rows[start : start + cut], y[start : start + cut])
        found.append([e for e in learner.events if e.kind in ("coverage lost", "novelty high")])
    assert [(event.kind, event.row) for event in found[0]][:1] == [("novelty high", 1200 + delay)]
    assert found[0] == found[1] == found[2]
    if not delay:
        assert found[3] == found[0]
    assert 1200 in [event.row for event in found[3] if event.kind == "novelty high"]
    assert {event.kind for event in found[0]} == {"coverage lost", "novelty high"}
    for events in found:
        assert all(event.time == hours[event.row] for event in events)


def test_rows_that_waited_have_their_events_in_the_order_of_rows():
    """What intervals tell of a row came behind what its columns tell, where each row was told by itself."""
    whole, told = sharp(), sharp()
    rows = X[:700].copy()
    rows[600] += 6.0
    whole.advance(rows, Y[:700])
    for row, (x, y) in enumerate(zip(rows, Y[:700], strict=True)):
        told.ask(x, row)
        told.tell(row, float(y))
    assert whole.events[0].kind == "novelty high"
    assert len(whole.events) > 1
    assert told.events == whole.events
