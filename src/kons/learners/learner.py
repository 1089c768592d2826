"""What a learner is: the facts about it, and the one verb under ``advance``.

::

    interleave(X, waiting, y, known)    predict the rows of X in order; between them, learn rows that waited

With a delay of k rows, those ``known`` before row t are the rows up to t - 1 - k: whoever evaluates says
which, and a learner is not told why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kons.arrays import Integers, Matrix, as_objects, as_points, as_row
from kons.compilation import cpu_clock
from kons.learners.labels import Labels, object_array
from kons.learners.late import LateTargets
from kons.learners.queue import Kept
from kons.learners.trace import Trace
from kons.policies import Fixed
from kons.tables import Encoder, Growth

__all__ = ["Interleaved", "Learner"]


class Interleaved(NamedTuple):
    """What became of rows that were predicted while others were learned."""

    trace: Trace
    """Of the rows predicted; where they were taken one by one only prediction, kept and size."""
    probabilities: Matrix | None
    """Of labels: a column per class in the order of ``classes``, 0 where a class was not known."""
    waiting: list[Kept]
    """What is kept of those among them that were not learned."""
    pause: float | None = None
    """CPU seconds of the longest step, learning and predicting; None: rows were not taken one by one."""


class Learner(LateTargets):
    """The facts about a learner, with what is assumed of one that does not say.

    >>> from kons import AutoKONS
    >>> AutoKONS().units, AutoKONS().delay, AutoKONS().warming_up
    ('raw', 0, False)
    """

    kernel: Any = None
    """None: it has none, and takes rows of numbers."""
    loss: Any = None
    """What it minimises; None: not told, its scores estimate means."""
    bound: float = 1.0
    """Inside :class:`kons.Scaled`, targets lie within plus and minus this."""
    second_order: str | None = None
    """The curvature of a Newton learner: certificates and :func:`kons.evaluation.fit_batch` need one."""
    forgetting: float = 1.0
    policy: Any = None
    """Who becomes an atom."""
    max_atoms: Any = None
    """At most so many points are kept, of each expert if there are several; None: no limit."""
    delay: int | None = None
    """It keeps targets back by itself, so many rows; None: whoever evaluates it does."""
    task: Any = "auto"
    """What it is for: "regression", "classification", or "auto", what the stream looks like."""
    units: str = "any"
    """"scaled": it wants features and targets about 1, and :func:`kons.evaluate` wraps it in
    :class:`kons.Scaled`; "raw": it finds units by itself; "any": it takes what comes."""
    closed: bool = False
    """Whether labels that it was not told of are refused."""
    supervised: bool = True
    """Whether it learns targets."""
    looks_back: bool = False
    """Whether ``predict`` takes ``recent_targets=True``: each row as if it came next in the stream."""
    multi_output: bool = False
    """Whether it takes y of shape (n, k)."""
    outputs: Any = None
    """How many targets a row has, where y is of shape (n, k); None: one number, or not known yet."""
    shares_dictionary: bool = False
    """Whether several targets are learned over one dictionary, whatever they are: it then has ``arrange``."""
    saves: Any = True
    """Whether it has ``parameters()``, ``state()`` and ``from_state``."""
    trace_columns: Any = ()
    """Columns of its traces besides prediction, loss, kept and size."""
    size: Any = None
    """How many points it keeps; None: not told."""
    warming_up: Any = False
    """Whether rows are still only kept; ``finish_warmup()`` then ends that."""
    targets_clipped: Any = 0
    """How many targets were clipped for learning."""
    expert_names: Any = ()
    """All experts that may be at work at some time, by their number."""
    shares: Any = MappingProxyType({})
    """The weight of each expert at work, by name."""
    answers_away: Any = ()
    """Those experts at work that need no last targets: they answer ``predict`` away from the stream."""
    relevances: Any = None
    """How much each feature counts."""
    column_relevances: Any = None
    """The same by column of a table, its features together."""
    online_effective_dimension: Any = None
    """The sum of the leverages, where it has a preconditioner."""
    log_determinant: Any = None
    """log det(A/alpha), where it has a preconditioner."""
    _width: int | None = None
    # Verbs, of a learner that has them: see lacks.
    advance: Any
    capture: Any
    close: Any
    explain: Any
    finish_warmup: Any
    novelty: Any
    predict: Any
    predict_interval: Any
    predict_interval_one: Any
    predict_proba: Any
    predict_set: Any
    state: Any
    predict_proba_one: Any
    probabilities: Any
    classes: Any
    widen: Any
    parameters: Any
    _all_or_nothing: Any

    rows_noted: Any = 0
    """How many rows were looked at for events."""
    events: Any = ()
    """What was noticed of rows: :mod:`kons.learners.events`."""
    on_event: Any = None
    """Called with each event."""
    encoder: Any = None
    """From records to rows, of a learner that has met a table."""
    feature_names: Any = None
    """What the places of a row are called, where columns have names."""

    def take_encoder(self, encoder: Encoder) -> None:
        """Let the encoder of a stream be a part of the learner; one that takes no tables lets it be."""

    def grow(self, growth: Growth) -> None:
        """Features joined: rows are wider from now on."""
        self.widen(growth.columns, growth.earlier[None])

    @property
    def rows_kept(self) -> int:
        """How many rows it ever kept, those among them that made room for others later."""
        return int(self.size or 0)

    @property
    def accepts(self) -> Any:
        """What a point is: "vectors", rows of numbers, or "objects"."""
        return "vectors" if self.kernel is None else self.kernel.accepts

    @property
    def labelled(self) -> bool:
        """Whether it predicts labels, and has ``classes`` and probabilities."""
        return bool(self.task == "classification")

    @property
    def questions(self) -> tuple[str, ...]:
        """The verbs by which it is asked about rows."""
        of_labels = ("decision_function", "predict_proba", "predict_proba_one") if self.labelled else ()
        return ("predict", "predict_one", *of_labels)

    @property
    def name(self) -> str:
        """In a word."""
        return type(self).__name__

    @property
    def core(self) -> Any:
        """The learner of one problem inside all that wraps it."""
        return self

    # ---- the one verb under advance

    def interleave(self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers) -> Interleaved:
        """Predict the rows of X in order, and learn others in between: those that wait, then X itself.

        ``y`` are the targets of the first of these rows, those that wait among them; before row i of X the
        first ``known[i]`` are learned, behind the last row the rest of ``y``. With none that wait and
        ``known`` = 0, 1, 2, ... this is ``advance``, at its speed. Else rows are taken one by one, and an
        error leaves the rows before it learned. Rows that are not learned yet are handed back, to be kept by
        the caller (they are not in :attr:`queue`, nor in files) and given again.

        >>> import numpy as np
        >>> from kons import EmbeddedKONS, Gaussian, Squared
        >>> learner, X = EmbeddedKONS(Gaussian(), Squared()), np.zeros((3, 1))
        >>> found = learner.interleave(X, [], [1.0], np.array([0, 0, 1]))  # targets one row late
        >>> found.trace.prediction[:2], len(found.waiting), learner.rows_seen
        (array([0., 0.]), 2, 1)
        >>> found = learner.interleave(X[:0], found.waiting, [1.0, 1.0], np.empty(0, int))
        >>> learner.rows_seen
        3
        """
        if not waiting and len(y) == len(X) and np.array_equal(known, np.arange(len(X))) and len(X):
            trace = self.advance(X, y)
            probabilities = np.nan_to_num(self.probabilities(trace["scores"])) if self.labelled else None
            return Interleaved(trace, probabilities, [])
        return self.one_by_one(X, waiting, y, known)

    def one_by_one(
        self, X: Any, waiting: Sequence[Kept], y: Any, known: Integers, *, at_once: bool = False
    ) -> Interleaved:
        """As :meth:`interleave`, with ``predict_one`` and ``learn_one``, and timed row by row.

        ``at_once``: each row is learned before the next is predicted, and so need not be kept.
        """
        rows, learned, targets = list(waiting), 0, _each(y)
        predictions: list[Any] = []
        shares: list[Mapping[Any, float]] = []
        sizes: list[int] = []
        pause, began = 0.0, cpu_clock()
        for i, stop in enumerate([*known.tolist(), len(targets)]):
            for kept, target in zip(rows[learned:stop], targets[learned:stop], strict=True):
                if at_once:
                    self.learn_one(kept[0], target)
                else:
                    self._learn_kept(kept, target)
            learned = stop
            sizes.append(self.size or 0)
            if i < len(X):
                prediction, share = self._predicted_with_shares(X[i])
                predictions.append(prediction)
                shares.append(share)
                rows.append((X[i],) if at_once else self._keep(X[i]))
            now = cpu_clock()
            pause, began = max(pause, now - began), now
        kept_rows, size = np.diff(sizes) > 0, np.array(sizes[1:], dtype=np.int64)
        left = rows[learned:]
        if not self.labelled:
            own = rows[len(waiting) :]
            scales = None if at_once or not own else [self._scale_in(kept) for kept in own]
            # Before the first row tells how many targets there are, a number stands for all.
            shape = max((np.shape(prediction) for prediction in predictions), default=())
            found = np.empty((len(X), *shape))
            for i, prediction in enumerate(predictions):
                found[i] = prediction
            scale = None
            if scales is not None and all(its is not None for its in scales):
                scale = np.stack([np.broadcast_to(its, shape) for its in scales])
            trace = Trace(kept=kept_rows, size=size, prediction=found, scale=scale)
            return Interleaved(trace, None, left, pause)
        classes = Labels(self.classes)
        probabilities = np.zeros((len(X), len(classes)))
        for row, share in zip(probabilities, shares, strict=True):
            row[classes.find(list(share))] = list(share.values())
        trace = Trace(kept=kept_rows, size=size, prediction=object_array(predictions))
        return Interleaved(trace, probabilities, left, pause)

    def _scale_in(self, kept: Kept) -> Any:
        """How large the residual of a row was expected to be, of which this is kept; None: not told."""
        return None

    def _predicted_with_shares(self, x: Any) -> tuple[Any, Mapping[Any, float]]:
        """What ``predict_one`` says, and of labels the probabilities."""
        if not self.labelled:
            return self.predict_one(x), {}
        shares: Mapping[Any, float] = self.predict_proba_one(x)
        most = max(shares.values(), default=0.0)
        best = [label for label, share in shares.items() if share == most]
        # Probabilities rise with scores: only ties need to ask.
        return best[0] if len(best) == 1 else self.predict_one(x), shares

    # ---- verbs that all share

    def lacks(self, *verbs: str) -> list[str]:
        """Those of the verbs (or ``classes``) that it does not have."""
        return [verb for verb in verbs if not hasattr(self, verb)]

    def anew(
        self, bandwidths: tuple[float, float] | None = None, move: Callable[[Any], Any] | None = None
    ) -> Any:
        """A new one of its kind, that has learned nothing.

        In other units: ``bandwidths`` for those that are "auto", by distances and absolute ones; ``move`` for
        atoms that were given.
        """
        return type(self)(**self._parameters_in(bandwidths, move))

    def _parameters_in(
        self, bandwidths: tuple[float, float] | None, move: Callable[[Any], Any] | None
    ) -> dict[str, Any]:
        parameters: dict[str, Any] = dict(self.parameters())
        if bandwidths is not None and self.kernel is not None:
            parameters["kernel"] = self.kernel.resolved(*bandwidths)
        policy = parameters.get("policy")
        if move is not None and isinstance(policy, Fixed):
            parameters["policy"] = Fixed(move(policy.atoms))
        return parameters

    def _facts(self) -> dict[str, str]:
        """What a notebook shows beside the parameters."""
        return {}

    # ---- the border

    def _as_points(self, X: Any) -> Any:
        if self.accepts == "objects":
            return as_objects(X)
        return as_points(X, width=self._width)

    def _as_point(self, x: Any) -> Any:
        if self.accepts == "objects":
            return as_objects([x], name="x")
        return as_row(x, width=self._width)


def _each(y: Any) -> list[Any]:
    """Targets one by one: numbers, labels, or rows of several numbers."""
    return y.tolist() if isinstance(y, np.ndarray) and y.ndim == 1 else list(y)
