"""A stream of blocks of rows: constant memory, cut at absolute row numbers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, require_integer
from kons.errors import ConfigurationError, InputError
from kons.streams.chunks import Tally
from kons.streams.plan import Plan, Task
from kons.streams.reader import Reader
from kons.streams.rows import Assembler, Rows

__all__ = ["Block", "Stream"]


class Block(NamedTuple):
    """Some rows in a row: ``first`` is the number of the first of them, from 0, after skipping.

    >>> from kons.streams import open_stream
    >>> block = next(open_stream([([1.0, 2.0], 3.0), ([4.0, 5.0], 6.0), ([7.0, 8.0], 9.0)]).blocks())
    >>> block.first, block.X.shape, block.y.tolist(), block.lines.tolist()
    (0, (3, 2), [3.0, 6.0, 9.0], [1, 2, 3])
    """

    first: int
    X: Matrix
    y: NDArray[Any]
    """Float64 targets, or labels as objects (str, bool, int)."""
    lines: NDArray[np.int64]
    """The line (or row, from 1) of the source that each row came from."""


class Stream:
    """Rows of numbers in blocks; :func:`open_stream` makes one.

    Iterating reads from the start, in constant memory; a source that can be read once only (a pipe, an
    iterator) says so the second time. Blocks end at multiples of ``block_size``.

    >>> import numpy as np
    >>> from kons.streams import open_stream
    >>> stream = open_stream((np.arange(12.0).reshape(6, 2), np.arange(6.0)), block_size=4)
    >>> [(block.first, block.X.shape) for block in stream]
    [(0, (4, 2)), (4, (2, 2))]
    >>> stream.features, stream.target, stream.task
    (('x0', 'x1'), 'y', 'regression')
    """

    def __init__(
        self,
        reader: Reader,
        plan: Plan,
        notes: list[str],
        *,
        missing: str,
        on_bad_row: str,
        block_size: int,
        with_target: bool = True,
    ) -> None:
        self._reader = reader
        self._missing, self._on_bad_row, self._with_target = missing, on_bad_row, with_target
        self._tally = Tally()
        self.plan = plan
        """What becomes of each column: ``open_stream(other, plan=stream.plan)`` reads alike."""
        self.notes = notes
        """What was chosen, in words."""
        self.block_size = block_size

    @property
    def reader(self) -> Reader:
        """What reads the source."""
        return self._reader

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        return self.plan.features

    @property
    def target(self) -> str:
        """The name of the column that is predicted."""
        return self.plan.target

    @property
    def task(self) -> Task:
        """Regression, or classification."""
        return self.plan.task

    @property
    def delay(self) -> int:
        """How many rows pass before a row's target is known: the horizon. An evaluation needs this delay."""
        return self.plan.horizon

    def total_delay(self, late: int) -> int:
        """The delay of an evaluation in which targets become known ``late`` rows later than they could be.

        The horizon comes on top. A lag of the target must then reach back beyond what is not known yet.
        """
        late = require_integer(late, "delay", at_least=0)
        seen = [back for name, back in self.plan.lags if name == self.target and back <= late]
        if seen:
            raise ConfigurationError(
                f"the target {min(seen)} row(s) back is an input, and with a delay of {late} it is not known "
                f"yet: use lags of the target above {late}, or a shorter delay."
            )
        return late + self.delay

    @property
    def has_target(self) -> bool:
        """Whether the source has the target at all: without it, only predictions make sense."""
        return self._with_target

    def without_target(self) -> Stream:
        """The same stream, with no look at the target: in rows to be predicted it may be empty."""
        self._with_target = False
        return self

    @property
    def source(self) -> str:
        """The source, for people."""
        return self._reader.name

    @property
    def resumable(self) -> bool:
        """Whether it can be read from the start again."""
        return self._reader.resumable

    @property
    def skipped(self) -> dict[str, int]:
        """Rows skipped in the last reading, by reason: bad row, missing, missing target, no past, ..."""
        return dict(self._tally.counts)

    @property
    def first_skipped(self) -> dict[str, str]:
        """The first complaint of each reason in :attr:`skipped`, where there is something to say."""
        return dict(self._tally.firsts)

    @property
    def total_rows(self) -> int | None:
        """How many rows there are: known in memory, estimated for files of text, else None."""
        return self._reader.total_rows

    @property
    def bytes_total(self) -> int | None:
        """The size of the file."""
        return self._reader.bytes_total

    @property
    def bytes_done(self) -> int:
        """How much of the file has been read."""
        return self._reader.bytes_done

    def fingerprint(self) -> dict[str, Any] | None:
        """Size, time of change and a digest of the ends of the file; None if it can be read only once."""
        return self._reader.fingerprint()

    def __iter__(self) -> Iterator[Block]:
        return self.blocks()

    def blocks(self, start: int = 0) -> Generator[Block, None, None]:
        """Blocks from row number ``start`` on. Earlier rows are read and dropped, so means and lags agree."""
        start = require_integer(start, "start", at_least=0)
        held: list[Rows] = []
        count, next_row = 0, 0  # rows held, number of the first of them
        for X, y, lines in self._rows():
            held.append((X, y, lines))
            count += len(y)
            if next_row // self.block_size == (next_row + count) // self.block_size:
                continue
            X, y, lines = held[0] if len(held) == 1 else _joined(held)
            done = 0
            while (size := self.block_size - next_row % self.block_size) <= count:
                if next_row + size > start:
                    cut = slice(done + max(0, start - next_row), done + size)
                    first = max(next_row, start)
                    yield Block(first, X[cut].copy(), y[cut].copy(), lines[cut].copy())
                done, next_row, count = done + size, next_row + size, count - size
            held = [(X[done:].copy(), y[done:].copy(), lines[done:].copy())]
        if count and next_row + count > start:
            X, y, lines = _joined(held)
            cut = slice(max(0, start - next_row), None)
            yield Block(max(next_row, start), X[cut].copy(), y[cut].copy(), lines[cut].copy())

    def _rows(self) -> Iterator[Rows]:
        tally = self._tally = Tally()
        reader = self._reader
        assembler = Assembler(
            self.plan,
            reader.where,
            missing=self._missing,
            on_bad_row=self._on_bad_row,
            with_target=self._with_target,
            tally=tally,
        )
        used = 0
        wanted = self.plan.read(with_target=self._with_target)
        skipping = tally if self._on_bad_row == "skip" else None
        for chunk in reader.chunks(wanted, skipping, self.plan.decimal):
            rows, error = assembler.rows(chunk)
            if len(rows[1]):
                used += len(rows[1])
                yield rows
            if error is not None:
                raise error
        assembler.finish()
        if not used:
            raise InputError(self._nothing_left())

    def _nothing_left(self) -> str:
        if not self._tally.counts:
            return f"{self.source} has no rows; expected at least one."
        reasons = ", ".join(f"{count:,} for {reason}" for reason, count in self._tally.counts.items())
        first = next(iter(self._tally.firsts.values()), "")
        return f"{self.source}: no row is left, all were skipped ({reasons}). {first}".rstrip()

    def __repr__(self) -> str:
        return (
            f"Stream({self.source!r}, target={self.target!r}, task={self.task!r}, "
            f"features={len(self.features)})"
        )


def _joined(parts: list[Rows]) -> Rows:
    X, y, lines = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X, y, lines
