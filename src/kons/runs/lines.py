"""Rows of predictions as lines of CSV, and as columns of a trace file: the same rows, the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix
from kons.errors import MissingExtraError
from kons.evaluation import Scored
from kons.learners.labels import Labels, object_array
from kons.runs.raw_cells import RawCells
from kons.streams.arrow import arrow_numbers, arrow_texts

__all__ = [
    *(
        "as_csv",
        "as_novelty",
        "as_table",
        "as_trace",
        "by_target",
        "completed",
        "id_column",
        "joined",
        "shares_by_class",
    ),
]

#: Columns of predictions that no id may be called.
FIXED = (
    "line",
    "row",
    "target",
    "prediction",
    "lower",
    "upper",
    "loss",
    "scored",
    "probability",
    "novelty",
    "set",
    "typical",
)
#: How those of a target, a class or a reason begin.
FIXED_STARTS = ("target_", "prediction_", "lower_", "upper_", "typical_", "because_", "p_")

#: What a trace file takes of a learner's trace, besides what every row has.
TRACED = ("leverage", "novelty", "size", "kept", "weight", "slope", "inverse_form", "expert")


def as_csv(
    scored: Scored,
    lines: NDArray[np.int64],
    ids: RawCells | None = None,
    classes: Sequence[Any] = (),
    targets: Sequence[str] = (),
    *,
    header: bool,
) -> bytes:
    """Lines of CSV that begin with the line of the source, and the ``ids`` asked for, by the column's name.

    ::

        line[,id],row,target,prediction[,lower,upper],loss,scored[,probability][,novelty][,p_<class> ...]

    Of several ``targets`` each has columns of its own, ``target_<name>``, ``prediction_<name>``, ...
    ``scored`` is 0 where no target was known yet: such a row is in no figure. What is not known is empty.
    Numbers have the fewest digits that give them back exactly. Classes that come later have their columns
    behind those of the header, until :func:`completed` puts them there, too.
    """
    columns: dict[str, NDArray[Any]] = {"line": lines}
    if ids is not None:
        columns |= id_column(ids, lines)
    columns["row"] = scored.row
    parts = {"target": scored.target, "prediction": scored.prediction}
    if scored.probability is None:
        parts |= {"lower": scored.lower, "upper": scored.upper}
    columns |= parts if scored.prediction.ndim == 1 else by_target(parts, targets)
    columns |= {"loss": scored.loss, "scored": scored.scored.astype(np.int64)}
    if scored.probability is not None:
        columns["probability"] = scored.probability
    if scored.trace.novelty is not None:
        columns["novelty"] = scored.trace.novelty
    if scored.probabilities is not None:
        columns |= shares_by_class(scored.probabilities, classes)
    return as_table(columns, header=header)


def as_novelty(
    scored: Scored, lines: NDArray[np.int64], ids: RawCells | None = None, *, header: bool
) -> bytes:
    """As :func:`as_csv` for rows without a target: ``line[,id],row,novelty``."""
    named = {} if ids is None else id_column(ids, lines)
    told: dict[str, Any] = {"line": lines, **named, "row": scored.row, "novelty": scored.trace.novelty}
    return as_table(told, header=header)


def by_target(parts: Mapping[str, Matrix], targets: Sequence[str]) -> dict[str, NDArray[Any]]:
    """A column ``<part>_<target>`` for each part and target, those of a target beside each other."""
    return {
        f"{part}_{name}": values[:, k] for k, name in enumerate(targets) for part, values in parts.items()
    }


def id_column(ids: RawCells, lines: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """What the rows of the next block are named by, under the name of its column, if no other has that."""
    name = f"id_{ids.name}" if ids.name in FIXED or ids.name.startswith(FIXED_STARTS) else ids.name
    return {name: object_array(ids.of(lines))}


def shares_by_class(probabilities: Matrix, classes: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """A column ``p_<class>`` for each class."""
    return {f"p_{label}": probabilities[:, i] for i, label in enumerate(classes[: probabilities.shape[1]])}


def completed(text: Iterable[bytes], classes: Sequence[Any]) -> Iterator[bytes]:
    r"""The records of a file of predictions, all of them with a column for each of the classes.

    >>> list(completed([b"line,p_a\n", b"1,1\n", b"2,0.5,0.5\n"], ["a", "b"]))
    [b'line,p_a,p_b\n', b'1,1,\n', b'2,0.5,0.5\n']
    """
    width, record = 0, b""
    for line in text:
        record += line
        if record.count(b'"') % 2:  # a label with a line break
            continue
        fields = next(csv.reader(io.StringIO(record.decode("utf-8"), newline="")))
        end = record.rstrip(b"\r\n")
        if not width:
            there = {name for name in fields if name.startswith("p_")}
            more = [name for label in classes if (name := f"p_{label}") not in there]
            width = len(fields) + len(more)
            yield (
                end
                + "".join(f",{_quoted(name)}" for name in more).encode("utf-8", "backslashreplace")
                + b"\n"
            )
        else:
            yield end + b"," * (width - len(fields)) + b"\n"
        record = b""


def as_table(columns: dict[str, NDArray[Any]], *, header: bool) -> bytes:
    """Columns of numbers or labels as lines of CSV."""
    try:
        import pyarrow
        from pyarrow import csv as writing
    except ImportError:
        raise MissingExtraError("Writing CSV", "files") from None
    stream = io.BytesIO()
    if header:
        stream.write((",".join(map(_quoted, columns)) + "\n").encode("utf-8", "backslashreplace"))
    arrays = [_cells(pyarrow, values) for values in columns.values()]
    table = pyarrow.Table.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    writing.write_csv(table, stream, writing.WriteOptions(include_header=False))
    return stream.getvalue()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


def _cells(pyarrow: Any, values: NDArray[Any]) -> Any:
    """Numbers as they are and NaN as nothing, or labels as text."""
    if values.dtype == object:
        return arrow_texts(pyarrow, [None if value is None else str(value) for value in values])
    return arrow_numbers(pyarrow, values)


def as_trace(scored: Scored, lines: NDArray[np.int64], labels: Labels) -> dict[str, NDArray[Any]]:
    """Columns for a trace file; labels as their codes, -1 for none. ``labels`` learns new ones.

    Of several targets, ``target``, ``prediction``, ``lower`` and ``upper`` are the first's, ``target.1`` and
    so on those of the others; what a learner says of each target apart is left out.
    """
    parts = {"target": scored.target, "prediction": scored.prediction}
    parts |= {"lower": scored.lower, "upper": scored.upper}
    if scored.prediction.ndim == 2:
        each = range(scored.prediction.shape[1])
        columns = {f"{name}.{k}" if k else name: part[:, k] for name, part in parts.items() for k in each}
    else:
        columns = {name: _numbers(part, labels) for name, part in parts.items()}
    columns |= {
        "loss": scored.loss,
        "scored": scored.scored,
        "line": lines,
    }
    if scored.probability is not None:
        columns["probability"] = scored.probability
    columns |= {f"baseline_{name}": losses for name, losses in scored.baseline_losses.items()}
    known = scored.trace.columns
    return columns | {name: known[name] for name in TRACED if name in known and known[name].ndim == 1}


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
