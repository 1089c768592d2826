"""The m x m recursion against dense matrices, its guard on q, and losses of the user's own."""

import copy

import numpy as np
import pytest

from contracts.learners import assert_identical
from kons import KONS, Gaussian, Logistic, SketchedKONS, Squared, SquaredHinge
from kons.core.entry import settle_inverse_form
from kons.core.ledger import Rules, new_ledger
from kons.core.replay import replay
from kons.errors import NumericalError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.policies import Leverage

ALPHA, BOUND, ETA = 0.1, 0.4, 0.3


def block(m=40, d=20, seed=0):
    """A block in the middle of a run: explicit features, the A and the weight vector u before it."""
    rng = np.random.default_rng(seed)
    Phi, past = rng.normal(size=(m, d)) / np.sqrt(d), rng.normal(size=(8, d))
    A = ALPHA * np.eye(d) + past.T @ past
    u = rng.normal(size=d)
    y = rng.uniform(-BOUND, BOUND, size=m)
    rows = new_ledger(m)
    rows["target"], rows["step_size"] = y, ETA
    rows["self_kernel"] = rows["norm2"] = (Phi**2).sum(1)
    return Phi, A, u, y, rows, np.trace(past @ past.T)


def totals(trace):
    return np.array([trace, 0.0, 0.0])


def run(derivatives, rules, Phi, A, u, rows, trace):
    M = Phi @ np.linalg.solve(A, Phi.T)
    assert replay(derivatives, rows, rules, Phi @ u, M, totals(trace)) == len(rows)
    return M


def test_the_recursion_equals_dense_recomputation():
    Phi, A0, u0, y, rows, trace = block()
    M = run(Squared().code, Rules(bound=BOUND, regularization=ALPHA), Phi, A0, u0, rows, trace)
    A, u = A0.copy(), u0.copy()
    for t, phi in enumerate(Phi):
        along = np.linalg.solve(A, phi)
        q, raw = phi @ along, phi @ u
        y_hat = np.clip(raw, -BOUND, BOUND)
        g = 2 * (y_hat - y[t])
        w = ETA * g**2
        # Row t of what is left of M is A^-1 as it stood when row t was met.
        np.testing.assert_allclose(M[t, t:], Phi[t:] @ along, rtol=1e-10, atol=1e-12)
        u = u - (raw - y_hat) / q * along
        A = A + w * np.outer(phi, phi)
        u = u - g * np.linalg.solve(A, phi)
        expected = {
            "prediction": y_hat,
            "overshoot": raw - y_hat,
            "slope": g,
            "weight": w,
            "feature_weight": w,
            "inverse_form": q,
            "step": (raw - y_hat) / q + g / (1 + w * q),
        }
        for name, value in expected.items():
            assert rows[t][name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert (np.abs(rows["overshoot"]) > 0).sum() > 5
    # Together the steps move u by -A0^-1 sum c phi, with A0 from before the block.
    moved = u0 - np.linalg.solve(A0, Phi.T @ rows["coefficient"])
    np.testing.assert_allclose(moved, u, rtol=0, atol=1e-11)
    assert rows["kept"].all()
    assert not rows["clipped"].any()


def test_the_lower_bound_on_q_is_exact():
    """One point with weight w: the inverse form of that point itself is k/(alpha + w k)."""
    alpha, w, k = 0.1, 3.0, 2.0
    q = k / alpha
    assert q / (1 + w * q) == pytest.approx(k / (alpha + w * k), rel=1e-15)


@pytest.mark.parametrize(
    ("variance", "verdict", "q_after"),
    [
        (0.5, 0, 5.0),
        (1e-3, 1, 2.0 / 6.1),  # below 2/(0.1 + 6): rounding
        (0.0, 1, 2.0 / 6.1),
        (-1e-12, 1, 2.0 / 6.1),
        (-1.9e-6, 1, 2.0 / 6.1),
        (-2.1e-6, 2, 2.0 / 6.1),  # below -1e-6 k(x,x): no rounding
        (-np.inf, 2, 2.0 / 6.1),
        (np.nan, 2, 2.0 / 6.1),
    ],
)
def test_q_is_raised_to_its_exact_lower_bound(variance, verdict, q_after):
    alpha, k, trace = 0.1, 2.0, 6.0
    M = np.array([[variance / alpha]])
    assert settle_inverse_form(M, 0, k, alpha, trace) == verdict
    assert M[0, 0] == pytest.approx(q_after, rel=1e-15)


@pytest.mark.parametrize("derivatives", [0, lambda p, y: (2 * (p - y), 2.0)], ids=["compiled", "python"])
def test_raised_forms_are_counted_and_used(derivatives):
    rows = new_ledger(3)
    rows["target"], rows["step_size"], rows["self_kernel"], rows["norm2"] = 0.5, ETA, 1.0, 1.0
    M = np.diag([1.0, -1e-9, 2.0])
    f, trace = np.array([0.0, 5.0, 0.0]), 4.0
    rules = Rules(bound=1.0, regularization=1.0)
    replay(derivatives, rows, rules, f, M, totals(trace))
    np.testing.assert_array_equal(rows["clipped"], [False, True, False])
    lowest = 1.0 / (1.0 + trace + rows["weight"][0])
    assert rows["inverse_form"][1] == pytest.approx(lowest, rel=1e-15)
    # The pull back from 5.0 to the bound divides by the raised q, never by 0.
    w = rows["weight"][1]
    expected = 4.0 / lowest + rows["slope"][1] / (1 + w * lowest)
    assert rows["step"][1] == pytest.approx(expected, rel=1e-14)


def test_the_trace_counts_the_clips():
    """At a duplicate with regularization 1e-17, k(x,x) - |v|^2 is nothing but rounding."""
    learner = KONS(Gaussian(), Squared(), regularization=1e-17)
    X = np.zeros((4, 1))
    trace = learner.advance(X, [1.0, -1.0, 1.0, -1.0], block_size=1)
    assert trace.rounding_clips > 0
    np.testing.assert_array_equal(trace.inverse_form > 0, True)
    assert np.isfinite(trace.prediction).all()
    distinct = KONS(Gaussian(), Squared()).advance(np.eye(4), [1.0, -1.0, 1.0, -1.0])
    assert distinct.rounding_clips == 0


# ---- a kernel that is none


def wild(x, z):
    """Symmetric, with a diagonal of 1, and not positive definite."""
    return 1.0 if x == z else 5.0


LEARNERS = {
    "KONS": lambda k, loss: KONS(k, loss),
    "KONS hessian": lambda k, loss: KONS(k, loss, second_order="hessian"),
    "SketchedKONS": lambda k, loss: SketchedKONS(k, loss, policy=Leverage(floor=1.0)),
}
OWN = CustomLoss(
    lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), lambda p, y: 2.0 + 0 * p, curvature=0.125
)


@pytest.mark.parametrize("block_size", [1, 3, None])
@pytest.mark.parametrize("loss", [Squared(), OWN], ids=["compiled", "python"])
@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_a_kernel_that_is_not_positive_definite_is_refused(make, loss, block_size):
    learner = make(FunctionKernel(wild), loss)
    learner.advance([0], [1.0])
    before = copy.deepcopy(learner.state())
    with pytest.raises(NumericalError, match=r"far below zero.*k\(x,x\) = 1.*not positive definite"):
        learner.advance([1, 2, 3, 4], [1.0, -1.0, 1.0, -1.0], block_size=block_size)
    assert_identical(learner.state(), before)


def test_learn_one_refuses_it_too():
    learner = KONS(FunctionKernel(wild), Squared())
    learner.learn_one(0, 1.0)
    before = copy.deepcopy(learner.state())
    with pytest.raises(NumericalError, match="positive definite"):
        learner.learn_one(1, 1.0)
    assert_identical(learner.state(), before)


# ---- losses of the user's own take the same path


def small(margin):
    return np.exp(-abs(margin))


CUSTOM = {
    Squared(): CustomLoss(
        lambda p, y: (p - y) ** 2,
        lambda p, y: 2.0 * (p - y),
        lambda p, y: 2.0 + 0.0 * p,
        lipschitz=Squared().lipschitz,
        curvature=Squared().curvature,
    ),
    Logistic(): CustomLoss(
        lambda p, y: np.maximum(-y * p, 0.0) + np.log1p(small(y * p)),
        lambda p, y: -y * np.where(y * p > 0, small(y * p), 1.0) / (1.0 + small(y * p)),
        lambda p, y: small(y * p) / (1.0 + small(y * p)) ** 2,
        lipschitz=Logistic().lipschitz,
        curvature=Logistic().curvature,
        targets=(-1, 1),
    ),
    SquaredHinge(): CustomLoss(
        lambda p, y: np.maximum(1.0 - y * p, 0.0) ** 2,
        lambda p, y: np.where(y * p < 1.0, 2.0 * y * (y * p - 1.0), 0.0),
        lambda p, y: np.where(y * p < 1.0, 2.0, 0.0),
        lipschitz=SquaredHinge().lipschitz,
        curvature=SquaredHinge().curvature,
        targets=(-1, 1),
    ),
}


@pytest.mark.parametrize("second_order", ["gradient", "hessian"])
@pytest.mark.parametrize("loss", CUSTOM, ids=repr)
def test_a_custom_loss_equals_the_compiled_one(loss, second_order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.sign(X[:, 0] * X[:, 1]) * (0.5 if isinstance(loss, Squared) else 1.0)
    projects = not (isinstance(loss, Squared) and second_order == "hessian")
    # A custom loss does not say that it is the squared one, so its Hessian projects: stay off the bound.
    bound = 0.5 if projects else 50.0
    arguments = {"bound": bound, "regularization": 0.1, "second_order": second_order}
    compiled = KONS(Gaussian(), loss, **arguments).advance(X, y, block_size=60)
    custom = KONS(Gaussian(), CUSTOM[loss], **arguments).advance(X, y, block_size=60)
    assert (np.abs(compiled.prediction) == 0.5).any() == projects
    for name, column in compiled.columns.items():
        np.testing.assert_allclose(custom.columns[name], column, rtol=1e-12, atol=1e-12, err_msg=name)
