"""The battery of dictionaries: ours pass, and one that breaks a promise is caught by that promise's check."""

import numpy as np
import pytest

import effort
from kons import KORS, Gaussian, Laplace
from kons.arrays import as_points
from kons.checks import DICTIONARY_CHECKS, CheckFailed, check_dictionary
from kons.dictionaries import (
    SQUEAK,
    FrequentDirections,
    KernelPCA,
    LinearDependence,
    RowSampling,
    UniformSample,
    merge,
)
from kons.errors import ConfigurationError
from kons.policies import Leverage
from kons.recipes import DICTIONARIES


def after_a_merge():
    made = [SQUEAK(Gaussian(), regularization=0.1, period=16, seed=seed) for seed in (1, 2)]
    for i, one in enumerate(made):
        one.update(np.random.default_rng(i).normal(size=(30, 3)))
    return merge(*made, seed=3)


OURS = {
    "KORS": lambda: KORS(Gaussian(), regularization=0.1, seed=1),
    "SQUEAK": lambda: SQUEAK(Gaussian(), regularization=0.1, period=16, seed=1),
    "SQUEAK, as printed": lambda: SQUEAK(Laplace(), policy=Leverage(floor=0.1), period=1, seed=1),
    "SQUEAK, merged": after_a_merge,
    "RowSampling": lambda: RowSampling(distortion=0.9, additive=0.9, seed=1),
    "UniformSample": lambda: UniformSample(Gaussian(), max_atoms=12, seed=1),
    "LinearDependence": lambda: LinearDependence(Gaussian(), tolerance=1e-2, max_atoms=30),
    "FrequentDirections": lambda: FrequentDirections(2),
    "KernelPCA": lambda: KernelPCA(Gaussian(2.0), max_atoms=6, dimension=40, seed=1),
}
SAMPLE = effort.some(OURS, *(name for name in OURS if name != "SQUEAK, as printed"))


@pytest.mark.parametrize("name", SAMPLE)
def test_ours_pass(name):
    assert check_dictionary(OURS[name]) == list(DICTIONARY_CHECKS)


def test_every_dictionary_of_the_registry_is_under_test():
    assert {row.make for row in DICTIONARIES.values()} == {type(make()) for make in OURS.values()}


class Honest:
    """Somebody's own: every third row, which weighs 3. It knows nothing of kons but its border."""

    seed = 0

    def __init__(self):
        self.rows, self.rows_seen = np.empty((0, 3)), 0

    @property
    def size(self):
        return len(self.rows)

    @property
    def atoms(self):
        return self.rows.copy()

    @property
    def weights(self):
        return np.full(self.size, 3.0)

    def update(self, X):
        X = as_points(X, width=3)
        self.rows = np.vstack([self.rows, X[-self.rows_seen % 3 :: 3]])
        self.rows_seen += len(X)

    def transform(self, X):
        return as_points(X, width=3) @ self.rows[:4].T

    def parameters(self):
        return {}

    def state(self):
        return {"rows": self.rows.copy(), "rows_seen": self.rows_seen}

    @classmethod
    def from_state(cls, parameters, state):
        made = cls()
        made.rows, made.rows_seen = state["rows"].copy(), state["rows_seen"]
        return made


class WithoutAWeight(Honest):
    @property
    def weights(self):
        return np.full(max(self.size - 1, 0), 3.0)


class NegativeWeights(Honest):
    @property
    def weights(self):
        return np.full(self.size, -3.0)


class HandsOutItsAtoms(Honest):
    @property
    def atoms(self):
        return self.rows


class CountsCalls(Honest):
    def update(self, X):
        X = as_points(X, width=3)
        self.rows = np.vstack([self.rows, X[:1]])
        self.rows_seen += len(X)


class KeepsTheirArray(Honest):
    def update(self, X):
        first = self.rows_seen == 0
        super().update(X)
        if first and len(X) > 1 and isinstance(X, np.ndarray):
            self.rows = X[::3]


class LearnsFromQueries(Honest):
    def transform(self, X):
        Z = super().transform(X)
        self.rows_seen += 1
        return Z


class TakesInfinity(Honest):
    def update(self, X):
        super().update(np.nan_to_num(np.asarray(X, dtype=float)))


class ForgetsInFiles(Honest):
    @classmethod
    def from_state(cls, parameters, state):
        made = super().from_state(parameters, state)
        made.rows_seen += 1
        return made


BROKEN = {
    WithoutAWeight: "atoms_have_weights",
    NegativeWeights: "atoms_have_weights",
    HandsOutItsAtoms: "atoms_have_weights",
    CountsCalls: "blocks_give_the_same_atoms",
    KeepsTheirArray: "inputs_are_not_kept",
    LearnsFromQueries: "predict_is_pure",
    TakesInfinity: "refused_input_changes_nothing",
    ForgetsInFiles: "saved_mid_stream_goes_on",
}


def test_an_honest_one_passes():
    assert check_dictionary(Honest) == list(DICTIONARY_CHECKS)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_one_is_caught_by_the_check_of_its_promise(kind):
    skip = {name: "the promise of another" for name in DICTIONARY_CHECKS if name != BROKEN[kind]}
    with pytest.raises(CheckFailed, match=BROKEN[kind]):
        check_dictionary(kind, skip=skip)


def test_a_skip_names_a_check():
    with pytest.raises(ConfigurationError, match="skip names 'raw_records_are_rows'"):
        check_dictionary(Honest, skip={"raw_records_are_rows": "no targets"})
