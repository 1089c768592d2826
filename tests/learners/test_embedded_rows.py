"""One row at a time: what predict_one remembers, learn_one may use only while it is true."""

import copy
import functools
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import kons
from contracts.learners import assert_identical
from kons import EmbeddedKONS, Gaussian, Laplace, Linear, Logistic, Squared
from kons.core import one_row
from kons.core.quadratic import Quadratic
from kons.errors import InputError, KonsError, NumericalError, TargetError
from kons.kernels import FunctionKernel, Kernel
from kons.policies import Dependence, Fixed, Leverage

ROWS = 150
rng = np.random.default_rng(0)
X = rng.uniform(-1.5, 1.5, size=(ROWS, 3))
Y = np.clip(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], -1, 1)

CHOICES = {
    "gradient": {},
    "hessian": {"second_order": "hessian"},
    "forward": {"second_order": "hessian", "forward": True},
    "restart": {"policy": Leverage(0.3), "on_growth": "restart"},
    "coin": {"policy": Leverage(0.3, floor=0.05)},
    "replace": {"policy": Dependence(1e-3, "replace"), "max_atoms": 6},
    "forgetting": {"forgetting": 0.99, "max_atoms": 10, "second_order": "hessian"},
    "fixed": {"policy": Fixed(X[:7] + 0.1)},
    "Laplace": {"kernel": Laplace(2.0), "max_atoms": 20},
}
choices = pytest.mark.parametrize("choices", CHOICES.values(), ids=CHOICES)


def make(kernel=Gaussian(0.9), **arguments):  # noqa: B008 - frozen
    return EmbeddedKONS(kernel, Squared(), **({"regularization": 0.1, "max_atoms": 30} | arguments))


def trained(rows=100, **arguments):
    learner = make(**arguments)
    for x, y in zip(X[:rows], Y[:rows], strict=True):
        learner.learn_one(x, y)
    return learner


def go_on_alike(learner, expected, exact=True):
    """The next rows, through both doors."""
    for one in (learner, expected):
        for x, y in zip(X[100:130], Y[100:130], strict=True):
            one.learn_one(x, y)
    compare = assert_identical if exact else functools.partial(np.testing.assert_allclose, atol=1e-10)
    compare(learner.predict(X), expected.predict(X))
    traces = [one.advance(X[130:], Y[130:]).prediction for one in (learner, expected)]
    compare(*traces)
    assert_identical(learner.atoms, expected.atoms)


# ---- what is remembered


@choices
def test_predicting_first_changes_nothing(choices):
    alone, both = make(**choices), make(**choices)
    for x, y in zip(X, Y, strict=True):
        alone.learn_one(x, y)
        assert both.predict_one(x) == both.predict_one(x)
        both.learn_one(x, y)
    np.testing.assert_allclose(both.predict(X), alone.predict(X), rtol=0, atol=1e-11)
    assert_identical(both.atoms, alone.atoms)
    assert both.size == alone.size
    assert both.log_determinant == pytest.approx(alone.log_determinant, rel=1e-11)


@choices
def test_the_row_loop_is_a_run_in_blocks(choices):
    learner, by_block = make(**choices), make(**choices)
    trace, predictions = by_block.advance(X, Y), []
    for x, y in zip(X, Y, strict=True):
        predictions.append(learner.predict_one(x))
        assert learner.learn_one(x, y) is None
    np.testing.assert_allclose(predictions, trace.prediction, rtol=0, atol=1e-10)
    assert_identical(learner.atoms, by_block.atoms)
    assert (learner.size, learner.rows_seen) == (by_block.size, ROWS)
    assert learner.log_determinant == pytest.approx(by_block.log_determinant, rel=1e-10)
    assert learner.online_effective_dimension == pytest.approx(by_block.online_effective_dimension)


@choices
def test_predict_one_is_predict_of_one(choices):
    learner = trained(**choices)
    many = learner.predict(X)
    np.testing.assert_allclose([learner.predict_one(x) for x in X], many, rtol=0, atol=1e-10)


@choices
def test_a_row_that_was_changed_between_the_two_calls(choices):
    learner, expected = trained(**choices), trained(**choices)
    row = X[100].copy()
    learner.predict_one(row)
    row[:] = X[101]
    learner.learn_one(row, Y[101])
    expected.learn_one(X[101].copy(), Y[101])
    go_on_alike(learner, expected, exact=False)


@choices
def test_another_row_between_the_two_calls(choices):
    learner, expected = trained(**choices), trained(**choices)
    learner.predict_one(X[100])
    learner.predict_one(X[101])
    learner.learn_one(X[100], Y[100])
    expected.learn_one(X[100], Y[100])
    go_on_alike(learner, expected, exact=False)


@choices
def test_many_learn_calls_for_one_prediction(choices):
    """A label that comes late: the coordinates are those of the dictionary of now."""
    learner, expected = trained(5, **choices), trained(5, **choices)
    learner.predict_one(X[100])
    for one in (learner, expected):
        for x, y in zip(X[5:100], Y[5:100], strict=True):
            one.learn_one(x, y)  # atoms come, or are replaced
        one.learn_one(X[100], Y[100])
    go_on_alike(learner, expected, exact=False)


@choices
def test_a_block_between_the_two_calls(choices):
    learner, expected = trained(5, **choices), trained(5, **choices)
    learner.predict_one(X[100])
    for one in (learner, expected):
        one.advance(X[5:100], Y[5:100])
        one.learn_one(X[100], Y[100])
    go_on_alike(learner, expected, exact=False)


def test_replacement_forgets_what_was_remembered():
    choices = CHOICES["replace"]
    learner, expected = trained(63, **choices), trained(63, **choices)
    before = learner.atoms
    learner.predict_one(X[100])
    for one in (learner, expected):
        one.learn_one(X[63], Y[63])  # the period ends
    assert (learner.atoms != before).any()
    assert learner.atoms.shape == before.shape
    for one in (learner, expected):
        one.learn_one(X[100], Y[100])
    go_on_alike(learner, expected, exact=False)


@choices
def test_an_error_between_the_two_calls(choices):
    learner, expected = trained(**choices), trained(**choices)
    learner.predict_one(X[100])
    for call in (
        lambda: learner.advance(X[100:], np.append(Y[101:], 5.0)),
        lambda: learner.learn_one(X[100], 5.0),
        lambda: learner.learn_one(X[100], np.nan),
        lambda: learner.predict_one([1.0]),
        lambda: learner.predict_one(np.array([1.0, np.nan, 0.0])),
    ):
        with pytest.raises(KonsError):
            call()
    learner.learn_one(X[100], Y[100])
    expected.learn_one(X[100], Y[100])
    go_on_alike(learner, expected, exact=False)


class Stumbling(Kernel):
    """A Gaussian that raises where a row is 9; the compiled row loop knows its rate."""

    squared_exponential_rate = 0.5

    def evaluate(self, points, others):
        if (np.asarray(points) == 9.0).all(axis=1).any():
            raise RuntimeError("stumbled")
        return Gaussian().evaluate(points, others)

    def evaluate_diagonal(self, points):
        return Gaussian().evaluate_diagonal(points)


@pytest.mark.parametrize("max_atoms", [8, 200])
def test_what_was_remembered_does_not_survive_a_run_that_was_undone(max_atoms):
    """New atoms came, an error took them away, others came: the old z belongs to none of them."""
    learner, expected = (make(kernel=Stumbling(), max_atoms=max_atoms) for _ in range(2))
    for one in (learner, expected):
        one.advance(X[:5], Y[:5])
    learner.predict_one(X[100])
    with pytest.raises(RuntimeError, match="stumbled"):
        learner.advance(np.vstack([X[5:90], np.full((1, 3), 9.0)]), np.append(Y[5:90], 0.0), block_size=10)
    assert_identical(learner.state(), expected.state())
    assert learner.predict_one(X[100]) == pytest.approx(expected.predict_one(X[100]), abs=1e-12)
    for one in (learner, expected):
        for x, y in zip(X[90:], Y[90:], strict=True):
            one.predict_one(x)
            one.learn_one(x, y)
    assert_identical(learner.state(), expected.state())


def test_copies_have_their_own_memory():
    learner = trained()
    learner.predict_one(X[100])
    twin = copy.deepcopy(learner)
    for x, y in zip(X[100:140], Y[100:140], strict=True):
        learner.learn_one(x, y)
    untouched = trained()
    for one in (twin, untouched):
        one.predict_one(X[100])
        one.learn_one(X[100], Y[100])
    assert_identical(twin.state(), untouched.state())


# ---- the forms of a row


def strided(x):
    wide = np.full(2 * len(x), np.nan)
    wide[::2] = x
    return wide[::2]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


FORMS = {
    "list": list,
    "tuple": tuple,
    "numbers of Python": lambda x: x.tolist(),
    "one row of a matrix": lambda x: x.reshape(1, -1),
    "not contiguous": strided,
    "column of a matrix": lambda x: np.tile(x, (4, 1)).T[:, 1],
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "read-only": read_only,
    "objects": lambda x: x.astype(object),
    "big-endian": lambda x: x.astype(">f8"),
    "long double": lambda x: x.astype(np.longdouble),
}


@pytest.mark.parametrize("kernel", [Gaussian(0.9), Laplace(2.0)], ids=repr)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_same_row_in_any_form(form, kernel):
    learner, expected = trained(20, kernel=kernel), trained(20, kernel=kernel)
    for x, y in zip(X[20:60], Y[20:60], strict=True):
        assert learner.predict_one(form(x)) == pytest.approx(expected.predict_one(x), abs=1e-12)
        learner.learn_one(form(x), y)
        expected.learn_one(x, y)
    go_on_alike(learner, expected, exact=False)


def test_single_precision_is_taken_at_its_value():
    learner, expected = trained(20), trained(20)
    low = X.astype(np.float32)
    for x, y in zip(low[20:60], Y[20:60], strict=True):
        assert learner.predict_one(x) == pytest.approx(expected.predict_one(x.astype(float)), abs=1e-12)
        learner.learn_one(x, y)
        expected.learn_one(x.astype(float), y)
    go_on_alike(learner, expected, exact=False)


@pytest.mark.parametrize("y", [1, True, np.float64(0.5), np.float32(0.5), np.int8(-1), np.array(0.25), [0.5]])
def test_the_target_in_any_form(y):
    learner, expected = trained(), trained()
    learner.learn_one(X[100], y)
    expected.learn_one(X[100], float(np.reshape(y, ())))
    assert_identical(learner.state(), expected.state())


def test_a_prediction_is_a_float_within_the_bound():
    learner = trained(bound=1.0)
    for x in X:
        found = learner.predict_one(x)
        assert type(found) is float
        assert -1.0 <= found <= 1.0


def test_the_same_memory_over_and_over():
    learner, expected, row = make(), make(), np.empty(3)
    for x, y in zip(X, Y, strict=True):
        row[:] = x
        learner.predict_one(row)
        learner.learn_one(row, y)
        expected.predict_one(x.copy())
        expected.learn_one(x.copy(), y)
    row[:] = np.nan
    assert_identical(learner.state(), expected.state())


# ---- bad rows leave no trace


BAD_ROWS = {
    "NaN": (np.array([1.0, np.nan, 0.0]), r"x\[1\] is nan"),
    "inf": (np.array([np.inf, 1.0, 0.0]), r"x\[0\] is inf"),
    "-inf": (np.array([1.0, 0.0, -np.inf]), r"x\[2\] is -inf"),
    "all inf": (np.full(3, np.inf), r"x\[0\] is inf"),
    "NaN in a list": ([1.0, float("nan"), 0.0], r"x\[1\] is nan"),
    "narrow": (np.ones(2), r"2 feature\(s\).*seen 3"),
    "wide": (np.ones(4), r"4 feature\(s\).*seen 3"),
    "two rows": (np.ones((2, 3)), r"expected one row"),
    "a column": (np.ones((3, 1)), r"expected one row"),
    "empty": (np.empty(0), r"no features"),
    "text": ("abc", r"expected numbers"),
    "None": (None, r"x is None"),
}


@choices
def test_bad_rows(choices):
    learner, expected = trained(**choices), trained(**choices)
    before = copy.deepcopy(learner.state())
    calls = [learner.predict_one, lambda row: learner.learn_one(row, 0.5)]
    if learner.second_order == "gradient":
        calls.append(lambda row: learner.learn_slope(row, 0.5))
    for name, (row, match) in BAD_ROWS.items():
        for call in calls:
            with pytest.raises(InputError, match=match):
                call(row)
            assert_identical(learner.state(), before, name)
    go_on_alike(learner, expected)


@pytest.mark.parametrize("atoms", [1, 8, 40])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 17])
def test_infinity_in_any_place(width, atoms):
    """exp(-inf) is a harmless 0: the compiled loop must not take it for a point far away."""
    points = np.random.default_rng(1).normal(size=(50, width))
    learner = EmbeddedKONS(Gaussian(width**0.5), Squared(), max_atoms=atoms)
    learner.advance(points, np.sign(points[:, 0]))
    for place in range(width):
        for value in (np.inf, -np.inf, np.nan):
            row = points[0].copy()
            row[place] = value
            with pytest.raises(InputError, match=rf"x\[{place}\] is"):
                learner.predict_one(row)
            with pytest.raises(InputError, match=rf"x\[{place}\] is"):
                learner.learn_one(row, 1.0)


def test_a_column_is_no_row_even_if_its_numbers_are_remembered():
    learner = trained()
    learner.predict_one(X[100])
    with pytest.raises(InputError, match="expected one row"):
        learner.learn_one(X[100].reshape(3, 1), Y[100])


BAD_TARGETS = [
    (np.nan, InputError),
    (np.inf, InputError),
    (None, InputError),
    ("a", InputError),
    ([1.0, 2.0], InputError),
    (1.5, TargetError),
    (-7, TargetError),
]


@choices
def test_bad_targets(choices):
    learner, expected = trained(**choices), trained(**choices)
    before = copy.deepcopy(learner.state())
    for predicts in (False, True):
        for y, error in BAD_TARGETS:
            if predicts:
                for one in (learner, expected):
                    one.predict_one(X[100])
            with pytest.raises(error):
                learner.learn_one(X[100], y)
            assert_identical(learner.state(), before, f"after {y!r}")
    go_on_alike(learner, expected)


@pytest.mark.parametrize("y", [0, 0.5, 2.0])
def test_labels(y):
    learner = EmbeddedKONS(Gaussian(), Logistic())
    learner.learn_one([1.0], 1)
    before = copy.deepcopy(learner.state())
    with pytest.raises(TargetError, match=r"-1 or \+1"):
        learner.learn_one([2.0], y)
    assert_identical(learner.state(), before)


def test_a_kernel_that_is_not_positive_definite_leaves_no_trace():
    """KORS's coins notice it; the coin of the row that failed is put back."""

    def indefinite(x, z):
        return 1.0 if x == z else 3.0 * (abs(x - z) == 1)

    learner = EmbeddedKONS(FunctionKernel(indefinite), Squared(), policy=Leverage(floor=1.0))
    learner.learn_one(0, 1.0)
    before = copy.deepcopy(learner.state())
    with pytest.raises(NumericalError, match="not positive definite"):
        learner.advance([1], [1.0])
    assert_identical(learner.state(), before)
    with pytest.raises(NumericalError, match="not positive definite"):
        learner.learn_one(1, 1.0)
    assert_identical(learner.state(), before)


def test_a_kernel_that_raises_during_a_replacement_leaves_no_trace():
    broken = False

    def closeness(x, z):
        if broken and x in "abcd" and z in "abcd":  # between atoms
            raise RuntimeError("stumbled")
        return float(x == z) + 0.1

    learner = EmbeddedKONS(
        FunctionKernel(closeness), Squared(), policy=Dependence(when_full="replace"), max_atoms=2
    )
    for t in range(63):
        learner.learn_one("abcd"[t % 4], (-0.5) ** (t % 2))
    before = copy.deepcopy(learner.state())
    broken = True
    with pytest.raises(RuntimeError, match="stumbled"):
        learner.learn_one("new", 0.5)  # the period ends: the dictionary's own matrix is asked for
    broken = False
    assert_identical(learner.state(), before)


@pytest.mark.parametrize("step_size", [lambda t: 0.1 if t <= 100 else -1.0])
def test_a_step_size_that_breaks(step_size):
    learner = trained(step_size=step_size)
    before = copy.deepcopy(learner.state())
    learner.predict_one(X[100])
    with pytest.raises(KonsError, match=r"step_size\(101\)"):
        learner.learn_one(X[100], Y[100])
    assert_identical(learner.state(), before)


# ---- growth


def test_growth_through_learn_one():
    learner = make(max_atoms=12)
    sizes = []
    for x, y in zip(X, Y, strict=True):
        learner.predict_one(x)
        learner.learn_one(x, y)
        sizes.append(learner.size)
        assert len(learner.atoms) == learner.size
    assert sizes[:3] == [1, 2, 3]
    assert sizes[-1] == max(sizes) == 12
    assert np.all(np.diff(sizes) >= 0)
    kept = np.flatnonzero(np.diff([0, *sizes]))
    assert_identical(learner.atoms, X[kept])
    found = EmbeddedKONS(Gaussian(0.9), Squared(), regularization=0.1, max_atoms=12).advance(X, Y)
    np.testing.assert_array_equal(np.flatnonzero(found.kept), kept)


def test_a_point_sampled_but_dependent_adds_no_atom():
    """Its coin comes up, and it lies in the span: KORS's sample has it, the dictionary does not."""
    learner, by_block = (EmbeddedKONS(Gaussian(), Squared(), policy=Leverage(floor=1.0)) for _ in range(2))
    points = np.repeat(X[:40], 2, axis=0)
    for x in points:
        learner.learn_one(x, 0.5)
    by_block.advance(points, np.full(80, 0.5))
    assert learner.size == by_block.size == 40
    np.testing.assert_allclose(learner.predict(X), by_block.predict(X), rtol=0, atol=1e-9)
    # The sample is what the coins of later rows depend on.
    found, expected = (one.advance(X[40:80], Y[40:80]) for one in (learner, by_block))
    np.testing.assert_allclose(found.leverage_estimate, expected.leverage_estimate, rtol=0, atol=1e-9)
    single = EmbeddedKONS(Gaussian(), Squared(), policy=Leverage(floor=1.0))
    single.advance(X[:40], np.full(40, 0.5))
    once = single.advance(X[40:80], Y[40:80])
    assert (found.leverage_estimate < once.leverage_estimate - 1e-3).any()


def test_the_first_row_gives_the_width():
    learner = EmbeddedKONS(Linear(), Squared())
    assert learner.predict_one([1.0, 2.0]) == 0.0  # only looked at
    learner.learn_one([1.0, 2.0, 3.0], 0.5)
    with pytest.raises(InputError, match=r"2 feature\(s\).*seen 3"):
        learner.predict_one([1.0, 2.0])


@pytest.mark.parametrize("x", [np.zeros(3), [0.0, 0.0, 0.0]], ids=["array", "list"])
def test_the_first_row_that_is_learned_gives_the_width(x, tmp_path):
    learner = make()
    with pytest.raises(TargetError):
        learner.learn_one(x, 7.0)
    kons.save(learner, tmp_path / "model")
    assert kons.load(tmp_path / "model").size == 0
    assert learner.predict_one(np.zeros(5)) == 0.0
    learner.learn_one(np.ones(5), 0.5)
    learner.learn_one(np.zeros(5), 0.5)
    assert learner.atoms.tolist() == [[1.0] * 5, [0.0] * 5]


@pytest.mark.usefixtures("used_memory")
def test_atoms_in_memory_that_had_other_numbers_before():
    learner = trained(rows=20)
    assert np.isfinite(learner.predict(X)).all()


def test_the_zero_vector_first():
    learner = EmbeddedKONS(Linear(), Squared())
    learner.learn_one(np.zeros(3), 0.5)
    assert (learner.size, learner.rows_seen) == (0, 1)
    assert learner.predict_one(np.zeros(3)) == 0.0
    learner.learn_one(np.ones(3), 0.5)
    assert learner.size == 1
    assert learner.predict_one(np.ones(3)) > 0.0


def test_across_a_panel():
    """The compiled row loop is for one panel of 256 atoms; behind it the rows go on alike."""
    many = np.random.default_rng(3).normal(size=(300, 8)) * 3
    y = np.sign(many[:, 0])
    learner = EmbeddedKONS(Gaussian(1.0), Squared(), regularization=0.1, max_atoms=280)
    by_block = EmbeddedKONS(Gaussian(1.0), Squared(), regularization=0.1, max_atoms=280)
    found = []
    for x, target in zip(many, y, strict=True):
        found.append(learner.predict_one(x))
        learner.learn_one(x, target)
    trace = by_block.advance(many, y)
    assert learner.size == by_block.size == 280
    np.testing.assert_allclose(found, trace.prediction, rtol=0, atol=1e-10)


@pytest.mark.parametrize("features", [1, 3, 200])
def test_every_row_an_atom(features):
    # More features than a period has rows; across the period's end; the slots run out.
    points = np.random.default_rng(features).uniform(-40.0, 40.0, size=(110, features))
    one_by_one, resumed, blocks = (make(Gaussian(0.05), max_atoms=80) for _ in range(3))
    predictions = []
    for i, (x, y) in enumerate(zip(points, Y, strict=False)):
        predictions.append(one_by_one.predict_one(x))
        for learner in (one_by_one, resumed):
            learner.learn_one(x, y)
        if i % 9 == 0:
            resumed = EmbeddedKONS.from_state(resumed.parameters(), resumed.state())
    trace = blocks.advance(points, Y[:110])
    assert one_by_one.size == 80
    np.testing.assert_allclose(predictions, trace.prediction, atol=1e-12)
    assert_identical(one_by_one.atoms, points[trace.kept])
    assert_identical(one_by_one.state(), resumed.state())
    assert_identical(
        one_by_one.advance(points, Y[:110]).prediction, resumed.advance(points, Y[:110]).prediction
    )


def test_ctrl_c_behind_the_compiled_loop(monkeypatch):
    """Python hears of a signal when the loop returns: the row is not counted, and nobody counts it later."""
    interrupted, expected = trained(), trained()
    learn = one_row.learn

    def learn_then_hear(*arguments):
        learn(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(one_row, "learn", learn_then_hear)
    with pytest.raises(KeyboardInterrupt):
        interrupted.learn_one(X[140], 1.0)
    monkeypatch.undo()
    assert interrupted.rows_seen == expected.rows_seen
    go_on_alike(interrupted, expected, exact=False)


def test_ctrl_c_at_the_end_of_a_period_waits_for_it(monkeypatch):
    stopped, expected = trained(), trained()
    while expected.rows_seen % 64 != 63:
        for learner in (stopped, expected):
            learner.learn_one(X[0], Y[0])
    end = Quadratic.end_period_of_rows

    def hear_then_end(self):
        signal.raise_signal(signal.SIGINT)
        end(self)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(Quadratic, "end_period_of_rows", hear_then_end)
        with pytest.raises(KeyboardInterrupt):
            stopped.learn_one(X[1], Y[1])
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    expected.learn_one(X[1], Y[1])
    go_on_alike(stopped, expected, exact=True)


def test_an_error_from_outside_at_the_end_of_a_period_is_the_end_and_no_crash(monkeypatch):
    learner = trained()
    while learner.rows_seen % 64 != 63:
        learner.learn_one(X[0], Y[0])

    def breaks(self):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Quadratic, "end_period_of_rows", breaks)
        with pytest.raises(MemoryError):
            learner.learn_one(X[1], Y[1])
    for x in X[:80]:
        with pytest.raises(NumericalError, match="stopped in the midst of a row"):
            learner.learn_one(x, 0.0)


def test_other_threads_predict_in_memory_of_their_own():
    learner = trained()
    expected = [learner.predict_one(x) for x in X]
    learner.predict_one(X[0])
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(learner.predict_one, X)) == expected
    learner.learn_one(X[0], Y[0])  # what this thread found is still there
    twin = trained()
    twin.learn_one(X[0], Y[0])
    assert_identical(learner.predict(X), twin.predict(X))
