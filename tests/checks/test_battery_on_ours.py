"""Every learner, policy, recipe and adapter of ours keeps what the public battery asks for."""

import random
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import effort
from contracts.learners import LEARNERS
from kons import KONS, KORS, Gaussian, Hinge, Laplace, SketchedKONS, Squared
from kons.checks import CHECKS, check_learner
from kons.evaluation import KernelGradientDescent
from kons.kernels import FunctionKernel
from kons.policies import Leverage
from kons.recipes import RECIPES, for_task, make

A_LAMBDA = {"copies_go_on": "a learner with a lambda inside cannot be pickled"}


def recipe(name):
    recipe = RECIPES[name]
    loss = recipe.own_loss or (Squared() if name == "ridge" else recipe.of_labels)
    given = {"max_atoms": 12, "max_points": 12, "dimension": 16, "directions": 3, "regularization": 0.1}
    if name in ("adagrad", "adam", "aogd_ald"):  # as a divisor's least value it is not what it is in A
        del given["regularization"]
    return lambda: make(
        name, Gaussian(), loss, **{key: given[key] for key in given if key in recipe.parameters}
    )


SUBJECTS = {
    **LEARNERS,
    **{f"recipe {name}": recipe(name) for name in RECIPES if not RECIPES[name].in_raw_units},
    "KORS": lambda: KORS(Gaussian(), regularization=0.1, seed=1),
    "KORS, theory": lambda: KORS(Laplace(), policy=Leverage("theory", distortion=0.9, horizon=1000), seed=1),
    "SketchedKONS, floor 1": lambda: SketchedKONS(Gaussian(), Squared(), policy=Leverage(floor=1.0)),
    "bogd, project": lambda: make("bogd", Gaussian(), Squared(), max_points=12, when_full="project"),
    "bogd, smallest": lambda: make("bogd", Gaussian(), Hinge(), max_points=12, when_full="smallest"),
    "krls, window": lambda: make("krls", Gaussian(), Squared(), window=20),
    "KernelGradientDescent": lambda: KernelGradientDescent(Gaussian(), Squared()),
    "for_task, regression": lambda: for_task("regression", "embedded", warmup=30, max_atoms=12),
    "for_task, classification": lambda: for_task("classification", "embedded", warmup=30, max_atoms=12),
}


# These are learners of contracts.learners under another name, or differ from one in a parameter.
TWICE = {
    *("recipe skegd", "recipe sketched_ons", "recipe fastfood", "recipe adam", "recipe nogd"),
    *("recipe rbp", "recipe perceptron"),  # bogd removes at random, too; the other perceptron has a curvature
    *("recipe kons", "recipe sketched", "recipe ridge", "recipe embedded", "SketchedKONS, floor 1"),
    *("recipe nons_ald", "recipe con_kons", "recipe b_kons", "Classifier, closed", "for_task, regression"),
    *("recipe pkawv", "KORS, theory", "for_task, classification", "Classifier"),
    *("recipe krls", "recipe norma", "recipe projectron", "bogd, smallest", "recipe pros_n_kons"),
}


SAMPLE = effort.some(SUBJECTS, *(name for name in SUBJECTS if name not in TWICE))
# A class has one door, whatever its settings: its first learner is asked at it, in a soak all.
FIRST = {name: type(SUBJECTS[name]()) for name in SAMPLE}
FIRST = {kind: name for name, kind in reversed(FIRST.items())}
RECORDS = dict.fromkeys(
    ("raw_records_are_rows", "raw_records_may_wait"), "another one with this door is asked"
)
# Recipes differ from the learners of contracts in settings alone.
DOOR = RECORDS | dict.fromkeys(
    ("inputs_in_any_form", "inputs_are_not_kept", "copies_go_on"), "another one of its class is asked"
)


# The second one begins where a warm-up of fifty rows ends.
STRETCHES = [(0, effort.amount(36, 45)), (50, effort.amount(90, 110))]


@pytest.mark.parametrize("name", SAMPLE)
def test_ours_pass(name):
    skip = dict(A_LAMBDA) if "falling step size" in name else {}
    if name not in FIRST.values() and not effort.is_soak():
        skip |= DOOR if name.startswith("recipe") else RECORDS
    ran = check_learner(SUBJECTS[name], skip=skip, stretches=STRETCHES)
    assert len(ran) == len(CHECKS) - len(skip)


TURN, WIDER, LATE_CLASS = 300, 450, 560
COLUMNS = {0: 2, WIDER: 3}


def features_and_noise(rows, seed):
    """The first rows are the same however many there are."""
    X = np.random.default_rng([seed, 0]).uniform(-1.0, 1.0, size=(rows, 3))
    return np.arange(rows), X, 0.1 * np.random.default_rng([seed, 1]).normal(size=(rows, 2))


def turning(rows, seed, back=10**9):
    """Another function from row 300 on, perhaps not for good; the third column is there from row 450 on."""
    t, X, noise = features_and_noise(rows, seed)
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + noise[:, 0] + np.where(t < WIDER, 0.0, 0.5 * X[:, 2])
    other = 30.0 * (3.0 + X[:, 0] - X[:, 1] + 2.5 * noise[:, 1])
    return X, np.where((t >= TURN) & (t < back), other, y)


def turning_classes(rows, seed):
    """Three classes that change places at row 300, and a fourth one late."""
    t, X, noise = features_and_noise(rows, seed)
    codes = np.digitize(X[:, 0] + 0.2 * noise[:, 0], [-0.3, 0.3])
    codes = np.where(t >= TURN, (codes + 1) % 3, codes)
    codes[(t >= WIDER) & (X[:, 2] > 0.8)] = 0
    codes[(t >= LATE_CLASS) & (X[:, 1] > 0.6)] = 3
    return X, np.array(["low", "middle", "high", "late"])[codes]


class Course(NamedTuple):
    """A stream for AutoKONS, and where what happens, so that stretches lie around it."""

    task: str
    stream: Any
    delay: int
    met: dict[str, int]
    """What happens -> the rows after which it is seen first."""
    elsewhere: tuple[str, ...] = ()
    """What the battery looks at on another course, unless in a soak."""

    def make(self):
        return for_task(self.task, max_atoms=12, delay=self.delay)

    @property
    def stretches(self):
        """Ends of blocks and rows one by one on either side; in a soak more of them, and longer ones."""
        ends = {**self.met, "wider": WIDER}
        if effort.is_soak():
            ends |= {f"chunk {end}": end for end in (64, 128, 512, 1024, 1152)}
        skipped = () if effort.is_soak() else self.elsewhere
        longer = effort.amount(1, 5)
        looked_at = [end for what, end in ends.items() if what not in skipped]
        return [(0, 12), *((end - 7 * longer, end + 3 * longer) for end in looked_at)]


COURSES = {
    "regression": Course(
        "regression",
        turning,
        0,
        {"takeover": 384, "the column counts": 576, "pruned": 832},
        ("takeover", "wider"),
    ),
    "regression, delay 7": Course(
        "regression",
        partial(turning, back=600),
        7,
        {"takeover": 391, "the column counts": 456, "return": 648},
    ),
    "classification": Course(
        "classification",
        turning_classes,
        0,
        {"takeover": 384, "late class": 562, "the column counts": 576, "return": 640},
    ),
    "classification, delay 7": Course(
        "classification",
        turning_classes,
        7,
        {"takeover": 391, "the column counts": 455, "late class": 562},
        ("the column counts",),
    ),
}


@pytest.mark.parametrize("name", effort.some(COURSES, "regression", "classification, delay 7"))
def test_auto_passes(name):
    course = COURSES[name]
    skip = {} if effort.is_soak() else RECORDS
    given = {"stream": course.stream, "stretches": course.stretches, "columns": COLUMNS}
    assert len(check_learner(course.make, skip=skip, **given)) == len(CHECKS) - len(skip)


def test_auto_takes_records():
    """Of numbers; classes by dicts, also with late targets, are in tests/tables/test_door.py."""
    skip = {name: "on a longer course" for name in CHECKS if name not in RECORDS}
    ran = check_learner(
        COURSES["regression"].make, stream=turning, stretches=[(0, 12), (120, 270)], skip=skip
    )
    assert set(ran) == set(RECORDS)


@pytest.mark.parametrize("name", effort.some(COURSES, "regression", "classification, delay 7"))
def test_on_the_way_auto_meets_what_it_is_there_for(name):
    course, seen = COURSES[name], set()
    X, y = course.stream(max(course.met.values()) + 1, 0)
    model = course.make()
    for what, row in sorted(course.met.items(), key=lambda entry: entry[1]):
        assert what not in happened(model), what
        for t in range(model.rows_seen, row):
            if t == WIDER:
                model.widen()
            model.learn_one(X[t, : 2 + (t >= WIDER)], y[t])
            if t == row - 2:
                assert what not in happened(model), what
        seen.add(what)
        assert happened(model) == seen


def happened(model):
    """What can be seen of a model from outside."""
    took_over = model.successions > 0
    now = {
        "takeover": took_over,
        "return": took_over and model.state()["targets"][0]["drift"]["previous"] is None,
        "pruned": len(model.shares) < len(model.expert_names),
        "the column counts": (model.relevances > 0.0).sum() == 3,
        "late class": model.task == "classification" and "late" in model.classes,
    }
    return {what for what, seen in now.items() if seen}


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
