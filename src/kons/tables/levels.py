"""Categories as numbers: a column for each frequent level, and what the targets of a level were so far.

::

    indicator     1 in the column of the row's level; a level gets one when it has come often enough
    statistic     the mean target of the level's rows before this one, drawn to the mean of all by

                      (sum_l + m mean) / (n_l + m),      m = variance within levels / variance between them

The ratio m is estimated from the rows themselves (one-way analysis of variance, by moments), so that levels
that tell nothing are drawn to the mean of all, and levels that decide the target are believed at once.

Columns of few levels explain: what a level of theirs told before is taken from the target that the columns
behind them learn, those with the fewest features first. So the mean of a suburb is that of like houses, not
of the kinds which happen to stand there: the few levels of another column tell these, and are known soon.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from kons.arrays import Integers, Matrix, ReadIntegers, Vector
from kons.compilation import compiled
from kons.state import Array, Count, Field, Part, Sizes, Whole, fields
from kons.stored import Stored

__all__ = [
    "FREQUENT",
    "MOST_EXPLAINING",
    "MOST_INDICATORS",
    "MOST_LEVELS",
    "Indicators",
    "Levels",
    "TargetStatistics",
]

#: Columns that the levels of one column may take; beyond, its target statistics join.
MOST_INDICATORS = 64
#: Rows of a level before it gets a column: so that identifiers, which never come again, take none.
FREQUENT = 2
#: One in so many rows must be of a level for which more columns are made: each time costs the learner a look
#: at all of them.
NOTICED = 256
#: Columns for levels are asked for in steps from this one on, doubling: each tells the learner once.
FIRST_CAPACITY = 4
#: Levels that are remembered by name; later ones share :data:`BUCKETS`, so that memory stays flat.
MOST_LEVELS = 10_000
#: Places that later levels share, by a hash of their name.
BUCKETS = 1024
#: Features up to which a column of text explains: in these few the learner has what is taken away. Of more,
#: say districts, it would have to put together again what the mean of a suburb had told at once.
MOST_EXPLAINING = 16
#: m before there are enough rows to estimate it, and the range it is kept in.
FIRST_SHRINKAGE, LEAST_SHRINKAGE, MOST_SHRINKAGE = 10.0, 0.1, 1000.0
NAMES = {str, float, type(None)}
# Targets count at most this far from the first one: squares of sums over all rows stay numbers.
FARTHEST = 1e140
# Mean distances from the mode beyond which a number counts as so far; what is left of a feature by rounding.
FAR, ROUNDING = 5.0, 1e-12
# Rows of the totals: rows, levels met, sum of n_l^2; then for each output origin, S, Q and B.
ROWS, MET, SQUARES, PER_OUTPUT = 0, 1, 2, 3
ORIGIN, SUM, SUM_OF_SQUARES, BETWEEN, OUTPUT_TOTALS = 0, 1, 2, 3, 4


class _Names(Field):
    """Levels by name, in the order of their codes; None, a gap, is one of them."""

    undoes = True

    def save(self, part: Any, name: str) -> Any:
        return list(getattr(part, name))

    def load(self, stored: Stored, key: str, part: Any, name: str, sizes: Sizes) -> Any:
        names = stored.items(key)
        if len(names) > MOST_LEVELS or not set(map(type, names)) <= NAMES:
            raise stored.error(f"{key} holds something else than at most {MOST_LEVELS:,} levels")
        codes = dict(zip(names, range(len(names)), strict=True))
        if len(codes) < len(names):
            raise stored.error(f"{key} holds a level twice")
        return codes

    def mark(self, part: Any, name: str) -> Any:
        return len(getattr(part, name))

    def restore(self, part: Any, name: str, mark: Any) -> None:
        codes = getattr(part, name)
        while len(codes) > mark:  # levels are only ever added, behind the others
            codes.popitem()


class Levels(Part):
    """The codes of the levels of one column, in order of first appearance; a bounded number of them.

    "4" and "4.0" are the same level, whichever came first.

    >>> levels = Levels()
    >>> levels.learn(["red", None, "red", "blue"]).tolist(), levels.find(["blue", "green"]).tolist()
    ([0, 1, 0, 2], [2, -1])
    """

    STATE = fields(codes=_Names())

    def __init__(self) -> None:
        self.codes: dict[str | float | None, int] = {}

    def __len__(self) -> int:
        """How many codes there may have been."""
        return len(self.codes) + BUCKETS * (len(self.codes) == MOST_LEVELS)

    @property
    def names(self) -> list[str | float | None]:
        """The levels in the order of their codes."""
        return list(self.codes)

    def learn(self, values: Any) -> Any:
        """The code of each value, new ones among them."""
        codes = self.codes
        out = np.empty(len(values), dtype=np.int64)
        for i, value in enumerate(values):
            code = codes.get(value)
            if code is None:
                code = self.find_one(value)
                code = code if code >= 0 else codes.setdefault(value, len(codes))
            out[i] = code
        return out

    def find(self, values: Any) -> Any:
        """The code of each value, -1 for one that is not known."""
        get, find_one = self.codes.get, self.find_one
        known = [find_one(value) if (code := get(value)) is None else code for value in values]
        return np.array(known, dtype=np.int64)

    def find_one(self, value: Any) -> int:
        """The code of one value, -1 if it is not known."""
        code = self.codes.get(value)
        if code is None:
            code = self.codes.get(_written_otherwise(value), -1)
        return _bucket(value) if code < 0 and len(self.codes) == MOST_LEVELS else code


def _written_otherwise(value: Any) -> Any:
    """A whole number as text with ".0", or without: a file or a frame holds 4 as 4.0 where there are gaps."""
    whole = value.removesuffix(".0") if type(value) is str else ""
    if not whole.removeprefix("-").isdecimal():
        return value
    return f"{value}.0" if whole == value else whole


def _bucket(value: Any) -> int:
    digest = blake2b(str(value).removesuffix(".0").encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return MOST_LEVELS + int.from_bytes(digest, "little") % BUCKETS


def _room(levels: int) -> int:
    """Places for so many levels and some more; the same however they came."""
    return 1 << max(levels - 1, 3).bit_length()


class Indicators(Part):
    """Which levels have a column of their own: those that came often enough, the first 64 of them."""

    STATE = fields(
        counts=Whole("levels", written="always"),
        places=Array("levels", at_least=-1.0, written="always"),
        used=Count(at_most=MOST_INDICATORS),
        capacity=Count(at_most=MOST_INDICATORS),
    )

    def __init__(self) -> None:
        self.counts: Integers = np.zeros(0, dtype=np.int64)
        self.places: Vector = np.zeros(0)
        self.used: int = 0
        #: Columns that are there for it; more are asked for in steps.
        self.capacity: int = 0

    def reach(self, levels: int) -> None:
        """Let there be so many levels."""
        if levels > len(self.counts):
            more = _room(levels) - len(self.counts)
            self.counts = np.concatenate([self.counts, np.zeros(more, dtype=np.int64)])
            self.places = np.concatenate([self.places, np.full(more, -1.0)])

    def first_growth(self, codes: Any) -> int:
        """The first row after which a level lacks a column; the number of rows if none does."""
        rows = int(self.counts.sum())
        return int(_place(codes, self.counts.copy(), self.places.copy(), self.used, self.capacity, rows)[0])

    def lacks_room(self, code: int) -> bool:
        """Whether the level of the last row comes often enough, has no column, and there is none left."""
        return self._lacks_room(code, int(self.counts[code]), int(self.counts.sum()))

    def would_lack_room(self, code: int, rows: int) -> bool:
        """The same behind one more row of this level, where so many have come."""
        return self._lacks_room(code, int(self.counts[code]) + 1, rows + 1)

    def _lacks_room(self, code: int, count: int, rows: int) -> bool:
        if self.used < self.capacity or self.places[code] >= 0.0 or count < FREQUENT:
            return False
        # Where all columns are taken the target statistics join, which is cheap.
        return self.capacity == MOST_INDICATORS or count * NOTICED >= rows

    def learn(self, codes: Any) -> Any:
        """The column that each row has among its own, -1 for none; counts the rows."""
        before = self.find(codes) if len(codes) == 1 else None
        out = np.empty(len(codes), dtype=np.int64)
        self.used = int(_learn_places(codes, self.counts, self.places, self.used, self.capacity, out))
        return out if before is None else before

    def learn_one(self, code: int) -> None:
        """Count a row."""
        self.counts[code] += 1
        if self.used < self.capacity and self.places[code] < 0.0 and self.counts[code] >= FREQUENT:
            self.places[code], self.used = self.used, self.used + 1

    def give_up(self, capacity: int) -> None:
        """Columns from this one on are no more."""
        self.capacity, self.used = capacity, min(self.used, capacity)
        self.places[self.places >= capacity] = -1.0

    def find(self, codes: Any) -> Any:
        """The column of each row, -1 for none. Changes nothing."""
        known = np.append(self.places, -1.0)
        return known[codes].astype(np.int64)

    def make_room(self) -> int:
        """Take twice as many columns, if there may be as many; how many these are more."""
        before = self.capacity
        self.capacity = min(MOST_INDICATORS, max(FIRST_CAPACITY, 2 * before))
        self._place_waiting()
        return self.capacity - before

    def _place_waiting(self) -> None:
        """Give columns to levels that have waited for them."""
        for code in np.flatnonzero((self.counts >= FREQUENT) & (self.places < 0.0)).tolist():
            if self.used < self.capacity:
                self.places[code], self.used = self.used, self.used + 1

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        placed = self.places[self.places >= 0.0]
        if sorted(placed.tolist()) != list(range(self.used)) or self.used > self.capacity:
            raise stored.error("its levels do not fill its columns")


@compiled
def _learn_places(
    codes: ReadIntegers, counts: Integers, places: Vector, used: int, capacity: int, out: Integers
) -> int:
    """Count rows, and give columns to levels that have come often enough, while there are some."""
    for t in range(len(codes)):
        code = codes[t]
        out[t] = int(places[code])
        counts[code] += 1
        if places[code] < 0.0 and counts[code] >= FREQUENT and used < capacity:
            places[code] = float(used)
            used += 1
    return used


@compiled
def _place(
    codes: ReadIntegers, counts: Integers, places: Vector, used: int, capacity: int, rows: int
) -> tuple[int, int]:
    """As :func:`_learn_places`, up to the first row after which there is no column for a level."""
    for t in range(len(codes)):
        code = codes[t]
        counts[code] += 1
        if places[code] < 0.0 and counts[code] >= FREQUENT:
            if used < capacity:
                places[code] = float(used)
                used += 1
            elif capacity == MOST_INDICATORS or counts[code] * NOTICED >= rows + t + 1:
                return t, used
    return len(codes), used


class TargetStatistics(Part):
    """The shrunk mean target of each level, of rows whose targets are known.

    O(K) a row with K outputs. A level that was never met is the mean of all.

    >>> import numpy as np
    >>> statistics = TargetStatistics(1)
    >>> statistics.reach(2)
    >>> codes, targets = np.tile([0, 1], 50), np.tile([[1.0], [5.0]], (50, 1))
    >>> _ = statistics.follow(codes, codes, targets, np.arange(100))
    >>> statistics.look(np.array([0, 1, -1])).round(2).ravel().tolist()
    [1.0, 5.0, 3.0]
    """

    STATE = fields(
        outputs=Count(at_least=1, at_most=1024, binds="outputs"),
        counts=Array("levels", at_least=0.0, written="always"),
        sums=Array("levels", "outputs", written="always"),
        totals=Array(None, written="always"),
    )

    def __init__(self, outputs: int) -> None:
        self.outputs: int = outputs
        self.counts: Vector = np.zeros(0)
        self.sums: Matrix = np.zeros((0, outputs))
        self.totals: Vector = np.zeros(PER_OUTPUT + OUTPUT_TOTALS * outputs)

    def reach(self, levels: int) -> None:
        """Let there be so many levels."""
        if levels > len(self.counts):
            more = _room(levels) - len(self.counts)
            self.counts = np.concatenate([self.counts, np.zeros(more)])
            self.sums = np.concatenate([self.sums, np.zeros((more, self.outputs))])

    def add_outputs(self, outputs: int) -> None:
        """So many more: classes of which no row was known."""
        self.outputs += outputs
        self.sums = np.ascontiguousarray(np.pad(self.sums, ((0, 0), (0, outputs))))
        self.totals = np.concatenate([self.totals, np.zeros(OUTPUT_TOTALS * outputs)])

    def follow(
        self, codes: Any, known_codes: Any, known_targets: Matrix, before: Any, explains: bool = False
    ) -> Matrix:
        """The statistics of each row, of which ``before[t]`` of the known rows are known before row t.

        Afterwards all known rows have been learned; what it ``explains`` has been taken from their targets.
        """
        out = np.empty((len(codes), self.outputs))
        _follow(codes, known_codes, known_targets, before, explains, self.counts, self.sums, self.totals, out)
        return out

    def learn_one(self, code: int, known: Vector, explains: bool) -> None:
        """Learn a row of this level, whose targets are known; what it ``explains`` is taken from them."""
        _learn_known(code, known, explains, self.counts, self.sums, self.totals)

    def look_one(self, code: int, output: int) -> float:
        """One statistic of one level as it is now, -1 for one that is not known."""
        return _statistic(code, output, self.counts, self.sums, self.totals)

    def look(self, codes: Any) -> Matrix:
        """The statistics as they are now. Changes nothing."""
        out = np.empty((len(codes), self.outputs))
        _look(codes, self.counts, self.sums, self.totals, out)
        return out

    @property
    def rows(self) -> int:
        """How many were learned."""
        return int(self.totals[ROWS])

    def gain_over_line(self, values: Vector) -> float:
        """Of levels that are numbers: the variance that they explain beyond a line, as a share; at most.

        ::

            1 - within/(N - L) / (total/(N - 1))   against   R^2 of y on (value, whether it is the mode)

        both of the rows learned, the former without the bias that its many means bring. NaN is no number.
        """
        n = self.counts[: len(values)]
        there = (n > 0.0) & np.isfinite(values)
        n, values, sums = n[there], values[there], self.sums[: len(there)][there]
        rows, met = n.sum(), len(n)
        if rows < met + 2.0 or met < 3:
            return -np.inf
        mode = values[n.argmax()]
        with np.errstate(over="ignore"):
            unit = np.average(np.abs(values - mode), weights=n)
        away = np.clip((values - mode) / unit, -FAR, FAR) if np.isfinite(unit) else np.sign(values - mode)
        # The two, centred, the second without what the first tells: then each explains by itself.
        line = away - np.average(away, weights=n)
        flag = (values != mode) - np.average(values != mode, weights=n)
        flag = flag - (n * flag * line).sum() / (n * line * line).sum() * line
        gains = []
        for k in range(self.outputs):
            at = PER_OUTPUT + OUTPUT_TOTALS * k
            total = self.totals[at + SUM_OF_SQUARES] - sums[:, k].sum() ** 2 / rows
            within = self.totals[at + SUM_OF_SQUARES] - (sums[:, k] ** 2 / n).sum()
            if total <= 0.0:
                continue
            explained = 0.0
            for feature in (line, flag):
                square = (n * feature * feature).sum()
                if square > ROUNDING * rows:
                    explained += (feature * sums[:, k]).sum() ** 2 / square
            gains.append(1.0 - within / (rows - met) * (rows - 1.0) / total - explained / total)
        return max(gains, default=-np.inf)

    def _loaded(self, stored: Stored, sizes: Sizes) -> None:
        if len(self.totals) != PER_OUTPUT + OUTPUT_TOTALS * self.outputs:
            raise stored.error("its totals are not those of its outputs")


@compiled
def _statistic(code: int, k: int, counts: Vector, sums: Matrix, totals: Vector) -> float:
    """Of one level and output. Targets are counted from the first one, their origin."""
    rows, at = totals[ROWS], PER_OUTPUT + OUTPUT_TOTALS * k
    if rows == 0.0:
        return 0.0
    total, met = totals[at + SUM], totals[MET]
    mean, shrinkage = total / rows, FIRST_SHRINKAGE
    if rows > met + 1.0 and met > 1.0:
        # One-way analysis of variance: E[B] = (N - sum n^2/N) tau^2 + L sigma^2, B around the mean.
        within = max(totals[at + SUM_OF_SQUARES] - totals[at + BETWEEN], 0.0) / (rows - met)
        spread = totals[at + BETWEEN] - total * mean - (met - 1.0) * within
        between = spread / (rows - totals[SQUARES] / rows)
        if between * MOST_SHRINKAGE <= within:
            shrinkage = MOST_SHRINKAGE
        else:
            shrinkage = max(within / between, LEAST_SHRINKAGE)
    if code < 0 or code >= len(counts) or counts[code] == 0.0:
        return float(mean + totals[at + ORIGIN])
    drawn = (sums[code, k] + shrinkage * mean) / (counts[code] + shrinkage)
    return float(drawn + totals[at + ORIGIN])


@compiled
def _learn_known(
    code: int, known: Vector, explains: bool, counts: Vector, sums: Matrix, totals: Vector
) -> None:
    """Learn a row of a level, whose targets are known; what it explains, if it does, is taken from them."""
    n = counts[code]
    for k in range(sums.shape[1]):
        at = PER_OUTPUT + OUTPUT_TOTALS * k
        effect = 0.0
        if explains:
            effect = _statistic(code, k, counts, sums, totals) - _statistic(-1, k, counts, sums, totals)
        if totals[ROWS] == 0.0:
            totals[at + ORIGIN] = known[k]
        y, s = min(max(known[k] - totals[at + ORIGIN], -FARTHEST), FARTHEST), sums[code, k]
        totals[at + SUM] += y
        totals[at + SUM_OF_SQUARES] += y * y
        totals[at + BETWEEN] += (s + y) * (s + y) / (n + 1.0) - (s * s / n if n > 0.0 else 0.0)
        sums[code, k] = s + y
        known[k] -= effect
    if n == 0.0:
        totals[MET] += 1.0
    totals[SQUARES] += 2.0 * n + 1.0
    totals[ROWS] += 1.0
    counts[code] = n + 1.0


@compiled
def _look(codes: ReadIntegers, counts: Vector, sums: Matrix, totals: Vector, out: Matrix) -> None:
    for t in range(len(codes)):
        for k in range(sums.shape[1]):
            out[t, k] = _statistic(codes[t], k, counts, sums, totals)


@compiled
def _follow(
    codes: ReadIntegers,
    known_codes: ReadIntegers,
    known_targets: Matrix,
    before: ReadIntegers,
    explains: bool,
    counts: Vector,
    sums: Matrix,
    totals: Vector,
    out: Matrix,
) -> None:
    outputs, done = sums.shape[1], 0
    for t in range(len(codes) + 1):
        end = before[t] if t < len(codes) else len(known_codes)
        while done < end:
            if known_codes[done] >= 0:
                _learn_known(known_codes[done], known_targets[done], explains, counts, sums, totals)
            done += 1
        if t < len(codes):
            for k in range(outputs):
                out[t, k] = _statistic(codes[t], k, counts, sums, totals)
