"""Does the novelty find outliers? Beside three detectors of others, by the area under the ROC curve.

Streams of 5,000 rows, of which 2 % are outliers; each row is scored before it is learned. Rows behind the
first 500 count. HalfSpaceTrees (River) know the limits of the first 500 rows; the one-class SVM (River) has a
StandardScaler; IsolationForest (scikit-learn) is fitted again to all rows so far whenever they have doubled.

Shared sets become outlier streams: a class is the rest, and of another so many rows are strewn in that they
are 2 %; of numbers, the highest and lowest 1 % of the target are the outliers. The target is no input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import real
from kons.learners.detection import novelty_learner

ROWS, FIRST, SHARE = 5_000, 500, 0.02
#: Shared sets, and which class is strewn in; None where the target's ends are the outliers.
SETS: dict[str, int | None] = {
    "cod-rna": 1,
    "skin": 1,
    "magic04": 1,
    "weather_noaa": 1,
    "electricity": 1,
    "pol": None,
    "cpusmall": None,
    "house16h": None,
    "elevators": None,
    "cadata": None,
}
IN_TIME = ("weather_noaa", "electricity")
Stream = tuple[str, np.ndarray, np.ndarray]


def made_up(rows: int = ROWS, seed: int = 0) -> Iterator[Stream]:
    """Generated: rows, and which are outliers."""
    rng = np.random.default_rng(seed)
    odd = rng.uniform(size=rows) < SHARE
    which = odd[:, None]
    for columns in (2, 10):
        X = rng.normal(size=(rows, columns))
        yield f"far away, {columns} columns", np.where(which, 4.0 * X + 3.0, X), odd
    centres = rng.normal(scale=4.0, size=(5, 3))
    X = centres[rng.integers(5, size=rows)] + 0.4 * rng.normal(size=(rows, 3))
    yield "between clusters", np.where(which, rng.uniform(-6, 6, size=(rows, 3)), X), odd
    angle = rng.uniform(0, 2 * np.pi, size=rows)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(rows, 2))
    yield "inside a ring", np.where(which, 0.3 * rng.normal(size=(rows, 2)), ring), odd
    x = rng.normal(size=rows)
    line = np.column_stack([x, x + 0.1 * rng.normal(size=rows), -x + 0.1 * rng.normal(size=rows)])
    yield "off a line", np.where(which, rng.normal(size=(rows, 3)), line), odd
    mixed = rng.normal(size=(rows, 4)) @ rng.normal(size=(4, 8)) + 0.3 * rng.normal(size=(rows, 8))
    alone = mixed[rng.integers(rows, size=(rows, 8)), np.arange(8)]  # each column by itself is as usual
    yield "correlated gaussian, columns shuffled", np.where(which, alone, mixed), odd
    drift = np.linspace(0, 5, rows)[:, None]
    X = rng.normal(size=(rows, 4)) + drift
    yield "while it drifts", np.where(which, X + 5.0 * rng.choice([-1, 1], (rows, 4)), X), odd
    hour = np.arange(rows) % 24.0
    load = np.sin(2 * np.pi * hour / 24) + 0.15 * rng.normal(size=rows)
    wrong = np.sin(2 * np.pi * (hour + rng.uniform(8, 16, size=rows)) / 24) + 0.15 * rng.normal(size=rows)
    yield "load at the wrong hour", np.column_stack([hour, np.where(odd, wrong, load)]), odd
    X = rng.normal(size=(rows, 20))
    X[:, 1] = X[:, 0] + 0.2 * rng.normal(size=rows)
    wide = X.copy()
    wide[:, 1] = -X[:, 0]
    yield "2 of 20 columns matter", np.where(which, wide, X), odd
    group = rng.choice(6, p=[0.4, 0.25, 0.2, 0.1, 0.03, 0.02], size=rows)
    size = group + 0.2 * rng.normal(size=rows)
    other = (group + rng.integers(1, 6, size=rows)) % 6
    named = np.eye(6)[np.where(odd, other, group)]
    yield "size of another level", np.column_stack([size, named]), odd
    dense = rng.uniform(size=rows) < 0.5
    X = np.where(dense[:, None], 0.1 * rng.normal(size=(rows, 2)), 5.0 + 2.0 * rng.normal(size=(rows, 2)))
    near = 0.6 * rng.normal(size=(rows, 2))  # usual between the wide, unusual beside the dense
    yield "beside a dense cluster", np.where(which, near, X), odd
    tail = rng.standard_t(3, size=(rows, 4))
    yield "heavy tails, signs", np.where(which, 4.0 * rng.choice([-1, 1], (rows, 4)), tail), odd


def of_sets(settings: Settings) -> Iterator[Stream]:
    """Shared sets with their outliers."""
    for name, rare in SETS.items():
        found = real(name, settings.folder, None if name in IN_TIME else 0)
        if found is None:
            continue
        X, y, rng = found.X, found.y, np.random.default_rng(0)
        if rare is None:
            X, y = X[:ROWS], y[:ROWS]
            ranks = np.argsort(np.lexsort((rng.uniform(size=len(y)), y)))  # equal ones in any order
            odd = np.abs(ranks / (len(y) - 1) - 0.5) > 0.5 * (1.0 - SHARE)
        else:
            odd = y == sorted(set(y.tolist()))[rare]
            if odd.mean() > 0.5:
                odd = ~odd
            kept = ~odd | (rng.uniform(size=len(y)) < SHARE * (1.0 - odd.mean()) / odd.mean())
            X, odd = X[kept], odd[kept]
        yield name, X[:ROWS], odd[:ROWS]


def ours(X: np.ndarray) -> np.ndarray:
    learner = novelty_learner(forgetting=0.999)
    return np.nan_to_num(np.asarray(learner.advance(X, np.zeros(len(X))).novelty))


def trees(X: np.ndarray) -> np.ndarray:
    from river import anomaly

    limits = dict(enumerate(zip(X[:FIRST].min(axis=0), X[:FIRST].max(axis=0) + 1e-9, strict=True)))
    return _one_by_one(anomaly.HalfSpaceTrees(seed=0, limits=limits), X)


def one_class(X: np.ndarray) -> np.ndarray:
    from river import anomaly, preprocessing

    return _one_by_one(preprocessing.StandardScaler() | anomaly.OneClassSVM(nu=0.1), X)


def _one_by_one(detector: object, X: np.ndarray) -> np.ndarray:
    scores = []
    for row in X:
        x = dict(enumerate(row.tolist()))
        scores.append(detector.score_one(x))  # type: ignore[attr-defined]
        detector.learn_one(x)  # type: ignore[attr-defined]
    return np.asarray(scores)


def forest(X: np.ndarray) -> np.ndarray:
    scores, known = np.zeros(len(X)), FIRST
    while known < len(X):
        end = min(2 * known, len(X))
        scores[known:end] = -IsolationForest(random_state=0).fit(X[:known]).score_samples(X[known:end])
        known = end
    return scores


DETECTORS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "kons": ours,
    "HalfSpaceTrees": trees,
    "one-class SVM": one_class,
    "IsolationForest": forest,
}


def run(settings: Settings) -> Report:
    table, ahead = [], []
    streams = [*made_up(1_500 if settings.quick else ROWS), *of_sets(settings)]
    for name, X, odd in streams:
        aucs = [roc_auc_score(odd[FIRST:], detect(X)[FIRST:]) for detect in DETECTORS.values()]
        table.append([name, *aucs])
        ahead.append(aucs[0] >= max(aucs[1:]))
        print(f"  {name}: {', '.join(f'{auc:.3f}' for auc in aucs)}", flush=True)
    behind = float(len(ahead) - sum(ahead))
    return Report(
        question="Does the novelty find outliers?",
        data="generated streams, and shared sets (--data), 2 % outliers; area under the ROC curve",
        columns=("stream", *DETECTORS),
        table=table,
        figures=[at_most(len(table) // 3, "streams behind", behind, "number")],
        notes=[] if settings.folder is not None else ["no --data: generated streams only"],
    )
