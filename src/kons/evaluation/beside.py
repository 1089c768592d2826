"""The baselines of a task, on the same rows as a learner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.evaluation.baselines import Baseline, LastLabel, MajorityClass, Persistence, RunningMean
from kons.evaluation.delay import Known
from kons.evaluation.linear import OnlineLinear
from kons.evaluation.logistic import OnlineLogistic
from kons.state import Count, Flag, Inners, Part, fields

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


class Beside(Part):
    """The baselines of a task, made for the first block of rows.

    >>> beside = Beside("regression", wanted=True)
    >>> beside.begin(np.zeros((5, 400)))
    'no linear baseline: its cost grows as the square of the features, and 400 are more than 300.'
    >>> beside.names
    ['constant', 'persistence']
    """

    STATE = fields(begun=Flag(), width=Count(), _each=Inners(make=lambda beside: beside._made()))
    task: str
    begun: bool
    width: int

    def __init__(self, task: str, wanted: bool) -> None:
        self.task, self._wanted = task, wanted
        #: The features of the first block, 0 of what is no rows of numbers: those that join later are not the
        #: linear baseline's.
        self.begun, self.width = False, 0
        self._each: list[Baseline] = []

    @property
    def names(self) -> list[str]:
        """Of those that fit rows of so many features; none before the first block."""
        fits = 0 < self.width <= MOST_FEATURES
        there = BASELINES[self.task] if self._wanted and self.begun else ()
        return [name for name in there if fits or name != "linear"]

    def _made(self) -> list[Baseline]:
        return [BASELINES[self.task][name]() for name in self.names]

    def begin(self, X: Any) -> str:
        """Make those that fit these rows; returns what is to be said about it, if anything."""
        self.begun, self.width = True, X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 2 else 0
        self._each = self._made()
        if "linear" in self.names or not self._wanted:
            return ""
        if not self.width:
            return "no linear baseline: the inputs are no rows of numbers."
        return (
            "no linear baseline: its cost grows as the square of the features, and "
            f"{self.width:,} are more than {MOST_FEATURES}."
        )

    def play(
        self, X: Any, targets: NDArray[Any], known: Known
    ) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """The loss of each on these rows, with what was known before each.

        And, of labels, how probable each found that with code 1.
        """
        if not self._each:
            return {}, {}
        if self.width and X.shape[1] > self.width:
            waited = [(kept[0][: self.width],) for kept in known.waited]
            X, known = np.ascontiguousarray(X[:, : self.width]), known._replace(waited=waited)
        rows, losses, scores = known.points(X), {}, {}
        for name, baseline in zip(self.names, self._each, strict=True):
            played = baseline.play(X, rows, known.targets, known.before)
            if self.task == "regression":
                with np.errstate(over="ignore"):  # of a line far out
                    losses[name] = (played - targets) ** 2
            else:
                losses[name], scores[name] = (played[0] != targets).astype(np.float64), played[1]
        return losses, scores
