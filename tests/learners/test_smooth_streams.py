"""Inputs along a smooth curve, where every point all but depends on those before: clocks, ramps, walks."""

import numpy as np
import pytest

import effort
from kons import EmbeddedKONS, Gaussian, Laplace, Squared
from kons.core.embedding import Embedding
from kons.core.entry import DEPENDENT
from kons.kernels import Kernel
from kons.learners.embedded import LEAST_OUTSIDE
from kons.policies import Dependence
from kons.recipes import RECIPES, make

ROWS = 900
TIME = np.linspace(0.0, 1.0, ROWS)
WALK = np.cumsum(np.random.default_rng(0).normal(size=ROWS))
STREAMS = {
    "ramp": 4.0 * TIME,
    "clock": np.arange(ROWS) % 48 / 24.0,
    "chirp": np.sin(40.0 * TIME**2),
    "walk": WALK / 20.0,
    "sorted": np.sort(np.random.default_rng(1).normal(size=ROWS)),
    "squares": 4.0 * TIME**2,
    "steps": np.floor(20.0 * TIME) / 10.0,
}
# What the square of a row of L^-1 is at most, over k(x,x), and what rounding makes of it in a residual.
LONGEST_ROW = DEPENDENT / 2.0**-53
LEARNERS = [name for name, recipe in RECIPES.items() if not recipe.in_raw_units]


def of(name, kernel):
    """A learner, and what it makes of numbers: perceptrons want signs."""
    recipe = RECIPES[name]
    signs = np.sign if "regression" not in recipe.tasks else np.asarray
    return make(name, kernel, recipe.own_loss or Squared()), signs


def targets(x):
    return 0.5 * np.sin(5.0 * x) + 0.3 * np.cos(11.0 * x)


def one_by_one(learner, x, y):
    """The predictions of a loop over rows."""
    predicted = []
    for point, target in zip(x, y, strict=True):
        predicted.append(learner.predict_one(point))
        learner.learn_one(point, target)
    return predicted


@effort.every_pair(name=LEARNERS, stream=[*STREAMS], bandwidth=[0.25, 4.0])
def test_no_learner_takes_rounding_for_a_fault_of_the_kernel(name, stream, bandwidth):
    x = STREAMS[stream][:, None]
    learner, signs = of(name, Gaussian(bandwidth))
    trace = learner.advance(x, signs(targets(x[:, 0])))
    assert np.isfinite(trace.prediction).all()
    # Every leverage is one, whatever was rounded on the way to it.
    assert trace.leverage.min() >= 0.0
    assert trace.leverage.max() < 1.0


@pytest.mark.parametrize("stream", ["ramp", "walk", "squares"])
@pytest.mark.parametrize("name", ["b_kons", "con_kons", "pros_n_kons"])
def test_blocks_are_rows(name, stream):
    x = STREAMS[stream][:, None]
    y = targets(x[:, 0])
    blocks, rows = (make(name, Gaussian(0.5), Squared()) for _ in range(2))
    trace = blocks.advance(x, y)
    predicted = one_by_one(rows, x, y)
    np.testing.assert_array_equal(rows.atoms, blocks.atoms)
    assert rows.size > 5
    # Rounding of the kernel's values, magnified by the rows of L^-1, stays below the tolerance.
    np.testing.assert_allclose(trace.prediction, predicted, rtol=0, atol=LEAST_OUTSIDE)


@effort.every_pair(
    stream=["ramp", "walk", "chirp", "squares"], bandwidth=[0.3, 1.0, 3.0], forgetting=[1.0, 0.99]
)
def test_replacement_keeps_its_dictionary_full_and_whole(stream, bandwidth, forgetting):
    """Atoms that were let in are not judged anew, and one that is given up is replaced by exactly one."""
    x = STREAMS[stream][:, None]
    y = targets(x[:, 0])

    def model():
        return EmbeddedKONS(
            Gaussian(bandwidth),
            Squared(),
            second_order="hessian",
            policy=Dependence(when_full="replace"),
            max_atoms=8,
            forgetting=forgetting,
        )

    blocks, rows = model(), model()
    trace = blocks.advance(x, y)
    predicted = one_by_one(rows, x, y)
    np.testing.assert_array_equal(rows.atoms, blocks.atoms)
    assert rows.size == blocks.size == len(blocks.atoms) == trace.size[-1] <= 8
    np.testing.assert_allclose(trace.prediction, predicted, rtol=0, atol=LEAST_OUTSIDE)


class Single(Kernel):
    """A Gaussian kernel in single precision."""

    def evaluate(self, X, Z):
        squares = np.sum((X[:, None] - Z[None]).astype(np.float32) ** 2, axis=2)
        return np.exp(-squares / np.float32(8.0)).astype(np.float64)

    def evaluate_diagonal(self, X):
        return np.ones(len(X))


@pytest.mark.parametrize(
    "name", sorted({*LEARNERS} - {"fogd", "fastfood", "dual_sgd"})
)  # they have no other kernels
@pytest.mark.parametrize("stream", ["ramp", "walk"])
def test_a_kernel_may_be_computed_in_single_precision(name, stream):
    x = STREAMS[stream][:400, None]
    learner, signs = of(name, Single())
    y = signs(targets(x[:, 0]))
    trace = learner.advance(x, y)
    assert np.isfinite(trace.prediction).all()
    losses = trace.loss if signs is np.asarray else trace.prediction * y <= 0.0
    assert losses[-100:].mean() < 0.5


@effort.every_value(
    stream=[*STREAMS], kernel=[Gaussian(0.5), Gaussian(3.0), 7.0 * Gaussian(1.0), Laplace(2.0)]
)
def test_the_inverse_of_the_factor_is_bounded(stream, kernel):
    """An atom whose pivot is fine may still be a huge combination of others: it is passed over."""
    x = STREAMS[stream][:, None]
    embedding, by_rows = Embedding(kernel), Embedding(kernel)
    embedding.extend(x)
    for point in x:
        by_rows.extend(point[None])
    np.testing.assert_array_equal(embedding.atoms.view, by_rows.atoms.view)
    inverse = np.linalg.inv(np.linalg.cholesky(kernel.gram(embedding.atoms.view)))
    k = float(kernel.evaluate_diagonal(x[:1])[0])
    assert np.max(np.sum(inverse**2, axis=1)) * k <= LONGEST_ROW * (1.0 + 1e-3)
    # The projections are then sound: none is longer than its point by more than eps times that.
    Z = embedding.coordinates(x)
    excess = np.max(np.sum(Z**2, axis=1)) - k
    assert excess <= np.finfo(float).eps * LONGEST_ROW * k
    assert embedding.residual(x).min() == 0.0


def test_what_was_passed_over_had_a_fair_pivot():
    """Otherwise the test above would only see the threshold on pivots."""
    x = STREAMS["ramp"][:, None]
    embedding = Embedding(Gaussian(1.0))
    embedding.extend(x)
    inverse = np.linalg.inv(np.linalg.cholesky(Gaussian(1.0).gram(embedding.atoms.view)))
    assert np.max(np.sum(inverse**2, axis=1)) > 10.0 / DEPENDENT
