"""What a loss is given: predictions and targets of any shape, a bound, the targets to check."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kons.arrays import Vector, require_scale
from kons.errors import TargetError

__all__ = ["pair", "require_labels", "require_within", "shaped"]


def pair(prediction: ArrayLike, target: ArrayLike) -> tuple[Vector, Vector]:
    """Fresh contiguous float64 copies of both, in their common shape."""
    shape = np.broadcast_shapes(np.shape(prediction), np.shape(target))
    predictions, targets = np.empty(shape), np.empty(shape)
    predictions[...], targets[...] = prediction, target
    return predictions, targets


def shaped(results: Vector, shape: tuple[int, ...]) -> float | Vector:
    """Flat results in the shape of :func:`pair`; a float where that is ()."""
    return results.reshape(shape) if shape else float(results[0])


def require_within(y: Any, bound: float) -> None:
    """Raise :class:`~kons.errors.TargetError` at the first target beyond the bound and rounding."""
    if type(y) is float and abs(y) <= bound:
        return
    bound = require_scale(bound, "bound")
    targets = np.asarray(y, dtype=np.float64).ravel()
    within = np.abs(targets) <= bound * (1.0 + 1e-9)
    if within.all():
        return
    at = int(within.argmin())
    raise TargetError(
        f"y[{at}] is {targets[at]:.10g}, beyond bound={bound:g}: scale or centre the target, "
        f"or raise bound (here to {np.abs(targets).max():.10g})."
    )


def require_labels(y: Any, labels: tuple[float, ...]) -> None:
    """Raise :class:`~kons.errors.TargetError` at the first target that is not one of the labels."""
    if type(y) is float and y in labels:
        return
    targets = np.asarray(y, dtype=np.float64).ravel()
    known = np.isin(targets, labels)
    if known.all():
        return
    at = int(known.argmin())
    seen = np.unique(targets)
    if labels != (-1.0, 1.0):
        expected = "one of " + ", ".join(f"{label:g}" for label in labels)
        hint = "map your labels to these, or name all of them in targets="
    elif np.isin(seen, (0.0, 1.0)).all():
        expected, hint = "-1 or +1", "map your labels, e.g. 2*y-1"
    elif seen.size == 2:
        expected, hint = "-1 or +1", f"map your labels, e.g. np.where(y == {seen[1]:g}, 1, -1)"
    else:
        expected, hint = "-1 or +1", "map your labels; if the target is a number, use Squared()"
    raise TargetError(f"y[{at}] is {targets[at]:.10g}, expected {expected}: {hint}.")
