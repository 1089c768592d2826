"""From chunks of a source to records with targets: which rows count, order in time, lags, the horizon.

At source row t a learner may know: all columns of rows up to t, all targets of rows before t. So

    record t = (columns of row t, lag k of a column = its value at row t - k, of the target = y at t - k)
    y[t] = the target of row t + horizon

and that target is known only when row t + horizon has been predicted: learning from such a stream needs a
delay of ``horizon`` rows. Rows are counted after skipping: a lag goes back over rows that were used, and that
of the target over those whose target is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Vector
from kons.errors import InputError, KonsError
from kons.streams.chunks import Chunk, Fault, Tally, Texts, bad_cell, converted, settled, sum_is_finite
from kons.streams.plan import Column, Plan
from kons.tables.cells import is_missing
from kons.tables.moments import NOT_A_TIME
from kons.tables.records import Records, TypedRecords

__all__ = ["Assembler", "Rows"]


class Rows(NamedTuple):
    """Some rows in a row: columns by name, as :class:`~kons.tables.Records` have them, targets and lines."""

    columns: dict[str, Any]
    kinds: Mapping[str, str]
    y: NDArray[Any]
    lines: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.lines)

    @property
    def records(self) -> Records:
        """Without the targets."""
        return TypedRecords(self.columns, self.kinds, self.size)

    def cut(self, rows: Any) -> Rows:
        """Some of them: a slice."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Rows(columns, self.kinds, self.y[rows], self.lines[rows])

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """One behind the other."""
        if len(parts) == 1:
            return parts[0]
        parts = _alike(list(parts))
        columns = {name: _joined([part.columns[name] for part in parts]) for name in parts[0].columns}
        y, lines = (np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "lines"))
        return cls(columns, parts[0].kinds, y, lines)


class Assembler:
    """Carries what the next rows depend on: the last time, the last rows for lags, rows without a target."""

    def __init__(
        self,
        plan: Plan,
        where: Callable[[int], str],
        *,
        missing: str,
        with_target: bool,
        tally: Tally,
        past: Mapping[str, Sequence[float]],
    ) -> None:
        self._plan, self._where, self._tally = plan, where, tally
        self._missing, self._skip_bad, self._with_target = missing, tally.on_bad_row == "skip", with_target
        self._last_time: float | int | None = None
        self._longest = max((back for _, back in plan.lags), default=0)
        self._past = {name: _Past.of(past.get(name, ())) for name, _ in plan.lags}
        begun = min((len(before.values) for before in self._past.values()), default=0)
        self._without_past = 0 if tally.every_row else max(0, self._longest - begun)
        #: The last row that was handed on: the past before it, as far as lags go back, is forgotten.
        self.handed_on = 0
        self._kinds: dict[str, str] = {column.name: column.kind for column in plan.columns}
        self._kinds |= dict.fromkeys(plan.lag_names, "number")
        self._waiting: list[Rows] = []
        #: Columns that were empty in the first rows, since they have values.
        self.resolved: dict[str, Column] = {}

    def rows(self, chunk: Chunk) -> tuple[Rows, KonsError | None]:
        """The rows that this chunk completes, and the error to raise after them."""
        chunk = self._in_order(self._with_targets(self._with_late(chunk)))
        chunk = self._without_gaps(chunk)
        rows = Rows(self._columns_of(chunk), self._kinds, self._target_of(chunk), chunk.lines)
        return self._with_past(self._shifted(rows)), chunk.error

    def finish(self) -> None:
        """Count the rows whose target has not come."""
        self._tally.add("no target yet", sum(part.size for part in self._waiting))

    # ---- columns that come late

    def _with_late(self, chunk: Chunk) -> Chunk:
        """A column that the first rows left empty is what its first values are, from their chunk on."""
        faults: list[Fault] = []
        for late in self._plan.late:
            texts = _values(chunk.columns[late.name])
            column = self.resolved.get(late.name) or self._plan.resolve(late, texts)
            if column is None:
                continue
            self.resolved[late.name] = column
            self._kinds = {**self._kinds, late.name: column.kind}
            chunk.columns[late.name], bad = converted(texts, column)
            faults += [Fault(row, late.name, texts[row], p.reason, p.remedy) for row, p in bad.items()]
        return settled(chunk, faults, self._where, self._tally)

    # ---- rows that cannot be used

    def _with_targets(self, chunk: Chunk) -> Chunk:
        """Without rows that have no target."""
        if self._tally.every_row or not self._with_target:
            return chunk
        absent, skip = np.zeros(len(chunk), dtype=np.bool_), self._missing != "error"
        for column in self._plan.target_columns:
            absent |= _blank(chunk, column)
        if absent.any():
            chunk, _ = self._without(chunk, absent, "missing target", skip=skip, complain=self._no_target)
        return chunk

    def _without(
        self,
        chunk: Chunk,
        fault: NDArray[np.bool_],
        reason: str,
        *,
        skip: bool,
        complain: Callable[[Chunk, int], InputError],
    ) -> tuple[Chunk, Any]:
        """The chunk without its faulty rows, or up to the first of them."""
        first = int(fault.argmax())
        if skip:
            message = "" if reason in self._tally.firsts else str(complain(chunk, first))
            self._tally.add(reason, int(np.count_nonzero(fault)), message)
            return chunk.chosen(~fault), ~fault
        kept = slice(0, first)
        error = complain(chunk, first)
        chunk = chunk.chosen(kept)
        chunk.error = error
        return chunk, kept

    def _no_target(self, chunk: Chunk, row: int) -> InputError:
        remedy = "fill it, delete the row, or set missing to skip"
        name = next(column.name for column in self._plan.target_columns if _blank(chunk, column)[row])
        return self._complaint(chunk, row, name, "is a missing value", remedy)

    def _incomplete(self, chunk: Chunk, row: int) -> InputError:
        name = next(c.name for c in (*self._plan.columns, *self._plan.extras) if _blank(chunk, c)[row])
        remedy = "fill it, delete the row, drop the column, or set missing to skip or fill"
        return self._complaint(chunk, row, name, "is a missing value", remedy)

    def _complaint(self, chunk: Chunk, row: int, name: str, reason: str, remedy: str) -> InputError:
        values = chunk.columns[name]
        cell = chunk.cell(row, name) if chunk.cell is not None else None
        if cell is None and not isinstance(values, Texts) and not is_missing(values[row]):
            cell = values[row]
        if cell is None:
            cell = ""
        return bad_cell(self._where(int(chunk.lines[row])), name, cell, reason, remedy)

    # ---- order in time

    def _in_order(self, chunk: Chunk) -> Chunk:
        name = self._plan.time
        if name is None or not len(chunk):
            return chunk
        column = next(c for c in self._plan.read() if c.name == name)
        absent = _blank(chunk, column)
        if absent.any() and not self._tally.keeps_all:
            chunk, kept = self._without(chunk, absent, "bad row", skip=self._skip_bad, complain=self._no_time)
            absent = absent[kept]
        known = np.flatnonzero(~absent)
        if not len(known):
            return chunk
        times: Any = np.asarray(chunk.columns[name])[known]
        before = times[:1] if self._last_time is None else np.array([self._last_time], dtype=times.dtype)
        earlier = known[np.diff(times, prepend=before) < 0]
        self._last_time = times[-1]
        if not len(earlier):
            return chunk
        if self._tally.keeps_all:
            told = self._tally.first_disordered or str(self._goes_back(chunk, int(earlier[0])))
            self._tally.first_disordered = told
            self._tally.disordered += len(earlier)
            return chunk
        backwards = np.isin(np.arange(len(chunk)), earlier)
        return self._without(chunk, backwards, "", skip=False, complain=self._goes_back)[0]

    def _no_time(self, chunk: Chunk, row: int) -> InputError:
        name = str(self._plan.time)
        return self._complaint(chunk, row, name, "is no time", "fill it, or skip bad rows (on_bad_row)")

    def _goes_back(self, chunk: Chunk, row: int) -> InputError:
        name = str(self._plan.time)
        return self._complaint(chunk, row, name, "is earlier than the row before", "sort the rows by it")

    # ---- gaps

    def _without_gaps(self, chunk: Chunk) -> Chunk:
        """Where gaps are not filled, rows that have one are refused or skipped.

        A column that was empty in the first rows is filled all the same: it would take all rows with it.
        """
        if self._missing == "fill":
            return chunk
        fault = np.zeros(len(chunk), dtype=bool)
        for column in (*self._plan.columns, *self._plan.extras):
            if column.kind not in ("number", "flag") or not sum_is_finite(chunk.columns[column.name]):
                fault |= _blank(chunk, column)
        if fault.any():
            skip = self._missing == "skip"
            chunk, _ = self._without(chunk, fault, "missing", skip=skip, complain=self._incomplete)
        return chunk

    # ---- columns

    def _columns_of(self, chunk: Chunk) -> dict[str, Any]:
        used = [column.name for column in self._plan.columns] + [*self.resolved]
        columns = {name: _values(chunk.columns[name]) for name in used}
        for name, before in self._past.items():
            values = np.asarray(chunk.columns.get(name, np.full(len(chunk), np.nan)), dtype=np.float64)
            known = ~np.isnan(values) if name in self._plan.targets else np.ones(len(values), dtype=bool)
            past = before.then(values[known], chunk.lines[known])
            places = len(before.values) + np.cumsum(known) - known
            for (of, back), lag in zip(self._plan.lags, self._plan.lag_names, strict=True):
                if of == name:
                    columns[lag] = past.values_at(places - back)
            self._past[name] = past.since(self.handed_on, self._longest)
        return columns

    @property
    def past(self) -> dict[str, list[float]]:
        """What lags of a row need that comes next, after the last one handed on and its target."""
        return {
            name: before.until(self.handed_on, self._plan.horizon, self._longest)
            for name, before in self._past.items()
        }

    def _target_of(self, chunk: Chunk) -> NDArray[Any]:
        plan = self._plan
        labels = plan.task == "classification"
        if plan.target is None:
            return np.zeros(len(chunk))
        if plan.more_targets:
            gaps = np.full((len(chunk), len(plan.targets)), np.nan)
            each = [
                np.asarray(chunk.columns[name], dtype=np.float64) for name in plan.targets * self._with_target
            ]
            return np.stack(each, axis=1) if each else gaps
        if not self._with_target:
            return np.full(len(chunk), None if labels else np.nan, dtype=object if labels else np.float64)
        values: Any = chunk.columns[plan.target]
        if not labels:
            return np.asarray(values, dtype=np.float64)
        if isinstance(values, Texts):
            return np.array([*values.values, None], dtype=object)[values.codes]
        distinct, places = np.unique(values, return_inverse=True)
        names = np.empty(len(distinct), dtype=object)
        flag = plan.target_kind == "flag"
        names[:] = [None if value != value else _label(value, flag=flag) for value in distinct.tolist()]
        return np.asarray(names[places])

    # ---- horizon

    def _shifted(self, rows: Rows) -> Rows:
        """Each row with the target of ``horizon`` rows later."""
        horizon = self._plan.horizon
        if not (horizon and self._with_target):
            return rows
        waiting = sum(part.size for part in self._waiting)
        every = Rows.joined([*self._waiting, rows])
        ready = max(0, waiting + rows.size - horizon)
        self._waiting = [every.cut(slice(ready, None))]
        return every.cut(slice(0, ready))._replace(y=rows.y[rows.size - ready :])

    def _with_past(self, rows: Rows) -> Rows:
        """Without the first rows, that lack a past."""
        left = min(self._without_past, rows.size)
        self._without_past -= left
        self._tally.add("no past", left)
        return rows.cut(slice(left, None)) if left else rows


class _Past(NamedTuple):
    """Values of a column in the rows before, each with its line, in order."""

    values: Vector
    lines: NDArray[np.int64]

    @classmethod
    def of(cls, values: Sequence[float]) -> _Past:
        """Of rows before the first line."""
        return cls(np.array(values, dtype=np.float64), np.zeros(len(values), dtype=np.int64))

    def then(self, values: Vector, lines: NDArray[np.int64]) -> _Past:
        """With more behind them."""
        return _Past(np.concatenate([self.values, values]), np.concatenate([self.lines, lines]))

    def values_at(self, places: NDArray[np.int64]) -> Vector:
        """NaN for what lies before the first."""
        found: Vector = np.append(self.values, np.nan)[np.maximum(places, -1)]
        return found

    def since(self, line: int, count: int) -> _Past:
        """From so many before the end of that line on."""
        start = max(0, int(np.searchsorted(self.lines, line, side="right")) - count)
        return _Past(self.values[start:], self.lines[start:])

    def until(self, line: int, more: int, count: int) -> list[float]:
        """The last values up to that line and ``more`` rows."""
        stop = int(np.searchsorted(self.lines, line, side="right")) + more
        return list(self.values[:stop][-count:].tolist())


def _values(values: Any) -> Any:
    """A column of a chunk as records have it: texts one by one."""
    if isinstance(values, Texts):
        names = [*values.values, None]
        return [names[code] for code in values.codes.tolist()]
    return values


def _joined(parts: list[Any]) -> Any:
    return (
        [value for part in parts for value in part] if isinstance(parts[0], list) else np.concatenate(parts)
    )


def _alike(parts: list[Rows]) -> list[Rows]:
    """With the columns of the last: one that came late was empty before."""
    last = parts[-1]
    return [
        part._replace(
            kinds=last.kinds,
            columns={
                name: part.columns[name] if name in part.columns else _gaps(last.kinds[name], part.size)
                for name in last.columns
            },
        )
        for part in parts
    ]


def _gaps(kind: str, count: int) -> Any:
    if kind == "text":
        return [None] * count
    return np.full(count, NOT_A_TIME) if kind == "date" else np.full(count, np.nan)


def _blank(chunk: Chunk, column: Column) -> NDArray[np.bool_]:
    values = chunk.columns[column.name]
    if isinstance(values, Texts):
        return values.codes < 0
    return np.asarray(values == NOT_A_TIME if column.kind == "date" else np.isnan(values))


def _label(value: float, *, flag: bool) -> bool | int | float:
    if flag:
        return bool(value)
    return int(value) if value.is_integer() else value
