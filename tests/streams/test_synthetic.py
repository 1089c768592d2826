import numpy as np
import pytest

from kons.errors import ConfigurationError
from kons.streams import alternating_labels, drifting, friedman, logistic_map, mackey_glass, switching
from kons.streams.synthetic import CEILING

SEEDED = {
    "mackey_glass": mackey_glass,
    "friedman": friedman,
    "drifting": drifting,
    "logistic_map": logistic_map,
    "switching": switching,
}


def euler(start, delay, duration, nodes_per_unit):
    """The Mackey-Glass equation by the plainest of methods, with a tiny step."""
    h, back = 1.0 / nodes_per_unit, delay * nodes_per_unit
    x = [start] * (back + 1)
    for _ in range(duration * nodes_per_unit):
        z = x[-1 - back]
        x.append(x[-1] + h * (0.2 * z / (1.0 + z**10) - 0.1 * x[-1]))
    return np.array(x[back:])


@pytest.mark.parametrize("make", SEEDED.values(), ids=SEEDED)
def test_the_seed_decides_everything(make):
    (X, y), (X2, y2), (X3, y3) = make(50, seed=4), make(50, seed=4), make(50, seed=5)
    assert np.array_equal(X, X2)
    assert np.array_equal(y, y2)
    assert not np.array_equal(X, X3)
    assert not np.array_equal(y, y3)


@pytest.mark.parametrize("make", [*SEEDED.values(), alternating_labels], ids=[*SEEDED, "alternating"])
def test_shapes_types_and_range(make):
    X, y = make(300)
    assert X.shape[0] == 300
    assert y.shape == (300,)
    assert X.dtype == y.dtype == np.float64
    assert X.flags.c_contiguous
    assert X.flags.owndata
    assert np.isfinite(X).all()
    assert np.abs(y).max() <= 1.0


@pytest.fixture
def unsettled(monkeypatch):
    """The Mackey-Glass series from its start on, a sample per unit of time, in its own scale."""

    def samples(duration, nodes_per_unit=None):
        monkeypatch.setattr("kons.streams.synthetic.TRANSIENT", 0)
        if nodes_per_unit is not None:
            monkeypatch.setattr("kons.streams.synthetic.NODES_PER_UNIT", nodes_per_unit)
        X, _ = mackey_glass(duration + 1, lags=1, interval=1)
        return (X[:, 0] + 1.0) * CEILING / 2.0

    return samples


def test_mackey_glass_follows_its_equation(unsettled):
    found = unsettled(60)
    assert 1.1 < found[0] < 1.3
    assert found == pytest.approx(euler(found[0], 17, 60, 400)[::400], abs=1e-3)


def test_mackey_glass_is_integrated_to_fourth_order(unsettled):
    as_it_is, reference = unsettled(150), unsettled(150, 80)
    coarse, fine = (np.abs(unsettled(150, nodes) - reference).max() for nodes in (5, 10))
    assert fine < 1e-7
    assert np.abs(as_it_is - reference).max() < 1e-7
    assert 12.0 < coarse / fine < 20.0


def test_mackey_glass_rows_are_windows_of_one_series():
    X, y = mackey_glass(200, lags=5, horizon=3, seed=2)
    assert np.array_equal(X[1:, :-1], X[:-1, 1:])
    assert np.array_equal(y[:-3], X[3:, -1])


def test_mackey_glass_keeps_its_start_when_asked_for_more():
    short, long = mackey_glass(50), mackey_glass(80)
    assert np.array_equal(short[0], long[0][:50])
    assert np.array_equal(short[1], long[1][:50])


@pytest.mark.parametrize("delay", [2, 17, 30, 100])
def test_mackey_glass_stays_inside_its_ceiling_and_on_its_attractor(delay):
    X, y = mackey_glass(1000, delay=delay)
    assert np.abs(X).max() < 1.0
    assert pytest.approx(1.4449, abs=1e-4) == CEILING
    assert (y.std() > 0.1) == (delay > 2)  # with a short delay it settles


def test_friedman_is_the_formula_and_ignores_other_features():
    X, y = friedman(100, dimension=7, seed=1)
    x = X[3]
    raw = 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]
    assert X.shape == (100, 7)
    assert y[3] == pytest.approx(raw / 15 - 1)


def test_friedman_noise_moves_targets_only():
    clean, noisy = friedman(500), friedman(500, noise=0.1)
    assert np.array_equal(clean[0], noisy[0])
    assert 0.08 < (noisy[1] - clean[1]).std() < 0.12
    assert np.abs(friedman(500, noise=3.0)[1]).max() == 1.0


def test_drifting_turns_from_one_answer_to_its_opposite():
    X, y = drifting(4001, 3, period=4000, seed=7)
    assert X.min() == pytest.approx(-1.0, abs=0.01)
    assert X.max() == pytest.approx(1.0, abs=0.01)
    a, b = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 2)))[0].T
    assert y[2000] == pytest.approx(-np.sin(np.pi * X[2000] @ a))
    assert y[1000] == pytest.approx(np.sin(np.pi * X[1000] @ b))
    assert y[4000] == pytest.approx(np.sin(np.pi * X[4000] @ a))


def test_the_logistic_map_is_a_parabola_of_its_last_value():
    X, y = logistic_map(5000, lags=3, seed=4)
    assert y == pytest.approx(1.0 - 2.0 * X[:, -1] ** 2, abs=1e-12)
    assert np.array_equal(X[1:, :-1], X[:-1, 1:])
    assert np.array_equal(logistic_map(100, horizon=2)[1][:-1], logistic_map(100, horizon=1)[1][1:])
    # Arcsine distributed: mean 0, mean square 1/2, and no linear dependence on the last value.
    assert abs(y.mean()) < 0.03
    assert 0.48 < np.mean(y**2) < 0.52
    assert abs(np.mean(y * X[:, -1])) < 0.03


def test_the_logistic_map_does_not_die_of_rounding(monkeypatch):
    class Generator:
        def uniform(self, *_):
            return 0.5  # 0.5 -> 1 -> 0 for ever

    monkeypatch.setattr(np.random, "default_rng", lambda _: Generator())
    X, _ = logistic_map(100)
    assert X[50:].std() > 0.3


def test_switching_takes_turns():
    X, y = switching(1000, 3, every=100, seed=7)
    a, b = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 2)))[0].T
    for row in (0, 99, 200, 899):
        assert y[row] == pytest.approx(np.sin(np.pi * X[row] @ a))
    for row in (100, 199, 300, 999):
        assert y[row] == pytest.approx(-np.sin(np.pi * X[row] @ b))
    clean, noisy = switching(500), switching(500, noise=0.01)
    assert np.array_equal(clean[0], noisy[0])
    assert 0.0 < np.abs(noisy[1] - clean[1]).max() < 0.06


def test_alternating_labels():
    X, y = alternating_labels(5, bound=2.5)
    assert np.array_equal(X, np.ones((5, 1)))
    assert y.tolist() == [2.5, -2.5, 2.5, -2.5, 2.5]


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        *[(make, "rows", 0) for make in (mackey_glass, friedman, drifting, alternating_labels)],
        *[(make, "rows", 1.5) for make in (mackey_glass, friedman, drifting, alternating_labels)],
        *[(make, "seed", -1) for make in SEEDED.values()],
        *[(mackey_glass, name, 0) for name in ("lags", "horizon", "interval", "delay")],
        (friedman, "dimension", 4),
        (friedman, "noise", -0.1),
        (drifting, "dimension", 1),
        (drifting, "period", 0.0),
        *[(logistic_map, name, 0) for name in ("rows", "lags", "horizon")],
        *[(switching, name, value) for name, value in (("dimension", 1), ("every", 0), ("noise", -1.0))],
        (alternating_labels, "bound", 0.0),
        (alternating_labels, "bound", float("nan")),
    ],
)
def test_bad_parameters_are_named(make, name, value):
    with pytest.raises(ConfigurationError, match=f"^{name} is "):
        make(**({"rows": 10} | {name: value}))


def test_the_series_is_the_chaotic_one_by_default():
    for ours, given in zip(mackey_glass(60), mackey_glass(60, delay=17), strict=True):
        np.testing.assert_array_equal(ours, given)
