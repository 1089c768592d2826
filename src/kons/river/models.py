"""River's estimators: a learner in raw units, which takes dicts and frames by itself, under River's verbs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from river import base, conf

from kons.errors import ConfigurationError, InputError
from kons.kernels import Kernel
from kons.learners.labels import stored_labels
from kons.learners.protocol import as_learner
from kons.learners.queue import Identifier, Queue
from kons.losses import Loss
from kons.recipes import for_task, together
from kons.recipes.registry import recipe_of
from kons.stored import Stored
from kons.tables import Records, is_table, records_of

__all__ = ["KONSClassifier", "KONSMultiTargetRegressor", "KONSRegressor"]

# Rows that tell the scales, for a learner that waits for them.
WARMUP = 200
#: Parameters of the learner that have a name of their own here; None leaves them to the learner.
_NAMED = (
    *("kernel", "bandwidth", "scale", "warmup", "seed", "loss"),
    *("regularization", "max_atoms", "forgetting"),
)


class OnDicts:
    """What both estimators share. What becomes of a feature: :mod:`kons.tables.features`."""

    _task: Literal["regression", "classification"]
    _several = False

    def __init__(
        self,
        learner: str = "auto",
        kernel: str | Kernel | None = None,
        bandwidth: float | Literal["auto"] = "auto",
        regularization: float | None = None,
        max_atoms: int | None = None,
        forgetting: float | None = None,
        loss: str | Loss | None = None,
        scale: Literal["auto", "none"] = "auto",
        warmup: int | None = None,
        seed: int = 0,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.max_atoms = max_atoms
        self.forgetting = forgetting
        self.loss = loss
        self.scale = scale
        self.warmup = warmup
        self.seed = seed
        self.parameters = parameters
        named = {name: getattr(self, name) for name in _NAMED}
        if "warmup" in recipe_of(learner).accepts:
            named["warmup"] = WARMUP if warmup is None else warmup
        self._core: Any = as_learner(
            for_task(self._task, learner, **together(named, parameters, "parameters"))
        )
        if self._several and not self._core.multi_output:
            raise ConfigurationError(
                f'{learner!r} learns one target a row: choose another learner, such as "auto" or "embedded", '
                "or one KONSRegressor for each target."
            )

    # ---- learning

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn one row: features by name, and its target."""
        self._core.learn_one(x if type(x) is dict else _as_dict(x), y)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame in order: the same as one by one, faster.

        Of pandas, or any that narwhals knows. All of them or, after an error, none.
        """
        records, targets = self._records(X), _as_list(y)
        if len(targets) != len(records):
            raise InputError(
                f"y has {len(targets)} value(s), X has {len(records)} row(s): expected one per row."
            )
        if targets:
            self._core.advance(records, targets)

    def _records(self, X: Any) -> Records:
        """The rows of a frame, which may lack columns, as dicts may."""
        if isinstance(X, (Mapping, list, tuple)) or not is_table(X):
            raise InputError(
                f"X is a {type(X).__name__}, expected a frame, such as pandas.DataFrame, with one row per "
                "example: for one example there are learn_one and predict_one."
            )
        encoder = self._core.encoder
        return records_of(X, None if encoder is None else encoder.columns, complete=False)

    # ---- targets that come late

    def ask(self, x: dict[Any, Any], id: Identifier) -> Any:
        """What ``predict_one`` says of a row, which then waits for its target: see :meth:`tell`.

        It is learned as it was predicted: features that get columns while it waits are not known in it. The
        first row of all tells which columns there are. Identifiers: see :meth:`kons.EmbeddedKONS.ask`.
        """
        return self._core.ask(_as_dict(x), id)

    def tell(self, id: Identifier, y: Any) -> None:
        """Learn the row that was asked under this id: see :meth:`kons.EmbeddedKONS.tell`."""
        self._core.tell(id, y)

    def forget(self, id: Identifier) -> None:
        """Drop the row that was asked under this id: it is never learned."""
        self._core.forget(id)

    @property
    def queue(self) -> Queue:
        """Rows that were asked and wait: ``pending``, ``ids``, ``most``, ``dropped``, ``repeated``."""
        queue: Queue = self._core.queue
        return queue

    # ---- predicting

    def _predicted(self, verb: str, X: Any) -> Any:
        """What the learner says of rows that come next in the stream; None before it has learned any."""
        records = self._records(X)
        if not (self.rows_seen and len(records)):
            return None
        return getattr(self._core, verb)(
            records, **({"recent_targets": True} if self._core.looks_back else {})
        )

    # ---- looking

    @property
    def core(self) -> Any:
        """The learner inside, in raw units: it takes the same dicts, and frames."""
        return self._core

    @property
    def rows_seen(self) -> int:
        """How many rows were learned."""
        return self._core.rows_seen or 0

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on, besides the parameters. A copy."""
        return {"core": self._core.state()}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of the parameters and :meth:`state`: it goes on bit for bit."""
        model = cls(**parameters)
        stored = Stored(state, cls.__name__)
        model._core = model._core.anew().resume(stored.take("core"))
        stored.finish()
        return model

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"max_atoms": 30, "parameters": {"experts": 4}}
        yield {"learner": "embedded"}
        yield {"learner": "embedded", "warmup": 20, "max_atoms": 30}


class KONSRegressor(OnDicts, base.MiniBatchRegressor):
    """Second-order kernel regression on a stream of dicts.

    Features and target may have any units. Features may come, go and change places:

    - a number that is missing (no key, None, NaN) is replaced by the mean of its values so far, and from the
      first gap on a feature says where it is missing;
    - text becomes an indicator for each frequent level, up to 64, then also the mean target of the level;
    - dates become days, and the time of day, week and year where these vary;
    - a feature that comes late is used from the row after its first value on.

    The default learner, :class:`kons.AutoKONS`, chooses scales, relevance, bandwidth and memory as it learns,
    and looks at the targets learned last. Any other reads the scales off its first ``warmup`` rows, predicted
    by their running mean.

    Gaps of all rows are counted in ``model.core.encoder.gaps``. A value of another kind than its column is
    read as that kind, or else is a gap, which is told once as a :class:`~kons.errors.KonsWarning`. Infinity
    and values that are neither numbers, booleans, text nor dates are refused, and a call that raises changes
    nothing.

    A row costs O(B^2) with B atoms, and the default has several dictionaries: row by row some hundred
    microseconds (``learn_many`` takes less), where ``learner="embedded"`` takes some ten. Not for sparse
    features, such as bags of words: what is not there counts as not known, not as 0, and a kernel looks at
    every column of a row.

    Parameters
    ----------
    learner
        A name in :data:`kons.recipes.RECIPES`.
    kernel
        A name in :data:`kons.recipes.KERNELS`, or a kernel. None takes the learner's own: Gaussian, or for
        "auto" several.
    bandwidth
        Of the kernel, in scaled units; "auto" reads it off the rows.
    regularization
        Of the learner; None takes its own. So with the next two.
    max_atoms
        How many points are kept at most.
    forgetting
        Below 1, the past is discounted by this factor a row. Not for "auto", which has several memories.
    loss
        A name in :data:`kons.recipes.LOSSES`, or a loss. None takes the squared loss. Not for "auto".
    scale
        "none" leaves features as they are, for pipelines that have scaled them. Not for "auto".
    warmup
        How many rows tell the scales; None for 200. More of them tell better how far the target may go, which
        matters where it has a trend; meanwhile nothing but their mean is predicted. Not for "auto", which
        waits for nothing.
    seed
        Of the learner's coins, where it tosses some.
    parameters
        Others of the learner, by name.

    Examples
    --------
    >>> from river import compose, preprocessing
    >>> from kons.river import KONSRegressor
    >>> model = KONSRegressor()
    >>> for i in range(100):
    ...     x = {"hours": i % 7, "weather": "rain" if i % 3 else "sun"}
    ...     y = 2.0 * x["hours"] + (x["weather"] == "sun")
    ...     guess = model.predict_one(x)
    ...     model.learn_one(x, y)
    >>> bool(abs(model.predict_one({"weather": "rain", "hours": 2}) - 4.0) < 0.1)  # the row that comes next
    True
    >>> pipeline = preprocessing.StandardScaler() | KONSRegressor("embedded", scale="none")
    """

    _task = "regression"

    def predict_one(self, x: dict[Any, Any], with_interval: bool = False, level: float = 0.9) -> Any:
        """The prediction for one row; 0 before anything was learned.

        ``with_interval``: as in ``river.conf``, an interval that holds the target in a share ``level`` of
        the rows, infinite before 20 residuals are known.

        >>> model = KONSRegressor()
        >>> model.predict_one({"size": 1.0}, with_interval=True)
        Interval(lower=-inf, upper=inf)
        """
        row = x if type(x) is dict else _as_dict(x)
        if with_interval:
            return conf.Interval(*self._core.predict_interval_one(row, level).tolist())
        prediction: float = self._core.predict_one(row)
        return prediction

    def predict_many(self, X: Any) -> Any:
        """The predictions for the rows of a frame, as a series of its kind."""
        found = self._predicted("predict", X)
        return _series(X, [0.0] * len(X) if found is None else found.tolist(), "float64")


class KONSMultiTargetRegressor(OnDicts, base.MultiTargetRegressor):
    """Several numbers a row, by name, over one stream of dicts.

    The first row names the targets; every other has the same ones, in any order. Learners that have several
    (``"auto"``, ``"embedded"``, ``"ridge"``, ``"pkawv"`` ...) learn them together, at the cost that
    :class:`kons.EmbeddedKONS` and :class:`kons.AutoKONS` state; others are refused. Parameters and features
    are those of :class:`KONSRegressor`.

    Parameters
    ----------
    learner, kernel, bandwidth, regularization, max_atoms, forgetting, loss, scale, warmup, seed
        As in :class:`KONSRegressor`.
    parameters
        Others of the learner, by name.

    Examples
    --------
    >>> from kons.river import KONSMultiTargetRegressor
    >>> model = KONSMultiTargetRegressor("embedded", warmup=50)
    >>> for i in range(200):
    ...     model.learn_one({"hours": i % 7}, {"price": 2.0 * (i % 7), "weight": 1.0 - i % 7})
    >>> {name: round(value, 1) for name, value in model.predict_one({"hours": 3}).items()}
    {'price': 6.0, 'weight': -2.0}
    """

    _task = "regression"

    _several = True
    _names: tuple[Any, ...] = ()

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"max_atoms": 30, "parameters": {"experts": 4}}
        yield {"learner": "embedded", "warmup": 5, "max_atoms": 30}

    @property
    def targets(self) -> tuple[Any, ...]:
        """Their names, in the order of the first row; empty before it."""
        return self._names

    def learn_one(self, x: dict[Any, Any], y: dict[Any, float], **kwargs: Any) -> None:
        """Learn one row: features by name, and its targets by name."""
        values = self._values(y)
        super().learn_one(x, values)
        self._names = self._names or tuple(y)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a frame, with their targets as a frame: the same as one by one, faster."""
        targets = records_of(y)
        names = self._names or tuple(y.columns)
        self._values(dict.fromkeys(y.columns, 0.0), names)
        columns = [targets.values(name, "number") for name in names]
        super().learn_many(X, np.stack(columns, axis=1))
        self._names = names

    def tell(self, id: Identifier, y: dict[Any, float]) -> None:
        """Learn the row that was asked under this id."""
        values = self._values(y)
        super().tell(id, values)
        self._names = self._names or tuple(y)

    def ask(self, x: dict[Any, Any], id: Identifier) -> dict[Any, float]:
        """What ``predict_one`` says of a row, which then waits for its targets: see :meth:`tell`."""
        return self._named(super().ask(x, id))

    def predict_one(
        self, x: dict[Any, Any], with_interval: bool = False, level: float = 0.9
    ) -> dict[Any, Any]:
        """The prediction for each target of one row; empty before anything was learned.

        ``with_interval``: an interval for each, as that of :meth:`KONSRegressor.predict_one`.
        """
        row = x if type(x) is dict else _as_dict(x)
        if with_interval:
            ends = np.reshape(self._core.predict_interval_one(row, level), (-1, 2)).tolist()
            return dict(zip(self._names, itertools.starmap(conf.Interval, ends), strict=False))
        return self._named(self._core.predict_one(row))

    def _named(self, values: Any) -> dict[Any, float]:
        return dict(zip(self._names, np.ravel(values).tolist(), strict=True)) if self._names else {}

    def _values(self, y: Any, names: tuple[Any, ...] = ()) -> list[float]:
        names = self._names or names
        if not isinstance(y, Mapping) or not y or (names and set(y) != set(names)):
            expected = f"of {', '.join(map(repr, names))}" if names else "of at least one"
            seen = ", ".join(map(repr, y)) if isinstance(y, Mapping) else type(y).__name__
            raise InputError(f"y has {seen or 'no target'}, expected a dict {expected}: target -> number.")
        return [y[name] for name in names or tuple(y)]

    def state(self) -> dict[str, Any]:
        """Everything the next row depends on, besides the parameters. A copy."""
        return super().state() | {"targets": list(self._names)}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], state: dict[str, Any]) -> Self:
        """The inverse of the parameters and :meth:`state`: it goes on bit for bit."""
        names = Stored({"targets": state.get("targets")}, cls.__name__)
        model = super().from_state(parameters, {key: v for key, v in state.items() if key != "targets"})
        model._names = tuple(stored_labels(names, "targets"))
        if len(model._names) != (model._core.outputs or 0):
            raise names.error(f"{len(model._names)} names for {model._core.outputs or 0} targets")
        return model


class KONSClassifier(OnDicts, base.MiniBatchClassifier):
    """Second-order kernel classification on a stream of dicts: labels of any kind, new ones at any time.

    One problem per class in shared dictionaries (:class:`kons.Classifier`). Parameters and the treatment
    of features are those of :class:`KONSRegressor`; learners with a loss take the logistic one unless another
    is named, and in a warm-up the most frequent label is predicted.

    Parameters
    ----------
    learner, kernel, bandwidth, regularization, max_atoms, forgetting, loss, scale, warmup, seed
        As in :class:`KONSRegressor`.
    parameters
        Others of the learner, by name.

    Examples
    --------
    >>> from kons.river import KONSClassifier
    >>> model = KONSClassifier()
    >>> for i in range(60):
    ...     model.learn_one({"size": i % 10}, "large" if i % 10 > 6 else "small")
    >>> model.predict_one({"size": 9}), model.predict_one({"size": 1})
    ('large', 'small')
    >>> sorted(model.predict_proba_one({"size": 9}))
    ['large', 'small']
    """

    _task = "classification"

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self._core.classes)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The most probable label of one row; None before anything was learned."""
        return self._core.predict_one(x if type(x) is dict else _as_dict(x))

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of each label; empty before anything was learned."""
        shares: dict[Any, float] = self._core.predict_proba_one(x if type(x) is dict else _as_dict(x))
        return shares

    def predict_set_one(self, x: dict[Any, Any], level: float = 0.9) -> list[Any]:
        """Labels, the most probable first, that hold the true one in a share ``level`` of the rows."""
        named: list[Any] = self._core.predict_set_one(x if type(x) is dict else _as_dict(x), level)
        return named

    def predict_many(self, X: Any) -> Any:
        """The labels of the rows of a frame, as a series of its kind."""
        found = self._predicted("predict", X)
        return _series(X, [None] * len(X), "object") if found is None else _series(X, found.tolist())

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of the rows of a frame, as a frame with a column per label."""
        found = self._predicted("predict_proba", X)
        return _frame(X, {} if found is None else dict(zip(self.classes, found.T, strict=True)))


def _as_dict(x: Any) -> dict[Any, Any]:
    """A mapping as a plain dict: others may answer for what they do not hold, and keep the answer."""
    if isinstance(x, Mapping):
        return dict(x)
    hint = ": use x.to_dict()" if hasattr(x, "to_dict") else ""
    raise InputError(f"x is a {type(x).__name__}, expected a dict: feature -> value{hint}.")


def _as_list(y: Any) -> list[Any]:
    """Targets as plain Python values."""
    for listing in ("tolist", "to_list", "to_pylist"):
        if hasattr(y, listing):
            y = getattr(y, listing)()
    try:
        return list(y)
    except TypeError:
        raise InputError(f"y is a {type(y).__name__}, expected one target per row.") from None


def _series(X: Any, values: list[Any], kind: str | None = None) -> Any:
    """One value per row, as a series of the frame's own library."""
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.Series(values, index=X.index, dtype=kind)
    import narwhals as nw

    backend = nw.get_native_namespace(nw.from_native(X, eager_only=True))
    return nw.new_series("prediction", values, backend=backend).to_native()


def _frame(X: Any, columns: dict[Any, Any]) -> Any:
    """Some numbers per row, as a frame of that library; names are text where it has no others."""
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.DataFrame(columns, index=X.index, columns=list(columns))
    import narwhals as nw

    named = {str(name): values for name, values in columns.items()}
    backend = nw.get_native_namespace(nw.from_native(X, eager_only=True))
    return nw.from_dict(named, backend=backend).to_native()
