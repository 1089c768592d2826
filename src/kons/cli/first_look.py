"""A first look at a table: what its columns need before a kernel learner can take them, and told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError, InputError
from kons.scaling import RobustScaling
from kons.streams import Table, open_stream, read_table
from kons.streams.table import read_rows

__all__ = ["BOUND", "prepare", "read_labelled"]

BOUND = 1.0
LARGEST = 1e100  # of a scaled feature: its square is still a number

LossName = Literal["squared", "logistic", "squared-hinge"]


def read_labelled(
    source: Any,
    target: str,
    *,
    drop: Sequence[str],
    rows: int | None,
    tell: Callable[[int], object],
) -> tuple[Table, list[str] | None]:
    """All rows as numbers: gaps of features at the mean so far, rows without target left out, two texts as
    0, 1.

    Returns the table, and the two texts.
    """
    stream = open_stream(source, target, drop=drop, on_bad_row="error", quiet=True)
    if stream.plan.target_kind == "number":
        table = read_table(source, target, drop=drop, rows=rows, tell=tell, on_bad_row="error")
        return table, None
    X, labels = read_rows(stream, rows, tell)
    names = sorted({str(label) for label in labels})
    if len(names) != 2:
        raise InputError(
            f"column {target!r} holds {len(names)} labels ({', '.join(names[:5])}), and a bound is proven "
            "for two, or for numbers."
        )
    y = np.array([float(str(label) == names[1]) for label in labels])
    return Table(stream.features[: X.shape[1]], stream.target, X, y), names


def prepare(table: Table, loss: LossName | None) -> tuple[Matrix, Vector, dict[str, Any]]:
    """Scaled rows and targets, and how they were scaled, as JSON can hold it.

    ``X = (x - feature_medians)/feature_spreads``, ``y = (t - target_middle)/target_reach``. Two distinct
    targets mean classification unless a loss was asked for.
    """
    low, high = float(table.y.min()), float(table.y.max())
    if low == high:
        raise InputError(
            f"column {table.target!r} is {low:g} in all of the {len(table):,} row(s): nothing to learn."
        )
    labelled = bool(np.all((table.y == low) | (table.y == high)))
    if loss is None:
        loss = "logistic" if labelled else "squared"
    elif loss != "squared" and not labelled:
        values = len(np.unique(table.y))
        raise ConfigurationError(
            f"--loss {loss} is for two labels, and column {table.target!r} has {values:,} different values: "
            "use --loss squared."
        )
    middle, reach = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    if reach < np.finfo(np.float64).tiny:
        raise InputError(f"column {table.target!r} hardly varies: {low:g} to {high:g}; scale it up.")
    y = np.clip((table.y - middle) / reach, -BOUND, BOUND)
    if loss != "squared":
        y = np.where(table.y == high, 1.0, -1.0)
    varies = table.X.min(axis=0) != table.X.max(axis=0)
    if not varies.any():
        raise InputError(f"no column but {table.target!r} varies: nothing to predict it from.")
    names = np.array(table.features, dtype=object)
    X, scaling = _scaled(np.ascontiguousarray(table.X[:, varies]), names[varies])
    told = {
        "target": table.target,
        "task": "regression" if loss == "squared" else "classification",
        "loss": loss,
        "features": names[varies].tolist(),
        "feature_medians": scaling.medians.tolist(),
        "feature_spreads": scaling.spreads.tolist(),
        "features_by_standard_deviation": names[varies][scaling.rare].tolist(),
        "constant_features_left_out": names[~varies].tolist(),
        "target_middle": middle,
        "target_reach": reach,
        "labels": None if loss == "squared" else [low, high],
    }
    return X, y, told


def _scaled(X: Matrix, names: Vector) -> tuple[Matrix, RobustScaling]:
    """To median 0 and interquartile range 1; plainly: a certificate is about the rows as they are."""
    scaling = RobustScaling.fit(X, limit=math.inf)
    scaled = scaling.transform(X)
    sound = (np.abs(scaled) <= LARGEST).all(axis=0)
    sound &= ~scaling.constant & (scaling.spreads < np.finfo(np.float64).max)
    if not sound.all():
        at = int(np.argmin(sound))
        raise InputError(
            f"column {names[at]!r} goes from {X[:, at].min():g} to {X[:, at].max():g}, beyond what can be "
            f"scaled: transform it, or drop it (--drop {names[at]!r})."
        )
    return scaled, scaling
