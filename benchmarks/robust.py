"""Does AutoKONS stay sane, and how soon is it well again, when a stream turns nasty?

Every stream is synthetic. An *event* is the row at which the nasty thing starts, or is over; what is told
of it:

- recovery: the rows after it until the loss of the 200 that follow is at most twice that of a fresh
  AutoKONS, started at the event, on the same rows; or, where trouble is over, twice what it was before it;
- after / fresh: the loss of the 2,000 rows after it, in units of that of the fresh one;
- later / fresh: the same without the first 200 rows, which no one can foresee;
- after / trivial: the same, in units of the better one of the last target and the running mean (or the
  commonest class), both fresh too.

A stream without an event is told beside its *twin*, the same stream unspoiled: loss / twin. Everywhere it is
counted how many predictions are no numbers, and how many lie beyond the range of the targets seen by more
than a twentieth of it. Losses are squared errors or errors; where targets have no variance, medians.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from benchmarks.measuring import blas_threads
from benchmarks.reporting import Figure, Report, at_most
from benchmarks.settings import Settings
from kons import AutoKONS
from kons.compilation import cpu_clock

WINDOW, BEFORE, AFTER = 200, 1_000, 2_000
MARGIN = 0.05
MILLION = 1_000_000


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows, and the rows at which something happens."""

    name: str
    X: np.ndarray
    y: np.ndarray
    events: tuple[int, ...] = ()
    twin: tuple[np.ndarray, np.ndarray] | None = None
    weights: np.ndarray | None = None
    classes: bool = False
    median: bool = False
    unit: float = 1.0
    """What losses are divided by: the square of the scale of the targets."""
    trouble: int | None = None
    """Where trouble began that is over at the last event; before it all was well."""


@dataclass(frozen=True, eq=False)
class Played:
    """Losses of all rows, and what must never be."""

    loss: np.ndarray
    no_numbers: int
    beyond: int


def play(stream: Stream, start: int = 0) -> Played:
    """AutoKONS over a stream, or fresh from a row of it."""
    X, y = stream.X[start:], stream.y[start:]
    weights = None if stream.weights is None else stream.weights[start:]
    return judged(stream, y, AutoKONS(task_of(stream)).advance(X, y, sample_weight=weights), weights)


def task_of(stream: Stream) -> Any:
    return "classification" if stream.classes else "regression"


def judged(stream: Stream, y: np.ndarray, trace: Any, weights: np.ndarray | None = None) -> Played:
    if stream.classes:
        loss = np.array([a != b for a, b in zip(trace.prediction, y, strict=True)], dtype=np.float64)
        unknown = np.isnan(trace.scores).all(axis=1)
        infinite = np.isinf(trace.scores).any(axis=1)
        return Played(loss, int(np.sum(unknown[1:]) + np.sum(infinite)), 0)
    prediction = trace.prediction
    return Played(
        (prediction - y) ** 2, int(np.sum(~np.isfinite(prediction))), beyond(prediction, y, weights)
    )


def beyond(prediction: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> int:
    """How many predictions lie outside the range of the targets before them, plus the margin."""
    counted = np.ones(len(y), dtype=bool) if weights is None else weights > 0.0
    low = np.minimum.accumulate(np.where(counted, y, np.inf))[:-1]
    high = np.maximum.accumulate(np.where(counted, y, -np.inf))[:-1]
    known = low <= high
    low, high, inside = low[known], high[known], prediction[1:][known]
    room = MARGIN * (high - low) + 1e-9 * np.maximum(np.abs(low), np.abs(high))
    return int(np.sum((inside < low - room) | (inside > high + room)))


def level(stream: Stream, loss: np.ndarray) -> float:
    if not len(loss):
        return math.nan
    return float(np.median(loss) if stream.median else np.mean(loss))


def trivial(stream: Stream, start: int, stop: int) -> float:
    """The loss of the last target, or of the running mean or commonest class: the smaller one."""
    y = stream.y[start:stop]
    if stream.classes:
        codes = np.unique(stream.y, return_inverse=True)[1][start:stop]
        counts = np.cumsum(np.eye(codes.max() + 1)[codes], axis=0)
        guesses = [codes[:-1] != codes[1:], np.argmax(counts[:-1], axis=1) != codes[1:]]
        return float(min(np.mean(guess) for guess in guesses))
    means = np.cumsum(y)[:-1] / np.arange(1, len(y))
    return min(level(stream, (y[1:] - guess) ** 2) for guess in (y[:-1], means))


@dataclass(frozen=True)
class Told:
    """What is told of one event."""

    recovery: float
    beside_fresh: float
    later: float
    beside_trivial: float
    fresh: Played


def after(stream: Stream, played: Played, event: int) -> Told:
    """What one event cost."""
    later = [e for e in stream.events if e > event]
    stop = min([event + AFTER, len(stream.y), *later])
    until = min([len(stream.y), *later])
    fresh = play(_cut(stream, until), event)
    before = 0.0
    if stream.trouble is not None and not later:
        before = level(stream, played.loss[max(stream.trouble - BEFORE, 0) : stream.trouble])
    recovery = math.inf
    for first in range(event, until - WINDOW + 1, 10):
        mine = level(stream, played.loss[max(first, event + 1) : first + WINDOW])
        its = level(stream, fresh.loss[max(first - event, 1) : first - event + WINDOW])
        if mine <= 2.0 * max(its, before) or mine == 0.0:
            recovery = first - event
            break
    # The first row of a fresh model is a guess at nothing.
    mine, its = level(stream, played.loss[event + 1 : stop]), level(stream, fresh.loss[1 : stop - event])
    settled = slice(event + WINDOW, stop), slice(WINDOW, stop - event)
    later_on = _ratio(level(stream, played.loss[settled[0]]), level(stream, fresh.loss[settled[1]]))
    beside_trivial = _ratio(mine, trivial(stream, event, stop))
    return Told(recovery, _ratio(mine, its), later_on, beside_trivial, fresh)


def _cut(stream: Stream, stop: int) -> Stream:
    weights = None if stream.weights is None else stream.weights[:stop]
    return Stream(
        stream.name,
        stream.X[:stop],
        stream.y[:stop],
        weights=weights,
        classes=stream.classes,
        median=stream.median,
    )


def _ratio(a: float, b: float) -> float:
    return 1.0 if a == b else a / b if b > 0.0 else math.inf


# --- the streams


def smooth(rows: int, seed: int = 0, features: int = 4, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A function of three features under noise; ``shift`` is another function."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.0, 1.0, size=(rows, features))
    return X, function(X, shift) + 0.1 * random.normal(size=rows)


def function(X: np.ndarray, shift: float = 0.0) -> np.ndarray:
    a, b, c = (X[:, min(j, X.shape[1] - 1)] for j in range(3))
    return np.asarray(np.sin(3.0 * a + shift) + b * c * np.cos(shift))


def in_time(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The same with a slow wave, so that the last targets tell something."""
    X, y = smooth(rows, seed)
    return X, y + np.sin(np.arange(rows) / 50.0)


def classes(rows: int, seed: int = 0, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Sectors of a plane, and two features that tell nothing."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 4))
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.2 * random.normal(size=rows)
    return X, np.floor((angle + math.pi) / (2.0 * math.pi) * count).astype(np.int64) % count


def streams(settings: Settings) -> Iterator[Stream]:
    unit = 1_000 if settings.quick else 5_000
    for make in (jumps, frozen, bursts, labels, drifts, odd_targets, odd_rows):
        yield from make(unit)


def jumps(unit: int) -> Iterator[Stream]:
    for kind, base in (("", smooth), (", in time", in_time)):
        X, y = base(3 * unit)
        middle = np.zeros(3 * unit, dtype=bool)
        middle[unit : 2 * unit] = True
        yield Stream(
            f"targets x1000 and back{kind}", X, np.where(middle, 1e3 * y, y), (unit, 2 * unit), trouble=unit
        )
        yield Stream(
            f"targets +1e6 and back{kind}", X, np.where(middle, y + 1e6, y), (unit, 2 * unit), trouble=unit
        )
        yield Stream(
            f"targets /1000{kind}", X[: 2 * unit], np.where(middle, 1e-3 * y, y)[: 2 * unit], (unit,)
        )


def frozen(unit: int) -> Iterator[Stream]:
    X, y = smooth(3 * unit)
    middle = slice(unit, 2 * unit)
    some = X.copy()
    some[middle, :2] = some[unit, :2]
    yield Stream("two features freeze, y as before", some, y, (unit, 2 * unit), trouble=unit)
    yield Stream(
        "two features freeze, y with them",
        some,
        function(some) + y - function(X),
        (unit, 2 * unit),
        trouble=unit,
    )
    every = X.copy()
    every[middle] = every[unit]
    yield Stream(
        "all features freeze", every, function(every) + y - function(X), (unit, 2 * unit), trouble=unit
    )
    zero = X.copy()
    zero[middle] = 0.0
    yield Stream("all features 0, y as before", zero, y, (unit, 2 * unit), trouble=unit)
    for size in (1.0, 1e-3, 1e3):
        late = X[: 2 * unit].copy()
        late[:, 0] *= size
        late[:unit, 0] = 0.0
        # At first one feature does not move, and the target not with it.
        at_first = np.arange(2 * unit) < unit
        moving = function(np.column_stack([np.where(at_first, 0.0, X[: 2 * unit, 0]), X[: 2 * unit, 1:]]))
        noise = y[: 2 * unit] - function(X[: 2 * unit])
        yield Stream(f"a constant feature moves later, by {size:g}", late, moving + noise, (unit,))


def bursts(unit: int) -> Iterator[Stream]:
    for kind, base in (("", smooth), (", in time", in_time)):
        X, y = base(2 * unit)
        wild = slice(unit - 50, unit)
        signs = np.random.default_rng(1).choice([-1.0, 1.0], size=50)
        for size in (1e2, 1e4, 1e8):
            hit = y.copy()
            hit[wild] *= size * signs
            yield Stream(f"50 targets x{size:g}{kind}", X, hit, (unit,), trouble=unit - 50)
        one_sided = y.copy()
        one_sided[wild] = 1e4
        yield Stream(f"50 targets of 1e4{kind}", X, one_sided, (unit,), trouble=unit - 50)
        single = y.copy()
        single[unit - 1] = 1e6
        yield Stream(f"one target of 1e6{kind}", X, single, (unit,), trouble=unit - 50)
        far = X.copy()
        far[wild] *= 1e6
        yield Stream(f"50 rows of features x1e6{kind}", far, y, (unit,), trouble=unit - 50)
        hit = y.copy()
        hit[wild] *= 1e4 * signs
        yield Stream(f"50 rows, both{kind}", far, hit, (unit,), trouble=unit - 50)
    X, y = smooth(2 * unit)
    y[0] = 1e6
    yield Stream("the first target 1e6", X, y, (64,))
    X, y = smooth(2 * unit)
    X[:20] *= 1e6
    yield Stream("the first 20 rows of features x1e6", X, y, (64,))


def labels(unit: int) -> Iterator[Stream]:
    away = 2 * unit
    X, y = classes(unit + away + unit)
    shown = (y != 2) | (np.arange(len(y)) < unit) | (np.arange(len(y)) >= unit + away)
    back = int(np.sum(shown[: unit + away]))
    yield Stream("a class away for 10,000 rows", X[shown], y[shown], (back,), trouble=unit, classes=True)
    shown = (y != 2) | (np.arange(len(y)) >= unit + away)
    back = int(np.sum(shown[: unit + away]))
    yield Stream("a new class late", X[shown], y[shown], (back,), classes=True)
    X, y = classes(2 * unit)
    yield Stream(
        "labels swap", X, np.where(np.arange(2 * unit) < unit, y, (y + 1) % 3), (unit,), classes=True
    )
    one = np.where(np.arange(2 * unit) < unit, 0, y)
    yield Stream("one class only, then three", X, one, (unit,), classes=True)
    random = np.random.default_rng(2)
    noisy = y.copy()
    noisy[unit - 200 : unit] = random.integers(3, size=200)
    yield Stream("200 labels at random", X, noisy, (unit,), trouble=unit - 200, classes=True)
    far = X.copy()
    far[unit - 50 : unit] *= 1e6
    yield Stream("50 rows of features x1e6, classes", far, y, (unit,), trouble=unit - 50, classes=True)


def drifts(unit: int) -> Iterator[Stream]:
    for kind, base in (("", smooth), (", in time", in_time)):
        X, y = base(2 * unit)
        other = y - function(X) + function(X, math.pi)
        t = np.arange(2 * unit)
        yield Stream(f"another function at once{kind}", X, np.where(t < unit, y, other), (unit,))
        slow = np.clip((t - unit) / (0.5 * unit), 0.0, 1.0) * math.pi
        turning = y - function(X) + np.sin(3.0 * X[:, 0] + slow) + X[:, 1] * X[:, 2] * np.cos(slow)
        yield Stream(f"another function, little by little{kind}", X, turning, (unit,))
        regimes = np.where((t < unit) | (t // 500 % 2 == 0), y, other)
        yield Stream(f"two functions in turn, 500 rows each{kind}", X, regimes, (unit,))
    X, y = smooth(6 * unit)
    t = np.arange(6 * unit)
    other = y - function(X) + function(X, math.pi)
    yield Stream("another function after a long time", X, np.where(t < 5 * unit, y, other), (5 * unit,))
    moved = X[: 2 * unit] + np.where(t[: 2 * unit] < unit, 0.0, 5.0)[:, None]
    noise = y[: 2 * unit] - function(X[: 2 * unit])
    yield Stream("features move away", moved, function(moved) + noise, (unit,))


def odd_targets(unit: int) -> Iterator[Stream]:
    random = np.random.default_rng(3)
    X, y = smooth(2 * unit)
    yield Stream(
        "Cauchy noise", X, function(X) + 0.1 * random.standard_cauchy(2 * unit), twin=(X, y), median=True
    )
    still = np.where(np.arange(2 * unit) < unit, 7.0, y)
    yield Stream("constant targets, then moving", X, still, (unit,))
    yield Stream("moving targets, then constant", X, np.where(np.arange(2 * unit) < unit, y, 7.0), (unit,))
    yield Stream("integers", X, np.round(3.0 * y) / 3.0, twin=(X, y))
    rare = np.where((X[:, 0] > 0.8) & (X[:, 1] > 0.8), 10.0 + y, 0.0)
    yield Stream("99 % zeros", X, rare, twin=(X, rare + 0.01 * (y - function(X))))
    skewed = np.exp(3.0 * y)
    yield Stream("skewed targets", X, skewed, twin=(X, skewed))


def odd_rows(unit: int) -> Iterator[Stream]:
    random = np.random.default_rng(4)
    X, y = smooth(2 * unit)
    twice = np.repeat(np.arange(unit), 2)
    yield Stream("every row twice", X[twice], y[twice], twin=(X, y))
    few = np.arange(2 * unit) % 20
    yield Stream("20 rows again and again", X[few], function(X[few]) + y - function(X), twin=(X, y))
    weights = np.where((np.arange(2 * unit) // 500) % 2 == 0, 1.0, 0.0)
    spoiled = np.where(weights > 0.0, y, 1e6)
    yield Stream(
        "weights 0 for 500 of 1,000 rows, targets wild there", X, spoiled, twin=(X, y), weights=weights
    )
    constant = np.column_stack([X, np.full((2 * unit, 20), 3.0)])
    yield Stream("20 constant columns more", constant, y, twin=(X, y))
    yield Stream("only constant columns", np.full((2 * unit, 5), 3.0), y, twin=(np.zeros((2 * unit, 1)), y))
    yield Stream("one column", X[:, :1].copy(), np.sin(3.0 * X[:, 0]) + y - function(X), twin=(X, y))
    noise = random.normal(size=(2 * unit, 196))
    yield Stream("196 columns of noise more", np.column_stack([X, noise]), y, twin=(X, y))
    for size in (1e12, 1e-12):
        yield Stream(f"features and targets x{size:g}", size * X, size * y, twin=(X, y), unit=size**2)
    yield Stream("features of four scales", X * [1e-12, 1.0, 1e6, 1e12], y, twin=(X, y))
    heavy = np.tan(0.499 * math.pi * X)
    yield Stream("features with heavy tails", heavy, y, twin=(X, y))
    walk = np.cumsum(random.normal(size=(2 * unit, 3)), axis=0)
    wave = np.sin(walk[:, 0] / 5.0) + 0.1 * random.normal(size=2 * unit)
    yield Stream("features that walk away", walk, wave, twin=(X, y))


# --- the report


def run(settings: Settings) -> Report:
    table: list[list[Any]] = []
    no_numbers = outside = 0
    recoveries, beside = [], []
    with blas_threads(1):
        for stream in streams(settings):
            played = play(stream)
            no_numbers, outside = no_numbers + played.no_numbers, outside + played.beyond
            for number, event in enumerate(stream.events):
                told = after(stream, played, event)
                no_numbers, outside = no_numbers + told.fresh.no_numbers, outside + told.fresh.beyond
                recoveries.append(told.recovery)
                beside.append(told.later)
                name = stream.name + (f", event {number + 1}" if len(stream.events) > 1 else "")
                table.append([name, told.recovery, told.beside_fresh, told.later, told.beside_trivial, ""])
            if stream.twin is not None:
                table.append([stream.name, "", "", "", *_beside_twin(stream, played)])
        figures = [
            at_most(0, "predictions that are no numbers", no_numbers, "of all streams"),
            at_most(0, "predictions beyond the range", outside, "of the targets seen, plus a twentieth"),
            Figure("slowest recovery", max(recoveries), "rows"),
            Figure(
                "mean recovery", float(np.mean(np.minimum(recoveries, AFTER))), "rows, at most 2,000 each"
            ),
            Figure("later / fresh, geometric mean", float(np.exp(np.mean(np.log(beside)))), "2,000 rows"),
            Figure("later / fresh, largest", max(beside), "2,000 rows"),
            *million(20_000 if settings.quick else MILLION),
        ]
    return Report(
        question="Does AutoKONS stay sane, and how soon is it well again, when a stream turns nasty?",
        data="synthetic; defaults",
        columns=("stream", "recovery", "after / fresh", "later / fresh", "after / trivial", "loss / twin"),
        table=table,
        figures=figures,
    )


def _beside_twin(stream: Stream, played: Played) -> list[float]:
    assert stream.twin is not None
    X, y = stream.twin
    twin = play(Stream(stream.name, X, y, classes=stream.classes, median=stream.median))
    counted = slice(None) if stream.weights is None else stream.weights > 0.0
    mine = level(stream, played.loss[counted]) / stream.unit
    return [
        mine * stream.unit / trivial(stream, 0, len(stream.y)),
        _ratio(mine, level(stream, twin.loss)),
    ]


def million(rows: int, block: int = 10_000) -> list[Figure]:
    """One long stream in blocks: time and memory of its last tenth beside the second."""
    model, process = AutoKONS(), psutil.Process()
    seconds, memory, bad = [], [], 0
    tenth = rows // 10
    for number in range(10):
        start, losses = 0.0, []
        for part in range(0, tenth, min(block, tenth)):
            X, y = smooth(min(block, tenth), seed=number * tenth + part)
            begun = cpu_clock()
            trace = model.advance(X, y)
            start += cpu_clock() - begun
            bad += int(np.sum(~np.isfinite(trace.prediction)))
            losses.append(float(trace.loss.mean()))
        seconds.append(start)
        memory.append(process.memory_info().rss)
    return [
        at_most(0, f"{rows:,} rows: predictions that are no numbers", bad, ""),
        at_most(1.2, f"{rows:,} rows: time of the last tenth / second", seconds[-1] / seconds[1], "CPU"),
        Figure(f"{rows:,} rows: us a row", sum(seconds) / rows * 1e6, "CPU, whole stream"),
        at_most(
            20.0, f"{rows:,} rows: rise of memory", (memory[-1] - memory[1]) / 1e6, "MB, after two tenths"
        ),
        Figure(f"{rows:,} rows: loss of the last tenth", float(np.mean(losses)), "0.01 is noise"),
    ]
