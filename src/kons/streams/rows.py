"""From chunks of columns to rows of numbers: missing values, order in time, lags, the horizon.

At source row t a learner may know: all features of rows up to t, all targets of rows before t. So

    X[t] = (features of row t, lag k of a feature = its value at row t - k, lag k of the target = y at t - k)
    y[t] = the target of row t + horizon

and that target is known only when row t + horizon has been predicted: learning from such a stream needs a
delay of ``horizon`` rows. Rows are counted after skipping: a lag goes back over rows that were used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.arrays import Matrix, Vector
from kons.encoding import HashedOneHot, date_parts
from kons.errors import InputError, KonsError
from kons.means import Mean
from kons.streams.cells import is_missing
from kons.streams.chunks import Chunk, Tally, Texts, bad_cell
from kons.streams.dates import NOT_A_TIME
from kons.streams.plan import WIDTH, Column, Plan

__all__ = ["Assembler"]

Rows = tuple[Matrix, NDArray[Any], NDArray[np.int64]]
"""X, y and the line of each row."""


class Assembler:
    """Carries what the next rows depend on: running means, the last rows for lags, rows without a target."""

    def __init__(
        self,
        plan: Plan,
        where: Callable[[int], str],
        *,
        missing: str,
        on_bad_row: str,
        with_target: bool,
        tally: Tally,
    ) -> None:
        self._plan, self._where, self._tally = plan, where, tally
        self._missing, self._skip_bad, self._with_target = missing, on_bad_row == "skip", with_target
        self._features = len(plan.features)
        self._encoders = {c.name: HashedOneHot(WIDTH, c.salt) for c in plan.columns if c.kind == "text"}
        self._numeric = [c.name for c in (*plan.columns, *plan.extras) if c.kind in ("number", "flag")]
        self._means = {name: Mean() for name in self._numeric}
        self._last_time: float | int | None = None
        longest = max((back for _, back in plan.lags), default=0)
        self._past = {name: np.full(longest, np.nan) for name, _ in plan.lags}
        self._waiting: list[Matrix] = []
        self._waiting_lines: list[NDArray[np.int64]] = []

    def rows(self, chunk: Chunk) -> tuple[Rows, KonsError | None]:
        """The rows that this chunk completes, and the error to raise after them."""
        chunk = self._sound(chunk)
        chunk = self._in_order(chunk)
        chunk = self._filled(chunk)
        X, y = self._features_of(chunk), self._target_of(chunk)
        return self._shifted(X, y, chunk.lines), chunk.error

    def finish(self) -> None:
        """Count the rows whose target has not come."""
        left = sum(map(len, self._waiting_lines))
        self._tally.add("no target yet", left)

    # ---- cells that are not what they should be

    def _sound(self, chunk: Chunk) -> Chunk:
        """Without infinities, and without rows that have no target."""
        plan = self._plan
        bad = np.zeros(len(chunk), dtype=bool)
        names = [*self._numeric]
        if self._with_target and plan.target_kind != "text":
            names.append(plan.target)
        for name in names:
            values: Any = chunk.columns[name]
            if not _sum_is_finite(values):
                bad |= np.isinf(values)
        absent = self._absent_target(chunk)
        if bad.any():
            chunk, kept = self._without(chunk, bad, "bad row", skip=self._skip_bad, complain=self._infinite)
            absent = absent[kept]
        if absent.any():
            skip = self._missing != "error"
            chunk, _ = self._without(chunk, absent, "missing target", skip=skip, complain=self._no_target)
        return chunk

    def _absent_target(self, chunk: Chunk) -> NDArray[np.bool_]:
        if not self._with_target:
            return np.zeros(len(chunk), dtype=bool)
        values = chunk.columns[self._plan.target]
        return values.codes < 0 if isinstance(values, Texts) else np.isnan(values)

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

    def _infinite(self, chunk: Chunk, row: int) -> InputError:
        names = [*self._numeric, self._plan.target]
        columns = {name: chunk.columns[name] for name in names if name in chunk.columns}
        name = next(n for n, v in columns.items() if not isinstance(v, Texts) and np.isinf(v[row]))
        remedy = "correct it, delete the row, drop the column, or skip bad rows (on_bad_row)"
        return self._complaint(chunk, row, name, "is not finite", remedy)

    def _no_target(self, chunk: Chunk, row: int) -> InputError:
        remedy = "fill it, delete the row, or set missing to skip"
        return self._complaint(chunk, row, self._plan.target, "is a missing value", remedy)

    def _incomplete(self, chunk: Chunk, row: int) -> InputError:
        name = next(c.name for c in self._plan.read(with_target=False) if _blank(chunk, c)[row])
        remedy = "fill it, delete the row, drop the column, or set missing to skip or mean"
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
        if absent.any():
            chunk, _ = self._without(chunk, absent, "bad row", skip=self._skip_bad, complain=self._no_time)
            if not len(chunk):
                return chunk
        times: Any = chunk.columns[name]
        before = times[:1] if self._last_time is None else np.array([self._last_time], dtype=times.dtype)
        earlier = np.diff(times, prepend=before) < 0
        if earlier.any():
            chunk, _ = self._without(chunk, earlier, "", skip=False, complain=self._goes_back)
        if len(chunk):
            self._last_time = times[len(chunk) - 1]
        return chunk

    def _no_time(self, chunk: Chunk, row: int) -> InputError:
        name = str(self._plan.time)
        return self._complaint(chunk, row, name, "is no time", "fill it, or skip bad rows (on_bad_row)")

    def _goes_back(self, chunk: Chunk, row: int) -> InputError:
        name = str(self._plan.time)
        return self._complaint(chunk, row, name, "is earlier than the row before", "sort the rows by it")

    # ---- missing values

    def _filled(self, chunk: Chunk) -> Chunk:
        """Missing features refused, skipped, or set to the mean of what was seen before that row."""
        plan = self._plan
        if self._missing != "mean":
            fault = np.zeros(len(chunk), dtype=bool)
            for column in plan.read(with_target=False):
                if column.kind not in ("number", "flag") or not _sum_is_finite(chunk.columns[column.name]):
                    fault |= _blank(chunk, column)
            if fault.any():
                skip = self._missing == "skip"
                chunk, _ = self._without(chunk, fault, "missing", skip=skip, complain=self._incomplete)
            return chunk
        empty = np.zeros(len(chunk), dtype=bool)
        for name in self._numeric:
            values: Any = chunk.columns[name]
            known = ~np.isnan(values)
            means = self._means[name].follow(np.where(known, values, 0.0), known.astype(np.float64), math.nan)
            if not known.all():
                chunk.columns[name] = np.where(known, values, means[:-1])
                empty |= ~known & ~np.isfinite(means[:-1])
        if empty.any():  # nothing seen yet to take the mean of
            chunk, _ = self._without(chunk, empty, "missing", skip=True, complain=self._incomplete)
        return chunk

    # ---- numbers

    def _features_of(self, chunk: Chunk) -> Matrix:
        X = np.empty((len(chunk), self._features))
        at = 0
        for column in self._plan.columns:
            values: Any = chunk.columns[column.name]
            if column.kind == "text":
                places = self._encoders[column.name].places(values.values)
                hot = X[:, at : at + WIDTH]
                hot[:] = 0.0
                known = np.flatnonzero(values.codes >= 0)
                hot[known, places[values.codes[known]]] = 1.0
                at += WIDTH
            elif column.kind == "date":
                width = 2 * len(column.parts)
                X[:, at : at + width] = date_parts(values.view("datetime64[us]"), column.parts)
                at += width
            else:
                X[:, at] = values
                at += 1
        for name, back in self._plan.lags:
            X[:, at] = self._lagged(chunk, name, back)
            at += 1
        for name, past in self._past.items():
            if len(past):
                both = np.concatenate([past, self._numbers(chunk, name)])
                self._past[name] = both[len(both) - len(past) :]
        return X

    def _lagged(self, chunk: Chunk, name: str, back: int) -> Vector:
        past = self._past[name]
        both = np.concatenate([past, self._numbers(chunk, name)])
        start = len(past) - back
        return both[start : start + len(chunk)]

    def _numbers(self, chunk: Chunk, name: str) -> Vector:
        if name == self._plan.target and not self._with_target:
            return np.full(len(chunk), np.nan)
        return np.asarray(chunk.columns[name], dtype=np.float64)

    def _target_of(self, chunk: Chunk) -> NDArray[Any]:
        plan = self._plan
        labels = plan.task == "classification"
        if not self._with_target:
            return np.full(len(chunk), None if labels else np.nan, dtype=object if labels else np.float64)
        values: Any = chunk.columns[plan.target]
        if not labels:
            return np.asarray(values, dtype=np.float64)
        if isinstance(values, Texts):
            return np.array([*values.values, None], dtype=object)[values.codes]
        distinct, places = np.unique(values, return_inverse=True)
        names = np.empty(len(distinct), dtype=object)
        names[:] = [_label(value, flag=plan.target_kind == "flag") for value in distinct.tolist()]
        return np.asarray(names[places])

    # ---- horizon

    def _shifted(self, X: Matrix, y: NDArray[Any], lines: NDArray[np.int64]) -> Rows:
        """Each row with the target of ``horizon`` rows later, then without rows that lack a past."""
        horizon = self._plan.horizon
        if horizon and self._with_target:
            waiting = sum(map(len, self._waiting))
            self._waiting.append(X)
            self._waiting_lines.append(lines)
            ready = max(0, waiting + len(X) - horizon)
            if not ready:
                return X[:0], y[:0], lines[:0]
            every, numbers = np.concatenate(self._waiting), np.concatenate(self._waiting_lines)
            self._waiting, self._waiting_lines = [every[ready:].copy()], [numbers[ready:].copy()]
            X, lines, y = every[:ready], numbers[:ready], y[len(y) - ready :]
        if self._plan.lags:
            known = ~np.isnan(X[:, -len(self._plan.lags) :]).any(axis=1)
            if not known.all():
                self._tally.add("no past", int(np.count_nonzero(~known)))
                X, y, lines = X[known], y[known], lines[known]
        return X, y, lines


def _blank(chunk: Chunk, column: Column) -> NDArray[np.bool_]:
    values = chunk.columns[column.name]
    if isinstance(values, Texts):
        return values.codes < 0
    return np.asarray(values == NOT_A_TIME if column.kind == "date" else np.isnan(values))


def _sum_is_finite(values: Any) -> bool:
    """True only if every value is finite; a sum that overflows is False too, which costs a closer look."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(values.sum()))


def _label(value: float, *, flag: bool) -> bool | int | float:
    if flag:
        return bool(value)
    return int(value) if value.is_integer() else value
