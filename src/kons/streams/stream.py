"""A stream of blocks of rows: constant memory, cut at absolute row numbers."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, require_delay, require_integer
from kons.errors import ConfigurationError, InputError, KonsError
from kons.learners.labels import Labels
from kons.streams.chunks import BadCells, OnBadRow, Tally
from kons.streams.plan import Plan, Task
from kons.streams.reader import Reader
from kons.streams.rows import Assembler, Rows
from kons.tables import Encoder, Growth, Records

__all__ = ["Block", "RawBlock", "Stream"]

#: Rows that the encoder makes room by before the first of them.
PREPARED = 1000


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
    """Float64 targets, (n,) or (n, k), or labels as objects (str, bool, int)."""
    lines: NDArray[np.int64]
    """The line (or row, from 1) of the source that each row came from."""
    growth: Growth | None = None
    """Features that the rows behind these have more: learners are to be widened by them."""
    encoder: Encoder | None = None
    """What encoded them, where columns have names: a part of the model that learns them."""


class RawBlock(NamedTuple):
    """Rows before they are encoded, as :class:`Block` has them after."""

    first: int
    records: Records
    y: NDArray[Any]
    lines: NDArray[np.int64]


class Stream:
    """Rows of numbers in blocks; :func:`open_stream` makes one.

    Iterating reads from the start, in constant memory; a source that can be read once only (a pipe, an
    iterator) says so the second time. Records become numbers by an encoder (:mod:`kons.tables`), which learns
    as they come. Blocks end at multiples of ``block_size``, and where features join or may do so.

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
        on_bad_row: OnBadRow,
        block_size: int,
        with_target: bool = True,
        past: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self._reader = reader
        self._past, self._every_row = past or {}, False
        self._missing, self._on_bad_row, self._with_target = missing, on_bad_row, with_target
        self._tally = Tally()
        self._plan = plan
        self._assembler: Assembler | None = None
        self.encoder: Encoder | None = None
        """From records to rows, as far as they were read: a part of the model that learns them."""
        self.notes = notes
        """What was chosen, in words."""
        self.block_size = block_size
        self.live = False
        """Whether rows are handed on as they come, however few, and blocks end where they are waited for."""

    @property
    def reader(self) -> Reader:
        """What reads the source."""
        return self._reader

    @property
    def plan(self) -> Plan:
        """How each column is read: ``open_stream(other, plan=stream.plan)`` reads alike."""
        return self._plan if self._assembler is None else self._plan.with_late(self._assembler.resolved)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the columns of X, as far as there are any; before, those of the source."""
        if self.encoder is None or not self.encoder.width:
            return (*(column.name for column in self.plan.columns), *self.plan.lag_names)
        return tuple(self.encoder.features)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of the source that make up X."""
        return self.features if self.encoder is None else tuple(map(str, self.encoder.columns))

    @property
    def gaps(self) -> dict[str, int]:
        """How many values were missing, of each column where some were."""
        return {} if self.encoder is None else {str(name): n for name, n in self.encoder.gaps.items()}

    @property
    def target(self) -> str:
        """The name of the column that is predicted; of several, their names; empty without."""
        return ", ".join(self.plan.targets)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the columns that are predicted, in the order of the columns of y."""
        return self.plan.targets

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
        late = require_delay(late)
        seen = [back for name, back in self.plan.lags if name in self.targets and back <= late]
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

    def to_predict(self) -> Stream:
        """The same stream for predictions: every row of the source, whatever can be read of it.

        The target may be empty, NaN or None then; a lag that reaches before the first row is a gap.
        """
        self._every_row = True
        return self

    @property
    def past(self) -> dict[str, list[float]]:
        """What lags need of the rows read so far, by column: ``past`` of a stream that begins behind them."""
        return {} if self._assembler is None else self._assembler.past

    @property
    def broken(self) -> tuple[int, str]:
        """How many rows could not be read as a whole, and were kept; the first complaint."""
        return self._tally.broken, self._tally.first_broken

    @property
    def disordered(self) -> tuple[int, str]:
        """How many rows were earlier than the one before, and were kept; the first complaint."""
        return self._tally.disordered, self._tally.first_disordered

    @property
    def odd_text(self) -> str:
        """Of bytes that are no UTF-8, which line has the first, and what they were read as; else empty."""
        return self._reader.odd_text

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
    def bad_cells(self) -> dict[str, BadCells]:
        """Cells of the last reading that are not what their column holds, by column: count, and examples."""
        return dict(self._tally.bad_cells)

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

    def blocks(
        self,
        start: int = 0,
        *,
        stop: int | None = None,
        late: int = 0,
        encoder: Encoder | None = None,
        classes: Sequence[Any] = (),
    ) -> Generator[Block, None, None]:
        """Blocks from row number ``start`` on, up to ``stop``, encoded by rows before them.

        ``late``: targets are known so many rows later than they could be. ``encoder``: one that has learned
        the rows before ``start``, or those of another source, with ``classes`` in this order; without, rows
        before ``start`` are encoded, too, and dropped.
        """
        start = require_integer(start, "start", at_least=0)
        labels = Labels(classes)
        labelled = self.task == "classification"
        self.encoder = encoder or Encoder(
            labelled=labelled, delay=late + self.delay, levels=self._reader.named
        )
        self.encoder.delay = late + self.delay  # which a learner's file does not say
        for raw in self.records(stop):
            if not self.encoder.width:
                self.encoder.prepare(self._first_rows)
            codes = labels.learn(raw.y) if labelled else raw.y
            skipped = min(max(0, start - raw.first), len(raw.lines))
            if encoder is not None and skipped:
                if skipped == len(raw.lines):
                    continue
                raw = RawBlock(
                    raw.first + skipped, raw.records.rest(skipped), raw.y[skipped:], raw.lines[skipped:]
                )
                codes, skipped = codes[skipped:], 0
            # The model reads cells of a frame or a dict as they stand in the file.
            self.encoder.describe(self.plan.columns, self._left_out())
            for rows, X, growth in self.encoder.learn(raw.records, codes):
                if rows.stop <= skipped:
                    continue
                first = max(rows.start, skipped)
                own = slice(first, rows.stop)
                X = X[first - rows.start :].copy() if first > rows.start else X
                own_encoder = self.encoder if self._reader.named else None
                yield Block(
                    raw.first + first, X, raw.y[own].copy(), raw.lines[own].copy(), growth, own_encoder
                )

    def _left_out(self) -> list[str]:
        """Columns of the source that are no features, the target among them."""
        used = {column.name for column in (*self.plan.columns, *self.plan.late)}
        return [name for name in self._reader.columns if name not in used]

    def records(self, stop: int | None = None) -> Generator[RawBlock, None, None]:
        """All rows, or the first of them, as records, cut at multiples of ``block_size``."""
        held: list[Rows] = []
        count, next_row = 0, 0  # rows held, number of the first of them
        for rows in self._rows():
            if stop is not None and next_row + count >= stop:
                break
            if stop is not None:
                rows = rows.cut(slice(0, stop - next_row - count))
            held.append(rows)
            count += rows.size
            if not self.live and next_row // self.block_size == (next_row + count) // self.block_size:
                continue
            every, done = Rows.joined(held), 0
            while (size := self.block_size - next_row % self.block_size) <= count:
                yield self._raw(next_row, every.cut(slice(done, done + size)))
                done, next_row, count = done + size, next_row + size, count - size
            held = [every.cut(slice(done, None))]
            if self.live and count:
                yield self._raw(next_row, held.pop())
                next_row, count = next_row + count, 0
        if count:
            yield self._raw(next_row, Rows.joined(held))

    def _raw(self, first: int, rows: Rows) -> RawBlock:
        assert self._assembler is not None
        self._assembler.handed_on = int(rows.lines[-1])
        return RawBlock(first, rows.records, rows.y, rows.lines)

    def _rows(self) -> Iterator[Rows]:
        """All rows, the first in one piece: what the encoder has room for must not depend on the chunks."""
        parts = self._parts()
        first: list[Rows] = []
        error: KonsError | None = None
        try:
            for part in parts:
                first.append(part)
                if self.live or sum(each.size for each in first) >= PREPARED:
                    break
        except KonsError as problem:  # to be raised behind the rows before it
            error = problem
        if first:
            rows = Rows.joined(first)
            self._first_rows = rows.cut(slice(0, PREPARED)).records
            yield rows
        if error is not None:
            raise error
        yield from parts

    def _parts(self) -> Iterator[Rows]:
        plan, reader = self._plan, self._reader
        wanted = plan.read(with_target=self._with_target)
        required = (
            set() if self._every_row else {name for name in (plan.time, *plan.targets) if name is not None}
        )
        tally = self._tally = Tally(self._on_bad_row, frozenset(required), every_row=self._every_row)
        assembler = self._assembler = Assembler(
            self._plan,
            reader.where,
            missing=self._missing,
            with_target=self._with_target,
            tally=tally,
            past=self._past,
        )
        used = 0
        for chunk in reader.chunks(wanted, tally):
            rows, error = assembler.rows(chunk)
            if rows.size:
                used += rows.size
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
