"""Rows of a class that one row in a hundred is of: how they are ranked, and what is kept for them."""

import numpy as np
import pytest

import kons
from kons.recipes import for_task


def half_space(rows=4000, share=0.01):
    """Beyond a plane across three of eight columns, with noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 8))
    z = 2.0 * X[:, 0] - 1.5 * X[:, 1] + X[:, 2] + random.logistic(size=rows)
    return X, z > np.quantile(z, 1.0 - share)


def area(name, X, rare, uncounted=500):
    """The share of pairs, one of the class and one not, in which the first has the larger probability."""
    model = for_task("classification", name)
    p = model.probabilities(model.advance(X, rare.tolist()).scores)[:, model.classes.index(True)]
    p, rare = p[uncounted:], rare[uncounted:]
    differences = p[rare][:, None] - p[~rare]
    return np.mean(differences > 0.0) + 0.5 * np.mean(differences == 0.0)


def test_rare_rows_are_ranked_as_by_embedded():
    X, rare = half_space()
    best = area("embedded", X, rare)
    # The standard error of an area (Hanley, McNeil 1982), of which rows of the class are nearly all.
    error = np.sqrt((2.0 * best**2 / (1.0 + best) - best**2) / rare[500:].sum())
    assert area("auto", X, rare) > best - error


def test_from_a_file_with_a_rare_class_it_goes_on_as_it_would_have(tmp_path):
    X, rare = half_space(rows=700, share=0.03)
    model = for_task("classification", max_atoms=20)
    model.advance(X[:333], rare[:333].tolist())
    kons.save(model, tmp_path / "model.kons")
    again = kons.load(tmp_path / "model.kons")
    scores = [m.advance(X[333:], rare[333:].tolist()).scores for m in (model, again)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("delay", [0, 5])
def test_rows_of_a_rare_class_one_by_one_are_those_of_a_block(delay):
    X, rare = half_space(rows=300, share=0.03)
    blocks, rows = (for_task("classification", max_atoms=20, delay=delay) for _ in range(2))
    blocks.advance(X, rare.tolist())
    for x, label in zip(X, rare.tolist(), strict=True):
        rows.learn_one(x, label)
    # Rounding of some hundred rows; probabilities of about one in a hundred.
    np.testing.assert_allclose(rows.predict_proba(X[:20]), blocks.predict_proba(X[:20]), atol=1e-9)
    shares = [[m.predict_proba_one(x)[True] for x in X[:20]] for m in (rows, blocks)]
    np.testing.assert_allclose(*shares, atol=1e-9)
