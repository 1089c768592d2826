"""EmbeddedKONS is the update in a dictionary's span written densely (tests/naive.py), in any blocks."""

import functools
import inspect

import numpy as np
import pytest

import effort
import naive
from contracts.learners import assert_identical
from kons import (
    KONS,
    EmbeddedKONS,
    Gaussian,
    Laplace,
    Linear,
    Logistic,
    Polynomial,
    Squared,
    SquaredHinge,
    Trace,
)
from kons.errors import ConfigurationError, InputError, NumericalError, TargetError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.policies import Dependence, Fixed, Leverage

LOSSES = [Squared(), Logistic(), SquaredHinge()]
BLOCKS = effort.some([1, 7, None], 7, None)
ROWS = 200
BANDWIDTH = 0.8

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)


def points(rows=ROWS, width=2, seed=0):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size=(rows, width))


def targets(X, loss, bound, seed=1):
    noise = 0.3 * np.random.default_rng(seed).normal(size=len(X))
    signal = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, -1] + noise
    return np.clip(signal, -bound, bound) if isinstance(loss, Squared) else np.sign(signal)


def assert_like(learner, trace, expected, X, rows=None):
    """Identical atoms and decisions; numbers within 1e-9."""
    atoms = expected.atoms if rows is None else [rows[i] for i in expected.atoms]
    np.testing.assert_array_equal(learner.atoms, X[atoms])
    np.testing.assert_array_equal(trace.kept, expected.kept)
    close(trace.prediction, expected.prediction, err_msg="prediction")
    close(trace.slope, expected.slope, atol=2e-9, err_msg="slope")  # 2 (p - y)
    close(trace.weight, expected.weight, err_msg="weight")
    # q is of size k/alpha, 100 at most here
    close(trace.inverse_form, expected.inverse_form, rtol=1e-9, err_msg="inverse_form")
    close(trace.novelty, expected.novelty, rtol=1e-9, err_msg="novelty")


def check(loss, bound=1.0, alpha=0.1, X=None, y=None, scale=None, blocks=BLOCKS, seed=0, **choices):
    """EmbeddedKONS with these choices against the twin, for every size of block. Returns the twin's run."""
    X = points() if X is None else X
    y = targets(X, loss, bound) if y is None else y
    parameters, twin = translated(choices, seed)
    expected = naive.span_on_targets(
        naive.gaussian_gram(X, BANDWIDTH),
        range(len(X)),
        y,
        loss,
        bound=bound,
        alpha=alpha,
        scale=scale,
        **twin,
    )
    for block_size in blocks:
        learner = EmbeddedKONS(Gaussian(BANDWIDTH), loss, bound=bound, regularization=alpha, **parameters)
        trace = learner.advance(X, y, block_size, sample_weight=scale)
        assert_like(learner, trace, expected, X)
    return expected


def translated(choices, seed):
    """The learner's arguments, and the twin's."""
    choices = dict(choices)
    twin = {"max_atoms": choices.get("max_atoms", 200), "hessian": choices.get("second_order") == "hessian"}
    twin |= {name: choices[name] for name in ("forward", "forgetting") if name in choices}
    twin["restart"] = choices.get("on_growth") == "restart"
    policy = choices.get("policy", Dependence())
    if isinstance(policy, Dependence):
        twin |= {"tolerance": policy.tolerance, "replace": policy.when_full == "replace"}
    else:
        twin["coins"] = {"beta": policy.beta, "eps": policy.distortion, "gamma": policy.floor}
        twin["rng"] = np.random.default_rng(seed)
    return choices | {"seed": seed}, twin


# ---- equal to the dense twin


@effort.every_pair(loss=LOSSES, second_order=["gradient", "hessian"], bound=[0.1, 1.0, 2.0])
def test_every_loss_and_curvature(loss, second_order, bound):
    expected = check(loss, bound=bound, second_order=second_order, max_atoms=25)
    assert len(expected.atoms) == 25
    if bound == 0.1:  # it clips
        assert np.mean(np.abs(expected.prediction) == bound) > 0.3


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_small_regularization(loss, second_order):
    check(loss, alpha=1e-2, second_order=second_order, policy=Dependence(1e-2))


POLICIES = {
    "dependence": Dependence(1e-3),
    "dependence, coarse": Dependence(0.2),
    "replace": Dependence(1e-2, when_full="replace"),
    "leverage": Leverage(0.5),
    "leverage, floor": Leverage(0.2, distortion=0.3, floor=0.05),
    "leverage, floor 1": Leverage(floor=1.0),
}


@effort.every_pair(policy=POLICIES, on_growth=["carry", "restart"], max_atoms=[1, 10, 60])
def test_every_policy_and_what_growth_does(policy, on_growth, max_atoms):
    expected = check(Squared(), policy=policy, on_growth=on_growth, max_atoms=max_atoms, seed=3)
    assert expected.kept.sum() > 0
    if max_atoms == 1:
        assert len(expected.atoms) == 1


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_coins_decide_alike_for_every_loss(loss):
    """They depend on the points alone: the features that KORS sees are unscaled."""
    atoms = [
        check(loss, policy=Leverage(0.5), second_order=order, on_growth=growth, seed=5).atoms
        for order in ("gradient", "hessian")
        for growth in ("carry", "restart")
    ]
    for others in atoms[1:]:
        np.testing.assert_array_equal(others, atoms[0])


def test_the_coins_are_in_the_trace():
    X, policy = points(), Leverage(0.4, floor=0.02)
    expected = check(Squared(), policy=policy, seed=7)
    trace = EmbeddedKONS(Gaussian(BANDWIDTH), Squared(), regularization=0.1, policy=policy, seed=7).advance(
        X, targets(X, Squared(), 1.0)
    )
    close(trace.leverage_estimate, expected.estimate)
    close(trace.probability, expected.probability)
    plain = EmbeddedKONS(Gaussian(), Squared()).advance(X, np.zeros(ROWS))
    assert plain.leverage_estimate is None
    assert plain.probability is None


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
def test_a_fixed_dictionary(second_order, block_size):
    atoms, X = points(15, seed=8), points()
    y = targets(X, Squared(), 0.5)
    everything = np.vstack([atoms, X])
    expected = naive.span_on_targets(
        naive.gaussian_gram(everything, BANDWIDTH),
        range(15, 15 + ROWS),
        y,
        Squared(),
        bound=0.5,
        alpha=0.05,
        hessian=second_order == "hessian",
        atoms=range(15),
    )
    learner = EmbeddedKONS(
        Gaussian(BANDWIDTH),
        Squared(),
        bound=0.5,
        regularization=0.05,
        second_order=second_order,
        policy=Fixed(atoms),
        max_atoms=3,  # a cap on what grows, and this does not
    )
    assert learner.size == 15
    trace = learner.advance(X, y, block_size)
    assert_like(learner, trace, expected, everything)
    np.testing.assert_array_equal(trace.size, 15)


def test_atoms_that_add_nothing_are_passed_over():
    atoms = points(4, seed=8)
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(np.vstack([atoms, atoms[1:3]])))
    np.testing.assert_array_equal(learner.atoms, atoms)
    assert learner.size == 4


@pytest.mark.parametrize("bound", [0.2, 1.0])
@pytest.mark.parametrize("max_atoms", [10, 200])
def test_forward_prediction(max_atoms, bound):
    expected = check(Squared(), bound=bound, second_order="hessian", forward=True, max_atoms=max_atoms)
    plain = check(Squared(), bound=bound, second_order="hessian", max_atoms=max_atoms)
    assert np.abs(expected.prediction).sum() < np.abs(plain.prediction).sum()  # it shrinks
    np.testing.assert_allclose(expected.A, plain.A, rtol=1e-12)  # and learns the same
    np.testing.assert_allclose(expected.u, plain.u, rtol=1e-12)


def test_forward_prediction_of_many_rows_is_row_by_row():
    X = points()
    learner = EmbeddedKONS(
        Gaussian(BANDWIDTH), Squared(), regularization=0.1, second_order="hessian", forward=True
    )
    learner.advance(X[:100], targets(X, Squared(), 1.0)[:100])
    # As the first row of what comes next, each predicted with the A of now.
    found = learner.predict(X[100:])
    close(found, [learner.predict_one(x) for x in X[100:]])
    plain = EmbeddedKONS(
        Gaussian(BANDWIDTH), Squared(), regularization=0.1, second_order="hessian", bound=99.0
    )
    plain.advance(X[:100], targets(X, Squared(), 1.0)[:100])
    K, k = plain.kernel.gram(plain.atoms), plain.kernel.gram(plain.atoms, X[100:])
    outside = 1.0 - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
    q = plain.novelty(X[100:]) - outside / 0.1
    close(found, np.clip(plain.predict(X[100:]) / (1 + 2 * q), -1, 1))


@effort.every_pair(
    when_full=["freeze", "replace"], forgetting=[0.9, 0.99, 0.9999], second_order=["gradient", "hessian"]
)
def test_forgetting(forgetting, second_order, when_full):
    expected = check(
        Squared(),
        forgetting=forgetting,
        second_order=second_order,
        policy=Dependence(1e-3, when_full),
        max_atoms=12,
    )
    assert np.linalg.eigvalsh(expected.A).min() >= 0.1 * (1 - 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("on_growth", ["carry", "restart"])
def test_forgetting_with_growth(loss, on_growth):
    check(loss, forgetting=0.98, on_growth=on_growth, policy=Leverage(0.3), seed=2)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
def test_replacement_follows_a_stream_that_moves(loss, second_order):
    X = points(400, seed=2) + np.linspace(0, 8, 400)[:, None]
    expected = check(
        loss,
        X=X,
        second_order=second_order,
        policy=Dependence(1e-3, when_full="replace"),
        max_atoms=8,
        blocks=[1, 7, 64, None],
    )
    assert (expected.atoms > 40).sum() >= 4  # of the six that may have come at the ends of periods
    assert len(expected.atoms) == 8


def test_replacement_takes_one_row_a_period_and_keeps_the_size():
    X = points(256, seed=2)
    y = targets(X, Squared(), 1.0)
    learner = EmbeddedKONS(
        Gaussian(0.3), Squared(), policy=Dependence(1e-3, when_full="replace"), max_atoms=5
    )
    for start in range(0, 256, 32):
        before = learner.atoms
        trace = learner.advance(X[start : start + 32], y[start : start + 32])
        after = learner.atoms
        assert len(after) == trace.size[-1] == learner.size == 5
        if start and start % 64:  # the period of 64 rows ended with these
            np.testing.assert_array_equal(after[:-1], [a for a in before if a in after[:-1]])
            assert (after[-1] != before).any(axis=1).all()
            assert (after[-1] == X[start - 32 : start + 32]).all(axis=1).any()
        elif start:
            np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
def test_sample_weights(loss, second_order):
    scale = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], size=ROWS)
    expected = check(loss, bound=0.5, scale=scale, second_order=second_order, max_atoms=20)
    np.testing.assert_array_equal(expected.weight[scale == 0.0], 0.0)


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize("policy", [Dependence(), Leverage(0.5), Dependence(when_full="replace")], ids=repr)
def test_duplicates(policy, second_order):
    which = np.random.default_rng(4).integers(0, 12, size=ROWS)
    expected = check(
        Squared(), X=points(12)[which], second_order=second_order, policy=policy, bound=0.3, max_atoms=9
    )
    assert len(expected.atoms) <= 9


def test_losses_met_exactly():
    """Slope 0: weight 0, nothing learned, and an atom may come all the same."""
    X = points()
    y = targets(X, Squared(), 0.5)
    y[:5] = 0.0
    expected = check(Squared(), bound=0.5, y=y, max_atoms=20)
    np.testing.assert_array_equal(expected.slope[:5], 0.0)
    assert expected.kept[:5].all()
    hinge = check(SquaredHinge(), bound=3.0, alpha=1e-2, second_order="hessian", max_atoms=20)
    assert (hinge.slope == 0.0).sum() > 20
    np.testing.assert_array_equal(hinge.weight[hinge.slope == 0.0], 0.0)


# ---- other doors, other kernels


@pytest.mark.parametrize("when_full", ["freeze", "replace"])
@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_learn_slope_with_a_curvature_per_row(forgetting, when_full):
    X, rng = points(), np.random.default_rng(6)
    slopes, sigma = rng.uniform(-2.0, 2.0, size=ROWS), rng.uniform(0.05, 1.0, size=ROWS)
    slopes[::17], sigma[5::17] = 0.0, 0.0
    expected = naive.newton_in_a_span(
        naive.gaussian_gram(X, BANDWIDTH),
        range(ROWS),
        lambda t, _: slopes[t],
        bound=0.5,
        alpha=0.1,
        eta=sigma,
        tolerance=1e-3,
        max_atoms=15,
        replace=when_full == "replace",
        forgetting=forgetting,
    )
    learner = EmbeddedKONS(
        Gaussian(BANDWIDTH),
        Squared(),
        bound=0.5,
        regularization=0.1,
        policy=Dependence(1e-3, when_full),
        max_atoms=15,
        forgetting=forgetting,
    )
    predictions = []
    for t, x in enumerate(X):
        predictions.append(learner.predict_one(x))
        learner.learn_slope(x, slopes[t], curvature=sigma[t])
    assert 0.1 < np.mean(np.abs(expected.prediction) == 0.5) < 1.0
    close(predictions, expected.prediction)
    np.testing.assert_array_equal(learner.atoms, X[expected.atoms])


@pytest.mark.parametrize("choices", [{}, {"on_growth": "restart"}, {"forgetting": 0.99}], ids=repr)
@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
def test_a_loss_of_ones_own(second_order, choices):
    """The path in Python: the logistic loss, written once more."""
    own = CustomLoss(
        lambda p, y: np.log1p(np.exp(-y * p)),
        lambda p, y: -y / (1 + np.exp(y * p)),
        lambda p, y: 1 / (2 + np.exp(y * p) + np.exp(-y * p)),
        lipschitz=1.0,
        curvature=np.exp(-1.0),
        targets=(-1, 1),
    )
    X = points()
    y = targets(X, Logistic(), 1.0)
    parameters = {"regularization": 0.1, "second_order": second_order, "max_atoms": 20} | choices
    expected = EmbeddedKONS(Gaussian(BANDWIDTH), Logistic(), **parameters)
    in_c = expected.advance(X, y)
    for block_size in BLOCKS:
        learner = EmbeddedKONS(Gaussian(BANDWIDTH), own, **parameters)
        trace = learner.advance(X, y, block_size)
        close(trace.prediction, in_c.prediction)
        np.testing.assert_array_equal(learner.atoms, expected.atoms)
    learner = EmbeddedKONS(Gaussian(BANDWIDTH), own, **parameters)
    for t in range(ROWS):
        assert learner.predict_one(X[t]) == pytest.approx(in_c.prediction[t], abs=1e-9)
        learner.learn_one(X[t], y[t])
    np.testing.assert_array_equal(learner.atoms, expected.atoms)


@pytest.mark.parametrize("order", ["gradient", "hessian"])
def test_a_falling_step_size(order):
    X = points()
    y = targets(X, Squared(), 1.0)
    expected = naive.span_on_targets(
        naive.gaussian_gram(X, BANDWIDTH),
        range(ROWS),
        y,
        Squared(),
        bound=1.0,
        alpha=0.1,
        hessian=order == "hessian",
        eta=1.0 / np.arange(1, ROWS + 1),
        tolerance=1e-4,
        max_atoms=20,
    )
    learner = EmbeddedKONS(
        Gaussian(BANDWIDTH),
        Squared(),
        regularization=0.1,
        step_size=lambda t: 1 / t,
        second_order=order,
        max_atoms=20,
    )
    parts = [learner.advance(X[:50], y[:50]), learner.advance(X[50:90], y[50:90], 1)]
    for t in range(90, 120):
        assert learner.predict_one(X[t]) == pytest.approx(expected.prediction[t], abs=1e-9)
        learner.learn_one(X[t], y[t])
    parts.append(learner.advance(X[120:], y[120:]))
    found = Trace.concatenate(parts).prediction
    close(found, np.delete(expected.prediction, range(90, 120)))


WORDS = [
    f"{a}{b}{c}" for a in ("on", "off", "in") for b in ("line", "er", "vex", "") for c in ("s", "ly", "")
]


def common_letters(x, z):
    return sum(min(x.count(c), z.count(c)) for c in set(x)) / 5.0


@pytest.mark.parametrize("policy", [Dependence(1e-3), Dependence(1e-3, "replace"), Leverage(0.5)], ids=repr)
def test_strings(policy):
    rng = np.random.default_rng(3)
    words = [WORDS[i] for i in rng.integers(0, len(WORDS), size=150)]
    y = np.array([1.0 if "n" in word else -0.5 for word in words]) * rng.choice([0.2, 1.0], size=150)
    K = np.array([[common_letters(x, z) for z in words] for x in words])
    parameters, twin = translated({"policy": policy, "max_atoms": 7}, seed=1)
    expected = naive.span_on_targets(K, range(150), y, Squared(), bound=1.0, alpha=0.1, **twin)
    for block_size in BLOCKS:
        learner = EmbeddedKONS(FunctionKernel(common_letters), Squared(), regularization=0.1, **parameters)
        trace = learner.advance(words, y, block_size)
        assert learner.atoms == [words[i] for i in expected.atoms]
        close(trace.prediction, expected.prediction)
    learner = EmbeddedKONS(FunctionKernel(common_letters), Squared(), regularization=0.1, **parameters)
    for t, word in enumerate(words):
        assert learner.predict_one(word) == pytest.approx(expected.prediction[t], abs=1e-9)
        learner.learn_one(word, y[t])
    assert learner.atoms == [words[i] for i in expected.atoms]


def laplace_gram(X, bandwidth):
    return np.exp(-np.abs(X[:, None] - X[None]).sum(axis=2) / bandwidth)


KERNELS = {
    "Laplace": (Laplace(1.3), lambda X: laplace_gram(X, 1.3)),
    "Linear": (Linear(), lambda X: X @ X.T),
    "Polynomial": (Polynomial(3), lambda X: (1.0 + X @ X.T) ** 3),
}


@effort.every_pair(case=[*KERNELS], second_order=["gradient", "hessian"], when_full=["freeze", "replace"])
def test_other_kernels(case, second_order, when_full):
    kernel, gram = KERNELS[case]
    X = points(width=3) / 2
    y = targets(X, Squared(), 1.0)
    expected = naive.span_on_targets(
        gram(X),
        range(ROWS),
        y,
        Squared(),
        bound=1.0,
        alpha=0.1,
        hessian=second_order == "hessian",
        tolerance=1e-4,
        max_atoms=15,
        replace=when_full == "replace",
    )
    for block_size in BLOCKS:
        learner = EmbeddedKONS(
            kernel,
            Squared(),
            regularization=0.1,
            second_order=second_order,
            policy=Dependence(when_full=when_full),
            max_atoms=15,
        )
        assert_like(learner, learner.advance(X, y, block_size), expected, X)
    learner = EmbeddedKONS(
        kernel,
        Squared(),
        regularization=0.1,
        second_order=second_order,
        policy=Dependence(when_full=when_full),
        max_atoms=15,
    )
    for t in range(ROWS):
        assert learner.predict_one(X[t]) == pytest.approx(expected.prediction[t], abs=1e-9)
        learner.learn_one(X[t], y[t])
    np.testing.assert_array_equal(learner.atoms, X[expected.atoms])


@pytest.mark.parametrize("when_full", ["freeze", "replace"])
def test_more_atoms_than_a_panel(when_full):
    rows, atoms = 290, 270  # a panel holds 256
    X = points(rows, width=6)
    y = targets(X, Squared(), 1.0)
    expected = naive.span_on_targets(
        naive.gaussian_gram(X, 1.0),
        range(rows),
        y,
        Squared(),
        bound=1.0,
        alpha=0.1,
        tolerance=1e-3,
        max_atoms=atoms,
        replace=when_full == "replace",
    )
    assert len(expected.atoms) == atoms
    make = functools.partial(
        EmbeddedKONS,
        Gaussian(1.0),
        Squared(),
        regularization=0.1,
        policy=Dependence(1e-3, when_full),
        max_atoms=atoms,
    )
    for block_size in (7, None):
        learner = make()
        assert_like(learner, learner.advance(X, y, block_size), expected, X)
    learner = make()
    for t in range(rows):
        assert learner.predict_one(X[t]) == pytest.approx(expected.prediction[t], abs=1e-9)
        learner.learn_one(X[t], y[t])
    np.testing.assert_array_equal(learner.atoms, X[expected.atoms])
    close(learner.predict(X[:40]), [learner.predict_one(x) for x in X[:40]])


# ---- the block size does not matter


LONG = {
    "gradient": {"max_atoms": 60},
    "hessian, small tolerance": {"second_order": "hessian", "policy": Dependence(1e-6), "max_atoms": 100},
    "logistic": {"loss": Logistic(), "second_order": "hessian", "max_atoms": 40},
    "restart": {"policy": Leverage(0.1), "on_growth": "restart", "max_atoms": 60},
    "forgetting, replace": {
        "second_order": "hessian",
        "forgetting": 0.999,
        "policy": Dependence(1e-6, "replace"),
        "max_atoms": 40,
    },
    "forward": {"second_order": "hessian", "forward": True, "max_atoms": 40},
}


def long_learner(loss=Squared(), **choices):  # noqa: B008 - frozen
    return EmbeddedKONS(Gaussian(0.7), loss, regularization=1e-2, seed=4, **choices)


@pytest.mark.parametrize("choices", LONG.values(), ids=LONG)
def test_long_streams_in_blocks_of_any_size(choices):
    rows = effort.amount(1200, 10_000)
    X = points(rows, width=3, seed=11)
    y = targets(X, choices.get("loss", Squared()), 1.0)
    expected = long_learner(**choices)
    trace = expected.advance(X, y)
    assert np.isfinite(trace.prediction).all()
    tight = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-7)
    for block_size in (1, 7, 64, 1000):
        learner = long_learner(**choices)
        tight(learner.advance(X, y, block_size).prediction, trace.prediction)
        np.testing.assert_array_equal(learner.atoms, expected.atoms)
    # Random cuts of the stream, with loops over single rows between them.
    learner, rng, start, found = long_learner(**choices), np.random.default_rng(12), 0, []
    while start < rows:
        stop = min(start + int(rng.choice([1, 3, 40, 64, 150, 700])), rows)
        if rng.random() < 0.3:
            for t in range(start, stop):
                found.append(learner.predict_one(X[t]))
                learner.learn_one(X[t], y[t])
        else:
            found.extend(learner.advance(X[start:stop], y[start:stop]).prediction)
        start = stop
    tight(found, trace.prediction)
    np.testing.assert_array_equal(learner.atoms, expected.atoms)
    assert learner.rows_seen == rows
    assert learner.size == len(expected.atoms)


def test_a_block_in_which_the_dictionary_grows_teaches_what_its_rows_teach():
    """What later rows of the block have in the coordinates of its new atoms counts in every total."""
    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.sign(X[:, 0])
    by_row, by_block = (EmbeddedKONS(Linear(), Squared(), regularization=0.1) for _ in range(2))
    for a, b in ((0, 60), (60, 120)):
        expected = by_row.advance(X[a:b], y[a:b], block_size=1)
        trace = by_block.advance(X[a:b], y[a:b])
        close(trace.prediction, expected.prediction)
    totals = [learner.state()["quadratics"][0]["totals"] for learner in (by_block, by_row)]
    np.testing.assert_allclose(*totals, rtol=1e-12)


# ---- looking at it


@pytest.mark.parametrize("policy", [Dependence(1e-2), Leverage(0.3)], ids=repr)
def test_novelty_is_the_inverse_form_in_the_full_space(policy):
    alpha, X, new = 0.05, points(), points(30, seed=9) * 2
    y = targets(X, Squared(), 1.0)
    everything = np.vstack([X, new])
    K = naive.gaussian_gram(everything, BANDWIDTH)
    _, twin = translated({"policy": policy, "max_atoms": 12}, seed=0)
    expected = naive.span_on_targets(K, range(ROWS), y, Squared(), bound=1.0, alpha=alpha, **twin)
    learner = EmbeddedKONS(Gaussian(BANDWIDTH), Squared(), regularization=alpha, policy=policy, max_atoms=12)
    trace = learner.advance(X, y)
    full = naive.novelty_in_full(K, list(expected.atoms), expected.A, range(ROWS, ROWS + 30), alpha)
    close(learner.novelty(new), full, rtol=1e-9)
    close(trace.novelty, expected.novelty, rtol=1e-9)
    # In the span there is no more of it; outside it is k/alpha.
    assert (trace.novelty >= trace.inverse_form - 1e-9).all()
    far = learner.novelty(np.full((1, 2), 50.0))
    assert far == pytest.approx(1 / alpha)
    assert (learner.novelty(everything) <= 1 / alpha * (1 + 1e-12)).all()
    assert learner.novelty(learner.atoms).max() < learner.novelty(new).max()


def test_novelty_agrees_with_explicit_features():
    """With a linear kernel and fewer atoms than dimensions: A is a plain d x d matrix."""
    X, alpha = points(80, width=5), 0.2
    y = targets(X, Squared(), 1.0)
    learner = EmbeddedKONS(Linear(), Squared(), regularization=alpha, max_atoms=3)
    trace = learner.advance(X, y)
    basis = np.linalg.qr(learner.atoms.T)[0]
    P = basis @ basis.T
    # The rows before the third atom came were projected on what there was.
    A = alpha * np.eye(5)
    for t in range(80):
        Q = np.linalg.qr(X[: min(t + 1, 3)].T)[0]
        projected = Q @ Q.T @ X[t]
        A += trace.weight[t] * np.outer(projected, projected)
    new = points(10, width=5, seed=3)
    close(learner.novelty(new), np.einsum("ij,ij->i", new, np.linalg.solve(A, new.T).T))
    inside = new @ P
    close(learner.novelty(inside), np.einsum("ij,ij->i", inside, np.linalg.solve(A, inside.T).T))


def test_before_the_first_row():
    learner = EmbeddedKONS(Gaussian(), Squared(), regularization=0.5)
    assert (len(learner.atoms), learner.size, learner.rows_seen) == (0, 0, 0)
    np.testing.assert_array_equal(learner.predict([[1.0], [2.0]]), 0.0)
    assert learner.predict_one([1.0]) == 0.0
    np.testing.assert_array_equal(learner.novelty([[1.0], [2.0]]), 2.0)
    assert learner.log_determinant == 0.0


def test_totals_and_atoms():
    X = points()
    y = targets(X, Squared(), 1.0)
    learner = EmbeddedKONS(Gaussian(BANDWIDTH), Squared(), regularization=0.1, max_atoms=30)
    trace = learner.advance(X, y)
    # A as it is defined: the coordinates of the day, 0 in those that came later.
    L = np.linalg.cholesky(learner.kernel.gram(learner.atoms))
    Z = np.linalg.solve(L, learner.kernel.gram(learner.atoms, X)).T
    Z[np.arange(30) >= trace.size[:, None]] = 0.0
    _, logdet = np.linalg.slogdet(np.eye(30) + (Z.T * trace.weight) @ Z / 0.1)
    assert learner.log_determinant == pytest.approx(logdet, rel=1e-9)
    assert trace.log_determinant == pytest.approx(logdet, rel=1e-9)
    assert learner.online_effective_dimension == pytest.approx(trace.online_effective_dimension)
    assert learner.size == trace.size[-1] == len(learner.atoms) == 30
    np.testing.assert_array_equal(trace.size, np.cumsum(trace.kept))
    atoms = learner.atoms
    atoms[:] = np.nan  # a copy
    assert np.isfinite(learner.predict(X)).all()
    by_rows = EmbeddedKONS(Gaussian(BANDWIDTH), Squared(), regularization=0.1, max_atoms=30)
    for x, target in zip(X, y, strict=True):
        by_rows.learn_one(x, target)
    assert by_rows.log_determinant == pytest.approx(logdet, rel=1e-9)
    assert by_rows.online_effective_dimension == pytest.approx(trace.online_effective_dimension)
    assert by_rows.size == 30


def test_parameters_are_those_of_the_constructor():
    learner = EmbeddedKONS(Gaussian(), Squared(), second_order="hessian", forward=True, forgetting=0.99)
    names = list(inspect.signature(EmbeddedKONS).parameters)
    assert set(learner.parameters()) == set(names)
    again = EmbeddedKONS(**learner.parameters())
    assert again.parameters() == learner.parameters()
    assert "forward=True" in repr(learner)
    assert "forgetting" in learner._repr_html_()


# ---- what it is in the limit


@pytest.mark.parametrize("alpha", [1.0, 1e-2])
@pytest.mark.parametrize("block_size", BLOCKS)
def test_a_dictionary_of_everything_is_kernel_ridge_regression(block_size, alpha):
    X = points(60, width=4) * 2
    y = targets(X, Squared(), 1.0)
    learner = EmbeddedKONS(
        Laplace(1.0), Squared(), regularization=alpha, second_order="hessian", policy=Dependence(0.0)
    )
    trace = learner.advance(X, y, block_size)
    assert learner.size == 60
    K = laplace_gram(X, 1.0)
    for t in range(60):
        raw = naive.kernel_ridge(K[:t, :t], y[:t], K[t, :t], alpha / 2)
        assert trace.prediction[t] == pytest.approx(np.clip(raw, -1, 1), abs=1e-9)


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_dictionary_of_everything_is_exact_kons(loss, second_order):
    X = points(80, width=4) * 2
    y = targets(X, loss, 0.5)
    parameters = {"bound": 0.5, "regularization": 0.05, "second_order": second_order}
    expected = KONS(Laplace(1.0), loss, **parameters).advance(X, y)
    trace = EmbeddedKONS(Laplace(1.0), loss, policy=Dependence(0.0), **parameters).advance(X, y)
    assert trace.kept.all()
    close(trace.prediction, expected.prediction)
    close(trace.inverse_form, expected.inverse_form, rtol=1e-9)
    close(trace.novelty, expected.inverse_form, rtol=1e-9)


# ---- low rank


LOW_RANK = [(Linear(), 3), (Polynomial(2, offset=0.0), 6), (Polynomial(2), 10), (Polynomial(3), 20)]
SCALES = [1e-6, 1e-3, 1.0, 1e3, 1e6]


def advance_at_scale(kernel, scale, second_order, regularization, block_size):
    X = scale * points(300, width=3)
    learner = EmbeddedKONS(
        kernel,
        Squared(),
        regularization=regularization,
        second_order=second_order,
        policy=Dependence(0.0),
    )
    trace = learner.advance(X, targets(X / scale, Squared(), 1.0), block_size)
    for column in (*trace.columns.values(), learner.predict(X), learner.novelty(X)):
        assert np.isfinite(column).all()
    assert not trace.kept[100:].any()
    return learner


@effort.every_pair(low_rank=LOW_RANK, scale=SCALES, second_order=["gradient", "hessian"])
def test_the_dictionary_stops_at_the_rank(low_rank, scale, second_order):
    """Regularization in proportion to k(x,x)."""
    kernel, rank = low_rank
    regularization = 0.1 * kernel.diagonal(scale * points(300, width=3)).mean()
    for block_size in (1, None):
        learner = advance_at_scale(kernel, scale, second_order, regularization, block_size)
        assert learner.size == len(learner.atoms) <= rank
        if scale == 1.0 or getattr(kernel, "offset", 0.0) == 0.0:  # else some of it is below rounding
            assert learner.size == rank


@effort.every_pair(low_rank=LOW_RANK, scale=SCALES, second_order=["gradient", "hessian"])
def test_the_rank_at_a_fixed_regularization(low_rank, scale, second_order):
    """As long as 16 digits hold both k(x,x) and the regularization; behind that, a named error at most."""
    kernel, rank = low_rank
    largest = kernel.diagonal(scale * points(300, width=3)).max()
    for block_size in (1, None):
        try:
            learner = advance_at_scale(kernel, scale, second_order, 0.1, block_size)
        except NumericalError as error:
            refused = largest / 0.1 > 1e15 and "regularization is below what 16 digits resolve" in str(error)
            if not refused:
                raise
        else:
            assert learner.size == len(learner.atoms) <= rank


DEGENERATE = {
    "one point": np.ones((200, 3)),
    "duplicates": points(7, width=3)[np.random.default_rng(0).integers(0, 7, size=200)],
    "constant features": np.hstack([points(200, width=1).round(1), np.ones((200, 4))]),
    "zeros": np.zeros((200, 3)),
    "collinear": np.outer(np.linspace(-2, 2, 200), [1.0, -2.0, 0.5]),
    "nearly equal": 1.0 + 1e-9 * points(200, width=3),
}


@effort.every_pair(
    case=[*DEGENERATE],
    kernel=[Gaussian(1.0), Linear(), Polynomial(2), Laplace(1.0)],
    second_order=["gradient", "hessian"],
    when_full=["freeze", "replace"],
)
def test_degenerate_points(case, kernel, second_order, when_full):
    X = DEGENERATE[case]
    y = np.resize([1.0, -0.4, 0.2], 200)
    different = len(np.unique(X, axis=0))
    for block_size in (1, None):
        learner = EmbeddedKONS(
            kernel,
            Squared(),
            regularization=0.1,
            policy=Dependence(0.0, when_full),
            second_order=second_order,
            max_atoms=30,
        )
        trace = learner.advance(X, y, block_size)
        assert learner.size == len(learner.atoms) <= min(different, 30)
        if isinstance(kernel, Linear):
            assert learner.size == np.linalg.matrix_rank(X, tol=1e-5)
        for column in trace.columns.values():
            assert np.isfinite(column).all()
        assert np.isfinite(learner.predict(X)).all()
        assert np.isfinite(learner.novelty(X)).all()


# ---- what it refuses


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        *[({"on_growth": bad}, r'on_growth is .*"carry" or "restart"') for bad in ("keep", None, True)],
        *[({"forgetting": bad}, r"forgetting is .*above 0 and at most 1") for bad in (0, 0.0, 1.1, -0.5)],
        *[({"forgetting": bad}, r"forgetting is ") for bad in (np.nan, "0.9", None, True)],
        *[({"max_atoms": bad}, r"max_atoms is .*integer of at least 1") for bad in (0, -1, 2.5, "9", None)],
        *[({"seed": bad}, r"seed is .*integer of at least 0") for bad in (-1, 0.5, "1", None)],
        *[
            ({"policy": bad}, r"policy is .*Dependence\(\.\.\.\), Leverage\(\.\.\.\) or Fixed\(atoms\)")
            for bad in (None, "ald", 1e-3, Dependence, [[0.0]])
        ],
        *[({"second_order": bad}, r'second_order is .*"gradient" or "hessian"') for bad in ("Hessian", None)],
        ({"forward": True}, r'forward=True.*Squared\(\) and second_order="hessian".*"gradient"'),
        ({"bound": 0.0}, r"bound is 0\.0"),
        ({"regularization": -1.0}, r"regularization is -1\.0"),
        ({"step_size": 0.0}, r"step_size is 0\.0"),
    ],
)
def test_refused_parameters(parameters, match):
    with pytest.raises(ConfigurationError, match=match):
        EmbeddedKONS(Gaussian(), Squared(), **parameters)


@pytest.mark.parametrize("loss", LOSSES[1:], ids=repr)
def test_forward_is_for_the_squared_loss(loss):
    with pytest.raises(ConfigurationError, match=r"forward=True.*squared loss.*not .*Logistic|SquaredHinge"):
        EmbeddedKONS(Gaussian(), loss, second_order="hessian", forward=True)


@pytest.mark.parametrize(
    ("atoms", "match"),
    [
        ([[0.0], [np.nan]], r"\[1\]\[0\] is nan"),
        ([[np.inf]], r"\[0\]\[0\] is inf"),
        ([], "no rows"),
        ([1.0, 2.0], r"1 dimension"),
        ([["a"]], "expected numbers"),
        ([[1.0, 2.0], [1.0]], "different lengths"),
        (None, "None"),
    ],
)
def test_bad_atoms(atoms, match):
    with pytest.raises(InputError, match=match):
        EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(atoms))


def test_a_fixed_dictionary_knows_its_width():
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed([[0.0, 1.0]]))
    with pytest.raises(InputError, match=r"3 feature\(s\).*2"):
        learner.advance(np.zeros((1, 3)), [0.0])
    with pytest.raises(InputError, match=r"3 feature\(s\).*2"):
        learner.predict(np.zeros((1, 3)))


def test_a_fixed_dictionary_is_not_the_callers():
    atoms, X = points(6), points(50, seed=2)
    y = targets(X, Squared(), 1.0)
    expected = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(atoms.copy())).advance(X, y)
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(atoms))
    atoms[:] = 7.0
    assert_identical(learner.advance(X, y).columns, expected.columns)


def test_learn_slope_needs_the_gradient():
    learner = EmbeddedKONS(Gaussian(), Squared(), second_order="hessian")
    with pytest.raises(ConfigurationError, match=r'learn_slope.*second_order="gradient"'):
        learner.learn_slope([1.0], 1.0)


def test_targets_beyond_the_bound():
    learner = EmbeddedKONS(Gaussian(), Squared(), bound=0.5)
    with pytest.raises(TargetError, match=r"y\[1\] is 0\.6, beyond bound=0\.5"):
        learner.advance(points(2), [0.1, 0.6])


def test_an_argument_that_a_subclass_does_not_keep_is_named():
    class Mine(EmbeddedKONS):
        def __init__(self, width=1.0):
            super().__init__(Gaussian(width), Squared())

    assert repr(Mine()).startswith("Mine(")
    with pytest.raises(ConfigurationError, match="Mine has an argument 'width' and no such attribute"):
        Mine().parameters()
