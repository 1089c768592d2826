"""Every learner, policy, recipe and adapter of ours keeps what the public battery asks for."""

import random

import pytest

import effort
from contracts.learners import LEARNERS
from kons import KONS, KORS, Gaussian, Laplace, Logistic, SketchedKONS, Squared
from kons.checks import CHECKS, check_learner
from kons.evaluation import KernelGradientDescent
from kons.kernels import FunctionKernel
from kons.policies import Leverage
from kons.recipes import RECIPES, for_task, make

A_LAMBDA = {"copies_go_on": "a learner with a lambda inside cannot be pickled"}


def recipe(name):
    loss = Squared() if name in ("pkawv", "ridge") else Logistic()
    capped = {"max_atoms": 12} if "max_atoms" in RECIPES[name].parameters else {}
    return lambda: make(name, Gaussian(), loss, regularization=0.1, **capped)


SUBJECTS = {
    **LEARNERS,
    **{f"recipe {name}": recipe(name) for name in RECIPES if not RECIPES[name].in_raw_units},
    "KORS": lambda: KORS(Gaussian(), regularization=0.1, seed=1),
    "KORS, theory": lambda: KORS(Laplace(), policy=Leverage("theory", distortion=0.9, horizon=1000), seed=1),
    "SketchedKONS, floor 1": lambda: SketchedKONS(Gaussian(), Squared(), policy=Leverage(floor=1.0)),
    "KernelGradientDescent": lambda: KernelGradientDescent(Gaussian(), Squared()),
    "for_task, regression": lambda: for_task("regression", "embedded", warmup=30, max_atoms=12),
    "for_task, classification": lambda: for_task("classification", "embedded", warmup=30, max_atoms=12),
}


# These are learners of contracts.learners under another name, or differ from one in a parameter.
TWICE = {
    *("recipe kons", "recipe sketched", "recipe ridge", "recipe embedded", "SketchedKONS, floor 1"),
    *("recipe nons_ald", "recipe con_kons", "recipe b_kons", "Classifier, closed", "for_task, regression"),
}


@pytest.mark.parametrize("name", effort.some(SUBJECTS, *(name for name in SUBJECTS if name not in TWICE)))
def test_ours_pass(name):
    skip = A_LAMBDA if "falling step size" in name else {}
    ran = check_learner(SUBJECTS[name], skip=skip)
    assert len(ran) == len(CHECKS) - len(skip)


def test_auto_passes():
    skip = {"memory_stays_within_the_cap": "max_atoms is of one expert, and there are twelve"}
    ran = check_learner(lambda: for_task("regression", max_atoms=30), skip=skip)
    assert len(ran) == len(CHECKS) - 1


def words(rows, seed):
    """Text to learn, by a learner that takes objects."""
    chooser = random.Random(seed)
    made = ["".join(chooser.choices("abc", k=chooser.randint(1, 6))) for _ in range(rows)]
    return made, [1.0 if word.count("a") > 1 else -1.0 for word in made]


def common_letters(a, b):
    return float(sum(a.count(c) * b.count(c) for c in set(a)))


def test_ours_pass_on_text():
    kernel = FunctionKernel(common_letters)
    ran = check_learner(lambda: KONS(kernel, Squared(), regularization=5.0), stream=words)
    assert len(ran) == len(CHECKS)
