"""KORS against its dense twin, and what it promises its users."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import effort
import naive
from kons import KORS, Gaussian, Laplace, Linear, Polynomial
from kons.core.entry import DEPENDENT
from kons.errors import ConfigurationError, InputError, NumericalError
from kons.kernels import FunctionKernel
from kons.policies import Leverage

QUADRATIC = Polynomial(degree=2, offset=0.0)
BLOCKS = [1, 7, 64, None]
POLICIES = {
    "default": Leverage(),
    "floored": Leverage(0.4, 0.3, floor=0.2),
    "generous": Leverage(20.0, 0.9),
}


def stream(rows=300, seed=0, width=3):
    """Points of different lengths with repetitions, and feature weights with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    X[rng.random(rows) < 0.3] = X[0]
    weights = rng.exponential(0.5, size=rows)
    weights[rng.random(rows) < 0.2] = 0.0
    return X, weights


def bag_of_letters(x, z):
    return float(sum(min(x.count(c), z.count(c)) for c in set(x)))


# ---- against the definition


@effort.every_pair(block_size=BLOCKS, alpha=[1e-2, 1.0, 30.0], policy=POLICIES)
def test_equals_its_dense_twin(policy, alpha, block_size):
    X, weights = stream()
    Phi = naive.quadratic_features(X)
    estimates, probabilities, kept, AI = naive.kors(
        Phi,
        weights,
        alpha=alpha,
        beta=policy.beta,
        eps=policy.distortion,
        gamma=policy.floor,
        rng=np.random.default_rng(7),
    )
    sampler = KORS(QUADRATIC, regularization=alpha, policy=policy, seed=7)
    trace = sampler.advance(X, weights, block_size=block_size)
    np.testing.assert_allclose(trace.leverage_estimate, estimates, atol=1e-11 / min(alpha, 1.0))
    np.testing.assert_allclose(trace.probability, probabilities, atol=1e-10 / min(alpha, 1.0))
    np.testing.assert_array_equal(trace.kept, kept)
    assert 0 < np.count_nonzero(kept) < len(X)

    inside = kept & (weights > 0)
    np.testing.assert_array_equal(sampler.atoms, X[inside])
    np.testing.assert_allclose(sampler.importance, 1 / probabilities[inside], rtol=1e-9)
    mass = sampler.importance * weights[inside]
    rebuilt = alpha * np.eye(9) + (Phi[inside].T * mass) @ Phi[inside]
    np.testing.assert_allclose(rebuilt, AI, rtol=1e-9, atol=1e-9)
    # The inverse form of A^I, read off the estimate of a probe: (1 + eps) r/(1 + r), r = q at w = 1
    probes = np.random.default_rng(1).normal(size=(20, 3))
    for probe, phi in zip(probes, naive.quadratic_features(probes), strict=True):
        tau = copy.deepcopy(sampler).advance([probe]).leverage_estimate[0] / (1 + policy.distortion)
        assert tau / (1 - tau) == pytest.approx(phi @ np.linalg.solve(AI, phi), rel=1e-8)


def test_effective_dimensions_equal_dense_ones():
    X, weights = stream()
    Phi = naive.quadratic_features(X)
    *_, AI = naive.kors(Phi, weights, alpha=0.5, beta=1.0, eps=0.5, gamma=0.0, rng=np.random.default_rng(3))
    sampler = KORS(QUADRATIC, regularization=0.5, seed=3)
    trace = sampler.advance(X, weights)
    dense = np.trace((AI - 0.5 * np.eye(9)) @ np.linalg.inv(AI))
    assert sampler.effective_dimension() == pytest.approx(dense, rel=1e-10)
    assert sampler.online_effective_dimension == pytest.approx(trace.leverage_estimate.sum())
    sampler.advance(X[:50], weights[:50])
    assert sampler.online_effective_dimension > trace.leverage_estimate.sum()


def test_effective_dimension_of_everything_is_that_of_the_kernel_matrix():
    X = np.random.default_rng(0).normal(size=(290, 2))  # more than a panel of the factor, 256
    sampler = KORS(Laplace(1.0), regularization=0.3, policy=Leverage(floor=1.0))
    trace = sampler.advance(X)
    K = Laplace(1.0).gram(X)
    dense = np.trace(K @ np.linalg.inv(K + 0.3 * np.eye(290)))
    assert sampler.effective_dimension() == pytest.approx(dense, rel=1e-9)
    # Nothing was left out: estimates are leverages times 1 + eps, and 1/(1 - tau) a squared pivot
    pivots = np.linalg.cholesky(K / 0.3 + np.eye(290)).diagonal()
    np.testing.assert_allclose(trace.leverage_estimate, 1.5 * (1 - pivots**-2), rtol=1e-9)


def test_an_empty_sampler_has_dimension_zero():
    sampler = KORS(Gaussian())
    assert (sampler.size, sampler.rows_seen) == (0, 0)
    assert sampler.effective_dimension() == 0.0
    assert sampler.online_effective_dimension == 0.0
    assert len(sampler.atoms) == len(sampler.importance) == 0
    assert sampler.transform(np.ones((4, 2))).shape == (4, 0)


# ---- coins


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_one_uniform_per_row_needed_or_not(block_size, policy):
    X, weights = stream(rows=200)  # rows without weight use theirs too
    sampler = KORS(Gaussian(), regularization=0.1, policy=policy, seed=11)
    trace = sampler.advance(X, weights, block_size=block_size)
    rng = np.random.default_rng(11)
    uniforms = np.array([rng.random() for _ in range(200)])
    np.testing.assert_array_equal(trace.kept, uniforms < trace.probability)
    assert sampler.state()["coins"] == [rng.bit_generator.state]


def test_another_seed_is_another_choice():
    X, _ = stream()
    first, same, other = (KORS(Gaussian(), seed=seed).advance(X).kept for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


@given(
    cuts=st.sets(st.integers(1, 149), max_size=8),
    block_sizes=st.lists(st.one_of(st.none(), st.integers(1, 160)), min_size=9, max_size=9),
    alpha=st.sampled_from([1e-2, 0.3, 5.0]),
    seed=st.integers(0, 1000),
)
@effort.examples(20)
def test_decisions_do_not_depend_on_cuts(cuts, block_sizes, alpha, seed):
    X, weights = stream(rows=150, seed=seed)
    whole = KORS(Gaussian(), regularization=alpha, seed=seed)
    expected = whole.advance(X, weights)
    cut = KORS(Gaussian(), regularization=alpha, seed=seed)
    kept, estimates = [], []
    edges = [0, *sorted(cuts), 150]
    for start, stop, block_size in zip(edges, edges[1:], block_sizes, strict=False):
        part = cut.advance(X[start:stop], weights[start:stop], block_size=block_size)
        kept.append(part.kept)
        estimates.append(part.leverage_estimate)
    np.testing.assert_array_equal(np.concatenate(kept), expected.kept)
    np.testing.assert_allclose(np.concatenate(estimates), expected.leverage_estimate, atol=1e-10)
    np.testing.assert_array_equal(cut.atoms, whole.atoms)
    assert cut.size == whole.size == np.count_nonzero(expected.kept)


# ---- the trace, atoms and importances


def test_trace_columns():
    X, weights = stream(rows=120)
    sampler = KORS(Gaussian(), seed=2)
    first, second = sampler.advance(X[:50], weights[:50]), sampler.advance(X[50:], weights[50:])
    assert set(first.columns) == {"kept", "size", "leverage_estimate", "probability"}
    assert first.prediction is None
    assert first.kept.dtype == bool
    both = np.concatenate([first.kept, second.kept])
    np.testing.assert_array_equal(np.concatenate([first.size, second.size]), np.cumsum(both))
    assert sampler.size == second.size[-1]
    assert sampler.rows_seen == 120


def test_feature_weight_is_one_number_or_one_per_row():
    X, _ = stream(rows=100)
    by_default, by_number, by_row = (KORS(Gaussian(), seed=1) for _ in range(3))
    expected = by_default.advance(X)
    for trace in (by_number.advance(X, 1.0), by_row.advance(X, np.ones(100))):
        np.testing.assert_array_equal(trace.leverage_estimate, expected.leverage_estimate)
    # w and alpha matter by their ratio alone
    scaled = KORS(Gaussian(), regularization=4.0, seed=1).advance(X, feature_weight=4)
    np.testing.assert_allclose(scaled.leverage_estimate, expected.leverage_estimate, atol=1e-12)
    np.testing.assert_array_equal(scaled.kept, expected.kept)


def test_rows_without_weight_change_nothing_whatever_their_coin():
    X, _ = stream(rows=60)
    sampler = KORS(Gaussian(), policy=Leverage(floor=1.0))
    trace = sampler.advance(X, 0.0)
    assert trace.kept.all()  # the coin came up
    np.testing.assert_array_equal(trace.leverage_estimate, 0.0)
    np.testing.assert_array_equal(trace.probability, 1.0)
    assert len(sampler.atoms) == len(sampler.importance) == 0
    assert sampler.transform(X).shape == (60, 0)
    unfloored = KORS(Gaussian()).advance(X, 0.0)
    assert not unfloored.kept.any()
    np.testing.assert_array_equal(unfloored.probability, 0.0)


def test_points_are_only_added_and_their_importance_never_changes():
    X, weights = stream()
    sampler = KORS(Gaussian(), regularization=0.1, policy=Leverage(floor=0.1), seed=4)
    atoms, importance = np.empty((0, 3)), np.empty(0)
    for start in range(0, 300, 30):
        rows = slice(start, start + 30)
        trace = sampler.advance(X[rows], weights[rows])
        inside = trace.kept & (weights[rows] > 0)
        atoms = np.vstack([atoms, X[rows][inside]])
        importance = np.concatenate([importance, 1 / trace.probability[inside]])
        np.testing.assert_array_equal(sampler.atoms, atoms)
        np.testing.assert_allclose(sampler.importance, importance, rtol=1e-14)
    assert sampler.importance.min() >= 1.0 - 1e-14
    assert sampler.importance.max() <= 10.0 + 1e-13
    assert (sampler.importance > 1.5).any()


def test_what_is_handed_out_is_a_copy():
    X, _ = stream()
    sampler = KORS(Gaussian(), seed=5)
    given = X[:200].copy()
    sampler.advance(given)
    before = sampler.state()
    features = sampler.transform(X)
    given[:] = 99.0
    sampler.atoms[:] = 99.0
    sampler.importance[:] = 99.0
    sampler.state()["sampler"]["points"][:] = 99.0
    np.testing.assert_equal(sampler.state(), before)
    np.testing.assert_array_equal(sampler.transform(X), features)


# ---- features


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(30.0), QUADRATIC], ids=repr)
def test_features_are_close_to_the_kernel(kernel):
    """Within what an eps-accurate sample leaves: |K - Z Z^T| <= alpha*eps/(1 - eps), spectrally.

    Because (I-P) A^I (I-P) = alpha (I-P) for the projection P on the atoms, and A <= A^I/(1-eps).
    The eps is the sample's own, measured; KORS's share is that it stays below the policy's.
    """
    X = np.random.default_rng(0).uniform(-1.5, 1.5, size=(300, 2))
    alpha, K = 0.5, kernel.gram(X)
    sampler = KORS(kernel, regularization=alpha, policy=Leverage(6.0, 0.7), seed=0)
    trace = sampler.advance(X)
    assert trace.kept.mean() < 0.8
    with threadpool_limits(1):
        values, vectors = np.linalg.eigh(K)
        Phi = vectors * np.sqrt(np.maximum(values, 0.0))
        A = alpha * np.eye(300) + Phi.T @ Phi
        AI = alpha * np.eye(300) + (Phi.T * (trace.kept / trace.probability)) @ Phi
        root = np.linalg.inv(np.linalg.cholesky(A))
        eps = 1 - np.linalg.eigvalsh(root @ AI @ root.T)[0]
        Z = sampler.transform(X)
        residual = np.linalg.eigvalsh(K - Z @ Z.T)
    assert eps <= sampler.policy.distortion
    assert residual[-1] <= alpha * eps / (1 - eps) + 1e-8
    assert residual[0] >= -1e-8
    # and on the atoms, those in the span of others included, to what makes an atom one of them
    D, K_D = sampler.state()["embedding"]["atoms"], kernel.gram(sampler.atoms)
    atoms = sampler.transform(sampler.atoms)
    theta = np.linalg.solve(kernel.gram(D), kernel.gram(D, sampler.atoms))
    lengths = np.diag(K_D) + np.diag(kernel.gram(D)) @ theta**2
    outside = np.maximum(2.0**-53 * lengths / DEPENDENT, DEPENDENT * np.diag(K_D))
    assert (np.abs(K_D - atoms @ atoms.T) <= np.sqrt(outside[:, None] * outside)).all()


def test_features_equal_the_kernel_between_atoms_and_everything():
    X = np.random.default_rng(0).uniform(-3, 3, size=(400, 2))
    sampler = KORS(Gaussian(0.7), regularization=1.0, seed=0)
    sampler.advance(X)
    Z, atoms = sampler.transform(X), sampler.transform(sampler.atoms)
    assert Z.shape == (400, len(sampler.atoms))  # all of them independent here
    np.testing.assert_allclose(Z @ atoms.T, Gaussian(0.7).gram(X, sampler.atoms), atol=1e-10)


def test_new_landmarks_append_columns_and_change_no_old_one():
    X = np.random.default_rng(0).uniform(-3, 3, size=(400, 2))
    sampler = KORS(Gaussian(0.7), regularization=0.5, seed=0)
    before = sampler.transform(X)
    widths = set()
    for start in range(0, 400, 50):
        sampler.advance(X[start : start + 50])
        after = sampler.transform(X)
        np.testing.assert_allclose(after[:, : before.shape[1]], before, rtol=0, atol=1e-12)
        before = after
        widths.add(before.shape[1])
    assert len(widths) > 3


@pytest.mark.parametrize("block_size", BLOCKS)
def test_duplicates_add_no_column(block_size):
    P = np.random.default_rng(0).normal(size=(5, 3))
    X = np.tile(P, (20, 1))
    sampler = KORS(Gaussian(), policy=Leverage(floor=1.0))
    sampler.advance(X, block_size=block_size)
    assert len(sampler.atoms) == 100
    Z = sampler.transform(X)
    assert Z.shape == (100, 5)
    np.testing.assert_allclose(Z @ Z.T, Gaussian().gram(X), atol=1e-12)


def test_strings():
    words = ["online", "kernel", "newton", "step", "online", "sketch", "leverage", "kernel"] * 20
    kernel = FunctionKernel(bag_of_letters)
    sampler = KORS(kernel, regularization=0.01, policy=Leverage(5.0), seed=1)
    trace = sampler.advance(words, block_size=7)
    assert sampler.atoms == [word for word, kept in zip(words, trace.kept, strict=True) if kept]
    assert 6 <= len(sampler.atoms) < len(words)
    Z = sampler.transform(words)
    assert Z.shape[1] == len(set(words))
    np.testing.assert_allclose(Z @ Z.T, kernel.gram(words), atol=1e-9)
    twin = KORS(kernel, regularization=0.01, policy=Leverage(5.0), seed=1)
    np.testing.assert_array_equal(twin.advance(words).kept, trace.kept)


def test_points_without_any_length():
    X = np.zeros((10, 2))
    sampler = KORS(Linear(), policy=Leverage(floor=0.5), seed=0)
    trace = sampler.advance(X)
    np.testing.assert_array_equal(trace.leverage_estimate, 0.0)
    assert sampler.transform(X).shape == (10, 0)
    assert trace.rounding_clips == 0


# ---- errors


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"regularization": 0.0}, "regularization"),
        ({"regularization": -1.0}, "regularization"),
        ({"regularization": float("nan")}, "regularization"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": None}, "seed"),
        ({"policy": 3}, "policy"),
    ],
)
def test_bad_parameters_are_refused(parameters, name):
    with pytest.raises(ConfigurationError, match=name):
        KORS(Gaussian(), **parameters)


def test_a_kernel_is_required():
    with pytest.raises(ConfigurationError, match=r"kernel is 'rbf'.*kons\.kernels"):
        KORS("rbf")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([[0.0, np.nan, 0.0]],), InputError, r"X\[0\]\[1\] is nan"),
        (([[0.0, 1.0]],), InputError, "3 so far"),
        ((np.empty((0, 3)),), InputError, "no rows"),
        (([0.0, 1.0, 2.0],), InputError, "dimension"),
        ((np.ones((2, 3)), [1.0]), InputError, "feature_weight has 1"),
        ((np.ones((2, 3)), [1.0, -1.0]), InputError, r"feature_weight\[1\] is -1"),
        ((np.ones((2, 3)), -1.0), InputError, "feature_weight"),
        ((np.ones((2, 3)), [1.0, np.inf]), InputError, "feature_weight"),
        ((np.ones((2, 3)), "heavy"), InputError, "feature_weight"),
        ((np.ones((2, 3)), 1.0, 0), ConfigurationError, "block_size"),
        ((np.ones((2, 3)), 1.0, 2.5), ConfigurationError, "block_size"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(arguments, error, match):
    X, weights = stream()
    sampler, undisturbed = KORS(Gaussian(), seed=6), KORS(Gaussian(), seed=6)
    for each in (sampler, undisturbed):
        each.advance(X[:150], weights[:150])
    with pytest.raises(error, match=match):
        sampler.advance(*arguments)
    np.testing.assert_equal(sampler.state(), undisturbed.state())
    rest = undisturbed.advance(X[150:], weights[150:])
    np.testing.assert_equal(sampler.advance(X[150:], weights[150:]).columns, rest.columns)
    np.testing.assert_equal(sampler.state(), undisturbed.state())


def test_bad_first_input_does_not_fix_the_width():
    sampler = KORS(Gaussian())
    with pytest.raises(InputError, match="nan"):
        sampler.advance([[0.0, np.nan]])
    assert sampler.rows_seen == 0
    sampler.advance([[0.0, 1.0, 2.0]])
    with pytest.raises(InputError, match="3 so far"):
        sampler.transform([[0.0, 1.0]])


def test_an_error_half_way_puts_everything_back():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), size=5)) for _ in range(60)]

    def brittle(x, z):
        return float("nan") if "!" in x + z else bag_of_letters(x, z)

    kernel = FunctionKernel(brittle)
    sampler, undisturbed = (KORS(kernel, regularization=0.1, seed=3) for _ in range(2))
    for each in (sampler, undisturbed):
        each.advance(words[:20], block_size=7)
    with pytest.raises(NumericalError, match="brittle"):
        sampler.advance([*words[20:50], "a!", *words[50:]], block_size=7)
    np.testing.assert_equal(sampler.state(), undisturbed.state())
    np.testing.assert_array_equal(sampler.transform(words), undisturbed.transform(words))
    expected = undisturbed.advance(words[20:], block_size=7)
    np.testing.assert_equal(sampler.advance(words[20:], block_size=7).columns, expected.columns)
    np.testing.assert_array_equal(sampler.transform(words), undisturbed.transform(words))


def test_an_error_in_the_very_first_rows_leaves_an_empty_sampler():
    kernel = FunctionKernel(lambda x, z: float("inf") if x == z == 9 else 1.0 + x * z)
    sampler = KORS(kernel, policy=Leverage(floor=1.0))
    with pytest.raises(NumericalError):
        sampler.advance([1, 2, 3, 9], block_size=1)
    np.testing.assert_equal(sampler.state(), KORS(kernel, policy=Leverage(floor=1.0)).state())
    assert sampler.transform([1, 2]).shape == (2, 0)


def test_a_kernel_that_is_not_positive_definite_is_named():
    # k(x, z) = 2 off the diagonal and 1 on it has a negative eigenvalue
    kernel = FunctionKernel(lambda x, z: 1.0 if x == z else 2.0)
    sampler = KORS(kernel, regularization=0.1, policy=Leverage(floor=1.0))
    with pytest.raises(NumericalError, match="not positive definite"):
        sampler.advance([1, 2, 3])
    assert sampler.rows_seen == 0
    assert len(sampler.atoms) == 0


def test_a_kernel_with_a_negative_diagonal_is_named():
    kernel = FunctionKernel(lambda x, z: -1.0 * x * z)
    sampler = KORS(kernel, regularization=3.0, policy=Leverage(floor=1.0))
    with pytest.raises(NumericalError, match="not positive definite"):
        sampler.advance([1.0])
    assert sampler.rows_seen == 0


# ---- state and display


def test_state_holds_what_the_next_row_depends_on():
    X, weights = stream()
    sampler = KORS(Gaussian(), seed=8)
    trace = sampler.advance(X, weights)
    state = sampler.state()
    assert state["width"] == 3
    assert state["rows_seen"] == 300
    assert state["kept"] == sampler.size
    assert state["estimated_dimension"] == sampler.online_effective_dimension
    np.testing.assert_array_equal(state["sampler"]["points"], sampler.atoms)
    np.testing.assert_array_equal(state["sampler"]["importances"], sampler.importance)
    inside = trace.kept & (weights > 0)
    np.testing.assert_allclose(
        state["sampler"]["preconditioner"]["root_weights"] ** 2,
        weights[inside] / trace.probability[inside],
        rtol=1e-12,
    )
    np.testing.assert_equal(sampler.state(), state)
    np.testing.assert_equal(copy.deepcopy(sampler).state(), state)


def test_looking_changes_nothing():
    X, _ = stream()
    sampler = KORS(Gaussian(), seed=8)
    sampler.advance(X)
    state = sampler.state()
    sampler.transform(X)
    sampler.effective_dimension()
    repr(sampler)
    sampler._repr_html_()
    np.testing.assert_equal(sampler.state(), state)


def test_repr_builds_the_same_sampler():
    sampler = KORS(Gaussian(2.0), regularization=0.5, policy=Leverage(2.0, floor=0.1), seed=3)
    twin = eval(repr(sampler))
    assert isinstance(twin, KORS)
    assert twin.parameters() == sampler.parameters()
    assert list(sampler.parameters()) == ["kernel", "regularization", "policy", "seed"]


def test_defaults_are_those_documented():
    assert KORS(Gaussian()).parameters() == {
        "kernel": Gaussian(),
        "regularization": 1.0,
        "policy": Leverage(),
        "seed": 0,
    }


def test_html_shows_parameters_and_counts():
    sampler = KORS(FunctionKernel(lambda x, z: float(x * z)), policy=Leverage(floor=1.0))
    sampler.advance(list(range(1, 1235)))
    html = sampler._repr_html_()
    assert "<caption>KORS</caption>" in html
    assert "<td>1,234</td>" in html
    assert "effective dimension" in html
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html
