"""AutoKONS as a whole: any cut, any pause, targets that are hidden, rows that are odd."""

import copy
import functools
import itertools

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import effort
from auto_experts import experts, features_seen
from contracts.learners import assert_identical
from kons.errors import ConfigurationError, FileError, InputError, TargetError
from kons.kernels import Gaussian, Linear, Matern
from kons.learners.auto import AutoKONS
from kons.learners.auto.spec import STEADY

# Of one target, in a stored row: from its end.
TARGET_AT, WEIGHT_AT = -4, -3

ROWS = 530  # past the decision at 512


def series(rows=ROWS, seed=0):
    """A wave under noise, with a feature that matters, one that does not, and one that is constant."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 500, rows), rng.normal(size=rows), np.full(rows, 3.0)])
    y = 1e3 * np.sin(X[:, 0] / 80) + 300 * np.sin(np.arange(rows) / 5) + rng.normal(size=rows)
    return X, y


def labels_of(y):
    return np.where(y > 300, "high", np.where(y < -300, "low", "middle"))


def learned(task, **parameters):
    """A model of one's own that has learned the series."""
    model, *others = learned_once(task, **parameters)
    return copy.deepcopy(model), *others


@functools.cache
def learned_once(task, **parameters):
    X, y = series()
    y = y if task == "regression" else labels_of(y)
    model = AutoKONS(task, max_atoms=40, **parameters)
    return model, model.advance(X, y), X, y


@effort.every_value(task=["regression", "classification"], delay=[0, 3])
def test_cuts_do_not_matter(task, delay):
    _, whole, X, y = learned(task, delay=delay)
    model = AutoKONS(task, max_atoms=40, delay=delay)
    cuts = [0, 1, 2, 9, 10, 64, 65, 130, 400, ROWS]
    parts = [model.advance(X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)]
    together = type(whole).concatenate(parts)
    assert together.expert.tolist() == whole.expert.tolist()
    assert together.size.tolist() == whole.size.tolist()
    if task == "regression":
        np.testing.assert_allclose(together.prediction, whole.prediction, rtol=1e-6, atol=1e-4)
    else:
        np.testing.assert_allclose(together.scores, whole.scores, rtol=1e-6, atol=1e-6)


@effort.every_value(task=["regression", "classification"], delay=[0, 5])
def test_goes_on_bit_for_bit_from_a_saved_state(task, delay):
    X, y = series()
    y = y if task == "regression" else labels_of(y)
    model = AutoKONS(task, max_atoms=40, delay=delay)
    model.advance(X[:333], y[:333])
    twin = AutoKONS.from_state(model.parameters(), model.state())
    assert_identical(twin.state(), model.state())
    a, b = model.advance(X[333:], y[333:]), twin.advance(X[333:], y[333:])
    assert a.loss.tolist() == b.loss.tolist()
    assert_identical(twin.state(), model.state())


@pytest.mark.parametrize("experts", [1, 2, 5, 14])
def test_any_number_of_experts_goes_on_from_a_saved_state(experts):
    X, y = series(400)
    model = AutoKONS(max_atoms=10, experts=experts)
    for a, b in itertools.pairwise(range(0, 401, 50)):
        model.advance(X[a:b], y[a:b])
        twin = AutoKONS.from_state(model.parameters(), model.state())
        assert_identical(twin.state(), model.state())


def test_targets_that_are_not_known_yet_change_nothing():
    X, y = series(400)
    other = y.copy()
    other[300:] += 1e4
    first, second = (AutoKONS(max_atoms=40, delay=7).advance(X, t).prediction for t in (y, other))
    assert first[:308].tolist() == second[:308].tolist()
    assert first[308] != second[308]


def test_a_long_delay_under_noise_that_persists_does_not_cost_more_than_the_mean():
    # On average over streams: such noise looks like a change, and in one of eight a takeover costs 4 %.
    ratios = []
    for seed in effort.some(range(8), 0, 1):
        rng = np.random.default_rng(seed)
        X, noise = rng.uniform(-3, 3, size=(2000, 2)), rng.normal(size=2000)
        for t in range(1, 2000):
            noise[t] += 0.97 * noise[t - 1]
        y, delay = 10.0 * np.sin(X[:, 0]) + 4.0 * noise, 50
        means = np.cumsum(y) / np.arange(1.0, 2001.0)
        late = np.concatenate([np.zeros(delay + 1), means])[:2000]
        loss = AutoKONS(max_atoms=40, delay=delay).advance(X, y).loss
        ratios.append(loss.mean() / np.mean((late - y) ** 2))
    assert np.mean(ratios) < 0.97


@pytest.mark.parametrize("late", effort.some([1100, 2300], 1100))
def test_a_class_that_comes_later_in_a_block_changes_nothing_before(late):
    """Not even in the logistic experts, which begin at row 1024."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(late + 1, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=late + 1) > 0, "a", "b").astype(object)
    other = y.copy()
    other[late] = "c"
    first, second = (AutoKONS("classification", max_atoms=20).advance(X, t) for t in (y, other))
    np.testing.assert_array_equal(first.scores[: late + 1], second.scores[: late + 1, :2])
    assert np.isnan(second.scores[: late + 1, 2]).all()


def test_a_class_whose_target_is_hidden_is_not_named():
    rng = np.random.default_rng(0)
    model = AutoKONS("classification", max_atoms=20, delay=7)
    for _ in range(7):
        model.learn_one(rng.normal(size=2), "b")
        assert model.predict_one([0.0, 0.0]) is None
        assert model.predict_proba_one([0.0, 0.0]) == {}
    model.learn_one([0.0, 0.0], "a")
    assert model.predict_one([0.0, 0.0]) == "b"
    assert model.predict_proba_one([0.0, 0.0]) == {"b": 1.0}
    assert model.predict_proba([[0.0, 0.0]], recent_targets=True).tolist() == [[1.0, 0.0]]
    assert model.predict([[0.0, 0.0]]).tolist() == ["b"]


def test_beats_the_mean_and_finds_the_feature_that_matters():
    model, trace, _, y = learned("regression")
    assert trace.loss[-200:].mean() < 0.12 * y.var()  # the wave in time alone is 0.08 of it
    assert int(np.argmax(model.relevances)) == 0
    assert sum(model.shares.values()) == pytest.approx(1.0, abs=0.3)
    trace = learned("classification")[1]
    assert trace.loss[-200:].mean() < 0.15


def test_an_error_leaves_no_trace():
    model, _, X, y = learned("regression")
    before = model.state()
    with pytest.raises(InputError):
        model.advance(np.where(np.arange(ROWS)[:, None] == 500, np.inf, X), y)
    gap = np.where(np.arange(ROWS)[:, None] == ROWS - 9, np.nan, X)
    with pytest.raises(InputError):  # a gap is taken; behind it a target is refused
        model.advance(gap, np.where(np.arange(ROWS) == ROWS - 2, np.nan, y))
    assert_identical(model.state(), before)


def test_predictions_change_nothing_and_agree_with_what_comes_next():
    model, _, X, y = learned("regression")
    before = model.state()
    ahead = model.predict_one(X[5])
    assert model.predict(X[5:6], recent_targets=True)[0] == pytest.approx(ahead)
    assert np.isfinite(model.predict(X)).all()
    assert_identical(model.state(), before)
    assert model.advance(X[5:6], y[5:6]).prediction[0] == pytest.approx(ahead, rel=1e-6, abs=1e-4)


def test_probabilities_and_new_classes():
    model, trace, X, _ = learned("classification")
    p = model.predict_proba(X[:20])
    assert p.shape == (20, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    model.advance(X[:5], ["new"] * 5)
    assert model.classes[-1] == "new"
    assert model.predict_proba(X[:2]).shape == (2, 4)
    assert trace.scores.shape == (ROWS, 3)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, np.where(np.arange(ROWS) < 350, y, 1000 * y)),
        lambda X, y: (np.where(np.arange(ROWS)[:, None] < 350, X, X[350]), y),
        lambda X, y: (X, np.where((np.arange(ROWS) > 300) & (np.arange(ROWS) < 310), 1e9, y)),
        lambda X, y: (X, np.full(ROWS, 5.0)),
        lambda X, y: (np.ones((ROWS, 2)), y),
        lambda X, y: (X[:, :1], y),
        lambda X, y: (np.random.default_rng(0).normal(size=(ROWS, 90)), y),
        lambda X, y: (X[:2], y[:2]),
    ],
    ids=[
        "jump",
        "frozen",
        "burst",
        "constant target",
        "constant features",
        "one feature",
        "wide",
        "two rows",
    ],
)
def test_odd_streams_stay_within_the_range_seen(change):
    X, y = change(*series())
    prediction = AutoKONS(max_atoms=40).advance(X, y).prediction
    assert np.isfinite(prediction).all()
    room = 0.06 * np.ptp(y)
    assert prediction.min() >= min(y.min(), 0.0) - room
    assert prediction.max() <= max(y.max(), 0.0) + room


def test_what_is_given_is_kept(monkeypatch):
    X, y = series(300)
    asked = set()
    for kernel in (Gaussian, Linear, Matern):
        honest = kernel.evaluate_into

        def asks(self, X, Z, out, honest=honest):
            asked.add(self)
            honest(self, X, Z, out)

        monkeypatch.setattr(kernel, "evaluate_into", asks)
    model = AutoKONS(max_atoms=30, kernel=Matern("auto"), regularization=0.5)
    model.advance(X, y)
    assert {type(kernel) for kernel in asked} == {Matern}
    assert {expert["regularization"] for expert in experts(model).values()} == {0.5}
    asked.clear()
    AutoKONS(max_atoms=30, bandwidth=0.7).advance(X, y)
    assert {type(kernel) for kernel in asked} == {Gaussian, Linear}
    assert {kernel.bandwidth for kernel in asked if isinstance(kernel, Gaussian)} == {0.7}
    with pytest.raises(ConfigurationError, match="bandwidth"):
        AutoKONS(kernel=Gaussian(1.0), bandwidth=2.0)
    with pytest.raises(ConfigurationError, match="task"):
        AutoKONS("ranking")


def test_a_weight_beyond_all_measure_is_refused():
    model = AutoKONS()
    with pytest.raises(InputError, match="sample_weight"):
        model.advance([[1.0], [2.0]], [1.0, 2.0], sample_weight=[1.0, 1e307])
    with pytest.raises(
        TargetError, match=r"y\[1\] is -1e[+]149, whose square times the sample weight 1e[+]06 is"
    ):
        model.advance([[1.0], [2.0]], [1e150, -1e149], sample_weight=[1.0, 1e6])
    assert model.rows_seen == 0


def test_rows_with_gaps_take_their_weights_by_place_too():
    X, y, weights = np.ones((6, 2)), np.arange(6.0), np.arange(1.0, 7.0)
    X[3, 1] = np.nan
    found, expected = AutoKONS().advance(X, y, weights), AutoKONS().advance(X, y, sample_weight=weights)
    np.testing.assert_array_equal(found.loss, expected.loss)


def test_weighted_rows_of_one_class_are_learned_alike_whether_or_not_another_is_to_come():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(90, 2)), rng.uniform(0.0, 10.0, size=90)
    y = np.where(np.arange(90) < 80, 1, X[:, 0] > 0.0)
    whole = AutoKONS("classification", max_atoms=12).advance(X, y, sample_weight=weights)
    first = AutoKONS("classification", max_atoms=12).advance(X[:80], y[:80], sample_weight=weights[:80])
    # The mean of ones is 1 but for rounding, and rounding is nothing to learn.
    np.testing.assert_allclose(first.scores[1:, 0], whole.scores[1:80, 0], atol=1e-6)


def test_a_weight_that_is_hardly_a_number_is_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 7.0
    tiny, none = (np.where(np.arange(300) < 150, weight, 1.0) for weight in (5e-324, 0.0))
    found, expected = (
        AutoKONS(max_atoms=20).advance(X, y, sample_weight=weights).prediction for weights in (tiny, none)
    )
    np.testing.assert_array_equal(found, expected)
    assert np.mean((found - y)[250:] ** 2) < 0.5 * y.var()


def test_seeds_repeat():
    X, y = series(270)
    first, second, other = (
        AutoKONS(max_atoms=40, seed=seed).advance(X, y).prediction.tolist() for seed in (3, 3, 4)
    )
    assert first == second != other


@pytest.mark.parametrize("delay", effort.some([0, 3], 3))
def test_new_features_are_taken_up_and_cost_nothing_before(delay):
    X, y = series(1450)
    narrow = AutoKONS(max_atoms=40, delay=delay)
    narrow.advance(X[:700, :1], y[:700])
    wide = copy.deepcopy(narrow)
    extra = 1e4 + 1e3 * np.random.default_rng(1).normal(size=1450)
    target = y + extra
    wide.widen(2, samples=np.column_stack([extra[:9], np.zeros(9)]))
    columns = np.column_stack([X[:, 0], extra, np.zeros(1450)])
    # Until views are refitted, or experts that begin anew take over, nobody looks at the new columns.
    first = [m.advance(Z[700:750], target[700:750]) for m, Z in ((narrow, X[:, :1]), (wide, columns))]
    assert first[0].prediction.tolist() == first[1].prediction.tolist()
    assert wide.relevances[1] == 0.0
    twin = AutoKONS.from_state(wide.parameters(), wide.state())
    later = [m.advance(Z[750:], target[750:]) for m, Z in ((narrow, X[:, :1]), (wide, columns))]
    assert later[1].loss[-250:].mean() < 0.3 * later[0].loss[-250:].mean()
    assert wide.relevances[1] > wide.relevances[2]
    assert twin.advance(columns[750:], target[750:]).loss.tolist() == later[1].loss.tolist()


def test_new_features_before_any_row_and_bad_samples():
    model = AutoKONS()
    model.widen(2)
    model.learn_one([1.0, 2.0, 3.0], 4.0)
    before = model.state()
    with pytest.raises(InputError, match="samples"):
        model.widen(1, samples=[[1.0, 2.0]])
    with pytest.raises(ConfigurationError, match="columns"):
        model.widen(0)
    assert_identical(model.state(), before)


def test_a_forged_state_of_waiting_rows_is_refused():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = AutoKONS(delay=5, max_atoms=20)
    model.advance(X, X[:, 0])
    for name in ("numbers", "rows", "F", "centres", "predictions"):
        state = model.state()
        waiting = state["targets"][0]["pending"]["records"]
        waiting[name] = waiting[name][:2]
        with pytest.raises(FileError, match="shape"):
            AutoKONS.from_state(model.parameters(), state)


def forgeries(target):
    """Every way of changing one number or entry of a state that would lead outside an array."""
    yield lambda d: d["pending"]["records"]["rows"].__setitem__((0, TARGET_AT), 9.0)
    yield lambda d: d["pending"]["records"]["numbers"].__setitem__(0, 0.5)
    yield lambda d: d["pending"].__setitem__("asked", 3)
    yield lambda d: d.__setitem__("withheld", d["withheld"] + 1.0)
    yield lambda d: d["last_targets"].__setitem__("tail", d["last_targets"]["tail"][:1])
    for forge in forged_ensembles(target["drift"]["current"]):
        yield lambda d, forge=forge: forge(d["drift"]["current"])
    for forge in forged_selections(target["drift"]["current"]["selection"]):
        yield lambda d, forge=forge: forge(d["drift"]["current"]["selection"])


def forged_ensembles(ensemble):
    yield lambda e: e["reservoir"]["kept"].__setitem__((3, TARGET_AT), 7.0)
    yield lambda e: e["reservoir"]["times"].__setitem__(3, 4.0)
    yield lambda e: e["reservoir"]["last"].__setitem__((1, TARGET_AT), 0.5)
    yield lambda e: e["reservoir"]["last"].__setitem__((1, WEIGHT_AT), -1.0)
    yield lambda e: e.__setitem__("rows", e["rows"] - 1)
    yield lambda e: e.__setitem__("known_classes", 9)
    yield lambda e: e.__setitem__("layout", 99)
    yield lambda e: e["cuts"].append(1)
    yield lambda e: e["cuts"].__setitem__(0, -1)
    yield lambda e: e["cuts"].__setitem__(0, True)


def forged_selections(selection):
    yield lambda e: e.__setitem__("leader", 99)
    yield lambda e: e.__setitem__("leader", 1)
    yield lambda e: e["specs"].__setitem__(0, ("cubic", *e["specs"][0][1:]))
    yield lambda e: e["specs"].__setitem__(0, e["specs"][0][:-1])
    yield lambda e: e["specs"].pop()
    yield lambda e: e["better"].__setitem__(0, "best")
    yield lambda e: e["feature_maps"].__setitem__(0, (False, "robust", 99))
    yield lambda e: e["feature_maps"].__setitem__(0, (True, *e["feature_maps"][0][1:]))
    yield lambda e: e["all_feature_maps"][0].__setitem__("features", 1)
    yield lambda e: e["all_feature_maps"][0].__setitem__("flags", 99)
    yield lambda e: e["stacking"].__setitem__("weights", np.zeros(1))
    for place, expert in enumerate(selection["experts"]):
        if expert is not None:
            yield lambda e, i=place: e["experts"][i].__setitem__("feature_map", 99)
            yield lambda e, i=place: e["experts"][i].__setitem__("K", np.zeros((1, 1)))


def test_a_forged_state_is_refused():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = AutoKONS("classification", delay=5, max_atoms=20)
    model.advance(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    for forge in forgeries(model.state()["targets"][0]):
        state = model.state()
        forge(state["targets"][0])
        with pytest.raises(FileError):
            AutoKONS.from_state(model.parameters(), state)


def test_rows_in_no_order_need_no_memory_and_their_share_is_given_on():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(2100, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=2100)
    model = AutoKONS(max_atoms=40)
    model.advance(X, y)
    # But the one that tells when others would be of use.
    of_series = [name for name in model.shares if "memory" in name or "last targets" in name]
    assert of_series == ["gaussian, features, memory 300"]
    assert len(experts(model)) == len(model.shares) - 3  # all have begun
    atoms = {name: len(expert["atoms"]) for name, expert in experts(model).items() if "atoms" in expert}
    atoms = {name: size for name, size in atoms.items() if not name.startswith("linear")}
    assert next(iter(atoms)) == STEADY.name
    # To those whose votes count; all together never cost more than at the start.
    assert atoms.pop(of_series[0]) == 20
    assert min(atoms.values()) == 40 < max(atoms.values()) <= 70
    assert sum(size**2 for size in atoms.values()) <= 12 * 40**2
    assert model.size <= model.experts * model.max_atoms


@pytest.mark.parametrize("rows", effort.some([500, 1500], 500))
def test_features_that_come_late_are_seen_by_all_experts(rows):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(rows + 700, 3)))
    y = np.sin(np.log(X[:, 0])) + 0.3 * np.clip(np.log(X[:, 2]), -2.0, 2.0) + 0.1 * rng.normal(size=len(X))
    model = AutoKONS(max_atoms=40)
    model.advance(X[:rows, :2], y[:rows])
    model.widen(1)
    model.advance(X[rows:], y[rows:])
    assert set(features_seen(model).values()) == {3}


@pytest.mark.parametrize("delay", [0, 3])
def test_leverages_do_not_depend_on_cuts(delay):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 2)), np.cumsum(rng.normal(size=400))
    weights = rng.choice([0.0, 0.01, 1.0, 3.0], size=400)
    whole = AutoKONS(max_atoms=20, delay=delay).advance(X, y, sample_weight=weights)
    model = AutoKONS(max_atoms=20, delay=delay)
    parts = [
        model.advance(X[i : i + 23], y[i : i + 23], sample_weight=weights[i : i + 23])
        for i in range(0, 400, 23)
    ]
    np.testing.assert_array_equal(np.concatenate([part.expert for part in parts]), whole.expert)
    leverages = np.concatenate([part.leverage for part in parts])
    assert leverages.max() > 0.1
    np.testing.assert_allclose(leverages, whole.leverage, rtol=1e-5, atol=1e-9)


def test_a_series_keeps_its_memory():
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=2100))
    model = AutoKONS(max_atoms=40)
    model.advance(rng.normal(size=(2100, 2)), y)
    assert any("memory" in name for name in model.shares)
    assert max(len(expert.get("atoms", [])) for expert in experts(model).values()) == 40


def test_of_classes_some_experts_use_the_logistic_loss():
    model, _, X, _ = learned("classification")
    model.advance(*[np.tile(part, (2, 1)[: part.ndim]) for part in (X, labels_of(series()[1]))])
    assert any("logistic" in name for name in model.shares)
    assert not any("logistic" in name for name in learned("regression")[0].shares)


@pytest.mark.parametrize("at", effort.some([0, 5, 63, 400], 400))
def test_one_wild_target_is_soon_forgotten(at):
    X, y = series()
    wild = y.copy()
    wild[at] = 1e9
    clean, spoiled = (AutoKONS(max_atoms=40).advance(X, target).loss[450:].mean() for target in (y, wild))
    assert spoiled < 3.0 * clean


def test_a_level_that_comes_and_goes_is_followed_at_once():
    rng = np.random.default_rng(0)
    outage = np.arange(1500) % 300 >= 280  # a twentieth of the time, far away
    y = np.where(outage, 24.0, 102.0) + 0.3 * rng.normal(size=1500)
    last = np.mean((y[1:] - y[:-1]) ** 2)
    model = AutoKONS(max_atoms=40)
    assert model.advance(rng.normal(size=(1500, 2)), y).loss[1:].mean() < 1.3 * last
    assert model.shares["last target"] > 0.2


def test_weights_that_drown_the_priors_are_refused():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    y = np.sign(X[:, 0])
    model = AutoKONS(max_atoms=20)
    found = model.advance(X, y, sample_weight=np.full(400, 1e12)).prediction
    assert np.mean((found - y)[200:] ** 2) < 0.2
    before = model.predict(X[:5])
    for weight in (1e17, 1e60):  # worse than the mean, and no numbers
        with pytest.raises(InputError, match=r"at most 1e[+]12: divide all of them by the largest"):
            model.advance(X, y, sample_weight=np.full(400, weight))
    np.testing.assert_array_equal(model.predict(X[:5]), before)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_constant_targets_that_become_huge_stay_numbers(weight):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.where(np.arange(400) < 100, 3.0, 1e9 * rng.normal(size=400))
    weights = np.where(np.arange(400) < 100, weight, 1.0)
    assert np.isfinite(AutoKONS(max_atoms=20).advance(X, y, sample_weight=weights).prediction).all()


@effort.every_value(task=["regression", "classification"], delay=[0, 3])
def test_rows_that_follow_have_the_targets_before_them_as_last_ones(task, delay):
    """As a model whose last targets are these says it, which has learned nothing more.

    The last row but one weighs nothing: its target is none, also while it is kept back.
    """
    model, _, X, y = learned(task, delay=delay)
    model.advance(X[:3], y[:3], sample_weight=[1.0, 0.0, 1.0])
    before = model.state()
    y, delay = np.append(y, y[[0, 2]]), max(delay - 1, 0)
    state, new = model.state(), X[:9] + 1.0
    known = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    targets = np.where(known, y[40:49], np.nan if task == "regression" else None)
    following = model.following()
    last = np.concatenate([following.before(targets[:4]), following.before(targets[4:])])
    found = (model.predict if task == "regression" else model.predict_proba)(new, recent_targets=last)
    past = [*y, *y[40:49][known]]
    for i in range(len(new)):
        behind = len(y) + int(np.count_nonzero(known[:i])) - delay
        latest = past[behind - 2 : behind][::-1]
        codes = latest if task == "regression" else [float(model.classes.index(label)) for label in latest]
        state["targets"][0]["last_targets"]["tail"] = np.array(codes)
        twin = AutoKONS.from_state(model.parameters(), copy.deepcopy(state))
        ask = twin.predict if task == "regression" else twin.predict_proba
        np.testing.assert_allclose(found[i], ask(new[i : i + 1], recent_targets=True)[0], rtol=1e-9)
    assert_identical(model.state(), before)


def test_what_recent_targets_may_be():
    model, _, X, _ = learned("regression")
    with pytest.raises(InputError, match=r"recent_targets has shape \(3, 1\), expected True, False or"):
        model.predict(X[:3], recent_targets=np.zeros((3, 1)))
    with pytest.raises(ConfigurationError, match="recent_targets is 'yes', expected True or False"):
        model.predict(X[:3], recent_targets="yes")
    several = AutoKONS(max_atoms=4)
    several.advance(X[:9], X[:9, :2])
    with pytest.raises(ConfigurationError, match="several targets cannot be followed"):
        several.following()


def test_a_rare_class_is_ranked_alike_early_and_late():
    """Of 2,500 rows some 18 are of the class; refereed by scikit-learn, over all rows from the 500th on.

    Logits linear in the scores, which are all near 0, would tell when a row came: areas of 0.80 and 0.63.
    """
    areas = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2500, 3))
        rare = rng.random(2500) < 1.0 / (1.0 + np.exp(7.5 - 2.0 * X[:, 0] + 1.5 * X[:, 1]))
        model = AutoKONS("classification")
        trace = model.advance(X, rare.tolist())
        p = model.probabilities(trace.scores)[500:, model.classes.index(True)]
        y = rare[500:]
        areas.append(roc_auc_score(y, p))
        assert log_loss(y, p) < 0.92 * log_loss(y, np.full(len(y), rare.mean()))
    assert np.mean(areas) > 0.85


def test_a_gap_may_come_before_any_row():
    model = AutoKONS()
    assert model.predict_one(np.array([1.0, np.nan])) == model.predict_one([1.0, 0.0]) == 0.0


def test_classes_of_rows_with_gaps():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0.0, "a", "b").astype(object)
    X[100, 1] = np.nan
    y[200] = "late"
    blocks, rows = AutoKONS("classification", max_atoms=20), AutoKONS("classification", max_atoms=20)
    blocks.advance(X, y)
    for x, label in zip(X, y, strict=True):
        rows.learn_one(x, label)
    assert rows.classes == blocks.classes
    for verb in ("decision_function", "predict_proba"):
        found, expected = (getattr(model, verb)(X[90:110]) for model in (rows, blocks))
        np.testing.assert_allclose(found, expected, atol=1e-6)
    shares = blocks.predict_proba(X[90:110])
    assert shares.shape == (20, 3)
    assert blocks.predict(X[90:110]).tolist() == [blocks.classes[k] for k in shares.argmax(axis=1)]
