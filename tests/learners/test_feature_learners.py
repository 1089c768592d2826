"""Learners of explicit features: each against its naive twin, and the bounds that their papers prove."""

import functools

import numpy as np
import pytest
import scipy.sparse

import effort
import kons
import naive
import naive_methods
from kons import (
    FeatureLearner,
    FunctionalGradient,
    Gaussian,
    Laplace,
    Linear,
    Logistic,
    Polynomial,
    Squared,
    recipes,
)
from kons.core.feature_maps import Fastfood, Fourier, Sketch
from kons.errors import ConfigurationError, FileError, NumericalError
from kons.kernels import Matern, RationalQuadratic
from kons.losses import CustomLoss
from kons.policies import Budget
from kons.recipes import RECIPES, make
from kons.stored import Stored

ROWS = 150
X = np.random.default_rng(0).normal(size=(ROWS, 3)) * [1.0, 0.3, 2.0]
Z = np.hstack([np.ones((ROWS, 1)), X])
SIGNAL = 0.8 * X[:, 0] - X[:, 1] + 0.2 * X[:, 2] * X[:, 0]
TARGETS = {Squared(): np.clip(SIGNAL, -1.0, 1.0), Logistic(): np.sign(SIGNAL)}
STEPS = 0.3 / np.sqrt(np.arange(1, ROWS + 1))
OWN = CustomLoss(
    lambda p, y: (p - y) ** 2, lambda p, y: 2.0 * (p - y), lambda p, y: 2.0, lipschitz=4.0, curvature=0.125
)

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)


def falling(t):
    return 0.3 / t**0.5


# ---- first order


DESCENTS = {
    "ogd": (lambda loss: recipes.ogd(loss, step_size=falling), {"kind": "none"}),
    "ogd, ball": (
        lambda loss: recipes.ogd(loss, step_size=falling, radius=0.4),
        {"kind": "none", "radius": 0.4},
    ),
    "ogd, its own step": (
        recipes.ogd,
        {"kind": "scaled", "eta": lambda L: 1.0 / (L * np.sqrt(np.arange(1, ROWS + 1)))},
    ),
    "adagrad": (recipes.adagrad, {"kind": "diagonal", "alpha": 1e-8, "eta": lambda L: np.full(ROWS, 0.1)}),
    "adam": (
        lambda loss: recipes.adam(loss, step_size=0.05),
        {"kind": "diagonal", "alpha": 1e-8, "b1": 0.9, "b2": 0.999, "eta": lambda L: np.full(ROWS, 0.05)},
    ),
    "another power": (
        lambda loss: FeatureLearner(
            Polynomial(degree=1), loss, curvature="diagonal", power=0.3, discount=0.9, step_size=falling
        ),
        {"kind": "diagonal", "power": 0.3, "b2": 0.9},
    ),
    "norm": (
        lambda loss: FeatureLearner(Polynomial(degree=1), loss, curvature="norm", step_size=falling),
        {"kind": "norm"},
    ),
}


@pytest.mark.parametrize("loss", [*TARGETS, OWN], ids=["squared", "logistic", "own"])
@pytest.mark.parametrize("name", DESCENTS)
def test_descents(name, loss):
    make_learner, given = DESCENTS[name]
    y = TARGETS.get(loss, TARGETS[Squared()])
    eta = given["eta"](loss.lipschitz(1.0)) if "eta" in given else STEPS
    expected, weights = naive_methods.descent(Z, y, loss, **{**given, "eta": eta})
    learner = make_learner(loss)
    trace = learner.advance(X, y)
    close(trace.prediction, expected)
    assert np.abs(expected).max() == 1.0  # something was clipped, and projected
    behind = make_learner(loss)
    behind.advance(X[:-1], y[:-1])
    close(np.clip(Z @ behind.weights[:, 0], -1.0, 1.0)[-1], expected[-1])
    assert not learner.size
    assert len(weights) == ROWS


def test_several_targets_are_as_many_learners():
    y = np.stack([TARGETS[Squared()], 0.5 * TARGETS[Squared()]], axis=1)
    for name in ("adagrad", "nogd", "ons", "sketched_ons", "vaw"):
        together, first, second = (make(name, Gaussian(), Squared()) for _ in range(3))
        found = together.advance(X, y).prediction
        close(found[:, 0], first.advance(X, y[:, 0]).prediction)
        close(found[:, 1], second.advance(X, y[:, 1]).prediction)
        close(together.predict(X[:3])[:, 1], second.predict(X[:3]))


@pytest.mark.parametrize("name", ["ogd", "adam", "ons", "sketched_ons", "vaw"])
def test_columns_whose_squares_overflow_are_one_error_and_change_nothing(name):
    y = TARGETS[Squared()]
    learner, expected = make(name, Gaussian(), Squared()), make(name, Gaussian(), Squared())
    for one in (learner, expected):
        one.advance(X[:30], y[:30])
    with pytest.raises(NumericalError):
        learner.advance(X[30:40] * 1e300, y[30:40])
    close(learner.advance(X[40:], y[40:]).prediction, expected.advance(X[40:], y[40:]).prediction)


def test_a_radius_is_refused_in_its_own_word():
    with pytest.raises(ConfigurationError, match="radius is 0"):
        recipes.aogd_ald(Gaussian(), Squared(), radius=0.0)


@pytest.mark.filterwarnings("ignore:X is sparse|x is sparse")
@pytest.mark.parametrize("name", ["nogd", "ogd", "norma", "krls", "kons"])
def test_a_row_in_brackets_and_sparse_ones_are_rows(name):
    """They were learned, and then an error told of their shape."""
    y = TARGETS[Squared()]
    dense, sparse = make(name, Gaussian(), Squared()), make(name, Gaussian(), Squared())
    expected = dense.advance(X[:40], y[:40]).prediction
    close(sparse.advance(scipy.sparse.csr_matrix(X[:40]), y[:40]).prediction, expected)
    for row in (scipy.sparse.csr_array(X[40:41]), X[40:41], [list(X[40])]):
        dense.learn_one(X[40], 0.5)
        sparse.learn_one(row, 0.5)
    close(sparse.predict(X[:5]), dense.predict(X[:5]))


# ---- second order


@pytest.mark.parametrize("loss", TARGETS, ids=repr)
@pytest.mark.parametrize("directions", [2, 3, None])
def test_the_newton_step_and_its_sketch(loss, directions):
    eta, y = loss.curvature(1.0), TARGETS[loss]
    if directions is None:
        learner = recipes.ons(loss, regularization=0.2)
        expected, gain = naive_methods.newton(Z, y, loss, eta=eta, alpha=0.2)
    else:
        # In directions that the sketch forgot, steps are by alpha alone: below |z|^2 times the slope's own
        # slope they overshoot, and what was rounded grows from row to row.
        learner = recipes.sketched_ons(loss, regularization=20.0, directions=directions)
        expected, gain = naive_methods.sketched_newton(Z, y, loss, eta=eta, alpha=20.0, directions=directions)
    trace = learner.advance(X, y)
    close(trace.prediction, expected)
    assert trace.gain == pytest.approx(gain, rel=1e-9)


def test_vaw():
    y = TARGETS[Squared()]
    learner = recipes.vaw(regularization=0.3)
    close(learner.advance(X, y).prediction, naive_methods.vovk_azoury_warmuth(Z, y, alpha=0.3, bound=1.0))
    # Asked about a row, it counts it as well.
    again = recipes.vaw(regularization=0.3)
    again.advance(X[:-1], y[:-1])
    expected = naive_methods.vovk_azoury_warmuth(Z, y, alpha=0.3, bound=1.0)[-1]
    close([again.predict_one(X[-1]), again.predict(X[-1:])[0]], expected)


# ---- in a span


K = naive.gaussian_gram(X, 0.8)


@pytest.mark.parametrize("rank", [None, 4])
def test_nogd_is_kernel_gradient_descent_in_the_span_of_the_first_points(rank):
    y = TARGETS[Squared()]
    learner = recipes.nogd(Gaussian(0.8), Squared(), max_atoms=20, rank=rank, step_size=falling)
    expected, atoms = naive_methods.first_order_in_span(
        K, y, Squared(), eta=STEPS, tolerance=1e-10, max_atoms=20, rank=rank or 0
    )
    close(learner.advance(X, y).prediction, expected)
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    assert atoms == list(range(20))
    assert learner.transform(X[:3]).shape == (3, rank or 20)


def test_a_span_of_few_directions_by_rows_and_from_a_file(tmp_path):
    y = TARGETS[Squared()]
    whole, rows = (recipes.nogd(Gaussian(0.8), Squared(), max_atoms=20, rank=4) for _ in range(2))
    expected = whole.advance(X, y).prediction
    for t in range(40):
        close(rows.predict_one(X[t]), expected[t])
        rows.learn_one(X[t], y[t])
    kons.save(rows, tmp_path / "rows.kons")
    close(kons.load(tmp_path / "rows.kons").advance(X[40:], y[40:]).prediction, expected[40:])
    with pytest.raises(ConfigurationError, match='for features="span" and "sketch"'):
        FeatureLearner(Gaussian(), Squared(), features="fourier", rank=3)
    with pytest.raises(ConfigurationError, match="turn coordinates"):
        FeatureLearner(Gaussian(), Squared(), features="span", rank=3, curvature="diagonal")


def test_aogd_ald():
    y = TARGETS[Squared()]
    learner = recipes.aogd_ald(Gaussian(0.8), Squared(), radius=1.5, tolerance=0.1, regularization=1e-12)
    expected, atoms = naive_methods.first_order_in_span(
        K, y, Squared(), eta=np.full(ROWS, 1.5), tolerance=0.1, max_atoms=ROWS, adaptive=True, radius=1.5
    )
    close(learner.advance(X, y).prediction, expected)
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    assert 10 < len(atoms) < ROWS


@pytest.mark.parametrize(("loss", "radius", "part"), [(Squared(), 2.0, 0.3), (Logistic(), 10.0, 0.7)])
def test_by_its_name_alone_aogd_ald_starts_gently(loss, radius, part):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(100, 3))
    y = np.clip(np.sin(points[:, 0]) - 0.5 * points[:, 1] + 0.1 * rng.normal(size=100), -1.0, 1.0)
    if loss == Logistic():
        y = np.sign(y)
    learner = recipes.aogd_ald(Gaussian(2.0), loss)
    assert learner.radius == radius
    assert learner.advance(points, y).loss.mean() < part * loss.value(np.zeros(100), y).mean()


SKETCHES = {"max_atoms": 15, "columns": 9, "dimension": 12, "rank": 7, "tolerance": 0.1}


def test_skegd(tmp_path):
    """S_p^T K S_p and S_p^T K S_m formed over the points kept, F by their pseudo-inverses."""
    y = TARGETS[Squared()]
    learner, rows = (
        recipes.skegd(Gaussian(0.8), Squared(), step_size=falling, seed=3, **SKETCHES) for _ in range(2)
    )
    coins = np.random.default_rng(3).random(ROWS)
    expected, atoms, F = naive_methods.descent_in_sketches(K, y, Squared(), coins, eta=STEPS, **SKETCHES)
    close(learner.advance(X, y).prediction, expected)
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    assert sum(atom > 50 for atom in atoms) >= 5  # not the first ones
    close(learner.transform(X) @ learner.transform(X).T, K[:, atoms] @ F @ K[atoms])
    assert learner.transform(X).shape == (ROWS, 7)
    assert learner.size == 15
    for t in range(60):
        close(rows.predict_one(X[t]), expected[t])
        rows.learn_one(X[t], y[t])
    kons.save(rows, tmp_path / "rows.kons")
    again = kons.load(tmp_path / "rows.kons", callables={"falling": falling})
    close(again.advance(X[60:], y[60:]).prediction, expected[60:])


def sketch(coins, dimension=40, columns=10, rank=None):
    """The map alone, over as many points as there are coins."""
    made = Sketch(Gaussian(0.8), len(coins), 1e-6, rank, columns, dimension)
    points = np.random.default_rng(8).normal(size=(len(coins) + 1, 3)) * 1.5
    while len(made.directions) == 0:
        made.take(points[made.size :][:1], np.append(coins, 1.0)[made.size :][:1])
    return made, points[:-1]


def test_signed_sums_are_unbiased_for_products():
    """The mean of ``A^T S_p S_p^T B`` is ``A^T B``: 400 draws err by 5 deviations of such a mean at most.

    Of two halves with w = s/2 places each the variance is at most ``2 |A|^2 |B|^2/w`` over 2.
    """
    rng, draws, points, s = np.random.default_rng(1), 400, 30, 16
    A, B = rng.normal(size=(points, 2)), rng.normal(size=(points, 3))
    size, errors = np.linalg.norm(A) * np.linalg.norm(B), []
    for _ in range(draws):
        S = naive_methods.sums_of(rng.random(points), s)
        np.testing.assert_allclose(np.sum(S**2, axis=1), 1.0, rtol=1e-12)
        errors.append(A.T @ S @ S.T @ B - A.T @ B)
    assert np.linalg.norm(errors[0]) > 0.05 * size
    assert np.linalg.norm(np.mean(errors, axis=0)) <= 5.0 * np.sqrt(2.0 / (s * draws)) * size
    coins = rng.random(points)
    np.testing.assert_array_equal(sketch(coins, s)[0].sums, naive_methods.sums_of(coins, s))


def test_a_coin_that_none_can_be_is_not_loaded():
    made, _ = sketch(np.random.default_rng(0).random(20), 16, 8)
    state = made.state() | {"coins": np.linspace(0.0, 1.0, 20)}
    again = Sketch(Gaussian(0.8), 20, 1e-6, None, 8, 16)
    with pytest.raises(FileError, match="a coin is 1, expected less"):
        again.load_state(Stored(state, "a map"), width=3)
    again.load_state(Stored(made.state(), "a map"), width=3)
    np.testing.assert_array_equal(again.directions, made.directions)


@pytest.mark.parametrize("seed", range(effort.amount(3, 30)))
def test_two_sketches_are_nearly_as_good_as_the_best_of_their_columns(seed):
    """``|K - C F C^T| <= (1 + eps) min``, over all F of the rank: eps .15 with 2,000 sums of 40 points.

    S_p keeps products of matrices of rank 10 to about sqrt(10/2000) = .07 of their size.
    """
    made, points = sketch(np.random.default_rng(seed).random(40), 2000, 10, 6)
    G, Z = naive.gaussian_gram(points, 0.8), made.features(points)
    C = G[:, np.argsort(made.coins)[:10]]
    inside = C @ np.linalg.pinv(C)
    values, W = np.linalg.eigh(inside @ G @ inside)
    least = np.linalg.norm(G - W[:, -6:] @ np.diag(values[-6:]) @ W[:, -6:].T)
    assert least * (1.0 - 1e-9) <= np.linalg.norm(G - Z @ Z.T) <= 1.15 * least


@pytest.mark.parametrize("loss", TARGETS, ids=repr)
def test_dual_sgd(loss):
    learner = recipes.dual_sgd(
        Gaussian(0.8), loss, max_points=20, dimension=30, step_size=falling, decay=0.1, seed=4
    )
    features = Fourier(Gaussian(0.8), 30, 4)
    features.start(3)
    expected, left = naive_methods.dual_descent(
        K, features.features(X), TARGETS[loss], loss, eta=STEPS, decay=0.1, max_points=20
    )
    close(learner.advance(X, TARGETS[loss]).prediction, expected)
    np.testing.assert_array_equal(learner.points, X[left])
    with pytest.raises(ConfigurationError, match="no random Fourier features here"):
        FunctionalGradient(Linear(), loss, budget=Budget(5, "features"))


# ---- random features


SPECTRAL = [Gaussian(1.3), Laplace(3.0), Matern(1.3), Matern(1.3, 0.5), RationalQuadratic(1.3, 0.7)]


@pytest.mark.parametrize("kernel", SPECTRAL, ids=repr)
@pytest.mark.parametrize("made", [Fourier, Fastfood])
def test_random_features_are_those_of_the_kernel(kernel, made):
    if made is Fastfood and isinstance(kernel, Laplace):
        pytest.skip("it has none")
    points = np.random.default_rng(1).normal(size=(6, 5))
    estimates = []
    for seed in range(20):
        features = made(kernel, 512, seed)
        features.start(5)
        W = features.features(points)
        np.testing.assert_allclose(np.sum(W**2, axis=1), 1.0, rtol=1e-12)
        estimates.append(W @ W.T)
    # An entry is a mean of 256 cosines, each within 1 of it: the mean of 20 such errs by 1/sqrt(5120) = .014.
    # Those of a block of Fastfood are not independent: their variance is at most some times that.
    assert np.abs(np.mean(estimates, axis=0) - kernel.gram(points)).max() < 5.0 * 0.014
    assert np.abs(estimates[0] - estimates[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["fogd", "fastfood"])
def test_waves_that_are_rounding_alone_are_left_out(name):
    """So far out one row in a block and alone had other angles; to the kernel such a row is like no other."""
    learner = make(name, Gaussian(1.0), Squared(), dimension=40)
    far = 1e150 * np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_array_equal(learner.transform(far), np.zeros((5, 40)))
    learner.advance(far, np.ones(5))
    assert learner.predict_one([0.0, 0.0, 0.0]) == 0.0


def test_fastfood_is_the_product_of_its_matrices():
    features = Fastfood(Gaussian(0.7), 40, seed=2)
    features.start(6)
    assert features.signs.shape == (3, 8)
    points = np.random.default_rng(1).normal(size=(4, 6))
    W = naive_methods.fastfood_frequencies(features.signs, features.order, features.normals, features.scales)
    angles = (np.pad(points, ((0, 0), (0, 2))) @ W.T)[:, :20]
    close(features.features(points), np.hstack([np.cos(angles), np.sin(angles)]) * np.sqrt(2.0 / 40))


@pytest.mark.parametrize("name", ["fogd", "fastfood"])
def test_on_random_features_it_is_gradient_descent(name):
    y = TARGETS[Squared()]
    learner = make(name, Gaussian(0.8), Squared(), dimension=30, step_size=falling, seed=5)
    trace = learner.advance(X, y)
    features = learner.transform(X)
    close(trace.prediction, naive_methods.descent(features, y, Squared(), eta=STEPS)[0])


@pytest.mark.parametrize(
    "name", ["fogd", "fastfood", "dual_sgd", "ogd", "adam", "ons", "sketched_ons", "nogd"]
)
def test_a_column_of_zeros_changes_nothing(name):
    y, wide = TARGETS[Squared()], np.hstack([X, np.zeros((ROWS, 6))])
    wide[60:, 3:] = 0.1 * np.random.default_rng(2).normal(size=(ROWS - 60, 6))
    grown, whole = (make(name, Gaussian(), Squared()) for _ in range(2))
    grown.advance(X[:60], y[:60])
    grown.widen(6)
    found = grown.advance(wide[60:], y[60:]).prediction
    if name == "fastfood":  # its blocks are as wide as the first row: other numbers are drawn
        assert np.isfinite(found).all()
        assert np.abs(grown.transform(wide[:60]) - learner_features(name, X[:60])).max() < 1e-12
        return
    whole.advance(wide[:60], y[:60])
    close(found, whole.advance(wide[60:], y[60:]).prediction)


def learner_features(name, points):
    learner = make(name, Gaussian(), Squared())
    learner.advance(points, np.zeros(len(points)))
    return learner.transform(points)


# ---- what is proven


GAMES = effort.amount(4, 60)


def game(seed):
    """Rows, targets and a comparator whose values lie in [-1, 1]."""
    rng = np.random.default_rng(seed)
    rows, width = 200, int(rng.integers(1, 6))
    points = rng.normal(size=(rows, width)) * rng.exponential(size=width)
    features = np.hstack([np.ones((rows, 1)), points])
    w = rng.normal(size=width + 1)
    w /= np.abs(features @ w).max() / rng.uniform(0.3, 1.0)
    y = np.clip(features @ w + 0.3 * rng.normal(size=rows), -1.0, 1.0)
    if seed % 2:
        y = rng.choice([-1.0, 1.0], rows) * np.abs(y)  # nothing to learn
    return points, features, y, w


def regret(trace, features, y, w):
    return trace.loss.sum() - np.sum((features @ w - y) ** 2)


@pytest.mark.parametrize("seed", range(GAMES))
def test_regret_of_gradient_descent(seed):
    points, features, y, w = game(seed)
    norms = np.sum(features**2, axis=1)
    for eta in (0.003, 0.05):
        trace = recipes.ogd(Squared(), step_size=eta).advance(points, y)
        bound = w @ w / (2.0 * eta) + 0.5 * eta * np.sum(trace.slope**2 * norms)
        assert regret(trace, features, y, w) <= bound * (1.0 + 1e-12)
    # Zinkevich, Theorem 1: a diameter D, steps that fall.
    radius = np.linalg.norm(w)
    trace = recipes.ogd(Squared(), step_size=falling, radius=radius).advance(points, y)
    steps = 0.3 / np.sqrt(np.arange(1, len(y) + 1))
    bound = (2.0 * radius) ** 2 / (2.0 * steps[-1]) + 0.5 * np.sum(steps * trace.slope**2 * norms)
    assert regret(trace, features, y, w) <= bound * (1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(GAMES))
def test_regret_of_adagrad(seed):
    points, features, y, w = game(seed)
    eta = np.full(len(y), 0.2)
    trace = recipes.adagrad(Squared(), step_size=0.2, regularization=1e-6).advance(points, y)
    _, weights = naive_methods.descent(features, y, Squared(), eta=eta, kind="diagonal", alpha=1e-6)
    # Duchi et al., Theorem 5: farthest distance in a coordinate, and the lengths of the coordinates' slopes.
    farthest = np.abs(weights - w).max()
    lengths = np.sum(np.sqrt(np.sum((trace.slope[:, None] * features) ** 2, axis=0)))
    bound = farthest**2 * (1e-6 * len(w) + lengths) / (2.0 * 0.2) + 0.2 * lengths
    assert regret(trace, features, y, w) <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(GAMES))
def test_regret_of_the_newton_step_and_its_sketch(seed):
    points, features, y, w = game(seed)
    alpha, sigma, d = 0.5, 1.0 / 8.0, len(w)
    whole = recipes.ons(Squared(), regularization=alpha).advance(points, y)
    assert 2.0 * regret(whole, features, y, w) <= alpha * (w @ w) + whole.gain
    traces = np.sum(whole.weight * np.sum(features**2, axis=1))
    assert whole.gain <= d / sigma * np.log1p(traces / (alpha * d))  # d log T
    learner = recipes.sketched_ons(Squared(), regularization=alpha, directions=1 + seed % 3)
    sketched = learner.advance(points, y)
    assert 2.0 * regret(sketched, features, y, w) <= alpha * (w @ w) + sketched.gain
    # A shrinking takes off at most `removed` in at most 2l directions of log det A.
    rows, removed = 2 * learner.directions, learner.removed
    traces = np.sum(sketched.weight * np.sum(features**2, axis=1))
    potential = min(rows, d) * (np.log1p(traces / (alpha * min(rows, d))) + removed / alpha)
    assert sigma * sketched.gain <= sketched.log_determinant <= potential


@pytest.mark.parametrize("seed", range(GAMES))
def test_regret_of_the_forecaster(seed):
    points, features, y, w = game(seed)
    lam, d = 0.25, len(w)  # alpha/2
    trace = recipes.vaw(regularization=2.0 * lam).advance(points, y)
    bound = lam * (w @ w) + d * np.log1p(np.sum(features**2) / (lam * d))  # of |y| <= 1
    assert regret(trace, features, y, w) <= bound


# ---- what is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"curvature": "full"}, 'curvature is .full., expected "none" or "scaled" or "norm" or "diagonal"'),
        ({"features": "words"}, 'features is .words., expected "columns" or "fourier"'),
        ({"features": "fourier"}, r"Linear\(\) has no random Fourier features here"),
        ({"kernel": Gaussian()}, r"the features of Gaussian\(bandwidth=1.0\) are not the columns"),
        ({"kernel": Polynomial(degree=2)}, "are not the columns"),
        ({"kernel": Gaussian(), "features": "fourier", "dimension": 7}, "dimension is 7, expected an even"),
        ({"kernel": Laplace(), "features": "fastfood"}, "Fastfood is for others"),
        ({"kernel": Gaussian("auto"), "features": "fourier"}, None),
        ({"curvature": "diagonal", "radius": 1.0}, 'radius=1 is for curvature="none", "scaled" and "norm"'),
        ({"forward": True}, "forward=True is the Azoury-Warmuth-Vovk prediction"),
        ({"features": "span", "curvature": "hessian"}, "in the span of atoms is kons.EmbeddedKONS"),
        ({"features": "sketch", "curvature": "diagonal"}, 'choose "norm" or "none"'),
        ({"kernel": Gaussian(), "features": "sketch", "dimension": 7}, "expected an even number: sums"),
        ({"columns": 0}, "columns"),
        ({"momentum": 1.0}, "momentum"),
        ({"discount": 0.0}, "discount"),
        ({"directions": 0}, "directions"),
    ],
    ids=str,
)
def test_what_is_refused(given, message):
    given = {"kernel": Linear(), "loss": Squared(), **given}
    if message is None:
        with pytest.raises(ConfigurationError, match="has no bandwidth yet"):
            FeatureLearner(**given).learn_one([1.0], 0.5)
        return
    with pytest.raises(ConfigurationError, match=message):
        FeatureLearner(**given)


def test_a_loss_without_a_lipschitz_constant_needs_a_step():
    class Steep(type(OWN)):
        def lipschitz(self, bound):
            return np.inf

    steep = Steep(lambda p, y: p**4, lambda p, y: 4 * p**3, curvature=0.1)
    with pytest.raises(ConfigurationError, match="give step_size"):
        recipes.ogd(steep)
    assert recipes.ogd(steep, step_size=0.1).curvature == "none"


def test_every_row_of_the_table_is_one():
    for name in ("adagrad", "adam", "aogd_ald", "fastfood", "fogd", "nogd", "ogd", "ons", "skegd", "vaw"):
        assert type(make(name, Gaussian(), Squared())) is FeatureLearner, name
        assert RECIPES[name].growth == 0
