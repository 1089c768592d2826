"""What a run leaves behind for people to look at: one number per row and quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector

__all__ = ["Trace"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Arrays with one entry per row, in stream order; what a learner does not know is None.

    Where rows have k targets, ``prediction`` and ``slope`` are (n, k), and so are the columns about A where
    each target has one of its own; sums are over all of them.

    Enough for the quantities of the regret bound with no second pass::

        online effective dimension   sum leverage,   leverage = w*q / (1 + w*q)
        log det(A/alpha)             sum log(1 + w*q)
        R_G                          sum g^2 q / (1 + w*q)

    with w the weight that entered A (0 if nothing did), q the inverse form before that, g the slope.

    >>> import numpy as np
    >>> from kons import KONS, Gaussian, Squared
    >>> trace = KONS(Gaussian(), Squared()).advance(np.eye(3), [1.0, -1.0, 0.5])
    >>> len(trace), trace.size.tolist()
    (3, [1, 2, 3])
    >>> bool(trace.online_effective_dimension <= trace.log_determinant)
    True
    """

    kept: NDArray[np.bool_]
    """The point entered, as decided by the learner's policy; True for all in exact KONS."""
    size: NDArray[np.int64]
    """How many points were kept so far, this row included."""
    prediction: NDArray[Any] | None = None
    """What was predicted before the row was learned: the clipped score; a label, for classifiers."""
    loss: Vector | None = None
    """The loss of that prediction, over all targets, times the row's sample weight; for classifiers the 0/1
    error."""
    scores: NDArray[np.float64] | None = None
    """The score of each class, one column each, NaN in rows before it was known (classifiers)."""
    slope: Vector | None = None
    """The derivative g of that loss."""
    weight: Vector | None = None
    """What entered A: ``eta*g^2``, or 0 where the point stayed out."""
    inverse_form: Vector | None = None
    """``q = phi^T A^-1 phi`` before the row was learned."""
    leverage: Vector | None = None
    """``w*q/(1 + w*q)``."""
    leverage_estimate: Vector | None = None
    """The over-estimate of Eq. 4 (Sketched-KONS, KORS)."""
    probability: Vector | None = None
    """The probability of being kept (Sketched-KONS, KORS)."""
    novelty: Vector | None = None
    """q plus the part outside the dictionary's span, over alpha (embedded learners)."""
    scale: Vector | None = None
    """How large the residual was expected to be, in units of the target: what intervals are made of."""
    expert: NDArray[np.int64] | None = None
    """The number of the expert that led the vote, 0 for the mean (AutoKONS)."""
    rounding_clips: int = 0
    """How often rounding pushed q below its exact lower bound, and it was raised to it."""

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column by name, or an error that lists what there is."""
        return self._need(name)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays that are there, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @property
    def online_effective_dimension(self) -> float:
        """``sum_t tau_tt``: the online effective dimension that these rows added."""
        return float(np.sum(self._added("online_effective_dimension")))

    @property
    def log_determinant(self) -> float:
        """What these rows added to ``log det(A/alpha)``."""
        return float(np.sum(self._added("log_determinant")))

    @property
    def gain(self) -> float:
        """``R_G = sum g^2 q/(1 + w*q)`` of Proposition 1."""
        return float(np.sum(self._added("gain")))

    def over_time(self, name: str) -> Vector:
        """A sum after each row: ``loss``, ``online_effective_dimension``, ``log_determinant`` or ``gain``.

        >>> import numpy as np
        >>> from kons import KONS, Linear, Squared
        >>> trace = KONS(Linear(), Squared()).advance(np.ones((3, 1)), [1.0, -1.0, 1.0])
        >>> bool((trace.over_time("online_effective_dimension") <= trace.over_time("log_determinant")).all())
        True
        """
        sums: Vector = np.cumsum(self._added(name))
        return sums

    def _added(self, name: str) -> Vector:
        """What each row adds to a sum."""
        if name == "loss":
            return self._need("loss")
        if name == "online_effective_dimension":
            return _by_row(self._need("leverage"))
        if name not in ("log_determinant", "gain"):
            raise KeyError(
                f"no sum {name!r}: there are loss, online_effective_dimension, log_determinant and gain."
            )
        w, q = self._need("weight"), self._need("inverse_form")
        if name == "log_determinant":
            return _by_row(np.log1p(w * q))
        slopes = self._need("slope") ** 2
        if slopes.ndim > q.ndim:  # of several functions, with one A
            slopes = _by_row(slopes)
        return _by_row(slopes * q / (1.0 + w * q))

    def _need(self, name: str) -> NDArray[Any]:
        columns = self.columns
        if name not in columns:
            raise KeyError(f"this trace has no column {name!r}: it has {', '.join(columns)}.")
        return columns[name]

    @classmethod
    def concatenate(cls, traces: Sequence[Trace]) -> Trace:
        """One trace of consecutive stretches of the same stream."""
        names = traces[0].columns
        arrays: dict[str, Any] = {}
        for name in names:
            parts = [trace.columns[name] for trace in traces]
            arrays[name] = np.concatenate(
                _as_wide_as_the_widest(parts) if name == "scores" else _alike(parts)
            )
        return cls(**arrays, rounding_clips=sum(trace.rounding_clips for trace in traces))

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(self.columns)})"


def _by_row(values: NDArray[Any]) -> Vector:
    """The sum over the targets of each row, where there are several."""
    return values if values.ndim == 1 else values.sum(axis=1)


def _alike(parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Of several targets: what was known of none of them is known of none."""
    width = max(part.shape[1:] for part in parts)
    return [
        part if part.ndim > len(width) else np.broadcast_to(part.T, (*width, len(part))).T for part in parts
    ]


def _as_wide_as_the_widest(scores: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Classes only come: NaN for those that an earlier stretch did not know."""
    width = max(part.shape[1] for part in scores)
    return [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in scores]
