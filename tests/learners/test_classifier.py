"""Classes by one-vs-rest: refereed by one binary learner per class, fed by hand from the first row."""

import copy
import functools
import html
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import effort
from contracts.learners import assert_identical
from kons import (
    KONS,
    Classifier,
    EmbeddedKONS,
    Gaussian,
    Laplace,
    Logistic,
    SketchedKONS,
    Squared,
    SquaredHinge,
    Trace,
)
from kons.core.quadratic_loops import GAINS
from kons.errors import ConfigurationError, InputError, NumericalError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.policies import Dependence, Fixed, Leverage

ROWS = 260
RNG = np.random.default_rng(5)
X = RNG.normal(size=(ROWS, 2))
# Three classes, the third only from row 90 on, the second from row 7 on.
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=ROWS) > 0.2, "a", np.where(X[:, 1] > 0, "b", "c")).astype(object)
Y[:7], Y[:90][Y[:90] == "c"] = "a", "b"
CLASSES = ["a", "b", "c"]

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)
embedded = functools.partial(EmbeddedKONS, regularization=0.1, max_atoms=30)
absolute = CustomLoss(
    lambda p, y: (p - y) ** 2 / 2,
    lambda p, y: p - y,
    lambda p, y: np.ones_like(p),
    targets=(-1, 1),
    name="half",
)

PATTERNS = {
    "logistic": lambda: embedded(Gaussian(), Logistic(), bound=3.0, second_order="hessian"),
    "squared": lambda: embedded(Gaussian(), Squared(), second_order="hessian"),
    "squared hinge, gradient": lambda: embedded(Laplace(2.0), SquaredHinge()),
    "leverage": lambda: embedded(Gaussian(), Logistic(), policy=Leverage(0.5), seed=3),
    "restart": lambda: embedded(Gaussian(), Squared(), policy=Leverage(0.5), on_growth="restart", seed=3),
    "fixed": lambda: embedded(Gaussian(), Logistic(), policy=Fixed(X[:12])),
    "forgetting": lambda: embedded(Gaussian(), Logistic(), second_order="hessian", forgetting=0.99),
    "forward": lambda: embedded(Gaussian(), Squared(), second_order="hessian", forward=True),
    "own loss": lambda: embedded(Gaussian(), absolute, second_order="hessian"),
    "falling step size": lambda: embedded(Gaussian(), Logistic(), step_size=lambda t: t**-0.5),
    "exact": lambda: KONS(Gaussian(), Logistic(), regularization=0.1),
    "sketched": lambda: SketchedKONS(
        Gaussian(), Squared(), regularization=0.1, policy=Leverage(floor=0.2), seed=2
    ),
    "objects": lambda: embedded(
        FunctionKernel(lambda x, z: float(np.exp(-np.sum((x - z) ** 2)))), Logistic()
    ),
}
patterns = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)


@functools.cache
def by_hand(name):
    """Scores before each row of one learner per class, each with targets -1 and +1 from row 0 on."""
    learners = [PATTERNS[name]() for _ in CLASSES]
    traces = [
        learner.advance(X, np.where(np.equal(Y, label), 1.0, -1.0))
        for learner, label in zip(learners, CLASSES, strict=True)
    ]
    later = np.stack([learner.predict(X) for learner in learners], axis=1)
    return np.stack([trace.prediction for trace in traces], axis=1), traces, later


def known(scores):
    """NaN where a class has not come yet."""
    scores = scores.copy()
    for k, label in enumerate(CLASSES):
        scores[: list(Y).index(label) + 1, k] = np.nan
    return scores


@effort.every_value(name=[*PATTERNS], block_size=[None, 1, 7])
def test_as_one_learner_per_class_by_hand(name, block_size):
    scores, traces, later = by_hand(name)
    model = Classifier(PATTERNS[name]())
    trace = model.advance(X, Y, block_size=block_size)
    assert model.classes == CLASSES
    close(trace.scores, known(scores))
    close(model.decision_function(X), later)
    expected = [
        CLASSES[k] if np.isfinite(s[k]) else None
        for s in known(scores)
        for k in [np.argmax(np.nan_to_num(s, nan=-9))]
    ]
    assert trace.prediction.tolist() == expected
    np.testing.assert_array_equal(trace.loss, np.array(expected) != Y)
    if name not in ("exact", "sketched"):
        np.testing.assert_array_equal(trace.kept, traces[0].kept)
        assert model.size == len(model.atoms)


@pytest.mark.parametrize("name", PATTERNS)
def test_row_by_row(name):
    scores, _, later = by_hand(name)
    model = Classifier(PATTERNS[name]())
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        best = model.predict_one(x)
        if t:
            row = known(scores)[t]
            assert best == CLASSES[int(np.nanargmax(row))]
        model.learn_one(x, y)
    close(model.decision_function(X), later)
    close(list(model.predict_proba_one(X[0]).values()), model.predict_proba(X[:1])[0])


# ---- classes at any time


def test_when_a_class_is_named_does_not_matter():
    """Bit for bit the same function as in a model that knew all classes from the start."""
    for name in ("logistic", "squared", "sketched", "own loss"):
        whole = Classifier(PATTERNS[name]())
        known = Classifier(PATTERNS[name](), CLASSES)
        late = whole.advance(X, Y, block_size=20)
        early = known.advance(X, Y, block_size=20)
        seen = np.isfinite(late.scores)
        np.testing.assert_array_equal(late.scores[seen], early.scores[seen])
        assert np.isfinite(early.scores).all()


@pytest.mark.parametrize("name", ["logistic", "own loss", "exact"])
def test_cuts_at_new_classes_do_not_matter(name):
    firsts = [list(Y).index(label) for label in CLASSES]
    expected = Classifier(PATTERNS[name]()).advance(X, Y)
    edges = sorted({0, *firsts, *(f + 1 for f in firsts), ROWS})
    model = Classifier(PATTERNS[name]())
    trace = Trace.concatenate([model.advance(X[a:b], Y[a:b]) for a, b in pairwise(edges)])
    close(trace.scores, expected.scores)
    assert trace.prediction.tolist() == expected.prediction.tolist()
    np.testing.assert_array_equal(trace.size, expected.size)


@pytest.mark.parametrize("block_size", [1, 13, None])
def test_replacement_is_one_for_all_classes(block_size):
    def model():
        return Classifier(
            EmbeddedKONS(
                Gaussian(0.5),
                Logistic(),
                regularization=0.1,
                second_order="hessian",
                policy=Dependence(when_full="replace"),
                max_atoms=8,
            )
        )

    whole, other = model(), model()
    expected = whole.advance(X, Y)
    trace = other.advance(X, Y, block_size=block_size)
    close(trace.scores, expected.scores)
    np.testing.assert_array_equal(other.atoms, whole.atoms)
    frozen = Classifier(EmbeddedKONS(Gaussian(0.5), Logistic(), max_atoms=8))
    frozen.advance(X, Y)
    assert not np.array_equal(whole.atoms, frozen.atoms)


def test_the_atom_that_no_class_misses_goes():
    """By brute force: leave each atom out, and see how far each class's function moves in norm."""
    pattern = functools.partial(
        embedded, Gaussian(0.7), Squared(), policy=Dependence(when_full="replace"), max_atoms=6
    )
    model = Classifier(pattern(), CLASSES)
    model.advance(X[:63], Y[:63])
    atoms = model.atoms
    K = np.exp(-np.sum((atoms[:, None] - atoms[None]) ** 2, axis=2) / (2 * 0.7**2))
    unclipped = Classifier.from_state({"learner": pattern(bound=1e6), "classes": CLASSES}, model.state())
    dual = np.linalg.solve(K, unclipped.decision_function(atoms)).T
    worst = []
    for j in range(6):
        rest = np.delete(np.arange(6), j)
        moved = []
        for theta in dual:
            left = np.linalg.solve(K[np.ix_(rest, rest)], K[rest] @ theta)
            change = theta.copy()
            change[rest] -= left
            moved.append(change @ K @ change)
        worst.append(max(moved))
    expected = atoms[int(np.argmin(worst))]
    model.advance(X[63:64], Y[63:64])
    assert not any((expected == x).all() for x in model.atoms)
    assert sum(any((a == x).all() for x in model.atoms) for a in atoms) == 5


def memory(state):
    """The numbers in a state."""
    if isinstance(state, np.ndarray):
        return state.size
    inner = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    return sum(map(memory, inner))


def test_opposite_problems_are_learned_once():
    two = Classifier(PATTERNS["logistic"]())
    two.advance(X[:80], Y[:80])
    np.testing.assert_array_equal(two.decision_function(X)[:, 0], -two.decision_function(X)[:, 1])
    closed = Classifier(PATTERNS["logistic"](), ["a", "b"])
    closed.advance(X[:80], Y[:80])
    three = Classifier(PATTERNS["logistic"]())
    three.advance(X[:80], ["c", *Y[1:80]])
    # One problem; the one of no class beside it; the one of no class and three.
    numbers = [memory(model.state()) for model in (closed, two, three)]
    assert numbers[2] - numbers[1] == 2 * (numbers[1] - numbers[0]) > 0
    np.testing.assert_array_equal(closed.decision_function(X), two.decision_function(X))


# ---- labels


@pytest.mark.parametrize(
    ("labels", "plain"),
    [
        ([True, False, True], [bool, bool, bool]),
        (np.array([True, False, True]), [bool] * 3),
        (np.array([3, 1, 3], dtype=np.int8), [int] * 3),
        (np.array([0.5, 1.5, 0.5], dtype=np.float32), [float] * 3),
        (np.array(["x", "y", "x"]), [str] * 3),
        (["x", 1, 2.5], [str, int, float]),
        ([("a", 1), ("b", 2), ("a", 1)], [tuple] * 3),
        ([b"x", b"y", b"x"], [bytes] * 3),
        (np.array([[1], [2], [1]]), [int] * 3),
        (pd.Series(["x", "y", "x"], index=[5, 6, 7]), [str] * 3),
        (pd.Series(["x", "y", "x"], dtype="category"), [str] * 3),
        (pl.Series([1, 2, 1]), [int] * 3),
        (pa.array(["x", "y", "x"]), [str] * 3),
        (pa.chunked_array([[1, 2], [1]]), [int] * 3),
        (np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="M8[ns]"), [np.datetime64] * 3),
        ((label for label in "xyx"), [str] * 3),
    ],
)
def test_labels_of_any_kind_become_plain_ones(labels, plain):
    model = Classifier(PATTERNS["squared"]())
    trace = model.advance(X[:3], labels)
    assert [type(label) for label in trace.prediction[1:]] == plain[:2]
    assert [type(label) for label in model.classes] == list(
        dict(zip(model.classes, plain, strict=False)).values()
    )
    one = Classifier(PATTERNS["squared"]())
    one.learn_one(X[0], np.str_("x"))
    one.learn_one(X[1], np.int64(3))
    assert [type(label) for label in one.classes] == [str, int]
    assert one.predict(X[:2]).dtype == object


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, None, 1], r"y\[1\] is None"),
        ([1.0, math.nan, 1.0], r"y\[1\] is nan"),
        (np.array([1.0, np.nan, 1.0]), r"y\[1\] is nan"),
        (pd.Series(["a", pd.NA, "b"]), r"y\[1\] is"),
        (np.array(["2024-01-01", "NaT", "2024-01-01"], dtype="M8[ns]"), r"y\[1\] is .*NaT"),
        (pa.array(["a", None, "b"]), r"y\[1\] is None"),
        ([[1], [2], [3]], "expected a label"),
        (np.ones((3, 2)), "expected one label per row"),
        ("abc", "expected a sequence of labels"),
        (["a", "b"], "2 label"),
        (7, "expected a sequence"),
    ],
)
def test_what_is_no_label(labels, message):
    model = Classifier(PATTERNS["squared"]())
    with pytest.raises(InputError, match=message):
        model.advance(X[:3], labels)
    assert model.classes == []


# ---- probabilities


def test_probabilities():
    scores = np.array([[0.5, -2.0, 3.0], [-1.0, -1.0, -1.5], [np.nan, 0.0, np.nan]])
    logistic = Classifier(embedded(Gaussian(), Logistic(), bound=4.0), CLASSES).probabilities(scores)
    p = 1 / (1 + np.exp(-scores))
    np.testing.assert_allclose(logistic[:2], p[:2] / p[:2].sum(axis=1, keepdims=True))
    squared = Classifier(embedded(Gaussian(), Squared()), CLASSES).probabilities(scores)
    np.testing.assert_allclose(squared[0], [0.75 / 1.75, 0.0, 1.0 / 1.75])
    np.testing.assert_allclose(squared[1], [1 / 3, 1 / 3, 1 / 3])  # all 0: alike
    for found in (logistic, squared):
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert found[2].tolist() == [0.0, 1.0, 0.0]


def test_scores_of_any_size_have_probabilities():
    model = Classifier(embedded(Gaussian(), Logistic(), bound=1e5), CLASSES[:2])
    found = model.probabilities(np.array([[1e5, -1e5], [-1e5, 1e5]]))
    np.testing.assert_array_equal(found, [[1.0, 0.0], [0.0, 1.0]])


# ---- before anything, and errors


def test_before_any_class():
    model = Classifier(PATTERNS["logistic"]())
    assert model.predict_one(X[0]) is None
    assert model.predict_proba_one(X[0]) == {}
    for verb in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(InputError, match="no class is known yet"):
            verb(X)
    declared = Classifier(PATTERNS["logistic"](), ["b", "a"])
    assert declared.predict_one(X[0]) == "b"
    assert declared.predict_proba(X[:1]).tolist() == [[0.5, 0.5]]


class Breaking(Gaussian):
    """Gaussian, until it is asked for a point beyond 5."""

    def evaluate(self, X, Z):
        K = super().evaluate(X, Z)
        K[X.max(axis=1) > 5.0] = np.nan
        return K

    squared_exponential_rate = None


@pytest.mark.parametrize("learner", [KONS, EmbeddedKONS])
def test_an_error_leaves_everything(learner):
    model = Classifier(learner(Breaking(), Logistic(), regularization=0.1))
    for rows in (slice(0, 40), slice(40, 87)):
        model.advance(X[rows], Y[rows])
        before, twin = model.state(), copy.deepcopy(model)
        broken = np.vstack([X[rows], [[9.0, 0.0]]])
        with pytest.raises(NumericalError):
            model.advance(broken, [*Y[rows], "new"])
        for label in ("a", "new"):
            with pytest.raises(NumericalError):
                model.learn_one(broken[-1], label)
        with pytest.raises(InputError):
            model.advance(X[:2], ["new", None])
        assert_identical(model.state(), before)
        assert model.classes == ["a", "b"]
        later = copy.deepcopy(model)
        trace, expected = (one.advance(X[90:150], Y[90:150]) for one in (later, twin))
        assert_identical(trace.columns, expected.columns)


def test_a_late_failure_takes_the_other_classes_back():
    """The last problem fails: those before it had learned the row already."""
    model = Classifier(PATTERNS["logistic"]())
    model.advance(X, Y)
    state = model.state()
    state["functions"]["quadratics"][-1]["marks"][:, GAINS] = 1e300  # q is then far below zero
    model = Classifier.from_state(model.parameters(), state)
    before = model.state()
    with pytest.raises(NumericalError):
        model.learn_one(X[0], "a")
    assert_identical(model.state(), before)


def test_a_closed_set_refuses_others():
    model = Classifier(PATTERNS["logistic"](), ["a", "b"])
    model.advance(X[:80], Y[:80])
    before = model.state()
    for refused in (lambda: model.advance(X, Y), lambda: model.learn_one(X[0], "c")):
        with pytest.raises(InputError, match=r"'c', which is not among"):
            refused()
    assert_identical(model.state(), before)
    assert model.parameters()["classes"] == ["a", "b"]


def test_patterns_that_cannot_be():
    taught = KONS(Gaussian(), Squared())
    taught.learn_one([0.0], 0.5)
    zero_one = CustomLoss(lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), targets=(0, 1))
    for wrong, message in (
        ("embedded", "expected a learner of one problem"),
        (taught, "learned 1 row"),
        (KONS(Gaussian(), Squared(), bound=0.5), "does not take the targets"),
        (KONS(Gaussian(), zero_one), "does not take the targets"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            Classifier(wrong)
    for classes in ([], ["a", "a"]):
        with pytest.raises(ConfigurationError, match="differ from each other"):
            Classifier(PATTERNS["logistic"](), classes)
    for classes in (3, "ab", (label for label in "ab")):
        with pytest.raises(ConfigurationError, match="expected a list of all labels"):
            Classifier(PATTERNS["logistic"](), classes)


def test_weights_and_looking():
    model = Classifier(PATTERNS["squared"]())
    weights = np.linspace(0.0, 2.0, ROWS)
    trace = model.advance(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(trace.loss, weights * (trace.prediction != Y))
    by_hand = PATTERNS["squared"]()
    expected = by_hand.advance(X, np.where(np.equal(Y, "b"), 1.0, -1.0), sample_weight=weights)
    close(trace.scores[8:, 1], expected.prediction[8:])
    close(model.novelty(X), by_hand.novelty(X))
    assert "'a', 'b', 'c'" in html.unescape(model._repr_html_())
    with pytest.raises(AttributeError, match="no dictionary"):
        Classifier(PATTERNS["exact"]()).atoms  # noqa: B018
    assert Trace.concatenate([trace, trace]).scores.shape == (2 * ROWS, 3)
