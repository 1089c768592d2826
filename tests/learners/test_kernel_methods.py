"""The methods of kons.recipes.expansions: each against its naive twin, and the bounds their papers prove."""

import functools
import math

import numpy as np
import pytest

import effort
import naive
import naive_kernel_methods as twins
from kons import (
    KONS,
    EmbeddedKONS,
    FunctionalGradient,
    Gaussian,
    Hinge,
    SlidingWindow,
    Squared,
    certify,
    evaluate,
    load,
    save,
)
from kons.errors import ConfigurationError, NumericalError, TargetError
from kons.evaluation import fit_batch
from kons.kernels import FunctionKernel, Polynomial
from kons.losses import CustomLoss
from kons.policies import Budget, Leverage
from kons.recipes import (
    RECIPES,
    bogd,
    dual_sgd,
    fogd,
    for_task,
    forgetron,
    kaar,
    krls,
    make,
    narow,
    norma,
    perceptron,
    projectron,
    rbp,
    second_order_perceptron,
)

ROWS = 240
X = np.random.default_rng(3).normal(size=(ROWS, 2))
LABELS = np.where(np.random.default_rng(4).random(ROWS) < 0.1, -1.0, 1.0) * np.sign(X[:, 0] * X[:, 1] + 0.2)
NUMBERS = np.clip(np.sin(2.0 * X[:, 0]) * X[:, 1], -1.0, 1.0)
GAUSSIAN = Gaussian(0.8)
K = naive.gaussian_gram(X, 0.8)
QUADRATIC = Polynomial(degree=2, offset=0.0)
PHI = naive.quadratic_features(X)
STEPS = 0.5 / np.sqrt(np.arange(1, ROWS + 1))

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)


def hinge_slope(p, y):
    return -y if y * p < 1.0 else 0.0


def falling(t):
    return 0.5 / math.sqrt(t)


def assert_like(make_learner, y, scores, weights=None):
    """Whole, in blocks of 7 and row by row: the clipped scores of the twin."""
    whole, blocks, rows = (make_learner() for _ in range(3))
    expected = np.clip(scores, -whole.bound, whole.bound)
    close(whole.advance(X, y, sample_weight=weights).prediction, expected)
    close(blocks.advance(X, y, block_size=7, sample_weight=weights).prediction, expected)
    assert (blocks.size, blocks.rows_seen) == (whole.size, ROWS)
    if weights is None:
        for t in range(ROWS):
            close(rows.predict_one(X[t]), expected[t])
            rows.learn_one(X[t], y[t])
        assert rows.size == whole.size
        close(rows.predict(X), whole.predict(X))
    return whole


# ---- twins


@pytest.mark.parametrize("bound", [0.5, 2.0])
def test_the_newton_step_on_a_loss_without_curvature(bound):
    eta = 1.0 / (bound * np.sqrt(np.arange(1, ROWS + 1)))  # 1/(L C sqrt(t)), L = 1
    run = naive.ons(PHI, lambda t, p: hinge_slope(p, LABELS[t]), bound=bound, alpha=0.5, eta=eta)
    trace = KONS(QUADRATIC, Hinge(), bound=bound, regularization=0.5).advance(X, LABELS)
    close(trace.prediction, run.prediction)
    close(trace.weight, run.weight)
    assert (np.count_nonzero(run.slope) < ROWS) == (bound > 1.0)  # below, no row is beyond the margin


def test_perceptron():
    scores, mistakes = twins.perceptron(PHI, LABELS)
    learner = assert_like(lambda: perceptron(QUADRATIC), LABELS, scores)
    assert learner.size == len(mistakes) < ROWS / 2
    kept = perceptron(QUADRATIC).advance(X, LABELS).kept
    assert np.flatnonzero(kept).tolist() == mistakes


def test_second_order_perceptron():
    scores, mistakes = twins.second_order_perceptron(PHI, LABELS, a=0.7)
    learner = assert_like(lambda: second_order_perceptron(QUADRATIC, regularization=1.4), LABELS, scores)
    assert learner.size == len(mistakes) < ROWS / 2


@pytest.mark.parametrize(("b", "alpha"), [(1.0, 1.0), (3.0, 0.4)])
def test_narow(b, alpha):
    scores, kept = twins.narow(PHI, LABELS, b, alpha)
    make_learner = functools.partial(narow, QUADRATIC, regularization=alpha, step_size=b, bound=2.0)
    learner = assert_like(make_learner, LABELS, scores)
    assert learner.size == sum(kept) < ROWS
    trace = make_learner().advance(X, LABELS)
    # Behind a row that was learned, phi^T A^-1 phi = q/(1 + w*q) is at most 1/b.
    behind = trace.inverse_form / (1.0 + trace.weight * trace.inverse_form)
    assert behind[trace.kept].max() <= (1.0 + 1e-12) / b
    assert (trace.weight[trace.kept] == 0.0).any()
    assert (trace.weight > 0.0).any()


def test_kaar():
    assert_like(lambda: kaar(GAUSSIAN, regularization=0.2), NUMBERS, twins.kaar(K, NUMBERS, a=0.1))


@pytest.mark.parametrize("window", [1, 30, 1000])
def test_sliding_window(window):
    ones = np.ones(ROWS)
    scores = twins.sliding_window(K, NUMBERS, window, 0.05, ones)
    learner = assert_like(lambda: krls(GAUSSIAN, window=window, regularization=0.1), NUMBERS, scores)
    assert type(learner) is SlidingWindow
    assert learner.size == min(window, ROWS)
    np.testing.assert_array_equal(learner.points, X[-window:])


def test_sliding_window_with_weights():
    weights = np.where(np.arange(ROWS) % 5 == 0, 0.0, 0.5 + np.arange(ROWS) % 3)
    scores = twins.sliding_window(K, NUMBERS, 30, 0.05, weights)
    assert_like(lambda: krls(GAUSSIAN, window=30, regularization=0.1), NUMBERS, scores, weights)


def test_a_window_loses_no_digits_on_a_long_stream():
    # Every number of the factor leaves with its point: after 40 windows it is as good as after one.
    learner = SlidingWindow(GAUSSIAN, window=25, regularization=1e-6)
    inputs = np.random.default_rng(0).normal(size=(1000, 2))
    learner.advance(inputs, np.sin(inputs[:, 0]))
    fresh = SlidingWindow(GAUSSIAN, window=25, regularization=1e-6)
    fresh.advance(inputs[-25:], np.sin(inputs[-25:, 0]))
    # Errors of eps times the condition number, some 25/5e-7, of coefficients up to 1e6.
    np.testing.assert_allclose(learner.predict(X), fresh.predict(X), rtol=0, atol=1e-6)


def test_krls_by_dependence():
    scores, atoms = twins.krls_by_dependence(K, NUMBERS, 0.05, 0.05)
    learner = assert_like(lambda: krls(GAUSSIAN, tolerance=0.05, regularization=0.1), NUMBERS, scores)
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    assert 10 < len(atoms) < ROWS / 2


def test_the_tracker_forgets_where_the_other_does_not():
    inputs = np.random.default_rng(0).uniform(-2, 2, size=(1200, 1))
    y = np.where(np.arange(1200) < 600, 1.0, -1.0) * np.sin(2 * inputs[:, 0])
    tracker, keeper = (krls(Gaussian(0.5), forgetting=forgetting, max_atoms=20) for forgetting in (0.97, 1.0))
    assert (
        tracker.advance(inputs, y).loss[-100:].mean()
        < 0.01
        < 0.1
        < keeper.advance(inputs, y).loss[-100:].mean()
    )


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("eta", [0.2, 0.6])
def test_projectron(margins, eta):
    scores, atoms = twins.projectron(K, LABELS, eta, margins)
    make_learner = functools.partial(projectron, GAUSSIAN, tolerance=eta**2, margins=margins)
    learner = assert_like(make_learner, LABELS, scores)
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    assert len(atoms) < len(twins.perceptron(PHI, LABELS)[1]) + ROWS / 4


def test_norma():
    scores, terms, _ = twins.descend(K, NUMBERS, lambda p, y: 2 * (p - y), eta=STEPS, decay=0.1)
    make_learner = functools.partial(norma, GAUSSIAN, Squared(), step_size=falling, decay=0.1)
    learner = assert_like(make_learner, NUMBERS, scores)
    close(learner.coefficients, [c for _, c in terms])


def test_norma_forgets_its_oldest_terms():
    scores, terms, _ = twins.descend(K, LABELS, hinge_slope, eta=STEPS, decay=0.1, budget=40)
    make_learner = functools.partial(norma, GAUSSIAN, Hinge(), step_size=falling, decay=0.1, max_points=40)
    learner = assert_like(make_learner, LABELS, scores)
    np.testing.assert_array_equal(learner.points, X[[i for i, _ in terms]])


def test_rbp():
    coins = np.random.default_rng(5).random(ROWS)
    choices = {"mistakes": True, "budget": 15, "when_full": "random", "coins": coins}
    scores, terms, _ = twins.descend(K, LABELS, hinge_slope, eta=np.ones(ROWS), **choices)
    learner = assert_like(lambda: rbp(GAUSSIAN, max_points=15, seed=5), LABELS, scores)
    np.testing.assert_array_equal(learner.points, X[[i for i, _ in terms]])


@pytest.mark.parametrize("budget", [4, 15])
def test_forgetron(budget):
    choices = {"mistakes": True, "budget": budget, "when_full": "shrink"}
    scores, terms, costs = twins.descend(K, LABELS, hinge_slope, eta=np.ones(ROWS), **choices)
    learner = assert_like(lambda: forgetron(GAUSSIAN, max_points=budget), LABELS, scores)
    close(learner.coefficients, [c for _, c in terms])
    # It shrank where it had to, and what removals cost stayed within 15/32 of the mistakes.
    assert np.abs(learner.coefficients).max() <= 1.0
    assert all(cost <= 15 / 32 * mistakes + 1e-9 for cost, mistakes in costs)
    cost, mistakes = learner.state()["totals"]
    close([cost, mistakes], costs[-1])
    if budget == 4:
        assert np.abs(learner.coefficients).min() < 1.0


@pytest.mark.parametrize("when_full", ["unbiased", "smallest", "project"])
def test_bogd(when_full):
    coins = np.random.default_rng(7).random(ROWS)
    choices = {"budget": 20, "when_full": when_full, "largest": 0.6, "coins": coins}
    eta = np.full(ROWS, 0.3)
    scores, terms, _ = twins.descend(K, LABELS, hinge_slope, eta=eta, decay=0.05, **choices)
    parameters = {"when_full": when_full, "largest": 0.6, "seed": 7}
    learner = assert_like(
        lambda: bogd(GAUSSIAN, Hinge(), step_size=0.3, decay=0.05, max_points=20, **parameters),
        LABELS,
        scores,
    )
    close(learner.coefficients, [c for _, c in terms])
    assert learner.size == 20


@pytest.mark.parametrize("name", ["second_order_perceptron", "perceptron", "projectron", "forgetron", "rbp"])
def test_where_equal_rows_balance_blocks_and_rows_decide_alike(name):
    """f is 0 then but for rounding, whose sign blocks and rows did not share."""
    labels = np.where(np.random.default_rng(1).normal(size=120) > 0.0, 1.0, -1.0)
    rows = np.tile([[0.3, -0.7]], (120, 1))
    blocks, single = (make(name, GAUSSIAN, RECIPES[name].own_loss) for _ in range(2))
    trace = blocks.advance(rows, labels)
    scores = [predicted_and_learned(single, x, y) for x, y in zip(rows, labels, strict=True)]
    close(trace.prediction, scores)
    assert np.count_nonzero(np.abs(scores) < 1e-9) > 3  # ties there were


@pytest.mark.parametrize("name", ["narow", "norma", "bogd", "fogd"])
def test_where_equal_rows_lead_to_the_kink_blocks_and_rows_decide_alike(name):
    """A margin is 1 then but for rounding, and whether a row is learned was up to that."""
    steps = {"step_size": 0.25} | ({"decay": 0.0} if "decay" in RECIPES[name].parameters else {})
    labels = np.where(np.arange(60) % 3, 1.0, -1.0)
    rows = np.tile([[0.3, -0.7]], (60, 1))
    given = {} if name == "narow" else steps
    blocks, single = (RECIPES[name].made_of(GAUSSIAN, Hinge(), bound=9.0, **given) for _ in range(2))
    trace = blocks.advance(rows, labels)
    scores = [predicted_and_learned(single, x, y) for x, y in zip(rows, labels, strict=True)]
    close(trace.prediction, scores)


def predicted_and_learned(learner, x, y):
    score = learner.predict_one(x)
    learner.learn_one(x, y)
    return score


def test_by_its_name_alone_bogd_is_better_than_a_constant():
    """Unbiased removals were not: under the squared loss a point goes in every row, their noise adds up."""
    rows = np.random.default_rng(3).uniform(-50.0, 50.0, size=(600, 2))
    y = 7.0 + np.sin(rows[:, 0] / 25.0) + rows[:, 1] / 50.0
    default, unbiased = (
        for_task("regression", "bogd", max_points=30, warmup=40, **given).advance(rows, y).loss[100:].mean()
        for given in ({}, {"when_full": "unbiased"})
    )
    assert default < 0.2 * y.var() < y.var() < unbiased
    assert [bogd(GAUSSIAN, one).budget.when_full for one in (Squared(), Hinge())] == ["project", "unbiased"]


@pytest.mark.parametrize("name", ["bogd", "dual_sgd", "forgetron", "rbp"])
def test_two_classes_have_one_function_and_so_one_budget(name):
    words = np.where(LABELS > 0.0, "up", "down")
    model = for_task("classification", name, warmup=40, max_points=9)
    trace = model.advance(X, words)
    assert model.size == trace.size[-1] == trace.size.max() == 9
    scores = model.decision_function(X[:50])
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
    # What it was with a function for each: the classifier of a loss that kons does not know has these.
    model.learn_one(X[0], "sideways")
    assert 9 <= model.size <= 27
    assert not np.array_equal(model.decision_function(X[:50])[:, 0], -model.decision_function(X[:50])[:, 1])


def test_a_loss_of_ones_own_and_objects():
    custom = CustomLoss(lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), name="squared again")
    kernel = FunctionKernel(lambda a, b: float(np.exp(-np.sum((a - b) ** 2) / (2 * 0.8**2))))
    slow = bogd(kernel, custom, max_points=12, when_full="project").advance(list(X[:90]), NUMBERS[:90])
    fast = bogd(GAUSSIAN, Squared(), max_points=12, when_full="project").advance(X[:90], NUMBERS[:90])
    close(slow.prediction, fast.prediction)


# ---- what the papers prove, on runs


def comparator(labels, ridge, gram=K):
    """A function by its values and squared norm: kernel ridge on the whole stream, which knows it all."""
    theta = np.linalg.solve(gram + ridge * np.eye(len(gram)), labels)
    return gram @ theta, float(theta @ gram @ theta)


COMPARATORS = [(scale, ridge) for scale in (0.05, 0.3, 1.0, 2.0) for ridge in (0.1, 1.0, 10.0)]


def scaled_comparators():
    for scale, ridge in COMPARATORS:
        values, norm2 = comparator(LABELS, ridge)
        yield scale * values, scale**2 * norm2


def hinge_losses(values, rows):
    return np.maximum(0.0, 1.0 - LABELS[rows] * values[rows]).sum()


def mistakes_of(trace):
    return np.flatnonzero(trace.prediction * LABELS <= 0.0)


def test_mistakes_of_the_perceptron():
    rows = mistakes_of(perceptron(GAUSSIAN).advance(X, LABELS))
    bounds = [norm2 + 2.0 * hinge_losses(values, rows) for values, norm2 in scaled_comparators()]
    assert len(rows) <= min(bounds)


@pytest.mark.parametrize("margins", [False, True])
def test_mistakes_of_the_projectron(margins):
    eta = 0.05
    rows = mistakes_of(projectron(GAUSSIAN, tolerance=eta**2, margins=margins).advance(X, LABELS))
    every = np.arange(ROWS) if margins else rows
    compared = 0
    for values, norm2 in scaled_comparators():
        if 2.0 * eta * math.sqrt(norm2) < 1.0:
            compared += 1
            bound = (norm2 + 2.0 * hinge_losses(values, every)) / (1.0 - 2.0 * eta * math.sqrt(norm2))
            assert len(rows) <= bound
    assert compared >= 6


def test_the_projectron_stays_finite():
    # Points eta apart from each other's span fit only finitely often into a bounded set.
    inputs = np.random.default_rng(0).uniform(-1, 1, size=(3000, 1))
    noise = np.random.default_rng(1).choice([-1.0, 1.0], size=3000)
    bounded, growing = projectron(Gaussian(0.5), tolerance=0.01), perceptron(Gaussian(0.5))
    bounded.advance(inputs, noise)
    growing.advance(inputs, noise)
    assert bounded.size <= 12 < 1000 < growing.size


def test_mistakes_of_the_forgetron():
    budget = 84
    largest = 0.25 * math.sqrt((budget + 1) / math.log(budget + 1))
    noisy = np.where(np.arange(ROWS) % 2, LABELS, -LABELS)  # enough mistakes to fill it
    trace = forgetron(GAUSSIAN, max_points=budget).advance(X, noisy)
    assert trace.size.max() == budget
    mistakes = np.count_nonzero(trace.prediction * noisy <= 0.0)
    compared = 0
    for scale, ridge in COMPARATORS:
        values, norm2 = (
            part * power for part, power in zip(comparator(noisy, ridge), (scale, scale**2), strict=True)
        )
        if math.sqrt(norm2) <= largest:
            compared += 1
            assert mistakes <= 2.0 * norm2 + 4.0 * np.maximum(0.0, 1.0 - noisy * values).sum()
    assert compared >= 3


def test_expected_mistakes_of_the_randomized_budget():
    """E[M] (1 - |g|/sqrt(B)) <= E[sum max(0, 1 - y g(x))] + |g| (B + sqrt(B)/4), the sum over mistakes.

    A removal takes off f/B on average. So g gains 1 - hinge by a mistake and loses <g, f>/B by a removal,
    and |f|^2 grows by at most 2 - 2|f|^2/B: over R removals the squares sum to at most B R + B^2/2 on
    average, and the norms to sqrt(B) (R + B/4). What g has at the end is at most |g| B.
    """
    budget, rows, random = 30, 600, np.random.default_rng(0)
    sides = random.choice([-1.0, 1.0], rows)
    inputs = (2.0 * sides + 0.3 * random.normal(size=rows))[:, None]
    y = np.where(random.random(rows) < 0.1, -sides, sides)
    runs = [rbp(Gaussian(), max_points=budget, seed=seed).advance(inputs, y) for seed in range(20)]
    assert all(run.size[rows // 2] == budget for run in runs)
    wrong = np.stack([run.prediction * y <= 0.0 for run in runs])
    values, norm2 = comparator(sides, 50.0, naive.gaussian_gram(inputs, 1.0))
    for scale in (0.2, 0.5, 1.0):
        norm = scale * math.sqrt(norm2)
        hinge = np.mean(wrong @ np.maximum(0.0, 1.0 - scale * y * values))
        bound = (hinge + norm * (budget + math.sqrt(budget) / 4.0)) / (1.0 - norm / math.sqrt(budget))
        assert np.mean(wrong.sum(axis=1)) <= bound < rows / 2  # half of them are a coin's


@pytest.mark.parametrize("a", [0.1, 1.0])
def test_mistakes_of_the_second_order_perceptron(a):
    rows = mistakes_of(second_order_perceptron(GAUSSIAN, regularization=2.0 * a).advance(X, LABELS))
    inside = K[np.ix_(rows, rows)]
    log_determinant = np.linalg.slogdet(np.eye(len(rows)) + inside / a)[1]
    bounds = []
    for values, norm2 in scaled_comparators():
        width = math.sqrt((a * norm2 + np.sum(values[rows] ** 2)) * log_determinant)
        bounds.append(hinge_losses(values, rows) + width)
    assert len(rows) <= min(bounds)


def test_mistakes_of_narow():
    trace = narow(GAUSSIAN, step_size=3.0, regularization=0.5, bound=1e6).advance(X, LABELS)
    learned = np.flatnonzero(trace.kept)
    w, q = trace.weight[learned], trace.inverse_form[learned]
    for values, norm2 in scaled_comparators():
        # The leader of linear losses with growing squares: its regret is theirs at g, and what it moves by.
        moved = 0.5 * (0.5 * norm2 + np.sum(w * values[learned] ** 2) + np.sum(q / (1.0 + w * q)))
        assert len(mistakes_of(trace)) <= hinge_losses(values, learned) + moved


@pytest.mark.parametrize("regularization", [0.02, 1.0])
def test_loss_of_kaar(regularization):
    a = regularization / 2.0
    trace = kaar(GAUSSIAN, regularization=regularization).advance(X, NUMBERS)
    # The infimum over all functions of their loss + a |g|^2 is that of kernel ridge.
    best = a * float(NUMBERS @ np.linalg.solve(K + a * np.eye(ROWS), NUMBERS))
    assert trace.loss.sum() <= best + np.linalg.slogdet(np.eye(ROWS) + K / a)[1]
    assert trace.loss.sum() > best


@pytest.mark.parametrize("rows", [60, ROWS])
def test_regret_of_norma_grows_as_the_root_of_time(rows):
    inputs, y = X[:rows], LABELS[:rows]
    for values, norm2 in scaled_comparators():
        # Without decay, with the step |g|/sqrt(T): regret at most |g| sqrt(T), for slopes and k(x,x) up to 1.
        step = math.sqrt(norm2 / rows)
        trace = norma(GAUSSIAN, Hinge(), bound=1e6, step_size=step, decay=0.0).advance(inputs, y)
        losses = np.maximum(0.0, 1.0 - y * values[:rows])
        assert trace.loss.sum() - losses.sum() <= math.sqrt(norm2 * rows)


def test_regularized_regret_of_norma():
    decay, eta = 0.2, 0.5
    trace = norma(GAUSSIAN, Hinge(), bound=1e6, step_size=lambda t: eta / math.sqrt(t), decay=decay).advance(
        X, LABELS
    )
    squared_norms = []
    learner = norma(GAUSSIAN, Hinge(), bound=1e6, step_size=lambda t: eta / math.sqrt(t), decay=decay)
    for x, y in zip(X, LABELS, strict=True):
        values = learner.predict(learner.points) if learner.size else np.empty(0)
        squared_norms.append(values @ learner.coefficients)
        learner.learn_one(x, y)
    paid = trace.loss.sum() + decay / 2 * np.sum(squared_norms)
    # f and g stay within 1/lambda, slopes of the regularized loss within 2: Zinkevich's telescoping.
    radius, time = 1.0 / decay, math.sqrt(ROWS)
    for values, norm2 in scaled_comparators():
        if norm2 <= radius**2:
            best = hinge_losses(values, np.arange(ROWS)) + ROWS * decay / 2 * norm2
            assert paid <= best + (2 * radius) ** 2 * time / (2 * eta) + 4 / 2 * eta * 2 * time


# ---- doors


NAMES = ["bogd", "forgetron", "narow", "norma", "perceptron", "projectron", "projectron_plus", "rbp"]
NAMES += ["second_order_perceptron", "kaar", "krls"]


@pytest.mark.parametrize("name", effort.some(NAMES, "forgetron", "narow", "krls"))
def test_classes_in_raw_units_and_files(name, tmp_path):
    words = np.where(X[:, 0] > 0.5, "right", np.where(X[:, 1] > 0.0, "up", "down"))
    model = for_task("classification", name, warmup=40)
    model.advance(X[:150] * 1000.0, words[:150])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (
        model.advance(X[150:] * 1000.0, words[150:]).prediction.tolist()
        == again.advance(X[150:] * 1000.0, words[150:]).prediction.tolist()
    )
    assert np.mean(model.predict(X * 1000.0) == words) > 0.6


def test_evaluate_takes_them():
    result = evaluate(forgetron(GAUSSIAN, max_points=30), (X, LABELS))
    assert result.rows == ROWS


def test_a_sample_weight_scales_the_step():
    twice = FunctionalGradient(GAUSSIAN, Hinge(), step_size=0.5)
    twice.advance(X[:50], LABELS[:50], sample_weight=np.full(50, 2.0))
    larger = FunctionalGradient(GAUSSIAN, Hinge(), step_size=1.0)
    larger.advance(X[:50], LABELS[:50])
    close(twice.coefficients, larger.coefficients)


REFUSED = {
    "a kernel that is none": (lambda: perceptron(None), "kernel is None"),
    "updates": (
        lambda: KONS(GAUSSIAN, Hinge(), updates="some"),
        'updates is \'some\', expected "all" or "mistakes"',
    ),
    "margins of KONS": (lambda: KONS(GAUSSIAN, Hinge(), updates="margins"), "it needs EmbeddedKONS"),
    "margins of descent": (
        lambda: FunctionalGradient(GAUSSIAN, Hinge(), updates="margins"),
        "it needs EmbeddedKONS",
    ),
    "margins of other losses": (
        lambda: EmbeddedKONS(GAUSSIAN, Squared(), second_order="none", updates="margins"),
        "it needs EmbeddedKONS with Hinge",
    ),
    "margins in a fixed span": (
        lambda: EmbeddedKONS(GAUSSIAN, Hinge(), second_order="none", updates="margins", policy=Leverage()),
        "needs policy=Dependence",
    ),
    "mistakes of numbers": (
        lambda: KONS(GAUSSIAN, Squared(), bound=0.5, updates="mistakes"),
        "is of the targets -1 and \\+1",
    ),
    "capped in a span": (lambda: EmbeddedKONS(GAUSSIAN, Hinge(), second_order="capped"), "use KONS"),
    "hessian of the hinge": (
        lambda: KONS(GAUSSIAN, Hinge(), second_order="hessian"),
        "needs a second derivative",
    ),
    "forward of the hinge": (lambda: KONS(GAUSSIAN, Hinge(), forward=True), "forward=True is the Azoury"),
    "decay": (lambda: norma(GAUSSIAN, Hinge(), step_size=2.0, decay=0.5), "their product must stay below 1"),
    "a budget that is none": (lambda: FunctionalGradient(GAUSSIAN, Hinge(), budget=12), "budget is 12"),
    "when_full": (lambda: Budget(12, "newest"), "when_full is 'newest', expected \"oldest\""),
    "largest": (lambda: Budget(12, "unbiased", 0.0), "largest is 0"),
    "points": (lambda: Budget(0), "max_points is 0"),
    "too many points": (lambda: rbp(GAUSSIAN, max_points=2**64), "at most 1,000,000,000"),
    "too long a window": (lambda: krls(GAUSSIAN, window=2**64), "at most 1,000,000,000"),
    "too many points besides features": (
        lambda: dual_sgd(GAUSSIAN, Squared(), max_points=2**64),
        "max_points is 18446744073709551616",
    ),
    "too many features": (
        lambda: fogd(GAUSSIAN, Squared(), dimension=2**40),
        "dimension is 1099511627776, expected an integer of at least 2 and at most 1,000,000",
    ),
    "window and forgetting": (lambda: krls(GAUSSIAN, window=5, forgetting=0.9), "a window forgets by itself"),
    "another loss": (lambda: make("forgetron", GAUSSIAN, Squared()), "forgetron is for the hinge loss"),
    "numbers as targets": (
        lambda: for_task("regression", "rbp"),
        "'rbp' is for classification, not for regression",
    ),
    "slopes without targets": (
        lambda: second_order_perceptron(GAUSSIAN).learn_slope([0.0, 0.0], 1.0),
        "learn_slope sees no",
    ),
    "a certificate of mistakes": (
        lambda: certify(second_order_perceptron(GAUSSIAN), X, LABELS),
        "no regret bound is proven for this learner",
    ),
    "a certificate of first order": (
        lambda: certify(perceptron(GAUSSIAN), X, LABELS),
        'second_order="none" is not projected',
    ),
    "a batch of first order": (
        lambda: fit_batch(perceptron(GAUSSIAN), X, LABELS),
        "takes a second-order learner",
    ),
    "several targets": (
        lambda: forgetron(GAUSSIAN).advance(X, np.stack([LABELS, LABELS], axis=1)),
        "keeps points by their one target, and y has 2",
    ),
    "several targets in a span": (
        lambda: projectron(GAUSSIAN).learn_one(X[0], [1.0, -1.0]),
        "keeps points by their one target",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(ConfigurationError, match=message):
        call()


def test_projection_minds_no_rounding():
    # A kernel in single precision, and points that repeat: pivots are rounding.
    inputs = np.round(X, 1)[np.arange(120) % 40]

    def single(a, b):
        return float(np.float32(np.exp(-np.sum((a - b) ** 2) / 50.0)))

    learner = bogd(FunctionKernel(single), Squared(), max_points=15, when_full="project")
    trace = learner.advance(list(inputs), np.tanh(inputs[:, 0]))
    exact = bogd(Gaussian(5.0), Squared(), max_points=15, when_full="project")
    assert trace.loss.mean() < 1.1 * exact.advance(inputs, np.tanh(inputs[:, 0])).loss.mean()
    assert np.abs(learner.coefficients).max() < 1e3


def test_errors_leave_no_trace():
    learner = bogd(GAUSSIAN, Squared(), max_points=10, when_full="project")
    learner.advance(X[:40], LABELS[:40])
    before = learner.predict(X)
    with pytest.raises(TargetError):
        learner.advance(X[40:60], 3.0 * NUMBERS[40:60])
    with pytest.raises(NumericalError, match=r"sample weight of 1e\+308 times the slope .* lower step_size"):
        learner.advance(X[40:60], LABELS[40:60], sample_weight=np.full(20, 1e308))
    np.testing.assert_array_equal(learner.predict(X), before)
    assert (learner.size, learner.rows_seen) == (10, 40)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make_learner", [forgetron, perceptron, projectron])
def test_steps_that_overflow_are_told(make_learner):
    learner = make_learner(GAUSSIAN)
    with pytest.raises(NumericalError, match=r"lower step_size|weight or step overflows"):
        learner.advance(X, LABELS, sample_weight=np.full(ROWS, 1e308))
    assert learner.rows_seen == 0
