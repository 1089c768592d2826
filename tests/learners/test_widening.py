"""More features than at the start: refereed by a learner whose rows had a column of zeros all along."""

import copy
import functools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from contracts.learners import assert_identical
from kons import (
    KONS,
    KORS,
    Classifier,
    EmbeddedKONS,
    FunctionalGradient,
    Gaussian,
    Laplace,
    Linear,
    Logistic,
    Polynomial,
    Scaled,
    SketchedKONS,
    SlidingWindow,
    Squared,
)
from kons.errors import ConfigurationError, FileError, InputError
from kons.evaluation import KernelGradientDescent
from kons.kernels import FunctionKernel, ScikitLearn
from kons.policies import Budget, Dependence, Fixed, Leverage
from kons.recipes import for_task
from kons.scaling import RobustScaling, TargetScaling, median_bandwidth

RNG = np.random.default_rng(11)
ROWS, SINCE = 240, 107  # in the middle of a period of the span
X = RNG.uniform(-1, 1, size=(ROWS, 4))
X[:SINCE, 2:] = 0.0
Y = np.clip(np.sin(3 * X[:, 0]) * 0.6 + 0.3 * X[:, 2] * X[:, 1], -1, 1)
LABELS = np.where(X[:, 0] + X[:, 2] > 0.1, "a", np.where(X[:, 1] > 0, "b", "c")).tolist()

embedded = functools.partial(EmbeddedKONS, regularization=0.05, max_atoms=25)
LEARNERS = {
    "gaussian": lambda: embedded(Gaussian(0.7), Squared(), second_order="hessian"),
    "laplace": lambda: embedded(Laplace(1.5), Squared(), second_order="hessian"),
    "linear": lambda: embedded(Linear(), Squared(), second_order="hessian"),
    "polynomial": lambda: embedded(Polynomial(2), Squared()),
    "replacing": lambda: embedded(
        Gaussian(0.5), Squared(), second_order="hessian", policy=Dependence(0.01, when_full="replace")
    ),
    "leverage": lambda: embedded(Gaussian(0.7), Squared(), policy=Leverage(0.5), seed=3),
    "forgetting": lambda: embedded(Gaussian(0.7), Squared(), second_order="hessian", forgetting=0.99),
    "scikit-learn": lambda: embedded(ScikitLearn(RBF(0.7)), Squared(), second_order="hessian"),
    "exact": lambda: KONS(Gaussian(0.7), Squared(), regularization=0.05),
    "budget": lambda: FunctionalGradient(Gaussian(0.7), Squared(), budget=Budget(20, "project")),
    "window": lambda: SlidingWindow(Gaussian(0.7), window=20),
    "first order": lambda: KernelGradientDescent(Gaussian(0.7), Squared()),
    "sketched": lambda: SketchedKONS(Gaussian(0.7), Squared(), policy=Leverage(floor=0.3), seed=2),
    "sketched, two coins": lambda: SketchedKONS(
        Gaussian(0.7), Squared(), policy=Leverage(floor=0.3), shared_coins=False, seed=2
    ),
}
CLASSIFIERS = {
    "shared": lambda: Classifier(embedded(Gaussian(0.7), Logistic(), bound=3.0, second_order="hessian")),
    "separate": lambda: Classifier(KONS(Gaussian(0.7), Logistic())),
}
close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("how", ["advance", "learn_one"])
def test_a_late_column_is_a_column_of_zeros(make, how):
    twin, learner = make(), make()
    twin_trace = twin.advance(X, Y)
    learner.advance(X[:SINCE, :2], Y[:SINCE])
    learner.widen()
    learner.widen(1)
    before = learner.predict(X[SINCE:])
    if how == "advance":
        trace = learner.advance(X[SINCE:], Y[SINCE:])
        close(trace.prediction, twin_trace.prediction[SINCE:])
        np.testing.assert_array_equal(trace.kept, twin_trace.kept[SINCE:])
    else:
        for i in range(SINCE, ROWS):
            close(learner.predict_one(X[i]), twin_trace.prediction[i])
            learner.learn_one(X[i], float(Y[i]))
    assert learner.size == twin.size
    close(learner.predict(X), twin.predict(X))
    assert np.abs(learner.predict(X[SINCE:]) - before).max() > 1e-3  # it did learn from the new columns


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classes_share_the_new_column(make):
    twin, learner = make(), make()
    expected = twin.advance(X, LABELS)
    learner.advance(X[:SINCE, :2], LABELS[:SINCE])
    learner.widen(2)
    trace = learner.advance(X[SINCE:], LABELS[SINCE:])
    close(trace.scores, expected.scores[SINCE:])
    learner.learn_one(X[0], "d")  # a new class starts from what the widened unseen one knows
    twin.learn_one(X[0], "d")
    close(learner.decision_function(X), twin.decision_function(X))


def test_landmarks_are_widened():
    twin, sampler = (KORS(Gaussian(0.7), regularization=0.1, seed=1) for _ in range(2))
    expected = twin.advance(X)
    sampler.advance(X[:SINCE, :2])
    sampler.widen(2)
    np.testing.assert_array_equal(sampler.advance(X[SINCE:]).kept, expected.kept[SINCE:])
    close(sampler.transform(X), twin.transform(X))
    assert sampler.atoms.shape == twin.atoms.shape


@pytest.mark.parametrize("make", (LEARNERS | CLASSIFIERS).values(), ids=LEARNERS | CLASSIFIERS)
def test_state_behind_a_widening_goes_on_bit_for_bit(make):
    learner = make()
    targets = LABELS if isinstance(learner, Classifier) else Y
    learner.advance(X[:SINCE, :2], targets[:SINCE])
    learner.widen(2)
    loaded = type(learner).from_state(learner.parameters(), learner.state())
    copied = copy.deepcopy(learner)
    for other in (learner, loaded, copied):
        other.advance(X[SINCE:], targets[SINCE:])
    assert_identical(loaded.state(), learner.state())
    assert_identical(copied.state(), learner.state())


def test_before_the_first_row_there_is_nothing_to_widen():
    learner = LEARNERS["gaussian"]()
    learner.widen(3)
    learner.advance(X, Y)
    assert learner.atoms.shape[1] == 4


REFUSING = {
    "objects": (lambda: KONS(FunctionKernel(lambda a, b: float(a @ b)), Squared()), "takes objects"),
    "divides by the number of features": (lambda: KONS(ScikitLearn("rbf"), Squared()), "another kernel"),
    "a length for each feature": (lambda: KONS(ScikitLearn(RBF([1.0, 2.0])), Squared()), "cannot take more"),
    "another kernel, classes": (lambda: Classifier(KONS(ScikitLearn("rbf"), Logistic())), "another kernel"),
}


@pytest.mark.parametrize(("make", "message"), REFUSING.values(), ids=REFUSING)
def test_what_cannot_be_widened_says_so_and_stays(make, message):
    learner = make()
    targets = LABELS if isinstance(learner, Classifier) else Y
    learner.advance(X[:60, :2], targets[:60])
    before = learner.state()
    with pytest.raises(ConfigurationError, match=message):
        learner.widen()
    assert_identical(learner.state(), before)
    learner.advance(X[60:80, :2], targets[60:80])


@pytest.mark.parametrize("columns", [0, -1, 1.5, "2"])
def test_columns_are_counted_in_whole_numbers(columns):
    learner = LEARNERS["gaussian"]()
    learner.advance(X[:, :2], Y)
    with pytest.raises(ConfigurationError, match="columns"):
        learner.widen(columns)


# ---- in raw units

RAW = np.column_stack([1e3 * X[:, 0], X[:, 1], 50.0 + 7.0 * X[:, 2], 1e-3 * X[:, 3]])
TARGETS = 100.0 + 40.0 * Y


def scaled(warmup, **parameters):
    return for_task("regression", "embedded", warmup=warmup, max_atoms=25, **parameters)


def by_hand(points, targets, warm):
    """The learner that Scaled should have made, with scaled rows and targets."""
    ones = np.ones(warm)
    kernel = Gaussian(1.5 * median_bandwidth(points[:warm], weights=ones))
    target = TargetScaling.fit(targets[:warm], 1.0, weights=ones)
    learner = EmbeddedKONS(kernel, Squared(), second_order="hessian", regularization=0.01, max_atoms=25)
    learner.advance(points[:warm], target.scale(targets[:warm]))
    trace = learner.advance(points[warm:], np.clip(target.scale(targets[warm:]), -1, 1))
    return target.unscale(trace.prediction)


@pytest.mark.parametrize("warm", [150, SINCE + 1, SINCE])
def test_in_the_warm_up_scales_come_from_the_rows_that_have_the_column(warm):
    model = scaled(warm)
    if warm == SINCE:  # nothing has the column yet: it stays at 0, whatever comes
        model.advance(RAW[: SINCE - 1, :2], TARGETS[: SINCE - 1])
        model.widen(2)
        model.advance(RAW[SINCE - 1 : SINCE], TARGETS[SINCE - 1 : SINCE])
    else:
        model.advance(RAW[:SINCE, :2], TARGETS[:SINCE])
        model.widen(2)
        model.advance(RAW[SINCE:warm], TARGETS[SINCE:warm])
    first = min(SINCE, warm - 1)
    points = np.zeros_like(RAW)
    points[:, :2] = RobustScaling.fit(RAW[:warm, :2], weights=np.ones(warm)).transform(RAW[:, :2])
    late = RobustScaling.fit(RAW[first:warm, 2:], weights=np.ones(warm - first))
    points[first:, 2:] = late.transform(RAW[first:, 2:])
    close(model.advance(RAW[warm:], TARGETS[warm:]).prediction, by_hand(points, TARGETS, warm), atol=1e-7)


def test_behind_the_warm_up_scales_come_from_samples():
    model = scaled(60)
    model.advance(RAW[:SINCE, :2], TARGETS[:SINCE])
    samples = RAW[SINCE : SINCE + 50, 2:]
    model.widen(2, samples)
    points = np.zeros_like(RAW)
    points[:, :2] = RobustScaling.fit(RAW[:60, :2], weights=np.ones(60)).transform(RAW[:, :2])
    points[SINCE:, 2:] = RobustScaling.fit(samples).transform(RAW[SINCE:, 2:])
    expected = by_hand(points, TARGETS, 60)[SINCE - 60 :]
    close(model.advance(RAW[SINCE:], TARGETS[SINCE:]).prediction, expected, atol=1e-7)


def late_by_hand(enough, second):
    """Rows as they should be scaled where a column came at SINCE, and one so many rows later."""
    points = np.zeros_like(RAW)
    points[:, :2] = RobustScaling.fit(RAW[:60, :2], weights=np.ones(60)).transform(RAW[:, :2])
    for column, first in ((2, SINCE), (3, SINCE + second)):
        known = RAW[first : first + enough, column : column + 1]
        points[first + enough :, column : column + 1] = RobustScaling.fit(known).transform(
            RAW[first + enough :, column : column + 1]
        )
    return points


@pytest.mark.parametrize("second", [0, 13])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_one_value_tells_no_unit_and_the_rows_that_follow_do(size, second):
    model, found = scaled(60), []

    def learn(rows, width):
        for start in range(rows.start, rows.stop, size):
            block = slice(start, min(start + size, rows.stop))
            found.append(model.advance(RAW[block, :width], TARGETS[block]).prediction)

    learn(range(SINCE), 2)
    model.widen(1, RAW[SINCE : SINCE + 1, 2:3])
    learn(range(SINCE, SINCE + second), 3)
    model.widen(1, RAW[:1, 3:])
    learn(range(SINCE + second, len(RAW)), 4)
    expected = by_hand(late_by_hand(60, second), TARGETS, 60)
    close(np.concatenate(found)[60:], expected, atol=1e-7)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_units_that_are_not_known_yet_are_saved_and_undone(task):
    targets = TARGETS if task == "regression" else LABELS
    model = for_task(task, "embedded", warmup=40, max_atoms=20)
    model.advance(RAW[:70, :2], targets[:70])
    model.widen(1, RAW[:1, 2:3])
    model.advance(RAW[70:80, :3], targets[70:80])
    model.widen(1, RAW[:1, 3:])
    model.learn_one(RAW[80], targets[80])
    before = model.state()
    bad = RAW[81:140].copy()
    bad[-1, 0] = np.inf
    with pytest.raises(InputError):
        model.advance(bad, targets[81:140])
    assert_identical(model.state(), before)
    loaded = Scaled.from_state(model.parameters(), before)
    for other in (model, loaded):
        for row in range(81, 125):
            other.learn_one(RAW[row], targets[row])
        other.advance(RAW[125:], targets[125:])
    assert_identical(loaded.state(), model.state())
    assert "late" not in model.state()
    for what in ({"columns": np.array([9.0])}, {"since": np.array([0.5])}, {"since": np.array([1e12])}):
        forged = copy.deepcopy(before)
        forged["late"] = {name: what.get(name, array[..., :1]) for name, array in forged["late"].items()}
        with pytest.raises(FileError):
            Scaled.from_state(model.parameters(), forged)


def test_an_error_behind_the_row_that_tells_a_unit_is_undone(monkeypatch):
    model = scaled(40)
    model.advance(RAW[:70, :3], TARGETS[:70])
    model.widen(1, RAW[:1, 3:])
    before, advance, calls = model.state(), EmbeddedKONS.advance, []

    def tired(self, X, *others):
        calls.append(len(X))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return advance(self, X, *others)

    monkeypatch.setattr(EmbeddedKONS, "advance", tired)
    with pytest.raises(KeyboardInterrupt):
        model.advance(RAW[70:150], TARGETS[70:150])
    assert calls == [40, 40]
    assert_identical(model.state(), before)


def test_rows_asked_before_a_column_came_tell_nothing_of_its_unit():
    """They wait while it comes, and have its first value in it; those behind them tell the unit."""
    late, at_once = scaled(40), scaled(40)
    for model in (late, at_once):
        model.advance(RAW[:70, :3], TARGETS[:70])
    for t in range(30):
        late.ask(RAW[70 + t, :3], t)
    late.widen(1, RAW[:1, 3:])
    late = Scaled.from_state(late.parameters(), late.state())
    for t in range(30):
        late.tell(t, TARGETS[70 + t])
    at_once.advance(RAW[70:100, :3], TARGETS[70:100])
    at_once.widen(1, RAW[:1, 3:])
    for model in (late, at_once):
        model.advance(RAW[100:], TARGETS[100:])
    close(late.predict(RAW), at_once.predict(RAW))


def test_unscaled_features_need_no_samples():
    model, twin = scaled(60, scale="none", bandwidth=0.7), scaled(60, scale="none", bandwidth=0.7)
    expected = twin.advance(X, TARGETS).prediction
    model.advance(X[:SINCE, :2], TARGETS[:SINCE])
    model.widen(2)
    close(model.advance(X[SINCE:], TARGETS[SINCE:]).prediction, expected[SINCE:], atol=1e-7)


def test_what_scaled_cannot_widen():
    model = scaled(60)
    model.advance(RAW[:80, :2], TARGETS[:80])
    before = model.state()
    with pytest.raises(InputError, match="samples are needed"):
        model.widen()
    with pytest.raises(InputError, match="samples"):
        model.widen(2, [[1.0], [2.0]])
    with pytest.raises(InputError, match="samples"):
        model.widen(1, [[1.0], [np.nan]])
    assert_identical(model.state(), before)
    given = Scaled(EmbeddedKONS(Gaussian(1.0), Squared(), policy=Fixed(RAW[:9, :2])), 20)
    given.advance(RAW[:40, :2], TARGETS[:40])
    with pytest.raises(ConfigurationError, match="atoms were given"):
        given.widen(1, [[1.0], [2.0]])


@pytest.mark.parametrize("rows", [20, 59, 90])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_state_of_a_widened_scaled_learner(rows, task):
    model = for_task(task, "embedded", warmup=60, max_atoms=20)
    targets = TARGETS if task == "regression" else LABELS
    model.advance(RAW[:rows, :2], targets[:rows])
    model.widen(2, RAW[SINCE:, 2:])
    model.advance(RAW[rows : rows + 9], targets[rows : rows + 9])
    loaded = Scaled.from_state(model.parameters(), model.state())
    for other in (model, loaded):
        other.advance(RAW[rows + 9 :], targets[rows + 9 :])
    assert_identical(loaded.state(), model.state())


@pytest.mark.parametrize("since", [[0.0], [41.0], [1.0, 1.0, 1.0, 1.0], [np.nan], ["1"]])
def test_late_columns_that_cannot_be_are_refused(since):
    model = scaled(60)
    model.advance(RAW[:40, :2], TARGETS[:40])
    model.widen(2)
    state = model.state()
    state["warm"]["since"] = np.array(since)
    with pytest.raises(FileError):
        Scaled.from_state(model.parameters(), state)
