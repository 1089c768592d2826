"""One word for cost: what it sets, what overrides it, and how large files are."""

import functools

import numpy as np
import pytest

import effort
from auto_experts import experts
from kons import AutoKONS
from kons.checks import CHECKS, check_learner
from kons.errors import ConfigurationError
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task

COLUMNS = 10


def stream(kind, rows=5000):
    """Rows in no order, in order, or with a function that changes once; or classes."""
    X = np.random.default_rng([0, 0]).normal(size=(rows, COLUMNS))
    noise = np.random.default_rng([0, 1]).normal(size=(rows, 2))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * noise[:, 0]
    if kind == "order":
        return X, y + np.cumsum(0.3 * noise[:, 1])
    if kind == "turns":
        return X, np.where(np.arange(rows) < 500, y, 1000.0 + 100.0 * X[:, 3])
    edges = {"classes": [-0.5, 0.5], "ten classes": np.linspace(-1.6, 1.6, 9)}
    return X, np.digitize(y, edges[kind]) if kind in edges else y


@pytest.mark.parametrize("kind", ["no order", "order", "turns", "classes", "ten classes"])
def test_a_tiny_model_is_at_most_100_kb_at_any_time(kind):
    rows, step = effort.amount(900, 5000), 37  # files are cut anywhere in chunks
    X, y = stream(kind)
    model = AutoKONS("classification" if "classes" in kind else "regression", effort="tiny")
    for start in range(0, rows, step):
        model.advance(X[start : start + step], y[start : start + step])
        assert len(to_bytes(model)) <= 100_000, model.rows_seen
    assert model.successions > 0 or kind != "turns"


LOOKED_AT = {"tiny": [1040, 1047], "normal": [1151, 1536, 1600, 3000, 4223]}


@functools.cache
def in_order(word):
    """Rows -> the file of a model that has learned so many of the rows in order."""
    (X, y), model, files = stream("order"), AutoKONS(effort=word), {}
    for rows in LOOKED_AT[word]:
        model.advance(X[model.rows_seen : rows], y[model.rows_seen : rows])
        files[rows] = to_bytes(model)
    return files


@pytest.mark.parametrize("rows", [1151, 4223])  # the last row but one of a chunk, with most experts
def test_a_normal_model_is_at_most_4_mb_inside_a_chunk_too(rows):
    assert len(in_order("normal")[rows]) <= 4_000_000


@pytest.mark.parametrize(
    ("word", "rows"), [("tiny", 1040), ("tiny", 1047), ("normal", 1536), ("normal", 1600), ("normal", 3000)]
)
def test_the_bytes_of_a_file_are_those_of_the_formula(word, rows):
    """As in docs/auto.md, to 3 %: the moments of targets, the stacking and the tree are left out there."""
    file = in_order(word)[rows]
    s, r, q = (108, 108, 17) if word == "tiny" else (5120, 2048, 129)
    d, begun, p = COLUMNS, experts(from_bytes(file)), rows % 16 if word == "tiny" else rows % 128
    besides = p + (min(rows, r) - p) * max(1.0 - s / rows, 0.0)
    numbers = min(rows, s) * (d + 7) + besides * (d + 6)
    numbers += 2 * q * (2 * d + 2) + 2 * (d**2 + (d + 2) ** 2)
    own = 0  # at most, of scalings that only neighbours take
    for name, expert in begun.items():
        if name.startswith("neighbours"):
            u = expert["points"].shape[1]
            own += 2 * q * u
            numbers += (len(expert["values"]) + len(expert["latest"])) * (u / 2 + 2)
            continue
        B, u = expert["atoms"].shape
        b = B + 1
        numbers += B * u + 2 * b + b * (b + 1) // 2 + 3 * p + (u**2 if "linear" in name else 0)
    numbers += 0 if word == "tiny" else 14 * (d + 2)
    errors = 8 * 326 + 8 * (100 if word == "tiny" else 500) + 400 * 3  # of predictions, for the intervals
    expected = 8 * numbers + errors + 400 * (42 + (6 if p else 5) * len(begun))
    assert 0.97 * expected <= len(file) <= 1.03 * (expected + 8 * own)


def test_what_a_word_sets_and_what_overrides_it():
    assert (AutoKONS().effort, AutoKONS().max_atoms, AutoKONS().experts) == ("normal", 200, 13)
    tiny = for_task("regression", effort="tiny")
    assert (tiny.max_atoms, tiny.experts) == (24, 3)
    assert [AutoKONS(effort=word).max_atoms for word in ("low", "high")] == [100, 400]
    given = AutoKONS(effort="tiny", max_atoms=7, experts=2)
    assert (given.max_atoms, given.experts) == (7, 2)
    assert given.parameters()["effort"] == "tiny"
    assert from_bytes(to_bytes(given)).parameters() == given.parameters()
    assert "effort='tiny'" in repr(given)


@pytest.mark.parametrize("word", ["lowest", "Tiny", None, 3])
def test_another_word_is_refused_and_the_words_are_told(word):
    with pytest.raises(ConfigurationError, match='expected one of "tiny", "low", "normal", "high"'):
        AutoKONS(effort=word)


def test_more_effort_explains_more_for_more_bytes():
    X, y = stream("no order", rows=2500)
    y = y + 2.0 * np.sin(3.0 * X[:, 0]) * np.sin(3.0 * X[:, 1])  # waves, which many atoms resolve better
    losses, sizes = [], []
    for word in ("tiny", "low", "normal", "high"):
        models = [AutoKONS(effort=word, seed=seed) for seed in (0, 1)]  # atoms are drawn
        # Behind the selection of 1,024 rows: of fewer, neighbours know as much as many atoms.
        losses.append(np.mean([(model.advance(X, y).prediction - y)[1500:] ** 2 for model in models]))
        sizes.append(len(to_bytes(models[0])))
    assert losses == sorted(losses, reverse=True)
    assert sizes == sorted(sizes)
    assert (sizes[1] <= 2_000_000, sizes[3] <= 16_000_000) == (True, True)


def test_a_tiny_model_keeps_what_the_battery_asks_for():
    stretches = effort.some([(0, 12), (60, 70), (120, 135), (1020, 1045)], (0, 12), (120, 135))
    assert len(check_learner(AutoKONS(effort="tiny"), stretches=stretches)) == len(CHECKS)
