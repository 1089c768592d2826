"""Named algorithms are rows of choices: each against its naive twin, and the registry."""

import functools
import inspect
import re

import numpy as np
import pytest

import naive
from kons import (
    KONS,
    AutoKONS,
    EmbeddedKONS,
    Gaussian,
    Hinge,
    Linear,
    Logistic,
    SketchedKONS,
    Squared,
    SquaredHinge,
    recipes,
)
from kons.errors import ConfigurationError
from kons.kernels import Matern
from kons.learners.newton import NewtonLearner
from kons.losses import CustomLoss
from kons.policies import Dependence, Fixed, Leverage
from kons.recipes import RECIPES, Recipe, for_task, make

LOSSES = [Squared(), Logistic(), SquaredHinge()]
ROWS = 200
X = np.random.default_rng(0).uniform(-1.5, 1.5, size=(ROWS, 2))
K = naive.gaussian_gram(X, 0.8)
KERNEL = Gaussian(0.8)

close = functools.partial(np.testing.assert_allclose, rtol=0, atol=1e-9)


def targets(loss, bound=1.0):
    signal = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
    return np.clip(signal, -bound, bound) if isinstance(loss, Squared) else np.sign(signal)


def assert_like(learner, y, expected):
    trace = learner.advance(X, y)
    close(trace.prediction, expected.prediction)
    np.testing.assert_array_equal(trace.kept, expected.kept)
    np.testing.assert_array_equal(learner.atoms, X[expected.atoms])
    close(trace.weight, expected.weight)


# ---- the follow-ups by the paper's authors


@pytest.mark.parametrize("bound", [0.5, 1.0])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    ("recipe", "restart", "max_atoms"),
    [
        (recipes.pros_n_kons, True, 10**9),
        (recipes.con_kons, False, 10**9),
        (recipes.b_kons, True, 12),
    ],
)
def test_kors_decides_and_half_of_sigma_enters(recipe, restart, max_atoms, loss, bound):
    y = targets(loss, bound)
    sigma = naive.LOSSES[type(loss).__name__][1](bound)
    expected = naive.span_on_targets(
        K,
        range(ROWS),
        y,
        loss,
        bound=bound,
        alpha=0.1,
        eta=np.full(ROWS, sigma / 2),  # A += (sigma/2) g g^T
        coins={"beta": 0.4, "eps": 0.3, "gamma": 0.0},
        rng=np.random.default_rng(3),
        restart=restart,
        max_atoms=max_atoms,
    )
    cap = {"max_atoms": 12} if recipe is recipes.b_kons else {}
    learner = recipe(
        KERNEL, loss, bound=bound, regularization=0.1, oversampling=0.4, distortion=0.3, seed=3, **cap
    )
    assert learner.step_size(1) == pytest.approx(loss.curvature(bound) / 2)
    assert learner.step_size(1) == pytest.approx(sigma / 2)
    assert_like(learner, y, expected)
    assert len(expected.atoms) == 12 if cap else len(expected.atoms) > 12


def sampled_inverse_form(K, sample, importance, x, alpha):
    """phi^T (A^I)^-1 phi in the full feature space, A^I = alpha*I + sum of importance * phi phi^T."""
    k = K[sample, x]
    inside = K[np.ix_(sample, sample)] + alpha * np.diag(1.0 / np.array(importance, float))
    return (K[x, x] - k @ np.linalg.solve(inside, k)) / alpha


def pros_n_kons_as_published(loss, y, bound, alpha, beta, eps, seed):
    """Its own loop: the embedding of the row before, rebuilt and reset in the row after it changed."""
    slope, sigma = naive.LOSSES[type(loss).__name__]
    rng, sample, importance = np.random.default_rng(seed), [], []
    D, changed, predictions = [], False, []
    A, w = np.empty((0, 0)), np.empty(0)
    for t in range(ROWS):
        if changed:
            D = sorted(sample)
            A, w = alpha * np.eye(len(D)), np.zeros(len(D))
        # phi~ = Sigma^-1 U^T k_D(x), with K_D = U Sigma^2 U^T: another basis of the same span
        values, U = np.linalg.eigh(K[np.ix_(D, D)])
        phi = (U.T @ K[D, t]) / np.sqrt(values)
        raw = phi @ w
        y_hat = np.clip(raw, -bound, bound)
        predictions.append(y_hat)
        if raw != y_hat:
            direction = np.linalg.solve(A, phi)
            w = w - (raw - y_hat) / (phi @ direction) * direction
        g = slope(y_hat, y[t])
        A = A + sigma(bound) / 2 * g**2 * np.outer(phi, phi)
        w = w - g * np.linalg.solve(A, phi)
        r = sampled_inverse_form(K, sample, importance, t, alpha)
        p = min(beta * (1 + eps) * r / (1 + r), 1.0)
        changed = rng.random() < p
        if changed:
            sample.append(t)
            importance.append(1 / p)
    return np.array(predictions), sample


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_pros_n_kons_as_published(loss):
    """A new atom takes effect in the row after its own there, in its own here: with restarts, the same."""
    y = targets(loss)
    predictions, sample = pros_n_kons_as_published(loss, y, 1.0, 0.1, 0.3, 0.5, seed=6)
    learner = recipes.pros_n_kons(KERNEL, loss, regularization=0.1, oversampling=0.3, seed=6)
    close(learner.advance(X, y).prediction, predictions, atol=1e-8)
    np.testing.assert_array_equal(learner.atoms, X[sample])


def test_a_cap_is_all_that_b_kons_adds():
    y = targets(Squared())
    one = recipes.b_kons(KERNEL, Squared(), max_atoms=8).advance(X, y)
    other = recipes.pros_n_kons(KERNEL, Squared(), max_atoms=8).advance(X, y)
    np.testing.assert_array_equal(one.prediction, other.prediction)
    assert recipes.b_kons(KERNEL, Squared()).max_atoms == 100
    assert one.size[-1] == 8


@pytest.mark.parametrize("recipe", [recipes.pros_n_kons, recipes.con_kons, recipes.b_kons])
def test_no_curvature_no_step_size(recipe):
    absolute = CustomLoss(lambda p, y: abs(p - y), lambda p, y: np.sign(p - y), name="absolute")
    with pytest.raises(ConfigurationError, match=r"absolute.*no curvature.*step_size"):
        recipe(KERNEL, absolute)


# ---- NONS-ALD


@pytest.mark.parametrize("tolerance", [25 / ROWS, 1e-3])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_nons_ald(loss, tolerance):
    y = targets(loss)
    expected = naive.span_on_targets(
        K, range(ROWS), y, loss, bound=1.0, alpha=0.2, eta=np.full(ROWS, 1 / 8), tolerance=tolerance
    )
    learner = recipes.nons_ald(KERNEL, loss, regularization=0.2, tolerance=tolerance, step_size=1 / 8)
    assert_like(learner, y, expected)
    assert 1 < len(expected.atoms) < ROWS


def test_nons_ald_takes_the_step_size_of_the_loss():
    """The paper's 1/8 at C = 1 is sigma of the squared loss."""
    assert recipes.nons_ald(KERNEL, Squared()).step_size(1) == 1 / 8
    learner = recipes.nons_ald(KERNEL, Squared(), tolerance=0.01, max_atoms=5)
    assert learner.policy == Dependence(0.01)
    assert learner.on_growth == "carry"
    learner.advance(X, targets(Squared()))
    assert learner.size == 5


# ---- PKAWV


@pytest.mark.parametrize("alpha", [1.0, 0.02])
def test_pkawv_is_the_argmin_with_the_present_as_zero(alpha):
    """In a fixed span, by a direct solve in every row."""
    D, rest = list(range(0, 30, 3)), [i for i in range(60) if i % 3 or i >= 30]
    y = targets(Squared())[rest]
    learner = recipes.pkawv(KERNEL, bound=5.0, regularization=alpha, atoms=X[D])
    assert isinstance(learner.policy, Fixed)
    trace = learner.advance(X[rest], y)
    assert trace.prediction[0] == 0.0
    for t in range(len(rest)):
        direct = naive.ridge_with_the_present_as_zero(K, D, rest[:t], y[:t], rest[t], alpha / 2)
        assert trace.prediction[t] == pytest.approx(direct, abs=1e-8)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_pkawv_with_atoms_by_dependence(tolerance):
    y = targets(Squared(), 0.5)
    expected = naive.span_on_targets(
        K,
        range(ROWS),
        y,
        Squared(),
        bound=0.5,
        alpha=0.1,
        hessian=True,
        forward=True,
        tolerance=tolerance,
        max_atoms=200,
    )
    learner = recipes.pkawv(KERNEL, bound=0.5, regularization=0.1, tolerance=tolerance)
    assert_like(learner, y, expected)


def test_pkawv_in_the_whole_space_is_vovks_forecaster():
    """With a linear kernel the dictionary is all of it after three rows: ridge that has seen x_t as well."""
    rng = np.random.default_rng(1)
    features, y = rng.normal(size=(100, 3)), rng.uniform(-1, 1, size=100)
    trace = recipes.pkawv(Linear(), bound=9.0, regularization=0.4).advance(features, y)
    for t in range(3, 100):
        seen = features[: t + 1]
        A = seen.T @ seen + 0.2 * np.eye(3)
        direct = features[t] @ np.linalg.solve(A, features[:t].T @ y[:t])
        assert trace.prediction[t] == pytest.approx(direct, abs=1e-10)


# ---- the registry


OF_A_KERNEL = [name for name, recipe in RECIPES.items() if not recipe.in_raw_units]


@pytest.mark.parametrize("name", OF_A_KERNEL)
def test_every_name_makes_a_learner(name):
    recipe = RECIPES[name]
    loss = recipe.own_loss or Squared()
    learner = make(name, KERNEL, loss)
    assert isinstance(learner, NewtonLearner)
    assert (learner.kernel is KERNEL) is ("kernel" in recipe.accepts)
    assert learner.loss == loss
    # Perceptrons want labels, and fewer mistakes is what they get better at; linear learners what is linear.
    labels, linear = "regression" not in recipe.tasks, learner.kernel is not KERNEL
    y = 0.5 * X[:, 0] - 0.1 * X[:, 1] if linear else targets(Hinge() if labels else loss)
    rows = ROWS if learner.second_order is None else 70
    trace = learner.advance(X[:rows], y[:rows])
    losses = trace.prediction * y[:rows] <= 0.0 if labels else trace.loss
    assert np.isfinite(trace.prediction).all()
    assert losses[-30:].mean() < losses[:30].mean()
    given = {"bound": 2.0, "regularization": 0.3}
    given = {parameter: value for parameter, value in given.items() if parameter in recipe.parameters}
    other = recipe.made_of(KERNEL, loss, **given)
    assert {parameter: getattr(other, parameter) for parameter in given} == given
    assert "bound" in given


@pytest.mark.parametrize("name", RECIPES)
def test_descriptions_are_one_line(name):
    recipe = RECIPES[name]
    assert isinstance(recipe, Recipe)
    assert recipe.description == recipe.description.strip()
    assert "\n" not in recipe.description
    assert 10 < len(recipe.description) < 90
    assert recipe.cost
    assert recipe.avoid
    assert recipe.reference


def test_auto_is_made_for_a_task_only():
    with pytest.raises(ConfigurationError, match=r"'auto' is made for a task.*for_task\(\"regression\""):
        make("auto", KERNEL, Squared())


def test_descriptions_differ_and_the_default_is_first():
    assert len({recipe.description for recipe in RECIPES.values()}) == len(RECIPES)
    assert list(RECIPES) == ["auto", *sorted(RECIPES.keys() - {"auto"})]


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_accepted_is_what_for_task_takes(name):
    recipe = RECIPES[name]
    named = set(inspect.signature(for_task).parameters) - {"task", "name", "scale", "parameters"}
    assert len(set(recipe.accepts)) == len(recipe.accepts)
    assert set(recipe.parameters) < set(recipe.accepts)
    left_out = named - set(recipe.accepts) - {"seed"}
    without_kernel = {"kernel", "bandwidth"} | ({"loss"} if name == "vaw" else set())
    linear = name in ("adagrad", "adam", "ogd", "ons", "sketched_ons", "vaw")
    expected = {"warmup", "margin", "loss", "classes"} if recipe.in_raw_units else set()
    assert left_out == (without_kernel if linear else expected)
    for word in left_out & {"kernel", "bandwidth", "loss"} if linear else ():
        value = 1.0 if word == "bandwidth" else {"kernel": "gaussian", "loss": "squared"}[word]
        with pytest.raises(ConfigurationError, match=f"{word}={value!r} does not apply to {name!r}"):
            for_task("regression", name, **{word: value})


def test_the_docstring_has_a_row_for_every_entry():
    rows = re.findall(r"^``(\w+)`` ", recipes.__doc__, flags=re.MULTILINE)
    assert sorted(rows) == sorted(RECIPES)


@pytest.mark.parametrize("name", ["KONS", "pros-n-kons", "", None])
def test_an_unknown_name(name):
    with pytest.raises(ConfigurationError, match=r"there is no learner .*; there are auto, adagrad, adam"):
        make(name, KERNEL, Squared())


def test_what_the_names_stand_for():
    squared = functools.partial(make, kernel=KERNEL, loss=Squared())
    assert type(squared("kons")) is KONS
    assert squared("kons").second_order == "gradient"
    assert type(squared("ridge")) is KONS
    assert squared("ridge").second_order == "hessian"
    assert type(squared("sketched")) is SketchedKONS
    assert squared("embedded").second_order == "hessian"
    assert squared("embedded", second_order="gradient").second_order == "gradient"
    for name in ("pros_n_kons", "con_kons", "b_kons", "nons_ald", "pkawv", "embedded"):
        assert type(squared(name)) is EmbeddedKONS
    for name, on_growth in (("pros_n_kons", "restart"), ("con_kons", "carry"), ("b_kons", "restart")):
        assert squared(name).on_growth == on_growth
        assert isinstance(squared(name).policy, Leverage)
    assert squared("pkawv").forward


def test_pkawv_is_for_the_squared_loss():
    with pytest.raises(ConfigurationError, match=r"pkawv is for the squared loss, not Logistic\(\)"):
        make("pkawv", KERNEL, Logistic())
    assert RECIPES["pkawv"].make(KERNEL).forward


def test_parameters_reach_the_learner():
    learner = make("con_kons", KERNEL, Logistic(), oversampling=0.2, max_atoms=7, seed=5)
    assert learner.policy == Leverage(0.2, 0.5)
    assert (learner.max_atoms, learner.seed) == (7, 5)
    with pytest.raises(TypeError, match="nonsense"):
        make("con_kons", KERNEL, Logistic(), nonsense=1)


def test_public_names():
    for name in recipes.__all__:
        value = getattr(recipes, name)
        if inspect.isfunction(value):
            assert ">>>" in value.__doc__


# ---- learners for raw units


RAW = X * [1000.0, 1e-3] + [5.0, 7.0]
NUMBERS = 300.0 + 20.0 * np.sin(X[:, 0])
WORDS = np.where(X[:, 0] > 0.5, "right", np.where(X[:, 1] > 0.0, "up", "down"))


@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for name, recipe in RECIPES.items() for task in recipe.tasks]
)
def test_every_name_works_on_raw_units(name, task):
    y = NUMBERS if task == "regression" else WORDS
    model = for_task(task, name, seed=4, **({} if RECIPES[name].in_raw_units else {"warmup": 60}))
    trace = model.advance(RAW, y)
    late = trace.loss[-60:].mean()
    if task == "regression":
        assert late < NUMBERS.var()
        assert np.abs(model.predict(RAW) - 300.0).max() < 60.0
    else:
        assert late < 0.5
        assert set(model.classes) == {"right", "up", "down"}
    if RECIPES[name].in_raw_units:
        problem = model
    else:
        problem = model.learner if task == "regression" else model.learner.learner
    if hasattr(problem, "seed") and "seed" in RECIPES[name].parameters:
        assert problem.seed == 4


def test_what_for_task_chooses_by_itself():
    numbers, words = for_task("regression"), for_task("classification", seed=3)
    assert type(numbers) is type(words) is AutoKONS
    assert (numbers.task, words.task) == ("regression", "classification")
    assert numbers.parameters() == AutoKONS("regression").parameters()
    assert words.seed == 3


def test_what_is_given_to_auto_is_fixed():
    given = for_task("regression", kernel="matern", bandwidth=2.0, regularization=0.3, max_atoms=40, delay=2)
    found = given.parameters()
    assert (found["kernel"], found["bandwidth"], found["regularization"]) == (Matern("auto"), 2.0, 0.3)
    assert (found["max_atoms"], found["delay"]) == (40, 2)
    assert for_task("regression", kernel=Gaussian(2.0)).parameters()["kernel"] == Gaussian(2.0)
    assert for_task("regression", bandwidth=0.7).parameters()["kernel"] is None
    trace = for_task("regression", kernel="laplace", max_atoms=30).advance(RAW, NUMBERS)
    assert trace.loss[-60:].mean() < NUMBERS.var()


@pytest.mark.parametrize(
    "given",
    [
        {"scale": "none"},
        {"warmup": 500},
        {"margin": 0.5},
        {"loss": "squared"},
        {"loss": Squared()},
        {"classes": ["a", "b"], "task": "classification"},
    ],
    ids=repr,
)
def test_what_auto_does_without_is_refused(given):
    name, value = next(iter(given.items()))
    message = f"{name}={value!r} does not apply to 'auto', which finds units and classes by itself"
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        for_task(**({"task": "regression"} | given))


def test_what_for_task_chooses_for_embedded():
    for_embedded = functools.partial(for_task, name="embedded")
    numbers, words = for_embedded("regression").learner, for_embedded("classification").learner.learner
    for learner in (numbers, words):
        assert type(learner) is EmbeddedKONS
        assert learner.kernel == Gaussian("auto")
        assert (learner.second_order, learner.regularization) == ("hessian", 0.01)
    assert (numbers.loss, words.loss) == (Squared(), Logistic())
    assert (numbers.bound, words.bound) == (1.0, 8.0)
    assert for_task("classification", "kons").learner.learner.bound == 3.0
    assert for_embedded("classification", bound=2.0).learner.learner.bound == 2.0
    assert for_task("classification", "pkawv").learner.learner.loss == Squared()
    assert for_embedded("classification", loss="squared_hinge").learner.learner.loss == SquaredHinge()
    assert for_embedded("classification", classes=["a", "b"]).classes == ["a", "b"]
    assert not for_embedded("regression", scale="none").scale_features
    assert for_embedded("regression").warmup == 500
    assert for_embedded("regression", warmup=7, margin=0.5).parameters()["margin"] == 0.5


def test_kernels_by_name():
    assert for_task("regression", "embedded", kernel="matern", bandwidth=2.0).kernel == Matern(2.0)
    assert for_task("regression", "embedded", kernel="linear").kernel == Linear()
    assert (
        for_task("regression", "embedded", kernel=Gaussian("auto") + Linear(), bandwidth=3.0).kernel
        == Gaussian(3.0) + Linear()
    )
    assert for_task("regression", "embedded", kernel=Gaussian(2.0)).kernel == Gaussian(2.0)
    for name in recipes.KERNELS:
        assert (
            for_task("regression", "embedded", kernel=name, warmup=50).advance(RAW, NUMBERS).loss[-50:].mean()
            < 400.0
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "ranking"}, "task is 'ranking'"),
        ({"name": "nothing"}, "there is no learner 'nothing'"),
        ({"kernel": "nothing"}, "there is no kernel 'nothing'; there are gaussian"),
        ({"name": "embedded", "loss": "nothing"}, "there is no loss 'nothing'; there are hinge, logistic"),
        ({"bandwidth": 0.0}, "bandwidth is 0.0"),
        ({"bandwidth": "wide"}, "bandwidth is 'wide'"),
        ({"scale": True}, "scale is True"),
        ({"classes": ["a"]}, "classes are for classification"),
        ({"atoms": 3}, "'auto' takes no parameter 'atoms'; it takes effort, max_atoms"),
        ({"forgetting": 0.9}, "'auto' takes no parameter 'forgetting'"),
        ({"kernel": Gaussian(2.0), "bandwidth": 3.0}, "has a bandwidth"),
        ({"name": "embedded", "kernel": Gaussian(2.0), "bandwidth": 3.0}, "takes none: leave it out"),
        ({"name": "embedded", "kernel": "linear", "bandwidth": 3.0}, r"Linear\(\) takes none: leave it out"),
        (
            {"name": "embedded", "atoms": 3},
            "'embedded' takes no parameter 'atoms'; it takes bound, regularization",
        ),
        ({"name": "kons", "max_atoms": 3}, "'kons' takes no parameter 'max_atoms'"),
        (
            {"name": "embedded", "loss": Squared(), "task": "classification", "bound": 0.5},
            "does not take the targets",
        ),
    ],
)
def test_what_for_task_refuses(given, message):
    with pytest.raises(ConfigurationError, match=message):
        for_task(**({"task": "regression"} | given))


@pytest.mark.parametrize("recipe", [recipes.con_kons, recipes.b_kons, recipes.pros_n_kons])
def test_the_coins_are_those_of_the_paper_s_experiments(recipe):
    policy = recipe(Gaussian(1.0), Squared()).policy
    assert (policy.beta, policy.distortion, policy.floor) == (1.0, 0.5, 0.0)
