"""The learners of others, and the trivial ones: each plays a stream, predicting a row before learning it.

River's learners have River's defaults, except that KNN searches the same last 1,000 rows exactly: its
approximate search gives other figures in each run; dicts and the adapter of kons cost them 7 to 10 us a row.
scikit-learn's Nystroem is fitted on the first rows, which looks at inputs ahead of their predictions;
SGDRegressor then predicts and learns in mini-batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from river import forest, linear_model, neighbors, preprocessing, tree
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDRegressor

from benchmarks.settings import Settings
from benchmarks.streams import BOUND, Stream
from kons.compilation import wall_clock
from kons.errors import KonsError
from kons.evaluation import OnlineLinear, Persistence, RiverModel, RunningMean
from kons.evaluation.rivals import Rival

Play = Callable[[Stream], np.ndarray]
Score = Callable[[np.ndarray, np.ndarray], float]

MINI_BATCH = 100
FITTED_ON = 1_000
STEPS: dict[str, dict[str, Any]] = {
    "SGD, defaults": {},
    "SGD, step 0.1": {"learning_rate": "constant", "eta0": 0.1, "alpha": 0.0},
    "SGD, step 0.3": {"learning_rate": "constant", "eta0": 0.3, "alpha": 0.0},
}
DIVERGED = 10.0  # a mean loss above this: targets lie in [-0.5, 0.5]


def squared_loss(prediction: np.ndarray, target: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.mean((prediction - target) ** 2))


def error_rate(prediction: np.ndarray, target: np.ndarray) -> float:
    """The part of the rows whose class, the sign of the target, was missed."""
    return float(np.mean((prediction > 0.0) != (target > 0.0)))


def measure(plays: Mapping[str, Play], stream: Stream, score: Score) -> dict[str, tuple[float, float]]:
    """Score and microseconds a row of each, in one run."""
    outcome = {}
    for name, play in plays.items():
        start = wall_clock()
        prediction = play(stream)
        seconds = wall_clock() - start
        outcome[name] = (score(prediction, stream.y), seconds / len(stream) * 1e6)
    return outcome


def cell(score: float, microseconds: float) -> str:
    """Both numbers of :func:`measure` in one cell of a table."""
    value = f"{score:.4f}" if score < DIVERGED else "diverges"
    return f"{value} / {microseconds:,.1f}"


def play(make: Callable[[], Any], stream: Stream) -> np.ndarray:
    """A new learner or baseline of kons over all rows."""
    return make().advance(stream.X, stream.y).prediction


def trivial(in_time_order: bool = False) -> dict[str, Play]:
    """The constant, online linear regression (VAW) and, where the order means something, persistence."""
    baselines: dict[str, Callable[[], Any]] = {
        "constant (running mean)": RunningMean,
        "online linear (VAW)": partial(OnlineLinear, bound=BOUND),
    }
    if in_time_order:
        baselines["persistence"] = Persistence
    return {name: partial(play, make) for name, make in baselines.items()}


def scaled_linear() -> Any:
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


def river_regressors(settings: Settings) -> dict[str, Play]:
    models = {
        "River scaler | linear": scaled_linear,
        "River Bayesian linear": linear_model.BayesianLinearRegression,
        "River adaptive tree": partial(tree.HoeffdingAdaptiveTreeRegressor, seed=0),
        "River KNN": lambda: neighbors.KNNRegressor(engine=neighbors.LazySearch(window_size=1_000)),
    }
    if settings.slow:
        models["River ARF"] = partial(forest.ARFRegressor, seed=0)
        models["River AMF"] = partial(forest.AMFRegressor, seed=0)
    return {name: partial(play_river, make, classes=False) for name, make in models.items()}


def river_classifiers(settings: Settings) -> dict[str, Play]:
    models = {
        "River scaler | logistic": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "River adaptive tree": partial(tree.HoeffdingAdaptiveTreeClassifier, seed=0),
        "River KNN": lambda: neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=1_000)),
    }
    if settings.slow:
        models["River ARF"] = partial(forest.ARFClassifier, seed=0)
        models["River AMF"] = partial(forest.AMFClassifier, seed=0)
    return {name: partial(play_river, make, classes=True) for name, make in models.items()}


def dicts(X: np.ndarray) -> list[dict[int, float]]:
    """Rows as River wants them."""
    return [dict(enumerate(row)) for row in X.tolist()]


def play_river(make: Callable[[], Any], stream: Stream, classes: bool) -> np.ndarray:
    """River's learner row by row; a class comes back as -1 or 1."""
    return play_rival(RiverModel(make()), stream.X, np.sign(stream.y) if classes else stream.y)


def play_rival(rival: Rival, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What it predicts of each row before it learns it; infinity if it diverges."""
    try:
        return numbers(rival.advance(X, y).prediction)
    except KonsError as error:
        print(f"  {error}", flush=True)
        return np.full(len(y), np.inf)


def numbers(predictions: np.ndarray) -> np.ndarray:
    """Where nobody could say anything yet, 0."""
    return np.array([0.0 if value is None else value for value in predictions], dtype=np.float64)


def nystroem(X: np.ndarray, bandwidth: float, atoms: int) -> Nystroem:
    """scikit-learn's features of the same Gaussian kernel, fitted on the first rows."""
    features = Nystroem(gamma=0.5 / bandwidth**2, n_components=atoms, random_state=0)
    return features.fit(X[:FITTED_ON])


def stochastic_gradient(bandwidth: float, atoms: int) -> dict[str, Play]:
    """Nystroem and SGD with each step size; the time is that of fitting the features too."""

    def play_sgd(steps: str, stream: Stream) -> np.ndarray:
        return predict_then_fit(nystroem(stream.X, bandwidth, atoms), steps, stream)

    return {f"scikit-learn Nystroem | {steps}": partial(play_sgd, steps) for steps in STEPS}


def predict_then_fit(features: Nystroem, steps: str, stream: Stream) -> np.ndarray:
    """Mini-batches: predict all of one, then learn it. The first is predicted as 0."""
    model = SGDRegressor(random_state=0, **STEPS[steps])
    prediction = np.zeros(len(stream))
    for start in range(0, len(stream), MINI_BATCH):
        rows = slice(start, start + MINI_BATCH)
        Z = features.transform(stream.X[rows])
        if start:
            prediction[rows] = model.predict(Z)
        model.partial_fit(Z, stream.y[rows])
    return prediction
