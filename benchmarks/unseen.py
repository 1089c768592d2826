"""How does AutoKONS do on sets that nothing in it was ever measured on, beside what River's users would pick?

Sets that come inside scikit-learn and River, and those of the data folder that ``auto`` leaves out. Raw
columns (a date is seconds), in file order where that is time, else in one fixed permutation; at most 10,000
rows. Everybody has its defaults, predicts a row before learning it, and on series in time plays with the last
two targets as inputs too. River's learners play raw and scaled; the better one counts. Its forests take
milliseconds a row: they play with ``--slow``.
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import river.datasets
import sklearn.datasets
from river import forest, linear_model, neighbors, preprocessing, tree

from benchmarks.contenders import play_rival
from benchmarks.measuring import blas_threads
from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings
from benchmarks.streams import QUICK_ROWS
from kons import AutoKONS
from kons.evaluation import RiverModel

MOST_ROWS = 10_000
LAGS = 2


class Unseen(NamedTuple):
    """Rows in the order they are met; y is the target, or a class as its number."""

    name: str
    X: np.ndarray
    y: np.ndarray
    classes: bool = False
    in_time: bool = False

    def with_lags(self) -> np.ndarray:
        """Beside the inputs the last targets, the latest first; 0 before there are any."""
        lagged = [np.concatenate([np.zeros(lag), self.y[:-lag]]) for lag in range(1, LAGS + 1)]
        return np.column_stack([self.X, *lagged])

    def loss(self, prediction: np.ndarray) -> float:
        """The part of classes missed, or the squared error over the target's variance; not of row 1."""
        if self.classes:
            return float(np.mean(prediction[1:] != self.y[1:]))
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(np.mean((prediction[1:] - self.y[1:]) ** 2) / np.var(self.y))
        return value if np.isfinite(value) else float("inf")


# --- the sets


def sets(folder: Path | None) -> Iterator[Unseen]:
    for name in ("diabetes", "breast_cancer", "wine", "digits"):
        bunch = getattr(sklearn.datasets, f"load_{name}")()
        yield _permuted(
            Unseen(name, np.asarray(bunch.data, float), np.asarray(bunch.target, float), name != "diabetes")
        )
    for kind in (
        river.datasets.Phishing,
        river.datasets.Bananas,
        river.datasets.ImageSegments,
        river.datasets.Shuttle,
    ):
        yield _permuted(_of_river(kind, classes=True))
    for kind in (
        river.datasets.ChickWeights,
        river.datasets.TrumpApproval,
        river.datasets.AirlinePassengers,
        river.datasets.WaterFlow,
        river.datasets.SP500Stocks,
    ):
        yield _of_river(kind, in_time=True)
    for name, classes in (("calhousing14k", False), ("german", True), ("skin", True)):
        file = None if folder is None else folder / f"{name}.csv.gz"
        if file is not None and file.is_file():
            with gzip.open(file, "rt") as lines:
                table = np.loadtxt(lines, delimiter=",", skiprows=1)
            yield _permuted(Unseen(name, table[:, :-1], table[:, -1], classes))


def _of_river(kind: Any, **known: bool) -> Unseen:
    rows, targets = zip(*kind(), strict=True)
    X = np.array([[_number(value) for value in row.values()] for row in rows])
    if known.get("classes"):
        y = np.unique([str(target) for target in targets], return_inverse=True)[1].astype(float)
    else:
        y = np.array(targets, dtype=float)
    # Rows whose target is not known are left out.
    there = np.isfinite(y) & np.isfinite(X).all(axis=1)
    return Unseen(kind.__name__, X[there], y[there], **known)


def _number(value: Any) -> float:
    return value.timestamp() if isinstance(value, datetime) else float(value)


def _permuted(unseen: Unseen) -> Unseen:
    order = np.random.default_rng(0).permutation(len(unseen.y))[:MOST_ROWS]
    return unseen._replace(X=np.ascontiguousarray(unseen.X[order]), y=unseen.y[order])


# --- the rivals

Make = Callable[[], Any]


def rivals(classes: bool, many: bool, slow: bool) -> dict[str, Make]:
    search = functools.partial(neighbors.LazySearch, window_size=1_000)
    if classes:
        linear = linear_model.SoftmaxRegression if many else linear_model.LogisticRegression
        found: dict[str, Make] = {
            "tree": functools.partial(tree.HoeffdingAdaptiveTreeClassifier, seed=0),
            "KNN": lambda: neighbors.KNNClassifier(engine=search()),
        }
        forests: dict[str, Make] = {
            "ARF(10)": functools.partial(forest.ARFClassifier, seed=0),
            "AMF(10)": functools.partial(forest.AMFClassifier, seed=0),
        }
    else:
        linear = linear_model.LinearRegression
        found = {
            "tree": functools.partial(tree.HoeffdingAdaptiveTreeRegressor, seed=0),
            "KNN": lambda: neighbors.KNNRegressor(engine=search()),
        }
        forests = {
            "ARF(10)": functools.partial(forest.ARFRegressor, seed=0),
            "AMF(10)": functools.partial(forest.AMFRegressor, seed=0),
        }
    ways: dict[str, Make] = {"scaler | linear": lambda: preprocessing.StandardScaler() | linear()}
    for name, make in (found | (forests if slow else {})).items():
        ways[f"{name}, raw"] = make
        if name not in forests or not classes:
            ways[f"scaler | {name}"] = functools.partial(_scaled, make, classes)
    return ways


def _scaled(make: Make, classes: bool) -> Any:
    model = preprocessing.StandardScaler() | make()
    return model if classes else preprocessing.TargetStandardScaler(model)


def play(make: Make, X: np.ndarray, unseen: Unseen) -> np.ndarray:
    return play_rival(RiverModel(make()), X, unseen.y.astype(int) if unseen.classes else unseen.y)


def ours(unseen: Unseen) -> np.ndarray:
    if unseen.classes:
        labels = AutoKONS("classification").advance(unseen.X, unseen.y.astype(int)).prediction
        return np.array([-1.0 if label is None else label for label in labels], dtype=float)
    return np.asarray(AutoKONS().advance(unseen.X, unseen.y).prediction)


def beside(unseen: Unseen, slow: bool) -> dict[str, float]:
    """The loss of each rival, and with lags too where rows are in time."""
    found = {}
    many = unseen.classes and unseen.y.max() > 1
    for name, make in rivals(unseen.classes, bool(many), slow).items():
        found[name] = unseen.loss(play(make, unseen.X, unseen))
        if unseen.in_time:
            found[f"{name}, lags"] = unseen.loss(play(make, unseen.with_lags(), unseen))
    if unseen.in_time:
        found["the last target"] = unseen.loss(np.concatenate([[0.0], unseen.y[:-1]]))
    return found


def run(settings: Settings) -> Report:
    table, ratios, details = [], [], {}
    with blas_threads(1):
        for whole in sets(settings.folder):
            unseen = whole
            if unseen.classes and set(np.unique(unseen.y)) == {-1.0, 1.0}:
                unseen = unseen._replace(y=(unseen.y > 0.0).astype(float))
            if settings.quick:
                unseen = unseen._replace(X=unseen.X[:QUICK_ROWS], y=unseen.y[:QUICK_ROWS])
            mine, found = unseen.loss(ours(unseen)), beside(unseen, settings.slow)
            best = min(found, key=lambda name: found[name])
            ratios.append(mine / found[best])
            details[unseen.name] = {"AutoKONS": mine, **found}
            table.append([unseen.name, len(unseen.y), unseen.X.shape[1], mine, found[best], best, ratios[-1]])
            print(f"  {unseen.name}: {mine:.4f}, {best} {found[best]:.4f}", flush=True)
    mean = float(np.exp(np.mean(np.log(ratios))))
    return Report(
        question="How does AutoKONS do on sets that nothing in it was ever measured on?",
        data="of scikit-learn, River and the data folder; error rate, or squared error / variance",
        columns=("set", "rows", "columns", "AutoKONS", "best rival", "which", "ratio"),
        table=table,
        figures=[at_most(1.0, "loss / best rival, geometric mean", mean, f"{len(ratios)} sets")],
        details=details,
        notes=[] if settings.slow else ["without River's forests: --slow."],
    )
