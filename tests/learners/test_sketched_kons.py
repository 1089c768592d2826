"""Sketched-KONS against Sketched-ONS on explicit features, and against exact KONS."""

import copy
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import effort
import naive
from kons import KONS, KORS, Gaussian, Laplace, Linear, Logistic, Polynomial, SketchedKONS, Squared
from kons import SquaredHinge as Hinge
from kons.errors import ConfigurationError, InputError, NumericalError, TargetError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.policies import Leverage
from kons.step_sizes import Constant

QUADRATIC = Polynomial(degree=2, offset=0.0)
BLOCKS = [1, 7, 64, None]
VARIANTS = {
    "shared": {},
    "independent": {"shared_coins": False},
    "weighted": {"weighted": True},
    "weighted, independent": {"weighted": True, "shared_coins": False},
}
POLICY = Leverage(1.0, 0.5, floor=0.1)


def stream(loss=None, bound=1.0, rows=300, seed=0):
    """Duplicates, and stretches where the loss of the squared loss is met exactly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    X[rng.random(rows) < 0.3] = X[1]
    if loss is None or isinstance(loss, Squared):
        y = bound * np.sin(2 * X[:, 0] + X[:, 1])
        y[:5] = 0.0  # predicted as 0: no gradient at all
        return X, y
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)


def twin(learner, X, y, scale=None):
    """The dense run with the learner's parameters and coins."""
    rng = np.random.default_rng(learner.seed)
    return naive.ons_on_targets(
        naive.quadratic_features(X),
        y,
        learner.loss,
        bound=learner.bound,
        alpha=learner.regularization,
        scale=scale,
        coins={
            "beta": learner.policy.beta,
            "eps": learner.policy.distortion,
            "gamma": learner.policy.floor,
            "shared": learner.shared_coins,
            "weighted": learner.weighted,
        },
        rng=[rng, rng.spawn(1)[0]],
    )


def assert_same_run(trace, run, tolerance):
    np.testing.assert_array_equal(trace.kept, run.kept)
    np.testing.assert_allclose(trace.prediction, run.prediction, rtol=0, atol=tolerance)
    np.testing.assert_allclose(trace.probability, run.probability, rtol=0, atol=tolerance)
    np.testing.assert_allclose(trace.leverage_estimate, run.estimate, rtol=0, atol=tolerance)
    np.testing.assert_allclose(trace.slope, run.slope, rtol=0, atol=10 * tolerance)
    np.testing.assert_allclose(trace.weight, run.weight, rtol=100 * tolerance, atol=100 * tolerance)


# ---- equality with Sketched-ONS on explicit features


@effort.every_pair(loss=[Squared(), Logistic(), Hinge()], variant=VARIANTS, block_size=BLOCKS)
def test_equals_sketched_ons(block_size, variant, loss):
    X, y = stream(loss)
    learner = SketchedKONS(QUADRATIC, loss, regularization=0.1, policy=POLICY, seed=5, **variant)
    trace = learner.advance(X, y, block_size=block_size)
    run = twin(learner, X, y)
    assert_same_run(trace, run, 1e-9)
    np.testing.assert_allclose(trace.inverse_form, run.inverse_form, rtol=1e-9)
    assert 0.1 < trace.kept.mean() < 0.9
    log_determinant = np.linalg.slogdet(run.A / 0.1)[1]
    assert learner.log_determinant == pytest.approx(log_determinant, rel=1e-9)


@effort.every_pair(alpha=[1e-2, 1.0, 20.0], bound=[0.05, 0.4, 3.0], block_size=BLOCKS)
def test_equals_sketched_ons_where_predictions_are_clipped(block_size, bound, alpha):
    X, y = stream(bound=bound)
    learner = SketchedKONS(QUADRATIC, Squared(), bound=bound, regularization=alpha, policy=POLICY, seed=2)
    trace = learner.advance(X, y, block_size=block_size)
    assert_same_run(trace, twin(learner, X, y), 1e-9)
    assert np.count_nonzero(np.abs(trace.prediction) == bound) > 3


@effort.every_value(variant=VARIANTS, block_size=BLOCKS)
def test_equals_sketched_ons_at_small_regularization(variant, block_size):
    """Rounding is about 1e-14*k/alpha and grows with the run: 1e-7 at alpha = 1e-4."""
    X, y = stream()
    learner = SketchedKONS(QUADRATIC, Squared(), regularization=1e-4, policy=POLICY, seed=2, **variant)
    trace = learner.advance(X, y, block_size=block_size)
    run = twin(learner, X, y)
    np.testing.assert_array_equal(trace.kept, run.kept)
    np.testing.assert_allclose(trace.prediction, run.prediction, rtol=0, atol=1e-7)


@effort.every_value(floor=[0.0, 0.3], block_size=BLOCKS)
def test_rows_without_gradient(floor, block_size):
    """A hinge with room: many rows have no slope, hence no weight, but each has its coin."""
    X, y = stream(Hinge())
    learner = SketchedKONS(
        QUADRATIC, Hinge(), bound=4.0, regularization=0.01, policy=Leverage(floor=floor), seed=1
    )
    trace = learner.advance(X, y, block_size=block_size)
    assert_same_run(trace, twin(learner, X, y), 1e-9)
    still = trace.slope == 0.0
    assert np.count_nonzero(still) > 30
    np.testing.assert_array_equal(trace.leverage_estimate[still], 0.0)
    np.testing.assert_array_equal(trace.probability[still], floor)
    np.testing.assert_array_equal(trace.weight[still], 0.0)
    # kept is the coin, even where the weight is 0
    assert trace.kept[still].any() == (floor > 0)
    assert len(learner.atoms) == np.count_nonzero(trace.weight)


@effort.every_value(variant=VARIANTS, block_size=BLOCKS)
def test_one_point_over_and_over(variant, block_size):
    """The paper's last example: one point, labels +C and -C in turn."""
    X = np.tile([[0.6, 0.8, 0.0]], (200, 1))
    y = np.where(np.arange(200) % 2, 1.0, -1.0)
    learner = SketchedKONS(QUADRATIC, Squared(), policy=POLICY, seed=3, **variant)
    trace = learner.advance(X, y, block_size=block_size)
    assert_same_run(trace, twin(learner, X, y), 1e-9)


@effort.every_value(variant=VARIANTS, block_size=BLOCKS)
def test_sample_weights(variant, block_size):
    X, y = stream()
    scale = np.random.default_rng(1).exponential(size=300)
    scale[::17] = 0.0
    learner = SketchedKONS(QUADRATIC, Squared(), policy=POLICY, seed=4, **variant)
    trace = learner.advance(X, y, block_size=block_size, sample_weight=scale)
    assert_same_run(trace, twin(learner, X, y, scale), 1e-9)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_equals_sketched_ons_with_a_gaussian_kernel(variant):
    """As many explicit features as rows, from the eigenvectors of the Gram matrix."""
    X, y = stream(rows=120)
    kernel = Gaussian(1.0)
    with threadpool_limits(1):
        values, vectors = np.linalg.eigh(kernel.gram(X))
    Phi = vectors * np.sqrt(np.maximum(values, 0.0))
    learner = SketchedKONS(kernel, Squared(), regularization=0.1, policy=POLICY, seed=6, **variant)
    trace = learner.advance(X, y)
    rng = np.random.default_rng(6)
    with threadpool_limits(1):
        run = naive.ons_on_targets(
            Phi,
            y,
            Squared(),
            bound=1.0,
            alpha=0.1,
            coins={
                "beta": 1.0,
                "eps": 0.5,
                "gamma": 0.1,
                "shared": learner.shared_coins,
                "weighted": learner.weighted,
            },
            rng=[rng, rng.spawn(1)[0]],
        )
    assert_same_run(trace, run, 1e-9)


def test_row_by_row_is_the_same_run():
    X, y = stream(rows=150)
    learner, rows = (SketchedKONS(QUADRATIC, Squared(), policy=POLICY, seed=9) for _ in range(2))
    trace = learner.advance(X, y)
    predictions = []
    for x, target in zip(X, y, strict=True):
        predictions.append(rows.predict_one(x))
        rows.learn_one(x, target)
    np.testing.assert_allclose(predictions, trace.prediction, rtol=0, atol=1e-9)
    assert rows.size == learner.size
    np.testing.assert_array_equal(rows.atoms, learner.atoms)
    np.testing.assert_allclose(rows.predict(X), learner.predict(X), rtol=0, atol=1e-9)


def test_slopes_alone_are_the_same_run():
    X, y = stream(rows=150)
    learner, blind = (SketchedKONS(QUADRATIC, Squared(), policy=POLICY, seed=9) for _ in range(2))
    trace = learner.advance(X, y)
    for x, target in zip(X, y, strict=True):
        blind.learn_slope(x, 2 * (blind.predict_one(x) - target), curvature=0.125)
    assert blind.size == learner.size == trace.size[-1]
    np.testing.assert_allclose(blind.predict(X), learner.predict(X), rtol=0, atol=1e-9)


# ---- equality with exact KONS


@effort.every_pair(
    kernel=[QUADRATIC, Laplace(1.5)],
    loss=[Squared(), Logistic(), Hinge()],
    variant=VARIANTS,
    policy={"floor 1": Leverage(floor=1.0), "oversampling": Leverage(1e12, floor=0.0)},
)
def test_keeping_all_is_exact_kons(policy, variant, loss, kernel):
    X, y = stream(loss)
    exact = KONS(kernel, loss, regularization=0.1)
    sketched = SketchedKONS(kernel, loss, regularization=0.1, policy=policy, **variant)
    expected, trace = exact.advance(X, y), sketched.advance(X, y)
    for name in ("prediction", "loss", "slope", "weight", "leverage"):
        np.testing.assert_allclose(
            getattr(trace, name), getattr(expected, name), rtol=0, atol=1e-10, err_msg=name
        )
    np.testing.assert_allclose(sketched.predict(X), exact.predict(X), rtol=0, atol=1e-10)
    assert sketched.log_determinant == pytest.approx(exact.log_determinant, rel=1e-10)
    # A row without gradient has leverage 0, and only a floor keeps it.
    np.testing.assert_array_equal(trace.kept, (policy.floor == 1.0) | (expected.weight > 0.0))


def test_one_code_path_with_kons():
    """The two differ in who enters: what learns and predicts is the same, and neither overrides it."""
    for name in ("advance", "learn_one", "learn_slope", "predict", "predict_one"):
        assert getattr(KONS, name) is getattr(SketchedKONS, name)
    own = {name for kind in (KONS, SketchedKONS) for name, part in vars(kind).items() if callable(part)}
    assert own == {"__init__"}
    public = {name for name in dir(KONS) if not name.startswith("_")}
    assert public <= {name for name in dir(SketchedKONS) if not name.startswith("_")}


# ---- coins


@effort.every_value(variant=VARIANTS, block_size=BLOCKS)
def test_one_uniform_per_row_needed_or_not(block_size, variant):
    X, y = stream(rows=200)
    learner = SketchedKONS(Gaussian(), Squared(), policy=POLICY, seed=13, **variant)
    trace = learner.advance(X, y, block_size=block_size)
    learner.learn_one(X[0], y[0])
    rng = np.random.default_rng(13)
    own = rng.spawn(1)[0]
    uniforms = np.array([rng.random() for _ in range(201)])
    np.testing.assert_array_equal(trace.kept, uniforms[:200] < trace.probability)
    states = [rng.bit_generator.state]
    if not learner.shared_coins:
        own.random(201)
        states.append(own.bit_generator.state)
    assert learner.state()["coins"] == states


def test_shared_coins_make_one_dictionary_and_floored_importances():
    X, y = stream()
    learner = SketchedKONS(QUADRATIC, Squared(), policy=Leverage(0.3, floor=0.2), seed=1)
    trace = learner.advance(X, y)
    wbar = 0.125 * trace.slope**2
    inside = trace.kept & (wbar > 0)
    np.testing.assert_array_equal(learner.atoms, X[inside])
    state = learner.state()["expansions"][0]["sampler"]
    np.testing.assert_allclose(state["importances"], 1 / trace.probability[inside], rtol=1e-12)
    np.testing.assert_allclose(
        state["preconditioner"]["root_weights"] ** 2, (wbar / trace.probability)[inside], rtol=1e-12
    )
    assert np.count_nonzero(trace.probability == 0.2) > 100


def test_shared_coins_are_those_of_kors():
    """KORS by itself, given the learner's eta*g^2, makes the same decisions with the same seed."""
    X, y = stream()
    learner = SketchedKONS(QUADRATIC, Squared(), policy=POLICY, seed=21)
    trace = learner.advance(X, y)
    sampler = KORS(QUADRATIC, policy=POLICY, seed=21)
    alone = sampler.advance(X, 0.125 * trace.slope**2)
    np.testing.assert_array_equal(alone.kept, trace.kept)
    np.testing.assert_allclose(alone.leverage_estimate, trace.leverage_estimate, atol=1e-11)
    np.testing.assert_array_equal(sampler.atoms, learner.atoms)


def test_independent_coins_give_kors_its_own_unfloored_sample():
    X, y = stream()
    learner = SketchedKONS(QUADRATIC, Squared(), policy=Leverage(0.3, floor=0.2), shared_coins=False, seed=1)
    trace = learner.advance(X, y)
    p = np.minimum(0.3 * trace.leverage_estimate, 1.0)
    inside = np.random.default_rng(1).spawn(1)[0].random(300) < p
    state = learner.state()["expansions"][0]["sampler"]
    np.testing.assert_allclose(state["importances"], 1 / p[inside], rtol=1e-12)
    assert 0 < np.count_nonzero(inside) < len(learner.atoms)
    assert state["importances"].max() > 5.0  # below the floor of 0.2


@given(
    cuts=st.sets(st.integers(1, 149), max_size=8),
    block_sizes=st.lists(st.one_of(st.none(), st.integers(1, 160)), min_size=9, max_size=9),
    alpha=st.sampled_from([1e-2, 0.3, 5.0]),
    variant=st.sampled_from(list(VARIANTS.values())),
    loss=st.sampled_from([Squared(), Logistic(), Hinge()]),
    seed=st.integers(0, 1000),
)
@effort.examples(20)
def test_decisions_do_not_depend_on_cuts(cuts, block_sizes, alpha, variant, loss, seed):
    X, y = stream(loss, rows=150, seed=seed)
    whole, cut = (
        SketchedKONS(Gaussian(), loss, regularization=alpha, policy=POLICY, seed=seed, **variant)
        for _ in range(2)
    )
    expected = whole.advance(X, y)
    edges = [0, *sorted(cuts), 150]
    parts = [
        cut.advance(X[start:stop], y[start:stop], block_size=block_size)
        for start, stop, block_size in zip(edges, edges[1:], block_sizes, strict=False)
    ]
    trace = type(expected).concatenate(parts)
    np.testing.assert_array_equal(trace.kept, expected.kept)
    np.testing.assert_array_equal(trace.size, expected.size)
    np.testing.assert_allclose(trace.prediction, expected.prediction, rtol=0, atol=1e-9)
    np.testing.assert_allclose(trace.probability, expected.probability, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(cut.atoms, whole.atoms)


# ---- the trace


def test_trace_is_that_of_kons_with_two_more_columns():
    X, y = stream()
    exact = KONS(Gaussian(), Squared()).advance(X, y)
    learner = SketchedKONS(Gaussian(), Squared(), seed=0)
    trace = learner.advance(X, y)
    assert exact.probability is None
    assert exact.leverage_estimate is None
    assert set(trace.columns) - set(exact.columns) == {"probability", "leverage_estimate"}
    assert set(exact.columns) <= set(trace.columns)
    assert all(len(column) == 300 for column in trace.columns.values())
    np.testing.assert_array_equal(trace.size, np.cumsum(trace.kept))
    np.testing.assert_array_equal(trace.loss, (trace.prediction - y) ** 2)
    np.testing.assert_array_equal(trace.weight, np.where(trace.kept, 0.125 * trace.slope**2, 0.0))
    assert (trace.probability >= 0.1).all()
    assert learner.size == trace.size[-1]
    assert learner.online_effective_dimension == pytest.approx(trace.online_effective_dimension)
    assert learner.log_determinant == pytest.approx(trace.log_determinant)
    again = learner.advance(X[:10], y[:10])
    np.testing.assert_array_equal(again.size, trace.size[-1] + np.cumsum(again.kept))


def test_weighted_enters_with_one_over_p():
    X, y = stream()
    trace = SketchedKONS(Gaussian(), Squared(), weighted=True, seed=0).advance(X, y)
    wbar = 0.125 * trace.slope**2
    np.testing.assert_allclose(trace.weight, np.where(trace.kept, wbar / trace.probability, 0.0), rtol=1e-14)
    assert (trace.weight > 1.5 * wbar).any()
    assert "Warning" in SketchedKONS.__doc__


# ---- losses without curvature


def absolute():
    return CustomLoss(lambda p, y: abs(p - y), lambda p, y: np.sign(p - y), name="absolute")


def test_a_loss_without_curvature_needs_a_step_size():
    with pytest.raises(ConfigurationError, match=r"no curvature.*give step_size"):
        SketchedKONS(Gaussian(), absolute())
    KONS(Gaussian(), absolute())  # which has a default for it


@pytest.mark.parametrize("block_size", BLOCKS)
def test_a_loss_without_curvature_with_a_step_size(block_size):
    X, y = stream(rows=150)
    learner = SketchedKONS(QUADRATIC, absolute(), step_size=lambda t: 1 / t**0.5, policy=POLICY, seed=2)
    trace = learner.advance(X, y, block_size=block_size)
    run = naive.ons(
        naive.quadratic_features(X),
        lambda t, p: np.sign(p - y[t]),
        bound=1.0,
        alpha=1.0,
        eta=1 / np.sqrt(np.arange(1, 151)),
        coins={"beta": 1.0, "eps": 0.5, "gamma": 0.1},
        rng=[np.random.default_rng(2)],
    )
    assert_same_run(trace, run, 1e-9)


def test_a_custom_loss_is_the_built_in_one():
    X, y = stream(rows=150)
    custom = CustomLoss(lambda p, t: (p - t) ** 2, lambda p, t: 2 * (p - t), curvature=0.125)
    traces = [
        SketchedKONS(QUADRATIC, loss, policy=POLICY, seed=2).advance(X, y) for loss in (custom, Squared())
    ]
    np.testing.assert_array_equal(traces[0].kept, traces[1].kept)
    np.testing.assert_allclose(traces[0].prediction, traces[1].prediction, rtol=0, atol=1e-12)


# ---- memory


class Watched(Gaussian):
    """A Gaussian kernel that remembers the largest Gram matrix it was asked for."""

    largest = 0

    def evaluate(self, X, Z):
        Watched.largest = max(Watched.largest, len(X) * len(Z))
        return super().evaluate(X, Z)


@pytest.mark.parametrize("shared_coins", [True, False])
def test_no_array_of_all_pairs(shared_coins):
    rows = 6_000
    X = np.random.default_rng(0).uniform(size=(rows, 4))
    y = 0.5 * np.sin(5 * X[:, 0])
    learner = SketchedKONS(
        Watched(0.7),
        Squared(),
        bound=0.5,
        policy=Leverage(floor=0.01),
        shared_coins=shared_coins,
    )
    learner.advance(X[:200], y[:200])  # whatever is compiled or imported is so by now
    Watched.largest = 0
    tracemalloc.start()
    try:
        learner.advance(X[200:], y[200:])
        learner.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    triangle = 8 * rows**2 / 2
    assert learner.size < 300
    assert peak < triangle / 10
    assert Watched.largest <= 1024 * 512


# ---- errors


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"bound": 0.0}, "bound"),
        ({"bound": float("inf")}, "bound"),
        ({"regularization": 0.0}, "regularization"),
        ({"step_size": -1.0}, "step_size"),
        ({"policy": 0.1}, "policy"),
        ({"seed": -1}, "seed"),
        ({"seed": "0"}, "seed"),
        ({"kernel": "rbf"}, "kernel"),
        ({"loss": "squared"}, "loss"),
    ],
)
def test_bad_parameters_are_refused(parameters, name):
    with pytest.raises(ConfigurationError, match=name):
        SketchedKONS(**({"kernel": Gaussian(), "loss": Squared()} | parameters))


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize(
    ("X", "y", "options", "error"),
    [
        ([[0.0, np.nan, 0.0]], [0.0], {}, InputError),
        ([[0.0, 1.0]], [0.0], {}, InputError),
        (np.ones((2, 3)), [0.0], {}, InputError),
        (np.ones((2, 3)), [0.0, np.inf], {}, InputError),
        (np.ones((2, 3)), [0.0, 1.5], {}, TargetError),
        (np.ones((2, 3)), [0.0, 0.5], {"sample_weight": [1.0, -1.0]}, InputError),
        (np.ones((2, 3)), [0.0, 0.5], {"block_size": 0}, ConfigurationError),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(variant, X, y, options, error):
    points, targets = stream()
    learner, undisturbed = (
        SketchedKONS(Gaussian(), Squared(), policy=POLICY, seed=6, **variant) for _ in range(2)
    )
    for each in (learner, undisturbed):
        each.advance(points[:150], targets[:150])
    with pytest.raises(error):
        learner.advance(X, y, **options)
    np.testing.assert_equal(learner.state(), undisturbed.state())
    expected = undisturbed.advance(points[150:], targets[150:])
    np.testing.assert_equal(learner.advance(points[150:], targets[150:]).columns, expected.columns)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_an_error_half_way_puts_everything_back_coins_included(variant):
    X, y = stream()
    loss = CustomLoss(
        lambda p, t: (p - t) ** 2,
        lambda p, t: float("nan") if t == 0.4321 else 2 * (p - t),
        curvature=0.125,
        lipschitz=4.0,
    )
    learner, undisturbed = (
        SketchedKONS(Gaussian(), loss, regularization=0.1, policy=POLICY, seed=6, **variant) for _ in range(2)
    )
    for each in (learner, undisturbed):
        each.advance(X[:100], y[:100], block_size=7)
    spoiled = y.copy()
    spoiled[250] = 0.4321
    with pytest.raises(NumericalError, match=r"target=0\.4321"):
        learner.advance(X[100:], spoiled[100:], block_size=7)
    with pytest.raises(NumericalError, match=r"target=0\.4321"):
        learner.learn_one(X[0], 0.4321)
    np.testing.assert_equal(learner.state(), undisturbed.state())
    expected = undisturbed.advance(X[100:], y[100:], block_size=7)
    trace = learner.advance(X[100:], y[100:], block_size=7)
    np.testing.assert_equal(trace.columns, expected.columns)
    np.testing.assert_equal(learner.state(), undisturbed.state())


@pytest.mark.parametrize("shared_coins", [True, False])
def test_an_error_in_the_very_first_rows_leaves_a_new_learner(shared_coins):
    kernel = FunctionKernel(lambda x, z: float("inf") if x == z == 9 else 1.0 + x * z)
    learner, new = (
        SketchedKONS(kernel, Squared(), policy=Leverage(floor=1.0), shared_coins=shared_coins)
        for _ in range(2)
    )
    with pytest.raises(NumericalError):
        learner.advance([1, 2, 3, 9], [1.0, 0.5, 0.1, 0.2], block_size=1)
    np.testing.assert_equal(learner.state(), new.state())
    expected = new.advance([1, 2, 3], [1.0, 0.5, 0.1])
    np.testing.assert_equal(learner.advance([1, 2, 3], [1.0, 0.5, 0.1]).columns, expected.columns)


@pytest.mark.parametrize("shared_coins", [True, False])
def test_a_kernel_that_is_not_positive_definite_is_named(shared_coins):
    kernel = FunctionKernel(lambda x, z: 1.0 if x == z else 2.0)
    learner = SketchedKONS(
        kernel, Squared(), regularization=0.1, policy=Leverage(floor=1.0), shared_coins=shared_coins
    )
    with pytest.raises(NumericalError, match="not positive definite"):
        learner.advance([1, 2, 3], [1.0, -1.0, 1.0])
    assert learner.rows_seen == learner.size == 0


# ---- objects, state, display


def test_strings():
    words = ["online", "kernel", "newton", "step", "sketch", "leverage"] * 25
    y = np.where(np.char.find(words, "n") >= 0, 1.0, -1.0)
    kernel = FunctionKernel(lambda x, z: float(len(set(x) & set(z))))
    learner = SketchedKONS(kernel, Logistic(), policy=POLICY, seed=1)
    trace = learner.advance(words, y)
    assert learner.atoms == [word for word, kept in zip(words, trace.kept, strict=True) if kept]
    assert (np.sign(trace.prediction[-30:]) == y[-30:]).all()
    assert learner.size < len(words)


def test_what_is_handed_out_is_a_copy():
    X, y = stream()
    given = X.copy()
    learner = SketchedKONS(Gaussian(), Squared(), seed=5)
    trace = learner.advance(given, y)
    before = learner.state()
    given[:] = 99.0
    learner.atoms[:] = 99.0
    for column in trace.columns.values():
        column[:] = 0
    learner.predict(X)
    repr(learner)
    np.testing.assert_equal(learner.state(), before)
    np.testing.assert_equal(copy.deepcopy(learner).state(), before)


def test_repr_builds_the_same_learner():
    learner = SketchedKONS(
        Gaussian(2.0),
        Logistic(),
        bound=2.0,
        regularization=0.5,
        policy=Leverage(2.0, floor=0.1),
        shared_coins=False,
        weighted=True,
        seed=3,
    )
    again = eval(repr(learner))
    assert isinstance(again, SketchedKONS)
    assert again.parameters() == learner.parameters()


def test_defaults_are_those_documented():
    parameters = SketchedKONS(Gaussian(), Squared()).parameters()
    assert parameters == {
        "kernel": Gaussian(),
        "loss": Squared(),
        "bound": 1.0,
        "regularization": 1.0,
        "step_size": Constant(0.125),
        "policy": Leverage(floor=0.1),
        "shared_coins": True,
        "weighted": False,
        "seed": 0,
    }


def test_html_shows_parameters_and_counts():
    X, y = stream()
    learner = SketchedKONS(Linear(), Squared(), seed=5)
    learner.advance(X, y)
    html = learner._repr_html_()
    assert "<caption>SketchedKONS</caption>" in html
    assert "<td>300</td>" in html
    assert f"<td>{learner.size}</td>" in html
    assert "shared_coins" in html
    assert "log det" in html
