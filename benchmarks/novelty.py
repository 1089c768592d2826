"""Does the novelty find outliers? Beside River's HalfSpaceTrees and scikit-learn's IsolationForest, by AUC.

Streams of 5,000 rows, of which 2 % are outliers; each row is scored before it is learned, and the forest is
fitted to the first 500. Rows behind the first 500 count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from kons.learners.detection import novelty_learner

ROWS, FIRST = 5_000, 500


def made_up(rows: int = ROWS) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Generated: rows, and which are outliers."""
    rng = np.random.default_rng(0)
    odd = rng.uniform(size=rows) < 0.02
    for columns in (2, 10):
        X = rng.normal(size=(rows, columns))
        yield f"far away, {columns} columns", np.where(odd[:, None], 4.0 * X + 3.0, X), odd
    centres = rng.normal(scale=4.0, size=(5, 3))
    X = centres[rng.integers(5, size=rows)] + 0.4 * rng.normal(size=(rows, 3))
    yield "between clusters", np.where(odd[:, None], rng.uniform(-6, 6, size=(rows, 3)), X), odd
    angle = rng.uniform(0, 2 * np.pi, size=rows)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(rows, 2))
    yield "inside a ring", np.where(odd[:, None], 0.3 * rng.normal(size=(rows, 2)), ring), odd
    x = rng.normal(size=rows)
    line = np.column_stack([x, x + 0.1 * rng.normal(size=rows), -x + 0.1 * rng.normal(size=rows)])
    yield "off a line", np.where(odd[:, None], rng.normal(size=(rows, 3)), line), odd
    drift = np.linspace(0, 5, rows)[:, None]
    X = rng.normal(size=(rows, 4)) + drift
    yield "while it drifts", np.where(odd[:, None], X + 5.0 * rng.choice([-1, 1], (rows, 4)), X), odd


def run(settings: Settings) -> Report:
    from river import anomaly

    table, ahead = [], []
    for name, X, odd in made_up(1_500 if settings.quick else ROWS):
        learner = novelty_learner(forgetting=0.999)
        ours = np.nan_to_num(np.asarray(learner.advance(X, np.zeros(len(X))).novelty))
        low, high = X[:FIRST].min(axis=0), X[:FIRST].max(axis=0)
        trees = anomaly.HalfSpaceTrees(seed=0, limits=dict(enumerate(zip(low, high, strict=True))))
        theirs = []
        for row in X:
            x = dict(enumerate(row.tolist()))
            theirs.append(trees.score_one(x))
            trees.learn_one(x)
        forest = -IsolationForest(random_state=0).fit(X[:FIRST]).score_samples(X)
        aucs = [roc_auc_score(odd[FIRST:], np.asarray(scores)[FIRST:]) for scores in (ours, theirs, forest)]
        table.append([name, *aucs])
        ahead.append(aucs[0] >= max(aucs[1:]))
        print(f"  {name}: {aucs[0]:.3f}, {aucs[1]:.3f}, {aucs[2]:.3f}", flush=True)
    behind = float(len(ahead) - sum(ahead))
    return Report(
        question="Does the novelty find outliers?",
        data="generated streams, 2 % outliers; area under the ROC curve",
        columns=("stream", "kons", "HalfSpaceTrees", "IsolationForest"),
        table=table,
        figures=[at_most(len(table) // 3, "streams behind", behind, "number")],
        notes=[],
    )
