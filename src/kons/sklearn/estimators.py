"""Regression and classification: a learner in raw units under scikit-learn's verbs."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager, suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from kons.arrays import Matrix, Vector
from kons.errors import InputError, KonsError
from kons.kernels import Kernel
from kons.learners import AutoKONS
from kons.learners.labels import object_array, stored_labels
from kons.learners.protocol import as_learner
from kons.recipes import for_task, together
from kons.recipes.registry import recipe_of
from kons.sklearn.border import Saved, checked_table, seed_of
from kons.stored import Stored
from kons.tables import Encoder, Records

__all__ = ["KONSClassifier", "KONSRegressor"]

# The logit of a class that was named and never met, or less: its probability is 0.
NEVER_MET = -1000.0
# Bytes that the type of labels may take, where they are shorter.
LONGEST_LABEL = 1 << 16
#: Rows whose predictions are explained for the importance of features.
EXPLAINED = 32
#: Parameters of the learner that have a name of their own here; None leaves them to the learner.
_NAMED = (
    *("kernel", "bandwidth", "scale", "warmup", "loss"),
    *("regularization", "max_atoms", "forgetting"),
)


class _Estimator(Saved):
    """What both share: parameters, one model in raw units."""

    _fitted = "model_"
    _task = ""
    seed_: int
    model_: Any

    def __init__(
        self,
        learner: str = "auto",
        *,
        kernel: str | Kernel | None = None,
        bandwidth: float | str = "auto",
        loss: Any = None,
        regularization: float | None = None,
        max_atoms: int | None = None,
        forgetting: float | None = None,
        options: dict[str, Any] | None = None,
        scale: str = "auto",
        warmup: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.loss = loss
        self.regularization = regularization
        self.max_atoms = max_atoms
        self.forgetting = forgetting
        self.options = options
        self.scale = scale
        self.warmup = warmup
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _model(self, seed: int, classes: Sized = ()) -> Any:
        """A model that has seen nothing; it is told of the places of the classes if it can be."""
        named = {name: getattr(self, name) for name in _NAMED} | {"seed": seed}
        if "classes" in recipe_of(self.learner).accepts:
            named["classes"] = list(range(len(classes))) or None
        given = together(named, self.options, "options")
        return as_learner(for_task(self._task, self.learner, **given))  # type: ignore[arg-type]

    def _weighed(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Vector | None]:
        """The rows that weigh something, and their weights: others are as good as not there."""
        if sample_weight is None:
            return X, y, None
        weights: Vector = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        there = weights > 0.0
        if not there.any():
            raise InputError("sample_weight is zero in every row: there is nothing to learn from.")
        return X.take(there) if isinstance(X, Records) else X[there], y[there], weights[there]

    def _learn(self, X: Any, y: Any, weights: Vector | None, classes: Sized = (), *, first: bool) -> None:
        """Let the model, a new one at first, learn rows."""
        seed = seed_of(self.random_state) if first else self.seed_
        model = self._model(seed, classes) if first else self.model_
        if first and not isinstance(X, Records) and not model.allows_missing:
            encoder = Encoder(labelled=model.labelled)  # a gap may come at any time
            encoder.begin_unnamed(np.zeros(X.shape[1]), 0)
            model.take_encoder(encoder)
        model.advance(X, y.tolist(), sample_weight=weights)
        self.seed_, self.model_ = seed, model  # now that nothing was refused

    def _end_warmup(self) -> Self:
        """Learn from what there is, where the model would wait for more rows."""
        if self.model_.warming_up:
            self.model_.finish_warmup()
        return self

    @property
    def feature_importances_(self) -> Vector:
        """The mean size of each column's contribution over a sample of the rows learned; they add up to 1.

        Contributions are those of ``model_.explain``, for classes to the log-odds of the predicted one: by
        how much predictions move, not whether they are right. 32 rows are explained, some milliseconds each;
        of several targets, it is the mean over them.
        """
        check_is_fitted(self, "model_")
        model, names = self.model_, getattr(self, "feature_names_in_", range(self.n_features_in_))
        totals = [dict.fromkeys(names, 0.0) for _ in range(model.outputs or 1)]
        points = model._sampled_rows()[0]
        for point in points[np.linspace(0, len(points) - 1, min(len(points), EXPLAINED)).astype(np.int64)]:
            row = point if model.encoder is None else model.encoder.decode(point)
            if model.encoder is not None and model.encoder.unnamed:  # which takes them with their gaps
                row = np.array([np.nan if value is None else value for value in row.values()])
            for output, total in enumerate(totals):
                reasons = model.explain(row, output=output, recent_targets=False, similar=0, paths=4)
                for name, contribution in reasons.contributions.items():
                    total[name] += abs(contribution)
        sizes = np.array([list(total.values()) for total in totals])
        shares: Vector = (sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
        return shares

    # ---- files

    def _fresh(self) -> Any:
        return self._model(self.seed_)

    def _learned(self) -> dict[str, Any]:
        return {"seed": self.seed_, "model": self.model_.state()}

    def _load(self, stored: Stored) -> None:
        self.seed_ = stored.integer("seed")
        self.model_ = self._fresh().resume(stored.take("model"))


class KONSRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Kernel regression in one pass: second-order steps in the span of a small dictionary, or of several.

    Parameters
    ----------
    learner:
        A name in :data:`kons.recipes.RECIPES`. ``"auto"`` is :class:`kons.AutoKONS`, which chooses scales,
        relevance of features, bandwidth and ridge as it learns; ``"embedded"`` is one dictionary, faster.
    kernel, bandwidth:
        A name in :data:`kons.recipes.KERNELS` or a kernel; ``"auto"`` finds a bandwidth in the rows. None
        takes the learner's own: Gaussian, or for ``"auto"`` several.
    loss:
        None for the squared loss, a name in :data:`kons.recipes.LOSSES`, or a loss. Not for ``"auto"``.
    regularization, max_atoms, forgetting:
        Of the algorithm; None takes its own. ``forgetting`` below 1 follows drift; ``"auto"`` takes none.
    options:
        Any other parameters of the algorithm, by name.
    scale:
        ``"none"`` leaves features as they are: in a pipeline behind a scaler. Not for ``"auto"``.
    warmup:
        Rows that the scales are read off; None for 500. ``fit`` does with fewer; ``partial_fit`` waits for
        them, and the mean is predicted meanwhile. Not for ``"auto"``, which waits for nothing.
    random_state:
        Of the coins, where the algorithm tosses some; None is 0: the same rows give the same model.

    Frames may hold text, dates and gaps, arrays NaN (:mod:`kons.tables.features` says what becomes of them).
    Columns of a frame are known by name: in another order they are the same columns.

    With y of shape (n, k) the learner has k targets (``"auto"``, ``"embedded"``, ``"ridge"``, ``"pkawv"``
    ...); one that learns a single target refuses it.

    Rows to be predicted are taken as exchangeable: no expert looks at the targets learned last.

    Attributes
    ----------
    model_:
        The learner in raw units: :class:`kons.AutoKONS`, or :class:`kons.Scaled` around another.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.sklearn import KONSRegressor
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(500, 1))
    >>> y = 50 + 20 * np.sin(X[:, 0] / 15)
    >>> bool(KONSRegressor().fit(X, y).score(X, y) > 0.99)
    True
    """

    _task = "regression"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(KonsError, TypeError):  # parameters that fit will refuse
            tags.target_tags.multi_output = bool(self._model(0).multi_output)
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows in one pass, from nothing."""
        return self._take(X, y, sample_weight, first=True)._end_warmup()

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows."""
        return self._take(X, y, sample_weight, first=not hasattr(self, "model_"))

    def _take(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> Self:
        several = self.__sklearn_tags__().target_tags.multi_output
        X, y = checked_table(self, X, y, y_numeric=True, multi_output=several, reset=first)
        self._learn(*self._weighed(X, y.astype(np.float64), sample_weight), first=first)
        return self

    def predict(self, X: Any) -> Vector | Matrix:
        """The predicted targets, (n,) or, of k targets, (n, k)."""
        check_is_fitted(self, "model_")
        predictions: Vector | Matrix = self.model_.predict(checked_table(self, X, reset=False))
        return predictions

    def predict_interval(self, X: Any, level: float = 0.9) -> Matrix:
        """Intervals that hold the target in a share ``level`` of the rows, (n, 2), around ``predict``.

        From the errors of the rows that were learned, each predicted before: see
        :mod:`kons.learners.predictive`. Infinite before 20 of them are known.

        >>> X = np.random.default_rng(0).uniform(size=(500, 1))
        >>> y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=500)
        >>> lower, upper = KONSRegressor().fit(X, y).predict_interval(X).T
        >>> bool(0.8 < np.mean((lower <= y) & (y <= upper)) < 0.97)
        True
        """
        check_is_fitted(self, "model_")
        intervals: Matrix = self.model_.predict_interval(checked_table(self, X, reset=False), level)
        return intervals


class KONSClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Kernel classification in one pass, one problem per class over shared dictionaries.

    Parameters are those of :class:`KONSRegressor`; ``loss=None`` is the logistic loss, whose scores are
    probabilities (``"auto"``: squared, its scores made probabilities). Labels may be of any kind
    scikit-learn takes.

    Parameters
    ----------
    class_weight:
        None, ``"balanced"`` (a row weighs n/(K n_c), in ``partial_fit`` by the counts of the rows so far) or
        a weight by label; times ``sample_weight``.
    learner, kernel, bandwidth, loss, regularization, max_atoms, forgetting, options, scale, warmup:
        As in :class:`KONSRegressor`.
    random_state:
        As in :class:`KONSRegressor`.

    Attributes
    ----------
    classes_:
        The labels, sorted.
    model_:
        The learner in raw units; its labels are places in ``classes_``.

    Examples
    --------
    >>> import numpy as np
    >>> from kons.sklearn import KONSClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> bool(KONSClassifier().fit(X, y).score(X, y) > 0.95)
    True
    """

    _task = "classification"
    class_counts_: Vector
    """How many rows of each class were learned."""

    def __init__(
        self,
        learner: str = "auto",
        *,
        kernel: str | Kernel | None = None,
        bandwidth: float | str = "auto",
        loss: Any = None,
        regularization: float | None = None,
        max_atoms: int | None = None,
        forgetting: float | None = None,
        options: dict[str, Any] | None = None,
        scale: str = "auto",
        warmup: int | None = None,
        class_weight: str | dict[Any, float] | None = None,
        random_state: Any = None,
    ) -> None:
        given = {
            name: value
            for name, value in locals().items()
            if name not in ("self", "__class__", "class_weight")
        }
        super().__init__(**given)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows in one pass, from nothing. A class whose rows all weigh 0 is not there."""
        return self._take(X, y, sample_weight, None, first=True)._end_warmup()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows. The first call needs ``classes``, all the labels there will be."""
        first = not hasattr(self, "model_")
        if first and classes is None:
            raise InputError("classes is None at the first call of partial_fit, expected all the labels.")
        named = self.classes_ if classes is None else _sorted(classes, "classes")
        if not len(named):
            raise InputError("classes is empty, expected all the labels.")
        if not first and not np.array_equal(named, self.classes_):
            raise InputError(f"classes is {classes!r}, at the first call it was {self.classes_.tolist()!r}.")
        return self._take(X, y, sample_weight, named, first=first)

    def _take(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool) -> Self:
        X, y = checked_table(self, X, y, reset=first)
        _require_labels(y)
        X, y, weights = self._weighed(X, y, sample_weight)
        known = _sorted(y, "y") if classes is None else classes
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        if (new := np.asarray(known[codes] != y)).any():
            raise InputError(
                f"y holds {y[new].tolist()[0]!r}, which is not among the classes {known.tolist()!r}."
            )
        counts: Vector = np.bincount(codes, minlength=len(known)).astype(np.float64)
        if not first:
            counts = counts + self.class_counts_
        if self.class_weight is not None:
            weights = (1.0 if weights is None else weights) * self._class_weights(known, counts)[codes]
        self._learn(X, codes, weights, known, first=first)
        self.classes_, self.class_counts_ = known, counts
        return self

    def _class_weights(self, known: Any, counts: Vector) -> Vector:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return np.asarray(counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1.0)))
        weights: Vector = compute_class_weight(self.class_weight, classes=known, y=known)
        return weights

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the highest score."""
        check_is_fitted(self, "model_")
        scores = self._scores(X)
        labels: NDArray[Any] = self.classes_[np.argmax(scores, axis=1)]
        return labels

    def decision_function(self, X: Any) -> Matrix | Vector:
        """The score of each class; with two of them, that of the second alone."""
        check_is_fitted(self, "model_")
        scores = self._scores(X)
        if len(self.classes_) == 2 and isinstance(self.model_, AutoKONS):  # a logit for each: the log-odds
            odds: Vector = np.logaddexp(0.0, -scores[:, 0]) - np.logaddexp(0.0, -scores[:, 1])
            return odds
        return scores if len(self.classes_) > 2 else scores[:, -1]

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class: see :meth:`kons.Classifier.predict_proba`."""
        check_is_fitted(self, "model_")
        probabilities: Matrix = self.model_.probabilities(self._scores(X))
        return probabilities

    def predict_set(self, X: Any, level: float = 0.9) -> list[NDArray[Any]]:
        """For each row the labels, the most probable first, that hold the true one in a share ``level``.

        Never empty: see :meth:`kons.AutoKONS.predict_set`.
        """
        check_is_fitted(self, "model_")
        named = self.model_.predict_set(checked_table(self, X, reset=False), level)
        return [self.classes_[places] for places in named]

    def _scores(self, X: Any) -> Matrix:
        """A column per class; one that was named and never met has a score that leaves it no probability."""
        scores: Matrix = self.model_.decision_function(checked_table(self, X, reset=False))
        met = self.model_.classes
        if met == list(range(len(self.classes_))):
            return scores
        lowest = np.minimum(scores.min(axis=1, keepdims=True) - 1.0, NEVER_MET)
        table: Matrix = np.repeat(lowest, len(self.classes_), axis=1)
        table[:, met] = scores
        return table

    def _fresh(self) -> Any:
        return self._model(self.seed_, self.classes_)

    def _learned(self) -> dict[str, Any]:
        classes = {"classes": self.classes_.tolist(), "classes_dtype": self.classes_.dtype.str}
        classes["class_counts"] = self.class_counts_.copy()
        return super()._learned() | classes

    def _load(self, stored: Stored) -> None:
        dtype, labels = stored.word("classes_dtype"), stored_labels(stored, "classes")
        try:
            kind = np.dtype(dtype)
            # A forged file could ask for gigabytes a label.
            longest = max([4 * len(label) for label in labels if isinstance(label, str)], default=0)
            if kind.kind not in "biufUO" or kind.itemsize > max(longest, LONGEST_LABEL):
                raise ValueError("that is no type of these labels")
            self.classes_ = object_array(labels) if kind.kind == "O" else np.array(labels, dtype=kind)
        except (TypeError, ValueError, OverflowError) as error:
            raise stored.error(f"classes cannot be of type {dtype!r}: {error}") from error
        self.class_counts_ = stored.array("class_counts", len(labels), at_least=0.0)
        super()._load(stored)
        places = range(len(labels))
        if not all(type(place) is int and place in places for place in self.model_.classes):
            raise stored.error(f"its model has other classes than {labels!r}")


def _sorted(labels: Any, name: str) -> NDArray[Any]:
    """The different labels, in order."""
    with _in_order(name):
        return np.unique(np.asarray(labels))


def _require_labels(y: Any) -> None:
    with _in_order("y"):
        check_classification_targets(y)


@contextmanager
def _in_order(name: str) -> Iterator[None]:
    try:
        yield
    except TypeError as error:
        raise InputError(
            f"{name} holds labels that scikit-learn cannot sort ({error}): "
            "turn all of them into text, or all into numbers."
        ) from error
