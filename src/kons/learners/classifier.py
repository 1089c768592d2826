"""Any number of classes: labels become targets -1 and +1, one a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector, as_row_values, require_integer
from kons.errors import ConfigurationError, InputError, TargetError
from kons.learners.labels import Codes, KnownLabels, Labels, as_label, as_labels
from kons.learners.newton import NewtonLearner
from kons.learners.scores import OfLabels, best_of
from kons.learners.separate import Separate
from kons.learners.stream import Wrapper
from kons.learners.trace import Trace
from kons.state import Inner, Sizes, fields
from kons.stored import Stored

__all__ = ["Classifier"]


class Classifier(OfLabels, Wrapper):
    """Classes of any kind and number by one-vs-rest: each has its own score, the highest is predicted.

    ::

        class k:     target +1 in rows of the class, -1 in all others,   score f_k
        predicted:   argmax_k f_k,  over the classes met before the row

    A class may come at any time, and when it was first named changes nothing: what its function would have
    learned before is what that of *a class that never came* has, all targets -1; so one more is kept for it,
    and a new class starts as its copy. With :class:`~kons.EmbeddedKONS` the scores are its functions for
    several targets, over one dictionary; other learners are kept once per class. The built-in losses are
    symmetric, l(p, y) = l(-p, -y), so that opposite targets have opposite functions, to the last bit: there,
    two classes cost two functions (one, if no other can come).

    Parameters
    ----------
    learner:
        What learns each problem, not yet taught: one of kons with a loss that takes the targets -1 and +1, or
        one of your own (:mod:`kons.learners.protocol`), whose prediction estimates their mean. It is a
        pattern, and stays as it is.
    classes:
        All classes there will ever be, if they are known: another label is then refused, and the function
        of the class that never came is spared, half of the cost with two classes.

    Not for thousands of classes: each costs a function of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from kons import Classifier, EmbeddedKONS, Gaussian, Logistic
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0.5, "right", np.where(X[:, 1] > 0, "up", "down"))
    >>> model = Classifier(EmbeddedKONS(Gaussian(), Logistic(), bound=4.0, second_order="hessian"))
    >>> trace = model.advance(X, y)
    >>> bool(trace.loss[-100:].mean() < 0.15), model.predict([[2.0, 0.0], [-1.0, 2.0]]).tolist()
    (True, ['right', 'up'])
    """

    task = "classification"
    STATE = fields(_labels=KnownLabels(), _functions=Inner(make=lambda model: model._arrange()))

    def __init__(self, learner: Any, classes: Sequence[Any] | None = None) -> None:
        super().__init__(learner, "a learner of one problem such as EmbeddedKONS(...)")
        pattern = self._pattern
        if pattern.labelled:
            raise ConfigurationError(f"{pattern.name} predicts labels already, expected one of numbers.")
        self._width, self._kept = pattern._width, pattern.size or 0  # given atoms are there from the start
        self.units: str = pattern.units
        try:
            if self.loss is not None:
                self.loss.check_targets([-1.0, 1.0], pattern.bound)
        except TargetError as error:
            raise ConfigurationError(
                f"{self.loss!r} with bound={pattern.bound:g} does not take the targets -1 and +1: "
                "use Logistic, SquaredHinge, Hinge, or Squared with a bound of at least 1."
            ) from error
        if isinstance(classes, str) or not (classes is None or hasattr(classes, "__len__")):
            raise ConfigurationError(f"classes is {classes!r}, expected a list of all labels, or None.")
        self._labels = Labels([] if classes is None else as_labels(classes, len(classes), "classes"))
        if classes is not None and not len(self._labels) == len(classes) > 0:
            raise ConfigurationError(f"classes is {classes!r}, expected labels that differ from each other.")
        #: All classes there will ever be; None: others may come.
        self._given = None if classes is None else self.classes
        self.closed: bool = classes is not None
        shares, one = pattern.shares_dictionary, pattern.anew()
        one._followed_elsewhere = one.inside = True
        self._functions: Any = one if shares else Separate(one, 0 if self.closed else 1)
        # Opposite functions need one that can be turned round, and a loss that does not mind.
        self._symmetric = isinstance(one, NewtonLearner) and self.loss.code is not None
        self._places: list[tuple[int, float]] = []
        self._arrange()

    # ---- learning

    def advance(self, X: Any, y: Any, block_size: int | None = None, sample_weight: Any = None) -> Trace:
        """Predict, then learn, each row of X in order; all of them or, after an error, none.

        The trace has the predicted labels (None before any class is known), the 0/1 error times the
        sample weight, and ``scores``: a column per class in the order of :attr:`classes` after the call, NaN
        in rows before the class was known. ``novelty`` is that of the class that never came.
        """
        points = self._as_points(X)
        labels = as_labels(y, len(points))
        weights = None
        if sample_weight is not None:
            weights = as_row_values(sample_weight, len(points), name="sample_weight", minimum=0.0)
        limit = len(points)
        if block_size is not None:
            limit = require_integer(block_size, "block_size", at_least=1)
        with self._all_or_nothing():
            before = len(self._labels)
            codes = self._codes(labels)
            learned = self._functions.advance(
                points, np.where(codes[:, None] == self._owners, 1.0, -1.0), limit, weights
            )
            self._count(points, int(np.count_nonzero(learned.kept)))
        scores = self._scores_of(learned["prediction"])
        for code in range(before, scores.shape[1]):
            scores[: int(np.argmax(codes == code)) + 1, code] = np.nan
        wrong = (best_of(scores) != codes).astype(np.float64)
        return Trace(
            prediction=self.labels_of(scores),
            loss=wrong if weights is None else wrong * weights,
            scores=scores,
            kept=learned.kept,
            size=np.minimum(self._sizes(learned.kept), learned.size),
            novelty=learned.novelty if np.ndim(learned.novelty) < 2 else learned["novelty"][:, 0],
            rounding_clips=learned.rounding_clips,
        )

    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a block of one."""
        label = as_label(y)
        code = self._labels.code(label)
        if code is None or self._width is None:
            points = self._as_point(x)
            with self._all_or_nothing():
                self._learn_one(x, int(self._codes([label])[0]))
                self._count(points, 0)
            return
        self._learn_one(x, code)
        self._rows_seen += 1

    def _learn_one(self, x: Any, code: int) -> None:
        before = self._functions.rows_kept
        self._functions.learn_one(x, [1.0 if code == owner else -1.0 for owner in self._owners])
        self._kept += int(self._functions.rows_kept != before)

    # ---- predicting

    @property
    def classes(self) -> list[Any]:
        """The labels, in order of first appearance."""
        return list(self._labels.known)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label with the highest score for each row; the first of several. Changes nothing."""
        return self.labels_of(self.decision_function(X))

    def predict_one(self, x: Any) -> Any:
        """The label with the highest score, or None before any class is known."""
        if not len(self._labels):
            self._as_point(x)
            return None
        values = self._functions.predict_one(x).tolist()
        scores = [values[place] * sign for place, sign in self._places]
        return self._labels.known[scores.index(max(scores))]

    def decision_function(self, X: Any) -> Matrix:
        """The clipped score of each row and class, columns in the order of :attr:`classes`."""
        points = self._as_points(X)
        if not len(self._labels):
            raise InputError("no class is known yet: learn some rows first, or give classes=.")
        return self._scores_of(self._functions.predict(points))

    def _scores_of_one(self, x: Any) -> Matrix:
        if not len(self._labels):
            self._as_point(x)
            return np.empty((1, 0))
        return self._scores_of(self._functions.predict_one(x)[None])

    def labels_of(self, scores: Matrix) -> NDArray[Any]:
        """The label with the highest score in each row, as objects; None where all are NaN."""
        return self._labels.decode(best_of(scores))

    # ---- looking

    @property
    def size(self) -> int:
        """How many rows some function of a class keeps: those ever kept, or fewer where there is a budget.

        A budget is of each function, and two classes have one, the opposite of itself.
        """
        return int(min(self._kept, self._functions.size))

    @property
    def atoms(self) -> Any:
        """The points of the shared dictionary, in the order they entered. A copy."""
        return self._sharing.atoms

    def novelty(self, X: Any) -> Vector:
        """How new each point is, to the class that never came: see :class:`~kons.EmbeddedKONS`."""
        novelty = self._sharing.novelty(X)
        return novelty if novelty.ndim == 1 else np.ascontiguousarray(novelty[:, 0])

    @property
    def _sharing(self) -> Any:
        if not self._pattern.shares_dictionary:
            raise AttributeError(f"{self._pattern.name} has no dictionary that its classes share.")
        return self._functions

    def anew(self, bandwidths: tuple[float, float] | None = None, move: Any = None) -> Classifier:
        """A new one of its kind: see :meth:`Learner.anew`."""
        return type(self)(self._pattern.anew(bandwidths, move), self._given)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return {"learner": self.learner, "classes": self._given}

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        super()._loaded(stored, sizes)
        if (self._given is not None and self.classes != self._given) or (
            self._rows_seen and not self.classes
        ):
            raise stored.error(f"{self.classes!r} cannot be its classes")
        functions = self._functions
        if functions.rows_seen not in (None, self._rows_seen) or functions.outputs != len(self._owners):
            raise stored.error(
                f"{functions.outputs} functions of {functions.rows_seen} rows cannot be those of "
                f"{len(self.classes)} classes and {self._rows_seen} rows"
            )

    # ---- inside

    def widen(self, columns: int = 1, samples: Any = None) -> None:
        """More features from now on, 0 in all that was kept: see :meth:`StreamConsumer.widen`."""
        self._require_widenable(columns)
        if self._width is not None:
            self._functions.widen(columns)
            self._width += columns
        self._widen_queue(np.zeros(columns))

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """Columns of its traces besides prediction, loss, kept and size."""
        return ("scores", "novelty") if self._pattern.shares_dictionary else ("scores",)

    def _codes(self, labels: list[Any]) -> Codes:
        """The numbers of the rows' labels; new classes are let in, unless the set is closed."""
        before, codes = len(self._labels), self._labels.learn(labels, self.closed)
        if len(self._labels) > before:
            self._arrange()
        return codes

    # ---- inside: classes and functions

    def _arrange(self) -> Any:
        """The functions, with one for each class there is.

        Notes the function of each, with its sign there, and each function's class.
        """
        unseen, classes = 0 if self.closed else 1, len(self._labels)
        places = [(unseen + code, 1.0) for code in range(classes)]
        if self._symmetric and classes == 2:
            places[1] = (unseen, -1.0)
        if self._symmetric and classes == 1 and not self.closed:
            places[0] = (0, -1.0)  # the opposite of the unseen one
        owners = [-1] * unseen + [code for code, (_, sign) in enumerate(places) if sign > 0.0]
        # Classes that were there keep their function; a new one takes that of the class that never came.
        before = [(0, 1.0), *self._places]
        known = [before[owner + 1] if owner + 1 < len(before) else before[0] for owner in owners]
        self._functions.arrange([place for place, _ in known], [sign for _, sign in known])
        self._places, self._owners = places, owners
        return self._functions

    def _scores_of(self, values: Matrix) -> Matrix:
        """Of each class, from the values of the functions."""
        scores = [sign * values[:, place] for place, sign in self._places]
        return np.stack(scores, axis=1) if scores else values[:, :0]

    def _facts(self) -> dict[str, str]:
        return {"classes": ", ".join(map(repr, self._labels.known[:20]))}
