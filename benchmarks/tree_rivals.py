"""Trees that people would use instead of AutoKONS, on raw columns: boosted ones fitted again, and forests.

The first 20,000 rows, permuted unless they are in order of time; each row is predicted before it is learned,
the first is not counted. Who plays, with defaults on one thread:

- LightGBM, fitted again whenever 10 % more rows have come, on all rows and on the last 5,000 (scikit-learn's
  boosting stands for it where it is not installed);
- PerpetualBooster likewise, on all rows, where it is installed (``pip install perpetual``);
- CapyMOA's SRP and ARF, of numbers SOKNL and ARF, of ten trees, in an environment of their own
  (``moa_forests``).

In order of time each plays once more with the last two targets as columns. What they reached is kept in the
file of ``--cache``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import kons
from benchmarks import cache, moa_forests
from benchmarks.contenders import numbers
from benchmarks.measuring import MEGABYTE
from benchmarks.raw_streams import RawStream, load_file
from benchmarks.settings import Settings
from benchmarks.streams import QUICK_ROWS
from kons.evaluation import Refitted, RunningMean, make_rival

ROWS, WINDOW = 20_000, 5_000
SILENT = 0.5  # the part of the rows about which a forest may say nothing
PROTOCOL = 1  # raise it when what is played here changes
NUMBERS = (
    "cadata",
    "calhousing14k",
    "casp",
    "cpusmall",
    "elevators",
    "house16h",
    "parkinson",
    "pol",
    "puma32h",
)
CLASSES = ("cod-rna", "german", "magic04", "skin")
#: In the order of time; whether their targets are classes.
IN_TIME = {
    "bike_hourly": False,
    "electricity": True,
    "weather_noaa": True,
    "chessboard": True,
    "classes_move": True,
}
SETS = (*NUMBERS, *CLASSES, *IN_TIME)


class Outcome(NamedTuple):
    """What became of one model on one set; losses in units of the squared range, or error rates."""

    loss: float
    last_quarter: float
    microseconds: float
    megabytes: float
    """Of the model and the rows that it keeps; NaN where nobody can say."""
    pause: float
    """Milliseconds of CPU time; NaN likewise."""


class Rival(NamedTuple):
    """By name; ``library`` with its version, which its results are kept under."""

    name: str
    library: str
    play: Callable[[], Outcome]


def load(name: str, settings: Settings, order: int = 0) -> RawStream | None:
    """The set NAME; ``order`` is the seed of its permutation, if it is not in the order of time."""
    classes = name in CLASSES or IN_TIME.get(name, False)
    rows = QUICK_ROWS if settings.quick else ROWS
    task = "classification" if classes else "regression"
    return load_file(settings.folder, name, task, name in IN_TIME, rows, order)


def streams(settings: Settings, notes: list[str]) -> Iterator[tuple[str, RawStream]]:
    """Each set that was asked for and has a file, in the first order; the others are noted."""
    for name in settings.sets or SETS:
        stream = load(name, settings)
        if stream is None:
            notes.append(f"{name}: no file, skipped.")
        else:
            yield name, stream


def played(
    name: str, stream: RawStream, settings: Settings, only: Callable[[str], bool] = lambda rival: True
) -> dict[str, Outcome]:
    """What each rival reaches, or has reached; ``only`` says who is asked."""
    found = {}
    for rival in rivals(stream, settings):
        if only(rival.name):
            rows = f"{name}, {len(stream.y)} rows, {stream.digest()}"
            key = f"trees: {rows}; {rival.library}; protocol {PROTOCOL}"
            kept = cache.recall(settings.cache, key, rival.name, lambda play=rival.play: play()._asdict())
            found[rival.name] = Outcome(**kept)
    return found


def absent(settings: Settings) -> list[str]:
    """A word for each of those who cannot play here."""
    notes = [] if _installed("lightgbm") else ["no LightGBM: scikit-learn's boosting stands for it."]
    notes += [] if _installed("perpetual") else ["PerpetualBooster is left out: pip install perpetual."]
    _, why = moa_forests.found(settings.capymoa)
    return [*notes, why] if why else notes


def judged() -> bool:
    """Goals speak of LightGBM."""
    return _installed("lightgbm")


def rivals(stream: RawStream, settings: Settings) -> Iterator[Rival]:
    """Who plays here."""
    ways = {"": stream, ", lags": stream.with_lags()} if stream.time_ordered else {"": stream}
    trees = "lightgbm" if _installed("lightgbm") else "scikit-learn"
    version, _ = moa_forests.found(settings.capymoa)
    for lags, given in ways.items():
        for window in (None, WINDOW):
            if window is None or len(stream.y) > window:
                last = "" if window is None else f", last {window:,} rows"
                name = f"{'LightGBM' if trees == 'lightgbm' else 'scikit-learn boosting'}{last}{lags}"
                yield Rival(
                    name, _versioned(trees), partial(_refitted, name, _boosting(trees), given, window)
                )
        if _installed("perpetual"):
            name = f"PerpetualBooster{lags}"
            yield Rival(name, _versioned("perpetual"), partial(_refitted, name, _perpetual, given, None))
        for forest in moa_forests.FORESTS[stream.task] if version else ():
            name = f"CapyMOA {forest}{lags}"
            play = partial(_forest, settings.capymoa, forest, given)
            yield Rival(name, f"capymoa {version}", play)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _versioned(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


def _boosting(trees: str) -> Callable[[str, int | None], Any]:
    name = "lightgbm" if trees == "lightgbm" else "sklearn_boosting"
    return lambda task, window: make_rival(name, task, window=window)


def _perpetual(task: str, window: int | None) -> Any:
    from perpetual import PerpetualBooster

    objective = "LogLoss" if task == "classification" else "SquaredLoss"
    return Refitted(PerpetualBooster(objective=objective, num_threads=1), task, window=window)


def _refitted(name: str, make: Callable[..., Any], stream: RawStream, window: int | None) -> Outcome:
    rival = make(stream.task, window)
    found = kons.evaluate(rival, rows_of(stream), trace=True, baselines=False, intervals=None)
    kept = 8 * (stream.X.shape[1] + 1) * min(len(stream.y), window or len(stream.y))
    prediction = numbers(found.trace.prediction)
    refuse_constant(name, prediction, stream)
    size = len(pickle.dumps(rival.fitted)) + kept
    return outcome(prediction, stream, found.learner_seconds, size, found.longest_pause)


def _forest(python: str, forest: str, stream: RawStream) -> Outcome:
    said, seconds = said_by_forest(python, forest, stream)
    return outcome(said, stream, seconds)


def said_by_forest(python: str, forest: str, stream: RawStream) -> tuple[np.ndarray, float]:
    """Predictions of one of CapyMOA's, and CPU seconds.

    At first, and where all its trees have just begun anew, it names no class: the commonest one so far then.
    """
    said, seconds = moa_forests.play(python, forest, stream.X, stream.y, stream.task)
    if np.isnan(said[len(said) // 4 :]).mean() > SILENT:
        raise RuntimeError(f"CapyMOA {forest} is silent about most rows: is it broken?")
    said = np.where(np.isnan(said), constant(stream), said)
    refuse_constant(f"CapyMOA {forest}", said, stream)
    return said, seconds


def rows_of(stream: RawStream) -> tuple[np.ndarray, np.ndarray]:
    return stream.X, stream.y.astype(int) if stream.task == "classification" else stream.y


def losses(prediction: np.ndarray, stream: RawStream) -> np.ndarray:
    """Of each row: the squared error in units of the squared range, or whether the class was missed."""
    if stream.task == "classification":
        return (prediction != stream.y[: len(prediction)]).astype(float)
    return ((prediction - stream.y[: len(prediction)]) / (np.ptp(stream.y) or 1.0)) ** 2


def outcome(
    prediction: np.ndarray,
    stream: RawStream,
    seconds: float,
    size: float = math.nan,
    pause: float | None = None,
) -> Outcome:
    """Of all rows but the first, which nobody can know anything about."""
    of_rows = losses(prediction, stream)
    last = of_rows[-max(len(of_rows) // 4, 1) :]
    microseconds = seconds / len(of_rows) * 1e6
    milliseconds = math.nan if pause is None else 1e3 * pause
    return Outcome(float(of_rows[1:].mean()), float(last.mean()), microseconds, size / MEGABYTE, milliseconds)


def constant(stream: RawStream) -> np.ndarray:
    """The mean of the targets before each row, or the commonest label; 0 or the least label at first."""
    if stream.task == "regression":
        return RunningMean().advance(stream.X, stream.y).prediction
    labels, codes = np.unique(stream.y, return_inverse=True)
    counts = np.cumsum(np.eye(len(labels))[codes], axis=0)
    return labels[np.concatenate([[0], counts[:-1].argmax(axis=1)])]


def refuse_constant(name: str, prediction: np.ndarray, stream: RawStream) -> None:
    """A rival whose wrapper is broken says the same of all rows, and would look like a win."""
    said, mean = (values[len(prediction) // 4 :] for values in (prediction, constant(stream)))
    if np.isnan(said).any() or np.ptp(said) == 0.0 or np.array_equal(said, mean):
        raise RuntimeError(f"{name} predicts no more than a constant behind the first quarter: is it broken?")
