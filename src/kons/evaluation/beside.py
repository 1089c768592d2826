"""The baselines of a task, on the same rows as a learner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.evaluation.baselines import (
    Baseline,
    LabelBaseline,
    LastLabel,
    MajorityClass,
    Persistence,
    RunningMean,
)
from kons.evaluation.delay import Known
from kons.evaluation.linear import OnlineLinear
from kons.evaluation.logistic import OnlineLogistic
from kons.state import Count, Field, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["BASELINES", "Beside"]

# The linear baselines keep a matrix of this width squared.
MOST_FEATURES = 300

BASELINES: dict[str, dict[str, Callable[[], Baseline]]] = {
    "regression": {
        "constant": RunningMean,
        "persistence": Persistence,
        "linear": partial(OnlineLinear, standardize=True),
    },
    "classification": {"constant": MajorityClass, "persistence": LastLabel, "linear": OnlineLogistic},
}


class _ByName(Field):
    """Baselines by name; None before the first block, whose features tell which there can be."""

    undoes = True

    def mark(self, part: Any, name: str) -> Any:
        return {key: baseline.mark() for key, baseline in (getattr(part, name) or {}).items()}

    def restore(self, part: Any, name: str, mark: Any) -> None:
        for key, where in mark.items():
            getattr(part, name)[key].restore(where)

    def save(self, part: Any, name: str) -> Any:
        baselines = getattr(part, name)
        return None if baselines is None else {key: each.state() for key, each in baselines.items()}

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        if stored.is_nothing(key):
            stored.nothing(key)
            return None
        saved = stored.inner(key)
        part.make([known for known in BASELINES[part.task] if known in saved])
        for known, baseline in part.each.items():
            baseline.load_state(saved.inner(known))
        saved.finish()
        return part.each


class Beside(Part):
    """The baselines of a task by name, made for the first block of rows.

    >>> beside = Beside("regression", wanted=True)
    >>> beside.begin(np.zeros((5, 400)))
    'no linear baseline: its cost grows as the square of the features, and 400 are more than 300.'
    >>> list(beside.each)
    ['constant', 'persistence']
    """

    STATE = fields(each=_ByName(), width=Count())

    def __init__(self, task: str, wanted: bool) -> None:
        self.task, self._wanted = task, wanted
        #: The features of the first block: those that join later are not the linear baseline's.
        self.width = 0
        self.each: dict[str, Baseline] | None = None

    def make(self, names: Sequence[str]) -> None:
        """These, that have seen nothing."""
        self.each = {name: BASELINES[self.task][name]() for name in names}

    def begin(self, X: Any) -> str:
        """Make those that fit these rows; returns what is to be said about it, if anything."""
        names = [*BASELINES[self.task]] if self._wanted else []
        width = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else None
        self.width = width or 0
        fits = not names or (width is not None and width <= MOST_FEATURES)
        self.make(names if fits else [name for name in names if name != "linear"])
        if fits:
            return ""
        if width is None:
            return "no linear baseline: the inputs are no rows of numbers."
        return (
            "no linear baseline: its cost grows as the square of the features, and "
            f"{width:,} are more than {MOST_FEATURES}."
        )

    def play(
        self, X: Any, targets: NDArray[Any], known: Known
    ) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """The loss of each on these rows, with what was known before each.

        And, of labels, how probable each found that with code 1.
        """
        if not self.each:
            return {}, {}
        if self.width and X.shape[1] > self.width:
            waited = [(kept[0][: self.width],) for kept in known.waited]
            X, known = np.ascontiguousarray(X[:, : self.width]), known._replace(waited=waited)
        rows, losses, scores = known.points(X), {}, {}
        for name, baseline in self.each.items():
            asked = X, rows, known.targets, known.before
            if isinstance(baseline, LabelBaseline):
                codes, scores[name] = baseline.play_scored(*asked)
                losses[name] = (codes != targets).astype(np.float64)
            else:
                losses[name] = (baseline.play(*asked) - targets) ** 2
        return losses, scores
