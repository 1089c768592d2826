"""A learner that breaks one promise is caught by the check of that promise, and by no other."""

import threading

import numpy as np
import pytest

from kons import Classifier, EmbeddedKONS, Gaussian, Logistic, Squared
from kons.arrays import as_points, as_row, as_scalar, as_targets
from kons.checks import CHECKS, CheckFailed, check_learner, sign_stream
from kons.errors import ConfigurationError, KonsError
from kons.learners import Trace


class Honest:
    """A small learner of somebody's own: the nearest of a few points, kept by a coin, says its target.

    It is not in the table of files, and knows nothing of kons but its border and its traces.
    """

    def __init__(self, max_atoms=5, seed=0):
        self.max_atoms, self.seed = max_atoms, seed
        self.points, self.targets, self.rows_seen = [], [], 0
        self.coins = np.random.default_rng(seed)

    @property
    def size(self):
        return len(self.points)

    def parameters(self):
        return {"max_atoms": self.max_atoms, "seed": self.seed}

    def state(self):
        return {
            "points": [point.copy() for point in self.points],
            "targets": list(self.targets),
            "rows_seen": self.rows_seen,
            "coins": self.coins.bit_generator.state,
        }

    @classmethod
    def from_state(cls, parameters, state):
        learner = cls(**parameters)
        learner.points = [point.copy() for point in state["points"]]
        learner.targets = list(state["targets"])
        learner.rows_seen = state["rows_seen"]
        learner.coins.bit_generator.state = state["coins"]
        return learner

    def _points(self, X):
        return as_points(X, width=len(self.points[0]) if self.points else None)

    def _row(self, x):
        return as_row(x, width=len(self.points[0]) if self.points else None)[0]

    def _nearest(self, x):
        distances = [float(np.sum((x - point) ** 2)) for point in self.points]
        if not distances:
            return 0.0
        nearest = int(np.argmin(distances))
        return self.targets[nearest] * float(np.exp(-distances[nearest]))

    def _keep(self, x, y):
        if len(self.points) == self.max_atoms:
            del self.points[0], self.targets[0]
        self.points.append(x.copy())
        self.targets.append(y)

    def _learn(self, x, y):
        self.rows_seen += 1
        if self.coins.random() < 0.5 or not self.points:
            self._keep(x, y)

    def advance(self, X, y, block_size=None):
        X, y = self._points(X), as_targets(y, len(X))
        prediction, size = np.empty(len(X)), np.empty(len(X), np.int64)
        for t in range(len(X)):
            prediction[t] = self._nearest(X[t])
            self._learn(X[t], float(y[t]))
            size[t] = self.size
        return Trace(kept=np.ones(len(X), bool), size=size, prediction=prediction)

    def learn_one(self, x, y):
        row, target = self._row(x), as_scalar(y, name="y")
        self._learn(row, target)

    def predict(self, X):
        return np.array([self._nearest(x) for x in self._points(X)])

    def predict_one(self, x):
        return self._nearest(self._row(x))


class SeedsItselfFromTheClock(Honest):
    def __init__(self, max_atoms=5, seed=0):
        super().__init__(max_atoms, seed)
        self.coins = np.random.default_rng()


class TossesTheCoinsOfAll(Honest):
    """Of NumPy's old generator, which everybody shares."""

    def _keep(self, x, y):
        self.coins = np.random.default_rng(np.random.randint(1000))  # noqa: NPY002
        super()._keep(x, y)


class CentresTheCallersRows(Honest):
    def advance(self, X, y, block_size=None):
        trace = super().advance(X, y, block_size)
        if isinstance(X, np.ndarray) and X.flags.writeable:
            X -= 1.0
        return trace


class KeepsTheCallersRows(Honest):
    def _keep(self, x, y):
        super()._keep(x, y)
        self.points[-1] = x


class WantsWritableRows(Honest):
    def _points(self, X):
        if not X.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return super()._points(X)


class WantsContiguousRows(Honest):
    def _points(self, X):
        return super()._points(X if X.flags.c_contiguous else X + 1.0)


class WantsAContiguousRow(Honest):
    def learn_one(self, x, y):
        super().learn_one(x if x.flags.c_contiguous else x + 1.0, y)


class HandsOutItsMemory(Honest):
    def state(self):
        return super().state() | {"points": list(self.points)}


class HandsOutItsCount(Honest):
    """No prediction shows it."""

    def __init__(self, max_atoms=5, seed=0):
        super().__init__(max_atoms, seed)
        self.count = np.zeros(1)

    def state(self):
        return super().state() | {"count": self.count}

    def _learn(self, x, y):
        super()._learn(x, y)
        self.count += 2.0


class CountsQuestions(Honest):
    def __init__(self, max_atoms=5, seed=0):
        super().__init__(max_atoms, seed)
        self.asked = 0

    def state(self):
        return super().state() | {"asked": self.asked}

    @classmethod
    def from_state(cls, parameters, state):
        learner = super().from_state(parameters, state)
        learner.asked = state["asked"]
        return learner

    def predict_one(self, x):
        self.asked += 1
        return super().predict_one(x)


class TossesACoinWhenAsked(Honest):
    """Its state does not show it, its next coin does."""

    def predict_one(self, x):
        self._ahead = True
        return super().predict_one(x)

    def learn_one(self, x, y):
        super().learn_one(x, y)
        if self.__dict__.pop("_ahead", False):
            self.coins.random()


class UsesOneScratchpad(Honest):
    def predict_one(self, x):
        self.scratch = self._row(x)
        return self._nearest(self.scratch)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "scratch"}


class PredictsBlocksAtOnce(Honest):
    def advance(self, X, y, block_size=None):
        points = self._points(X)
        before = [self._nearest(x) for x in points]
        trace = super().advance(X, y)
        trace.prediction[:] = before
        return trace


class TellsTheSizeAtTheEnd(Honest):
    def advance(self, X, y, block_size=None):
        trace = super().advance(X, y)
        trace.size[:] = self.size
        return trace


class CountsCalls(Honest):
    """For rows: no prediction shows it."""

    def advance(self, X, y, block_size=None):
        trace = super().advance(X, y)
        self.rows_seen += 1 - len(X)
        return trace


class LearnsTheRowAskedLast(Honest):
    """It takes for granted that a row is learned right after it was predicted."""

    def predict_one(self, x):
        self.last = self._row(x).copy()
        return super().predict_one(x)

    def learn_one(self, x, y):
        super().learn_one(self.__dict__.pop("last", x) if y == y else x, y)


class ForgetsItsCoinsInFiles(Honest):
    @classmethod
    def from_state(cls, parameters, state):
        learner = super().from_state(parameters, state)
        learner.coins = np.random.default_rng(learner.seed)
        return learner


class HasAStateThatNeedsPickle(Honest):
    def state(self):
        return super().state() | {"tags": frozenset()}

    @classmethod
    def from_state(cls, parameters, state):
        raise AssertionError("not reached: its state cannot be saved")


class ForgetsATargetInCopies(Honest):
    def __getstate__(self):
        return self.__dict__ | {"targets": self.targets[:-1] + [0.0] * bool(self.targets)}


class LearnsBeforeItLooks(Honest):
    def learn_one(self, x, y):
        self.rows_seen += 1
        super().learn_one(x, y)
        self.rows_seen -= 1


class TakesNaN(Honest):
    def learn_one(self, x, y):
        if y is not None and y == y:
            super().learn_one(x, y)


class KeepsOneTooMany(Honest):
    def _keep(self, x, y):
        if len(self.points) > self.max_atoms:
            del self.points[0], self.targets[0]
        self.points.append(x.copy())
        self.targets.append(y)


class KeepsADiary(Honest):
    def state(self):
        return super().state() | {"diary": [1.0] * self.rows_seen}


class ForgetsAName:
    """A learner one by one of dicts, before all that kons does with them."""

    def learn_one(self, x, y):
        super().learn_one({n: v for n, v in x.items() if n != "x1"} if isinstance(x, dict) else x, y)


class LearnsHalfOfADict(ForgetsAName, EmbeddedKONS):
    def __init__(self, kernel=None, loss=None, **others):
        super().__init__(kernel or Gaussian(), loss or Squared(), **{"max_atoms": 5} | others)


class AsksHalfOfADict:
    """A learner of dicts that come late, before all that kons does with them."""

    def ask(self, x, id):
        return super().ask({n: v for n, v in x.items() if n != "x1"} if isinstance(x, dict) else x, id)


class KeepsHalfOfADict(AsksHalfOfADict, EmbeddedKONS):
    def __init__(self, kernel=None, loss=None, **others):
        super().__init__(kernel or Gaussian(), loss or Squared(), **{"max_atoms": 5} | others)


BROKEN = {
    SeedsItselfFromTheClock: ("same_seed_same_run", "made alike went apart"),
    TossesTheCoinsOfAll: ("same_seed_same_run", "made alike went apart"),
    CentresTheCallersRows: ("inputs_are_not_changed", "the caller's arrays were changed"),
    KeepsTheCallersRows: ("inputs_are_not_kept", "overwriting the caller's arrays"),
    WantsWritableRows: ("inputs_in_any_form", "read-only were refused: ValueError"),
    WantsContiguousRows: ("inputs_in_any_form", "not contiguous gave something else"),
    WantsAContiguousRow: ("inputs_in_any_form", "not contiguous gave something else"),
    HandsOutItsMemory: ("what_is_handed_out_is_a_copy", "handed out changed it"),
    HandsOutItsCount: ("what_is_handed_out_is_a_copy", r"handed out changed it.*\['count'\]"),
    CountsQuestions: ("predict_is_pure", r"predicting changed the state.*\['asked'\]"),
    TossesACoinWhenAsked: ("predict_is_pure", "asked in between learned something else"),
    UsesOneScratchpad: ("predict_is_safe_from_threads", "predict_one in one thread"),
    PredictsBlocksAtOnce: ("block_size_does_not_matter", r"calls of 1 row\(s\).*differ in prediction"),
    TellsTheSizeAtTheEnd: ("block_size_does_not_matter", r"calls of 1 row\(s\).*differ in size"),
    CountsCalls: ("block_size_does_not_matter", r"calls of 1 row\(s\).*differ in rows_seen"),
    LearnsTheRowAskedLast: (
        "late_targets_are_learned_in_any_order",
        "told in another order, were not learned",
    ),
    ForgetsItsCoinsInFiles: ("saved_mid_stream_goes_on", "saved and loaded went another way"),
    HasAStateThatNeedsPickle: ("saved_mid_stream_goes_on", "could not be checked, FileError.*pickle"),
    ForgetsATargetInCopies: ("copies_go_on", "a deep copy went another way"),
    LearnsBeforeItLooks: ("refused_input_changes_nothing", "refused, but the state changed"),
    TakesNaN: ("refused_input_changes_nothing", "NaN as a target: it was accepted"),
    LearnsHalfOfADict: ("raw_records_are_rows", "encoded another way"),
    KeepsHalfOfADict: ("raw_records_may_wait", "encoded another way"),
    KeepsOneTooMany: ("memory_stays_within_the_cap", "keeps 6 points, more than max_atoms=5"),
    KeepsADiary: ("memory_stays_within_the_cap", "its state grew from"),
}


def test_an_honest_learner_of_somebody_else_passes():
    assert check_learner(Honest) == list(CHECKS)


def test_the_pattern_may_be_a_learner_and_stays_as_it_is():
    learner = Honest(max_atoms=3, seed=4)
    assert check_learner(learner) == list(CHECKS)
    assert learner.rows_seen == 0


def only(name):
    """A skip of all checks but one."""
    return {other: f"this is about {name}" for other in CHECKS if other != name}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_one_is_caught(broken):
    name, message = BROKEN[broken]
    with pytest.raises(CheckFailed, match=f"(?s)^{name}: .*{message}") as caught:
        check_learner(broken, skip=only(name))
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, KonsError)


# Where a check catches several, the first.
ONE_EACH = {name: broken for broken, (name, _) in reversed(BROKEN.items())}


@pytest.mark.soak  # that each is caught at all is test_a_broken_one_is_caught
@pytest.mark.parametrize("name", ONE_EACH)
def test_by_that_check_alone(name):
    ran = check_learner(ONE_EACH[name], skip={name: "known to be broken"})
    assert ran == [other for other in CHECKS if other != name]


def test_every_check_has_a_learner_that_it_catches():
    assert {name for name, _ in BROKEN.values()} == CHECKS.keys()


def repairing(*verbs, rows=lambda X: X, targets=lambda y: y):
    """A learner that takes by these verbs what others refuse."""

    def asked(verb):
        return lambda self, X: getattr(Honest, verb)(self, rows(X))

    def taught(verb):
        return lambda self, X, y: getattr(Honest, verb)(self, rows(X), targets(y))

    methods = {verb: (asked if verb.startswith("predict") else taught)(verb) for verb in verbs}
    return type("Repairs", (Honest,), methods)


def padded(X):
    """Rows of three features, where one was missing."""
    X = np.asarray(X)
    return np.concatenate([X, X[..., :1]], axis=-1) if X.shape[-1] == 2 else X


def without(value):
    """Rows with 0 in place of a value."""
    return lambda X: np.where(np.isnan(X) if np.isnan(value) else np.equal(X, value), 0.0, X)


PREDICT = ("predict", "predict_one")
BAD = {
    "no rows": repairing(
        "advance", rows=lambda X: X if len(X) else [[0.0] * 3], targets=lambda y: [*y] or [1.0]
    ),
    "a feature too few": repairing("advance", rows=padded),
    "a feature too many": repairing("advance", rows=lambda X: X[:, :3]),
    "a feature too few in one row": repairing("learn_one", rows=padded),
    "a feature too few in a row to predict": repairing(*PREDICT, rows=padded),
    "a target too few": repairing("advance", targets=lambda y: y if len(y) != 8 else [*y, 1.0]),
    "NaN as a target": repairing("learn_one", targets=lambda y: 1.0 if y != y else y),
    "None as a target": repairing("learn_one", targets=lambda y: 1.0 if y is None else y),
    "NaN as the last target": repairing(
        "advance", targets=lambda y: np.nan_to_num(np.asarray(y, dtype=float))
    ),
}
for value in (np.nan, np.inf, -np.inf):
    BAD[f"{value} in the last row"] = repairing("advance", rows=without(value))
    BAD[f"{value} in one row"] = repairing("learn_one", rows=without(value))
    BAD[f"{value} in a row to predict"] = repairing(*PREDICT, rows=without(value))


@pytest.mark.parametrize("what", BAD)
def test_every_bad_input_is_tried(what):
    name = "refused_input_changes_nothing"
    with pytest.raises(CheckFailed, match=f"^{name}: {what}: it was accepted"):
        check_learner(BAD[what], skip=only(name))


class LocksItself(UsesOneScratchpad):
    """One scratchpad, behind a lock: two threads at once are safe, and the battery does not hang."""

    lock = threading.Lock()

    def predict_one(self, x):
        with self.lock:
            return super().predict_one(x)


def test_a_lock_is_a_way_to_be_safe():
    assert check_learner(LocksItself, skip=only("predict_is_safe_from_threads"))


class RaisesInOtherThreads(Honest):
    def predict_one(self, x):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("wrong thread")
        return super().predict_one(x)


def test_an_error_in_a_thread_is_told():
    with pytest.raises(CheckFailed, match=r"predict_is_safe_from_threads.*wrong thread"):
        check_learner(RaisesInOtherThreads, skip=only("predict_is_safe_from_threads"))


# ---- how the battery is asked


def test_skips_need_a_name_and_a_reason():
    with pytest.raises(ConfigurationError, match=r"skip names 'speed'; there are same_seed_same_run"):
        check_learner(Honest, skip={"speed": "slow"})
    for reason in ("", "  ", None, True):
        with pytest.raises(ConfigurationError, match="expected the reason in words"):
            check_learner(Honest, skip={"copies_go_on": reason})
    with pytest.raises(ConfigurationError, match="expected a dict"):
        check_learner(Honest, skip=["copies_go_on"])


def test_a_learner_that_has_learned_is_no_pattern():
    learner = Honest()
    learner.learn_one([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(ConfigurationError, match="expected a new one"):
        check_learner(learner)


def wide(rows, seed):
    X, y = sign_stream(rows, seed)
    return np.hstack([X, X, X]), y


def test_a_stream_of_one_s_own():
    """Nine features besides: loops over them are vectorized, and round by their memory layout."""
    learner = EmbeddedKONS(Gaussian(2.0), Logistic(), bound=2.0, max_atoms=8)
    assert check_learner(learner, stream=wide) == list(CHECKS)
    assert check_learner(Classifier(learner), stream=wide) == list(CHECKS)


class TossesACoinWhenAskedLate(TossesACoinWhenAsked):
    def predict_one(self, x):
        return super().predict_one(x) if self.rows_seen > 200 else Honest.predict_one(self, x)


def test_stretches_of_one_s_own():
    """What goes wrong after some hundred rows is met where the caller knows it to happen."""
    pure = only("predict_is_pure")
    assert check_learner(TossesACoinWhenAskedLate, skip=pure)
    with pytest.raises(CheckFailed, match="asked in between learned something else from rows 190 to 210"):
        check_learner(TossesACoinWhenAskedLate, skip=pure, stretches=[(0, 5), (190, 210)])


class TakesColumns(Honest):
    def widen(self, columns):
        self.points = [np.append(point, np.full(columns, 5.0)) for point in self.points]


def test_columns_that_come_late():
    given = {"stretches": [(0, 30), (50, 80), (60, 66)], "columns": {0: 1, 9: 2, 60: 3}}
    assert check_learner(TakesColumns, **given) == list(CHECKS)
    with pytest.raises(CheckFailed, match=r"^same_seed_same_run: it could not be checked.*widen"):
        check_learner(Honest, **given)


@pytest.mark.parametrize(
    ("stretches", "message"),
    [
        ([(5, 5)], r"stretches has \(5, 5\), expected the first row and one behind it"),
        ([(-1, 5)], "a row of stretches is -1"),
        ([(0, 5)], "none that begins after some rows"),
        ([], "none that begins after some rows"),
    ],
)
def test_stretches_that_are_none(stretches, message):
    with pytest.raises(ConfigurationError, match=message):
        check_learner(Honest, stretches=stretches)


def test_a_tolerance_that_is_none():
    with pytest.raises(ConfigurationError, match="tolerance is -1"):
        check_learner(Honest, tolerance=-1.0)


def test_a_learner_that_cannot_be_used_is_told():
    with pytest.raises(CheckFailed, match=r"^same_seed_same_run: it could not be checked, AttributeError"):
        check_learner(lambda: object())


def test_predictions_may_lie_apart_by_the_tolerance():
    class Rounds(Honest):
        def advance(self, X, y, block_size=None):
            trace = super().advance(X, y)
            trace.prediction[:] += 1e-4 * len(X)
            return trace

    blocks = only("block_size_does_not_matter")
    with pytest.raises(CheckFailed, match="block_size_does_not_matter"):
        check_learner(Rounds, skip=blocks)
    assert check_learner(Rounds, skip=blocks, tolerance=0.1) == ["block_size_does_not_matter"]
