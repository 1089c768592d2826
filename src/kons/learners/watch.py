"""What is watched as rows are learned: ranges, repeats and gaps of columns, the target, the loss.

Every statistic is a short recursion over the rows by their number, so that it is the same however a stream is
cut into blocks. With t counted from 0:

- *range*: ``excess = max(x - high, low - x)/(high - low)``, low and high those of the rows up to the last
  multiple of 256; noticed above 1/2, from row 512 on (a column that counts rows is no event).
- *repeats*: with p the share of rows whose value was that of the row before, a run of r equal values has the
  chance p^r; noticed below 1e-9, if it is also 20 rows long and twice as long as any before. Gaps alike.
- *turned*: the loss e beside its mean m over some 512 rows before the last 64 to 128: the log-likelihood
  ratio of twice the mean, summed, S = max(0, S + ratio), noticed above :data:`TURNED`. A squared error is
  taken as a Gamma variable of the shape a = m^2/variance that it has, whose ratio is
  ``a (e/(2m) - log 2)``; the error of a label as a coin of twice the chance.
- *coverage*: whether the target lay outside of the interval of 90 %: the log-likelihood ratio of three times
  as many, summed as of *turned*, noticed above :data:`LOST`.
- *crept*: the mean of 1,024 rows beside the lowest of as many before, and that of the first 128, 256, ... of
  them; noticed above 1.25 times, and four standard errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kons.arrays import Matrix, ReadMatrix, ReadVector, Vector
from kons.compilation import compiled, inner, matrix_at
from kons.core.residual_scale import NOVELTY_HIGH
from kons.core.residual_scale import OUTSIDE as MISSED
from kons.learners.events import EventLog
from kons.state import Array, Count, Inner, Part, Sizes, fields
from kons.stored import Stored

__all__ = ["CREPT", "FOUND", "Watch"]

# Of a column.
ROLE, GAP_AT, VALUES, LAST, RUN, LONGEST, REPEATS = range(7)
LOW, HIGH, LEAST, MOST, OUTSIDE, TOLD, PER_COLUMN = range(7, 14)
# Of the target and the loss: at most twice as many.
TARGETS, TARGET_LOW, TARGET_HIGH, TARGET_LEAST, TARGET_MOST, TARGET_OUTSIDE, CLASSES = range(7)
MEAN_WEIGHT, MEAN_SUM, MEAN_SQUARES, BLOCK_COUNT, BLOCK_SUM, BLOCK_SQUARES = range(7, 13)
LAG_COUNT, LAG_SUM, LAG_SQUARES, CUSUM, SILENT, LONG_COUNT, LONG_SUM, LONG_SQUARES = range(13, 21)
BEST_MEAN, BEST_ERROR, BEST_KNOWN, UNCOVERED = range(21, 25)
#: Kinds and severities in the order of their codes.
FOUND = (
    ("out of range", "info"),
    ("out of range", "alarm"),
    ("frozen", "alarm"),
    ("missing", "alarm"),
    ("target out of range", "info"),
    ("target out of range", "alarm"),
    ("new class", "info"),
    ("turned", "alarm"),
    ("crept", "alarm"),
)
OUT, OUT_STILL, FROZEN, MISSING, TARGET_OUT, TARGET_OUT_STILL, NEW_CLASS, HAS_TURNED, HAS_CREPT = range(9)
# What a feature is: nothing that is watched, a number, or whether its column is missing.
NOTHING, NUMBER, GAP = 0, 1, 2
# Rows that are looked at together, column by column, and lines that they may fill.
MOST_ROWS, MOST_TOLD = 128, 2**16

RANGE_BLOCK, RANGE_FROM, BEYOND = 256, 512, 0.5
SUSTAINED = 20
LEAST_CHANCE, LEAST_RUN = math.log(1e-9), 20
NEW_CLASS_FROM = 100
#: Rows between updates of the usual loss, how many it remembers, and how many it needs.
BLOCK, REMEMBERED, ENOUGH = 64, 512.0, 128.0
#: The log-likelihood ratio that is noticed, and the rows that it is silent for afterwards.
TURNED, SILENCE = 9.0, 200
#: The same of targets outside of their intervals: eleven in a row, or one in three for 70 rows.
LOST = 12.0
LARGEST_RATIO, LEAST_RATE = 20.0, 0.005
#: Rows whose mean is remembered, and after how many of them it is looked at: whoever waits for the last one
#: may be late by as many, and of ten streams by classes and ten by numbers none is told of for nothing.
CREPT, CREEP_LOOKS = 1024, 128
CREEP_RATIO, CREEP_ERRORS = 1.25, 4.0


Told = tuple[int, int, int, float]
"""Row, kind (in :data:`FOUND`), feature or -1, size."""


class Watch(Part):
    """The statistics of all columns, of the target and of the loss, and the events noticed so far.

    Some 10 nanoseconds a value. Memory: 13 numbers a column.
    """

    STATE = fields(
        rows=Count(),
        statistics=Array(None, PER_COLUMN, written="always"),
        log=Inner(),
    )

    def __init__(self) -> None:
        self.rows: int = 0
        #: Those of the target and the loss in the first two rows, then one a feature.
        self.statistics: Matrix = np.zeros((2, PER_COLUMN))
        self.log: EventLog = EventLog()
        #: Features that are watched, or known not to be.
        self.width: int = 0

    @property
    def columns(self) -> Matrix:
        """The statistics of the features, a row each; a view."""
        return self.statistics[2:]

    @property
    def numbers(self) -> Vector:
        """Those of the target and of the loss; a view."""
        return self.statistics[:2].reshape(-1)

    def plan(self, roles: Any, gaps: Any) -> None:
        """What the features are, and where each number's gaps are told, -1: nowhere."""
        self.width = len(roles)
        more = np.zeros((len(roles) - len(self.columns), PER_COLUMN))
        self.statistics = np.vstack([self.statistics, more])
        self.columns[:, ROLE], self.columns[:, GAP_AT] = roles, gaps

    def learn(self, X: Matrix, y: Vector, losses: Vector, labelled: bool) -> list[Told]:
        """Rows in order; what was noticed: row, kind (in :data:`FOUND`), feature or -1, size."""
        found: list[Told] = []
        each = 2 * len(self.columns) + 8  # what a row can tell at most
        some = max(min(len(X), MOST_ROWS, MOST_TOLD // each), 1)
        out = np.empty((some * each + 1, 4))
        for start in range(0, len(X), some):
            stop = min(start + some, len(X))
            _watch(X, y, losses, labelled, start, stop, self.rows, self.columns, self.numbers, out)
            self.rows += stop - start
            lines = out[: int(out[-1, 0])].tolist()
            found += [(int(row), int(kind), int(feature), size) for row, kind, feature, size in lines]
        return found

    def doubts(self, told: Matrix) -> list[tuple[int, str, str, tuple[Any, ...], float]]:
        """Which rows are events, by what :mod:`kons.learners.predictive` tells of each."""
        lost = np.zeros(len(told))
        _cover(np.ascontiguousarray(told[:, MISSED]), self.numbers, lost)
        events = [(int(row), "coverage lost", "alarm", (), float(lost[row])) for row in np.flatnonzero(lost)]
        novelties = told[:, NOVELTY_HIGH]
        new = np.flatnonzero(novelties)
        return events + [(int(row), "novelty high", "info", (), float(novelties[row])) for row in new]

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.statistics) < 2:
            raise stored.error("statistics are not there")
        roles, gaps = self.columns[:, ROLE], self.columns[:, GAP_AT]
        known = np.isin(roles, (NOTHING, NUMBER, GAP)) & np.isin(gaps, np.arange(-1, len(gaps)))
        if not known.all():
            raise stored.error("its columns hold something else than what their features are")
        self.width = len(gaps)


@inner
def _tell(out: Matrix, row: int, kind: int, feature: int, size: float) -> None:
    """Write a line of what was found; how many there are is behind the last one."""
    count = int(out[-1, 0])
    out[count, 0], out[count, 1], out[count, 2], out[count, 3] = row, kind, feature, size
    out[-1, 0] = count + 1.0


@inner
def _numbers(X: ReadMatrix, j: int, start: int, stop: int, row: int, state: Vector, out: Matrix) -> None:
    """Values of a column, in order: its range, and how often it repeats. The last line of ``out`` counts."""
    gap, values, last, run = int(state[GAP_AT]), state[VALUES], state[LAST], state[RUN]
    longest, repeats, told = state[LONGEST], state[REPEATS], state[TOLD]
    low, high, least, most = state[LOW], state[HIGH], state[LEAST], state[MOST]
    for t in range(start, stop):
        if gap >= 0 and X[t, gap] != 0.0:
            continue
        value, at = X[t, j], row + t
        if at % RANGE_BLOCK == 0:
            low, high = least, most
        if values > 0.0 and value == last:
            repeats += 1.0
            run += 1.0
        else:
            longest, run, told = max(longest, run), 0.0, 0.0
        excess = _excess(value, low, high, at) if value > high or value < low else 0.0
        if excess > BEYOND:
            state[OUTSIDE] += 1.0
            if state[OUTSIDE] == 1.0 or state[OUTSIDE] == SUSTAINED:
                _tell(out, at, OUT if state[OUTSIDE] == 1.0 else OUT_STILL, j, excess)
        else:
            state[OUTSIDE] = 0.0
        if values == 0.0:
            least, most = value, value
        least, most, last = min(least, value), max(most, value), value
        values += 1.0
        if _is_long(1.0, run, longest, told, repeats, values):
            told = 1.0
            _tell(out, at, FROZEN, j, run)
    state[VALUES], state[LAST], state[RUN], state[LONGEST] = values, last, run, longest
    state[REPEATS], state[TOLD] = repeats, told
    state[LOW], state[HIGH], state[LEAST], state[MOST] = low, high, least, most


@inner
def _gaps(X: ReadMatrix, j: int, start: int, stop: int, row: int, state: Vector, out: Matrix) -> None:
    """Whether a column is missing, row by row: how long a gap is."""
    for t in range(start, stop):
        if X[t, j] == 0.0:
            state[LONGEST], state[RUN], state[TOLD] = max(state[LONGEST], state[RUN]), 0.0, 0.0
            continue
        state[REPEATS] += 1.0 if state[RUN] > 0.0 else 0.0
        state[RUN] += 1.0
        state[VALUES] += 1.0
        if _is_long(2.0, state[RUN], state[LONGEST], state[TOLD], state[REPEATS], state[VALUES]):
            state[TOLD] = 1.0
            _tell(out, row + t, MISSING, j, state[RUN])


@inner
def _is_long(prior: float, run: float, longest: float, told: float, repeats: float, values: float) -> bool:
    """Whether a run is to be told, once: far longer than usual repeats and earlier runs make likely."""
    if run < LEAST_RUN or run < 2.0 * longest or told != 0.0:
        return False
    # Without the run itself, of so many repeats.
    usual = (repeats - run + prior) / (values - run + prior)
    if usual >= 1.0:
        return False
    return run * math.log(usual) < LEAST_CHANCE


@inner
def _excess(value: float, low: float, high: float, row: int) -> float:
    """How far a value lies outside of a range, in units of its size; 0 before the range means something."""
    if row < RANGE_FROM or not high > low:
        return 0.0
    return max(value - high, low - value) / (high - low)


@inner
def _target(row: int, y: float, labelled: bool, numbers: Vector, out: Matrix) -> None:
    if labelled:
        if y >= numbers[CLASSES]:
            if row >= NEW_CLASS_FROM:
                _tell(out, row, NEW_CLASS, -1, y)
            numbers[CLASSES] = y + 1.0
        return
    if y != y:
        return
    if row % RANGE_BLOCK == 0:
        numbers[TARGET_LOW], numbers[TARGET_HIGH] = numbers[TARGET_LEAST], numbers[TARGET_MOST]
    excess = _excess(y, numbers[TARGET_LOW], numbers[TARGET_HIGH], row)
    if excess > BEYOND:
        numbers[TARGET_OUTSIDE] += 1.0
        if numbers[TARGET_OUTSIDE] == 1.0 or numbers[TARGET_OUTSIDE] == SUSTAINED:
            kind = TARGET_OUT if numbers[TARGET_OUTSIDE] == 1.0 else TARGET_OUT_STILL
            _tell(out, row, kind, -1, excess)
    else:
        numbers[TARGET_OUTSIDE] = 0.0
    if numbers[TARGETS] == 0.0:
        numbers[TARGET_LEAST], numbers[TARGET_MOST] = y, y
    numbers[TARGET_LEAST], numbers[TARGET_MOST] = min(numbers[TARGET_LEAST], y), max(numbers[TARGET_MOST], y)
    numbers[TARGETS] += 1.0


@inner
def _loss(row: int, e: float, labelled: bool, numbers: Vector, out: Matrix) -> None:
    """The loss of one row: whether it turned, or has crept."""
    known = numbers[MEAN_WEIGHT]
    mean = numbers[MEAN_SUM] / max(known, 1.0)
    if known > 0.0 and not labelled:
        e = min(e, LARGEST_RATIO * max(mean, 1e-300))
    if known >= ENOUGH and row >= numbers[SILENT] and (labelled or mean > 0.0):
        if labelled:
            p = min(max(mean, LEAST_RATE), 1.0 - LEAST_RATE)
            q = min(2.0 * p, 0.5 * (1.0 + p))
            gain = math.log(q / p) if e > 0.0 else math.log((1.0 - q) / (1.0 - p))
        else:
            variance = numbers[MEAN_SQUARES] / known - mean * mean
            gain = min(mean * mean / max(variance, 1e-300), 0.5) * (0.5 * e / mean - math.log(2.0))
        numbers[CUSUM] = max(0.0, numbers[CUSUM] + gain)
        if numbers[CUSUM] > TURNED:
            recent = (numbers[BLOCK_SUM] + numbers[LAG_SUM]) / max(
                numbers[BLOCK_COUNT] + numbers[LAG_COUNT], 1.0
            )
            _tell(out, row, HAS_TURNED, -1, recent / max(mean, LEAST_RATE if labelled else 1e-300))
            # What was usual is no more: it is found anew, once the first rows behind are over.
            numbers[CUSUM], numbers[SILENT] = 0.0, row + SILENCE
            for i in range(MEAN_WEIGHT, LAG_SQUARES + 1):
                numbers[i] = 0.0
            numbers[BEST_KNOWN] = 0.0
            numbers[LONG_COUNT], numbers[LONG_SUM], numbers[LONG_SQUARES] = 0.0, 0.0, 0.0
    if row < numbers[SILENT]:
        return
    numbers[BLOCK_COUNT] += 1.0
    numbers[BLOCK_SUM] += e
    numbers[BLOCK_SQUARES] += e * e
    if numbers[BLOCK_COUNT] == BLOCK:
        if numbers[LAG_COUNT] > 0.0:
            decay = 1.0 - BLOCK / REMEMBERED
            numbers[MEAN_WEIGHT] = decay * numbers[MEAN_WEIGHT] + numbers[LAG_COUNT]
            numbers[MEAN_SUM] = decay * numbers[MEAN_SUM] + numbers[LAG_SUM]
            numbers[MEAN_SQUARES] = decay * numbers[MEAN_SQUARES] + numbers[LAG_SQUARES]
        for i in range(3):
            numbers[LAG_COUNT + i], numbers[BLOCK_COUNT + i] = numbers[BLOCK_COUNT + i], 0.0
    numbers[LONG_COUNT] += 1.0
    numbers[LONG_SUM] += e
    numbers[LONG_SQUARES] += e * e
    if numbers[LONG_COUNT] % CREEP_LOOKS > 0.0:
        return
    count = numbers[LONG_COUNT]
    mean = numbers[LONG_SUM] / count
    error = max(numbers[LONG_SQUARES] / count - mean * mean, 0.0) / count
    if numbers[BEST_KNOWN] > 0.0:
        best, apart = numbers[BEST_MEAN], math.sqrt(error + numbers[BEST_ERROR])
        if mean > CREEP_RATIO * best and mean - best > CREEP_ERRORS * apart:
            _tell(out, row, HAS_CREPT, -1, mean / max(best, 1e-300))
            numbers[BEST_KNOWN] = 0.0  # from now on this is usual
    if count == CREPT:
        if numbers[BEST_KNOWN] == 0.0 or mean < numbers[BEST_MEAN]:
            numbers[BEST_MEAN], numbers[BEST_ERROR], numbers[BEST_KNOWN] = mean, error, 1.0
        numbers[LONG_COUNT], numbers[LONG_SUM], numbers[LONG_SQUARES] = 0.0, 0.0, 0.0


@compiled
def _cover(outside: Vector, numbers: Vector, lost: Vector) -> None:
    """Where three times as many targets lie outside of intervals of 90 % as should, summed; and how much."""
    for t in range(len(outside)):
        gain = outside[t] * math.log(3.0) + (1.0 - outside[t]) * math.log(0.7 / 0.9)
        numbers[UNCOVERED] = max(0.0, numbers[UNCOVERED] + gain)
        if numbers[UNCOVERED] > LOST:
            lost[t], numbers[UNCOVERED] = numbers[UNCOVERED], 0.0


@compiled
def _watch(
    X: ReadMatrix,
    y: ReadVector,
    losses: ReadVector,
    labelled: bool,
    start: int,
    stop: int,
    row: int,
    columns: Matrix,
    numbers: Vector,
    out: Matrix,
) -> None:
    """Rows from ``start`` up to ``stop``; column by column, what is known of one stays in registers.

    The last line of ``out`` says how many lines are filled.
    """
    columns = matrix_at(columns.ctypes.data, *columns.shape)
    X, out = matrix_at(X.ctypes.data, *X.shape), matrix_at(out.ctypes.data, *out.shape)
    first = row - start
    out[-1, 0] = 0.0
    for j in range(len(columns)):
        if columns[j, ROLE] == NUMBER:
            _numbers(X, j, start, stop, first, columns[j], out)
        elif columns[j, ROLE] == GAP:
            _gaps(X, j, start, stop, first, columns[j], out)
    for t in range(start, stop):
        _target(first + t, y[t], labelled, numbers, out)
        if losses[t] == losses[t]:
            _loss(first + t, losses[t], labelled, numbers, out)
