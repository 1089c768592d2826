"""Intervals and sets of every learner: coverage, blocks, late targets, files, what is refused, far rows."""

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import KONS, AutoKONS, Classifier, EmbeddedKONS, Gaussian, Logistic, Scaled, SketchedKONS, Squared
from kons.core.conformal import LEVELS, bounds_of, new_scores
from kons.errors import ConfigurationError, FileError
from kons.learners.predictive import Intervals
from naive_intervals import NaiveIntervals

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, size=(600, 2))
NOISE = np.where(X[:, 1] > 0, 0.25, 0.02)
Y = np.clip(0.5 * np.sin(3 * X[:, 0]) + NOISE * RNG.normal(size=600), -1, 1)
LABELS = np.where(Y + 0.3 * RNG.normal(size=600) > 0, "up", "down")


def embedded(**options):
    options = {"second_order": "hessian", "max_atoms": 30, **options}
    return EmbeddedKONS(Gaussian(0.7), Squared(), **options)


LEARNERS = {
    "embedded": embedded,
    "exact": lambda: KONS(Gaussian(0.7), Squared(), second_order="hessian"),
    "sketched": lambda: SketchedKONS(Gaussian(0.7), Squared()),
    "scaled": lambda: Scaled(embedded(), warmup=50),
    "auto": lambda: AutoKONS(max_atoms=40, experts=4),
}
CLASSIFIERS = {
    "classifier": lambda: Classifier(EmbeddedKONS(Gaussian(), Logistic(), bound=4.0, max_atoms=30)),
    "auto": lambda: AutoKONS("classification", max_atoms=40, experts=4),
}


def rows_of(model, rows):
    return rows[:200] if model in ("exact", "sketched") else rows


def learned(model, targets=Y, cut=None):
    learner, rows, y = LEARNERS[model](), rows_of(model, X), rows_of(model, targets)
    for start in range(0, len(rows), cut or len(rows)):
        learner.advance(rows[start : start + (cut or len(rows))], y[start : start + (cut or len(rows))])
    return learner


@pytest.mark.parametrize("model", LEARNERS)
def test_blocks_rows_and_files_give_the_same_intervals(model):
    whole, parts, rows = learned(model), learned(model, cut=77), LEARNERS[model]()
    for x, y in zip(rows_of(model, X), rows_of(model, Y), strict=True):
        rows.learn_one(x, y)
    expected = whole.predict_interval(X[:50], 0.8)
    assert expected.shape == (50, 2)
    assert np.isfinite(expected).all()
    for other in (parts, rows):
        np.testing.assert_allclose(other.predict_interval(X[:50], 0.8), expected, rtol=0, atol=1e-6)
    state = whole.state()
    assert_identical(whole.predict_interval(X[:50], 0.8), expected)
    assert_identical(whole.state(), state)  # asking changes nothing
    twin = type(whole).from_state(whole.parameters(), state)
    assert_identical(twin.predict_interval(X[:50], 0.8), expected)


@pytest.mark.parametrize("model", ["embedded", "scaled", "auto"])
def test_one_row_has_the_interval_of_a_block_of_one(model):
    learner = learned(model)
    one = learner.predict_interval_one(X[7])
    options = {"recent_targets": True} if model == "auto" else {}
    np.testing.assert_allclose(one, learner.predict_interval(X[7:8], **options)[0], rtol=0, atol=1e-7)


def test_they_are_as_wide_as_rows_deserve_and_hold_as_many_targets():
    trace = learned("auto").advance(X, Y)
    loud, quiet = trace.scale[NOISE > 0.1], trace.scale[NOISE < 0.1]
    assert np.median(loud) > 2 * np.median(quiet)
    learner = learned("auto")
    levels = sorted([*LEVELS, 0.3, 0.85])
    widths = [np.diff(learner.predict_interval(X[:20], level))[:, 0] for level in levels]
    assert (np.diff(widths, axis=0) >= 0.0).all()  # nested


def test_coverage_by_level():
    rng = np.random.default_rng(0)
    n = 4000
    targets = (1.0 + (np.arange(n) > 2000)) * rng.standard_t(4, size=n)  # errors that double
    intervals, inside = Intervals(targets=1, sizes=0), np.zeros((n, len(LEVELS)))
    rows = np.zeros((1, 1, 2))
    for t in range(n):
        for k, level in enumerate(LEVELS):
            low, high = intervals.ends(rows, level)[0, 0]
            inside[t, k] = low <= targets[t] <= high
        intervals.follow(rows, targets[t : t + 1, None])
    deviations = np.sqrt(np.array(LEVELS) * (1 - np.array(LEVELS)) / n)
    assert (abs(inside[20:].mean(axis=0) - LEVELS) < 4 * deviations + 0.005).all()
    assert inside[:20].all()


def test_the_naive_twin_has_the_same_scales_and_intervals():
    """Novelty, sizes that say something and sizes that do not, a target without noise, outliers, a break."""
    rng, n = np.random.default_rng(8), 900
    rows = np.column_stack([rng.normal(size=n), rng.gamma(0.3, size=n), rng.gamma(2.0, size=(n, 2))])
    rows[[200, 500], 1] = 1e9  # far from all data
    noise = 0.1 * rows[:, 2] * (1.0 + rows[:, 1] ** 0.25) * rng.normal(size=n)
    noise[:30], noise[600:] = 0.0, 5.0 * noise[600:]
    targets = rows[:, 0] + noise
    fast, naive, scales = Intervals(targets=1, sizes=2), NaiveIntervals(sizes=2), []
    for t in range(n):
        if t % 7 == 0 or t in (200, 500):
            for level in LEVELS:
                expected = naive.ends(rows[t], level)
                np.testing.assert_allclose(fast.ends(rows[t][None, None], level)[0, 0], expected, rtol=1e-8)
        scales.append(naive.scale(rows[t]))
        naive.learn(rows[t], targets[t])
        found = fast.follow(rows[t][None, None], targets[t, None, None])[0, 0]
        assert found == pytest.approx(scales[-1], rel=1e-8)
    blocks = Intervals(targets=1, sizes=2).follow(rows[:, None], targets[:, None])[:, 0]
    np.testing.assert_allclose(blocks, scales, rtol=1e-8)
    assert scales[500] > 3 * np.median(scales[400:600])


def test_nothing_is_known_before_twenty_residuals():
    learner = embedded()
    assert_identical(learner.predict_interval(X[:1]), np.array([[-np.inf, np.inf]]))
    learner.advance(X[:19], Y[:19])
    assert np.isinf(learner.predict_interval(X[:3])).all()
    learner.learn_one(X[19], Y[19])
    assert np.isfinite(learner.predict_interval(X[:3])).all()
    assert bounds_of(new_scores(), 500, 0.9, two_sided=False) == (-np.inf, np.inf)


@pytest.mark.parametrize("model", ["embedded", "scaled", "auto"])
def test_a_row_whose_target_comes_late_counts_as_it_was_predicted(model):
    """With a delay of three rows by the queue: the definition, from the answers that were given."""
    learner, said, scores = LEARNERS[model](), {}, []
    for t in range(120):
        said[t] = learner.ask(X[t], t), learner.queue.find(t)[0][-1][-1]
        if t >= 3:
            learner.tell(t - 3, float(Y[t - 3]))
            answer, scale = said[t - 3]
            r = Y[t - 3] - answer
            scores.append(r / scale if scale > 1e-200 else np.nan)
    kept = learner.state()["errors"]["scores"][0, 6 : 6 + len(scores)]
    known = ~np.isnan(scores)
    assert known.sum() >= len(scores) - 4
    np.testing.assert_allclose(kept[known], np.array(scores)[known], rtol=1e-9)
    twin = type(learner).from_state(learner.parameters(), learner.state())
    twin.tell(119, 0.0)
    learner.tell(119, 0.0)
    assert_identical(twin.state(), learner.state())


def test_a_delay_of_its_own_keeps_targets_back():
    late, blocks = AutoKONS(max_atoms=20, experts=3, delay=5), AutoKONS(max_atoms=20, experts=3, delay=5)
    for x, y in zip(X[:100], Y[:100], strict=True):
        late.learn_one(x, y)
    blocks.advance(X[:100], Y[:100])
    assert late.state()["errors"]["scores"][0, 0] == blocks.state()["errors"]["scores"][0, 0] == 95
    ends = [learner.predict_interval(X[:9]) for learner in (late, blocks)]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-6)


@pytest.mark.parametrize("model", ["embedded", "scaled", "auto"])
def test_the_width_does_not_fall_as_a_row_moves_away_from_all_data(model):
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, size=(800, 2))
    learner = LEARNERS[model]()
    learner.advance(points, np.clip(0.4 * np.sin(3 * points[:, 0]) + 0.05 * rng.normal(size=800), -1, 1))
    # Only the first column matters: the metric that auto learns ignores the other one.
    for direction in ([1.0, 0.0], [-0.6, 0.8], [0.0, 1.0], [0.1, -1.0]):
        away = np.outer([1.5, 2.0, 3.0, 5.0, 9.0, 20.0], direction)
        widths = np.diff(learner.predict_interval(away))[:, 0]
        assert (np.diff(widths) >= -1e-9 * widths[1:]).all(), widths
        assert widths[-1] > 2 * np.median(np.diff(learner.predict_interval(points)))


def test_without_last_targets_auto_is_as_much_wider_as_it_is_worse():
    """A walk that only its last value tells, and a function of x."""
    rng, n, inside = np.random.default_rng(2), 2400, {True: [], False: []}
    points, walk = rng.uniform(-1, 1, size=(n, 2)), np.zeros(n)
    for t in range(1, n):
        walk[t] = 0.9 * walk[t - 1] + 0.3 * rng.normal()
    targets = np.sin(3 * points[:, 0]) + walk + 0.1 * rng.normal(size=n)
    model = AutoKONS(max_atoms=40, experts=4)
    for start in range(0, n, 60):
        rows = slice(start, start + 60)
        if start >= 600:
            last = model.following().before(targets[rows])
            for recent, given in ((True, last), (False, False)):
                low, high = model.predict_interval(points[rows], recent_targets=given).T
                inside[recent] += ((low <= targets[rows]) & (targets[rows] <= high)).tolist()
        model.advance(points[rows], targets[rows])
    assert 0.87 < np.mean(inside[True]) < 0.93
    assert 0.85 < np.mean(inside[False]) < 0.95


def test_several_targets_have_an_interval_each():
    both = np.column_stack([Y, -0.5 * Y])
    learner = embedded()
    learner.advance(X, both)
    ends = learner.predict_interval(X[:9])
    assert ends.shape == (9, 2, 2)
    alone = learned("embedded")
    np.testing.assert_allclose(ends[:, 0], alone.predict_interval(X[:9]), rtol=0, atol=1e-9)
    assert learner.predict_interval_one(X[0]).shape == (2, 2)


# ---- labels


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_sets_are_never_empty_and_hold_as_many_labels(model):
    learner, inside, sizes = CLASSIFIERS[model](), [], []
    for start in range(0, 600, 20):
        rows = slice(start, start + 20)
        if start:
            sets = learner.predict_set(X[rows], 0.9, **({"recent_targets": True} if model == "auto" else {}))
            inside += [label in named for label, named in zip(LABELS[rows], sets, strict=True)]
            sizes += [len(named) for named in sets]
        learner.advance(X[rows], LABELS[rows])
    assert min(sizes) == 1
    assert abs(np.mean(inside) - 0.9) < 4 * np.sqrt(0.09 / len(inside))
    twin = type(learner).from_state(learner.parameters(), learner.state())
    assert twin.predict_set(X[:30]) == learner.predict_set(X[:30])
    assert learner.predict_set_one(X[0])
    assert learner.predict_set(X[:1], 1e-9) == [[learner.predict(X[:1])[0]]]


def test_single_labels_and_late_ones_count_as_those_of_blocks():
    blocks, rows, late = (CLASSIFIERS["classifier"]() for _ in range(3))
    blocks.advance(X[:150], LABELS[:150])
    for t in range(150):
        rows.learn_one(X[t], LABELS[t])
        late.ask(X[t], t)
        late.tell(t, LABELS[t])
    for other in (rows, late):
        np.testing.assert_allclose(
            other.state()["errors"]["scores"], blocks.state()["errors"]["scores"], rtol=0, atol=1e-9
        )


# ---- what is refused


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5, float("nan"), "0.9", None])
def test_a_level_outside_is_refused(level):
    with pytest.raises(ConfigurationError, match="level"):
        embedded().predict_interval(X[:1], level)
    with pytest.raises(ConfigurationError, match="level"):
        CLASSIFIERS["classifier"]().predict_set(X[:1], level)


def test_numbers_have_no_sets_and_labels_no_intervals():
    with pytest.raises(ConfigurationError, match="predict_set is not for a learner of numbers"):
        embedded().predict_set(X[:1])
    with pytest.raises(ConfigurationError, match="predict_interval is not for a learner of labels"):
        CLASSIFIERS["auto"]().predict_interval(X[:1])


def test_errors_of_another_number_of_targets_are_refused():
    learner = learned("embedded")
    other = embedded()
    other.advance(X, np.column_stack([Y, Y]))
    forged = {**learner.state(), "errors": other.state()["errors"]}
    with pytest.raises(FileError, match="errors of 2 targets"):
        EmbeddedKONS.from_state(learner.parameters(), forged)


def test_a_call_that_is_refused_leaves_the_errors_as_they_were():
    learner = learned("embedded")
    state = learner.state()
    for bad in (
        lambda: learner.advance(X[:5], [0.1, 0.1, np.nan, 0.1, 0.1]),
        lambda: learner.learn_one(X[0], 7.0),
    ):
        with pytest.raises(Exception, match="y"):
            bad()
        assert_identical(learner.state(), state)
