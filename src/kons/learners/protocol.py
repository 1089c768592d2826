"""Learners of anybody's own: the one place that looks at what an object has.

A learner of your own needs no base class. It has the verbs of one of the first two lines, and whatever else
it likes::

    predict_one(x)  learn_one(x, y)               rows one by one: x an array, y a number or a label
    predict(X)      advance(X, y)                 blocks: advance returns a Trace, or what it predicted
    predict_proba_one(x)  classes                 labels: a dict of label -> probability; the labels met
    parameters()  state()  from_state(p, s)       for files: arguments by name, what was learned, the way back
    ... and the facts of :class:`Learner`, as attributes: ``rows_seen``, ``size``, ``delay``, ``bound``, ...

:func:`as_learner` gives it the rest: verbs are made of those that are there (``ask``, ``tell`` and ``forget``
for late targets, too), facts have their defaults. Callers ask it once, at their border, and then never guess.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector, as_row_values, as_scalar, as_targets
from kons.errors import ConfigurationError
from kons.learners.labels import Labels, as_label, as_labels, object_array
from kons.learners.learner import Learner
from kons.learners.trace import Trace
from kons.stored import Stored

__all__ = ["Learner", "OwnLearner", "as_learner", "can_fit", "can_learn", "described", "verbs_of"]


#: What a learner of one's own may say about itself, as attributes of these names.
FACTS = (
    *("kernel", "loss", "bound", "second_order", "forgetting", "policy", "max_atoms", "delay"),
    *("units", "closed", "accepts", "size", "warming_up", "targets_clipped", "expert_names"),
    *("shares", "relevances", "online_effective_dimension", "log_determinant"),
)
VERBS = (
    *("advance", "update", "learn_one", "predict", "predict_one", "predict_proba", "predict_proba_one"),
    *("probabilities", "decision_function", "transform", "novelty", "parameters", "state", "from_state"),
)


#: Under this key rows that wait stand beside what a learner of one's own says of its state.
QUEUE = "late targets"


class OwnLearner(Learner):
    """Anybody's learner as kons asks it: the verbs that it lacks are made of those that it has.

    Rows and targets are checked before it sees them. One that kons has made for itself, inside of
    :class:`kons.Scaled` or :class:`kons.Classifier`, is put back as it was after an error, at the cost of a
    copy a call; one that was handed in keeps what it had learned up to then. Rows that were asked wait here,
    and not in it: see :meth:`~kons.learners.late.LateTargets.ask`.

    >>> class Mean:
    ...     total, rows = 0.0, 0
    ...     def predict_one(self, x):
    ...         return self.total / max(self.rows, 1)
    ...     def learn_one(self, x, y):
    ...         self.total, self.rows = self.total + y, self.rows + 1
    >>> learner = as_learner(Mean())
    >>> learner.advance([[0.0], [0.0]], [3.0, 5.0]).prediction, learner.predict([[1.0]])
    (array([0., 3.]), array([4.]))
    """

    def __init__(self, thing: Any, *, owned: bool = False) -> None:
        self.thing: Any = thing
        self._owned, self._marked = owned, False
        self._verbs = verbs_of(thing)
        self._has_classes = hasattr(thing, "classes")
        said = getattr(thing, "labelled", None)
        names = {"predict_proba", "predict_proba_one"} & self._verbs
        self._labelled = bool(said) if said is not None else self._has_classes or bool(names)
        takes = inspect.signature(thing.advance).parameters if "advance" in self._verbs else {}
        self._takes = {name for name in ("block_size", "sample_weight") if name in takes}
        self._met = Labels()
        self._rows = 0

    # ---- facts

    @property
    def rows_seen(self) -> int | None:
        return getattr(self.thing, "rows_seen", self._rows or None)

    @property
    def task(self) -> str:
        return str(getattr(self.thing, "task", "classification" if self._labelled else "auto"))

    @property
    def labelled(self) -> bool:
        return self._labelled

    @property
    def saves(self) -> bool:
        return not self.lacks("parameters", "state", "from_state")

    @property
    def questions(self) -> tuple[str, ...]:
        return tuple(verb for verb in (*super().questions, "transform", "novelty") if self._can(verb))

    @property
    def name(self) -> str:
        return type(self.thing).__name__

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self.thing.classes if self._has_classes else self._met.known)

    def lacks(self, *verbs: str) -> list[str]:
        return [verb for verb in verbs if not self._can(verb)]

    def _can(self, verb: str) -> bool:
        has = self._verbs
        if verb in has:
            return True
        if verb == "classes":
            return self._labelled
        if verb == "learn_one":
            return "advance" in has
        if verb in ("predict", "predict_one"):
            return bool({"predict", "predict_one"} & has)
        if verb == "advance":
            return "learn_one" in has and not self.lacks("predict_one")
        return verb in ("probabilities", "predict_proba_one") and "predict_proba_one" in has

    # ---- learning

    def advance(self, X: Any, y: Any, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order."""
        points = self._as_points(X)
        targets: Any = as_labels(y, len(points)) if self._labelled else as_targets(y, len(points))
        options: dict[str, Any] = {"block_size": block_size} if "block_size" in self._takes else {}
        weights = np.ones(len(points))
        if sample_weight is not None:
            weights = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
        if (weights != 1.0).any():
            if "sample_weight" not in self._takes:
                raise ConfigurationError(
                    f"{self.name} takes no sample_weight: give it an advance(X, y, sample_weight) that does."
                )
            options["sample_weight"] = weights
        by_blocks = "advance" in self._verbs and (not self._labelled or "probabilities" in self._verbs)
        with self._all_or_nothing():
            if not by_blocks:
                return self._by_rows(points, targets)
            before = self.size or 0
            said = self.thing.advance(points, targets, **options)
            trace: Trace = self._traced(said, targets, weights, before)
        self._count(points)
        return trace

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row."""
        points = self._as_point(x)
        target: Any = as_label(y) if self._labelled else float(as_scalar(y, name="y"))
        with self._all_or_nothing():
            if "learn_one" in self._verbs:
                self.thing.learn_one(points[0], target)
            else:
                self.thing.advance(points, np.array([target]) if not self._labelled else [target])
        self._count(points)

    def finish_warmup(self) -> None:
        """End the warm-up with the rows there are."""
        self.thing.finish_warmup()

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """Refused: it takes the features that it began with."""
        self._require_widenable(columns)

    def _require_widenable(self, columns: int) -> None:
        raise ConfigurationError(f"{self.name} cannot take more features than it began with.")

    def _by_rows(self, points: Any, targets: Any) -> Trace:
        found = self.one_by_one(points, [], targets, np.arange(len(points)))
        if not self._labelled:
            return replace(found.trace, loss=(found.trace["prediction"] - targets) ** 2)
        pairs = zip(found.trace["prediction"], targets, strict=True)
        wrong = np.array([predicted != label for predicted, label in pairs], dtype=np.float64)
        return replace(found.trace, loss=wrong, scores=found.probabilities)

    def _predicted_with_shares(self, x: Any) -> tuple[Any, Mapping[Any, float]]:
        return self._predicted(x), self._shares_of(x) if self._labelled else {}

    def _traced(self, said: Any, targets: Vector, weights: Vector, before: int) -> Trace:
        """What ``advance`` returned, as a trace."""
        if isinstance(said, Trace):
            if self._owned:  # inside Scaled, rows of the warm-up have none of the other columns
                return Trace(kept=said.kept, size=said.size, prediction=said.prediction, loss=said.loss)
            return said
        try:
            values = np.array(said, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != np.shape(targets):
            raise ConfigurationError(
                f"advance of {self.name} returned {type(said).__name__}, expected a kons.Trace, or the "
                f"number predicted for each of {len(targets)} row(s) before it was learned."
            )
        size = self.size or 0
        kept = np.zeros(len(weights), dtype=np.bool_)
        kept[-1] = size > before  # in some row of these
        loss = weights * (values - targets) ** 2
        return Trace(kept=kept, size=np.where(kept, size, before), prediction=values, loss=loss)

    def _count(self, points: Any) -> None:
        self._rows += len(points)
        if self.accepts == "vectors":
            self._width = points.shape[1]

    # ---- predicting

    def predict(self, X: Any) -> NDArray[Any]:
        """What it predicts for each row. Changes nothing."""
        points = self._as_points(X)
        if "predict" in self._verbs:
            predictions: NDArray[Any] = np.asarray(self.thing.predict(points))
            return predictions
        values = [self._predicted(x) for x in points]
        return object_array(values) if self._labelled else np.array(values, dtype=np.float64)

    def predict_one(self, x: Any) -> Any:
        """What it predicts for one row."""
        return self._predicted(self._as_point(x)[0])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, where it tells."""
        shares: NDArray[np.float64] = np.asarray(self.thing.predict_proba(self._as_points(X)))
        return shares

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class of one row."""
        return self._shares_of(self._as_point(x)[0])

    def probabilities(self, scores: Any) -> Any:
        """Of the scores in a trace, which are probabilities where it has no way of its own."""
        return self.thing.probabilities(scores) if "probabilities" in self._verbs else scores

    def _predicted(self, x: Any) -> Any:
        if "predict_one" in self._verbs:
            return self.thing.predict_one(x)
        return self.thing.predict(x[None] if isinstance(x, np.ndarray) else [x])[0]

    def _shares_of(self, x: Any) -> dict[Any, float]:
        shares: dict[Any, float] = dict(self.thing.predict_proba_one(x))
        if not self._has_classes:
            self._met.learn(list(shares))
        return shares

    # ---- files and copies

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return dict(self._saved("parameters")())

    def state(self) -> dict[str, Any]:
        """What it has learned, and the rows that wait for their targets, if any were asked."""
        late = {} if self._queue is None else {QUEUE: self._queue.state()}
        return dict(self._saved("state")()) | late

    def from_state(self, parameters: dict[str, Any], state: dict[str, Any]) -> OwnLearner:
        """One of its kind with these parameters, gone on to this state."""
        own = {name: value for name, value in state.items() if name != QUEUE}
        twin = OwnLearner(self._saved("from_state")(parameters, own), owned=self._owned)
        if QUEUE in state:
            stored = Stored(state[QUEUE], f"{self.name}, {QUEUE}")
            twin.queue.load_state(stored)
            twin.queue.require_shapes(twin.kept_shapes(), stored)
        return twin

    def load_state(self, stored: Stored, **sizes: Any) -> None:
        """Take what :meth:`state` said; it is checked by ``from_state``."""
        self.resume(stored.rest())

    def resume(self, state: Any) -> Self:
        """Itself, gone on to this state."""
        twin = self.from_state(self.parameters(), state)
        self.thing, self._queue = twin.thing, twin._queue
        return self

    def anew(
        self, bandwidths: tuple[float, float] | None = None, move: Callable[[Any], Any] | None = None
    ) -> Any:
        if "parameters" not in self._verbs:
            return OwnLearner(copy.deepcopy(self.thing), owned=True)
        return OwnLearner(type(self.thing)(**self._parameters_in(bandwidths, move)), owned=True)

    def mark(self) -> Any:
        """Where it stands, for :meth:`restore`: a copy."""
        late = copy.deepcopy(self._queue)
        return copy.deepcopy(self.thing), self._width, self._rows, list(self._met.known), late

    def restore(self, mark: Any) -> None:
        """Go back to a mark, once."""
        self.thing, self._width, self._rows, known, self._queue = mark
        self._met = Labels(known)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        mark = self.mark() if self._owned and not self._marked else None
        if mark is None:
            yield
            return
        self._marked = True  # the rows of a block need no marks of their own
        try:
            yield
        except BaseException:
            self.restore(mark)
            raise
        finally:
            self._marked = False

    def _saved(self, verb: str) -> Any:
        if verb not in self._verbs:
            raise ConfigurationError(
                f"{self.name} has no {verb}, which a file needs: a learner that is saved has parameters(), "
                "state() and the class method from_state(parameters, state)."
            )
        return getattr(self.thing, verb)

    def __repr__(self) -> str:
        kind: Any = type(self.thing)
        if kind.__repr__ is object.__repr__ and "parameters" in self._verbs:
            return described(self.name, self.parameters())
        return repr(self.thing)


def described(name: str, parameters: Mapping[str, Any]) -> str:
    """As it is written in Python."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def _told(fact: str) -> Any:
    """A fact as the learner tells it, or what is assumed."""

    def read(self: OwnLearner) -> Any:
        return getattr(self.thing, fact, None) if hasattr(self.thing, fact) else getattr(_DEFAULTS, fact)

    return property(read)


_DEFAULTS = Learner()
for _fact in FACTS:
    setattr(OwnLearner, _fact, _told(_fact))


def as_learner(thing: Any) -> Any:
    """What answers every question about a learner: itself, or a stand-in for one of somebody's own.

    Of what is no learner it knows the facts' defaults, and ``lacks`` names the verbs that are missing.

    >>> as_learner("text").lacks("predict", "advance"), as_learner("text").delay
    (['predict', 'advance'], None)
    """
    return thing if isinstance(thing, Learner) else OwnLearner(thing)


def verbs_of(thing: Any) -> frozenset[str]:
    """The verbs that it has itself.

    >>> from kons import KORS, Gaussian
    >>> sorted(verbs_of(KORS(Gaussian())))
    ['advance', 'from_state', 'parameters', 'state', 'transform', 'update']
    """
    return frozenset(verb for verb in VERBS if callable(getattr(thing, verb, None)))


def can_learn(thing: Any) -> bool:
    """Whether it can be taught rows with targets, and asked; a class, that makes learners, cannot.

    >>> from kons import KONS, KORS, Gaussian, Squared
    >>> can_learn(KONS(Gaussian(), Squared())), can_learn(KORS(Gaussian())), can_learn(KONS)
    (True, False, False)
    """
    if isinstance(thing, type) or (isinstance(thing, Learner) and not thing.supervised):
        return False
    return not as_learner(thing).lacks("advance", "learn_one", "predict_one")


def can_fit(thing: Any) -> bool:
    """Whether it is fitted to all rows at once, as estimators of scikit-learn are, and does not learn online.

    >>> from sklearn.linear_model import Ridge
    >>> can_fit(Ridge()), can_fit("text")
    (True, False)
    """
    fits = all(callable(getattr(thing, verb, None)) for verb in ("fit", "predict"))
    return fits and bool(as_learner(thing).lacks("advance"))
