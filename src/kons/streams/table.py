"""A whole table in memory, for what needs all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.errors import ConfigurationError
from kons.streams.opening import open_stream, reader_of
from kons.streams.stream import Block, Stream

__all__ = ["Table", "column_names", "read_rows", "read_table"]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers with their names: ``X`` one column a feature, ``y`` the target.

    >>> from kons.streams import read_table
    >>> table = read_table([({"age": 1}, 0.75), ({"age": 2}, 0.86), ({"age": 3}, 0.95)], "height")
    >>> table.features, table.target, len(table)
    (('age',), 'height', 3)
    """

    features: tuple[str, ...]
    target: str
    X: Matrix = field(repr=False)
    y: Vector = field(repr=False)

    def __len__(self) -> int:
        return len(self.y)


def column_names(source: Any) -> list[str]:
    """The columns of a source, in order; a column without a name is called ``column 3``."""
    reader = reader_of(source)
    reader.look(1)
    return list(reader.columns)


def read_table(
    source: Any,
    target: str,
    *,
    drop: Sequence[str] = (),
    rows: int | None = None,
    tell: Callable[[int], object] | None = None,
    **options: Any,
) -> Table:
    r"""All rows of a source, or the first ``rows``, with a target of numbers.

    Columns become numbers as in :func:`open_stream`, which takes the same ``options``. ``tell`` is called
    after each block with the number of rows so far. Needs memory for all of them: a learner that takes
    block after block does not.

    >>> import pathlib, tempfile
    >>> from kons.streams import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "heights.csv")
    ...     _ = file.write_text("age;height\n1;0.75\n2;0.86\n")
    ...     table = read_table(file, "height")
    >>> table.features, table.X.tolist(), table.y.tolist()
    (('age',), [[1.0], [2.0]], [0.75, 0.86])
    """
    stream = open_stream(source, target, drop=drop, task="regression", **options)
    X, y = read_rows(stream, rows, tell)
    return Table(stream.features[: X.shape[1]], stream.target, X, y)


def read_rows(
    stream: Stream, rows: int | None, tell: Callable[[int], object] | None
) -> tuple[Matrix, NDArray[Any]]:
    """All rows of a stream, or the first ``rows``, and their targets; see :func:`read_table`."""
    if len(stream.targets) > 1:
        raise ConfigurationError(f"target is {stream.target!r}, expected one column: take them one by one.")
    parts, count = [], 0
    with closing(stream.blocks()) as blocks:
        for block in blocks:
            parts.append(block)
            count += len(block.y)
            if tell is not None:
                tell(count)
            if rows is not None and count >= rows:
                break
    return stacked(parts)[:rows], np.concatenate([part.y for part in parts])[:rows]


def stacked(blocks: Sequence[Block]) -> Matrix:
    """The rows of consecutive blocks, each as wide as the last: what joined later has its earlier values."""
    width = blocks[-1].X.shape[1]
    X, filled = np.empty((sum(len(block.X) for block in blocks), width)), 0
    for block in blocks:
        here = block.X.shape[1]
        X[filled : filled + len(block.X), :here] = block.X
        filled += len(block.X)
        if block.growth is not None:
            more = block.growth.earlier[: width - here]
            X[:filled, here : here + len(more)] = more
    return X
