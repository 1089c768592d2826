"""Models of other libraries, asked as learners are: to see whether ours is better than what one has.

::

    Refitted      scikit-learn, LightGBM, XGBoost ...: fitted again whenever 10 % more rows have come
    RiverModel    River: predict_one and learn_one, a dict a row

Every row is predicted before it is learned. What they are given is what all learners get: the numbers that
the encoder makes of a table, text as indicators or mean targets, dates as numbers, gaps filled and flagged;
River by the names of these features. They are for comparing: none is saved or resumed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kons.arrays import Integers, Matrix, as_targets, require_integer
from kons.compilation import cpu_clock
from kons.errors import ConfigurationError, KonsError, MissingExtraError
from kons.evaluation.window import Window
from kons.learners.labels import Labels, as_labels
from kons.learners.learner import Interleaved, Learner
from kons.learners.protocol import can_fit
from kons.learners.queue import Kept
from kons.learners.trace import Trace
from kons.tables import Encoder

__all__ = ["RIVALS", "Refitted", "Rival", "RiverModel", "as_rival", "make_rival"]

#: A model is fitted again when a tenth more rows have come, and at least so many.
LEAST, MORE = 50, 10
# Beyond this a prediction has no square.
LARGEST = 1e150


class Rival(Learner):
    """What models of other libraries share: their task, their labels, and errors told in a sentence."""

    units = "raw"
    saves = False
    model: Any
    task: str

    def __init__(self, model: Any, task: str) -> None:
        self.model, self.task = model, task
        self.encoder: Encoder | None = None
        self.rows_seen = 0
        self._labels = Labels()

    @property
    def name(self) -> str:
        """The model's; of a pipeline that of its last step, inside of what River wraps it in."""
        model = self.model
        while (inner := _inside(model)) is not None:
            model = inner
        return type(model).__name__

    @property
    def classes(self) -> list[Any]:
        """The labels that were learned, in order of first appearance."""
        return list(self._labels.known)

    def take_encoder(self, encoder: Encoder) -> None:
        """Features are called as the encoder of the stream calls them."""
        self.encoder = encoder

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Rows have more features from now on."""
        if self._width is not None:
            self._width += columns

    def advance(self, X: Any, y: Any, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order."""
        if sample_weight is not None:
            raise ConfigurationError(f"{self.name} is asked without weights of rows: leave class_weight out.")
        points = self._as_points(X)
        targets: Any = as_labels(y, len(points)) if self.labelled else as_targets(y, len(points))
        found = self.interleave(points, [], targets, np.arange(len(points)))
        said = found.trace["prediction"]
        if not self.labelled:
            return replace(found.trace, loss=(said - targets) ** 2)
        wrong = [float(label != target) for label, target in zip(said, targets, strict=True)]
        return replace(found.trace, loss=np.array(wrong), scores=found.probabilities)

    def probabilities(self, scores: Any) -> Any:
        """Of the scores in a trace, which are probabilities."""
        return scores

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Say what failed in a sentence. Warnings of the library are not those of who compares."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                yield
        except KonsError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split()).rstrip(".")
            said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
            raise KonsError(
                f"{self.name} could not {what} after {self.rows_seen:,} row(s): {said}."
            ) from error

    def _diverged(self) -> KonsError:
        return KonsError(
            f"{self.name} predicts no finite numbers any more after {self.rows_seen:,} row(s): it may need a "
            "scaler before it."
        )


class Refitted(Rival):
    """An estimator of scikit-learn's kind, fitted from scratch again whenever 10 % more rows have come.

    ::

        fits after 50, 100, ..., 500, 550, 605, ... rows:   next = n + max(50, n // 10)

    Until the first, and as long as there is one class, it predicts the mean or the shares of the labels so
    far. All rows are kept, or the last ``window``. It has one thread: CPU times are compared, and threads
    that wait for each other cost some. The estimator handed in stays as it is; ``fitted`` is the last copy
    of it that was fitted, on labels as numbers in their order of first appearance.

    >>> import kons
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from kons.evaluation import Refitted
    >>> from kons.streams import mackey_glass
    >>> kons.evaluate(Refitted(KNeighborsRegressor(), window=200), mackey_glass(400)).learner_name
    'KNeighborsRegressor'
    """

    rows_seen: int

    def __init__(self, model: Any, task: str | None = None, *, window: int | None = None) -> None:
        super().__init__(model, _task_of_estimator(model) if task is None else task)
        if self.task not in ("regression", "classification"):
            raise ConfigurationError(f'task is {task!r}, expected "regression" or "classification".')
        self.window: int | None = None if window is None else require_integer(window, "window", at_least=1)
        self.fitted: Any = None
        self._due = LEAST
        self._threads = ThreadpoolController()
        self._rows: Window | None = None  # targets, or codes of labels, in the first column

    # ---- learning

    def interleave(self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers) -> Interleaved:
        """As every learner; rows between two fits are predicted at once."""
        points = np.array([*(kept[0] for kept in waiting), *X]) if waiting else np.asarray(X)
        targets = np.asarray(self._labels.learn(y) if self.labelled else y, dtype=np.float64)
        said: list[NDArray[Any]] = []
        pause, i, learned = 0.0, 0, 0
        while i < len(X):
            began = cpu_clock()
            self._learn(points[learned : known[i]], targets[learned : known[i]])
            learned = int(known[i])
            # Up to the row before which the next fit is due; before the first, the mean moves with each row.
            ahead = self._due - self.rows_seen if self.rows_seen >= LEAST else 1
            stop = max(int(np.searchsorted(known, learned + ahead)), i + 1)
            taught = cpu_clock()
            said.append(self._said(np.asarray(X)[i:stop]))
            # Row by row the first of these would have had the fit, and each its part of the predicting.
            pause = max(pause, taught - began + (cpu_clock() - taught) / (stop - i))
            i = stop
        began = cpu_clock()
        self._learn(points[learned : len(targets)], targets[learned:])
        pause = max(pause, cpu_clock() - began)
        nothing = np.zeros(len(X), dtype=np.int64)
        left: list[Kept] = [(x.copy(),) for x in points[len(targets) :]]
        found = np.concatenate(said) if said else np.empty((0, len(self._labels)) if self.labelled else 0)
        trace = Trace(kept=nothing > 0, size=nothing, prediction=self._shown(found))
        return Interleaved(trace, found if self.labelled else None, left, pause)

    def one_by_one(
        self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers, *, at_once: bool = False
    ) -> Interleaved:
        """The same: its longest step is a fit, and no faster row by row."""
        return self.interleave(X, waiting, y, known)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row."""
        targets = self._labels.learn([y]) if self.labelled else as_targets([y], 1)
        self._learn(self._as_point(x), np.asarray(targets, dtype=np.float64))

    def _learn(self, points: Matrix, targets: NDArray[Any]) -> None:
        while len(points):
            part = self._due - self.rows_seen
            if self._rows is None:
                self._width = points.shape[1]
                self._rows = Window(self.window or sys.maxsize, 1 + self._width)
            self._rows.append(np.vstack([targets[:part], points[:part].T]))
            self.rows_seen += len(points[:part])
            points, targets = points[part:], targets[part:]
            if self.rows_seen == self._due:
                self._fit(self._rows.last())
                self._due += max(LEAST, self._due // MORE)

    def _fit(self, table: Matrix) -> None:
        targets, X = table[0].copy(), np.ascontiguousarray(table[1:].T)
        if self.labelled and (targets == targets[0]).all():
            self.fitted = None  # most classifiers refuse a single class
            return
        with self._telling("fit"), self._threads.limit(limits=1):
            self.fitted = _copied(self.model).fit(X, targets.astype(np.int64) if self.labelled else targets)

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Rows have more features from now on; those before had ``samples`` there."""
        super().widen(columns, samples)
        if self._rows is not None:
            before = self._rows.last()
            more = np.repeat(np.reshape(samples, (columns, 1)), before.shape[1], axis=1)
            self._rows = Window(self._rows.rows, len(before) + columns)
            self._rows.append(np.vstack([before, more]))

    # ---- predicting

    def _said(self, X: Any) -> NDArray[Any]:
        """Numbers; or of labels the probability of each, by code."""
        if self.fitted is None:
            return np.repeat(self._constant()[None], len(X), axis=0)
        # Features that joined since the last fit are not known to it.
        X = X[:, : getattr(self.fitted, "n_features_in_", X.shape[1])]
        with self._telling("predict"), self._threads.limit(limits=1):
            if not self.labelled:
                numbers: NDArray[Any] = np.asarray(self.fitted.predict(X), dtype=np.float64).reshape(len(X))
                if not (np.abs(numbers) < LARGEST).all():
                    raise self._diverged()
                return numbers
            shares = np.zeros((len(X), len(self._labels)))
            if callable(getattr(self.fitted, "predict_proba", None)):
                codes = np.asarray(self.fitted.classes_, dtype=np.int64)
                found = np.asarray(self.fitted.predict_proba(X), dtype=np.float64)
                if found.shape != (len(X), len(codes)) or not ((found >= 0.0) & (found <= 1.0 + 1e-6)).all():
                    raise ValueError(f"predict_proba gives no probabilities of {len(codes)} classes")
                shares[:, codes] = found
            else:
                said = np.asarray(self.fitted.predict(X))
                if not np.isin(said, np.arange(len(self._labels))).all():
                    raise ValueError(f"predict gives labels that were not learned: {said.ravel()[:3]}")
                shares[np.arange(len(X)), said.astype(np.int64)] = 1.0
        return shares

    def _constant(self) -> NDArray[Any]:
        targets = np.empty(0) if self._rows is None else self._rows.last()[0]
        if not self.labelled:
            return np.array(targets.mean() if len(targets) else 0.0)
        return np.bincount(targets.astype(np.int64), minlength=len(self._labels)) / max(len(targets), 1)

    def predict(self, X: Any) -> NDArray[Any]:
        """What the last fit says of each row."""
        return self._shown(self._said(self._as_points(X)))

    def _shown(self, said: NDArray[Any]) -> NDArray[Any]:
        if not self.labelled:
            return said
        return self._labels.decode(np.where(said.any(axis=1), said.argmax(axis=1) if said.size else -1, -1))

    def predict_one(self, x: Any) -> Any:
        """What the last fit says of a row."""
        return self.predict(self._as_point(x))[0]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class."""
        return self._said(self._as_points(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class."""
        return dict(zip(self.classes, self._said(self._as_point(x))[0].tolist(), strict=True))


class RiverModel(Rival):
    """A model of River, row by row: a dict of the features by name, and a number or a label.

    What it cannot say yet is the mean, or the most frequent label, so far. One that tells two classes apart
    is given False for the label that came first and True for the other.

    >>> from kons.evaluation import RiverModel
    >>> from river.linear_model import LinearRegression
    >>> RiverModel(LinearRegression()).advance([[1.0], [1.0]], [2.0, 2.0]).prediction.round(2)
    array([0.  , 0.08])
    """

    rows_seen: int

    def __init__(self, model: Any) -> None:
        super().__init__(model, _task_of_river(model))
        self._many: bool = self.labelled and model._multiclass
        self._names: list[str] = []
        self._total = 0.0
        self._counts: dict[Any, int] = {}

    def interleave(self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers) -> Interleaved:
        """As every learner, row by row."""
        at_once = not waiting and len(y) == len(X) and np.array_equal(known, np.arange(len(X)))
        return self.one_by_one(X, waiting, y, known, at_once=at_once)

    def one_by_one(
        self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers, *, at_once: bool = False
    ) -> Interleaved:
        """As every learner."""
        with self._telling("learn and predict"):
            return super().one_by_one(X, waiting, y, known, at_once=at_once)

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row."""
        target: Any = y
        if self.labelled:
            code = self._labels.code(y)
            if code is None:
                code = int(self._labels.learn([y])[0])
            label = self._labels.known[code]
            if code > 1 and not self._many:
                raise KonsError(
                    f"{self.name} tells two classes apart, and y holds a third, {y!r}: wrap it, "
                    "river.multiclass.OneVsRestClassifier(model)."
                )
            target = label if self._many else bool(code)
            self._counts[label] = self._counts.get(label, 0) + 1
        else:
            self._total += y
        self.model.learn_one(self._record(x), target)
        self.rows_seen += 1

    def predict(self, X: Any) -> NDArray[Any]:
        """What it says of each row."""
        with self._telling("predict"):
            said = [self.predict_one(x) for x in self._as_points(X)]
        return self._labels.decode(self._labels.find(said)) if self.labelled else np.array(said)

    def predict_one(self, x: Any) -> Any:
        """What it says of a row."""
        said = self.model.predict_one(self._record(x))
        if not self.labelled:
            number = self._total / max(self.rows_seen, 1) if said is None else float(said)
            if not abs(number) < LARGEST:
                raise self._diverged()
            return number
        label = said if said is None or self._many else self._own(said)
        return max(self._counts, key=self._counts.__getitem__, default=None) if label is None else label

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class, where it tells; else 1 for the one that it predicts."""
        try:
            shares = self.model.predict_proba_one(self._record(x))
        except NotImplementedError:
            label = self.predict_one(x)
            return {} if label is None else {label: 1.0}
        own = shares if self._many else {self._own(key): value for key, value in shares.items()}
        known = self._counts
        return {label: share for label, share in own.items() if label in known and share == share}

    def _own(self, flag: Any) -> Any:
        """The label that the model knows as False or True; None of one that has not come."""
        code = int(flag)
        return self._labels.known[code] if code < len(self._labels) else None

    def _record(self, x: Any) -> dict[str, float]:
        if len(x) != len(self._names):
            there = [] if self.encoder is None else self.encoder.features
            self._width = len(x)
            self._names = [*there, *(f"x{i}" for i in range(len(there), len(x)))][: len(x)]
        return dict(zip(self._names, np.asarray(x, dtype=np.float64).tolist(), strict=True))


# ---- whose models they are


def as_rival(thing: Any) -> Any:
    """A model of scikit-learn's or River's kind as a learner is asked; anything else as it is.

    >>> as_rival("auto")
    'auto'
    """
    if isinstance(thing, type):
        raise ConfigurationError(f"{thing.__name__} is a class, expected a model: {thing.__name__}(...).")
    if isinstance(thing, Learner):
        return thing
    river = sys.modules.get("river.base")
    if river is not None and isinstance(thing, river.Estimator):
        return RiverModel(thing)
    return Refitted(thing) if can_fit(thing) else thing


def _task_of_river(model: Any) -> str:
    from river import base

    return _one_task(model, isinstance(model, base.Classifier), isinstance(model, base.Regressor))


def _task_of_estimator(model: Any) -> str:
    if (base := sys.modules.get("sklearn.base")) is not None and isinstance(model, base.BaseEstimator):
        return _one_task(model, base.is_classifier(model), base.is_regressor(model))
    return "classification" if callable(getattr(model, "predict_proba", None)) else "regression"


def _one_task(model: Any, classifies: bool, regresses: bool) -> str:
    if classifies == regresses:
        raise ConfigurationError(
            f"{type(model).__name__} is neither a classifier nor a regressor: give one of them."
        )
    return "classification" if classifies else "regression"


def _inside(model: Any) -> Any:
    """The model that another is about, if it is about one."""
    steps = getattr(model, "steps", None)
    if steps:
        return list(steps.values())[-1] if isinstance(steps, Mapping) else steps[-1][1]
    return getattr(model, "_wrapped_model", None)


def _copied(model: Any) -> Any:
    if callable(getattr(model, "get_params", None)):
        from sklearn.base import clone

        return clone(model, safe=False)
    from copy import deepcopy

    return deepcopy(model)


# ---- by name


class Named(NamedTuple):
    """A rival that has a name: how it is made for a task, a seed and parameters, and a line about it."""

    make: Callable[..., Any]
    description: str


def _lightgbm(task: str, seed: int, window: int | None = None, **parameters: Any) -> Rival:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if task == "classification" else LGBMRegressor
    defaults = {"n_jobs": 1, "verbose": -1, "random_state": seed}
    return Refitted(kind(**(defaults | parameters)), task, window=window)


def _sklearn_boosting(task: str, seed: int, window: int | None = None, **parameters: Any) -> Rival:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    return Refitted(kind(**({"random_state": seed} | parameters)), task, window=window)


def _river_arf(task: str, seed: int, **parameters: Any) -> Rival:
    from river import forest, preprocessing

    given = {"seed": seed} | parameters
    if task == "classification":
        return RiverModel(forest.ARFClassifier(**given))
    # The linear models in its leaves diverge on raw columns, and nobody should be beaten for that.
    model: Any = preprocessing.StandardScaler() | forest.ARFRegressor(**given)
    return RiverModel(preprocessing.TargetStandardScaler(model))


def _river_linear(task: str, seed: int, **parameters: Any) -> Rival:
    from river import linear_model, multiclass, preprocessing

    if task == "classification":
        two = linear_model.LogisticRegression(**parameters)
        return RiverModel(preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(two))
    model: Any = preprocessing.StandardScaler() | linear_model.LinearRegression(**parameters)
    return RiverModel(preprocessing.TargetStandardScaler(model))


#: Models of other libraries by the names that ``kons compare`` and :func:`kons.evaluate` take.
RIVALS: dict[str, Named] = {
    "lightgbm": Named(_lightgbm, "LightGBM on one thread, fitted again whenever 10 % more rows have come"),
    "sklearn_boosting": Named(
        _sklearn_boosting, "scikit-learn's histogram gradient boosting, fitted likewise"
    ),
    "river_arf": Named(_river_arf, "River's adaptive random forest, row by row; for numbers between scalers"),
    "river_linear": Named(_river_linear, "River's linear or logistic regression, row by row; likewise"),
}


def make_rival(name: str, task: str, *, seed: int = 0, **parameters: Any) -> Rival:
    """A model of another library by its name in :data:`RIVALS`, with parameters that this library knows.

    Those that are fitted again also take ``window``: only the last so many rows are fitted.

    >>> make_rival("sklearn_boosting", "regression", max_iter=20, window=5000).name
    'HistGradientBoostingRegressor'
    """
    try:
        made: Rival = RIVALS[name].make(task, seed, **parameters)
    except ImportError:
        raise MissingExtraError(f"The learner {name!r}", "rivals") from None
    except KonsError:
        raise
    except Exception as error:
        given = ", ".join(f"{key}={value}" for key, value in parameters.items()) or "its defaults"
        raise ConfigurationError(f"{name!r} cannot be made of {given} ({error}).") from None
    return made
