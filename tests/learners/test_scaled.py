"""Raw units: refereed by the same steps by hand, and by what must not matter."""

import copy
import functools
import math
import statistics

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import (
    KONS,
    Classifier,
    EmbeddedKONS,
    Gaussian,
    Laplace,
    Logistic,
    Scaled,
    Squared,
    SquaredHinge,
    Trace,
    errors,
)
from kons.errors import ConfigurationError, FileError, InputError, KonsWarning, NumericalError, TargetError
from kons.kernels import FunctionKernel, Kernel
from kons.losses import CustomLoss
from kons.policies import Fixed
from kons.scaling import RobustScaling, median_bandwidth

ROWS = 320
RNG = np.random.default_rng(8)
X = np.column_stack(
    [
        5e4 + 1e3 * RNG.normal(size=ROWS),
        RNG.standard_cauchy(ROWS),  # a heavy tail
        np.full(ROWS, 3.0),  # constant
        (RNG.random(ROWS) < 0.05).astype(float),  # rare
    ]
)
Y = 2e6 + 5e3 * np.sin((X[:, 0] - 5e4) / 1000.0)
LABELS = np.where(X[:, 0] > 5e4, "high", np.where(X[:, 1] > 0.0, "up", "down")).astype(object)
WARMUP = 100

embedded = functools.partial(EmbeddedKONS, second_order="hessian", regularization=0.1, max_atoms=40)


def regression(**options):
    return Scaled(embedded(Gaussian("auto"), Squared()), WARMUP, **options)


def classification():
    return Scaled(Classifier(embedded(Gaussian("auto"), Logistic(), bound=4.0)), WARMUP)


@pytest.fixture
def untold(monkeypatch):
    """Notices are told anew."""
    monkeypatch.setattr(errors, "told", set())


# ---- the same by hand


def test_regression_by_hand():
    trace = regression().advance(X, Y)
    # The warm-up: the mean of the rows before.
    means = [0.0] + [statistics.fmean(Y[:t]) for t in range(1, WARMUP)]
    np.testing.assert_allclose(trace.prediction[:WARMUP], means, rtol=1e-12)
    # Then the first hundred rows, scaled, are learned, and the others follow.
    scaling = RobustScaling.fit(X[:WARMUP], weights=np.ones(WARMUP))
    Z = scaling.transform(X)
    centre = sorted(Y[:WARMUP])[WARMUP // 2 - 1]
    reach = 2.0 * max(abs(Y[:WARMUP] - centre))
    bandwidth = 1.5 * median_bandwidth(Z[:WARMUP], weights=np.ones(WARMUP))
    learner = embedded(Gaussian(bandwidth), Squared())
    learner.advance(Z[:WARMUP], (Y[:WARMUP] - centre) / reach)
    by_hand = learner.advance(Z[WARMUP:], (Y[WARMUP:] - centre) / reach)
    np.testing.assert_allclose(trace.prediction[WARMUP:], centre + reach * by_hand.prediction, rtol=1e-12)
    np.testing.assert_allclose(trace.loss, (trace.prediction - Y) ** 2)
    np.testing.assert_allclose(trace.novelty[WARMUP:], by_hand.novelty, rtol=1e-9)
    assert np.isnan(trace.novelty[:WARMUP]).all()
    assert np.isnan(trace.leverage[:WARMUP]).all()
    assert trace.size[WARMUP - 2] == 0
    assert trace.size[-1] == learner.size
    # And it is worth it.
    assert trace.loss[-100:].mean() < 0.1 * Y.var()


@pytest.mark.parametrize("wider", [0.5, 3.0])
def test_an_automatic_bandwidth_is_so_many_median_distances(wider):
    model = Scaled(EmbeddedKONS(Gaussian("auto"), Squared()), WARMUP, wider=wider)
    model.advance(X, Y)
    Z = RobustScaling.fit(X[:WARMUP], weights=np.ones(WARMUP)).transform(X)
    assert model.core.kernel.bandwidth == wider * median_bandwidth(Z[:WARMUP], weights=np.ones(WARMUP))
    with pytest.raises(ConfigurationError, match="wider is 0"):
        Scaled(EmbeddedKONS(Gaussian("auto"), Squared()), wider=0.0)


def test_classification_by_hand():
    model = classification()
    trace = model.advance(X, LABELS)
    for t in range(WARMUP):
        before = LABELS[:t].tolist()
        known = list(dict.fromkeys(before))
        assert trace.prediction[t] == (max(known, key=before.count) if known else None)
        shares = [
            (before.count(label) + 1) / (t + len(known)) if label in known else 0.0 for label in model.classes
        ]
        if known:
            clipped = 1 / (
                1 + np.exp(-np.clip([math.log(p / (1 - p)) if 0 < p < 1 else 9 * p for p in shares], -4, 4))
            )
            clipped[np.array(shares) == 0.0] = 0.0
            np.testing.assert_allclose(
                model.probabilities(trace.scores[t : t + 1])[0], clipped / clipped.sum()
            )
    Z = RobustScaling.fit(X[:WARMUP], weights=np.ones(WARMUP)).transform(X)
    bandwidth = 1.5 * median_bandwidth(Z[:WARMUP], weights=np.ones(WARMUP))
    by_hand = Classifier(embedded(Gaussian(bandwidth), Logistic(), bound=4.0))
    by_hand.advance(Z[:WARMUP], LABELS[:WARMUP])
    expected = by_hand.advance(Z[WARMUP:], LABELS[WARMUP:])
    np.testing.assert_allclose(trace.scores[WARMUP:], expected.scores, rtol=0, atol=1e-9)
    assert trace.prediction[WARMUP:].tolist() == expected.prediction.tolist()
    np.testing.assert_array_equal(trace.loss, trace.prediction != LABELS)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(Z), atol=1e-9)


# ---- what must not matter


@pytest.mark.parametrize(("make", "y"), [(regression, Y), (classification, LABELS)])
@pytest.mark.parametrize("cut", [1, WARMUP - 1, WARMUP, WARMUP + 1, 250])
def test_cuts_do_not_matter(make, y, cut):
    whole, model = make(), make()
    expected = whole.advance(X, y)
    parts = [model.advance(X[:cut], y[:cut]), model.advance(X[cut:], y[cut:], block_size=9)]
    trace = Trace.concatenate(parts)
    np.testing.assert_array_equal(trace.kept, expected.kept)
    np.testing.assert_array_equal(trace.size, expected.size)
    if make is regression:
        np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=1e-12)
    else:
        assert trace.prediction.tolist() == expected.prediction.tolist()
        np.testing.assert_allclose(trace.scores, expected.scores, rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-30, 1.0, 4096.0, 1e60])
def test_units_do_not_matter(unit):
    expected = regression().advance(X, Y)
    trace = regression().advance(X * [unit, 1.0, 1.0, 1.0], Y * unit)
    np.testing.assert_allclose(trace.prediction / unit, expected.prediction, rtol=1e-9)


def test_a_constant_feature_that_moves_later_is_learned_from():
    """It may be a rare category: 0 in every row of the warm-up, and what decides later."""
    points, switch = np.zeros((3000, 2)), RNG.random(3000) < 0.5
    points[:, 0] = RNG.normal(size=3000)
    points[WARMUP:, 1] = switch[WARMUP:]
    targets = np.where(points[:, 1] > 0.5, 0.8, -0.8)
    targets[:WARMUP] = RNG.uniform(-1.0, 1.0, size=WARMUP)
    trace = Scaled(embedded(Gaussian("auto"), Squared()), WARMUP).advance(points, targets)
    assert trace.loss[-1000:].mean() < 0.01 * targets[-1000:].var()


def test_a_constant_feature_that_goes_wild_does_no_harm():
    moved = X.copy()
    moved[200:, 2] = RNG.normal(size=120) * 1e9
    prediction = regression().advance(moved, Y).prediction
    assert np.isfinite(prediction).all()
    assert np.abs(prediction).max() <= 2.0 * np.abs(Y).max()


def test_the_pattern_stays_as_it_is():
    pattern = embedded(Gaussian("auto"), Squared())
    before = repr(pattern)
    Scaled(pattern, WARMUP).advance(X, Y)
    assert pattern.rows_seen == 0
    assert repr(pattern) == before


# ---- the warm-up


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")  # two rows leave little room
@pytest.mark.parametrize("rows", [1, 2, 30])
def test_the_warm_up_may_end_early(rows):
    model = regression()
    model.advance(X[:rows], Y[:rows])
    np.testing.assert_allclose(model.predict(X[:2]), statistics.fmean(Y[:rows]))
    model.finish_warmup()
    model.finish_warmup()
    assert not model.warming_up
    assert model.inner.rows_seen == rows == model.rows_seen
    trace = model.advance(X[rows:], Y[rows:])
    assert np.isfinite(trace.prediction).all()
    early = Scaled(embedded(Gaussian("auto"), Squared()), rows)
    early.advance(X[:rows], Y[:rows])
    np.testing.assert_allclose(trace.prediction, early.advance(X[rows:], Y[rows:]).prediction, rtol=1e-12)


def test_before_any_row():
    model = regression()
    assert model.predict_one(X[0]) == 0.0
    assert model.predict(X[:2]).tolist() == [0.0, 0.0]
    with pytest.raises(InputError, match="no rows yet"):
        model.finish_warmup()
    labels = classification()
    assert labels.predict_one(X[0]) is None
    assert labels.predict_proba_one(X[0]) == {}
    for verb in (labels.predict, labels.predict_proba, labels.decision_function):
        with pytest.raises(InputError, match="no class is known yet"):
            verb(X[:2])


def test_scores_in_the_warm_up_stand_for_the_shares_so_far():
    """(1 + score)/2 is a share, and 1/(1 + exp(-score)) where the loss is logistic; one of each is added."""
    X, labels = np.zeros((8, 1)), ["a", "b", "b", "c", "b", "b", "b", "b"]
    shares = np.array([2.0, 7.0, 2.0]) / 11.0
    for loss, scores in ((Squared(), 2.0 * shares - 1.0), (Logistic(), np.log(shares / (1.0 - shares)))):
        model = Scaled(Classifier(EmbeddedKONS(Gaussian(), loss, bound=2.0)), warmup=20)
        model.advance(X, labels)
        np.testing.assert_allclose(model.predict_proba(X[:1])[0], shares)
        np.testing.assert_allclose(model.decision_function(X[:1])[0], scores)


def test_weights_in_the_warm_up():
    weights = np.zeros(ROWS)
    weights[::2] = 2.0
    trace = regression().advance(X, Y, sample_weight=weights)
    np.testing.assert_allclose(trace.prediction[:5], [0.0, Y[0], Y[0], (Y[0] + Y[2]) / 2, (Y[0] + Y[2]) / 2])
    assert trace.loss[1] == 0.0
    # A row without weight has no say in the units: its target may lie far outside them.
    weights = np.ones(ROWS)
    weights[3] = 0.0
    far, near = Y.copy(), Y.copy()
    far[3], near[3] = 1e3, np.mean(Y[:3])
    found = [Scaled(KONS(Gaussian(), Squared()), 20).advance(X, y, None, weights) for y in (far, near)]
    np.testing.assert_allclose(found[0].prediction[4:], found[1].prediction[4:])


def test_a_closed_set_of_classes():
    model = Scaled(Classifier(embedded(Gaussian("auto"), Squared()), ["down", "high", "up", "never"]), WARMUP)
    assert model.classes == ["down", "high", "up", "never"]
    assert model.predict_one(X[0]) == "down"
    trace = model.advance(X, LABELS)
    assert np.isfinite(trace.scores).all()
    before = model.state()
    with pytest.raises(InputError, match="'other'"):
        model.learn_one(X[0], "other")
    fresh = Scaled(model.learner, WARMUP)
    with pytest.raises(InputError, match="'other'"):
        fresh.advance(X[:3], ["up", "down", "other"])
    assert fresh.rows_seen == 0
    assert_identical(model.state(), before)


# ---- targets out of range


def test_a_target_out_of_range_is_clipped_counted_and_told(untold):
    model, same = regression(), regression()
    for learner in (model, same):
        learner.advance(X[:200], Y[:200])
    far = 2e6 + 1e5
    with pytest.warns(KonsWarning, match="outside .* clipped for learning"):
        trace = model.advance(X[200:202], [far, Y[201]])
    assert model.targets_clipped == 1
    assert trace.loss[0] == pytest.approx((trace.prediction[0] - far) ** 2)
    # Learned as if it had been at the end of the reach.
    median = statistics.median_low(Y[:WARMUP])
    end = median + 2.0 * np.abs(Y[:WARMUP] - median).max()
    same.advance(X[200:202], [end, Y[201]])
    np.testing.assert_allclose(model.predict(X), same.predict(X), rtol=1e-12)
    model.learn_one(X[0], -far)  # told once
    assert model.targets_clipped == 2
    assert model.predict(X).max() <= end


@pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
def test_the_margin_is_the_room():
    for margin, room in ((None, 2.0), (0.0, 1.0), (3.0, 4.0)):
        assert_room(regression(margin=margin), room)
    assert_room(Scaled(EmbeddedKONS(Gaussian("auto"), Squared()), WARMUP), 1.2)


def assert_room(model, room):
    """Targets are clipped beyond so many times the farthest of the warm-up from their median."""
    model.advance(X[:WARMUP], Y[:WARMUP])
    median = statistics.median_low(Y[:WARMUP])
    reach = room * np.abs(Y[:WARMUP] - median).max()
    for sign in (-1.0, 1.0):
        model.learn_one(X[0], median + sign * 0.99999 * reach)
    assert model.targets_clipped == 0
    for sign in (-1.0, 1.0):
        model.learn_one(X[0], median + sign * 1.00001 * reach)
    assert model.targets_clipped == 2


# ---- other patterns


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()])
def test_labels_of_one_problem_stay_as_they_are(loss):
    signs = np.where(LABELS == "high", 1.0, -1.0)
    model = Scaled(embedded(Gaussian("auto"), loss, bound=2.0), WARMUP)
    trace = model.advance(X, signs)
    np.testing.assert_allclose(trace.loss, loss.value(np.clip(trace.prediction, -2, 2), signs))
    assert trace.loss[-100:].mean() < 0.5 * trace.loss[:WARMUP].mean()
    with pytest.raises(TargetError, match=r"-1 or \+1"):
        model.advance(X[:1], [0.5])
    with pytest.raises(TargetError, match=r"-1 or \+1"):
        Scaled(model.learner).advance(X[:1], [0.5])


def test_a_loss_of_ones_own_is_scaled_too():
    loss = CustomLoss(lambda p, y: np.log(np.cosh(p - y)), lambda p, y: np.tanh(p - y), name="log cosh")
    model = Scaled(EmbeddedKONS(Gaussian("auto"), loss, regularization=0.1), WARMUP)
    trace = model.advance(X, Y)
    np.testing.assert_allclose(trace.loss, (trace.prediction - Y) ** 2)
    assert trace.loss[-50:].mean() < Y.var()


def test_kernels_on_objects_are_not_scaled():
    words = ["aab", "abb", "bbb", "aaa", "bab"] * 8

    def common(a, b):
        return float(sum(a.count(c) * b.count(c) for c in "ab"))

    targets = [1000.0 * word.count("a") for word in words]
    model = Scaled(embedded(FunctionKernel(common), Squared()), 20)
    trace = model.advance(words, targets)
    assert trace.loss[25:].max() < 100.0**2
    assert model.predict_one("aab") == pytest.approx(2000.0, abs=100.0)


def test_features_may_be_left_alone():
    model = Scaled(embedded(Gaussian("auto"), Squared()), WARMUP, scale_features=False)
    model.advance(X[:, 1:2], Y)
    plain = 1.5 * median_bandwidth(X[:WARMUP, 1:2], weights=np.ones(WARMUP))
    assert model.inner.kernel == Gaussian(plain)
    np.testing.assert_array_equal(model.inner.atoms[0], X[0, 1:2])


def test_given_atoms_are_in_raw_units():
    model = Scaled(embedded(Gaussian(2.0), Squared(), policy=Fixed(X[:5])), WARMUP)
    model.advance(X, Y)
    scaling = RobustScaling.fit(X[:WARMUP], weights=np.ones(WARMUP))
    np.testing.assert_allclose(model.inner.atoms, scaling.transform(X[:5]))


def test_bandwidths_of_both_distances():
    model = Scaled(embedded(Gaussian("auto") + Laplace("auto"), Squared()), WARMUP)
    model.advance(X, Y)
    kernel = model.inner.kernel
    assert kernel.right.bandwidth > kernel.left.bandwidth > 0.0


# ---- errors leave no trace


class Breaking(Kernel):
    """Gaussian, until it is asked for a point beyond 5."""

    def evaluate(self, X, Z):
        if X.max() > 5.0:
            raise NumericalError("broken")
        return Gaussian().evaluate(X, Z)

    def evaluate_diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("at", [50, WARMUP - 1, 150])
def test_a_call_that_raises_leaves_everything(labelled, at):
    pattern = KONS(Breaking(), Squared(), regularization=0.1)
    model = Scaled(Classifier(pattern) if labelled else pattern, WARMUP)
    y = LABELS if labelled else Y
    points = X[:, 3:4].copy()
    points[200] = 1e9  # scaled, it is beyond 5
    model.advance(points[:at], y[:at])
    before = model.state()
    with pytest.raises(NumericalError, match="broken"):
        model.advance(points[at:], y[at:])
    assert_identical(model.state(), before)
    twin = copy.deepcopy(model)
    assert_identical(
        model.advance(points[at:200], y[at:200]).columns, twin.advance(points[at:200], y[at:200]).columns
    )


@pytest.mark.parametrize("rows", [20, 150])
def test_what_is_refused(rows):
    model = regression()
    model.advance(X[:rows], Y[:rows])
    before = model.state()
    for bad, target, message in (
        (X[:2, :2], Y[:2], "2 feature"),
        (X[:2], Y[:1], "expected one per row"),
        (X[:2], [1.0, math.nan], "finite"),
        (X[:2], [1.0, 1.5e150], "square is no number"),
        (np.full((2, 4), np.inf), Y[:2], "finite"),
        (X[:2], ["a", "b"], "expected numbers"),
    ):
        with pytest.raises(InputError, match=message):
            model.advance(bad, target)
        with pytest.raises(InputError):
            model.learn_one(bad[-1], target[-1] if len(target) == 2 else math.nan)
    with pytest.raises(ConfigurationError, match="block_size"):
        model.advance(X[:2], Y[:2], block_size=0)
    with pytest.raises(InputError, match="sample_weight"):
        model.advance(X[:2], Y[:2], sample_weight=[-1.0, 1.0])
    assert_identical(model.state(), before)


def test_patterns_that_cannot_be():
    taught = KONS(Gaussian(), Squared())
    taught.learn_one([0.0], 0.5)
    for wrong, message in (
        ("embedded", "expected one such as"),
        (taught, "learned 1 row"),
        (regression(), "expected one"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Scaled(wrong)
    for options in (
        {"warmup": 0},
        {"warmup": 2.5},
        {"margin": -1.0},
        {"margin": math.nan},
        {"scale_features": 1},
    ):
        with pytest.raises(ConfigurationError, match=next(iter(options))):
            Scaled(embedded(Gaussian("auto"), Squared()), **options)


def test_numbers_have_no_classes():
    model = regression()
    assert not hasattr(model, "classes")
    assert hasattr(classification(), "classes")
    with pytest.raises(AttributeError, match="knows no classes"):
        model.predict_proba(X)


def test_looking():
    model = regression()
    assert "100 rows" in model._repr_html_()
    model.advance(X, Y)
    assert "targets clipped" in model._repr_html_()
    assert repr(model).startswith("Scaled(learner=EmbeddedKONS(kernel=Gaussian(bandwidth='auto')")
    novelty = model.novelty(np.vstack([X[:1], X[:1] + 1e6]))
    assert novelty[1] > 5.0 * novelty[0]


def test_a_row_alone_is_scaled_as_in_a_block(monkeypatch):
    model = regression()
    model.advance(X, Y)
    far = np.concatenate([X, 7.0 * X, -1e9 * X, np.full((1, X.shape[1]), 1.7e308)])
    blocks, rows = [], []
    monkeypatch.setattr(EmbeddedKONS, "predict", lambda _, X: blocks.append(X) or np.zeros(len(X)))
    monkeypatch.setattr(EmbeddedKONS, "predict_one", lambda _, x: rows.append(x) or 0.0)
    monkeypatch.setattr(EmbeddedKONS, "learn_one", lambda _, x, y: rows.append(x))
    model.predict(far)
    for x in far:
        model.predict_one(x.tolist())
    monkeypatch.delattr(RobustScaling, "transform")  # arrays at the least cost, however far out they are
    for x in far:
        model.predict_one(x)
        model.learn_one(x, Y[0])
    (expected,) = blocks
    assert_identical(np.array(rows), np.concatenate([expected, np.repeat(expected, 2, axis=0)]))


def test_a_warm_up_of_all_its_rows_is_refused():
    model = regression()
    model.advance(np.arange(WARMUP - 1.0)[:, None], np.arange(WARMUP - 1.0))
    state = model.state()
    Scaled.from_state(model.parameters(), state)
    with pytest.raises(FileError, match="has left its warm-up, and has not"):
        Scaled.from_state(model.parameters(), {**state, "rows_seen": WARMUP})
