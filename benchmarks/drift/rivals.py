"""Whom AutoKONS is beside on streams that move: learners with a short memory, forests that notice drift."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import river
from river import forest

import kons
from benchmarks import moa_forests
from benchmarks.contenders import numbers, play_rival
from benchmarks.drift.streams import Moving
from benchmarks.settings import Settings
from benchmarks.tree_rivals import said_by_forest
from kons.evaluation import RiverModel, make_rival
from kons.policies import Dependence
from kons.recipes import for_task

FORGETTING = (1.0, 0.999, 0.995, 0.99)
WINDOWS = (250, 500, 1_000, 4_000)
NEIGHBOURS = 5
BLOCK = 64

Predictions = np.ndarray


class Rival(NamedTuple):
    """By name; ``library`` is what its results depend on, ``dear`` is who is left out on long streams."""

    name: str
    library: str
    play: Callable[[Moving], Predictions]
    dear: bool = False


def embedded(moving: Moving, forgetting: float) -> Predictions:
    """EmbeddedKONS with its defaults but for forgetting, and atoms that are replaced."""
    policy = Dependence(when_full="replace" if forgetting < 1.0 else "freeze")
    learner = for_task(moving.stream.task, "embedded", forgetting=forgetting, policy=policy)
    return numbers(learner.advance(moving.stream.X, moving.stream.y).prediction)


def neighbours(moving: Moving, window: int) -> Predictions:
    """The mean, or the commonest label, of the five nearest of the last rows; columns in units there."""
    X, y, classes = moving.stream.X, moving.stream.y, moving.classes
    predictions = np.zeros(len(y))
    for start in range(1, len(y), BLOCK):
        stop = min(start + BLOCK, len(y))
        first = max(start - window, 0)
        centre, scale = X[first:start].mean(axis=0), X[first:start].std(axis=0)
        # The deviation of a column that is constant here is rounding, and no unit.
        constant = scale <= 1e-9 * np.abs(centre)
        known = (X[first:stop] - centre) / np.where(constant, 1.0, scale)
        asked = known[start - first :]
        squares = np.einsum("ij,ij->i", known, known)
        distances = squares - 2.0 * asked @ known.T
        for i in range(stop - start):  # row by row: none knows itself, or a later one
            seen = distances[i, max(start + i - window - first, 0) : start + i - first]
            count = min(NEIGHBOURS, len(seen))
            nearest = np.argpartition(seen, count - 1)[:count] + max(start + i - window, first)
            found = y[nearest]
            if classes:
                values, counts = np.unique(found, return_counts=True)
                predictions[start + i] = values[np.argmax(counts)]
            else:
                predictions[start + i] = found.mean()
    return predictions


def river_forest(moving: Moving) -> Predictions:
    """River's adaptive random forest with its defaults."""
    model = (forest.ARFClassifier if moving.classes else forest.ARFRegressor)(seed=0)
    return play_rival(RiverModel(model), moving.stream.X, moving.stream.y)


def scaled_river_forest(moving: Moving) -> Predictions:
    """The same between scalers: columns in large units need them, one that comes to life is harmed."""
    return play_rival(make_rival("river_arf", moving.stream.task), moving.stream.X, moving.stream.y)


def capymoa_forest(moving: Moving, python: str, kind: str) -> Predictions:
    """One of CapyMOA's forests of ten trees."""
    return said_by_forest(python, kind, moving.stream)[0]


def who_plays(settings: Settings, classes: bool) -> Iterator[Rival]:
    """Those that need no other library, each with one setting; then the forests that were asked for."""
    for forgetting in FORGETTING:
        play = partial(embedded, forgetting=forgetting)
        yield Rival(f"embedded, forgetting {forgetting:g}", f"kons {sources()}", play)
    for window in WINDOWS:
        play = partial(neighbours, window=window)
        yield Rival(f"neighbours in {window:,} rows", "NumPy, centred", play, dear=True)
    if settings.slow:
        library = f"River {river.__version__}"
        yield Rival("River ARF", library, river_forest, dear=True)
        if not classes:
            yield Rival("River ARF, both scaled", library, scaled_river_forest, dear=True)
    version, _ = moa_forests.found(settings.capymoa)
    for kind in moa_forests.FORESTS["classification" if classes else "regression"] if version else ():
        play = partial(capymoa_forest, python=settings.capymoa, kind=kind)
        yield Rival(f"CapyMOA {kind}", f"capymoa {version}", play, dear=True)


@functools.cache
def sources() -> str:
    """Changes with the sources of kons that EmbeddedKONS may be made of: all but those of AutoKONS."""
    digest, folder = hashlib.sha256(), Path(kons.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        if folder / "learners" / "auto" not in file.parents:
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
