"""Rows of predictions as lines of CSV, and as columns of a trace file: the same rows, the same bytes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import MissingExtraError
from kons.evaluation import Scored
from kons.learners.labels import Labels
from kons.streams.arrow import arrow_numbers, arrow_texts

__all__ = ["as_csv", "as_table", "as_trace", "joined"]

#: What a trace file takes of a learner's trace, besides what every row has.
TRACED = ("leverage", "novelty", "size", "kept", "weight", "slope", "inverse_form", "expert")


def as_csv(scored: Scored, *, header: bool) -> bytes:
    """Lines ``row,target,prediction,lower,upper,loss[,probability][,novelty]``; what is not known is empty.

    Numbers have the fewest digits that give them back exactly.
    """
    columns = {"row": scored.row, "target": scored.target, "prediction": scored.prediction}
    if scored.probability is None:
        columns |= {"lower": scored.lower, "upper": scored.upper}
    columns["loss"] = scored.loss
    if scored.probability is not None:
        columns["probability"] = scored.probability
    if scored.trace.novelty is not None:
        columns["novelty"] = scored.trace.novelty
    return as_table(columns, header=header)


def as_table(columns: dict[str, NDArray[Any]], *, header: bool) -> bytes:
    """Columns of numbers or labels as lines of CSV."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        raise MissingExtraError("Writing CSV", "files") from None
    stream = io.BytesIO()
    if header:
        stream.write((",".join(map(_quoted, columns)) + "\n").encode("utf-8", "backslashreplace"))
    arrays = [_cells(pyarrow, values) for values in columns.values()]
    table = pyarrow.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    csv.write_csv(table, stream, csv.WriteOptions(include_header=False))
    return stream.getvalue()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


def _cells(pyarrow: Any, values: NDArray[Any]) -> Any:
    """Numbers as they are and NaN as nothing, or labels as text."""
    if values.dtype == object:
        return arrow_texts(pyarrow, [None if value is None else str(value) for value in values])
    return arrow_numbers(pyarrow, values)


def as_trace(scored: Scored, labels: Labels) -> dict[str, NDArray[Any]]:
    """Columns for a trace file; labels as their codes, -1 for none. ``labels`` learns new ones."""
    columns = {
        "target": _numbers(scored.target, labels),
        "prediction": _numbers(scored.prediction, labels),
        "lower": scored.lower,
        "upper": scored.upper,
        "loss": scored.loss,
    }
    if scored.probability is not None:
        columns["probability"] = scored.probability
    columns |= {f"baseline_{name}": losses for name, losses in scored.baseline_losses.items()}
    known = scored.trace.columns
    return columns | {name: known[name] for name in TRACED if name in known}


def _numbers(values: NDArray[Any], labels: Labels) -> NDArray[Any]:
    if values.dtype != object:
        return values
    labels.learn([label for label in values if label is not None])
    return labels.find(values)


def joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Consecutive rows as one; a column that some rows lack is NaN there."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.full(len(part["loss"]), np.nan)) for part in parts])
        for name in names
    }
