"""Who AutoKONS is measured against: River's learners, scikit-learn's, and the trivial ones, on raw rows.

Everyone predicts a row before learning it, one row at a time, and has its library's defaults, except:

- River's learners play three times: as they are ("raw"), after a StandardScaler ("scaler |"), and for
  regression with a TargetStandardScaler around that ("both scaled"). Many fail on raw columns or targets,
  and nobody should be beaten for that. Linear models play only the scaled ways.
- River's KNN searches the same last 1,000 rows exactly: its approximate search gives other figures in
  each run, and takes longer.
- scikit-learn's features and the scales of its inputs and target are fitted on the first rows, which
  looks at them ahead of their predictions. RBFSampler has gamma="scale", on scaled inputs the same 1/d
  that Nystroem has by default: its own default, 1, is far too narrow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from river import forest, linear_model, neighbors, preprocessing, tree
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.contenders import FITTED_ON, dicts
from benchmarks.raw_streams import RawStream
from kons.compilation import cpu_clock
from kons.evaluation import OnlineLinear, Persistence, RunningMean

Make = Callable[[], Any]
WATCH_EVERY = 50  # rows between two looks at the clock


class Played(NamedTuple):
    """Predictions of the first rows (fewer than all where time was up), and CPU seconds."""

    prediction: np.ndarray
    seconds: float


Rival = Callable[[RawStream, float], Played]


class Entry(NamedTuple):
    """A rival by name; ``family`` is river, scikit-learn or trivial; slow is about a ms a row."""

    play: Rival
    family: str
    slow: bool = False


def entries(stream: RawStream) -> dict[str, Entry]:
    """All rivals for the task; in time order each once more with the last targets as inputs."""
    classes = stream.task == "classification"
    found = {**trivial(stream), **river(classes), **scikit_learn(classes)}
    if stream.time_ordered:
        found |= {
            f"{name}, lags": entry._replace(play=partial(_with_lags, entry.play))
            for name, entry in found.items()
            if name not in ("constant", "persistence")
        }
    return found


def _with_lags(play: Rival, stream: RawStream, limit: float) -> Played:
    return play(stream.with_lags(), limit)


def reference(stream: RawStream, rows: int = 2_000, rounds: int = 3) -> float:
    """Microseconds a row of River's scaler | linear (logistic) now: the unit that times are told in."""
    head, make = stream.first(rows), partial(_scaled, _linear(stream.task == "classification"))
    seconds = [play_river(make, head, np.inf).seconds for _ in range(rounds)]
    return sorted(seconds)[rounds // 2] / len(head.y) * 1e6


# --- trivial


def trivial(stream: RawStream) -> dict[str, Entry]:
    baselines: dict[str, tuple[Make, bool]] = {"constant": (RunningMean, False)}
    if stream.time_ordered:
        baselines["persistence"] = (Persistence, False)
    baselines["online linear (VAW), raw"] = (OnlineLinear, False)
    baselines["online linear (VAW), scaled"] = (OnlineLinear, True)
    return {
        name: Entry(partial(_play_baseline, make, scaled), "trivial")
        for name, (make, scaled) in baselines.items()
    }


def _play_baseline(make: Make, scaled: bool, stream: RawStream, limit: float) -> Played:
    make().advance(stream.X[:2], stream.y[:2])  # compiles outside the clock
    start = cpu_clock()
    X = _standardized(stream.X) if scaled else stream.X
    prediction = make().advance(X, stream.y).prediction
    return Played(prediction, cpu_clock() - start)


def _standardized(X: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1 over the first rows; a column that is constant there keeps its scale."""
    spread = X[:FITTED_ON].std(axis=0)
    return (X - X[:FITTED_ON].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


# --- River


def river(classes: bool) -> dict[str, Entry]:
    linear: dict[str, Make] = {"logistic" if classes else "linear": _linear(classes)}
    search = partial(neighbors.LazySearch, window_size=1_000)
    if classes:
        others: dict[str, Make] = {
            "adaptive tree": partial(tree.HoeffdingAdaptiveTreeClassifier, seed=0),
            "KNN": lambda: neighbors.KNNClassifier(engine=search()),
        }
        forests: dict[str, Make] = {
            "ARF(10)": partial(forest.ARFClassifier, seed=0),
            "AMF(10)": partial(forest.AMFClassifier, seed=0),
        }
    else:
        others = {
            "Bayesian linear": linear_model.BayesianLinearRegression,
            "adaptive tree": partial(tree.HoeffdingAdaptiveTreeRegressor, seed=0),
            "KNN": lambda: neighbors.KNNRegressor(engine=search()),
        }
        forests = {
            "ARF(10)": partial(forest.ARFRegressor, seed=0),
            "AMF(10)": partial(forest.AMFRegressor, seed=0),
        }
    found = {}
    for name, make in (linear | others | forests).items():
        ways: dict[str, Make] = {} if name in linear else {f"River {name}, raw": make}
        ways[f"River scaler | {name}"] = partial(_scaled, make)
        if not classes and name != "KNN":  # a mean of targets does not depend on their scale
            ways[f"River {name}, both scaled"] = partial(_both_scaled, make)
        for way, made in ways.items():
            found[way] = Entry(partial(play_river, made), "river", slow=name in forests)
    return found


def _linear(classes: bool) -> Make:
    return linear_model.LogisticRegression if classes else linear_model.LinearRegression


def _scaled(make: Make) -> Any:
    return preprocessing.StandardScaler() | make()


def _both_scaled(make: Make) -> Any:
    return preprocessing.TargetStandardScaler(_scaled(make))


def play_river(make: Make, stream: RawStream, limit: float) -> Played:
    """Row by row, without the adapter of kons: its time is the unit of others.

    What cannot be said yet, the first row always, is 0; a class comes back as -1 or 1.
    """
    classes = stream.task == "classification"
    targets = (stream.y > 0.0).tolist() if classes else stream.y.tolist()
    prediction = np.zeros(len(stream.y))
    model, rows, done = make(), dicts(stream.X), 0
    start = cpu_clock()
    for i in _until(limit, len(prediction)):
        guess = model.predict_one(rows[i]) if i else None
        if guess is not None:
            prediction[i] = 2.0 * guess - 1.0 if classes else guess
        model.learn_one(rows[i], targets[i])
        done = i + 1
    return Played(prediction[:done], cpu_clock() - start)


def _until(limit: float, rows: int) -> Iterator[int]:
    """Row numbers, until that many CPU seconds are over."""
    end = cpu_clock() + limit
    for i in range(rows):
        if i % WATCH_EVERY == 0 and cpu_clock() > end:
            return
        yield i


# --- scikit-learn


def scikit_learn(classes: bool) -> dict[str, Entry]:
    descent, network = (SGDClassifier, MLPClassifier) if classes else (SGDRegressor, MLPRegressor)
    ways: dict[str, tuple[Make, Make]] = {
        "RBFSampler | SGD": (
            partial(RBFSampler, gamma="scale", random_state=0),
            partial(descent, random_state=0),
        ),
        "Nystroem | SGD": (partial(Nystroem, random_state=0), partial(descent, random_state=0)),
        "MLP": (lambda: None, partial(network, random_state=0)),
    }
    return {
        f"scikit-learn scaler | {name}": Entry(partial(_play_sklearn, *made), "scikit-learn", slow=True)
        for name, made in ways.items()
    }


def _play_sklearn(features: Make, make: Make, stream: RawStream, limit: float) -> Played:
    """Features and scales fitted on the first rows; then predict and partial_fit of each row."""
    classes = stream.task == "classification"
    start = cpu_clock()
    Z = _standardized(stream.X)
    fitted = features()
    if fitted is not None:
        Z = fitted.fit(Z[:FITTED_ON]).transform(Z)
    head = stream.y[:FITTED_ON]
    centre, unit = (0.0, 1.0) if classes else (head.mean(), head.std() or 1.0)
    targets = (stream.y - centre) / unit
    model, prediction, done = make(), np.zeros(len(targets)), 0
    arguments = {"classes": np.array([-1.0, 1.0])} if classes else {}
    left = limit - (cpu_clock() - start)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # an overflow shows in the loss
        for i in _until(left, len(targets)):
            row = slice(i, i + 1)
            try:
                if i:
                    prediction[i] = model.predict(Z[row])[0]
                model.partial_fit(Z[row], targets[row], **arguments)
            except ValueError:  # its weights have overflowed
                prediction[i:] = np.inf
                break
            done = i + 1
        else:
            prediction = prediction[:done]
    return Played(centre + unit * prediction, cpu_clock() - start)
