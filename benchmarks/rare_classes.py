"""How well are rows of a rare class ranked, beside a single kernel learner?

Area under the curve and average precision over one stream, each row predicted before it is learned, the first
500 not counted. Made-up streams of 8,000 rows of which 1 % or 0.3 % are of the class, and sets of the data
folder thinned until the rarer of two classes has 1 %. ``auto`` as it comes and with balanced classes,
``embedded`` as it comes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.reporting import Figure, Report
from benchmarks.settings import Settings
from kons.evaluation.class_weights import BalancedWeights
from kons.recipes import for_task

ROWS, UNCOUNTED, BLOCK = 8000, 500, 256
CONTENDERS = {"auto": ("auto", False), "balanced": ("auto", True), "embedded": ("embedded", False)}
SETS = ("magic04", "cod-rna", "skin")


def run(settings: Settings) -> Report:
    seeds = range(1 if settings.quick else 2)
    found: dict[str, list[dict[str, tuple[float, float]]]] = {}
    for seed in seeds:
        for name, X, rare in streams(settings, seed):
            found.setdefault(name, []).append(
                {who: ranked(X, rare, *how, seed) for who, how in CONTENDERS.items()}
            )
    means = {
        name: np.array([[each[who] for who in CONTENDERS] for each in played]).mean(axis=0)
        for name, played in found.items()
    }
    table = [[name, *mean[:, 0], *mean[:, 1]] for name, mean in means.items()]
    area, precision = np.mean(list(means.values()), axis=0).T
    figures = [
        Figure(f"{measure}, {who}", float(value), "mean over streams", goal, reached)
        for measure, values in (("area", area), ("average precision", precision))
        for who, value, goal, reached in (
            ("auto", values[0], f"at least {values[2]:.3f}, embedded", bool(values[0] >= values[2])),
            ("balanced", values[1], "", None),
        )
    ]
    return Report(
        question="Are rare classes ranked at least as well as by embedded?",
        data=f"{ROWS:,} rows, 1 % or 0.3 % of the class; mean of seeds",
        columns=("stream", *(f"area, {who}" for who in CONTENDERS), *(f"AP, {who}" for who in CONTENDERS)),
        table=table,
        figures=figures,
        notes=[] if len(means) > 8 else ["no data folder, or no set in it: made-up streams only"],
    )


def ranked(X: np.ndarray, rare: np.ndarray, name: str, balanced: bool, seed: int) -> tuple[float, float]:
    """Area under the curve and average precision of the class's probability."""
    learner, weights, found = for_task("classification", name, seed=seed), BalancedWeights(), []
    for start in range(0, len(rare), BLOCK):
        rows = slice(start, start + BLOCK)
        weigh = {"sample_weight": weights.follow(rare[rows].astype(np.int64))} if balanced else {}
        trace = learner.advance(X[rows], rare[rows].tolist(), **weigh)
        shares = learner.probabilities(trace.scores)
        known = True in learner.classes[: shares.shape[1]]
        found.append(shares[:, learner.classes.index(True)] if known else np.zeros(len(shares)))
    p, y = np.concatenate(found)[UNCOUNTED:], rare[UNCOUNTED:]
    return float(roc_auc_score(y, p)), float(average_precision_score(y, p))


def streams(settings: Settings, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, inputs, and whether a row is of the class."""
    for share in (0.01, 0.003):
        random = np.random.default_rng(seed)
        rare = random.random(ROWS) < share
        X = random.normal(size=(ROWS, 5))
        X[rare] = 0.6 * X[rare] + 1.2
        yield f"blob, {share:.1%}", X, rare
        X = random.normal(size=(ROWS, 8))
        z = 2.0 * X[:, 0] - 1.5 * X[:, 1] + X[:, 2] + random.logistic(size=ROWS)
        yield f"half space, {share:.1%}", X, z > np.quantile(z, 1.0 - share)
        X = random.uniform(-1.0, 1.0, size=(ROWS, 6))
        z = 4.0 * X[:, 0] * X[:, 1] + 2.0 * X[:, 2] + 0.7 * random.logistic(size=ROWS)
        yield f"corners, {share:.1%}", X, z > np.quantile(z, 1.0 - share)
        X = random.normal(size=(ROWS, 4))
        z = 0.3 * random.logistic(size=ROWS) - 8.0 * (np.hypot(X[:, 0], X[:, 1]) - 2.5) ** 2
        yield f"ring, {share:.1%}", X, z > np.quantile(z, 1.0 - share)
    for name in SETS:
        path = None if settings.folder is None else settings.folder / f"{name}.csv.gz"
        if path is not None and path.is_file():
            data, random = np.loadtxt(path, delimiter=",", skiprows=1), np.random.default_rng(seed)
            data = data[random.permutation(len(data))]
            labels, counts = np.unique(data[:, -1], return_counts=True)
            rare = data[:, -1] == labels[counts.argmin()]
            many, few = np.flatnonzero(~rare)[: ROWS * 99 // 100], np.flatnonzero(rare)
            chosen = random.permutation(np.concatenate([many, few[: len(many) // 99]]))
            yield f"{name}, 1 %", data[chosen, :-1], rare[chosen]
