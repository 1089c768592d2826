"""Dictionaries against their dense twins, and what merging them gives."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
import kons
import naive
import naive_dictionaries as twins
from kons import KORS, Gaussian, Laplace, Polynomial
from kons.dictionaries import (
    SQUEAK,
    FrequentDirections,
    KernelPCA,
    LinearDependence,
    RowSampling,
    UniformSample,
    merge,
)
from kons.errors import ConfigurationError, FileError, InputError, NumericalError
from kons.kernels import FunctionKernel, Linear
from kons.policies import Leverage

QUADRATIC = Polynomial(degree=2, offset=0.0)
POLICIES = {
    "default": Leverage(),
    "floored": Leverage(0.4, 0.3, floor=0.2),
    "generous": Leverage(20.0, 0.9),
}


def stream(rows=200, seed=0, width=3):
    """Points of different lengths with repetitions, and weights of which some are 0."""
    rng = np.random.default_rng([seed, 99])
    X = rng.normal(size=(rows, width))
    X[rng.random(rows) < 0.3] = X[0]
    weights = rng.exponential(0.5, size=rows)
    weights[rng.random(rows) < 0.2] = 0.0
    return X, weights


def coins(seed, rows):
    return np.random.default_rng(seed).random(rows)


def fed(dictionary, X, weights=1.0, block=None):
    weights = np.broadcast_to(weights, len(X))
    for start in range(0, len(X), block or len(X)):
        dictionary.update(X[start : start + (block or len(X))], weights[start : start + (block or len(X))])
    return dictionary


def dense(policy, alpha):
    return {"alpha": alpha, "beta": policy.beta, "eps": policy.distortion, "gamma": policy.floor}


def require_sample(dictionary, X, weights, p):
    """The rows with p > 0, weighing w/p: p is accurate to the condition of A, below 1e5 here."""
    np.testing.assert_array_equal(dictionary.atoms, X[p > 0])
    np.testing.assert_allclose(dictionary.weights, (weights / np.where(p > 0, p, 1.0))[p > 0], rtol=1e-9)
    assert 0 < dictionary.size < len(X)


# ---- SQUEAK


@effort.every_pair(block=[1, 7, None], alpha=[1e-2, 1.0, 30.0], period=[1, 16, 64], policy=POLICIES)
def test_squeak_equals_its_twin(block, alpha, period, policy):
    X, weights = stream()
    p = twins.squeak(
        naive.quadratic_features(X), weights, coins(7, 200), period=period, **dense(policy, alpha)
    )
    made = SQUEAK(QUADRATIC, regularization=alpha, policy=policy, period=period, seed=7)
    require_sample(fed(made, X, weights, block), X, weights, p)


def test_squeak_forgets_what_kors_keeps():
    """Directions that come one after the other and then again and again: what was new is so no longer."""
    X = np.tile(np.eye(6), (100, 1))
    squeak = fed(SQUEAK(Linear(), policy=Leverage(3.0), period=6), X)
    sizes = [fed(SQUEAK(Linear(), policy=Leverage(3.0), period=6), X[:rows]).size for rows in (6, 60, 600)]
    assert sizes[0] == 6
    assert max(sizes) < 60
    assert squeak.size < 0.7 * fed(KORS(Linear(), policy=Leverage(3.0)), X).size


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_merge_equals_its_twin(policy):
    X, weights = stream(rows=230)
    Phi, cut = naive.quadratic_features(X), 130
    u = np.concatenate([coins(1, cut), coins(2, 100)])
    settings = {"regularization": 0.5, "policy": policy, "period": 16}
    parts = [slice(0, cut), slice(cut, 230)]
    made = [
        fed(SQUEAK(QUADRATIC, **settings, seed=1 + i), X[rows], weights[rows]) for i, rows in enumerate(parts)
    ]
    p = np.concatenate(
        [twins.squeak(Phi[rows], weights[rows], u[rows], period=16, **dense(policy, 0.5)) for rows in parts]
    )
    p = twins.merged(Phi, weights, u, p, **dense(policy, 0.5))
    require_sample(merge(*made, seed=3), X, weights, p)


def test_a_mean_over_seeds_is_the_sum_over_all_rows():
    """Sums over the sample are unbiased, however often it was thinned and merged."""
    rng = np.random.default_rng(20_170_420)
    X = rng.normal(size=(60, 2))
    policy, sums = Leverage(0.7, 0.5, floor=0.05), []
    for seed in range(effort.amount(300, 3000)):
        parts = [
            fed(SQUEAK(Linear(), policy=policy, period=8, seed=3 * seed + i), X[30 * i : 30 * i + 30])
            for i in range(2)
        ]
        made = merge(*parts, seed=3 * seed + 2)
        sums.append((made.atoms.T * made.weights) @ made.atoms)
    # Five standard errors for each of three numbers.
    errors = 5 * np.std(sums, axis=0) / np.sqrt(len(sums))
    assert (np.abs(np.mean(sums, axis=0) - X.T @ X) <= errors).all()
    assert (np.std(sums, axis=0) > 1.0).all()  # and each of them is far from it


# ---- the others


@effort.every_pair(block=[1, 7, None], eps=[0.3, 0.9], delta=[0.5, 20.0], c=["theory", 0.5])
def test_row_sampling_equals_its_twin(block, eps, delta, c):
    X, weights = stream(rows=400)
    X[::9] *= np.linspace(5.0, 500.0, 45)[:, None]  # leverages above 1, which are cut off
    constant = 8 * np.log(3) / eps**2 if c == "theory" else c
    p = twins.row_sampling(X, weights, coins(5, 400), eps=eps, delta=delta, c=constant)
    made = RowSampling(distortion=eps, additive=delta, oversampling=c, seed=5)
    require_sample(fed(made, X, weights, block), X, weights, p)


@pytest.mark.parametrize("block", [1, 7, None])
def test_a_uniform_sample_has_the_smallest_coins(block):
    X, weights = stream()
    made = fed(UniformSample(Gaussian(), max_atoms=30, seed=4), X, weights, block)
    rows = np.flatnonzero(weights > 0)
    kept = np.sort(rows[np.argsort(coins(4, 200)[rows])[:30]])
    np.testing.assert_array_equal(made.atoms, X[kept])
    np.testing.assert_allclose(made.weights, weights[kept] * len(rows) / 30)


@effort.every_pair(
    block=[1, 7, None], tolerance=[1e-5, 1e-2, 0.3], most=[None, 6], kernel=[Gaussian(), Laplace(3.0)]
)
def test_dependence_equals_its_twin(block, tolerance, most, kernel):
    X, weights = stream(rows=150, width=2)
    rows = np.flatnonzero(weights > 0)
    atoms = twins.linear_dependence(kernel.gram(X[rows]), tolerance, most or 10**9)
    made = fed(LinearDependence(kernel, tolerance=tolerance, max_atoms=most), X, weights, block)
    np.testing.assert_array_equal(made.atoms, X[rows][atoms])
    np.testing.assert_array_equal(made.weights, 1.0)
    if most is None:
        Z = made.transform(X[rows])
        assert (kernel.diagonal(X[rows]) - (Z**2).sum(axis=1)).max() <= tolerance + 1e-9


@pytest.mark.parametrize("block", [1, 7, None])
def test_directions_equal_their_twin(block):
    X, weights = stream(rows=150, width=8)
    rows = np.sqrt(weights)[:, None] * X
    B2, removed = twins.frequent_directions(rows[weights > 0], 5)
    made = fed(FrequentDirections(5), X, weights, block)
    values, vectors = np.linalg.eigh(B2)
    # eps times the trace, some hundred operations
    rounding = 1e-13 * np.sum(rows**2)
    np.testing.assert_allclose(made.weights, values[::-1][:5], rtol=0, atol=rounding)
    assert made.error == pytest.approx(removed + max(values[::-1][5], 0.0), rel=1e-9)
    np.testing.assert_allclose(np.abs(made.atoms @ vectors[:, ::-1][:, :5]), np.eye(5), atol=1e-6)
    np.testing.assert_allclose(made.transform(X[:4]), X[:4] @ made.atoms.T)
    kept = (made.atoms.T * made.weights) @ made.atoms
    gap = np.linalg.eigvalsh(rows.T @ rows - kept)
    assert gap[0] >= -rounding
    assert gap[-1] <= made.error + rounding


def test_kernel_pca_is_directions_of_random_features():
    X, weights = stream(rows=120)
    made = fed(KernelPCA(Laplace(2.0), max_atoms=4, dimension=30, seed=3), X, weights)
    Z = twins.waves(X, made.state()["map"]["frequencies"])
    plain = fed(FrequentDirections(4), Z, weights)
    np.testing.assert_allclose(made.weights, plain.weights, rtol=1e-9)
    np.testing.assert_allclose(np.abs(made.transform(X)), np.abs(plain.transform(Z)), atol=1e-7)


# ---- merging


MERGE = {
    "SQUEAK": lambda seed: SQUEAK(Gaussian(), regularization=0.3, period=16, seed=seed),
    "UniformSample": lambda seed: UniformSample(Gaussian(), max_atoms=12, seed=seed),
    "FrequentDirections": lambda seed: FrequentDirections(2),
    "KernelPCA": lambda seed: KernelPCA(Gaussian(), max_atoms=4, dimension=20),
}


def together(a, b, seed):
    return (
        merge(a, b, seed=seed) if "seed" in a.parameters() and not isinstance(a, KernelPCA) else merge(a, b)
    )


@pytest.mark.parametrize("name", MERGE)
def test_merging_is_pure_and_goes_on(name):
    X, _ = stream(rows=170)
    a, b = fed(MERGE[name](1), X[:70]), fed(MERGE[name](2), X[70:110])
    before = copy.deepcopy([a.state(), b.state()])
    first, second = (
        together(a, b, 3),
        together(copy.deepcopy(a), kons.files.from_bytes(kons.files.to_bytes(b)), 3),
    )
    np.testing.assert_equal([a.state(), b.state()], before)
    for one in (first, second):
        assert one.rows_seen == 110
        fed(one, X[110:])
    np.testing.assert_equal(first.state(), second.state())
    assert first.rows_seen == 170
    with pytest.raises(InputError, match="features"):
        first.update(X[:, :2])


@pytest.mark.parametrize("name", MERGE)
def test_merging_with_one_that_saw_nothing(name):
    X, _ = stream(rows=60)
    a, b = fed(MERGE[name](1), X), MERGE[name](2)
    for made in (together(a, b, 3), together(b, a, 3)):
        assert made.rows_seen == 60
        assert 0 < made.size <= a.size
        assert made.transform(X[:2]).shape[0] == 2
    assert together(b, MERGE[name](4), 3).size == 0


@given(order=st.permutations(range(5)), shape=st.integers(0, 3))
@effort.examples(12)
def test_uniform_samples_merge_alike_in_any_tree(order, shape):
    X, _ = stream(rows=100)
    parts = [fed(MERGE["UniformSample"](i), X[20 * i : 20 * i + 20]) for i in range(5)]
    left = [parts[i] for i in order]
    seed = 10
    while len(left) > 1:
        at = shape % (len(left) - 1)
        left[at : at + 2] = [merge(*left[at : at + 2], seed=seed)]
        seed += 1
    u = np.concatenate([coins(i, 20) for i in range(5)])
    expected = X[np.argsort(u)[:12]]
    np.testing.assert_array_equal(np.unique(left[0].atoms, axis=0), np.unique(expected, axis=0))
    np.testing.assert_allclose(left[0].weights, 100 / 12)


def test_what_cannot_be_merged():
    X, _ = stream(rows=40)
    a, b = fed(MERGE["SQUEAK"](1), X[:20]), fed(MERGE["SQUEAK"](2), X[20:])
    for seeds, one, other in (((1,), a, b), ((2,), a, b), ((3,), a, a)):
        with pytest.raises(ConfigurationError, match="three that differ"):
            merge(one, other, seed=seeds[0])
    both = merge(a, b, seed=3)
    with pytest.raises(ConfigurationError, match="rows that are in one dictionary alone"):
        merge(both, a, seed=4)  # the rows of a are in both
    with pytest.raises(ConfigurationError, match="seed is None"):
        merge(a, b)
    with pytest.raises(ConfigurationError, match="tosses no coins"):
        merge(FrequentDirections(3), FrequentDirections(3), seed=1)
    with pytest.raises(ConfigurationError, match=r"regularization is 0\.3 in one and 0\.4"):
        merge(a, SQUEAK(Gaussian(), regularization=0.4, period=16, seed=5), seed=3)
    with pytest.raises(ConfigurationError, match="seed is 0 in one and 1"):
        merge(KernelPCA(Gaussian(), seed=0), KernelPCA(Gaussian(), seed=1))
    with pytest.raises(ConfigurationError, match="features in one"):
        merge(a, fed(MERGE["SQUEAK"](5), X[:, :2]), seed=3)
    for one in (KORS(Gaussian()), RowSampling(), LinearDependence(Gaussian())):
        with pytest.raises(ConfigurationError, match="do not merge"):
            merge(one, one, seed=3)


# ---- other points, wider points, files, errors


def letters(x, z):
    return float(sum(min(x.count(c), z.count(c)) for c in set(x)))


@pytest.mark.parametrize("make", [SQUEAK, UniformSample, LinearDependence], ids=lambda make: make.__name__)
def test_points_may_be_any_objects(make):
    words = [a + b + c for a in "abcd" for b in "abcd" for c in "bcde"]
    kernel = FunctionKernel(letters)
    first = make(kernel)
    first.update(words)
    assert set(first.atoms) <= set(words)
    Z = first.transform(first.atoms)
    np.testing.assert_allclose(Z @ Z.T, kernel.gram(first.atoms), atol=1e-5)  # what makes an atom: 1e-7 of 3
    assert len(Z) == first.size > 0


WIDER = {
    "SQUEAK": lambda: SQUEAK(Gaussian(), regularization=0.3, period=16),
    "UniformSample": lambda: UniformSample(Gaussian(), max_atoms=12),
    "RowSampling": lambda: RowSampling(oversampling=2.0),
    "LinearDependence": lambda: LinearDependence(Gaussian()),
    "FrequentDirections": lambda: FrequentDirections(2),
    "KernelPCA": lambda: KernelPCA(Gaussian(), max_atoms=4, dimension=20),
}


@pytest.mark.parametrize("name", WIDER)
def test_columns_that_come_late_were_0(name):
    X, _ = stream(rows=90)
    X[:50, 2] = 0.0
    late, whole = WIDER[name](), fed(WIDER[name](), X)
    fed(late, X[:50, :2]).transform(X[:5, :2])
    late.widen(1)
    late = kons.files.from_bytes(kons.files.to_bytes(late))
    fed(late, X[50:])
    np.testing.assert_allclose(late.weights, whole.weights, rtol=1e-9)
    np.testing.assert_allclose(np.abs(late.transform(X)), np.abs(whole.transform(X)), atol=1e-8)


@pytest.mark.parametrize("name", WIDER)
def test_through_a_file_of_its_own(name, tmp_path):
    X, _ = stream(rows=90)
    made = fed(WIDER[name](), X[:50])
    kons.save(made, tmp_path / "dictionary.kons")
    loaded = kons.load(tmp_path / "dictionary.kons")
    np.testing.assert_equal(fed(loaded, X[50:]).state(), fed(made, X[50:]).state())
    assert repr(loaded) == repr(made)


def test_states_that_do_not_fit_are_refused():
    X, _ = stream(rows=40)
    made = fed(MERGE["SQUEAK"](1), X)
    state = made.state()
    state["sample"]["columns"][0, 2] = 0.0
    with pytest.raises(FileError, match="its own coin"):
        SQUEAK.from_state(made.parameters(), state)


def test_a_kernel_at_fault_changes_nothing():
    X, _ = stream(rows=40)
    made = SQUEAK(FunctionKernel(lambda x, z: -abs(float(x[0] * z[0])) - 1.0), period=8)
    with pytest.raises(NumericalError):
        made.update(list(X))
    assert (made.rows_seen, made.size) == (0, 0)


def test_settings_are_checked():
    for call in (
        lambda: SQUEAK("gaussian"),
        lambda: SQUEAK(Gaussian(), period=0),
        lambda: SQUEAK(Gaussian(), policy=1.0),
        lambda: UniformSample(Gaussian(), max_atoms=0),
        lambda: RowSampling(distortion=1.0),
        lambda: RowSampling(additive=0.0),
        lambda: RowSampling(oversampling="all"),
        lambda: LinearDependence(Gaussian(), tolerance=1.0),
        lambda: FrequentDirections(0),
        lambda: KernelPCA(Linear()),
    ):
        with pytest.raises(ConfigurationError):
            call()


@pytest.mark.parametrize("make", [FrequentDirections, RowSampling])
def test_rows_whose_squares_overflow_are_refused_before_they_are_kept(make):
    X, _ = stream(60)
    dictionary = make()
    dictionary.update(X[:20])
    before = dictionary.size, dictionary.transform(X)
    with pytest.raises(NumericalError):
        dictionary.update(X[20:] * 1e200)
    assert dictionary.size == before[0]
    np.testing.assert_array_equal(dictionary.transform(X), before[1])
