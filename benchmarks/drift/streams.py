"""Streams that move: named, seeded, fixed before the learner that is measured on them was changed.

Each is a function of its random numbers alone; most have noise that nobody can foresee, some have
stretches of rest. Those of a data folder (chessboard, classes_move, electricity, weather_noaa) come as is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.raw_streams import RawStream, load_file

ROWS = 16_000
FILES = ("chessboard", "classes_move", "electricity", "weather_noaa")
#: Rows of a file that are played.
MOST = 20_000


class Moving(NamedTuple):
    """Rows in the order of time, and what moves in them."""

    name: str
    kind: str
    """abrupt, creeping, recurring, local, or still."""
    stream: RawStream

    @property
    def classes(self) -> bool:
        return self.stream.task == "classification"

    def loss(self, prediction: np.ndarray, uncounted: int) -> float:
        """Mean squared error, or the part of the rows whose class was missed, behind the first rows."""
        y = self.stream.y
        losses = prediction != y if self.classes else (prediction - y) ** 2
        return float(losses[uncounted:].mean())


Made = tuple[np.ndarray, np.ndarray]
_MAKERS: dict[str, tuple[str, str, Callable[[np.random.Generator], Made]]] = {}


def _stream(
    kind: str, task: str
) -> Callable[[Callable[[np.random.Generator], Made]], Callable[[np.random.Generator], Made]]:
    def register(make: Callable[[np.random.Generator], Made]) -> Callable[[np.random.Generator], Made]:
        _MAKERS[make.__name__] = kind, task, make
        return make

    return register


_numbers, _classes = "regression", "classification"


def made_up(rows: int | None = None, seed: int = 0) -> Iterator[Moving]:
    """All that need no file; of each the first rows, where a number is given."""
    for number, (name, (kind, task, make)) in enumerate(_MAKERS.items()):
        X, y = make(np.random.default_rng([seed, number]))
        yield Moving(name, kind, RawStream(X[:rows], y[:rows], task, time_ordered=True))


def of_folder(folder: Path | None, rows: int | None = None) -> Iterator[Moving]:
    """Those of a data folder, as many as are there."""
    for name in FILES:
        stream = load_file(folder, name, "classification", time_ordered=True, rows=rows or MOST)
        if stream is not None:
            yield Moving(name, "file", stream)


# ---- numbers


def _waves(X: np.ndarray, phase: float | np.ndarray = 0.0) -> np.ndarray:
    return np.asarray(np.sin(2.0 * X[:, 0] + phase) + X[:, 1] * X[:, 2])


def _uniform(random: np.random.Generator, rows: int = ROWS, columns: int = 4) -> np.ndarray:
    return random.uniform(-1.5, 1.5, size=(rows, columns))


@_stream("still", _numbers)
def still_numbers(random: np.random.Generator) -> Made:
    """Nothing moves."""
    X = _uniform(random)
    return X, _waves(X) + 0.3 * random.normal(size=ROWS)


@_stream("creeping", _numbers)
def linear_turns(random: np.random.Generator) -> Made:
    """A linear function of two of four columns makes a turn in 16,000 rows."""
    X, angle = random.normal(size=(ROWS, 4)), np.arange(ROWS) * 2.0 * math.pi / ROWS
    return X, np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.3 * random.normal(size=ROWS)


@_stream("creeping", _numbers)
def linear_turns_slowly(random: np.random.Generator) -> Made:
    """The same, one turn in 400,000 rows: 240,000 of them."""
    rows = 240_000
    X, angle = random.normal(size=(rows, 4)), np.arange(rows) * 2.0 * math.pi / 400_000
    return X, np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.3 * random.normal(size=rows)


@_stream("creeping", _numbers)
def phase_creeps(random: np.random.Generator) -> Made:
    """A wave moves by a radian in 4,000 rows."""
    X = _uniform(random)
    return X, _waves(X, np.arange(ROWS) / 4_000) + 0.3 * random.normal(size=ROWS)


@_stream("creeping", _numbers)
def phase_creeps_slowly(random: np.random.Generator) -> Made:
    """By a radian in 100,000 rows: 300,000 of them."""
    rows = 300_000
    X = _uniform(random, rows)
    return X, _waves(X, np.arange(rows) / 100_000) + 0.3 * random.normal(size=rows)


@_stream("creeping", _numbers)
def moves_and_rests(random: np.random.Generator) -> Made:
    """A radian within 1,000 rows, then 3,000 rows of rest, again and again."""
    X, t = _uniform(random), np.arange(ROWS)
    phase = t // 4_000 + np.minimum(t % 4_000, 1_000) / 1_000
    return X, _waves(X, phase) + 0.3 * random.normal(size=ROWS)


@_stream("abrupt", _numbers)
def function_changes(random: np.random.Generator) -> Made:
    """Another function at row 6,000, a third one at 12,000."""
    X, t = _uniform(random), np.arange(ROWS)
    phase = np.where(t < 6_000, 0.0, np.where(t < 12_000, 2.0, 4.0))
    return X, _waves(X, phase) + 0.3 * random.normal(size=ROWS)


@_stream("abrupt", _numbers)
def other_columns_matter(random: np.random.Generator) -> Made:
    """From row 8,000 on the target depends on columns that did not matter before."""
    X, t = _uniform(random, columns=8), np.arange(ROWS)
    y = np.where(t < 8_000, _waves(X), _waves(X[:, 4:]))
    return X, y + 0.3 * random.normal(size=ROWS)


@_stream("recurring", _numbers)
def two_functions_in_turn(random: np.random.Generator) -> Made:
    """Each for 2,000 rows."""
    X, t = _uniform(random), np.arange(ROWS)
    return X, _waves(X, 2.5 * (t // 2_000 % 2)) + 0.3 * random.normal(size=ROWS)


@_stream("local", _numbers)
def one_corner_moves(random: np.random.Generator) -> Made:
    """Where the first column is above 0.5 the function moves; elsewhere it stays."""
    X, t = _uniform(random), np.arange(ROWS)
    phase = np.where(X[:, 0] > 0.5, t / 3_000, 0.0)
    return X, _waves(X, phase) + 0.3 * random.normal(size=ROWS)


@_stream("abrupt", _numbers)
def level_and_scale_of_target(random: np.random.Generator) -> Made:
    """The level jumps by ten at row 5,000, the scale by four at 10,000."""
    X, t = _uniform(random), np.arange(ROWS)
    y = _waves(X) + 0.3 * random.normal(size=ROWS)
    return X, np.where(t < 5_000, y, np.where(t < 10_000, y + 10.0, 4.0 * y + 10.0))


@_stream("creeping", _numbers)
def inputs_wander(random: np.random.Generator) -> Made:
    """The columns' level and scale move; the function of the raw columns stays."""
    t = np.arange(ROWS)
    X = _uniform(random)
    X[:, 0] = X[:, 0] * (1.0 + t / 8_000) + t / 4_000
    X[:, 1] += 2.0 * np.sin(t / 2_000)
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=ROWS)


@_stream("creeping", _numbers)
def sensor_loses_calibration(random: np.random.Generator) -> Made:
    """The target stays a function of what is measured; what the column shows gains an offset."""
    X, t = _uniform(random), np.arange(ROWS)
    y = _waves(X) + 0.3 * random.normal(size=ROWS)
    X[:, 0] += 3.0 * np.maximum(t - 4_000, 0) / ROWS
    return X, y


@_stream("abrupt", _numbers)
def column_comes_to_life(random: np.random.Generator) -> Made:
    """Constant until row 6,000, a part of the target from then on."""
    X, t = _uniform(random), np.arange(ROWS)
    X[t < 6_000, 3] = 0.0
    return X, _waves(X) + 2.0 * np.abs(X[:, 3]) + 0.3 * random.normal(size=ROWS)


@_stream("recurring", _numbers)
def bursts_of_noise(random: np.random.Generator) -> Made:
    """200 rows in 2,000 have thirty times the noise; nothing else moves."""
    X, t = _uniform(random), np.arange(ROWS)
    noise = np.where(t % 2_000 >= 1_800, 9.0, 0.3)
    return X, _waves(X) + noise * random.normal(size=ROWS)


# ---- classes


@_stream("still", _classes)
def still_classes(random: np.random.Generator) -> Made:
    """A ring around a disc, one row in ten with the other label."""
    X = _uniform(random)
    y = (np.hypot(X[:, 0], X[:, 1]) < 1.1) ^ (random.uniform(size=ROWS) < 0.1)
    return X, y.astype(np.float64)


@_stream("creeping", _classes)
def classes_glide(random: np.random.Generator) -> Made:
    """Two clouds move through each other's place, and back."""
    t, y = np.arange(ROWS), random.integers(2, size=ROWS)
    centre = 2.0 * np.cos(t * 2.0 * math.pi / 8_000)
    X = random.normal(size=(ROWS, 2))
    X[:, 0] += np.where(y == 1, centre, -centre)
    X[:, 1] += np.where(y == 1, 1.0, -1.0) * np.sin(t * 2.0 * math.pi / 8_000)
    return X, y.astype(np.float64)


@_stream("recurring", _classes)
def clouds_exchange_places(random: np.random.Generator) -> Made:
    """Fifteen Gaussians, whose labels exchange places every 3,000 rows."""
    places = random.uniform(-5.0, 5.0, size=(15, 2))
    t, y = np.arange(ROWS), random.integers(15, size=ROWS)
    orders = np.array([random.permutation(15) for _ in range(ROWS // 3_000 + 1)])
    return places[orders[t // 3_000, y]] + 0.2 * random.normal(size=(ROWS, 2)), y.astype(np.float64)


@_stream("creeping", _classes)
def border_turns(random: np.random.Generator) -> Made:
    """A linear border of four columns makes a turn in 16,000 rows; one label in twenty is wrong."""
    X, angle = random.normal(size=(ROWS, 4)), np.arange(ROWS) * 2.0 * math.pi / ROWS
    y = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.0
    return X, (y ^ (random.uniform(size=ROWS) < 0.05)).astype(np.float64)


@_stream("creeping", _classes)
def border_turns_slowly(random: np.random.Generator) -> Made:
    """The same, one turn in 400,000 rows: 240,000 of them, with labels as they are."""
    rows = 240_000
    X, angle = random.normal(size=(rows, 4)), np.arange(rows) * 2.0 * math.pi / 400_000
    return X, (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.0).astype(np.float64)


@_stream("creeping", _classes)
def class_splits(random: np.random.Generator) -> Made:
    """The cloud of one class parts in two, which end up around the other one."""
    t, y = np.arange(ROWS), random.integers(2, size=ROWS)
    X = random.normal(size=(ROWS, 3))
    apart = 6.0 * np.clip((t - 4_000) / 8_000, 0.0, 1.0)
    side = random.choice([-1.0, 1.0], size=ROWS)
    X[:, 0] += np.where(y == 1, 3.0 + (side - 1.0) * apart, 0.0)
    return X, y.astype(np.float64)


@_stream("recurring", _classes)
def class_goes_and_returns(random: np.random.Generator) -> Made:
    """The third of three classes is away from row 4,000 to row 11,000, and returns elsewhere."""
    t = np.arange(ROWS)
    away = (t >= 4_000) & (t < 11_000)
    y = np.where(away, random.integers(2, size=ROWS), random.integers(3, size=ROWS))
    centres = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])
    X = centres[y] + random.normal(size=(ROWS, 2))
    X[(y == 2) & (t >= 11_000), 1] -= 5.0
    return X, y.astype(np.float64)


@_stream("abrupt", _classes)
def labels_swap(random: np.random.Generator) -> Made:
    """Three sectors of a plane exchange labels at row 5,000 and again at row 10,000."""
    X, t = random.normal(size=(ROWS, 4)), np.arange(ROWS)
    sector = np.floor((np.arctan2(X[:, 1], X[:, 0]) + math.pi) / (2.0 * math.pi) * 3.0).astype(np.int64) % 3
    wrong = random.uniform(size=ROWS) < 0.05
    return X, ((sector + t // 5_000 + wrong) % 3).astype(np.float64)


@_stream("abrupt", _classes)
def thresholds_change(random: np.random.Generator) -> Made:
    """The sum of two columns beyond a threshold, which changes every 4,000 rows; one label in ten wrong."""
    X, t = random.uniform(0.0, 10.0, size=(ROWS, 3)), np.arange(ROWS)
    y = X[:, 0] + X[:, 1] > np.array([8.0, 9.0, 7.0, 9.5])[t // 4_000]
    return X, (y ^ (random.uniform(size=ROWS) < 0.1)).astype(np.float64)


@_stream("local", _classes)
def one_quarter_swaps(random: np.random.Generator) -> Made:
    """A board of sixteen fields; in a quarter of it the labels are swapped from row 8,000 on."""
    X, t = random.uniform(0.0, 4.0, size=(ROWS, 2)), np.arange(ROWS)
    board = (np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2 == 0
    quarter = (X[:, 0] > 2.0) & (X[:, 1] > 2.0) & (t >= 8_000)
    return X, (board ^ quarter).astype(np.float64)


@_stream("creeping", _classes)
def classes_move_and_rest(random: np.random.Generator) -> Made:
    """A border turns by a quarter within 1,000 rows, then rests for 3,000, again and again."""
    X, t = random.normal(size=(ROWS, 4)), np.arange(ROWS)
    angle = 0.5 * math.pi * (t // 4_000 + np.minimum(t % 4_000, 1_000) / 1_000)
    y = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] > 0.3 * X[:, 2] ** 2 - 0.3
    return X, (y ^ (random.uniform(size=ROWS) < 0.05)).astype(np.float64)
