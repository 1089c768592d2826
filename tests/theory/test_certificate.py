"""Regret certificates: they hold, they say what they are made of, and they refuse what is not proven."""

import dataclasses
import json
import math
import sys

import numpy as np
import pytest

import effort
from kons import KONS, KORS, EmbeddedKONS, Gaussian, Linear, Logistic, SketchedKONS, Squared, SquaredHinge
from kons import certify as certify_at_the_front_door
from kons.errors import ConfigurationError, InputError, MissingExtraError, NumericalError, TargetError
from kons.kernels import FunctionKernel
from kons.losses import CustomLoss
from kons.policies import Dependence, Fixed, Leverage
from kons.recipes import RECIPES, make
from kons.theory import RegretCertificate, certify, effective_dimension, hindsight, ridge_leverage_scores

# Each loss, kernel, bound and number of atoms in several; some questions are asked of fewer.
GAMES = effort.amount(30, 100)
FEW = effort.amount(15, 40)
CURVED = (Squared(), Logistic(), SquaredHinge())


def game(seed):
    """A random stream and the options that every learner takes; every loss, bound and kernel has its turn."""
    rng = np.random.default_rng(seed)
    loss = CURVED[seed % 3]
    bound, alpha = rng.choice([0.1, 0.3, 1.0, 2.0]), 10.0 ** rng.uniform(-2, 1)
    X = rng.normal(size=(rng.integers(5, 70), rng.integers(1, 4)))
    X[rng.random(len(X)) < 0.2] = X[0]
    score = bound * (2 * np.sin(2 * X[:, 0]) + rng.normal(size=len(X)))
    y = np.clip(score, -bound, bound) if isinstance(loss, Squared) else np.where(score > 0, 1.0, -1.0)
    kernel = [Gaussian(1.0), Gaussian(0.3), Linear()][rng.integers(3)]
    return (kernel, loss), {"bound": bound, "regularization": alpha}, X, y


def embedded(policy_of):
    def learner(parts, options, X, seed):
        hessian = seed % 2 and not isinstance(parts[1], Squared)
        return EmbeddedKONS(
            *parts,
            **options,
            policy=policy_of(X),
            max_atoms=1 + seed % 12,
            second_order="hessian" if hessian else "gradient",
            seed=seed,
        )

    return learner


def sketched(**choices):
    return lambda parts, options, X, seed: SketchedKONS(
        *parts, **options, policy=Leverage(0.5, floor=0.1), seed=seed, **choices
    )


LEARNERS = {
    "exact": lambda parts, options, X, seed: KONS(*parts, **options),
    "exact, hessian": lambda parts, options, X, seed: KONS(
        *parts, **options, second_order="gradient" if isinstance(parts[1], Squared) else "hessian"
    ),
    "exact, other steps": lambda parts, options, X, seed: KONS(
        *parts, **options, step_size=lambda t: (0.1 + seed % 5) / math.sqrt(t)
    ),
    "sketched, shared": sketched(),
    "sketched, independent": sketched(shared_coins=False),
    "sketched, weighted": sketched(weighted=True),
    "embedded, dependence": embedded(lambda X: Dependence(0.1)),
    "embedded, leverage": embedded(lambda X: Leverage(2.0)),
    "embedded, fixed": embedded(lambda X: Fixed(X[1:3] + 0.1)),
}
EMBEDDED = [name for name in LEARNERS if name.startswith("embedded")]


@pytest.fixture(scope="module")
def certificates():
    """Every learner's games, played once."""
    played = {}
    for name, build in LEARNERS.items():
        played[name] = []
        for seed in range(GAMES):
            parts, options, X, y = game(seed)
            played[name].append((certify(build(parts, options, X, seed), X, y), parts, options, X, y))
    return played


@pytest.mark.parametrize("name", LEARNERS)
def test_it_holds_in_every_game(certificates, name):
    clipped = 0
    for certificate, (_, loss), options, X, y in certificates[name]:
        assert certificate.holds
        assert certificate.cumulative_loss <= certificate.loss_bound
        assert certificate.rows == len(X)
        clipped += np.sum(np.abs(certificate.trace.prediction) == options["bound"])
        # What the best fixed function loses is never above what 0, a fixed function, loses and weighs.
        at_zero = np.sum(loss.value(np.zeros(len(y)), y))
        assert certificate.hindsight_loss <= at_zero * (1 + 1e-9)
    assert clipped > GAMES


@pytest.mark.parametrize("name", LEARNERS)
def test_its_parts_add_up(certificates, name):
    for certificate, _, options, _, _ in certificates[name]:
        c, trace = certificate, certificate.trace
        terms = options["regularization"] * c.hindsight_norm2 + c.gain_term + c.drift_term + c.span_term
        assert c.loss_bound == pytest.approx(c.hindsight_loss + terms / 2, rel=1e-9, abs=1e-12)
        assert c.regret == pytest.approx(c.cumulative_loss - c.hindsight_loss, abs=1e-12)
        assert c.cumulative_loss == pytest.approx(np.sum(trace.loss))
        assert c.gain_term == pytest.approx(trace.gain)
        assert c.over_time["loss"][-1] == pytest.approx(c.cumulative_loss)
        assert c.over_time["hindsight"][-1] == pytest.approx(c.hindsight_loss)
        assert c.over_time["bound"][-1] == pytest.approx(c.loss_bound)
        assert all(len(values) == c.rows for values in c.over_time.values())
        if name not in EMBEDDED:
            assert c.span_term == 0.0
        if name == "exact":  # eta = sigma
            assert c.drift_term == pytest.approx(0.0, abs=1e-9)
        if name in ("sketched, shared", "sketched, independent"):
            assert c.drift_term <= 1e-9


def test_the_comparator_is_the_best_within_the_bound(certificates):
    for certificate, parts, options, X, y in certificates["exact"][:FEW]:
        best = hindsight(*parts, X, y, **options)
        assert certificate.hindsight_loss == best.loss
        assert certificate.hindsight_norm2 == best.norm2
        assert certificate.hindsight_gap == best.gap


# ---- for every feasible function, not only for the best


def projections(kernel, atoms, sizes, X, anchors, a):
    """P_t f at x_t, f = sum_j a_j k(anchors_j, .), straight from the definition of a projection."""
    values = np.zeros(len(X))
    for t, size in enumerate(sizes):
        if size:
            D = atoms[:size]
            theta = np.linalg.lstsq(kernel.gram(D), kernel.gram(D, anchors) @ a, rcond=1e-13)[0]
            values[t] = kernel.gram(X[t : t + 1], D)[0] @ theta
    return values


@pytest.mark.parametrize("name", LEARNERS)
def test_the_bound_covers_every_feasible_function(certificates, name):
    rng = np.random.default_rng(0)
    for seed, (certificate, parts, options, X, y) in enumerate(certificates[name][:FEW]):
        (kernel, loss), trace = parts, certificate.trace
        bound, alpha = options["bound"], options["regularization"]
        learner = LEARNERS[name](parts, options, X, seed)
        learner.advance(X, y)
        for _ in range(3):
            anchors = rng.normal(size=(6, X.shape[1]))
            a = rng.normal(size=6)
            if name in EMBEDDED:
                inside = projections(kernel, learner.atoms, trace.size, X, anchors, a)
            else:
                inside = kernel.gram(X, anchors) @ a
            f = kernel.gram(X, anchors) @ a
            scale = rng.uniform(0.5, 1) * bound / max(np.abs(f).max(), np.abs(inside).max(), 1e-9)
            f, inside, a = f * scale, inside * scale, a * scale
            norm2 = a @ kernel.gram(anchors) @ a
            g, sigma = trace.slope, loss.curvature(bound)
            drift = (
                trace.weight * (trace.prediction - inside) ** 2 - sigma * g**2 * (trace.prediction - f) ** 2
            )
            span = 2 * np.sum(g * (inside - f))
            regret = np.sum(trace.loss) - np.sum(loss.value(f, y))
            total = alpha * norm2 + trace.gain + np.sum(drift) + span
            assert 2 * regret <= total + 1e-9 * (1 + abs(total))


def test_without_the_span_term_the_embedded_bound_is_false(certificates):
    false = [
        c.cumulative_loss > c.loss_bound - c.span_term / 2
        for name in EMBEDDED
        for c, *_ in certificates[name]
    ]
    assert sum(false) > GAMES // 5


def test_the_span_term_is_what_the_definition_says(certificates):
    for name in EMBEDDED:
        for seed, (certificate, parts, options, X, y) in enumerate(certificates[name][:FEW]):
            best = hindsight(*parts, X, y, **options)
            if best.norm2 == 0.0:
                continue
            factor = math.sqrt(certificate.hindsight_norm2 / best.norm2)
            learner = LEARNERS[name](parts, options, X, seed)
            learner.advance(X, y)
            dual = best.embedding.dual(best.coordinates)
            atoms = best.embedding.atoms.view
            inside = projections(parts[0], learner.atoms, certificate.trace.size, X, atoms, dual)
            assert np.abs(factor * inside).max() <= options["bound"] * (1 + 1e-6)
            span = 2 * factor * np.sum(certificate.trace.slope * (inside - best.values))
            assert certificate.span_term == pytest.approx(span, rel=1e-4, abs=1e-4)


def test_a_projection_beyond_the_bound_shrinks_the_comparator(certificates):
    shrunk = 0
    for name in EMBEDDED:
        for certificate, parts, options, X, y in certificates[name]:
            best = hindsight(*parts, X, y, **options)
            if certificate.hindsight_norm2 < best.norm2 * (1 - 1e-12):
                shrunk += 1
                assert certificate.hindsight_gap > best.gap
    assert shrunk > 0


# ---- closed forms


@pytest.mark.parametrize("name", ["exact", "sketched, shared", "sketched, independent"])
def test_the_theorems_cover_the_loss(certificates, name):
    for certificate, (kernel, loss), options, X, _ in certificates[name]:
        theorem = certificate.theorem_1 if name == "exact" else certificate.theorem_3
        assert certificate.cumulative_loss <= theorem
        bound, alpha = options["bound"], options["regularization"]
        sigma, L = loss.curvature(bound), loss.lipschitz(bound)
        d_eff = effective_dimension(kernel, X, alpha / (sigma * L**2))
        assert certificate.effective_dimension == pytest.approx(d_eff)
        growth = d_eff * (1 + math.log(1 + sigma * L**2 * np.sum(kernel.diagonal(X)) / alpha)) / sigma
        if name != "exact":
            policy = Leverage(0.5, floor=0.1)
            tau_min = certificate.trace.leverage_estimate.min() / policy.rho
            growth /= (1 - policy.distortion) * max(policy.floor, policy.beta * tau_min)
        expected = certificate.hindsight_loss + (alpha * certificate.hindsight_norm2 + growth) / 2
        assert theorem == pytest.approx(expected)
        if name == "exact":
            assert certificate.loss_bound <= theorem * (1 + 1e-9)


def test_the_theorems_are_told_only_of_the_learners_they_are_about(certificates):
    for name in LEARNERS:
        for certificate, (_, loss), *_ in certificates[name]:
            exact = name == "exact" or (name == "exact, hessian" and isinstance(loss, Squared))
            assert (certificate.theorem_1 is not None) == exact
            shared_or_not = name in ("sketched, shared", "sketched, independent")
            assert (certificate.theorem_3 is not None) == shared_or_not


def test_a_sketch_that_may_drop_anything_has_no_closed_form():
    X = np.ones((5, 1))
    learner = SketchedKONS(Linear(), Squared(), policy=Leverage(1.0))
    certificate = certify(learner, X, np.zeros(5))  # slopes of 0: tau_min is 0
    assert certificate.theorem_3 == math.inf
    assert certificate.to_dict()["theorem_3"] is None


# ---- what it refuses


@pytest.mark.parametrize(
    ("learner", "reason"),
    [
        (EmbeddedKONS(Linear(), Squared(), on_growth="restart"), "restart"),
        (EmbeddedKONS(Linear(), Squared(), policy=Dependence(when_full="replace")), "replace"),
        (EmbeddedKONS(Linear(), Squared(), forgetting=0.99), "forgetting"),
        (EmbeddedKONS(Linear(), Squared(), second_order="hessian"), "hessian"),
        (EmbeddedKONS(Linear(), Squared(), second_order="hessian", forward=True), "hessian"),
        (KONS(Linear(), Squared(), second_order="hessian"), "hessian"),
        (KORS(Linear()), "not KORS"),
        ("kons", "not str"),
        (KONS, "not the class KONS"),
    ],
    ids=["restart", "replace", "forgetting", "hessian", "forward", "ridge", "KORS", "str", "class"],
)
def test_what_has_no_proof_is_refused_by_name(learner, reason):
    with pytest.raises(ConfigurationError, match=reason):
        certify(learner, [[1.0]], [0.5])


def test_recipes():
    certified = {"con_kons", "kons", "nons_ald", "ons", "sketched", "sketched_ons"}
    _, _, X, y = game(3)
    y = np.clip(y, -1, 1)
    for name in RECIPES.keys() - {"auto"}:  # which is not made of a kernel and a loss
        learner = make(name, Gaussian(1.0), RECIPES[name].own_loss or Squared())
        if name in certified:
            assert certify(learner, X, y).holds
        else:
            with pytest.raises(ConfigurationError, match=r"no regret bound is proven|certify takes"):
                certify(learner, X, y)
    assert certify(make("embedded", Gaussian(1.0), Logistic()), X, np.sign(y + 1e-9)).holds


def test_a_broken_assumption_is_refused_or_reported():
    X, y = np.ones((4, 1)), [0.1, 0.2, 1.5, 0.0]
    for learner in (KONS(Linear(), Squared()), EmbeddedKONS(Linear(), Squared())):
        with pytest.raises(TargetError):
            certify(learner, X, y)
    # A loss that claims more curvature than it has: the run itself shows it.
    boastful = CustomLoss(
        lambda p, y: (p - y) ** 2, lambda p, y: 2 * (p - y), lambda p, y: 2.0, lipschitz=4.0, curvature=50.0
    )
    rng = np.random.default_rng(0)
    certificate = certify(KONS(Linear(), boastful), np.ones((200, 1)), rng.uniform(0.2, 1.0, 200))
    assert not certificate.holds
    assert certificate.cumulative_loss > certificate.loss_bound
    assert "EXCEEDED" in str(certificate)


def test_bad_rows_are_named():
    learner = KONS(Linear(), Squared())
    with pytest.raises(InputError, match="X"):
        certify(learner, [1.0, 2.0], [0.0, 0.0])
    with pytest.raises(InputError, match="expected one per row"):
        certify(learner, [[1.0], [2.0]], [0.0])
    with pytest.raises(InputError, match="no rows"):
        certify(learner, [], [])


# ---- corners


def test_the_learner_is_left_alone():
    parts, options, X, y = game(0)
    for name, build in LEARNERS.items():
        learner, other = (build(parts, options, X, 0) for _ in range(2))
        learner.advance(X, y)
        other.advance(X, y)
        again = certify(learner, X, y)
        assert learner.rows_seen == len(X), name
        np.testing.assert_array_equal(learner.predict(X), other.predict(X))
        # A fresh copy is run: what the learner has seen does not count.
        fresh = certify(build(parts, options, X, 0), X, y)
        assert again.to_dict() == fresh.to_dict()


@pytest.mark.parametrize("name", LEARNERS)
def test_equal_sums_count_as_held(name):
    # Points without features: every function is 0, and the bound is the loss itself.
    y = np.random.default_rng(1).uniform(-1, 1, 333)
    learner = LEARNERS[name]((Linear(), Squared()), {}, np.zeros((3, 1)) - 0.1, 4)
    certificate = certify(learner, np.zeros((333, 1)), y)
    assert certificate.holds
    assert certificate.loss_bound == pytest.approx(certificate.cumulative_loss)
    assert certificate.regret == pytest.approx(0.0, abs=1e-12)


def test_one_row_and_targets_of_zero():
    for learner in (KONS(Linear(), Squared()), EmbeddedKONS(Linear(), Squared())):
        one = certify(learner, [[1.0]], [1.0])
        assert one.holds
        assert one.rows == 1
        nothing = certify(learner, [[1.0], [2.0]], [0.0, 0.0])
        assert nothing.holds
        assert nothing.loss_bound == 0.0


def test_targets_and_points_in_other_clothes():
    _, _, X, y = game(0)
    y = np.clip(y, -1, 1)
    plain = certify(KONS(Linear(), Squared()), X, y)
    dressed = certify(KONS(Linear(), Squared()), X.tolist(), y.reshape(-1, 1))
    assert plain.to_dict() == dressed.to_dict()


def common_letters(x, z):
    return float(len(set(x) & set(z)))


@pytest.mark.parametrize("learner", [KONS, SketchedKONS, EmbeddedKONS])
def test_objects_even_from_an_iterator(learner):
    words = ["kernel", "online", "newton", "step", "kernel", "sketch"] * 4
    y = [1.0 if "n" in word else -1.0 for word in words]
    certificate = certify(learner(FunctionKernel(common_letters), Logistic(), bound=2.0), iter(words), y)
    assert certificate.holds
    assert certificate.rows == 24


@pytest.mark.parametrize("learner", [KONS, SketchedKONS, EmbeddedKONS])
def test_beyond_the_exact_sizes(learner):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = np.clip(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300), -1, 1)
    exact, span = (certify(learner(Gaussian(1.0), Squared()), X, y, exact_up_to=size) for size in (1000, 100))
    assert exact.holds
    assert span.holds
    assert span.cumulative_loss == exact.cumulative_loss
    assert span.hindsight_loss == pytest.approx(exact.hindsight_loss, rel=0.05)
    # The estimated dimension is told by its upper end.
    assert exact.effective_dimension <= span.effective_dimension <= 1.5 * exact.effective_dimension


# ---- for people


@pytest.fixture(scope="module")
def certificate():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(100, 1))
    return certify(KONS(Gaussian(0.5), Squared()), X, np.sin(3 * X).ravel())


@pytest.fixture(scope="module")
def flat():
    """A loss with a straight piece: no curvature, and so no effective dimension."""
    pinball = CustomLoss(
        lambda p, y: np.where(p > y, (p - y) ** 2, 0.0) + p,
        lambda p, y: np.where(p > y, 2 * (p - y), 0.0) + 1.0,
        lambda p, y: np.where(p > y, 2.0, 0.0),
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 1))
    return certify(KONS(Gaussian(0.5), pinball), X, np.sin(3 * X).ravel())


def test_a_loss_without_curvature(flat):
    assert flat.holds
    assert math.isnan(flat.effective_dimension)
    assert flat.theorem_1 is None
    assert flat.drift_term > 0.0
    for text in (str(flat), flat._repr_html_()):
        assert "nan" not in text
        assert "no curvature" in text


def test_to_dict_is_json(certificate, flat):
    for c in (certificate, flat):
        numbers = json.loads(json.dumps(c.to_dict(), allow_nan=False))
        names = {field.name for field in dataclasses.fields(RegretCertificate)} - {"trace", "over_time"}
        assert numbers.keys() == names
        assert numbers["cumulative_loss"] == c.cumulative_loss
        assert numbers["holds"] is True
    assert flat.to_dict()["effective_dimension"] is None


def test_text(certificate):
    text = str(certificate)
    lines = text.splitlines()
    assert lines[0].startswith("your loss")
    assert f"{certificate.cumulative_loss:.6g}" in lines[0]
    assert "proven for this run" in text
    assert "your data behaves as if it had" in text
    assert "Theorem 1" in text
    assert "Theorem 3" not in text
    assert "trace" not in repr(certificate)
    values = {name.strip(): value for name, value, _ in certificate.lines()}
    parts = sum(float(values[f"of which {part}"]) for part in ("ridge", "gain", "drift", "span"))
    assert float(values["best in hindsight"]) + parts == pytest.approx(certificate.loss_bound, rel=1e-4)


def test_html(certificate):
    html = certificate._repr_html_()
    assert html.startswith("<table>")
    assert html.count("<tr>") == len(certificate.lines())
    broken = dataclasses.replace(certificate, holds=False)
    assert "EXCEEDED" in broken._repr_html_()


def test_picture(certificate):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = certificate.plot()
    try:
        assert {line.get_label() for line in ax.lines} == {"loss", "hindsight", "bound"}
        assert ax.get_xlabel() == "rows"
        assert ax.get_ylabel() == "cumulative loss"
        assert ax.get_xscale() == "log"
        assert "below" in ax.get_title()
        assert {text.get_text() for text in ax.get_legend().get_texts()} == {"loss", "hindsight", "bound"}
        for line in ax.lines:
            np.testing.assert_array_equal(line.get_ydata(), certificate.over_time[line.get_label()])
        own = plt.figure().add_subplot()
        assert dataclasses.replace(certificate, holds=False).plot(own) is own
        assert "EXCEEDS" in own.get_title()
    finally:
        plt.close("all")


def test_without_matplotlib_the_extra_is_named(certificate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"kons\[plot\]"):
        certificate.plot()


def test_the_front_door():
    assert certify_at_the_front_door is certify


def test_the_best_is_told_where_the_span_needs_a_smaller_comparator():
    """One atom, labels the span cannot follow: the bound is against less than the best, and says so."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    y = np.sign(np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=300))
    options = {"bound": 1.0, "regularization": 0.01}
    embedded = certify(EmbeddedKONS(Gaussian(0.4), Squared(), max_atoms=20, **options), X, y)
    exact = certify(KONS(Gaussian(0.4), Squared(), **options), X, y)
    assert embedded.holds
    assert embedded.best_loss == pytest.approx(exact.best_loss, rel=1e-6)
    assert embedded.hindsight_loss > embedded.best_loss + 1.0
    assert "made smaller" in str(embedded)
    assert "made smaller" not in str(exact)


def test_a_learner_without_atoms_is_certified_too():
    certificate = certify(EmbeddedKONS(Linear(), Squared(), policy=Leverage(1e-6)), np.eye(2), [0.1, 0.2])
    assert certificate.holds


@pytest.mark.parametrize("own", [0.5, -1.0])
def test_a_kernel_that_is_not_positive_definite_has_no_best_function(own):
    kernel = FunctionKernel(lambda a, b: own if a == b else 1.0)
    with pytest.raises(NumericalError, match="not positive definite"):
        hindsight(kernel, Squared(), list("abc"), [0.5, -0.5, 0.2])


def test_the_rank_is_not_exceeded_where_alpha_is_rounding():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for scale in (1e6, 1e7, 1e20):
        assert 1.9 < float(effective_dimension(Linear(), X * scale, 1.0)) < 2.0 + 1e-9
        assert ridge_leverage_scores(Linear(), X * scale, 1.0).values.sum() < 2.0 + 1e-9


def test_fixed_atoms_are_a_copy():
    X = np.random.default_rng(0).normal(size=(50, 2))
    atoms = X[:5].copy()
    learner = EmbeddedKONS(Gaussian(), Squared(), policy=Fixed(atoms))
    expected = certify(learner, X, np.tanh(X[:, 0])).cumulative_loss
    atoms[:] = 9.0
    assert certify(learner, X, np.tanh(X[:, 0])).cumulative_loss == expected
