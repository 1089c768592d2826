"""Targets that come late, by identifier: refereed by a dictionary, and by rows learned k rows later."""

import copy
import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
import kons
from contracts.learners import LEARNERS, assert_identical, stream
from contracts.test_forged_states import leaves, with_leaf, wrong_values
from kons import KORS, AutoKONS, Classifier, EmbeddedKONS, Gaussian, Scaled, Squared
from kons.checks import check_learner
from kons.checks.subject import farther_apart
from kons.errors import ConfigurationError, FileError, InputError, TargetError
from kons.evaluation import (
    KernelGradientDescent,
    LastLabel,
    MajorityClass,
    OnlineLinear,
    OnlineLogistic,
    Persistence,
    Prequential,
    RunningMean,
)
from kons.files import from_bytes, to_bytes
from kons.learners.protocol import as_learner
from kons.recipes import for_task
from kons.state import Number, fields

X, Y = stream(130)
TOLERANCE = inspect.signature(check_learner).parameters["tolerance"].default


class Own:
    """The least there can be: the mean of the targets at a sign of the first feature."""

    def __init__(self):
        self.sums = np.zeros((2, 2))

    def predict_one(self, x):
        total, count = self.sums[int(x[0] > 0.0)]
        return float(total / max(count, 1.0))

    def learn_one(self, x, y):
        self.sums[int(x[0] > 0.0)] += y, 1.0

    def parameters(self):
        return {}

    def state(self):
        return {"sums": self.sums.copy()}

    @classmethod
    def from_state(cls, parameters, state):
        own = cls(**parameters)
        own.sums[:] = state["sums"]
        return own


def small(**options):
    return EmbeddedKONS(Gaussian(), Squared(), second_order="hessian", max_atoms=4, **options)


# AutoKONS keeps more of a row that waits than its point: see test_auto_late.
LATE = {
    **LEARNERS,
    "KernelGradientDescent": lambda: KernelGradientDescent(Gaussian(), Squared()),
    "own": lambda: as_learner(Own()),
}
BASELINES = {
    ("regression", "constant"): RunningMean,
    ("regression", "persistence"): Persistence,
    ("regression", "linear"): lambda: OnlineLinear(standardize=True),
    ("classification", "constant"): MajorityClass,
    ("classification", "persistence"): LastLabel,
    ("classification", "linear"): OnlineLogistic,
}
WAITING = LATE | {f"{task}, {name}": make for (task, name), make in BASELINES.items()}


def live(learner, X, y, delay):
    """What it answers where the target of a row is told after so many rows more were asked."""
    answers = []
    for t, x in enumerate(X):
        answers.append(learner.ask(x, t))
        if t >= delay:
            learner.tell(t - delay, y[t - delay])
    return answers


# ---- a delay is this queue with a fixed rule


@effort.every_value(make=LATE, delay=[7, 1, 0])
def test_a_live_loop_is_the_evaluation_with_a_delay(make, delay):
    task = "classification" if as_learner(make()).labelled else "regression"
    engine = Prequential(make(), task, delay=delay)
    blocks = [engine.advance((X[i : i + 50], Y[i : i + 50])) for i in (0, 50, 100)]
    evaluated = np.concatenate([block.prediction for block in blocks]).tolist()
    plain, later = make(), []
    for t, x in enumerate(X):
        later.append(plain.predict_one(x))
        if t >= delay:
            plain.learn_one(X[t - delay], Y[t - delay])
    for answers in (live(make(), X, Y, delay), evaluated):
        before = [answer is None for answer in answers]
        assert before == [answer is None for answer in later]
        first = before.index(False)
        assert farther_apart(answers[first:], later[first:], TOLERANCE) is None


@pytest.mark.parametrize(("task", "name"), BASELINES)
def test_so_is_a_baseline_s(task, name):
    learner = LATE["Classifier" if task == "classification" else "Scaled"]()
    engine = Prequential(learner, task, delay=7)
    losses = [engine.advance((X[i : i + 50], Y[i : i + 50])).baseline_losses[name] for i in (0, 50, 100)]
    answers = live(BASELINES[task, name](), X, Y, delay=7)
    if task == "classification":
        expected = [float(answer != target) for answer, target in zip(answers, Y, strict=True)]
    else:
        expected = (np.array(answers) - Y) ** 2
    np.testing.assert_allclose(np.concatenate(losses), expected, rtol=0, atol=TOLERANCE)


def test_a_queue_of_fixed_delay_counts_its_rows():
    learner = small()
    live(learner, X[:20], Y[:20], delay=6)
    assert learner.queue.ids == list(range(14, 20))
    assert (learner.queue.pending, learner.queue.dropped, learner.queue.repeated) == (6, 0, 0)
    assert learner.rows_seen == 14
    before = learner.nbytes
    learner.ask(X[20], 20)
    # and the answer, and prediction, novelty and scale for the intervals
    assert learner.nbytes == before + X[20].nbytes + 8 + 24


# ---- any order, twice, never: against a dictionary

IDS = st.sampled_from([0, 1, 2, 3, -5, "a", "b", "0"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), IDS, st.sampled_from([-1.0, 0.0, 1.5])),
        st.tuples(st.just("tell"), IDS, st.sampled_from([-1.0, 0.5])),
        st.tuples(st.just("forget"), IDS, st.none()),
        st.tuples(st.just("file"), st.none(), st.none()),
        st.tuples(st.just("copy"), st.none(), st.none()),
        st.tuples(st.just("mark"), st.none(), st.none()),
    ),
    max_size=40,
)


class Naive:
    """A learner, and late targets as anybody would keep them: in dictionaries, of three at most."""

    def __init__(self):
        self.learner, self.pending, self.told = small(), {}, {}
        self.dropped = self.repeated = 0

    def ask(self, id, x):
        if id in self.told or self.pending.get(id, (x, 0.0))[0] != x:
            return InputError
        if id not in self.pending:
            if len(self.pending) == 3:
                del self.pending[next(iter(self.pending))]
                self.dropped += 1
            self.pending[id] = x, self.learner.predict_one([x])
        return self.pending[id][1]

    def tell(self, id, y):
        if id in self.pending:
            self.learner.learn_one([self.pending.pop(id)[0]], y)
            if len(self.told) == 3:
                del self.told[next(iter(self.told))]
            self.told[id] = y
        elif id not in self.told:
            return InputError
        elif self.told[id] != y:
            return TargetError
        else:
            self.repeated += 1
        return None

    def forget(self, id, _):
        return None if self.pending.pop(id, None) else InputError


@effort.examples(30)
@given(STEPS)
def test_any_order_of_steps_does_what_a_dictionary_does(steps):
    learner, naive = small(), Naive()
    learner.queue.most = 3
    for step, id, value in steps:
        if step == "file":
            learner = from_bytes(to_bytes(learner))
        elif step == "copy":
            learner = copy.deepcopy(learner)
        elif step == "mark":
            mark, state = learner.mark(), learner.state()
            learner.ask([7.0], "more")
            learner.tell("more", 0.1)
            learner.restore(mark)
            assert_identical(learner.state(), state)
        else:
            expected = getattr(naive, step)(id, value)
            given = ([value], id) if step == "ask" else (id, value)[: 1 if step == "forget" else 2]
            if isinstance(expected, type):
                before = learner.state()
                with pytest.raises(expected, match="id"):
                    getattr(learner, step)(*given)
                assert_identical(learner.state(), before)
            else:
                assert getattr(learner, step)(*given) == expected
    assert learner.queue.ids == list(naive.pending)
    assert (learner.queue.dropped, learner.queue.repeated) == (naive.dropped, naive.repeated)
    assert learner.rows_seen == naive.learner.rows_seen
    assert learner.predict_one([0.3]) == naive.learner.predict_one([0.3])


# ---- files, copies, errors


@pytest.mark.parametrize("make", WAITING.values(), ids=WAITING)
def test_rows_that_wait_go_through_states_and_copies(make):
    learner = make()
    live(learner, X[:60], Y[:60], delay=9)
    twins = [copy.deepcopy(learner)]
    if as_learner(learner).saves:
        twins.append(learner.from_state(learner.parameters(), learner.state()))
    for twin in twins:
        assert twin.queue.ids == learner.queue.ids
        if as_learner(learner).saves:
            assert_identical(twin.state(), learner.state())
    for t in (55, 51, 59):
        for one in (learner, *twins):
            one.tell(t, Y[t])
    for twin in twins:
        assert twin.predict_one(X[70]) == learner.predict_one(X[70])
        assert twin.queue.pending == 6


def test_a_file_holds_rows_that_wait(tmp_path):
    learner = for_task("classification", max_atoms=20, experts=3)
    words = np.where(Y > 0, "up", "down").tolist()
    live(learner, X, words, delay=5)
    kons.save(learner, tmp_path / "model.kons")
    twin = kons.load(tmp_path / "model.kons")
    assert twin.queue.ids == [125, 126, 127, 128, 129]
    for one in (learner, twin):
        one.tell(128, "down")
        one.tell(3, words[3])
    assert twin.queue.repeated == learner.queue.repeated == 1
    assert twin.predict_proba_one(X[0]) == learner.predict_proba_one(X[0])
    assert "queue" not in for_task("classification").state()  # nothing before the first row is asked


@pytest.mark.parametrize("name", ["EmbeddedKONS, gradient", "Scaled", "Classifier"])
def test_a_queue_that_does_not_fit_is_refused(name):
    learner = LEARNERS[name]()
    live(learner, X[:70], Y[:70], delay=3)
    state, parameters = learner.state(), learner.parameters()
    queue = state["queue"]
    for path, value in leaves(queue):
        for wrong in wrong_values(value):
            if "ids" in path and wrong in ("a word", -1, 2**200):
                continue  # these may be identifiers
            with pytest.raises(FileError, match="cannot be used"):
                type(learner).from_state(parameters, {**state, "queue": with_leaf(queue, path, wrong)})
    others = {
        ("rows", "ids"): [[67, 67, 69], [0, 68, 69], [67, 68], [True, 68, 69], [2**256, 68, 69]],
        ("rows", "kept"): [[np.zeros(3)], [np.zeros((2, 1))], ["a"]],
    }
    for path, values in others.items():
        for value in values:
            with pytest.raises(FileError, match="cannot be used"):
                type(learner).from_state(parameters, {**state, "queue": with_leaf(queue, path, value)})


def test_a_row_whose_target_is_refused_still_waits():
    learner = small()
    learner.ask(X[0], "a")
    for wrong in (np.nan, None, "word", 7.0):
        with pytest.raises(InputError):
            learner.tell("a", wrong)
    assert learner.queue.ids == ["a"]
    assert learner.rows_seen == 0
    learner.tell("a", 0.5)
    assert learner.rows_seen == 1
    learner.tell("a", np.float32(0.5))
    with pytest.raises(
        TargetError, match=r"'a' was told 0\.5, now 0\.25: what was learned cannot be taken back"
    ):
        learner.tell("a", 0.25)


def test_the_same_id_again_repeats_the_answer_as_it_was_given():
    learner = small()
    learner.tell(learner.ask(X[0], "first") or "first", 1.0)
    answer = learner.ask(X[1], "second")
    learner.learn_one(X[1], -1.0)
    assert learner.ask(X[1].tolist(), "second") == answer != learner.predict_one(X[1])
    with pytest.raises(InputError, match="'second' waits for its target with another x"):
        learner.ask(X[2], "second")
    with pytest.raises(InputError, match="'first' was told already"):
        learner.ask(X[0], "first")
    learner.forget("second")
    with pytest.raises(InputError, match="no row waits under the id 'second'"):
        learner.tell("second", 1.0)
    with pytest.raises(InputError, match="no row waits under the id 'second'"):
        learner.forget("second")


@pytest.mark.parametrize("id", [None, 1.0, True, b"a", (1,), 2**256])
def test_an_id_is_text_or_an_integer(id):
    learner = small()
    for call in (lambda: learner.ask(X[0], id), lambda: learner.tell(id, 1.0), lambda: learner.forget(id)):
        with pytest.raises(InputError, match="expected text, or an integer"):
            call()
    learner.ask(X[0], np.int64(7))
    learner.tell(7, 1.0)
    learner.ask(X[0], np.str_("7"))
    learner.forget("7")


def test_rows_that_wait_are_copies_and_of_one_width():
    learner, x = small(), X[0].copy()
    learner.ask(x, 0)
    x[:] = 9.0
    learner.tell(0, 1.0)
    twin = small()
    twin.learn_one(X[0], 1.0)
    assert learner.predict_one(X[1]) == twin.predict_one(X[1])
    for new in (small(), as_learner(Own()), OnlineLinear()):
        new.ask([1.0, 2.0], "a")
        with pytest.raises(InputError, match=r"x has 3 feature\(s\)"):
            new.ask(X[0], "b")
        assert new.queue.ids == ["a"]


def test_what_learns_no_targets_has_no_queue():
    with pytest.raises(ConfigurationError, match="KORS learns no targets"):
        KORS(Gaussian()).ask(X[0], 1)


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_how_many_may_wait(most):
    learner = small()
    for t in range(6):
        learner.ask(X[t], t)
    for t in range(3):
        learner.tell(t, Y[t])
    with pytest.raises(ConfigurationError, match="most"):
        learner.queue.most = most
    learner.queue.most = 2
    learner.ask(X[6], 6)  # for which two make room
    assert (learner.queue.ids, learner.queue.dropped) == ([5, 6], 2)
    with pytest.raises(InputError, match="no row waits under the id 0"):
        learner.tell(0, Y[0])  # only the last two are remembered
    learner.tell(2, Y[2])
    assert learner.queue.repeated == 1


# ---- what a learner saw when a row was asked


class Lagged(EmbeddedKONS):
    """The target learned last is a feature more: a row that waits keeps the one that it saw."""

    STATE = fields(last=Number())
    last = 0.0

    def predict_one(self, x):
        return super().predict_one(np.append(x, self.last))

    def row_to_keep(self, x):
        return (*super().row_to_keep(x), np.array([self.last]), np.eye(2))

    def kept_shapes(self):
        return (*super().kept_shapes(), (1,), (2, 2))

    def learn_kept_row(self, kept, y):
        self.learn_one(np.append(*kept[:2]), y)
        self.last = float(y)


def test_a_row_that_waits_keeps_what_its_learner_says():
    learner, engine = (Lagged(Gaussian(), Squared(), max_atoms=9) for _ in range(2))
    plain, seen, last = EmbeddedKONS(Gaussian(), Squared(), max_atoms=9), [], 0.0
    expected = []
    for t, x in enumerate(X):
        seen.append(np.append(x, last))
        expected.append(plain.predict_one(seen[t]))
        if t >= 4:
            plain.learn_one(seen[t - 4], Y[t - 4])
            last = Y[t - 4]
    said = live(learner, X[:77], Y, delay=4)
    twin = Lagged.from_state(learner.parameters(), learner.state())
    for t in range(77, len(X)):
        said.append(twin.ask(X[t], t))
        twin.tell(t - 4, Y[t - 4])
    assert said == expected
    evaluated = Prequential(engine, "regression", delay=4).advance((X, Y)).prediction
    np.testing.assert_allclose(evaluated, expected, rtol=0, atol=TOLERANCE)
    state = learner.state()
    assert [piece.shape for piece in state["queue"]["rows"]["kept"]] == [(4, 1), (4, 2, 2), (4, 3)]
    note = np.zeros((4, 3))
    for wrong in (
        [note],
        [np.zeros((4, 1)), note],
        [np.zeros((4, 2)), np.zeros((4, 2, 2)), note],
        [note] * 3,
    ):
        forged = with_leaf(state, ("queue", "rows", "kept"), wrong)
        with pytest.raises(FileError, match="cannot be used"):
            Lagged.from_state(learner.parameters(), forged)


# ---- interleaved


@pytest.mark.parametrize("make", [small, lambda: Classifier(small()), lambda: AutoKONS(max_atoms=9), Own])
def test_rows_are_interleaved_as_they_become_known(make):
    """Some targets at once, then none for a while; rows left over are handed back, and learned later."""
    told, live_one = as_learner(make()), as_learner(make())
    known = np.array([0, 0, 0, 3, 3, 3, 3, 5, 6, 6])
    first = told.interleave(X[:10], [], Y[:7], known)
    assert len(first.waiting) == 3
    second = told.interleave(X[10:12], first.waiting, Y[7:11], np.array([1, 3]))
    assert len(second.waiting) == 1
    said, learned = [], 0
    for t, count in enumerate([*known.tolist(), 8, 10]):
        for row in range(learned, count):
            live_one.tell(row, Y[row])
        learned = count
        said.append(live_one.ask(X[t], t))
    live_one.tell(10, Y[10])
    assert [*first.trace.prediction, *second.trace.prediction] == said
    assert told.rows_seen == live_one.rows_seen == 11
    assert told.predict_one(X[20]) == live_one.predict_one(X[20])
    if told.labelled:
        assert first.probabilities.shape == (10, 2)
        assert first.probabilities[:3].tolist() == [[0.0, 0.0]] * 3  # no class was known
        np.testing.assert_allclose(first.probabilities[3:].sum(axis=1), 1.0)


def test_nothing_late_is_advance():
    for make in (small, lambda: Classifier(small())):
        told, twin = make(), make()
        found, trace = told.interleave(X[:30], [], Y[:30], np.arange(30)), twin.advance(X[:30], Y[:30])
        assert_identical(found.trace.columns, trace.columns)
        assert found.waiting == []
        assert_identical(told.state(), twin.state())


# ---- stopped from outside


class Interrupted(EmbeddedKONS):
    """Somebody presses Ctrl-C before a row is learned, or just behind."""

    when = ""

    def learn_kept_row(self, kept, y):
        if self.when == "before":
            raise KeyboardInterrupt
        super().learn_kept_row(kept, y)
        if self.when == "behind":
            raise KeyboardInterrupt


def test_a_row_is_settled_with_its_learning_or_not_at_all():
    learner, twin = (Interrupted(Gaussian(), Squared(), max_atoms=9) for _ in range(2))
    learner.queue.most = twin.queue.most = 2
    for t in range(2):
        learner.ask(X[t], t)
        twin.ask(X[t], t)
    learner.when = "before"
    with pytest.raises(KeyboardInterrupt):
        learner.tell(0, Y[0])
    assert_identical(learner.state(), twin.state())
    assert learner.queue.ids == [0, 1]
    learner.when = "behind"
    with pytest.raises(KeyboardInterrupt):
        learner.tell(0, Y[0])
    twin.tell(0, Y[0])
    assert_identical(learner.state(), twin.state())
    learner.tell(0, Y[0])  # again: it was learned
    assert (learner.queue.ids, learner.queue.repeated, learner.rows_seen) == ([1], 1, 1)


# ---- more features in between


@pytest.mark.parametrize("model", [small, lambda: Classifier(small()), AutoKONS])
def test_rows_that_wait_have_zeros_in_columns_that_come_later(model):
    for learned in (0, 30):
        learner, twin = model(), model()
        for one, rows in ((learner, X), (twin, np.pad(X, ((0, 0), (0, 2))))):
            for t in range(learned):
                one.learn_one(rows[t], Y[t])
            one.ask(rows[50], "waits")
        learner.widen(2)
        wide = np.random.default_rng(1).normal(size=(20, 5))
        for one in (learner, twin):
            one.tell("waits", 1.0)
            for t in range(20):
                one.learn_one(wide[t], Y[t])
        verb = "decision_function" if learner.labelled else "predict"
        answers = [getattr(one, verb)(wide) for one in (learner, twin)]
        np.testing.assert_allclose(*answers, rtol=0, atol=1e-9)


def test_rows_that_wait_have_the_median_where_features_are_scaled():
    learner = Scaled(small(), warmup=20)
    learner.advance(X[:40], Y[:40])
    learner.ask(X[50], "waits")
    twin = copy.deepcopy(learner)
    samples = [[70.0], [75.0], [80.0]]
    learner.widen(samples=samples)
    learner.tell("waits", 1.0)
    twin.forget("waits")
    twin.widen(samples=samples)
    twin.learn_one([*X[50], 75.0], 1.0)
    query = [*X[60], 72.0]
    assert learner.predict_one(query) == twin.predict_one(query)


def test_rows_of_a_width_that_was_not_to_be():
    """Asked before the first row is learned, which then is wider: they wait, are saved, and are refused."""
    learner = small()
    learner.ask([1.0, 2.0], "narrow")
    learner.learn_one(X[0], 1.0)
    twin = from_bytes(to_bytes(learner))
    for one in (learner, twin):
        with pytest.raises(InputError, match=r"rows that wait have 2: tell or forget them"):
            one.ask(X[1], "wide")
        with pytest.raises(InputError, match="x has 2 feature"):
            one.tell("narrow", 1.0)
        one.forget("narrow")
        one.ask(X[1], "wide")
        assert one.queue.ids == ["wide"]


@pytest.mark.parametrize("name", ["auto", "embedded"])
def test_columns_that_join_while_rows_wait_join_those_rows(name):
    """Rows are learned by themselves while others wait, and bring a level, a gap or a column."""
    learner = for_task("regression", name)
    for i in range(30):
        learner.learn_one({"a": float(i), "c": "uv"[i % 2]}, float(i))
    learner.ask({"a": 1.5, "c": "u"}, "waits")
    learner.learn_one({"a": None, "c": "w", "b": 2.0}, 1.0)
    learner.ask({"a": 2.5, "c": "v", "b": 1.0}, "came later")
    with pytest.raises(InputError):  # its first row brought a column
        learner.advance([{"a": 1.0, "c": "u", "d": 1.0}, {"a": np.inf, "c": "u"}], [1.0, 2.0])
    learner.ask({"a": 3.5, "c": "v", "b": 1.0}, "last")
    twin = from_bytes(to_bytes(learner))
    for one in (learner, twin):
        one.tell("last", 3.0)
        one.tell("waits", 1.0)
        one.tell("came later", 2.0)
    assert to_bytes(learner) == to_bytes(twin)
    assert learner.rows_seen == 34
